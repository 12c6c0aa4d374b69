#include "smelt/graph/shape/infer.h"

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "smelt/base/stack.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/fact.h"
#include "smelt/graph/shape/loop_merges.h"
#include "smelt/graph/shape/rules.h"
#include "smelt/graph/shape/values.h"
#include "smelt/graph/shape/walks.h"

namespace smelt {
namespace {

// Constants larger than this are data, not shapes.
constexpr int64_t kMaxConstant = 1024;
// Calls nested deeper, or than the stack allows, give unknown shapes.
constexpr int kMaxShapeDepth = 48;
// A function is walked for at most this many different arguments, then once for unknown ones: with
// calls within calls the number of variants could double at every level.
constexpr int kMaxVariants = 12;
// A loop whose shapes still change after this many rounds has unknown shapes.
constexpr int kMaxLoopRounds = 6;

using PortKey = std::pair<int, int>;

class Walk {
 public:
  Walk(Walks& walks, int depth) : walks_(walks), depth_(depth) {}

  void SetFact(const Node& n, int port, Fact f) {
    walks_.Name(f.shape);
    walks_.Name(f.held);
    table.Set(&n, port, f.shape);
    if (f.held.known_rank()) table.SetHeld(&n, port, f.held);
    if (f.value) values_[{n.id(), port}] = *f.value;
    if (f.constant.valid()) constants_[{n.id(), port}] = f.constant;
  }

  Fact FactOf(Endpoint e) const {
    Fact f{table.of(e), table.held(e), {}, {}};
    if (const IntVector* v = Value(e)) f.value = *v;
    auto c = constants_.find({e.node->id(), e.port});
    if (c != constants_.end()) f.constant = c->second;
    return f;
  }

  // Goes on after an error, which leaves the node's outputs unknown. `args` are the shapes of _Arg
  // nodes by index; not read with `args_set`, when SetFact has given them.
  void Run(const Graph& graph, std::span<const PartialShape> args, bool args_set) {
    auto order = graph.TopologicalOrder();
    if (!order.ok()) {
      first_error = order.status();
      return;
    }
    for (const Node* n : *order) {
      if (depth_ == 0 && walks_.from_outside != nullptr && (*walks_.from_outside)(*n)) continue;
      if (n->Is("_Arg")) {
        VisitArg(*n, args, args_set);
        continue;
      }
      Status s = Visit(*n);
      if (!s.ok()) errors_.try_emplace(n->id(), Explain(s, *n));
    }
    SettleLoops(*order);
    const auto failed =
        std::ranges::find_if(*order, [&](const Node* n) { return errors_.contains(n->id()); });
    if (failed != order->end()) first_error = errors_.at((*failed)->id());
  }

  ShapeTable table;
  Status first_error;

 private:
  // Outputs are written after the rule has run: writing earlier could move shapes that it refers
  // to.
  class Context final : public ShapeContext {
   public:
    Context(const Walk& walk, const Node& node)
        : walk_(walk), node_(node), outputs_(node.num_outputs()), held_(node.num_outputs()) {}
    const Node& node() const override { return node_; }
    int num_inputs() const override { return node_.num_inputs(); }
    const PartialShape& input(int i) const override { return walk_.table.of(node_.inputs()[i]); }
    const Tensor* constant(int i) const override {
      auto it = walk_.constants_.find({node_.inputs()[i].node->id(), node_.inputs()[i].port});
      return it == walk_.constants_.end() ? nullptr : &it->second;
    }
    PartialShape constant_as_shape(int i) const override {
      if (const IntVector* v = walk_.Value(node_.inputs()[i])) {
        if (v->values.size() > static_cast<size_t>(kMaxRank)) return {};
        return PartialShape::Of(std::span<const int64_t>(v->values.data(), v->values.size()));
      }
      const PartialShape& s = input(i);
      if (s.rank() == 1 && s[0] >= 0 && s[0] <= kMaxRank) {
        return PartialShape::UnknownOfRank(static_cast<int>(s[0]));
      }
      return {};
    }
    const PartialShape& held(int i) const override { return walk_.table.held(node_.inputs()[i]); }
    void set_output(int i, PartialShape shape) override {
      if (i < node_.num_outputs()) outputs_[i] = std::move(shape);
    }
    void set_held(int i, PartialShape shape) override {
      if (i < node_.num_outputs()) held_[i] = std::move(shape);
    }

