// Dense products, tiles of convolutions, depthwise convolutions and Fourier passes against sums in
// double.
#include <algorithm>
#include <complex>

#include "smelt/kernels/isa/conv.h"
#include "smelt/kernels/isa/fft.h"
#include "smelt/kernels/isa/isa.h"
#include "tests/isa/rows_of.h"

namespace smelt {
namespace {

TEST(IsaDense, AnyShape) {
  for (const int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 17}) {
    for (const int64_t k : {0, 1, 2, 3, 7, 8, 16, 33, 700}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 48, 63, 64, 65, 100, 131}) {
        const int64_t ldx = k + 2, ldw = n + (n % 3), ldy = n + 1;
        const std::vector<float> x = Floats(m > 0 ? (m - 1) * ldx + k : 0, -1, 1),
                                 bias = Floats(n, -1, 1),
                                 addend = Floats(m > 0 ? (m - 1) * ldy + n : 0, -1, 1);
        // No more than the matrix may be read.
        const std::vector<float> w = Floats(k > 0 ? (k - 1) * ldw + n : 0, -1, 1);
        std::vector<float> turned(k * n);
        for (int64_t i = 0; i < k; ++i) {
          for (int64_t j = 0; j < n; ++j) turned[j * k + i] = w[i * ldw + j];
        }
        AtTheEdge<float> x_edge(x), w_edge(w), bias_edge(bias), addend_edge(addend);
        const int64_t panel = Isa().dense_panel;
        std::vector<float> packed(k * ((n + panel - 1) / panel) * panel, kNaN), again(packed);
        Isa().dense_pack(w_edge.data(), ldw, k, n, packed.data());
        Isa().dense_pack_turned(turned.data(), k, k, n, again.data());
        ASSERT_EQ(packed, again);
        const bool has_bias = n % 2 == 0, has_addend = k % 2 == 0;
        const UnaryF32 act = m % 2 == 0 ? UnaryF32::kRelu : UnaryF32::kIdentity;
        for (const bool packs : {false, true}) {
          std::vector<float> y(m * ldy + 1, 77.0f);
          const float* b = has_bias ? bias_edge.data() : nullptr;
          if (packs) {
            Isa().dense_packed(x_edge.data(), ldx, m, k, packed.data(), n, b,
                               has_addend ? addend_edge.data() : nullptr, act, 0, y.data(), ldy);
          } else {
            Isa().dense(x_edge.data(), ldx, m, k, w_edge.data(), ldw, n, b, act, 0, y.data(), ldy);
          }
          for (int64_t r = 0; r < m; ++r) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = has_bias ? bias[j] : 0.0f;
              for (int64_t i = 0; i < k; ++i) sum += double{x[r * ldx + i]} * w[i * ldw + j];
              if (packs && has_addend) sum += addend[r * ldy + j];
              if (act == UnaryF32::kRelu) sum = std::max(sum, 0.0);
              // What cancels keeps the roundings of what was added.
              ASSERT_TRUE(Near(y[r * ldy + j], sum, 1e-6 + 1e-8 * k, k < 100 ? 8 : 40))
                  << m << "x" << k << "x" << n << " at " << r << ", " << j
                  << (packs ? " packed" : "");
            }
            ASSERT_EQ(y[r * ldy + n], 77.0f) << m << "x" << k << "x" << n;
          }
        }
      }
    }
  }
}

TEST(IsaDense, NanStays) {
  for (const int64_t n : {1, 5, 16, 70}) {
    std::vector<float> x(3, 1.0f), w(3 * n, 1.0f), y(n);
    x[1] = kNaN;
    Isa().dense(x.data(), 3, 1, 3, w.data(), n, n, nullptr, UnaryF32::kRelu, 0, y.data(), n);
    for (const float v : y) EXPECT_TRUE(std::isnan(v));
  }
}

