#!/usr/bin/env python3
"""What the program writes, what it replaces, and which files a model may touch: files_test.py SMELT. Ends with 'N passed, N failed'."""
import os
import resource
import shutil
import signal
import stat
import subprocess
import threading
import time

from program import call, check, finish, int_const, models, node, smelt, string_const, work

OPTIONS = 'tpu_functions { signature_name: "serving_default" } disable_default_optimizations: true'


def convert(source, target, *flags, **more):
    return call("convert", "--input_model_dir", source, "--output_model_dir", target, "--converter_options_string", OPTIONS, *flags, **more)


def answers(target):
    return call("replay", target, "--log", models / "cnn.tfrecord")[0] == 0


def names(folder):
    return sorted(os.listdir(folder))


# ---- what is replaced
model = work / "model"
shutil.copytree(models / "cnn", model)
for name, target in (("the input itself", model), ("a link to it", work / "link"), ("its folder", work), ("the input by another name", work / "." / "model/../model")):
    if name == "a link to it":
        target.symlink_to(model)
    code, out, err = convert(model, target, "--overwrite")
    check(f"output is {name}", code == 1 and "INVALID_ARGUMENT" in err and "the output folder" in err and answers(model), err)
code, out, err = convert(model, model / "sub", "--overwrite")
check("output in the input", code == 1 and "INVALID_ARGUMENT" in err and "lies in the input" in err and not (model / "sub").exists(), err)
archive = work / "home"
archive.mkdir()
subprocess.run(["tar", "cf", archive / "cnn.tar", "-C", model, "."], check=True)
code, out, err = convert(archive / "cnn.tar", archive, "--overwrite")
check("output holds the archive", code == 1 and "INVALID_ARGUMENT" in err and (archive / "cnn.tar").exists(), err)

precious = work / "precious"
precious.mkdir()
(precious / "letter").write_text("x")
code, out, err = convert(model, precious)
check("keeps what is there", code == 1 and "ALREADY_EXISTS" in err and names(precious) == ["letter"], err)
code, out, err = convert(model, precious, "--overwrite")
check("a folder that is no model is not replaced", code == 1 and "FAILED_PRECONDITION" in err and names(precious) == ["letter"], err)
plain = work / "plain"
plain.write_text("x")
code, out, err = convert(model, plain, "--overwrite")
check("a file is not replaced", code == 1 and plain.read_text() == "x", err)
target = work / "old"
shutil.copytree(models / "functions", target)
code, out, err = convert(model, target, "--overwrite")
check("a model is replaced", code == 0 and answers(target), err)
(target / "notes.txt").write_text("mine")
code, out, err = convert(model, target, "--overwrite")
check("but not what else is in its folder", code == 1 and "notes.txt" in err and (target / "notes.txt").exists() and answers(target), err)
empty = work / "empty"
empty.mkdir()
code, out, err = convert(model, empty)
check("an empty folder is taken", code == 0 and answers(empty), err)
code, out, err = convert(model, work / "a" / "b" / "c")
check("folders above are made", code == 0 and answers(work / "a/b/c"), err)
code, out, err = call("convert", "--input_model_dir", model, "--output_model_dir", work / "x" / "y", "--converter_options_string",
                      'tpu_functions { signature_name: "nosuch" }')
check("and go when nothing comes of it", code == 1 and not (work / "x").exists(), err)

