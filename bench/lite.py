#!/usr/bin/env python3
"""Exports SavedModels by smelt lite and by TensorFlow's converter, runs both files in LiteRT, and compares: lite.py SMELT MODELS [NAME...] --goldens DIR | --suite

With --goldens DIR, MODELS/NAME is a SavedModel and DIR/NAME.tfrecord what TensorFlow answers (PredictionLogs), DIR/NAME.json which outputs are random.
With --suite, MODELS/NAME is a folder of the benchmark suite (saved_model, inputs_B.npz, outputs_B.npz). For each model: what smelt's file answers (the
worst difference by the range of an output, or the error), operators and bytes of both files, and the time and peak memory of both converters.
TensorFlow's files are kept in --cache. Needs bench/requirements.txt."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

CONVERT = r"""
import json, os, resource, sys, time
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
import tensorflow as tf
path, out = sys.argv[1:3]
t = time.time()
said = {}
try:
    import tensorflow.python.saved_model.loader_impl as loader
    tags = list(loader.parse_saved_model(path).meta_graphs[0].meta_info_def.tags)
    keys = [k for k in loader.parse_saved_model(path).meta_graphs[0].signature_def if k != '__saved_model_init_op']
    converter = tf.lite.TFLiteConverter.from_saved_model(path, signature_keys=keys, tags=set(tags))
    data = converter.convert()
    open(out, 'wb').write(data)
except BaseException as e:
    said['error'] = (type(e).__name__ + ': ' + str(e))[:2000]
said.update(seconds=time.time() - t, peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 10**6)
print(json.dumps(said))
"""

# Runs a file on records: one JSON line for each.
RUN = r"""
import json, os, pickle, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
path, records = sys.argv[1:3]
try:
    interpreter = Interpreter(model_path=path)
    signatures = interpreter.get_signature_list()
except BaseException as e:
    print(json.dumps({'load_error': str(e)[:500]})); sys.exit(0)
for key, inputs in pickle.load(open(records, 'rb')):
    try:
        runner = interpreter.get_signature_runner(key)
        out = runner(**inputs)
        pickle.dump({k: np.asarray(v) for k, v in out.items()}, open(records + '.out', 'wb'))
        print(json.dumps({'ok': True}), flush=True)
    except BaseException as e:
        print(json.dumps({'error': (type(e).__name__ + ': ' + str(e))[:500]}), flush=True)
    sys.stdin.readline()
