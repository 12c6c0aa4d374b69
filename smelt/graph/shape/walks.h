// What all walks of one inference share (infer.cc).
#ifndef SMELT_GRAPH_SHAPE_WALKS_H_
#define SMELT_GRAPH_SHAPE_WALKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/fact.h"

namespace smelt {

class Walks {
 public:
  Walks(const FunctionLibrary& functions, MoreShapeRules rules) : library(functions) {
    for (const ShapeRule& rule : rules) more.try_emplace(rule.op.number(), &rule);
  }

  const FunctionLibrary& library;
  absl::flat_hash_map<int, const ShapeRule*> more;  // by number of the op
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, std::unique_ptr<FunctionWalk>>>
      variants;
  absl::flat_hash_set<std::string> in_progress;
  bool symbolic = false;
  bool into_functions = true;
  // Nodes of the graph itself of which nothing is known; nullptr: none.
  const absl::FunctionRef<bool(const Node&)>* from_outside = nullptr;
  // Computes what nodes of the graph itself make of constants; nullptr: nobody does.
  const ConstantRunner* run_constants = nullptr;

  SymbolNames names;
  void Name(PartialShape& shape) {
    if (symbolic) names.Name(shape);
  }

  // The walk for these arguments, made when first asked for. nullptr for a function that is not
  // there, is being walked (recursion) or is called too deep.
  const FunctionWalk* Function(const std::string& name, std::vector<Fact> args, int depth);

  const ShapeRule* Rule(const Node& n) const {
    if (n.def() == nullptr) return nullptr;
    auto it = more.find(n.op_name().number());
    if (it == more.end()) it = more.find(FirstVersion(n.op_name()).number());
    return it == more.end() ? FindShapeRule(n.op_name()) : it->second;
  }
};

inline const std::vector<PartialShape>* ShapeListAttr(const AttrMap& attrs,
                                                      absl::string_view name) {
  const Attr* a = attrs.Find(name);
  return a ? a->get<std::vector<PartialShape>>() : nullptr;
}

}  // namespace smelt

#endif  // SMELT_GRAPH_SHAPE_WALKS_H_
