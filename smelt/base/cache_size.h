// How large the processor's caches are.
#ifndef SMELT_BASE_CACHE_SIZE_H_
#define SMELT_BASE_CACHE_SIZE_H_

#include <cstdint>

namespace smelt {

// Bytes of the cache that a core has for itself; `unknown` where the system does not tell. Asked
// once. Any thread.
int64_t NearCacheBytes(int64_t unknown);
// Bytes of the last cache before memory, which cores may share.
int64_t FarCacheBytes(int64_t unknown);

}  // namespace smelt

#endif  // SMELT_BASE_CACHE_SIZE_H_
