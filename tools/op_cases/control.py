"""Tensor lists, tensor arrays, stacks, optionals, functions, branches and loops."""
from op_cases import *

R = tf.raw_ops
F = tf.float32


class Feeds:
    """Makes placeholders of unknown shape and remembers what they are fed."""

    def __init__(self):
        self.feed = {}

    def __call__(self, value, dtype=None):
        value = np.asarray(value, dtype=np.float32 if dtype is None and np.asarray(value).dtype == float else dtype)
        if value.dtype == np.int64 and dtype is None:
            value = value.astype(np.int32)
        # Control edges must go to the op that the placeholder is for.
        with tf.control_dependencies(None):
            p = tf.compat.v1.placeholder(tf.string if value.dtype.kind in "OSU" else value.dtype, None)
        self.feed[p] = value
        return p


def steps(op, name, make, error=None):
    """A graph case of one step; make(ph) returns what to fetch."""

    def build():
        ph = Feeds()
        fetch = make(ph)
        fetch = list(fetch) if isinstance(fetch, (list, tuple)) else [fetch]
        return [Step(fetch=[f for f in fetch if isinstance(f, tf.Tensor)],
                     run=[f for f in fetch if isinstance(f, tf.Operation)], feed=ph.feed, error=error)]

    return graph_case(op, build, name=name)


def veil(handle):
    """Hides from shape inference what the list holds, so that errors come from the kernels."""
    return tf.compat.v1.placeholder_with_default(handle, None)


def reserve(ph, shape, n, t=F):
    return veil(R.TensorListReserve(element_shape=ph(shape, np.int32), num_elements=ph(n), element_dtype=t))


def empty(ph, shape, limit=-1, t=F):
    return veil(R.EmptyTensorList(element_shape=ph(shape, np.int32), max_num_elements=ph(limit), element_dtype=t))


def from_tensor(ph, values, shape, dtype=None):
    return veil(R.TensorListFromTensor(tensor=ph(values, dtype), element_shape=ph(shape, np.int32)))


def stack(ph, l, shape=-1, t=F, n=-1):
    return R.TensorListStack(input_handle=l, element_shape=ph(shape, np.int32), element_dtype=t, num_elements=n)


def get(ph, l, i, shape=-1, t=F):
    return R.TensorListGetItem(input_handle=l, index=ph(i), element_shape=ph(shape, np.int32), element_dtype=t)


def put(ph, l, i, v, dtype=None, resize=False):
    return R.TensorListSetItem(input_handle=l, index=ph(i), item=ph(v, dtype), resize_if_index_out_of_bounds=resize)


def push(ph, l, v, dtype=None):
    return R.TensorListPushBack(input_handle=l, tensor=ph(v, dtype))


def pop(ph, l, shape=-1, t=F):
    return R.TensorListPopBack(input_handle=l, element_shape=ph(shape, np.int32), element_dtype=t)


def length(l):
    return R.TensorListLength(input_handle=l)


def mixed(ph):
    return put(ph, put(ph, reserve(ph, -1, 2), 0, [1., 2.]), 1, [1., 2., 3.])


