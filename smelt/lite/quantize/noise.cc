#include "smelt/lite/quantize/noise.h"

#include <cstring>
#include <limits>

namespace smelt {

Status Noise::Add(const Tensor& wanted, const Tensor& got) {
  if (wanted.dtype() != got.dtype() || !(wanted.shape() == got.shape())) {
    return Internal("a quantized graph answers ", DtypeName(got.dtype()), got.shape().ToString(),
                    ", the float one ", DtypeName(wanted.dtype()), wanted.shape().ToString());
  }
  if (wanted.dtype() == Dtype::kFloat) {
    const auto a = wanted.flat<float>(), b = got.flat<float>();
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == -std::numeric_limits<float>::infinity()) continue;  // what a mask hides saturates
      const double x = static_cast<double>(a[i]), d = x - static_cast<double>(b[i]);
      signal += x * x;
      noise += d * d;
    }
    return OkStatus();
  }
  const size_t size = DtypeSize(wanted.dtype());
  const auto* a = static_cast<const char*>(wanted.raw());
  const auto* b = static_cast<const char*>(got.raw());
  const auto count = static_cast<size_t>(wanted.num_elements());
  signal += static_cast<double>(count);
  for (size_t i = 0; i < count && size > 0; ++i) {
    noise += std::memcmp(a + i * size, b + i * size, size) == 0 ? 0 : 1;
  }
  return OkStatus();
}

}  // namespace smelt
