#include "smelt/convert/search/precision_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "smelt/convert/quantize/quantize.h"
#include "smelt/convert/search/accuracy.h"
#include "smelt/convert/search/layers.h"
#include "smelt/convert/trial.h"
#include "smelt/io/record.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/output_folder.h"
#include "smelt/wire/records/prediction_log.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

// Each trial converts the model, runs it and its original on all requests.
constexpr int kMostTrials = 16;
// Of them, at the end: layers that are narrowed again one at a time.
constexpr int kMostNarrowed = 5;
// By labels the answers themselves may differ; of the conversion that is kept by no more than so
// many times what the search measured, or this part of the range.
constexpr double kMoreDifference = 2, kLeastDifference = 1e-3;
constexpr char kAllBfloat16[] = "bfloat16_optimization: ENABLED";

class PrecisionSearcher {
 public:
  PrecisionSearcher(const ConvertFlags& flags, const PrecisionBound& bound)
      : flags_(flags), bound_(bound) {
    search_.max_error = bound.max_error;
    search_.by_labels = !bound.labels.empty();
  }

  StatusOr<PrecisionPlan> Run() {
    RETURN_IF_ERROR(Check());
    ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags_.input_dir));
    dir_ = folder.dir();
    if (!flags_.overwrite && !flags_.dry_run) {
      // Known before minutes are spent.
      RETURN_IF_ERROR(StageOutput({flags_.input_dir, dir_, flags_.output_dir, false, {}}).status());
    }
    if (search_.by_labels) {
      ASSIGN_OR_RETURN(labels_, ReadRowLabels(bound_.labels));
    }
    RETURN_IF_ERROR(ReadRequests());
    RETURN_IF_ERROR(FindLayers());
    RETURN_IF_ERROR(Decide());
    return Plan();
  }

 private:
  Status Check() const {
    if (!flags_.verify.wanted()) {
      return InvalidArgument(
          "--max_error measures answers to requests: give --verify_log LOG, or --verify N for "
          "made-up ones");
    }
    if (flags_.verify.tolerance) {
      return InvalidArgument("--max_error is the tolerance: leave out --verify_tolerance");
    }
    if (search_.by_labels && flags_.verify.log.empty()) {
      return InvalidArgument("--labels are of recorded requests: give --verify_log LOG");
    }
    const ConverterOptions& o = flags_.options;
    if (o.quantization_options || o.bfloat16_optimization_options ||
        o.bfloat16_optimization != OptionState::kDefault) {
      return InvalidArgument(
          "--max_error chooses the types: leave out quantization_options, bfloat16_optimization "
          "and bfloat16_optimization_options");
    }
    return OkStatus();
  }

  // How int8 is to be asked for: activations by the ranges of recorded requests, else at run time.
  Status ReadRequests() {
    ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(dir_));
    ASSIGN_OR_RETURN(const MetaGraph* meta, ChosenMetaGraph(model));
    const bool trained = quantize::TrainedWithFakeQuant(*meta);
    type_options_.everything = flags_.options.tpu_functions.empty() && !flags_.settings.auto_place;
    const auto preset = [](absl::string_view name) {
      return absl::StrCat("quantization_method { preset_method: METHOD_", name, "_RANGE_INT8 }");
    };
    std::string& text = type_options_.quantization;
    if (flags_.verify.log.empty()) {
      search_.evidence =
          absl::StrCat(flags_.verify.count,
                       " made-up requests for each signature: weaker evidence than recorded ones");
      text = preset(trained ? "STATIC" : "DYNAMIC");
      for (const auto& [name, signature] : meta->signatures) {
        if (name == kInitSignature) continue;
        absl::StrAppend(&text, " signature_keys: \"", absl::CEscape(name), "\"");
      }
      return OkStatus();
    }
    std::set<std::string> signatures;
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(flags_.verify.log));
    int64_t count = 0;
    for (;; ++count) {
      ASSIGN_OR_RETURN(const auto bytes, reader.Next());
      if (!bytes) break;
      auto record = ParsePredictionLog(*bytes);
      if (!record.ok()) return Prefix(record.status(), absl::StrCat("record ", count, ": "));
      signatures.insert(record->signature.empty() ? "serving_default" : record->signature);
    }
    if (count == 0) return InvalidArgument(flags_.verify.log, " holds no records");
    search_.evidence = absl::StrCat(count, " recorded requests");
    text = preset("STATIC");
    for (const std::string& name : signatures) {
      if (!meta->signatures.contains(name)) continue;
      absl::StrAppend(&text, " representative_datasets { key: \"", absl::CEscape(name),
                      "\" value { prediction_log_path: \"", absl::CEscape(flags_.verify.log),
                      "\" } }");
    }
    return OkStatus();
  }

  // Tries all that can be int8 as int8 and the rest as bfloat16, which also tells what can be.
  Status FindLayers() {
    const std::string everything = type_options_.everything ? " scope: ALL" : "";
    const auto bfloat16 = [&](absl::string_view more) {
      const std::string options = absl::StrCat(everything, more);
      return options.empty()
                 ? std::string(kAllBfloat16)
                 : absl::StrCat(kAllBfloat16, " bfloat16_optimization_options {", options, " }");
    };
    if (flags_.progress) flags_.progress("layers");
    const auto narrow = ConvertInMemory(flags_, dir_, With(bfloat16("")));
    if (!narrow.ok()) {
      search_.notes.push_back(
          absl::StrCat("bfloat16 is left out: ", FirstLine(narrow.status().message())));
    }
    const std::string text = With(absl::StrCat(
        "quantization_options { ", type_options_.quantization, " } ",
        narrow.ok() ? bfloat16(" before_int8: true") : "bfloat16_optimization: DISABLED"));
    AccuracyMeter meter(labels_);
    auto tried = Convert(text, meter, true);
    if (!tried.ok()) {
      search_.notes.push_back(
          absl::StrCat("int8 is left out: ", FirstLine(tried.status().message())));
    }
    layers_ = FindSearchedLayers(tried.ok() ? &tried->conversion : nullptr,
                                 narrow.ok() ? &*narrow : nullptr);
    if (!tried.ok()) return OkStatus();
    return Measure(text, *tried, meter);
  }

  // Along a path from the cheapest types to float32 the expected error falls: the first assignment
  // on it that is within the bound is found by halving. What is bfloat16 throughout may be cheaper.
  Status Decide() {
    const std::vector<LayerTypes> path = WideningPath(layers_);
    // Alone on its path it is float32.
    if (search_.trials.empty()) {
      RETURN_IF_ERROR(Try(path.front(), path.size() == 1).status());
    }
    if (search_.trials[0].ok) return OkStatus();
    RETURN_IF_ERROR(Try(CheapestTypes(layers_, LayerType::kBfloat16)).status());
    size_t fails = 0, end = path.size() - 1;
    while (best_ >= 0 && end > 0 && CostOf(layers_, path[end - 1]) >= Best().cost) --end;
    while (end - fails > 1 && end > 0 && TrialsLeft() > 1) {
      const size_t middle = fails + (end - fails) / 2;
      ASSIGN_OR_RETURN(const int at, Try(path[middle]));
      (search_.trials[static_cast<size_t>(at)].ok ? end : fails) = middle;
    }
    if (best_ >= 0) return NarrowAgain();
    ASSIGN_OR_RETURN(const int wide, Try(CheapestTypes(layers_, LayerType::kFloat32), true));
    if (best_ >= 0) return OkStatus();
    best_ = wide;
    outside_ = true;
    return OkStatus();
  }

  // The path goes by what layers do to their own outputs; what that does to the model's is only
  // seen by trying. The layers that would save most go first.
  Status NarrowAgain() {
    const auto narrower = [&](size_t i) {
      LayerType type = types_[best_][i];
      do {
        if (type == LayerType::kInt8) return types_[best_][i];
        type = static_cast<LayerType>(static_cast<int>(type) - 1);
      } while (!layers_[i].MayBe(type));
      return type;
    };
    const auto saves = [&](size_t i) {
      return layers_[i].CostAs(types_[best_][i]) - layers_[i].CostAs(narrower(i));
    };
    std::vector<size_t> order(layers_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return saves(a) > saves(b); });
    int tried = 0;
    for (const size_t i : order) {
      if (saves(i) <= 0 || tried == kMostNarrowed || TrialsLeft() == 0) break;
      LayerTypes types = types_[best_];
      types[i] = narrower(i);
      RETURN_IF_ERROR(Try(types).status());
      ++tried;
    }
    return OkStatus();
  }

  StatusOr<PrecisionPlan> Plan() {
    search_.done = true;
    search_.chosen = best_;
    const PrecisionTrial& chosen = Best();
    PrecisionPlan plan;
    plan.options = texts_[best_];
    if (outside_) {
      search_.notes.push_back(
          "nothing narrower stays within the bound, and float32 does not either: it is the closest "
          "that there is");
    } else if (search_.by_labels) {
      plan.tolerance = std::max(kMoreDifference * chosen.difference, kLeastDifference);
    } else {
      plan.tolerance = bound_.max_error;
    }
    if (search_.by_labels && !outside_ &&
        1 > bound_.max_error * static_cast<double>(search_.rows)) {
      search_.notes.push_back(absl::StrFormat(
          "%d rows with labels are too few to tell: each weighs %.3g points, more than the bound "
          "of %.3g; what is chosen made none of them wrong, which need not be so of others",
          search_.rows, 100.0 / static_cast<double>(search_.rows), 100 * bound_.max_error));
    }
    plan.search = std::move(search_);
    return plan;
  }

  StatusOr<TriedConversion> Convert(const std::string& text, AccuracyMeter& meter, bool measure) {
    if (flags_.progress) flags_.progress(absl::StrCat("trial ", search_.trials.size() + 1));
    ConvertFlags flags = flags_;
    flags.settings.measure_layers = measure;
    flags.verify.tolerance = bound_.max_error;
    if (search_.by_labels) {
      flags.verify.tolerance = INFINITY;
      flags.verify.on_answers = [&meter](const auto& want, const auto& got) {
        meter.Add(want, got);
      };
    }
    return ConvertAndVerify(flags, text);
  }

  // The position of the trial of these types, which may be an earlier one. Errors of `wide` are
  // errors: there is nothing else left to try.
  StatusOr<int> Try(const LayerTypes& types, bool wide = false) {
    const std::string text = With(OptionsText(layers_, types, type_options_));
    if (const auto at = std::ranges::find(texts_, text); at != texts_.end()) {
      return static_cast<int>(at - texts_.begin());
    }
    AccuracyMeter meter(labels_);
    const auto tried = Convert(text, meter, false);
    if (tried.ok()) {
      RETURN_IF_ERROR(Measure(text, *tried, meter));
    } else if (wide) {
      return tried.status();
    } else {
      Add(text, types).why = FirstLine(tried.status().message());
    }
    return static_cast<int>(search_.trials.size()) - 1;
  }

  Status Measure(const std::string& text, const TriedConversion& tried,
                 const AccuracyMeter& meter) {
    const Verification& v = tried.verification;
    PrecisionTrial& trial = Add(text, TypesIn(tried.conversion, layers_));
    for (const VerifiedOutput& o : v.outputs) {
      trial.difference = std::max(trial.difference, o.max_relative);
    }
    trial.error = trial.difference;
    trial.ok = v.ok;
    const bool differs = std::ranges::any_of(v.outputs, [](const auto& o) { return !o.ok; });
    const bool by_number =
        std::ranges::all_of(v.outputs, [](const auto& o) { return o.ok || o.why.empty(); });
    if (!v.ok && !(differs && by_number)) trial.why = WorstDifference(v);
    if (search_.by_labels && trial.why.empty()) {
      RETURN_IF_ERROR(meter.Check());
      search_.rows = meter.rows();
      search_.accuracy = meter.wanted();
      trial.accuracy = meter.got();
      trial.error = std::max(0.0, meter.wanted() - meter.got());
      trial.ok = trial.error <= bound_.max_error;
    }
    if (trial.ok && (best_ < 0 || trial.cost < Best().cost)) {
      best_ = static_cast<int>(search_.trials.size()) - 1;
    }
    return OkStatus();
  }

  PrecisionTrial& Add(const std::string& text, LayerTypes types) {
    PrecisionTrial& trial = search_.trials.emplace_back();
    for (const LayerType type : types) {
      ++(type == LayerType::kInt8       ? trial.int8
         : type == LayerType::kBfloat16 ? trial.bfloat16
                                        : trial.float32);
    }
    trial.cost = CostOf(layers_, types);
    texts_.push_back(text);
    types_.push_back(std::move(types));
    return trial;
  }

  const PrecisionTrial& Best() const { return search_.trials[static_cast<size_t>(best_)]; }
  int TrialsLeft() const { return kMostTrials - static_cast<int>(search_.trials.size()); }
  std::string With(absl::string_view more) const {
    return absl::StrCat(flags_.options_text, flags_.options_text.empty() ? "" : " ", more);
  }

  const ConvertFlags& flags_;
  const PrecisionBound& bound_;
  std::string dir_;
  RowLabels labels_;
  TypeOptions type_options_;
  std::vector<SearchedLayer> layers_;
  PrecisionSearch search_;
  // By trial: its options, and what became of the layers.
  std::vector<std::string> texts_;
  std::vector<LayerTypes> types_;
  int best_ = -1;         // the cheapest trial within the bound
  bool outside_ = false;  // best_ is not within it
};

