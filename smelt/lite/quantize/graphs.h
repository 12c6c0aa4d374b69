// The graphs of operators that a signature becomes: its own, and those of the functions that its
// control flow calls.
#ifndef SMELT_LITE_QUANTIZE_GRAPHS_H_
#define SMELT_LITE_QUANTIZE_GRAPHS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "smelt/graph/graph.h"

namespace smelt {

// The body or the condition of a loop, or a branch.
struct LiteBody {
  std::string function;
  std::unique_ptr<Graph> graph;  // callable (optimize/passes.h)
};

struct LiteGraphs {
  std::unique_ptr<Graph> main;
  std::vector<LiteBody> bodies;  // each function once

  std::vector<Graph*> All() const;  // `main` first
  StatusOr<LiteGraphs> Clone() const;
};

// `main`, and what it and its callees call of its library's functions. `convert` makes operators of
// each; what it leaves of calls is followed.
StatusOr<LiteGraphs> CollectGraphs(std::unique_ptr<Graph> main,
                                   const std::function<Status(Graph&)>& convert);

// Each "tfl.while" whose condition and body are among the bodies, and the graph that it is in.
using LoopVisitor = absl::FunctionRef<Status(Graph& of, Node* loop, Graph& cond, Graph& body)>;
Status VisitLoops(const LiteGraphs& graphs, LoopVisitor visit);

// LiteRT's WHILE fails on a state that begins without elements, as AutoGraph has it for what is
// first assigned in a loop (which it asserts to turn once). Where nothing reads how the state
// begins, it begins with one element.
Status FillEmptyStates(const LiteGraphs& graphs);

// A library of the model's own ops, for AddLowered.
std::shared_ptr<FunctionLibrary> LibraryFor(const LiteGraphs& graphs);
// The bodies, lowered (lower/lowering.h), under their names with `ending` behind, so that they can
// be called. `change`: of each copy before it is lowered. UNIMPLEMENTED for a body with numbers
// that are kept between runs, errors of lowering; the message names the function.
using BodyChange = std::function<Status(const LiteBody& from, Graph& copy)>;
Status AddLowered(const LiteGraphs& graphs, absl::string_view ending,
                  const std::shared_ptr<FunctionLibrary>& library, const BodyChange& change = {});
// The graph calls functions with `ending` behind their names.
void RenameCallees(Graph& graph, absl::string_view ending);

// Where each node of `from` has its copy in `copy`, by name: what Clone made of it.
absl::flat_hash_map<const Node*, const Node*> Twins(const LiteGraphs& from, const LiteGraphs& copy);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_GRAPHS_H_
