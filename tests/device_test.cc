// One suite for every device: what the interface promises.
#include "smelt/device/device.h"

#include <gtest/gtest.h>

#include <functional>

#include "smelt/tensor/tensor.h"

namespace smelt {
namespace {

struct DeviceCase {
  const char* name;
  std::unique_ptr<Device> (*make)();
  bool allocates;
};

class DeviceConformance : public testing::TestWithParam<DeviceCase> {};

TEST_P(DeviceConformance, NamesItself) {
  auto device = GetParam().make();
  EXPECT_NE(device->name().find(std::string(device->type())), std::string::npos);
}

TEST_P(DeviceConformance, AllocatesOrRefuses) {
  auto device = GetParam().make();
  auto allocator = device->allocator();
  auto tensor = Tensor::Make(Dtype::kFloat, Shape({3, 5}), allocator.get());
  EXPECT_EQ(tensor.ok(), GetParam().allocates);
  if (!tensor.ok()) {
    EXPECT_EQ(tensor.status().code(), absl::StatusCode::kResourceExhausted);
    return;
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->raw()) % kAlignment, 0U);
  EXPECT_GE(device->memory_used(), 60);
}

TEST_P(DeviceConformance, BuffersOutliveTheDevice) {
  auto device = GetParam().make();
  auto tensor = Tensor::Make(Dtype::kInt32, Shape({4}), device->allocator().get());
  if (!tensor.ok()) return;
  device.reset();
  tensor->data<int32_t>()[3] = 7;
  EXPECT_EQ(tensor->data<int32_t>()[3], 7);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceConformance,
                         testing::Values(DeviceCase{"cpu", [] { return MakeCpuDevice(0); }, true},
                                         DeviceCase{"null", [] { return MakeNullDevice(); }, false},
                                         DeviceCase{"tpu", [] { return MakeTpuCore(0, 1 << 20); },
                                                    true}),
                         [](const auto& info) { return info.param.name; });

TEST(TpuCore, CountsWhatItHolds) {
  auto core = MakeTpuCore(2, 1000);
  auto weights = core->Reserve(600);
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(core->memory_used(), 600);
  auto refused = core->Reserve(600);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("Ran out of memory in memory space hbm"),
            absl::string_view::npos);
  {
    auto t = Tensor::Make(Dtype::kUint8, Shape({300}), core->allocator().get());
    ASSERT_TRUE(t.ok());
    EXPECT_EQ(core->memory_used(), 900);
    EXPECT_FALSE(Tensor::Make(Dtype::kUint8, Shape({300}), core->allocator().get()).ok());
  }
  *weights = nullptr;
  EXPECT_EQ(core->memory_used(), 0);
}

TEST(TpuOps, KnowsWhatCompiles) {
  EXPECT_TRUE(IsTpuCompilable("MatMul"));
  EXPECT_FALSE(IsTpuCompilable("StringToNumber"));
}

}  // namespace
}  // namespace smelt
