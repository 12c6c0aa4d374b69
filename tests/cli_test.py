#!/usr/bin/env python3
"""Runs the program as a user does, on the models in tests/models: cli_test.py SMELT OP_LIBRARY. Ends with 'N passed, N failed'.

The models and the recorded answers were written by TensorFlow (tools/make_fixtures.py)."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

smelt, op_library = map(os.path.abspath, sys.argv[1:3])
models = pathlib.Path(__file__).resolve().parent / "models"
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_cli_"))
passed, failed = 0, []


def call(*args, limit=60):
    p = subprocess.run([smelt, *map(str, args)], capture_output=True, text=True, timeout=limit)
    return p.returncode, p.stdout, p.stderr


def check(name, truth, detail=""):
    global passed
    if truth:
        passed += 1
    else:
        failed.append(name)
        print(f"FAILED {name}: {detail}"[:2000])


def convert(model, options, name):
    out = work / name
    code, stdout, stderr = call("convert", "--input_model_dir", models / model, "--output_model_dir", out, "--converter_options_string", options)
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

# Conversion: the four ways to name a function, and a converted model answers the same.
for name, model, options in [
    ("alias", "language_model", 'tpu_functions { function_alias: "tpu_func" }' + OFF),
    ("signature", "cnn", 'tpu_functions { signature_name: "serving_default" }' + OFF),
    ("signature of a loop", "loop", 'tpu_functions { signature_name: "serving_default" }' + OFF),
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

# What the report looks like, line by line.
_, out, _, _ = convert("functions", 'tpu_functions { function_alias: "leaf" }' + OFF, "report")
lines = out.splitlines()
check("report form", lines[3] == "" and lines[4:8] == ["Cost breakdown", "=" * 32, "%         Cost    Name", "-" * 32]
      and lines[8].split()[2:] == ["[CPU", "cost]"] and lines[9].split()[2] == "leaf" and lines[10] == "-" * 32, out)

# Errors: the code, the text, and nothing left behind.
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
    ("nothing named", "functions", "", "INVALID_ARGUMENT", "tpu_functions"),
    ("empty function", "functions", "tpu_functions { }", "INVALID_ARGUMENT", "names no function"),
    ("batching", "functions", 'tpu_functions { function_alias: "leaf" } batch_options { max_batch_size: 8 }', "UNIMPLEMENTED", "batch_options"),
    ("bfloat16", "functions", 'tpu_functions { function_alias: "leaf" } bfloat16_optimization: ENABLED', "UNIMPLEMENTED", "bfloat16_optimization"),
    ("io shapes", "functions", 'tpu_functions { function_alias: "leaf" } io_shape_optimization: ENABLED', "UNIMPLEMENTED", "io_shape_optimization"),
    ("sharding", "functions", 'tpu_functions { function_alias: "leaf" } xla_sharding_options { num_cores_per_replica: 2 }', "UNIMPLEMENTED", "xla_sharding_options"),
    ("quantisation", "functions", 'tpu_functions { function_alias: "leaf" } external_feature_configs { quantization_options { signature_keys: "s" } }', "UNIMPLEMENTED",
     "quantization_options"),
]:
    code, out, err, where = convert(model, options, "error_" + name.replace(" ", "_"))
    check(f"convert error: {name}", code == 1 and f"error: {code_name}: " in err and text in err, err)
    left = [p.name for p in work.iterdir() if p.name.startswith(where.name)]
    check(f"nothing left: {name}", not left, left)

# The output folder: not overwritten unless asked; an interrupted conversion leaves nothing half-written.
existing = work / "existing"
existing.mkdir()
(existing / "precious").write_text("x")
base = ["convert", "--input_model_dir", models / "cnn", "--output_model_dir", existing, "--converter_options_string",
        'tpu_functions { signature_name: "serving_default" }' + OFF]
code, out, err = call(*base)
check("keeps what is there", code == 1 and "ALREADY_EXISTS" in err and (existing / "precious").exists(), err)
code, out, err = call(*base, "--overwrite")
check("overwrites when asked", code == 0 and (existing / "saved_model.pb").exists() and not (existing / "precious").exists(), err)
for delay in (0.001, 0.003, 0.006, 0.01, 0.02):
    target = work / f"interrupted_{delay}"
    p = subprocess.Popen([smelt, *map(str, base[:4]), str(target), *map(str, base[5:])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    p.send_signal(signal.SIGKILL)
    p.wait()
    whole = not target.exists() or call("replay", target, "--log", models / "cnn.tfrecord")[0] == 0
    check(f"killed after {delay} s: whole or absent", whole)

# An accelerator refuses what it cannot compile, when it runs, in TensorFlow's words.
code, out, err, where = convert("language_model", 'tpu_functions { signature_name: "serving_default" }' + OFF, "strings")
code, out, err = call("replay", where, "--log", models / "language_model.tfrecord")
check("strings on the accelerator", code == 1 and "op isn't compilable for TPU device" in out, out)

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

# Tensors beyond the memory limit are refused, and nothing else happens.
code, out, err = call("run", "--dir", models / "plain_module", "--signature_def", "function:lookup#0", "--input_exprs", 'words=["b", "c"]', "--memory_limit", 1)
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
code, out, err = call("show", "--dir", work / "cnn.tar.gz")
check("show an archive", code == 0 and "serve" in out, out + err)
code, out, err = call("convert", "--input_model_dir", work / "cnn.tar.gz", "--output_model_dir", work / "from_archive", "--converter_options_string",
                      'tpu_functions { signature_name: "serving_default" }' + OFF)
check("convert an archive", code == 0 and call("replay", work / "from_archive", "--log", log)[0] == 0, out + err)
with tarfile.open(work / "escapes.tar", "w") as tar:
    tar.add(models / "cnn" / "saved_model.pb", "../escaped.pb")
code, out, err = call("show", "--dir", work / "escapes.tar")
check("archive that leads out", code == 1 and "INVALID_ARGUMENT" in err and not (work / "escaped.pb").exists(), err)
(work / "cut.tar.gz").write_bytes((work / "cnn.tar.gz").read_bytes()[:3000])
code, out, err = call("show", "--dir", work / "cut.tar.gz")
check("archive cut short", code == 1 and "truncated" in err and not list(temporary.iterdir()), err)
code, out, err = call("show", "--dir", models / "cnn" / "saved_model.pb")
check("a file that is no archive", code == 1 and ("INVALID_ARGUMENT" in err or "DATA_LOSS" in err), err)
shutil.copytree(models / "cnn", work / "two" / "a"), shutil.copytree(models / "cnn", work / "two" / "b")
code, out, err = call("show", "--dir", work / "two")
check("several models", code == 1 and "a, b" in err, err)

# Functions of a model without signatures.
code, out, err = call("show", "--dir", models / "plain_module", "--all")
check("functions are listed", code == 0 and all(f"function:__call__#{i}" in out for i in range(4)), out + err)
code, out, err = call("run", "--dir", models / "plain_module", "--signature_def", "function:lookup#0", "--input_exprs", 'words=["b", "c"]')
check("run a function", code == 0 and "[ 5 -1]" in out and "[0 1]" in out, out + err)
code, out, err = call("run", "--dir", models / "plain_module", "--signature_def", "function:lookup#1", "--input_exprs", 'words=["b"]')
check("no such function", code == 1 and "NOT_FOUND" in err and "function:lookup#0" in err, err)
code, out, err = call("run", "--dir", models / "plain_module", "--input_exprs", 'words=["b"]')
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

shutil.rmtree(work)
print(f"{passed} passed, {len(failed)} failed")
sys.exit(1 if failed else 0)
