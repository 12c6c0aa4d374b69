"""Conditional accumulators of gradients and temporary variables."""
from op_cases import *
from op_cases.state import ph, fed

R = tf.raw_ops


def dense(prefix=""):
    """The ops of one family: make, apply, take, count, set."""
    g = lambda name: getattr(R, prefix + name)

    def make(t, shape, **more):
        return g("ConditionalAccumulator")(dtype=tf.as_dtype(t), shape=shape, shared_name="acc", **more)

    def apply(h, step, grad, error=None):
        (s, v), feed = fed([i64(step), grad])
        return Step(run=[g("AccumulatorApplyGradient")(handle=h, local_step=s, gradient=v)], feed=feed, error=error)

    def take(h, n, t, error=None):
        (p,), feed = fed([i32(n)])
        return Step(fetch=[g("AccumulatorTakeGradient")(handle=h, num_required=p, dtype=tf.as_dtype(t))], feed=feed, error=error)

    def count(h):
        return Step(fetch=[g("AccumulatorNumAccumulated")(handle=h)])

    def at(h, step, error=None):
        (p,), feed = fed([i64(step)])
        return Step(run=[g("AccumulatorSetGlobalStep")(handle=h, new_global_step=p)], feed=feed, error=error)

    return make, apply, take, count, at


def dense_cases(r, prefix):
    make, apply, take, count, at = dense(prefix)
    op = prefix + "ConditionalAccumulator"

    def run(name, t, shape, steps, op=op, **more):
        def build():
            h = make(t, shape, **more)
            return [s(h) for s in steps]

        return graph_case(op, build, name=name, tol=(2e-3, 2e-3) if t == "half" else None)

    a = lambda *x, **k: lambda h: apply(h, *x, **k)
    k = lambda *x, **m: lambda h: take(h, *x, **m)
    s = lambda *x, **m: lambda h: at(h, *x, **m)
    apply_op, take_op = prefix + "AccumulatorApplyGradient", prefix + "AccumulatorTakeGradient"
    for t in ("float", "double", "half"):
        for kind in ("MEAN", "SUM"):
            g = [r.numbers(t, (2, 3)) for _ in range(4)]
            about = take_op if kind == "MEAN" else apply_op
            yield run(f"{kind}_{t}", t, [2, 3], [s(7), count, s(0), count], reduction_type=kind)
            yield run(f"step_{kind}_{t}", t, [2], [s(2), a(1, g[0][0, :2]), a(2, g[1][0, :2]), count, s(5), k(1, t), count],
                      op=prefix + "AccumulatorSetGlobalStep", reduction_type=kind)
            yield run(f"{kind}_{t}", t, [2, 3], [count, a(0, g[0]), a(0, g[1]), a(5, g[2]), count, k(2, t), count, a(1, g[3]), k(1, t)],
                      op=about, reduction_type=kind)
    f = lambda *shape: r.normal(shape)
    for name, shape in (("scalar", []), ("matrix", [1, 2])):
        yield run("two_of_" + name, "float", shape, [a(0, f(*shape)), lambda h: count(make("float", shape)), k(1, "float")], op=op)
    yield run("stale", "float", [2], [s(3), a(2, f(2)), count, a(3, f(2)), count, k(1, "float"), a(3, f(2)), count, a(4, f(2)), count],
              op=apply_op)
    yield run("back", "float", [2], [s(3), s(1), a(1, f(2)), count], op=prefix + "AccumulatorSetGlobalStep")
    yield run("unknown_shape", "float", [None, 2], [a(0, f(3, 2)), a(0, f(3, 2)), k(1, "float"), a(1, f(1, 2)), k(1, "float")], op=apply_op)
    yield run("any_shape", "float", None, [a(0, f(3)), k(1, "float")], op=apply_op)
    yield run("scalar", "float", [], [a(0, f()), a(0, f()), k(2, "float")], op=take_op)
    yield run("empty", "float", [0], [a(0, f(0)), k(1, "float")], op=take_op)
    yield run("edge", "float", [3], [a(0, np.array([np.inf, np.nan, 1], np.float32)), a(0, f(3)), k(1, "float")], op=take_op)
    yield run("shape", "float", [2], [a(0, f(3), error="Shape mismatch: expected [2], got [3]"), count], op=apply_op)
    yield run("rank", "float", [2], [a(0, f(2, 1), error="Shape mismatch: expected [2], got [2,1]")], op=apply_op)
    yield run("other_shape", "float", [None], [a(0, f(3)), a(0, f(2), error="Shape mismatch: expected [3], got [2]"), count],
              op=apply_op)
    yield run("none_required", "float", [2], [a(0, f(2)), k(0, "float", error="num_required must be positive, but was 0")], op=take_op)
    yield run("negative_required", "float", [2], [a(0, f(2)), k(-1, "float", error="num_required must be positive, but was -1")], op=take_op)


