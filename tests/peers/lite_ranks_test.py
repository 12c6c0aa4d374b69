#!/usr/bin/env python3
"""Single ops of every rank, type and kind of broadcasting, exported by smelt: lite_ranks_test.py SMELT [SUBSTRING of names] [--list] [--all]

A graph of one op for each: ranks 0 to 8, operands that broadcast or do not, free sizes, empty tensors, NaN, infinities and negative zero. Every file that smelt
writes is to load, be prepared and answer as TensorFlow does, in LiteRT with and without XNNPACK, and in the interpreter of TensorFlow 2.21,
whose kernels take fewer dimensions and bring the process down beyond them. What smelt refuses is counted by op and reason (--list: with names).
Types beside float are tried at few ranks (--all: at most)."""
import collections
import concurrent.futures
import os
import pathlib
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from checks import call, check, finish
from lite_process import PLAIN_RUNNER, RUNNER, TENSORFLOW_RUNNER, litert_answers

words = [w for w in sys.argv[2:] if not w.startswith("--")]
only, listed, whole = words[0] if words else "", "--list" in sys.argv, "--all" in sys.argv
raw, random = tf.raw_ops, np.random.default_rng(17)
F, I, L, B, S, C = tf.float32, tf.int32, tf.int64, tf.bool, tf.string, tf.complex64
SIZES = (2, 3, 2, 1, 2, 3, 1, 2)
ALL = (F, I, L, B, tf.uint8, tf.int8, tf.int16, C, S, tf.half, tf.float64, tf.uint16, tf.uint32, tf.uint64)
CASES = []  # (name, function, values, shapes as the graph states them)


def draw(shape, t, low=-4):
    shape = tuple(shape)
    n = int(np.prod(shape))
    if t == S:
        return np.array([f"s{i % 5}".encode() for i in range(n)], object).reshape(shape)
    if t == B:
        return random.integers(0, 2, shape).astype(bool)
    if t.is_complex:
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(t.as_numpy_dtype)
    if t.is_integer:
        return np.asarray(random.integers(max(low, 0 if t.is_unsigned else low), 6, shape)).astype(t.as_numpy_dtype)
    return np.asarray(random.uniform(low, 4, shape)).astype(t.as_numpy_dtype)


def case(name, f, *values, shapes=None):
    # Python hands LiteRT the address of a text without dimensions.
    if only in name and not any(np.asarray(v).dtype == object and np.ndim(v) == 0 for v in values):
        CASES.append((name, f, [np.asarray(v) for v in values], shapes or [v.shape for v in map(np.asarray, values)]))


def with_free(name, f, *values):
    """As it is, and with free sizes: of the first dimension, of all."""
    case(name, f, *values)
    values = [np.asarray(v) for v in values]
    if any(v.ndim for v in values):
        case(f"{name} free first", f, *values, shapes=[(None,) * min(1, v.ndim) + v.shape[1:] for v in values])
        case(f"{name} free", f, *values, shapes=[(None,) * v.ndim for v in values])


def ranks_of(t, most=(F,)):
    return range(9) if t in most else (0, 1, 3, 4, 5, 6, 7) if whole else (1, 5, 7)


# ---- one element at a time
UNARY = {"Abs": (F, I, L), "Ceil": (F,), "Cos": (F,), "Elu": (F,), "Exp": (F,), "Floor": (F,), "Log": (F,), "LogicalNot": (B,), "Neg": (F, I, L), "Relu": (F, I, L, tf.uint8), "Relu6": (F,),
         "Rint": (F,), "Round": (F, I), "Rsqrt": (F,), "Sigmoid": (F,), "Sign": (F, I, L), "Sin": (F,), "Sqrt": (F,), "Square": (F, I, L), "Tanh": (F,), "ZerosLike": ALL, "OnesLike": ALL, "LeakyRelu": (F,), "Log1p": (F,),
         "Expm1": (F,), "Softplus": (F,), "Softsign": (F,), "Selu": (F,), "IsNan": (F,), "IsInf": (F,), "IsFinite": (F,), "Reciprocal": (F,), "Invert": (I, tf.int8, tf.int16, L, tf.uint8), "Atan": (F,), "Erf": (F,),
         "Tan": (F,), "Sinh": (F,), "Asinh": (F,), "Real": (C,), "Imag": (C,), "ComplexAbs": (C,), "Conj": (C,)}
ARGUMENT = {"LeakyRelu": "features", "Relu": "features", "Relu6": "features", "Elu": "features", "Selu": "features", "Softplus": "features", "Softsign": "features", "Real": "input", "Imag": "input", "Conj": "input"}
# Whose kernels give other numbers than TensorFlow's beside NaN and infinities: sums, products and quotients end at the largest float, ReLU and roundings keep signs of zeros or do not,
# MAXIMUM gives what is no NaN; the converter's decompositions of LOG1P and so on overflow earlier. A divisor of 0 is an error of FLOOR_DIV.
OTHERWISE = {"AddV2", "ApproximateEqual", "ArgMax", "ArgMin", "Asinh", "ClipByValue", "Div", "DivNoNan", "Erf", "EuclideanNorm", "Expm1", "FloorDiv", "Log1p", "Max", "Maximum", "Min", "Minimum", "Mul", "MulNoNan", "RealDiv",
             "RFFT2D", "Reciprocal", "Relu", "Relu6", "ResizeBilinear", "Rint", "Round", "Selu", "Sign", "Sinh", "Softmax", "Softplus", "Softsign", "Sub", "Xdivy", "Xlogy", "quantized", "relu_grad"}