std::string ErrorText(const PrecisionSearch& s, double error) {
  return s.by_labels ? absl::StrFormat("%.3g points", 100 * error)
                     : absl::StrFormat("%.3g%%", 100 * error);
}

}  // namespace

StatusOr<double> ParseMaxError(const std::string& text) {
  absl::string_view number = absl::StripAsciiWhitespace(text);
  const bool percent = absl::ConsumeSuffix(&number, "%");
  double value = 0;
  // Not a number compares false.
  if (!absl::SimpleAtod(number, &value) || !(value >= 0 && value <= (percent ? 100 : 1))) {
    return InvalidArgument("--max_error: \"", text,
                           "\" is no part of a whole, such as 1% or 0.01: from 0 to 1, or 0% to "
                           "100%");
  }
  return percent ? value / 100 : value;
}

StatusOr<PrecisionPlan> SearchPrecision(const ConvertFlags& flags, const PrecisionBound& bound) {
  return PrecisionSearcher(flags, bound).Run();
}

std::string PrecisionSearchText(const PrecisionSearch& s) {
  std::string text =
      absl::StrFormat("max_error: at most %s %s, by %s\n", ErrorText(s, s.max_error),
                      s.by_labels ? "less of top-1 accuracy" : "of an output's range", s.evidence);
  if (s.by_labels) {
    absl::StrAppendFormat(&text, "max_error: the model is right about %.4g%% of %d rows\n",
                          100 * s.accuracy, s.rows);
  }
  absl::StrAppendFormat(&text, "max_error: %5s %6s %12s %6s %8s %8s\n", "trial", "cost", "error",
                        "int8", "bfloat16", "float32");
  for (size_t i = 0; i < s.trials.size(); ++i) {
    const PrecisionTrial& t = s.trials[i];
    const std::string state = static_cast<int>(i) == s.chosen ? "chosen" : t.ok ? "ok" : "";
    absl::StrAppendFormat(&text, "max_error: %5d %6.3f %12s %6d %8d %8d %s%s\n", i + 1, t.cost,
                          t.why.empty() ? ErrorText(s, t.error) : "-", t.int8, t.bfloat16,
                          t.float32, state, t.why);
  }
  for (const std::string& note : s.notes) absl::StrAppend(&text, "max_error: ", note, "\n");
  return text;
}

}  // namespace smelt
