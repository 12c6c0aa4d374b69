// Shapes of XLA's own ops, as far as attributes and constant inputs tell.
#include <algorithm>

#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// The dimensions that the attribute does not reduce.
Status XlaReduceShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  const std::vector<int64_t> reduced = ctx.node().Ints("dimensions_to_reduce");
  PartialShape out = Shape();
  for (int i = 0; i < in.rank(); ++i) {
    if (std::find(reduced.begin(), reduced.end(), i) == reduced.end()) out.Add(in[i]);
  }
  for (const int64_t d : reduced) {
    if (d < 0 || d >= in.rank()) {
      return InvalidArgument("Invalid dimensions_to_reduce argument to ", ctx.node().op());
    }
  }
  for (int i = 0; i < ctx.node().num_outputs(); ++i) ctx.set_output(i, out);
  return OkStatus();
}

// The shape that input kInput holds as a vector.
template <int kInput>
Status SizesShape(ShapeContext& ctx) {
  ctx.set_output(0, ctx.constant_as_shape(kInput));
  return OkStatus();
}

Status XlaPadShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(in.rank());
  const auto low = IntConstants(ctx, 2), high = IntConstants(ctx, 3), inner = IntConstants(ctx, 4);
  const auto rank = static_cast<size_t>(in.rank());
  if (low && high && inner && low->size() == rank && high->size() == rank &&
      inner->size() == rank) {
    for (int i = 0; i < in.rank(); ++i) {
      if (in[i] < 0) continue;
      const int64_t gaps = in[i] > 0 ? MulDims(in[i] - 1, (*inner)[i]) : 0;
      if ((*inner)[i] < 0 || gaps < 0) continue;
      const int64_t dilated = AddDims(in[i], gaps);
      // Negative padding is added apart: AddDims takes a negative number for an unknown size.
      const int64_t added = AddDims(AddDims(dilated, std::max<int64_t>((*low)[i], 0)),
                                    std::max<int64_t>((*high)[i], 0));
      if (added < 0) continue;
      const int64_t size =
          added + std::min<int64_t>((*low)[i], 0) + std::min<int64_t>((*high)[i], 0);
      if (size >= 0) out.Set(i, size);
    }
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status XlaSameRank(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (in.known_rank()) ctx.set_output(0, PartialShape::UnknownOfRank(in.rank()));
  return OkStatus();
}

Status XlaReduceWindowShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  if (!in.known_rank()) return OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(in.rank());
  const auto size = IntConstants(ctx, 2), stride = IntConstants(ctx, 3),
             base_dilation = IntConstants(ctx, 4), dilation = IntConstants(ctx, 5),
             padding = IntConstants(ctx, 6);
  const auto rank = static_cast<size_t>(in.rank());
  const auto known = [&](const auto& values) { return values && values->size() == rank; };
  if (known(size) && known(stride) && known(base_dilation) && known(dilation) && padding &&
      padding->size() == 2 * rank) {
    for (int i = 0; i < in.rank(); ++i) {
      out.Set(i, XlaWindowedDim(in[i], (*size)[i],
                                {(*stride)[i], (*base_dilation)[i], (*dilation)[i],
                                 (*padding)[2 * i], (*padding)[2 * i + 1]}));
    }
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// a[..., n, n] -> eigenvalues[..., n], eigenvectors[..., n, n]
Status XlaEigShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(in, 2));
  ctx.set_output(1, in);
  if (in.known_rank()) ctx.set_output(0, SubShape(in, 0, in.rank() - 1));
  return OkStatus();
}

Status XlaSvdShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  RETURN_IF_ERROR(RankAtLeast(in, 2));
  if (!in.known_rank()) return OkStatus();
  const PartialShape batch = SubShape(in, 0, in.rank() - 2);
  const int64_t m = in[in.rank() - 2], n = in[in.rank() - 1];
  PartialShape s = batch, u = batch, v = batch;
  s.Add(m < 0 || n < 0 ? kUnknownDim : std::min(m, n));
  for (int i = 0; i < 2; ++i) {
    u.Add(m);
    v.Add(n);
  }
  ctx.set_output(0, std::move(s));
  ctx.set_output(1, std::move(u));
  ctx.set_output(2, std::move(v));
  return OkStatus();
}

Status XlaRandomBitsShape(ShapeContext& ctx) {
  ctx.set_output(0, ctx.input(1));
  ctx.set_output(1, ShapeFromInput(ctx, 2));
  return OkStatus();
}

// Attribute Sout, where it has one shape for each output.
Status XlaCallModuleShapes(ShapeContext& ctx) {
  const auto shapes = ctx.node().Get<std::vector<PartialShape>>("Sout", {});
  if (shapes.size() != static_cast<size_t>(ctx.node().num_outputs())) return OkStatus();
  for (size_t i = 0; i < shapes.size(); ++i) ctx.set_output(static_cast<int>(i), shapes[i]);
  return OkStatus();
}

constexpr ShapeRule kXlaRules[] = {
    {"XlaCallModule", XlaCallModuleShapes},
    {"XlaReduce", XlaReduceShape},
    {"XlaVariadicReduce", XlaReduceShape},
    {"XlaVariadicReduceV2", XlaReduceShape},
    {"XlaDynamicSlice", SizesShape<2>},
    {"XlaDynamicUpdateSlice", SameShape},
    {"XlaScatter", SameShape},
    {"XlaSelectAndScatter", SameShape},
    {"XlaPad", XlaPadShape},
    {"XlaReduceWindow", XlaReduceWindowShape},
    {"XlaSetDynamicDimensionSize", XlaSameRank},
    {"XlaSort", SameShape},
    {"XlaKeyValueSort", SameShapes},
    {"XlaVariadicSort", SameShapes},
    {"XlaSelfAdjointEig", XlaEigShape},
    {"XlaSvd", XlaSvdShape},
    {"XlaRngBitGenerator", XlaRandomBitsShape},
    {"XlaReducePrecision", SameShape},
    {"XlaOptimizationBarrier", SameShapes},
    {"XlaSharding", SameShape},
    {"XlaSpmdFullToShardShape", SameShape},
    {"XlaSpmdShardToFullShape", SameShape},
    {"XlaSetBound", SameShape},
    {"XlaReplicaId", ScalarShapes},
    {"XlaDequantize", SomeRank<2>},
};

}  // namespace

extern constinit const std::span<const ShapeRule> kXlaShapes = kXlaRules;

}  // namespace smelt
