// Looking at tensors while a model runs: a node `_SmeltObserve` on the edge gives each value that
// passes to the observers of its session.
#ifndef SMELT_CONVERT_QUANTIZE_OBSERVE_H_
#define SMELT_CONVERT_QUANTIZE_OBSERVE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "smelt/convert/quantize/quantize.h"
#include "smelt/model/loaded_model.h"

namespace smelt::quantize {

// A tensor to observe in a model that is about to be loaded.
struct ObservedTensor {
  TensorKey key;  // KeyOf
  int id = 0;     // what `on_value` knows it by
  // The tensor is int8 and stands for these values.
  bool int8 = false;
  ActivationScale scale;
};

// A loaded model that shows the values of observed tensors while it runs.
class ObservedModel {
 public:
  // NOT_FOUND names a tensor that is not there. `dir` holds the model's variables.
  static StatusOr<std::unique_ptr<ObservedModel>> Load(MetaGraph meta, const std::string& dir,
                                                       const FileSystem& files,
                                                       const std::vector<ObservedTensor>& tensors);
  // Runs a signature. `on_value` is called for each observed value, as floats, one call at a time,
  // from any thread. One Run at a time.
  StatusOr<NamedTensors> Run(const std::string& signature, const NamedTensors& inputs,
                             const std::function<void(int id, const Tensor& value)>& on_value);

 private:
  std::unique_ptr<LoadedModel> model_;
};

// The samples of one signature, checked against its inputs.
struct SampleSet {
  std::string signature;
  std::vector<NamedTensors> samples;
};
// Of all representative_datasets of the options (TFRecord files, representative_data.h). NOT_FOUND
// for a signature that the model lacks, INVALID_ARGUMENT for samples that do not fit it.
StatusOr<std::vector<SampleSet>> ReadSamples(Conversion& c);

}  // namespace smelt::quantize

#endif  // SMELT_CONVERT_QUANTIZE_OBSERVE_H_
