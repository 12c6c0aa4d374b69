// TensorFlow's scoped_allocator_optimizer: ops of one kind whose inputs can stand side by side in
// one buffer become one op over that buffer. For collectives, which pay by the call.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/optimize/functions/frames.h"
#include "smelt/optimize/passes.h"
#include "smelt/optimize/scoped/conditions.h"

namespace smelt {
namespace {

constexpr absl::string_view kScopedRule = "ScopedAllocator";
constexpr absl::string_view kScopedAttr = "_scoped_allocator";
constexpr int64_t kFieldAlignment = 64;  // bytes, TensorFlow's
// What follows nodes is walked again for each group.
constexpr int64_t kScopedStepsPerNode = 100;

// Their memory cannot be had elsewhere than they give it.
constexpr OpSet kOwnMemory = {"Const", "HostConst", "Exit", "RefExit"};
constexpr OpSet kNoInput = {
    "_Arg",  "Enter",    "RefEnter", "NextIteration", "RefNextIteration",
    "Merge", "RefMerge", "Switch",   "RefSwitch",     "_ScopedAllocatorSplit"};
constexpr OpSet kBackEdges = {"NextIteration", "RefNextIteration"};

class ScopedAllocators {
 public:
  ScopedAllocators(Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        steps_left_(kScopedStepsPerNode * int64_t{graph.num_nodes()}) {}

  Status Run() {
    const auto groups = Groups();
    if (groups.empty()) return OkStatus();
    ASSIGN_OR_RETURN(conditions_, Conditions::Of(graph_));
    shapes_ = InferSymbolicShapesBeside(graph_, XlaShapeRules(), [&](const Node& n) {
      return IsFed(n) && context_.config.scoped_allocator_optimization != Toggle::kAggressive;
    });
    CountReads(groups);
    for (const std::vector<Node*>& group : groups) {
      if (MayMerge(group)) RETURN_IF_ERROR(Merge(group));
    }
    return OkStatus();
  }

 private:
  // Nodes of one device, op, name scope and loop, in the order of their names or instances. Inner
  // scopes come first.
  std::vector<std::vector<Node*>> Groups() {
    std::vector<std::string> ops = context_.config.scoped_allocator_ops;
    if (ops.empty()) ops.emplace_back("CollectiveReduce");
    const absl::flat_hash_set<std::string> enabled(ops.begin(), ops.end());
    using Key = std::tuple<std::string, absl::string_view, std::string, int>;
    std::vector<Node*> members;
    for (Node* n : graph_.Nodes()) {
      if (enabled.contains(n->op())) members.push_back(n);
    }
    std::vector<std::vector<Node*>> groups;
    if (members.size() < 2) return groups;
    const Frames frames(graph_);
    std::map<Key, std::vector<Node*>> by_key;
    for (Node* n : members) {
      const Node* start = frames.StartOf(*n);
      if (start != nullptr) in_loop_.insert(n);
      // The last byte puts a scope behind those in it.
      const std::string scope = n->name().substr(0, n->name().rfind('/') + 1) + '\xff';
      by_key[Key(n->device, n->op(), scope, start == nullptr ? -1 : start->id())].push_back(n);
    }
    for (auto& [key, group] : by_key) {
      if (group.size() < 2) continue;
      std::ranges::sort(group, {}, [](const Node* n) {
        return std::make_pair(n->Int("instance_key", -1), n->name());
      });
      grouped_.insert(group.begin(), group.end());
      groups.push_back(std::move(group));
    }
    return groups;
  }

  void CountReads(const std::vector<std::vector<Node*>>& groups) {
    for (const auto& group : groups) {
      for (const Node* n : group) {
        if (n->num_inputs() == 1) ++reads_[{n->input(0).node->id(), n->input(0).port}];
      }
    }
  }

  bool Declined(const Node& n, absl::string_view why) const {
    return context_.Declined(kScopedRule, n, why);
  }

  bool MayMerge(const std::vector<Node*>& group) {
    const Node& first = *group[0];
    if (!context_.fetch_known) return Declined(first, "nobody said what is fetched");
    if (first.device.empty()) return Declined(first, "its device is not known");
    if (!first.Is("CollectiveReduce") && !first.Is(kElementwiseOps)) {
      return Declined(first, "it computes elements of more than one");
    }
    const Dtype type = first.Type("T");
    const auto bytes = static_cast<int64_t>(DtypeSize(type));
    if (bytes == 0 || kFieldAlignment % bytes != 0) {
      return Declined(first, "its elements do not fill aligned memory");
    }
    for (const Node* n : group) {
      if (!MayJoin(*n, first, type)) return false;
    }
    const std::vector<const Node*> members(group.begin(), group.end());
    const absl::flat_hash_set<const Node*> after = After(members);
    if (steps_left_ < 0) return Declined(first, "the graph has too many groups to follow");
    for (const Node* n : group) {
      if (after.contains(n)) return Declined(*n, "it depends on another one of the group");
    }
    std::vector<const Node*> sources;
    for (const Node* n : group) sources.push_back(n->input(0).node);
    const bool moved =
        std::ranges::any_of(group, [&](Node* n) { return NeedsIdentity(n->input(0)); });
    if (in_loop_.contains(&first) && !moved && DelayedBy(sources, After(sources)) == nullptr) {
      return Declined(first, "nothing of the loop says when the buffer is made");
    }
    return true;
  }

  bool MayJoin(const Node& n, const Node& first, Dtype type) const {
    const bool asked =
        IsRoot(n) && (context_.asked_for == nullptr || context_.asked_for->contains(n.name()));
    if (asked) return Declined(n, "it is asked for by its name");
    if (n.num_inputs() != 1 || n.num_outputs() != 1) {
      return Declined(n, "it has not one input and one output");
    }
    const Endpoint e = n.input(0);
    const auto type_of = [](Endpoint from) {
      return from.node->output_types[static_cast<size_t>(from.port)];
    };
    if (n.Type("T") != type || n.output_types[0] != type || type_of(e) != type) {
      return Declined(n, "types differ");
    }
    if (!SameButInstance(n, first)) return Declined(n, "attributes differ");
    const PartialShape& shape = shapes_.of({const_cast<Node*>(&n), 0});
    if (!shape.fully_known()) return Declined(n, "its shape is not known");
    if (e.node->Is(kNoInput)) {
      return Declined(n, absl::StrCat("its input is of ", e.node->op()));
    }
    if (grouped_.contains(e.node)) return Declined(n, "its input may be of a group as well");
    const auto ids = e.node->Ints(kScopedAttr);
    for (size_t i = 0; i < ids.size(); i += 2) {
      if (ids[i] == e.port) return Declined(n, "its input has a place in another buffer");
    }
    const int condition = conditions_.of(n);
    if (condition < 0 || condition != conditions_.of(first)) {
      return Declined(n, "it may run where others of the group do not");
    }
    return true;
  }

  static bool SameButInstance(const Node& a, const Node& b) {
    const auto differs = [](const Node& n, const Node& other) {
      return std::ranges::any_of(n.attrs(), [&](const auto& entry) {
        const auto& [name, value] = entry;
        if (name[0] == '_' || name == "instance_key") return false;
        const Attr* theirs = other.Find(name);
        return theirs == nullptr || !(*theirs == value);
      });
    };
    return !differs(a, b) && !differs(b, a);
  }

  // All that run after these, in the same turn of a loop. What waits for one of them and is one is
  // not counted for that.
  absl::flat_hash_set<const Node*> After(const std::vector<const Node*>& nodes) {
    const absl::flat_hash_set<const Node*> starts(nodes.begin(), nodes.end());
    absl::flat_hash_set<const Node*> seen;
    std::vector<const Node*> todo = nodes;
    while (!todo.empty() && --steps_left_ >= 0) {
      const Node* n = todo.back();
      todo.pop_back();
      for (const Use& use : n->uses()) {
        if (use.is_control() && starts.contains(n) && starts.contains(use.node)) continue;
        if (use.node->Is(kBackEdges)) continue;
        if (seen.insert(use.node).second) todo.push_back(use.node);
      }
    }
    return seen;
  }

  // The first that a source reads and that none of them comes before: the buffer waits for it, so
  // that it is made in the same turn, and not long before.
  static Node* DelayedBy(const std::vector<const Node*>& sources,
                         const absl::flat_hash_set<const Node*>& after) {
    for (const Node* source : sources) {
      for (const Endpoint& e : source->inputs()) {
        const bool is_source = std::ranges::find(sources, e.node) != sources.end();
        if (!is_source && !after.contains(e.node)) return e.node;
      }
    }
    return nullptr;
  }

  // Numbers for a graph whose names end with 1 where no graph of the model has any, else with more.
  int Invocation() {
    if (invocation_ > 0) return invocation_;
    const auto look = [&](const Graph& graph) {
      for (const Node* n : graph.Nodes()) {
        if (!n->Is("_ScopedAllocator")) continue;
        const std::string name = n->String("sa_name");
        int number = 0;
        if (absl::SimpleAtoi(name.substr(name.rfind('_') + 1), &number) && number < 1'000'000) {
          invocation_ = std::max(invocation_, number);
        }
      }
    };
    look(graph_);
    for (const Function* f : graph_.library()->Functions()) look(*f->body);
    return ++invocation_;
  }

  std::string ScopedName(absl::string_view what, int id) {
    return absl::StrCat("scoped_allocator_", what, id, "_", Invocation());
  }

  // Its maker cannot put it into the buffer, or others of the ops want it there too.
  bool NeedsIdentity(Endpoint e) const {
    const auto reads = reads_.find({e.node->id(), e.port});
    return e.node->Is(kOwnMemory) || (reads != reads_.end() && reads->second > 1);
  }

  // Reads an input through an Identity of its own where it needs one.
  StatusOr<Endpoint> OwnInput(Node* n) {
    const Endpoint e = n->input(0);
    if (!NeedsIdentity(e)) return e;
    AttrMap attrs;
    attrs.Set("T", n->Type("T"));
    ASSIGN_OR_RETURN(Node * identity, graph_.Add(ScopedName("identity_", next_identity_++),
                                                 "Identity", {e}, std::move(attrs)));
    identity->device = n->device;
    graph_.SetInput(n, 0, {identity, 0});
    return Endpoint{identity, 0};
  }

  Status Merge(const std::vector<Node*>& group) {
    const Node& first = *group[0];
    const Dtype type = first.Type("T");
    std::vector<PartialShape> shapes;
    std::vector<Endpoint> inputs;
    std::vector<const Node*> sources;
    int64_t total = 0;
    const auto per_field = kFieldAlignment / static_cast<int64_t>(DtypeSize(type));
    for (Node* n : group) {
      shapes.push_back(shapes_.of({n, 0}));
      const int64_t elements = shapes.back().ToShape().num_elements();
      total += (elements + per_field - 1) / per_field * per_field;
    }
    if (total > std::numeric_limits<int32_t>::max()) {
      Declined(first, "the buffer would be too large");
      return OkStatus();
    }
    for (Node* n : group) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), OwnInput(n));
      sources.push_back(inputs.back().node);
    }
    const int id = next_id_;
    next_id_ += static_cast<int>(group.size()) + 1;
    const std::string name = ScopedName("", id);
    const PartialShape whole({total});
    const auto add = [&](std::string node, absl::string_view op, std::span<const Endpoint> from,
                         AttrMap attrs) -> StatusOr<Node*> {
      ASSIGN_OR_RETURN(Node * made, graph_.Add(node, op, from, std::move(attrs)));
      made->device = first.device;
      return made;
    };
    AttrMap attrs;
    attrs.Set("sa_name", name);
    attrs.Set("id", id);
    attrs.Set("T", type);
    AttrMap of_buffer = attrs, of_concat = attrs, of_split = std::move(attrs);
    of_buffer.Set("shapes", shapes);
    of_buffer.Set("shape", whole);
    of_buffer.Set("expected_call_count", static_cast<int64_t>(group.size()));
    ASSIGN_OR_RETURN(Node * buffer, add(name, "_ScopedAllocator", {}, std::move(of_buffer)));
    const absl::flat_hash_set<const Node*> after = After(sources);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Node* source = inputs[i].node;
      graph_.AddControlInput(source, buffer);
      std::vector<int64_t> places = source->Ints(kScopedAttr);
      places.push_back(inputs[i].port);
      places.push_back(id + 1 + static_cast<int64_t>(i));
      source->AttrsToChange().Set(kScopedAttr, std::move(places));
    }
    if (Node* delay = DelayedBy(sources, after)) graph_.AddControlInput(buffer, delay);

