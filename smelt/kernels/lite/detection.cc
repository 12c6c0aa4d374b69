// TFLite_Detection_PostProcess of TensorFlow Lite: the boxes of a detector, decoded from how they
// differ from their anchors, without those that overlap better ones. Boxes are decoded in double,
// and results of equal scores keep the order that they have there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/cancellable.h"
#include "smelt/kernels/image/boxes.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {
namespace {

// More than any detector is asked for.
constexpr int64_t kMostDetections = int64_t{1} << 24;
constexpr int64_t kMostBoxes = std::numeric_limits<int32_t>::max();

struct DetectionState final : KernelState {
  int64_t most = 0;        // boxes
  int64_t labels = 0;      // classes that a box is given, where classes are not suppressed apart
  int64_t most_apart = 0;  // boxes of a class, where they are
  int64_t classes = 0;     // without the one of the background
  bool apart = false;
  float least_score = 0, most_overlap = 0;
  double y_scale = 0, x_scale = 0, h_scale = 0, w_scale = 0;
};

StatusOr<std::unique_ptr<KernelState>> PrepareDetection(const Node& node) {
  auto s = std::make_unique<DetectionState>();
  s->most = node.Int("max_detections");
  s->labels = node.Int("max_classes_per_detection");
  s->most_apart = std::min(node.Int("detections_per_class"), s->most);
  s->classes = node.Int("num_classes");
  s->apart = node.Bool("use_regular_nms");
  s->least_score = node.Float("nms_score_threshold");
  s->most_overlap = node.Float("nms_iou_threshold");
  s->y_scale = static_cast<double>(node.Float("y_scale"));
  s->x_scale = static_cast<double>(node.Float("x_scale"));
  s->h_scale = static_cast<double>(node.Float("h_scale"));
  s->w_scale = static_cast<double>(node.Float("w_scale"));
  if (s->most < 0) return InvalidArgument("max_detections is ", s->most, ", below 0");
  if (s->labels < 1)
    return InvalidArgument("max_classes_per_detection is ", s->labels, ", below 1");
  if (s->most > kMostDetections / s->labels) {
    return InvalidArgument("max_detections is ", s->most, " and max_classes_per_detection ",
                           s->labels, ": more than ", kMostDetections, " results");
  }
  if (s->classes < 1 || s->classes > kMostBoxes) {
    return InvalidArgument("num_classes is ", s->classes, ", not from 1 to ", kMostBoxes);
  }
  if (s->apart && s->most_apart < 1) {
    return InvalidArgument("max_detections is ", s->most, " and detections_per_class ",
                           node.Int("detections_per_class"), ", and both count from 1 where ",
                           "classes are suppressed apart");
  }
  if (!(s->most_overlap > 0 && s->most_overlap <= 1)) {
    return InvalidArgument("nms_iou_threshold is ", s->most_overlap, ", not above 0 and at most 1");
  }
  return s;
}

Status CheckDetectionShapes(const DetectionState& s, const Shape& boxes, const Shape& scores,
                            const Shape& anchors) {
  if (boxes.rank() != 3 || boxes[0] != 1 || boxes[1] > kMostBoxes || boxes[2] < 4) {
    return InvalidArgument("the box encodings have the shape ", boxes.ToString(),
                           ", not [1, boxes, 4 or more]");
  }
  if (scores.rank() != 3 || scores[0] != 1 || scores[1] != boxes[1] ||
      (scores[2] != s.classes && scores[2] != s.classes + 1)) {
    return InvalidArgument("the class predictions have the shape ", scores.ToString(), ", not [1, ",
                           boxes[1], ", ", s.classes, " or ", s.classes + 1, "]");
  }
  if (anchors.rank() != 2 || anchors.num_elements() / 4 < boxes[1]) {
    return InvalidArgument("the anchors have the shape ", anchors.ToString(), ", not [", boxes[1],
                           ", 4]");
  }
  return OkStatus();
}

struct DetectionBox {
  float corners[4];  // y, x of the least corner, then of the greatest
};

// Encodings and anchors: y, x of the center, height, width.
StatusOr<std::vector<DetectionBox>> DecodeBoxes(const DetectionState& s, const Tensor& encodings,
                                                const Tensor& anchors) {
  const int64_t count = encodings.dim(1), numbers = encodings.dim(2);
  std::vector<DetectionBox> boxes(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const float* from = encodings.data<float>() + i * numbers;
    const float* anchor = anchors.data<float>() + i * 4;
    const auto at = [](const float* p, int k) { return static_cast<double>(p[k]); };
    const auto center = [&](int k, double scale) {
      return static_cast<float>(at(from, k) / scale * at(anchor, k + 2) + at(anchor, k));
    };
    const auto half = [&](int k, double scale) {
      return static_cast<float>(0.5 * std::exp(at(from, k) / scale) * at(anchor, k));
    };
    const float y = center(0, s.y_scale), x = center(1, s.x_scale);
    const float h = half(2, s.h_scale), w = half(3, s.w_scale);
    boxes[i] = {{y - h, x - w, y + h, x + w}};
    const float* c = boxes[i].corners;
    if (c[0] > c[2] || c[1] > c[3]) {
      return InvalidArgument("box ", i, " ends before it begins: [", c[0], ", ", c[1], ", ", c[2],
                             ", ", c[3], "]");
    }
  }
  return boxes;
}

// The best boxes, best first, at most `most`: none overlaps a better one. Fewer once the step has
// been told to stop.
std::vector<int32_t> SuppressBoxes(const DetectionState& s, std::span<const DetectionBox> boxes,
                                   std::span<const float> scores, int64_t most, const Step& step) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= s.least_score) order.push_back(static_cast<int32_t>(i));
  }
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  std::vector<int32_t> kept;
  std::vector<bool> gone(order.size());
  for (size_t i = 0; i < order.size() && static_cast<int64_t>(kept.size()) < most; ++i) {
    if (gone[i]) continue;
    if (!CheckStep(step).ok()) break;
    kept.push_back(order[i]);
    for (size_t k = i + 1; k < order.size(); ++k) {
      if (gone[k]) continue;
      gone[k] =
          image::BoxOverlap(boxes[order[i]].corners, boxes[order[k]].corners) > s.most_overlap;
    }
  }
  return kept;
}

