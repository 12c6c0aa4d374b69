// The stages of a conversion, in order.
#include "smelt/convert/stages.h"

namespace smelt {
namespace {

bool Always(const Conversion&) { return true; }
bool AutoPlaces(const Conversion& c) { return c.settings.auto_place; }
bool Places(const Conversion& c) { return !c.placements.empty(); }

constexpr Stage kStages[] = {
    {"options", Always, CheckOptions, "before anything is read twice or changed"},
    {"resolve", Always, ResolveTpuFunctions, "names mean functions as the model has them"},
    {"auto_place", AutoPlaces, AutoPlace, "it cuts functions that nobody has copied yet"},
    {"bodies", Places, MakeBodies, "what follows rewrites copies that only the accelerator runs"},
    {"compatibility", Places, CheckCompatibility, "calls are inlined, nothing is rewritten yet"},
    {"cluster", Places, MakeClusters, "after all that rewrites computation"},
    {"stubs", Places, MakeStubs, "the functions' own bodies are needed no more"},
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

// DEFAULT means on, unless all defaults are off.
bool IsOn(const Conversion& c, OptionState state) {
  if (state != OptionState::kDefault) return state == OptionState::kEnabled;
  return !c.options.disable_default_optimizations;
}

}  // namespace

bool Conversion::Bfloat16() const { return IsOn(*this, options.bfloat16_optimization); }
bool Conversion::IoShapes() const { return IsOn(*this, options.io_shape_optimization); }

StatusOr<ModelVariables*> Conversion::Variables() {
  if (variables == nullptr) {
    ASSIGN_OR_RETURN(variables, ModelVariables::Trace(*meta, model.dir));
  }
  return variables.get();
}

Status Convert(Conversion& c) {
  RETURN_IF_ERROR(ChooseMetaGraph(c));
  for (const Stage& stage : kStages) {
    if (!stage.wanted(c)) continue;
    if (c.progress) c.progress(stage.name);
    RETURN_IF_ERROR(stage.run(c));
  }
  if (c.variables != nullptr) RETURN_IF_ERROR(c.variables->UpdateObjectGraph());
  return OkStatus();
}

}  // namespace smelt
