"""Drawers of .tflite operators that move numbers, and choose and make them, a row of MOVEMENT per family."""
import numpy as np

from lite_draw import LIMITS, QUANTIZED

NUMBERS = ("float32", "int32", "int64", "int8", "uint8", "int16")
EVERY = (*NUMBERS, "bool")


def source(d, shape, kinds=EVERY):
    """(values, their type, scale and zero point)"""
    dtype = d.pick(*kinds)
    return d.values(shape, dtype), dtype, d.quant(dtype)


def move(d, op, x, dtype, quant, shape, *others, constant=0.8, **fields):
    d.op(op, [d.input(x, **quant), *(d.either(o, constant) for o in others)], [d.output(shape, dtype, **quant)], **fields)


def pad(d):
    op = d.pick("PAD", "PADV2", "MIRROR_PAD")
    shape = d.shape(1, d.pick(2, 4, 5), 6)
    x, dtype, quant = source(d, shape, EVERY if op != "PADV2" else NUMBERS)
    mode = d.int(0, 1)
    most = [n - 1 if mode == 0 else n for n in shape] if op == "MIRROR_PAD" else [3] * len(shape)
    pads = np.array([[d.int(0, m), d.int(0, m)] for m in most], d.pick(np.int32, np.int32, np.int64))
    out = tuple((np.array(shape) + pads.sum(1)).tolist())
    if op == "PADV2":
        inputs = [d.input(x, **quant), d.either(pads, 0.8), d.either(d.values((), dtype), 0.5, **quant)]
        d.op(op, inputs, [d.output(out, dtype, **quant)])
    else:
        move(d, op, x, dtype, quant, out, pads, **({"mode": mode} if op == "MIRROR_PAD" else {}))


def slices(d):
    op = d.pick("SLICE", "STRIDED_SLICE")
    shape = d.shape(1, d.pick(2, 4, 5), 7)
    x, dtype, quant = source(d, shape)
    if op == "SLICE":
        begin = [d.int(0, n - 1) for n in shape]
        size = [d.int(1, n - b) for n, b in zip(shape, begin)]
        places = d.pick(np.int32, np.int64)
        move(d, op, x, dtype, quant, size, np.array(begin, places), np.array([-1 if b + s == n and d.chance(0.4) else s for n, b, s in zip(shape, begin, size)], places))
        return
    begin, end, stride = [], [], []
    for n in shape:
        s = d.pick(1, 1, 2, -1, -2)
        a, b = sorted((d.int(0, n - 1), d.int(0, n - 1)))
        begin.append(a if s > 0 else b)
        end.append(b + 1 if s > 0 else a - 1 if a else -n - 1)
        if d.chance(0.3):
            begin[-1] -= n
        if d.chance(0.2):
            end[-1] = n + 3 if s > 0 else -n - 2
        stride.append(s)
    masks = {k: sum(1 << i for i in range(len(shape)) if d.chance(0.15)) for k in ("beginMask", "endMask")}
    shrink = sum(1 << i for i in range(len(shape)) if d.chance(0.15))
    cut = []
    for i, (b, e, s) in enumerate(zip(begin, end, stride)):
        if shrink >> i & 1:
            stride[i], end[i] = 1, b + 1
            masks["beginMask"] &= ~(1 << i)
            cut.append(b)
        else:
            cut.append(slice(None if masks["beginMask"] >> i & 1 else b, None if masks["endMask"] >> i & 1 else e, s))
    move(d, op, x, dtype, quant, x[tuple(cut)].shape, *(np.array(v, np.int32) for v in (begin, end, stride)), shrinkAxisMask=shrink, **masks)


def gathers(d):
    op = d.pick("GATHER", "GATHER_ND", "SCATTER_ND")
    shape, places = d.shape(1, 4, 6), d.pick("int32", "int32", "int64")
    x, dtype, quant = source(d, shape)
    if op == "GATHER":
        axis = d.int(0, len(shape) - 1)
        batch = d.int(0, axis) if d.chance(0.3) else 0
        rows = shape[:batch] + d.shape(0, 2, 5)
        at = d.random.integers(0, shape[axis], rows).astype(places)
        out = (*shape[:axis], *rows[batch:], *shape[axis + 1:])
        move(d, op, x, dtype, quant, out, at, constant=0.5, axis=axis - len(shape) if d.chance(0.3) else axis, batchDims=batch)
        return
    depth = d.int(1, len(shape))
    at = np.stack([d.random.integers(0, n, rows) for rows in [d.shape(1, 2, 4)] for n in shape[:depth]], -1).astype(places)
    out = (*at.shape[:-1], *shape[depth:])
    if op == "GATHER_ND":
        move(d, op, x, dtype, quant, out, at, constant=0.5)
    else:
        at = at.astype(np.int32)
        dtype = d.pick("float32", "int32", "int64", "int8", "uint8", "bool")
        quant = d.quant(dtype)
        d.op(op, [d.either(at, 0.5), d.input(d.values(out, dtype), **quant), d.either(np.array(shape, np.int32), 0.7)], [d.output(shape, dtype, **quant)])


