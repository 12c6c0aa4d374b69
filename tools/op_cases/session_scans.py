"""Loops over lists of tensors, as recurrent layers are traced: what runs as one scan over arrays, and what must not."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops
UNITS = 3


def ph(shape, dtype="float"):
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), shape)


def numbers(r, *shape):
    return np.round(r.normal(shape), 2).astype(np.float32)


def array(x):
    return tf.TensorArray(x.dtype, size=tf.shape(x)[0], element_shape=x.shape[1:]).unstack(x)


def loop(cell, states, rows, steps=None, last=False, counts=False, mask=None):
    """Runs cell(states..., *row) for each row, as Keras does: all outputs or the last one, and the states."""
    n = tf.shape(rows[0])[0] if steps is None else steps
    inputs = [array(x) for x in rows] + ([array(mask)] if mask is not None else [])
    size = 1 if last else n
    outputs = tf.TensorArray(tf.float32, size=size, element_shape=tf.TensorShape([None, UNITS]))

    def body(t, outputs, *states):
        row = [a.read(t) for a in inputs]
        masked = row.pop() if mask is not None else None
        y, new = cell(list(states), *(row + [t] if counts else row))
        if masked is not None:
            new = [tf.where(masked, a, b) for a, b in zip(new, states)]
        return (t + 1, outputs.write(0 if last else t, y), *new)

    out = tf.while_loop(lambda t, *_: t < n, body, (tf.constant(0), outputs, *states), maximum_iterations=n)
    return [out[1].stack(), *out[2:]]


def lstm(r, k):
    w, u, b = numbers(r, k, 4 * UNITS), numbers(r, UNITS, 4 * UNITS), numbers(r, 4 * UNITS)

    def cell(states, x):
        h, c = states
        i, f, g, o = tf.split(tf.nn.bias_add(tf.matmul(x, w) + tf.matmul(h, u), b), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, [h, c]

    return cell


def gru(r, k, after):
    w, u, b = numbers(r, k, 3 * UNITS), numbers(r, UNITS, 3 * UNITS), numbers(r, 2, 3 * UNITS)

    def cell(states, x):
        h, = states
        bias, recurrent_bias = tf.unstack(b)
        xz, xr, xh = tf.split(tf.nn.bias_add(tf.matmul(x, w), bias), 3, axis=-1)
        if after:
            hz, hr, hh = tf.split(tf.nn.bias_add(tf.matmul(h, u), recurrent_bias), 3, axis=-1)
            z, g = tf.sigmoid(xz + hz), tf.sigmoid(xr + hr)
            n = tf.tanh(xh + g * hh)
        else:
            hz, hr = tf.split(tf.matmul(h, u[:, :2 * UNITS]), 2, axis=-1)
            z, g = tf.sigmoid(xz + hz), tf.sigmoid(xr + hr)
            n = tf.tanh(xh + tf.matmul(g * h, u[:, 2 * UNITS:]))
        h = z * h + (1 - z) * n
        return h, [h]

    return cell


def simple(r, k):
    w, u = numbers(r, k, UNITS), numbers(r, UNITS, UNITS)

    def cell(states, x):
        h = tf.nn.relu(tf.matmul(x, w) + tf.matmul(states[0], u, transpose_b=True))
        return h, [h]

    return cell


def traced(make, *args):
    """What `make` does in a function of its own, whose loops stay loops."""
    return tf.nest.flatten(tf.function(make, autograph=False)(*args))


def framed(make, *args):
    """What `make` does in a graph of version 1: loops are frames, arrays are TensorArrays."""
    tf.compat.v1.disable_control_flow_v2()
    try:
        return tf.nest.flatten(make(*args))
    finally:
        tf.compat.v1.enable_control_flow_v2()


def side_by_side(r, k):
    """The cell of version 1's LSTM: one matrix for the input and the state."""
    w, b = numbers(r, k + UNITS, 4 * UNITS), numbers(r, 4 * UNITS)

    def cell(states, x):
        c, h = states
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b), 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, [c, h]

    return cell


