"""Checkpoints of version 1: one table that holds slices of tensors as messages."""
import os
import tempfile

from op_cases import *

R = tf.raw_ops
BASE = os.path.join(tempfile.gettempdir(), "smelt_op_case_v1")
PLAIN = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
words = lambda *w: np.array(w, object)


def save(path, names, data, slices=None):
    if slices is None:
        return R.Save(filename=path, tensor_names=names, data=data)
    return R.SaveSlices(filename=path, tensor_names=names, shapes_and_slices=slices, data=data)


def restore(path, name, t=tf.float32, text=None, shard=-1):
    if text is None:
        return R.Restore(file_pattern=path, tensor_name=name, dt=t, preferred_shard=shard)
    return R.RestoreSlice(file_pattern=path, tensor_name=name, shape_and_slice=text, dt=t, preferred_shard=shard)


def restore_v2(path, names, types, slices=None):
    return list(R.RestoreV2(prefix=path, tensor_names=names, shape_and_slices=slices or [""] * len(names), dtypes=types))


def ph(value):
    value = np.asarray(value)
    return tf.compat.v1.placeholder(tf.string if value.dtype == object else value.dtype, None)


def table_bytes(path, names, data, slices=None):
    """What TensorFlow writes."""
    with tf.Graph().as_default():
        op = save(path, names, data, slices)
        with tf.compat.v1.Session() as s:
            s.run(op)
    with open(path, "rb") as f:
        return f.read()


def types(r):

    def one(op, t, shape):
        path = f"{BASE}_{op}_{t}"
        value = r.numbers(PLAIN.get(t, t), shape)
        x = ph(value)
        typed = tf.bitcast(x, tf.as_dtype(t)) if t in PLAIN else x
        back = lambda y: tf.bitcast(y, PLAIN[t]) if t in PLAIN else y
        text = None
        if op == "SaveSlices":
            text = "".join(f"{d} " for d in shape) + ":".join("-" for d in shape) if shape else ""
        saved = save(path, ["x", "y/z"], [typed, typed], None if text is None else [text, ""])
        return [Step(run=[saved], feed={x: value}),
                Step(fetch=[back(restore(path, "y/z", tf.as_dtype(t))),
                            back(restore(path, "x", tf.as_dtype(t), text if text is not None else ""))] +
                     [back(y) for y in restore_v2(path, ["x"], [tf.as_dtype(t)])])]

    for t in ["float", "double", "half", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool", "string",
              "complex64", "complex128", "qint8", "quint8", "qint32"]:
        for op, shape in (("Save", (2, 3)), ("SaveSlices", (3,)), ("Restore", ()), ("RestoreSlice", (2, 0, 3))):
            yield graph_case(op, lambda op=op, t=t, s=shape: one(op, t, s), name=t)
    for t in ("bfloat16", "uint32", "uint64"):
        yield case("Save", words(f"{BASE}_no_{t}")[0], words("x"), [r.numbers(t, (2,))], error=AS_SAID)

    def edges():
        path = BASE + "_edge"
        values = [edge("float"), edge("double"), edge("int64"), np.array([b"", b"\x00\xff", b"a" * 150], object)]
        out = [tf.float32, tf.float64, tf.int64, tf.string]
        return [Step(run=[save(path, ["f", "d", "i", "s"], values)]),
                Step(fetch=[restore(path, n, t) for n, t in zip(["f", "d", "i", "s"], out)])]

    yield graph_case("Save", edges, name="edges")


