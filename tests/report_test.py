#!/usr/bin/env python3
"""The reports of smelt convert against docs/report.md: report_test.py SMELT. Ends with 'N passed, N failed'."""
import hashlib
import json
import pathlib
import re
import shutil

from program import call, check, finish, models, work

document = pathlib.Path(__file__).resolve().parent.parent / "docs/report.md"
TYPES = {
    "text": lambda v: isinstance(v, str),
    "integer": lambda v: type(v) is int,
    "number": lambda v: type(v) in (int, float),
    "boolean": lambda v: isinstance(v, bool),
    "object": lambda v: isinstance(v, dict),
    "objects": lambda v: isinstance(v, list) and all(isinstance(e, dict) for e in v),
    "texts": lambda v: isinstance(v, list) and all(isinstance(e, str) for e in v),
    "integers": lambda v: isinstance(v, list) and all(type(e) is int for e in v),
    "integers or null": lambda v: v is None or isinstance(v, list) and all(type(e) is int for e in v),
}
schema = dict(re.findall(r"^\| `([\w.\[\]]+)` \| ([\w ]+) \|", document.read_text().split("\n# The certificate")[0], re.M))
check("the document is read", len(schema) > 90 and set(schema.values()) == set(TYPES), len(schema))
seen = set()


def walk(value, path, wrong):
    """Notes fields that the document lacks, has as another type, or that are missing."""
    for key, v in value.items():
        here = f"{path}{key}"
        seen.add(here)
        if here not in schema or not TYPES[schema[here]](v):
            wrong.append((here, v))
        elif isinstance(v, dict):
            walk(v, here + ".", wrong)
        elif schema[here] == "objects":
            for e in v:
                walk(e, here + "[].", wrong)
    direct = {p[len(path):] for p in schema if p.startswith(path) and not re.search(r"[.\[]", p[len(path):])}
    wrong += [(path + p, "missing") for p in direct - set(value)]


def report(name, model, options, *flags):
    file = work / f"{name}.json"
    code, out, err = call("convert", model, work / name, "--converter_options_string", options, "--report_json", file, *flags)
    check(f"{name} converts", code == 0, out + err)
    data = json.loads(file.read_bytes().decode("utf-8"))
    wrong = []
    walk(data, "", wrong)
    check(f"{name} is as documented", not wrong, wrong[:5])
    # Functions are one key in all sections.
    functions = {f["name"] for f in data["functions"]}
    named = [(section, e[key]) for section, rows in data.items() if isinstance(rows, list) for e in rows for key in ("function", "body", "part") if e.get(key)]
    named += [("calls", c) for section in ("functions", "signatures") for e in data[section] for c in e["calls"]]
    check(f"{name}: functions join", named and not [n for n in named if n[1] not in functions], [n for n in named if n[1] not in functions][:5])
    check(f"{name}: options", data["options"] == options)
    return data, out


PLACE = 'tpu_functions { signature_name: "serving_default" }'
BATCH = "batch_options { num_batch_threads: 1 max_batch_size: 8 batch_timeout_micros: 10 max_enqueued_batches: 10 }"
KERAS = models / "keras_in_module"
alias, _ = report("alias", models / "language_model", 'tpu_functions { function_alias: "tpu_func" }')
auto, _ = report("auto", models / "language_model", "", "--auto_place")
soft, _ = report("soft", models / "language_model", PLACE, "--allow_soft_placement")
int8, _ = report("int8", models / "cnn", "quantization_options { quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 } min_num_elements_for_weights: 1 } " + PLACE)
check("a result whose shape only the signature states", [(t["shape"], t["bytes"] > 0) for t in int8["transfers"] if t["direction"] == "out"] == [([-1, 5], True)], int8["transfers"])
batched, _ = report("batched", models / "cnn", PLACE + BATCH)
again, _ = report("updated", work / "batched", BATCH + " disable_default_optimizations: true")
check("a BatchFunction that was there", again["batching"][0]["updated"] and not batched["batching"][0]["updated"], again["batching"])

