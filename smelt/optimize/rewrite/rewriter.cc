#include "smelt/optimize/rewrite/rewriter.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/time/clock.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/rewrite/kept_shapes.h"

namespace smelt {
namespace {

// A node is visited so many times at most for each node of the graph: rules that undo each other
// would go on for ever.
constexpr int kMaxVisits = 16;

}  // namespace

Rewriter::Rewriter(Graph& graph, const PassContext& context, absl::string_view scope,
                   bool trust_feeds)
    : graph_(graph), context_(context), scope_(scope), trust_feeds_(trust_feeds) {}

Rewriter::~Rewriter() {
  if (context_.shapes == nullptr || !shapes_ || shapes_version_ != graph_.version()) return;
  *context_.shapes = {std::move(*shapes_), shapes_version_, trust_feeds_};
}

const PartialShape& Rewriter::shape(Endpoint e) {
  KeptShapes* kept = context_.shapes;
  if (!shapes_ && kept != nullptr && kept->version == graph_.version() &&
      kept->trust_feeds == trust_feeds_) {
    shapes_ = std::move(kept->table);
    shapes_version_ = std::exchange(kept->version, -1);
  }
  if (!shapes_) {
    shapes_version_ = graph_.version();
    // A first answer waits for this: functions that a session calls are graphs of their own.
    shapes_ = InferSymbolicShapesBeside(
        graph_, XlaShapeRules(), [this](const Node& n) { return !trust_feeds_ && IsFed(n); },
        !context_.for_execution);
  }
  return shapes_->of(e);
}

bool Rewriter::WritesInPlace() {
  if (!writes_in_place_) {
    writes_in_place_ = false;
    for (int id = 0; id < graph_.max_id() && !*writes_in_place_; ++id) {
      const Node* n = graph_.NodeOf(id);
      if (n == nullptr) continue;
      writes_in_place_ =
          TakesReference(*n) || n->Is(kWritesInPlace) || n->Bool("in_place") || n->Bool("inplace");
    }
  }
  return *writes_in_place_;
}

const TensorValue* Rewriter::ConstantValue(Endpoint e) const {
  if (!e.node->Is("Const") || IsFed(*e.node)) return nullptr;
  const Attr* value = e.node->Find("value");
  const auto* tensor =
      value == nullptr ? nullptr : value->get<std::shared_ptr<const TensorValue>>();
  return tensor == nullptr ? nullptr : tensor->get();
}

std::optional<Tensor> Rewriter::Constant(Endpoint e) const {
  if (!e.node->Is("Const") || IsFed(*e.node)) return std::nullopt;
  return ConstantTensor(*e.node);
}

bool Rewriter::HasControlFlow() {
  // No rule makes such nodes.
  if (!has_control_flow_) {
    has_control_flow_ =
        std::ranges::any_of(graph_.Nodes(), [](const Node* n) { return n->Is(kControlFlow); });
  }
  return *has_control_flow_;
}

bool Rewriter::OnCpu(const Node& node) const {
  return context_.for_execution || node.device.find("CPU") != std::string::npos;
}

std::optional<std::vector<int64_t>> Rewriter::Integers(Endpoint e) const {
  const std::optional<Tensor> t = Constant(e);
  if (!t || (t->dtype() != Dtype::kInt32 && t->dtype() != Dtype::kInt64) || t->rank() > 1) {
    return std::nullopt;
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < t->num_elements(); ++i) values.push_back(IndexAt(*t, i));
  return values;
}

std::string Rewriter::Name(const Node& node, absl::string_view suffix,
                           absl::string_view before) const {
  std::string name = NameFor(node, suffix, before);
  if (graph_.Find(name) == nullptr) return name;
  absl::StrAppend(&name, "_unique");
  for (int i = 0;; ++i) {
    const std::string numbered = absl::StrCat(name, i);
    if (graph_.Find(numbered) == nullptr) return numbered;
  }
}

bool Rewriter::IsMade(const Node& node, absl::string_view before) const {
  return graph_.Find(NameFor(node, "", before)) != nullptr;
}

std::string Rewriter::NameFor(const Node& node, absl::string_view suffix,
                              absl::string_view before) const {
  const std::string& name = node.name();
  const size_t slash = name.rfind('/');
  const absl::string_view scope =
      slash == std::string::npos ? "" : absl::string_view(name).substr(0, slash + 1);
  const absl::string_view own = absl::string_view(name).substr(scope.size());
  return absl::StrCat(scope, scope_, "/", rule_, "_", before, own, suffix.empty() ? "" : "_",
                      suffix);
}

std::string Rewriter::PrefixedName(const Node& node, absl::string_view suffix) const {
  return graph_.FreeName(absl::StrCat(scope_, "/", node.name(), suffix));
}

StatusOr<Node*> Rewriter::Add(absl::string_view name, absl::string_view op,
                              std::span<const Endpoint> inputs, AttrMap attrs, const Node& like) {
  ASSIGN_OR_RETURN(Node * n, graph_.Add(name, op, inputs, std::move(attrs)));
  n->device = like.device;
  Visit(n);
  return n;
}

Node* Rewriter::AddConst(absl::string_view name, const Tensor& value, const Node& like) {
  Node* n = graph_.AddConst(name, value);
  n->device = like.device;
  if (shapes_) shapes_->Set(n, 0, value.shape());
  return n;
}

StatusOr<Node*> Rewriter::Copy(const Node& node, absl::string_view name) {
  AttrMap attrs = node.attrs();
  attrs.Erase("_root");
  attrs.Erase("_fed");
  const Node::Inputs inputs = node.inputs();
  ASSIGN_OR_RETURN(Node * copy,
                   Add(name, node.op(), std::span<const Endpoint>(inputs.data(), inputs.size()),
                       std::move(attrs), node));
  graph_.SetControlInputs(copy, node.control_inputs());
  for (int i = 0; i < node.num_outputs(); ++i) CopyShape({const_cast<Node*>(&node), i}, {copy, i});
  return copy;
}

void Rewriter::SetShape(Endpoint e, const PartialShape& shape) {
  e.node->EraseAttr("_output_shapes");
  if (shapes_) shapes_->Set(e.node, e.port, shape);
}

Status Rewriter::Become(Node* node, absl::string_view op, AttrMap attrs) {
  SetAttrsButMarks(node, std::move(attrs));
  graph_.SetOp(node, op);
  RETURN_IF_ERROR(graph_.ResolveTypes(node));
  Visit(node);
  return OkStatus();
}

Status Rewriter::Wait(Node* node, Endpoint before) {
  if (node == before.node) return OkStatus();
  ASSIGN_OR_RETURN(Node * waited, WaitableNode(graph_, before));
  AddWait(graph_, node, waited);
  return OkStatus();
}

Status Rewriter::WaitAs(Node* node, const Node& other) {
  for (Node* before : other.control_inputs()) {
    AddWait(graph_, node, before);
  }
  return OkStatus();
}

void Rewriter::Visit(Node* node) {
  const auto id = static_cast<size_t>(node->id());
  if (id >= queued_.size()) queued_.resize(static_cast<size_t>(graph_.max_id()) + 1);
  if (queued_[id]) return;
  queued_[id] = true;
  stack_.push_back(node->id());
}

Rewritten Rewriter::No(absl::string_view why) {
  context_.Declined(rule_, *node_, why);
  return {};
}

// Runs the rules of one pass over one graph.
class RuleRunner {
 public:
  RuleRunner(std::span<const Rule* const> rules, Rewriter& rewriter, bool (*skipped)(const Node&))
      : rewriter_(rewriter),
        graph_(rewriter.graph_),
        skipped_(skipped),
        list_of_op_(static_cast<size_t>(kNumOps), kNotAsked),
        lists_(1) {
    for (const Rule* rule : rules) {
      if (rule->wanted == nullptr || rule->wanted(rewriter.context_)) rules_.push_back(rule);
    }
  }

