// A hash of large constants that reads a few of their bytes, and what is kept by them.
#ifndef SMELT_BASE_SAMPLED_HASH_H_
#define SMELT_BASE_SAMPLED_HASH_H_

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace smelt {

// Equal bytes have equal hashes; most others differ in their size or in one of three samples.
inline size_t SampledHash(absl::string_view bytes) {
  constexpr size_t kSample = 128;
  return absl::HashOf(bytes.size(), bytes.substr(0, kSample),
                      bytes.substr(bytes.size() / 2, kSample),
                      bytes.substr(bytes.size() - std::min(bytes.size(), kSample)));
}

// One value for all equal bytes. All of them are hashed only where samples do not tell them apart.
template <typename Value>
class ByBytes {
 public:
  // Empty at first; until the next call. The bytes outlive this.
  Value& operator[](absl::string_view bytes) {
    const auto [first, added] = firsts_.try_emplace(SampledHash(bytes), bytes, Value());
    if (added || first->second.first == bytes) return first->second.second;
    return others_[bytes];
  }

 private:
  absl::flat_hash_map<size_t, std::pair<absl::string_view, Value>> firsts_;  // by SampledHash
  absl::flat_hash_map<absl::string_view, Value> others_;
};

}  // namespace smelt

#endif  // SMELT_BASE_SAMPLED_HASH_H_
