#include "smelt/io/unpack_limit.h"

#include <algorithm>
#include <atomic>

namespace smelt {
namespace {

// Models pack to a third of their size at most, graphs alone to a fifteenth: a hundred is far from
// what anybody saves, and a tenth of what deflate can do.
constexpr uint64_t kMaxUnpackRatio = 100;
constexpr uint64_t kUnpackFloor = uint64_t{64} << 20;
constexpr uint64_t kUnpackCeiling = uint64_t{16} << 30;

std::atomic<uint64_t> unpack_limit{0};

}  // namespace

uint64_t UnpackLimit(size_t packed) {
  if (const uint64_t set = unpack_limit; set != 0) return set;
  // Divided, so that nothing overflows.
  if (packed >= kUnpackCeiling / kMaxUnpackRatio) return std::max<uint64_t>(packed, kUnpackCeiling);
  return std::max(packed * kMaxUnpackRatio, kUnpackFloor);
}

void SetUnpackLimit(uint64_t bytes) { unpack_limit = bytes; }

Status CheckUnpacked(absl::string_view what, uint64_t reached, uint64_t limit) {
  if (reached <= limit) return OkStatus();
  return ResourceExhausted(what, " unpacks to ", reached, " bytes or more, and the limit is ",
                           limit, " (--unpack_limit raises it)");
}

}  // namespace smelt
