"""Reference variables and tables behind references."""
import os
import tempfile

from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(dtype):
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), None)


def fed(values):
    """Placeholders for arrays, and what feeds them."""
    arrays = [np.asarray(v) for v in values]
    ps = [ph("string" if a.dtype.kind in "OSU" else a.dtype) for a in arrays]
    return ps, dict(zip(ps, arrays))


def text(*words):
    return np.array(words, object)


def variable(dtype, shape=None, op=R.VariableV2):
    return op(shape=tf.TensorShape(shape), dtype=tf.as_dtype(dtype), shared_name="v")


def on_ref(op, t, start, change, error=None, name=None):
    """Assigns `start` (None: leaves the variable alone), runs change(ref), reads what it made and the variable."""

    def build():
        v = variable(t)
        steps = []
        if start is not None:
            (x,), feed = fed([start])
            steps.append(Step(run=[R.Assign(ref=v, value=x, validate_shape=False).op], feed=feed))
        made, feed = change(v)
        steps.append(Step(fetch=[R.Identity(input=made)], feed=feed, error=error))
        if error is None:
            steps.append(Step(fetch=[R.Identity(input=v)]))
        return steps

    return graph_case(op, build, name=name)


def changed(op, t, start, value, error=None, name=None, **attrs):

    def change(v):
        (x,), feed = fed([value])
        return getattr(R, op)(ref=v, value=x, **attrs), feed

    return on_ref(op, t, start, change, error, name)


def variables(r):
    types = ["float", "double", "half", "bfloat16", "int64", "uint32", "bool", "complex64", "complex128"]
    for name in ("Variable", "VariableV2"):
        op = getattr(R, name)
        for t in types:

            def build(t=t, op=op):
                v = variable(t, [2], op)
                (x,), feed = fed([r.numbers(t, (2,))])
                return [Step(fetch=[R.IsVariableInitialized(ref=v)]),
                        Step(run=[R.Assign(ref=v, value=x).op], feed=feed),
                        Step(fetch=[R.IsVariableInitialized(ref=v), R.Identity(input=v)])]

            yield graph_case(name, build, name=t)
        yield graph_case(name, lambda op=op: [Step(
            fetch=[R.Identity(input=variable("float", [2], op))], error="Attempting to use uninitialized value")],
            name="uninitialized")
    for t in types:
        yield changed("Assign", t, r.numbers(t, (2,)), r.numbers(t, (2,)), name=t)
    yield changed("Assign", "float", r.normal((2,)), r.normal((3,)), name="shape",
                  error="Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]")
    yield changed("Assign", "float", r.normal((2,)), r.normal((0, 3)), name="other_shape", validate_shape=False)

    def without_shape():
        (x,), feed = fed([np.float32([1, 2])])
        return [Step(run=[R.Assign(ref=variable("float", None), value=x).op], feed=feed,
                     error="Assign requires shapes of both tensors to match. lhs shape= [] rhs shape= [2]")]

    yield graph_case("Assign", without_shape, name="without_shape")
    yield graph_case("VariableV2", lambda: [Step(fetch=[R.IsVariableInitialized(ref=variable("float", [None, 2]))],
                                                 error="Shape [?,2] is not fully defined")], name="part_of_shape")
    yield changed("Assign", "float", None, np.float32([np.nan, np.inf]), name="first", validate_shape=False)
    for op in ("AssignAdd", "AssignSub"):
        for t in types:
            if t != "bool":
                yield changed(op, t, r.numbers(t, (2, 2)), r.numbers(t, (2, 2)), name=t)
        yield changed(op, "int64", edge("int64"), edge("int64"), name="wrap")
        yield changed(op, "float", r.normal((0, 2)), r.normal((0, 2)), name="empty")
        yield changed(op, "float", r.normal((2,)), r.normal((3,)), name="shape", error="")
        yield changed(op, "float", None, r.normal((3,)), name="uninitialized", error="Attempting to use uninitialized value")
    for start, limit in [(0, 1), (0, 3), (-5, 0), (2**40, 2**41), (3, 3), (4, 3), (2**62, 2**62)]:
        reached = "Reached limit of" if start >= limit else None
        yield on_ref("CountUpTo", "int64", i64(start), lambda v, limit=limit: (R.CountUpTo(ref=v, limit=limit), {}),
                     error=reached)
    yield on_ref("CountUpTo", "int64", i64(7), lambda v: (R.CountUpTo(ref=v, limit=-1), {}), error="Reached limit of -1")
    yield on_ref("CountUpTo", "int64", None, lambda v: (R.CountUpTo(ref=v, limit=3), {}), name="uninitialized",
                 error="Attempting to use uninitialized value")
    yield on_ref("CountUpTo", "int64", i64([1]), lambda v: (R.CountUpTo(ref=v, limit=3), {}), name="vector",
                 error="input is not a scalar")

    def flow(op, t):

        def build():
            v, p = variable(t), ph("bool")
            (x,), feed = fed([r.numbers(t, (2,))])
            taken = R.RefSwitch(data=v, pred=p)
            start = Step(run=[R.Assign(ref=v, value=x, validate_shape=False).op], feed=feed)
            if op == "RefSwitch":
                return [start] + [Step(fetch=[R.Identity(input=taken[b])], feed={p: np.array(bool(b))}) for b in (1, 0)] + [
                    Step(fetch=[R.Identity(input=taken[0])], feed={p: np.array(True)}, error="")]
            back = R.RefMerge(inputs=[taken[0], taken[1]])
            return [start] + [Step(fetch=[R.Identity(input=back[0]), back[1]], feed={p: np.array(b)}) for b in (True, False)]

        return graph_case(op, build, name=t)

    for t in types:
        yield flow("RefSwitch", t)
        yield flow("RefMerge", t)

        def looped(t=t):
            v = variable(t)
            (x,), feed = fed([r.numbers(t, (2,))])
            n = R.RefEnter(data=v, frame_name="f", is_constant=False)
            return [Step(run=[R.Assign(ref=v, value=x, validate_shape=False).op], feed=feed),
                    Step(fetch=[R.Identity(input=R.RefExit(data=n))])]

        yield graph_case("RefExit", looped, name=t)


