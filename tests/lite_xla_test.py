#!/usr/bin/env python3
"""XLA's convolutions in .tflite files: lite_xla_test.py SMELT. Ends with 'N passed, N failed'.

Models are frozen graphs in text form; what files answer is compared with the sums that XLA defines, written out here."""
import itertools
import math
import struct

from lite_program import frozen, ops, placeholder, refused
from program import call, check, finish, node, work


def const(name, dtype, field, values, shape):
    dims = " ".join(f"dim {{ size: {n} }}" for n in shape)
    return node(name, "Const", dtype=f"type: {dtype}", value=f"tensor {{ dtype: {dtype} tensor_shape {{ {dims} }} " + " ".join(f"{field}: {v}" for v in values) + " }")


def numbers(spatial, lhs, rhs, out):
    """The message of dimension numbers; `lhs`: batch, feature, then spatial ones, `rhs`: output, input, then spatial ones, and so on."""
    packed = lambda field, dims: bytes([field << 3 | 2, len(dims), *dims])
    data = (bytes([3 << 3, rhs[1], 4 << 3, rhs[0]]) + packed(6, rhs[2:]) + bytes([7 << 3, lhs[0], 8 << 3, lhs[1], 9 << 3, out[0], 10 << 3, out[1]]) +
            packed(11, lhs[2:]) + packed(12, out[2:]))
    return "".join(f"\\{b:03o}" for b in data)


def strides_of(shape):
    return [math.prod(shape[i + 1:]) for i in range(len(shape))]


