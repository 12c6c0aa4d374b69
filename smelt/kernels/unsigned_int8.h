// int8 numbers stored as uint8, each 128 more: what processors multiply without shifting it first.
// Only values between two bound kernels are stored so (compile/unsigned_int8.h).
#ifndef SMELT_KERNELS_UNSIGNED_INT8_H_
#define SMELT_KERNELS_UNSIGNED_INT8_H_

#include "smelt/kernels/bound_kernel.h"

namespace smelt {

// What a kernel's state is as well, if such a kernel can be bound to them.
class UnsignedInt8 {
 public:
  virtual ~UnsignedInt8() = default;
  // Can the kernel be bound where int8 results, and int8 inputs that are not constant, are of type
  // uint8 in the context? May be wrong where that takes long to find out: Bind declines then.
  virtual bool MayBeUnsigned(const BindContext& context) const = 0;
  // Must the results be stored as the inputs are?
  virtual bool passes_on() const { return false; }
};

}  // namespace smelt

#endif  // SMELT_KERNELS_UNSIGNED_INT8_H_