def lists(r):
    S = steps
    yield S("EmptyTensorList", "length", lambda p: length(empty(p, [2])))
    yield S("EmptyTensorList", "shape_rank", lambda p: length(empty(p, [[2]])), "Shape must be at most rank 1")
    yield S("EmptyTensorList", "limit_vector", lambda p: length(empty(p, [2], [1])), "expected to be a scalar")
    yield S("EmptyTensorList", "scalar_shape", lambda p: length(empty(p, 3)), "The only valid scalar shape tensor")
    yield S("TensorListReserve", "length", lambda p: length(reserve(p, [2], 3)))
    yield S("TensorListReserve", "negative", lambda p: length(reserve(p, [2], -1)), "must be a non negative number")
    yield S("TensorListReserve", "dimension", lambda p: length(reserve(p, [-2], 1)), "Dimension -2 must be >= -1")
    yield S("TensorListReserve", "vector", lambda p: length(reserve(p, [2], [1])), "must be a tensor size 1")
    for t in NUMBERS + ["bool", "string"]:
        dt = tf.as_dtype(t)
        v = r.numbers(t, (3, 2))
        yield S("TensorListStack", t, lambda p, v=v, dt=dt: stack(p, from_tensor(p, v, [2], v.dtype), [2], dt))
        yield S("TensorListGetItem", t, lambda p, v=v, dt=dt: get(
            p, put(p, reserve(p, [2], 3, dt), 1, v[0], v.dtype), 1, [2], dt))
        yield S("TensorListGetItem", t + "_zeros", lambda p, dt=dt: get(p, reserve(p, [2], 3, dt), 1, [2], dt))
        yield S("TensorListConcatV2", t, lambda p, v=v, dt=dt: concat(p, from_tensor(p, v, [2], v.dtype), [-1], t=dt)[0])
    # items
    yield S("TensorListGetItem", "unset_unknown", lambda p: get(p, reserve(p, [-1], 3), 1, [-1]),
            "element_shape is not fully defined: [?] and no list element is set.")
    yield S("TensorListGetItem", "unset_merged", lambda p: get(p, reserve(p, [-1, 2], 3), 1, [3, -1]))
    yield S("TensorListGetItem", "unset_sibling", lambda p: get(p, put(p, reserve(p, -1, 3), 0, [1., 2.]), 1))
    yield S("TensorListGetItem", "beyond", lambda p: get(p, reserve(p, [2], 3), 3, [2]),
            "Trying to access element 3 in a list with 3 elements.")
    yield S("TensorListGetItem", "negative", lambda p: get(p, reserve(p, [2], 3), -1, [2]), "Trying to access element -1")
    yield S("TensorListGetItem", "type", lambda p: get(p, reserve(p, [2], 3), 0, [2], tf.int32),
            "Invalid data types; op elements int32 but list elements float")
    yield S("TensorListGetItem", "shape", lambda p: get(p, reserve(p, [2], 3), 0, [3]),
            "PartialTensorShape: Incompatible shapes during merge: [3] vs. [2]")
    yield S("TensorListGetItem", "rank", lambda p: get(p, reserve(p, [2], 3), 0, [2, 2]),
            "PartialTensorShape: Incompatible ranks during merge: 2 vs. 1")
    yield S("TensorListGetItem", "set_other_shape", lambda p: get(p, put(p, reserve(p, -1, 3), 0, [1., 2.]), 0, [3]))
    yield S("TensorListGetItem", "no_list", lambda p: get(p, R.OptionalNone(), 0), "Input handle is not a list. Saw: '")
    yield S("TensorListSetItem", "beyond", lambda p: length(put(p, reserve(p, [2], 3), 3, [1., 2.])),
            "Trying to modify element 3 in a list with 3 elements.")
    yield S("TensorListSetItem", "negative", lambda p: length(put(p, reserve(p, [2], 3), -1, [1., 2.])), "")
    yield S("TensorListSetItem", "resize", lambda p: length(put(p, reserve(p, [2], 3), 5, [1., 2.], resize=True)))
    yield S("TensorListSetItem", "type", lambda p: length(put(p, reserve(p, [2], 3), 0, [1, 2])), "Invalid data types;")
    yield S("TensorListSetItem", "shape", lambda p: length(put(p, reserve(p, [2], 3), 0, [1., 2., 3.])),
            "Item element shape: [3] list shape: [2]")

    def old_lists(p):
        l = reserve(p, [2], 2)
        m = put(p, l, 0, [1., 2.])
        return [stack(p, x, [2]) for x in (l, m, put(p, m, 1, [3., 4.]))]

    yield S("TensorListSetItem", "old_lists_stay", old_lists)
    yield S("TensorListPushBack", "two", lambda p: stack(p, push(p, push(p, empty(p, [2]), [1., 2.]), [3., 4.])))
    yield S("TensorListPushBack", "full", lambda p: length(push(p, push(p, empty(p, [2], 1), [1., 2.]), [1., 2.])),
            "Tried to push item into a full list list size: 1 max_num_elements: 1")
    yield S("TensorListPushBack", "shape", lambda p: length(push(p, empty(p, [2]), [1.])),
            "Op element shape: [1] list shape: [2]")
    yield S("TensorListPushBack", "type", lambda p: length(push(p, empty(p, [2]), [1, 2])), "Invalid data types;")
    yield S("TensorListPopBack", "one", lambda p: (lambda o: [o[1], length(o[0])])(pop(p, from_tensor(
        p, [[1., 2.], [3., 4.]], [2]), [2])))
    yield S("TensorListPopBack", "unset", lambda p: pop(p, reserve(p, [2], 2), [2])[1])
    yield S("TensorListPopBack", "empty", lambda p: pop(p, empty(p, [2]), [2])[1], "Trying to pop from an empty list.")
    yield S("TensorListPopBack", "type", lambda p: pop(p, empty(p, [2]), [2], tf.int32)[1], "Invalid data types;")
    yield S("TensorListPopBack", "shape", lambda p: pop(p, reserve(p, [2], 2), [3])[1], "[3] vs. [2]")
    for shape in ([2, -1], [], -1, [3]):
        for t in (tf.int32, tf.int64):
            yield S("TensorListElementShape", "shape", lambda p, shape=shape, t=t: R.TensorListElementShape(
                input_handle=reserve(p, shape, 3), shape_type=t))
    for n in (0, 1, 3):
        yield S("TensorListResize", "to", lambda p, n=n: stack(p, R.TensorListResize(
            input_handle=from_tensor(p, [[1., 2.], [3., 4.]], [2]), size=p(n)), [2]))
    yield S("TensorListResize", "negative", lambda p: length(R.TensorListResize(
        input_handle=reserve(p, [2], 2), size=p(-1))), "TensorListSlice expects size to be non-negative. Got: -1")
    # whole lists
    yield S("TensorListFromTensor", "scalar", lambda p: length(from_tensor(p, 1., [])),
            "Tensor must be at least a vector, but saw shape: []")
    yield S("TensorListFromTensor", "shape", lambda p: length(from_tensor(p, [[1., 2.]], [3])),
            "Specified a list with shape [3] from a tensor with shape [2]")
    yield S("TensorListFromTensor", "rank", lambda p: length(from_tensor(p, [[1., 2.]], [2, 2])), "[2,2]")
    yield S("TensorListFromTensor", "empty", lambda p: length(from_tensor(p, np.zeros((0, 2)), [2])))
    yield S("TensorListFromTensor", "scalars", lambda p: get(p, from_tensor(p, [1., 2., 3.], []), 2, []))
    yield S("TensorListStack", "empty", lambda p: stack(p, reserve(p, [2], 0), [2]))
    yield S("TensorListStack", "empty_unknown", lambda p: stack(p, reserve(p, [-1], 0), [-1]),
            "Tried to stack elements of an empty list with non-fully-defined element_shape: [?]")
    yield S("TensorListStack", "unset", lambda p: stack(p, reserve(p, [2], 2), [2]))
    zeros = lambda l: R.ZerosLike(x=l)
    yield S("ZerosLike", "list", lambda p: stack(p, zeros(from_tensor(p, np.float32([[1, 2], [3, 4]]), [2], np.float32)), [2]))
    yield S("ZerosLike", "unset_list", lambda p: stack(p, zeros(reserve(p, [2], 2)), [2]))
    yield S("ZerosLike", "lists", lambda p: stack(p, zeros(tf.stack([reserve(p, [2], 2)] * 2)), [2]),
            "ZerosLike non-scalar Tensor with dtype=DT_VARIANT is not supported.")
    pairs = lambda p, t=np.float32: from_tensor(p, np.array([[1, 2], [3, 4]], t), [2], t)
    other = lambda p, by=0.7: from_tensor(p, np.float32([[0.1, 1e8], [3, -4]]) * np.float32(by), [2], np.float32)
    ones = lambda p, n: from_tensor(p, np.ones((n, 2), np.float32), [2], np.float32)
    add = lambda *lists: R.AddN(inputs=list(lists))
    for n in (1, 2, 3, 4, 5):
        yield S("AddN", "lists", lambda p, n=n: stack(p, add(*[other(p, by) for by in (0.7, 1.3, -1.0, 0.01, 2.0)[:n]]), [2]))
    yield S("AddN", "lists_of_integers", lambda p: stack(p, add(pairs(p, np.int32), pairs(p, np.int32)), [2], tf.int32))
    yield S("AddN", "partly_set_lists", lambda p: stack(p, add(put(p, reserve(p, [2], 3), 1, [1., 2.]), put(p, reserve(p, [2], 3), 2, [5., 6.])), [2]))
    yield S("AddN", "lists_of_open_shape", lambda p: get(p, add(put(p, reserve(p, [-1], 1), 0, [1., 2.]), ones(p, 1)), 0, [2]))
    nested = lambda p: R.TensorListSetItem(input_handle=reserve(p, [], 2, tf.variant), index=p(1), item=pairs(p))
    inner = lambda p, l: stack(p, R.TensorListGetItem(input_handle=l, index=p(1), element_shape=p([], np.int32), element_dtype=tf.variant), [2])
    yield S("AddN", "lists_of_lists", lambda p: inner(p, add(nested(p), nested(p))))
    yield S("ZerosLike", "lists_of_lists", lambda p: inner(p, zeros(nested(p))))
    yield S("AddN", "lists_of_two_types", lambda p: length(add(pairs(p), pairs(p, np.int32))), "Trying to add two lists of tensors of different dtypes.")
    yield S("AddN", "lists_of_two_lengths", lambda p: length(add(pairs(p), reserve(p, [2], 3))), "Trying to add two lists of tensors with different lengths. One is 2 and the other is 3")
    yield S("AddN", "lists_of_two_shapes", lambda p: length(add(pairs(p), reserve(p, [3], 2))), "Trying to add two lists of tensors with incompatible element shapes.")
    yield S("AddN", "items_of_two_shapes", lambda p: length(add(mixed(p), ones(p, 2))), "Trying to add two tensors with incompatible element shapes.")
    yield S("AddN", "list_vectors", lambda p: length(add(*[tf.stack([pairs(p), pairs(p)])] * 2)[0]), "AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported;")
    yield S("TensorListStack", "unset_unknown", lambda p: stack(p, reserve(p, [-1], 2), [-1]),
            "Tried to stack list which only contains uninitialized tensors")
    yield S("TensorListStack", "count", lambda p: stack(p, reserve(p, [2], 2), [2], n=3),
            "Operation expected a list with 3 elements but got a list with 2 elements.")
    yield S("TensorListStack", "type", lambda p: stack(p, reserve(p, [2], 2), [2], tf.int32), "Invalid data types;")
    yield S("TensorListStack", "shape", lambda p: stack(p, reserve(p, [2], 2), [3]), "[3] vs. [2]")
    yield S("TensorListStack", "mixed", lambda p: stack(p, mixed(p)), "[2] vs. [3]")
    yield S("TensorListStack", "mixed_known", lambda p: stack(p, mixed(p), [2]), "[2] vs. [3]")
    yield S("TensorListStack", "partly", lambda p: stack(p, put(p, reserve(p, -1, 3), 1, [1., 2.])))
    yield S("TensorListStack", "scalars", lambda p: stack(p, from_tensor(p, [1., 2., 3.], []), []))
    yield S("TensorListStack", "zero_width", lambda p: stack(p, reserve(p, [0], 2), [0]))
    two = [[1., 2.], [3., 4.]]

    def gather(p, l, ix, shape=-1, t=F):
        return R.TensorListGather(input_handle=l, indices=p(ix, np.int32), element_shape=p(shape, np.int32),
                                  element_dtype=t)

    yield S("TensorListGather", "some", lambda p: gather(p, from_tensor(p, two, [2]), [1, 0, 1], [2]))
    yield S("TensorListGather", "beyond", lambda p: gather(p, from_tensor(p, two, [2]), [2], [2]),
            "Index 2 out o range; list only has 2 elements.")
    yield S("TensorListGather", "negative", lambda p: gather(p, from_tensor(p, two, [2]), [-1], [2]), "Index -1 out o range")
    yield S("TensorListGather", "none", lambda p: gather(p, from_tensor(p, two, [2]), [], [2]))
    yield S("TensorListGather", "none_unknown", lambda p: gather(p, reserve(p, [-1], 2), [], [-1]),
            "Tried to gather 0-elements from a list with non-fully-defined shape: [?]")
    yield S("TensorListGather", "unset", lambda p: gather(p, reserve(p, [2], 2), [1], [2]))
    yield S("TensorListGather", "unset_unknown", lambda p: gather(p, reserve(p, [-1], 2), [1], [-1]),
            "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: [?]")
    yield S("TensorListGather", "mixed", lambda p: gather(p, mixed(p), [0, 1]), "[2] vs. [3]")

    def scatter(p, v, ix, shape, n=None):
        args = dict(tensor=p(v), indices=p(ix, np.int32), element_shape=p(shape, np.int32))
        return stack(p, R.TensorListScatter(**args) if n is None else R.TensorListScatterV2(num_elements=p(n), **args),
                     shape)

    yield S("TensorListScatter", "two", lambda p: scatter(p, two, [2, 0], [2]))
    yield S("TensorListScatter", "negative", lambda p: scatter(p, two, [2, -1], [2]), "must all be non-negative")
    yield S("TensorListScatter", "count", lambda p: scatter(p, two, [2], [2]), "Invalid number of rows in input tensor")
    for n in (5, 3, -1):
        yield S("TensorListScatterV2", "two", lambda p, n=n: scatter(p, two, [2, 0], [2], n))
    yield S("TensorListScatterV2", "few", lambda p: scatter(p, two, [2, 0], [2], 2),
            "TensorListScatter: Trying to scatter at index 2 in list with size 2")
    yield S("TensorListScatterV2", "negative_size", lambda p: scatter(p, two, [2, 0], [2], -2), "num_elements >= -1")
    yield S("TensorListScatterV2", "shape", lambda p: scatter(p, two, [2, 0], [3], -1), "[3] from a tensor with shape [2]")
    yield S("TensorListScatterV2", "scalar", lambda p: scatter(p, 1., [2, 0], [3], -1), "Tensor must be at least a vector")
    yield S("TensorListScatterV2", "none", lambda p: scatter(p, np.zeros((0, 2)), [], [2], 2))

    def into(p, v, ix):
        return stack(p, veil(R.TensorListScatterIntoExistingList(input_handle=reserve(p, [2], 2), tensor=p(v),
                                                                 indices=p(ix, np.int32))), [2])

    yield S("TensorListScatterIntoExistingList", "grows", lambda p: into(p, two, [2, 0]))
    yield S("TensorListScatterIntoExistingList", "fits", lambda p: into(p, two, [1, 0]))
    yield S("TensorListScatterIntoExistingList", "type", lambda p: into(p, [[1, 2]], [0]), "Invalid data types; input tensor")
    yield S("TensorListConcatV2", "lengths", lambda p: concat(p, mixed(p), [-1]))
    yield S("TensorListConcatV2", "unknown", lambda p: concat(p, mixed(p), -1))
    yield S("TensorListConcatV2", "fixed", lambda p: concat(p, from_tensor(p, two, [2]), [2]))
    yield S("TensorListConcatV2", "other_fixed", lambda p: concat(p, mixed(p), [2]),
            "First entry of element_shape input does not match the first dim of list element at index: 1 "
            "Expected: 2 Actual: 3")
    yield S("TensorListConcatV2", "empty", lambda p: concat(p, reserve(p, [-1], 0), [-1]))
    yield S("TensorListConcatV2", "empty_matrix", lambda p: concat(p, reserve(p, -1, 0), [-1, 2]))
    yield S("TensorListConcatV2", "empty_unknown", lambda p: concat(p, reserve(p, -1, 0), -1),
            "All except the first dimension must be fully defined when concating an empty tensor list")
    yield S("TensorListConcatV2", "unset", lambda p: concat(p, reserve(p, [-1, 2], 2), [-1, 2]),
            "List contains uninitialized tensor at index 0 but leading_dims has only 0 elements.")
    yield S("TensorListConcatV2", "unset_leading", lambda p: concat(p, reserve(p, [-1, 2], 2), [-1, 2], [1, 2]))
    yield S("TensorListConcatV2", "unset_few_leading", lambda p: concat(p, reserve(p, [-1, 2], 2), [-1, 2], [1]),
            "at index 1 but leading_dims has only 1 elements.")
    yield S("TensorListConcatV2", "unset_fixed", lambda p: concat(p, reserve(p, [3, 2], 2), [3, 2]))
    yield S("TensorListConcatV2", "type", lambda p: concat(p, veil(mixed(p)), -1, t=tf.int32), "Invalid data types;")
    yield S("TensorListConcatV2", "scalars", lambda p: concat(p, from_tensor(p, [1., 2.], []), -1), "")
    yield S("TensorListConcatV2", "widths", lambda p: concat(p, put(p, put(p, reserve(p, -1, 2), 0, [[1., 2.]]), 1,
                                                                   [[1., 2., 3.]]), -1), "[2] vs. [3]")
    yield S("TensorListConcat", "some", lambda p: R.TensorListConcat(
        input_handle=from_tensor(p, two, [2]), element_dtype=F, element_shape=tf.TensorShape([None])))

    def split(p, v, shape, lengths):
        return R.TensorListSplit(tensor=p(v), element_shape=p(shape, np.int32), lengths=p(lengths, np.int64))

    three = [[1.], [2.], [3.]]
    yield S("TensorListSplit", "two", lambda p: [get(p, split(p, three, [-1, 1], [1, 2]), i, [-1, 1]) for i in (0, 1)])
    yield S("TensorListSplit", "zero", lambda p: get(p, split(p, three, [-1, 1], [0, 3]), 0, [-1, 1]))
    yield S("TensorListSplit", "negative", lambda p: length(split(p, three, [-1, 1], [1, -2])), "Invalid value in lengths: -2")
    yield S("TensorListSplit", "more", lambda p: length(split(p, three, [-1, 1], [1, 3])),
            "Attempting to slice [1, 4] from tensor with length 3")
    yield S("TensorListSplit", "less", lambda p: length(split(p, three, [-1, 1], [1, 1])),
            "Unused values in tensor. Length of tensor: 3 Values used: 2")
    yield S("TensorListSplit", "scalar", lambda p: length(split(p, 1., [-1, 1], [1])), "Tensor must be at least a vector")
    yield S("TensorListSplit", "shape", lambda p: length(split(p, three, [-1, 2], [1, 2])),
            "tensor shape [3,1] is not compatible with element_shape [?,2]")
    yield S("TensorListSplit", "fixed", lambda p: length(split(p, three, [2, 1], [1, 2])))
    yield S("TensorListSplit", "lengths", lambda p: length(split(p, three, [2, 1], 1)), "Expected lengths to be a vector")

    def joined(a, b, t=F):
        return R.TensorListConcatLists(input_a=a, input_b=b, element_dtype=t)

    yield S("TensorListConcatLists", "two", lambda p: stack(p, joined(from_tensor(p, [[1., 2.]], [2]),
                                                                     from_tensor(p, two, [2])), [2]))
    yield S("TensorListConcatLists", "shapes", lambda p: length(joined(from_tensor(p, [[1.]], [1]), from_tensor(
        p, two, [2]))), "Saw [1] vs. [2]")
    yield S("TensorListConcatLists", "types", lambda p: length(joined(from_tensor(p, [[1, 2]], [2]), from_tensor(
        p, two, [2]))), "input_a[0].dtype != element_dtype.  Saw: int32 vs. float")


