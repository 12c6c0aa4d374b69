// int8 values between kernels that can read and write them as uint8 (kernels/unsigned_int8.h).
#ifndef SMELT_COMPILE_UNSIGNED_INT8_H_
#define SMELT_COMPILE_UNSIGNED_INT8_H_

#include "smelt/compile/plan.h"

namespace smelt {

// Makes the int8 values uint8 that only such kernels read and write. False: there are none.
// REQUIRES: nothing is bound yet.
bool StoreUnsigned(Plan& plan);

// Does an action that is not bound read or write such a value? Then the plan cannot run.
bool NeedsSigned(const Plan& plan);

// The same plan, of which nothing is bound yet.
Plan CopyOfUnbound(const Plan& plan);

}  // namespace smelt

#endif  // SMELT_COMPILE_UNSIGNED_INT8_H_
