// A .tflite file as functions of operators: subgraph i is function i, its nodes of ops "tfl.name"
// (graph/ops/lite_ops.txt). What EmitSubgraph writes reads back as it was.
#ifndef SMELT_LITE_IMPORT_H_
#define SMELT_LITE_IMPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

struct LiteFunctions {
  std::shared_ptr<FunctionLibrary> library;
  std::vector<std::string> names;  // by subgraph
};

// Arguments are named as the subgraph's inputs, results "output_N"; _output_shapes has free sizes
// as -1. INVALID_ARGUMENT for a tensor that is read before it is there or made twice, and for
// constants that LiteConstant refuses; the message names the subgraph, the operator and the tensor.
StatusOr<LiteFunctions> ImportLite(const LiteModel& model);

}  // namespace smelt

#endif  // SMELT_LITE_IMPORT_H_