    void Commit(Walk& walk) {
      for (int i = 0; i < node_.num_outputs(); ++i) {
        walk.SetFact(node_, i, {std::move(outputs_[i]), std::move(held_[i]), {}, {}});
      }
    }

   private:
    const Walk& walk_;
    const Node& node_;
    absl::InlinedVector<PartialShape, 2> outputs_, held_;
  };

  const IntVector* Value(Endpoint e) const {
    auto it = values_.find({e.node->id(), e.port});
    return it == values_.end() ? nullptr : &it->second;
  }

  // As TensorFlow words it.
  Status Explain(const Status& s, const Node& n) const {
    std::vector<std::string> shapes;
    for (const Endpoint& e : n.inputs()) {
      const PartialShape& shape = table.of(e);
      shapes.push_back(shape.known_rank() ? shape.ToString() : "?");
    }
    return Suffix(s, absl::StrCat(" for '{{node ", n.name(), "}}' (op: '", n.op(),
                                  "') with input shapes: ", absl::StrJoin(shapes, ", "), "."));
  }

  void VisitArg(const Node& n, std::span<const PartialShape> args, bool args_set) {
    for (int p = 0; p < n.num_outputs(); ++p) {
      Fact f = FactOf({const_cast<Node*>(&n), p});
      const auto index = static_cast<size_t>(n.Int("index")) + p;
      if (!args_set && index < args.size()) {
        (n.output_types[p] == Dtype::kResource ? f.held : f.shape) = args[index];
      }
      if (const PartialShape* known = Declared(n, p)) {
        auto merged = PartialShape::Merge(f.shape, *known);
        if (merged.ok()) f.shape = *std::move(merged);
      }
      if (n.output_types[p] == Dtype::kResource) {
        if (!f.shape.known_rank()) f.shape = Shape();
        const auto* held = ShapeListAttr(n.attrs(), "_handle_shapes");
        if (!f.held.known_rank() && held != nullptr && held->size() == 1) f.held = held->front();
      }
      SetFact(n, p, f);
    }
  }

  Status Visit(const Node& n) {
    if (n.Is("Const") || n.Is("HostConst")) {
      VisitConst(n);
      return OkStatus();
    }
    if (!walks_.into_functions && walks_.Rule(n) == nullptr) {
      TakeDeclared(n);
      return OkStatus();
    }
    if (const auto* callee = walks_.library.Find(n.op())) {
      return VisitCall(n, callee->name(), n.num_inputs());
    }
    if (IsPartitionedCall(n) || n.Is("TPUPartitionedCall")) {
      const FuncAttr* f = n.Func("f");
      // The last input of TPUPartitionedCall is the core to run on, no argument.
      const int args = n.num_inputs() - (n.Is("TPUPartitionedCall") ? 1 : 0);
      return f == nullptr ? OkStatus() : VisitCall(n, f->name, args);
    }
    if (IsIf(n)) {
      std::vector<FuncAttr> branches;
      for (absl::string_view name : {"then_branch", "else_branch"}) {
        if (const FuncAttr* f = n.Func(name)) branches.push_back(*f);
      }
      VisitBranches(n, branches);
      return OkStatus();
    }
    if (IsCase(n)) {
      VisitBranches(n, n.Get<std::vector<FuncAttr>>("branches", {}));
      return OkStatus();
    }
    if (IsLoop(n)) {
      VisitWhile(n);
      return OkStatus();
    }
    if (IsLoopMerge(n)) {
      VisitLoopMerge(n);
      return OkStatus();
    }
    const ShapeRule* rule = walks_.Rule(n);
    if (rule == nullptr) {
      TakeDeclared(n);
      return OkStatus();
    }
    if (n.inputs().size() != n.input_types.size()) return OkStatus();
    Context context(*this, n);
    RETURN_IF_ERROR(rule->infer(context));
    context.Commit(*this);
    Follow(n);
    Compute(n);
    return OkStatus();
  }

