"""Conversions in the middle of programs: as steps of chains, in place of what they read, and what reads the same bytes as another type."""
from op_cases import *

FOLDER = "sessions"


def floats(shape):
    n = int(np.prod(shape))
    x = (np.arange(n) * 37 % 101).astype(np.float32) * 0.75 - 35
    x[: min(n, 4)] = [np.nan, np.inf, -np.inf, -0.0][: min(n, 4)]
    return x.reshape(shape)


def chains(r):
    def build():
        x, y = tf.compat.v1.placeholder(tf.int64, [None, None]), tf.compat.v1.placeholder(tf.float32, [None, None])
        a = tf.cast(x, tf.float32) * y
        b = tf.cast(a, tf.bfloat16)
        c = tf.cast(b, tf.float32) + tf.cast(tf.greater(y, 0.0), tf.float32)
        d = tf.cast(tf.clip_by_value(tf.where(tf.math.is_finite(y), y, tf.zeros_like(y)), -30.0, 30.0), tf.int8)
        fetch = [c, tf.cast(d, tf.float32) * 0.5, tf.cast(b, tf.double)]
        steps = []
        for shape in ([7, 13], [40, 5], [1, 1], [0, 3], [3, 90]):
            n = int(np.prod(shape))
            steps.append(Step(fetch=fetch, feed={x: (np.arange(n) * 7919 % 1009 - 500).reshape(shape), y: floats(shape)}))
        return steps

    yield graph_case("Cast", build, name="chain")


def in_place(r):
    def build():
        x = tf.compat.v1.placeholder(tf.float32, [None, None])
        e = tf.cast(tf.round(tf.abs(x)), tf.int32)
        # Another kernel reads the integers before their bytes become floats.
        turned = tf.roll(e, [1], [0])
        bits = tf.bitcast(x * 0.5, tf.int32)
        fetch = [turned, tf.cast(e, tf.float32), tf.cast(bits, tf.float32), tf.roll(bits, [2], [1])]
        return [Step(fetch=fetch, feed={x: np.nan_to_num(floats(shape), posinf=5, neginf=-5)}) for shape in ([7, 13], [40, 5], [1, 1], [0, 3])]

    yield graph_case("Cast", build, name="in_place")


def cases(r):
    yield from chains(r)
    yield from in_place(r)
