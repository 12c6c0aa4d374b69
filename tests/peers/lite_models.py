#!/usr/bin/env python3
"""Models exported by smelt and run by LiteRT: lite_models.py SMELT [MODELS [GOLDENS]] [--only NAME...] [--rows ROW...] [--tensorflow] [--cache FOLDER]

MODELS holds SavedModel folders NAME, GOLDENS NAME.tfrecord (PredictionLogs, what TensorFlow answered) and NAME.json, whose cases name outputs that are
random. Every model is exported with all its signatures, and each recorded request is asked of the file by its signature, in order: answers are to be
within 1e-4 of an output's range, what is no float equal. Before them come rows of keras_models.py, and all of version_one_models.py, which TensorFlow saves and
answers here (--rows all: every one; --rows none). Signatures that smelt leaves out, which it says, are not
asked. A model that smelt refuses in words is counted apart.

--tensorflow: TensorFlow's converter exports each model too, in a process of its own, and its files are kept in the cache's folder. Then a model fails, too,
that TensorFlow exports right and smelt does not, or of which smelt's file has more operators or is larger."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
from lite_process import difference, litert_answers, one_line, operators, python, reason

here = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-4
ROWS = ["conv2d_same", "separable_valid", "batch_norm", "layer_norm", "LSTM_sequences", "GRU_last", "conv_lstm", "embedding", "multi_head_attention", "einsum_dense",
        "while_loop", "cond", "scan", "map_fn", "gather_scatter", "slices", "reductions", "space", "complex", "integer_lookup", "dense_table", "tables", "ragged",
        "special", "detection", "crop_and_resize", "examples"]

CONVERTER = """
import sys
import tensorflow as tf
path, out, tags = sys.argv[1:]
converter = tf.lite.TFLiteConverter.from_saved_model(path, tags=tags.split(','))
data = converter.convert()
open(out, 'wb').write(data)
"""


def array(proto):
    import tensorflow as tf
    return tf.make_ndarray(proto)


class Model:
    def __init__(self, path, log, facts):
        self.name, self.path, self.facts = path.name, path, facts
        self.random = {o for c in facts.get("cases", []) for o in c["random"]}
        self.requests, self.wanted = [], []
        if not log.exists():
            return
        import tensorflow as tf
        from tensorflow_serving.apis import prediction_log_pb2
        for record in tf.data.TFRecordDataset(str(log)).as_numpy_iterator():
            entry = prediction_log_pb2.PredictionLog.FromString(record)
            request, response = entry.predict_log.request, entry.predict_log.response
            key = request.model_spec.signature_name or "serving_default"
            self.requests.append((key, {k: array(v) for k, v in request.inputs.items()}))
            self.wanted.append({k: array(v) for k, v in response.outputs.items()})

    def tags(self):
        return ",".join(self.facts.get("tags") or ["serve"])

    def verdict(self, file, left_out=()):
        """Why the file is not right; empty: it is. Signatures that were left out are not asked."""
        asked = [(r, w) for r, w in zip(self.requests, self.wanted) if r[0] not in left_out]
        if not asked:
            return "all signatures with answers are left out"
        answers = litert_answers([(file, [r for r, _ in asked])])[0]
        for ((key, _), want), got in zip(asked, answers):
            why = difference(got, want, TOLERANCE, self.random)
            if why:
                return one_line(f"{key}: {why}")
        return ""


def size_of(file):
    """(operators in all subgraphs, bytes)"""
    data = file.read_bytes()
    return sum(map(len, operators(data))), len(data)


class Tensorflow:
    """What TensorFlow's converter made, and why it did not."""

    def __init__(self, cache):
        self.cache = cache
        cache.mkdir(parents=True, exist_ok=True)

    def file(self, model):
        file, said = self.cache / f"{model.name}.tflite", self.cache / f"{model.name}.error"
        if not file.exists() and not said.exists():
            code, text = python(CONVERTER, model.path, file, model.tags(), limit=240)
            if code != 0:
                file.unlink(missing_ok=True)
                said.write_text(reason(text))
        return (file, "") if file.exists() else (None, said.read_text())


