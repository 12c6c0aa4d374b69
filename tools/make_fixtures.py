#!/usr/bin/env python3
"""Writes the sample and test models with TensorFlow: make_fixtures.py OUT_DIR [NAME...]

Long because it holds every model. For each model NAME: OUT_DIR/NAME/ (the SavedModel) and OUT_DIR/NAME.tfrecord (PredictionLogs: requests and what TensorFlow answers, in
one session). Everything is seeded. Needs tensorflow and tensorflow-serving-api; smelt itself needs neither.
"""
import os
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

SEED = 7


class LanguageModel(tf.Module):
    """Words to ids on the host (strings, a vocabulary table), a small transformer behind `tpu_func`."""

    WORDS = ("the a an of to and in is it you that was for on are as with his they be at one have this from or had by not but what all were "
             "we when your can said there use each which she do how their if will up other about out many then them these so some her would "
             "make like him into time has look two more write go see number no way could people my than first water been call who oil its now "
             "find long down day did get come made may part good bad film great poor fine movie story actor plot dull bright slow fast warm cold").split()
    LENGTH, WIDTH, HEADS = 16, 64, 4

    def __init__(self, vocabulary):
        super().__init__()
        rng = np.random.default_rng(SEED)
        self.table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            num_oov_buckets=8)
        weight = lambda name, *shape: tf.Variable(rng.normal(0, shape[0] ** -0.5, shape).astype(np.float32), name=name)
        w = self.WIDTH
        self.embedding = tf.Variable(rng.normal(0, 1, (len(self.WORDS) + 9, w)).astype(np.float32), name="embedding")
        self.position = tf.Variable(rng.normal(0, 0.3, (self.LENGTH, w)).astype(np.float32), name="position")
        self.layers = [{k: weight(f"layer_{i}/{k}", *s) for k, s in dict(qkv=(w, 3 * w), out=(w, w), up=(w, 4 * w), down=(4 * w, w)).items()}
                       for i in range(2)]
        self.bias = [tf.Variable(rng.normal(0, 0.1, 4 * w).astype(np.float32), name=f"layer_{i}/up_bias") for i in range(2)]
        self.classify = weight("classify", w, 2)

    def preprocess(self, text):
        clean = tf.strings.regex_replace(tf.strings.lower(text), r"[^a-z ]", " ")
        words = tf.raw_ops.StringSplitV2(input=clean, sep="", maxsplit=-1)
        ids = self.table.lookup(words.values) + 1  # 0 pads
        dense = tf.sparse.to_dense(tf.sparse.SparseTensor(words.indices, ids, words.shape))[:, :self.LENGTH]
        return tf.cast(tf.pad(dense, [[0, 0], [0, self.LENGTH - tf.shape(dense)[1]]]), tf.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, LENGTH], tf.int32, name="word_ids")])
    def tpu_func(self, word_ids):
        norm = lambda v: (v - tf.reduce_mean(v, -1, keepdims=True)) * tf.math.rsqrt(tf.math.reduce_variance(v, -1, keepdims=True) + 1e-5)
        mask = tf.cast(tf.equal(word_ids, 0), tf.float32)[:, None, None, :] * -1e9
        x = tf.gather(self.embedding, word_ids) + self.position
        batch, depth = tf.shape(word_ids)[0], self.WIDTH // self.HEADS
        for layer, bias in zip(self.layers, self.bias):
            qkv = tf.reshape(tf.matmul(tf.reshape(norm(x), [-1, self.WIDTH]), layer["qkv"]), [batch, self.LENGTH, 3, self.HEADS, depth])
            q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
            attention = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * depth ** -0.5 + mask)
            y = tf.reshape(tf.transpose(tf.matmul(attention, v), [0, 2, 1, 3]), [batch, self.LENGTH, self.WIDTH])
            x += tf.tensordot(y, layer["out"], 1)
            x += tf.tensordot(tf.nn.gelu(tf.tensordot(norm(x), layer["up"], 1) + bias), layer["down"], 1)
        return {"scores": tf.nn.softmax(tf.matmul(tf.reduce_mean(norm(x), 1), self.classify))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def model_func(self, text):
        return self.tpu_func(self.preprocess(text))


class Functions(tf.Module):
    """Functions that call each other: for placement."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable([[2.0, 0.5], [1.0, -1.0]], name="scale")

    spec = [tf.TensorSpec([None, 2], tf.float32, name="x")]

    @tf.function(input_signature=spec)
    def leaf(self, x):
        return tf.matmul(x, self.scale)

    @tf.function(input_signature=spec)
    def between(self, x):
        return self.leaf(x) + 1.0

    @tf.function(input_signature=spec)
    def indirect(self, x):
        return self.between(x) * 2.0

    @tf.function(input_signature=spec)
    def direct(self, x):
        return self.leaf(x) * 3.0

    @tf.function(input_signature=spec, jit_compile=True)
    def compiled(self, x):
        return tf.nn.relu(x) - 0.25

    @tf.function(input_signature=spec)
    def serve(self, x):
        return {"direct": self.direct(x), "indirect": self.indirect(x), "compiled": self.compiled(x), "same": x}


class Counter(tf.Module):
    """State that requests change."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0.0, name="count")

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="delta")])
    def add(self, delta):
        return {"count": self.count.assign_add(delta)}

    @tf.function(input_signature=[])
    def get(self):
        return {"count": self.count.read_value()}


