"""Counts of ragged, sparse and dense values."""

from op_cases import *
from op_cases.movement import F32, arr, count, vec, vec64

OUT_TYPES = [np.int32, np.int64, F32, np.float64]


def bins(splits, values, size, weights, error=None, **attrs):
    return case("RaggedBincount", splits, values, size, weights, error=error, **attrs)


def sparse_bins(indices, values, shape, size, weights, error=None, **attrs):
    return case("SparseBincount", indices, values, shape, size, weights, error=error, **attrs)


def bincount_cases():
    none = count(0)
    for t in OUT_TYPES:
        for i in [np.int32, np.int64]:
            values, size = arr([1, 0, 2, 2, 9], i), np.array(4, i)
            yield bins(vec64(0, 2, 2, 5), values, size, none.astype(t))
            yield bins(vec64(0, 2, 2, 5), values, size, (count(5) + 1).astype(t))
            yield bins(vec64(0, 2, 2, 5), values, size, none.astype(t), binary_output=True)
            ix = arr([[0, 1], [0, 2], [2, 0], [2, 1], [2, 2]], np.int64)
            yield sparse_bins(ix, values, vec64(3, 3), size, none.astype(t))
            yield sparse_bins(ix, values, vec64(3, 3), size, (count(5) + 1).astype(t))
            yield sparse_bins(ix, values, vec64(3, 3), size, (count(5) + 1).astype(t), binary_output=True)
            yield sparse_bins(ix[:, :1] * 2 + ix[:, 1:], values, vec64(9), size, none.astype(t))
    five = vec(1, 0, 2, 2, 9)
    yield bins(vec64(0), vec(), i32(3), none)
    yield bins(vec64(0, 0, 0), vec(), i32(3), none)
    yield bins(vec64(0, 5), five, i32(0), none)
    yield bins(vec64(0, 2, 2, 5), five, i32(-1), none, error="size (-1) must be non-negative")
    yield bins(vec64(0, 2, 2, 5), five, vec(4), none, error="Shape must be rank 0 but is rank 1")
    yield bins(vec64(0, 2, 2, 5), vec(1, 0, -2, 2, 9), i32(4), none, error="Input must be non-negative")
    yield bins(vec64(1, 2, 2, 5), five, i32(4), none, error="Splits must start with 0, not with 1")
    yield bins(
        vec64(0, 2, 2, 4),
        five,
        i32(4),
        none,
        error="Splits must end with the number of values, got 4 instead of 5",
    )
    yield bins(
        vec64(0, 2, 2, 7),
        five,
        i32(4),
        none,
        error="Splits must end with the number of values, got 7 instead of 5",
    )
    yield bins(vec64(), five, i32(4), none, error="Splits must be non-empty")
    yield bins(arr([[0, 5]], np.int64), five, i32(4), none)
    yield bins(vec64(0, 2, 2, 6), arr([[1, 2, 3], [2, 1, 0]]), i32(4), none)
    yield bins(
        i64(0), five, i32(4), none, error="Splits must end with the number of values, got 0 instead of 5"
    )
    ix = arr([[0, 1], [0, 2], [2, 0], [2, 1], [2, 2]], np.int64)
    shape = vec64(3, 3)
    yield sparse_bins(np.zeros((0, 2), np.int64), vec(), shape, i32(3), none)
    yield sparse_bins(np.zeros((0, 1), np.int64), vec(), vec64(3), i32(3), none)
    yield sparse_bins(ix, five, shape, i32(-1), none, error="size (-1) must be non-negative")
    yield sparse_bins(ix, five, shape, vec(4), none, error="Shape must be rank 0 but is rank 1")
    yield sparse_bins(ix, vec(1, 0, -2, 2, 9), shape, i32(4), none)
    yield sparse_bins(
        ix,
        vec(1, 0, 2, 2),
        shape,
        i32(4),
        none,
        error="Number of elements in indices (5) and values (4) do not match",
    )
    yield sparse_bins(
        ix, five, vec64(3), i32(4), none, error="Index rank (2) and shape rank (1) do not match"
    )
    yield sparse_bins(
        ix, five, vec64(3, 3, 1), i32(4), none, error="Index rank (2) and shape rank (3) do not match"
    )
    yield sparse_bins(
        ix,
        five,
        vec64(2, 3),
        i32(4),
        none,
        error="Sparse index tuple indices[2, :] = [2, 0] is out of bounds",
    )
    yield sparse_bins(
        ix - 1,
        five,
        vec64(2, 3),
        i32(4),
        none,
        error="Sparse index tuple indices[0, :] = [-1, 0] is out of bounds",
    )
    yield sparse_bins(
        vec64(0, 1, 2, 3, 4), five, shape, i32(4), none, error="Sparse indices must be rank 2 but is rank 1"
    )
    yield sparse_bins(
        ix, five, arr([[3, 3]], np.int64), i32(4), none, error="Sparse shape must be rank 1 but is rank 2"
    )
    yield sparse_bins(
        ix,
        five,
        vec64(-3, 3),
        i32(4),
        none,
        error="Sparse index tuple indices[0, :] = [0, 1] is out of bounds",
    )


def dense(values, weights, error=None, binary_output=False, **attrs):
    return case("DenseCountSparseOutput", values, weights, error=error, binary_output=binary_output, **attrs)


def sparse(indices, values, shape, weights, error=None, binary_output=False, **attrs):
    return case(
        "SparseCountSparseOutput",
        indices,
        values,
        shape,
        weights,
        error=error,
        binary_output=binary_output,
        **attrs,
    )


