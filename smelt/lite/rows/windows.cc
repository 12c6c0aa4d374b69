// Windows over images whose places are spelled out, a slice for each.
#include "smelt/lite/rows/windows.h"

#include <algorithm>
#include <limits>

#include "smelt/lite/composites/lstm.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// WindowGrid of so many places at most.
constexpr int64_t kMostPlaces = 81;

WindowDim DimOf(int64_t in, int64_t size, int64_t stride, int64_t rate, bool same) {
  const int64_t reach = (size - 1) * rate + 1;
  WindowDim d = {in, 0, size, stride, rate, 0, 0};
  d.out = same ? (in + stride - 1) / stride : std::max<int64_t>((in - reach + stride) / stride, 0);
  if (same) {
    const int64_t pads = std::max<int64_t>((d.out - 1) * stride + reach - in, 0);
    d.before = pads / 2;
    d.behind = pads - d.before;
  }
  return d;
}

// The image with the lowest number around it, as SAME pads.
Endpoint Around(Endpoint image, const WindowGrid& w, OperatorChain& c) {
  const int64_t pads[] = {0, 0, w.rows.before, w.rows.behind, w.columns.before, w.columns.behind,
                          0, 0};
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return image;
  const Endpoint lowest = c.l().Floats(std::numeric_limits<float>::lowest());
  return c.Make(
      "tfl.padv2", {image, c.l().IntPairs(pads), lowest}, {},
      {Dtype::kFloat,
       PartialShape::Of({w.batch, w.rows.in + w.rows.before + w.rows.behind,
                         w.columns.in + w.columns.before + w.columns.behind, w.channels})});
}

// What stands at place (y, x) of each window of the padded image.
Endpoint AtPlace(Endpoint padded, const WindowGrid& w, int64_t y, int64_t x, OperatorChain& c) {
  const auto last = [](const WindowDim& d, int64_t at) {
    return at * d.rate + (d.out - 1) * d.stride + 1;
  };
  Legalizer& l = c.l();
  const Endpoint begin = l.Ints(std::vector<int64_t>{0, y * w.rows.rate, x * w.columns.rate, 0});
  const Endpoint end = l.Ints(std::vector<int64_t>{0, last(w.rows, y), last(w.columns, x), 0});
  const Endpoint steps = l.Ints(std::vector<int64_t>{1, w.rows.stride, w.columns.stride, 1});
  return c.Make("tfl.strided_slice", {padded, begin, end, steps},
                Options({{"begin_mask", int64_t{9}}, {"end_mask", int64_t{9}}}),
                {Dtype::kFloat, w.shape()});
}

// The greatest of what each place has, plus what the filter has there.
LiteEndpoints Dilation(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const PartialShape filter = l.shape(n.input(1));
  if (!filter.fully_known() || filter.rank() != 3) {
    return Unimplemented("its filter's shape is not known");
  }
  ASSIGN_OR_RETURN(const WindowGrid w, WindowGridOf(n, l.shape(n.input(0)),
                                                    {1, filter[0], filter[1], 1}, n.Ints("rates")));
  OperatorChain c(l);
  const Endpoint padded = Around(n.input(0), w, c);
  Endpoint greatest;
  for (int64_t i = 0; i < w.places(); ++i) {
    const int64_t y = i / w.columns.size, x = i % w.columns.size;
    ASSIGN_OR_RETURN(const Endpoint more, LitePart(n.input(1), {y, x, 0}, {1, 1, w.channels}, l));
    const Endpoint sum = c.Add(AtPlace(padded, w, y, x, c), more);
    greatest = i == 0 ? sum : c.Max(greatest, sum);
  }
  return c.Done(greatest);
}

// A constant of int32 that f(row, column) says.
template <typename F>
StatusOr<Endpoint> IntTable(std::vector<int64_t> sizes, int64_t rows, int64_t columns, Legalizer& l,
                            F f) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(Dtype::kInt32, Shape(sizes)));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < columns; ++k) {
      t.data<int32_t>()[r * columns + k] = static_cast<int32_t>(f(r, k));
    }
  }
  return l.Const(t);
}