  bool fired() const { return fired_; }

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) {
      if (!RulesOf(*n).empty()) rewriter_.Visit(n);
    }
    int64_t left = int64_t{kMaxVisits} * (graph_.num_nodes() + 1);
    while (!rewriter_.stack_.empty() && left-- > 0) {
      const int id = rewriter_.stack_.back();
      rewriter_.stack_.pop_back();
      rewriter_.queued_[static_cast<size_t>(id)] = false;
      Node* n = graph_.NodeOf(id);
      if (n == nullptr) continue;
      if ((left & 1023) == 0 && absl::Now() > rewriter_.context_.deadline) {
        return absl::DeadlineExceededError("meta_optimizer exceeded deadline.");
      }
      RETURN_IF_ERROR(TakeTurn(n));
    }
    return OkStatus();
  }

 private:
  using List = std::vector<const Rule*>;

  const List& RulesOf(const Node& n) {
    if (n.op_name().unknown()) return lists_[kNoRules];
    int16_t& list = list_of_op_[static_cast<size_t>(n.op_name().number())];
    if (list == kNotAsked) {
      List found;
      std::ranges::copy_if(rules_, std::back_inserter(found),
                           [&](const Rule* rule) { return rule->ops.Contains(n.op_name()); });
      list = found.empty() ? kNoRules : static_cast<int16_t>(lists_.size());
      if (!found.empty()) lists_.push_back(std::move(found));
    }
    return lists_[static_cast<size_t>(list)];
  }

  Status TakeTurn(Node* n) {
    if (IsFed(*n) || (skipped_ != nullptr && skipped_(*n))) return OkStatus();
    // The op may change under way, and the node may go.
    const OpName op = n->op_name();
    const int id = n->id();
    const List& rules = RulesOf(*n);
    if (!rules.empty() && ReadsUnknownType(*n)) {
      rewriter_.context_.Declined(rules[0]->name, *n, "the type of an input is not known");
      return OkStatus();
    }
    for (const Rule* rule : rules) {
      rewriter_.rule_ = rule->name;
      rewriter_.node_ = n;
      ASSIGN_OR_RETURN(const Rewritten done, rule->apply(*n, rewriter_));
      if (done.kind == Rewritten::Kind::kNot) continue;
      fired_ = true;
      RewriteLog* log = rewriter_.context_.log;
      const bool replaced = done.kind == Rewritten::Kind::kReplaced && done.by.node != n;
      if (log != nullptr) {
        log->Fired(rule->name, *n, replaced ? absl::string_view(done.by.node->name()) : "");
      }
      if (replaced) Replace(n, done.by);
      DropUnread(n);
      if (replaced || graph_.NodeOf(id) == nullptr) return OkStatus();
      if (n->op_name() != op) {
        rewriter_.Visit(n);
        return OkStatus();
      }
    }
    return OkStatus();
  }

  // From an op that nothing is known of: a rule could not say of what type its nodes are.
  static bool ReadsUnknownType(const Node& n) {
    return std::ranges::any_of(n.inputs(), [](Endpoint e) {
      return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kInvalid;
    });
  }

  void Replace(Node* n, Endpoint by) {
    rewriter_.Visit(by.node);
    // Who took the node waits for what it waited for.
    const bool kept = std::ranges::all_of(n->control_inputs(),
                                          [&](const Node* c) { return RunsAfter(*by.node, *c); });
    for (const Use& use : n->OrderedUses()) {
      rewriter_.Visit(use.node);
      if (use.node == by.node) continue;
      for (Node* c : n->control_inputs()) {
        if (!kept) AddWait(graph_, use.node, c);
      }
    }
    graph_.ReplaceOtherUses({n, 0}, by);
    graph_.ReplaceControlUses(n, by.node);
  }

  // Removes the node if nobody needs it, and then those that it alone read.
  void DropUnread(Node* n) {
    if (!rewriter_.context_.fetch_known) return;
    std::vector<Node*> todo = {n};
    // What a rule took an input from may be another node than its own.
    for (const Endpoint& e : n->inputs()) todo.push_back(e.node);
    std::vector<int> ids;
    for (const Node* t : todo) ids.push_back(t->id());
    for (size_t i = 0; i < ids.size(); ++i) {
      Node* t = graph_.NodeOf(ids[i]);
      if (t == nullptr || !t->uses().empty() || IsRoot(*t) || !MayGo(*t)) continue;
      for (const Endpoint& e : t->inputs()) ids.push_back(e.node->id());
      for (const Node* c : t->control_inputs()) ids.push_back(c->id());
      graph_.Remove(t);
    }
  }

  static bool MayGo(const Node& n) {
    return !HasEffect(n) && !TakesReference(n) && !n.Is(kControlFlow) && !n.Is("_Arg") &&
           !n.Is("Placeholder");
  }

  Rewriter& rewriter_;
  Graph& graph_;
  bool (*const skipped_)(const Node&);  // nullptr: none is
  bool fired_ = false;
  List rules_;
  static constexpr int16_t kNotAsked = -1, kNoRules = 0;
  std::vector<int16_t> list_of_op_;  // by number of the op: what of lists_
  std::deque<List> lists_;           // those of ops that the graph has; the first is empty
};

