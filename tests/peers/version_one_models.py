"""Small SavedModels of TensorFlow 1, with control flow of version 1: each with what a session answers."""
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

v1 = tf.compat.v1
ROWS = {}
rng = np.random.default_rng(9)
f32 = lambda *shape: rng.normal(0, 1, shape).astype(np.float32)


def row(**requests):
    """A function of the inputs as placeholders: `x=(array, free)`, whose first size is free or not."""
    def add(f):
        ROWS[f.__name__] = (f, requests)
        return f
    return add


@row(x=(f32(2, 3), True))
def v1_while(x):
    return v1.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 0.5 + tf.cast(i, tf.float32)), [0, x])[1]


@row(x=(f32(3), False), n=(np.int32(4), False))
def v1_while_captures(x, n):
    scale = tf.reduce_sum(x)
    return v1.while_loop(lambda i, v: tf.logical_and(i < n, tf.reduce_sum(v) < 100.0), lambda i, v: (i + 1, v * scale + x), [0, x])


@row(x=(f32(3), False))
def v1_nested_loops(x):
    def body(i, v):
        return i + 1, v1.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u * 0.5 + x), [0, v])[1]
    return v1.while_loop(lambda i, v: i < 4, body, [0, x])[1]


@row(x=(f32(2, 3), True))
def v1_cond(x):
    return v1.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - tf.reduce_max(x))


@row(x=(f32(3), False), p=(np.bool_(True), False), q=(np.bool_(False), False))
def v1_nested_conds(x, p, q):
    inner = lambda: v1.cond(q, lambda: x + 1.0, lambda: x * 3.0)
    a, b = v1.cond(p, lambda: (inner(), x[:1]), lambda: (-x, x[1:2]))
    return [a, b, v1.cond(p, lambda: a * 2.0, lambda: a)]


@row(x=(f32(3), False))
def v1_cond_in_loop(x):
    return v1.while_loop(lambda i, v: i < 6, lambda i, v: (i + 1, v1.cond(tf.equal(i % 2, 0), lambda: v + 1.0, lambda: v * 2.0)), [0, x])[1]


@row(x=(f32(3), False), p=(np.bool_(True), False))
def v1_loop_in_cond(x, p):
    return v1.cond(p, lambda: v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 1.5), [0, x])[1], lambda: x)


@row(x=(f32(4, 3), False))
def v1_map(x):
    return tf.map_fn(lambda r: r * tf.reduce_sum(r), x)


@row(x=(f32(4, 3), False))
def v1_last_array(x):
    """An array of which the loop reads what it wrote."""
    array = v1.TensorArray(tf.float32, 5, clear_after_read=False, element_shape=[3]).write(0, x[0])
    body = lambda i, a: (i + 1, a.write(i, a.read(i - 1) * 0.5 + x[i - 1]))
    return v1.while_loop(lambda i, a: i < 5, body, [1, array])[1].stack()


@row(x=(f32(2, 5, 3), True))
def v1_rnn(x):
    w, u = v1.get_variable("w", initializer=f32(3, 4)), v1.get_variable("u", initializer=f32(4, 4))
    rows = v1.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))
    out = v1.TensorArray(tf.float32, 5)
    h = tf.zeros([tf.shape(x)[0], 4])

    def body(t, h, out):
        h = tf.tanh(rows.read(t) @ w + h @ u)
        return t + 1, h, out.write(t, h)
    _, last, out = v1.while_loop(lambda t, *_: t < 5, body, [0, h, out], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4]), tf.TensorShape(None)])
    return [last, tf.transpose(out.stack(), [1, 0, 2])]


