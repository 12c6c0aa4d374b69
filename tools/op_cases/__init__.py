"""Building blocks of the spec modules: cases, random inputs, sweeps over types and shapes.

A spec module tools/op_cases/<family>.py defines

    from op_cases import *

    def cases(r):
        for t in REALS:
            yield case("Relu", r.numbers(t, (2, 3)), name=t)
        yield case("Relu", edge("float"))
        yield case("Sum", r.numbers("float", (2, 3)), i32([5]), error="Invalid reduction dimension")
        yield case("Cumsum", x, i32(0), exclusive=True)          # attributes by keyword
        yield case("ConcatV2", [x, y], i32(0))                   # a list argument is a Python list
        yield graph_case("TensorListStack", build, name="empty") # several ops, see graph_case

`r` is a Random, seeded by the tool; inputs are numpy arrays (or Typed for types that numpy lacks).
"""
import dataclasses
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf

__all__ = [
    "case", "graph_case", "AS_SAID", "Body", "Step", "Typed", "np", "tf", "np_type", "array", "i32", "i64", "edge",
    "case", "first_to_run", "graph_case", "Step", "Typed", "np", "tf", "np_type", "array", "i32", "i64", "edge",
    "FLOATS", "HALVES", "FLOATING", "SIGNED", "UNSIGNED", "INTS", "REALS", "COMPLEX", "NUMBERS",
    "SHAPES", "BROADCASTS",
]

# TensorFlow's names, as in op definitions.
FLOATS = ["float", "double"]
HALVES = ["half", "bfloat16"]
FLOATING = FLOATS + HALVES
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
REALS = FLOATING + INTS
COMPLEX = ["complex64", "complex128"]
NUMBERS = REALS + COMPLEX

# As `error`: the first line of TensorFlow's message, whatever it is.
AS_SAID = "*"

SHAPES = [(), (0,), (1,), (7,), (2, 3), (2, 0, 3), (2, 3, 4), (1, 2, 1, 3)]
# Pairs that broadcast.
BROADCASTS = [
    ((), ()), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)),
    ((2, 3), (2, 1)), ((4, 1, 3), (2, 1)), ((0,), (1,)), ((2, 0), (1, 1)), ((1, 2, 1, 2), (3, 1, 2, 1)),
]


@dataclasses.dataclass
class Typed:
    """Values of a type that numpy has no array of (qint8, ...): the array holds the plain integers."""
    dtype: str
    values: np.ndarray


@dataclasses.dataclass
class Body:
    """The value of a function attribute: a Python function of tensors, and its arguments as (type, shape).
    Only in families that XLA compiles (JIT = True)."""
    fn: Callable
    args: list


@dataclasses.dataclass
class Case:
    op: str
    inputs: list
    attrs: dict
    name: Optional[str] = None
    error: Optional[str] = None
    tol: Optional[tuple] = None
    compare: Optional[str] = None
    after: Optional[Callable] = None
    static: bool = False
    otherwise: Optional[list] = None


@dataclasses.dataclass
class Step:
    """One run of a graph: feeds (tensor -> numpy array), tensors to fetch, operations to run. answers: arrays
    that TensorFlow computed in another way, where the graph itself is beyond it."""
    fetch: list = dataclasses.field(default_factory=list)
    feed: dict = dataclasses.field(default_factory=dict)
    run: list = dataclasses.field(default_factory=list)
    error: Optional[str] = None
    answers: Optional[list] = None


@dataclasses.dataclass
class GraphCase:
    op: str
    build: Callable[[], Any]
    name: Optional[str] = None
    error: Optional[str] = None
    tol: Optional[tuple] = None
    compare: Optional[str] = None


def case(op, *inputs, name=None, error=None, tol=None, compare=None, after=None, static=False,
         attrs=None, **more):
    """One op on given inputs.

    name: ends the case's name; needed only to find it. error: a substring of the message, for cases
    that must fail ("" for any message, AS_SAID for the one that TensorFlow gives). tol: (rtol, atol).
    compare: "shape" when values are random.
    after: a function from the op's outputs to what is compared, in families that XLA compiles.
    static: TensorFlow is told the inputs' shapes when it builds the op.
    attrs (or keywords): attributes that TensorFlow does not infer from the inputs.
    """
    return Case(op, list(inputs), dict(attrs or {}, **more), name, error, tol, compare, after, static)


