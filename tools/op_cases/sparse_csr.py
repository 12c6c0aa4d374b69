"""Sparse matrices in compressed rows."""

from op_cases import *
from op_cases.movement import F32, arr, count, vec, vec64

IX = arr([[0, 1], [0, 2], [2, 0]], np.int64)
IY = arr([[0, 0], [1, 1], [1, 2], [2, 0]], np.int64)
IB = arr([[0, 0, 1], [0, 2, 0], [1, 1, 1], [1, 1, 2]], np.int64)
S33, S34 = vec64(3, 3), vec64(3, 4)
TYPES = [F32, np.float64, np.complex64, np.complex128]
raw = tf.raw_ops


def place(v):
    """Ranks must be known when the graph is made: those of values, and those that shapes and indices say."""
    known = v.shape if v.ndim == 1 else (None,) + v.shape[1:]
    shape = known if v.dtype == np.int64 else [None] * v.ndim
    return tf.compat.v1.placeholder(tf.as_dtype(v.dtype), shape)


def vals(n, dt):
    v = count(n, dt=np.float64) + 1
    return (v + 1j * (v - 2)).astype(dt) if np.issubdtype(dt, np.complexfloating) else v.astype(dt)


def graph(op, build, *inputs, error=None):
    def make():
        p = [place(np.asarray(x)) for x in inputs]
        out = build(*p)
        return [
            Step(
                fetch=list(out) if isinstance(out, (tuple, list)) else [out],
                feed=dict(zip(p, inputs)),
                error=error,
            )
        ]

    return graph_case(op, make)


def csr(i, v, s):
    return raw.SparseTensorToCSRSparseMatrix(indices=i, values=v, dense_shape=s)


def back(m, dt):
    return list(raw.CSRSparseMatrixToSparseTensor(sparse_matrix=m, type=dt))


