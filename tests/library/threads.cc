// The part of library.h that needs nothing but oneDNN and teams.
#include <dnnl.h>

#include "smelt/base/parallel.h"
#include "smelt/base/team.h"
#include "tests/library/library.h"

const char* smelt_check_multiply(int threads, int64_t n, const float* a, const float* b,
                                 float* product, int64_t* regions) {
  const int64_t before = smelt::RegionsStarted();
  const smelt::ScopedThreads scoped(threads);
  const dnnl_status_t s = dnnl_sgemm('N', 'N', n, n, n, 1, a, n, b, n, 0, product, n);
  *regions += smelt::RegionsStarted() - before;
  return s == dnnl_success ? nullptr : "dnnl_sgemm failed";
}

int64_t smelt_check_regions() { return smelt::RegionsStarted(); }
