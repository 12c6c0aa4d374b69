#include "smelt/kernels/onednn/fused_post_ops.h"

#include "smelt/graph/fused_ops.h"

namespace smelt::onednn {
namespace {

PostOp ActivationPostOp(Activation a, float leaky_alpha) {
  PostOp p;
  switch (a) {
    case Activation::kRelu:
      p.kind = PostOp::Kind::kRelu;
      break;
    case Activation::kRelu6:
      p.kind = PostOp::Kind::kClip;
      p.beta = 6;
      break;
    case Activation::kElu:
      p.kind = PostOp::Kind::kElu;
      p.alpha = 1;
      break;
    case Activation::kLeakyRelu:
      p.kind = PostOp::Kind::kRelu;
      p.alpha = leaky_alpha;
      break;
    case Activation::kTanh:
      p.kind = PostOp::Kind::kTanh;
      break;
    case Activation::kSigmoid:
      p.kind = PostOp::Kind::kLogistic;
      break;
    case Activation::kGeluExact:
      p.kind = PostOp::Kind::kGeluErf;
      break;
    case Activation::kGeluApproximate:
      p.kind = PostOp::Kind::kGeluTanh;
      break;
    case Activation::kSilu:
      p.kind = PostOp::Kind::kSwish;
      break;
    case Activation::kHardSwish:
      p.kind = PostOp::Kind::kHardSwish;
      break;
  }
  return p;
}

}  // namespace

FusedPostOps MakeFusedPostOps(const FusedOps& fused, const Layout& dst, int depth_dim) {
  FusedPostOps out;
  Dims per_depth(dst.dims.size(), 1);
  per_depth[depth_dim] = dst.dims[depth_dim];
  const auto along_depth = [&](PostOp::Kind kind) {
    PostOp p;
    p.kind = kind;
    p.operand = Layout::Dense(Dtype::kFloat, per_depth);
    return p;
  };
  for (size_t i = 0; i < fused.steps.size(); ++i) {
    const FusedStep& step = fused.steps[i];
    switch (step.kind) {
      case FusedStep::Kind::kBias:
        if (i == 0) {
          out.bias = true;
        } else {
          out.post_ops.push_back(along_depth(PostOp::Kind::kAdd));
        }
        break;
      case FusedStep::Kind::kBatchNorm:
        out.post_ops.push_back(along_depth(PostOp::Kind::kMul));
        out.post_ops.push_back(along_depth(PostOp::Kind::kAdd));
        break;
      case FusedStep::Kind::kAdd: {
        // Of one pixel, whose strides say nothing: the library's depthwise loops would read the
        // first vector of channels for all (3.x).
        if (dst.dims == per_depth) {
          out.post_ops.push_back(along_depth(PostOp::Kind::kAdd));
          break;
        }
        PostOp p;
        p.kind = PostOp::Kind::kAdd;
        p.operand = dst;
        out.post_ops.push_back(p);
        break;
      }
      case FusedStep::Kind::kActivation:
        out.post_ops.push_back(ActivationPostOp(step.activation, fused.leaky_alpha));
        break;
    }
  }
  return out;
}

StatusOr<FusedPointers> FusedPointers::Make(const FusedOps& fused, nn::FusedArgs args,
                                            Allocator* allocator) {
  FusedPointers out;
  for (size_t i = 0; i < fused.steps.size(); ++i) {
    const FusedStep& step = fused.steps[i];
    switch (step.kind) {
      case FusedStep::Kind::kBias:
        if (i == 0) {
          out.bias_ = args[step.arg]->raw();
        } else {
          out.operands_.push_back(args[step.arg]->raw());
        }
        break;
      case FusedStep::Kind::kBatchNorm: {
        const int64_t depth = args[step.arg]->num_elements();
        ASSIGN_OR_RETURN(Tensor both, Tensor::Make(Dtype::kFloat, Shape({2, depth}), allocator));
        float* scale = both.data<float>();
        nn::FoldBatchNorm(fused, args.subspan(step.arg, 4), scale, scale + depth);
        out.operands_.push_back(scale);
        out.operands_.push_back(scale + depth);
        out.scratch_.push_back(std::move(both));
        break;
      }
      case FusedStep::Kind::kAdd:
        out.operands_.push_back(args[step.arg]->raw());
        break;
      case FusedStep::Kind::kActivation:
        break;
    }
  }
  return out;
}

absl::InlinedVector<const void*, 8> FusedPointers::Tensors(const void* src, const void* weights,
                                                           const void* dst) const {
  absl::InlinedVector<const void*, 8> all = {src, weights};
  if (bias_ != nullptr) all.push_back(bias_);
  all.push_back(dst);
  all.insert(all.end(), operands_.begin(), operands_.end());
  return all;
}

}  // namespace smelt::onednn
