#!/usr/bin/env python3
"""Certificates of conversions: certificate_test.py SMELT. Ends with 'N passed, N failed'."""
import hashlib
import json
import pathlib
import re
import shutil

from program import call, check, finish, models, work, write_samples

WHERE = "assets.extra/conversion_certificate.json"
PLACE = 'tpu_functions { signature_name: "serving_default" }'
TYPES = {"text": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "objects": list, "texts": list}
document = pathlib.Path(__file__).resolve().parent.parent / "docs/report.md"
schema = dict(re.findall(r"^\| `([\w.\[\]]+)` \| (\w+) \|", document.read_text().split("\n# The certificate")[1], re.M))
seen, wrong = set(), []


def walk(value, path=""):
    for key, v in value.items():
        here = path + key
        seen.add(here)
        if here not in schema or not isinstance(v, TYPES[schema[here]]) or schema[here] == "integer" and isinstance(v, bool):
            wrong.append((here, v))
        elif isinstance(v, dict):
            walk(v, here + ".")
        elif schema[here] == "objects":
            for e in v:
                walk(e, here + "[].")
    direct = {p[len(path):] for p in schema if p.startswith(path) and not re.search(r"[.\[]", p[len(path):])}
    wrong.extend((path + p, "missing") for p in direct - set(value))


def convert(model, name, *flags, options=PLACE):
    code, out, err = call("convert", model, work / name, "--converter_options_string", options, "--certificate", *flags)
    check(f"{name} converts", code == 0, out + err)
    data = json.loads((work / name / WHERE).read_text())
    walk(data)
    return work / name, data


def differs(name, folder, *words, source=(), flags=()):
    code, out, err = call("convert", *source, folder, "--check", *flags)
    lines = [line for line in out.splitlines() if line.startswith("check: ")]
    check(name, code == 1 and len(lines) == 1 and all(w in lines[0] for w in words), (code, out, err))


# ---- what it says
one, data = convert(models / "cnn", "one", "--verify", "3", "--report_json", work / "one/report.json")
files = sorted(str(p.relative_to(one)) for p in one.rglob("*") if p.is_file() and str(p.relative_to(one)) != WHERE)
check("every file is certified", [f["path"] for f in data["files"]] == files and "report.json" in files, data["files"])
check("with its hash and size", all(f["sha256"] == hashlib.sha256((one / f["path"]).read_bytes()).hexdigest() and f["bytes"] == (one / f["path"]).stat().st_size for f in data["files"]), data["files"])
report = json.loads((one / "report.json").read_text())
check("the input is the report's", data["input"]["sha256"] == report["model"]["sha256"] and data["input"]["tags"] == ["serve"], data["input"])
check("the verification is the report's", [{k: o[k] for k in ("signature", "output", "requests", "max_abs", "max_relative", "random", "ok")} for o in report["verification"]["outputs"]] == data["verification"]["outputs"]
      and data["verification"]["outputs"], data["verification"])
check("options and flags", data["options"] == PLACE and data["flags"] == [] and data["smelt_version"] == call("version")[1].split()[1], data)
_, luck = convert(models / "wishes", "luck", "--verify", "2", options='tpu_functions { signature_name: "luck" }')
check("random outputs are named", {o["output"] for o in luck["verification"]["outputs"] if o["random"]} == {"drawn"}, luck["verification"])
two, again = convert(models / "cnn", "two", "--verify", "3")
_, same = convert(models / "cnn", "same", "--verify", "3")
check("equal conversions have equal certificates", (two / WHERE).read_bytes() == (work / "same" / WHERE).read_bytes())
logged, data = convert(models / "cnn", "logged", "--verify_log", models / "cnn.tfrecord", "--strip_training", "--warmup_requests")
check("a log by its hash", data["verification"]["log_sha256"] == hashlib.sha256((models / "cnn.tfrecord").read_bytes()).hexdigest() and data["verification"]["requests_per_signature"] == 0, data["verification"])
check("flags", data["flags"] == ["--strip_training", "--warmup_requests"], data["flags"])
code, out, err = call("convert", models / "cnn", work / "none", "--converter_options_string", PLACE, "--certificate")
check("without measurements there is none", code == 1 and "INVALID_ARGUMENT" in err and "--verify" in err and not (work / "none").exists(), err)
code, out, err = call("convert", models / "cnn", work / "bad", "--converter_options_string", PLACE, "--certificate", "--verify", "2", "--verify_tolerance", "0", "--keep_failed")
check("what differs is not certified", code == 1 and (work / "bad/saved_model.pb").exists() and not (work / "bad" / WHERE).exists(), out)
code, out, err = call("convert", two, work / "third", "--converter_options_string", "disable_default_optimizations: true", "--strip_training")
check("the input's certificate does not travel", code == 0 and not (work / "third/assets.extra").exists(), out + err)

