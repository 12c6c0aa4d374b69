// Which set is tested: the one that SMELT_ISA names, or the tests say that it cannot be.
#include "smelt/kernels/isa/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "smelt/base/denormals.h"
#include "smelt/base/processor.h"

namespace smelt {
namespace {

TEST(Isa, IsTheOneThatWasAskedFor) {
  std::cout << "set " << Isa().name << ", dot products of bytes " << CpuHas(CpuFeature::kDotBytes)
            << ", of bfloat16 " << CpuHas(CpuFeature::kDotBfloat16) << "\n";
  const char* wanted = std::getenv("SMELT_ISA");
  if (wanted == nullptr || std::string(wanted) == Isa().name) return;
  GTEST_SKIP() << "skipped: this processor lacks " << wanted << "; its loops are not tested";
}

TEST(Isa, DenormalsCountAsZero) {
  volatile float least = 1.1754944e-38f, half = 0.5f;
  volatile float before = least * half;
  EXPECT_GT(before, 0.0f);
  {
    const FlushDenormals flush;
    volatile float within = least * half;
    EXPECT_EQ(within, 0.0f);
  }
  volatile float after = least * half;
  EXPECT_GT(after, 0.0f);
}

}  // namespace
}  // namespace smelt
