// Distributions of Philox words, bit for bit TensorFlow's on a CPU.
#include <cmath>

#include "smelt/base/parallel.h"
#include "smelt/kernels/random/random.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

// Two normals of two uniforms.
void BoxMuller(uint32_t x0, uint32_t x1, float* f0, float* f1) {
  const float u1 = std::max(PhiloxFloat(x0), 1.0e-7f);
  const auto v1 = static_cast<float>(2.0 * M_PI * static_cast<double>(PhiloxFloat(x1)));
  const float u2 = std::sqrt(-2.0f * std::log(u1));
  *f0 = std::sin(v1) * u2;
  *f1 = std::cos(v1) * u2;
}

void BoxMuller(const uint32_t* x, double* d0, double* d1) {
  const double u1 = std::max(PhiloxDouble(x[0], x[1]), 1.0e-7);
  const double v1 = 2 * M_PI * PhiloxDouble(x[2], x[3]);
  const double u2 = std::sqrt(-2.0 * std::log(u1));
  *d0 = std::sin(v1) * u2;
  *d1 = std::cos(v1) * u2;
}

// A distribution turns one block into kCount values.
template <typename T>
struct UnitDist {
  static constexpr int kCount = 4;
  void operator()(const Philox::Block& x, T* out) const {
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, Half>) {
        Half h;
        h.bits = static_cast<uint16_t>(uint16_t{15} << 10 | (x[static_cast<size_t>(i)] & 0x3ff));
        out[i] = Half(static_cast<float>(h) - 1.0f);
      } else if constexpr (std::is_same_v<T, Bfloat16>) {
        Bfloat16 b;
        b.bits = static_cast<uint16_t>(uint16_t{127} << 7 | (x[static_cast<size_t>(i)] & 0x7f));
        out[i] = Bfloat16(static_cast<float>(b) - 1.0f);
      } else {
        out[i] = PhiloxFloat(x[static_cast<size_t>(i)]);
      }
    }
  }
};
template <>
struct UnitDist<double> {
  static constexpr int kCount = 2;
  void operator()(const Philox::Block& x, double* out) const {
    out[0] = PhiloxDouble(x[0], x[1]);
    out[1] = PhiloxDouble(x[2], x[3]);
  }
};

template <typename T>
struct NormalDist {
  static constexpr int kCount = 4;
  void operator()(const Philox::Block& x, T* out) const {
    float f[4];
    BoxMuller(x[0], x[1], &f[0], &f[1]);
    BoxMuller(x[2], x[3], &f[2], &f[3]);
    for (int i = 0; i < 4; ++i) out[i] = T(f[i]);
  }
};
template <>
struct NormalDist<double> {
  static constexpr int kCount = 2;
  void operator()(const Philox::Block& x, double* out) const {
    BoxMuller(x.data(), &out[0], &out[1]);
  }
};

// U is the unsigned type of the integers: sums wrap.
template <typename U>
struct IntDist {
  static constexpr int kCount = 16 / sizeof(U);
  U low;
  U range;  // 0: every value
  void operator()(const Philox::Block& x, U* out) const {
    for (size_t i = 0; i < kCount; ++i) {
      U v;
      if constexpr (sizeof(U) == 8) {
        v = x[2 * i] | uint64_t{x[2 * i + 1]} << 32;
      } else {
        v = x[i];
      }
      out[i] = range == 0 ? v : low + v % range;
    }
  }
};

template <typename T, typename D>
void FillBlocks(const Philox& base, const D& dist, T* out, int64_t n) {
  const int64_t blocks = (n + D::kCount - 1) / D::kCount;
  ParallelFor(blocks, 2048, [&](int64_t begin, int64_t end) {
    Philox gen = base;
    gen.Skip(static_cast<uint64_t>(begin));
    for (int64_t b = begin; b < end; ++b) {
      if ((b + 1) * D::kCount <= n) {
        dist(gen(), out + b * D::kCount);
        continue;
      }
      T last[D::kCount];
      dist(gen(), last);
      std::copy_n(last, n - b * D::kCount, out + b * D::kCount);
    }
  });
}

// Draws normals until they lie within the bounds. Each group of results has a stretch of the stream
// of its own, so that groups can be filled in parallel.
template <typename T>
void FillTruncated(const Philox& base, T* out, int64_t n) {
  constexpr bool kDouble = std::is_same_v<T, double>;
  constexpr int kCount = kDouble ? 2 : 4;
  constexpr uint64_t kBlocksPerGroup = kCount * 256 / Philox::kWords;
  const int64_t groups = (n + kCount - 1) / kCount;
  ParallelFor(groups, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Philox gen = base;
      gen.Skip(static_cast<uint64_t>(g) * kBlocksPerGroup);
      PhiloxWords words(gen);
      const int64_t stop = std::min(n, (g + 1) * kCount);
      for (int64_t i = g * kCount; i < stop;) {
        std::conditional_t<kDouble, double, float> f[2];
        if constexpr (kDouble) {
          uint32_t x[4];
          for (uint32_t& w : x) w = words();
          BoxMuller(x, &f[0], &f[1]);
        } else {
          const uint32_t x0 = words(), x1 = words();
          BoxMuller(x0, x1, &f[0], &f[1]);
        }
        for (auto v : f) {
          if (std::abs(v) < 2 && i < stop) out[i++] = T(v);
        }
      }
    }
  });
}

}  // namespace

