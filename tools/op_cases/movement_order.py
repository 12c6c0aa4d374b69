"""Reversing, rolling, ranges, one-hot, where, space and batch."""

from op_cases import *
from op_cases.movement import BF16, F32, HALF, NO_INTS, arr, count, vec, vec64, words

rng = np.random.RandomState(3)


def blocks(op, x, block_shape, amounts, error=None):
    """These ops are built only where the size of the block shape is known."""

    def build():
        inputs = [
            tf.compat.v1.placeholder(x.dtype, None, name="x"),
            tf.compat.v1.placeholder(block_shape.dtype, block_shape.shape, name="block_shape"),
            tf.compat.v1.placeholder(amounts.dtype, None, name="amounts"),
        ]
        make = tf.raw_ops.SpaceToBatchND if op == "SpaceToBatchND" else tf.raw_ops.BatchToSpaceND
        last = {"paddings" if op == "SpaceToBatchND" else "crops": inputs[2]}
        out = make(input=inputs[0], block_shape=inputs[1], **last)
        feed = dict(zip(inputs, (x, block_shape, amounts)))
        return [Step(fetch=[out], feed=feed, error=error)]

    return graph_case(op, build)


def more(r):
    for t in ["float", "half", "int8", "int64", "uint16", "bfloat16"]:
        x = r.numbers(t, (4, 2, 3, 1))
        yield case("SpaceToBatch", x, arr([[0, 0], [1, 0]]), block_size=2, name=t)
        yield case("BatchToSpace", x, arr([[0, 1], [1, 0]]), block_size=2, name=t)
    for t in FLOATING + INTS:
        x = r.numbers(t, (4, 2, 3, 1))
        yield blocks("SpaceToBatchND", x, vec(2, 2), arr([[0, 0], [1, 0]]))
        yield blocks("BatchToSpaceND", x, vec(2, 2), arr([[0, 1], [1, 0]]))
    yield case("SpaceToBatch", count(1, 3, 3, 1), np.array([[2, 1], [0, 0]], np.int64), block_size=3, name="int64")
    yield case("SpaceToBatch", count(0, 2, 2, 1), arr([[0, 0], [0, 0]]), block_size=2, name="empty")
    yield case("SpaceToBatch", count(1, 3, 2, 1), arr([[0, 0], [0, 0]]), block_size=2, error="")
    yield case("SpaceToBatch", count(1, 2, 2, 1), arr([[-1, 1], [0, 0]]), block_size=2, error="")
    yield case("BatchToSpace", count(4, 1, 1, 2), np.array([[0, 0], [0, 0]], np.int64), block_size=2, name="int64")
    yield case("BatchToSpace", count(0, 1, 1, 2), arr([[0, 0], [0, 0]]), block_size=2, name="empty")
    yield case("MirrorPadGrad", count(0, 4), arr([[0, 0], [1, 1]]), mode="REFLECT", name="empty")
    yield case("MirrorPadGrad", np.float32([np.nan, 1, np.inf, 2]), arr([[1, 1]]), mode="REFLECT", name="nan")
    yield case("BatchToSpace", count(3, 1, 1, 2), arr([[0, 0], [0, 0]]), block_size=2, error="")
    yield case("BatchToSpace", count(4, 1, 1, 2), arr([[0, 3], [0, 0]]), block_size=2, error="")
    for t in ["float", "string", "int8", "bool", "complex64"]:
        yield case("Reverse", r.numbers(t, (2, 3, 2)), np.array([True, False, True]), name=t)
    yield case("Reverse", r.normal(()), np.zeros((0,), bool), name="scalar")
    yield case("Reverse", r.normal((2, 0)), np.array([True, True]), name="empty")


