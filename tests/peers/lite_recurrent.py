#!/usr/bin/env python3
"""Recurrent operators in LiteRT and in smelt, of float and of int8 weights, and LSTMs in integers, to the bit: lite_recurrent.py SMELT [SUBSTRING of names]

Two of LiteRT's kernels for both directions answer otherwise than its kernels for one do where there are several rows: they are asked for one row."""
import sys

import numpy as np

from checks import finish
from lite_builder import Lite
from lite_checks import compare, unsupported

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(5)
TANH = 4


def normal(*shape):
    return (random.standard_normal(shape) * 0.5).astype(np.float32)


def weights(m, shape, hybrid):
    """`hybrid`: of int8; "old": which the file says is uint8."""
    w = normal(*shape)
    if not hybrid:
        return m.const(w)
    scale = float(np.abs(w).max()) / 127
    steps = np.clip(np.round(w / scale), -127, 127).astype(np.int8)
    return m.const(steps.view(np.uint8) if hybrid == "old" else steps, scale=scale, zero=0)


def run(name, m, outputs, inputs):
    if only in name:
        compare(name, m.bytes(outputs), {f"x{i}": v for i, v in enumerate(inputs)}, tolerance=2e-5)


def direction(m, depth, cells, outputs, hybrid, coupled, peephole, projected, diagonal=False):
    """17 inputs of one direction behind the data: weights, recurrent weights, peepholes, biases, projection."""
    gates = range(4)
    out = [-1 if coupled and g == 0 else weights(m, (cells, depth), hybrid) for g in gates]
    out += [-1 if coupled and g == 0 else m.const(normal(cells)) if diagonal else weights(m, (cells, outputs), hybrid) for g in gates]
    out += [weights(m, (cells,), hybrid) if peephole and not (coupled and g == 0) else -1 for g in range(3)]
    out += [-1 if coupled and g == 0 else m.const(normal(cells)) for g in gates]
    return out + ([weights(m, (outputs, cells), hybrid), m.const(normal(outputs))] if projected else [-1, -1])


def lstm(name, time_major=True, hybrid=False, coupled=False, peephole=False, projected=False, norm=False, clip=0.0, step=False, diagonal=False, both=False, merge=False, aux=None, asymmetric=False, activation=TANH,
         steps=5, batch=3, depth=6, cells=7):
    m = Lite()
    outputs = 5 if projected else cells
    lead = (batch,) if step else (steps, batch) if time_major else (batch, steps)
    shape = (*lead, depth)
    x = m.input(shape, "float32")
    data = [normal(*shape)]
    one = direction(m, depth, cells, outputs, hybrid, coupled, peephole, projected, diagonal)
    state = lambda n: m.tensor((batch, n), "float32", variable=True)
    fields = dict(fusedActivationFunction=activation, cellClip=clip, projClip=clip, asymmetricQuantizeInputs=asymmetric)
    if not both:
        inputs = [x] + one + [state(outputs), state(cells)]
        inputs += [-1 if coupled and g == 0 else m.const(1 + normal(cells)) for g in range(4)] if norm else [-1] * 4
        op, options = ("LSTM", "LSTMOptions") if step else ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions")
        if not step:
            fields.update(timeMajor=time_major, diagonalRecurrentTensors=diagonal)
        y = [m.tensor((*lead, outputs), "float32")]
    else:
        depth_back = depth
        other = None
        if aux:
            other = m.input((*lead, 4), "float32")
            data.append(normal(*lead, 4))
            depth_back = 4 if aux == "parallel" else depth
        inputs = [x] + one + direction(m, depth_back, cells, outputs, hybrid, coupled, peephole, projected)
        inputs += [state(outputs), state(cells), state(outputs), state(cells), -1 if other is None else other]
        inputs += [weights(m, (cells, 4), hybrid) if aux == "cross" and not (coupled and g % 4 == 0) else -1 for g in range(8)]
        op, options = "BIDIRECTIONAL_SEQUENCE_LSTM", "BidirectionalSequenceLSTMOptions"
        fields.update(timeMajor=time_major, mergeOutputs=merge)
        y = [m.tensor((*lead, outputs * 2), "float32")] if merge else [m.tensor((*lead, outputs), "float32") for _ in range(2)]
    m.op(op, inputs, y, options, version=1, **fields)
    run(f"{op.lower()}_{name}", m, y, data)


