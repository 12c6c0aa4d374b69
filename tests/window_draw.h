// Layers drawn at random, and what they compute in plain loops.
#ifndef SMELT_TESTS_WINDOW_DRAW_H_
#define SMELT_TESTS_WINDOW_DRAW_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/nn/window.h"

namespace smelt::nn {

class WindowDraw {
 public:
  int64_t From(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  std::vector<int8_t> Bytes(int64_t n) {
    std::vector<int8_t> some(static_cast<size_t>(n));
    // The ends are what products of bytes get wrong.
    for (int8_t& b : some) {
      const int64_t kind = From(0, 3);
      b = static_cast<int8_t>(kind == 0 ? -128 : kind == 1 ? 127 : From(-128, 127));
    }
    return some;
  }
  // Layer i of a row of them that has all kinds: depthwise ones, groups, images of a pixel, many
  // channels.
  StatusOr<ConvProblem> Window(int i) {
    ConvAttrs attrs;
    attrs.padding = Padding::kExplicit;
    Dims in = {From(1, 3)}, filter;
    for (int s = 0; s < 2; ++s) {
      in.push_back(From(1, i % 7 == 0 ? 60 : 9));
      filter.push_back(i % 5 == 0 ? 1 : From(1, 4));
      attrs.strides.push_back(i % 10 == 0 ? 1 : From(1, 3));
      attrs.dilations.push_back(i % 3 == 0 ? From(1, 3) : 1);
      attrs.pad_before.push_back(From(0, 2) * (i % 2));
      attrs.pad_after.push_back(From(0, 2) * (i % 2));
    }
    const bool depthwise = i % 4 == 1;
    const int64_t groups = depthwise ? From(2, 40) : i % 4 == 2 ? From(1, 3) : 1;
    const int64_t of_group = depthwise ? 1 : From(1, i % 11 == 0 ? 300 : 24);
    in.push_back(groups * of_group);
    filter.push_back(of_group);
    filter.push_back(groups * (depthwise ? From(1, 3) : From(8, 50)));
    return MakeConvProblem(attrs, Shape(in), Shape(filter));
  }

 private:
  std::mt19937_64 random_{3};
};

// Windows beside each other over whole images.
inline StatusOr<ConvProblem> SameWindow(const Shape& in, const Shape& filter, int64_t stride) {
  ConvAttrs attrs;
  attrs.padding = Padding::kSame;
  attrs.strides = {stride, stride};
  attrs.dilations = {1, 1};
  return MakeConvProblem(attrs, in, filter);
}

inline std::string TextOf(const ConvProblem& p) {
  return absl::StrCat(p.batch, " images of ", p.in[0], "x", p.in[1], "x", p.in_depth, ", windows ",
                      p.kernel[0], "x", p.kernel[1], " by ", p.strides[0], "x", p.strides[1], ", ",
                      p.out[0], "x", p.out[1], "x", p.out_depth, " results");
}

// The sum of an output's pixel and unit u, of an image of int8 or int16.
template <typename X>
int64_t PlainSum(const ConvProblem& p, const std::vector<X>& x, const std::vector<int8_t>& w,
                 int32_t zero, int64_t output, int64_t u) {
  const int64_t column = output % p.out[1], line = output / p.out[1] % p.out[0];
  const int64_t image = output / p.out[1] / p.out[0];
  const int64_t first = u / (p.out_depth / p.groups) * p.filter_in;
  int64_t sum = 0;
  for (int64_t i = 0; i < p.kernel[0]; ++i) {
    for (int64_t j = 0; j < p.kernel[1]; ++j) {
      const int64_t y = line * p.strides[0] + i * p.dilations[0] - p.pad_before[0];
      const int64_t z = column * p.strides[1] + j * p.dilations[1] - p.pad_before[1];
      if (y < 0 || y >= p.in[0] || z < 0 || z >= p.in[1]) continue;
      const X* pixel = x.data() + ((image * p.in[0] + y) * p.in[1] + z) * p.in_depth + first;
      const int8_t* tap = w.data() + (i * p.kernel[1] + j) * p.filter_in * p.out_depth + u;
      for (int64_t c = 0; c < p.filter_in; ++c) {
        sum += int64_t{pixel[c] - zero} * tap[c * p.out_depth];
      }
    }
  }
  return sum;
}

}  // namespace smelt::nn

#endif  // SMELT_TESTS_WINDOW_DRAW_H_
