#!/usr/bin/env python3
"""Builtins that no converter of TensorFlow writes, in LiteRT and in smelt: lite_builtins.py SMELT [SUBSTRING of names]

Operators of StableHLO that LiteRT has kernels for, those of windows and dilation, and the old ones on hashes and texts: each of the types that its kernel takes.
Integers and texts are equal, floats are but for the order of sums."""
import pathlib
import re
import sys

import numpy as np
from tensorflow.lite.python import schema_py_generated as fb

from checks import check, finish
from lite_builder import Lite
from lite_checks import compare, litert, unsupported

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(23)
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = ["float32", "float64", "float16"] + INTS


def values(shape, dtype, low=-9, high=9):
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return random.normal(size=shape).astype(dtype)
    return random.integers(0 if dtype.startswith("u") else low, high, shape).astype(dtype)


def run(name, lite, outputs, *inputs, tolerance=1e-5):
    name = re.sub(r"[^a-z0-9_-]+", "_", name.lower())  # of a folder, which flags name
    if only in name:
        compare(name, lite.bytes(outputs), {f"x{i}": v for i, v in enumerate(inputs)}, tolerance=tolerance)


# ---- elementwise

for op, types in {"ADD": NUMBERS + ["bool"], "MULTIPLY": NUMBERS + ["bool"], "MAXIMUM": NUMBERS + ["bool"], "MINIMUM": NUMBERS + ["bool"],
                  "AND": INTS + ["bool"], "SHIFT_LEFT": ["int8", "int16", "int32"]}.items():
    for dtype in types:
        m = Lite()
        x, y = m.input([3, 4], dtype), m.input([3, 4], dtype)
        z = m.op(f"STABLEHLO_{op}", [x, y], [m.tensor([3, 4], dtype)])
        run(f"{op.lower()}_{dtype}", m, [z], values([3, 4], dtype), values([3, 4], dtype, 0, 31 if op == "SHIFT_LEFT" else 7), tolerance=1e-3 if dtype == "float16" else 1e-5)

# ---- padding and dilation

for dtype in ["float32", "bool", "float16"] + INTS:
    for low, high, interior in (([1, 0], [0, 2], [0, 0]), ([0, 0], [0, 0], [1, 2]), ([-1, 1], [2, -1], [0, 1]), ([-2, -3], [-1, 0], [1, 2])):
        m = Lite()
        x, fill = m.input([4, 3], dtype), m.input([], dtype)
        shape = [s + (s - 1) * i + a + b for s, i, a, b in zip((4, 3), interior, low, high)]
        y = m.op("STABLEHLO_PAD", [x, fill], [m.tensor(shape, dtype)], "StablehloPadOptions", edgePaddingLow=low, edgePaddingHigh=high, interiorPadding=interior)
        run(f"pad_{dtype}_{low}_{high}_{interior}", m, [y], values([4, 3], dtype), values([], dtype))
    for dilations in ([1, 1, 1], [1, 2, 1], [3, 1, 2]):
        for constant in True, False:
            m = Lite()
            x = m.input([2, 3, 2], dtype)
            d = m.const(np.int32(dilations)) if constant else m.input([3], "int32")
            fill = m.const(values([], dtype))
            y = m.op("DILATE", [x, d, fill], [m.tensor([(s - 1) * k + 1 for s, k in zip((2, 3, 2), dilations)], dtype)], "DilateOptions")
            run(f"dilate_{dtype}_{dilations}_{constant}", m, [y], values([2, 3, 2], dtype), *([] if constant else [np.int32(dilations)]))

# ---- windows

BODIES = {"ADD": ["ADD", "STABLEHLO_ADD"], "MUL": ["MUL", "STABLEHLO_MULTIPLY"], "MAXIMUM": ["MAXIMUM", "STABLEHLO_MAXIMUM"], "MINIMUM": ["MINIMUM", "STABLEHLO_MINIMUM"],
          "ALL": ["LOGICAL_AND", "STABLEHLO_AND"], "ANY": ["LOGICAL_OR"]}