def frames(r):
    cells = {"lstm": (lambda: lstm(r, 2), 2), "gru_before": (lambda: gru(r, 2, False), 1), "side_by_side": (lambda: side_by_side(r, 2), 2)}
    for name, (make, states) in cells.items():
        for kind in ("sequences", "masked", "short"):

            def build(make=make, states=states, kind=kind):
                cell = make()
                x, m, n = ph([None, None, 2]), ph([None, None, 1], "bool"), ph([], "int32")

                def run(x, m, n):
                    zeros = [tf.zeros([tf.shape(x)[1], UNITS])] * states
                    return loop(cell, zeros, [x], steps=n if kind == "short" else None, mask=m if kind == "masked" else None)

                out = framed(run, x, m, n)
                return [Step(fetch=out, feed={x: numbers(r, t, b, 2), m: r.bools((t, b, 1)), n: np.int32(t)}) for t, b in ((4, 2), (1, 1), (5, 3))]

            yield graph_case("Exit", build, name=f"{name}_{kind}")

    def case(name, inputs, run, feeds):

        def build():
            args = inputs()
            out = framed(run, *args)
            return [Step(fetch=out, feed=dict(zip(args, values))) for values in feeds]

        return graph_case("Exit", build, name=name)

    rows = lambda *b: [[numbers(r, n, 2)] for n in b]
    yield case("functions_of_higher_order", lambda: [ph([None, 2])],
               lambda x: [tf.scan(lambda a, e: a * 0.5 + e, x), tf.map_fn(lambda e: tf.reduce_sum(e) * e, x), tf.foldl(lambda a, e: a - e, x)], rows(4, 1))
    yield case("two_loops_one_behind_the_other", lambda: [ph([None, 2])],
               lambda x: tf.map_fn(lambda e: e + 1.0, tf.map_fn(lambda e: tf.reduce_sum(e) * e, x)), rows(4, 2))
    yield case("a_loop_in_a_loop", lambda: [ph([None, 2])],
               lambda x: tf.map_fn(lambda e: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * 0.5 + e), (0, e))[1], x), rows(3))
    yield case("a_branch_in_a_loop", lambda: [ph([None, 2])],
               lambda x: tf.map_fn(lambda e: tf.compat.v1.cond(e[0] > 0, lambda: e * 2.0, lambda: e - 1.0), x), rows(4))
    yield case("a_loop_in_a_branch", lambda: [ph([None, 2])],
               lambda x: tf.compat.v1.cond(x[0, 0] > 0, lambda: tf.map_fn(lambda e: e * 2.0, x), lambda: x), rows(4, 3))
    yield case("an_array_is_read_ahead", lambda: [ph([None, 2])],
               lambda x: (lambda a: tf.while_loop(lambda t, s: t < tf.shape(x)[0] - 1, lambda t, s: (t + 1, s * a.read(t) + 0.5), (0, tf.ones([2]))))(array(x)), rows(4))
    yield case("an_array_of_another_length", lambda: [ph([None, 2])],
               lambda x: tf.while_loop(lambda t, a: t < 2, lambda t, a: (t + 1, a.write(t, x[t] * 2.0)), (0, tf.TensorArray(tf.float32, 5, element_shape=[2])))[1].stack(), rows(3))
    yield case("part_of_an_array", lambda: [ph([None, 2])],
               lambda x: tf.while_loop(lambda t, a: t < 3, lambda t, a: (t + 1, a.write(t, x[t] * 2.0)), (0, tf.TensorArray(tf.float32, 3)))[1].gather([2, 0]), rows(3))
    yield case("backwards_through_an_array", lambda: [ph([None, 2])],
               lambda x: tf.while_loop(lambda t, a: t < 3, lambda t, a: (t + 1, a.write(2 - t, x[t] * 2.0)), (0, tf.TensorArray(tf.float32, 3)))[1].stack(), rows(3))
    yield case("a_condition_on_a_value", lambda: [ph([2])],
               lambda x: tf.while_loop(lambda s: tf.reduce_sum(s) < 10.0, lambda s: s * 2.0 + 1.0, [x]), [[numbers(r, 2)]])


