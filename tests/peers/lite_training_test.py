#!/usr/bin/env python3
"""Models that go on learning as .tflite files, by builtin operators alone: lite_training_test.py SMELT

Each optimizer's step, several times, and the training of a network of convolutions: what the variables hold, and the losses, are TensorFlow's. TensorFlow's converter
refuses all of them without select ops."""
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

from checks import call, check, finish
from lite_process import difference, litert_answers

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_training_"))
random = np.random.default_rng(5)
raw = tf.raw_ops
only = sys.argv[2] if len(sys.argv) > 2 else ""


def compared(name, module, step, requests):
    """Saves it before the first step: the file begins where TensorFlow does."""
    if only not in name:
        return
    path, file = work / name, work / f"{name}.tflite"
    tf.saved_model.save(module, str(path), signatures={"train": step})
    wanted = [{k: v.numpy() for k, v in step(**{k: tf.constant(v) for k, v in r.items()}).items()} for r in requests]
    code, said = call("lite", path, file)
    check(f"{name}: exported", code == 0, said)
    if code == 0:
        for i, (got, want) in enumerate(zip(litert_answers([(file, [("train", r) for r in requests])])[0], wanted)):
            why = difference(got, want, 1e-4)
            check(f"{name}: step {i}", not why, why)


def number(x):
    return tf.constant(x, tf.float32)


ADAM = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-5}
# Variables beside "var", scalars, attributes; beta powers are variables that the step multiplies.
STEPS = {
    "GradientDescent": ([], {"alpha": 0.3}, {}),
    "ProximalGradientDescent": ([], {"alpha": 0.3, "l1": 0.4, "l2": 0.2}, {}),
    "Momentum": (["accum"], {"lr": 0.3, "momentum": 0.8}, {"use_nesterov": [False, True]}),
    "KerasMomentum": (["accum"], {"lr": 0.3, "momentum": 0.8}, {"use_nesterov": [False, True]}),
    "Adagrad": (["accum"], {"lr": 0.3}, {"update_slots": [False, True]}),
    "AdagradV2": (["accum"], {"lr": 0.3, "epsilon": 0.01}, {}),
    "ProximalAdagrad": (["accum"], {"lr": 0.3, "l1": 0.4, "l2": 0.2}, {}),
    "Adadelta": (["accum", "accum_update"], {"lr": 0.3, "rho": 0.8, "epsilon": 0.01}, {}),
    "Adam": (["m", "v"], {"lr": 0.1, **ADAM}, {"use_nesterov": [False, True]}),
    "AdamWithAmsgrad": (["m", "v", "vhat"], {"lr": 0.1, **ADAM}, {}),
    "AdaMax": (["m", "v"], {"lr": 0.1, **ADAM}, {}),
    "RMSProp": (["ms", "mom"], {"lr": 0.1, "rho": 0.8, "momentum": 0.5, "epsilon": 0.01}, {}),
    "CenteredRMSProp": (["mg", "ms", "mom"], {"lr": 0.1, "rho": 0.8, "momentum": 0.5, "epsilon": 0.1}, {}),
    "AddSign": (["m"], {"lr": 0.1, "alpha": 1.5, "sign_decay": 0.7, "beta": 0.6}, {}),
    "PowerSign": (["m"], {"lr": 0.1, "logbase": 0.5, "sign_decay": 0.7, "beta": 0.6}, {}),
    "Ftrl": (["accum", "linear"], {"lr": 0.3, "l1": 0.4, "l2": 0.2, "lr_power": [-0.5, -0.7]}, {}),
    "FtrlV2": (["accum", "linear"], {"lr": 0.3, "l1": 0.4, "l2": 0.2, "l2_shrinkage": 0.1, "lr_power": [-0.5, -0.7]}, {}),
}
POSITIVE = ("accum", "v", "vhat", "ms")  # what a square root is taken of


def optimizer(op, slots, scalars, attrs):
    m = tf.Module()
    start = lambda name: np.abs(random.normal(1, 0.2, (2, 3))) if name in POSITIVE else random.normal(0, 1, (2, 3))
    m.v = {name: tf.Variable(start(name), dtype=tf.float32) for name in ["var", *slots]}
    powers = [k for k in ("beta1_power", "beta2_power") if "beta1" in scalars and not (op == "AdaMax" and k == "beta2_power")]
    m.powers = {k: tf.Variable(scalars[k[:5]], dtype=tf.float32) for k in powers}

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="g")])
    def step(g):
        given = {k: number(v) for k, v in scalars.items()} | {k: v.read_value() for k, v in m.powers.items()} | {k: v.handle for k, v in m.v.items()}
        getattr(raw, "ResourceApply" + op)(**given, **attrs, **{"delta" if "alpha" in scalars and op != "AddSign" else "grad": g})
        for k, v in m.powers.items():
            v.assign(v * scalars[k[:5]])
        return {k: v.read_value() for k, v in m.v.items()}

    m.step = step
    return m


