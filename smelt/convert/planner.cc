#include "smelt/convert/planner.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "smelt/convert/trial.h"
#include "smelt/model/model_folder.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

constexpr int kPlannedRequests = 4;
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

  StatusOr<ConversionPlan> Run(bool precision) {
    ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags_.input_dir));
    dir_ = folder.dir();
    if (flags_.progress) flags_.progress("plan");
    RETURN_IF_ERROR(Place());
    Batch();
    if (precision) RETURN_IF_ERROR(ChoosePrecision());
    return std::move(plan_);
  }

 private:
  StatusOr<Conversion> Try(const std::string& text) const {
    ConvertFlags flags = flags_;
    flags.settings.auto_place = plan_.auto_place;
    return ConvertInMemory(flags, dir_, text);
  }

  Status Place() {
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir_));
    std::vector<std::string> names;
    const MetaGraph* meta = model.meta_graphs.empty() ? nullptr : &model.meta_graphs[0];
    if (model.meta_graphs.size() > 1) {
      ASSIGN_OR_RETURN(meta, FindMetaGraph(model, {"serve"}));
    }
    for (const auto& [name, signature] :
         meta == nullptr ? std::map<std::string, Signature>() : meta->signatures) {
      if (name != kInitSignature && !signature.outputs.empty()) names.push_back(name);
    }
    std::string why = "the model has no signatures";
    if (!names.empty()) {
      for (const std::string& name : names) {
        Add(absl::StrCat("tpu_functions { signature_name: \"", absl::CEscape(name), "\" }"));
      }
      const auto whole = Try(With(kFloat));
      if (whole.ok()) {
        Reason("placement: all that signatures compute goes to the TPU, which can run it: ",
               absl::StrJoin(names, ", "));
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

  void Batch() {
    const auto tried = Try(absl::StrCat(With(kPlannedBatches), " ", kFloat));
    if (!tried.ok()) {
      return Reason("batching: none: ", FirstLine(tried.status().message()));
    }
    Add(kPlannedBatches);
    Reason("batching: up to 64 rows, padded to 8, 16, 32 or 64: each row of an answer depends on ",
           "that row of the request alone");
  }

  Status ChoosePrecision() {
    ASSIGN_OR_RETURN(const Verification narrow, Verify(kBfloat16));
    if (narrow.ok) {
      Add(kBfloat16);
      Reason("precision: bfloat16: ", WorstDifference(narrow));
      return OkStatus();
    }
    const std::string why = WorstDifference(narrow);
    ASSIGN_OR_RETURN(const Verification wide, Verify(kFloat));
    Add(kFloat);
    Reason("precision: float32, because bfloat16 is not shown to answer alike: ", why,
           wide.ok ? "" : "; nor is float32: ", wide.ok ? "" : WorstDifference(wide));
    return OkStatus();
  }

  StatusOr<Verification> Verify(absl::string_view precision) const {
    ConvertFlags flags = flags_;
    flags.settings.auto_place = plan_.auto_place;
    if (!flags.verify.wanted()) flags.verify.count = kPlannedRequests;
    if (!flags.verify.tolerance) flags.verify.tolerance = kPlannedError;
    ASSIGN_OR_RETURN(TriedConversion tried, ConvertAndVerify(flags, With(precision)));
    return std::move(tried.verification);
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
  ConversionPlan plan_;
};

}  // namespace

StatusOr<ConversionPlan> PlanConversion(const ConvertFlags& flags, bool precision) {
  return Planner(flags).Run(precision);
}

}  // namespace smelt
