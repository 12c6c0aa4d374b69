#include "smelt/lite/quantize/graphs.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/lite/prepare/callable.h"

namespace smelt {
namespace {

// Callees first: a caller is checked against what it calls.
class BodyAdder {
 public:
  BodyAdder(const LiteGraphs& graphs, absl::string_view ending,
            const std::shared_ptr<FunctionLibrary>& library, const BodyChange& change)
      : ending_(ending), library_(library), change_(change) {
    for (const LiteBody& body : graphs.bodies) bodies_[body.function] = &body;
    for (const Graph* g : graphs.All()) FindVariableTypes(*g, resources_);
  }

  Status AddCallees(const Graph& of) {
    for (const std::string& name : CalledFunctions(of)) {
      const auto body = bodies_.find(name);
      if (body == bodies_.end() || !seen_.insert(name).second) continue;
      RETURN_IF_ERROR(AddCallees(*body->second->graph));
      const Status added = Add(*body->second);
      if (!added.ok()) return Prefix(added, absl::StrCat("function '", name, "': "));
    }
    return OkStatus();
  }

 private:
  Status Add(const LiteBody& body) {
    auto copy = std::make_unique<Graph>(library_);
    RETURN_IF_ERROR(copy->CopyFrom(*body.graph, "").status());
    if (change_) RETURN_IF_ERROR(change_(body, *copy));
    RenameCallees(*copy, ending_);
    const std::string name = absl::StrCat(body.function, ending_);
    RETURN_IF_ERROR(Lower(*copy, name, resources_));
    if (!resources_.states.empty()) {
      return Unimplemented(
          "it has an operator that keeps numbers between runs, which cannot be "
          "measured in loops and branches");
    }
    ASSIGN_OR_RETURN(auto f, FunctionOf(std::move(copy), name));
    return library_->Add(std::move(f));
  }

  const absl::string_view ending_;
  const std::shared_ptr<FunctionLibrary>& library_;
  const BodyChange& change_;
  LiteResources resources_;
  absl::flat_hash_map<std::string, const LiteBody*> bodies_;
  absl::flat_hash_set<std::string> seen_;
};

// ---- what loops begin with

Status FillStates(Graph& graph, Node* loop, const Graph& cond, const Graph& body) {
  const auto count = static_cast<size_t>(loop->num_inputs());
  const std::vector<Node*> of_cond = ArgumentsOf(cond, count), of_body = ArgumentsOf(body, count);
  for (size_t i = 0; i < count; ++i) {
    const auto value = ConstantTensor(*loop->input(static_cast<int>(i)).node);
    if (!value || value->num_elements() != 0) continue;
    const bool read = (of_cond[i] != nullptr && !of_cond[i]->uses().empty()) ||
                      (of_body[i] != nullptr && !of_body[i]->uses().empty());
    if (read || value->dtype() == Dtype::kString) continue;
    const std::vector<int64_t> dims(static_cast<size_t>(value->shape().rank()), 1);
    ASSIGN_OR_RETURN(const Tensor one, Tensor::Zeros(value->dtype(), Shape(dims)));
    Node* begin = graph.AddConst(absl::StrCat(loop->name(), "/begin"), one);
    graph.SetInput(loop, static_cast<int>(i), {begin, 0});
  }
  return OkStatus();
}

}  // namespace

std::vector<Graph*> LiteGraphs::All() const {
  std::vector<Graph*> out = {main.get()};
  for (const LiteBody& body : bodies) out.push_back(body.graph.get());
  return out;
}

StatusOr<LiteGraphs> LiteGraphs::Clone() const {
  LiteGraphs out;
  ASSIGN_OR_RETURN(out.main, main->Clone());
  for (const LiteBody& body : bodies) {
    ASSIGN_OR_RETURN(auto graph, body.graph->Clone());
    out.bodies.push_back({body.function, std::move(graph)});
  }
  return out;
}

StatusOr<LiteGraphs> CollectGraphs(std::unique_ptr<Graph> main,
                                   const std::function<Status(Graph&)>& convert) {
  LiteGraphs out;
  out.main = std::move(main);
  RETURN_IF_ERROR(convert(*out.main));
  const FunctionLibrary& library = *out.main->library();
  absl::flat_hash_set<std::string> seen;
  std::vector<std::string> callees = CalledFunctions(*out.main);
  while (!callees.empty()) {
    const std::string name = callees.back();
    callees.pop_back();
    const Function* f = library.Find(name);
    // What was refused may call what it wants.
    if (f == nullptr || f->body == nullptr || !seen.insert(name).second) continue;
    ASSIGN_OR_RETURN(auto body, GraphOf(*f));
    RETURN_IF_ERROR(convert(*body));
    for (std::string& more : CalledFunctions(*body)) callees.push_back(std::move(more));
    out.bodies.push_back({name, std::move(body)});
  }
  return out;
}

std::shared_ptr<FunctionLibrary> LibraryFor(const LiteGraphs& graphs) {
  auto out = std::make_shared<FunctionLibrary>();
  for (const auto& [name, op] : graphs.main->library()->own_ops()) out->AddOp(*op);
  return out;
}

Status AddLowered(const LiteGraphs& graphs, absl::string_view ending,
                  const std::shared_ptr<FunctionLibrary>& library, const BodyChange& change) {
  return BodyAdder(graphs, ending, library, change).AddCallees(*graphs.main);
}

void RenameCallees(Graph& graph, absl::string_view ending) {
  if (ending.empty()) return;
  for (Node* n : graph.Nodes()) {
    if (!n->attrs().may_have_functions()) continue;
    ChangeEachFunc(n->AttrsToChange(), [&](FuncAttr& f) { absl::StrAppend(&f.name, ending); });
  }
}

absl::flat_hash_map<const Node*, const Node*> Twins(const LiteGraphs& from,
                                                    const LiteGraphs& copy) {
  absl::flat_hash_map<const Node*, const Node*> out;
  const std::vector<Graph*> graphs = from.All(), copies = copy.All();
  for (size_t i = 0; i < graphs.size(); ++i) {
    for (const Node* n : graphs[i]->Nodes()) out[n] = copies[i]->Find(n->name());
  }
  return out;
}

Status VisitLoops(const LiteGraphs& graphs, LoopVisitor visit) {
  absl::flat_hash_map<std::string, Graph*> bodies;
  for (const LiteBody& body : graphs.bodies) bodies[body.function] = body.graph.get();
  for (Graph* g : graphs.All()) {
    for (Node* n : g->Nodes()) {
      if (!n->Is("tfl.while")) continue;
      const FuncAttr *cond = n->Func("cond"), *body = n->Func("body");
      if (cond == nullptr || body == nullptr) continue;
      const auto c = bodies.find(cond->name), b = bodies.find(body->name);
      if (c == bodies.end() || b == bodies.end()) continue;
      RETURN_IF_ERROR(visit(*g, n, *c->second, *b->second));
    }
  }
  return OkStatus();
}

Status FillEmptyStates(const LiteGraphs& graphs) { return VisitLoops(graphs, FillStates); }

}  // namespace smelt
