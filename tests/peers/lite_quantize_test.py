#!/usr/bin/env python3
"""Quantized .tflite files beside those of TensorFlow's converter: lite_quantize_test.py SMELT [FOLDER]

Two classifiers of scikit-learn's digits (tools/make_digits.py; FOLDER keeps them), LSTMs, loops and branches are exported in every mode by both, calibrated with the same samples. The files are compared operator by
operator (types, scales, zero points, constants), and by what LiteRT answers: accuracy within 0.2 points of float, and not below that of TensorFlow's file."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from tensorflow_serving.apis import prediction_log_pb2

from checks import call, check, finish
from lite_compare import compare_operators, runtime

here = pathlib.Path(__file__).resolve().parent
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_quantize_"))
digits = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else work / "digits"
MODES = {  # smelt's flags
    "float": [], "float16": ["--quantize", "float16"], "dynamic": ["--quantize", "dynamic"], "int8": ["--quantize", "int8"],
    "int8 whole": ["--quantize", "int8", "--only_integer", "--inference_input_type", "int8", "--inference_output_type", "int8"], "int16x8": ["--quantize", "int16x8"],
}

if not (digits / "mlp.tfrecord").exists():
    made = subprocess.run([sys.executable, here.parent.parent / "tools" / "make_digits.py", str(digits)], capture_output=True, text=True)
    check("training", made.returncode == 0, made.stderr[-1500:])
labels = np.array(json.loads((digits / "labels.json").read_text()))


def records(path):
    logs = [prediction_log_pb2.PredictionLog.FromString(raw).predict_log for raw in tf.compat.v1.io.tf_record_iterator(str(path))]
    return (np.concatenate([tf.make_ndarray(log.request.inputs["image"]) for log in logs]), np.concatenate([tf.make_ndarray(log.response.outputs["logits"]) for log in logs]))


def calibration(model):
    """What smelt reads from the file too."""
    from tensorflow.compiler.mlir.quantization.tensorflow.python import representative_dataset as rd
    loaded = rd.TfRecordRepresentativeDatasetLoader({"serving_default": rd_file(model)}).load()
    return [sample["image"] for sample in loaded["serving_default"]]


def rd_file(model):
    from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2
    return quantization_options_pb2.RepresentativeDatasetFile(tfrecord_file_path=str(digits / f"{model}.calibration.tfrecord"))


def by_tensorflow(model, mode):
    # From the SavedModel TensorFlow's converter would write no weights: Keras 3 saves two handles of each variable.
    loaded = tf.saved_model.load(str(digits / model))
    frozen = convert_variables_to_constants_v2(loaded.signatures["serving_default"])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen], loaded)
    if mode != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if mode == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if mode.startswith("int"):
        data = calibration(model)
        converter.representative_dataset = lambda: ([np.asarray(d)] for d in data)
    if mode == "int8 whole":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    if mode == "int16x8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
    return converter.convert()


def answers(data, images):
    interpreter = Interpreter(model_content=data)
    (info,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero = info["quantization"]
    interpreter.resize_tensor_input(info["index"], images.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(info["index"], images if not scale else np.clip(np.round(images / scale) + zero, -128, 127).astype(info["dtype"]))
    interpreter.invoke()
    got = interpreter.get_tensor(out["index"]).astype(np.float64)
    scale, zero = out["quantization"]
    return got if not scale else (got - zero) * scale


def keras_lstm():
    """Sequences through an LSTM and a product, from Keras 2, whose LSTMs TensorFlow's converter fuses."""
    import tf_keras
    for seed, (steps, depth, cells, all_steps) in enumerate([(6, 5, 7, True), (9, 12, 16, False), (20, 8, 24, True)]):
        name = f"lstm {steps} {depth} {cells}"
        tf_keras.utils.set_random_seed(seed)
        model = tf_keras.Sequential([tf_keras.layers.Input((steps, depth), batch_size=1), tf_keras.layers.LSTM(cells, return_sequences=all_steps), tf_keras.layers.Dense(3)])
        run = tf.function(lambda x: {"y": model(x)}, input_signature=[tf.TensorSpec((1, steps, depth), name="x")])
        random = np.random.default_rng(seed)
        # One sample calibrates: TensorFlow's files keep states from one run to the next, smelt's begin anew.
        data = [random.standard_normal((1, steps, depth)).astype(np.float32)]
        folder, samples, path = work / f"lstm_{seed}", work / f"lstm_{seed}.npz", work / f"lstm_{seed}.tflite"
        tf.saved_model.save(model, str(folder), signatures=run)
        np.savez(samples, x=np.concatenate(data))
        wanted = np.stack([run(tf.constant(d))["y"].numpy() for d in data])

        def answers_of(file):
            interpreter = Interpreter(model_content=file)
            interpreter.allocate_tensors()
            out = []
            for d in data:
                interpreter.reset_all_variables()
                interpreter.set_tensor(interpreter.get_input_details()[0]["index"], d)
                interpreter.invoke()
                out.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
            return np.stack(out)

        for mode in "dynamic", "int8", "int16x8":
            code, text = call("lite", folder, path, "--quantize", mode, *(["--representative", samples] if "int" in mode else []))
            check(f"{name} {mode}: export", code == 0, text)
            if code != 0:
                continue
            ours = path.read_bytes()
            loss = lambda got: np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
            mine = loss(answers_of(ours))
            if mode != "int8":  # TensorFlow refuses LSTMs in int16x8, and leaves these small weights float
                print(f"{name} {mode}: loss {mine:.4f}")
                check(f"{name} {mode}: loss", mine < 0.03, f"{mine}")
                continue
            converter = tf.lite.TFLiteConverter.from_concrete_functions([run.get_concrete_function()], model)
            converter.optimizations, converter.representative_dataset = [tf.lite.Optimize.DEFAULT], lambda: ([d] for d in data)
            theirs = converter.convert()
            his = loss(answers_of(theirs))
            print(f"{name} {mode}: loss {mine:.4f} beside TensorFlow's {his:.4f}; {len(ours)} bytes beside {len(theirs)}")
            check(f"{name} {mode}: loss", mine <= max(1.05 * his, 0.02), f"{mine} beside {his}")
            compare_operators(f"{name} {mode}", ours, theirs, mode)


