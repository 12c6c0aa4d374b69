"""Reductions, scans, arg-extremes, sorted search."""
from op_cases import *


def reductions(r):
    numeric = {"Sum": NUMBERS, "Prod": NUMBERS, "Mean": NUMBERS, "Max": REALS, "Min": REALS,
               "EuclideanNorm": NUMBERS}
    for op, types in numeric.items():
        for t in types:
            yield case(op, r.numbers(t, (3, 4)), i32([1]), name=t)
            yield case(op, r.numbers(t, (2, 3)), i64([0]), name=t + "_outer")
        for shape, axes in [((), []), ((5,), [0]), ((2, 3, 4), [1]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [-1, -2]),
                            ((2, 3, 4), []), ((2, 3, 4), [0, 1, 2]), ((2, 0, 3), [1]), ((2, 0, 3), [0]),
                            ((0,), [0]), ((1, 3, 1), [0, 2]), ((2, 2, 2, 2, 2), [0, 2, 4]),
                            ((2, 2, 2, 2, 2), [1, 3])]:
            for keep in (False, True):
                yield case(op, r.numbers("float", shape), i32(axes), keep_dims=keep)
        yield case(op, r.numbers("float", (2, 3)), i32(1), name="scalar_axis")
        yield case(op, r.normal((3, 50)), i32([1]), name="wide")
        yield case(op, r.normal((50, 3)), i32([0]), name="tall")
        yield case(op, r.normal((3, 17, 3)), i32([1]), name="middle")
        yield case(op, np.array([[1, np.nan, 3], [np.inf, -np.inf, 1]], np.float32), i32([1]), name="nan")
        yield case(op, np.array([[np.inf, 1], [-np.inf, 1]], np.float32), i32([1]), name="inf")
        yield case(op, r.normal((2, 3)), i32([2]), error="Invalid reduction dimension")
        yield case(op, r.normal((2, 3)), i32([-3]), error="Invalid reduction dimension")
        yield case(op, r.normal((2, 3)), i32([0, -2]), error="Invalid reduction arguments")
        yield case(op, r.normal(()), i32([0]), error="Invalid reduction dimension")
    for op in ("Any", "All"):
        for shape, axes in [((), []), ((5,), [0]), ((2, 3, 4), [1]), ((2, 3, 4), [0, 2]), ((2, 0), [1]),
                            ((2, 3), []), ((3, 40), [1]), ((40, 3), [0])]:
            for keep in (False, True):
                yield case(op, r.bools(shape), i32(axes), keep_dims=keep)
        yield case(op, np.ones((2, 3), bool), i64([-1]), name="ones")
        yield case(op, np.zeros((2, 3), bool), i64([-1]), name="zeros")
        yield case(op, r.bools((2, 3)), i32([5]), error="Invalid reduction dimension")
    for op, types in numeric.items():
        for t in types:
            yield case(op, np.zeros((2, 0), np_type(t)), i32([1]), name=t + "_empty")
        for t in INTS:
            yield case(op, array(t, [100, 120, 90]), i32([0]), name=t + "_wraps")
            yield case(op, np.array([[np.iinfo(np_type(t)).max] * 3, [np.iinfo(np_type(t)).min] * 3]), i32([1]),
                       name=t + "_extremes")
        yield case(op, array("float", [1, 2, np.nan] + [5] * 40), i32([0]), name="nan_long")
        yield case(op, array("float", [[1, 2, np.nan] * 4] + [[5] * 12] * 4), i32([0]), name="nan_outer")
        yield case(op, r.normal((2, 3)), i32([[0, 1]]), name="matrix_of_axes")
        yield case(op, array("float", [-3]), i32([0]), name="one_element")
        yield case(op, array("int8", [-100, 100]), i32([]), name="no_axes_int8")
    for values in ([7, -2, 2], [-7, 0, 0], [-7, 2]):
        yield case("Mean", array("int32", values), i32([0]), name="truncates")
        yield case("Mean", array("int8", values), i32([0]), name="truncates_int8")


def short_rows(r):
    """Rows too short for a call each, one after the other or again and again."""
    for op in ("Sum", "Mean", "Max", "Prod", "EuclideanNorm"):
        for shape, axes in [((2, 5, 3, 8), [1, 3]), ((1, 4, 30, 2), [1, 3]), ((5, 2, 3), [0, 2]), ((4, 3, 2, 2, 5), [0, 2, 4]), ((6, 1, 12, 4), [0, 3]), ((14, 20), [1]), ((19, 15), [1])]:
            value = 2 * r.ints(shape, 0, 2) - 1 if op == "Prod" else r.ints(shape, t="float")
            yield case(op, np.array(value, np.float32), i32(axes), name="short_rows")
        for shape in ((5, 0, 3), (5, 2, 0), (0, 2, 3), (5, 0, 2, 3)):
            yield case(op, np.zeros(shape, np.float32), i32([0, len(shape) - 1]), name="short_rows_empty")
    for t in ("bfloat16", "int8", "double"):
        yield case("Sum", r.ints((2, 5, 3, 8), -3, 4, t), i32([1, 3]), name="short_rows_" + t)
    specials = r.ints((17, 17), t="float")
    specials[3, 16], specials[12, 0], specials[16, 5], specials[16, 6] = np.nan, np.inf, np.inf, -np.inf
    for op in ("Sum", "Mean"):
        yield case(op, specials, i32([1]), name="short_rows_specials")


