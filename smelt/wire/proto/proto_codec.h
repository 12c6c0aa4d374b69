// Fields of serialized protocol messages <-> tensors, for message types that are known only by
// their descriptors. Bytes are untrusted. Immutable once made, thread safe.
#ifndef SMELT_WIRE_PROTO_PROTO_CODEC_H_
#define SMELT_WIRE_PROTO_PROTO_CODEC_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

class ProtoCodec {
 public:
  virtual ~ProtoCodec() = default;
  enum class Use : uint8_t { kDecode, kEncode };
  // `source`: "local://" (messages that smelt itself has), "bytes://" and a serialized
  // FileDescriptorSet, or the path of a file that holds one. Fields go by their names,
  // extensions by their full names. INVALID_ARGUMENT in TensorFlow's words.
  // Without `types` only the names are checked.
  static StatusOr<std::unique_ptr<ProtoCodec>> Make(absl::string_view source,
                                                    absl::string_view message_type,
                                                    std::span<const std::string> field_names,
                                                    std::span<const Dtype> types, Use use);

  // For each field a tensor [messages, most values], padded with the field's default, and sizes
  // [messages, fields]. `text`: the messages are in text format; `sanitize`: each is first parsed
  // and written anew. DATA_LOSS for what does not parse.
  struct Decoded {
    Tensor sizes;
    std::vector<Tensor> values;
  };
  virtual StatusOr<Decoded> Decode(std::span<const std::string> messages, bool text, bool sanitize,
                                   Allocator* allocator) const = 0;
  // The first sizes[f] values of each field f, fields in the order of their numbers; values[f] lie
  // from element begin[f] on.
  virtual std::string Encode(std::span<const int32_t> sizes, std::span<const Tensor* const> values,
                             std::span<const int64_t> begin) const = 0;
};

// A tensorflow.Example in JSON as bytes. INVALID_ARGUMENT says what is wrong with the text.
StatusOr<std::string> ExampleFromJson(absl::string_view json);

}  // namespace smelt

#endif  // SMELT_WIRE_PROTO_PROTO_CODEC_H_
