#!/usr/bin/env python3
"""Fusions of smelt lite against TensorFlow: lite_fusions_test.py SMELT

Each function below spells something that is one operator, as TensorFlow, Keras, PyTorch's and JAX's exporters do. All are signatures of one
SavedModel; LiteRT runs smelt's file on ordinary numbers and on numbers that a fusion could treat otherwise (infinities, NaN, zeros, large and tiny
ones), and must answer as TensorFlow does. The operators that each has in the file are stated too. TensorFlow's own converter writes as many operators or more for each, but for those
that MORE_THAN_TENSORFLOW lists with the reason."""
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
MORE_THAN_TENSORFLOW = {"unpacked_and_joined_elsewhere": "it writes a reshape, whose elements are in another order than the model's"}


def case(shape, ops, differs=(), dtype=tf.float32):
    def add(f):
        CASES[f.__name__] = (f, shape, ops, differs, dtype)
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
@case(IMAGE, ["BATCH_MATMUL"], ("large",))  # sums of infinities of both signs, by their order
def matmul_transposed(x): return tf.matmul(x, tf.transpose(x, [0, 1, 3, 2]))
@case([6, 4], ["RELU"])
def cut_and_joined(x): return tf.nn.relu(tf.concat(tf.split(x, 2, axis=1), axis=1) * 1.0 + 0.0)
@case([4, 6], ["MUL"])
def constants_together(x): return (x * 0.5) * f32(6) / 3.0

INT = dict(dtype=tf.int32)


@case([3, 8], ["ARG_MAX"], ("tiny", "large", "inf", "nan"))  # rows of equal softmax: the first of them there, the greatest here
def arg_max_of_softmax(x): return tf.argmax(tf.nn.softmax(x), axis=-1)
@case([3, 8], ["ARG_MIN"], ("tiny", "large", "inf", "nan"))
def arg_min_of_softmax(x): return tf.argmin(tf.nn.softmax(x), axis=1, output_type=tf.int32)
@case([3, 8], ["ARG_MAX"], ("tiny", "large", "inf", "nan"))
def arg_max_of_log_softmax(x): return tf.argmax(tf.nn.log_softmax(x), axis=-1)
@case([3, 8], ["SOFTMAX", "ARG_MAX"], ("inf", "nan"))
def arg_max_across_softmax(x): return tf.argmax(tf.nn.softmax(x), axis=0)
@case([3, 8], ["ABS"])
def select_true(x): return tf.where(tf.constant([True] * 8), tf.abs(x), x)
@case([3, 8], ["MUL"])
def select_false(x): return tf.where(tf.fill([3, 8], False), x, x * 2.0)
@case([4], ["ONE_HOT"], **INT)
def one_hot_spelled(x): return tf.cast(tf.equal(tf.range(10)[None, :], tf.expand_dims(x, -1)), tf.float32)
@case([4], ["ONE_HOT"], **INT)
def one_hot_spelled_bools(x): return tf.equal(x[:, None], tf.range(6))
@case([None, 3], ["ONE_HOT"], **INT)
def one_hot_free_batch(x): return tf.cast(tf.equal(tf.expand_dims(x, -1), tf.range(6)), tf.float32)
@case([4], ["RESHAPE", "ONE_HOT"], **INT)
def one_hot_reshaped(x): return tf.cast(tf.equal(tf.reshape(x, [2, 2, 1]), tf.range(6)), tf.float32)
@case([4], ["EXPAND_DIMS", "EQUAL"], **INT)
def one_hot_from_one(x): return tf.equal(tf.expand_dims(x, -1), tf.range(1, 7))
@case([4], ["ONE_HOT"], **INT)
def one_hot_cast(x): return tf.cast(tf.one_hot(x, 10, on_value=7, off_value=-1, dtype=tf.int32), tf.float32)
@case([4], ["ONE_HOT", "CAST"], **INT)
def one_hot_cast_and_read(x):
    y = tf.one_hot(x, 10, dtype=tf.int32)
    return tf.cast(y, tf.float32), y
