#!/usr/bin/env python3
"""Latency on real models beside TensorFlow: corpus.py SMELT MODELS GOLDENS [NAME...] [--threads 2] [--rounds 2]

GOLDENS/NAME.tfrecord holds PredictionLogs for MODELS/NAME. The first record of each signature and batch size is timed: smelt by `smelt replay`,
TensorFlow by a session's callable (no Python between feed and fetch), each in a process of its own, in turns; the best median of the rounds counts.
Ends with the ratios' distribution and the worst five. Needs tensorflow and tensorflow-serving-api; run it on a machine that does nothing else."""
import argparse
import json
import os
import pathlib
import tempfile

from measure import best, script_median, shown, smelt_median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

TF_TIMER = r"""
import os, sys, time, json
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2
path, log, threads, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
record = prediction_log_pb2.PredictionLog()
record.ParseFromString(next(iter(tf.compat.v1.io.tf_record_iterator(log))))
tags = list(record.log_metadata.saved_model_tags)
config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
def slots(infos):
    out = {}
    for k, i in infos.items():
        if i.WhichOneof('encoding') == 'coo_sparse':
            s = i.coo_sparse
            out.update({k + '/indices': s.indices_tensor_name, k + '/values': s.values_tensor_name, k + '/dense_shape': s.dense_shape_tensor_name})
        else:
            out[k] = i.name
    return out
with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as s:
    meta = tf.compat.v1.saved_model.load(s, tags, path)
    request = record.predict_log.request
    sig = meta.signature_def[request.model_spec.signature_name]
    names, outs = slots(sig.inputs), slots(sig.outputs)
    keys = sorted(request.inputs)
    call = s.make_callable([outs[k] for k in sorted(outs)], feed_list=[names[k] for k in keys])
    values = [tf.make_ndarray(request.inputs[k]) for k in keys]
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end and len(times) < 5000:
        t = time.perf_counter(); call(*values); times.append((time.perf_counter() - t) * 1e3)
times = sorted(times[len(times) // 4:])
print(json.dumps(times[len(times) // 2]))
"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("goldens", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--threads", type=int, default=2), ap.add_argument("--rounds", type=int, default=2), ap.add_argument("--seconds", type=float, default=1.0)
    a = ap.parse_args()
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_corpus_bench_"))
    rows = []
    print(f"{'model':26} {'signature':24} {'batch':>5} {'smelt ms':>10} {'tf ms':>10} {'smelt/tf':>9}")
    for name in a.names or sorted(p.stem for p in a.goldens.glob("*.json") if (a.models / p.stem).is_dir()):
        cases = json.loads((a.goldens / f"{name}.json").read_text())["cases"]
        seen = set()
        for i, raw in enumerate(tf.compat.v1.io.tf_record_iterator(str(a.goldens / f"{name}.tfrecord"))):
            log = prediction_log_pb2.PredictionLog()
            log.ParseFromString(raw)
            signature = log.predict_log.request.model_spec.signature_name
            batch = cases[i]["batch"] if i < len(cases) else 0
            if (signature, batch) in seen or not log.predict_log.HasField("response"):
                continue
            seen.add((signature, batch))
            path = str(work / f"{name}_{i}.tfrecord")
            with tf.io.TFRecordWriter(path) as w:
                w.write(raw)
            model = str(a.models / name)
            first = smelt_median(a.smelt, model, path, a.threads, 5)
            repeat = 5 if first is None else max(5, min(5000, int(a.seconds * 1000 / max(first, 0.001))))
            ours, theirs = [], []
            for _ in range(a.rounds):
                ours.append(smelt_median(a.smelt, model, path, a.threads, repeat))
                theirs.append(script_median(TF_TIMER, a.threads, model, path, a.threads, a.seconds))
            x, y = best(ours), best(theirs)
            ratio = x / y if x is not None and y else float("nan")
            print(f"{name:26} {signature[:24]:24} {batch:5} {shown(x)} {shown(y)} {ratio:9.2f}", flush=True)
            if x is not None and y:
                rows.append((ratio, name, signature, batch))
    rows.sort(reverse=True)
    print(f"{len(rows)} timed, {sum(r[0] <= 1 for r in rows)} not slower than TensorFlow; the worst:")
    for ratio, name, signature, batch in rows[:5]:
        print(f"  {ratio:.2f}  {name} {signature} batch {batch}")


if __name__ == "__main__":
    main()
