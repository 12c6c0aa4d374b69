// What is true of an op wherever it stands: one table for every pass, analysis and stage.
//
// Facts are sets of ops (op_name.h), so that asking reads one bit. Sets need not be complete: a
// caller must be correct when an op that has the property is not in the set. Immutable; any thread.
#ifndef SMELT_GRAPH_OP_FACTS_H_
#define SMELT_GRAPH_OP_FACTS_H_

#include "smelt/graph/graph.h"

namespace smelt {

// Output i has the value and shape of input i. Other effects, such as stopping a gradient, are of
// no interest to callers.
extern const OpSet kIdentityOps;
// The elements of the result are elements of the input (of all values of Pack, Concat, ...) in
// another place or repeated, or padding; nothing is computed.
extern const OpSet kMovesValues;
// Every element of the result is computed from the inputs' elements at its place alone, under
// numpy's broadcasting.
extern const OpSet kElementwiseOps;
// Elementwise, and the first two inputs may change places.
extern const OpSet kCommutativeOps;
// f(f(x)) = x, in exact arithmetic.
extern const OpSet kInvolutions;
// Results are shapes of the inputs, or parts of them.
extern const OpSet kReadsShapes;
// Stateful by definition, but only reads state or names it: nothing changes when it runs.
extern const OpSet kReadsState;
// Reads the resource variable whose handle is the first input, and leaves it as it is.
extern const OpSet kReadsVariable;
// Draws random numbers from a generator that the node itself seeds, or the process: each run gives
// others, and so does another implementation.
extern const OpSet kDrawsNumbers;
// Control flow of version 1, which the executor runs itself.
extern const OpSet kControlFlow;
// Nodes of TPUReplicate's bookkeeping, which hold a cluster together; they are never compiled.
extern const OpSet kBridgeOps;
// Arguments, results, constants and order: what a compiler for accelerators needs no kernel for.
extern const OpSet kStructuralOps;
// Never run by constant folding, even with constant inputs: they stand for values that only a run
// has, choose what runs, call functions, or wait for other steps.
extern const OpSet kNeverFolded;

// The op that computes the same under its first name: QueueSize for QueueSizeV2, UniqueDataset for
// ExperimentalUniqueDataset, Reciprocal for Inv. Kernels and shape rules are written for that one
// and serve every version; versions may differ in the inputs and attributes that the kernel looks
// at. The op itself where it is the first, or no kernel serves its versions alike.
OpName FirstVersion(OpName op);
absl::string_view FirstVersion(absl::string_view op);

// The attribute that is the type of the first output ("T"); empty where that is fixed, or one of a
// list.
absl::string_view ResultTypeAttr(OpName op);

// Does the node take references? It may then change what they refer to, though its definition calls
// it stateless.
bool TakesReference(const Node& n);
// May the node change anything but its outputs? Unknown ops may.
bool HasEffect(const Node& n);
// May another node that computes the same of the same inputs take its place? As TensorFlow's
// optimizers judge (grappler/op_types.cc): not where there is state, a reference, a queue, or a
// write into an input.
bool IsFreeOfSideEffect(const Node& n);
// Writes into the memory of its first input.
extern const OpSet kWritesInPlace;
// Follows identities (kIdentityOps) to what they pass on.
Endpoint BehindIdentities(Endpoint e);

}  // namespace smelt

#endif  // SMELT_GRAPH_OP_FACTS_H_
