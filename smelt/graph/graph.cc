#include "smelt/graph/graph.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"

namespace smelt {
namespace {

constexpr OpSet kMerges = {"Merge", "RefMerge"};
constexpr OpSet kNextIterations = {"NextIteration", "RefNextIteration"};

}  // namespace

Graph::Graph(std::shared_ptr<FunctionLibrary> library)
    : library_(std::move(library)),
      touched_(std::make_unique<std::vector<int>>()),
      order_(std::make_unique<Order>()) {}

// ---- nodes

StatusOr<Node*> Graph::AddNode(absl::string_view name, absl::string_view op) {
  return AddNamed(std::string(name), op);
}

StatusOr<Node*> Graph::AddNamed(std::string name, absl::string_view op) {
  Node* node = TryAddOfNoOp(std::move(name));
  if (node == nullptr) return AlreadyExists("Node '", name, "' is not unique");
  SetOp(node, op);
  return node;
}

Node* Graph::TryAddOfNoOp(std::string&& name) {
  auto node = std::make_unique<Node>();
  node->name_ = std::move(name);
  const auto [it, added] =
      by_name_.insert({NameHash()(absl::string_view(node->name_)), node.get()});
  if (!added) {
    name = std::move(node->name_);
    return nullptr;
  }
  node->id_ = static_cast<int>(nodes_.size());
  node->touched_nodes_ = touched_.get();
  node->Touch();
  nodes_.push_back(std::move(node));
  ++live_;
  return it->node;
}

StatusOr<Node*> Graph::Add(absl::string_view name, absl::string_view op,
                           std::span<const Endpoint> inputs, AttrMap attrs) {
  ASSIGN_OR_RETURN(Node * node, AddNamed(FreeName(name), op));
  SetInputs(node, inputs);
  node->attrs_ = std::move(attrs);
  RETURN_IF_ERROR(ResolveTypes(node));
  if (node->def_ && node->inputs_.size() != node->input_types.size()) {
    return Internal("node '", node->name_, "' (", op, ") is given ", node->inputs_.size(),
                    " inputs, wants ", node->input_types.size());
  }
  return node;
}

Node* Graph::AddConst(absl::string_view name, const Tensor& value) {
  Node* node = *AddNamed(FreeName(name), "Const");
  node->attrs_.Set("dtype", value.dtype());
  node->attrs_.Set("value", Attr(TensorValue::Of(value)));
  node->SetOutputTypes({value.dtype()});
  return node;
}

Status Graph::ResolveTypes(Node* node) {
  if (node->Is("_Arg") && node->attrs_.Find("T") == nullptr) {
    // A list argument carries its types instead.
    const auto types = node->Get<std::vector<Dtype>>("Tlist", {});
    node->SetOutputTypes(DtypeVector(types.begin(), types.end()));
    return OkStatus();
  }
  if (node->def_ == nullptr) {
    node->SetInputTypes(DtypeVector(node->inputs_.size(), Dtype::kInvalid));
    return OkStatus();
  }
  auto in = ArgTypes(node->def_->inputs, *node->def_, node->attrs_);
  auto out = ArgTypes(node->def_->outputs, *node->def_, node->attrs_);
  if (!in.ok()) return Prefix(in.status(), absl::StrCat("Node '", node->name_, "': "));
  if (!out.ok()) return Prefix(out.status(), absl::StrCat("Node '", node->name_, "': "));
  if (node->input_types == *in && node->output_types == *out) return OkStatus();
  node->SetInputTypes(*std::move(in));
  node->SetOutputTypes(*std::move(out));
  ++version_;
  return OkStatus();
}

Status Graph::Rename(Node* node, absl::string_view name) {
  if (name == node->name_) return OkStatus();
  if (by_name_.contains(name)) return AlreadyExists("Node '", name, "' is not unique");
  by_name_.erase(absl::string_view(node->name_));
  node->name_ = std::string(name);
  by_name_.insert({NameHash()(name), node});
  Touch(node);
  return OkStatus();
}

std::string Graph::FreeName(absl::string_view base) const {
  auto it = next_free_.find(base);
  if (it == next_free_.end()) {
    if (!by_name_.contains(base)) return std::string(base);
    it = next_free_.emplace(base, 1).first;
  } else if (!by_name_.contains(base)) {
    return std::string(base);
  }
  for (int& next = it->second;; ++next) {
    std::string name = absl::StrCat(base, "_", next);
    if (!by_name_.contains(name)) return name;
  }
}

void Graph::Touch(Node* node) {
  node->Touch();
  ++version_;
}

void Graph::SetOp(Node* node, absl::string_view op) {
  Touch(node);
  node->op_name_ = OpName::Of(op);
  node->op_text_ = node->op_name_.unknown() ? std::string(op) : std::string();
  node->def_ = library_->FindOp(op, node->op_name_);
}

void Graph::Erase(Node* node) {
  ++version_;
  by_name_.erase(absl::string_view(node->name_));
  nodes_[static_cast<size_t>(node->id_)].reset();
  --live_;
}

void Graph::Remove(Node* node) {
  Node* const nodes[] = {node};
  Remove(nodes);
}

void Graph::Remove(std::span<Node* const> nodes) {
  for (Node* n : nodes) {
    DropInputs(n);
    DropControlInputs(n);
  }
  for (Node* n : nodes) {
    for (const Use& use : n->uses_) {
      Touch(use.node);
      if (use.is_control()) {
        use.node->control_inputs_[static_cast<size_t>(-1 - use.input)] = nullptr;
      } else {
        use.node->inputs_[static_cast<size_t>(use.input)] = {};
      }
    }
    Erase(n);
  }
}

// ---- edges

void Graph::Link(Node* node, int i) {
  Touch(node);
  const auto at = static_cast<size_t>(i);
  Node* source = node->inputs_[at].node;
  if (source == nullptr) return;
  if (!Has(source)) {
    node->inputs_[at] = {};
    return;
  }
  node->input_places_[at] = static_cast<int>(source->uses_.size());
  source->uses_.push_back({node, i});
}

void Graph::LinkControl(Node* node, int i) {
  Touch(node);
  const auto at = static_cast<size_t>(i);
  Node* source = node->control_inputs_[at];
  if (source == nullptr) return;
  if (!Has(source)) {
    node->control_inputs_[at] = nullptr;
    return;
  }
  node->control_places_[at] = static_cast<int>(source->uses_.size());
  source->uses_.push_back({node, -1 - i});
}

// The last use moves to the place of the one that is dropped.
void Graph::DropUse(Node* source, int place) {
  if (source == nullptr) return;  // an open input
  Node::Uses& uses = source->uses_;
  const Use moved = uses.back();
  uses.pop_back();
  if (static_cast<size_t>(place) == uses.size()) return;
  uses[static_cast<size_t>(place)] = moved;
  if (moved.is_control()) {
    moved.node->control_places_[static_cast<size_t>(-1 - moved.input)] = place;
  } else {
    moved.node->input_places_[static_cast<size_t>(moved.input)] = place;
  }
}

void Graph::DropInputs(Node* node) {
  Touch(node);
  for (size_t i = 0; i < node->inputs_.size(); ++i) {
    DropUse(node->inputs_[i].node, node->input_places_[i]);
  }
  node->inputs_.clear();
  node->input_places_.clear();
}

void Graph::DropControlInputs(Node* node) {
  Touch(node);
  for (size_t i = 0; i < node->control_inputs_.size(); ++i) {
    DropUse(node->control_inputs_[i], node->control_places_[i]);
  }
  node->control_inputs_.clear();
  node->control_places_.clear();
}

void Graph::SetInput(Node* node, int i, Endpoint from) {
  Endpoint& input = node->inputs_[static_cast<size_t>(i)];
  if (input == from) return;
  if (input.node == from.node) {
    input.port = from.port;
    Touch(node);
    return;
  }
  DropUse(input.node, node->input_places_[static_cast<size_t>(i)]);
  input = from;
  Link(node, i);
}

void Graph::SetInputs(Node* node, std::span<const Endpoint> from) {
  if (std::ranges::equal(from, node->inputs_)) return;
  const Node::Inputs fresh(from.begin(), from.end());  // `from` may be the node's own
  DropInputs(node);
  node->inputs_ = fresh;
  node->input_places_.resize(node->inputs_.size());
  for (int i = 0; i < node->num_inputs(); ++i) Link(node, i);
}

void Graph::AddInput(Node* node, Endpoint from) {
  node->inputs_.push_back(from);
  node->input_places_.push_back(0);
  Link(node, node->num_inputs() - 1);
}

// The position among the node's control inputs, or -1. Searches the shorter of the two lists: many
// nodes may wait for one, and one for many.
int Graph::FindControlInput(const Node* node, const Node* from) {
  const std::vector<Node*>& inputs = node->control_inputs_;
  if (inputs.size() <= from->uses_.size()) {
    const auto it = std::ranges::find(inputs, from);
    return it == inputs.end() ? -1 : static_cast<int>(it - inputs.begin());
  }
  for (const Use& u : from->uses_) {
    if (u.node == node && u.is_control()) return -1 - u.input;
  }
  return -1;
}

// A short list keeps its order, so that a model that was read is written in the same order; in a
// long one the last input moves to the place, which takes constant time.
void Graph::DropControlInput(Node* node, int i) {
  constexpr int kShort = 64;
  Touch(node);
  std::vector<Node*>& inputs = node->control_inputs_;
  std::vector<int>& places = node->control_places_;
  DropUse(inputs[static_cast<size_t>(i)], places[static_cast<size_t>(i)]);
  const int last = static_cast<int>(inputs.size()) - 1;
  const auto move = [&](int from, int to) {
    const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
    inputs[t] = inputs[f];
    places[t] = places[f];
    if (inputs[t] != nullptr) inputs[t]->uses_[static_cast<size_t>(places[t])].input = -1 - to;
  };
  if (last < kShort) {
    for (int k = i; k < last; ++k) move(k + 1, k);
  } else if (i < last) {
    move(last, i);
  }
  inputs.pop_back();
  places.pop_back();
}

void Graph::AddControlInput(Node* node, Node* from) {
  if (FindControlInput(node, from) >= 0) return;
  node->control_inputs_.push_back(from);
  node->control_places_.push_back(0);
  LinkControl(node, static_cast<int>(node->control_inputs_.size()) - 1);
}

void Graph::RemoveControlInput(Node* node, Node* from) {
  const int i = FindControlInput(node, from);
  if (i >= 0) DropControlInput(node, i);
}

void Graph::SetControlInputs(Node* node, std::vector<Node*> from) {
  if (from.size() > 1) {
    absl::flat_hash_set<const Node*> seen;
    std::erase_if(from, [&](const Node* n) { return !seen.insert(n).second; });
  }
  if (from == node->control_inputs_) return;
  DropControlInputs(node);
  node->control_inputs_ = std::move(from);
  node->control_places_.resize(node->control_inputs_.size());
  for (size_t i = 0; i < node->control_inputs_.size(); ++i) LinkControl(node, static_cast<int>(i));
}

void Graph::SetOrderedControlInputs(Node* node, std::vector<Node*> from) {
  std::ranges::sort(from, {}, &Node::id);
  SetControlInputs(node, std::move(from));
}

void Graph::ReplaceAllUses(Endpoint from, Endpoint to) {
  if (from == to) return;
  // A copy: SetInput takes redirected uses out of the node's own list.
  const Node::Uses uses = from.node->uses_;
  for (const Use& u : uses) {
    if (u.port() == from.port) SetInput(u.node, u.input, to);
  }
}

void Graph::ReplaceOtherUses(Endpoint from, Endpoint to) {
  const Node::Uses uses = from.node->uses_;
  for (const Use& u : uses) {
    if (u.port() == from.port && u.node != to.node) SetInput(u.node, u.input, to);
  }
}

void Graph::ReplaceControlUses(Node* from, Node* to) {
  if (from == to) return;
  const Node::Uses uses = from->uses_;
  for (const Use& u : uses) {
    if (!u.is_control()) continue;
    // Looked up each time: dropping an edge moves the positions of others.
    const int i = FindControlInput(u.node, from);
    if (to == nullptr || to == u.node || FindControlInput(u.node, to) >= 0) {
      DropControlInput(u.node, i);
      continue;
    }
    DropUse(from, u.node->control_places_[static_cast<size_t>(i)]);
    u.node->control_inputs_[static_cast<size_t>(i)] = to;
    LinkControl(u.node, i);
  }
}

void Node::SetInputTypes(DtypeVector types) {
  Touch();
  input_types.types_ = std::move(types);
}

void Node::SetOutputTypes(DtypeVector types) {
  if (output_types == types) return;
  Touch();
  for (const Use& use : uses_) use.node->Touch();
  output_types.types_ = std::move(types);
}

void Node::GrowOutputs(size_t count) {
  if (count <= output_types.size()) return;
  Touch();  // readers of the outputs that were there read what they did
  output_types.types_.resize(count);
}

std::vector<Use> Node::OrderedUses() const {
  std::vector<Use> uses(uses_.begin(), uses_.end());
  std::ranges::sort(uses, [](const Use& a, const Use& b) {
    const int x = a.node->id(), y = b.node->id();
    // Control edges come after data edges.
    const auto place = [](int input) {
      return input < 0 ? std::pair(1, -input) : std::pair(0, input);
    };
    return x != y ? x < y : place(a.input) < place(b.input);
  });
  return uses;
}

int Node::NumUses(int port) const {
  return static_cast<int>(
      std::ranges::count_if(uses_, [&](const Use& u) { return u.port() == port; }));
}

// ---- looking

Node* Graph::Find(absl::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->node;
}

StatusOr<Endpoint> Graph::FindEndpoint(absl::string_view name) const {
  absl::string_view node_name = name;
  int port = 0;
  const bool control = !name.empty() && name[0] == '^';
  if (control) {
    node_name.remove_prefix(1);
    port = -1;
  } else if (const size_t colon = name.rfind(':'); colon != absl::string_view::npos) {
    if (!absl::SimpleAtoi(name.substr(colon + 1), &port) || port < 0) {
      return InvalidArgument("'", name, "' is not the name of a tensor (node:index)");
    }
    node_name = name.substr(0, colon);
  }
  Node* node = Find(node_name);
  if (node == nullptr) {
    return NotFound("The name '", name, "' refers to a node which is not in the graph");
  }
  if (port >= node->num_outputs() && !control) {
    return InvalidArgument("The name '", name, "' refers to output ", port, " of node '", node_name,
                           "' (", node->op(), "), which has ", node->num_outputs(), " outputs");
  }
  return Endpoint{node, port};
}

LiveNodes::operator std::vector<Node*>() const {
  std::vector<Node*> out;
  out.reserve(graph_->num_nodes());
  for (Node* n : *this) out.push_back(n);
  return out;
}

StatusOr<std::vector<Node*>> Graph::TopologicalOrder() const {
  absl::MutexLock lock(&order_->mutex);
  if (order_->version != version_) {
    RETURN_IF_ERROR(FindOrder(&order_->nodes));
    order_->version = version_;
  }
  return order_->nodes;
}

Status Graph::FindOrder(std::vector<Node*>* order) const {
  // Nodes are read once, and edges kept as numbers: nodes lie far apart. Readers are listed in the
  // order of the graph, not in that of uses(), which means nothing.
  std::vector<int> pending(nodes_.size(), 0);
  std::vector<int> first(nodes_.size() + 1, 0);
  std::vector<int> sources;
  for (const auto& n : nodes_) {
    if (!n) continue;
    const bool merge = n->Is(kMerges);
    const auto edge = [&](const Node* from) {
      if (from == nullptr || (merge && from->Is(kNextIterations))) return;
      sources.push_back(from->id_);
      ++first[static_cast<size_t>(from->id_) + 1];
      ++pending[static_cast<size_t>(n->id_)];
    };
    for (const Endpoint& e : n->inputs_) edge(e.node);
    for (const Node* c : n->control_inputs_) edge(c);
  }
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<int> readers(sources.size());
  std::vector<int> next(first.begin(), first.end() - 1);
  auto source = sources.begin();
  for (size_t id = 0; id < pending.size(); ++id) {
    for (int k = 0; k < pending[id]; ++k, ++source) {
      readers[static_cast<size_t>(next[static_cast<size_t>(*source)]++)] = static_cast<int>(id);
    }
  }

  std::vector<Node*>& out = *order;
  out.clear();
  out.reserve(static_cast<size_t>(live_));
  std::vector<int>& ids = next;  // of the nodes of the order
  ids.clear();
  for (size_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id] && pending[id] == 0) ids.push_back(static_cast<int>(id));
  }
  // A queue, so that the graph's own order is kept where edges leave a choice.
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    out.push_back(nodes_[id].get());
    for (int r = first[id]; r < first[id + 1]; ++r) {
      const int reader = readers[static_cast<size_t>(r)];
      if (--pending[static_cast<size_t>(reader)] == 0) ids.push_back(reader);
    }
  }
  if (static_cast<int>(out.size()) == live_) return OkStatus();
  for (const auto& n : nodes_) {
    if (n && pending[static_cast<size_t>(n->id_)] > 0) {
      return InvalidArgument("Graph has a cycle through node '", n->name_, "' (", n->op(), ")");
    }
  }
  return OkStatus();
}

