#!/usr/bin/env python3
"""Random models, answered by TensorFlow and by smelt: random_graphs.py SMELT [--seed 1] [--count 50] [--forms off io_shape ...] [--keep DIR]

Each model draws up to thirty steps (layers, normalizations, activations as graphs spell them, residuals, attention, loops, branches, calls, casts,
changes of layout) over images, sequences and vectors, with variables or constants for weights. It is saved by TensorFlow, replayed plain, then converted
in each of FORMS (rows of corpus.py's table, and quantizations) and replayed again. Quantized and bfloat16 forms need only run: differences beyond the
tolerance do not fail. Model N of a seed is the same whatever the count: `--only N` repeats one.
Needs tensorflow, tensorflow-serving-api."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import corpus
import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2
from tensorflow_serving.apis import prediction_log_pb2

ACTIVATIONS = {
    "relu": tf.nn.relu, "relu6": tf.nn.relu6, "elu": tf.nn.elu, "selu": tf.nn.selu, "leaky": lambda x: tf.nn.leaky_relu(x, 0.1), "tanh": tf.tanh, "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus, "softsign": tf.nn.softsign, "swish": lambda x: x * tf.sigmoid(x), "hard swish": lambda x: x * tf.nn.relu6(x + 3) * (1 / 6),
    "gelu": lambda x: 0.5 * x * (1 + tf.math.erf(x / 2 ** 0.5)), "gelu tanh": lambda x: 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3))),
    "mish": lambda x: x * tf.tanh(tf.nn.softplus(x)), "clip": lambda x: tf.clip_by_value(x, -1.0, 0.7), "prelu": lambda x: tf.nn.relu(x) - 0.2 * tf.nn.relu(-x),
    "max": lambda x: tf.maximum(x, 0.1 * x), "square": lambda x: x * tf.abs(x), "sin": tf.sin, "minmax": lambda x: tf.minimum(tf.maximum(x, 0.0), 6.0)}


class Quantized(corpus.Form):
    def __init__(self, name, method, rest=""):
        super().__init__(name, corpus.OFF + " quantization_options { quantization_method { preset_method: METHOD_%s } op_set: XLA signature_keys: \"serving_default\" "
                         "min_num_elements_for_weights: 1 %s }" % (method, rest))


SAMPLES = 'representative_datasets { key: "serving_default" value { tfrecord_file_path: "{samples}" } }'
QUANTIZED = [Quantized("int8_static", "STATIC_RANGE_INT8", SAMPLES), Quantized("int8_dynamic", "DYNAMIC_RANGE_INT8"), Quantized("int8_weights", "STATIC_RANGE_WEIGHT_ONLY_INT8")]


class Drawn(tf.Module):
    """One model. Values are kept by rank: 2 vectors, 3 sequences, 4 images; the batch is unknown."""

    def __init__(self, seed, version_one=False):
        super().__init__()
        self.version_one = version_one
        self.seed, self.rng = (*seed, 0), np.random.default_rng(seed)
        self.weights, self.rounded, self.joins_rows = [], False, False
        self.inputs = {"image": tf.TensorSpec([None, self.pick(6, 9, 12), self.pick(5, 8, 12), self.pick(1, 3, 8)], tf.float32, "image"),
                       "vector": tf.TensorSpec([None, self.pick(4, 7, 16)], tf.float32, "vector")}
        self.steps = int(self.rng.integers(6, 30))
        keys = tf.lookup.KeyValueTensorInitializer([f"k{i}" for i in range(4)], [2, 0, 3, 1], tf.string, tf.int64)
        self.table = None if version_one else tf.lookup.StaticHashTable(keys, 1)

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def weight(self, *shape, scale=None):
        scale = scale or 1 / max(1, np.prod(shape[:-1])) ** 0.5
        value = (self.rng.normal(size=shape) * scale).astype(np.float32)
        if self.rng.random() < 0.3:
            return tf.constant(value)
        trainable = bool(self.rng.random() < 0.8)
        if self.version_one:
            return tf.compat.v1.Variable(value, use_resource=bool(self.pick(0, 1)))
        if self.next_weight == len(self.weights):
            with tf.init_scope():
                self.weights.append(tf.Variable(value, trainable=trainable, name=f"w{self.next_weight}"))
        self.next_weight += 1
        return self.weights[self.next_weight - 1]

    def norm_weights(self, depth):
        return [self.weight(depth, scale=0.3), self.weight(depth, scale=0.3), self.weight(depth, scale=0.3), tf.constant(self.rng.uniform(0.5, 2, depth).astype(np.float32))]

    def activate(self, x):
        return ACTIVATIONS[self.pick(*ACTIVATIONS)](x)

    # ---- images ----
    def convolve(self, x):
        h, w, c = x.shape[1:]
        kh, kw, out = self.pick(1, 3, 3, 5), self.pick(1, 3, 3), self.pick(1, 4, 8, 16, 17)
        kh, kw = min(kh, h), min(kw, w)
        padding = self.pick("SAME", "VALID", [[0, 0], [1, 1], [0, 2], [0, 0]])
        stride = self.pick(1, 1, 2)
        kind = self.pick("conv", "conv", "depthwise", "dilated", "separable", "transposed", "grouped")
        if kind == "depthwise":
            return tf.nn.depthwise_conv2d(x, self.weight(kh, kw, c, self.pick(1, 1, 2), scale=1 / (kh * kw) ** 0.5), [1, stride, stride, 1], self.pick("SAME", "VALID"))
        if kind == "dilated" and min(h, w) > 4:
            return tf.nn.conv2d(x, self.weight(min(kh, 2), min(kw, 2), c, out), 1, self.pick("SAME", "VALID"), dilations=2)
        if kind == "separable":
            return tf.nn.separable_conv2d(x, self.weight(kh, kw, c, 1, scale=0.5), self.weight(1, 1, c, out), [1, 1, 1, 1], "SAME")
        if kind == "transposed":
            return tf.nn.conv2d_transpose(x, self.weight(2, 2, out, c, scale=(4 * c) ** -0.5), tf.stack([tf.shape(x)[0], h * 2, w * 2, out]), 2, "SAME")
        if kind == "grouped" and c % 4 == 0:
            return tf.nn.conv2d(x, self.weight(kh, kw, c // 4, 8), stride, "SAME")
        return tf.nn.conv2d(x, self.weight(kh, kw, c, out), stride, padding)

    def normalize_image(self, x):
        scale, offset, mean, variance = self.norm_weights(x.shape[-1])
        if self.pick(0, 1):
            return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, mean, variance, epsilon=1e-3, is_training=False)[0]
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)

    def layer(self, x):
        y = self.convolve(x)
        for _ in range(self.pick(0, 1, 2, 3)):
            y = self.pick(lambda y: tf.nn.bias_add(y, self.weight(y.shape[-1])), lambda y: y + self.weight(y.shape[-1]), self.normalize_image, self.activate)(y)
        return y

    def residual(self, x):
        y = tf.nn.conv2d(self.activate(x), self.weight(3, 3, x.shape[-1], x.shape[-1]), 1, "SAME") + self.weight(x.shape[-1])
        y = self.pick(lambda: x + y, lambda: y + x, lambda: tf.add_n([x, y, x]), lambda: x - y)()
        return self.activate(y) if self.pick(0, 1) else y

    def squeeze_excite(self, x):
        c = x.shape[-1]
        s = tf.reduce_mean(x, [1, 2], keepdims=bool(self.pick(0, 1)))
        s = tf.reshape(s, [-1, 1, 1, c])
        s = tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(s, self.weight(1, 1, c, 4), 1, "SAME") + 0.1), self.weight(1, 1, 4, c), 1, "SAME")
        return x * tf.sigmoid(s)

    def pool(self, x):
        k = min(self.pick(2, 3), *x.shape[1:3])
        return self.pick(tf.nn.max_pool2d, tf.nn.avg_pool2d)(x, k, self.pick(1, 2), self.pick("SAME", "VALID"))

    def move_image(self, x):
        h, w, c = x.shape[1:]
        return self.pick(
            lambda: tf.pad(x, [[0, 0], [1, 0], [2, 1], [0, 0]], self.pick("CONSTANT", "REFLECT", "SYMMETRIC")) if min(h, w) > 3 else x, lambda: tf.reverse(x, [1]),
            lambda: tf.image.resize(x, [h + 3, w + 2], self.pick("bilinear", "nearest", "bicubic", "area")),
            lambda: tf.nn.space_to_depth(x, 2) if h % 2 == w % 2 == 0 else x, lambda: tf.roll(x, [1, -1], [1, 2]),
            lambda: tf.transpose(self.activate(tf.transpose(x, [0, 3, 1, 2])) + self.weight(c, 1, 1), [0, 2, 3, 1]), lambda: tf.transpose(x, [0, 2, 1, 3]),
            lambda: tf.concat([x, self.activate(x)], -1), lambda: tf.split(x, [1, c - 1], -1)[1] if c > 1 else x, lambda: x[:, 1:, ::2] if h > 2 else x,
            lambda: tf.reshape(tf.transpose(tf.reshape(x, [-1, h, w, 2, c // 2]), [0, 1, 2, 4, 3]), [-1, h, w, c]) if c % 2 == 0 else x,
            lambda: tf.nn.local_response_normalization(x, 2), lambda: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID") if c < 9 and min(h, w) > 1 else x)()

    # ---- vectors and sequences ----
    def dense(self, x):
        d, out = x.shape[-1], self.pick(1, 4, 16, 33)
        w = self.weight(d, out)
        y = self.pick(lambda: tf.matmul(x, w), lambda: tf.tensordot(x, w, 1), lambda: tf.einsum("...i,ij->...j", x, w))()
        for _ in range(self.pick(0, 1, 2)):
            y = self.pick(lambda y: tf.nn.bias_add(y, self.weight(out)), lambda y: y + self.weight(out), lambda y: y * self.weight(out, scale=1), self.activate)(y)
        return y

    def layer_norm(self, x):
        scale, offset, _, _ = self.norm_weights(x.shape[-1])
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-3) * scale + offset

    def attention(self, x):
        d, heads = 8, self.pick(1, 2, 4)
        q, k, v = (tf.transpose(tf.reshape(tf.matmul(x, self.weight(x.shape[-1], d)), [-1, x.shape[1], heads, d // heads]), [0, 2, 1, 3]) for _ in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * (d // heads) ** -0.5
        if self.pick(0, 1):
            scores += tf.cast(tf.linalg.band_part(tf.ones([x.shape[1]] * 2), -1, 0) - 1, tf.float32) * 1e9
        y = tf.matmul(tf.nn.softmax(scores), v)
        return tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [-1, x.shape[1], d])

    def recurrent(self, x):
        units = self.pick(3, 8)
        w, u, b = self.weight(x.shape[-1], units), self.weight(units, units), self.weight(units)
        start = tf.zeros([tf.shape(x)[0], units])
        steps = tf.transpose(x, [1, 0, 2])
        if self.pick(0, 1):
            y = tf.scan(lambda h, v: tf.tanh(tf.matmul(v, w) + tf.matmul(h, u) + b), steps, start)
        else:
            out = tf.TensorArray(tf.float32, size=x.shape[1])
            _, _, out = tf.while_loop(lambda i, h, out: i < x.shape[1], lambda i, h, out: (
                i + 1, *(lambda n: (n, out.write(i, n)))(tf.nn.relu(tf.matmul(steps[i], w) + tf.matmul(h, u) * 0.5 + b))), (0, start, out))
            y = out.stack()
            y.set_shape([x.shape[1], None, units])
        return tf.transpose(y, [1, 0, 2])

    def sequence(self, x):
        t, d = x.shape[1:]
        return self.pick(
            lambda: self.attention(x), lambda: self.recurrent(x), lambda: tf.nn.conv1d(x, self.weight(min(3, t), d, 6), 1, self.pick("SAME", "VALID")), lambda: tf.cumsum(x, 1) * 0.3,
            lambda: tf.transpose(x, [0, 2, 1]), lambda: x + self.weight(t, d, scale=0.3), lambda: tf.nn.softmax(x, self.pick(1, 2)), lambda: tf.sort(x, 1),
            lambda: tf.gather(x, tf.constant([t - 1, 0]), axis=1), lambda: tf.map_fn(lambda v: v * 0.5 + tf.reduce_mean(v), x), lambda: tf.concat([x[:, 1:], x[:, :1]], 1),
            lambda: tf.reverse(x, [1]))()

    def vector(self, x):
        d = x.shape[-1]
        return self.pick(
            lambda: tf.nn.softmax(x), lambda: tf.nn.log_softmax(x), lambda: tf.math.top_k(x, min(3, d)).values, lambda: tf.one_hot(tf.argmax(x, -1), d), lambda: tf.math.l2_normalize(x, -1),
            lambda: tf.gather(self.weight(11, 5, scale=1), tf.cast(tf.abs(x[:, 0]) * 3, tf.int32) % 11), lambda: tf.where(x > 0.1, x, x * x), lambda: tf.cumsum(x, 1, reverse=True) * 0.3,
            lambda: tf.cast(tf.cast(x * 8, tf.int32) // 3, tf.float32), lambda: tf.stack([x, -x], 2)[:, :, 0] + x, lambda: tf.nn.embedding_lookup(self.weight(9, 4, scale=1), tf.argmax(x, 1) % 9),
            lambda: tf.concat([x, tf.reduce_max(x, 1, keepdims=True)], 1), lambda: tf.linalg.matvec(self.weight(6, d), x), lambda: tf.pad(x, [[0, 0], [0, 2]]), lambda: tf.tile(x, [1, 2]),
            lambda: tf.squeeze(tf.expand_dims(x, 1) @ tf.expand_dims(x, 2), 2) * self.weight(4, scale=0.3), lambda: tf.math.divide_no_nan(x, tf.reduce_sum(tf.abs(x), 1, keepdims=True)))()

    def index(self, x):
        """Indices, tables, strings and shapes that only values tell."""
        d = x.shape[-1]
        whole = tf.cast(tf.clip_by_value(x * 3, -9, 9), tf.int32)
        ids = tf.abs(whole) % 5
        return self.pick(
            lambda: tf.gather(x, tf.argsort(x, stable=True), batch_dims=1), lambda: tf.cast(tf.math.bincount(ids, minlength=5, maxlength=5, axis=-1), tf.float32),
            lambda: tf.strings.to_number(tf.strings.as_string(whole)) * 0.5, lambda: tf.one_hot(tf.strings.to_hash_bucket_fast(tf.strings.as_string(whole[:, 0]), 7), 7),
            lambda: x if self.table is None else tf.one_hot(self.table.lookup(tf.strings.join(["k", tf.strings.as_string(ids[:, 0])])), 4), lambda: tf.tensor_scatter_nd_update(tf.zeros([6, d]), [[2], [5]], self.weight(2, d))[:1] + x,
            lambda: tf.scatter_nd([[0], [3]], self.weight(2, d), [4, d])[3:] * x, lambda: tf.math.unsorted_segment_sum(tf.transpose(x), tf.constant([i % 3 for i in range(d)]), 3)[0][:, None] + x,
            lambda: tf.RaggedTensor.from_tensor(x, padding=0.0).to_tensor(0.5, shape=[None, d]), lambda: tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(tf.nn.relu(x)), self.weight(d, 6)),
            lambda: tf.reshape(tf.boolean_mask(tf.concat([x, x], 1), tf.concat([x > 0, x <= 0], 1)), [-1, d]), lambda: tf.cast(tf.searchsorted(tf.constant([-1.0, 0.0, 0.5]), tf.reshape(x, [-1])), tf.float32)[:, None] * tf.ones([1, 3]),
            lambda: tf.quantization.fake_quant_with_min_max_vars(x, -2.0, 2.5), lambda: tf.cast(tf.bitwise.bitwise_xor(whole, 5), tf.float32) * 0.1, lambda: tf.cast(tf.math.floormod(whole, 3), tf.float32),
            lambda: tf.random.stateless_normal(tf.shape(x), [3, 5]) * 0.1 + x, lambda: tf.linalg.inv(tf.matmul(x[:, :, None], x[:, None, :]) + tf.eye(d))[:, 0] if d < 9 else x,
            lambda: tf.einsum("bi,bj->bij", x, x)[:, 0], lambda: tf.math.cumulative_logsumexp(x, 1), lambda: tf.reverse_sequence(x, tf.abs(whole[:, 0]) % (d + 1), 1, 0), lambda: tf.repeat(x, 2, 1),
            lambda: tf.cast(tf.unique(tf.reshape(ids, [-1])).idx, tf.float32)[:, None] * tf.constant([[0.1, 0.2]]), lambda: tf.gather(x, tf.where(tf.reduce_sum(x, 1) > -1e9)[:, 0]))()

    # ---- any rank ----
    def control(self, x):
        kind = self.pick("cond", "loop", "call", "case", "nested")
        self.joins_rows |= kind in ("cond", "case")
        if kind == "cond":
            a, b = self.weight(x.shape[-1], scale=1), self.weight(x.shape[-1], scale=1)
            y = tf.cond(tf.reduce_mean(x) > self.pick(-5.0, 0.0, 5.0), lambda: x * a, lambda: self.activate(x) + b)
        elif kind == "loop":
            times = self.pick(0, 2, 3)
            y = tf.while_loop(lambda i, v: i < times, lambda i, v: (i + 1, tf.tanh(v) * 0.9 + 0.1 * x), (0, x))[1]
        elif kind == "case":
            y = tf.switch_case(tf.cast(tf.abs(tf.reduce_sum(x)), tf.int32) % 2, [lambda: x * 2.0, lambda: tf.nn.relu(x)])
        else:
            activation, bias = ACTIVATIONS[self.pick(*ACTIVATIONS)], self.weight(x.shape[-1])
            inner = tf.function(lambda v: activation(v) + bias, autograph=False)
            y = tf.function(lambda v: inner(v) * 0.5 + inner(v), autograph=False)(x) if kind == "nested" else inner(x)
        y.set_shape(x.shape)
        return y

    def detour(self, x):
        narrow = self.pick(tf.float16, tf.bfloat16, tf.float64, tf.float64)
        self.rounded |= narrow != tf.float64
        y = tf.cast(x, narrow)
        y = self.activate(y) if self.pick(0, 1) else tf.nn.relu(y + tf.constant(0.5, narrow))
        return tf.cast(y, tf.float32)

    def combine(self, pool, x):
        same = [v for v in pool if v.shape.as_list() == x.shape.as_list()]
        y = same[int(self.rng.integers(len(same)))]
        return self.pick(lambda: x + y, lambda: x * y, lambda: x - 0.5 * y, lambda: tf.maximum(x, y), lambda: tf.math.squared_difference(x, y), lambda: tf.concat([x, y], -1),
                         lambda: tf.where(x > y, x, 0.3 * y), lambda: tf.stack([x, y], 0)[1])()

    def bridge(self, x):
        """To another rank."""
        d = x.shape[1:].as_list()
        if x.shape.rank == 4:
            return self.pick(lambda: tf.reduce_mean(x, [1, 2]), lambda: tf.reshape(x, [-1, int(np.prod(d))]), lambda: tf.reshape(x, [tf.shape(x)[0], d[0] * d[1], d[2]]), lambda: tf.reduce_max(x, 2))()
        if x.shape.rank == 3:
            return self.pick(lambda: x[:, -1], lambda: tf.reduce_mean(x, 1), lambda: tf.reshape(x, [-1, d[0] * d[1]]), lambda: tf.expand_dims(x, self.pick(2, 3)))()
        return self.pick(lambda: tf.reshape(tf.matmul(x, self.weight(d[0], 24)), [-1, 6, 4]), lambda: tf.expand_dims(x, 2), lambda: tf.reshape(tf.matmul(x, self.weight(d[0], 48)), [-1, 4, 4, 3]))()

    def step(self, pool):
        x = pool[int(self.rng.integers(max(0, len(pool) - 5), len(pool)))]
        any_rank = [self.activate, self.control, self.detour, lambda x: self.combine(pool, x), self.bridge, tf.identity, tf.stop_gradient]
        own = {4: [self.layer, self.layer, self.layer, self.residual, self.squeeze_excite, self.pool, self.move_image, self.normalize_image],
               3: [self.sequence, self.sequence, self.dense, self.layer_norm], 2: [self.vector, self.dense, self.dense, self.layer_norm, self.index]}[x.shape.rank]
        y = self.pick(*own, *own, *any_rank)(x)
        dims = y.shape[1:].as_list() if y.shape.rank else [None]
        return y if None not in dims and 0 not in dims and np.prod(dims) <= 20000 else x

    def build(self, image, vector):
        self.rng, self.next_weight, pool = np.random.default_rng(self.seed), 0, [image, vector]
        for _ in range(self.steps):
            pool.append(self.step(pool))
        return {"last": pool[-1], "middle": pool[len(pool) // 2], "early": pool[3]}


def save(seed, path, version_one):
    """Saves the model and its requests with TensorFlow's answers: (whether values pass in 16 bits, whether a row's answer depends on others)."""
    module = Drawn(seed, version_one)
    feeds = [{k: module.rng.normal(size=[batch, *s.shape[1:]]).astype(np.float32) for k, s in module.inputs.items()} for batch in (1, 3)]
    if version_one:
        answers = save_version_one(module, path, feeds)
    else:
        tf.compat.v1.wrap_function(module.build, list(module.inputs.values()))  # makes the variables, which tf.function forbids
        f = tf.function(module.build, input_signature=list(module.inputs.values()), autograph=False)
        tf.saved_model.save(module, str(path), signatures=f.get_concrete_function())
        loaded = tf.saved_model.load(str(path)).signatures["serving_default"]
        answers = [{k: v.numpy() for k, v in loaded(**{k: tf.constant(v) for k, v in feed.items()}).items()} for feed in feeds]
    with tf.io.TFRecordWriter(str(path) + ".tfrecord") as out, tf.io.TFRecordWriter(str(path) + ".samples") as samples:
        for feed, answer in zip(feeds, answers):
            log = prediction_log_pb2.PredictionLog()
            log.log_metadata.saved_model_tags.append("serve")
            request = log.predict_log.request
            request.model_spec.signature_name = "serving_default"
            for k, v in feed.items():
                request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
            for k, v in answer.items():
                log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v))
            out.write(log.SerializeToString())
            samples.write(quantization_options_pb2.RepresentativeDataSample(tensor_proto_inputs=dict(request.inputs)).SerializeToString())
    return module.rounded, module.joins_rows


def save_version_one(module, path, feeds):
    """As TensorFlow 1 does: control flow in the graph, variables of both kinds, a main op."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = {k: tf.compat.v1.placeholder(s.dtype, s.shape, k) for k, s in module.inputs.items()}
        outputs = {k: tf.identity(v) for k, v in module.build(**inputs).items()}
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.saved_model.simple_save(session, str(path), inputs, outputs)
        return [session.run(outputs, {inputs[k]: v for k, v in feed.items()}) for feed in feeds]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("--seed", type=int, default=1), ap.add_argument("--count", type=int, default=50), ap.add_argument("--only", type=int)
    ap.add_argument("--version_one", action="store_true", help="graphs and variables as TensorFlow 1 saves them")
    ap.add_argument("--keep", type=pathlib.Path), ap.add_argument("--forms", nargs="*", default=["off", "io_shape", "bfloat16", "batching", *(q.name for q in QUANTIZED)])
    a = ap.parse_args()
    smelt, work = os.path.abspath(a.smelt), a.keep or pathlib.Path(tempfile.mkdtemp(prefix="smelt_random_"))
    work.mkdir(exist_ok=True)

    def call(*args):
        p = subprocess.run([smelt, *map(str, args)], capture_output=True, text=True, timeout=120)
        return p.returncode, (p.stdout + p.stderr).strip()

    if a.version_one:
        tf.compat.v1.disable_control_flow_v2()
    forms = [f for f in [c for c in corpus.FORMS if not c.int8] + QUANTIZED if f.name in a.forms]
    passed, failed, coarse = 0, [], 0
    for n in [a.only] if a.only is not None else range(a.count):
        path = work / f"m{n}"
        shutil.rmtree(path, ignore_errors=True)
        try:
            rounded, joins_rows = save((a.seed, n), path, a.version_one)
        except tf.errors.OpError as e:  # its own fusions that it cannot run, singular matrices
            print(f"TensorFlow cannot run {n}: {corpus.one_line(str(e), 120)}")
            continue
        wrong = []
        log = ["--log", str(path) + ".tfrecord", "--rtol", "1e-3", "--atol", "1e-4", "--range_tol", "0.02" if rounded else "0.0005"]
        code, text = call("replay", path, *log)
        if code:
            wrong.append(f"plain: {corpus.one_line(text, 400)}")
        for form in forms:
            if form.batching and joins_rows:
                continue
            convert = ["convert", path, str(path) + "_c", "--overwrite", "--converter_options_string",
                       'tpu_functions { signature_name: "serving_default" } ' + form.options.replace("{samples}", str(path) + ".samples")]
            code, text = call(*convert)
            if "isn't compilable for TPU" in text:
                code, text = call(*convert, "--allow_soft_placement")
            if code == 0:
                code, text = call("replay", str(path) + "_c", *log[:-1], "0.1" if form.bfloat16 else log[-1])
            answered = re.search(r"\d+ of \d+ elements differ", text)
            if isinstance(form, Quantized) and (answered or "No quantizable" in text or "quantization-aware training (QAT) is not supported" in text):
                code = 0
            if code and form.bfloat16 and answered:
                code, coarse = 0, coarse + 1
            rightly = form.batching and any(words in text for words in corpus.NO_BATCHING) or form.bfloat16 and "is bfloat16 already" in text
            if code and not rightly:
                wrong.append(f"{form.name}: {corpus.one_line(text, 400)}")
        passed += not wrong
        if wrong:
            failed.append(n)
            print(f"FAILED {n}\n  " + "\n  ".join(wrong), flush=True)
        elif not a.keep:
            shutil.rmtree(path), shutil.rmtree(str(path) + "_c", ignore_errors=True)
    print(f"in bfloat16 {coarse} differ by more than a tenth of their range")
    print(f"{passed} passed, {len(failed)} failed {failed or ''}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
