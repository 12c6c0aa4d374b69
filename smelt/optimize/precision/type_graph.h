// The types of a graph: which of them must change together.
//
// A place is one type that a node has: an attribute, an element of an attribute that lists types,
// or a type that the definition fixes. Each input and each output of a node has one place, so that
// an edge joins the place of its output with that of its input. An attribute that neither an input
// nor an output has (TensorListReserve's element_dtype) is a place too.
#ifndef SMELT_OPTIMIZE_PRECISION_TYPE_GRAPH_H_
#define SMELT_OPTIMIZE_PRECISION_TYPE_GRAPH_H_

#include <span>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

struct TypePlace {
  Node* node = nullptr;
  absl::string_view attr;        // empty: the definition fixes the type
  int element = -1;              // of an attribute that lists types
  Dtype type = Dtype::kInvalid;  // without reference; invalid where the node is opaque

  bool is_fixed() const { return attr.empty(); }
};

// Valid while the graph is not changed. Any thread.
class TypeGraph {
 public:
  explicit TypeGraph(const Graph& graph);

  int size() const { return static_cast<int>(places_.size()); }
  const TypePlace& at(int place) const { return places_[static_cast<size_t>(place)]; }
  // Places of the outputs that the inputs of `place` read, and of the inputs that read its outputs;
  // one may stand there several times.
  std::span<const int> sources(int place) const { return sources_.Of(place); }
  std::span<const int> readers(int place) const { return readers_.Of(place); }
  // REQUIRES: the node is of the graph and was there when this was made, 0 <= i < num_inputs().
  int OfInput(const Node& n, int i) const;
  int OfOutput(const Node& n, int port) const;
  // The place of an attribute that is one type; -1: the node has none.
  int Find(const Node& n, absl::string_view attr) const;
  // [first, past the last) of the node's places.
  std::pair<int, int> Range(const Node& n) const;

 private:
  // Lists of numbers, one behind the other.
  struct Lists {
    std::vector<int> starts, items;
    std::span<const int> Of(int i) const {
      const size_t at = static_cast<size_t>(i);
      return std::span<const int>(items).subspan(static_cast<size_t>(starts[at]),
                                                 static_cast<size_t>(starts[at + 1] - starts[at]));
    }
  };
  struct OfNode {
    int first = 0, end = 0;  // places
    int inputs = 0;          // where its inputs begin in ports_; its outputs follow
  };

  void AddNode(Node* n);
  void AddOpaque(Node* n);
  static Lists Sorted(std::span<const std::pair<int, int>> pairs, int size);

  std::vector<TypePlace> places_;
  std::vector<OfNode> nodes_;  // by id
  std::vector<int> ports_;     // places of inputs and outputs
  Lists sources_, readers_;
};

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PRECISION_TYPE_GRAPH_H_
