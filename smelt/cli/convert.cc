// smelt convert: flags of the inference converter.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "smelt/cli/command.h"
#include "smelt/convert/conversion.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

struct ConvertCommandFlags {
  std::string input, output, options_string, options_file;
  bool overwrite = false, revert = false;
  std::vector<std::string> exclude;
};

// Nodes that stay float: one more unit-wise specification.
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
    std::fprintf(stderr, "%-12s %8.1f ms\n", stage_.c_str(), ms.count());
    stage_.clear();
  }

 private:
  std::string stage_;
  std::chrono::steady_clock::time_point start_;
};

StatusOr<int> RunConvert(const ConvertCommandFlags& flags) {
  std::string text = flags.options_string;
  if (!flags.options_file.empty()) {
    if (!text.empty()) {
      return InvalidArgument(
          "give --converter_options_string or --converter_options_file, not both");
    }
    ASSIGN_OR_RETURN(text, ReadFile(flags.options_file));
  }
  ConvertFlags convert;
  convert.input_dir = flags.input;
  convert.output_dir = flags.output;
  convert.overwrite = flags.overwrite;
  convert.settings.revert = flags.revert;
  if (flags.revert && !text.empty()) {
    return InvalidArgument("--revert takes no converter options");
  }
  ASSIGN_OR_RETURN(convert.options, ParseConverterOptions(text));
  RETURN_IF_ERROR(ExcludeNodes(flags.exclude, convert.options));
  StageClock clock;
  convert.progress = [&clock](absl::string_view stage) { clock.Start(stage); };
  std::string report;
  ASSIGN_OR_RETURN(const Conversion c, ConvertSavedModel(convert, &report));
  clock.Stop();
  std::printf("%s", report.c_str());
  for (const Note& note : c.records.notes) std::printf("note: %s\n", note.text.c_str());
  return kExitOk;
}

}  // namespace

CommandBody SetupConvert(CLI::App& app) {
  auto flags = std::make_shared<ConvertCommandFlags>();
  app.add_option("--input_model_dir", flags->input, "SavedModel to convert")->required();
  app.add_option("--output_model_dir", flags->output, "Folder for the converted SavedModel")
      ->required();
  app.add_option("--converter_options_string", flags->options_string,
                 "ConverterOptions in protobuf text format");
  app.add_option("--converter_options_file", flags->options_file,
                 "File with ConverterOptions in protobuf text format");
  app.add_flag("--revert", flags->revert, "Turn a converted model back into a plain one");
  app.add_option("--exclude", flags->exclude,
                 "Regular expression of layers (whole node names) that are not quantised");
  app.add_flag("--overwrite", flags->overwrite, "Replace the output folder if it is there");
  return [flags] { return RunConvert(*flags); };
}

}  // namespace smelt
