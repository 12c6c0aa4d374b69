// smelt convert: the flags of TensorFlow's inference converter, and smelt's own.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "absl/strings/str_format.h"
#include "smelt/cli/advise.h"
#include "smelt/cli/command.h"
#include "smelt/cli/progress.h"
#include "smelt/cli/report/reports.h"
#include "smelt/cli/resource_flags.h"
#include "smelt/cli/usage.h"
#include "smelt/cli/version.h"
#include "smelt/convert/certificate.h"
#include "smelt/convert/planner.h"
#include "smelt/convert/search/precision_search.h"
#include "smelt/io/fs.h"
#include "smelt/wire/options/option_fields.h"

namespace smelt {
namespace {

// The JSON and HTML reports have all notes.
constexpr size_t kMaxNotesShown = 12;

struct ConvertCommandFlags {
  std::string options_string, options_file;
  std::string report_json, report_html;
  std::optional<std::string> max_error;
  std::string labels;
  bool check = false;
  PathArgument input, output;
  std::string explain;
  AdviseFlags advise;
  ConvertFlags convert;
  ResourceFlags resources;
};

// --exclude: adds a unit-wise specification by which the layers of these names are not quantized.
Status ExcludeNodes(const std::vector<std::string>& names, ConverterOptions& options) {
  if (names.empty()) return OkStatus();
  if (!options.quantization_options) {
    return InvalidArgument("--exclude names layers that stay float: it needs quantization_options");
  }
  UnitWiseQuantizationOption spec;
  spec.method.preset = QuantizationPreset::kNoQuantize;
  for (const std::string& name : names) spec.units.push_back({"", name, ""});
  options.quantization_options->unit_wise.push_back(std::move(spec));
  return OkStatus();
}

// Prints each stage when the next begins, with the time it took.
class StageClock {
 public:
  void Start(absl::string_view stage) {
    Stop();
    line_.Step(stage);
    stage_ = std::string(stage);
    start_ = std::chrono::steady_clock::now();
  }
  void Stop() {
    if (stage_.empty()) return;
    line_.Step("");
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "%-14s %8.1f ms\n", stage_.c_str(), ms.count());
    stage_.clear();
  }

  ProgressLine& line() { return line_; }