for step in True, False:
    for hybrid in False, True:
        kind = "hybrid" if hybrid else "float"
        for name, fields in {"plain": {}, "coupled": dict(coupled=True), "peephole": dict(peephole=True), "projected": dict(projected=True), "norm": dict(norm=True),
                             "clip": dict(clip=0.3), "all": dict(peephole=True, projected=True, norm=True, clip=0.4), "one_row": dict(batch=1)}.items():
            lstm(f"{name}_{kind}", step=step, hybrid=hybrid, **fields)
        if not step:
            lstm(f"batch_major_{kind}", time_major=False, hybrid=hybrid)
            lstm(f"large_{kind}", hybrid=hybrid, steps=40, batch=2, depth=33, cells=70)
        if hybrid:
            lstm(f"asymmetric_{kind}", step=step, hybrid=True, asymmetric=True)
    for activation in 1, 2, 3, 5:
        lstm(f"activation_{activation}", step=step, activation=activation)
    lstm("old_weights", step=step, hybrid="old", peephole=True, projected=True)
lstm("diagonal_float", diagonal=True)
for hybrid in False, True:
    kind = "hybrid" if hybrid else "float"
    for name, fields in {"plain": {}, "merge": dict(merge=True), "batch_major": dict(time_major=False, merge=True, batch=1), "coupled": dict(coupled=True), "peephole": dict(peephole=True),
                         "projected": dict(projected=True), "cross": dict(aux="cross"), "parallel": dict(aux="parallel")}.items():
        lstm(f"{name}_{kind}", both=True, hybrid=hybrid, **fields)



def integer_lstm(name, time_major=True, coupled=False, peephole=False, projected=False, norm=False, clip=0.0, step=False, batch=3, steps=5, depth=6, cells=8, loud=1.0, cell_power=-11, old=False):
    """int8 rows, int16 cell; scales of the test's own choice. `loud`: how far gates are driven."""
    m = Lite()
    outputs = 5 if projected else cells
    lead = (batch,) if step else (steps, batch) if time_major else (batch, steps)
    int8 = lambda *shape: random.integers(-127, 128, shape).astype(np.int8)
    int16 = lambda *shape: random.integers(-32767, 32768, shape).astype(np.int16)
    x_scale, w_scale, out_scale, hidden_scale, gate_scale = 0.03, 0.004 * loud, 0.008, 0.0075, 0.0003
    x_zero, out_zero, hidden_zero = (int(random.integers(-20, 20)) for _ in range(3))
    if not projected:  # as converters have it
        hidden_scale, hidden_zero = out_scale, out_zero
    x = m.input((*lead, depth), "int8", scale=x_scale, zero=x_zero)
    left_out = lambda g: coupled and g == 0
    inputs = [x] + [-1 if left_out(g) else m.const(int8(cells, depth), scale=w_scale * (1 + g / 7), zero=0) for g in range(4)]
    inputs += [-1 if left_out(g) else m.const(int8(cells, outputs), scale=w_scale * (1 + g / 9), zero=0) for g in range(4)]
    inputs += [m.const(int16(cells), scale=3e-5, zero=0) if peephole and not left_out(g) else -1 for g in range(3)]
    inputs += [-1 if left_out(g) else m.const(random.integers(-3000, 3000, cells).astype(np.int32), scale=2e-5 if norm else x_scale * w_scale * (1 + g / 7), zero=0) for g in range(4)]
    inputs += [m.const(int8(outputs, cells), scale=0.005, zero=0), m.const(random.integers(-2000, 2000, outputs).astype(np.int32), scale=0.005 * hidden_scale, zero=0)] if projected else [-1, -1]
    inputs += [m.tensor((batch, outputs), "int8", scale=out_scale, zero=out_zero, variable=True), m.tensor((batch, cells), "int16", scale=2.0 ** cell_power, zero=0, variable=True)]
    if not old:
        inputs += [-1 if left_out(g) or not norm else m.const(int16(cells), scale=4e-5, zero=0) for g in range(4)]
    between = [m.tensor((0,), "int16", scale=gate_scale, zero=0) if norm else m.tensor((0,), "float32") for _ in range(4)] + [m.tensor((0,), "int8", scale=hidden_scale, zero=hidden_zero)]
    y = m.tensor((*lead, outputs), "int8", scale=out_scale, zero=out_zero)
    op, options = ("LSTM", "LSTMOptions") if step else ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions")
    fields = dict(fusedActivationFunction=TANH, cellClip=clip, projClip=clip / 4) | ({} if step else dict(timeMajor=time_major))
    m.op(op, inputs, [y], options, version=2 if step else 1, intermediates=between, **fields)
    data = random.integers(-128, 128, (*lead, depth)).astype(np.int8)
    if only in f"integer_{op.lower()}_{name}":
        compare(f"integer_{op.lower()}_{name}", m.bytes([y]), {"x0": data})


