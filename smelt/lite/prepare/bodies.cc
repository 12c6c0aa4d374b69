#include "smelt/lite/prepare/bodies.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_replace.h"
#include "smelt/graph/copy_node.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/resource_manager.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/prepare/callable.h"
#include "smelt/lite/prepare/cases.h"
#include "smelt/lite/prepare/lists.h"
#include "smelt/optimize/functions/lower_control_flow.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// Nodes that only name a resource: one in each function is as good as an argument.
constexpr OpSet kHandles = {"VarHandleOp", "HashTableV2", "HashTable"};

// Loops and branches in one another, and names for a list, that are followed for what they write
// into it.
constexpr int kMostFollowed = 50;

// What a function gets for one operand.
struct Operand {
  Endpoint value;         // in the caller's graph; of a list the tensor that it became
  Node* moved = nullptr;  // the node of the caller's graph that functions get a copy of
  bool unread = false;    // a variable of a loop that nothing but itself depends on
  PartialShape shape;
  std::optional<ListType> list;

  bool passed() const { return moved == nullptr && !unread; }
};

struct ListArgument {
  ListType type;
  PartialShape shape;
};

using ListMap = std::map<std::pair<int, int>, DenseList>;  // by node id and port

PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return {};
  std::vector<int64_t> dims;
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a[i] == b[i] ? a[i] : -1);
  return PartialShape::Of(dims);
}

// One graph, and the functions that its branches and loops call.
class Owner {
 public:
  Owner(Graph& graph, const std::function<Status(Graph&)>& optimize)
      : graph_(graph), optimize_(optimize) {}

