// Operators as ops of TensorFlow: how a .tflite file runs.
//
// A row says what one operator means in TensorFlow's terms; the graph that comes out is one like
// any other for the optimizer, the compiler and the kernels. Operators on quantized numbers that
// have kernels of their own stay as they are.
#ifndef SMELT_LITE_LOWER_LOWERING_H_
#define SMELT_LITE_LOWER_LOWERING_H_

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"
#include "smelt/lite/common/quantization.h"

namespace smelt {

struct LowerRow;

// What the operators of all subgraphs of a file keep between runs, and how it begins.
struct LiteResources {
  // Tensors that operators change, real zeros at first: variables of these names.
  struct State {
    std::string name;
    Dtype type;
    Shape shape;
    int64_t zero = 0;  // of int8: what stands for zero
    StatusOr<Tensor> Begin() const;
  };
  std::vector<State> states;
  std::vector<std::string> run_once;            // functions that CALL_ONCE names
  std::map<std::string, Dtype> variable_types;  // by container and name
};
// Finds the types of the graph's variables, which no handle states.
void FindVariableTypes(const Graph& graph, LiteResources& resources);

// What rows work with. Not thread safe.
class Lowering {
 public:
  // Names of states begin with `function`. Both outlive this.
  Lowering(Graph& graph, absl::string_view function, LiteResources& resources)
      : graph_(graph), function_(function), resources_(resources) {}

  LiteResources& resources() { return resources_; }
  absl::string_view function() const { return function_; }

  Graph& graph() { return graph_; }
  // As the file states it: free sizes are -1, an unknown rank reads as a scalar's.
  const PartialShape& shape(Endpoint e) const;
  // nullptr: not quantized.
  const Quantization* quantization(Endpoint e) const;
  Dtype type(Endpoint e) const { return e.node->output_types[static_cast<size_t>(e.port)]; }
  std::optional<Tensor> Constant(Endpoint e) const;
  std::optional<std::vector<int64_t>> Integers(Endpoint e) const;
  static bool IsLeftOut(Endpoint e) { return e.node->Is("tfl.no_value"); }
  // Input i where the operator has it and it is not left out.
  static bool Has(const Node& n, int i) { return i < n.num_inputs() && !IsLeftOut(n.input(i)); }

  // ---- making: types that inputs decide need not be given

  StatusOr<Node*> AddNode(OpName op, std::span<const Endpoint> inputs, AttrMap attrs = {});
  StatusOr<Endpoint> Add(OpName op, std::initializer_list<Endpoint> inputs, AttrMap attrs = {}) {
    return Add(op, std::span<const Endpoint>(inputs.begin(), inputs.size()), std::move(attrs));
  }
  StatusOr<Endpoint> Add(OpName op, std::span<const Endpoint> inputs, AttrMap attrs = {}) {
    ASSIGN_OR_RETURN(Node * n, AddNode(op, inputs, std::move(attrs)));
    return Endpoint{n, 0};
  }
  Endpoint Const(const Tensor& value);
  // An int32 vector; an int64 one where a value needs it.
  Endpoint Ints(std::span<const int64_t> values);
  Endpoint Int(int64_t value);  // an int32 scalar
  // A number of the type; of float unless another is named.
  StatusOr<Endpoint> Number(double value, Dtype type = Dtype::kFloat);
  // "RELU6" and so on of the value. INVALID_ARGUMENT for one that no kernel has.
  StatusOr<Endpoint> Activated(Endpoint e, const Node& n);

  // The operator itself, for a kernel of its own: what is known of its inputs' quantization is
  // attributes (kernels/lite/fixed_point.h), and an input that is left out is an empty tensor.
  // `more`: types of outputs behind those that it has.
  StatusOr<Node*> Keep(const Node& n, DtypeVector more = {});
  // The value that a tensor which is kept between runs has from now on. REQUIRES: `state` was read
  // from a "tfl.variable".
  Status Assign(Endpoint state, Endpoint value);

  const LowerRow& row() const { return *row_; }

  // ---- used by Lower

  void Begin(const Node& node, const LowerRow& row) {
    node_ = &node;
    row_ = &row;
    made_.clear();
  }
  void SetShape(Endpoint e, PartialShape shape) { shapes_[{e.node, e.port}] = std::move(shape); }
  void SetQuantization(Endpoint e, Quantization q) {
    quantizations_[{e.node, e.port}] = std::move(q);
  }
  // The nodes that the row has made.
  std::vector<Node*>& made() { return made_; }

 private:
  Graph& graph_;
  const Node* node_ = nullptr;
  const LowerRow* row_ = nullptr;
  absl::string_view function_;
  LiteResources& resources_;
  std::vector<Node*> made_;
  absl::flat_hash_map<std::pair<const Node*, int>, Quantization> quantizations_;
  absl::flat_hash_map<std::pair<const Node*, int>, PartialShape> shapes_;
};

// What stands for each output of the operator.
using LoweredEndpoints = StatusOr<std::vector<Endpoint>>;

// An attribute under its two names; the last one of a list is empty.
struct AttrNames {
  absl::string_view lite, tensorflow;
};
struct LowerRow {
  OpName op;
  LoweredEndpoints (*lower)(Node& n, Lowering& l);
  // For functions that several rows share, which find them in Lowering::row().
  OpName tensorflow = {};
  AttrNames attrs[5] = {};
};

// One span for each file of this folder.
std::span<const std::span<const LowerRow>> AllLowerRows();

// Replaces the operators of the graph. UNIMPLEMENTED names those that no row lowers and no kernel
// runs; errors of rows name the operator.
Status Lower(Graph& graph, absl::string_view function, LiteResources& resources);
// Replaces one operator, none of its operands quantized: the nodes that stand for it, of which the
// last has its name. A node whose shape the operator does not state has none.
StatusOr<std::vector<Node*>> LowerAlone(Graph& graph, Node* n);

// Operators on quantized tensors: those that lowering.cc does not know to be the same on integers.
std::span<const LowerRow> QuantizedLowering();
// Does the operator compute with integers that stand for reals?
bool IsQuantized(const Node& n, const Lowering& l);

// For rows.
// How input i of a kernel's operator is quantized (kernels/lite/fixed_point.h), but for blocks.
void NoteInputQuantization(AttrMap& attrs, int i, const Quantization& q);
inline LoweredEndpoints OneOf(StatusOr<Endpoint> e) {
  RETURN_IF_ERROR(e.status());
  return std::vector<Endpoint>{*e};
}
inline std::vector<Endpoint> InputsOf(const Node& n) {
  return {n.inputs().begin(), n.inputs().end()};
}
// The row's op of the same inputs, with the row's attributes, and the activation of the operator.
LoweredEndpoints SameOp(Node& n, Lowering& l);
std::span<const LowerRow> ControlLowering();
std::span<const LowerRow> CustomLowering();
// A custom operator that TensorFlow Lite's own resolver brings; nothing for any other.
std::optional<LoweredEndpoints> ResolverCustomLowered(Node& n, Lowering& l);
std::span<const LowerRow> ElementwiseLowering();
std::span<const LowerRow> MovementLowering();
std::span<const LowerRow> NnLowering();
std::span<const LowerRow> RecurrentLowering();
std::span<const LowerRow> StablehloLowering();
// Keeps the operator, whose kernel (kernels/lite/) takes it. UNIMPLEMENTED with why not.
LoweredEndpoints KeptForKernel(Node& n, Lowering& l);

}  // namespace smelt

#endif  // SMELT_LITE_LOWER_LOWERING_H_
