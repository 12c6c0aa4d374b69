// How much two boxes have in common, for the kernels that suppress boxes. Thread safe.
#ifndef SMELT_KERNELS_IMAGE_BOXES_H_
#define SMELT_KERNELS_IMAGE_BOXES_H_

#include <algorithm>

namespace smelt::image {

// Intersection over union of two boxes [y, x, y, x], corners in any order; 0 for an empty box.
inline float BoxOverlap(const float* a, const float* b) {
  const float a_top = std::min(a[0], a[2]), a_bottom = std::max(a[0], a[2]);
  const float a_left = std::min(a[1], a[3]), a_right = std::max(a[1], a[3]);
  const float b_top = std::min(b[0], b[2]), b_bottom = std::max(b[0], b[2]);
  const float b_left = std::min(b[1], b[3]), b_right = std::max(b[1], b[3]);
  const float area_a = (a_bottom - a_top) * (a_right - a_left);
  const float area_b = (b_bottom - b_top) * (b_right - b_left);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float height = std::max(std::min(a_bottom, b_bottom) - std::max(a_top, b_top), 0.0f);
  const float width = std::max(std::min(a_right, b_right) - std::max(a_left, b_left), 0.0f);
  const float common = height * width;
  return common / (area_a + area_b - common);
}

}  // namespace smelt::image

#endif  // SMELT_KERNELS_IMAGE_BOXES_H_
