#include "smelt/kernels/all.h"

#include <vector>

namespace smelt {

// One span per family, defined in the family's file. Families whose rows should be tried first
// stand first.
#define SMELT_FAMILY(name) extern const std::span<const Kernel> name;
#include "smelt/kernels/families.inc"
#undef SMELT_FAMILY

std::span<const std::span<const Kernel>> AllKernelFamilies() {
  static const auto* all = new std::vector<std::span<const Kernel>>{
#define SMELT_FAMILY(name) name,
#include "smelt/kernels/families.inc"
#undef SMELT_FAMILY
  };
  return *all;
}

}  // namespace smelt