def concat(p, l, shape, leading=(), t=F):
    o = R.TensorListConcatV2(input_handle=l, element_shape=p(shape, np.int32), leading_dims=p(leading, np.int64),
                             element_dtype=t)
    return [o[0], o[1]]


def arrays(r):
    S = steps

    def ta(p, n, shape=None, t=F, **more):
        return R.TensorArrayV3(size=p(n), dtype=t, element_shape=tf.TensorShape(shape), tensor_array_name="arr", **more)

    def write(p, t, i, v, flow=None):
        return R.TensorArrayWriteV3(handle=t[0], index=p(i), value=p(v), flow_in=t[1] if flow is None else flow)

    def read(p, t, i, flow, dt=F):
        return R.TensorArrayReadV3(handle=t[0], index=p(i), flow_in=flow, dtype=dt)

    def written(p, i, j, dt=F, **more):
        t = ta(p, 3, **more)
        return read(p, t, j, write(p, t, i, [1., 2.]), dt)

    yield S("TensorArrayV3", "negative", lambda p: ta(p, -1)[1], "Size should be >= 0.")
    yield S("TensorArrayReadV3", "written", lambda p: written(p, 1, 1))
    yield S("TensorArrayReadV3", "unwritten", lambda p: written(p, 1, 0), "Could not read from TensorArray index 0.")
    yield S("TensorArrayReadV3", "unwritten_shape", lambda p: written(p, 1, 0, shape=[2]))
    yield S("TensorArrayReadV3", "beyond", lambda p: written(p, 1, 5), "Tried to read from index 5 but array size is: 3")
    yield S("TensorArrayReadV3", "negative", lambda p: written(p, 1, -1), "Tried to read from index -1")
    yield S("TensorArrayReadV3", "type", lambda p: written(p, 1, 1, tf.int32), "TensorArray dtype is float but Op requested")

    def twice(p, **more):
        t = ta(p, 3, **more)
        flow = write(p, t, 1, [1., 2.])
        with tf.control_dependencies([read(p, t, 1, flow)]):
            return read(p, t, 1, flow)

    yield S("TensorArrayReadV3", "twice", twice, "Could not read index 1 twice because it was cleared after a previous read")
    yield S("TensorArrayReadV3", "twice_kept", lambda p: twice(p, clear_after_read=False))
    yield S("TensorArrayWriteV3", "beyond", lambda p: write(p, ta(p, 3), 3, [1.]),
            "Tried to write to index 3 but array is not resizeable and size is: 3")
    yield S("TensorArrayWriteV3", "negative", lambda p: write(p, ta(p, 3), -1, [1.]), "Tried to write to index -1")

    def sized(p):
        t = ta(p, 3, dynamic_size=True)
        return R.TensorArraySizeV3(handle=t[0], flow_in=write(p, t, 5, [1.]))

    yield S("TensorArraySizeV3", "dynamic", sized)

    def rewritten(p):
        t = ta(p, 3)
        return write(p, t, 1, [1., 2.], write(p, t, 1, [1., 2.]))

    yield S("TensorArrayWriteV3", "twice", rewritten, "because it has already been written to.")

    def late(p):
        t = ta(p, 3)
        flow = write(p, t, 1, [1., 2.])
        with tf.control_dependencies([read(p, t, 1, flow)]):
            return write(p, t, 1, [1., 2.], flow)

    yield S("TensorArrayWriteV3", "after_read", late, "because it has already been read.")
    yield S("TensorArrayWriteV3", "type", lambda p: write(p, ta(p, 3), 1, [1, 2]), "Op is trying to write dtype int32.")
    yield S("TensorArrayWriteV3", "shape", lambda p: write(p, ta(p, 3, [3]), 1, [1., 2.]),
            "the value shape is [2] which is incompatible with the TensorArray's inferred element shape: [3]")

    def identical(p):
        t = ta(p, 3, identical_element_shapes=True)
        return write(p, t, 0, [1.], write(p, t, 1, [1., 2.]))

    yield S("TensorArrayWriteV3", "identical", identical, "inferred element shape: [2]")

    def full(p, **more):
        t = ta(p, 3, **more)
        return t, R.TensorArrayScatterV3(handle=t[0], indices=p([2, 0, 1]), value=p([[1., 2.], [3., 4.], [5., 6.]]),
                                         flow_in=t[1])

    def gather(p, indices, shape=None, dt=F):
        t, flow = full(p)
        return R.TensorArrayGatherV3(handle=t[0], indices=p(indices, np.int32), flow_in=flow, dtype=dt,
                                     element_shape=tf.TensorShape(shape))

    yield S("TensorArrayGatherV3", "some", lambda p: gather(p, [2, 0]))
    yield S("TensorArrayGatherV3", "beyond", lambda p: gather(p, [2, 3]), "Tried to read from index 3")
    yield S("TensorArrayGatherV3", "none", lambda p: gather(p, []), "TensorArray has size zero, but element shape")
    yield S("TensorArrayGatherV3", "none_shape", lambda p: gather(p, [], [2]))
    yield S("TensorArrayGatherV3", "shape", lambda p: gather(p, [0], [3]),
            "TensorArray was passed element_shape [3] which does not match the Tensor at index 0: [2]")
    yield S("TensorArrayGatherV3", "matrix", lambda p: gather(p, [[0]]), "Expected indices to be a vector")
    yield S("TensorArrayGatherV3", "type", lambda p: gather(p, [0], None, tf.int32), "Op requested dtype int32.")

    def uneven(p, a, b, op):
        t = ta(p, 2)
        flow = write(p, t, 0, b, write(p, t, 1, a))
        if op == "gather":
            return R.TensorArrayGatherV3(handle=t[0], indices=p([1, 0]), flow_in=flow, dtype=F)
        o = R.TensorArrayConcatV3(handle=t[0], flow_in=flow, dtype=F)
        return [o[0], o[1]]

    yield S("TensorArrayGatherV3", "mixed", lambda p: uneven(p, [1., 2.], [1.], "gather"),
            "TensorArray has inconsistent shapes.  Index 0 has shape: [2] but index 1 has shape: [1]")
    yield S("TensorArrayConcatV3", "two", lambda p: uneven(p, [1., 2.], [1.], "concat"))
    yield S("TensorArrayConcatV3", "widths", lambda p: uneven(p, [[1., 2.]], [[1.]], "concat"),
            "Index 0 has (excepting dimension 0) shape: [1] but index 1 has")
    yield S("TensorArrayConcatV3", "scalars", lambda p: uneven(p, 1., 2., "concat"), "Did you mean to call pack?")

    def none(p, shape):
        t = ta(p, 0)
        o = R.TensorArrayConcatV3(handle=t[0], flow_in=t[1], dtype=F, element_shape_except0=tf.TensorShape(shape))
        return [o[0], o[1]]

    yield S("TensorArrayConcatV3", "empty", lambda p: none(p, None), "TensorArray has size zero, but element_shape_except0")
    yield S("TensorArrayConcatV3", "empty_shape", lambda p: none(p, [2]))

    def scatter(p, indices, value):
        t = ta(p, 3)
        return R.TensorArrayScatterV3(handle=t[0], indices=p(indices, np.int32), value=p(value), flow_in=t[1])

    yield S("TensorArrayScatterV3", "count", lambda p: scatter(p, [0, 1], [[1.]]), "but saw: 2 vs. 1")
    yield S("TensorArrayScatterV3", "beyond", lambda p: scatter(p, [0, 4], [[1.], [2.]]),
            "Max scatter index must be < array size (4 vs. 3)")
    yield S("TensorArrayScatterV3", "negative", lambda p: scatter(p, [0, -4], [[1.], [2.]]), "Tried to write to index -4")
    yield S("TensorArrayScatterV3", "scalar", lambda p: scatter(p, [0, 1], 1.), "must be at least a vector")
    yield S("TensorArrayScatterV3", "matrix", lambda p: scatter(p, [[0, 1]], [1.]), "Expected indices to be a vector")

    def split(p, n, value, lengths, then=None, **more):
        t = ta(p, n, **more)
        flow = R.TensorArraySplitV3(handle=t[0], value=p(value), lengths=p(lengths, np.int64), flow_in=t[1])
        return [read(p, t, i, flow) for i in range(n)] if then is None else then(t, flow)

    three = [[1.], [2.], [3.]]
    yield S("TensorArraySplitV3", "two", lambda p: split(p, 2, three, [1, 2]))
    yield S("TensorArraySplitV3", "sum", lambda p: split(p, 2, three, [1, 3]), "but sum of lengths is 4 and value's shape is")
    yield S("TensorArraySplitV3", "many", lambda p: split(p, 2, three, [1, 1, 1]), "not marked as dynamically resizeable")
    yield S("TensorArraySplitV3", "few", lambda p: split(p, 4, three, [1, 1, 1]), "(4 vs. 3)")
    yield S("TensorArraySplitV3", "dynamic", lambda p: split(p, 2, three, [1, 1, 1], lambda t, flow: R.TensorArraySizeV3(
        handle=t[0], flow_in=flow), dynamic_size=True))
    yield S("TensorArraySplitV3", "scalar", lambda p: split(p, 2, 1., [1]), "Expected value to be at least a vector")
    yield S("TensorArraySplitV3", "lengths", lambda p: split(p, 2, [1.], 1), "Expected lengths to be a vector")

    def closed(p):
        t = ta(p, 2)
        with tf.control_dependencies([R.TensorArrayCloseV3(handle=t[0])]):
            return write(p, t, 0, 1.)

    yield S("TensorArrayCloseV3", "write", closed, "has already been closed.")

    def new_stack(p, n):
        return R.StackV2(max_size=p(n), elem_type=F, stack_name="s")

    def pushed(p, n, values, pops):
        s = new_stack(p, n)
        last, out = s.op, []
        for v in values:
            with tf.control_dependencies([last]):
                last = R.StackPushV2(handle=s, elem=p(v)).op
        for _ in range(pops):
            with tf.control_dependencies([last]):
                out.append(R.StackPopV2(handle=s, elem_type=F))
            last = out[-1].op
        return out + [last]

    yield S("StackPopV2", "two", lambda p: pushed(p, -1, [[1., 2.], [3.]], 2))
    yield S("StackPopV2", "empty", lambda p: pushed(p, -1, [], 1), "is empty when calling Pop().")
    yield S("StackPushV2", "full", lambda p: pushed(p, 1, [[1., 2.], [3.]], 1), "overflowed its max_size (1)")
    yield S("StackPushV2", "none", lambda p: pushed(p, 0, [[1., 2.]], 0), "overflowed its max_size (0)")
    yield S("StackV2", "size", lambda p: pushed(p, [1], [], 0), "Stack size must be a scalar, but had shape: [1]")


