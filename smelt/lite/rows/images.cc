// Ops that sample images: products with matrices of weights.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

constexpr DtypeSet kImageTypes = Types(Dtype::kFloat);
// Matrices are of so many elements at most.
constexpr int64_t kMostWeights = 1 << 22;
// More operators than that are made of no single node.
constexpr int64_t kMostSlices = 256;

template <typename T>
Tensor VectorOf(const std::vector<T>& values) {
  return Tensor::Vector(std::span<const T>(values));
}
Tensor IntPair(int64_t a, int64_t b) {
  return Tensor::Vector({static_cast<int32_t>(a), static_cast<int32_t>(b)});
}

struct ImageSizes {
  int64_t count, height, width, channels;
};

// Those of a batch of images; the count may be free.
StatusOr<ImageSizes> ImageSizesOf(Endpoint e, const Legalizer& l) {
  const PartialShape s = l.shape(e);
  if (s.rank() != 4 || s[1] < 0 || s[2] < 0 || s[3] < 0) {
    return Unimplemented("the sizes of its images are not known");
  }
  return ImageSizes{std::max<int64_t>(s[0], -1), s[1], s[2], s[3]};
}

// The weights by which one size becomes another: what the op makes of images that are one where
// they stand, and one pixel wide.
StatusOr<Tensor> WeightsOf(const Node& n, int64_t from, const std::vector<Tensor>& behind,
                           int64_t to) {
  if (from * from > kMostWeights || from * to > kMostWeights) {
    return Unimplemented("its images are too large for a product");
  }
  ASSIGN_OR_RETURN(Tensor ones, Tensor::Zeros(Dtype::kFloat, Shape({1, from, 1, from})));
  for (int64_t i = 0; i < from; ++i) ones.data<float>()[i * from + i] = 1;
  std::vector<Tensor> inputs = {ones};
  inputs.insert(inputs.end(), behind.begin(), behind.end());
  AttrMap attrs = n.attrs();
  attrs.Set("T", Dtype::kFloat);
  ASSIGN_OR_RETURN(auto out, Evaluate(n.op_name(), std::move(inputs), std::move(attrs)));
  return out[0].WithShape(Shape({to, from}));
}

// Rows of images become others by one matrix, columns by another; both (to, from).
LiteEndpoints ImageProduct(Node& n, Legalizer& l, const ImageSizes& in, const Tensor& rows,
                           const Tensor& columns) {
  const int64_t height = rows.shape()[0], width = columns.shape()[0];
  OperatorChain c(l);
  Endpoint e = c.Cast(n.input(0), Dtype::kFloat);
  const auto matrix = [&](const Tensor& t) {
    return l.Const(t.WithShape(Shape({1, t.shape()[0], t.shape()[1]})));
  };
  e = c.Reshape(e, {in.count, in.height, in.width * in.channels});
  e = c.Make("tfl.batch_matmul", {matrix(rows), e}, {},
             {Dtype::kFloat, PartialShape::Of({in.count, height, in.width * in.channels})});
  const int64_t many = in.count < 0 ? -1 : in.count * height;
  e = c.Reshape(e, {many, in.width, in.channels});
  e = c.Make("tfl.batch_matmul", {matrix(columns), e}, {},
             {Dtype::kFloat, PartialShape::Of({many, width, in.channels})});
  return c.Done(c.Reshape(e, {in.count, height, width, in.channels}));
}

LiteEndpoints Resized(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(
      n, Types(Dtype::kFloat, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16, Dtype::kInt32)));
  ASSIGN_OR_RETURN(const ImageSizes in, ImageSizesOf(n.input(0), l));
  const auto size = l.Integers(n.input(1));
  if (!size || size->size() != 2) return Unimplemented("its size is no constant");
  const auto weights = [&](int64_t from, int64_t to) {
    return WeightsOf(n, from, {IntPair(to, 1)}, to);
  };
  ASSIGN_OR_RETURN(const Tensor rows, weights(in.height, (*size)[0]));
  ASSIGN_OR_RETURN(const Tensor columns, weights(in.width, (*size)[1]));
  return ImageProduct(n, l, in, rows, columns);
}

