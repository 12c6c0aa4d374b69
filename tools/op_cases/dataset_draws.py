"""Datasets of random numbers and of elements chosen at random, sliding windows, folded groups; statistics of datasets."""
from op_cases import *
from op_cases.dataset import D, I, R, refused, rows


def ranged(n):
    return D.range(n)._variant_tensor


def one(v, dtype=tf.int64):
    """A constant, or a vector whose shape the graph does not know."""
    c = tf.constant(v, dtype)
    return tf.compat.v1.placeholder_with_default(c, None) if isinstance(v, list) else c


TYPES = dict(output_types=[I], output_shapes=[[]])
BATCHES = dict(output_types=[I], output_shapes=[[None]])


def randoms(op):
    make = getattr(R, op)
    for a, b in ((1, 2), (0, 5), (7, 0), (-3, 1 << 40), (1 << 62, -1), (99, 99)):
        yield rows(op, lambda a=a, b=b: make(seed=one(a), seed2=one(b), **TYPES), 9, types=[I], shapes=[()], error=None, again=2, name=f"s{a}_{b}")
    yield refused(op, lambda: make(seed=one([1]), seed2=one(2), **TYPES), "seed must be a scalar")
    yield refused(op, lambda: make(seed=one(1), seed2=one([2]), **TYPES), "seed2 must be a scalar")


def samples():
    make = R.SamplingDataset
    for rate, left in ((0.0, 0), (0.3, 6), (0.5, 9), (1.0, 12), (-1.0, 0), (2.0, 12), (np.nan, 0)):
        yield rows("SamplingDataset", lambda v=rate: make(input_dataset=ranged(12), rate=np.float32(v), seed=one(1), seed2=one(2), **TYPES),
                   left, types=[I], shapes=[()], again=min(left, 3), name=f"r{rate}")
    yield refused("SamplingDataset", lambda: make(input_dataset=ranged(3), rate=one([1.0], tf.float32), seed=one(1), seed2=one(2), **TYPES),
                  "rate must be a scalar")


def sliding(op):
    make = getattr(R, op)

    def ds(n, size, shift, stride, **more):
        return lambda: make(input_dataset=ranged(n), window_size=one(size), window_shift=one(shift), window_stride=one(stride), **more, **BATCHES)

    for n, size, shift, stride in ((10, 3, 1, 1), (10, 3, 2, 2), (10, 2, 5, 3), (5, 6, 1, 1), (10, 3, 4, 1), (9, 2, 4, 3)):
        count = max(0, (n - (size - 1) * stride - 1) // shift + 1)
        yield rows(op, ds(n, size, shift, stride), count, types=[I], shapes=[(None,)], again=min(count, 1), name=f"n{n}_{size}_{shift}_{stride}")
        if op == "SlidingWindowDataset":
            yield rows(op, ds(n, size, shift, stride, drop_remainder=False), -(-n // shift), types=[I], shapes=[(None,)],
                       name=f"all{n}_{size}_{shift}_{stride}")
    yield refused(op, ds(5, 0, 1, 1), "Window size must be greater than zero.", shapes=((None,),))
    yield refused(op, ds(5, 1, 0, 1), "Window shift must be greater than zero.", shapes=((None,),))
    yield refused(op, ds(5, 1, 1, 0), "window_stride must be greater than zero.", shapes=((None,),))
    yield refused(op, ds(5, [1], 1, 1), "window_size must be a scalar", shapes=((None,),))


def statistics(op):
    make = getattr(R, op)
    for n in range(7):
        yield rows(op, lambda n=n: make(input_dataset=ranged(n), tag="t", **TYPES), n, types=[I], shapes=[()], name=f"n{n}", again=min(n, 1))
    yield refused(op, lambda: make(input_dataset=ranged(2), tag=one(["t"], tf.string), **TYPES), "tag must be a scalar")


def reducers(op):
    s = tf.TensorSpec([], I)

    def ds(n, key, init=lambda k: k * 100, reduce=lambda a, x: a + x, finalize=lambda a: a + 1):
        f = lambda g, *args: tf.function(g, autograph=False).get_concrete_function(*args)
        return lambda: getattr(R, op)(
            input_dataset=ranged(n), key_func_other_arguments=[], init_func_other_arguments=[], reduce_func_other_arguments=[],
            finalize_func_other_arguments=[], key_func=f(key, s), init_func=f(init, s), reduce_func=f(reduce, s, s),
            finalize_func=f(finalize, s), **TYPES)

    for n, mod, left in ((7, 3, 3), (0, 2, 0), (1, 2, 1), (10, 4, 4), (6, 1, 1)):
        yield rows(op, ds(n, lambda x, m=mod: (x * 2 + 1) % m), len({(x * 2 + 1) % mod for x in range(n)}), types=[I], shapes=[()],
                   name=f"g{n}_{mod}", again=min(left, 1))
    yield rows(op, ds(6, lambda x: -(x % 3)), 3, types=[I], shapes=[()], name="negative_keys")
    yield rows(op, ds(6, lambda x: x % 2, lambda k: k, lambda a, x: a * 10 + x, lambda a: -a), 2, types=[I], shapes=[()], name="order")
    yield rows(op, ds(4, lambda x: tf.fill([2], x)), 0, types=[I], shapes=[()], name="key", error="`key_func` must return a scalar int64.")


def cases(r):
    yield from randoms("RandomDataset")
    for prefix in ("", "Experimental"):
        yield from sliding(prefix + "SlidingWindowDataset")
        yield from statistics(prefix + "LatencyStatsDataset")
        yield from statistics(prefix + "BytesProducedStatsDataset")
        yield from reducers(prefix + "GroupByReducerDataset")
    yield from samples()
