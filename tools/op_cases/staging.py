"""Staging areas and barriers."""
from op_cases import *

R = tf.raw_ops
F, I, S = tf.float32, tf.int64, tf.string


def ph(dtype):
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), None)


def words(*v):
    return np.array(v, object)


def play(op, *moves, name=None, **area):
    """Moves on one area, each a step: (op, inputs by name, attributes, error)."""

    def build():
        steps = []
        for op_name, inputs, attrs, error in moves:
            feed, kwargs = {}, dict(area, **attrs)

            def given(v):
                v = np.asarray(v)
                p = ph(S if v.dtype == object else v.dtype)
                feed[p] = v
                return p

            for k, v in inputs.items():
                kwargs[k] = [given(x) for x in v] if isinstance(v, list) else given(v)
            made = getattr(R, op_name)(**kwargs)
            if isinstance(made, tf.Operation):
                steps.append(Step(run=[made], feed=feed, error=error))
            else:
                made = list(tf.nest.flatten(made)) if isinstance(made, (list, tuple)) else [made]
                steps.append(Step(fetch=made, feed=feed, error=error))
        return steps

    return graph_case(op, build, name=name)


def put(*values, error=None, **attrs):
    return ("Stage", dict(values=list(values)), attrs, error)


def get(*types, error=None, **attrs):
    return ("Unstage", {}, dict(dtypes=list(types), **attrs), error)


def peek(index, *types, error=None, **attrs):
    return ("StagePeek", dict(index=i32(index)), dict(dtypes=list(types), **attrs), error)


def stages(r):
    size = ("StageSize", {}, dict(dtypes=[F]), None)
    clear = ("StageClear", {}, dict(dtypes=[F]), None)
    for t in ("float", "int32", "string", "bool", "complex64", "half", "uint8", "double"):
        d = tf.as_dtype(t)
        for op in ("Stage", "Unstage"):
            yield play(op, put(r.numbers(t, (2, 3))), put(r.numbers(t)), size, get(d), size, get(d), size, name=t,
                       shared_name="s")
        for op in ("StagePeek", "StageSize", "StageClear"):
            yield play(op, put(r.numbers(t, (2,))), put(r.numbers(t)), peek(1, d), peek(0, d), size, clear, size, name=t,
                       shared_name="s")
    pair = put(r.normal((2,)), words("a", "b"))
    yield play("Stage", pair, pair, get(F, S), size, peek(0, F, S), size, name="pair", shared_name="s")
    yield play("Stage", put(r.normal((200,)), error="Attempted to insert tensors with combined size of '800' bytes into "
                            "Staging Area with a memory limit of '100'.", memory_limit=100), size, name="memory_limit",
               shared_name="s", memory_limit=100)
    yield play("Stage", put(r.normal((5,))), put(r.normal((5,))), size, get(F), put(r.normal((5,))), size, name="capacity",
               shared_name="s", capacity=2)
    yield play("Unstage", pair, get(F, error="Mismatch stage/unstage: 2 vs. 1"), size, name="count", shared_name="s")
    yield play("Unstage", put(r.normal((2,))), get(I, error="Output 0 of type float does not match declared output type "
                                                   "int64 for node"), size, name="type", shared_name="s")
    yield play("StagePeek", pair, peek(0, F, error="Mismatch stage/unstage: 2 vs. 1"), name="count", shared_name="s")
    yield play("StageClear", clear, size, pair, clear, size, name="empty", shared_name="s")
    yield play("StageSize", size, pair, size, name="named", shared_name="t", container="c")


