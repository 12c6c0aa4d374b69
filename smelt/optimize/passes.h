// Graph passes: each one function over one graph, in its own file; pipeline.cc lists them in order
// and pipeline.h runs them.
//
// The graphs they see are callable graphs: arguments are _Arg nodes, results are _Retval nodes, and
// what must run for its effect has the attribute "_root" (see AddRoot). A pass keeps every value
// that a _Retval reads and every effect; it may be run again at any time. Not thread safe on one
// graph.
#ifndef SMELT_OPTIMIZE_PASSES_H_
#define SMELT_OPTIMIZE_PASSES_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// Nodes that must stay: _Retval and root nodes.
std::vector<Node*> Roots(const Graph& graph);
// Makes `node` run whenever the graph runs.
void AddRoot(Node* node);
bool IsRoot(const Node& node);

struct PassContext {
  // The value of a variable that may be taken for constant, given its VarHandleOp, its ref variable
  // node or the _Arg that brings its handle; empty when it may not.
  std::function<std::optional<Tensor>(const Node& variable)> frozen_value;
  // Calls of these functions are left as they are.
  std::function<bool(const Function& function)> keep_call;
  // The kind of device that the graph is for.
  absl::string_view device_type = "CPU";
  // Results larger than this are not folded. TensorFlow's own default.
  int64_t max_folded_bytes = 10 << 20;
};

// XlaCallModule becomes a call of what its module was lowered to (stablehlo/call_module.h). The
// error of a module that could not be is met here.
Status CallModules(Graph& graph, const PassContext& context);
// Calls of functions become their bodies (PartitionedCall, StatefulPartitionedCall, and functions
// used as ops), except recursive ones. Node names become CALL/NAME. Of functions that stand for
// each other the one for the device is taken (implementations.h).
Status InlineFunctions(Graph& graph, const PassContext& context);
// Reads of variables that nobody writes become constants.
Status FreezeVariables(Graph& graph, const PassContext& context);
// What an Identity made of a ref variable shares the variable's memory in TensorFlow: where the
// graph writes variables by reference, readers of such an Identity read the variable, when they
// run.
Status LateReads(Graph& graph, const PassContext& context);
// LateReads for some variables: each reader of an Identity of a reference that a node comes from of
// which `wanted` is true reads that reference itself, and waits for the Identity.
void ReadLate(Graph& graph, absl::FunctionRef<bool(const Node&)> wanted);
// Nodes without effect whose inputs are constants become constants.
Status FoldConstants(Graph& graph, const PassContext& context);
// Identities go, control edges to nodes without effect go, unreachable nodes go.
Status RemoveIdentities(Graph& graph, const PassContext& context);
// Conv2D, DepthwiseConv2dNative and MatMul take in the bias, normalisation, residual and activation
// that follow them.
Status Remap(Graph& graph, const PassContext& context);

// Layers of int8 numbers, as smelt convert writes them (docs/quantization.md), become one node
// each: the product with its bias, scale, residual, activation and way back to int8; and the
// borders.
Status FuseQuantized(Graph& graph, const PassContext& context);

// What is computed in bfloat16 is computed in float, from weights that are made float once; values
// pass in bfloat16 only where another kind of node wants them.
Status WidenBfloat16(Graph& graph, const PassContext& context);
// WidenBfloat16 where the processor does not multiply bfloat16, else WidenSmallBfloat16.
Status WidenWhereSlow(Graph& graph, const PassContext& context);
// In what runs on a TPU alone (a plain model that says bfloat16 means TensorFlow's roundings), the
// same for parts whose products are too small for bfloat16 to win what its casts and calls cost:
// less than 32,768 multiply-adds a row on average, as far as their weights are known, unless
// widening would take two casts or more for each product.
Status WidenSmallBfloat16(Graph& graph, const PassContext& context);

// The body of `function` as a callable graph, with attribute placeholders filled from `attrs`.
StatusOr<std::unique_ptr<Graph>> Instantiate(const Function& function, const AttrMap* attrs);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PASSES_H_
