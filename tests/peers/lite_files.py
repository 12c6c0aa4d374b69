#!/usr/bin/env python3
"""Files that TensorFlow's converter writes, in LiteRT and in smelt: lite_files.py SMELT [SUBSTRING of names]

A small tf.function for each builtin operator that the converter writes, in the types that it takes, with a batch that is resized; control flow, variables,
tables, layers. Floats agree within 1e-5 of an output's range, integers exactly."""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from checks import check, finish
from lite_checks import compare, unsupported

tf.get_logger().setLevel("ERROR")
only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(7)
CASES = []  # (name, function, specs, inputs or None, options)


def spec(shape, dtype=tf.float32):
    return (shape, tf.as_dtype(dtype))


def case(name, function, *specs, inputs=None, **options):
    CASES.append((name, function, [s if isinstance(s, tuple) else spec(s) for s in specs], inputs, options))


def value(shape, dtype, batch=3):
    shape = [batch if s is None else s for s in shape]
    if dtype == tf.string:
        return np.array([f"s{i % 4}" for i in range(int(np.prod(shape)))], object).reshape(shape)
    if dtype == tf.bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return random.integers(1 if dtype.is_unsigned else -9, 10, shape).astype(dtype.as_numpy_dtype)
    if dtype.is_complex:
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype.as_numpy_dtype)
    return random.standard_normal(shape).astype(dtype.as_numpy_dtype)


def positive(*shapes):
    return [np.abs(random.standard_normal(s)).astype(np.float32) + 0.1 for s in shapes]


F, I, L, B, S = tf.float32, tf.int32, tf.int64, tf.bool, tf.string

# One element at a time.
for n, f in {"abs": tf.abs, "neg": tf.negative, "square": tf.square, "sign": tf.sign, "zeros_like": tf.zeros_like}.items():
    for t in (F, I) if n not in ("square",) else (F, I):
        case(f"{n}_{t.name}", lambda x, f=f: f(x), spec([None, 4], t))
for n, f in {"ceil": tf.math.ceil, "floor": tf.floor, "cos": tf.cos, "sin": tf.sin, "exp": tf.exp, "elu": tf.nn.elu, "round": tf.round, "relu": tf.nn.relu,
             "relu6": tf.nn.relu6, "logistic": tf.sigmoid, "tanh": tf.tanh, "softplus": tf.nn.softplus, "softsign": tf.nn.softsign, "log_softmax": tf.nn.log_softmax,
             "softmax": tf.nn.softmax, "gelu": tf.nn.gelu, "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True), "selu": tf.nn.selu,
             "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.3), "relu_n1": lambda x: tf.minimum(tf.maximum(x, -1.0), 1.0),
             "relu_0_to_1": lambda x: tf.minimum(tf.maximum(x, 0.0), 1.0), "hard_swish": lambda x: x * tf.nn.relu6(x + 3) * 0.16666667,
             "l2_normalization": lambda x: tf.nn.l2_normalize(x, -1), "swish": tf.nn.silu}.items():
    case(n, lambda x, f=f: f(x), [None, 6])
    case(n + "_4d", lambda x, f=f: f(x), [2, 3, 4, 5])