def selections(r):

    def selected(t, n=2):

        def build():
            refs = [R.VariableV2(dtype=tf.as_dtype(t), shape=None, shared_name=f"v{k}") for k in range(n)]
            i = ph("int32")
            values = [r.numbers(t, (2,)) for _ in refs]
            xs, feed = fed(values + [r.numbers(t, (2,))])
            taken = R.RefSelect(index=i, inputs=refs)
            start = Step(run=[R.Assign(ref=v, value=x, validate_shape=False).op for v, x in zip(refs, xs)],
                         feed={x: feed[x] for x in xs[:-1]})
            # What is selected is the variable itself.
            changed = Step(run=[R.Assign(ref=taken, value=xs[-1], validate_shape=False).op], feed={xs[-1]: feed[xs[-1]], i: i32(n - 1)})
            return [start] + [Step(fetch=[R.Identity(input=taken)], feed={i: i32(k)}) for k in range(n)] + [
                changed, Step(fetch=[R.Identity(input=v) for v in refs])] + [
                Step(fetch=[R.Identity(input=taken)], feed={i: i32(k)}, error=AS_SAID) for k in (n, -1)]

        return graph_case("RefSelect", build, name=t)

    for t in ["float", "double", "int32", "int64", "string", "bool", "complex64", "half"]:
        yield selected(t)
    yield selected("float", 1)
    yield selected("float", 4)


