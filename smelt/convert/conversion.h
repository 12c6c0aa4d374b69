// A conversion under way: what every stage reads and changes.
#ifndef SMELT_CONVERT_CONVERSION_H_
#define SMELT_CONVERT_CONVERSION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/wire/converter_options.h"
#include "smelt/wire/saved_model.h"

namespace smelt {

// A function that goes to the accelerator.
struct TpuPlacement {
  std::string function;  // the concrete function, which becomes the call stub
  std::string label;     // as the options name it, for the report
  std::string body;      // the function that TPUPartitionedCall runs
};

struct Conversion {
  SavedModel model;
  ConverterOptions options;
  std::vector<TpuPlacement> placements;
  std::vector<std::string> warnings;
  // Names each stage as it starts; may be empty.
  std::function<void(absl::string_view stage)> progress;

  // The MetaGraph that is converted: the only one, or the one tagged "serve".
  MetaGraph* meta = nullptr;
  FunctionLibrary& library() { return *meta->graph->library(); }
};

// A stage of the conversion.
struct Stage {
  absl::string_view name;
  bool (*wanted)(const Conversion& c);
  Status (*run)(Conversion& c);
};

// Resolves what the options name, checks that it can be placed, and places it: each function's body
// moves behind a TPUPartitionedCall.
Status ResolveTpuFunctions(Conversion& c);
Status PlaceOnTpu(Conversion& c);

// Makes a signature that is a piece of the graph (TensorFlow 1) one call of a new function, whose
// name is returned. UNIMPLEMENTED names the node that cannot be moved into a function.
StatusOr<std::string> OutlineSignature(Conversion& c, const std::string& name);

// Nodes of the main graph that some signature's outputs need, the initialisation left out.
std::vector<Node*> ServedNodes(const MetaGraph& meta);

// Runs all stages on the model in memory.
Status Convert(Conversion& c);

// The closest of `names` to `name`, as "did you mean ...?" text, or empty.
std::string Suggest(absl::string_view name, const std::vector<std::string>& names);

// Reads, converts, and writes the folder whole: beside first, then renamed into place. `report`
// gets the conversion report. ALREADY_EXISTS when the output folder holds something and overwrite
// is false.
struct ConvertFlags {
  std::string input_dir, output_dir;
  ConverterOptions options;
  bool overwrite = false;
  std::function<void(absl::string_view stage)> progress;
};
StatusOr<Conversion> ConvertSavedModel(const ConvertFlags& flags, std::string* report);

// The conversion report, in the inference converter's form.
std::string ConversionReport(Conversion& c);

}  // namespace smelt

#endif  // SMELT_CONVERT_CONVERSION_H_
