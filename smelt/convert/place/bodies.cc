// Bodies: what a placed function computes, made ready to be rewritten as one graph.
//
// The copy has its calls inlined, so that later stages see one graph per placement. Branches, loop
// bodies and what is too large to inline get copies of their own, which nobody else calls: a stage
// may change them without changing what runs on the host.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/analysis/captured.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/constant.h"
#include "smelt/optimize/implementations.h"
#include "smelt/wire/saved_model/object_graph.h"

namespace smelt {
namespace {

constexpr char kTpu[] = "TPU";
// Functions with more nodes than this, after inlining, stay calls.
constexpr int64_t kMaxNodes = 200'000;
// saved_model.pb holds every constant, and no more than 2 GiB.
constexpr int64_t kMaxAdoptedBytes = int64_t{256} << 20;

// How large functions are with all calls inlined. They may call themselves.
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
  explicit BodyMaker(Conversion& c) : c_(c), sizes_(c.library()), captured_(*c.meta->graph) {}

  // Reads from the object graph how many arguments of each concrete function, the last ones, Python
  // binds to captured values.
  Status ReadBoundInputs() {
    if (c_.meta->object_graph.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const ObjectGraph objects, ParseObjectGraph(c_.meta->object_graph));
    for (const auto& [name, concrete] : objects.concrete_functions) {
      bound_inputs_[name] = concrete.bound_inputs.size();
    }
    return OkStatus();
  }

  Status Make(TpuPlacement& p) {
    const Function* f = c_.library().Find(p.function);
    p.body = c_.library().FreeName(p.function + "_on_tpu");
    ASSIGN_OR_RETURN(auto body, f->Clone(p.body));
    RETURN_IF_ERROR(Inline(*body, *f));
    RETURN_IF_ERROR(AdoptConstants(*body, *f));
    RETURN_IF_ERROR(OwnCallees(*body->body, p));
    return c_.library().Add(std::move(body));
  }

  // Inlines the calls in the body, which is a copy of `original` or itself.
  Status Inline(Function& body, const Function& original) {
    body.attrs.Erase(kMustCompile);
    for (Node* n : body.body->Nodes()) n->EraseAttr(kMustCompile);
    RETURN_IF_ERROR(InlineCalls(body, kTpu, [&](const Function& callee) {
      return &callee != &original && sizes_.Of(callee) <= kMaxNodes;
    }));
    for (Node* n : body.body->Nodes()) n->EraseAttr(kMustCompile);
    return OkStatus();
  }

  // Arguments that are the same constant at every call become that constant: the accelerator keeps
  // it, instead of getting it with each request. What callers in Python pass stays an argument.
  Status AdoptConstants(Function& body, const Function& original) {
    const std::vector<Endpoint> args = body.FlatArguments();
    const auto bound = bound_inputs_.find(original.name());
    const size_t first =
        bound == bound_inputs_.end() ? 0 : args.size() - std::min(args.size(), bound->second);
    for (size_t number = first; number < args.size(); ++number) {
      const Endpoint e = args[number];
      if (e.node->output_types[e.port] == Dtype::kResource) continue;
      const Node* constant = captured_.ConstantOf(original, static_cast<int>(number));
      if (constant == nullptr || constant->output_types[0] == Dtype::kString) continue;
      const TensorValue* value = StatedConstant(*constant);
      if (value == nullptr) continue;
      adopted_bytes_ += static_cast<int64_t>(value->values.valid() ? value->values.bytes() : 0);
      if (adopted_bytes_ > kMaxAdoptedBytes) {
        c_.records.AddNote("bodies",
                           "constants passed as arguments are too large to be copied into "
                           "the TPU functions: they cross with each request",
                           original.name());
        return OkStatus();
      }
      Graph& g = *body.body;
      ASSIGN_OR_RETURN(Node * copy,
                       g.Add(e.node->name() + "/value", "Const", {}, constant->attrs()));
      g.ReplaceAllUses(e, {copy, 0});
      for (auto& result : body.results) {
        for (Endpoint& r : result) {
          if (r == e) r = {copy, 0};
        }
      }
    }
    return OkStatus();
  }

 private:
  // Makes the graph call copies of the functions that it calls, which only this placement uses.
  Status OwnCallees(Graph& g, TpuPlacement& p) {
    for (Node* n : g.Nodes()) {
      SelectImplementations(g, n, kTpu);
      Status status = OkStatus();
      const auto own = [&](const std::string& name) -> std::string {
        auto copy = OwnCopy(name, p);
        if (!copy.ok()) status = copy.status();
        return copy.ok() ? *copy : name;
      };
      if (c_.library().Find(n->op()) != nullptr) g.SetOp(n, own(std::string(n->op())));
      ChangeEachFunc(n->AttrsToChange(), [&](FuncAttr& f) {
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
  CapturedArguments captured_;
  absl::flat_hash_map<std::string, size_t> bound_inputs_;
  int64_t adopted_bytes_ = 0;
  std::map<std::string, absl::flat_hash_map<std::string, std::string>> copies_;  // by body
};

}  // namespace

Status MakeBodies(Conversion& c) {
  BodyMaker maker(c);
  RETURN_IF_ERROR(maker.ReadBoundInputs());
  // All of them before any stub: a placed function may call another, whose body it gets.
  for (TpuPlacement& p : c.placements) {
    if (p.existing) continue;
    Status s = maker.Make(p);
    if (!s.ok()) return Prefix(s, absl::StrCat("In function '", p.function, "': "));
  }
  return OkStatus();
}

Status InlineAllCalls(Conversion& c, Function& function) {
  return BodyMaker(c).Inline(function, function);
}

std::vector<Function*> FunctionsOnTpu(Conversion& c, const TpuPlacement& p) {
  std::vector<Function*> out{c.library().Find(p.body)};
  for (const std::string& name : p.callees) out.push_back(c.library().Find(name));
  return out;
}

}  // namespace smelt
