"""A .tflite file in LiteRT and in smelt: equal answers."""
import os
import pathlib
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from checks import call, check

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_"))
RESOLVERS = {"ref": OpResolverType.BUILTIN_REF, "plain": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, "auto": OpResolverType.BUILTIN}


def litert(data, inputs, key=None, resolver="plain"):
    """The outputs by key, or an error's text."""
    try:
        interpreter = Interpreter(model_content=data, experimental_op_resolver_type=RESOLVERS[resolver])
        runner = interpreter.get_signature_runner(key)
        return {k: np.array(v) for k, v in runner(**inputs).items()}
    except (RuntimeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"


def smelt(name, data, inputs, key="serving_default", flags=()):
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.tflite").write_bytes(data)
    given = []
    for k, v in inputs.items():
        np.save(folder / f"in_{k}.npy", v.astype("S") if v.dtype == object else v)
        given.append(f"{k}={folder}/in_{k}.npy")
    flags = [*flags, *(["--inputs", ";".join(given)] if given else [])]
    code, text = call("run", folder / "model.tflite", "--signature_def", key, *flags, "--outdir", folder / "out", "--overwrite")
    if code != 0:
        return text.strip()[-600:]
    return {p.stem: np.load(p, allow_pickle=True) for p in (folder / "out").glob("*.npy")}


def smelt_calls(name, data, calls, key="serving_default"):
    """The answers to calls one behind another, which find what the file keeps; or a text."""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.tflite").write_bytes(data)
    with tf.io.TFRecordWriter(str(folder / "asked")) as log:
        for inputs in calls:
            entry = prediction_log_pb2.PredictionLog()
            entry.predict_log.request.model_spec.signature_name = key
            for k, v in inputs.items():
                entry.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
            log.write(entry.SerializeToString())
    code, text = call("replay", folder / "model.tflite", "--log", folder / "asked", "--record", folder / "said")
    answers = []
    if (folder / "said").exists():
        for record in tf.data.TFRecordDataset(str(folder / "said")).as_numpy_iterator():
            outputs = prediction_log_pb2.PredictionLog.FromString(record).predict_log.response.outputs
            answers.append({k: tf.make_ndarray(v) for k, v in outputs.items()})
    if len(answers) == len(calls) and all(answers):
        return answers
    # Nothing was recorded to compare with, so that replay counts a failure as equal.
    said = smelt(name, data, calls[0], key)
    return said if isinstance(said, str) else text.strip()[-600:]


def difference(got, want, steps, tolerance):
    if isinstance(got, str):
        return got or "no answer"
    if set(got) != set(want):
        return f"outputs {sorted(got)}, wanted {sorted(want)}"
    for k, w in want.items():
        g = got[k]
        if g.shape != w.shape:
            return f"{k}: shape {g.shape}, wanted {w.shape}"
        if w.dtype.kind in "OSU":
            if [x if isinstance(x, bytes) else str(x).encode() for x in g.ravel()] != [x if isinstance(x, bytes) else str(x).encode() for x in w.ravel()]:
                return f"{k}: {g}, wanted {w}"
            continue
        if g.dtype != w.dtype:
            return f"{k}: type {g.dtype}, wanted {w.dtype}"
        if w.size == 0:
            continue
        if w.dtype.kind in "fc":
            if not np.array_equal(np.isnan(g), np.isnan(w)):
                return f"{k}: NaN in other places"
            same = (g == w) | np.isnan(w)
            g, w = np.where(same, 0, g), np.where(same, 0, w)
            most = np.abs(g - w).max() / max(np.abs(w).max(), 1e-6)
            if not most <= tolerance:
                return f"{k}: {most} of the range; {g.ravel()[:6]}, wanted {w.ravel()[:6]}"
        else:
            d = np.abs(g.astype(np.int64) - w.astype(np.int64))
            if d.max() > steps:
                at = np.unravel_index(d.argmax(), d.shape)
                return f"{k}: {(d > steps).sum()} of {d.size} differ, most by {d.max()} at {at}: {g[at]}, wanted {w[at]}"
    return ""


unsupported = []


def compare(name, data, inputs, key=None, resolver="plain", steps=0, tolerance=1e-5):
    """Checks that smelt answers as LiteRT. A file that LiteRT itself refuses is listed, not counted."""
    want = litert(data, inputs, key, resolver)
    if isinstance(want, str):
        unsupported.append(f"{name}: {want[:200]}")
        return
    why = difference(smelt(name, data, inputs, key or "serving_default"), want, steps, tolerance)
    check(name, not why, why)
