// What the stages of a conversion did, for the reports: plain data, filled in stage by stage.
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
struct BoundaryTensor {
  std::string function;  // the placement's label
  bool input = true;
  int index = 0;     // among the function's arguments or results
  std::string name;  // of the argument or result
  Dtype dtype_before = Dtype::kInvalid, dtype = Dtype::kInvalid;
  PartialShape shape;         // before
  std::string form = "keep";  // keep, transpose [perm], flatten
  // Padded to the accelerator's tiles, for one batch row where the batch is unknown; 0: unknown.
  int64_t bytes_before = 0, bytes = 0;
};

// A cast that the bfloat16 stage put in, or a chain of float32 that it kept on purpose.
struct PrecisionChoice {
  std::string function, node, op;
  bool converted = false;
  std::string reason;  // why it stayed float32
};

// A variable whose stored type changed.
struct StoredVariable {
  std::string name;  // checkpoint key
  Dtype before = Dtype::kInvalid, after = Dtype::kInvalid;
  int64_t bytes_before = 0, bytes = 0;
};

// A layer that the quantisation stage looked at.
struct QuantizedLayer {
  std::string function, node, op;
  bool quantized = false;
  std::string method;       // static_range, dynamic_range, weight_only
  std::string reason;       // why not
  double weight_error = 0;  // root mean square, relative to the weights' own
  double output_error = 0;  // the same of its output on the calibration samples; 0: not measured
  int64_t bytes_before = 0, bytes = 0;
};

// A BatchFunction that was put in or updated.
struct BatchRecord {
  std::string component;  // function or signature
  bool updated = false;   // it was there before
};

struct ConversionRecords {
  std::vector<Note> notes;
  std::vector<BoundaryTensor> boundary;
  std::vector<PrecisionChoice> precision;
  std::vector<StoredVariable> variables;
  std::vector<QuantizedLayer> layers;
  std::vector<BatchRecord> batches;

  void AddNote(std::string stage, std::string text, std::string function = "",
               std::string node = "") {
    notes.push_back({std::move(stage), std::move(function), std::move(node), std::move(text)});
  }
};

}  // namespace smelt

#endif  // SMELT_CONVERT_RECORDS_H_
