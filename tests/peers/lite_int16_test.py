#!/usr/bin/env python3
"""Operators in int16 and int8 that LiteRT runs, and attention under masks: lite_int16_test.py SMELT

Each op is exported by smelt under --quantize int16x8, and LiteRT is to answer near TensorFlow: an operator without such a kernel is float there. Then attention whose masks are -1e9, of both modes."""
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

from checks import call, check, finish
from lite_process import litert_answers

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_int16_"))
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4, 4, 4)).astype(np.float32)
ALPHA = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
OPS = {
    "prelu": lambda x: tf.nn.relu(x) - ALPHA * tf.nn.relu(-x), "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.3), "hard_swish": lambda x: x * tf.nn.relu6(x + 3) / 6, "elu": tf.nn.elu,
    "relu": tf.nn.relu, "relu6": tf.nn.relu6, "relu_n1_to_1": lambda x: tf.minimum(tf.maximum(x, -1.0), 1.0), "relu_0_to_1": lambda x: tf.minimum(tf.maximum(x, 0.0), 1.0), "abs": tf.abs,
    "logistic": tf.sigmoid, "softmax": tf.nn.softmax, "tanh": tf.tanh, "l2": lambda x: tf.math.l2_normalize(x, -1), "log_softmax": tf.nn.log_softmax,
    "average_pool": lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), "max_pool": lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), "space_to_depth": lambda x: tf.nn.space_to_depth(x, 2),
    "depth_to_space": lambda x: tf.nn.depth_to_space(x, 2), "arg_max": lambda x: tf.argmax(x, -1), "arg_min": lambda x: tf.argmin(x, -1), "mirror_pad": lambda x: tf.pad(x, [[0, 0], [1, 1], [0, 0], [0, 0]], "REFLECT"),
    "squared_difference": lambda x: tf.math.squared_difference(x, tf.reverse(x, [1])), "top_k": lambda x: tf.math.top_k(x, 2)[0], "batch_matmul": lambda x: tf.matmul(x, x, transpose_b=True),
    # Operands whose difference is finer than any step of theirs, which LiteRT is to take, and zeros beside numbers.
    "cancelled": lambda x: x * 1e5 + x * -100000.0078125, "zeros": lambda x: tf.tanh(x) + (x - x) * 3.0,
}


def export(name, f, spec, samples, mode):
    """The answers of LiteRT to all samples, and TensorFlow's."""
    module = tf.Module()
    module.f = tf.function(lambda **x: {"y": f(**x)})
    path, file = work / name, work / f"{name}_{mode}.tflite"
    if not path.exists():
        tf.saved_model.save(module, str(path), signatures=module.f.get_concrete_function(**spec))
        np.savez(work / f"{name}.npz", **samples)
    code, text = call("lite", path, file, "--quantize", mode, "--representative", work / f"{name}.npz")
    if code != 0:
        return text, None
    requests = [{k: v[i:i + 1] for k, v in samples.items()} for i in range(12)]
    got = litert_answers([(file, [("serving_default", r) for r in requests])])[0]
    refused = next((g for g in got if isinstance(g, str)), None)
    want = [module.f(**{k: tf.constant(v) for k, v in r.items()})["y"].numpy() for r in requests]
    return refused or [g["y"] for g in got], want


def off(got, want):
    return max(float(np.abs(g.astype(float) - w).max()) for g, w in zip(got, want)) / max(max(float(np.abs(w).max()) for w in want), 1e-6)


for name, f in OPS.items():
    got, want = export(name, lambda x, f=f: f(x), {"x": tf.TensorSpec([1, 4, 4, 4], tf.float32, name="x")}, {"x": X}, "int16x8")
    check(f"{name} in int16x8", not isinstance(got, str) and off(got, want) < (2 if name == "cancelled" else 1e-3), got if isinstance(got, str) else off(got, want))

W = rng.normal(size=(8, 8)).astype(np.float32)
ROWS = {"x": rng.normal(size=(40, 4, 8)).astype(np.float32), "m": (rng.random((40, 4)) > 0.3).astype(np.float32)}
ROWS["m"][:, 0] = 1
HIDDEN = np.array([[0], [0], [np.finfo(np.float32).min], [0]], np.float32) * np.ones((1, 4), np.float32)
CAUSAL = (1 - np.tril(np.ones((4, 4), np.float32))) * np.float32(-1e9)


def added(x, m):
    scores = tf.matmul(tf.matmul(x, W), x, transpose_b=True)
    return tf.matmul(tf.nn.softmax(scores + (1 - m)[:, None, :] * -1e9 + CAUSAL), x)


def chosen(x, m):
    scores = tf.matmul(tf.matmul(x, W), x, transpose_b=True)
    return tf.matmul(tf.nn.softmax(tf.where(m[:, None, :] > 0.5, scores, -1e9)), x)


def constant(x, m):
    scores = tf.matmul(tf.matmul(x, W), x, transpose_b=True)
    return tf.matmul(tf.nn.softmax(scores + CAUSAL), x) + m[:, :, None]


def hidden(x, m):
    """Of a row that is hidden whole, floats keep nothing but the mask: all shares are one."""
    scores = tf.matmul(tf.matmul(x, W), x, transpose_b=True)
    return tf.nn.softmax(scores + HIDDEN) + m[:, :, None]


SPEC = {"x": tf.TensorSpec([1, 4, 8], tf.float32, name="x"), "m": tf.TensorSpec([1, 4], tf.float32, name="m")}
for name, f in {"added": added, "chosen": chosen, "constant": constant, "hidden": hidden}.items():
    for mode, most in {"int16x8": 0.04, "int8": 0.25}.items():
        got, want = export(name, f, SPEC, ROWS, mode)
        check(f"a mask that is {name}, {mode}", not isinstance(got, str) and off(got, want) < most, got if isinstance(got, str) else off(got, want))
finish()
