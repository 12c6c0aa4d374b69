// LowerBound, UpperBound, HistogramFixedWidth, Cross.
#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/base/parallel.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

template <typename T>
struct SearchLess {
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
      return static_cast<float>(a) < static_cast<float>(b);
    } else {
      return a < b;
    }
  }
};

template <bool kUpper, typename T, typename I>
void SearchRows(const T* sorted, const T* values, int64_t rows, int64_t n, int64_t m, I* out) {
  ParallelFor(rows * m, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = sorted + i / m * n;
      const T* at = kUpper ? std::upper_bound(row, row + n, values[i], SearchLess<T>())
                           : std::lower_bound(row, row + n, values[i], SearchLess<T>());
      out[i] = static_cast<I>(at - row);
    }
  });
}

template <bool kUpper, typename T>
Status SearchTyped(const Tensor& sorted, const Tensor& values, Tensor* out) {
  const int64_t rows = sorted.dim(0), n = sorted.dim(1), m = values.dim(1);
  if (out->dtype() == Dtype::kInt32) {
    SearchRows<kUpper>(sorted.data<T>(), values.data<T>(), rows, n, m, out->data<int32_t>());
  } else {
    SearchRows<kUpper>(sorted.data<T>(), values.data<T>(), rows, n, m, out->data<int64_t>());
  }
  return OkStatus();
}

template <bool kUpper>
Status RunSearch(OpContext& ctx) {
  const Tensor& sorted = ctx.input(0);
  const Tensor& values = ctx.input(1);
  if (sorted.rank() != 2) {
    return InvalidArgument("Shape must be rank 2 but is rank ", sorted.rank(),
                           " for `sorted_inputs` argument");
  }
  if (values.rank() != 2) {
    return InvalidArgument("Shape must be rank 2 but is rank ", values.rank(),
                           " for `values` argument");
  }
  if (sorted.dim(0) != values.dim(0)) {
    return InvalidArgument("Leading dim_size of both tensors must match.");
  }
  if (ctx.output_type(0) == Dtype::kInt32 &&
      values.num_elements() >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("values tensor size must less than INT_MAX");
  }
  if (ctx.output_type(0) == Dtype::kInt32 && sorted.dim(1) >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("trailing dim_size must less than INT_MAX for int32 output type, was ",
                           sorted.dim(1));
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, values.shape()));
  if (out->num_elements() == 0) return OkStatus();
  Status status;
  if (VisitTypes(RealTypes(), sorted.dtype(),
                 [&]<typename T>() { status = SearchTyped<kUpper, T>(sorted, values, out); })) {
    return status;
  }
  return Unimplemented(ctx.node().op(), " of ", DtypeName(sorted.dtype()));
}

template <typename T>
Status CountBins(const Tensor& values, const Tensor& range, int64_t nbins,
                 std::vector<int64_t>* counts) {
  const T low = range.data<T>()[0], high = range.data<T>()[1];
  if (!(low < high)) {
    return InvalidArgument("value_range should satisfy value_range[0] < value_range[1], but got '[",
                           low, ", ", high, "]'");
  }
  const double base = static_cast<double>(low);
  // Rounded as TensorFlow does, for values at the edge of two bins.
  const auto bins = static_cast<double>(nbins);
  const double step = static_cast<double>(high) / bins - base / bins;
  const double last = static_cast<double>(nbins - 1);
  for (const T& v : values.flat<T>()) {
    if (v != v) return InvalidArgument("Histogram values must not contain NaN");
    const double bin = (static_cast<double>(std::max(v, low)) - base) / step;
    ++(*counts)[bin > 0 ? static_cast<size_t>(std::min(bin, last)) : 0];
  }
  return OkStatus();
}