def sparse(op, slots, scalars, attrs):
    """Of the rows that indices name, each once, as optimizers make them of several gradients for one."""
    m = optimizer(op, slots, scalars, attrs)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="g"), tf.TensorSpec([None], tf.int64, name="i")])
    def step(g, i):
        rows, at = tf.unique(i)
        given = {k: number(v) for k, v in scalars.items()} | {k: v.handle for k, v in m.v.items()}
        getattr(raw, "ResourceSparseApply" + op)(**given, **attrs, grad=tf.math.unsorted_segment_sum(g, at, tf.shape(rows)[0]), indices=rows)
        return {k: v.read_value() for k, v in m.v.items()}

    m.step = step
    return m


def all_choices(values):
    """Each way to choose one of those that are lists."""
    ways = [{}]
    for k, v in values.items():
        ways = [w | {k: one} for w in ways for one in (v if isinstance(v, list) else [v])]
    return ways


for op, (slots, scalars, attrs) in STEPS.items():
    for s in all_choices(scalars):
        for a in all_choices(attrs):
            name = "_".join([op, *(str(v) for v in a.values()), *(str(s[k]) for k in s if isinstance(scalars[k], list))])
            m = optimizer(op, slots, s, a)
            compared(name, m, m.step, [{"g": random.normal(0, 1, (2, 3)).astype(np.float32)} for _ in range(3)])


for op in ("ProximalGradientDescent", "Momentum", "KerasMomentum", "Adagrad", "AdagradV2", "ProximalAdagrad", "Adadelta", "RMSProp", "CenteredRMSProp", "Ftrl", "FtrlV2"):
    slots, scalars, attrs = STEPS[op]
    m = sparse(op, slots, {k: v[0] if isinstance(v, list) else v for k, v in scalars.items()}, {k: v[-1] for k, v in attrs.items()})
    compared(f"rows_{op}", m, m.step, [{"g": random.normal(0, 1, (len(i), 3)).astype(np.float32), "i": np.int64(i)} for i in ([1, 0, 1], [1], [0, 0])])


class Net(tf.Module):
    """Convolutions with a normalization that is training, pools, a slice, factors that broadcast; the number of examples is free."""

    def __init__(self, pool, *window):
        self.pool, self.window, self.f = pool, window, lambda *shape: tf.Variable(random.normal(0, 0.4, shape), dtype=tf.float32)
        self.w = {"a": self.f(3, 3, 2, 4), "b": self.f(3, 3, 4, 6), "c": self.f(12, 5), "scale": self.f(4), "offset": self.f(4), "gain": self.f(1, 6), "bias": self.f(5)}
        self.m = {k: tf.Variable(tf.zeros_like(v)) for k, v in self.w.items()}
        self.mean, self.var = tf.Variable(tf.zeros([4])), tf.Variable(tf.ones([4]))

    def loss(self, x, y):
        x = tf.nn.conv2d(x, self.w["a"], 1, "SAME")
        x, mean, var, *_ = raw.FusedBatchNormV3(x=x, scale=self.w["scale"], offset=self.w["offset"], mean=self.mean, variance=self.var, exponential_avg_factor=0.1)
        self.mean.assign(mean), self.var.assign(var)
        x = self.pool(tf.nn.relu(x), *self.window)
        x = tf.nn.conv2d(x, self.w["b"], 2, "VALID") * self.w["gain"]
        x = tf.nn.avg_pool2d(tf.nn.elu(x), 2, 1, "SAME")[:, :2, 1:]
        x = tf.reshape(x, [-1, 12]) @ self.w["c"] + self.w["bias"]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x))

    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(x, y)
        for k, g in tape.gradient(loss, self.w).items():
            raw.ResourceApplyMomentum(var=self.w[k].handle, accum=self.m[k].handle, lr=number(0.05), momentum=number(0.9), grad=g)
        return {"loss": loss, "a": self.w["a"].read_value(), "gain": self.w["gain"].read_value(), "mean": self.mean.read_value(), "var": self.var.read_value()}


for name, pool in {"max": (tf.nn.max_pool2d, 2, 2, "VALID"), "max_over": (tf.nn.max_pool2d, 3, 2, "SAME"), "average": (tf.nn.avg_pool2d, 2, 2, "VALID")}.items():
    for batch in (None, 6):
        net = Net(*pool)
        step = tf.function(net.train, input_signature=[tf.TensorSpec([batch, 14, 12, 2], tf.float32, name="x"), tf.TensorSpec([batch], tf.int32, name="y")])
        net.step = step
        compared(f"network_{name}_{batch}", net, step, [{"x": random.normal(0, 1, (6, 14, 12, 2)).astype(np.float32), "y": random.integers(0, 5, 6).astype(np.int32)} for _ in range(3)])
finish()