@case([4, 8], ["SLICE"])
def sliced_by_ones(x): return x[1:3, 2:-1]
@case([None, 8], ["SLICE"])
def sliced_free_batch(x): return x[:, 2:5]
@case([None, 8], ["STRIDED_SLICE"])
def sliced_rows_of_free_batch(x): return x[1:3]
@case([4, 8], ["STRIDED_SLICE"])
def sliced_by_twos(x): return x[:, ::2]
@case([4, 8], ["RESHAPE"])
def sliced_new_axis(x): return x[:, None, :, None]
@case([6, 4], ["SLICE"])
def gathered_neighbors(x): return tf.gather(x, [1, 2, 3])
@case([6, 4], ["SLICE"])
def gathered_neighbors_nd(x): return tf.gather_nd(x, [[1], [2], [3]])
@case([6, 4], ["GATHER"])
def gathered_others(x): return tf.gather(x, [1, 3, 2])
@case([3, 1], ["ADD"])
def tiled_before_sum(x): return tf.tile(x, [1, 8]) + f32(3, 8)
@case([3, 1], ["MUL"])
def tiled_before_product(x): return tf.tile(x, [1, 8]) * f32(1, 8)
@case([3, 2], ["TILE", "MUL"])
def tiled_twice_before_product(x): return tf.tile(x, [1, 4]) * f32(1, 8)
@case([1, 8], ["MUL"])
def broadcast_before_product(x): return tf.broadcast_to(x, [3, 8]) * f32(3, 8)
@case([1, 8], ["BROADCAST_TO", "MUL"])
def broadcast_that_spreads(x): return tf.broadcast_to(x, [3, 8]) * 2.0
@case([2, 3, 4], ["RESHAPE"])
def unpacked_and_joined(x): return tf.concat(tf.unstack(x, axis=1), axis=1)
@case([2, 3, 4], ["UNPACK", "CONCATENATION"])
def unpacked_and_joined_elsewhere(x): return tf.concat(tf.unstack(x, axis=1), axis=0)
@case([4, 8], ["TOPK_V2"], ("nan",))
def top_of_top(x): return tf.math.top_k(x, 8)[0][:, :3]
@case([4, 8], ["TOPK_V2"], ("nan",))
def top_of_top_both(x):
    values, indices = tf.math.top_k(x, 8)
    return values[:, :3], indices[:, :3]
@case([4, 8], ["TOPK_V2", "SLICE"], ("nan",))
def top_not_from_first(x): return tf.math.top_k(x, 8)[0][:, 1:3]
@case(V, ["RELU"])
def relu_of_relu(x): return tf.nn.relu(tf.nn.relu(x))
@case(V, ["RELU6"])
def relu6_of_relu(x): return tf.nn.relu6(tf.nn.relu(x))
@case(IMAGE, ["CONV_2D"])
def relu6_of_relu_of_conv(x): return tf.nn.relu6(tf.nn.relu(tf.nn.conv2d(x, W4, 1, "SAME")))
@case([3, 1, 8], ["RESHAPE"])
def transpose_of_ones(x): return tf.transpose(x, [1, 0, 2])
@case([3, 8], [])
def transpose_between_reshapes(x): return tf.reshape(tf.transpose(tf.reshape(x, [3, 8, 1]), [0, 2, 1]), [3, 8])
@case([3, 2, 8], ["TRANSPOSE"])
def transpose_of_more(x): return tf.transpose(x, [1, 0, 2])
@case([3, 8], ["FULLY_CONNECTED"])
def dense_transposed(x): return tf.transpose(tf.matmul(M.T.copy(), tf.transpose(x)))
@case([3, 8], ["L2_NORMALIZATION"], ("zero", "tiny"))
def l2_sum_of_epsilon(x): return x * tf.math.rsqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True) + 1e-12)
@case([3, 8], ["SQUARE", "SUM", "ADD", "RSQRT", "MUL"])
def l2_of_another_epsilon(x): return x * tf.math.rsqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True) + 1e-3)
@case([8], ["L2_NORMALIZATION"], ("zero", "tiny"))
def l2_of_a_vector(x): return x * tf.math.rsqrt(tf.reduce_sum(tf.square(x)))
@case([1, 16, 4], ["RESHAPE", "CONV_2D", "RESHAPE"])
def conv_1d_dilated_in_blocks(x):
    y = tf.space_to_batch_nd(x, [2], [[2, 2]])
    y = tf.squeeze(tf.nn.conv2d(tf.expand_dims(y, 1), f32(1, 3, 4, 6), 1, "VALID"), [1])
    return tf.raw_ops.BatchToSpaceND(input=y, block_shape=[2], crops=[[0, 0]])
