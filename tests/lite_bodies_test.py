#!/usr/bin/env python3
"""Loops and branches in quantized .tflite files: lite_bodies_test.py SMELT. Ends with 'N passed, N failed'.

Models are graphs in text form whose functions multiply by weights; what files answer is compared with the same in Python's own numbers."""
import json
import math
import struct
import zipfile

from program import call, check, finish, node, work

N = 32
WEIGHTS = [[((i * 7 + j * 3) % 11 - 5) / 40 for j in range(N)] for i in range(N)]
ROWS = [[((i * 5 + k * 9) % 13 - 6) / 6 for i in range(N)] for k in range(4)]
FLOAT = "type: DT_FLOAT"
TURNS = 3
count = 0


def const(name, dtype, field, values, *shape):
    dims = " ".join(f"dim {{ size: {n} }}" for n in shape)
    return node(name, "Const", dtype=f"type: {dtype}", value=f"tensor {{ dtype: {dtype} tensor_shape {{ {dims} }} " + " ".join(f"{field}: {v}" for v in values) + " }")


def weights(name, by=1.0):
    return const(name, "DT_FLOAT", "float_val", [by * w for row in WEIGHTS for w in row], N, N)


def function(name, args, results, nodes):
    """`args` and `results`: names and types; `results` with what gives them."""
    inputs = " ".join(f'input_arg {{ name: "{a}" type: {t} }}' for a, t in args)
    outputs = " ".join(f'output_arg {{ name: "{a}" type: {t} }}' for a, t, _ in results)
    returned = " ".join(f'ret {{ key: "{a}" value: "{e}" }}' for a, _, e in results)
    return f'function {{ signature {{ name: "{name}" {inputs} {outputs} }} {nodes.replace("node {", "node_def {")} {returned} }}\n'


def loop(name, *inputs, cond, body, more=("DT_FLOAT",)):
    types = "list { type: DT_INT32 " + " ".join(f"type: {t}" for t in ("DT_FLOAT", *more)) + " }"
    return node(name, "StatelessWhile", *inputs, T=types, cond=f'func {{ name: "{cond}" }}', body=f'func {{ name: "{body}" }}', output_shapes="list { }", parallel_iterations="i: 1")


def branch(name, *inputs, yes, no):
    types = "list { " + "type: DT_FLOAT " * (len(inputs) - 1) + "}"
    return node(name, "StatelessIf", *inputs, Tcond="type: DT_BOOL", Tin=types, Tout="list { type: DT_FLOAT }", then_branch=f'func {{ name: "{yes}" }}', else_branch=f'func {{ name: "{no}" }}', output_shapes="list { }")


LOOP_ARGS = [("i", "DT_INT32"), ("v", "DT_FLOAT"), ("w", "DT_FLOAT")]
LOOP_RESULTS = [("i_out", "DT_INT32", "next:z:0"), ("v_out", "DT_FLOAT", "tanh:y:0"), ("w_out", "DT_FLOAT", "w")]
NEXT = const("one", "DT_INT32", "int_val", [1]) + node("next", "AddV2", "i", "one:output:0", T="type: DT_INT32")
GOES = function("goes", LOOP_ARGS, [("more", "DT_BOOL", "less:z:0")], const("n", "DT_INT32", "int_val", [TURNS]) + node("less", "Less", "i", "n:output:0", T="type: DT_INT32"))
TURN = function("turn", LOOP_ARGS, LOOP_RESULTS, NEXT + node("dense", "MatMul", "v", "w", T=FLOAT) + node("tanh", "Tanh", "dense:product:0", T=FLOAT))
# What is an operand of the loop that no turn changes.
INVARIANT = weights("w") + const("zero", "DT_INT32", "int_val", [0])
X = node("x", "Placeholder", dtype=FLOAT, shape=f"shape {{ dim {{ size: 1 }} dim {{ size: {N} }} }}")
LOOP = (X + INVARIANT + loop("loop", "zero", "x", "w", cond="goes", body="turn") + node("y", "Identity", "loop:1", T=FLOAT), GOES + TURN)
# A product in front, by the same weights, and one in each branch.
SIDES = "".join(function(name, [("v", "DT_FLOAT"), ("w", "DT_FLOAT")], [("out", "DT_FLOAT", end)], nodes) for name, end, nodes in (
    ("yes", "dense:product:0", node("dense", "MatMul", "v", "w", T=FLOAT)),
    ("no", "tanh:y:0", weights("own", 2) + node("other", "MatMul", "v", "own:output:0", T=FLOAT) + node("tanh", "Tanh", "other:product:0", T=FLOAT))))
