"""Lists, arrays, stacks, optionals, calls and loops over several types."""
from op_cases import *
from op_cases.control import F, R, empty, from_tensor, function, length, pop, push, reserve, stack, steps, veil


def cases(r):
    tf.compat.v1.disable_eager_execution()
    S = steps
    kinds = [np.float32, np.float64, np.float16, np_type("bfloat16").type, np.int8, np.int32, np.int64, np.uint8, np.uint16, np.uint64,
             np.bool_, np.complex64, np.complex128]

    def made(shape, t):
        return np.arange(int(np.prod(shape))).reshape(shape).astype(t)

    def batch(p, lists, v, dtype=None):
        return R.TensorListPushBackBatch(input_handles=tf.stack(lists), tensor=p(v, dtype))

    for t in kinds:
        d = tf.as_dtype(t)
        v = made((3, 2), t)
        yield S("TensorListPushBackBatch", d.name, lambda p, v=v, d=d: [
            stack(p, veil(h), [2], d) for h in tf.unstack(batch(p, [push(p, empty(p, [2], t=d), v[k], v.dtype) for k in (1, 2)],
                                                                v[:2], v.dtype), 2)])
        yield S("TensorListPushBack", d.name, lambda p, v=v, d=d: stack(p, push(p, empty(p, [2], t=d), v[0], v.dtype), [2], d))
        yield S("TensorListPopBack", d.name, lambda p, v=v, d=d: (lambda o: [o[1], length(o[0])])(
            pop(p, from_tensor(p, v, [2], v.dtype), [2], d)))
        yield S("TensorListResize", d.name, lambda p, v=v, d=d: stack(p, R.TensorListResize(
            input_handle=from_tensor(p, v, [2], v.dtype), size=p(5)), [2], d))
        yield S("TensorListScatter", d.name, lambda p, v=v, d=d: stack(p, R.TensorListScatter(
            tensor=p(v, v.dtype), indices=p([2, 0, 1]), element_shape=p([2], np.int32)), [2], d))
        yield S("TensorListConcat", d.name, lambda p, v=v, d=d: list(R.TensorListConcat(
            input_handle=from_tensor(p, v, [2], v.dtype), element_dtype=d, element_shape=tf.TensorShape([None]))))
        yield S("TensorListConcatLists", d.name, lambda p, v=v, d=d: stack(p, R.TensorListConcatLists(
            input_a=from_tensor(p, v, [2], v.dtype), input_b=from_tensor(p, v[:0], [2], v.dtype), element_dtype=d), [2], d))

    def into(p, n, indices, rows=None):
        v = made((len(indices) if rows is None else rows, 2), np.float32)
        return stack(p, veil(R.TensorListScatterIntoExistingList(input_handle=reserve(p, [2], n), tensor=p(v, v.dtype),
                                                                 indices=p(indices, np.int32))), [2])

    for n, indices in ((3, [2, 0, 1]), (0, [0]), (2, []), (2, [1, 1]), (1, [2, 1]), (0, [2, 1, 0])):
        yield S("TensorListScatterIntoExistingList", "indices", lambda p, n=n, i=indices: into(p, n, i))
    yield S("TensorListScatterIntoExistingList", "count", lambda p: into(p, 2, [0, 1], 1), "")
    yield S("TensorListPushBackBatch", "count", lambda p: length(tf.unstack(batch(p, [empty(p, [2])], made((2, 2), np.float32)), 1)[0]), "")
    yield S("TensorListPushBackBatch", "scalar", lambda p: length(tf.unstack(batch(p, [empty(p, [2])], 1.), 1)[0]), "")
    yield S("TensorListPushBackBatch", "shape", lambda p: length(tf.unstack(batch(p, [empty(p, [3])], made((1, 2), np.float32)), 1)[0]), "")
    yield S("TensorListPushBackBatch", "type", lambda p: length(tf.unstack(batch(p, [empty(p, [2])], made((1, 2), np.int32)), 1)[0]), "")
    yield S("TensorListConcat", "empty", lambda p: list(R.TensorListConcat(
        input_handle=reserve(p, [2], 0), element_dtype=F, element_shape=tf.TensorShape([2]))))
    yield S("TensorListConcat", "unset", lambda p: list(R.TensorListConcat(
        input_handle=reserve(p, -1, 2), element_dtype=F, element_shape=None)), "")

    def ta(p, n, t=F, **more):
        return R.TensorArrayV3(size=p(n), dtype=t, tensor_array_name="arr", **more)

    for t in kinds:
        d, v = tf.as_dtype(t), made((3, 2), t)

        def all_of(p, d=d, v=v):
            a = ta(p, 3, d)
            flow = R.TensorArraySplitV3(handle=a[0], value=p(v, v.dtype), lengths=p([1, 0, 2], np.int64), flow_in=a[1])
            o = R.TensorArrayConcatV3(handle=a[0], flow_in=flow, dtype=d)
            return [o[0], o[1], R.TensorArraySizeV3(handle=a[0], flow_in=flow)]

        for op in ("TensorArrayConcatV3", "TensorArraySizeV3"):
            yield S(op, d.name, all_of)

        def shut(p, d=d, v=v):
            a = ta(p, 3, d)
            flow = R.TensorArrayWriteV3(handle=a[0], index=p(0), value=p(v, v.dtype), flow_in=a[1])
            with tf.control_dependencies([flow]):
                done = R.TensorArrayCloseV3(handle=a[0])
            with tf.control_dependencies([done]):
                return R.TensorArraySizeV3(handle=a[0], flow_in=flow)

        yield S("TensorArrayCloseV3", d.name, shut, "has already been closed.")

        def stacked(p, d=d, v=v, close=False):
            s = R.StackV2(max_size=p(-1), elem_type=d, stack_name="s")
            one = R.StackPushV2(handle=s, elem=p(v, v.dtype))
            with tf.control_dependencies([one]):
                two = R.StackPushV2(handle=s, elem=p(v[0], v.dtype))
            with tf.control_dependencies([two]):
                out = R.StackPopV2(handle=s, elem_type=d)
            with tf.control_dependencies([out]):
                end = R.StackCloseV2(handle=s) if close else R.StackPopV2(handle=s, elem_type=d)
            return [out, end]

        yield S("StackV2", d.name, stacked)
        yield S("StackCloseV2", d.name, lambda p, f=stacked: f(p, close=True))
        yield S("OptionalFromValue", d.name, lambda p, d=d, v=v: list(R.OptionalGetValue(
            optional=R.OptionalFromValue(components=[p(v, v.dtype)]), output_types=[d], output_shapes=[[None, 2]])))
        yield S("OptionalHasValue", d.name, lambda p, v=v: R.OptionalHasValue(
            optional=veil(R.OptionalFromValue(components=[p(v, v.dtype)]))))
        yield S("OptionalNone", d.name, lambda p, d=d: list(R.OptionalGetValue(
            optional=veil(R.OptionalNone()), output_types=[d], output_shapes=[[None, 2]])), "does not have a value.")

        def popped(p, d=d):
            s = R.StackV2(max_size=p(3), elem_type=d, stack_name="s")
            with tf.control_dependencies([R.StackCloseV2(handle=s)]):
                return R.StackPopV2(handle=s, elem_type=d)

        yield S("StackCloseV2", d.name + "_pop", popped, "")

    def calling(op, t):
        d, v = tf.as_dtype(t), made((3,), t)
        fs = [function(lambda x: (x, tf.shape(x)), d), function(lambda x: (tf.concat([x, x], 0), tf.shape(x)), d)]
        out = [d, tf.int32]
        if "Call" in op:
            return S(op, d.name, lambda p: list(getattr(R, op)(args=[p(v, v.dtype)], Tout=out, f=fs[1])))
        if "Case" in op:
            return S(op, d.name, lambda p: list(getattr(R, op)(branch_index=p(1), input=[p(v, v.dtype)], Tout=out, branches=fs)))
        return S(op, d.name, lambda p: list(getattr(R, op)(
            input=[p(0), p(v, v.dtype)], cond=function(lambda i, x: i < 3, tf.int32, d),
            body=function(lambda i, x: (i + 1, tf.concat([x, x[:1]], 0)), tf.int32, d))))

    bad = lambda: function(lambda x: tf.reshape(x, [7]), F)
    for op in ("If", "StatelessIf"):
        yield S(op, "fails", lambda p, op=op: list(getattr(R, op)(
            cond=p(True, np.bool_), input=[p([1.])], Tout=[F], then_branch=bad(), else_branch=bad())), "")
    for op in ("Case", "StatelessCase"):
        yield S(op, "fails", lambda p, op=op: list(getattr(R, op)(branch_index=p(0), input=[p([1.])], Tout=[F], branches=[bad()])), "")
    yield S("StatelessWhile", "fails", lambda p: list(R.StatelessWhile(
        input=[p([1.])], cond=function(lambda x: tf.size(x) < 5, F), body=bad())), "")
    for op in ("PartitionedCall", "StatefulPartitionedCall"):
        yield S(op, "empty", lambda p, op=op: list(getattr(R, op)(args=[p(np.zeros((0, 2), np.float32))], Tout=[F], f=function(
            lambda x: tf.concat([x, x], 1), F))))
    yield S("TensorListScatter", "empty", lambda p: stack(p, R.TensorListScatter(
        tensor=p(np.zeros((0, 2), np.float32)), indices=p([], np.int32), element_shape=p([2], np.int32)), [2]))
    for op in ("PartitionedCall", "StatefulPartitionedCall", "Case", "StatelessCase", "StatelessWhile", "While"):
        for t in kinds:
            yield calling(op, t)
