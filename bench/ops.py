#!/usr/bin/env python3
"""Single ops beside TensorFlow: ops.py SMELT [PATTERN...] [--threads 2] [--above 1.0]

Each row of CASES is a signature of one op (or a few) on the sizes that models use; smelt answers by `smelt replay`, TensorFlow by a session's callable,
in turns. Prints time of both and the ratio, the slowest first at the end. Meant to find kernels that are worth work: ratios of single runs waver.
Needs tensorflow and tensorflow-serving-api; run it on a machine that does nothing else."""
import argparse
import fnmatch
import io
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

from measure import shown, smelt_median

R = tf.raw_ops
rng = np.random.default_rng(3)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def p(*shape):
    return np.abs(f(*shape)) + np.float32(0.1)


def ints(low, high, *shape, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


def bits(*shape):
    return rng.random(shape) < 0.5


def words(n):
    stock = np.array([b"the", b"Quick brown", b"fox, jumps", b"over 12", b"42.5", b"lazy DOG!", b"\xc3\xa9t\xc3\xa9", b""], dtype=object)
    return stock[rng.integers(0, len(stock), n)]


def numbers(n):
    return np.array([b"%.3f" % v for v in rng.standard_normal(n)], dtype=object)


def examples(n):
    def one(i):
        e = tf.train.Example()
        for k in range(8):
            e.features.feature[f"x{k}"].float_list.value.append(i * 0.5 + k)
            e.features.feature[f"c{k}"].bytes_list.value.append(b"word%d" % ((i + k) % 7))
        return e.SerializeToString()
    return np.array([one(i) for i in range(n)], dtype=object)


def image(kind):
    pixels = (np.add.outer(np.arange(300), np.arange(400))[..., None] * np.array([1, 2, 3]) % 256).astype(np.uint8)
    return np.array((tf.io.encode_jpeg if kind == "jpeg" else tf.io.encode_png)(pixels).numpy(), dtype=object)


def table():
    keys = tf.constant([b"the", b"fox, jumps", b"over 12", b"42.5"])
    return tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(keys, tf.range(4, dtype=tf.int64)), 2)


BIG = (64, 128, 128)  # a million elements
UNARY = ("Abs Neg Sign Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Erf Erfc Floor Ceil Round "
         "Relu Relu6 Elu Selu LeakyRelu Softplus Softsign IsNan IsFinite Lgamma Digamma").split()
BINARY = ("AddV2 Sub Mul RealDiv Maximum Minimum SquaredDifference Pow FloorDiv FloorMod DivNoNan MulNoNan Atan2 Xlogy Less Equal").split()


