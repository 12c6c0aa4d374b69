#include "smelt/wire/graph_def/tensor_bytes.h"

#include <limits>

#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/framework.pb.h"

namespace smelt {

StatusOr<Tensor> ParseTensorBytes(absl::string_view bytes) {
  tensorflow::TensorProto proto;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("the bytes are no TensorProto");
  }
  return TensorFromProto(proto);
}

namespace {

StatusOr<std::string> BytesOf(const tensorflow::TensorProto& proto, const Tensor& tensor) {
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) {
    return InvalidArgument("a tensor of ", tensor.bytes(), " bytes is too large for a TensorProto");
  }
  return bytes;
}

}  // namespace

StatusOr<std::string> SerializeTensorBytes(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  RETURN_IF_ERROR(TensorToProto(tensor, &proto));
  return BytesOf(proto, tensor);
}

StatusOr<std::string> SerializeTensorContent(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  RETURN_IF_ERROR(TensorToProto(tensor, &proto));
  if (tensor.dtype() == Dtype::kString) {
    proto.clear_string_val();
    std::string& content = *proto.mutable_tensor_content();
    for (const std::string& s : tensor.flat<std::string>()) {
      size_t n = s.size();
      for (; n >= 0x80; n >>= 7) content.push_back(static_cast<char>(n | 0x80));
      content.push_back(static_cast<char>(n));
    }
    for (const std::string& s : tensor.flat<std::string>()) content += s;
  }
  return BytesOf(proto, tensor);
}

}  // namespace smelt