@case(V, ["POW"])
def cube(x): return x ** 3.0
@case(IMAGE, ["RESIZE_NEAREST_NEIGHBOR"])
def upscaled_by_tile(x): return tf.reshape(tf.tile(tf.reshape(x, [2, 8, 1, 8, 1, 4]), [1, 1, 2, 1, 4, 1]), [2, 16, 32, 4])
@case(IMAGE, ["RESIZE_NEAREST_NEIGHBOR"])
def upscaled_by_broadcast(x): return tf.reshape(tf.broadcast_to(tf.reshape(x, [2, 8, 1, 8, 1, 4]), [2, 8, 2, 8, 2, 4]), [2, 16, 16, 4])
@case(IMAGE, ["RESIZE_NEAREST_NEIGHBOR"])
def upscaled_by_gather(x): return tf.gather(tf.gather(x, np.repeat(np.arange(8), 2), axis=1), np.repeat(np.arange(8), 2), axis=2)
@case(IMAGE, ["RESIZE_NEAREST_NEIGHBOR"])
def upscaled_by_stack(x): return tf.reshape(tf.stack([x, x], axis=3), [2, 8, 16, 4])
@case([8, 1, 8, 4], ["RESHAPE", "RESIZE_NEAREST_NEIGHBOR"])
def upscaled_in_turn(x):
    twice = np.repeat(np.arange(8), 2)[:, None]
    return tf.transpose(tf.gather_nd(tf.transpose(tf.gather_nd(x, twice), [2, 1, 0, 3]), twice), [1, 2, 0, 3])
@case(IMAGE, ["GATHER"])
def upscaled_by_three(x): return tf.gather(x, np.repeat(np.arange(8), 3), axis=1)
@case(IMAGE, ["CONV_2D"])
def conv_strided(x): return tf.nn.relu(tf.nn.conv2d(x, W4, [1, 2, 3, 1], "SAME") * f32(6))
@case(IMAGE, ["DEPTHWISE_CONV_2D"])
def depthwise_strided(x): return tf.nn.depthwise_conv2d(x * f32(4), D4, [1, 2, 2, 1], "SAME")
@case([2, 8, 8, 8, 1], ["CONV_3D"], ("inf", "nan"))  # its kernel clamps NaN to the largest float
def conv_3d_padded_as_same(x): return tf.nn.conv3d(tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 1], [0, 0]]), f32(3, 3, 3, 1, 2), [1, 2, 2, 2, 1], "VALID")
@case([2, 3, 4], ["BATCH_MATMUL"], ("large",))
def matmul_then_transposed(x): return tf.transpose(tf.matmul(x, x, transpose_b=True), [0, 2, 1])
@case([2, 3, 4], ["SUM"])
def sum_of_sums(x): return tf.reduce_sum(tf.reduce_sum(x, axis=2), axis=0)
@case([2, 3, 4], ["MEAN"], ("large",))  # sums that overflow
def mean_of_means(x): return tf.reduce_mean(tf.reduce_mean(x, axis=1, keepdims=True), axis=2, keepdims=True)
@case([2, 1, 4], ["NEG"])
def sum_over_one(x): return -tf.reduce_sum(x, axis=1, keepdims=True)
@case([3, 8], ["ELU"])
def elu_jax(x): return tf.where(x > 0, x, tf.math.expm1(tf.where(x > 0, 0.0, x)))
@case([3, 8], ["SOFTMAX"], ("inf",))  # of rows that are all infinite
def softmax_jax(x): return tf.nn.softmax(x - tf.reshape(tf.maximum(tf.reduce_max(x, axis=1), -np.inf), [3, 1]))
@case([3, 8], ["GREATER", "LOGICAL_NOT"])
def bool_is_zero(x): return tf.equal(tf.cast(x > 0, tf.float32), 0.0)
@case([3, 1], ["MUL"])
def product_of_one(x): return tf.matmul(x, f32(1, 5))
@case([3, 1], ["FULLY_CONNECTED"])
def product_of_one_biased(x): return tf.matmul(x, f32(1, 5)) + f32(5)
@case(IMAGE, ["MEAN", "SQUARED_DIFFERENCE", "MEAN", "ADD", "RSQRT", "MUL", "SUB", "MUL", "ADD"], ("large", "inf", "nan"))  # variances that are infinite
def batch_norm_training(x): return tf.compat.v1.nn.fused_batch_norm(x, f32(4), f32(4), is_training=True)[0]