Status RunRules(std::span<const Rule* const> rules, absl::string_view optimizer, Toggle toggle,
                Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context, optimizer, toggle == Toggle::kAggressive);
  return RunRules(rules, rewriter).status();
}

StatusOr<bool> RunRules(std::span<const Rule* const> rules, Rewriter& rewriter,
                        bool (*skipped)(const Node& node)) {
  RuleRunner runner(rules, rewriter, skipped);
  RETURN_IF_ERROR(runner.Run());
  return runner.fired();
}

bool HasControlInputs(const Node& n) { return !n.control_inputs().empty(); }
bool HasControlUses(const Node& n) {
  return std::ranges::any_of(n.uses(), [](const Use& use) { return use.is_control(); });
}
bool IsOutOfOrder(const Node& n) { return !HasControlInputs(n) && !HasControlUses(n); }

void DropNeedlessWaits(Graph& graph, Node* node) {
  if (node->control_inputs().empty() || node->inputs().empty()) return;
  if (node->Is("Merge") || node->Is("RefMerge")) return;
  // What stands for a body may leave an argument unread when it becomes that.
  if (IsPartitionedCall(*node) || IsIf(*node) || IsCase(*node) || IsLoop(*node) ||
      graph.library()->Find(node->op()) != nullptr) {
    return;
  }
  absl::flat_hash_set<const Node*> read;
  for (const Endpoint& e : node->inputs()) read.insert(e.node);
  const std::vector<Node*> waits = node->control_inputs();
  for (Node* before : waits) {
    if (read.contains(before)) graph.RemoveControlInput(node, before);
  }
}

