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
  return AddShaped(op, std::move(inputs), std::move(options), like.output_types[0],
                   shape({const_cast<Node*>(&like), 0}), like);
}

StatusOr<Endpoint> Fuser::AddShaped(OpName op, std::vector<Endpoint> inputs, AttrMap options,
                                    Dtype type, const PartialShape& shape, const Node& like) {
  DtypeVector in;
  for (const Endpoint& e : inputs) in.push_back(this->type(e));
  options.Set("Tin", in);
  options.Set("Tout", std::vector<Dtype>{type});
  options.Set(kOutputShapes, std::vector<PartialShape>{shape});
  ASSIGN_OR_RETURN(Node * n, graph_.Add(like.name(), op.text(), inputs, std::move(options)));
  return Endpoint{n, 0};
}

StatusOr<Endpoint> Fuser::Reshape(Endpoint e, const std::vector<int64_t>& sizes, const Node& like) {
  AttrMap options;
  options.Set("new_shape", sizes);
  return AddShaped("tfl.reshape", {e, IntsConst(sizes, like, *this)}, std::move(options), type(e),
                   PartialShape::Of(sizes), like);
}

StatusOr<bool> Fuser::ReplaceByReshape(Node* n, Endpoint e) {
  const PartialShape to = shape({n, 0});
  const std::vector<int64_t> sizes = StatedSizes(to);
  if (!to.known_rank() || !CanReshapeTo(sizes)) return false;
  AttrMap options;
  options.Set("new_shape", sizes);
  ASSIGN_OR_RETURN(const Endpoint by,
                   Add("tfl.reshape", {e, IntsConst(sizes, *n, *this)}, std::move(options), *n));
  Replace(n, by);
  return true;
}

void Fuser::Sweep(Node* n) {
  // By ids: one that two dead nodes read comes twice.
  std::vector<int> todo = {n->id()};
  while (!todo.empty()) {
    Node* dead = graph_.NodeOf(todo.back());
    todo.pop_back();
    if (dead == nullptr || !dead->uses().empty() || dead->Is("_Arg")) continue;
    std::vector<int> read;
    for (const Endpoint& e : dead->inputs()) read.push_back(e.node->id());
    graph_.Remove(dead);
    todo.insert(todo.end(), read.begin(), read.end());
  }
}

void Fuser::Replace(Node* n, Endpoint by) {
  graph_.ReplaceAllUses({n, 0}, by);
  // Who waited for the node, and what it waited for.
  graph_.ReplaceControlUses(n, by.node);
  if (by.node->id() > n->id()) {
    for (Node* before : n->control_inputs()) graph_.AddControlInput(by.node, before);
  }
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

bool HasActivation(const Node& n) {
  return n.String("fused_activation_function", "NONE") != "NONE";
}

AttrMap OptionsOf(const Node& n) {
  AttrMap out = n.attrs();
  for (const absl::string_view name :
       {absl::string_view("Tin"), absl::string_view("Tout"), absl::string_view(kOutputShapes)}) {
    out.Erase(name);
  }
  return out;
}

Endpoint IntsConst(std::span<const int64_t> values, const Node& like, Fuser& f) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return f.Const(Tensor::Vector(std::span<const int32_t>(narrow)), like);
}

std::vector<int64_t> StatedSizes(const PartialShape& s) {
  std::vector<int64_t> out;
  for (int i = 0; i < s.rank(); ++i) out.push_back(std::max<int64_t>(s[i], -1));
  return out;
}

bool CanReshapeTo(std::span<const int64_t> sizes) {
  return std::ranges::count(sizes, -1) < 2 && std::ranges::count(sizes, 0) == 0;
}

std::optional<std::vector<int64_t>> IntsOf(Endpoint e) {
  const std::optional<Tensor> value = Fuser::Constant(e);
  if (!value || (value->dtype() != Dtype::kInt32 && value->dtype() != Dtype::kInt64)) {
    return std::nullopt;
  }
  std::vector<int64_t> out;
  for (int64_t i = 0; i < value->num_elements(); ++i) out.push_back(IndexAt(*value, i));
  return out;
}

bool SameWhenEqualElements(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return false;
  int free = 0;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] < 0 && b[i] < 0) {
      ++free;
    } else if (a[i] != b[i] || a[i] == 0) {
      return false;
    }
  }
  return free <= 1;
}

PartialShape BroadcastOf(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return {};
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - rank + a.rank(), ib = i - rank + b.rank();
    const int64_t x = ia < 0 ? 1 : a[ia], y = ib < 0 ? 1 : b[ib];
    dims.push_back(x == 1 ? y : y == 1 ? x : std::max(x, y));
  }
  return PartialShape::Of(dims);
}