  // What is made of small constants in a way that Follow does not know: sizes that went through
  // floats, say.
  void Compute(const Node& n) {
    if (walks_.run_constants == nullptr || depth_ > 0 || n.num_inputs() == 0) return;
    bool wanted = false;
    for (int p = 0; p < n.num_outputs(); ++p) {
      const PartialShape& shape = table.of({const_cast<Node*>(&n), p});
      if (NumElements(shape) > kMaxConstant) return;
      wanted |= !constants_.contains({n.id(), p});
    }
    if (!wanted) return;
    std::vector<Tensor> inputs;
    for (const Endpoint& e : n.inputs()) {
      const auto it = constants_.find({e.node->id(), e.port});
      if (it == constants_.end()) return;
      inputs.push_back(it->second);
    }
    std::vector<Tensor> results = (*walks_.run_constants)(n, std::move(inputs));
    for (size_t p = 0; p < results.size(); ++p) {
      const auto port = static_cast<int>(p);
      Tensor& t = results[p];
      SetFact(n, port, {PartialShape(t.shape()), {}, IntVectorOf(t), {}});
      if (t.num_elements() <= kMaxConstant) constants_[{n.id(), port}] = std::move(t);
    }
  }

  void VisitConst(const Node& n) {
    const Attr* a = n.Find("value");
    const auto* v = a ? a->get<std::shared_ptr<const TensorValue>>() : nullptr;
    if (v == nullptr || *v == nullptr || n.num_outputs() != 1) return;
    SetFact(n, 0, {(*v)->shape, {}, {}, {}});
    const int64_t size = (*v)->num_elements();
    if (size < 0 || size > kMaxConstant) return;
    auto t = (*v)->Materialize();
    if (!t.ok()) return;
    if (auto value = IntVectorOf(*t)) values_[{n.id(), 0}] = *std::move(value);
    constants_[{n.id(), 0}] = *std::move(t);
  }

  void TakeDeclared(const Node& n) {
    for (int p = 0; p < n.num_outputs(); ++p) {
      if (const auto* known = Declared(n, p)) SetFact(n, p, {*known, {}, {}, {}});
    }
  }

  // The shape that an attribute states of an output, for ops without a rule.
  static const PartialShape* Declared(const Node& n, int port) {
    const auto* shapes = ShapeListAttr(n.attrs(), "_output_shapes");
    const bool functional = IsLoop(n) || IsIf(n) || IsCase(n);
    if (shapes == nullptr && functional) shapes = ShapeListAttr(n.attrs(), "output_shapes");
    return shapes && static_cast<size_t>(port) < shapes->size() ? &(*shapes)[port] : nullptr;
  }

  std::vector<Fact> InputFacts(const Node& n, int begin, int end) const {
    std::vector<Fact> facts;
    for (int i = begin; i < end; ++i) facts.push_back(FactOf(n.inputs()[i]));
    return facts;
  }

  Status VisitCall(const Node& n, const std::string& name, int num_args) {
    if (num_args < 0) return OkStatus();
    const FunctionWalk* v = walks_.Function(name, InputFacts(n, 0, num_args), depth_);
    if (v == nullptr) return OkStatus();
    std::vector<Fact> results = v->results;
    RenameNew(n, &results);
    SetResults(n, results);
    return Prefix(v->first_error, absl::StrCat("In function '", name, "': "));
  }

  // Symbols that were made inside of a callee become the call's own.
  void RenameNew(const Node& n, std::vector<Fact>* results) {
    if (!walks_.symbolic) return;
    absl::flat_hash_map<int64_t, int64_t> known;
    const auto keep = [&](const PartialShape& s) {
      if (!s.known_rank()) return;
      for (const int64_t d : s.dims()) known[d] = d;
    };
    for (const Endpoint& e : n.inputs()) {
      keep(table.of(e));
      keep(table.held(e));
      if (const IntVector* v = Value(e)) {
        for (const int64_t x : v->values) known[x] = x;
      }
    }
    for (Fact& f : *results) {
      walks_.names.Rename(f.shape, known);
      walks_.names.Rename(f.held, known);
      if (!f.value) continue;
      for (int64_t& x : f.value->values) {
        if (IsSymbolicDim(x)) x = known.contains(x) ? known[x] : kUnknownInt;
      }
    }
  }

