// Tensors as TensorFlow prints them: in Assert and Print, and in StringFormat and PrintV2.
#ifndef SMELT_KERNELS_COMMON_SUMMARIZE_H_
#define SMELT_KERNELS_COMMON_SUMMARIZE_H_

#include <string>

#include "smelt/tensor/tensor.h"

namespace smelt {

// The first `limit` elements (-1: all), rows in brackets but for the outermost:
// "[0 1][2...]...".
std::string SummarizeFirst(const Tensor& t, int64_t limit);

// `ends` elements (-1: all) from both ends of every dimension, rows on lines of their own, strings
// quoted: "[[0 1]\n [2 3]]".
std::string SummarizeEnds(const Tensor& t, int64_t ends);

}  // namespace smelt

#endif  // SMELT_KERNELS_COMMON_SUMMARIZE_H_
