// Graph, Node, Function, FunctionLibrary: the one form in which every part of smelt sees a model's
// computation. The graph owns its types; wire/ translates to and from TensorFlow's protos, text.h
// prints and parses it.
//
// A Graph is not thread safe; a Graph that nobody changes may be read from any thread.
#ifndef SMELT_GRAPH_GRAPH_H_
#define SMELT_GRAPH_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "smelt/graph/attr.h"
#include "smelt/graph/op_def.h"

namespace smelt {

class Node;
class Graph;
class FunctionLibrary;

// One output of a node.
struct Endpoint {
  Node* node = nullptr;
  int port = 0;
  bool operator==(const Endpoint&) const = default;
};

class Node {
 public:
  const std::string& name() const { return name_; }
  const std::string& op() const { return op_; }
  // nullptr: an op that neither TensorFlow, the model's own op list nor its functions define. Such
  // a node is opaque: shown and carried, never run.
  const OpDef* def() const { return def_; }
  // Position in its graph; stable while the node lives.
  int id() const { return id_; }

  const AttrMap& attrs() const { return attrs_; }
  AttrMap& attrs() { return attrs_; }
  // The attribute, or the definition's default; nullptr when neither.
  const Attr* Find(absl::string_view name) const { return FindAttrOrDefault(def_, attrs_, name); }
  // Typed access; `otherwise` when absent or of another kind.
  template <typename T>
  T Get(absl::string_view name, T otherwise) const {
    const Attr* a = Find(name);
    const T* v = a ? a->get<T>() : nullptr;
    return v ? *v : std::move(otherwise);
  }
  int64_t Int(absl::string_view name, int64_t otherwise = 0) const {
    return Get<int64_t>(name, otherwise);
  }
  bool Bool(absl::string_view name, bool otherwise = false) const {
    return Get<bool>(name, otherwise);
  }
  float Float(absl::string_view name, float otherwise = 0) const {
    return Get<float>(name, otherwise);
  }
  Dtype Type(absl::string_view name, Dtype otherwise = Dtype::kInvalid) const {
    return Get<Dtype>(name, otherwise);
  }
  std::string String(absl::string_view name, std::string otherwise = "") const {
    return Get<std::string>(name, std::move(otherwise));
  }
  std::vector<int64_t> Ints(absl::string_view name) const {
    return Get<std::vector<int64_t>>(name, {});
  }
  // The function that the attribute names; nullptr when it names none.
  const FuncAttr* Func(absl::string_view name) const {
    const Attr* a = Find(name);
    return a ? a->get<FuncAttr>() : nullptr;
  }

  std::string device;
  std::vector<Endpoint> inputs;       // data inputs in the order of the definition
  std::vector<Node*> control_inputs;  // without order or repetition
  std::vector<Dtype> input_types;     // as the definition wants them
  std::vector<Dtype> output_types;
  // For opaque nodes inside functions: the names by which their outputs were read, "out_arg:index",
  // one for each port.
  std::vector<std::string> opaque_outputs;
  std::string extra;  // serialised NodeDef fields that smelt only carries (debug info, full type)

  int num_inputs() const { return static_cast<int>(inputs.size()); }
  int num_outputs() const { return static_cast<int>(output_types.size()); }
  bool Is(absl::string_view op) const { return op_ == op; }

 private:
  friend class Graph;
  std::string name_;
  std::string op_;
  const OpDef* def_ = nullptr;
  int id_ = -1;
  AttrMap attrs_;
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<FunctionLibrary> library);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  // A node with its definition looked up (functions of the library, then the model's own ops, then
  // TensorFlow's). ALREADY_EXISTS for a taken name. Types are set by Finish or ResolveTypes.
  StatusOr<Node*> AddNode(absl::string_view name, absl::string_view op);
  // AddNode under a name that is free (name, name_1, ...), attributes and inputs given, types
  // resolved. For passes.
  StatusOr<Node*> Add(absl::string_view name, absl::string_view op, std::vector<Endpoint> inputs,
                      AttrMap attrs = {});
  // A Const node of `value`.
  Node* AddConst(absl::string_view name, const Tensor& value);
  // Sets input_types and output_types from the definition and attributes. Opaque nodes: as many
  // outputs as attribute _output_types or the readers say.
  Status ResolveTypes(Node* node);

  // The node must have no readers left.
  void Remove(Node* node);
  Status Rename(Node* node, absl::string_view name);
  std::string FreeName(absl::string_view base) const;
  // Makes the node one of another op with the same inputs and outputs (a call of another function).
  void SetOp(Node* node, absl::string_view op);

  Node* Find(absl::string_view name) const;
  // "node", "node:1" or "^node". NOT_FOUND names it.
  StatusOr<Endpoint> FindEndpoint(absl::string_view name) const;