def cases():
    """name -> (function of the inputs, inputs)"""
    c = {}
    for op in UNARY:
        x = p(*BIG) if op in ("Sqrt", "Rsqrt", "Log", "Log1p", "Acosh", "Lgamma", "Digamma", "Reciprocal") else np.clip(f(*BIG), -0.9, 0.9)
        argument = "features" if op in ("Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign") else "x"
        c["unary_" + op] = (lambda x, op=op, a=argument: getattr(R, op)(**{a: x}), [x + 1 if op == "Acosh" else x])
    for op in BINARY:
        c["binary_" + op] = (lambda x, y, op=op: getattr(R, op)(x=x, y=y), [p(*BIG), p(*BIG)])
    for name, a, b in [("row", (512, 1024), (1024,)), ("column", (512, 1024), (512, 1)), ("outer", (1024, 1), (1, 1024)), ("channel", (8, 64, 64, 32), (32,)), ("middle", (32, 64, 1, 64), (32, 1, 64, 64)), ("scalar", BIG, ()), ("mask", (8, 12, 128, 128), (8, 1, 1, 128))]:
        c["broadcast_" + name] = (lambda x, y: x * y, [f(*a), f(*b)])
    for dtype in (np.int32, np.int64):
        n = np.dtype(dtype).name
        for op in ("AddV2", "Mul", "FloorDiv", "FloorMod", "Less", "BitwiseAnd", "Maximum"):
            c[f"{n}_{op}"] = (lambda x, y, op=op: getattr(R, op)(x=x, y=y), [ints(1, 1000, *BIG, dtype=dtype), ints(1, 100, *BIG, dtype=dtype)])
    for a, b in [("float32", "int32"), ("int32", "float32"), ("int64", "int32"), ("int32", "int64"), ("bool", "float32"), ("float32", "bool"), ("uint8", "float32"), ("float32", "uint8"), ("float32", "float64"), ("float64", "float32"), ("float32", "int64"),
                 ("int64", "float32"), ("float32", "bfloat16"), ("float32", "float16"), ("bool", "int32"), ("int64", "bool")]:
        c[f"cast_{a}_{b}"] = (lambda x, b=b: tf.cast(x, b), [(np.abs(f(*BIG)) * 50).astype(a)])
    c["logical_and"] = (lambda x, y: x & y, [bits(*BIG), bits(*BIG)])
    c["logical_not"] = (lambda x: ~x, [bits(*BIG)])
    c["select_same"] = (lambda k, x, y: tf.where(k, x, y), [bits(*BIG), f(*BIG), f(*BIG)])
    c["select_row"] = (lambda k, x, y: tf.where(k, x, y), [bits(512, 1), f(512, 2048), f(2048)])
    c["clip"] = (lambda x: R.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.5), [f(*BIG)])
    c["add_n"] = (lambda x, y, z: tf.add_n([x, y, z]), [f(*BIG), f(*BIG), f(*BIG)])
    c["bias_add"] = (lambda x, y: tf.nn.bias_add(x, y), [f(8, 64, 64, 64), f(64)])
    for op in ("sum", "mean", "max", "prod"):
        for name, axis in [("all", None), ("last", [-1]), ("first", [0]), ("middle", [1]), ("space", [0, 1])]:
            c[f"reduce_{op}_{name}"] = (lambda x, op=op, axis=axis: getattr(tf, "reduce_" + op)(x, axis), [f(*BIG)])
    c["reduce_any"] = (lambda x: tf.reduce_any(x, -1), [bits(*BIG)])
    c["reduce_sum_int"] = (lambda x: tf.reduce_sum(x, -1), [ints(0, 9, *BIG)])
    c["reduce_logsumexp"] = (lambda x: tf.reduce_logsumexp(x, -1), [f(1024, 1024)])
    c["reduce_moments"] = (lambda x: tf.nn.moments(x, [0, 1]), [f(*BIG)])
    for axis in (-1, 0, 1):
        c[f"argmax_{axis}"] = (lambda x, axis=axis: tf.argmax(x, axis), [f(*BIG)])
        c[f"cumsum_{axis}"] = (lambda x, axis=axis: tf.cumsum(x, axis), [f(*BIG)])
    c["softmax"] = (tf.nn.softmax, [f(1024, 1024)])
    c["softmax_short"] = (tf.nn.softmax, [f(65536, 10)])
    c["log_softmax"] = (tf.nn.log_softmax, [f(1024, 1024)])
    c["l2_normalize"] = (lambda x: tf.nn.l2_normalize(x, -1), [f(1024, 1024)])
    c["layer_norm"] = (lambda x: (x - tf.reduce_mean(x, -1, keepdims=True)) * tf.math.rsqrt(tf.math.reduce_variance(x, -1, keepdims=True) + 1e-6), [f(1024, 1024)])
    c["top_k"] = (lambda x: tf.math.top_k(x, 10), [f(64, 10000)])
    c["top_k_all"] = (lambda x: tf.math.top_k(x, 1000), [f(64, 1000)])
    c["sort"] = (lambda x: tf.sort(x), [f(64, 10000)])
    c["argsort"] = (lambda x: tf.argsort(x), [f(64, 10000)])
    c["in_top_k"] = (lambda x, y: tf.math.in_top_k(y, x, 5), [f(256, 1000), ints(0, 1000, 256)])
    c["nth_element"] = (lambda x: R.NthElement(input=x, n=50), [f(64, 10000)])
    c["unique"] = (lambda x: tf.unique(x)[0], [ints(0, 5000, 100000)])
    c["unique_words"] = (lambda x: tf.unique(x)[0], [words(20000)])
    c["where"] = (tf.where, [bits(1000, 1000)])
    c["boolean_mask"] = (lambda x, m: tf.boolean_mask(x, m), [f(10000, 64), bits(10000)])
    c["bincount"] = (lambda x: tf.math.bincount(x, minlength=100), [ints(0, 100, 100000)])
    c["bucketize"] = (lambda x: R.Bucketize(input=x, boundaries=[-1.0, -0.5, 0.0, 0.5, 1.0]), [f(*BIG)])
    c["searchsorted"] = (lambda a, v: tf.searchsorted(a, v), [np.sort(f(1000)), f(100000)])
    c["one_hot"] = (lambda x: tf.one_hot(x, 1000), [ints(0, 1000, 1000)])
    c["gather_rows"] = (lambda x, i: tf.gather(x, i), [f(10000, 128), ints(0, 10000, 4096)])
    c["gather_axis1"] = (lambda x, i: tf.gather(x, i, axis=1), [f(64, 1000, 16), ints(0, 1000, 500)])
    c["gather_last"] = (lambda x, i: tf.gather(x, i, axis=-1), [f(1000, 1000), ints(0, 1000, 500)])
    c["gather_batch"] = (lambda x, i: tf.gather(x, i, axis=1, batch_dims=1), [f(64, 1000, 16), ints(0, 1000, 64, 500)])
    c["gather_nd"] = (lambda x, i: tf.gather_nd(x, i), [f(1000, 1000), ints(0, 1000, 100000, 2)])
    c["scatter_nd"] = (lambda i, u: tf.scatter_nd(i, u, [10000, 64]), [ints(0, 10000, 5000, 1), f(5000, 64)])
    c["scatter_update"] = (lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u), [f(10000, 64), ints(0, 10000, 5000, 1), f(5000, 64)])
    c["segment_sum"] = (lambda x, i: tf.math.segment_sum(x, i), [f(20000, 64), np.sort(ints(0, 500, 20000))])
    c["unsorted_segment_sum"] = (lambda x, i: tf.math.unsorted_segment_sum(x, i, 500), [f(20000, 64), ints(0, 500, 20000)])
    c["unsorted_segment_max"] = (lambda x, i: tf.math.unsorted_segment_max(x, i, 500), [f(20000, 64), ints(0, 500, 20000)])
    c["sparse_segment_mean"] = (lambda x, i, s: R.SparseSegmentMean(data=x, indices=i, segment_ids=s), [f(10000, 64), ints(0, 10000, 20000), np.sort(ints(0, 500, 20000))])
    for name, begin, end, step in [("crop", [0, 8, 8, 0], [8, 120, 120, 32], [1, 1, 1, 1]), ("strided", [0, 0, 0, 0], [8, 128, 128, 32], [1, 2, 2, 1]), ("reversed", [0, 0, 0, 0], [8, 128, 128, 0], [1, 1, 1, -1]), ("channel", [0, 0, 0, 3], [8, 128, 128, 4], [1, 1, 1, 1])]:
        c["slice_" + name] = (lambda x, b=begin, e=end, s=step: tf.strided_slice(x, b, e, s, begin_mask=0, end_mask=8 if s[3] < 0 else 0), [f(8, 128, 128, 32)])
    for name, shape, perm in [("matrix", (1000, 1000), (1, 0)), ("heads", (8, 128, 12, 64), (0, 2, 1, 3)), ("keys", (8, 128, 12, 64), (0, 2, 3, 1)), ("nchw", (8, 64, 64, 32), (0, 3, 1, 2)), ("nhwc", (8, 32, 64, 64), (0, 2, 3, 1)), ("time", (64, 100, 128), (1, 0, 2)), ("small", (4096, 3, 3), (0, 2, 1))]:
        c["transpose_" + name] = (lambda x, perm=perm: tf.transpose(x, perm), [f(*shape)])
    for axis in (0, 1, -1):
        c[f"concat_{axis}"] = (lambda x, y, z, axis=axis: tf.concat([x, y, z], axis), [f(64, 100, 64), f(64, 100, 64), f(64, 100, 64)])
        c[f"split_{axis}"] = (lambda x, axis=axis: tf.split(x, 4, axis), [f(64, 128, 128)])
        c[f"stack_{axis}"] = (lambda x, y, axis=axis: tf.stack([x, y], axis), [f(256, 2048), f(256, 2048)])
        c[f"unstack_{axis}"] = (lambda x, axis=axis: tf.unstack(x, axis=axis), [f(16, 16, 4096)] if axis >= 0 else [f(4096, 16, 16)])
        c[f"reverse_{axis}"] = (lambda x, axis=axis: tf.reverse(x, [axis]), [f(*BIG)])
    c["pad"] = (lambda x: tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]]), [f(8, 112, 112, 32)])
    c["mirror_pad"] = (lambda x: tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]], "REFLECT"), [f(8, 112, 112, 32)])
    c["tile"] = (lambda x: tf.tile(x, [1, 8, 1]), [f(64, 16, 128)])
    c["broadcast_to"] = (lambda x: tf.broadcast_to(x, [64, 128, 128]), [f(128, 1)])
    c["roll"] = (lambda x: tf.roll(x, 3, 1), [f(*BIG)])
    c["reverse_sequence"] = (lambda x, n: tf.reverse_sequence(x, n, seq_axis=1), [f(64, 128, 128), ints(1, 128, 64)])
    c["sequence_mask"] = (lambda n: tf.sequence_mask(n, 512), [ints(1, 512, 512)])
    c["space_to_depth"] = (lambda x: tf.nn.space_to_depth(x, 2), [f(8, 64, 64, 32)])
    c["depth_to_space"] = (lambda x: tf.nn.depth_to_space(x, 2), [f(8, 64, 64, 32)])
    c["space_to_batch"] = (lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), [f(8, 64, 64, 32)])
    c["matrix_band"] = (lambda x: tf.linalg.band_part(x, -1, 0), [f(64, 128, 128)])
    c["matrix_diag"] = (tf.linalg.diag, [f(64, 128)])
    c["extract_patches"] = (lambda x: tf.image.extract_patches(x, [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1], "VALID"), [f(8, 224, 224, 3)])
    for name, a, b in [("square", (512, 512), (512, 512)), ("row", (1, 1024), (1024, 1024)), ("rows", (32, 1024), (1024, 1024)), ("narrow", (1024, 1024), (1024, 4)), ("batch", (96, 128, 64), (96, 64, 128)), ("tiny", (4096, 3, 3), (4096, 3, 3)), ("shared", (32, 128, 256), (256, 256))]:
        c["matmul_" + name] = (lambda x, y: tf.matmul(x, y), [f(*a), f(*b)])
    c["matmul_transposed"] = (lambda x, y: tf.matmul(x, y, transpose_b=True), [f(96, 128, 64), f(96, 128, 64)])
    c["matmul_double"] = (lambda x, y: tf.matmul(x, y), [f(256, 256).astype(np.float64), f(256, 256).astype(np.float64)])
    c["matmul_int"] = (lambda x, y: tf.matmul(x, y), [ints(0, 9, 128, 128), ints(0, 9, 128, 128)])
    c["einsum_attention"] = (lambda q, k: tf.einsum("bqhd,bkhd->bhqk", q, k), [f(8, 128, 12, 64), f(8, 128, 12, 64)])
    c["einsum_project"] = (lambda x, w: tf.einsum("btd,dhk->bthk", x, w), [f(8, 128, 256), f(256, 8, 32)])
    for name, x, w, kw in [("conv3x3", (8, 56, 56, 64), (3, 3, 64, 64), {}), ("conv1x1", (8, 56, 56, 64), (1, 1, 64, 256), {}), ("conv7x7", (1, 224, 224, 3), (7, 7, 3, 64), {"strides": 2}), ("conv_dilated", (4, 64, 64, 32), (3, 3, 32, 32), {"dilations": 2}),
                           ("conv_grouped", (4, 56, 56, 64), (3, 3, 16, 64), {}), ("conv_few", (4, 128, 128, 3), (3, 3, 3, 8), {})]:
        c[name] = (lambda x, w, kw=kw: tf.nn.conv2d(x, w, **{"strides": 1, "padding": "SAME", **kw}), [f(*x), f(*w)])
    c["conv1d"] = (lambda x, w: tf.nn.conv1d(x, w, 1, "SAME"), [f(8, 1000, 64), f(5, 64, 64)])
    c["conv1d_causal"] = (lambda x, w: tf.nn.conv1d(tf.pad(x, [[0, 0], [8, 0], [0, 0]]), w, 1, "VALID", dilations=4), [f(8, 1000, 32), f(3, 32, 64)])
    c["conv3d"] = (lambda x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME"), [f(2, 16, 32, 32, 16), f(3, 3, 3, 16, 32)])
    c["conv_transpose"] = (lambda x, w: tf.nn.conv2d_transpose(x, w, [4, 64, 64, 32], 2, "SAME"), [f(4, 32, 32, 64), f(3, 3, 32, 64)])
    c["depthwise"] = (lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), [f(8, 56, 56, 96), f(3, 3, 96, 1)])
    c["depthwise_multiplier"] = (lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), [f(8, 56, 56, 16), f(3, 3, 16, 4)])
    for op in ("max_pool2d", "avg_pool2d"):
        c[op] = (lambda x, op=op: getattr(tf.nn, op)(x, 2, 2, "VALID"), [f(8, 112, 112, 64)])
        c[op + "_wide"] = (lambda x, op=op: getattr(tf.nn, op)(x, 3, 1, "SAME"), [f(8, 56, 56, 64)])
    c["max_pool3d"] = (lambda x: tf.nn.max_pool3d(x, 2, 2, "VALID"), [f(2, 16, 64, 64, 16)])
    c["batch_norm"] = (lambda x, s, o, m, v: R.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m, variance=v, is_training=False)[0], [f(8, 56, 56, 64), f(64), f(64), f(64), p(64)])
    c["lrn"] = (lambda x: tf.nn.local_response_normalization(x), [f(4, 56, 56, 64)])
    for m in ("bilinear", "nearest", "bicubic", "area"):
        c["resize_" + m] = (lambda x, m=m: tf.image.resize(x, [224, 224], m), [f(4, 300, 400, 3)])
    c["resize_up"] = (lambda x: tf.image.resize(x, [128, 128]), [f(4, 64, 64, 64)])
    c["resize_bytes"] = (lambda x: tf.image.resize(x, [224, 224]), [ints(0, 255, 4, 300, 400, 3, dtype=np.uint8)])
    c["crop_and_resize"] = (lambda x, b: tf.image.crop_and_resize(x, b, tf.zeros(tf.shape(b)[0], tf.int32), [14, 14]), [f(1, 64, 64, 64), np.tile(np.array([[0.1, 0.1, 0.6, 0.8]], np.float32), (100, 1))])
    c["rgb_to_hsv"] = (tf.image.rgb_to_hsv, [rng.random((4, 224, 224, 3)).astype(np.float32)])
    c["rgb_to_grayscale"] = (tf.image.rgb_to_grayscale, [rng.random((4, 224, 224, 3)).astype(np.float32)])
    c["adjust_contrast"] = (lambda x: tf.image.adjust_contrast(x, 1.5), [rng.random((4, 224, 224, 3)).astype(np.float32)])
    c["adjust_saturation"] = (lambda x: tf.image.adjust_saturation(x, 1.5), [rng.random((4, 224, 224, 3)).astype(np.float32)])
    c["decode_jpeg"] = (lambda x: tf.io.decode_jpeg(x), [image("jpeg")])
    c["decode_png"] = (lambda x: tf.io.decode_png(x), [image("png")])
    boxes = np.sort(rng.random((2000, 2, 2)).astype(np.float32), axis=1).reshape(2000, 4)
    c["nms"] = (lambda b, s: tf.image.non_max_suppression(b, s, 100), [boxes, rng.random(2000).astype(np.float32)])
    c["combined_nms"] = (lambda b, s: tf.image.combined_non_max_suppression(b[None, :, None, :], s[None], 20, 100)[0], [boxes[:500], rng.random((500, 20)).astype(np.float32)])
    for n in (512, 1000, 1009):
        c[f"rfft_{n}"] = (lambda x: tf.abs(tf.signal.rfft(x)), [f(256, n)])
    c["fft2d"] = (lambda x: tf.abs(tf.signal.fft2d(tf.cast(x, tf.complex64))), [f(4, 128, 128)])
    c["stft"] = (lambda x: tf.abs(tf.signal.stft(x, 400, 160)), [f(4, 16000)])
    c["mfcc"] = (lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x), [f(4, 100, 80)])
    c["cholesky"] = (lambda x: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(64)), [f(32, 64, 64)])
    c["solve"] = (lambda x, y: tf.linalg.solve(x + 20 * tf.eye(64), y), [f(32, 64, 64), f(32, 64, 4)])
    c["inverse"] = (lambda x: tf.linalg.inv(x + 20 * tf.eye(64)), [f(32, 64, 64)])
    c["svd"] = (lambda x: tf.linalg.svd(x, compute_uv=False), [f(8, 64, 64)])
    c["eigh"] = (lambda x: tf.linalg.eigvalsh(x + tf.transpose(x, [0, 2, 1])), [f(8, 64, 64)])
    c["triangular_solve"] = (lambda x, y: tf.linalg.triangular_solve(x + 20 * tf.eye(64), y), [f(32, 64, 64), f(32, 64, 8)])
    c["sparse_dense_matmul"] = (lambda i, v, d: tf.sparse.sparse_dense_matmul(tf.sparse.reorder(tf.SparseTensor(i, v, [1000, 5000])), d), [np.stack([np.sort(ints(0, 1000, 20000)), ints(0, 5000, 20000)], 1).astype(np.int64), f(20000), f(5000, 32)])
    c["embedding_bag"] = (lambda w, v: tf.nn.safe_embedding_lookup_sparse(w, tf.sparse.from_dense(v), combiner="mean"), [f(10000, 32), ints(0, 10000, 256, 10, dtype=np.int64)])
    c["sparse_to_dense"] = (lambda x: tf.sparse.to_dense(tf.sparse.from_dense(x)), [ints(0, 2, 500, 500)])
    c["ragged_mean"] = (lambda x, n: tf.reduce_mean(tf.RaggedTensor.from_row_lengths(x, n), 1), [f(5000, 16), np.full(500, 10, np.int64)])
    c["string_lower"] = (tf.strings.lower, [words(10000)])
    c["string_length"] = (tf.strings.length, [words(10000)])
    c["string_join"] = (lambda x, y: tf.strings.join([x, y], "-"), [words(10000), words(10000)])
    c["string_split"] = (lambda x: tf.strings.split(x).values, [words(10000)])
    c["string_substr"] = (lambda x: tf.strings.substr(x, 0, 2), [words(10000)])
    c["string_hash"] = (lambda x: tf.strings.to_hash_bucket_fast(x, 1000), [words(10000)])
    c["string_hash_strong"] = (lambda x: tf.strings.to_hash_bucket_strong(x, 1000, [1, 2]), [words(10000)])
    c["string_number"] = (tf.strings.to_number, [numbers(10000)])
    c["as_string"] = (tf.strings.as_string, [f(10000)])
    c["regex_replace"] = (lambda x: tf.strings.regex_replace(x, r"[^a-z ]", ""), [words(10000)])
    c["string_equal"] = (lambda x: x == b"the", [words(10000)])
    c["unicode_decode"] = (lambda x: tf.strings.unicode_decode(x, "UTF-8").values, [words(10000)])
    c["string_ngrams"] = (lambda x: tf.strings.ngrams(tf.strings.split(x), 2).values, [words(5000)])
    c["table_lookup"] = (lambda x: table().lookup(x), [words(10000)])
    c["parse_example"] = (lambda x: tf.io.parse_example(x, {**{f"x{k}": tf.io.FixedLenFeature([1], tf.float32) for k in range(8)}, **{f"c{k}": tf.io.FixedLenFeature([1], tf.string) for k in range(8)}}), [examples(256)])
    c["parse_sparse"] = (lambda x: {k: v.values for k, v in tf.io.parse_example(x, {**{f"x{k}": tf.io.VarLenFeature(tf.float32) for k in range(8)}, **{f"c{k}": tf.io.VarLenFeature(tf.string) for k in range(8)}}).items()}, [examples(256)])
    c["decode_csv"] = (lambda x: tf.io.decode_csv(x, [[0.0], [0.0], [b""]]), [np.array([b"1.5,2.25,abc"] * 5000, dtype=object)])
    c["decode_raw"] = (lambda x: tf.io.decode_raw(x, tf.float32), [np.array([b"\0\0\x80?" * 1000] * 100, dtype=object)])
    c["stateless_normal"] = (lambda x: tf.random.stateless_normal([1000, 1000], x), [np.array([1, 2])])
    c["stateless_uniform"] = (lambda x: tf.random.stateless_uniform([1000, 1000], x), [np.array([1, 2])])
    c["fake_quant"] = (lambda x: tf.quantization.fake_quant_with_min_max_args(x, -2.0, 2.0), [f(*BIG)])
    c["quantize"] = (lambda x: R.QuantizeV2(input=x, min_range=-2.0, max_range=2.0, T=tf.quint8)[0], [f(*BIG)])
    c["while_small"] = (lambda x: tf.while_loop(lambda i, x: i < 200, lambda i, x: (i + 1, x * 0.99 + 0.01), [0, x])[1], [f(16)])
    c["lstm_steps"] = (lambda x, w: tf.scan(lambda h, t: tf.tanh(tf.matmul(tf.concat([h, t], 1), w)), tf.transpose(x, [1, 0, 2]), tf.zeros([4, 64])), [f(4, 50, 64), f(128, 64)])
    c["map_small"] = (lambda x: tf.map_fn(lambda v: tf.reduce_sum(v * v), x), [f(200, 32)])
    return c


