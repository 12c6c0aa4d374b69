// What was compiled for shapes beyond those that are kept for good: the shapes that came last.
#ifndef SMELT_RUNTIME_RECENT_PROGRAMS_H_
#define SMELT_RUNTIME_RECENT_PROGRAMS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/synchronization/mutex.h"

namespace smelt {

// Programs by key: shapes and number of threads. A key is worth a program once it has come a few
// times; where programs go before they have run often enough to be worth it, as where all requests
// differ, keys have to come ever more often. Thread safe.
template <typename Program>
class RecentPrograms {
 public:
  using Key = std::vector<int64_t>;

  // nullptr: there is none.
  std::shared_ptr<const Program> Find(const Key& key) {
    absl::MutexLock lock(&mutex_);
    const auto at = std::ranges::find(kept_, key, &Kept::key);
    if (at == kept_.end()) return nullptr;
    ++at->runs;
    std::rotate(kept_.begin(), at, at + 1);
    return kept_.front().program;
  }
  // The key has come, and there is no program. Is it time to make one?
  bool IsWorthIt(const Key& key) {
    absl::MutexLock lock(&mutex_);
    const size_t hash = absl::HashOf(key);
    Count& count = counts_[hash % counts_.size()];
    if (count.hash != hash) count = {hash, 0};
    if (++count.times < needed_) return false;
    count.times = 0;
    return true;
  }
  // `bytes`: what it holds beside what all programs share.
  void Keep(Key key, std::shared_ptr<const Program> program, int64_t bytes) {
    absl::MutexLock lock(&mutex_);
    kept_.insert(kept_.begin(), Kept{std::move(key), std::move(program), bytes});
    bytes_ += bytes;
    while (kept_.size() > kMost || (bytes_ > kMostBytes && kept_.size() > 1)) {
      const Kept& last = kept_.back();
      if (last.runs < kWorth) needed_ = std::min(2 * needed_, kMostNeeded);
      bytes_ -= last.bytes;
      kept_.pop_back();
    }
  }
  std::vector<std::shared_ptr<const Program>> All() const {
    absl::MutexLock lock(&mutex_);
    std::vector<std::shared_ptr<const Program>> all;
    for (const Kept& k : kept_) all.push_back(k.program);
    return all;
  }

  static constexpr size_t kMost = 48;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

 private:
  // How often a key comes first, and how often a program has to run: compiling takes as long as
  // some dozens of runs gain.
  static constexpr int64_t kFirstNeeded = 3, kWorth = 64, kMostNeeded = int64_t{1} << 20;
  struct Kept {
    Key key;
    std::shared_ptr<const Program> program;
    int64_t bytes = 0;
    int64_t runs = 0;
  };
  struct Count {
    size_t hash = 0;
    int64_t times = 0;
  };

  mutable absl::Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // the one that came last first
  std::array<Count, 256> counts_ ABSL_GUARDED_BY(mutex_) = {};
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t needed_ ABSL_GUARDED_BY(mutex_) = kFirstNeeded;
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_RECENT_PROGRAMS_H_
