#include "smelt/wire/proto/proto_internal.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <climits>

namespace smelt {
namespace {

void SerializeInto(const google::protobuf::Message& message, size_t size, std::string* out) {
  out->reserve(size);
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&coded);
}

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  void AddWarning(int line, int column, const std::string& message) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

void QuietProtobuf() {
  static const bool once = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  (void)once;
}

StatusOr<std::string> SerializeProto(const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  if (size > INT_MAX) {
    return InvalidArgument(message.GetDescriptor()->full_name(), " of ", size,
                           " bytes is larger than the 2 GiB that a protocol buffer may have");
  }
  std::string out;
  SerializeInto(message, size, &out);
  return out;
}

std::string Remainder(const google::protobuf::Message& message) {
  std::string out;
  if (const size_t size = message.ByteSizeLong(); size != 0) SerializeInto(message, size, &out);
  return out;
}

Status ParseBinaryProto(absl::string_view bytes, absl::string_view what,
                        google::protobuf::Message* message) {
  QuietProtobuf();
  if (bytes.size() > INT_MAX) {
    return InvalidArgument("Can't parse ", what, ": ", bytes.size(), " bytes, more than 2 GiB");
  }
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("Can't parse ", what);
  }
  return OkStatus();
}

Status ParseTextProto(absl::string_view text, absl::string_view what,
                      google::protobuf::Message* message) {
  QuietProtobuf();
  if (text.size() > INT_MAX) {
    return InvalidArgument("Can't parse ", what, ": ", text.size(), " bytes, more than 2 GiB");
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.AllowUnknownExtension(true);
  parser.SetRecursionLimit(google::protobuf::io::CodedInputStream::GetDefaultRecursionLimit());
  parser.RecordErrorsTo(&error);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, message)) return DataLoss("Can't parse ", what, ": ", error.text());
  return OkStatus();
}

}  // namespace smelt
