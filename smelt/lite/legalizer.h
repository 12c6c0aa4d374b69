// Export of ops: a row says what operators of TensorFlow Lite one op of TensorFlow becomes.
//
// The graph holds both while rows run: an operator is a node of an op "tfl.name"
// (graph/ops/lite_ops.txt). Its attribute "_output_shapes" has the shapes of its outputs.
#ifndef SMELT_LITE_LEGALIZER_H_
#define SMELT_LITE_LEGALIZER_H_

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/io/file_system.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/lite/common/attributes.h"

namespace smelt {

// An output that a row makes.
struct LiteOutput {
  Dtype type;
  PartialShape shape;
};

struct ExportRow;

// What rows work with. Not thread safe.
class Legalizer {
 public:
  // REQUIRES: `shapes` are those of `graph` as it is; all outlive this. Nodes that they do not know
  // are as they state it.
  Legalizer(Graph& graph, const ShapeTable& shapes, const ResourceManager* resources = nullptr,
            bool stated = false)
      : graph_(graph), shapes_(shapes), resources_(resources), stated_(stated) {}

  Graph& graph() { return graph_; }
  // Free sizes are -1 or symbols. Of what a failed OperatorChain gives, an endpoint without a node,
  // nothing is known: here and below.
  PartialShape shape(Endpoint e) const;
  int rank(Endpoint e) const { return shape(e).rank(); }  // -1: not known
  Dtype type(Endpoint e) const {
    if (e.node == nullptr) return Dtype::kInvalid;
    return e.node->output_types[static_cast<size_t>(e.port)];
  }
  // Of a Const, through identities.
  std::optional<Tensor> Constant(Endpoint e) const;
  std::optional<std::vector<int64_t>> Integers(Endpoint e) const;
  // What the loaded model holds there; nullptr: nothing.
  std::shared_ptr<Resource> Held(absl::string_view container, absl::string_view kind,
                                 absl::string_view name) const;

  // The node that is replaced, whose name those of new nodes begin with, and its row.
  void Begin(const Node& node, const ExportRow& row) {
    node_ = &node;
    row_ = &row;
  }
  const ExportRow& row() const { return *row_; }
  // The files of the model; nullptr: there are none.
  const FileSystem* files() const { return files_; }
  void SetFiles(const FileSystem* files) { files_ = files; }
  // Is a rounding of the model's own a range that quantization takes, as TensorFlow's does?
  bool declares_ranges() const { return declares_ranges_; }
  void SetDeclaresRanges(bool declares) { declares_ranges_ = declares; }

  // ---- making

  // An operator for the output `of` of the node that is replaced.
  StatusOr<Endpoint> Add(OpName op, std::initializer_list<Endpoint> inputs, AttrMap options,
                         const LiteOutput& output) {
    return Add(op, std::span<const Endpoint>(inputs.begin(), inputs.size()), std::move(options),
               output);
  }
  StatusOr<Endpoint> Add(OpName op, std::span<const Endpoint> inputs, AttrMap options,
                         const LiteOutput& output);
  StatusOr<Node*> AddMany(OpName op, std::span<const Endpoint> inputs, AttrMap options,
                          std::span<const LiteOutput> outputs);
  // What `e` is of, as int32 when the model runs.
  StatusOr<Endpoint> ShapeOf(Endpoint e);
  Endpoint Const(const Tensor& value);
  // An int32 vector.
  Endpoint Ints(std::span<const int64_t> values);
  Endpoint Int(int64_t value);  // an int32 scalar
  // An int32 matrix of two columns, row by row: what is before and behind each dimension.
  Endpoint IntPairs(std::span<const int64_t> values);
  Endpoint Floats(float value);
  // Stands for an input that is left out.
  Endpoint NoValue();

  // Writes kOutputShapes of a node that stays as it is.
  void StateShapes(Node& n) const;

  // Output i of the node that is replaced.
  LiteOutput OutputOf(const Node& n, int i = 0) const {
    return {n.output_types[static_cast<size_t>(i)], shape({const_cast<Node*>(&n), i})};
  }

 private:
  Graph& graph_;
  const ShapeTable& shapes_;
  const ResourceManager* resources_;
  const bool stated_;
  const FileSystem* files_ = nullptr;
  bool declares_ranges_ = false;
  const Node* node_ = nullptr;
  const ExportRow* row_ = nullptr;
};

// What stands for each output of the node; of one without outputs, what those wait for who waited
// for it, where there is any. An error of the code UNIMPLEMENTED says why there is no
// operator for it, as in "it has no builtin operator: WHY".
using LiteEndpoints = StatusOr<std::vector<Endpoint>>;

struct ExportRow {
  OpName op;
  LiteEndpoints (*convert)(Node& n, Legalizer& l);
  // For functions that several rows share, which find them in Legalizer::row().
  OpName lite = {};           // the operator
  DtypeSet types = kAnyType;  // of input 0, which its kernels take
};

// One span for each file of rows/.
std::span<const std::span<const ExportRow>> AllExportRows();
// nullptr: there is none.
const ExportRow* FindExportRow(OpName op);
// Ops that fusions want as they are, and that have rows where no fusion took them.
std::span<const ExportRow> LateExport();

// A node that no row converts.
struct Refusal {
  std::string node, op, why;
  // What else an export could make of it (flex/select_ops.h).
  bool could_be_select = false, could_be_custom = false;
};
struct LegalizeFlags {
  bool builtins = true;               // false: every node is refused
  bool asserts = false;               // true: Assert is an op like others, and not dropped
  const FileSystem* files = nullptr;  // that the model may read
  // FakeQuant states ranges for quantization (kDeclaresRange); false: it rounds as TensorFlow does.
  bool declares_ranges = false;
};
// Replaces every node of TensorFlow's ops but Const, _Arg and _Retval. Those that cannot be
// replaced stay, with their shapes stated, and are told of: a fusion may still take them (Erf).
// `resources`: those of the loaded model, where there is one.
StatusOr<std::vector<Refusal>> Legalize(Graph& graph, const ResourceManager* resources = nullptr,
                                        const LegalizeFlags& flags = {});
// Replaces what fusions left of the refused nodes that have late rows. True: it replaced some.
StatusOr<bool> LegalizeLate(Graph& graph, std::vector<Refusal>& refusals);
// Operators whose operands have more dimensions than kernels take become others (fit/fit.h); those
// of which nothing can be made are refused by the names of their operators. True: it changed the
// graph.
struct FitRow {
  OpSet ops;
  // No endpoints: the operator stays.
  LiteEndpoints (*convert)(Node& n, Legalizer& l);
};
std::span<const std::span<const FitRow>> AllFitRows();
StatusOr<bool> FitOperators(Graph& graph, std::vector<Refusal>& refusals);
// Forgets the nodes that are not in the graph any more.
void DropFused(const Graph& graph, std::vector<Refusal>& refusals);

// An option that has a value other than the default; for use in an initializer list.
AttrMap Options(std::initializer_list<std::pair<absl::string_view, Attr>> values);

}  // namespace smelt

#endif  // SMELT_LITE_LEGALIZER_H_
