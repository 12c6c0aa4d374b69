#include "smelt/kernels/common/via_float.h"

#include "absl/container/inlined_vector.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt {
namespace {

constexpr int64_t kConvertGrain = 32768;

}  // namespace

StatusOr<Tensor> ToFloat(const Tensor& t, Allocator* allocator) {
  if (t.dtype() == Dtype::kFloat) return t;
  if (t.dtype() != Dtype::kHalf && t.dtype() != Dtype::kBfloat16) {
    return Internal("no conversion of ", DtypeName(t.dtype()), " to float here");
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kFloat, t.shape(), allocator));
  const IsaConvertFn convert = t.dtype() == Dtype::kHalf ? Isa().f16_to_f32 : Isa().bf16_to_f32;
  const auto* from = static_cast<const uint16_t*>(t.raw());
  float* to = out.data<float>();
  ParallelFor(t.num_elements(), kConvertGrain,
              [=](int64_t begin, int64_t end) { convert(from + begin, to + begin, end - begin); });
  return out;
}

StatusOr<Tensor> FromFloat(const Tensor& t, Dtype dtype, Allocator* allocator) {
  if (dtype == Dtype::kFloat) return t;
  if (dtype != Dtype::kHalf && dtype != Dtype::kBfloat16) {
    return Internal("no conversion of float to ", DtypeName(dtype), " here");
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(dtype, t.shape(), allocator));
  const IsaConvertFn convert = dtype == Dtype::kHalf ? Isa().f32_to_f16 : Isa().f32_to_bf16;
  const float* from = t.data<float>();
  auto* to = static_cast<uint16_t*>(out.raw());
  ParallelFor(t.num_elements(), kConvertGrain,
              [=](int64_t begin, int64_t end) { convert(from + begin, to + begin, end - begin); });
  return out;
}

Status ViaFloat(std::initializer_list<const Tensor*> operands, Tensor* out, Allocator* allocator,
                absl::FunctionRef<Status(std::span<const Tensor>, Tensor*)> run) {
  absl::InlinedVector<Tensor, 2> wide;
  for (const Tensor* t : operands) {
    ASSIGN_OR_RETURN(Tensor f, ToFloat(*t, allocator));
    wide.push_back(std::move(f));
  }
  ASSIGN_OR_RETURN(Tensor result, Tensor::Make(Dtype::kFloat, out->shape(), allocator));
  RETURN_IF_ERROR(run(wide, &result));
  ASSIGN_OR_RETURN(*out, FromFloat(result, out->dtype(), allocator));
  return OkStatus();
}

}  // namespace smelt
