// Shape inference: what is known of every tensor's shape before anything runs.
//
// A rule is a row of a family's table (one file per family, as kernels are); an op without a rule
// gives unknown shapes. The walk goes through the graph once in topological order, follows small
// integer values (so that the shape of Reshape, Fill, ... is known where Shape and arithmetic make
// it) and what resource handles and lists hold, and enters function calls, branches and loops.
//
// On request a size that is not known is a symbol (tensor/shape.h) in place of -1: sizes that are
// the same whatever they turn out to be have the same symbol.
//
// Unknown is always a legal answer. All functions are thread safe as long as nobody changes the
// graph.
#ifndef SMELT_GRAPH_SHAPE_INFER_H_
#define SMELT_GRAPH_SHAPE_INFER_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Shapes of one graph's outputs, by node id and port.
class ShapeTable {
 public:
  const PartialShape& of(Endpoint e) const;  // unknown where nothing is known
  // The shape of what a resource or variant holds.
  const PartialShape& held(Endpoint e) const;
  // What InferShapes takes as `arg_shapes` where the endpoint is passed to a function: held() of a
  // resource, of() of every other tensor.
  const PartialShape& AsArgument(Endpoint e) const;
  void Set(const Node* node, int port, PartialShape shape);
  void SetHeld(const Node* node, int port, PartialShape shape);
  // Keeps of each shape what `other` says too. REQUIRES: both are of the same graph.
  void KeepCommon(const ShapeTable& other);

 private:
  using Shapes = absl::flat_hash_map<std::pair<int, int>, PartialShape>;
  static const PartialShape& Find(const Shapes& shapes, Endpoint e);
  std::vector<PartialShape> firsts_;  // of the outputs 0, by node id
  Shapes others_, held_;
};

// What a rule sees of one node.
class ShapeContext {
 public:
  virtual ~ShapeContext() = default;
  virtual const Node& node() const = 0;
  virtual int num_inputs() const = 0;
  virtual const PartialShape& input(int i) const = 0;
  // The input's value when it is a small constant that is known, else nullptr.
  virtual const Tensor* constant(int i) const = 0;
  // The values of an integer vector input (a shape, sizes, axes) as the sizes of a shape: -1 where
  // an element is unknown, unknown rank where the length is.
  virtual PartialShape constant_as_shape(int i) const = 0;
  // The shape of what a resource or variant input holds: a variable's value, a list's elements.
  virtual const PartialShape& held(int i) const = 0;
  virtual void set_output(int i, PartialShape shape) = 0;
  virtual void set_held(int i, PartialShape shape) = 0;
};

struct ShapeRule {
  OpName op;
  // INVALID_ARGUMENT when the inputs cannot be right whatever the unknown sizes turn out to be; the
  // text is TensorFlow's. Inputs are as many as the op's definition says, outputs that are not set
  // are unknown.
  Status (*infer)(ShapeContext& ctx);
};

// The tables of families.inc.
std::span<const std::span<const ShapeRule>> AllShapeFamilies();
// The op's own rule, else that of its first version (op_facts.h); nullptr when neither has one.
const ShapeRule* FindShapeRule(OpName op);

// Rules of ops whose attributes only a higher floor can read (analysis/xla_shapes.h); they come
// before the tables of families.inc.
using MoreShapeRules = std::span<const ShapeRule>;

// Shapes of every output of the graph. `arg_shapes` are those of _Arg nodes by index (missing:
// unknown, or the node's own _output_shapes attribute); of a resource what it holds.
// INVALID_ARGUMENT names the first node whose inputs contradict each other. Contradictions in
// branches and loop bodies are no error: these may never run.
StatusOr<ShapeTable> InferShapes(const Graph& graph, MoreShapeRules more,
                                 std::span<const PartialShape> arg_shapes = {});

// What a node makes of constants, by output; empty: that is not known. It is asked of nodes of the
// graph itself whose inputs are constants of few elements and whose results, as far as their shapes
// are known, have few as well.
using ConstantRunner =
    absl::FunctionRef<std::vector<Tensor>(const Node& node, std::vector<Tensor> inputs)>;
// The same, with shapes that follow from what is computed of constants in any type.
StatusOr<ShapeTable> InferShapes(const Graph& graph, MoreShapeRules more,
                                 std::span<const PartialShape> arg_shapes,
                                 ConstantRunner run_constants);

// The same with symbols, and without errors: outputs of a node whose inputs contradict each other
// are unknown. What flows over the back edges of version 1 loops is unknown.
ShapeTable InferSymbolicShapes(const Graph& graph, MoreShapeRules more);
// The same for who does not trust what requests feed: nothing is known of the outputs of nodes for
// which `from_outside` is true, whatever they say of themselves. Without `into_functions` calls,
// branches and loops have the shapes that they state: the walk costs as much as the graph is large.
ShapeTable InferSymbolicShapesBeside(const Graph& graph, MoreShapeRules more,
                                     absl::FunctionRef<bool(const Node&)> from_outside,
                                     bool into_functions = true);

// Shapes of a graph and of all functions of its library.
struct ModelShapes {
  ShapeTable graph;
  // By function name: what holds for every call that the graph reaches. A function that it does not
  // reach counts as called with the shapes of its _input_shapes attribute.
  absl::flat_hash_map<std::string, ShapeTable> functions;
};

// The same for the graph and the functions that it reaches alone; fails as InferShapes does.
StatusOr<ModelShapes> InferCalledShapes(const Graph& graph, MoreShapeRules more,
                                        std::span<const PartialShape> arg_shapes);

// Never fails: the outputs of a node whose inputs contradict each other are unknown.
ModelShapes InferModelShapes(const Graph& graph, MoreShapeRules more,
                             std::span<const PartialShape> arg_shapes = {});

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_INFER_H_