for step in True, False:
    for coupled in False, True:
        for peephole in False, True:
            for projected in False, True:
                for norm in False, True:
                    parts = {"coupled": coupled, "peephole": peephole, "projected": projected, "norm": norm}
                    integer_lstm("_".join(k for k, v in parts.items() if v) or "plain", step=step, **parts)
for power in range(-15, -8):
    integer_lstm(f"cell_{-power}", cell_power=power, loud=2)
for loud in 0.1, 5, 20:
    integer_lstm(f"loud_{loud}", loud=loud, steps=9)
integer_lstm("clip", clip=0.9, loud=5)
integer_lstm("clip_projected", clip=0.9, loud=5, projected=True)
integer_lstm("batch_major", time_major=False)
integer_lstm("batch_major_peephole_projected", time_major=False, peephole=True, projected=True)
integer_lstm("wide", cells=70, depth=90, batch=2, steps=7)
integer_lstm("norm_wide", cells=48, depth=33, norm=True)
integer_lstm("20_inputs", old=True)

m = Lite()
x, h, c = m.input((2, 6), "float32"), m.input((2, 7), "float32"), m.input((2, 7), "float32")
y = [m.tensor((2, 7), "float32"), m.tensor((2, 7), "float32"), m.tensor((2, 13), "float32"), m.tensor((2, 28), "float32")]
m.op("LSTM", [x, h, m.const(normal(28, 13)), m.const(normal(28)), c], y, "LSTMOptions", version=2, kernelType=1, fusedActivationFunction=TANH)
run("basic_lstm", m, y[:2], [normal(2, 6), normal(2, 7), normal(2, 7)])

def uint8_lstm(name, batch, depth, cells):
    """The basic kernel in integers; its scales are those that it takes."""
    m = Lite()
    row, state = {"scale": 1 / 128, "zero": 128}, {"scale": 1 / 2048, "zero": 0}
    steps = lambda *shape: random.integers(0, 256, shape).astype(np.uint8)
    given = [steps(batch, depth), steps(batch, cells), random.integers(-9000, 9000, (batch, cells)).astype(np.int16)]
    x, h = m.input((batch, depth), "uint8", **row), m.input((batch, cells), "uint8", **row)
    w = m.const(steps(4 * cells, depth + cells), scale=0.01, zero=120)
    bias = m.const(random.integers(-2000, 2000, 4 * cells).astype(np.int32), scale=0.01 / 128, zero=0)
    c = m.input((batch, cells), "int16", **state)
    y = [m.tensor((batch, cells), "uint8", **row), m.tensor((batch, cells), "int16", **state), m.tensor((batch, depth + cells), "uint8", **row), m.tensor((batch, 4 * cells), "int16", scale=1 / 4096, zero=0)]
    m.op("LSTM", [x, h, w, bias, c], y, "LSTMOptions", version=2, kernelType=1, fusedActivationFunction=TANH)
    run(f"basic_lstm_{name}", m, y[:2], given)


uint8_lstm("uint8", 2, 8, 8)
uint8_lstm("uint8_row", 1, 24, 16)

