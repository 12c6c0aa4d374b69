"""Drawers of .tflite operators that few converters write: volumes, tables of rows, segments, boxes, what is counted or taken apart."""
import numpy as np

from lite_draw import SAME, VALID
from lite_drawers import EVERY, NUMBERS


def volume(d):
    """CONV_3D and its transpose, of floats."""
    n, sizes, kernel, ci, co = d.int(1, 2), [d.int(1, 6) for _ in range(3)], [d.int(1, 3) for _ in range(3)], d.int(1, d.pick(4, 20)), d.int(1, d.pick(4, 20))
    strides, padding = d.pick((1, 1, 1), tuple(d.int(1, 3) for _ in range(3))), d.pick(SAME, VALID)
    dilations = tuple(d.int(1, 2) for _ in range(3)) if strides == (1, 1, 1) and d.chance(0.3) else (1, 1, 1)
    fields = {"padding": padding, "fusedActivationFunction": d.pick(0, 0, 1, 2, 3)} | {f"stride{k}": s for k, s in zip("DHW", strides)} | {f"dilation{k}Factor": s for k, s in zip("DHW", dilations)}
    x = d.values((n, *sizes, ci), "float32")
    bias = lambda: [d.const(d.values((co,), "float32"))] if d.chance(0.6) else [-1] if d.chance(0.3) else []
    d.tolerance = 1e-4 if fields["fusedActivationFunction"] in (2, 3) else 1e-5
    if d.chance(0.5):
        out = [d.window(*v, padding) for v in zip(sizes, kernel, strides, dilations)]
        if 0 in out:
            fields["padding"] = SAME
            out = [-(-s // k) for s, k in zip(sizes, strides)]
        d.op("CONV_3D", [d.input(x), d.either(d.values((*kernel, ci, co), "float32", -1, 1), 0.9), *bias()], [d.output((n, *out, co), "float32")], table="Conv3DOptions", **fields)
        return
    reach = [(k - 1) * a + 1 for k, a in zip(kernel, dilations)]
    out = [s * k - d.int(0, k - 1) for s, k in zip(sizes, strides)] if padding == SAME else [(s - 1) * k + r + d.int(0, k - 1) for s, k, r in zip(sizes, strides, reach)]
    d.op("CONV_3D_TRANSPOSE", [d.either(np.array((n, *out, co), np.int32), 0.8), d.either(d.values((*kernel, co, ci), "float32", -1, 1), 0.9), d.input(x), *bias()], [d.output((n, *out, co), "float32")],
         table="Conv3DOptions", **fields)


def segments(d):
    op = d.pick("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN")
    dtype, shape, rank = d.pick("float32", "int32"), d.shape(1, 4, 5), 1
    rank = d.int(1, len(shape))
    count = d.int(1, 6)
    at = d.random.integers(-1 if d.chance(0.3) else 0, count, shape[:rank]).astype(np.int32)
    d.op(op, [d.input(d.values(shape, dtype)), d.either(at, 0.5), d.either(np.int32(count), 0.7)], [d.output((count, *shape[rank:]), dtype)], table="UnsortedSegment" + op[17:].title() + "Options")


def tables(d):
    """Rows that are looked for."""
    op = d.pick("HASHTABLE_LOOKUP", "EMBEDDING_LOOKUP_SPARSE", "LSH_PROJECTION", "BUCKETIZE", "EMBEDDING_LOOKUP")
    if op == "HASHTABLE_LOOKUP":
        dtype = d.pick("float32", "int32", "int64", "int8", "uint8", "int16", "bool")
        rows = d.values(d.shape(1, 4, 6), dtype)
        keys = np.sort(d.random.choice(np.arange(-20, 20), len(rows), replace=False)).astype(np.int32)
        wanted = d.random.choice(np.append(keys, [77, -3]), d.int(1, 7)).astype(np.int32)
        quant = d.quant(dtype)
        d.op(op, [d.input(wanted), d.either(keys, 0.5), d.either(rows, 0.5, **quant)], [d.output((len(wanted), *rows.shape[1:]), dtype, **quant), d.output(wanted.shape, "uint8")])
    elif op == "EMBEDDING_LOOKUP_SPARSE":
        rows, deep, many = d.values(d.shape(2, 4, 5), "float32"), d.int(2, 4), d.int(1, 6)
        dense = [d.int(1, 4) for _ in range(deep)]
        places = np.array(sorted({tuple(d.int(0, n - 1) for n in dense) for _ in range(many)}), np.int32)
        ids = d.random.integers(0, len(rows), len(places)).astype(np.int32)
        d.op(op, [d.input(ids), d.either(places, 0.6), d.const(np.array(dense, np.int32)), d.input(d.values(ids.shape, "float32", 0.1, 3)), d.either(rows, 0.6)],
             [d.output((*dense[:-1], *rows.shape[1:]), "float32")], combiner=d.int(0, 2))
    elif op == "LSH_PROJECTION":
        count, bits, dtype, dense = d.int(1, 5), d.int(1, 9), d.pick("float32", "int32", "int64", "int8"), d.chance(0.5)
        x = d.values(d.shape(1, 3, 5), dtype)
        more = [d.input(d.values(x.shape[:1], "float32"))] if d.chance(0.5) else []
        d.op(op, [d.const(d.random.normal(size=(count, bits)).astype(np.float32)), d.input(x), *more], [d.output((count * bits,) if dense else (count,), "int32")], type=2 if dense else 1)
    elif op == "BUCKETIZE":
        dtype = d.pick("float32", "float64", "int32", "int64")
        edges = np.sort(d.random.uniform(-15, 15, d.int(1, 6))).astype(np.float32)
        x = d.values(d.shape(1, 4), "float32" if "float" in dtype else dtype, -20, 20).astype(dtype)
        d.op(op, [d.input(x)], [d.output(x.shape, "int32")], boundaries=edges)
    else:
        # Rows of int8 and int4 with a scale each.
        shape = (d.int(1, 6), d.int(1, 5) * 2)
        at = d.random.integers(0, shape[0], d.shape(1, 1, 6)).astype(np.int32)
        scales = np.float32(d.random.uniform(0.01, 0.1, shape[0])).tolist() if d.chance(0.6) else d.scale()
        four = d.chance(0.4)
        table = d.random.integers(-7, 8, shape).astype(np.int8) if four else d.random.integers(-127, 128, shape).astype(np.int8)
        d.op(op, [d.input(at), (d.const_4 if four else d.const)(table, scale=scales, zero=0)], [d.output((*at.shape, shape[1]), "float32")], version=4)


def boxes(d):
    op = d.pick("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
    n, most, near = d.int(1, 12), d.int(1, 8), d.chance(0.5)
    corners = d.random.uniform(0, 1 if near else 4, (n, 2)).astype(np.float32)
    box = np.concatenate([corners, corners + d.random.uniform(0.1, 1.5, (n, 2)).astype(np.float32)], 1)
    if d.chance(0.3):
        box = box[:, [2, 3, 0, 1]]  # corners the other way round
    scores = d.random.uniform(0, 1, n).astype(np.float32)  # docs/lite.md: of equal ones the first comes first
    given = [d.input(box), d.input(scores), d.either(np.int32(most), 0.6), d.const(np.float32(d.pick(0.3, 0.5, 0.9))), d.const(np.float32(d.pick(0.0, 0.2, -1.0)))]
    if op == "NON_MAX_SUPPRESSION_V4":
        d.op(op, given, [d.output((most,), "int32"), d.output((), "int32")])
    else:
        d.op(op, [*given, d.const(np.float32(d.pick(0.0, 0.2, 0.7)))], [d.output((most,), "int32"), d.output((most,), "float32"), d.output((), "int32")])


def simple(d):
    op = d.pick("LOGICAL_NOT", "ADD_N", "BROADCAST_ARGS", "BITCAST", "FAKE_QUANT", "COMPLEX_ABS", "REAL", "IMAG", "RFFT2D", "DILATE", "REDUCE_WINDOW", "MUL")
    shape = d.shape(1, 4, 6)
    if op == "LOGICAL_NOT":
        d.op(op, [d.input(d.values(shape, "bool"))], [d.output(shape, "bool")])
    elif op == "ADD_N":
        dtype = d.pick("float32", "int32")
        d.op(op, [d.either(d.values(shape, dtype), 0.2) for _ in range(d.int(2, 5))], [d.output(shape, dtype)])
    elif op == "BROADCAST_ARGS":
        kind = d.pick(np.int32, np.int64)
        cut = lambda: np.array([1 if d.chance(0.4) else n for n in shape][d.int(0, len(shape)):] if d.chance(0.5) else shape, kind)
        a, b = cut(), cut()
        d.op(op, [d.either(a, 0.4), d.input(b)], [d.output((max(len(a), len(b)),), a.dtype.name)])
    elif op == "BITCAST":
        a, b = d.pick(("float32", "int32"), ("float32", "uint8"), ("int16", "int8"), ("int64", "float32"), ("uint8", "int32"), ("int8", "int16"), ("int32", "float32"), ("bool", "uint8"))
        wide, to = np.dtype(a).itemsize, np.dtype(b).itemsize
        shape = (*shape, to // wide) if to > wide else shape
        d.op(op, [d.input(d.values(shape, a))], [d.output((*shape, wide // to) if wide > to else shape[:-1] if to > wide else shape, b)])
    elif op == "FAKE_QUANT":
        low = float(np.float32(d.random.uniform(-3, 0.2)))
        d.op(op, [d.input(d.values(shape, "float32", -5, 5))], [d.output(shape, "float32")], min=low, max=low + d.pick(1.0, 4.3, 0.01), numBits=d.pick(2, 4, 8, 8, 16))
    elif op in ("COMPLEX_ABS", "REAL", "IMAG"):
        x = (d.values(shape, "float32") + 1j * d.values(shape, "float32")).astype(np.complex64)
        d.op(op, [d.input(x)], [d.output(shape, "float32")])
    elif op == "RFFT2D":
        h, w = 2 ** d.int(0, 4), 2 ** d.int(1, 4)  # docs/lite.md: lines of one number
        x = d.values((*d.shape(0, 2, 3), h + d.int(-1, 1) * d.int(0, 1) if h > 1 else h, w + d.int(0, 2)), "float32")
        d.op(op, [d.input(x), d.either(np.array([h, w], np.int32), 0.8)], [d.output((*x.shape[:-2], h, w // 2 + 1), "complex64")])
    elif op == "DILATE":
        dtype = d.pick("float32", "int32", "int64", "int16", "uint8", "bool")
        by = [d.int(1, 3) for _ in shape]
        d.op(op, [d.input(d.values(shape, dtype)), d.either(np.array(by, np.int32), 0.6), d.const(d.values((), dtype))], [d.output([(s - 1) * k + 1 for s, k in zip(shape, by)], dtype)])
    elif op == "REDUCE_WINDOW":
        dtype, kind = d.pick("float32", "int32", "int64", "int16", "uint8"), d.int(1, 4)
        size, steps, apart = [d.int(1, min(3, n)) for n in shape], [d.int(1, 2) for _ in shape], [d.int(1, 2) for _ in shape]
        out = [max(0, (n - ((k - 1) * a + 1)) // s + 1) for n, k, s, a in zip(shape, size, steps, apart)]
        d.op(op, [d.input(d.values(shape, dtype)), d.input(d.values((), dtype)), *(d.const(np.int64(v)) for v in (size, steps, apart))], [d.output(out, dtype)], reduceFunction=kind)
    else:
        x = (d.values(shape, "float32") + 1j * d.values(shape, "float32")).astype(np.complex64)
        d.op(op, [d.input(x), d.input(x[::-1].copy())], [d.output(shape, "complex64")])


HLO_TWO = ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "AND", "SHIFT_LEFT")


def stablehlo(d):
    """Those that LiteRT has kernels of."""
    op = d.pick(*HLO_TWO, "PAD", "PAD", "GATHER", "GATHER", "SCATTER", "SCATTER", "SCATTER")
    name, shape, dtype = f"STABLEHLO_{op}", d.shape(1, 4, 5), d.pick(*EVERY)
    if op in HLO_TWO:
        dtype = d.pick("bool", "int32", "int8", "int16", "int64") if op == "AND" else d.pick("int8", "int16", "int32") if op == "SHIFT_LEFT" else d.pick(*NUMBERS)
        x, y = d.values(shape, dtype), d.values(shape, dtype, 0.5, 3)
        if op == "SHIFT_LEFT":
            y = (np.abs(y) % 7).astype(dtype)
        d.op(name, [d.either(x, 0.1), d.either(y, 0.3)], [d.output(shape, dtype)])
    elif op == "PAD":
        inner = [d.int(0, 2) for _ in shape]
        low, high = [d.int(-1, 2) for _ in shape], [d.int(-1, 2) for _ in shape]
        out = [n + (n - 1) * i + a + b for n, i, a, b in zip(shape, inner, low, high)]
        low, out = [a if n > 0 else 2 for a, n in zip(low, out)], [n if n > 0 else n + 2 - a for a, n in zip(low, out)]
        high, out = [b if n > 0 else b + 3 for b, n in zip(high, out)], [n if n > 0 else n + 3 for n in out]
        d.op(name, [d.input(d.values(shape, dtype)), d.either(d.values((), dtype), 0.5)], [d.output(out, dtype)], edgePaddingLow=low, edgePaddingHigh=high, interiorPadding=inner)
    elif op == "GATHER":
        rows, many = d.values((d.int(1, 6), d.int(1, 4)), dtype), d.int(1, 5)
        at = d.random.integers(-2, 8, (many, 1)).astype(d.pick(np.int32, np.int64))
        d.op(name, [d.input(rows), d.input(at)], [d.output((many, rows.shape[1]), dtype)], offsetDims=[1], collapsedSliceDims=[0], startIndexMap=[0], indexVectorDim=1, sliceSizes=[1, rows.shape[1]])
    else:
        dtype, body = d.pick(*NUMBERS), d.pick(None, "ADD", "MULTIPLY", "MAXIMUM", "MINIMUM")
        rows, many = d.values((d.int(1, 6), d.int(1, 4)), dtype), d.int(1, 5)
        at = d.random.integers(-1, 7, (many, 1)).astype(d.pick(np.int32, np.int64))
        f = d.lite.sub()
        a, b = f.input([], dtype), f.input([], dtype)
        f.graph.outputs = [f.op(f"STABLEHLO_{body}", [a, b], [f.tensor([], dtype)])] if body else [b]
        d.op(name, [d.input(rows), d.input(at), d.input(d.values((many, rows.shape[1]), dtype))], [d.output(rows.shape, dtype)], updateWindowDims=[1], insertedWindowDims=[0],
             scatterDimsToOperandDims=[0], indexVectorDim=1, updateComputationSubgraphIndex=f.index)


MORE = {f.__name__: f for f in (volume, segments, tables, boxes, simple, stablehlo)}