TEST(IsaConv, Tiles) {
  const ConvLoops& loops = IsaConv();
  for (int vectors = 1; vectors <= kConvTileVecs; ++vectors) {
    ASSERT_LE(loops.tile_pixels[vectors - 1], kConvTilePixels);
    for (int pixels = 1; pixels <= loops.tile_pixels[vectors - 1]; ++pixels) {
      const int64_t width = vectors * loops.lanes;
      for (int64_t columns = width - loops.lanes + 1; columns <= width; ++columns) {
        for (const int64_t run : {1, 3, 4, 9}) {
          const int64_t runs = 1 + run % 3;
          std::vector<float> x = Floats(200, -1, 1);
          if (run == 3) x[0] = kNaN;
          const std::vector<float> w = Floats(runs * run * width, -1, 1);
          const std::vector<float> bias = Floats(width, -1, 1);
          std::vector<const float*> at;
          for (int64_t i = 0; i < runs * pixels; ++i) at.push_back(x.data() + i * 7 % 190);
          // A run that counts nothing.
          const bool left_out = run == 4;
          if (left_out) at[(runs - 1) * pixels] = nullptr;
          ConvTile tile;
          tile.pixels = at.data(), tile.runs = runs, tile.run = run;
          const int64_t step = columns + 2;
          std::vector<int64_t> places;
          for (int p = 0; p < pixels; ++p) places.push_back((pixels - 1 - p) * step);
          tile.places = places.data(), tile.columns = columns, tile.fetches = run == 1;
          const std::vector<float> addend = Floats((pixels - 1) * step + columns, -1, 1);
          std::vector<float> y(pixels * step, 77.0f);
          const bool adds = run % 2 == 1;
          AtTheEdge<float> w_edge(w), bias_edge(bias), addend_edge(addend);
          tile.weights = w_edge.data(), tile.bias = bias_edge.data();
          if (adds) tile.addend = addend_edge.data();
          tile.clamps = columns % 2 == 0;
          tile.low = -0.5f, tile.high = run == 3 ? kInfinity : 0.5f;
          tile.y = y.data();
          loops.tile[pixels - 1][vectors - 1](tile);
          for (int64_t p = 0; p < pixels; ++p) {
            for (int64_t c = 0; c < columns; ++c) {
              double sum = bias[c];
              for (int64_t r = 0; r < runs - (left_out ? 1 : 0); ++r) {
                for (int64_t i = 0; i < run; ++i) {
                  sum += double{at[r * pixels + p][i]} * w[(r * run + i) * width + c];
                }
              }
              if (adds) sum += addend[places[p] + c];
              if (tile.clamps && !std::isnan(sum)) {
                sum = std::clamp<double>(sum, tile.low, tile.high);
              }
              ASSERT_TRUE(Near(y[places[p] + c], sum, 1e-6, 8))
                  << pixels << " pixels, " << columns << " columns, " << runs << " of " << run;
            }
            for (int64_t c = columns; c < step; ++c) ASSERT_EQ(y[places[p] + c], 77.0f);
          }
        }
      }
    }
  }
}

struct Window {
  int64_t in_h, in_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
};

TEST(IsaConv, Depthwise) {
  const ConvLoops& loops = IsaConv();
  for (const Window& v :
       {Window{5, 9, 3, 3, 1, 1, 1, 1, 1, 1}, Window{7, 23, 3, 3, 2, 2, 1, 1, 0, 1},
        Window{9, 20, 5, 5, 1, 1, 1, 1, 2, 2}, Window{9, 21, 5, 5, 2, 2, 1, 1, 2, 1},
        Window{6, 11, 2, 4, 1, 3, 1, 1, 1, 1}, Window{9, 13, 3, 3, 1, 1, 2, 3, 2, 3},
        Window{1, 1, 3, 3, 1, 1, 1, 1, 1, 1}, Window{4, 40, 3, 3, 1, 1, 1, 1, 1, 0}}) {
    for (const int64_t more : {0, 1, 3, 17}) {
      DepthwiseLoop d;
      d.channels = loops.lanes + more;
      d.in_h = v.in_h, d.in_w = v.in_w, d.kernel_h = v.kernel_h, d.kernel_w = v.kernel_w;
      d.stride_h = v.stride_h, d.stride_w = v.stride_w;
      d.dilation_h = v.dilation_h, d.dilation_w = v.dilation_w;
      d.pad_top = v.pad_h, d.pad_left = v.pad_w;
      d.out_h = (v.in_h + 2 * v.pad_h - (v.kernel_h - 1) * v.dilation_h - 1) / v.stride_h + 1;
      d.out_w = (v.in_w + 2 * v.pad_w - (v.kernel_w - 1) * v.dilation_w - 1) / v.stride_w + 1;
      const int64_t n = d.channels, images = 2;
      std::vector<float> x = Floats(images * v.in_h * v.in_w * n, -1, 1);
      x[x.size() / 2] = kNaN;
      const std::vector<float> w = Floats(v.kernel_h * v.kernel_w * n, -1, 1);
      const std::vector<float> bias = Floats(n, -1, 1), zeros(n);
      d.zeros = zeros.data();
      d.clamps = more % 2 == 1, d.low = -0.5f, d.high = 0.75f;
      if (more == 3) d.act = Isa().unary[static_cast<int>(UnaryF32::kSquare)];
      std::vector<float> y(images * d.out_h * d.out_w * n);
      AtTheEdge<float> x_edge(x), w_edge(w), bias_edge(bias);
      d.weights = w_edge.data(), d.bias = bias_edge.data();
      const int64_t rows = images * d.out_h, half = rows / 2;
      loops.depthwise(d, x_edge.data(), y.data(), half, rows);
      loops.depthwise(d, x_edge.data(), y.data(), 0, half);
      for (int64_t i = 0; i < rows * d.out_w * n; ++i) {
        const int64_t c = i % n, column = i / n % d.out_w, row = i / n / d.out_w;
        double sum = bias[c];
        for (int64_t kh = 0; kh < v.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < v.kernel_w; ++kw) {
            const int64_t r = row % d.out_h * v.stride_h - v.pad_h + kh * v.dilation_h;
            const int64_t s = column * v.stride_w - v.pad_w + kw * v.dilation_w;
            if (r < 0 || r >= v.in_h || s < 0 || s >= v.in_w) continue;
            const int64_t image = row / d.out_h;
            sum += double{x[((image * v.in_h + r) * v.in_w + s) * n + c]} *
                   w[(kh * v.kernel_w + kw) * n + c];
          }
        }
        if (d.clamps && !std::isnan(sum)) sum = std::clamp(sum, -0.5, 0.75);
        if (d.act != nullptr) sum *= sum;
        ASSERT_TRUE(Near(y[i], sum, 2e-6, 8))
            << v.kernel_h << "x" << v.kernel_w << ", " << n << " channels, at " << row << ", "
            << column << ", " << c;
      }
    }
  }
}

