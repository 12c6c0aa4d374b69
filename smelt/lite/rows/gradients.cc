// Gradients of what takes parts, moves windows or broadcasts: each place gets what was made of it.
#include <algorithm>
#include <optional>

#include "smelt/kernels/common/slice_spec.h"
#include "smelt/lite/composites/lstm.h"
#include "smelt/lite/rows/chain.h"
#include "smelt/lite/rows/windows.h"

namespace smelt {
namespace {

std::vector<int64_t> SizesOrFree(const PartialShape& shape) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(std::max<int64_t>(shape[i], -1));
  return dims;
}

// Where one dimension of what is placed goes: its first element, and the size of the whole.
struct Place {
  int64_t first, whole;
};

// So many zeros behind each element along an axis, less one.
Endpoint SpreadBy(Endpoint e, int axis, int64_t step, OperatorChain& c) {
  std::vector<int64_t> dims = SizesOrFree(c.shape(e));
  const auto at = static_cast<size_t>(axis);
  if (!c.ok() || step == 1 || dims[at] == 1) return e;
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t& product = i > at ? inner : outer;
    product = dims[i] < 0 || product < 0 ? -1 : product * dims[i];
  }
  if (inner < 0 || dims[at] < 0) {
    c.Fail(Unimplemented("the sizes of what it writes are not known"));
    return {};
  }
  const Endpoint rows = c.Reshape(e, {outer, inner});
  const std::vector<int64_t> behind = {0, 0, 0, (step - 1) * inner};
  const Endpoint padded = c.Make("tfl.pad", {rows, c.l().IntPairs(behind)}, {},
                                 {c.l().type(e), PartialShape::Of({outer, step * inner})});
  dims[at] *= step;
  return c.Reshape(padded, dims);
}

// `e` with zeros around it, or less of it where it reaches beyond the whole.
Endpoint Placed(Endpoint e, const std::vector<Place>& places, OperatorChain& c) {
  if (!c.ok()) return {};
  std::vector<int64_t> dims = SizesOrFree(c.shape(e)), kept = dims, pads;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto [first, whole] = places[i];
    if (whole < 0) {
      pads.insert(pads.end(), {0, 0});
      continue;
    }
    kept[i] = std::min(dims[i], whole - first);
    dims[i] = whole;
    pads.insert(pads.end(), {first, whole - first - kept[i]});
  }
  if (PartialShape::Of(kept) != c.shape(e)) {
    const StatusOr<Endpoint> part = LitePart(e, std::vector<int64_t>(kept.size(), 0), kept, c.l());
    c.Fail(part.status());
    if (!c.ok()) return {};
    e = *part;
  }
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return e;
  return c.Make("tfl.pad", {e, c.l().IntPairs(pads)}, {}, {c.l().type(e), PartialShape::Of(dims)});
}

// The dimension that each entry of a slice is of; nothing: it makes a new one, or stands for
// several.
std::vector<std::optional<int>> DimsOfEntries(const Node& n, int64_t entries, int rank) {
  const int64_t ellipsis = n.Int("ellipsis_mask"), added = n.Int("new_axis_mask");
  const auto has = [](int64_t mask, int64_t i) { return (mask >> i & 1) != 0; };
  int64_t named = 0;
  for (int64_t i = 0; i < entries; ++i) named += !has(ellipsis, i) && !has(added, i);
  std::vector<std::optional<int>> dims;
  int next = 0;
  for (int64_t i = 0; i < entries; ++i) {
    if (has(ellipsis, i)) next += rank - static_cast<int>(named);
    const bool names = !has(ellipsis, i) && !has(added, i);
    dims.push_back(names ? std::optional<int>(next++) : std::nullopt);
  }
  return dims;
}