# What LiteRT's kernels take since, and those of TensorFlow 2.21 do not.
SINCE = {f"{op} complex64" for op in ("MirrorPad", "SelectV2", "Slice", "StridedSlice", "Tile", "Transpose", "Unpack")}
special = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 2.5, -0.5, 3e38])
for op, types in UNARY.items():
    for t in types:
        for r in ranks_of(t):
            case(f"{op} {t.name} {r}", lambda x, op=op: getattr(raw, op)(**{ARGUMENT.get(op, "x"): x}), draw(SIZES[:r], t, 0.5 if op in ("Log", "Rsqrt", "Sqrt") else -4))
        with_free(f"{op} {t.name} empty", lambda x, op=op: getattr(raw, op)(**{ARGUMENT.get(op, "x"): x}), draw((2, 0, 3), t))
    if F in types:
        case(f"{op} special", lambda x, op=op: getattr(raw, op)(**{ARGUMENT.get(op, "x"): x}), special) if op not in OTHERWISE else None
for a in ALL:
    for b in ALL:
        if a != b and S not in (a, b) and not (a.is_complex and not b.is_complex):
            case(f"Cast {a.name} {b.name}", lambda x, b=b: tf.cast(x, b), draw((2, 3), a, 0))
    case(f"Cast {a.name} empty", lambda x: tf.cast(x, I), draw((0, 3), a)) if a not in (S, C) else None
for r in range(9):
    case(f"Cast float32 int32 {r}", lambda x: tf.cast(x, I), draw(SIZES[:r], F))
    case(f"Bitcast float32 int32 {r}", lambda x: tf.bitcast(x, I), draw(SIZES[:r], F))

# ---- two operands
ORDER = (F, I, L, tf.int16, tf.int8, tf.uint8)
BITS = (I, L, tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32)
BINARY = {"AddV2": (F, I, L, C, tf.int16, tf.half), "Sub": (F, I, L, C), "Mul": (F, I, L, C), "RealDiv": (F,), "Div": (F, I), "Maximum": ORDER, "Minimum": ORDER, "Equal": ORDER + (B, S), "NotEqual": ORDER + (B, S), "Less": ORDER,
          "LessEqual": ORDER, "Greater": ORDER, "GreaterEqual": ORDER, "FloorDiv": (F, I, L, tf.int8, tf.int16), "FloorMod": (F, I, L, tf.int8, tf.int16), "Pow": (F, I), "SquaredDifference": (F, I, L), "LogicalAnd": (B,),
          "LogicalOr": (B,), "BitwiseXor": BITS, "BitwiseAnd": BITS, "BitwiseOr": BITS, "RightShift": BITS, "LeftShift": (I,), "Atan2": (F,), "DivNoNan": (F,), "MulNoNan": (F,), "Xdivy": (F,), "Xlogy": (F,), "TruncateMod": (I, L), "TruncateDiv": (I,),
          "ApproximateEqual": (F,)}
FULL = {"AddV2", "Mul", "Maximum", "Equal", "FloorMod", "SquaredDifference"}
SAME_SHAPES = {"ApproximateEqual"}


def operands(r):
    """Kinds of broadcasting: shapes of two operands, of at most r dimensions."""
    s = SIZES[:r]
    yield "same", s, s
    if r == 0:
        return
    yield "number", s, ()
    if r > 1:
        yield "vector", s, s[-1:]
        yield "first", (2,) * r, (2,) + (1,) * (r - 1)
        yield "apart", tuple(2 if i % 2 == 0 else 1 for i in range(r)), tuple(1 if i % 2 == 0 else 3 for i in range(r))
        yield "middle", tuple(1 if 0 < i < r - 1 else 3 for i in range(r)), (2,) * (r - 2) + (1,)


for op, types in BINARY.items():
    for t in types:
        for r in ranks_of(t, (F, B)):
            for kind, a, b in operands(r):
                if (op in SAME_SHAPES and kind != "same") or (t != F and op not in FULL and kind in ("vector", "middle")):
                    continue
                low = 1 if op in ("Pow", "RightShift", "LeftShift") or ("Div" in op or "Mod" in op) and t != F else -4
                x, y = draw(a, t, low), draw(b, t, low)
                f = lambda x, y, op=op: getattr(raw, op)(x=x, y=y)
                (with_free if op in FULL and t == F and r in (2, 4, 5, 7) else case)(f"{op} {t.name} {r} {kind}", f, x, y)
                if kind in ("number", "vector") and t == F:
                    case(f"{op} {t.name} {r} {kind} swapped", f, y, x)
        case(f"{op} {t.name} empty", lambda x, y, op=op: getattr(raw, op)(x=x, y=y), draw((2, 0, 3), t, 1), draw((2, 0, 3), t, 1))
        if op not in SAME_SHAPES:
            case(f"{op} {t.name} empty broadcast", lambda x, y, op=op: getattr(raw, op)(x=x, y=y), draw((2, 0, 3), t, 1), draw((3,), t, 1))
            case(f"{op} {t.name} empty 6", lambda x, y, op=op: getattr(raw, op)(x=x, y=y), draw((2, 0, 3, 2, 1, 2), t, 1), draw((2, 1, 3, 1, 2, 1), t, 1))
    if F in types:
        x, y = np.meshgrid(special, special)
        case(f"{op} special", lambda x, y, op=op: getattr(raw, op)(x=x, y=y), x, y) if op not in OTHERWISE else None
