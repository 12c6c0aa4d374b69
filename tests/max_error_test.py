#!/usr/bin/env python3
"""smelt convert --max_error on the models in tests/models: max_error_test.py SMELT. Ends with 'N passed, N failed'.

Bounds are checked by conversions with the printed options and --verify_tolerance, which know nothing of the search; right classes are TensorFlow's recorded answers."""
import json
import re
import struct

from program import call, check, fields, finish, models, node, read_records, work, write_records

CNN, LOG = models / "cnn", models / "cnn.tfrecord"
PLACE = 'tpu_functions { signature_name: "serving_default" }'
made = 0


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def search(model, bound, *flags, log=None, place=PLACE):
    """Where it was written, the search as the JSON report has it, and what was printed."""
    global made
    made += 1
    where, file = work / f"out_{made}", work / f"out_{made}.json"
    flags = [*flags, *(["--verify_log", log] if log else []), *(["--converter_options_string", place] if place else [])]
    code, out, err = call("convert", model, where, "--max_error", bound, "--report_json", file, *flags, limit=300)
    check(f"{model.name} within {bound} converts", code == 0 and (where / "saved_model.pb").exists(), (flags, out + err))
    return where, json.loads(file.read_text()) if file.exists() else {}, out + err


def chosen(report):
    s = report["precision_search"]
    return s["trials"][s["chosen"]]


def options_of(text):
    """The flags that are said to give the same again."""
    place, options = re.search(r"^max_error: the same again: (--auto_place )?--converter_options_string '(.*)'$", text, re.M).groups()
    return ([place.strip()] if place else []) + ["--converter_options_string", options]


def holds(name, model, log, bound, where, text):
    """The printed options give the same bytes without the search, and keep the bound."""
    again = work / f"again_{made}"
    code, out, err = call("convert", model, again, *options_of(text), "--verify_log", log, "--verify_tolerance", bound)
    check(f"{name}: the bound is kept", code == 0 and "differs" not in out, out + err)
    check(f"{name}: the printed options give the same bytes", code == 0 and files(where) == files(again))


# ---- the bound: from all int8 to all float32
where, loose, text = search(CNN, "20%", log=LOG)
trial = chosen(loose)
check("loose: the cheapest types, at once", len(loose["precision_search"]["trials"]) == 1 and (trial["int8"], trial["cost"], trial["ok"]) == (3, 0.25, True), loose["precision_search"])
check("loose: layers are int8", [l["quantized"] for l in loose["quantized_layers"]] == [True] * 3)
check("progress of each trial", re.search(r"^trial 1 .* ms$", text, re.M), text)
holds("loose", CNN, LOG, 0.2, where, text)
error = trial["error"]
check("int8 shows", 0 < error < 0.2, error)

seen = [trial["cost"]]
for part in (0.9, 0.3, 0.1):
    bound = error * part
    page = work / f"page_{part}.html"
    where, tight, text = search(CNN, repr(bound), "--report_html", page, log=LOG)
    s, trial = tight["precision_search"], chosen(tight)
    check(f"tight {part}: within the bound", trial["ok"] and trial["error"] <= bound, s)
    check(f"tight {part}: the cheapest that was", all(t["cost"] >= trial["cost"] for t in s["trials"] if t["ok"]), s)
    check(f"tight {part}: a point for each trial", page.read_text().count("<circle ") == len([t for t in s["trials"] if not t["why"]]))
    check(f"tight {part}: at most so many trials", len(s["trials"]) <= 16 and not s["trials"][0]["ok"], s)
    holds(f"tight {part}", CNN, LOG, bound, where, text)
    seen.append(trial["cost"])
check("a tighter bound is dearer", seen == sorted(seen) and seen[1] > seen[0], seen)

where, zero, text = search(CNN, "0", log=LOG)
trial = chosen(zero)
check("nothing but float32 at 0", (trial["int8"], trial["bfloat16"], trial["float32"], trial["cost"]) == (0, 0, 3, 1) and "quantization_options" not in zero["options"]
      and "bfloat16_optimization: DISABLED" in zero["options"] and not zero["stored_variables"], zero["precision_search"])
check("why it is float32", trial["ok"] or "float32 does not either" in text, text)

# ---- the same model and requests: the same types, report and bytes
where_1, one, text = search(CNN, repr(error * 0.3), log=LOG)
where_2, two, _ = search(CNN, repr(error * 0.3), log=LOG)
check("it is deterministic", one == two and files(where_1) == files(where_2), (one["precision_search"], two["precision_search"]))