@case([1, 8], ["SUB", "BROADCAST_TO", "LESS"])
def broadcast_before_comparison(x): return tf.broadcast_to(x - 1.0, [3, 8]) < f32(3, 8) * 0.0 + x
@case([None, 8], ["ADD"])
def filled_before_sum(x): return x + tf.fill(tf.shape(x), 2.0)
@case([None, 8], ["SUM", "SHAPE", "FILL", "ADD"], ("large",))  # sums of infinities of both signs, by their order
def filled_that_spreads(x): return tf.reduce_sum(x, 1, keepdims=True) + tf.fill(tf.stack([tf.shape(x)[0], 8]), 2.0)
@case([4, 8], ["GREATER", "SELECT_V2"])
def choice_of_many(x): return tf.where(x > 0.0, x, tf.fill([4, 8], 7.0))
@case([1, 8], ["EXP", "BROADCAST_TO"], ("nan",))  # its kernel gives 0 for NaN, of few elements
def broadcast_before_exp(x): return tf.exp(tf.broadcast_to(x, [3, 8]))
@case([4, 3], ["RELU"])
def scattered_in_order(x): return tf.nn.relu(tf.scatter_nd([[0], [1], [2], [3]], x, [4, 3]))
@case([4, 3], ["SCATTER_ND"])
def scattered_otherwise(x): return tf.scatter_nd([[1], [0], [2], [3]], x, [4, 3])
@case([6, 4], ["TRANSPOSE"])
def reshapes_around_transpose(x): return tf.reshape(tf.transpose(tf.reshape(x, [2, 3, 4]), [2, 0, 1]), [4, 6])
@case([2, 12], ["RESHAPE", "TRANSPOSE", "RESHAPE"])
def reshapes_around_transpose_mixed(x): return tf.reshape(tf.transpose(tf.reshape(x, [4, 6])), [3, 8])
@case([2, 3, 4], ["RESHAPE"])
def transposes_around_reshape(x): return tf.transpose(tf.reshape(tf.transpose(x, [2, 0, 1]), [4, 6]))
@case([1, 12, 8], ["FULLY_CONNECTED"], ("large",))
def product_turned(x): return tf.transpose(tf.reshape(tf.matmul(M, tf.reshape(tf.transpose(x, [2, 0, 1]), [8, 12]), transpose_a=True), [5, 1, 12]), [1, 2, 0])
@case([8, 4, 6], ["RESHAPE", "BATCH_MATMUL"], ("large",))
def operand_turned(x): return tf.matmul(tf.reshape(x, [8, 24]), tf.reshape(tf.transpose(x, [1, 2, 0]), [24, 8]))
@case([1, 12, 4, 2], ["RESHAPE", "FULLY_CONNECTED"], ("large",))
def rows_joined_around_product(x): return tf.reshape(tf.matmul(tf.reshape(x, [12, 8]), M), [1, 12, 5])
@case([None, 4, 8], ["FULLY_CONNECTED"], ("large",))
def free_rows_around_product(x): return tf.reshape(tf.matmul(tf.reshape(x, [-1, 8]), M), [-1, 4, 5])
@case([3, 8], ["BATCH_MATMUL"], ("large",))
def product_of_itself(x): return tf.matmul(x, x, transpose_a=True)
@case([9, 5], ["GATHER", "CAST"], **INT)
def cast_before_gather(x): return tf.gather(tf.cast(x, tf.float32), [4, 2])
@case([1, None, None, 4], ["CONV_2D"], ("large",))
def conv_dilated_in_blocks_of_free_sizes(x):
    blocks = tf.raw_ops.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 2], [2, 2]])
    return tf.raw_ops.BatchToSpaceND(input=tf.nn.conv2d(blocks, W4, 1, "VALID"), block_shape=[2, 2], crops=[[0, 0], [0, 0]])


def special(shape, kind, dtype=tf.float32):
    shape = [4 if s is None else s for s in shape]
    if dtype == tf.int32:
        return rng.integers(-2, 8, size=shape).astype(np.int32)
    pool = {"ordinary": None, "zero": [0.0, -0.0], "large": [1e20, -1e20, 3.0, -2.0, 200.0, -200.0], "tiny": [1e-30, -1e-30, 1e-12], "inf": [np.inf, -np.inf, 1.0, -1.0],
            "nan": [np.nan, 1.0, -1.0, 7.0]}[kind]
    if pool is None:
        return (3 * f32(*shape)).astype(np.float32)
    return rng.choice(np.array(pool, np.float32), size=shape)


