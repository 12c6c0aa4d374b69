// What every translation unit of wire/ needs of protobuf. Private to wire/.
#ifndef SMELT_WIRE_PROTO_PROTO_INTERNAL_H_
#define SMELT_WIRE_PROTO_PROTO_INTERNAL_H_

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// The bytes of `message`, map entries sorted by key. INVALID_ARGUMENT above 2 GiB, which no reader
// of the format takes.
StatusOr<std::string> SerializeProto(const google::protobuf::Message& message);

// The bytes of `message` after the fields that smelt's types hold were taken out of it; "" when
// nothing is left. REQUIRES: it was parsed, hence is below 2 GiB.
std::string Remainder(const google::protobuf::Message& message);

// Fields of the message itself (not of those within) that this program's definition lacks. What
// reflection would answer, which builds the descriptors of all messages for that: half a
// millisecond of every first answer. Messages of proto3 have no accessor of their own.
class UnknownFields : public google::protobuf::MessageLite {
 public:
  static bool Any(const google::protobuf::Message& message) {
    using google::protobuf::UnknownFieldSet;
    const auto& within = message.*(&UnknownFields::_internal_metadata_);
    return !within.unknown_fields<UnknownFieldSet>(UnknownFieldSet::default_instance).empty();
  }
};
inline bool HasUnknownFields(const google::protobuf::Message& message) {
  return UnknownFields::Any(message);
}

// Keeps protobuf from printing parse errors to stderr, from now on: they are returned as Status.
// Whoever parses without the functions below calls it first.
void QuietProtobuf();

// Replaces `message`. DATA_LOSS naming `what` ("PATH as binary proto") when the bytes do not parse.
// Nesting is bounded by protobuf's limit of 100, sizes by the bytes given.
Status ParseBinaryProto(absl::string_view bytes, absl::string_view what,
                        google::protobuf::Message* message);
// The same for text format; the error carries line and column. Unknown fields are skipped.
Status ParseTextProto(absl::string_view text, absl::string_view what,
                      google::protobuf::Message* message);

}  // namespace smelt

#endif  // SMELT_WIRE_PROTO_PROTO_INTERNAL_H_
