// Ops that hand on, move, gather or scatter what they get.
#include "smelt/analysis/estimate/rows.h"

namespace smelt::estimate {
namespace {

OpEstimate EstimateNothing(Op& op) { return {}; }
OpEstimate EstimateLeast(Op& op) { return op.Least(); }
OpEstimate EstimateMove(Op& op) { return op.Whole(0); }

// What the result holds is read, and each number that says where from. TensorFlow counts elements
// of the latter as bytes.
OpEstimate EstimateLookup(Op& op, int places) {
  if (op.node.num_outputs() == 0 || op.node.num_inputs() <= places) return Op::Impossible();
  const int64_t elements = op.Elements(op.output(0)), written = op.AllOutputBytes();
  int64_t read = written;
  for (int i = 1; i <= places; ++i) read = AddEstimates(read, op.Elements(op.input(i)));
  return op.Of(elements, read, written);
}

OpEstimate EstimateGather(Op& op) { return EstimateLookup(op, 1); }
OpEstimate EstimateSlice(Op& op) { return EstimateLookup(op, 2); }
OpEstimate EstimateStridedSlice(Op& op) { return EstimateLookup(op, 3); }

// Each index changes a row of the variable.
OpEstimate EstimateScatter(Op& op) {
  if (op.node.num_inputs() < 3) return Op::Impossible();
  int64_t changed = op.Elements(op.input(1));
  const PartialShape& variable = op.input(0);
  const Dims sizes = op.Sizes(variable, std::max(1, variable.rank()));
  for (size_t i = 1; i < sizes.size(); ++i) changed = Multiply(changed, sizes[i]);
  const int64_t bytes =
      Multiply(changed, static_cast<int64_t>(DtypeSize(BaseType(op.input_type(0)))));
  int64_t read = bytes;
  for (int i = 1; i < 3; ++i) read = AddEstimates(read, op.InputBytes(i));
  return op.Of(changed, read, bytes);
}

OpEstimate EstimateAssignVariable(Op& op) {
  if (op.node.num_inputs() != 2) return Op::Impossible();
  const int64_t read = op.AllInputBytes();
  return op.Of(0, read, 0);
}

OpEstimate EstimateUpdateVariable(Op& op) {
  if (op.node.num_inputs() != 2) return Op::Impossible();
  const int64_t flops = op.Elements(op.input(1)), read = op.AllInputBytes();
  return op.Of(flops, read, 0);
}

constexpr Row kMovementRows[] = {
    {"AssignAddVariableOp", EstimateUpdateVariable},
    {"AssignSubVariableOp", EstimateUpdateVariable},
    {"AssignVariableOp", EstimateAssignVariable},
    {"ConcatV2", EstimateMove},
    {"DataFormatVecPermute", EstimateMove},
    {"DepthToSpace", EstimateMove},
    {"Enter", EstimateLeast},
    {"Exit", EstimateLeast},
    {"ExpandDims", EstimateMove},
    {"Fill", EstimateMove},
    {"Gather", EstimateGather},
    {"GatherNd", EstimateGather},
    {"GatherV2", EstimateGather},
    {"GuaranteeConst", EstimateNothing},
    {"Identity", EstimateLeast},
    {"IdentityN", EstimateLeast},
    {"Merge", EstimateLeast},
    {"NextIteration", EstimateLeast},
    {"NoOp", EstimateNothing},
    {"OneHot", EstimateMove},
    {"Pack", EstimateMove},
    {"Placeholder", EstimateLeast},
    {"PreventGradient", EstimateLeast},
    {"Range", EstimateMove},
    {"Rank", EstimateLeast},
    {"RefIdentity", EstimateLeast},
    {"Reshape", EstimateLeast},
    {"ScatterAdd", EstimateScatter},
    {"ScatterDiv", EstimateScatter},
    {"ScatterMax", EstimateScatter},
    {"ScatterMin", EstimateScatter},
    {"ScatterMul", EstimateScatter},
    {"ScatterSub", EstimateScatter},
    {"ScatterUpdate", EstimateScatter},
    {"Shape", EstimateLeast},
    {"ShapeN", EstimateLeast},
    {"Size", EstimateLeast},
    {"Slice", EstimateSlice},
    {"SpaceToDepth", EstimateMove},
    {"Split", EstimateMove},
    {"Squeeze", EstimateMove},
    {"StopGradient", EstimateLeast},
    {"StridedSlice", EstimateStridedSlice},
    {"Switch", EstimateLeast},
    {"Tile", EstimateMove},
    {"Transpose", EstimateMove},
    {"Unpack", EstimateMove},
    {"_Arg", EstimateLeast, KnownOps::kMore},
    {"_Recv", EstimateLeast},
    {"_Retval", EstimateLeast, KnownOps::kMore},
    {"_Send", EstimateLeast},
};

}  // namespace

const std::span<const Row> kMovements = kMovementRows;

}  // namespace smelt::estimate
