// Teams: every member runs once, regions within regions are alone, barriers hold, callers do not
// disturb each other, and workers end with the thread that had them.
#include "smelt/base/team.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "smelt/base/denormals.h"
#include "smelt/base/parallel.h"
#include "smelt/base/processor.h"

#ifndef __has_feature  // Clang's
#define __has_feature(x) 0
#endif

namespace smelt {
namespace {

TEST(Team, EveryMemberRunsOnce) {
  for (int size : {1, 2, 5, 3}) {
    std::vector<std::atomic<int>> runs(size);
    RunTeam(size, [&] {
      EXPECT_EQ(TeamSize(), size);
      EXPECT_EQ(InTeam(), size > 1);
      ++runs[TeamIndex()];
    });
    for (const auto& r : runs) EXPECT_EQ(r, 1);
    EXPECT_EQ(TeamIndex(), 0);
    EXPECT_EQ(TeamSize(), 1);
    EXPECT_FALSE(InTeam());
  }
}

TEST(Team, RegionsWithinRegionsAreAlone) {
  std::atomic<int> inner{0};
  RunTeam(3, [&] {
    const int index = TeamIndex();
    RunTeam(4, [&] {
      EXPECT_EQ(TeamSize(), 1);
      EXPECT_EQ(TeamIndex(), 0);
      EXPECT_TRUE(InTeam());
      TeamBarrier();
      ++inner;
    });
    EXPECT_EQ(TeamIndex(), index);
    EXPECT_EQ(TeamSize(), 3);
  });
  EXPECT_EQ(inner, 3);
}

TEST(Team, BarriersSeparateSteps) {
  constexpr int kSize = 4, kSteps = 200;
  std::atomic<int> arrived{0};
  RunTeam(kSize, [&] {
    for (int step = 1; step <= kSteps; ++step) {
      ++arrived;
      TeamBarrier();
      EXPECT_EQ(arrived, kSize * step);
      TeamBarrier();
    }
  });
}

TEST(Team, MembersInheritSizeAndMode) {
  const int before = Threads();
  SetThreads(3);
  const FlushDenormals flush;
  RunTeam(2, [&] {
    EXPECT_EQ(Threads(), 3);
    EXPECT_EQ(FlushDenormals::CurrentMode() & kFlushesDenormals, kFlushesDenormals);
  });
  SetThreads(before);
}

TEST(Team, CallersAreIndependentAndEnd) {
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        SetThreads(3);
        for (int i = 0; i < 50; ++i) {
          ParallelFor(90, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
        }
      });
    }
    for (std::thread& t : callers) t.join();
  }
  EXPECT_EQ(sum, 3 * 4 * 50 * 90);
}

// The thread sanitizer puts signals off, and has no threads after a fork.
#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)

// A signal's handler stands for another process on the worker's core.
std::atomic<bool> core_taken{false}, core_wanted{false};
void TakeCore(int) {
  core_taken = true;
  while (core_wanted) CpuPause();
  core_taken = false;
}

TEST(Team, NobodyWaitsForAMemberWhoseCoreIsTaken) {
  struct sigaction take = {}, before = {};
  take.sa_handler = TakeCore;
  ASSERT_EQ(sigaction(SIGUSR1, &take, &before), 0);
  pthread_t worker = pthread_self();
  RunTeam(2, [&] {
    if (TeamIndex() == 1) worker = pthread_self();
    TeamBarrier();
  });
  ASSERT_FALSE(pthread_equal(worker, pthread_self()));
  core_wanted = true;
  ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
  while (!core_taken) CpuPause();
  for (int round = 0; round < 100; ++round) {
    std::array<int, 2> runs = {};
    RunTeam(2, [&] {
      EXPECT_TRUE(pthread_equal(pthread_self(), worker) == 0);
      ++runs[static_cast<size_t>(TeamIndex())];
    });
    EXPECT_EQ(runs, (std::array<int, 2>{1, 1}));
  }
  core_wanted = false;
  while (core_taken) CpuPause();
  // It came for nothing, and works again.
  std::atomic<bool> came{false};
  RunTeam(2, [&] {
    if (pthread_equal(pthread_self(), worker) != 0) came = true;
    TeamBarrier();
  });
  EXPECT_TRUE(came);
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(Team, ForkedChildrenHaveWorkersOfTheirOwn) {
  const auto members = [] {
    std::atomic<int> runs{0};
    RunTeam(3, [&] {
      TeamBarrier();
      ++runs;
    });
    return runs.load();
  };
  ASSERT_EQ(members(), 3);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child whose members wait forever
    _exit(members() == 3 && members() == 3 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(members(), 3);
}
#endif

TEST(Loops, EveryIterationRunsOnce) {
  const ScopedThreads team(3);
  for (const auto loop : {ParallelFor, SharedParallelFor}) {
    for (const int64_t n : {0, 1, 2, 3, 7, 24, 100, 1001}) {
      for (const int64_t grain : {1, 2, 5, 400}) {
        std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
        loop(n, grain, [&](int64_t begin, int64_t end) {
          ASSERT_LT(begin, end);
          EXPECT_GE(end - begin, std::min(grain, n));
          for (int64_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
        });
        for (const auto& r : runs) ASSERT_EQ(r, 1) << n << " by " << grain;
      }
    }
  }
}

TEST(Loops, WhoIsDoneTakesWhatOthersHaveLeft) {
  const ScopedThreads team(2);
  constexpr int64_t kCount = 64;
  std::vector<std::atomic<int>> by(kCount);
  std::atomic<int64_t> done{0};
  std::atomic<bool> began{false};
  SharedParallelFor(kCount, 1, [&](int64_t begin, int64_t end) {
    // The caller's first range ends when the other thread can go no further.
    if (TeamIndex() == 0 && begin == 0) began = true;
    while (TeamSize() == 2 &&
           (TeamIndex() == 0 ? begin == 0 && done < kCount - (end - begin) : !began)) {
      std::this_thread::yield();
    }
    for (int64_t i = begin; i < end; ++i) by[static_cast<size_t>(i)] = 1 + TeamIndex();
    done += end - begin;
  });
  EXPECT_EQ(done, kCount);
  EXPECT_EQ(by[0], 1);
  EXPECT_EQ(by[kCount / 2 - 1], 2);  // of the caller's ranges
}

TEST(Loops, WhatABodyThrowsComesToTheCaller) {
  const ScopedThreads team(2);
  std::atomic<int64_t> done{0};
  EXPECT_THROW(SharedParallelFor(64, 1,
                                 [&](int64_t begin, int64_t end) {
                                   if (begin == 0) throw std::bad_alloc();
                                   done += end - begin;
                                 }),
               std::bad_alloc);
  EXPECT_EQ(done, 60);  // whose ranges were left took others
}

}  // namespace
}  // namespace smelt