def cases(r):
    for dt in TYPES:
        t = tf.as_dtype(dt)
        yield graph(
            "SparseTensorToCSRSparseMatrix", lambda i, v, s, t=t: back(csr(i, v, s), t), IX, vals(3, dt), S33
        )
        yield graph(
            "CSRSparseMatrixToSparseTensor",
            lambda i, v, s, t=t: back(csr(i, v, s), t),
            IB,
            vals(4, dt),
            vec64(2, 3, 3),
        )
        yield graph(
            "CSRSparseMatrixToDense",
            lambda i, v, s, t=t: raw.CSRSparseMatrixToDense(sparse_input=csr(i, v, s), type=t),
            IX,
            vals(3, dt),
            S34,
        )
        yield graph(
            "CSRSparseMatrixToDense",
            lambda i, v, s, t=t: raw.CSRSparseMatrixToDense(sparse_input=csr(i, v, s), type=t),
            IB,
            vals(4, dt),
            vec64(2, 3, 4),
        )
        yield graph(
            "CSRSparseMatrixComponents",
            lambda i, v, s, k, t=t: raw.CSRSparseMatrixComponents(
                csr_sparse_matrix=csr(i, v, s), index=k, type=t
            ),
            IX,
            vals(3, dt),
            S34,
            i32(0),
        )
        for k in [0, 1]:
            yield graph(
                "CSRSparseMatrixComponents",
                lambda i, v, s, k, t=t: raw.CSRSparseMatrixComponents(
                    csr_sparse_matrix=csr(i, v, s), index=k, type=t
                ),
                IB,
                vals(4, dt),
                vec64(2, 3, 3),
                i32(k),
            )
        dense = vals(12, dt).reshape(3, 4)
        yield graph(
            "DenseToCSRSparseMatrix",
            lambda d, i, t=t: back(raw.DenseToCSRSparseMatrix(dense_input=d, indices=i), t),
            dense,
            IX,
        )
        yield graph(
            "DenseToCSRSparseMatrix",
            lambda d, i, t=t: back(raw.DenseToCSRSparseMatrix(dense_input=d, indices=i), t),
            vals(18, dt).reshape(2, 3, 3),
            IB,
        )
        for conj in [False, True]:
            f = lambda i, v, s, t=t, conj=conj: back(
                raw.SparseMatrixTranspose(input=csr(i, v, s), conjugate=conj, type=t), t
            )
            yield graph("SparseMatrixTranspose", f, IX, vals(3, dt), S34)
            yield graph("SparseMatrixTranspose", f, IB, vals(4, dt), vec64(2, 3, 4))
        for a, b in [
            ({}, {}),
            (dict(transpose_a=True), {}),
            ({}, dict(transpose_b=True)),
            (dict(adjoint_a=True), dict(adjoint_b=True)),
            (dict(transpose_a=True), dict(adjoint_b=True)),
        ]:
            attrs = dict(a, **b)
            f = lambda i, v, s, d, attrs=attrs: raw.SparseMatrixMatMul(a=csr(i, v, s), b=d, **attrs)
            yield graph("SparseMatrixMatMul", f, IX, vals(3, dt), S33, vals(9, dt).reshape(3, 3))
            g = lambda i, v, s, j, w, t=t, attrs=attrs: back(
                raw.SparseMatrixSparseMatMul(a=csr(i, v, s), b=csr(j, w, s), type=t, **attrs), t
            )
            yield graph("SparseMatrixSparseMatMul", g, IX, vals(3, dt), S33, IY, vals(4, dt))
            yield graph("SparseMatrixSparseMatMul", g, IB, vals(4, dt), vec64(2, 3, 3), IB, vals(4, dt))
        for o in [
            dict(transpose_output=True),
            dict(conjugate_output=True),
            dict(transpose_output=True, conjugate_output=True, transpose_a=True),
        ]:
            f = lambda i, v, s, d, o=o: raw.SparseMatrixMatMul(a=csr(i, v, s), b=d, **o)
            yield graph("SparseMatrixMatMul", f, IX, vals(3, dt), S33, vals(6, dt).reshape(3, 2))
    nnz = lambda i, v, s: raw.SparseMatrixNNZ(sparse_matrix=csr(i, v, s))
    yield graph("SparseMatrixNNZ", nnz, IX, vals(3, F32), S33)
    yield graph("SparseMatrixNNZ", nnz, IB, vals(4, F32), vec64(2, 3, 3))
    yield graph("SparseMatrixNNZ", nnz, IX[:0], vals(0, F32), S33)
    yield graph("SparseMatrixNNZ", nnz, IB[:0], vals(0, F32), vec64(2, 3, 3))
    yield graph("SparseMatrixNNZ", nnz, IX[:1], vals(1, F32), vec64(1, 4))
    yield graph("SparseMatrixNNZ", nnz, IB[2:], vals(2, F32), vec64(4, 2, 3))
    yield graph("SparseMatrixNNZ", nnz, IX[:0], vals(0, F32), vec64(0, 3))
    yield graph("SparseMatrixNNZ", nnz, IX + 2, vals(3, F32), S33, error="Sparse index tuple indices[0, :]")
    for op in [nnz, lambda i, v, s: back(csr(i, v, s), tf.float64)]:
        name = "SparseMatrixNNZ" if op is nnz else "CSRSparseMatrixToSparseTensor"
        yield graph(name, op, IX, vals(3, np.float64), vec64(3, 3))
        yield graph(name, op, IX[:0], vals(0, np.float64), vec64(2, 5))
        yield graph(name, op, IB, vals(4, np.float64), vec64(2, 3, 3))
    saw = lambda i, v, s: back(csr(i, v, s), tf.float32)
    yield graph(
        "CSRSparseMatrixToSparseTensor",
        saw,
        IX,
        vals(3, np.float64),
        S33,
        error="Expected a CSRSparseMatrix of type float but saw type: double",
    )
    v = vals(3, F32)
    to = lambda i, v, s: back(csr(i, v, s), tf.float32)
    yield graph("SparseTensorToCSRSparseMatrix", to, IX[:0], vals(0, F32), S33)
    yield graph("SparseTensorToCSRSparseMatrix", to, IB[2:], vals(2, F32), vec64(3, 3, 3))
    for bad in [(IX, v[:2], S33), (IX + 2, v, S33), (IX - 1, v, S33), (IX, v, vec64(1 << 40, 3))]:
        yield graph("SparseTensorToCSRSparseMatrix", to, *bad, error="")
    m = lambda i, v, s, d: raw.SparseMatrixMatMul(a=csr(i, v, s), b=d)
    yield graph("SparseMatrixMatMul", m, IB, vals(4, F32), vec64(2, 3, 4), vals(16, F32).reshape(2, 4, 2))
    yield graph("SparseMatrixMatMul", m, IX[:0], vals(0, F32), S33, vals(6, F32).reshape(3, 2))
    yield graph(
        "SparseMatrixMatMul",
        m,
        IX,
        v,
        S33,
        vals(8, F32).reshape(4, 2),
        error="Inner product dimensions of A and B do not agree. Shapes are: [3,3] vs.",
    )
    mm = lambda i, v, s, j, w, z: back(
        raw.SparseMatrixSparseMatMul(a=csr(i, v, s), b=csr(j, w, z), type=tf.float32), tf.float32
    )
    yield graph(
        "SparseMatrixSparseMatMul",
        mm,
        IX,
        v,
        S33,
        IX,
        v,
        vec64(4, 3),
        error="Inner product dimensions of A and B do not agree.  Shapes are: [3,3]",
    )
    yield graph(
        "SparseMatrixSparseMatMul",
        mm,
        IX,
        v,
        S33,
        IB,
        vals(4, F32),
        vec64(2, 3, 3),
        error="Inner product dimensions of A and B do not agree.  Shapes are: [3,3]",
    )
    yield graph("SparseMatrixSparseMatMul", mm, IX[:0], v[:0], S33, IX, v, S33)
    dc = lambda d, i: back(raw.DenseToCSRSparseMatrix(dense_input=d, indices=i), tf.float32)
    d = vals(9, F32).reshape(3, 3)
    yield graph("DenseToCSRSparseMatrix", dc, d, IX[:0])
    for bad in [(d, IX + 2), (d, IX - 1)]:
        yield graph("DenseToCSRSparseMatrix", dc, *bad, error="indices[2] = [")
    wrong = lambda i, v, s: raw.CSRSparseMatrixToDense(sparse_input=csr(i, v, s), type=tf.float64)
    yield graph(
        "CSRSparseMatrixToDense",
        wrong,
        IX,
        v,
        S33,
        error="Asked for a CSRSparseMatrix of type double but saw dtype: float",
    )
    yield graph(
        "CSRSparseMatrixToDense",
        lambda i, v, s: raw.CSRSparseMatrixToDense(sparse_input=csr(i, v, s), type=tf.float32),
        IX[:0],
        v[:0],
        S33,
    )
    comp = lambda i, v, s, k: raw.CSRSparseMatrixComponents(
        csr_sparse_matrix=csr(i, v, s), index=k, type=tf.float32
    )
    yield graph("CSRSparseMatrixComponents", comp, IX, v, S33, i32(1), error="index (1) not in [0, 1)")
    yield graph(
        "CSRSparseMatrixComponents",
        comp,
        IB,
        vals(4, F32),
        vec64(2, 3, 3),
        i32(-1),
        error="index (-1) not in [0, 2)",
    )
    other = [IX, vals(3, np.float64), S33]
    f32 = dict(type=tf.float32)
    wrong = lambda i, v, s: raw.CSRSparseMatrixComponents(csr_sparse_matrix=csr(i, v, s), index=0, **f32)
    yield graph("CSRSparseMatrixComponents", wrong, *other, error="dtype of input is not equal to 'type':")
    wrong = lambda i, v, s: back(raw.SparseMatrixTranspose(input=csr(i, v, s), **f32), tf.float32)
    yield graph("SparseMatrixTranspose", wrong, *other, error="dtype of input is not equal to 'type':")
    eye = np.eye(3, dtype=F32)
    yield graph("SparseMatrixMatMul", m, *other, eye, error="Input types don't match.  a.dtype == double")
    wrong = lambda i, v, s: back(
        raw.SparseMatrixSparseMatMul(a=csr(i, v, s), b=csr(i, v, s), **f32), tf.float32
    )
    yield graph("SparseMatrixSparseMatMul", wrong, *other, error="dtype of a is not equal to 'type': double")
