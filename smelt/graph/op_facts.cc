#include "smelt/graph/op_facts.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"

namespace smelt {

constinit const OpSet kIdentityOps = {"Identity", "IdentityN", "StopGradient", "PreventGradient",
                                      "Snapshot"};

constinit const OpSet kMovesValues = {"Identity",
                                      "IdentityN",
                                      "StopGradient",
                                      "PreventGradient",
                                      "Snapshot",
                                      "Reshape",
                                      "Squeeze",
                                      "ExpandDims",
                                      "EnsureShape",
                                      "Transpose",
                                      "Pad",
                                      "PadV2",
                                      "MirrorPad",
                                      "Concat",
                                      "ConcatV2",
                                      "Split",
                                      "SplitV",
                                      "Slice",
                                      "StridedSlice",
                                      "Pack",
                                      "Unpack",
                                      "Tile",
                                      "BroadcastTo",
                                      "Gather",
                                      "GatherV2",
                                      "GatherNd",
                                      "SpaceToDepth",
                                      "DepthToSpace",
                                      "SpaceToBatch",
                                      "BatchToSpace",
                                      "SpaceToBatchND",
                                      "BatchToSpaceND",
                                      "Reverse",
                                      "ReverseV2",
                                      "Roll",
                                      "MatrixDiagPart",
                                      "DiagPart",
                                      "ReverseSequence"};

constinit const OpSet kElementwiseOps = {
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "AddN",
    "AddV2",
    "Asin",
    "Asinh",
    "Atan",
    "Atan2",
    "Atanh",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "Ceil",
    "ClipByValue",
    "Conj",
    "Cos",
    "Cosh",
    "Digamma",
    "Div",
    "DivNoNan",
    "Elu",
    "Equal",
    "Erf",
    "Erfc",
    "Exp",
    "Expm1",
    "Floor",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "Identity",
    "Inv",
    "Invert",
    "IsFinite",
    "IsInf",
    "IsNan",
    "LeakyRelu",
    "LeftShift",
    "Less",
    "LessEqual",
    "Lgamma",
    "Log",
    "Log1p",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "Maximum",
    "Minimum",
    "Mod",
    "Mul",
    "MulNoNan",
    "Neg",
    "NotEqual",
    "OnesLike",
    "Pow",
    "PreventGradient",
    "RealDiv",
    "Reciprocal",
    "Relu",
    "Relu6",
    "RightShift",
    "Rint",
    "Round",
    "Rsqrt",
    "SelectV2",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Square",
    "SquaredDifference",
    "StopGradient",
    "Sub",
    "Tan",
    "Tanh",
    "TruncateDiv",
    "TruncateMod",
    "Xdivy",
    "Xlog1py",
    "Xlogy",
    "ZerosLike",
};

constinit const OpSet kCommutativeOps = {
    "Add",   "AddV2",     "BitwiseAnd",       "BitwiseOr", "BitwiseXor",
    "Equal", "LogicalOr", "Maximum",          "Minimum",   "LogicalAnd",
    "Mul",   "NotEqual",  "SquaredDifference"};

constinit const OpSet kInvolutions = {"Conj", "Invert", "LogicalNot", "Neg", "Reciprocal"};

constinit const OpSet kReadsShapes = {"Shape",
                                      "ShapeN",
                                      "Size",
                                      "Rank",
                                      "VariableShape",
                                      "TensorListLength",
                                      "TensorListElementShape"};

constinit const OpSet kReadsState = {"ReadVariableOp",   "VarHandleOp",       "_Arg",
                                     "VariableV2",       "Variable",          "VarIsInitializedOp",
                                     "HashTableV2",      "LookupTableFindV2", "ResourceGather",
                                     "Placeholder",      "LookupTableSizeV2", "VariableShape",
                                     "ResourceGatherNd", "HashTable",         "DisableCopyOnRead"};

constinit const OpSet kReadsVariable = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd",
                                        "VariableShape"};