// The shape of what a slice was taken of; where sizes alone are not known, its rank is.
PartialShape SlicedShape(const Node& n, const Legalizer& l) {
  const PartialShape out = l.shape({const_cast<Node*>(&n), 0}), sizes = l.shape(n.input(0));
  if (out.known_rank() || sizes.rank() != 1 || sizes[0] < 0) return out;
  return PartialShape::UnknownOfRank(static_cast<int>(sizes[0]));
}

// Masks have a bit for each.
constexpr int64_t kMaxEntries = 32;

// Of a slice by ones of sizes, or from places, that are known when it runs: zeros before it, and as
// many behind as are left.
LiteEndpoints RunningSliceGrad(Node& n, Legalizer& l) {
  const PartialShape out = SlicedShape(n, l), entries = l.shape(n.input(1));
  const auto begin = l.Integers(n.input(1)), strides = l.Integers(n.input(3));
  const int rank = out.rank();
  if (rank < 1 || entries.rank() != 1 || entries[0] < 1 || entries[0] > kMaxEntries || !strides ||
      std::ranges::any_of(*strides, [](int64_t s) { return s != 1; })) {
    return Unimplemented("the part that it writes is not known, or not by ones");
  }
  const auto dims = DimsOfEntries(n, entries[0], rank);
  const auto all = static_cast<size_t>(rank);
  std::vector<int64_t> said(all), first(all), places(all), removed;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto has = [&](absl::string_view mask) { return (n.Int(mask) >> i & 1) != 0; };
    if (has("new_axis_mask")) return Unimplemented("its slice adds a dimension");
    if (!dims[i]) continue;
    if (*dims[i] < 0 || *dims[i] >= rank) return Unimplemented("its slice has too many parts");
    const auto d = static_cast<size_t>(*dims[i]);
    const bool shrinks = has("shrink_axis_mask");
    if (shrinks) removed.push_back(*dims[i]);
    if (has("begin_mask") && !shrinks) continue;
    said[d] = 1;
    places[d] = static_cast<int64_t>(i);
    if (begin) first[d] = (*begin)[i];
  }
  OperatorChain c(l);
  const LiteOutput vector = {Dtype::kInt32, PartialShape::Of({rank})};
  ASSIGN_OR_RETURN(const Endpoint whole, AsInt32(n.input(0), l));
  Endpoint before = l.Ints(first);
  if (!begin) {
    ASSIGN_OR_RETURN(const Endpoint given, AsInt32(n.input(1), l));
    before = c.Make("tfl.gather", {given, l.Ints(places)}, Options({{"axis", int64_t{0}}}), vector);
    before = c.Mul(before, l.Ints(said));
  }
  if (!begin || std::ranges::any_of(first, [](int64_t f) { return f < 0; })) {
    const Endpoint wrapped = c.Add(before, whole);
    before = c.Select(c.Less(before, 0), wrapped, before);
  }
  before = c.Max(c.Min(before, whole), 0);
  Endpoint part = n.input(4);
  for (const int64_t axis : removed) {
    std::vector<int64_t> sizes = SizesOrFree(c.shape(part));
    if (axis > static_cast<int64_t>(sizes.size())) return Unimplemented("its rank is not known");
    sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(axis), 1);
    part =
        c.Make("tfl.expand_dims", {part, l.Int(axis)}, {}, {l.type(part), PartialShape::Of(sizes)});
  }
  const Endpoint size = c.ShapeOf(part), behind = c.Sub(c.Sub(whole, before), size);
  const Endpoint pads = c.Make("tfl.pack", {before, behind},
                               Options({{"values_count", int64_t{2}}, {"axis", int64_t{1}}}),
                               {Dtype::kInt32, PartialShape::Of({rank, 2})});
  return c.Done(c.Make("tfl.pad", {part, pads}, {}, {l.type(part), out}));
}