def arg_extremes(r):
    for op in ("ArgMax", "ArgMin"):
        for t in REALS + ["bool"]:
            yield case(op, r.numbers(t, (3, 5)), i32(1), name=t)
        for out in (tf.int32, tf.int64) + ((tf.int16, tf.uint16) if op == "ArgMax" else ()):
            yield case(op, r.normal((2, 3, 4)), i64(1), output_type=out, name="out")
        for axis in (0, 1, 2, -1, -3):
            yield case(op, r.normal((2, 3, 4)), i32(axis), name="axis")
        yield case(op, array("float", [1, 3, 3, 1, 1, 3]), i32(0), name="ties")
        yield case(op, array("float", [np.nan, 1, 2]), i32(0), name="nan_first")
        yield case(op, array("float", [1, np.nan, 2]), i32(0), name="nan_middle")
        yield case(op, array("float", [np.nan, np.nan]), i32(0), name="nan_all")
        yield case(op, array("float", [-np.inf, -np.inf]), i32(0), name="minus_inf")
        yield case(op, np.round(r.normal((2, 60)) * 3), i32(1), name="long_ties")
        yield case(op, array("float", [1, np.nan, 5] + [2] * 40), i32(0), name="long_nan")
        yield case(op, array("float", [[1, np.nan, 5], [np.nan, 2, 4], [3, 3, np.nan]]), i32(0), name="nan_outer")
        yield case(op, r.normal((3, 0)), i32(0), name="empty_other")
        yield case(op, r.normal((3, 0)), i32(1), error="is empty in shape")
        yield case(op, r.normal((2, 3)), i32(2), error="Expected dimension in the range")
        yield case(op, r.normal((2, 3)), i32(-3), error="Expected dimension in the range")
        yield case(op, r.normal((2, 3)), i32([0]), error="dim must be a scalar")


def scans(r):
    for op in ("Cumsum", "Cumprod"):
        for t in NUMBERS:
            yield case(op, r.numbers(t, (2, 4)), i32(1), name=t)
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        for t in FLOATING:
            yield case(op, r.numbers(t, (5,)), i32(0), name="f_" + t)
        for exclusive in (False, True):
            for reverse in (False, True):
                for shape, axis in [((4,), 0), ((2, 3), -1), ((3, 2), 0), ((2, 3, 4), 1), ((2, 0, 2), 1),
                                    ((1, 1), 0)]:
                    yield case(op, r.normal(shape), i64(axis), exclusive=exclusive, reverse=reverse)
        yield case(op, array("float", [1, np.inf, -1, np.nan, 2]), i32(0), name="nan")
        yield case(op, array("float", [-np.inf, -np.inf, 1]), i32(0), name="minus_inf")
        yield case(op, array("float", [np.inf, np.inf, -np.inf]), i32(0), name="inf")
        yield case(op, array("float", [2, np.nan, 1, -3]), i32(0), name="nan_between")
        yield case(op, r.normal((3, 40)), i32(0), name="wide")
        yield case(op, r.normal((2, 3)), i32(2), error="Expected scan axis in the range [-2, 2), but got 2")
        yield case(op, r.normal((2, 3)), i32([0]), error="must be a scalar")
        yield case(op, r.normal(()), i32(0), error="Expected scan axis", name="scalar")


def top(r):
    for t in REALS:
        yield case("TopKV2", r.numbers(t, (2, 6)), i32(3), name=t)
    for shape, k in [((5,), 1), ((5,), 5), ((5,), 0), ((2, 3, 4), 2), ((2, 0), 0), ((0, 3), 2), ((40,), 7)]:
        yield case("TopKV2", r.normal(shape), i32(k))
    yield case("TopKV2", array("float", [1, 3, 3, 2, 3, 1]), i32(4), name="ties")
    yield case("TopKV2", array("int32", [1, 1, 1, 1]), i32(3), name="all_equal")
    yield case("TopKV2", array("float", [1, np.inf, -np.inf, 5]), i32(4), name="inf")
    yield case("TopKV2", r.normal((4,)), i64(2), name="k64", attrs={})
    yield case("TopKV2", r.normal((4,)), i32(2), index_type=tf.int64, name="index64")
    yield case("TopKV2", r.normal((4,)), i32(2), index_type=tf.int16, name="index16")
    yield case("TopKV2", r.normal((2, 3)), i32(4), error="input must have at least k columns. Had 3, needed 4")
    yield case("TopKV2", r.normal((2, 3)), i32(-1), error="Need k >= 0, got -1")
    yield case("TopKV2", r.normal(()), i32(1), error="input must be >= 1-D, got shape []")
    yield case("TopKV2", r.normal((3,)), i32([1]), error="k must be scalar")
    for t in REALS:
        yield case("NthElement", r.numbers(t, (2, 6)), i32(2), name=t)
    for n, reverse in [(0, False), (4, False), (0, True), (4, True), (2, True)]:
        yield case("NthElement", r.normal((3, 5)), i32(n), reverse=reverse)
    yield case("NthElement", r.normal((5,)), i32(1), name="vector")
    yield case("NthElement", r.normal((3, 5)), i32(5), error="must have last dimension > n = 5")
    yield case("NthElement", r.normal((3, 5)), i32(-1), error="n must be non-negative but is -1")
    yield case("NthElement", r.normal(()), i32(0), error="")
    yield case("NthElement", r.normal((3,)), i32([0]), error="N must be scalar")


