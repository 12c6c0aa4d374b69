#!/usr/bin/env python3
"""A model of over 2 GB of weights, written by TensorFlow: large_test.py SMELT [GIGABYTES]. Needs tensorflow, and disk and memory of three
times that size. smelt must answer as TensorFlow does, before and after conversion, and hold little of the weights in memory."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MAKE = """
import os, sys
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
import numpy as np, tensorflow as tf
folder, rows = sys.argv[1], int(sys.argv[2])
class Table(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.Variable(tf.reshape(tf.range(rows, dtype=tf.float32), [-1, 1]) + tf.range(128, dtype=tf.float32), name='table')
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name='row')])
    def serve(self, row):
        return {'rows': 2.0 * tf.gather(self.table, row)}
model = Table()
tf.saved_model.save(model, folder + '/model', signatures=model.serve)
np.save(folder + '/answer.npy', model.serve(tf.constant([0, rows // 2, rows - 1], tf.int64))['rows'].numpy())
"""

smelt, gigabytes = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 2.4
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_large_"))
rows = int(gigabytes * 2 ** 30 / 4 / 128)
failed = []


def call(name, *args):
    p = subprocess.Popen([str(a) for a in args], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    error = p.stderr.read()
    _, status, usage = os.wait4(p.pid, 0)
    print(f"{name}: {usage.ru_maxrss / 2 ** 20:.2f} GB at most{', FAILED' if status else ''}", error[-400:] if status else "")
    if status:
        failed.append(name)


call("tensorflow writes", sys.executable, "-c", MAKE, work, rows)
call("convert", smelt, "convert", work / "model", work / "converted", "--converter_options_string",
     'tpu_functions { signature_name: "serving_default" } disable_default_optimizations: true')
for name in ("model", "converted"):
    call(f"run {name}", smelt, "run", work / name, "--input_exprs", f"row=[0, {rows // 2}, {rows - 1}]", "--outdir", work / f"{name}_out")
    if (work / f"{name}_out" / "rows.npy").read_bytes()[128:] != (work / "answer.npy").read_bytes()[128:]:
        failed.append(f"{name} differs")
size = sum(f.stat().st_size for f in (work / "model").rglob("*") if f.is_file()) / 2 ** 30
print(f"model of {size:.2f} GB: {'FAILED ' + ', '.join(failed) if failed else 'equal'}")
shutil.rmtree(work)
sys.exit(1 if failed else 0)
