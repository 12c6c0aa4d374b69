// Sessions with compiled programs under many requests leave nothing behind.
//
// SMELT_SOAK_RUNS=1000000 says how many requests the soak has.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/program_sessions.h"

// Sanitizers keep freed memory for a while, so that pages tell nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMELT_TEST_KEEPS_FREED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SMELT_TEST_KEEPS_FREED
#endif
#endif

namespace smelt {
namespace {

int64_t Runs() {
  const char* runs = std::getenv("SMELT_SOAK_RUNS");
  return runs != nullptr ? std::atoll(runs) : 20000;
}

struct Memory {
  int64_t live = 0, resident = 0;  // bytes
};
Memory MemoryNow() {
  const struct mallinfo2 m = mallinfo2();
  int64_t size = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return {static_cast<int64_t>(m.uordblks + m.hblkhd), pages * sysconf(_SC_PAGESIZE)};
}

// Most requests have a few shapes; some have more shapes in turn than a region keeps programs for.
void RunClients(Session& session, const char* fetch, const Shape& shape, int clients,
                int64_t runs) {
  std::vector<std::thread> threads;
  for (int c = 0; c < clients; ++c) {
    threads.emplace_back([&, c] {
      std::vector<Tensor> inputs;
      for (int64_t rows = 0; rows <= 40; ++rows) inputs.push_back(Ripples(shape, rows));
      for (int64_t i = 0; i < runs / clients; ++i) {
        const int64_t rows = i % 16 == 15 ? (i / 16 + c) % 41 : 1 + (i + c) % 5;
        const auto got = session.Run({{"x", inputs[static_cast<size_t>(rows)]}}, {fetch}, {});
        ASSERT_TRUE(got.ok()) << got.status();
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

void Soak(const char* text, const char* fetch, const Shape& shape, int threads, int clients) {
  const auto session = SessionOf(text, threads);
  const int64_t runs = Runs();
  RunClients(*session, fetch, shape, clients, std::max<int64_t>(runs / 4, 4000));
  const Memory before = MemoryNow();
  RunClients(*session, fetch, shape, clients, runs);
  const Memory after = MemoryNow();
  std::printf("%d clients, %lld runs: live %+lld bytes, resident %+lld bytes\n", clients,
              static_cast<long long>(runs), static_cast<long long>(after.live - before.live),
              static_cast<long long>(after.resident - before.resident));
#if !defined(SMELT_TEST_KEEPS_FREED)
  // As many threads as ever run at once leave a state each with every program that is kept.
  EXPECT_LE(after.live - before.live, 1 << 18);
  EXPECT_LE(after.resident - before.resident, 2 << 20);
#endif
}

TEST(ProgramSoak, OneClientLeavesNothingBehind) { Soak(kSmall, "n", Shape({1, 8}), 1, 1); }
TEST(ProgramSoak, FourClientsLeaveNothingBehind) { Soak(kSmall, "n", Shape({1, 8}), 1, 4); }
TEST(ProgramSoak, LoopsLeaveNothingBehind) { Soak(kLoop, "y", Shape({1, 2, 8}), 1, 1); }
TEST(ProgramSoak, LoopsOfClientsLeaveNothingBehind) { Soak(kLoop, "y", Shape({1, 2, 8}), 2, 3); }

}  // namespace
}  // namespace smelt
