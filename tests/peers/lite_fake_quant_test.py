#!/usr/bin/env python3
"""Models that were trained with FakeQuant, beside TensorFlow's files: lite_fake_quant_test.py SMELT [NAME...]

The files of both are compared operator by operator (scales, zero points, constants), quantized by what the models state alone and with samples beside, and by LiteRT's answers. In float both keep the
roundings: there the answers are compared with those of the model."""
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from checks import call, check, finish
from lite_compare import compare_operators, operators

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_fake_quant_"))
random = np.random.default_rng(5)
MODELS = {}


def weights(*shape):
    return tf.constant(random.standard_normal(shape).astype(np.float32) * 0.5)


def rounded(x, low, high, bits=8, narrow=False):
    return tf.quantization.fake_quant_with_min_max_vars(x, low, high, num_bits=bits, narrow_range=narrow)


def by_tensor(w, bits=8, most=None):
    most = np.abs(w.numpy()).max() if most is None else most
    return rounded(w, -most, most, bits, True)


def by_channel(w, bits=8):
    most = np.abs(w.numpy()).max(axis=tuple(range(w.shape.rank - 1)))
    return tf.quantization.fake_quant_with_min_max_vars_per_channel(w, -most, most, num_bits=bits, narrow_range=True)


def conv(x, w, strides=1):
    return tf.nn.conv2d(x, w, strides, "SAME")


def model(*shape):
    def add(make):
        with tf.init_scope():
            MODELS[make.__name__] = (make(), shape)
    return add


@model(1, 8, 8, 3)
def conv_by_channel():
    w, b = weights(3, 3, 3, 8), weights(8)
    return lambda x: rounded(tf.nn.relu(conv(rounded(x, -1.0, 1.0), by_channel(w)) + b), 0.0, 6.0)


@model(1, 8, 8, 3)
def conv_by_tensor():
    w, b = weights(3, 3, 3, 8), weights(8)
    return lambda x: rounded(tf.nn.relu6(conv(rounded(x, -1.0, 1.0), by_tensor(w)) + b), 0.0, 6.0)


@model(1, 8, 8, 3)
def conv_with_normalization():
    w, scale, offset, mean, variance = weights(3, 3, 3, 8), 1 + weights(8) / 3, weights(8), weights(8), 1 + weights(8) ** 2

    def run(x):
        y = tf.compat.v1.nn.fused_batch_norm(conv(rounded(x, -1.0, 1.0), by_channel(w)), scale, offset, mean, variance, is_training=False)[0]
        return rounded(tf.nn.relu(y), 0.0, 6.0)
    return run


@model(1, 8, 8, 4)
def depthwise():
    w, b = weights(3, 3, 4, 1), weights(4)
    most = np.abs(w.numpy()).max(axis=(0, 1, 3))

    def run(x):
        k = tf.reshape(tf.quantization.fake_quant_with_min_max_vars_per_channel(tf.reshape(w, [3, 3, 1, 4]), -most, most, narrow_range=True), [3, 3, 4, 1])
        return rounded(tf.nn.relu(tf.nn.depthwise_conv2d(rounded(x, -1.0, 1.0), k, [1, 1, 1, 1], "SAME") + b), 0.0, 6.0)
    return run


@model(2, 16)
def dense():
    w, b, v = weights(16, 8), weights(8), weights(8, 4)

    def run(x):
        y = rounded(tf.nn.relu(tf.matmul(rounded(x, -2.0, 2.0), by_tensor(w)) + b), 0.0, 7.0)
        return rounded(tf.matmul(y, by_tensor(v)), -9.0, 9.0)
    return run


@model(2, 16)
def dense_by_args():
    w = weights(16, 8)
    rounding = tf.quantization.fake_quant_with_min_max_args
    return lambda x: rounding(tf.matmul(rounding(x, -2, 2), by_tensor(w)), -5, 5)


@model(2, 16)
def weights_in_a_wider_range():
    w = weights(16, 8)
    return lambda x: rounded(tf.matmul(rounded(x, -2.0, 2.0), by_tensor(w, most=3.0)), -5.0, 5.0)


@model(2, 16)
def weights_alone():
    w = weights(16, 8)
    return lambda x: tf.matmul(x, by_tensor(w))


@model(1, 8, 8, 4)
def narrow_activations():
    w = weights(3, 3, 4, 4)
    return lambda x: rounded(conv(rounded(x, -2.0, 2.0, narrow=True), by_channel(w)), -8.0, 8.0, narrow=True)


@model(1, 8, 8, 4)
def weights_in_six_bits():
    w = weights(3, 3, 4, 4)
    return lambda x: rounded(conv(rounded(x, -2.0, 2.0), by_channel(w, 6)), -8.0, 8.0)


@model(1, 8, 8, 4)
def residual():
    w, v = weights(3, 3, 4, 4), weights(1, 1, 8, 4)

    def run(x):
        x = rounded(x, -2.0, 2.0)
        y = rounded(conv(x, by_channel(w)), -8.0, 8.0)
        z = rounded(x + y, -9.0, 9.0)
        c = tf.nn.max_pool2d(rounded(tf.concat([z, y], 3), -9.0, 9.0), 2, 2, "VALID")
        d = rounded(conv(c, by_channel(v)), -10.0, 12.0)
        return tf.reshape(rounded(tf.reduce_mean(d, [1, 2]), -3.0, 3.0), [1, 2, 2])
    return run


