// Graph passes: each one function over one graph, in its own file; pipeline.cc lists them in order
// and pipeline.h runs them.
//
// Two kinds of graphs are optimized. In a callable graph, which is about to be run, arguments are
// _Arg nodes and results are _Retval nodes. A GraphItem's graph (graph_item.h) is the user's own:
// requests feed and fetch its nodes by name. In both, a node that has the attribute "_root" stays
// under its name, for its effect or for who asks for it (AddRoot), and one that has "_fed" gets its
// value from outside, whatever its op says. A pass keeps every value that a root or a _Retval gives
// and every effect; it may be run again at any time. Not thread safe on one graph.
#ifndef SMELT_OPTIMIZE_PASSES_H_
#define SMELT_OPTIMIZE_PASSES_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "smelt/graph/device_properties.h"
#include "smelt/graph/graph.h"
#include "smelt/graph/rewriter_config.h"
#include "smelt/optimize/inline_plan.h"
#include "smelt/optimize/rewrite_log.h"
#include "smelt/wire/graph_def/graph_versions.h"

namespace smelt {

struct GraphItem;
struct KeptShapes;

// Nodes that must stay: _Retval and root nodes.
std::vector<Node*> Roots(const Graph& graph);
// Makes `node` run whenever the graph runs, and stay under its name.
void AddRoot(Node* node);
bool IsRoot(const Node& node);
// The node's value comes from outside; it is a root as well.
void MarkFed(Node* node);
bool IsFed(const Node& node);
// A node to wait for in place of reading `e`: e's own, but for an output of a Switch an Identity of
// it, as who waits for a Switch does so whichever way it went. Makes that Identity where there is
// none.
StatusOr<Node*> WaitableNode(Graph& graph, Endpoint e);
// Makes `node` wait for `before`, unless they are one, or it reads what `before` gives.
void AddWait(Graph& graph, Node* node, Node* before);
// Replaces the node's attributes but for its marks.
void SetAttrsButMarks(Node* node, AttrMap attrs);
// Takes both marks from all nodes.
void ClearMarks(Graph& graph);
// Nodes whose colocation ("_class", "loc:@NAME") names a node that is gone are colocated with one
// of them.
void ReassignColocation(Graph& graph);

struct PassContext {
  // The value of a variable that may be taken for constant, given its VarHandleOp, its ref variable
  // node or the _Arg that brings its handle; empty when it may not. No function: nothing is frozen.
  std::function<std::optional<Tensor>(const Node& variable)> frozen_value;
  // Calls of functions for which this is true are left as they are, and so are nodes that are no
  // calls but name functions (loops, branches). No function: none is.
  std::function<bool(const Function& function)> keep_call;
  // The kind of device that the graph is for; empty: not known, and of functions that stand for
  // each other the named one is taken.
  absl::string_view device_type = "CPU";
  // Results larger than this, and than what they are made of, are not folded.
  int64_t max_folded_bytes = 10 << 20;
  // false: nobody said what is fetched, so that no node may go.
  bool fetch_known = true;
  // false where a gradient may still be taken of the graph.
  bool allow_non_differentiable_rewrites = true;
  // true: the graph is the body of a function, whose results _Retval nodes read: its roots are
  // there for what they do, not for what they give.
  bool is_body = false;
  // false: what compiles the graph wants If, Case and While as they are.
  bool lower_control_flow = true;
  // The graph, where names of new functions tell graphs apart.
  absl::string_view item_id;
  // true: this program runs the result, and knows ops that TensorFlow does not.
  bool for_execution = true;
  RewriterConfig config;
  // Who asks for what of a user's graph; nullptr: the graph is the body of a function, or is
  // about to be run.
  const GraphItem* item = nullptr;
  // Names of nodes that others ask for, where not every root is one: what a body holds for its
  // state alone has no name that matters. nullptr: every root is.
  const absl::flat_hash_set<std::string>* asked_for = nullptr;
  // The machines that the graph is for; empty: not known, and passes for a kind of device do
  // nothing.
  std::span<const DeviceProperties> devices;
  // The passes end with DEADLINE_EXCEEDED when they find that it is over.
  absl::Time deadline = absl::InfiniteFuture();
  // What is asked for: "node:port", "node" or "^node"; of a body its _Retval nodes. Empty: not
  // known, or roots alone tell.
  std::span<const std::string> fetches;
  // Which programs may read the graph.
  GraphVersions versions;
  // The nodes that inlining may add to a user's graph.
  int64_t inlinable_nodes = kMaxInlinedNodes;
  // Where passes leave shapes for each other; nullptr: each infers its own.
  KeptShapes* shapes = nullptr;
  // The bodies of the graph's _Scan nodes, by number, for who runs the graph; nullptr: who runs it
  // knows no scans, and none is made.
  std::vector<std::unique_ptr<Graph>>* scan_bodies = nullptr;
  // What rules did; nullptr: nobody asks.
  RewriteLog* log = nullptr;

