// Windows that move over images: where they stand, and what is the greatest in each.
#ifndef SMELT_LITE_ROWS_WINDOWS_H_
#define SMELT_LITE_ROWS_WINDOWS_H_

#include <vector>

#include "smelt/lite/rows/rows.h"

namespace smelt {

struct WindowDim {
  int64_t in, out, size, stride, rate, before, behind;
};

struct WindowGrid {
  int64_t batch, channels;
  WindowDim rows, columns;
  int64_t places() const { return rows.size * columns.size; }
  PartialShape shape() const { return PartialShape::Of({batch, rows.out, columns.out, channels}); }
};

// Of a node that moves windows of this size over images of the shape `in` (NHWC), by its attributes
// "strides" and "padding". The number of images alone may be free. UNIMPLEMENTED: it reaches
// over images or channels, or, where each place is spelled out, it is of too many.
StatusOr<WindowGrid> WindowGridOf(const Node& n, const PartialShape& in,
                                  const std::vector<int64_t>& size,
                                  const std::vector<int64_t>& rates, bool spelled = true);

// Where the greatest of each window stands, the first of equal ones: its number among all elements
// of its image, an int32.
StatusOr<Endpoint> PlaceOfGreatest(Endpoint image, const WindowGrid& w, Legalizer& l);

}  // namespace smelt

#endif  // SMELT_LITE_ROWS_WINDOWS_H_
