#include "smelt/wire/records/prediction_log.h"

#include <algorithm>

#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/serving.pb.h"

namespace smelt {
namespace {

using tensorflow::serving::PredictionLog;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using TensorProtos = google::protobuf::Map<std::string, tensorflow::TensorProto>;

Status TakeTensors(TensorProtos* protos, absl::string_view what, NamedTensors* out) {
  for (const auto& [name, proto] : *protos) {
    auto tensor = TensorFromProto(proto);
    if (!tensor.ok()) return Prefix(tensor.status(), absl::StrCat(what, " '", name, "': "));
    out->emplace_back(name, *std::move(tensor));
  }
  std::ranges::sort(*out, {}, &NamedTensors::value_type::first);
  protos->clear();
  return OkStatus();
}

Status WriteTensors(const NamedTensors& tensors, absl::string_view what, TensorProtos* protos) {
  for (const auto& [name, tensor] : tensors) {
    if (Status s = TensorToProto(tensor, &(*protos)[name]); !s.ok()) {
      return Prefix(s, absl::StrCat(what, " '", name, "': "));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<PredictionRecord> ParsePredictionLog(absl::string_view bytes) {
  PredictionLog log;
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "PredictionLog as binary proto", &log));
  if (!log.has_predict_log()) {
    const auto* kind = PredictionLog::GetDescriptor()->FindFieldByNumber(log.log_type_case());
    return Unimplemented("A PredictionLog of kind ", kind ? kind->name() : "(none)",
                         " is not supported, only predict_log");
  }
  PredictionRecord record;
  auto* predict = log.mutable_predict_log();
  auto* request = predict->mutable_request();
  record.signature = request->model_spec().signature_name();
  record.model = request->model_spec().name();
  if (request->has_model_spec()) {
    request->mutable_model_spec()->clear_signature_name();
    request->mutable_model_spec()->clear_name();
    if (request->model_spec().ByteSizeLong() == 0) request->clear_model_spec();
  }
  RETURN_IF_ERROR(TakeTensors(request->mutable_inputs(), "Input", &record.inputs));
  if (request->ByteSizeLong() == 0) predict->clear_request();
  record.has_response = predict->has_response();
  if (record.has_response) {
    RETURN_IF_ERROR(
        TakeTensors(predict->mutable_response()->mutable_outputs(), "Output", &record.outputs));
    if (predict->response().ByteSizeLong() == 0) predict->clear_response();
  }
  if (predict->ByteSizeLong() == 0) log.clear_predict_log();
  if (log.has_log_metadata()) {
    auto* metadata = log.mutable_log_metadata();
    record.tags.assign(metadata->saved_model_tags().begin(), metadata->saved_model_tags().end());
    metadata->clear_saved_model_tags();
    record.logged_at = metadata->timestamp_secs();
    metadata->clear_timestamp_secs();
    record.sampling_rate = metadata->sampling_config().sampling_rate();
    if (metadata->ByteSizeLong() == 0) log.clear_log_metadata();
  }
  record.extra = Remainder(log);
  return record;
}

StatusOr<std::string> SerializePredictionLog(const PredictionRecord& record) {
  PredictionLog log;
  if (!record.extra.empty() && !ParseBinaryProto(record.extra, "", &log).ok()) {
    return Internal("Carried fields of a PredictionLog do not parse");
  }
  auto* predict = log.mutable_predict_log();
  auto* request = predict->mutable_request();
  if (!record.model.empty()) request->mutable_model_spec()->set_name(record.model);
  if (!record.signature.empty()) {
    request->mutable_model_spec()->set_signature_name(record.signature);
  }
  RETURN_IF_ERROR(WriteTensors(record.inputs, "Input", request->mutable_inputs()));
  if (record.has_response) {
    RETURN_IF_ERROR(
        WriteTensors(record.outputs, "Output", predict->mutable_response()->mutable_outputs()));
  }
  for (const auto& tag : record.tags) log.mutable_log_metadata()->add_saved_model_tags(tag);
  if (record.logged_at != 0) log.mutable_log_metadata()->set_timestamp_secs(record.logged_at);
  return SerializeProto(log);
}

}  // namespace smelt
