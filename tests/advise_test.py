#!/usr/bin/env python3
"""Batching options from recorded traffic: advise_test.py SMELT. Ends with 'N passed, N failed'."""
import re
import struct

from program import call, check, finish, models, read_records, work, write_records

PLACE = 'tpu_functions { signature_name: "serving_default" } disable_default_optimizations: true'


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def prediction(rows, second=None, rate=None, signature=b"serving_default", name=b"image"):
    """A PredictionLog of zeros [rows, 16, 16, 3], as TensorFlow Serving's logging.proto numbers the fields."""
    shape = b"".join(field(2, field(1, d)) for d in (rows, 16, 16, 3))
    tensor = field(1, 1) + field(2, shape) + field(4, bytes(rows * 16 * 16 * 3 * 4))
    request = field(1, field(3, signature)) + field(2, field(1, name) + field(2, tensor))
    metadata = (field(2, field(1, rate)) if rate else b"") + (field(4, second) if second else b"")
    return (field(1, metadata) if metadata else b"") + field(6, field(1, request))


def log(name, records):
    write_records(work / name, records)
    return work / name


def advise(path, *flags, options=PLACE, model=models / "cnn"):
    return call("convert", model, "--converter_options_string", options, "--advise_batching", path, *flags, limit=300)


def said(out):
    """The batch_options that are advised, and the row of the best choice: its words."""
    text = re.search(r"^advice: (batch_options \{.*\})$", out, re.M)
    row = re.search(r"^\* (.*)$", out, re.M)
    return (text[1] if text else ""), (row[1].split() if row else [])


# One row a second, and a batch of one row takes a millisecond: nothing is gained by waiting for others.
steady = log("steady", [prediction(1, 1000 + i) for i in range(40)])
code, out, err = advise(steady, "--batch_times", "1:1000,1024:100000")
text, row = said(out)
check("steady single rows", code == 0 and text == "batch_options { num_batch_threads: 1 max_batch_size: 1 batch_timeout_micros: 0 allowed_batch_sizes: 1 "
      "max_enqueued_batches: 100 }", out + err)
# Threads, timeout, waiting, latency, padding, rows per batch, batches per second, busy.
check("steady: numbers", row[:13] == ["1", "0", "ms", "0", "0", "1", "1", "0.0", "%", "1", "1", "0", "%"], row)
check("steady: sources", "40 requests with 40 rows in 40 s (times of the log, which are whole seconds" in out and "given by --batch_times: 1:1000,1024:100000" in out, out)

# Requests of 96 rows: any smaller batch needs several, which take longer; a larger one is padded.
bursts = log("bursts", [prediction(96, 1000 + i) for i in range(10)])
code, out, err = advise(bursts, "--batch_times", "1:1000,96:2000")
text, row = said(out)
check("many rows at once", code == 0 and "max_batch_size: 96 " in text and text.count("allowed_batch_sizes") == 1 and "allowed_batch_sizes: 96 " in text, out + err)
check("many rows: numbers", row[3:13] == ["0", "0", "2", "2", "0.0", "%", "96", "1", "0", "%"], row)
check("other sizes are shown", sum(line.startswith(" ") and " ms " in line for line in out.splitlines()) > 4, out)
# With a budget for it, smaller batches are no better: they load the core more.
code, out, err = advise(bursts, "--batch_times", "1:1000,96:2000", "--latency_budget_ms", 50)
check("within a budget", code == 0 and "allowed_batch_sizes: 96 " in said(out)[0] and "within 50 ms" in out, out + err)
code, out, err = advise(bursts, "--batch_times", "1:1000,96:2000", "--latency_budget_ms", 1.5)
check("a budget that nothing meets", code == 1 and "FAILED_PRECONDITION: no choice answers 99 % of the requests within 1.5 ms: the fastest needs 2 ms" in err, out + err)

# The same input gives the same words. Times that are computed for the TPU need nothing from the user.
code, first, err = advise(bursts)
_, again, _ = advise(bursts)
check("computed times", code == 0 and "computed for a v5e core" in first and first == again, first + err)
code, out, err = advise(bursts, "--tpu", "v6e")
check("another generation", code == 0 and "computed for a v6e core" in out and out != first, out + err)
code, out, err = advise(log("few", [prediction(2, 1000 + i) for i in range(3)]), "--batch_times", "measured")
check("measured times", code == 0 and "measured on this machine" in out, out + err)

