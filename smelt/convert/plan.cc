// The stages of a conversion, in order, and the options that are not built yet.
#include "smelt/convert/conversion.h"

namespace smelt {
namespace {

// An option that is stated and that no stage serves would change what the model does in silence.
Status RefuseUnserved(const ConverterOptions& o) {
  const auto refuse = [](absl::string_view option) {
    return Unimplemented("converter option ", option, " is not supported");
  };
  if (!o.batch_options.empty()) return refuse("batch_options");
  if (o.io_shape_optimization == OptionState::kEnabled) {
    return refuse("io_shape_optimization: ENABLED");
  }
  if (o.bfloat16_optimization == OptionState::kEnabled) {
    return refuse("bfloat16_optimization: ENABLED");
  }
  if (o.bfloat16_optimization_options) return refuse("bfloat16_optimization_options");
  if (o.xla_sharding_options) return refuse("xla_sharding_options");
  if (o.quantization_options) return refuse(o.quantization_field);
  return OkStatus();
}

constexpr Stage kStages[] = {
    {"resolve", [](const Conversion&) { return true; }, ResolveTpuFunctions},
    {"placement", [](const Conversion& c) { return !c.placements.empty(); }, PlaceOnTpu},
};

Status ChooseMetaGraph(Conversion& c) {
  if (c.model.meta_graphs.empty()) return InvalidArgument("the SavedModel has no MetaGraph");
  if (c.model.meta_graphs.size() == 1) {
    c.meta = &c.model.meta_graphs[0];
    return OkStatus();
  }
  ASSIGN_OR_RETURN(c.meta, FindMetaGraph(c.model, {"serve"}));
  return OkStatus();
}

}  // namespace

Status Convert(Conversion& c) {
  RETURN_IF_ERROR(RefuseUnserved(c.options));
  RETURN_IF_ERROR(ChooseMetaGraph(c));
  if (c.options.tpu_functions.empty()) {
    return InvalidArgument("the converter options name nothing to do: give tpu_functions");
  }
  for (const Stage& stage : kStages) {
    if (!stage.wanted(c)) continue;
    if (c.progress) c.progress(stage.name);
    RETURN_IF_ERROR(stage.run(c));
  }
  if (!c.options.disable_default_optimizations) {
    if (c.options.bfloat16_optimization == OptionState::kDefault) {
      c.warnings.push_back("bfloat16_optimization is not applied: the model stays float32");
    }
    if (c.options.io_shape_optimization == OptionState::kDefault) {
      c.warnings.push_back("io_shape_optimization is not applied: shapes stay as they are");
    }
  }
  return OkStatus();
}

}  // namespace smelt
