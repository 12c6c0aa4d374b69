#!/usr/bin/env python3
"""Tests against TensorFlow itself: run_all.py SMELT. What smelt writes TensorFlow reads, what TensorFlow writes smelt reads, same answers."""
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from checks import call, check, finish

here = pathlib.Path(__file__).resolve().parent
models = here.parent / "models"
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_peers_"))


def records(path):
    for raw in tf.compat.v1.io.tf_record_iterator(str(path)):
        log = prediction_log_pb2.PredictionLog()
        log.ParseFromString(raw)
        yield log


# smelt answers the fixtures as the installed TensorFlow does: they are made afresh by it.
fresh = work / "fresh"
fresh.mkdir()
made = subprocess.run([sys.executable, here.parent.parent / "tools" / "make_fixtures.py", str(fresh)], capture_output=True, text=True)
check("fixtures", made.returncode == 0, made.stderr[-1500:])
for log in sorted(fresh.glob("*.tfrecord")):
    code, out = call("replay", fresh / log.stem, "--log", log)
    check(f"fresh {log.stem}", code == 0, out)

# What smelt converts, TensorFlow loads: the graph imports, functions are instantiated, callables and signatures are the same.
for model, options, *flags in [("language_model", 'function_alias: "tpu_func"'), ("functions", 'function_alias: "leaf"'), ("functions", "jit_compile_functions: true"),
                               ("cnn", 'signature_name: "serving_default"'), ("loop", 'signature_name: "serving_default"', "--auto_place"),
                               ("half_plus_two_v1", 'signature_name: "serving_default"')]:
    where = work / f"converted_{model}_{len(list(work.iterdir()))}"
    code, out = call("convert", models / model, where, "--converter_options_string",
                     "tpu_functions { " + options + " } disable_default_optimizations: true", *flags)
    check(f"convert {model} {options}", code == 0, out)
    try:
        before, after = tf.saved_model.load(str(models / model)), tf.saved_model.load(str(where))
        same = sorted(before.signatures) == sorted(after.signatures) and sorted(dir(before)) == sorted(dir(after))
        graph = after.signatures["serving_default"].graph.as_graph_def()
        ops = {n.op for nodes in [graph.node] + [f.node_def for f in graph.library.function] for n in nodes}
        check(f"tensorflow loads converted {model}", same and "TPUPartitionedCall" in ops, sorted(ops))
    except Exception as e:
        check(f"tensorflow loads converted {model}", False, f"{e!r} {getattr(e, 'message', '')}")

# What smelt records, TensorFlow reads.
code, out = call("replay", models / "functions", "--log", models / "functions.tfrecord", "--record", work / "out.tfrecord")
theirs, ours = list(records(models / "functions.tfrecord")), list(records(work / "out.tfrecord"))
check("records", len(theirs) == len(ours) and all(
    np.allclose(tf.make_ndarray(a.predict_log.response.outputs[k]), tf.make_ndarray(b.predict_log.response.outputs[k]))
    for a, b in zip(theirs, ours) for k in a.predict_log.response.outputs), out)

# The commands that print as TensorFlow's own tool does; smelt as a library beside TensorFlow.
folders = [str(d) for d in sorted(models.iterdir()) if d.is_dir()]
for script, arguments in [("show_test.py", folders), ("run_test.py", []), ("library_test.py", [])]:
    p = subprocess.run([sys.executable, here / script, sys.argv[1], *arguments], capture_output=True, text=True)
    check(script, p.returncode == 0, p.stdout[-1200:] + p.stderr[-300:])

finish()
