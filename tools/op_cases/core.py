"""Ops that pass tensors on, make them, or ask for their shapes."""
from op_cases import *

PASSED = FLOATING + ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"] + COMPLEX + ["bool"]
ALL = NUMBERS + ["bool", "string"]


def identities(r):
    for op in ["Identity", "StopGradient", "PreventGradient", "Snapshot", "DebugGradientIdentity"]:
        for t in PASSED:
            yield case(op, r.numbers(t, (2, 3)), name=t)
        for shape in [(), (0,), (2, 0, 3)]:
            yield case(op, r.numbers("float", shape), name="shape")
        yield case(op, edge("float"), name="edge")
    for t in ["int32", "string"]:
        for op in ["Identity", "StopGradient"]:
            yield case(op, r.numbers(t, (2, 3)), name=t)
    for shape in [(), (0,), (3,), (2, 2), (1, 0, 2), (2, 1, 2), (97,), (4, 4)]:
        yield case("DeepCopy", r.ints(shape), name="int32")
        yield case("IdentityN", [r.numbers("float", shape), r.numbers("string", shape), r.numbers("int64", shape[1:])],
                   name="three")
    for t in ALL:
        yield case("IdentityN", [r.numbers(t, (2,))], name=t)
    for t in ["float", "double", "half", "int32"]:
        d = tf.as_dtype(t)
        yield case("_ListToArray", [r.numbers(t, (2,)), r.numbers(t, (0, 3))], T=d, N=2, name=t)
        yield case("_ListToArray", [r.numbers(t, ())], T=d, N=1, name=t + "_one")
        yield case("_ArrayToList", [r.numbers(t, (2,)), r.numbers(t, (0, 3))], out_types=[d, d], name=t)
        yield case("_ArrayToList", [r.numbers(t, ())], out_types=[d], name=t + "_one")
    for t in ALL:
        d = tf.as_dtype(t)
        words = f"with dtype {t} and shape [2,?]"
        for op in ["Placeholder", "PlaceholderV2"]:
            if op == "Placeholder":
                yield case(op, dtype=d, shape=[2, None], name=t, error=words)
        yield case("PlaceholderV2", dtype=d, shape=[2, 3], name=t, error=f"with dtype {t} and shape [2,3]")
        yield case("PlaceholderWithDefault", r.numbers(t, (2,)), shape=[None], name=t)


def printing(r):
    for t in ALL[:10]:
        yield case("Print", r.numbers(t, (2,)), [r.numbers(t, (5,)), r.numbers("string", (2, 2))], message="m ", name=t)
    yield case("Print", r.numbers("string", (0,)), [], name="nothing")
    yield case("Print", np.float32(1), [np.float32([np.nan, np.inf]), np.zeros((0, 2))], first_n=1, summarize=-1)
    for stream in ["stdout", "stderr", "log(info)", "log(warning)", "log(error)"]:
        yield case("PrintV2", np.array("a line", object), output_stream=stream, end="" if stream == "stdout" else "\n")
    yield case("PrintV2", np.array("", object))
    yield case("PrintV2", np.array(b"\xff\x00", object), output_stream="file:///dev/null")
    yield case("PrintV2", np.array(["a"], object), error="Input is expected to be scalar, but got [1]")
    yield case("PrintV2", np.array("a", object), output_stream="nowhere", error="Unknown output stream: nowhere")


