#!/usr/bin/env python3
"""Models without what only training uses, as TensorFlow sees them: strip_test.py SMELT [SAVED_MODEL ...]

Models that tf_keras, Keras 3, a tf.Module and TensorFlow 1 trained, and the given ones, are converted with --strip_training. TensorFlow must load
what is left, its signatures must answer bit for bit as before, and nothing of the training may be in it."""
import os
import pathlib
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np
import tensorflow as tf
import tf_keras

from checks import call, check, finish

ONLY_STRIP = "disable_default_optimizations: true"


def fitted(library):
    inputs = library.layers.Input((8, 8, 3))
    x = library.layers.Conv2D(4, 3, activation="relu")(inputs)
    x = library.layers.BatchNormalization()(x)
    x = library.layers.Dropout(0.5)(library.layers.Flatten()(x))
    outputs = library.layers.Dense(3, kernel_regularizer="l2")(x)
    model = library.Model(inputs, outputs)
    model.compile("adam", library.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(np.random.rand(8, 8, 8, 3), np.arange(8) % 3, verbose=0)
    return model


def by_tf_keras(path):
    fitted(tf_keras).save(path, save_format="tf")


def by_keras(path):
    tf.saved_model.save(fitted(keras), path)


def lstm(path):
    model = tf_keras.Sequential([tf_keras.layers.LSTM(6, input_shape=(5, 4)), tf_keras.layers.Dense(2)])
    model.compile("rmsprop", "mse", metrics=["mae"])
    model.fit(np.ones((4, 5, 4)), np.ones((4, 2)), verbose=0)
    model.save(path, save_format="tf")


class Module(tf.Module):
    """Serves y, counts calls, trains by itself; `scale` is what a user may set."""

    def __init__(self):
        self.w = tf.Variable(np.random.rand(4, 2).astype("f"), name="w")
        self.momentum = tf.Variable(np.ones((4, 2), "f"), name="momentum")
        self.calls = tf.Variable(0, name="calls")
        self.scale = tf.Variable(2.0, name="scale")

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def serve(self, x):
        self.calls.assign_add(1)
        return {"y": self.scale * (x @ self.w), "calls": tf.identity(self.calls)}

    @tf.function(input_signature=[tf.TensorSpec([])])
    def set_scale(self, s):
        self.scale.assign(s)

    @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([None, 2])])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.w - y) ** 2)
        self.momentum.assign(0.9 * self.momentum + tape.gradient(loss, self.w))
        self.w.assign_sub(0.1 * self.momentum)
        return loss


def module(path):
    m = Module()
    m.train(np.ones((2, 4), "f"), np.ones((2, 2), "f"))
    tf.saved_model.save(m, path, {"serving_default": m.serve})


def version_1(path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = v1.placeholder(tf.float32, [None, 4], "x"), v1.placeholder(tf.float32, [None, 2], "y")
        w = v1.get_variable("w", [4, 2], use_resource=False)
        b = v1.get_variable("b", [2], use_resource=True)
        out = tf.nn.softmax(x @ w + b)
        step = v1.train.get_or_create_global_step()
        v1.train.AdamOptimizer().minimize(tf.reduce_mean((out - y) ** 2), step)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x}, {"out": out})


def ask(signature, inputs):
    return {k: v.numpy() for k, v in signature(**inputs).items()}


def request(signature):
    random = np.random.default_rng(1)
    inputs = {}
    for name, spec in signature.structured_input_signature[1].items():
        shape = [2 if d is None else d for d in spec.shape]
        inputs[name] = tf.cast(random.random(shape), spec.dtype) if spec.dtype != tf.string else tf.fill(shape, "a")
    return inputs


def variables(path):
    return {name for name, _ in tf.train.list_variables(str(path / "variables/variables"))}


def size(path):
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


# What must be gone of each, and what must stay.
MADE = {
    by_tf_keras: (["optimizer", "keras_api"], []),
    by_keras: (["optimizer"], []),
    lstm: (["optimizer", "keras_api"], []),
    module: (["momentum"], ["w/", "calls", "scale"]),
    version_1: (["Adam", "beta1_power", "global_step"], ["w", "b"]),
}
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    sources = {}
    for make, expected in MADE.items():
        make(str(work / make.__name__))
        sources[work / make.__name__] = expected
    for given in sys.argv[2:]:
        sources[pathlib.Path(given)] = ([], [])
    for source, (gone, stays) in sources.items():
        name, out = source.name, work / "stripped" / source.name
        code, text = call("convert", source, out, "--converter_options_string", ONLY_STRIP, "--strip_training", "--verify", "2")
        check(f"{name}: converts and verifies", code == 0, text[-1000:])
        if code:
            continue
        before, after = tf.saved_model.load(str(source)), tf.saved_model.load(str(out))
        check(f"{name}: signatures", set(before.signatures) == set(after.signatures))
        for key, signature in before.signatures.items():
            inputs = request(signature)
            want, got = ask(signature, inputs), ask(after.signatures[key], inputs)
            check(f"{name}: {key} answers alike", all(np.array_equal(want[k], got[k]) for k in want), (want, got))
        if (source / "variables").is_dir():
            left = variables(out)
            check(f"{name}: variables", left <= variables(source) and not [v for v in left if any(g in v for g in gone)]
                  and all(any(v.startswith(s) for v in left) for s in stays), left)
        check(f"{name}: smaller", size(out) < size(source) or not gone, (size(source), size(out)))
        check(f"{name}: Keras has nothing to make layers of", not (out / "keras_metadata.pb").exists() and not any(hasattr(after, a) for a in ("optimizer", "keras_api")))
        # What is left has nothing to strip: the report says so.
        code, text = call("convert", out, work / "again", "--converter_options_string", ONLY_STRIP, "--auto_place", "--dry_run")
        check(f"{name}: once is enough", code == 0 and "--strip_training" not in text, text[-300:])
        code, text = call("convert", source, work / "again", "--converter_options_string", ONLY_STRIP, "--auto_place", "--dry_run")
        check(f"{name}: it is offered", code == 0 and (not gone or "--strip_training would save" in text), text[-300:])
    if (work / "stripped/module").exists():
        m = tf.saved_model.load(str(work / "stripped/module"))
        m.set_scale(3.0)
        check("module: its own functions stay, training goes", float(m.scale) == 3.0 and not hasattr(m, "train") and not hasattr(m, "momentum"))
    if (work / "stripped/by_tf_keras").exists():
        called = tf.saved_model.load(str(work / "stripped/by_tf_keras"))
        x = tf.ones([2, 8, 8, 3])
        check("a Keras model can be called", np.allclose(called(x), list(called.signatures["serving_default"](x).values())[0]))
        tf_keras.models.load_model(str(work / "by_tf_keras")).export(str(work / "exported"))
        # An export has no __call__: its functions are what is larger here.
        saved, left, exported = (size(work / p) for p in ("by_tf_keras", "stripped/by_tf_keras", "exported"))
        check("most of what an export lacks is gone", left - exported < (saved - exported) / 4, (saved, left, exported))
finish()
