// From folder to folder: the output appears whole or not at all.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "smelt/convert/report/report_data.h"
#include "smelt/convert/warmup.h"
#include "smelt/io/fs.h"
#include "smelt/model/model_folder.h"

namespace smelt {
namespace {

namespace stdfs = std::filesystem;

Status FromCode(const std::error_code& e, const std::string& what) {
  return e ? Internal(what, ": ", e.message()) : OkStatus();
}

// Everything of the input folder but what the conversion writes itself.
Status CopyRest(const std::string& from, const std::string& to, bool variables) {
  std::error_code e;
  for (const auto& entry : stdfs::directory_iterator(from, e)) {
    const std::string name = entry.path().filename();
    if (name == "saved_model.pb" || name == "saved_model.pbtxt" || name == "fingerprint.pb" ||
        (name == "variables" && !variables)) {
      continue;
    }
    stdfs::copy(entry.path(), stdfs::path(to) / name, stdfs::copy_options::recursive, e);
    if (e) return FromCode(e, absl::StrCat("copying ", entry.path().string()));
  }
  return FromCode(e, absl::StrCat("reading ", from));
}

// A path that is removed at the end of the scope, unless it was renamed away.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code ignored;
    stdfs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool HoldsSomething(const std::string& dir) {
  std::error_code e;
  return stdfs::exists(dir, e) && !(stdfs::is_directory(dir, e) && stdfs::is_empty(dir, e));
}

// A mount point cannot be renamed over: its entries move one by one, the model file last.
Status MoveEntries(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(from));
  for (const bool model : {false, true}) {
    for (const std::string& name : names) {
      if ((name == "saved_model.pb") != model) continue;
      std::error_code e;
      stdfs::rename(stdfs::path(from) / name, stdfs::path(to) / name, e);
      if (e) {
        e.clear();
        stdfs::copy(stdfs::path(from) / name, stdfs::path(to) / name,
                    stdfs::copy_options::recursive, e);
      }
      RETURN_IF_ERROR(FromCode(e, absl::StrCat("moving ", name, " to ", to)));
    }
  }
  return OkStatus();
}

Status PutInPlace(const std::string& from, const std::string& to, bool overwrite) {
  std::error_code e;
  if (overwrite && HoldsSomething(to)) {
    const Scratch old(absl::StrCat(to, ".old-", getpid()));
    stdfs::rename(to, old.path(), e);
    RETURN_IF_ERROR(FromCode(e, absl::StrCat("moving ", to, " aside")));
    stdfs::rename(from, to, e);
    return FromCode(e, absl::StrCat("renaming to ", to));
  }
  if (std::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
  if (stdfs::is_directory(to, e)) return MoveEntries(from, to);
  return Internal("renaming to ", to, ": ", std::strerror(errno));
}

Status WriteReports(const ConvertFlags& flags, const Conversion& c, const ReportData& data,
                    const std::string& suffix) {
  for (const ReportFile& file : flags.reports) {
    RETURN_IF_ERROR(WriteFileAtomically(file.path + suffix, file.text(c, data)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Conversion> ConvertSavedModel(const ConvertFlags& flags, ReportData* report) {
  if (flags.input_dir.empty() || (flags.output_dir.empty() && !flags.dry_run)) {
    return InvalidArgument("both --input_model_dir and --output_model_dir are needed");
  }
  std::string output = flags.output_dir;
  while (output.size() > 1 && output.back() == '/') output.pop_back();
  if (!flags.overwrite && !flags.dry_run && HoldsSomething(output)) {
    return AlreadyExists("the output folder ", output, " is not empty (use --overwrite)");
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
  if (c.progress) c.progress("read");
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags.input_dir));
  ASSIGN_OR_RETURN(c.model, ReadSavedModel(folder.dir()));
  if (!folder.version().empty()) {
    c.records.AddNote("read", absl::StrCat("version ", folder.version(), " of ", flags.input_dir));
  }
  RETURN_IF_ERROR(Convert(c));
  if (c.progress) c.progress("report");
  ASSIGN_OR_RETURN(*report, MakeReportData(c, *tpu));
  report->options = flags.options_text;
  if (!flags.reports.empty()) {
    ASSIGN_OR_RETURN(report->model, DescribeModel(flags.input_dir, folder, *c.meta));
  }
  if (flags.dry_run) {
    RETURN_IF_ERROR(WriteReports(flags, c, *report, ""));
    return c;
  }
  if (c.progress) c.progress("write");
  const stdfs::path parent = stdfs::path(output).parent_path();
  if (!parent.empty()) RETURN_IF_ERROR(MakeDirs(parent.string()));
  const Scratch beside(absl::StrCat(output, ".tmp-", getpid()));
  RETURN_IF_ERROR(MakeDirs(beside.path()));
  const bool new_variables = c.variables != nullptr && c.variables->changed();
  RETURN_IF_ERROR(CopyRest(folder.dir(), beside.path(), !new_variables));
  if (new_variables) {
    RETURN_IF_ERROR(c.variables->WriteBundle(beside.path() + "/variables/variables"));
  }
  RETURN_IF_ERROR(WriteSavedModel(c.model, beside.path()));
  if (flags.warmup_requests) {
    if (c.progress) c.progress("warmup");
    RETURN_IF_ERROR(WriteWarmupRequests(c, beside.path()));
  }
  // Reports are written beside their paths first: what fails in writing fails before anything is
  // put in place.
  std::vector<std::unique_ptr<Scratch>> reports;
  const std::string suffix = absl::StrCat(".tmp-", getpid());
  for (const ReportFile& file : flags.reports) {
    reports.push_back(std::make_unique<Scratch>(file.path + suffix));
  }
  RETURN_IF_ERROR(WriteReports(flags, c, *report, suffix));
  RETURN_IF_ERROR(PutInPlace(beside.path(), output, flags.overwrite));
  for (const ReportFile& file : flags.reports) {
    std::error_code e;
    stdfs::rename(file.path + suffix, file.path, e);
    RETURN_IF_ERROR(FromCode(e, absl::StrCat("renaming to ", file.path)));
  }
  return c;
}

}  // namespace smelt
