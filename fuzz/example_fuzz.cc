// tf.Examples: the bytes as two of them (the first byte says where the first ends), for features of
// every type and form under short keys.
#include <algorithm>
#include <cstdint>

#include "smelt/wire/example/example.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smelt;
  SetHeapLimit(int64_t{1} << 26);
  static const ExampleFeatures* features = [] {
    auto* f = new ExampleFeatures;
    const PartialShape two = PartialShape::Of({2}), any = PartialShape::Of({-1, 2});
    const auto empty = [](Dtype t) { return *Tensor::Make(t, Shape({0})); };
    f->dense = {{"a", Dtype::kFloat, two, empty(Dtype::kFloat)},
                {"b", Dtype::kInt64, two, *Tensor::Make(Dtype::kInt64, Shape({2}))},
                {"c", Dtype::kString, any, *Tensor::Make(Dtype::kString, Shape({1}))}};
    f->sparse = {{"d", Dtype::kFloat}, {"e", Dtype::kInt64}, {"f", Dtype::kString}};
    f->ragged = {{"g", Dtype::kFloat, Dtype::kInt32}, {"h", Dtype::kString, Dtype::kInt64}};
    return f;
  }();
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t cut = size == 0 ? 0 : std::min<size_t>(size - 1, data[0]);
  const std::string both[2] = {std::string(bytes.substr(std::min<size_t>(1, size), cut)),
                               std::string(bytes.substr(std::min(size, cut + 1)))};
  ParseExamples(*features, both, {}, HeapAllocator()).status().IgnoreError();
  ParseOneExample(*features, bytes, HeapAllocator()).status().IgnoreError();
  return 0;
}
