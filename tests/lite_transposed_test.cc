// Weights of a mapped file in another order, as those in memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

#include "smelt/lite/common/evaluate.h"

namespace smelt {
namespace {

Tensor Drawn(const Shape& shape) {
  Tensor t = *Tensor::Make(Dtype::kFloat, shape);
  std::mt19937 random(static_cast<unsigned>(t.num_elements()));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = static_cast<float>(random());
  return t;
}

Tensor AsMapped(const Tensor& t) {
  FILE* file = std::tmpfile();
  EXPECT_EQ(std::fwrite(t.raw(), 1, t.bytes(), file), t.bytes());
  std::fflush(file);
  void* data =
      mmap(nullptr, std::max<size_t>(t.bytes(), 1), PROT_READ, MAP_PRIVATE, fileno(file), 0);
  std::fclose(file);
  EXPECT_NE(data, MAP_FAILED);
  const std::shared_ptr<const void> owner(data, [size = t.bytes()](void* p) { munmap(p, size); });
  return Tensor(t.dtype(), t.shape(),
                ForeignBuffer(data, t.bytes(), ForeignBytes::kMappedFile, owner));
}

TEST(Transposed, OfAMappedFile) {
  const std::vector<Dims> shapes = {
      {3, 3, 200, 700}, {1, 1, 1000, 999}, {700000, 2},    {2, 700000}, {1, 5, 1, 7}, {17},
      {0, 3, 4},        {1, 1, 1},         {1, 900000, 1}, {40, 50, 60}};
  for (const Dims& dims : shapes) {
    const Tensor t = Drawn(Shape(dims)), mapped = AsMapped(t);
    std::vector<int64_t> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      const StatusOr<Tensor> wanted = Transposed(t, order), got = Transposed(mapped, order);
      ASSERT_TRUE(wanted.ok() && got.ok()) << got.status();
      ASSERT_EQ(got->shape(), wanted->shape());
      if (t.bytes() == 0) continue;
      ASSERT_EQ(std::memcmp(got->raw(), wanted->raw(), t.bytes()), 0) << t.shape().ToString();
    } while (std::next_permutation(order.begin(), order.end()));
  }
  const Tensor mapped = AsMapped(Drawn(Shape({4, 5})));
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{0}, {0, 0}, {0, 2}, {-1, 0}}) {
    const StatusOr<Tensor> got = Transposed(mapped, wrong);
    EXPECT_EQ(got.status().code(), Transposed(Drawn(Shape({4, 5})), wrong).status().code());
  }
}

}  // namespace
}  // namespace smelt
