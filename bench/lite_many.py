#!/usr/bin/env python3
"""Many .tflite files in LiteRT and in smelt: lite_many.py SMELT FOLDER [--models MODELS --goldens GOLDENS] [--only TEXT] [--parts functions,operators,keras,corpus]

FOLDER keeps the files, which are made once: by TensorFlow's converter of the functions of tests/peers/lite_files.py, of layers and networks of Keras, and of the SavedModels of MODELS, all in every form
(float, float16, dynamic, int8 with int8 and with float inputs, int16x8); by `smelt lite` of those models; and by tests/peers/lite_builder.py, one operator in each type. Each file is run by every signature, with its
shapes and with a batch of 3 where that is free, in LiteRT (the default resolver; where smelt answers otherwise, the reference kernels and those without delegates too) and in smelt.

equal: integers of LiteRT's default or of its reference kernels, floats within 1e-5 of an output's range. one step: integers differ by one at most. spread: floats of quantized files, and
integers behind many layers, differ less than those of LiteRT's resolvers among themselves. Ends with the counts, and fails where smelt answers otherwise or refuses what LiteRT runs."""
import argparse
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
peers = here.parent / "tests" / "peers"
FORMS = ["float", "float16", "dynamic", "int8", "int8_float_io", "int16x8"]
SMELT_FORMS = {"float": [], "float16": ["--quantize", "float16"], "dynamic": ["--quantize", "dynamic"], "int8_float_io": ["--quantize", "int8"],
               "int8": ["--quantize", "int8", "--only_integer", "--inference_input_type", "int8", "--inference_output_type", "int8"], "int16x8": ["--quantize", "int16x8"]}
TOLERANCE = 1e-5

CONVERT = r"""
import os, pathlib, sys
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
peers, folder, part, names, forms, models = sys.argv[1:7]
sys.path.insert(0, peers)
sys.argv[1:] = ["smelt"]
import numpy as np
import tensorflow as tf
folder = pathlib.Path(folder)

def write(name, form, converter, samples):
    target, said = folder / f"{name}.{form}.tflite", folder / f"{name}.{form}.error"
    if target.exists() or said.exists():
        return
    said.write_text("the converter ended the process")
    if form != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if form == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if form.startswith("int"):
        converter.representative_dataset = samples
    if form == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    if form == "int16x8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]
    try:
        target.write_bytes(converter.convert())
        said.unlink()
    except Exception as e:
        said.write_text(f"{type(e).__name__}: {e}"[-500:])

for name in names.split(","):
    for form in forms.split(","):
        if (folder / f"{name}.{form}.tflite").exists() or (folder / f"{name}.{form}.error").exists():
            continue
        if part == "functions":
            import lite_files
            function, specs, inputs, options = next(c[1:] for c in lite_files.CASES if c[0] == name)
            module = function if isinstance(function, tf.Module) else tf.Module()
            named = lambda *a: (lambda out: out if isinstance(out, dict) else {"y": out})(function(*a))
            module.f = tf.function(named, input_signature=[tf.TensorSpec(s, t, name=f"x{i}") for i, (s, t) in enumerate(specs)])
            concrete = module.f.get_concrete_function()
            converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
            values = inputs or [lite_files.value(s, t, 1) for s, t in specs]
            write(name, form, converter, lambda: [values, values])
        elif part == "keras":
            import keras, keras_models
            keras.utils.set_random_seed(3)
            model, requests = keras_models.ROWS[name]()
            if isinstance(model, keras.Model):
                converter = tf.lite.TFLiteConverter.from_keras_model(model)
                rows = [list(r.values()) for r in requests]
                write(name, form, converter, lambda: ([v[:1] for v in r] for r in rows))
        else:
            from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
            loaded = tf.saved_model.load(str(pathlib.Path(models) / name))
            key = "serving_default" if "serving_default" in loaded.signatures else sorted(loaded.signatures)[0]
            frozen = convert_variables_to_constants_v2(loaded.signatures[key])
            values = [np.random.default_rng(1).uniform(0, 1, [1 if d is None else d for d in t.shape]).astype(t.dtype.as_numpy_dtype) if t.dtype.is_floating else None for t in frozen.inputs]
            if form.startswith("int") and any(v is None for v in values):
                (folder / f"{name}.{form}.error").write_text("no samples for its inputs")
                continue
            write(name, form, tf.lite.TFLiteConverter.from_concrete_functions([frozen], loaded), lambda: [values, values])
"""

