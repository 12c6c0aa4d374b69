// Where: coordinates of the elements that are not zero.
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

// Bits that make a value non-zero: all but the signs of floating-point numbers.
uint64_t WhereMask(Dtype dtype) {
  switch (dtype) {
    case Dtype::kHalf:
    case Dtype::kBfloat16:
      return 0x7fff;
    case Dtype::kFloat:
      return 0x7fffffff;
    case Dtype::kComplex64:
      return 0x7fffffff7fffffff;
    case Dtype::kDouble:
    case Dtype::kComplex128:
      return 0x7fffffffffffffff;
    default:
      return ~uint64_t{0};
  }
}

template <typename T>
bool IsSet(const T& value, uint64_t mask) {
  if constexpr (std::is_same_v<T, Word16>) {
    return ((value.low | value.high) & mask) != 0;
  } else {
    return (value & static_cast<T>(mask)) != 0;
  }
}

template <typename T>
Status WhereSet(OpContext& ctx, const T* values) {
  const Tensor& input = ctx.input(0);
  const int64_t n = input.num_elements();
  const int rank = input.rank();
  const uint64_t mask = WhereMask(input.dtype());
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) found += IsSet(values[i], mask) ? 1 : 0;
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({found, rank})));
  if (found == 0) return OkStatus();
  int64_t* to = out->data<int64_t>();
  const int64_t columns = input.shape().back();
  const int64_t rows = n / columns;
  Dims at(rank - 1, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (!IsSet(values[r * columns + c], mask)) continue;
      for (int d = 0; d + 1 < rank; ++d) *to++ = at[d];
      *to++ = c;
    }
    for (int d = rank - 1; d-- > 0;) {
      if (++at[d] < input.dim(d)) break;
      at[d] = 0;
    }
  }
  return OkStatus();
}

Status RunWhere(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (!IsPod(input.dtype())) {
    return InvalidArgument("Where of type ", DtypeName(input.dtype()));
  }
  if (input.dtype() == Dtype::kHalf) {
    return Unimplemented("No WhereOp available for float16/half type on CPU; dying in CPU WhereOp ",
                         "to avoid silently creating costly copies from device.");
  }
  if (input.rank() == 0 || input.rank() > 8) {
    return InvalidArgument("WhereOp : Unhandled input dimensions: ", input.rank());
  }
  Status status = OkStatus();
  VisitMovable(input.dtype(), [&]<typename T>() {
    if constexpr (std::is_trivially_copyable_v<T>) {
      status = WhereSet(ctx, static_cast<const T*>(input.raw()));
    }
  });
  return status;
}

constexpr Kernel kWhereTable[] = {
    {"Where", "", kAnyType, "movement:where", RunWhere},
};

}  // namespace

extern constinit const std::span<const Kernel> kWhereKernels = kWhereTable;

}  // namespace smelt