constinit const OpSet kDrawsNumbers = {"Multinomial",
                                       "ParameterizedTruncatedNormal",
                                       "RandomCrop",
                                       "RandomGamma",
                                       "RandomPoisson",
                                       "RandomPoissonV2",
                                       "RandomShuffle",
                                       "RandomStandardNormal",
                                       "RandomUniform",
                                       "RandomUniformInt",
                                       "SampleDistortedBoundingBox",
                                       "SampleDistortedBoundingBoxV2",
                                       "TruncatedNormal"};

constinit const OpSet kControlFlow = {
    "Switch", "RefSwitch", "Merge",    "RefMerge",      "Enter",           "RefEnter",
    "Exit",   "RefExit",   "LoopCond", "NextIteration", "RefNextIteration"};

constinit const OpSet kBridgeOps = {"TPUReplicateMetadata", "TPUCompilationResult",
                                    "TPUReplicatedInput", "TPUReplicatedOutput"};

constinit const OpSet kStructuralOps = {"_Arg",        "_Retval",  "NoOp",     "Const",
                                        "Placeholder", "Identity", "IdentityN"};

constinit const OpSet kNeverFolded = {
    "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "PlaceholderWithDefault",
    "StatelessIf", "StatelessWhile", "StatelessCase", "PartitionedCall", "_Retval", "_Arg",
    "Placeholder", "CheckNumerics", "OptionalFromValue",
    // These wait for other steps.
    "BatchFunction", "Batch", "Unbatch", "UnbatchGrad"};