def no_turns(r):
    """Loops that do not run once: rows are zeros where their shape is stated, and an error where only a turn would tell it."""

    def writes(stated, size=None):
        def run(x, n):
            a = tf.TensorArray(tf.float32, size=tf.shape(x)[0] if size is None else size, element_shape=stated)
            return tf.while_loop(lambda t, a: t < n, lambda t, a: (t + 1, a.write(t, x[t] * 2.0)), (0, a))[1].stack()

        return run

    def until(x, n):
        a = tf.TensorArray(tf.float32, size=3, element_shape=[None])
        return tf.while_loop(lambda t, s, a: tf.reduce_sum(s) < tf.cast(n, tf.float32) * 100.0, lambda t, s, a: (t + 1, s + 200.0, a.write(t, s)), (0, x[0], a))[2].stack()

    kinds = {"stated": writes([2]), "unstated": writes(None), "stated_in_part": writes([None]), "unstated_of_five": writes(None, 5), "mapped": lambda x, n: tf.map_fn(lambda e: e * 2.0, x),
             "until": until}
    for how in (framed, traced):
        for name, run in kinds.items():
            for turns, rows in ((0, 0), (0, 3), (2, 3)):
                if (name == "mapped" and turns == 0 and rows > 0) or (name == "until" and rows == 0):
                    continue

                def build(how=how, name=name, run=run, turns=turns, rows=rows):
                    x, n = ph([None, None]), ph([], "int32")
                    out = how(run, x, n)
                    error = None
                    if turns == 0 and name != "stated":
                        if how == framed:
                            error = "is not fully defined" if rows == 0 and "five" not in name else "the element shape is not fully defined"
                        else:
                            error = "non-fully-defined element_shape"
                    return [Step(fetch=out, feed={x: numbers(r, rows, 2), n: np.int32(turns)}, error=error)]

                yield graph_case("Exit" if how == framed else "While", build, name=f"{turns}_turns_of_{rows}_rows_{name}")

        def layer(how=how):
            x = ph([None, None, 2])
            cell = lstm(r, 2)
            out = how(lambda x: loop(cell, [tf.zeros([tf.shape(x)[1], UNITS])] * 2, [x]), x)
            return [Step(fetch=out, feed={x: numbers(r, 2, 2, 2)}), Step(fetch=out, feed={x: numbers(r, 0, 2, 2)}, error="fully")]

        yield graph_case("Exit" if how == framed else "While", layer, name="a_layer_of_no_steps")