RUN = r"""
import pickle, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
resolvers = {"auto": OpResolverType.BUILTIN, "ref": OpResolverType.BUILTIN_REF, "plain": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
jobs, answers = sys.argv[1:]

def value(detail, shape, rng):
    dtype, q = detail["dtype"], detail["quantization"]
    if dtype in (np.str_, np.bytes_, np.object_):
        return np.array([[b"a", b"b", b"", b"zz"][i % 4] for i in range(int(np.prod(shape)))], object).reshape(shape)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    if q[0] > 0:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.integers(1, 3, shape).astype(dtype)

with open(answers, "ab") as out:
    for path, resolver in pickle.load(open(jobs, "rb")):
        said = []
        try:
            given = np.load(path[:-7] + ".npz", allow_pickle=True) if __import__("os").path.exists(path[:-7] + ".npz") else None
            keys = list(Interpreter(model_path=path, experimental_op_resolver_type=resolvers[resolver]).get_signature_list()) or [None]
            for key in keys:
                for batch in (None, 3):
                    interpreter = Interpreter(model_path=path, experimental_op_resolver_type=resolvers[resolver])
                    if key is None:
                        details = {d["name"]: d for d in interpreter.get_input_details()}
                    else:
                        runner = interpreter.get_signature_runner(key)
                        details = runner.get_input_details()
                    rng = np.random.default_rng(5)
                    inputs, free = {}, False
                    for k in sorted(details):
                        d = details[k]
                        shape = [int(s) for s in d["shape"]]
                        signature = [int(s) for s in d["shape_signature"]]
                        free = free or -1 in signature
                        if batch is not None:
                            shape = [batch if i == 0 and s == -1 else n for i, (s, n) in enumerate(zip(signature, shape))]
                        inputs[k] = given[k] if given is not None and k in given.files else value(d, shape, rng)
                    if batch is not None and (not free or given is not None):
                        continue
                    try:
                        if key is None:
                            for k, v in inputs.items():
                                interpreter.resize_tensor_input(details[k]["index"], v.shape)
                            interpreter.allocate_tensors()
                            for k, v in inputs.items():
                                interpreter.set_tensor(details[k]["index"], v)
                            interpreter.invoke()
                            got = {d["name"]: np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()}
                        else:
                            got = {k: np.array(v) for k, v in runner(**inputs).items()}
                        said.append((key, inputs, got))
                    except (RuntimeError, ValueError) as e:
                        said.append((key, inputs, f"{type(e).__name__}: {e}"))
        except (RuntimeError, ValueError) as e:
            said = f"{type(e).__name__}: {e}"
        pickle.dump(said, out)
        out.flush()
"""


def process(text, *arguments, limit=1200):
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    try:
        p = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True, timeout=limit, errors="replace", env=env)
    except subprocess.TimeoutExpired:
        return 124, f"it took longer than {limit} s"
    return p.returncode, p.stderr.strip()[-2000:]


def made(folder, name, form):
    return (folder / f"{name}.{form}.tflite").exists() or (folder / f"{name}.{form}.error").exists()


def convert(folder, part, names, forms, models=""):
    """Until each is made or said why not: the converter may end its process, which is then started anew."""
    folder.mkdir(parents=True, exist_ok=True)
    while left := [n for n in names if not all(made(folder, n, f) for f in forms)]:
        _, said = process(CONVERT, peers, folder, part, ",".join(left), ",".join(forms), models)
        after = [n for n in names if not all(made(folder, n, f) for f in forms)]
        if after == left:
            # What never came to converting.
            for form in forms:
                if not made(folder, left[0], form):
                    (folder / f"{left[0]}.{form}.error").write_text(said or "nothing was made")


def litert(jobs):
    """For each (file, resolver) [(signature, inputs, outputs or why not)], or why the file does not load."""
    out = []
    with tempfile.TemporaryDirectory(prefix="smelt_lite_many_") as work:
        asked, answers = pathlib.Path(work) / "jobs", pathlib.Path(work) / "answers"
        while len(out) < len(jobs):
            asked.write_bytes(pickle.dumps(jobs[len(out):]))
            answers.write_bytes(b"")
            code, said = process(RUN, asked, answers)
            with open(answers, "rb") as f:
                while True:
                    try:
                        out.append(pickle.load(f))
                    except EOFError:
                        break
            if len(out) < len(jobs):
                out.append(f"LiteRT ended with {code}: {said[-200:]}")
    return out


