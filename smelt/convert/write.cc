// From folder to folder: the output appears whole or not at all.
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/convert/certificate.h"
#include "smelt/convert/report/report_data.h"
#include "smelt/convert/strip_training.h"
#include "smelt/convert/warmup.h"
#include "smelt/io/path.h"
#include "smelt/io/staged_file.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/output_folder.h"

namespace smelt {
namespace {

// A report's path below the output folder, or "" when it lies elsewhere.
StatusOr<std::string> WithinOutput(const std::string& report, const std::string& output) {
  ASSIGN_OR_RETURN(const std::string folder, ResolvedPath(output));
  // A pipe that is open as /dev/stdout has no path. Of one that is wrong, writing will tell.
  const StatusOr<std::string> path = ResolvedPath(report);
  if (!path.ok() || !LiesIn(*path, folder)) return std::string();
  return std::string(absl::StripPrefix(absl::string_view(*path).substr(folder.size()), "/"));
}

// The reports, written beside their places: what fails in writing fails before anything is put in
// place. Those that lie in the output folder are part of it.
class Reports {
 public:
  Status Write(const ConvertFlags& flags, const Conversion& c, const ReportData& data,
               const StagedFolder* output) {
    for (const ReportFile& report : flags.reports) {
      std::string path = report.path;
      if (output != nullptr) {
        ASSIGN_OR_RETURN(const std::string below, WithinOutput(path, flags.output_dir));
        if (!below.empty()) path = output->path() + "/" + below;
      }
      ASSIGN_OR_RETURN(auto file, StagedFile::Make(path, OtherWriter::kRefuse));
      RETURN_IF_ERROR(file->Write(report.text(c, data)));
      if (path == report.path) {
        files_.push_back(std::move(file));
      } else {
        RETURN_IF_ERROR(file->Publish());
      }
    }
    return OkStatus();
  }
  Status Publish() {
    for (const auto& file : files_) RETURN_IF_ERROR(file->Publish());
    return OkStatus();
  }

 private:
  std::vector<std::unique_ptr<StagedFile>> files_;
};

// Entries of the output folder that reports lie in.
StatusOr<std::vector<std::string>> ReportEntries(const ConvertFlags& flags) {
  std::vector<std::string> names;
  for (const ReportFile& report : flags.reports) {
    ASSIGN_OR_RETURN(const std::string below, WithinOutput(report.path, flags.output_dir));
    if (!below.empty()) names.push_back(below.substr(0, below.find('/')));
  }
  return names;
}

}  // namespace

StatusOr<Conversion> ConvertSavedModel(const ConvertFlags& flags, ReportData* report) {
  if (flags.input_dir.empty() || (flags.output_dir.empty() && !flags.dry_run)) {
    return InvalidArgument("both --input_model_dir and --output_model_dir are needed");
  }
  if (flags.certificate && !flags.verify.wanted()) {
    return InvalidArgument(
        "--certificate states how far both models' answers differ: it needs --verify or "
        "--verify_log");
  }
  const TpuGeneration* tpu = FindTpuGeneration(flags.tpu);
  if (tpu == nullptr) {
    return InvalidArgument("no TPU generation \"", flags.tpu, "\"; there are ",
                           absl::StrJoin(TpuGenerationNames(), ", "));
  }
  Conversion c;
  c.options = flags.options;
  c.settings = flags.settings;
  c.progress = flags.progress;
  c.count = flags.count;
  c.records.search = flags.search;
  if (c.progress) c.progress("read");
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags.input_dir));
  c.files = flags.files.With(FoldersOfModel(folder.dir()));
  // First of all: a place that cannot be written is known before any work is done.
  std::unique_ptr<StagedFolder> output;
  if (!flags.dry_run) {
    ASSIGN_OR_RETURN(std::vector<std::string> reports, ReportEntries(flags));
    ASSIGN_OR_RETURN(output, StageOutput({flags.input_dir, folder.dir(), flags.output_dir,
                                          flags.overwrite, std::move(reports)}));
  }
  std::optional<TrainingMeasurement> training;
  if (flags.measure_training && !c.settings.strip_training) training.emplace(folder.dir(), c.files);
  ASSIGN_OR_RETURN(c.model, ReadSavedModel(folder.dir()));
  if (!folder.version().empty()) {
    c.records.AddNote("read", absl::StrCat("version ", folder.version(), " of ", flags.input_dir));
  }
  RETURN_IF_ERROR(Convert(c));
  if (c.progress) c.progress("report");
  ASSIGN_OR_RETURN(*report, MakeReportData(c, *tpu));
  report->options = flags.options_text;
  report->advice = flags.advice;
  report->training = c.records.training;
  if (training) {
    const auto parts = training->Get();
    if (parts.ok()) {
      report->training = *parts;
    } else {
      c.records.AddNote("report", absl::StrCat("what only training uses is not known: ",
                                               parts.status().ToString()));
    }
  }
  if (!flags.reports.empty() || flags.certificate) {
    ASSIGN_OR_RETURN(report->model, DescribeModel(flags.input_dir, folder, *c.meta));
  }
  Reports reports;
  if (flags.dry_run) {
    RETURN_IF_ERROR(reports.Write(flags, c, *report, nullptr));
    RETURN_IF_ERROR(reports.Publish());
    return c;
  }
  if (c.progress) c.progress("write");
  const bool new_variables = c.variables != nullptr && c.variables->changed();
  std::set<std::string> without;
  if (new_variables) without.insert("variables");
  // From this Keras makes layers anew, which are objects like others once they are stripped.
  if (c.settings.strip_training) without.insert("keras_metadata.pb");
  RETURN_IF_ERROR(CopyRest(folder.dir(), output->path(), without, c.files));
  RETURN_IF_ERROR(RemoveOldCertificate(output->path()));
  if (new_variables) {
    RETURN_IF_ERROR(c.variables->WriteBundle(output->path() + "/variables/variables"));
  }
  RETURN_IF_ERROR(WriteSavedModel(c.model, output->path()));
  if (flags.warmup_requests) {
    if (c.progress) c.progress("warmup");
    RETURN_IF_ERROR(WriteWarmupRequests(c, output->path()));
  }
  if (flags.verify.wanted()) {
    if (c.progress) c.progress("verify");
    ASSIGN_OR_RETURN(report->verification,
                     VerifyConversion(flags.verify, c, folder.dir(), output->path(), flags.count));
  }
  RETURN_IF_ERROR(reports.Write(flags, c, *report, output.get()));
  if (flags.certificate && report->verification.ok) {
    RETURN_IF_ERROR(WriteCertificate(flags, c, *report, output->path()));
  }
  if (report->verification.ok || flags.verify.keep_failed) RETURN_IF_ERROR(output->Publish());
  RETURN_IF_ERROR(reports.Publish());
  return c;
}

}  // namespace smelt
