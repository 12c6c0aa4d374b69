// The precision that operations made for XLA ask for; here everything is computed in full.
#ifndef SMELT_WIRE_XLA_PRECISION_CONFIG_H_
#define SMELT_WIRE_XLA_PRECISION_CONFIG_H_

#include "absl/strings/string_view.h"

namespace smelt {

// Whether the bytes, which are untrusted, are a serialised xla.PrecisionConfig. Thread safe.
bool IsPrecisionConfig(absl::string_view bytes);

}  // namespace smelt

#endif  // SMELT_WIRE_XLA_PRECISION_CONFIG_H_