def files(r):

    def bytes_of(op, names, values, slices=None):
        # The file itself, byte for byte.
        path = f"{BASE}_bytes_{op}"
        xs = [ph(v) for v in values]
        return [Step(run=[save(path, names, xs, slices)], feed=dict(zip(xs, values))),
                Step(fetch=[R.ReadFile(filename=path)])]

    a, b = r.normal((2, 3)), np.array([["x", ""], ["yy", "z\0"]], object)
    yield graph_case("Save", lambda: bytes_of("Save", ["v/kernel", "a"], [a, b]), name="bytes")
    yield graph_case("Save", lambda: bytes_of("Save", ["i", "h", "q", "e"], [
        i32([-1, 300]), np.float16([1.5, -2]), np.array([True, False]), np.zeros((0, 2), np.complex64)]), name="bytes")
    yield graph_case("Save", lambda: bytes_of("Save", ["x\0\xff", ""], [i64(-7), np.float64(0.5)]), name="bytes")
    yield graph_case("SaveSlices", lambda: bytes_of("Slices", ["p", "p", "w"], [a, a + 1, a], [
        "4 3 0,2:-", "4 3 2,2:0,3", "2 3 -:-"]), name="bytes")

    def bundle():
        path = BASE + "_bundle/m"
        return [Step(run=[R.SaveV2(prefix=path, tensor_names=["v", "b", "p", "p"], shape_and_slices=["", "", "4 3 2,2:-", "4 3 0,2:-"],
                                   tensors=[tf.constant(x) for x in (a[0], [b"x", b""], a, a + 1)])]),
                Step(fetch=[R.ReadFile(filename=path + ".index"), R.ReadFile(filename=path + ".data-00000-of-00001")])]

    yield graph_case("SaveV2", bundle, name="bytes")

    def written(label, contents, step):
        path = f"{BASE}_written_{label}"
        return [Step(run=[R.WriteFile(filename=path, contents=contents)])] + step(path)

    made = table_bytes(BASE + "_made", ["a", "n"], [a, i64([3, -4])])
    yield graph_case("Restore", lambda: written("whole", made, lambda p: [
        Step(fetch=[restore(p, "a"), restore(p, "n", tf.int64)])]), name="written")
    yield graph_case("RestoreV2", lambda: written("v2", made, lambda p: [
        Step(fetch=restore_v2(p, ["n", "a"], [tf.int64, tf.float32], ["", "2 3 -:1,2"])),
        Step(fetch=restore_v2(p, ["zz"], [tf.float32]), error=AS_SAID),
        Step(fetch=restore_v2(p, ["a"], [tf.int32]), error=AS_SAID),
        Step(fetch=restore_v2(p, ["a"], [tf.float32], ["4 3 -:-"]), error=AS_SAID)]), name="of_version_1")
    for label, contents in (("text", b"this is no table at all, though it is longer than any footer is"), ("short", b"abc"),
                            ("cut", made[:-3]), ("flipped", made[:60] + bytes([made[60] ^ 1]) + made[61:])):
        yield graph_case("Restore", lambda l=label, c=contents: written(l, c, lambda p: [
            Step(fetch=[restore(p, "a")], error="")]), name=label)
    yield graph_case("RestoreV2", lambda: written("v2_text", b"nothing", lambda p: [
        Step(fetch=restore_v2(p, ["a"], [tf.float32]), error="perhaps your file is in a different file format and you "
             "need to use a different restore operator?")]), name="no_table")

    def many():
        # More rows than one block of the table holds.
        path = BASE + "_many"
        n = 40
        x = tf.fill([5000], 1.5)
        names = [f"t{k:02d}" for k in range(n)]
        return [Step(run=[save(path, names, [x + float(k) for k in range(n)])]),
                Step(fetch=[restore(path, f"t{k:02d}", text="5000 4998,2") for k in (0, 11, 12, 13, 25, 38, 39)])]

    yield graph_case("Restore", many, name="many_blocks")