namespace {

Fusion RowOf(const RuleFusion& rules) {
  return {rules.name, rules.ops, nullptr, rules.what, &rules, rules.late};
}

StatusOr<bool> Apply(const Fusion& fusion, Node& n, Fuser& f) {
  f.Begin(fusion.name);
  if (fusion.function != nullptr) return fusion.function->apply(n, f);
  return fusion.rules != nullptr ? ApplyRules(*fusion.rules, n, f) : fusion.apply(n, f);
}

// The text is ours: it parses, or the program is wrong.
const StatusOr<std::vector<RuleFusion>>& BuiltinRules() {
  static const auto* rules = [] {
    auto* out = new StatusOr<std::vector<RuleFusion>>(ParseFusions(BuiltinFusionText()));
    if (out->ok()) {
      for (RuleFusion& rule : **out) rule.ours = true;
    }
    return out;
  }();
  return *rules;
}

std::vector<Fusion> Chosen(const FusionChoice& choice) {
  std::vector<Fusion> out;
  for (const FunctionFusion& own : choice.functions) {
    Fusion row{own.name, own.ops, nullptr, own.what};
    row.late = false;
    row.function = &own;
    out.push_back(row);
  }
  for (const RuleFusion& own : choice.own) out.push_back(RowOf(own));
  for (const Fusion& fusion : AllFusions()) {
    if (!fusion.on_request || choice.on.contains(fusion.name)) out.push_back(fusion);
  }
  std::erase_if(out, [&](const Fusion& f) { return choice.off.contains(f.name); });
  return out;
}

// Tries fusions until none fires.
class Rounds {
 public:
  Rounds(Graph& graph, bool coarse_weights, std::vector<FusionNote>* notes)
      : graph_(graph), f_(graph, nullptr, coarse_weights), notes_(notes) {
    // Each fusion removes an operator, or moves one: a bound that none should reach.
    most_ = 64 + 8 * graph.num_nodes();
  }

  Status Run(std::span<const Fusion> fusions, bool with_late) {
    for (bool changed = true; changed;) {
      changed = false;
      ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
      std::vector<int> ids;
      for (const Node* n : order) ids.push_back(n->id());
      for (const int id : ids) {
        for (const Fusion& fusion : fusions) {
          Node* n = graph_.NodeOf(id);
          if (n == nullptr) break;
          if (!n->Is(fusion.ops) || (fusion.late && !with_late)) continue;
          const std::string name = n->name();
          const int first = graph_.max_id();
          ASSIGN_OR_RETURN(const bool did, Apply(fusion, *n, f_));
          if (!did) continue;
          if (fusion.own()) MarkOwn(fusion, first);
          if (notes_ != nullptr) notes_->push_back({std::string(fusion.name), name, ""});
          changed = true;
          if (++fired_ > most_) {
            return InvalidArgument("fusions do not end, at ", fusion.name, " of '", name, "'");
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  void MarkOwn(const Fusion& fusion, int first) {
    for (int id = first; id < graph_.max_id(); ++id) {
      Node* made = graph_.NodeOf(id);
      if (made != nullptr && !made->Is("Const")) {
        made->AttrsToChange().Set(kOwnFusion, std::string(fusion.name));
      }
    }
  }

  Graph& graph_;
  Fuser f_;
  std::vector<FusionNote>* notes_;
  int most_ = 0, fired_ = 0;
};

}  // namespace

const std::vector<Fusion>& AllFusions() {
  static const auto* all = [] {
    auto* out = new std::vector<Fusion>();
    if (BuiltinRules().ok()) {
      for (const RuleFusion& rules : *BuiltinRules()) out->push_back(RowOf(rules));
    }
    for (const auto family :
         {UpscalingFusions(), TransposeFusions(), MatmulFusions(), UnfoldFusions(),
          ReshapeFusions(), CommuteFusions(), ReductionFusions(), JoinFusions(), SelectionFusions(),
          SpreadFusions(), IdentityFusions(), AffineFusions(), BeforeAffineFusions(),
          BidirectionalFusions(), VariableFusions(), ActivationFusions()}) {
      out->insert(out->end(), family.begin(), family.end());
    }
    return out;
  }();
  return *all;
}

Status CheckFusions(const FusionChoice& choice, std::span<const absl::string_view> others) {
  std::set<absl::string_view> names(others.begin(), others.end());
  for (const Fusion& f : AllFusions()) names.insert(f.name);
  for (const RuleFusion& own : choice.own) {
    if (!names.insert(own.name).second) {
      return InvalidArgument("there is a fusion ", own.name, " already");
    }
  }
  for (const FunctionFusion& own : choice.functions) {
    if (!names.insert(own.name).second) {
      return InvalidArgument("there is a fusion ", own.name, " already");
    }
  }
  for (const auto* chosen : {&choice.off, &choice.on}) {
    for (const std::string& name : *chosen) {
      if (!names.contains(name)) {
        return InvalidArgument("there is no fusion ", name, " (--list_fusions lists them)");
      }
    }
  }
  return OkStatus();
}

Status Fuse(Graph& graph, const FusionChoice& choice, std::vector<FusionNote>* notes) {
  RETURN_IF_ERROR(BuiltinRules().status());
  const std::vector<Fusion> fusions = Chosen(choice);
  Rounds rounds(graph, choice.coarse_weights, notes);
  RETURN_IF_ERROR(rounds.Run(fusions, /*with_late=*/false));
  RETURN_IF_ERROR(rounds.Run(fusions, /*with_late=*/true));
  if (notes == nullptr) return OkStatus();
  // Who nearly matched is asked once, when all is done.
  Fuser last(graph, notes, choice.coarse_weights);
  for (Node* n : graph.Nodes()) {
    for (const Fusion& fusion : fusions) {
      if (!n->Is(fusion.ops)) continue;
      ASSIGN_OR_RETURN(const bool did, Apply(fusion, *n, last));
      if (did) return Internal(fusion.name, " fires though it found nothing before");
    }
  }
  return OkStatus();
}

}  // namespace smelt
