// The stages of a conversion, in order.
#include <span>

#include "smelt/convert/stages.h"
#include "smelt/graph/verify.h"

namespace smelt {
namespace {

bool Always(const Conversion&) { return true; }
bool StripsTraining(const Conversion& c) { return c.settings.strip_training; }
bool Quantizes(const Conversion& c) { return c.options.quantization_options.has_value(); }
bool AutoPlaces(const Conversion& c) { return c.settings.auto_place; }
bool Places(const Conversion& c) { return !c.placements.empty(); }
bool Shards(const Conversion& c) { return c.options.xla_sharding_options.has_value(); }
bool Batches(const Conversion& c) { return !c.options.batch_options.empty(); }

bool WantsBfloat16(const Conversion& c) {
  const auto& o = c.options.bfloat16_optimization_options;
  return c.Bfloat16() && (Places(c) || (o && o->scope_all));
}

constexpr Stage kStages[] = {
    {"options", Always, CheckOptions, "before anything is read twice or changed"},
    {"strip_training", StripsTraining, StripTrainingParts, "what follows need not look at it"},
    {"resolve", Always, ResolveTpuFunctions, "names mean functions as the model has them"},
    {"quantize", Quantizes, QuantizeModel, "calibration runs the float model as it was trained"},
    {"auto_place", AutoPlaces, AutoPlace, "it cuts functions that nobody has copied yet"},
    {"bodies", Places, MakeBodies, "what follows rewrites copies that only the accelerator runs"},
    {"random_numbers", Places, NoteRandomNumbers, "calls are inlined: every op is in a body"},
    {"compatibility", Places, CheckCompatibility, "calls are inlined, nothing is rewritten yet"},
    {"bfloat16", WantsBfloat16, ConvertToBfloat16,
     "on plain bodies; its casts at the border are the cluster stage's to move"},
    {"cluster", Places, MakeClusters, "after all that rewrites computation"},
    {"stubs", Places, MakeStubs, "the functions' own bodies are needed no more"},
    {"io_shape", Places, LayOutTransfers, "what crosses, and as what type, is settled"},
    {"sharding", Shards, ShardOverCores, "the clusters and stubs are there"},
    {"batching", Batches, AddBatching, "around the stubs, which requests call"},
};

constexpr Stage kRevertStages[] = {
    {"strip_training", StripsTraining, StripTrainingParts, "what follows need not look at it"},
    {"revert", Always, Revert, "every wrapper comes off"},
    {"prune", Always, RemoveUnusedFunctions, "bodies have moved back"},
};

// DEFAULT means on, unless disable_default_optimizations is set.
bool IsOn(const Conversion& c, OptionState state) {
  if (state != OptionState::kDefault) return state == OptionState::kEnabled;
  return !c.options.disable_default_optimizations;
}

}  // namespace

bool Conversion::Bfloat16() const { return IsOn(*this, options.bfloat16_optimization); }
bool Conversion::IoShapes() const { return IsOn(*this, options.io_shape_optimization); }

StatusOr<ModelVariables*> Conversion::Variables() {
  if (variables == nullptr) {
    ASSIGN_OR_RETURN(variables, ModelVariables::Trace(*meta, model.dir, files, stripped));
    if (!settings.write) variables->KeepInGraph();
  }
  // No graph calls the bodies before the stubs stage: following calls does not reach them.
  for (const TpuPlacement& p : placements) {
    if (p.existing || p.body.empty()) continue;
    const Function* original = library().Find(p.function);
    Function* body = library().Find(p.body);
    if (original != nullptr && body != nullptr) variables->TraceCopy(*original, *body);
  }
  return variables.get();
}

Status Convert(Conversion& c) {
  if (c.model.meta_graphs.empty()) return InvalidArgument("the SavedModel has no MetaGraph");
  ASSIGN_OR_RETURN(c.meta, ChosenMetaGraph(c.model));
  // Stages rely on the rules of verify.h.
  RETURN_IF_ERROR(Prefix(VerifyAll(*c.meta->graph), "the model's graph does not verify: "));
  const std::span<const Stage> stages =
      c.settings.revert ? std::span<const Stage>(kRevertStages) : std::span<const Stage>(kStages);
  for (const Stage& stage : stages) {
    if (!stage.wanted(c)) continue;
    if (c.progress) c.progress(stage.name);
    RETURN_IF_ERROR(stage.run(c));
  }
  if (!c.stripped.empty()) RETURN_IF_ERROR(c.Variables().status());
  if (c.variables != nullptr) RETURN_IF_ERROR(c.variables->UpdateObjectGraph());
  return OkStatus();
}

}  // namespace smelt
