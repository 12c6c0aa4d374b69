#include "smelt/base/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace smelt {
namespace {

// The ranges that are left of a thread's: numbers [front, back). It takes from the front, others
// take from the back.
class alignas(64) Ranges {
 public:
  void Set(uint32_t front, uint32_t back) { left_.store(Packed(front, back)); }
  // -1: none is left.
  int64_t TakeFront() {
    return Take([](uint32_t& front, uint32_t&) { return front++; });
  }
  int64_t TakeBack() {
    return Take([](uint32_t&, uint32_t& back) { return --back; });
  }

 private:
  static uint64_t Packed(uint32_t front, uint32_t back) { return uint64_t{front} << 32 | back; }
  template <typename F>
  int64_t Take(F take) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    for (;;) {
      auto front = static_cast<uint32_t>(left >> 32), back = static_cast<uint32_t>(left);
      if (front == back) return -1;
      const uint32_t taken = take(front, back);
      if (left_.compare_exchange_weak(left, Packed(front, back), std::memory_order_relaxed)) {
        return taken;
      }
    }
  }
  std::atomic<uint64_t> left_{0};
};

// How many threads a loop of n iterations is worth, of which each takes `grain` or more.
int64_t LoopThreads(int64_t n, int64_t grain) {
  return std::min<int64_t>(InTeam() ? 1 : Threads(), n / grain);
}

// Where range i of `parts` that share [0, n) evenly begins, and the one before it ends.
int64_t Border(int64_t n, int64_t i, int64_t parts) {
  // n may be as large as a tensor has elements: the product with i must not overflow.
  return n / parts * i + n % parts * i / parts;
}

}  // namespace

void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = LoopThreads(n, grain);
  if (parts <= 1) {
    body(0, n);
    return;
  }
  RunTeam(static_cast<int>(parts), [&] {
    for (int64_t i = TeamIndex(); i < parts; i += TeamSize()) {
      body(Border(n, i, parts), Border(n, i + 1, parts));
    }
  });
}

void SharedParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  constexpr int64_t kMostThreads = 64, kMostRanges = 8;  // of each thread
  grain = std::max<int64_t>(grain, 1);
  const int64_t threads = LoopThreads(n, grain);
  const int64_t each = threads < 2 ? 1 : std::min(n / grain / threads, kMostRanges);
  if (each < 2 || threads > kMostThreads) return ParallelFor(n, grain, body);
  std::array<Ranges, kMostThreads> ranges;
  for (int64_t i = 0; i < threads; ++i) {
    ranges[static_cast<size_t>(i)].Set(static_cast<uint32_t>(i * each),
                                       static_cast<uint32_t>((i + 1) * each));
  }
  const auto run = [&](int64_t i) {
    body(Border(n, i, threads * each), Border(n, i + 1, threads * each));
  };
  // Fewer threads may come than were asked for: what nobody began with is taken at the end.
  RunTeam(static_cast<int>(threads), [&] {
    const int own = TeamIndex();
    for (int64_t i = 0; (i = ranges[static_cast<size_t>(own)].TakeFront()) >= 0;) run(i);
    for (int64_t other = 1; other < threads; ++other) {
      Ranges& of = ranges[static_cast<size_t>((own + other) % threads)];
      for (int64_t i = 0; (i = of.TakeBack()) >= 0;) run(i);
    }
  });
}

}  // namespace smelt