for t in (F, I, L, B, tf.int8, tf.uint8, tf.int16, C, S, tf.uint32):
    for r in ranks_of(t, (F, I)):
        for kind, a, b in operands(r):
            with_free_or_not = with_free if t == F and r in (2, 5) else case
            with_free_or_not(f"SelectV2 {t.name} {r} {kind}", lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), draw(b, B), draw(a, t), draw(a, t))
            case(f"SelectV2 {t.name} {r} {kind} value", lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), draw(a, B), draw(a, t), draw(b, t))
        case(f"Select {t.name} {r}", lambda c, x, y: raw.Select(condition=c, t=x, e=y), draw(SIZES[:r], B), draw(SIZES[:r], t), draw(SIZES[:r], t))
        if r > 1:
            case(f"Select {t.name} {r} rows", lambda c, x, y: raw.Select(condition=c, t=x, e=y), draw(SIZES[:1], B), draw(SIZES[:r], t), draw(SIZES[:r], t))
            case(f"Select {t.name} {r} scalar", lambda c, x, y: raw.Select(condition=c, t=x, e=y), draw((), B), draw(SIZES[:r], t), draw(SIZES[:r], t))
for t in (F, I, L):
    for r in (0, 3, 6, 8):
        case(f"AddN {t.name} {r}", lambda x, y, z: tf.add_n([x, y, z]), *[draw(SIZES[:r], t) for _ in range(3)])
        case(f"ClipByValue {t.name} {r}", lambda x: raw.ClipByValue(t=x, clip_value_min=tf.constant(-1, x.dtype), clip_value_max=tf.constant(2, x.dtype)), draw(SIZES[:r], t))
for r in range(1, 9):
    case(f"BiasAdd {r}", lambda x, b: raw.BiasAdd(value=x, bias=b), draw(SIZES[:r], F), draw(SIZES[r - 1:r], F)) if r > 1 else None
    if r > 2:
        case(f"BiasAdd {r} second", lambda x, r=r: raw.BiasAdd(value=x, bias=tf.constant(np.float32([1, 2, 3])), data_format="NCHW"), draw((2, 3) + SIZES[2:r], F))

