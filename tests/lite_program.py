"""What tests of smelt lite share: exporting models and graphs, looking into the files."""
import collections
import json
import re
import struct
import zipfile

from program import call, check, models, node, work

count = 0


def lite(model, *flags, path=None):
    """(exit code, standard output, error, the file)"""
    global count
    count += 1
    path = path or work / f"{count}.tflite"
    return (*call("lite", model, path, *flags), path)


def frozen(graph, *flags):
    """The same of a graph in text form."""
    global count
    count += 1
    source, path = work / f"{count}.pbtxt", work / f"{count}.tflite"
    source.write_text(graph + "versions { producer: 1882 }\n")
    return (*call("lite", "--graph_def", source, path, *flags), path)


def shown(path):
    code, out, err = call("show", path, "--json")
    if code != 0:
        check(f"show {path.name}", False, err)
        return {"subgraphs": [{"operators": [], "tensors": [], "inputs": [], "outputs": []}], "signatures": [{"key": "", "inputs": [], "outputs": []}], "metadata": [], "sizes": {"operators": [], "largest_tensors": []}, "buffers": []}
    return json.loads(out)


def ops(path, graph=0):
    return [o["op"] for o in shown(path)["subgraphs"][graph]["operators"]]


def dtypes(path):
    return {t["dtype"] for g in shown(path)["subgraphs"] for t in g["tensors"] if t["buffer_bytes"]}


def slots(path):
    """{key: (dtype, shape with -1, tensor)} of the first signature"""
    file = shown(path)
    graph, out = file["subgraphs"][0], collections.defaultdict(lambda: ("", [], {"quantization": {"scale": [], "zero_point": [0]}, "shape": []}))
    for side in ("inputs", "outputs"):
        for s in file["signatures"][0][side]:
            t = graph["tensors"][s["tensor"]]
            out[s["name"]] = (t["dtype"], t.get("shape_signature", t["shape"]), t)
    return out


def refused(name, result, code, *texts):
    """An error with its canonical code and text, and no file."""
    got, out, err, path = result
    check(name, got == 1 and f"error: {code}: " in err and all(t in err for t in texts) and not path.exists(), (got, out[:300], err[:900]))


def misused(name, args, *texts):
    code, out, err = call("lite", *args)
    check(name, code == 2 and all(t in err for t in texts), (code, out[:300], err[:600]))


def replays(name, path, log, *flags):
    code, out, err = call("replay", path, "--log", models / log, *flags)
    check(name, code == 0 and ", 0 differ" in out, out + err)


def npz(path, **arrays):
    """Arrays of float32: (shape, values)."""
    with zipfile.ZipFile(path, "w") as z:
        for key, (shape, values) in arrays.items():
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            z.writestr(f"{key}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values))
    return path


def wave(n, step=0.37):
    return [((i * step) % 2) - 1 for i in range(n)]


def floats(name, shape, *values):
    dims = " ".join(f"dim {{ size: {n} }}" for n in shape)
    return node(name, "Const", dtype="type: DT_FLOAT", value=f"tensor {{ dtype: DT_FLOAT tensor_shape {{ {dims} }} " + "".join(f"float_val: {v} " for v in values) + "}")


def placeholder(name, *shape, dtype="DT_FLOAT"):
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape="shape { " + " ".join(f"dim {{ size: {n} }}" for n in shape) + " }")


FLOAT = {"T": "type: DT_FLOAT"}
X = placeholder("x", -1, 4)
WEIGHTS = floats("w", (4, 300), *wave(1200))
DENSE = X + WEIGHTS + floats("b", (300,), *wave(300)) + node("m", "MatMul", "x", "w", **FLOAT) + node("y", "BiasAdd", "m", "b", **FLOAT)


def structure_hash(path):
    """TensorFlow's, of what operators and tensors there are."""
    file, h = shown(path), 0
    for g in file["subgraphs"]:
        numbers = [len(g["operators"])] + [i for o in g["operators"] for i in o["inputs"] + o["outputs"]] + [len(g["tensors"])]
        for t in g["tensors"]:
            numbers += ([t["buffer_bytes"]] if t["buffer_bytes"] else []) + t["shape"]
        for n in numbers + [len(g["inputs"]), len(g["outputs"])]:
            h ^= (n + 0x9E3779B97F4A7800 + (h << 10) + (h >> 4)) % 2**64
    return str(h)
