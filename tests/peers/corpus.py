#!/usr/bin/env python3
"""Real models against what TensorFlow answered for them: corpus.py SMELT MODELS GOLDENS [NAME...] [--convert] [--bfloat16] [--tensorflow] [--unconvert TOOL]

MODELS holds SavedModel folders NAME; GOLDENS holds NAME.tfrecord (PredictionLogs: request and response) and NAME.json, whose cases name the
outputs that are random ("random": only dtype and shape count) and whose "errors" say where TensorFlow refuses. Each model is replayed.

--convert: each model that replays equal is converted with a TPU function and replayed again. Signatures are tried first, then the functions of
its library, the largest first; the first choice whose conversion runs and answers counts.
--bfloat16: what --convert chose is converted once more, with the bfloat16 optimisation alone; outputs are to be within 2% of their range. Outputs that are
no floats (class ids, indices of the best) may differ by ties, and are named.
--tensorflow: TensorFlow loads the graph of each converted model into a session of its own, and the model with tf.saved_model.load (needs tensorflow).
--unconvert TOOL: TensorFlow turns each bfloat16 model back into a plain one and replays the log on it."""
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
tags = [list(m.meta_info_def.tags) for m in metas]
m = tf.saved_model.load(sys.argv[1], tags=tags[0] if len(tags) > 1 else None)
print('signatures', len(m.signatures))
"""
OFF = "disable_default_optimizations: true"
BFLOAT16 = "io_shape_optimization: DISABLED"


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

    def convert(self, choice, out, more=OFF):
        options = "tpu_functions { %s: \"%s\" } " % choice + more
        return call([self.smelt, "convert", "--input_model_dir", self.path, "--output_model_dir", out, "--overwrite", "--converter_options_string", options], 300)

    def bfloat16(self, choice, out):
        """(worst difference of the range, outputs that are no floats and differ, what went wrong, the converter's notes)."""
        code, text = self.convert(choice, out, BFLOAT16)
        notes = [line[6:] for line in text.splitlines() if line.startswith("note: ")]
        if code != 0:
            return 0, [], " ".join(text.split())[-300:], notes
        shapes = ["--shapes_only", *self.random] if self.random else []
        code, text = call([self.smelt, "replay", out, "--log", self.log, "--rtol", "0", "--atol", "1e-30", "--range_tol", "0.02", "--json", *shapes], 600)
        worst, other, wrong = 0, set(), ""
        for line in text.splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            floats = [k for k, o in row["outputs"].items() if not o["equal"] and o["max_range"]]
            other.update(k for k, o in row["outputs"].items() if not o["equal"] and not o["max_range"])
            worst = max([worst] + [o["max_range"] or 0 for o in row["outputs"].values()])
            # Another shape or type, or no answer at all.
            if floats or ", wanted " in row["message"] or "is missing" in row["message"] or (not row["ok"] and not row["outputs"]):
                wrong = wrong or row["message"][:300]
        if code not in (0, 1):
            wrong = wrong or " ".join(text.split())[-300:]
        return worst, sorted(other), wrong, notes

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
    ap.add_argument("--bfloat16", action="store_true"), ap.add_argument("--unconvert", type=pathlib.Path)
    ap.add_argument("--convert", action="store_true"), ap.add_argument("--tensorflow", action="store_true")
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_corpus_"))
    names = a.names or sorted(p.stem for p in a.goldens.glob("*.json") if (a.models / p.stem).is_dir())
    equal = converted = loaded = rounded = 0
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
        if not m.cases or not (a.convert or a.bfloat16):
            continue
        choice, why = m.converted(work)
        if choice is None:
            print(f"{'':26} not converted: {why}", flush=True)
            continue
        converted += 1
        print(f"{'':26} converted by {choice[0]} {choice[1]}", flush=True)
        if a.bfloat16:
            worst, other, wrong, notes = m.bfloat16(choice, work / name)
            rounded += not wrong
            print(f"{'':26} bfloat16 {'WRONG' if wrong else 'good'}: worst {worst:.2g} of the range; {'; '.join(n for n in notes if ' float ops' in n)}", flush=True)
            if other:
                print(f"{'':26} no floats, and different: {', '.join(other)}", flush=True)
            if wrong:
                failures.append(f"{name} (bfloat16)")
                print(f"{'':26} {wrong}", flush=True)
            if a.unconvert and not wrong:
                signature = choice[1] if choice[0] == "signature_name" else m.cases[0]["signature"]
                code, text = call([sys.executable, a.unconvert, work / name, work / (name + "_back"), "--log", m.log, "--signature", signature, "--rtol", "0.02", "--atol", "0.02"], 600)
                print(f"{'':26} TensorFlow turns it back: {' '.join(text.split())[-300:]}", flush=True)
        if a.tensorflow:
            code, text = call([sys.executable, "-c", LOADER, work / name], 300)
            loaded += code == 0
            if code != 0:
                failures.append(f"{name} (tensorflow)")
                print(f"{'':26} TensorFlow does not load it: {' '.join(text.split())[-300:]}", flush=True)
    print(f"{equal} of {len(names)} equal" + (f", {converted} converted and equal" if a.convert or a.bfloat16 else "") + (f", {rounded} in bfloat16 within 2%" if a.bfloat16 else "")
          + (f", {loaded} loaded by TensorFlow" if a.tensorflow else ""))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