def first_to_run(cases):
    """The first of the cases that TensorFlow runs; none when it fails them all."""
    cases[0].otherwise = cases[1:]
    return cases[0]


def graph_case(op, build, name=None, error=None, tol=None, compare=None):
    """Several ops. `build` is called with a fresh tf.Graph as default, makes ops (tf.raw_ops, tf.function
    and so on) and returns the tensors to fetch, or a list of Steps that run one after another on the
    same state. Inputs should be placeholders or variables: what is constant may be folded. `op` is the
    op that the case is about."""
    return GraphCase(op, build, name, error, tol, compare)


def np_type(t):
    return np.dtype(tf.as_dtype(t).as_numpy_dtype)


def array(t, values, shape=None):
    """An array of TensorFlow type t."""
    if t == "string":
        a = np.array(values, dtype=object)
    else:
        a = np.array(values).astype(np_type(t))
    return a if shape is None else a.reshape(shape)


def i32(v):
    return np.array(v, dtype=np.int32)


def i64(v):
    return np.array(v, dtype=np.int64)


def edge(t):
    """A vector of values at the edges of a type: zeros, halves, limits, infinities, NaN."""
    d = np_type(t)
    if t == "bool":
        return np.array([False, True])
    if t in INTS:
        i = np.iinfo(d)
        vals = [0, 1, 2, 3, 7, i.max, i.max - 1, i.min, i.min + 1]
        if t in SIGNED:
            vals += [-1, -2, -3, -7]
        return np.array(vals, dtype=d)
    with np.errstate(all="ignore"):
        if t in COMPLEX:
            return np.array([0, 1, -1, 1j, -1j, 1 + 2j, -3.5 + 0.25j, 1e-3 - 1e3j], dtype=d)
        f = tf.experimental.numpy.finfo(d) if t != "bfloat16" else None
        big = float(f.max) if f else 3.3e38
        small = float(f.tiny) if f else 1.2e-38
        vals = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.75, -100.25, np.inf, -np.inf,
                np.nan, big, -big, small, -small]
        return np.array(vals).astype(d)


class Random:
    """Seeded inputs."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def normal(self, shape=(), t="float", scale=1.0):
        return np.asarray(self.rng.normal(0, scale, shape)).astype(np_type(t))

    def uniform(self, shape=(), lo=0.0, hi=1.0, t="float"):
        return np.asarray(self.rng.uniform(lo, hi, shape)).astype(np_type(t))

    def ints(self, shape=(), lo=-9, hi=10, t="int32"):
        """Integers in [lo, hi)."""
        if t in UNSIGNED:
            lo = max(lo, 0)
        return np.asarray(self.rng.integers(lo, hi, shape)).astype(np_type(t))

    def bools(self, shape=()):
        return np.asarray(self.rng.integers(0, 2, shape)).astype(bool)

    def strings(self, shape=(), length=5):
        n = int(np.prod(shape, dtype=np.int64))
        words = [bytes(self.rng.integers(97, 123, self.rng.integers(0, length + 1)).astype(np.uint8))
                 for _ in range(n)]
        a = np.empty(n, dtype=object)
        a[:] = words
        return a.reshape(shape)

    def numbers(self, t, shape=()):
        """Small values of any type: floats in about [-3, 3], ints in [-9, 9] or [0, 9]."""
        if t == "bool":
            return self.bools(shape)
        if t == "string":
            return self.strings(shape)
        if t in INTS:
            return self.ints(shape, t=t)
        if t in COMPLEX:
            return np.asarray(self.rng.normal(0, 1, shape) + 1j * self.rng.normal(0, 1, shape)).astype(
                np_type(t))
        return self.normal(shape, t)

    def choice(self, items):
        return items[int(self.rng.integers(0, len(items)))]
