// TensorFlow's common_subgraph_elimination.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "smelt/base/sampled_hash.h"
#include "smelt/graph/op_facts.h"
#include "smelt/optimize/passes.h"

namespace smelt {
namespace {

// A .tflite file's tables are filled before anything looks into them, and not written after that.
constexpr OpSet kCanStandForAnother = {"Assert", "Print", "tfl.hashtable_find"};
constexpr OpSet kOfOneFrame = {"Enter", "RefEnter", "Exit", "RefExit"};

// The bytes that say all values; nothing of types that are no plain bytes.
absl::string_view NeededBytes(const TensorValue& t) {
  if (!t.values.valid() || !IsPod(t.values.dtype())) return {};
  return {static_cast<const char*>(t.values.raw()),
          static_cast<size_t>(t.needed_values()) * DtypeSize(t.values.dtype())};
}

// However many values each states.
bool SameConstant(const TensorValue& a, const TensorValue& b) {
  return IsPod(a.dtype) && a.dtype == b.dtype && a.shape == b.shape && a.problem.empty() &&
         b.problem.empty() && a.wire.empty() && b.wire.empty() && NeededBytes(a) == NeededBytes(b);
}

bool SameAttr(const Attr& a, const Attr& b) {
  if (a == b) return true;
  const auto* x = a.get<std::shared_ptr<const TensorValue>>();
  const auto* y = b.get<std::shared_ptr<const TensorValue>>();
  return x != nullptr && y != nullptr && *x != nullptr && *y != nullptr && SameConstant(**x, **y);
}

size_t HashTensor(const TensorValue& t) {
  return absl::HashOf(t.dtype, t.shape.ToString(), SampledHash(NeededBytes(t)));
}

size_t HashAttr(const Attr& attr) {
  if (const auto* s = attr.get<std::string>()) return absl::HashOf(*s);
  if (const auto* i = attr.get<int64_t>()) return absl::HashOf(*i);
  if (const auto* t = attr.get<Dtype>()) return absl::HashOf(*t);
  if (const auto* l = attr.get<std::vector<int64_t>>()) return absl::HashOf(*l);
  if (const auto* f = attr.get<FuncAttr>()) return absl::HashOf(f->name);
  if (const auto* v = attr.get<std::shared_ptr<const TensorValue>>()) {
    return *v == nullptr ? 0 : HashTensor(**v);
  }
  return attr.value().index();
}

bool IsCommutative(const Node& n) {
  return n.def() != nullptr && (n.def()->commutative || n.Is(kCommutativeOps) || n.Is("Add")) &&
         !(n.Is("Add") && n.Type("T") == Dtype::kString);
}

std::vector<Node*> InOrder(std::vector<Node*> nodes) {
  std::ranges::sort(nodes, {}, &Node::id);
  return nodes;
}

// What two nodes must have in common for one to stand for both.
bool AreSame(const Node* a, const Node* b) {
  return a->op() == b->op() && a->device == b->device &&
         std::ranges::equal(a->inputs(), b->inputs()) &&
         InOrder(a->control_inputs()) == InOrder(b->control_inputs()) &&
         std::ranges::equal(a->attrs(), b->attrs(), [](const auto& x, const auto& y) {
           return x.first == y.first && SameAttr(x.second, y.second);
         });
}

size_t HashNode(const Node& n) {
  size_t hash = absl::HashOf(n.op(), n.device, n.num_inputs());
  for (const Endpoint& e : n.inputs()) hash = absl::HashOf(hash, e.node, e.port);
  size_t sum = 0;
  for (const Node* c : n.control_inputs()) sum += absl::HashOf(c);
  for (const auto& [name, attr] : n.attrs()) sum += absl::HashOf(name, HashAttr(attr));
  return absl::HashOf(hash, sum);
}

// The hash is kept, so that a set can grow without reading nodes.
struct Candidate {
  size_t hash;
  Node* node;
};
struct Same {
  size_t operator()(const Candidate& c) const { return c.hash; }
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.hash == b.hash && AreSame(a.node, b.node);
  }
};

class Eliminator {
 public:
  Eliminator(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  Status Run() {
    for (Node* n : graph_.Nodes()) SortInputs(n);
    FindWrittenInPlace();
    // With inputs before readers one walk finds all: who reads a duplicate is looked at after it.
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    absl::flat_hash_set<Candidate, Same, Same> unique;
    std::vector<Node*> duplicates;
    for (Node* n : order) {
      if (!MayGo(*n)) continue;
      const auto [found, added] = unique.insert({HashNode(*n), n});
      if (added) continue;
      Node* stays = found->node;
      context_.Fired("Dedup", *n, stays->name());
      std::vector<Node*> readers;
      for (const Use& use : n->uses()) readers.push_back(use.node);
      for (int port = 0; port < n->num_outputs(); ++port) {
        graph_.ReplaceAllUses({n, port}, {stays, port});
      }
      graph_.ReplaceControlUses(n, stays);
      for (Node* reader : readers) SortInputs(reader);
      duplicates.push_back(n);
    }
    if (!context_.fetch_known) return OkStatus();
    std::ranges::reverse(duplicates);
    for (Node* n : duplicates) graph_.Remove(n);
    return OkStatus();
  }

 private:
  bool MayGo(const Node& n) const {
    if (IsRoot(n) || n.Is(kOfOneFrame) || n.device.find("SPU") != std::string::npos) return false;
    if (!n.Is(kCanStandForAnother) && !IsFreeOfSideEffect(n)) return false;
    return !written_.contains(&n);
  }

  // The order of what a commutative op reads means nothing.
  void SortInputs(Node* n) {
    if (!IsCommutative(*n) || n->num_inputs() < 2) return;
    Node::Inputs sorted = n->inputs();
    std::ranges::sort(sorted, [](const Endpoint& a, const Endpoint& b) {
      return a.node == b.node ? a.port < b.port : a.node->name() < b.node->name();
    });
    graph_.SetInputs(n, std::span<const Endpoint>(sorted.data(), sorted.size()));
  }

  // Nodes whose memory an op writes into, perhaps through ops that may pass their input on.
  void FindWrittenInPlace() {
    std::vector<const Node*> todo;
    for (const Node* n : graph_.Nodes()) {
      if (n->Is(kWritesInPlace) || n->Bool("in_place") || n->Bool("inplace")) todo.push_back(n);
    }
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      for (const Endpoint& e : n->inputs()) {
        if (written_.insert(e.node).second) todo.push_back(e.node);
      }
    }
  }

  Graph& graph_;
  const PassContext& context_;
  absl::flat_hash_set<const Node*> written_;
};

}  // namespace

Status EliminateCommonSubgraphs(Graph& graph, const PassContext& context) {
  return Eliminator(graph, context).Run();
}

}  // namespace smelt
