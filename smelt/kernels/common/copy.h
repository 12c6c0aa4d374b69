// Copying elements between dense and strided places, for every element type.
//
// Plain bytes are moved by width (1, 2, 4, 8 or 16), strings, handles and variants as objects.
// Large copies are spread over the calling thread's team (base/parallel.h). Nothing here checks
// bounds: callers have checked shapes. Thread safe.
#ifndef SMELT_KERNELS_COMMON_COPY_H_
#define SMELT_KERNELS_COMMON_COPY_H_

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// One loop: how many turns, and by how many elements each advances in the destination and source.
struct CopyDim {
  int64_t size;
  int64_t dst;
  int64_t src;
};
using CopyDims = absl::InlinedVector<CopyDim, 8>;

// dst[sum(i_d * dims[d].dst)] = src[sum(i_d * dims[d].src)] for all i. The pointers name the
// elements of index 0. Source strides may be negative or zero.
// REQUIRES: distinct places in dst, none of them in src.
void CopyStrided(Dtype dtype, void* dst, const void* src, std::span<const CopyDim> dims);

// CopyStrided with what it works out of `dims` kept. Immutable.
class StridedCopy {
 public:
  StridedCopy(Dtype dtype, std::span<const CopyDim> dims);
  // As CopyStrided.
  void Run(void* dst, const void* src) const;
  // How many elements lie side by side in both, where all of them do; -1: not all do.
  int64_t side_by_side() const;

 private:
  Dtype dtype_;
  bool empty_ = false;
  CopyDims loops_;  // those that turn more than once, joined where two walk as one
};

// n consecutive elements, in the calling thread.
void CopyRun(Dtype dtype, void* dst, const void* src, int64_t n);
// Writes n copies of *value.
void FillRun(Dtype dtype, void* dst, const void* value, int64_t n);
// Writes n zeros, empty strings or handles to nothing, in the calling thread.
void ClearRun(Dtype dtype, void* dst, int64_t n);

// The element `offset` elements after p.
inline void* At(Dtype dtype, void* p, int64_t offset) {
  return static_cast<char*>(p) + offset * static_cast<int64_t>(Tensor::ElementSize(dtype));
}
inline const void* At(Dtype dtype, const void* p, int64_t offset) {
  return static_cast<const char*>(p) + offset * static_cast<int64_t>(Tensor::ElementSize(dtype));
}

// Row-major strides of `shape`, in elements. REQUIRES: shape has elements.
Dims Strides(const Shape& shape);

struct Word16 {
  uint64_t low, high;
};

// fn.operator()<T>() with a T that is copied as elements of dtype are: the object's type, or an
// unsigned type of the same width for plain bytes.
template <typename F>
decltype(auto) VisitMovable(Dtype dtype, F&& fn) {
  if (dtype == Dtype::kString) return fn.template operator()<std::string>();
  if (dtype == Dtype::kResource) return fn.template operator()<ResourceHandle>();
  if (dtype == Dtype::kVariant) return fn.template operator()<Variant>();
  switch (DtypeSize(dtype)) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    case 8:
      return fn.template operator()<uint64_t>();
    default:
      return fn.template operator()<Word16>();
  }
}

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_COPY_H_
