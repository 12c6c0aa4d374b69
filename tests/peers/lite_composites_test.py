#!/usr/bin/env python3
"""Composite functions and recurrences in .tflite files: lite_composites_test.py SMELT. What TensorFlow's converter makes of a function smelt makes too,
operator, options and weights; what it leaves a loop is one operator here, and answers in LiteRT as the model does, run after run and for any batch."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from flatbuffers import flexbuffers
from keras import layers as L
from tensorflow.lite.python import schema_py_generated as schema

from checks import call, check, finish

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_composites_"))
NAMES = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
DTYPES = {0: np.float32, 2: np.int32}


class File:
    """The operators of a file's first subgraph."""

    def __init__(self, data):
        self.model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
        self.graph = self.model.subgraphs[0]

    def name(self, op):
        code = self.model.operatorCodes[op.opcodeIndex]
        number = max(code.builtinCode, code.deprecatedBuiltinCode)
        return (code.customCode.decode() if number == 32 else NAMES[number])

    def find(self, name):
        return [op for op in self.graph.operators if self.name(op) == name]

    def inputs(self, op):
        """Of each input its constant, or its shape; None: it is left out."""
        out = []
        for i in op.inputs:
            t = self.graph.tensors[i] if i >= 0 else None
            data = None if t is None else self.model.buffers[t.buffer].data
            shape = None if t is None or t.shape is None else [int(d) for d in t.shape]
            if data is not None:
                out.append(np.frombuffer(bytes(data), DTYPES[t.type]).reshape(shape))
            else:
                out.append(shape)
        return out


def both(name, module, **signatures):
    """The same SavedModel by smelt and by TensorFlow."""
    path = work / name
    tf.saved_model.save(module, str(path), signatures=signatures)
    code, out = call("lite", path, f"{path}.tflite")
    check(f"{name} is exported", code == 0, out)
    # The converter ends the process on some of them.
    convert = ("import sys, tensorflow as tf\nopen(sys.argv[2], 'wb').write(tf.lite.TFLiteConverter.from_saved_model(sys.argv[1], "
               "signature_keys=sys.argv[3:]).convert())")
    p = subprocess.run([sys.executable, "-c", convert, str(path), f"{path}.theirs", *signatures], capture_output=True, text=True)
    if p.returncode != 0:
        print(f"TensorFlow does not convert {name}: {p.returncode}", p.stderr.strip().splitlines()[-1:])
    return (File(pathlib.Path(f"{path}.tflite").read_bytes()) if code == 0 else None,
            File(pathlib.Path(f"{path}.theirs").read_bytes()) if p.returncode == 0 else None)


def same_operator(name, module, fn, op, weights=()):
    ours, theirs = both(name, module, serving_default=fn)
    if ours is None:
        return
    if theirs is None:
        check(f"{name}: one {op}", len(ours.find(op)) == 1, [ours.name(o) for o in ours.graph.operators])
        return
    a, b = ours.find(op), theirs.find(op)
    check(f"{name}: one {op}", len(a) == len(b) == 1, ([ours.name(o) for o in ours.graph.operators], [theirs.name(o) for o in theirs.graph.operators]))
    if not (a and b):
        return
    a, b = a[0], b[0]
    options = [None if o.customOptions is None else bytes(o.customOptions) for o in (a, b)]
    check(f"{name}: custom options", (options[0] or b"") == (options[1] or b""), options)
    fields = [{k: v for k, v in vars(o.builtinOptions).items()} if o.builtinOptions else {} for o in (a, b)]
    check(f"{name}: options", fields[0] == fields[1], fields)
    x, y = ours.inputs(a), theirs.inputs(b)
    check(f"{name}: as many inputs", len(x) == len(y), (len(x), len(y)))
    for i, (p, q) in enumerate(zip(x, y)):
        if isinstance(p, np.ndarray) and isinstance(q, np.ndarray):
            check(f"{name}: input {i}", p.shape == q.shape and np.array_equal(p, q), (p, q))
        elif i in weights:
            check(f"{name}: input {i} is a constant or left out in both", p is None and q is None, (p, q))
    check(f"{name}: results", len(a.outputs) == len(b.outputs))


