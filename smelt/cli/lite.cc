// smelt lite: a SavedModel, or a frozen graph, as a .tflite file.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "smelt/base/program_pages.h"
#include "smelt/cli/command.h"
#include "smelt/cli/lite_flags.h"
#include "smelt/cli/lite_layers_report.h"
#include "smelt/cli/lite_report.h"
#include "smelt/cli/progress.h"
#include "smelt/io/fs.h"
#include "smelt/model/graph_file.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/variables_ahead.h"

namespace smelt {
namespace {

// "a,b:1" given once or in pieces.
std::vector<std::string> Tensors(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& text : given) {
    for (std::string& name : SplitTags(text)) out.push_back(std::move(name));
  }
  return out;
}

// Weights that are folded one after the other would else leave holes of their sizes: a block of
// 128 KiB and more goes back to the system when it is freed. Stated numbers stay; malloc's
// own grow with what is freed. What few threads allocate needs no heaps of their own.
void KeepHeapSmall() {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TOP_PAD, 64 << 10);
  mallopt(M_ARENA_MAX, 1);
}

StatusOr<std::unique_ptr<LoadedModel>> Load(const LiteCommandFlags& flags,
                                            const std::string& path) {
  SessionOptions options;
  options.compile = false;
  if (!flags.graph_def.empty()) {
    ASSIGN_OR_RETURN(MetaGraph meta, ReadGraphFile(flags.graph_def, Tensors(flags.input_arrays),
                                                   Tensors(flags.output_arrays)));
    return LoadedModel::Load(std::move(meta), "", options);
  }
  for (const char* ending : {".keras", ".h5", ".hdf5"}) {
    if (!absl::EndsWith(path, ending) || IsDir(path)) continue;
    return InvalidArgument("'", path,
                           "' is a Keras file, whose layers are code of Keras: call "
                           "model.export(FOLDER) there, and export the folder");
  }
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(path));
  const VariablesAhead ahead(folder.dir(), options, /*soon=*/0);  // each is written once
  ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(folder.dir(), ModelPart::kToRun));
  DropProgramPages();
  ASSIGN_OR_RETURN(MetaGraph * meta, ChosenMetaGraph(model, SplitTags(flags.tag_set)));
  return LoadedModel::Load(std::move(*meta), folder.dir(), options);
}

Status AddMetadataFiles(const LiteCommandFlags& flags, LiteModel& model) {
  for (const std::string& text : flags.metadata) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return InvalidArgument("--metadata wants NAME=FILE, not '", text, "'");
    }
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(text.substr(equals + 1)));
    RETURN_IF_ERROR(AddMetadata(model, text.substr(0, equals), std::move(bytes)));
  }
  return OkStatus();
}

// What a program must bring for the file to run.
void NoteCustom(const LiteModel& model) {
  const auto note = [&](bool flex, const char* what) {
    const std::vector<std::string> codes = CustomCodes(model, flex);
    if (codes.empty()) return;
    std::fprintf(stderr, "note: %s: %s\n", what, absl::StrJoin(codes, ", ").c_str());
  };
  note(true, "the file needs TensorFlow's Flex delegate for");
  note(false, "the file needs kernels that your program registers for");
}

absl::string_view ModeName(const LiteFlags& flags) {
  if (flags.calibrate_only) return "calibrated";
  switch (flags.quantize) {
    case LiteQuantize::kNone:
      return "none";
    case LiteQuantize::kFloat16:
      return "float16";
    case LiteQuantize::kDynamic:
      return "dynamic";
    case LiteQuantize::kInt8:
      return "int8";
    case LiteQuantize::kInt16x8:
      return "int16x8";
  }
  return "";
}

StatusOr<int> RunLite(LiteCommandFlags& flags) {
  std::string twice;
  std::string path = flags.model.Get(&twice), output = flags.output.Get(&twice);
  if (!twice.empty()) return UsageError(twice);
  if (!flags.graph_def.empty()) {
    if (!flags.lite.signatures.empty() || !flags.tag_set.empty() ||
        (!path.empty() && !output.empty())) {
      return UsageError("a frozen graph has neither signatures nor tags, and one output");
    }
    if (output.empty()) output.swap(path);
  }
  if (flags.list_ops) {
    std::fputs(OperatorTable().c_str(), stdout);
    return kExitOk;
  }
  RETURN_IF_ERROR(ReadLiteFlags(flags));
  ASSIGN_OR_RETURN(flags.lite.fusions, ChooseFusions(flags.fusions));
  if (flags.fusions.list) {
    ListFusions(flags.lite.fusions);
    return kExitOk;
  }
  if (output.empty()) return UsageError("lite wants a model and the file to write");
  ProgressLine line;
  line.Step("lite: loading the model");
  KeepHeapSmall();
  ASSIGN_OR_RETURN(const auto loaded, Load(flags, path));
  malloc_trim(0);  // what reading took, twice what is left of it
  DropProgramPages();
  line.Step("lite: exporting");
  LiteReport report;
  flags.lite.phase_over = DropProgramPages;
  auto lite = ExportLite(*loaded, flags.lite, &report);
  if (flags.fusions.explain && !flags.json) {
    ExplainFusions(flags.lite.fusions, report.fusions);
  }
  if (!lite.ok() && !report.refused.empty()) {
    if (!flags.json) return Suffix(lite.status(), absl::StrCat("\n\n", RefusalTable(report)));
    std::printf("%s\n", RefusalJson(lite.status(), report, flags.fusions.explain).c_str());
  }
  RETURN_IF_ERROR(lite.status());
  for (const LiteReport::LeftOut& l : report.left_out) {
    std::fprintf(stderr, "warning: signature '%s' is left out: %s\n", l.signature.c_str(),
                 l.why.c_str());
  }
  RETURN_IF_ERROR(AddMetadataFiles(flags, *lite));
  if (!flags.report.empty()) RETURN_IF_ERROR(WriteLayersReport(report, flags.report));
  line.Step("lite: writing");
  ASSIGN_OR_RETURN(const uint64_t bytes, WriteLiteFile(*lite, output, flags.buffers_outside));
  NoteCustom(*lite);
  if (flags.json) {
    std::printf("%s\n", WrittenJson(*lite, output, bytes, std::string(ModeName(flags.lite)), report,
                                    flags.fusions.explain)
                            .c_str());
  }
  return kExitOk;
}

}  // namespace

CommandBody SetupLite(CLI::App& app) {
  auto flags = std::make_shared<LiteCommandFlags>();
  AddLiteFlags(app, *flags);
  AddFusionFlags(app, flags->fusions);
  return [flags]() { return RunLite(*flags); };
}

}  // namespace smelt
