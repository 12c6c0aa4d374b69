"""Datasets that call functions, batch, shuffle, cut into windows and cache."""
from op_cases import *
from op_cases.dataset import *
from op_cases.dataset_transform import PLAIN, broken, ds, one, v


def functions(r):

    def mapped(op, n=5, f=lambda x: x * 2, spec=((), I), captures=(), types=(I,), shapes=((),), source=None, **attrs):
        def make():
            extra = dict(num_parallel_calls={"ParallelMapDataset": i32(2), "ParallelMapDatasetV2": c64(2)}[op]) if op != "MapDataset" else {}
            caught = [tf.constant(c) for c in captures]
            specs = [spec] + [(c.shape, c.dtype) for c in caught]
            return getattr(R, op)(input_dataset=v(source() if source else ds(n)), other_arguments=caught, f=fn(f, *specs),
                                  output_types=list(types), output_shapes=list(shapes), **dict(extra, **attrs))
        return make

    def end(x):
        return R.OptionalGetValue(optional=R.OptionalNone(), output_types=[I], output_shapes=[()])[0]

    for op in ("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2"):
        yield one(op, mapped(op), 5, name="double", again=2)
        yield one(op, mapped(op, 0), 0, name="empty")
        yield one(op, mapped(op, f=lambda x, c: x * c, captures=[np.int64(7)]), 5, name="captured")
        yield one(op, mapped(op, f=lambda x, c, d: (x + c, d), captures=[np.int64(7), np.array("s")], types=(I, S),
                             shapes=((), ())), 5, types=[I, S], shapes=[(), ()], name="two")
        yield one(op, mapped(op, f=lambda x: tf.strings.as_string(x), types=(S,)), 5, types=[S], name="string")
        yield one(op, mapped(op, f=lambda x: tf.fill([x], x), shapes=((None,),)), 5, shapes=[(None,)], name="shapes")
        yield one(op, mapped(op, f=lambda x: tf.while_loop(lambda i, s: i < x, lambda i, s: (i + 1, s + i), [np.int64(0), x])[1]), 5,
                  name="loop")
        yield one(op, mapped(op, f=lambda x: tf.cond(x > 2, lambda: x * 10, lambda: -x)), 5, name="branch")
        yield one(op, mapped(op, f=lambda x: R.FloorMod(x=np.int64(6), y=x - 2)), 2, name="error",
                  error="Integer division by zero")
        # Reading beyond the end of another dataset ends this one.
        over = lambda x: R.ReduceDataset(input_dataset=R.RangeDataset(
            start=np.int64(0), stop=x, step=np.int64(1), output_types=[I], output_shapes=[()]), initial_state=[x],
            other_arguments=[], f=fn(lambda s, e: s + e, ((), I), ((), I)), output_types=[I], output_shapes=[()])[0]
        yield one(op, mapped(op, f=over), 5, name="nested")
    yield refused("ParallelMapDatasetV2", mapped("ParallelMapDatasetV2", num_parallel_calls=c64(0)),
                  "num_parallel_calls must be greater than zero.")
    yield refused("ParallelMapDataset", mapped("ParallelMapDataset", num_parallel_calls=i32(-2)),
                  "num_parallel_calls must be greater than zero.")

    def batched(n, size, drop=False, f=lambda x: (x, tf.cast(x, F) / 2), **more):
        def make():
            return R.MapAndBatchDataset(input_dataset=v(ds(n)), other_arguments=[], batch_size=c64(size),
                                        num_parallel_calls=c64(more.get("calls", 2)), drop_remainder=np.array(drop),
                                        f=fn(f, ((), I)), output_types=[I, F], output_shapes=[(None,), (None,)])
        return make

    op, two = "MapAndBatchDataset", dict(types=[I, F], shapes=[(None,), (None,)])
    for n, size, drop in ((6, 2, False), (5, 2, False), (5, 2, True), (3, 9, False), (3, 9, True), (0, 2, False)):
        yield rows(op, batched(n, size, drop), n // size if drop else -(-n // size), name=f"n{n}_{size}", **two)
    yield refused(op, batched(5, 0), "batch_size must be greater than zero.", **two)
    yield refused(op, batched(5, 1, calls=0), "num_parallel_calls must be greater than zero.", **two)

    uneven = lambda x: (tf.fill([x], x), tf.cast(x, F))
    wide = lambda: R.MapAndBatchDataset(input_dataset=v(ds(3)), other_arguments=[], batch_size=c64(2), num_parallel_calls=c64(1),
                                        drop_remainder=np.array(False), f=fn(uneven, ((), I)), output_types=[I, F],
                                        output_shapes=[(None, None), (None,)])
    yield rows(op, wide, 0, types=[I, F], shapes=[(None, None), (None,)], name="uneven",
               error="Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: [1], [batch]: [0]")
    for t, f, n in (("even", lambda x: tf.equal(x % 2, 0), 4), ("none", lambda x: x < 0, 0), ("all", lambda x: x >= 0, 7),
                    ("late", lambda x: x > 4, 2), ("first", lambda x: x < 1, 1), ("odd", lambda x: tf.equal(x % 2, 1), 3)):
        yield rows("FilterDataset", lambda f=f: ds(7).filter(f), n, name=t, again=min(n, 1))
    for t, f, n in (("small", lambda x: x < 3, 3), ("none", lambda x: x < 0, 0), ("all", lambda x: x >= 0, 7),
                    ("odd", lambda x: tf.equal(x % 2, 1), 0), ("until", lambda x: tf.not_equal(x, 5), 5), ("first", lambda x: x < 1, 1)):
        yield rows("TakeWhileDataset", lambda f=f: ds(7).take_while(f), n, name=t, again=min(n, 1))
    limit = np.int64(3)
    for op, attrs, n in (("FilterDataset", {}, 3), ("TakeWhileDataset", {}, 3)):
        caught = lambda op=op: getattr(R, op)(input_dataset=v(ds(7)), other_arguments=[tf.constant(limit)],
                                              predicate=fn(lambda x, c: x < c, ((), I), ((), I)), **PLAIN)
        yield one(op, caught, n, name="captured")
        scalar = lambda op=op: getattr(R, op)(input_dataset=v(ds(7)), other_arguments=[],
                                              predicate=fn(lambda x: tf.stack([x, x]) > 3, ((), I)), **PLAIN)
        yield one(op, scalar, 0, name="vector", error="predicate")

    scan = lambda start, f, n=5: lambda: ds(n).scan(start, f)
    yield rows("ScanDataset", scan(np.int64(0), lambda s, x: (s + x, s)), 5, name="sum", again=2)
    yield rows("ScanDataset", scan(np.int64(1), lambda s, x: (s * (x + 1), (x, s))), 5, name="pair")
    yield rows("ScanDataset", scan((np.int64(0), "a"), lambda s, x: ((s[0] + 1, s[1] + "b"), s[1])), 5, name="states")
    yield rows("ScanDataset", scan(np.float32([0, 0]), lambda s, x: (s + tf.cast(x, F), tf.reduce_sum(s))), 5, name="vector")
    yield rows("ScanDataset", scan(np.int64(0), lambda s, x: (s, s), 0), 0, name="empty")
    yield rows("ScanDataset", lambda: broken(4, 2).scan(np.int64(0), lambda s, x: (s + x, s)), 2, name="error", error="broken")
    yield rows("ScanDataset", lambda: ds(3).scan(np.int64(0), lambda s, x: (s + x, s)).repeat(2), 6, name="repeated")
    yield rows("ScanDataset", lambda: ds(3).batch(2).scan(np.int64(0), lambda s, x: (s + tf.reduce_sum(x), x + s)), 2, name="batches")

    up = lambda x: D.range(x * 10, x * 10 + x)
    for n in (0, 1, 4, 5):
        total = n * (n - 1) // 2
        yield rows("FlatMapDataset", lambda n=n: ds(n).flat_map(up), total, name=f"of{n}", again=min(total, 1))
    yield rows("FlatMapDataset", lambda: ds(3).flat_map(lambda x: D.from_tensors((x, "a")).repeat(2)), 6, name="pairs")
    yield rows("FlatMapDataset", lambda: ds(3).flat_map(lambda x: ds(2).map(lambda y: x * 10 + y)), 6, name="captured")
    yield rows("FlatMapDataset", lambda: ds(3).flat_map(lambda x: ds(0)), 0, name="nothing")
    yield rows("FlatMapDataset", lambda: ds(2).flat_map(lambda x: ds(2).flat_map(lambda y: D.from_tensors(x * y))), 4, name="deep")
    yield rows("FlatMapDataset", lambda: broken(3, 1).flat_map(lambda x: D.from_tensors(x)), 1, name="error", error="broken")

    for parallel in (False, True):
        for cycle, block in ((1, 1), (2, 1), (3, 2), (2, 3), (9, 1), (4, 4)):
            kind = dict(num_parallel_calls=min(cycle, 2), deterministic=True) if parallel else {}
            op = "ParallelInterleaveDatasetV4" if parallel else "InterleaveDataset"
            yield rows(op, lambda cycle=cycle, block=block, kind=kind: ds(6).interleave(
                up, cycle_length=cycle, block_length=block, **kind), 15, name=f"c{cycle}_{block}", again=3)
            yield rows(op, lambda cycle=cycle, block=block, kind=kind: D.from_tensor_slices(i64([3, 0, 5, 1, 0, 2])).interleave(
                up, cycle_length=cycle, block_length=block, **kind), 11, name=f"uneven{cycle}_{block}")
    def raw_interleave(op, cycle, block, calls=2):
        more = dict(sloppy=False) if op.endswith("V2") else {}
        return lambda: getattr(R, op)(input_dataset=v(ds(4)), other_arguments=[], cycle_length=c64(cycle),
                                      block_length=c64(block), num_parallel_calls=c64(calls),
                                      f=fn(lambda x: variant(D.range(x, x + 2)), ((), I)), **PLAIN, **more)

    for op in ("ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3"):
        for cycle, block in ((1, 1), (2, 1), (2, 2), (3, 1), (4, 2)):
            yield one(op, raw_interleave(op, cycle, block, min(cycle, 2)), 8, name=f"c{cycle}_{block}")
        yield refused(op, raw_interleave(op, 1, 1, 2), "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be "
                      "either `tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`.")
        yield refused(op, raw_interleave(op, 0, 1), "`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is 0")
        yield refused(op, raw_interleave(op, 1, 0), "`block_length` must be > 0")
        yield refused(op, raw_interleave(op, 1, 1, 0), "num_parallel_calls must be greater than zero.")


def batches(r):
    for version in ("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset"):
        def batch(n, size, drop=False, source=None, op=version, types=None, shapes=None):
            more = {} if op == "BatchDataset" else dict(drop_remainder=np.array(drop))
            if op == "ParallelBatchDataset":
                more["num_parallel_calls"] = c64(2)
            return lambda: getattr(R, op)(input_dataset=v(source() if source else ds(n)), batch_size=c64(size),
                                          output_types=types or [I], output_shapes=shapes or [(None,)], **more)
        vec = dict(types=[I], shapes=[(None,)])
        yield refused(version, batch(3, -1), "Batch size must be greater than zero.", **vec)
        yield graph_case(version, lambda batch=batch: [R.DatasetCardinality(input_dataset=batch(7, 3)())], name="cardinality")
        if version == "BatchDataset":  # TensorFlow 2.21 cannot iterate over it
            continue
        for n, size in ((6, 2), (5, 2), (3, 9), (1, 1), (0, 2)):
            yield rows(version, batch(n, size), -(-n // size), name=f"n{n}_{size}", again=min(n, 1), **vec)
        for n, size in ((6, 2), (5, 2), (3, 9)):
            yield rows(version, batch(n, size, True), n // size, name=f"drop{n}_{size}", **vec)
        mixed = lambda: D.from_tensor_slices((np.array([[1, 2], [3, 4], [5, 6]], np.float32), ["a", "b", "c"], [True, False, True]))
        types, shapes = [F, S, tf.bool], [(None, 2), (None,), (None,)]
        yield rows(version, batch(0, 2, source=mixed, types=types, shapes=shapes), 2, types=types, shapes=shapes, name="mixed")
        uneven = lambda: D.range(1, 4).map(lambda x: tf.fill([x], x))
        words = ("Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: [2], [batch]: [1]"
                 if version == "BatchDatasetV2" else
                 "Cannot batch tensors with different shapes in component 0. First element had shape [1] and element 1 had shape [2].")
        yield rows(version, batch(0, 2, source=uneven, shapes=[(None, None)]), 0, types=[I], shapes=[(None, None)], name="uneven",
                   error=words)
        yield refused(version, batch(3, 0), "Batch size must be greater than zero.", **vec)

    for version in ("PaddedBatchDataset", "PaddedBatchDatasetV2"):
        def pad(source, size, shapes, values, drop=False, op=version, out=None):
            more = {} if op == "PaddedBatchDataset" else dict(drop_remainder=np.array(drop))
            return lambda: getattr(R, op)(input_dataset=v(source()), batch_size=c64(size), padded_shapes=[i64(s) for s in shapes],
                                          padding_values=values, output_shapes=out or [None] * len(shapes), **more)
        ragged = lambda: D.range(5).map(lambda x: tf.fill([x], x))
        if version.endswith("V2"):  # TensorFlow 2.21 cannot iterate over the first one
            for size in (1, 2, 5, 9):
                yield rows(version, pad(ragged, size, [[-1]], [np.int64(-7)]), -(-5 // size), types=[I], name=f"size{size}", again=1)
            yield rows(version, pad(ragged, 3, [[6]], [np.int64(0)]), 2, types=[I], name="stated")
            yield rows(version, pad(ragged, 3, [[2]], [np.int64(0)]), 1, types=[I], name="small",
                       error="Attempted to pad to a smaller size than the input element.")
            yield rows(version, pad(ragged, 3, [[-1]], [np.int64(0)], True), 1, types=[I], name="drop")
            grid = lambda: D.range(3).map(lambda x: (tf.fill([x, 3 - x], 1.5), tf.strings.as_string(tf.fill([x], x)), x))
            yield rows(version, pad(grid, 2, [[-1, 4], [-1], []], [np.float32(9), np.array("pad", object), np.int64(0)]), 2,
                       types=[F, S, I], name="several")
            yield rows(version, pad(ragged, 2, [[-1, -1]], [np.int64(0)]), 0, types=[I], name="rank",
                       error="All elements in a batch must have the same rank as the padded shape for component0: expected rank 2 but "
                       "got element with rank 1")
        yield refused(version, pad(ragged, 0, [[-1]], [np.int64(0)]), "Batch size must be greater than zero.")
        yield refused(version, pad(ragged, 1, [[-1]], [np.float32(0)]), "Mismatched type between padding value 0 and input "
                      "dataset's component 0: float vs. int64", types=[F])
        yield refused(version, pad(ragged, 1, [[-1], [-1]], [np.int64(0), np.int64(0)]),
                      "Number of padded shapes (2) must match the number of components in the input dataset's elements (1)",
                      types=[I, I], shapes=[None, None])
        yield refused(version, pad(ragged, 1, [[-1]], [i64([0])]), "All padding values must be scalars", types=[I])
    for n, k in ((6, 2), (5, 2), (4, 4), (3, 1)):
        yield rows("UnbatchDataset", lambda n=n, k=k: ds(n).batch(k).unbatch(), n, name=f"n{n}_{k}", again=1)
    pairs = lambda: D.from_tensor_slices((np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array(list("abcdef"), object).reshape(2, 3)))
    yield rows("UnbatchDataset", lambda: pairs().unbatch(), 6, name="pairs")
    yield rows("UnbatchDataset", lambda: D.range(4).map(lambda x: tf.fill([x], x)).unbatch(), 6, name="uneven")
    bad = lambda: R.UnbatchDataset(input_dataset=v(D.range(1, 3).map(lambda x: (tf.fill([x], x), tf.fill([2], x)))),
                                   output_types=[I, I], output_shapes=[(), ()])
    yield rows("UnbatchDataset", bad, 0, types=[I, I], name="sizes", error="Component 0 had size 1 but component 1 had "
               "size, 2.")
    yield rows("UnbatchDataset", lambda: R.UnbatchDataset(input_dataset=v(ds()), **PLAIN), 0, types=[I], name="scalars",
               error="Input element must have a non-scalar value in each component.")
    yield rows("UnbatchDataset", lambda: ds(0).batch(2).unbatch(), 0, name="empty")

    def rebatch(n, k, sizes, reads, drop=False, name=None, error=END):
        make = lambda: R.RebatchDatasetV2(input_dataset=v(ds(n).batch(k)), batch_sizes=i64(sizes), drop_remainder=np.array(drop),
                                          output_types=[I], output_shapes=[(None,)])
        return rows("RebatchDatasetV2", make, reads, types=[I], shapes=[(None,)], name=name, error=error)

    yield rebatch(8, 4, [2], 4, name="halves")
    yield rebatch(8, 2, [4], 2, name="doubles")
    yield rebatch(7, 3, [2], 4, name="odd")
    yield rebatch(7, 3, [2], 3, True, name="drop")
    yield rebatch(9, 4, [1, 3], 5, name="turns")
    yield rebatch(9, 3, [2, 1], 6, name="turns_evenly")
    yield rebatch(5, 5, 3, 2, name="scalar")
    yield rebatch(0, 5, [3], 0, name="empty")
    yield rebatch(4, 2, [9], 1, name="large")


def orders(r):
    for version in ("ShuffleDataset", "ShuffleDatasetV3"):
        def shuffle(n, size, seed, seed2, reshuffle=True, op=version, source=None):
            more = dict(seed_generator=R.DummySeedGenerator()) if op.endswith("V3") else {}
            return getattr(R, op)(input_dataset=v(source() if source else ds(n)), buffer_size=c64(size), seed=c64(seed), seed2=c64(seed2),
                                  reshuffle_each_iteration=reshuffle, **PLAIN, **more)
        for n, size, seed, seed2 in ((7, 3, 1, 0), (7, 7, 0, 2), (7, 20, 11, 13), (9, 1, 1, 1), (5, 4, -3, 2**40)):
            for reshuffle in (False, True):
                yield one(version, lambda n=n, size=size, a=seed, b=seed2, c=reshuffle: shuffle(n, size, a, b, c), n, again=n,
                          name=f"n{n}_{size}")
        yield one(version, lambda: R.RepeatDataset(input_dataset=shuffle(4, 3, 5, 6), count=c64(3), **PLAIN), 12, name="repeated")
        yield one(version, lambda: shuffle(0, 3, 5, 6), 0, name="empty")
        yield refused(version, lambda: shuffle(4, 0, 5, 6), "buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
    def v2(n, size, seed, seed2, reshuffle):
        g = R.AnonymousSeedGenerator(seed=c64(seed), seed2=c64(seed2), reshuffle=np.array(reshuffle))
        return R.ShuffleDatasetV2(input_dataset=v(ds(n)), buffer_size=c64(size), seed_generator=g.handle, **PLAIN)

    def v3(n, size, seed, seed2, reshuffle):
        g = R.AnonymousSeedGenerator(seed=c64(seed), seed2=c64(seed2), reshuffle=np.array(reshuffle))
        return R.ShuffleDatasetV3(input_dataset=v(ds(n)), buffer_size=c64(size), seed=c64(9), seed2=c64(9), seed_generator=g.handle,
                                  reshuffle_each_iteration=reshuffle, **PLAIN)

    for op in ("ShuffleDatasetV2", "AnonymousSeedGenerator"):
        for n, size, seed, seed2 in ((7, 3, 1, 0), (7, 7, 0, 2), (5, 9, 11, 13), (6, 2, 4, 4)):
            for reshuffle in (False, True):
                f = v2 if op == "ShuffleDatasetV2" else v3
                yield one(op, lambda f=f, a=(n, size, seed, seed2, reshuffle): f(*a), n, name=f"n{n}_{size}")

    for version in ("", "V2"):
        op = "ShuffleAndRepeatDataset" + version

        def both(n, size, seed, seed2, count, reshuffle=True, op=op):
            def make():
                more = dict(seed_generator=R.DummySeedGenerator()) if op.endswith("V2") else {}
                return getattr(R, op)(input_dataset=v(ds(n)), buffer_size=c64(size), seed=c64(seed), seed2=c64(seed2),
                                      count=c64(count), reshuffle_each_iteration=reshuffle, **PLAIN, **more)

            return make

        for n, size, count in ((5, 3, 2), (4, 9, 3), (6, 1, 1), (3, 2, 4)):
            for reshuffle in (False, True):
                yield one(op, both(n, size, 7, 8, count, reshuffle), n * count, name=f"n{n}_{size}_{count}", again=n)
        yield one(op, both(3, 2, 7, 8, -1), 10, name="endless", error=None)
        yield one(op, both(0, 2, 7, 8, -1), 0, name="empty_endless")
        yield refused(op, both(3, 0, 7, 8, 1), "buffer_size must be greater than zero")
        yield refused(op, both(3, 2, 7, 8, 0), "count must be greater than zero or equal to -1.")

    def windows(n, size, shift, stride, drop):
        # A window holds datasets; reading them takes another function.
        return lambda: ds(n).window(size, shift, stride, drop).flat_map(lambda w: w.batch(99))

    for size, shift, stride in ((3, 3, 1), (3, 1, 1), (2, 3, 1), (3, 2, 2), (1, 1, 1), (9, 2, 1), (2, 1, 5)):
        for drop in (False, True):
            span = (size - 1) * stride + 1
            count = len([i for i in range(0, 7, shift) if not drop or i + span <= 7])
            yield rows("WindowDataset", windows(7, size, shift, stride, drop), count, name=f"w{size}_{shift}_{stride}")
    yield rows("WindowDataset", lambda: D.from_tensor_slices(([1, 2, 3], ["a", "b", "c"])).window(2).flat_map(
        lambda x, y: D.zip((x, y))), 3, name="pairs")
    for bad in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        yield refused("WindowDataset", lambda bad=bad: R.WindowDataset(
            input_dataset=v(ds()), size=c64(bad[0]), shift=c64(bad[1]), stride=c64(bad[2]), drop_remainder=np.array(False),
            output_types=[tf.variant], output_shapes=[()]), "must be greater than zero.", types=[tf.variant])

    def grouped(n, key, size, make=lambda k, w: w.batch(99), source=None):
        return lambda: (source() if source else ds(n)).group_by_window(key, make, window_size=size)

    for n, mod, size in ((9, 3, 2), (9, 2, 9), (7, 4, 1), (6, 1, 4), (0, 2, 2)):
        groups = sum(-(-len(range(k, n, mod)) // size) for k in range(mod))
        yield rows("GroupByWindowDataset", grouped(n, lambda x, m=mod: x % m, size), groups, name=f"g{n}_{mod}_{size}", again=min(groups, 1))
    yield rows("GroupByWindowDataset", grouped(6, lambda x: -(x % 3), 2, lambda k, w: w.map(lambda x: x * 100 + k)), 6, name="negative_keys")
    yield rows("GroupByWindowDataset", grouped(6, lambda x: x % 2, 2, lambda k, w: D.from_tensors(k)), 4, name="keys")
    yield rows("GroupByWindowDataset", grouped(6, lambda x: x % 2, 2, lambda k, w: ds(0)), 0, name="nothing")
    yield rows("GroupByWindowDataset", grouped(5, lambda x: x % 2, 0), 0, name="no_size",
               error="Window size must be greater than zero, but got 0.")

    def cached(op, n, read, again, **more):
        def make():
            handle = {}
            if op.endswith("V2"):
                handle = dict(cache=R.DummyMemoryCache() if more.get("dummy") else R.AnonymousMemoryCache().handle)
            return getattr(R, op)(input_dataset=v(ds(n)), filename=np.array("", object), **handle, **PLAIN)
        return one("AnonymousMemoryCache" if more.get("as_cache") else op, make, read, again=again, name=more.get("name"), error=END)

    for n in (0, 1, 3, 4, 5, 6, 7, 9):
        yield cached("CacheDataset", n, n, min(n, 2), name=f"of{n}")
        yield cached("CacheDatasetV2", n, n, min(n, 2), name=f"of{n}")
        yield cached("CacheDatasetV2", n, n, min(n, 1), as_cache=True, name=f"of{n}")
    # What is cached is not computed again.
    for n in (3, 4):
        yield rows("CacheDataset", lambda n=n: R.RepeatDataset(input_dataset=R.CacheDataset(
            input_dataset=R.ShuffleDataset(input_dataset=v(ds(n)), buffer_size=c64(9), seed=c64(1), seed2=c64(2), **PLAIN),
            filename=np.array("", object), **PLAIN), count=c64(3), **PLAIN), 3 * n, types=[I], shapes=[()], name="shuffled")


def cases(r):
    yield from functions(r)
    yield from batches(r)
    yield from orders(r)
