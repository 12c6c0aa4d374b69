// A conversion under way: what every stage reads and changes.
//
// A conversion is one pass over kStages (plan.cc), each a function on one Conversion, in its own
// file. Until the cluster stage the functions that go to the accelerator are plain: stages between
// "bodies" and "cluster" rewrite them without regard for the bridge's ops.
#ifndef SMELT_CONVERT_CONVERSION_H_
#define SMELT_CONVERT_CONVERSION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/convert/advice.h"
#include "smelt/convert/records.h"
#include "smelt/convert/variables.h"
#include "smelt/convert/verify.h"
#include "smelt/wire/options/converter_options.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// A function that goes to the accelerator.
struct TpuPlacement {
  std::string function;  // the concrete function, which becomes the call stub
  std::string label;     // as the options name it, for the report
  std::string body;      // the function that TPUPartitionedCall runs
  // Functions that only this body runs (branches, loop bodies, calls too large to inline).
  std::vector<std::string> callees;
  // The input model has it on the accelerator already; callees stay empty.
  bool existing = false;
};

// What the command line asks for beside the converter options.
struct ConvertSettings {
  bool auto_place = false;            // find the function to place in each signature
  bool allow_soft_placement = false;  // ops that a TPU cannot run stay on the host inside a body
  bool revert = false;                // turn a converted model back into a plain one
  bool strip_training = false;        // what only training uses leaves the model
  bool measure_layers = true;         // runs the samples for each quantized layer's error
  bool write = true;                  // else it stays in memory (ModelVariables::KeepInGraph)
};

struct Conversion {
  SavedModel model;
  ConverterOptions options;
  ConvertSettings settings;
  std::vector<TpuPlacement> placements;
  ConversionRecords records;
  // What the model may read while stages run it.
  FileSystem files = FileSystem::Nothing();
  // Names each stage as it starts; may be empty.
  std::function<void(absl::string_view stage)> progress;
  // So many of the samples that the stage runs are done; may be empty.
  std::function<void(int64_t done, int64_t all)> count;

  // The MetaGraph that is converted: the only one, or the one tagged "serve".
  MetaGraph* meta = nullptr;
  FunctionLibrary& library() { return *meta->graph->library(); }
  // Made when first asked for (`variables`); every call also traces the placements' bodies.
  StatusOr<ModelVariables*> Variables();

  // Is the optimization on? DEFAULT means on unless disable_default_optimizations is set.
  bool Bfloat16() const;
  bool IoShapes() const;

  std::unique_ptr<ModelVariables> variables;
  // Set before `variables` are made; what they are to leave out.
  StrippedCheckpoint stripped;
};

// A stage of the conversion.
struct Stage {
  absl::string_view name;
  bool (*wanted)(const Conversion& c);
  Status (*run)(Conversion& c);
  absl::string_view why_here;
};

// Runs all wanted stages on the model in memory, which is of no use after an error. NOT_FOUND when
// there are several MetaGraphs and none is tagged "serve", INVALID_ARGUMENT when there is none or
// it does not verify. Not thread safe.
Status Convert(Conversion& c);

struct ReportData;  // report_data.h

// A file that is written with the output.
struct ReportFile {
  std::string path;
  std::function<std::string(const Conversion& c, const ReportData& data)> text;
};

// What ConvertSavedModel is to do.
struct ConvertFlags {
  std::string input_dir, output_dir;
  ConverterOptions options;
  std::string options_text;  // as the user gave them, for the reports
  BatchingAdvice advice;     // where the options' batching comes from, for the reports
  ConvertSettings settings;
  bool overwrite = false;
  bool dry_run = false;          // convert and report, write no model
  bool warmup_requests = false;  // see warmup.h
  bool measure_training = true;  // the report says what --strip_training would save
  std::string tpu = "v5e";       // the generation that reports measure against
  std::vector<ReportFile> reports;
  FileSystem files = FileSystem::Nothing();  // what the model may use beside its own folder
  VerifyFlags verify;
  bool certificate = false;          // write one (certificate.h), which needs `verify`
  std::vector<std::string> exclude;  // --exclude, which `options` hold already
  std::string smelt_version;
  PrecisionSearch search;  // what chose the options, for the reports
  std::function<void(absl::string_view stage)> progress;
  std::function<void(int64_t done, int64_t all)> count;
};
// Reads, converts, and writes the folder and the reports, whole or not at all. `report` gets what
// the reports say. A conversion that is verified and differs is not put in its place, its reports
// are. Errors of StageOutput (output_folder.h) and of Convert.
StatusOr<Conversion> ConvertSavedModel(const ConvertFlags& flags, ReportData* report);

}  // namespace smelt

#endif  // SMELT_CONVERT_CONVERSION_H_