for rank in 1, 2:
    for bias in False, True:
        m = Lite()
        x = m.input((3, 6), "int8", scale=0.03, zero=-11)
        y = m.tensor((3, 4), "int8", scale=0.02, zero=7)
        inputs = [x, m.const(random.integers(-127, 128, (4 * rank, 6)).astype(np.int8), scale=0.01, zero=0), m.const(random.integers(-9000, 9000, (4 * rank, 5)).astype(np.int16), scale=3e-5, zero=0)]
        inputs += [m.const(random.integers(-900, 900, 4).astype(np.int32), scale=3e-5 * 1e-3, zero=0) if bias else -1, m.tensor((3, 20 * rank), "int16", scale=1e-3, zero=0, variable=True)]
        m.op("SVDF", inputs, [y], "SVDFOptions", rank=rank, fusedActivationFunction=1)
        run(f"integer_svdf_{rank}_{bias}", m, [y], [random.integers(-128, 128, (3, 6)).astype(np.int8)])

for hybrid in False, True, "old":
    kind = {False: "float", True: "hybrid"}.get(hybrid, hybrid)
    for activation in range(6):
        m = Lite()
        x = m.input((3, 6), "float32")
        y = m.tensor((3, 7), "float32")
        m.op("RNN", [x, weights(m, (7, 6), hybrid), weights(m, (7, 7), hybrid), m.const(normal(7)), m.tensor((3, 7), "float32", variable=True)], [y], "RNNOptions", fusedActivationFunction=activation)
        run(f"rnn_{activation}_{kind}", m, [y], [normal(3, 6)])
    batch = 1 if hybrid else 4
    for time_major in False, True:
        m = Lite()
        lead = (batch, batch)
        x = m.input((*lead, 6), "float32")
        y = m.tensor((*lead, 7), "float32")
        m.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, weights(m, (7, 6), hybrid), weights(m, (7, 7), hybrid), m.const(normal(7)), m.tensor((batch, 7), "float32", variable=True)], [y], "SequenceRNNOptions",
             timeMajor=time_major, fusedActivationFunction=TANH)
        run(f"unidirectional_sequence_rnn_{time_major}_{kind}", m, [y], [normal(*lead, 6)])
        for merge in False, True:
            for aux in None, "cross", "parallel":
                m = Lite()
                x = m.input((*lead, 6), "float32")
                data = [normal(*lead, 6)]
                other, back = -1, 6
                # LiteRT steps over the auxiliary input by the width of the input.
                wide = 4 if aux == "parallel" else 6
                if aux:
                    other = m.input((*lead, wide), "float32")
                    data.append(normal(*lead, wide))
                    back = wide
                inputs = [x, weights(m, (7, 6), hybrid), weights(m, (7, 7), hybrid), m.const(normal(7)), m.tensor((batch, 7), "float32", variable=True)]
                inputs += [weights(m, (5, back), hybrid), weights(m, (5, 5), hybrid), m.const(normal(5)), m.tensor((batch, 5), "float32", variable=True), other]
                inputs += [weights(m, (7, wide), hybrid), weights(m, (5, wide), hybrid)] if aux == "cross" else [-1, -1]
                y = [m.tensor((*lead, 12), "float32")] if merge else [m.tensor((*lead, 7), "float32"), m.tensor((*lead, 5), "float32")]
                m.op("BIDIRECTIONAL_SEQUENCE_RNN", inputs, y, "BidirectionalSequenceRNNOptions", timeMajor=time_major, mergeOutputs=merge, fusedActivationFunction=TANH)
                run(f"bidirectional_sequence_rnn_{time_major}_{merge}_{aux}_{kind}", m, y, data)
    for rank in 1, 2:
        for bias in False, True:
            m = Lite()
            x = m.input((3, 6), "float32")
            y = m.tensor((3, 4), "float32")
            m.op("SVDF", [x, weights(m, (4 * rank, 6), hybrid), weights(m, (4 * rank, 5), hybrid), m.const(normal(4)) if bias else -1, m.tensor((3, 20 * rank), "float32", variable=True)], [y], "SVDFOptions",
                 rank=rank, fusedActivationFunction=1)
            run(f"svdf_{rank}_{bias}_{kind}", m, [y], [normal(3, 6)])

for u in unsupported:
    print("not in LiteRT:", u)
finish()