// Zeros but where the slice took from, along each dimension by itself.
LiteEndpoints SliceGrad(Node& n, Legalizer& l) {
  const Dtype type = l.type(n.input(4));
  if (!Has(Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64), type)) {
    return Unimplemented("its operators do not take ", DtypeName(type));
  }
  // A size that stands for one that is free: all of it is taken, or nobody knows what.
  constexpr int64_t kAny = int64_t{1} << 40;
  const PartialShape out = SlicedShape(n, l);
  const auto begin = l.Constant(n.input(1)), end = l.Constant(n.input(2)),
             strides = l.Constant(n.input(3));
  if (!out.known_rank()) return Unimplemented("the rank of what it writes a part of is not known");
  if (!begin || !end || !strides) return RunningSliceGrad(n, l);
  Shape shape;
  for (int i = 0; i < out.rank(); ++i) shape.Add(out[i] < 0 ? kAny : out[i]);
  ASSIGN_OR_RETURN(const auto masks, ReadSliceMasks(n));
  SliceSpec spec;
  const auto& attrs = *static_cast<const IntAttrs*>(masks.get());
  if (!ResolveSlice(shape, *begin, *end, *strides, attrs, &spec).ok()) {
    return Unimplemented("the part that it writes is not there");
  }
  OperatorChain c(l);
  std::vector<int64_t> sizes;
  std::vector<Place> places;
  for (int i = 0; i < out.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (out[i] < 0) {
      if (spec.begin[k] != 0 || spec.size[k] != kAny || spec.stride[k] != 1) {
        return RunningSliceGrad(n, l);
      }
      sizes.push_back(-1);
      places.push_back({0, -1});
      continue;
    }
    if (spec.size[k] == 0) return Unimplemented("it writes nothing");
    sizes.push_back(spec.size[k]);
    const int64_t last = spec.begin[k] + (spec.size[k] - 1) * spec.stride[k];
    places.push_back({std::min(spec.begin[k], last), out[i]});
  }
  Endpoint e = n.input(4);
  if (SizesOrFree(l.shape(e)) != sizes) {
    if (std::ranges::count(sizes, -1) > 1) return RunningSliceGrad(n, l);
    e = c.Reshape(e, sizes);
  }
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t stride = spec.stride[static_cast<size_t>(i)];
    if (stride < 0 && sizes[static_cast<size_t>(i)] != 1) {
      e = c.Make("tfl.reverse_v2", {e, l.Ints(std::vector<int64_t>{i})}, {}, {type, c.shape(e)});
    }
    e = SpreadBy(e, i, std::abs(stride), c);
  }
  e = Placed(e, places, c);
  if (c.ok() && e == n.input(4)) e = c.Reshape(e, SizesOrFree(out));
  return c.Done(e);
}

// How many places of the image each window has, along one dimension.
std::vector<int64_t> CountsOf(const WindowDim& d) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < d.out; ++i) {
    const int64_t first = i * d.stride - d.before;
    counts.push_back(std::min(first + d.size, d.in) - std::max<int64_t>(first, 0));
  }
  return counts;
}

