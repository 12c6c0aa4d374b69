// Node: one operation of a graph, with its attributes and edges.
//
// Edges belong to the graph: it alone changes them (graph.h), and keeps for each node who uses it.
#ifndef SMELT_GRAPH_NODE_H_
#define SMELT_GRAPH_NODE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "smelt/graph/attr.h"
#include "smelt/graph/op_def.h"
#include "smelt/graph/op_name.h"

namespace smelt {

class Node;

// One output of a node.
struct Endpoint {
  Node* node = nullptr;
  int port = 0;
  bool operator==(const Endpoint&) const = default;
};

// An edge seen from its source.
struct Use {
  Node* node = nullptr;
  // Which of the node's inputs it is; negative for a control edge.
  int input = -1;
  bool is_control() const { return input < 0; }
  // The output that it comes from; -1 for a control edge.
  int port() const;
};

// Types of a node's inputs or of its outputs, which the node changes (SetInputTypes).
class NodeTypes {
 public:
  operator const DtypeVector&() const { return types_; }  // NOLINT: reads as the vector it holds
  const Dtype& operator[](size_t i) const { return types_[i]; }
  auto begin() const { return types_.begin(); }
  auto end() const { return types_.end(); }
  const Dtype& front() const { return types_.front(); }
  const Dtype& back() const { return types_.back(); }
  size_t size() const { return types_.size(); }
  bool empty() const { return types_.empty(); }
  friend bool operator==(const NodeTypes& a, const NodeTypes& b) { return a.types_ == b.types_; }
  friend bool operator==(const NodeTypes& a, const DtypeVector& b) { return a.types_ == b; }

 private:
  friend class Node;
  NodeTypes() = default;
  DtypeVector types_;
};

// Whatever verify.h looks at is changed by calls that make the graph note the node, so that a node
// that nobody touched need not be verified again.
class Node {
 public:
  // Most nodes have no more than fit without an allocation.
  using Inputs = absl::InlinedVector<Endpoint, 2>;
  using Uses = absl::InlinedVector<Use, 1>;

  const std::string& name() const { return name_; }
  absl::string_view op() const { return op_name_.unknown() ? op_text_ : op_name_.text(); }
  // Unknown for functions called by their name and for ops that no table has.
  OpName op_name() const { return op_name_; }
  // False when either is unknown.
  bool Is(OpName op) const { return op_name_ == op && !op.unknown(); }
  bool Is(const OpSet& ops) const { return ops.Contains(op_name_); }
  // nullptr: an op that neither TensorFlow, the model's own op list nor its functions define. Such
  // a node is opaque: shown and carried, never run.
  const OpDef* def() const { return def_; }
  // Position in its graph; stable while the node lives.
  int id() const { return id_; }

  const AttrMap& attrs() const { return attrs_; }
  // For those who change attributes now: hold it no longer than that.
  AttrMap& AttrsToChange() {
    Touch();
    return attrs_;
  }
  // False when there was none; then nothing is touched.
  bool EraseAttr(absl::string_view name) {
    return attrs_.Find(name) != nullptr && AttrsToChange().Erase(name);
  }
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

  // Data inputs in the order of the definition.
  const Inputs& inputs() const { return inputs_; }
  const Endpoint& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  // Nodes that must have run before: without repetition, in no order that means anything.
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  // Who uses the node, in no order that means anything.
  const Uses& uses() const { return uses_; }
  // A copy of uses() ordered by node and input: for loops that change edges, and for results that
  // must not depend on how the graph was made.
  std::vector<Use> OrderedUses() const;
  // How many data inputs read output `port`.
  int NumUses(int port) const;

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(output_types.size()); }

  void SetInputTypes(DtypeVector types);
  void SetOutputTypes(DtypeVector types);
  // `count` outputs where there are fewer; types of the new ones are unknown.
  void GrowOutputs(size_t count);

  std::string device;
  // For opaque nodes inside functions: the names by which their outputs were read, "out_arg:index",
  // one for each port.
  std::vector<std::string> opaque_outputs;
  std::string extra;  // serialized NodeDef fields that smelt only carries (debug info, full type)
  NodeTypes input_types;  // as the definition wants them
  NodeTypes output_types;

 private:
  friend class Graph;
  void Touch() {
    if (touched_) return;
    touched_ = true;
    touched_nodes_->push_back(id_);
  }

  // What nearly every walk over a graph asks comes first, so that it lies in few lines of a cache.
  OpName op_name_;
  bool touched_ = false;
  int id_ = -1;
  AttrMap attrs_;
  const OpDef* def_ = nullptr;
  // Edges know each other's places, so that one is taken out in constant time: input i of this node
  // is inputs_[i].node->uses_[input_places_[i]], and control input i, whose Use has the input
  // -1 - i, is control_inputs_[i]->uses_[control_places_[i]].
  Inputs inputs_;
  Uses uses_;
  std::vector<Node*> control_inputs_;
  absl::InlinedVector<int, 4> input_places_;
  std::vector<int> control_places_;
  std::vector<int>* touched_nodes_ = nullptr;  // the graph's, and nobody else's
  std::string name_;
  std::string op_text_;  // of an op whose op_name_ is unknown, else empty
};

inline int Use::port() const { return is_control() ? -1 : node->input(input).port; }

}  // namespace smelt

#endif  // SMELT_GRAPH_NODE_H_
