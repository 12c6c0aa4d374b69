"""Builtin operators one at a time in every type that a tensor may have, as bench/lite_many.py runs them: `write(folder)` makes NAME.tflite, and NAME.npz where inputs must be of a kind.

What LiteRT itself refuses is no matter: the matrix is all of them."""
import zlib

import numpy as np

from lite_builder import Lite

QUANTIZED = ["int8", "uint8", "int16"]
PLAIN = ["float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool", "complex64"]
KINDS = [(t, False) for t in PLAIN] + [(t, True) for t in QUANTIZED]


# Operators on real numbers, of which plain integers of 8 and 16 bits are none: LiteRT runs some with a scale of 0.
REAL = {"AVERAGE_POOL_2D", "BATCH_MATMUL", "DIV", "EXP", "GELU", "L2_NORMALIZATION", "LEAKY_RELU", "LOG", "LOG_SOFTMAX", "LOGISTIC", "MEAN", "MUL", "PRELU", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RESIZE_BILINEAR",
        "RSQRT", "SOFTMAX", "SQRT", "SUM", "TANH", "ELU", "HARD_SWISH"}


# LiteRT's resolver has no second version of these, and of DIV no third.
ONE_VERSION = {"ATAN2", "BITWISE_XOR", "CEIL", "COMPLEX_ABS", "ELU", "FLOOR", "HARD_SWISH", "IMAG", "L2_POOL_2D", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "NEG", "POW", "REAL", "REDUCE_ALL", "REDUCE_ANY", "RELU_0_TO_1",
               "RELU_N1_TO_1", "RIGHT_SHIFT", "ROUND", "SQUARE", "ZEROS_LIKE"}


