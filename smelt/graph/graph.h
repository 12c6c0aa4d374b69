// Graph, Function, FunctionLibrary: the one form in which every part of smelt sees a model's
// computation. The graph owns its types; wire/ translates to and from TensorFlow's protos, text.h
// prints and parses it.
//
// A Graph is not thread safe; a Graph that nobody changes may be read from any thread.
#ifndef SMELT_GRAPH_GRAPH_H_
#define SMELT_GRAPH_GRAPH_H_

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "smelt/graph/attr.h"
#include "smelt/graph/node.h"
#include "smelt/graph/op_def.h"

namespace smelt {

class FunctionLibrary;

// Where the nodes of one graph have their copies in another.
class NodeCopies {
 public:
  // nullptr of nullptr. REQUIRES: the node was copied, and is still there.
  Node* Of(const Node* n) const {
    return n == nullptr ? nullptr : copies_[static_cast<size_t>(n->id())];
  }

 private:
  friend class Graph;
  std::vector<Node*> copies_;  // by the id of what was copied
};

class LiveNodes;

// Nodes, and the edges between them. Edges are changed here alone, so that who uses a node is known
// at any time. Changing or removing one edge takes constant time, whoever else uses its source.
class Graph {
 public:
  explicit Graph(std::shared_ptr<FunctionLibrary> library);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  // ---- nodes

  // A node with its definition looked up (functions of the library, then the model's own ops, then
  // TensorFlow's); an op that none of them has makes an opaque node. ALREADY_EXISTS for a taken
  // name. Types are set by ResolveTypes.
  StatusOr<Node*> AddNode(absl::string_view name, absl::string_view op);
  // AddNode under a free name (name, name_1, ...), with attributes and inputs, and types resolved.
  // For passes. INTERNAL when the inputs are not as many as the definition wants. After an error
  // the incomplete node stays.
  StatusOr<Node*> Add(absl::string_view name, absl::string_view op,
                      std::span<const Endpoint> inputs, AttrMap attrs = {});
  StatusOr<Node*> Add(absl::string_view name, absl::string_view op,
                      std::initializer_list<Endpoint> inputs, AttrMap attrs = {}) {
    return Add(name, op, std::span<const Endpoint>(inputs.begin(), inputs.size()),
               std::move(attrs));
  }
  // A Const node of `value` under a free name.
  Node* AddConst(absl::string_view name, const Tensor& value);
  // Sets input_types and output_types from the definition and attributes. INVALID_ARGUMENT names
  // the node and the attribute that is missing. Opaque nodes get inputs of unknown type, and their
  // outputs stay: the readers of models (wire/, text.h) make as many as are read.
  Status ResolveTypes(Node* node);
  // ALREADY_EXISTS for a taken name.
  Status Rename(Node* node, absl::string_view name);
  // `base` where no node has it, else one of base_1, base_2, ... that none has.
  std::string FreeName(absl::string_view base) const;
  // Changes the op and looks up its definition; attributes, edges and types stay. For an op of the
  // same inputs and outputs, such as a call of another function.
  void SetOp(Node* node, absl::string_view op);
  // REQUIRES: nothing uses the node. Inputs that do are left open.
  void Remove(Node* node);
  // REQUIRES: each stands in the list once, and nothing but these nodes uses any of them.
  void Remove(std::span<Node* const> nodes);

  // ---- edges. An input may be left open ({nullptr, 0}), and one that is to come from a node of
  // another graph is. A graph with open inputs does not verify; an open control input is nullptr,
  // which nobody but the verifier expects.

  // REQUIRES: 0 <= i < num_inputs().
  void SetInput(Node* node, int i, Endpoint from);
  void SetInputs(Node* node, std::span<const Endpoint> from);
  void SetInputs(Node* node, std::initializer_list<Endpoint> from) {
    SetInputs(node, std::span<const Endpoint>(from.begin(), from.size()));
  }
  void AddInput(Node* node, Endpoint from);
  // Nothing happens when the edge is there already.
  void AddControlInput(Node* node, Node* from);
  // Nothing happens when the edge is not there.
  void RemoveControlInput(Node* node, Node* from);
  // Repetitions are dropped; the order of the others is kept.
  void SetControlInputs(Node* node, std::vector<Node*> from);
  // The same in the order of ids, whatever the order of `from`.
  void SetOrderedControlInputs(Node* node, std::vector<Node*> from);
  // Every data input that reads `from` reads `to` instead.
  void ReplaceAllUses(Endpoint from, Endpoint to);
  // The same, except for the inputs of to.node: for a node that is put between `from` and its
  // readers.
  void ReplaceOtherUses(Endpoint from, Endpoint to);
  // Every control input from `from` comes from `to` instead, or is dropped: where `to` is nullptr,
  // and at `to` itself.
  void ReplaceControlUses(Node* from, Node* to);

  // ---- looking

