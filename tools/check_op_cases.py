#!/usr/bin/env python3
"""Holds every op that has a kernel to its number of op cases.

    check_op_cases.py SMELT_CASE_TESTS SMELT [--least N]

Fails when an op has fewer than N (8) cases in tests/ops and tests/sessions, or none that must fail, and no reason stands here; and
when a reason stands here that does not hold.
"""
import argparse
import pathlib
import subprocess
import sys

# Ops without that many cases, and why.
FEW = {
    "StatelessRandomGetAlg": "takes nothing, gives one number",
    "Timestamp": "the time",
    "Fact": "takes nothing, gives one text",
    "BoostedTreesBucketize": "TensorFlow 2.21 has no kernel left; old models hold it",
    "TopK": "TensorFlow 2.21 finds no kernel for it; old models hold it",
    "_FusedBatchNormEx": "smelt's optimizer makes it, as tests/passes shows; TensorFlow's kernel computes nothing",
    "_FusedDepthwiseConv2dNative": "as _FusedBatchNormEx",
    "_FusedConv3D": "smelt's optimizer makes it, as tests/grappler/remap_onednn_values.graph shows; TensorFlow runs it after a pass of its own alone",
    "_MklFusedBatchMatMulV2": "as _FusedConv3D",
    "_MklFusedInstanceNorm": "as _FusedConv3D",
    "_MklFusedMish": "as _FusedConv3D",
    "_MklLayerNorm": "as _FusedConv3D",
    "_MklSwish": "as _FusedConv3D",
    "_ScopedAllocator": "smelt's optimizer makes it, as tests/grappler/scoped_allocator.graph shows; TensorFlow's kernels want memory that the executor set apart",
    "_ScopedAllocatorConcat": "as _ScopedAllocator",
    "_ScopedAllocatorSplit": "as _ScopedAllocator",
    "CollectiveReduce": "groups of one alone, which tests/grappler/scoped_allocator.graph runs",
    "Abort": "ends the process in TensorFlow; here an error",
    "AnonymousIterator": "TensorFlow 2.21 crashes on it outside of a session of its own",
    "NonSerializableDataset": "passes a dataset on; TensorFlow 2.21 cannot iterate it",
    "TFRecordDatasetV2": "TensorFlow 2.21 cannot iterate it; TFRecordDataset's rows serve it",
    "BatchDataset": "TensorFlow 2.21 cannot iterate it; BatchDatasetV2's rows serve it",
    "PaddedBatchDataset": "as BatchDataset",
    "FixedLengthRecordDataset": "as BatchDataset",
    "FinalizeDataset": "TensorFlow crashes on a dataset of one element; seven others stand",
    "ModelDataset": "as FinalizeDataset",
    "RefIdentity": "version 1 alone; Identity's cases and the session cases run what it does",
    "XlaIf": "TensorFlow's compiler fails on it; If's cases run the same code",
    "XlaReplicaId": "TensorFlow for CPU crashes on it",
    "XlaSpmdShardToFullShape": "gives its input on one device, as XlaSpmdFullToShardShape",
    "TPUCompilationResult": "TensorFlow for CPU has no kernel; tests/runtime_test.cc and tests/cli_test.py run it",
    "TPUOrdinalSelector": "as TPUCompilationResult",
    "TPUPartitionedCall": "as TPUCompilationResult",
    "TPUReplicateMetadata": "as TPUCompilationResult",
    "TPUReplicatedInput": "as TPUCompilationResult",
    "TPUReplicatedOutput": "as TPUCompilationResult",
    "TPURoundRobin": "as TPUCompilationResult",
}
# Ops that TensorFlow's kernel cannot fail on once their types and attributes are right, by reason.
NEVER_FAIL = {
    "any tensor is right": (
        "Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e "
        "BesselK1 BesselK1e BesselY0 BesselY1 Ceil Conj Copy CopyHost Cos Cosh Dawsn Digamma Elu EncodeBase64 Erf Erfc Erfinv Exp "
        "Expint Expm1 Floor FresnelCos FresnelSin Imag Inv Invert IsFinite IsInf IsNan L2Loss LeakyRelu Lgamma Log Log1p "
        "IsotonicRegression LogicalNot Ndtri OnesLike PopulationCount RandomShuffle Rank Real Reciprocal Relu Relu6 Rint Round Rsqrt Selu "
        "SerializeTensor ShapeN "
        "Sigmoid Sign Sin Sinh Size Softplus Softsign Spence Sqrt Square StringLength StringStrip StringToHashBucket "
        "StringToHashBucketFast Tan Tanh TensorSummary UnicodeScript"),
    "passes on what it is given": (
        "DebugGradientIdentity DeepCopy GuaranteeConst IdentityN LoopCond PlaceholderWithDefault PreventGradient Print "
        "RefEnter RefExit RefIdentity RefMerge RefNextIteration Snapshot StopGradient XlaOptimizationBarrier XlaSetBound "
        "XlaSetDynamicDimensionSize XlaSharding XlaSpmdFullToShardShape XlaSpmdShardToFullShape _SwitchN"),
    "makes a resource of its own": (
        "ConditionalAccumulator ResourceConditionalAccumulator SparseConditionalAccumulator AnonymousHashTable AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 AnonymousMutableHashTable DummyMemoryCache "
        "DummySeedGenerator EmptyTensorMap MutexV2 OptionalFromValue Stack VarHandleOp"),
    "makes what is asked about where nobody has": (
        "MapClear MapIncompleteSize MapSize OrderedMapClear OrderedMapIncompleteSize OrderedMapSize StageClear StageSize "
        "VarIsInitializedOp"),
    "shape inference refuses all that is wrong, so that no graph with it is built": "ApproxTopK ParallelConcat StringFormat",
    "has no input": "Const ControlTrigger DeviceIndex Fact FakeParam NoOp StatelessRandomGetAlg Timestamp",
    "ends the process": "Abort",
    "TensorFlow 2.21 runs no graph that holds it": (
        "BoostedTreesBucketize NonSerializableDataset TFRecordDatasetV2 TopK XlaIf XlaReplicaId _FusedBatchNormEx "
        "_FusedDepthwiseConv2dNative _FusedConv3D _MklFusedBatchMatMulV2 _MklFusedInstanceNorm _MklFusedMish _MklLayerNorm _MklSwish "
        "_ScopedAllocator _ScopedAllocatorConcat _ScopedAllocatorSplit CollectiveReduce"),
    "TensorFlow for CPU has no kernel; tests/runtime_test.cc and tests/cli_test.py run it": (
        "TPUCompilationResult TPUOrdinalSelector TPUReplicateMetadata TPUReplicatedInput TPUReplicatedOutput "
        "TPURoundRobin"),
    "the process ends at a wrong index (Tensor's own check)": "MapUnstageNoKey OrderedMapUnstageNoKey",
}