Status RunHistogram(OpContext& ctx) {
  const Tensor& values = ctx.input(0);
  const Tensor& range = ctx.input(1);
  const Tensor& nbins_tensor = ctx.input(2);
  if (range.rank() != 1) return InvalidArgument("value_range should be a vector.");
  if (range.num_elements() != 2) {
    return InvalidArgument("value_range should be a vector of 2 elements.");
  }
  if (nbins_tensor.rank() != 0) return InvalidArgument("nbins should be a scalar.");
  const int64_t nbins = IndexAt(nbins_tensor, 0);
  if (nbins <= 0) {
    return InvalidArgument("nbins should be a positive number, but got '", nbins, "'");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({nbins})));
  std::vector<int64_t> counts(static_cast<size_t>(nbins));
  Status status;
  if (!VisitTypes(CppTypes<float, double, int32_t, int64_t>(), values.dtype(),
                  [&]<typename T>() { status = CountBins<T>(values, range, nbins, &counts); })) {
    return Unimplemented("HistogramFixedWidth of ", DtypeName(values.dtype()));
  }
  RETURN_IF_ERROR(status);
  for (int64_t i = 0; i < nbins; ++i) {
    if (out->dtype() == Dtype::kInt32) {
      out->data<int32_t>()[i] = static_cast<int32_t>(counts[i]);
    } else {
      out->data<int64_t>()[i] = counts[i];
    }
  }
  return OkStatus();
}

// In V: float for the 16-bit types, unsigned words for integers, whose products wrap.
template <typename T, typename V>
void CrossRows(const Tensor& a_tensor, const Tensor& b_tensor, Tensor* out) {
  const T* a = a_tensor.data<T>();
  const T* b = b_tensor.data<T>();
  T* o = out->data<T>();
  const int64_t n = out->num_elements();
  for (int64_t i = 0; i < n; i += 3) {
    V u[3], v[3];
    for (int j = 0; j < 3; ++j) {
      u[j] = static_cast<V>(a[i + j]);
      v[j] = static_cast<V>(b[i + j]);
    }
    for (int j = 0; j < 3; ++j) {
      const int k = (j + 1) % 3, l = (j + 2) % 3;
      // Each product and the difference are rounded to T.
      const T left = static_cast<T>(u[k] * v[l]), right = static_cast<T>(u[l] * v[k]);
      o[i + j] = static_cast<T>(static_cast<V>(left) - static_cast<V>(right));
    }
  }
}

Status RunCross(OpContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  if (!(a.shape() == b.shape())) {
    return InvalidArgument("Both inputs must be of same shape: ", a.shape().ToString(), " vs. ",
                           b.shape().ToString());
  }
  if (a.rank() < 1) return InvalidArgument("Input must be at least 1D", a.shape().ToString());
  if (a.shape().back() != 3) {
    return FailedPrecondition("Cross-products are only defined for 3-element vectors.");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, a.shape()));
  switch (a.dtype()) {
    case Dtype::kFloat:
      CrossRows<float, float>(a, b, out);
      break;
    case Dtype::kDouble:
      CrossRows<double, double>(a, b, out);
      break;
    case Dtype::kHalf:
      CrossRows<Half, float>(a, b, out);
      break;
    case Dtype::kBfloat16:
      CrossRows<Bfloat16, float>(a, b, out);
      break;
    case Dtype::kInt8:
      CrossRows<int8_t, uint64_t>(a, b, out);
      break;
    case Dtype::kInt16:
      CrossRows<int16_t, uint64_t>(a, b, out);
      break;
    case Dtype::kInt32:
      CrossRows<int32_t, uint64_t>(a, b, out);
      break;
    case Dtype::kInt64:
      CrossRows<int64_t, uint64_t>(a, b, out);
      break;
    case Dtype::kUint8:
      CrossRows<uint8_t, uint64_t>(a, b, out);
      break;
    case Dtype::kUint16:
      CrossRows<uint16_t, uint64_t>(a, b, out);
      break;
    case Dtype::kUint32:
      CrossRows<uint32_t, uint64_t>(a, b, out);
      break;
    case Dtype::kUint64:
      CrossRows<uint64_t, uint64_t>(a, b, out);
      break;
    default:
      return Unimplemented("Cross of ", DtypeName(a.dtype()));
  }
  return OkStatus();
}

constexpr Kernel kSearchTable[] = {
    {"LowerBound", "T", kRealTypes, "reduce:lower_bound", RunSearch<false>},
    {"UpperBound", "T", kRealTypes, "reduce:upper_bound", RunSearch<true>},
    {"HistogramFixedWidth", "T", kFloatTypes | kIndexTypes, "reduce:histogram", RunHistogram},
    {"Cross", "T", kRealTypes, "reduce:cross", RunCross},
};

}  // namespace

extern constinit const std::span<const Kernel> kSearchKernels = kSearchTable;

}  // namespace smelt