def distance(got, want):
    """(steps of integers, part of a float's range, what else differs)"""
    import numpy as np
    steps, part = 0, 0.0
    if set(got) != set(want):
        return 0, 0, f"outputs {sorted(got)}, wanted {sorted(want)}"
    for k, w in want.items():
        g = got[k]
        if g.shape != w.shape:
            return 0, 0, f"{k}: shape {g.shape}, wanted {w.shape}"
        if w.dtype.kind in "OSU":
            text = lambda a: [x if isinstance(x, bytes) else str(x).encode() for x in a.ravel()]
            if text(g) != text(w):
                return 0, 0, f"{k}: {text(g)[:4]}, wanted {text(w)[:4]}"
        elif g.dtype != w.dtype:
            return 0, 0, f"{k}: type {g.dtype}, wanted {w.dtype}"
        elif w.size == 0:
            continue
        elif w.dtype.kind in "fc":
            if not np.array_equal(np.isnan(g), np.isnan(w)):
                return 0, 0, f"{k}: NaN in other places"
            same = (g == w) | np.isnan(w)
            a, b = np.where(same, 0, g), np.where(same, 0, w)
            apart = float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-6))
            # Numbers of 11 bits are summed as they are, or as floats.
            part = max(part, apart if w.dtype != np.float16 else apart if apart > 2e-3 else 0.0)
        else:
            steps = max(steps, int(np.abs(g.astype(np.int64) - w.astype(np.int64)).max()))
    return steps, part, ""


def smelt_answers(smelt, path, key, inputs, work):
    import numpy as np
    given = []
    for i, (k, v) in enumerate(inputs.items()):
        np.save(work / f"in{i}.npy", np.asarray(v).astype("S") if np.asarray(v).dtype == object else v)
        given.append(f"{k}={work}/in{i}.npy")
    out = work / "out"
    for p in out.glob("*.npy") if out.exists() else ():
        p.unlink()
    flags = ["--inputs", ";".join(given)] if given else []
    p = subprocess.run([smelt, "run", str(path), "--signature_def", key or "serving_default", *flags, "--outdir", str(out), "--overwrite"], capture_output=True, text=True, timeout=600, errors="replace")
    if p.returncode != 0:
        return (p.stderr.strip() or f"it ended with {p.returncode}")[-400:]
    return {p.stem: np.load(p, allow_pickle=True) for p in out.glob("*.npy")}


