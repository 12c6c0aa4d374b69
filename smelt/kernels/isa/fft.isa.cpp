// Butterflies over vectors: a lane is a transform of its own, so that nothing is ever shuffled.
#include "smelt/kernels/isa/fft.h"

#include "smelt/kernels/isa/loop.inc"
#include "smelt/kernels/isa/vector.inc"

namespace smelt::SMELT_ISA_NAMESPACE {
namespace {

typedef double DoubleVec __attribute__((vector_size(kVecBytes)));

#define SMELT_FFT_FN inline __attribute__((always_inline))

template <typename V, typename T>
struct Complex {
  static constexpr int64_t kStep = kVecBytes / sizeof(T);  // numbers in a vector
  V re, im;

  static SMELT_FFT_FN Complex Load(const T* p) {
    Complex c;
    __builtin_memcpy(&c.re, p, sizeof(V));
    __builtin_memcpy(&c.im, p + kStep, sizeof(V));
    return c;
  }
  SMELT_FFT_FN void Store(T* p) const {
    __builtin_memcpy(p, &re, sizeof(V));
    __builtin_memcpy(p + kStep, &im, sizeof(V));
  }
  SMELT_FFT_FN Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  SMELT_FFT_FN Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
  SMELT_FFT_FN Complex operator*(T s) const { return {re * s, im * s}; }
  // Times -i.
  SMELT_FFT_FN Complex Turned() const { return {im, -re}; }
  SMELT_FFT_FN Complex Times(const T* w) const {
    return {re * w[0] - im * w[1], re * w[1] + im * w[0]};
  }
};

// The transform of x[0 .. R) in place.
template <int R, typename C, typename T>
SMELT_FFT_FN void Butterfly(C* x) {
  if constexpr (R == 2) {
    const C a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  } else if constexpr (R == 3) {
    constexpr T kSin = static_cast<T>(0.866025403784438646763723170752936183L);
    const C sum = x[1] + x[2], turn = (x[1] - x[2]).Turned() * kSin;
    const C middle = x[0] - sum * static_cast<T>(0.5);
    x[0] = x[0] + sum;
    x[1] = middle + turn;
    x[2] = middle - turn;
  } else if constexpr (R == 4) {
    const C a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = (x[1] - x[3]).Turned();
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  } else {
    static_assert(R == 5);
    constexpr T kCos1 = static_cast<T>(0.309016994374947424102293417182819059L);
    constexpr T kCos2 = static_cast<T>(-0.809016994374947424102293417182819059L);
    constexpr T kSin1 = static_cast<T>(0.951056516295153572116439333379382143L);
    constexpr T kSin2 = static_cast<T>(0.587785252292473129168705954639072769L);
    const C a = x[1] + x[4], b = x[2] + x[3];
    const C c = (x[1] - x[4]).Turned(), d = (x[2] - x[3]).Turned();
    const C near = x[0] + a * kCos1 + b * kCos2, far = x[0] + a * kCos2 + b * kCos1;
    const C turn1 = c * kSin1 + d * kSin2, turn2 = c * kSin2 - d * kSin1;
    x[0] = x[0] + a + b;
    x[1] = near + turn1;
    x[2] = far + turn2;
    x[3] = far - turn2;
    x[4] = near - turn1;
  }
}

template <int R, typename V, typename T>
void FixedPass(int64_t ido, int64_t l1, const T* twiddles, const T* in, T* out) {
  using C = Complex<V, T>;
  constexpr int64_t kStep = 2 * C::kStep;
  for (int64_t k = 0; k < l1; ++k) {
    for (int64_t i = 0; i < ido; ++i) {
      C x[R];
      for (int j = 0; j < R; ++j) x[j] = C::Load(in + ((k * R + j) * ido + i) * kStep);
      Butterfly<R, C, T>(x);
      x[0].Store(out + (k * ido + i) * kStep);
      for (int j = 1; j < R; ++j) {
        T* to = out + ((j * l1 + k) * ido + i) * kStep;
        (i == 0 ? x[j] : x[j].Times(twiddles + (j * ido + i) * 2)).Store(to);
      }
    }
  }
}

template <typename V, typename T>
void AnyPass(int64_t radix, int64_t ido, int64_t l1, const T* twiddles, const T* roots, const T* in,
             T* out, T* scratch) {
  using C = Complex<V, T>;
  constexpr int64_t kStep = 2 * C::kStep;
  for (int64_t k = 0; k < l1; ++k) {
    for (int64_t i = 0; i < ido; ++i) {
      for (int64_t q = 0; q < radix; ++q) {
        C::Load(in + ((k * radix + q) * ido + i) * kStep).Store(scratch + q * kStep);
      }
      for (int64_t j = 0; j < radix; ++j) {
        C sum = C::Load(scratch);
        int64_t at = 0;
        for (int64_t q = 1; q < radix; ++q) {
          at += j;
          at -= at >= radix ? radix : 0;
          sum = sum + C::Load(scratch + q * kStep).Times(roots + 2 * at);
        }
        sum.Times(twiddles + (j * ido + i) * 2).Store(out + ((j * l1 + k) * ido + i) * kStep);
      }
    }
  }
}

template <typename V, typename T>
void Pass(int64_t radix, int64_t ido, int64_t l1, const T* twiddles, const T* roots, const T* in,
          T* out, T* scratch) {
  switch (radix) {
    case 2:
      return FixedPass<2, V, T>(ido, l1, twiddles, in, out);
    case 3:
      return FixedPass<3, V, T>(ido, l1, twiddles, in, out);
    case 4:
      return FixedPass<4, V, T>(ido, l1, twiddles, in, out);
    case 5:
      return FixedPass<5, V, T>(ido, l1, twiddles, in, out);
    default:
      return AnyPass<V, T>(radix, ido, l1, twiddles, roots, in, out, scratch);
  }
}

// ---- lines of floats

// Lane i of a, lane i of b, for the lower half of the lanes or the upper one.
template <int64_t kFirst, int64_t... I>
SMELT_FFT_FN Vec Woven(Vec a, Vec b, std::integer_sequence<int64_t, I...>) {
  return __builtin_shufflevector(a, b, (I % 2 * kLanes + kFirst + I / 2)...);
}

// Row i becomes column i: weaving the first half of the rows into the second moves each lane one
// bit of its number further.
SMELT_FFT_FN void TurnBlock(Vec (&x)[kLanes]) {
  constexpr auto kAll = std::make_integer_sequence<int64_t, kLanes>();
#pragma GCC unroll 4
  for (int64_t bit = 1; bit < kLanes; bit *= 2) {
    Vec y[kLanes];
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes / 2; ++r) {
      y[2 * r] = Woven<0>(x[r], x[r + kLanes / 2], kAll);
      y[2 * r + 1] = Woven<kLanes / 2>(x[r], x[r + kLanes / 2], kAll);
    }
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes; ++r) x[r] = y[r];
  }
}

