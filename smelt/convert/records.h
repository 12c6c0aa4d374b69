// What the stages of a conversion did, for the reports: plain data, filled in stage by stage. A
// `function` is a name in the model's library; empty: the main graph, or none in particular.
#ifndef SMELT_CONVERT_RECORDS_H_
#define SMELT_CONVERT_RECORDS_H_

#include <string>
#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt {

// Something a user should know: printed as "note: TEXT" and listed in the reports.
struct Note {
  std::string stage;
  std::string function;  // where, or empty
  std::string node;
  std::string text;
};

// One tensor that crosses between host and accelerator.
struct TransferredTensor {
  std::string function;  // the placement's
  bool input = true;
  // Position among the function's arguments or results, lists expanded; -1: it is none of them.
  int index = -1;
  std::string name;  // of the argument or result
  Dtype dtype_before = Dtype::kInvalid, dtype = Dtype::kInvalid;
  PartialShape shape;         // before
  std::string form = "keep";  // keep, transpose [perm], flatten
  // Padded to the accelerator's tiles, for one batch row where the batch is unknown; 0: unknown.
  int64_t bytes_before = 0, bytes = 0;
};

// What the bfloat16 stage chose for one float32 op; with the op kVariableOp, a variable that stays
// float32, whose checkpoint key is `node`.
inline constexpr char kVariableOp[] = "variable";
struct PrecisionChoice {
  std::string function, node, op;
  bool converted = false;
  std::string reason;  // why it stayed float32
  int64_t cost = 0;    // docs/cost_model.md; 0 of a variable
};

// A variable whose stored type changed.
struct StoredVariable {
  std::string name;  // checkpoint key
  Dtype before = Dtype::kInvalid, after = Dtype::kInvalid;
  int64_t bytes_before = 0, bytes = 0;
};

// A layer that the quantization stage looked at.
struct QuantizedLayer {
  std::string function, node, op;
  bool quantized = false;
  std::string method;       // static_range, dynamic_range, weight_only
  std::string reason;       // why not, or of weight_only why not as the options say
  double weight_error = 0;  // root mean square, relative to the weights' own
  // The same measure of its output on the calibration samples; 0: not measured. output_error
  // compares with the float model, own_error with the float layer on the quantized layer's input.
  double output_error = 0, own_error = 0;
  int64_t bytes_before = 0, bytes = 0;
  int64_t cost = 0;  // docs/cost_model.md, of the float layer
};

// A tensor whose range calibration took, from so many of the samples.
struct CalibratedTensor {
  std::string function, tensor;
  int64_t samples = 0;  // 0: it was never computed, or never finite
};

// An op that stays on the host, and why.
struct HostOp {
  std::string function, node, op;
  std::string source;  // the user's line, where the model says
  std::string reason;
};

// What --auto_place found in a function.
struct AutoPlacement {
  std::string label, function;
  std::string part;  // the function that was placed; empty: nothing is worth it
  bool whole = false;
  int nodes = 0, placed_nodes = 0;
  int64_t cost = 0, placed_cost = 0;
  int64_t crossing = 0;  // elements that go in and out, where sizes are known
};

// A BatchFunction that was added or updated.
struct BatchRecord {
  std::string component;  // the function that it stands in; in the main graph the node
  bool updated = false;   // the input model has it
  // Why its rows could not be proved independent, where assume_independent_rows forced it.
  std::string assumed;
};

// What only training uses (strip_training.h): what left the model, or would.
struct TrainingParts {
  bool stripped = false;
  int64_t variables = 0, variable_bytes = 0;  // entries of the checkpoint
  int64_t functions = 0, nodes = 0, objects = 0, meta_graphs = 0;
  int64_t model_bytes = 0;  // of saved_model.pb
  int64_t bytes() const { return variable_bytes + model_bytes; }
};

// One assignment of types to layers that --max_error tried.
struct PrecisionTrial {
  int int8 = 0, bfloat16 = 0, float32 = 0;  // layers that became each
  double cost = 0;        // docs/cost_model.md: of the layers, relative to all in float32
  double error = 0;       // what the bound is on
  double difference = 0;  // the largest between answers, relative to an output's range
  double accuracy = 0;    // the part of the rows with labels that it is right about
  bool ok = false;        // within the bound
  std::string why;        // what no bound allows, or why it cannot be converted
};

// How --max_error decided.
struct PrecisionSearch {
  bool done = false;
  // Of an output's range; with labels the part of the rows that may become wrong.
  double max_error = 0;
  bool by_labels = false;
  std::string evidence;                // which requests
  int64_t rows = 0;                    // with labels
  double accuracy = 0;                 // of the float model, as the trials'
  std::vector<PrecisionTrial> trials;  // in their order
  int chosen = -1;                     // of trials
  std::vector<std::string> notes;
};

struct ConversionRecords {
  std::vector<Note> notes;
  std::vector<TransferredTensor> transfers;
  std::vector<PrecisionChoice> precision;
  std::vector<StoredVariable> variables;
  std::vector<QuantizedLayer> layers;
  std::vector<CalibratedTensor> calibrated;
  std::vector<BatchRecord> batches;
  std::vector<HostOp> host_ops;
  std::vector<AutoPlacement> auto_placements;
  TrainingParts training;
  PrecisionSearch search;

  void AddNote(std::string stage, std::string text, std::string function = "",
               std::string node = "") {
    notes.push_back({std::move(stage), std::move(function), std::move(node), std::move(text)});
  }
};

}  // namespace smelt

#endif  // SMELT_CONVERT_RECORDS_H_
