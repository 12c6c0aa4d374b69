"""Drawers of .tflite operators, a row of DRAWERS per family: each draws one operator of it, its types, scales, shapes and options."""
import numpy as np

from lite_draw import LIMITS, QUANTIZED, SAME, VALID

FLOATS = ("float32",)
NUMBERS = ("float32", "int32", "int64", "int8", "uint8", "int16")
COMMON = ("float32", "int8", "uint8", "int16")
EVERY = (*NUMBERS, "bool")
FIXED = {"LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}, "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
         "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)}}
FIXED["SOFTMAX"], FIXED["L2_NORMALIZATION"] = FIXED["LOGISTIC"], {k: FIXED["TANH"][k] for k in ("int8", "uint8")}
UNARY = {"ABS": ("float32", "int32", "int8", "int16"), "NEG": ("float32", "int32", "int64"), "SQUARE": FLOATS, "SIGN": ("float32", "int32"), "CEIL": FLOATS, "FLOOR": FLOATS, "ROUND": FLOATS, "COS": FLOATS,
         "SIN": FLOATS, "EXP": ("float32", "int8", "int16"), "LOG": ("float32", "int8", "int16"), "ELU": ("float32", "int8"), "GELU": ("float32", "int8", "uint8"), "HARD_SWISH": ("float32", "int8", "uint8"),
         "LEAKY_RELU": COMMON, "LOGISTIC": COMMON, "TANH": COMMON, "RELU": COMMON, "RELU6": COMMON, "RELU_N1_TO_1": ("float32", "int8", "uint8"), "RELU_0_TO_1": ("float32", "int8", "uint8"),
         "SQRT": ("float32", "int8"), "RSQRT": ("float32", "int8", "int16"), "ZEROS_LIKE": ("float32", "int32", "int64")}


# Functions that numbers without end and halves do not bring out of the range.
ROUNDS = ("ABS", "NEG", "SIGN", "CEIL", "FLOOR", "ROUND", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU")


def fixed(d, op, dtype):
    """The scale that a kernel insists on, where it does."""
    scale, zero = FIXED.get(op, {}).get(dtype, (None, None))
    return d.quant(dtype) if scale is None or d.chance(0.05) else {"scale": scale, "zero": zero}


def unary(d):
    """All numbers of 8 and 16 bits."""
    op = d.pick(*UNARY)
    dtype = d.pick(*UNARY[op])
    quant = d.quant(dtype)
    if dtype == "int16" and op in ("LOGISTIC", "TANH"):
        quant["scale"] *= 1.01  # docs/lite.md: powers of two are those of the reference kernel
    low = quant["zero"] + (op == "LOG" or op == "RSQRT") if quant and op in ("LOG", "SQRT", "RSQRT") else LIMITS.get(dtype, [0])[0]
    x = np.arange(low, LIMITS[dtype][1] + 1).astype(dtype) if dtype in QUANTIZED else d.values(d.shape(), dtype, *((0.01, 9) if op in ("LOG", "SQRT", "RSQRT") else (-9, 9)), odd=0.4 if op in ROUNDS else 0)
    if dtype == "float32":
        x.ravel()[0] = 9  # the tolerance is relative to the most
    fields = {"alpha": d.pick(0.3, -0.7, 0.01, 1.5)} if op == "LEAKY_RELU" else {"approximate": d.chance(0.5)} if op == "GELU" else {}
    out = quant if dtype in QUANTIZED and d.chance(0.2) and op not in FIXED else fixed(d, op, dtype)
    d.op(op, [d.input(x, **quant)], [d.output(x.shape, dtype, **out)], **fields)


COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
PAIRS = {**{k: NUMBERS for k in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")}, "SQUARED_DIFFERENCE": ("float32", "int32", "int8"), "DIV": ("float32", "int32", "int8", "uint8", "int16"),
         **{k: (*NUMBERS, "bool") if "EQUAL" in k[-9:] and len(k) < 10 else NUMBERS for k in COMPARISONS}, "FLOOR_DIV": ("float32", "int32", "int8", "int16"), "FLOOR_MOD": ("float32", "int32", "int64", "int8", "int16"),
         "POW": ("float32", "int32"), "ATAN2": FLOATS, "LOGICAL_AND": ("bool",), "LOGICAL_OR": ("bool",), "PRELU": ("float32", "int8", "uint8"),
         "BITWISE_XOR": ("int8", "uint8", "int16", "int32"), "RIGHT_SHIFT": ("int8", "uint8", "int16", "int32")}
PLAIN = ("FLOOR_DIV", "FLOOR_MOD", "BITWISE_XOR", "RIGHT_SHIFT")


def pair_shapes(d):
    """Two shapes that broadcast to a third."""
    whole = d.shape(1, d.pick(2, 3, 4, 4, 5, 6), d.pick(3, 5, 9))
    if d.chance(0.35):
        return whole, whole, whole
    cut = lambda s, most: tuple(1 if d.chance(0.3) else n for n in s)[d.int(0, most):]
    a, b = cut(whole, 0) if d.chance(0.5) else whole, cut(whole, len(whole) if d.chance(0.5) else 0)
    a, b = (b, a) if d.chance(0.3) else (a, b)
    return a, b, tuple(np.broadcast_shapes(a, b))


def quotients(d, x, y, quants):
    """Numbers and a scale for the output of which something is left: docs/lite.md tells of others."""
    if quants[0]:
        quants[2]["scale"] = float(np.float32(quants[0]["scale"] / quants[1]["scale"] * d.random.uniform(0.01, 1.0)))
        low, high = LIMITS[x.dtype.name]
        move = lambda v, zero, far: np.where(far & (v == zero), v + 1 if zero < high else v - 1, v)
        x, y = (move(v.astype(np.int32), q["zero"], True) for v, q in zip((x, y), quants))
        far = np.abs(y - quants[1]["zero"])
        most = max(low - quants[0]["zero"], high - quants[0]["zero"], key=abs)
        least = np.ceil(far.max() * 0.6 * quants[2]["scale"] * quants[1]["scale"] / quants[0]["scale"])
        x = np.where(np.abs(x - quants[0]["zero"]) < least, quants[0]["zero"] + most, x)
        return np.clip(x, low, high), y
    return x, np.where(y == 0, 1, y)


def pair(d):
    op = d.pick(*PAIRS)
    dtype = d.pick(*PAIRS[op])
    a, b, shape = pair_shapes(d)
    if op == "ATAN2":
        b = a = shape  # LiteRT answers wrongly on others
    plain = op in PLAIN or dtype not in QUANTIZED
    quants = [{} if plain else d.quant(dtype) for _ in range(3)]
    if not plain and (op in ("MAXIMUM", "MINIMUM") or d.chance(0.15)):
        quants = [quants[0]] * 3
    x, y = d.values(a, dtype, odd=0.2), d.values(b, dtype, odd=0.2)
    if op == "POW":
        x, y = (np.abs(x), y) if dtype == "float32" else (x, np.abs(y) % 6)
    if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD") and dtype != "float32":
        x, y = (v.astype(dtype) for v in quotients(d, x, y, quants))
    if op == "RIGHT_SHIFT":
        y = (np.abs(y.astype(np.int32)) % 7).astype(dtype)
    if op in ("ADD", "SUB", "MUL", "DIV"):
        fields = {"fusedActivationFunction": d.pick(0, 0, 1, 2, 3)} | ({"potScaleInt16": False} if op in ("ADD", "SUB") else {})
    else:
        fields = {}
    if op == "PRELU":
        y = d.values(tuple(1 if d.chance(0.3) else n for n in a[1:]), dtype, 0, 1)
        shape = a
    out = d.output(shape, "bool") if op in COMPARISONS else d.output(shape, dtype, **quants[2])
    d.op(op, [d.either(x, 0.15, **quants[0]), d.either(y, 0.4, **quants[1])], [out], **fields)


def int8_pair(d):
    """Every pair of int8, of scales that are near each other or far."""
    op = d.pick("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "DIV", "PRELU", *COMPARISONS)
    quants = [d.quant("int8") for _ in range(3)]
    if d.chance(0.3):
        quants[1]["scale"] = quants[0]["scale"]
    x, y = np.repeat(np.arange(-128, 128), 256).astype(np.int8), np.tile(np.arange(-128, 128), 256).astype(np.int8)
    if op == "DIV":
        x, y = (v.astype(np.int8) for v in quotients(d, x, y, quants))
    fields = {"fusedActivationFunction": d.pick(0, 0, 1, 2, 3)} if op in ("ADD", "SUB", "MUL") else {}
    out = d.output(x.shape, "bool") if op in COMPARISONS else d.output(x.shape, "int8", **quants[2])
    d.op(op, [d.input(x, **quants[0]), d.input(y, **quants[1])], [out], **fields)


VERSIONS = {"CONV_2D": (3, 4, 5), "DEPTHWISE_CONV_2D": (3, 5, 6), "TRANSPOSE_CONV": (3, 3, 3), "FULLY_CONNECTED": (4, 7, 12)}


def layer(d):
    op = d.pick(*VERSIONS)
    kind = d.pick("float32", "int8", "int8", "uint8", "int16", "hybrid")
    deep = d.pick(3, 9, 40, 70)
    n, h, w, ci, co, kh, kw = d.int(1, 3), d.int(1, 14), d.int(1, 14), d.int(1, deep), d.int(1, deep), d.int(1, 4), d.int(1, 4)
    sh, sw = d.pick((1, 1), (d.int(1, 3), d.int(1, 3)))
    dilation = (d.int(1, 3), d.int(1, 3)) if op in ("CONV_2D", "DEPTHWISE_CONV_2D") and sh == sw == 1 and d.chance(0.3) else (1, 1)
    padding, fields, dim = d.pick(SAME, VALID), {"fusedActivationFunction": d.pick(0, 0, 1, 2, 3)}, 0
    oh, ow = d.window(h, kh, sh, dilation[0], padding), d.window(w, kw, sw, dilation[1], padding)
    if op in ("CONV_2D", "DEPTHWISE_CONV_2D") and not oh * ow:
        padding = SAME
        oh, ow = -(-h // sh), -(-w // sw)
    if op == "FULLY_CONNECTED":
        rows = d.shape(1, 3, 9)
        fields["keepNumDims"] = keep = d.chance(0.5)
        x_shape, w_shape, shape = (*rows, ci * 3), (co, ci * 3), (*rows, co) if keep else (int(np.prod(rows)), co)
        if kind == "hybrid":
            fields["asymmetricQuantizeInputs"] = d.chance(0.7)
    else:
        fields |= {"padding": padding, "strideH": sh, "strideW": sw}
        if op == "TRANSPOSE_CONV":
            oh, ow = (h * sh - d.int(0, sh - 1), w * sw - d.int(0, sw - 1)) if padding == SAME else ((h - 1) * sh + kh, (w - 1) * sw + kw)
        else:
            fields |= {"dilationHFactor": dilation[0], "dilationWFactor": dilation[1]}
        groups = 1
        if op == "CONV_2D" and d.chance(0.15):
            groups = d.int(2, 4)
            ci, co = -(-ci // groups) * groups, -(-co // groups) * groups
        if op == "DEPTHWISE_CONV_2D":
            fields["depthMultiplier"] = d.pick(1, 1, 1, 2, 3)
            co, dim = ci * fields["depthMultiplier"], 3
        x_shape, w_shape, shape = (n, h, w, ci), (1, kh, kw, co) if dim else (co, kh, kw, ci // groups), (n, oh, ow, co)
    depth = int(np.prod(w_shape)) / co
    channels = kind in ("int8", "int16") and d.chance(0.6) or kind == "hybrid" and (d.chance(0.6) or op == "DEPTHWISE_CONV_2D")
    io = "float32" if kind in ("float32", "hybrid") else kind
    quant = d.quant(io)
    if kind == "float32":
        weights = {}
        values = d.values(w_shape, "float32", -1, 1)
    else:
        scales = np.float32(d.random.uniform(0.002, 0.02, co) if channels else d.random.uniform(0.002, 0.02, 1))
        weights = {"scale": scales.tolist() if channels else float(scales[0]), "zero": d.int(1, 255) if kind == "uint8" else 0, "dim": dim if channels else 0}
        values = d.random.integers(-127, 128, w_shape).astype(np.int8) if kind != "uint8" else d.values(w_shape, "uint8")
    x = d.input(d.values(x_shape, io, *d.pick((-3, 3), (-3, 3), (1, 4), (-4, -1))), **quant)
    four = kind in ("int8", "hybrid") and op in ("FULLY_CONNECTED", "CONV_2D") and d.chance(0.15)
    if four:
        values = d.random.integers(-7, 8, w_shape).astype(np.int8)
    elif kind == "hybrid" and op == "FULLY_CONNECTED" and not channels and d.chance(0.1):
        values = values.view(np.uint8)  # as old files say of int8
    constant = d.const_4 if four else d.const if kind not in ("int8", "float32") or d.chance(0.9) or channels else d.input
    w = constant(values, **weights)
    inputs = [d.const(np.array(shape, np.int32)), w, x] if op == "TRANSPOSE_CONV" else [x, w]
    if d.chance(0.75) or op == "DEPTHWISE_CONV_2D" or op == "CONV_2D" and kind == "int16":  # LiteRT refuses, and ends
        if kind in ("float32", "hybrid"):
            inputs.append(d.const(d.values((co,), "float32")))
        else:
            wide = np.int64 if kind == "int16" else np.int32
            if kind == "int16" and op in ("CONV_2D", "FULLY_CONNECTED") and d.chance(0.3):
                wide = np.int32
                fields["quantizedBiasType"] = 2
            size = int(np.exp(d.random.uniform(0, np.log(30000 if kind != "int16" else 1e6))))
            inputs.append(d.const(d.random.integers(-size, size + 1, co).astype(wide), scale=np.float32(scales * np.float32(quant["scale"])).tolist() if channels else float(np.float32(scales[0] * np.float32(quant["scale"]))), zero=0, dim=0))
    elif op in ("FULLY_CONNECTED",) and d.chance(0.5):
        inputs.append(-1)
    out = {}
    if quant:
        out = d.quant(io) | {"scale": float(np.float32(quant["scale"] * 0.0125 * depth ** 0.5 * (80 if io == "int16" else 40 * 2) * d.random.uniform(0.3, 2)))}
    if kind == "hybrid":
        d.tolerance = 2e-6
    elif fields["fusedActivationFunction"] in (2, 3):
        d.tolerance = 1e-4  # of a range that sums go far beyond
    d.op(op, inputs, [d.output(shape, io, **out)], version=VERSIONS[op][{"int16": 1, "hybrid": 2}.get(kind, 0)], **fields)


def pool(d):
    op, dtype = d.pick("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), d.pick(*COMMON)
    dtype = "float32" if op == "L2_POOL_2D" else dtype
    n, h, w, c = d.int(1, 3), d.int(1, 12), d.int(1, 12), d.int(1, d.pick(4, 40))
    kh, kw, sh, sw, padding = d.int(1, 4), d.int(1, 4), d.int(1, 3), d.int(1, 3), d.pick(SAME, VALID)
    if d.chance(0.2):
        kh, kw, padding = h, w, VALID
    if not d.window(h, kh, sh, 1, padding) * d.window(w, kw, sw, 1, padding):
        padding = SAME
    quant = d.quant(dtype)
    out = (n, d.window(h, kh, sh, 1, padding), d.window(w, kw, sw, 1, padding), c)
    d.op(op, [d.input(d.values((n, h, w, c), dtype), **quant)], [d.output(out, dtype, **quant)], padding=padding, strideH=sh, strideW=sw, filterHeight=kh, filterWidth=kw,
         fusedActivationFunction=d.pick(0, 0, 1, 2, 3))


REDUCTIONS = {"SUM": COMMON + ("int32", "int64"), "MEAN": COMMON + ("int32", "int64"), "REDUCE_PROD": ("float32", "int32", "int64", "int8", "int16"), "REDUCE_MAX": NUMBERS, "REDUCE_MIN": NUMBERS,
              "REDUCE_ANY": ("bool",), "REDUCE_ALL": ("bool",)}


def reduction(d):
    op = d.pick(*REDUCTIONS)
    dtype = d.pick(*REDUCTIONS[op])
    shape = d.shape(1, d.pick(3, 4, 5), d.pick(3, 6, 12))
    axes = sorted(d.random.choice(len(shape), d.int(1, len(shape)), replace=False).tolist())
    keep = d.chance(0.5)
    left = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
    quant = d.quant(dtype)
    out = quant if op in ("REDUCE_MAX", "REDUCE_MIN") or d.chance(0.2) else d.quant(dtype)
    if op == "SUM" and out and out is not quant:
        out["scale"] *= len(axes) * 3
    axes = [a - len(shape) if d.chance(0.3) else a for a in axes]
    x = d.values(shape, dtype, odd=0.3 if op in ("REDUCE_MAX", "REDUCE_MIN") else 0)
    axes = np.int32(axes[0]) if len(axes) == 1 and d.chance(0.2) else np.array(axes, np.int32)
    d.op(op, [d.input(np.abs(x) % 3 if op == "REDUCE_PROD" and dtype in ("int32", "int64") else x, **quant), d.either(axes, 0.9)], [d.output(left, dtype, **out)], keepDims=keep)


def row(d):
    """What is computed over the last dimension."""
    op = d.pick("SOFTMAX", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION", "CUMSUM")
    dtype = d.pick(*{"SOFTMAX": COMMON, "LOG_SOFTMAX": ("float32", "int8", "uint8"), "L2_NORMALIZATION": ("float32", "int8", "uint8"), "LOCAL_RESPONSE_NORMALIZATION": FLOATS, "CUMSUM": ("float32", "int32", "int64")}[op])
    shape = (*d.shape(0 if op != "L2_NORMALIZATION" else 1, 3, 6), d.int(1, d.pick(4, 40, 200)))
    if op == "LOCAL_RESPONSE_NORMALIZATION":
        shape = (1, *shape[-1:], 2, 9)
    quant = d.quant(dtype)
    fields = {"beta": d.pick(1.0, 1.0, 0.3, 2.5)} if op == "SOFTMAX" else {}
    if op == "LOCAL_RESPONSE_NORMALIZATION":
        fields = {"radius": d.int(0, 6), "bias": d.pick(1.0, 0.5), "alpha": d.pick(1.0, 0.1), "beta": d.pick(0.5, 0.75, 1.0)}
    inputs = [d.input(d.values(shape, dtype), **quant)]
    if op == "CUMSUM":
        inputs.append(d.either(np.int32(d.int(-len(shape), len(shape) - 1)), 0.8))
        fields = {"exclusive": d.chance(0.5), "reverse": d.chance(0.5)}
    d.op(op, inputs, [d.output(shape, dtype, **fixed(d, op, dtype))], version=1, **fields)


def resize(d):
    op = d.pick("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    dtype = d.pick(*COMMON)
    n, h, w, c = d.int(1, 3), d.int(1, 9), d.int(1, 9), d.int(1, d.pick(3, 20))
    size = d.pick((2 * h, 2 * w), (d.int(1, 20), d.int(1, 20)), (d.int(1, 20), d.int(1, 20)))
    align, half = d.pick((False, False), (True, False), (False, True))
    quant = d.quant(dtype)
    d.op(op, [d.input(d.values((n, h, w, c), dtype), **quant), d.either(np.array(size, np.int32), 0.8)], [d.output((n, *size, c), dtype, **quant)], version=3, alignCorners=align, halfPixelCenters=half)


def matrices(d):
    dtype = d.pick("float32", "int8", "int16", "hybrid")
    lead = d.shape(0, d.pick(1, 2, 3), 4)
    a, b = [tuple(1 if d.chance(0.2) else n for n in lead) for _ in range(2)]
    if d.chance(0.3):
        b = b[d.int(0, len(b)):]
    if not a:
        b = ()
    rows, depth, columns = d.int(1, 20), d.int(1, d.pick(5, 70)), d.int(1, 20)
    adj_x, adj_y = d.chance(0.3), d.chance(0.3)
    x_shape, y_shape = (*a, depth, rows) if adj_x else (*a, rows, depth), (*b, columns, depth) if adj_y else (*b, depth, columns)
    shape = (*np.broadcast_shapes(a, b), rows, columns)
    io, other = ("float32", "int8") if dtype == "hybrid" else (dtype, dtype)
    quants = [d.quant(io), d.quant(other), d.quant(io)]
    if io in QUANTIZED:
        quants[2]["scale"] = float(np.float32(quants[0]["scale"] * quants[1]["scale"] * (90 if io == "int8" else 20000) * depth ** 0.5 * d.random.uniform(0.5, 2)))
    if dtype == "hybrid" or d.chance(0.5):
        quants[1] |= {"zero": 0} if quants[1] else {}
    if dtype == "hybrid":
        d.tolerance = 2e-6
    y = d.random.integers(-127, 128, y_shape).astype(np.int8) if dtype == "hybrid" else d.values(y_shape, other)
    d.op("BATCH_MATMUL", [d.input(d.values(x_shape, io), **quants[0]), d.either(y, 1 if dtype == "hybrid" else 0.4, **quants[1])], [d.output(shape, io, **quants[2])], version=1, adjX=adj_x, adjY=adj_y,
         asymmetricQuantizeInputs=d.chance(0.5))


def requantize(d):
    """Between every two types that have scales, and floats."""
    a, b = d.pick(*(("float32", "int8"), ("float32", "uint8"), ("float32", "int16"), ("int8", "uint8"), ("int8", "int16"), ("int16", "int8"), ("int16", "int16"), ("uint8", "int8"), ("int8", "int8"),
                    ("uint8", "uint8"), ("int8", "float32"), ("uint8", "float32"), ("int16", "float32"), ("float32", "float32")))
    if a == "float32" and b == "float32":
        a = "float16"
    x = np.arange(LIMITS[a][0], LIMITS[a][1] + 1).astype(a) if a in QUANTIZED else d.values(d.shape(1, 4, 12), a, -20, 20)
    first, second = d.quant(a), d.quant(b)
    if b == "float32":
        d.op("DEQUANTIZE", [d.input(x, **first)], [d.output(x.shape, b)])
    else:
        if a == "float32" and d.chance(0.5):
            x = (np.round(x / second["scale"]) + 0.5).astype(np.float32) * np.float32(second["scale"])
        if a != "float32" and d.chance(0.2):
            second["scale"] = first["scale"]
        d.op("QUANTIZE", [d.input(x, **first)], [d.output(x.shape, b, **second)])


def cast(d):
    kinds = ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool", "complex64")
    a, b = d.pick(*kinds), d.pick(*kinds)
    x = d.values(d.shape(), "float32" if a in ("float16", "float64", "complex64") else a, -300, 300).astype(a)
    d.op("CAST", [d.input(x)], [d.output(x.shape, b)])


def places(d):
    op = d.pick("ARG_MAX", "ARG_MIN", "TOPK_V2")
    dtype, shape = d.pick(*(NUMBERS if op == "TOPK_V2" else ("float32", "int32", "int8", "uint8", "bool"))), d.shape(1, 4, 9)
    x = d.values(shape, dtype)
    if dtype != "bool" and d.chance(0.4):
        x = (x % 3).astype(dtype)  # ties
    quant = d.quant(dtype)
    if op == "TOPK_V2":
        k = d.int(1, shape[-1])
        d.op(op, [d.input(x, **quant), d.either(np.int32(k), 0.8)], [d.output((*shape[:-1], k), dtype, **quant), d.output((*shape[:-1], k), "int32")])
    else:
        axis, wide = d.int(-len(shape), len(shape) - 1), d.chance(0.5)
        left = tuple(np.delete(shape, axis).tolist())
        d.op(op, [d.input(x, **quant), d.either(np.int32(axis), 0.8)], [d.output(left, "int64" if wide else "int32")], outputType=4 if wide else 2)


DRAWERS = {f.__name__: f for f in (unary, pair, int8_pair, layer, pool, reduction, row, resize, matrices, requantize, cast, places)}