class Loop(tf.Module):
    """A while loop over a tensor list, and a branch."""

    def __init__(self):
        super().__init__()
        self.step = tf.Variable([[0.5, 0.25], [-0.25, 0.5]], name="step")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="steps")])
    def run(self, x, steps):
        parts = tf.TensorArray(tf.float32, size=steps, element_shape=[None, 2])
        for i in tf.range(steps):
            x = tf.tanh(tf.matmul(x, self.step)) + x
            parts = parts.write(i, x)
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0)
        return {"all": parts.stack(), "last": y}


class Cnn(tf.Module):
    """Convolution, normalization, depthwise, pooling, a dense layer."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        variable = lambda *shape: tf.Variable(rng.normal(0, 0.3, shape).astype(np.float32))
        self.conv, self.depthwise, self.dense = variable(3, 3, 3, 8), variable(3, 3, 8, 1), variable(8, 5)
        self.gamma, self.beta, self.mean, self.variance = (tf.Variable(rng.uniform(0.5, 1.5, 8).astype(np.float32)) for _ in range(4))
        self.bias = variable(5)

    @tf.function(input_signature=[tf.TensorSpec([None, 16, 16, 3], tf.float32, name="image")])
    def serve(self, image):
        x = tf.nn.conv2d(image, self.conv, 2, "SAME")
        x = tf.raw_ops.FusedBatchNormV3(x=x, scale=self.gamma, offset=self.beta, mean=self.mean, variance=self.variance, is_training=False).y
        x = tf.nn.relu(x)
        x = tf.nn.relu6(tf.nn.depthwise_conv2d(x, self.depthwise, [1, 1, 1, 1], "SAME"))
        x = tf.reduce_mean(tf.nn.max_pool2d(x, 2, 2, "VALID"), [1, 2])
        return {"logits": tf.nn.bias_add(tf.matmul(x, self.dense), self.bias)}


class WideCnn(tf.Module):
    """Convolutions whose packed weights are worth keeping."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        variable = lambda *shape: tf.Variable(rng.normal(0, 0.1, shape).astype(np.float32))
        self.wide, self.pointwise, self.dense = variable(3, 3, 16, 70), variable(1, 1, 70, 96), variable(96, 80)
        self.gamma, self.beta, self.mean, self.variance = (tf.Variable(rng.uniform(0.5, 1.5, 70).astype(np.float32)) for _ in range(4))

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 16], tf.float32, name="image")])
    def serve(self, image):
        x = tf.nn.conv2d(image, self.wide, 2, "SAME")
        x = tf.raw_ops.FusedBatchNormV3(x=x, scale=self.gamma, offset=self.beta, mean=self.mean, variance=self.variance, is_training=False).y
        x = tf.nn.relu(tf.nn.conv2d(tf.nn.relu(x), self.pointwise, 1, "SAME"))
        return {"y": tf.matmul(tf.reduce_mean(x, [1, 2]), self.dense)}


class PlainModule(tf.Module):
    """What Python saves without a thought of serving: several traces, keyword and nested arguments, every kind of captured object."""

    def __init__(self, words):
        super().__init__()
        self.scale = tf.Variable([1.5, -2.0], name="scale")
        self.total = tf.Variable(0.0, name="total")
        self.shift = tf.constant([[10.0, 20.0]] * 40)  # too large to be a node of the function
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([4, 5], tf.int64)), -1)
        self.words = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -7)

    @tf.function
    def __call__(self, x, training=False):
        return {"scaled": x * self.scale, "shifted": (x + self.shift[:1], tf.reduce_sum(x) if training else tf.reduce_max(x))}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="delta")])
    def add(self, delta):
        return self.total.assign_add(delta)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def lookup(self, words):
        return self.table.lookup(words), self.words.lookup(words)


