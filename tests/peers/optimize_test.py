#!/usr/bin/env python3
"""Models that smelt optimize wrote, as TensorFlow runs them: optimize_test.py SMELT [MODELS GOLDENS] [NAME...] [--flags=FLAGS]

Each recorded model of tests/models, or each of MODELS (corpus.py says what GOLDENS holds), is optimized. smelt must answer as recorded; TensorFlow must load what was written, into a session (TensorFlow 1, the C++ loader)
and by tf.saved_model.load, and answer as recorded, too. Both loaders are left out where TensorFlow does not run the model itself. --flags: more flags of smelt optimize."""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from checks import call, check, finish

v1 = tf.compat.v1
TESTS = pathlib.Path(__file__).resolve().parent.parent / "models"


def records(log):
    for raw in tf.data.TFRecordDataset(str(log)).as_numpy_iterator():
        predict = prediction_log_pb2.PredictionLog.FromString(raw).predict_log
        yield predict.request.model_spec.signature_name, {k: tf.make_ndarray(v) for k, v in predict.request.inputs.items()}, {k: tf.make_ndarray(v) for k, v in predict.response.outputs.items()}


def by_session(path, tags, asked):
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        meta = v1.saved_model.load(session, tags, str(path))
        for signature, inputs, _ in asked:
            entry = meta.signature_def[signature]
            yield session.run({k: i.name for k, i in entry.outputs.items() if i.name}, {entry.inputs[k].name: v for k, v in inputs.items()})


def by_loader(path, tags, asked):
    loaded = tf.saved_model.load(str(path), tags)
    for signature, inputs, _ in asked:
        yield {k: v.numpy() for k, v in loaded.signatures[signature](**{k: tf.constant(v) for k, v in inputs.items()}).items()}


def near(want, got):
    if want.dtype.kind in "fc":
        return want.shape == got.shape and np.allclose(want, got, rtol=1e-3, atol=1e-4, equal_nan=True)
    return np.array_equal(want, got)


def asks(way, path, tags, asked, random):
    """Empty, or what is wrong."""
    try:
        for (signature, _, want), got in zip(asked, way(path, tags, asked)):
            for key in want:
                if key not in got or not (key in random or near(want[key], np.asarray(got[key]))):
                    return f"{signature}: {key} differs"
    except Exception as e:
        return f"{type(e).__name__}: {' '.join(str(e).split())[:400]}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smelt")
    parser.add_argument("models", nargs="?", type=pathlib.Path, default=TESTS)
    parser.add_argument("goldens", nargs="?", type=pathlib.Path, default=TESTS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--flags", default="", help="more flags of smelt optimize, as one word")
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_optimize_"))
    for log in sorted(args.goldens.glob("*.tfrecord")):
        name, source, out = log.stem, args.models / log.stem, work / log.stem
        if not source.is_dir() or (args.names and name not in args.names):
            continue
        facts = json.loads(log.with_suffix(".json").read_text()) if log.with_suffix(".json").exists() else {}
        random = {o for c in facts.get("cases", []) for o in c["random"]}
        tags = facts.get("tags", ["serve"])
        asked = [r for r in records(log) if not r[0].startswith("function:")]
        code, text = call("optimize", source, out, *args.flags.split())
        if facts.get("errors") and not asked:
            continue  # TensorFlow refuses the model
        check(f"{name}: optimized", code == 0 and "undone" not in text, text[-800:])
        if code:
            continue
        if asked or list(records(log)):
            code, text = call("replay", out, "--log", log, "--rtol", "1e-3", "--atol", "1e-4", *(["--shapes_only", *sorted(random)] if random else []))
            check(f"{name}: smelt answers", code == 0, text[-800:])
        for way in (by_session, by_loader):
            if asked and not asks(way, source, tags, asked, random):
                wrong = asks(way, out, tags, asked, random)
                check(f"{name}: TensorFlow answers ({way.__name__})", not wrong, wrong)
        shutil.rmtree(out)
    shutil.rmtree(work, ignore_errors=True)
    finish()


main()
