// What moves values without computing them, and what is computed of shapes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/random_graphs/drawer.h"

namespace smelt {
namespace {

std::optional<DrawnPort> PickAny(Drawer& d, int least_rank = 0) {
  return d.Pick([&](const Tensor& t) { return t.rank() >= least_rank; });
}
std::string TypeAttrOf(Drawer& d, DrawnPort p) {
  return absl::StrCat("T=", DtypeName(d.TypeOf(p)));
}
Dims DimsOf(Drawer& d, DrawnPort p) {
  return {d.ShapeOf(p).dims().begin(), d.ShapeOf(p).dims().end()};
}

void DrawPad(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  Tensor pads = *Tensor::Zeros(Dtype::kInt32, Shape({rank, 2}));
  for (int i = 0; i < 2 * rank; ++i)
    pads.data<int32_t>()[i] = static_cast<int32_t>(d.OneIn(2) ? 0 : d.Below(3));
  const DrawnPort p = d.Constant(std::move(pads));
  const std::string attrs = TypeAttrOf(d, *x) + ", Tpaddings=int32";
  switch (d.Below(3)) {
    case 0:
      d.Add("Pad", {*x, p}, attrs);
      break;
    case 1:
      d.Add("PadV2", {*x, p, d.Fresh(d.TypeOf(*x), {})}, attrs);
      break;
    default:
      d.Add("MirrorPad", {*x, p},
            absl::StrCat(attrs, ", mode=\"", d.Word({"REFLECT", "SYMMETRIC"}), "\""));
  }
}

void DrawSlice(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  std::vector<int64_t> begin, size;
  for (const int64_t n : d.ShapeOf(*x).dims()) {
    const int64_t from = d.OneIn(2) ? 0 : d.Between(0, n);
    begin.push_back(from);
    size.push_back(d.OneIn(3) ? -1 : d.Between(0, n - from));
  }
  const Dtype t = d.OneIn(4) ? Dtype::kInt64 : Dtype::kInt32;
  d.Add("Slice", {*x, d.Ints(begin, t), d.Ints(size, t)},
        absl::StrCat(TypeAttrOf(d, *x), ", Index=", DtypeName(t)));
}

void DrawStridedSlice(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  std::vector<int64_t> begin, end, step;
  int begin_mask = 0, end_mask = 0, ellipsis = 0, fresh = 0, shrink = 0;
  const int rank = d.ShapeOf(*x).rank();
  const int count = static_cast<int>(d.Between(1, rank));
  for (int i = 0; i < count; ++i) {
    const int64_t n = std::max<int64_t>(d.ShapeOf(*x)[i], 1);
    const int64_t by = d.OneIn(4) ? d.Of<int64_t>({-1, 2, 3, -2}) : 1;
    int64_t a = d.Between(0, n - 1), b = d.Between(0, n);
    if ((by > 0) != (a < b)) std::swap(a, b);
    if (d.OneIn(4)) a -= n;
    begin.push_back(a);
    end.push_back(b);
    step.push_back(by);
    const int bit = 1 << i;
    if (d.OneIn(3)) begin_mask |= bit;
    if (d.OneIn(3)) end_mask |= bit;
    if (by == 1 && d.OneIn(6)) shrink |= bit;
    if (d.OneIn(12)) fresh |= bit;
    if (ellipsis == 0 && d.OneIn(12)) ellipsis |= bit;
  }
  d.Add("StridedSlice", {*x, d.Ints(begin), d.Ints(end), d.Ints(step)},
        absl::StrCat(TypeAttrOf(d, *x), ", Index=int32, begin_mask=", begin_mask,
                     ", end_mask=", end_mask, ", ellipsis_mask=", ellipsis,
                     ", new_axis_mask=", fresh, ", shrink_axis_mask=", shrink));
}

void DrawSplit(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  const auto axis = static_cast<int>(d.Below(static_cast<size_t>(rank)));
  const int64_t n = d.ShapeOf(*x)[axis];
  const int64_t stated = d.OneIn(2) ? axis : axis - rank;
  if (d.OneIn(2)) {
    std::vector<int64_t> ways;
    for (const int64_t w : {1, 2, 3, 4, 5, 8}) {
      if (n % w == 0) ways.push_back(w);
    }
    d.Add("Split", {d.Int(stated), *x},
          absl::StrCat(TypeAttrOf(d, *x), ", num_split=", ways[d.Below(ways.size())]));
    return;
  }
  std::vector<int64_t> sizes;
  int64_t left = n;
  while (sizes.size() < 3 && left > 0) {
    sizes.push_back(d.Between(0, left));
    left -= sizes.back();
  }
  sizes.push_back(left);
  if (d.OneIn(3)) sizes[d.Below(sizes.size())] = -1;
  d.Add("SplitV", {*x, d.Ints(sizes), d.Int(stated)},
        absl::StrCat(TypeAttrOf(d, *x), ", Tlen=int32, num_split=", sizes.size()));
}

void DrawConcat(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  const auto axis = static_cast<int>(d.Below(static_cast<size_t>(rank)));
  std::vector<DrawnPort> all = {*x};
  const size_t count = 1 + d.Below(4);
  while (all.size() < count) {
    const auto fits = [&](const Tensor& t) {
      if (t.dtype() != d.TypeOf(*x) || t.rank() != rank) return false;
      for (int i = 0; i < rank; ++i) {
        if (i != axis && t.dim(i) != d.ShapeOf(*x)[i]) return false;
      }
      return true;
    };
    const auto p = d.Pick(fits);
    if (p && !d.OneIn(4)) {
      all.push_back(*p);
    } else {
      Dims dims = DimsOf(d, *x);
      dims[static_cast<size_t>(axis)] = d.Size();
      all.push_back(d.Fresh(d.TypeOf(*x), dims));
    }
  }
  if (d.OneIn(2)) std::swap(all.front(), all.back());
  const std::string n = absl::StrCat("N=", all.size(), ", ", TypeAttrOf(d, *x));
  all.push_back(d.Int(d.OneIn(2) ? axis : axis - rank));
  d.Add("ConcatV2", all, n + ", Tidx=int32");
}

void DrawPack(Drawer& d) {
  const auto x = PickAny(d);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  if (rank > 0 && d.OneIn(2)) {
    const auto axis = static_cast<int>(d.Below(static_cast<size_t>(rank)));
    if (d.ShapeOf(*x)[axis] > 6) return;
    d.Add("Unpack", {*x},
          absl::StrCat("num=", d.ShapeOf(*x)[axis], ", ", TypeAttrOf(d, *x), ", axis=", axis));
    return;
  }
  std::vector<DrawnPort> all = {*x};
  const size_t count = 1 + d.Below(3);
  while (all.size() < count) all.push_back(d.Like(d.TypeOf(*x), d.ShapeOf(*x).dims()));
  d.Add("Pack", all,
        absl::StrCat("N=", all.size(), ", ", TypeAttrOf(d, *x),
                     ", axis=", d.Between(-rank - 1, rank)));
}

// Another shape of as many elements.
void DrawReshape(Drawer& d) {
  const auto x = PickAny(d);
  if (!x) return;
  std::vector<int64_t> to;
  int64_t left = d.At(*x).num_elements();
  if (left == 0) return;
  while (left > 1 && to.size() < 4) {
    std::vector<int64_t> factors;
    for (int64_t f = 1; f <= left; ++f) {
      if (left % f == 0) factors.push_back(f);
    }
    to.push_back(factors[d.Below(factors.size())]);
    left /= to.back();
  }
  if (left > 1 || d.OneIn(3)) to.push_back(left);
  if (!to.empty() && d.OneIn(2)) to[d.Below(to.size())] = -1;
  d.Add("Reshape", {*x, d.Ints(to)}, TypeAttrOf(d, *x) + ", Tshape=int32");
}

void DrawTranspose(Drawer& d) {
  const auto x = PickAny(d, 2);
  if (!x) return;
  std::vector<int64_t> order;
  for (int i = 0; i < d.ShapeOf(*x).rank(); ++i) order.push_back(i);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[d.Below(i)]);
  d.Add("Transpose", {*x, d.Ints(order)}, TypeAttrOf(d, *x) + ", Tperm=int32");
}

void DrawSqueeze(Drawer& d) {
  const auto x = PickAny(d);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  if (d.OneIn(2)) {
    d.Add("ExpandDims", {*x, d.Int(d.Between(-rank - 1, rank))},
          TypeAttrOf(d, *x) + ", Tdim=int32");
  } else {
    d.Add("Squeeze", {*x}, TypeAttrOf(d, *x) + ", squeeze_dims=list:int()");
  }
}

void DrawTile(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  std::vector<int64_t> times;
  for (int i = 0; i < d.ShapeOf(*x).rank(); ++i) times.push_back(d.OneIn(2) ? 1 : d.Between(1, 3));
  d.Add("Tile", {*x, d.Ints(times)}, TypeAttrOf(d, *x) + ", Tmultiples=int32");
}

void DrawGather(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  const auto axis = static_cast<int>(d.Below(static_cast<size_t>(rank)));
  const int64_t n = d.ShapeOf(*x)[axis];
  std::vector<int64_t> at(d.Below(5));
  for (int64_t& i : at) i = d.OneIn(60) ? n : d.Between(0, std::max<int64_t>(n - 1, 0));
  const Dtype t = d.OneIn(3) ? Dtype::kInt64 : Dtype::kInt32;
  d.Add("GatherV2", {*x, d.Ints(at, t), d.Int(axis)},
        absl::StrCat("Tparams=", DtypeName(d.TypeOf(*x)), ", Tindices=", DtypeName(t),
                     ", Taxis=int32, batch_dims=0"));
}

void DrawReverse(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const int64_t rank = d.ShapeOf(*x).rank();
  const int64_t axis[] = {d.Between(-rank, rank - 1)};
  if (d.OneIn(2)) {
    d.Add("ReverseV2", {*x, d.Ints(axis)}, TypeAttrOf(d, *x) + ", Tidx=int32");
  } else {
    d.Add("Roll", {*x, d.Int(d.Between(-3, 3)), d.Int(axis[0])},
          TypeAttrOf(d, *x) + ", Tshift=int32, Taxis=int32");
  }
}

void DrawSpace(Drawer& d) {
  const auto x = PickAny(d, 4);
  if (!x || d.ShapeOf(*x).rank() != 4) return;
  switch (d.Below(3)) {
    case 0:
      d.Add("SpaceToDepth", {*x}, TypeAttrOf(d, *x) + ", block_size=2, data_format=\"NHWC\"");
      break;
    case 1:
      d.Add("DepthToSpace", {*x}, TypeAttrOf(d, *x) + ", block_size=2, data_format=\"NHWC\"");
      break;
    default: {
      Tensor pads = *Tensor::Zeros(Dtype::kInt32, Shape({2, 2}));
      pads.data<int32_t>()[1] = static_cast<int32_t>(d.ShapeOf(*x)[1] % 2);
      pads.data<int32_t>()[3] = static_cast<int32_t>(d.ShapeOf(*x)[2] % 2);
      const int64_t block[] = {2, 2};
      d.Add("SpaceToBatchND", {*x, d.Ints(block), d.Constant(std::move(pads))},
            TypeAttrOf(d, *x) + ", Tblock_shape=int32, Tpaddings=int32");
    }
  }
}

void DrawBroadcast(Drawer& d) {
  const auto x = PickAny(d);
  if (!x) return;
  Dims dims = DimsOf(d, *x);
  for (int64_t& n : dims) {
    if (n == 1) n = d.Size();
  }
  if (d.OneIn(2) && dims.size() < 5) dims.insert(dims.begin(), d.Between(1, 3));
  d.Add("BroadcastTo", {*x, d.Ints(dims)}, TypeAttrOf(d, *x) + ", Tidx=int32");
}

// Shapes are taken apart, computed with and put together to shapes again.
void DrawShapeArithmetic(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const int rank = d.ShapeOf(*x).rank();
  const auto shape = d.Add("Shape", {*x}, TypeAttrOf(d, *x) + ", out_type=int32", false, false);
  if (!shape) return;
  std::vector<DrawnPort> sizes;
  for (int i = 0; i < rank; ++i) {
    const int64_t at[] = {i}, behind[] = {i + 1}, one[] = {1};
    const auto n = d.Add("StridedSlice", {*shape, d.Ints(at), d.Ints(behind), d.Ints(one)},
                         "T=int32, Index=int32, begin_mask=0, end_mask=0, ellipsis_mask=0, "
                         "new_axis_mask=0, shrink_axis_mask=1",
                         false, false);
    if (!n) return;
    sizes.push_back(*n);
  }
  switch (d.Below(4)) {
    case 0: {  // the first two dimensions become one
      std::vector<DrawnPort> to = sizes;
      if (rank >= 2) {
        const auto both = d.Add("Mul", {sizes[0], sizes[1]}, "T=int32", false, false);
        if (!both) return;
        to.erase(to.begin());
        to[0] = *both;
      }
      const auto packed =
          d.Add("Pack", to, absl::StrCat("N=", to.size(), ", T=int32, axis=0"), false, false);
      if (packed) d.Add("Reshape", {*x, *packed}, TypeAttrOf(d, *x) + ", Tshape=int32");
      break;
    }
    case 1: {
      const auto packed =
          d.Add("Pack", sizes, absl::StrCat("N=", sizes.size(), ", T=int32, axis=0"), false, false);
      if (packed)
        d.Add("Fill", {*packed, d.Fresh(d.TypeOf(*x), {})},
              TypeAttrOf(d, *x) + ", index_type=int32");
      break;
    }
    case 2: {
      Dims dims = DimsOf(d, *x);
      for (int64_t& n : dims) {
        if (d.OneIn(2)) n = 1;
      }
      d.Add("BroadcastTo", {d.Fresh(d.TypeOf(*x), dims), *shape},
            TypeAttrOf(d, *x) + ", Tidx=int32");
      break;
    }
    default: {
      const auto sum = d.Add("AddV2", {sizes[d.Below(sizes.size())], d.Int(d.Between(-1, 2))},
                             "T=int32", false, false);
      if (!sum) return;
      if (d.OneIn(2)) {
        const auto range = d.Add("Range", {d.Int(0), *sum, d.Int(1)}, "Tidx=int32");
        if (range) d.Add("Cast", {*range}, "SrcT=int32, DstT=float, Truncate=false");
      } else {
        d.Add("Cast", {*sum}, "SrcT=int32, DstT=float, Truncate=false");
      }
    }
  }
}

// Where only a run tells the shape.
void DrawWhere(Drawer& d) {
  const auto x = PickAny(d, 1);
  if (!x) return;
  const auto where = d.Add("Where", {*x}, TypeAttrOf(d, *x));
  if (where && d.OneIn(2))
    d.Add("GatherNd", {*x, *where},
          absl::StrCat("Tparams=", DtypeName(d.TypeOf(*x)), ", Tindices=int64"));
}

void DrawOneHot(Drawer& d) {
  const auto x = d.Pick(
      [](const Tensor& t) { return Drawer::IsInteger(t.dtype()) && t.num_elements() < 300; });
  if (!x) return;
  d.Add("OneHot",
        {*x, d.Int(d.Between(1, 7)), d.Fresh(Dtype::kFloat, {}, true),
         d.Fresh(Dtype::kFloat, {}, true)},
        absl::StrCat("T=float, TI=", DtypeName(d.TypeOf(*x)), ", axis=-1"));
}

void DrawTopK(Drawer& d) {
  const auto x = d.Pick([](const Tensor& t) {
    return t.dtype() == Dtype::kFloat && t.rank() >= 1 && t.shape().back() > 0;
  });
  if (!x || d.HasNan(*x)) return;
  d.Add("TopKV2", {*x, d.Int(d.Between(0, d.ShapeOf(*x).back()))},
        "T=float, sorted=true, Tk=int32, index_type=int32");
}

void DrawBand(Drawer& d) {
  const auto x = PickAny(d, 2);
  if (!x) return;
  d.Add("MatrixBandPart",
        {*x, d.Int(d.Between(-1, 2), Dtype::kInt64), d.Int(d.Between(-1, 2), Dtype::kInt64)},
        TypeAttrOf(d, *x) + ", Tindex=int64");
}

constexpr Production kRows[] = {{2, DrawPad},     {4, DrawSlice},     {4, DrawStridedSlice},
                                {4, DrawSplit},   {4, DrawConcat},    {3, DrawPack},
                                {4, DrawReshape}, {4, DrawTranspose}, {3, DrawSqueeze},
                                {2, DrawTile},    {3, DrawGather},    {1, DrawReverse},
                                {1, DrawSpace},   {2, DrawBroadcast}, {3, DrawShapeArithmetic},
                                {1, DrawWhere},   {1, DrawOneHot},    {1, DrawTopK},
                                {1, DrawBand}};

}  // namespace

std::span<const Production> MovementProductions() { return kRows; }

}  // namespace smelt