// ---- the whole

void Graph::Prune(const std::vector<Node*>& roots) {
  std::vector<bool> keep(nodes_.size(), false);
  std::vector<const Node*> stack;
  auto visit = [&](const Node* n) {
    if (!keep[n->id_]) {
      keep[n->id_] = true;
      stack.push_back(n);
    }
  };
  for (const Node* r : roots) visit(r);
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    for (const Endpoint& e : n->inputs_) visit(e.node);
    for (const Node* c : n->control_inputs_) visit(c);
  }
  std::vector<Node*> gone;
  for (const auto& n : nodes_) {
    if (n && !keep[n->id_]) gone.push_back(n.get());
  }
  Remove(gone);
}

StatusOr<NodeCopies> Graph::CopyFrom(const Graph& other, absl::string_view prefix) {
  NodeCopies map;
  map.copies_.resize(other.nodes_.size());
  by_name_.reserve(by_name_.size() + static_cast<size_t>(other.live_));
  for (const auto& n : other.nodes_) {
    if (!n) continue;
    std::string name = absl::StrCat(prefix, n->name_);
    Node* copy = TryAddOfNoOp(std::move(name));
    if (copy == nullptr && prefix.empty()) {
      return AlreadyExists("Node '", name, "' is not unique");
    }
    if (copy == nullptr) copy = TryAddOfNoOp(FreeName(name));
    if (library_ == other.library_) {
      copy->op_name_ = n->op_name_;
      copy->op_text_ = n->op_text_;
      copy->def_ = n->def_;
      ++version_;
    } else {
      SetOp(copy, n->op());
    }
    copy->attrs_ = n->attrs_;
    copy->device = n->device;
    copy->SetInputTypes(n->input_types);
    copy->SetOutputTypes(n->output_types);
    copy->opaque_outputs = n->opaque_outputs;
    copy->extra = n->extra;
    map.copies_[static_cast<size_t>(n->id_)] = copy;
  }
  for (const auto& n : other.nodes_) {
    if (!n) continue;
    Node* copy = map.Of(n.get());
    Node::Inputs inputs = n->inputs_;
    for (Endpoint& e : inputs) e.node = map.Of(e.node);
    SetInputs(copy, inputs);
    if (n->control_inputs_.empty()) continue;
    std::vector<Node*> controls = n->control_inputs_;
    for (Node*& c : controls) c = map.Of(c);
    SetControlInputs(copy, std::move(controls));
  }
  return map;
}

