#!/usr/bin/env python3
"""Real models against what TensorFlow answered for them: corpus.py SMELT MODELS GOLDENS [NAME...] [--convert] [--tensorflow]

MODELS holds SavedModel folders NAME; GOLDENS holds NAME.tfrecord (PredictionLogs: request and response) and NAME.json, whose cases name the
outputs that are random ("random": only dtype and shape count) and whose "errors" say where TensorFlow refuses. Each model is replayed.

--convert: each model that replays equal is converted with a TPU function and replayed again. Signatures are tried first, then the functions of
its library, the largest first; the first choice whose conversion runs and answers counts.
--tensorflow: TensorFlow loads the graph of each converted model into a session of its own (needs tensorflow)."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LOADER = """
import os, sys
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import tensorflow as tf
from tensorflow.python.saved_model import loader_impl
metas = loader_impl.parse_saved_model(sys.argv[1]).meta_graphs
for meta in metas:
    g = tf.Graph()
    with g.as_default():
        tf.compat.v1.train.import_meta_graph(meta)
        with tf.compat.v1.Session() as s:
            s.run(tf.no_op())  # hands the whole graph and its functions to the runtime
"""


def call(args, timeout):
    try:
        p = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=timeout)
        return p.returncode, p.stdout + p.stderr
    except subprocess.TimeoutExpired:
        return -1, f"no answer in {timeout} s"


class Model:
    def __init__(self, smelt, models, goldens, name):
        self.smelt, self.name, self.path = smelt, name, models / name
        self.log = goldens / f"{name}.tfrecord"
        facts = json.loads((goldens / f"{name}.json").read_text())
        self.cases, self.errors, self.tags = facts["cases"], facts["errors"], facts.get("tags", ["serve"])
        self.random = sorted({o for c in self.cases for o in c["random"]})

    def replay(self, path):
        shapes = ["--shapes_only", *self.random] if self.random else []
        return call([self.smelt, "replay", path, "--log", self.log, "--rtol", "1e-3", "--atol", "1e-4", *shapes], 300)

    def convert(self, choice, out, options="disable_default_optimizations: true"):
        options = "tpu_functions { %s: \"%s\" } %s" % (*choice, options)
        return call([self.smelt, "convert", "--input_model_dir", self.path, "--output_model_dir", out, "--overwrite", "--converter_options_string", options], 300)

    def choices(self):
        """What may be named a TPU function, most of the model first."""
        meta = json.loads(call([self.smelt, "show", "--dir", self.path, "--json"], 120)[1])["meta_graphs"][0]
        used = [c["signature"] for c in self.cases]
        for s in sorted(meta["signatures"], key=lambda s: s not in used):
            if s in used:
                yield "signature_name", s
        for f in sorted(meta["library"], key=lambda f: -f["num_nodes"])[:40]:
            yield "concrete_function_name", f["function"]

    def converted(self, work):
        """The choice that works, or None, and what the first one said."""
        first = ""
        for choice in self.choices():
            code, text = self.convert(choice, work / self.name)
            # A function that no signature reaches would prove nothing.
            if code == 0 and "no signature calls function" not in text:
                code, text = self.replay(work / self.name)
                if code == 0:
                    return choice, first
            first = first or " ".join(text.split())[-300:]
        return None, first


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("goldens", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--convert", action="store_true"), ap.add_argument("--tensorflow", action="store_true")
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_corpus_"))
    names = a.names or sorted(p.stem for p in a.goldens.glob("*.json") if (a.models / p.stem).is_dir())
    equal = converted = loaded = 0
    failures = []
    for name in names:
        m = Model(os.path.abspath(a.smelt), a.models, a.goldens, name)
        code, text = m.replay(m.path)
        last = " ".join(text.strip().splitlines()[-1:] if code == 0 else text.split())
        print(f"{name:26} {'equal' if code == 0 else 'DIFFERS'}  {last[:260]}", flush=True)
        if code != 0:
            failures.append(name)
            continue
        equal += 1
        if not m.cases or not a.convert:
            continue
        choice, why = m.converted(work)
        if choice is None:
            print(f"{'':26} not converted: {why}", flush=True)
            continue
        converted += 1
        print(f"{'':26} converted by {choice[0]} {choice[1]}", flush=True)
        if a.tensorflow:
            code, text = call([sys.executable, "-c", LOADER, work / name], 300)
            loaded += code == 0
            if code != 0:
                failures.append(f"{name} (tensorflow)")
                print(f"{'':26} TensorFlow does not load it: {' '.join(text.split())[-300:]}", flush=True)
    print(f"{equal} of {len(names)} equal" + (f", {converted} converted and equal" if a.convert else "") + (f", {loaded} loaded by TensorFlow" if a.tensorflow else ""))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
