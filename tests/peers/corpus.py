#!/usr/bin/env python3
"""Real models against what TensorFlow answered for them: corpus.py SMELT MODELS GOLDENS [NAME...] [--convert] [--forms all|FORM...] [--tensorflow]

MODELS holds SavedModel folders NAME; GOLDENS holds NAME.tfrecord (PredictionLogs: request and response) and NAME.json, whose cases name the
outputs that are random ("random": only dtype and shape count) and whose "errors" say where TensorFlow refuses. Each model of which answers are recorded is replayed.

--convert: each model that replays equal is converted with a TPU function and replayed again. Signatures are tried first, then the functions of
its library, the largest first; the first choice whose conversion runs and answers counts.
--forms: what --convert chose is converted in these forms too (FORMS below: each optimization alone, stripped of training, the defaults, the three forms of batching, three
of quantization, calibrated with the requests) and replayed. Forms without bfloat16 must be equal within 1e-3; with it outputs are to be within 2% of their range, or else the converter's own --verify_log
must say so ("named"). Quantized forms are to be within 10%, or else the report must name the layers and their errors. Outputs that are no floats (class ids, indices of the best) may differ by ties there, and are named, too. What the model forbids (batching by its shapes, a
way of quantizing by its training) is named, too.
--tensorflow: TensorFlow loads the graph of each converted model into a session of its own, and the model with tf.saved_model.load (needs tensorflow).
A model that TensorFlow refuses unconverted, in the same words, is "unloadable"."""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LOADER = """
import os, sys
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import tensorflow as tf
from tensorflow.python.saved_model import loader_impl
for line in sys.stdin:
    path = line.strip()
    try:
        metas = loader_impl.parse_saved_model(path).meta_graphs
        for meta in metas:
            g = tf.Graph()
            with g.as_default():
                tf.compat.v1.train.import_meta_graph(meta)
                with tf.compat.v1.Session() as s:
                    s.run(tf.no_op())  # hands the whole graph and its functions to the runtime
        tags = [list(m.meta_info_def.tags) for m in metas]
        tf.saved_model.load(path, tags=tags[0] if len(tags) > 1 else None)
        print('loaded', flush=True)
    except Exception as e:
        print('refused ' + ' '.join(f'{type(e).__name__}: {e}'.split())[:300], flush=True)
"""
OFF = "disable_default_optimizations: true"
BATCH = ("batch_options { num_batch_threads: 2 max_batch_size: 64 batch_timeout_micros: 500 allowed_batch_sizes: 2 allowed_batch_sizes: 4 "
         "allowed_batch_sizes: 16 allowed_batch_sizes: 64 max_enqueued_batches: 10 %s}")
# Batch one function instead of every TPU function. {function} and {signature} stand for what was placed.
NAMED = "experimental { concrete_function_name: \"{function}\" } "
SIGNATURE = "experimental { signature_name: \"{signature}\" } "


QUANTIZE = ('quantization_options { quantization_method { preset_method: METHOD_%s } op_set: XLA min_num_elements_for_weights: 16 '
            'signature_keys: "{signature}" %s }')
SAMPLES = 'representative_datasets { key: "{signature}" value { tfrecord_file_path: "{samples}" } }'


class Form:
    def __init__(self, name, options, tolerance=1e-3, flags=()):
        self.name, self.options, self.tolerance, self.flags = name, options, tolerance, flags
        self.batching, self.int8 = "batch_options" in options, "METHOD_" in options
        self.bfloat16 = tolerance > 1e-3 and not self.int8


FORMS = [
    Form("off", OFF),
    Form("stripped", OFF, flags=["--strip_training"]),
    Form("io_shape", OFF + " io_shape_optimization: ENABLED"),
    Form("bfloat16", OFF + " bfloat16_optimization: ENABLED", 0.02),
    Form("batching", OFF + " " + BATCH % ""),
    Form("batch_function", OFF + " " + BATCH % NAMED),
    Form("batch_signature", OFF + " " + BATCH % SIGNATURE),
    Form("defaults", "", 0.02),
    Form("defaults_batching", BATCH % "", 0.02),
    Form("weight_only", OFF + " " + QUANTIZE % ("STATIC_RANGE_WEIGHT_ONLY_INT8", ""), 0.1),
    Form("dynamic", OFF + " " + QUANTIZE % ("DYNAMIC_RANGE_INT8", ""), 0.1),
    Form("static", OFF + " " + QUANTIZE % ("STATIC_RANGE_INT8", SAMPLES), 0.1),
]
# Parts of the errors by which the converter and BatchFunction say that a model's shapes forbid batching.
NO_BATCHING = ["Batching input tensors", "cannot be joined along dimension 0", "Batched output tensor", "BatchFunction cannot take",
               "cannot be batched", "no rows to batch", "with any batch size",
               "would change each other's answers"]
NO_INT8 = ["quantization-aware training (QAT) is not supported"]


