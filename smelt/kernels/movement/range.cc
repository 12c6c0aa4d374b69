// Values from a rule: Range, LinSpace, OneHot.
#include <cmath>
#include <limits>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/numbers.h"

namespace smelt {
namespace {

template <typename T>
StatusOr<int64_t> RangeLength(T start_value, T limit_value, T delta_value) {
  const auto start = static_cast<Wide<T>>(start_value), limit = static_cast<Wide<T>>(limit_value);
  const auto delta = static_cast<Wide<T>>(delta_value);
  if (delta == 0) return InvalidArgument("Requires delta != 0: ", delta);
  if (delta > 0) {
    if (!(start <= limit)) {
      return InvalidArgument("Requires start <= limit when delta > 0: ", start, "/", limit);
    }
  } else if (!(start >= limit)) {
    return InvalidArgument("Requires start >= limit when delta < 0: ", start, "/", limit);
  }
  if constexpr (std::is_integral_v<T>) {
    // In unsigned arithmetic: limit - start may exceed the type.
    const auto span = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const auto step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t n = span / step + (span % step != 0 ? 1 : 0);
    if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ",
                             std::numeric_limits<int64_t>::max());
    }
    return static_cast<int64_t>(n);
  } else {
    // Rounded to T at each step, as the 16-bit types compute.
    const auto span = static_cast<Wide<T>>(T(limit - start));
    const double n =
        std::ceil(std::abs(static_cast<double>(static_cast<Wide<T>>(T(span / delta)))));
    if (!(n < 9223372036854775808.0)) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ",
                             std::numeric_limits<int64_t>::max());
    }
    return static_cast<int64_t>(n);
  }
}

template <typename T>
Status RangeOf(OpContext& ctx) {
  const T start = ctx.input(0).scalar<T>(), limit = ctx.input(1).scalar<T>();
  const T delta = ctx.input(2).scalar<T>();
  ASSIGN_OR_RETURN(const int64_t n, RangeLength(start, limit, delta));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({n})));
  T* values = out->data<T>();
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < n; ++i) {
      values[i] = static_cast<T>(static_cast<U>(start) + static_cast<U>(i) * static_cast<U>(delta));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      values[i] = AddValues(start, MultiplyValues(T(static_cast<Wide<T>>(i)), delta));
    }
  }
  return OkStatus();
}

Status RunRange(OpContext& ctx) {
  static constexpr absl::string_view kNames[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.num_elements() != 1 || t.rank() > 1) {
      return InvalidArgument(kNames[i], " must be a scalar, not shape ", t.shape().ToString());
    }
  }
  Status status = OkStatus();
  if (!VisitReal(ctx.output_type(0), [&]<typename T>() { status = RangeOf<T>(ctx); })) {
    return Unimplemented("Range of type ", DtypeName(ctx.output_type(0)));
  }
  return status;
}

template <typename T>
void FillLinSpace(T start, T stop, int64_t n, T* out) {
  out[0] = start;
  if (n == 1) return;
  const T step = (stop - start) / static_cast<T>(n - 1);
  for (int64_t i = 1; i + 1 < n; ++i) out[i] = start + step * static_cast<T>(i);
  out[n - 1] = stop;
}

Status RunLinSpace(OpContext& ctx) {
  static constexpr absl::string_view kNames[] = {"start", "stop", "num"};
  for (int i = 0; i < 3; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(kNames[i], " must be a scalar, not shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  const int64_t n = IndexAt(ctx.input(2), 0);
  if (n <= 0) return InvalidArgument("Requires num > 0: ", n);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({n})));
  if (out->dtype() == Dtype::kFloat) {
    FillLinSpace(ctx.input(0).scalar<float>(), ctx.input(1).scalar<float>(), n, out->data<float>());
  } else {
    FillLinSpace(ctx.input(0).scalar<double>(), ctx.input(1).scalar<double>(), n,
                 out->data<double>());
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareOneHot(const Node& node) {
  return ReadIntAttrs(node, {"axis"});
}

Status RunOneHot(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& depth = ctx.input(1);
  const Tensor& on = ctx.input(2);
  const Tensor& off = ctx.input(3);
  const int64_t given = ctx.state<IntAttrs>()[0];
  const int rank = indices.rank() + 1;
  if (given != -1 && (given < 0 || given >= rank)) {
    return InvalidArgument("Expected axis to be -1 or between [0, ", rank,
                           ").  But received: ", given);
  }
  if (depth.rank() != 0) {
    return InvalidArgument("depth must be a scalar, but got: ", depth.shape().ToString());
  }
  if (on.rank() != 0) {
    return InvalidArgument("on_value must be a scalar, but got: ", on.shape().ToString());
  }
  if (off.rank() != 0) {
    return InvalidArgument("off_value must be a scalar, but got: ", off.shape().ToString());
  }
  const int axis = given == -1 ? rank - 1 : static_cast<int>(given);
  const int64_t d = IndexAt(depth, 0);
  if (d < 0) return InvalidArgument("depth must be non-negative, got: ", d);
  int64_t elements = 0;
  if (__builtin_mul_overflow(indices.num_elements(), d, &elements)) {
    return InvalidArgument("OneHot result would have shape ", indices.shape().ToString(), " + [", d,
                           "], which exceeds 2**63 - 1 elements");
  }
  Dims dims(indices.shape().dims().begin(), indices.shape().dims().end());
  dims.insert(dims.begin() + axis, d);
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (elements == 0) return OkStatus();
  FillRun(out->dtype(), out->raw(), off.raw(), elements);
  const int64_t inner = indices.shape().Product(axis, indices.rank());
  VisitMovable(out->dtype(), [&]<typename T>() {
    T* to = static_cast<T*>(out->raw());
    const T& value = *static_cast<const T*>(on.raw());
    for (int64_t i = 0; i < indices.num_elements(); ++i) {
      const int64_t index = IntAt(indices, i);
      if (index >= 0 && index < d) to[(i / inner * d + index) * inner + i % inner] = value;
    }
  });
  return OkStatus();
}

constexpr Kernel kRangeTable[] = {
    {"Range", "Tidx", kRealTypes, "movement:range", RunRange},
    {"LinSpace", "T", kFloatTypes, "movement:linspace", RunLinSpace},
    {"OneHot", "", kAnyType, "movement:one_hot", RunOneHot, PrepareOneHot},
};

}  // namespace

extern constinit const std::span<const Kernel> kRangeKernels = kRangeTable;

}  // namespace smelt
