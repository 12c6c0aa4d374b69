#!/usr/bin/env python3
"""Fusions of smelt lite against TensorFlow: lite_fusions_test.py SMELT

Each function below spells something that is one operator, as TensorFlow, Keras, PyTorch's and JAX's exporters do. All are signatures of one
SavedModel; LiteRT runs smelt's file on ordinary numbers and on numbers that a fusion could treat otherwise (infinities, NaN, zeros, large and tiny
ones), and must answer as TensorFlow does. The operators that each has in the file are stated too."""
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from tensorflow.lite.python import schema_py_generated as schema

from checks import call, check, finish

rng = np.random.default_rng(7)
f32 = lambda *shape: rng.normal(size=shape).astype(np.float32)
OPS = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}

# name: (function, input shape, operators of the file, what special values may differ in)
CASES = {}


def case(shape, ops, differs=()):
    def add(f):
        CASES[f.__name__] = (f, shape, ops, differs)
        return f
    return add


V = [None, 8]
IMAGE = [2, 8, 8, 4]
W4 = f32(3, 3, 4, 6)
D4 = f32(3, 3, 4, 1)
M = f32(8, 5)


@case(V, ["GELU"])
def gelu_erf(x): return 0.5 * x * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2))))
@case(V, ["GELU"])
def gelu_erf_torch(x): return x * 0.5 * (1.0 + tf.math.erf(x * np.float32(0.7071067811865476)))
@case(V, ["GELU"])
def gelu_erf_jax(x): return x * (tf.math.erf(x / np.float32(np.sqrt(2))) + 1.0) / 2.0
@case(V, ["GELU"])
def gelu_erfc(x): return 0.5 * x * tf.math.erfc(-x * np.float32(0.7071067811865476))
@case(V, ["GELU"])
def gelu_nn(x): return tf.nn.gelu(x)
@case(V, ["GELU"])
def gelu_nn_tanh(x): return tf.nn.gelu(x, approximate=True)
@case(V, ["GELU"])
def gelu_tanh_cubes(x): return 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
@case(V, ["GELU"])
def gelu_tanh_fast(x): return 0.5 * x * (1.0 + tf.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))
@case(V, ["SQUARE", "MUL", "MUL", "MUL", "ADD", "MUL", "TANH", "ADD", "MUL"])
def gelu_of_another_constant(x): return 0.5 * x * (1.0 + tf.tanh(0.81 * (x + 0.044715 * x * x * x)))
@case(V, ["HARD_SWISH"])
def hard_swish_keras(x): return x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0)
@case(V, ["HARD_SWISH"])
def hard_swish_divided(x): return x * (tf.nn.relu6(x + 3.0) / 6.0)
@case(V, ["HARD_SWISH"])
def hard_swish_rounded(x): return x * tf.nn.relu6(x + 3.0) * 0.16667
@case(V, ["HARD_SWISH"])
def hard_swish_clipped(x): return x * tf.clip_by_value(x + 3.0, 0.0, 6.0) / 6.0
@case(V, ["RELU6"])
def clamp_6(x): return tf.minimum(tf.maximum(x, 0.0), 6.0)
@case(V, ["RELU_N1_TO_1"])
def clamp_1(x): return tf.maximum(tf.minimum(x, 1.0), -1.0)
@case(V, ["RELU_0_TO_1"])
def clamp_01(x): return tf.clip_by_value(x, 0.0, 1.0)
@case(V, ["LEAKY_RELU"])
def leaky_max(x): return tf.maximum(x, 0.1 * x)
@case(V, ["LEAKY_RELU"])
def leaky_where(x): return tf.where(x > 0.0, x, 0.3 * x)
@case(V, ["LEAKY_RELU"])
def leaky_two(x): return tf.nn.relu(x) - 0.2 * tf.nn.relu(-x)
@case(V, ["PRELU"])
def prelu_keras(x): return tf.nn.relu(x) + (-np.abs(M[:, 0]).astype(np.float32)) * tf.nn.relu(-x)
@case(V, ["LOGISTIC"])
def sigmoid_spelled(x): return 1.0 / (1.0 + tf.exp(-x))
@case(V, ["L2_NORMALIZATION"])
def l2_nn(x): return tf.nn.l2_normalize(x, axis=-1)
@case(V, ["L2_NORMALIZATION"], ("zero", "tiny"))  # 0 / 0 there
def l2_unguarded(x): return x * tf.math.rsqrt(tf.reduce_sum(x * x, axis=1, keepdims=True))
@case(V, ["SOFTMAX"])
def softmax_spelled(x):
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)
@case(V, ["SOFTMAX"], ("large", "inf"))  # exp overflows there, and the operator does not
def softmax_unshifted(x):
    e = tf.exp(x)
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)
@case(V, ["LOG_SOFTMAX"])
def log_softmax_spelled(x):
    d = x - tf.reduce_max(x, axis=-1, keepdims=True)
    return d - tf.math.log(tf.reduce_sum(tf.exp(d), axis=-1, keepdims=True))