namespace {

// Without outputs and without effect: they only make nodes wait for others, or hold attributes.
constexpr OpSet kOrdersOnly = {"NoOp", "ControlTrigger", "TPUReplicateMetadata"};

// Their values come from a request or another graph.
constexpr OpSet kStandsForFed = {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Send",
                                 "_HostSend"};

struct Versions {
  OpName first;
  std::array<OpName, 3> others = {};
};

constexpr Versions kVersions[] = {
    {"AnonymousIterator", {"AnonymousIteratorV2", "AnonymousIteratorV3"}},
    {"AudioSummary", {"AudioSummaryV2"}},
    {"BatchDataset", {"BatchDatasetV2"}},
    {"BiasAdd", {"BiasAddV1"}},
    {"BlockLSTM", {"BlockLSTMV2"}},
    {"BlockLSTMGrad", {"BlockLSTMGradV2"}},
    {"BytesProducedStatsDataset", {"ExperimentalBytesProducedStatsDataset"}},
    {"CacheDataset", {"CacheDatasetV2"}},
    {"CholeskyGrad", {"BatchCholeskyGrad"}},
    {"DatasetCardinality", {"ExperimentalDatasetCardinality"}},
    {"DirectedInterleaveDataset", {"ExperimentalDirectedInterleaveDataset"}},
    {"DrawBoundingBoxes", {"DrawBoundingBoxesV2"}},
    {"FIFOQueue", {"FIFOQueueV2"}},
    {"FixedLengthRecordDataset", {"FixedLengthRecordDatasetV2"}},
    {"FusedBatchNormGradV2", {"FusedBatchNormGradV3"}},
    {"FusedBatchNormV2", {"FusedBatchNormV3"}},
    {"GroupByReducerDataset", {"ExperimentalGroupByReducerDataset"}},
    {"GroupByWindowDataset", {"ExperimentalGroupByWindowDataset"}},
    {"HashTable", {"HashTableV2"}},
    {"IdentityReader", {"IdentityReaderV2"}},
    {"IgnoreErrorsDataset", {"ExperimentalIgnoreErrorsDataset"}},
    {"ImageProjectiveTransformV2", {"ImageProjectiveTransformV3"}},
    {"InitializeTable", {"InitializeTableV2"}},
    {"InitializeTableFromTextFile", {"InitializeTableFromTextFileV2"}},
    {"Iterator", {"IteratorV2"}},
    {"IteratorFromStringHandle", {"IteratorFromStringHandleV2"}},
    {"LatencyStatsDataset", {"ExperimentalLatencyStatsDataset"}},
    {"LookupTableExport", {"LookupTableExportV2"}},
    {"LookupTableFind", {"LookupTableFindV2"}},
    {"LookupTableImport", {"LookupTableImportV2"}},
    {"LookupTableInsert", {"LookupTableInsertV2"}},
    {"LookupTableSize", {"LookupTableSizeV2"}},
    {"MapAndBatchDataset", {"ExperimentalMapAndBatchDataset"}},
    {"MatrixBandPart", {"BatchMatrixBandPart"}},
    {"MatrixDeterminant", {"BatchMatrixDeterminant"}},
    {"MatrixDiag", {"BatchMatrixDiag", "MatrixDiagV2", "MatrixDiagV3"}},
    {"MatrixDiagPart", {"BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"}},
    {"MatrixSetDiag", {"BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"}},
    {"MatrixSolve", {"BatchMatrixSolve"}},
    {"MatrixTriangularSolve", {"BatchMatrixTriangularSolve"}},
    {"MaxIntraOpParallelismDataset", {"ExperimentalMaxIntraOpParallelismDataset"}},
    {"MaxPoolGrad", {"MaxPoolGradV2"}},
    {"MaxPoolGradGrad", {"MaxPoolGradGradV2"}},
    {"MutableHashTable", {"MutableHashTableV2"}},
    {"MutableHashTableOfTensors", {"MutableHashTableOfTensorsV2"}},
    {"NonSerializableDataset", {"ExperimentalNonSerializableDataset"}},
    {"OptimizeDataset", {"OptimizeDatasetV2"}},
    {"PaddedBatchDataset", {"PaddedBatchDatasetV2"}},
    {"PaddingFIFOQueue", {"PaddingFIFOQueueV2"}},
    {"ParallelInterleaveDatasetV2", {"ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4"}},
    {"ParallelMapDataset", {"ParallelMapDatasetV2"}},
    {"ParseExampleDataset", {"ExperimentalParseExampleDataset", "ParseExampleDatasetV2"}},
    {"Placeholder", {"PlaceholderV2"}},
    {"PriorityQueue", {"PriorityQueueV2"}},
    {"PrivateThreadPoolDataset", {"ExperimentalPrivateThreadPoolDataset"}},
    {"QuantizeAndDequantizeV2", {"QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"}},
    {"QueueClose", {"QueueCloseV2"}},
    {"QueueDequeue", {"QueueDequeueV2"}},
    {"QueueDequeueMany", {"QueueDequeueManyV2"}},
    {"QueueDequeueUpTo", {"QueueDequeueUpToV2"}},
    {"QueueEnqueue", {"QueueEnqueueV2"}},
    {"QueueEnqueueMany", {"QueueEnqueueManyV2"}},
    {"QueueIsClosed", {"QueueIsClosedV2"}},
    {"QueueSize", {"QueueSizeV2"}},
    {"RandomShuffleQueue", {"RandomShuffleQueueV2"}},
    {"ReaderNumRecordsProduced", {"ReaderNumRecordsProducedV2"}},
    {"ReaderNumWorkUnitsCompleted", {"ReaderNumWorkUnitsCompletedV2"}},
    {"ReaderRead", {"ReaderReadV2"}},
    {"ReaderReadUpTo", {"ReaderReadUpToV2"}},
    {"ReaderReset", {"ReaderResetV2"}},
    {"ReaderRestoreState", {"ReaderRestoreStateV2"}},
    {"ReaderSerializeState", {"ReaderSerializeStateV2"}},
    {"Reciprocal", {"Inv"}},
    {"ReciprocalGrad", {"InvGrad"}},
    {"SampleDistortedBoundingBox", {"SampleDistortedBoundingBoxV2"}},
    {"ScanDataset", {"ExperimentalScanDataset"}},
    {"SelfAdjointEig", {"BatchSelfAdjointEig"}},
    {"ShuffleAndRepeatDataset", {"ShuffleAndRepeatDatasetV2"}},
    {"ShuffleDataset", {"ShuffleDatasetV2", "ShuffleDatasetV3"}},
    {"SlidingWindowDataset", {"ExperimentalSlidingWindowDataset"}},
    {"Stack", {"StackV2"}},
    {"StackClose", {"StackCloseV2"}},
    {"StackPop", {"StackPopV2"}},
    {"StackPush", {"StackPushV2"}},
    {"Svd", {"BatchSvd"}},
    {"TFRecordDataset", {"TFRecordDatasetV2"}},
    {"TFRecordReader", {"TFRecordReaderV2"}},
    {"TakeWhileDataset", {"ExperimentalTakeWhileDataset"}},
    {"TensorArray", {"TensorArrayV2", "TensorArrayV3"}},
    {"TensorArrayClose", {"TensorArrayCloseV2", "TensorArrayCloseV3"}},
    {"TensorArrayConcat", {"TensorArrayConcatV2", "TensorArrayConcatV3"}},
    {"TensorArrayGather", {"TensorArrayGatherV2", "TensorArrayGatherV3"}},
    {"TensorArrayGrad", {"TensorArrayGradV2", "TensorArrayGradV3"}},
    {"TensorArrayRead", {"TensorArrayReadV2", "TensorArrayReadV3"}},
    {"TensorArrayScatter", {"TensorArrayScatterV2", "TensorArrayScatterV3"}},
    {"TensorArraySize", {"TensorArraySizeV2", "TensorArraySizeV3"}},
    {"TensorArraySplit", {"TensorArraySplitV2", "TensorArraySplitV3"}},
    {"TensorArrayWrite", {"TensorArrayWriteV2", "TensorArrayWriteV3"}},
    {"TensorListConcat", {"TensorListConcatV2"}},
    {"TensorListScatter", {"TensorListScatterV2"}},
    {"TextLineReader", {"TextLineReaderV2"}},
    {"TopK", {"TopKV2"}},
    {"TruncateMod", {"Mod"}},
    {"UnbatchDataset", {"ExperimentalUnbatchDataset"}},
    {"Unique", {"UniqueV2"}},
    {"UniqueDataset", {"ExperimentalUniqueDataset"}},
    {"UniqueWithCounts", {"UniqueWithCountsV2"}},
    {"Variable", {"VariableV2"}},
    {"WholeFileReader", {"WholeFileReaderV2"}},
    {"XlaConv", {"XlaConvV2"}},
    {"XlaDot", {"XlaDotV2"}},
    {"XlaVariadicReduce", {"XlaVariadicReduceV2"}},
};

constexpr std::array<OpName, kNumOps> kFirstVersions = [] {
  std::array<OpName, kNumOps> firsts;
  for (int i = 0; i < kNumOps; ++i) firsts[static_cast<size_t>(i)] = OpName::OfNumber(i);
  for (const Versions& row : kVersions) {
    for (const OpName op : row.others) {
      if (!op.unknown()) firsts[static_cast<size_t>(op.number())] = row.first;
    }
  }
  return firsts;
}();

}  // namespace

