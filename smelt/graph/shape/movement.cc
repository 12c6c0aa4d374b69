// Shapes of ops that make, reshape, join and split tensors.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "absl/strings/str_join.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// Old graphs say [] where they mean that the shape is not known.
Status PlaceholderShape(ShapeContext& ctx) {
  PartialShape shape = ctx.node().Get<PartialShape>("shape", {});
  if (shape.rank() == 0) {
    const Attr* a = ctx.node().attrs().Find("_output_shapes");
    const auto* declared = a ? a->get<std::vector<PartialShape>>() : nullptr;
    shape = declared != nullptr && declared->size() == 1 ? declared->front() : PartialShape();
  }
  ctx.set_output(0, std::move(shape));
  return OkStatus();
}

// The default stands for inputs that are not fed; the attribute covers both.
Status PlaceholderWithDefaultShape(ShapeContext& ctx) {
  const PartialShape shape = ctx.node().Get<PartialShape>("shape", {});
  if (ctx.input(0).rank() != 0 && shape.rank() == 0) return OkStatus();
  ctx.set_output(0, shape);
  return OkStatus();
}

Status ShapeShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const PartialShape& in = ctx.input(i);
    ctx.set_output(i, VectorShape(in.known_rank() ? in.rank() : kUnknownDim));
  }
  return OkStatus();
}

// The stated sizes, with one of them filled in when the element count is known.
Status ReshapeShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  PartialShape out = ctx.constant_as_shape(1);
  if (!out.known_rank()) return OkStatus();
  int unknown = -1, count = 0;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] < 0) {
      unknown = i;
      ++count;
    }
  }
  const int64_t have = NumElements(in);
  int64_t want = 1;
  for (int64_t d : out.dims()) want = d < 0 ? want : MulDims(want, d);
  if (have >= 0 && want >= 0) {
    if (count == 0 && have != want) {
      return InvalidArgument("Cannot reshape a tensor with ", have, " elements to shape ",
                             out.ToString(), " (", want, " elements)");
    }
    if (count == 1 && want > 0) {
      if (have % want != 0) {
        return InvalidArgument("Dimension size must be evenly divisible by ", want, " but is ",
                               have);
      }
      out.Set(unknown, have / want);
    }
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status TransposeShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  const auto perm = IntConstants(ctx, 1);
  if (!perm) {
    const int rank = in.known_rank() ? in.rank() : ctx.constant_as_shape(1).rank();
    if (rank >= 0) ctx.set_output(0, PartialShape::UnknownOfRank(rank));
    return OkStatus();
  }
  const auto rank = static_cast<int>(perm->size());
  if (rank > kMaxRank) return OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(rank);
  if (in.known_rank()) RETURN_IF_ERROR(WithRank(in, rank).status());
  for (int i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(const int from, WrapAxis((*perm)[i], rank));
    if (in.known_rank()) out.Set(i, in[from]);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status ConcatOf(ShapeContext& ctx, int begin, int end, int axis_input) {
  const auto axis = IntConstant(ctx, axis_input);
  PartialShape out;
  int64_t sum = 0;
  int at = -1;
  for (int i = begin; i < end; ++i) {
    const PartialShape& in = ctx.input(i);
    if (!in.known_rank()) {
      sum = kUnknownDim;
      continue;
    }
    // Old graphs concatenate scalars as vectors of one element.
    if (in.rank() == 0) {
      ctx.set_output(0, PartialShape());
      return OkStatus();
    }
    if (!axis) {
      // The axis is unknown, so any dimension may be the one that grows.
      if (out.known_rank()) RETURN_IF_ERROR(WithRank(in, out.rank()).status());
      out = PartialShape::UnknownOfRank(in.rank());
      continue;
    }
    if (at < 0) {
      ASSIGN_OR_RETURN(at, WrapAxis(*axis, in.rank()));
    }
    PartialShape rest = in;
    rest.Set(at < in.rank() ? at : 0, kUnknownDim);
    ASSIGN_OR_RETURN(out, PartialShape::Merge(out, rest));
    sum = sum < 0 ? kUnknownDim : AddDims(sum, in[at]);
  }
  if (at >= 0) out.Set(at, sum);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status ConcatShape(ShapeContext& ctx) { return ConcatOf(ctx, 1, ctx.num_inputs(), 0); }
Status ConcatV2Shape(ShapeContext& ctx) {
  return ConcatOf(ctx, 0, ctx.num_inputs() - 1, ctx.num_inputs() - 1);
}

Status ScopedSplitShape(ShapeContext& ctx) {
  const auto shapes = ctx.node().Get<std::vector<PartialShape>>("shapes", {});
  const int outputs = std::min(ctx.node().num_outputs(), static_cast<int>(shapes.size()));
  for (int i = 0; i < outputs; ++i) ctx.set_output(i, shapes[static_cast<size_t>(i)]);
  return OkStatus();
}

Status SplitShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(1);
  const int parts = ctx.node().num_outputs();
  if (!in.known_rank() || parts == 0) return OkStatus();
  const auto axis = IntConstant(ctx, 0);
  PartialShape out = PartialShape::UnknownOfRank(in.rank());
  if (axis) {
    ASSIGN_OR_RETURN(const int at, WrapAxis(*axis, in.rank()));
    out = in;
    if (in[at] >= 0 && in[at] % parts != 0) {
      return InvalidArgument("Dimension size must be evenly divisible by ", parts, " but is ",
                             in[at]);
    }
    out.Set(at, in[at] < 0 ? kUnknownDim : in[at] / parts);
  }
  for (int i = 0; i < parts; ++i) ctx.set_output(i, out);
  return OkStatus();
}

Status SplitVShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  const int parts = ctx.node().num_outputs();
  if (!in.known_rank()) return OkStatus();
  const auto axis = IntConstant(ctx, 2);
  if (!axis) {
    for (int i = 0; i < parts; ++i) ctx.set_output(i, PartialShape::UnknownOfRank(in.rank()));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const int at, WrapAxis(*axis, in.rank()));
  auto sizes = IntConstants(ctx, 1);
  if (sizes && static_cast<int>(sizes->size()) == parts) {
    // One of them may be -1: the rest.
    const bool open = std::ranges::find(*sizes, -1) != sizes->end();
    const int64_t sum = std::accumulate(sizes->begin(), sizes->end(), int64_t{open ? 1 : 0});
    const bool stated = std::ranges::all_of(*sizes, [](int64_t s) { return s >= -1; });
    if (stated && in[at] >= 0 && (open ? sum > in[at] : sum != in[at])) {
      return InvalidArgument("can't split axis of size ", in[at], " into pieces of size [",
                             absl::StrJoin(*sizes, ","), "]");
    }
    int64_t rest = in[at];
    for (int64_t s : *sizes) rest = s < 0 ? rest : (rest < s ? kUnknownDim : rest - s);
    for (int64_t& s : *sizes) s = s < 0 ? rest : s;
  } else {
    sizes = std::vector<int64_t>(parts, parts == 1 ? in[at] : kUnknownDim);
  }
  for (int i = 0; i < parts; ++i) {
    PartialShape out = in;
    out.Set(at, (*sizes)[i] < 0 ? kUnknownDim : (*sizes)[i]);
    ctx.set_output(i, std::move(out));
  }
  return OkStatus();
}

Status PackShape(ShapeContext& ctx) {
  PartialShape in;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(in, PartialShape::Merge(in, ctx.input(i)));
  }
  if (!in.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const int at, WrapAxis(ctx.node().Int("axis"), in.rank() + 1));
  PartialShape out = SubShape(in, 0, at);
  out.Add(ctx.num_inputs());
  ctx.set_output(0, Concatenate(out, SubShape(in, at)));
  return OkStatus();
}

