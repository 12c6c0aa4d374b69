"""Ragged tensors."""

from op_cases import *
from op_cases.movement import BF16, F32, HALF, NO_INTS, arr, count, vec, vec64, words

TYPES = [F32, np.float64, np.int32, np.int64, np.uint8, np.int8, np.complex64, HALF, BF16]


def to_tensor(shape, values, default, *partitions, types, error=None):
    return case(
        "RaggedTensorToTensor",
        shape,
        values,
        default,
        list(partitions),
        row_partition_types=types,
        error=error,
    )


def splits_case(shape, values, default, *splits, error=None):
    return to_tensor(shape, values, default, *splits, types=["ROW_SPLITS"] * len(splits), error=error)


def ids_case(shape, values, default, first, *ids, error=None):
    types = ["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * len(ids)
    return to_tensor(shape, values, default, first, *ids, types=types, error=error)


def to_tensor_cases():
    zero = np.array(-1, F32)
    for dt in TYPES:
        yield splits_case(i64(-1), count(5, dt=dt), np.array(7).astype(dt), vec64(0, 2, 2, 5))
    yield splits_case(i64(-1), words(4), np.array(b"-", object), vec(0, 3, 4))
    yield ids_case(i64(-1), words(4), np.array(b"-", object), i32(4), vec(0, 0, 2, 3))
    yield ids_case(vec(-1, -1), count(4), zero, i64(4), vec64(0, 0, 2, 3))
    yield ids_case(vec(2, 1), count(4), zero, i64(4), vec64(0, 0, 2, 3))
    yield ids_case(vec(6, 3), count(4), zero, i64(4), vec64(0, 0, 2, 3))
    yield splits_case(vec64(2, 3), count(5), zero, vec64(0, 2, 2, 5))
    yield splits_case(vec64(4, 1), count(5), zero, vec64(0, 2, 2, 5))
    yield splits_case(vec64(0, 3), count(5), zero, vec64(0, 2, 2, 5))
    yield splits_case(vec64(-1, 0), count(5), zero, vec64(0, 2, 2, 5))
    yield splits_case(vec64(-1, -1, -1), count(5), zero, vec64(0, 2, 2, 3), vec64(0, 1, 4, 5))
    yield splits_case(vec64(3, 1, 2), count(5), zero, vec64(0, 2, 2, 3), vec64(0, 1, 4, 5))
    yield splits_case(vec64(3, 3, 5), count(5), zero, vec64(0, 2, 2, 3), vec64(0, 1, 4, 5))
    yield ids_case(vec64(-1, -1, -1), count(5), zero, i64(3), vec64(0, 0, 2), vec64(0, 1, 1, 1, 2))
    yield ids_case(vec64(2, -1, 2), count(5), zero, i64(3), vec64(0, 0, 2), vec64(0, 1, 1, 1, 2))
    yield splits_case(i64(-1), count(5, 2), zero, vec64(0, 2, 2, 5))
    yield splits_case(i64(-1), count(5, 2), arr([-1, -2], F32), vec64(0, 2, 2, 5))
    yield splits_case(i64(-1), count(5, 2, 3), arr([[-1], [-2]], F32), vec64(0, 2, 2, 5))
    yield splits_case(
        vec64(-1, -1, 2, -1),
        count(5, 2, 3),
        arr([-1, -2, -3], F32),
        vec64(0, 2, 2, 5),
        error="default_value.shape=[3] and rt_input.flat_values.shape=[5,2,3] are",
    )
    yield splits_case(
        i64(-1),
        count(5, 2, 3),
        arr([-1, -2], F32),
        vec64(0, 2, 2, 5),
        error="Error broadcasting default_value",
    )
    yield splits_case(i64(-1), count(5, 2, 2), arr([-1, -2], F32), vec64(0, 2, 2, 5))
    yield splits_case(i64(-1), count(0), zero, vec64(0))
    yield splits_case(i64(-1), count(0), zero, vec64(0, 0, 0))
    yield splits_case(vec64(3, 2), count(0), zero, vec64(0, 0, 0))
    yield splits_case(vec64(3, 2), count(0), zero, vec64(0))
    yield ids_case(vec64(3, 2), count(0), zero, i64(0), np.zeros(0, np.int64))
    yield ids_case(i64(-1), count(0), zero, i64(2), np.zeros(0, np.int64))
    yield splits_case(i64(-1), count(5, 0), zero, vec64(0, 2, 2, 5))
    yield to_tensor(
        i64(-1), count(5), zero, vec64(0, 2, 2, 3), vec64(0, 1, 1, 1, 2), types=["ROW_SPLITS", "VALUE_ROWIDS"]
    )
    yield splits_case(
        vec64(-1, -1, -1),
        count(5),
        zero,
        vec64(0, 2, 2, 5),
        error="rt_input.shape and shape=[?,?,?] are incompatible: rt_input.rank = 2",
    )
    yield splits_case(
        vec64(-1, -1, 3),
        count(5, 2),
        zero,
        vec64(0, 2, 2, 5),
        error="rt_input.shape and shape=[?,?,3] are incompatible: rt_input.shape[2] =",
    )
    yield splits_case(
        i64(-1),
        count(5),
        arr([1], F32),
        vec64(0, 2, 2, 5),
        error="default_value.shape=[1] and rt_input.flat_values.shape=[5] are",
    )
    yield splits_case(
        i64(-1),
        count(5, 2),
        arr([1, 2, 3], F32),
        vec64(0, 2, 2, 5),
        error="default_value.shape=[3] and rt_input.flat_values.shape=[5,2] are",
    )
    yield splits_case(
        i64(3),
        count(5),
        zero,
        vec64(0, 2, 2, 5),
        error="The only valid scalar shape tensor is the fully unknown shape specified",
    )
    yield splits_case(vec64(-1, -3), count(5), zero, vec64(0, 2, 2, 5), error="Dimension -3 must be >= -1")
    yield splits_case(
        arr([[1, 2]], np.int64),
        count(5),
        zero,
        vec64(0, 2, 2, 5),
        error="Shape must be at most rank 1 but is rank 2",
    )
    yield splits_case(i64(-1), count(5), zero, vec64(0, 2, 1, 5), error="Invalid row split size.")
    yield ids_case(
        vec64(2, 2),
        count(4),
        zero,
        i64(2),
        vec64(0, 0, 2, 3),
        error="Got next_value_rowid=2 which is not less than 2",
    )
    yield ids_case(
        vec64(2, 2),
        count(4),
        zero,
        i64(2),
        vec64(7, 0, 2, 3),
        error="Got current_value_rowid=7 which is not less than 2",
    )
    yield splits_case(
        vec64(1 << 40, 1 << 40),
        count(5),
        zero,
        vec64(0, 2, 2, 5),
        error="Shape [1099511627776,1099511627776] would have more than 2**63 - 1",
    )


def gather(splits, values, indices, out, error=None):
    return case("RaggedGather", list(splits), values, indices, OUTPUT_RAGGED_RANK=out, error=error)


def gather_cases():
    for dt in TYPES:
        yield gather([vec64(0, 2, 2, 5)], count(5, dt=dt), vec(2, 0), 1)
    yield gather([vec(0, 2, 2, 5)], words(5), vec64(2, 0, 1, 2), 1)
    yield gather([vec(0, 2, 2, 5)], count(5, 2), i64(2), 0)
    yield gather([vec(0, 2, 2, 5)], count(5), arr([[2, 0], [1, 1]]), 2)
    yield gather([vec(0, 2, 2, 5)], count(5), arr([[[2, 0]], [[1, 1]]]), 3)
    yield gather([vec64(0, 2, 2, 3), vec64(0, 1, 4, 5)], count(5), vec(0, 2, 0), 2)
    yield gather([vec64(0, 2, 2, 3), vec64(0, 1, 4, 5)], count(5), i32(0), 1)
    yield gather([vec64(0, 2, 2, 3), vec64(0, 1, 4, 5)], count(5), arr([[0, 2]]), 3)
    yield gather([vec64(0, 2, 2, 5)], count(5), NO_INTS, 1)
    yield gather([vec64(0, 2, 2, 5)], count(5), np.zeros((0, 3), np.int32), 2)
    yield gather([vec64(0, 2, 2, 5)], count(5), np.zeros((3, 0), np.int32), 2)
    yield gather([vec64(0, 2, 2, 5)], count(5, 0), vec(1, 2), 1)
    yield gather([vec64(1, 2, 2, 4)], count(5), vec(1, 2, 0), 1)
    yield gather([vec64(0, 2, 2, 5)], count(5), vec(3), 1, error="indices[0] = 3 is not in [0, 3)")
    yield gather(
        [vec64(0, 2, 2, 5)], count(5), arr([[0, 1], [-1, 1]]), 2, error="indices[1,0] = -1 is not in [0, 3)"
    )
    yield gather([np.array(1, np.int64)], count(5), vec(0), 1, error="Split tensors must not be scalars")
    yield gather([vec64(0, 2, 2, 5)], count(), vec(0), 1, error="params.rank must be nonzero")
    yield gather([vec64(0, 2, 2, 6)], count(5), vec(0), 1, error="Ragged splits must not point past values")
    yield gather([vec64(0, 3, 2, 5)], count(5), vec(0), 1, error="Ragged splits must be sorted")
    yield gather([vec64(-1, 2, 2, 5)], count(5), vec(0), 1, error="Ragged splits must be non-negative")
    yield gather(
        [vec64(0, 1), np.zeros(0, np.int64)],
        count(5),
        vec(0),
        2,
        error="Ragged splits must not point past values",
    )
    yield gather([np.zeros(0, np.int64)], count(5), NO_INTS, 1, error="Ragged splits may not be empty")
    yield gather([np.zeros(0, np.int64)], count(5), vec(0), 1, error="indices[0] = 0 is not in [0, -1)")
    yield gather(
        [vec64(0, 9), vec64(0, 2)], count(5), vec(0), 2, error="Ragged splits must not point past values"
    )


def range_cases():
    for dt in [np.int32, np.int64, F32, np.float64]:
        for tsplits in [tf.int32, tf.int64]:
            a, b, c = arr([0, 5, 8], dt), arr([3, 5, 0], dt), arr([1, 1, -3], dt)
            yield case("RaggedRange", a, b, c, Tsplits=tsplits)
        yield case("RaggedRange", np.array(1, dt), arr([3, 5, 0], dt), np.array(2, dt))
        yield case("RaggedRange", np.array(1, dt), np.array(7, dt), np.array(2, dt))
        yield case("RaggedRange", np.array(1, dt), np.array(7, dt), arr([2, 3, 7], dt))
        yield case("RaggedRange", arr([], dt), arr([], dt), np.array(1, dt))
        yield case("RaggedRange", arr([1], dt), arr([2], dt), np.array(0, dt), error="Requires delta != 0")
        yield case(
            "RaggedRange",
            arr([1, 2], dt),
            arr([2], dt),
            np.array(1, dt),
            error="starts, limits, and deltas must have the same shape",
        )
        yield case(
            "RaggedRange",
            arr([[1]], dt),
            arr([2], dt),
            np.array(1, dt),
            error="starts must be a scalar or vector",
        )
        yield case(
            "RaggedRange",
            arr([1], dt),
            arr([[2]], dt),
            np.array(1, dt),
            error="limits must be a scalar or vector",
        )
        yield case(
            "RaggedRange",
            arr([1], dt),
            arr([2], dt),
            arr([[1]], dt),
            error="deltas must be a scalar or vector",
        )
        yield case("RaggedRange", np.array(5, dt), arr([3, 5, 0], dt), np.array(2, dt))
    yield case("RaggedRange", np.array(0, F32), np.array(1, F32), np.array(0.3, F32))
    yield case(
        "RaggedRange",
        np.array(0, F32),
        np.array(1e30, F32),
        np.array(1, F32),
        error="Requires ((limit - start) / delta) <= 9223372036854775807",
    )
    yield case(
        "RaggedRange",
        np.array(0, F32),
        np.array(1e10, F32),
        np.array(1, F32),
        Tsplits=tf.int32,
        error="Requires ((limit - start) / delta) <= 2147483647",
    )
    yield case(
        "RaggedRange",
        i64(0),
        i64(1 << 40),
        i64(1),
        Tsplits=tf.int32,
        error="Requires ((limit - start) / delta) <= 2147483647",
    )
    yield case("RaggedRange", i32(2147483640), i32(2147483647), i32(5))
    yield case("RaggedRange", i32(-2147483640), i32(-2147483648), i32(-5))


def sparse(splits, values, error=None):
    return case("RaggedTensorToSparse", list(splits), values, error=error)


def sparse_cases():
    for dt in TYPES:
        yield sparse([vec64(0, 2, 2, 5)], count(5, dt=dt))
    yield sparse([vec(0, 2, 2, 5)], words(5))
    yield sparse([vec(0, 2, 2, 3)], count(3, 2))
    yield sparse([vec(0, 2, 2, 3)], count(3, 2, 2))
    yield sparse([vec(0, 2, 2, 3), vec(0, 1, 4, 5)], count(5))
    yield sparse([vec(0, 2, 2, 3), vec(0, 1, 4, 5)], count(5, 2))
    yield sparse([vec64(0, 1, 1, 3), vec64(0, 2, 2, 3), vec64(0, 1, 4, 5)], count(5))
    yield sparse([vec(0)], count(0))
    yield sparse([vec(0, 0, 0)], count(0, 3))
    yield sparse([vec(0, 2, 2, 3)], count(3, 0))
    yield sparse(
        [vec64(0, 2, 2, 4)],
        count(5),
        error="Final value of ragged splits must match the length the corresponding",
    )
    yield sparse([vec64(1, 2, 2, 5)], count(5), error="First value of ragged splits must be 0.")
    yield sparse(
        [vec64(0, 3, 2, 5)],
        count(5),
        error="Ragged splits should be non decreasing, but we got 3 followed by 2",
    )
    yield sparse([np.zeros(0, np.int64)], count(0), error="ragged splits may not be empty.")
    yield sparse(
        [vec(0, 2, 2, 4), vec(0, 1, 4, 5)],
        count(5),
        error="Final value of ragged splits must match the length the corresponding",
    )
    yield sparse(
        [vec(0, 2, 2, 3), vec(0, 1, 4, 6)],
        count(5),
        error="Final value of ragged splits must match the length the corresponding",
    )


def place(v):
    return tf.compat.v1.placeholder(tf.string if v.dtype.kind == "O" else tf.as_dtype(v.dtype), None)


def encode(splits, values, batched):
    rt = tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=splits, rt_dense_values=values, batched_input=batched
    )
    return rt


