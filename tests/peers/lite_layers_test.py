#!/usr/bin/env python3
"""The report of smelt lite on what quantization adds to each layer, and layers left in float, beside LiteRT: lite_layers_test.py SMELT

What the report says of a file is what LiteRT shows of it; the layer that was spoilt on purpose is found, and --float_layers auto leaves it in float and reaches --max_loss in LiteRT."""
import json
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tensorflow.lite.python import schema_py_generated as schema

from checks import call, check, finish

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_layers_"))
random = np.random.default_rng(3)
NAMES = {v: k for k, v in schema.BuiltinOperator.__dict__.items() if isinstance(v, int)}


class Net(tf.Module):
    """Three convolutions and a product. Weights of the second have a large number each for a channel that is always zero: in int8 nothing is left of the others."""

    def __init__(self, spoilt):
        normal = lambda *shape: (random.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)
        first, second = normal(3, 3, 3, 16), normal(3, 3, 16, 16)
        first[..., 5] = 0
        if spoilt:
            second[:, :, 5, :] = 300 * np.sign(second[:, :, 5, :])
        self.first, self.second, self.third, self.dense = (tf.Variable(w) for w in (first, second, normal(3, 3, 16, 8), normal(8, 10)))

    @tf.function(input_signature=[tf.TensorSpec((None, 12, 12, 3), name="x")])
    def __call__(self, x):
        x = tf.nn.relu(tf.nn.conv2d(x, self.first, 1, "SAME", name="one"))
        x = tf.nn.relu(tf.nn.conv2d(x, self.second, 2, "SAME", name="two"))
        x = tf.nn.relu(tf.nn.conv2d(x, self.third, 1, "SAME", name="three"))
        return {"y": tf.matmul(tf.reduce_mean(x, [1, 2]), self.dense, name="four")}


# Convolutions and products of int8 weights are XNNPACK's, LiteRT's default.
MODES = {"int8": ["int8"], "int16x8": ["int16x8"], "dynamic": ["dynamic"], "dynamic4": ["dynamic", "--weight_bits", "4"]}


def answers(path, data, mode="int8"):
    resolver = OpResolverType.BUILTIN if mode.startswith(("dynamic", "int8")) else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=str(path), experimental_op_resolver_type=resolver)
    out = []
    for row in data:
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], row[None].shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], row[None])
        interpreter.invoke()
        out.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
    return np.stack(out).astype(np.float64)


def operators(path):
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))
    graph = model.subgraphs[0]
    return [(NAMES[model.operatorCodes[op.opcodeIndex].builtinCode], graph.tensors[op.outputs[0]].type) for op in graph.operators]


for spoilt in False, True:
    name = "spoilt" if spoilt else "sound"
    net, folder, samples = Net(spoilt), work / name, work / f"{name}.npz"
    tf.saved_model.save(net, str(folder), signatures=net.__call__)
    data = random.standard_normal((24, 12, 12, 3)).astype(np.float32)
    np.savez(samples, x=data)
    code, text = call("lite", folder, work / "float.tflite")
    check(f"{name}: float", code == 0, text)
    wanted = answers(work / "float.tflite", data)
    for mode, how in MODES.items():
        path, file = work / f"{name}_{mode}.tflite", work / f"{name}_{mode}.json"
        flags = ["--quantize", *how, "--representative", samples]
        code, text = call("lite", folder, path, *flags, "--report", file)
        check(f"{name} {mode}: report", code == 0, text)
        if code != 0:
            continue
        (report,) = json.loads(file.read_text())["signatures"]
        layers = {layer["name"]: layer for layer in report["layers"]}
        loss = lambda p: np.linalg.norm(answers(p, data, mode) - wanted) / np.linalg.norm(wanted)
        shown, said = loss(path), report["outputs"][0]["relative"]
        check(f"{name} {mode}: the loss in LiteRT", abs(shown - said) <= 0.03 * said + 1e-6, f"{shown}, said {said}")
        worst = layers[report["worst"][0]] if report["worst"] else None
        print(f"{name} {mode}: loss {said:.5f}, the worst is {worst and worst['name']} at {worst and worst['alone']['snr_db']} dB")
        if mode == "int8":
            for layer in report["layers"]:
                check(f"{name}: steps of {layer['name']}", layer["steps"] == 256 and 0 < layer["steps_used"] <= 256, str(layer))
        if not spoilt:
            check(f"{name} {mode}: no layer is bad", all(layer["alone"]["relative"] < (0.3 if mode == "dynamic4" else 0.05) for layer in report["layers"]), str(report["layers"]))
            continue
        # Weights of fewer than 1024 elements, as the first convolution's, stay float under dynamic.
        second = [layer["name"] for layer in report["layers"] if layer["op"] == "CONV_2D"][0 if mode.startswith("dynamic") else 1]
        check(f"{name} {mode}: the spoilt layer is the worst", worst is not None and worst["name"] == second and worst["weights"]["relative"] > 0, f"{report['worst']}, not {second}")
        # The claim about that layer in float is what LiteRT shows of such a file.
        alone = work / f"{name}_{mode}_alone.tflite"
        code, text = call("lite", folder, alone, "--quantize", *how, *([] if mode.startswith("dynamic") else ["--representative", samples]), "--float_layers", worst["name"])
        check(f"{name} {mode}: one layer in float", code == 0, text)
        if code == 0 and report["trial_samples"] == report["samples"]:
            check(f"{name} {mode}: its gain", abs(loss(alone) - worst["outputs_in_float"]["relative"]) <= 0.03 * loss(alone) + 1e-6, f"{loss(alone)}, said {worst['outputs_in_float']}")
        elif code == 0:
            check(f"{name} {mode}: its gain, on fewer samples", 0.5 < loss(alone) / worst["outputs_in_float"]["relative"] < 2, f"{loss(alone)}, said {worst['outputs_in_float']}")
        auto, file = work / f"{name}_{mode}_auto.tflite", work / f"{name}_{mode}_auto.txt"
        code, text = call("lite", folder, auto, *flags, "--float_layers", "auto", "--max_loss", "26dB", "--report", file)
        check(f"{name} {mode}: auto", code == 0, text)
        if code != 0:
            continue
        check(f"{name} {mode}: auto reaches the loss in LiteRT", loss(auto) <= 1.03 * 10 ** (-26 / 20), f"{loss(auto)}")
        check(f"{name} {mode}: auto leaves the spoilt layer in float", worst["name"] in file.read_text().split("the worst layers")[0], file.read_text())
        if mode == "int8":
            kinds = operators(auto)
            check(f"{name}: some layers stay integers", ("CONV_2D", schema.TensorType.INT8) in kinds and ("CONV_2D", schema.TensorType.FLOAT32) in kinds, str(kinds))

for flags, wanted in [(["--float_layers", "auto"], "--max_loss go together"), (["--float_layers", "auto", "--max_loss", "much"], "--max_loss wants"), (["--float_layers", "nobody"], "no layer that is quantized"),
                      (["--float_layers", "auto", "--max_loss", "0.1", "--only_integer"], "contradicts"), (["--float_layers", "auto", "--max_loss", "1e-9"], "the loss is")]:
    code, text = call("lite", work / "spoilt", work / "refused.tflite", "--quantize", "int8", "--representative", work / "spoilt.npz", *flags, *(["--inference_input_type", "int8"] if "1e-9" in flags else []))
    check(f"{flags}", code != 0 and wanted in text, text)
    check(f"{flags}: nothing is written", not (work / "refused.tflite").exists())
finish()