class Maker:
    def __init__(self, folder):
        self.folder = folder

    def rng(self, name):
        return np.random.default_rng(zlib.crc32(name.encode()))

    def scale(self, rng, dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return dict(scale=float(rng.uniform(0.01, 0.1)) / (256 if dtype == "int16" else 1), zero=0 if dtype == "int16" else int(rng.integers(low // 2, high // 2)))

    def values(self, rng, shape, dtype, quantized, positive=False):
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype == "complex64":
            return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        if dtype.startswith("float"):
            return (np.abs(rng.standard_normal(shape)) + 0.1 if positive else rng.standard_normal(shape)).astype(dtype)
        info = np.iinfo(dtype)
        if quantized:
            return rng.integers(info.min, info.max + 1, shape).astype(dtype)
        return rng.integers(1 if positive else max(info.min, -9), 10, shape).astype(dtype)

    def save(self, name, m, outputs, inputs):
        self.folder.joinpath(f"{name}.tflite").write_bytes(m.bytes(outputs))
        np.savez(self.folder / f"{name}.npz", **{f"x{i}": v for i, v in enumerate(inputs)})

    def operator(self, name, op, shapes, out_shape, kind, options=None, version=1, same=False, out=None, extra=(), first=(), positive=(), q_out=None, outputs=1, types=None, scales=None, **fields):
        """`extra`, `first`: constants behind and before the inputs; `out`: the output's type where it is not the inputs'; `types`: plain types of some inputs."""
        dtype, quantized = kind
        if op in REAL and not quantized and dtype in QUANTIZED:
            return
        name = f"{name}_{dtype}{'_q' if quantized else ''}"
        rng = self.rng(name)
        m = Lite()
        common = self.scale(rng, dtype) if quantized else {}
        how = lambda i=None: {} if not quantized else common if same else scales[i] if scales and i is not None else self.scale(rng, dtype)
        ins, values = [], []
        for i, s in enumerate(shapes):
            plain = types[i] if types else None
            ins.append(m.input(s, plain or dtype, **({} if plain else how(i))))
            values.append(self.values(rng, s, plain or dtype, quantized and not plain, i in positive))
        before = [m.const(c) for c in first]
        behind = [m.const(c) for c in extra]
        shapes_out = out_shape if outputs > 1 else [out_shape]
        outs = [m.tensor(s, out or dtype, **({} if out or not quantized else q_out(dtype) if q_out else how())) for s in shapes_out]
        m.op(op, before + ins + behind, outs, options, version=1 if op in ONE_VERSION else version, **fields)
        self.save(name, m, outs, values)


def fixed(kind):
    """The scales that LOGISTIC, TANH and SOFTMAX have by definition."""
    return {"logistic": {"int8": dict(scale=1 / 256, zero=-128), "uint8": dict(scale=1 / 256, zero=0), "int16": dict(scale=1 / 32768, zero=0)},
            "tanh": {"int8": dict(scale=1 / 128, zero=0), "uint8": dict(scale=1 / 128, zero=128), "int16": dict(scale=1 / 32768, zero=0)}}[kind].__getitem__


def write(folder):
    if (folder / "complete").exists():
        return
    k = Maker(folder)
    i32 = lambda *v: np.array(v, np.int32)
    for kind in KINDS:
        dtype, quantized = kind
        for op, options in (("ABS", "AbsOptions"), ("NEG", "NegOptions"), ("CEIL", None), ("FLOOR", None), ("ROUND", None), ("SIN", None), ("COS", "CosOptions"), ("EXP", "ExpOptions"),
                            ("RELU", None), ("RELU6", None), ("RELU_N1_TO_1", None), ("RELU_0_TO_1", None), ("ELU", None), ("HARD_SWISH", "HardSwishOptions"), ("GELU", "GeluOptions"),
                            ("SQUARE", "SquareOptions"), ("SIGN", "SignOptions"), ("ZEROS_LIKE", "ZerosLikeOptions"), ("LOGICAL_NOT", "LogicalNotOptions"), ("L2_NORMALIZATION", "L2NormOptions"),
                            ("LOG_SOFTMAX", "LogSoftmaxOptions"), ("REAL", None), ("IMAG", None), ("COMPLEX_ABS", None)):
            same = op in ("ZEROS_LIKE",)
            q_out = {"L2_NORMALIZATION": fixed("tanh"), "LOG_SOFTMAX": lambda t: dict(scale=16 / 256, zero={"int8": 127, "uint8": 255}.get(t, 32767))}.get(op)
            k.operator(op.lower(), op, [(3, 4, 5)], (3, 4, 5), kind, options, version=2, same=same, q_out=q_out, out="float32" if op in ("REAL", "IMAG", "COMPLEX_ABS") else None)
        for op in "LOG", "SQRT", "RSQRT":
            k.operator(op.lower(), op, [(3, 4, 5)], (3, 4, 5), kind, version=2, positive=(0,), scales=[dict(scale=0.02, zero=int(np.iinfo(dtype).min) if dtype != "int16" else 0)] if quantized else None)
        for op in "LOGISTIC", "TANH":
            k.operator(op.lower(), op, [(3, 4, 5)], (3, 4, 5), kind, version=2, q_out=fixed(op.lower()))
        k.operator("softmax", "SOFTMAX", [(3, 7)], (3, 7), kind, "SoftmaxOptions", version=2, q_out=fixed("logistic"), beta=1.0)
        k.operator("leaky_relu", "LEAKY_RELU", [(3, 4, 5)], (3, 4, 5), kind, "LeakyReluOptions", version=2, alpha=0.3)
        if kind != ("int16", True):
            k.operator("prelu", "PRELU", [(3, 4, 5), (1, 1, 5)], (3, 4, 5), kind)
        for op, options in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"), ("DIV", "DivOptions"), ("MAXIMUM", "MaximumMinimumOptions"), ("MINIMUM", "MaximumMinimumOptions"),
                            ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"), ("FLOOR_DIV", "FloorDivOptions"), ("FLOOR_MOD", "FloorModOptions"), ("POW", "PowOptions"), ("ATAN2", None),
                            ("LOGICAL_AND", "LogicalAndOptions"), ("LOGICAL_OR", "LogicalOrOptions"), ("BITWISE_XOR", "BitwiseXorOptions"), ("RIGHT_SHIFT", "RightShiftOptions")):
            fields = {"potScaleInt16": False} if op in ("ADD", "SUB") else {}
            positive = (1,) if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "RIGHT_SHIFT") else (0, 1) if op == "POW" else ()
            same = op in ("MAXIMUM", "MINIMUM")
            for name, b in (("", (3, 4, 5)), ("_row", (5,)), ("_scalar", ()), ("_both", (1, 4, 1))):
                # LiteRT's ATAN2 reads as far as its first input goes, whatever lies behind a smaller second one.
                if op == "ATAN2" and name:
                    continue
                a = (3, 1, 5) if name == "_both" else (3, 4, 5)
                k.operator(op.lower() + name, op, [a, b], (3, 4, 5), kind, options, version=2, same=same, positive=positive, **fields)
            if op in ("ADD", "SUB", "MUL", "DIV"):
                for activation in 1, 2, 3:
                    k.operator(f"{op.lower()}_activation{activation}", op, [(3, 4, 5), (3, 4, 5)], (3, 4, 5), kind, options, version=2, positive=positive, fusedActivationFunction=activation, **fields)
        # Of int16 without scales LiteRT compares with scales of 0.
        for op in "EQUAL", *(["NOT_EQUAL"] if kind != ("int16", False) else []), "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL":
            k.operator(op.lower(), op, [(3, 4, 5), (4, 1)], (3, 4, 5), kind, version=2, out="bool")
        for op in "SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL":
            for name, axes, dims in (("1", [1], [3, 5]), ("02", [0, 2], [4]), ("12", [1, 2], [3]), ("all", [0, 1, 2], [])):
                k.operator(f"{op.lower()}_{name}", op, [(3, 4, 5)], dims, kind, "ReducerOptions", version=2, extra=[i32(*axes)], same=op in ("REDUCE_MAX", "REDUCE_MIN"))
        for op in "MEAN", "SUM", "REDUCE_PROD":
            k.operator(f"{op.lower()}_image", op, [(2, 3, 4, 5)], [2, 1, 1, 5], kind, "ReducerOptions", version=2, extra=[i32(1, 2)], keepDims=True)
            k.operator(f"{op.lower()}_same", op, [(2, 3, 4, 5)], [2, 5], kind, "ReducerOptions", version=2, extra=[i32(1, 2)], same=True)
        move = dict(kind=kind, same=True)
        k.operator("reshape", "RESHAPE", [(3, 4)], (2, 6), extra=[i32(2, 6)], **move)
        k.operator("transpose", "TRANSPOSE", [(3, 4, 5)], (5, 3, 4), extra=[i32(2, 0, 1)], version=2, **move)
        k.operator("transpose_six", "TRANSPOSE", [(1, 2, 3, 1, 2, 2)], (2, 2, 1, 3, 2, 1), extra=[i32(5, 4, 3, 2, 1, 0)], version=6, **move)
        k.operator("pad", "PAD", [(3, 4)], (5, 7), extra=[np.array([[1, 1], [2, 1]], np.int32)], version=2, **move)
        k.operator("mirror_pad", "MIRROR_PAD", [(3, 4)], (5, 7), kind, "MirrorPadOptions", extra=[np.array([[1, 1], [2, 1]], np.int32)], version=2, same=True, mode=0)
        k.operator("mirror_pad_symmetric", "MIRROR_PAD", [(3, 4)], (5, 7), kind, "MirrorPadOptions", extra=[np.array([[1, 1], [2, 1]], np.int32)], version=2, same=True, mode=1)
        k.operator("slice", "SLICE", [(3, 4)], (2, 2), extra=[i32(1, 0), i32(2, 2)], version=2, **move)
        k.operator("strided_slice", "STRIDED_SLICE", [(5, 6)], (2, 3), kind, "StridedSliceOptions", extra=[i32(4, 0), i32(0, 6), i32(-2, 2)], version=2, same=True)
        k.operator("gather", "GATHER", [(3, 4)], (2, 4), kind, "GatherOptions", extra=[i32(2, 0)], version=2, same=True)
        k.operator("gather_axis", "GATHER", [(3, 4)], (3, 2), kind, "GatherOptions", extra=[np.array([3, 1], np.int64)], version=2, same=True, axis=1)
        k.operator("gather_nd", "GATHER_ND", [(3, 4)], (2,), extra=[np.array([[2, 0], [1, 3]], np.int32)], version=2, **move)
        k.operator("tile", "TILE", [(3, 4)], (6, 4), extra=[i32(2, 1)], version=2, **move)
        k.operator("concatenation", "CONCATENATION", [(3, 2), (3, 4)], (3, 6), kind, "ConcatenationOptions", version=2, same=True, axis=1)
        k.operator("concatenation_scales", "CONCATENATION", [(3, 2), (3, 4)], (3, 6), kind, "ConcatenationOptions", version=2, axis=-1)
        k.operator("split", "SPLIT", [(3, 4)], [(3, 2), (3, 2)], kind, "SplitOptions", version=2, same=True, first=[np.int32(1)], outputs=2, numSplits=2)
        k.operator("split_v", "SPLIT_V", [(3, 4)], [(3, 1), (3, 3)], kind, "SplitVOptions", version=2, same=True, extra=[i32(1, -1), np.int32(1)], outputs=2, numSplits=2)
        k.operator("pack", "PACK", [(3, 4), (3, 4)], (3, 2, 4), kind, "PackOptions", version=2, same=True, valuesCount=2, axis=1)
        k.operator("unpack", "UNPACK", [(2, 4)], [(4,), (4,)], kind, "UnpackOptions", version=2, same=True, outputs=2, num=2, axis=0)
        k.operator("expand_dims", "EXPAND_DIMS", [(3, 4)], (3, 1, 4), extra=[np.int32(1)], **move)
        k.operator("squeeze", "SQUEEZE", [(3, 1, 4)], (3, 4), kind, "SqueezeOptions", same=True, squeezeDims=[1])
        k.operator("reverse_v2", "REVERSE_V2", [(3, 4)], (3, 4), extra=[i32(1)], version=2, **move)
        k.operator("space_to_depth", "SPACE_TO_DEPTH", [(1, 4, 4, 2)], (1, 2, 2, 8), kind, "SpaceToDepthOptions", same=True, blockSize=2)
        k.operator("depth_to_space", "DEPTH_TO_SPACE", [(1, 2, 2, 8)], (1, 4, 4, 2), kind, "DepthToSpaceOptions", same=True, blockSize=2)
        k.operator("space_to_batch_nd", "SPACE_TO_BATCH_ND", [(1, 4, 4, 2)], (4, 2, 3, 2), extra=[i32(2, 2), np.array([[0, 0], [2, 0]], np.int32)], version=2, **move)
        k.operator("batch_to_space_nd", "BATCH_TO_SPACE_ND", [(4, 2, 2, 2)], (1, 4, 3, 2), extra=[i32(2, 2), np.array([[0, 0], [1, 0]], np.int32)], version=2, **move)
        k.operator("where", "WHERE", [(3, 4)], (0, 2), kind, out="int64")
        k.operator("select", "SELECT", [(3, 4), (3, 4), (3, 4)], (3, 4), kind, "SelectOptions", version=2, same=True, types=["bool", None, None])
        k.operator("select_v2", "SELECT_V2", [(3, 1), (3, 4), (4,)], (3, 4), kind, "SelectV2Options", same=True, types=["bool", None, None])
        k.operator("fill", "FILL", [()], (2, 3), kind, "FillOptions", same=True, first=[i32(2, 3)], version=3)
        k.operator("broadcast_to", "BROADCAST_TO", [(3, 1)], (2, 3, 4), kind, "BroadcastToOptions", same=True, extra=[i32(2, 3, 4)], version=3)
        k.operator("scatter_nd", "SCATTER_ND", [(2, 3)], (4, 3), kind, "ScatterNdOptions", same=True, first=[np.array([[3], [1]], np.int32)], extra=[i32(4, 3)])
        k.operator("topk_v2", "TOPK_V2", [(3, 5)], [(3, 2), (3, 2)], kind, "TopKV2Options", same=True, extra=[np.int32(2)], outputs=2)
        for op, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
            k.operator(op.lower(), op, [(3, 5)], (3,), kind, options, version=2, extra=[np.int32(1)], out="int32", outputType=2)
        k.operator("cumsum", "CUMSUM", [(3, 4)], (3, 4), kind, "CumsumOptions", same=True, extra=[np.int32(1)], exclusive=True)
        k.operator("reverse_sequence", "REVERSE_SEQUENCE", [(3, 4)], (3, 4), kind, "ReverseSequenceOptions", same=True, extra=[i32(2, 4, 1)], seqDim=1, batchDim=0)
        for align, half in ((False, False), (True, False), (False, True)):
            k.operator(f"resize_bilinear_{int(align)}{int(half)}", "RESIZE_BILINEAR", [(2, 4, 3, 2)], (2, 7, 5, 2), kind, "ResizeBilinearOptions", version=3, same=True, extra=[i32(7, 5)], alignCorners=align, halfPixelCenters=half)
            k.operator(f"resize_nearest_{int(align)}{int(half)}", "RESIZE_NEAREST_NEIGHBOR", [(2, 4, 3, 2)], (2, 7, 5, 2), kind, "ResizeNearestNeighborOptions", version=3, same=True, extra=[i32(7, 5)], alignCorners=align,
                       halfPixelCenters=half)
        k.operator("dynamic_update_slice", "DYNAMIC_UPDATE_SLICE", [(4, 5), (2, 3)], (4, 5), kind, "DynamicUpdateSliceOptions", same=True, extra=[i32(1, 9)], version=2)
        k.operator("batch_matmul", "BATCH_MATMUL", [(2, 3, 4), (2, 4, 5)], (2, 3, 5), kind, "BatchMatMulOptions", version=4, q_out=lambda t: dict(scale=0.3 if t != "int16" else 0.0003, zero=0 if t != "uint8" else 128))
        k.operator("batch_matmul_adj", "BATCH_MATMUL", [(2, 4, 3), (1, 5, 4)], (2, 3, 5), kind, "BatchMatMulOptions", version=4, adjX=True, adjY=True, q_out=lambda t: dict(scale=0.3 if t != "int16" else 0.0003, zero=0 if t != "uint8" else 128))
        k.operator("add_n", "ADD_N", [(3, 4), (3, 4), (3, 4)], (3, 4), kind, "AddNOptions", same=True)
        k.operator("one_hot", "ONE_HOT", [(), ()], (3, 4), kind, "OneHotOptions", same=True, first=[i32(1, 3, 0), np.int32(4)], axis=-1)
        k.operator("unique", "UNIQUE", [(6,)], [(6,), (6,)], kind, "UniqueOptions", same=True, outputs=2)
        k.operator("range", "RANGE", [(), (), ()], (0,), kind, "RangeOptions", same=True, positive=(0, 1, 2))
        k.operator("shape", "SHAPE", [(3, 4)], (2,), kind, "ShapeOptions", out="int32", outType=2)
        k.operator("rank", "RANK", [(3, 4)], (), kind, "RankOptions", out="int32")
        # LiteRT leaves the result of other types as the memory was.
        if dtype not in ("bool", "float16", "float64", "complex64", "uint16", "uint32"):
            k.operator("matrix_diag", "MATRIX_DIAG", [(2, 3)], (2, 3, 3), kind, "MatrixDiagOptions", same=True)
            k.operator("matrix_set_diag", "MATRIX_SET_DIAG", [(2, 3, 3), (2, 3)], (2, 3, 3), kind, "MatrixSetDiagOptions", same=True)
        k.operator("segment_sum", "SEGMENT_SUM", [(4, 3)], (3, 3), kind, "SegmentSumOptions", same=True, extra=[i32(0, 0, 1, 2)])
        for op in "SUM", "PROD", "MAX", "MIN":
            k.operator(f"unsorted_segment_{op.lower()}", f"UNSORTED_SEGMENT_{op}", [(4, 3)], (4, 3), kind, f"UnsortedSegment{op.title()}Options", same=True, extra=[i32(2, 0, 2, 1), np.int32(4)])
        for op in "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D":
            for pad in 0, 1:
                k.operator(f"{op.lower()}_{pad}", op, [(2, 7, 6, 5)], [2, 4, 3, 5] if pad == 0 else [2, 3, 3, 5], kind, "Pool2DOptions", version=2, same=True, padding=pad, strideH=2, strideW=2, filterHeight=3, filterWidth=2)
        k.operator("local_response_normalization", "LOCAL_RESPONSE_NORMALIZATION", [(1, 3, 3, 8)], (1, 3, 3, 8), kind, "LocalResponseNormalizationOptions", radius=2, bias=1.0, alpha=0.3, beta=0.6)
        for other in PLAIN:
            k.operator(f"cast_{other}", "CAST", [(3, 5)], (3, 5), kind, "CastOptions", version=3, out=other)
        if quantized or dtype == "float16":
            k.operator("dequantize", "DEQUANTIZE", [(3, 5)], (3, 5), kind, "DequantizeOptions", version=3, out="float32")
        for op in ("ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "AND", "OR", "POWER", "REMAINDER") + (() if quantized else ("SHIFT_LEFT",)):
            k.operator(f"stablehlo_{op.lower()}", f"STABLEHLO_{op}", [(3, 4), (3, 4)], (3, 4), kind, same=True, positive=(0, 1))
        for op in "ABS", "COSINE", "EXPONENTIAL", "FLOOR", "LOG", "LOGISTIC", "NEGATE", "RSQRT", "TANH", "CBRT":
            k.operator(f"stablehlo_{op.lower()}", f"STABLEHLO_{op}", [(3, 4)], (3, 4), kind, same=True, positive=(0,))
        k.operator("stablehlo_select", "STABLEHLO_SELECT", [(3, 4), (3, 4), (3, 4)], (3, 4), kind, same=True, types=["bool", None, None])
        k.operator("stablehlo_clamp", "STABLEHLO_CLAMP", [(), (3, 4), ()], (3, 4), kind, same=True)
    (folder / "complete").write_text("")
