#!/usr/bin/env python3
"""Recurrent layers in all their forms, each saved by TensorFlow and answered by both: recurrent_models.py SMELT [NAME...] [--keep FOLDER] [--time]

Prints a row for each model: whether the answers are the same with programs and without, how many of its loops are scans and why others are not, and with
--time the milliseconds of a run on one thread: TensorFlow's, smelt's without programs, smelt's. Fails where an answer differs.
Needs tensorflow, tensorflow-serving-api; rows of Keras 2 and of version 1 also tf_keras."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
import keras
from tensorflow_serving.apis import prediction_log_pb2

try:
    import tf_keras
    from tf_keras.src.layers.rnn import legacy_cells
except ImportError:
    tf_keras = None

V1 = tf.compat.v1
V1.logging.set_verbosity(V1.logging.ERROR)
warnings.filterwarnings("ignore", category=UserWarning)
T, K, UNITS, WORDS = 12, 6, 16, 20  # steps, inputs, units, words
rng = np.random.default_rng(8)
ROWS = {}  # name: function of a folder that saves a model there and returns requests


def normal(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def masked(b, t=T):
    """Rows that end early, and gaps: zeros are masked."""
    x = normal(b, t, K)
    for i in range(b):
        x[i, t - 1 - i % 3 :] = 0
        x[i, (i + 2) % t] = 0
    return x


def words(b, t=T):
    x = rng.integers(1, WORDS, (b, t)).astype(np.int32)
    x[:, t - 3 :] = 0
    return x


def save(model, inputs, path):
    """A functional model of either Keras, its states included."""
    spec = [tf.TensorSpec(i.shape, i.dtype, name=f"x{n}") for n, i in enumerate(inputs)]
    module = tf.Module()
    module.model = model
    # Attributes that Keras keeps under names of its own do not reach variables of all layers.
    module.kept = list(model.variables) if not hasattr(model, "_tracker") else [v.value for v in model.variables]

    def run(**x):
        y = model([x[s.name] for s in spec] if len(spec) > 1 else x["x0"], training=False)
        return {f"y{n}": v for n, v in enumerate(tf.nest.flatten(y))}

    f = tf.function(run).get_concrete_function(**{s.name: s for s in spec})
    tf.saved_model.save(module, str(path), signatures=f)


def layer(name, build, requests, versions=(2, 3)):
    """build(k): inputs and outputs of a functional model of Keras k, whose requests are lists of values."""
    for version, k in ((2, tf_keras), (3, keras)):
        if version not in versions or k is None:
            continue

        def row(path, k=k):
            k.utils.set_random_seed(3)
            inputs, outputs = build(k)
            model = k.Model(inputs, outputs)
            # Biases are zeros at first, which a mistake would not show.
            model.set_weights([w if w.ndim > 1 else normal(*w.shape) * 0.3 for w in model.get_weights()])
            save(model, inputs, path)
            return requests()

        ROWS[f"keras{version}_{name}"] = row


def sequences(*batches, t=T):
    return lambda: [[normal(b, t, K)] for b in batches]


def one(make, shape=(T, K), batch=None, dtype="float32"):
    def build(k):
        x = k.Input(shape, batch_size=batch, dtype=dtype)
        return [x], make(k, x)

    return build


for name in ("LSTM", "GRU", "SimpleRNN"):
    of = lambda k, name=name, **kw: getattr(k.layers, name)(UNITS, **kw)
    low = name.lower()
    both = sequences(1, 3)
    layer(f"{low}_last", one(lambda k, x, of=of: of(k)(x)), both)
    layer(f"{low}_sequences", one(lambda k, x, of=of: of(k, return_sequences=True)(x)), both)
    layer(f"{low}_free_time", one(lambda k, x, of=of: of(k, return_sequences=True)(x), (None, K)), lambda: [[normal(1, 5, K)], [normal(3, 9, K)], [normal(2, 1, K)]])
    layer(f"{low}_one_batch", one(lambda k, x, of=of: of(k)(x), batch=2), sequences(2))
    layer(f"{low}_states_out", one(lambda k, x, of=of: of(k, return_state=True, return_sequences=True)(x)), both)
    layer(f"{low}_backwards", one(lambda k, x, of=of: of(k, go_backwards=True, return_sequences=True)(x)), both)
    layer(f"{low}_bidirectional", one(lambda k, x, of=of: k.layers.Bidirectional(of(k, return_sequences=True))(x)), both)
    layer(f"{low}_bidirectional_masked", one(lambda k, x, of=of: k.layers.Bidirectional(of(k))(k.layers.Masking()(x))), lambda: [[masked(1)], [masked(4)]])
    layer(f"{low}_stacked", one(lambda k, x, of=of: of(k)(of(k, return_sequences=True)(x))), both)
    layer(f"{low}_masked", one(lambda k, x, of=of: of(k)(k.layers.Masking()(x))), lambda: [[masked(1)], [masked(4)]])
    layer(f"{low}_masked_sequences", one(lambda k, x, of=of: of(k, return_sequences=True, return_state=True)(k.layers.Masking()(x))), lambda: [[masked(1)], [masked(4)]])
    layer(f"{low}_words", one(lambda k, x, of=of: of(k)(k.layers.Embedding(WORDS, K, mask_zero=True)(x)), (T,), dtype="int32"), lambda: [[words(1)], [words(3)]])
    layer(f"{low}_stateful", one(lambda k, x, of=of: of(k, stateful=True)(x), batch=2), lambda: [[normal(2, T, K)] for _ in range(3)])
    layer(f"{low}_unrolled", one(lambda k, x, of=of: of(k, unroll=True)(x)), both)
    layer(f"{low}_unrolled_masked", one(lambda k, x, of=of: of(k, unroll=True, return_sequences=True)(k.layers.Masking()(x))), lambda: [[masked(1)], [masked(4)]])
    layer(f"{low}_dropout", one(lambda k, x, of=of: of(k, dropout=0.3, recurrent_dropout=0.2)(x)), both)
    layer(f"{low}_relu", one(lambda k, x, of=of: of(k, activation="relu", use_bias=False)(x)), both)
    layer(f"{low}_time_major", one(lambda k, x, of=of: of(k, time_major=True, return_sequences=True)(x), (None, K)), sequences(1, 3), versions=(2,))

    def with_states(k, of=of, n=2 if name == "LSTM" else 1):
        x, states = k.Input((T, K)), [k.Input((UNITS,)) for _ in range(n)]
        return [x, *states], of(k, return_state=True)(x, initial_state=states if n > 1 else states[0])

    layer(f"{low}_states_in", with_states, lambda n=2 if name == "LSTM" else 1: [[normal(b, T, K), *(normal(b, UNITS) for _ in range(n))] for b in (1, 3)])

    layer(f"{low}_cell_of_rnn", one(lambda k, x, name=name: k.layers.RNN([getattr(k.layers, f"{name}Cell")(UNITS), getattr(k.layers, f"{name}Cell")(UNITS)])(x)), both)
layer("gru_reset_before", one(lambda k, x: k.layers.GRU(UNITS, reset_after=False)(x)), sequences(1, 3))
layer("gru_reset_before_masked", one(lambda k, x: k.layers.GRU(UNITS, reset_after=False)(k.layers.Masking()(x))), lambda: [[masked(3)]])
layer("time_distributed", one(lambda k, x: k.layers.TimeDistributed(k.layers.Dense(4))(x)), sequences(1, 3))
layer("conv_lstm", one(lambda k, x: k.layers.ConvLSTM2D(3, 3, padding="same")(x), (4, 6, 6, 2)), lambda: [[normal(b, 4, 6, 6, 2)] for b in (1, 2)])


def encoder_decoder(k):
    x, y = k.Input((None, K)), k.Input((None, K))
    _, h, c = k.layers.LSTM(UNITS, return_state=True)(x)
    return [x, y], k.layers.Dense(5)(k.layers.LSTM(UNITS, return_sequences=True)(y, initial_state=[h, c]))


layer("encoder_decoder", encoder_decoder, lambda: [[normal(b, 7, K), normal(b, 4, K)] for b in (1, 2)])


def version1(name, build, requests, loops2=False):
    """build(): placeholders and outputs in a graph of version 1, with its loops as frames unless loops2."""
    if tf_keras is None:
        return

    def row(path):
        # As programs of version 1 were: frames, and variables by reference.
        for toggle in (V1.enable_control_flow_v2, V1.enable_resource_variables) if loops2 else (V1.disable_control_flow_v2, V1.disable_resource_variables):
            toggle()
        try:
            with tf.Graph().as_default(), V1.Session() as session:
                V1.set_random_seed(3)
                inputs, outputs = build()
                session.run(V1.global_variables_initializer())
                V1.saved_model.simple_save(session, str(path), {f"x{i}": x for i, x in enumerate(inputs)}, {f"y{i}": y for i, y in enumerate(tf.nest.flatten(outputs))})
        finally:
            V1.enable_control_flow_v2()
            V1.enable_resource_variables()
        return requests()

    ROWS[f"v1_{name}{'_while' if loops2 else ''}"] = row


for cell in ("BasicRNNCell", "BasicLSTMCell", "LSTMCell", "GRUCell"):
    low = cell.removesuffix("Cell").lower()

    def dynamic(cell=cell):
        x = V1.placeholder(tf.float32, [None, None, K])
        return [x], V1.nn.dynamic_rnn(getattr(legacy_cells, cell)(UNITS), x, dtype=tf.float32)

    def lengths(cell=cell):
        x, n = V1.placeholder(tf.float32, [None, T, K]), V1.placeholder(tf.int32, [None])
        return [x, n], V1.nn.dynamic_rnn(getattr(legacy_cells, cell)(UNITS), x, sequence_length=n, dtype=tf.float32)

    def static(cell=cell):
        x = V1.placeholder(tf.float32, [None, T, K])
        return [x], V1.nn.static_rnn(getattr(legacy_cells, cell)(UNITS), tf.unstack(x, axis=1), dtype=tf.float32)[0][-1]

    def both_ways(cell=cell):
        x, n = V1.placeholder(tf.float32, [None, T, K]), V1.placeholder(tf.int32, [None])
        return [x, n], V1.nn.bidirectional_dynamic_rnn(getattr(legacy_cells, cell)(UNITS), getattr(legacy_cells, cell)(UNITS), x, sequence_length=n, dtype=tf.float32)

    for loops2 in (False, True):
        version1(f"{low}_dynamic", dynamic, lambda: [[normal(1, 5, K)], [normal(3, 9, K)]], loops2)
        version1(f"{low}_lengths", lengths, lambda: [[normal(3, T, K), np.array([T, 4, 0], np.int32)]], loops2)
        version1(f"{low}_both_ways", both_ways, lambda: [[normal(3, T, K), np.array([T, 4, 1], np.int32)]], loops2)
    version1(f"{low}_static", static, sequences(1, 3))


def stack_of_cells():
    x = V1.placeholder(tf.float32, [None, None, K])
    return [x], V1.nn.dynamic_rnn(legacy_cells.MultiRNNCell([legacy_cells.LSTMCell(UNITS, use_peepholes=True, num_proj=8), legacy_cells.GRUCell(UNITS)]), V1.transpose(x, [1, 0, 2]), time_major=True, dtype=tf.float32)


version1("peepholes_stacked_time_major", stack_of_cells, sequences(1, 3))


# ---- loops that people write


class Written(tf.Module):
    """A simple cell, and the loops around it."""

    def __init__(self):
        self.w, self.u = tf.Variable(normal(K, UNITS) * 0.3), tf.Variable(normal(UNITS, UNITS) * 0.3)

    def cell(self, x, h):
        return tf.tanh(tf.matmul(x, self.w) + tf.matmul(h, self.u))

    def over_range(self, x):
        h, out = tf.zeros([tf.shape(x)[0], UNITS]), tf.TensorArray(tf.float32, tf.shape(x)[1])
        for t in tf.range(tf.shape(x)[1]):
            h = self.cell(x[:, t], h)
            out = out.write(t, h)
        return tf.transpose(out.stack(), [1, 0, 2]), h

    def over_rows(self, x):
        h = tf.zeros([tf.shape(x)[0], UNITS])
        for row in tf.transpose(x, [1, 0, 2]):
            h = self.cell(row, h)
        return h

    def while_less(self, x):
        h, t = tf.zeros([tf.shape(x)[0], UNITS]), 0
        while t < tf.shape(x)[1]:
            h = self.cell(x[:, t], h)
            t += 1
        return h

    def growing(self, x):
        h, out = tf.zeros([tf.shape(x)[0], UNITS]), tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for t in tf.range(tf.shape(x)[1]):
            h = self.cell(x[:, t], h)
            out = out.write(t, h)
        return out.stack()

    def until(self, x):
        h, t = tf.zeros([tf.shape(x)[0], UNITS]), 0
        while t < tf.shape(x)[1] and tf.reduce_sum(h) < 9.0:
            h = self.cell(x[:, t], h)
            t += 1
        return h, t

    def scan(self, x):
        return tf.scan(lambda h, row: self.cell(row, h), tf.transpose(x, [1, 0, 2]), tf.zeros([tf.shape(x)[0], UNITS]))

    def map_fn(self, x):
        return tf.map_fn(lambda row: tf.linalg.matvec(self.w, tf.reduce_mean(row, 0), transpose_a=True), x)

    def shifted(self, x):
        """States that become the ones behind them, and change places."""
        later, now, before, one, other = x, x[:, 0], tf.zeros_like(x[:, 0]), tf.constant(True), tf.constant(False)
        for _ in tf.range(5):
            now, before = now + tf.abs(before), now
            one, other = other, one
            later = later * 0.5
        return now, before, later, one, other


for name in ("over_range", "over_rows", "while_less", "growing", "until", "scan", "map_fn", "shifted"):

    def written(path, name=name):
        m = Written()
        f = tf.function(lambda x0: {f"y{i}": y for i, y in enumerate(tf.nest.flatten(tf.autograph.to_graph(getattr(Written, name))(m, x0)))})
        tf.saved_model.save(m, str(path), signatures=f.get_concrete_function(x0=tf.TensorSpec([None, None, K], tf.float32)))
        return [[normal(b, t, K)] for b, t in ((1, 5), (3, 9))]

    ROWS[f"written_{name}"] = written


def record(path, log_path, requests):
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    feeds = [{f"x{i}": tf.constant(v) for i, v in enumerate(request)} for request in requests]
    with tf.io.TFRecordWriter(str(log_path)) as out:
        for inputs in feeds:
            log = prediction_log_pb2.PredictionLog()
            log.log_metadata.saved_model_tags.append("serve")
            log.predict_log.request.model_spec.signature_name = "serving_default"
            for k, v in inputs.items():
                log.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v.numpy()))
            for k, v in serve(**inputs).items():
                log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v.numpy()))
            out.write(log.SerializeToString())
    return serve, feeds[0]


def milliseconds(f):
    best, end = 1e9, time.perf_counter() + 0.15
    while time.perf_counter() < end:
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def replay(smelt, path, log, *flags):
    p = subprocess.run([smelt, "replay", str(path), "--log", str(log), "--threads", "1", "--allow_write", "/dev/null", "--rtol", "1e-3", "--atol", "1e-5", *flags],
                       capture_output=True, text=True)
    best = re.search(r"median ([\d.]+)", p.stdout)
    return p.returncode == 0, p.stdout + p.stderr, float(best.group(1)) if best else float("nan")


def first_record(log, to):
    with tf.io.TFRecordWriter(str(to)) as out:
        out.write(next(iter(tf.data.TFRecordDataset(str(log)))).numpy())
    return to


def explain(smelt, path, log):
    """(scans, other loops, why)"""
    text = subprocess.run([smelt, "show", str(path), "--program", "--log", str(log), "--threads", "1"], capture_output=True, text=True).stdout
    scans = len(re.findall(r"^_Scan ", text, re.M))
    whys = re.findall(r"^  (.*is no scan: .*)$", text, re.M)
    return scans, whys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("smelt")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep")
    parser.add_argument("--time", action="store_true")
    flags = parser.parse_intermixed_args()
    smelt = os.path.abspath(flags.smelt)
    work = pathlib.Path(flags.keep or tempfile.mkdtemp(prefix="smelt_recurrent_"))
    work.mkdir(parents=True, exist_ok=True)
    failed, unmade = [], []
    for name, build in ROWS.items():
        if flags.names and not any(re.fullmatch(n, name) for n in flags.names):
            continue
        path, log = work / name, work / f"{name}.tfrecord"
        try:
            if not log.exists():
                record(path, log, build(path))
        except Exception as e:  # TensorFlow itself cannot make or run it: reported, not judged
            unmade.append(name)
            print(f"{name:38} not made: {type(e).__name__}: {' '.join(str(e).split())[:200]}", flush=True)
            continue
        equal, out, _ = replay(smelt, path, log)
        plain, plain_out, _ = replay(smelt, path, log, "--no_compile")
        if not equal or not plain:
            failed.append(name)
        line = f"{name:38} {'same' if equal and plain else 'DIFFERS' + ('' if equal else ' compiled') + ('' if plain else ' plain')}"
        scans, whys = explain(smelt, path, log)
        line += f"  {scans} scans" + (f", {len(whys)} loops not" if whys else "")
        if flags.time:
            one = first_record(log, work / "one.tfrecord")
            serve = tf.saved_model.load(str(path)).signatures["serving_default"]
            raw = next(iter(tf.data.TFRecordDataset(str(one)))).numpy()
            request = prediction_log_pb2.PredictionLog.FromString(raw).predict_log.request
            feed = {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()}
            if "stateful" in name:
                continue
            theirs = milliseconds(lambda: serve(**feed))
            slow = replay(smelt, path, one, "--no_compile", "--repeat", "100")[2]
            ours = replay(smelt, path, one, "--repeat", "300")[2]
            line += f"  {theirs:7.3f} {slow:7.3f} {ours:7.3f} ms"
        print(line, flush=True)
        for why in whys:
            print("    " + why[:300])
        if not equal or not plain:
            print("    " + " ".join((out if not equal else plain_out).split())[:500])
    print(f"{len(failed)} failed" + (f", {len(unmade)} not made" if unmade else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
