#!/usr/bin/env python3
"""Quantized operators one at a time, with scales of the test's own choice, in LiteRT and in smelt: lite_operators.py SMELT [SUBSTRING of names]

Files are made by lite_builder.py. Integers are those of LiteRT by default (XNNPACK where that runs an operator), bit for bit; LOGISTIC and TANH of int16 on scales that are powers of two are those of the
reference kernels."""
import sys

import numpy as np

from checks import check, finish
from lite_builder import Lite
from lite_checks import compare, unsupported

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(11)
ONE_VERSION = ("RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "HARD_SWISH", "RESHAPE")
INFO = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


def ints(shape, dtype):
    low, high = INFO[dtype]
    return random.integers(low, high + 1, shape).astype(dtype)


def zero(dtype):
    low, high = INFO[dtype]
    return 0 if dtype == "int16" else int(random.integers(low // 2, high // 2))


def scale(dtype="int8"):
    return float(random.uniform(0.01, 0.2)) * (1 / 256 if dtype == "int16" else 1)


def run(name, lite, outputs, inputs, resolver="auto", steps=0):
    if only in name:
        compare(name, lite.bytes(outputs), {f"x{i}": v for i, v in enumerate(inputs)}, resolver=resolver, steps=steps)


def unary(op, dtype, shape=(3, 4, 5), options=None, out=None, out_shape=None, in_=None, name=None, extra=(), steps=0, resolver="auto", **fields):
    m = Lite()
    s, z = in_ or (scale(dtype), zero(dtype))
    x = m.input(shape, dtype, scale=s, zero=z)
    so, zo = out or (scale(dtype), zero(dtype))
    more = [m.const(e) for e in extra]
    y = m.tensor(out_shape or shape, dtype, scale=so, zero=zo)
    m.op(op, [x] + more, [y], options, version=fields.pop("version", 1 if op in ONE_VERSION else 2), **fields)
    run(f"{name or op.lower()}_{dtype}", m, [y], [ints(shape, dtype)], resolver, steps)


def binary(op, dtype, a=(3, 4, 5), b=(3, 4, 5), options=None, out=None, name="", bool_out=False, same=None, steps=0, **fields):
    m = Lite()
    sa, za = same or (scale(dtype), zero(dtype))
    sb, zb = same or (scale(dtype), zero(dtype))
    so, zo = same or out or (scale(dtype), zero(dtype))
    x, y = m.input(a, dtype, scale=sa, zero=za), m.input(b, dtype, scale=sb, zero=zb)
    shape = np.broadcast_shapes(a, b)
    z = m.tensor(shape, "bool") if bool_out else m.tensor(shape, dtype, scale=so, zero=zo)
    m.op(op, [x, y], [z], options, version=2, **fields)
    run(f"{op.lower()}{name}_{dtype}", m, [z], [ints(a, dtype), ints(b, dtype)], steps=steps)


for dtype in "int8", "uint8", "int16":
    for op, o in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        fields = {"potScaleInt16": False} if op != "MUL" else {}
        binary(op, dtype, options=o, **fields)
        binary(op, dtype, (1, 4, 1), (3, 1, 5), options=o, name="_broadcast", **fields)
        for a in 1, 2, 3:
            binary(op, dtype, options=o, name=f"_activation{a}", fusedActivationFunction=a, **fields)
    if dtype != "int16":
        binary("SQUARED_DIFFERENCE", dtype)
        for op in "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL":
            binary(op, dtype, bool_out=True)
        for op, o in (("RELU", None), ("RELU6", None), ("RELU_N1_TO_1", None), ("RELU_0_TO_1", None), ("ELU", None), ("EXP", None), ("LOG", None), ("GELU", "GeluOptions")):
            unary(op, dtype, options=o)
        unary("GELU", dtype, options="GeluOptions", approximate=True, name="gelu_tanh")
        unary("HARD_SWISH", dtype)
        unary("HARD_SWISH", dtype, in_=(0.003, zero(dtype)), name="hard_swish_fine")
        unary("HARD_SWISH", dtype, in_=(0.2, zero(dtype)), out=(0.004, zero(dtype)), name="hard_swish_coarse")
    same = (scale(dtype), zero(dtype))
    binary("MAXIMUM", dtype, same=same)
    binary("MINIMUM", dtype, (3, 1, 5), (4, 1), same=same)
    unary("LEAKY_RELU", dtype, options="LeakyReluOptions", alpha=0.3)
    unary("LEAKY_RELU", dtype, options="LeakyReluOptions", alpha=-0.3, name="leaky_relu_negative")
    fixed = {"int8": ((1 / 256, -128), (1 / 128, 0)), "uint8": ((1 / 256, 0), (1 / 128, 128)), "int16": ((1 / 32768, 0), (1 / 32768, 0))}[dtype]
    unary("LOGISTIC", dtype, out=fixed[0], in_=(0.05, zero(dtype)) if dtype != "int16" else (0.0003, 0))
    unary("TANH", dtype, out=fixed[1], in_=(0.03, zero(dtype)) if dtype != "int16" else (0.0002, 0))
    if dtype == "int16":
        unary("LOGISTIC", dtype, out=fixed[0], in_=(2.0 ** -12, 0), name="logistic_power", resolver="ref")
        unary("TANH", dtype, out=fixed[1], in_=(2.0 ** -12, 0), name="tanh_power", resolver="ref")
    for depth in 2, 10, 40:
        unary("SOFTMAX", dtype, (6, depth), "SoftmaxOptions", out=fixed[0], in_=(0.08 if dtype != "int16" else 0.0004, 0), name=f"softmax{depth}", beta=1.0)
    for axes, shape in (([1, 2], [3, 5]), ([0, 3], [4, 6]), ([3], [3, 4, 6])):
        for keep in False, True:
            full = [1 if i in axes else s for i, s in enumerate((3, 4, 6, 5))]
            dims = full if keep else [s for i, s in enumerate((3, 4, 6, 5)) if i not in axes]
            for op in "MEAN", "SUM":
                unary(op, dtype, (3, 4, 6, 5), "ReducerOptions", out_shape=dims, extra=[np.array(axes, np.int32)], keepDims=keep, name=f"{op.lower()}_{''.join(map(str, axes))}_{keep}",
                      out=(scale(dtype) * (6 if op == "SUM" else 1), zero(dtype)))
    for op in "REDUCE_MAX", "REDUCE_MIN":
        unary(op, dtype, (3, 4, 5), "ReducerOptions", in_=same, out=same, out_shape=[3, 5], extra=[np.array([1], np.int32)])
    for op in "AVERAGE_POOL_2D", "MAX_POOL_2D":
        for pad in 0, 1:
            for a in 0, 1:
                shape = [2, 4, 3, 5] if pad == 0 else [2, 3, 3, 5]
                unary(op, dtype, (2, 7, 6, 5), "Pool2DOptions", in_=same, out=same, out_shape=shape, padding=pad, strideH=2, strideW=2, filterHeight=3, filterWidth=2,
                      fusedActivationFunction=a, name=f"{op.lower()}_{pad}_{a}")
    unary("PAD", dtype, (3, 4), in_=same, out=same, out_shape=[5, 7], extra=[np.array([[1, 1], [2, 1]], np.int32)])
    unary("RESHAPE", dtype, (3, 4), in_=same, out=same, out_shape=[2, 6], extra=[np.array([2, 6], np.int32)])
    unary("TRANSPOSE", dtype, (3, 4), in_=same, out=same, out_shape=[4, 3], extra=[np.array([1, 0], np.int32)])
    unary("SLICE", dtype, (3, 4), in_=same, out=same, out_shape=[2, 2], extra=[np.array([1, 0], np.int32), np.array([2, 2], np.int32)])
    unary("QUANTIZE", dtype, name="requantize")
    for align, half in ((False, False), (True, False), (False, True)):
        if dtype != "int16" or not align:
            unary("RESIZE_BILINEAR", dtype, (2, 4, 3, 2), "ResizeBilinearOptions", in_=same, out=same, out_shape=[2, 7, 5, 2], extra=[np.array([7, 5], np.int32)], alignCorners=align,
                  halfPixelCenters=half, version=3, name=f"resize_bilinear_{align}_{half}")
            unary("RESIZE_NEAREST_NEIGHBOR", dtype, (2, 4, 3, 2), "ResizeNearestNeighborOptions", in_=same, out=same, out_shape=[2, 7, 5, 2], extra=[np.array([7, 5], np.int32)],
                  alignCorners=align, halfPixelCenters=half, version=3, name=f"resize_nearest_{align}_{half}")
    for other in "int8", "uint8", "int16":
        if other != dtype:
            m = Lite()
            x = m.input((3, 40), dtype, scale=scale(dtype), zero=zero(dtype))
            y = m.tensor((3, 40), other, scale=scale(other), zero=zero(other))
            m.op("QUANTIZE", [x], [y], "QuantizeOptions", version=2)
            run(f"quantize_{dtype}_{other}", m, [y], [ints((3, 40), dtype)])
    m = Lite()
    x = m.input((3, 40), "float32")
    y = m.op("QUANTIZE", [x], [m.tensor((3, 40), dtype, scale=scale(dtype), zero=zero(dtype))], "QuantizeOptions", version=2)
    z = m.op("DEQUANTIZE", [y], [m.tensor((3, 40), "float32")], "DequantizeOptions", version=3)
    run(f"quantize_dequantize_{dtype}", m, [y, z], [(random.standard_normal((3, 40)) * 4).astype(np.float32)])
    m = Lite()
    a, b = m.input((3, 2), dtype, scale=same[0], zero=same[1]), m.input((3, 4), dtype, scale=same[0], zero=same[1])
    y = m.op("CONCATENATION", [a, b], [m.tensor((3, 6), dtype, scale=same[0], zero=same[1])], "ConcatenationOptions", version=2, axis=1)
    run(f"concatenation_{dtype}", m, [y], [ints((3, 2), dtype), ints((3, 4), dtype)])


def weights(shape, dtype, per_channel, dim):
    n = shape[dim]
    if dtype == "uint8":
        return random.integers(0, 256, shape).astype(np.uint8), scale(), 120
    return random.integers(-127, 128, shape).astype(np.int8), [scale() for _ in range(n)] if per_channel else scale(), 0


def layer(name, op, options, dtype, in_shape, w_shape, out_shape, dim, per_channel=True, bias=True, wide_bias=True, version=3, output_shape=None, **fields):
    m = Lite()
    si = scale(dtype)
    x = m.input(in_shape, dtype, scale=si, zero=zero(dtype))
    w, sw, zw = weights(w_shape, dtype, per_channel, dim)
    wt = m.const(w, scale=sw, zero=zw, dim=dim)
    n = w_shape[dim]
    inputs = [x, wt]
    if output_shape is not None:
        inputs = [m.const(np.array(out_shape, np.int32)), wt, x]
    if bias:
        b = random.integers(-2000, 2000, n).astype(np.int64 if dtype == "int16" and wide_bias else np.int32)
        inputs.append(m.const(b, scale=(np.asarray(sw) * si).tolist(), zero=0))
    depth = int(np.prod(w_shape)) / n
    so = si * float(np.mean(sw)) * depth ** 0.5 * (40 if dtype != "int16" else 1) * 2
    y = m.tensor(out_shape, dtype, scale=so, zero=zero(dtype))
    m.op(op, inputs, [y], options, version=version, **fields)
    run(f"{name}_{dtype}_{per_channel}", m, [y], [ints(in_shape, dtype)])


for dtype in "int8", "uint8", "int16":
    for per_channel in (True, False) if dtype != "uint8" else (False,):
        for pad in 0, 1:
            for a in 0, 1, 3:
                out = [2, 4, 4, 7] if pad == 0 else [2, 3, 3, 7]
                layer(f"conv_{pad}_{a}", "CONV_2D", "Conv2DOptions", dtype, (2, 8, 7, 3), (7, 3, 3, 3), out, 0, per_channel, padding=pad, strideH=2, strideW=2, fusedActivationFunction=a)
                out = [2, 4, 4, 6] if pad == 0 else [2, 3, 3, 6]
                layer(f"depthwise_{pad}_{a}", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", dtype, (2, 8, 7, 3), (1, 3, 3, 6), out, 3, per_channel, padding=pad, strideH=2, strideW=2,
                      depthMultiplier=2, fusedActivationFunction=a)
        layer("conv_1x1", "CONV_2D", "Conv2DOptions", dtype, (1, 5, 5, 40), (16, 1, 1, 40), (1, 5, 5, 16), 0, per_channel, strideH=1, strideW=1)
        layer("conv_deep", "CONV_2D", "Conv2DOptions", dtype, (1, 4, 4, 200), (5, 3, 3, 200), (1, 4, 4, 5), 0, per_channel, strideH=1, strideW=1)
        layer("conv_dilated", "CONV_2D", "Conv2DOptions", dtype, (1, 9, 9, 4), (5, 3, 3, 4), (1, 9, 9, 5), 0, per_channel, strideH=1, strideW=1, dilationHFactor=2, dilationWFactor=3)
        layer("depthwise_dilated", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", dtype, (1, 9, 9, 4), (1, 3, 3, 4), (1, 9, 9, 4), 3, per_channel, strideH=1, strideW=1, depthMultiplier=1,
              dilationHFactor=2, dilationWFactor=2)
        layer("conv_groups", "CONV_2D", "Conv2DOptions", dtype, (1, 6, 6, 8), (6, 3, 3, 4), (1, 6, 6, 6), 0, per_channel, strideH=1, strideW=1)
        layer("conv_no_bias", "CONV_2D", "Conv2DOptions", dtype, (1, 6, 6, 4), (6, 3, 3, 4), (1, 6, 6, 6), 0, per_channel, bias=False, strideH=1, strideW=1)
        for pad in 0, 1:
            out = [1, 10, 10, 5] if pad == 0 else [1, 11, 11, 5]
            layer(f"transpose_conv_{pad}", "TRANSPOSE_CONV", "TransposeConvOptions", dtype, (1, 5, 5, 4), (5, 3, 3, 4), out, 0, per_channel, output_shape=True, padding=pad, strideH=2, strideW=2)
        layer("dense", "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (3, 40), (10, 40), (3, 10), 0, per_channel, version=4 if dtype != "int16" else 7)
        layer("dense_deep", "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (2, 1500), (10, 1500), (2, 10), 0, per_channel, version=4 if dtype != "int16" else 7, fusedActivationFunction=1)
        layer("dense_keep", "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (2, 3, 40), (10, 40), (2, 3, 10), 0, per_channel, version=5, keepNumDims=True)

# Sizes that whole loops take: rows of more than a block, tensors of more numbers than a type has, channels of several registers.
for dtype in "int8", "int16":
    for op, o in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        binary(op, dtype, (3, 700), (3, 700), options=o, name="_many", **({"potScaleInt16": False} if op != "MUL" else {}))
    for stride, size in (1, 9), (2, 5):
        layer(f"conv_many_{stride}", "CONV_2D", "Conv2DOptions", dtype, (2, 9, 9, 24), (40, 3, 3, 24), (2, size, size, 40), 0, True, strideH=stride, strideW=stride, fusedActivationFunction=3)
        layer(f"depthwise_many_{stride}", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", dtype, (2, 9, 9, 72), (1, 3, 3, 72), (2, size, size, 72), 3, True, strideH=stride, strideW=stride, depthMultiplier=1)
    layer("dense_many", "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (33, 130), (70, 130), (33, 70), 0, True, version=4 if dtype != "int16" else 7)
    layer("transpose_conv_many", "TRANSPOSE_CONV", "TransposeConvOptions", dtype, (2, 7, 7, 20), (40, 2, 4, 20), [2, 14, 21, 40], 0, True, output_shape=True, padding=0, strideH=2, strideW=3)
# Windows smaller than their strides, which XNNPACK leaves out: channels are rounded otherwise, eight at a time and those that are left.
layer("transpose_conv_gaps", "TRANSPOSE_CONV", "TransposeConvOptions", "int8", (3, 13, 12, 39), (46, 2, 1, 39), [3, 26, 23, 46], 0, True, output_shape=True, padding=0, strideH=2, strideW=2)
binary("SQUARED_DIFFERENCE", "int8", (3, 700), (1, 700), name="_many")
layer("transpose_conv_gaps", "TRANSPOSE_CONV", "TransposeConvOptions", "uint8", (3, 13, 12, 9), (21, 1, 4, 9), [3, 26, 24, 21], 0, False, output_shape=True, padding=0, strideH=2, strideW=2)
# Sums of 32 bits of int16: of biases that have no more, and of none.
for bias, kind in (True, {"quantizedBiasType": 2}), (False, {}):
    for per_channel in True, False:
        layer(f"dense_narrow_{bias}", "FULLY_CONNECTED", "FullyConnectedOptions", "int16", (300, 40), (30, 40), (300, 30), 0, per_channel, bias=bias, wide_bias=False, version=11, **kind)
        if bias:
            layer("conv_narrow", "CONV_2D", "Conv2DOptions", "int16", (2, 9, 9, 24), (40, 3, 3, 24), (2, 9, 9, 40), 0, per_channel, wide_bias=False, version=8, strideH=1, strideW=1, **kind)
# Where results lie between two numbers.
unary("ELU", "int8", (40, 64), in_=(0.05, 3), out=(0.1, -2), name="elu_halves")
unary("LOGISTIC", "int8", (40, 64), in_=(0.0031621534543018596, 59), out=(1 / 256, -128), name="logistic_halves")
for op, s in ("LOGISTIC", 0.0003), ("TANH", 0.0002):
    unary(op, "int16", (2, 70, 512), out=(1 / 32768, 0), in_=(s, 0), name=f"{op.lower()}_many")
for z in 0, 5:
    m = Lite()
    x, y = m.input((3, 40, 70), "int8", scale=0.02, zero=-3), m.input((3, 70, 50), "int8", scale=0.03, zero=z)
    out = m.op("BATCH_MATMUL", [x, y], [m.tensor((3, 40, 50), "int8", scale=0.3, zero=4)], "BatchMatMulOptions", version=4)
    run(f"batch_matmul_many_{z}_int8", m, [out], [ints((3, 40, 70), "int8"), ints((3, 70, 50), "int8")])

for dtype in "int8", "uint8", "int16":
    same = (scale(dtype), zero(dtype))
    fixed = (1 / 128, 128 if dtype == "uint8" else 0)
    unary("SPACE_TO_BATCH_ND", dtype, (1, 4, 4, 2), in_=same, out=same, out_shape=[4, 2, 3, 2], extra=[np.array([2, 2], np.int32), np.array([[0, 0], [2, 0]], np.int32)])
    # Quotients of which something is left: LiteRT shifts others by more than 31 bits.
    for a, b in ((3, 4, 5), (3, 4, 5)), ((3, 1, 5), (4, 1)):
        for activation in 0, 1:
            m = Lite()
            x, y = m.input(a, dtype, scale=0.1, zero=zero(dtype)), m.input(b, dtype, scale=0.01 / (256 if dtype == "int16" else 1), zero=0)
            z = m.tensor((3, 4, 5), dtype, scale=0.1, zero=zero(dtype))
            m.op("DIV", [x, y], [z], "DivOptions", version=2, fusedActivationFunction=activation)
            run(f"div{len(b)}_{activation}_{dtype}", m, [z], [ints(a, dtype), np.where((v := ints(b, dtype)) == 0, 7, v).astype(dtype)])
    # The slopes of int16 are int8.
    slopes = "int8" if dtype == "int16" else dtype
    m = Lite()
    x, a = m.input((3, 4, 5), dtype, scale=scale(dtype), zero=zero(dtype)), m.input((1, 1, 5), slopes, scale=0.01, zero=zero(slopes))
    y = m.op("PRELU", [x, a], [m.tensor((3, 4, 5), dtype, scale=scale(dtype), zero=zero(dtype))])
    run(f"prelu_{dtype}", m, [y], [ints((3, 4, 5), dtype), ints((1, 1, 5), slopes)])
    if dtype != "uint8":
        low = -128 if dtype == "int8" else 0
        unary("ABS", dtype)
        unary("ABS", dtype, in_=same, out=same, name="abs_same")
        if dtype == "int8":
            unary("SQRT", dtype, in_=(0.02, low))
            unary("RSQRT", dtype, in_=(0.02, low))
        else:
            m = Lite()
            x = m.input((3, 40), dtype, scale=0.0002, zero=0)
            y = m.op("RSQRT", [x], [m.tensor((3, 40), dtype, scale=0.0005, zero=0)], version=2)
            run("rsqrt_int16", m, [y], [np.abs(ints((3, 40), dtype).astype(np.int32)).clip(0, 32767).astype(dtype)])
        for axes, shape in (([1], [3, 5]), ([0, 2], [4]), ([0, 1, 2], [])):
            unary("REDUCE_PROD", dtype, (3, 4, 5), "ReducerOptions", out_shape=shape, extra=[np.array(axes, np.int32)], name=f"reduce_prod_{len(shape)}")
        for adj_x, adj_y in ((False, False), (True, False), (False, True)):
            m = Lite()
            x = m.input((2, 4, 3) if adj_x else (2, 3, 4), dtype, scale=scale(dtype), zero=zero(dtype))
            y = m.input((1, 5, 4) if adj_y else (1, 4, 5), dtype, scale=scale(dtype), zero=zero(dtype))
            z = m.tensor((2, 3, 5), dtype, scale=0.5 / (256 if dtype == "int16" else 1), zero=zero(dtype))
            m.op("BATCH_MATMUL", [x, y], [z], "BatchMatMulOptions", version=4, adjX=adj_x, adjY=adj_y)
            run(f"batch_matmul_{adj_x}_{adj_y}_{dtype}", m, [z], [ints((2, 4, 3) if adj_x else (2, 3, 4), dtype), ints((1, 5, 4) if adj_y else (1, 4, 5), dtype)])
        if dtype == "int16":
            # As constants of int8 are in int16x8.
            m = Lite()
            x = m.input((2, 3, 4), dtype, scale=scale(dtype), zero=0)
            y = m.const(ints((1, 4, 5), "int8"), scale=0.02, zero=0)
            z = m.op("BATCH_MATMUL", [x, y], [m.tensor((2, 3, 5), dtype, scale=0.002, zero=0)], "BatchMatMulOptions", version=4)
            run("batch_matmul_by_int8_int16", m, [z], [ints((2, 3, 4), dtype)])
    if dtype == "int8":
        # Of two computed tensors, the second with a zero point.
        m = Lite()
        x, y = m.input((3, 40), dtype, scale=0.02, zero=-3), m.input((5, 40), dtype, scale=0.03, zero=7)
        z = m.op("FULLY_CONNECTED", [x, y, -1], [m.tensor((3, 5), dtype, scale=0.2, zero=1)], "FullyConnectedOptions", version=4)
        run("fully_connected_computed", m, [z], [ints((3, 40), dtype), ints((5, 40), dtype)])
        # Products of which the second operand is made anew in each run, where the last one lay.
        m = Lite()
        x = m.input((3, 40), dtype, scale=0.02, zero=-3)
        y = m.op("ADD", [x, x], [m.tensor((3, 40), dtype, scale=0.04, zero=0)], "AddOptions", version=2)
        w = m.op("ADD", [y, x], [m.tensor((3, 40), dtype, scale=0.06, zero=5)], "AddOptions", version=2)
        z = m.op("FULLY_CONNECTED", [y, w, -1], [m.tensor((3, 3), dtype, scale=0.5, zero=1)], "FullyConnectedOptions", version=4)
        run("fully_connected_computed_anew", m, [z], [ints((3, 40), dtype)])
    if dtype == "int16":
        for op, o in (("EXP", None), ("LOG", None), ("GELU", "GeluOptions")):
            unary(op, dtype, options=o)
        for op in "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL":
            binary(op, dtype, bool_out=True)
    else:
        unary("L2_NORMALIZATION", dtype, (4, 9), "L2NormOptions", out=fixed)
        unary("L2_NORMALIZATION", dtype, (90, 40), "L2NormOptions", out=fixed, name="l2_normalization_many")
        # LiteRT's reference kernel is another function.
        unary("LOG_SOFTMAX", dtype, (4, 9), "LogSoftmaxOptions", out=(16 / 256, INFO[dtype][1]), resolver="plain")
    if dtype == "uint8":
        m = Lite()
        a, b = m.input((3, 2), dtype, scale=0.05, zero=30), m.input((3, 4), dtype, scale=0.09, zero=140)
        z = m.op("CONCATENATION", [a, b], [m.tensor((3, 6), dtype, scale=0.06, zero=100)], "ConcatenationOptions", version=2, axis=1)
        run("concatenation_scales_uint8", m, [z], [ints((3, 2), dtype), ints((3, 4), dtype)])

# Real numbers as integers, and the real parts of others: what a type does not hold, and what is no number.
odd = np.array([-1.5, -0.5, 300.7, 255.6, 7e4, -7e4, 5e9, -5e9, 1e20, -1e20, np.inf, -np.inf, np.nan, 2147483647.0, 4294967295.0], np.float32)
for source in "float32", "float64", "float16", "complex64":
    for to in "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool":
        m = Lite()
        x = m.input(odd.shape, source)
        y = m.op("CAST", [x], [m.tensor(odd.shape, to)], "CastOptions", version=3)
        run(f"cast_{source}_{to}", m, [y], [odd.astype(source)])

# To sizes that are computed, XNNPACK resizes nothing.
m = Lite()
image = ints((2, 7, 5, 3), "uint8")
y = m.op("RESIZE_BILINEAR", [m.input(image.shape, "uint8", scale=0.1, zero=3), m.input((2,), "int32")], [m.tensor([2, 23, 18, 3], "uint8", scale=0.1, zero=3)], "ResizeBilinearOptions", version=3, halfPixelCenters=True)
run("resize_bilinear_computed_uint8", m, [y], [image, np.array([23, 18], np.int32)])
# A product of one number each is that number, whatever the scales.
for dtype in "int8", "int16":
    unary("REDUCE_PROD", dtype, (4, 1, 6), "ReducerOptions", out_shape=(4, 6), extra=[np.array([1], np.int32)], name="reduce_prod_of_one")
# Rows of int8 that say uint8, as old files have them, and rows of int16.
for dtype, out in ("uint8", "float32"), ("int16", "int16"):
    m = Lite()
    how = {"scale": 0.02, "zero": 0}
    y = m.op("EMBEDDING_LOOKUP", [m.input((3,), "int32"), m.const(ints((5, 4), dtype), **how)], [m.tensor((3, 4), out, **(how if out == dtype else {}))])
    run(f"embedding_{dtype}_{out}", m, [y], [np.array([4, 0, 2], np.int32)])
# Types that TensorFlow's ops do not have.
for dtype in "bool", "uint32":
    m = Lite()
    image = random.integers(0, 2 if dtype == "bool" else 2**32, (2, 4, 3, 2)).astype(dtype)
    y = m.op("RESIZE_NEAREST_NEIGHBOR", [m.input(image.shape, dtype), m.const(np.array([7, 5], np.int32))], [m.tensor([2, 7, 5, 2], dtype)], "ResizeNearestNeighborOptions", version=3)
    run(f"resize_nearest_{dtype}", m, [y], [image])
m = Lite()
places = [m.tensor([4, 3], "int16"), m.tensor([4, 3], "int16")]
m.op("TOPK_V2", [m.input((4, 9), "int16"), m.const(np.int32(3))], places, "TopKV2Options", version=3)
run("topk_places_int16", m, places, [random.integers(-9, 9, (4, 9)).astype(np.int16)])

for u in unsupported:
    print("not in LiteRT:", u)
check("LiteRT runs most", bool(only) or len(unsupported) < 60, len(unsupported))
finish()
