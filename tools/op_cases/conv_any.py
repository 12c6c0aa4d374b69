"""Conv: convolutions of two or three spatial dimensions, with any number of batch dimensions."""
from op_cases import *


def cases(r):
    for t in FLOATING + ["int32"]:
        tol = dict(tol=(2e-2, 2e-2)) if t in HALVES else {}
        for shape, filt, s, pad, more in [
            ((1, 4, 4, 2), (2, 2, 2, 3), 1, "VALID", {}),
            ((2, 3, 5, 2), (3, 2, 2, 2), 2, "SAME", {}),
            ((1, 4, 4, 2), (2, 2, 2, 3), 1, "EXPLICIT", {"explicit_paddings": [0, 0, 1, 0, 0, 2, 0, 0]}),
            ((1, 5, 5, 2), (2, 2, 2, 3), 1, "VALID", {"dilations": [1, 2, 2, 1]}),
            ((0, 4, 4, 2), (2, 2, 2, 3), 1, "VALID", {}),
        ]:
            yield case("Conv", r.numbers(t, shape), r.numbers(t, filt), strides=[1, s, s, 1], padding=pad, static=True, **tol, **more)
        yield case("Conv", r.numbers(t, (1, 3, 3, 3, 2)), r.numbers(t, (2, 2, 2, 2, 2)), strides=[1, 1, 1, 1, 1], padding="VALID", static=True, **tol)
        yield case("Conv", r.numbers(t, (2, 1, 4, 4, 2)), r.numbers(t, (2, 2, 2, 3)), strides=[1, 1, 1, 1], padding="SAME", batch_dims=2,
                   static=True, **tol)
    yield case("Conv", r.numbers("float", (1, 2, 4)), r.numbers("float", (2, 2, 4)), strides=[1, 1, 1, 1], padding="VALID",
               error="The input must have 2 or 3 spatial dimensions but got 1")