@model(1, 8, 8, 4)
def concatenations():
    w = weights(3, 3, 4, 4)

    def run(x):
        x = rounded(x, -2.0, 2.0)
        y = rounded(conv(x, by_channel(w)), -8.0, 8.0)
        z = rounded(tf.nn.relu(y), 0.0, 8.5)
        a = rounded(tf.concat([rounded(x + y, -8.5, 8.0), rounded(x * y, -9.0, 9.5)], 3), -9.0, 9.0)
        b = tf.concat([z, y], 3)
        return rounded(tf.concat([tf.nn.max_pool2d(a, 2, 2, "SAME"), tf.nn.avg_pool2d(b, 2, 2, "SAME")], 3), -9.0, 9.0)
    return run


@model(1, 8, 8, 3)
def float_between():
    w, v = weights(3, 3, 3, 8), weights(3, 3, 8, 4)

    def run(x):
        y = rounded(tf.sin(rounded(conv(rounded(x, -1.0, 1.0), by_channel(w)), -6.0, 6.0)), -1.0, 1.0)
        y = tf.pad(tf.nn.avg_pool2d(y, 2, 2, "VALID"), [[0, 0], [1, 1], [1, 1], [0, 0]])
        return rounded(conv(rounded(tf.nn.softmax(y), 0.0, 1.0), by_channel(v)), -6.0, 6.0)
    return run


@model(1, 8, 8, 4)
def stated_behind_a_reshape():
    w = weights(3, 3, 4, 4)
    return lambda x: rounded(tf.reshape(conv(rounded(x, -2.0, 2.0), by_channel(w)), [1, 64, 4]), -8.0, 8.0)


@model(2, 16)
def part_of_a_model():
    w, v = weights(16, 64), weights(64, 64)
    return lambda x: tf.matmul(tf.sin(rounded(tf.matmul(rounded(x, -2.0, 2.0), by_tensor(w)), -5.0, 5.0)), v)


def answer(data, x):
    interpreter = Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


for name, (make, shape) in MODELS.items():
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    module = tf.Module()
    module.run = tf.function(lambda x: {"y": make(x)}, input_signature=[tf.TensorSpec(shape, name="x")])
    concrete = module.run.get_concrete_function()
    folder, samples, path = work / name, work / f"{name}.npz", work / f"{name}.tflite"
    tf.saved_model.save(module, str(folder), signatures=concrete)
    data = random.standard_normal((16, *shape)).astype(np.float32)
    if shape[0] == 1:
        np.savez(samples, x=data[:4, 0])
    wanted = [module.run(tf.constant(d))["y"].numpy() for d in data]
    code, text = call("lite", folder, path)
    check(f"{name}: export in float", code == 0, text)
    if code == 0:
        worst = max(np.abs(answer(path.read_bytes(), d) - w).max() / np.abs(w).max() for d, w in zip(data, wanted))
        # A value between two steps may go to either, by what a product's sum begins with.
        check(f"{name}: in float", worst < 0.01, worst)
    for mode in "stated", "dynamic", "samples":
        flags = ["--quantize", "dynamic" if mode == "dynamic" else "int8"]
        if mode == "samples":
            if shape[0] != 1:  # rows of samples are requests of batch 1
                continue
            flags += ["--representative", samples]
        if mode == "stated" and name == "weights_alone":
            code, text = call("lite", folder, path, *flags)
            check(f"{name}: nothing is stated of activations", code != 0 and "need --representative" in text, text)
            continue
        code, text = call("lite", folder, path, *flags)
        check(f"{name} {mode}: export", code == 0, text)
        if code != 0:
            continue
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if mode == "samples":
            converter.representative_dataset = lambda: ([d] for d in data[:4])
        ours, theirs = path.read_bytes(), converter.convert()
        if name == "weights_in_six_bits":
            # TensorFlow rounds them once more, to the steps of 8 bits; smelt keeps those of training.
            (mine,), (his,) = ([o for o in operators(x) if o[0] == "CONV_2D"] for x in (ours, theirs))
            check(f"{name} {mode}: steps", np.allclose(mine[2][1][1] * 31, his[2][1][1] * 127, rtol=1e-5), f"{mine[2][1][1]} beside {his[2][1][1]}")
        else:
            compare_operators(f"{name} {mode}", ours, theirs, "int8")
        mine, his = (np.concatenate([answer(x, d) for d in data]) for x in (ours, theirs))
        whole = np.concatenate(wanted)
        loss, beside = (np.linalg.norm(x - whole) / np.linalg.norm(whole) for x in (mine, his))
        print(f"{name} {mode}: loss {loss:.5f} beside TensorFlow's {beside:.5f}; {len(ours)} bytes beside {len(theirs)}; {len(operators(ours))} operators beside {len(operators(theirs))}")
        check(f"{name} {mode}: loss", loss <= max(1.05 * beside, 1e-4), f"{loss} beside {beside}")
        check(f"{name} {mode}: bytes", len(ours) <= len(theirs), f"{len(ours)} beside {len(theirs)}")
finish()
