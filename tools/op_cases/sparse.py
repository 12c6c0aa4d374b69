"""Segments and sparse tensors."""

from op_cases import *
from op_cases.movement import BF16, F32, HALF, NO_INTS, arr, count, vec, vec64, words

rng = np.random.RandomState(3)


def to_dense(indices, shape, values, default, error=None, **attrs):
    return case("SparseToDense", indices, shape, values, default, error=error, **attrs)


def matmul(indices, values, shape, b, error=None, **attrs):
    return case("SparseTensorDenseMatMul", indices, values, shape, b, error=error, **attrs)


def reshape(indices, old, new, error=None):
    return case("SparseReshape", indices, old, new, error=error)


def sliced(start, size, error=None):
    indices = arr([[0, 1], [0, 3], [1, 2], [2, 0]], np.int64)
    return case("SparseSlice", indices, count(4) + 1, vec64(3, 4), vec64(*start), vec64(*size), error=error)


def fill_rows(indices, values, shape, default=np.array(F32(-1)), error=None):
    return case("SparseFillEmptyRows", indices, values, shape, default, error=error)


def more(r):
    indices = arr([[0, 1], [2, 0]], np.int64)
    for op in ("Add", "Mul", "Div"):
        for t in ("float", "double", "half", "bfloat16", "int32", "int64", "uint8"):
            yield case("SparseDenseCwise" + op, indices, array(t, [4, 6]), vec64(3, 2), array(t, [[1, 2], [3, 4], [2, 6]]), name=t)
        yield case("SparseDenseCwise" + op, np.zeros((0, 2), np.int64), count(0), vec64(3, 2), count(3, 2), name="empty")
    for t in ("float", "double", "half", "int32", "int64", "complex64"):
        yield case("SparseFillEmptyRowsGrad", vec64(2, 0), r.numbers(t, (4,)), name=t)
    yield case("SparseFillEmptyRowsGrad", vec64(), count(3), name="none")
    yield case("SparseFillEmptyRowsGrad", vec64(3), count(3), error="")