def joins(d):
    op = d.pick("CONCATENATION", "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V")
    shape = d.shape(1, 4, 6)
    dtype = d.pick(*EVERY)
    axis, count = d.int(0, len(shape) - 1), d.int(1, 4)
    said = axis - len(shape) if d.chance(0.3) else axis
    quant = d.quant(dtype)
    if op == "CONCATENATION":
        parts = [shape[:axis] + (d.int(1, 5),) + shape[axis + 1:] for _ in range(count)]
        other = lambda: d.quant(dtype) if dtype in ("uint8", "int8") and d.chance(0.5) else quant
        out = shape[:axis] + (sum(p[axis] for p in parts),) + shape[axis + 1:]
        d.op(op, [d.either(d.values(p, dtype), 0.2, **other()) for p in parts], [d.output(out, dtype, **quant)], axis=said)
    elif op == "PACK":
        axis = d.int(0, len(shape))
        said = axis - len(shape) - 1 if d.chance(0.3) else axis
        d.op(op, [d.either(d.values(shape, dtype), 0.2, **quant) for _ in range(count)], [d.output(shape[:axis] + (count,) + shape[axis:], dtype, **quant)], valuesCount=count, axis=said)
    else:
        if op == "UNPACK":
            left = [shape[:axis] + shape[axis + 1:]] * shape[axis]
            whole, inputs, fields = shape, [], {"num": shape[axis], "axis": said}
        elif op == "SPLIT":
            whole = shape[:axis] + (shape[axis] * count,) + shape[axis + 1:]
            left, fields = [shape] * count, {"numSplits": count}
        else:
            sizes = [d.int(1, 4) for _ in range(count)]
            whole = shape[:axis] + (sum(sizes),) + shape[axis + 1:]
            left, fields = [shape[:axis] + (s,) + shape[axis + 1:] for s in sizes], {"numSplits": count}
            if d.chance(0.3):
                sizes[d.int(0, count - 1)] = -1
        x = d.input(d.values(whole, dtype), **quant)
        if op != "UNPACK":
            at = d.either(np.int32(said), 0.9)
        inputs = [x] if op == "UNPACK" else [at, x] if op == "SPLIT" else [x, d.either(np.array(sizes, d.pick(np.int32, np.int64)), 0.9), at]
        d.op(op, inputs, [d.output(s, dtype, **quant) for s in left], **fields)