def unrolled(r):
    cells = {"lstm": (lambda: lstm(r, 2), 2), "gru_after": (lambda: gru(r, 2, True), 1), "simple": (lambda: simple(r, 2), 1), "side_by_side": (lambda: side_by_side(r, 2), 2)}
    special = numbers(r, 7, 2, 2)
    special[2, 0, 0], special[4, 1, 1] = np.nan, np.inf

    def case(name, run, feeds=None, steps=7):

        def build():
            x = ph([steps, None, 2])
            out = tf.nest.flatten(run(x))
            return [Step(fetch=out, feed={x: v}) for v in feeds or [numbers(r, steps, 2, 2), numbers(r, steps, 1, 2), numbers(r, steps, 0, 2), special][: 4 if steps == 7 else 3]]

        return graph_case("Unpack", build, name=name)

    def chain(cell, states, slices, mask=None):
        outputs = []
        for t, x in enumerate(slices):
            y, new = cell(states, x)
            if mask is not None:
                y = tf.where(mask[t], y, outputs[-1] if outputs else tf.zeros_like(y))
                new = [tf.where(mask[t], a, b) for a, b in zip(new, states)]
            states = new
            outputs.append(y)
        return outputs, states

    def zeros(x, n):
        return [tf.zeros([tf.shape(x)[1], UNITS])] * n

    for name, (make, n) in cells.items():
        yield case(f"{name}_last", lambda x, make=make, n=n: chain(make(), zeros(x, n), tf.unstack(x))[0][-1])
        yield case(f"{name}_all", lambda x, make=make, n=n: (lambda o: [tf.stack(o[0]), *o[1]])(chain(make(), zeros(x, n), tf.unstack(x))))
        yield case(f"{name}_backwards", lambda x, make=make, n=n: tf.stack(chain(make(), zeros(x, n), tf.unstack(x)[::-1])[0], 1))
        yield case(f"{name}_masked", lambda x, make=make, n=n: tf.stack(chain(make(), zeros(x, n), tf.unstack(x), tf.unstack(x[:, :, :1] > 0))[0]))
    both = lambda x: tf.concat([tf.stack(chain(lstm(r, 2), zeros(x, 2), s)[0]) for s in (tf.unstack(x), tf.unstack(x)[::-1])], 2)
    yield case("both_ways", both)
    yield case("two_layers", lambda x: chain(simple(r, UNITS), zeros(x, 1), chain(gru(r, 2, True), zeros(x, 1), tf.unstack(x))[0])[0][-1])
    yield case("two_layers_with_all_between", lambda x: chain(simple(r, UNITS), zeros(x, 1), tf.unstack(tf.nn.softmax(tf.stack(chain(lstm(r, 2), zeros(x, 2), tf.unstack(x))[0]), 0)))[0][-1])
    yield case("behind_both_ways", lambda x: chain(simple(r, 2 * UNITS), zeros(x, 1), tf.unstack(both(x)))[0][-1])
    yield case("some_outputs", lambda x: (lambda o: [o[1], o[3] * 2.0, o[3] + o[6]])(chain(lstm(r, 2), zeros(x, 2), tf.unstack(x))[0]))
    yield case("along_another_axis", lambda x: tf.stack(chain(lambda s, e: (s[0] + e, [s[0] * 0.5 + e]), [tf.zeros([tf.shape(x)[1], 2])], tf.unstack(tf.transpose(x, [1, 0, 2]), axis=1))[0]), [numbers(r, 7, 2, 2)])

    def other_weights(x):
        h = zeros(x, 1)[0]
        for e in tf.unstack(x):
            h = tf.tanh(tf.matmul(e, numbers(r, 2, UNITS)) + h)
        return h

    yield case("weights_of_their_own", other_weights)
    yield case("two_turns_back", lambda x: (lambda h: [h.append(h[-1] * 0.5 + h[-2] + e) for e in tf.unstack(x)] and h[-1])([tf.zeros([2]), tf.ones([2])]))
    yield case("a_turn_that_differs", lambda x: (lambda h: [h.append(tf.tanh(h[-1] + e) if t != 3 else h[-1] * e) for t, e in enumerate(tf.unstack(x))] and h[-1])([tf.zeros([2])]))
    yield case("the_slice_before", lambda x: (lambda s, h: [h.append(tf.tanh(h[-1] + a * b)) for a, b in zip(s, s[1:])] and h[-1])(tf.unstack(x), [tf.zeros([2])]))
    yield case("too_short", lambda x: chain(lstm(r, 2), zeros(x, 2), tf.unstack(x))[0][-1], steps=4)


