// Shapes of ops that pass values on, of lists and of accelerator bookkeeping. Function calls,
// branches and loops are in infer.cc.
#include <array>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

Status SwitchShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.node().num_outputs(); ++i) {
    ctx.set_output(i, ctx.input(0));
    ctx.set_held(i, ctx.held(0));
  }
  return OkStatus();
}

// What all inputs have in common. Loops are the walk's own.
Status MergeShape(ShapeContext& ctx) {
  if (ctx.num_inputs() == 0) return OkStatus();
  PartialShape out = ctx.input(0), held = ctx.held(0);
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    out = CommonShape(out, ctx.input(i));
    held = CommonShape(held, ctx.held(i));
  }
  ctx.set_output(0, std::move(out));
  ctx.set_held(0, std::move(held));
  ctx.set_output(1, Shape());
  return OkStatus();
}

// What the replicas' inputs have in common.
Status ReplicatedInputShape(ShapeContext& ctx) {
  PartialShape out, held;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    out = i == 0 ? ctx.input(i) : CommonShape(out, ctx.input(i));
    held = i == 0 ? ctx.held(i) : CommonShape(held, ctx.held(i));
  }
  ctx.set_output(0, std::move(out));
  ctx.set_held(0, std::move(held));
  return OkStatus();
}

Status OptionalValueShape(ShapeContext& ctx) {
  const auto shapes = ctx.node().Get<std::vector<PartialShape>>("output_shapes", {});
  for (size_t i = 0; i < shapes.size(); ++i) ctx.set_output(static_cast<int>(i), shapes[i]);
  return OkStatus();
}

// ---- lists: held is what is known of every element's shape ----

// What either shape says of the elements; nothing where they contradict each other.
PartialShape ElementShape(const PartialShape& a, const PartialShape& b) {
  auto merged = PartialShape::Merge(a, b);
  return merged.ok() ? *std::move(merged) : PartialShape();
}

Status ListOf(ShapeContext& ctx, PartialShape element) {
  ctx.set_output(0, Shape());
  ctx.set_held(0, std::move(element));
  return OkStatus();
}

// The list with an element more or replaced: what is known of the elements stays.
Status SameListShape(ShapeContext& ctx) { return ListOf(ctx, ctx.held(0)); }

template <int kShape>
Status NewListShape(ShapeContext& ctx) {
  return ListOf(ctx, ShapeFromInput(ctx, kShape));
}

Status ListFromTensorShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(in, 1));
  const PartialShape stated = ShapeFromInput(ctx, 1);
  return ListOf(ctx, in.known_rank() ? ElementShape(stated, SubShape(in, 1)) : stated);
}

template <int kShape>
Status ListItemShape(ShapeContext& ctx) {
  ctx.set_output(0, ElementShape(ctx.held(0), ShapeFromInput(ctx, kShape)));
  return OkStatus();
}

Status ListPopShape(ShapeContext& ctx) {
  ctx.set_output(1, ElementShape(ctx.held(0), ShapeFromInput(ctx, 1)));
  return ListOf(ctx, ctx.held(0));
}

Status ListStackShape(ShapeContext& ctx) {
  const PartialShape element = ElementShape(ctx.held(0), ShapeFromInput(ctx, 1));
  const int64_t count = ctx.node().Int("num_elements", -1);
  ctx.set_output(0, Concatenate(VectorShape(count < 0 ? kUnknownDim : count), element));
  return OkStatus();
}

Status ListGatherShape(ShapeContext& ctx) {
  const PartialShape element = ElementShape(ctx.held(0), ShapeFromInput(ctx, 2));
  ctx.set_output(0, Concatenate(VectorShape(DimOf(ctx.input(1), 0)), element));
  return OkStatus();
}

// Elements joined along their first dimension.
Status ListConcatOf(ShapeContext& ctx, const PartialShape& stated) {
  const PartialShape element = ElementShape(ctx.held(0), stated);
  if (element.rank() > 0) {
    ctx.set_output(0, Concatenate(VectorShape(kUnknownDim), SubShape(element, 1)));
  }
  ctx.set_output(1, VectorShape(kUnknownDim));
  return OkStatus();
}

Status ListConcatShape(ShapeContext& ctx) {
  return ListConcatOf(ctx, ctx.node().Get<PartialShape>("element_shape", {}));
}
Status ListConcatV2Shape(ShapeContext& ctx) { return ListConcatOf(ctx, ShapeFromInput(ctx, 1)); }

Status ListElementShapeShape(ShapeContext& ctx) {
  const PartialShape& held = ctx.held(0);
  if (held.known_rank()) ctx.set_output(0, VectorShape(held.rank()));
  return OkStatus();
}

// ---- arrays of version 1 loops ----

