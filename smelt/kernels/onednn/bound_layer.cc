#include "smelt/kernels/onednn/bound_layer.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "smelt/kernels/common/via_float.h"

namespace smelt::onednn {
namespace {

class BoundLayer final : public BoundKernel {
 public:
  BoundLayer(Plan plan, std::shared_ptr<const Tensor> weights, std::vector<LayerArgument> tensors,
             size_t dst, std::shared_ptr<const void> keep)
      : plan_(std::move(plan)),
        weights_(std::move(weights)),
        tensors_(std::move(tensors)),
        dst_(dst),
        keep_(std::move(keep)) {
    // The sum with a tensor begins with a copy of it, unless it lies there already.
    const int summed = plan_->summed_tensor();
    if (summed >= 0) lent_ = tensors_[static_cast<size_t>(summed)].input;
  }

  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    absl::InlinedVector<const void*, 8> all;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const LayerArgument& t = tensors_[i];
      all.push_back(i == dst_ ? outputs[0] : t.constant != nullptr ? t.constant : inputs[t.input]);
    }
    return plan_->Run(all, scratch);
  }
  size_t scratch_bytes() const override { return plan_->scratch_bytes(); }
  bool may_overwrite(int i) const override { return i == lent_; }

 private:
  const Plan plan_;
  const std::shared_ptr<const Tensor> weights_;
  const std::vector<LayerArgument> tensors_;  // in the order of Primitive::Run
  const size_t dst_;                          // which of them the output is
  const std::shared_ptr<const void> keep_;
  int lent_ = -1;
};

}  // namespace

bool ArgumentsFit(const FusedOps& fused, std::span<const BoundTensor> args, const Shape& output,
                  int depth_dim) {
  if (args.size() < static_cast<size_t>(fused.num_args)) return false;
  return std::ranges::all_of(fused.steps, [&](const FusedStep& step) {
    if (step.kind == FusedStep::Kind::kActivation) return true;
    const int count = step.kind == FusedStep::Kind::kBatchNorm ? 4 : 1;
    for (int i = step.arg; i < step.arg + count; ++i) {
      const Shape& shape = args[static_cast<size_t>(i)].shape;
      const bool fits = step.kind == FusedStep::Kind::kAdd
                            ? shape == output
                            : shape.num_elements() == output[depth_dim] && shape.rank() > 0 &&
                                  shape.back() == output[depth_dim];
      if (!fits) return false;
    }
    return true;
  });
}

Dtype ArgumentType(const FusedOps& fused, size_t arg, Dtype dst) {
  const bool whole = std::ranges::any_of(fused.steps, [&](const FusedStep& step) {
    return step.kind == FusedStep::Kind::kAdd && static_cast<size_t>(step.arg) == arg;
  });
  return whole ? dst : Dtype::kFloat;
}

StatusOr<bool> MakeLayerArguments(const FusedOps& fused, const BindContext& context, Dtype dst,
                                  LayerArguments* out) {
  const auto count = static_cast<size_t>(fused.num_args);
  out->converted.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const BoundTensor& t = context.inputs[2 + i];
    const Tensor* value = t.constant;
    if (const Dtype wanted = ArgumentType(fused, i, dst); t.dtype != wanted) {
      if (value == nullptr || wanted != Dtype::kFloat) return false;
      ASSIGN_OR_RETURN(out->converted[i], ToFloat(*value, HeapAllocator()));
      value = &out->converted[i];
    }
    out->values.push_back(value);
    out->args.push_back({value != nullptr ? value->raw() : nullptr, static_cast<int>(2 + i)});
  }
  return true;
}

TileOperands OperandsOfTiles(const FusedOps& ops, std::span<const LayerArgument> args) {
  TileOperands out;
  for (const FusedStep& step : ops.steps) {
    if (step.kind == FusedStep::Kind::kActivation) continue;
    const LayerArgument& arg = args[static_cast<size_t>(step.arg)];
    if (step.kind == FusedStep::Kind::kBias) out.bias = static_cast<const float*>(arg.constant);
    if (step.kind == FusedStep::Kind::kAdd) out.addend = arg.input;
  }
  return out;
}

std::unique_ptr<BoundKernel> BindLayer(Plan plan, std::shared_ptr<const Tensor> weights,
                                       const FusedOps& ops, std::span<const LayerArgument> args,
                                       std::shared_ptr<const void> keep) {
  std::vector<LayerArgument> tensors = {{nullptr, 0},
                                        {weights != nullptr ? weights->raw() : nullptr, 1}};
  std::vector<LayerArgument> operands;
  for (size_t i = 0; i < ops.steps.size(); ++i) {
    const FusedStep& step = ops.steps[i];
    switch (step.kind) {
      case FusedStep::Kind::kBias:
        (i == 0 ? tensors : operands).push_back(args[static_cast<size_t>(step.arg)]);
        break;
      case FusedStep::Kind::kBatchNorm:
        return nullptr;
      case FusedStep::Kind::kAdd:
        operands.push_back(args[static_cast<size_t>(step.arg)]);
        break;
      case FusedStep::Kind::kActivation:
        break;
    }
  }
  const size_t dst = tensors.size();
  tensors.push_back({});
  tensors.insert(tensors.end(), operands.begin(), operands.end());
  return std::make_unique<BoundLayer>(std::move(plan), std::move(weights), std::move(tensors), dst,
                                      std::move(keep));
}

}  // namespace smelt::onednn
