#!/usr/bin/env python3
"""Models of the benchmark suite, quantized by smelt lite and by TensorFlow's converter, in LiteRT beside the float model: lite_quantized.py SMELT SUITE [NAME...] [--modes int8,...] [--markdown FILE]

SUITE/NAME is a folder of the suite (saved_model, inputs_B.npz, outputs_B.npz); "digits" is the CNN of tools/make_digits.py, which is trained first. Both converters calibrate with the same 8 samples. For each mode: how far LiteRT's answers are from TensorFlow's
float ones, root mean square by that of the answers, of both files, and their bytes. "int8 whole" has int8 inputs and outputs, where these are numbers. Needs bench/requirements.txt and ai-edge-litert."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np

MODES = ["float16", "dynamic", "int8", "int8 whole", "int16x8"]
CONVERT = r"""
import os, sys
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
path, out, mode, samples = sys.argv[1:5]
loaded = tf.saved_model.load(path)
# From the SavedModel TensorFlow's converter may write no weights: Keras 3 saves two handles of each variable.
frozen = convert_variables_to_constants_v2(loaded.signatures['serving_default'])
converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen], loaded)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
if mode == 'float16':
    converter.target_spec.supported_types = [tf.float16]
if mode.startswith('int'):
    data = np.load(samples)
    names = [t.name.split(':')[0] for t in frozen.inputs]
    rows = len(data[data.files[0]])
    converter.representative_dataset = lambda: ([data[n][i:i + 1] for n in names] for i in range(rows))
if mode == 'int8 whole':
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.inference_input_type = converter.inference_output_type = tf.int8
if mode == 'int16x8':
    converter.target_spec.supported_ops = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]
open(out, 'wb').write(converter.convert())
"""
RUN = r"""
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
path, inputs, out = sys.argv[1:4]
data, got = np.load(inputs), {}
interpreter = Interpreter(model_path=path)
interpreter.allocate_tensors()
runner = interpreter.get_signature_runner('serving_default')
details, results = runner.get_input_details(), runner.get_output_details()
def steps(value, detail):
    scale, zero = detail['quantization']
    return value if not scale else np.clip(np.round(value / scale) + zero, -128, 127).astype(detail['dtype'])
def reals(value, detail):
    scale, zero = detail['quantization']
    return value if not scale else (value.astype(np.float32) - zero) * np.float32(scale)
for i in range(len(data[data.files[0]])):
    interpreter.reset_all_variables()
    answer = runner(**{k: steps(data[k][i:i + 1], details[k]) for k in data.files})
    for k, v in answer.items():
        got.setdefault(k, []).append(reals(v, results[k]))
np.savez(out, **{k: np.concatenate(v) for k, v in got.items()})
"""


def python(code, *args):
    p = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=3600)
    return "" if p.returncode == 0 else ((p.stderr or p.stdout).strip().splitlines() or [f"ended by signal {-p.returncode}"])[-1][:160]


def make_digits(folder):
    """The CNN of tools/make_digits.py as a folder of the suite."""
    import shutil
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    tool = pathlib.Path(__file__).resolve().parent.parent / "tools" / "make_digits.py"
    subprocess.run([sys.executable, tool, str(folder / "made")], check=True, capture_output=True)
    shutil.move(folder / "made" / "cnn", folder / "saved_model")
    logs = [prediction_log_pb2.PredictionLog.FromString(raw).predict_log for raw in tf.compat.v1.io.tf_record_iterator(str(folder / "made" / "cnn.tfrecord"))]
    np.savez(folder / "inputs_8.npz", image=np.concatenate([tf.make_ndarray(log.request.inputs["image"]) for log in logs])[:8])
    np.savez(folder / "outputs_8.npz", logits=np.concatenate([tf.make_ndarray(log.response.outputs["logits"]) for log in logs])[:8])


def loss(got_path, wanted):
    got = np.load(got_path)
    values = list(got.files)
    worst = 0.0
    for k, w in wanted.items():
        # One that has other keys has its outputs in order.
        g = got[k] if k in values else got[sorted(values)[sorted(wanted).index(k)]]
        worst = max(worst, float(np.linalg.norm(g.astype(np.float64) - w) / max(np.linalg.norm(w), 1e-12)))
    return worst


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("smelt")
parser.add_argument("suite", type=pathlib.Path)
parser.add_argument("names", nargs="*", default=["digits", "mobilenet_v2", "lstm", "bert_small", "resnet50"])
parser.add_argument("--modes", default=",".join(MODES))
parser.add_argument("--converters", default="smelt,tensorflow", help="which are measured; TensorFlow's calibrates a large model for many minutes")
parser.add_argument("--markdown", type=pathlib.Path, help="write the table there, too")
args = parser.parse_args()
lines = ["| model | mode | smelt: loss | bytes | s | TensorFlow: loss | bytes | s |", "|---|---|---|---|---|---|---|---|"]
failed = False
for name in args.names:
    folder = args.suite / name
    if name == "digits" and not folder.exists():
        folder.mkdir(parents=True)
        make_digits(folder)
    inputs = folder / "inputs_8.npz"
    wanted = {k: v.astype(np.float64) for k, v in np.load(folder / "outputs_8.npz").items()}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for mode in args.modes.split(","):
            cells = []
            for who in "smelt", "tensorflow":
                if who not in args.converters.split(","):
                    cells += ["", "", ""]
                    continue
                file, answers = work / f"{who}.tflite", work / f"{who}.npz"
                start = time.time()
                if who == "smelt":
                    flags = ["--representative", inputs] if mode.startswith("int") else []
                    if mode == "int8 whole":
                        numbers = lambda path: "int8" if all(v.dtype == np.float32 for v in np.load(path).values()) else "float32"
                        flags += ["--inference_input_type", numbers(inputs), "--inference_output_type", numbers(folder / "outputs_8.npz")]
                    p = subprocess.run([args.smelt, "lite", folder / "saved_model", file, "--quantize", mode.split()[0], "--batch", "1", *flags], capture_output=True, text=True)
                    error = "" if p.returncode == 0 else (p.stderr.strip().splitlines() or ["?"])[-1][:160]
                else:
                    error = python(CONVERT, folder / "saved_model", file, mode, inputs)
                seconds = time.time() - start
                error = error or python(RUN, file, inputs, answers)
                failed = failed or (who == "smelt" and bool(error))
                cells += [error.removeprefix("<unknown>:0: error: ").split(". ")[0], "", ""] if error else [f"{loss(answers, wanted):.5f}", f"{file.stat().st_size:,}", f"{seconds:.1f}"]
            lines.append(f"| {name} | {mode} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
if args.markdown:
    args.markdown.write_text("\n".join(lines) + "\n")
sys.exit(failed)
