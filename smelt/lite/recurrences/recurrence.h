// Loops over lists, for a file. Those that are scans (_Scan in own_ops.txt) run over arrays in
// place of lists; one that computes an LSTM or a simple cell is its operator, whatever wrote it.
#ifndef SMELT_LITE_RECURRENCES_RECURRENCE_H_
#define SMELT_LITE_RECURRENCES_RECURRENCE_H_

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/optimize/passes.h"

namespace smelt {

// Rewrites what loops of the graph are scans: all of them, or none where one of them cannot be a
// loop over arrays. `context`: of the passes that ran before. `off`: names of fusions that are not
// wanted ("FuseLstm", "FuseRnn"). Errors are those of passes.
Status TakeLoops(std::unique_ptr<Graph>& graph, const PassContext& context,
                 const std::set<std::string, std::less<>>& off, std::vector<FusionNote>* notes);

// ---- what the files of this folder share

// The parts of a _Scan node and of its body.
struct Scan {
  Node* node = nullptr;
  std::unique_ptr<Graph>* body = nullptr;
  int states = 0, rows = 0, arrays = 0, rest = 0;
  std::vector<Node*> args;     // of the body: states, rows, rest
  std::vector<Node*> results;  // states, arrays, and whether it goes on
  std::vector<bool> last;      // by array

  bool until() const { return node->Bool("until"); }
  Endpoint steps() const { return node->input(0); }
  Endpoint state(int i) const { return node->input(1 + i); }
  Endpoint row(int i) const { return node->input(1 + states + i); }
  Endpoint length(int i) const { return node->input(1 + states + rows + i); }
  Endpoint rest_of(int i) const { return node->input(1 + states + rows + arrays + i); }
};

// A node of the graph under a free name, its types inferred.
StatusOr<Endpoint> AddOp(Graph& graph, absl::string_view name, absl::string_view op,
                         std::initializer_list<Endpoint> inputs, AttrMap attrs = {});

// Replaces the node by an LSTM; false, and `why` says why, where the body computes something else.
// REQUIRES: shapes are those of `graph`.
StatusOr<bool> TakeLstm(Graph& graph, const Scan& scan, const ShapeTable& shapes, std::string* why);
// The same of a cell that is one sum and its activation.
StatusOr<bool> TakeRnn(Graph& graph, const Scan& scan, const ShapeTable& shapes, std::string* why);
// Replaces the node by a While, whose functions join the graph's library; false, and `why` says
// why, where the shapes of what it gives are not known before it runs. The body is gone then.
StatusOr<bool> TakeWhile(Graph& graph, const Scan& scan, std::string* why);

}  // namespace smelt

#endif  // SMELT_LITE_RECURRENCES_RECURRENCE_H_
