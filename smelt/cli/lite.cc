// smelt lite: a SavedModel as a .tflite file.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "smelt/cli/command.h"
#include "smelt/cli/lite_fusions.h"
#include "smelt/cli/progress.h"
#include "smelt/lite/export.h"
#include "smelt/model/model_folder.h"

namespace smelt {
namespace {

struct LiteCommandFlags {
  std::string model, output, tag_set;
  std::string quantize, representative, input_type = "float32", output_type = "float32";
  bool per_tensor = false;
  std::vector<std::string> float_ops, float_nodes;
  LiteFlags lite;
  FusionFlags fusions;
};

constexpr std::pair<const char*, LiteQuantize> kModes[] = {{"float16", LiteQuantize::kFloat16},
                                                           {"dynamic", LiteQuantize::kDynamic},
                                                           {"int8", LiteQuantize::kInt8},
                                                           {"int16x8", LiteQuantize::kInt16x8}};

// What the flags of quantization say together.
Status ReadQuantizeFlags(LiteCommandFlags& flags) {
  LiteFlags& lite = flags.lite;
  for (const auto& [name, mode] : kModes) {
    if (flags.quantize == name) lite.quantize = mode;
  }
  lite.integer.input_type = ParseDtype(flags.input_type);
  lite.integer.output_type = ParseDtype(flags.output_type);
  lite.integer.per_channel = lite.dynamic.per_channel = !flags.per_tensor;
  lite.integer.float_ops = {flags.float_ops.begin(), flags.float_ops.end()};
  lite.integer.float_nodes = {flags.float_nodes.begin(), flags.float_nodes.end()};
  lite.dynamic.float_ops = lite.integer.float_ops;
  lite.dynamic.float_nodes = lite.integer.float_nodes;
  const bool samples =
      lite.quantize == LiteQuantize::kInt8 || lite.quantize == LiteQuantize::kInt16x8;
  if (!samples) return OkStatus();
  if (flags.representative.empty()) {
    return InvalidArgument("--quantize ", flags.quantize, " needs --representative");
  }
  ASSIGN_OR_RETURN(lite.samples, ReadLiteSamples(flags.representative));
  return OkStatus();
}

StatusOr<MetaGraph*> Choose(SavedModel& model, const std::string& tags) {
  if (!tags.empty()) return FindMetaGraph(model, SplitTags(tags));
  if (model.meta_graphs.size() == 1) return &model.meta_graphs[0];
  return FindMetaGraph(model, {"serve"});
}

StatusOr<int> RunLite(LiteCommandFlags& flags) {
  ASSIGN_OR_RETURN(flags.lite.fusions, ChooseFusions(flags.fusions));
  if (flags.fusions.list) {
    ListFusions(flags.lite.fusions);
    return kExitOk;
  }
  if (flags.output.empty()) return InvalidArgument("lite wants a model and the file to write");
  RETURN_IF_ERROR(ReadQuantizeFlags(flags));
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
  const auto lite = ExportLite(*loaded, flags.lite, &report);
  if (flags.fusions.explain) ExplainFusions(report.fusions);
  RETURN_IF_ERROR(lite.status());
  line.Step("lite: writing");
  RETURN_IF_ERROR(WriteLiteFile(*lite, flags.output));
  return kExitOk;
}

}  // namespace

CommandBody SetupLite(CLI::App& app) {
  auto flags = std::make_shared<LiteCommandFlags>();
  app.add_option("model", flags->model, "The SavedModel: a folder or an archive");
  app.add_option("output", flags->output, "The .tflite file to write");
  app.add_option("--tag_set", flags->tag_set, "Tags of the MetaGraph, separated by ','");
  app.add_option("--signature", flags->lite.signatures,
                 "A signature to export, several times for several; left out: all")
      ->allow_extra_args(false);
  AddFusionFlags(app, flags->fusions);
  std::vector<std::string> modes;
  for (const auto& [name, mode] : kModes) modes.emplace_back(name);
  app.add_option(
         "--quantize", flags->quantize,
         "float16: weights in half; dynamic: weights in int8, activations quantized as they "
         "come; int8, int16x8: all in integers, by --representative")
      ->check(CLI::IsMember(modes));
  app.add_option("--representative", flags->representative,
                 "Samples of inputs: a .npz file of stacked rows, or a TFRecord file of "
                 "PredictionLogs or RepresentativeDataSamples");
  app.add_option("--inference_input_type", flags->input_type, "float32, int8 or int16")
      ->check(CLI::IsMember({"float32", "int8", "int16"}));
  app.add_option("--inference_output_type", flags->output_type, "float32, int8 or int16")
      ->check(CLI::IsMember({"float32", "int8", "int16"}));
  app.add_flag("--only_integer", flags->lite.integer.only_integer,
               "An operator that stays float is an error");
  app.add_flag("--per_tensor", flags->per_tensor, "One scale for the weights of an operator");
  app.add_option("--float_op", flags->float_ops,
                 "An operator that is left float, as CONV_2D; several times for several")
      ->allow_extra_args(false);
  app.add_option("--float_node", flags->float_nodes, "A node that is left float")
      ->allow_extra_args(false);
  return [flags]() { return RunLite(*flags); };
}

}  // namespace smelt