def lines(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests")
    parser.add_argument("smelt")
    parser.add_argument("--least", type=int, default=8)
    args = parser.parse_args()
    files = sorted((pathlib.Path(__file__).resolve().parent.parent / "tests").glob("*s/*.ops"))
    counts = {}
    for line in lines(args.tests, "ops", "--list-ops", *files):
        cases, failing, op = line.split(None, 2)
        counts[op] = int(cases), int(failing)
    ops = [line.split()[0] for line in lines(args.smelt, "ops") if " CPU " in line or " TPU " in line]
    few = [(counts.get(op, (0, 0))[0], op) for op in ops if op not in FEW]
    few = sorted(f for f in few if f[0] < args.least)
    for n, op in few:
        print(f"{n:5} {op}")
    never = {op for names in NEVER_FAIL.values() for op in names.split()}
    failing = {op for op in ops if counts.get(op, (0, 0))[1]}
    unfailing = [op for op in ops if op not in failing | never]
    wrong = sorted((never & failing) | (never - set(ops)))
    for what, names in (("no failing case", unfailing), ("NEVER_FAIL has it in vain", wrong)):
        if names:
            print(f"{what}: {' '.join(names)}")
    print(f"{len(ops)} ops with kernels, {len(few)} with fewer than {args.least} cases, {len(unfailing)} without one that fails")
    return 1 if few or unfailing or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
