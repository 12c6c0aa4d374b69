#include "smelt/analysis/xla_shapes.h"

#include <algorithm>
#include <vector>

#include "smelt/graph/shape/rules.h"
#include "smelt/kernels/xla/dimension_numbers.h"

namespace smelt {
namespace {

bool Has(const Dims& dims, int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

bool AllWithin(const Dims& dims, int rank) {
  return std::ranges::all_of(dims, [&](int64_t d) { return d >= 0 && d < rank; });
}

// Batch dimensions, then what is left of either operand. Where the numbers do not fit, nothing is
// known: the kernel says what is wrong.
Status DotShape(ShapeContext& ctx) {
  const PartialShape &lhs = ctx.input(0), &rhs = ctx.input(1);
  const auto d = DotDimensionsOf(ctx.node());
  if (!d.ok() || !lhs.known_rank() || !rhs.known_rank() || !AllWithin(d->lhs_batch, lhs.rank()) ||
      d->lhs_batch.size() != d->rhs_batch.size() || !AllWithin(d->rhs_batch, rhs.rank())) {
    return OkStatus();
  }
  PartialShape out = Shape();
  for (size_t i = 0; i < d->lhs_batch.size(); ++i) {
    const int64_t left = lhs[static_cast<int>(d->lhs_batch[i])];
    out.Add(left >= 0 ? left : rhs[static_cast<int>(d->rhs_batch[i])]);
  }
  const auto add_rest = [&](const PartialShape& s, const Dims& batch, const Dims& contracting) {
    for (int i = 0; i < s.rank(); ++i) {
      if (!Has(batch, i) && !Has(contracting, i)) out.Add(s[i]);
    }
  };
  add_rest(lhs, d->lhs_batch, d->lhs_contracting);
  add_rest(rhs, d->rhs_batch, d->rhs_contracting);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status ConvShape(ShapeContext& ctx) {
  const PartialShape &in = ctx.input(0), &kernel = ctx.input(1);
  const auto d = ConvDimensionsOf(ctx.node());
  if (!d.ok() || !in.known_rank() || kernel.rank() != in.rank()) return OkStatus();
  const int rank = in.rank(), spatial = rank - 2;
  Dims all{d->output_batch, d->output_feature};
  all.insert(all.end(), d->output_spatial.begin(), d->output_spatial.end());
  for (const Dims& dims :
       {Dims{d->input_batch, d->kernel_output}, d->input_spatial, d->kernel_spatial, all}) {
    if (!AllWithin(dims, rank)) return OkStatus();
  }
  for (const Dims* dims : {&d->input_spatial, &d->kernel_spatial, &d->output_spatial}) {
    if (std::ssize(*dims) != spatial) return OkStatus();
  }
  PartialShape out = PartialShape::UnknownOfRank(rank);
  const int64_t groups = ctx.node().Int("batch_group_count", 1);
  const int64_t batch = in[static_cast<int>(d->input_batch)];
  if (batch >= 0 && groups > 0) out.Set(static_cast<int>(d->output_batch), batch / groups);
  out.Set(static_cast<int>(d->output_feature), kernel[static_cast<int>(d->kernel_output)]);
  const auto stride = IntConstants(ctx, 2), padding = IntConstants(ctx, 3),
             base_dilation = IntConstants(ctx, 4), dilation = IntConstants(ctx, 5);
  const auto known = [&](const auto& values, int count) {
    return values && std::ssize(*values) == count;
  };
  if (known(stride, spatial) && known(padding, 2 * spatial) && known(base_dilation, spatial) &&
      known(dilation, spatial)) {
    for (int i = 0; i < spatial; ++i) {
      out.Set(static_cast<int>(d->output_spatial[i]),
              XlaWindowedDim(in[static_cast<int>(d->input_spatial[i])],
                             kernel[static_cast<int>(d->kernel_spatial[i])],
                             {(*stride)[i], (*base_dilation)[i], (*dilation)[i], (*padding)[2 * i],
                              (*padding)[2 * i + 1]}));
    }
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Dimensions of the indices, but for the index vector's, with those of a slice at `window`.
Status GatherShape(ShapeContext& ctx) {
  const PartialShape &operand = ctx.input(0), &indices = ctx.input(1);
  const auto d = GatherDimensionsOf(ctx.node());
  if (!d.ok() || !indices.known_rank()) return OkStatus();
  PartialShape batch = Shape();
  for (int i = 0; i < indices.rank(); ++i) {
    if (i != d->index_vector) batch.Add(indices[i]);
  }
  const auto window = std::ssize(d->window);
  const auto rank = batch.rank() + window;
  if (rank > kMaxRank || !AllWithin(d->window, static_cast<int>(rank))) return OkStatus();
  const auto sizes = IntConstants(ctx, 2);
  std::vector<int64_t> slice;
  if (sizes && (!operand.known_rank() || std::ssize(*sizes) == operand.rank())) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      const auto dim = static_cast<int64_t>(i);
      if (!Has(d->collapsed, dim) && !Has(d->operand_batch, dim)) slice.push_back((*sizes)[i]);
    }
  }
  if (std::ssize(slice) != window) slice.assign(window, kUnknownDim);
  PartialShape out = Shape();
  int next_batch = 0, next_slice = 0;
  for (int i = 0; i < rank; ++i) {
    const bool of_slice = Has(d->window, i);
    if (!of_slice && next_batch == batch.rank()) return OkStatus();  // a window dimension twice
    out.Add(of_slice ? slice[next_slice++] : batch[next_batch++]);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr ShapeRule kRules[] = {
    {"XlaDot", DotShape},
    {"XlaConv", ConvShape},
    {"XlaGather", GatherShape},
};

}  // namespace

MoreShapeRules XlaShapeRules() { return kRules; }

}  // namespace smelt
