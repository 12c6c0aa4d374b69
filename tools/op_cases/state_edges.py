"""What ops with state answer at the edges of their arguments: which check comes first, what it says, what stays."""
from op_cases import *

R = tf.raw_ops


class Feeds:
    """Placeholders, and the arrays that a step feeds them."""

    def __init__(self):
        self.feed = {}

    def __call__(self, v, t=None):
        v = np.asarray(v) if t is None else array(t, v)
        p = tf.compat.v1.placeholder(tf.string if v.dtype == object else v.dtype, None)
        self.feed[p] = v
        return p

    def step(self, made, error=None):
        feed, self.feed = self.feed, {}
        if isinstance(made, tf.Operation):
            return Step(run=[made], feed=feed, error=error)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        return Step(fetch=made, feed=feed, error=error)


def played(op, name, *moves):
    """moves: functions of (feeds, what they keep between them) that make an op; (function, AS_SAID) for one that fails."""

    def build():
        f, kept = Feeds(), {}
        pairs = [m if isinstance(m, tuple) else (m, None) for m in moves]
        return [f.step(m(f, kept), error) for m, error in pairs]

    return graph_case(op, build, name=name)


def fails(move):
    return (move, AS_SAID)


# ---- variables ----


def variable(value):
    def move(f, kept):
        kept["h"] = R.VarHandleOp(dtype=tf.as_dtype(np.asarray(value).dtype), shape=None, shared_name="v")
        kept["t"] = tf.as_dtype(np.asarray(value).dtype)
        return R.AssignVariableOp(resource=kept["h"], value=f(value))
    return move


def read(f, kept):
    return R.ReadVariableOp(resource=kept["h"], dtype=kept["t"])


def scatter_nd(kind, indices, updates, **attrs):
    return lambda f, kept: getattr(R, "ResourceScatterNd" + kind)(ref=kept["h"], indices=f(indices), updates=f(updates), **attrs)


def scatter(kind, indices, updates):
    return lambda f, kept: getattr(R, "ResourceScatter" + kind)(resource=kept["h"], indices=f(indices), updates=f(updates))


def gather(indices, **attrs):
    return lambda f, kept: R.ResourceGather(resource=kept["h"], indices=f(indices), dtype=kept["t"], **attrs)