def picked_elements():
    """What is gathered of constants: these become int8, and only what is picked floats again."""
    table = tf.constant(np.random.default_rng(5).standard_normal((300, 16)).astype(np.float32))

    def function_of(fn):
        return tf.function(lambda i: {"y": fn(i)}, input_signature=[tf.TensorSpec((1, 5), tf.int32, name="i")], autograph=False)

    for name, fn in [("rows", lambda i: tf.gather(table, i)), ("columns", lambda i: tf.gather(table, i, axis=1)), ("sums", lambda i: tf.reduce_sum(tf.gather(table, i) * 2.0, 1))]:
        run = function_of(fn)
        holder = tf.Module()
        holder.run = run
        folder, path = work / f"picked_{name}", work / f"picked_{name}.tflite"
        tf.saved_model.save(holder, str(folder), signatures=run)
        code, text = call("lite", folder, path, "--quantize", "dynamic")
        check(f"picked {name}: export", code == 0, text)
        if code != 0:
            continue
        converter = tf.lite.TFLiteConverter.from_concrete_functions([run.get_concrete_function()], holder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        ours, theirs, got = path.read_bytes(), converter.convert(), []
        for file in ours, theirs:
            interpreter = Interpreter(model_content=file)
            interpreter.allocate_tensors()
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[0, 3, 15, 7, 7]], np.int32))
            interpreter.invoke()
            got.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        check(f"picked {name}: answers", np.allclose(*got, rtol=0, atol=1e-5), f"{np.abs(got[0] - got[1]).max()} apart")
        check(f"picked {name}: bytes", len(ours) <= len(theirs), f"{len(ours)} beside {len(theirs)}")
        compare_operators(f"picked {name}", ours, theirs, "dynamic")


