#include "smelt/kernels/lite/exact_product.h"

#include <algorithm>

#include "smelt/base/parallel.h"

namespace smelt::lite {
namespace {

// Products of one block: 255 * 128 * 512 and 255 * 255 * 256 are below 2^24.
int64_t BlockOf(Dtype type) { return type == Dtype::kUint8 ? 256 : 512; }
// Elements of the left operand that are made at a time.
constexpr int64_t kTileElements = 1 << 19;

}  // namespace

StatusOr<std::shared_ptr<ExactProduct::Packed>> ExactProduct::PackedOf(
    const Tensor& weights, bool constant, int64_t n, int64_t k, const std::vector<int32_t>& zeros) {
  absl::MutexLock lock(&mutex_);
  if (constant && packed_ != nullptr && packed_->weights.raw() == weights.raw()) return packed_;
  auto packed = std::make_shared<Packed>();
  packed->weights = weights;
  for (int64_t from = 0; from < k; from += BlockOf(weights.dtype())) {
    auto block = std::make_unique<Block>();
    block->from = from;
    block->to = std::min(k, from + BlockOf(weights.dtype()));
    ASSIGN_OR_RETURN(block->b, Tensor::Make(Dtype::kFloat, Shape({block->to - from, n})));
    float* b = block->b.data<float>();
    const auto fill = [&](const auto* w) {
      for (int64_t i = 0; i < n; ++i) {
        const int32_t zero =
            zeros.empty() ? 0 : zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(i)];
        for (int64_t j = from; j < block->to; ++j) {
          b[(j - from) * n + i] = static_cast<float>(int32_t{w[i * k + j]} - zero);
        }
      }
    };
    if (weights.dtype() == Dtype::kUint8) {
      fill(static_cast<const uint8_t*>(weights.raw()));
    } else {
      fill(static_cast<const int8_t*>(weights.raw()));
    }
    packed->blocks.push_back(std::move(block));
  }
  if (constant) packed_ = packed;
  return packed;
}

Status ExactProduct::Run(const Tensor& weights, bool constant, int64_t n, int64_t k,
                         const std::vector<int32_t>& zeros, int64_t m, FillRow fill, int32_t* sums,
                         Allocator* allocator) {
  if (k >= int64_t{1} << 23) return Unimplemented("sums of ", k, " products");
  std::fill(sums, sums + m * n, 0);
  if (m * n == 0) return OkStatus();
  ASSIGN_OR_RETURN(const std::shared_ptr<Packed> packed, PackedOf(weights, constant, n, k, zeros));
  for (const auto& block : packed->blocks) {
    const int64_t depth = block->to - block->from;
    const int64_t rows = std::clamp<int64_t>(kTileElements / std::max(depth, n), 1, m);
    for (int64_t first = 0; first < m; first += rows) {
      const int64_t count = std::min(rows, m - first);
      ASSIGN_OR_RETURN(const Tensor a,
                       Tensor::Make(Dtype::kFloat, Shape({count, depth}), allocator));
      auto* to = const_cast<float*>(a.data<float>());
      ParallelFor(count, std::max<int64_t>(1, 16384 / depth), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          fill(first + i, block->from, block->to, to + i * depth);
        }
      });
      ASSIGN_OR_RETURN(const nn::MatMulProblem problem,
                       nn::MakeMatMulProblem(a.shape(), block->b.shape(), false, false, false));
      ASSIGN_OR_RETURN(Tensor c, Tensor::Make(Dtype::kFloat, Shape({count, n}), allocator));
      RETURN_IF_ERROR(
          block->product.Run(problem, a, block->b, true, FusedOps(), {}, &c, allocator));
      const float* part = c.data<float>();
      int32_t* sum = sums + first * n;
      ParallelFor(count * n, 1 << 15, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) sum[i] += static_cast<int32_t>(part[i]);
      });
    }
  }
  return OkStatus();
}

}  // namespace smelt::lite
