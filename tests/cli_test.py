#!/usr/bin/env python3
"""Runs the program as a user does, on the models in tests/models: cli_test.py SMELT OP_LIBRARY. Ends with 'N passed, N failed'.

The models and the recorded answers were written by TensorFlow (tools/make_fixtures.py)."""
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

from program import call, check, finish, models, smelt, work, write_samples

op_library = os.path.abspath(sys.argv[2])


def convert(model, options, name, *flags):
    out = work / name
    code, stdout, stderr = call("convert", models / model, out, "--converter_options_string", options, *flags)
    return code, stdout, stderr, out


OFF = " disable_default_optimizations: true"

# Every model answers what TensorFlow answered, whole and after a record-and-replay turn.
for log in sorted(models.glob("*.tfrecord")):
    model = log.stem
    code, out, err = call("replay", models / model, "--log", log)
    check(f"replay {model}", code == 0, out + err)
    again = work / f"{model}.tfrecord"
    code, out, err = call("replay", models / model, "--log", log, "--record", again)
    code, out, err = call("replay", models / model, "--log", again, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    check(f"record {model}", code == 0 and rows and all(r["ok"] and r["code"] == "OK" for r in rows), out + err)

# A wrong answer is found: one model's log against another with the same signature names.
code, out, err = call("replay", models / "functions", "--log", models / "cnn.tfrecord")
check("replay finds differences", code == 1 and "INVALID_ARGUMENT" in out, out + err)

# Several clients at once.
code, out, err = call("replay", models / "cnn", "--log", models / "cnn.tfrecord", "--clients", 3, "--repeat", 9)
check("replay with several clients", code == 0 and "3 clients, " in out, out + err)

# Conversion: the four ways to name a function, and a converted model answers the same.
for name, model, options in [
    ("alias", "language_model", 'tpu_functions { function_alias: "tpu_func" }' + OFF),
    ("signature", "cnn", 'tpu_functions { signature_name: "serving_default" }' + OFF),
    ("signature of TensorFlow 1", "half_plus_two_v1", 'tpu_functions { signature_name: "serving_default" }' + OFF),
    ("jit", "functions", "tpu_functions { jit_compile_functions: true }" + OFF),
    ("two aliases", "functions", 'tpu_functions { function_alias: "leaf" } tpu_functions { function_alias: "compiled" }' + OFF),
    ("direct call", "functions", 'tpu_functions { function_alias: "leaf" } tpu_functions { function_alias: "direct" }' + OFF),
    ("as pasted", "functions", " \\\n tpu_functions { \\\n function_alias: 'leaf' \\\n } \\\n disable_default_optimizations=True"),
]:
    code, out, err, where = convert(model, options, name.replace(" ", "_"))
    check(f"convert {name}", code == 0 and out.startswith("-------- Conversion Report --------\nTPU cost of the model: "), out + err)
    code, out, err = call("replay", where, "--log", models / f"{model}.tfrecord")
    check(f"converted {name} answers the same", code == 0, out + err)

# --revert gives the plain model back.
IO = " bfloat16_optimization: DISABLED"
for model, options in [("cnn", 'tpu_functions { signature_name: "serving_default" }'), ("language_model", 'tpu_functions { function_alias: "tpu_func" }'),
                       ("half_plus_two_v1", 'tpu_functions { signature_name: "serving_default" }')]:
    code, out, err, where = convert(model, options + IO, f"to_revert_{model}")
    check(f"io shapes of {model}", code == 0 and call("replay", where, "--log", models / f"{model}.tfrecord")[0] == 0, out + err)
    back = work / f"reverted_{model}"
    code, out, err = call("convert", "--revert", where, back)
    check(f"revert {model}", code == 0 and "made plain" in out, out + err)
    code, out, err = call("replay", back, "--log", models / f"{model}.tfrecord")
    ops = call("show", back, "--all")[1]
    check(f"reverted {model} answers the same", code == 0 and "TPU" not in ops.split("Ops:")[-1], out + err)

# bfloat16: answers within 2% of the range, variables stored as bfloat16 in graph, object graph and checkpoint, and still readable by all.
BFLOAT16 = " io_shape_optimization: DISABLED"
for name, model, option in [("alias", "language_model", 'function_alias: "tpu_func"'), ("signature", "cnn", 'signature_name: "serving_default"'),
                            ("TensorFlow 1", "half_plus_two_v1", 'signature_name: "serving_default"'),
                            ("Keras 3", "keras_in_module", 'signature_name: "serving_default"')]:
    code, out, err, where = convert(model, "tpu_functions { %s }" % option + BFLOAT16, "bf16_" + name.replace(" ", "_"))
    check(f"bfloat16 {name}", code == 0 and "note: bfloat16: " in out and " float ops" in out, out + err)
    code, out, err = call("replay", where, "--log", models / f"{model}.tfrecord", "--rtol", "0", "--atol", "1e-30", "--range_tol", "0.02")
    check(f"bfloat16 {name} answers within 2%", code == 0, out + err)
code, out, err = call("replay", work / "bf16_signature", "--log", models / "cnn.tfrecord", "--rtol", "0", "--atol", "0", "--range_tol", "1e-9")
check("range_tol finds differences", code == 1, out + err)
code, out, err = call("show", work / "bf16_signature", "--all")
check("products' variables are stored as bfloat16", "Variable: bfloat16 (3, 3, 3, 8)" in out and "Variable: bfloat16 (8, 5)" in out, out)
check("a normalization's are not", out.count("Variable: float32 (8,)") == 4, out)

# TensorFlow makes an optimizer's slots of their variable's type when it loads a model, so they are stored so.
def slots(where):
    return sorted(l.split("[")[0].strip() for l in call("show", where, "--all")[1].splitlines() if "OPTIMIZER_SLOT" in l)


PLACE = 'tpu_functions { signature_name: "serving_default" } '
WEIGHTS = 'quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } min_num_elements_for_weights: 1 signature_keys: "serving_default" }'
kept = slots(models / "trained")
check("an optimizer's slots are shown", len(kept) == 4 and all("float32" in l for l in kept), kept)
code, out, err, where = convert("trained", PLACE + BFLOAT16, "slots_bf16")
check("slots of bfloat16 variables are bfloat16", code == 0 and all("bfloat16" in l for l in slots(where)) and len(slots(where)) == 4, out + err)
check("and the model answers", call("replay", where, "--log", models / "trained.tfrecord", "--rtol", "0", "--atol", "0", "--range_tol", "0.02")[0] == 0)
code, out, err = call("convert", "--revert", where, work / "slots_back")
check("slots are float32 again", code == 0 and slots(work / "slots_back") == kept, out + err)
code, out, err, where = convert("trained", PLACE + IO + " " + WEIGHTS, "slots_int8")
check("slots of int8 variables are int8", code == 0 and [l.split(" ")[1] for l in slots(where)] == ["float32", "float32", "int8", "int8"], out + err)


def with_second_meta_graph(source, target):
    """A copy of the model whose MetaGraph is there once more, under the tag "train"."""
    shutil.copytree(source, target)
    data = (source / "saved_model.pb").read_bytes()
    out, i = data, 0
    while i < len(data):
        tag, start, size, shift = data[i], i, 0, 0
        while True:
            i += 1
            size, shift = size | (data[i] & 127) << shift, shift + 7
            if data[i] < 128:
                break
        i += 1 + (size if tag & 7 == 2 else 0)
        if tag == 0x12:  # meta_graphs; the tag is a string of the same length
            out += data[start:i].replace(b'"\x05serve', b'"\x05train')
    (target / "saved_model.pb").write_bytes(out)


with_second_meta_graph(models / "cnn", work / "two")
code, out, err, where = convert(work / "two", 'tpu_functions { signature_name: "serving_default" }' + BFLOAT16, "bf16_two")
check("variables that another MetaGraph reads, too", code == 0 and "4 variables stored as bfloat16" in out, out + err)
code, out, err = call("replay", where, "--log", models / "cnn.tfrecord", "--rtol", "0", "--range_tol", "0.02")
check("bfloat16 beside another MetaGraph answers within 2%", code == 0, out + err)
answers = []
for folder, tag in [(models / "cnn", "serve"), (where, "train")]:
    code, out, err = call("run", folder, "--tag_set", tag, "--input_exprs", "image=np.ones((1, 16, 16, 3))")
    answers.append([float(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", out)])
check("the other MetaGraph reads bfloat16 back", len(answers[0]) == 5 == len(answers[1]) and
      max(abs(a - b) for a, b in zip(*answers)) < 0.02 * max(map(abs, answers[0])), (answers, err))
plain, half = (sum(f.stat().st_size for f in (d / "variables").glob("variables.data*")) for d in (models / "cnn", work / "bf16_signature"))
check("the checkpoint shrinks", half < 0.9 * plain, (plain, half))

# What the report looks like, line by line.
_, out, _, _ = convert("functions", 'tpu_functions { function_alias: "leaf" }' + OFF, "report")
lines = out.splitlines()
check("report form", lines[3] == "" and lines[4:8] == ["Cost breakdown", "=" * 32, "%         Cost    Name", "-" * 32]
      and lines[8].split()[2:] == ["[CPU", "cost]"] and lines[9].split()[2] == "leaf" and lines[10] == "-" * 32, out)

# Errors: the code, the text, and nothing left behind.
empty = work / "empty.tfrecord"
empty.touch()
for name, model, options, code_name, text in [
    ("indirect call", "functions", 'tpu_functions { function_alias: "leaf" } tpu_functions { function_alias: "indirect" }', "INVALID_ARGUMENT",
     "This behavior is unsupported because it can cause invalid graphs to be generated."),
    ("unknown alias", "functions", 'tpu_functions { function_alias: "leav" }', "NOT_FOUND", 'did you mean "leaf"'),
    ("unknown signature", "functions", 'tpu_functions { signature_name: "x" }', "NOT_FOUND", "serving_default"),
    ("unknown function", "functions", 'tpu_functions { concrete_function_name: "__inference_leaf" }', "NOT_FOUND", "did you mean"),
    ("twice", "functions", 'tpu_functions { function_alias: "compiled" } tpu_functions { jit_compile_functions: true }', "INVALID_ARGUMENT", "given twice"),
    ("no jit function", "cnn", "tpu_functions { jit_compile_functions: true }", "NOT_FOUND", "jit_compile=True"),
    ("unknown field", "functions", "tpu_function {}", "INVALID_ARGUMENT", "tpu_function"),
    ("bad syntax", "functions", "tpu_functions {", "INVALID_ARGUMENT", "line 1"),
    ("unexpanded variable", "functions", 'tpu_functions { function_alias: "${ALIAS}" }', "INVALID_ARGUMENT", "${ALIAS}"),
    ("nothing named", "functions", "# nothing", "INVALID_ARGUMENT", "tpu_functions"),
    ("empty function", "functions", "tpu_functions { }", "INVALID_ARGUMENT", "names no function"),
    ("batching", "functions", 'tpu_functions { function_alias: "leaf" } batch_options { max_batch_size: 8 }', "INVALID_ARGUMENT", "num_batch_threads must be positive"),
    ("sharding", "functions", 'tpu_functions { function_alias: "leaf" } xla_sharding_options { num_cores_per_replica: 2 }', "INVALID_ARGUMENT", "topology is required"),
    ("quantization without samples", "functions", 'tpu_functions { function_alias: "leaf" } external_feature_configs { quantization_options { signature_keys: "s" } }',
     "INVALID_ARGUMENT", "When `representative_dataset` is not provided"),
    ("quantization with no such file", "cnn", 'quantization_options { representative_datasets { key: "serving_default" value { tfrecord_file_path: "/nowhere" } } }',
     "NOT_FOUND", "/nowhere"),
    ("quantization with bad records", "cnn", 'quantization_options { representative_datasets { key: "serving_default" value { tfrecord_file_path: "%s" } } }'
     % (models / "cnn" / "saved_model.pb"), "DATA_LOSS", "sample 0"),
    ("quantization with no records", "cnn", 'quantization_options { representative_datasets { key: "serving_default" value { tfrecord_file_path: "%s" } } }' % empty,
     "INVALID_ARGUMENT", "holds no samples"),
]:
    code, out, err, where = convert(model, options, "error_" + name.replace(" ", "_"))
    check(f"convert error: {name}", code == 1 and f"error: {code_name}: " in err and text in err, err)
    left = [p.name for p in work.iterdir() if p.name.startswith(where.name)]
    check(f"nothing left: {name}", not left, left)



# Quantization: the requests of the recorded log are the samples.
write_samples(models / "cnn.tfrecord", work / "cnn.samples")
SAMPLES = ' representative_datasets { key: "serving_default" value { tfrecord_file_path: "%s" } }' % (work / "cnn.samples")
for name, options, smaller in [
    ("static", SAMPLES, True),
    ("dynamic", "quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 } min_num_elements_for_weights: 1", True),
    ("weights", "quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } min_num_elements_for_weights: 1" + SAMPLES, True),
    ("placed", SAMPLES + ' } tpu_functions { signature_name: "serving_default"', True),
]:
    code, out, err, where = convert("cnn", "quantization_options { " + options + " }" + OFF, "quantized_" + name)
    check(f"quantize {name}", code == 0 and "layers quantized" in out and "layers by their own error" in out, out + err)
    code, out, err = call("replay", where, "--log", models / "cnn.tfrecord", "--rtol", "0.05", "--atol", "0.05")
    check(f"quantized {name} answers nearly the same", code == 0, out + err)
    bytes_of = lambda folder: (folder / "variables" / "variables.data-00000-of-00001").stat().st_size
    check(f"quantized {name} is smaller", bytes_of(where) < bytes_of(models / "cnn"), bytes_of(where))
code, out, err, where = convert("slopes", "quantization_options { quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 } min_num_elements_for_weights: 1 }" + OFF,
                                "quantized_slopes")
check("quantize a function that also returns its weights", code == 0 and "layers quantized" in out, out + err)
code, out, err = call("replay", where, "--log", models / "slopes.tfrecord", "--rtol", "0.05", "--atol", "0.05")
check("as it answers nearly the same", code == 0, out + err)
code, out, err = call("convert", models / "cnn", work / "excluded", "--converter_options_string",
                      "quantization_options {" + SAMPLES + " }", "--exclude", ".*")
check("--exclude", code == 0 and "0 of " in out and "Excluded by" in out, out + err)
code, out, err = call("convert", models / "cnn", work / "excluded_nothing", "--exclude", "x",
                      "--converter_options_string", 'tpu_functions { signature_name: "serving_default" }')
check("--exclude needs quantization", code == 1 and "it needs quantization_options" in err, err)

# The output folder: not overwritten unless asked; an interrupted conversion leaves nothing half-written.
existing = work / "existing"
shutil.copytree(models / "functions", existing)
base = ["convert", models / "cnn", existing, "--converter_options_string",
        'tpu_functions { signature_name: "serving_default" }' + OFF]
code, out, err = call(*base)
check("keeps what is there", code == 1 and "ALREADY_EXISTS" in err and (existing / "saved_model.pb").read_bytes() == (models / "functions/saved_model.pb").read_bytes(), err)
code, out, err = call(*base, "--overwrite")
check("overwrites when asked", code == 0 and call("replay", existing, "--log", models / "cnn.tfrecord")[0] == 0, out + err)
for delay in (0.001, 0.003, 0.006, 0.01, 0.02):
    target = work / f"interrupted_{delay}"
    p = subprocess.Popen([smelt, *map(str, base[:4]), str(target), *map(str, base[5:])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    p.send_signal(signal.SIGKILL)
    p.wait()
    whole = not target.exists() or call("replay", target, "--log", models / "cnn.tfrecord")[0] == 0
    check(f"killed after {delay} s: whole or absent", whole)

# Without options: a plan, its reasons, and options that give the same bytes.
for model, words in (("cnn", ("goes to the TPU", "batching: up to 64 rows", "precision: bfloat16: answers differ by")),
                     ("language_model", ("(--auto_place), because not everything can", "batching: none: ", "precision: bfloat16"))):
    code, out, err = call("convert", models / model, work / f"{model}_planned")
    plan = [line for line in out.splitlines() if line.startswith("plan: ")]
    check(f"a plan for {model}", code == 0 and len(plan) == 4 and all(w in out for w in words), out + err)
    again = re.fullmatch(r"plan: the same again: (--auto_place )?--converter_options_string '(.*)'", plan[-1])
    code, out, err = call("convert", models / model, work / f"{model}_again", "--converter_options_string", again[2], *filter(None, [again[1] and "--auto_place"]))
    check(f"the plan for {model} again", code == 0 and all((work / f"{model}_planned" / f).read_bytes() == (work / f"{model}_again" / f).read_bytes()
                                                            for f in ("saved_model.pb", "variables/variables.index")), out + err)
    check(f"the plan for {model} answers", call("replay", work / f"{model}_planned", "--log", models / f"{model}.tfrecord", "--rtol", "0.05", "--atol", "0.05")[0] == 0)
code, out, err = call("convert", models / "trained", work / "unplanned", "--dry_run")
check("a plan is planned without an output, too", "plan: placement" in out or "--auto_place finds nothing" in err, out + err)

# Conversion finds all ops that a TPU cannot compile, and names them in TensorFlow's words.
whole = 'tpu_functions { signature_name: "serving_default" }' + OFF
code, out, err, where = convert("language_model", whole, "strings")
check("strings on the accelerator", code == 1 and "things that a TPU cannot run:" in err and "op isn't compilable for TPU device. enable soft_device_placement" in err
      and "in function '__inference" in err and " > __inference" in err and not where.exists(), err)
code, out, err, where = convert("language_model", whole, "soft", "--allow_soft_placement")
check("soft placement", code == 0 and "runs on the CPU: 'tf." in out, out + err)
code, out, err = call("replay", where, "--log", models / "language_model.tfrecord")
check("soft placement answers the same", code == 0, out + err)

code, out, err, where = convert("debug_lines", whole, "lines")
line = re.compile(r"make_fixtures\.py:\d+, in parse")
check("the user's line", code == 1 and "'tf.StringToNumber' op" in err and line.search(err), err)
code, out, err, where = convert("debug_lines", OFF, "auto_lines", "--auto_place", "--report_json", work / "lines.json", "--verify", "2")
check("the user's line in the report", code == 0 and any(op["op"] == "AsString" and line.search(op["source"])
                                                        for op in json.loads((work / "lines.json").read_text())["cpu_ops"]), out + err)

# A tensor list whose length is an argument: XLA must know it when it compiles.
code, out, err, where = convert("loop", whole, "late_size", "--allow_soft_placement")
check("a size known at run time only", code == 1 and "with op TensorListReserve must be a compile-time constant" in err and not where.exists(), err)
code, out, err, where = convert("loop", OFF, "loop_auto", "--auto_place")
check("auto_place of a loop", code == 0 and call("replay", where, "--log", models / "loop.tfrecord")[0] == 0, out + err)

# --auto_place leaves text to the host and places the rest; --dry_run says what it would do and writes nothing.
code, out, err, where = convert("language_model", OFF, "proposed", "--auto_place", "--dry_run")
check("proposal", code == 0 and "note: auto_place: serving_default: " in out and not where.exists(), out + err)
code, out, err, where = convert("language_model", OFF, "auto", "--auto_place", "--report_json", work / "auto.json", "--report_html", work / "auto.html",
                                "--verify", "3", "--verify_tolerance", "1e-5", "--warmup_requests", "--tpu", "v4")
check("auto_place", code == 0 and "verify: signature 'serving_default', output " in out and ": ok" in out, out + err)
code, out, err = call("replay", where, "--log", models / "language_model.tfrecord")
check("auto_place answers the same", code == 0, out + err)
report = json.loads((work / "auto.json").read_text())
placed = report["auto_placements"][0]
check("auto_place: most of the cost is placed", placed["part"] and not placed["whole"] and placed["placed_cost"] > placed["cost"] / 2, placed)
check("text stays on the CPU", any("String" in op["op"] for op in report["cpu_ops"]) and all(op["reason"] for op in report["cpu_ops"]), report["cpu_ops"])
check("report: where functions run", {f["runs_on"] for f in report["functions"]} == {"TPU", "CPU"} and report["cost"]["tpu"] > 0
      and report["cost"]["total"] == report["cost"]["tpu"] + report["cost"]["cpu"], report["cost"])
check("report: memory", report["hbm"]["generation"] == "v4" and report["hbm"]["chip_bytes"] == 32 << 30 and report["hbm"]["fits"]
      and report["placements"][0]["variable_bytes"] > 0 and report["placements"][0]["activation_bytes"] > 0, report["hbm"])
requests = (where / "assets.extra/tf_serving_warmup_requests").read_bytes()


def records(data):
    count = 0
    while data:
        data = data[int.from_bytes(data[:8], "little") + 16:]
        count += 1
    return count


check("warm-up requests", records(requests) == 1, requests)
code, out, err = call("convert", where, work / "auto_again", "--warmup_requests", "--converter_options_string",
                      "bfloat16_optimization: ENABLED bfloat16_optimization_options { scope: ALL skip_safety_checks: true }" + OFF)
check("warm-up requests are kept", code == 0 and (work / "auto_again/assets.extra/tf_serving_warmup_requests").read_bytes() == requests, out + err)


class Page(html.parser.HTMLParser):
    """What a browser would see: elements that are closed in order, text, and whatever is loaded from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.outside, self.broken = [], set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        self.outside += [v for k, v in attrs if k in ("src", "href", "xlink:href", "data", "action") or (v and "url(" in v)]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.broken.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


text = (work / "auto.html").read_text()
page = Page(text)
check("report page", not page.open and not page.broken and not page.outside and {"svg", "rect", "path", "table"} <= page.tags
      and not {"script", "link", "img", "iframe"} & page.tags and "://" not in text and "@import" not in text, (page.open, page.broken, page.outside, page.tags))

# Names from a model are text on the page, whatever they are.
hostile = work / "hostile"
shutil.copytree(models / "language_model", hostile)
(hostile / "saved_model.pb").write_bytes((hostile / "saved_model.pb").read_bytes().replace(b"\x08tpu_func", b"\x08<b>&\"'xy"))
code, out, err = call("convert", hostile, work / "hostile_out", "--report_html", work / "hostile.html",
                      "--report_json", work / "hostile.json", "--converter_options_string", "tpu_functions { function_alias: \"<b>&\\\"'xy\" }" + OFF)
page = Page((work / "hostile.html").read_text()) if code == 0 else None
check("hostile names", code == 0 and "b" not in page.tags and not page.broken and "<b>&\"'xy" in page.texts
      and json.loads((work / "hostile.json").read_text())["placements"][0]["label"] == "<b>&\"'xy", out + err)

# Reports come with the output or not at all.
code, out, err = call("convert", models / "cnn", work / "half", "--report_json", work / "missing/report.json",
                      "--converter_options_string", whole)
check("no output without its report", code == 1 and not (work / "half").exists(), err)

# Recorded inputs; equal bytes for equal options; exit codes.
code, out, err, where = convert("cnn", whole, "bytes_1", "--verify_log", models / "cnn.tfrecord", "--warmup_requests", "--report_json", work / "1.json")
check("verify recorded inputs", code == 0 and "2 requests" in out and out.rstrip().endswith("ok"), out + err)
joined = whole + " batch_options { num_batch_threads: 2 max_batch_size: 4 batch_timeout_micros: 20000 allowed_batch_sizes: 4 }"
code, out, err, _ = convert("cnn", joined, "joined", "--verify", "2")
check("verify joins, pads and splits requests", code == 0 and "joined with others, padded or split" in out and "differs" not in out, out + err)
code, out, err, again = convert("cnn", whole, "bytes_2", "--verify_log", models / "cnn.tfrecord", "--warmup_requests", "--report_json", work / "2.json")
files = sorted(p.relative_to(where) for p in where.rglob("*") if p.is_file())
check("equal options give equal bytes", files == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
      and all((where / f).read_bytes() == (again / f).read_bytes() for f in files) and (work / "1.json").read_bytes() == (work / "2.json").read_bytes(), files)
check("stages and times on stderr", all(s in err for s in ("read", "bodies", "compatibility", "write")) and " ms" in err, err)
check("no output folder: usage", call("convert", "--input_model_dir", models / "cnn", "--converter_options_string", whole)[0] == 2)
check("no such generation: usage", call("convert", models / "cnn", work / "x", "--tpu", "v99")[0] == 2)
code, out, err = call("convert", models / "counter", work / "refused", "--verify", "2", "--dry_run", "--auto_place")
check("verify needs a model", code == 1 and "--dry_run" in err, err)

# Bad input: a clear error with a code, quickly, whatever the bytes.
for file in ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"):
    source = models / "cnn" / file
    data = source.read_bytes()
    cases = [data[: len(data) * k // 7] for k in range(7)] + [bytes(b ^ (1 << (i % 8)) if j == i * len(data) // 40 else b for j, b in enumerate(data)) for i in range(40)]
    bad = 0
    for i, blob in enumerate(cases):
        broken = work / "broken"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(models / "cnn", broken)
        (broken / file).write_bytes(blob)
        code, out, err = call("replay", broken, "--log", models / "cnn.tfrecord", limit=20)
        if code not in (0, 1):
            bad += 1
            print(f"{file} case {i}: exit {code} {err[:200]}")
    check(f"damaged {file}", bad == 0)
code, out, err = call("replay", work / "nowhere", "--log", models / "cnn.tfrecord")
check("missing model", code == 1 and "NOT_FOUND" in out, out + err)
code, out, err = call("replay", models / "cnn", "--log", work / "nowhere")
check("missing log", code == 1 and "NOT_FOUND" in err, err)

# Tensors beyond the memory limit are refused with an error; the program does not crash.
code, out, err = call("run", models / "plain_module", "--signature_def", "function:lookup#0", "--input_exprs", 'words=["b", "c"]', "--memory_limit", 1)
check("run within a memory limit", code == 1 and "RESOURCE_EXHAUSTED" in err and "the limit is 1" in err, out + err)
code, out, err = call("replay", models / "cnn", "--log", models / "cnn.tfrecord", "--memory_limit", 1)
check("replay within a memory limit", code == 1 and "RESOURCE_EXHAUSTED" in out + err and "the limit is 1" in out + err, out + err)
code, out, err = call("replay", models / "cnn", "--log", models / "cnn.tfrecord", "--memory_limit", 1 << 30)
check("a memory limit that suffices", code == 0, out + err)

# A model where users keep it: an archive, a folder of versions, a folder around a folder.
log = models / "cnn.tfrecord"
versions = work / "versions"
shutil.copytree(models / "loop", versions / "9")
shutil.copytree(models / "cnn", versions / "10")
for name, place in [("versions", versions), ("around", work / "around")]:
    if name == "around":
        shutil.copytree(models / "cnn", place / "deep" / "er")
    code, out, err = call("replay", place, "--log", log)
    check(f"model in {name}", code == 0, out + err)
temporary = work / "tmp"
temporary.mkdir()
os.environ["TMPDIR"] = str(temporary)
for name, mode in [("cnn.tar.gz", "w:gz"), ("cnn.tar", "w")]:
    with tarfile.open(work / name, mode) as tar:
        tar.add(models / "cnn", "./some/cnn")
    code, out, err = call("replay", work / name, "--log", log)
    check(f"model in {name}", code == 0 and not list(temporary.iterdir()), out + err)
code, out, err = call("show", work / "cnn.tar.gz")
check("show an archive", code == 0 and "serve" in out, out + err)
code, out, err = call("convert", work / "cnn.tar.gz", work / "from_archive", "--converter_options_string",
                      'tpu_functions { signature_name: "serving_default" }' + OFF)
check("convert an archive", code == 0 and call("replay", work / "from_archive", "--log", log)[0] == 0, out + err)
with tarfile.open(work / "escapes.tar", "w") as tar:
    tar.add(models / "cnn" / "saved_model.pb", "../escaped.pb")
code, out, err = call("show", work / "escapes.tar")
check("archive that leads out", code == 1 and "INVALID_ARGUMENT" in err and not (work / "escaped.pb").exists(), err)
(work / "cut.tar.gz").write_bytes((work / "cnn.tar.gz").read_bytes()[:3000])
code, out, err = call("show", work / "cut.tar.gz")
check("archive cut short", code == 1 and "cut short" in err and not list(temporary.iterdir()), err)
code, out, err = call("show", models / "cnn" / "variables/variables.index")
check("a file that is no archive", code == 1 and ("INVALID_ARGUMENT" in err or "DATA_LOSS" in err), err)
shutil.copytree(models / "cnn", work / "several" / "a"), shutil.copytree(models / "cnn", work / "several" / "b")
code, out, err = call("show", work / "several")
check("several models", code == 1 and "a, b" in err, err)

# Functions of a model without signatures.
code, out, err = call("show", models / "plain_module", "--all")
check("functions are listed", code == 0 and all(f"function:__call__#{i}" in out for i in range(4)), out + err)
code, out, err = call("run", models / "plain_module", "--signature_def", "function:lookup#0", "--input_exprs", 'words=["b", "c"]')
check("run a function", code == 0 and "[ 5 -1]" in out and "[0 1]" in out, out + err)
code, out, err = call("run", models / "plain_module", "--signature_def", "function:lookup#1", "--input_exprs", 'words=["b"]')
check("no such function", code == 1 and "NOT_FOUND" in err and "function:lookup#0" in err, err)
code, out, err = call("run", models / "plain_module", "--input_exprs", 'words=["b"]')
check("no signatures", code == 1 and "NOT_FOUND" in err, err)

# Frozen graphs, and ops of a user's own.
graph = work / "graph.pbtxt"
graph.write_text("""
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
node { name: "times" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "scaled" op: "SmeltExampleScale" input: "times" attr { key: "factor" value { f: 10 } } }
node { name: "words" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
node { name: "joined" op: "SmeltExampleJoin" input: "words" }
versions { producer: 1882 }
""")
code, out, err = call("run", "--graph_def", graph, "--input_exprs", "x=[[1.0, 2.5]]", "--fetches", "times:0")
check("frozen graph", code == 0 and "[[2. 5.]]" in out, out + err)
code, out, err = call("run", "--graph_def", graph, "--input_exprs", "times=[[1.0]];words=['a', 'b']", "--op_library", op_library)
check("op library", code == 0 and "[[10.]]" in out and "[b'a#0' b'b#1']" in out, out + err)
code, out, err = call("run", "--graph_def", graph, "--input_exprs", "times=3.0", "--fetches", "scaled", "--op_library", op_library)
check("op library fails", code == 1 and "INVALID_ARGUMENT" in err and "x must not be a scalar" in err and "scaled" in err, out + err)
code, out, err = call("run", "--graph_def", graph, "--input_exprs", "x=[[1.0]]", "--fetches", "scaled")
check("op of nobody", code == 1 and "NOT_FOUND" in err and "SmeltExampleScale" in err and "scaled" in err, out + err)
code, out, err = call("ops", "SmeltExampleScale", "--op_library", op_library)
check("ops lists an own op", code == 0 and "custom:SmeltExampleScale" in out, out + err)
code, out, err = call("ops", "--op_library", smelt)
check("no op library", code == 1, out + err)
code, out, err = call("run", "--graph_def", graph, "--input_exprs", "x=[[1.0]]", "--fetches", "nothing:0")
check("no such tensor", code == 1 and "NOT_FOUND" in err and "nothing" in err, err)

code, out, err = call("ops", "MatMul")
check("ops NAME", code == 0 and "onednn" in out, out)
code, out, err = call("ops")
check("ops", code == 0 and int(out.split("\n")[-2].split()[0]) > 300, out[-200:])
check("version", call("version")[1].startswith("smelt "))
check("usage", call()[0] == 2 and call("nonsense")[0] == 2)
for command in ("show", "run", "replay", "convert", "ops", "version"):
    code, out, err = call(command, "--help")
    check(f"{command} --help", code == 0 and "Example" in out, out)

# oneDNN's loops run on the program's own teams, and no libgomp is there.
bound = subprocess.run([smelt, "--help"], capture_output=True, text=True, env={**os.environ, "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"}).stderr
check("no OpenMP is loaded", "libgomp" not in bound and "libiomp" not in bound)
bound = re.findall(r"binding file \S*libsmelt_onednn\S* \[0\] to (\S+) \[0\]: normal symbol `smelt_(?:GOMP|omp)_\w+'", bound)
check("oneDNN finds its threads in the program", bound and all(os.path.samefile(to, smelt) for to in bound), str(bound))

finish()