// Where the greatest of each window stands: its number among all elements.
StatusOr<Endpoint> PlacesWanted(const Node& n, const WindowGrid& w, Legalizer& l) {
  ASSIGN_OR_RETURN(Endpoint e, PlaceOfGreatest(n.input(0), w, l));
  OperatorChain c(l);
  if (n.Bool("include_batch_in_index") && w.batch != 1) {
    if (w.batch < 0) return Unimplemented("its places count images, whose number is free");
    ASSIGN_OR_RETURN(const Endpoint of_image,
                     IntTable({w.batch, 1, 1, 1}, w.batch, 1, l, [&](int64_t b, int64_t) {
                       return b * w.rows.in * w.columns.in * w.channels;
                     }));
    e = c.Add(e, of_image);
  }
  RETURN_IF_ERROR(c.Done(e).status());
  return c.Cast(e, n.output_types[1]);
}

LiteEndpoints PoolWithPlaces(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const std::vector<int64_t> size = n.Ints("ksize"), strides = n.Ints("strides");
  // Nobody reads it: a number stands for it.
  Endpoint place = l.Int(0);
  if (n.NumUses(1) > 0) {
    ASSIGN_OR_RETURN(const WindowGrid w, WindowGridOf(n, l.shape(n.input(0)), size, {1, 1, 1, 1}));
    ASSIGN_OR_RETURN(place, PlacesWanted(n, w, l));
  }
  if (size.front() != 1 || size.back() != 1 || strides.front() != 1 || strides.back() != 1) {
    return Unimplemented("its window reaches over images or channels");
  }
  ASSIGN_OR_RETURN(const Endpoint pool, l.Add("tfl.max_pool_2d", {n.input(0)},
                                              Options({{"padding", n.String("padding")},
                                                       {"filter_height", size[1]},
                                                       {"filter_width", size[2]},
                                                       {"stride_h", strides[1]},
                                                       {"stride_w", strides[2]}}),
                                              l.OutputOf(n)));
  return std::vector<Endpoint>{pool, place};
}

constexpr ExportRow kWindowRows[] = {
    {"MaxPoolWithArgmax", PoolWithPlaces},
    {"Dilation2D", Dilation},
};

}  // namespace

StatusOr<WindowGrid> WindowGridOf(const Node& n, const PartialShape& in,
                                  const std::vector<int64_t>& size,
                                  const std::vector<int64_t>& rates, bool spelled) {
  const std::vector<int64_t> strides = n.Ints("strides");
  if (in.rank() != 4 || in[1] < 0 || in[2] < 0 || in[3] < 0) {
    return Unimplemented("the sizes of its images are not known");
  }
  for (const auto* four : {&size, &strides, &rates}) {
    if (four->size() != 4 || four->front() != 1 || four->back() != 1) {
      return Unimplemented("its window reaches over images or channels");
    }
  }
  const bool same = n.String("padding") == "SAME";
  const WindowGrid w = {std::max<int64_t>(in[0], -1), in[3],
                        DimOf(in[1], size[1], strides[1], rates[1], same),
                        DimOf(in[2], size[2], strides[2], rates[2], same)};
  if (spelled && w.places() > kMostPlaces) {
    return Unimplemented("its windows are of ", w.places(), " places, and more than ", kMostPlaces,
                         " are not spelled out");
  }
  return w;
}

StatusOr<Endpoint> PlaceOfGreatest(Endpoint image, const WindowGrid& w, Legalizer& l) {
  OperatorChain c(l);
  const Endpoint padded = Around(image, w, c);
  std::vector<Endpoint> all;
  for (int64_t i = 0; i < w.places(); ++i) {
    all.push_back(AtPlace(padded, w, i / w.columns.size, i % w.columns.size, c));
  }
  RETURN_IF_ERROR(c.Done(Endpoint()).status());
  const int64_t count = w.places(), width = w.columns.in, channels = w.channels;
  ASSIGN_OR_RETURN(const Endpoint packed,
                   l.Add("tfl.pack", all, Options({{"values_count", count}, {"axis", int64_t{4}}}),
                         {Dtype::kFloat, PartialShape::Of({w.batch, w.rows.out, w.columns.out,
                                                           channels, count})}));
  const LiteOutput number = {Dtype::kInt32, w.shape()};
  const Endpoint place =
      c.Make("tfl.arg_max", {packed, l.Int(4)}, Options({{"output_type", Dtype::kInt32}}), number);
  // Of the place in its window, of the window, and of the channel.
  ASSIGN_OR_RETURN(const Endpoint in_window,
                   IntTable({count}, w.rows.size, w.columns.size, l,
                            [&](int64_t y, int64_t x) { return (y * width + x) * channels; }));
  ASSIGN_OR_RETURN(const Endpoint of_window,
                   IntTable({w.rows.out, w.columns.out, 1}, w.rows.out, w.columns.out, l,
                            [&](int64_t y, int64_t x) {
                              const int64_t row = y * w.rows.stride - w.rows.before;
                              return (row * width + x * w.columns.stride - w.columns.before) *
                                     channels;
                            }));
  ASSIGN_OR_RETURN(const Endpoint of_channel,
                   IntTable({channels}, 1, channels, l, [](int64_t, int64_t k) { return k; }));
  Endpoint e = c.Make("tfl.gather", {in_window, place}, Options({{"axis", int64_t{0}}}), number);
  e = c.Add(c.Add(e, of_window), of_channel);
  RETURN_IF_ERROR(c.Done(e).status());
  return e;
}

