// A hash of large constants that reads a few of their bytes.
#ifndef SMELT_BASE_SAMPLED_HASH_H_
#define SMELT_BASE_SAMPLED_HASH_H_

#include <algorithm>
#include <cstddef>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace smelt {

// Equal bytes have equal hashes; most others differ in their size or in one of three samples. Who
// keeps many under it needs a second hash of all the bytes for those that it does not tell apart.
inline size_t SampledHash(absl::string_view bytes) {
  constexpr size_t kSample = 128;
  return absl::HashOf(bytes.size(), bytes.substr(0, kSample),
                      bytes.substr(bytes.size() / 2, kSample),
                      bytes.substr(bytes.size() - std::min(bytes.size(), kSample)));
}

}  // namespace smelt

#endif  // SMELT_BASE_SAMPLED_HASH_H_
