// The rows of op_estimate.h, a family in each file: how many operations an op computes, and what it
// reads and writes.
#ifndef SMELT_ANALYSIS_ESTIMATE_ROWS_H_
#define SMELT_ANALYSIS_ESTIMATE_ROWS_H_

#include <span>

#include "smelt/analysis/estimate/op_estimate.h"

namespace smelt::estimate {

int64_t Multiply(int64_t a, int64_t b);
template <typename... T>
int64_t Multiply(int64_t a, int64_t b, T... more) {
  return Multiply(Multiply(a, b), more...);
}

// A node and the shapes around it. Graphs are untrusted: inputs and outputs that are not there have
// unknown shapes. Whoever asks for a size that is not known makes the estimate inaccurate.
class Op {
 public:
  Op(const Node& node, const ShapeTable& shapes) : node(node), shapes_(shapes) {}

  const PartialShape& input(int i) const;
  const PartialShape& output(int i) const;
  Dtype input_type(int i) const;

  // Sizes of a shape that should have `rank` of them: what is not known is 1.
  Dims Sizes(const PartialShape& shape, int rank);
  int64_t Elements(const PartialShape& shape);
  int64_t InputBytes(int i);
  int64_t OutputBytes(int i);
  int64_t AllInputBytes();
  int64_t AllOutputBytes();
  // Elements of the largest input, the first output or what all inputs broadcast to: the largest.
  int64_t ElementwiseElements();

  // `flops` operations over all inputs into all outputs.
  OpEstimate Whole(int64_t flops);
  OpEstimate Of(int64_t flops, int64_t bytes_read, int64_t bytes_written) const;
  // The least time.
  OpEstimate Least();
  // Nothing is known but what it reads and writes.
  OpEstimate Unknown();
  // Inputs that no kernel takes: no time at all.
  static OpEstimate Impossible() { return {.accurate = false}; }

  const Node& node;

 private:
  int64_t Bytes(Dtype type, const PartialShape& shape);

  const ShapeTable& shapes_;
  bool accurate_ = true;
};

struct Row {
  OpName op;
  OpEstimate (*estimate)(Op& op);
  KnownOps known = KnownOps::kTensorFlows;
};

extern const std::span<const Row> kProducts, kWindows, kMovements, kNormalizations;

// Operations for each element of an elementwise op, as TensorFlow's library of arithmetic weighs
// them.
struct Weight {
  OpName op;
  int flops;
};
extern const std::span<const Weight> kWeights;

}  // namespace smelt::estimate

#endif  // SMELT_ANALYSIS_ESTIMATE_ROWS_H_
