#include "smelt/kernels/isa/byte_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace smelt {
namespace {

TEST(ByteTable, GivesEveryEntryAtAnyLength) {
  uint8_t table[256];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i * 167 + 13);
  for (int n = 0; n <= 515; ++n) {
    std::vector<uint8_t> x(static_cast<size_t>(n) + 1), y(x.size(), 7);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 91 + x.size());
    LookUpBytes(table, x.data(), y.data(), n);
    for (size_t i = 0; i + 1 < x.size(); ++i) ASSERT_EQ(y[i], table[x[i]]) << n << " " << i;
    EXPECT_EQ(y.back(), 7) << n;
  }
}

}  // namespace
}  // namespace smelt