void PhiloxNormals(const Philox::Block& x, double* out) { BoxMuller(x.data(), &out[0], &out[1]); }

template <typename T>
void BlockUniforms(const Philox::Block& x, T* out) {
  UnitDist<T>()(x, out);
}
template <typename T>
void BlockNormals(const Philox::Block& x, T* out) {
  NormalDist<T>()(x, out);
}
template void BlockUniforms(const Philox::Block& x, Half* out);
template void BlockUniforms(const Philox::Block& x, float* out);
template void BlockUniforms(const Philox::Block& x, double* out);
template void BlockNormals(const Philox::Block& x, Half* out);
template void BlockNormals(const Philox::Block& x, float* out);
template void BlockNormals(const Philox::Block& x, double* out);

void FillUniform(const Philox& gen, Tensor* out) {
  const int64_t n = out->num_elements();
  switch (out->dtype()) {
    case Dtype::kHalf:
      return FillBlocks(gen, UnitDist<Half>(), out->data<Half>(), n);
    case Dtype::kBfloat16:
      return FillBlocks(gen, UnitDist<Bfloat16>(), out->data<Bfloat16>(), n);
    case Dtype::kFloat:
      return FillBlocks(gen, UnitDist<float>(), out->data<float>(), n);
    default:
      return FillBlocks(gen, UnitDist<double>(), out->data<double>(), n);
  }
}

void FillNormal(const Philox& gen, Tensor* out) {
  const int64_t n = out->num_elements();
  switch (out->dtype()) {
    case Dtype::kHalf:
      return FillBlocks(gen, NormalDist<Half>(), out->data<Half>(), n);
    case Dtype::kBfloat16:
      return FillBlocks(gen, NormalDist<Bfloat16>(), out->data<Bfloat16>(), n);
    case Dtype::kFloat:
      return FillBlocks(gen, NormalDist<float>(), out->data<float>(), n);
    default:
      return FillBlocks(gen, NormalDist<double>(), out->data<double>(), n);
  }
}

void FillTruncatedNormal(const Philox& gen, Tensor* out) {
  const int64_t n = out->num_elements();
  switch (out->dtype()) {
    case Dtype::kHalf:
      return FillTruncated(gen, out->data<Half>(), n);
    case Dtype::kBfloat16:
      return FillTruncated(gen, out->data<Bfloat16>(), n);
    case Dtype::kFloat:
      return FillTruncated(gen, out->data<float>(), n);
    default:
      return FillTruncated(gen, out->data<double>(), n);
  }
}

namespace {

Status CheckUniformScalars(const Tensor& low, const Tensor& high) {
  if (low.rank() != 0) {
    return InvalidArgument("minval must be 0-D, got shape ", low.shape().ToString());
  }
  if (high.rank() != 0) {
    return InvalidArgument("maxval must be 0-D, got shape ", high.shape().ToString());
  }
  return OkStatus();
}

}  // namespace

Status CheckUniformRange(const Tensor& low, const Tensor& high) {
  RETURN_IF_ERROR(CheckUniformScalars(low, high));
  Status status;
  VisitTypes(CppTypes<int32_t, int64_t, uint32_t, uint64_t>(), low.dtype(), [&]<typename T>() {
    const T lo = low.scalar<T>(), hi = high.scalar<T>();
    if (lo >= hi) status = InvalidArgument("Need minval < maxval, got ", lo, " >= ", hi);
  });
  return status;
}

Status FillUniformInt(const Philox& gen, const Tensor& low, const Tensor& high, Tensor* out) {
  RETURN_IF_ERROR(CheckUniformScalars(low, high));
  if (out->num_elements() == 0) return OkStatus();
  const auto fill = [&]<typename T, typename U>(T lo, T hi, U* to) -> Status {
    if (lo >= hi) return InvalidArgument("Need minval < maxval, got ", lo, " >= ", hi);
    const U range = static_cast<U>(hi) - static_cast<U>(lo);
    FillBlocks(gen, IntDist<U>{static_cast<U>(lo), range}, to, out->num_elements());
    return OkStatus();
  };
  switch (out->dtype()) {
    case Dtype::kInt32:
      return fill(low.scalar<int32_t>(), high.scalar<int32_t>(),
                  static_cast<uint32_t*>(out->raw()));
    case Dtype::kUint32:
      return fill(low.scalar<uint32_t>(), high.scalar<uint32_t>(), out->data<uint32_t>());
    case Dtype::kUint64:
      return fill(low.scalar<uint64_t>(), high.scalar<uint64_t>(), out->data<uint64_t>());
    default:
      return fill(low.scalar<int64_t>(), high.scalar<int64_t>(),
                  static_cast<uint64_t*>(out->raw()));
  }
}

void FillFullInt(const Philox& gen, Tensor* out) {
  const int64_t n = out->num_elements();
  if (DtypeSize(out->dtype()) == 4) {
    FillBlocks(gen, IntDist<uint32_t>{0, 0}, static_cast<uint32_t*>(out->raw()), n);
  } else {
    FillBlocks(gen, IntDist<uint64_t>{0, 0}, static_cast<uint64_t*>(out->raw()), n);
  }
}

}  // namespace smelt