# ---- --verify: what is put in its place, and what is said
BF16 = PLACE  # bfloat16 is on by default
data, out = report("verified", models / "cnn", BF16, "--verify", "3")
v = data["verification"]
check("verified", v["done"] and v["ok"] and v["tolerance_for"] == "bfloat16" and v["outputs"] and all(o["ok"] and o["requests"] >= 3 for o in v["outputs"]), v)
where, file = work / "differs", work / "differs.json"
strict = ["convert", models / "cnn", where, "--converter_options_string", BF16, "--verify", "3", "--verify_tolerance", "0", "--report_json", file]
code, out, err = call(*strict)
v = json.loads(file.read_text())["verification"]
check("what differs is not written", code == 1 and not where.exists() and "is not written" in out and not v["ok"] and v["tolerance_for"] == "--verify_tolerance", (out, v))
check("the advice names what ran", "bfloat16" in " ".join(v["advice"]) and "int8" not in " ".join(v["advice"]), v["advice"])
code, out, err = call(*strict, "--keep_failed")
check("--keep_failed", code == 1 and (where / "saved_model.pb").exists() and "kept all the same" in out, out)
outputs = [o["output"] for o in v["outputs"]]
code, out, err = call(*strict, "--overwrite", *[a for o in outputs for a in ("--shapes_only", o)])
check("--shapes_only", code == 0 and ": ok" in out, out + err)
code, out, err = call("convert", models / "cnn", work / "nothing", "--converter_options_string", BF16, "--verify_log", models / "functions.tfrecord")
check("nothing was compared", code == 1 and "nothing was compared" in out and not (work / "nothing").exists(), out + err)
data, out = report("joined", models / "cnn", BF16 + " batch_options { num_batch_threads: 1 max_batch_size: 8 allowed_batch_sizes: [4, 8] batch_timeout_micros: 1000 max_enqueued_batches: 10 }"
                   " disable_default_optimizations: true", "--verify", "2")
v = data["verification"]
check("requests are joined, padded and split", v["ok"] and v["joined_requests"] > 8 and v["tolerance_for"] == "the same types" and "joined with others" in out, v)

# The page: a narrow window scrolls what is wide, not the page; names as a reader knows them.
page = work / "page.html"
code, out, err = call("convert", KERAS, work / "paged", "--converter_options_string", PLACE, "--report_html", page)
text = page.read_text()
wide = text.count('<div class="wide">')
check("what is wide scrolls by itself", code == 0 and 'name="viewport" content="width=device-width"' in text
      and wide == text.count("<table") + text.count("<svg") == len(re.findall(r'<div class="wide">\s*<(?:table|svg)', text)) > 4, wide)
check("no names of inlined calls", "<td>sequential_1/dense_1/" in text and "PartitionedCall/" not in text)
check("no empty columns", not re.search(r"<th>Alias</th>", text) and "<th>Runs on</th>" in text)

# Names: aliases, layers, variables as Python has them.
bodies = {p["body"] for p in alias["placements"]}
check("a body has its function's alias", {f["alias"] for f in alias["functions"] if f["name"] in bodies} == {"tpu_func"}, alias["functions"])
keras, _ = report("keras", KERAS, PLACE)
shown = {v["key"]: v["name"] for v in json.loads(call("show", KERAS, "--json")[1])["meta_graphs"][0]["variables"]}
check("variables by name", keras["stored_variables"] and all(v["name"] == shown[v["key"]] for v in keras["stored_variables"])
      and "sequential/dense/kernel" in [v["name"] for v in keras["stored_variables"]], keras["stored_variables"])
check("nodes by layer", any(re.fullmatch(r"sequential_1/dense(_1)?_1", p["layer"]) for p in keras["precision"]), {p["layer"] for p in keras["precision"]})

