// ApproxTopK: the largest (or smallest) elements along a dimension. Found exactly, whatever recall
// is asked for.
#include <algorithm>
#include <numeric>

#include "smelt/base/parallel.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

struct ApproxTopKState final : KernelState {
  int64_t k = 0, dimension = -1;
  bool largest = true;
};

StatusOr<std::unique_ptr<KernelState>> PrepareApproxTopK(const Node& node) {
  auto s = std::make_unique<ApproxTopKState>();
  s->k = node.Int("k");
  s->dimension = node.Int("reduction_dimension", -1);
  s->largest = node.Bool("is_max_k", true);
  if (s->k < 0) return InvalidArgument("Need k >= 0, got ", s->k);
  return s;
}

// Elements `first + i * step`, i < n, in the order of their values; of equal ones the first leads,
// NaN comes last.
template <typename T>
void SelectRow(const T* x, int64_t n, int64_t first, int64_t step, const ApproxTopKState& s,
               std::vector<int32_t>& order, T* values, int32_t* indices, int64_t to) {
  order.resize(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int32_t i) { return static_cast<float>(x[first + i * step]); };
  std::partial_sort(order.begin(), order.begin() + s.k, order.end(), [&](int32_t a, int32_t b) {
    const float va = at(a), vb = at(b);
    if (va != va || vb != vb) return va == va || (vb != vb && a < b);
    if (va == vb) return a < b;
    return s.largest ? va > vb : va < vb;
  });
  for (int64_t i = 0; i < s.k; ++i) {
    values[to + i * step] = x[first + order[static_cast<size_t>(i)] * step];
    indices[to + i * step] = order[static_cast<size_t>(i)];
  }
}

template <typename T>
void SelectRows(const ApproxTopKState& s, const Tensor& in, int dim, Tensor* values,
                Tensor* indices) {
  const int64_t n = in.dim(dim), inner = in.shape().Product(dim + 1, in.rank());
  const int64_t rows = in.shape().Product(0, dim) * inner;
  ParallelFor(
      rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
        std::vector<int32_t> order;
        for (int64_t r = begin; r < end; ++r) {
          const int64_t outer = r / inner, offset = r % inner;
          SelectRow(in.data<T>(), n, outer * n * inner + offset, inner, s, order, values->data<T>(),
                    indices->data<int32_t>(), outer * s.k * inner + offset);
        }
      });
}

Status RunApproxTopK(OpContext& ctx) {
  const auto& s = ctx.state<ApproxTopKState>();
  const Tensor& in = ctx.input(0);
  const int64_t dim = s.dimension < 0 ? s.dimension + in.rank() : s.dimension;
  if (dim < 0 || dim >= in.rank()) {
    return InvalidArgument("Invalid reduction dimension: ", s.dimension,
                           ". Must be within the range of [", -in.rank(), ", ", in.rank() - 1, "]");
  }
  const int d = static_cast<int>(dim);
  if (in.dim(d) < s.k) {
    return InvalidArgument("input must have last dimension >= k = ", s.k, " but was ", in.dim(d));
  }
  if (in.dim(d) > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("ApproxTopK of more elements than indices count: ", in.dim(d));
  }
  Shape shape = in.shape();
  shape.Set(d, s.k);
  ASSIGN_OR_RETURN(Tensor * values, ctx.Allocate(0, shape));
  ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(1, shape));
  if (shape.num_elements() == 0) return OkStatus();
  switch (in.dtype()) {
    case Dtype::kFloat:
      SelectRows<float>(s, in, d, values, indices);
      break;
    case Dtype::kHalf:
      SelectRows<Half>(s, in, d, values, indices);
      break;
    default:
      SelectRows<Bfloat16>(s, in, d, values, indices);
  }
  return OkStatus();
}

constexpr Kernel kApproxTopKTable[] = {
    {"ApproxTopK", "T", Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16), "reduce:approx_top_k",
     RunApproxTopK, PrepareApproxTopK},
};

}  // namespace

extern constinit const std::span<const Kernel> kApproxTopKKernels = kApproxTopKTable;

}  // namespace smelt