def zoo(names, work):
    """The rows of keras_models.py and version_one_models.py that TensorFlow makes, saved and answered in the folder."""
    if not names:
        return
    work.mkdir(parents=True, exist_ok=True)
    sys.argv[2:] = []
    import keras
    import keras_models
    import version_one_models
    every = [*keras_models.ROWS, *version_one_models.ROWS]
    for name in every if names == ["all"] else names + [n for n in version_one_models.ROWS if names is ROWS]:
        path, log = work / name, work / f"{name}.tfrecord"
        try:
            if not log.exists() and name in version_one_models.ROWS:
                version_one_models.save(name, path, log)
            elif not log.exists():
                keras.utils.set_random_seed(3)
                model, requests = keras_models.ROWS[name]()
                keras_models.save(model, path)
                keras_models.record(path, log, requests)
        except Exception as e:  # TensorFlow itself cannot make or run it
            print(f"not made: {name}: {type(e).__name__}: {one_line(str(e), 150)}", flush=True)
            continue
        yield Model(path, log, {})


def corpus(models, goldens, only):
    for path in sorted(p for p in models.iterdir() if p.is_dir()):
        if only and path.name not in only:
            continue
        facts = goldens / f"{path.name}.json"
        log = goldens / f"{path.name}.tfrecord"
        if facts.exists() or log.exists():
            yield Model(path, log, json.loads(facts.read_text()) if facts.exists() else {})


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", nargs="?", type=pathlib.Path, default=here.parents[2] / "shared" / "models")
    ap.add_argument("goldens", nargs="?", type=pathlib.Path), ap.add_argument("--only", nargs="+", default=[])
    ap.add_argument("--rows", nargs="+", default=ROWS), ap.add_argument("--tensorflow", action="store_true")
    ap.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "smelt_lite_models")
    a = ap.parse_args()
    smelt = os.path.abspath(a.smelt)
    goldens = a.goldens or a.models.parent / "goldens"
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_models_"))
    tensorflow = Tensorflow(a.cache / "tensorflow") if a.tensorflow else None
    # Answers of rows are kept beside TensorFlow's files, or for this run.
    rows = list(zoo([] if a.rows == ["none"] or a.only else a.rows, (a.cache if a.tensorflow else work) / "rows"))
    if a.models.is_dir() and goldens.is_dir():
        models = rows + list(corpus(a.models, goldens, a.only))
    else:
        print(f"skipped: there are no models in {a.models}, or no answers in {goldens}")
        models = rows
    passed, refused, failed, alone, theirs_right = 0, [], [], 0, 0
    print(f"{'model':26} {'smelt':8} {'operators':>9} {'bytes':>10}" + (f"  {'TensorFlow':10} {'operators':>9} {'bytes':>10}" if tensorflow else "") + "  remarks")
    for m in models:
        file = work / f"{m.name}.tflite"
        p = subprocess.run([smelt, "lite", str(m.path), str(file)], capture_output=True, text=True, timeout=600, errors="replace")
        said = p.stdout + p.stderr
        why, remark, kind = "", "", "right"
        if p.returncode != 0 or not file.exists():
            # An error of its own words is a refusal; a crash is not.
            kind = "refused" if 0 < p.returncode < 128 and said.strip() else "failed"
            why = one_line(said, 400)
        elif not m.requests:
            kind = "unasked"
        else:
            left_out = re.findall(r"^warning: signature '(.*?)' is left out", said, re.M)
            why = m.verdict(file, left_out)
            remark = f"left out: {', '.join(left_out)}" if left_out else ""
            kind = "wrong" if why else "right"
        count, size = size_of(file) if file.exists() else (0, 0)
        row = f"{m.name:26} {kind:8} {count or '':>9} {size or '':>10}"
        worse = kind in ("wrong", "failed")
        if tensorflow:
            other, said = tensorflow.file(m)
            theirs, t_count, t_size = "refused", 0, 0
            if other is not None:
                t_count, t_size = size_of(other)
                said = m.verdict(other) if m.requests else ""
                theirs = "wrong" if said else "right" if m.requests else "unasked"
            theirs_right += theirs == "right"
            alone += kind == "right" and theirs != "right"
            row += f"  {theirs:10} {t_count or '':>9} {t_size or '':>10}"
            if theirs == "right" and kind != "right":
                worse = True
            elif theirs == kind == "right" and (count > t_count or size > t_size):
                worse, why = True, "more than TensorFlow's"
            elif theirs != "right" and said:
                why += f" | TensorFlow: {said}"
        print(f"{row}  {why} {remark}", flush=True)
        if worse:
            failed.append(m.name)
        elif kind == "refused":
            refused.append(m.name)
        else:
            passed += 1
        file.unlink(missing_ok=True)
    if tensorflow:
        print(f"TensorFlow's are right for {theirs_right} models; smelt's alone for {alone}")
    if refused:
        print(f"refused: {', '.join(refused)}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
