// A layer's input as matrices whose rows are its windows (isa/matrix_tiles.h): where they lie, in a
// padded copy in which windows overlap, or one behind the other in a copy of its own.
#ifndef SMELT_KERNELS_NN_MATRIX_ROWS_H_
#define SMELT_KERNELS_NN_MATRIX_ROWS_H_

#include <algorithm>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "smelt/kernels/isa/matrix_tiles.h"
#include "smelt/kernels/nn/int8_image.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

// Immutable, so thread safe.
class MatrixRows {
 public:
  // `element`: bytes of a number. `alone`: what lies behind a segment's numbers is zeros, as a
  // product with no number is none. Made for as many threads as the calling one has.
  // REQUIRES: Suits.
  MatrixRows(const Int8Window& window, int64_t element, bool alone);

  // Are there enough rows to fill tiles, and sizes within bounds, and no groups?
  static bool Suits(const Int8Window& window);

  // Are windows, where they are to be copied, many lines of few bytes, which takes longer than
  // other ways?
  static bool CopiesShortLines(const Int8Window& window, int64_t element);

  // Weights as the runs read them, in panels of kMatrixColumns.
  int64_t num_panels() const { return panels_; }
  // Two layers of the same weights that have as many read the same packed ones.
  int64_t num_segments() const { return std::ssize(segments_); }
  int64_t bytes_of_panel() const { return std::ssize(segments_) * steps_ * 2 * kMatrixStepWeights; }
  // weights: [kernel_h, kernel_w, depth, units], or [units, depth] of a product where `transposed`,
  // each column times its factor where there are some (bfloat16); their pages are given back.
  // Forms are kept (KeptForm).
  StatusOr<Tensor> Packed(const Tensor& weights, bool transposed, std::span<const float> factors,
                          Allocator* allocator) const;

  size_t scratch_bytes() const;
  // Panels [first, last). Where `ahead` is not 0, those so many behind each are asked for
  // meanwhile: part `share` of `shares` of them.
  struct PanelRange {
    int64_t first = 0, last = 0;
    int64_t ahead = 0, share = 0, shares = 1;
  };
  // Calls run(what it has of the input and the places, panels) on threads, between begin and end of
  // the tiles. `zero`: each byte of a number beside the image.
  using RunFn = absl::FunctionRef<void(const MatrixRun&, const PanelRange&)>;
  void Run(const void* x, uint8_t zero, void* scratch, RunFn run) const;
  // Calls multiply(first column) for panels that the same rows are multiplied by one after another,
  // as their weights stay in the nearest cache. `run` has all of it that is the panels' by then;
  // `weights`: those of all panels.
  template <typename F>
  void ForPanels(const PanelRange& range, const void* weights, MatrixRun* run, F&& multiply) const {
    const auto* all = static_cast<const char*>(weights);
    for (int64_t p = range.first; p < range.last; p += panels_at_once_) {
      const int64_t end = std::min(p + panels_at_once_, range.last), column = p * kMatrixColumns;
      const int64_t next = p + range.ahead, most = std::min(end - p, panels_ - next);
      run->weights = all + p * bytes_of_panel();
      run->columns = std::min(end * kMatrixColumns, image_.w.units) - column;
      run->ahead = nullptr;
      run->ahead_bytes = 0;
      if (range.ahead > 0 && most > 0) {
        run->ahead_bytes = most * bytes_of_panel() / range.shares;
        run->ahead = all + next * bytes_of_panel() + range.share * run->ahead_bytes;
      }
      multiply(column);
    }
  }

 private:
  enum class Kind : uint8_t { kInPlace, kImage, kLines, kCopied };
  // Rows [from, to) of image `image` of a band, and panels.
  struct Task {
    int64_t image, from, to;
    PanelRange panels;
  };
  template <typename T>
  void PackAs(const T* weights, bool transposed, char* to) const;
  template <typename T>
  void PackGroup(const T* weights, bool transposed, int64_t first, int64_t numbers, int64_t column,
                 int64_t columns, uint32_t* to) const;
  // `row_bytes`: from a row's begin to the next one's.
  template <typename F>
  void ForTasks(int64_t images, int64_t rows_of_image, int64_t row_bytes, F&& run) const;
  void RunInPlace(const char* x, char* scratch, RunFn run) const;
  void RunImage(const char* x, uint8_t zero, char* scratch, RunFn run) const;
  void RunFlat(const Int8Band& band, const char* image, RunFn run) const;
  void RunLines(const Int8Band& band, const char* image, RunFn run) const;
  void RunCopied(const char* x, uint8_t zero, char* scratch, RunFn run) const;
  // The windows of outputs [from, to), row_step_ bytes apart.
  void CopyWindows(const char* x, uint8_t zero, int64_t from, int64_t to, char* rows) const;
  // One of them, beyond whose image there is `zero`.
  void CopyBorder(const char* image, uint8_t zero, int64_t line, int64_t column, char* row) const;
  MatrixRun RunOf(const char* x, int64_t step) const;

  const Int8Image image_;
  const int64_t element_;
  const bool alone_;
  Kind kind_;
  int64_t panels_, panels_at_once_;
  std::vector<int64_t> segments_;          // bytes
  int64_t length_;                         // numbers of a segment
  int64_t steps_;                          // of 64 bytes, of a segment
  int64_t step_bytes_ = kMatrixStepBytes;  // of those, that rows have
  int64_t rows_of_part_;
  int64_t tail_ = 0;                          // kInPlace: last rows, that are copied
  int64_t row_step_ = 0;                      // kInPlace's tail and kCopied: bytes from row to row
  int64_t band_images_ = 1, band_lines_ = 1;  // kImage, kLines
  int64_t slots_ = 1, parts_ = 1;             // kCopied
};

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_MATRIX_ROWS_H_
