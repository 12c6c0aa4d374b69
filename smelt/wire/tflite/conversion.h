// The metadata "CONVERSION_METADATA" of a .tflite file: what it was made of, and how. A flatbuffer
// of its own (ConversionMetadata in tflite.fbs) in a metadata's buffer. Bytes are untrusted. Thread
// safe.
#ifndef SMELT_WIRE_TFLITE_CONVERSION_H_
#define SMELT_WIRE_TFLITE_CONVERSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

inline constexpr absl::string_view kConversionMetadata = "CONVERSION_METADATA";

// The kinds of model that converters are given; numbers of the schema's ModelType.
enum class LiteSource : int32_t { kNone = 0, kSavedModel = 1, kGraphDef = 4 };
// Numbers of the schema's ModelOptimizationMode.
enum class LiteMode : int32_t {
  kFloat16 = 1001,
  kDynamicRange = 1002,
  kFullInteger = 1003,
  kInt16 = 1004,
  kTraining = 2000,
  kRandomSparsity = 3001,
  kBlockSparsity = 3002,
};

struct LiteConversion {
  std::string tensorflow_version;
  uint32_t api_version = 0;
  LiteSource source = LiteSource::kNone;  // may have numbers without a name
  uint64_t model_hash = 0;
  std::vector<LiteMode> modes;  // may have numbers without a name
  bool allow_custom_ops = false;
  bool enable_select_tf_ops = false, force_select_tf_ops = false;
};

std::string WriteLiteConversion(const LiteConversion& conversion);
// INVALID_ARGUMENT for bytes that are none.
StatusOr<LiteConversion> ReadLiteConversion(absl::string_view bytes);

// "TF_SAVED_MODEL", "PTQ_FLOAT16"; the number where it has no name.
std::string NameOfSource(LiteSource source);
std::string NameOfMode(LiteMode mode);

}  // namespace smelt

#endif  // SMELT_WIRE_TFLITE_CONVERSION_H_
