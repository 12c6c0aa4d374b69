// NonMaxSuppression in its versions: boxes by falling score, without those that overlap a better
// one too much.
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/image/boxes.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

// Everything is computed in float; what TensorFlow holds in half is rounded to it.
struct NmsProblem {
  bool half = false;
  int64_t boxes = 0;
  int64_t limit = 0;
  float threshold = 0;
  float score_threshold = 0;
  float sigma = 0;  // above 0: overlaps lower scores (soft NMS)
  // LiteRT's: an overlap of the threshold drops a box, whether it lowers scores or not.
  bool drops_at_threshold = false;
  Tensor scores;  // float

  float Round(float x) const { return half ? static_cast<float>(Half(x)) : x; }
};

struct NmsResult {
  std::vector<int32_t> indices;
  std::vector<float> scores;
};

struct NmsCandidate {
  int32_t box;
  float score;
  size_t compared;  // with so many of the selected boxes
};
struct NmsWorse {
  bool operator()(const NmsCandidate& a, const NmsCandidate& b) const {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

// What an overlap leaves of a score.
float NmsWeight(const NmsProblem& p, float scale, float overlap) {
  if (p.sigma <= 0 && !(overlap <= p.threshold)) return 0;
  return p.Round(std::exp(p.Round(p.Round(scale * overlap) * overlap)));
}

StatusOr<NmsResult> SuppressBoxes(const NmsProblem& p, const Step& step,
                                  absl::FunctionRef<float(int64_t, int64_t)> overlap_of) {
  const float* scores = p.scores.data<float>();
  std::priority_queue<NmsCandidate, std::deque<NmsCandidate>, NmsWorse> queue;
  for (int64_t i = 0; i < p.boxes; ++i) {
    if (scores[i] > p.score_threshold) queue.push({static_cast<int32_t>(i), scores[i], 0});
  }
  const bool soft = p.sigma > 0;
  const float scale = soft ? p.Round(-0.5f / p.sigma) : 0;
  NmsResult r;
  while (static_cast<int64_t>(r.indices.size()) < p.limit && !queue.empty()) {
    RETURN_IF_ERROR(CheckStep(step));
    NmsCandidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool dropped = false;
    // From the last selected on: boxes of similar scores tend to overlap.
    for (size_t j = r.indices.size(); j > next.compared; --j) {
      const float overlap = p.Round(overlap_of(next.box, r.indices[j - 1]));
      next.score = p.Round(next.score * NmsWeight(p, scale, overlap));
      dropped = p.drops_at_threshold ? overlap >= p.threshold : !soft && overlap > p.threshold;
      if (dropped || next.score <= p.score_threshold) break;
    }
    next.compared = r.indices.size();
    if (dropped) continue;
    if (next.score == before) {
      r.indices.push_back(next.box);
      r.scores.push_back(next.score);
    } else if (next.score > p.score_threshold) {
      queue.push(next);
    }
  }
  return r;
}

float NmsScalar(const Tensor& t) {
  return t.dtype() == Dtype::kHalf ? static_cast<float>(t.scalar<Half>()) : t.scalar<float>();
}

Status CheckNmsScalar(const Tensor& t, absl::string_view name, bool tell_rank = false) {
  if (t.rank() == 0) return OkStatus();
  return InvalidArgument(
      name, " must be 0-D, got shape ", t.shape().ToString(),
      tell_rank ? absl::StrCat(" (Shape must be rank 0 but is rank ", t.rank(), ")") : "");
}

Status CheckNmsScores(const Tensor& scores, int64_t boxes) {
  if (scores.rank() != 1) {
    return InvalidArgument("scores must be 1-D", scores.shape().ToString(),
                           " (Shape must be rank 1 but is rank ", scores.rank(), ")");
  }
  if (scores.dim(0) != boxes) {
    return InvalidArgument("scores has incompatible shape (Dimensions must be equal, but are ",
                           boxes, " and ", scores.dim(0), ")");
  }
  return OkStatus();
}

// Reads scores and limit, which every version has. Called last: TensorFlow checks them last.
Status FinishNmsProblem(const OpContext& ctx, NmsProblem* p) {
  RETURN_IF_ERROR(CheckNmsScores(ctx.input(1), p->boxes));
  p->half = ctx.input(1).dtype() == Dtype::kHalf;
  p->limit = ctx.input(2).scalar<int32_t>();
  if (p->limit < 0) return InvalidArgument("output size must be non-negative");
  ASSIGN_OR_RETURN(p->scores, ToFloat(ctx.input(1), ctx.step().allocator));
  return OkStatus();
}

// Fills output `i` with `values` and zeros up to `size`.
template <typename T, typename V>
Status SetNmsOutput(OpContext& ctx, int i, const std::vector<V>& values, int64_t size) {
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(i, Shape({size})));
  T* to = out->data<T>();
  for (const V& v : values) *to++ = static_cast<T>(v);
  std::fill(to, out->data<T>() + size, T(0));
  return OkStatus();
}

Status SetNmsOutputs(OpContext& ctx, const NmsProblem& p, const NmsResult& r) {
  const auto count = static_cast<int64_t>(r.indices.size());
  const int64_t size = ctx.node().Bool("pad_to_max_output_size") ? p.limit : count;
  RETURN_IF_ERROR((SetNmsOutput<int32_t>(ctx, 0, r.indices, size)));
  if (ctx.num_outputs() == 1) return OkStatus();
  if (ctx.num_outputs() == 3) {
    RETURN_IF_ERROR(p.half ? (SetNmsOutput<Half>(ctx, 1, r.scores, size))
                           : (SetNmsOutput<float>(ctx, 1, r.scores, size)));
  }
  ctx.set_output(ctx.num_outputs() - 1, Tensor::Scalar(static_cast<int32_t>(count)));
  return OkStatus();
}

template <int kVersion>
Status RunNms(OpContext& ctx) {
  const Tensor& boxes = ctx.input(0);
  NmsProblem p;
  p.drops_at_threshold = ctx.node().Bool("_drops_at_threshold");
  p.score_threshold =
      ctx.input(1).dtype() == Dtype::kHalf ? -65504.0f : std::numeric_limits<float>::lowest();
  RETURN_IF_ERROR(CheckNmsScalar(ctx.input(2), "max_output_size", kVersion == 3));
  p.half = boxes.dtype() == Dtype::kHalf;
  if (kVersion == 1) {
    p.threshold = ctx.node().Float("iou_threshold", 0.5f);
  } else {
    RETURN_IF_ERROR(CheckNmsScalar(ctx.input(3), "iou_threshold", kVersion == 3));
    p.threshold = p.Round(NmsScalar(ctx.input(3)));
  }
  if (!(p.threshold >= 0 && p.threshold <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1]");
  }
  if (kVersion >= 3) {
    RETURN_IF_ERROR(CheckNmsScalar(ctx.input(4), "score_threshold"));
    p.score_threshold = p.Round(NmsScalar(ctx.input(4)));
  }
  if (kVersion == 5) {
    RETURN_IF_ERROR(CheckNmsScalar(ctx.input(5), "soft_nms_sigma"));
    p.sigma = NmsScalar(ctx.input(5));
    if (!(p.sigma >= 0)) return InvalidArgument("soft_nms_sigma_val must be >= 0");
  }
  if (boxes.rank() != 2) {
    return InvalidArgument("boxes must be 2-D", boxes.shape().ToString(),
                           " (Shape must be rank 2 but is rank ", boxes.rank(), ")");
  }
  if (boxes.dim(1) != 4) {
    return InvalidArgument("boxes must have 4 columns (Dimension must be 4 but is ", boxes.dim(1),
                           ")");
  }
  p.boxes = boxes.dim(0);
  RETURN_IF_ERROR(FinishNmsProblem(ctx, &p));
  ASSIGN_OR_RETURN(const Tensor corners, ToFloat(boxes, ctx.step().allocator));
  const float* at = corners.data<float>();
  ASSIGN_OR_RETURN(const NmsResult result, SuppressBoxes(p, ctx.step(), [at](int64_t i, int64_t j) {
                     return image::BoxOverlap(at + 4 * i, at + 4 * j);
                   }));
  return SetNmsOutputs(ctx, p, result);
}

Status RunNmsOverlaps(OpContext& ctx) {
  const Tensor& overlaps = ctx.input(0);
  RETURN_IF_ERROR(CheckNmsScalar(ctx.input(2), "max_output_size"));
  RETURN_IF_ERROR(CheckNmsScalar(ctx.input(3), "overlap_threshold"));
  RETURN_IF_ERROR(CheckNmsScalar(ctx.input(4), "score_threshold"));
  if (overlaps.rank() != 2) {
    return InvalidArgument("overlaps must be 2-D", overlaps.shape().ToString());
  }
  if (overlaps.dim(1) != overlaps.dim(0)) {
    return InvalidArgument("overlaps must be square", overlaps.shape().ToString());
  }
  NmsProblem p;
  p.boxes = overlaps.dim(0);
  p.threshold = ctx.input(3).scalar<float>();
  p.score_threshold = ctx.input(4).scalar<float>();
  RETURN_IF_ERROR(FinishNmsProblem(ctx, &p));
  const float* at = overlaps.data<float>();
  ASSIGN_OR_RETURN(
      const NmsResult result,
      SuppressBoxes(p, ctx.step(), [at, &p](int64_t i, int64_t j) { return at[i * p.boxes + j]; }));
  return SetNmsOutputs(ctx, p, result);
}

constexpr DtypeSet kNmsTypes = Types(Dtype::kFloat, Dtype::kHalf);

constexpr Kernel kNmsTable[] = {
    {"NonMaxSuppression", "", kAnyType, "image:suppress", RunNms<1>},
    {"NonMaxSuppressionV2", "T", kNmsTypes, "image:suppress", RunNms<2>},
    {"NonMaxSuppressionV3", "T", kNmsTypes, "image:suppress", RunNms<3>},
    {"NonMaxSuppressionV4", "T", kNmsTypes, "image:suppress", RunNms<4>},
    {"NonMaxSuppressionV5", "T", kNmsTypes, "image:suppress", RunNms<5>},
    {"NonMaxSuppressionWithOverlaps", "", kAnyType, "image:suppress", RunNmsOverlaps},
};

}  // namespace

extern constinit const std::span<const Kernel> kNmsKernels = kNmsTable;

}  // namespace smelt
