"""A stranger's model as a .tflite file: smelt exports every signature, LiteRT answers the recorded requests, and TensorFlow's converter is asked where
smelt refuses or is wrong (always, with --tensorflow, which compares operators and bytes too)."""
import json
import re

from lite_process import difference, litert_answers, one_line, operators, python, reason

TOLERANCE, ROUNDED = 1e-4, 2e-2  # of an output's range; of models that compute in 16 bits
LIMIT = 240  # seconds that TensorFlow's converter gets

CONVERTER = """
import sys
import tensorflow as tf
path, out, tags, keys = sys.argv[1:]
converter = tf.lite.TFLiteConverter.from_saved_model(path, tags=tags.split(','), signature_keys=keys.split(',') if keys else None)
data = converter.convert()
open(out, 'wb').write(data)
"""


def recorded(log):
    """([(signature, inputs)], [outputs], tags)"""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    asked, wanted, tags = [], [], []
    for record in tf.data.TFRecordDataset(str(log)).as_numpy_iterator():
        entry = prediction_log_pb2.PredictionLog.FromString(record)
        tags = list(entry.log_metadata.saved_model_tags)
        request, response = entry.predict_log.request, entry.predict_log.response
        asked.append((request.model_spec.signature_name, {k: tf.make_ndarray(v) for k, v in request.inputs.items()}))
        wanted.append({k: tf.make_ndarray(v) for k, v in response.outputs.items()})
    return asked, wanted, tags


def verdict(file, asked, wanted, facts, left_out=()):
    """Why the file is not right; empty: it is. Signatures that were left out are not asked."""
    pairs = [(a, w) for a, w in zip(asked, wanted) if a[0] not in left_out]
    if not pairs:
        return "all signatures with answers are left out"
    any_value = facts["outputs"] if facts["draws"] else facts["random"]
    for ((key, _), want), got in zip(pairs, litert_answers([(file, [a for a, _ in pairs])])[0]):
        why = difference(got, want, ROUNDED if facts["narrow"] else TOLERANCE, any_value)
        if why:
            return one_line(f"{key}: {why}", 400)
    return ""


def tensorflow_file(path, tags, keys=()):
    """(file or None, why not) of TensorFlow's converter, kept beside the model."""
    file, said = path.with_name(path.name + ".tensorflow.tflite"), path.with_name(path.name + ".tensorflow.error")
    if not file.exists() and not said.exists():
        code, text = python(CONVERTER, path, file, ",".join(tags), ",".join(keys), limit=LIMIT)
        if code != 0:
            file.unlink(missing_ok=True)
            said.write_text(reason(text))
    return (file, "") if file.exists() else (None, said.read_text())


def measured(file):
    """(operators in all subgraphs, bytes)"""
    data = file.read_bytes()
    return sum(map(len, operators(data))), len(data)


def check(stranger, call, always):
    """Exports and asks; failures and refusals join the stranger's."""
    asked, wanted, tags = recorded(stranger.log)
    file = stranger.path.with_name(stranger.name + ".tflite")
    code, said, _ = call(600, stranger.smelt, "lite", stranger.path, file, "--tag_set", ",".join(tags))
    why, kind = "", "right"
    left_out = re.findall(r"^warning: signature '(.*?)' is left out", said, re.M)
    if code != 0 or not file.exists():
        ops = re.findall(r"^([A-Z]\w+) +\d+  (.*)$", said, re.M)  # the rows of what was refused
        kind, why = "refused" if 0 < code < 128 and "error:" in said else "failed", "; ".join(map(": ".join, ops)) or one_line(said, 500)
    elif stranger.facts["custom"]:
        kind = "unasked"
    else:
        why = verdict(file, asked, wanted, stranger.facts, left_out)
        kind = "wrong" if why else "right"
    theirs, other, theirs_said = "unasked", None, ""
    if (always or kind not in ("right", "unasked") or left_out) and not stranger.facts["custom"]:
        other, theirs_said = tensorflow_file(stranger.path, tags, sorted({a[0] for a in asked}))
        theirs = "refused"
        if other:
            theirs_said = verdict(other, asked, wanted, stranger.facts)
            theirs = "wrong" if theirs_said else "right"
    if kind in ("wrong", "failed") or (theirs == "right" and (kind == "refused" or left_out)):
        stranger.fail("lite", f"{kind}, TensorFlow's is {theirs}: {why or ', '.join(left_out)} {theirs_said and '| TensorFlow: ' + theirs_said}")
    elif kind == "refused" or left_out:
        stranger.refused.append("lite")
        print(f"refused {stranger.name} lite: {why or 'left out: ' + ', '.join(left_out)} | TensorFlow's is {theirs}: {theirs_said[-200:]}", flush=True)
    elif theirs == kind == "right":
        # TensorFlow's has the signatures that are asked alone.
        keys = [w for a in sorted({a[0] for a in asked}) for w in ("--signature", a)]
        call(600, stranger.smelt, "lite", stranger.path, file, "--tag_set", ",".join(tags), *keys)
        ours, others = measured(file), measured(other)
        if ours[0] > others[0] or ours[1] > others[1]:
            stranger.fail("lite", f"{ours[0]} operators and {ours[1]} bytes, TensorFlow's {others[0]} and {others[1]}")
    file.unlink(missing_ok=True)
