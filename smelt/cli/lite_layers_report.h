// What smelt lite says of the layers that it quantizes (docs/lite.md).
#ifndef SMELT_CLI_LITE_LAYERS_REPORT_H_
#define SMELT_CLI_LITE_LAYERS_REPORT_H_

#include <string>

#include "smelt/lite/export.h"

namespace smelt {

// For people: what results lose, then the worst layers in a line each.
std::string LayersText(const LiteReport& report);
// {"signatures": [{"key", "samples", "outputs", "float_layers", "layers", "worst"}]}
std::string LayersJson(const LiteReport& report);

// As TensorFlow's QuantizationDebugger.layer_statistics_dump: a line for each result of a layer, of
// all signatures one behind another.
std::string LayersCsv(const LiteReport& report);

// JSON or CSV where `path` ends so, text elsewhere; written beside and renamed.
Status WriteLayersReport(const LiteReport& report, const std::string& path);

}  // namespace smelt

#endif  // SMELT_CLI_LITE_LAYERS_REPORT_H_
