// The quantization stage.
#include "smelt/convert/quantize/quantize.h"

#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

using quantize::LayerSet;
using quantize::Scope;

constexpr char kServing[] = "serving_default";
// Layers whose relative error is at least this are suggested to be left float.
constexpr double kBadError = 0.2;
constexpr size_t kListed = 8;

Status CheckModel(const Conversion& c) {
  const QuantizationOption& q = *c.options.quantization_options;
  if (!q.tags.empty() && !c.meta->HasTags(q.tags)) {
    return NotFound("MetaGraphDef associated with tags ", KeySetText(q.tags),
                    " could not be found; the model's tags are ", KeySetText(c.meta->tags));
  }
  const bool trained = quantize::TrainedWithFakeQuant(*c.meta);
  switch (q.method.preset) {
    case QuantizationPreset::kStaticRange:
      if (!trained && q.representative_datasets.empty()) {
        return InvalidArgument(
            "When `representative_dataset` is not provided, the model should be trained with "
            "quantization-aware training (QAT).");
      }
      return OkStatus();
    case QuantizationPreset::kDynamicRange:
    case QuantizationPreset::kWeightOnly:
      if (trained) {
        return InvalidArgument(
            "The models trained with quantization-aware training (QAT) is not supported for ",
            q.method.preset == QuantizationPreset::kDynamicRange ? "dynamic-range" : "weight-only",
            " quantization.");
      }
      return OkStatus();
    default:
      return OkStatus();
  }
}

// The signatures that the options name; else those with samples; else serving_default, or the only
// one.
StatusOr<std::vector<std::string>> SignatureKeys(const Conversion& c) {
  const QuantizationOption& q = *c.options.quantization_options;
  std::vector<std::string> keys = q.signature_keys;
  if (keys.empty()) {
    for (const auto& [key, path] : q.representative_datasets) keys.push_back(key);
  }
  if (!keys.empty()) return keys;
  std::vector<std::string> served;
  for (const auto& [key, signature] : c.meta->signatures) {
    if (key == kServing) return std::vector<std::string>{key};
    if (key != kInitSignature) served.push_back(key);
  }
  if (served.size() == 1) return served;
  return NotFound("the model has no signature \"", kServing,
                  "\": give signature_keys. Signatures: ", KeySetText(served));
}

std::string LayerName(const QuantizedLayer& l) {
  return l.function == "-" ? l.node : absl::StrCat(l.function, "/", l.node);
}

// The error of the layer itself, without that of the layers before it.
double ErrorOf(const QuantizedLayer& l) { return std::max(l.own_error, l.weight_error); }

std::string Listed(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + std::min(names.size(), kListed));
  return absl::StrCat(
      absl::StrJoin(first, ", "),
      names.size() > kListed ? absl::StrCat(" and ", names.size() - kListed, " more") : "");
}

void ReportLayers(Conversion& c) {
  std::vector<const QuantizedLayer*> done;
  std::map<std::string, std::vector<std::string>> left, alone;
  int64_t before = 0, after = 0;
  for (const QuantizedLayer& l : c.records.layers) {
    if (l.quantized) done.push_back(&l);
    if (!l.reason.empty()) (l.quantized ? alone : left)[l.reason].push_back(LayerName(l));
  }
  for (const StoredVariable& v : c.records.variables) {
    before += v.bytes_before;
    after += v.bytes;
  }
  c.records.AddNote(
      "quantize",
      absl::StrCat(done.size(), " of ", c.records.layers.size(), " layers quantized",
                   before > 0 ? absl::StrCat("; variables ", before, " bytes, now ", after) : ""));
  for (const auto& [reason, names] : left) {
    c.records.AddNote("quantize", absl::StrCat("not quantized: ", Listed(names), ": ", reason));
  }
  for (const auto& [reason, names] : alone) {
    c.records.AddNote("quantize", absl::StrCat("weights only: ", Listed(names), ": ", reason));
  }
  std::stable_sort(done.begin(), done.end(), [](const QuantizedLayer* a, const QuantizedLayer* b) {
    return ErrorOf(*a) > ErrorOf(*b);
  });
  std::vector<std::string> rows;
  for (const QuantizedLayer* l : done) {
    rows.push_back(
        l->output_error > 0
            ? absl::StrFormat("%s %.2f%%, with those before it %.2f%% (weights %.2f%%)",
                              LayerName(*l), 100 * l->own_error, 100 * l->output_error,
                              100 * l->weight_error)
            : absl::StrFormat("%s weights %.2f%%", LayerName(*l), 100 * l->weight_error));
  }
  if (!rows.empty()) {
    c.records.AddNote("quantize", "layers by their own error, root mean square: " + Listed(rows));
  }
  size_t suggested = 0;
  for (const QuantizedLayer* l : done) {
    if (ErrorOf(*l) < kBadError || ++suggested > kListed) break;
    c.records.AddNote("quantize",
                      absl::StrFormat("%s is %.0f%% off: it stays float with --exclude '%s'",
                                      LayerName(*l), 100 * ErrorOf(*l), RE2::QuoteMeta(l->node)),
                      l->function, l->node);
  }
}

}  // namespace

Status QuantizeModel(Conversion& c) {
  const QuantizationOption& q = *c.options.quantization_options;
  if (q.method.preset == QuantizationPreset::kNoQuantize) {
    c.records.AddNote("quantize", "METHOD_NO_QUANTIZE: nothing is quantized");
    return OkStatus();
  }
  RETURN_IF_ERROR(CheckModel(c));
  RETURN_IF_ERROR(MakeResourceVariables(c, "quantize", ""));
  ASSIGN_OR_RETURN(const std::vector<std::string> signatures, SignatureKeys(c));
  ASSIGN_OR_RETURN(std::vector<Scope> scopes, quantize::FindScopes(c, signatures));
  ASSIGN_OR_RETURN(ModelVariables * variables, c.Variables());
  const quantize::KnownValues known(c, *variables);
  ASSIGN_OR_RETURN(LayerSet set, quantize::FindLayers(c, scopes, known));
  const bool samples = !q.representative_datasets.empty();
  std::optional<MetaGraph> plain;
  if (samples && !set.layers.empty()) {
    ASSIGN_OR_RETURN(plain, quantize::CopyModel(*c.meta));
  }
  if (q.method.preset == QuantizationPreset::kStaticRange) {
    quantize::Ranges ranges;
    if (quantize::TrainedWithFakeQuant(*c.meta)) {
      ranges = quantize::FakeQuantRanges(scopes, known);
    } else {
      ASSIGN_OR_RETURN(ranges, quantize::Calibrate(c, quantize::TensorsToCalibrate(set)));
    }
    RETURN_IF_ERROR(quantize::WriteStaticRange(c, set, scopes, std::move(ranges)));
  } else if (q.method.preset == QuantizationPreset::kDynamicRange) {
    RETURN_IF_ERROR(quantize::WriteDynamicRange(c, set, scopes));
  } else {
    RETURN_IF_ERROR(quantize::WriteWeightOnly(c, set, scopes));
  }
  if (plain && !set.layers.empty() && c.settings.measure_layers) {
    RETURN_IF_ERROR(quantize::MeasureLayers(c, set, *std::move(plain)));
  }
  ReportLayers(c);
  return OkStatus();
}

}  // namespace smelt