bool RunsAfter(const Node& n, const Node& before) {
  // More inputs are not worth the time: saying no costs a control edge.
  constexpr int kMaxInputs = 8;
  // A Merge runs when one of its inputs is there.
  const auto reads = [&](const Node& m) {
    return m.num_inputs() <= kMaxInputs && !m.Is("Merge") && !m.Is("RefMerge");
  };
  const auto directly = [&](const Node& m) {
    return std::ranges::find(m.control_inputs(), &before) != m.control_inputs().end() ||
           (reads(m) &&
            std::ranges::any_of(m.inputs(), [&](Endpoint e) { return e.node == &before; }));
  };
  return &n == &before || directly(n) ||
         (reads(n) &&
          std::ranges::any_of(n.inputs(), [&](Endpoint e) { return directly(*e.node); }));
}

int NumDataUses(const Node& n) {
  return static_cast<int>(
      std::ranges::count_if(n.uses(), [](const Use& use) { return !use.is_control(); }));
}

bool OnlyReadBy(const Node& n, const Node& reader) {
  return NumDataUses(n) == 1 && std::ranges::all_of(n.uses(), [&](const Use& use) {
           return use.is_control() || use.node == &reader;
         });
}

bool GivesReference(Endpoint e) { return IsRef(e.node->output_types[static_cast<size_t>(e.port)]); }

bool TakesType(OpName op, Dtype type) {
  const OpDef* definition = DefinitionOf(op);
  const AttrDef* def = definition == nullptr ? nullptr : definition->FindAttr("T");
  return def != nullptr && std::ranges::find(def->allowed_types, type) != def->allowed_types.end();
}

bool IsSymbolic(const PartialShape& s) {
  return s.known_rank() && std::ranges::all_of(s.dims(), [](int64_t d) { return d != -1; });
}

bool SameSymbolicShape(const PartialShape& a, const PartialShape& b) {
  return IsSymbolic(a) && a == b;
}

}  // namespace smelt
