#include "smelt/base/cache_size.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace smelt {
namespace {

// Of the last cache that the first core reaches. sysconf adds up those of a whole socket, where
// each core uses one of them.
int64_t FarCacheOfOneCore() {
  const int64_t of_socket = sysconf(_SC_LEVEL3_CACHE_SIZE);
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kilobytes = 0;
  char unit = 0;
  if (!(file >> kilobytes >> unit) || unit != 'K' || kilobytes <= 0) return of_socket;
  return of_socket > 0 ? std::min(of_socket, kilobytes << 10) : kilobytes << 10;
}

}  // namespace

int64_t NearCacheBytes(int64_t unknown) {
  static const int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return told > 0 ? told : unknown;
}

int64_t FarCacheBytes(int64_t unknown) {
  static const int64_t told = FarCacheOfOneCore();
  return told > 0 ? told : unknown;
}

}  // namespace smelt