def squares():
    """Square has no kernel of int8, and is a product there that LiteRT runs; TensorFlow's converter leaves it float."""
    data = [np.random.default_rng(7).standard_normal((1, 4, 4, 3)).astype(np.float32) for _ in range(8)]
    run = tf.function(lambda x: {"y": tf.square(x)}, input_signature=[tf.TensorSpec((1, 4, 4, 3), name="x")])
    holder = tf.Module()
    holder.run = run
    folder, samples, path = work / "square", work / "square.npz", work / "square.tflite"
    tf.saved_model.save(holder, str(folder), signatures=run)
    np.savez(samples, x=np.concatenate(data))
    code, text = call("lite", folder, path, "--quantize", "int8", "--only_integer", "--representative", samples)
    check("square: export of integers alone", code == 0, text)
    if code == 0:
        got = np.stack([answers(path.read_bytes(), d[None])[0] for d in data])
        step = max(np.max(d * d) for d in data) / 255
        check("square: answers", np.abs(got - np.square(np.stack(data))).max() < 4 * step, f"{np.abs(got - np.square(np.stack(data))).max()} of {step}")


def bodies():
    """Loops and branches, whose bodies TensorFlow's converter quantizes as well: operators with their types, sizes, answers."""
    random = np.random.default_rng(8)
    w, v = (tf.constant(0.15 * random.standard_normal((48, 48)).astype(np.float32)) for _ in range(2))
    data = [random.standard_normal((1, 48)).astype(np.float32) for _ in range(16)]

    def turn(i, x):
        return i + 1, tf.tanh(tf.matmul(x, w))

    def turns(x, body=turn, n=4):
        return tf.while_loop(lambda i, _: i < n, body, (0, x))[1]

    def test_of_weights(x):
        return tf.while_loop(lambda i, x: tf.logical_and(i < 4, tf.reduce_sum(tf.tanh(tf.matmul(x, w))) < 100.), lambda i, x: (i + 1, 0.5 * x), (0, x))[1]

    def picked(i, x):
        return i + 1, tf.tanh(tf.matmul(x + tf.gather(v, [i]), w))
    cases = {
        "loop": turns, "loop by the same weights": lambda x: turns(tf.matmul(x, w)), "two loops of one body": lambda x: turns(turns(x) + 1),
        "weights that go through the loop": lambda x: tf.while_loop(lambda i, x, k: i < 4, lambda i, x, k: (i + 1, tf.tanh(tf.matmul(x, k)), k), (0, x, w))[1],
        "weights that turns change": lambda x: tf.while_loop(lambda i, x, k: i < 4, lambda i, x, k: (i + 1, tf.tanh(tf.matmul(x, k)), 0.5 * k), (0, x, w))[1],
        "loop in a loop": lambda x: turns(x, lambda i, x: (i + 1, tf.tanh(tf.matmul(turns(x), v)))), "condition": test_of_weights, "rows of a table": lambda x: turns(x, picked),
        "branches": lambda x: tf.cond(x[0, 0] > 0, lambda: tf.matmul(x, w), lambda: tf.tanh(tf.matmul(x, v))),
    }

    def answers_of(file):
        interpreter = Interpreter(model_content=file)
        interpreter.allocate_tensors()
        out = []
        for d in data:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], d)
            interpreter.invoke()
            out.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        return np.concatenate(out)

    def tensors_read(file):
        """What operators read, of all subgraphs: their names and the types of their inputs."""
        from tensorflow.lite.python import schema_py_generated as schema
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(file, 0))
        names = {v: k for k, v in schema.BuiltinOperator.__dict__.items() if isinstance(v, int)}
        return {(names[model.operatorCodes[op.opcodeIndex].builtinCode], *(int(graph.tensors[i].type) for i in op.inputs if i >= 0)) for graph in model.subgraphs for op in graph.operators} - {("RESHAPE", 2, 2), ("EXPAND_DIMS", 2, 2)}

    for number, (case, fn) in enumerate(cases.items()):
        run = tf.function(lambda x: {"y": fn(x)}, input_signature=[tf.TensorSpec((1, 48), name="x")], autograph=False)
        holder = tf.Module()
        holder.run = run
        folder, samples, path = work / f"body_{number}", work / f"body_{number}.npz", work / f"body_{number}.tflite"
        tf.saved_model.save(holder, str(folder), signatures=run)
        np.savez(samples, x=np.concatenate(data))
        wanted = np.concatenate([run(tf.constant(d))["y"].numpy() for d in data])
        for mode in "float16", "dynamic", "int8", "int16x8":
            name = f"{case}, {mode}"
            code, text = call("lite", folder, path, "--quantize", mode, *(["--representative", samples] if "int" in mode else []))
            check(f"{name}: export", code == 0, text)
            if code != 0:
                continue
            ours = path.read_bytes()
            loss = lambda got: np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
            mine = loss(answers_of(ours))
            if mode == "int16x8":  # TensorFlow's converter refuses loops and branches
                print(f"{name}: loss {mine:.5f}")
                check(f"{name}: loss", mine < 0.05, f"{mine}")
                continue
            converter = tf.lite.TFLiteConverter.from_concrete_functions([run.get_concrete_function()], holder)
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            if mode == "float16":
                converter.target_spec.supported_types = [tf.float16]
            if mode == "int8":
                converter.representative_dataset = lambda: ([d] for d in data)
            theirs = converter.convert()
            his = loss(answers_of(theirs))
            print(f"{name}: loss {mine:.5f} beside TensorFlow's {his:.5f}; {len(ours)} bytes beside {len(theirs)}")
            check(f"{name}: bytes", len(ours) <= len(theirs), f"{len(ours)} beside {len(theirs)}")
            if case in ("branches", "weights that turns change"):
                # TensorFlow's leaves weights of branches outside of them, in float, and multiplies by others with BATCH_MATMUL.
                check(f"{name}: loss", mine <= max(1.1 * his, {"float16": 1e-3, "dynamic": 0.02, "int8": 0.03}[mode]), f"{mine} beside {his}")
                continue
            check(f"{name}: loss", mine <= 1.1 * his + 1e-4, f"{mine} beside {his}")
            mine, his = tensors_read(ours), tensors_read(theirs)
            # TensorFlow's passes halves that are floats again into a loop.
            check(f"{name}: what operators read", mode == "float16" or mine == his, f"{mine} beside {his}")


