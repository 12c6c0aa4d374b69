// Keys of signatures that are not for requests.
#ifndef SMELT_WIRE_SAVED_MODEL_SIGNATURE_KEYS_H_
#define SMELT_WIRE_SAVED_MODEL_SIGNATURE_KEYS_H_

#include "absl/strings/string_view.h"

namespace smelt {

// What TensorFlow 2 runs once the variables are restored; its only output has the same key.
inline constexpr absl::string_view kInitSignature = "__saved_model_init_op";

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_SIGNATURE_KEYS_H_