def write_log(out, signature, inputs, outputs):
    log = prediction_log_pb2.PredictionLog()
    log.log_metadata.saved_model_tags.append("serve")
    log.predict_log.request.model_spec.signature_name = signature
    for k, v in inputs.items():
        log.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
    for k, v in outputs.items():
        log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v))
    out.write(log.SerializeToString())


def record(path, log_path, requests):
    """Asks TensorFlow each (signature, inputs) in one session, as its C++ loader opens the model."""
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session, tf.io.TFRecordWriter(log_path) as out:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], path)
        for signature, inputs in requests:
            sig = meta.signature_def[signature]
            names = sorted(sig.outputs)
            answers = session.run([sig.outputs[n].name for n in names], {sig.inputs[k].name: v for k, v in inputs.items()})
            write_log(out, signature, inputs, dict(zip(names, answers)))


def record_loaded(path, log_path, requests):
    """As record, as Python loads the model: TensorFlow's session leaves variables of Keras 3 without a value."""
    model = tf.saved_model.load(path)
    with tf.io.TFRecordWriter(log_path) as out:
        for signature, inputs in requests:
            answers = model.signatures[signature](**{k: tf.constant(v) for k, v in inputs.items()})
            write_log(out, signature, inputs, {k: answers[k].numpy() for k in sorted(answers)})


def record_functions(path, log_path, requests):
    """The same through Python, for a model without signatures: 'function:ATTRIBUTE#OPTION' names a trace, in the order saved."""
    model = tf.saved_model.load(path)
    with tf.io.TFRecordWriter(log_path) as out:
        for name, inputs in requests:
            attribute, option = name[len("function:"):].split("#")
            function = getattr(model, attribute).concrete_functions[int(option)]
            answers = tf.nest.flatten(function(*[tf.constant(v) for v in inputs.values()]), expand_composites=True)
            log = prediction_log_pb2.PredictionLog()
            log.log_metadata.saved_model_tags.append("serve")
            log.predict_log.request.model_spec.signature_name = name
            for k, v in inputs.items():
                log.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
            for i, v in enumerate(answers):
                log.predict_log.response.outputs[f"output_{i}"].CopyFrom(tf.make_tensor_proto(v.numpy()))
            out.write(log.SerializeToString())


def language_model(path):
    vocabulary = "/tmp/vocabulary.txt"
    with open(vocabulary, "w") as f:
        f.write("\n".join(LanguageModel.WORDS) + "\n")
    model = LanguageModel(vocabulary)
    tf.saved_model.save(model, path, signatures=model.model_func, options=tf.saved_model.SaveOptions(function_aliases={"tpu_func": model.tpu_func}))
    texts = ["A great film, with a fine story!", "the plot was dull and slow", "", "what a bright and warm movie about people who find water",
             "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"]
    return [("serving_default", {"text": np.array(t, dtype=object)}) for t in ([texts[0]], texts, ["poor"] * 2)]


def functions(path):
    model = Functions()
    aliases = {n: getattr(model, n) for n in ("leaf", "between", "indirect", "direct", "compiled")}
    tf.saved_model.save(model, path, signatures=model.serve, options=tf.saved_model.SaveOptions(function_aliases=aliases))
    return [("serving_default", {"x": np.array(v, np.float32)}) for v in ([[1, 2]], [[0.5, -1], [3, 4], [-2, 0.25]])]


def counter(path):
    model = Counter()
    tf.saved_model.save(model, path, signatures={"add": model.add, "get": model.get})
    delta = lambda v: ("add", {"delta": np.float32(v)})
    return [("get", {}), delta(1.5), ("get", {}), delta(2), delta(-0.5), ("get", {}), ("get", {}), delta(4), ("get", {})]


def loop(path):
    model = Loop()
    tf.saved_model.save(model, path, signatures=model.run)
    return [("serving_default", {"x": np.array(x, np.float32), "steps": np.int32(n)}) for x, n in (([[1, 2]], 3), ([[-1, -2], [0.5, -3]], 5), ([[1, 1]], 1))]


