// smelt run: one request to a signature, with the flags and output of saved_model_cli run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "smelt/cli/cache_flag.h"
#include "smelt/cli/command.h"
#include "smelt/cli/numpy/text.h"
#include "smelt/cli/optimize_flag.h"
#include "smelt/cli/precision_flag.h"
#include "smelt/cli/progress.h"
#include "smelt/cli/resource_flags.h"
#include "smelt/cli/run_inputs.h"
#include "smelt/cli/show_passes.h"
#include "smelt/cli/usage.h"
#include "smelt/io/fs.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/function_signatures.h"
#include "smelt/model/graph_file.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/variables_ahead.h"
#include "smelt/serve/rest_json.h"
#include "smelt/wire/numpy/npy.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

struct RunFlags {
  PathArgument model;
  std::string tag_set, signature = "serving_default";
  InputFlags input;
  std::string graph_def, fetches;
  std::string outdir, json, trace, programs, optimize, cache;
  bool compile = true;
  PrecisionFlags precision;
  PassFlags passes;
  bool overwrite = false, init_tpu = false;
  int threads = 0;
  int64_t timeout_ms = 0;
  ResourceFlags resources;
};

class RunCommand {
 public:
  explicit RunCommand(const RunFlags& flags) : flags_(flags) {}

  StatusOr<int> Run() {
    std::string wrong;
    const std::string path = flags_.model.Get(&wrong);
    if (path.empty() == flags_.graph_def.empty()) wrong = "smelt run needs a model or --graph_def";
    if (!wrong.empty()) return UsageError(wrong);
    std::vector<std::string> warnings;
    ASSIGN_OR_RETURN(const auto given, ReadInputs(flags_.input, &warnings));
    for (const std::string& w : warnings) std::fprintf(stderr, "warning: %s\n", w.c_str());
    ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(path));
    ASSIGN_OR_RETURN(const SessionOptions options, Options());
    ModelCache cache(flags_.cache, folder.dir());
    const VariablesAhead ahead(folder.dir(), options);
    SavedModel model;
    if (flags_.graph_def.empty()) {
      // A body of JSON may ask for any function.
      const bool any = !flags_.json.empty() || IsFunctionSignatureName(flags_.signature);
      ASSIGN_OR_RETURN(model,
                       ReadAnyModel(folder.dir(), any ? ModelPart::kWhole : ModelPart::kToRun));
    } else {
      ASSIGN_OR_RETURN(MetaGraph meta, ReadGraph(given));
      model.meta_graphs.push_back(std::move(meta));
    }
    ASSIGN_OR_RETURN(MetaGraph * meta, Choose(model));
    // The request is checked before the model is loaded, which may take long.
    RestPredictRequest request;
    if (flags_.json.empty()) {
      request.signature = flags_.signature;
      ASSIGN_OR_RETURN(const Signature* signature, FindRunSignature(*meta, flags_.signature));
      if (given.empty() && !LoadedModel::Slots(signature->inputs).empty() &&
          signature->defaults.empty()) {
        return InvalidArgument(
            "At least one of --inputs, --input_exprs or --input_examples must be required: "
            "signature '",
            flags_.signature, "' takes ", Wanted(*signature));
      }
      ASSIGN_OR_RETURN(request.inputs, InputTensors(given, *signature));
    } else {
      if (!given.empty()) return InvalidArgument("give --json or input flags, not both");
      ASSIGN_OR_RETURN(const std::string body, ReadBody());
      ASSIGN_OR_RETURN(request, ParseRestPredict(body, [&](const std::string& name) {
                         return FindRunSignature(*meta, name);
                       }));
    }
    ASSIGN_OR_RETURN(const NamedTensors outputs,
                     Answer(std::move(*meta), folder.dir(), options, request));
    SaveCache(cache);
    if (!flags_.json.empty()) {
      ASSIGN_OR_RETURN(const std::string text, WriteRestPredict(outputs, request.rows));
      std::printf("%s\n", text.c_str());
      return Save(outputs, false);
    }
    return Save(outputs, true);
  }

 private:
  StatusOr<MetaGraph> ReadGraph(const std::map<std::string, GivenInput>& given) const {
    std::vector<std::string> feeds, fetches;
    for (const auto& [key, input] : given) feeds.push_back(key);
    for (absl::string_view name : absl::StrSplit(flags_.fetches, ',', absl::SkipWhitespace())) {
      fetches.emplace_back(absl::StripAsciiWhitespace(name));
    }
    return ReadGraphFile(flags_.graph_def, feeds, fetches);
  }

  StatusOr<MetaGraph*> Choose(SavedModel& model) const {
    if (!flags_.tag_set.empty()) {
      std::vector<std::string> tags;
      for (const std::string& tag : SplitTags(flags_.tag_set)) {
        const absl::string_view stripped = absl::StripAsciiWhitespace(tag);
        if (!stripped.empty()) tags.emplace_back(stripped);
      }
      if (tags.empty()) {
        return InvalidArgument("tag_set must contain at least one non-empty item.");
      }
      return FindMetaGraph(model, tags);
    }
    return ChosenMetaGraph(model);
  }

  static StatusOr<const Signature*> FindRunSignature(MetaGraph& meta, const std::string& name) {
    std::vector<std::string> left_out;
    if (IsFunctionSignatureName(name) && !meta.signatures.contains(name)) {
      RETURN_IF_ERROR(AddFunctionSignatures(&meta, &left_out));
    }
    const auto it = meta.signatures.find(name);
    if (it != meta.signatures.end()) return &it->second;
    for (const std::string& why : left_out) {
      if (absl::StartsWith(why, name + ":")) return Unimplemented("cannot run ", why);
    }
    std::vector<std::string> names;
    for (const auto& [key, signature] : meta.signatures) {
      if (key != kInitSignature) names.push_back(key);
    }
    return NotFound("Could not find signature \"", name,
                    "\". Please choose from: ", absl::StrJoin(names, ", "));
  }

  static std::string Wanted(const Signature& signature) {
    return absl::StrJoin(LoadedModel::Slots(signature.inputs), ", ",
                         [](std::string* out, const auto& s) {
                           absl::StrAppend(out, "'", s.first, "' (", DtypeName(s.second.dtype), " ",
                                           s.second.shape.ToString(), ")");
                         });
  }

  StatusOr<std::string> ReadBody() const {
    return flags_.json == "-" ? ReadStandardInput() : ReadInput(flags_.json);
  }

  StatusOr<SessionOptions> Options() const {
    SessionOptions options;
    ASSIGN_OR_RETURN(options.passes, PassOptions(flags_.passes));
    ASSIGN_OR_RETURN(options.rewriter, RewriterOfFlag(flags_.optimize));
    options.compile = flags_.compile;
    options.threads = flags_.threads;
    options.files = flags_.resources.Files();
    return options;
  }

  StatusOr<NamedTensors> Answer(MetaGraph meta, const std::string& dir,
                                const SessionOptions& options,
                                const RestPredictRequest& request) const {
    if (flags_.init_tpu) std::printf("Initializing TPU System ...\n");
    ProgressLine line;
    line.Step("run: loading the model");
    ASSIGN_OR_RETURN(auto loaded, LoadInPrecision(std::move(meta), dir, options, flags_.precision,
                                                  {{request.signature, request.inputs}}));
    line.Step("run");
    RunOptions run;
    if (flags_.timeout_ms > 0) run.timeout = absl::Milliseconds(flags_.timeout_ms);
    StepStats stats;
    if (!flags_.trace.empty()) run.stats = &stats;
    auto outputs = loaded->RunSignature(request.signature, request.inputs, run);
    // A step that failed half way is worth a trace, too.
    if (!flags_.trace.empty()) {
      const Status written = WriteFileAtomically(flags_.trace, stats.ChromeTrace());
      if (outputs.ok()) RETURN_IF_ERROR(written);
    }
    if (!flags_.programs.empty()) {
      const Status written = WriteFileAtomically(flags_.programs, loaded->session().ProgramsText());
      if (outputs.ok()) RETURN_IF_ERROR(written);
    }
    LoadedModel::LeaveToSystem(std::move(loaded));
    return outputs;
  }

  StatusOr<int> Save(const NamedTensors& outputs, bool print) const {
    for (const auto& [key, value] : outputs) {
      if (print) {
        auto text = NumpyText(value);
        if (!text.ok()) return Prefix(text.status(), absl::StrCat("output '", key, "': "));
        std::printf("Result for output key %s:\n", key.c_str());
        std::fwrite(text->data(), 1, text->size(), stdout);
        std::printf("\n");
      }
      if (flags_.outdir.empty()) continue;
      RETURN_IF_ERROR(MakeDirs(flags_.outdir));
      // A model's output names must not lead out of the folder.
      const std::string path =
          JoinPath(flags_.outdir, absl::StrCat(absl::StrReplaceAll(key, {{"/", "_"}}), ".npy"));
      if (!flags_.overwrite && Exists(path)) {
        return AlreadyExists("Output file ", path,
                             " already exists. Add \"--overwrite\" to overwrite the existing "
                             "output files.");
      }
      ASSIGN_OR_RETURN(const std::string bytes, SerializeNpy(value));
      RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
      if (print) std::printf("Output %s is saved to %s\n", key.c_str(), path.c_str());
    }
    return kExitOk;
  }

  const RunFlags& flags_;
};

}  // namespace

