#include "smelt/graph/shape/rules.h"

#include <algorithm>

namespace smelt {

int64_t AddDims(int64_t a, int64_t b) {
  if (b == 0) return a;
  int64_t sum;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return kUnknownDim;
  return sum;
}

int64_t MulDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == 1 || b == 1) return a == 1 ? b : a;
  int64_t product;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return kUnknownDim;
  return product;
}

int64_t XlaWindowedDim(int64_t in, int64_t size, const XlaWindow& window) {
  const XlaWindow& w = window;
  // A window for each place, whatever their number.
  if (in < 0 && size >= 1 && w.stride == 1 && w.base_dilation == 1 && w.dilation >= 1 &&
      w.low >= 0 && w.high >= 0 && AddDims(w.low, w.high) == MulDims(size - 1, w.dilation)) {
    return in;
  }
  if (in < 0 || size < 1 || window.stride < 1 || window.base_dilation < 1 || window.dilation < 1) {
    return kUnknownDim;
  }
  const int64_t base = in == 0 ? 0 : AddDims(MulDims(in - 1, window.base_dilation), 1);
  const int64_t taken = AddDims(MulDims(size - 1, window.dilation), 1);
  int64_t padded;
  if (base < 0 || taken < 0 || __builtin_add_overflow(base, window.low, &padded) ||
      __builtin_add_overflow(padded, window.high, &padded) || padded < 0) {
    return kUnknownDim;
  }
  return padded < taken ? 0 : (padded - taken) / window.stride + 1;
}

StatusOr<int64_t> MergeDims(int64_t a, int64_t b) {
  if (a < 0) return b == kUnknownDim ? a : b;
  if (b >= 0 && a != b) {
    return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
  }
  return a;
}

int64_t DimOf(const PartialShape& s, int i) {
  return s.known_rank() && i < s.rank() ? s[i] : kUnknownDim;
}

int64_t DimProduct(const PartialShape& s, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n = MulDims(n, s[i]);
  return n;
}

int64_t NumElements(const PartialShape& s) {
  return s.known_rank() ? DimProduct(s, 0, s.rank()) : kUnknownDim;
}

StatusOr<PartialShape> WithRank(const PartialShape& s, int rank) {
  if (!s.known_rank()) return PartialShape::UnknownOfRank(rank);
  if (s.rank() != rank) {
    return InvalidArgument("Shape must be rank ", rank, " but is rank ", s.rank());
  }
  return s;
}

Status RankAtLeast(const PartialShape& s, int rank) {
  if (s.known_rank() && s.rank() < rank) {
    return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", s.rank());
  }
  return OkStatus();
}

StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  PartialShape out = PartialShape::UnknownOfRank(rank);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    if (da == db || db == 1) {
      out.Set(i, da);
    } else if (da == 1) {
      out.Set(i, db);
    } else if (da < 0 || db < 0) {
      // Where one side is known and not 1, the unknown one is 1 or the same.
      out.Set(i, std::max({da, db, kUnknownDim}));
    } else {
      return InvalidArgument("Dimensions must be equal, but are ", da, " and ", db);
    }
  }
  return out;
}

PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return {};
  PartialShape out = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i]) out.Set(i, kUnknownDim);
  }
  return out;
}

PartialShape SubShape(const PartialShape& s, int begin, int end) {
  return PartialShape::Of(s.dims().subspan(begin, end - begin));
}

PartialShape SubShape(const PartialShape& s, int begin) { return SubShape(s, begin, s.rank()); }

PartialShape Concatenate(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return {};
  PartialShape out = a;
  for (int64_t d : b.dims()) out.Add(d);
  return out;
}

PartialShape VectorShape(int64_t size) { return PartialShape::Of({size}); }

StatusOr<int> WrapAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Dimension ", axis, " must be in the range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int64_t>> IntConstants(const ShapeContext& ctx, int i) {
  const Tensor* t = ctx.constant(i);
  if (t == nullptr || (t->dtype() != Dtype::kInt32 && t->dtype() != Dtype::kInt64)) return {};
  std::vector<int64_t> values(t->num_elements());
  for (size_t k = 0; k < values.size(); ++k) values[k] = IndexAt(*t, static_cast<int64_t>(k));
  return values;
}

std::optional<int64_t> IntConstant(const ShapeContext& ctx, int i) {
  const auto values = IntConstants(ctx, i);
  return values && values->size() == 1 ? std::optional<int64_t>(values->front()) : std::nullopt;
}

PartialShape ShapeFromInput(const ShapeContext& ctx, int i) {
  if (ctx.input(i).rank() == 0) return {};
  return ctx.constant_as_shape(i);
}

Status SameShape(ShapeContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  ctx.set_held(0, ctx.held(0));
  return OkStatus();
}

Status SameShapes(ShapeContext& ctx) {
  for (int i = 0; i < ctx.num_inputs() && i < ctx.node().num_outputs(); ++i) {
    ctx.set_output(i, ctx.input(i));
    ctx.set_held(i, ctx.held(i));
  }
  return OkStatus();
}

Status SecondShape(ShapeContext& ctx) {
  ctx.set_output(0, ctx.input(1));
  return OkStatus();
}

Status ScalarShapes(ShapeContext& ctx) {
  for (int i = 0; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, Shape());
  return OkStatus();
}

Status NoShapes(ShapeContext&) { return OkStatus(); }

Status MergedShape(ShapeContext& ctx) {
  PartialShape out;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(out, PartialShape::Merge(out, ctx.input(i)));
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status BroadcastShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(PartialShape out, BroadcastShapes(ctx.input(0), ctx.input(1)));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status VectorShapes(ShapeContext& ctx) { return SomeRank<1>(ctx); }

Status ShapeFromAttr(ShapeContext& ctx) {
  ctx.set_output(0, ctx.node().Get<PartialShape>("shape", {}));
  return OkStatus();
}

}  // namespace smelt
