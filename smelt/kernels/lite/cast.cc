// CAST of real numbers, and of the real parts of complex ones, to integers: what the type does not
// hold becomes its nearest number, and what is no number its largest, where TensorFlow leaves that
// to the processor.
#include <cmath>
#include <complex>
#include <limits>

#include "absl/strings/str_cat.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/float16.h"

namespace smelt::lite {
namespace {

template <typename To, typename From>
To NearestOf(From x) {
  constexpr To kLow = std::numeric_limits<To>::lowest(), kHigh = std::numeric_limits<To>::max();
  // The first number beyond kHigh, which From holds exactly.
  const From beyond = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  if (!(x < beyond)) return kHigh;
  return x <= static_cast<From>(kLow) ? kLow : static_cast<To>(x);
}

template <typename F>
bool VisitInteger(Dtype type, F&& fn) {
  switch (type) {
    case Dtype::kInt8:
      fn.template operator()<int8_t>();
      return true;
    case Dtype::kUint8:
      fn.template operator()<uint8_t>();
      return true;
    case Dtype::kInt16:
      fn.template operator()<int16_t>();
      return true;
    case Dtype::kUint16:
      fn.template operator()<uint16_t>();
      return true;
    case Dtype::kInt32:
      fn.template operator()<int32_t>();
      return true;
    case Dtype::kUint32:
      fn.template operator()<uint32_t>();
      return true;
    case Dtype::kInt64:
      fn.template operator()<int64_t>();
      return true;
    case Dtype::kUint64:
      fn.template operator()<uint64_t>();
      return true;
    default:
      return false;
  }
}

Status RunSaturatingCast(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  VisitInteger(out->dtype(), [&]<typename To>() {
    To* y = out->data<To>();
    const auto each = [&](auto at) {
      ParallelFor(in.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = NearestOf<To>(at(i));
      });
    };
    if (in.dtype() == Dtype::kDouble) {
      each([x = in.data<double>()](int64_t i) { return x[i]; });
    } else if (in.dtype() == Dtype::kHalf) {
      each([x = in.data<Half>()](int64_t i) { return static_cast<float>(x[i]); });
    } else if (in.dtype() == Dtype::kComplex64) {
      each([x = in.data<std::complex<float>>()](int64_t i) { return x[i].real(); });
    } else if (in.dtype() == Dtype::kComplex128) {
      each([x = in.data<std::complex<double>>()](int64_t i) { return x[i].real(); });
    } else {
      each([x = in.data<float>()](int64_t i) { return x[i]; });
    }
  });
  return OkStatus();
}

std::string DeclineSaturatingCast(const Node& node) {
  if (node.num_inputs() != 1) return absl::StrCat("it has ", node.num_inputs(), " inputs");
  const Dtype from = node.input_types[0];
  if (from != Dtype::kFloat && from != Dtype::kDouble && from != Dtype::kHalf &&
      from != Dtype::kComplex64 && from != Dtype::kComplex128) {
    return absl::StrCat("its input is ", DtypeName(from));
  }
  return VisitInteger(node.output_types[0], []<typename T>() {})
             ? ""
             : absl::StrCat("its output is ", DtypeName(node.output_types[0]));
}

constexpr Kernel kLiteCastTable[] = {
    {"tfl.cast", "", kAnyType, "lite:saturating_cast", RunSaturatingCast, nullptr,
     DeclineSaturatingCast},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteCastKernels = lite::kLiteCastTable;
}  // namespace smelt
