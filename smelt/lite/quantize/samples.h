// Samples that quantization is calibrated with, from files.
#ifndef SMELT_LITE_QUANTIZE_SAMPLES_H_
#define SMELT_LITE_QUANTIZE_SAMPLES_H_

#include <map>
#include <string>
#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt {

using LiteSamples = std::map<std::string, std::vector<std::map<std::string, Tensor>>>;

// By signature, those of kAnySignature for every one. `path` is
//   a .npz file: an array for each input; row i of all is sample i, with a dimension of 1 in front:
//   of batch 1, or of an input that has all the others a whole value;
//   a TFRecord file of PredictionLogs, or of RepresentativeDataSamples.
// INVALID_ARGUMENT where arrays have other numbers of rows; errors of the readers, with the record.
inline constexpr char kAnySignature[] = "";
StatusOr<LiteSamples> ReadLiteSamples(const std::string& path);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_SAMPLES_H_