"""


def records_of_goldens(goldens, name):
    """[(signature, inputs, outputs)], and the outputs that are random."""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    said = json.loads((goldens / f"{name}.json").read_text())
    out = []
    for bytes_ in tf.compat.v1.io.tf_record_iterator(str(goldens / f"{name}.tfrecord")):
        record = prediction_log_pb2.PredictionLog.FromString(bytes_)
        request, response = record.predict_log.request, record.predict_log.response
        inputs = {k: tf.make_ndarray(v) for k, v in request.inputs.items()}
        outputs = {k: tf.make_ndarray(v) for k, v in response.outputs.items()}
        out.append((request.model_spec.signature_name or "serving_default", inputs, outputs))
    return out, said


def records_of_suite(folder):
    import numpy as np
    out = []
    for batch in (1, 8):
        if (folder / f"inputs_{batch}.npz").exists():
            out.append(("serving_default", dict(np.load(folder / f"inputs_{batch}.npz")), dict(np.load(folder / f"outputs_{batch}.npz"))))
    return out


def worst(got, want, random=()):
    import numpy as np
    if set(got) != set(want):
        return f"outputs {sorted(got)}, wanted {sorted(want)}"
    most = 0.0
    for key, w in want.items():
        g = np.asarray(got[key])
        if g.shape != w.shape:
            return f"{key}: shape {g.shape}, wanted {w.shape}"
        if key in random:
            continue
        if w.dtype.kind in "OSU":
            if [x if isinstance(x, bytes) else str(x).encode() for x in g.ravel()] != [x if isinstance(x, bytes) else str(x).encode() for x in w.ravel()]:
                return f"{key}: other strings"
            continue
        if w.size == 0:
            continue
        g, w = g.astype(np.float64), w.astype(np.float64)
        if not np.array_equal(np.isnan(g), np.isnan(w)):
            return f"{key}: NaN in other places"
        g, w = np.nan_to_num(g), np.nan_to_num(w)
        scale = max(np.abs(w).max(), 1e-6)
        most = max(most, float(np.abs(g - w).max() / scale))
    return most


def run(path, records, random=()):
    """The worst difference of all records, or what went wrong."""
    import pickle
    with tempfile.TemporaryDirectory() as work:
        file = os.path.join(work, "records")
        pickle.dump([(k, i) for k, i, _ in records], open(file, "wb"))
        p = subprocess.Popen([sys.executable, "-c", RUN, str(path), file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        most = 0.0
        for key, _, want in records:
            line = p.stdout.readline()
            if not line:
                return f"LiteRT ended with {p.wait()}"
            said = json.loads(line)
            if "ok" not in said:
                p.kill()
                return said.get("load_error") or f"{key}: {said['error']}"
            w = worst(pickle.load(open(file + ".out", "rb")), want, random)
            if isinstance(w, str):
                p.kill()
                return f"{key}: {w}"
            most = max(most, w)
            p.stdin.write("\n"), p.stdin.flush()
        p.kill()
        return most


def signatures(path):
    from tensorflow.lite.python import schema_py_generated as schema
    model = schema.Model.GetRootAs(pathlib.Path(path).read_bytes(), 0)
    return {model.SignatureDefs(i).SignatureKey().decode() for i in range(model.SignatureDefsLength())}


def operators(path):
    """How many operators the file has, in all subgraphs."""
    import tensorflow as tf
    from tensorflow.lite.python import schema_py_generated as schema
    model = schema.Model.GetRootAs(pathlib.Path(path).read_bytes(), 0)
    return sum(model.Subgraphs(i).OperatorsLength() for i in range(model.SubgraphsLength()))


def fastest(convert, times):
    """The shortest of several runs, or the first that says an error."""
    runs = []
    for _ in range(times):
        runs.append(convert())
        if "error" in runs[-1]:
            return runs[-1]
    return min(runs, key=lambda r: r["seconds"])


def by_tensorflow(model, cache, name, times):
    out, said = cache / f"{name}.tflite", cache / f"{name}.json"

    def once():
        try:
            p = subprocess.run([sys.executable, "-c", CONVERT, str(model), str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=900)
        except subprocess.TimeoutExpired:
            return {"error": "over 900 s"}
        line = p.stdout.strip().splitlines()[-1:] or [""]
        return json.loads(line[0]) if line[0].startswith("{") else {"error": f"ended with {p.returncode}"}

    if not said.exists():
        cache.mkdir(parents=True, exist_ok=True)
        said.write_text(json.dumps(fastest(once, times)))
    return out, json.loads(said.read_text())


def by_smelt(smelt, model, out):
    out.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile("r") as peak:
        begin = time.time()
        p = subprocess.run(["/usr/bin/time", "-f", "%M", "-o", peak.name, smelt, "lite", str(model), str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = {"seconds": time.time() - begin, "peak_mb": int(peak.read().split()[-1]) * 1024 // 10**6}
    if p.returncode != 0:
        said["error"] = p.stderr.strip()[-1500:] or f"ended with {p.returncode}"
    return said


def is_right(r):
    return isinstance(r.get("answer"), float) and r["answer"] <= 1e-4


def weights_mb(model):
    """Of what training left beside the graph; 0 for a graph with constants alone."""
    return sum(p.stat().st_size for p in (model / "variables").glob("variables.data*")) / 1e6


def markdown(rows, a):
    """Both converters: the worst difference in LiteRT by an output's range, seconds, operators and bytes. Of smelt the peak of its memory by the weights' bytes too, where these are a
    megabyte or more: of the whole process, and of what it takes beside the least that any export of the run took, which is the program, its libraries and what it knows of ops."""
    least = min(r["smelt"]["peak_mb"] for r in rows)
    lines = ["| model | smelt: off by | s | peak MB (of weights; beside the least) | operators | bytes | TensorFlow: off by | s (times smelt's) | peak MB | operators | bytes |", "|---|" + "---|" * 10]
    for r in rows:
        own, other = r["smelt"], r.get("tensorflow", {"error": "not asked"})
        weights = weights_mb(a.models / r["name"] / "saved_model" if a.suite else a.models / r["name"])

        def off_by(x):
            return "refuses" if "error" in x else f"{x['answer']:.1e}" if isinstance(x["answer"], float) else "wrong"
        share = f" ({own['peak_mb'] / weights:.2f}; {(own['peak_mb'] - least) / weights:.2f})" if weights >= 1 else ""
        times = f" ({other['seconds'] / own['seconds']:.0f})" if "seconds" in other and "error" not in other else ""
        lines.append(f"| {r['name']} | {off_by(own)} | {own['seconds']:.2f} | {own['peak_mb']}{share} | {own.get('operators', '')} | {own.get('bytes', '')} | {off_by(other)} | "
                     f"{other.get('seconds', 0):.1f}{times} | {other.get('peak_mb', '')} | {other.get('operators', '')} | {other.get('bytes', '')} |")
    return lines


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--goldens", type=pathlib.Path), ap.add_argument("--suite", action="store_true"), ap.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("/tmp/lite_by_tensorflow"))
    ap.add_argument("--no_tensorflow", action="store_true", help="only smelt's files"), ap.add_argument("--json", help="write all there"), ap.add_argument("--markdown", help="write a table of it there"), ap.add_argument("--keep", type=pathlib.Path, help="smelt's files stay there")
    ap.add_argument("--times", type=int, default=1, help="the fastest of so many exports counts (TensorFlow's are kept in --cache)")
    a = ap.parse_args()
    names = a.names or sorted(p.name for p in a.models.iterdir() if p.is_dir() and (a.suite or (a.goldens / f"{p.name}.tfrecord").exists()))
    work = a.keep or pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_"))
    work.mkdir(parents=True, exist_ok=True)
    rows, right, partly = [], 0, 0
    print(f"{'model':28} {'smelt':>9} {'s':>6} {'MB':>6} {'operators':>9} {'bytes':>10} | {'TensorFlow':>10} {'s':>6} {'MB':>6} {'operators':>9} {'bytes':>10}")
    for name in names:
        model = a.models / name / "saved_model" if a.suite else a.models / name
        records, said = (records_of_suite(a.models / name), {}) if a.suite else records_of_goldens(a.goldens, name)
        random = {o for c in said.get("cases", []) for o in c["random"]}  # dtype and shape alone count
        row = {"name": name}
        out = work / f"{name}.tflite"
        for engine in ["smelt"] + ([] if a.no_tensorflow else ["tensorflow"]):
            path, r = (out, fastest(lambda: by_smelt(a.smelt, model, out), a.times)) if engine == "smelt" else by_tensorflow(model, a.cache, name, a.times)
            if "error" not in r:
                # Signatures that cannot be exported are left out, where others can.
                there = signatures(path)
                r["left_out"] = sorted({key for key, _, _ in records if there and key not in there})
                asked = [record for record in records if record[0] not in r["left_out"]]
                r["answer"] = run(path, asked, random) if asked else "no signature that is asked for"
                r["operators"], r["bytes"] = operators(path), os.path.getsize(path)
            row[engine] = r
        rows.append(row)

        def cells(r):
            answer = "-" if "error" in r else f"{r['answer']:.1e}" if isinstance(r["answer"], float) else "wrong"
            return f"{answer:>9} {r.get('seconds', 0):6.2f} {r.get('peak_mb', 0):6} {r.get('operators', ''):>9} {r.get('bytes', ''):>10}"
        print(f"{name:28} " + " | ".join(cells(row[e]) for e in ("smelt", "tensorflow") if e in row), flush=True)
        ok = is_right(row["smelt"])
        left_out = row["smelt"].get("left_out")
        right += ok and not left_out
        partly += bool(ok and left_out)
        if ok and left_out:
            print(f"    smelt: left out are {', '.join(left_out)}")
        if not ok:
            print("    smelt: " + str(row["smelt"].get("error", row["smelt"].get("answer"))).replace("\n", "\n      "))
    print(f"{right} of {len(names)} right, {partly} right without signatures that are left out")
    alone = [r["name"] for r in rows if "tensorflow" in r and is_right(r["smelt"]) and (not is_right(r["tensorflow"]) or r["tensorflow"]["left_out"])]
    print(f"of those that TensorFlow refuses or gets wrong, {len(alone)} are right: {', '.join(alone)}")
    # A file without its weights is short.
    both = [r for r in rows if "tensorflow" in r and isinstance(r["smelt"].get("answer"), float) and is_right(r["tensorflow"])]
    for what in ("operators", "bytes"):
        more = [f"{r['name']} ({r['smelt'][what]} beside {r['tensorflow'][what]})" for r in both if r["smelt"][what] > r["tensorflow"][what]]
        print(f"more {what} than TensorFlow's: {len(more)} of {len(both)}" + "".join("\n    " + m for m in more))
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))
    if a.markdown:
        pathlib.Path(a.markdown).write_text("\n".join(markdown(rows, a)) + "\n")


if __name__ == "__main__":
    main()
