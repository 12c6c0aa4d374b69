// smelt lite: a SavedModel as a .tflite file.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "smelt/cli/command.h"
#include "smelt/cli/progress.h"
#include "smelt/lite/export.h"
#include "smelt/model/model_folder.h"

namespace smelt {
namespace {

struct LiteCommandFlags {
  std::string model, output, tag_set;
  LiteFlags lite;
};

StatusOr<MetaGraph*> Choose(SavedModel& model, const std::string& tags) {
  if (!tags.empty()) return FindMetaGraph(model, SplitTags(tags));
  if (model.meta_graphs.size() == 1) return &model.meta_graphs[0];
  return FindMetaGraph(model, {"serve"});
}

StatusOr<int> RunLite(const LiteCommandFlags& flags) {
  ProgressLine line;
  line.Step("lite: loading the model");
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags.model));
  ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(folder.dir(), ModelPart::kToRun));
  ASSIGN_OR_RETURN(MetaGraph * meta, Choose(model, flags.tag_set));
  SessionOptions options;
  options.compile = false;
  ASSIGN_OR_RETURN(const auto loaded, LoadedModel::Load(std::move(*meta), folder.dir(), options));
  line.Step("lite: exporting");
  LiteReport report;
  ASSIGN_OR_RETURN(const LiteModel lite, ExportLite(*loaded, flags.lite, &report));
  line.Step("lite: writing");
  RETURN_IF_ERROR(WriteLiteFile(lite, flags.output));
  return kExitOk;
}

}  // namespace

CommandBody SetupLite(CLI::App& app) {
  auto flags = std::make_shared<LiteCommandFlags>();
  app.add_option("model", flags->model, "The SavedModel: a folder or an archive")->required();
  app.add_option("output", flags->output, "The .tflite file to write")->required();
  app.add_option("--tag_set", flags->tag_set, "Tags of the MetaGraph, separated by ','");
  app.add_option("--signature", flags->lite.signatures,
                 "A signature to export, several times for several; left out: all")
      ->allow_extra_args(false);
  return [flags]() { return RunLite(*flags); };
}

}  // namespace smelt