// Each place gets its share of every window that it is in. A depthwise convolution with ones, over
// gradients that stand as far apart as windows do, sums them.
LiteEndpoints AveragePoolGrad(Node& n, Legalizer& l) {
  if (l.type(n.input(1)) != Dtype::kFloat || n.String("data_format", "NHWC") != "NHWC") {
    return Unimplemented("it is not of float images whose channels come last");
  }
  const PartialShape out = l.shape({&n, 0});
  ASSIGN_OR_RETURN(const WindowGrid w, WindowGridOf(n, out, n.Ints("ksize"), {1, 1, 1, 1}, false));
  const WindowDim dims[] = {w.rows, w.columns};
  const std::vector<int64_t> rows = CountsOf(w.rows), columns = CountsOf(w.columns);
  if (rows.empty() || columns.empty()) return Unimplemented("its images have no window");
  OperatorChain c(l);
  Endpoint e = n.input(1);
  const auto uneven = [](const std::vector<int64_t>& counts) {
    return std::ranges::any_of(counts, [&](int64_t k) { return k != counts[0]; });
  };
  float share = 1.0f / static_cast<float>(rows[0] * columns[0]);
  if (uneven(rows) || uneven(columns)) {
    ASSIGN_OR_RETURN(Tensor shares,
                     Tensor::Make(Dtype::kFloat, Shape({w.rows.out, w.columns.out, 1})));
    float* to = shares.data<float>();
    for (const int64_t r : rows) {
      for (const int64_t k : columns) *to++ = 1.0f / static_cast<float>(r * k);
    }
    e = c.Mul(e, l.Const(shares));
    share = 1.0f;
  }
  // Windows side by side: what a place gets is there as it is.
  const bool apart = std::ranges::all_of(dims, [](const WindowDim& d) {
    return d.size == d.stride && d.before == 0 && d.in >= d.out * d.size;
  });
  std::vector<Place> places = {{0, -1}, {0, w.rows.in}, {0, w.columns.in}, {0, -1}};
  if (apart) {
    if (share != 1.0f) e = c.Mul(e, share);
    const std::vector<int64_t> sizes = {w.rows.out * w.rows.size, w.columns.out * w.columns.size};
    e = c.Make("tfl.resize_nearest_neighbor", {e, l.Ints(sizes)},
               Options({{"half_pixel_centers", true}}),
               {Dtype::kFloat, PartialShape::Of({w.batch, sizes[0], sizes[1], w.channels})});
    return c.Done(Placed(e, places, c));
  }
  for (int i = 0; i < 2; ++i) {
    const WindowDim& d = dims[i];
    e = SpreadBy(e, i + 1, d.stride, c);
    places[static_cast<size_t>(i) + 1] = {d.size - 1 - d.before, d.in + d.size - 1};
  }
  e = Placed(e, places, c);
  ASSIGN_OR_RETURN(const Tensor filter,
                   FilledTensor(Dtype::kFloat, Shape({1, w.rows.size, w.columns.size, w.channels}),
                                static_cast<double>(share)));
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({w.channels})));
  const AttrMap options = Options({{"padding", "VALID"},
                                   {"stride_h", int64_t{1}},
                                   {"stride_w", int64_t{1}},
                                   {"depth_multiplier", int64_t{1}},
                                   {"dilation_h_factor", int64_t{1}},
                                   {"dilation_w_factor", int64_t{1}}});
  return c.Done(c.Make("tfl.depthwise_conv_2d", {e, l.Const(filter), l.Const(zeros)}, options,
                       l.OutputOf(n)));
}

// The number of the greatest element of each window among those of all images.
StatusOr<Endpoint> GreatestOfAll(const Node& n, const WindowGrid& w, Legalizer& l) {
  ASSIGN_OR_RETURN(const Endpoint place, PlaceOfGreatest(n.input(0), w, l));
  if (w.batch == 1) return place;
  OperatorChain c(l);
  const int64_t size = w.rows.in * w.columns.in * w.channels;
  ASSIGN_OR_RETURN(const Endpoint images, SizeOf(n.input(0), 0, l));
  const Endpoint image = c.CountTo(images, w.batch);
  const Endpoint first = c.Reshape(c.Mul(image, static_cast<double>(size)), {w.batch, 1, 1, 1});
  const Endpoint all = c.Add(place, first);
  RETURN_IF_ERROR(c.Done(all).status());
  return all;
}

StatusOr<WindowGrid> PoolGrid(const Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  if (n.String("data_format", "NHWC") != "NHWC" || n.String("padding") == "EXPLICIT") {
    return Unimplemented("its channels do not come last, or its padding is explicit");
  }
  return WindowGridOf(n, l.shape(n.input(0)), n.Ints("ksize"), {1, 1, 1, 1}, true);
}