template <typename T>
void CheckFourier() {
  using Number = std::complex<double>;
  const FftLoops<T>& loops = IsaFft<T>();
  const int64_t lanes = loops.lanes;
  for (const int64_t radix : {2, 3, 4, 5, 7, 11}) {
    for (const int64_t ido : {1, 3}) {
      for (const int64_t l1 : {1, 2}) {
        const int64_t n = l1 * radix * ido;
        std::vector<T> in(n * 2 * lanes), out(in.size()), scratch(2 * radix * lanes);
        std::uniform_real_distribution<double> any(-1, 1);
        for (T& v : in) v = static_cast<T>(any(Random()));
        const auto turn = [](double part) { return std::polar(1.0, -2 * M_PI * part); };
        std::vector<T> roots, twiddles;
        const auto add = [](std::vector<T>& to, Number z) {
          to.push_back(static_cast<T>(z.real()));
          to.push_back(static_cast<T>(z.imag()));
        };
        for (int64_t j = 0; j < radix; ++j) add(roots, turn(double(j) / double(radix)));
        for (int64_t j = 0; j < radix; ++j) {
          for (int64_t i = 0; i < ido; ++i)
            add(twiddles, turn(double(j * i) / double(radix * ido)));
        }
        loops.pass(radix, ido, l1, twiddles.data(), roots.data(), in.data(), out.data(),
                   scratch.data());
        const auto at = [&](const std::vector<T>& x, int64_t i, int64_t lane) {
          return Number(x[i * 2 * lanes + lane], x[i * 2 * lanes + lanes + lane]);
        };
        for (int64_t k = 0; k < l1; ++k) {
          for (int64_t j = 0; j < radix; ++j) {
            for (int64_t i = 0; i < ido; ++i) {
              for (int64_t lane = 0; lane < lanes; ++lane) {
                Number sum = 0;
                for (int64_t q = 0; q < radix; ++q) {
                  sum += at(in, (k * radix + q) * ido + i, lane) *
                         turn(double(j * q % radix) / double(radix));
                }
                sum *= turn(double(j * i) / double(radix * ido));
                const Number got = at(out, (j * l1 + k) * ido + i, lane);
                ASSERT_LT(std::abs(got - sum), sizeof(T) == 4 ? 1e-5 : 1e-13)
                    << "radix " << radix << ", " << l1 << " by " << ido;
              }
            }
          }
        }
      }
    }
  }
}
TEST(IsaFft, Passes) {
  CheckFourier<float>();
  CheckFourier<double>();
}

}  // namespace
}  // namespace smelt
