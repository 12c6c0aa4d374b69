// Values taken apart, worked on and put together: what programs read and write where it lies,
// chains that read through slices, and layers side by side, which a team binds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

using Ports = std::vector<DrawnPort>;

std::string ViewType(Drawer& d, DrawnPort p) { return "T=" + Drawer::Name(d.TypeOf(p)); }

// What is between two steps is now and then a result as well.
bool IsSeen(Drawer& d) { return d.OneIn(12); }

// Parts along an axis, most often one of which parts are runs of bytes: the first that is not 1.
int PartAxis(Drawer& d, DrawnPort x) {
  const Shape& s = d.ShapeOf(x);
  if (d.OneIn(3)) return static_cast<int>(d.Below(static_cast<size_t>(s.rank())));
  int axis = 0;
  while (axis + 1 < s.rank() && s[axis] == 1) ++axis;
  return axis;
}

Ports EvenParts(Drawer& d, DrawnPort x, int axis) {
  std::vector<int64_t> ways;
  for (const int64_t w : {2, 3, 4, 5, 8}) {
    if (d.ShapeOf(x)[axis] % w == 0) ways.push_back(w);
  }
  if (ways.empty()) return {};
  const int64_t n = ways[d.Below(ways.size())];
  const auto first = d.Add("Split", {d.Int(axis), x},
                           absl::StrCat(ViewType(d, x), ", num_split=", n), false, IsSeen(d));
  Ports parts;
  for (int i = 0; first && i < n; ++i) parts.push_back(d.Next(*first, i));
  return parts;
}

// Of several sizes, in order, by one SplitV or by slices.
Ports UnevenParts(Drawer& d, DrawnPort x, int axis) {
  const Shape s = d.ShapeOf(x);
  std::vector<int64_t> sizes;
  int64_t left = s[axis];
  while (sizes.size() < 3 && left > 0) {
    sizes.push_back(d.OneIn(3) ? d.Between(0, left) : std::min<int64_t>(left, d.Of({1, 4, 16})));
    left -= sizes.back();
  }
  sizes.push_back(left);
  if (d.OneIn(3)) {
    const auto first = d.Add("SplitV", {x, d.Ints(sizes), d.Int(axis)},
                             absl::StrCat(ViewType(d, x), ", Tlen=int32, num_split=", sizes.size()),
                             false, IsSeen(d));
    Ports parts;
    for (size_t i = 0; first && i < sizes.size(); ++i) {
      parts.push_back(d.Next(*first, static_cast<int>(i)));
    }
    return parts;
  }
  Ports parts;
  int64_t at = 0;
  const bool strided = d.OneIn(2);
  for (const int64_t size : sizes) {
    std::vector<int64_t> begin(static_cast<size_t>(s.rank()), 0);
    std::vector<int64_t> to(s.dims().begin(), s.dims().end());
    const std::vector<int64_t> one(begin.size(), 1);
    begin[static_cast<size_t>(axis)] = at;
    at += size;
    to[static_cast<size_t>(axis)] = strided ? at : size;
    const auto p = strided ? d.Add("StridedSlice", {x, d.Ints(begin), d.Ints(to), d.Ints(one)},
                                   ViewType(d, x) +
                                       ", Index=int32, begin_mask=0, end_mask=0, ellipsis_mask=0, "
                                       "new_axis_mask=0, shrink_axis_mask=0",
                                   false, IsSeen(d))
                           : d.Add("Slice", {x, d.Ints(begin), d.Ints(to)},
                                   ViewType(d, x) + ", Index=int32", false, IsSeen(d));
    if (p && !d.OneIn(8)) parts.push_back(*p);
  }
  return parts;
}

