"""Drawers of recurrent .tflite operators: floats, int8 weights and integers; what they keep is asked for again by calls behind the first."""
import numpy as np

# None is left to operators that compute in place: an LSTM of LiteRT without one reads what its buffers had.
ACTIVATIONS = (4, 4, 4, 1, 2, 3, 5)


class Weights:
    """Constants of one operator: floats, or int8 (in old files uint8) beside floats."""

    def __init__(self, d, hybrid):
        self.d, self.hybrid, self.old = d, hybrid, hybrid and d.chance(0.1)
        self.size = d.pick(0.3, 0.6, 1.2)

    def floats(self, *shape, middle=0.0):
        return self.d.const((middle + self.d.random.normal(size=shape) * self.size).astype(np.float32))

    def matrix(self, *shape):
        if not self.hybrid:
            return self.floats(*shape)
        values = self.d.random.integers(-127, 128, shape).astype(np.int8)
        scale = float(np.float32(self.size * self.d.random.uniform(0.7, 1.4) / 60))
        return self.d.const(values.view(np.uint8) if self.old else values, scale=scale, zero=0)


def weighted(d):
    """(weights, fields): of floats, or of int8 whose rows are quantized on the way."""
    hybrid = d.chance(0.5)
    return Weights(d, hybrid), {"asymmetricQuantizeInputs": d.chance(0.5)} if hybrid else {}


def rows(d, *shape):
    low, high = d.pick((-2, 2), (-2, 2), (0.5, 3))
    x = d.values(shape, "float32", low, high)
    if len(shape) > 1 and d.chance(0.1):
        x.reshape(-1, shape[-1])[0] = 0  # a row whose greatest is nothing
    return d.input(x)


def again(d, hybrid=False):
    """Calls behind the first, which find what it kept. `hybrid`: a last bit of that may move a number of a row by one of its steps."""
    d.repeat(d.pick(1, 2, 2, 3))
    if hybrid:
        d.tolerance = 1.5e-2


def sizes(d):
    """batch, steps, depth, cells"""
    return d.int(1, 4), d.int(1, 6), d.int(1, d.pick(5, 20, 70)), d.int(1, d.pick(5, 20, 40))


def gates(d, w, parts, depth, cells, outputs):
    """17 inputs of one direction: weights, recurrent weights, peepholes, biases, projection."""
    left = lambda g: parts["coupled"] and g == 0
    out = [-1 if left(g) else w.matrix(cells, depth) for g in range(4)]
    out += [-1 if left(g) else w.floats(cells) if parts["diagonal"] else w.matrix(cells, outputs) for g in range(4)]
    out += [w.matrix(cells) if parts["peephole"] and not left(g) else -1 for g in range(3)]
    out += [-1 if left(g) else w.floats(cells) for g in range(4)]
    return out + ([w.matrix(outputs, cells), w.floats(outputs) if d.chance(0.6) else -1] if parts["projected"] else [-1, -1])


def clips(d):
    return {"cellClip": d.pick(0.0, 0.0, 0.4, 10.0), "projClip": d.pick(0.0, 0.0, 0.3)}


def lstm(d):
    """Of one direction: a step, or a sequence."""
    step = d.chance(0.3)
    w, fields = weighted(d)
    parts = {k: d.chance(0.3) for k in ("coupled", "peephole", "projected", "norm")}
    parts["diagonal"] = not step and not parts["projected"] and d.chance(0.1)
    batch, steps, depth, cells = sizes(d)
    outputs = d.int(1, 12) if parts["projected"] else cells
    first = d.chance(0.5)
    lead = (batch,) if step else (steps, batch) if first else (batch, steps)
    inputs = [rows(d, *lead, depth), *gates(d, w, parts, depth, cells, outputs), d.state((batch, outputs)), d.state((batch, cells))]
    inputs += [w.floats(cells, middle=1) if parts["norm"] and not (parts["coupled"] and g == 0) else -1 for g in range(4)] if parts["norm"] or d.chance(0.6) else []
    if not step:
        fields |= {"timeMajor": first, "diagonalRecurrentTensors": parts["diagonal"]}
    d.tolerance = 3e-4  # large weights make much of a last bit
    d.op("LSTM" if step else "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [d.output((*lead, outputs), "float32")], table="UnidirectionalSequenceLSTMOptions" if not step else "LSTMOptions",
         fusedActivationFunction=d.pick(*ACTIVATIONS), **clips(d), **fields)
    again(d, w.hybrid)


