#include "smelt/cli/peaks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "smelt/base/team.h"
#include "smelt/kernels/isa/peak.h"
#include "smelt/tensor/tensor.h"

namespace smelt {
namespace {

const absl::Duration kPeakTime = absl::Milliseconds(60);
constexpr int64_t kMostRead = int64_t{256} << 20;

int64_t CacheBytes(int name, int64_t otherwise) {
  const int64_t size = sysconf(name);
  return size > 0 ? size : otherwise;
}

// 10^9 a second, the best of as many runs as fit into the time, after one that does not count:
// others use the machine too. `run` answers how much it did.
double BestRate(absl::FunctionRef<double()> run) {
  run();
  double best = 0;
  const absl::Time end = absl::Now() + kPeakTime;
  do {
    const absl::Time start = absl::Now();
    const double done = run();
    best = std::max(best, done / std::max(1.0, absl::ToDoubleNanoseconds(absl::Now() - start)));
  } while (absl::Now() < end);
  return best;
}

double PeakOf(PeakOp op) {
  if (RunPeak(op, 1) == 0) return 0;
  return BestRate([&] {
    std::atomic<int64_t> done{0};
    RunTeam(Threads(), [&] { done += RunPeak(op, 40'000); });
    return static_cast<double>(done.load());
  });
}

// Every thread reads its part of the bytes, until so many have been read that starting the threads
// takes no time beside.
double PeakReading(const Tensor& bytes, int64_t all) {
  const int64_t part = all / Threads() / 512 * 512;
  const int64_t times = std::max<int64_t>(1, (int64_t{16} << 20) / std::max<int64_t>(part, 1));
  std::atomic<uint64_t> seen{0};
  return BestRate([&] {
    RunTeam(Threads(), [&] {
      const char* own = static_cast<const char*>(bytes.raw()) + part * TeamIndex();
      for (int64_t i = 0; i < times; ++i) seen |= ReadAll(own, part);
    });
    return static_cast<double>(part * times * Threads());
  });
}

}  // namespace

StatusOr<Peaks> MeasurePeaks() {
  Peaks p;
  p.float32 = PeakOf(PeakOp::kFloat);
  p.int8 = PeakOf(PeakOp::kInt8);
  p.bfloat16 = PeakOf(PeakOp::kBfloat16);
  const int64_t threads = Threads();
  p.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, int64_t{1} << 20) * threads;
  p.l3_bytes = std::max(CacheBytes(_SC_LEVEL3_CACHE_SIZE, int64_t{8} << 20), p.l2_bytes);
  const int64_t beyond = std::min(kMostRead, 4 * p.l3_bytes);
  ASSIGN_OR_RETURN(Tensor bytes, Tensor::Make(Dtype::kUint8, Shape{beyond}));
  // Pages are there once they are written.
  std::memset(bytes.raw(), 1, bytes.bytes());
  p.l2 = PeakReading(bytes, p.l2_bytes / 2);
  // A part that is ours even where others use the cache, too.
  p.l3 = PeakReading(bytes, std::min(p.l3_bytes / 2, 4 * p.l2_bytes));
  p.memory = PeakReading(bytes, beyond);
  return p;
}

}  // namespace smelt