for n, f in {"log": tf.math.log, "sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt, "log1p": tf.math.log1p}.items():
    case(n, lambda x, f=f: f(x), [None, 4], inputs=positive((3, 4)))
case("prelu", lambda x: tf.nn.relu(x) + tf.constant([-0.1, -0.2, -0.3]) * tf.nn.relu(-x), [None, 3])
case("logical_not", tf.logical_not, spec([None], B))
for n, f in {"logical_and": tf.logical_and, "logical_or": tf.logical_or}.items():
    case(n, lambda x, y, f=f: f(x, y), spec([None, 3], B), spec([3], B))
for n, f in {"add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "maximum": tf.maximum, "minimum": tf.minimum,
             "squared_difference": tf.math.squared_difference}.items():
    for t in (F, I, L):
        case(f"{n}_{t.name}", lambda x, y, f=f: f(x, y), spec([None, 4], t), spec([4], t))
        case(f"{n}_broadcast_{t.name}", lambda x, y, f=f: f(x, y), spec([None, 1, 4], t), spec([5, 1], t))
case("mul_int16", tf.multiply, spec([3, 4], tf.int16), spec([3, 4], tf.int16))
case("mul_complex", tf.multiply, spec([3], tf.complex64), spec([3], tf.complex64))
for t in (F, I):
    case(f"div_{t.name}", (lambda x, y: x / y) if t == F else (lambda x, y: tf.raw_ops.Div(x=x, y=y)), spec([None, 4], t), spec([None, 4], t),
         inputs=positive((3, 4), (3, 4)) if t == F else [np.array([[7, -7, 8, -9]], np.int32), np.array([[2, 2, -3, -4]], np.int32)])
for n, f in {"floor_div": tf.math.floordiv, "floor_mod": tf.math.floormod}.items():
    for t in (F, I, L, tf.int16, tf.int8) if n == "floor_mod" else (F, I, tf.int16, tf.int8):
        case(f"{n}_{t.name}", lambda x, y, f=f: f(x, y), spec([None, 4], t), spec([4], t),
             inputs=[np.array([[7, -7, 8, -9], [0, 3, 4, -1]], t.as_numpy_dtype), np.array([2, 2, -3, -4], t.as_numpy_dtype)])
case("pow", tf.pow, [None, 4], [4], inputs=positive((3, 4), (4,)))
case("pow_int32", tf.pow, spec([4], I), spec([4], I), inputs=[np.array([2, -3, 4, 5], np.int32), np.array([3, 3, 0, 2], np.int32)])
case("atan2", tf.atan2, [3, 4], [3, 4])
case("relu_then_activation", lambda x, y: tf.nn.relu(x + y), [None, 4], [4])
case("relu6_of_mul", lambda x, y: tf.nn.relu6(x * y * 4), [None, 4], [4])
case("add_n", lambda x, y, z: tf.add_n([x, y, z]), [None, 4], [None, 4], [None, 4])
case("add_n_int", lambda x, y: tf.add_n([x, y, y]), spec([2, 4], I), spec([2, 4], I))
for n, f in {"equal": tf.equal, "not_equal": tf.not_equal, "less": tf.less, "less_equal": tf.less_equal, "greater": tf.greater, "greater_equal": tf.greater_equal}.items():
    for t in (F, I, L):
        case(f"{n}_{t.name}", lambda x, y, f=f: f(x, y), spec([None, 4], t), spec([4], t))
case("equal_string", tf.equal, spec([None], S), spec([None], S), inputs=[np.array([b"a", b"bc"], object), np.array([b"a", b"b"], object)])
case("not_equal_string", tf.not_equal, spec([None], S), spec([None], S), inputs=[np.array([b"a", b"bc"], object), np.array([b"a", b"b"], object)])
case("equal_bool", tf.equal, spec([None], B), spec([None], B))
for a, b in ((F, I), (I, F), (F, B), (B, F), (I, L), (L, F), (F, tf.uint8), (F, tf.int8), (tf.uint8, F), (F, tf.float16), (tf.float16, F), (I, tf.int16), (tf.complex64, F)):
    case(f"cast_{a.name}_{b.name}", lambda x, b=b: tf.cast(x, b), spec([None, 3], a), inputs=positive((2, 3)) if a == F and b == tf.uint8 else None)
for t in (tf.int8, I, tf.uint8, tf.int16):
    case(f"bitwise_xor_{t.name}", tf.bitwise.bitwise_xor, spec([4], t), spec([4], t))
    case(f"right_shift_{t.name}", tf.bitwise.right_shift, spec([4], t), spec([4], t), inputs=[np.array([100, 7, 64, 1], t.as_numpy_dtype), np.array([1, 0, 3, 2], t.as_numpy_dtype)])
case("bitcast", lambda x: tf.bitcast(x, I), [None, 3])
case("bitcast_wide", lambda x: tf.bitcast(x, tf.uint8), [2, 3])
case("real", tf.math.real, spec([3], tf.complex64))
case("imag", tf.math.imag, spec([3], tf.complex64))
case("complex_abs", tf.abs, spec([3], tf.complex64))
case("select", lambda c, x, y: tf.where(c, x, y), spec([None, 4], B), [None, 4], [None, 4])
case("select_broadcast", lambda c, x, y: tf.where(c, x, y), spec([None, 1], B), [None, 4], [4])
case("select_rows", lambda c, x, y: tf.compat.v1.where(c, x, y), spec([3], B), [3, 4], [3, 4])
case("select_int", lambda c, x, y: tf.where(c, x, y), spec([3], B), spec([3], I), spec([3], I))
case("fake_quant", lambda x: tf.quantization.fake_quant_with_min_max_args(x, -2, 2), [None, 4])

# Shapes and elements that move.
case("reshape", lambda x: tf.reshape(x, [-1, 2]), [None, 4])
case("reshape_by_shape", lambda x, y: tf.reshape(x, tf.shape(y)), [None, 4], [4, None], inputs=[value([3, 4], F), value([4, 3], F)])
case("shape", tf.shape, [None, 4])
case("shape64", lambda x: tf.shape(x, out_type=L), [None, 4])
case("rank", tf.rank, [None, 4])
case("expand_dims", lambda x: tf.expand_dims(x, 1), [None, 4])
case("squeeze", lambda x: tf.squeeze(x, [1]), [None, 1, 4])
case("squeeze_all", tf.squeeze, [1, 4, 1])
for t in (F, I, tf.int8, L, B, S):
    case(f"transpose_{t.name}", lambda x: tf.transpose(x, [2, 0, 1]), spec([2, 3, 4], t))
    case(f"concat_{t.name}", lambda x, y: tf.concat([x, y], -1), spec([None, 4], t), spec([None, 2], t))
    case(f"gather_{t.name}", lambda x, i: tf.gather(x, i), spec([5, 3], t), spec([None], I), inputs=[value([5, 3], t), np.array([4, 0, 2], np.int32)])
    case(f"strided_slice_{t.name}", lambda x: x[1:, ::-1, None, ..., 0], spec([3, 4, 2, 2], t))
    case(f"slice_{t.name}", lambda x: tf.slice(x, [1, 0], [-1, 2]), spec([3, 4], t))
    case(f"tile_{t.name}", lambda x: tf.tile(x, [2, 3]), spec([3, 4], t))
    case(f"pack_{t.name}", lambda x, y: tf.stack([x, y], 1), spec([3, 4], t), spec([3, 4], t))
    case(f"unpack_{t.name}", lambda x: tf.unstack(x, 2, 0)[1], spec([2, 4], t))
    case(f"split_{t.name}", lambda x: tf.split(x, 2, 1)[1], spec([None, 4], t))
    case(f"reverse_{t.name}", lambda x: tf.reverse(x, [1]), spec([3, 4], t))
    if t != S:  # LiteRT gives the address of a string
        case(f"fill_{t.name}", lambda n, v: tf.fill(n, v), spec([2], I), spec([], t), inputs=[np.array([2, 3], np.int32), value([], t)])
    case(f"broadcast_to_{t.name}", lambda x, s: tf.broadcast_to(x, s), spec([1, 4], t), spec([3], I), inputs=[value([1, 4], t), np.array([2, 3, 4], np.int32)])
    case(f"gather_nd_{t.name}", lambda x, i: tf.gather_nd(x, i), spec([5, 3], t), spec([None, 2], I), inputs=[value([5, 3], t), np.array([[4, 0], [1, 2]], np.int32)])
    case(f"where_{t.name}_shape", lambda x: tf.identity(x)[0:1], spec([3, 4], t))
for t in (F, I, L, tf.int8):
    case(f"pad_{t.name}", lambda x: tf.pad(x, [[1, 0], [2, 1]]), spec([None, 4], t))
    case(f"padv2_{t.name}", lambda x: tf.pad(x, [[1, 0], [2, 1]], constant_values=3), spec([None, 4], t))
    case(f"mirror_pad_{t.name}", lambda x: tf.pad(x, [[1, 0], [2, 1]], "REFLECT"), spec([3, 4], t))
    case(f"mirror_pad_symmetric_{t.name}", lambda x: tf.pad(x, [[1, 0], [2, 1]], "SYMMETRIC"), spec([3, 4], t))
case("gather_axis", lambda x, i: tf.gather(x, i, axis=1), [2, 5, 3], spec([2], I), inputs=[value([2, 5, 3], F), np.array([4, 0], np.int32)])
case("gather_batch", lambda x, i: tf.gather(x, i, batch_dims=1), [2, 5, 3], spec([2, 2], I), inputs=[value([2, 5, 3], F), np.array([[4, 0], [1, 1]], np.int32)])
case("split_v", lambda x: tf.split(x, [1, 3], 1)[1], [None, 4])
case("unpack_negative", lambda x: tf.unstack(x, axis=-1)[2], [2, 4])
case("range", lambda n: tf.range(0, n, 2), spec([], I), inputs=[np.int32(9)])
case("range_float", lambda n: tf.range(0.5, n, 0.75), spec([], F), inputs=[np.float32(4)])
case("one_hot", lambda i: tf.one_hot(i, 4), spec([None], I), inputs=[np.array([0, 3, 7], np.int32)])
case("one_hot_axis", lambda i: tf.one_hot(i, 4, 2, -1, axis=0, dtype=I), spec([3], I), inputs=[np.array([0, 3, 2], np.int32)])
case("where", tf.where, spec([3, 4], B))
case("unique", lambda x: tf.unique(x)[0], spec([6], I))
case("unique_idx", lambda x: tf.unique(x, out_idx=L)[1], spec([6], I))
case("topk", lambda x: tf.math.top_k(x, 2)[0], [3, 5])
case("topk_indices", lambda x: tf.math.top_k(x, 2)[1], [3, 5])
for t in (F, I):
    for n, f in {"sum": tf.reduce_sum, "max": tf.reduce_max, "min": tf.reduce_min, "prod": tf.reduce_prod, "mean": tf.reduce_mean}.items():
        case(f"reduce_{n}_{t.name}", lambda x, f=f: f(x, 1), spec([None, 4, 3], t))
        case(f"reduce_{n}_keep_{t.name}", lambda x, f=f: f(x, [0, 2], keepdims=True), spec([2, 4, 3], t))
        case(f"reduce_{n}_all_{t.name}", lambda x, f=f: f(x), spec([2, 4, 3], t))
case("reduce_any", lambda x: tf.reduce_any(x, 1), spec([None, 4], B))
case("reduce_all", lambda x: tf.reduce_all(x, 1), spec([None, 4], B))
for t in (F, I, tf.int8):
    case(f"argmax_{t.name}", lambda x: tf.argmax(x, 1), spec([None, 4], t))
    case(f"argmin_{t.name}", lambda x: tf.argmin(x, 1, output_type=I), spec([None, 4], t))
case("cumsum", lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), [2, 4])
case("cumsum_int", lambda x: tf.cumsum(x, 0), spec([2, 4], I))
case("reverse_sequence", lambda x, n: tf.reverse_sequence(x, n, seq_axis=1), [3, 4, 2], spec([3], I), inputs=[value([3, 4, 2], F), np.array([1, 4, 2], np.int32)])
case("space_to_batch", lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [2, 0]]), [1, 4, 4, 2])
case("batch_to_space", lambda x: tf.batch_to_space(x, [2, 2], [[0, 0], [1, 0]]), [4, 2, 2, 2])
case("space_to_depth", lambda x: tf.nn.space_to_depth(x, 2), [1, 4, 4, 2])
case("depth_to_space", lambda x: tf.nn.depth_to_space(x, 2), [1, 2, 2, 8])
case("scatter_nd", lambda i, u, s: tf.scatter_nd(i, u, s), spec([2, 1], I), [2, 3], spec([2], I),
     inputs=[np.array([[3], [1]], np.int32), value([2, 3], F), np.array([5, 3], np.int32)])
