#include "absl/container/flat_hash_map.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/readers.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

bool IsRefVariable(const Node& n) { return n.Is("VariableV2") || n.Is("Variable"); }

// Ops that read a resource variable and leave it as it is. Whoever is handed it (a loop's next
// iteration) and writes it makes this graph's executable stale.
bool OnlyReads(const Node& n) {
  return n.Is("_Retval") || n.Is("ReadVariableOp") || n.Is("ResourceGather") ||
         n.Is("ResourceGatherNd") || n.Is("VariableShape") || n.Is("VarIsInitializedOp");
}

// Decides which variables nobody in the graph writes. A handle that goes anywhere but into a plain
// read (a loop, a branch, a kept call) counts as written unless those functions only read it too.
class Writers {
 public:
  explicit Writers(const Graph& graph) : fanout_(graph), graph_(graph) {}

  bool Written(const Node* variable) { return WrittenThrough(graph_, fanout_, variable, 0, 0); }

 private:
  bool WrittenThrough(const Graph& graph, const Fanout& fanout, const Node* n, int port,
                      int depth) {
    if (depth > 16) return true;
    for (const Fanout::Edge& edge : fanout.of(n)) {
      if (edge.input < 0 || edge.reader->inputs[edge.input].port != port) continue;
      const Node* reader = edge.reader;
      if (OnlyReads(*reader)) continue;
      if (reader->Is("Identity")) {
        if (WrittenThrough(graph, fanout, reader, 0, depth + 1)) return true;
        continue;
      }
      const bool loop = IsLoop(*reader);
      const bool call = IsPartitionedCall(*reader);
      const bool branch = IsBranch(*reader);
      if (!loop && !call && !branch) return true;
      bool written = false;
      ForEachFunc(reader->attrs(), [&](const FuncAttr& f) {
        written = written || ArgWritten(graph, f.name, edge.input - (branch ? 1 : 0), depth + 1);
      });
      // A loop hands the handle on as its own output too.
      if (written || (loop && WrittenThrough(graph, fanout, reader, edge.input, depth + 1))) {
        return true;
      }
    }
    return false;
  }

  bool ArgWritten(const Graph& graph, const std::string& name, int arg, int depth) {
    const Function* f = graph.library()->Find(name);
    if (f == nullptr || f->body == nullptr || arg < 0) return true;
    auto [it, added] = functions_.try_emplace(f);
    if (added) it->second = std::make_unique<Fanout>(*f->body);
    const Fanout& fanout = *it->second;
    int index = 0;
    for (const Node* a : f->args) {
      if (arg < index + a->num_outputs()) {
        return WrittenThrough(*f->body, fanout, a, arg - index, depth);
      }
      index += a->num_outputs();
    }
    return true;
  }

  Fanout fanout_;
  const Graph& graph_;
  absl::flat_hash_map<const Function*, std::unique_ptr<Fanout>> functions_;
};

// The variable node behind a handle, through identities.
Node* HandleSource(Endpoint e) {
  while (e.node->Is("Identity")) e = e.node->inputs[0];
  return e.node;
}

// A handle that the graph makes, or is given as an argument.
bool IsHandleSource(const Node& n) {
  return n.Is("VarHandleOp") || (n.Is("_Arg") && n.output_types[0] == Dtype::kResource);
}

// All readers of a ref variable want its value (Identity, Add, ...), none the reference itself.
bool OnlyValueReaders(const Fanout& fanout, const Node* variable) {
  for (const Fanout::Edge& edge : fanout.of(variable)) {
    if (edge.input < 0) continue;
    if (IsRef(edge.reader->input_types[edge.input]) || edge.reader->def() == nullptr) return false;
  }
  return true;
}

}  // namespace

Status FreezeVariables(Graph& graph, const PassContext& context) {
  if (!context.frozen_value) return OkStatus();
  Writers writers(graph);
  Fanout fanout(graph);
  Readers readers(graph);
  absl::flat_hash_map<const Node*, Node*> constant_of;  // by variable; nullptr: not frozen
  auto constant = [&](Node* variable) -> Node* {
    auto [it, added] = constant_of.try_emplace(variable, nullptr);
    if (!added) return it->second;
    const bool free =
        IsRefVariable(*variable) ? OnlyValueReaders(fanout, variable) : !writers.Written(variable);
    if (!free) return nullptr;
    std::optional<Tensor> value = context.frozen_value(*variable);
    if (!value) return nullptr;
    it->second = graph.AddConst(variable->name() + "/frozen", *value);
    return it->second;
  };
  for (Node* n : graph.Nodes()) {
    if (n->Is("ReadVariableOp")) {
      Node* variable = HandleSource(n->inputs[0]);
      if (!IsHandleSource(*variable)) continue;
      Node* c = constant(variable);
      if (c == nullptr || c->output_types[0] != n->output_types[0]) continue;
      readers.ReplaceAll({n, 0}, {c, 0});
      readers.ReplaceControl(n, nullptr);
      graph.Remove(n);
    } else if (IsRefVariable(*n)) {
      Node* c = constant(n);
      if (c == nullptr) continue;
      readers.ReplaceAll({n, 0}, {c, 0});
      readers.ReplaceControl(n, nullptr);
      graph.Remove(n);
    }
  }
  return OkStatus();
}

}  // namespace smelt