class Cell:
    """A cell as those of TensorFlow 1, which Keras 3 took away: "rnn", "gru" or "lstm" (c and h)."""

    def __init__(self, size, name, kind):
        self.size, self.name, self.kind = size, name, kind
        self.output_size, self.state_size = size, (size, size) if kind == "lstm" else size

    def zero_state(self, batch, dtype):
        zeros = tf.zeros([batch, self.size], dtype)
        return (zeros, zeros) if self.kind == "lstm" else zeros

    def weights(self, x, name, columns):
        return v1.get_variable(name, initializer=np.random.default_rng(len(name)).normal(0, 0.5, (int(x.shape[-1]) + self.size, columns)).astype(np.float32))

    def __call__(self, x, state, scope=None):
        with v1.variable_scope(self.name, reuse=v1.AUTO_REUSE):
            if self.kind == "rnn":
                h = tf.tanh(tf.concat([x, state], 1) @ self.weights(x, "w", self.size))
                return h, h
            if self.kind == "gru":
                r, z = tf.split(tf.sigmoid(v1.nn.bias_add(tf.concat([x, state], 1) @ self.weights(x, "w", 2 * self.size), tf.ones([2 * self.size]))), 2, 1)
                h = z * state + (1 - z) * tf.tanh(tf.concat([x, r * state], 1) @ self.weights(x, "uu", self.size))
                return h, h
            c, h = state
            i, j, f, o = tf.split(tf.concat([x, h], 1) @ self.weights(x, "w", 4 * self.size), 4, 1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            h = tf.tanh(c) * tf.sigmoid(o)
            return h, (c, h)


class Stacked:
    def __init__(self, cells):
        self.cells, self.output_size, self.state_size = cells, cells[-1].output_size, tuple(c.state_size for c in cells)

    def zero_state(self, batch, dtype):
        return tuple(c.zero_state(batch, dtype) for c in self.cells)

    def __call__(self, x, state, scope=None):
        states = []
        for cell, s in zip(self.cells, state):
            x, s = cell(x, s)
            states.append(s)
        return x, tuple(states)


@row(x=(f32(2, 5, 3), True))
def v1_dynamic_rnn(x):
    return [*v1.nn.dynamic_rnn(Cell(4, "c", "rnn"), x, dtype=tf.float32)]


@row(x=(f32(2, 5, 3), True), n=(np.int32([3, 5]), True))
def v1_dynamic_rnn_lengths(x, n):
    out, (a, b) = v1.nn.dynamic_rnn(Stacked([Cell(4, "a", "lstm"), Cell(5, "b", "lstm")]), x, sequence_length=n, dtype=tf.float32)
    return [out, *a, *b]


@row(x=(f32(2, 5, 3), True))
def v1_bidirectional_rnn(x):
    (ahead, back), (state, _) = v1.nn.bidirectional_dynamic_rnn(Cell(4, "a", "gru"), Cell(4, "b", "gru"), x, dtype=tf.float32)
    return [ahead, back, state]


@row(x=(f32(5, 2, 3), False))
def v1_time_major_rnn(x):
    return [*v1.nn.dynamic_rnn(Cell(4, "c", "gru"), x, dtype=tf.float32, time_major=True)]


@row(x=(f32(2, 5, 3), True), n=(np.int32([3, 5]), True))
def v1_static_rnn_lengths(x, n):
    out, (c, h) = v1.nn.static_rnn(Cell(4, "c", "lstm"), tf.unstack(x, 5, 1), dtype=tf.float32, sequence_length=n)
    return [out[-1], c, h]


@row(x=(f32(2, 5, 3), True))
def v1_raw_rnn(x):
    """Arrays that grow, and a choice in the loop."""
    rows, cell, batch = v1.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2])), Cell(4, "c", "lstm"), tf.shape(x)[0]

    def step(time, output, state, _):
        done = time >= 5
        return done, v1.cond(done, lambda: tf.zeros([batch, 3]), lambda: rows.read(time)), cell.zero_state(batch, tf.float32) if output is None else state, output, None
    out, (c, _), _ = v1.nn.raw_rnn(cell, step)
    return [out.stack(), c]


@row(x=(f32(7, 3), True), n=(np.int32(4), False))
def v1_array_that_grows(x, n):
    array = v1.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3])
    return v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, x[i] * 2.0)), [0, array])[1].stack()


@row(x=(f32(3, 4), True))
def v1_variable_and_dropout(x):
    w = v1.get_variable("w", initializer=f32(4, 5), use_resource=False)
    training = v1.placeholder_with_default(False, [])
    h = tf.nn.relu(x @ w)
    return v1.cond(training, lambda: v1.nn.dropout(h, rate=0.5), lambda: h)


def save(name, path, log_path):
    function, requests = ROWS[name]
    was = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            inputs = {k: v1.placeholder(np.asarray(v).dtype, [None, *np.shape(v)[1:]] if free else np.shape(v), name=k) for k, (v, free) in requests.items()}
            results = function(**inputs)
            results = results if isinstance(results, (list, tuple)) else [results]
            outputs = {f"y{i}": tf.identity(r, name=f"y{i}") for i, r in enumerate(results)}
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, str(path), inputs, outputs)
            answers = session.run(outputs, {inputs[k]: v for k, (v, _) in requests.items()})
    finally:
        if was:
            v1.enable_control_flow_v2()
    log = prediction_log_pb2.PredictionLog()
    log.log_metadata.saved_model_tags.append("serve")
    log.predict_log.request.model_spec.signature_name = "serving_default"
    for k, (v, _) in requests.items():
        log.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
    for k, v in answers.items():
        log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v))
    with tf.io.TFRecordWriter(str(log_path)) as out:
        out.write(log.SerializeToString())