# With a folder the model is converted with what is advised; the printed options give the same again.
code, out, err = call("convert", models / "cnn", work / "advised", "--converter_options_string", PLACE, "--advise_batching", bursts, "--verify", 3, limit=300)
check("converted as advised", code == 0 and "joined with others, padded or split" in out, out + err)
same = re.search(r"^advice: the same again: --converter_options_string '(.*)'$", out, re.M)
call("convert", models / "cnn", work / "again", "--converter_options_string", same[1] if same else "")
check("the same again", same and (work / "again/saved_model.pb").read_bytes() == (work / "advised/saved_model.pb").read_bytes(), out)
code, out, err = call("show", work / "advised", "--all")
check("the model batches", code == 0 and "BatchFunction" in out, out + err)
code, out, err = call("convert", models / "cnn", "--advise_batching", bursts, limit=300)
check("without options", code == 0 and "plan: placement: " in out and out.count("batch_options") == 2, out + err)

# Where times come from.
code, out, err = advise(models / "cnn.tfrecord")
check("no times", code == 1 and "INVALID_ARGUMENT: record 0: the request has no time (log_metadata.timestamp_secs)" in err and "--arrivals" in err, err)
code, out, err = advise(models / "cnn.tfrecord", "--arrivals", 10)
check("--arrivals", code == 0 and "--arrivals: 10 a second, independent of each other" in out, out + err)
call("replay", models / "cnn", "--log", models / "cnn.tfrecord", "--record", work / "timed")
code, out, err = advise(work / "timed")
check("recorded requests have times", code == 0 and "times of the log" in out, out + err)
call("replay", models / "cnn", "--log", steady, "--record", work / "kept")
check("times are kept", [b"\x20" + varint(1000 + i) in r for i, r in enumerate(read_records(work / "kept"))] == [True] * 40)
seconds = [1000, 1002, 1001, 1003]
code, out, err = advise(log("mixed", [prediction(1 + s % 2, s) for s in seconds]), "--batch_times", "1:100")
check("times that go backwards", code == 0 and "1 requests are logged behind later ones: sorted" in out, out + err)
_, ordered, _ = advise(log("ordered", [prediction(1 + s % 2, s) for s in sorted(seconds)]), "--batch_times", "1:100")
check("sorted as if in order", out.replace("note: 1 requests are logged behind later ones: sorted\n", "") == ordered, ordered)
code, out, err = advise(log("sample", [prediction(1, 1000 + i, 0.4) for i in range(10)]), "--batch_times", "1:100")
check("a sample stands for all", code == 0 and "25 requests with 25 rows in 10 s" in out and "the log is a sample" in out, out + err)

# What is refused.
for name, path, flags, text in [
    ("empty log", log("empty", []), (), "holds no records"),
    ("year 10000", log("late", [prediction(1, 253402300800)]), (), "record 0: log_metadata.timestamp_secs 253402300800 is no time"),
    ("sampling rate", log("rate", [prediction(1, 1000, 7.)]), (), "sampling_config.sampling_rate 7 is no share"),
    ("unknown signature", log("signature", [prediction(1, 1000, signature=b"other")]), (), "NOT_FOUND: record 0: the model has no signature 'other'"),
    ("missing input", log("input", [prediction(1, 1000, name=b"picture")]), (), "lacks input 'image'"),
    ("rate 0", steady, ("--arrivals", 0), "INVALID_ARGUMENT: --arrivals 0 is no rate"),
    ("negative rate", steady, ("--arrivals", -5), "--arrivals -5 is no rate"),
    ("rate that is no number", steady, ("--arrivals", "nan"), "is no rate"),
    ("rate above any clock", steady, ("--arrivals", 1e9), "--arrivals 1e+09 is no rate"),
    ("too much traffic", steady, ("--batch_times", "1:1000000,1024:900000000", "--arrivals", 100), "FAILED_PRECONDITION: no choice keeps up with "),
    ("times that are none", steady, ("--batch_times", "8:100,4:50"), 'rows that increase: "4:50"'),
    ("times that are words", steady, ("--batch_times", "fast"), 'neither tpu nor measured'),
    ("no budget", steady, ("--latency_budget_ms", 0), "--latency_budget_ms 0 is no time"),
]:
    code, out, err = advise(path, *flags)
    check(f"refused: {name}", code == 1 and text in err, out + err)
code, out, err = advise(steady, options=PLACE + " batch_options { num_batch_threads: 1 max_batch_size: 1 }")
check("refused: batch_options", code == 1 and "INVALID_ARGUMENT: --advise_batching chooses batch_options: leave them out" in err, err)
code, out, err = call("convert", models / "cnn", "--arrivals", 5)
check("--arrivals alone", code == 2 and "--advise_batching" in err, err)

# A model that cannot be batched fails as its conversion does: what the plan tried is the error.
code, out, err = call("convert", models / "language_model", work / "refused", "--advise_batching", models / "language_model.tfrecord", "--arrivals", 5, limit=300)
why = re.search("^plan: batching: none: (.*)$", out, re.M)
check("no rows to batch", code == 1 and why and f"error: INVALID_ARGUMENT: {why[1]}" in err and not (work / "refused").exists(), out + err)

finish()