def cnn(path):
    model = Cnn()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(1)
    return [("serving_default", {"image": rng.normal(0, 1, (b, 16, 16, 3)).astype(np.float32)}) for b in (1, 3)]


def wide_cnn(path):
    model = WideCnn()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(1)
    return [("serving_default", {"image": rng.normal(0, 1, (b, 12, 12, 16)).astype(np.float32)}) for b in (1, 3)]


def half_plus_two_v1(path):
    """TensorFlow 1: ref variables, a saver, ParseExample, a main op."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.disable_resource_variables()
        a, b = v1.get_variable("a", initializer=0.5), v1.get_variable("b", initializer=2.0)
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        parsed = v1.parse_example(serialized, {"x": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0])})
        x = v1.placeholder_with_default(tf.identity(parsed["x"]), [None, 1], name="x")
        y = tf.add(tf.multiply(a, x), b, name="y")
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        signature = v1.saved_model.signature_def_utils.build_signature_def
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(session, ["serve"], {
            "serving_default": signature({"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"),
            "regress": signature({"inputs": info(serialized)}, {"outputs": info(y)}, "tensorflow/serving/regress")}, main_op=tf.no_op(name="init"))
        builder.save()
    example = tf.train.Example(features=tf.train.Features(feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=[6.0]))})).SerializeToString()
    empty = tf.train.Example().SerializeToString()
    return [("serving_default", {"x": np.array([[1.0], [4.0]], np.float32)}), ("regress", {"inputs": np.array([example, empty], dtype=object)})]


def plain_module(path):
    with open("/tmp/words.txt", "w") as f:
        f.write("b\nc\n")
    model = PlainModule("/tmp/words.txt")
    for shape in ([None, 2], [2]):
        for training in (False, True):
            model.__call__.get_concrete_function(tf.TensorSpec(shape, tf.float32, name="x"), training=training)
    tf.saved_model.save(model, path)
    x = np.array([[1, 2], [3, -4]], np.float32)
    words = {"words": np.array(["b", "a", "c", ""], dtype=object)}
    return ([(f"function:__call__#{i}", {"x": x}) for i in range(2)] + [(f"function:__call__#{i}", {"x": x[0]}) for i in (2, 3)]
            + [("function:add#0", {"delta": np.float32(v)}) for v in (2, 0.5)] + [("function:lookup#0", words)])


class DebugLines(tf.Module):
    """Saved with debug info: which line of this file made a node. `parse` has ops that no TPU can compile."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0, -2.0], [3.0, 0.5]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def parse(self, x):
        return tf.strings.to_number(tf.strings.as_string(x))

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def model(self, x):
        y = tf.matmul(self.parse(x), self.w)
        return tf.matmul(tf.tanh(y), self.w) + y


def debug_lines(path):
    model = DebugLines()
    tf.saved_model.save(model, path, signatures=model.model, options=tf.saved_model.SaveOptions(save_debug_info=True))
    return [("serving_default", {"x": np.array(v, np.float32)}) for v in ([[1, 2]], [[0.5, -1], [3, 4]])]


class Slopes(tf.Module):
    """A signature that asks for a gradient: forward functions also return what the backward ones need, weights among it."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.random.default_rng(SEED).normal(0, 0.5, (8, 4)).astype(np.float32))
        self.layer = tf.function(lambda x: tf.nn.softmax(tf.matmul(x, self.w)))

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="x")])
    def serve(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            best = tf.reduce_max(self.layer(x), 1)
        return {"best": best, "slope": tape.gradient(best, x)}


def slopes(path):
    model = Slopes()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(2)
    return [("serving_default", {"x": rng.normal(0, 1, (b, 8)).astype(np.float32)}) for b in (1, 3)]


class Trained(tf.Module):
    """Saved with its optimizer, which keeps two slots for each variable, after a step of training."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        self.w = tf.Variable(rng.normal(0, 0.5, (16, 8)).astype(np.float32), name="w")
        self.b = tf.Variable(rng.normal(0, 0.5, 8).astype(np.float32), name="b")
        self.optimizer = tf.compat.v1.train.AdamOptimizer(0.01)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.serve(tf.constant(rng.normal(0, 1, (4, 16)), tf.float32))["y"] ** 2)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, [self.w, self.b]), [self.w, self.b]))

    @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32, name="x")])
    def serve(self, x):
        return {"y": tf.nn.relu(tf.matmul(x, self.w) + self.b)}


