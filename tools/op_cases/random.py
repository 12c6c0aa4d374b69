"""Random ops: bit-exact given seeds."""
from op_cases import *

U64 = lambda v: np.array(v, np.uint64)


def stateless(r):
    ops = ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"]
    for op in ops:
        # The bits of the normals depend on libm's last places.
        tol = None if op == "StatelessRandomUniform" else (1e-6, 1e-6)
        for t in FLOATING:
            for shape in [(), (1,), (7,), (3, 5), (0,), (2, 64)]:
                yield case(op, i32(list(shape)), i64([7, -3]), dtype=tf.as_dtype(t), name=t,
                           tol=tol if t not in HALVES else tol and (1e-2, 1e-2))
        yield case(op, i64([5]), i32([0, 1]), name="int32_seed", tol=tol)
        yield case(op, i32([5]), i64([1, 2, 3]), error="seed must have shape [2], not [3]")
        yield case(op, i32([-5]), i64([1, 2]), error="")
        for t in FLOATS:
            yield case(op + "V2", i32([9]), U64([123456789012345]), U64([5, 6]), i32(1),
                       dtype=tf.as_dtype(t), name=t, tol=tol)
        yield case(op + "V2", i32([9]), U64([1, 2]), U64([5, 6]), i32(1), error="")
        yield case(op + "V2", i32([9]), U64([1]), U64([5, 6]), i32(9), error="")
    for t in ("int32", "int64"):
        lo, hi = array(t, 3), array(t, 1000)
        yield case("StatelessRandomUniformInt", i32([3, 3]), i64([5, 6]), lo, hi, name=t)
        yield case("StatelessRandomUniformInt", i32([3]), i64([5, 6]), array(t, -5), array(t, -4), name=t)
        yield case("StatelessRandomUniformInt", i32([3]), i64([5, 6]), hi, lo,
                   error="Need minval < maxval, got 1000 >= 3")
        yield case("StatelessRandomUniformInt", i32([0]), i64([5, 6]), hi, hi, name="empty")
        yield case("StatelessRandomUniformInt", i32([3]), i64([5, 6]), array(t, [1]), hi, error="minval must be 0-D")
        yield case("StatelessRandomUniformIntV2", i32([11]), U64([8]), U64([5, 6]), i32(1), lo, hi, name=t)
    for t in ("int32", "int64", "uint32", "uint64"):
        yield case("StatelessRandomUniformFullInt", i32([5]), i64([5, 6]), dtype=tf.as_dtype(t), name=t)
        yield case("StatelessRandomUniformFullIntV2", i32([5]), U64([8]), U64([5, 6]), i32(1), dtype=tf.as_dtype(t),
                   name=t)
    for seed in ([0, 0], [1, 2], [-1, 2**40]):
        yield case("StatelessRandomGetKeyCounter", i64(seed))
    yield case("StatelessRandomGetKeyCounter", i32([1, 2]), name="int32")
    yield case("StatelessRandomGetKeyCounter", i64([1]), error="seed must have shape [2]")
    yield case("StatelessRandomGetAlg")


def stateful(r):
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        tol = None if op == "RandomUniform" else (1e-6, 1e-6)
        for t in FLOATS:
            for seed, seed2 in [(1, 2), (0, 5), (87654321, 7)]:
                yield case(op, i32([2, 5]), seed=seed, seed2=seed2, dtype=tf.as_dtype(t), name=t, tol=tol)
        yield case(op, i64([0, 5]), seed=1, dtype=tf.float32, name="empty")
        yield case(op, i32([3, 4]), dtype=tf.float32, name="unseeded", compare="shape")

        def twice():
            x = getattr(tf.raw_ops, op)(shape=[3], dtype=tf.float32, seed=3, seed2=4)
            return [Step(fetch=[x]), Step(fetch=[x])]

        yield graph_case(op, twice, name="goes_on", tol=tol)
    for t in ("int32", "int64"):
        yield case("RandomUniformInt", i32([7]), array(t, -3), array(t, 100), seed=4, seed2=1, name=t)
        yield case("RandomUniformInt", i32([7]), array(t, 3), array(t, 3), seed=4, error="Need minval < maxval")
    for shape in [(6,), (5, 2), (1,), (0,), (3, 2, 2)]:
        yield case("RandomShuffle", r.numbers("float", shape), seed=3, seed2=9)
    yield case("RandomShuffle", np.array(["a", "b", "c", "d"], object), seed=3, seed2=9, name="string")
    for t in FLOATS:
        for out in (tf.int32, tf.int64):
            yield case("Multinomial", r.numbers(t, (3, 4)), i32(6), seed=3, seed2=9, output_dtype=out, name=t)
    yield case("Multinomial", np.array([[-np.inf, 0, np.nan]], np.float32), i32(5), seed=3, seed2=9, name="odd")
    yield case("Multinomial", r.numbers("float", (3, 4)), i32(-1), seed=3, error="num_samples should be non-negative, got -1")
    yield case("Multinomial", r.numbers("float", (4,)), i32(1), seed=3, error="logits should be a matrix")
    yield case("Multinomial", r.numbers("float", (2, 0)), i32(1), seed=3, error="num_classes should be positive")
    yield case("StatelessMultinomial", r.numbers("float", (2, 5)), i32(9), i64([3, 4]))


