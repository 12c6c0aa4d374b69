"""Gather, scatter, tile, broadcast, fill, pad."""

from op_cases import *
from op_cases.movement import BF16, F32, HALF, NO_INTS, arr, count, vec, vec64, words

rng = np.random.RandomState(3)


def more(r):
    for t in ["float", "double", "half", "bfloat16", "int8", "uint16", "int64", "complex128", "bool", "string"]:
        yield case("Gather", r.numbers(t, (3, 2)), arr([[2, 0], [1, 1]]), name=t)

        def reading(op, t=t):
            h = tf.raw_ops.VarHandleOp(dtype=tf.as_dtype(t), shape=None, shared_name="v")
            index = tf.int64 if t == "double" else tf.int32
            x, i = tf.compat.v1.placeholder(tf.as_dtype(t), None), tf.compat.v1.placeholder(index, None)
            shape = tf.raw_ops.VariableShape(input=h)
            out = getattr(tf.raw_ops, op)(resource=h, indices=i, dtype=tf.as_dtype(t))
            one, two = {i: arr([[2, 0], [1, 1]])}, {i: np.zeros((0, 2), np.int32)}
            return [Step(run=[tf.raw_ops.AssignVariableOp(resource=h, value=x)], feed={x: r.numbers(t, (3, 2))}),
                    Step(fetch=[out, shape], feed=one), Step(fetch=[out], feed=two),
                    Step(fetch=[out], feed={i: arr([[3, 0]])}, error=""), Step(fetch=[out], feed={i: arr([[-1, 0]])}, error="")]

        for op in ("ResourceGather", "ResourceGatherNd"):
            yield graph_case(op, lambda op=op, f=reading: f(op), name=t)
    yield case("Gather", count(0, 2), NO_INTS, name="empty")
    yield case("Gather", count(0, 2), vec(0), name="empty", error="indices[0] = 0 is not in [0, 0)")
    for t in ["float", "half", "int64", "bool", "string"]:
        yield case("StridedSliceGrad", vec(4, 3), vec(1, 0), vec(3, 3), vec(1, 2), r.numbers(t, (2, 2)), name=t)
    yield case("StridedSliceGrad", vec(4), vec(0), vec(0), vec(1), r.normal((0,)), name="empty")