def trained(path):
    model = Trained()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(3)
    return [("serving_default", {"x": rng.normal(0, 1, (b, 16)).astype(np.float32)}) for b in (1, 3)]


class Listed(tf.Module):
    """Its weights stand in a list, each behind its momentum, which training alone uses: a list counts otherwise without them."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        variable = lambda *shape: tf.Variable(rng.normal(0, 0.5, shape).astype(np.float32))
        self.all = [variable(48, 48), variable(48, 48), variable(48, 48), variable(48, 48)]

    @tf.function(input_signature=[tf.TensorSpec([None, 48], tf.float32, name="x")])
    def serve(self, x):
        return {"y": tf.matmul(tf.nn.relu(tf.matmul(x, self.all[1])), self.all[3])}

    @tf.function(input_signature=[tf.TensorSpec([None, 48], tf.float32)])
    def train(self, x):
        weights, momenta = self.all[1::2], self.all[0::2]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.serve(x)["y"] ** 2)
        for weight, momentum, slope in zip(weights, momenta, tape.gradient(loss, weights)):
            momentum.assign(0.9 * momentum + slope)
            weight.assign_sub(0.01 * momentum)
        return loss


def listed(path):
    model = Listed()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(3)
    return [("serving_default", {"x": rng.normal(0, 1, (b, 48)).astype(np.float32)}) for b in (1, 3)]


def keras_in_module(path):
    """A Keras 3 model inside a module: each variable has two handles, one of which starts with what the other holds."""
    import keras
    keras.utils.set_random_seed(SEED)
    model = tf.Module()
    model.inner = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(24, activation="relu"), keras.layers.Dense(4)])
    model.serve = tf.function(lambda x: {"y": model.inner(x)})
    tf.saved_model.save(model, path, signatures=model.serve.get_concrete_function(tf.TensorSpec([None, 16], tf.float32, name="x")))
    rng = np.random.default_rng(4)
    return [("serving_default", {"x": rng.normal(0, 1, (b, 16)).astype(np.float32)}) for b in (1, 3)]


class Wishes(tf.Module):
    """Signatures that take few values (ids below their tables, serialized Examples, images and other files, numbers as text, known words, parts of sparse tensors), and
    one with a random output, which no request is recorded of."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        weight = lambda *shape: tf.Variable(rng.normal(0, shape[0] ** -0.5, shape).astype(np.float32))
        self.words, self.kinds, self.out, self.pixels, self.numbers = weight(11, 32), weight(2, 32), weight(32, 8), weight(48, 8), weight(1, 32)
        keys = tf.constant(["red", "green", "blue", "white", "black"])
        self.colors = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.range(5, dtype=tf.int64)), -1)

    def answer(self, x):
        return {"y": tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, self.out)), self.out, transpose_b=True))}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids"), tf.TensorSpec([None, None], tf.int64, name="kinds"),
                                  tf.TensorSpec([None, None], tf.float32, name="mask")])
    def ids(self, ids, kinds, mask):
        x = tf.gather(self.words, ids) + tf.map_fn(lambda k: tf.gather(self.kinds, k), kinds, fn_output_signature=tf.float32)
        return self.answer(tf.reduce_sum(x * mask[:, :, None], 1))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="serialized")])
    def examples(self, serialized):
        f = tf.io.parse_example(serialized, {"id": tf.io.FixedLenFeature([2], tf.int64), "amount": tf.io.FixedLenFeature([], tf.float32),
                                             "colors": tf.io.VarLenFeature(tf.string)})
        colors = tf.gather(self.kinds, self.colors.lookup(tf.reshape(tf.sparse.to_dense(f["colors"], "red"), [-1])) // 3)
        return self.answer(tf.reduce_sum(tf.gather(self.words, f["id"]), 1) + colors + f["amount"][:, None])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image")])
    def image(self, image):
        pixels = tf.map_fn(lambda b: tf.image.resize(tf.io.decode_jpeg(b, channels=3), [4, 4]), image, fn_output_signature=tf.float32)
        x = tf.matmul(tf.reshape(pixels / 255 - 0.5, [-1, 48]), self.pixels)
        return self.answer(tf.matmul(x, self.out, transpose_b=True))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def text(self, text):
        return self.answer(tf.matmul(tf.strings.to_number(text)[:, None], self.numbers))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="png"), tf.TensorSpec([], tf.string, name="sound"),
                                  tf.TensorSpec([None], tf.string, name="fields"), tf.TensorSpec([], tf.string, name="example")])
    def files(self, png, sound, fields, example):
        shade = tf.map_fn(lambda b: tf.reduce_mean(tf.cast(tf.io.decode_png(b), tf.float32)), tf.io.decode_base64(png), fn_output_signature=tf.float32)
        loud = tf.reduce_mean(tf.audio.decode_wav(sound).audio ** 2)
        amount, count, _ = tf.io.decode_csv(fields, [[0.0], [0], [""]])
        one = tf.io.parse_single_example(example, {"id": tf.io.FixedLenFeature([], tf.int64), "many": tf.io.RaggedFeature(tf.float32)})
        x = tf.gather(self.words, one["id"])[None] + tf.reduce_sum(one["many"]) + loud
        return self.answer(x + (shade / 255 + amount + tf.cast(count, tf.float32))[:, None])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="color")])
    def color(self, color):
        return self.answer(tf.gather(self.words, self.colors.lookup(color)))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int64, name="places"), tf.TensorSpec([None], tf.float32, name="values"),
                                  tf.TensorSpec([2], tf.int64, name="size")])
    def sparse(self, places, values, size):
        return self.answer(tf.sparse.to_dense(tf.sparse.SparseTensor(places, values, size))[:, :1] * self.numbers)

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, name="x")])
    def any_rank(self, x):
        return self.answer(tf.reshape(x, [-1, 1]) * self.numbers)

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, name="x")])
    def luck(self, x):
        return {**self.answer(x * self.numbers), "drawn": x + tf.raw_ops.RandomUniform(shape=tf.shape(x), dtype=tf.float32)}