Ports TakeApart(Drawer& d, DrawnPort x) {
  if (d.ShapeOf(x).rank() == 0) return {x};
  const int axis = PartAxis(d, x);
  switch (d.Below(4)) {
    case 0: {
      const int64_t n = d.ShapeOf(x)[axis];
      if (n < 1 || n > 6) break;
      const auto first =
          d.Add("Unpack", {x}, absl::StrCat("num=", n, ", ", ViewType(d, x), ", axis=", axis),
                false, IsSeen(d));
      Ports parts;
      for (int i = 0; first && i < n; ++i) parts.push_back(d.Next(*first, i));
      return parts;
    }
    case 1:
      return EvenParts(d, x, axis);
    default:
      break;
  }
  return UnevenParts(d, x, axis);
}

// What a kernel with a place of its own makes of it; or it is left as it is.
DrawnPort Worked(Drawer& d, DrawnPort x) {
  const std::string t = ViewType(d, x);
  const Dtype type = d.TypeOf(x);
  const Shape s = d.ShapeOf(x);
  const auto made = [&](std::optional<DrawnPort> y) { return y.value_or(x); };
  switch (d.Below(8)) {
    case 0:
      return x;
    case 1:
    case 2: {
      if (s.rank() != 2 || s[1] == 0 || d.IsHuge(x)) break;
      const int64_t weights[] = {s[1], d.OneIn(2) ? s[1] : d.Size()};
      const auto y = d.Add("MatMul", {x, d.Fresh(type, weights, true)},
                           t + ", transpose_a=false, transpose_b=false", true, IsSeen(d));
      return y ? DrawTail(d, *y) : x;
    }
    case 3: {
      if (s.rank() != 4 || s.num_elements() == 0 || d.IsHuge(x)) break;
      const int64_t filter[] = {1, 1, s[3], d.OneIn(2) ? s[3] : d.Size()};
      const auto y = d.Add("Conv2D", {x, d.Fresh(type, filter, true)},
                           t + ", strides=list(1, 1, 1, 1), padding=\"SAME\"", true, IsSeen(d));
      return y ? DrawTail(d, *y) : x;
    }
    case 4:
      if (s.rank() < 1) break;
      return made(d.Add("Softmax", {x}, t, d.IsRounded(x), IsSeen(d)));
    case 5:
      if (s.rank() < 1) break;
      return made(d.Add(d.Word({"Cumsum", "Cumprod"}), {x, d.Int(s.rank() - 1)},
                        t + ", exclusive=false, reverse=false", false, IsSeen(d)));
    default:
      break;
  }
  if (d.OneIn(3)) {
    return made(
        d.Add(d.Word({"AddV2", "Sub", "Mul", "Maximum"}), {x, d.Partner(x)}, t, false, IsSeen(d)));
  }
  return made(d.Add(d.Word({"Neg", "Abs", "Square", "Relu", "Exp", "Tanh", "Identity"}), {x}, t,
                    d.IsRounded(x), IsSeen(d)));
}

// Those that fit beside the first, and it may be some of them twice.
std::optional<DrawnPort> PutTogether(Drawer& d, const Ports& parts) {
  if (parts.empty()) return std::nullopt;
  const DrawnPort first = parts[d.Below(parts.size())];
  const Shape s = d.ShapeOf(first);
  const int rank = s.rank();
  const std::string t = ViewType(d, first);
  if (rank == 0 || d.OneIn(4)) {
    Ports same;
    for (const DrawnPort& p : parts) {
      if (d.ShapeOf(p) == s && d.TypeOf(p) == d.TypeOf(first)) same.push_back(p);
    }
    if (d.OneIn(5)) same.push_back(same[0]);
    return d.Add("Pack", same,
                 absl::StrCat("N=", same.size(), ", ", t,
                              ", axis=", d.OneIn(2) ? 0 : d.Between(-rank - 1, rank)));
  }
  const int axis = PartAxis(d, first);
  Ports all;
  for (const DrawnPort& p : parts) {
    const Shape& other = d.ShapeOf(p);
    bool fits = other.rank() == rank && d.TypeOf(p) == d.TypeOf(first);
    for (int i = 0; fits && i < rank; ++i) fits = i == axis || other[i] == s[i];
    if (fits) all.push_back(p);
  }
  if (d.OneIn(5)) all.push_back(all[d.Below(all.size())]);
  if (d.OneIn(4)) {
    Dims dims(s.dims().begin(), s.dims().end());
    dims[static_cast<size_t>(axis)] = d.Size();
    all.push_back(d.Like(d.TypeOf(first), dims));
  }
  if (d.OneIn(3)) std::swap(all.front(), all.back());
  const std::string attrs = absl::StrCat("N=", all.size(), ", ", t, ", Tidx=int32");
  all.push_back(d.Int(d.OneIn(3) ? axis - rank : axis));
  return d.Add("ConcatV2", all, attrs, false, d.OneIn(3));
}

