#include "smelt/convert/planner.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/convert/report/report_data.h"
#include "smelt/io/temporary_folder.h"
#include "smelt/model/model_folder.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

constexpr int kPlannedRequests = 4;
// Few requests do not meet the worst one: where they come close to the limit, more are asked.
constexpr int kMorePlannedRequests = 16;
constexpr double kCloseToLimit = 0.25;
// Of what is served in bfloat16, relative to the range of an output.
constexpr double kPlannedError = 2e-2;
constexpr char kPlannedBatches[] =
    "batch_options { num_batch_threads: 8 max_batch_size: 64 batch_timeout_micros: 1000 "
    "allowed_batch_sizes: 8 allowed_batch_sizes: 16 allowed_batch_sizes: 32 "
    "allowed_batch_sizes: 64 max_enqueued_batches: 100 }";
constexpr char kFloat[] = "bfloat16_optimization: DISABLED";
constexpr char kBfloat16[] = "bfloat16_optimization: ENABLED";

class Planner {
 public:
  explicit Planner(const ConvertFlags& flags) : flags_(flags) {}

  StatusOr<ConversionPlan> Run() {
    ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags_.input_dir));
    dir_ = folder.dir();
    if (flags_.progress) flags_.progress("plan");
    RETURN_IF_ERROR(Place());
    RETURN_IF_ERROR(BatchAndRound());
    return std::move(plan_);
  }

 private:
  // The conversion in memory.
  StatusOr<Conversion> Try(const std::string& text) const {
    Conversion c;
    ASSIGN_OR_RETURN(c.options, ParseConverterOptions(text));
    c.settings = flags_.settings;
    c.settings.auto_place = plan_.auto_place;
    c.files = flags_.files.With(FoldersOfModel(dir_));
    ASSIGN_OR_RETURN(c.model, ReadSavedModel(dir_));
    RETURN_IF_ERROR(Convert(c));
    return c;
  }

  Status Place() {
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir_));
    const MetaGraph* meta = model.meta_graphs.empty() ? nullptr : &model.meta_graphs[0];
    if (model.meta_graphs.size() > 1) {
      ASSIGN_OR_RETURN(meta, FindMetaGraph(model, {"serve"}));
    }
    for (const auto& [name, signature] :
         meta == nullptr ? std::map<std::string, Signature>() : meta->signatures) {
      if (name != kInitSignature && !signature.outputs.empty()) names_.push_back(name);
    }
    std::string why = "the model has no signatures";
    if (!names_.empty()) {
      for (const std::string& name : names_) {
        Add(absl::StrCat("tpu_functions { signature_name: \"", absl::CEscape(name), "\" }"));
      }
      const auto whole = Try(With(kFloat));
      if (whole.ok()) {
        Reason("placement: all that signatures compute goes to the TPU, which can run it: ",
               absl::StrJoin(names_, ", "));
        return OkStatus();
      }
      why = FirstLine(whole.status().message());
      plan_.options.clear();
    }
    plan_.auto_place = true;
    const auto part = Try(kFloat);
    RETURN_IF_ERROR(part.status());
    Reason("placement: the parts that a TPU can run (--auto_place), because not everything can: ",
           why);
    return OkStatus();
  }

  // The fastest form that answers alike: batches and bfloat16, then less of either.
  Status BatchAndRound() {
    const auto tried = Try(absl::StrCat(With(kPlannedBatches), " ", kFloat));
    std::string no_batches = tried.ok() ? "" : FirstLine(tried.status().message());
    std::string no_bfloat16, nothing;
    for (const bool batches : {true, false}) {
      if (batches && !tried.ok()) continue;
      const std::string form = batches ? absl::StrCat(kPlannedBatches, " ") : "";
      for (const char* precision : {kBfloat16, kFloat}) {
        ASSIGN_OR_RETURN(Verification v, Verify(absl::StrCat(form, precision), kPlannedRequests));
        if (v.ok && !flags_.verify.wanted() && Largest(v) > kCloseToLimit * v.tolerance) {
          ASSIGN_OR_RETURN(v, Verify(absl::StrCat(form, precision), kMorePlannedRequests));
        }
        nothing = NotCompared(v);
        if (!nothing.empty()) break;
        if (v.ok) {
          Add(absl::StrCat(form, precision));
          SayBatches(no_batches);
          Reason("precision: ", precision == kBfloat16 ? "bfloat16" : "float32", ": ", Worst(v),
                 precision == kBfloat16 ? "" : "; bfloat16 does not answer alike: ",
                 precision == kBfloat16 ? "" : no_bfloat16);
          return OkStatus();
        }
        (precision == kBfloat16 ? no_bfloat16 : no_batches) = WhyNot(v);
      }
      if (!nothing.empty()) break;
    }
    Add(kFloat);
    if (no_batches.empty()) no_batches = "answers could not be compared";
    SayBatches(no_batches);
    Reason("precision: float32, not verified: ", nothing.empty() ? no_batches : nothing);
    return OkStatus();
  }

  void SayBatches(const std::string& why_not) {
    if (!absl::StrContains(plan_.options, kPlannedBatches)) {
      return Reason("batching: none: ", why_not);
    }
    plan_.batching = kPlannedBatches;
    Reason("batching: up to 64 rows, padded to 8, 16, 32 or 64: each row of an answer depends on ",
           "that row of the request alone");
  }

  // Why answers of some signature say nothing; empty: all were compared. Of a log the user knows
  // what is in it.
  std::string NotCompared(const Verification& v) const {
    if (v.outputs.empty()) return FirstLine(v.notes.at(0));
    if (!flags_.verify.log.empty()) return "";
    for (const std::string& name : names_) {
      const auto of_it = [&](const VerifiedOutput& o) { return o.signature == name; };
      if (std::ranges::any_of(v.outputs, of_it)) continue;
      const std::string about = absl::StrCat("signature '", name, "'");
      const auto note = std::ranges::find_if(
          v.notes, [&](const std::string& n) { return absl::StartsWith(n, about); });
      return note == v.notes.end() ? absl::StrCat(about, ": nothing was compared")
                                   : FirstLine(*note);
    }
    return "";
  }

  StatusOr<Verification> Verify(absl::string_view form, int requests) const {
    ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make("smelt_plan"));
    ConvertFlags flags = flags_;
    flags.options_text = With(form);
    ASSIGN_OR_RETURN(flags.options, ParseConverterOptions(flags.options_text));
    flags.settings.auto_place = plan_.auto_place;
    flags.output_dir = folder->path() + "/model";
    flags.reports.clear();
    flags.dry_run = flags.warmup_requests = false;
    flags.progress = nullptr;
    if (!flags.verify.wanted()) flags.verify.count = requests;
    if (!flags.verify.tolerance) flags.verify.tolerance = kPlannedError;
    ReportData data;
    RETURN_IF_ERROR(ConvertSavedModel(flags, &data).status());
    return std::move(data.verification);
  }

  static double Largest(const Verification& v) {
    double largest = 0;
    for (const VerifiedOutput& o : v.outputs) largest = std::max(largest, o.max_relative);
    return largest;
  }
  // A failure is said before differences, which may be none.
  static std::string WhyNot(const Verification& v) {
    const bool differ = std::ranges::any_of(v.outputs, [](const auto& o) { return !o.ok; });
    return differ || v.notes.empty() ? Worst(v) : FirstLine(v.notes.at(0));
  }
  static std::string Worst(const Verification& v) {
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

  // With the first of what it lists.
  static std::string FirstLine(absl::string_view text) {
    const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    if (lines.empty()) return "";
    if (lines.size() == 1 || !absl::EndsWith(lines[0], ":")) return std::string(lines[0]);
    return absl::StrCat(lines[0], " ", absl::StripLeadingAsciiWhitespace(lines[1]));
  }
  std::string With(absl::string_view more) const {
    return absl::StrCat(plan_.options, plan_.options.empty() ? "" : " ", more);
  }
  void Add(absl::string_view text) { plan_.options = With(text); }
  template <typename... Text>
  void Reason(const Text&... text) {
    plan_.reasons.push_back(absl::StrCat(text...));
  }

  const ConvertFlags& flags_;
  std::string dir_;
  std::vector<std::string> names_;  // of signatures that answer something
  ConversionPlan plan_;
};

}  // namespace

StatusOr<ConversionPlan> PlanConversion(const ConvertFlags& flags) { return Planner(flags).Run(); }

}  // namespace smelt
