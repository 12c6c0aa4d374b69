"""Elementwise ops: binary; see elementwise.py."""
from op_cases import *
from op_cases import elementwise as e


def short_rows(r):
    """Operands whose short rows are one value each, or rows that repeat: of each size of element, longer than a block."""
    shapes = [([2, 3, 4, 1], [2, 3, 1, 5]), ([7, 1, 3], [7, 4, 3]), ([6, 6, 1], [6, 1, 7]), ([5, 1, 7, 1], [5, 8, 7, 1]), ([2, 9, 1, 3], [2, 1, 4, 3]), ([40, 1, 1], [40, 1, 7])]
    for dtype in (tf.float32, tf.int8, tf.half, tf.int64, tf.complex128):
        for i, (a, b) in enumerate(shapes):

            def build(dtype=dtype, a=a, b=b):
                x, y = (tf.compat.v1.placeholder(dtype, s) for s in (a, b))
                feed = {t: np.round(r.normal(t.shape.as_list()) * 4).clip(-8, 8).astype(dtype.as_numpy_dtype) for t in (x, y)}
                return [Step(fetch=[x + y, y - x], feed=feed)]

            yield graph_case("AddV2", build, name=f"short_rows_{i}_{dtype.name}")


def cases(r):
    yield from e.binary(r)
    yield from e.equality(r)
    yield from short_rows(r)
