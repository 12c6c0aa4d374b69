#!/usr/bin/env python3
"""Quantization of trained models: quantize_test.py SMELT [FOLDER]

Trains a small CNN and an MLP on scikit-learn's digits (tools/make_digits.py; FOLDER keeps them), quantizes each by every method, and measures
accuracy on images that neither training nor calibration saw. TensorFlow must load what was written. Needs tensorflow, scikit-learn."""
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

tf.get_logger().setLevel("ERROR")
from tensorflow_serving.apis import prediction_log_pb2

from checks import call, check, finish

here = pathlib.Path(__file__).resolve().parent
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_quantize_"))
digits = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else work / "digits"

METHODS = {  # name: (options, points of accuracy that may be lost)
    "static": ("quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 }", 1.0),
    "static, one scale": ("quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 } enable_per_channel_quantization: false", 1.0),
    "dynamic": ("quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 } min_num_elements_for_weights: 64", 0.5),
    "weight only": ("quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } min_num_elements_for_weights: 64", 0.3),
}
CALIBRATIONS = ["AVERAGE_MIN_MAX", "HISTOGRAM_PERCENTILE", "HISTOGRAM_MSE_MAX_FREQUENCY", "HISTOGRAM_MSE_SYMMETRIC"]


def logits(path):
    rows = []
    for raw in tf.compat.v1.io.tf_record_iterator(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(raw)
        rows.append(tf.make_ndarray(log.predict_log.response.outputs["logits"]))
    return np.concatenate(rows)


def images(path):
    logs = [prediction_log_pb2.PredictionLog.FromString(raw) for raw in tf.compat.v1.io.tf_record_iterator(str(path))]
    return np.concatenate([tf.make_ndarray(log.predict_log.request.inputs["image"]) for log in logs])


def size(folder):
    return sum(f.stat().st_size for f in (folder / "variables").iterdir())


if not (digits / "mlp.tfrecord").exists():
    made = subprocess.run([sys.executable, here.parent.parent / "tools" / "make_digits.py", str(digits)], capture_output=True, text=True)
    check("training", made.returncode == 0, made.stderr[-1500:])
labels = np.array(json.loads((digits / "labels.json").read_text()))


def quantize(model, name, options, samples):
    out = work / f"{model}_{name}".replace(" ", "_").replace(",", "")
    data = 'representative_datasets { key: "serving_default" value { tfrecord_file_path: "%s" } }' % (digits / f"{model}.calibration.tfrecord")
    code, text = call("convert", digits / model, out, "--converter_options_string",
                      "quantization_options { %s %s }" % (options, data if samples else ""))
    check(f"{model} {name}: convert", code == 0, text)
    answers = work / f"{out.name}.tfrecord"
    code, text = call("replay", out, "--log", digits / f"{model}.tfrecord", "--record", answers, "--shapes_only", "logits")
    check(f"{model} {name}: run", code == 0, text)
    return out, logits(answers)


for model in "cnn", "mlp":
    want = logits(digits / f"{model}.tfrecord")
    before = 100 * np.mean(want.argmax(1) == labels)
    check(f"{model} is trained", before > 95, before)
    print(f"{model}: float {before:.2f} % of {len(labels)} images, variables {size(digits / model)} bytes")
    variants = {k: (*v, k.startswith("static")) for k, v in METHODS.items()}
    variants |= {f"static by {c}": (METHODS["static"][0] + " calibration_options { calibration_method: CALIBRATION_METHOD_%s }" % c, 1.0, True)
                 for c in CALIBRATIONS}
    for name, (options, loss, samples) in variants.items():
        out, got = quantize(model, name, options, samples)
        after = 100 * np.mean(got.argmax(1) == labels)
        off = np.sqrt(np.mean((got - want) ** 2) / np.mean(want ** 2))
        print(f"  {name}: {after:.2f} % ({after - before:+.2f}), outputs off by {100 * off:.2f} %, variables {size(out)} bytes")
        check(f"{model} {name}: accuracy", before - after <= loss, f"{before} -> {after}")
        loaded = tf.saved_model.load(str(out))
        serve = loaded.signatures["serving_default"]
        batch = tf.constant(images(digits / f"{model}.tfrecord")[:50])
        # XlaConvV2 and XlaDotV2 run where XLA compiles the function.
        run = serve if name == "weight only" else tf.function(lambda image: serve(image=image), jit_compile=True)
        theirs = run(image=batch)["logits"].numpy()
        # A sum that rounds the other way moves by one step of a scale.
        check(f"{model} {name}: TensorFlow answers the same", np.max(np.abs(theirs - got[:50])) <= 0.02 * np.ptp(want),
              np.max(np.abs(theirs - got[:50])))

# What Keras exports restores each variable from two entries of the checkpoint.
import keras

x = np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
model.export(str(work / "keras"), verbose=False)
code, text = call("convert", work / "keras", work / "keras_int8", "--converter_options_string",
                  "quantization_options { %s }" % METHODS["weight only"][0])
check("Keras export: convert", code == 0, text)
np.save(work / "x.npy", x)
(name,) = tf.saved_model.load(str(work / "keras")).signatures["serving_default"].structured_input_signature[1]
code, text = call("run", work / "keras_int8", "--signature_def", "serving_default", "--inputs", f"{name}={work / 'x.npy'}")
check("Keras export: run", code == 0, text)
got = tf.saved_model.load(str(work / "keras_int8")).signatures["serving_default"](**{name: tf.constant(x)})["output_0"].numpy()
want = model(x).numpy()
check("Keras export: TensorFlow's answers", np.max(np.abs(got - want)) <= 0.02 * np.ptp(want), np.max(np.abs(got - want)))

finish()
