#include "smelt/kernels/isa/exact_int8.h"

namespace smelt {

// The loops of NEON are as the compiler makes them: products of int16 that widen.
void FillOwnExactInt8(ExactInt8Loops&) {}

}  // namespace smelt
