#!/usr/bin/env python3
"""What gathering requests costs: batching.py SMELT MODEL_FOLDER [--clients 64] [--batch 16] [--threads 2]

MODEL_FOLDER holds saved_model and inputs_1.npz, as in bench.py's suite. Times `--clients` clients that send one row at a time to the model
with its signature's function behind a BatchFunction, and the model as it is with `--batch` rows in each request: rows a second, and their
ratio, which should be 0.9 or more. The two take turns. Needs tensorflow and tensorflow-serving-api; run it on a machine that does nothing
else."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
from tensorflow.core.protobuf import saved_model_pb2

from bench import write_log
from measure import pin


def with_batching(model, out, **attrs):
    """Writes a copy of the model whose signature calls go through BatchFunction, with int (or list of int) and bool attributes."""
    shutil.copytree(model, out)
    path = out / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    graph = saved.meta_graphs[0].graph_def
    placeholders = {n.name for n in graph.node if n.op == "Placeholder"}
    calls = {t.name.split(":")[0] for t in saved.meta_graphs[0].signature_def["serving_default"].outputs.values()}
    changed = 0
    for node in graph.node:
        rows = sum(i in placeholders for i in node.input)
        if node.name not in calls or node.op not in ("StatefulPartitionedCall", "PartitionedCall"):
            continue
        types = list(node.attr["Tin"].list.type)
        if not rows or not all(i in placeholders for i in node.input[:rows]):
            continue
        node.op = "BatchFunction"
        for name in list(node.attr):
            if name not in ("f", "Tin", "Tout"):
                del node.attr[name]
        node.attr["Tin"].list.ClearField("type")
        node.attr["Tin"].list.type.extend(types[:rows])
        node.attr["Tcaptured"].list.SetInParent()
        node.attr["Tcaptured"].list.type.extend(types[rows:])
        for name, value in attrs.items():
            if isinstance(value, bool):
                node.attr[name].b = value
            elif isinstance(value, list):
                node.attr[name].list.i.extend(value)
            else:
                node.attr[name].i = value
        changed += 1
    if not changed:
        sys.exit("no call of a function with fed inputs")
    path.write_bytes(saved.SerializeToString())


def replay(smelt, model, log, threads, *more):
    p = subprocess.run(pin(threads) + [smelt, "replay", str(model), "--log", str(log), "--threads", str(threads), *map(str, more)],
                       capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stdout + p.stderr)
    return p.stdout


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("folder", type=pathlib.Path)
    ap.add_argument("--clients", type=int, default=64), ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--threads", type=int, default=2), ap.add_argument("--batch_threads", type=int, default=1)
    ap.add_argument("--timeout_micros", type=int, default=10000), ap.add_argument("--batches", type=int, default=40)
    ap.add_argument("--rounds", type=int, default=3)
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_batching_"))
    try:
        plain = a.folder / "saved_model"
        with_batching(plain, work / "batching", num_batch_threads=a.batch_threads, max_batch_size=a.batch, max_enqueued_batches=1000,
                      batch_timeout_micros=a.timeout_micros, allowed_batch_sizes=[a.batch])
        one = dict(np.load(a.folder / "inputs_1.npz"))
        np.savez(work / "many.npz", **{k: np.repeat(v, a.batch, axis=0) for k, v in one.items()})
        write_log(a.folder / "inputs_1.npz", work / "one.tfrecord", a.folder / "outputs_1.npz")
        np.savez(work / "answers.npz", **{k: np.repeat(v, a.batch, axis=0) for k, v in np.load(a.folder / "outputs_1.npz").items()})
        write_log(work / "many.npz", work / "many.tfrecord", work / "answers.npz")
        direct, gathered, near = [], [], ("--rtol", "1e-3", "--atol", "1e-3")
        for _ in range(a.rounds):
            out = replay(a.smelt, plain, work / "many.tfrecord", a.threads, "--repeat", a.batches, *near)
            direct.append(a.batch * 1e3 / float(re.search(r"median ([\d.]+)", out)[1]))
            out = replay(a.smelt, work / "batching", work / "one.tfrecord", a.threads, "--clients", a.clients, "--repeat",
                         a.batches * a.batch, *near)
            gathered.append(float(re.search(r"([\d.]+) requests a second", out)[1]))
            print(f"direct {direct[-1]:.2f} rows/s, {a.clients} clients {gathered[-1]:.2f} rows/s, {gathered[-1] / direct[-1]:.3f}", flush=True)
        print(f"best of {a.rounds}: {max(gathered) / max(direct):.3f}")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
