#!/usr/bin/env python3
"""What smelt show says of .tflite files beside the flatbuffers package of Python: lite_show_test.py SMELT [SUBSTRING of names]

Every number of --json is read a second time with TensorFlow's generated classes: files of lite_builder.py (all that lite_operators.py and lite_recurrent.py run, and a few
with what those lack), and files that TensorFlow's converter writes in each of its modes. Names of enums come from those classes, types of fields from tflite.fbs."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import types

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import flatbuffers
import numpy as np
import tensorflow as tf
from flatbuffers import flexbuffers
from tensorflow.lite.python import conversion_metadata_schema_py_generated as meta, schema_py_generated as fb

import checks
from checks import check, finish, smelt
from lite_builder import Lite

tf.get_logger().setLevel("ERROR")
only = sys.argv[2] if len(sys.argv) > 2 else ""
here = pathlib.Path(__file__).resolve().parent
FILES = {}  # name: bytes

# ---- the schema


def names_of(enum):
    return {v: k for k, v in vars(getattr(fb, enum)).items() if isinstance(v, int)}


OPS = names_of("BuiltinOperator")
text = re.sub(r"//[^\n]*", "", (here.parent.parent / "smelt/wire/tflite/tflite.fbs").read_text())
ENUMS = set(re.findall(r"enum (\w+)", text))
TABLES = {table: re.findall(r"(\w+): *(\[?\w+\]?)(?: *= *[\w.-]+)? *(\([^)]*\))?;", body) for table, body in re.findall(r"table (\w+) \{(.*?)\n?\}", text, re.S)}
DTYPES = {"FLOAT32": "float32", "FLOAT16": "float16", "STRING": "object", "FLOAT64": "float64", "COMPLEX64": "complex64", "COMPLEX128": "complex128"}
BITS = {"FLOAT32": 32, "FLOAT16": 16, "INT32": 32, "UINT8": 8, "INT64": 64, "BOOL": 8, "INT16": 16, "COMPLEX64": 64, "INT8": 8, "FLOAT64": 64, "COMPLEX128": 128, "UINT64": 64,
        "UINT32": 32, "UINT16": 16, "INT4": 4, "BFLOAT16": 16, "INT2": 2, "UINT4": 4}


def dtype_name(number):
    name = names_of("TensorType")[number]
    return DTYPES.get(name, name.lower())


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(r[:1].upper() + r[1:] for r in rest)


def listed(v):
    return [] if v is None else [x.item() if hasattr(x, "item") else x for x in v]


def text_of(v):
    return "" if v is None else v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else v


def option(value, kind):
    if kind.strip("[]") in ENUMS and not kind.startswith("["):
        return dtype_name(value) if kind == "TensorType" else names_of(kind)[value]
    if kind == "[ubyte]":
        return text_of(bytes(listed(value)))
    if kind.startswith("["):
        return listed(value)
    if kind == "string":
        return text_of(value)
    return bool(value) if kind == "bool" else value


def options_of(op):
    """The options of an operator by the schema's names; None: it has none in the file."""
    table = op.builtinOptions2 if op.builtinOptions2 is not None else op.builtinOptions
    if table is None:
        return None
    fields = TABLES[type(table).__name__.removesuffix("T")]
    return {name: option(getattr(table, camel(name)), kind) for name, kind, more in fields if "deprecated" not in more}


# ---- what must be said