StatusOr<std::unique_ptr<Graph>> Graph::Clone() const {
  auto copy = std::make_unique<Graph>(library_);
  RETURN_IF_ERROR(copy->CopyFrom(*this, "").status());
  return copy;
}

std::string EndpointName(Endpoint e) {
  if (e.port < 0) return absl::StrCat("^", e.node->name());
  return e.port == 0 ? e.node->name() : absl::StrCat(e.node->name(), ":", e.port);
}

std::pair<int, int> InputRange(const Node& n, absl::string_view name) {
  if (n.def() == nullptr) return {0, 0};
  int at = 0;
  for (const ArgDef& arg : n.def()->inputs) {
    auto arity = ArgArity(arg, *n.def(), n.attrs());
    if (!arity.ok() || *arity > n.num_inputs() - at) return {0, 0};
    if (arg.name == name) return {at, static_cast<int>(*arity)};
    at += static_cast<int>(*arity);
  }
  return {0, 0};
}

bool CallsFunctions(const FunctionLibrary& library, const Node& node) {
  bool calls = false;
  ForEachCallee(library, node, [&](absl::string_view) { calls = true; });
  return calls;
}

std::vector<std::string> CalledFunctions(const Graph& graph) {
  std::vector<std::string> out;
  absl::flat_hash_set<std::string> seen;
  for (const Node* n : graph.Nodes()) {
    ForEachCallee(*graph.library(), *n, [&](absl::string_view name) {
      if (seen.emplace(name).second) out.emplace_back(name);
    });
  }
  return out;
}

}  // namespace smelt