def maps(r):
    for o in ("", "Ordered"):

        def stage(key, indices, *values, error=None):
            return (o + "MapStage", dict(key=i64(key), indices=i32(indices), values=list(values)), {}, error)

        def take(key, indices, *types, error=None):
            return (o + "MapUnstage", dict(key=i64(key), indices=i32(indices)), dict(want=list(types)), error)

        def look(key, indices, *types, error=None):
            return (o + "MapPeek", dict(key=i64(key), indices=i32(indices)), dict(want=list(types)), error)

        def any_key(indices, *types, error=None):
            return (o + "MapUnstageNoKey", dict(indices=i32(indices)), dict(want=list(types)), error)

        n, incomplete, clear = ((o + k, {}, {}, None) for k in ("MapSize", "MapIncompleteSize", "MapClear"))

        # `dtypes` of an area are those of its tuples; what an op gives out is of the types asked for.
        def area(op, types, *moves, name=None, **more):
            def of(m):
                op_name, inputs, attrs, error = m
                attrs = dict(attrs)
                want = attrs.pop("want", None)
                return (op_name, inputs, dict(attrs, dtypes=list(want or types)), error)
            return play(o + op, *[of(m) for m in moves], name=name, shared_name="m" + o, **more)

        for t in ("float", "int32", "string", "bool", "complex128", "half", "uint8", "double"):
            d = tf.as_dtype(t)
            one, two = r.numbers(t, (2,)), r.numbers(t, (1, 3))
            yield area("MapStage", [d], stage(5, [0], one), stage(-2, [0], two), n, take(5, [0], d), n,
                       take(-2, [0], d), n, name=t)
            yield area("MapUnstage", [d, d], stage(5, [0, 1], one, two), n, look(5, [1], d), take(5, [0, 1], d, d), n, name=t)
            yield area("MapPeek", [d, d], stage(5, [1], one), incomplete, stage(5, [0], two), incomplete, n,
                       look(5, [0, 1], d, d), look(5, [1], d), n, name=t)
            yield area("MapUnstageNoKey", [d], stage(5, [0], one), any_key([0], d), n, name=t)
            yield area("MapSize", [d], n, stage(1, [0], one), stage(2, [0], one), n, name=t)
            yield area("MapIncompleteSize", [d, d], stage(1, [0], one), stage(2, [1], one), incomplete, n,
                       stage(2, [0], one), incomplete, n, name=t)
            yield area("MapClear", [d, d], stage(1, [0], one), stage(2, [0, 1], one, two), clear, n, incomplete, name=t)
        x, y, z = r.normal((2,)), words("a"), i64(3)
        yield area("MapStage", [F, S, I], stage(1, [0, 2], x, z), stage(2, [2, 0], z, x, error="Indices are not strictly ordered"), incomplete, stage(1, [1], y), n,
                   take(1, [0, 1, 2], F, S, I), name="parts")
        yield area("MapStage", [F, S], stage(1, [0], x), stage(1, [0], x, error="The tensor for index '0' for key '1' was already "
                                                            "initialized '2'."), incomplete, name="again")
        yield area("MapStage", [F, S], stage(1, [2], x, error="Index '2' for key '1' was out of bounds '2'."), stage(
            1, [-1], x, error="was out of bounds '2'."), name="bad_index")
        yield area("MapStage", [F], stage(1, [0], x), stage(1, [0], x * 2), n, take(1, [0], F), n, name="same_key")
        yield area("MapStage", [F, S], n, stage(1, [0, 1], x, y), take(1, [1], S), n,
                   take(1, [0], F), n, name="taken_in_parts")
        yield area("MapUnstage", [F, S], stage(1, [0, 1], x, y), take(1, [1], S), take(
            1, [1], S, error="Tensor at index '1' for key '1' has already been removed."), name="twice")
        yield area("MapUnstage", [F, S], stage(1, [0, 1], x, y), take(1, [2], S, error="was out of bounds '2'."), n, name="wrong")
        yield area("MapPeek", [F, S], stage(1, [0, 1], x, y), take(1, [1], S), look(
            1, [1], S, error="has already been removed."), name="taken")
        yield area("MapStage", [F], (o + "MapStage", dict(key=i64(1), indices=i32([0]), values=[r.normal((90,))]),
                                     {}, "Attempted to insert tensors with combined size of '360' bytes into Staging Area "
                                     "with a memory limit of '50'."), name="memory_limit", memory_limit=50)
        if o:
            yield area("MapUnstageNoKey", [F], stage(5, [0], x), stage(-1, [0], x + 1), stage(3, [0], x + 2),
                       any_key([0], F), any_key([0], F), any_key([0], F), n, name="order")
            yield area("MapUnstageNoKey", [F, S], stage(5, [0, 1], x, y), stage(1, [0], x), any_key([1], S), n,
                       any_key([0], F), n, name="parts")
        bad = dict(key=i64([1, 2]), indices=i32([0]), values=[x])
        yield area("MapStage", [F], (o + "MapStage", bad, {}, "key must be an int64 scalar, got tensor with shape: [2]"),
                   name="bad_arguments")