def sparse_cases(r):
    def apply(step, i, v, shape=(), known=True, error=None):
        def f(h):
            (s, ii, vv, sh), feed = fed([i64(step), i64(i), v, i64(shape)])
            return Step(run=[R.SparseAccumulatorApplyGradient(handle=h, local_step=s, gradient_indices=ii, gradient_values=vv,
                                                              gradient_shape=sh, has_known_shape=known)], feed=feed, error=error)

        return f

    def take(n, t="float", error=None):
        def f(h):
            (p,), feed = fed([i32(n)])
            out = R.SparseAccumulatorTakeGradient(handle=h, num_required=p, dtype=tf.as_dtype(t))
            return Step(fetch=list(out), feed=feed, error=error)

        return f

    count = lambda h: Step(fetch=[R.AccumulatorNumAccumulated(handle=h)])

    def run(name, t, shape, steps, op="SparseConditionalAccumulator", **more):
        def build():
            h = R.SparseConditionalAccumulator(dtype=tf.as_dtype(t), shape=shape, shared_name="sparse", **more)
            return [s(h) for s in steps]

        return graph_case(op, build, name=name, tol=(2e-3, 2e-3) if t == "half" else None)

    n = r.numbers
    A, T = "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"
    for t in ("float", "double", "half"):
        for kind in ("MEAN", "SUM"):
            yield run(f"{kind}_{t}", t, [5, 2], [count, apply(0, [1], n(t, (1, 2)), [5, 2]), count], reduction_type=kind)
            yield run(f"{kind}_{t}", t, [5, 2], [apply(0, [0, 3], n(t, (2, 2)), [5, 2]), apply(0, [1, 3, 4], n(t, (3, 2)), [5, 2]),
                                                 apply(0, [0, 3], n(t, (2, 2)), [5, 2]), count, take(2, t), count,
                                                 apply(1, [2], n(t, (1, 2)), [5, 2]), take(1, t)], op=T, reduction_type=kind)
    f = lambda *shape: r.normal(shape)
    yield run("unknown", "float", None, [apply(0, [1, 2], f(2, 3), [4, 3]), apply(0, [0, 2], f(2, 3), [4, 3]), take(1)], op=A)
    yield run("no_shape", "float", None, [apply(0, [1, 2], f(2, 3), known=False), apply(0, [0, 2], f(2, 3), known=False), take(1)], op=A)
    yield run("no_shape_known", "float", [4, 3], [apply(0, [1, 2], f(2, 3), known=False), take(1)], op=A)
    yield run("part_shape", "float", [None, 3], [apply(0, [1, 2], f(2, 3), [4, 3]), take(1)], op=A)
    yield run("vector", "float", [4], [apply(0, [1, 2], f(2), [4]), apply(0, [2, 3], f(2), [4]), take(2)], op=A)
    yield run("stale", "float", [4], [apply(0, [1], f(1), [4]), take(1), apply(0, [1], f(1), [4]), count], op=A)
    yield run("deep", "float", [3, 2, 2], [apply(0, [2, 0], f(2, 2, 2), [3, 2, 2]), take(1)], op=T)
    yield run("unsorted", "float", [5], [apply(0, [3, 1], f(2), [5]), apply(0, [4, 0], f(2), [5]), take(1)], op=A)
    yield run("twice", "float", [5], [apply(0, [3, 3], f(2), [5]), take(1)], op=A)
    yield run("none", "float", [5], [apply(0, [], f(0), [5]), count, apply(0, [2], f(1), [5]), take(2)], op=A)
    yield run("shape", "float", [4, 3], [apply(0, [1], f(1, 2), [4, 2], error="expected shape dim 1 to be 3, got 2")], op=A)
    yield run("rank", "float", [4, 3], [apply(0, [1], f(1), [4], error="expected shape rank at least 2, got 1")], op=A)
    yield run("values_shape", "float", [4, 3], [apply(0, [1], f(1, 2), [4, 3], error="expected values dim 1 to be 3, got 2")], op=A)
    yield run("count", "float", [4, 3], [apply(0, [1, 2], f(1, 3), [4, 3], error="Expected 2 non-empty input values, got 1")], op=A)
    yield run("index_rank", "float", [4, 3], [apply(0, [[1]], f(1, 3), [4, 3], error="Input indices should be vector but received shape: [1,1]")], op=A)
    yield run("outside", "float", [4, 3], [apply(0, [4], f(1, 3), [4, 3], error="index of slice 0 exceeded limits of shape; index is 4 exceeded 4")], op=A)
    yield run("scalar_values", "float", [4], [apply(0, [1], f(), [4], error="Values cannot be 0-dimensional.")], op=A)
    yield run("none_required", "float", [4], [apply(0, [1], f(1), [4]), take(0, error="num_required must be positive, but was 0")], op=T)
    yield run("later_shape", "float", None, [apply(0, [1], f(1, 3), [4, 3]), apply(0, [1], f(1, 2), [4, 2], error="expected values dim 1 to be 3, got 2")], op=A)


