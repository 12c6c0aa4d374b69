// smelt show: what a SavedModel holds, or a .tflite file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "smelt/cli/command.h"
#include "smelt/cli/progress.h"
#include "smelt/cli/show/facts.h"
#include "smelt/cli/show/functions.h"
#include "smelt/cli/show/lite_facts.h"
#include "smelt/cli/show/program.h"
#include "smelt/cli/show/signatures.h"
#include "smelt/cli/usage.h"
#include "smelt/io/fs.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/model_folder.h"

namespace smelt {
namespace {

struct ShowFlags {
  PathArgument model;
  std::string tag_set, signature_def, memory_svg, svg;
  SampleFlags sample;  // of --program
  const CLI::Option* tag_set_option = nullptr;
  const CLI::Option* signature_option = nullptr;
  bool all = false, list_ops = false, json = false, program = false;

  bool has_tag_set() const { return tag_set_option->count() > 0; }
  bool has_signature() const { return signature_option->count() > 0; }
};

void PrintShown(const std::string& text, ProgressLine& line) {
  line.Step("");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Without blanks and empty ones: an empty flag is the empty tag set.
std::vector<std::string> CleanTags(const std::string& flag) {
  std::vector<std::string> tags;
  for (const std::string& tag : SplitTags(flag)) {
    const absl::string_view t = absl::StripAsciiWhitespace(tag);
    if (!t.empty()) tags.emplace_back(t);
  }
  return tags;
}

void ShowEverything(const SavedModel& model, ProgressLine& line) {
  const std::vector<const MetaGraph*> metas = ListedMetaGraphs(model);
  std::vector<MetaGraphFacts> facts;
  const MetaGraphFacts* with_objects = nullptr;
  facts.reserve(metas.size());
  std::string out;
  for (const MetaGraph* meta : metas) {
    out += MetaGraphText(*meta);
    facts.push_back(FactsOf(*meta, model.dir));
    if (with_objects == nullptr && !meta->object_graph.empty()) with_objects = &facts.back();
  }
  if (with_objects != nullptr) out += ConcreteFunctionsText(with_objects->functions);
  if (!out.empty() && out.back() != '\n') out += '\n';
  for (size_t i = 0; i < metas.size(); ++i) {
    absl::StrAppend(&out, "\n", FactsText(*metas[i], facts[i]));
  }
  PrintShown(out, line);
}

StatusOr<int> ShowTagSet(SavedModel& model, const ShowFlags& flags, ProgressLine& line) {
  ASSIGN_OR_RETURN(const MetaGraph* meta, FindMetaGraph(model, CleanTags(flags.tag_set)));
  if (flags.json) {
    std::vector<MetaGraphFacts> facts;
    facts.push_back(FactsOf(*meta, model.dir));
    PrintShown(ShowJson(model, {meta}, facts), line);
    return kExitOk;
  }
  if (flags.list_ops) PrintShown(UsedOpsText(*meta), line);
  if (!flags.has_signature()) {
    PrintShown(SignatureKeysText(*meta), line);
    return kExitOk;
  }
  auto signature = meta->signatures.find(flags.signature_def);
  if (signature == meta->signatures.end()) {
    return NotFound("Could not find signature \"", flags.signature_def, "\". Please choose from: ",
                    absl::StrJoin(meta->signatures, ", ", [](std::string* out, const auto& s) {
                      absl::StrAppend(out, s.first);
                    }));
  }
  PrintShown(SignatureText(signature->second, 0), line);
  return kExitOk;
}

StatusOr<int> ShowLiteFile(const std::string& path, const ShowFlags& flags, ProgressLine& line) {
  ASSIGN_OR_RETURN(const auto file, MapFile(path));
  auto model = ReadTflite(file->bytes(), file);
  if (!model.ok()) return Prefix(model.status(), absl::StrCat(path, ": "));
  const LiteFileFacts facts = LiteFactsOf(*model, path, file->bytes());
  if (!flags.svg.empty()) RETURN_IF_ERROR(WriteFileAtomically(flags.svg, LiteSvg(*model, facts)));
  PrintShown(flags.json ? LiteJson(*model, facts) : LiteText(*model, facts), line);
  return kExitOk;
}

StatusOr<int> RunShow(const ShowFlags& flags) {
  std::string wrong;
  const std::string path = flags.model.Get(&wrong);
  if (path.empty()) wrong = "smelt show needs a model";
  if (!flags.memory_svg.empty() && !flags.program) wrong = "--memory_svg goes with --program";
  if (!wrong.empty()) return UsageError(wrong);
  ProgressLine line;
  if (flags.program) {
    line.Step("show: compiling");
    SampleFlags sample = flags.sample;
    sample.tag_set = flags.tag_set;
    if (flags.has_signature()) sample.signature = flags.signature_def;
    ASSIGN_OR_RETURN(const std::string text, ProgramText(path, sample, flags.memory_svg));
    PrintShown(text, line);
    return kExitOk;
  }
  line.Step("show: reading the model");
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(path));
  const bool lite = Exists(folder.dir()) && !IsDir(folder.dir());
  // What is asked of a MetaGraph is told of the one that the file is when it runs.
  if (lite && (!flags.has_tag_set() || flags.all)) return ShowLiteFile(folder.dir(), flags, line);
  if (!flags.svg.empty()) return UsageError("--svg goes with a .tflite file, shown as a whole");
  ASSIGN_OR_RETURN(SavedModel model, ReadAnyModel(folder.dir(), ModelPart::kWhole));
  if (flags.all && !flags.json) {
    ShowEverything(model, line);
    return kExitOk;
  }
  if (flags.has_tag_set() && !flags.all) return ShowTagSet(model, flags, line);
  if (flags.json) {
    const std::vector<const MetaGraph*> metas = ListedMetaGraphs(model);
    std::vector<MetaGraphFacts> facts;
    for (const MetaGraph* meta : metas) facts.push_back(FactsOf(*meta, model.dir));
    PrintShown(ShowJson(model, metas, facts), line);
    return kExitOk;
  }
  if (flags.list_ops) PrintShown("--list_ops must be paired with a tag-set or with --all.\n", line);
  PrintShown(TagSetsText(model), line);
  return kExitOk;
}

}  // namespace

CommandBody SetupShow(CLI::App& app) {
  auto flags = std::make_shared<ShowFlags>();
  flags->model.Add(app, "model", "--dir", kModelHelp);
  app.add_flag("--all", flags->all, "Everything: signatures, functions, variables, assets, ops");
  flags->tag_set_option =
      app.add_option("--tag_set", flags->tag_set, "Tags of one MetaGraph, separated by commas");
  flags->signature_option =
      app.add_option("--signature_def", flags->signature_def, "Show this signature");
  app.add_flag("--list_ops", flags->list_ops, "List the ops of the MetaGraph of --tag_set");
  app.add_flag("--json", flags->json, "Everything as one JSON document");
  CLI::Option* program = app.add_flag(
      "--program", flags->program,
      "What the signature (--signature_def, else serving_default) is compiled to: actions, what "
      "each does as well, places in memory, and why not more. One request is run to learn shapes");
  app.add_option("--memory_svg", flags->memory_svg,
                 "With --program: write the memory plan as a picture");
  app.add_option("--svg", flags->svg, "Of a .tflite file: write its operators as a picture");
  flags->sample.Add(app);
  for (const char* name : {"--batch", "--shapes", "--log", "--threads"}) {
    app.get_option(name)->needs(program);
  }
  AddUnpackLimitFlag(app);
  return [flags] { return RunShow(*flags); };
}

}  // namespace smelt
