#!/usr/bin/env python3
"""Many small models of every kind that Keras and tf.Module make, each saved by TensorFlow and answered by both: keras_models.py SMELT [NAME...]

One row is a function that returns (model or module, list of requests); what differs is printed with smelt's words. Needs tensorflow,
tensorflow-serving-api."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from tensorflow_serving.apis import prediction_log_pb2

smelt, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
rng = np.random.default_rng(5)
ROWS = {}
# A step of bfloat16: where the processor does not multiply it, TensorFlow rounds sums on their way.
TOLERANCES = {"half_precision": "8e-3"}


def row(f):
    ROWS[f.__name__] = f
    return f


def normal(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def layer(name, make, *shape, batches=(1, 3), integers=0):
    """A model of one layer on inputs of `shape` (without the batch)."""
    def build():
        x = keras.Input(shape, dtype="int32" if integers else "float32", name="x")
        model = keras.Model(x, make()(x))
        free = [d if d is not None else 7 for d in shape]
        value = lambda b: rng.integers(0, integers, (b, *free)).astype(np.int32) if integers else normal(b, *free)
        return model, [{"x": value(b)} for b in batches]
    ROWS[name] = build


# ---- layers of Keras ----
layer("dense_gelu", lambda: L.Dense(5, activation="gelu"), 4)
for activation in ("relu", "relu6", "elu", "selu", "silu", "softplus", "softsign", "tanh", "sigmoid", "hard_sigmoid", "hard_silu", "exponential", "mish", "leaky_relu",
                   "log_softmax", "softmax", "celu", "glu", "hard_tanh", "hard_shrink", "soft_shrink", "tanh_shrink", "squareplus", "sparse_plus", "log_sigmoid"):
    layer(f"activation_{activation}", lambda a=activation: L.Activation(a), 4, 6)
layer("prelu", lambda: L.PReLU(), 4, 6)
for pad in ("same", "valid"):
    layer(f"conv1d_{pad}", lambda p=pad: L.Conv1D(4, 3, strides=2, padding=p), None, 3)
    layer(f"conv2d_{pad}", lambda p=pad: L.Conv2D(4, 3, strides=2, padding=p, activation="relu"), 11, 9, 3)
    layer(f"conv3d_{pad}", lambda p=pad: L.Conv3D(4, 3, padding=p), 6, 7, 8, 2)
    layer(f"conv2d_transpose_{pad}", lambda p=pad: L.Conv2DTranspose(4, 3, strides=2, padding=p), 5, 6, 3)
    layer(f"depthwise_{pad}", lambda p=pad: L.DepthwiseConv2D(3, depth_multiplier=2, strides=1, padding=p), 8, 8, 3)
    layer(f"separable_{pad}", lambda p=pad: L.SeparableConv2D(5, 3, strides=2, padding=p), 8, 8, 3)
    layer(f"maxpool_{pad}", lambda p=pad: L.MaxPooling2D(3, 2, padding=p), 9, 9, 3)
    layer(f"avgpool_{pad}", lambda p=pad: L.AveragePooling2D(3, 2, padding=p), 9, 9, 3)
layer("conv1d_causal", lambda: L.Conv1D(4, 3, padding="causal", dilation_rate=2), 12, 3)
layer("conv2d_dilated", lambda: L.Conv2D(4, 3, dilation_rate=3, padding="same"), 16, 16, 3)
layer("conv2d_grouped", lambda: L.Conv2D(6, 3, groups=3), 8, 8, 6)
layer("conv1d_transpose", lambda: L.Conv1DTranspose(3, 4, strides=2), 6, 2)
layer("conv3d_transpose", lambda: L.Conv3DTranspose(3, 3, strides=2, padding="same"), 3, 4, 5, 2)
layer("depthwise1d", lambda: L.DepthwiseConv1D(3), 9, 4)
layer("separable1d", lambda: L.SeparableConv1D(5, 3), 9, 4)
layer("pool1d", lambda: L.MaxPooling1D(2), 9, 4)
layer("pool3d", lambda: L.AveragePooling3D(2), 6, 6, 6, 2)
layer("global_pool", lambda: L.GlobalAveragePooling2D(keepdims=True), 5, 6, 3)
layer("global_max1d", lambda: L.GlobalMaxPooling1D(), None, 3)
layer("adaptive_pool", lambda: L.GlobalMaxPooling3D(), 3, 4, 5, 2)
layer("upsample_bilinear", lambda: L.UpSampling2D(2, interpolation="bilinear"), 4, 5, 3)
layer("upsample_bicubic", lambda: L.UpSampling2D(3, interpolation="bicubic"), 4, 5, 3)
layer("upsample1d", lambda: L.UpSampling1D(3), 4, 3)
layer("upsample3d", lambda: L.UpSampling3D(2), 2, 3, 4, 2)
layer("zero_padding", lambda: L.ZeroPadding2D(((1, 2), (3, 0))), 4, 5, 3)
layer("cropping", lambda: L.Cropping2D(((1, 0), (1, 2))), 6, 7, 3)
layer("batch_norm", lambda: L.BatchNormalization(), 4, 4, 3)
layer("layer_norm", lambda: L.LayerNormalization(), 4, 6)
layer("rms_norm", lambda: L.RMSNormalization(), 4, 6)
layer("group_norm", lambda: L.GroupNormalization(2), 4, 4, 6)
layer("unit_norm", lambda: L.UnitNormalization(), 4, 6)
layer("spectral_norm", lambda: L.SpectralNormalization(L.Dense(4)), 6)
for rnn in ("LSTM", "GRU", "SimpleRNN"):
    layer(f"{rnn}_sequences", lambda r=rnn: getattr(L, r)(5, return_sequences=True), None, 3)
    layer(f"{rnn}_last", lambda r=rnn: getattr(L, r)(5, go_backwards=True), 6, 3)
    layer(f"bidirectional_{rnn}", lambda r=rnn: L.Bidirectional(getattr(L, r)(4, return_sequences=True)), 6, 3)
layer("gru_reset_before", lambda: L.GRU(5, reset_after=False, activation="relu"), 6, 3)
layer("lstm_unrolled", lambda: L.LSTM(4, unroll=True), 4, 3)
layer("stacked_cells", lambda: L.RNN([L.LSTMCell(4), L.GRUCell(3)]), 6, 3)
layer("conv_lstm", lambda: L.ConvLSTM2D(3, 3, padding="same"), 4, 6, 6, 2)
layer("conv_lstm1d", lambda: L.ConvLSTM1D(3, 3), 4, 6, 2)
layer("time_distributed", lambda: L.TimeDistributed(L.Conv2D(3, 3)), 3, 6, 6, 2)
layer("embedding", lambda: L.Embedding(11, 4), None, integers=11)
layer("category_one_hot", lambda: L.CategoryEncoding(7, output_mode="multi_hot"), 4, integers=7)
layer("category_count", lambda: L.CategoryEncoding(7, output_mode="count"), 4, integers=7)
layer("integer_lookup", lambda: L.IntegerLookup(vocabulary=[3, 5, 7]), 4, integers=9)
layer("hashing_int", lambda: L.Hashing(13), 4, integers=1000)
layer("discretization", lambda: L.Discretization([-1.0, 0.0, 1.5]), 4)
layer("normalization", lambda: L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), 3)
layer("rescaling", lambda: L.Rescaling(1 / 127.5, offset=-1), 4, 4, 3)
for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"):
    if method in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"):
        layer(f"resizing_{method}", lambda m=method: L.Resizing(7, 9, interpolation=m), 12, 11, 3)
layer("resizing_crop", lambda: L.Resizing(6, 6, crop_to_aspect_ratio=True), 12, 9, 3)
layer("resizing_pad", lambda: L.Resizing(6, 6, pad_to_aspect_ratio=True), 12, 9, 3)
layer("center_crop", lambda: L.CenterCrop(5, 4), 9, 9, 3)
for name in ("RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast", "RandomBrightness", "RandomTranslation", "RandomCrop", "GaussianNoise", "Dropout"):
    arguments = {"RandomFlip": (), "RandomCrop": (4, 4), "RandomTranslation": (0.2, 0.2)}.get(name, (0.2,))
    layer(f"inference_{name}", lambda n=name, a=arguments: getattr(L, n)(*a), 6, 6, 3)
layer("reshape_permute", lambda: keras.Sequential([L.Reshape((3, -1)), L.Permute((2, 1)), L.Flatten(), L.RepeatVector(3)]), 4, 6)
layer("einsum_dense", lambda: L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d"), 4, 6)
layer("mel", lambda: L.MelSpectrogram(fft_length=64, sequence_stride=16, num_mel_bins=8, sampling_rate=800, max_freq=400), 400)
layer("masked_lstm", lambda: keras.Sequential([L.Masking(0.0), L.LSTM(4)]), 5, 3)
layer("maxnum_pool", lambda: keras.Sequential([L.Embedding(9, 6, mask_zero=True), L.Bidirectional(L.GRU(4))]), 6, integers=9)
layer("identity_sum", lambda: L.Lambda(lambda x: tf.reduce_logsumexp(x, -1)), 4, 6)


def binary(name, make, *shapes):
    def build():
        inputs = [keras.Input(s, name=f"x{i}") for i, s in enumerate(shapes)]
        return keras.Model(inputs, make(inputs)), [{f"x{i}": normal(b, *s) for i, s in enumerate(shapes)} for b in (1, 3)]
    ROWS[name] = build


binary("multi_head_attention", lambda x: L.MultiHeadAttention(2, 4)(x[0], x[1]), (5, 8), (7, 8))
binary("causal_attention", lambda x: L.MultiHeadAttention(2, 4)(x[0], x[0], use_causal_mask=True), (5, 8), (5, 8))
binary("grouped_attention", lambda x: L.GroupQueryAttention(4, 4, 2)(x[0], x[1]), (5, 8), (7, 8))
binary("dot_attention", lambda x: L.Attention(use_scale=True)([x[0], x[1]]), (5, 8), (7, 8))
binary("additive_attention", lambda x: L.AdditiveAttention()([x[0], x[1]]), (5, 8), (7, 8))
binary("merges", lambda x: L.Concatenate()([L.Add()(x), L.Subtract()(x), L.Multiply()(x), L.Average()(x), L.Maximum()(x), L.Minimum()(x)]), (4, 6), (4, 6))
binary("dot", lambda x: L.Dot(axes=(2, 2), normalize=True)(x), (4, 6), (5, 6))
binary("bilinear", lambda x: keras.ops.einsum("bij,bkj->bik", *x), (4, 6), (5, 6))


@row
def text_vectorization():
    for_words = L.TextVectorization(max_tokens=20, output_sequence_length=6)
    for_words.adapt(["the cat sat", "the dog sat on the mat"])
    x = keras.Input((), dtype="string", name="x")
    return keras.Model(x, for_words(x)), [{"x": np.array(v, dtype=object)} for v in (["The cat!"], ["dog on", "", "unknown words the mat sat cat dog the"])]


@row
def text_tf_idf():
    v = L.TextVectorization(max_tokens=20, output_mode="tf_idf", ngrams=2)
    v.adapt(["the cat sat", "the dog sat on the mat"])
    x = keras.Input((), dtype="string", name="x")
    return keras.Model(x, v(x)), [{"x": np.array(["the cat", "dog dog mat"], dtype=object)}]


@row
def string_lookup():
    x = keras.Input((3,), dtype="string", name="x")
    y = L.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=2)(x)
    z = L.StringLookup(vocabulary=["a", "b", "c"], output_mode="count")(x)
    return keras.Model(x, [y, z]), [{"x": np.array([["a", "zz", "c"], ["q", "b", ""]], dtype=object)}]


@row
def string_inverse():
    x = keras.Input((3,), dtype="int64", name="x")
    return keras.Model(x, L.StringLookup(vocabulary=["a", "b", "c"], invert=True)(x)), [{"x": np.array([[0, 1, 3]], np.int64)}]


@row
def hashed_crossing():
    a, b = keras.Input((1,), dtype="string", name="a"), keras.Input((1,), dtype="int64", name="b")
    y = L.HashedCrossing(8, output_mode="one_hot")((a, b))
    return keras.Model([a, b], y), [{"a": np.array([["u"], ["v"]], dtype=object), "b": np.array([[3], [4]], np.int64)}]


@row
def feature_space():
    f = keras.utils.FeatureSpace({"age": keras.utils.FeatureSpace.float_normalized(), "job": keras.utils.FeatureSpace.string_categorical(num_oov_indices=1)}, output_mode="concat")
    data = tf.data.Dataset.from_tensor_slices({"age": [20.0, 30.0, 50.0], "job": ["cook", "clerk", "cook"]})
    f.adapt(data)
    inputs = f.get_inputs()
    return keras.Model(inputs, f.get_encoded_features()), [{"age": np.array([[25.0], [44.0]], np.float32), "job": np.array([["cook"], ["king"]], dtype=object)}]


# ---- modules and functions ----
def module(name, function, *requests, specs=None, **variables):
    """One tf.function of a module with variables; the specs are those of the first request with free sizes."""
    def build():
        m = tf.Module()
        for k, v in variables.items():
            setattr(m, k, v() if callable(v) else tf.Variable(v))
        dtype = lambda v: tf.string if np.asarray(v).dtype.kind in "OSU" else tf.as_dtype(np.asarray(v).dtype)
        spec = specs or {k: tf.TensorSpec([None] * np.ndim(v), dtype(v), name=k) for k, v in requests[0].items()}
        m.serve = tf.function(lambda **kw: function(m, **kw), input_signature=None)
        m.concrete = m.serve.get_concrete_function(**spec)
        return m, list(requests)
    ROWS[name] = build


s = lambda *v: np.array(v, dtype=object)
f = lambda *v: np.array(v, np.float32)
i = lambda *v: np.array(v, np.int64)
module("strings", lambda m, x: {"a": tf.strings.split(x).to_tensor(), "b": tf.strings.length(x, unit="UTF8_CHAR"), "c": tf.strings.regex_full_match(x, "a.*"),
                                "d": tf.strings.substr(x, 0, 2), "e": tf.strings.upper(x), "f": tf.strings.join([x, x], "-"), "g": tf.strings.to_hash_bucket_fast(x, 97)},
       {"x": s("a b c", "déf g", "")})
module("strings_ngrams", lambda m, x: tf.strings.ngrams(tf.strings.split(x), 2).to_tensor(), {"x": s("a b c", "d", "e f")})
module("unicode", lambda m, x: {"a": tf.strings.unicode_decode(x, "UTF-8").to_tensor(), "b": tf.strings.unicode_split(x, "UTF-8").to_tensor(), "c": tf.strings.unicode_script(tf.strings.unicode_decode(x, "UTF-8").to_tensor())},
       {"x": s("aé", "日本語", "")})
module("numbers", lambda m, x: {"a": tf.strings.to_number(x), "b": tf.strings.as_string(tf.strings.to_number(x), precision=3), "c": tf.strings.format("x={}", [x])}, {"x": s("1.5", "-2e3")})
module("base64", lambda m, x: {"a": tf.io.encode_base64(x), "b": tf.io.decode_base64(tf.io.encode_base64(x))}, {"x": s("hello", "")})
module("ragged", lambda m, x, n: {"a": tf.RaggedTensor.from_row_lengths(x, n).to_tensor(-1.0), "b": tf.reduce_sum(tf.RaggedTensor.from_row_lengths(x, n), 1), "c": tf.RaggedTensor.from_row_lengths(x, n).row_splits},
       {"x": f(1, 2, 3, 4, 5), "n": i(2, 0, 3)})
module("ragged_gather", lambda m, x, n: tf.gather(tf.RaggedTensor.from_row_lengths(x, n), [1, 0]).to_tensor(), {"x": f(1, 2, 3, 4, 5), "n": i(2, 3)})
module("sparse", lambda m, x: {"a": tf.sparse.to_dense(tf.sparse.reorder(tf.sparse.from_dense(x))), "b": tf.sparse.reduce_sum(tf.sparse.from_dense(x), 1), "c": tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(x), tf.transpose(x))},
       {"x": f([1, 0, 2], [0, 0, 3])})
module("segments", lambda m, x: {"a": tf.math.segment_sum(x, tf.constant([0, 0, 1, 3])), "b": tf.math.unsorted_segment_max(x, tf.constant([2, 0, 2, 1]), 4), "c": tf.nn.embedding_lookup(m.v, tf.constant([1, 0]))},
       {"x": normal(4, 3)}, v=normal(3, 2))
module("while_loop", lambda m, x: tf.while_loop(lambda k, a: k < 5, lambda k, a: (k + 1, tf.nn.relu(a * 1.5 - m.v)), [0, x])[1], {"x": normal(2, 3)}, v=f(0.1))
module("cond", lambda m, x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.switch_case(tf.size(x) % 3, [lambda: x, lambda: -x, lambda: x + 1])), {"x": f(1, 2)}, {"x": f(-1, -2, 3, -9)})
module("map_fn", lambda m, x: tf.map_fn(lambda r: tf.sort(r)[::-1] + m.v, x), {"x": normal(3, 4)}, v=f(1.0))
module("scan", lambda m, x: tf.scan(lambda a, r: a * 0.5 + r, x), {"x": normal(4, 3)})
module("vectorized_map", lambda m, x: tf.vectorized_map(lambda r: tf.linalg.matvec(m.v, r), x), {"x": normal(3, 4)}, v=normal(4, 4))
module("tensor_array", lambda m, x: tf.TensorArray(tf.float32, 3, dynamic_size=True).unstack(x).gather([2, 0]), {"x": normal(3, 2)})
module("beam", lambda m, x: tf.math.top_k(tf.nn.log_softmax(x), 3).indices, {"x": normal(2, 9)})
module("gather_scatter", lambda m, x: {"a": tf.tensor_scatter_nd_update(x, [[1], [0]], m.v), "b": tf.gather_nd(x, [[0, 1], [2, 0]]), "c": tf.scatter_nd([[1], [3]], m.v, [4, 3]), "d": tf.gather(x, [[0], [2]], batch_dims=0, axis=1)},
       {"x": normal(3, 3)}, v=normal(2, 3))
module("slices", lambda m, x: {"a": x[..., ::-1], "b": x[1:, None, :-1], "c": x[:, 2], "d": tf.boolean_mask(x, x[:, 0] > 0), "e": tf.where(x > 0, x, -x), "f": tf.where(x > 0)}, {"x": normal(4, 5)})
module("linalg", lambda m, x: {"a": tf.linalg.inv(x), "b": tf.linalg.det(x), "c": tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(4)), "d": tf.linalg.solve(x, x[:, :2]), "e": tf.linalg.svd(x, compute_uv=False), "f": tf.linalg.band_part(x, 1, 0)},
       {"x": normal(4, 4)})
module("signal", lambda m, x: {"a": tf.abs(tf.signal.stft(x, 16, 8)), "b": tf.signal.dct(x[:, :16]), "c": tf.signal.inverse_stft(tf.signal.stft(x, 16, 8), 16, 8), "d": tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.abs(x[:, :20]) + 1.0))},
       {"x": normal(2, 64)})
module("fft2d", lambda m, x: {"a": tf.abs(tf.signal.fft2d(tf.cast(x, tf.complex64))), "b": tf.signal.irfft2d(tf.signal.rfft2d(x)), "c": tf.abs(tf.signal.fft3d(tf.cast(x, tf.complex64)[None]))}, {"x": normal(4, 6)})
module("images", lambda m, x: {"a": tf.image.adjust_saturation(x, 1.5), "b": tf.image.rgb_to_grayscale(x), "c": tf.image.adjust_hue(x, 0.2), "d": tf.image.adjust_contrast(x, 2.0), "e": tf.image.per_image_standardization(x), "f": tf.image.rgb_to_hsv(x),
                               "g": tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), "h": tf.image.sobel_edges(x), "i": tf.image.resize_with_pad(x, 5, 7), "j": tf.image.rot90(x), "k": tf.image.total_variation(x), "l": tf.image.ssim(x, x * 0.9, 1.0, filter_size=3)},
       {"x": rng.uniform(0, 1, (2, 8, 8, 3)).astype(np.float32)})
module("image_files", lambda m, x: tf.map_fn(lambda b: tf.image.resize(tf.io.decode_image(b, channels=3, expand_animations=False), [4, 4]), x, fn_output_signature=tf.TensorSpec([4, 4, 3], tf.float32)),
       {"x": s(*[tf.io.encode_png(rng.integers(0, 255, (5, 6, 3)).astype(np.uint8)).numpy(), tf.io.encode_jpeg(rng.integers(0, 255, (8, 8, 3)).astype(np.uint8)).numpy()])})
module("detection", lambda m, b, c: tf.image.combined_non_max_suppression(b[:, :, None], c, 5, 8, 0.5, 0.1)._asdict(), {"b": np.sort(rng.uniform(0, 1, (2, 12, 4)).astype(np.float32), -1), "c": rng.uniform(0, 1, (2, 12, 3)).astype(np.float32)})
module("crop_and_resize", lambda m, x: tf.image.crop_and_resize(x, [[0.1, 0.1, 0.9, 0.8]], [0], [5, 5]), {"x": normal(1, 9, 9, 2)})
module("quantised", lambda m, x: {"a": tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0), "b": tf.quantization.quantize_and_dequantize_v2(x, -2.0, 2.0), "c": tf.quantization.dequantize(tf.quantization.quantize(x, -2.0, 2.0, tf.quint8).output, -2.0, 2.0)}, {"x": normal(3, 4)})
module("reductions", lambda m, x: {"a": tf.reduce_logsumexp(x, 1), "b": tf.math.reduce_std(x), "c": tf.math.cumsum(x, 1, exclusive=True, reverse=True), "d": tf.math.cumulative_logsumexp(x), "e": tf.reduce_prod(x, 0), "f": tf.math.reduce_euclidean_norm(x, 0), "g": tf.argmax(x, 1), "h": tf.norm(x, ord=1, axis=0), "i": tf.math.bincount(tf.cast(tf.abs(x[0]) * 3, tf.int32))}, {"x": normal(3, 4)})
module("special", lambda m, x: {"a": tf.math.erf(x), "b": tf.math.lgamma(tf.abs(x) + 0.1), "c": tf.math.digamma(tf.abs(x) + 0.1), "d": tf.math.bessel_i0e(x), "e": tf.math.igamma(tf.abs(x) + 0.5, tf.abs(x)), "f": tf.math.atan2(x, x + 1), "g": tf.math.xlogy(tf.abs(x), tf.abs(x)), "h": tf.math.ndtri(tf.sigmoid(x)), "i": tf.math.betainc(1.5, 2.5, tf.sigmoid(x))}, {"x": normal(3, 4)})
module("random_stateless", lambda m, x: {"a": tf.random.stateless_normal([3], x), "b": tf.random.stateless_uniform([4], x, 0, 10, tf.int32), "c": tf.random.stateless_truncated_normal([2], x), "d": tf.random.stateless_categorical(tf.zeros([1, 4]), 3, x), "e": tf.random.experimental.stateless_shuffle(tf.range(5), x)}, {"x": np.array([3, 4], np.int32)})
module("examples", lambda m, x: tf.io.parse_example(x, {"a": tf.io.FixedLenFeature([2], tf.float32), "b": tf.io.FixedLenSequenceFeature([], tf.int64, True)}),
       {"x": s(tf.train.Example(features=tf.train.Features(feature={"a": tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2])), "b": tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))})).SerializeToString())})
module("sequence_examples", lambda m, x: {k: (v.to_tensor() if isinstance(v, tf.RaggedTensor) else v) for part in tf.io.parse_sequence_example(x, {"a": tf.io.FixedLenFeature([], tf.float32, 0.5)}, {"b": tf.io.RaggedFeature(tf.int64)})[:2] for k, v in part.items()},
       {"x": s(tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(feature_list={"b": tf.train.FeatureList(feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=[3, 4]))])})).SerializeToString())})
module("csv", lambda m, x: {str(k): v for k, v in enumerate(tf.io.decode_csv(x, [[0.0], ["d"], [1]]))}, {"x": s("1.5,a,2", ",,")})
module("raw", lambda m, x: {"a": tf.io.decode_raw(x, tf.int16), "b": tf.io.parse_tensor(tf.io.serialize_tensor(tf.io.decode_raw(x, tf.uint8)), tf.uint8)}, {"x": s(b"abcd", b"efgh")})
module("tables", lambda m, x: {"a": m.t.lookup(x), "b": m.t.size()}, {"x": s("a", "q")},
       t=lambda: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.5, 2.5]), -1.0))
module("vocabulary", lambda m, x: m.t.lookup(x), {"x": s("a", "q", "r")},
       t=lambda: tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), 3))
module("dense_table", lambda m, x: m.t.lookup(x), {"x": i(3, 4)}, t=lambda: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([3, 9], tf.int64), ["x", "y"]), "none"))
module("half_precision", lambda m, x: {"a": tf.cast(tf.nn.relu(tf.cast(x, tf.bfloat16) @ tf.cast(m.v, tf.bfloat16)), tf.float32), "b": tf.cast(tf.nn.softmax(tf.cast(x, tf.float16)), tf.float32)}, {"x": normal(3, 4)}, v=normal(4, 4))
module("double", lambda m, x: {"a": tf.matmul(x, m.v), "b": tf.nn.conv1d(x[:, :, None], m.v[None, :1, :], 1, "SAME")}, {"x": rng.normal(0, 1, (3, 4))}, v=rng.normal(0, 1, (4, 4)))
module("complex", lambda m, x: {"a": tf.math.real(tf.complex(x, x) * tf.complex(x, -x)), "b": tf.math.abs(tf.complex(x, x)), "c": tf.math.imag(tf.exp(tf.complex(x, x)))}, {"x": normal(3, 4)})
module("integers", lambda m, x: {"a": x // 3, "b": x % 5, "c": tf.bitwise.bitwise_xor(x, 7), "d": tf.bitwise.left_shift(x, 2), "e": tf.math.floormod(-x, 4), "f": tf.cast(x, tf.uint8), "g": tf.math.pow(x, 2), "h": tf.one_hot(x, 4), "i": tf.sets.intersection(x[None], x[None, :1]).values}, {"x": i(9, 2, 3)})
module("sorting", lambda m, x: {"a": tf.argsort(x, direction="DESCENDING"), "b": tf.unique_with_counts(tf.cast(x[0], tf.int32)).count, "c": tf.searchsorted(tf.sort(x), x), "d": tf.math.in_top_k([1, 0], x[:2], 2), "e": tf.random.shuffle(x * 0, seed=1)}, {"x": normal(3, 4)})
module("space", lambda m, x: {"a": tf.nn.space_to_depth(x, 2), "b": tf.nn.depth_to_space(x, 2), "c": tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), "d": tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]], "REFLECT"), "e": tf.roll(x, [1, -2], [1, 2]), "f": tf.reverse_sequence(x, [3, 2], 1)}, {"x": normal(2, 4, 4, 4)})
module("ctc", lambda m, x: {"a": tf.sparse.to_dense(tf.nn.ctc_greedy_decoder(x, [5, 4])[0][0]), "b": tf.sparse.to_dense(tf.nn.ctc_beam_search_decoder(x, [5, 4], 4, 1)[0][0])}, {"x": normal(5, 2, 6)})
module("gradients", lambda m, x: tf.gradients(tf.reduce_sum(tf.nn.relu(tf.nn.conv2d(x, m.v, 1, "SAME")) ** 2), [x])[0], {"x": normal(1, 5, 5, 2)}, v=normal(3, 3, 2, 3))
module("training_step", lambda m, x: m.v.assign_sub(0.1 * tf.gradients(tf.reduce_sum(tf.tanh(x @ m.w) ** 2), [x])[0][:, :2]), {"x": normal(4, 4)}, v=normal(4, 2), w=normal(4, 2))
module("edit_distance", lambda m, x: tf.edit_distance(tf.sparse.from_dense(x), tf.sparse.from_dense(x + 1)), {"x": i([1, 2, 0], [3, 0, 0])})
module("dataset_in_graph", lambda m, x: tf.data.Dataset.from_tensor_slices(x).map(lambda v: v * 2).batch(2).reduce(tf.zeros([]), lambda a, b: a + tf.reduce_sum(b)), {"x": f(1, 2, 3)})
module("print_assert", lambda m, x: [tf.debugging.assert_greater(x, -100.0), tf.print("x", x, output_stream="file:///dev/null"), tf.identity(x)][2], {"x": f(1, 2)})
module("block_lstm", lambda m, x: tf.raw_ops.BlockLSTMV2(seq_len_max=tf.constant(3, tf.int64), x=x, cs_prev=tf.zeros([2, 4]), h_prev=tf.zeros([2, 4]), w=m.w, wci=tf.zeros([4]), wcf=tf.zeros([4]),
                                                         wco=tf.zeros([4]), b=tf.zeros([16]), cell_clip=0.0, use_peephole=False).h, {"x": normal(3, 2, 5)}, w=normal(9, 16))


for name in ("MobileNetV3Small", "EfficientNetV2B0", "DenseNet121", "Xception", "NASNetMobile", "ConvNeXtTiny"):
    def application(n=name):
        model = getattr(keras.applications, n)(weights=None, input_shape=(96, 96, 3) if n not in ("NASNetMobile",) else (224, 224, 3), classes=10)
        return model, [{model.input_names[0] if hasattr(model, "input_names") else "x": rng.uniform(0, 255, (1, *model.input_shape[1:])).astype(np.float32)}]
    ROWS[f"application_{name}"] = application


def save(model, path):
    if isinstance(model, keras.Model):
        model.export(str(path), verbose=False)
    else:
        tf.saved_model.save(model, str(path), signatures=model.concrete)


def record(path, log_path, requests):
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    keys = list(serve.structured_input_signature[1])
    with tf.io.TFRecordWriter(str(log_path)) as out:
        for request in requests:
            inputs = dict(zip(keys, request.values())) if len(keys) == 1 else request
            answers = serve(**{k: tf.constant(v) for k, v in inputs.items()})
            log = prediction_log_pb2.PredictionLog()
            log.log_metadata.saved_model_tags.append("serve")
            log.predict_log.request.model_spec.signature_name = "serving_default"
            for k, v in inputs.items():
                log.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
            for k, v in answers.items():
                log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v.numpy()))
            out.write(log.SerializeToString())


def main():
    work = pathlib.Path(os.environ.get("ZOO_KEEP") or tempfile.mkdtemp(prefix="smelt_zoo_"))
    passed, failed, unmade = 0, [], []
    for name, build in ROWS.items():
        if wanted and name not in wanted:
            continue
        path, log = work / name, work / f"{name}.tfrecord"
        try:
            if not log.exists():
                keras.utils.set_random_seed(3)
                model, requests = build()
                save(model, path)
                record(path, log, requests)
        except Exception as e:  # TensorFlow itself cannot make or run it: reported, not judged
            unmade.append(name)
            print(f"not made: {name}: {type(e).__name__}: {str(e).splitlines()[0][:150] if str(e) else traceback.format_exc()[-200:]}", flush=True)
            continue
        p = subprocess.run([smelt, "replay", str(path), "--log", str(log), "--allow_write", "/dev/null", "--rtol", TOLERANCES.get(name, "1e-3"), "--atol", "1e-4"], capture_output=True, text=True)
        if p.returncode == 0:
            passed += 1
        else:
            failed.append(name)
            print(f"FAILED {name}: {' '.join((p.stdout + p.stderr).split())[:400]}", flush=True)
        if not os.environ.get("ZOO_KEEP"):
            shutil.rmtree(path, ignore_errors=True)
    if not os.environ.get("ZOO_KEEP"):
        shutil.rmtree(work)
    print(f"{passed} passed, {len(failed)} failed" + (f", {len(unmade)} not made" if unmade else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
