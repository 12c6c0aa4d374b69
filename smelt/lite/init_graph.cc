#include "smelt/lite/init_graph.h"

#include <map>

#include "smelt/kernels/state/tables.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/variables.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// What has to do with state, or calls functions that may have.
constexpr OpSet kStateful = {"tfl.var_handle", "tfl.hashtable", "tfl.if", "tfl.while"};

StatusOr<Node*> AddOperator(Graph& graph, OpName op, std::vector<Endpoint> inputs, AttrMap attrs,
                            DtypeVector out) {
  DtypeVector in;
  for (const Endpoint& e : inputs) in.push_back(e.node->output_types[0]);
  attrs.Set("Tin", in);
  attrs.Set("Tout", out);
  // Handles are vectors of one.
  attrs.Set(kOutputShapes, std::vector<PartialShape>(out.size(), PartialShape::Of({1})));
  return graph.Add(op.text().substr(4), op.text(), inputs, std::move(attrs));
}

// `handle` is of one of the exported graphs.
StatusOr<Node*> CopyHandle(Graph& graph, const Node& handle) {
  AttrMap attrs = handle.attrs();
  attrs.Erase("Tin");
  return AddOperator(graph, handle.op_name(), {}, std::move(attrs), {Dtype::kResource});
}

Status Fill(Graph& graph, const Node& handle, OpName op, std::vector<Tensor> values) {
  ASSIGN_OR_RETURN(Node * to, CopyHandle(graph, handle));
  std::vector<Endpoint> inputs = {{to, 0}};
  for (const Tensor& value : values) inputs.push_back({graph.AddConst("value", value), 0});
  return AddOperator(graph, op, inputs, {}, {}).status();
}

}  // namespace

StatusOr<std::unique_ptr<Graph>> InitGraph(const ResourceManager& resources,
                                           const std::vector<Graph*>& graphs) {
  auto init = std::make_unique<Graph>(std::make_shared<FunctionLibrary>());
  std::map<std::pair<std::string, std::string>, int64_t> tables, variables;
  for (Graph* graph : graphs) {
    for (Node* n : graph->Nodes()) {
      if (n->Is("tfl.var_handle")) {
        const std::pair at(n->String("container"), n->String("shared_name"));
        if (!variables.try_emplace(at, 0).second) continue;
        const auto variable = std::dynamic_pointer_cast<Variable>(
            resources.Find(at.first, Variable::kKind, at.second));
        const Tensor value = variable == nullptr ? Tensor() : variable->Read();
        // One that a signature writes before it reads it needs no value.
        if (!value.valid()) continue;
        ASSIGN_OR_RETURN(const Tensor begin, VariableBegin(*n, value));
        RETURN_IF_ERROR(Fill(*init, *n, "tfl.assign_variable", {begin}));
      } else if (n->Is("tfl.hashtable")) {
        const std::pair at(n->String(std::string(kTableContainer)),
                           n->String(std::string(kTableName)));
        const auto [known, added] = tables.try_emplace(at, tables.size() + 1);
        n->AttrsToChange().Set("table_id", known->second);
        if (!added) continue;
        const auto table = std::dynamic_pointer_cast<LookupTable>(
            resources.Find(at.first, LookupTable::kKind, at.second));
        if (table == nullptr) return Internal("table '", at.second, "' is gone");
        ASSIGN_OR_RETURN(auto entries, table->Export(HeapAllocator()));
        RETURN_IF_ERROR(Fill(*init, *n, "tfl.hashtable_import", {entries.first, entries.second}));
      }
    }
  }
  if (init->num_nodes() == 0) return std::unique_ptr<Graph>();
  return init;
}

Status CallInitFirst(Graph& graph) {
  std::vector<Node*> behind;
  for (Node* n : graph.Nodes()) {
    if (n->Is(kStateful)) behind.push_back(n);
  }
  if (behind.empty()) return OkStatus();
  AttrMap attrs;
  attrs.Set("init", FuncAttr{std::string(kInitSubgraph), nullptr});
  ASSIGN_OR_RETURN(Node * call, AddOperator(graph, "tfl.call_once", {}, std::move(attrs), {}));
  for (Node* n : behind) graph.AddControlInput(n, call);
  return OkStatus();
}

}  // namespace smelt