// A value whose rows are as long as cache lines, or not.
DrawnPort Wide(Drawer& d) {
  if (!d.OneIn(3)) {
    const auto x = d.PickFloating(1);
    if (x && d.At(*x).num_elements() >= 16) return *x;
  }
  const int64_t depth = d.Of<int64_t>({4, 8, 16, 16, 24, 32, 32, 48}), rows = d.Between(1, 8);
  const int64_t two[] = {rows, depth}, three[] = {1, rows, depth}, four[] = {1, rows, 2, depth};
  const Dtype t = d.OneIn(8) ? Dtype::kDouble : Dtype::kFloat;
  return d.OneIn(3) ? d.Fresh(t, four) : d.OneIn(3) ? d.Fresh(t, three) : d.Fresh(t, two);
}

void DrawParts(Drawer& d) {
  DrawnPort x = Wide(d);
  if (d.OneIn(2)) x = Worked(d, x);
  const size_t turns = 1 + d.Below(3);
  for (size_t turn = 0; turn < turns && !d.failed(); ++turn) {
    Ports parts = TakeApart(d, x);
    if (!parts.empty() && d.OneIn(4)) {
      const Ports more = TakeApart(d, parts[d.Below(parts.size())]);
      parts.insert(parts.end(), more.begin(), more.end());
    }
    for (DrawnPort& p : parts) p = Worked(d, p);
    const auto whole = PutTogether(d, parts);
    if (!whole) return;
    // Who takes part of what was put together.
    if (d.OneIn(4)) Worked(d, *whole);
    x = Worked(d, *whole);
  }
  d.AddToPool(x);
}