def close(got, want):
    if want.dtype != np.float32:
        return np.array_equal(got, want)
    return np.array_equal(np.isnan(got), np.isnan(want)) and np.allclose(
        np.nan_to_num(got, nan=0), np.nan_to_num(want, nan=0), rtol=1e-4, atol=1e-5 * max(1, np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)))))


def operators(bytes_):
    """The operators of each signature."""
    model = schema.Model.GetRootAs(bytes_, 0)
    kinds = {}
    for i in range(model.SignatureDefsLength()):
        s = model.SignatureDefs(i)
        g = model.Subgraphs(s.SubgraphIndex())
        codes = [model.OperatorCodes(g.Operators(j).OpcodeIndex()) for j in range(g.OperatorsLength())]
        kinds[s.SignatureKey().decode()] = [OPS[max(c.BuiltinCode(), c.DeprecatedBuiltinCode())] for c in codes]
    return kinds


def main():
    module = tf.Module()
    signatures = {}
    for name, (f, shape, _, _, dtype) in CASES.items():
        def signature(x, f=f):
            y = f(x)
            return {f"y{i}": v for i, v in enumerate(y)} if isinstance(y, tuple) else {"y": y}
        signatures[name] = tf.function(signature, input_signature=[tf.TensorSpec(shape, dtype, name="x")]).get_concrete_function()
    with tempfile.TemporaryDirectory() as work:
        tf.saved_model.save(module, f"{work}/model", signatures=signatures)
        code, text = call("lite", f"{work}/model", f"{work}/model.tflite", "--explain")
        check("export", code == 0, text)
        if code:
            return finish()
        loaded = tf.saved_model.load(f"{work}/model")
        bytes_ = open(f"{work}/model.tflite", "rb").read()
        kinds = operators(bytes_)
        converter = tf.lite.TFLiteConverter.from_saved_model(f"{work}/model", signature_keys=list(signatures))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]  # it has no GELU in some spellings
        theirs = operators(converter.convert())
        interpreter = Interpreter(model_content=bytes_)
        for name, (f, shape, ops, differs, dtype) in CASES.items():
            check(f"operators of {name}", sorted(kinds[name]) == sorted(ops), f"{kinds[name]}, wanted {ops}")
            more = len(kinds[name]) > len(theirs[name])
            check(f"{name} beside TensorFlow's", more == (name in MORE_THAN_TENSORFLOW), f"{kinds[name]}, TensorFlow's {theirs[name]}")
            for kind in ("ordinary", "zero", "tiny", "large", "inf", "nan"):
                if kind in differs:
                    continue
                x = special(shape, kind, dtype)
                wanted = loaded.signatures[name](x=tf.constant(x))
                answers = interpreter.get_signature_runner(name)(x=x)
                for key in wanted:
                    got, want = answers[key], wanted[key].numpy()
                    same = got.shape == want.shape and got.dtype == want.dtype and close(got, want)
                    check(f"{name} of {kind} numbers, {key}", same, f"x {x.ravel()[:6]} got {got.ravel()[:6]} want {want.ravel()[:6]}")
    bidirectional()
    finish()


def bidirectional():
    """Two LSTMs that run against each other: one operator where that is asked for."""
    keras_model = tf.keras.Sequential([tf.keras.Input([6, 3], batch_size=1), tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(4, return_sequences=True))])
    x = f32(1, 6, 3)
    with tempfile.TemporaryDirectory() as work:
        keras_model.export(f"{work}/model", verbose=False)
        for flags, wanted in (([], "UNIDIRECTIONAL_SEQUENCE_LSTM"), (["--fusion", "FuseBidirectionalLstm", "--batch", "1"], "BIDIRECTIONAL_SEQUENCE_LSTM")):
            code, text = call("lite", f"{work}/model", f"{work}/model.tflite", "--signature", "serve", *flags)
            check(f"export {wanted}", code == 0, text)
            if code:
                continue
            bytes_ = open(f"{work}/model.tflite", "rb").read()
            kinds = operators(bytes_)["serve"]
            check(f"operators {wanted}", kinds.count(wanted) == (1 if flags else 2), kinds)
            interpreter = Interpreter(model_content=bytes_)
            runner = interpreter.get_signature_runner("serve")
            got = runner(**{next(iter(runner.get_input_details())): x})
            check(f"{wanted} answers as Keras", close(next(iter(got.values())), keras_model(x).numpy()), got)


main()