def call(args, timeout):
    try:
        p = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=timeout)
        return p.returncode, p.stdout + p.stderr
    except subprocess.TimeoutExpired:
        return -1, f"no answer in {timeout} s"


def one_line(text, most=300):
    return " ".join(text.split())[-most:]


class Loader:
    """A process of TensorFlow that loads one model after the other."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", LOADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})

    def load(self, path):
        """Why not, or empty."""
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("loaded"):
                return ""
            if line.startswith("refused"):
                return line.strip()
        self.__init__()
        return "TensorFlow died"


class Model:
    def __init__(self, smelt, models, goldens, name):
        self.smelt, self.name, self.path = smelt, name, models / name
        self.log = goldens / f"{name}.tfrecord"
        facts = json.loads((goldens / f"{name}.json").read_text())
        self.cases, self.errors, self.tags = facts["cases"], facts["errors"], facts.get("tags", ["serve"])
        self.random = sorted({o for c in self.cases for o in c["random"]})

    def replay(self, path, *tolerance):
        shapes = ["--shapes_only", *self.random] if self.random else []
        return call([self.smelt, "replay", path, "--log", self.log, *(tolerance or ("--rtol", "1e-3", "--atol", "1e-4")), *shapes], 300)

    def convert(self, choice, out, more=OFF, *flags):
        options = "tpu_functions { %s: \"%s\" } " % choice + more
        return call([self.smelt, "convert", self.path, out, "--overwrite", "--converter_options_string", options, *flags], 300)

    def verified(self, choice, out, options):
        """What the converter's own verification finds different on the recorded requests."""
        code, text = self.convert(choice, out, options, "--verify_log", self.log)
        return [line[8:] for line in text.splitlines() if code == 1 and line.startswith("verify: signature") and "of the range: differs" in line]

    def signature(self, choice):
        return choice[1] if choice[0] == "signature_name" else self.cases[0]["signature"]

    def options(self, form, choice, function):
        """The form's options, or None where they name a function and the converter made one of a piece of the graph."""
        if "{function}" in form.options and not function:
            return None
        options = form.options.replace("{function}", function).replace("{signature}", self.signature(choice))
        if "{samples}" in options:
            options = options.replace("{samples}", str(self.samples(self.signature(choice))))
        return options

    def samples(self, signature):
        """The signature's recorded requests as RepresentativeDataSamples."""
        import tensorflow as tf
        from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2
        from tensorflow_serving.apis import prediction_log_pb2
        path = pathlib.Path(tempfile.gettempdir()) / f"{self.name}.samples"
        with tf.io.TFRecordWriter(str(path)) as w:
            for record in tf.data.TFRecordDataset(str(self.log)).as_numpy_iterator():
                request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
                if request.model_spec.signature_name == signature:
                    sample = quantization_options_pb2.RepresentativeDataSample()
                    for key, value in request.inputs.items():
                        sample.tensor_proto_inputs[key].CopyFrom(value)
                    w.write(sample.SerializeToString())
        return path

    def layers(self, choice, out, options):
        """(how many layers are int8, of how many, the worst by the report's errors)."""
        report = out.parent / "report.json"
        code, text = self.convert(choice, out, options, "--dry_run", "--report_json", report)
        if code != 0:
            raise RuntimeError(one_line(text))
        layers = json.loads(report.read_text())["quantized_layers"]
        error = lambda l: max(l["weight_error"], l["own_error"])
        done = sorted((l for l in layers if l["quantized"]), key=error, reverse=True)
        return len(done), len(layers), [f"{l['node']} {error(l):.2%}" for l in done[:2] if error(l) > 0]

    def differences(self, out):
        """(worst difference of the range, outputs that are no floats and differ, what went wrong)."""
        code, text = self.replay(out, "--rtol", "0", "--atol", "1e-30", "--range_tol", "0.02", "--json")
        worst, other, wrong = 0, set(), ""
        for line in text.splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            other.update(k for k, o in row["outputs"].items() if not o["equal"] and not o["max_range"])
            worst = max([worst] + [o["max_range"] or 0 for o in row["outputs"].values()])
            # Another shape or type, or no answer at all.
            if ", wanted " in row["message"] or "is missing" in row["message"] or (not row["ok"] and not row["outputs"]):
                wrong = wrong or row["message"][:300]
        if code not in (0, 1):
            wrong = wrong or one_line(text)
        return worst, sorted(other), wrong

    def choices(self):
        """What may be named a TPU function, most of the model first."""
        meta = json.loads(call([self.smelt, "show", self.path, "--json"], 120)[1])["meta_graphs"][0]
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
            first = first or one_line(text)
        return None, first

    def placed_function(self, choice, work):
        """The function that was placed; empty: one that the converter made of a piece of the graph."""
        report = work / "report.json"
        code, _ = self.convert(choice, work / "dry", OFF, "--dry_run", "--report_json", report)
        name = json.loads(report.read_text())["placements"][0]["function"] if code == 0 else ""
        meta = json.loads(call([self.smelt, "show", self.path, "--json"], 120)[1])["meta_graphs"][0]
        return name if name in {f["function"] for f in meta["library"]} else ""


