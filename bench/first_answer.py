#!/usr/bin/env python3
"""From exec to exit of a fresh process that answers one request, and its peak memory: first_answer.py SMELT SUITE [--other BINARY] [--cache] [--names a,b] [--logs FOLDER]

Each model's request is LOGS/NAME_1.tfrecord (left out: SUITE/_logs), replayed once. With --other, a smelt beside it, the two take turns: run by run the ratio
other / smelt says which starts faster, and its median is shown. Files are in the page cache: the first round does not count.
With --cache smelt also takes its turn with a cache folder (docs/cache.md), which the first round fills."""
import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time


def fresh(command):
    """(milliseconds, peak MB) of a process; None where it fails. Nothing runs between fork and exec."""
    null = os.open(os.devnull, os.O_WRONLY)
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    _, status, usage = os.wait4(pid, 0)
    took = (time.perf_counter() - start) * 1e3
    os.close(null)
    return (took, usage.ru_maxrss / 1024) if status == 0 else None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("suite"), ap.add_argument("--other"), ap.add_argument("--names"), ap.add_argument("--logs")
    ap.add_argument("--rounds", type=int, default=11), ap.add_argument("--json"), ap.add_argument("--threads", default="0"), ap.add_argument("--cache", action="store_true")
    a = ap.parse_args()
    logs = pathlib.Path(a.logs or pathlib.Path(a.suite) / "_logs")
    folder = tempfile.TemporaryDirectory(prefix="smelt_cache_")
    ways = [("", os.path.abspath(a.smelt), [])]
    if a.other:
        ways.append(("other", os.path.abspath(a.other), []))
    if a.cache:
        ways.append(("cached", os.path.abspath(a.smelt), ["--cache", folder.name]))
    names = a.names.split(",") if a.names else sorted(p.parent.name for p in pathlib.Path(a.suite).glob("*/saved_model"))
    print(f"{'model':20} {'smelt ms':>9} {'MB':>7}" + "".join(f" {way + ' ms':>9} {'MB':>7} {way + '/smelt':>12}" for way, _, _ in ways[1:]))
    rows = []
    for name in names:
        # Answers that differ are no failure to answer: bounds are wide.
        tail = ["replay", f"{a.suite}/{name}/saved_model", "--log", str(logs / f"{name}_1.tfrecord"), "--threads", a.threads, "--rtol", "1", "--atol", "1"]
        taken = [[] for _ in ways]
        for _ in range(a.rounds + 1):
            for times, (_, binary, flags) in zip(taken, ways):
                times.append(fresh([binary, *tail, *flags]))
        if any(t is None for times in taken for t in times):
            print(f"{name:20} cannot")
            continue
        kept = [times[1:] for times in taken]
        medians = [tuple(statistics.median(column) for column in zip(*times)) for times in kept]
        row = {"model": name, "ms": medians[0][0], "mb": medians[0][1]}
        text = f"{name:20} {row['ms']:9.2f} {row['mb']:7.1f}"
        for (way, _, _), (ms, mb), times in list(zip(ways, medians, kept))[1:]:
            ratio = statistics.median(y[0] / x[0] for x, y in zip(kept[0], times))
            row |= {f"{way}_ms": ms, f"{way}_mb": mb, "ratio" if way == "other" else f"{way}_ratio": ratio}
            text += f" {ms:9.2f} {mb:7.1f} {ratio:12.2f}"
        rows.append(row)
        print(text, flush=True)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
