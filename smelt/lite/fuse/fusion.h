// Fusions of operators: each a row of a table that can be switched off by its name.
//
// A row looks at one operator and what it reads. Names are those that users know from TensorFlow's
// converter where it has the fusion.
#ifndef SMELT_LITE_FUSE_FUSION_H_
#define SMELT_LITE_FUSE_FUSION_H_

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/lite/fuse/rules.h"

namespace smelt {

// What a fusion did, or why it did not though it nearly matched.
struct FusionNote {
  std::string fusion, node;
  std::string why_not;       // empty: it fired
  std::string differs = {};  // where the operator computes something else than the graph did
};

// What rows work with. Not thread safe.
class Fuser {
 public:
  Fuser(Graph& graph, std::vector<FusionNote>* notes, bool coarse_weights)
      : graph_(graph), notes_(notes), coarse_weights_(coarse_weights) {}

  Graph& graph() { return graph_; }
  static PartialShape shape(Endpoint e);
  static Dtype type(Endpoint e) { return e.node->output_types[static_cast<size_t>(e.port)]; }
  static std::optional<Tensor> Constant(Endpoint e);
  // A float that every element of the constant is.
  static std::optional<float> Number(Endpoint e);
  // Nobody but one input of one operator reads it.
  static bool ReadOnce(Endpoint e);

  Endpoint Const(const Tensor& value, const Node& like);
  // An operator of one output, of the type and shape of output 0 of `like`.
  StatusOr<Endpoint> Add(OpName op, std::vector<Endpoint> inputs, AttrMap options,
                         const Node& like);
  // The same of a type and shape of its own.
  StatusOr<Endpoint> AddShaped(OpName op, std::vector<Endpoint> inputs, AttrMap options, Dtype type,
                               const PartialShape& shape, const Node& like);
  // The elements of `e` in these sizes, of which CanReshapeTo holds.
  StatusOr<Endpoint> Reshape(Endpoint e, const std::vector<int64_t>& sizes, const Node& like);
  // Everybody who read output 0 of `n` reads `by`; what nobody reads any more goes.
  void Replace(Node* n, Endpoint by);
  // The same of a reshape of `e`, which has the elements of `n`; false where none can say its
  // sizes.
  StatusOr<bool> ReplaceByReshape(Node* n, Endpoint e);
  // Input i of the operator reads `from`; what nobody reads any more goes.
  void SetInput(Node* n, int i, Endpoint from);

  // Weights will be integers, whose steps are those of the greatest of a row.
  bool coarse_weights() const { return coarse_weights_; }

  // Somebody wants to know what nearly matched; nothing that matches is left.
  bool takes_notes() const { return notes_ != nullptr; }
  // The row nearly matched. False, for rows to return.
  bool Declined(const Node& n, std::string why);

  // ---- used by Fuse
  void Begin(absl::string_view fusion) { fusion_ = fusion; }

 private:
  void Sweep(Node* n);

