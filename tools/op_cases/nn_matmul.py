"""Matrix products, Einsum and the fused forms."""
from op_cases import *

FAST = ["float", "double", "half", "bfloat16"]


def tolerance(t):
    return {"half": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}.get(t)


def products(r):
    f = lambda *shape: r.normal(shape)
    for t in FAST + ["int32", "int64", "complex64", "complex128"]:
        for ta in (False, True):
            for tb in (False, True):
                a = r.numbers(t, (4, 3) if ta else (3, 4))
                b = r.numbers(t, (5, 4) if tb else (4, 5))
                yield case("MatMul", a, b, transpose_a=ta, transpose_b=tb, name=t, tol=tolerance(t))
                yield case("BatchMatMulV2", np.stack([a, a]), np.stack([b, b]), adj_x=ta, adj_y=tb, name=t,
                           tol=tolerance(t))
        yield case("BatchMatMul", r.numbers(t, (2, 2, 3)), r.numbers(t, (2, 3, 2)), name=t, tol=tolerance(t))
    for m, k, n in ((1, 1, 1), (1, 7, 5), (9, 1, 3), (2, 33, 4), (3, 4, 17), (16, 3, 12), (1, 200, 1)):
        yield case("MatMul", f(m, k), f(k, n), name="size")
        yield case("MatMul", f(m, k), f(n, k), transpose_b=True, name="size_transposed")
    for m, k, n in ((0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0)):
        yield case("MatMul", f(m, k), f(k, n), name="empty")
        yield case("BatchMatMulV2", f(2, m, k), f(2, k, n), name="empty")
    yield case("MatMul", np.array([[np.nan, 1], [np.inf, 0]], np.float32), f(2, 2), name="nan")
    yield case("MatMul", array("int32", [[2**30, 2**30]]), array("int32", [[2], [3]]), name="wraps")
    yield case("MatMul", f(2, 3), f(4, 5), error="Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]")
    yield case("MatMul", f(2, 3), f(4, 3), transpose_a=True, error="Matrix size-incompatible")
    yield case("MatMul", f(2, 3, 1), f(4, 5), error="")
    yield case("MatMul", f(3), f(3, 2), error="")
    for a, b in (((2, 3, 4), (4, 5)), ((4, 3), (2, 3, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((1, 3, 4), (5, 4, 2)),
                 ((2, 3, 2, 2), (2, 3, 2, 2)), ((2, 1, 2, 3), (1, 3, 3, 2)), ((0, 2, 3), (3, 2)), ((0, 2, 3), (1, 3, 2)),
                 ((1, 1, 2, 3), (3, 2)), ((2, 2), (2, 2))):
        yield case("BatchMatMulV2", f(*a), f(*b), name="broadcast")
        yield case("BatchMatMulV2", f(*a).swapaxes(-1, -2), f(*b).swapaxes(-1, -2), adj_x=True, adj_y=True,
                   name="broadcast_adjoint")
        yield case("BatchMatMulV3", f(*a), f(*b), Tout=tf.float32, name="broadcast")
    yield case("BatchMatMulV2", r.numbers("complex64", (2, 2, 2)), r.numbers("complex64", (1, 2, 2)), name="complex")
    for a, b in (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")):
        yield case("BatchMatMulV3", r.numbers(a, (2, 3)), r.numbers(b, (3, 2)), Tout=tf.int32, name=a + b)
    for t in ("double", "bfloat16", "int32", "int64", "int16", "complex64"):
        yield case("BatchMatMulV3", r.numbers(t, (2, 3)), r.numbers(t, (3, 2)), Tout=tf.as_dtype(t), name=t,
                   tol=tolerance(t))
    yield case("BatchMatMulV2", f(2, 3, 4), f(3, 4, 5), error="")
    yield case("BatchMatMulV2", f(2, 3, 4), f(2, 5, 5), error="Matrix size-incompatible")
    yield case("BatchMatMulV2", f(4), f(2, 4, 5), error="")
    yield case("BatchMatMul", f(2, 3, 4), f(1, 4, 5), error="")
    yield case("BatchMatMul", f(2, 3, 4), f(4, 5), error="")
    weights = np.arange(-7, 8, dtype=np.float32).reshape(3, 5)
    for name, zero in (("zeros", 0.0), ("zeros_below", -0.0)):
        yield case("MatMul", np.full((2, 3), zero, np.float32), weights, name=name)
    weights = weights.copy()
    weights[1, :3] = np.inf, -np.inf, np.nan
    yield case("MatMul", np.zeros((2, 3), np.float32), weights, name="zeros_by_infinity")


def einsum(r):
    f = lambda *shape: r.normal(shape)
    e = lambda eq, *ops, **more: case("Einsum", list(ops), equation=eq, **more)
    for t in FAST + ["int32", "int64", "complex64", "complex128"]:
        yield e("ij,jk->ik", r.numbers(t, (2, 3)), r.numbers(t, (3, 4)), name=t, tol=tolerance(t))
        yield e("ijk->ik", r.numbers(t, (2, 3, 2)), name=t + "_sum", tol=tolerance(t))
        yield e("ij->ji", r.numbers(t, (2, 3)), name=t + "_transpose")
    two = {
        "ij,jk->ik": ((2, 3), (3, 4)), "ij,kj->ik": ((2, 3), (4, 3)), "ji,jk->ik": ((3, 2), (3, 4)),
        "ij,jk->ki": ((2, 3), (3, 4)), "ji,kj->ki": ((3, 2), (4, 3)), "ij,ij->ij": ((2, 3), (2, 3)),
        "ij,ij->": ((2, 3), (2, 3)), "i,j->ij": ((2,), (3,)), "i,i->": ((3,), (3,)), "i,j->": ((2,), (3,)),
        "i,j->ji": ((2,), (3,)), "abc,acd->abd": ((2, 3, 4), (2, 4, 2)), "abc,cd->abd": ((2, 3, 4), (4, 2)),
        "abcd,cde->abe": ((2, 3, 2, 2), (2, 2, 3)), "aecd,abcd->acbe": ((2, 3, 2, 4), (2, 2, 2, 4)),
        "acbe,aecd->abcd": ((2, 2, 3, 2), (2, 2, 2, 3)), "abc,cde->abde": ((2, 3, 4), (4, 2, 2)),
        "BTNH,BFNH->BNFT": ((2, 3, 2, 2), (2, 2, 2, 2)), "ijk,ikl->lji": ((2, 3, 2), (2, 2, 3)),
        "ii,ij->j": ((3, 3), (3, 2)), "iij,jk->ik": ((2, 2, 3), (3, 2)), "ijk,jl->il": ((2, 3, 2), (3, 4)),
        "...ij,...jk->...ik": ((2, 3, 2), (2, 2, 3)), "...ij,jk->...ik": ((3, 2, 4), (4, 2)),
        "...ij,...jk->i...k": ((2, 1, 2, 3), (5, 3, 2)), "a...b,b...->a...": ((2, 3, 4), (4, 3)),
        "...,...->...": ((2, 1, 3), (4, 1)), "i...,i->...": ((3, 2, 2), (3,)), "...i,...j->...ij": ((1, 2), (3, 2)),
        "ab,ab->ba": ((2, 3), (2, 3)), "abc,abc->abc": ((1, 2, 3), (1, 2, 3)), "i,ij->i": ((2,), (2, 3)),
        "ij,j->iij": ((2, 3), (3,)), "a,b->aab": ((2,), (3,)), ",i->i": ((), (3,)), ",->": ((), ()),
        "ij,jk->": ((2, 3), (3, 2)), "abij,abjk->baik": ((2, 2, 2, 3), (2, 2, 3, 2)),
    }
    for eq, (a, b) in two.items():
        yield e(eq, f(*a), f(*b), name="two")
    one = {
        "ij->ij": (2, 3), "ij->ji": (2, 3), "ij->i": (2, 3), "ij->j": (2, 3), "ij->": (2, 3), "ii->i": (3, 3),
        "ii->": (3, 3), "i->ii": (3,), "ij->iij": (2, 3), "iij->ji": (2, 2, 3), "ijkl->lkji": (2, 3, 2, 2),
        "...ij->...ji": (2, 2, 3), "...->...": (2, 3), "i...->...i": (2, 3, 4), "...ii->...i": (2, 3, 3), "->": (),
        "a->a": (0,), "ab->b": (0, 3), "ijk->kj": (2, 3, 4), "...ij->...": (2, 3, 4),
    }
    for eq, a in one.items():
        yield e(eq, f(*a), name="one")
    yield e("ij,jk->ik", f(2, 0), f(0, 5), name="empty")
    yield e("ij,jk->ik", f(0, 3), f(3, 5), name="empty_rows")
    yield e("ij,jk->ik", f(2, 3), f(4, 5), error="")
    yield e("ij,jk->ik", f(2, 3), f(3, 5, 1), error="")
    yield e("i,i->i", f(1), f(3), error="")
    yield e("ii->i", f(2, 3), error="")
    yield e("...ij,jk->ik", f(2, 2, 3), f(3, 4), error="")
    yield e("...ijk->i", f(2, 3), error="")


def fused(r):
    f = lambda *shape: r.normal(shape)
    for acts in ([], ["Relu"], ["Relu6"], ["Tanh"], ["Sigmoid"], ["LeakyRelu"], ["Elu"]):
        yield case("_FusedMatMul", f(3, 4), f(4, 5), [f(5)], fused_ops=["BiasAdd", *acts], name="fused")
        yield case("_FusedMatMul", f(3, 4), f(5, 4), [f(5)], fused_ops=["BiasAdd", *acts],
                   transpose_b=True, name="fused_transposed")
        if acts not in (["Tanh"], ["Sigmoid"]):
            yield case("_FusedConv2D", f(1, 4, 4, 2), f(3, 3, 2, 3), [f(3)], [], fused_ops=["BiasAdd", *acts], num_args=1,
                       strides=[1, 1, 1, 1], padding="SAME", name="fused")
            yield case("_FusedConv2D", f(1, 4, 4, 2), f(3, 3, 2, 3), [f(3), f(3), f(3), r.uniform((3,), 0.5, 2)], [],
                       fused_ops=["FusedBatchNorm", *acts], num_args=4, epsilon=0.001, strides=[1, 2, 2, 1],
                       padding="VALID", name="fused_norm")
    yield case("_FusedConv2D", r.numbers("double", (1, 4, 4, 2)), r.numbers("double", (1, 1, 2, 3)),
               [r.numbers("double", (3,))], [], fused_ops=["BiasAdd", "Relu"], num_args=1, strides=[1, 1, 1, 1],
               padding="SAME", name="double")
    yield case("_FusedMatMul", f(2, 3), f(4, 5), [f(5)], fused_ops=["BiasAdd"], error="")


def more(r):
    f = lambda *shape: r.normal(shape)
    yield case("BatchMatMulV3", f(2, 3, 4), f(2, 5, 5), Tout=tf.float32, error="Matrix size-incompatible")
    yield case("BatchMatMulV3", f(2, 3, 4), f(3, 4, 5), Tout=tf.float32, error="")
    yield case("BatchMatMulV3", f(0, 3, 4), f(0, 4, 5), Tout=tf.float32, name="empty")
    for a, b in (((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 3)), ((2, 0, 3), (2, 3, 0))):
        yield case("BatchMatMul", f(*a), f(*b), name="empty")
    yield case("BatchMatMul", np.float32([[[np.nan, 1], [np.inf, 0]]]), f(1, 2, 2), name="nan")
    # Not of inner size 0: TensorFlow leaves the bias out, which the ops that were fused would not.
    yield case("_FusedMatMul", f(0, 3), f(3, 5), [f(5)], fused_ops=["BiasAdd"], name="empty")
    yield case("_FusedMatMul", np.float32([[np.nan, 1]]), f(2, 3), [f(3)], fused_ops=["BiasAdd", "Relu"], name="nan")
    yield case("_FusedConv2D", f(0, 4, 4, 2), f(3, 3, 2, 3), [f(3)], [], fused_ops=["BiasAdd", "Relu"], num_args=1,
               strides=[1, 1, 1, 1], padding="SAME", name="empty")
    c = r.numbers("complex128", (2, 2, 2))
    yield case("BatchMatMulV3", c, c, Tout=tf.complex128, adj_x=True, name="complex128")
    yield case("_FusedConv2D", f(1, 4, 4, 2), f(3, 3, 3, 3), [f(3)], [], fused_ops=["BiasAdd"], num_args=1,
               strides=[1, 1, 1, 1], padding="SAME", error="")


def cases(r):
    yield from products(r)
    yield from einsum(r)
    yield from fused(r)
    yield from more(r)