def shapes(r):
    for t in ALL:
        for op in ["Shape", "Size", "Rank"]:
            yield case(op, r.numbers(t, (2, 1, 3)), name=t)
    for out in [tf.int32, tf.int64]:
        for shape in SHAPES:
            yield case("Shape", r.normal(shape), out_type=out)
            yield case("Size", r.normal(shape), out_type=out)
            yield case("ShapeN", [r.normal(shape), r.normal(shape[:1])], out_type=out)
    for shape in SHAPES:
        yield case("Rank", r.normal(shape))
    for t in ALL:
        d = tf.as_dtype(t)
        yield case("Empty", i32([2, 3]), dtype=d, init=True, name=t)
    yield case("Empty", i32([2, 3]), dtype=tf.float32, name="any", compare="shape")
    yield case("Empty", i32([]), dtype=tf.float32, init=True, name="scalar")
    yield case("Empty", i32([0, 5]), dtype=tf.float32, init=True, name="empty")
    yield case("Empty", i32([2, -1]), dtype=tf.float32, init=True, error="")
    yield case("Empty", i32(2), dtype=tf.float32, init=True, error="")
    yield case("Empty", i32([[2]]), dtype=tf.float32, init=True, error="")
    for t in ALL:
        yield case("EnsureShape", r.numbers(t, (2, 3)), shape=[2, None], name=t)
    yield case("EnsureShape", r.normal((2, 3)), shape=None)
    yield case("EnsureShape", r.normal((0,)), shape=[0])
    yield case("EnsureShape", r.normal(()), shape=[])
    yield case("EnsureShape", r.normal((2, 3)), shape=[None, 2], error="is not compatible with expected shape [?,2]")
    yield case("EnsureShape", r.normal((2, 3)), shape=[None], error="is not compatible with expected shape [?]")

    def parallel(t, n, row):
        # TensorFlow wants the shapes stated.
        values = [r.numbers(t, (1, *row)) for _ in range(n)]
        ps = [tf.compat.v1.placeholder(tf.as_dtype(t), v.shape) for v in values]
        return [Step(fetch=[tf.raw_ops.ParallelConcat(values=ps, shape=[n, *row])], feed=dict(zip(ps, values)))]

    for t in ALL:
        yield graph_case("ParallelConcat", lambda t=t: parallel(t, 3, (3,)), name=t)
    for n, row in [(1, ()), (1, (2, 2)), (2, (0,))]:
        yield graph_case("ParallelConcat", lambda n=n, row=row: parallel("float", n, row), name="shape")
    for t in ALL:
        if t in COMPLEX + ["bool"]:
            continue
        x, y = r.numbers(t, (7,)), r.numbers(t, (5,))
        for out in [tf.int32, tf.int64]:
            yield case("ListDiff", x, np.concatenate([y, x[2:4]]), out_idx=out, name=t)
    yield case("ListDiff", np.float32([np.nan, 0., -0., 1]), np.float32([np.nan, 0.]), name="edge")
    for n in [0, 1, 2, 6, 11]:
        for t in [np.int32, np.int64]:
            yield case("InvertPermutation", r.rng.permutation(n).astype(t))
    for t in ["int32", "int64"]:
        yield case("InvertPermutation", array(t, [0, 2]), error="is not between 0 and 2")
        yield case("InvertPermutation", array(t, [0, 0]), error="is duplicated in the input.")
        yield case("InvertPermutation", array(t, [-1, 0]), error="is not between 0 and 2")
        yield case("InvertPermutation", array(t, [[0]]), error="invert_permutation expects a 1D vector")
    for shape in [(5, 1, 2), (2, 3, 4, 2)]:
        yield case("LogicalNot", r.bools(shape))


def lists():
    """Lists and arrays that are not as long as each other, or of other types."""
    x, d = np.float32([0.60447377, 0.044337437]), tf.float32
    for n in [2, 40000]:
        yield case("_ListToArray", [x], T=d, N=n, name=f"shorter_{n}", error="#inputs != #outputs")
    yield case("_ListToArray", [x, x], T=d, N=1, name="longer", error="#inputs != #outputs")
    yield case("_ArrayToList", [x], out_types=[d, d], name="shorter", error="#inputs != #outputs")
    yield case("_ArrayToList", [x, x], out_types=[d], name="longer", error="#inputs != #outputs")
    yield case("_ArrayToList", [x], out_types=[tf.float64], name="other_type", error="")
    y = np.float64([2.1640953741385016, -0.4803903159646201])
    yield case("_ListToArray", [y], T=d, N=1, name="other_type", error="")


def copies(r):
    for op in ["Copy", "CopyHost"]:
        for t in ALL:
            yield case(op, r.numbers(t, (2, 3)), name=t)
        for shape in [(), (0,), (2, 0, 3)]:
            yield case(op, r.numbers("string", shape), name="shape")
    yield case("Fact")


def cases(r):
    yield from identities(r)
    yield from printing(r)
    yield from shapes(r)
    yield from lists()
    yield from copies(r)
