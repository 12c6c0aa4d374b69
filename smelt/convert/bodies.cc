// Bodies: what a placed function computes, made ready to be rewritten as one graph.
//
// The copy has its calls inlined, so that later stages see one graph per placement. Branches, loop
// bodies and what is too large to inline get copies of their own, which nobody else calls: a stage
// may change them without changing what runs on the host.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/stages.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

constexpr char kMustCompile[] = "_XlaMustCompile";
constexpr char kRoot[] = "_root";
// Bodies that expand beyond this keep their calls.
constexpr int64_t kMaxNodes = 200'000;

// Functions are `const Function*` nodes of a graph that may have cycles.
class ExpandedSizes {
 public:
  explicit ExpandedSizes(const FunctionLibrary& library) : library_(library) {}

  // Nodes of the function with all calls inlined, up to the limit; recursion counts as the limit.
  int64_t Of(const Function& f) {
    auto [it, added] = sizes_.try_emplace(&f, kMaxNodes + 1);
    if (!added) return it->second;
    int64_t size = f.body->num_nodes();
    for (const Node* n : f.body->Nodes()) {
      const FuncAttr* attr = IsPartitionedCall(*n) ? n->Func("f") : nullptr;
      const Function* callee = library_.Find(attr ? attr->name : n->op());
      if (callee != nullptr && callee->body != nullptr) size += Of(*callee);
      if (size > kMaxNodes) break;
    }
    size = std::min(size, kMaxNodes + 1);
    sizes_[&f] = size;
    return size;
  }

 private:
  const FunctionLibrary& library_;
  absl::flat_hash_map<const Function*, int64_t> sizes_;
};

class BodyMaker {
 public:
  explicit BodyMaker(Conversion& c) : c_(c), sizes_(c.library()) {}

  Status Make(TpuPlacement& p) {
    const Function* f = c_.library().Find(p.function);
    p.body = c_.library().FreeName(p.function + "_on_tpu");
    ASSIGN_OR_RETURN(auto body, f->Clone(p.body));
    RETURN_IF_ERROR(Inline(*body, *f));
    RETURN_IF_ERROR(OwnCallees(*body->body, p));
    return c_.library().Add(std::move(body));
  }

  // The calls in the body, which is a copy of `original` or itself.
  Status Inline(Function& body, const Function& original) {
    Graph& g = *body.body;
    body.attrs.Erase(kMustCompile);
    PassContext context;
    context.keep_call = [&](const Function& callee) {
      return &callee == &original || sizes_.Of(callee) > kMaxNodes;
    };
    // The nodes that results come from may be calls, which inlining removes.
    std::vector<Node*> returned;
    for (const Endpoint& e : body.FlatResults()) {
      AttrMap attrs;
      attrs.Set("T", BaseType(e.node->output_types[e.port]));
      ASSIGN_OR_RETURN(Node * n, g.Add("_returned", "Identity", {e}, std::move(attrs)));
      returned.push_back(n);
    }
    absl::flat_hash_map<const Node*, Node*> done;
    for (auto& [name, node] : body.control_results) {
      ASSIGN_OR_RETURN(Node * n, g.Add("_done", "NoOp", {}));
      n->control_inputs = {node};
      node = n;
    }
    RETURN_IF_ERROR(InlineFunctions(g, context));
    std::vector<Node*> keep(body.args.begin(), body.args.end());
    size_t next = 0;
    for (auto& result : body.results) {
      for (Endpoint& e : result) {
        Node* n = returned[next++];
        e = n->inputs[0];
        // Waiting for the identity alone orders nothing.
        g.Remove(n);
        keep.push_back(e.node);
      }
    }
    for (auto& [name, node] : body.control_results) keep.push_back(node);
    // What has an effect runs also when no result needs it.
    for (Node* n : g.Nodes()) {
      n->attrs().Erase(kMustCompile);
      if (!n->attrs().Erase(kRoot)) continue;
      if (std::ranges::none_of(body.control_results,
                               [&](const auto& r) { return r.second == n; })) {
        body.control_results.emplace_back(n->name(), n);
        body.signature.control_outputs.push_back(n->name());
      }
      keep.push_back(n);
    }
    g.Prune(keep);
    return OkStatus();
  }

 private:
  // Gives the graph functions of its own to call.
  Status OwnCallees(Graph& g, TpuPlacement& p) {
    for (Node* n : g.Nodes()) {
      Status status = OkStatus();
      const auto own = [&](const std::string& name) -> std::string {
        auto copy = OwnCopy(name, p);
        if (!copy.ok()) status = copy.status();
        return copy.ok() ? *copy : name;
      };
      if (c_.library().Find(n->op()) != nullptr) g.SetOp(n, own(n->op()));
      ForEachFunc(n->attrs(), [&](FuncAttr& f) {
        if (c_.library().Find(f.name) != nullptr) f.name = own(f.name);
      });
      RETURN_IF_ERROR(status);
    }
    return OkStatus();
  }

  StatusOr<std::string> OwnCopy(const std::string& name, TpuPlacement& p) {
    auto& copies = copies_[p.body];
    auto it = copies.find(name);
    if (it != copies.end()) return it->second;
    const std::string copy_name = c_.library().FreeName(name + "_on_tpu");
    copies[name] = copy_name;  // before its body is walked: it may call itself
    const Function* original = c_.library().Find(name);
    ASSIGN_OR_RETURN(auto copy, original->Clone(copy_name));
    RETURN_IF_ERROR(Inline(*copy, *original));
    p.callees.push_back(copy_name);
    Graph& body = *copy->body;
    RETURN_IF_ERROR(c_.library().Add(std::move(copy)));
    RETURN_IF_ERROR(OwnCallees(body, p));
    return copy_name;
  }

  Conversion& c_;
  ExpandedSizes sizes_;
  std::map<std::string, absl::flat_hash_map<std::string, std::string>> copies_;  // by body
};

}  // namespace

Status MakeBodies(Conversion& c) {
  BodyMaker maker(c);
  // All of them before any stub: a placed function may call another, whose body it gets.
  for (TpuPlacement& p : c.placements) {
    if (p.existing) continue;
    Status s = maker.Make(p);
    if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
  }
  return OkStatus();
}

Status InlineCalls(Conversion& c, Function& function) {
  return BodyMaker(c).Inline(function, function);
}

std::vector<Function*> FunctionsOnTpu(Conversion& c, const TpuPlacement& p) {
  std::vector<Function*> out{c.library().Find(p.body)};
  for (const std::string& name : p.callees) out.push_back(c.library().Find(name));
  return out;
}

}  // namespace smelt
