"""Files of smelt lite and of TensorFlow's converter side by side: what tests of both share."""
import os
import pathlib
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as fb

from checks import call, check

tf.get_logger().setLevel("ERROR")
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_pairs_"))
OPS = {v: k for k, v in vars(fb.BuiltinOperator).items() if isinstance(v, int)}


def operators(data):
    """[(subgraph, op, inputs, outputs)], tensors as (type, shape, scales, zero points, constant)"""
    model = fb.ModelT.InitFromObj(fb.Model.GetRootAs(data, 0))

    def operands(g, o):
        out = [tensor(g, i) for i in (o.inputs if o.inputs is not None else [])]
        # A sum and a product are the same either way around.
        return sorted(out, key=lambda t: t[4] is not None) if OPS[model.operatorCodes[o.opcodeIndex].builtinCode] in ("ADD", "MUL", "SQUARED_DIFFERENCE") else out

    def tensor(g, i):
        if i < 0:
            return None
        t = g.tensors[i]
        q, raw = t.quantization, model.buffers[t.buffer].data
        scales = () if q is None or q.scale is None else tuple(np.asarray(q.scale).tolist())
        zeros = () if not scales else tuple(np.asarray(q.zeroPoint).tolist())
        return t.type, tuple([] if t.shape is None else np.asarray(t.shape).tolist()), scales, zeros, None if raw is None or len(raw) == 0 else bytes(raw)
    return [[(OPS[max(model.operatorCodes[o.opcodeIndex].builtinCode, model.operatorCodes[o.opcodeIndex].deprecatedBuiltinCode)],
              operands(g, o), [tensor(g, i) for i in (o.outputs if o.outputs is not None else [])])
             for o in g.operators or []] for g in model.subgraphs], [[tensor(g, i) for i in g.inputs] for g in model.subgraphs][0]


def both(name, function, spec, flags=(), converter=lambda c: None, version=2):
    """smelt's file and TensorFlow's, of a converter of this version; a text where either refused."""
    module = tf.Module()
    module.f = tf.function(function, input_signature=spec if isinstance(spec, list) else [spec])
    folder = work / name
    tf.saved_model.save(module, str(folder), signatures=module.f)
    code, text = call("lite", folder, work / f"{name}.tflite", *flags)
    ours = (work / f"{name}.tflite").read_bytes() if code == 0 else text
    c = (tf.lite if version == 2 else tf.compat.v1.lite).TFLiteConverter.from_saved_model(str(folder))
    converter(c)
    try:
        theirs = c.convert()
    except Exception as e:
        theirs = f"{type(e).__name__}: {e}"
    return ours, theirs


def same(a, b):
    if a is None or b is None:
        return a is b
    return a[0] == b[0] and a[1] == b[1] and np.allclose(a[2], b[2], rtol=1e-5) and a[3] == b[3] and (a[4] is None) == (b[4] is None)


def equal_files(name, ours, theirs, exact=True):
    for who, data in (("smelt", ours), ("TensorFlow", theirs)):
        if isinstance(data, str):
            check(f"{name}: {who} writes it", False, data[:600])
            return
    (mine, inputs), (his, other) = operators(ours), operators(theirs)
    check(f"{name}: inputs", len(inputs) == len(other) and all(same(a, b) for a, b in zip(inputs, other)), f"{inputs} beside {other}")
    for g, (a, b) in enumerate(zip(mine, his)):
        key = lambda o: (o[0], str([t[1:4] for t in o[2] if t]))  # what does not depend on each other may run in any order
        a, b = sorted(a, key=key), sorted(b, key=key)
        check(f"{name}: operators of subgraph {g}", [o[0] for o in a] == [o[0] for o in b], f"{[o[0] for o in a]} beside {[o[0] for o in b]}")
        if [o[0] for o in a] == [o[0] for o in b] and exact:
            for x, y in zip(a, b):
                check(f"{name}: tensors of {x[0]}", len(x[1]) == len(y[1]) and all(same(s, t) for s, t in zip(x[1] + x[2], y[1] + y[2])), f"{x} beside {y}"[:900])
    check(f"{name}: subgraphs", len(mine) == len(his), f"{len(mine)} beside {len(his)}")


def setting(**options):
    return lambda c: [setattr(c.target_spec if hasattr(c.target_spec, k) else c, k, v) for k, v in options.items()]


def answers(data, *values, kernels=None):
    """LiteRT's, to values by input, without delegates."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=kernels or OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    for info, value in zip(sorted(interpreter.get_input_details(), key=lambda i: i["name"]), values):
        scale, zero = info["quantization"]
        if scale and info["dtype"] != np.float32:
            limits = np.iinfo(info["dtype"])
            value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
        interpreter.set_tensor(info["index"], value.astype(info["dtype"]))
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(o["index"])) for o in interpreter.get_output_details()]