def cases(r):
    for ax in [[0], [1], [0, 1], [-1], [-2, 1], [0, 0], [0, -2], [2], [-3], []]:
        yield case("ReverseV2", count(3, 4), arr(ax, np.int32))
        yield case("ReverseV2", count(3, 4, dt=np.uint8), arr(ax, np.int64))
        yield case("ReverseV2", count(3, 4, dt=np.complex128), arr(ax, np.int64))
    yield case("ReverseV2", count(3), i32(0), error="'dims' must be 1-dimension, not 0")
    yield case("ReverseV2", count(), NO_INTS)
    yield case("ReverseV2", count(0, 3), vec(0))
    yield case("ReverseV2", count(0, 3), vec(7))
    yield case("ReverseV2", count(), vec(0))
    yield case("ReverseV2", words(3, 2), vec(0))
    yield case(
        "ReverseV2",
        count(1, 1, 1, 1, 1, 1, 1, 1, 2),
        vec(0),
        error="reverse is not implemented for tensors of rank > 8.",
    )
    yield case("ReverseV2", count(2, 3, 4, 5), vec(1, 3))
    yield case("ReverseV2", count(14, 14), vec(0, 1))
    yield case("Reverse", count(3, 4), arr([True, False], bool))
    yield case("Reverse", count(3, 4), arr([True, True], bool))
    yield case(
        "Reverse",
        count(3, 4),
        arr([True], bool),
        error="'dims' must have the same number of values as 'input' has dimensions. 'input'",
    )
    yield case("Reverse", count(), np.zeros(0, bool))
    yield case("Reverse", count(3), arr(True, bool), error="'dims' must be 1-dimension, not 0")
    yield case("ReverseSequence", count(3, 4), vec64(1, 4, 2), seq_dim=1)
    yield case("ReverseSequence", count(3, 4), vec(1, 3, 2, 0), seq_dim=0, batch_dim=1)
    yield case("ReverseSequence", count(3, 4), vec64(1, 5, 2), seq_dim=1, error="seq_lens(1) > input.dims(1)")
    yield case("ReverseSequence", count(3, 4), vec64(1, -5, 2), seq_dim=1, error="seq_lens(1) < 0")
    yield case(
        "ReverseSequence",
        count(3, 4),
        vec64(1, 2),
        seq_dim=1,
        error="Length of seq_lengths != input.dims(0), (2 vs. 3)",
    )
    yield case("ReverseSequence", count(3, 4), vec64(1, 2, 3), seq_dim=0, error="batch_dim == seq_dim == 0")
    yield case(
        "ReverseSequence",
        count(3, 4),
        vec64(1, 2, 3),
        seq_dim=2,
        error="seq_dim must be < input rank ( 2 vs. 2)",
    )
    yield case(
        "ReverseSequence",
        count(3, 4),
        vec64(1, 2, 3),
        seq_dim=1,
        batch_dim=2,
        error="batch_dim must be < input rank ( 2 vs. 2)",
    )
    yield case("ReverseSequence", count(2, 3, 4, 2), vec64(1, 3), seq_dim=1)
    yield case(
        "ReverseSequence",
        count(2, 3, 4, 2),
        vec64(1, 3, 4, 0),
        seq_dim=1,
        batch_dim=2,
        error="seq_lens(2) > input.dims(1)",
    )
    yield case("ReverseSequence", count(2, 3, 4, 2), vec64(1, 3, 3, 0), seq_dim=1, batch_dim=2)
    yield case("ReverseSequence", words(2, 3), vec64(2, 3), seq_dim=1)
    yield case(
        "ReverseSequence",
        count(2, 3),
        np.array([[1, 1]], np.int64),
        seq_dim=1,
        error="seq_lengths must be 1-dim, not 2",
    )
    yield case("ReverseSequence", count(0, 3), np.zeros(0, np.int64), seq_dim=1)
    yield case("ReverseSequence", count(2, 3), vec64(1, 1), seq_dim=-1, error="Invalid seq_dim -1")
    yield case("Roll", count(5), i32(2), i32(0))
    yield case("Roll", count(5), i32(-7), i32(0))
    yield case("Roll", count(3, 4), vec(1, 2), vec(0, 1))
    yield case("Roll", count(3, 4), vec(1, 2), vec(1, 1))
    yield case("Roll", count(3, 4), vec(1, 2), vec(1), error="shift and axis must have the same size")
    yield case("Roll", count(3, 4), vec(1), vec(2), error="axis 2 is out of range")
    yield case("Roll", count(3, 4), vec(1), vec(-1))
    yield case("Roll", count(), i32(1), i32(0), error="input must be 1-D or higher")
    yield case("Roll", count(0, 3), i32(1), i32(0))
    yield case("Roll", words(3), i32(1), i32(0))
    yield case("Roll", count(2, 3, 4), vec64(1, -1, 2), vec(0, 1, 2))
    yield case("Roll", count(3, 4), vec(1), vec(-3), error="axis -1 is out of range")
    yield case(
        "Roll",
        count(3),
        np.array([[1]], np.int32),
        i32(0),
        error="shift must be a scalar or a 1-D vector. Found: [1,1]",
    )
    yield case(
        "Roll",
        count(3),
        i32(1),
        np.array([[0]], np.int32),
        error="axis must be a scalar or a 1-D vector. Found: [1,1]",
    )
    yield case("Roll", count(3), i32(1), vec(0), error="shift and axis must have the same size")
    for dt in [np.int32, np.int64, F32, np.float64, HALF, BF16]:
        for a, b, c in [
            (0, 5, 1),
            (0, 5, 2),
            (5, 0, -2),
            (0, 0, 1),
            (5, 0, 1),
            (0, 5, -1),
            (0, 5, 0),
            (3, 100, 7),
        ]:
            yield case("Range", np.array(a, dt), np.array(b, dt), np.array(c, dt))
    for dt in [F32, np.float64, HALF, BF16]:
        yield case("Range", np.array(0, dt), np.array(1, dt), np.array(0.1, dt))
        yield case("Range", np.array(0.5, dt), np.array(-3, dt), np.array(-0.3, dt))
        yield case(
            "Range",
            np.array(0, dt),
            np.array(np.inf, dt),
            np.array(1, dt),
            error="Requires ((limit - start) / delta) <= 9223372036854775807",
        )
        yield case(
            "Range",
            np.array(0, dt),
            np.array(np.nan, dt),
            np.array(1, dt),
            error="Requires start <= limit when delta > 0: 0/nan",
        )
    yield case("Range", np.array(0, F32), np.array(5, F32), np.array(0.03, F32))
    yield case("Range", vec(0), vec(3), vec(1))
    yield case("Range", vec(0, 1), i32(3), i32(1), error="start must be a scalar, not shape [2]")
    yield case(
        "Range", np.array(-(2**63), np.int64), np.array(2**63 - 1, np.int64), np.array(2**62, np.int64)
    )
    yield case(
        "Range", np.array(-(2**31), np.int32), np.array(2**31 - 1, np.int32), np.array(2**30, np.int32)
    )
    yield case(
        "Range",
        np.array(-(2**63), np.int64),
        np.array(2**63 - 1, np.int64),
        np.array(1, np.int64),
        error="Requires ((limit - start) / delta) <= 9223372036854775807",
    )
    for dt in [F32, np.float64]:
        for a, b, n in [(0, 1, 5), (0, 1, 1), (3, -2, 7), (0, 1, 0), (0, 1, -1), (5, 5, 3), (0, 10, 2)]:
            yield case("LinSpace", np.array(a, dt), np.array(b, dt), i32(n))
            yield case("LinSpace", np.array(a, dt), np.array(b, dt), np.array(n, np.int64))
    yield case("LinSpace", count(1), count(), i32(2), error="start must be a scalar, not shape [1]")
    for ax in [-1, 0, 1, 2]:
        yield case("OneHot", vec(0, 2, -1, 5), i32(3), np.array(F32(5)), np.array(F32(-1)), axis=ax)
        yield case(
            "OneHot", arr([[0, 2], [1, 1]], np.uint8), i32(3), np.array(i32(5)), np.array(i32(-1)), axis=ax
        )
    yield case("OneHot", arr([[0, 2], [1, 1]], np.int64), i32(3), np.array(True), np.array(False), axis=1)
    yield case("OneHot", i32(1), i32(3), np.array(F32(1)), np.array(F32(0)))
    yield case(
        "OneHot",
        vec(1),
        i32(-1),
        np.array(F32(1)),
        np.array(F32(0)),
        error="depth must be non-negative, got: -1",
    )
    yield case("OneHot", vec(1), i32(0), np.array(F32(1)), np.array(F32(0)))
    yield case(
        "OneHot",
        vec(1),
        vec(2),
        np.array(F32(1)),
        np.array(F32(0)),
        error="depth must be a scalar, but got: [1]",
    )
    yield case("OneHot", vec(1), i32(2), count(1), count(), error="on_value must be a scalar, but got: [1]")
    yield case("OneHot", vec(1), i32(2), count(), count(1), error="off_value must be a scalar, but got: [1]")
    yield case("OneHot", vec(1), i32(2), arr("a", object), arr("b", object))
    yield case("OneHot", arr([1, -2], np.int8), i32(2), count(), count())
    yield case("OneHot", NO_INTS, i32(2), count(), count())
    for dt in [F32, np.float64, np.int32, np.int8, np.uint8, np.int64, BF16, np.complex64, np.complex128]:
        yield case("Where", (count(2, 3) % 2).astype(dt))
        yield case("Where", np.array([0.0, -0.0, 1, -1], np.float32).astype(dt))
    yield case("Where", arr([[True, False], [False, True]], bool))
    yield case("Where", np.zeros((0, 3), bool))
    yield case("Where", arr(True, bool), error="WhereOp : Unhandled input dimensions: 0")
    yield case("Where", arr(False, bool), error="WhereOp : Unhandled input dimensions: 0")
    yield case("Where", arr([np.nan, 0, -np.inf], F32))
    yield case("Where", count(2, 3, 4) % 3)
    yield case("Where", np.zeros(5, bool))
    yield case("Where", rng.rand(4, 7, 6) > 0.8)
    for b, p, sh in [
        ([2, 2], [[0, 0], [0, 0]], (1, 4, 4, 1)),
        ([2, 2], [[1, 1], [0, 2]], (1, 4, 4, 2)),
        ([2, 3], [[0, 1], [1, 1]], (1, 3, 4, 2)),
        ([2], [[1, 1]], (2, 4, 3)),
        ([2], [[1, 0]], (2, 4, 3)),
        ([2, 1], [[1, 1], [0, 0]], (2, 4, 3)),
        ([3], [[0, 2]], (1, 1, 2)),
        ([2, 2], [[0, 0]], (1, 4, 4, 1)),
        ([0, 2], [[0, 0], [0, 0]], (1, 4, 4, 1)),
        ([2, 2], [[-1, 1], [0, 0]], (1, 4, 4, 1)),
        ([2, 2, 2], [[0, 0], [0, 0], [0, 0]], (1, 4, 4)),
        ([], np.zeros((0, 2)), (2, 3)),
        ([2], [[5, 5]], (1, 2, 2)),
        ([2], [[0, 0]], (0, 2)),
        ([1, 1], [[1, 1], [0, 0]], (1, 2, 2, 1)),
        ([1, 1], [[0, 0], [0, 0]], (1, 2, 2, 1)),
        ([-2, -2], [[0, 0], [0, 0]], (1, 4, 4, 1)),
        ([2, 2], [[0, 0], [0, 0]], (1, 4)),
        ([4], [[3, 0]], (1, 1, 1)),
        ([2], [[100, 100]], (1, 0)),
    ]:
        yield blocks("SpaceToBatchND", count(*sh), arr(b, np.int32), arr(p, np.int32))
        yield blocks("SpaceToBatchND", count(*sh, dt=np.int64), arr(b, np.int64), arr(p, np.int64))
    for b, p, sh in [
        ([2, 2], [[0, 0], [0, 0]], (4, 2, 2, 1)),
        ([2, 2], [[1, 0], [0, 1]], (8, 2, 2, 3)),
        ([2, 3], [[0, 1], [1, 1]], (6, 3, 4, 2)),
        ([2], [[1, 1]], (4, 4, 3)),
        ([2], [[4, 4]], (4, 4, 3)),
        ([2], [[4, 5]], (4, 4, 3)),
        ([2], [[1, 1]], (3, 4, 3)),
        ([2, 1], [[1, 1], [0, 0]], (2, 4, 3)),
        ([2], [[-1, 1]], (4, 4, 3)),
        ([0], [[0, 0]], (4, 4, 3)),
        ([], np.zeros((0, 2)), (2, 3)),
        ([2, 2], [[0, 0]], (4, 4, 4, 1)),
        ([2], [[3, 0]], (2, 2, 2)),
        ([3], [[0, 4]], (3, 2, 2)),
        ([2], [[0, 0]], (0, 2)),
        ([1], [[1, 1]], (2, 4, 3)),
    ]:
        yield blocks("BatchToSpaceND", count(*sh), arr(b, np.int32), arr(p, np.int32))
        yield blocks("BatchToSpaceND", count(*sh, dt=np.int8), arr(b, np.int64), arr(p, np.int64))
    yield case("SpaceToBatch", count(1, 4, 4, 2), arr([[0, 0], [1, 1]]), block_size=2)
    yield case(
        "SpaceToBatch",
        count(1, 4, 4),
        arr([[0, 0], [1, 1]]),
        block_size=2,
        error="Input rank should be: 4instead of: 3",
    )
    yield case("BatchToSpace", count(4, 2, 2, 1), arr([[0, 0], [1, 1]]), block_size=2)
    yield case(
        "BatchToSpace",
        count(4, 2, 2, 1),
        arr([[0, 0]]),
        block_size=2,
        error="crops should have shape [2, 2] instead of [1,2]",
    )
    yield case(
        "BatchToSpace",
        count(4, 2, 2),
        arr([[0, 0], [1, 1]]),
        block_size=2,
        error="Input rank should be: 4instead of: 3",
    )
    for fmt in ["NHWC"]:
        for sh in [
            (1, 4, 6, 2),
            (1, 2, 2, 4),
            (1, 2, 4, 8),
            (2, 2, 4, 4),
            (1, 3, 4, 4),
            (0, 4, 4, 4),
            (1, 4, 2),
        ]:
            yield case("SpaceToDepth", count(*sh), block_size=2, data_format=fmt)
            yield case("DepthToSpace", count(*sh), block_size=2, data_format=fmt)
            yield case("DepthToSpace", count(*sh, dt=np.uint8), block_size=2, data_format=fmt)
    yield case("DepthToSpace", count(1, 2, 2, 9), block_size=3)
    yield case("SpaceToDepth", count(1, 6, 6, 2), block_size=3)
    yield from more(r)