Status UnpackShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(in, 1));
  if (!in.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const int at, WrapAxis(ctx.node().Int("axis"), in.rank()));
  RETURN_IF_ERROR(MergeDims(in[at], ctx.node().num_outputs()).status());
  const PartialShape out = Concatenate(SubShape(in, 0, at), SubShape(in, at + 1));
  for (int i = 0; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, out);
  return OkStatus();
}

Status ExpandDimsShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(in.rank() + 1);
  if (const auto axis = IntConstant(ctx, 1)) {
    ASSIGN_OR_RETURN(const int at, WrapAxis(*axis, in.rank() + 1));
    out = SubShape(in, 0, at);
    out.Add(1);
    out = Concatenate(out, SubShape(in, at));
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status SqueezeShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  std::vector<bool> dropped(in.rank());
  const std::vector<int64_t> axes = ctx.node().Ints("squeeze_dims");
  for (int64_t axis : axes) {
    ASSIGN_OR_RETURN(const int at, WrapAxis(axis, in.rank()));
    if (in[at] >= 0 && in[at] != 1) {
      return InvalidArgument("Can not squeeze dim[", at, "], expected a dimension of 1, got ",
                             in[at]);
    }
    dropped[at] = true;
  }
  PartialShape out = Shape();
  for (int i = 0; i < in.rank(); ++i) {
    // Without axes every 1 goes, so an unknown size leaves even the rank open.
    if (axes.empty() && in[i] < 0) return OkStatus();
    if (!(dropped[i] || (axes.empty() && in[i] == 1))) out.Add(in[i]);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status FillShape(ShapeContext& ctx) {
  ctx.set_output(0, ctx.constant_as_shape(0));
  return OkStatus();
}

// The stated sizes. An input's size above 1 is the result's too, also where none is stated.
Status BroadcastToShape(ShapeContext& ctx) {
  PartialShape out = ctx.constant_as_shape(1);
  const PartialShape& in = ctx.input(0);
  if (out.known_rank() && in.known_rank()) {
    if (in.rank() > out.rank()) {
      return InvalidArgument("Shape must be at most rank ", out.rank(), " but is rank ", in.rank());
    }
    for (int i = 0; i < in.rank(); ++i) {
      const int at = out.rank() - in.rank() + i;
      if (in[i] > 1) {
        ASSIGN_OR_RETURN(const int64_t size, MergeDims(out[at], in[i]));
        out.Set(at, size);
      }
    }
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status BroadcastArgsShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape a, WithRank(ctx.input(0), 1));
  ASSIGN_OR_RETURN(const PartialShape b, WithRank(ctx.input(1), 1));
  ctx.set_output(0, VectorShape(a[0] < 0 || b[0] < 0 ? kUnknownDim : std::max(a[0], b[0])));
  return OkStatus();
}

// Computed in type T, as the op does, since rounding decides the count. Unknown for other types.
template <typename T>
int64_t FloatRangeSize(const ShapeContext& ctx) {
  T v[3];
  for (int i = 0; i < 3; ++i) {
    const Tensor* t = ctx.constant(i);
    if (t == nullptr || t->num_elements() != 1 || t->dtype() != kDtypeOf<T>) return kUnknownDim;
    v[i] = t->scalar<T>();
  }
  const T n = std::ceil(std::abs((v[1] - v[0]) / v[2]));
  if (v[0] == v[1] && v[2] != 0) return 0;
  const bool towards = (v[2] > 0) == (v[1] > v[0]);
  return v[2] != 0 && towards && n >= 0 && n < 1e9 ? static_cast<int64_t>(n) : kUnknownDim;
}

Status RangeShape(ShapeContext& ctx) {
  int64_t size = kUnknownDim;
  const auto start = IntConstant(ctx, 0), limit = IntConstant(ctx, 1), delta = IntConstant(ctx, 2);
  if (start && limit && delta && *delta != 0) {
    // In 128 bits nothing overflows.
    const __int128 span = static_cast<__int128>(*limit) - *start, step = *delta;
    const __int128 n = step > 0 ? (span + step - 1) / step : (span + step + 1) / step;
    if (n <= std::numeric_limits<int64_t>::max()) size = n < 0 ? 0 : static_cast<int64_t>(n);
    if ((step > 0) != (span > 0)) size = 0;
  } else {
    size = FloatRangeSize<float>(ctx);
    if (size < 0) size = FloatRangeSize<double>(ctx);
  }
  ctx.set_output(0, VectorShape(size));
  return OkStatus();
}

Status LinSpaceShape(ShapeContext& ctx) {
  const auto n = IntConstant(ctx, 2);
  ctx.set_output(0, VectorShape(n && *n >= 0 ? *n : kUnknownDim));
  return OkStatus();
}

Status OneHotShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  const auto depth = IntConstant(ctx, 1);
  ASSIGN_OR_RETURN(const int at, WrapAxis(ctx.node().Int("axis", -1), in.rank() + 1));
  PartialShape out = SubShape(in, 0, at);
  out.Add(depth && *depth >= 0 ? *depth : kUnknownDim);
  ctx.set_output(0, Concatenate(out, SubShape(in, at)));
  return OkStatus();
}

// diagonal[d0, ...] -> [d0, ..., d0, ...]
Status DiagShape(ShapeContext& ctx) {
  ctx.set_output(0, Concatenate(ctx.input(0), ctx.input(0)));
  return OkStatus();
}

Status DiagPartShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  if (in.rank() % 2 != 0) {
    return InvalidArgument("Input must have even rank, input rank is ", in.rank());
  }
  ASSIGN_OR_RETURN(PartialShape out, PartialShape::Merge(SubShape(in, 0, in.rank() / 2),
                                                         SubShape(in, in.rank() / 2)));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status MatrixDiagShape(ShapeContext& ctx) {
  PartialShape out = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(out, 1));
  if (out.known_rank()) out.Add(out[out.rank() - 1]);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status MatrixDiagPartShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(in, 2));
  if (!in.known_rank()) return OkStatus();
  PartialShape out = SubShape(in, 0, in.rank() - 2);
  const int64_t a = in[in.rank() - 2], b = in[in.rank() - 1];
  out.Add(a < 0 || b < 0 ? kUnknownDim : std::min(a, b));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// The diagonals that input `k` of MatrixDiag and its kin names from version 2 on; several of them
