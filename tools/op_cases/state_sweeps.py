"""Variables, tables, checkpoints and files over types and sizes."""
import os
import tempfile

from op_cases import *
from op_cases.state import R, fed, on_variable, ph, var


def cases(r):
    S = tf.string

    def changed(op, names, start, *values):

        def change(h):
            ps, feed = fed(values)
            return getattr(R, op)(**dict(zip(names, [h] + ps))), feed

        return on_variable(op, start, change, name="empty")

    nothing = np.zeros((0, 2), np.float32)
    for op in ("AssignAddVariableOp", "AssignSubVariableOp"):
        yield changed(op, ["resource", "value"], nothing, nothing)
    yield changed("ResourceScatterDiv", ["resource", "indices", "updates"], r.normal((3, 2)), i32([]), nothing)
    for kind in ("Add", "Sub", "Min", "Max", "Update"):
        yield changed("ResourceScatterNd" + kind, ["ref", "indices", "updates"], r.normal((3, 2)), np.zeros((0, 1), np.int32),
                      nothing)
        edges = np.float32([np.nan, np.inf, -np.inf])
        yield changed("ResourceScatterNd" + kind, ["ref", "indices", "updates"], edges, i32([[0], [1], [2]]), edges[::-1].copy())
    text = lambda *w: np.array(w, object)

    def destroyed(t):
        h, x = var(t), ph(t)
        return [Step(run=[R.AssignVariableOp(resource=h, value=x)], feed={x: r.numbers(t, (2,))}),
                Step(run=[R.DisableCopyOnRead(resource=h)]),
                Step(fetch=[R.ReadVariableOp(resource=h, dtype=tf.as_dtype(t)), R.VariableShape(input=h, out_type=tf.int64)]),
                Step(run=[R.DestroyResourceOp(resource=h)]),
                Step(run=[R.DestroyResourceOp(resource=h, ignore_lookup_error=False)], error="does not exist."),
                Step(fetch=[R.VarIsInitializedOp(resource=h)])]

    for t in NUMBERS:
        yield graph_case("DestroyResourceOp", lambda t=t: destroyed(t), name=t)

    def counting(t, start, limit):
        h, x = var(t), ph(t)
        n = R.ResourceCountUpTo(resource=h, limit=limit, T=tf.as_dtype(t))
        return [Step(run=[R.AssignVariableOp(resource=h, value=x)], feed={x: array(t, start)}),
                Step(fetch=[n], error=None if np.ndim(start) == 0 and start < limit else ""),
                Step(fetch=[R.ReadVariableOp(resource=h, dtype=tf.as_dtype(t))])]

    for t in ("int32", "int64"):
        for start, limit in ((0, 1), (-9, 0), (5, 5), (6, 5), ([1], 5), (2**31 - 2, 2**31 - 1)):
            yield graph_case("ResourceCountUpTo", lambda t=t, s=start, n=limit: counting(t, s, n), name=t)

    def table(op, make, k, v, keys, values, width=None):
        kd, vd = tf.as_dtype(k), tf.as_dtype(v)

        def build():
            h = make(kd, vd)
            pk, pv, pd = ph(k), ph(v), ph(v)
            default = r.numbers(v, () if width is None else (width,))
            find = R.LookupTableFindV2(table_handle=h, keys=pk, default_value=pd)
            # TensorFlow's dense tables do not import what they export.
            load = R.LookupTableInsertV2 if op == "MutableDenseHashTableV2" else R.LookupTableImportV2
            out = [Step(run=[load(table_handle=h, keys=pk, values=pv)], feed={pk: keys, pv: values}),
                   Step(fetch=[R.LookupTableSizeV2(table_handle=h), find], feed={pk: keys, pd: default}),
                   Step(run=[R.LookupTableRemoveV2(table_handle=h, keys=pk)], feed={pk: keys[:2]}),
                   Step(run=[R.LookupTableRemoveV2(table_handle=h, keys=pk)], feed={pk: keys[:0]}),
                   Step(fetch=[R.LookupTableSizeV2(table_handle=h), find], feed={pk: keys, pd: default}),
                   Step(fetch=list(R.LookupTableExportV2(table_handle=h, Tkeys=kd, Tvalues=vd)))]
            if op != "MutableDenseHashTableV2":
                out.append(Step(run=[R.LookupTableImportV2(table_handle=h, keys=pk, values=pv)],
                                feed={pk: keys, pv: values[:1]}, error=""))
            return out

        return graph_case(op, build, name=k + "_" + v)

    mutable = lambda k, v: R.MutableHashTableV2(key_dtype=k, value_dtype=v, shared_name="m")
    tensors = lambda k, v: R.MutableHashTableOfTensorsV2(key_dtype=k, value_dtype=v, value_shape=[2], shared_name="m")

    def dense(k, v):
        key = lambda a, b: tf.constant(a if k == S else b, k)
        return R.MutableDenseHashTableV2(empty_key=key("E", -1), deleted_key=key("D", -2), value_dtype=v,
                                         initial_num_buckets=8, shared_name="m")

    for k, v in (("string", "int64"), ("string", "float"), ("int64", "int64"), ("int32", "int32"), ("int64", "double"),
                 ("int32", "float"), ("string", "bool"), ("int64", "float"), ("int32", "double")):
        keys = text("x", "y", "z") if k == "string" else array(k, [5, 6, 7])
        yield table("MutableHashTableV2", mutable, k, v, keys, r.numbers(v, (3,)))
        yield table("MutableHashTableOfTensorsV2", tensors, k, v, keys, r.numbers(v, (3, 2)), 2)
        yield table("MutableDenseHashTableV2", dense, k, v, keys, r.numbers(v, (3,)))

    base = os.path.join(tempfile.gettempdir(), "smelt_op_case_more")

    def saved(t, shape):
        prefix = base + "_bundle/m"
        x = ph(t)
        names, out = ["x", "y/z"], [tf.as_dtype(t)] * 2
        return [Step(run=[R.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=["", ""], tensors=[x, x])],
                     feed={x: r.numbers(t, shape)}),
                Step(fetch=list(R.RestoreV2(prefix=prefix, tensor_names=names[::-1], shape_and_slices=["", ""], dtypes=out)))]

    for t in NUMBERS + ["bool", "string"]:
        for op in ("SaveV2", "RestoreV2"):
            yield graph_case(op, lambda t=t: saved(t, (2, 3) if op == "SaveV2" else ()), name=t)
    for shape in ((0,), (2, 0, 3), (1, 1, 1, 1)):
        yield graph_case("SaveV2", lambda s=shape: saved("float", s), name="shape")

    def merged(n, delete, missing=False):
        # n bundles of one tensor each become one; the parts stay or go.
        parts, out = [f"{base}_merge_{n}_{delete}/part{k}" for k in range(n)], f"{base}_merge_{n}_{delete}/all"
        save = [R.SaveV2(prefix=p, tensor_names=[f"t{k}"], shape_and_slices=[""], tensors=[np.float32([k, k + 0.5])])
                for k, p in enumerate(parts)]
        given = parts + ([base + "_absent"] if missing else [])
        f32 = [tf.float32]
        steps = [Step(run=save), Step(run=[R.MergeV2Checkpoints(
            checkpoint_prefixes=given, destination_prefix=out, delete_old_dirs=delete)], error="" if missing else None)]
        if not missing:
            steps.append(Step(fetch=list(R.RestoreV2(prefix=out, tensor_names=[f"t{k}" for k in range(n)],
                                                     shape_and_slices=[""] * n, dtypes=f32 * n))))
        return steps

    for n in (1, 2, 5):
        for delete in (False, True):
            yield graph_case("MergeV2Checkpoints", lambda n=n, d=delete: merged(n, d), name="parts")
    yield graph_case("MergeV2Checkpoints", lambda: merged(3, False, missing=True), name="missing")
    one = lambda v: np.array(v, object)
    for path, n in (("", 0), ("a", 1), ("/x/y", 99999), ("gs://b/c", 100000), ("p", 5), ("\xff", 12), ("a b", 3)):
        yield case("ShardedFilespec", one(path), i32(n))
        yield case("ShardedFilename", one(path), i32(0), i32(n))

    def files(k):
        d = f"{base}_files_{k}/"
        names = [["a.txt", "b.txt", "c"], ["x1", "x2", "y1"], ["d1/f", "d2/f", "d2/g"], ["a[b"], ["A", "a"], [".hidden", "seen"],
                 ["aa", "ab", "ba", "bb"]][k]
        patterns = [["*.txt"], ["x?", "y*"], ["d?/f"], ["a*"], ["[a]"], ["*"], ["[!a]*", "a[a-b]"]][k]
        body = bytes(range(k, k + 40)) * k
        w = [R.WriteFile(filename=d + n, contents=body + n.encode()) for n in names]
        return [Step(run=w), Step(fetch=[R.ReadFile(filename=d + n) for n in names]),
                Step(fetch=[R.MatchingFiles(pattern=[d + p for p in patterns])]),
                Step(fetch=[R.ReadFile(filename=d + "none")], error="No such file or directory")]

    for k in range(7):
        yield graph_case("MatchingFiles", lambda k=k: files(k))
    for t in ("int8", "uint64", "half", "bool"):
        yield case("Assert", np.array(False), [r.numbers(t, (2, 3))], error="assertion failed: [")
    yield case("Assert", np.array(True), [np.zeros((0,)), text()], name="empty")
    for shape in ((), (0,), (2, 0), (2, 2, 2)):
        yield case("Bucketize", r.normal(shape, scale=4), boundaries=[-2.0, -1.0, 0.0, 0.0, 3.0], name="shape")
    for t in ("int32", "int64", "float", "double"):
        yield case("Bincount", r.ints((3, 2), 0, 6), i32(5), r.numbers(t, (3, 2)), name=t + "_matrix")
        yield case("Bincount", i32([]), i32(3), array(t, []), name=t + "_empty")
    yield case("Bincount", i32([1, 2]), i32(0), np.zeros((0,), np.float32), name="no_bins")
    yield case("Bincount", i32([1, 2]), i32([4]), np.zeros((0,), np.float32), name="vector_size", error="Shape must be rank 0 but is rank 1")
    yield case("DenseBincount", i32([1, 2]), i32([4]), np.zeros((0,), np.float32), name="vector_size", error="")