 private:
  ProgressLine line_;
  std::string stage_;
  std::chrono::steady_clock::time_point start_;
};

// Without options: what is best for the model, said so that it can be asked for. Batching and types
// are left out where `advised` and `searched` choose them.
Status Plan(ConvertFlags& convert, bool advised, bool searched, std::string* text) {
  ASSIGN_OR_RETURN(ConversionPlan plan, PlanConversion(convert, !searched));
  convert.settings.auto_place = plan.auto_place;
  for (const std::string& reason : plan.reasons) std::printf("plan: %s\n", reason.c_str());
  if (advised) plan.batching.clear();
  *text = plan.Options();
  if (advised || searched) return OkStatus();
  std::printf("plan: the same again: %s--converter_options_string '%s'\n",
              plan.auto_place ? "--auto_place " : "", text->c_str());
  return OkStatus();
}

// --max_error: adds the types that it chose to the options.
Status ChooseTypes(const ConvertCommandFlags& flags, ConvertFlags& convert, std::string* text) {
  if (!convert.exclude.empty() || convert.settings.revert) {
    return InvalidArgument("--max_error chooses the types: leave out ",
                           convert.settings.revert ? "--revert" : "--exclude");
  }
  PrecisionBound bound;
  ASSIGN_OR_RETURN(bound.max_error, ParseMaxError(*flags.max_error));
  bound.labels = flags.labels;
  ASSIGN_OR_RETURN(convert.options, ParseConverterOptions(*text));
  convert.options_text = *text;
  ASSIGN_OR_RETURN(PrecisionPlan plan, SearchPrecision(convert, bound));
  std::printf("%smax_error: the same again: %s--converter_options_string '%s'\n",
              PrecisionSearchText(plan.search).c_str(),
              convert.settings.auto_place ? "--auto_place " : "", plan.options.c_str());
  convert.verify.tolerance = plan.tolerance;
  convert.verify.tolerance_from = "--max_error";
  convert.search = std::move(plan.search);
  *text = std::move(plan.options);
  return OkStatus();
}

StatusOr<int> RunCheck(ConvertCommandFlags& flags) {
  flags.convert.files = flags.resources.Files();
  ASSIGN_OR_RETURN(const CertificateCheck check, CheckCertificate(flags.convert));
  if (check.verification.done) std::printf("%s", VerificationText(check.verification).c_str());
  for (const std::string& difference : check.differences) {
    std::printf("check: %s\n", difference.c_str());
  }
  if (!check.differences.empty()) return kExitFailed;
  std::printf("check: %zu files are as certified%s\n", check.files,
              check.verification.done ? ", and so are the input and the answers" : "");
  return kExitOk;
}

// Flags that do not go together.
Status CheckFlags(const ConvertCommandFlags& flags, const std::string& options) {
  const ConvertFlags& convert = flags.convert;
  if (convert.settings.revert && !options.empty()) {
    return InvalidArgument("--revert takes no converter options");
  }
  if (convert.settings.revert && !flags.advise.log.empty()) {
    return InvalidArgument("--revert takes batching away: it goes without --advise_batching");
  }
  if (convert.verify.wanted() && convert.dry_run) {
    return InvalidArgument("--verify needs the converted model, which --dry_run does not write");
  }
  if (!flags.max_error && !flags.labels.empty()) {
    return InvalidArgument("--labels are what --max_error is measured by: give it, too");
  }
  return flags.max_error ? ParseMaxError(*flags.max_error).status() : OkStatus();
}

StatusOr<int> RunConvert(ConvertCommandFlags& flags) {
  std::string text = flags.options_string;
  if (!flags.options_file.empty()) {
    if (!text.empty()) {
      return InvalidArgument(
          "give --converter_options_string or --converter_options_file, not both");
    }
    ASSIGN_OR_RETURN(text, ReadInput(flags.options_file));
  }
  ConvertFlags& convert = flags.convert;
  convert.smelt_version = kSmeltVersion;
  RETURN_IF_ERROR(CheckFlags(flags, text));
  convert.files = flags.resources.Files();
  StageClock clock;
  convert.progress = [&clock](absl::string_view stage) { clock.Start(stage); };
  convert.count = [&clock](int64_t done, int64_t all) { clock.line().Count(done, all); };
  const bool unsaid = text.empty() && !convert.settings.auto_place && !convert.settings.revert;
  const bool advise = !flags.advise.log.empty(), search = flags.max_error.has_value();
  if (unsaid && convert.exclude.empty()) {
    RETURN_IF_ERROR(Plan(convert, advise, search, &text));
    clock.Stop();
  }
  if (search) {
    RETURN_IF_ERROR(ChooseTypes(flags, convert, &text));
    clock.Stop();
  }
  ASSIGN_OR_RETURN(convert.options, ParseConverterOptions(text));
  RETURN_IF_ERROR(ExcludeNodes(convert.exclude, convert.options));
  if (advise) {
    ASSIGN_OR_RETURN(convert.advice, AdviseBatching(convert, flags.advise));
    clock.Stop();
    TakeAdvice(convert, &text);
    if (convert.output_dir.empty() && !convert.dry_run) return kExitOk;
  }
  convert.options_text = text;
  if (!flags.report_json.empty()) convert.reports.push_back({flags.report_json, ConvertReportJson});
  if (!flags.report_html.empty()) convert.reports.push_back({flags.report_html, ConvertReportHtml});
  ReportData data;
  ASSIGN_OR_RETURN(const Conversion c, ConvertSavedModel(convert, &data));
  clock.Stop();
  std::printf("%s%s", ConversionReport(data).c_str(), ConvertSummary(c, data).c_str());
  if (!data.verification.done) return kExitOk;
  std::printf("%s", VerificationText(data.verification).c_str());
  if (data.verification.ok) return kExitOk;
  std::printf("verify: %s %s\n", convert.output_dir.c_str(),
              convert.verify.keep_failed ? "is kept all the same"
                                         : "is not written; --keep_failed writes it all the same");
  return kExitFailed;
}

}  // namespace

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

std::string ConvertSummary(const Conversion& c, const ReportData& data) {
  std::string out;
  if (!data.placements.empty()) {
    absl::StrAppendFormat(&out, "HBM: %s of %s (%s)\n", BytesText(data.hbm_bytes),
                          BytesText(data.tpu->hbm_bytes), data.tpu->name);
  }
  if (data.transfer_bytes_before > 0) {
    absl::StrAppendFormat(&out, "Transfers: %s, before %s\n", BytesText(data.transfer_bytes),
                          BytesText(data.transfer_bytes_before));
  }
  if (data.training.bytes() > 0) {
    absl::StrAppendFormat(&out, "Training: %s %s (%s of variables, %s of saved_model.pb)\n",
                          data.training.stripped ? "stripped" : "--strip_training would save",
                          BytesText(data.training.bytes()), BytesText(data.training.variable_bytes),
                          BytesText(data.training.model_bytes));
  }
  const std::vector<Note>& notes = c.records.notes;
  for (size_t i = 0; i < notes.size() && i < kMaxNotesShown; ++i) {
    absl::StrAppend(&out, "note: ", notes[i].text, "\n");
  }
  if (notes.size() > kMaxNotesShown) {
    absl::StrAppend(&out, "... and ", notes.size() - kMaxNotesShown,
                    " more notes: --report_json or --report_html lists them\n");
  }
  return out;
}