def layers(r):
    cells = {"lstm": (lambda: lstm(r, 2), 2), "gru_after": (lambda: gru(r, 2, True), 1), "gru_before": (lambda: gru(r, 2, False), 1),
             "simple": (lambda: simple(r, 2), 1)}
    for name, (make, states) in cells.items():
        for kind in ("sequences", "last", "backwards", "masked", "short"):

            def build(make=make, states=states, kind=kind):
                cell = make()
                x, m, n = ph([None, None, 2]), ph([None, None, 1], "bool"), ph([], "int32")

                def run(x, m, n):
                    zeros = [tf.zeros([tf.shape(x)[1], UNITS])] * states
                    rows = [tf.reverse(x, [0]) if kind == "backwards" else x]
                    return loop(cell, zeros, rows, steps=n if kind == "short" else None, last=kind == "last", mask=m if kind == "masked" else None)

                out = traced(run, x, m, n)
                feeds = []
                for t, b in ((4, 2), (1, 1), (3, 0), (5, 3)):
                    feeds.append({x: numbers(r, t, b, 2), m: r.bools((t, b, 1)), n: np.int32(max(t - 1, 1))})
                return [Step(fetch=out, feed=feed) for feed in feeds]

            yield graph_case("While", build, name=f"{name}_{kind}")