def optionals(r):
    S = steps

    def some(p):
        return R.OptionalFromValue(components=[p(1.), p([2])])

    def value(o, types, shapes):
        return list(R.OptionalGetValue(optional=o, output_types=types, output_shapes=shapes))

    yield S("OptionalHasValue", "yes", lambda p: R.OptionalHasValue(optional=some(p)))
    yield S("OptionalHasValue", "no", lambda p: R.OptionalHasValue(optional=R.OptionalNone()))
    yield S("OptionalHasValue", "list", lambda p: R.OptionalHasValue(optional=reserve(p, [2], 1)),
            "Input to OptionalHasValue must be an OptionalVariant object.")
    yield S("OptionalGetValue", "two", lambda p: value(some(p), [F, tf.int32], [[], [1]]))
    yield S("OptionalGetValue", "none", lambda p: value(R.OptionalNone(), [F], [[]]), "does not have a value.")
    yield S("OptionalGetValue", "types", lambda p: value(some(p), [F, F], [[], [1]]), "Expected: float. Actual: int32.")
    yield S("OptionalGetValue", "count", lambda p: value(some(p), [F], [[]]), "has 2 components, expected 1")
    yield S("OptionalGetValue", "shape", lambda p: value(some(p), [F, tf.int32], [[3], [1]]), "Expected: [3]. Actual: [].")
    both = lambda o: value(o, [F, tf.int32], [[], [1]])
    add, zeros, none = lambda *o: R.AddN(inputs=list(o)), lambda o: R.ZerosLike(x=o), lambda: R.OptionalNone()
    yield S("ZerosLike", "optional", lambda p: both(zeros(some(p))))
    yield S("ZerosLike", "no_optional", lambda p: R.OptionalHasValue(optional=zeros(none())))
    yield S("ZerosLike", "optional_of_list", lambda p: stack(p, value(zeros(R.OptionalFromValue(components=[from_tensor(p, np.float32([[1, 2]]), [2], np.float32)])), [tf.variant], [[]])[0], [2]))
    yield S("AddN", "optionals", lambda p: both(add(some(p), some(p), some(p))))
    yield S("AddN", "no_optionals", lambda p: R.OptionalHasValue(optional=add(none(), none())))
    yield S("AddN", "one_optional", lambda p: both(add(some(p), none())), "Cannot add optionals because one has a value and the other doesn't.")


