// The 64-bit hashes of strings that models depend on. All functions are pure.
#ifndef SMELT_BASE_HASH_H_
#define SMELT_BASE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace smelt {

// MurmurHash64A, as StringToHashBucket and string keys of dense tables use it.
uint64_t Hash64(absl::string_view bytes, uint64_t seed = 0xDECAFCAFFE);
uint64_t Hash64Combine(uint64_t a, uint64_t b);

// FarmHash's Fingerprint64: the same on every platform, for good.
uint64_t Fingerprint64(absl::string_view bytes);

// SipHash-2-4 under a key of two words.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::string_view bytes);

}  // namespace smelt

#endif  // SMELT_BASE_HASH_H_