def tensor(t, sizes):
    out = {"name": text_of(t.name), "dtype": dtype_name(t.type), "shape": listed(t.shape), "has_rank": bool(t.hasRank), "buffer": t.buffer, "buffer_bytes": sizes[t.buffer],
           "is_variable": bool(t.isVariable)}
    bits = BITS.get(names_of("TensorType")[t.type])
    out["bytes"] = None if bits is None else -(-bits * int(np.prod(out["shape"], dtype=object)) // 8)
    if listed(t.shapeSignature):
        out["shape_signature"] = listed(t.shapeSignature)
    q = t.quantization
    if q is not None:
        stated = {"min": listed(q.min), "max": listed(q.max), "scale": listed(q.scale), "zero_point": listed(q.zeroPoint), "dimension": q.quantizedDimension}
        if q.detailsType == fb.QuantizationDetails.BlockwiseQuantization:
            stated["blockwise"] = {"scales": q.details.scales, "zero_points": q.details.zeroPoints, "block_size": q.details.blockSize}
        # Numbers that say nothing are no quantization.
        if stated["min"] or stated["max"] or stated["scale"] or "blockwise" in stated:
            out["quantization"] = stated
    s = t.sparsity
    if s is not None:
        out["sparsity"] = {"traversal_order": listed(s.traversalOrder), "block_map": listed(s.blockMap), "dimensions": [
            {"format": names_of("DimensionType")[d.format], "dense_size": d.denseSize, "segments": len(listed(d.arraySegments.values)) if d.arraySegments else 0,
             "indices": len(listed(d.arrayIndices.values)) if d.arrayIndices else 0} for d in s.dimMetadata]}
    return out


def operator(op, codes):
    code = codes[op.opcodeIndex]
    number = max(code.deprecatedBuiltinCode, code.builtinCode)
    custom = number == fb.BuiltinOperator.CUSTOM
    out = {"op": text_of(code.customCode) if custom else OPS[number], "custom": custom, "version": code.version, "inputs": listed(op.inputs), "outputs": listed(op.outputs)}
    if listed(op.intermediates):
        out["intermediates"] = listed(op.intermediates)
    if listed(op.mutatingVariableInputs):
        out["mutating_variable_inputs"] = [bool(x) for x in op.mutatingVariableInputs]
    if not custom:
        out["options"] = options_of(op)
    if listed(op.customOptions):
        out["custom_options_bytes"] = len(op.customOptions)
        if out["op"].startswith("Flex"):
            out["flex_op"] = out["op"][4:]
        elif out["op"] == "Mapped":
            out["options"] = {k: v for k, v in flexbuffers.Loads(bytes(op.customOptions)).items() if isinstance(v, (bool, int, float, str)) and len(str(v)) < 200}
    return out


def wanted(data, path):
    model = fb.ModelT.InitFromObj(fb.Model.GetRootAs(data, 0))
    buffers = [b.size if b.offset > 1 else len(listed(b.data)) for b in model.buffers]
    graphs = [{"name": text_of(g.name), "inputs": listed(g.inputs), "outputs": listed(g.outputs), "tensors": [tensor(t, buffers) for t in g.tensors or []],
               "operators": [operator(o, model.operatorCodes) for o in g.operators or []]} for g in model.subgraphs]
    out = {"file": str(path), "bytes": len(data), "version": model.version, "description": text_of(model.description), "subgraphs": graphs}
    out["signatures"] = [{"key": text_of(s.signatureKey), "subgraph": s.subgraphIndex, **{side: [{"name": text_of(m.name), "tensor": m.tensorIndex} for m in listed(maps)]
                          for side, maps in (("inputs", s.inputs), ("outputs", s.outputs))}} for s in model.signatureDefs or []]
    out["metadata"] = []
    for m in model.metadata or []:
        raw = bytes(listed(model.buffers[m.buffer].data)) if model.buffers[m.buffer].offset <= 1 else None
        if raw is None:
            b = model.buffers[m.buffer]
            raw = data[b.offset:b.offset + b.size]
        row = {"name": text_of(m.name), "buffer": m.buffer, "bytes": len(raw)}
        stripped = raw.rstrip(b"\0")
        if stripped and len(raw) <= 256 and all(32 <= c < 127 for c in stripped):
            row["text"] = stripped.decode()
        if row["name"] == "CONVERSION_METADATA":
            row["conversion"] = conversion_of(raw)
        out["metadata"].append(row)
    out["sizes"] = sizes(graphs, buffers, model)
    return out, buffers, model


def conversion_of(raw):
    c = meta.ConversionMetadataT.InitFromObj(meta.ConversionMetadata.GetRootAs(raw, 0))
    names = {kind: {v: k for k, v in vars(getattr(meta, kind)).items() if isinstance(v, int)} for kind in ("ModelType", "ModelOptimizationMode")}
    e, o = c.environment, c.options
    return {"tensorflow_version": text_of(e.tensorflowVersion), "api_version": e.apiVersion, "model_type": names["ModelType"][e.modelType], "model_hash": str(e.modelHash),
            "model_optimization_modes": [names["ModelOptimizationMode"][int(m)] for m in listed(o.modelOptimizationModes)], "allow_custom_ops": o.allowCustomOps,
            "enable_select_tf_ops": o.enableSelectTfOps, "force_select_tf_ops": o.forceSelectTfOps}


def sizes(graphs, buffers, model):
    read, kinds = set(), collections.defaultdict(lambda: {"count": 0, "versions": set(), "constant_bytes": 0, "output_bytes": 0})
    for g in graphs:
        for op in g["operators"]:
            k = kinds[op["op"], op["custom"]]
            k["count"] += 1
            k["versions"].add(op["version"])
            for t in op["inputs"]:
                b = g["tensors"][t]["buffer"] if t >= 0 else 0
                if b not in read:
                    read.add(b)
                    k["constant_bytes"] += buffers[b]
            k["output_bytes"] += sum(g["tensors"][t]["bytes"] or 0 for t in op["outputs"])
    rows = [{"op": op, "custom": custom, **k, "versions": sorted(k["versions"])} for (op, custom), k in kinds.items()]
    rows.sort(key=lambda r: (-r["constant_bytes"], -r["count"], r["op"], r["custom"]))
    first = {}
    for i, g in enumerate(graphs):
        for j, t in enumerate(g["tensors"]):
            if t["buffer_bytes"] and t["buffer"] not in first:
                first[t["buffer"]] = {"subgraph": i, "tensor": j, "name": t["name"], "bytes": t["buffer_bytes"]}
    return {"constant_bytes": sum(buffers[b] for b in first), "constant_buffers": len(first), "unread_bytes": sum(buffers[b] for b in first if b not in read),
            "metadata_bytes": sum(buffers[m.buffer] for m in model.metadata or []), "operators": rows, "largest_tensors": sorted(first.values(), key=lambda r: -r["bytes"])[:10]}


def differences(got, want, path=""):
    if isinstance(want, float) and isinstance(got, (int, float)):
        return [] if np.float32(got) == np.float32(want) or got == want else [f"{path}: {got}, wanted {want}"]
    if isinstance(want, float) and not np.isfinite(want):
        return [] if got is None else [f"{path}: {got}, wanted null"]
    if type(got) is not type(want):
        return [f"{path}: {got!r}, wanted {want!r}"]
    if isinstance(want, dict):
        out = [f"{path}: keys {sorted(set(got) ^ set(want))} are in one alone"] if set(got) != set(want) else []
        return out + [d for k in want if k in got for d in differences(got[k], want[k], f"{path}.{k}")]
    if isinstance(want, list):
        if len(got) != len(want):
            return [f"{path}: {len(got)} elements, wanted {len(want)}"]
        return [d for i, (g, w) in enumerate(zip(got, want)) for d in differences(g, w, f"{path}[{i}]")]
    return [] if got == want else [f"{path}: {got!r}, wanted {want!r}"]


def look(name, data, folder):
    path = folder / "model.tflite"
    path.write_bytes(data)
    p = subprocess.run([smelt, "show", path, "--json"], capture_output=True, timeout=60)
    if p.returncode != 0:
        check(name, False, p.stderr.decode())
        return
    got = json.loads(p.stdout)
    want, buffers, model = wanted(data, path)
    # An operator whose table the file leaves out has the schema's defaults.
    for g, w in zip(got["subgraphs"], want["subgraphs"]):
        for a, b in zip(g["operators"], w["operators"]):
            if "options" in b and b["options"] is None:
                table = re.sub("_", "", b["op"]).lower() + "options"
                (kind,) = [t for t in TABLES if t.lower() == table] or [None]
                b["options"] = {} if kind is None else {f: option(getattr(getattr(fb, kind + "T")(), camel(f)), k) for f, k, more in TABLES[kind] if "deprecated" not in more}
    # Where a buffer's bytes lie is held to the bytes.
    shown = got.pop("buffers")
    check(f"{name}: sizes of buffers", [b["bytes"] for b in shown] == buffers, f"{shown}")
    for i, b in enumerate(shown):
        inside = bytes(listed(model.buffers[i].data)) if model.buffers[i].offset <= 1 else None
        if b["bytes"] and inside is not None:
            check(f"{name}: place of buffer {i}", data[b["offset"]:b["offset"] + b["bytes"]] == inside, f"{b}")
        elif b["bytes"]:
            check(f"{name}: place of buffer {i}", b["offset"] == model.buffers[i].offset, f"{b}")
    wrong = differences(got, want)
    check(name, not wrong, "; ".join(wrong[:5]))


# ---- files


def collect(test):
    """The files that another test would run."""
    fake = types.ModuleType("lite_checks")
    fake.compare = lambda name, data, *more, **options: FILES.setdefault(f"{test}: {name}", bytes(data))
    fake.unsupported = []
    kept, argv, done = sys.modules.get("lite_checks"), sys.argv, checks.finish
    sys.modules["lite_checks"], sys.argv, checks.finish = fake, [test, smelt], lambda: None
    try:
        exec(compile((here / f"{test}.py").read_text(), test, "exec"), {"__name__": "__main__", "__file__": str(here / f"{test}.py")})
    finally:
        sys.argv, checks.finish = argv, done
        sys.modules.pop("lite_checks")
        if kept is not None:
            sys.modules["lite_checks"] = kept


def packed(model):
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def odd_files():
    m = Lite()  # blocks, a sparse tensor, ranges, an unread constant, a custom op, several graphs
    x = m.input([2, 64], "float32", signature=[-1, 64])
    scales = m.const(np.ones((4, 2), np.float16))
    w = m.tensor([4, 64], "int4", value=bytes(128))
    q = fb.QuantizationParametersT()
    q.detailsType, q.details = fb.QuantizationDetails.BlockwiseQuantization, fb.BlockwiseQuantizationT()
    q.details.scales, q.details.zeroPoints, q.details.blockSize = scales, -1, 32
    m.graph.tensors[w].quantization = q
    y = m.tensor([2, 4], "float32")
    m.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnectedOptions", keepNumDims=True)
    m.graph.operators[0].mutatingVariableInputs, m.graph.operators[0].intermediates = [False, False, True], [y]
    r = fb.QuantizationParametersT()
    r.min, r.max, r.scale, r.zeroPoint = [-1.5], [2.25], [0.1], [-3]
    m.graph.tensors[m.tensor([], "int8", value=b"\x07")].quantization = r
    sparse = m.tensor([2, 4], "int8", value=bytes([1, 2, 3]))
    s = fb.SparsityParametersT()
    s.traversalOrder, s.blockMap = [0, 1], []
    dense, rows = fb.DimensionMetadataT(), fb.DimensionMetadataT()
    dense.denseSize = 2
    rows.format = fb.DimensionType.SPARSE_CSR
    rows.arraySegmentsType, rows.arraySegments = fb.SparseIndexVector.Uint8Vector, fb.Uint8VectorT()
    rows.arrayIndicesType, rows.arrayIndices = fb.SparseIndexVector.Int32Vector, fb.Int32VectorT()
    rows.arraySegments.values, rows.arrayIndices.values = [0, 1, 3], [2, 0, 3]
    s.dimMetadata = [dense, rows]
    m.graph.tensors[sparse].sparsity = s
    code = fb.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = fb.BuiltinOperator.CUSTOM
    code.customCode, code.version = b"My\xffOp", 7
    m.model.operatorCodes.append(code)
    o = fb.OperatorT()
    o.opcodeIndex, o.inputs, o.outputs, o.customOptions = len(m.model.operatorCodes) - 1, [y], [m.tensor([2], "str")], [1, 2, 3]
    m.graph.operators.append(o)
    other = fb.SubGraphT()
    other.name, other.tensors, other.inputs, other.outputs, other.operators = b"other", [m.graph.tensors[x]], [0], [0], []
    m.model.subgraphs.append(other)
    m.model.description = "a description, ümlaut".encode()
    for name, value in ((b"min_runtime_version", b"1.5.0\0\0\0"), (b"bytes", b"\1\2")):
        b, d = fb.BufferT(), fb.MetadataT()
        b.data = np.frombuffer(value, np.uint8)
        d.name, d.buffer = name, len(m.model.buffers)
        m.model.buffers.append(b)
        m.model.metadata = (m.model.metadata or []) + [d]
    FILES["odd: all kinds of tensors"] = m.bytes([y])
    for width, value in enumerate((1, 300, 70000, 1 << 40)):
        m = Lite()  # options of a custom op: numbers as wide as the widest
        x = m.input([1], "float32")
        mapped = {"number": value, "below": -value, "half": 0.5, "tenth": 0.1 if width > 2 else 1.25, "yes": True, "no": False, "text": "ümlaut", "empty": "", "long": "x" * 300, "list": [1, 2],
                  "map": {"a": 1}, "nothing": None}
        y = m.op("CUSTOM", [x], [m.tensor([1], "float32")], custom="Mapped", custom_options=flexbuffers.Dumps(mapped))
        FILES[f"odd: options of a custom op {width}"] = m.bytes([y])
    m = Lite()  # as old writers leave it
    x = m.input([1], "float32")
    y = m.tensor([1], "float32")
    m.op("RELU", [x], [y])
    m.bytes([y])
    m.model.signatureDefs = None
    m.graph.name = None
    FILES["odd: without names"] = packed(m.model)


def converted():
    """By TensorFlow, in each of its modes."""
    weights = np.random.default_rng(3).standard_normal((3, 3, 3, 8)).astype(np.float32)
    dense = np.random.default_rng(4).standard_normal((8 * 36, 40)).astype(np.float32)

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 3])])
        def net(self, x):
            x = tf.nn.relu6(tf.nn.conv2d(x, weights, 1, "SAME") + 0.5)
            return {"y": tf.nn.softmax(tf.matmul(tf.reshape(x, [-1, 8 * 36]), dense))}

        @tf.function(input_signature=[tf.TensorSpec([3]), tf.TensorSpec([], tf.int32)])
        def loop(self, x, n):
            return {"y": tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.nn.relu(v) * 2), [0, x])[1]}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def flex(self, s):
            return {"y": tf.strings.length(s)}

    model = Model()

    def samples():
        for i in range(3):
            yield [np.random.default_rng(i).standard_normal((1, 6, 6, 3)).astype(np.float32)]

    def put(name, function, **options):
        c = tf.lite.TFLiteConverter.from_concrete_functions([getattr(model, function).get_concrete_function()], model)
        for k, v in options.items():
            if k in ("supported_ops", "supported_types"):
                setattr(c.target_spec, k, v)
            else:
                setattr(c, k, v)
        FILES[f"converted: {name}"] = c.convert()
    ops, default = tf.lite.OpsSet, {"optimizations": [tf.lite.Optimize.DEFAULT]}
    put("float", "net")
    put("loop", "loop")
    put("select ops", "flex", supported_ops=[ops.TFLITE_BUILTINS, ops.SELECT_TF_OPS])
    put("buffers outside", "net", _experimental_use_buffer_offset=True)
    put("dynamic", "net", **default)
    put("float16", "net", **default, supported_types=[tf.float16])
    put("int8", "net", **default, representative_dataset=samples, supported_ops=[ops.TFLITE_BUILTINS_INT8], inference_input_type=tf.uint8)
    put("int16x8", "net", **default, representative_dataset=samples, supported_ops=[ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8])


collect("lite_operators")
collect("lite_recurrent")
odd_files()
converted()
check("files", len(FILES) > 200, len(FILES))
import tempfile
with tempfile.TemporaryDirectory(prefix="smelt_lite_show_") as folder:
    for name, data in FILES.items():
        if only in name:
            look(name, data, pathlib.Path(folder))
print(f"{len(FILES)} files, operators of {len({o for o in OPS.values()})} known")
finish()
