// A .tflite file as a model like any other: its operators lowered, its signatures as a
// SavedModel's.
#ifndef SMELT_LITE_LITE_FILE_H_
#define SMELT_LITE_LITE_FILE_H_

#include <string>
#include <vector>

#include "smelt/wire/saved_model/saved_model.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Maps the file. Errors of ReadTflite, which name it.
StatusOr<LiteModel> ReadLiteFile(const std::string& path);

// Those of the file; one, "serving_default", where it has none, whose keys are the names of the
// tensors.
std::vector<LiteSignature> LiteSignaturesOf(const LiteModel& model);

// A MetaGraph of the tag "serve" that LoadedModel loads. Errors of ImportLite and Lower.
StatusOr<MetaGraph> MetaGraphOfLite(const LiteModel& model);

// What ModelFolder found: a SavedModel's folder, or a .tflite file as one of this MetaGraph.
StatusOr<SavedModel> ReadAnyModel(const std::string& dir, ModelPart part);

}  // namespace smelt

#endif  // SMELT_LITE_LITE_FILE_H_
