// The samples that the options name, read and checked.
#include "smelt/base/suggest.h"
#include "smelt/convert/quantize/observe.h"
#include "smelt/io/record.h"
#include "smelt/wire/options/representative_data.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt::quantize {
namespace {

// The signature of requests that name none.
constexpr absl::string_view kDefault = "serving_default";

std::vector<std::string> Keys(const auto& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

Status CheckSample(const std::map<std::string, LoadedModel::Slot>& wanted,
                   const NamedTensors& sample) {
  if (Keys(wanted) != Keys(sample)) {
    return InvalidArgument(
        "Invalid input keys for representative sample. The function expects input keys of: ",
        KeySetText(Keys(wanted)), ". Got: ", KeySetText(Keys(sample)),
        ". Please provide correct input keys for representative samples.");
  }
  for (const auto& [key, slot] : wanted) {
    const Tensor& t = sample.at(key);
    if (t.dtype() != slot.dtype) {
      return InvalidArgument("input '", key, "' is ", DtypeName(t.dtype()),
                             ", the signature takes ", DtypeName(slot.dtype));
    }
    if (!slot.shape.Matches(t.shape())) {
      return InvalidArgument("input '", key, "' has shape ", t.shape().ToString(),
                             ", the signature takes ", slot.shape.ToString());
    }
  }
  return OkStatus();
}

StatusOr<std::optional<NamedTensors>> ParseSample(absl::string_view bytes) {
  ASSIGN_OR_RETURN(auto inputs, ParseRepresentativeSample(bytes));
  return NamedTensors(inputs.begin(), inputs.end());
}

// Nothing of a request to another signature.
StatusOr<std::optional<NamedTensors>> ParseRequest(absl::string_view bytes,
                                                   const std::string& signature) {
  ASSIGN_OR_RETURN(const PredictionRecord record, ParsePredictionLog(bytes));
  const bool asked =
      record.signature.empty() ? signature == kDefault : record.signature == signature;
  if (!asked) return std::nullopt;
  return NamedTensors(record.inputs.begin(), record.inputs.end());
}

}  // namespace

StatusOr<std::vector<SampleSet>> ReadSamples(Conversion& c) {
  const QuantizationOption& q = *c.options.quantization_options;
  std::vector<SampleSet> sets;
  for (const auto& [key, path] : q.representative_datasets) {
    auto signature = c.meta->signatures.find(key);
    if (signature == c.meta->signatures.end()) {
      return NotFound("representative_datasets: signature \"", key, "\" is not in the model",
                      Suggest(key, Keys(c.meta->signatures)),
                      ". Signatures: ", KeySetText(Keys(c.meta->signatures)));
    }
    const auto wanted = LoadedModel::Slots(signature->second.inputs);
    SampleSet set{key, {}};
    const bool log = q.prediction_logs.contains(key);
    auto reader = RecordReader::Open(path);
    if (!reader.ok()) return Prefix(reader.status(), "representative_datasets: ");
    for (;;) {
      const std::string where =
          absl::StrCat("representative_datasets: ", path, ", sample ", set.samples.size(), ": ");
      auto record = reader->Next();
      if (!record.ok()) return Prefix(record.status(), where);
      if (!*record) break;
      auto sample = log ? ParseRequest(**record, key) : ParseSample(**record);
      if (!sample.ok()) return Prefix(sample.status(), where);
      if (!*sample) continue;
      if (Status s = CheckSample(wanted, **sample); !s.ok()) return Prefix(s, where);
      set.samples.push_back(**std::move(sample));
    }
    if (set.samples.empty()) {
      return InvalidArgument("representative_datasets: ", path, " holds no samples");
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace smelt::quantize