def variables(r):
    matrix = r.normal((3, 4))
    none = i32([]).reshape
    for kind in ("Add", "Update", "Max"):
        op = "ResourceScatterNd" + kind
        yield played(op, "last_of_bad", variable(matrix), fails(scatter_nd(kind, i32([[5], [1], [-1]]), r.normal((3, 4)))),
                     fails(scatter_nd(kind, i32([[[0, 9]], [[0, 0]]]), r.normal((2, 1)))))
        yield played(op, "shapes", variable(matrix), fails(scatter_nd(kind, i32([[0], [1]]), r.normal((3, 4)))),
                     fails(scatter_nd(kind, i32([[[0], [1]]]), r.normal((1, 3, 4)))),
                     fails(scatter_nd(kind, i32([[[0], [1]]]), r.normal((1,)))),
                     fails(scatter_nd(kind, i32([[0], [1]]), r.normal((2, 4, 1)))),
                     fails(scatter_nd(kind, i32([[0], [1]]), r.normal((2, 3)))),
                     fails(scatter_nd(kind, i32([0, 1]), r.normal((2, 3)))), read)
        yield played(op, "nothing", variable(matrix), scatter_nd(kind, none((0, 1)), r.normal((0, 4))),
                     fails(scatter_nd(kind, none((0, 1)), r.normal((2, 4)))), fails(scatter_nd(kind, none((2, 0)), r.normal((2, 3, 4)))),
                     fails(scatter_nd(kind, i32([[0]]), r.normal((0, 4)))), fails(scatter_nd(kind, none((0, 0)), r.normal((0, 3, 4)))), read)
        yield played(op, "policy", variable(matrix), fails(scatter_nd(kind, i32([[0]]), r.normal((1, 4)), bad_indices_policy="any")))
    for kind in ("Add", "Div", "Update"):
        op = "ResourceScatter" + kind
        yield played(op, "no_rows_of_any_width", variable(matrix), scatter(kind, i32([]), np.ones((0, 3), np.float32)), read)
        yield played(op, "index_before_width", variable(matrix), fails(scatter(kind, i32([7]), np.ones((1, 3), np.float32))), read)
        yield played(op, "prefix_of_a_scalar", variable(np.float32(2)), fails(scatter(kind, i32([[0], [0]]), np.ones((2,), np.float32))))
    for t in ("float", "half", "complex64", "int32"):
        yield played("ResourceScatterDiv", "by_0_" + t, variable(array(t, [4, 6])), fails(scatter("Div", i32([9]), array(t, [0]))),
                     fails(scatter("Div", i32([0, 1]), array(t, [2, 0]))), read)
    yield played("ResourceGather", "nothing_of_bad_rows", variable(np.zeros((0, 2), np.float32)), fails(gather(i32(0))),
                 gather(none((0,))), fails(gather(i32([0, 0]), batch_dims=1)))
    yield played("ResourceGather", "empty_rows", variable(np.zeros((2, 0), np.float32)), gather(i32([1, 0])), fails(gather(i32([1, 2]))))
    yield played("ResourceGatherNd", "last_of_bad", variable(matrix), fails(
        lambda f, kept: R.ResourceGatherNd(resource=kept["h"], indices=f(i32([[3, 0], [0, 0], [0, 4]])), dtype=kept["t"])))
    yield played("ResourceCountUpTo", "matrix", variable(i32([[1, 2]])), fails(
        lambda f, kept: R.ResourceCountUpTo(resource=kept["h"], limit=3, T=tf.int32)))
    destroy = lambda ignore: lambda f, kept: R.DestroyResourceOp(resource=kept["h"], ignore_lookup_error=ignore)
    yield played("DestroyResourceOp", "twice", variable(np.float32(1)), destroy(False), fails(destroy(False)), destroy(True))


# ---- tables ----


def words(*v):
    return np.array(list(v) + [None], object)[:-1]


def table(make):
    def move(f, kept):
        kept["h"] = make(f)
        kept["more"] = dict(f.feed)
        return R.LookupTableSizeV2(table_handle=kept["h"])
    return move


