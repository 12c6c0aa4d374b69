"""Lookups in variables, which a session that finds nobody writing them makes lookups in constants; products of small matrices."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def lookup(r, name, shape, op, indices, error=None, write_between=False, **attrs):
    """The variable is assigned, read twice and, where asked, assigned anew: later reads see the new values."""

    def build():
        v = R.VarHandleOp(dtype=tf.float32, shape=shape, shared_name="v")
        x = tf.compat.v1.placeholder(tf.float32, shape)
        i = tf.compat.v1.placeholder(tf.int32 if indices.dtype == np.int32 else tf.int64, indices.shape)
        write = R.AssignVariableOp(resource=v, value=x)
        out = R.Neg(x=R.Exp(x=op(resource=v, indices=i, dtype=tf.float32, **attrs)))
        read = Step(fetch=[out], feed={i: indices}, error=error)
        steps = [Step(run=[write], feed={x: r.normal(shape)}), read]
        if not error:
            steps.append(read)
        if write_between:
            steps += [Step(run=[write], feed={x: r.normal(shape)}), read]
        return steps

    return graph_case("ResourceGatherNd" if op is R.ResourceGatherNd else "ResourceGather", build, name=name)


def product(r, m, k, n, steps):
    def build():
        a, b = tf.compat.v1.placeholder(tf.float32, [m, k]), tf.compat.v1.placeholder(tf.float32, [n, k])
        y = R.MatMul(a=R.Neg(x=a), b=R.Neg(x=b), transpose_b=True)
        if steps:
            bias = tf.compat.v1.placeholder(tf.float32, [n])
            y = R.Relu(features=R.BiasAdd(value=y, bias=bias))
        feed = {a: r.normal([m, k]), b: r.normal([n, k])}
        if steps:
            feed[bias] = r.normal([n])
        return [Step(fetch=[y], feed=feed)]

    return graph_case("MatMul", build, name=f"turned_{m}x{k}x{n}{'_steps' if steps else ''}")


def cases(r):
    i64 = lambda v: np.array(v, np.int64)
    yield lookup(r, "rows", [4, 3], R.ResourceGather, i32([[3, 0], [1, 1]]))
    yield lookup(r, "rows_int64", [4, 3], R.ResourceGather, i64([2]))
    yield lookup(r, "none", [4, 3], R.ResourceGather, i32([]))
    yield lookup(r, "written_between", [4, 3], R.ResourceGather, i32([3, 0]), write_between=True)
    yield lookup(r, "beside", [2, 3, 2], R.ResourceGather, i32([[1, 2], [0, 0]]), batch_dims=1)
    yield lookup(r, "too_far", [4, 3], R.ResourceGather, i32([0, 4]), error="indices[1] = 4 is not in [0, 4)")
    yield lookup(r, "negative", [4, 3], R.ResourceGather, i32([-1]), error="indices[0] = -1 is not in [0, 4)")
    yield lookup(r, "places", [4, 3], R.ResourceGatherNd, i32([[3, 0], [1, 1]]))
    yield lookup(r, "places_rows", [4, 3], R.ResourceGatherNd, i32([[3], [1]]), write_between=True)
    yield lookup(r, "places_too_far", [4, 3], R.ResourceGatherNd, i32([[4, 0]]), error="does not index into")
    for m, k, n in ((4, 1, 1), (4, 5, 3), (5, 17, 16), (9, 3, 33), (3, 4, 5), (27, 8, 9)):
        yield product(r, m, k, n, False)
    yield product(r, 6, 7, 19, True)
