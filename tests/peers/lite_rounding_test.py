#!/usr/bin/env python3
"""Roundings of operators of 8 bits: lite_rounding_test.py SMELT [SUBSTRING of names]

Where kernels round in other ways, one output in ten to ten thousand is a step off: so each operator of common networks makes many, on scales and zero points of several draws, and smelt's are those of LiteRT by
default (XNNPACK where that runs the operator), all of them. Scales that are powers of two, and the same ones, meet halves."""
import sys

import numpy as np

from checks import check, finish
from lite_builder import TYPES, Lite
from lite_checks import compare, unsupported

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(47)
DRAWS = 3
INFO = {"int8": (-128, 127), "uint8": (0, 255)}


def ints(shape, dtype):
    return random.integers(INFO[dtype][0], INFO[dtype][1] + 1, shape).astype(dtype)


def scale():
    return float(np.float32(random.uniform(0.004, 0.2)))


def zero(dtype):
    return int(random.integers(INFO[dtype][0] + 20, INFO[dtype][1] - 20))


def run(name, m, y, *inputs):
    if only in name:
        compare(name, m.bytes([y]), {f"x{i}": v for i, v in enumerate(inputs)}, resolver="auto")


def layer(name, op, options, dtype, in_shape, w_shape, out_shape, dim=0, several=True, bias=True, sizes=False, version=3, **fields):
    for draw in range(DRAWS):
        m, n, in_scale = Lite(), w_shape[dim], scale()
        scales = np.array([scale() for _ in range(n if several else 1)], np.float32)
        x = m.input(in_shape, dtype, scale=in_scale, zero=zero(dtype))
        about = zero(dtype) if dtype == "uint8" else 0
        w = m.const(ints(w_shape, dtype) if dtype == "uint8" else random.integers(-127, 128, w_shape).astype(dtype), scale=scales.tolist(), zero=about, dim=dim if several else 0)
        inputs = [m.const(np.array(out_shape, np.int32)), w, x] if sizes else [x, w]
        if bias:
            inputs.append(m.const(random.integers(-20000, 20000, n).astype(np.int32), scale=(scales * np.float32(in_scale)).tolist(), zero=0))
        out = in_scale * float(scales.mean()) * (np.prod(w_shape) / n) ** 0.5 * 80 * float(random.uniform(0.5, 2))
        y = m.op(op, inputs, [m.tensor(out_shape, dtype, scale=out, zero=zero(dtype))], options, version=version, **fields)
        run(f"{name}_{dtype}_{'channels' if several else 'tensor'}_{draw}", m, y, ints(in_shape, dtype))