  // `arguments`: the lists among the arguments, by index.
  Status Run(const std::map<int, ListArgument>& arguments) {
    RETURN_IF_ERROR(CasesToIfs(graph_));
    RETURN_IF_ERROR(FindElements());
    for (const auto& [index, list] : arguments) RETURN_IF_ERROR(TakeList(index, list));
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) {
      const Status done = Visit(n);
      if (absl::IsUnimplemented(done)) {
        n->AttrsToChange().Set(kWhyNot, std::string(done.message()));
      } else {
        RETURN_IF_ERROR(done);
      }
    }
    // Results that are lists are tensors now.
    for (Node* n : ResultsOf(graph_)) {
      const DenseList* list = n == nullptr ? nullptr : Find(n->input(0));
      if (list == nullptr) continue;
      n->AttrsToChange().Set("T", list->type.dtype);
      graph_.SetInput(n, 0, list->value);
      RETURN_IF_ERROR(graph_.ResolveTypes(n));
      results_[static_cast<int>(n->Int("index"))] = list->type;
    }
    graph_.Prune(KeptNodes());
    return optimize_(graph_);
  }
  // The lists among the results, by index.
  const std::map<int, ListType>& results() const { return results_; }

 private:
  std::vector<Node*> KeptNodes() const {
    std::vector<Node*> out = Roots(graph_);
    for (Node* n : graph_.Nodes()) {
      // What was replaced is not read, but may be there for its effect.
      const bool stays = n->Is("_Arg") || (HasEffect(*n) && !replaced_.contains(n));
      if (stays) out.push_back(n);
    }
    return out;
  }

  const DenseList* Find(Endpoint e) const {
    const auto it = lists_.find({e.node->id(), e.port});
    return it == lists_.end() ? nullptr : &it->second;
  }

  Status TakeList(int index, const ListArgument& list) {
    for (Node* arg : graph_.Nodes()) {
      if (!arg->Is("_Arg") || arg->Int("index") != index) continue;
      AttrMap attrs;
      attrs.Set("T", list.type.dtype);
      attrs.Set("index", static_cast<int64_t>(index));
      attrs.Set(kOutputShapes, std::vector<PartialShape>{list.shape});
      ASSIGN_OR_RETURN(Node * dense, graph_.Add(arg->name(), "_Arg", {}, std::move(attrs)));
      lists_[{arg->id(), 0}] = {{dense, 0}, list.type};
      // It is read until lists are lowered.
      graph_.SetOp(arg, "Placeholder");
      replaced_.insert(arg);
      return OkStatus();
    }
    return OkStatus();  // nobody reads it
  }

  Status Visit(Node* n) {
    if (n->Is(kListOps)) return VisitList(n);
    if (IsLoop(*n)) return VisitLoop(n);
    if (IsBranch(*n)) return VisitBranch(n);
    for (int i = 0; i < n->num_inputs() && n->Is(kIdentityOps); ++i) {
      if (const DenseList* list = Find(n->input(i))) lists_[{n->id(), i}] = *list;
    }
    return OkStatus();
  }

  Status VisitList(Node* n) {
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph_, {}));
    const DenseList* in = n->num_inputs() > 0 ? Find(n->input(0)) : nullptr;
    const DenseList* second = n->num_inputs() > 1 ? Find(n->input(1)) : nullptr;
    const auto element = elements_.find(n->id());
    ASSIGN_OR_RETURN(
        const LoweredListOp by,
        LowerListOp(graph_, *n, in, shapes,
                    element == elements_.end() ? PartialShape() : element->second, second));
    for (int i = 0; i < n->num_outputs(); ++i) {
      if (n->output_types[static_cast<size_t>(i)] == Dtype::kVariant) {
        lists_[{n->id(), i}] = *by.list;
      } else {
        graph_.ReplaceAllUses({n, i}, i == 1 && by.lengths ? *by.lengths : *by.tensor);
      }
    }
    graph_.ReplaceControlUses(n, by.tensor ? by.tensor->node : by.list->value.node);
    Forget(n);
    return OkStatus();
  }

  // What is written into the lists that the graph makes, by loops or at once.
  Status FindElements() {
    bool any = false;
    for (const Node* n : graph_.Nodes())
      any = any || n->Is({"TensorListReserve", "EmptyTensorList"});
    if (!any) return OkStatus();
    ASSIGN_OR_RETURN(const ModelShapes shapes, InferCalledShapes(graph_, {}, {}));
    for (Node* n : graph_.Nodes()) {
      if (!n->Is({"TensorListReserve", "EmptyTensorList"})) continue;
      for (const Use& use : n->OrderedUses()) {
        if (use.is_control()) continue;
        std::set<std::pair<const Node*, int>> seen;
        const PartialShape element =
            WrittenThrough(*use.node, use.input, shapes.graph, shapes, 0, seen);
        if (!element.known_rank()) continue;
        const auto [at, first] = elements_.try_emplace(n->id(), element);
        if (first || at->second == element) continue;
        // One node made several lists that start alike.
        ASSIGN_OR_RETURN(Node * other, AddCopy(graph_, *n, n->name()));
        const std::vector<Endpoint> inputs(n->inputs().begin(), n->inputs().end());
        graph_.SetInputs(other, inputs);
        graph_.SetInput(use.node, use.input, {other, 0});
        elements_[other->id()] = element;
      }
    }
    return OkStatus();
  }

  // The shape of what a node writes into the list that it reads as input `list`.
  static PartialShape WrittenBy(const Node& n, int list, const ShapeTable& shapes) {
    if (list == 0 && n.Is("TensorListSetItem")) return shapes.of(n.input(2));
    if (list == 0 && n.Is("TensorListPushBack")) return shapes.of(n.input(1));
    return {};
  }

  // The same where a loop or a branch may do it; `table` is of the node's own graph. `seen`: where
  // nothing was found, since functions may be called more than once.
  PartialShape WrittenThrough(const Node& n, int i, const ShapeTable& table,
                              const ModelShapes& shapes, int depth,
                              std::set<std::pair<const Node*, int>>& seen) const {
    if (depth > kMostFollowed || !seen.emplace(&n, i).second) return {};
    const auto first_known = [&](const Node& list, int port, const ShapeTable& of) {
      PartialShape found;
      for (const Use& use : list.OrderedUses()) {
        if (use.is_control() || use.port() != port || found.known_rank()) continue;
        found = WrittenThrough(*use.node, use.input, of, shapes, depth + 1, seen);
      }
      return found;
    };
    if (n.Is(kIdentityOps)) return first_known(n, i, table);
    if (!IsLoop(n) && !IsBranch(n)) return WrittenBy(n, i, table);
    PartialShape found;
    for (const absl::string_view name : {"body", "then_branch", "else_branch"}) {
      const FuncAttr* call = n.Func(name);
      const Function* f = call == nullptr ? nullptr : graph_.library()->Find(call->name);
      if (f == nullptr || f->body == nullptr || found.known_rank()) continue;
      const auto inner = shapes.functions.find(call->name);
      if (inner == shapes.functions.end()) continue;
      // A branch's input 0 is the condition.
      const std::vector<Endpoint> args = f->FlatArguments();
      const auto at = static_cast<size_t>(IsLoop(n) ? i : i - 1);
      if (at < args.size()) found = first_known(*args[at].node, args[at].port, inner->second);
    }
    return found;
  }

  // Operands from input `first` on.
  StatusOr<std::vector<Operand>> OperandsOf(const Node& n, int first) {
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(graph_, {}));
    std::vector<Operand> out;
    for (int i = first; i < n.num_inputs(); ++i) {
      Operand o;
      o.value = n.input(i);
      if (const DenseList* list = Find(o.value)) {
        o.value = list->value;
        o.list = list->type;
      } else {
        Node* source = BehindIdentities(o.value).node;
        if (source->Is("Const") || source->Is(kHandles)) o.moved = source;
      }
      o.shape = shapes.of(o.value);
      out.push_back(std::move(o));
    }
    return out;
  }

  StatusOr<std::unique_ptr<Graph>> BodyOf(const FuncAttr& call) {
    const Function* f = graph_.library()->Find(call.name);
    if (f == nullptr || f->body == nullptr) {
      return InvalidArgument("there is no function '", call.name, "'");
    }
    return Instantiate(*f, call.attrs.get());
  }

  // The body with what moves into it, the other arguments numbered anew.
  Status Specialize(Graph& body, const std::vector<Operand>& operands) {
    std::vector<int> place;
    int next = 0;
    for (const Operand& o : operands) place.push_back(o.passed() ? next++ : -1);
    for (Node* arg : body.Nodes()) {
      if (!arg->Is("_Arg")) continue;
      const auto index = static_cast<size_t>(arg->Int("index"));
      if (index >= operands.size()) return InvalidArgument("its functions have other arguments");
      const Operand& o = operands[index];
      if (o.unread) {
        body.Remove(arg);
        continue;
      }
      if (o.moved == nullptr) {
        arg->AttrsToChange().Set("index", int64_t{place[index]});
        if (!o.list) {
          arg->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{o.shape});
        }
        continue;
      }
      ASSIGN_OR_RETURN(Node * copy, AddCopy(body, *o.moved, o.moved->name()));
      if (copy->Is(kHandles)) {
        // By this name it is one and the same everywhere.
        const ResourceName at(*o.moved);
        copy->AttrsToChange().Set("shared_name", at.name);
      }
      body.ReplaceAllUses({arg, 0}, {copy, 0});
      body.ReplaceControlUses(arg, copy);
      body.Remove(arg);
    }
    return optimize_(body);
  }

  static std::map<int, ListArgument> ListsAmong(const std::vector<Operand>& operands) {
    std::map<int, ListArgument> out;
    int next = 0;
    for (const Operand& o : operands) {
      if (!o.passed()) continue;
      if (o.list) out[next] = {*o.list, o.shape};
      ++next;
    }
    return out;
  }
  static std::vector<CallableArgument> ArgumentsAmong(const std::vector<Operand>& operands) {
    std::vector<CallableArgument> out;
    for (const Operand& o : operands) {
      if (!o.passed()) continue;
      const auto port = static_cast<size_t>(o.value.port);
      out.push_back({o.value.node->output_types[port], o.shape});
    }
    return out;
  }

  StatusOr<FuncAttr> AddFunction(std::unique_ptr<Graph> body, const Node& n, absl::string_view part,
                                 const std::vector<CallableArgument>& arguments) {
    RETURN_IF_ERROR(RestoreArguments(*body, arguments));
    const std::string name = graph_.library()->FreeName(
        absl::StrCat(absl::StrReplaceAll(n.name(), {{"/", "_"}}), "_", part));
    ASSIGN_OR_RETURN(auto f, FunctionOf(std::move(body), name));
    RETURN_IF_ERROR(graph_.library()->Add(std::move(f)));
    return FuncAttr{name, nullptr};
  }

  // The shapes of results, by index.
  static StatusOr<std::vector<PartialShape>> ResultShapes(const Graph& body) {
    ASSIGN_OR_RETURN(const ShapeTable shapes, InferShapes(body, {}));
    std::vector<PartialShape> out;
    for (const Node* n : ResultsOf(body)) {
      out.push_back(n == nullptr ? PartialShape() : shapes.of(n->input(0)));
    }
    return out;
  }

  // `by`: for each output of `n` the output of the new node, or where it comes from.
  void Replace(Node* n, Node* made, const std::vector<Endpoint>& by,
               const std::vector<std::optional<ListType>>& lists) {
    for (size_t i = 0; i < by.size(); ++i) {
      if (lists[i]) {
        lists_[{n->id(), static_cast<int>(i)}] = {by[i], *lists[i]};
      } else {
        graph_.ReplaceAllUses({n, static_cast<int>(i)}, by[i]);
      }
    }
    graph_.SetControlInputs(made, n->control_inputs());
    graph_.ReplaceControlUses(n, made);
    Forget(n);
  }

  // The node was replaced: nothing but what was replaced as well reads it.
  void Forget(Node* n) {
    replaced_.insert(n);
    n->EraseAttr("_root");
  }

  // Does what comes in as variable `i` go out as it is?
  static bool IsInvariant(const Graph& body, size_t i) {
    const std::vector<Node*> results = ResultsOf(body);
    if (i >= results.size() || results[i] == nullptr) return false;
    const Node* from = BehindIdentities(results[i]->input(0)).node;
    return from->Is("_Arg") && from->Int("index") == static_cast<int64_t>(i);
  }

  // What runs for an effect, or for who asks for it.
  static std::vector<Node*> KeptOf(const Graph& graph) {
    std::vector<Node*> out = Roots(graph);
    for (Node* n : graph.Nodes()) {
      if (!n->Is("_Arg") && HasEffect(*n)) out.push_back(n);
    }
    return out;
  }

  // The loop's variables that its results, its condition or an effect depend on.
  static std::vector<bool> ReadVariables(const Node& loop, const Graph& cond, const Graph& body) {
    std::vector<bool> read(static_cast<size_t>(loop.num_inputs()));
    for (const Use& use : loop.uses()) {
      if (!use.is_control()) read[static_cast<size_t>(use.port())] = true;
    }
    std::vector<Node*> todo = KeptOf(cond);
    absl::flat_hash_set<const Node*> seen(todo.begin(), todo.end());
    const auto follow = [&] {
      bool more = false;
      while (!todo.empty()) {
        const Node* n = todo.back();
        todo.pop_back();
        const auto index = static_cast<size_t>(n->Is("_Arg") ? n->Int("index") : -1);
        if (index < read.size() && !read[index]) more = read[index] = true;
        for (const Endpoint& e : n->inputs()) {
          if (seen.insert(e.node).second) todo.push_back(e.node);
        }
        for (Node* before : n->control_inputs()) {
          if (seen.insert(before).second) todo.push_back(before);
        }
      }
      return more;
    };
    follow();
    for (bool more = true; more;) {
      for (Node* n : KeptOf(body)) {
        const auto index = static_cast<size_t>(n->Is("_Retval") ? n->Int("index") : -1);
        const bool asked = n->Is("_Retval") && index < read.size() ? read[index] : true;
        if (asked && seen.insert(n).second) todo.push_back(n);
      }
      more = follow();
    }
    return read;
  }

  // What led to variables that are gone; their arguments are read no more.
  static void PruneUnread(Graph& body, const std::vector<Operand>& operands) {
    if (std::ranges::none_of(operands, &Operand::unread)) return;
    std::vector<Node*> kept = KeptOf(body);
    for (Node* n : body.Nodes()) {
      if (n->Is("_Arg")) kept.push_back(n);
    }
    body.Prune(kept);
  }

  Status VisitLoop(Node* n) {
    const std::vector<const FuncAttr*> functions = BranchesOf(*n);
    if (functions.size() != 2) return Unimplemented("it does not name its functions");
    ASSIGN_OR_RETURN(std::vector<Operand> operands, OperandsOf(*n, 0));
    {
      ASSIGN_OR_RETURN(const auto body, BodyOf(*functions[1]));
      for (size_t i = 0; i < operands.size(); ++i) {
        if (!IsInvariant(*body, i)) operands[i].moved = nullptr;
      }
      ASSIGN_OR_RETURN(const auto cond, BodyOf(*functions[0]));
      const std::vector<bool> read = ReadVariables(*n, *cond, *body);
      for (size_t i = 0; i < operands.size(); ++i) operands[i].unread = !read[i];
    }
    // Shapes that a turn changes are not known; other turns then see that.
    for (int turn = 0;; ++turn) {
      ASSIGN_OR_RETURN(auto cond, BodyOf(*functions[0]));
      ASSIGN_OR_RETURN(auto body, BodyOf(*functions[1]));
      std::vector<Node*> results = ResultsOf(*body);
      if (results.size() != operands.size())
        return InvalidArgument("its body gives other variables");
      int64_t next = 0;
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].passed()) {
          results[i]->AttrsToChange().Set("index", next++);
        } else {
          body->Remove(results[i]);
        }
      }
      for (Graph* part : {cond.get(), body.get()}) PruneUnread(*part, operands);
      RETURN_IF_ERROR(Specialize(*cond, operands));
      RETURN_IF_ERROR(Specialize(*body, operands));
      const auto lists = ListsAmong(operands);
      Owner of_cond(*cond, optimize_), of_body(*body, optimize_);
      RETURN_IF_ERROR(of_cond.Run(lists));
      RETURN_IF_ERROR(of_body.Run(lists));
      ASSIGN_OR_RETURN(const auto shapes, ResultShapes(*body));
      bool same = true;
      size_t at = 0;
      for (Operand& o : operands) {
        if (!o.passed()) continue;
        const PartialShape common = Common(o.shape, shapes[at++]);
        same = same && common == o.shape;
        o.shape = turn < 8 ? common : PartialShape();
      }
      if (!same) continue;
      const auto arguments = ArgumentsAmong(operands);
      ASSIGN_OR_RETURN(FuncAttr of_cond_, AddFunction(std::move(cond), *n, "cond", arguments));
      ASSIGN_OR_RETURN(FuncAttr of_body_, AddFunction(std::move(body), *n, "body", arguments));
      return ReplaceLoop(n, operands, std::move(of_cond_), std::move(of_body_));
    }
  }

  Status ReplaceLoop(Node* n, const std::vector<Operand>& operands, FuncAttr cond, FuncAttr body) {
    std::vector<Endpoint> inputs;
    DtypeVector types;
    std::vector<PartialShape> shapes;
    for (const Operand& o : operands) {
      if (!o.passed()) continue;
      inputs.push_back(o.value);
      types.push_back(BaseType(o.value.node->output_types[static_cast<size_t>(o.value.port)]));
      shapes.push_back(o.shape);
    }
    AttrMap attrs = n->attrs();
    attrs.Set("T", types);
    attrs.Set("output_shapes", shapes);
    attrs.Set("cond", std::move(cond));
    attrs.Set("body", std::move(body));
    attrs.Erase(kOutputShapes);
    ASSIGN_OR_RETURN(Node * made, graph_.Add(n->name(), n->op(), inputs, std::move(attrs)));
    std::vector<Endpoint> by;
    std::vector<std::optional<ListType>> lists;
    int next = 0;
    for (const Operand& o : operands) {
      by.push_back(o.passed() ? Endpoint{made, next++} : o.value);
      lists.push_back(o.list);
    }
    Replace(n, made, by, lists);
    return OkStatus();
  }

  Status VisitBranch(Node* n) {
    const std::vector<const FuncAttr*> functions = BranchesOf(*n);
    if (functions.empty() || (IsIf(*n) && functions.size() != 2)) {
      return Unimplemented("it does not name its functions");
    }
    ASSIGN_OR_RETURN(const std::vector<Operand> operands, OperandsOf(*n, 1));
    const auto arguments = ArgumentsAmong(operands);
    std::vector<FuncAttr> made_functions;
    std::vector<PartialShape> shapes;
    std::map<int, ListType> lists;
    for (size_t i = 0; i < functions.size(); ++i) {
      ASSIGN_OR_RETURN(auto body, BodyOf(*functions[i]));
      RETURN_IF_ERROR(Specialize(*body, operands));
      Owner owner(*body, optimize_);
      RETURN_IF_ERROR(owner.Run(ListsAmong(operands)));
      ASSIGN_OR_RETURN(auto found, ResultShapes(*body));
      if (i == 0) {
        shapes = std::move(found);
        lists = owner.results();
      } else {
        if (lists != owner.results() || shapes.size() != found.size()) {
          return Unimplemented("its branches give different lists");
        }
        for (size_t k = 0; k < shapes.size(); ++k) shapes[k] = Common(shapes[k], found[k]);
      }
      const std::string part = IsIf(*n) ? (i == 0 ? "then" : "else") : absl::StrCat("branch", i);
      ASSIGN_OR_RETURN(auto f, AddFunction(std::move(body), *n, part, arguments));
      made_functions.push_back(std::move(f));
    }
    std::vector<Endpoint> inputs = {n->input(0)};
    DtypeVector in, out;
    for (const Operand& o : operands) {
      if (o.moved == nullptr) inputs.push_back(o.value);
    }
    for (const CallableArgument& a : arguments) in.push_back(BaseType(a.type));
    std::vector<std::optional<ListType>> list_of(static_cast<size_t>(n->num_outputs()));
    for (int i = 0; i < n->num_outputs(); ++i) {
      const auto list = lists.find(i);
      if (list != lists.end()) list_of[static_cast<size_t>(i)] = list->second;
      out.push_back(list != lists.end() ? list->second.dtype
                                        : n->output_types[static_cast<size_t>(i)]);
    }
    AttrMap attrs = n->attrs();
    attrs.Set("Tin", in);
    attrs.Set("Tout", out);
    attrs.Set("output_shapes", shapes);
    attrs.Erase(kOutputShapes);
    if (IsIf(*n)) {
      attrs.Set("then_branch", made_functions[0]);
      attrs.Set("else_branch", made_functions[1]);
    } else {
      attrs.Set("branches", made_functions);
    }
    ASSIGN_OR_RETURN(Node * made, graph_.Add(n->name(), n->op(), inputs, std::move(attrs)));
    std::vector<Endpoint> by;
    for (int i = 0; i < n->num_outputs(); ++i) by.push_back({made, i});
    Replace(n, made, by, list_of);
    return OkStatus();
  }

  Graph& graph_;
  const std::function<Status(Graph&)>& optimize_;
  ListMap lists_;
  absl::flat_hash_map<int, PartialShape> elements_;  // by id of the node that makes the list
  absl::flat_hash_set<const Node*> replaced_;
  std::map<int, ListType> results_;
};

}  // namespace

Status OwnBodies(Graph& graph, const std::function<Status(Graph&)>& optimize) {
  bool any = false;
  for (const Node* n : graph.Nodes()) {
    any = any || IsLoop(*n) || IsBranch(*n) || n->Is(kListOps);
  }
  return any ? Owner(graph, optimize).Run({}) : OkStatus();
}

}  // namespace smelt