BRANCHES = (X + weights("w") + const("axes", "DT_INT32", "int_val", [0, 1], 2) + const("half", "DT_FLOAT", "float_val", [0.5]) + node("first", "MatMul", "x", "w", T=FLOAT)
            + node("sum", "Max", "first", "axes", T=FLOAT) + node("p", "Greater", "sum", "half", T=FLOAT) + branch("choice", "p", "first", "w", yes="yes", no="no") + node("y", "Identity", "choice", T=FLOAT), SIDES)
# The body of the loop chooses a branch.
CHOOSING = function("turn", LOOP_ARGS, LOOP_RESULTS, NEXT + const("two", "DT_INT32", "int_val", [2]) + node("early", "Less", "i", "two:output:0", T="type: DT_INT32")
                    + branch("side", "early:z:0", "v", "w", yes="yes", no="no") + node("tanh", "Tanh", "side:output:0", T=FLOAT))
NESTED = (LOOP[0], GOES + CHOOSING + SIDES)


def times(v, by=1.0):
    return [sum(v[i] * by * WEIGHTS[i][j] for i in range(N)) for j in range(N)]


def tanh(v):
    return [math.tanh(x) for x in v]


def looped(v):
    for _ in range(TURNS):
        v = tanh(times(v))
    return v


def chosen(v):
    v = times(v)
    return times(v) if max(v) > 0.5 else tanh(times(v, 2))


def nested(v):
    for i in range(TURNS):
        v = tanh(times(v) if i < 2 else tanh(times(v, 2)))
    return v