def decode(encoded, values, splits_type, rank, input_rank):
    out = tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=encoded,
        input_ragged_rank=input_rank,
        output_ragged_rank=rank,
        Tvalues=values.dtype if isinstance(values, tf.Tensor) else values,
        Tsplits=splits_type,
    )
    return list(out[0]) + [out[1]]


def variant(splits, values, batched, rank, input_rank=-1, pick=None, reshape=None, as_type=None, error=None):
    """To a variant and back: of all (or the picked) pieces, as they are or in another arrangement."""

    def build():
        s, v = [place(x) for x in splits], place(values)
        e = encode(s, v, batched)
        if pick is not None:
            e = tf.raw_ops.GatherV2(params=e, indices=pick, axis=0)
        if reshape is not None:
            e = tf.raw_ops.Reshape(tensor=e, shape=reshape)
        t = splits[0].dtype if splits else np.int64
        out = decode(e, v if as_type is None else as_type, t, rank, input_rank)
        return [Step(fetch=out, feed=dict(zip(s + [v], list(splits) + [values])), error=error)]

    return graph_case("RaggedTensorFromVariant", build)


def variant_shape(splits, values, batched, error=None):
    def build():
        s, v = [place(x) for x in splits], place(values)
        shape = tf.raw_ops.Shape(input=encode(s, v, batched))
        return [Step(fetch=[shape], feed=dict(zip(s + [v], list(splits) + [values])), error=error)]

    return graph_case("RaggedTensorToVariant", build)