class Verdict:
    """How one form went. kind: equal, close (bfloat16), named (beyond 2%, and --verify says so), forbidden (batching; int8 of a model that
    was trained for another way), failed."""

    def __init__(self, kind, text=""):
        self.kind, self.text = kind, text


def nameless(error):
    """The error without quoted names: it may name another node, and functions are numbered anew at each load."""
    return re.sub(r"'[^']*'", "'...'", error)


def judge(model, form, choice, function, out):
    options = model.options(form, choice, function)
    if options is None:
        return Verdict("forbidden", "no function of the model stands behind the signature")
    code, text = model.convert(choice, out, options, *form.flags)
    if code != 0:
        forbidden = form.batching and any(words in text for words in NO_BATCHING) or form.int8 and any(words in text for words in NO_INT8)
        return Verdict("forbidden" if forbidden else "failed", one_line(text))
    if not (form.bfloat16 or form.int8):
        code, text = model.replay(out)
        if code == 0:
            return Verdict("equal")
        # Where shapes are unknown, only the run can find that batching is not possible.
        return Verdict("forbidden" if form.batching and any(words in text for words in NO_BATCHING) else "failed", "at run time: " + one_line(text))
    worst, other, wrong = model.differences(out)
    if wrong:
        return Verdict("forbidden" if form.batching and any(words in wrong for words in NO_BATCHING) else "failed", "at run time: " + one_line(wrong))
    said = f"worst {worst:.2g} of the range" + (f"; no floats, and different: {', '.join(other)}" if other else "")
    if form.int8:
        done, layers, errors = model.layers(choice, out, options)
        said += f"; {done} of {layers} layers int8" + (", worst " + ", ".join(errors) if errors else "")
        return Verdict("close" if worst <= form.tolerance else "named" if errors else "failed", said)
    if worst <= form.tolerance:
        return Verdict("close", said)
    found = model.verified(choice, out, options)
    return Verdict("named" if found else "failed", said + "; " + "; ".join(found))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("goldens", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--convert", action="store_true"), ap.add_argument("--tensorflow", action="store_true")
    ap.add_argument("--forms", nargs="+", default=[], metavar="FORM", help="all, or some of " + ", ".join(f.name for f in FORMS))
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_corpus_"))
    names = a.names or sorted(p.stem for p in a.goldens.glob("*.json") if (a.models / p.stem).is_dir())
    forms = [f for f in FORMS if f.name in a.forms or "all" in a.forms] or [FORMS[0]]
    loader = Loader() if a.tensorflow else None
    counts = {f.name: collections.Counter() for f in forms}
    equal, unasked, failures = 0, 0, []
    for name in names:
        m = Model(os.path.abspath(a.smelt), a.models, a.goldens, name)
        if not m.cases:
            unasked += 1
            print(f"{name:26} nothing recorded  {' '.join(e.get('load', '') for e in m.errors)[:260]}", flush=True)
            continue
        code, text = m.replay(m.path)
        last = " ".join(text.strip().splitlines()[-1:] if code == 0 else text.split())
        print(f"{name:26} {'equal' if code == 0 else 'DIFFERS'}  {last[:260]}", flush=True)
        if code != 0:
            failures.append(name)
            continue
        equal += 1
        if not (a.convert or a.forms):
            continue
        choice, why = m.converted(work)
        if choice is None:
            print(f"{'':26} not converted: {why}", flush=True)
            continue
        function = choice[1] if choice[0] == "concrete_function_name" else m.placed_function(choice, work)
        print(f"{'':26} converted by {choice[0]} {choice[1]}", flush=True)
        for form in forms:
            shutil.rmtree(work / name, ignore_errors=True)
            v = judge(m, form, choice, function, work / name)
            if v.kind in ("equal", "close", "named") and loader:
                refused = loader.load(work / name)
                if not refused:
                    counts[form.name]["loaded"] += 1
                elif nameless(refused) == nameless(loader.load(m.path)):
                    counts[form.name]["unloadable"] += 1
                    v.text += f"; TensorFlow does not load the model itself either: {refused}"
                else:
                    v = Verdict("failed", refused)
            counts[form.name][v.kind] += 1
            print(f"{'':26} {form.name:18} {v.kind:9} {v.text}", flush=True)
            if v.kind == "failed":
                failures.append(f"{name} ({form.name})")
        shutil.rmtree(work / name, ignore_errors=True)
    print(f"{equal} of {len(names)} equal, of {unasked} nothing is recorded")
    if a.convert or a.forms:
        for form in forms:
            print(f"{form.name:18} " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts[form.name].items())))
    if failures:
        print("failed: " + ", ".join(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
