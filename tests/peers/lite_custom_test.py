#!/usr/bin/env python3
"""Select ops and custom ops of smelt lite against TensorFlow: lite_custom_test.py SMELT

Each model below is saved, and exported by TensorFlow's converter and by smelt, with select ops and with custom ops. The operators that are no builtins
must hold the same in both files: a NodeDef of the same op, inputs and attributes, or the same FlexBuffer. TensorFlow's package has no Flex delegate for
Python, so a delegate of a few lines stands for it: it gives the NodeDefs of files that are all select ops to TensorFlow, which must answer as the model
does. smelt must run TensorFlow's files and its own to the same answers."""
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.lite.python import schema_py_generated as schema

from checks import call, check, finish
from lite_checks import smelt

work = tempfile.mkdtemp(prefix="smelt_lite_custom_")
rng = np.random.default_rng(3)
# Larger than what is spelled out with builtins.
symmetric = rng.normal(size=(2, 40, 40)).astype(np.float32) / 20
symmetric = symmetric @ symmetric.transpose(0, 2, 1) + np.eye(40, dtype=np.float32)
raw = tf.raw_ops

# name: (function, inputs, ops that are no builtins in both files)
MODELS = {
    "linalg": (lambda x: {"chol": tf.linalg.cholesky(x), "inv": tf.linalg.inv(x, adjoint=True), "det": tf.linalg.det(x)}, symmetric,
               {"Cholesky", "MatrixInverse", "MatrixDeterminant"}),
    "several_outputs": (lambda x: dict(zip("qr", tf.linalg.qr(x, full_matrices=True))), symmetric, {"Qr"}),
    "text": (lambda x: {"s": tf.strings.join([tf.strings.as_string(x, precision=2, fill="0", width=9), tf.constant("m")], separator=" ")},
             rng.normal(size=[3, 2]).astype(np.float32), {"AsString", "StringJoin"}),
    "lists_of_ints": (lambda x: {"y": raw.Dilation2DBackpropInput(input=x, filter=tf.ones([2, 2, 2]), out_backprop=x[:, 1:, 1:] * 0.5, strides=[1, 1, 1, 1],
                                                                  rates=[1, 1, 1, 1], padding="VALID")},
                      rng.normal(size=[1, 4, 4, 2]).astype(np.float32), {"Dilation2DBackpropInput"}),
    "padded_int64": (lambda x: {"r": raw.MirrorPadGrad(input=x, paddings=tf.constant([[0, 0], [1, 1]], tf.int64), mode="REFLECT")},
                     rng.integers(-9, 9, [3, 6]), {"MirrorPadGrad"}),
    "floats": (lambda x: {"g": raw.FakeQuantWithMinMaxArgsGradient(gradients=x, inputs=x * 2.0, min=-1.5, max=2.25)},
               rng.normal(size=[2, 3, 5]).astype(np.float32), {"FakeQuantWithMinMaxArgsGradient"}),
    "lists_of_texts": (lambda x: {"d": raw.RaggedTensorToTensor(shape=[3, 3], values=x, default_value=-1.0, row_partition_tensors=[[0, 2, 2, 5]],
                                                                row_partition_types=["ROW_SPLITS"])},
                       rng.normal(size=[5]).astype(np.float32), {"RaggedTensorToTensor"}),
    "between_builtins": (lambda x: {"y": tf.nn.relu(tf.linalg.cholesky(x + 1.0) * 2.0)}, symmetric, {"Cholesky"}),
    "solved": (lambda x: {"y": tf.linalg.triangular_solve(x, x + 1.0, lower=False)}, symmetric, {"MatrixTriangularSolve"}),
}


def exported_by_tensorflow(folder, select):
    converter = tf.lite.TFLiteConverter.from_saved_model(folder)
    if select:
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    else:
        converter.allow_custom_ops = True
    return converter.convert()


def exported_by_smelt(name, folder, *flags):
    path = f"{folder}/{len(flags)}{flags[0][2:]}.tflite"
    code, text = call("lite", folder, path, *flags)
    check(f"{name} {flags[0]}", code == 0, text)
    with open(path, "rb") as file:
        return file.read()


def read(data):
    return schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(data, 0))


def customs(data):
    """Custom code and options of each operator that is no builtin."""
    model = read(data)
    out = []
    for op in (op for graph in model.subgraphs for op in graph.operators):
        code = model.operatorCodes[op.opcodeIndex].customCode
        if code:
            out.append((code.decode(), bytes(op.customOptions)))
    return out


def options_of_flex(options):
    """(op, NodeDef): a list of two texts, each behind its length."""
    root, kind, width = len(options) - 3, options[-2], options[-1]
    assert kind == 10 << 2 and width == 1, options[-8:]  # a vector of any types
    at = root - options[root]
    item_width = 1 << (kind & 3)
    texts = []
    for i in range(2):
        where = at + i * item_width
        where -= options[where]
        bytes_of_length = 1 << (options[at + 2 * item_width + i] & 3)
        length = int.from_bytes(options[where - bytes_of_length:where], "little")
        texts.append(options[where:where + length])
    return texts[0].decode(), node_def_pb2.NodeDef.FromString(texts[1])


def plain(node):
    """What a NodeDef says but where it came from."""
    return node.op, list(node.input), {k: v.SerializeToString(deterministic=True) for k, v in node.attr.items()}


