#include "smelt/optimize/precision/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace smelt {

bool ProcessorHasHalf() {
#if defined(__x86_64__)
  constexpr unsigned kAmxHalf = 1u << 21, kConvertsWithoutExceptions = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return false;
  return (a & kAmxHalf) != 0 || (d & kConvertsWithoutExceptions) != 0;
#else
  return false;
#endif
}

}  // namespace smelt