def search(r):
    for op in ("LowerBound", "UpperBound"):
        for t in FLOATING + SIGNED + ["uint8", "uint16"]:
            yield case(op, np.sort(r.ints((2, 5), t="int32"), axis=1).astype(np_type(t)),
                       r.ints((2, 3), t="int32").astype(np_type(t)), name=t)
        yield case(op, array("float", [[1, 2, 2, 2, 3]]), array("float", [[0, 1, 2, 2.5, 3, 4, np.inf]]), name="ties")
        yield case(op, array("float", [[1, 2]]), array("float", [[0, 3]]), out_type=tf.int64, name="out64")
        yield case(op, np.zeros((2, 0), np.float32), r.normal((2, 3)), name="no_sorted")
        yield case(op, r.normal((2, 3)), np.zeros((2, 0), np.float32), name="no_values")
        yield case(op, r.normal((2, 3)), r.normal((3, 3)), error="Leading dim_size of both tensors must match")
        yield case(op, r.normal((3,)), r.normal((3,)), error="")
    for t in ("int32", "int64", "float", "double"):
        for out in (tf.int32, tf.int64):
            yield case("HistogramFixedWidth", r.numbers(t, (20,)), array(t, [-3, 3]), i32(5), dtype=out, name=t)
    yield case("HistogramFixedWidth", r.normal((2, 5)), array("float", [0, 1]), i32(4), name="clamps")
    yield case("HistogramFixedWidth", array("float", [0, 1, 2, 5]), array("float", [0, 5]), i32(5), name="bounds")
    yield case("HistogramFixedWidth", np.arange(-18, 17), np.array([-18, 16]), i32(20), name="rounded_step")
    yield case("HistogramFixedWidth", np.zeros((0,), np.float32), array("float", [0, 5]), i32(3), name="empty")
    yield case("HistogramFixedWidth", r.normal((3,)), array("float", [0, 1, 2]), i32(3),
               error="value_range should be a vector of 2 elements")
    yield case("HistogramFixedWidth", r.normal((3,)), array("float", [1, 0]), i32(3), error="")
    yield case("HistogramFixedWidth", r.normal((3,)), array("float", [0, 1]), i32(0), error="nbins should be a positive")
    yield case("HistogramFixedWidth", r.normal((3,)), array("float", [0, 1]), i32([2]), error="")
    for t in ("half", "bfloat16", "float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16"):
        yield case("Cross", r.numbers(t, (2, 3)), r.numbers(t, (2, 3)), name=t)
    yield case("Cross", r.normal((3,)), r.normal((3,)), name="vector")
    yield case("Cross", r.normal((2, 2, 3)), r.normal((2, 2, 3)), name="batch")
    yield case("Cross", r.normal((0, 3)), r.normal((0, 3)), name="empty")
    yield case("Cross", r.normal((2,)), r.normal((2,)), error="Cross-products are only defined for 3-element vectors")
    yield case("Cross", r.normal((2, 3)), r.normal((3,)), error="Both inputs must be of same shape")
    yield case("Cross", r.normal(()), r.normal(()), error="")

def wide(r):
    """Reductions of integers whose results do not fit the type."""
    for op in ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"):
        for t in INTS:
            big = np.iinfo(np_type(t)).max
            yield case(op, np.full((3, 3), big - 3).astype(np_type(t)), i32([1]), name="wide_" + t)
            yield case(op, np.full((3,), np.iinfo(np_type(t)).min).astype(np_type(t)), i32([0]), name="least_" + t)
        for t in ("half", "float"):
            yield case(op, np.full((2, 5), 6e4 if t == "half" else 3e38).astype(np_type(t)), i32([1]), name="wide_" + t)



def cases(r):
    yield from reductions(r)
    yield from arg_extremes(r)
    yield from scans(r)
    yield from top(r)
    yield from search(r)
    yield from wide(r)
    yield from short_rows(r)
