// What one op computes and moves, and how long a device takes for it: TensorFlow's estimates
// (OpLevelCostEstimator), which its memory optimizer goes by. docs/cost_model.md tells what they
// are and are not; analysis/cost.h is another model, that of the converter's report.
//
// Pure functions; any thread, as long as nobody changes the graph.
#ifndef SMELT_ANALYSIS_ESTIMATE_OP_ESTIMATE_H_
#define SMELT_ANALYSIS_ESTIMATE_OP_ESTIMATE_H_

#include "smelt/graph/device_properties.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {

// Numbers saturate at kMostEstimated, so that no graph makes them overflow.
inline constexpr int64_t kMostEstimated = int64_t{1} << 58;
int64_t AddEstimates(int64_t a, int64_t b);

struct OpEstimate {
  int64_t flops = 0;
  int64_t bytes_read = 0, bytes_written = 0;
  // Takes the least time that there is, whatever its size: it hands on what it got.
  bool least = false;
  // false: a shape is not known and its sizes count as 1, or nothing is known of the op and its
  // arithmetic counts as nothing.
  bool accurate = true;
};

// Of which ops something is known: of those that TensorFlow's estimator knows, or also of those
// that its optimizer makes (_FusedConv2D, ...) and some that it has no row for.
enum class KnownOps { kTensorFlows, kMore };

// `shapes` are those of the node's graph.
OpEstimate EstimateOp(const Node& node, const ShapeTable& shapes,
                      KnownOps known = KnownOps::kTensorFlows);

// What a device can do: 10^9 operations and bytes a second.
struct DeviceSpeed {
  double gflops = 1, gb_per_second = 12;
};
// As TensorFlow has it: of a CPU one operation a core and clock and 32 GB/s where its bandwidth is
// not known, of a GPU what its architecture says, of any other what a PCIe bus carries.
DeviceSpeed SpeedOf(const DeviceProperties& device);

// Nanoseconds. `total` is the sum: nothing overlaps.
struct OpTime {
  int64_t compute = 0, memory = 0, total = 0;
};
OpTime TimeOf(const OpEstimate& estimate, const DeviceSpeed& speed);

// Bytes of a tensor; sizes that are not known count as 1, an unknown rank as that of a scalar.
// Strings and handles have none.
int64_t EstimatedBytes(Dtype type, const PartialShape& shape);

// Outputs live as long as the process: constants and variables, and what reads the latter.
extern const OpSet kPersistentOps;

}  // namespace smelt

#endif  // SMELT_ANALYSIS_ESTIMATE_OP_ESTIMATE_H_
