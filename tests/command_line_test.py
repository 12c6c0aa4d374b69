#!/usr/bin/env python3
"""The command line itself: its grammar, hints, lost output, replay's counting: command_line_test.py SMELT. Ends with 'N passed, N failed'."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

from program import call, check, finish, models, read_records, smelt, work, write_records

PLACE = 'tpu_functions { signature_name: "serving_default" } disable_default_optimizations: true'

# One grammar: the model is the first positional argument; TensorFlow's flags mean the same.
for command, flag, rest in [("show", "--dir", ["--all"]), ("run", "--dir", ["--input_exprs", "image=np.ones((1, 16, 16, 3))"])]:
    by_position, by_flag = call(command, models / "cnn", *rest), call(command, flag, models / "cnn", *rest)
    check(f"{command}: model by position", by_position[0] == 0 and by_position == by_flag, by_position)
    check(f"{command}: both, equal", call(command, models / "cnn", flag, models / "cnn", *rest)[0] == 0)
    code, out, err = call(command, models / "cnn", flag, models / "loop", *rest)
    check(f"{command}: both, different", code == 2 and f"model is given twice" in err and flag in err, err)
    code, out, err = call(command, *rest)
    check(f"{command}: no model", code == 2 and "needs a model" in err, err)
code, out, err = call("convert", models / "cnn", work / "placed", "--converter_options_string", PLACE)
check("convert IN OUT", code == 0 and (work / "placed/saved_model.pb").exists(), err)
code, out, err = call("convert", models / "cnn", "--output_model_dir", work / "mixed", "--converter_options_string", PLACE)
check("convert IN --output_model_dir OUT", code == 0 and (work / "mixed/saved_model.pb").exists(), err)
code, out, err = call("convert", models / "cnn", work / "one", "--output_model_dir", work / "two", "--converter_options_string", PLACE)
check("convert: two outputs", code == 2 and "out is given twice" in err and not (work / "one").exists(), err)

# The model's own file stands for its folder.
check("saved_model.pb", call("show", models / "cnn/saved_model.pb") == call("show", models / "cnn"))
code, out, err = call("show", "saved_model.pb", cwd=models / "cnn")
check("saved_model.pb of this folder", code == 0 and "serve" in out, err)
shutil.copytree(models / "cnn", work / "texts")
(work / "texts/saved_model.pbtxt").write_text("")
code, out, err = call("show", work / "texts/saved_model.pbtxt")
check("saved_model.pbtxt that is not read", code == 1 and "INVALID_ARGUMENT" in err and "beside saved_model.pb" in err, err)

# Mistyped words.
for args, text in [(["conver"], 'there is no command "conver" (did you mean "convert"?)'),
                   (["frobnicate"], "Commands: show, run, replay, bench, convert"),
                   (["replay", models / "cnn", "--lgo", "x"], 'smelt replay has no flag "--lgo" (did you mean "--log"?)'),
                   (["run", "--input_expr=x", models / "cnn"], 'has no flag "--input_expr" (did you mean "--input_exprs"'),
                   (["convert", "--input_model_dri", "x"], '(did you mean "--input_model_dir"')]:
    code, out, err = call(*args)
    check(f"mistyped {args[0]} {args[-1]}", code == 2 and text in err, err)

# Converter options: what is wrong, where, and what was probably meant.
def options_error(name, options, *texts):
    code, out, err = call("convert", models / "cnn", "--dry_run", "--converter_options_string", options)
    check(f"options: {name}", code == 1 and "error: INVALID_ARGUMENT: " in err and all(t in err for t in texts), err)


options_error("unknown field", 'tpu_function { signature_name: "x" }', "line 1, column", '"tpu_function" (did you mean "tpu_functions"?). Fields: tpu_functions, batch_options')
options_error("unknown field within", 'tpu_functions { signature: "x" }', 'did you mean "signature_name"', "Fields: function_alias, concrete_function_name")
options_error("unknown value", "bfloat16_optimization: ON", '"ON"', "Allowed values: DEFAULT, ENABLED, DISABLED")
options_error("mistyped value", "bfloat16_optimization: ENABELD", 'did you mean "ENABLED"')
options_error("begun value", "quantization_options { quantization_method { preset_method: METHOD_DYNAMIC } }", 'did you mean "METHOD_DYNAMIC_RANGE_INT8"')
options_error("no boolean", "disable_default_optimizations: yes", "Allowed values: true, false")
options_error("brace not closed", 'tpu_functions {\n  signature_name: "}" # }\n', "line 1, column 15: '{' is not closed")
options_error("brace that closes nothing", "tpu_functions { signature_name: '{' }\n  }", "line 2, column 3: '}' closes nothing")
options_error("wrong bracket", 'batch_options { allowed_batch_sizes: [1, 2 }', "line 1, column 44: '}' does not close the '[' of line 1, column 38")
options_error("string not closed", 'tpu_functions { signature_name: "x }', "line 1, column ", "end of string")
options_file = work / "options.txt"
for encoding, well in [("utf-8-sig", True), ("utf-16", False), ("utf-16-be", False), ("utf-32", False)]:
    options_file.write_bytes((PLACE if encoding != "utf-16-be" else "\ufeff" + PLACE).encode(encoding))
    code, out, err = call("convert", models / "cnn", "--dry_run", "--converter_options_file", options_file)
    named = encoding[:6].upper()
    check(f"options in {encoding}", code == 0 if well else code == 1 and f"encoded as {named}: save them as UTF-8" in err, err)

# --explain: every field of the protos has a line (the program refuses where its table and the protos differ), and what it may hold.
code, out, err = call("convert", "--explain")
told = {line.split(":")[0].split(" ")[0].split(".")[-1] for line in out.splitlines() if not line.startswith(" ")}
protos = pathlib.Path(__file__).resolve().parent.parent / "smelt/wire/proto"
declared, message = set(), ""
for file in ("converter.proto", "quantization.proto", "stablehlo_quantization.proto"):
    for line in (protos / file).read_text().splitlines():
        if m := re.match(r"(message|enum) (\w+)", line):
            message = m[2] if m[1] == "message" else "enum"
        elif (m := re.match(r"\s+(?:repeated |optional )?(?:map<.*>|[\w.]+) (\w+) = \d+;", line)) and message != "RepresentativeDataSample":
            declared.add(m[1])
check("--explain tells every field", code == 0 and told == declared and len(told) > 50, (err, told ^ declared))
code, out, err = call("convert", "--explain", "bfloat16_optimization")
check("--explain FIELD", code == 0 and out.startswith("bfloat16_optimization: DEFAULT, ENABLED, DISABLED\n") and "Default: on" in out and "scope" not in out, out)
code, out, err = call("convert", "--explain", "batch_options")
check("--explain tells what is within", code == 0 and "\nbatch_options.max_batch_size: integer\n" in out, out)
code, out, err = call("convert", "--explain", "max_batch")
check("--explain of no field", code == 1 and 'did you mean "max_batch_size"' in err, err)

# Output that does not arrive is an error, whatever command prints it; a reader that leaves is none.
log = models / "cnn.tfrecord"
printing = {"show": [models / "cnn", "--all"], "run": [models / "cnn", "--input_exprs", "image=np.ones((1, 16, 16, 3))"], "replay": [models / "cnn", "--log", log],
            "ops": [], "version": [], "convert": [models / "cnn", "--dry_run", "--converter_options_string", PLACE]}
for command, args in printing.items():
    for where in ("full device", "closed descriptor"):
        with open("/dev/full", "w") as full:
            p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", smelt, command, *map(str, args)] if where == "closed descriptor" else [smelt, command, *map(str, args)],
                               stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        check(f"{command} to a {where}", p.returncode == 1 and "error: DATA_LOSS: standard output cannot be written: " in p.stderr, (p.returncode, p.stderr))
check("--help to a full device", call("show", "--help", stdout=open("/dev/full", "w"))[0] == 1)
# A file that is opened while standard output is closed must not be printed into.
p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", smelt, "replay", str(models / "cnn"), "--log", str(log), "--record", str(work / "again.tfrecord")], stderr=subprocess.PIPE)
check("a closed descriptor is not another file's", p.returncode == 1 and call("replay", models / "cnn", "--log", work / "again.tfrecord")[0] == 0, p.stderr)
archive = shutil.make_archive(str(work / "cnn"), "gztar", models / "cnn")
temporary = work / "tmp"
temporary.mkdir()
for command, args in [("ops", []), ("show", [archive, "--all"]), ("replay", [archive, "--log", log, "--json"])]:
    read, write = os.pipe()
    os.close(read)
    code, out, err = call(command, *args, stdout=write, env={**os.environ, "TMPDIR": str(temporary)})
    os.close(write)
    check(f"{command} whose reader left", code == -signal.SIGPIPE and err == "" and not list(temporary.iterdir()), (code, err, list(temporary.iterdir())))

# Replay asks as often as it says, and compares every answer.
def rows(*args):
    code, out, err = call("replay", models / "counter", "--log", models / "counter.tfrecord", "--json", *args)
    return code, [json.loads(line) for line in out.splitlines()]


code, once = rows("--clients", 16)
check("one repetition, many clients: asked once", code == 0 and all(r["answers"] == 1 for r in once), once)
code, many = rows("--clients", 3, "--repeat", 4)
# The first "add" counts once as recorded, and three times beyond that.
first = next(r for r in many if r["signature"] == "add")
check("every concurrent answer is compared", code == 1 and first["answers"] == 4 and first["differing"] == 3 and not first["ok"] and first["message"], first)
code, out, err = call("replay", models / "counter", "--log", models / "counter.tfrecord", "--clients", 3, "--repeat", 4)
check("which the text says", code == 1 and "3 of 4 answers differ: output 'count'" in out, out)
code, out, err = call("replay", models / "cnn", "--log", log, "--clients", 3, "--repeat", 9)
check("requests are counted", code == 0 and "over 18 requests" in out and "3 clients, " in out, out)

# Its JSON is UTF-8, whatever bytes a message quotes.
write_records(work / "bytes.tfrecord", [r.replace(b"\n\x0f\n\r", b"\xff\x0f\n\r") for r in read_records(models / "half_plus_two_v1.tfrecord")])
p = subprocess.run([smelt, "replay", models / "half_plus_two_v1", "--log", work / "bytes.tfrecord", "--json"], capture_output=True)
messages = [json.loads(line.decode("utf-8"))["message"] for line in p.stdout.splitlines()]
check("bytes in a message", p.returncode == 1 and "Could not parse example input, value: '\\xff\x0f" in messages[1], messages)


# What takes over a second is shown on a terminal, and gone when it is done; elsewhere nothing of it is printed.
def on_terminal(*args):
    """Exit code, standard output, and what a terminal that is standard error got."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    p = subprocess.Popen([smelt, *map(str, args)], stdout=subprocess.PIPE, stderr=side, env={**os.environ, "TERM": "xterm"})
    os.close(side)
    shown = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # as a terminal ends
            break
        if not part:
            break
        shown += part
    out = p.stdout.read()
    return p.wait(), out.decode(), shown.decode().replace("\r\n", "\n")