  // Live nodes in the order they were added.
  std::vector<Node*> Nodes() const;
  int num_nodes() const { return live_; }
  int max_id() const { return static_cast<int>(nodes_.size()); }
  // nullptr when it was removed. REQUIRES: 0 <= id < max_id().
  Node* NodeOf(int id) const { return nodes_[id].get(); }

  // Every reader of `from` reads `to` instead.
  void ReplaceAll(Endpoint from, Endpoint to);
  // Every node that waits for `from` waits for `to` (nullptr: for nothing) instead.
  void ReplaceControl(Node* from, Node* to);

  // Nodes with inputs before readers; the back edges of version 1 loops (NextIteration -> Merge) do
  // not count. INVALID_ARGUMENT names a cycle.
  StatusOr<std::vector<Node*>> TopologicalOrder() const;
  // Removes nodes that `roots` do not reach through data or control edges.
  void Prune(const std::vector<Node*>& roots);

  // A function's body does not own the library that it is in.
  const std::shared_ptr<FunctionLibrary>& library() const { return library_; }

  // Copies nodes of `other` (all of them) under prefix+name; the map from old to new is returned.
  StatusOr<absl::flat_hash_map<const Node*, Node*>> CopyFrom(const Graph& other,
                                                             absl::string_view prefix);
  StatusOr<std::unique_ptr<Graph>> Clone() const;

 private:
  friend class FunctionLibrary;
  std::shared_ptr<FunctionLibrary> library_;
  std::vector<std::unique_ptr<Node>> nodes_;
  absl::flat_hash_map<std::string, Node*> by_name_;
  int live_ = 0;
};

// For each node id, who reads it: (reader, input index), -1 for a control edge.
struct Fanout {
  explicit Fanout(const Graph& graph);
  struct Edge {
    Node* reader;
    int input;
  };
  const std::vector<Edge>& of(const Node* n) const { return edges_[n->id()]; }
  // Readers of one port.
  int CountPort(Endpoint e) const;

 private:
  std::vector<std::vector<Edge>> edges_;
};

// A function: a signature and a body. In the body argument i is a node of op "_Arg" with attributes
// T and index, named as the argument; a list argument has one output per element.
struct Function {
  OpDef signature;
  AttrMap attrs;
  std::unique_ptr<Graph> body;
  std::vector<Node*> args;                                     // by argument
  std::vector<std::vector<Endpoint>> results;                  // by output argument
  std::vector<std::pair<std::string, Node*>> control_results;  // name, node
  std::map<int, AttrMap> arg_attrs;
  std::string extra;  // serialised FunctionDef fields that smelt only carries

  const std::string& name() const { return signature.name; }
  std::vector<Endpoint> FlatResults() const;
  StatusOr<std::unique_ptr<Function>> Clone(absl::string_view new_name) const;
};

// The functions of a model, and ops that the model defines beside TensorFlow's.
class FunctionLibrary {
 public:
  Function* Find(absl::string_view name) const;
  // ALREADY_EXISTS for a taken name.
  Status Add(std::unique_ptr<Function> function);
  void Remove(absl::string_view name);
  Status Rename(absl::string_view from, absl::string_view to);
  std::vector<Function*> Functions() const;  // in the order added
  std::string FreeName(absl::string_view base) const;

  void AddOp(OpDef def);  // ignored where TensorFlow has the op
  // Functions, then own ops, then TensorFlow's.
  const OpDef* FindOp(absl::string_view name) const;
  const std::map<std::string, std::unique_ptr<OpDef>, std::less<>>& own_ops() const { return ops_; }

  // function name -> name of its gradient function.
  std::map<std::string, std::string> gradients;
  // (op type, gradient function).
  std::vector<std::pair<std::string, std::string>> registered_gradients;

 private:
  std::vector<std::unique_ptr<Function>> functions_;
  absl::flat_hash_map<std::string, Function*> by_name_;
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops_;
  // Signatures of functions whose bodies are still to be read: see Declare.
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> declared_;

 public:
  // Announces a function so that nodes calling it resolve before its body is added.
  void Declare(const OpDef& signature);
};

// A call of the function in attribute `f`, here or wherever the node is placed.
inline bool IsPartitionedCall(const Node& n) {
  return n.Is("PartitionedCall") || n.Is("StatefulPartitionedCall");
}

// "node" or "node:2"; a control input prints as "^node".
std::string EndpointName(Endpoint e);

// Functions that `graph` names directly in attributes or as ops, without repetition.
std::vector<std::string> CalledFunctions(const Graph& graph);

}  // namespace smelt

#endif  // SMELT_GRAPH_GRAPH_H_