# ---- elements that move
MOVED = (F, I, L, B, tf.uint8, tf.int8, tf.int16, C, S, tf.half, tf.uint32, tf.float64, tf.uint16, tf.uint64)
for t in MOVED:
    for r in ranks_of(t, (F, I)):
        s = tuple(2 + i % 2 for i in range(r)) if r < 8 else (2,) * 8
        x = draw(s, t)
        name = f"{t.name} {r}"
        add = with_free if t == F and r in (3, 5, 7) else case
        add(f"Reshape {name}", lambda x: tf.reshape(x, [-1]), x)
        add(f"ExpandDims {name}", lambda x: tf.expand_dims(x, 0), x)
        add(f"Pack {name}", lambda x, y: tf.stack([x, y], -1), x, x)
        if r == 0:
            case(f"Fill {name}", lambda x: tf.fill([2, 3], x), x)
            for k in range(9):
                case(f"Fill {name} {k}", lambda x, k=k: tf.fill(SIZES[:k], x), x)
            continue
        add(f"Pack {name} first", lambda x, y: tf.stack([x, y], 0), x, x)
        add(f"Unpack {name}", lambda x, r=r: tf.unstack(x, axis=r - 1)[1], x)
        add(f"Squeeze {name}", lambda x: tf.squeeze(x, [0]), x[:1])
        add(f"Concat {name}", lambda x, y: tf.concat([x, y, x], -1), x, x)
        add(f"Split {name}", lambda x: tf.split(x, 2, 0)[1], x)
        add(f"SplitV {name}", lambda x: tf.split(x, [1, -1], -1)[1], x)
        add(f"Tile {name}", lambda x, r=r: tf.tile(x, [2] + [1] * (r - 1)), x)
        add(f"Tile {name} last", lambda x, r=r: tf.tile(x, [1] * (r - 1) + [2]), x)
        add(f"Transpose {name} turned", lambda x, r=r: tf.transpose(x, list(range(r))[::-1]), x)
        add(f"Transpose {name} swapped", lambda x, r=r: tf.transpose(x, [*range(r - 2), r - 1, r - 2] if r > 1 else [0]), x)
        add(f"Transpose {name} mixed", lambda x, r=r: tf.transpose(x, [*range(1, r, 2), *range(0, r, 2)]), x)
        add(f"Slice {name}", lambda x, r=r: tf.slice(x, [1] * r, [-1] * r), x)
        add(f"Slice {name} last", lambda x, r=r: tf.slice(x, [0] * (r - 1) + [1], [-1] * r), x)
        add(f"StridedSlice {name}", lambda x, r=r: tf.strided_slice(x, [1] * r, [2] * r), x)
        add(f"StridedSlice {name} back", lambda x: x[..., ::-1], x)
        add(f"StridedSlice {name} shrink", lambda x: x[1], x)
        add(f"StridedSlice {name} shrink last", lambda x: x[..., 1], x)
        if r < 7:
            add(f"StridedSlice {name} new", lambda x: x[:, None, ..., None] if x.shape.rank != 1 else x[:, None], x)
        if r > 1:
            add(f"StridedSlice {name} both", lambda x: x[1, ..., ::2], x)
        add(f"Pad {name}", lambda x, r=r: tf.pad(x, [[1, i % 2] for i in range(r)]), x)
        add(f"Pad {name} last", lambda x, r=r: tf.pad(x, [[0, 0]] * (r - 1) + [[1, 2]]), x)
        if t not in (B, S, C):
            add(f"PadV2 {name}", lambda x, r=r: tf.pad(x, [[1, i % 2] for i in range(r)], constant_values=tf.constant(7, x.dtype)), x)
        add(f"MirrorPad {name}", lambda x, r=r: tf.pad(x, [[1, i % 2] for i in range(r)], "REFLECT"), x)
        add(f"MirrorPad {name} last", lambda x, r=r: tf.pad(x, [[0, 0]] * (r - 1) + [[1, 1]], "SYMMETRIC"), x)
        add(f"ReverseV2 {name}", lambda x: tf.reverse(x, [-1]), x)
        add(f"ReverseV2 {name} apart", lambda x, r=r: tf.reverse(x, list(range(0, r, 2))), x)
        add(f"ReverseV2 {name} all", lambda x, r=r: tf.reverse(x, list(range(r))), x)
        add(f"Gather {name}", lambda x, i: tf.gather(x, i), x, np.int32([1, 0, 1]))
        add(f"Gather {name} last", lambda x, i: tf.gather(x, i, axis=-1), x, np.int32([[1, 0], [1, 1]]))
        if r > 1:
            add(f"Gather {name} batch", lambda x, i: tf.gather(x, i, batch_dims=1, axis=-1), x, np.int32([[1, 0], [1, 1]]))
        add(f"GatherNd {name}", lambda x, i: tf.gather_nd(x, i), x, np.int32([[1], [0]]))
        add(f"GatherNd {name} all", lambda x, i: tf.gather_nd(x, i), x, np.int32([[1] * r, [0] * r]))
        add(f"BroadcastTo {name}", lambda x, r=r: tf.broadcast_to(x, x.shape if r > 7 or not x.shape.is_fully_defined() else (2, *x.shape)), x)
        add(f"BroadcastTo {name} ones", lambda x, s=s: tf.broadcast_to(x, s), x[:1])
        add(f"BroadcastTo {name} apart", lambda x, s=s: tf.broadcast_to(x, s), draw([1 if i % 2 else d for i, d in enumerate(s)], t))
        add(f"ReverseSequence {name}", lambda x, n: tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0), x, np.int32([1, 2][:s[0]])) if r > 1 else None
        add(f"ScatterNd {name}", lambda i, u, s=s: tf.scatter_nd(i, u, [4, *s[1:]]), np.int32([[3], [1]]), x[:2]) if t != S else None
        add(f"Identity shape {name}", lambda x: tf.shape(x), x)
        add(f"Rank {name}", lambda x: tf.rank(x), x)
        add(f"Size {name}", lambda x: tf.size(x), x)
        if t not in (C, S):
            add(f"Where {name}", lambda x: tf.where(x), x)
        add(f"Roll {name}", lambda x: tf.roll(x, 1, 0), x)
        if r > 1:
            add(f"MatrixDiag {name}", lambda x: raw.MatrixDiag(diagonal=x), x) if r < 8 else None
            add(f"MatrixDiagPart {name}", lambda x: raw.MatrixDiagPart(input=x), x)
            add(f"MatrixSetDiag {name}", lambda x, d: raw.MatrixSetDiag(input=x, diagonal=d), x, draw(s[:-2] + (min(s[-2:]),), t))
            add(f"MatrixBandPart {name}", lambda x: tf.linalg.band_part(x, 0, -1), x)
        for d in range(2):
            case(f"empty {t.name} {r} {d}", lambda x, r=r: {"transpose": tf.transpose(x, list(range(r))[::-1]), "concat": tf.concat([x, x], 0), "tile": tf.tile(x, [2] * r), "pad": tf.pad(x, [[1, 1]] * r), "pack": tf.stack([x, x])},
                 draw([0 if i % 2 == d else v for i, v in enumerate(s)], t))
    for v in (0, 7):
        if t not in (B, S, C):
            diag = lambda x, v=v, n="MatrixDiagV3": getattr(raw, n)(diagonal=x, k=0, num_rows=-1, num_cols=-1, padding_value=tf.constant(v, x.dtype))
            for n in "MatrixDiagV2", "MatrixDiagV3":
                case(f"{n} {t.name} padded by {v}", lambda x, n=n: diag(x, n=n), draw((2, 3), t, 1))
for t in (F, I, L, B, tf.half):
    case(f"Diag {t.name}", lambda x: raw.Diag(diagonal=x), draw((3,), t))
for r in (4, 5, 6):
    for op in ("Equal", "SquaredDifference", "Atan2"):
        case(f"{op} float32 {r} of one", lambda x, op=op: getattr(raw, op)(x=tf.nn.relu(x), y=tf.abs(x)), draw(SIZES[:r], F), shapes=[(None,) * r])
