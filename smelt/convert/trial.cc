#include "smelt/convert/trial.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "smelt/convert/report/report_data.h"
#include "smelt/io/temporary_folder.h"
#include "smelt/model/model_folder.h"

namespace smelt {

StatusOr<Conversion> ConvertInMemory(const ConvertFlags& flags, const std::string& dir,
                                     const std::string& options) {
  Conversion c;
  ASSIGN_OR_RETURN(c.options, ParseConverterOptions(options));
  c.settings = flags.settings;
  c.files = flags.files.With(FoldersOfModel(dir));
  ASSIGN_OR_RETURN(c.model, ReadSavedModel(dir));
  RETURN_IF_ERROR(Convert(c));
  return c;
}

StatusOr<TriedConversion> ConvertAndVerify(const ConvertFlags& flags, const std::string& options) {
  ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make("smelt_plan"));
  ConvertFlags tried = flags;
  tried.options_text = options;
  ASSIGN_OR_RETURN(tried.options, ParseConverterOptions(options));
  tried.output_dir = folder->path() + "/model";
  tried.reports.clear();
  // Nobody reads what else would come of it.
  tried.dry_run = tried.warmup_requests = tried.certificate = tried.measure_training = false;
  tried.progress = nullptr;
  ReportData data;
  ASSIGN_OR_RETURN(Conversion c, ConvertSavedModel(tried, &data));
  return TriedConversion{std::move(c), std::move(data.verification)};
}

std::string WorstDifference(const Verification& v) {
  const bool differs = std::ranges::any_of(v.outputs, [](const auto& o) { return !o.ok; });
  // What is not ok without that is a request that failed.
  if (v.outputs.empty() || (!v.ok && !differs)) return FirstLine(v.notes.at(0));
  const auto worst = std::ranges::max_element(v.outputs, [](const auto& a, const auto& b) {
    return std::pair(!a.ok, a.max_relative) < std::pair(!b.ok, b.max_relative);
  });
  if (!worst->why.empty()) {
    return absl::StrCat("output '", worst->output, "' of signature '", worst->signature, "' ",
                        worst->why);
  }
  std::string said =
      absl::StrFormat("answers differ by %.2g of an output's range at most, over %d requests",
                      worst->max_relative, worst->requests);
  for (const VerifiedOutput& o : v.outputs) {
    if (!o.random) continue;
    absl::StrAppend(&said, "; output '", o.output, "' of signature '", o.signature,
                    "' is random, and not compared");
  }
  return said;
}

std::string FirstLine(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty()) return "";
  if (lines.size() == 1 || !absl::EndsWith(lines[0], ":")) return std::string(lines[0]);
  return absl::StrCat(lines[0], " ", absl::StripLeadingAsciiWhitespace(lines[1]));
}

}  // namespace smelt
