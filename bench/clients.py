#!/usr/bin/env python3
"""Answers a second of many clients that share one session: clients.py SMELT SUITE [--names a,b] [--clients 1,2,4,8,16,32] [--threads N] [--json FILE]

SUITE is as bench/bench.py's; each number of clients is a process of `smelt bench --clients`. --threads: of one request."""
import argparse
import json
import pathlib
import subprocess


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("suite"), ap.add_argument("--names"), ap.add_argument("--clients", default="1,2,4,8,16,32")
    ap.add_argument("--batch", default="1"), ap.add_argument("--threads", default="1"), ap.add_argument("--seconds", default="2"), ap.add_argument("--json")
    a = ap.parse_args()
    names = a.names.split(",") if a.names else sorted(p.parent.name for p in pathlib.Path(a.suite).glob("*/saved_model"))
    rows = []
    print(f"{'model':20} {'clients':>7} {'answers/s':>12} {'p50 ms':>10} {'p99 ms':>10} {'by one':>7}")
    for name in names:
        alone = None
        for clients in a.clients.split(","):
            p = subprocess.run([a.smelt, "bench", f"{a.suite}/{name}/saved_model", "--batch", a.batch, "--threads", a.threads, "--seconds", a.seconds, "--clients", clients, "--json"],
                               capture_output=True, text=True)
            if p.returncode:
                print(f"{name:20} {clients:>7} cannot: {p.stderr[-150:].strip()}", flush=True)
                break
            said = json.loads(p.stdout)["with_clients"]
            alone = alone or said["answers_per_second"]
            rows.append({"model": name, **said})
            print(f"{name:20} {clients:>7} {said['answers_per_second']:12.1f} {said['median_ms']:10.4f} {said['p99_ms']:10.4f} {said['answers_per_second'] / alone:7.2f}", flush=True)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