WINDOWED = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8"]


def windowed(shape, size, strides, dilations):
    return [max(0, (s - ((k - 1) * d + 1)) // t + 1) for s, k, t, d in zip(shape, size, strides, dilations)]


for number, (name, bodies) in enumerate(BODIES.items()):
    for dtype in ["bool"] if name in ("ALL", "ANY") else WINDOWED:
        for size, strides, dilations in (([2, 3], [1, 1], [1, 1]), ([1, 2], [2, 1], [1, 2]), ([3, 1], [2, 2], [2, 1])):
            m = Lite()
            x, init = m.input([6, 5], dtype), m.input([], dtype)
            windows = [m.const(np.int64(v)) for v in (size, strides, dilations)]
            y = m.op("REDUCE_WINDOW", [x, init, *windows], [m.tensor(windowed((6, 5), size, strides, dilations), dtype)], "ReduceWindowOptions", reduceFunction=number + 1)
            run(f"reduce_window_{name}_{dtype}_{size}", m, [y], values([6, 5], dtype), values([], dtype))
        if name in ("ALL", "ANY"):
            continue
        m = Lite()
        x, init = m.input([2, 2], dtype), m.input([], dtype)
        windows = [m.const(np.int64(v)) for v in ([2, 3], [1, 1], [1, 1])]
        y = m.op("REDUCE_WINDOW", [x, init, *windows], [m.tensor([1, 0], dtype)], "ReduceWindowOptions", reduceFunction=number + 1)
        run(f"reduce_window_{name}_{dtype}_too_wide", m, [y], values([2, 2], dtype), values([], dtype))
    for body in bodies:
        for dtype in ["bool"] if name in ("ALL", "ANY") else WINDOWED:
            for size, strides, base, dilations, padding in (([2, 3], [1, 1], [1, 1], [1, 1], [0, 0, 0, 0]), ([2, 2], [1, 2], [2, 1], [1, 1], [1, 0, 0, 2]),
                                                            ([2, 1], [1, 1], [1, 3], [2, 1], [-1, 0, 1, -2])):
                m = Lite()
                f = m.sub()
                a, b = f.input([], dtype), f.input([], dtype)
                f.graph.outputs = [f.op(body, [a, b], [f.tensor([], dtype)], {"ADD": "AddOptions", "MUL": "MulOptions"}.get(body))]
                x, init = m.input([4, 5], dtype), m.input([], dtype)
                wide = [(s - 1) * k + 1 + p + q for s, k, p, q in zip((4, 5), base, padding[::2], padding[1::2])]
                y = m.op("STABLEHLO_REDUCE_WINDOW", [x, init], [m.tensor(windowed(wide, size, strides, dilations), dtype)], "StablehloReduceWindowOptions",
                         windowDimensions=size, windowStrides=strides, baseDilations=base, windowDilations=dilations, padding=padding, bodySubgraphIndex=f.index)
                run(f"stablehlo_reduce_window_{body}_{dtype}_{padding}", m, [y], values([4, 5], dtype), values([], dtype))

# ---- gathers and scatters

for dtype in NUMBERS + ["bool"]:
    for index in "int32", "int64":
        m = Lite()
        x, at = m.input([3, 4, 2], dtype), m.input([2, 3, 2], index)
        y = m.op("STABLEHLO_GATHER", [x, at], [m.tensor([2, 3, 2, 2], dtype)], "StablehloGatherOptions", offsetDims=[2, 3], collapsedSliceDims=[0], startIndexMap=[1, 0],
                 indexVectorDim=2, sliceSizes=[1, 2, 2])
        run(f"gather_{dtype}_{index}", m, [y], values([3, 4, 2], dtype), random.integers(-1, 6, [2, 3, 2]).astype(index))
        m = Lite()
        x, at = m.input([5, 2], dtype), m.input([4, 1], index)
        y = m.op("STABLEHLO_GATHER", [x, at], [m.tensor([2, 4], dtype)], "StablehloGatherOptions", offsetDims=[0], collapsedSliceDims=[0], startIndexMap=[0], indexVectorDim=1,
                 sliceSizes=[1, 2])
        run(f"gather_rows_{dtype}_{index}", m, [y], values([5, 2], dtype), np.array([[4], [0], [7], [-3]], index))
    for body in None, "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM":
        if dtype == "bool" and body:
            continue
        m = Lite()
        f = m.sub()
        a, b = f.input([], dtype), f.input([], dtype)
        f.graph.outputs = [f.op(body, [a, b], [f.tensor([], dtype)])] if body else [b]
        x, at, updates = m.input([3, 4, 2], dtype), m.input([2, 3, 2], "int64"), m.input([2, 3, 2, 2], dtype)
        y = m.op("STABLEHLO_SCATTER", [x, at, updates], [m.tensor([3, 4, 2], dtype)], "StablehloScatterOptions", updateWindowDims=[2, 3], insertedWindowDims=[0],
                 scatterDimsToOperandDims=[1, 0], indexVectorDim=2, updateComputationSubgraphIndex=f.index)
        # Slices that lie in the operand, and one that does not.
        starts = np.int64([[[0, 0], [1, 2], [2, 1]], [[2, 0], [0, 0], [2, 5]]])
        run(f"scatter_{body}_{dtype}", m, [y], values([3, 4, 2], dtype), starts, values([2, 3, 2, 2], dtype), tolerance=1e-3 if dtype == "float16" else 1e-5)

# ---- bits at random

for algorithm in 0, 1, 2:
    for words in (2,) if algorithm == 2 else (2, 3):
        for dtype in "int32", "uint32", "int64", "uint64":
            for shape in [7], [3, 5], [2, 4], []:
                m = Lite()
                state = m.input([words], "uint64")
                next_, bits = m.tensor([words], "uint64"), m.tensor(shape, dtype)
                m.op("STABLEHLO_RNG_BIT_GENERATOR", [state], [next_, bits], "StablehloRngBitGeneratorOptions", algorithm=algorithm)
                run(f"bits_{algorithm}_{words}_{dtype}_{shape}", m, [next_, bits], random.integers(0, 2 ** 63, [words]).astype(np.uint64))

# ---- branches, and a composite

for index in 0, 1, 2, -1, 9:
    m = Lite()
    branches = []
    for k, op in enumerate(("ADD", "SUB", "MUL")):
        f = m.sub(f"branch{k}")
        a, b = f.input([3], "float32"), f.input([3], "float32")
        f.graph.outputs = [f.op(op, [a, b], [f.tensor([3], "float32")], f"{op.title()}Options")]
        branches.append(f.index)
    at, a, b = m.input([], "int32"), m.input([3], "float32"), m.input([3], "float32")
    y = m.op("STABLEHLO_CASE", [at, a, b], [m.tensor([3], "float32")], "StablehloCaseOptions", branchSubgraphIndices=branches)
    run(f"case_{index}", m, [y], np.int32(index), values([3], "float32"), values([3], "float32"))
m = Lite()
f = m.sub("decomposition")
a = f.input([3], "float32")
f.graph.outputs = [f.op("MUL", [a, a], [f.tensor([3], "float32")], "MulOptions")]
x = m.input([3], "float32")
y = m.op("STABLEHLO_COMPOSITE", [x], [m.tensor([3], "float32")], "StableHLOCompositeOptions", name=b"test.square", decompositionSubgraphIndex=f.index,
         compositeAttributes=[])
run("composite", m, [y], values([3], "float32"))

# ---- hashes and texts

for dtype in NUMBERS + ["bool"]:
    m = Lite()
    wanted = m.input([6], "int32")
    keys, rows = m.const(np.int32([-5, 0, 3, 9])), m.const(values([4, 3], dtype))
    y, hits = m.tensor([6, 3], dtype), m.tensor([6], "uint8")
    m.op("HASHTABLE_LOOKUP", [wanted, keys, rows], [y, hits])
    run(f"hashtable_lookup_{dtype}", m, [y, hits], np.int32([9, 1, -5, 3, 2 ** 31 - 1, -2 ** 31]))
m = Lite()
wanted, keys, rows = m.input([4], "int32"), m.const(np.int32([1, 2, 4])), m.input([3], "str")
y, hits = m.tensor([4], "str"), m.tensor([4], "uint8")
m.op("HASHTABLE_LOOKUP", [wanted, keys, rows], [y, hits])
run("hashtable_lookup_str", m, [y, hits], np.int32([4, 3, 1, 2]), np.array([b"one", b"", b"four"], object))

for kind in 1, 2:
    for dtype in "float32", "int32", "int64", "int8":
        for weighted in False, True:
            m = Lite()
            hashes, x = m.const(random.normal(size=[3, 4]).astype(np.float32)), m.input([5, 2], dtype)
            more = [m.input([5], "float32")] if weighted else []
            y = m.op("LSH_PROJECTION", [hashes, x, *more], [m.tensor([3] if kind == 1 else [12], "int32")], "LSHProjectionOptions", type=kind)
            run(f"lsh_projection_{kind}_{dtype}_{weighted}", m, [y], values([5, 2], dtype), *([values([5], "float32")] if weighted else []))

for number, text in enumerate((b"The quick\t brown  fox jumps", b"one two", b" lead and more", b"", b"alone", b"tail space ")):
    for size, skip, every in (2, 1, False), (3, 2, True), (1, 0, False), (3, 0, False), (2, 9, True):
        m = Lite()
        x = m.input([1], "str")
        y = m.op("SKIP_GRAM", [x], [m.tensor([1], "str", signature=[-1])], "SkipGramOptions", ngramSize=size, maxSkipSize=skip, includeAllNgrams=every)
        run(f"skip_gram_{number}_{size}_{skip}_{every}", m, [y], np.array([text], object))

for combiner in 0, 1, 2:
    for ids, at, shape in ([[1, 3, 0], [[0, 0], [2, 0], [2, 1]], [3, 2]], [[1, 3, 0, 0], [[0, 0, 0], [0, 2, 0], [1, 2, 1], [1, 2, 2]], [2, 3, 3]]):
        m = Lite()
        given = [m.input([len(ids)], "int32"), m.const(np.int32(at)), m.const(np.int32(shape)), m.input([len(ids)], "float32"), m.const(values([4, 2, 3], "float32"))]
        y = m.op("EMBEDDING_LOOKUP_SPARSE", given, [m.tensor(shape[:-1] + [2, 3], "float32")], "EmbeddingLookupSparseOptions", combiner=combiner)
        run(f"embedding_lookup_sparse_{combiner}_{len(shape)}", m, [y], np.int32(ids), values([len(ids)], "float32"))

# ---- what TensorFlow's op of the name does otherwise

m = Lite()
x = m.input([2, 3], "bool")
y = m.op("BITCAST", [x], [m.tensor([2, 3], "uint8")], "BitcastOptions")
run("bitcast_bool", m, [y], values([2, 3], "bool"))
for shape, lengths in ([2, 3, 5], [4, 8]), ([7, 4], [4, 16]), ([3, 3], [2, 2]):
    m = Lite()
    x = m.input(shape, "float32")
    y = m.op("RFFT2D", [x, m.const(np.int32(lengths))], [m.tensor([*shape[:-2], lengths[0], lengths[1] // 2 + 1], "complex64")], "Rfft2dOptions")
    run(f"rfft2d_{shape}_{lengths}", m, [y], values(shape, "float32"))
for sigma in 0.0, 0.3:  # an overlap drops a box, though it lowers scores already
    m = Lite()
    given = [m.input([3, 4], "float32"), m.input([3], "float32"), *(m.const(v) for v in (np.int32(3), np.float32(0.4), np.float32(0.1), np.float32(sigma)))]
    y = [m.tensor([3], "int32"), m.tensor([3], "float32"), m.tensor([], "int32")]
    m.op("NON_MAX_SUPPRESSION_V5", given, y, "NonMaxSuppressionV5Options")
    run(f"suppression_{sigma}", m, y, np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0.7, 1, 1.7]]), np.float32([0.9, 0.8, 0.7]))

# ---- a sparse constant: rows of what is not zero

for dtype in "float32", "int8", "float16":
    m = Lite()
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 3]], dtype)
    kept = m.tensor([3, 4], dtype, value=np.array([2, 1, 3], dtype))
    s = fb.SparsityParametersT()
    s.traversalOrder = [0, 1]
    rows, columns = fb.DimensionMetadataT(), fb.DimensionMetadataT()
    rows.format, rows.denseSize = fb.DimensionType.DENSE, 3
    columns.format, columns.denseSize = fb.DimensionType.SPARSE_CSR, 0

    def vector(numbers):
        v = fb.Int32VectorT()
        v.values = numbers
        return v
    columns.arraySegmentsType, columns.arraySegments = fb.SparseIndexVector.Int32Vector, vector([0, 1, 1, 3])
    columns.arrayIndicesType, columns.arrayIndices = fb.SparseIndexVector.Int32Vector, vector([1, 0, 3])
    s.dimMetadata = [rows, columns]
    m.graph.tensors[kept].sparsity = s
    y = m.op("DENSIFY", [kept], [m.tensor([3, 4], dtype)], "DensifyOptions")
    x = m.input([3, 4], dtype)
    z = m.op("MAXIMUM", [x, y], [m.tensor([3, 4], dtype)], "MaximumMinimumOptions")
    run(f"densify_{dtype}", m, [z], values([3, 4], dtype))