def slices(r):
    v = r.normal((2, 3))

    def parts():
        path = BASE + "_parts"
        f = lambda text, name="p": restore(path, name, text=text)
        x = ph("")
        return [Step(run=[save(path, ["p", "p", "q"], [v, v * 10, v * 100], ["4 3 0,2:-", "4 3 2,2:-", ""])]),
                Step(fetch=[restore(path, "p"), f("4 3 1,2:-"), f("4 3 -:1,2"), f("4 3 3,1:2,1"), f("4 3 2,2:-"), f(""),
                            f("2 3 0,1:-", "q"), restore_v2(path, ["p"], [tf.float32], ["4 3 1,2:0,2"])[0]]),
                Step(fetch=[f(x)], feed={x: np.array("4 4 1,2:-", object)}, error=AS_SAID),
                Step(fetch=[f(x)], feed={x: np.array("4 3 3,2:-", object)}, error=AS_SAID),
                Step(fetch=[f(x)], feed={x: np.array("4", object)}, error=AS_SAID),
                Step(fetch=[f(x)], feed={x: np.array("4 3 -", object)}, error=AS_SAID),
                Step(fetch=[f(x)], feed={x: np.array("4 3 a,1:-", object)}, error=AS_SAID),
                Step(fetch=[f(x)], feed={x: np.array(["", "4 3 1,2:-"], object)})]

    yield graph_case("RestoreSlice", parts, name="parts")

    def holes():
        path = BASE + "_holes"
        return [Step(run=[save(path, ["p", "p"], [v, v * 10], ["6 3 0,2:-", "6 3 4,2:-"])]),
                Step(fetch=[restore(path, "p", text="6 3 1,1:-"), restore(path, "p", text="6 3 4,2:1,2")]),
                Step(fetch=[restore(path, "p")], error=AS_SAID),
                Step(fetch=[restore(path, "p", text="6 3 1,4:-")], error=AS_SAID),
                Step(fetch=restore_v2(path, ["p"], [tf.float32]), error=AS_SAID)]

    yield graph_case("RestoreSlice", holes, name="holes")

    def shards(op, preferred):
        # Two files; the first that is asked need not hold what is wanted.
        d = f"{BASE}_shards_{op}_{preferred}/"
        pattern = d + "m-?????-of-00002"
        f = lambda name, text=None: restore(pattern, name, text=text, shard=preferred)
        return [Step(run=[R.WriteFile(filename=d + "mark", contents="")]),
                Step(run=[save(d + "m-00000-of-00002", ["p", "a"], [v, v + 1], ["4 3 0,2:-", ""]),
                          save(d + "m-00001-of-00002", ["p", "b"], [v * 10, v + 2], ["4 3 2,2:-", ""])]),
                Step(fetch=[f("p"), f("a"), f("b"), f("p", "4 3 1,2:-"), f("p", "4 3 3,1:-")]),
                Step(fetch=restore_v2(pattern, ["p", "b"], [tf.float32] * 2)),
                Step(fetch=[f("c")], error="")]

    for op in ("Restore", "RestoreSlice"):
        for preferred in (-1, 0, 1, 7):
            yield graph_case(op, lambda o=op, p=preferred: shards(o, p), name="shards")

    def overlapping():
        path = BASE + "_overlap"
        return [Step(run=[save(path, ["p", "p"], [v, v * 10], ["3 3 0,2:-", "3 3 1,2:-"])]),
                Step(fetch=[restore(path, "p", text="3 3 0,1:-")], error=AS_SAID)]

    yield graph_case("SaveSlices", overlapping, name="overlapping")

    def replaced():
        path = BASE + "_replaced"
        return [Step(run=[save(path, ["a"], [v])]), Step(fetch=[restore(path, "a")]),
                Step(run=[save(path, ["a"], [v[0]])]), Step(fetch=[restore(path, "a")])]

    yield graph_case("Save", replaced, name="replaced")


def errors(r):
    v, path = r.normal((2, 3)), np.array(BASE + "_error", object)
    one = words("a")
    yield case("Save", words("a", "b"), one, [v], error=AS_SAID)
    yield case("Save", path, words("a", "b"), [v], error=AS_SAID)
    yield case("Save", path, words("a", "a"), [v, v[0]], error=AS_SAID)
    yield case("Save", path, words("a", "a"), [v, i32([[1, 2, 3], [4, 5, 6]])], error=AS_SAID)
    yield case("Save", np.array("/nowhere/at/all", object), one, [v], error="")
    yield case("SaveSlices", path, one, words("", ""), [v], error=AS_SAID)
    yield case("SaveSlices", path, one, words("4 3 0,1:-"), [v], error=AS_SAID)
    yield case("SaveSlices", path, one, words("4"), [v], error=AS_SAID)
    yield case("SaveSlices", path, one, words("4 3 0,2"), [v], error=AS_SAID)
    yield case("SaveSlices", path, words("a", "a"), words("4 3 0,2:-", "5 3 2,2:-"), [v, v], error=AS_SAID)
    none = np.array("/nowhere/at/all", object)
    for op, more in (("Restore", []), ("RestoreSlice", [np.array("", object)])):
        yield case(op, none, np.array("a", object), *more, dt=tf.float32, error=AS_SAID)
        yield case(op, words("a", "b"), np.array("a", object), *more, dt=tf.float32, error=AS_SAID)
        yield case(op, none, words("a", "b"), *more, dt=tf.float32, error=AS_SAID)

    def wrong():
        p = BASE + "_wrong"
        return [Step(run=[save(p, ["a"], [v])]), Step(fetch=[restore(p, "b")], error=AS_SAID),
                Step(fetch=[restore(p, "a", tf.int32)], error=AS_SAID)]

    yield graph_case("Restore", wrong, name="wrong")

    def twice():
        # The same slice twice: the first bytes stay, and the reader refuses the overlap.
        p = BASE + "_twice"
        return [Step(run=[save(p, ["a", "a"], [v, v * 2])]), Step(fetch=[restore(p, "a")], error=AS_SAID)]

    yield graph_case("Save", twice, name="twice")


def cases(r):
    yield from types(r)
    yield from files(r)
    yield from slices(r)
    yield from errors(r)