// The greatest of each window gets the window's gradient; the same place may get several.
LiteEndpoints LargestPoolGrad(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const WindowGrid w, PoolGrid(n, l));
  ASSIGN_OR_RETURN(const Endpoint place, GreatestOfAll(n, w, l));
  OperatorChain c(l);
  const int64_t size = w.rows.in * w.columns.in * w.channels;
  const int64_t whole = w.batch < 0 ? -1 : w.batch * size;
  Endpoint shape = l.Ints(std::vector<int64_t>{whole});
  if (whole < 0) {
    ASSIGN_OR_RETURN(const Endpoint images, SizeOf(n.input(0), 0, l));
    shape = c.Reshape(c.Mul(images, static_cast<double>(size)), {1});
  }
  const Endpoint sums =
      c.Make("tfl.scatter_nd", {c.Reshape(place, {-1, 1}), c.Reshape(n.input(2), {-1}), shape}, {},
             {Dtype::kFloat, PartialShape::Of({whole})});
  return c.Done(c.Reshape(sums, SizesOrFree(l.shape({&n, 0}))));
}

// What stands where the greatest of each window does.
LiteEndpoints LargestPoolGradGrad(Node& n, Legalizer& l) {
  ASSIGN_OR_RETURN(const WindowGrid w, PoolGrid(n, l));
  ASSIGN_OR_RETURN(const Endpoint place, GreatestOfAll(n, w, l));
  OperatorChain c(l);
  return c.Done(c.Rows(c.Reshape(n.input(2), {-1}), place));
}

// The filter's gradient is a convolution, too: of images whose channels are the images, by what
// came back, whose elements stand as far apart as windows did.
LiteEndpoints FilterGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const PartialShape x = l.shape(n.input(0)), filter = l.shape({&n, 0}), dy = l.shape(n.input(2));
  const std::vector<int64_t> strides = n.Ints("strides"), dilations = n.Ints("dilations");
  if (n.String("data_format", "NHWC") != "NHWC" || strides.size() != 4 || dilations.size() != 4) {
    return Unimplemented("its channels do not come last");
  }
  const auto known = [](const PartialShape& s) {
    return s.rank() == 4 && s[1] >= 1 && s[2] >= 1 && s[3] >= 1;
  };
  if (!known(x) || !known(dy) || !filter.fully_known()) {
    return Unimplemented("the sizes of its images or of its filter are not known");
  }
  if (filter[2] != x[3]) return Unimplemented("its channels are in groups");
  const std::string padding = n.String("padding");
  const std::vector<int64_t> pads = n.Ints("explicit_paddings");
  std::vector<Place> places = {{0, -1}, {}, {}, {0, -1}};
  for (int i = 1; i < 3; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t reach = (dy[i] - 1) * strides[k] + (filter[i - 1] - 1) * dilations[k] + 1;
    const int64_t before = padding == "EXPLICIT" ? pads[2 * k]
                           : padding == "SAME"   ? std::max<int64_t>(reach - x[i], 0) / 2
                                                 : 0;
    places[k] = {before, reach};
  }
  OperatorChain c(l);
  const Endpoint image = c.Transpose(Placed(n.input(0), places, c), {3, 1, 2, 0});
  const Endpoint weights = c.Transpose(n.input(2), {3, 1, 2, 0});
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({filter[3]})));
  const Endpoint by_channel =
      c.Make("tfl.conv_2d", {image, weights, l.Const(zeros)},
             Options({{"padding", "VALID"},
                      {"stride_h", dilations[1]},
                      {"stride_w", dilations[2]},
                      {"dilation_h_factor", strides[1]},
                      {"dilation_w_factor", strides[2]}}),
             {Dtype::kFloat, PartialShape::Of({filter[2], filter[0], filter[1], filter[3]})});
  return c.Done(c.Transpose(by_channel, {1, 2, 0, 3}));
}

