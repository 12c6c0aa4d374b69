// Sizes of tensors whose dimensions are merged and taken apart again.
#ifndef SMELT_LITE_FIT_SIZES_H_
#define SMELT_LITE_FIT_SIZES_H_

#include <span>
#include <utility>
#include <vector>

#include "smelt/lite/legalizer.h"

namespace smelt {

// A size, as far as it is known: that number, times sizes that tensors have when it runs.
struct LiteSize {
  int64_t known = 1;
  std::vector<std::pair<Endpoint, int>> free;  // tensors and their dimensions

  bool is_known() const { return free.empty(); }
  LiteSize& operator*=(const LiteSize& o) {
    known *= o.known;
    free.insert(free.end(), o.free.begin(), o.free.end());
    return *this;
  }
};
using LiteSizes = std::vector<LiteSize>;

// REQUIRES: the rank of `e` is known.
LiteSizes SizesOf(Endpoint e, const Legalizer& l);

// Neighbors among dimensions that become one.
struct DimRun {
  int first, count;
};
using DimRuns = std::vector<DimRun>;
LiteSizes MergedSizes(const LiteSizes& sizes, std::span<const DimRun> runs);

// An int32 vector.
StatusOr<Endpoint> SizesVector(const LiteSizes& sizes, Legalizer& l);
// The elements with these sizes, of which there are as many: `e` itself where it has them, a
// constant of a constant, what a reshape reads where that has them, else a reshape.
StatusOr<Endpoint> WithSizes(Endpoint e, const LiteSizes& sizes, Legalizer& l);
// What is known of them.
PartialShape ShapeOfSizes(const LiteSizes& sizes);

}  // namespace smelt

#endif  // SMELT_LITE_FIT_SIZES_H_