OpName FirstVersion(OpName op) {
  return op.unknown() ? op : kFirstVersions[static_cast<size_t>(op.number())];
}

absl::string_view FirstVersion(absl::string_view op) {
  const OpName name = OpName::Of(op);
  return name.unknown() ? op : FirstVersion(name).text();
}

absl::string_view ResultTypeAttr(OpName op) {
  if (op.unknown()) return {};
  const std::vector<ArgDef>& outputs = DefinitionOf(op)->outputs;
  return outputs.empty() ? absl::string_view() : outputs[0].type_attr;
}

bool TakesReference(const Node& n) { return std::ranges::any_of(n.input_types, IsRef); }

bool HasEffect(const Node& n) {
  if (n.def() == nullptr) return true;
  // What gives nothing, though no definition calls it stateful, is there for what it does (Abort).
  if (n.def()->outputs.empty() && !n.Is(kOrdersOnly)) return true;
  return n.def()->stateful && !n.Is(kReadsState);
}

constinit const OpSet kWritesInPlace = {"InplaceAdd", "InplaceSub", "InplaceUpdate",
                                        "_ParallelConcatUpdate"};

bool IsFreeOfSideEffect(const Node& n) {
  return n.def() != nullptr && !n.def()->stateful && !TakesReference(n) &&
         !absl::StrContains(n.op(), "Queue") && !n.Is(kStandsForFed) && !n.Is(kWritesInPlace);
}

Endpoint BehindIdentities(Endpoint e) {
  while (e.node->Is(kIdentityOps) && e.port < e.node->num_inputs()) e = e.node->input(e.port);
  return e;
}

}  // namespace smelt