// Of (x - mean) / sqrt(variance + epsilon) * scale + offset, whose statistics are those of x where
// it is training.
LiteEndpoints NormGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const Endpoint dy = n.input(0), x = n.input(1), scale = n.input(2);
  const std::string format = n.String("data_format", "NHWC");
  const auto rank = static_cast<int64_t>(format.size());
  if (format.back() != 'C' || l.rank(x) != rank) {
    return Unimplemented("its channels do not come last");
  }
  for (int i = 3; i < n.num_outputs(); ++i) {
    if (n.NumUses(i) > 0) return Unimplemented("its last results are read, which hold nothing");
  }
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank - 1; ++i) axes.push_back(i);
  OperatorChain c(l);
  const Endpoint sum = c.Add(n.input(4), n.Float("epsilon", 1e-4f));
  const Endpoint root = c.Op("tfl.rsqrt", {sum});
  const Endpoint centered = c.Sub(x, n.input(3)), product = c.Mul(dy, centered);
  const Endpoint factor = c.Mul(scale, root);
  std::vector<Endpoint> by(static_cast<size_t>(n.num_outputs()));
  if (n.Bool("is_training", true)) {
    const Endpoint mean = c.Reduce("tfl.mean", dy, axes, false);
    const Endpoint slope = c.Div(c.Reduce("tfl.mean", product, axes, false), sum);
    by[0] = c.Mul(c.Sub(c.Sub(dy, mean), c.Mul(centered, slope)), factor);
  } else {
    by[0] = c.Mul(dy, factor);
  }
  by[1] = c.Mul(c.Reduce("tfl.sum", product, axes, false), root);
  by[2] = c.Reduce("tfl.sum", dy, axes, false);
  for (size_t i = 3; i < by.size(); ++i) by[i] = by[2];
  return c.Done(by);
}

// Along which axes each of two gradients is summed: where its size is 1 and, as TensorFlow has it,
// the shapes are not the same.
LiteEndpoints BroadcastAxes(Node& n, Legalizer& l) {
  OperatorChain c(l);
  Endpoint sizes[2];
  int64_t ranks[2];
  for (int i = 0; i < 2; ++i) {
    const PartialShape of = l.shape(n.input(i));
    if (of.rank() != 1 || of[0] < 0)
      return Unimplemented("how many sizes it compares is not known");
    ranks[i] = of[0];
    ASSIGN_OR_RETURN(sizes[i], AsInt32(n.input(i), l));
  }
  const int64_t rank = std::max(ranks[0], ranks[1]);
  const PartialShape all = PartialShape::Of({rank});
  for (int i = 0; i < 2; ++i) {
    const std::vector<int64_t> ones(static_cast<size_t>(rank - ranks[i]), 1);
    if (ones.empty()) continue;
    sizes[i] = ranks[i] == 0 ? l.Ints(ones)
                             : c.Make("tfl.concatenation", {l.Ints(ones), sizes[i]},
                                      Options({{"axis", int64_t{0}}}), {Dtype::kInt32, all});
  }
  const Endpoint differ =
      ranks[0] != ranks[1] || rank == 0
          ? Endpoint()
          : c.Make("tfl.reduce_any",
                   {c.Make("tfl.not_equal", {sizes[0], sizes[1]}, {}, {Dtype::kBool, all}),
                    l.Ints(std::vector<int64_t>{0})},
                   {}, {Dtype::kBool, PartialShape::Of({})});
  std::vector<Endpoint> by;
  for (int i = 0; i < 2; ++i) {
    Endpoint summed = c.Equal(sizes[i], 1);
    if (differ.node != nullptr) summed = c.And(summed, differ);
    const Endpoint at =
        c.Make("tfl.where", {summed}, {}, {Dtype::kInt64, PartialShape::Of({-1, 1})});
    by.push_back(c.Cast(c.Reshape(at, {-1}), n.output_types[static_cast<size_t>(i)]));
  }
  return c.Done(by);
}

