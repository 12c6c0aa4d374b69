#include "smelt/lite/fuse/fusion.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt {

PartialShape Fuser::shape(Endpoint e) { return StatedShape(e); }

std::optional<Tensor> Fuser::Constant(Endpoint e) { return ConstantTensor(*e.node); }

std::optional<float> Fuser::Number(Endpoint e) {
  const TensorValue* value = StatedConstant(*e.node);
  if (value == nullptr || value->dtype != Dtype::kFloat) return std::nullopt;
  const std::optional<double> number = UniformValue(*value);
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

bool Fuser::ReadOnce(Endpoint e) {
  // A result is a reader too.
  return e.node->NumUses(e.port) == 1;
}

Endpoint Fuser::Const(const Tensor& value, const Node& like) {
  return {graph_.AddConst(absl::StrCat(like.name(), "/const"), value), 0};
}

StatusOr<Endpoint> Fuser::Add(OpName op, std::vector<Endpoint> inputs, AttrMap options,
                              const Node& like) {
  DtypeVector in;
  for (const Endpoint& e : inputs) in.push_back(type(e));
  options.Set("Tin", in);
  options.Set("Tout", std::vector<Dtype>{like.output_types[0]});
  options.Set(kOutputShapes, std::vector<PartialShape>{shape({const_cast<Node*>(&like), 0})});
  ASSIGN_OR_RETURN(Node * n, graph_.Add(like.name(), op.text(), inputs, std::move(options)));
  return Endpoint{n, 0};
}

void Fuser::Sweep(Node* n) {
  std::vector<Node*> todo = {n};
  while (!todo.empty()) {
    Node* dead = todo.back();
    todo.pop_back();
    if (!dead->uses().empty() || dead->Is("_Arg")) continue;
    std::vector<Node*> read;
    for (const Endpoint& e : dead->inputs()) {
      if (std::ranges::find(read, e.node) == read.end()) read.push_back(e.node);
    }
    graph_.Remove(dead);
    todo.insert(todo.end(), read.begin(), read.end());
  }
}

void Fuser::Replace(Node* n, Endpoint by) {
  graph_.ReplaceAllUses({n, 0}, by);
  const std::string name = n->name();
  Sweep(n);
  // The value is known by the name that it had.
  if (absl::StartsWith(by.node->op(), "tfl.") && graph_.Find(name) == nullptr) {
    graph_.Rename(by.node, name).IgnoreError();  // nobody has the name
  }
}

void Fuser::SetInput(Node* n, int i, Endpoint from) {
  Node* before = n->input(i).node;
  graph_.SetInput(n, i, from);
  Sweep(before);
}

bool Fuser::Declined(const Node& n, std::string why) {
  if (notes_ != nullptr) notes_->push_back({std::string(fusion_), n.name(), std::move(why)});
  return false;
}

void Fuser::Fired(const std::string& node) {
  if (notes_ != nullptr) notes_->push_back({std::string(fusion_), node, ""});
}

std::span<const Fusion> AllFusions() {
  static const auto* all = [] {
    auto* out = new std::vector<Fusion>();
    for (const auto family : {AffineFusions(), ActivationFusions()}) {
      out->insert(out->end(), family.begin(), family.end());
    }
    return out;
  }();
  return *all;
}

Status Fuse(Graph& graph, const std::set<std::string, std::less<>>& off,
            std::vector<FusionNote>* notes) {
  // Each fusion removes an operator, or moves one: a bound that none should reach.
  const int most = 16 + 4 * graph.num_nodes();
  Fuser f(graph, nullptr);
  Fuser last(graph, notes);
  int fired = 0;
  for (bool changed = true; changed;) {
    changed = false;
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
    std::vector<int> ids;
    for (const Node* n : order) ids.push_back(n->id());
    for (const int id : ids) {
      for (const Fusion& fusion : AllFusions()) {
        Node* n = graph.NodeOf(id);
        if (n == nullptr) break;
        if (!n->Is(fusion.ops) || off.contains(fusion.name)) continue;
        const std::string name = n->name();
        f.Begin(fusion.name);
        ASSIGN_OR_RETURN(const bool did, fusion.apply(*n, f));
        if (!did) continue;
        last.Begin(fusion.name);
        last.Fired(name);
        changed = true;
        if (++fired > most) return Internal("fusions do not end, at ", fusion.name);
      }
    }
  }
  if (notes == nullptr) return OkStatus();
  // Who nearly matched is asked once, when all is done.
  for (Node* n : graph.Nodes()) {
    for (const Fusion& fusion : AllFusions()) {
      if (!n->Is(fusion.ops) || off.contains(fusion.name)) continue;
      last.Begin(fusion.name);
      ASSIGN_OR_RETURN(const bool did, fusion.apply(*n, last));
      if (did) return Internal(fusion.name, " fires though it found nothing before");
    }
  }
  return OkStatus();
}

}  // namespace smelt