def run_select_ops(data, inputs):
    """The answers of a file without builtins, its nodes run by TensorFlow."""
    model = read(data)
    graph, tensors = model.subgraphs[0], model.subgraphs[0].tensors
    def_ = graph_pb2.GraphDef()
    names = {}
    types = {v: k for k, v in {tf.float32: 0, tf.int32: 2, tf.int64: 4, tf.string: 5, tf.bool: 6}.items()}
    for i in graph.inputs:
        names[i] = f"in{i}"
        def_.node.add(name=names[i], op="Placeholder").attr["dtype"].type = types[tensors[i].type].as_datatype_enum
    for number, op in enumerate(graph.operators):
        _, node = options_of_flex(bytes(op.customOptions))
        inputs_of = []
        for i in op.inputs:
            if i not in names:
                names[i] = f"const{i}"
                const = def_.node.add(name=names[i], op="Const")
                dtype = types[tensors[i].type]
                bytes_ = bytes(model.buffers[tensors[i].buffer].data)
                shape = [] if tensors[i].shape is None else list(tensors[i].shape)
                if dtype == tf.string:
                    offsets = np.frombuffer(bytes_, np.int32, count=2 + int.from_bytes(bytes_[:4], "little"))[1:]
                    value = np.array([bytes_[a:b] for a, b in zip(offsets, offsets[1:])], object).reshape(shape)
                else:
                    value = np.frombuffer(bytes_, dtype.as_numpy_dtype).reshape(shape)
                const.attr["dtype"].type = dtype.as_datatype_enum
                const.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
            inputs_of.append(names[i])
        node.name = f"node{number}"
        del node.input[:]
        node.input.extend(inputs_of)
        def_.node.add().CopyFrom(node)
        for port, i in enumerate(op.outputs):
            names[i] = f"{node.name}:{port}"
    with_port = lambda name: name if ":" in name else f"{name}:0"
    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(def_, name=""), [])
    signature = model.signatureDefs[0]
    fetched = [wrapped.graph.get_tensor_by_name(with_port(names[t.tensorIndex])) for t in signature.outputs]
    run = wrapped.prune([wrapped.graph.get_tensor_by_name(with_port(names[t.tensorIndex])) for t in signature.inputs], fetched)
    values = run(*[tf.constant(inputs[t.name.decode()]) for t in signature.inputs])
    return {t.name.decode(): v.numpy() for t, v in zip(signature.outputs, values)}


def same(got, want):
    if isinstance(got, str) or set(got) != set(want):
        return False
    for k, w in want.items():
        g = got[k]
        if w.dtype == object:
            if [v.rstrip(b"\0") for v in np.ravel(g).tolist()] != np.ravel(w).tolist():
                return False
        elif g.shape != w.shape or not np.allclose(g, w, rtol=1e-4, atol=1e-4):
            return False
    return True


for name, (f, x, ops) in MODELS.items():
    folder = f"{work}/{name}"
    module = tf.Module()
    module.f = tf.function(f, input_signature=[tf.TensorSpec([None, *x.shape[1:]], x.dtype)])
    tf.saved_model.save(module, folder, signatures=module.f)
    want = {k: v.numpy() for k, v in module.f(tf.constant(x)).items()}
    theirs, ours = exported_by_tensorflow(folder, True), exported_by_smelt(name, folder, "--select_tf_ops")
    for file, data in (("TensorFlow's", theirs), ("smelt's", ours)):
        got = smelt(f"{name}_{file[0]}", data, {"x": x})
        check(f"{name}: smelt runs {file} select ops", same(got, want), got)
    nodes = lambda data: {code: plain(options_of_flex(o)[1]) for code, o in customs(data) if code[4:] in ops}
    check(f"{name}: the same select ops", {c[4:] for c in nodes(ours)} == ops and nodes(ours) == nodes(theirs), (nodes(ours), nodes(theirs)))
    forced = exported_by_smelt(name, folder, "--force_select_tf_ops")
    codes = [c for c, _ in customs(forced)]
    check(f"{name}: nothing but select ops", len(codes) == sum(len(g.operators) for g in read(forced).subgraphs) > 0, codes)
    got = run_select_ops(forced, {"x": x})
    check(f"{name}: TensorFlow runs the nodes", same(got, want), got)
    got = smelt(f"{name}_forced", forced, {"x": x})
    check(f"{name}: smelt runs the nodes", same(got, want), got)
    theirs, ours = exported_by_tensorflow(folder, False), exported_by_smelt(name, folder, "--allow_custom_ops")
    of_ops = lambda data: {code: options for code, options in customs(data) if code in ops}
    check(f"{name}: the same custom ops", set(of_ops(ours)) == ops and of_ops(ours) == of_ops(theirs), (of_ops(ours), of_ops(theirs)))

# An op that TensorFlow's converter gives to no delegate.
module = tf.Module()
module.f = tf.function(lambda x: {"y": tf.math.betainc(x, x, 0.5 * x)}, input_signature=[tf.TensorSpec([2, 3], tf.float32)])
tf.saved_model.save(module, f"{work}/betainc", signatures=module.f)
try:
    exported_by_tensorflow(f"{work}/betainc", True)
    check("TensorFlow has no select op Betainc", False)
except Exception as e:  # the converter's own class
    check("TensorFlow has no select op Betainc", "Custom ops: Betainc" in str(e), e)
code, text = call("lite", f"{work}/betainc", f"{work}/betainc.tflite", "--select_tf_ops")
check("smelt has none either", code == 1 and "list of select ops lacks it" in text and not os.path.exists(f"{work}/betainc.tflite"), text)
code, text = call("lite", f"{work}/betainc", f"{work}/betainc.tflite", "--select_tf_ops", "--allow_custom_ops")
check("a custom op then", code == 0, text)

finish()
