#!/usr/bin/env python3
"""Layers of float numbers and int8 weights, which LiteRT (by XNNPACK, its default) and smelt quantize on the way: lite_hybrid.py SMELT [SUBSTRING of names]

Convolutions and depthwise ones are equal bit for bit: where a rounding differs, steps of the layer behind flip, and a deep network answers visibly otherwise. Products are compared as floats."""
import sys

import numpy as np

from checks import finish
from lite_builder import Lite
from lite_checks import compare

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(23)


def layer(name, op, options, in_shape, w_shape, out_shape, dim, per_channel, version, bias=True, low=-2.0, high=3.0, sizes_first=False, **fields):
    if only not in name:
        return
    m = Lite()
    x = m.input(in_shape, "float32")
    n = w_shape[dim]
    scales = random.uniform(0.001, 0.02, n if per_channel else 1).tolist()
    inputs = [x, m.const(random.integers(-127, 128, w_shape).astype(np.int8), scale=scales, zero=0, dim=dim)]
    if bias:
        inputs.append(m.const(random.standard_normal(n).astype(np.float32)))
    if sizes_first:
        inputs = [m.const(np.int32(out_shape)), inputs[1], x, *inputs[2:]]
    y = m.tensor(out_shape, "float32")
    m.op(op, inputs, [y], options, version=version, **fields)
    compare(f"{name}_{'channels' if per_channel else 'tensor'}", m.bytes([y]), {"x0": random.uniform(low, high, in_shape).astype(np.float32)}, resolver="auto", tolerance=2e-6 if "dense" in name or "transposed" in name else 0)


for per_channel in True, False:
    dense = 12 if per_channel else 9
    for a in 0, 1, 2, 3:
        layer(f"dense_{a}", "FULLY_CONNECTED", "FullyConnectedOptions", (3, 40), (10, 40), (3, 10), 0, per_channel, dense, fusedActivationFunction=a)
    layer("dense_asymmetric", "FULLY_CONNECTED", "FullyConnectedOptions", (5, 33), (17, 33), (5, 17), 0, per_channel, dense, asymmetricQuantizeInputs=True)
    layer("dense_positive", "FULLY_CONNECTED", "FullyConnectedOptions", (2, 1500), (70, 1500), (2, 70), 0, per_channel, dense, low=1.0, high=4.0)
    layer("dense_negative", "FULLY_CONNECTED", "FullyConnectedOptions", (9, 64), (33, 64), (9, 33), 0, per_channel, dense, low=-4.0, high=-1.0)
    layer("dense_keep", "FULLY_CONNECTED", "FullyConnectedOptions", (2, 3, 40), (10, 40), (2, 3, 10), 0, per_channel, dense, keepNumDims=True)
    for pad in 0, 1:
        out = [2, 4, 4, 7] if pad == 0 else [2, 3, 3, 7]
        layer(f"conv_{pad}", "CONV_2D", "Conv2DOptions", (2, 8, 7, 3), (7, 3, 3, 3), out, 0, per_channel, 5, padding=pad, strideH=2, strideW=2, fusedActivationFunction=pad)
        out = [2, 4, 4, 5] if pad == 0 else [2, 3, 3, 5]
        if per_channel:
            layer(f"depthwise_{pad}", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", (2, 8, 7, 5), (1, 3, 3, 5), out, 3, True, 6, padding=pad, strideH=2, strideW=2, depthMultiplier=1, fusedActivationFunction=3 * pad)
    layer("conv_1x1", "CONV_2D", "Conv2DOptions", (1, 5, 5, 40), (16, 1, 1, 40), (1, 5, 5, 16), 0, per_channel, 5, strideH=1, strideW=1)
    layer("conv_1x1_strided", "CONV_2D", "Conv2DOptions", (1, 7, 6, 40), (19, 1, 1, 40), (1, 4, 3, 19), 0, per_channel, 5, strideH=2, strideW=2)
    layer("conv_dilated", "CONV_2D", "Conv2DOptions", (1, 9, 9, 4), (5, 3, 3, 4), (1, 9, 9, 5), 0, per_channel, 5, strideH=1, strideW=1, dilationHFactor=2, dilationWFactor=3)
    for pad, out in ((0, (2, 10, 8, 7)), (1, (2, 11, 9, 7))):
        for strides in ((2, 2), (1, 1)):
            size = out if strides == (2, 2) else (2, 5, 4, 7) if pad == 0 else (2, 7, 6, 7)
            layer(f"transposed_{pad}_{strides[0]}", "TRANSPOSE_CONV", "TransposeConvOptions", (2, 5, 4, 6), (7, 3, 3, 6), size, 0, per_channel, 3, sizes_first=True, padding=pad, strideH=strides[0], strideW=strides[1])
    layer("transposed_no_bias", "TRANSPOSE_CONV", "TransposeConvOptions", (1, 5, 4, 6), (7, 2, 2, 6), (1, 10, 8, 7), 0, per_channel, 3, bias=False, sizes_first=True, strideH=2, strideW=2)
layer("depthwise_twice", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", (1, 8, 7, 3), (1, 3, 3, 6), (1, 8, 7, 6), 3, True, 6, strideH=1, strideW=1, depthMultiplier=2)
layer("depthwise_wide", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", (1, 8, 50, 40), (1, 3, 3, 40), (1, 8, 50, 40), 3, True, 6, strideH=1, strideW=1, depthMultiplier=1)
# XNNPACK takes matrices of one scale alone, and no others than constant ones: the kernel behind it quantizes about 0 unless asked.
for name, x, w, y, adj, asymmetric, constant in (("products", (2, 3, 40), (2, 40, 10), (2, 3, 10), (False, False), False, True), ("turned", (2, 40, 3), (2, 10, 40), (2, 3, 10), (True, True), True, True),
                                                 ("one_matrix", (4, 2, 3, 40), (40, 10), (4, 2, 3, 10), (False, False), True, True), ("many_matrices", (1, 3, 40), (5, 10, 40), (5, 3, 10), (False, True), False, True),
                                                 ("row", (3, 1, 33), (3, 33, 17), (3, 1, 17), (False, False), True, True), ("computed", (2, 3, 40), (2, 40, 10), (2, 3, 10), (False, False), True, False)):
    if only not in f"matrices_{name}":
        continue
    m = Lite()
    values = random.integers(-127, 128, w).astype(np.int8)
    inputs = [m.input(x, "float32"), m.const(values, scale=0.013, zero=0) if constant else m.input(w, "int8", scale=0.013, zero=0)]
    m.op("BATCH_MATMUL", inputs, [m.tensor(y, "float32")], "BatchMatMulOptions", version=4, adjX=adj[0], adjY=adj[1], asymmetricQuantizeInputs=asymmetric)
    given = {"x0": random.uniform(-2.0, 3.0, x).astype(np.float32)}
    compare(f"matrices_{name}", m.bytes([len(m.graph.tensors) - 1]), given if constant else {**given, "x1": values}, resolver="auto" if constant else "ref", tolerance=2e-6)
finish()
