// Philox 4x32-10, the counter-based generator behind TensorFlow's random ops (Salmon et al., 2011).
#ifndef SMELT_KERNELS_COMMON_PHILOX_H_
#define SMELT_KERNELS_COMMON_PHILOX_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace smelt {

// A stream of blocks of four 32-bit words. Copies continue independently. Not thread safe.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  static constexpr int kWords = 4;

  Philox() = default;
  // The stream that TensorFlow draws from a pair of seeds: `seed` is the key, `stream` the upper
  // half of the counter.
  Philox(uint64_t seed, uint64_t stream)
      : counter_{0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
        key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}
  Philox(const Block& counter, const std::array<uint32_t, 2>& key) : counter_(counter), key_(key) {}

  const Block& counter() const { return counter_; }
  const std::array<uint32_t, 2>& key() const { return key_; }

  // Advances as if that many blocks had been drawn.
  void Skip(uint64_t blocks) {
    // As TensorFlow: a carry that makes 2^32 of the upper half of `blocks` is lost.
    const auto lower = static_cast<uint32_t>(blocks);
    auto upper = static_cast<uint32_t>(blocks >> 32);
    counter_[0] += lower;
    if (counter_[0] < lower) ++upper;
    counter_[1] += upper;
    if (counter_[1] < upper && ++counter_[2] == 0) ++counter_[3];
  }

  // The next block.
  Block operator()() {
    Block c = counter_;
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    Skip(1);
    return c;
  }

 private:
  Block counter_{};
  std::array<uint32_t, 2> key_{};
};

// The same stream word by word.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& gen) : gen_(gen) {}
  uint32_t operator()() {
    if (used_ == Philox::kWords) {
      block_ = gen_();
      used_ = 0;
    }
    return block_[static_cast<size_t>(used_++)];
  }

 private:
  Philox gen_;
  Philox::Block block_{};
  int used_ = Philox::kWords;
};

// In [0, 1), of the 23 low bits of a word, or of 52 bits of two: as TensorFlow makes them.
inline float PhiloxFloat(uint32_t x) {
  return std::bit_cast<float>((x & 0x7fffff) | 0x3f800000) - 1.0f;
}
inline double PhiloxDouble(uint32_t x0, uint32_t x1) {
  const uint64_t mantissa = uint64_t{x0 & 0xfffff} << 32 | x1;
  return std::bit_cast<double>(uint64_t{1023} << 52 | mantissa) - 1.0;
}

// Numbers drawn one after another from the words of a stream. Not thread safe.
class PhiloxDraws {
 public:
  explicit PhiloxDraws(const Philox& gen) : words_(gen) {}
  uint32_t Word() { return words_(); }
  // In [0, 1).
  float Uniform() { return PhiloxFloat(words_()); }
  double UniformDouble() {
    const uint32_t x0 = words_();
    return PhiloxDouble(x0, words_());
  }
  // Evenly in [0, n); 0 for n = 0. Draws at least one word, Below64 at least two, the low one
  // first.
  uint32_t Below(uint32_t n) {
    return Even(n, [this] { return words_(); });
  }
  uint64_t Below64(uint64_t n) {
    return Even(n, [this] {
      const uint64_t low = words_();
      return low | uint64_t{words_()} << 32;
    });
  }

 private:
  template <typename T, typename Draw>
  static T Even(T n, Draw draw) {
    if ((n & (n - 1)) == 0) return n == 0 ? draw() * n : draw() & (n - 1);
    // 2^bits mod n: without draws below it, every remainder is as likely as the others.
    const T uneven = ~T{0} % n + 1;
    T v = draw();
    while (v < uneven) v = draw();
    return v % n;
  }

  PhiloxWords words_;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_PHILOX_H_
