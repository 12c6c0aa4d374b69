// XLA's convolutions, of which JAX makes models: images, rows of samples and volumes in any order
// of dimensions. A dilated input is a transposed convolution.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/chain.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt {
namespace {

using XlaSizes = std::vector<int64_t>;

bool AllAre(const XlaSizes& v, int64_t n) {
  return std::ranges::all_of(v, [&](int64_t x) { return x == n; });
}

struct XlaWindow {
  ConvDimensions d;
  // Of each dimension of an image, of which a row of samples has two: the first is 1.
  XlaSizes strides, before, behind, dilations, rates;
  XlaSizes filter;                          // spatial sizes
  int64_t groups = 1, taken = 0, made = 0;  // channels that a filter reads, and of the result
  size_t spatial() const { return strides.size(); }
};

StatusOr<XlaSizes> XlaConstant(const Node& n, int input, size_t count, Legalizer& l) {
  const auto v = l.Integers(n.input(input));
  if (!v || v->size() != count) return Unimplemented("its window is no constant");
  return *v;
}

bool IsOrder(XlaSizes order) {
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

XlaSizes JoinedOrder(std::initializer_list<int64_t> front, const Dims& spatial,
                     std::initializer_list<int64_t> back) {
  XlaSizes out(front);
  out.insert(out.end(), spatial.begin(), spatial.end());
  out.insert(out.end(), back);
  return out;
}

StatusOr<XlaWindow> ReadXlaWindow(const Node& n, Legalizer& l) {
  XlaWindow w;
  ASSIGN_OR_RETURN(w.d, ParseConvDimensions(n.String("dimension_numbers")));
  const ConvDimensions& d = w.d;
  const size_t spatial = d.input_spatial.size();
  const PartialShape filter = l.shape(n.input(1));
  const int rank = static_cast<int>(spatial) + 2;
  if (spatial < 1 || spatial > 3) return Unimplemented("it has ", spatial, " spatial dimensions");
  if (l.rank(n.input(0)) != rank) return Unimplemented("the rank of its input is not known");
  if (filter.rank() != rank || !filter.fully_known()) {
    return Unimplemented("its filter's shape is not known");
  }
  if (!IsOrder(JoinedOrder({d.input_batch}, d.input_spatial, {d.input_feature})) ||
      !IsOrder(JoinedOrder({d.kernel_output}, d.kernel_spatial, {d.kernel_input})) ||
      !IsOrder(JoinedOrder({d.output_batch}, d.output_spatial, {d.output_feature}))) {
    return InvalidArgument("its dimension numbers do not fit its inputs");
  }
  if (n.Int("batch_group_count", 1) != 1) return Unimplemented("it has groups of its batch");
  ASSIGN_OR_RETURN(w.strides, XlaConstant(n, 2, spatial, l));
  ASSIGN_OR_RETURN(const XlaSizes pads, XlaConstant(n, 3, 2 * spatial, l));
  ASSIGN_OR_RETURN(w.dilations, XlaConstant(n, 4, spatial, l));
  ASSIGN_OR_RETURN(w.rates, XlaConstant(n, 5, spatial, l));
  ASSIGN_OR_RETURN(const XlaSizes groups, XlaConstant(n, 6, 1, l));
  for (size_t i = 0; i < spatial; ++i) {
    w.before.push_back(pads[2 * i]);
    w.behind.push_back(pads[2 * i + 1]);
    w.filter.push_back(filter[static_cast<int>(d.kernel_spatial[i])]);
    const bool positive = w.strides[i] > 0 && w.dilations[i] > 0 && w.rates[i] > 0;
    if (!positive || w.filter[i] <= 0) return InvalidArgument("its window is of no size");
  }
  w.groups = groups[0];
  w.taken = filter[static_cast<int>(d.kernel_input)];
  w.made = filter[static_cast<int>(d.kernel_output)];
  if (w.taken <= 0 || w.made <= 0) return Unimplemented("its filter is empty");
  if (spatial == 1) {
    for (XlaSizes* v : {&w.strides, &w.dilations, &w.rates, &w.filter}) v->insert(v->begin(), 1);
    for (XlaSizes* v : {&w.before, &w.behind}) v->insert(v->begin(), 0);
  }
  return w;
}

// Channels last, and a row of samples as an image of one row.
Endpoint XlaImage(const Node& n, const ConvDimensions& d, OperatorChain& c) {
  const XlaSizes order = JoinedOrder({d.input_batch}, d.input_spatial, {d.input_feature});
  const Endpoint e = std::ranges::is_sorted(order) ? n.input(0) : c.Transpose(n.input(0), order);
  if (d.input_spatial.size() != 1) return e;
  const PartialShape s = c.shape(e);
  return c.Make("tfl.expand_dims", {e, c.l().Int(1)}, {},
                {Dtype::kFloat, PartialShape::Of({s[0], 1, s[1], s[2]})});
}

Endpoint PaddedXla(Endpoint e, const XlaSizes& before, const XlaSizes& behind, OperatorChain& c) {
  if (AllAre(before, 0) && AllAre(behind, 0)) return e;
  XlaSizes pads = {0, 0}, dims;
  const PartialShape from = c.shape(e);
  for (size_t i = 0; i < before.size(); ++i) {
    pads.push_back(before[i]);
    pads.push_back(behind[i]);
  }
  pads.insert(pads.end(), 2, 0);
  for (int i = 0; i < from.rank(); ++i) {
    const auto p = static_cast<size_t>(2 * i);
    dims.push_back(from[i] < 0 ? -1 : from[i] + pads[p] + pads[p + 1]);
  }
  return c.Make("tfl.pad", {e, c.l().IntPairs(pads)}, {}, {Dtype::kFloat, PartialShape::Of(dims)});
}

// The filter in another order and of these sizes; `reversed`: from its end, by spatial dimension.
StatusOr<Endpoint> XlaFilter(const Node& n, const XlaSizes& order, const XlaSizes& sizes,
                             bool reversed, const ConvDimensions& d, OperatorChain& c) {
  if (auto value = c.l().Constant(n.input(1))) {
    if (reversed) {
      const XlaSizes axes(d.kernel_spatial.begin(), d.kernel_spatial.end());
      AttrMap attrs;
      attrs.Set("T", Dtype::kFloat);
      attrs.Set("Tidx", Dtype::kInt64);
      const std::span<const int64_t> list(axes);
      ASSIGN_OR_RETURN(const auto turned,
                       Evaluate("ReverseV2", {*value, Tensor::Vector(list)}, std::move(attrs)));
      value = turned[0];
    }
    ASSIGN_OR_RETURN(const Tensor moved, Transposed(*value, order));
    return c.l().Const(moved.WithShape(Shape(sizes)));
  }
  if (reversed) return Unimplemented("its input is dilated and its filter no constant");
  return c.Reshape(c.Transpose(n.input(1), order), sizes);
}

// As the op has it, of the image that an operator gave.
LiteEndpoints XlaResult(Endpoint e, const Node& n, const ConvDimensions& d, OperatorChain& c) {
  const PartialShape s = c.shape(e);
  if (d.input_spatial.size() == 1) {
    e = c.Make("tfl.squeeze", {e}, Options({{"squeeze_dims", XlaSizes{1}}}),
               {Dtype::kFloat, PartialShape::Of({s[0], s[2], s[3]})});
  }
  const XlaSizes from = JoinedOrder({d.output_batch}, d.output_spatial, {d.output_feature});
  if (std::ranges::is_sorted(from)) return c.Done(e);
  XlaSizes order(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    order[static_cast<size_t>(from[i])] = static_cast<int64_t>(i);
  }
  return c.Done(c.Transpose(e, order));
}

// The result of a padded image, channels last.
PartialShape XlaMade(const PartialShape& padded, const XlaWindow& w) {
  XlaSizes dims = {std::max<int64_t>(padded[0], -1)};
  for (size_t i = 0; i < w.strides.size(); ++i) {
    const int64_t in = padded[static_cast<int>(i) + 1], reach = (w.filter[i] - 1) * w.rates[i] + 1;
    dims.push_back(in < 0 ? -1 : in < reach ? 0 : (in - reach) / w.strides[i] + 1);
  }
  dims.push_back(w.made);
  return PartialShape::Of(dims);
}

// out[o] is the sum over k of in[(o + k - before) / dilation] * filter[k], where that is whole:
// each input adds the filter from its end at its place times the dilation, and `size - 1 - before`
// of that is cut off in front.
LiteEndpoints TransposedXla(const Node& n, const XlaWindow& w, OperatorChain& c) {
  Legalizer& l = c.l();
  if (w.groups != 1 || !AllAre(w.strides, 1) || !AllAre(w.rates, 1) || w.spatial() != 2) {
    return Unimplemented("its input is dilated, and it is of groups, strides or a dilated filter");
  }
  const Endpoint image = XlaImage(n, w.d, c);
  const PartialShape in = c.shape(image);
  XlaSizes full = {std::max<int64_t>(in[0], -1)}, size = full;
  XlaSizes begin = {0}, more_front, more_behind;
  bool cuts = false, same = true;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t rows = in[static_cast<int>(i) + 1];
    if (rows <= 0) return Unimplemented("its input is dilated, and its size not known");
    full.push_back((rows - 1) * w.dilations[i] + w.filter[i]);
    const int64_t front = w.filter[i] - 1 - w.before[i], back = w.filter[i] - 1 - w.behind[i];
    begin.push_back(std::max<int64_t>(front, 0));
    size.push_back(full.back() - begin.back() - std::max<int64_t>(back, 0));
    if (size.back() <= 0) return Unimplemented("nothing is left of its result");
    more_front.push_back(std::max<int64_t>(-front, 0));
    more_behind.push_back(std::max<int64_t>(-back, 0));
    cuts = cuts || size.back() != full.back();
    same = same && size.back() == rows * w.dilations[i] && size.back() <= full.back() &&
           begin.back() == (full.back() - size.back()) / 2;
  }
  full.push_back(w.made);
  size.push_back(w.made);
  begin.push_back(0);
  XlaSizes sizes = {w.made, w.filter[0], w.filter[1], w.taken};
  const XlaSizes order = JoinedOrder({w.d.kernel_output}, w.d.kernel_spatial, {w.d.kernel_input});
  ASSIGN_OR_RETURN(const Endpoint filter, XlaFilter(n, order, sizes, /*reversed=*/true, w.d, c));
  const XlaSizes& made_sizes = same ? size : full;
  Endpoint shape = l.Ints(made_sizes);
  if (made_sizes[0] < 0) {
    ASSIGN_OR_RETURN(const Endpoint batch, BatchOf(image, l));
    shape = c.Make("tfl.concatenation", {batch, l.Ints(std::span(made_sizes).subspan(1))},
                   Options({{"axis", int64_t{0}}}), {Dtype::kInt32, PartialShape::Of({4})});
  }
  Endpoint e = c.Make("tfl.transpose_conv", {shape, filter, image},
                      Options({{"padding", same ? "SAME" : "VALID"},
                               {"stride_h", w.dilations[0]},
                               {"stride_w", w.dilations[1]}}),
                      {Dtype::kFloat, PartialShape::Of(made_sizes)});
  if (cuts && !same) {
    e = c.Make("tfl.slice", {e, l.Ints(begin), l.Ints(size)}, {},
               {Dtype::kFloat, PartialShape::Of(size)});
  }
  return XlaResult(PaddedXla(e, more_front, more_behind, c), n, w.d, c);
}

LiteEndpoints XlaConvRow(Node& n, Legalizer& l) {
  for (const Dtype type : {n.input_types[0], n.input_types[1], n.output_types[0]}) {
    if (type != Dtype::kFloat) return Unimplemented("its operator takes float alone");
  }
  ASSIGN_OR_RETURN(const XlaWindow w, ReadXlaWindow(n, l));
  OperatorChain c(l);
  if (!AllAre(w.dilations, 1)) return TransposedXla(n, w, c);
  for (size_t i = 0; i < w.spatial(); ++i) {
    if (w.before[i] < 0 || w.behind[i] < 0) return Unimplemented("its padding is negative");
  }
  const Endpoint image = PaddedXla(XlaImage(n, w.d, c), w.before, w.behind, c);
  const LiteOutput out = {Dtype::kFloat, XlaMade(c.shape(image), w)};
  const bool volumes = w.spatial() == 3;
  const int64_t channels = c.shape(image)[volumes ? 4 : 3];
  if (volumes && w.groups != 1) return Unimplemented("its operator of volumes has no groups");
  if (volumes) {
    const XlaSizes order =
        JoinedOrder({}, w.d.kernel_spatial, {w.d.kernel_input, w.d.kernel_output});
    const XlaSizes sizes = {w.filter[0], w.filter[1], w.filter[2], w.taken, w.made};
    ASSIGN_OR_RETURN(const Endpoint filter, XlaFilter(n, order, sizes, false, w.d, c));
    return XlaResult(c.Make("tfl.conv_3d", {image, filter, l.NoValue()},
                            Options({{"padding", "VALID"},
                                     {"stride_d", w.strides[0]},
                                     {"stride_h", w.strides[1]},
                                     {"stride_w", w.strides[2]},
                                     {"dilation_d_factor", w.rates[0]},
                                     {"dilation_h_factor", w.rates[1]},
                                     {"dilation_w_factor", w.rates[2]}}),
                            out),
                     n, w.d, c);
  }
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({w.made})));
  AttrMap options = Options({{"padding", "VALID"},
                             {"stride_h", w.strides[0]},
                             {"stride_w", w.strides[1]},
                             {"dilation_h_factor", w.rates[0]},
                             {"dilation_w_factor", w.rates[1]}});
  const bool depthwise = w.groups > 1 && w.taken == 1 && channels == w.groups;
  XlaSizes order = JoinedOrder({w.d.kernel_output}, w.d.kernel_spatial, {w.d.kernel_input});
  XlaSizes sizes = {w.made, w.filter[0], w.filter[1], w.taken};
  if (depthwise) {
    order = JoinedOrder({w.d.kernel_input}, w.d.kernel_spatial, {w.d.kernel_output});
    sizes = {1, w.filter[0], w.filter[1], w.made};
    options.Set("depth_multiplier", w.made / w.groups);
  }
  ASSIGN_OR_RETURN(const Endpoint filter, XlaFilter(n, order, sizes, false, w.d, c));
  return XlaResult(c.Make(depthwise ? OpName("tfl.depthwise_conv_2d") : OpName("tfl.conv_2d"),
                          {image, filter, l.Const(zeros)}, std::move(options), out),
                   n, w.d, c);
}

constexpr ExportRow kXlaConvRows[] = {
    {"XlaConv", XlaConvRow},
    {"XlaConvV2", XlaConvRow},
};

}  // namespace

std::span<const ExportRow> XlaConvExport() { return kXlaConvRows; }

}  // namespace smelt
