// TensorFlow Lite files (.tflite): a flatbuffer of subgraphs of tensors and operators, of which
// tflite.fbs says all fields. docs/formats/tflite.md draws it.
//
// LiteModel is the file as it is: what an operator means is the business of lite/. Bytes are
// untrusted: whatever ReadTflite returns has indices that are there, sizes that fit, and enums with
// names. Thread safe.
#ifndef SMELT_WIRE_TFLITE_TFLITE_H_
#define SMELT_WIRE_TFLITE_TFLITE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "smelt/graph/attr.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// The version of the format that smelt writes.
inline constexpr uint32_t kTfliteVersion = 3;

// How integers stand for real numbers: scale * (q - zero_point), one for the tensor or one for each
// index of `dimension`.
struct LiteQuantization {
  std::vector<float> min, max;  // of what was seen; may be empty
  std::vector<float> scale;     // empty: not quantized
  std::vector<int64_t> zero_point;
  int32_t dimension = 0;
  // Blocks of `block_size` elements along `dimension`; the tensors that hold the scales and zero
  // points (-1: none).
  struct Blockwise {
    int32_t scales = -1, zero_points = -1, block_size = 0;
    bool operator==(const Blockwise&) const = default;
  };
  std::optional<Blockwise> blockwise;
  std::string custom;  // of CustomQuantization

  bool empty() const {
    return min.empty() && max.empty() && scale.empty() && !blockwise && custom.empty();
  }
  bool operator==(const LiteQuantization&) const = default;
};

// One dimension of a sparse tensor: dense, or compressed rows.
struct LiteSparseDimension {
  bool compressed = false;
  int32_t dense_size = 0;
  std::vector<int32_t> segments, indices;
};
struct LiteSparsity {
  std::vector<int32_t> traversal_order, block_map;
  std::vector<LiteSparseDimension> dimensions;
};

struct LiteTensor {
  std::string name;
  Dtype type = Dtype::kFloat;
  std::vector<int32_t> shape;
  std::vector<int32_t> shape_signature;  // -1: free; empty: as `shape`
  bool has_rank = false;                 // says that an empty shape is a scalar's
  uint32_t buffer = 0;                   // 0: no constant
  bool is_variable = false;
  LiteQuantization quantization;
  std::shared_ptr<const LiteSparsity> sparsity;  // nullptr: dense
};

struct LiteOperator {
  std::string op;  // "CONV_2D"; of a custom op its own name
  bool custom = false;
  int32_t version = 1;
  std::vector<int32_t> inputs;  // -1: left out
  std::vector<int32_t> outputs;
  // The fields of its options that differ from the schema's defaults, by name; enums are strings,
  // element types types. A table that the operator does not have is no error: it has the defaults.
  AttrMap options;
  std::string custom_options;
  std::vector<bool> mutating_variable_inputs;
  std::vector<int32_t> intermediates;
};

struct LiteSubgraph {
  std::string name;
  std::vector<LiteTensor> tensors;
  std::vector<int32_t> inputs, outputs;
  std::vector<LiteOperator> operators;  // in the order in which they run
};

// Bytes, and what keeps them.
struct LiteBuffer {
  absl::string_view bytes;
  std::shared_ptr<const void> owner;
};

struct LiteMetadata {
  std::string name;
  uint32_t buffer = 0;
};

// The tensors of a subgraph by the names that callers use.
struct LiteSignature {
  std::string key;
  std::vector<std::pair<std::string, int32_t>> inputs, outputs;
  uint32_t subgraph = 0;
};

struct LiteModel {
  uint32_t version = kTfliteVersion;
  std::string description;
  std::vector<LiteSubgraph> subgraphs;  // the first is the one without a signature's name
  std::vector<LiteBuffer> buffers;      // buffer 0 is empty
  std::vector<LiteMetadata> metadata;
  std::vector<LiteSignature> signatures;
};

// Do the bytes begin as a .tflite file does?
inline bool IsTflite(absl::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3";
}
// INVALID_ARGUMENT for what is no .tflite file, or says what cannot be: the message names the
// subgraph and the tensor or operator. UNIMPLEMENTED for buffers in other files. The buffers of the
// model lie in `bytes`, which `owner` keeps.
StatusOr<LiteModel> ReadTflite(absl::string_view bytes, std::shared_ptr<const void> owner);
// The constant that a tensor states; invalid where it states none. Numbers share the file's bytes
// where these are aligned. INVALID_ARGUMENT when they are not as many as the shape wants;
// RESOURCE_EXHAUSTED. Elements of less than a byte are unpacked, sparse tensors made dense.
StatusOr<Tensor> LiteConstant(const LiteModel& model, const LiteTensor& tensor);
// The bytes of a buffer for the tensor: what LiteConstant reads. Shares the tensor's where it can.
// UNIMPLEMENTED for types that files do not have.
StatusOr<LiteBuffer> LiteBytes(const Tensor& value);

// Buffers of so many bytes in all still lie in the flatbuffer, which holds less than 2 GiB; the
// tables beside them take their part.
inline constexpr uint64_t kMostTfliteInside = (uint64_t{1} << 31) - (uint64_t{64} << 20);
// Calls `write` with the file's bytes, piece by piece: a flatbuffer, and behind it, at offsets that
// are multiples of 16, the buffers and custom options where all together are more than
// `most_inside`, or `buffers_outside` says so; metadata lie in the flatbuffer, and those of such a
// file have "buffer_location". Buffers of equal bytes are written once. INVALID_ARGUMENT for an
// operator, an option or a type that the schema does not have.
Status WriteTflite(const LiteModel& model, bool buffers_outside,
                   absl::FunctionRef<Status(absl::string_view bytes)> write,
                   uint64_t most_inside = kMostTfliteInside);

// "DT_INT8" is number 9: TensorType by our types; nullopt: files do not have it.
std::optional<int8_t> LiteTypeOf(Dtype type);
std::optional<Dtype> DtypeOfLite(int8_t type);

// The number of a builtin by its name; -1: there is none, or it is no operator that a file has
// (CUSTOM, DELEGATE).
int LiteBuiltin(absl::string_view op);

// One field of a builtin's options, in the order of the schema.
struct LiteOption {
  std::string name;
  Attr default_value;  // of the kind that the field has in LiteOperator::options
};
// Empty: the op has none, or is none. Lives as long as the process.
const std::vector<LiteOption>& LiteOptions(absl::string_view op);

}  // namespace smelt

#endif  // SMELT_WIRE_TFLITE_TFLITE_H_
