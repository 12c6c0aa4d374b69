// Kernels that make a few lines of an image at a time, out of the lines that these need: what lies
// between two of them need never exist whole.
#ifndef SMELT_KERNELS_LINE_KERNEL_H_
#define SMELT_KERNELS_LINE_KERNEL_H_

#include <cstdint>

namespace smelt {

// Of one image: [first, last).
struct LineRange {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
};

// Input 0 of the bound kernel and its output, as lines one behind the other.
struct LineSizes {
  int64_t images = 0;                  // of both
  int64_t in_lines = 0, in_bytes = 0;  // of an image, and of each of these
  int64_t out_lines = 0, out_bytes = 0;
  int64_t weights = 0;  // bytes that each call reads
};

// What a BoundKernel may be as well (BoundKernel::lines). Thread safe.
class LineKernel {
 public:
  virtual ~LineKernel() = default;
  virtual LineSizes sizes() const = 0;
  // The lines of input 0 that lines `out` of a result read, those beside the image left out. Later
  // lines read no earlier ones.
  virtual LineRange Reads(LineRange out) const = 0;
  // Makes lines `out` of image `image`, in the calling thread, as Run makes them within rounding.
  // `from`: where the lines Reads(out) lie, one behind the other; `to`: where those of the result
  // go, which is nowhere that `from` is. inputs[i] are the bytes of the other inputs, whole.
  virtual void MakeLines(const void* const* inputs, const void* from, int64_t image, LineRange out,
                         void* to) const = 0;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_LINE_KERNEL_H_