def corners(r):
    def case(name, make, steps):
        """`make`: placeholders to results; `steps`: their values, and an error or None, for each step."""

        def build():
            inputs, run = make()
            out = traced(run, *inputs)
            return [Step(fetch=out, feed=dict(zip(inputs, values)), **({} if error is None else {"error": error})) for values, error in steps]

        return graph_case("While", build, name=name)

    x3 = numbers(r, 3, 2, 2)

    def counting():
        return [ph([None, 2, 2])], lambda x: loop(
            lambda s, row, t: (s[0] + row[:, :1] * tf.cast(t, tf.float32), [s[0] + row[:, 1:]]), [tf.zeros([2, UNITS])], [x], counts=True)

    yield case("the_number_of_the_iteration_is_computed_with", counting, [([x3], None)])

    def steps():
        cell = lstm(r, 2)
        return [ph([None, 2, 2]), ph([], "int32")], lambda x, n: loop(cell, [tf.ones([2, UNITS])] * 2, [x], steps=n)

    special = x3.copy()
    special[1, 0, 0], special[2, 1, 1] = np.nan, np.inf
    yield case("how_often", steps, [([x3, np.int32(2)], None), ([x3, np.int32(3)], None), ([special, np.int32(3)], None),
                                    ([x3, np.int32(4)], "Trying to access element 3 in a list with 3 elements.")])

    def none():
        def run(x, n):
            return tf.while_loop(lambda t, *_: t < n, lambda t, s: (t + 1, s + array(x).read(t)), (0, tf.zeros([2])))
        return [ph([None, 2]), ph([], "int32")], run

    yield case("no_iteration", none, [([numbers(r, 3, 2), np.int32(n)], None) for n in (0, -5, 3)])

    def longer():
        def run(x):
            out = tf.TensorArray(tf.float32, size=5, element_shape=[2])
            rows = array(x)
            return tf.while_loop(lambda t, *_: t < 3, lambda t, o: (t + 1, o.write(t, rows.read(t) * 2)), (0, out))[1].stack()
        return [ph([None, 2])], run

    yield case("elements_that_no_iteration_writes_are_zeros", longer, [([numbers(r, 3, 2)], None), ([numbers(r, 2, 2)], "Trying to access element 2 in a list with 2 elements.")])

    def shorter():
        def run(x, size):
            out = tf.TensorArray(tf.float32, size=size, element_shape=[2])
            rows = array(x)
            return tf.while_loop(lambda t, *_: t < 3, lambda t, o: (t + 1, o.write(t, rows.read(t) * 2)), (0, out))[1].stack()
        return [ph([None, 2]), ph([], "int32")], run

    yield case("a_list_that_ends_before_the_loop", shorter, [([numbers(r, 3, 2), np.int32(3)], None), ([numbers(r, 3, 2), np.int32(2)], "")])

    def ahead():
        def run(x):
            rows = array(x)
            return tf.while_loop(lambda t, s: t < tf.shape(x)[0] - 1, lambda t, s: (t + 1, s * rows.read(t) + rows.read(t + 1)), (0, tf.ones([2])))
        return [ph([None, 2])], run

    yield case("a_list_is_read_ahead", ahead, [([numbers(r, 4, 2)], None)])

    def growing():
        def run(x):
            rows = array(x)
            return tf.while_loop(lambda t, s: t < tf.shape(x)[0], lambda t, s: (t + 1, tf.concat([s, rows.read(t)], 0)), (0, tf.zeros([0])),
                                 shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])))
        return [ph([None, 2])], run

    yield case("a_state_grows", growing, [([numbers(r, 4, 2)], None), ([numbers(r, 0, 2)], None)])

    def grows():
        def run(x, n):
            out = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2])
            longer = tf.TensorArray(tf.float32, 3, dynamic_size=True, element_shape=[2])
            body = lambda t, s, a, b: (t + 1, s * 0.5 + x[t], a.write(t, s), b.write(t, s + 1.0))
            _, s, a, b = tf.while_loop(lambda t, *_: t < n, body, (0, tf.ones([2]), out, longer))
            return s, a.stack(), b.stack()
        return [ph([None, 2]), ph([], "int32")], run

    yield case("lists_grow", grows, [([numbers(r, 5, 2), np.int32(n)], None) for n in (0, 1, 2, 5)])

    def computed():
        def run(x, n):
            rows = array(x)
            return tf.while_loop(lambda t, s: tf.logical_and(t < tf.minimum(tf.shape(x)[0], n * 2 - 1), t < 3), lambda t, s: (t + 1, s * 0.5 + rows.read(t)), (0, tf.ones([2])))
        return [ph([None, 2]), ph([], "int32")], run

    yield case("the_condition_computes_its_bound", computed, [([numbers(r, 4, 2), np.int32(n)], None) for n in (-3, 1, 2, 9)])

    def shrinks():
        def run(x):
            return tf.while_loop(lambda t, s: t < tf.shape(s)[0], lambda t, s: (t + 1, s[:-1] * 2.0), (0, x), shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])))
        return [ph([None])], run

    yield case("the_bound_is_the_size_of_what_changes", shrinks, [([numbers(r, 5)], None)])

    def until():
        def run(x, most):
            out = tf.TensorArray(tf.float32, size=5, element_shape=[2])
            rows = array(x)
            body = lambda t, s, o: (t + 1, s * 0.5 + rows.read(t), o.write(t, s))
            t, s, o = tf.while_loop(lambda t, s, o: tf.reduce_sum(tf.abs(s)) < most, body, (0, tf.zeros([2]), out))
            return t, s, o.stack()
        return [ph([None, 2]), ph([])], run

    steady = np.full([5, 2], 1.0, np.float32)
    yield case("until_a_value_is_large", until, [([steady, np.float32(m)], None) for m in (-1, 0.1, 2.5, 3.5)] +
               [([steady[:2], np.float32(9)], "Trying to access element 2 in a list with 2 elements."), ([np.full([5, 2], np.nan, np.float32), np.float32(2)], None)])
    yield case("until_a_list_is_full", until, [([np.full([9, 2], 1.0, np.float32), np.float32(9)], "")])

    def found():
        def run(x):
            return tf.while_loop(lambda t, s: tf.logical_and(tf.shape(s)[0] < 9, s[-1] > 0.0), lambda t, s: (t + 1, tf.concat([s, s[-1:] * 2.0 - 3.0], 0)), (0, x),
                                 shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])))
        return [ph([None])], run

    yield case("until_something_is_found_in_what_grows", found, [([np.array(v, np.float32)], None) for v in ([-1.0], [3.5], [2.0, 1.0], [3.1, 9.0], [3.5])])

    def from_two():
        def run(x):
            rows = array(x)
            return tf.while_loop(lambda t, s: t < tf.shape(x)[0], lambda t, s: (t + 1, s * 0.5 + rows.read(t)), (2, tf.ones([2])))
        return [ph([None, 2])], run

    yield case("it_begins_later", from_two, [([numbers(r, 4, 2)], None), ([numbers(r, 1, 2)], None)])

    def wide():
        def run(x, n):
            return tf.while_loop(lambda t, u, s: tf.logical_and(t < n, u < tf.constant(7, tf.int64)), lambda t, u, s: (t + 1, u + 1, s * x), (tf.constant(0, tf.int64), tf.constant(3, tf.int64), x))
        return [ph([2]), ph([], "int64")], run

    yield case("two_counters", wide, [([numbers(r, 2), np.int64(n)], None) for n in (2, 100, -2**63, 2**63 - 1)])

    def changing():
        def run(x, n):
            return tf.while_loop(lambda t, m, s: t < m, lambda t, m, s: (t + 1, m - 1, s + x), (0, n, x))
        return [ph([2]), ph([], "int32")], run

    yield case("the_bound_changes", changing, [([numbers(r, 2), np.int32(7)], None)])

    def nested():
        def run(x):
            rows = array(x)

            def body(t, s):
                inner = tf.while_loop(lambda k, v: k < t, lambda k, v: (k + 1, v * 0.5 + rows.read(k)), (0, s))
                return t + 1, inner[1] + rows.read(t)

            return tf.while_loop(lambda t, s: t < tf.shape(x)[0], body, (0, tf.ones([2])))
        return [ph([None, 2])], run

    yield case("a_loop_in_a_loop", nested, [([numbers(r, 4, 2)], None)])

    def higher():
        def run(x):
            return [tf.scan(lambda a, e: a * 0.5 + e, x), tf.map_fn(lambda e: tf.reduce_sum(e) * e, x), tf.foldl(lambda a, e: a - e, x), tf.foldr(lambda a, e: a * 0.5 - e, x)]
        return [ph([None, 2])], run

    yield case("functions_of_higher_order", higher, [([numbers(r, 4, 2)], None), ([numbers(r, 1, 2)], None)])

    def twice():
        def run(x):
            rows = array(x)
            first = tf.while_loop(lambda t, *_: t < 3, lambda t, s, k: (t + 1, s + rows.read(t) * k, k), (0, tf.zeros([2]), tf.reduce_max(x)))
            return [first[0], first[1], first[2], rows.read(1)]
        return [ph([3, 2])], run

    yield case("what_goes_in_comes_out", twice, [([numbers(r, 3, 2)], None)])


