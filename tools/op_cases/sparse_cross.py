"""Crossed features."""

from op_cases import *
from op_cases.movement import arr, count, vec, vec64

S, I = tf.string, tf.int64
NONE = np.zeros((0, 2), np.int64)


def strings(*values):
    return np.array(values, dtype=object)


# Sparse columns of three rows: (indices, values, shape).
A = (
    arr([[0, 0], [0, 1], [1, 0], [2, 0]], np.int64),
    strings("a", "bb", "", "long enough to hash in chunks"),
    vec64(3, 2),
)
B = (arr([[0, 0], [1, 0], [1, 1], [2, 0]], np.int64), vec64(7, -1, 1 << 40, 0), vec64(3, 2))
EMPTY_ROW = (arr([[0, 0], [2, 0]], np.int64), strings("x", "y"), vec64(3, 1))
SD = strings("u", "v", "w").reshape(3, 1)
SD2 = strings("u", "v", "w", "x", "y", "z").reshape(3, 2)
ID = arr([[5], [-6], [7]], np.int64)


def cross(sparse, dense=(), out=S, internal=S, buckets=0, key=0xDECAFCAFFE, error=None, hashed=None):
    return case(
        "SparseCross",
        [s[0] for s in sparse],
        [s[1] for s in sparse],
        [s[2] for s in sparse],
        list(dense),
        error=error,
        hashed_output=out == I if hashed is None else hashed,
        num_buckets=buckets,
        hash_key=key,
        out_type=out,
        internal_type=internal,
    )


def cross2(sparse, dense=(), sep="_X_", error=None):
    return case(
        "SparseCrossV2",
        [s[0] for s in sparse],
        [s[1] for s in sparse],
        [s[2] for s in sparse],
        list(dense),
        np.array(sep, dtype=object),
        error=error,
    )


def hashed(sparse, dense=(), buckets=0, strong=False, salt=(0, 0), error=None):
    return case(
        "SparseCrossHashed",
        [s[0] for s in sparse],
        [s[1] for s in sparse],
        [s[2] for s in sparse],
        list(dense),
        i64(buckets),
        np.array(strong),
        vec64(*salt) if isinstance(salt, tuple) else salt,
        error=error,
    )


def ragged(
    order, values=(), splits=(), sparse=(), dense=(), out=S, buckets=0, key=17, to=I, error=None, hash=None
):
    return case(
        "RaggedCross",
        list(values),
        [x.astype(to.as_numpy_dtype) for x in splits],  # other types crash TensorFlow
        [s[0] for s in sparse],
        [s[1] for s in sparse],
        [s[2] for s in sparse],
        list(dense),
        input_order=order,
        hashed_output=out == I if hash is None else hash,
        num_buckets=buckets,
        hash_key=key,
        out_values_type=out,
        out_row_splits_type=to,
        error=error,
    )


def bad_columns(ragged=False):
    """Sparse columns that are wrong in one way each."""
    if not ragged:
        yield (A[0][:, :1], A[1], A[2])
        yield (A[0], A[1][:2], A[2])  # read out of bounds by RaggedCross
    yield (A[0][:, 0], A[1], A[2])
    yield (A[0], A[1].reshape(2, 2), A[2])
    yield (A[0], A[1], A[2].reshape(1, 2))
    yield (A[0], A[1], vec64(4, 2))
    yield (A[0], A[1], vec64(3))


def odd_columns():
    """Columns whose rows are outside the shape or not in order: they count only while rows are in order."""
    yield (A[0] + 2, A[1], A[2])
    yield (A[0] - 1, A[1], A[2])
    yield (A[0][::-1], A[1], A[2])


