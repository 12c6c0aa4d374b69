// CombinedNonMaxSuppression: an operator for each class of each image, then the best of all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kBoxTypes = Types(Dtype::kFloat);
// An operator each: of so many classes of all images.
constexpr int64_t kMostSuppressions = 1024;

struct Detections {
  int64_t images, boxes, box_classes, classes;  // boxes may be free
  int64_t per_class;                            // that operators give
  int64_t taken, size;                          // of all classes; and with what is zero behind
  Endpoint most, overlap, least;                // of the operators
  bool clip;
  int64_t candidates() const { return per_class * classes; }
};

StatusOr<Detections> DetectionsOf(const Node& n, Legalizer& l) {
  const PartialShape boxes = l.shape(n.input(0)), scores = l.shape(n.input(1));
  const auto per_class = l.Integers(n.input(2)), total = l.Integers(n.input(3));
  const auto overlap = l.Constant(n.input(4));
  if (boxes.rank() != 4 || scores.rank() != 3 || boxes[2] < 0 || scores[2] < 0) {
    return Unimplemented("the number of its classes is not known");
  }
  const int64_t images = boxes[0] >= 0 ? boxes[0] : scores[0];
  if (images < 0) return Unimplemented("the number of its images is free");
  if (!per_class || !total || per_class->size() != 1 || total->size() != 1 || !overlap ||
      overlap->num_elements() != 1) {
    return Unimplemented("its numbers and threshold are no constants");
  }
  Detections d = {images, boxes[1] >= 0 ? boxes[1] : scores[1], boxes[2], scores[2]};
  if (images < 1 || d.classes < 1 || images * d.classes > kMostSuppressions) {
    return Unimplemented("it is of ", images * d.classes, " classes of images, and not of 1 to ",
                         kMostSuppressions);
  }
  if ((*per_class)[0] < 1 || (*total)[0] < 1) return InvalidArgument("it selects no boxes");
  d.per_class = d.boxes > 0 ? std::min((*per_class)[0], d.boxes) : (*per_class)[0];
  const int64_t all = (*per_class)[0] * d.classes;
  d.size = n.Bool("pad_per_class") ? std::min((*total)[0], all) : (*total)[0];
  d.taken = std::min(d.size, d.candidates());
  d.most = l.Int(d.per_class);
  // The operator takes boxes away that overlap as much, and not more alone.
  const float threshold = overlap->data<float>()[0];
  d.overlap = l.Floats(std::nextafter(threshold, std::numeric_limits<float>::max()));
  d.least = n.input(5);
  d.clip = n.Bool("clip_boxes", true);
  return d;
}

// 0, 1, 2... as a constant.
Endpoint Counting(int64_t count, Legalizer& l) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = i;
  return l.Ints(numbers);
}

// Side by side along the first dimension, or one above the other along a new one.
Endpoint Side(OpName op, const std::vector<Endpoint>& parts, const LiteOutput& out,
              OperatorChain& c) {
  if (!c.ok()) return {};
  AttrMap options = Options({{"axis", int64_t{0}}});
  if (op == OpName("tfl.pack")) options.Set("values_count", static_cast<int64_t>(parts.size()));
  if (op == OpName("tfl.concatenation") && parts.size() == 1) return parts[0];
  const auto made = c.l().Add(op, parts, std::move(options), out);
  c.Fail(made.status());
  return made.ok() ? *made : Endpoint();
}

Endpoint Picked(Endpoint from, Endpoint at, std::vector<int64_t> dims, OperatorChain& c) {
  if (!c.ok()) return {};
  return c.Make("tfl.gather", {from, at}, Options({{"axis", int64_t{0}}}),
                {c.l().type(from), PartialShape::Of(dims)});
}

// Zeros behind, up to the size.
Endpoint PaddedTo(Endpoint e, const Detections& d, OperatorChain& c) {
  if (d.size == d.taken || !c.ok()) return e;
  const int rank = c.shape(e).rank();
  std::vector<int64_t> pads(2 * static_cast<size_t>(rank));
  pads[1] = d.size - d.taken;
  std::vector<int64_t> dims = {d.size};
  for (int i = 1; i < rank; ++i) dims.push_back(c.shape(e)[i]);
  return c.Make("tfl.pad", {e, c.l().IntPairs(pads)}, {}, {c.l().type(e), PartialShape::Of(dims)});
}

struct Found {
  Endpoint boxes, scores, classes, valid;
};