def two_lstms(d):
    w, fields = weighted(d)
    parts = {k: d.chance(0.3) for k in ("coupled", "peephole", "projected")} | {"diagonal": False}
    batch, steps, depth, cells = sizes(d)
    outputs = [d.int(1, 12) if parts["projected"] else cells] * 2
    first, merge, aux = d.chance(0.5), d.chance(0.5), d.pick(None, None, "cross", "parallel")
    if merge and not first:
        batch = 1  # docs/lite.md: states of other rows are looked for elsewhere
    lead = (steps, batch) if first else (batch, steps)
    inputs = [rows(d, *lead, depth)]
    wide = d.int(1, 9) if aux == "cross" else depth
    other = rows(d, *lead, wide) if aux else -1
    inputs += gates(d, w, parts, depth, cells, outputs[0]) + gates(d, w, parts, depth, cells, outputs[1])
    for n in outputs:
        inputs += [d.state((batch, n)), d.state((batch, cells))]
    inputs += [other, *(w.matrix(cells, wide) if aux == "cross" and not (parts["coupled"] and g % 4 == 0) else -1 for g in range(8))]
    out = [d.output((*lead, sum(outputs)), "float32")] if merge else [d.output((*lead, n), "float32") for n in outputs]
    d.tolerance = 3e-5
    d.op("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, out, table="BidirectionalSequenceLSTMOptions", fusedActivationFunction=d.pick(*ACTIVATIONS), timeMajor=first, mergeOutputs=merge, **clips(d), **fields)
    again(d, w.hybrid)


def basic_lstm(d):
    """The kernel that is given its states, of floats or of uint8 on the scales that it takes."""
    batch, depth, cells = d.int(1, 4), d.int(1, 30), d.int(1, 20)
    if d.chance(0.5):
        kinds = [({}, "float32")] * 5
        values = [d.values((cells * 4, depth + cells), "float32", -0.5, 0.5), d.values((cells * 4,), "float32")]
        x, h, c = [d.values((batch, n), "float32") for n in (depth, cells, cells)]
    else:
        row, w = {"scale": 1 / 128, "zero": 128}, {"scale": d.scale(low=1e-3, high=0.05), "zero": d.int(1, 255)}
        depth, cells = -(-(depth + cells) // 8) * 8 - -(-cells // 8) * 8 + 8, -(-cells // 8) * 8
        kinds = [(row, "uint8"), (row, "uint8"), (w, "uint8"), ({"scale": float(np.float32(w["scale"] / 128)), "zero": 0}, "int32"), ({"scale": 1 / 2048, "zero": 0}, "int16")]
        values = [d.values((cells * 4, depth + cells), "uint8"), d.random.integers(-2000, 2000, cells * 4).astype(np.int32)]
        x, h, c = d.values((batch, depth), "uint8"), d.values((batch, cells), "uint8"), d.values((batch, cells), "int16")
    if kept := d.chance(0.5):
        states = [d.state((batch, cells), kinds[i][1], **kinds[i][0]) for i in (1, 4)]
    inputs = [d.input(x, **kinds[0][0]), states[0] if kept else d.input(h, **kinds[1][0]), d.const(values[0], **kinds[2][0]), d.const(values[1], **kinds[3][0]), states[1] if kept else d.input(c, **kinds[4][0])]
    whole = kinds[0][1] != "float32"
    out = [d.output((batch, cells), kinds[1][1], **kinds[1][0]), d.output((batch, cells), kinds[4][1], **kinds[4][0])]
    left = [d.lite.tensor((batch, depth + cells), kinds[0][1], **kinds[0][0]), d.lite.tensor((batch, cells * 4), "int16" if whole else "float32", **({"scale": 1 / 4096, "zero": 0} if whole else {}))]
    d.op("LSTM", inputs, out + left, version=2, table="LSTMOptions", kernelType=1, fusedActivationFunction=4)
    d.repeat(d.pick(1, 2))


def rnn(d):
    op = d.pick("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN")
    w, fields = weighted(d)
    batch, steps, depth, units = sizes(d)
    first, merge, back, wide = d.chance(0.5), d.chance(0.5), d.int(1, 12), d.int(1, 9)
    aux = d.pick(None, None, "cross", "parallel") if op == "BIDIRECTIONAL_SEQUENCE_RNN" else None
    first = first or aux == "parallel"  # docs/lite.md: LiteRT does not read the other input there
    if aux == "parallel" or first or w.hybrid:
        wide = depth  # docs/lite.md: rows of the auxiliary input are stepped over by this
    if op == "BIDIRECTIONAL_SEQUENCE_RNN" and first and w.hybrid:
        steps = 1  # docs/lite.md: a sequence is run as often as it has steps
    lead = (batch,) if op == "RNN" else (steps, batch) if first else (batch, steps)
    fields["fusedActivationFunction"] = d.pick(0, *ACTIVATIONS)
    d.tolerance = 3e-5
    inputs = [rows(d, *lead, depth), w.matrix(units, depth), w.matrix(units, units), w.floats(units), d.state((batch, units))]
    if op != "BIDIRECTIONAL_SEQUENCE_RNN":
        if op != "RNN":
            fields["timeMajor"] = first
        d.op(op, inputs, [d.output((*lead, units), "float32")], table="RNNOptions" if op == "RNN" else "SequenceRNNOptions", **fields)
    else:
        inputs += [w.matrix(back, depth), w.matrix(back, back), w.floats(back), d.state((batch, back))]
        inputs += [rows(d, *lead, wide) if aux else -1, *((w.matrix(units, wide), w.matrix(back, wide)) if aux == "cross" else (-1, -1))]
        out = [d.output((*lead, units + back), "float32")] if merge else [d.output((*lead, n), "float32") for n in (units, back)]
        d.op(op, inputs, out, table="BidirectionalSequenceRNNOptions", timeMajor=first, mergeOutputs=merge, **fields)
    again(d, w.hybrid)


def svdf(d):
    batch, memory, depth, units, rank = d.int(1, 4), d.int(1, 9), d.int(1, d.pick(5, 40)), d.int(1, 20), d.int(1, 3)
    filters, activation = units * rank, d.pick(0, 1, 1, 2, 3, 4, 5)
    biased = d.chance(0.6)
    if d.chance(0.6):
        w, fields = weighted(d)
        inputs = [rows(d, batch, depth), w.matrix(filters, depth), w.matrix(filters, memory), w.floats(units) if biased else -1, d.state((batch, filters * memory))]
        d.tolerance = 2e-5
        out = d.output((batch, units), "float32")
    else:
        fields, activation = {}, 1  # LiteRT takes no other
        x, features, time, state = d.quant("int8"), {"scale": d.scale(), "zero": 0}, {"scale": d.scale("int16"), "zero": 0}, {"scale": d.scale("int16", 0.05, 1), "zero": 0}
        inputs = [d.input(d.values((batch, depth), "int8"), **x), d.const(d.random.integers(-127, 128, (filters, depth)).astype(np.int8), **features),
                  d.const(d.random.integers(-9000, 9001, (filters, memory)).astype(np.int16), **time),
                  d.const(d.random.integers(-3000, 3000, units).astype(np.int32), scale=float(np.float32(time["scale"] * state["scale"])), zero=0) if biased else -1,
                  d.state((batch, filters * memory), "int16", **state)]
        most = 15000 * state["scale"] * time["scale"] * 9000 * (memory * rank) ** 0.5
        out = d.output((batch, units), "int8", **(d.quant("int8") | {"scale": float(np.float32(most / 128 * d.random.uniform(0.1, 1)))}))
    d.op("SVDF", inputs, [out], table="SVDFOptions", version=1, rank=rank, fusedActivationFunction=activation, **fields)
    again(d)


def integer_lstm(d):
    """Rows of int8, a cell of int16."""
    step = d.chance(0.3)
    parts = {k: d.chance(0.35) for k in ("coupled", "peephole", "projected", "norm")}
    if parts["projected"]:
        parts["norm"] = parts["peephole"] = False  # a step off in one file of twenty: not understood yet
    batch, steps, depth, cells = d.int(1, 4), d.int(1, 6), d.int(1, d.pick(8, 40)), d.int(2, d.pick(8, 40))
    outputs = d.int(1, cells) if parts["projected"] else cells
    first = d.chance(0.5)
    lead = (batch,) if step else (steps, batch) if first else (batch, steps)
    left = lambda g: parts["coupled"] and g == 0
    loud = float(np.exp(d.random.uniform(-2, 3)))
    scale = lambda middle: float(np.float32(middle * d.random.uniform(0.6, 1.6)))
    int8 = lambda *shape: d.random.integers(-127, 128, shape).astype(np.int8)
    int16 = lambda *shape: d.random.integers(-32767, 32768, shape).astype(np.int16)
    int32 = lambda most, n: d.random.integers(-most, most + 1, n).astype(np.int32)
    row, out, hidden = ({"scale": scale(s), "zero": d.int(-30, 30)} for s in (0.03, 0.008, 0.0075))
    if not parts["projected"]:
        hidden = out  # as converters have it
    inputs = [d.input(d.values((*lead, depth), "int8"), **row)]
    scales = [scale(0.004 * loud) for _ in range(4)]
    inputs += [-1 if left(g) else d.const(int8(cells, depth), scale=scales[g], zero=0) for g in range(4)]
    inputs += [-1 if left(g) else d.const(int8(cells, outputs), scale=scale(0.004 * loud), zero=0) for g in range(4)]
    inputs += [d.const(int16(cells), scale=scale(3e-5), zero=0) if parts["peephole"] and not left(g) else -1 for g in range(3)]
    inputs += [-1 if left(g) else d.const(int32(3000, cells), scale=2e-5 if parts["norm"] else float(np.float32(row["scale"] * scales[g])), zero=0) for g in range(4)]
    inputs += [d.const(int8(outputs, cells), scale=0.005, zero=0), d.const(int32(2000, outputs), scale=float(np.float32(0.005 * hidden["scale"])), zero=0)] if parts["projected"] else [-1, -1]
    inputs += [d.state((batch, outputs), "int8", **out), d.state((batch, cells), "int16", scale=2.0 ** d.int(-15, -9), zero=0)]
    if parts["norm"] or d.chance(0.6):
        inputs += [d.const(int16(cells), scale=scale(4e-5), zero=0) if parts["norm"] and not left(g) else -1 for g in range(4)]
    between = [d.lite.tensor((0,), "int16", scale=scale(0.0003), zero=0) if parts["norm"] else d.lite.tensor((0,), "float32") for _ in range(4)] + [d.lite.tensor((0,), "int8", **hidden)]
    fields = {"cellClip": d.pick(0.0, 0.0, 0.9), "projClip": d.pick(0.0, 0.0, 0.3)} | ({} if step else {"timeMajor": first})
    d.op("LSTM" if step else "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [d.output((*lead, outputs), "int8", **out)], version=2 if step else 1, table="LSTMOptions" if step else "UnidirectionalSequenceLSTMOptions",
         intermediates=between, fusedActivationFunction=4, **fields)
    again(d)


RECURRENT = {f.__name__: f for f in (lstm, two_lstms, integer_lstm, basic_lstm, rnn, svdf)}
