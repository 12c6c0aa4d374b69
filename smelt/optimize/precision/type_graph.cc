#include "smelt/optimize/precision/type_graph.h"

#include <algorithm>

namespace smelt {
namespace {

// How many tensors an argument is; none where the node lacks the attribute that says so.
int64_t Arity(const ArgDef& arg, const Node& n) {
  const auto arity = ArgArity(arg, *n.def(), n.attrs());
  return arity.ok() ? *arity : -1;
}

// Do the arguments make up `count` tensors?
bool Fits(std::span<const ArgDef> args, const Node& n, int count) {
  int64_t sum = 0;
  for (const ArgDef& arg : args) {
    const int64_t arity = Arity(arg, n);
    if (arity < 0) return false;
    sum += arity;
  }
  return sum == count;
}

// The places of one node as they are made.
class NodePlaces {
 public:
  NodePlaces(Node* n, std::vector<TypePlace>* places) : node_(n), places_(*places) {}

  // The place of `attr`, or of its first element.
  int Of(const AttrDef& def) {
    for (const auto& [known, place] : attrs_) {
      if (known == &def) return place;
    }
    const int first = static_cast<int>(places_.size());
    const Attr* attr = node_->Find(def.name);
    if (def.type == "type") {
      const Dtype* type = attr == nullptr ? nullptr : attr->get<Dtype>();
      places_.push_back({node_, def.name, -1, type == nullptr ? Dtype::kInvalid : *type});
    } else if (const auto* types = attr == nullptr ? nullptr : attr->get<std::vector<Dtype>>()) {
      int element = 0;
      for (const Dtype type : *types) places_.push_back({node_, def.name, element++, type});
    }
    // What names an attribute has a place, whatever the attribute is.
    if (static_cast<int>(places_.size()) == first) places_.push_back({node_, "", -1});
    attrs_.emplace_back(&def, first);
    return first;
  }

  int OfFixed(Dtype type) {
    for (const auto& [known, place] : fixed_) {
      if (known == type) return place;
    }
    places_.push_back({node_, "", -1, type});
    fixed_.emplace_back(type, static_cast<int>(places_.size()) - 1);
    return fixed_.back().second;
  }

 private:
  Node* node_;
  std::vector<TypePlace>& places_;
  absl::InlinedVector<std::pair<const AttrDef*, int>, 4> attrs_;
  absl::InlinedVector<std::pair<Dtype, int>, 4> fixed_;
};

}  // namespace

TypeGraph::TypeGraph(const Graph& graph) : nodes_(static_cast<size_t>(graph.max_id())) {
  for (Node* n : graph.Nodes()) {
    const bool known = n->def() != nullptr && Fits(n->def()->inputs, *n, n->num_inputs()) &&
                       Fits(n->def()->outputs, *n, n->num_outputs());
    known ? AddNode(n) : AddOpaque(n);
  }
  std::vector<std::pair<int, int>> up, down;
  for (const Node* n : graph.Nodes()) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint from = n->input(i);
      const int reader = OfInput(*n, i), source = OfOutput(*from.node, from.port);
      up.emplace_back(reader, source);
      down.emplace_back(source, reader);
    }
  }
  sources_ = Sorted(up, size());
  readers_ = Sorted(down, size());
}

void TypeGraph::AddNode(Node* n) {
  OfNode& of = nodes_[static_cast<size_t>(n->id())];
  of.first = size();
  of.inputs = static_cast<int>(ports_.size());
  NodePlaces places(n, &places_);
  for (const std::vector<ArgDef>* args : {&n->def()->inputs, &n->def()->outputs}) {
    for (const ArgDef& arg : *args) {
      const int64_t arity = Arity(arg, *n);
      const std::string& attr = arg.type_list_attr.empty() ? arg.type_attr : arg.type_list_attr;
      const AttrDef* def = attr.empty() ? nullptr : n->def()->FindAttr(attr);
      const int place = def == nullptr ? places.OfFixed(BaseType(arg.type)) : places.Of(*def);
      for (int i = 0; i < arity; ++i) {
        ports_.push_back(arg.type_list_attr.empty() ? place : place + i);
      }
    }
  }
  for (const AttrDef& def : n->def()->attrs) {
    if (def.type == "type" || def.type == "list(type)") places.Of(def);
  }
  of.end = size();
}

void TypeGraph::AddOpaque(Node* n) {
  OfNode& of = nodes_[static_cast<size_t>(n->id())];
  of.first = size();
  of.inputs = static_cast<int>(ports_.size());
  for (int i = 0; i < n->num_inputs() + n->num_outputs(); ++i) {
    ports_.push_back(size());
    places_.push_back({n, "", -1, Dtype::kInvalid});
  }
  of.end = size();
}

TypeGraph::Lists TypeGraph::Sorted(std::span<const std::pair<int, int>> pairs, int size) {
  Lists lists;
  lists.starts.resize(static_cast<size_t>(size) + 1);
  lists.items.resize(pairs.size());
  for (const auto& [at, item] : pairs) ++lists.starts[static_cast<size_t>(at) + 1];
  for (size_t i = 1; i < lists.starts.size(); ++i) lists.starts[i] += lists.starts[i - 1];
  std::vector<int> next(lists.starts.begin(), lists.starts.end());
  for (const auto& [at, item] : pairs) {
    lists.items[static_cast<size_t>(next[static_cast<size_t>(at)]++)] = item;
  }
  return lists;
}

int TypeGraph::OfInput(const Node& n, int i) const {
  return ports_[static_cast<size_t>(nodes_[static_cast<size_t>(n.id())].inputs + i)];
}

int TypeGraph::OfOutput(const Node& n, int port) const {
  return ports_[static_cast<size_t>(nodes_[static_cast<size_t>(n.id())].inputs + n.num_inputs() +
                                    port)];
}

int TypeGraph::Find(const Node& n, absl::string_view attr) const {
  const auto [first, end] = Range(n);
  for (int place = first; place < end; ++place) {
    if (at(place).attr == attr && at(place).element < 0) return place;
  }
  return -1;
}

std::pair<int, int> TypeGraph::Range(const Node& n) const {
  const OfNode& of = nodes_[static_cast<size_t>(n.id())];
  return {of.first, of.end};
}

}  // namespace smelt
