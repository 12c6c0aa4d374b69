#include "smelt/kernels/onednn/bfloat16_pays.h"

namespace smelt {

// Debian's oneDNN has no bfloat16 kernels for it.
bool Bfloat16Pays() { return false; }

}  // namespace smelt