  void SetResults(const Node& n, std::span<const Fact> results) {
    for (int p = 0; p < n.num_outputs() && p < static_cast<int>(results.size()); ++p) {
      SetFact(n, p, results[p]);
    }
  }

  // Merges the attribute output_shapes of a loop or branch into what was found.
  static void Narrow(const Node& n, std::vector<Fact>* facts) {
    const auto* shapes = ShapeListAttr(n.attrs(), "output_shapes");
    if (shapes == nullptr || shapes->size() != facts->size()) return;
    for (size_t i = 0; i < facts->size(); ++i) {
      auto merged = PartialShape::Merge((*facts)[i].shape, (*shapes)[i]);
      if (merged.ok()) (*facts)[i].shape = *std::move(merged);
    }
  }

  void VisitBranches(const Node& n, std::span<const FuncAttr> branches) {
    std::vector<Fact> common(n.num_outputs());
    bool first = true, all = !branches.empty();
    for (const FuncAttr& f : branches) {
      const FunctionWalk* v = walks_.Function(f.name, InputFacts(n, 1, n.num_inputs()), depth_);
      if (v == nullptr || v->results.size() != common.size()) {
        all = false;
        continue;
      }
      for (size_t i = 0; i < common.size(); ++i) {
        common[i] = first ? v->results[i] : CommonFact(common[i], v->results[i]);
      }
      first = false;
    }
    if (!all) common.assign(n.num_outputs(), Fact());
    RenameNew(n, &common);
    Narrow(n, &common);
    SetResults(n, common);
  }

  // Looks for shapes that hold before and after every round: starting from the inputs', keeps what
  // the body's results share with them until nothing changes.
  void VisitWhile(const Node& n) {
    const FuncAttr* body = n.Func("body");
    const FuncAttr* cond = n.Func("cond");
    const auto* function = body ? walks_.library.Find(body->name) : nullptr;
    if (function == nullptr || n.num_outputs() != n.num_inputs()) return;
    std::vector<Fact> facts = InputFacts(n, 0, n.num_inputs());
    const std::vector<Endpoint> results = function->FlatResults();
    const std::vector<Endpoint> args = function->FlatArguments();
    if (results.size() != facts.size() || args.size() != facts.size()) return;
    for (size_t i = 0; i < facts.size(); ++i) {
      if (results[i] == args[i]) continue;
      facts[i].value.reset();
      facts[i].constant = Tensor();
    }
    bool settled = false;
    for (int round = 0; round < kMaxLoopRounds && !settled; ++round) {
      const FunctionWalk* v = walks_.Function(body->name, facts, depth_);
      if (v == nullptr) break;
      settled = true;
      for (size_t i = 0; i < facts.size(); ++i) {
        if (results[i] == args[i]) continue;
        Fact common = CommonFact(facts[i], v->results[i]);
        if (!(common.shape == facts[i].shape && common.held == facts[i].held)) settled = false;
        facts[i].shape = common.shape;
        facts[i].held = common.held;
      }
    }
    if (!settled) {
      for (size_t i = 0; i < facts.size(); ++i) {
        if (!(results[i] == args[i])) facts[i] = Fact();
      }
      walks_.Function(body->name, facts, depth_);
    }
    if (cond != nullptr) walks_.Function(cond->name, facts, depth_);
    RenameNew(n, &facts);
    Narrow(n, &facts);
    SetResults(n, facts);
  }

  void VisitLoopMerge(const Node& n) {
    const LoopMerge* merge = loop_merges_.Find(n);
    if (merge == nullptr) {
      PartialShape shape, held;
      bool begun = false;
      for (const Endpoint& e : n.inputs()) {
        if (IsBackEdge(e)) continue;
        shape = begun ? CommonShape(shape, table.of(e)) : table.of(e);
        held = begun ? CommonShape(held, table.held(e)) : table.held(e);
        begun = true;
      }
      walks_.Name(shape);
      walks_.Name(held);
      merge = &loop_merges_.Begin(n, std::move(shape), std::move(held));
    }
    SetFact(n, 0, {merge->shape, merge->held, {}, {}});
    SetFact(n, 1, {Shape(), {}, {}, {}});
  }