LiteEndpoints Scaled(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kImageTypes));
  ASSIGN_OR_RETURN(const ImageSizes in, ImageSizesOf(n.input(0), l));
  const auto size = l.Integers(n.input(1));
  const auto scale = l.Constant(n.input(2)), shift = l.Constant(n.input(3));
  if (!size || size->size() != 2 || !scale || !shift || scale->num_elements() != 2 ||
      shift->num_elements() != 2) {
    return Unimplemented("its scales are no constants");
  }
  const auto weights = [&](int64_t from, size_t dim) {
    const int64_t to = (*size)[dim];
    const std::vector<float> scales = {scale->data<float>()[dim], 1},
                             shifts = {shift->data<float>()[dim], 0};
    return WeightsOf(n, from, {IntPair(to, 1), VectorOf(scales), VectorOf(shifts)}, to);
  };
  ASSIGN_OR_RETURN(const Tensor rows, weights(in.height, 0));
  ASSIGN_OR_RETURN(const Tensor columns, weights(in.width, 1));
  return ImageProduct(n, l, in, rows, columns);
}

// A size, and as a scalar of int32 where it is known when it runs.
struct ImageSide {
  int64_t size;
  Endpoint scalar;
};

// What a box samples of a side: the weights of its pixels (boxes, places, size), and whether each
// place is one of the image (boxes, places).
struct Sampling {
  Endpoint weights, inside;
};

// `sizes`: what is known of the shape that `parts` say.
Endpoint ShapedAs(Endpoint e, const std::vector<Endpoint>& parts, std::vector<int64_t> sizes,
                  OperatorChain& c) {
  if (std::ranges::count_if(sizes, [](int64_t s) { return s < 0; }) < 2) {
    return c.Reshape(e, std::move(sizes));
  }
  const auto count = static_cast<int64_t>(parts.size());
  if (!c.ok()) return {};
  const auto shape =
      c.l().Add("tfl.pack", parts, Options({{"values_count", count}, {"axis", int64_t{0}}}),
                {Dtype::kInt32, PartialShape::Of({count})});
  c.Fail(shape.status());
  if (!shape.ok()) return {};
  return c.Make("tfl.reshape", {e, *shape}, {}, {c.l().type(e), PartialShape::Of(sizes)});
}

Sampling SampleAt(Endpoint low, Endpoint high, int64_t count, const ImageSide& side, int64_t boxes,
                  bool bilinear, OperatorChain& c) {
  Legalizer& l = c.l();
  std::vector<float> steps, numbers;
  for (int64_t i = 0; i < count; ++i) {
    const auto last = static_cast<float>(count - 1);
    steps.push_back(count > 1 ? static_cast<float>(i) / last : 0.5f);
  }
  const Endpoint step = l.Const(VectorOf(steps));
  Endpoint number, last;
  if (side.size >= 0) {
    for (int64_t i = 0; i < side.size; ++i) numbers.push_back(static_cast<float>(i));
    number = l.Const(VectorOf(numbers));
    last = l.Floats(static_cast<float>(side.size - 1));
  } else {
    const Endpoint whole = c.CountTo(side.scalar, -1);
    if (!c.ok()) return {};
    number = c.Cast(whole, Dtype::kFloat);
    last = c.Cast(c.Sub(side.scalar, 1), Dtype::kFloat);
  }
  // low and high are (boxes, 1).
  Endpoint at = c.Mul(c.Add(low, c.Mul(c.Sub(high, low), step)), last);
  const Endpoint inside = c.And(c.LessEqual(0, at), c.LessEqual(at, last));
  at = c.Reshape(at, {boxes, count, 1});
  Sampling out;
  out.inside = c.Cast(inside, Dtype::kFloat);
  if (bilinear) {
    out.weights = c.Max(c.Sub(1, c.Op("tfl.abs", {c.Sub(at, number)})), 0);
  } else {
    const Endpoint nearest = c.Op("tfl.floor", {c.Add(at, 0.5)});
    out.weights = c.Cast(c.Equal(nearest, number), Dtype::kFloat);
  }
  return out;
}

StatusOr<ImageSide> SideOf(Endpoint images, int64_t axis, Legalizer& l) {
  ImageSide side = {std::max<int64_t>(l.shape(images)[static_cast<int>(axis)], -1), {}};
  if (side.size >= 0) {
    side.scalar = l.Int(side.size);
  } else {
    ASSIGN_OR_RETURN(side.scalar, SizeOf(images, axis, l));
  }
  return side;
}

