#!/usr/bin/env python3
"""Holds every op that has a kernel to its number of op cases.

    check_op_cases.py SMELT_OP_TESTS SMELT [--least N] [--errors]

Lists the ops with fewer than N (8) cases in tests/ops and tests/sessions and fails when there is one. `--errors` also names the
ops without a case that must fail, which not every op can have: that does not fail.
"""
import argparse
import pathlib
import subprocess
import sys

# Ops without that many cases, and why.
FEW = {
    "StatelessRandomGetAlg": "takes nothing, gives one number",
    "Timestamp": "the time",
    "BoostedTreesBucketize": "TensorFlow 2.21 has no kernel left; old models hold it",
    "TopK": "TensorFlow 2.21 finds no kernel for it; old models hold it",
    "_FusedBatchNormEx": "smelt's optimiser makes it, as tests/passes shows; TensorFlow's kernel computes nothing",
    "_FusedDepthwiseConv2dNative": "as _FusedBatchNormEx",
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


def lines(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests")
    parser.add_argument("smelt")
    parser.add_argument("--least", type=int, default=8)
    parser.add_argument("--errors", action="store_true")
    args = parser.parse_args()
    files = sorted((pathlib.Path(__file__).resolve().parent.parent / "tests").glob("*s/*.ops"))
    counts = {}
    for line in lines(args.tests, "--list-ops", *files):
        cases, failing, op = line.split(None, 2)
        counts[op] = int(cases), int(failing)
    ops = [line.split()[0] for line in lines(args.smelt, "ops") if " CPU " in line or " TPU " in line]
    few = [(counts.get(op, (0, 0))[0], op) for op in ops if op not in FEW]
    few = sorted(f for f in few if f[0] < args.least)
    for n, op in few:
        print(f"{n:5} {op}")
    if args.errors:
        print("no failing case: " + " ".join(op for op in ops if not counts.get(op, (0, 0))[1]))
    print(f"{len(ops)} ops with kernels, {len(few)} with fewer than {args.least} cases")
    return 1 if few else 0


if __name__ == "__main__":
    sys.exit(main())
