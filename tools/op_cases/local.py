"""Loops and calls over functions of one process, mutexes, placeholders of arguments nobody reads."""
from op_cases import *

R = tf.raw_ops
I32, F = tf.int32, tf.float32


def fn(f, *specs):
    return tf.function(f).get_concrete_function(*[tf.TensorSpec(s, t) for s, t in specs])


def cases(r):
    # ---- For ----
    def loop(start, limit, delta, values, f, error=None, name=None):

        def build():
            ps = [tf.compat.v1.placeholder(I32, np.shape(b)) for b in (start, limit, delta)]
            feed = dict(zip(ps, [i32(start), i32(limit), i32(delta)]))
            xs = [tf.constant(v) for v in values]
            body = fn(f, ((), I32), *[(x.shape, x.dtype) for x in xs])
            out = R.For(start=ps[0], limit=ps[1], delta=ps[2], input=xs, body=body)
            return [Step(fetch=list(out), feed=feed, error=error)]

        return graph_case("For", build, name=name)

    add = lambda i, x: [x + tf.cast(i, F)]
    for start, limit, delta in ((0, 5, 1), (5, 0, -1), (0, 5, 2), (3, 3, 1), (3, 3, 0), (-4, 4, 3), (2, 9, 100)):
        yield loop(start, limit, delta, [np.float32(1)], add, name=f"n{start}_{limit}_{delta}")
    yield loop(0, 3, 1, [np.float32([1, 2]), np.array("s", object)], lambda i, x, s: [x * 2, tf.strings.join([s, tf.strings.as_string(i)])],
               name="two")
    yield loop(0, 5, -1, [np.float32(1)], add, "Invalid start/limit/delta: 0 5 -1", name="away")
    yield loop(5, 0, 1, [np.float32(1)], add, "Invalid start/limit/delta: 5 0 1", name="back")
    yield loop(0, 5, 0, [np.float32(1)], add, "Invalid start/limit/delta: 0 5 0", name="still")
    yield loop(0, 3, 1, [np.float32(1)], lambda i, x: [tf.reshape(tf.fill([2], x), [-1])[0] * 3], name="shapes")

    # ---- MapDefun ----
    def mapped(values, captured, f, types, shapes, error=None, name=None):

        def build():
            xs = [tf.compat.v1.placeholder(tf.as_dtype(v.dtype) if v.dtype != object else tf.string, None) for v in values]
            cs = [tf.constant(c) for c in captured]
            g = fn(f, *[(v.shape[1:], x.dtype) for v, x in zip(values, xs)], *[(c.shape, c.dtype) for c in cs])
            out = R.MapDefun(arguments=xs, captured_inputs=cs, output_types=types, output_shapes=shapes, f=g)
            return [Step(fetch=list(out), feed=dict(zip(xs, values)), error=error)]

        return graph_case("MapDefun", build, name=name)

    for n in (1, 3, 5):
        x = r.normal((n, 2))
        yield mapped([x], [], lambda x: [x * 2], [F], [(2,)], name=f"n{n}")
        yield mapped([x, i32(range(n))], [np.float32(10)], lambda x, i, c: [tf.reduce_sum(x) + c, i + 1], [F, I32], [(), ()],
                     name=f"captured{n}")
    yield mapped([np.array(["a", "b"], object)], [], lambda s: [tf.strings.join([s, s])], [tf.string], [()], name="string")
    yield mapped([r.normal((2, 2)), r.normal((3, 2))], [], lambda a, b: [a + b], [F], [(2,)],
                 "All inputs must have the same dimension 0. Input 1 has leading dimension 3, while all previous inputs have "
                 "leading dimension 2", name="sizes")
    yield mapped([r.normal((4,))], [], lambda x: [tf.stack([x, -x])], [F], [(2,)], name="grows")

    # ---- RemoteCall ----
    def remote(values, f, name=None, target="/job:localhost/replica:0/task:0/device:CPU:0", error=None):

        def build():
            xs = [tf.compat.v1.placeholder(tf.as_dtype(v.dtype) if v.dtype != object else tf.string, v.shape) for v in values]
            g = fn(f, *[(x.shape, x.dtype) for x in xs])
            out = R.RemoteCall(target=target, args=xs, Tout=[o.dtype for o in g.outputs], f=g)
            return [Step(fetch=list(out), feed=dict(zip(xs, values)), error=error)]

        return graph_case("RemoteCall", build, name=name)

    for t in ("float", "double", "int32", "int64", "string", "bool"):
        yield remote([r.numbers(t, (2, 3))], lambda x: [tf.reverse(x, [0]), tf.shape(x)], name=t)
    yield remote([r.normal((2,)), i32(3)], lambda x, n: [tf.tile(x, [n])], name="two")
    yield remote([r.normal((2,))], lambda x: [x], name="same")
    yield remote([r.normal((2,))], lambda x: [x], name="nonsense", target="nonsense",
                 error="Could not parse nonsense into a device specification.")
    yield remote([r.normal((2,))], lambda x: [x], name="elsewhere", target="/job:nobody/device:CPU:0",
                 error="Currently don't support instantiating functions on device: /job:nobody/replica:0/task:0/device:CPU:0")

    # ---- FakeParam ----
    for t in ("float", "int32", "bool", "string", "double", "half", "int64", "complex64"):
        yield case("FakeParam", dtype=tf.as_dtype(t), shape=(2, 3), compare="shape", name=t)
        yield case("FakeParam", dtype=tf.as_dtype(t), shape=(0,), compare="shape", name=t)

    # ---- mutexes ----
    def locked(op, times, name):

        def build():
            m = R.MutexV2(shared_name=name)
            steps = []
            for _ in range(times):
                lock = R.MutexLock(mutex=m)
                with tf.control_dependencies([lock]):
                    x = tf.constant(1.0) + 1
                with tf.control_dependencies([x]):
                    free = R.ConsumeMutexLock(mutex_lock=lock)
                steps.append(Step(fetch=[x], run=[free]))
            return steps

        return graph_case(op, build, name=name)

    for op in ("MutexV2", "MutexLock", "ConsumeMutexLock"):
        for n in range(1, 9):
            yield locked(op, n, f"n{n}")