def function(f, *types):
    return tf.function(f, autograph=False).get_concrete_function(*[tf.TensorSpec(None, t) for t in types])


def calls(r):
    S = steps

    def branch(p, cond, op=R.If):
        return op(cond=cond, input=[p([1., 2.]), p([3., 4.])], Tout=[F, F],
                  then_branch=function(lambda a, b: (a + b, a), F, F),
                  else_branch=function(lambda a, b: (b, a * b), F, F))

    for name in ("If", "StatelessIf"):
        op = getattr(R, name)
        for i, c in enumerate([True, False, 1, 0, 0.5, 0.0, "", "x", np.zeros(0), [0.0], np.int64(2), np.float64(0),
                               np.uint8(3)]):
            if isinstance(c, str):
                c = np.array(c, dtype=object)
            yield S(name, str(i), lambda p, c=c, op=op: list(branch(p, p(c, getattr(c, "dtype", None)), op)))

    def case_of(p, index, op):
        return list(op(branch_index=p(index), input=[p([1., 2.])], Tout=[F],
                       branches=[function(lambda a, k=k: a * k, F) for k in (1., 2., 3.)]))

    for name in ("Case", "StatelessCase"):
        op = getattr(R, name)
        for i in (0, 1, 2, 3, -1):
            yield S(name, "branch", lambda p, i=i, op=op: case_of(p, i, op))

    def loop(p, op, n, list_too=False):
        def cond(i, x, n):
            return i < n

        def body(i, x, n):
            return i + 1, x * 2., n

        return list(op(input=[p(0), p([1., 3.]), p(n)], cond=function(cond, tf.int32, F, tf.int32),
                       body=function(body, tf.int32, F, tf.int32)))

    for name in ("While", "StatelessWhile"):
        op = getattr(R, name)
        for n in (0, 1, 7):
            yield S(name, str(n), lambda p, n=n, op=op: loop(p, op, n))

    def fill(p):
        """A loop that fills a list, as Keras's recurrent layers do."""
        l = reserve(p, [2], 5)

        def cond(i, x, l):
            return i < 5

        def body(i, x, l):
            l = R.TensorListSetItem(input_handle=l, index=i, item=x)
            return i + 1, x + 1., l

        out = R.While(input=[p(0), p([1., 2.]), l], cond=function(cond, tf.int32, F, tf.variant),
                      body=function(body, tf.int32, F, tf.variant))
        # The list before the loop must not change.
        return [stack(p, out[2], [2]), stack(p, l, [2])]

    yield S("While", "list", fill)

    def numeric(p, start):
        return list(R.While(input=[p(start)], cond=function(lambda x: x, F), body=function(lambda x: x - 1., F)))

    yield S("While", "float_condition", lambda p: numeric(p, 3.))
    yield S("While", "vector_condition", lambda p: list(R.While(
        input=[p([1., 2., 3.])], cond=function(lambda x: x, F), body=function(lambda x: x[1:], F))))

    def nested(p):
        def inner(i, x):
            return list(R.While(input=[i * 0, x], cond=function(lambda j, y: j < 2, tf.int32, F),
                                body=function(lambda j, y: (j + 1, y + 1.), tf.int32, F)))[1]

        return list(R.While(input=[p(0), p([1.])], cond=function(lambda i, x: i < 3, tf.int32, F),
                            body=function(lambda i, x: (i + 1, inner(i, x) * 2.), tf.int32, F)))

    yield S("While", "nested", nested)

    def failing(p):
        return list(R.While(input=[p(0), p([1.])], cond=function(lambda i, x: i < 3, tf.int32, F),
                            body=function(lambda i, x: (i + 1, tf.reshape(x, [2])), tf.int32, F)))

    yield S("While", "fails", failing, "")
    for name in ("PartitionedCall", "StatefulPartitionedCall"):
        op = getattr(R, name)
        yield S(name, "two", lambda p, op=op: list(op(args=[p([1., 2.]), p([3., 4.])], Tout=[F, F],
                                                           f=function(lambda a, b: (a - b, a), F, F))))
        yield S(name, "fails", lambda p, op=op: list(op(args=[p([1., 2.])], Tout=[F], f=function(
            lambda a: tf.reshape(a, [3]), F))), "")


def cases(r):
    tf.compat.v1.disable_eager_execution()
    yield from lists(r)
    yield from arrays(r)
    yield from optionals(r)
    yield from calls(r)