def scatters(r):

    def scatter(op, t, start, indices, updates, error=None, name=None, **attrs):

        def change(v):
            (i, u), feed = fed([indices, updates])
            return getattr(R, op)(ref=v, indices=i, updates=u, **attrs), feed

        return on_ref(op, t, start, change, error, name)

    for kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
        op = "Scatter" + kind
        for t in ["float", "double", "half", "bfloat16", "int64"] + ([] if kind in ("Min", "Max") else ["complex64", "uint32"]):
            u = array(t, [[1, 2], [3, 2], [1, 5]]) if kind == "Div" else r.numbers(t, (3, 2))
            yield scatter(op, t, r.numbers(t, (4, 2)), i32([1, 3, 1]), u, name=t)
        yield scatter(op, "float", r.normal((4, 2)), i64([[1, 3], [0, 2]]), r.normal((2, 2, 2)), name="matrix")
        yield scatter(op, "float", r.normal((4, 2)), i32([1, 3]), np.float32(2), name="one_value")
        yield scatter(op, "float", r.normal((4, 2)), i32([]), r.normal((0, 2)), name="empty")
        yield scatter(op, "float", r.normal((4, 2)), i32([4]), r.normal((1, 2)), error="indices[0] = 4 is not in [0, 4)")
        yield scatter(op, "float", r.normal((4, 2)), i32([-1]), r.normal((1, 2)), error="indices[0] = -1 is not in [0, 4)")
        yield scatter(op, "float", r.normal((4, 2)), i32([0, 1]), r.normal((3, 2)), error="Must have updates.shape = ")
        yield scatter(op, "float", None, i32([0]), r.normal((1, 2)), error="", name="uninitialized")
    for kind in ("Add", "Sub", "Min", "Max", "Update"):
        op = "ScatterNd" + kind
        for t in ["float", "double", "half", "bfloat16", "int64"] + ([] if kind in ("Min", "Max") else ["complex64", "uint32"]):
            yield scatter(op, t, r.numbers(t, (4,)), i32([[1], [3], [0]]), r.numbers(t, (3,)), name=t)
        yield scatter(op, "float", r.normal((3, 4)), i64([[0, 1], [2, 3]]), r.normal((2,)), name="full_depth")
        yield scatter(op, "float", r.normal((3, 2, 2)), i32([[[0], [2]]]), r.normal((1, 2, 2, 2)), name="slices")
        yield scatter(op, "float", r.normal((2,)), i32([[5]]), r.normal((1,)), error="indices[0] = [5] does not index into")
        yield scatter(op, "float", r.normal((2,)), i32([[0], [1]]), r.normal((1,)), error="must match dimensions")
        yield scatter(op, "float", r.normal((2,)), np.zeros((0, 1), np.int32), r.normal((0,)), name="empty")

    def slice_assign(begin, end, strides, value, t="float", error=None, **masks):

        def change(v):
            (b, e, s, x), feed = fed([i32(begin), i32(end), i32(strides), value])
            return R.StridedSliceAssign(ref=v, begin=b, end=e, strides=s, value=x, **masks), feed

        return on_ref("StridedSliceAssign", t, r.numbers(t, (3, 4)), change, error)

    for t in ("float", "half", "int64", "bool"):
        yield slice_assign([0], [2], [1], r.numbers(t, (2, 4)), t)
    yield slice_assign([0, 1], [3, 4], [2, 2], r.normal((2, 2)))
    yield slice_assign([2, 3], [-4, -5], [-1, -2], r.normal((3, 2)))
    yield slice_assign([0, 1], [0, 3], [1, 1], np.float32(7), shrink_axis_mask=1)
    yield slice_assign([2], [1], [1], r.normal((0, 4)))
    yield slice_assign([0], [2], [1], r.normal((3, 4)), error="")
    yield slice_assign([0], [2], [0], np.float32(1), error="strides[0] must be non-zero")


