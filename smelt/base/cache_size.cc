#include "smelt/base/cache_size.h"

#include <unistd.h>

namespace smelt {

int64_t NearCacheBytes(int64_t unknown) {
  static const int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return told > 0 ? told : unknown;
}

int64_t FarCacheBytes(int64_t unknown) {
  static const int64_t told = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return told > 0 ? told : unknown;
}

}  // namespace smelt