# Which model it was: files and hashes as anybody can compute them; the version that was chosen, in the summary too.
shutil.copytree(KERAS, work / "versions/9"), shutil.copytree(KERAS, work / "versions/10")
chosen, out = report("chosen", work / "versions", PLACE)
model = chosen["model"]
sums = [(f["path"], hashlib.sha256((work / "versions/10" / f["path"]).read_bytes()).hexdigest()) for f in model["files"]]
check("hashes of the files", [(f["path"], f["sha256"]) for f in model["files"]] == sums and len(sums) == 3 and sums[0][0] == "saved_model.pb", sums)
check("hash of the model", model["sha256"] == hashlib.sha256("".join(f"{s}  {p}\n" for p, s in sums).encode()).hexdigest(), model)
check("the model is named", model["path"] == str(work / "versions") and model["version"] == "10" and model["tags"] == ["serve"] and model["tensorflow_version"].startswith("2."), model)
check("the version is said", f"note: version 10 of {work / 'versions'}\n" in out, out)
check("the program's version", chosen["smelt_version"] == call("version")[1].split()[1], chosen["smelt_version"])
# Advice from recorded traffic, whose options are those of the conversion.
file, page = work / "advised.json", work / "advised.html"
code, out, err = call("convert", models / "cnn", work / "advised", "--converter_options_string", PLACE, "--advise_batching", models / "cnn.tfrecord", "--arrivals", 20,
                      "--report_json", file, "--report_html", page)
check("advised converts", code == 0, out + err)
data, wrong = json.loads(file.read_text()), []
walk(data, "", wrong)
check("advised is as documented", not wrong, wrong[:5])
advice = data["batching_advice"]
best = advice["choices"][0]
check("advice", advice["done"] and advice["kept_up"] > 0 and best["keeps_up"] and f"max_batch_size: {best['max_batch_size']} " in data["options"], advice)
check("advice as HTML", "Choices of batching" in page.read_text() and page.read_text().count("<td>yes</td>") > 3, "")

file = work / "searched.json"
code, out, err = call("convert", models / "cnn", work / "searched", "--converter_options_string", PLACE, "--max_error", "20%", "--verify_log", models / "cnn.tfrecord", "--report_json", file,
                      "--report_html", work / "searched.html")
data, wrong = json.loads(file.read_text()), []
walk(data, "", wrong)
check("a search is as documented", code == 0 and not wrong and data["precision_search"]["done"] and not alias["precision_search"]["done"], (wrong[:5], out + err))
check("the page has the search", "Types of the layers that were tried" in (work / "searched.html").read_text())
check("every documented field is in some report", seen == set(schema), seen ^ set(schema))

# Columns hold for costs of any size.
(work / "large").mkdir()
slot = 'key: "%s" value { name: "%s:0" dtype: DT_FLOAT tensor_shape { dim { size: 8000 } dim { size: 8000 } } }'
(work / "large/saved_model.pbtxt").write_text("""
saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 8000 } dim { size: 8000 } } } } }
    node { name: "y" op: "MatMul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    versions { producer: 1882 }
  }
  signature_def { key: "serving_default" value { inputs { %s } outputs { %s } method_name: "predict" } }
}
""" % (slot % ("x", "x"), slot % ("y", "y")))
large, out = report("large_out", work / "large", PLACE + " disable_default_optimizations: true")
rows = out.splitlines()[6:10]
place = rows[0].index("Name")
check("columns hold", large["cost"]["tpu"] >= 10**8 and rows[2].endswith("[CPU cost]") and rows[2].index("[CPU") == place and rows[3].index("serving") == place, rows)

# A signature that cannot be a function is no function of a note.
(work / "counts").mkdir()
text = (work / "large/saved_model.pbtxt").read_text()
text = text.replace("versions {", """node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
    node { name: "add" op: "AssignAdd" input: "v" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
    versions {""").replace("signature_def {", 'signature_def { key: "add" value { outputs { key: "n" value { name: "add:0" dtype: DT_FLOAT tensor_shape {} } } method_name: "predict" } }\n  signature_def {')
(work / "counts/saved_model.pbtxt").write_text(text)
counts, out = report("counts_out", work / "counts", "", "--auto_place")
check("its note names it", any("signature_name \"add\"" in n["text"] and n["function"] == "" for n in counts["notes"]), counts["notes"])
finish()
