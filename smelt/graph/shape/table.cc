// What shape inference found, and which rule serves an op.
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {

const PartialShape& ShapeTable::of(Endpoint e) const { return Find(shapes_, e); }
const PartialShape& ShapeTable::held(Endpoint e) const { return Find(held_, e); }

const PartialShape& ShapeTable::AsArgument(Endpoint e) const {
  return e.node->output_types[e.port] == Dtype::kResource ? held(e) : of(e);
}

void ShapeTable::Set(const Node* node, int port, PartialShape shape) {
  shapes_[{node->id(), port}] = std::move(shape);
}
void ShapeTable::SetHeld(const Node* node, int port, PartialShape shape) {
  held_[{node->id(), port}] = std::move(shape);
}

const PartialShape& ShapeTable::Find(const Shapes& shapes, Endpoint e) {
  static const auto* unknown = new PartialShape;
  auto it = shapes.find({e.node->id(), e.port});
  return it == shapes.end() ? *unknown : it->second;
}

void ShapeTable::KeepCommon(const ShapeTable& other) {
  for (auto [mine, theirs] : {std::pair(&shapes_, &other.shapes_), {&held_, &other.held_}}) {
    for (auto& [key, shape] : *mine) {
      auto it = theirs->find(key);
      shape = it == theirs->end() ? PartialShape() : CommonShape(shape, it->second);
    }
  }
}

const ShapeRule* FindShapeRule(absl::string_view op) {
  static const auto* rules = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, const ShapeRule*>;
    for (const auto& family : AllShapeFamilies()) {
      for (const ShapeRule& rule : family) map->try_emplace(rule.op, &rule);
    }
    return map;
  }();
  auto it = rules->find(op);
  if (it == rules->end()) it = rules->find(FirstVersion(op));
  return it == rules->end() ? nullptr : it->second;
}

}  // namespace smelt
