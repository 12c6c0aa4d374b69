#include "smelt/wire/tflite/conversion.h"

#include "absl/strings/str_cat.h"
#include "smelt/wire/tflite/schema.h"

namespace smelt {
namespace {

std::string NameOrNumber(const char* name, int32_t number) {
  return name == nullptr || *name == '\0' ? absl::StrCat(number) : name;
}

}  // namespace

std::string WriteLiteConversion(const LiteConversion& conversion) {
  flatbuffers::FlatBufferBuilder b(256);
  const auto version = b.CreateString(conversion.tensorflow_version);
  const auto environment = tflite::CreateEnvironment(
      b, version, conversion.api_version, static_cast<tflite::ModelType>(conversion.source),
      conversion.model_hash);
  std::vector<int32_t> modes;
  for (const LiteMode m : conversion.modes) modes.push_back(static_cast<int32_t>(m));
  const auto all_modes = b.CreateVector(modes);
  const auto options = tflite::CreateConversionOptions(b, all_modes, conversion.allow_custom_ops,
                                                       conversion.enable_select_tf_ops,
                                                       conversion.force_select_tf_ops);
  b.Finish(tflite::CreateConversionMetadata(b, environment, options));
  return {reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize()};
}

StatusOr<LiteConversion> ReadLiteConversion(absl::string_view bytes) {
  // The verifier wants alignment, which a metadata's buffer need not have.
  const std::vector<uint64_t> words = [&] {
    std::vector<uint64_t> out((bytes.size() + 7) / 8);
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }();
  const auto* data = reinterpret_cast<const uint8_t*>(words.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!verifier.VerifyBuffer<tflite::ConversionMetadata>(nullptr)) {
    return InvalidArgument("the ", bytes.size(), " bytes are no conversion metadata");
  }
  const auto* from = flatbuffers::GetRoot<tflite::ConversionMetadata>(data);
  LiteConversion out;
  if (const tflite::Environment* e = from->environment()) {
    if (e->tensorflow_version() != nullptr) out.tensorflow_version = e->tensorflow_version()->str();
    out.api_version = e->api_version();
    out.source = static_cast<LiteSource>(e->model_type());
    out.model_hash = e->model_hash();
  }
  if (const tflite::ConversionOptions* o = from->options()) {
    if (o->model_optimization_modes() != nullptr) {
      for (const int32_t m : *o->model_optimization_modes()) {
        out.modes.push_back(static_cast<LiteMode>(m));
      }
    }
    out.allow_custom_ops = o->allow_custom_ops();
    out.enable_select_tf_ops = o->enable_select_tf_ops();
    out.force_select_tf_ops = o->force_select_tf_ops();
  }
  return out;
}

std::string NameOfSource(LiteSource source) {
  const auto number = static_cast<int32_t>(source);
  return NameOrNumber(tflite::EnumNameModelType(static_cast<tflite::ModelType>(number)), number);
}

std::string NameOfMode(LiteMode mode) {
  const auto number = static_cast<int32_t>(mode);
  return NameOrNumber(
      tflite::EnumNameModelOptimizationMode(static_cast<tflite::ModelOptimizationMode>(number)),
      number);
}

}  // namespace smelt
