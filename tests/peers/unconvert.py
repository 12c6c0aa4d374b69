#!/usr/bin/env python3
"""TensorFlow's own reader of accelerator models turns converted models back: unconvert.py SMELT MODELS GOLDENS [NAME...] [--options TEXT] [--range_tol R]

TensorFlow's quantizer has a pass that undoes what an inference converter wrote (TPUPartitionedCall, replicated inputs and outputs, casts and
transposes at the border, BatchFunction). Each model of MODELS that smelt converts (see corpus.py; --options are further converter options) is
turned back by it, and its answers are compared with the recorded ones of GOLDENS, relative to each output's range.

The pass has limits of its own: some models it refuses also when they were never converted, and for the XLA op set it changes answers by itself.
A model that it refuses is tried again with the XLA op set, converted and plain: both must then answer the same, or fail in the same words."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import corpus

READER = r"""
import os, sys
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as qo
from tensorflow_serving.apis import prediction_log_pb2
model, out, log, signature, tags, op_set, answers = sys.argv[1:]
options = qo.QuantizationOptions()
options.quantization_method.preset_method = qo.QuantizationMethod.PresetMethod.METHOD_NO_QUANTIZE
options.experimental_enable_tpu_model_support = True
options.op_set = qo.OpSet.Value(op_set)
options.tags.extend(tags.split(','))
options.signature_keys.append(signature)
try:
    plain = tf.quantization.experimental.quantize_saved_model(model, out, options, overwrite_output_directory=True)
except Exception as e:
    print('refused:', str(e).split('see current operation')[0][:400].replace('\n', ' '))
    sys.exit(2)
got, want = {}, {}
fn = plain.signatures[signature]
for i, record in enumerate(tf.compat.v1.io.tf_record_iterator(log)):
    p = prediction_log_pb2.PredictionLog()
    p.ParseFromString(record)
    if p.predict_log.request.model_spec.signature_name != signature:
        continue
    answer = fn(**{k: tf.constant(tf.make_ndarray(v)) for k, v in p.predict_log.request.inputs.items()})
    for k, v in p.predict_log.response.outputs.items():
        got[f'{i}/{k}'] = answer[k].numpy()
        want[f'{i}/{k}'] = tf.make_ndarray(v)
np.savez(answers + '.got.npz', **got)
np.savez(answers + '.want.npz', **want)
"""


class Reader:
    def __init__(self, work, model, signature, tags):
        self.work, self.model, self.signature, self.tags = work, model, signature, tags

    def read(self, path, op_set):
        """The answers of the model turned back (and the recorded ones), or why TensorFlow refuses."""
        out, answers = self.work / "plain", self.work / "answers"
        p = subprocess.run([sys.executable, "-c", READER, path, out, self.model.log, self.signature, self.tags, op_set, answers], capture_output=True, text=True)
        shutil.rmtree(out, ignore_errors=True)
        if p.returncode != 0:
            return None, " ".join((p.stdout + p.stderr[-400:] if p.returncode != 2 else p.stdout).split())
        import numpy as np
        return tuple({k: v for k, v in np.load(f"{answers}.{kind}.npz", allow_pickle=True).items()} for kind in ("got", "want")), ""


def differs(got, want, range_tol, random):
    import numpy as np
    for k, w in want.items():
        g = got[k]
        if k.split("/", 1)[1] in random:
            continue
        if w.dtype.kind not in "fc":
            if not (np.asarray(g) == np.asarray(w)).all():
                return f"{k} differs"
            continue
        if w.size == 0:
            continue
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        if same.all():
            continue
        w, g = w[~same], g[~same]
        scale = max(float(np.max(w) - np.min(w)), float(np.max(np.abs(w))), 1e-4)
        worst = float(np.max(np.abs(g.astype(np.float64) - w.astype(np.float64)))) / scale
        if not worst <= range_tol:
            return f"{k} differs by {worst:.3g} of its range"
    return ""


def same_refusal(a, b):
    return a.split(" error: ")[-1][:120] == b.split(" error: ")[-1][:120]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("goldens", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--options", default="disable_default_optimizations: true")
    ap.add_argument("--range_tol", type=float, default=1e-3)
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_unconvert_"))
    counts = {"equal": 0, "limit": 0, "failed": 0}
    for name in a.names or sorted(p.stem for p in a.goldens.glob("*.json") if (a.models / p.stem).is_dir()):
        model = corpus.Model(os.path.abspath(a.smelt), a.models, a.goldens, name)
        choice, _ = model.converted(work) if model.cases else (None, "")
        if choice is None:
            continue
        code, text = model.convert(choice, work / name, a.options)
        if code != 0:
            counts["failed"] += 1
            print(f"{name:26} not converted: {' '.join(text.split())[-200:]}", flush=True)
            continue
        signature = choice[1] if choice[0] == "signature_name" else model.cases[0]["signature"]
        reader = Reader(work, model, signature, ",".join(model.tags))
        answers, why = reader.read(work / name, "TF")
        if answers is not None:
            verdict = differs(*answers, a.range_tol, model.random)
            kind = "failed" if verdict else "equal"
        else:
            answers, again = reader.read(work / name, "XLA")
            plain, plain_why = reader.read(model.path, "XLA")
            if answers is not None and plain is not None:
                verdict = differs(answers[0], plain[0], a.range_tol, model.random)
                kind = "failed" if verdict else "equal"
                verdict = verdict or "to the plain model through the same pass"
            else:
                kind = "limit" if answers is None and plain is None and same_refusal(again, plain_why) else "failed"
                verdict = again if kind == "limit" else f"converted: {again or 'accepted'}; plain: {plain_why or 'accepted'}"
        counts[kind] += 1
        print(f"{name:26} {kind:6} {verdict[:400]}", flush=True)
        shutil.rmtree(work / name, ignore_errors=True)
    print(f"{counts['equal']} equal, {counts['limit']} that TensorFlow's pass refuses plain too, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] or not counts["equal"] else 0)


if __name__ == "__main__":
    main()
