// What shape inference found, and which rule serves an op.
#include <array>

#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {

const PartialShape& ShapeTable::of(Endpoint e) const {
  const auto id = static_cast<size_t>(e.node->id());
  if (e.port == 0 && id < firsts_.size()) return firsts_[id];
  return Find(others_, e);
}
const PartialShape& ShapeTable::held(Endpoint e) const { return Find(held_, e); }

const PartialShape& ShapeTable::AsArgument(Endpoint e) const {
  return e.node->output_types[e.port] == Dtype::kResource ? held(e) : of(e);
}

void ShapeTable::Set(const Node* node, int port, PartialShape shape) {
  if (port > 0) {
    others_[{node->id(), port}] = std::move(shape);
    return;
  }
  const auto id = static_cast<size_t>(node->id());
  if (id >= firsts_.size()) firsts_.resize(id + 1);
  firsts_[id] = std::move(shape);
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
  for (size_t id = 0; id < firsts_.size(); ++id) {
    firsts_[id] =
        id < other.firsts_.size() ? CommonShape(firsts_[id], other.firsts_[id]) : PartialShape();
  }
  for (auto [mine, theirs] : {std::pair(&others_, &other.others_), {&held_, &other.held_}}) {
    for (auto& [key, shape] : *mine) {
      auto it = theirs->find(key);
      shape = it == theirs->end() ? PartialShape() : CommonShape(shape, it->second);
    }
  }
}

const ShapeRule* FindShapeRule(OpName op) {
  static const auto* rules = [] {
    auto* by_number = new std::array<const ShapeRule*, kNumOps>{};
    for (const auto& family : AllShapeFamilies()) {
      for (const ShapeRule& rule : family) {
        const ShapeRule*& slot = (*by_number)[static_cast<size_t>(rule.op.number())];
        if (slot == nullptr) slot = &rule;
      }
    }
    return by_number;
  }();
  if (op.unknown()) return nullptr;
  const ShapeRule* own = (*rules)[static_cast<size_t>(op.number())];
  return own != nullptr ? own : (*rules)[static_cast<size_t>(FirstVersion(op).number())];
}

}  // namespace smelt