for model in "cnn", "mlp":
    images, want = records(digits / f"{model}.tfrecord")
    before = 100 * np.mean(want.argmax(1) == labels)
    for mode, flags in MODES.items():
        path = work / f"{model}_{mode.replace(' ', '_')}.tflite"
        samples = ["--representative", digits / f"{model}.calibration.tfrecord"] if "int" in mode else []
        code, text = call("lite", digits / model, path, *flags, *samples)
        check(f"{model} {mode}: export", code == 0, text)
        if code != 0:
            continue
        ours, theirs = path.read_bytes(), by_tensorflow(model, mode)
        got, other = answers(ours, images), answers(theirs, images)
        after, beside = (100 * np.mean(x.argmax(1) == labels) for x in (got, other))
        print(f"{model} {mode}: {after:.2f} % beside float's {before:.2f} and TensorFlow's {beside:.2f}; {len(ours)} bytes beside {len(theirs)}")
        check(f"{model} {mode}: accuracy", after >= before - 0.2, f"{after:.2f} beside {before:.2f}")
        check(f"{model} {mode}: accuracy beside TensorFlow's file", after >= beside, f"{after:.2f} beside {beside:.2f}")
        check(f"{model} {mode}: bytes", len(ours) <= len(theirs), f"{len(ours)} beside {len(theirs)}")
        # TensorFlow states that of the float file for int16x8.
        check(f"{model} {mode}: least runtime", mode == "int16x8" or runtime(ours) <= runtime(theirs), f"{runtime(ours)} beside {runtime(theirs)}")
        compare_operators(f"{model} {mode}", ours, theirs, mode)

keras_lstm()
picked_elements()
squares()
bodies()
finish()
