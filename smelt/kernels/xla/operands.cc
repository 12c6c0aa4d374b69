#include "smelt/kernels/xla/operands.h"

#include <algorithm>

#include "smelt/kernels/common/via_float.h"

namespace smelt::xla {
namespace {

constexpr DtypeSet kNarrowInts = Types(Dtype::kInt8, Dtype::kUint8, Dtype::kInt16, Dtype::kUint16);
constexpr DtypeSet kThroughFloat = Types(Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16);

// The largest magnitude of an 8-bit type; 0 for others.
int64_t Magnitude8(Dtype t) { return t == Dtype::kInt8 ? 128 : t == Dtype::kUint8 ? 255 : 0; }

template <typename From, typename To>
void ConvertValues(const Tensor& from, Tensor* to) {
  const From* x = from.data<From>();
  std::transform(x, x + from.num_elements(), to->data<To>(),
                 [](From v) { return static_cast<To>(v); });
}

template <typename From>
bool ConvertFromInt(const Tensor& from, Tensor* to) {
  if (to->dtype() == Dtype::kInt32) return ConvertValues<From, int32_t>(from, to), true;
  if (to->dtype() == Dtype::kFloat) return ConvertValues<From, float>(from, to), true;
  return false;
}

bool ConvertInto(const Tensor& t, Tensor* to) {
  switch (t.dtype()) {
    case Dtype::kInt8:
      return ConvertFromInt<int8_t>(t, to);
    case Dtype::kUint8:
      return ConvertFromInt<uint8_t>(t, to);
    case Dtype::kInt16:
      return ConvertFromInt<int16_t>(t, to);
    case Dtype::kUint16:
      return ConvertFromInt<uint16_t>(t, to);
    case Dtype::kFloat:
      if (to->dtype() == Dtype::kInt32) return ConvertValues<float, int32_t>(t, to), true;
      if (to->dtype() == Dtype::kDouble) return ConvertValues<float, double>(t, to), true;
      return false;
    default:
      return false;
  }
}

}  // namespace

Dtype SumType(Dtype lhs, Dtype rhs, Dtype result, int64_t terms) {
  if (Has(kNarrowInts, lhs) && Has(kNarrowInts, rhs) && result == Dtype::kInt32) {
    const int64_t product = Magnitude8(lhs) * Magnitude8(rhs);
    return product > 0 && terms <= (int64_t{1} << 24) / product ? Dtype::kFloat : Dtype::kInt32;
  }
  if (Has(kThroughFloat, lhs) && Has(kThroughFloat, rhs)) {
    if (Has(kThroughFloat, result)) return Dtype::kFloat;
    return result == Dtype::kDouble && lhs == rhs && lhs == Dtype::kFloat ? result
                                                                          : Dtype::kInvalid;
  }
  return lhs == rhs && lhs == result && Has(kNumberTypes, lhs) ? lhs : Dtype::kInvalid;
}

StatusOr<Tensor> ConvertOperand(const Tensor& t, Dtype to, Allocator* allocator) {
  if (t.dtype() == to) return t;
  if (to == Dtype::kFloat && Has(kHalfTypes, t.dtype())) return ToFloat(t, allocator);
  if (t.dtype() == Dtype::kFloat && Has(kHalfTypes, to)) return FromFloat(t, to, allocator);
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(to, t.shape(), allocator));
  if (!ConvertInto(t, &out)) {
    return Unimplemented("products of ", DtypeName(t.dtype()), " summed as ", DtypeName(to));
  }
  return out;
}

}  // namespace smelt::xla
