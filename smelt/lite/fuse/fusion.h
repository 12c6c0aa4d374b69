// Fusions of operators: each a row of a table that can be switched off by its name.
//
// A row looks at one operator and what it reads. Names are those that users know from TensorFlow's
// converter where it has the fusion.
#ifndef SMELT_LITE_FUSE_FUSION_H_
#define SMELT_LITE_FUSE_FUSION_H_

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

// What a fusion did, or why it did not though it nearly matched.
struct FusionNote {
  std::string fusion, node;
  std::string why_not;  // empty: it fired
};

// What rows work with. Not thread safe.
class Fuser {
 public:
  Fuser(Graph& graph, std::vector<FusionNote>* notes) : graph_(graph), notes_(notes) {}

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
  // Everybody who read output 0 of `n` reads `by`; what nobody reads any more goes.
  void Replace(Node* n, Endpoint by);
  // Input i of the operator reads `from`; what nobody reads any more goes.
  void SetInput(Node* n, int i, Endpoint from);

  // The row nearly matched. False, for rows to return.
  bool Declined(const Node& n, std::string why);

  // ---- used by Fuse
  void Begin(absl::string_view fusion) { fusion_ = fusion; }
  void Fired(const std::string& node);

 private:
  void Sweep(Node* n);

  Graph& graph_;
  std::vector<FusionNote>* notes_;
  absl::string_view fusion_;
};

struct Fusion {
  absl::string_view name;
  OpSet ops;  // the operators that it is asked about
  // Did it change the graph? The node may be gone then.
  StatusOr<bool> (*apply)(Node& n, Fuser& f);
  absl::string_view what;  // "relu(conv_2d(x)) -> conv_2d(x) with an activation"
};

// In the order in which they are tried.
std::span<const Fusion> AllFusions();

// Applies the fusions but those of `off` until none fires. `notes` may be nullptr. Errors are those
// of rows.
Status Fuse(Graph& graph, const std::set<std::string, std::less<>>& off,
            std::vector<FusionNote>* notes);

// Tables of the files of this folder.
std::span<const Fusion> AffineFusions();
std::span<const Fusion> ActivationFusions();

}  // namespace smelt

#endif  // SMELT_LITE_FUSE_FUSION_H_
