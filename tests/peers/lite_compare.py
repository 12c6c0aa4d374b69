"""Quantized .tflite files beside those of TensorFlow's converter, operator by operator: types, scales, zero points, constants."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from checks import check

NAMES = {v: k for k, v in schema.BuiltinOperator.__dict__.items() if isinstance(v, int)}


def operators(data):
    """[(name, options, tensors of inputs and outputs)] of the first subgraph; a tensor is (type, scales, zero points, constant)"""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    graph = model.subgraphs[0]

    def tensor(i):
        if i < 0:
            return None
        t = graph.tensors[i]
        q, data = t.quantization, model.buffers[t.buffer].data
        scales = np.array([]) if q is None or q.scale is None else np.asarray(q.scale)
        zeros = np.array([]) if q is None or q.scale is None else np.asarray(q.zeroPoint)
        return t.type, scales, zeros, None if data is None or len(data) == 0 else bytes(data)
    out = []
    for op in graph.operators:
        options = {k: v for k, v in (op.builtinOptions.__dict__ if op.builtinOptions else {}).items() if not isinstance(v, np.ndarray)}
        code = model.operatorCodes[op.opcodeIndex]
        options["version"] = code.version
        between = [tensor(i) for i in op.intermediates] if op.intermediates is not None else []
        out.append((NAMES[code.builtinCode], options, [tensor(i) for i in op.inputs], [tensor(i) for i in op.outputs] + between))
    return out


def runtime(data):
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    (text,) = [bytes(model.buffers[m.buffer].data) for m in model.metadata if m.name == b"min_runtime_version"]
    return [int(part) for part in text.rstrip(b"\0").split(b".")]


def differs(a, b, exact_constants):
    """What is different about two tensors; empty: nothing."""
    if a is None or b is None:
        return "" if a is b else "one is left out"
    if a[0] != b[0]:
        return f"types {a[0]} and {b[0]}"
    if len(a[1]) != len(b[1]):
        return f"{len(a[1])} and {len(b[1])} scales"
    if len(a[1]) and not np.allclose(a[1], b[1], rtol=1e-5):
        return f"scales {a[1][:4]} and {b[1][:4]}"
    if not np.array_equal(a[2], b[2]):
        return f"zero points {a[2][:4]} and {b[2][:4]}"
    if (a[3] is None) != (b[3] is None):
        return "one is constant"
    if exact_constants and a[3] is not None and a[0] in (schema.TensorType.INT8, schema.TensorType.INT16):
        x, y = (np.frombuffer(c, np.int8 if a[0] == schema.TensorType.INT8 else np.int16).astype(int) for c in (a[3], b[3]))
        if x.shape != y.shape or np.abs(x - y).max() > 1 or np.mean(x != y) > 0.01:
            return "other constants"
    return ""


def compare_operators(name, ours, theirs, mode):
    # TensorFlow computes the shapes that smelt states with one free size. UNPACK: how states begin.
    mine, his = ([o for o in operators(x) if o[0] not in ("SHAPE", "STRIDED_SLICE", "PACK", "UNPACK")] for x in (ours, theirs))
    if mode == "float16":
        # What makes weights float again comes first, in any order.
        mine, his = (sorted((o for o in x if o[0] == "DEQUANTIZE"), key=lambda o: (len(o[2][0][3]), o[2][0][3])) + [o for o in x if o[0] != "DEQUANTIZE"] for x in (mine, his))
    if [o[0] for o in mine] != [o[0] for o in his]:
        # Those that do not wait for each other may stand in any order.
        mine, his = (sorted(x, key=lambda o: (o[0], [(t[0], [f"{v:.4g}" for v in t[1][:4]]) for t in o[2] + o[3] if t])) for x in (mine, his))
    same = [o[0] for o in mine] == [o[0] for o in his]
    check(f"{name}: operators", same, f"{[o[0] for o in mine]} beside {[o[0] for o in his]}")
    if not same:
        return
    for i, (a, b) in enumerate(zip(mine, his)):
        # TensorFlow's file has one version of an operator for all its uses.
        check(f"{name}: version of {a[0]} {i}", a[1]["version"] <= b[1]["version"], f"{a[1]} beside {b[1]}")
        a[1]["version"] = b[1]["version"]
        check(f"{name}: options of {a[0]} {i}", a[1] == b[1], f"{a[1]} beside {b[1]}")
        if a[0] == "UNIDIRECTIONAL_SEQUENCE_LSTM" and a[2][19][0] == schema.TensorType.INT16:
            # TensorFlow's calibration sees the cell between runs alone, and saturates what is larger within; smelt's sees each step.
            check(f"{name}: scale of the cell of {i}", a[2][19][1][0] in [b[2][19][1][0] * 2 ** k for k in range(5)], f"{a[2][19][1]} beside {b[2][19][1]}")
            a[2][19] = b[2][19]
            a[2][18] = a[2][18][:3] + (None,)
        tensors = zip(a[2] + a[3], b[2] + b[3]) if a[0] != "RESHAPE" else zip(a[2][:1] + a[3], b[2][:1] + b[3])
        for k, (x, y) in enumerate(tensors):
            check(f"{name}: tensor {k} of {a[0]} {i}", not differs(x, y, True), differs(x, y, True))