def gradient(splits, values, grad_splits, shape, batched=True, pick=None, scatter=None, error=None):
    def build():
        s, v = [place(x) for x in splits], place(values)
        e = encode(s, v, batched)
        if pick is not None:
            e = tf.raw_ops.GatherV2(params=e, indices=pick, axis=0)
        g = place(grad_splits)
        out = tf.raw_ops.RaggedTensorToVariantGradient(
            encoded_ragged_grad=e, row_splits=g, dense_values_shape=shape, Tvalues=v.dtype
        )
        feed = dict(zip(s + [v, g], list(splits) + [values, grad_splits]))
        return [Step(fetch=[out], feed=feed, error=error)]

    return graph_case("RaggedTensorToVariantGradient", build)


def variant_cases():
    for dt in TYPES:
        yield variant([vec64(0, 2, 2, 5)], count(5, dt=dt), True, 1)
        yield variant([vec(0, 2, 2, 5)], count(5, dt=dt), False, 1)
    one, two = [vec64(0, 2, 2, 5)], [vec64(0, 2, 2, 3), vec64(0, 1, 4, 5)]
    yield variant(one, words(5), True, 1)
    yield variant(one, count(5, 2), True, 1)
    yield variant(one, words(5), True, 1, pick=vec(2, 1))
    yield variant(two, count(5), True, 2)
    yield variant(two, count(5), True, 2, pick=vec(2, 0, 0, 1))
    yield variant(two, count(5), True, 2, pick=vec(1))
    yield variant(two, count(5), False, 2)
    yield variant(two, count(5, 2), True, 2, input_rank=1)
    yield variant(one, count(5), True, 2, pick=vec(2, 0, 0, 1), reshape=vec(2, 2))
    yield variant(two, count(5), True, 3, pick=vec(2, 0, 0, 1), reshape=vec(2, 2))
    yield variant([vec64(0, 1, 1, 3)] + two, count(5), True, 3)
    yield variant([], count(3, 2), True, 1)
    yield variant([], count(3, 2), False, 0)
    yield variant(
        [], count(3), True, 1, error="Ragged values must have rank >= 1; encoded scalar element at index 0"
    )
    yield variant([], count(3), True, 0)
    yield variant([], count(3, 2), True, 0)
    yield variant([], count(4, 2), True, 0, reshape=vec(2, 2))
    yield variant([], count(4, 2), True, 2, reshape=vec(2, 2))
    yield variant([], count(0, 2), True, 0)
    yield variant([], count(0, 2), True, 1)
    yield variant([], count(), False, 0)
    yield variant(one, count(5), True, 1, pick=NO_INTS)
    yield variant(two, count(5), True, 2, pick=NO_INTS)
    yield variant([vec64(0)], count(0), True, 1)
    yield variant(
        one, count(5), True, 2, error="Encoded input RaggedTensorVariant has ragged_rank=0.  Expected"
    )
    yield variant(
        one, count(5), True, 0, error="All flat_values must have compatible shapes.  Shape at index 0: [2]. "
    )
    yield variant(
        two,
        count(5),
        True,
        1,
        input_rank=0,
        error="Encoded input RaggedTensorVariant has ragged_rank=1.  Expected",
    )
    yield variant(
        one, count(5), True, 1, as_type=tf.int32, error="Expected values Tensor dtype: int32, found: float"
    )
    yield variant_shape(one, count(5), True)
    yield variant_shape(two, count(5), True)
    yield variant_shape(two, count(5), False)
    yield variant_shape([], count(3, 2), True)
    yield variant_shape([], count(3, 2), False)
    yield variant_shape([], count(0, 2), True)
    yield variant_shape([vec64(0)], count(0), True)
    yield variant_shape([], count(), True, error="Can't unbatch rank-0 tensor.")
    yield variant_shape(
        [vec64(0, 2, 4)],
        count(3),
        True,
        error="Invalid ragged splits: last element of ragged splits must be the number",
    )
    yield variant_shape(
        [vec64(0, 2, 4)],
        count(3),
        False,
        error="Invalid ragged splits: last element of ragged splits must be the number",
    )
    yield variant_shape(
        [vec64(0, 2, 1)],
        count(3),
        True,
        error="Invalid ragged splits: ragged splits must be monotonically increasing,",
    )
    yield variant_shape(
        [vec64(1, 2)],
        count(3),
        True,
        error="Invalid ragged splits: first element of ragged splits  must be 0 but is",
    )
    yield variant_shape(
        [np.zeros(0, np.int64)],
        count(3),
        True,
        error="Invalid ragged splits: ragged splits must have at least one splits, but",
    )
    yield variant_shape(
        [vec64(0, 5), vec64(0, 2)],
        count(3),
        True,
        error="Invalid ragged splits: last element of ragged splits must be the number",
    )
    yield variant_shape(
        [vec64(0, 2)],
        count(),
        True,
        error="Requires flat_values to have rank>=1 when nested_row_splits is not",
    )
    yield variant_shape(
        [i64(0)], count(3), True, error="Invalid ragged splits: ragged splits must be rank 1 but is rank 0"
    )
    for dt in [F32, np.int32, HALF]:
        yield gradient(one, count(5, dt=dt), vec64(0, 2, 2, 5), vec(5))
    yield gradient(one, count(5, 2), vec64(0, 2, 2, 5), vec(5, 2))
    yield gradient(one, words(5), vec64(0, 2, 2, 5), vec(5))
    yield gradient(one, count(5), vec64(0, 3), vec(3), pick=vec(2))
    yield gradient(one, count(5), vec64(0, 5, 7), vec(5), pick=vec(2, 0))
    yield gradient(one, count(5), vec64(0, 5), vec(5), batched=False)
    yield gradient(one, count(5), vec64(), vec(5), error="Invalid ragged splits: ragged splits must have at least one splits, but is empty")
    yield gradient(one, count(5), i64(0), vec(5), batched=False)
    yield gradient([], count(3, 2), vec64(0, 1, 2, 3), vec(3, 2))
    yield gradient(one, count(5), vec64(0, 2, 2), vec(5))
    yield gradient(one, count(5), vec64(0, 2, 2, 5), vec(0), pick=NO_INTS)