def cases(r):
    yield case("GatherV2", count(4, 3), vec(0, 2), i32(0))
    yield case("GatherV2", count(4, 3), vec(0, 2), i32(1))
    yield case("GatherV2", count(4, 3), vec(0, 2), i32(-1))
    yield case("GatherV2", count(4, 3), i32(2), i32(0))
    yield case(
        "GatherV2", count(4, 3), arr([[0, 1], [3, 2]]), i32(1), error="indices[1,0] = 3 is not in [0, 3)"
    )
    yield case("GatherV2", count(4, 3), arr([[0, 1], [3, 2]], np.int64), i32(0))
    yield case("GatherV2", count(4, 3), vec(4), i32(0), error="indices[0] = 4 is not in [0, 4)")
    yield case("GatherV2", count(4, 3), vec(-1), i32(0), error="indices[0] = -1 is not in [0, 4)")
    yield case(
        "GatherV2", count(4, 3), arr([[0, 1], [5, 2]]), i32(0), error="indices[1,0] = 5 is not in [0, 4)"
    )
    yield case("GatherV2", count(4, 3), i32(7), i32(0), error="indices = 7 is not in [0, 4)")
    yield case("GatherV2", count(), i32(0), i32(0), error="params must be at least 1 dimensional")
    yield case("GatherV2", count(3), i32(0), vec(0), error="axis must be scalar")
    yield case("GatherV2", count(4, 3), vec(0), i32(2), error="Shape must be at least rank 3 but is rank 2")
    yield case("GatherV2", count(4, 3), vec(0), i32(-3), error="Shape must be at least rank 3 but is rank 2")
    yield case("GatherV2", count(4, 0), vec(7), i32(0))
    yield case("GatherV2", count(0, 3), vec(0), i32(0), error="indices[0] = 0 is not in [0, 0)")
    yield case("GatherV2", count(0, 3), NO_INTS, i32(0))
    yield case("GatherV2", words(3), vec(2, 0, 2), i32(0))
    yield case("GatherV2", count(4, 3), arr([1, 2], np.int16), i32(0))
    yield case(
        "GatherV2",
        count(3, 2, 2, dt=np.complex128),
        vec(2, 0),
        i32(1),
        error="indices[0] = 2 is not in [0, 2)",
    )
    yield case("GatherV2", count(3, 2, 2, dt=np.complex128), vec(1, 0), i32(1))
    yield case("GatherV2", count(3, 2, 2, dt=np.uint8), vec(1, 0), i32(2))
    yield case("GatherV2", count(3, 2, 2, dt=BF16), vec(1, 0), i32(0))
    yield case("GatherV2", count(2, 4, 3), arr([[0, 1], [3, 2]]), i32(1), batch_dims=1)
    yield case("GatherV2", count(2, 4, 3), arr([[0, 1], [2, 2]]), i32(2), batch_dims=1)
    yield case(
        "GatherV2",
        count(2, 4, 3),
        arr([[0, 1], [2, 2]]),
        i32(0),
        batch_dims=1,
        error="batch_dims (1) must be less than or equal to axis (0).",
    )
    yield case("GatherV2", count(2, 2, 3), arr([[0, 1], [2, 2]]), i32(2), batch_dims=2)
    yield case(
        "GatherV2",
        count(2, 2, 3),
        arr([[0, 1], [2, 2]]),
        i32(1),
        batch_dims=2,
        error="batch_dims (2) must be less than or equal to axis (1).",
    )
    yield case("GatherV2", count(2, 2, 3), arr([[0, 1], [2, 2]]), i32(2), batch_dims=-1)
    yield case(
        "GatherV2",
        count(2, 2, 3),
        arr([[0, 1], [2, 2]]),
        i32(2),
        batch_dims=3,
        error="Expected batch_dims in the range [-2, 2], but got 3",
    )
    yield case(
        "GatherV2",
        count(2, 2, 3),
        arr([[0, 1]]),
        i32(1),
        batch_dims=1,
        error="params.shape[0]: 2 should be equal to indices.shape[0]: 1",
    )
    yield case(
        "GatherV2",
        count(2, 2),
        arr([[0, 1], [0, 0]]),
        i32(1),
        batch_dims=2,
        error="batch_dims (2) must be less than rank(params) (2).",
    )
    yield case(
        "GatherV2",
        count(2, 4, 3),
        arr([[0, 1], [3, 4]]),
        i32(1),
        batch_dims=1,
        error="indices[1,1] = 4 is not in [0, 4)",
    )
    yield case("GatherV2", count(2, 4), vec(1, 3), i32(1), batch_dims=1)
    yield case("GatherV2", count(20, 9), rng.randint(0, 20, (5, 4)).astype(np.int32), i32(0))
    yield case("GatherV2", count(3, 9, 7), rng.randint(0, 9, (3, 4)).astype(np.int64), i32(1), batch_dims=1)
    yield case("Gather", count(4, 3), vec(0, 2))
    yield case("Gather", count(4, 3), vec64(0, 4), error="indices[1] = 4 is not in [0, 4)")
    yield case("Gather", count(), vec(0), error="params must be at least 1 dimensional")
    for op in ["GatherNd"]:
        yield case(op, count(4, 3), arr([[0, 1], [2, 2]]))
        yield case(op, count(4, 3), arr([[0], [2]]))
        yield case(op, count(4, 3), vec(1, 2))
        yield case(op, count(4, 3), vec(1))
        yield case(
            op, count(4, 3), arr([[0, 3]]), error="indices[0] = [0, 3] does not index into param shape [4,3]"
        )
        yield case(
            op,
            count(4, 3),
            arr([[[0], [-1]]]),
            error="indices[0,1] = [-1] does not index into param shape [4,3]",
        )
        yield case(
            op,
            count(4, 3),
            arr([[0, 1, 2]]),
            error="index innermost dimension length must be <= params rank; saw: 3 vs. 2",
        )
        yield case(op, count(), vec(0), error="params must be at least a vector")
        yield case(op, count(3), i32(0), error="indices must be at least a vector")
        yield case(op, count(4, 3), np.zeros((2, 0), np.int32))
        yield case(
            op,
            count(0, 3),
            arr([[0]]),
            error="Requested more than 0 entries, but params is empty.  Params shape: [0,3]",
        )
        yield case(op, count(0, 3), np.zeros((0, 1), np.int32))
        yield case(op, words(2, 2), arr([[1, 0]], np.int64))
        yield case(op, count(4, 3), arr([[0], [2]], np.int16))
        yield case(op, count(2, 3, 4), arr([[0, 1], [1, 2]]))
        yield case(
            op,
            count(4, 0),
            arr([[0], [2]]),
            error="Requested more than 0 entries, but params is empty.  Params shape: [4,0]",
        )
        yield case(
            op,
            count(4, 0),
            arr([[0], [7]]),
            error="Requested more than 0 entries, but params is empty.  Params shape: [4,0]",
        )
        yield case(op, count(4, 3), arr([[0, 1], [2, 5]]), bad_indices_policy="IGNORE")
        yield case(op, count(4, 3), arr([[0], [5]]), bad_indices_policy="IGNORE")
        yield case(
            op,
            count(4, 3),
            arr([[0], [5]]),
            bad_indices_policy="ERROR",
            error="indices[1] = [5] does not index into param shape [4,3]",
        )
    yield case("ScatterNd", arr([[0], [2], [0]]), count(3), vec(4))
    yield case("ScatterNd", arr([[0], [2]]), count(2, 3), vec(4, 3))
    yield case("ScatterNd", arr([[0, 1], [2, 2]]), count(2), vec(4, 3))
    yield case(
        "ScatterNd", arr([[0], [4]]), count(2), vec(4), error="indices[1] = [4] does not index into shape [4]"
    )
    yield case(
        "ScatterNd",
        arr([[0], [-1]]),
        count(2),
        vec(4),
        error="indices[1] = [-1] does not index into shape [4]",
    )
    yield case(
        "ScatterNd",
        arr([[0], [1]]),
        count(3),
        vec(4),
        error="Dimensions [0,1) of indices[shape=[2,1]] must match dimensions [0,1) of",
    )
    yield case(
        "ScatterNd",
        arr([[0], [1]]),
        count(2, 2),
        vec(4, 3),
        error="Dimensions [1,2) of input[shape=[4,3]] must match dimensions [1,2) of",
    )
    yield case(
        "ScatterNd",
        arr([[0], [1]]),
        count(2),
        vec(0),
        error="Indices and updates specified for empty output.  indices shape: [2,1]",
    )
    yield case("ScatterNd", np.zeros((0, 1), np.int32), count(0), vec(0))
    yield case("ScatterNd", np.zeros((0, 1), np.int32), count(0), vec(3))
    yield case(
        "ScatterNd", vec(0), count(), vec(3), error="Updates shape must have rank at least one. Found:[]"
    )
    yield case(
        "ScatterNd", i32(0), count(1), vec(3), error="Indices shape must have rank at least one. Found:[]"
    )
    yield case("ScatterNd", arr([[0]]), count(1), i32(3), error="Shape must be a vector")
    yield case("ScatterNd", arr([[0]]), count(1), vec(-3), error="Dimension -3 must be >= 0")
    yield case("ScatterNd", arr([[0], [0]]), words(2), vec(2))
    yield case(
        "ScatterNd",
        arr([[0, 0, 0]]),
        count(1),
        vec(2, 2),
        error="Dimensions [3,2) of input[shape=[2,2]] must match dimensions [1,1) of",
    )
    yield case("ScatterNd", arr([[1], [1]], np.int64), arr([True, False], bool), vec64(3))
    yield case("ScatterNd", arr([[0], [5]]), count(2), vec(4), bad_indices_policy="IGNORE")
    yield case(
        "ScatterNd",
        arr([[0], [5]]),
        count(2),
        vec(4),
        bad_indices_policy="BAD",
        error="Unknown bad indices handling attribute: BAD",
    )
    yield case(
        "ScatterNd",
        np.zeros((2, 0), np.int32),
        count(2, 3),
        vec(3),
        error="Indices and updates specified for empty output shape",
    )
    yield case("ScatterNd", arr([[1], [1]]), count(2, dt=np.complex64), vec(3))
    yield case("ScatterNd", arr([[1], [1]]), count(2, dt=HALF), vec(3))
    yield case("ScatterNd", arr([[1], [1]]), arr([100, 100], np.int8), vec(3))
    for op in [
        "TensorScatterUpdate",
        "TensorScatterAdd",
        "TensorScatterSub",
        "TensorScatterMin",
        "TensorScatterMax",
        "ScatterNdNonAliasingAdd",
    ]:
        for dt in [F32, np.int32, HALF, BF16, np.uint8]:
            yield case(op, count(4, 3, dt=dt), arr([[0], [2], [2]]), (count(3, 3, dt=dt) + 1).astype(dt))
        yield case(
            op, count(4), arr([[0], [4]]), count(2), error="indices[1] = [4] does not index into shape [4]"
        )
        yield case(op, count(4), arr([[0], [1]]), count(3), error="")
        yield case(op, count(4, 3), arr([[0], [1]]), count(2, 2), error="")
        yield case(op, count(), arr([[0]]), count(1), error="")
        if op[0] == "T":
            yield case(
                op, count(4), vec(0), count(), error="Updates shape must have rank at least one. Found:[]"
            )
        if op[0] == "T":
            yield case(
                op, count(4), i32(0), count(1), error="Indices shape must have rank at least one. Found:[]"
            )
        yield case(
            op, count(0, 3), arr([[0]]), count(1, 3), error="Indices and updates specified for empty output"
        )
        yield case(op, count(4), np.zeros((0, 1), np.int32), count(0))
        yield case(op, count(2, 2), arr([[0, 0, 0]]), count(1), error="")
        yield case(op, count(2, 2), arr([[0, 1], [1, 1]], np.int64), count(2))
        yield case(op, arr([np.nan, 1], F32), arr([[0], [1]]), arr([1, np.nan], F32))
        yield case(op, count(4), arr([[0], [5]]), count(2), bad_indices_policy="IGNORE")
    yield case("TensorScatterUpdate", words(3), arr([[1]]), arr(["x"], object))
    yield case(
        "TensorScatterUpdate", count(2, 3, dt=np.complex128), arr([[1]]), count(1, 3, dt=np.complex128)
    )
    yield case("TensorScatterUpdate", arr([True, False], bool), arr([[1]]), arr([True], bool))
    for m in [(2, 1), (1, 2), (2, 3), (0, 2), (1, 1), (-1, 2), (2,), (2, 2, 2)]:
        yield case("Tile", count(2, 3), vec(*m))
        yield case("Tile", count(2, 3, dt=np.int8), vec64(*m))
    yield case("Tile", count(2, 3), i32(2), error="Expected multiples to be 1-D, but got shape []")
    yield case("Tile", count(), NO_INTS)
    yield case("Tile", count(5, 1), vec(1, 40))
    yield case("Tile", count(1, 5), vec(40, 1))
    yield case("Tile", words(2), vec(2))
    yield case("Tile", count(2, 1, 3), vec(1, 4, 1))
    yield case(
        "Tile",
        count(2, 3),
        vec64(1 << 40, 1 << 40),
        error="Encountered overflow when multiplying 2199023255552 with 3298534883328, result:",
    )
    yield case(
        "Tile",
        count(2, 3),
        np.array([[1, 2]], np.int32),
        error="Expected multiples to be 1-D, but got shape [1,2]",
    )
    yield case("Tile", count(0, 3), vec(2, 2))
    yield case("Tile", count(2, 2, 1, 2, 2), vec(1, 2, 1, 2, 2))
    for a, b in [
        ((1, 3), (2, 3)),
        ((3,), (2, 3)),
        ((2, 1), (2, 3)),
        ((), (2, 2)),
        ((2, 3), (2, 3)),
        ((2, 3), (3,)),
        ((2,), (3,)),
        ((1,), (0,)),
        ((0,), (0,)),
        ((2,), (0,)),
        ((1, 1), (3,)),
        ((2, 1, 3), (2, 4, 3)),
        ((1, 3, 1), (2, 3, 4)),
        ((), ()),
        ((0, 1), (0, 5)),
        ((1,), (-1,)),
    ]:
        yield case("BroadcastTo", count(*a), arr(b).reshape(-1))
        yield case("BroadcastTo", count(*a, dt=np.uint8), arr(b, np.int64).reshape(-1))
    yield case("BroadcastTo", count(2), i32(2), error="shape must be a vector of {int32,int64}, got shape []")
    yield case("BroadcastTo", count(1), i32(4), error="shape must be a vector of {int32,int64}, got shape []")
    yield case("BroadcastTo", words(1, 2), vec(2, 2))
    yield case("BroadcastTo", count(1, 13), vec(14, 13))
    yield case("BroadcastTo", count(14, 1), vec(14, 13))
    yield case(
        "BroadcastTo",
        count(1),
        np.array([[1]], np.int32),
        error="shape must be a vector of {int32,int64}, got shape [1,1]",
    )
    yield case(
        "BroadcastTo",
        count(2),
        NO_INTS,
        error="Rank of input (1) must be no greater than rank of output shape (0).",
    )
    for v in [F32(3), np.float64(3), i32(4), np.uint8(3), np.complex128(1 + 2j), BF16(2), np.bool_(True)]:
        yield case("Fill", vec(2, 3), np.array(v))
    yield case("Fill", vec64(2), arr(["x"], object)[0:1].reshape(()))
    yield case("Fill", vec(-1), count(), error="Dimension -1 must be >= 0")
    yield case("Fill", i32(3), count())
    yield case("Fill", NO_INTS, count())
    yield case("Fill", vec(2), count(1))
    yield case("Fill", vec(2), count(2), error="value must represent a scalar, got shape [2]")
    yield case("Fill", vec(0, 3), count())
    yield case(
        "Fill", np.array([[2]], np.int32), count(), error="dims must represent a vector, got shape [1,1]"
    )
    yield case(
        "Fill",
        vec64(1 << 40, 1 << 40),
        count(),
        error="Shape [1099511627776,1099511627776] would have more than 2**63 - 1 elements",
    )
    yield case("Fill", vec(3, -2), count(), error="Dimension -2 must be >= 0")
    yield case("Empty", vec(2, 3), dtype=F32, init=True)
    yield case("Empty", i32(2), dtype=F32, init=True, error="shape must be a vector of int32, got shape []")
    yield case("Empty", vec(-2), dtype=F32, init=True, error="Dimension -2 must be >= 0")
    yield case("DeepCopy", count(2))
    for p in [
        [[1, 2], [0, 0]],
        [[0, 0], [1, 1]],
        [[1, 0], [0, 2]],
        [[0, 0], [0, 0]],
        [[-1, 0], [0, 0]],
        [[1, 1]],
        [[1, 1, 1], [1, 1, 1]],
    ]:
        for dt in [F32, np.uint8, np.complex128, BF16]:
            yield case("Pad", count(2, 3, dt=dt), arr(p))
        yield case("PadV2", count(2, 3), arr(p), np.array(F32(7)))
        yield case("PadV2", count(2, 3), arr(p, np.int64), np.array(F32(7)))
        for mode in ["REFLECT", "SYMMETRIC"]:
            yield case("MirrorPad", count(2, 3), arr(p), mode=mode)
            yield case("MirrorPad", count(3, 3, dt=np.int16), arr(p, np.int64), mode=mode)
            yield case("MirrorPadGrad", count(4, 7), arr(p), mode=mode)
    yield case(
        "PadV2", count(2), arr([[1, 1]]), count(1), error="constant_values must be a scalar. Found: [1]"
    )
    yield case("PadV2", words(2), arr([[1, 1]]), arr("q", object))
    yield case("Pad", words(2), arr([[1, 1]]))
    yield case("Pad", count(0, 2), arr([[1, 1], [0, 1]]))
    yield case("Pad", count(2), vec(1, 1), error="paddings must be a matrix with 2 columns: [2]")
    yield case("Pad", count(), np.zeros((0, 2), np.int32))
    yield case("Pad", count(1, 2, 1, 1, 1, 2), arr([[0, 1]] * 5 + [[1, 0]]))
    yield case(
        "Pad",
        count(),
        arr([[1, 1]]),
        error="The first dimension of paddings must be the rank of inputs[1,2] []",
    )
    yield case(
        "MirrorPad",
        count(2, 3),
        arr([[2, 0], [0, 0]]),
        mode="REFLECT",
        error="paddings must be less than the dimension size: 2, 0 not less than 2",
    )
    yield case("MirrorPad", count(2, 3), arr([[2, 2], [3, 3]]), mode="SYMMETRIC")
    yield case(
        "MirrorPad",
        count(2, 3),
        arr([[3, 2], [3, 3]]),
        mode="SYMMETRIC",
        error="paddings must be no greater than the dimension size: 3, 2 greater than 2",
    )
    yield case("MirrorPad", count(3, 2, 3), arr([[2, 2], [1, 1], [2, 1]]), mode="REFLECT")
    yield case(
        "MirrorPad",
        count(1, 1, 1, 1, 1, 1),
        arr([[0, 0]] * 6),
        mode="REFLECT",
        error="inputs rank not in [0,5]: 6",
    )
    yield case("MirrorPad", words(3), arr([[1, 2]]), mode="REFLECT")
    yield case("MirrorPad", count(0), arr([[0, 0]]), mode="SYMMETRIC")
    yield case(
        "MirrorPad",
        count(0),
        arr([[0, 0]]),
        mode="REFLECT",
        error="paddings must be less than the dimension size: 0, 0 not less than 0",
    )
    yield case(
        "MirrorPad", count(3), arr([[0, -1]]), mode="REFLECT", error="paddings must be non-negative: 0 -1"
    )
    yield case("MirrorPad", count(), np.zeros((0, 2), np.int32), mode="REFLECT")
    yield case("MirrorPadGrad", count(5, 6), arr([[1, 1], [1, 2]]), mode="REFLECT")
    yield case("MirrorPadGrad", count(6, 6), arr([[2, 2], [1, 2]]), mode="SYMMETRIC")
    yield case(
        "MirrorPadGrad",
        count(6, 6),
        arr([[3, 2], [1, 2]]),
        mode="SYMMETRIC",
        error="paddings must be no greater than the output dimension size: 3, 2 greater than 1",
    )
    yield case(
        "MirrorPadGrad",
        count(6),
        arr([[4, 3]]),
        mode="SYMMETRIC",
        error="Total paddings must be less than the input dimension size: 7 was not less than 6",
    )

    def variable(value):
        shape = value.shape
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name="v", name="v")
        return handle, tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(value), name="init")

    def reads(op, value, error=None, **attrs):
        def build():
            handle, init = variable(value)
            out = getattr(tf.raw_ops, op)(resource=handle, dtype=tf.float32, **attrs)
            return [Step(run=[init]), Step(fetch=[out], error=error)]

        return graph_case(op, build)

    yield reads("ResourceGather", count(4, 3), indices=vec(0, 2))
    yield reads("ResourceGather", count(4, 3), indices=vec(0, 4), error="indices[1] = 4 is not in [0, 4)")
    yield reads("ResourceGather", count(2, 4, 3), indices=arr([[0, 1], [3, 2]]), batch_dims=1)
    yield reads("ResourceGatherNd", count(4, 3), indices=arr([[0, 1], [2, 2]]))
    yield reads("ResourceGatherNd", count(4, 3), indices=arr([[0, 1], [2, 3]]), error="does not index into")

    def variable_shape(out_type):
        def build():
            handle, init = variable(count(2, 3))
            return [Step(run=[init]), Step(fetch=[tf.raw_ops.VariableShape(input=handle, out_type=out_type)])]

        return graph_case("VariableShape", build)

    yield variable_shape(tf.int32)
    yield variable_shape(tf.int64)
    yield from more(r)