# ---- more layers, of which four have no weights; without options all is planned
where, language, text = search(models / "language_model", "0.4%", log=models / "language_model.tfrecord", place=None)
trial = chosen(language)
check("planned: a part is placed", text.count("plan: ") == 2 and "--auto_place" in options_of(text) and language["placements"], text)
check("planned: within the bound", trial["ok"] and trial["error"] <= 0.004 and trial["int8"] + trial["bfloat16"] + trial["float32"] == 14, language["precision_search"])
holds("planned", models / "language_model", models / "language_model.tfrecord", 0.004, where, text)

where, planned, text = search(CNN, "20%", log=LOG, place=None)
check("planned: placed and batched", "batch_options" in planned["options"] and 'signature_name: "serving_default"' in planned["options"] and planned["verification"]["joined_requests"] > 0, text)
code, out, err = call("convert", models / "language_model", work / "refused", "--max_error", "1%", "--verify", "2", "--converter_options_string", PLACE)
check("what cannot be placed is said before any choice", code == 1 and "things that a TPU cannot run" in err and "max_error" not in out, out + err)

# ---- made-up requests: no ranges to take of them
where, random, text = search(models / "language_model", "10%", "--verify", "2", place=None)
check("made-up requests are weaker evidence", "2 made-up requests for each signature: weaker evidence" in text and "METHOD_DYNAMIC_RANGE_INT8" in random["options"]
      and "representative_datasets" not in random["options"] and chosen(random)["int8"] > 0, text)

# ---- labels: the classes that TensorFlow answered, and others


def recorded_scores(record):
    """The float values of the only output of a PredictionLog: predict_log.response.outputs[...]."""
    predict = dict(fields(dict(fields(record))[6]))
    tensor = dict(fields(dict(fields(dict(fields(predict[2]))[1]))[2]))
    raw = tensor.get(4) or tensor[5]
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def labels(name, classes, descr="<i8", code="q"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(classes)},), }}".ljust(117) + "\n"
    path = work / name
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(classes)}{code}", *classes))
    return path


right = []
for record in read_records(LOG):
    scores = recorded_scores(record)
    right += [max(range(5), key=scores[i:i + 5].__getitem__) for i in range(0, len(scores), 5)]
where, of_labels, text = search(CNN, "1%", "--labels", labels("right.npy", right), log=LOG)
s, trial = of_labels["precision_search"], chosen(of_labels)
check("labels: the model is right", s["by_labels"] and s["rows"] == len(right) == 4 and s["accuracy"] == 1 and "right about 100% of 4 rows" in text, s)
check("labels: what is chosen is right", trial["ok"] and trial["accuracy"] == 1 and trial["error"] == 0, s)
check("labels: so few rows tell little", "4 rows with labels are too few to tell: each weighs 25 points" in text, text)
check("labels: answers may differ by more", trial["difference"] > 0, trial)
out = work / "replayed.tfrecord"
code, printed, err = call("replay", where, "--log", LOG, "--record", out)
got = []
for record in read_records(out):
    scores = recorded_scores(record)
    got += [max(range(5), key=scores[i:i + 5].__getitem__) for i in range(0, len(scores), 5)]
check("labels: replayed answers are right", got == right, (got, right))
where, wrong, text = search(CNN, "0", "--labels", labels("wrong.npy", [(c + 1) % 5 for c in right], "<i4", "i"), log=LOG)
s = wrong["precision_search"]
check("labels: a model that is always wrong loses nothing", s["accuracy"] == 0 and chosen(wrong)["error"] == 0 and chosen(wrong)["cost"] == 0.25, s)
_, named, text = search(CNN, "30%", "--labels", f"logits={work / 'right.npy'}", log=LOG)
check("labels of a named output; enough rows for the bound", chosen(named)["ok"] and "too few" not in text, text)

# A product of which one row is told by float32 alone: (1, -1) scores -0.0004 for class 0 and 0 for class 1; in bfloat16 the weights of class 0 are equal, and a tie is class 0.
const = 'tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: [1, 0, 1.0004, 0] }'
slot = 'key: "%s" value { name: "%s:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } dim { size: 2 } } }'
(work / "near").mkdir()
(work / "near/saved_model.pbtxt").write_text(
    "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: \"serve\" } graph_def {\n" + node("x", "Placeholder", dtype="type: DT_FLOAT", shape="shape { dim { size: -1 } dim { size: 2 } }")
    + node("w", "Const", dtype="type: DT_FLOAT", value=const) + node("y", "MatMul", "x", "w", T="type: DT_FLOAT") + "versions { producer: 1882 } }\n"
    + "signature_def { key: \"serving_default\" value { inputs { %s } outputs { %s } method_name: \"predict\" } } }" % (slot % ("x", "x"), slot % ("y", "y")))


