#!/usr/bin/env python3
"""Two builds of smelt over the benchmark models, in turns: versions.py OLD NEW SUITE [NAME...] [--batches 1,8] [--threads 1,2] [--rounds 5]

SUITE is as for bench.py. For each model, batch and number of threads: the median of a request and the first answer of a fresh process
(both the best of the rounds), and whether both give the same answers. For each model: seconds from exec to exit of one request (load and
first answer), seconds of `smelt convert` of its serving_default and with --auto_place, and whether both write the same bytes. Ratios are
NEW / OLD. Needs tensorflow-serving-api, to write the requests; run it on a machine that does nothing else."""
import argparse
import filecmp
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from bench import write_log
from measure import best, pin

SIGNATURE = 'tpu_functions { signature_name: "serving_default" }'


def replay(smelt, model, log, threads, repeat, *flags):
    p = subprocess.run(pin(threads) + [smelt, "replay", model, "--log", str(log), "--threads", str(threads), "--repeat", str(repeat), *flags], capture_output=True, text=True)
    m = re.search(r"first ([\d.]+) ms, median ([\d.]+) ms", p.stdout)
    return (float(m[1]), float(m[2])) if m else (None, None)


def answers(smelt, model, log):
    """Distances to the recorded answers, as printed: the same numbers, the same lines."""
    p = subprocess.run([smelt, "replay", model, "--log", str(log), "--threads", "1", "--json"], capture_output=True, text=True)
    lines = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]
    return [(r["ok"], r["code"], r["message"], r["outputs"]) for r in lines]


def seconds(command):
    begin = time.perf_counter()
    p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begin) if p.returncode == 0 else None


def same_files(a, b):
    files = lambda d: sorted(p.relative_to(d) for p in d.rglob("*") if p.is_file())
    return files(a) == files(b) and all(filecmp.cmp(a / f, b / f, shallow=False) for f in files(a))


def in_turns(round, measure, builds):
    """What `measure` says of each; every second round asks the second one first."""
    taken = {b: measure(b) for b in (builds if round % 2 == 0 else builds[::-1])}
    return [taken[b] for b in builds]


def ratio(pair):
    return pair[1] / pair[0] if None not in pair and pair[0] else float("nan")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("old"), ap.add_argument("new"), ap.add_argument("suite", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--batches", default="1,8"), ap.add_argument("--threads", default="1,2"), ap.add_argument("--rounds", type=int, default=5)
    a = ap.parse_args()
    builds = [a.old, a.new]
    names = a.names or sorted(p.name for p in a.suite.iterdir() if (p / "saved_model").is_dir())
    medians, firsts, processes, differing = [], [], [], []
    print(f"{'model':20} {'batch':>5} {'threads':>7} {'old ms':>9} {'new/old':>8} {'first ms':>9} {'new/old':>8} same answers")
    with tempfile.TemporaryDirectory(prefix="smelt_versions_") as folder:
        work = pathlib.Path(folder)
        for name in names:
            model, logs = str(a.suite / name / "saved_model"), {}
            for batch in map(int, a.batches.split(",")):
                data = a.suite / name / f"inputs_{batch}.npz"
                if not data.exists():
                    continue
                logs[batch] = log = work / f"{name}_{batch}.tfrecord"
                write_log(data, log, a.suite / name / f"outputs_{batch}.npz")
                same = answers(a.old, model, log) == answers(a.new, model, log)
                differing += [] if same else [f"{name} batch {batch}"]
                for threads in map(int, a.threads.split(",")):
                    guess = replay(a.old, model, log, threads, 5)[1] or 1
                    repeat = max(5, min(2000, int(400 / max(guess, 0.01))))
                    rounds = [in_turns(r, lambda b: replay(b, model, log, threads, repeat), builds) for r in range(a.rounds)]
                    first = [best([r[i][0] for r in rounds]) for i in (0, 1)]
                    median = [best([r[i][1] for r in rounds]) for i in (0, 1)]
                    medians.append(ratio(median)), firsts.append(ratio(first))
                    print(f"{name:20} {batch:5} {threads:7} {median[0]:9.3f} {ratio(median):8.3f} {first[0]:9.3f} {ratio(first):8.3f} {'yes' if same else 'NO'}", flush=True)
            process = [best(column) for column in zip(*(in_turns(r, lambda b: seconds([b, "replay", model, "--log", str(logs[min(logs)])]), builds) for r in range(a.rounds)))]
            processes.append(ratio(process))
            print(f"{name:20} process {process[0]:.3f} s, new/old {ratio(process):.3f}", end="")
            for what, flags in (("convert", ["--converter_options_string", SIGNATURE]), ("auto_place", ["--auto_place"])):
                times, outs = [], [work / f"{name}_{what}_{i}" for i in (0, 1)]
                for _ in range(2):
                    times.append([seconds([b, "convert", "--input_model_dir", model, "--output_model_dir", str(out), "--overwrite", *flags])
                                  for b, out in zip(builds, outs)])
                took = [best([t[i] for t in times]) for i in (0, 1)]
                if None in took:
                    print(f"; {what} {'refused by both' if took == [None, None] else 'REFUSED BY ONE'}", end="")
                    differing += [] if took == [None, None] else [f"{name} {what}"]
                    continue
                same = same_files(*outs)
                differing += [] if same else [f"{name} {what}"]
                print(f"; {what} {took[0]:.3f} s, new/old {ratio(took):.3f}, {'same bytes' if same else 'OTHER BYTES'}", end="")
            print(flush=True)
    for what, ratios in (("a request", medians), ("the first answer", firsts), ("process", processes)):
        finite = [m for m in ratios if math.isfinite(m)]
        print(f"{what}: geometric mean of new/old {math.exp(sum(map(math.log, finite)) / len(finite)):.3f} over {len(finite)}, worst {max(finite):.3f}")
    print(f"{'all the same' if not differing else 'not the same: ' + ', '.join(differing)}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