def on(op, **inputs):
    def move(f, kept):
        f.feed.update(kept["more"])
        fed = {k: f(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
        return getattr(R, op)(table_handle=kept["h"], **fed)
    return move


def tables(r):
    S, I = tf.string, tf.int64
    ab = words("a", "b")
    insert = lambda k, v: on("LookupTableInsertV2", keys=k, values=v)
    find = lambda k, v: on("LookupTableFindV2", keys=k, default_value=v)
    init = lambda k, v: on("InitializeTableV2", keys=k, values=v)
    fixed = table(lambda f: R.HashTableV2(key_dtype=S, value_dtype=I, shared_name="t"))
    yield played("LookupTableInsertV2", "fixed_wrong_count", fixed, fails(insert(ab, i64([1, 2, 3]))), fails(insert(ab, i64([1, 2]))))
    yield played("InitializeTableV2", "nothing", fixed, fails(init(words(), i64([]))), init(ab, i64([1, 2])), find(ab, i64(-1)))
    yield played("LookupTableImportV2", "nothing", fixed, fails(on("LookupTableImportV2", keys=words(), values=i64([]))))

    def dense(shape, load=0.8):
        return table(lambda f: R.MutableDenseHashTableV2(
            empty_key=f(i64(-1)), deleted_key=f(i64(-2)), value_dtype=tf.float32, value_shape=shape, shared_name="d",
            initial_num_buckets=8, max_load_factor=load))

    yield played("MutableDenseHashTableV2", "defaults", dense([2]), insert(i64([5]), r.normal((1, 2))),
                 find(i64([1, 5, 2]), r.normal((3, 2))), find(i64([1, 5, 2]), r.normal((2,))))
    yield played("MutableDenseHashTableV2", "scalar_defaults", dense([]), insert(i64([5]), r.normal((1,))),
                 find(i64([1, 5, 2]), r.normal((3,))), find(i64([1, 5]), r.normal(())))
    yield played("MutableDenseHashTableV2", "matrix_values", fails(dense([1, 2])))
    yield played("MutableDenseHashTableV2", "load_first", fails(dense([1, 2], 1.5)))
    for shape in ([], [1, 2]):
        yield played("MutableHashTableOfTensorsV2", f"rank_{len(shape)}", fails(table(lambda f: R.MutableHashTableOfTensorsV2(
            key_dtype=S, value_dtype=I, value_shape=shape, shared_name="t"))))


# ---- lists, arrays, maps ----


def in_one_run(op, name, make, error=None):
    def build():
        f = Feeds()
        return [f.step(make(f), error)]
    return graph_case(op, build, name=name)


def lists(r):
    F = tf.float32
    L = lambda f, v, shape: R.TensorListFromTensor(tensor=f(v), element_shape=f(i32(shape)))
    reserved = lambda f, n, shape: R.TensorListReserve(element_shape=f(i32(shape)), num_elements=f(i32(n)), element_dtype=F)
    put = lambda f, l, i, v, **a: R.TensorListSetItem(input_handle=l, index=f(i32(i)), item=f(v), **a)
    concat = lambda l, shape: list(R.TensorListConcat(input_handle=l, element_dtype=F, element_shape=shape))
    v2 = lambda f, l, shape, dims: list(R.TensorListConcatV2(input_handle=l, element_shape=f(i32(shape)), leading_dims=f(i64(dims)), element_dtype=F))
    x = r.normal((2, 3, 2))
    C = "TensorListConcat"
    yield in_one_run(C, "shape_of_the_op", lambda f: concat(L(f, x, [3, 2]), [None, 2]))
    yield in_one_run(C, "shape_unknown_to_the_op", lambda f: concat(L(f, x, [3, 2]), None), AS_SAID)
    yield in_one_run(C, "shape_of_the_items", lambda f: concat(L(f, x, [-1, 2]), None))
    yield in_one_run(C, "unset", lambda f: concat(put(f, reserved(f, 2, [-1, 2]), 0, x[0]), [None, 2]))
    yield in_one_run(C, "unset_of_the_ops_size", lambda f: concat(reserved(f, 2, [-1, 2]), [1, 2]), AS_SAID)
    yield in_one_run(C, "all_unset", lambda f: concat(reserved(f, 2, [-1, 2]), None), AS_SAID)
    yield in_one_run(C, "none", lambda f: concat(reserved(f, 0, -1), [None, None, 2]), AS_SAID)
    yield in_one_run(C, "ranks", lambda f: concat(L(f, x, [-1, -1]), [None, 2, 2]), AS_SAID)
    C = "TensorListConcatV2"
    yield in_one_run(C, "dims_before_shape", lambda f: v2(f, reserved(f, 3, -1), [3, 2], [1, 2]))
    yield in_one_run(C, "common_first_size", lambda f: v2(f, put(f, reserved(f, 3, -1), 1, x[0]), -1, []))
    yield in_one_run(C, "no_common_first_size", lambda f: v2(f, put(f, put(f, reserved(f, 3, -1), 1, x[0]), 0, x[0][:1]), -1, []), AS_SAID)
    yield in_one_run(C, "first_size", lambda f: v2(f, put(f, reserved(f, 2, -1), 1, x[0]), [2, 2], []), AS_SAID)
    yield in_one_run("TensorListConcat", "scalar_shape", lambda f: concat(L(f, x, [3, 2]), []), AS_SAID)
    yield in_one_run("TensorListGetItem", "vector_index", lambda f: R.TensorListGetItem(
        input_handle=L(f, x, -1), index=f(i32([1])), element_shape=f(i32(-1)), element_dtype=F))
    for i in ([1], [1, 0], [[0, 1, 0], [1, 0, 1]], []):
        yield in_one_run("TensorListSetItem", "index_of_rank", lambda f, i=i: R.TensorListLength(
            input_handle=put(f, L(f, x, -1), i, x[0])), AS_SAID)
    yield in_one_run("TensorListResize", "vector_size", lambda f: R.TensorListLength(
        input_handle=R.TensorListResize(input_handle=L(f, x, -1), size=f(i32([3])))), AS_SAID)
    gather = lambda f, i: R.TensorListGather(input_handle=L(f, x, -1), indices=f(i32(i)), element_shape=f(i32(-1)), element_dtype=F)
    yield in_one_run("TensorListGather", "negative", lambda f: gather(f, [0, -7]), AS_SAID)
    yield in_one_run("TensorListGather", "beyond", lambda f: gather(f, [0, 7]), AS_SAID)
    yield in_one_run("TensorListFromTensor", "matrix_shape", lambda f: R.TensorListLength(input_handle=L(f, x, [[1, 2]])), AS_SAID)
    yield in_one_run("TensorListScatter", "matrix_shape", lambda f: R.TensorListLength(input_handle=R.TensorListScatterV2(
        tensor=f(x), indices=f(i32([0, 1])), element_shape=f(i32([[1, 2]])), num_elements=f(i32(-1)))), AS_SAID)
    into = lambda f, v, i: R.TensorListLength(input_handle=R.TensorListScatterIntoExistingList(
        input_handle=reserved(f, 2, [2]), tensor=f(v), indices=f(i32(i))))
    yield in_one_run("TensorListScatterIntoExistingList", "count_first", lambda f: into(f, r.normal((1, 3)), [0, 1]), AS_SAID)
    yield in_one_run("TensorListSplit", "shape_before_lengths", lambda f: R.TensorListLength(input_handle=R.TensorListSplit(
        tensor=f(x), element_shape=f(i32([1, 2, 2])), lengths=f(i64([[1, 1]])))), AS_SAID)
    pop = lambda f, l, shape: list(R.TensorListPopBack(input_handle=l, element_shape=f(i32(shape)), element_dtype=F))[1]
    yield in_one_run("TensorListPopBack", "unset", lambda f: pop(f, reserved(f, 2, [-1, 2]), [3, -1]))
    yield in_one_run("TensorListPopBack", "unset_among_others", lambda f: pop(f, put(f, reserved(f, 2, [-1, 2]), 0, x[0]), -1), AS_SAID)
    yield in_one_run("TensorListSetItem", "shape_before_index", lambda f: R.TensorListLength(
        input_handle=put(f, reserved(f, 1, [2]), 4, r.normal((3,)))), AS_SAID)

    def array(f, n, indices, shape, element_shape, **more):
        a = R.TensorArrayV3(size=f(i32(n)), dtype=F, element_shape=element_shape, tensor_array_name="a", **more)
        g = R.TensorArrayGatherV3(handle=a[0], indices=f(i32(indices)), flow_in=a[1], dtype=F, element_shape=shape)
        with tf.control_dependencies([g]):
            return [g, R.TensorArrayReadV3(handle=a[0], index=f(i32(0)), flow_in=tf.identity(a[1]), dtype=F)]

    yield in_one_run("TensorArrayGatherV3", "keeps_shape", lambda f: array(f, 2, [1], [2, 2], None, clear_after_read=False))
    yield in_one_run("TensorArrayGatherV3", "none_of_unknown", lambda f: array(f, 2, [], None, [2]), AS_SAID)
    yield in_one_run("TensorArrayGatherV3", "none_of_known", lambda f: array(f, 2, [], [2], [None]))

    def gradient(f, index, shape):
        a = R.TensorArrayV3(size=f(i32(2)), dtype=F, element_shape=shape, tensor_array_name="a")
        g = R.TensorArrayGradV3(handle=a[0], flow_in=a[1], source="g")
        return R.TensorArrayReadV3(handle=g[0], index=f(i32(index)), flow_in=g[1], dtype=F)

    yield in_one_run("TensorArrayGradV3", "read_beyond", lambda f: gradient(f, 5, [2]))
    yield in_one_run("TensorArrayGradV3", "read_before", lambda f: gradient(f, -1, [2]), AS_SAID)
    size = lambda f, n, i: R.TensorArrayReadV3(handle=(a := R.TensorArrayV3(size=f(i32(n)), dtype=F, element_shape=[2]))[0],
                                               index=f(i32(i)), flow_in=a[1], dtype=F)
    yield in_one_run("TensorArrayV3", "vector_size", lambda f: size(f, [2], 0), AS_SAID)
    yield in_one_run("TensorArrayReadV3", "vector_index", lambda f: size(f, 2, [0]), AS_SAID)

    def missing(key, op="Lookup"):
        def make(f):
            m = R.TensorMapInsert(input_handle=R.EmptyTensorMap(), key=f(words("x")), value=f(np.float32(1)))
            out = getattr(R, "TensorMap" + op)(input_handle=m, key=f(key), value_dtype=F)
            return out if op == "Lookup" else R.TensorMapSize(input_handle=out)
        return make

    for name, key in (("word", np.array("a b", object)), ("words", words("p", "q")), ("matrix", i32([[1, 2], [3, 4]])),
                      ("complex", np.complex64(1 + 2j)), ("float", np.float32(1.25))):
        yield in_one_run("TensorMapLookup", "missing_" + name, missing(key), AS_SAID)
        yield in_one_run("TensorMapErase", "missing_" + name, missing(key, "Erase"), AS_SAID)
    yield case("Assert", np.array(False), [np.complex64([1 + 2j, 3])], error=AS_SAID)


# ---- generators ----


def generators(r):
    state = i64([7, -5, 11])
    of = lambda op, **inputs: lambda f, kept: getattr(R, op)(
        resource=kept["h"], **{k: f(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()})
    shape = i32([2, 3])
    drawn = {"StatefulUniform": {}, "StatefulStandardNormalV2": {}, "StatefulTruncatedNormal": {},
             "StatefulUniformFullInt": dict(dtype=tf.uint32), "StatefulUniformInt": dict(minval=i32(2), maxval=i32(50))}
    for op, more in drawn.items():
        yield played(op, "chosen_by_device", variable(state), of(op, algorithm=i64(3), shape=shape, **more), read)
        yield played(op, "order", variable(state[:2]), fails(of(op, algorithm=i64(9), shape=i32([[1, 2]]), **more)),
                     fails(of(op, algorithm=i64(2), shape=i32(3), **more)), fails(of(op, algorithm=i64(3), shape=shape, **more)),
                     fails(of(op, algorithm=i64(2), shape=shape, **more)))
    bounds = lambda lo, hi, **more: fails(of("StatefulUniformInt", minval=i32(lo), maxval=i32(hi), **more))
    yield played("StatefulUniformInt", "bounds_first", variable(state), bounds(5, 5, algorithm=i64(2), shape=i32(3)),
                 bounds([5], 5, algorithm=i64(1), shape=i32(3)), bounds(5, [5], algorithm=i64(1), shape=shape),
                 bounds(5, 5, algorithm=i64(1), shape=i32([0])), bounds(5, 5, algorithm=i64(7), shape=shape))
    yield played("RngSkip", "chosen_by_device", variable(state), of("RngSkip", algorithm=i64(3), delta=i64(5)), read)
    for delta in (-1, -4, 2**62, 2**56 - 1):
        yield played("RngSkip", f"by_{delta}", variable(i64([-300, 3, 9])), of("RngSkip", algorithm=i64(1), delta=i64(delta)), read,
                     of("RngSkip", algorithm=i64(1), delta=i64(delta)), read)
    yield played("RngReadAndSkip", "chosen_by_device", variable(state),
                 of("RngReadAndSkip", alg=i32(3), delta=np.array(2**63 + 5, np.uint64)), read)
    binomial = lambda alg, shape: of("StatefulRandomBinomial", algorithm=i64(alg), shape=i32(shape), counts=np.float32(5), probs=np.float32(.5))
    yield played("StatefulRandomBinomial", "order", variable(state), fails(binomial(3, [2])), fails(binomial(2, [2])), fails(binomial(9, [[2]])))


# ---- accumulators, queues ----


def accumulators(r):
    def accumulator(shape):
        def move(f, kept):
            kept["h"] = R.SparseConditionalAccumulator(dtype=tf.float32, shape=shape, shared_name="a", reduction_type="SUM")
            return R.AccumulatorNumAccumulated(handle=kept["h"])
        return move

    def apply(indices, values, shape, known=True, step=0):
        return lambda f, kept: R.SparseAccumulatorApplyGradient(
            handle=kept["h"], local_step=f(i64(step)), gradient_indices=f(i64(indices)), gradient_values=f(values),
            gradient_shape=f(i64(shape)), has_known_shape=known)

    take = lambda f, kept: list(R.SparseAccumulatorTakeGradient(handle=kept["h"], num_required=f(i32(1)), dtype=tf.float32))
    x = r.normal((2, 3))
    op = "SparseAccumulatorApplyGradient"
    yield played(op, "shape_of_no_use", accumulator(None), apply([1, 0], x, []), apply([0, 1], x, [0, 3]), take)
    yield played(op, "stated_scalar", accumulator([]), apply([0, 1], x, []), take)
    yield played(op, "negative", accumulator([4, 3]), apply([-1, 0], x, [4, 3]), take)
    yield played(op, "ranks", accumulator([4, 3]), fails(apply([0, 1], x, 4)), fails(apply([0, 1], x, [4])), fails(apply([0, 1], x, [4, 2])),
                 fails(apply([0, 1], r.normal((2,)), [4, 3])), fails(apply([0, 1], r.normal((2, 2)), [4, 3])),
                 fails(apply([0, 4], x, [4, 3])), apply([0, 1], r.normal((2, 3, 2)), [4, 3, 2]),
                 fails(apply([0, 1], x, [4, 3])), fails(apply([0, 1], r.normal((2, 3, 1)), [4, 3])))
    yield played(op, "vector_step", accumulator([4, 3]), fails(apply([0, 1], x, [4, 3], step=[1])))

    def queue(kind, **more):
        def move(f, kept):
            kept["h"] = getattr(R, kind)(component_types=[tf.float32, tf.int32], shapes=[(2,), ()], shared_name="q", **more)
            return R.QueueSizeV2(handle=kept["h"])
        return move

    close = lambda cancel: lambda f, kept: R.QueueCloseV2(handle=kept["h"], cancel_pending_enqueues=cancel)
    many = lambda *v: lambda f, kept: R.QueueEnqueueManyV2(handle=kept["h"], components=[f(x) for x in v])
    closed = lambda f, kept: R.QueueIsClosedV2(handle=kept["h"])
    yield played("QueueCloseV2", "to_cancel", queue("FIFOQueueV2"), close(False), close(True), close(True), closed, fails(close(False)))
    yield played("QueueEnqueueManyV2", "scalar_behind", queue("FIFOQueueV2"), fails(many(r.normal((3, 2)), i32(1))),
                 fails(many(r.normal((3, 3)), i32([1, 2, 3]))))
    put_all = many(r.normal((3, 2)), i32([1, 2, 3]))
    for up_to in ("Many", "UpTo"):
        op = f"QueueDequeue{up_to}V2"
        yield played(op, "vector_of_counts", queue("FIFOQueueV2"), put_all, lambda f, kept, op=op: list(getattr(R, op)(
            handle=kept["h"], n=f(i32([2, 9])), component_types=[tf.float32, tf.int32])))
    yield played("QueueEnqueueManyV2", "priority_scalar_behind", queue("PriorityQueueV2"),
                 fails(many(i64([1, 2, 3]), np.float32(1), i32([1, 2, 3]))))


def cases(r):
    yield from variables(r)
    yield from tables(r)
    yield from lists(r)
    yield from generators(r)
    yield from accumulators(r)