def barriers(r):

    def on_barrier(op, types, *moves, name=None, shapes=None):

        def build():
            h = R.Barrier(component_types=types, shapes=shapes or [], shared_name="b")
            return [m(h) for m in moves]

        return graph_case(op, build, name=name)

    def insert(keys, values, index=0, error=None):

        def move(h):
            k, v = ph(S), ph(S if values.dtype == object else values.dtype)
            return Step(run=[R.BarrierInsertMany(handle=h, keys=k, values=v, component_index=index)],
                        feed={k: keys, v: values}, error=error)

        return move

    def take(n, *types, error=None, **attrs):

        def move(h):
            k = ph("int32")
            out = R.BarrierTakeMany(handle=h, num_elements=k, component_types=list(types), **attrs)
            return Step(fetch=[out.indices, out.keys] + list(out.values), feed={k: i32(n)}, error=error)

        return move

    ready = lambda h: Step(fetch=[R.BarrierReadySize(handle=h)])
    incomplete = lambda h: Step(fetch=[R.BarrierIncompleteSize(handle=h)])

    def close(cancel=False, error=None):
        return lambda h: Step(run=[R.BarrierClose(handle=h, cancel_pending_enqueues=cancel)], error=error)

    ab = words("a", "b")
    for t in ("float", "double", "int32", "string", "bool", "int64", "half", "uint8"):
        d = tf.as_dtype(t)
        v = r.numbers(t, (2,))
        for op in ("Barrier", "BarrierInsertMany", "BarrierTakeMany"):
            yield on_barrier(op, [d], ready, incomplete, insert(ab, v), ready, incomplete, take(1, d), ready, take(1, d),
                             name=t, shapes=[()])
        for op in ("BarrierReadySize", "BarrierIncompleteSize", "BarrierClose"):
            yield on_barrier(op, [d, F], insert(ab, v), ready, incomplete, insert(ab[:1], np.float32([4]), 1), ready,
                             incomplete, close(), ready, incomplete, take(1, d, F), name=t, shapes=[(), ()])
    x = r.normal((2, 3))
    yield on_barrier("BarrierInsertMany", [F, F], insert(words("b", "a"), x, 1), insert(words("a", "c"), x, 0), insert(
        words("b", "c"), x, 0), ready, incomplete, name="order", shapes=[(3,), (3,)])
    yield on_barrier("BarrierTakeMany", [F, F], insert(words("b", "a", "c"), np.float32([1, 2, 3]), 1),
                     insert(words("c", "a"), np.float32([4, 5]), 0), take(2, F, F), insert(words("b"), np.float32([6])),
                     take(1, F, F), name="indices", shapes=[(), ()])
    yield on_barrier("BarrierInsertMany", [F], insert(words("a", "a"), np.float32([1, 2])), ready,
                     incomplete, name="twice_in_one", shapes=[()])
    yield on_barrier("BarrierInsertMany", [F, F], insert(words("a"), np.float32([1])), insert(
        words("a"), np.float32([2]), error="Key a already has a value for component 0 in barrier b"), name="twice", shapes=[(), ()])
    yield on_barrier("BarrierInsertMany", [F], insert(words("a"), np.float32([1])), insert(words("a"), np.float32([2])),
                     take(2, F), name="key_again", shapes=[()])
    yield on_barrier("BarrierInsertMany", [F], insert(
        words("a"), np.float32([1]), 1, error="The component ID is out of range 1 > num_components (= 1)"), insert(
            words("a"), i32([1]), error="have: string_ref, string, int32-> expected: string_ref, string, float->"), insert(
                words("a"), np.float32([[1]]), error="Shape mismatch in tuple component 2. Expected [], got [1]"), name="wrong",
                     shapes=[()])
    yield on_barrier("BarrierInsertMany", [F], insert(words(), np.float32([])), ready, incomplete, name="none", shapes=[()])
    yield on_barrier("BarrierTakeMany", [F], insert(ab, np.float32([1, 2])), take(
        1, I, error="have: string_ref, int32->int64, string, int64 expected: string_ref, int32->int64, string, float"), take(
            1, F, F, error="Signature mismatch"), ready, name="wrong", shapes=[()])
    yield on_barrier("BarrierTakeMany", [F], insert(ab, np.float32([1, 2])), close(), take(3, F, error="Barrier 'b' is closed and has "
                     "insufficient elements (requested 3, total size 2)"), ready, take(
        3, F, allow_small_batch=True), take(3, F, allow_small_batch=True, error="(requested 0, total size 0)"), name="closed", shapes=[()])
    yield on_barrier("BarrierClose", [F, F], insert(ab, np.float32([1, 2])), close(), insert(
        words("c"), np.float32([1]), error="Barrier b is closed, but attempted to insert a brand new key: c.  Pending "
        "enqueues cancelled: 0.  Insertion index: 0.  Number of incomplete keys: 2."), insert(
            words("a"), np.float32([1]), 1), take(
            1, F, F), ready, incomplete, insert(words("b"), np.float32([1]), 1), take(1, F, F), take(
                1, F, F, error="(requested 1, total size 0)"), name="no_new_keys", shapes=[(), ()])
    yield on_barrier("BarrierClose", [F, F], insert(ab, np.float32([1, 2])), close(cancel=True), insert(
        words("c"), np.float32([1]), error="Barrier b is closed.  Pending enqueues cancelled: 1.  Number of new "
        "insertions: 1.  Number of incomplete keys: 0."), insert(
            words("a"), np.float32([1]), 1, error="is closed."), incomplete, ready, take(
                1, F, F, error="total size 0"), close(error="is already closed."), name="cancel", shapes=[(), ()])
    yield on_barrier("BarrierClose", [F], close(), close(error="is already closed."), name="twice", shapes=[()])
    unready = lambda h: Step(fetch=[R.BarrierReadySize(handle=h)], error="All of the component shapes must be specified")
    yield on_barrier("Barrier", [F], unready, name="any_shape")
    yield on_barrier("Barrier", [F, F], unready, name="shape_count", shapes=[()])

    def shared():
        a = R.Barrier(component_types=[F], shapes=[()], shared_name="b")
        b = R.Barrier(component_types=[I], shapes=[()], shared_name="b")
        return [Step(fetch=[R.BarrierReadySize(handle=a)]), Step(
            fetch=[R.BarrierReadySize(handle=b)], error="Shared barrier 'b' has component types float but requested "
            "component types were int64")]

    yield graph_case("Barrier", shared, name="shared")

    def bounded():
        a = R.Barrier(component_types=[F], shapes=[()], capacity=5, shared_name="b")
        return [Step(fetch=[R.BarrierReadySize(handle=a)], error="Barrier only accepts capacity=-1.")]

    yield graph_case("Barrier", bounded, name="capacity")


def cases(r):
    yield from stages(r)
    yield from maps(r)
    yield from barriers(r)