def temporary(r):
    for t in FLOATING + COMPLEX + ["bool", "int64", "uint32"]:
        def build(t=t):
            v = R.TemporaryVariable(shape=[2, 2], dtype=tf.as_dtype(t), var_name="tmp")
            p = ph(t)
            a = R.Assign(ref=v, value=p)
            return [Step(fetch=[R.DestroyTemporaryVariable(ref=a, var_name="tmp")], feed={p: r.numbers(t, (2, 2))})] * 2

        for op in ("TemporaryVariable", "DestroyTemporaryVariable"):
            yield graph_case(op, build, name=t)

    def added():
        v = R.TemporaryVariable(shape=[2], dtype=tf.float32)
        p, q = ph("float"), ph("float")
        b = R.AssignAdd(ref=R.Assign(ref=v, value=p), value=q)
        return [Step(fetch=[R.DestroyTemporaryVariable(ref=b, var_name=v.op.name)], feed={p: r.normal((2,)), q: r.normal((2,))})]

    yield graph_case("DestroyTemporaryVariable", added, name="by_node_name")

    def wrong_name():
        v = R.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="a")
        p = ph("float")
        a = R.Assign(ref=v, value=p)
        return [Step(fetch=[R.DestroyTemporaryVariable(ref=a, var_name="b")], feed={p: r.normal((2,))},
                     error="does not exist")]

    yield graph_case("DestroyTemporaryVariable", wrong_name, name="wrong_name")

    def shape():
        v = R.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="a")
        p = ph("float")
        a = R.Assign(ref=v, value=p)
        return [Step(fetch=[R.DestroyTemporaryVariable(ref=a, var_name="a")], feed={p: r.normal((3,))},
                     error="Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]")]

    yield graph_case("TemporaryVariable", shape, name="wrong_shape")

    def twice():
        v = R.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="a")
        p = ph("float")
        with tf.control_dependencies([v.op]):
            w = R.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="a")
        return [Step(run=[w.op, v.op], error="TmpVarE")]

    yield graph_case("TemporaryVariable", twice, name="twice")

    def counted(t, start, limit):
        v = R.VariableV2(shape=[], dtype=t, shared_name="n")
        n = R.CountUpTo(ref=v, limit=limit)
        return [Step(run=[R.Assign(ref=v, value=tf.constant(start, t)).op])] + [Step(fetch=[n])] * (limit - start) + [
            Step(fetch=[n], error="Reached limit of"), Step(fetch=[tf.identity(v)])]

    for t in (tf.int32, tf.int64):
        for start, limit in ((0, 2), (-3, -1), (5, 5), (2**31 - 2, 2**31 - 1)):
            yield graph_case("CountUpTo", lambda t=t, s=start, l=limit: counted(t, s, l), name=t.name)


def cases(r):
    yield from dense_cases(r, "")
    yield from dense_cases(r, "Resource")
    yield from sparse_cases(r)
    yield from temporary(r)
