// CombinedNonMaxSuppression: suppression class by class, then the best of all classes.
#include <algorithm>
#include <limits>
#include <queue>
#include <vector>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/image/boxes.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

struct CombinedProblem {
  int64_t batch, boxes, box_classes, classes;
  int64_t per_class, total;
  float threshold, score_threshold;
};

struct CombinedPick {
  int64_t box = -1;
  float score = -std::numeric_limits<float>::infinity();
  int64_t cls = -1;
  const float* corners = nullptr;
};

StatusOr<CombinedProblem> CheckCombined(const OpContext& ctx) {
  const Tensor& boxes = ctx.input(0);
  const Tensor& scores = ctx.input(1);
  constexpr absl::string_view kNames[] = {"max_size_per_class", "max_total_size", "iou_threshold",
                                          "score_threshold"};
  if (boxes.rank() > 0 && scores.rank() > 0 && boxes.dim(0) != scores.dim(0)) {
    return InvalidArgument("boxes and scores must have same batch size");
  }
  for (int i = 0; i < 4; ++i) {
    const Tensor& t = ctx.input(2 + i);
    if (t.rank() != 0) {
      return InvalidArgument(kNames[i], " must be 0-D, got shape ", t.shape().ToString());
    }
    if (i < 2 && t.scalar<int32_t>() <= 0) {
      return InvalidArgument(kNames[i], i == 0 ? " must be positive" : " must be > 0");
    }
  }
  if (boxes.rank() != 4) {
    return InvalidArgument("boxes must be 4-D", boxes.shape().ToString());
  }
  if (scores.rank() != 3) {
    return InvalidArgument("scores must be 3-D", scores.shape().ToString());
  }
  CombinedProblem p;
  p.batch = boxes.dim(0);
  p.boxes = boxes.dim(1);
  p.box_classes = boxes.dim(2);
  p.classes = scores.dim(2);
  if (p.box_classes != 1 && p.box_classes != p.classes) {
    return InvalidArgument("third dimension of boxes must be either 1 or num classes");
  }
  if (boxes.dim(3) != 4) return InvalidArgument("boxes must have 4 columns");
  if (scores.dim(1) != p.boxes) return InvalidArgument("scores has incompatible shape");
  p.per_class = ctx.input(2).scalar<int32_t>();
  p.total = ctx.input(3).scalar<int32_t>();
  p.threshold = ctx.input(4).scalar<float>();
  p.score_threshold = ctx.input(5).scalar<float>();
  if (!(p.threshold >= 0 && p.threshold <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1]");
  }
  if (std::min(p.per_class, p.boxes) * p.classes > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("size_per_class * num_classes causes overflow");
  }
  return p;
}

// Writes what is selected of class `cls` to picks[0, min(per_class, boxes)).
Status SuppressClass(const Step& step, const CombinedProblem& p, const float* boxes,
                     const float* scores, int64_t cls, CombinedPick* picks) {
  const auto worse = [](const CombinedPick& a, const CombinedPick& b) { return a.score < b.score; };
  // Equal scores come in the order in which this heap gives them, as in TensorFlow.
  std::priority_queue<CombinedPick, std::vector<CombinedPick>, decltype(worse)> queue(worse);
  for (int64_t i = 0; i < p.boxes; ++i) {
    const float score = scores[i * p.classes + cls];
    if (!(score > p.score_threshold)) continue;
    const int64_t at = i * p.box_classes + (p.box_classes > 1 ? cls : 0);
    queue.push({i, score, cls, boxes + at * 4});
  }
  const int64_t limit = std::min(p.per_class, p.boxes);
  int64_t count = 0;
  for (; count < limit && !queue.empty(); queue.pop()) {
    RETURN_IF_ERROR(CheckStep(step));
    const CombinedPick& next = queue.top();
    bool apart = true;
    for (int64_t j = count; apart && j > 0; --j) {
      apart = !(image::BoxOverlap(next.corners, picks[j - 1].corners) > p.threshold);
    }
    if (apart) picks[count++] = next;
  }
  return OkStatus();
}

Status RunCombinedNms(OpContext& ctx) {
  ASSIGN_OR_RETURN(const CombinedProblem p, CheckCombined(ctx));
  const bool pad_per_class = ctx.node().Bool("pad_per_class");
  const bool clip = ctx.node().Bool("clip_boxes", true);
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const int64_t most = p.classes > kMax / p.per_class ? kMax : p.per_class * p.classes;
  const int64_t size = pad_per_class ? std::min(p.total, most) : p.total;
  ASSIGN_OR_RETURN(const Shape box_shape, CheckedShape(Dims{p.batch, size, 4}));
  ASSIGN_OR_RETURN(Tensor * boxes, ctx.Allocate(0, box_shape));
  ASSIGN_OR_RETURN(Tensor * scores, ctx.Allocate(1, Shape({p.batch, size})));
  ASSIGN_OR_RETURN(Tensor * classes, ctx.Allocate(2, Shape({p.batch, size})));
  ASSIGN_OR_RETURN(Tensor * valid, ctx.Allocate(3, Shape({p.batch})));
  for (Tensor* t : {boxes, scores, classes}) std::memset(t->raw(), 0, t->bytes());

  const int64_t limit = std::min(p.per_class, p.boxes);
  std::vector<CombinedPick> picks;
  for (int64_t b = 0; b < p.batch; ++b) {
    picks.assign(static_cast<size_t>(limit * p.classes), {});
    for (int64_t cls = 0; p.boxes > 0 && cls < p.classes; ++cls) {
      RETURN_IF_ERROR(SuppressClass(
          ctx.step(), p, ctx.input(0).data<float>() + b * p.boxes * p.box_classes * 4,
          ctx.input(1).data<float>() + b * p.boxes * p.classes, cls, picks.data() + cls * limit));
    }
    // Unused entries are sorted too, as in TensorFlow: std::sort is not stable, so the order of
    // equal scores depends on them.
    std::sort(picks.begin(), picks.end(),
              [](const CombinedPick& x, const CombinedPick& y) { return y.score < x.score; });
    const int64_t found =
        std::count_if(picks.begin(), picks.end(), [](const CombinedPick& c) { return c.box >= 0; });
    const int64_t count = std::min(found, size);
    valid->data<int32_t>()[b] = static_cast<int32_t>(count);
    for (int64_t i = 0; i < count; ++i) {
      const CombinedPick& pick = picks[static_cast<size_t>(i)];
      const int64_t at = b * size + i;
      for (int64_t k = 0; k < 4; ++k) {
        const float v = pick.corners[k];
        boxes->data<float>()[at * 4 + k] = clip ? std::max(std::min(v, 1.0f), 0.0f) : v;
      }
      scores->data<float>()[at] = pick.score;
      classes->data<float>()[at] = static_cast<float>(pick.cls);
    }
  }
  return OkStatus();
}

constexpr Kernel kCombinedTable[] = {
    {"CombinedNonMaxSuppression", "", kAnyType, "image:suppress", RunCombinedNms},
};

}  // namespace

extern constinit const std::span<const Kernel> kCombinedNmsKernels = kCombinedTable;

}  // namespace smelt
