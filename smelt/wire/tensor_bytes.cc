#include "smelt/wire/tensor_bytes.h"

#include <limits>

#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/tensor_proto.h"

namespace smelt {

StatusOr<Tensor> ParseTensorBytes(absl::string_view bytes) {
  tensorflow::TensorProto proto;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("the bytes are no TensorProto");
  }
  return TensorFromProto(proto);
}

StatusOr<std::string> SerializeTensorBytes(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  RETURN_IF_ERROR(TensorToProto(tensor, &proto));
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) {
    return InvalidArgument("a tensor of ", tensor.bytes(), " bytes is too large for a TensorProto");
  }
  return bytes;
}

}  // namespace smelt
