"""Drawers of .tflite files of several subgraphs: branches, loops, variables, tables, calls; and of other shapes than the file states."""
import numpy as np

from lite_drawers import DRAWERS
from lite_drawn_graphs import GRAPHS

STEPS = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "TANH", "ABS", "NEG", "RELU")


def step(d, f, x, y, shape, dtype):
    """One operator of x, or of x and y."""
    op = d.pick(*(s for s in STEPS if dtype == "float32" or s not in ("TANH", "ABS", "NEG", "RELU")))
    table = {"MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions", "ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "ABS": "AbsOptions", "NEG": "NegOptions"}.get(op)
    d.about.append(op)
    return f.op(op, [x, y] if op in STEPS[:5] else [x], [f.tensor(shape, dtype)], table)


def body(d, name, shapes, dtype):
    """A subgraph of tensors of these shapes, which gives as many."""
    f = d.lite.sub(name)
    x = [f.input(s, dtype) for s in shapes]
    out = list(x)
    for _ in range(d.int(1, 3)):
        i = d.int(0, len(x) - 1)
        out[i] = step(d, f, out[i], f.const(d.values(shapes[i], dtype, -1, 1)) if d.chance(0.5) else x[i], shapes[i], dtype)
    f.graph.outputs = out if len(set(out)) == len(out) else x
    return f


def branch(d):
    """IF, STABLEHLO_CASE and STABLEHLO_COMPOSITE."""
    op, dtype = d.pick("IF", "IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE"), d.pick("float32", "int32", "float32", "int64")
    shapes = [d.shape(0, 3, 5) for _ in range(d.int(1, 3))]
    count = {"IF": 2, "STABLEHLO_CASE": d.int(1, 4)}.get(op, 1)
    branches = [body(d, f"branch{i}", shapes, dtype).index for i in range(count)]
    at = [d.input(np.array(d.chance(0.5)))] if op == "IF" else [d.input(np.int32(d.int(-1, count)))] if op == "STABLEHLO_CASE" else []
    fields = {"IF": lambda: {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}, "STABLEHLO_CASE": lambda: {"branchSubgraphIndices": branches},
              "STABLEHLO_COMPOSITE": lambda: {"name": b"drawn", "decompositionSubgraphIndex": branches[0], "compositeAttributes": []}}[op]()
    d.op(op, [*at, *(d.input(d.values(s, dtype)) for s in shapes)], [d.output(s, dtype) for s in shapes], table={"STABLEHLO_COMPOSITE": "StableHLOCompositeOptions"}.get(op), **fields)


def loop(d):
    """WHILE, whose first tensor counts."""
    dtype = d.pick("float32", "int32")
    shapes, most = [d.shape(0, 3, 4) for _ in range(d.int(1, 2))], d.int(-1, 6)
    grows = d.chance(0.25)  # the tensor behind the count is longer after each turn
    if grows:
        shapes = [(1, d.int(1, 3))]
    cond, turn = d.lite.sub("cond"), d.lite.sub("turn")
    stated = [(-1, *shapes[0][1:])] if grows else [None] * len(shapes)
    for f in (cond, turn):
        f.count = f.input([], "int32")
        f.read = [f.input(s, dtype, signature=g) for s, g in zip(shapes, stated)]
    cond.graph.outputs = [cond.op("LESS", [cond.count, cond.const(np.int32(most))], [cond.tensor([], "bool")], "LessOptions")]
    made = [turn.op("ADD", [turn.count, turn.const(np.int32(1))], [turn.tensor([], "int32")], "AddOptions")]
    for x, s, g in zip(turn.read, shapes, stated):
        if grows:
            made.append(turn.op("CONCATENATION", [x, turn.const(d.values(s, dtype))], [turn.tensor((2, *s[1:]), dtype, signature=g)], "ConcatenationOptions", axis=0))
        else:
            y = step(d, turn, x, turn.const(d.values(s, dtype, -1, 1)), s, dtype)
            made.append(step(d, turn, y, turn.const(d.values(s, dtype, -1, 1)), s, dtype) if d.chance(0.5) else y)
    turn.graph.outputs = made
    out = [d.output([], "int32"), *(d.output(s, dtype) for s in shapes)]
    d.op("WHILE", [d.input(np.int32(d.int(0, 2))), *(d.input(d.values(s, dtype)) for s in shapes)], out, condSubgraphIndex=cond.index, bodySubgraphIndex=turn.index)


def variable(d):
    """What a call writes the next one reads; CALL_ONCE begins it."""
    dtype, shape = d.pick("float32", "int32", "int64", "bool", "int8", "int16"), d.shape(0, 3, 5)
    handle = lambda f, name: f.op("VAR_HANDLE", [], [f.tensor([], "resource")], "VarHandleOptions", sharedName=name, container=b"")
    begin = d.lite.sub("begin")
    _write(begin, handle(begin, b"v"), begin.const(d.values(shape, dtype)))
    d.about.append(f"{dtype}{list(shape)}")
    _run(d.lite, "CALL_ONCE", [], "CallOnceOptions", initSubgraphIndex=begin.index)
    x = d.input(d.values(shape, dtype))
    h = handle(d.lite, b"v")
    read = d.lite.op("READ_VARIABLE", [h], [d.output(shape, dtype)], "ReadVariableOptions")
    if dtype in ("float32", "int32", "int64") and d.chance(0.6):
        x = d.lite.op("ADD", [read, x], [d.output(shape, dtype)], "AddOptions")
    _write(d.lite, h, x)
    if d.chance(0.5):
        d.lite.op("READ_VARIABLE", [h], [d.output(shape, dtype)], "ReadVariableOptions")
    d.repeat(d.int(2, 4))


def _run(f, op, inputs, table, **fields):
    """An operator without an output."""
    f.op(op, inputs, [-1], table, **fields)
    f.graph.operators[-1].outputs = []


def _write(f, handle, value):
    _run(f, "ASSIGN_VARIABLE", [handle, value], "AssignVariableOptions")


def hashtable(d):
    """A table of numbers to texts or back, filled once."""
    back = d.chance(0.5)
    keys = np.sort(d.random.choice(np.arange(-9, 30), d.int(1, 6), replace=False)).astype(np.int64)
    texts = np.array([f"text {k}".encode() for k in keys], object)
    kinds = ("str", "int64") if back else ("int64", "str")
    fields = {"tableId": 3, "keyDtype": KINDS[kinds[0]], "valueDtype": KINDS[kinds[1]]}
    handle = lambda f: f.op("HASHTABLE", [], [f.tensor([1], "resource")], "HashtableOptions", **fields)
    begin = d.lite.sub("begin")
    numbers, words = begin.const(keys), begin.tensor([len(texts)], "str", value=packed_texts(texts))
    _run(begin, "HASHTABLE_IMPORT", [handle(begin), *((words, numbers) if back else (numbers, words))], "HashtableImportOptions")
    _run(d.lite, "CALL_ONCE", [], "CallOnceOptions", initSubgraphIndex=begin.index)
    h = handle(d.lite)
    many = d.int(1, 6)
    if back:
        x = np.array([d.pick(*texts, b"none") for _ in range(many)], object)
        d.given.append(x)
        wanted, other = d.lite.input([many], "str"), d.lite.const(np.array([-1], np.int64))
    else:
        wanted, other = d.input(d.random.choice([*keys, 99], many).astype(np.int64)), d.lite.tensor([1], "str", value=packed_texts([b"none"]))
    d.about.append(f"HASHTABLE {kinds} {len(keys)} keys, {many} asked")
    d.lite.op("HASHTABLE_FIND", [h, wanted, other], [d.output([many], kinds[1])], "HashtableFindOptions")
    if d.chance(0.5):
        d.lite.op("HASHTABLE_SIZE", [h], [d.output([1], "int64")], "HashtableSizeOptions")


KINDS = {"str": 5, "int64": 4}


def packed_texts(texts):
    """A buffer of texts: how many, where each begins and the last ends, then their bytes."""
    at = 4 * (len(texts) + 2)
    places = [at + sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    return np.array([len(texts), *places], np.int32).tobytes() + b"".join(texts)


# Of these families the first size is one of rows that are alike, and nothing is kept.
ROWS = {**{k: DRAWERS[k] for k in ("layer", "pool", "row", "resize", "requantize", "cast")}, **GRAPHS}


def resized(d):
    """A file that leaves the first size free, stated as another than what it is given has: the runtime resizes."""
    ROWS[d.pick(*ROWS)](d)
    g = d.lite.graph
    n, stated = d.given[0].shape[0], d.int(1, 4)
    given = [i for i, v in zip(g.inputs, d.given) if v.shape[:1] == (n,)]
    for i, t in enumerate(g.tensors):
        if t.buffer or len(t.shape) == 0 or t.shape[0] != n or i in g.inputs and i not in given[:1]:
            continue
        t.shape = [stated, *t.shape[1:]]
        t.shapeSignature = [-1, *t.shape[1:]]
    d.about.append(f"first size free, stated as {stated}")


CONTROL = {f.__name__: f for f in (branch, loop, variable, hashtable, resized)}