void TurnLines(const float* in, int64_t step, int64_t rows, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vec x[kLanes];
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes; ++r) x[r] = r < rows ? LoadVec(in + r * step + i) : Vec{};
    TurnBlock(x);
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes; ++r) StoreVec(out + (i + r) * kLanes, x[r]);
  }
  for (; i < n; ++i) {
    for (int64_t r = 0; r < kLanes; ++r) out[i * kLanes + r] = r < rows ? in[r * step + i] : 0.0f;
  }
}

void TurnLinesBack(const float* in, int64_t step, int64_t rows, int64_t n, float scale,
                   float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vec x[kLanes];
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes; ++r) x[r] = LoadVec(in + (i + r) * kLanes) * scale;
    TurnBlock(x);
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes; ++r) {
      if (r < rows) StoreVec(out + r * step + i, x[r]);
    }
  }
  for (; i < n; ++i) {
    for (int64_t r = 0; r < rows; ++r) out[r * step + i] = in[i * kLanes + r] * scale;
  }
}

using FftVec = Complex<Vec, float>;
constexpr int64_t kFftValue = 2 * kLanes;

void ExchangeParts(int64_t n, float* values) {
  for (int64_t i = 0; i < n; ++i, values += kFftValue) {
    const FftVec v = FftVec::Load(values);
    FftVec{v.im, v.re}.Store(values);
  }
}

// Value a and the conjugate of what mirrors it, as sum and as difference.
struct FftMirrored {
  FftVec sum, difference;
  SMELT_FFT_FN FftMirrored(FftVec a, FftVec mirror)
      : sum{a.re + mirror.re, a.im - mirror.im}, difference{a.re - mirror.re, a.im + mirror.im} {}
};

void SplitHalves(const float* y, int64_t n, const float* roots, float* bins) {
  const FftVec first = FftVec::Load(y);
  FftVec{first.re + first.im, Vec{}}.Store(bins);
  FftVec{first.re - first.im, Vec{}}.Store(bins + n * kFftValue);
  for (int64_t k = 1; k < n; ++k) {
    const FftMirrored m(FftVec::Load(y + k * kFftValue), FftVec::Load(y + (n - k) * kFftValue));
    ((m.sum + m.difference.Times(roots + 2 * k).Turned()) * 0.5f).Store(bins + k * kFftValue);
  }
}

void JoinHalves(const float* bins, int64_t n, const float* roots, float* values) {
  const auto bin = [&](int64_t k) __attribute__((always_inline)) {
    FftVec v = FftVec::Load(bins + k * kFftValue);
    if (k == 0 || k == n) v.im = Vec{};
    return v;
  };
  for (int64_t k = 0; k < n; ++k) {
    const FftMirrored m(bin(k), bin(n - k));
    const float root[2] = {roots[2 * k], -roots[2 * k + 1]};
    const FftVec turn = m.difference.Times(root);  // and plus i times it
    FftVec{m.sum.re - turn.im, m.sum.im + turn.re}.Store(values + k * kFftValue);
  }
}

}  // namespace

void FillFftLines(FftLineLoops& t);
void FillFftLines(FftLineLoops& t) {
  t = {TurnLines, TurnLinesBack, ExchangeParts, SplitHalves, JoinHalves};
}
void FillFft(FftLoops<float>& t);
void FillFft(FftLoops<float>& t) {
  t.lanes = kLanes;
  t.pass = Pass<Vec, float>;
}
void FillFft(FftLoops<double>& t);
void FillFft(FftLoops<double>& t) {
  t.lanes = kVecBytes / 8;
  t.pass = Pass<DoubleVec, double>;
}

}  // namespace smelt::SMELT_ISA_NAMESPACE