  // Where turns of a loop change what it began with all that follows is looked at again.
  void SettleLoops(const std::vector<Node*>& order) {
    for (int round = 0; !loop_merges_.empty() && round <= kMaxLoopRounds; ++round) {
      absl::flat_hash_set<int> again;
      for (LoopMerge& m : loop_merges_.all()) {
        bool changed = round == kMaxLoopRounds && LoopMerges::Forget(m);
        for (const Endpoint& e : m.node->inputs()) {
          if (IsBackEdge(e) && LoopMerges::Widen(m, table.of(e), table.held(e),
                                                 [&](PartialShape& s) { walks_.Name(s); })) {
            changed = true;
          }
        }
        if (changed) again.insert(m.node->id());
      }
      if (again.empty()) return;
      for (const Node* n : order) {
        const bool reads = std::ranges::any_of(n->inputs(), [&](const Endpoint& e) {
          return again.contains(e.node->id()) && !IsBackEdge(e);
        });
        if (!reads && !again.contains(n->id())) continue;
        again.insert(n->id());
        VisitAgain(*n);
      }
    }
  }

  void VisitAgain(const Node& n) {
    if (depth_ == 0 && walks_.from_outside != nullptr && (*walks_.from_outside)(n)) return;
    for (int p = 0; p < n.num_outputs(); ++p) {
      table.Set(&n, p, PartialShape());
      if (table.held({const_cast<Node*>(&n), p}).known_rank()) table.SetHeld(&n, p, {});
      values_.erase({n.id(), p});
      constants_.erase({n.id(), p});
    }
    errors_.erase(n.id());
    Status s = Visit(n);
    if (!s.ok()) errors_.try_emplace(n.id(), Explain(s, n));
  }

  void Follow(const Node& n) {
    // These ops pass their inputs on, so constants of any type are followed through them.
    if (n.Is("Identity") || n.Is("IdentityN") || n.Is("StopGradient") || n.Is("Enter")) {
      for (int i = 0; i < n.num_inputs() && i < n.num_outputs(); ++i) {
        auto it = constants_.find({n.inputs()[i].node->id(), n.inputs()[i].port});
        if (it != constants_.end()) {
          Tensor t = it->second;
          constants_[{n.id(), i}] = std::move(t);
        }
      }
    }
    if (std::ranges::none_of(n.output_types, IsIndexType)) return;
    absl::InlinedVector<const PartialShape*, 8> shapes;
    absl::InlinedVector<const IntVector*, 8> values;
    for (const Endpoint& e : n.inputs()) {
      shapes.push_back(&table.of(e));
      values.push_back(Value(e));
    }
    auto out = FollowValues(n, {shapes.data(), shapes.size()}, {values.data(), values.size()});
    for (size_t p = 0; p < out.size(); ++p) {
      if (!out[p]) continue;
      const PortKey key{n.id(), static_cast<int>(p)};
      if (out[p]->complete()) constants_[key] = ToTensor(*out[p], BaseType(n.output_types[p]));
      values_[key] = *std::move(out[p]);
    }
  }

