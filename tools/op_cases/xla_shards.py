"""XlaSplitND and XlaConcatND: a tensor in equal parts, one for each core."""
from op_cases import *

JIT = True


def cases(r):
    splits = [((4, 6), [2, 3], []), ((4, 6), [1, 1], []), ((3, 5), [2, 3], [1, 1]), ((3,), [3], []), ((5,), [2], [1]),
              ((2, 2, 4), [1, 2, 2], [0, 0, 0]), ((1, 1), [2, 2], [1, 1]), ((0, 4), [1, 2], []), ((1,), [4], [3])]
    for t in ["float", "int32", "bool", "bfloat16", "int64", "uint8"]:
        for shape, n, pads in splits:
            yield case("XlaSplitND", r.numbers(t, shape), N=int(np.prod(n)), num_splits=n, paddings=pads)
    for shape, n, pads, count, error in [
        ((4, 6), [2], [], 2, "'input' tensor rank must be the same as 'num_splits' length 1"),
        ((4, 6), [2, 4], [], 8, "must be evenly divisible by"),
        ((4, 6), [2, 3], [], 5, "'N' must match number of slices"),
        ((4, 6), [2, 3], [1], 6, "'paddings' length must match 'num_splits' length 2"),
        ((4, 6), [2, 3], [-2, 0], 6, "'padding' must be all non-negative, but got -2"),
        ((4, 6), [0, 3], [], 6, "'num_splits' at index 0 must be positive, but got 0."),
    ]:
        yield case("XlaSplitND", r.numbers("float", shape), N=count, num_splits=n, paddings=pads, error=error)
    concats = [((2, 2), [2, 3], []), ((2, 2), [1, 1], []), ((2, 2), [2, 3], [1, 1]), ((1,), [3], []), ((3,), [2], [1]),
               ((2, 1, 2), [1, 2, 2], [0, 0, 0]), ((0, 2), [1, 2], []), ((1,), [4], [3]), ((2,), [2], [4])]
    for t in ["float", "int32", "bool", "bfloat16", "int64", "uint8"]:
        for shape, n, pads in concats:
            yield case("XlaConcatND", [r.numbers(t, shape) for _ in range(int(np.prod(n)))], num_concats=n, paddings=pads)
    for shapes, n, pads, error in [
        ([(2, 2)] * 2, [2], [], "'inputs' rank must be the same as 'num_concats' length 1"),
        ([(2, 2)] * 5, [2, 3], [], "must match number of slices"),
        ([(2, 2), (2, 3)], [1, 2], [], "'inputs' must all have the same expected shape [2,2], but got [2,3] at index 1."),
        ([(2, 2)] * 2, [1, 2], [1], "'paddings' length must match 'num_concats' length 2"),
        ([(2, 2)] * 2, [1, 2], [-1, 0], "'padding' must be all non-negative"),
        ([(2, 2)] * 2, [1, 2], [3, 0], "'paddings' must not exceed expected output shape dimension 2"),
    ]:
        yield case("XlaConcatND", [r.numbers("float", s) for s in shapes], num_concats=n, paddings=pads, error=error)
