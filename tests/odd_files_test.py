#!/usr/bin/env python3
"""Paths that are no files, inputs without end, logs without records: odd_files_test.py SMELT. Ends with 'N passed, N failed'.

What is no file is refused at once where a model keeps its files; what a user pipes in is read, but not for ever."""
import os
import shutil
import subprocess
import tarfile

from program import check, finish, models, smelt, work


def call(*args, stdin=subprocess.DEVNULL, data=None):
    """(exit code, stdout, stderr); a program that waits is an error."""
    given = {"stdin": stdin} if data is None else {"input": data}
    try:
        p = subprocess.run([smelt, *map(str, args)], capture_output=True, timeout=20, **given)
    except subprocess.TimeoutExpired:
        return None, "", "waits for ever"
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def refused(name, result, code, *texts):
    status, out, err = result
    check(name, status == 1 and f"error: {code}: " in err and all(text in err for text in texts), (status, out, err))


pipe = work / "pipe"
os.mkfifo(pipe)
EXPRS = ["--input_exprs", "x=[[1.0]]"]


def half_plus_two(name, lost):
    """A copy of the model without one file, and the path of that file."""
    copy = work / name
    shutil.copytree(models / "half_plus_two_v1", copy)
    (copy / lost).unlink()
    return copy, copy / lost


# Files of a model.
INDEX, DATA = "variables/variables.index", "variables/variables.data-00000-of-00001"
for i, lost in enumerate(["saved_model.pb", INDEX, DATA]):
    for kind, target in [("a pipe", pipe), ("a character device", "/dev/zero")]:
        copy, path = half_plus_two(f"{i} {kind}", lost)
        path.symlink_to(target)
        refused(f"{kind} as {lost}", call("run", "--dir", copy, "--allow_read", target, *EXPRS), "FAILED_PRECONDITION", path.name, f"Is {kind}, not a file")
    copy, path = half_plus_two(f"{i} folder", lost)
    path.mkdir()
    refused(f"a folder as {lost}", call("run", "--dir", copy, *EXPRS), "FAILED_PRECONDITION", "Is a directory")
copy, path = half_plus_two("text", "saved_model.pb")
(copy / "saved_model.pbtxt").symlink_to(pipe)
refused("a pipe as saved_model.pbtxt", call("show", "--dir", copy), "FAILED_PRECONDITION", "Is a pipe")
copy, path = half_plus_two("huge", INDEX)
with open(path, "wb") as f:
    f.truncate(1 << 40)
refused("an index of a terabyte", call("run", "--dir", copy, *EXPRS), "DATA_LOSS", "magic number")
for kind, path in [("a pipe", pipe), ("a character device", "/dev/zero")]:
    refused(f"{kind} as a model", call("show", "--dir", path), "FAILED_PRECONDITION", f"Is {kind}")
    refused(f"{kind} as a frozen graph", call("run", "--graph_def", path), "FAILED_PRECONDITION", f"Is {kind}")
    refused(f"{kind} as a log", call("replay", models / "cnn", "--log", path), "FAILED_PRECONDITION", f"Is {kind}")

# What a user hands in: devices are refused, pipes are read.
CONVERT = ["convert", "--input_model_dir", models / "cnn", "--dry_run", "--converter_options_file"]
RUN = ["run", "--dir", models / "half_plus_two_v1"]
OPTIONS = b'tpu_functions { signature_name: "serving_default" } disable_default_optimizations: true'
JSON = b'{"inputs": {"x": [2.0]}}'
refused("a device as options", call(*CONVERT, "/dev/zero"), "FAILED_PRECONDITION", "/dev/zero; Is a character device")
refused("a device as an input", call(*RUN, "--inputs", "x=/dev/zero"), "FAILED_PRECONDITION", "/dev/zero; Is a character device")
refused("a device as a request", call(*RUN, "--json", "/dev/zero"), "FAILED_PRECONDITION", "/dev/zero; Is a character device")
refused("a folder as options", call(*CONVERT, work), "FAILED_PRECONDITION", "Is a directory")
with open("/dev/zero", "rb") as zeros:
    refused("a device as standard input", call(*RUN, "--json", "-", stdin=zeros), "FAILED_PRECONDITION", "standard input; Is a character device")
for name, args in [("options", CONVERT + ["/dev/stdin"]), ("request", RUN + ["--json", "/dev/stdin"]), ("standard input", RUN + ["--json", "-"])]:
    code, out, err = call(*args, data=OPTIONS if name == "options" else JSON)
    check(f"piped {name}", code == 0 and (name == "options" or "3.0" in out), (code, out, err))
code, out, err = call(*RUN, "--inputs", "x=/dev/stdin", data=b"\x93NUMPY\x01\x00\x3c\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }\n\0\0\0\x40")
check("piped array", code == 0 and "[[3.]]" in out, (code, out, err))
with open(work / "endless", "wb") as f:
    f.truncate(1 << 40)
refused("options of a terabyte", call(*CONVERT, work / "endless"), "RESOURCE_EXHAUSTED", "endless; Holds more than 1073741824 bytes")

# Logs that ask nothing prove nothing.
empty = work / "empty.tfrecord"
empty.touch()
refused("replay of an empty log", call("replay", models / "cnn", "--log", empty, "--record", work / "answers"), "INVALID_ARGUMENT", "holds no records")
check("no answers to an empty log", not list(work.glob("answers*")))
refused("conversion verified by an empty log", call("convert", "--input_model_dir", models / "cnn", "--output_model_dir", work / "converted",
                                                    "--converter_options_string", OPTIONS.decode(), "--verify_log", empty),
        "INVALID_ARGUMENT", "holds no records")

# --unpack_limit: every command that reads archives has it, and it holds for all of them.
with tarfile.open(work / "cnn.tar.gz", "w:gz") as tar:
    tar.add(models / "cnn", "cnn")
archive, log = work / "cnn.tar.gz", models / "cnn.tfrecord"
for args in [["show", "--dir", archive], ["run", "--dir", archive], ["replay", archive, "--log", log],
             ["convert", "--input_model_dir", archive, "--dry_run", "--auto_place"]]:
    refused(f"{args[0]} within --unpack_limit", call(*args, "--unpack_limit", 20000), "RESOURCE_EXHAUSTED", f"{archive}: ", "the limit is 20000", "--unpack_limit")
for limit, want in [(1 << 20, 0), (0, 2), (-1, 2)]:
    code, out, err = call("show", "--dir", archive, "--unpack_limit", limit)
    check(f"--unpack_limit {limit}", code == want, (code, out, err))

finish()
