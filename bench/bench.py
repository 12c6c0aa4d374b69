#!/usr/bin/env python3
"""Measures smelt beside TensorFlow in one run, as ratios: bench.py SMELT SUITE [NAME...] [--cold] [--log NAME=FILE.tfrecord]

SUITE is a folder of NAME/saved_model with NAME/inputs_B.npz and outputs_B.npz. Each model is timed at its recorded batches, with 1 and
2 threads: the two take turns, the best median of the rounds counts. --cold: exec to first answer and peak RSS of a fresh process.
Needs tensorflow and tensorflow-serving-api; run it on a machine that does nothing else."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from measure import best, script_median, shown, smelt_median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

TF_TIMER = r"""
import os, sys, time, json
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
import numpy as np, tensorflow as tf
path, data, threads, repeat = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tf.config.threading.set_intra_op_parallelism_threads(threads); tf.config.threading.set_inter_op_parallelism_threads(threads)
f = tf.saved_model.load(path).signatures['serving_default']
x = {k: tf.constant(v.astype(object) if v.dtype.kind == 'S' else v) for k, v in np.load(data).items()}
times = []
for _ in range(repeat):
    t = time.perf_counter(); out = f(**x); [v.numpy() for v in out.values()]; times.append((time.perf_counter() - t) * 1e3)
print(json.dumps(sorted(times[len(times) // 4:])[len(times[len(times) // 4:]) // 2]))
"""


def write_log(npz, path, outputs=None):
    """A log of one request; inputs and outputs are .npz files or arrays by name."""
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    log = prediction_log_pb2.PredictionLog()
    log.log_metadata.saved_model_tags.append("serve")
    log.predict_log.request.model_spec.signature_name = "serving_default"
    stored = lambda x: x if isinstance(x, dict) else np.load(x)
    for k, v in stored(npz).items():
        log.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v.astype(object) if v.dtype.kind == "S" else v))
    if outputs:
        for k, v in stored(outputs).items():
            log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v.astype(object) if v.dtype.kind == "S" else v))
    with tf.io.TFRecordWriter(str(path)) as w:
        w.write(log.SerializeToString())


def fresh(command):
    """Wall seconds and peak MB of one process."""
    t = time.perf_counter()
    p = subprocess.run(["/usr/bin/env", "python3", "-c", "import resource,subprocess,sys; p=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL);"
                        "print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"] + command, capture_output=True, text=True)
    code, rss = p.stdout.split()
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begin if code == "0" else None), int(rss) / 1024, begin - t


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("smelt"), ap.add_argument("suite"), ap.add_argument("names", nargs="*")
    ap.add_argument("--cold", action="store_true"), ap.add_argument("--rounds", type=int, default=2), ap.add_argument("--batches", default="1,8")
    ap.add_argument("--threads", default="1,2"), ap.add_argument("--no_tf", action="store_true")
    a = ap.parse_args()
    suite = pathlib.Path(a.suite)
    names = a.names or sorted(p.name for p in suite.iterdir() if (p / "saved_model").is_dir())
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_bench_"))
    print(f"{'model':20} {'batch':>5} {'threads':>7} {'smelt ms':>10} {'tf ms':>10} {'smelt/tf':>9} equal")
    for name in names:
        model = str(suite / name / "saved_model")
        for batch in map(int, a.batches.split(",")):
            data = str(suite / name / f"inputs_{batch}.npz")
            if not os.path.exists(data):
                continue
            log, checked = work / f"{name}_{batch}.tfrecord", work / f"{name}_{batch}_checked.tfrecord"
            write_log(data, log), write_log(data, checked, data.replace("inputs_", "outputs_"))
            equal = subprocess.run([a.smelt, "replay", model, "--log", str(checked), "--rtol", "1e-3", "--atol", "1e-3"], capture_output=True, text=True)
            for threads in map(int, a.threads.split(",")):
                first = smelt_median(a.smelt, model, str(checked), threads, 5)
                repeat = 5 if first is None else max(5, min(2000, int(1000 / max(first, 0.01))))
                ours = [smelt_median(a.smelt, model, str(checked), threads, repeat) for _ in range(a.rounds)]
                theirs = [] if a.no_tf else [script_median(TF_TIMER, threads, model, data, threads, min(repeat, 400)) for _ in range(a.rounds)]
                x, y = best(ours), best(theirs)
                print(f"{name:20} {batch:5} {threads:7} {shown(x)} {shown(y)} {x / y if x and y else float('nan'):9.2f} {'yes' if equal.returncode == 0 else 'NO'}", flush=True)
        if a.cold:
            log = work / f"{name}_1.tfrecord"
            seconds, rss, _ = fresh([a.smelt, "replay", model, "--log", str(work / f"{name}_1_checked.tfrecord")])
            theirs = fresh([sys.executable, "-c", TF_TIMER, model, str(suite / name / "inputs_1.npz"), "2", "1"]) if not a.no_tf else (None, 0, 0)
            ratio = theirs[0] / seconds if seconds and theirs[0] else float("nan")
            print(f"{name:20} cold start: smelt {seconds * 1e3 if seconds else float('nan'):.1f} ms, {rss:.0f} MB; "
                  f"tf {theirs[0] or float('nan'):.2f} s, {theirs[1]:.0f} MB; {ratio:.0f} times faster", flush=True)


if __name__ == "__main__":
    main()