def module(fn, *specs, **variables):
    m = tf.Module()
    for k, v in variables.items():
        setattr(m, k, tf.Variable(v))
    m.f = tf.function(lambda *a: fn(m, *a), input_signature=list(specs))
    return m, m.f


F = lambda *shape: tf.TensorSpec(shape, tf.float32)
I = lambda *shape: tf.TensorSpec(shape, tf.int32)
rng = np.random.RandomState(4)
normal = lambda *shape: rng.randn(*shape).astype(np.float32)


# The example of TensorFlow's page on fusion, as it stands there.
def get_implements_signature():
    implements_signature = [
        'name: "my_custom_fused_op"',
        'attr {key: "tfl_fusable_op" value { b: true } }',
        'attr {key: "example_option" value { i: %d } }' % 10,
    ]
    return " ".join(implements_signature)


@tf.function(experimental_implements=get_implements_signature())
def my_custom_fused_op(input_1, input_2):
    output_1 = tf.constant(0.0, dtype=tf.float32, name="first_output")
    output_2 = tf.constant(0.0, dtype=tf.float32, name="second_output")
    return output_1, output_2


class TestModel(tf.Module):
    def __init__(self):
        super().__init__()
        self.conv_1 = tf.keras.layers.Conv2D(filters=1, kernel_size=(3, 3))
        self.conv_2 = tf.keras.layers.Conv2D(filters=1, kernel_size=(3, 3))

    @tf.function(input_signature=[F(1, 28, 28, 3), F(1, 28, 28, 3)])
    def simple_eval(self, input_a, input_b):
        return my_custom_fused_op(self.conv_1(input_a), self.conv_2(input_b))


model = TestModel()
ours, theirs = both("page", model, serving_default=model.simple_eval)
for which, file in (("smelt", ours), ("TensorFlow", theirs)):
    ops = file.find("my_custom_fused_op")
    check(f"page by {which}: the operator", len(ops) == 1 and len(ops[0].inputs) == 2 and len(ops[0].outputs) == 2)
    check(f"page by {which}: its option", flexbuffers.Loads(bytes(ops[0].customOptions)) == {"example_option": 10})
    check(f"page by {which}: its inputs", file.inputs(ops[0]) == [[1, 26, 26, 1]] * 2, file.inputs(ops[0]))
check("page: the same bytes of options", bytes(ours.find("my_custom_fused_op")[0].customOptions) == bytes(theirs.find("my_custom_fused_op")[0].customOptions))
check("page: no more operators", [ours.name(o) for o in ours.graph.operators] == ["CONV_2D", "CONV_2D", "my_custom_fused_op"])


def implements(name, *attrs):
    text = f'name: "{name}" ' + " ".join(f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs)
    return tf.function(experimental_implements=text if attrs else name)


fusable = ("tfl_fusable_op", "b: true")
works = implements("real_work", fusable, ("scale", "f: 0.5"), ("word", 's: "abc"'), ("flag", "b: true"))(lambda x: tf.nn.relu(x) * 0.5)
same_operator("real_work", *module(lambda m, x: {"y": works(x + 1.0)}, F(2, 3)), "real_work")
lookup = implements("embedding_matmul")(lambda table, ids: tf.gather(table, ids))
same_operator("embedding", *module(lambda m, ids: {"y": lookup(m.table, ids)}, I(3), table=normal(10, 4)), "EMBEDDING_LOOKUP")
same_operator("suppression", *module(lambda m, b, s: dict(zip("ab", tf.image.non_max_suppression_padded(b, s, 5, 0.5, 0.1, pad_to_max_output_size=True))),
                                     F(20, 4), F(20)), "NON_MAX_SUPPRESSION_V4")