  // What RewriteLog records, where somebody asks; Declined is false, for callers to return.
  void Fired(absl::string_view rule, const Node& node, absl::string_view by = "") const {
    if (log != nullptr) log->Fired(rule, node, by);
  }
  bool Declined(absl::string_view rule, const Node& node, absl::string_view why) const {
    if (log != nullptr) log->Declined(rule, node, why);
    return false;
  }
};

// Nodes that no root needs go, and those that only pass their input on (TensorFlow's model_pruner).
Status PruneModel(Graph& graph, const PassContext& context);
// Constants of which at least half can be left out state fewer values: the last one stands for
// those behind it.
Status CompressConstants(Graph& graph, const PassContext& context);
// Calls of functions that stand for each other take the one for the device of the call, and a Case
// over devices its branch (TensorFlow's implementation_selector).
Status SelectImplementationsByDevice(Graph& graph, const PassContext& context);
// Of nodes that compute the same of the same inputs one stays. Inputs of commutative ops are put in
// the order of their names.
Status EliminateCommonSubgraphs(Graph& graph, const PassContext& context);
// Assert and PrintV2 become NoOp, CheckNumerics and Print Identity.
Status StripDebugOps(Graph& graph, const PassContext& context);

// The product of a shape becomes the number of elements, and the ratio of two such numbers a
// constant where it is known.
Status OptimizeShapes(Graph& graph, const PassContext& context);
// Small integers and strings on other devices are computed on their hosts.
Status PinToHost(Graph& graph, const PassContext& context);
// What shapes and constants tell is computed before it runs, and what they make simpler is made so
// (constant/): TensorFlow's constant_folding.
Status OptimizeConstants(Graph& graph, const PassContext& context);

// What profits from narrow numbers is computed in half (on a GPU or a CPU) or bfloat16 (on a CPU),
// or rounded to half as a GPU would have it (precision/): TensorFlow's auto_mixed_precision.
Status MixHalfOnGpu(Graph& graph, const PassContext& context);
Status MixHalfOnCpu(Graph& graph, const PassContext& context);
Status MixBfloat16(Graph& graph, const PassContext& context);
Status EmulateHalf(Graph& graph, const PassContext& context);

// Nodes that compute numbers, or move them, in more steps than needed (arithmetic/).
Status OptimizeArithmetic(Graph& graph, const PassContext& context);

// Images and volumes are computed in the format that the devices are fastest with, channels last or
// second, and transposed where that begins and ends (layout/). Nothing changes where no device
// asks for it, or where it is not known what is fetched.
Status OptimizeLayout(Graph& graph, const PassContext& context);

// Nodes that follow each other become one op that computes all (remap/). In sessions a convolution
// or product takes in all that follows it, by constant weights that hold its factors.
Status RemapGraph(Graph& graph, const PassContext& context);
// A step of training becomes several, each with a batch of its own, that share variables
// (TensorFlow's auto_parallel).
Status ParallelizeSteps(Graph& graph, const PassContext& context);
// Ops of one kind, collectives above all, whose inputs can stand side by side in one buffer become
// one op (scoped/): TensorFlow's scoped_allocator_optimizer.
Status ShareBuffers(Graph& graph, const PassContext& context);
// Pushes onto stacks that nobody pops from go, and branches that never run (loop/).
Status OptimizeLoops(Graph& graph, const PassContext& context);
// If and Case take no operand that no branch needs, and in the body of a function what one branch
// alone needs moves into it (branches/): their functions get copies for that.
Status SinkIntoBranches(Graph& graph, const PassContext& context);
// Values that take memory for long are computed again or wait in the host's memory, and long sums
// do not wait for all (memory/). Most of it needs to know the devices and what is fetched.
Status OptimizeMemory(Graph& graph, const PassContext& context);
// Control edges that others make superfluous go, and nodes that only keep an order which stays
// without them.
Status OptimizeDependencies(Graph& graph, const PassContext& context);

// Nodes whose attribute "_output_shapes" contradicts what shape inference finds lose it.
void DropWrongOutputShapes(Graph& graph);

// XlaCallModule becomes a call of what its module was lowered to (stablehlo/call_module.h). A
// module that could not be lowered gives its error here.
Status CallModules(Graph& graph, const PassContext& context);
// SymbolicGradient, which no kernel computes, becomes the body of the gradient that it asks for.
Status OpenGradients(Graph& graph, const PassContext& context);
// Calls of functions become their bodies, except where functions call themselves or grow too large
// (inline_plan.h). For a session all do, with the function for the device of those that stand for
// each other (implementations.h). In a user's graph those where that loses nothing; there If, Case
// and While that ask for it (_lower_using_switch_merge) become Switch and Merge, and calls that
// stay get functions of their own (functions/): TensorFlow's function_optimizer. Names of nodes
// become CALL/NAME.
Status OptimizeFunctions(Graph& graph, const PassContext& context);
// Loops that are scans become one node each (scan/); what they compute of the rows of arrays alone
// runs before them, for all rows at once. Loops of version 1 do where nothing else of the graph is
// control flow of version 1. Nothing changes without PassContext::scan_bodies.
Status ScanLoops(Graph& graph, const PassContext& context);
// Why a loop is no scan: of a While, or of the LoopCond or another node of a loop of version 1.
inline constexpr absl::string_view kNoScan = "_no_scan";
// Reads of variables that nobody writes become constants.
Status FreezeVariables(Graph& graph, const PassContext& context);
// In TensorFlow an Identity of a ref variable shares the variable's memory, so that its readers see
// what is written after the Identity ran. In graphs that write by reference such readers read the
// variable itself, at the time when they run, and wait for the Identity.
Status LateReads(Graph& graph, const PassContext& context);
// LateReads for the Identities that read a reference of a node for which `wanted` is true, whether
// or not the graph writes by reference. A Merge goes on reading the Identity.
void ReadLate(Graph& graph, absl::FunctionRef<bool(const Node&)> wanted);
// Layers of int8 numbers, as smelt convert writes them (docs/quantization.md), become one node
// each: the product with its bias, scale, residual, activation and way back to int8. So do the
// steps from float to int8 and back between them (graph/ops/own_ops.txt defines the ops).
Status FuseQuantized(Graph& graph, const PassContext& context);
// The steps from float to int8 alone.
Status FuseQuantizing(Graph& graph, const PassContext& context);
// What computes a number of 8 bits from one other, in whatever steps, becomes a table of all its
// values (_ByteTable).
Status MakeByteTables(Graph& graph, const PassContext& context);
// Pixels that only windows of one pixel with strides could read, and leave out, are not computed:
// the strides move up to the convolutions before, past what is elementwise (early_strides.cc).
Status MoveStridesUp(Graph& graph, const PassContext& context);

// What is computed in bfloat16 is computed in float, from weights that are made float once. Nodes
// of ops that have no row in widen_bfloat16.cc still get their inputs in bfloat16. In graphs for a
// TPU values are rounded to bfloat16 where they would be stored (docs/bfloat16.md).
Status WidenBfloat16(Graph& graph, const PassContext& context);
// WidenBfloat16 where the processor does not multiply bfloat16.
Status WidenWhereSlow(Graph& graph, const PassContext& context);

// The body of `function` as a callable graph, with attribute placeholders filled from `attrs`
// (nullptr: they stay). INVALID_ARGUMENT names one that is not given.
StatusOr<std::unique_ptr<Graph>> Instantiate(const Function& function, const AttrMap* attrs);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PASSES_H_
