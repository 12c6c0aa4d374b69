#include "smelt/convert/planner.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "smelt/convert/trial.h"
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

std::string JoinOptions(std::vector<absl::string_view> parts) {
  std::erase(parts, "");
  return absl::StrJoin(parts, " ");
}

class Planner {
 public:
  explicit Planner(const ConvertFlags& flags) : flags_(flags) {}

  StatusOr<ConversionPlan> Run(bool precision) {
    ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags_.input_dir));
    dir_ = folder.dir();
    if (flags_.progress) flags_.progress("plan");
    RETURN_IF_ERROR(Place());
    RETURN_IF_ERROR(BatchAndRound(precision));
    return std::move(plan_);
  }

 private:
  StatusOr<Conversion> Try(absl::string_view batching) const {
    ConvertFlags flags = flags_;
    flags.settings.auto_place = plan_.auto_place;
    return ConvertInMemory(flags, dir_, With(batching, kFloat));
  }

  Status Place() {
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir_));
    ASSIGN_OR_RETURN(const MetaGraph* meta, ChosenMetaGraph(model));
    for (const auto& [name, signature] : meta->signatures) {
      if (name != kInitSignature && !signature.outputs.empty()) names_.push_back(name);
    }
    std::string why = "the model has no signatures";
    if (!names_.empty()) {
      for (const std::string& name : names_) {
        absl::StrAppend(&plan_.placement, plan_.placement.empty() ? "" : " ",
                        "tpu_functions { signature_name: \"", absl::CEscape(name), "\" }");
      }
      const auto whole = Try("");
      if (whole.ok()) {
        Reason("placement: all that signatures compute goes to the TPU, which can run it: ",
               absl::StrJoin(names_, ", "));
        return OkStatus();
      }
      why = FirstLine(whole.status().message());
      plan_.placement.clear();
    }
    plan_.auto_place = true;
    const auto part = Try("");
    RETURN_IF_ERROR(part.status());
    Reason("placement: the parts that a TPU can run (--auto_place), because not everything can: ",
           why);
    return OkStatus();
  }

  // The fastest form that answers alike: batches and bfloat16, then less of either.
  Status BatchAndRound(bool precision) {
    const auto tried = Try(kPlannedBatches);
    std::string no_batches = tried.ok() ? "" : FirstLine(tried.status().message());
    std::string no_bfloat16, nothing;
    for (const bool batches : {true, false}) {
      if (batches && !tried.ok()) continue;
      const char* batching = batches ? kPlannedBatches : "";
      for (const bool bfloat16 : {true, false}) {
        if (bfloat16 && !precision) continue;
        const char* type = bfloat16 ? kBfloat16 : kFloat;
        StatusOr<Verification> verified = Verify(batching, type, kPlannedRequests);
        // What fails in float32 too is told of there.
        if (bfloat16 && !verified.ok()) {
          no_bfloat16 =
              absl::StrCat("bfloat16 is refused: ", FirstLine(verified.status().message()));
          continue;
        }
        ASSIGN_OR_RETURN(Verification v, std::move(verified));
        if (v.ok && !flags_.verify.wanted() && Largest(v) > kCloseToLimit * v.tolerance) {
          ASSIGN_OR_RETURN(v, Verify(batching, type, kMorePlannedRequests));
        }
        nothing = NotCompared(v);
        if (!nothing.empty()) break;
        if (v.ok) {
          SayBatches(batching, no_batches);
          if (!precision) return OkStatus();
          plan_.precision = type;
          Reason("precision: ", bfloat16 ? "bfloat16: " : "float32: ", WorstDifference(v),
                 bfloat16 ? "" : "; ", bfloat16 ? "" : no_bfloat16);
          return OkStatus();
        }
        if (bfloat16) {
          no_bfloat16 = absl::StrCat("bfloat16 does not answer alike: ", WorstDifference(v));
        } else {
          no_batches = WorstDifference(v);
        }
      }
      if (!nothing.empty()) break;
    }
    if (no_batches.empty()) no_batches = "answers could not be compared";
    SayBatches("", no_batches);
    if (!precision) return OkStatus();
    plan_.precision = kFloat;
    Reason("precision: float32, not verified: ", nothing.empty() ? no_batches : nothing);
    return OkStatus();
  }

  void SayBatches(const char* batching, const std::string& why_not) {
    plan_.batching = batching;
    if (plan_.batching.empty()) return Reason("batching: none: ", why_not);
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

  StatusOr<Verification> Verify(absl::string_view batching, absl::string_view type,
                                int requests) const {
    ConvertFlags flags = flags_;
    flags.settings.auto_place = plan_.auto_place;
    if (!flags.verify.wanted()) flags.verify.count = requests;
    if (!flags.verify.tolerance) flags.verify.tolerance = kPlannedError;
    ASSIGN_OR_RETURN(TriedConversion tried, ConvertAndVerify(flags, With(batching, type)));
    return std::move(tried.verification);
  }

  static double Largest(const Verification& v) {
    double largest = 0;
    for (const VerifiedOutput& o : v.outputs) largest = std::max(largest, o.max_relative);
    return largest;
  }
  std::string With(absl::string_view batching, absl::string_view type) const {
    return JoinOptions({plan_.placement, batching, type});
  }
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

std::string ConversionPlan::Options() const {
  return JoinOptions({placement, batching, precision});
}

StatusOr<ConversionPlan> PlanConversion(const ConvertFlags& flags, bool precision) {
  return Planner(flags).Run(precision);
}

}  // namespace smelt
