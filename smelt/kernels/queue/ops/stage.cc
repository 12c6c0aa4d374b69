// Staging areas: Stage puts tuples in, Unstage takes them out, first in, first out. Areas are found
// by name, made by the op that comes first.
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/queue/ops/staging_op.h"
#include "smelt/kernels/queue/staging_area.h"

namespace smelt {
namespace {

StatusOr<std::shared_ptr<StagingArea>> AreaOf(OpContext& ctx) {
  return FindStaging<StagingArea>(
      ctx, [](const StagingState& s) { return std::make_shared<StagingArea>(s.limits); });
}

Status GiveStaged(OpContext& ctx, Tuple tuple) {
  if (tuple.size() != static_cast<size_t>(ctx.num_outputs())) {
    return InvalidArgument("Mismatch stage/unstage: ", tuple.size(), " vs. ", ctx.num_outputs());
  }
  return SetStagedOutputs(ctx, 0, std::move(tuple));
}

Status RunStage(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto area, AreaOf(ctx));
  Tuple tuple;
  for (int i = 0; i < ctx.num_inputs(); ++i) tuple.push_back(ctx.TakeInput(i));
  return area->Put(std::move(tuple), ctx.step());
}

Status RunUnstage(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto area, AreaOf(ctx));
  ASSIGN_OR_RETURN(Tuple tuple, area->Get(ctx.step()));
  return GiveStaged(ctx, std::move(tuple));
}

Status RunStagePeek(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto area, AreaOf(ctx));
  const Tensor& index = ctx.input(0);
  if (index.num_elements() < 1 || index.scalar<int32_t>() < 0) {
    return InvalidArgument("index of StagePeek must be a number that is not negative");
  }
  ASSIGN_OR_RETURN(Tuple tuple,
                   area->Peek(static_cast<size_t>(index.scalar<int32_t>()), ctx.step()));
  return GiveStaged(ctx, std::move(tuple));
}

Status RunStageSize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto area, AreaOf(ctx));
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(area->size())));
  return OkStatus();
}

Status RunStageClear(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto area, AreaOf(ctx));
  area->Clear();
  return OkStatus();
}

constexpr Kernel kStageTable[] = {
    {"Stage", "", kAnyType, "queue:stage", RunStage, PrepareStaging},
    {"Unstage", "", kAnyType, "queue:unstage", RunUnstage, PrepareStaging},
    {"StagePeek", "", kAnyType, "queue:stage_peek", RunStagePeek, PrepareStaging},
    {"StageSize", "", kAnyType, "queue:stage_size", RunStageSize, PrepareStaging},
    {"StageClear", "", kAnyType, "queue:stage_clear", RunStageClear, PrepareStaging},
};

}  // namespace

extern constinit const std::span<const Kernel> kStageKernels = kStageTable;

}  // namespace smelt