  Node* Find(absl::string_view name) const;
  // "node", "node:1" or "^node" (port -1). NOT_FOUND names the node, INVALID_ARGUMENT the output
  // that it does not have.
  StatusOr<Endpoint> FindEndpoint(absl::string_view name) const;
  // Live nodes in the order they were added: a view, or a vector of them where one is made of it.
  // Gone through as a view, a node removed on the way does not come, nor one added on the way.
  LiveNodes Nodes() const;
  int num_nodes() const { return live_; }
  // Grows with every change of a node's name, op, edges or types, so that results can be kept while
  // it stays the same. Changes of other attributes do not count.
  int64_t version() const { return version_; }
  // One more than the largest id.
  int max_id() const { return static_cast<int>(nodes_.size()); }
  // nullptr when the node was removed. REQUIRES: 0 <= id < max_id().
  Node* NodeOf(int id) const { return nodes_[static_cast<size_t>(id)].get(); }
  // Nodes with inputs before readers; the back edges of version 1 loops (NextIteration -> Merge) do
  // not count. INVALID_ARGUMENT names a cycle. Found once for each version().
  StatusOr<std::vector<Node*>> TopologicalOrder() const;

  // The ids of nodes whose name, op, attributes, types or edges into them, or the output types that
  // they read, may have changed since the node was forgotten; of new nodes too. Nodes may be gone.
  const std::vector<int>& touched() const { return *touched_; }
  // Empties the list, except for nodes that keep(const Node&) wants in it.
  template <typename F>
  void ForgetTouched(F keep) {
    std::erase_if(*touched_, [&](int id) {
      Node* n = NodeOf(id);
      if (n != nullptr) n->touched_ = keep(static_cast<const Node&>(*n));
      return n == nullptr || !n->touched_;
    });
  }

  // ---- the whole

  // Removes nodes that `roots` do not reach through data or control edges.
  void Prune(const std::vector<Node*>& roots);
  // Never nullptr. The body of a function in a library does not own it: it must not outlive the
  // library.
  const std::shared_ptr<FunctionLibrary>& library() const { return library_; }
  // Copies all nodes of `other`. With a prefix the names are prefix+name, made free; without one
  // ALREADY_EXISTS for a taken name.
  StatusOr<NodeCopies> CopyFrom(const Graph& other, absl::string_view prefix);
  // A copy with the same library. Ids are given anew, removed nodes leaving no gaps.
  StatusOr<std::unique_ptr<Graph>> Clone() const;

 private:
  friend class FunctionLibrary;
  StatusOr<Node*> AddNamed(std::string name, absl::string_view op);
  // For those who say the op next. nullptr where the name is taken; it is left as it was then.
  Node* TryAddOfNoOp(std::string&& name);
  Status FindOrder(std::vector<Node*>* order) const;
  void Touch(Node* node);
  bool Has(const Node* node) const { return node->touched_nodes_ == touched_.get(); }
  void Link(Node* node, int i);
  void LinkControl(Node* node, int i);
  static void DropUse(Node* source, int place);
  void DropInputs(Node* node);
  void DropControlInputs(Node* node);
  void DropControlInput(Node* node, int i);
  static int FindControlInput(const Node* node, const Node* from);
  void Erase(Node* node);

  std::shared_ptr<FunctionLibrary> library_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<std::vector<int>> touched_;  // nodes point to it, wherever the graph moves
  // Nodes by their own names. The hash is kept, so that the set can grow without reading names.
  struct Named {
    size_t hash;
    Node* node;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(const Named& n) const { return n.hash; }
    size_t operator()(absl::string_view name) const {
      return absl::Hash<absl::string_view>()(name);
    }
  };
  struct NameEqual {
    using is_transparent = void;
    bool operator()(const Named& a, const Named& b) const {
      return a.hash == b.hash && a.node->name() == b.node->name();
    }
    bool operator()(const Named& a, absl::string_view b) const { return a.node->name() == b; }
  };
  absl::flat_hash_set<Named, NameHash, NameEqual> by_name_;
  // By base name, the number that FreeName tries first. Smaller ones were taken when it asked; a
  // name that is freed later is not offered again.
  mutable absl::flat_hash_map<std::string, int> next_free_;
  int live_ = 0;
  int64_t version_ = 0;
  // What TopologicalOrder found last. Any thread may ask for it.
  struct Order {
    absl::Mutex mutex;
    int64_t version ABSL_GUARDED_BY(mutex) = -1;
    std::vector<Node*> nodes ABSL_GUARDED_BY(mutex);
  };
  std::unique_ptr<Order> order_;
};

// What Graph::Nodes gives. Goes by ids, which stay what they are; the graph outlives it.
class LiveNodes {
 public:
  class Iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Graph* graph, int id, int end) : graph_(graph), id_(id), end_(end) { Skip(); }
    Node* operator*() const { return graph_->NodeOf(id_); }
    Iterator& operator++() {
      ++id_;
      Skip();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    // One that stands on a node removed meanwhile is where it was.
    bool operator==(const Iterator& other) const { return id_ == other.id_; }

   private:
    void Skip() {
      while (id_ < end_ && graph_->NodeOf(id_) == nullptr) ++id_;
    }
    const Graph* graph_ = nullptr;
    int id_ = 0, end_ = 0;
  };