def tables(r):
    S, I = tf.string, tf.int64

    def table(op, make, *steps, name=None):

        def build():
            h = make()
            out = []
            for s in steps:
                made, feed, error = s(h)
                fetch = [made] if isinstance(made, tf.Tensor) else list(made) if isinstance(made, tuple) else []
                out.append(Step(fetch=fetch, run=[] if fetch else [made], feed=feed, error=error))
            return out

        return graph_case(op, build, name=name)

    def call(op, *values, error=None, **attrs):

        def f(h):
            names = {"LookupTableFind": ["keys", "default_value"], "LookupTableFindV2": ["keys", "default_value"],
                     "LookupTableRemoveV2": ["keys"]}.get(op, ["keys", "values"])
            ps, feed = fed(values)
            out = getattr(R, op)(table_handle=h, **dict(zip(names, ps)), **attrs)
            return (tuple(out) if isinstance(out, tuple) else out), feed, error

        return f

    def sample(t, n=3):
        return text("x", "y", "z")[:n] if t == "string" else array(t, [5, -6, 7])[:n]

    pairs = [("string", "int64"), ("int64", "string"), ("string", "float"), ("int32", "int32"), ("int64", "int64"),
             ("string", "string"), ("int32", "float"), ("string", "bool"), ("int64", "double"), ("int64", "float")]
    for k, v in pairs:
        keys, vals, none = sample(k), r.numbers(v, (3,)), r.numbers(v, ())
        kd, vd = tf.as_dtype(k), tf.as_dtype(v)
        yield table("HashTable", lambda kd=kd, vd=vd: R.HashTable(key_dtype=kd, value_dtype=vd, shared_name="t"),
                    call("InitializeTable", keys, vals), call("LookupTableSize"), call("LookupTableFind", keys[::-1], none),
                    call("LookupTableFind", keys[:0], none), name=f"{k}_{v}")
        if (k, v) == ("string", "string"):  # no kernel
            continue
        m = lambda kd=kd, vd=vd: R.MutableHashTable(key_dtype=kd, value_dtype=vd, shared_name="m")
        yield table("MutableHashTable", m, call("LookupTableFind", keys, none), call("LookupTableInsert", keys, vals),
                    call("LookupTableFind", keys[1:], none), call("LookupTableSize"),
                    call("LookupTableImport", keys[:1], vals[:1]), call("LookupTableSize"),
                    call("LookupTableExport", Tkeys=kd, Tvalues=vd),
                    call("LookupTableFind", r.numbers("float", (2,)), none, error=""), name=f"{k}_{v}")
        if v == "string":
            continue
        w = r.numbers(v, (3, 2))
        t = lambda kd=kd, vd=vd: R.MutableHashTableOfTensors(key_dtype=kd, value_dtype=vd, value_shape=[2], shared_name="m")
        yield table("MutableHashTableOfTensors", t, call("LookupTableInsert", keys, w), call("LookupTableFind", keys[1:], w[0]),
                    call("LookupTableSize"), call("LookupTableInsert", keys, w[0], error=""), name=f"{k}_{v}")
    fixed = lambda: R.HashTable(key_dtype=S, value_dtype=I, shared_name="t")
    ab = text("a", "b")
    yield table("InitializeTable", fixed, call("LookupTableFind", ab, i64(0), error="Table not initialized."), name="not_yet")
    yield table("InitializeTable", fixed, call("InitializeTable", ab, i64([1])[:1], error=""), name="sizes")
    yield table("InitializeTable", fixed, call("InitializeTable", ab, i32([1, 2]), error=""), name="types")
    yield table("LookupTableInsert", fixed, call("InitializeTable", ab, i64([1, 2])),
                call("LookupTableInsert", ab, i64([1, 2]), error="Insert not supported"))

    def from_file(content, keys, error=None, **attrs):

        def build():
            x, q = ph("string"), ph("string")
            path = os.path.join(tempfile.gettempdir(), "smelt_op_case_ref_table.txt")
            h = fixed()
            load = R.InitializeTableFromTextFile(table_handle=h, filename=path, **dict(dict(key_index=-2, value_index=-1), **attrs))
            steps = [Step(run=[R.WriteFile(filename=path, contents=x)], feed={x: np.array(content, object)}),
                     Step(run=[load], error=error)]
            if error is None:
                steps.append(Step(fetch=[R.LookupTableFind(table_handle=h, keys=q, default_value=i64(-1)),
                                         R.LookupTableSize(table_handle=h)], feed={q: text(*keys)}))
            return steps

        return graph_case("InitializeTableFromTextFile", build)

    yield from_file("a\nb\nc\n", ["a", "c", "z"])
    yield from_file("a\nb\nc\n", ["a", "c", "z"], vocab_size=2)
    yield from_file("a\nb\nc\n", ["c"], offset=1)
    yield from_file("a,1\nb,2", ["b"], key_index=0, value_index=1, delimiter=",")
    yield from_file("a,1\nb,2", [], key_index=0, value_index=2, delimiter=",", error="expected at least 3 got 2")
    yield from_file("", [], error="")
    yield from_file("a\n\nb", [], error="empty line found")
    yield from_file("a\na", [], error="trying to add value")

    # An anonymous table lives as long as its handle: one step makes it, uses it and lets it go.

    def anonymous(op, make, keys, values, default, init="LookupTableInsertV2", more=None):

        def build():
            h = make()
            (k, v, d), feed = fed([keys, values, default])
            load = (R.InitializeTableV2 if init == "InitializeTableV2" else R.LookupTableInsertV2)(table_handle=h, keys=k, values=v)
            with tf.control_dependencies([load]):
                out = [R.LookupTableFindV2(table_handle=h, keys=k, default_value=d), R.LookupTableSizeV2(table_handle=h)]
            return [Step(fetch=out, feed=feed, error=more), Step(fetch=[R.LookupTableSizeV2(table_handle=h)])]

        return graph_case(op, build)

    for k, v in pairs:
        keys, none = sample(k), r.numbers(v, ())
        kd, vd = tf.as_dtype(k), tf.as_dtype(v)
        yield anonymous("AnonymousHashTable", lambda kd=kd, vd=vd: R.AnonymousHashTable(key_dtype=kd, value_dtype=vd), keys,
                        r.numbers(v, (3,)), none, "InitializeTableV2")
        if (k, v) == ("string", "string"):  # no kernel
            continue
        yield anonymous("AnonymousMutableHashTable", lambda kd=kd, vd=vd: R.AnonymousMutableHashTable(
            key_dtype=kd, value_dtype=vd), keys, r.numbers(v, (3,)), none)
        if v == "string":
            continue
        yield anonymous("AnonymousMutableHashTableOfTensors", lambda kd=kd, vd=vd: R.AnonymousMutableHashTableOfTensors(
            key_dtype=kd, value_dtype=vd, value_shape=[2]), keys, r.numbers(v, (3, 2)), r.numbers(v, (2,)))
        yield anonymous("AnonymousMutableDenseHashTable", lambda vd=vd, k=k: R.AnonymousMutableDenseHashTable(
            empty_key=array(k, "E" if k == "string" else -1), deleted_key=array(k, "D" if k == "string" else -2),
            value_dtype=vd, initial_num_buckets=8), keys, r.numbers(v, (3,)), none)
    for bad in (0, 1):
        yield anonymous("AnonymousMutableHashTableOfTensors", lambda: R.AnonymousMutableHashTableOfTensors(
            key_dtype=S, value_dtype=tf.float32, value_shape=[2]), ab, r.normal((2, 3)) if bad else r.normal((2,)),
            r.normal((2,)), more="Expected shape [2,2] for value")
    for k in (0, 3):
        yield anonymous("AnonymousMutableDenseHashTable", lambda: R.AnonymousMutableDenseHashTable(
            empty_key=i64(-1), deleted_key=i64(-2), value_dtype=I, initial_num_buckets=8), i64([k, -1]), i64([1, 2]), i64(0),
            more="Using the empty_key as a table key is not allowed")


