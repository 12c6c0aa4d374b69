#include "smelt/runtime/turnstile.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace smelt {
namespace {

void WaitUntil(const Turnstile& turnstile, int waiting) {
  while (turnstile.waiting() != waiting) absl::SleepFor(absl::Milliseconds(1));
}

TEST(Turnstile, LetsSoManyInAtATime) {
  Turnstile turnstile(3);
  std::array<std::atomic<bool>, 3> taken{};
  std::atomic<int> inside{0}, most{0}, done{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 12; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto lane = turnstile.Enter(nullptr);
        ASSERT_TRUE(lane.ok());
        ASSERT_FALSE(taken[*lane].exchange(true)) << "two have lane " << *lane;
        const int now = inside.fetch_add(1) + 1;
        int before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        if (i % 50 == 0) absl::SleepFor(absl::Milliseconds(1));
        inside.fetch_sub(1);
        taken[*lane] = false;
        turnstile.Leave(*lane);
        done.fetch_add(1);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(done, 12 * 200);
  EXPECT_LE(most, 3);
  EXPECT_EQ(turnstile.waiting(), 0);
}

TEST(Turnstile, WhoComesFirstIsLetInFirst) {
  Turnstile turnstile(1);
  ASSERT_TRUE(turnstile.Enter(nullptr).ok());
  std::vector<int> order;
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      ASSERT_TRUE(turnstile.Enter(nullptr).ok());
      order.push_back(c);  // one at a time
      turnstile.Leave(0);
    });
    WaitUntil(turnstile, c + 1);
  }
  turnstile.Leave(0);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(order, std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Turnstile, WhoIsNotWantedAnyMoreLeavesTheQueue) {
  Turnstile turnstile(1);
  ASSERT_TRUE(turnstile.Enter(nullptr).ok());
  Cancellation cancelled, late;
  late.SetDeadline(absl::Now() + absl::Milliseconds(20));
  Status of_cancelled, of_late;
  bool last = false;
  std::thread first([&] { of_cancelled = turnstile.Enter(&cancelled).status(); });
  WaitUntil(turnstile, 1);
  std::thread second([&] { of_late = turnstile.Enter(&late).status(); });
  second.join();
  std::thread third([&] {
    ASSERT_TRUE(turnstile.Enter(nullptr).ok());
    last = true;
    turnstile.Leave(0);
  });
  WaitUntil(turnstile, 2);
  cancelled.Cancel();
  first.join();
  EXPECT_EQ(of_cancelled.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(of_late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(turnstile.waiting(), 1);
  turnstile.Leave(0);
  third.join();
  EXPECT_TRUE(last);
  // The place is free again.
  EXPECT_TRUE(turnstile.Enter(nullptr).ok());
  turnstile.Leave(0);
}

TEST(RunTime, IsThatOfTheShortestRunsOfLate) {
  RunTime time;
  EXPECT_EQ(time.nanoseconds(), 0);
  time.Note(9'000'000);  // the first run makes what later ones have
  EXPECT_EQ(time.nanoseconds(), 9'000'000);
  time.Note(100'000);
  EXPECT_EQ(time.nanoseconds(), 100'000);
  time.Note(4'100'000);
  EXPECT_EQ(time.nanoseconds(), 162'500);
  time.Note(90'000);
  EXPECT_EQ(time.nanoseconds(), 90'000);
}

}  // namespace
}  // namespace smelt