warp = implements("addons:DenseImageWarp")(lambda image, flow: image + flow[..., :1])
same_operator("warp", *module(lambda m, x, y: {"y": warp(x, y)}, F(1, 4, 4, 1), F(1, 4, 4, 2)), "DenseImageWarp")
unpool = implements("addons:MaxUnpooling2D", ("padding", 's: "SAME"'), ("pool_size", "list { i: 2 i: 3 }"), ("strides", "list { i: 4 i: 5 }"))(
    lambda x, at: tf.tile(x, [1, 4, 5, 1]) + tf.cast(tf.reduce_sum(at), tf.float32))
same_operator("unpool", *module(lambda m, x, at: {"y": unpool(x, at)}, F(1, 2, 2, 1), I(1, 2, 2, 1)), "MaxUnpooling2D")
detect = implements("TFLite_Detection_PostProcess", ("max_detections", "i: 10"), ("max_classes_per_detection", "i: 1"), ("num_classes", "i: 2"),
                    *[(k, "f: 0.5") for k in ("nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale")], ("use_regular_nms", "b: false"))(
    lambda b, s, a: (tf.zeros([1, 10, 4]), tf.zeros([1, 10]), tf.zeros([1, 10]), tf.zeros([1])))
same_operator("detect", *module(lambda m, b, s, a: dict(zip("abcd", detect(b, s, a))), F(1, 8, 4), F(1, 8, 3), F(8, 4)), "TFLite_Detection_PostProcess")

# Cells: 3 inputs, 2 outputs, 4 cells. TensorFlow's converter crashes on the plain one and leaves the coupled one, so that LiteRT's answer decides.
sigmoid = lambda v: 1 / (1 + np.exp(-v))
for name, gates, more in (("LSTMCellSimple", 4, []), ("LSTMCellSimple,CoupleInputForgetGates", 3, []), ("LayerNormalizedLstmCellSimple", 4, [np.ones(16, np.float32)])):
    cell = implements(name)(lambda x, w, b, p, *n: tf.matmul(tf.matmul(x, w[:3, :4]), p))
    w, b, p = values = [normal(5, gates * 4), normal(gates * 4), normal(4, 2)]
    m, f = module(lambda m, x, values=values + more, cell=cell: {"y": cell(x, *map(tf.constant, values))}, F(1, 3))
    path = work / name.replace(",", "_")
    tf.saved_model.save(m, str(path), signatures={"serving_default": f})
    code, out = call("lite", path, f"{path}.tflite")
    check(f"{name} is exported", code == 0, out)
    file = File(pathlib.Path(f"{path}.tflite").read_bytes())
    check(f"{name}: one LSTM", [file.name(o) for o in file.graph.operators] == ["LSTM"])
    check(f"{name}: the first gate is left out where it is the other's rest", (file.graph.operators[0].inputs[1] == -1) == (gates == 3))
    runner = Interpreter(model_path=f"{path}.tflite").get_signature_runner("serving_default")
    x, z = normal(1, 3), {}
    (got,) = runner(**{list(runner.get_input_details())[0]: x}).values()
    for k, part in enumerate("cifo" if gates == 4 else "cfo"):
        v = x @ w[:3, 4 * k:4 * k + 4]
        if more:
            v = (v - v.mean()) / np.sqrt(v.var() + 1e-8)
        z[part] = v + b[4 * k:4 * k + 4]
    i = sigmoid(z["i"]) if gates == 4 else 1 - sigmoid(z["f"])
    want = (sigmoid(z["o"]) * np.tanh(i * np.tanh(z["c"]))) @ p
    check(f"{name}: answer", np.allclose(got, want, atol=1e-5), (got, want))