# ---- calibration: int8 with samples
write_samples(models / "cnn.tfrecord", work / "cnn.samples")
static = ("quantization_options { min_num_elements_for_weights: 1 "
          'representative_datasets { key: "serving_default" value { tfrecord_file_path: "%s" } } } bfloat16_optimization: DISABLED ' % (work / "cnn.samples")) + PLACE
code, out, err = call("convert", models / "cnn", work / "int8", "--converter_options_string", static, "--verify", "2", "--verify_tolerance", "1", "--certificate")
check("static int8 converts", code == 0, out + err)
if code == 0:
    data = json.loads((work / "int8" / WHERE).read_text())
    walk(data)
    check("samples of each tensor", data["calibration"]["tensors"] and all(t["samples"] > 0 for t in data["calibration"]["tensors"]) and any(l["quantized"] for l in data["calibration"]["layers"]), data["calibration"])
check("certificates are as documented", not wrong and seen == set(schema), (wrong[:5], seen ^ set(schema)))

# ---- --check
code, out, err = call("convert", two, "--check")
check("unchanged", code == 0 and "files are as certified\n" in out and err == "", out + err)
code, out, err = call("convert", models / "cnn", two, "--check")
check("with the input the answers, too", code == 0 and "and so are the input and the answers" in out and "verify: signature" in out, out + err)
code, out, err = call("convert", "--check", "--output_model_dir", two)
check("by flag", code == 0, out + err)
variables = two / "variables/variables.data-00000-of-00001"
good = variables.read_bytes()
variables.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
differs("one byte", two, "variables/variables.data-00000-of-00001: changed")
differs("one byte, with the input", two, "variables/variables.data-00000-of-00001: changed", source=[models / "cnn"])
variables.unlink()
differs("a file is missing", two, "variables.data-00000-of-00001: missing")
variables.write_bytes(good)
(two / "more.txt").write_text("x")
differs("a file is extra", two, "more.txt: extra")
(two / "more.txt").unlink()
differs("another input", two, "is not the model that was converted", source=[models / "counter"])
differs("another log", logged, "changed: SHA-256", source=[models / "cnn"], flags=["--verify_log", models / "counter.tfrecord"])
code, out, err = call("convert", models / "cnn", logged, "--check", "--verify_log", models / "cnn.tfrecord")
check("the same log", code == 0, out + err)
code, out, err = call("convert", models / "cnn", logged, "--check")
check("a log must be given again", code == 1 and "INVALID_ARGUMENT" in err and "--verify_log" in err, err)

# A certificate that allows less than the answers differ by: the measurements are made again.
text = (two / WHERE).read_text()
strict = json.loads(text)
strict["verification"]["tolerance"] = 0
(two / WHERE).write_text(json.dumps(strict))
differs("more than is certified", two, "differ by more than is certified", source=[models / "cnn"])

# ---- no certificate, and damaged ones
code, out, err = call("convert", models / "cnn", "--check")
check("none", code == 1 and "NOT_FOUND" in err and "has no certificate" in err, err)
damaged = [text[:200], "", "[]", "nul", "[" * 100000, text.replace('"version": 1', '"version": 2'), text.replace('"version": 1', '"version": "1"'), text.replace('"sha256"', '"sha"', 1),
           text.replace('"files": [', '"files": [7,'), text.replace('"bytes": ', '"bytes": 1e99'), re.sub(r'"requests_per_signature": \d+', '"requests_per_signature": 0', text),
           re.sub(r'"tolerance": [\d.e-]+', '"tolerance": -1', text), re.sub(r'"tolerance": [\d.e-]+', '"tolerance": null', text)]
for i, bad in enumerate(damaged):
    (two / WHERE).write_text(bad)
    code, out, err = call("convert", two, "--check")
    check(f"damaged {i}", bad != text and code == 1 and "INVALID_ARGUMENT" in err and WHERE in err, (code, out, err))
shutil.rmtree(two / "assets.extra")
finish()