def caches(r):
    """States of which a turn writes a part."""

    def case(name, run, steps):

        def build():
            x, cache, n = ph([None, 2]), ph([4, 2]), ph([], "int32")
            out = traced(run, x, cache, n)
            return [Step(fetch=out, feed={x: numbers(r, 4, 2), cache: numbers(r, 4, 2), n: np.int32(k)}, **({} if error is None else {"error": error})) for k, error in steps]

        return graph_case("While", build, name=name)

    update = lambda c, t, row: tf.tensor_scatter_nd_update(c, [[t]], [row])
    each = [(0, None), (1, None), (2, None), (4, None)]
    loop = lambda body: lambda x, cache, n: tf.while_loop(lambda t, *_: t < n, lambda t, c, s: (t + 1, *body(x, t, c, s)), (0, cache, cache[0]))

    def later(x, t, c, s):
        new = update(c, t, x[t] + s)
        return new, tf.tanh(s + tf.reduce_sum(new, 0) - 0.5 * tf.reduce_sum(c, 0))

    def swapped(x, cache, n):
        return tf.while_loop(lambda t, *_: t < n, lambda t, a, b: (t + 1, update(b, t, x[t]), update(a, 3 - t, x[t] * 2.0)), (0, cache, cache + 1.0))

    yield case("a_cache_is_written_and_read", loop(lambda x, t, c, s: (lambda new: (new, tf.tanh(s + tf.reduce_sum(new, 0))))(update(c, t, x[t] + s))), each)
    yield case("what_a_cache_was_is_read_later", loop(later), each)
    yield case("caches_change_places", swapped, each)
    yield case("a_cache_is_written_twice", loop(lambda x, t, c, s: (update(update(c, t, x[t]), 3 - t, s), s + x[t])), each)
    yield case("beyond_a_cache", loop(lambda x, t, c, s: (update(c, t + 2, x[t]), s)), [(2, None), (3, "indices[0] = [4] does not index into shape [4,2]")])
    yield case("a_state_is_clamped_and_shown", loop(lambda x, t, c, s: (tf.maximum(c * 0.5, 0.1), s + c[0])), each)