  explicit LiveNodes(const Graph& graph) : graph_(&graph), end_(graph.max_id()) {}
  Iterator begin() const { return {graph_, 0, end_}; }
  Iterator end() const { return {graph_, end_, end_}; }
  operator std::vector<Node*>() const;  // NOLINT(google-explicit-constructor)

 private:
  const Graph* graph_;
  int end_;
};

inline LiveNodes Graph::Nodes() const { return LiveNodes(*this); }

// A function: a signature and a body. In the body argument i is a node of op "_Arg" with attributes
// T and index, named as the argument; a list argument has one output per element.
struct Function {
  OpDef signature;
  AttrMap attrs;
  std::unique_ptr<Graph> body;
  std::vector<Node*> args;                                     // by argument
  std::vector<std::vector<Endpoint>> results;                  // by output argument
  std::vector<std::pair<std::string, Node*>> control_results;  // name, node
  std::map<int, AttrMap> arg_attrs;                            // by argument (FunctionDef.arg_attr)
  std::string extra;  // serialized FunctionDef fields that smelt only carries

  const std::string& name() const { return signature.name; }
  // The arguments one after another, lists expanded: the inputs of a call.
  std::vector<Endpoint> FlatArguments() const;
  // The position of an argument's endpoint among FlatArguments; -1 for any other.
  int FlatPosition(Endpoint argument) const;
  // The results one after another, lists expanded: the outputs of a call.
  std::vector<Endpoint> FlatResults() const;
  // A copy that is in no library yet; its body names this one's library.
  StatusOr<std::unique_ptr<Function>> Clone(absl::string_view new_name) const;
};

// The functions of a model, and ops that the model defines beside TensorFlow's. Not thread safe
// while it changes; one that nobody changes may be read from any thread.
class FunctionLibrary {
 public:
  Function* Find(absl::string_view name) const;
  // ALREADY_EXISTS for a taken name.
  Status Add(std::unique_ptr<Function> function);
  // Destroys the function, if there is one.
  void Remove(absl::string_view name);
  // Renames the definition alone; nodes that call it keep the old name. NOT_FOUND, ALREADY_EXISTS.
  Status Rename(absl::string_view from, absl::string_view to);
  std::vector<Function*> Functions() const;  // in the order added
  // `base`, or base_1, base_2, ...: the first that is neither a function nor an op.
  std::string FreeName(absl::string_view base) const;

  void AddOp(OpDef def);  // ignored where TensorFlow has the op
  // Functions, then own ops, then TensorFlow's.
  const OpDef* FindOp(absl::string_view name) const { return FindOp(name, OpName::Of(name)); }
  // The same for those who know its number. REQUIRES: `op` is of `name`.
  const OpDef* FindOp(absl::string_view name, OpName op) const;
  const std::map<std::string, std::unique_ptr<OpDef>, std::less<>>& own_ops() const { return ops_; }

  // function name -> name of its gradient function.
  std::map<std::string, std::string> gradients;
  // (op type, name of its gradient function), as FunctionDefLibrary.registered_gradients.
  std::vector<std::pair<std::string, std::string>> registered_gradients;

 private:
  std::vector<std::unique_ptr<Function>> functions_;
  absl::flat_hash_map<std::string, Function*> by_name_;
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops_;
  // Signatures that Declare announced.
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> declared_;

 public:
  // Announces a function, so that nodes calling it find its definition before its body is added.
  void Declare(const OpDef& signature);
};

// A call of the function that attribute `f` names.
inline bool IsPartitionedCall(const Node& n) {
  return n.Is("PartitionedCall") || n.Is("StatefulPartitionedCall");
}

// "node" or "node:2"; a control input prints as "^node".
std::string EndpointName(Endpoint e);

// The inputs that make up the definition's argument `name`: {first, how many}; {0, 0} when the op
// has no such argument or the node lacks inputs.
std::pair<int, int> InputRange(const Node& node, absl::string_view name);

// Calls visit(name) for each function that the node may run: the one that is its op, then those
// that its attributes name, which the library may lack (op names, mistakes). Names may repeat.
template <typename F>
void ForEachCallee(const FunctionLibrary& library, const Node& node, F visit) {
  if (library.Find(node.op()) != nullptr) visit(node.op());
  ForEachFunc(node.attrs(), [&](const FuncAttr& f) { visit(absl::string_view(f.name)); });
}
bool CallsFunctions(const FunctionLibrary& library, const Node& node);

// The callees of all nodes of `graph`, without repetition.
std::vector<std::string> CalledFunctions(const Graph& graph);

}  // namespace smelt

#endif  // SMELT_GRAPH_GRAPH_H_