// Of one image: boxes [boxes, box_classes, 4] and scores [boxes, classes].
Found FoundIn(Endpoint boxes, Endpoint scores, const Detections& d, OperatorChain& c) {
  Legalizer& l = c.l();
  const int64_t many = std::max<int64_t>(d.boxes, -1), k = d.candidates();
  const std::vector<Endpoint> of_class = c.Unpack(scores, d.classes, 1, PartialShape::Of({many}));
  std::vector<Endpoint> corners;
  if (d.box_classes == 1) {
    corners = {c.Reshape(boxes, {many, 4})};
  } else {
    corners = c.Unpack(boxes, d.box_classes, 1, PartialShape::Of({many, 4}));
  }
  const LiteOutput number = {Dtype::kInt32, PartialShape::Of({})};
  const LiteOutput places = {Dtype::kInt32, PartialShape::Of({d.per_class})};
  std::vector<Endpoint> at, best, counts, own_corners;
  for (size_t i = 0; i < of_class.size() && c.ok(); ++i) {
    const Endpoint from = corners[d.box_classes == 1 ? 0 : i];
    const std::vector<Endpoint> found =
        c.MakeMany("tfl.non_max_suppression_v4", {from, of_class[i], d.most, d.overlap, d.least},
                   {}, {places, number});
    if (!c.ok()) break;
    at.push_back(found[0]);
    counts.push_back(found[1]);
    best.push_back(Picked(of_class[i], at.back(), {d.per_class}, c));
    if (d.box_classes > 1) own_corners.push_back(Picked(from, at.back(), {d.per_class, 4}, c));
  }
  const PartialShape flat = PartialShape::Of({k});
  const Endpoint count =
      Side("tfl.pack", counts, {Dtype::kInt32, PartialShape::Of({d.classes})}, c);
  Endpoint all = Side("tfl.concatenation", best, {Dtype::kFloat, flat}, c);
  // What a class did not find comes behind all that was.
  Endpoint there = c.Less(Counting(d.per_class, l), c.Reshape(count, {d.classes, 1}));
  there = c.Reshape(there, {k});
  all = c.Select(there, all, static_cast<double>(std::numeric_limits<float>::lowest()));
  Found out;
  if (!c.ok()) return out;
  const PartialShape first = PartialShape::Of({d.taken});
  const std::vector<Endpoint> top = c.MakeMany("tfl.topk_v2", {all, l.Int(d.taken)}, {},
                                               {{Dtype::kFloat, first}, {Dtype::kInt32, first}});
  if (!c.ok()) return out;
  const Endpoint place = top[1];
  out.valid = c.Min(c.Reduce("tfl.sum", count, {0}, false), static_cast<double>(d.taken));
  const Endpoint valid = c.Less(Counting(d.taken, l), out.valid);
  out.scores = PaddedTo(c.Select(valid, top[0], 0), d, c);
  std::vector<float> numbers;
  for (int64_t i = 0; i < k; ++i) numbers.push_back(static_cast<float>(i / d.per_class));
  const Endpoint class_of = l.Const(Tensor::Vector(std::span<const float>(numbers)));
  out.classes = PaddedTo(c.Select(valid, Picked(class_of, place, {d.taken}, c), 0), d, c);
  Endpoint found;
  if (d.box_classes == 1) {
    const Endpoint box = Side("tfl.concatenation", at, {Dtype::kInt32, flat}, c);
    found = Picked(corners[0], Picked(box, place, {d.taken}, c), {d.taken, 4}, c);
  } else {
    const Endpoint box =
        Side("tfl.concatenation", own_corners, {Dtype::kFloat, PartialShape::Of({k, 4})}, c);
    found = Picked(box, place, {d.taken, 4}, c);
  }
  if (d.clip) found = c.Max(c.Min(found, 1), 0);
  out.boxes = PaddedTo(c.Select(c.Reshape(valid, {d.taken, 1}), found, 0), d, c);
  return out;
}

LiteEndpoints CombinedSuppression(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kBoxTypes));
  ASSIGN_OR_RETURN(const Detections d, DetectionsOf(n, l));
  const int64_t many = std::max<int64_t>(d.boxes, -1);
  OperatorChain c(l);
  std::vector<Endpoint> boxes, scores;
  if (d.images == 1) {
    boxes = {c.Reshape(n.input(0), {many, d.box_classes, 4})};
    scores = {c.Reshape(n.input(1), {many, d.classes})};
  } else {
    boxes = c.Unpack(n.input(0), d.images, 0, PartialShape::Of({many, d.box_classes, 4}));
    scores = c.Unpack(n.input(1), d.images, 0, PartialShape::Of({many, d.classes}));
  }
  std::vector<Endpoint> parts[4];
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Found f = FoundIn(boxes[i], scores[i], d, c);
    parts[0].push_back(f.boxes);
    parts[1].push_back(f.scores);
    parts[2].push_back(f.classes);
    parts[3].push_back(f.valid);
  }
  std::vector<Endpoint> out;
  for (int i = 0; i < 4; ++i) {
    LiteOutput of = l.OutputOf(n, i);
    of.shape = i == 0   ? PartialShape::Of({d.images, d.size, 4})
               : i == 3 ? PartialShape::Of({d.images})
                        : PartialShape::Of({d.images, d.size});
    out.push_back(Side("tfl.pack", parts[i], of, c));
  }
  return c.Done(out);
}

constexpr ExportRow kDetectionRows[] = {
    {"CombinedNonMaxSuppression", CombinedSuppression},
};

}  // namespace

std::span<const ExportRow> DetectionExport() { return kDetectionRows; }

}  // namespace smelt
