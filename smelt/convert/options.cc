// What the converter options may say, checked before anything is done.
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

// An option that is stated and that no stage serves would change what the model does in silence.
Status RefuseUnserved(const ConverterOptions& o) {
  const auto refuse = [](absl::string_view option) {
    return Unimplemented("converter option ", option, " is not supported");
  };
  if (!o.batch_options.empty()) return refuse("batch_options");
  if (o.xla_sharding_options) return refuse("xla_sharding_options");
  if (o.quantization_options) return refuse(o.quantization_field);
  return OkStatus();
}

}  // namespace

Status CheckOptions(Conversion& c) {
  RETURN_IF_ERROR(RefuseUnserved(c.options));
  if (c.options.tpu_functions.empty() && !c.settings.auto_place) {
    return InvalidArgument("the converter options name nothing to do: give tpu_functions");
  }
  return OkStatus();
}

}  // namespace smelt
