// The types and steps that the files of the bfloat16 stage share. docs/bfloat16.md says what it
// decides. Not thread safe.
//
// A graph's float32 computation is seen as units: what one type attribute of a node governs
// (MatMul's T: both inputs and the output; one element of IdentityN's list). Each unit computes in
// float32 or in bfloat16. Arguments, constants and variable reads are sources: they cost nothing to
// have as bfloat16 when all their readers want that.
#ifndef SMELT_CONVERT_BFLOAT16_BFLOAT16_H_
#define SMELT_CONVERT_BFLOAT16_BFLOAT16_H_

#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

enum class Bf16Class {
  kAnchor,      // a product: bfloat16 always pays
  kArithmetic,  // rounds; bfloat16 where that moves fewer bytes
  kPassing,     // moves or selects elements, without rounding; the same
  kKeep,        // float32
};

// What must stay float32 before an op because of what the op does with it (sensitive.cc).
enum class Bf16Inputs {
  kPlain,     // nothing
  kExact,     // what leads to the op, up to the nearest products
  kDecision,  // these products too: an index or a decision comes of them
  // As kDecision, and a filter bank (products that are linear in the arguments) as well: a
  // logarithm makes noise near zero large.
  kLogarithm,
  kStatistic,  // the variance of a normalization that leads here
};

struct Bf16Op {
  OpName op;
  Bf16Class kind;
  Bf16Inputs inputs;
  absl::string_view attr;  // the type attribute
  absl::string_view why;   // kKeep: the reason
};

// nullptr: the op has no row, and stays float32.
const Bf16Op* FindBf16Op(OpName op);

struct FloatUnit {
  Node* node = nullptr;
  const Bf16Op* row = nullptr;  // nullptr: elements of lists
  Bf16Class kind = Bf16Class::kPassing;
  std::string attr;                                   // the type attribute, or else:
  std::vector<std::pair<std::string, int>> elements;  // list attributes and positions in them
  std::vector<int> inputs, outputs;                   // of the node, that belong to the unit
  std::string keep;                                   // why it stays float32; empty: it need not
  bool fixed = false;                                 // bfloat16 whatever it costs
  bool bf16 = false;                                  // what was decided
};

// One graph with its units.
struct FloatGraph {
  Function* function = nullptr;  // nullptr: the main graph
  Graph* graph = nullptr;
  std::string path;  // for messages
  bool on_tpu = false;
  bool loop_body = false;
  bool loop_condition = false;
  absl::flat_hash_set<int> tested;  // of a loop's body: results that the loop's condition reads
  // Of the loops in this graph: inputs that their conditions read.
  absl::flat_hash_map<const Node*, absl::flat_hash_set<int>> tested_inputs;
  const ShapeTable* shapes = nullptr;
  absl::flat_hash_set<const Node*> outside;  // of the main graph: what no signature needs
  absl::flat_hash_set<const Node*> stored;   // reads and lookups of variables stored as bfloat16
  std::vector<FloatUnit> units;
  // Positions in `units`, by node and input, and by node and output.
  absl::flat_hash_map<std::pair<const Node*, int>, int> in, out;
  // Arguments and results (flat) that cross as bfloat16, in the function's only call too.
  absl::flat_hash_set<int> carried_args, carried_results;

  int In(const Node* n, int input) const;  // -1: none
  int Out(Endpoint e) const;               // -1: none
  bool WantsBf16(const Node* n, int i) const {
    const int u = In(n, i);
    return u >= 0 && units[u].bf16;
  }
  int64_t Elements(Endpoint e) const;  // unknown sizes count as 1
};

inline bool IsFloat32(Endpoint e) {
  return BaseType(e.node->output_types[e.port]) == Dtype::kFloat;
}
bool IsFloatSource(const Node& n);  // argument, feed, constant, variable, read of one

// Why the options keep a unit float32. What leads to it is not kept for it.
inline constexpr absl::string_view kBf16Filterlist = "filterlist";
inline constexpr absl::string_view kBf16NodeFilterlist = "node_filterlist";

// What the options keep float32, by op type and by whole node name.
class Bf16Filter {
 public:
  // REQUIRES: CheckOptions found the regular expressions right.
  explicit Bf16Filter(const Bfloat16Option& options);
  ~Bf16Filter();
  // Why the node stays float32, or "".
  absl::string_view Why(const Node& n) const;
  bool HasOp(const Node& n) const { return ops_.contains(n.op()); }
  // By before_int8: the node stays as it is, and what leads to it is not kept for it.
  bool IsOfInt8(const Node& n) const {
    return before_int8_ && n.attrs().Find(kLayerAttr) != nullptr;
  }
  // Regular expressions that no node of `graphs` has the name for.
  std::vector<std::string> Unused(const std::vector<FloatGraph*>& graphs) const;

 private:
  absl::flat_hash_set<std::string> ops_;
  std::vector<std::unique_ptr<RE2>> names_;
  bool before_int8_ = false;
};

// Fills `units`, `in` and `out`. Ops of the filter are kept. `carried` gives the elements of calls
// that cross as bfloat16: (node, attribute) -> indices.
using CarriedElements =
    absl::flat_hash_map<std::pair<const Node*, std::string>, absl::flat_hash_set<int>>;
void MakeFloatUnits(FloatGraph& g, const Bf16Filter& filter, const CarriedElements& carried);
// The arguments on which the answer of a loop's condition depends.
absl::flat_hash_set<int> TestedArgs(const Function& condition);
// Float tensors that decide what runs next: which branch, whether a loop goes on.
std::vector<Endpoint> DecidingFloats(const FloatGraph& g);
// Sets `keep`, with the reason, where rounding would show far beyond itself.
void KeepSensitive(FloatGraph& g, const Bf16Filter& filter);
// Sets `bf16`: the cheapest choice in bytes moved, without connected parts that hold no product.
void ChoosePrecision(FloatGraph& g);
// The longest chain of computations that each round to bfloat16; loops count once.
struct Roundings {
  int count = 0;
  std::string path;                // FloatGraph::path
  std::map<std::string, int> ops;  // of the chain, with how many of each
};
Roundings LongestRoundings(const FloatGraph& g);
// Decide which arguments and results of functions cross as bfloat16, and mark them in the
// functions' graphs; the sets get their positions. REQUIRES: ChoosePrecision was called for these
// graphs.
void CarryLoop(FloatGraph& body, FloatGraph& cond, absl::flat_hash_set<int>* elements);
void CarryCall(std::vector<FloatGraph*> branches, absl::flat_hash_set<int>* inputs,
               absl::flat_hash_set<int>* outputs);
// Changes the graph as decided.
Status RewritePrecision(FloatGraph& g);

// Stores variables as bfloat16 where every reader in `served` (functions) and in the served main
// graph wants that; all other readers get a Cast.
Status StoreBf16Variables(Conversion& c, const std::vector<FloatGraph*>& graphs,
                          const absl::flat_hash_set<std::string>& served);

}  // namespace smelt

#endif  // SMELT_CONVERT_BFLOAT16_BFLOAT16_H_