case("scatter_nd_twice", lambda i, u: tf.scatter_nd(i, u, [5]), spec([3, 1], I), spec([3], I), inputs=[np.array([[3], [1], [3]], np.int32), np.array([5, 6, 7], np.int32)])
case("segment_sum", lambda x: tf.math.segment_sum(x, [0, 0, 1, 3]), [4, 3])
for n in "sum", "max", "min", "prod":
    case(f"unsorted_segment_{n}", lambda x, i, n=n: getattr(tf.math, "unsorted_segment_" + n)(x, i, 4), [4, 3], spec([4], I), inputs=[value([4, 3], F), np.array([2, 0, 2, 1], np.int32)])
case("sparse_to_dense", lambda i, v: tf.raw_ops.SparseToDense(sparse_indices=i, output_shape=[3, 4], sparse_values=v, default_value=0.5), spec([2, 2], I), [2],
     inputs=[np.array([[0, 1], [2, 3]], np.int32), value([2], F)])
case("matrix_diag", tf.linalg.diag, [2, 4])
case("matrix_set_diag", lambda x, d: tf.linalg.set_diag(x, d), [2, 3, 4], [2, 3])
case("dynamic_update_slice", lambda x, u, i: tf.raw_ops.XlaDynamicUpdateSlice(input=x, update=u, indices=i), [4, 5], [2, 3], spec([2], I),
     inputs=[value([4, 5], F), value([2, 3], F), np.array([1, 9], np.int32)])