  Graph& graph_;
  std::vector<FusionNote>* notes_;
  const bool coarse_weights_;
  absl::string_view fusion_;
};

// A fusion that is no row of ours: a user's library has it (custom/fusion_library.h).
struct FunctionFusion {
  std::string name, what;
  OpSet ops{};
  // As Fusion::apply.
  std::function<StatusOr<bool>(Node& n, Fuser& f)> apply;
};

struct Fusion {
  absl::string_view name;
  OpSet ops;  // the operators that it is asked about
  // Did it change the graph? The node may be gone then. nullptr: `rules` says it.
  StatusOr<bool> (*apply)(Node& n, Fuser& f);
  absl::string_view what;  // "relu(conv_2d(x)) -> conv_2d(x) with an activation"
  const RuleFusion* rules = nullptr;
  // It changes operators that others know a pattern by: tried when these have found all they look
  // for.
  bool late = true;
  // Only where its name is asked for.
  bool on_request = false;
  const FunctionFusion* function = nullptr;
  // A user's.
  bool own() const { return function != nullptr || (rules != nullptr && !rules->ours); }
};

// Our own, in the order in which they are tried. Live as long as the process.
const std::vector<Fusion>& AllFusions();

// At operators that a user's fusion added: its name (string).
inline constexpr absl::string_view kOwnFusion = "_own_fusion";

// Which fusions are tried.
struct FusionChoice {
  std::set<std::string, std::less<>> off;  // by name
  std::set<std::string, std::less<>> on;   // those on request that are wanted
  // A user's, tried first. They must have names of their own.
  std::vector<RuleFusion> own;
  std::vector<FunctionFusion> functions;
  bool coarse_weights = false;  // Fuser::coarse_weights
};
// INVALID_ARGUMENT for a name in `off` or `on` that no fusion has, and for one that two have.
// `others`: names of what can be switched off beside fusions.
Status CheckFusions(const FusionChoice& choice, std::span<const absl::string_view> others);

// Applies the fusions until none fires. `notes` may be nullptr. Errors are those of rows.
Status Fuse(Graph& graph, const FusionChoice& choice, std::vector<FusionNote>* notes);

// Tables of the files of this folder.
std::span<const Fusion> AffineFusions();
std::span<const Fusion> ActivationFusions();
std::span<const Fusion> TransposeFusions();
std::span<const Fusion> ReshapeFusions();
std::span<const Fusion> JoinFusions();
std::span<const Fusion> BeforeAffineFusions();
std::span<const Fusion> SelectionFusions();
std::span<const Fusion> UpscalingFusions();
std::span<const Fusion> MatmulFusions();
std::span<const Fusion> UnfoldFusions();
std::span<const Fusion> ReductionFusions();
std::span<const Fusion> BidirectionalFusions();
std::span<const Fusion> CommuteFusions();
std::span<const Fusion> SpreadFusions();
std::span<const Fusion> IdentityFusions();
std::span<const Fusion> VariableFusions();

// ---- what they share
// Operators of one element at a time, of one tensor and of two.
inline constexpr OpSet kLiteUnary = {
    "tfl.abs",  "tfl.ceil",       "tfl.cos",         "tfl.elu",    "tfl.exp",          "tfl.floor",
    "tfl.gelu", "tfl.hard_swish", "tfl.leaky_relu",  "tfl.log",    "tfl.logistic",     "tfl.neg",
    "tfl.relu", "tfl.relu6",      "tfl.relu_0_to_1", "tfl.round",  "tfl.relu_n1_to_1", "tfl.rsqrt",
    "tfl.sign", "tfl.sin",        "tfl.sqrt",        "tfl.square", "tfl.tanh",         "tfl.cast"};
inline constexpr OpSet kLiteBinary = {"tfl.add",     "tfl.sub",    "tfl.mul",
                                      "tfl.div",     "tfl.pow",    "tfl.squared_difference",
                                      "tfl.maximum", "tfl.minimum"};
constexpr OpSet Union(std::initializer_list<OpSet> sets) {
  OpSet out({});
  for (const OpSet& set : sets) {
    for (int i = 0; i < kNumOps; ++i) {
      if (set.Contains(OpName::OfNumber(i))) out.Add(OpName::OfNumber(i));
    }
  }
  return out;
}
// The options of an operator, for another in its place.
AttrMap OptionsOf(const Node& n);
inline constexpr OpSet kLiteReductions = {"tfl.mean",       "tfl.sum",         "tfl.reduce_max",
                                          "tfl.reduce_min", "tfl.reduce_prod", "tfl.reduce_any",
                                          "tfl.reduce_all"};
bool HasActivation(const Node& n);
// An int32 constant.
Endpoint IntsConst(std::span<const int64_t> values, const Node& like, Fuser& f);
// Of an int32 or int64 constant.
std::optional<std::vector<int64_t>> IntsOf(Endpoint e);
// The sizes as a reshape states them, -1 for a free one; none where the rank is not known.
std::vector<int64_t> StatedSizes(const PartialShape& s);
// Can one reshape state them? Neither two free ones, nor one beside a size of 0, can be told.
bool CanReshapeTo(std::span<const int64_t> sizes);
// Of the result of operands that broadcast; no rank where either has none.
PartialShape BroadcastOf(const PartialShape& a, const PartialShape& b);
// Equal shapes, if they are of as many elements: one size may be free in both.
bool SameWhenEqualElements(const PartialShape& a, const PartialShape& b);
// Where an affine operator has its weights and its bias, and which dimension of the weights is that
// of the result's channels.
struct AffineParts {
  int weights, bias, channels;
};
AffineParts PartsOf(const Node& n);
// One number for each of the channels; nothing where the constant is not that.
StatusOr<std::optional<Tensor>> PerChannel(const Tensor& value, int64_t channels);
// The bias, zeros where there is none; invalid where it is no constant.
StatusOr<Tensor> BiasOf(const Node& affine, int64_t channels);
Status SetBias(Node* affine, const Tensor& bias, Fuser& f);

}  // namespace smelt

#endif  // SMELT_LITE_FUSE_FUSION_H_
