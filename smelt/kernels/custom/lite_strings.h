// Tensors of strings as TensorFlow Lite's operators see them: one block, whose form lite_op.h
// states.
#ifndef SMELT_KERNELS_CUSTOM_LITE_STRINGS_H_
#define SMELT_KERNELS_CUSTOM_LITE_STRINGS_H_

#include "absl/strings/string_view.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// The block, as uint8. INVALID_ARGUMENT for more than an int32 counts. REQUIRES: strings.
StatusOr<Tensor> LiteBlockOfStrings(const Tensor& strings);
// Fills `strings`. INVALID_ARGUMENT for a block of another number of strings, and where its offsets
// do not fit.
Status StringsOfLiteBlock(absl::string_view block, Tensor& strings);

}  // namespace smelt

#endif  // SMELT_KERNELS_CUSTOM_LITE_STRINGS_H_