def operators(folder):
    sys.path.insert(0, str(peers))
    import lite_many_operators
    folder.mkdir(parents=True, exist_ok=True)
    lite_many_operators.write(folder)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt", type=os.path.abspath), ap.add_argument("folder", type=pathlib.Path), ap.add_argument("--only", default="")
    ap.add_argument("--models", type=pathlib.Path), ap.add_argument("--goldens", type=pathlib.Path)
    ap.add_argument("--parts", default="functions,operators,keras,corpus"), ap.add_argument("--make_only", action="store_true")
    a = ap.parse_args()
    parts = a.parts.split(",")
    if "operators" in parts:
        operators(a.folder / "operators")
    if "functions" in parts or "keras" in parts:
        names = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = ['smelt']\nimport lite_files, keras_models\nprint(*[c[0] for c in lite_files.CASES if any(t.is_floating for _, t in c[2])])\nprint(*keras_models.ROWS)", str(peers)],
                               capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, check=True).stdout.splitlines()[-2:]
        if "functions" in parts:
            convert(a.folder / "functions", "functions", [n for n in names[0].split() if a.only in n], ["dynamic", "int8", "int16x8"])
        if "keras" in parts:
            convert(a.folder / "keras", "keras", [n for n in names[1].split() if a.only in n], FORMS)
    if "corpus" in parts and a.models and a.models.is_dir():
        names = [p.name for p in sorted(a.models.iterdir()) if (p / "saved_model.pb").exists() or (p / "saved_model.pbtxt").exists()]
        names = [n for n in names if a.only in n]
        convert(a.folder / "corpus", "corpus", names, FORMS, a.models)
        by_smelt = a.folder / "corpus_by_smelt"
        by_smelt.mkdir(exist_ok=True)
        for n in names:
            for form, flags in SMELT_FORMS.items():
                if made(by_smelt, n, form):
                    continue
                samples = ["--representative", str(a.goldens / f"{n}.tfrecord")] if form.startswith("int") and a.goldens else []
                p = subprocess.run([a.smelt, "lite", str(a.models / n), str(by_smelt / f"{n}.{form}.tflite"), *flags, *samples], capture_output=True, text=True, timeout=600)
                if p.returncode != 0:
                    (by_smelt / f"{n}.{form}.error").write_text(p.stderr[-500:])
    files = [f for p in [*parts, "corpus_by_smelt" if "corpus" in parts else ""] if p for f in sorted((a.folder / p).glob("*.tflite")) if a.only in f.name]
    print(f"{len(files)} files", flush=True)
    if a.make_only:
        return 0
    counts, refused, bad, unasked = {"equal": 0, "one step": 0, "spread": 0}, [], [], []
    with tempfile.TemporaryDirectory(prefix="smelt_lite_many_") as folder:
        work = pathlib.Path(folder)
        for at in range(0, len(files), 40):
            group = files[at:at + 40]
            for f, answers in zip(group, litert([(str(f), "auto") for f in group])):
                name = f"{f.parent.name}/{f.stem}"
                asked = [] if isinstance(answers, str) else [x for x in answers if not isinstance(x[2], str)]
                if not asked:
                    unasked.append(f"{name}: {(answers if isinstance(answers, str) else answers[0][2] if answers else 'no signature')[-160:]}")
                    continue
                kind, why, others = "equal", "", {}
                for i, (key, inputs, want) in enumerate(answers):
                    if isinstance(want, str):
                        continue
                    got = smelt_answers(a.smelt, f, key, inputs, work)
                    if isinstance(got, str):
                        kind, why = "refused", got
                        break
                    steps, part, odd = distance(got, want)
                    if not odd and steps == 0 and part <= TOLERANCE:
                        continue
                    for resolver in "ref", "plain":
                        if resolver not in others:
                            others[resolver] = litert([(str(f), resolver)])[0]
                    theirs = {r: x[i][2] for r, x in others.items() if not isinstance(x, str) and i < len(x) and not isinstance(x[i][2], str)}
                    apart = {r: distance(got, w) for r, w in theirs.items()}
                    if "ref" in apart and not apart["ref"][2] and apart["ref"][0] == 0 and apart["ref"][1] <= TOLERANCE:
                        continue
                    spread = [distance(x, want) for x in theirs.values()]
                    least = min([steps if not odd else 99, *(s for s, _, o in apart.values() if not o)])
                    own_steps, own_part = (max([x[at] for x in spread] or [0]) for at in (0, 1))
                    # A layer's step that flips becomes several behind many layers, in integers as in floats.
                    if not odd and (steps == 0 or (steps > 1 and steps <= own_steps)) and part <= max(own_part, TOLERANCE if steps else 0):
                        kind = "spread" if kind == "equal" else kind
                        why += f" {steps} steps, {part:.2g} of the range, LiteRT's own {own_steps}, {own_part:.2g};"
                    elif not odd and least <= 1 and part <= TOLERANCE:
                        kind = "one step" if kind in ("equal", "spread") else kind
                    else:
                        kind = "different"
                        why += f" {key} run {i}: {odd or ''} steps {steps}, {part:.2g} of the range; others: {({r: d[:2] if not d[2] else d[2] for r, d in apart.items()})}, among themselves {[d[:2] for d in spread]}"
                if kind == "refused":
                    refused.append(name)
                elif kind == "different":
                    bad.append(name)
                else:
                    counts[kind] += 1
                if kind != "equal":
                    print(f"{kind:9} {name}: {' '.join(why.split())[:420]}", flush=True)
    for u in unasked:
        print("LiteRT refuses", " ".join(u.split()))
    print(f"{len(files)} files: {counts['equal']} equal, {counts['one step']} one step, {counts['spread']} within LiteRT's spread, {len(bad)} different, {len(refused)} refused by smelt alone, {len(unasked)} by LiteRT")
    return 1 if bad or refused else 0


if __name__ == "__main__":
    sys.exit(main())
