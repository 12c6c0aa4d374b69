#!/usr/bin/env python3
"""TensorFlow's own reader of accelerator models turns converted models back: tensorflow_reader.py SMELT MODELS GOLDENS [NAME...] [--forms FORM...]

TensorFlow's quantizer has a pass that undoes what an inference converter wrote (TPUPartitionedCall, replicated inputs and outputs, casts and
transposes at the border, BatchFunction). Each model of MODELS that smelt converts is converted in each of FORMS (rows of corpus.py's table), turned
back by that pass, and its answers are compared with the recorded ones of GOLDENS, relative to each output's range.

The pass has limits of its own, which are told apart and named:
- Some models it refuses also when they were never converted, and for the XLA op set it changes answers by itself. A model that it refuses is tried
  again with the XLA op set, converted and plain: both must then answer the same, or fail in the same words ("limit"). bfloat16 may differ by up to half
  of what the pass itself does to the plain model ("limit", too).
- It makes float32 of every bfloat16 operand, those of a function's return too, but not of the function's type: a loop or branch that carries
  bfloat16 is refused, also one that TensorFlow itself wrote (checked here once). Such a model is converted once more with float32 carried
  (calls in the filterlist), and must then be equal."""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import corpus

READER = r"""
import json, os, sys
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as qo
from tensorflow_serving.apis import prediction_log_pb2
for line in sys.stdin:
    job = json.loads(line)
    options = qo.QuantizationOptions()
    options.quantization_method.preset_method = qo.QuantizationMethod.PresetMethod.METHOD_NO_QUANTIZE
    options.experimental_enable_tpu_model_support = True
    options.op_set = qo.OpSet.Value(job['op_set'])
    options.tags.extend(job['tags'])
    options.signature_keys.append(job['signature'])
    reply = {}
    try:
        plain = tf.quantization.experimental.quantize_saved_model(job['model'], job['out'], options, overwrite_output_directory=True)
    except Exception as e:
        reply['refused'] = ' '.join(str(e).split('see current operation')[0][:400].split())
    else:
        try:
            got, want = {}, {}
            fn = plain.signatures[job['signature']]
            for i, record in enumerate(tf.compat.v1.io.tf_record_iterator(job['log'])):
                p = prediction_log_pb2.PredictionLog()
                p.ParseFromString(record)
                if p.predict_log.request.model_spec.signature_name != job['signature']:
                    continue
                answer = fn(**{k: tf.constant(tf.make_ndarray(v)) for k, v in p.predict_log.request.inputs.items()})
                for k, v in p.predict_log.response.outputs.items():
                    got[f'{i}/{k}'] = answer[k].numpy()
                    want[f'{i}/{k}'] = tf.make_ndarray(v)
            np.savez(job['answers'] + '.got.npz', **got)
            np.savez(job['answers'] + '.want.npz', **want)
        except Exception as e:
            reply['refused'] = 'answers: ' + ' '.join(str(e)[:300].split())
    print('@' + json.dumps(reply), flush=True)
"""

# A loop that carries bfloat16, as TensorFlow writes it.
BFLOAT16_LOOP = r"""
import sys
import tensorflow as tf
class Loop(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name='x')])
    def serve(self, x):
        y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v)), (0, tf.cast(x, tf.bfloat16)))[1]
        return {'y': tf.cast(y, tf.float32)}
m = Loop()
tf.saved_model.save(m, sys.argv[1], signatures=m.serve)
"""
CARRIES = "doesn't match function result type"
CALLS = ["While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall"]
CARRY_FLOAT = " bfloat16_optimization_options { %s }" % " ".join(f'filterlist: "{op}"' for op in CALLS)
FORMS = ["off", "io_shape", "bfloat16", "batching", "defaults", "defaults_batching"]


class Reader:
    """TensorFlow in a process of its own, for one model after the other."""

    def __init__(self, work):
        self.work, self.process = work, None

    def read(self, path, model, signature, op_set):
        """The answers of the model turned back (and the recorded ones), or why TensorFlow refuses."""
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
        out, answers = self.work / "plain", self.work / "answers"
        job = {"model": str(path), "out": str(out), "log": str(model.log), "signature": signature, "tags": model.tags, "op_set": op_set, "answers": str(answers)}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        reply = next((json.loads(line[1:]) for line in self.process.stdout if line.startswith("@")), None)
        shutil.rmtree(out, ignore_errors=True)
        if reply is None:
            self.process = None
            return None, "TensorFlow died"
        if "refused" in reply:
            return None, reply["refused"]
        import numpy as np
        return tuple({k: v for k, v in np.load(f"{answers}.{kind}.npz", allow_pickle=True).items()} for kind in ("got", "want")), ""


def distance(got, want, random):
    """(the largest difference of an output's range, which output); infinite where no floats differ."""
    import numpy as np
    worst = (0.0, "")
    for k, w in want.items():
        g = got[k]
        if k.split("/", 1)[1] in random or w.size == 0:
            continue
        if w.dtype.kind not in "fc":
            worst = max(worst, (0.0 if (np.asarray(g) == np.asarray(w)).all() else float("inf"), k))
            continue
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        if same.all():
            continue
        w, g = w[~same], g[~same]
        scale = max(float(np.max(w) - np.min(w)), float(np.max(np.abs(w))), 1e-4)
        off = float(np.max(np.abs(g.astype(np.float64) - w.astype(np.float64)))) / scale
        worst = max(worst, (float("inf") if np.isnan(off) else off, k))
    return worst


