// The values of one feature in a batch of Examples.
#ifndef SMELT_WIRE_EXAMPLE_EXAMPLE_COLUMN_H_
#define SMELT_WIRE_EXAMPLE_EXAMPLE_COLUMN_H_

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "smelt/wire/example/example_reader.h"

namespace smelt {

// Values of all examples one after another, and where each example ends.
struct ExampleColumn {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::vector<int64_t> ends;

  int64_t size(Dtype dtype) const {
    return static_cast<int64_t>(dtype == Dtype::kInt64   ? ints.size()
                                : dtype == Dtype::kFloat ? floats.size()
                                                         : strings.size());
  }
  bool Read(ExampleFeature& f, Dtype dtype) {
    switch (dtype) {
      case Dtype::kInt64: {
        VectorSink<int64_t> sink{&ints};
        return ReadInt64List(f, sink);
      }
      case Dtype::kFloat: {
        VectorSink<float> sink{&floats};
        return ReadFloatList(f, sink);
      }
      default: {
        VectorSink<std::string> sink{&strings};
        return ReadBytesList(f, sink);
      }
    }
  }
  // Moves values [begin, begin + n) to element `at` of t.
  void Move(Dtype dtype, int64_t begin, int64_t n, Tensor& t, int64_t at) {
    if (n == 0) return;
    const auto count = static_cast<size_t>(n);
    switch (dtype) {
      case Dtype::kInt64:
        std::memcpy(t.data<int64_t>() + at, ints.data() + begin, count * sizeof(int64_t));
        return;
      case Dtype::kFloat:
        std::memcpy(t.data<float>() + at, floats.data() + begin, count * sizeof(float));
        return;
      default:
        std::move(strings.begin() + begin, strings.begin() + begin + n, t.data<std::string>() + at);
    }
  }
};

}  // namespace smelt

#endif  // SMELT_WIRE_EXAMPLE_EXAMPLE_COLUMN_H_
