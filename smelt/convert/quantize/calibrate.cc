// Calibration: the float model runs on the samples and its activations are looked at.
#include "smelt/convert/quantize/observe.h"
#include "smelt/convert/quantize/statistics.h"

namespace smelt::quantize {

StatusOr<Ranges> Calibrate(Conversion& c, const std::vector<std::pair<Scope*, Endpoint>>& tensors) {
  const CalibrationOption& option = c.options.quantization_options->calibration;
  ASSIGN_OR_RETURN(const std::vector<SampleSet> sets, ReadSamples(c));
  for (const SampleSet& set : sets) {
    if (set.samples.size() > 1) continue;
    c.records.AddNote(
        "quantize",
        absl::StrCat("representative_datasets: one sample of signature \"", set.signature,
                     "\": it alone says what values the layers' inputs have"));
  }
  std::vector<ObservedTensor> observed;
  for (const auto& [scope, e] : tensors) {
    ObservedTensor t;
    t.key = KeyOf(*scope, e);
    t.id = static_cast<int>(observed.size());
    observed.push_back(std::move(t));
  }
  ASSIGN_OR_RETURN(MetaGraph copy, CopyModel(*c.meta));
  auto model = ObservedModel::Load(std::move(copy), c.model.dir, c.files, observed);
  if (!model.ok()) return Prefix(model.status(), "loading the model to calibrate it: ");
  std::vector<TensorStatistics> statistics(observed.size());
  int64_t done = 0, all = 0;
  for (const SampleSet& set : sets) all += static_cast<int64_t>(set.samples.size());
  for (const SampleSet& set : sets) {
    for (size_t i = 0; i < set.samples.size(); ++i) {
      if (c.count) c.count(++done, all);
      auto outputs = (*model)->Run(set.signature, set.samples[i], [&](int id, const Tensor& value) {
        statistics[id].Add(value, option);
      });
      if (!outputs.ok()) {
        return Prefix(outputs.status(), absl::StrCat("calibrating signature \"", set.signature,
                                                     "\", sample ", i, ": "));
      }
    }
  }
  Ranges ranges;
  for (size_t i = 0; i < observed.size(); ++i) {
    const auto& [scope, e] = tensors[i];
    c.records.calibrated.push_back({scope->function != nullptr ? scope->function->name() : "",
                                    EndpointName(e), statistics[i].samples()});
    if (auto range = statistics[i].RangeOf(option)) ranges[observed[i].key] = *range;
  }
  return ranges;
}

}  // namespace smelt::quantize
