#include "smelt/wire/saved_model/type_spec.h"

#include "smelt/wire/proto/composite_tensor.pb.h"

namespace smelt {

std::optional<std::string> TypeSpecClass(absl::string_view metadata) {
  tensorflow::CompositeTensorVariantMetadata message;
  if (!message.ParseFromArray(metadata.data(), static_cast<int>(metadata.size()))) {
    return std::nullopt;
  }
  return tensorflow::TypeSpecProto::TypeSpecClass_Name(message.type_spec_proto().type_spec_class());
}

}  // namespace smelt