def npy(shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


samples = work / "samples.npz"
with zipfile.ZipFile(samples, "w") as z:
    z.writestr("x.npy", npy((len(ROWS), N), [x for row in ROWS for x in row]))
REPRESENTATIVE = ["--representative", samples]


def lite(model, *flags):
    global count
    count += 1
    source, path = work / f"{count}.pbtxt", work / f"{count}.tflite"
    source.write_text(model[0] + "library {\n" + model[1] + "}\nversions { producer: 1882 }\n")
    return (*call("lite", "--graph_def", source, path, *flags), path)


def shown(path):
    code, out, err = call("show", path, "--json")
    return json.loads(out) if code == 0 else {"subgraphs": []}


def weight_types(path):
    """Of the weights that each subgraph's products read: {(subgraph's number, type)}."""
    out = set()
    for i, graph in enumerate(shown(path)["subgraphs"]):
        for op in graph["operators"]:
            if op["op"] in ("FULLY_CONNECTED", "BATCH_MATMUL"):
                out.add((i, graph["tensors"][op["inputs"][1]]["dtype"]))
    return out


def ops(path):
    return [op["op"] for graph in shown(path)["subgraphs"] for op in graph["operators"]]


def answer(path, row):
    (work / "x.npy").write_bytes(npy((1, N), row))
    code, out, err = call("run", path, "--signature_def", "serving_default", "--inputs", f"x={work}/x.npy", "--outdir", work / "out", "--overwrite")
    check(f"{path.name} runs", code == 0, out + err)
    return struct.unpack(f"<{N}f", (work / "out" / "y.npy").read_bytes()[-4 * N:]) if code == 0 else [math.nan] * N


def apart(path, wanted):
    return max(abs(a - b) for row in ROWS for a, b in zip(answer(path, row), wanted(row)))


MODES = {"none": ([], 1e-5), "float16": ([], 2e-3), "dynamic": ([], 3e-2), "dynamic of 4 bits": (["--weight_bits", "4"], 0.3), "dynamic of blocks": (["--weight_bits", "4", "--block_size", "32"], 0.3), "int8": (REPRESENTATIVE, 6e-2), "int16x8": (REPRESENTATIVE, 3e-2)}
TYPES = {"none": "float32", "float16": "float32", "dynamic": "int8", "dynamic of 4 bits": "int4", "dynamic of blocks": "int4", "int8": "int8", "int16x8": "int8"}
for name, model, wanted, most in (("loop", LOOP, looped, 1), ("branches", BRANCHES, chosen, 2), ("nested", NESTED, nested, 2)):
    sizes = {}
    for mode, (flags, tolerance) in MODES.items():
        code, out, err, path = lite(model, "--quantize", mode.split()[0], *flags)
        check(f"{name} {mode}: export", code == 0, err)
        if code != 0:
            continue
        sizes[mode] = path.stat().st_size
        types = {t for _, t in weight_types(path)}
        check(f"{name} {mode}: weights", types == {TYPES[mode]}, types)
        far = apart(path, wanted)
        check(f"{name} {mode}: answers", far <= tolerance, far)
    # `most` matrices of N x N, each once in a file.
    for mode, bytes_each in (("none", 4), ("float16", 2), ("dynamic", 1), ("dynamic of 4 bits", 0.5)):
        check(f"{name} {mode}: bytes", most * bytes_each * N * N < sizes[mode] < most * bytes_each * N * N + 8500, sizes)

# ---- which loops share their subgraphs

INNER = GOES.replace('name: "goes"', 'name: "inner_goes"') + TURN.replace('name: "turn"', 'name: "inner"')
OUTER = function("turn", LOOP_ARGS, LOOP_RESULTS, NEXT + const("start", "DT_INT32", "int_val", [0]) + loop("again", "start:output:0", "v", "w", cond="inner_goes", body="inner") + node("tanh", "Tanh", "again:output:1", T=FLOAT))
code, out, err, path = lite((LOOP[0], GOES + INNER + OUTER))
loops = [op["options"] for graph in shown(path)["subgraphs"] for op in graph["operators"] if op["op"] == "WHILE"]
check("a loop in a loop has a condition of its own", code == 0 and len(loops) == 2 and loops[0]["cond_subgraph_index"] != loops[1]["cond_subgraph_index"], err + str(loops))
BEHIND = (LOOP[0].replace('name: "y" op: "Identity" input: "loop:1"', 'name: "y" op: "Identity" input: "behind:1"') + loop("behind", "zero", "loop:1", "w", cond="inner_goes", body="inner"), LOOP[1] + INNER)
code, out, err, path = lite(BEHIND)
loops = [op["options"] for graph in shown(path)["subgraphs"] for op in graph["operators"] if op["op"] == "WHILE"]
check("a loop behind a loop has what both do the same way", code == 0 and len(loops) == 2 and loops[0] == loops[1], err + str(loops))
check("and runs", apart(path, lambda v: looped(looped(v))) < 1e-5)

# ---- what is left in float

for flags in (["--float_node", "dense"], ["--float_op", "FULLY_CONNECTED"], ["--float_layers", "den.*"]):
    for mode in "dynamic", "int8":
        code, out, err, path = lite(LOOP, "--quantize", mode, *(REPRESENTATIVE if mode == "int8" else []), *flags)
        check(f"{mode} {flags[0]} in a body", code == 0 and {t for _, t in weight_types(path)} == {"float32"}, err)
code, out, err, path = lite(LOOP, "--quantize", "dynamic", "--float_layers", "nothing")
check("a pattern that no graph has", code == 1 and "NOT_FOUND" in err and "nothing" in err, err)
code, out, err, path = lite(LOOP, "--quantize", "int8", *REPRESENTATIVE, "--only_integer")
check("--only_integer: a loop passes floats", code == 1 and "UNIMPLEMENTED" in err and "WHILE 'loop" in err, err)
code, out, err, path = lite(LOOP, "--quantize", "int8")
check("int8 without samples", code == 1 and "need --representative" in err, err)

# ---- the report

code, out, err, path = lite(BRANCHES, "--quantize", "dynamic", *REPRESENTATIVE, "--report", work / "report.json")
(entry,) = json.loads((work / "report.json").read_text())["signatures"]
check("a report has the layers of branches", code == 0 and [l["name"] for l in entry["layers"]] == ["first"] and sorted((l["name"], l["op"]) for l in entry["layers_in_bodies"]) == [("dense", "FULLY_CONNECTED"), ("other", "FULLY_CONNECTED")], entry)
check("with what is lost of their weights, and what each costs", all(l["function"] and 30 < l["weights"]["snr_db"] < 60 and "outputs_in_float" in l and "alone" not in l for l in entry["layers_in_bodies"]), entry["layers_in_bodies"])
code, out, err, path = lite(LOOP, "--quantize", "dynamic", *REPRESENTATIVE, "--report", work / "report.txt")
text = (work / "report.txt").read_text()
check("as text", code == 0 and "in loops and branches: 1 quantized layers" in text and "dense  FULLY_CONNECTED" in text, text)
code, out, err, path = lite(LOOP, "--quantize", "dynamic", *REPRESENTATIVE, "--report", work / "report.txt", "--float_layers", "auto", "--max_loss", "0.00001")
check("auto leaves layers of a body in float", code == 0 and {t for _, t in weight_types(path)} == {"float32"} and "left in float:\n    dense" in (work / "report.txt").read_text(), err + (work / "report.txt").read_text())
NEVER = (LOOP[0].replace("int_val: 0", f"int_val: {TURNS}"), LOOP[1])
code, out, err, path = lite(NEVER, "--quantize", "int8", *REPRESENTATIVE, "--report", work / "never.txt")
check("a body that no sample reaches stays float", code == 0 and {t for _, t in weight_types(path)} == {"float32"} and "stays float" in (work / "never.txt").read_text(), err + (work / "never.txt").read_text())
finish()
