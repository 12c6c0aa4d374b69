"""Angles of the bins of real transforms: the first and the middle one are real, so theirs are 0 or pi."""
from op_cases import *

FOLDER = "sessions"


def cases(r):
    for dtype in (np.float32, np.float64):
        for n in (2, 8, 9, 14, 48, 62):

            def build(n=n, dtype=dtype):
                x = tf.compat.v1.placeholder(dtype, [None, n])
                bins = tf.signal.rfft(x)
                rows = r.normal((4, n)).round(2).astype(dtype)
                return [Step(fetch=[tf.math.angle(bins)], feed={x: rows})]

            yield graph_case("RFFT", build, name=f"angle_{n}_{np.dtype(dtype).name}")
