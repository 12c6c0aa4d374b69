// Fourier transforms of one length, many lines at once. For the files of this folder.
#ifndef SMELT_KERNELS_FFT_LINES_H_
#define SMELT_KERNELS_FFT_LINES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "smelt/kernels/isa/fft.h"

namespace smelt::fft {

// The passes of transforms of one length, one for each of its small factors. Immutable, so thread
// safe.
template <typename T>
class LinePlan {
 public:
  // Is every prime factor of n small enough for passes to be faster than a convolution?
  static bool Suits(int64_t n);
  // The plan for length n. The first plans of a process, but not those of huge lengths, are kept
  // for later calls. REQUIRES: Suits(n).
  static std::shared_ptr<const LinePlan> Of(int64_t n);

  int64_t length() const { return length_; }
  // e^(-2 pi i k / 2n) for k <= n, as numbers: what splits lines of twice the length.
  const std::vector<T>& roots_of_twice() const { return roots_of_twice_; }
  // Numbers in a buffer of one value per point and lane.
  int64_t buffer_size() const { return 2 * length_ * IsaFft<T>().lanes; }
  // Numbers in Run's scratch.
  int64_t scratch_size() const { return 2 * largest_ * IsaFft<T>().lanes; }
  // The forward transform, not scaled, of each lane of `a` (FftLoops); the result is in `a` or in
  // `b`, as returned, and the other is overwritten. For the inverse the caller exchanges real and
  // imaginary parts before and after.
  T* Run(T* a, T* b, T* scratch) const;

 private:
  struct Stage {
    int64_t radix, ido, l1;
    std::vector<T> twiddles, roots;
  };
  explicit LinePlan(int64_t n);

  int64_t length_, largest_ = 1;
  std::vector<Stage> stages_;
  std::vector<T> roots_of_twice_;
};

extern template class LinePlan<float>;
extern template class LinePlan<double>;

}  // namespace smelt::fft

#endif  // SMELT_KERNELS_FFT_LINES_H_
