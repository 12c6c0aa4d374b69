#!/usr/bin/env python3
"""What `smelt convert IN OUT` plans for a folder of models, and whether it holds: plan_corpus.py SMELT MODELS [NAME...] [--logs LOGS] [--with_logs]

MODELS holds SavedModel folders NAME, or NAME/saved_model. LOGS holds NAME.tfrecord, PredictionLogs of requests with the answers of TensorFlow, and maybe
NAME.json, whose cases name outputs that are "random" (only dtype and shape count). What was planned answers these requests, which the planner has not seen
(--with_logs: it gets them by --verify_log). A model is

  within     what was planned is verified: by the log within 2% of the range, without one by the planner's own requests
  says why   the plan says that it was not verified, and why (float32 and no batching then), or the converter that nothing can be planned: the model itself
             does not run, or nothing of it is worth an accelerator
  wrong      the plan holds no promise of the above, or there is none

A line for each model, and a last one with the sums. Fails when a model is wrong."""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

RANGE = 0.02


def call(*args):
    try:
        p = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=1200)
        return p.returncode, p.stdout + p.stderr
    except subprocess.TimeoutExpired:
        return -1, "no answer in 20 minutes"


def one_line(text, most=300):
    return " ".join(text.split())[:most]


def random_outputs(facts):
    cases = json.loads(facts.read_text())["cases"] if facts.exists() else []
    return sorted({o for c in cases for o in c["random"]})


def replayed(smelt, path, log):
    """(the worst difference of the range, what else is wrong, requests)."""
    shapes = random_outputs(log.with_suffix(".json"))
    code, text = call(smelt, "replay", path, "--log", log, "--rtol", "0", "--atol", "1e-30", "--range_tol", RANGE, "--json",
                      *(["--shapes_only", *shapes] if shapes else []))
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    worst = max([o["max_range"] or 0 for r in rows for o in r["outputs"].values()], default=0)
    bad = [r["message"] for r in rows if not r["ok"]]
    if code not in (0, 1):
        bad.append(text)
    return worst, one_line(bad[0]) if bad else "", len(rows)


def judge(smelt, path, log, out, with_logs):
    """(verdict, what is said)."""
    given = ["--verify_log", log] if with_logs and log.exists() else []
    shapes = random_outputs(log.with_suffix(".json")) if given else []
    code, text = call(smelt, "convert", path, out, *given, *(["--shapes_only", *shapes] if shapes else []))
    plan = dict(re.findall(r"^plan: (placement|batching|precision): (.*)$", text, re.M))
    if code == 1 and not plan and ("--auto_place finds nothing to place" in text or call(smelt, "replay", path, "--log", log)[0] != 0):
        return "says why", one_line(text)
    if code != 0 or len(plan) != 3:
        return "wrong", f"exit {code}: " + one_line(text[-1000:], 1000)
    options = re.search(r"^plan: the same again: (.*)$", text, re.M)[1]
    said = "{}, {}, {}".format("part" if "--auto_place" in options else "whole", "batches" if "batch_options" in options else "no batches",
                               plan["precision"].split(",")[0].split(":")[0])
    unverified = "not verified" in plan["precision"]
    why = plan["precision"] if unverified else ""
    if unverified and ("batch_options" in options or "bfloat16_optimization: ENABLED" in options):
        return "wrong", said + "; " + why
    if log.exists():
        worst, bad, requests = replayed(smelt, out, log)
        if requests or bad:
            said += f"; {worst:.2g} of the range over {requests} recorded requests"
        if bad:
            original = replayed(smelt, path, log)[1]
            return "wrong", f"{said}: {bad}" + ("" if not original else f"; the model itself: {original}")
    if unverified:
        return "says why", said + "; " + why
    return "within", said + "; " + plan["precision"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--logs", type=pathlib.Path, default=pathlib.Path("/nowhere")), ap.add_argument("--with_logs", action="store_true")
    a = ap.parse_args()
    smelt = os.path.abspath(a.smelt)
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_plans_"))
    counts = collections.Counter()
    for name in a.names or sorted(p.name for p in a.models.iterdir() if p.is_dir()):
        path = a.models / name
        path = path / "saved_model" if (path / "saved_model").is_dir() else path
        start = time.time()
        verdict, said = judge(smelt, path, a.logs / f"{name}.tfrecord", work / name, a.with_logs)
        counts[verdict] += 1
        print(f"{name:26} {verdict:9} {time.time() - start:5.1f} s  {said}", flush=True)
        shutil.rmtree(work / name, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
    print(f"{counts['within']} within 2 %, {counts['says why']} say why not, {counts['wrong']} wrong")
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
