// Which ops profit from narrow numbers, and which suffer: TensorFlow's lists for
// auto_mixed_precision, as TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_... in the environment adjust
// them. The environment is read at each call; any thread.
#ifndef SMELT_OPTIMIZE_PRECISION_LISTS_H_
#define SMELT_OPTIMIZE_PRECISION_LISTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"
#include "smelt/graph/op_name.h"

namespace smelt {

enum class PrecisionMode {
  kHalfOnGpu,
  kHalfOnCpu,
  kBfloat16,  // on a CPU
  kEmulated,  // float on a CPU, rounded to half wherever kHalfOnGpu would have half
};

struct PrecisionLists {
  OpSet allow = {};  // computed in narrow numbers
  OpSet infer = {};  // where what stands before and after is
  OpSet deny = {};   // never, and nothing behind them that may feel it
  OpSet clear = {};  // as their neighbors
};

// "LEVEL": the value of TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL; empty where it is not set.
std::string PrecisionVariable(absl::string_view name);
// INVALID_ARGUMENT for what is neither 0, 1, true nor false.
StatusOr<bool> PrecisionSwitch(absl::string_view name, bool otherwise);

// `cuda` and `cudnn` are the versions of the GPUs' libraries (10020, 8000); 0: not known.
// INVALID_ARGUMENT names an op that the environment puts into two lists.
StatusOr<PrecisionLists> ReadPrecisionLists(PrecisionMode mode, int cuda, int cudnn);

}  // namespace smelt

#endif  // SMELT_OPTIMIZE_PRECISION_LISTS_H_
