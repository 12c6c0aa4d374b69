#!/usr/bin/env python3
"""Weights of 4 bits, with one scale, one for each row or one for each block of a row: lite_int4_test.py SMELT [SUBSTRING of names]

Files that hold them are answered as LiteRT does (by XNNPACK, its default, where that takes them). What smelt exports (--weight_bits 4, --block_size) runs in LiteRT, and answers about as its weights
dequantized by hand would."""
import sys

import numpy as np
import tensorflow as tf

from checks import call, check, finish
from lite_builder import Lite, fb, packed
from lite_checks import compare, litert, smelt, unsupported, work

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(29)


def int4(m, values, scale=None, dim=0, blocks=None, zeros=-1):
    t = m.tensor(values.shape, "int4", scale=scale, zero=0, dim=dim, value=packed(values))
    if blocks is not None:
        q, details = fb.QuantizationParametersT(), fb.BlockwiseQuantizationT()
        details.scales = m.const(blocks.astype(np.float16))
        details.zeroPoints, details.blockSize = zeros, values.shape[-1] // blocks.shape[1]
        q.detailsType, q.details = fb.QuantizationDetails.BlockwiseQuantization, details
        q.scale, q.zeroPoint, q.quantizedDimension = [], [], 0
        m.graph.tensors[t].quantization = q
    return t


def scales(*shape):
    return random.uniform(0.01, 0.1, shape).astype(np.float32)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def steps(*shape):
    return random.integers(-7, 8, shape)


def layer(name, op, options, inputs, out, version, tolerance, resolvers={"auto": 0}, **fields):
    """`inputs`: (array of the input, function that makes the rest, is it quantized?); `resolvers`: by how many steps integers may be off LiteRT's with each"""
    if only not in name:
        return
    m = Lite()
    value, rest, quantized = inputs
    x = m.input(value.shape, value.dtype.name, **({"scale": 0.02} if quantized else {}))
    y = m.tensor(out, value.dtype.name if value.dtype != np.int32 else "float32", **({"scale": 0.1} if quantized else {}))
    m.op(op, [x, *rest(m)], [y], options, version=version, **fields)
    data = m.bytes([y])
    for resolver, off in resolvers.items():
        compare(f"{name}_{resolver}", data, {"x0": value}, resolver=resolver, tolerance=tolerance, steps=off)


def bias(m, s):
    return m.const(random.integers(-99, 99, len(s)).astype(np.int32), scale=(s * np.float32(0.02)).tolist())


def weights(units, *shape, several=True):
    """Of float layers, and floats that they add."""
    return lambda m: [int4(m, steps(units, *shape), scales(units if several else 1)), m.const(floats(units))]


