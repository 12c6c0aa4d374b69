"""The way from float to int8 and back, spelled out as converted models have it: borders, paddings in front of them, and what is computed on either side."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(shape):
    return tf.compat.v1.placeholder(tf.float32, shape)


def quantise(x, scale, zero, low=-128.0, high=127.0):
    x = R.Div(x=x, y=np.float32(scale))
    if zero != 0:
        x = x + np.float32(zero)
    return tf.cast(R.Round(x=tf.minimum(tf.maximum(x, np.float32(low)), np.float32(high))), tf.int8)


def dequantise(q, scale, zero):
    x = tf.cast(q, tf.float32)
    return (x - np.float32(zero) if zero != 0 else x) * np.float32(scale)


# Quarters and a scale of a quarter or a half: halves are rounded to even. Nothing lies at a half of 0.03.
FORMS = {"quarters": (0.25, -128, -128, 127), "halves": (0.5, 7, -128, 127), "centred": (0.03, 0, -127, 127), "clamped": (0.25, -100, -90, 50)}


def numbers(r, *shape):
    x = np.round(r.normal(shape) * 40) / 4
    x.flat[:5] = [np.inf, -np.inf, 1e30, -1e30, -0.0]
    return x.astype(np.float32)


def cases(r):
    for name, (scale, zero, low, high) in FORMS.items():

        def chain(scale=scale, zero=zero, low=low, high=high):
            x, y = ph([None, 3, 3, 16]), ph([1, 1, 1, 16])
            q = quantise(x * y, scale, zero, low, high)
            back = dequantise(q, scale, zero)
            feed = {x: numbers(r, 2, 3, 3, 16), y: np.array([1, 0.5, -1, 2] * 4, np.float32).reshape(1, 1, 1, 16)}
            return [Step(fetch=[q, tf.abs(back) + 1.0], feed=f) for f in (feed, {x: feed[x][:0], y: feed[y]})]

        def padded(scale=scale, zero=zero, low=low, high=high):
            x = ph([None, 2, 3, 4])
            before = tf.nn.relu(x)
            wide = tf.pad(before, [[0, 0], [1, 0], [0, 2], [0, 0]])
            q = quantise(wide, scale, zero, low, high)
            other = tf.pad(before, [[0, 0], [1, 1], [1, 1], [0, 0]])
            both = quantise(other, scale, zero, low, high)
            feed = {x: numbers(r, 2, 2, 3, 4)}
            return [Step(fetch=[q, dequantise(q, scale, zero), both, other * 2.0], feed=f) for f in (feed, {x: feed[x][:0]})]

        def pooled(scale=scale, zero=zero, low=low, high=high):
            # Enough results for a pool of the library.
            x = ph([None, 3, 3, 16])
            q = quantise(tf.tile(x, [1, 4, 4, 4]), scale, zero, low, high)
            wide = R.PadV2(input=q, paddings=[[0, 0], [1, 0], [0, 2], [0, 0]], constant_values=tf.constant(low, tf.int8))
            a = tf.nn.max_pool2d(wide, 3, 2, "VALID")
            b = tf.nn.max_pool2d(q, 2, 1, "SAME")
            feed = {x: numbers(r, 1, 3, 3, 16)}
            return [Step(fetch=[dequantise(a, scale, zero)[:, :3, 3:, :20], dequantise(b, scale, zero)[:, 9:, :3, :20]], feed=f) for f in (feed, {x: feed[x][:0]})]

        yield graph_case("Div", chain, name=f"to_int8_{name}")
        yield graph_case("MaxPool", pooled, name=f"of_int8_{name}")
        yield graph_case("Pad", padded, name=f"then_int8_{name}")

    def of_number(kind):
        # All numbers of 8 bits, in several shapes, and none.
        x = tf.compat.v1.placeholder(tf.uint8 if kind == "pixel" else tf.int8, None)
        if kind == "swish":
            f = dequantise(x, 0.05, 3)
            q = quantise(f * tf.sigmoid(f), 0.031, -100)
        elif kind == "swish_read_between":
            f = dequantise(x, 0.05, 3)
            s = quantise(tf.sigmoid(f), 0.0039, -128)
            q = quantise(dequantise(s, 0.0039, -128) * f, 0.031, -100) + s
        elif kind == "pixel":
            q = quantise(tf.cast(x, tf.float32) / 255.0 - 0.485, 0.0187, -4)
        else:
            q = tf.maximum(tf.minimum(x, tf.constant(100, tf.int8)), tf.constant(-7, tf.int8))
        every = np.arange(256, dtype=np.uint8).view(x.dtype.as_numpy_dtype)
        return [Step(fetch=[q, tf.cast(q, tf.float32)], feed={x: v}) for v in (every.reshape(2, 128), every[:0], every[77])]

    for kind in ["swish", "swish_read_between", "pixel", "clip"]:
        yield graph_case("Cast", lambda kind=kind: of_number(kind), name=f"of_a_number_{kind}")