// Elementwise steps of parts of one value, which lie between each other.
void DrawPartChain(Drawer& d) {
  const int64_t ways = d.Between(2, 5), width = d.Of<int64_t>({1, 5, 8, 16, 17, 33});
  const int64_t rows = (64 + width - 1) / width + d.Between(0, 3), inner = d.Between(1, 3);
  const int64_t flat[] = {rows, ways * width}, deep[] = {inner, ways * width, rows},
                first[] = {ways * rows, width};
  const size_t kind = d.Below(3);
  const Dtype t = d.OneIn(6) ? d.Of({Dtype::kDouble, Dtype::kInt32, Dtype::kBfloat16, Dtype::kHalf})
                             : Dtype::kFloat;
  const DrawnPort x = kind == 0   ? d.Fresh(t, flat)
                      : kind == 1 ? d.Fresh(t, deep)
                                  : d.Fresh(t, first);
  const int axis = kind == 2 ? 0 : 1;
  const auto split = d.Add("Split", {d.Int(axis), x},
                           absl::StrCat(ViewType(d, x), ", num_split=", ways), false, d.OneIn(8));
  if (!split) return;
  Ports values;
  for (int i = 0; i < ways; ++i) values.push_back(d.Next(*split, i));
  // A column of the whole, or a row.
  if (kind == 0 && d.OneIn(2)) {
    const int64_t at[] = {0, d.Between(0, ways * width - 1)}, size[] = {-1, 1};
    const auto column = d.Add("Slice", {x, d.Ints(at), d.Ints(size)},
                              ViewType(d, x) + ", Index=int32", false, false);
    if (column) values.push_back(*column);
  }
  const std::string attr = ViewType(d, x);
  const bool floats = Drawer::IsFloating(t);
  const size_t steps = 3 + d.Below(7);
  for (size_t i = 0; i < steps && !d.failed(); ++i) {
    const DrawnPort a = values[d.Below(values.size())];
    const DrawnPort b = d.OneIn(6) ? d.Partner(a) : values[d.Below(values.size())];
    std::optional<DrawnPort> y;
    if (d.OneIn(8)) {
      const auto dims = d.ShapeOf(a).dims();
      y = d.Add("SelectV2", {d.Like(Dtype::kBool, dims), a, b}, attr, false, d.OneIn(8));
    } else if (d.OneIn(3)) {
      y = floats ? d.Add(d.Word({"Neg", "Abs", "Square", "Relu", "Floor", "Tanh", "Sigmoid"}), {a},
                         attr, d.IsRounded(a), d.OneIn(8))
                 : d.Add(d.Word({"Neg", "Abs", "Square", "Sign"}), {a}, attr, false, d.OneIn(8));
    } else {
      y = d.Add(d.Word({"AddV2", "Sub", "Mul", "Maximum", "Minimum"}), {a, b}, attr, false,
                d.OneIn(8));
    }
    if (y) values.push_back(*y);
  }
  d.AddToPool(values.back());
  // The parts may be put together again: parts that are views go into a larger value.
  if (d.OneIn(3)) {
    const auto whole = PutTogether(d, values);
    if (whole) Worked(d, *whole);
  }
}

// Layers that know nothing of each other and read one value; some cannot do all that follows.
void DrawSideBySide(Drawer& d) {
  const bool images = d.OneIn(2);
  // Weights that are worth a team.
  const bool heavy = d.OneIn(6);
  const int64_t depth = heavy ? (images ? 48 : 160) : d.Of<int64_t>({3, 8, 16, 17}),
                out = heavy ? (images ? 96 : 400) : d.Of<int64_t>({4, 16, 19});
  const int64_t image[] = {d.batch(), 4, 5, depth}, rows[] = {d.Between(1, 9), depth};
  const DrawnPort x = images ? d.Fresh(Dtype::kFloat, image) : d.Fresh(Dtype::kFloat, rows);
  if (d.IsHuge(x)) return;
  Ports results;
  const size_t count = 2 + d.Below(heavy ? 2 : 4);
  for (size_t i = 0; i < count && !d.failed(); ++i) {
    const int64_t side = heavy ? 3 : d.Of<int64_t>({1, 1, 3});
    const int64_t filter[] = {side, side, depth, out}, weights[] = {depth, out};
    const auto y =
        images ? d.Add("Conv2D", {x, d.Constant(d.At(d.Fresh(Dtype::kFloat, filter, true)))},
                       "T=float, strides=list(1, 1, 1, 1), padding=\"SAME\"", true, false)
               : d.Add("MatMul", {x, d.Constant(d.At(d.Fresh(Dtype::kFloat, weights, true)))},
                       "T=float, transpose_a=false, transpose_b=false", true, false);
    if (!y) continue;
    DrawnPort z = DrawTail(d, *y);
    // The sum of two layers is a step of either.
    if (!results.empty() && d.OneIn(3)) {
      z = d.Add("AddV2", {z, results.back()}, "T=float", false, false).value_or(z);
      z = DrawTail(d, z);
    }
    results.push_back(z);
  }
  const auto all = PutTogether(d, results);
  if (all) d.AddToPool(*all);
}

constexpr Production kRows[] = {{4, DrawParts}, {4, DrawPartChain}, {2, DrawSideBySide}};

}  // namespace

std::span<const Production> ViewProductions() { return kRows; }

}  // namespace smelt
