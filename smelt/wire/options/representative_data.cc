#include "smelt/wire/options/representative_data.h"

#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/quantization.pb.h"

namespace smelt {

using tensorflow::quantization::RepresentativeDataSample;

StatusOr<std::map<std::string, Tensor>> ParseRepresentativeSample(absl::string_view bytes) {
  RepresentativeDataSample sample;
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "RepresentativeDataSample as binary proto", &sample));
  std::map<std::string, Tensor> out;
  for (const auto& [key, proto] : sample.tensor_proto_inputs()) {
    auto tensor = TensorFromProto(proto);
    if (!tensor.ok()) return Prefix(tensor.status(), absl::StrCat("Input '", key, "': "));
    out[key] = *std::move(tensor);
  }
  return out;
}

StatusOr<std::string> SerializeRepresentativeSample(const std::map<std::string, Tensor>& inputs) {
  RepresentativeDataSample sample;
  for (const auto& [key, tensor] : inputs) {
    RETURN_IF_ERROR(TensorToProto(tensor, &(*sample.mutable_tensor_proto_inputs())[key]));
  }
  return SerializeProto(sample);
}

}  // namespace smelt
