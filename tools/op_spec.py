#!/usr/bin/env python3
"""Writes docs/op_spec.md: what each op must hold, and why smelt lacks what it lacks.

    op_spec.py SMELT            joins docs/op_spec.d/*.md and adds the table of ops without a kernel
    op_spec.py SMELT --check    writes nothing

Fails when an op with a kernel stands in no heading ("## OpA, OpB"), in two, or a heading names an op without one.

"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER, OUT = ROOT / "docs" / "op_spec.d", ROOT / "docs" / "op_spec.md"
# The first pattern that an op's whole name matches.
REASONS = [
    (r"__?Mkl\w*", "TensorFlow's own passes rewrite into it when they run; it is never saved"),
    (r"_(Arg|DeviceArg|Retval|DeviceRetval|Recv|Send|HostRecv|HostSend|HostCast|EagerConst|If|While|Xla\w+|ScopedAllocator\w*|"
     r"ParallelConcat\w+|ReadVariablesOp|VarHandlesOp|TensorToHashBucketFast|UnaryOpsComposition|FusedConv3D|"
     r"FusedQuantized\w+|Quantized\w+)|HostConst|FakeParam|CheckPinned",
     "TensorFlow's runtime or passes make it; it is never saved (smelt's runtime has its own)"),
    (r"(Eager)?PyFunc(Stateless)?", "runs Python"),
    (r"(\w*Summary\w*|ImportEvent|Debug\w+|DumpTensor|Copy|CopyHost|CalibrationStatisticsSaver|CustomAggregator|NegTrain)",
     "serves training, its logs or its debugger"),
    (r"Collective\w+|Rpc\w+|\w+RpcFutureResource|DistributedSave|Recv|Send|RemoteCall|GetDeadline|SyncDevice|DataService\w+|"
     r"RegisterDataset\w*", "talks to other processes"),
    (r"\w*(Dataset|DatasetV\d|Iterator\w*|DatasetReader|StatsAggregator\w*|MemoryCache|SeedGenerator)|Dataset\w+|"
     r"ReduceDataset|ListSnapshot\w+|GetElementAtIndex|GetOptions|WindowOp|WrapDataset\w+|UnwrapDataset\w+|CompressElement|"
     r"UncompressElement|ComputeBatchSize|ExperimentalThreadPoolHandle|ThreadPoolHandle|\w*IterationCounter|Iterator\w*|MakeIterator|"
     r"MultiDeviceIterator\w*|InitializeTableFromDataset|MapDefun|RecordInput|Experimental\w+",
     "input pipelines: a server is given its inputs"),
    (r"\w*Reader\w*|\w*Queue\w*|Barrier\w*|(Ordered)?Map(Clear|IncompleteSize|Peek|Size|Stage|Unstage|UnstageNoKey)|Stage\w*|"
     r"Unstage|FakeQueue", "queues and readers of version 1 input pipelines"),
    (r"\w*Accumulator\w*|(Resource)?(Sparse)?Apply\w+|Sdca\w+", "a step of training"),
    (r"\w+Grad(V\d|Boxes|Image|GradV\d|Grad|WithArgmax|WithShape|A)?|\w+Gradient|\w+Backprop\w+|SymbolicGradient|DebugGradientRefIdentity",
     "a gradient: part of training graphs"),
    (r"Xla\w+", "made for XLA's compiler"),
    (r"Quantized\w+|Uniform(De|Re)?[qQ]uantize\w*|Quantize(V2|DownAndShrinkRange|AndDequantize)|Dequantize|Requantiz\w+",
     "arithmetic of quantised types"),
    (r"Test\w*|Stub\w+|Fact|Old|None|A|B|Abort|KernelLabel\w*|ConstructionFails|DevicePlacementOp|DtypeWithDefaultOp|GraphDefVersion|"
     r"ResourceCreateOp|ResourceUsingOp|ResourceInitializedOp|IsTensorFloat32Enabled|IsResourceHandleRefCounting|"
     r"MakeWeakResourceHandle|Sleep\w*Op|DeviceIndex|FileSystemSetConfiguration|Dummy\w+", "TensorFlow's own tests, or of no effect on results"),
    (r"(\w+CandidateSampler|ComputeAccidentalHits|Skipgram|KMC2\w+|Kmeans\w+|NearestNeighbors|GenerateVocabRemapping|LoadAndRemapMatrix|"
     r"SampleDistorted\w+|StatelessSampleDistorted\w+|Random(Crop|IndexShuffle)|StochasticCastToInt)", "prepares training data"),
    (r"MutableDenseHashTable", "TensorFlow 2.21 cannot run it: its kernel wants an input that the op lacks"),
    (r"(Batch)?(Cholesky|Svd|SelfAdjointEig\w*|Qr|Lu|Eig|Matrix(Determinant|Inverse|Solve|SolveLs|TriangularSolve|Exponential|Logarithm|"
     r"SquareRoot))|LogMatrixDeterminant|Banded\w+|Tridiagonal\w+|\w*SparseMatrix\w*|CSR\w+", "linear algebra not done"),
    (r"Stack(Close|Pop|Push)?|TensorArray(V2)?|TensorArray\w+|Save(Slices)?|Restore(Slice)?|\w*Session(Handle|HandleV2|Tensor)|"
     r"TemporaryVariable|DestroyTemporaryVariable|Mutex\w+|ConsumeMutexLock|Ref(Identity|Select)|Inplace\w+|BatchNormWith\w+",
     "version 1 forms that converters and later TensorFlow replaced"),
    (r"TensorMap\w+|EmptyTensorMap|CompositeTensor\w+", "containers that no exporter writes"),
    (r"Ragged\w+|\w*SetOperation|SetSize|Sparse\w+|\w*Sparse\w*|DenseCount\w+", "sparse and ragged ops not done"),
    (r"(Decode|Encode|Extract|Draw|Adjust|HSV|RGB|NonMax|Combined|ImageProjective|ScaleAndTranslate|Audio|Mfcc)\w*", "media and images not done"),
    (r"\w+", "not done"),
]


def tensorflow_cpu():
    """Ops of which TensorFlow has a CPU kernel."""
    name, out = None, []
    for line in (ROOT / "smelt" / "graph" / "ops" / "ops.txt").read_text().splitlines():
        if line and not line[0].isspace() and line[0] != "#":
            name = line.split()[0]
        elif line.startswith("  cpu:"):
            out.append(name)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smelt")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    listing = subprocess.run([args.smelt, "ops"], check=True, capture_output=True, text=True).stdout.splitlines()[:-1]
    have = {line.split()[0] for line in listing}
    problems, seen, parts = [], {}, []
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text().strip()
        for heading in re.findall(r"^## (.*)$", text, re.M):
            for op in heading.split(", "):
                if op in seen:
                    problems.append(f"{op}: in {seen[op]} and in {path.name}")
                if op not in have:
                    problems.append(f"{path.name}: {op} has no kernel")
                seen[op] = path.name
        parts.append(f"# {path.stem}\n\n{text}\n")
    problems += [f"{op}: has a kernel and no heading in docs/op_spec.d" for op in sorted(have - set(seen))]
    lacking = {reason: [] for _, reason in REASONS}
    for op in tensorflow_cpu():
        if op not in have:
            lacking[next(reason for pattern, reason in REASONS if re.fullmatch(pattern, op))].append(op)
    rows = [f"| {reason} | {len(ops)} | {', '.join(ops)} |" for reason, ops in lacking.items() if ops]
    count = sum(len(ops) for ops in lacking.values())
    for p in problems:
        print(p, file=sys.stderr)
    if not args.check and not problems:
        OUT.write_text("\n".join([
            f"Written by tools/op_spec.py from docs/op_spec.d and the tables of kernels; do not edit. {len(have)} ops with kernels.\n",
            *parts, "# Without a kernel\n",
            f"{count} ops of which TensorFlow 2.21 has a CPU kernel and smelt has none. Models that hold them are shown, optimised and "
            "converted; running them names the op.\n",
            "| why | ops | which |", "|---|---|---|", *rows]) + "\n")
    print(f"{len(have)} ops with kernels, {len(seen)} in headings, {count} of TensorFlow's without a kernel, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