def same_refusal(a, b):
    return a.split(" error: ")[-1][:120] == b.split(" error: ")[-1][:120]


class Sweep:
    def __init__(self, reader, work):
        self.reader, self.work = reader, work
        self.loop_refused = None

    def pass_refuses_loops(self):
        """Whether the pass refuses a bfloat16 loop of TensorFlow's own, in the same words."""
        if self.loop_refused is None:
            path = self.work / "loop"
            subprocess.run([sys.executable, "-c", BFLOAT16_LOOP, path], capture_output=True)

            class Plain:
                log, tags = os.devnull, ["serve"]
            _, why = self.reader.read(path, Plain, "serving_default", "TF")
            self.loop_refused = CARRIES in why
        return self.loop_refused

    @staticmethod
    def compared(answers, want, model, form):
        off, output = distance(answers, want, model.random)
        return ("equal", "") if off <= form.tolerance else ("failed", f"{output} differs by {off:.3g} of its range")

    def named(self, kind, verdict, model, form, choice, options):
        """A difference that the converter itself finds and prints is named."""
        if kind == "failed" and form.bfloat16 and "of its range" in verdict and model.verified(choice, self.work / model.name, options):
            return "named", verdict + "; the converter's own --verify_log says so"
        return kind, verdict

    def one(self, model, form, choice, options):
        """(kind, what is to be said)"""
        path, signature = self.work / model.name, model.signature(choice)
        code, text = model.convert(choice, path, options)
        if code != 0:
            forbidden = form.batching and any(words in text for words in corpus.NO_BATCHING)
            return ("forbidden" if forbidden else "failed"), "not converted: " + corpus.one_line(text, 200)
        answers, why = self.reader.read(path, model, signature, "TF")
        if answers is not None:
            return self.named(*self.compared(*answers, model, form), model, form, choice, options)
        if form.bfloat16 and CARRIES in why and "bf16" in why and CARRY_FLOAT not in options and self.pass_refuses_loops():
            kind, verdict = self.one(model, form, choice, options + CARRY_FLOAT)
            return kind, f"{verdict} with float32 carried; the pass refuses bfloat16 loops, TensorFlow's own too: {why[-200:]}"
        answers, again = self.reader.read(path, model, signature, "XLA")
        plain, plain_why = self.reader.read(model.path, model, signature, "XLA")
        if answers is not None and plain is not None:
            kind, verdict = self.compared(answers[0], plain[0], model, form)
            by_itself, _ = distance(plain[0], plain[1], model.random)
            if kind == "failed" and form.bfloat16 and distance(answers[0], plain[0], model.random)[0] < by_itself / 2:
                kind, verdict = "limit", f"{verdict}; the pass by itself changes the plain model's by {by_itself:.3g}"
            kind, verdict = self.named(kind, verdict, model, form, choice, options)
            return kind, verdict or f"to the plain model through the same pass; op set TF: {why[-160:]}"
        if answers is not None and plain is None:
            # Only the XLA op set takes the model, and by itself changes answers by some hundredths.
            off, output = distance(*answers, model.random)
            if off < 0.05:
                return "limit", f"unconverted: {plain_why[-160:]}; converted and through the XLA op set {output} differs by {off:.3g} of its range"
        if answers is None and plain is None and same_refusal(again, plain_why):
            return "limit", again
        return "failed", f"converted: {again or 'accepted'}; plain: {plain_why or 'accepted'}"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("goldens", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--forms", nargs="+", default=FORMS, choices=[f.name for f in corpus.FORMS if not f.int8])
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_unconvert_"))
    forms = [f for f in corpus.FORMS if f.name in a.forms]
    counts = {f.name: collections.Counter() for f in forms}
    rows, sweep, start = [], Sweep(Reader(work), work), time.time()
    for name in a.names or sorted(p.stem for p in a.goldens.glob("*.json") if (a.models / p.stem).is_dir()):
        model = corpus.Model(os.path.abspath(a.smelt), a.models, a.goldens, name)
        choice, _ = model.converted(work) if model.cases else (None, "")
        if choice is None:
            continue
        function = choice[1] if choice[0] == "concrete_function_name" else model.placed_function(choice, work)
        kinds = []
        for form in forms:
            options = model.options(form, choice, function)
            kind, text = sweep.one(model, form, choice, options) if options is not None else ("forbidden", "no function of the model stands behind the signature")
            counts[form.name][kind] += 1
            kinds.append(kind)
            if text:
                print(f"{name:26} {form.name:18} {kind:9} {text[:420]}", flush=True)
        rows.append((name, kinds))
        shutil.rmtree(work / name, ignore_errors=True)
    print(f"\n{'':26} " + " ".join(f"{f.name:18}" for f in forms))
    for name, kinds in rows:
        print(f"{name:26} " + " ".join(f"{k:18}" for k in kinds))
    print()
    for form in forms:
        print(f"{form.name:18} " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts[form.name].items())))
    print(f"{len(rows)} models, {len(forms)} forms, {time.time() - start:.0f} s")
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if not rows or any(c["failed"] for c in counts.values()) else 0)


if __name__ == "__main__":
    main()