def cases(r):
    for out, internal in [(S, S), (I, S), (I, I), (S, I)]:
        for buckets in [0, 10]:
            for sparse, dense in [
                ([A], []),
                ([A, B], []),
                ([A, B], [SD]),
                ([A], [SD2, ID]),
                ([B], [ID]),
                ([], [SD2, ID]),
                ([A, EMPTY_ROW], []),
                ([A], [SD2]),
            ]:
                words = all(c is not B for c in sparse) and all(d is not ID for d in dense)
                error = None if words or internal == I else "should be of internal type 7 but received 9"
                yield cross(sparse, dense, out, internal, buckets, error=error)
    yield cross([B], [ID], S, I)
    yield cross([A], [], I, S, 100, key=0)
    yield hashed([A], [SD2], 0, True, (3, 5))
    for sparse, dense in [([A], []), ([A, B], [SD]), ([A], [SD2, ID]), ([], [SD2, ID]), ([A, EMPTY_ROW], [])]:
        for sep in ["_X_", "", "--"]:
            yield cross2(sparse, dense, sep)
        for buckets in [0, 10]:
            yield hashed(sparse, dense, buckets)
            if all(c is not B for c in sparse) and not dense:  # integers crash TensorFlow here
                yield hashed(sparse, dense, buckets, True, (1, 2))
            yield hashed(sparse, dense, buckets, False, (1, 2))
    none = (NONE, strings(), vec64(0, 0))
    yield cross([none])
    yield cross([(NONE, strings(), vec64(3, 0))], [SD])
    yield cross2([none])
    yield hashed([none])
    for bad in bad_columns():
        yield cross([A, bad], [], error="")
        yield cross2([A, bad], [], error="")
        yield hashed([A, bad], [], error="")
    for odd in odd_columns():
        yield cross([A, odd], [])
        yield cross([odd], [])
        yield cross2([A, odd], [])
        yield hashed([A, odd], [])
        yield hashed([odd], [])
    for make in [cross, cross2, hashed]:
        yield make([A], [SD[:2]], error="Expected batch size 3 got 2 at dense tensor 0")
        yield make(
            [A], [SD.reshape(3)], error="Dense inputs should be a matrix but received shape [3] at position 0"
        )
        yield make(
            [(A[0], A[1], vec64(3, 2, 1))], error="shape should imply a 2D tensor, but got [3] at position 0"
        )
    yield cross2(
        [A], sep=["a", "b"], error="Input separator should be a scalar. Received: Tensor<type: string"
    )
    yield hashed([A], buckets=-1)
    yield hashed([A], salt=vec64(1), error='Input "salt" must have length 2 but has length 1')
    yield hashed([A], salt=arr([[1, 2]], np.int64))

    words, words_splits = strings("a", "b", "c", "d"), vec64(0, 2, 3, 4)
    ints, ints_splits = vec64(1, -2, 3), vec(0, 1, 3, 3)
    for out in [S, I]:
        for to in [tf.int32, tf.int64]:
            yield ragged("R", [words], [words_splits], out=out, to=to)
            yield ragged("RR", [words, ints], [words_splits, ints_splits], out=out, to=to)
            yield ragged("RS", [ints], [ints_splits], [A], out=out, to=to)
            yield ragged("SR", [ints], [ints_splits], [B], out=out, to=to)
            yield ragged("DRS", [words], [words_splits], [A], [SD2], out=out, to=to)
            yield ragged("SDD", [], [], [B], [SD2, ID], out=out, to=to)
            yield ragged("RDSD", [words], [words_splits], [B], [SD2, ID], out=out, to=to, buckets=7)
    yield ragged("R", [words[:0]], [vec64(0)])
    yield ragged("R", [words[:0]], [vec64(0, 0, 0)])
    yield ragged("S", sparse=[EMPTY_ROW])
    yield ragged("S", sparse=[(NONE, strings(), vec64(3, 0))])
    yield ragged("RR", [words], [words_splits], error="Invalid length for input_order")
    yield ragged("")
    yield ragged(
        "R",
        [words],
        [vec64(0, 2, 3, 5)],
        error="Invalid ragged splits: last element of ragged splits must be the number",
    )
    yield ragged(
        "R",
        [words],
        [vec64(1, 2, 3, 4)],
        error="Invalid ragged splits: first element of ragged splits  must be 0 but is",
    )
    yield ragged(
        "R",
        [words],
        [vec64(0, 3, 2, 4)],
        error="Invalid ragged splits: ragged splits must be monotonically increasing,",
    )
    yield ragged(
        "R",
        [words],
        [vec64()],
        error="Invalid ragged splits: ragged splits must have at least one splits, but",
    )
    yield ragged(
        "R", [words.reshape(2, 2)], [words_splits], error="tf.ragged.cross only supports inputs with rank=2."
    )
    yield ragged(
        "R", [words], [words_splits.reshape(2, 2)], error="tf.ragged.cross only supports inputs with rank=2."
    )
    yield ragged(
        "RR",
        [words, ints],
        [words_splits, vec(0, 1, 3)],
        error="inputs must all have the same batch dimension size.",
    )
    yield ragged(
        "RD",
        [words],
        [words_splits],
        dense=[SD[:2]],
        error="inputs must all have the same batch dimension size.",
    )
    yield ragged(
        "RD",
        [words],
        [words_splits],
        dense=[SD.reshape(3)],
        error="tf.ragged.cross only supports inputs with rank=2.",
    )
    for bad in bad_columns(True):
        yield ragged("RS", [words], [words_splits], [bad], error="")
    for odd in odd_columns():
        yield ragged("RS", [words], [words_splits], [odd])
        yield ragged("S", sparse=[odd])
    yield ragged("R", [words], [words_splits], out=I, hash=False)
    yield ragged("R", [words], [words_splits], out=S, hash=True)