// add a dimension to the tensor that holds them.
struct DiagonalBand {
  int64_t low = 0, high = 0;
};
std::optional<DiagonalBand> BandOf(const ShapeContext& ctx) {
  const auto k = IntConstants(ctx, 1);
  if (!k || k->empty() || k->size() > 2) return {};
  return DiagonalBand{k->front(), k->back()};
}

Status MatrixDiagV2Shape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  const auto band = BandOf(ctx);
  RETURN_IF_ERROR(RankAtLeast(in, 1));
  if (!in.known_rank() || !band) return OkStatus();
  const int batch = in.rank() - (band->low == band->high ? 1 : 2);
  if (batch < 0) return OkStatus();
  const auto rows = IntConstant(ctx, 2), columns = IntConstant(ctx, 3);
  PartialShape out = SubShape(in, 0, batch);
  if (rows && columns && *rows < 0 && *columns < 0 && in[in.rank() - 1] >= 0) {
    // Neither is stated: the smallest square that holds the longest diagonal.
    const int64_t longest = in[in.rank() - 1];
    const int64_t reach =
        std::max(std::max<int64_t>(-band->high, 0), std::max<int64_t>(band->low, 0));
    out.Add(AddDims(longest, reach));
    out.Add(AddDims(longest, reach));
  } else {
    out.Add(rows && *rows >= 0 ? *rows : kUnknownDim);
    out.Add(columns && *columns >= 0 ? *columns : kUnknownDim);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status MatrixDiagPartV2Shape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  const auto band = BandOf(ctx);
  RETURN_IF_ERROR(RankAtLeast(in, 2));
  if (!in.known_rank() || !band) return OkStatus();
  PartialShape out = SubShape(in, 0, in.rank() - 2);
  const bool several = band->low != band->high;
  if (several) out.Add(band->high > band->low ? band->high - band->low + 1 : kUnknownDim);
  const int64_t rows = in[in.rank() - 2], columns = in[in.rank() - 1];
  int64_t longest = kUnknownDim;
  if (rows >= 0 && columns >= 0) {
    longest = std::min(rows + std::min<int64_t>(band->high, 0),
                       columns - std::max<int64_t>(band->low, 0));
  }
  out.Add(longest < 0 ? kUnknownDim : longest);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr std::array kMovementRows = {
    ShapeRule{"BroadcastArgs", BroadcastArgsShape},
    ShapeRule{"BroadcastGradientArgs", VectorShapes},
    ShapeRule{"BroadcastTo", BroadcastToShape},
    ShapeRule{"Concat", ConcatShape},
    ShapeRule{"ConcatV2", ConcatV2Shape},
    ShapeRule{"ConjugateTranspose", TransposeShape},
    ShapeRule{"Diag", DiagShape},
    ShapeRule{"DiagPart", DiagPartShape},
    ShapeRule{"Empty", FillShape},
    ShapeRule{"ExpandDims", ExpandDimsShape},
    ShapeRule{"Fill", FillShape},
    ShapeRule{"InvertPermutation", SameShape},
    ShapeRule{"LinSpace", LinSpaceShape},
    ShapeRule{"MatrixBandPart", SameShape},
    ShapeRule{"MatrixDiag", MatrixDiagShape},
    ShapeRule{"MatrixDiagPart", MatrixDiagPartShape},
    ShapeRule{"MatrixDiagPartV2", MatrixDiagPartV2Shape},
    ShapeRule{"MatrixDiagPartV3", MatrixDiagPartV2Shape},
    ShapeRule{"MatrixDiagV2", MatrixDiagV2Shape},
    ShapeRule{"MatrixDiagV3", MatrixDiagV2Shape},
    ShapeRule{"MatrixSetDiag", SameShape},
    ShapeRule{"OneHot", OneHotShape},
    ShapeRule{"Pack", PackShape},
    ShapeRule{"ParallelConcat", ShapeFromAttr},
    ShapeRule{"Placeholder", PlaceholderShape},
    ShapeRule{"PlaceholderV2", ShapeFromAttr},
    ShapeRule{"PlaceholderWithDefault", PlaceholderWithDefaultShape},
    ShapeRule{"Range", RangeShape},
    ShapeRule{"Rank", ScalarShapes},
    ShapeRule{"Reshape", ReshapeShape},
    ShapeRule{"Shape", ShapeShape},
    ShapeRule{"ShapeN", ShapeShape},
    ShapeRule{"Size", ScalarShapes},
    ShapeRule{"Split", SplitShape},
    ShapeRule{"SplitV", SplitVShape},
    ShapeRule{"Squeeze", SqueezeShape},
    ShapeRule{"Transpose", TransposeShape},
    ShapeRule{"Unpack", UnpackShape},
    ShapeRule{"_ScopedAllocator", ShapeFromAttr},
    ShapeRule{"_ScopedAllocatorConcat", ShapeFromAttr},
    ShapeRule{"_ScopedAllocatorSplit", ScopedSplitShape},
};

}  // namespace

extern const std::span<const ShapeRule> kMovementShapes;
constinit const std::span<const ShapeRule> kMovementShapes = kMovementRows;

}  // namespace smelt