def convolution(x, xs, w, ws, lhs, rhs, out, strides, pads, dilations, rates, groups):
    """(shape, numbers) by XLA's definition."""
    spatial = range(len(strides))
    at, filter_at = strides_of(xs), strides_of(ws)
    made, taken = ws[rhs[0]], ws[rhs[1]]
    sizes = []
    for i in spatial:
        wide = (xs[lhs[2 + i]] - 1) * dilations[i] + 1 + sum(pads[i])
        sizes.append((wide - (ws[rhs[2 + i]] - 1) * rates[i] - 1) // strides[i] + 1)
    shape = [0] * (2 + len(sizes))
    for d, n in zip(out, (xs[lhs[0]], made, *sizes)):
        shape[d] = n
    y, to = [0.0] * math.prod(shape), strides_of(shape)
    for n, o, *place in itertools.product(range(xs[lhs[0]]), range(made), *map(range, sizes)):
        total = 0.0
        for i, *k in itertools.product(range(taken), *(range(ws[rhs[2 + s]]) for s in spatial)):
            index = n * at[lhs[0]] + (o // (made // groups) * taken + i) * at[lhs[1]]
            for s in spatial:
                p = place[s] * strides[s] + k[s] * rates[s] - pads[s][0]
                if p % dilations[s] or not 0 <= p // dilations[s] < xs[lhs[2 + s]]:
                    break
                index += p // dilations[s] * at[lhs[2 + s]]
            else:
                total += x[index] * w[o * filter_at[rhs[0]] + i * filter_at[rhs[1]] + sum(k[s] * filter_at[rhs[2 + s]] for s in spatial)]
        y[n * to[out[0]] + o * to[out[1]] + sum(place[s] * to[out[2 + s]] for s in spatial)] = total
    return shape, y


def graph(xs, ws, w, dims, strides, pads, dilations, rates, groups, more=""):
    n = len(strides)
    ints = lambda name, values, shape: const(name, "DT_INT32", "int_val", values, shape)
    return (placeholder("x", *xs) + const("w", "DT_FLOAT", "float_val", w, ws) + ints("s", strides, [n]) + ints("p", [v for p in pads for v in p], [n, 2]) +
            ints("d", dilations, [n]) + ints("r", rates, [n]) + ints("g", [groups], []) +
            node("y", "XlaConvV2", "x", "w", "s", "p", "d", "r", "g", LhsT="type: DT_FLOAT", RhsT="type: DT_FLOAT", Tindices="type: DT_INT32", preferred_element_type="type: DT_FLOAT",
                 dimension_numbers=f's: "{dims}"', precision_config='s: ""', **{"batch_group_count": "i: 1"} | ({"batch_group_count": more} if more else {})))


def nested(values, shape):
    if not shape:
        return repr(values[0])
    step = len(values) // shape[0]
    return "[" + ",".join(nested(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])) + "]"


def case(name, wanted, xs, ws, lhs, rhs, out, strides, pads, dilations=None, rates=None, groups=1):
    dilations, rates = dilations or [1] * len(strides), rates or [1] * len(strides)
    x = [((i * 7) % 11 - 5) / 4 for i in range(math.prod(xs))]
    w = [((i * 5) % 9 - 4) / 8 for i in range(math.prod(ws))]
    shape, want = convolution(x, xs, w, ws, lhs, rhs, out, strides, pads, dilations, rates, groups)
    code, _, err, path = frozen(graph(xs, ws, w, numbers(len(strides), lhs, rhs, out), strides, pads, dilations, rates, groups))
    check(f"{name}: operators", code == 0 and ops(path) == wanted, f"{err} {ops(path) if code == 0 else ''}")
    if code != 0:
        return
    folder = work / name.replace(" ", "_")
    code, text, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", f"x={nested(x, xs)}", "--outdir", folder)
    data = (folder / "y.npy").read_bytes() if code == 0 else b""
    header = data[10:10 + int.from_bytes(data[8:10], "little")].decode() if data else ""
    got = struct.unpack(f"<{len(want)}f", data[len(data) - 4 * len(want):]) if len(data) >= 4 * len(want) else ()
    check(f"{name}: shape", f"({', '.join(map(str, shape))})" in header, header + err)
    check(f"{name}: answer", got and max(abs(a - b) for a, b in zip(got, want)) < 1e-4, (got[:8], want[:8]))


NHWC, HWIO = [0, 3, 1, 2], [3, 2, 0, 1]
case("images", ["PAD", "CONV_2D"], [1, 5, 6, 2], [3, 2, 2, 3], NHWC, HWIO, NHWC, [2, 1], [[1, 0], [2, 1]])
case("images that pad as SAME", ["CONV_2D"], [1, 5, 6, 2], [3, 3, 2, 3], NHWC, HWIO, NHWC, [1, 1], [[1, 1], [1, 1]])
case("channels first", ["TRANSPOSE", "CONV_2D", "TRANSPOSE"], [1, 2, 5, 6], [3, 2, 3, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [1, 2], [[0, 0], [0, 0]])
case("a dilated filter", ["CONV_2D"], [1, 7, 7, 1], [3, 2, 1, 2], NHWC, HWIO, NHWC, [1, 1], [[0, 0], [0, 0]], rates=[2, 3])
case("samples", ["EXPAND_DIMS", "CONV_2D", "SQUEEZE"], [2, 9, 3], [3, 3, 4], [0, 2, 1], [2, 1, 0], [0, 2, 1], [2], [[0, 0]])
case("channels by themselves", ["DEPTHWISE_CONV_2D"], [1, 5, 5, 3], [2, 2, 1, 6], NHWC, HWIO, NHWC, [1, 1], [[0, 0], [0, 0]], groups=3)
case("groups of channels", ["CONV_2D"], [1, 5, 5, 4], [2, 2, 2, 6], NHWC, HWIO, NHWC, [1, 1], [[0, 0], [0, 0]], groups=2)
case("volumes", ["CONV_3D"], [1, 3, 4, 3, 2], [2, 2, 2, 2, 3], [0, 4, 1, 2, 3], [4, 3, 0, 1, 2], [0, 4, 1, 2, 3], [1, 1, 1], [[0, 0]] * 3)
case("a dilated input as SAME", ["TRANSPOSE_CONV"], [1, 3, 4, 2], [3, 3, 2, 3], NHWC, HWIO, NHWC, [1, 1], [[2, 1], [2, 1]], dilations=[2, 2])
case("a dilated input, all of it", ["TRANSPOSE_CONV"], [1, 3, 4, 2], [3, 2, 2, 3], NHWC, HWIO, NHWC, [1, 1], [[2, 2], [1, 1]], dilations=[2, 3])
case("a dilated input that is cut", ["TRANSPOSE_CONV", "SLICE"], [1, 3, 4, 2], [4, 4, 2, 3], NHWC, HWIO, NHWC, [1, 1], [[1, 3], [2, 1]], dilations=[2, 2])
case("a dilated input with zeros behind", ["TRANSPOSE_CONV", "PAD"], [1, 3, 4, 2], [1, 1, 2, 3], NHWC, HWIO, NHWC, [1, 1], [[0, 1], [0, 1]], dilations=[2, 2])
case("dilated samples", ["EXPAND_DIMS", "TRANSPOSE_CONV", "SQUEEZE"], [1, 5, 2], [3, 2, 3], [0, 2, 1], [2, 1, 0], [0, 2, 1], [1], [[2, 2]], dilations=[2])
IMAGES = numbers(2, NHWC, HWIO, NHWC)
refused("groups of the batch", frozen(graph([2, 5, 5, 1], [2, 2, 1, 2], [1.0] * 8, IMAGES, [1, 1], [[0, 0], [0, 0]], [1, 1], [1, 1], 1, more="i: 2")), "UNIMPLEMENTED", "it has groups of its batch")
refused("padding that takes away", frozen(graph([1, 5, 5, 1], [2, 2, 1, 2], [1.0] * 8, IMAGES, [1, 1], [[-1, 0], [0, 0]], [1, 1], [1, 1], 1)), "UNIMPLEMENTED", "its padding is negative")
finish()