def fill_rows(ids, values, rows, default=np.array(F32(-1)), error=None):
    return case("RaggedFillEmptyRows", ids, values, rows, default, error=error)


def fill_cases():
    for dt in TYPES:
        yield fill_rows(vec64(0, 2, 2), count(3, dt=dt), i64(4), np.array(9).astype(dt))
    yield fill_rows(vec64(0, 2, 2), words(3), i64(4), np.array(b"x", object))
    yield fill_rows(vec64(2, 0, 2, 1), count(4), i64(4))
    yield fill_rows(vec64(2, 0, 1), count(3), i64(3))
    yield fill_rows(vec64(0, 1, 2), count(3), i64(3))
    yield fill_rows(np.zeros(0, np.int64), count(0), i64(3))
    yield fill_rows(np.zeros(0, np.int64), count(0), i64(0))
    yield fill_rows(
        vec64(0),
        count(1),
        i64(0),
        error="Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = 1",
    )
    yield fill_rows(vec64(0, 3), count(2), i64(3), error="indices(1, 0) is invalid: 3 >= 3")
    yield fill_rows(vec64(0, -1), count(2), i64(3), error="indices(1, 0) is invalid: -1 >= 3")
    yield fill_rows(
        vec64(0, 1), count(3), i64(3), error="The length of `values` (3) must match the first dimension of"
    )
    yield fill_rows(i64(0), count(1), i64(3), error="value_rowids must be a vector, saw: []")
    yield fill_rows(vec64(0), count(1, 1), i64(3), error="values must be a vector, saw: [1,1]")
    yield fill_rows(vec64(0), count(1), vec64(3), error="nrows must be a scalar, saw: [1]")
    yield fill_rows(
        vec64(0), count(1), i64(3), arr([1], F32), error="default_value must be a scalar, saw: [1]"
    )
    yield fill_rows(vec64(0), count(1), i64(-3), error="Expected shape dimensions to be non-negative, got -3")
    for dt in TYPES:
        yield case("RaggedFillEmptyRowsGrad", vec64(0, 2), (count(4) + 1).astype(dt))
    yield case("RaggedFillEmptyRowsGrad", np.zeros(0, np.int64), count(2) + 1)
    yield case("RaggedFillEmptyRowsGrad", vec64(3, 2, 1, 0), count(4) + 1)
    yield case(
        "RaggedFillEmptyRowsGrad",
        vec64(0, 4),
        count(4) + 1,
        error="Elements in reverse index must be in [0, 4) but got 4",
    )
    yield case(
        "RaggedFillEmptyRowsGrad",
        vec64(0, -1),
        count(4) + 1,
        error="Elements in reverse index must be in [0, 4) but got -1",
    )
    yield case(
        "RaggedFillEmptyRowsGrad", i64(1), count(4), error="reverse_index_map must be a vector, saw: []"
    )
    yield case(
        "RaggedFillEmptyRowsGrad", vec64(1), count(2, 2), error="grad_values must be a vector, saw: [2,2]"
    )


def cases(r):
    yield from to_tensor_cases()
    yield from gather_cases()
    yield from range_cases()
    yield from sparse_cases()
    yield from variant_cases()
    yield from fill_cases()