def turns(d):
    op = d.pick("TRANSPOSE", "TRANSPOSE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "REVERSE_V2", "REVERSE_SEQUENCE", "TILE", "BROADCAST_TO")
    shape = d.shape(1, d.pick(3, 4, 6), 6)
    x, dtype, quant = source(d, shape)
    if op == "TRANSPOSE":
        order = d.random.permutation(len(shape))
        move(d, op, x, dtype, quant, [shape[i] for i in order], order.astype(np.int32))
    elif op == "RESHAPE":
        to = list(d.random.permutation(shape))
        move(d, op, x, dtype, quant, to, np.array([-1 if i == 0 and d.chance(0.4) else n for i, n in enumerate(to)], np.int32))
    elif op == "SQUEEZE":
        shape = tuple(1 if d.chance(0.5) else n for n in shape)
        drop = [i for i, n in enumerate(shape) if n == 1 and d.chance(0.6)]
        left = [n for i, n in enumerate(shape) if i not in drop] if drop else [n for n in shape if n != 1]
        move(d, op, d.values(shape, dtype), dtype, quant, left, squeezeDims=drop)
    elif op == "EXPAND_DIMS":
        at = d.int(0, len(shape))
        move(d, op, x, dtype, quant, shape[:at] + (1,) + shape[at:], np.array(at - len(shape) - 1 if d.chance(0.4) else at, d.pick(np.int32, np.int64)))
    elif op == "REVERSE_V2":
        move(d, op, x, dtype, quant, shape, np.array([d.int(0, len(shape) - 1)], np.int32))
    elif op == "REVERSE_SEQUENCE":
        shape = shape if len(shape) > 1 else (2, *shape)
        dtype = d.pick("float32", "int32", "int64", "uint8", "int16")
        quant = d.quant(dtype)
        along, batch = (int(v) for v in d.random.permutation(len(shape))[:2])
        move(d, op, d.values(shape, dtype), dtype, quant, shape, d.random.integers(1, shape[along] + 1, shape[batch]).astype(d.pick(np.int32, np.int64)), seqDim=along, batchDim=batch)
    elif op == "TILE":
        times = np.array([d.int(1, 3) for _ in shape], d.pick(np.int32, np.int64))
        move(d, op, x, dtype, quant, (np.array(shape) * times).tolist(), times)
    else:
        to = (*d.shape(0, 2, 3), *shape)
        move(d, op, d.values(tuple(1 if d.chance(0.5) else n for n in shape), dtype), dtype, quant, to, np.array(to, d.pick(np.int32, np.int64)), version=2)


def spaces(d):
    op = d.pick("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
    n, h, w, c, b = d.int(1, 3), d.int(1, 4), d.int(1, 4), d.int(1, 5), d.int(1, 3)
    shape = {"SPACE_TO_DEPTH": (n, h * b, w * b, c), "DEPTH_TO_SPACE": (n, h, w, c * b * b)}.get(op)
    if shape:
        x, dtype, quant = source(d, shape, ("float32", "int32", "int64", "int8", "uint8"))
        move(d, op, x, dtype, quant, (n, h, w, c * b * b) if op == "SPACE_TO_DEPTH" else (n, h * b, w * b, c), blockSize=b)
        return
    three, blocks = d.chance(0.3), [d.int(1, 3), d.int(1, 3)]
    blocks = blocks[:1] if three else blocks
    sizes, edges = [h, w][:len(blocks)], []
    for s, k in zip(sizes, blocks):
        first = d.int(0, 2)
        edges.append([first, -(s + first) % k] if op == "SPACE_TO_BATCH_ND" else [d.int(0, min(1, s * k - 1)), 0])
    if op == "SPACE_TO_BATCH_ND":
        shape, out = (n, *sizes, c), (n * int(np.prod(blocks)), *((s + sum(e)) // k for s, e, k in zip(sizes, edges, blocks)), c)
    else:
        shape, out = (n * int(np.prod(blocks)), *sizes, c), (n, *(s * k - sum(e) for s, e, k in zip(sizes, edges, blocks)), c)
    x, dtype, quant = source(d, shape, NUMBERS)
    move(d, op, x, dtype, quant, out, np.array(blocks, np.int32), np.array(edges, np.int32))


def choices(d):
    op = d.pick("SELECT", "SELECT_V2", "SELECT_V2", "WHERE")
    shape = d.shape(1, 4, 5)
    if op == "WHERE":
        x = d.values(shape, d.pick("bool", "float32", "int32", "int64", "int8", "uint8"))
        x = x * (d.random.random(shape) < 0.5)
        x.ravel()[-1] = 1
        d.op(op, [d.input(x.astype(x.dtype))], [d.output((0, len(shape)), "int64")])
        return
    dtype = d.pick(*EVERY)
    quant = d.quant(dtype)
    cut = lambda: tuple(1 if d.chance(0.3) else n for n in shape)[d.int(0, len(shape)) if d.chance(0.3) else 0:]
    shapes = [cut() for _ in range(3)] if op == "SELECT_V2" else [shape[:1] if d.chance(0.3) else shape, shape, shape]
    d.op(op, [d.input(d.values(shapes[0], "bool")), *(d.either(d.values(s, dtype), 0.3, **quant) for s in shapes[1:])], [d.output(np.broadcast_shapes(*shapes) if op == "SELECT_V2" else shape, dtype, **quant)])


def makes(d):
    op = d.pick("ONE_HOT", "RANGE", "FILL", "SHAPE", "RANK", "MATRIX_DIAG", "MATRIX_SET_DIAG", "SPARSE_TO_DENSE", "UNIQUE", "SEGMENT_SUM", "EMBEDDING_LOOKUP", "DYNAMIC_UPDATE_SLICE")
    shape = d.shape(1, 4, 5)
    # LiteRT leaves what is beside a diagonal of bool as it was.
    kinds = {"MATRIX_DIAG": NUMBERS, "MATRIX_SET_DIAG": NUMBERS, "SPARSE_TO_DENSE": ("float32", "int32", "int64", "int8", "uint8"), "ONE_HOT": ("float32", "int32", "int64", "int8", "uint8", "bool"),
             "UNIQUE": ("float32", "int32", "int64", "int8", "uint8", "int16")}
    x, dtype, quant = source(d, shape, kinds.get(op, EVERY))
    if op == "ONE_HOT":
        depth, axis = d.int(1, 6), d.int(-1, len(shape))
        at = d.random.integers(-1, 7, shape).astype(d.pick(np.int32, np.int64))
        out = list(shape)
        out.insert(len(shape) if axis == -1 else axis, depth)
        on, off = d.values((), dtype), d.values((), dtype)
        d.op(op, [d.input(at), d.either(np.int32(depth), 0.8), d.either(on, 0.6, **quant), d.either(off, 0.6, **quant)], [d.output(out, dtype, **quant)], axis=axis)
    elif op == "RANGE":
        dtype = d.pick("float32", "int32", "int64")
        start, step = d.int(-5, 5), d.pick(1, 2, 3, -1, -2)
        limits = [np.array(v, dtype) for v in (start, start + step * d.int(0, 7) + d.int(0, 1), step)]
        d.op(op, [d.either(v, 0.4) for v in limits], [d.output((0,), dtype)])
    elif op == "FILL":
        d.op(op, [d.either(np.array(shape, d.pick(np.int32, np.int64)), 0.5), d.either(d.values((), dtype), 0.5, **quant)], [d.output(shape, dtype, **quant)])
    elif op == "SHAPE":
        wide = d.chance(0.5)
        d.op(op, [d.input(x, **quant)], [d.output((len(shape),), "int64" if wide else "int32")], outType=4 if wide else 2)
    elif op == "RANK":
        d.op(op, [d.input(x, **quant)], [d.output((), "int32")])
    elif op == "MATRIX_DIAG":
        move(d, op, x, dtype, quant, (*shape, shape[-1]))
    elif op == "MATRIX_SET_DIAG":
        shape = (*shape, d.int(1, 5))
        d.op(op, [d.input(d.values(shape, dtype), **quant), d.input(d.values((*shape[:-2], min(shape[-2:])), dtype), **quant)], [d.output(shape, dtype, **quant)])
    elif op == "SPARSE_TO_DENSE":
        rows = d.int(1, 4)
        at = np.array(sorted({tuple(d.int(0, n - 1) for n in shape) for _ in range(rows)}), d.pick(np.int32, np.int64))
        d.op(op, [d.either(at, 0.5), d.either(np.array(shape, at.dtype), 0.8), d.input(d.values((len(at),), dtype), **quant), d.either(d.values((), dtype), 0.6, **quant)], [d.output(shape, dtype, **quant)])
    elif op == "UNIQUE":
        x = d.values((d.int(1, 9),), dtype)
        d.op(op, [d.input((x % 3).astype(dtype), **quant)], [d.output((0,), dtype, **quant), d.output(x.shape, "int32")], idxOutType=2)
    elif op == "SEGMENT_SUM":
        dtype = d.pick("float32", "int32")
        at = np.sort(d.random.integers(0, 4, shape[0])).astype(np.int32)
        d.op(op, [d.input(d.values(shape, dtype)), d.either(at, 0.5)], [d.output((int(at[-1]) + 1, *shape[1:]), dtype)])
    elif op == "EMBEDDING_LOOKUP":
        shape = shape if len(shape) > 1 else (3, *shape)
        table = d.values(shape, dtype)
        at = d.random.integers(0, shape[0], d.int(1, 5)).astype(np.int32)
        hybrid = dtype in ("int8", "uint8") and d.chance(0.7)
        scale = {"scale": d.scale(), "zero": 0} if hybrid else quant
        d.op(op, [d.input(at), d.const(table, **scale)], [d.output((*at.shape, *shape[1:]), "float32" if hybrid else dtype, **({} if hybrid else quant))])
    else:
        part = tuple(d.int(1, n) for n in shape)
        at = np.array([d.int(-1, n + 1) for n in shape], d.pick(np.int32, np.int64))
        d.op(op, [d.input(x, **quant), d.input(d.values(part, dtype), **quant), d.either(at, 0.5)], [d.output(shape, dtype, **quant)])


MOVEMENT = {f.__name__: f for f in (pad, slices, gathers, joins, turns, spaces, choices, makes)}
