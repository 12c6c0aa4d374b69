#include "smelt/lite/finite_constants.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <span>

#include "smelt/base/parallel.h"
#include "smelt/graph/constant.h"

namespace smelt {
namespace {

bool HasInfinity(std::span<const float> numbers) {
  const auto infinities = []<size_t N>(std::span<const float, N> some) {
    uint32_t any = 0;
    for (const float v : some) any |= (std::bit_cast<uint32_t>(v) & 0x7fffffff) == 0x7f800000;
    return any;
  };
  // Whole blocks have a known size, so that compilers look at many numbers at once.
  constexpr size_t kBlock = 256;
  const size_t blocks = numbers.size() / kBlock;
  if (infinities(numbers.subspan(blocks * kBlock)) != 0) return true;
  std::atomic<bool> found = false;
  ParallelFor(static_cast<int64_t>(blocks), 256, [&](int64_t begin, int64_t end) {
    uint32_t any = 0;
    for (int64_t b = begin; b < end; ++b) {
      any |= infinities(numbers.subspan(static_cast<size_t>(b) * kBlock).first<kBlock>());
    }
    if (any != 0) found = true;
  });
  return found;
}

}  // namespace

Status MakeFinite(Graph& graph) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (Node* n : graph.Nodes()) {
    const TensorValue* stated = StatedConstant(*n);
    if (stated == nullptr || stated->dtype != Dtype::kFloat) continue;
    ASSIGN_OR_RETURN(const Tensor value, stated->Materialize());
    if (!HasInfinity(value.flat<float>())) continue;
    ASSIGN_OR_RETURN(Tensor finite, Tensor::Make(Dtype::kFloat, value.shape()));
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      finite.data<float>()[i] = std::clamp(value.data<float>()[i], -kLargest, kLargest);
    }
    n->AttrsToChange().Set("value", finite);
  }
  return OkStatus();
}

}  // namespace smelt
