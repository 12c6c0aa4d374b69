// Metadata that TensorFlow's converter writes into a .tflite file beside its operators.
#ifndef SMELT_LITE_FILE_METADATA_H_
#define SMELT_LITE_FILE_METADATA_H_

#include <string>

#include "smelt/lite/export.h"

namespace smelt {

// CONVERSION_METADATA, and reduced_precision_support where runtimes may compute in less than float.
// REQUIRES: the operators are those of the file.
Status AddFileMetadata(LoadedModel& model, const LiteFlags& flags, LiteModel& file);

// TensorFlow's hash of how a file is built: which tensors operators read and give, shapes, and how
// large constants are; not what these are.
uint64_t StructureHash(const LiteModel& model);

}  // namespace smelt

#endif  // SMELT_LITE_FILE_METADATA_H_