// A box of an image each, sampled at as many places.
LiteEndpoints Cropped(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat, Dtype::kUint8, Dtype::kInt8, Dtype::kInt16)));
  const PartialShape shape = l.shape(n.input(0));
  if (shape.rank() != 4 || shape[3] < 0) {
    return Unimplemented("the number of its channels is not known");
  }
  const int64_t channels = shape[3];
  const auto size = l.Integers(n.input(3));
  if (!size || size->size() != 2) return Unimplemented("its size is no constant");
  const std::string method = n.String("method", "bilinear");
  if (method != "bilinear" && method != "nearest") return Unimplemented("its method is ", method);
  const PartialShape of_boxes = l.shape(n.input(1));
  const int64_t boxes = of_boxes.rank() == 2 ? std::max<int64_t>(of_boxes[0], -1) : -1;
  const int64_t height = (*size)[0], width = (*size)[1];
  ASSIGN_OR_RETURN(const ImageSide in_rows, SideOf(n.input(0), 1, l));
  ASSIGN_OR_RETURN(const ImageSide in_columns, SideOf(n.input(0), 2, l));
  ASSIGN_OR_RETURN(const Endpoint images, AsInt32(n.input(2), l));
  OperatorChain c(l);
  const LiteOutput column = {Dtype::kFloat, PartialShape::Of({boxes, 1})};
  const std::vector<LiteOutput> four(4, column);
  ASSIGN_OR_RETURN(Node * sides, l.AddMany("tfl.split", std::vector<Endpoint>{l.Int(1), n.input(1)},
                                           Options({{"num_splits", int64_t{4}}}), four));
  const bool bilinear = method == "bilinear";
  const Sampling rows = SampleAt({sides, 0}, {sides, 2}, height, in_rows, boxes, bilinear, c);
  const Sampling columns = SampleAt({sides, 1}, {sides, 3}, width, in_columns, boxes, bilinear, c);
  RETURN_IF_ERROR(c.Done(rows.weights).status());
  const int64_t row = in_columns.size < 0 ? -1 : in_columns.size * channels;
  const Endpoint row_size = c.Mul(in_columns.scalar, static_cast<double>(channels));
  const Endpoint rest = l.Int(-1);
  Endpoint e = c.Make(
      "tfl.gather", {n.input(0), images}, {},
      {l.type(n.input(0)), PartialShape::Of({boxes, in_rows.size, in_columns.size, channels})});
  e = ShapedAs(c.Cast(e, Dtype::kFloat), {rest, in_rows.scalar, row_size},
               {boxes, in_rows.size, row}, c);
  e = c.Make("tfl.batch_matmul", {rows.weights, e}, {},
             {Dtype::kFloat, PartialShape::Of({boxes, height, row})});
  e = ShapedAs(e, {rest, l.Int(height), in_columns.scalar, l.Int(channels)},
               {boxes, height, in_columns.size, channels}, c);
  const Endpoint weights =
      ShapedAs(columns.weights, {rest, l.Int(1), l.Int(width), in_columns.scalar},
               {boxes, 1, width, in_columns.size}, c);
  e = c.Make("tfl.batch_matmul", {weights, e}, {},
             {Dtype::kFloat, PartialShape::Of({boxes, height, width, channels})});
  const Endpoint inside = c.Mul(c.Reshape(rows.inside, {boxes, height, 1, 1}),
                                c.Reshape(columns.inside, {boxes, 1, width, 1}));
  const double outside = n.Float("extrapolation_value");
  return c.Done(c.Select(c.Less(0, inside), e, outside));
}