  Walks& walks_;
  const int depth_;
  absl::flat_hash_map<PortKey, IntVector> values_;
  absl::flat_hash_map<PortKey, Tensor> constants_;  // of at most kMaxConstant elements
  absl::flat_hash_map<int, Status> errors_;         // by node id
  LoopMerges loop_merges_;
};

}  // namespace

const FunctionWalk* Walks::Function(const std::string& name, std::vector<Fact> args, int depth) {
  const smelt::Function* f = library.Find(name);
  if (f == nullptr || f->body == nullptr || depth >= kMaxShapeDepth || StackIsShort()) {
    return nullptr;
  }
  auto& known = variants[name];
  std::string key;
  for (const Fact& a : args) AppendKey(a, &key);
  if (auto it = known.find(key); it != known.end()) return it->second.get();
  if (!in_progress.insert(name).second) return nullptr;
  if (known.size() >= kMaxVariants) {
    key = "unknown";
    args.clear();
  }
  std::unique_ptr<FunctionWalk> made;
  if (!known.contains(key)) {
    made = std::make_unique<FunctionWalk>();
    Walk walk(*this, depth + 1);
    const std::vector<Endpoint> ports = f->FlatArguments();
    for (size_t i = 0; i < ports.size() && i < args.size(); ++i) {
      walk.SetFact(*ports[i].node, ports[i].port, args[i]);
    }
    walk.Run(*f->body, {}, true);
    for (Endpoint e : f->FlatResults()) made->results.push_back(walk.FactOf(e));
    made->table = std::move(walk.table);
    made->first_error = std::move(walk.first_error);
  }
  in_progress.erase(name);
  // `known` may be dangling: the walk may have added functions to the map.
  auto& slot = variants[name][key];
  if (made != nullptr) slot = std::move(made);
  return slot.get();
}

StatusOr<ShapeTable> InferShapes(const Graph& graph, MoreShapeRules more,
                                 std::span<const PartialShape> arg_shapes) {
  return InferShapes(graph, more, arg_shapes,
                     [](const Node&, std::vector<Tensor>) { return std::vector<Tensor>(); });
}

StatusOr<ShapeTable> InferShapes(const Graph& graph, MoreShapeRules more,
                                 std::span<const PartialShape> arg_shapes,
                                 ConstantRunner run_constants) {
  Walks walks(*graph.library(), more);
  walks.run_constants = &run_constants;
  Walk walk(walks, 0);
  walk.Run(graph, arg_shapes, false);
  RETURN_IF_ERROR(walk.first_error);
  return std::move(walk.table);
}

ShapeTable InferSymbolicShapes(const Graph& graph, MoreShapeRules more) {
  return InferSymbolicShapesBeside(graph, more, [](const Node&) { return false; });
}

ShapeTable InferSymbolicShapesBeside(const Graph& graph, MoreShapeRules more,
                                     absl::FunctionRef<bool(const Node&)> from_outside,
                                     bool into_functions) {
  Walks walks(*graph.library(), more);
  walks.into_functions = into_functions;
  walks.symbolic = true;
  walks.from_outside = &from_outside;
  Walk walk(walks, 0);
  walk.Run(graph, {}, false);
  return std::move(walk.table);
}

namespace {

// What all walks of each function have in common.
void KeepCommonTables(Walks& walks, ModelShapes* out) {
  for (auto& [name, variants] : walks.variants) {
    bool first = true;
    ShapeTable& table = out->functions[name];
    for (auto& [key, variant] : variants) {
      if (variant == nullptr) continue;
      if (first) {
        table = std::move(variant->table);
      } else {
        table.KeepCommon(variant->table);
      }
      first = false;
    }
  }
}

}  // namespace

StatusOr<ModelShapes> InferCalledShapes(const Graph& graph, MoreShapeRules more,
                                        std::span<const PartialShape> arg_shapes) {
  Walks walks(*graph.library(), more);
  Walk walk(walks, 0);
  walk.Run(graph, arg_shapes, false);
  RETURN_IF_ERROR(walk.first_error);
  ModelShapes out;
  out.graph = std::move(walk.table);
  KeepCommonTables(walks, &out);
  return out;
}

ModelShapes InferModelShapes(const Graph& graph, MoreShapeRules more,
                             std::span<const PartialShape> arg_shapes) {
  Walks walks(*graph.library(), more);
  Walk walk(walks, 0);
  walk.Run(graph, arg_shapes, false);
  ModelShapes out;
  out.graph = std::move(walk.table);
  for (const Function* f : graph.library()->Functions()) {
    if (walks.variants.contains(f->name())) continue;
    std::vector<Fact> args;
    if (const auto* shapes = ShapeListAttr(f->attrs, "_input_shapes")) {
      for (const PartialShape& s : *shapes) args.push_back({s, {}, {}, {}});
    }
    walks.Function(f->name(), std::move(args), 0);
  }
  KeepCommonTables(walks, &out);
  return out;
}

}  // namespace smelt