# ---- reports: links are followed, devices written through, and one that fails leaves no model
real = work / "real.json"
real.write_text("old")
real.chmod(0o640)
link = work / "link.json"
link.symlink_to("real.json")
code, out, err = convert(model, work / "r1", "--report_json", link)
check("a link's target is replaced", code == 0 and link.is_symlink() and real.read_text().startswith("{") and stat.S_IMODE(real.stat().st_mode) == 0o640, err)
dangling = work / "dangling.json"
dangling.symlink_to("later.json")
code, out, err = convert(model, work / "r2", "--report_json", dangling)
check("a link to nothing makes its target", code == 0 and dangling.is_symlink() and (work / "later.json").exists(), err)
fifo = work / "fifo"
os.mkfifo(fifo)
read = []
reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
reader.start()
code, out, err = convert(model, work / "r3", "--report_html", fifo)
reader.join()
check("a pipe is written through", code == 0 and stat.S_ISFIFO(fifo.stat().st_mode) and read[0].lower().startswith("<!doctype"), err)
code, out, err = convert(model, work / "r4", "--report_json", "/dev/stdout")
check("standard output", code == 0 and '"placements"' in out, err)
code, out, err = convert(model, work / "r5", "--report_json", "/dev/full")
check("a full device", code == 1 and "RESOURCE_EXHAUSTED" in err and not stat.S_ISREG(os.stat("/dev/full").st_mode), err)
code, out, err = convert(model, work / "r6", "--report_json", work)
check("a folder for a report", code == 1 and not (work / "r6").exists(), err)
code, out, err = convert(model, work / "r7", "--report_json", work / "r7" / "report.json")
check("a report in the output folder", code == 0 and (work / "r7/report.json").exists() and answers(work / "r7"), err)
code, out, err = convert(model, work / "r7", "--report_json", work / "r7" / "report.json", "--overwrite")
check("and again", code == 0 and (work / "r7/report.json").exists(), err)
for flag, target in (("--record", work / "record_link"), ("--trace", work / "trace_link"), ("--programs", work / "programs_link")):
    (work / "there").write_text("old")
    target.symlink_to("there")
    if flag == "--record":
        code, out, err = call("replay", model, "--log", models / "cnn.tfrecord", flag, target)
    else:
        code, out, err = call("run", "--dir", model, "--input_exprs", "image=np.ones((1,16,16,3))", flag, target)
    check(f"{flag} through a link", target.is_symlink() and (work / "there").read_bytes() != b"old", err)
programs = (work / "there").read_text()
check("programs: shapes, bound kernels, places", "[1,16,16,3]" in programs and "bound]" in programs and "arena " in programs, programs)
code, out, err = call("run", "--dir", model, "--input_exprs", "image=np.ones((1,16,16,3))", "--programs", work / "none", "--no_compile")
check("no programs", code == 0 and (work / "none").read_text() == "", err)

# ---- limits of the system
code, out, err = convert(model, work / "r8", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
check("the largest file", code == 1 and "File too large" in err and not (work / "r8").exists(), (code, err))
# Sanitizers open descriptors of their own.
if "SMELT_SANITIZED" not in os.environ:
    code, out, err = convert(model, work / "r9", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5)))
    check("open files", code == 1 and "RESOURCE_EXHAUSTED" in err and "Too many open files" in err or code == 0, (code, err))

# ---- two at once, signals, and what a killed process leaves
large = work / "large"
shutil.copytree(model, large)
(large / "assets").mkdir(exist_ok=True)
with open(large / "assets/ballast", "wb") as f:
    f.truncate(1 << 30)