def left(shown):
    """What is on the terminal's last line in the end."""
    line = shown.rpartition("\n")[2]
    return line.rpartition("\r")[2].replace("\x1b[K", "")


code, out, shown = on_terminal("replay", models / "cnn", "--log", log)
check("what is quick shows nothing", code == 0 and shown == "", shown)
# As many repetitions as take well over a second here and now.
repeat, took = 100, 0
while took < 1.7:
    repeat *= 2
    start = time.monotonic()
    code, out, shown = on_terminal("replay", models / "cnn", "--log", log, "--threads", 1, "--repeat", repeat)
    took = time.monotonic() - start
lines = re.findall(r"\r([^\r\x1b]+)\x1b\[K", shown)
check("replay shows where it is", code == 0 and lines and all(re.fullmatch(r"replay: request \d+, \d+ s", l) for l in lines), shown)
check("and takes it away", left(shown) == "" and "\x1b" not in out, (shown[-80:], out))
code, out, err = call("replay", models / "cnn", "--log", log, "--threads", 1, "--repeat", repeat)
check("no terminal, no progress", code == 0 and err == "", err)
code, out, shown = on_terminal("convert", models / "cnn", work / "verified", "--converter_options_string", PLACE, "--verify", repeat // 2)
check("verify shows how far it is", code == 0 and re.search(r"\rverify \d+ of %d, \d+ s\x1b\[K" % (repeat // 2), shown) and left(shown) == "" and re.search(r"\x1b\[Kverify +[\d.]+ ms\n", shown), shown[-300:])
finish()
