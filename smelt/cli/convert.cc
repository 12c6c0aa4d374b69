// smelt convert: the flags of TensorFlow's inference converter, and smelt's own.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "absl/strings/str_format.h"
#include "smelt/cli/command.h"
#include "smelt/cli/report/reports.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

// The JSON and HTML reports have all notes.
constexpr size_t kMaxNotesShown = 12;
constexpr double kVerifyTolerance = 1e-3, kVerifyToleranceBfloat16 = 2e-2;

struct ConvertCommandFlags {
  std::string options_string, options_file;
  std::string report_json, report_html;
  VerifyFlags verify;
  std::optional<double> tolerance;
  std::vector<std::string> exclude;
  ConvertFlags convert;
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
    stage_ = std::string(stage);
    start_ = std::chrono::steady_clock::now();
  }
  void Stop() {
    if (stage_.empty()) return;
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "%-14s %8.1f ms\n", stage_.c_str(), ms.count());
    stage_.clear();
  }

 private:
  std::string stage_;
  std::chrono::steady_clock::time_point start_;
};

StatusOr<int> RunConvert(ConvertCommandFlags& flags) {
  std::string text = flags.options_string;
  if (!flags.options_file.empty()) {
    if (!text.empty()) {
      return InvalidArgument(
          "give --converter_options_string or --converter_options_file, not both");
    }
    ASSIGN_OR_RETURN(text, ReadFile(flags.options_file));
  }
  ConvertFlags& convert = flags.convert;
  if (convert.settings.revert && !text.empty()) {
    return InvalidArgument("--revert takes no converter options");
  }
  ASSIGN_OR_RETURN(convert.options, ParseConverterOptions(text));
  RETURN_IF_ERROR(ExcludeNodes(flags.exclude, convert.options));
  const bool verify = flags.verify.count > 0 || !flags.verify.log.empty();
  if (verify && convert.dry_run) {
    return InvalidArgument("--verify needs the converted model, which --dry_run does not write");
  }
  if (!flags.report_json.empty()) convert.reports.push_back({flags.report_json, ConvertReportJson});
  if (!flags.report_html.empty()) convert.reports.push_back({flags.report_html, ConvertReportHtml});
  StageClock clock;
  convert.progress = [&clock](absl::string_view stage) { clock.Start(stage); };
  ReportData data;
  bool bfloat16 = false;
  {
    ASSIGN_OR_RETURN(const Conversion c, ConvertSavedModel(convert, &data));
    clock.Stop();
    bfloat16 = c.Bfloat16();
    if (!c.records.batches.empty()) {
      flags.verify.largest_batch = c.options.batch_options[0].max_batch_size;
    }
    std::printf("%s%s", ConversionReport(data).c_str(), ConvertSummary(c, data).c_str());
  }
  if (!verify) return kExitOk;
  flags.verify.original = convert.input_dir;
  flags.verify.converted = convert.output_dir;
  flags.verify.tolerance =
      flags.tolerance.value_or(bfloat16 ? kVerifyToleranceBfloat16 : kVerifyTolerance);
  clock.Start("verify");
  ASSIGN_OR_RETURN(const bool equal, VerifyConversion(flags.verify));
  clock.Stop();
  if (!equal && bfloat16) {
    std::printf(
        "verify: if bfloat16 is why, set bfloat16_optimization: DISABLED, or keep op types in "
        "float32 by bfloat16_optimization_options { filterlist: \"...\" } (docs/bfloat16.md)\n");
  }
  return equal ? kExitOk : kExitFailed;
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
  app.add_option("--input_model_dir", convert.input_dir, "SavedModel to convert")->required();
  auto* output = app.add_option("--output_model_dir", convert.output_dir,
                                "Folder for the converted SavedModel");
  app.add_option("--converter_options_string", flags->options_string,
                 "ConverterOptions in protobuf text format");
  app.add_option("--converter_options_file", flags->options_file,
                 "File with ConverterOptions in protobuf text format");
  app.add_flag("--overwrite", convert.overwrite, "Replace the output folder if it is there");
  app.add_flag("--revert", convert.settings.revert, "Turn a converted model back into a plain one");
  app.add_option("--exclude", flags->exclude,
                 "Regular expression of layers (whole node names) that are not quantized");
  app.add_flag("--dry_run", convert.dry_run, "Convert and report, write no model");
  app.add_flag("--auto_place", convert.settings.auto_place,
               "Find the part that a TPU can run, of each function that tpu_functions names, else "
               "of each signature");
  app.add_flag("--allow_soft_placement", convert.settings.allow_soft_placement,
               "Ops that a TPU cannot run stay on the CPU, within a TPU function");
  app.add_flag("--warmup_requests", convert.warmup_requests,
               "Write requests that TensorFlow Serving warms up with");
  app.add_option("--tpu", convert.tpu, "TPU generation that the reports measure against")
      ->check(CLI::IsMember(TpuGenerationNames()))
      ->capture_default_str();
  app.add_option("--report_json", flags->report_json, "Write the report as JSON (docs/report.md)");
  app.add_option("--report_html", flags->report_html, "Write the report as one HTML page");
  app.add_option("--verify", flags->verify.count,
                 "Compare both models on so many made-up inputs for each signature")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--verify_log", flags->verify.log,
                 "Compare both models on the inputs of a TFRecord file of PredictionLogs");
  app.add_option("--verify_tolerance", flags->tolerance,
                 "Largest difference relative to an output's range (1e-3; 2e-2 with bfloat16)")
      ->check(CLI::NonNegativeNumber);
  return [flags, output]() -> StatusOr<int> {
    if (output->count() == 0 && !flags->convert.dry_run) {
      std::fprintf(stderr,
                   "--output_model_dir is required\nRun with --help for more information.\n");
      return kExitUsage;
    }
    return RunConvert(*flags);
  };
}

}  // namespace smelt