def wishes(path):
    model = Wishes()
    tf.saved_model.save(model, path, signatures={n: getattr(model, n) for n in ("ids", "examples", "image", "files", "text", "color", "sparse", "any_rank", "luck")})
    feature = lambda kind, *v: tf.train.Feature(**{kind: {"float_list": tf.train.FloatList, "int64_list": tf.train.Int64List,
                                                          "bytes_list": tf.train.BytesList}[kind](value=v)})
    example = tf.train.Example(features=tf.train.Features(feature={
        "id": feature("int64_list", 3, 10), "amount": feature("float_list", 0.5), "colors": feature("bytes_list", b"blue")})).SerializeToString()
    pixels = np.random.default_rng(5).integers(0, 256, (9, 7, 3), np.uint8)
    return [("ids", {"ids": np.array([[1, 10]], np.int32), "kinds": np.array([[0, 1]], np.int64), "mask": np.array([[1, 0.5]], np.float32)}),
            ("examples", {"serialized": np.array([example], object)}),
            ("image", {"image": np.array([tf.io.encode_jpeg(pixels).numpy()], object)}),
            ("files", {"png": np.array([tf.io.encode_base64(tf.io.encode_png(pixels)).numpy()], object), "fields": np.array([b"0.5,3,word"], object),
                       "sound": tf.audio.encode_wav(np.array([[0.5], [-0.25]], np.float32), 8000).numpy(),
                       "example": tf.train.Example(features=tf.train.Features(feature={
                           "id": feature("int64_list", 7), "many": feature("float_list", 0.5, 0.25)})).SerializeToString()}),
            ("text", {"text": np.array([b"0.25", b"-3"], object)}),
            ("color", {"color": np.array([b"white"], object)}),
            ("sparse", {"places": np.array([[0, 0], [1, 1]], np.int64), "values": np.array([1, 2], np.float32), "size": np.array([2, 2], np.int64)}),
            ("any_rank", {"x": np.array([[1, 2]], np.float32)})]


class Bytes(tf.Module):
    """Takes strings that nobody would guess."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.random.default_rng(SEED).normal(0, 0.5, (16, 16)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="raw")])
    def serve(self, raw):
        x = tf.matmul(tf.ensure_shape(tf.io.decode_raw(raw, tf.float32), [None, 16]), self.w)
        return {"y": tf.nn.relu(x)}


def bytes_only(path):
    model = Bytes()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(6)
    return [("serving_default", {"raw": np.array([rng.normal(0, 1, 16).astype(np.float32).tobytes() for _ in range(b)], object)}) for b in (1, 3)]


class Mixed(tf.Module):
    """Variables and answers of float32, and products in bfloat16, as Keras's policy mixed_bfloat16 makes them."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        self.w = [tf.Variable(rng.normal(0, 0.3, (16, n)).astype(np.float32)) for n in (16, 4)]

    @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32, name="x")])
    def serve(self, x):
        x = tf.nn.relu(tf.matmul(tf.cast(x, tf.bfloat16), tf.cast(self.w[0], tf.bfloat16)))
        return {"y": tf.nn.softmax(tf.cast(tf.matmul(x, tf.cast(self.w[1], tf.bfloat16)), tf.float32))}