def more(r):
    for op in ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"]:
        tol = None if op == "StatelessRandomUniform" else (1e-6, 1e-6)
        for t in FLOATING:
            for shape in [(), (0,), (3, 4)]:
                yield case(op + "V2", i32(list(shape)), U64([9]), U64([1, 2**63]), i32(1), dtype=tf.as_dtype(t), name=t,
                           tol=tol if t not in HALVES else tol and (1e-2, 1e-2))
        yield case(op + "V2", i32([-1]), U64([9]), U64([1, 2]), i32(1), error="")
    for t in ("int32", "int64", "uint32", "uint64"):
        for shape in [(), (0,), (3, 4)]:
            yield case("StatelessRandomUniformFullInt", i64(list(shape)), i32([5, -6]), dtype=tf.as_dtype(t), name=t)
            yield case("StatelessRandomUniformFullIntV2", i64(list(shape)), U64([7]), U64([0, 2**64 - 1]), i32(1),
                       dtype=tf.as_dtype(t), name=t)
    yield case("StatelessRandomUniformFullInt", i32([2]), i64([1]), dtype=tf.int32, error="seed must have shape [2], not [1]")
    yield case("StatelessRandomUniformFullIntV2", i32([2]), U64([7]), U64([0, 1]), i32(9), dtype=tf.int32, error="")
    for t in ("int32", "int64"):
        for lo, hi in [(-5, 5), (np.iinfo(np_type(t)).min, np.iinfo(np_type(t)).max), (7, 8)]:
            yield case("StatelessRandomUniformIntV2", i32([2, 3]), U64([8]), U64([5, 6]), i32(1), array(t, lo), array(t, hi), name=t)
        yield case("StatelessRandomUniformIntV2", i32([2]), U64([8]), U64([5, 6]), i32(1), array(t, 3), array(t, 3), name=t,
                   error="Need minval < maxval, got 3 >= 3")
        yield case("RandomUniformInt", i32([0]), array(t, 1), array(t, 2), seed=4, name=t + "_empty")
        yield case("RandomUniformInt", i64([2, 3]), array(t, -1), array(t, 1), seed=4, seed2=5, name=t)
        yield case("RandomUniformInt", i32([2]), array(t, [1]), array(t, 2), seed=4, error="minval must be 0-D, got shape [1]")
        yield case("RandomUniformInt", i32([-2]), array(t, 1), array(t, 2), seed=4, error="")
    for seed in ([0, 0], [1, 2], [-1, 2**40], [2**63 - 1, -2**63], [5, 5]):
        yield case("StatelessRandomGetKeyCounterAlg", i64(seed))
        yield case("StatelessRandomGetKeyCounter", i64(seed[::-1]))
    for seed in ([0, 1], [-1, 2**31 - 1]):
        yield case("StatelessRandomGetKeyCounterAlg", i32(seed))
    yield case("StatelessRandomGetKeyCounterAlg", i64([1]), error="seed must have shape [2]")
    for t in FLOATING:
        for out in (tf.int32, tf.int64):
            yield case("StatelessMultinomial", r.numbers(t, (2, 5)), i32(4), i64([3, 4]), output_dtype=out, name=t)
    yield case("StatelessMultinomial", r.normal((2, 5)), i32(0), i64([3, 4]), name="none")
    yield case("StatelessMultinomial", r.normal((0, 5)), i32(3), i64([3, 4]), name="empty")
    yield case("StatelessMultinomial", r.normal((5,)), i32(3), i64([3, 4]), error="logits should be a matrix, got shape [5]")
    yield case("StatelessMultinomial", r.normal((2, 5)), i32(-1), i64([3, 4]), error="")
    for t in ["int8", "half", "complex64", "bool"]:
        yield case("RandomShuffle", r.numbers(t, (5, 2)), seed=3, seed2=9, name=t)
    yield case("RandomShuffle", r.normal(()), seed=3, name="scalar")
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        yield case(op, i32([2, -1]), seed=3, dtype=tf.float32, error="")
        yield case(op, i32(3), seed=3, dtype=tf.float32, error="")


def cases(r):
    yield from stateless(r)
    yield from stateful(r)
    yield from more(r)