// The outputs, zeros where nothing is detected.
struct Detected {
  float *boxes, *classes, *scores;
  void Put(int64_t row, const DetectionBox& box, int64_t label, float score) const {
    std::copy_n(box.corners, 4, boxes + 4 * row);
    classes[row] = static_cast<float>(label);
    scores[row] = score;
  }
};

// `scores[box * stride + label]`. How many boxes there are.
int64_t DetectApart(const DetectionState& s, std::span<const DetectionBox> boxes,
                    const float* scores, int64_t stride, const Detected& out, const Step& step) {
  struct Found {
    int32_t box;
    int64_t label;
    float score;
  };
  std::vector<std::vector<Found>> of_class(static_cast<size_t>(s.classes));
  ParallelFor(s.classes, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> mine(boxes.size());
    for (int64_t label = begin; label < end; ++label) {
      for (size_t i = 0; i < boxes.size(); ++i) {
        mine[i] = scores[static_cast<int64_t>(i) * stride + label];
      }
      for (const int32_t box : SuppressBoxes(s, boxes, mine, s.most_apart, step)) {
        of_class[label].push_back({box, label, mine[box]});
      }
    }
  });
  std::vector<Found> best;
  for (const std::vector<Found>& found : of_class) {
    const auto before = static_cast<std::ptrdiff_t>(best.size());
    best.insert(best.end(), found.begin(), found.end());
    std::inplace_merge(best.begin(), best.begin() + before, best.end(),
                       [](const Found& a, const Found& b) { return a.score > b.score; });
    if (static_cast<int64_t>(best.size()) > s.most) best.resize(static_cast<size_t>(s.most));
  }
  for (size_t row = 0; row < best.size(); ++row) {
    const Found& f = best[row];
    out.Put(static_cast<int64_t>(row), boxes[f.box], f.label, f.score);
  }
  return static_cast<int64_t>(best.size());
}

// The same by the best score of each box, which is then given its best classes.
int64_t DetectTogether(const DetectionState& s, std::span<const DetectionBox> boxes,
                       const float* scores, int64_t stride, const Detected& out, const Step& step) {
  const int64_t labels = std::min(s.labels, s.classes);
  std::vector<int32_t> order(static_cast<size_t>(s.classes));
  std::vector<int32_t> best(boxes.size() * static_cast<size_t>(labels));
  std::vector<float> highest(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    const float* of_box = scores + static_cast<int64_t>(i) * stride;
    int32_t* mine = best.data() + static_cast<int64_t>(i) * labels;
    if (labels == 1) {
      *mine = static_cast<int32_t>(std::max_element(of_box, of_box + s.classes) - of_box);
    } else {
      // Classes of equal scores come as this algorithm leaves them.
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + labels, order.end(),
                        [&](int32_t a, int32_t b) { return of_box[a] > of_box[b]; });
      std::copy_n(order.begin(), labels, mine);
    }
    highest[i] = of_box[*mine];
  }
  const std::vector<int32_t> kept = SuppressBoxes(s, boxes, highest, s.most, step);
  for (size_t k = 0; k < kept.size(); ++k) {
    for (int64_t label = 0; label < labels; ++label) {
      const int32_t c = best[kept[k] * labels + label];
      out.Put(static_cast<int64_t>(k) * s.labels + label, boxes[kept[k]], c,
              scores[kept[k] * stride + c]);
    }
  }
  return static_cast<int64_t>(kept.size());
}

Status RunDetection(OpContext& ctx) {
  const auto& s = ctx.state<DetectionState>();
  const Tensor &encodings = ctx.input(0), &predictions = ctx.input(1), &anchors = ctx.input(2);
  RETURN_IF_ERROR(CheckDetectionShapes(s, encodings.shape(), predictions.shape(), anchors.shape()));
  ASSIGN_OR_RETURN(const std::vector<DetectionBox> boxes, DecodeBoxes(s, encodings, anchors));
  const int64_t rows = s.most * s.labels;
  const Shape shapes[] = {Shape({1, rows, 4}), Shape({1, rows}), Shape({1, rows}), Shape({1})};
  float* out[4];
  for (int i = 0; i < 4; ++i) {
    ASSIGN_OR_RETURN(Tensor * t, ctx.Allocate(i, shapes[i]));
    out[i] = t->data<float>();
    std::fill_n(out[i], t->num_elements(), 0.0f);
  }
  if (boxes.empty()) return OkStatus();
  const int64_t stride = predictions.dim(2);
  const float* scores = predictions.data<float>() + (stride - s.classes);  // behind the background
  const auto detect = s.apart ? DetectApart : DetectTogether;
  out[3][0] =
      static_cast<float>(detect(s, boxes, scores, stride, {out[0], out[1], out[2]}, ctx.step()));
  return CheckStep(ctx.step());
}

constexpr Kernel kLiteDetectionTable[] = {
    {"_LiteDetectionPostProcess", "", kAnyType, "lite:detection", RunDetection, PrepareDetection},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteDetectionKernels = lite::kLiteDetectionTable;
}  // namespace smelt
