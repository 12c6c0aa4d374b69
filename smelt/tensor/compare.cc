#include "smelt/tensor/compare.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace smelt {
namespace {

struct Differ {
  const Tolerance& tolerance;
  Comparison& out;
  double range = 0;  // of the wanted tensor
  int64_t first = -1;
  int64_t count = 0;

  void Note(int64_t i, bool same) {
    if (same) return;
    ++count;
    if (first < 0) first = i;
  }

  bool Close(double want, double got) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
    if (std::isinf(want) || std::isinf(got)) return want == got;
    const double diff = std::abs(got - want);
    out.max_wanted = std::max(out.max_wanted, std::abs(want));
    out.max_abs = std::max(out.max_abs, diff);
    if (want != 0) out.max_rel = std::max(out.max_rel, diff / std::abs(want));
    return diff <= tolerance.atol + tolerance.rtol * std::abs(want) + tolerance.range_tol * range;
  }
};

template <typename T>
double RangeOf(const T* values, int64_t n) {
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < n; ++i) {
    double v;
    if constexpr (sizeof(T) == 2) {
      v = static_cast<double>(static_cast<float>(values[i]));
    } else {
      v = static_cast<double>(values[i]);
    }
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  return low > high ? 0 : std::max({high - low, std::abs(high), std::abs(low)});
}

double RangeOf(const Tensor& t) {
  const int64_t n = t.num_elements();
  switch (t.dtype()) {
    case Dtype::kFloat:
      return RangeOf(t.data<float>(), n);
    case Dtype::kDouble:
      return RangeOf(t.data<double>(), n);
    case Dtype::kHalf:
      return RangeOf(t.data<Half>(), n);
    case Dtype::kBfloat16:
      return RangeOf(t.data<Bfloat16>(), n);
    case Dtype::kComplex64:
      return RangeOf(static_cast<const float*>(t.raw()), 2 * n);
    case Dtype::kComplex128:
      return RangeOf(static_cast<const double*>(t.raw()), 2 * n);
    default:
      return 0;
  }
}

template <typename T>
void CompareFloats(const Tensor& want, const Tensor& got, Differ& d) {
  auto a = want.flat<T>(), b = got.flat<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    d.Note(static_cast<int64_t>(i), d.Close(static_cast<double>(static_cast<float>(a[i])),
                                            static_cast<double>(static_cast<float>(b[i]))));
  }
}

template <typename T>
void CompareReals(const T* a, const T* b, int64_t n, int64_t per, Differ& d) {
  for (int64_t i = 0; i < n; ++i) {
    d.Note(i / per, d.Close(static_cast<double>(a[i]), static_cast<double>(b[i])));
  }
}

template <typename T>
void CompareExact(const Tensor& want, const Tensor& got, Differ& d) {
  auto a = want.flat<T>(), b = got.flat<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    if constexpr (!std::is_same_v<T, std::string> && !std::is_same_v<T, bool>) {
      if (a[i] != b[i]) d.Close(static_cast<double>(a[i]), static_cast<double>(b[i]));
    }
    d.Note(static_cast<int64_t>(i), a[i] == b[i]);
  }
}

}  // namespace

Comparison Compare(const Tensor& want, const Tensor& got, const Tolerance& tolerance) {
  Comparison out;
  if (want.dtype() != got.dtype() || !(want.shape() == got.shape())) {
    out.why = absl::StrCat("is ", DtypeName(got.dtype()), got.shape().ToString(), ", wanted ",
                           DtypeName(want.dtype()), want.shape().ToString());
    return out;
  }
  Differ d{tolerance, out, RangeOf(want)};
  const int64_t n = want.num_elements();
  switch (want.dtype()) {
    case Dtype::kFloat:
      CompareReals(want.data<float>(), got.data<float>(), n, 1, d);
      break;
    case Dtype::kDouble:
      CompareReals(want.data<double>(), got.data<double>(), n, 1, d);
      break;
    case Dtype::kHalf:
      CompareFloats<Half>(want, got, d);
      break;
    case Dtype::kBfloat16:
      CompareFloats<Bfloat16>(want, got, d);
      break;
    case Dtype::kComplex64:
      CompareReals(static_cast<const float*>(want.raw()), static_cast<const float*>(got.raw()),
                   2 * n, 2, d);
      break;
    case Dtype::kComplex128:
      CompareReals(static_cast<const double*>(want.raw()), static_cast<const double*>(got.raw()),
                   2 * n, 2, d);
      break;
    case Dtype::kString:
      CompareExact<std::string>(want, got, d);
      break;
    case Dtype::kInt8:
      CompareExact<int8_t>(want, got, d);
      break;
    case Dtype::kInt16:
      CompareExact<int16_t>(want, got, d);
      break;
    case Dtype::kInt32:
      CompareExact<int32_t>(want, got, d);
      break;
    case Dtype::kInt64:
      CompareExact<int64_t>(want, got, d);
      break;
    case Dtype::kUint8:
      CompareExact<uint8_t>(want, got, d);
      break;
    case Dtype::kUint16:
      CompareExact<uint16_t>(want, got, d);
      break;
    case Dtype::kUint32:
      CompareExact<uint32_t>(want, got, d);
      break;
    case Dtype::kUint64:
      CompareExact<uint64_t>(want, got, d);
      break;
    case Dtype::kBool:
      CompareExact<bool>(want, got, d);
      break;
    default:
      d.Note(0, want.Identical(got));
  }
  out.equal = d.count == 0;
  if (d.range > 0) out.max_range = out.max_abs / d.range;
  if (!out.equal) {
    out.why = absl::StrCat(d.count, " of ", n, " elements differ, the first at ", d.first,
                           ": max abs ", out.max_abs, ", max rel ", out.max_rel);
  }
  return out;
}

}  // namespace smelt