Status ArrayShape(ShapeContext& ctx) {
  ctx.set_output(1, Shape());
  return OkStatus();
}

Status ArrayGatherShape(ShapeContext& ctx) {
  const PartialShape element = ctx.node().Get<PartialShape>("element_shape", {});
  ctx.set_output(0, Concatenate(VectorShape(DimOf(ctx.input(1), 0)), element));
  return OkStatus();
}

Status ArrayPackShape(ShapeContext& ctx) {
  const PartialShape element = ctx.node().Get<PartialShape>("element_shape", {});
  ctx.set_output(0, Concatenate(VectorShape(kUnknownDim), element));
  return OkStatus();
}

constexpr std::array kControlRows = {
    ShapeRule{"Identity", SameShape},
    ShapeRule{"IdentityN", SameShapes},
    ShapeRule{"RefIdentity", SameShape},
    ShapeRule{"Print", SameShape},
    ShapeRule{"_ArrayToList", NoShapes},
    ShapeRule{"_ListToArray", NoShapes},
    ShapeRule{"DisableCopyOnRead", NoShapes},
    // Version 1 control flow.
    ShapeRule{"Enter", SameShape},
    ShapeRule{"RefEnter", SameShape},
    ShapeRule{"Exit", SameShape},
    ShapeRule{"RefExit", SameShape},
    ShapeRule{"NextIteration", SameShape},
    ShapeRule{"RefNextIteration", SameShape},
    ShapeRule{"LoopCond", ScalarShapes},
    ShapeRule{"Switch", SwitchShape},
    ShapeRule{"RefSwitch", SwitchShape},
    ShapeRule{"Merge", MergeShape},
    ShapeRule{"RefMerge", MergeShape},
    // Collectives.
    ShapeRule{"CollectiveReduce", SameShape},
    // Accelerators.
    ShapeRule{"TPUReplicatedInput", ReplicatedInputShape},
    ShapeRule{"TPUReplicatedOutput", SwitchShape},
    ShapeRule{"TPUOrdinalSelector", ScalarShapes},
    ShapeRule{"TPURoundRobin", ScalarShapes},
    ShapeRule{"TPUCompilationResult", ScalarShapes},
    // Optionals.
    ShapeRule{"OptionalFromValue", ScalarShapes},
    ShapeRule{"OptionalNone", ScalarShapes},
    ShapeRule{"OptionalHasValue", ScalarShapes},
    ShapeRule{"OptionalGetValue", OptionalValueShape},
    // Lists.
    ShapeRule{"EmptyTensorList", NewListShape<0>},
    ShapeRule{"TensorListReserve", NewListShape<0>},
    ShapeRule{"TensorListFromTensor", ListFromTensorShape},
    ShapeRule{"TensorListScatter", NewListShape<2>},
    ShapeRule{"TensorListScatterIntoExistingList", SameListShape},
    ShapeRule{"TensorListSplit", NewListShape<1>},
    ShapeRule{"TensorListPushBack", SameListShape},
    ShapeRule{"TensorListPushBackBatch", SameShape},
    ShapeRule{"TensorListSetItem", SameListShape},
    ShapeRule{"TensorListResize", SameListShape},
    ShapeRule{"TensorListPopBack", ListPopShape},
    ShapeRule{"TensorListGetItem", ListItemShape<2>},
    ShapeRule{"TensorListStack", ListStackShape},
    ShapeRule{"TensorListGather", ListGatherShape},
    ShapeRule{"TensorListConcat", ListConcatShape},
    ShapeRule{"TensorListConcatV2", ListConcatV2Shape},
    ShapeRule{"TensorListElementShape", ListElementShapeShape},
    ShapeRule{"TensorListLength", ScalarShapes},
    // Arrays.
    ShapeRule{"TensorArrayWrite", ScalarShapes},
    ShapeRule{"TensorArrayScatter", ScalarShapes},
    ShapeRule{"TensorArraySplit", ScalarShapes},
    ShapeRule{"TensorArraySize", ScalarShapes},
    ShapeRule{"TensorArrayGather", ArrayGatherShape},
    ShapeRule{"TensorArrayV2", NoShapes},
    ShapeRule{"TensorArrayV3", ArrayShape},
    ShapeRule{"TensorArrayGradV3", ArrayShape},
    ShapeRule{"TensorArrayGradWithShape", ArrayShape},
    ShapeRule{"TensorArrayUnpack", ScalarShapes},
    ShapeRule{"TensorArrayPack", ArrayPackShape},
    ShapeRule{"StackPush", SecondShape},
};

}  // namespace

extern const std::span<const ShapeRule> kControlShapes;
constinit const std::span<const ShapeRule> kControlShapes = kControlRows;

}  // namespace smelt
