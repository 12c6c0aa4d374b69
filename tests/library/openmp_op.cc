// A library of ops that uses OpenMP: loads only if its regions are right.
#include <cstdio>

#include "smelt/kernels/custom/smelt_op.h"
#include "tests/library/openmp.h"

extern "C" __attribute__((visibility("default"))) int32_t smelt_register_ops(const smelt_host*,
                                                                             smelt_registry*) {
  const char* why = RunOpenMp(5);
  if (why != nullptr) std::fprintf(stderr, "OpenMP in an op library: %s\n", why);
  return why == nullptr ? SMELT_OK : SMELT_INTERNAL;
}
