// Stubs: a placed function keeps its name, arguments and results, so that the object graph, the
// aliases and every caller stay valid; all that it does is call its body on the accelerator.
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/function_wrapper.h"
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

Status MakeStub(Conversion& c, const TpuPlacement& p) {
  Function* f = c.library().Find(p.function);
  ASSIGN_OR_RETURN(FunctionWrapper wrapper, FunctionWrapper::Around(*f));
  Graph& g = wrapper.graph();
  std::vector<Endpoint> inputs = wrapper.Arguments();
  AttrMap attrs;
  attrs.Set("Tin", TypeList(TypesOf(inputs)));
  attrs.Set("Tout", TypeList(wrapper.result_types()));
  attrs.Set("f", FuncAttr{p.body, nullptr});
  attrs.Set("autotuner_thresh", 0);
  ASSIGN_OR_RETURN(Node * ordinal,
                   g.Add("TPUOrdinalSelector", "TPUOrdinalSelector", {}, AttrMap()));
  inputs.push_back({ordinal, 0});
  ASSIGN_OR_RETURN(Node * call, g.Add("TPUPartitionedCall", "TPUPartitionedCall", std::move(inputs),
                                      std::move(attrs)));
  std::vector<Endpoint> results;
  for (int i = 0; i < call->num_outputs(); ++i) {
    AttrMap identity_attrs;
    identity_attrs.Set("T", wrapper.result_types()[i]);
    ASSIGN_OR_RETURN(Node * identity,
                     g.Add("Identity", "Identity", {{call, i}}, std::move(identity_attrs)));
    results.push_back({identity, 0});
  }
  return std::move(wrapper).Finish(call, results);
}

}  // namespace

void RunOnHost(Conversion& c, const absl::flat_hash_set<std::string>& functions) {
  absl::flat_hash_set<std::string> on_tpu;
  for (const TpuPlacement& p : c.placements) {
    on_tpu.insert(p.body);
    on_tpu.insert(p.callees.begin(), p.callees.end());
  }
  const auto drop = [&](Graph& graph) {
    for (Node* n : graph.Nodes()) {
      bool calls = functions.contains(n->op());
      ForEachFunc(n->attrs(),
                  [&](const FuncAttr& f) { calls = calls || functions.contains(f.name); });
      if (calls) n->EraseAttr(kMustCompile);
    }
  };
  drop(*c.meta->graph);
  for (Function* f : c.library().Functions()) {
    if (functions.contains(f->name())) f->attrs.Erase(kMustCompile);
    if (f->body != nullptr && !on_tpu.contains(f->name())) drop(*f->body);
  }
}

Status MakeStubs(Conversion& c) {
  absl::flat_hash_set<std::string> placed;
  for (const TpuPlacement& p : c.placements) {
    if (p.existing) continue;
    placed.insert(p.function);
    Status s = MakeStub(c, p);
    if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
  }
  RunOnHost(c, placed);
  return OkStatus();
}

}  // namespace smelt