// The image with the zeros around it that patches of padding SAME reach over.
StatusOr<Endpoint> PaddedForPatches(const Node& n, Legalizer& l) {
  if (n.String("padding") != "SAME") return n.input(0);
  const PartialShape in = l.shape(n.input(0));
  const std::vector<int64_t> window = n.Ints("ksizes"), strides = n.Ints("strides"),
                             rates = n.Ints("rates");
  std::vector<int64_t> pads(8), dims(in.dims().begin(), in.dims().end());
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (dims[i] < 0) return Unimplemented("how much is padded before its input is not known");
    const int64_t count = (dims[i] + strides[i] - 1) / strides[i];
    const int64_t reach = (count - 1) * strides[i] + (window[i] - 1) * rates[i] + 1;
    const int64_t all = std::max<int64_t>(reach - dims[i], 0);
    pads[2 * i] = all / 2;
    pads[2 * i + 1] = all - all / 2;
    dims[i] += all;
  }
  return l.Add("tfl.pad", {n.input(0), l.IntPairs(pads)}, {},
               {l.type(n.input(0)), PartialShape::Of(dims)});
}

// A slice of the image for each place in a patch, side by side in the channels.
LiteEndpoints PatchesOfSlices(Node& n, Legalizer& l) {
  const std::vector<int64_t> window = n.Ints("ksizes"), strides = n.Ints("strides"),
                             rates = n.Ints("rates");
  if (window[1] * window[2] > kMostSlices) return Unimplemented("its patches are too large");
  ASSIGN_OR_RETURN(const Endpoint image, PaddedForPatches(n, l));
  LiteOutput part = l.OutputOf(n);
  std::vector<int64_t> dims = {-1, -1, -1, l.shape(image)[3]};
  for (int i = 0; i < 3 && part.shape.rank() == 4; ++i)
    dims[static_cast<size_t>(i)] = part.shape[i];
  part.shape = PartialShape::Of(dims);
  std::vector<Endpoint> parts;
  for (int64_t y = 0; y < window[1]; ++y) {
    for (int64_t x = 0; x < window[2]; ++x) {
      // The last patch ends so far before the end.
      const int64_t left_y = (window[1] - 1 - y) * rates[1],
                    left_x = (window[2] - 1 - x) * rates[2];
      const std::vector<int64_t> begin = {0, y * rates[1], x * rates[2], 0},
                                 end = {0, -left_y, -left_x, 0},
                                 by = {1, strides[1], strides[2], 1};
      const int64_t open = 9 | (left_y == 0 ? 2 : 0) | (left_x == 0 ? 4 : 0);
      ASSIGN_OR_RETURN(const Endpoint e,
                       l.Add("tfl.strided_slice", {image, l.Ints(begin), l.Ints(end), l.Ints(by)},
                             Options({{"begin_mask", int64_t{9}}, {"end_mask", open}}), part));
      parts.push_back(e);
    }
  }
  if (parts.size() == 1) return One(parts[0]);
  return One(l.Add("tfl.concatenation", parts, Options({{"axis", int64_t{3}}}), l.OutputOf(n)));
}

// Each patch in the channels: a convolution whose filters each take one pixel's channel, where
// these are not too many.
LiteEndpoints Patches(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, kImageTypes));
  const PartialShape in = l.shape(n.input(0));
  if (in.rank() != 4 || in[3] < 0) return Unimplemented("its number of channels is not known");
  const std::vector<int64_t> window = n.Ints("ksizes"), strides = n.Ints("strides"),
                             rates = n.Ints("rates");
  const int64_t count = window[1] * window[2] * in[3];
  if (count * count > kMostWeights) return PatchesOfSlices(n, l);
  ASSIGN_OR_RETURN(Tensor filters,
                   Tensor::Zeros(Dtype::kFloat, Shape({count, window[1], window[2], in[3]})));
  for (int64_t i = 0; i < count; ++i) filters.data<float>()[i * count + i] = 1;
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({count})));
  return One(l.Add("tfl.conv_2d", {n.input(0), l.Const(filters), l.Const(zeros)},
                   Options({{"padding", n.String("padding")},
                            {"stride_h", strides[1]},
                            {"stride_w", strides[2]},
                            {"dilation_h_factor", rates[1]},
                            {"dilation_w_factor", rates[2]}}),
                   l.OutputOf(n)));
}

constexpr ExportRow kImageRows[] = {
    {"ResizeBicubic", Resized}, {"ResizeArea", Resized},          {"ScaleAndTranslate", Scaled},
    {"CropAndResize", Cropped}, {"ExtractImagePatches", Patches},
};

}  // namespace

std::span<const ExportRow> ImageExport() { return kImageRows; }

}  // namespace smelt