def mixed(path):
    model = Mixed()
    tf.saved_model.save(model, path, signatures=model.serve)
    rng = np.random.default_rng(6)
    return [("serving_default", {"x": rng.normal(0, 1, (b, 16)).astype(np.float32)}) for b in (1, 3)]


def fusable(name, **options):
    """A composite function that a custom operator of TensorFlow Lite replaces (tests/op_library/lite_ops.c)."""
    attrs = [f'name: "{name}"', 'attr {key: "tfl_fusable_op" value { b: true } }']
    attrs += [f'attr {{key: "{k}" value {{ i: {v} }} }}' for k, v in options.items()]
    return tf.function(experimental_implements=" ".join(attrs))


@fusable("my_custom_fused_op", example_option=10)
def my_custom_fused_op(input_1, input_2):
    return tf.reduce_sum(input_1) * 10.0, tf.reduce_max(input_2)


@fusable("UpTo")
def up_to(n):
    return tf.cast(tf.range(n), tf.float32)


@fusable("LastFirst")
def last_first(words):
    return tf.reverse(words, [0])


@fusable("Roots")
def roots(x):
    return tf.sqrt(x)


class CustomOps(tf.Module):
    """Functions that become custom operators; what they compute is what the operators do."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        self.kernels = [tf.Variable(rng.normal(0, 0.3, (3, 3, 3, 1)).astype(np.float32)) for _ in range(2)]

    @tf.function(input_signature=[tf.TensorSpec([1, 28, 28, 3], tf.float32, name="input_a"), tf.TensorSpec([1, 28, 28, 3], tf.float32, name="input_b")])
    def fused(self, input_a, input_b):
        first, second = my_custom_fused_op(*[tf.nn.conv2d(x, k, 1, "VALID") for x, k in zip((input_a, input_b), self.kernels)])
        return {"first": first, "second": second}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n")])
    def counted(self, n):
        return {"y": up_to(n) + 1.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def words(self, words):
        return {"words": last_first(words)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def roots(self, x):
        return {"y": roots(x * 2.0)}


def custom_ops(path):
    model = CustomOps()
    tf.saved_model.save(model, path, signatures={n: getattr(model, n) for n in ("fused", "counted", "words", "roots")})
    rng = np.random.default_rng(9)
    image = lambda: rng.normal(0, 1, (1, 28, 28, 3)).astype(np.float32)
    return [("fused", {"input_a": image(), "input_b": image()}), ("fused", {"input_a": image(), "input_b": image()}),
            ("counted", {"n": np.int32(5)}), ("counted", {"n": np.int32(0)}), ("counted", {"n": np.int32(1000)}),
            ("words", {"words": np.array([b"one", b"", b"three"], object)}), ("words", {"words": np.array([], object)}),
            ("roots", {"x": rng.uniform(0, 9, (2, 3)).astype(np.float32)}), ("roots", {"x": rng.uniform(0, 9, (5, 1)).astype(np.float32)})]


MODELS = dict(custom_ops=custom_ops, slopes=slopes, trained=trained, listed=listed, keras_in_module=keras_in_module, plain_module=plain_module, language_model=language_model, functions=functions, counter=counter, loop=loop, cnn=cnn, wide_cnn=wide_cnn, half_plus_two_v1=half_plus_two_v1, debug_lines=debug_lines,
              wishes=wishes, bytes_only=bytes_only, mixed=mixed)


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or list(MODELS)
    for name in wanted:
        path = os.path.join(out, name)
        shutil.rmtree(path, ignore_errors=True)
        tf.random.set_seed(SEED)
        requests = MODELS[name](path)
        by_function = requests[0][0].startswith("function:")
        recorder = record_functions if by_function else record_loaded if name == "keras_in_module" else record
        recorder(path, path + ".tfrecord", requests)
        print(name, sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs) // 1024, "KB", len(requests), "records")


if __name__ == "__main__":
    main()