for n in ("space_to_batch", "batch_to_space"):
    for t in (F, I, L, tf.int8, tf.uint8, B, tf.int16):
        for r in range(2, 7):
            for k in range(1, r):
                name = f"{n} {t.name} {r} {k}"
                if n == "space_to_batch":
                    case(name, lambda x, k=k: tf.space_to_batch(x, [2] * k, [[0, 0], [2, 0], [1, 1], [0, 2], [0, 0]][:k]), draw((1,) + (4,) * k + (2,) * (r - 1 - k), t))
                else:
                    case(name, lambda x, k=k: tf.batch_to_space(x, [2] * k, [[0, 0], [1, 0], [0, 1], [1, 1], [0, 0]][:k]), draw((2 ** k,) + (2,) * k + (2,) * (r - 1 - k), t))
for t in (F, I, L, tf.int8, tf.uint8, B, tf.int16, S):
    case(f"SpaceToDepth {t.name}", lambda x: tf.nn.space_to_depth(x, 2), draw((1, 4, 4, 2), t))
    case(f"DepthToSpace {t.name}", lambda x: tf.nn.depth_to_space(x, 2), draw((1, 2, 2, 8), t))
    for r, at in ((0, np.int32(3)), (1, np.int32([1, 3])), (2, np.int32([[0, 1], [2, 3]])), (3, np.int32([[0, 1, 1], [2, 3, 0]])), (4, np.int32([[0, 1, 1, 2]])), (5, np.int32([[0, 1, 1, 2, 1], [2, 0, 0, 0, 1]]))):
        shape = {0: [5], 1: [6], 2: [3, 4], 3: [3, 4, 2], 4: [3, 4, 2, 3], 5: [3, 4, 2, 3, 2]}[r]
        values = draw(at.shape[:1], t)
        f = lambda i, v, shape=shape: raw.SparseToDense(sparse_indices=i, output_shape=shape, sparse_values=v, default_value=tf.constant(draw((), v.dtype)[()] if v.dtype != S else b"d", v.dtype))
        case(f"SparseToDense {t.name} {r}", lambda i, v, shape=shape: raw.SparseToDense(sparse_indices=i, output_shape=shape, sparse_values=v, default_value=tf.constant({B: True, S: "d"}.get(v.dtype, 1), v.dtype)), at, values)
        if r:
            case(f"SparseToDense {t.name} {r} one value", lambda i, v, shape=shape: raw.SparseToDense(sparse_indices=i, output_shape=shape, sparse_values=v, default_value=tf.constant({B: True, S: "d"}.get(v.dtype, 1), v.dtype)), at, draw((), t))
            case(f"SparseToDense {t.name} {r} long", lambda i, v, shape=shape: raw.SparseToDense(sparse_indices=i, output_shape=tf.constant(shape, L), sparse_values=v, default_value=tf.constant({B: True, S: "d"}.get(v.dtype, 1), v.dtype)), at.astype(np.int64), values)

# ---- dimensions that go
for op, types in {"Sum": (F, I, L), "Mean": (F, I, L), "Prod": (F, I, L), "Max": (F, I, L, tf.int8, tf.uint8, tf.int16), "Min": (F, I, L, tf.int8, tf.uint8, tf.int16), "Any": (B,), "All": (B,), "EuclideanNorm": (F,)}.items():
    for t in types:
        for r in ranks_of(t, (F, B)):
            x = draw((2, 3, 2, 2, 3, 2, 2, 2)[:r], t, 1)
            for kind, axes in {"first": [0], "last": [-1], "apart": list(range(0, r, 2)), "all": list(range(r)), "none": []}.items():
                if r == 0 and kind != "none":
                    continue
                (with_free if t == F and op == "Sum" and r in (3, 5, 7) else case)(f"{op} {t.name} {r} {kind}", lambda x, op=op, axes=axes: getattr(raw, op)(input=x, axis=tf.constant(axes, I)), x)
            if r:
                case(f"{op} {t.name} {r} kept", lambda x, op=op: getattr(raw, op)(input=x, axis=[0], keep_dims=True), x)
        case(f"{op} {t.name} empty", lambda x, op=op: getattr(raw, op)(input=x, axis=[1]), draw((2, 0, 3), t)) if op not in OTHERWISE or t != F else None
        case(f"{op} {t.name} of empty", lambda x, op=op: getattr(raw, op)(input=x, axis=[0]), draw((2, 0, 3), t))
    if F in types and op not in OTHERWISE:
        case(f"{op} special", lambda x, op=op: getattr(raw, op)(input=x, axis=[1]), np.stack([special[i:i + 3] for i in range(8)]))
for op in ("ArgMax", "ArgMin"):
    for t in (F, I, L, tf.int8, tf.uint8, B, tf.int16):
        for r in (range(1, 9) if t == F else (1, 3, 5)):
            for axis in {0, r - 1}:
                case(f"{op} {t.name} {r} {axis}", lambda x, op=op, axis=axis: getattr(raw, op)(input=x, dimension=axis), draw((2, 3, 2, 2, 3, 2, 2, 2)[:r], t))
    case(f"{op} empty", lambda x, op=op: getattr(raw, op)(input=x, dimension=1), draw((0, 3), F))
for op in ("Softmax", "LogSoftmax"):
    for r in range(1, 9):
        case(f"{op} {r}", lambda x, op=op: getattr(raw, op)(logits=x), draw(SIZES[:r], F))
    case(f"{op} empty", lambda x, op=op: getattr(raw, op)(logits=x), draw((0, 3), F))
for r in range(1, 6):
    case(f"l2_normalize {r}", lambda x: tf.nn.l2_normalize(x, -1), draw(SIZES[:r], F))
    case(f"moments {r}", lambda x, r=r: dict(zip("ab", tf.nn.moments(x, list(range(1, r)), keepdims=True))), draw((2,) * r, F))