# Keras 2's layer is a function of this signature.
def keras_2(x, h, c, kernel, recurrent, bias, time_major, backwards):
    steps = tf.unstack(x, axis=0 if time_major else 1)
    outputs = []
    for step in reversed(steps) if backwards else steps:
        i, f, g, o = tf.split(tf.matmul(step, kernel) + tf.matmul(h, recurrent) + bias, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return h, tf.stack(outputs, axis=0 if time_major else 1), h, c, tf.constant(0.0)


for time_major in (False, True):
    for backwards in (False, True):
        values = [normal(3, 16), normal(4, 16), normal(16)]
        layer = tf.function(lambda x, h, c, k, r, b, t=time_major, g=backwards: keras_2(x, h, c, k, r, b, t, g), experimental_attributes={
            "api_implements": f"lstm_{time_major}_{backwards}", "time_major": time_major, "go_backwards": backwards})
        shape = (6, 2, 3) if time_major else (2, 6, 3)
        name = f"keras_2_{time_major}_{backwards}"

        def run(m, x, layer=layer, values=values):
            y = layer(x, tf.zeros([2, 4]), tf.zeros([2, 4]), *map(tf.constant, values))
            return {"last": y[0], "all": y[1]}

        m, f = module(run, F(*shape))
        same_operator(name, m, f, "UNIDIRECTIONAL_SEQUENCE_LSTM", weights=[i for i in range(24) if i not in (0, 18, 19)])
        runner = Interpreter(model_path=str(work / f"{name}.tflite")).get_signature_runner("serving_default")
        for turn in range(2):  # the second run begins as the first did
            x = normal(*shape)
            want, got = f(tf.constant(x)), runner(args_0=x) if "args_0" in runner.get_input_details() else runner(**{list(runner.get_input_details())[0]: x})
            check(f"{name}: answer {turn}", all(np.allclose(got[k], want[k], atol=1e-6) for k in want), (got, want))


def sequence(*layers, shape=(7, 5)):
    inputs = keras.Input(shape)
    x = inputs
    for layer in layers:
        x = layer(x)
    return keras.Model(inputs, x)


def with_state():
    inputs = keras.Input((7, 5))
    y, h, _ = L.LSTM(4, return_sequences=True, return_state=True)(inputs)
    return keras.Model(inputs, [y, h])


# name: (the model, how many LSTM operators)
KERAS_3 = {
    "last": (lambda: sequence(L.LSTM(4)), 1),
    "sequences": (lambda: sequence(L.LSTM(4, return_sequences=True)), 1),
    "free_time": (lambda: sequence(L.LSTM(4), shape=(None, 5)), 1),
    "backwards": (lambda: sequence(L.LSTM(4, go_backwards=True, return_sequences=True)), 1),
    "both_ways": (lambda: sequence(L.Bidirectional(L.LSTM(4, return_sequences=True))), 2),
    "both_ways_last": (lambda: sequence(L.Bidirectional(L.LSTM(4))), 2),
    "stacked": (lambda: sequence(L.LSTM(4, return_sequences=True), L.LSTM(6, return_sequences=True), L.LSTM(3)), 3),
    "unrolled": (lambda: sequence(L.LSTM(4, unroll=True)), 1),
    "no_bias": (lambda: sequence(L.LSTM(4, use_bias=False)), 1),
    "state": (with_state, 1),
    "large": (lambda: sequence(L.LSTM(64), shape=(20, 16)), 1),
}
for name, (make, lstms) in KERAS_3.items():
    keras.utils.set_random_seed(3)
    m = make()
    for w in m.weights:
        w.assign(rng.randn(*w.shape) * 0.5)
    path = work / f"keras_3_{name}"
    m.export(str(path), verbose=False)
    code, out = call("lite", path, f"{path}.tflite", "--signature", "serving_default")
    check(f"{name} is exported", code == 0, out)
    if code != 0:
        continue
    file = File(pathlib.Path(f"{path}.tflite").read_bytes())
    check(f"{name}: {lstms} LSTM", len(file.find("UNIDIRECTIONAL_SEQUENCE_LSTM")) == lstms, [file.name(o) for o in file.graph.operators])
    runner = Interpreter(model_path=f"{path}.tflite").get_signature_runner("serving_default")
    key = list(runner.get_input_details())[0]
    for batch in (1, 1, 8, 3, 64):
        x = normal(batch, *[d or 9 for d in m.input_shape[1:]])
        want, got = tf.nest.flatten(m(x)), runner(**{key: x})
        near = [any(g.shape == w.shape and np.allclose(g, w, atol=2e-6) for g in got.values()) for w in map(np.asarray, want)]
        check(f"{name}: batch {batch}", all(near), (got, want))

# ---- cells beyond what operators clip at: a function that says what it implements is clipped, as in TensorFlow's file, and says so; a loop is not


def filling(inputs, units):
    """Weights by which cells grow by one where the first two numbers are ones, and are halved where they are zeros."""
    kernel = np.zeros((inputs, 4, units), np.float32)
    kernel[0, 0], kernel[1, 1] = 20, 20
    return [kernel.reshape(inputs, -1), np.zeros((units, 4 * units), np.float32), np.repeat(np.float32([-10, 0, 9, 9]), units)]


def filled(inputs, grow, halve):
    x = np.zeros((1, grow + halve, inputs), np.float32)
    x[:, :grow, :2] = 1
    return x


rows = sequence(L.LSTM(4, return_sequences=True), shape=(30, 5))
rows.layers[-1].set_weights(filling(5, 4))
path = work / "full_loop"
rows.export(str(path), verbose=False)
code, out = call("lite", path, f"{path}.tflite", "--signature", "serving_default", "--explain")
check("a loop that is an LSTM: nothing differs", code == 0 and "FuseLstm" in out and "differs" not in out, out)
runner = Interpreter(model_path=f"{path}.tflite").get_signature_runner("serving_default")
x = filled(5, 24, 6)
(got,), want = runner(**{list(runner.get_input_details())[0]: x}).values(), np.asarray(rows(x))
check("a loop that is an LSTM: answers with full cells", np.allclose(got, want, atol=1e-5), np.abs(got - want).max())

values = filling(3, 4)
layer = tf.function(lambda x, h, c, k, r, b: keras_2(x, h, c, k, r, b, False, False), experimental_attributes={"api_implements": "lstm_full", "time_major": False, "go_backwards": False})
m, f = module(lambda m, x: {"all": layer(x, tf.zeros([1, 4]), tf.zeros([1, 4]), *map(tf.constant, values))[1]}, F(1, 30, 3))
path = work / "full_function"
tf.saved_model.save(m, str(path), signatures={"serving_default": f})
code, out = call("lite", path, f"{path}.tflite", "--explain")
check("a function that implements an LSTM says that it clips", code == 0 and "composite lstm_full, differs: cell states are clipped to -10 and 10" in out, out)
runner = Interpreter(model_path=f"{path}.tflite").get_signature_runner("serving_default")
x = filled(3, 24, 6)
(got,), want = runner(**{list(runner.get_input_details())[0]: x}).values(), np.asarray(f(tf.constant(x))["all"])
check("which it does", np.abs(got - want).max() > 0.05 and np.allclose(got[:, :10], want[:, :10], atol=1e-5), np.abs(got - want).max())
code, out = call("lite", path, f"{path}.tflite", "--json")
check("and --json says so", [d["fusion"] for d in json.loads(out)["differs"]] == ["composite lstm_full"], out)

# ---- what is no LSTM says what it is

for name, make in (("gru", lambda: sequence(L.GRU(4))), ("gru_sequences", lambda: sequence(L.GRU(4, return_sequences=True))), ("gru_reset_before", lambda: sequence(L.GRU(4, reset_after=False))),
                   ("gru_both_ways", lambda: sequence(L.Bidirectional(L.GRU(4))))):
    path = work / name
    make().export(str(path), verbose=False)
    code, out = call("lite", path, f"{path}.tflite", "--signature", "serving_default", "--explain")
    check(f"{name} says why it is no operator", code == 0 and "FuseLstm: it computes a GRU, for which there is no builtin operator" in out, out)
path = work / "simple"
sequence(L.SimpleRNN(4)).export(str(path), verbose=False)
code, out = call("lite", path, f"{path}.tflite", "--signature", "serving_default", "--explain")
check("a plain recurrence is its own operator", code == 0 and "GRU" not in out and "FuseLstm" not in out and re.search("fused .*: FuseRnn\n", out) is not None, out)
finish()
