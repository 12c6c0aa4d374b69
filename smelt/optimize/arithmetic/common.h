// What rules of several themes ask of nodes.
#ifndef SMELT_OPTIMIZE_ARITHMETIC_COMMON_H_
#define SMELT_OPTIMIZE_ARITHMETIC_COMMON_H_

#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::arithmetic {

// The node behind an input if it is one of `ops` and its value is what the op computes: what a
// request feeds is not. nullptr otherwise.
Node* Producer(Endpoint e, const OpSet& ops);
inline Node* Producer(Endpoint e, OpName op) { return Producer(e, OpSet({op})); }

// May the shape that is known of the endpoint be written into the graph? What a request gives may
// have another than its placeholder says, unless feeds are taken at their word (AGGRESSIVE).
bool TrustsShape(Endpoint e, const Rewriter& r);

// Follows first inputs from the node's own on, as long as these are of `ops`, read by one reader
// and no roots. Returns the last node passed, which is `node` where none is.
Node* TailOfChain(Node& node, const OpSet& ops);

// What only passes its first input on, whatever it is there for.
extern const OpSet kPassesOn;

// May `node` do without the input, whatever it gives? Not where it may never come: a node without
// it would run where it did not. What a constant waited for, the node waits for from now on, unless
// `kept`, which its readers read instead, comes after it anyway.
StatusOr<bool> MayDrop(Node& node, Endpoint input, Endpoint kept, Rewriter& r);

// A constant that readers of `beside` may read wherever they are: in a loop's frame, a branch.
StatusOr<Node*> AddConstBeside(absl::string_view name, const Tensor& value, const Node& like,
                               Endpoint beside, Rewriter& r);

}  // namespace smelt::arithmetic

#endif  // SMELT_OPTIMIZE_ARITHMETIC_COMMON_H_