for t in (F, I, L):
    for r in range(1, 9):
        for axis in {0, r - 1}:
            case(f"Cumsum {t.name} {r} {axis}", lambda x, axis=axis: tf.cumsum(x, axis, exclusive=True), draw(SIZES[:r], t))
    case(f"Cumsum {t.name} empty", lambda x: tf.cumsum(x, 0, reverse=True), draw((0, 3), t))
for t in (F, I, L, tf.int8, tf.uint8, tf.int16):
    for r in range(1, 7):
        case(f"TopKV2 {t.name} {r}", lambda x: dict(zip("ab", tf.math.top_k(x, 2))), draw((3,) * (r - 1) + (5,), t))
    for k in (tf.int16, tf.int32, tf.int64):
        case(f"TopKV2 {t.name} k {k.name}", lambda x, k=k: dict(zip("ab", raw.TopKV2(input=x, k=tf.constant(2, k)))), draw((3, 5), t))
    case(f"TopKV2 {t.name} k none", lambda x: dict(zip("ab", raw.TopKV2(input=x, k=0))), draw((3, 5), t))
    case(f"Unique {t.name}", lambda x: dict(zip("ab", tf.unique(x))), draw((7,), t))
for t in (I, L, tf.uint8):
    for on in (F, I, B, L, tf.int8, tf.uint8, tf.int16):
        case(f"OneHot {t.name} {on.name}", lambda x, on=on: tf.one_hot(x, 4, tf.constant(1, on) if on != B else True, tf.constant(0, on) if on != B else False), draw((3,), t, 0))
    for r in range(8):
        for axis in {-1, 0, r}:
            case(f"OneHot {t.name} {r} {axis}", lambda x, axis=axis: tf.one_hot(x, 4, axis=axis), draw(SIZES[:r], t, -1))
    case(f"OneHot {t.name} empty", lambda x: tf.one_hot(x, 4), draw((0, 3), t))
for t in (F, I, L):
    case(f"Range {t.name}", lambda a, b: tf.range(a, b, tf.constant(2, a.dtype)), np.array(1, t.as_numpy_dtype), np.array(8, t.as_numpy_dtype))
for t in (F, I, L, tf.int8, tf.int16):
    for r in range(1, 6):
        x, ids = draw((4,) + SIZES[1:r], t), np.int32([0, 0, 1, 2])
        case(f"SegmentSum {t.name} {r}", lambda x, i: tf.math.segment_sum(x, i), x, ids)
        for op in ("Sum", "Prod", "Max", "Min"):
            case(f"UnsortedSegment{op} {t.name} {r}", lambda x, i, op=op: getattr(raw, "UnsortedSegment" + op)(data=x, segment_ids=i, num_segments=4), x, np.int32([2, 0, 2, 1]))
            case(f"UnsortedSegment{op} {t.name} {r} negative", lambda x, i, op=op: getattr(raw, "UnsortedSegment" + op)(data=x, segment_ids=i, num_segments=4), x, np.int32([2, -1, 2, 1])) if r == 2 else None
            if r > 1:
                case(f"UnsortedSegment{op} {t.name} {r} ids of two", lambda x, i, op=op: getattr(raw, "UnsortedSegment" + op)(data=x, segment_ids=i, num_segments=4), x, random.integers(0, 4, x.shape[:2]).astype(np.int32))
for t in (F, I, L):
    for op in ("TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"):
        for r in (1, 3, 5, 7):
            case(f"{op} {t.name} {r}", lambda x, u, op=op: getattr(raw, op)(tensor=x, indices=[[1], [0]], updates=u), draw((3,) + SIZES[1:r], t), draw((2,) + SIZES[1:r], t))
for t in (I, L):
    case(f"BroadcastArgs {t.name}", lambda a, b: raw.BroadcastArgs(s0=a, s1=b), np.array([2, 1, 4], t.as_numpy_dtype), np.array([3, 1], t.as_numpy_dtype))
for t in (F, I, L, tf.float64):
    for r in range(0, 6):
        case(f"Bucketize {t.name} {r}", lambda x: raw.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]), draw(SIZES[:r], t))
for r in range(2, 9):
    for t in (F, I):
        x, y = draw((2,) * (r - 2) + (3, 4), t), draw((2,) * (r - 2) + (4, 2), t)
        (with_free if r in (3, 6) and t == F else case)(f"BatchMatMul {t.name} {r}", lambda x, y: tf.matmul(x, y), x, y)
        case(f"BatchMatMul {t.name} {r} constant", lambda x: tf.matmul(x, tf.constant(np.arange(8).reshape(4, 2), x.dtype)), x)
        case(f"BatchMatMul {t.name} {r} broadcast", lambda x, y: tf.matmul(x, y), draw(tuple(1 + i % 2 for i in range(r - 2)) + (3, 4), t), draw(tuple(2 - i % 2 for i in range(r - 2)) + (4, 2), t))
    case(f"BatchMatMul {r} adjoint", lambda x, y: tf.matmul(x, y, transpose_a=True, transpose_b=True), draw((2,) * (r - 2) + (4, 3), F), draw((2,) * (r - 2) + (2, 4), F))