def ragged(splits, values, weights, error=None, binary_output=False, **attrs):
    return case(
        "RaggedCountSparseOutput", splits, values, weights, error=error, binary_output=binary_output, **attrs
    )


def sparse_output_cases():
    none = count(0)
    ix = arr([[0, 1], [0, 2], [2, 0], [2, 1], [2, 2]], np.int64)
    shape, splits = vec64(3, 3), vec64(0, 2, 2, 5)
    for t in OUT_TYPES:
        for i in [np.int32, np.int64]:
            matrix, five = arr([[3, 1, 1], [0, 5, 3]], i), arr([1, 0, 2, 2, 9], i)
            for w in [none.astype(t), (count(6) + 1).astype(t)]:
                yield dense(matrix, w if w.size == 0 else w.reshape(2, 3))
                yield sparse(ix, five, shape, w[:5])
                yield ragged(splits, five, w[:5])
            yield dense(matrix, none.astype(t), binary_output=True)
            yield sparse(ix, five, shape, none.astype(t), binary_output=True)
            yield ragged(splits, five, none.astype(t), binary_output=True)
    five = vec(1, 0, 2, 2, 9)
    for limits in [(3, -1), (-1, 3), (12, -1), (12, 5), (-1, 0), (0, 9), (0, 10)]:
        attrs = dict(minlength=limits[0], maxlength=limits[1])
        yield dense(five, none, **attrs)
        yield sparse(ix, five, shape, none, **attrs)
        yield ragged(splits, five, none, **attrs)
    yield dense(five, count(5) + 1)
    yield sparse(arr([[1], [2], [4], [5], [7]], np.int64), five, vec64(9), none)
    yield dense(vec(), none)
    yield dense(np.zeros((2, 0), np.int32), none)
    yield dense(np.zeros((0, 2), np.int32), none, error="Invalid input: Shapes dimension cannot be 0.")
    yield sparse(np.zeros((0, 2), np.int64), vec(), shape, none)
    yield sparse(np.zeros((0, 1), np.int64), vec(), vec64(4), none)
    yield ragged(vec64(0), vec(), none, error="Must provide at least 2 elements for the splits argument")
    yield ragged(vec64(0, 0), vec(), none)
    yield ragged(vec64(0, 0, 0, 2), vec(1, 1), none)
    yield dense(vec(1, -1, 2), none, error="Input values must all be non-negative")
    yield dense(i32(3), none, error="Input must be a 1 or 2-dimensional tensor. Got: []")
    yield dense(
        np.zeros((1, 1, 1), np.int32), none, error="Input must be a 1 or 2-dimensional tensor. Got: [1,1,1]"
    )
    yield dense(five, count(3), error="Weights and data must have the same shape. Weight shape: [3]; data")
    yield dense(
        five, count(5, 1), error="Weights and data must have the same shape. Weight shape: [5,1]; data"
    )
    yield sparse(ix, vec(1, 0, -2, 2, 9), shape, none, error="Input values must all be non-negative")
    yield sparse(
        ix,
        five,
        shape,
        count(3),
        error="Weights and values must have the same shape. Weight shape: [3]; values",
    )
    yield sparse(
        ix,
        vec(1, 2),
        shape,
        none,
        error="Number of values must match first dimension of indices.Got 2 values,",
    )
    yield sparse(
        ix, five, vec64(3), none, error="Number of dimensions must match second dimension of indices.Got 1"
    )
    yield sparse(
        ix,
        five,
        vec64(2, 3),
        none,
        error="Invalid index value at 2: dimension 0 has value 2 which is not in [0,",
    )
    yield sparse(
        ix, five, vec64(), none, error="Number of dimensions must match second dimension of indices.Got 0"
    )
    yield sparse(
        ix - 1,
        five,
        shape,
        none,
        error="Invalid index value at 0: dimension 0 has value -1 which is not in [0,",
    )
    yield sparse(vec64(1), five, shape, none, error="Input indices must be a 2-dimensional tensor. Got: [1]")
    yield sparse(ix, five, arr([[3, 3]], np.int64), none, error="Input shape must be a vector. Got: [1,2]")
    yield sparse(
        ix,
        five,
        vec64(0, 3),
        none,
        error="Invalid index value at 0: dimension 0 has value 0 which is not in [0,",
    )
    yield sparse(np.concatenate([ix, ix], 1), five, vec64(3, 3, 3, 3), none)
    yield sparse(ix[::-1], five, shape, none)
    yield ragged(splits, vec(1, 0, -2, 2, 9), none, error="Input values must all be non-negative")
    yield ragged(
        splits, five, count(3), error="Weights and values must have the same shape. Weight shape: [3]; values"
    )
    yield ragged(
        vec64(0, 2, 2, 4), five, none, error="Splits must end with the number of values, got 4 instead of 5"
    )
    yield ragged(
        vec64(0, 2, 2, 6), five, none, error="Splits must end with the number of values, got 6 instead of 5"
    )
    yield ragged(vec64(1, 2, 2, 5), five, none, error="Splits must start with 0, not with 1")
    yield ragged(vec64(0, 3, 2, 5), five, none)
    yield ragged(vec64(), five, none, error="Must provide at least 2 elements for the splits argument")
    yield ragged(vec64(0), five, none, error="Must provide at least 2 elements for the splits argument")
    yield ragged(i64(0), five, none, error="Must provide at least 2 elements for the splits argument")


def cases(r):
    yield from bincount_cases()
    yield from sparse_output_cases()
