// Which shapes beyond the first ones have programs.
#include "smelt/runtime/recent_programs.h"

#include <gtest/gtest.h>

#include "tests/program_sessions.h"

namespace smelt {
namespace {

using Kept = RecentPrograms<int64_t>;

// A request: how it was answered.
enum class By { kNodes, kNewProgram, kProgram };
By Ask(Kept& kept, int64_t shape, int64_t bytes = 1) {
  const Kept::Key key = {1, shape};
  if (const auto found = kept.Find(key)) {
    EXPECT_EQ(*found, shape);
    return By::kProgram;
  }
  if (!kept.IsWorthIt(key)) return By::kNodes;
  kept.Keep(key, std::make_shared<const int64_t>(shape), bytes);
  return By::kNewProgram;
}

TEST(RecentPrograms, OfShapesThatComeAgain) {
  Kept kept;
  EXPECT_EQ(Ask(kept, 5), By::kNodes);
  EXPECT_EQ(Ask(kept, 6), By::kNodes);
  EXPECT_EQ(Ask(kept, 5), By::kNodes);
  EXPECT_EQ(Ask(kept, 5), By::kNewProgram);
  EXPECT_EQ(Ask(kept, 5), By::kProgram);
  EXPECT_EQ(kept.All().size(), 1u);
}

TEST(RecentPrograms, ThoseThatCameLastStay) {
  Kept kept;
  const auto often = [&](int64_t shape) {
    for (int i = 0; i < 100; ++i) Ask(kept, shape);
  };
  const auto most = static_cast<int64_t>(Kept::kMost);
  for (int64_t shape = 0; shape < most; ++shape) often(shape);
  EXPECT_EQ(Ask(kept, 0), By::kProgram);
  often(most);
  EXPECT_EQ(kept.All().size(), Kept::kMost);
  EXPECT_EQ(Ask(kept, 0), By::kProgram);
  EXPECT_EQ(Ask(kept, 1), By::kNodes);
}

TEST(RecentPrograms, TakeSoMuchMemory) {
  Kept kept;
  for (int64_t shape = 0; shape < 8; ++shape) {
    for (int i = 0; i < 100; ++i) Ask(kept, shape, Kept::kMostBytes / 2);
    EXPECT_LE(kept.All().size(), 2u);
  }
  // One is kept whatever it takes.
  for (int i = 0; i < 100; ++i) Ask(kept, 9, 2 * Kept::kMostBytes);
  EXPECT_EQ(kept.All().size(), 1u);
  EXPECT_EQ(Ask(kept, 9), By::kProgram);
}

// Where more shapes take turns than programs are kept, few are made in vain.
TEST(RecentPrograms, GiveUpWhereAllGo) {
  for (const int64_t shapes : {100, 1000}) {
    Kept kept;
    int64_t made = 0;
    for (int64_t i = 0; i < 100'000; ++i) made += Ask(kept, i % shapes) == By::kNewProgram ? 1 : 0;
    EXPECT_LT(made, 500) << shapes;
  }
}

TEST(RecentPrograms, ARegionCompilesShapesBeyondTheFirst) {
  const auto session = SessionOf(kSmall, 1);
  const auto ask = [&](int64_t rows) {
    ASSERT_TRUE(session->Run({{"x", Ripples(Shape({1, 8}), rows)}}, {"y"}, {}).ok());
  };
  const auto has = [&](const char* shape) {
    return session->ProgramsText().find(shape) != std::string::npos;
  };
  for (int64_t rows = 1; rows <= 40; ++rows) ask(rows);
  EXPECT_TRUE(has("[16,8]:"));
  EXPECT_FALSE(has("[40,8]:"));
  for (int i = 0; i < 4; ++i) ask(40);
  EXPECT_TRUE(has("[40,8]:"));
}

}  // namespace
}  // namespace smelt