def aliases(r):
    """What was read before a write and is returned after it: the read shares the variable's memory."""
    updates = {"AssignAdd": lambda v, x: R.AssignAdd(ref=v, value=x), "AssignSub": lambda v, x: R.AssignSub(ref=v, value=x), "Assign": lambda v, x: R.Assign(ref=v, value=x),
               "ScatterAdd": lambda v, x: R.ScatterAdd(ref=v, indices=[1], updates=x[:1]), "ScatterUpdate": lambda v, x: R.ScatterUpdate(ref=v, indices=[2], updates=x[:1])}
    for op, update in updates.items():
        for t in ("float", "int64"):

            def build(update=update, t=t):
                v = variable(t)
                (x,), feed = fed([r.numbers(t, (3,))])
                (y,), more = fed([r.numbers(t, (3,))])
                steps = [Step(run=[R.Assign(ref=v, value=x, validate_shape=False).op], feed=feed)]
                read = R.Identity(input=v)
                with tf.control_dependencies([read]):
                    write = update(v, y)
                with tf.control_dependencies([write.op]):
                    again, twice = R.Identity(input=read), R.AddV2(x=read, y=read)
                return steps + [Step(fetch=[again, twice], feed=more)]

            yield graph_case(op, build, name=f"{op}_{t}_read_before_returned_after")


def cases(r):
    yield from variables(r)
    yield from scatters(r)
    yield from tables(r)
    yield from aliases(r)
    yield from selections(r)