def variables(r):
    def build():
        v = R.VarHandleOp(dtype=tf.float32, shape=[2, UNITS], shared_name="w")
        w, x = ph([2, UNITS]), ph([None, 1, 2])
        assign = R.AssignVariableOp(resource=v, value=w)

        def run(h, x):
            return loop(lambda s, row: (tf.matmul(row, R.ReadVariableOp(resource=h, dtype=tf.float32)), [s[0] * 0.5 + tf.matmul(row, R.ReadVariableOp(resource=h, dtype=tf.float32))]),
                        [tf.zeros([1, UNITS])], [x])

        out = traced(run, v, x)
        steps = []
        for _ in range(5):
            steps += [Step(run=[assign], feed={w: numbers(r, 2, UNITS)}), Step(fetch=out, feed={x: numbers(r, 3, 1, 2)})]
        return steps

    yield graph_case("While", build, name="weights_that_are_assigned_between_runs")

    def write():
        v = R.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="s")
        x = ph([None, 2])
        zero = R.AssignVariableOp(resource=v, value=tf.zeros([2]))

        def run(h, x):
            rows = array(x)

            def body(t, s):
                add = R.AssignAddVariableOp(resource=h, value=rows.read(t))
                with tf.control_dependencies([add]):
                    return t + 1, s + R.ReadVariableOp(resource=h, dtype=tf.float32)

            return tf.while_loop(lambda t, s: t < tf.shape(x)[0], body, (0, tf.zeros([2])))

        out = traced(run, v, x)
        return [Step(run=[zero], feed={}), Step(fetch=out, feed={x: numbers(r, 3, 2)}), Step(fetch=out, feed={x: numbers(r, 2, 2)})]

    yield graph_case("While", write, name="a_body_that_writes_a_variable")


def states_in_arrays(r):
    """States that are rows of arrays, too, of whole cache lines: of each turn, of the last, of two arrays, and of two states."""

    def build():
        x, a, b = ph([None, 4, 4]), ph([4, 4]), ph([4, 4])

        def run(x, a, b):
            rows = array(x)
            n = tf.shape(x)[0]
            made = [tf.TensorArray(tf.float32, size=size, element_shape=[4, 4]) for size in (n, 1, n, n)]

            def body(t, each, last, again, other, a, b, twin):
                c = 0.5 * b + rows.read(t)
                h = tf.tanh(c) * a + twin
                return t + 1, each.write(t, h), last.write(0, c), again.write(t, h), other.write(t, b), h, c, h

            out = tf.while_loop(lambda t, *_: t < n, body, (tf.constant(0), *made, a, b, a), maximum_iterations=n)
            return [o.stack() for o in out[1:5]] + list(out[5:])

        out = traced(run, x, a, b)
        return [Step(fetch=out, feed={x: numbers(r, n, 4, 4), a: numbers(r, 4, 4), b: numbers(r, 4, 4)}) for n in (3, 1, 2, 7)]

    yield graph_case("While", build, name="states_that_are_rows_of_arrays")


def cases(r):
    yield from layers(r)
    yield from corners(r)
    yield from variables(r)
    yield from frames(r)
    yield from unrolled(r)
    yield from caches(r)
    yield from no_turns(r)
    yield from states_in_arrays(r)
