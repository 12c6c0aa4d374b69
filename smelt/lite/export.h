// SavedModels as .tflite files.
#ifndef SMELT_LITE_EXPORT_H_
#define SMELT_LITE_EXPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/input_shapes.h"
#include "smelt/lite/legalizer.h"
#include "smelt/lite/operator_sets.h"
#include "smelt/lite/quantize/quantize_graphs.h"
#include "smelt/lite/quantize/samples.h"
#include "smelt/model/loaded_model.h"
#include "smelt/wire/tflite/conversion.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// What the file says of how it was made.
struct LiteMetadataFlags {
  bool conversion = true;  // false: it has no CONVERSION_METADATA
  LiteSource source = LiteSource::kSavedModel;
  bool version_one = false;  // flags are those of version 1 of the converter
  bool bfloat16 = false;     // runtimes may compute in bfloat16
  bool half_sums = false;    // and add halves up in half
};

// An input whose integers q stand for (q - mean) / deviation.
struct LiteInputStats {
  std::string name;  // of the input or its tensor; empty: the only one
  double mean = 0, deviation = 1;
};

struct LiteFlags {
  std::vector<std::string> signatures;  // empty: all
  LiteQuantize quantize = LiteQuantize::kNone;
  IntegerFlags integer;  // of kInt8 and kInt16x8; float_ops and float_nodes of kDynamic too
  DynamicRangeFlags dynamic;
  LiteSamples samples;  // what kInt8 and kInt16x8 calibrate with, and errors are measured on
  FloatLayerFlags float_layers;  // of kInt8, kInt16x8 and kDynamic
  FusionChoice fusions;          // names of composites (composites/composite.h) may be off, too
  OperatorSets operators;
  InputShapes shapes;
  LiteMetadataFlags metadata;
  bool calibrate_only = false;  // of kInt8 and kInt16x8: ranges are stated, numbers stay float
  // Of kInt8, as version 1 of TensorFlow's converter quantizes: by what the model, the flags of
  // `integer` and these say, and not by samples.
  bool by_ranges = false;
  std::vector<LiteInputStats> input_stats;
  bool sparse = false;  // weights of many zeros leave these out
  bool keep_asserts = false;
  bool resource_variables = true;  // false: a variable that a signature writes is an error
  bool finite_constants = true;    // infinities in float constants become the largest floats
  // Called where a phase is over, if there is any: what it took may go back to the system.
  std::function<void()> phase_over;
};

// What an export did.
struct LiteReport {
  // Ops that no operator stands for, by signature.
  struct Refused {
    std::string signature;
    Refusal refusal;
    std::vector<std::string> functions;  // of the model, that hold the node
    bool free_sizes = false;             // some of its inputs have sizes that are not known
  };
  std::vector<Refused> refused;
  // Signatures that were not asked for by name, and cannot be exported.
  struct LeftOut {
    std::string signature, why;
  };
  std::vector<LeftOut> left_out;
  std::vector<FusionNote> fusions;
  // By signature, where LiteFlags::float_layers asks for any.
  std::vector<std::pair<std::string, FloatLayers>> float_layers;
};

// Where no signature is asked for by name, those that cannot be exported are left out if
// "serving_default" can. NOT_FOUND for a signature that there is not, UNIMPLEMENTED where ops were
// refused, which the report has; errors of GraphOfSignature and EmitSubgraph.
StatusOr<LiteModel> ExportLite(LoadedModel& model, const LiteFlags& flags, LiteReport* report);

// Adds a named buffer. ALREADY_EXISTS for a name that is there.
Status AddMetadata(LiteModel& model, const std::string& name, std::string bytes);

// Writes beside `path` and renames into place. `buffers_outside`: behind the flatbuffer, whatever
// the size. Returns the number of bytes.
StatusOr<uint64_t> WriteLiteFile(const LiteModel& model, const std::string& path,
                                 bool buffers_outside = false);

}  // namespace smelt

#endif  // SMELT_LITE_EXPORT_H_
