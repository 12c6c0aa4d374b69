"""Iterators, one-shot and anonymous ones, string handles, optionals, and the handles of seeds and caches."""
from op_cases import *
from op_cases.dataset import *
from op_cases.dataset_transform import PLAIN, broken, ds, v


def start(it, dataset):
    return R.MakeIterator(dataset=v(dataset), iterator=it)


def get(it, op="IteratorGetNext", types=(I,), shapes=((),)):
    return list(getattr(R, op)(iterator=it, output_types=list(types), output_shapes=list(shapes)))


def named(op="IteratorV2", types=(I,), shapes=((),), name="it"):
    return getattr(R, op)(shared_name=name, container="", output_types=list(types), output_shapes=list(shapes))


def cases(r):
    # ---- by name ----
    for op in ("Iterator", "IteratorV2", "MakeIterator"):
        kind = "IteratorV2" if op == "MakeIterator" else op
        for n in (0, 1, 3):

            def read(kind=kind, n=n):
                it = named(kind)
                make, nxt = start(it, ds(n)), get(it)
                return [Step(fetch=nxt, error="GetNext() failed because the iterator has not been initialized."), Step(run=[make])
                        ] + [Step(fetch=nxt)] * n + [Step(fetch=nxt, error=END), Step(fetch=nxt, error=END), Step(run=[make])
                                                     ] + [Step(fetch=nxt)] * min(n, 1)

            yield graph_case(op, read, name=f"of{n}")

        def two(kind=kind):
            a, b = named(kind), named(kind)
            nxt = get(b)
            return [Step(run=[start(a, ds(4))]), Step(fetch=nxt), Step(fetch=get(a)), Step(run=[start(b, ds(2))]), Step(fetch=nxt)]

        yield graph_case(op, two, name="shared")
        yield graph_case(op, lambda kind=kind: [Step(run=[start(named(kind), D.from_tensors(1.5))],
                                                     error="Data type mismatch at component 0: expected int64 but got float.")],
                         name="type")
        yield graph_case(op, lambda kind=kind: [Step(run=[start(named(kind), D.zip((ds(), ds())))],
                                                     error="Number of components does not match: expected 1 types but got 2.")],
                         name="count")
        yield graph_case(op, lambda kind=kind: [Step(run=[start(named(kind), ds().batch(2))],
                                                     error="Incompatible shapes at component 0: expected [] but got [?].")],
                         name="shape")
        yield graph_case(op, lambda kind=kind: [
            Step(run=[R.MakeIterator(dataset=R.OptionalNone(), iterator=named(kind))], error="Tensor must be a Dataset object.")],
                         name="no_dataset")

    # ---- next ----
    for op in ("IteratorGetNext", "IteratorGetNextSync"):
        for t in ("float", "string", "bool", "int32"):
            d, x = tf.as_dtype(t), r.numbers(t, (2, 3))

            def typed(op=op, d=d, x=x):
                it = named(types=[d], shapes=[(3,)])
                nxt = get(it, op, [d], [(3,)])
                return [Step(run=[start(it, D.from_tensor_slices(x))]), Step(fetch=nxt), Step(fetch=nxt), Step(fetch=nxt, error=END)]

            yield graph_case(op, typed, name=t)

        def pair(op=op):
            it = named(types=[I, S], shapes=[(), (None,)])
            nxt = get(it, op, [I, S], [(), (None,)])
            return [Step(run=[start(it, D.from_tensors((np.int64(4), np.array(["a", "b"], object))))]), Step(fetch=nxt),
                    Step(fetch=nxt, error=END)]

        yield graph_case(op, pair, name="pair")
        yield graph_case(op, lambda op=op: [Step(fetch=get(named(), op), error="the iterator has not been initialized")],
                         name="not_initialized")

        def failing(op=op):
            it = named()
            nxt = get(it, op)
            return [Step(run=[start(it, broken(4, 1))]), Step(fetch=nxt), Step(fetch=nxt, error="broken"), Step(fetch=nxt),
                    Step(fetch=nxt), Step(fetch=nxt, error=END)]

        yield graph_case(op, failing, name="error")

        def wrong(op=op):
            it = named()
            return [Step(run=[start(it, ds(2))]), Step(fetch=get(it, op, [F]), error="Data type mismatch at component 0: expected "
                                                       "float but got int64.")]

        yield graph_case(op, wrong, name="wrong_type")

    op = "IteratorGetNextAsOptional"
    for n in (0, 1, 2, 3):

        def optional(n=n):
            it = named()
            o = R.IteratorGetNextAsOptional(iterator=it, **PLAIN)
            has, value = R.OptionalHasValue(optional=o), R.OptionalGetValue(optional=o, **PLAIN)[0]
            return [Step(run=[start(it, ds(n))])] + [Step(fetch=[has, value])] * n + [Step(fetch=[has]), Step(fetch=[has]), Step(
                fetch=[value], error="The given optional does not have a value.")]

        yield graph_case(op, optional, name=f"of{n}")
    for k in (0, 1, 2):

        def failing(k=k):
            it = named()
            has = R.OptionalHasValue(optional=R.IteratorGetNextAsOptional(iterator=it, **PLAIN))
            return [Step(run=[start(it, broken(3, k))])] + [Step(fetch=[has])] * k + [Step(fetch=[has], error="broken"),
                                                                                    Step(fetch=[has])]

        yield graph_case(op, failing, name=f"error{k}")
    yield graph_case(op, lambda: [Step(fetch=[R.OptionalHasValue(optional=R.IteratorGetNextAsOptional(
        iterator=named(), **PLAIN))], error="the iterator has not been initialized")], name="not_initialized")

    # ---- one-shot ----
    def once(factory, n, error=END, name=None, types=(I,), shapes=((),)):

        def build():
            it = R.OneShotIterator(dataset_factory=fn(lambda: v(factory())), output_types=list(types), output_shapes=list(shapes))
            nxt = get(it, types=types, shapes=shapes)
            return [Step(fetch=nxt)] * n + [Step(fetch=nxt, error=error)] * 2

        return graph_case("OneShotIterator", build, name=name)

    for n in (0, 1, 3):
        yield once(lambda n=n: ds(n), n, name=f"of{n}")
        yield once(lambda n=n: ds(n).map(lambda x: x * 3).batch(2), -(-n // 2), name=f"batches{n}", shapes=[(None,)])
    yield once(lambda: D.from_tensor_slices(["a", "b"]), 2, types=[S], name="string")
    yield once(lambda: D.from_tensors(1.5), 0, name="type", error="Data type mismatch at component 0: expected int64 but got float.")

    # ---- anonymous ----
    def anonymous(op, n, make=ds, types=(I,), shapes=((),), name=None):

        def build():
            made = getattr(R, op)(output_types=list(types), output_shapes=list(shapes))
            it = made if op.endswith("V3") or op == "AnonymousIterator" else made.handle
            with tf.control_dependencies([start(it, make(n))]):
                values = []
                for _ in range(n):
                    with tf.control_dependencies(values[-1:]):
                        values += get(it, types=types, shapes=shapes)
            more = []
            if op == "AnonymousIteratorV2":
                with tf.control_dependencies(values):
                    more = [R.DeleteIterator(handle=it, deleter=made.deleter)]
            return [Step(fetch=values, run=more)] * 2

        return graph_case("DeleteIterator" if name == "delete" else op, build, name=f"of{n}")

    # TensorFlow 2.21 crashes on AnonymousIterator: its handle does not keep the iterator alive.
    for op in ("AnonymousIteratorV2", "AnonymousIteratorV3"):
        for n in (1, 2, 3, 4):
            yield anonymous(op, n)
            yield anonymous(op, n, lambda n: ds(n).map(lambda x: tf.strings.as_string(x)), types=[S])
    for n in range(1, 9):
        yield anonymous("AnonymousIteratorV2", n, name="delete")

    # ---- string handles ----
    for op in ("IteratorToStringHandle", "IteratorFromStringHandle", "IteratorFromStringHandleV2"):
        back = getattr(R, "IteratorFromStringHandle" if op == "IteratorToStringHandle" else op)
        for n in (1, 2, 3, 4):
            for typed in (False, True):

                def round_trip(back=back, n=n, typed=typed):
                    it = named()
                    again = back(string_handle=R.IteratorToStringHandle(resource_handle=it), **(PLAIN if typed else {}))
                    nxt = get(again)
                    return [Step(run=[start(it, ds(n))])] + [Step(fetch=nxt)] * n + [Step(fetch=nxt, error=END), Step(
                        run=[start(again, ds(n))]), Step(fetch=get(it))]

                yield graph_case(op, round_trip, name=f"of{n}")
        if op == "IteratorToStringHandle":
            continue

        def wrong(back=back):
            it = named()
            again = back(string_handle=R.IteratorToStringHandle(resource_handle=it), output_types=[F], output_shapes=[()])
            return [Step(run=[start(again, ds(1))], error="Data type mismatch at component 0: expected float but got int64.")]

        yield graph_case(op, wrong, name="type")
        yield graph_case(op, lambda back=back: [Step(run=[start(back(string_handle="nonsense"), ds(1))], 
                                               error="Could not parse string_handle as a valid ResourceHandle")], name="nonsense")

    # ---- tables ----
    def table(keys, values, error=None, name=None, k=S, t=I):

        def build():
            h = R.HashTableV2(key_dtype=k, value_dtype=t, shared_name="t")
            data = D.zip((D.from_tensor_slices(keys), D.from_tensor_slices(values))) if values is not None else D.from_tensor_slices(keys)
            fill = R.InitializeTableFromDataset(table_handle=h, dataset=v(data))
            steps = [Step(run=[fill], error=error), Step(fetch=[R.LookupTableSizeV2(table_handle=h)])]
            if error is None and len(keys):
                q = tf.compat.v1.placeholder(k, (None,))
                find = R.LookupTableFindV2(table_handle=h, keys=q, default_value=tf.constant("none" if t == S else -1, t))
                steps.append(Step(fetch=[find], feed={q: np.asarray(keys)[::-1]}))
            return steps

        return graph_case("InitializeTableFromDataset", build, name=name)

    abc = np.array(["a", "b", "c"], object)
    yield table(abc, i64([1, 2, 3]), name="int64")
    yield table(abc, abc[::-1], t=S, name="strings")
    yield table(i64([5, 6, 7]), abc, k=I, t=S, name="int_keys")
    yield table(abc[:1], i64([9]), name="one")
    yield table(abc, np.float32([1, 2, 3]), t=F, name="floats")
    yield table(np.array(["a", "a"], object), i64([1, 1]), name="same_twice")
    yield table(np.array(["a", "a"], object), i64([1, 2]), "Key a has 1 and trying to add value 2", name="different")
    yield table(abc[:0], i64([]), "end of iterator", name="empty")

    # ---- handles of seeds and caches ----
    def order(op, seeds, n):
        def build():
            g = R.DummySeedGenerator()
            made = R.ShuffleDatasetV3(input_dataset=v(ds(n)), buffer_size=c64(n), seed=c64(seeds[0]), seed2=c64(seeds[1]),
                                      seed_generator=g, reshuffle_each_iteration=False, **PLAIN)
            sum_ = R.ReduceDataset(input_dataset=made, initial_state=[np.int64(0)], other_arguments=[], f=fn(
                lambda s, x: s * 10 + x, ((), I), ((), I)), **PLAIN)[0]
            return [Step(fetch=[sum_])] * 2

        return graph_case(op, build, name=f"of{n}")

    for n in range(2, 10):
        yield order("DummySeedGenerator", (n, n * n), n)

    def cache(op, n):
        def build():
            c = R.DummyMemoryCache()
            made = R.CacheDatasetV2(input_dataset=v(ds(n)), filename=np.array("", object), cache=c, **PLAIN)
            made = R.RepeatDataset(input_dataset=made, count=c64(2), **PLAIN)
            sum_ = R.ReduceDataset(input_dataset=made, initial_state=[np.int64(0)], other_arguments=[], f=fn(
                lambda s, x: s * 10 + x, ((), I), ((), I)), **PLAIN)[0]
            return [Step(fetch=[sum_])] * 2

        return graph_case(op, build, name=f"of{n}")

    for n in range(0, 9):
        yield cache("DummyMemoryCache", n)