CommandBody SetupRun(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  flags->model.Add(app, "model", "--dir", kModelHelp);
  app.add_option("--graph_def", flags->graph_def,
                 "Run a frozen graph instead; input keys are its tensors");
  app.add_option("--fetches", flags->fetches,
                 "Tensors of the frozen graph to print, separated by ','; left out: its outputs");
  app.add_option("--tag_set", flags->tag_set,
                 "Tags of the MetaGraph, separated by ','; left out: the only one, or 'serve'");
  app.add_option("--signature_def", flags->signature, "Signature to run")->capture_default_str();
  app.add_option("--inputs", flags->input.inputs,
                 "Files: 'KEY=FILE.npy', 'KEY=FILE.npz[NAME]', separated by ';'");
  app.add_option(
      "--input_exprs", flags->input.exprs,
      "Python literals or numpy constructors: 'KEY=[[1.0, 2.0]]', 'KEY=np.ones((2, 3))', "
      "separated by ';'");
  app.add_option("--input_examples", flags->input.examples,
                 "tf.Examples: 'KEY=[{\"age\": [22.0], \"name\": [b\"x\"]}]', separated by ';'");
  app.add_option("--json", flags->json,
                 "File ('-': standard input) with a REST predict request; the response is printed");
  app.add_option("--outdir", flags->outdir, "Write each output to OUTDIR/KEY.npy");
  app.add_flag("--overwrite", flags->overwrite, "Replace output files that are there");
  AddPassFlags(app, &flags->passes);
  app.add_option("--programs", flags->programs,
                 "Write what was compiled for the request: actions, fused steps, places");
  app.add_option("--trace", flags->trace, "Write a Chrome trace of the request");
  AddOptimizeFlag(app, &flags->optimize);
  AddCompileFlag(app, &flags->compile);
  AddPrecisionFlags(app, &flags->precision);
  app.add_option("--threads", flags->threads, "Threads of one request; 0: every core");
  app.add_option("--timeout_ms", flags->timeout_ms, "Give up after so long; 0: never");
  AddResourceFlags(app, &flags->resources);
  AddCacheFlag(app, &flags->cache);
  AddUnpackLimitFlag(app);
  app.add_flag("--init_tpu", flags->init_tpu, "Accepted: the TPU system needs no initializing");
  return [flags] { return RunCommand(*flags).Run(); };
}

}  // namespace smelt