case("broadcast_args", lambda a, b: tf.broadcast_dynamic_shape(a, b), spec([3], I), spec([2], I), inputs=[np.array([2, 1, 4], np.int32), np.array([3, 1], np.int32)])
case("bucketize", lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]), [2, 4])
case("embedding", lambda i: tf.gather(tf.constant(value([6, 4], F)), i), spec([None], I), inputs=[np.array([5, 0, 1], np.int32)])
case("ensure_empty", lambda x: tf.concat([x, x], 0), [0, 4])

# Networks.
W = lambda *s: tf.constant(random.standard_normal(s).astype(np.float32))
for pad in "SAME", "VALID":
    for stride in 1, 2:
        case(f"conv2d_{pad}_{stride}", lambda x, w=W(3, 3, 3, 5), b=W(5), p=pad, s=stride: tf.nn.relu(tf.nn.conv2d(x, w, s, p) + b), [None, 8, 7, 3])
        case(f"depthwise_{pad}_{stride}", lambda x, w=W(3, 3, 3, 2), b=W(6), p=pad, s=stride: tf.nn.relu6(tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p) + b), [None, 8, 7, 3])
        case(f"max_pool_{pad}_{stride}", lambda x, p=pad, s=stride: tf.nn.max_pool2d(x, [2, 3], s, p), [None, 8, 7, 3])
        case(f"avg_pool_{pad}_{stride}", lambda x, p=pad, s=stride: tf.nn.avg_pool2d(x, [2, 3], s, p), [None, 8, 7, 3])
        case(f"transpose_conv_{pad}_{stride}", lambda x, w=W(3, 3, 4, 3), p=pad, s=stride: tf.nn.conv2d_transpose(
            x, w, [1, 5 * s + (2 if p == "VALID" and s == 1 else 1 if p == "VALID" else 0), 5 * s + (2 if p == "VALID" and s == 1 else 1 if p == "VALID" else 0), 4], s, p), [1, 5, 5, 3])