def tensorflow_median(call, values, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < 7 or time.perf_counter() < end and len(times) < 2000:
        t = time.perf_counter()
        call(*values)
        times.append((time.perf_counter() - t) * 1e3)
    times = sorted(times[len(times) // 4:])
    return times[len(times) // 2]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("patterns", nargs="*")
    ap.add_argument("--threads", type=int, default=2), ap.add_argument("--above", type=float, default=1.0), ap.add_argument("--seconds", type=float, default=0.3)
    a = ap.parse_args()
    from tensorflow_serving.apis import prediction_log_pb2
    v1 = tf.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=a.threads, inter_op_parallelism_threads=a.threads)
    os.sched_setaffinity(0, range(a.threads))
    rows = []
    print(f"{'case':28} {'smelt ms':>10} {'tf ms':>10} {'smelt/tf':>9}")
    with tempfile.TemporaryDirectory(prefix="smelt_ops_bench_") as work:
        for name, (function, values) in cases().items():
            if a.patterns and not any(fnmatch.fnmatch(name, x) for x in a.patterns):
                continue
            path = pathlib.Path(work) / name
            with tf.Graph().as_default(), v1.Session(config=config) as s:
                feeds = [v1.placeholder(tf.as_dtype(np.array(v).dtype) if np.array(v).dtype != object else tf.string, np.shape(v), f"x{i}") for i, v in enumerate(values)]
                fetches = {f"y{i}": tf.identity(t) for i, t in enumerate(tf.nest.flatten(function(*feeds)))}
                init = v1.tables_initializer()
                s.run(init)
                builder = v1.saved_model.builder.SavedModelBuilder(str(path))
                signature = v1.saved_model.predict_signature_def({f"x{i}": t for i, t in enumerate(feeds)}, fetches)
                builder.add_meta_graph_and_variables(s, ["serve"], {"serving_default": signature}, main_op=init)
                builder.save()
                call = s.make_callable(list(fetches.values()), feed_list=feeds)
                theirs = tensorflow_median(call, values, a.seconds)
                log = prediction_log_pb2.PredictionLog()
                log.log_metadata.saved_model_tags.append("serve")
                log.predict_log.request.model_spec.signature_name = "serving_default"
                for i, v in enumerate(values):
                    log.predict_log.request.inputs[f"x{i}"].CopyFrom(tf.make_tensor_proto(v))
                record = str(path) + ".tfrecord"
                with tf.io.TFRecordWriter(record) as w:
                    w.write(log.SerializeToString())
                ours = smelt_median(a.smelt, str(path), record, a.threads, int(max(7, min(2000, a.seconds * 1e3 / max(theirs, 0.01)))))
                theirs = min(theirs, tensorflow_median(call, values, a.seconds))
            ratio = ours / theirs if ours is not None else float("inf")
            print(f"{name:28} {shown(ours)} {shown(theirs)} {ratio:9.2f}", flush=True)
            rows.append((ratio, name))
    slow = sorted((r for r in rows if r[0] > a.above), reverse=True)
    print(f"{len(rows)} timed, {len(slow)} above {a.above} of TensorFlow's time:")
    for ratio, name in slow:
        print(f"  {ratio:6.2f}  {name}")


if __name__ == "__main__":
    main()