# ---- what is several operators, or one of several
for n, f in {"acosh": tf.acosh, "acos": tf.acos, "asin": tf.asin, "atanh": tf.atanh, "cosh": tf.cosh, "digamma": tf.math.digamma, "erfc": tf.math.erfc, "erfinv": tf.math.erfinv, "lgamma": tf.math.lgamma,
             "gelu": tf.nn.gelu, "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True), "hard_swish": lambda x: x * tf.nn.relu6(x + 3) * 0.16666667, "swish": tf.nn.silu, "relu_n1": lambda x: tf.minimum(tf.maximum(x, -1.0), 1.0),
             "relu_0_to_1": lambda x: tf.minimum(tf.maximum(x, 0.0), 1.0), "prelu": lambda x: tf.nn.relu(x) - 0.25 * tf.nn.relu(-x), "fake_quant": lambda x: tf.quantization.fake_quant_with_min_max_args(x, -2, 2),
             "softmax_by_hand": lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, keepdims=True), "squares": lambda x: tf.square(x - 0.5), "not_equal": lambda x: tf.logical_not(tf.equal(x, tf.reverse(x, [0]))),
             "l2_loss": tf.nn.l2_loss, "cumprod": lambda x: tf.math.cumprod(x, 0), "relu_grad": lambda x: raw.ReluGrad(gradients=x, features=x), "softplus_grad": lambda x: raw.SoftplusGrad(gradients=x, features=x),
             "elu_grad": lambda x: raw.EluGrad(gradients=x, outputs=x), "tanh_grad": lambda x: raw.TanhGrad(y=x, dy=x), "rsqrt_grad": lambda x: raw.RsqrtGrad(y=x, dy=x), "quantized": lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 2.0, range_given=True)}.items():
    for r in (0, 1, 4, 5, 6, 7, 8):
        if r or n not in ("softmax_by_hand", "not_equal", "cumprod"):
            add = with_free if r in (5, 7) and n in ("gelu", "hard_swish", "erfc") else case
            add(f"{n} {r}", lambda x, f=f: f(x), 0.5 + draw(SIZES[:r], F, 0.5) if n in ("acosh", "digamma", "lgamma", "rsqrt_grad") else draw(SIZES[:r], F) / 5)
for r in range(3, 8):
    channels = (1,) * (r - 2) + (2, 1)
    x, mean, scale = draw((2,) + (3,) * (r - 3) + (2, 3), F), draw((2,) + channels[1:], F), draw(channels, F)
    (with_free if r in (5, 6) else case)(f"group_norm {r}", lambda x, m, s: (x - m) * tf.math.rsqrt(tf.reduce_mean(tf.math.squared_difference(x, m), [*range(1, x.shape.rank - 2), x.shape.rank - 1], keepdims=True) + 1e-3) * s, x, mean, scale)
    case(f"attention {r}", lambda q, k: tf.nn.softmax(tf.where(tf.equal(tf.reduce_sum(q, -1)[..., None], 0.0), -1e9, tf.matmul(q, k, transpose_b=True))), draw((2,) * (r - 2) + (3, 4), F), draw((2,) * (r - 2) + (3, 4), F))
    case(f"windows {r}", lambda x: tf.transpose(tf.reshape(x, [2, 2, 2, 2, 2, -1]), [0, 1, 3, 2, 4, 5]), draw((4, 4) + (2,) * (r - 2), F))
for equation, a, b in (("abcde,de->abc", (2, 3, 2, 3, 4), (3, 4)), ("abcdef,cf->abdec", (2, 1, 3, 2, 2, 4), (3, 4)), ("abcdefg,abcdgh->abcdefh", (2, 1, 2, 3, 2, 2, 4), (2, 1, 2, 3, 4, 2)), ("abcdef->fdb", (2, 3, 2, 2, 2, 3), None)):
    case(f"einsum {equation}", lambda *x, e=equation: tf.einsum(e, *x), *[draw(s, F) for s in (a, b) if s])
for r in range(2, 6):
    for n, f in {"abs": tf.abs, "real": tf.math.real, "imag": tf.math.imag}.items():
        case(f"RFFT2D {r} {n}", lambda x, f=f: f(tf.signal.rfft2d(x)), draw((2,) * (r - 2) + (4, 8), F))
for t in (F, I, L, tf.int8, tf.uint8, tf.int16, tf.half):
    x = draw((1, 4, 4, 2), t)
    for align, half in ((False, False), (True, False), (False, True)):
        for n in "Bilinear", "NearestNeighbor":
            case(f"Resize{n} {t.name} {align} {half}", lambda x, n=n, a=align, h=half: getattr(raw, "Resize" + n)(images=x, size=[7, 5], align_corners=a, half_pixel_centers=h), x)
    for n in ("MaxPool", "AvgPool"):
        case(f"{n} {t.name}", lambda x, n=n: getattr(raw, n)(**{"input" if n == "MaxPool" else "value": x}, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), x)
    case(f"DynamicStitch {t.name}", lambda x, y: tf.dynamic_stitch([[0, 3], [1, 2]], [x, y]), draw((2, 3), t), draw((2, 3), t))
    case(f"DynamicPartition {t.name}", lambda x, p: dict(zip("ab", tf.dynamic_partition(x, p, 2))), draw((4, 2), t), np.int32([1, 0, 1, 0]))
    case(f"Where of {t.name}", lambda x: tf.where(x != tf.constant(0, x.dtype)), draw((2, 3), t))