for dtype, several in ("int8", True), ("int8", False), ("uint8", False):
    once = {"strideH": 1, "strideW": 1}
    layer("conv", "CONV_2D", "Conv2DOptions", dtype, (2, 16, 16, 16), (32, 3, 3, 16), (2, 16, 16, 32), several=several, **once)
    layer("conv_1x1", "CONV_2D", "Conv2DOptions", dtype, (2, 16, 16, 64), (64, 1, 1, 64), (2, 16, 16, 64), several=several, fusedActivationFunction=1, **once)
    layer("depthwise", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", dtype, (2, 20, 20, 32), (1, 3, 3, 32), (2, 20, 20, 32), 3, several, depthMultiplier=1, fusedActivationFunction=3, **once)
    layer("depthwise_twice", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", dtype, (2, 20, 20, 16), (1, 3, 3, 32), (2, 20, 20, 32), 3, several, depthMultiplier=2, **once)
    layer("transpose_conv", "TRANSPOSE_CONV", "TransposeConvOptions", dtype, (1, 12, 12, 16), (16, 3, 3, 16), (1, 24, 24, 16), several=several, sizes=True, strideH=2, strideW=2)
    layer("dense", "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (64, 100), (100, 100), (64, 100), several=several, version=4)
    layer("dense_row", "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (1, 100), (1000, 100), (1, 1000), several=several, bias=False, version=4)


def pair(name, op, options, dtype, a, b, out_shape, out, constant=False, about=None, version=2, **fields):
    for draw in range(DRAWS):
        m, first, second = Lite(), scale(), scale()
        how = {"scale": second, "zero": zero(dtype) if about is None else about}
        values = ints(b, dtype)
        x = m.input(a, dtype, scale=first, zero=zero(dtype))
        w = m.const(values, **how) if constant else m.input(b, dtype, **how)
        z = m.op(op, [x, w], [m.tensor(out_shape, dtype, scale=out(first, second) * float(random.uniform(0.5, 2)), zero=zero(dtype))], options, version=version, **fields)
        run(f"{name}_{dtype}_{draw}", m, z, ints(a, dtype), *([] if constant else [values]))


SHAPE = (8, 20, 12, 16)
for dtype in "int8", "uint8":
    for op, options, out in ("ADD", "AddOptions", lambda a, b: a + b), ("SUB", "SubOptions", lambda a, b: a + b), ("MUL", "MulOptions", lambda a, b: 90 * a * b):
        pair(op.lower(), op, options, dtype, SHAPE, SHAPE, SHAPE, out, fusedActivationFunction=1)
        pair(f"{op.lower()}_row", op, options, dtype, SHAPE, (16,), SHAPE, out, constant=True)
        pair(f"{op.lower()}_middle", op, options, dtype, SHAPE, (8, 1, 1, 16), SHAPE, out)
        if op == "MUL":  # scales beyond those that XNNPACK takes
            pair(f"{op.lower()}_coarse", op, options, dtype, SHAPE, SHAPE, SHAPE, lambda a, b: out(a, b) / 2000)
product = lambda a, b: 1000 * a * b
for name, how in {"constant": {"constant": True, "about": 0}, "computed": {"about": 0}, "about": {}, "constant_about": {"constant": True}}.items():
    pair(f"matrices_{name}", "BATCH_MATMUL", "BatchMatMulOptions", "int8", (4, 64, 64), (4, 64, 64), (4, 64, 64), product, version=4, **how)
    pair(f"dense_{name}", "FULLY_CONNECTED", "FullyConnectedOptions", "int8", (128, 200), (100, 200), (128, 100), product, version=4, **how)


def one(name, op, options, dtype, shape, out_shape=None, scales=None, extra=(), version=2, **fields):
    for draw in range(DRAWS):
        m, s, z = Lite(), scale(), zero(dtype)
        # The last draw: the same ones, which meet halves.
        so, zo = (s, z) if scales == "same" or draw == DRAWS - 1 and not scales else (s * float(random.uniform(0.3, 1.5)), zero(dtype)) if not scales else (s * scales, zero(dtype))
        y = m.tensor(out_shape or shape, dtype, scale=so, zero=zo)
        run(f"{name}_{dtype}_{draw}", m, m.op(op, [m.input(shape, dtype, scale=s, zero=z), *(m.const(e) for e in extra)], [y], options, version=version, **fields), ints(shape, dtype))


for dtype in "int8", "uint8":
    for op, times in ("MEAN", None), ("SUM", 9.0):
        for axes, left in ([1, 2], (8, 16)), ([3], (8, 20, 12)), ([1], (8, 12, 16)), ([0], (20, 12, 16)):
            one(f"{op.lower()}_{''.join(map(str, axes))}", op, "ReducerOptions", dtype, SHAPE, left, times, [np.array(axes, np.int32)])
    for ratio in None, 0.04, 15.0, 300.0, 0.002:
        one(f"quantize_{ratio}", "QUANTIZE", "QuantizeOptions", dtype, SHAPE, scales=ratio)
    for alpha in 0.3, -0.3, 0.01, 200.0:
        one(f"leaky_{alpha}", "LEAKY_RELU", "LeakyReluOptions", dtype, SHAPE, alpha=alpha)
    for align, half in (False, False), (True, False), (False, True):
        one(f"resize_{align}_{half}", "RESIZE_BILINEAR", "ResizeBilinearOptions", dtype, (2, 8, 6, 8), (2, 31, 17, 8), "same", [np.array([31, 17], np.int32)], version=3, alignCorners=align, halfPixelCenters=half)
# Products of int16: sums of 64 bits, as biases are or would be, are multiplied by a double; those of 32 bits by fractions of 31.
for bias, kind in ("int64", "int64"), ("int32", "int32"), (None, "int64"), (None, "int32"), (None, "float32"):
    for several in True, False:
        for draw in range(DRAWS):
            m, n, in_scale = Lite(), 1000, scale() / 1000
            scales = np.array([scale() / 50 for _ in range(n if several else 1)], np.float32)
            inputs = [m.input((64, 100), "int16", scale=in_scale, zero=0), m.const(random.integers(-127, 128, (n, 100)).astype(np.int8), scale=scales.tolist(), zero=0, dim=0)]
            if bias:
                inputs.append(m.const(random.integers(-3000000, 3000000, n).astype(bias), scale=(scales * np.float32(in_scale)).tolist(), zero=0))
            y = m.tensor((64, n), "int16", scale=in_scale * float(scales.mean()) * float(random.uniform(300, 1200)), zero=0)
            y = m.op("FULLY_CONNECTED", inputs, [y], "FullyConnectedOptions", version=13, quantizedBiasType=TYPES[kind])
            run(f"dense_int16_{bias}_{kind}_{'channels' if several else 'tensor'}_{draw}", m, y, random.integers(-20000, 20000, (64, 100)).astype(np.int16))
# Floats near halves of steps, and what is no number.
for dtype in "int8", "uint8", "int16":
    m, s = Lite(), scale()
    near = ((random.integers(-150, 150, (100, 100)) + 0.5) * np.float32(s)).astype(np.float32)
    near = (near.view(np.int32) + random.integers(-2, 3, near.shape).astype(np.int32)).view(np.float32)
    if dtype == "int8":
        near[0, :5] = [np.nan, np.inf, -np.inf, 1e30, -1e30]
    y = m.tensor(near.shape, dtype, scale=s, zero=7 if dtype != "int16" else 0)
    run(f"quantize_floats_{dtype}", m, m.op("QUANTIZE", [m.input(near.shape, "float32")], [y], "QuantizeOptions", version=2), near)

for u in unsupported:
    print("not in LiteRT:", u)
check("LiteRT runs most", bool(only) or len(unsupported) < 20, len(unsupported))
finish()
