#include "smelt/wire/graph_def/plugin_messages.h"

#include <google/protobuf/arena.h>

#include "smelt/wire/graph_def/attr_proto.h"
#include "smelt/wire/graph_def/graph_def.h"
#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/proto/op_performance_data.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {
namespace {

Status ParsePluginGraph(absl::string_view bytes, tensorflow::GraphDef* proto) {
  if (ParseBinaryProto(bytes, "", proto).ok()) return OkStatus();
  return InvalidArgument("Unparseable tensorflow.GraphDef proto");
}

}  // namespace

StatusOr<std::string> SerializeWithoutBodies(const Graph& graph, const GraphVersions& versions) {
  google::protobuf::Arena arena;
  auto* proto = google::protobuf::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  RETURN_IF_ERROR(GraphToProto(graph, versions, proto, FunctionBodies::kNone));
  return SerializeProto(*proto);
}

StatusOr<std::unique_ptr<Graph>> ParseNodes(absl::string_view graph_def,
                                            std::shared_ptr<FunctionLibrary> library) {
  google::protobuf::Arena arena;
  auto* proto = google::protobuf::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  RETURN_IF_ERROR(ParsePluginGraph(graph_def, proto));
  proto->clear_library();
  GraphVersions ignored;
  return TakeGraph(proto, std::move(library), &ignored);
}

StatusOr<std::map<std::string, std::string>> SerializedSignatures(absl::string_view graph_def) {
  google::protobuf::Arena arena;
  auto* proto = google::protobuf::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  RETURN_IF_ERROR(ParsePluginGraph(graph_def, proto));
  std::map<std::string, std::string> out;
  for (const auto& f : proto->library().function()) {
    ASSIGN_OR_RETURN(out[f.signature().name()], SerializeProto(f.signature()));
  }
  return out;
}

StatusOr<std::string> SerializeOpDef(const OpDef& def) {
  tensorflow::OpDef proto;
  RETURN_IF_ERROR(OpDefToProto(def, &proto));
  return SerializeProto(proto);
}

StatusOr<std::string> SerializeTensorProperties(Dtype dtype, const std::span<const int64_t>* dims,
                                                const Tensor* value) {
  tensorflow::OpInfo::TensorProperties proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(dtype));
  if (dims == nullptr) {
    proto.mutable_shape()->set_unknown_rank(true);
  } else {
    proto.mutable_shape();
    for (const int64_t size : *dims) proto.mutable_shape()->add_dim()->set_size(size);
  }
  if (value != nullptr && !TensorToProto(*value, proto.mutable_value()).ok()) proto.clear_value();
  return SerializeProto(proto);
}

}  // namespace smelt