def message(*parts):
    """A protobuf message of (number, bytes or small number)."""
    return b"".join(bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value for number, value in parts)


x = [1.0, -1.0, -1.0, -1.0, 1.0, 1.0]
tensor = message((1, 1), (2, message((2, message((1, 3))), (2, message((1, 2))))), (4, struct.pack("<6f", *x)))
request = message((1, message((3, b"serving_default"))), (2, message((1, b"x"), (2, tensor))))
near_log = work / "near.tfrecord"
write_records(near_log, [message((6, message((1, request))))])
rows = labels("near.npy", [1, 1, 0])
_, kept, text = search(work / "near", "10%", "--labels", rows, log=near_log)
check("labels: the row that narrow types lose keeps them out", chosen(kept)["float32"] == 1 and kept["precision_search"]["trials"][0]["accuracy"] < 1, kept["precision_search"])
_, lost, text = search(work / "near", "34%", "--labels", rows, log=near_log)
check("labels: a bound of one row lets it go", chosen(lost)["int8"] == 1 and 0.3 < chosen(lost)["error"] < 0.34, lost["precision_search"])

# ---- what is refused, before anything is tried
log = ["--verify_log", LOG]


def refused(name, words, *flags, given=(), code="INVALID_ARGUMENT"):
    status, out, err = call("convert", CNN, work / "refused", *flags, *(given or ["--converter_options_string", PLACE]))
    check(f"refused: {name}", status == 1 and code in err and words in err and "trial" not in err and not (work / "refused").exists(), (status, out, err))


for bad in ("1e9%", "101%", "1.01", "-1", "-1%", "abc", "", "%", "nan", "inf", "1%%"):
    refused(f"--max_error {bad!r}", "is no part of a whole", *([f"--max_error={bad}"] if bad else ["--max_error", ""]), *log)
refused("no requests", "give --verify_log LOG, or --verify N", "--max_error", "1%")
(work / "empty.tfrecord").write_bytes(b"")
refused("a log without records", "holds no records", "--max_error", "1%", "--verify_log", work / "empty.tfrecord")
refused("another tolerance", "leave out --verify_tolerance", "--max_error", "1%", *log, "--verify_tolerance", "0.1")
refused("--revert", "leave out --revert", "--max_error", "1%", "--revert", *log, given=["--overwrite"])
refused("--exclude", "leave out --exclude", "--max_error", "1%", "--exclude", "x", *log)
refused("--dry_run", "--dry_run", "--max_error", "1%", "--dry_run", *log)
for types in ("bfloat16_optimization: ENABLED", "quantization_options { }", 'bfloat16_optimization_options { filterlist: "Relu" }'):
    refused(types, "--max_error chooses the types", "--max_error", "1%", *log, given=["--converter_options_string", f"{PLACE} {types}"])
refused("labels alone", "--max_error", "--labels", work / "right.npy", *log)
refused("labels of made-up requests", "--labels are of recorded requests", "--max_error", "1%", "--verify", "2", "--labels", work / "right.npy")
refused("labels that are no numbers of classes", "not the number of a class", "--max_error", "1%", *log, "--labels", labels("float.npy", [1.0, 2.0], "<f4", "f"))
code, out, err = call("convert", CNN, work / "out_1", "--max_error", "1%", *log, "--converter_options_string", PLACE)
check("refused: a folder that is there", code == 1 and "ALREADY_EXISTS" in err and "trial" not in err, err)
for name, classes, words in (("too few", right[:3], "3 labels for 4 rows"), ("too many", right + [0], "5 labels for 4 rows"), ("another class", [*right[:3], 5], "row 3 is of class 5, output 'logits' has 5 classes")):
    code, out, err = call("convert", CNN, work / "refused", "--max_error", "1%", *log, "--converter_options_string", PLACE, "--labels", labels("bad.npy", classes))
    check(f"refused: {name} labels", code == 1 and "INVALID_ARGUMENT" in err and words in err and not (work / "refused").exists(), err)
code, out, err = call("convert", CNN, work / "refused", "--max_error", "1%", *log, "--converter_options_string", PLACE, "--labels", f"scores={work / 'right.npy'}")
check("refused: labels of an output that is not there", code == 1 and "no answer has the output 'scores'" in err, err)
finish()