# ---- quantized: integers as they are

for op in "ADD", "MAXIMUM", "MULTIPLY":
    m = Lite()
    x, y = m.input([3, 4], "int8", scale=0.5, zero=3), m.input([3, 4], "int8", scale=0.25, zero=-1)
    z = m.op(f"STABLEHLO_{op}", [x, y], [m.tensor([3, 4], "int8", scale=0.5, zero=0)])
    run(f"quantized_{op.lower()}", m, [z], values([3, 4], "int8"), values([3, 4], "int8"))
m = Lite()
x, d, fill = m.input([2, 3], "int8", scale=0.5, zero=3), m.const(np.int32([2, 2])), m.tensor([], "int8", scale=0.5, zero=3, value=np.int8(3))
y = m.op("DILATE", [x, d, fill], [m.tensor([3, 5], "int8", scale=0.5, zero=3)], "DilateOptions")
run("quantized_dilate", m, [y], values([2, 3], "int8"))

# ---- the page of operators: what LiteRT has a kernel for runs

if not only:
    page = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs/lite_operators.md").read_text()
    rows = [[c.strip() for c in line.split("|")] for line in page.splitlines() if re.match(r"\| \d+ \|", line)]
    check("the page has each operator", [r[2] for r in rows] == [k for k, _ in sorted(vars(fb.BuiltinOperator).items(), key=lambda kv: str(kv[1]).zfill(9)) if k.isupper()])
    for _, number, name, _, runs, *_ in rows:
        m = Lite()
        y = m.op(name, [m.input([1], "float32")], [m.tensor([1], "float32")])
        error = litert(m.bytes([y]), {})
        kernel = "Didn't find op for builtin opcode" not in str(error) and name not in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")
        check(f"{name} runs, as in LiteRT", not kernel or runs == "yes", error)

for u in unsupported:
    print("not in LiteRT:", u)
check("LiteRT runs most", bool(only) or len(unsupported) < 60, len(unsupported))
finish()
