#!/usr/bin/env python3
"""Models that smelt optimize wrote beside what they came from, both run by TensorFlow: optimized.py SMELT MODELS LOGS [NAME...] [--rounds 7]

MODELS/NAME (or MODELS/NAME/saved_model) is a SavedModel; its requests are those of LOGS/NAME.tfrecord, or of MODELS/NAME/inputs_1.npz. For each signature that is asked: the best time of a request on one thread, before and after, in turns
in one process, and the ratio after / before. Needs tensorflow and tensorflow-serving-api."""
import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2


def requests(model, log):
    """The first request of each signature."""
    found = {}
    if log.exists():
        for raw in tf.data.TFRecordDataset(str(log)).as_numpy_iterator():
            request = prediction_log_pb2.PredictionLog.FromString(raw).predict_log.request
            found.setdefault(request.model_spec.signature_name, {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()})
    elif (model / "inputs_1.npz").exists():
        found["serving_default"] = {k: tf.constant(v) for k, v in np.load(model / "inputs_1.npz").items()}
    return {k: v for k, v in found.items() if not k.startswith("function:")}


def best(functions, inputs, rounds):
    """Seconds of a call of each, the least of the rounds."""
    def seconds(f, calls):
        begin = time.perf_counter()
        for _ in range(calls):
            f(**inputs)
        return (time.perf_counter() - begin) / calls

    for f in functions:
        f(**inputs)
    calls = max(1, int(0.15 / max(seconds(functions[0], 1), 1e-5)))
    times = [[seconds(f, calls) for f in functions] for _ in range(rounds)]
    return [min(t[i] for t in times) for i in range(len(functions))]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("logs", type=pathlib.Path), ap.add_argument("names", nargs="*"), ap.add_argument("--rounds", type=int, default=7)
    a = ap.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    ratios = {}
    print(f"{'model':28} {'signature':24} {'before ms':>10} {'after ms':>10} {'after/before':>12}")
    for folder in sorted(p for p in a.models.iterdir() if p.is_dir() and (not a.names or p.name in a.names)):
        source = folder / "saved_model" if (folder / "saved_model").is_dir() else folder
        asked = requests(folder, a.logs / f"{folder.name}.tfrecord")
        if not asked or not ((source / "saved_model.pb").exists() or (source / "saved_model.pbtxt").exists()):
            continue
        with tempfile.TemporaryDirectory(prefix="smelt_optimized_") as out:
            done = subprocess.run([a.smelt, "optimize", str(source), out + "/model"], capture_output=True, text=True)
            if done.returncode:
                print(f"{folder.name:28} smelt: {done.stderr.strip()[-200:]}")
                continue
            try:
                loaded = [tf.saved_model.load(str(p)) for p in (source, out + "/model")]
                for signature, inputs in asked.items():
                    before, after = best([m.signatures[signature] for m in loaded], inputs, a.rounds)
                    ratios[folder.name, signature] = after / before
                    print(f"{folder.name:28} {signature:24} {before * 1e3:10.3f} {after * 1e3:10.3f} {after / before:12.3f}", flush=True)
            except Exception as e:  # a model that TensorFlow does not load, or a signature that it does not run
                print(f"{folder.name:28} TensorFlow: {type(e).__name__}: {' '.join(str(e).split())[:120]}")
    print(f"geometric mean of {len(ratios)}: {math.exp(sum(map(math.log, ratios.values())) / len(ratios)):.3f}, worst {max(ratios.values()):.3f}")


main()