case("conv2d_dilated", lambda x, w=W(3, 3, 3, 5): tf.nn.conv2d(x, w, 1, "SAME", dilations=2), [1, 8, 7, 3])
case("conv2d_dynamic", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), [1, 8, 7, 3], [3, 3, 3, 4])
case("conv2d_groups", lambda x, w=W(3, 3, 2, 6): tf.nn.conv2d(x, w, 1, "SAME"), [1, 8, 7, 4])
case("depthwise_dilated", lambda x, w=W(3, 3, 3, 1): tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", dilations=[2, 2]), [1, 8, 7, 3])
case("conv1d", lambda x, w=W(3, 3, 5): tf.nn.conv1d(x, w, 1, "SAME"), [None, 8, 3])
case("conv3d", lambda x, w=W(2, 3, 3, 3, 5), b=W(5): tf.nn.relu(tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME") + b), [None, 4, 6, 5, 3])
case("conv3d_transpose", lambda x, w=W(2, 2, 2, 4, 3): tf.nn.conv3d_transpose(x, w, [1, 6, 6, 6, 4], 2, "SAME"), [1, 3, 3, 3, 3])
case("fully_connected", lambda x, w=W(4, 5), b=W(5): tf.nn.relu(x @ w + b), [None, 4])
case("fully_connected_3d", lambda x, w=W(4, 5), b=W(5): tf.tensordot(x, w, 1) + b, [None, 3, 4])
case("batch_matmul", tf.matmul, [None, 3, 4], [None, 4, 5])
case("batch_matmul_adj", lambda x, y: tf.matmul(x, y, transpose_b=True), [None, 3, 4], [None, 5, 4])
case("batch_matmul_broadcast", tf.matmul, [2, 1, 3, 4], [5, 4, 2])
case("einsum", lambda x, y: tf.einsum("bij,bkj->bik", x, y), [2, 3, 4], [2, 5, 4])
case("lrn", lambda x: tf.nn.local_response_normalization(x, 2, 1.5, 0.3, 0.6), [1, 3, 3, 8])
for align, half in ((False, False), (True, False), (False, True)):
    for n in "Bilinear", "NearestNeighbor":
        case(f"resize_{n}_{align}_{half}", lambda x, n=n, a=align, h=half: getattr(tf.raw_ops, "Resize" + n)(images=x, size=[7, 5], align_corners=a, half_pixel_centers=h), [None, 3, 4, 2])
case("batch_norm", lambda x, w=W(3, 3, 3, 5): tf.compat.v1.nn.fused_batch_norm(tf.nn.conv2d(x, w, 1, "SAME"), tf.ones(5), tf.ones(5) * 0.3, tf.zeros(5), tf.ones(5), is_training=False)[0], [None, 8, 7, 3])
case("layer_norm", lambda x: (x - tf.reduce_mean(x, -1, keepdims=True)) * tf.math.rsqrt(tf.math.reduce_variance(x, -1, keepdims=True) + 1e-3), [None, 3, 8])
case("rfft2d", lambda x: tf.abs(tf.signal.rfft2d(x)), [4, 8])
case("rfft2d_length", lambda x: tf.math.imag(tf.signal.rfft2d(x, [4, 16])), [2, 4, 16])
for v in 4, 5:
    def nms(b, s, v=v):
        if v == 4:
            i, n = tf.raw_ops.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=4, iou_threshold=0.5, score_threshold=0.1, pad_to_max_output_size=True)
            return {"i": i, "n": n}
        i, p, n = tf.raw_ops.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=4, iou_threshold=0.5, score_threshold=0.1, soft_nms_sigma=0.5, pad_to_max_output_size=True)
        return {"i": i, "p": p, "n": n}
    case(f"nms_v{v}", nms, [8, 4], [8], inputs=[np.sort(random.random((8, 2, 2)).astype(np.float32), 1).reshape(8, 4), random.random(8).astype(np.float32)])

# Control flow, variables, tables.
case("if", lambda c, x: tf.cond(c, lambda: x * 2, lambda: x - 1), spec([], B), [None, 3])
case("if_shapes", lambda c, x: tf.cond(c, lambda: x, lambda: tf.concat([x, x], 0)), spec([], B), [None, 3])
case("while", lambda n, x: tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 1.5 + 1), (0, x))[1], spec([], I), [None, 3], inputs=[np.int32(4), value([2, 3], F)])
case("while_nested", lambda x: tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u + x), (0, v))[1]), (0, x))[1], [3])
case("while_grows", lambda x: tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.concat([v, x], 0)), (0, x), shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 3])))[1], [2, 3])
case("if_in_while", lambda x: tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: v + 1, lambda: v * 2)), (0, x))[1], [3])
case("case", lambda i, x: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x + 1]), spec([], I), [3], inputs=[np.int32(1), value([3], F)])