// Where each of several shapes begins in one that joins them along an axis.
LiteEndpoints OffsetsOfJoined(Node& n, Legalizer& l) {
  const PartialShape of = l.shape(n.input(1));
  if (of.rank() != 1 || of[0] < 1) return Unimplemented("how many sizes there are is not known");
  const auto axis = l.Integers(n.input(0));
  if (!axis || axis->size() != 1) return Unimplemented("its axis is no constant");
  const int64_t at = axis->front() < 0 ? axis->front() + of[0] : axis->front();
  if (at < 0 || at >= of[0]) return Unimplemented("its axis is none of theirs");
  std::vector<int64_t> along(static_cast<size_t>(of[0]));
  along[static_cast<size_t>(at)] = 1;
  const Endpoint only = l.Ints(along), none = l.Ints(std::vector<int64_t>(along.size()));
  OperatorChain c(l);
  std::vector<Endpoint> by = {none};
  for (int i = 1; i + 1 < n.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(const Endpoint sizes, AsInt32(n.input(i), l));
    const Endpoint size = c.Mul(sizes, only);
    by.push_back(i == 1 ? size : c.Add(by.back(), size));
  }
  for (Endpoint& e : by) e = c.Cast(e, n.output_types[0]);
  return c.Done(by);
}

// Of y = x * norm^-beta, where norm is of the squares of channels around each: these are summed by
// a convolution whose window is one pixel.
LiteEndpoints LocalResponseGrad(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const Endpoint dy = n.input(0), x = n.input(1), y = n.input(2);
  const PartialShape shape = l.shape(x);
  if (shape.rank() != 4 || shape[3] < 1) return Unimplemented("its channels are not known");
  const int64_t channels = shape[3], radius = n.Int("depth_radius", 5);
  const float bias = n.Float("bias", 1), alpha = n.Float("alpha", 1), beta = n.Float("beta", 0.5f);
  ASSIGN_OR_RETURN(Tensor band, Tensor::Zeros(Dtype::kFloat, Shape({channels, 1, 1, channels})));
  for (int64_t i = 0; i < channels * channels; ++i) {
    band.data<float>()[i] = std::abs(i / channels - i % channels) <= radius ? 1.0f : 0.0f;
  }
  ASSIGN_OR_RETURN(const Tensor zeros, Tensor::Zeros(Dtype::kFloat, Shape({channels})));
  OperatorChain c(l);
  const Endpoint weights = l.Const(band), none = l.Const(zeros);
  const auto around = [&](Endpoint e) {
    const AttrMap options = Options({{"padding", "VALID"},
                                     {"stride_h", int64_t{1}},
                                     {"stride_w", int64_t{1}},
                                     {"dilation_h_factor", int64_t{1}},
                                     {"dilation_w_factor", int64_t{1}}});
    return c.Make("tfl.conv_2d", {e, weights, none}, options, {Dtype::kFloat, shape});
  };
  const Endpoint norm = c.Add(c.Mul(around(c.Op("tfl.square", {x})), alpha), bias);
  const Endpoint shared = around(c.Div(c.Mul(dy, y), norm));
  const Endpoint own = c.Mul(dy, c.Op("tfl.pow", {norm, -beta}));
  return c.Done(c.Sub(own, c.Mul(c.Mul(x, 2.0f * alpha * beta), shared)));
}

constexpr ExportRow kGradientRows[] = {
    {"LRNGrad", LocalResponseGrad},           {"ConcatOffset", OffsetsOfJoined},
    {"BroadcastGradientArgs", BroadcastAxes}, {"StridedSliceGrad", SliceGrad},
    {"AvgPoolGrad", AveragePoolGrad},         {"MaxPoolGrad", LargestPoolGrad},
    {"MaxPoolGradGrad", LargestPoolGradGrad}, {"Conv2DBackpropFilter", FilterGrad},
    {"FusedBatchNormGrad", NormGrad},         {"FusedBatchNormGradV2", NormGrad},
    {"FusedBatchNormGradV3", NormGrad},
};

}  // namespace

std::span<const ExportRow> GradientExport() { return kGradientRows; }

}  // namespace smelt
