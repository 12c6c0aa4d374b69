// SavedModels as .tflite files.
#ifndef SMELT_LITE_EXPORT_H_
#define SMELT_LITE_EXPORT_H_

#include <string>
#include <vector>

#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/legalizer.h"
#include "smelt/lite/quantize/quantize.h"
#include "smelt/lite/quantize/samples.h"
#include "smelt/model/loaded_model.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// How numbers are stored and computed.
enum class LiteQuantize : uint8_t { kNone, kFloat16, kDynamic, kInt8, kInt16x8 };

struct LiteFlags {
  std::vector<std::string> signatures;  // empty: all
  LiteQuantize quantize = LiteQuantize::kNone;
  IntegerFlags integer;  // of kInt8 and kInt16x8; float_ops and float_nodes of kDynamic too
  DynamicRangeFlags dynamic;
  LiteSamples samples;   // what kInt8 and kInt16x8 calibrate with
  FusionChoice fusions;  // names of composites (composites/composite.h) may be off, too
};

// What an export did.
struct LiteReport {
  // Ops that no operator stands for, by signature.
  struct Refused {
    std::string signature;
    Refusal refusal;
  };
  std::vector<Refused> refused;
  std::vector<FusionNote> fusions;
};

// NOT_FOUND for a signature that there is not, UNIMPLEMENTED where ops were refused, with all of
// them in the message and in the report; errors of GraphOfSignature and EmitSubgraph.
StatusOr<LiteModel> ExportLite(LoadedModel& model, const LiteFlags& flags, LiteReport* report);

// Writes beside `path` and renames into place.
Status WriteLiteFile(const LiteModel& model, const std::string& path);

}  // namespace smelt

#endif  // SMELT_LITE_EXPORT_H_