def cases(r):
    for op in ["SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin"]:
        for dt in [F32, np.float64, np.int32, np.int8, np.uint8, HALF, BF16]:
            yield case(
                op,
                (count(5, 3) - 4).astype(dt) if dt is not np.uint8 else count(5, 3, dt=dt),
                vec(0, 0, 2, 2, 2),
            )
        yield case(op, count(4), vec64(0, 1, 1, 3))
        yield case(
            op, count(4), vec(0, 1, 1), error="segment_ids should be the same size as dimension 0 of input."
        )
        yield case(op, count(4), vec(1, 0, 1, 1), error="segment ids are not increasing")
        yield case(
            op,
            count(4),
            vec(-1, 0, 1, 1),
            error="Segment id -1 out of range [0, 2), possibly because 'segment_ids' input is not",
        )
        yield case(op, count(4), vec(0, 0, 0, -2), error="segment ids must be >= 0")
        yield case(op, count(4), vec(0, 3, 2, 2), error="segment ids are not increasing")
        yield case(op, count(4), i32(0), error="segment_ids should be a vector.")
        yield case(op, count(0, 3), NO_INTS)
        yield case(op, count(4, 0), vec(0, 1, 1, 3))
        yield case(op, arr([np.nan, 1, 2], F32), vec(0, 0, 1))
        yield case(op, count(), NO_INTS, error="input must be at least rank 1")
        yield case(op, count(2, 2, 2), vec(2, 2))
        yield case(op, count(4), vec(0, 2, 1, 3), error="segment ids are not increasing")
        yield case(op, count(3), vec(2, 2, 1), error="segment ids are not increasing")
        if op not in ("SegmentMax", "SegmentMin"):
            yield case(op, count(3, dt=np.complex64), vec(0, 0, 1))
    for op in ["UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"]:
        for dt in [F32, np.float64, np.int32, np.int8, np.uint8, HALF, BF16]:
            yield case(
                op,
                (count(5, 3) - 4).astype(dt) if dt is not np.uint8 else count(5, 3, dt=dt),
                vec(2, 0, 2, -1, 0),
                i32(4),
            )
        yield case(op, count(4), vec64(0, 1, 1, 3), i32(4))
        yield case(op, count(4), vec64(0, 1, 1, 4), i32(4), error="segment_ids[3] = 4 is out of range [0, 4)")
        yield case(
            op,
            count(4),
            vec(0, 1, 1),
            i32(3),
            error="data.shape = [4] does not start with segment_ids.shape = [3]",
        )
        yield case(
            op, count(4), vec(0, 1, 1, 1), vec(3), error="num_segments should be a scalar, not shape [1]"
        )
        yield case(
            op, count(4), vec(0, 1, 1, 1), i32(-3), error="Input num_segments == -3 must not be negative."
        )
        yield case(op, count(4), vec(0, 1, 1, 1), i32(0), error="segment_ids[0] = 0 is out of range [0, 0)")
        yield case(op, count(2, 2), arr([[0, 1], [1, 0]]), i32(2))
        yield case(op, count(2, 2, 2), arr([[0, 1], [1, 0]]), np.array(2, np.int64))
        yield case(op, count(0, 3), NO_INTS, i32(2))
        yield case(op, count(3), i32(1), i32(2))
        yield case(op, arr([np.nan, 1, 2], F32), vec(0, 0, 1), i32(2))
        yield case(
            op,
            count(2, 2),
            arr([[0, 1], [1, 7]]),
            i32(2),
            error="segment_ids[1,1] = 7 is out of range [0, 2)",
        )
        yield case(op, count(3, 0), vec(1, 2, 9), i32(2))
        if op[-3:] not in ("Max", "Min"):
            yield case(op, count(3, dt=np.complex64), vec(0, 0, 1), i32(2))
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        for dt in [F32, np.float64, HALF, BF16] + ([np.int32, np.uint8] if op == "SparseSegmentSum" else []):
            yield case(op, count(5, 3, dt=dt), vec(4, 0, 0, 1), vec(0, 0, 2, 2))
            yield case(op + "WithNumSegments", count(5, 3, dt=dt), vec(4, 0, 0, 1), vec(0, 0, 2, 2), i32(5))
        yield case(op, count(5, 3), vec(4, 5), vec(0, 0), error="Bad: indices[1] == 5 out of range [0, 5)")
        yield case(op, count(5, 3), vec(4, -1), vec(0, 0), error="Bad: indices[1] == -1 out of range [0, 5)")
        yield case(op, count(5, 3), vec(4, 1), vec(1, 0), error="segment ids are not increasing")
        yield case(
            op,
            count(5, 3),
            vec(4, 1),
            vec(-1, 0),
            error="Segment id -1 out of range [0, 1), possibly because 'segment_ids' input is not",
        )
        yield case(op, count(5, 3), vec(4, 1), vec(0, -1), error="segment ids must be >= 0")
        yield case(op, count(5, 3), vec(4), vec(0, 1), error="segment_ids and indices should have same size.")
        yield case(op, count(5, 3), NO_INTS, NO_INTS)
        yield case(op, count(5, 3), i32(1), vec(0), error="indices should be a vector.")
        yield case(op, count(5, 3), vec(0), i32(0), error="segment_ids should be a vector.")
        yield case(op, count(5), vec64(0, 2, 3), vec64(0, 0, 1))
        yield case(op, count(5, 3), vec(1, 1, 1), vec(0, 3, 2), error="segment ids are not increasing")
        yield case(op, count(), vec(0), vec(0), error="Shape must be at least rank 1")
        yield case(op, count(5, 0), vec(1, 9), vec(0, 3), error="Bad: indices[1] == 9 out of range [0, 5)")
        yield case(op, count(0, 3), NO_INTS, NO_INTS)
        yield case(
            op + "WithNumSegments",
            count(5, 3),
            vec(4, 0),
            vec(0, 2),
            i32(2),
            error="segment ids must be < num_segments",
        )
        yield case(
            op + "WithNumSegments",
            count(5, 3),
            vec(4, 0),
            vec(0, 2),
            i32(-2),
            error="segment ids must be >= 0",
        )
        yield case(
            op + "WithNumSegments",
            count(5, 3),
            vec(4, 0),
            vec(0, 2),
            vec(3),
            error="num_segments should be a scalar, not shape [1]",
        )
        yield case(
            op + "WithNumSegments",
            count(5, 3),
            vec(4, 0),
            vec(0, 2),
            vec(3, 3),
            error="num_segments should be a scalar, not shape [2]",
        )
        yield case(op + "WithNumSegments", count(5, 3), NO_INTS, NO_INTS, i32(2))
        yield case(
            op + "WithNumSegments",
            count(5, 3),
            vec(1),
            vec(0),
            i32(0),
            error="segment ids must be < num_segments",
        )
        g = op + "Grad"
        for dt in [F32, np.float64, HALF, BF16]:
            yield case(g, count(3, 2, dt=dt), vec(4, 0, 0, 1), vec(0, 0, 2, 2), i32(5))
        yield case(g, count(3, 2), vec(4, 0), vec(0, 3), i32(5), error="Invalid number of segments")
        yield case(g, count(3, 2), vec(5, 0), vec(0, 1), i32(5), error="Index 5 out of range [0, 5).")
        yield case(
            g, count(3, 2), vec(5, 0), vec(0), i32(5), error="segment_ids and indices should have same size."
        )
        yield case(g, count(3, 2), vec(0), vec(0), vec(5), error="output_dim0 should be a scalar.")
        yield case(g, count(3, 2), vec(0), vec(0), i32(-1), error="Expected a non-negative size, got -1")
        yield case(g, count(3, 2), vec(4, 0), vec(-1, 1), i32(5), error="Segment id -1 out of range [0, 3).")
    yield case("SparseToDense", vec64(1, 3), vec64(5), count(2) + 1, np.array(F32(-1)))
    z = np.array(F32(0))
    yield to_dense(arr([[0, 1], [2, 0]]), vec(3, 2), count(2) + 1, z)
    yield to_dense(i32(2), vec(4), np.array(F32(5)), z)
    yield to_dense(vec(1, 2), vec(4), np.array(F32(5)), z)
    yield to_dense(
        arr([[0, 1], [3, 0]]),
        vec(3, 2),
        count(2) + 1,
        z,
        error="indices[1] = [3,0] is out of bounds: need 0 <= index < [3,2]",
    )
    yield to_dense(
        arr([[2, 1], [0, 0]]),
        vec(3, 2),
        count(2) + 1,
        z,
        error="indices[1] = [0,0] is out of order. Many sparse ops require sorted indices.",
    )
    yield to_dense(arr([[2, 1], [2, 1]]), vec(3, 2), count(2) + 1, z, error="indices[1] = [2,1] is repeated")
    yield to_dense(arr([[2, 1], [2, 1]]), vec(3, 2), count(2) + 1, z, validate_indices=False)
    yield to_dense(arr([[2, 1], [0, 1]]), vec(3, 2), count(2) + 1, z, validate_indices=False)
    yield to_dense(
        arr([[2, 1], [-1, 1]]),
        vec(3, 2),
        count(2) + 1,
        z,
        validate_indices=False,
        error="Indices are not valid (out of bounds).  Shape: [3,2]",
    )
    yield to_dense(
        arr([[0, 1]]),
        vec(3),
        count(1),
        z,
        error="output_shape has incorrect number of elements: 1 should be: 2",
    )
    yield to_dense(
        arr([[0, 1]]),
        vec(3, 2),
        count(2),
        z,
        error="sparse_values has incorrect shape [2], should be [] or [1]",
    )
    yield to_dense(arr([[0, 1]]), vec(3, 2), count(1), count(1), error="default_value should be a scalar.")
    yield to_dense(
        arr([[[0, 1]]]),
        vec(3, 2),
        count(1),
        z,
        error="sparse_indices should be a scalar, vector, or matrix, got shape [1,1,2]",
    )
    yield to_dense(arr([[0, 1]]), i32(3), count(1), z, error="output_shape must be rank 1, got shape []")
    yield to_dense(np.zeros((0, 2), np.int32), vec(3, 2), count(0), z)
    yield to_dense(vec(1), vec(3), words(1), arr("d", object))
    yield to_dense(arr([[0, 1]]), vec(3, -2), count(1), z, error="Dimension -2 must be >= 0")
    yield to_dense(np.zeros((0, 1), np.int64), vec64(0), count(0), z)
    for dt in [F32, np.float64, np.int32, np.complex64, HALF, BF16]:
        yield matmul(
            arr([[0, 1], [2, 0]], np.int64), (count(2) + 1).astype(dt), vec64(3, 2), count(2, 4, dt=dt)
        )
        yield matmul(
            arr([[0, 1], [1, 2]], np.int64),
            (count(2) + 1).astype(dt),
            vec64(2, 3),
            count(2, 4, dt=dt),
            adjoint_a=True,
        )
        yield matmul(
            arr([[0, 1], [2, 0]], np.int64),
            (count(2) + 1).astype(dt),
            vec64(3, 2),
            count(4, 2, dt=dt),
            adjoint_b=True,
        )
    yield matmul(
        arr([[0, 1], [2, 0]], np.int64),
        np.array([1j, 2 + 1j], np.complex64),
        vec64(3, 2),
        count(4, 3).astype(np.complex64) * (1 + 1j),
        adjoint_a=True,
        adjoint_b=True,
    )
    yield matmul(
        arr([[0, 5], [2, 0]], np.int64),
        count(2),
        vec64(3, 2),
        count(2, 4),
        error="k (5) from index[0,1] out of bounds (>=2)",
    )
    yield matmul(
        arr([[0, 0], [3, 0]], np.int64),
        count(2),
        vec64(3, 2),
        count(2, 4),
        error="m (3) from index[1,0] out of bounds (>=3)",
    )
    yield matmul(
        arr([[0, 0], [2, 0]], np.int64),
        count(2),
        vec64(3, 2),
        count(3, 4),
        error="Cannot multiply A and B because inner dimension does not match: 2 vs. 3.  Did",
    )
    yield matmul(
        arr([[0, 0], [2, 0]], np.int64),
        count(1),
        vec64(3, 2),
        count(2, 4),
        error="Number of rows of a_indices does not match number of entries in a_values",
    )
    yield matmul(
        arr([[0], [2]], np.int64),
        count(2),
        vec64(3, 2),
        count(2, 4),
        error="Number of columns of a_indices does not match number of entries in a_shape",
    )
    yield matmul(
        arr([[0, 0], [2, 0]], np.int64),
        count(2),
        vec64(3),
        count(2, 4),
        error="Tensor 'a_shape' must have 2 elements",
    )
    yield matmul(
        arr([[0, 0], [2, 0]], np.int64), count(2), vec64(3, 2), count(2), error="Tensor 'b' is not a matrix"
    )
    yield matmul(np.zeros((0, 2), np.int64), count(0), vec64(3, 2), count(2, 4))
    yield matmul(arr([[0, 1], [2, 0]], np.int32), count(2), vec64(3, 2), count(2, 4))
    yield matmul(arr([[0, 1], [0, 1]], np.int32), count(2) + 1, vec64(3, 2), count(2, 4))
    yield matmul(
        arr([[-1, 0]], np.int64),
        count(1),
        vec64(3, 2),
        count(2, 4),
        error="m (-1) from index[0,0] out of bounds (>=3)",
    )
    yield matmul(arr([[0, 0]], np.int64), count(1), vec64(3, 2), count(2, 0))
    for op in ["SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"]:
        ix = arr([[0, 1], [1, 2]], np.int64)
        yield case(op, ix, count(2) + 1, vec64(2, 3), count(2, 3) + 1)
        yield case(op, ix, count(2) + 1, vec64(2, 3), count(3) + 1)
        yield case(op, ix, count(2) + 1, vec64(2, 3), count(2, 1) + 1)
        yield case(op, ix, count(2) + 1, vec64(2, 3), count() + 2)
        yield case(
            op,
            ix,
            count(2) + 1,
            vec64(2, 3),
            count(4),
            error="SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible",
        )
        yield case(
            op,
            ix,
            count(2) + 1,
            vec64(2, 3),
            count(1, 2, 3),
            error="SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible",
        )
        yield case(op, ix, vec(4, 6), vec64(2, 3), arr([[1, 2, 3], [4, 5, 6]]))
    ix = arr([[2, 1], [0, 3], [0, 1], [2, 1]], np.int64)
    yield case("SparseReorder", ix, count(4), vec64(3, 4))
    yield case("SparseReorder", ix, words(4), vec64(3, 4))
    yield case("SparseReorder", arr([[0, 1], [1, 0]], np.int64), count(2), vec64(3, 4))
    yield case(
        "SparseReorder",
        ix,
        count(3),
        vec64(3, 4),
        error="Number of elements in indices (4) and values (3) do not match",
    )
    yield case(
        "SparseReorder", ix, count(4), vec64(3), error="Index rank (2) and shape rank (1) do not match"
    )
    yield case("SparseReorder", np.zeros((0, 2), np.int64), count(0), vec64(3, 4))
    yield case("SparseReorder", arr([[5, 1], [1, 0]], np.int64), count(2), vec64(3, 4))
    yield case(
        "SparseReorder", vec64(1), count(1), vec64(3), error="Sparse indices must be rank 2 but is rank 1"
    )
    yield case(
        "SparseReorder", ix, count(2, 2), vec64(3, 4), error="Sparse values must be rank 1 but is rank 2"
    )
    yield case(
        "SparseReorder",
        ix,
        count(4),
        arr([[3, 4]], np.int64),
        error="Sparse shape must be rank 1 but is rank 2",
    )
    yield reshape(ix, vec64(3, 4), vec64(4, 3))
    yield reshape(ix, vec64(3, 4), vec64(2, -1))
    yield reshape(ix, vec64(3, 4), vec64(12))
    yield reshape(
        ix,
        vec64(3, 4),
        vec64(5, -1),
        error="Input to reshape is a SparseTensor with 12 dense values, but the requested",
    )
    yield reshape(
        ix,
        vec64(3, 4),
        vec64(5, 2),
        error="Input to reshape is a tensor with 12 dense values, but the requested shape has",
    )
    yield reshape(
        ix, vec64(3, 4), vec64(-1, -1), error="only one output dimension may be -1, not both 0 and 1"
    )
    yield reshape(ix, vec64(3, 4), vec64(-2, 6), error="size 0 must be non-negative, not -2")
    yield reshape(ix, vec64(3, 4), vec64(3, 4))
    yield reshape(ix, vec64(3), vec64(3, 4), error="Input tensor rank must match input shape length.")
    yield reshape(ix, vec64(3, 4), vec64(12, 1, 1))
    yield reshape(
        np.zeros((0, 2), np.int64),
        vec64(0, 4),
        vec64(0, -1),
        error="reshape cannot infer the missing input size for an empty tensor unless all",
    )
    yield reshape(np.zeros((0, 2), np.int64), vec64(0, 4), vec64(0, 7))
    yield reshape(np.zeros((0, 2), np.int64), vec64(3, 4), vec64(2, 6))
    yield reshape(arr([[5, 1]], np.int64), vec64(3, 4), vec64(12))
    yield reshape(vec64(1), vec64(3), vec64(3), error="Input must be a matrix.")
    yield reshape(ix, arr([[3, 4]], np.int64), vec64(3), error="Input shape must be a vector.")
    yield reshape(
        ix,
        vec64(3, 4),
        arr([[12]], np.int64),
        error="Target shape should be a vector but received shape [1,1]",
    )
    yield reshape(np.zeros((0, 2), np.int64), vec64(0, 4), vec64(2, -1))
    yield reshape(
        arr([[0, 0]], np.int64),
        vec64(0, 4),
        vec64(0, 3),
        error="Input tensor has 1 non zero elements but input shape ([0,4]) or output shape",
    )
    a = arr([[0, 1], [1, 0]], np.int64)
    b = arr([[0, 0], [1, 1]], np.int64)
    for d in [0, 1, -1, -2, 2, -3]:
        yield case("SparseConcat", [a, b], [count(2), count(2) + 5], [vec64(2, 3), vec64(2, 3)], concat_dim=d)
    yield case(
        "SparseConcat",
        [a, b],
        [count(2), count(2) + 5],
        [vec64(2, 3), vec64(2, 4)],
        concat_dim=0,
        error="Input shapes must match: expected 3 for dimension 1 but got 4 at position 1",
    )
    yield case("SparseConcat", [a, b], [count(2), count(2) + 5], [vec64(2, 3), vec64(2, 4)], concat_dim=1)
    yield case(
        "SparseConcat",
        [a, b],
        [count(2), count(2) + 5],
        [vec64(2, 3), vec64(2, 4, 1)],
        concat_dim=1,
        error="Ranks of all input tensors must match: expected 2 but got 3 at position 1",
    )
    yield case(
        "SparseConcat",
        [a, b],
        [count(2), count(3)],
        [vec64(2, 3), vec64(2, 3)],
        concat_dim=1,
        error="indices and values rows (indexing dimension) must match. (indices = 2, values =",
    )
    yield case("SparseConcat", [a, b], [words(2), words(2)], [vec64(2, 3), vec64(2, 3)], concat_dim=1)
    yield case(
        "SparseConcat",
        [a, np.zeros((0, 2), np.int64)],
        [count(2), count(0)],
        [vec64(2, 3), vec64(0, 3)],
        concat_dim=0,
    )
    yield case(
        "SparseConcat",
        [a, arr([[0, 7]], np.int64)],
        [count(2), count(1)],
        [vec64(2, 3), vec64(2, 3)],
        concat_dim=1,
    )
    yield sliced((0, 0), (2, 2))
    yield sliced((0, 1), (3, 3))
    yield sliced((1, 1), (5, 5))
    yield sliced((0, 0), (0, 0))
    yield sliced((3, 0), (1, 1))
    yield sliced((0, 0), (-1, 2), error="Expected a non-negative size, got -1")
    yield sliced((0,), (1, 1), error="Expected start to be a vector of length 2 but got length 1")
    yield sliced((0, 0), (1,), error="Expected size to be a vector of length 2 but got length 1")
    yield sliced((4, 4), (2, 2))
    yield sliced((0, 0), (3, 4))
    for d, k in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (0, 4), (2, 1), (-1, 2), (1, 5), (-3, 1)]:
        yield case(
            "SparseSplit",
            np.array(d, np.int64),
            arr([[0, 1], [0, 3], [1, 2], [2, 0]], np.int64),
            count(4) + 1,
            vec64(3, 4),
            num_split=k,
        )
    yield case(
        "SparseSplit",
        np.array(0, np.int64),
        arr([[0, 1], [0, 3], [1, 2], [2, 0]], np.int64),
        count(3) + 1,
        vec64(3, 4),
        num_split=2,
        error="Number of elements in indices (4) and values (3) do not match",
    )
    yield case(
        "SparseSplit",
        np.array(0, np.int64),
        np.zeros((0, 2), np.int64),
        count(0) + 1,
        vec64(3, 4),
        num_split=2,
    )
    yield case(
        "SparseSplit",
        vec64(0),
        np.zeros((0, 2), np.int64),
        count(0) + 1,
        vec64(3, 4),
        num_split=2,
        error="Input axis should be a scalar but received shape [1]",
    )
    yield fill_rows(arr([[0, 1], [2, 3]], np.int64), count(2), vec64(4, 5))
    yield fill_rows(arr([[2, 1], [0, 3], [2, 0]], np.int64), count(3), vec64(4, 5))
    yield fill_rows(np.zeros((0, 2), np.int64), count(0), vec64(3, 5))
    yield fill_rows(np.zeros((0, 2), np.int64), count(0), vec64(0, 5))
    yield fill_rows(
        arr([[0, 1]], np.int64),
        count(1),
        vec64(0, 5),
        error="Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = 1",
    )
    yield fill_rows(arr([[7, 1]], np.int64), count(1), vec64(4, 5), error="indices(0, 0) is invalid: 7 >= 4")
    yield fill_rows(
        arr([[-1, 1]], np.int64), count(1), vec64(4, 5), error="indices(0, 0) is invalid: -1 >= 4"
    )
    yield fill_rows(
        arr([[0, 1]], np.int64),
        count(2),
        vec64(4, 5),
        error="The length of `values` (2) must match the first dimension of `indices` (1).",
    )
    yield fill_rows(
        arr([[0, 1]], np.int64),
        count(1),
        vec64(4),
        error="The length of `dense_shape` (1) must match the second dimension of `indices`",
    )
    yield fill_rows(
        arr([[0, 1]], np.int64),
        count(1),
        vec64(4, 5),
        count(1),
        error="default_value must be a scalar, saw: [1]",
    )
    yield fill_rows(vec64(1), count(1), vec64(4), error="indices must be a matrix, saw: [1]")
    yield fill_rows(arr([[0, 1], [1, 3]], np.int64), count(2), vec64(2, 5))
    yield fill_rows(arr([[1], [1]], np.int64), words(2), vec64(3), arr("x", object))
    yield fill_rows(
        np.zeros((0, 0), np.int64), count(0), np.zeros(0, np.int64), error="Dense shape cannot be empty."
    )
    yield case("SparseFillEmptyRowsGrad", vec64(0, 2), count(4) + 1)
    yield case(
        "SparseFillEmptyRowsGrad",
        vec64(0, 4),
        count(4) + 1,
        error="Elements in reverse index must be in [0, 4) but got 4",
    )
    yield case(
        "SparseFillEmptyRowsGrad",
        vec64(0, -1),
        count(4) + 1,
        error="Elements in reverse index must be in [0, 4) but got -1",
    )
    yield case(
        "SparseFillEmptyRowsGrad",
        np.array(1, np.int64),
        count(4),
        error="reverse_index_map must be a vector, saw: []",
    )
    yield case("SparseFillEmptyRowsGrad", np.zeros(0, np.int64), count(2) + 1)
    yield from more(r)