// What is at each place of a window, over all windows, one place against the other.
LiteEndpoints LargestIntegers(Node& n, Legalizer& l) {
  constexpr int64_t kMostPlaces = 64;
  const std::vector<int64_t> window = n.Ints("ksize"), strides = n.Ints("strides");
  const std::string padding = n.String("padding");
  const PartialShape in = l.shape(n.input(0));
  const auto few = [](int64_t size) { return size >= 1 && size <= kMostPlaces; };
  if (n.String("data_format", "NHWC") != "NHWC" || window.size() != 4 || strides.size() != 4 ||
      window[0] != 1 || window[3] != 1 || strides[0] != 1 || strides[3] != 1 || strides[1] < 1 ||
      strides[2] < 1 || !few(window[1]) || !few(window[2]) || window[1] * window[2] > kMostPlaces ||
      padding == "EXPLICIT" || in.rank() != 4) {
    return Unimplemented("of integers, its window is none of few rows and columns");
  }
  const Dtype type = n.output_types[0];
  std::vector<int64_t> pads(8), dims(in.dims().begin(), in.dims().end());
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (padding == "VALID") continue;
    // Behind there may be more than needed: windows begin at what is there.
    int64_t all = window[i] - 1, before = 0;
    if (dims[i] >= 0) {
      const int64_t count = (dims[i] + strides[i] - 1) / strides[i];
      all = std::max<int64_t>((count - 1) * strides[i] + window[i] - dims[i], 0);
      before = all / 2;
    } else if (window[i] > 2) {
      return Unimplemented("how much is padded before its input is not known");
    }
    pads[2 * i] = before;
    pads[2 * i + 1] = all - before;
    if (dims[i] >= 0) dims[i] += all;
  }
  for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
  OperatorChain c(l);
  Endpoint e = n.input(0);
  if (padding == "SAME") {
    ASSIGN_OR_RETURN(const Tensor least,
                     FilledTensor(type, Shape(),
                                  type == Dtype::kInt32
                                      ? static_cast<double>(std::numeric_limits<int32_t>::min())
                                      : static_cast<double>(std::numeric_limits<int64_t>::min())));
    e = c.Make("tfl.padv2", {e, l.IntPairs(pads), l.Const(least)}, {},
               {type, PartialShape::Of(dims)});
  }
  Endpoint most;
  for (int64_t y = 0; y < window[1]; ++y) {
    for (int64_t x = 0; x < window[2]; ++x) {
      // The last window ends so far before the end.
      const int64_t left_y = window[1] - 1 - y, left_x = window[2] - 1 - x;
      const std::vector<int64_t> begin = {0, y, x, 0}, end = {0, -left_y, -left_x, 0},
                                 by = {1, strides[1], strides[2], 1};
      const int64_t open = 9 | (left_y == 0 ? 2 : 0) | (left_x == 0 ? 4 : 0);
      const Endpoint part =
          c.Make("tfl.strided_slice", {e, l.Ints(begin), l.Ints(end), l.Ints(by)},
                 Options({{"begin_mask", int64_t{9}}, {"end_mask", open}}), l.OutputOf(n));
      most = y + x == 0 ? part : c.Max(most, part);
    }
  }
  return c.Done(most);
}

std::span<const ExportRow> WindowExport() { return kWindowRows; }

}  // namespace smelt