    std::vector<Endpoint> parts = {{buffer, 0}};
    parts.insert(parts.end(), inputs.begin(), inputs.end());
    of_concat.Set("shape", whole);
    of_concat.Set("N", static_cast<int64_t>(group.size()));
    ASSIGN_OR_RETURN(Node * concat, add(ScopedName("concat_", id), "_ScopedAllocatorConcat", parts,
                                        std::move(of_concat)));
    const absl::flat_hash_set<const Node*> members(group.begin(), group.end());
    for (const Node* n : group) {
      for (Node* before : n->control_inputs()) {
        if (!members.contains(before)) graph_.AddControlInput(concat, before);
      }
    }
    AttrMap of_op = first.attrs();
    of_op.Erase("_root");
    of_op.Erase("_output_shapes");
    of_op.Set("_forward_input", std::vector<int64_t>{0, 0});
    const std::vector<Endpoint> concatenated = {{concat, 0}};
    ASSIGN_OR_RETURN(Node * op, add(absl::StrCat(name, "_", first.op()), first.op(), concatenated,
                                    std::move(of_op)));
    if (IsRoot(first)) AddRoot(op);
    parts[0] = {op, 0};
    of_split.Set("shapes", std::move(shapes));
    of_split.Set("N", static_cast<int64_t>(group.size()));
    ASSIGN_OR_RETURN(Node * split, add(ScopedName("split_", id), "_ScopedAllocatorSplit", parts,
                                       std::move(of_split)));
    for (size_t i = 0; i < group.size(); ++i) {
      graph_.ReplaceAllUses({group[i], 0}, {split, static_cast<int>(i)});
      for (const Use& use : group[i]->OrderedUses()) {
        graph_.RemoveControlInput(use.node, group[i]);
        if (!members.contains(use.node)) graph_.AddControlInput(use.node, split);
      }
      context_.Fired(kScopedRule, *group[i], split->name());
    }
    for (const Node* n : group) grouped_.erase(n);
    graph_.Remove(group);
    return OkStatus();
  }

  Graph& graph_;
  const PassContext& context_;
  int64_t steps_left_;
  ShapeTable shapes_;
  Conditions conditions_;
  absl::flat_hash_set<const Node*> in_loop_, grouped_;   // of the ops
  absl::flat_hash_map<std::pair<int, int>, int> reads_;  // by node id and port, by all groups
  int next_id_ = 1, next_identity_ = 1, invocation_ = 0;
};

}  // namespace

Status ShareBuffers(Graph& graph, const PassContext& context) {
  return ScopedAllocators(graph, context).Run();
}

}  // namespace smelt
