#include "smelt/optimize/rewrite/number_tensors.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

using UniformTypes = decltype(NumberTypes() + CppTypes<bool>());

template <typename T>
std::optional<double> AsNumber(const T& v) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return v.imag() == 0 ? std::optional<double>(v.real()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return static_cast<float>(v);
  } else {
    return static_cast<double>(v);
  }
}

template <typename T>
T OfNumber(double value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

std::optional<double> UniformValue(const TensorValue& t) {
  const int64_t elements = t.num_elements();
  if (elements <= 0 || !t.problem.empty()) return std::nullopt;
  // Without any value all are zero.
  if (!t.values.valid() || t.values.num_elements() == 0) {
    return IsPod(t.dtype) ? std::optional<double>(0) : std::nullopt;
  }
  std::optional<double> number;
  VisitTypes(UniformTypes(), t.values.dtype(), [&]<typename T>() {
    const auto values = t.values.flat<T>();
    number = AsNumber(values[0]);
    const bool same =
        number && std::ranges::all_of(values, [&](const T& v) { return AsNumber(v) == number; });
    if (!same) number.reset();
  });
  return number;
}

StatusOr<Attr> UniformTensor(Dtype dtype, const Shape& shape, double value) {
  auto tensor = std::make_shared<TensorValue>();
  tensor->dtype = dtype;
  tensor->shape = shape;
  bool fits = true;
  const bool known = VisitTypes(UniformTypes(), dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      // The largest of 64 bits is no double: the next one above is not taken.
      fits = value >= static_cast<double>(Limits::lowest()) &&
             (sizeof(T) < 8 ? value <= static_cast<double>(Limits::max())
                            : value < static_cast<double>(Limits::max()));
    }
    if (fits && shape.num_elements() > 0) {
      tensor->values = Tensor::Vector<T>({OfNumber<T>(value)});
    }
  });
  if (!fits) return InvalidArgument(DtypeName(dtype), " does not have ", value);
  if (!known) return InvalidArgument("no number is of type ", DtypeName(dtype));
  return Attr(std::shared_ptr<const TensorValue>(std::move(tensor)));
}

StatusOr<Tensor> FilledTensor(Dtype dtype, const Shape& shape, double value) {
  ASSIGN_OR_RETURN(const Attr uniform, UniformTensor(dtype, shape, value));
  return (*uniform.get<std::shared_ptr<const TensorValue>>())->Materialize();
}

}  // namespace smelt
