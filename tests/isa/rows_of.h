// Rows for the tests of loops: lengths with odd tails, numbers drawn at random with those among
// them that loops get wrong.
#ifndef SMELT_TESTS_ISA_ROWS_OF_H_
#define SMELT_TESTS_ISA_ROWS_OF_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace smelt {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// About the widths of vectors and what loops unroll.
inline const std::vector<int64_t>& Lengths() {
  static const std::vector<int64_t> lengths = {0,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16,
                                               17, 31, 32, 33, 63, 64, 65, 130, 257, 1000};
  return lengths;
}

inline std::mt19937_64& Random() {
  static std::mt19937_64 random(11);
  return random;
}
inline std::vector<float> Floats(int64_t n, float low, float high) {
  std::uniform_real_distribution<float> any(low, high);
  std::vector<float> row(static_cast<size_t>(n));
  for (float& x : row) x = any(Random());
  return row;
}
// Any numbers of the type, every fifth of them special.
template <typename T>
std::vector<T> Anything(int64_t n) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> special = {0, 1, Limits::lowest(), Limits::max(), static_cast<T>(-1)};
  if constexpr (std::is_floating_point_v<T>) {
    special = {0, T(-0.0), 1, -Limits::infinity(), Limits::infinity(), Limits::quiet_NaN()};
  }
  std::vector<T> row(static_cast<size_t>(n));
  for (T& x : row) {
    if constexpr (std::is_floating_point_v<T>) {
      x = static_cast<T>(std::normal_distribution<double>(0, 100)(Random()));
    } else {
      x = static_cast<T>(Random()());
    }
    if (Random()() % 5 == 0) x = special[Random()() % special.size()];
    if (Random()() % 3 == 0 && &x != row.data()) x = (&x)[-1];
  }
  return row;
}

// A copy of a row that ends where memory does: reading behind it, by a vector too, ends the
// program.
template <typename T>
class AtTheEdge {
 public:
  explicit AtTheEdge(const std::vector<T>& row) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = row.size() * sizeof(T);
    const size_t room = (bytes + page - 1) / page * page;
    size_ = room + page;
    memory_ = static_cast<char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + room, page, PROT_NONE) != 0) abort();
    row_ = reinterpret_cast<T*>(memory_ + room - bytes);
    if (bytes > 0) std::memcpy(row_, row.data(), bytes);
  }
  ~AtTheEdge() { munmap(memory_, size_); }
  AtTheEdge(const AtTheEdge&) = delete;
  AtTheEdge& operator=(const AtTheEdge&) = delete;
  T* data() { return row_; }

 private:
  char* memory_;
  size_t size_;
  T* row_;
};

// Equal, or both NaN. -0 is 0.
template <typename T>
bool Same(T a, T b) {
  return a == b || (a != a && b != b);
}
// Within `tolerance` of `scale` or of the wanted number, whichever is larger; infinities and NaN as
// wanted.
inline bool Near(float got, double wanted, double tolerance, double scale = 0) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (std::isinf(static_cast<float>(wanted))) return got == static_cast<float>(wanted);
  return std::abs(got - wanted) <= tolerance * std::max(std::abs(wanted), scale) + 2e-38;
}

}  // namespace smelt

#endif  // SMELT_TESTS_ISA_ROWS_OF_H_
