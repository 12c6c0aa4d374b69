#!/usr/bin/env python3
"""What a conversion is compared on when nobody gives requests, and what is planned then: plan_test.py SMELT. Ends with 'N passed, N failed'.

The models and the recorded answers were written by TensorFlow (tools/make_fixtures.py)."""
import json
import re
import shutil

from program import call, check, finish, models, read_records, work, write_records

OFF = "disable_default_optimizations: true"
FLOAT = ("--auto_place", "--converter_options_string", OFF)


def converted(model, *flags):
    """(exit code, what is said of each signature's output, notes) of a conversion that is compared."""
    out = work / "converted"
    shutil.rmtree(out, ignore_errors=True)
    code, text, err = call("convert", model, out, *FLOAT, *flags)
    rows = re.findall(r"^verify: signature '(\w+)', output '(\w+)': (\d+) requests, (.*)$", text, re.M)
    return code, {(s, o): (int(n), said) for s, o, n, said in rows}, [line for line in text.splitlines() if line.startswith("verify: ")] or err


def planned(model, *flags):
    """(exit code, the plan's lines, output)."""
    out = work / "planned"
    shutil.rmtree(out, ignore_errors=True)
    code, text, err = call("convert", model, out, *flags)
    return code, {k: v for k, v in re.findall(r"^plan: (\w[\w ]*): (.*)$", text, re.M)}, text + err


# Each kind of input gets values that the model takes: ids below their tables' rows, beside them kinds and masks of the same lengths, Examples with the
# features that are parsed, JPEG images, other files in text, numbers as text, keys of a table without a default, parts of sparse tensors, any rank.
code, rows, notes = converted(models / "wishes", "--verify", "12", "--report_json", work / "wishes.json")
SIGNATURES = ("ids", "examples", "image", "files", "text", "color", "sparse", "any_rank", "luck")
for signature in SIGNATURES:
    requests, said = rows.get((signature, "y"), (0, ""))
    check(f"requests for {signature}", code == 0 and requests == 12 and said.endswith(": ok"), notes)
check("no request is refused", not any("fails" in n for n in notes), notes)
# The model itself draws other numbers each time: their values say nothing.
check("a random output", code == 0 and rows.get(("luck", "drawn"), (0, ""))[1].endswith(": ok, random: only dtype and shape are compared"), notes)
check("a random output in the report", {o["output"] for o in json.loads((work / "wishes.json").read_text())["verification"]["outputs"] if o["random"]} == {"drawn"})
# The same requests are in warm-up files.
code, out, err = call("convert", models / "wishes", work / "warm", *FLOAT, "--warmup_requests")
warm = work / "warm/assets.extra/tf_serving_warmup_requests"
check("warm-up requests", code == 0 and "no warm-up request" not in out and len(read_records(warm)) == len(SIGNATURES)
      and call("replay", work / "warm", "--log", warm)[1].count(": answers, where the recorded request had no response") == len(SIGNATURES), out + err)
code, plan, text = planned(models / "wishes")
check("a plan that is verified", code == 0 and re.match(r"(bfloat16|float32): answers differ by", plan["precision"])
      and "output 'drawn' of signature 'luck' is random, and not compared" in plan["precision"], text)
code, out, err = call("replay", work / "planned", "--log", models / "wishes.tfrecord", "--range_tol", "0.02", "--rtol", "0", "--atol", "0")
check("and holds on other requests", code == 0, out + err)

# What nobody can make up is said in the model's words, and nothing is promised: float32 and no batches.
code, rows, notes = converted(models / "bytes_only", "--verify", "2")
check("nothing to compare", code == 1 and not rows and "signature 'serving_default': the original fails: INVALID_ARGUMENT: " in notes[0] and "nothing was compared" in notes[1], notes)
code, plan, text = planned(models / "bytes_only")
check("a plan without a promise", code == 0 and plan["precision"].startswith("float32, not verified: signature 'serving_default': the original fails: INVALID_ARGUMENT: ")
      and plan["batching"].startswith("none: ") and "bfloat16_optimization: DISABLED" in plan["the same again"] and "batch_options" not in plan["the same again"], text)

# A model that computes in bfloat16 itself is not made bfloat16, and converted all the same.
code, plan, text = planned(models / "mixed")
check("a model in bfloat16", code == 0 and plan["precision"].startswith("float32: answers differ by") and "bfloat16 is refused: node '" in plan["precision"], text)
code, out, err = call("replay", work / "planned", "--log", models / "mixed.tfrecord")
check("and it answers as before", code == 0, out + err)

# With recorded requests it is compared.
log = models / "bytes_only.tfrecord"
code, rows, notes = converted(models / "bytes_only", "--verify_log", log)
check("recorded requests", code == 0 and rows[("serving_default", "y")][0] == 2 and rows[("serving_default", "y")][1].endswith(": ok"), notes)
code, plan, text = planned(models / "bytes_only", "--verify_log", log)
check("a plan by recorded requests", code == 0 and "answers differ by" in plan["precision"], text)

# Those that the model brings to warm up with come first, and made-up ones up to the number that is asked for.
shutil.copytree(models / "bytes_only", work / "brings")
(work / "brings/assets.extra").mkdir()
write_records(work / "brings/assets.extra/tf_serving_warmup_requests", read_records(log))
code, rows, notes = converted(work / "brings", "--verify", "2")
check("the model's own requests", code == 0 and rows[("serving_default", "y")][0] == 2, notes)
code, rows, notes = converted(work / "brings", "--verify", "3")
check("more than the model's own requests", code == 0 and rows[("serving_default", "y")][0] == 2 and "the original fails" in notes[0], notes)
code, plan, text = planned(work / "brings")
check("a plan by the model's own requests", code == 0 and "answers differ by" in plan["precision"], text)
(work / "brings/assets.extra/tf_serving_warmup_requests").write_bytes(b"no records")
code, rows, notes = converted(work / "brings", "--verify", "2")
check("a damaged file of requests", code == 1 and "tf_serving_warmup_requests: DATA_LOSS" in notes[0], notes)

finish()