@case(V, ["SQUARED_DIFFERENCE"])
def squares_of_differences(x): return tf.square(x - M[:, 1])
@case(V, ["SUM"])
def kept_by_reshape(x): return tf.expand_dims(tf.reduce_sum(x, axis=1), 1)
@case([2, 3, 8], ["FULLY_CONNECTED"])
def dense_of_rows(x): return tf.reshape(tf.matmul(tf.reshape(x, [-1, 8]), M), [2, 3, 5]) + M[0]
@case(IMAGE, ["CONV_2D"])
def conv_bn_before(x): return tf.nn.conv2d(x * f32(4) + f32(4), W4, 1, "VALID")
@case(IMAGE, ["ADD", "CONV_2D"])
def conv_padded_sum_before(x): return tf.nn.conv2d(x + f32(4), W4, 1, "SAME")
@case(IMAGE, ["CONV_2D"])
def conv_padded_factor_before(x): return tf.nn.conv2d(x * f32(4), W4, 1, "SAME")
@case(IMAGE, ["DEPTHWISE_CONV_2D"])
def depthwise_all_around(x): return tf.nn.relu6((tf.nn.depthwise_conv2d(x * f32(4) - f32(4), D4, [1, 1, 1, 1], "VALID") + f32(4)) * f32(4))
@case(IMAGE, ["CONV_2D"])
def conv_padded_as_same(x): return tf.nn.conv2d(tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]]), W4, 2, "VALID")
@case(IMAGE, ["PAD", "CONV_2D"])
def conv_padded_otherwise(x): return tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), W4, 2, "VALID")
@case(IMAGE, ["CONV_2D"])
def conv_dilated_in_blocks(x):
    blocks = tf.raw_ops.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 2], [2, 2]])
    return tf.raw_ops.BatchToSpaceND(input=tf.nn.conv2d(blocks, W4, 1, "VALID"), block_shape=[2, 2], crops=[[0, 0], [0, 0]])
@case(IMAGE, ["CONV_2D", "CONV_2D", "ADD"])
def residual(x):
    return tf.nn.relu(tf.nn.conv2d(x, f32(1, 1, 4, 4), 1, "SAME") * f32(4) + f32(4) + (tf.nn.conv2d(x, f32(1, 1, 4, 4), 1, "SAME") * f32(4) + f32(4)))
@case([2, 16, 4], ["EXPAND_DIMS", "CONV_2D", "SQUEEZE"])
def conv1d_biased(x): return tf.nn.relu(tf.nn.conv1d(x, f32(3, 4, 6), 1, "SAME") + f32(6))
@case(IMAGE, ["RELU", "LOGISTIC", "ADD"])
def transposes_meet(x):
    t = tf.transpose(x, [0, 3, 1, 2])
    return tf.transpose(tf.nn.relu(t) + tf.sigmoid(t), [0, 2, 3, 1])
@case(IMAGE, ["PAD", "MEAN"])
def transpose_past_mean(x): return tf.reduce_mean(tf.pad(tf.transpose(x, [0, 3, 1, 2]), [[0, 0], [0, 0], [1, 1], [2, 0]]), axis=[2, 3])
@case(IMAGE, ["BATCH_MATMUL"])
def matmul_transposed(x): return tf.matmul(x, tf.transpose(x, [0, 1, 3, 2]))
@case([6, 4], ["RELU"])
def cut_and_joined(x): return tf.nn.relu(tf.concat(tf.split(x, 2, axis=1), axis=1) * 1.0 + 0.0)
@case([4, 6], ["MUL"])
def constants_together(x): return (x * 0.5) * f32(6) / 3.0


def special(shape, kind):
    shape = [4 if s is None else s for s in shape]
    pool = {"ordinary": None, "zero": [0.0, -0.0], "large": [1e20, -1e20, 3.0, -2.0, 200.0, -200.0], "tiny": [1e-30, -1e-30, 1e-12], "inf": [np.inf, -np.inf, 1.0, -1.0],
            "nan": [np.nan, 1.0, -1.0, 7.0]}[kind]
    if pool is None:
        return (3 * f32(*shape)).astype(np.float32)
    return rng.choice(np.array(pool, np.float32), size=shape)


def main():
    module = tf.Module()
    signatures = {}
    for name, (f, shape, _, _) in CASES.items():
        signatures[name] = tf.function(lambda x, f=f: {"y": f(x)}, input_signature=[tf.TensorSpec(shape, tf.float32, name="x")]).get_concrete_function()
    with tempfile.TemporaryDirectory() as work:
        tf.saved_model.save(module, f"{work}/model", signatures=signatures)
        code, text = call("lite", f"{work}/model", f"{work}/model.tflite", "--explain")
        check("export", code == 0, text)
        if code:
            return finish()
        loaded = tf.saved_model.load(f"{work}/model")
        bytes_ = open(f"{work}/model.tflite", "rb").read()
        model = schema.Model.GetRootAs(bytes_, 0)
        kinds = {}
        for i in range(model.SignatureDefsLength()):
            s = model.SignatureDefs(i)
            g = model.Subgraphs(s.SubgraphIndex())
            codes = [model.OperatorCodes(g.Operators(j).OpcodeIndex()) for j in range(g.OperatorsLength())]
            kinds[s.SignatureKey().decode()] = [OPS[max(c.BuiltinCode(), c.DeprecatedBuiltinCode())] for c in codes]
        interpreter = Interpreter(model_content=bytes_)
        for name, (f, shape, ops, differs) in CASES.items():
            check(f"operators of {name}", sorted(kinds[name]) == sorted(ops), f"{kinds[name]}, wanted {ops}")
            for kind in ("ordinary", "zero", "tiny", "large", "inf", "nan"):
                if kind in differs:
                    continue
                x = special(shape, kind)
                want = loaded.signatures[name](x=tf.constant(x))["y"].numpy()
                got = interpreter.get_signature_runner(name)(x=x)["y"]
                same = got.shape == want.shape and np.array_equal(np.isnan(got), np.isnan(want)) and np.allclose(
                    np.nan_to_num(got, nan=0), np.nan_to_num(want, nan=0), rtol=1e-4, atol=1e-5 * max(1, np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)))))
                check(f"{name} of {kind} numbers", same, f"x {x.ravel()[:6]} got {got.ravel()[:6]} want {want.ravel()[:6]}")
    finish()


main()
