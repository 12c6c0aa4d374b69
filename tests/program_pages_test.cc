// Code runs on once its pages were given back.
#include "smelt/base/program_pages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace smelt {
namespace {

// KiB of files that are mapped and resident.
int64_t ResidentFiles() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "RssFile:" && status >> kib) return kib;
  }
  return 0;
}

TEST(ProgramPages, AreMappedAgain) {
  const int64_t before = ResidentFiles();
  ASSERT_GT(before, 0);
  DropProgramPages();
  const int64_t after = ResidentFiles();  // by code of which no page was left
  EXPECT_GT(after, 0);
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace smelt