CommandBody SetupConvert(CLI::App& app) {
  auto flags = std::make_shared<ConvertCommandFlags>();
  ConvertFlags& convert = flags->convert;
  flags->input.Add(app, "in", "--input_model_dir", kModelHelp);
  flags->output.Add(app, "out", "--output_model_dir", "Folder for the converted SavedModel");
  app.add_option("--converter_options_string", flags->options_string,
                 "ConverterOptions in protobuf text format");
  app.add_option("--converter_options_file", flags->options_file,
                 "File with ConverterOptions in protobuf text format");
  auto* explain =
      app.add_option("--explain", flags->explain,
                     "Say what a field of the options means and may hold; without a name, all")
          ->expected(0, 1)
          ->type_name("[FIELD]");
  app.add_flag("--overwrite", convert.overwrite, "Replace the output folder if it is there");
  app.add_flag("--revert", convert.settings.revert, "Turn a converted model back into a plain one");
  app.add_option("--exclude", convert.exclude,
                 "Regular expression of layers (whole node names) that are not quantized");
  app.add_flag("--dry_run", convert.dry_run, "Convert and report, write no model");
  app.add_flag("--auto_place", convert.settings.auto_place,
               "Find the part that a TPU can run, of each function that tpu_functions names, else "
               "of each signature");
  app.add_flag("--allow_soft_placement", convert.settings.allow_soft_placement,
               "Ops that a TPU cannot run stay on the CPU, within a TPU function");
  app.add_flag("--strip_training", convert.settings.strip_training,
               "Leave out what only training uses: optimizers, metrics, training's functions");
  app.add_flag("--warmup_requests", convert.warmup_requests,
               "Write requests that TensorFlow Serving warms up with");
  app.add_option("--tpu", convert.tpu, "TPU generation that the reports measure against")
      ->check(CLI::IsMember(TpuGenerationNames()))
      ->capture_default_str();
  app.add_option("--report_json", flags->report_json, "Write the report as JSON (docs/report.md)");
  app.add_option("--report_html", flags->report_html, "Write the report as one HTML page");
  app.add_option(
         "--verify", convert.verify.count,
         "Compare both models on so many requests for each signature, the model's own or made up")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--verify_log", convert.verify.log,
                 "Compare both models on the inputs of a TFRecord file of PredictionLogs");
  app.add_option(
         "--verify_tolerance", convert.verify.tolerance,
         "Largest difference relative to an output's range (1e-3; 2e-2 where bfloat16, 5e-2 "
         "where int8 came in)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--certificate", convert.certificate,
               "Write what --verify found, and hashes of all files, into assets.extra");
  app.add_flag("--check", flags->check,
               "Convert nothing: compare out with its certificate, and with in where it is given");
  app.add_option("--max_error", flags->max_error,
                 "Choose int8, bfloat16 or float32 for each layer: the cheapest by which answers "
                 "to the requests of --verify_log or --verify differ by at most so much of an "
                 "output's range (1% or 0.01)");
  app.add_option("--labels", flags->labels,
                 "The right class of each row of --verify_log's requests: --max_error is then of "
                 "accuracy")
      ->type_name("[OUTPUT=]FILE.npy");
  app.add_option("--shapes_only", convert.verify.shapes_only,
                 "Outputs (random ones) of which --verify compares only dtype and shape");
  app.add_flag("--keep_failed", convert.verify.keep_failed,
               "Write the output folder also when --verify finds that it differs");
  AddAdviseFlags(app, &flags->advise);
  AddResourceFlags(app, &flags->resources);
  AddUnpackLimitFlag(app);
  return [flags, explain]() -> StatusOr<int> {
    if (explain->count() > 0) {
      ASSIGN_OR_RETURN(const std::string text, ExplainOptions(flags->explain));
      std::fwrite(text.data(), 1, text.size(), stdout);
      return kExitOk;
    }
    std::string wrong;
    ConvertFlags& convert = flags->convert;
    convert.input_dir = flags->input.Get(&wrong);
    convert.output_dir = flags->output.Get(&wrong);
    if (flags->check && convert.output_dir.empty()) {
      convert.output_dir.swap(convert.input_dir);
    }
    if (flags->check && !convert.output_dir.empty()) {
      return wrong.empty() ? RunCheck(*flags) : UsageError(wrong);
    }
    if (convert.input_dir.empty()) wrong = "smelt convert needs a model";
    const bool only_advice =
        !flags->advise.log.empty() && flags->report_json.empty() && flags->report_html.empty();
    if (convert.output_dir.empty() && !convert.dry_run && !only_advice && wrong.empty()) {
      wrong = "smelt convert needs a folder for the result: out or --output_model_dir is required";
    }
    return wrong.empty() ? RunConvert(*flags) : UsageError(wrong);
  };
}

}  // namespace smelt