argv = [smelt, "convert", "--input_model_dir", str(large), "--converter_options_string", OPTIONS]
first = subprocess.Popen([*argv, "--output_model_dir", str(work / "contested")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
while not (work / "contested.smelt-tmp").exists() and first.poll() is None:
    time.sleep(0.001)
code, out, err = convert(model, work / "contested")
_, first_err = first.communicate()
# Who locks the folder that was just made writes: mostly the first, which made it.
(won, _), (lost, said) = sorted([(first.returncode, first_err), (code, err)])
check("two writers", won == 0 and lost == 1 and ("ABORTED" in said and "another process" in said or "ALREADY_EXISTS" in said), (won, lost, said))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    one = subprocess.Popen([*argv, "--output_model_dir", str(work / "signalled")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (work / "signalled.smelt-tmp").exists() and one.poll() is None:
        time.sleep(0.001)
    time.sleep(0.02)
    one.send_signal(number)
    one.wait()
    check(f"signal {number.name}", one.returncode == -number and not [n for n in names(work) if n.startswith("signalled")], (one.returncode, names(work)))
one = subprocess.Popen([*argv, "--output_model_dir", str(work / "killed")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not (work / "killed.smelt-tmp").exists() and one.poll() is None:
    time.sleep(0.001)
one.kill()
one.wait()
check("a killed process leaves no model", not (work / "killed").exists())
code, out, err = convert(model, work / "killed")
check("the next one tidies up", code == 0 and [n for n in names(work) if n.startswith("killed")] == ["killed"] and answers(work / "killed"), names(work))
shutil.rmtree(large)


# ---- files that a model's ops name
def graph(text, *flags, **more):
    path = work / "graph.pbtxt"
    path.write_text(text)
    return call("run", "--graph_def", path, *flags, **more)


secret = work / "secret"
secret.mkdir()
(secret / "text").write_text("hidden")
(work / "way_in").symlink_to(secret)
text = str(secret / "text")
readers = {
    "ReadFile": string_const("path", text) + node("out", "ReadFile", "path"),
    "MatchingFiles": string_const("path", str(secret) + "/*") + node("out", "MatchingFiles", "path"),
    "RestoreV2": string_const("path", str(secret / "ckpt")) + string_const("names", "v", shape=1) + string_const("slices", "", shape=1)
    + node("out", "RestoreV2", "path", "names", "slices", dtypes="list { type: DT_FLOAT }"),
    "Restore": string_const("path", str(secret / "*")) + string_const("names", "v") + node("out", "Restore", "path", "names", dt="type: DT_FLOAT"),
    "ImmutableConst": node("out", "ImmutableConst", dtype="type: DT_UINT8", shape="shape { dim { size: 1 } }", memory_region_name=f's: "{text}"'),
}
dataset = string_const("path", text) + string_const("none", "") + int_const("zero", 0, dtype="DT_INT64")
shapes = dict(output_types="list { type: DT_STRING }", output_shapes="list { shape { } }")
for op, sources in (("TextLineDataset", ("path", "none", "zero")), ("TFRecordDataset", ("path", "none", "zero"))):
    readers[op] = dataset + node("data", op, *sources) + node("out", "DatasetToSingleElement", "data", **shapes)
readers["InitializeTableFromTextFileV2"] = (
    string_const("path", text) + string_const("key", "hidden") + int_const("default", -1, dtype="DT_INT64")
    + node("table", "HashTableV2", key_dtype="type: DT_STRING", value_dtype="type: DT_INT64")
    + node("init", "InitializeTableFromTextFileV2", "table", "path", key_index="i: -2", value_index="i: -1")
    + node("out", "LookupTableFindV2", "table", "key", "default", "^init", Tin="type: DT_STRING", Tout="type: DT_INT64"))
for op, body in readers.items():
    code, out, err = graph(body, "--fetches", "out:0")
    check(f"{op} reads nothing", code == 1 and "PERMISSION_DENIED" in err and op.removesuffix("V2") in err and str(secret) in err and "--allow_read" in err, err)
    code, out, err = graph(body, "--fetches", "out:0", "--allow_read", secret)
    check(f"{op} with --allow_read", "PERMISSION_DENIED" not in err, err)
code, out, err = graph(readers["ReadFile"], "--fetches", "out:0", "--allow_read", secret)
check("--allow_read reads", code == 0 and "hidden" in out, out + err)
for way in (work / "way_in" / "text", secret / ".." / "secret" / "text", secret / "missing"):
    code, out, err = graph(string_const("path", str(way)) + node("out", "ReadFile", "path"), "--fetches", "out:0", "--allow_read", models)
    check(f"the way by {way.name}", code == 1 and "PERMISSION_DENIED" in err, err)
code, out, err = graph(string_const("path", str(models / ".." / "files_test.py")) + node("out", "ReadFile", "path"), "--fetches", "out:0", "--allow_read", models)
check("out by ..", code == 1 and "PERMISSION_DENIED" in err, err)

written = work / "written"
writers = {
    "WriteFile": string_const("path", str(written / "deep/file")) + string_const("bytes", "x") + node("out", "WriteFile", "path", "bytes"),
    "SaveV2": string_const("path", str(written / "ckpt")) + string_const("names", "v", shape=1) + string_const("slices", "", shape=1) + int_const("v", 1)
    + node("out", "SaveV2", "path", "names", "slices", "v", dtypes="list { type: DT_INT32 }"),
    "Save": string_const("path", str(work / "written_v1")) + string_const("names", "v", shape=1) + int_const("v", 1)
    + node("out", "Save", "path", "names", "v", T="list { type: DT_INT32 }"),
    "PrintV2": string_const("text", "x") + node("out", "PrintV2", "text", output_stream=f's: "file://{work / "written_print"}"'),
    "MergeV2Checkpoints": string_const("from", str(secret / "part"), shape=1) + string_const("to", str(written / "merged"))
    + node("out", "MergeV2Checkpoints", "from", "to"),
    "CreateSummaryFileWriter": string_const("path", str(written)) + string_const("suffix", "") + int_const("n", 1)
    + node("writer", "SummaryWriter") + node("out", "CreateSummaryFileWriter", "writer", "path", "n", "n", "suffix"),
}
after = node("seen", "Const", "^out", dtype="type: DT_FLOAT", value="tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 }")
for op, body in writers.items():
    code, out, err = graph(body + after, "--fetches", "seen:0")
    check(f"{op} writes nothing", code == 1 and "PERMISSION_DENIED" in err and op in err and "--allow_write" in err
          and not [n for n in names(work) if n.startswith("written")], err)
    if op != "MergeV2Checkpoints":
        code, out, err = graph(body + after, "--fetches", "seen:0", "--allow_write", work)
        check(f"{op} with --allow_write", code == 0 and [n for n in names(work) if n.startswith("written")], err)
    for n in names(work):
        if n.startswith("written"):
            (shutil.rmtree if (work / n).is_dir() else os.unlink)(work / n)

# What a writer of summaries holds back is written when the process ends.
events = (string_const("path", str(written)) + string_const("suffix", "") + int_const("many", 100) + int_const("step", 3, dtype="DT_INT64")
    + string_const("tag", "held back") + node("writer", "SummaryWriter") + node("made", "CreateSummaryFileWriter", "writer", "path", "many", "many", "suffix")
    + node("value", "Const", dtype="type: DT_FLOAT", value="tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 }")
    + node("out", "WriteScalarSummary", "writer", "step", "tag", "value", "^made", T="type: DT_FLOAT"))
code, out, err = graph(events + after, "--fetches", "seen:0", "--allow_write", work)
check("held back summaries", code == 0 and any(b"held back" in f.read_bytes() for f in written.iterdir()), err)
shutil.rmtree(written)

# ---- a model's own files: assets and variables, that do not lead out of its folder
own = work / "own"
shutil.copytree(models / "language_model", own)
log = models / "language_model.tfrecord"
check("a model reads its assets", call("replay", own, "--log", log)[0] == 0)
for part in ("assets", "variables"):
    folder = own / part
    if not folder.exists():
        check(f"the model has {part}", False)
        continue
    moved = work / f"moved_{part}"
    folder.rename(moved)
    folder.symlink_to(moved)
    code, out, err = call("replay", own, "--log", log)
    check(f"{part} by a link that leads out", code == 1 and "PERMISSION_DENIED" in out + err, out + err)
    code, out, err = call("replay", own, "--log", log, "--allow_read", moved)
    check(f"{part} by a link with --allow_read", code == 0, out + err)
    code, out, err = convert(own, work / "copied", "--allow_soft_placement")
    check(f"convert with {part} by a link", code == 1 and "PERMISSION_DENIED" in err and not (work / "copied").exists(), err)
    folder.unlink()
    moved.rename(folder)
blobs = work / "blobs"  # as download caches lay models out
shutil.copytree(own, blobs)
cache = work / "cache"
cache.mkdir()
for n in names(blobs):
    (cache / n).symlink_to(blobs / n)
code, out, err = call("replay", cache, "--log", log)
check("a model of links", code == 0, out + err)
pb = own / "saved_model.pb"
asset = names(own / "assets")[0]
leads_out = ("../" * 8)[: len(asset) - 1] + asset[-1]
pb.write_bytes(pb.read_bytes().replace(asset.encode(), leads_out.encode()))
code, out, err = call("replay", own, "--log", log)
check("an asset's name that leads out", code == 1 and "INVALID_ARGUMENT" in err + out and "leads out of the model's folder" in err + out, out + err)
finish()