def in_blocks(units, depth, block, **how):
    return lambda m: [int4(m, steps(units, depth), blocks=scales(units, depth // block), **how), m.const(floats(units))]


def integers(units, *shape, dim=0):
    """Of int8 layers. The dimension of scales has as many indices as the layer has units."""
    def make(m):
        s = scales(units)
        return [int4(m, steps(*shape), s, dim=dim), bias(m, s)]
    return make


# XNNPACK's products; the sums are of floats
for units, depth in (16, 64), (7, 96), (33, 1500), (3, 5):
    for several in False, True:
        layer(f"dense_{units}_{depth}_{several}", "FULLY_CONNECTED", "FullyConnectedOptions",
              (floats(3, depth), weights(units, depth, several=several), False), (3, units), 12, 2e-6, asymmetricQuantizeInputs=True, fusedActivationFunction=1)
for units, depth, block in (16, 64, 32), (7, 128, 32), (8, 128, 64), (9, 512, 256):
    for a in 0, 3:
        layer(f"blocks_{units}_{depth}_{block}_{a}", "FULLY_CONNECTED", "FullyConnectedOptions",
              (floats(3, depth), in_blocks(units, depth, block), False), (3, units), 13, 1e-5, fusedActivationFunction=a)
# What files have that do not state zero points: 0, as if these were the first tensor.
layer("blocks_zero", "FULLY_CONNECTED", "FullyConnectedOptions", (floats(3, 64), in_blocks(16, 64, 32, zeros=0), False), (3, 16), 13, 1e-5)
# As of 8 bits, the kernels of LiteRT round sums in different ways.
images = random.integers(-128, 128, (2, 6, 6, 4)).astype(np.int8)
for size in 1, 3:
    layer(f"conv_{size}", "CONV_2D", "Conv2DOptions", (floats(2, 6, 6, 4), weights(6, size, size, 4), False), (2, 6, 6, 6), 7, 2e-6, strideH=1, strideW=1)
    layer(f"conv_odd_{size}", "CONV_2D", "Conv2DOptions", (floats(2, 6, 6, 3), weights(5, size, size, 3), False), (2, 6, 6, 5), 7, 2e-6, strideH=1, strideW=1)
    layer(f"conv_int8_{size}", "CONV_2D", "Conv2DOptions", (images, integers(6, 6, size, size, 4), True), (2, 6, 6, 6), 7, 0, strideH=1, strideW=1)
    layer(f"conv_int8_odd_{size}", "CONV_2D", "Conv2DOptions", (images[..., :3], integers(5, 5, size, size, 3), True), (2, 6, 6, 5), 7, 0, strideH=1, strideW=1)
    layer(f"depthwise_int8_{size}", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", (images, integers(4, 1, size, size, 4, dim=3), True), (2, 6, 6, 4), 7, 0, strideH=1, strideW=1, depthMultiplier=1)
for units, depth in (16, 64), (3, 7):
    layer(f"dense_int8_{units}_{depth}", "FULLY_CONNECTED", "FullyConnectedOptions",
          (random.integers(-128, 128, (3, depth)).astype(np.int8), integers(units, units, depth), True), (3, units), 10, 0, {"auto": 1})
# XNNPACK takes no odd rows: LiteRT's own kernel then knows steps about 0, unless asked for others.
for depth in 5, 81:
    for asymmetric in False, True:
        layer(f"dense_odd_{depth}_{asymmetric}", "FULLY_CONNECTED", "FullyConnectedOptions", (floats(3, depth), weights(7, depth), False), (3, 7), 12, 2e-6, asymmetricQuantizeInputs=asymmetric)
layer("conv_one_scale", "CONV_2D", "Conv2DOptions", (floats(2, 6, 6, 4), weights(6, 3, 3, 4, several=False), False), (2, 6, 6, 6), 7, 2e-6, strideH=1, strideW=1)
ids = np.array([1, 9, 0, 3, 3], np.int32)
for name, how in {"tensor": {"scale": scales(1)}, "rows": {"scale": scales(10)}, "blocks": {"blocks": scales(10, 2)}}.items():
    layer(f"embedding_{name}", "EMBEDDING_LOOKUP", None, (ids, lambda m: [int4(m, steps(10, 64), **how)], False), (5, 64), 4, 0)
    if name != "blocks":
        def table(m):
            return [m.const(random.integers(-127, 128, (10, 6)).astype(np.int8), zero=0, **how)]
        layer(f"embedding_int8_{name}", "EMBEDDING_LOOKUP", None, (ids, table, False), (5, 6), 3, 0)

check("LiteRT takes all of these", not unsupported, unsupported)

# exports
layers = {"w": floats(64, 96) / 8, "b": floats(96), "v": floats(96, 33) / 9, "k": floats(3, 3, 8, 24) / 8, "d": floats(3, 3, 24, 1) / 3}
module = tf.Module()
for name, value in layers.items():
    setattr(module, name, tf.Variable(value))
forms = {
    "dense": (lambda x: tf.matmul(tf.nn.relu(tf.matmul(x, module.w) + module.b), module.v), tf.TensorSpec((1, 64), name="x")),
    "convolutions": (lambda x: tf.nn.depthwise_conv2d(tf.nn.relu(tf.nn.conv2d(x, module.k, 1, "SAME")), module.d, [1, 1, 1, 1], "SAME"), tf.TensorSpec((1, 12, 12, 8), name="x")),
}


def graph(data):
    return fb.ModelT.InitFromObj(fb.Model.GetRootAs(data, 0)).subgraphs[0]


def step(data):
    """Of the only result, which the last operator makes floats of."""
    g = graph(data)
    (made,) = [op for op in g.operators if op.outputs[0] == g.outputs[0]]
    return g.tensors[made.inputs[0]].quantization.scale[0]


def types(data):
    tensors = graph(data).tensors
    return [t for t in tensors if t.type == fb.TensorType.INT4], [t for t in tensors if t.quantization is not None and t.quantization.detailsType == fb.QuantizationDetails.BlockwiseQuantization]


for name, (make, spec) in forms.items():
    if only not in f"export_{name}":
        continue
    run = tf.function(lambda x: {"y": make(x)}, input_signature=[spec])
    folder, samples = work / f"export_{name}", work / f"export_{name}.npz"
    tf.saved_model.save(module, str(folder), signatures=run)
    data = [floats(*spec.shape) for _ in range(4)]
    np.savez(samples, x=np.concatenate(data))
    loss = {}
    for form, flags in {"dynamic8": ["dynamic"], "dynamic4": ["dynamic", "--weight_bits", "4"], "blocks": ["dynamic", "--weight_bits", "4", "--block_size", "32"],
                        "int8": ["int8", "--representative", samples], "int4": ["int8", "--representative", samples, "--weight_bits", "4"]}.items():
        path = work / f"export_{name}_{form}.tflite"
        code, text = call("lite", folder, path, "--quantize", *flags)
        check(f"export_{name} {form}", code == 0, text)
        if code != 0:
            continue
        content = path.read_bytes()
        narrow, blockwise = types(content)
        check(f"export_{name} {form}: int4", bool(narrow) == (form in ("dynamic4", "blocks", "int4")), len(narrow))
        check(f"export_{name} {form}: blocks", bool(blockwise) == (form == "blocks" and name == "dense"), len(blockwise))
        wanted = np.stack([run(tf.constant(d))["y"].numpy() for d in data])
        got = [litert(content, {"x": d}, resolver="auto") for d in data]
        if any(isinstance(g, str) for g in got):
            check(f"export_{name} {form}: LiteRT", False, got[0])
            continue
        got = np.stack([g["y"] for g in got])
        loss[form] = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
        mine = smelt(f"export_{name}_{form}_run", content, {"x": data[0]})
        # Sums that are rounded in other ways are a step off, and so is what is made of these.
        most = 2 * step(content) if "int" in form else 1e-5 * np.abs(wanted).max()
        same = not isinstance(mine, str) and np.abs(mine["y"] - got[0]).max() <= most
        check(f"export_{name} {form}: smelt answers as LiteRT", same, mine if isinstance(mine, str) else np.abs(mine["y"] - got[0]).max())
        print(f"export_{name} {form}: loss {loss[form]:.4f}, {len(content)} bytes")
    check(f"export_{name}: losses", max(loss.values()) < 0.2, loss)
    if name == "dense":
        # A uniform step of 2/14 of the largest weight of some normal numbers leaves about a tenth; blocks have smaller largest ones.
        check("blocks lose less than rows", loss["blocks"] < loss["dynamic4"], loss)
finish()