class Counter(tf.Module):
    def __init__(self):
        self.v = tf.Variable(np.float32([1, 2, 3]))

    def __call__(self, x):
        self.v.assign_add(x)
        return self.v * 2


class Table(tf.Module):
    def __init__(self, kind):
        k, v = (np.array([b"a", b"b"]), np.array([5, 6], np.int64)) if kind == "string_int" else (np.array([3, 4], np.int64), np.array([b"x", b"y"]))
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(k, v), -1 if kind == "string_int" else "none")

    def __call__(self, x):
        return {"y": self.table.lookup(x), "n": self.table.size()}


case("variable", Counter(), [3])
case("table_string", Table("string_int"), spec([None], S), inputs=[np.array([b"b", b"z", b"a"], object)])
case("table_int", Table("int_string"), spec([None], L), inputs=[np.array([4, 9, 3], np.int64)])


def convert(name, function, specs, options):
    module = function if isinstance(function, tf.Module) else tf.Module()

    def named(*args):
        out = function(*args)
        return out if isinstance(out, dict) else {"y": out}
    module.f = tf.function(named, input_signature=[tf.TensorSpec(s, t, name=f"x{i}") for i, (s, t) in enumerate(specs)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
    for k, v in options.items():
        setattr(converter, k, v)
    return converter.convert()


def main():
    for name, function, specs, inputs, options in CASES:
        if only not in name:
            continue
        if inputs is None:
            inputs = [value(s, t) for s, t in specs]
        try:
            data = convert(name, function, specs, options)
        except Exception as e:  # the converter has many kinds
            unsupported.append(f"{name}: convert: {type(e).__name__}: {str(e).strip().splitlines()[-1][:200]}")
            continue
        compare(name, data, {f"x{i}": np.asarray(v) for i, v in enumerate(inputs)})
    for u in unsupported:
        print("not in LiteRT:", u)
    check("most convert", bool(only) or len(unsupported) < 40, len(unsupported))
    finish()


if __name__ == "__main__":
    main()