for r in range(1, 7):
    case(f"embedding {r}", lambda i: tf.gather(tf.constant(np.arange(12).reshape(6, 2), F), i), draw(SIZES[:r], I, 0))
    case(f"branch {r}", lambda c, x: tf.compat.v1.cond(c, lambda: x * 2, lambda: x - 1), np.array(True), draw(SIZES[:r], F))
    case(f"loop {r}", lambda x: tf.compat.v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 0.5 + x), (0, x))[1], draw(SIZES[:r], F))


def same(got, want, signs=True):
    """Why the outputs are not those; empty: they are. Zeros have their sign where ops move or choose."""
    if isinstance(got, str):
        return got
    for k, w in want.items():
        g = got.get(k)
        if g is None or g.shape != w.shape:
            return f"{k}: shape {None if g is None else g.shape}, wanted {w.shape}"
        if w.dtype.kind == "O":
            if [x if isinstance(x, bytes) else str(x).encode() for x in g.ravel()] != list(w.ravel()):
                return f"{k}: {g.ravel()[:8]}, wanted {w.ravel()[:8]}"
            continue
        if g.dtype != w.dtype:
            return f"{k}: type {g.dtype}, wanted {w.dtype}"
        if w.dtype.kind in "fc":
            finite = np.isfinite(w)
            if not np.array_equal(g[~finite], w[~finite], equal_nan=True) or not np.isfinite(g[finite]).all():
                return f"{k}: {g.ravel()[:12]}, wanted {w.ravel()[:12]}"
            near = np.isclose(g[finite], w[finite], 2e-3 if w.dtype == np.float16 else 1e-5, 1e-6)
            if not near.all():
                return f"{k}: {(~near).sum()} of {w.size}: {g[finite][~near][:6]}, wanted {w[finite][~near][:6]}"
            if signs and w.dtype.kind == "f" and (np.signbit(g) != np.signbit(w))[w == 0].any():
                return f"{k}: signs of zeros: {g.ravel()[:12]}, wanted {w.ravel()[:12]}"
        elif not np.array_equal(g, w):
            return f"{k}: {(g != w).sum()} of {w.size} differ: {g.ravel()[:8]}, wanted {w.ravel()[:8]}"
    return ""


def made(function, values, shapes):
    """(graph, outputs by name as TensorFlow computes them)"""
    with tf.Graph().as_default() as graph:
        given = [tf.compat.v1.placeholder(tf.as_dtype(v.dtype) if v.dtype != object else S, s, name=f"x{i}") for i, (v, s) in enumerate(zip(values, shapes))]
        out = function(*given)
        out = out if isinstance(out, dict) else {"y": out}
        out = {f"out_{k}": tf.identity(v, name=f"out_{k}") for k, v in out.items()}
        with tf.compat.v1.Session() as session:
            want = session.run(out, dict(zip(given, values)))
        return graph.as_graph_def().SerializeToString(), {k: np.asarray(want[k], object if v.dtype == S else None) for k, v in out.items()}


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_ranks_"))
    jobs, refused, unmade = [], collections.defaultdict(list), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = []
        for number, (name, function, values, shapes) in enumerate(CASES):
            try:
                graph, want = made(function, values, shapes)
            except (tf.errors.OpError, AttributeError, TypeError, ValueError, NotImplementedError, IndexError) as e:
                unmade.append(f"{name}: {str(e).splitlines()[0][:150]}")
                continue
            path = work / f"{number}.pb"
            path.write_bytes(graph)
            arrays = ",".join(f"x{i}" for i in range(len(values)))
            waiting.append((name, path, values, want, pool.submit(call, "lite", "--graph_def", path, path.with_suffix(".tflite"), "--input_arrays", arrays, "--output_arrays", ",".join(want))))
        for name, path, values, want, future in waiting:
            code, text = future.result()
            if code == 0:
                jobs.append((name, path.with_suffix(".tflite"), {f"x{i}": v for i, v in enumerate(values)}, want))
            elif "UNIMPLEMENTED" in text:
                refused[text.strip().splitlines()[-1][:200] if "WHY" not in text else text[text.index("WHY") + 3:].strip().splitlines()[0]].append(name)
            else:
                check(name, False, text[-400:])
    # XNNPACK, which LiteRT takes where it can, answers what is not finite in its own way.
    who = {"XNNPACK": (RUNNER, [j for j in jobs if "special" not in j[0]]), "LiteRT": (PLAIN_RUNNER, jobs),
           "TensorFlow": (TENSORFLOW_RUNNER, [j for j in jobs if " ".join(j[0].split()[:2]) not in SINCE])}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda w: litert_answers([(path, [("serving_default", inputs)]) for _, path, inputs, _ in w[1]], limit=1800, runner=w[0]), who.values())
        for (name, (_, asked)), answers in zip(who.items(), said):
            for (op, _, _, want), answer in zip(asked, answers):
                check(f"{op}: {name}", not (why := same(answer[0], want, op.split()[0] not in OTHERWISE)), why)
    for why, names in sorted(refused.items(), key=lambda r: -len(r[1])):
        print(f"refused {len(names)}: {why}: {'; '.join(names if listed else names[:3])}")
    for line in unmade:
        print("not made:", line) if listed else None
    print(f"{len(CASES)} graphs: {len(jobs)} exported, {sum(map(len, refused.values()))} refused, {len(unmade)} that TensorFlow has no kernel for")
    check("most are exported", bool(only) or len(jobs) > 5000, len(jobs))
    finish()


if __name__ == "__main__":
    main()
