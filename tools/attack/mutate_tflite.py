#!/usr/bin/env python3
"""Mutates .tflite files and runs what comes of it: mutate_tflite.py SMELT FILE... [--count N] [--seconds S] [--seed N] [--keep DIR].

A file is read and written by flatc, as JSON: numbers (indices of tensors, shapes, offsets, options) become others of the file or extreme ones, lists lose, double and
swap what is in them, and parts of a kind take each other's place, so that what mutants say is well formed and wrong. Each is shown and run on made-up inputs. It fails,
and the mutant is kept, when the program dies of a signal, says that it is itself to blame (INTERNAL), is still working after the time limit, or takes more memory than
its limit; one with a loop may run on. Exits 1 then."""
import argparse
import collections
import copy
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMA = ROOT / "smelt/wire/tflite/tflite.fbs"
LIMIT_SECONDS = 10  # of work
MEMORY_LIMIT = 1 << 30
MEMORY_SLACK = 768 << 20
EXTREMES = (0, 1, 2, 3, 5, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1)
MOST_BYTES = 1 << 16  # of JSON's lists of numbers: constants are changed at few places


def parts(value, path=()):
    """(list or object that holds it, its key, the name of the field) of everything below."""
    keys = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in keys:
        field = key if isinstance(key, str) else path
        yield value, key, field
        if isinstance(part, list) and part and isinstance(part[0], (int, float)) and field == "data":
            continue  # bytes of constants
        if isinstance(part, (dict, list)):
            yield from parts(part, field)


def mutate(model, rng):
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        places = list(parts(model))
        # Fields are picked by name first: shapes are many, quantization is rare.
        named = collections.defaultdict(list)
        for place in places:
            named[place[2]].append(place)
        alike = named[rng.choice(sorted(named, key=str))]
        holder, key, _ = rng.choice(alike)
        value = holder[key]
        what = rng.randrange(6)
        if what == 0:
            del holder[key]
        elif what <= 2 and len(alike) > 1:
            other, at, _ = rng.choice(alike)
            holder[key] = copy.deepcopy(other[at])
        elif isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int):
            holder[key] = rng.choice((rng.choice(EXTREMES), -rng.choice(EXTREMES), value + 1, value - 1, -value, value * 2))
        elif isinstance(value, float):
            holder[key] = rng.choice((0.0, -1.0, 1e-38, 3e38, -value, value * 1e6))
        elif isinstance(value, list) and value:
            at = rng.randrange(len(value))
            deed = rng.randrange(5)
            if deed == 0:
                del value[at]
            elif deed == 1:
                value[at:at] = [copy.deepcopy(value[at])] * rng.choice((1, 1, 2, 9))
            elif deed == 2:
                rng.shuffle(value)
            elif deed == 3:
                value.clear()
            elif isinstance(value[at], int):
                value[at] = rng.randrange(256) if key == "data" else rng.choice(EXTREMES)
        elif isinstance(value, str) and value.isupper():
            other, at, _ = rng.choice(alike)
            holder[key] = other[at]


class Attack:
    def __init__(self, args):
        self.smelt = os.path.abspath(args.smelt)
        self.rng = random.Random(args.seed)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_mutants_"))
        self.keep = pathlib.Path(args.keep)
        self.counts, self.wrong = collections.Counter(), 0

    def fail(self, file, why, argv, err):
        self.wrong += 1
        self.keep.mkdir(parents=True, exist_ok=True)
        kept = self.keep / f"{self.wrong}.tflite"
        shutil.copy(file, kept)
        print(f"WRONG {why}: {' '.join(argv)}\n  kept in {kept}\n  {err[-300:]}", flush=True)

    def run(self, file, loops, *argv):
        argv = [str(a) for a in argv]

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))

        with tempfile.TemporaryFile() as errors:
            p = subprocess.Popen([self.smelt, *argv], stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limits, cwd=self.work)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            err = errors.read().decode(errors="replace")
        if p.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            if not loops:
                self.fail(file, f"still running after {usage.ru_utime + usage.ru_stime:.0f} s of work", argv, err)
        elif p.returncode < 0 or "runtime error:" in err or "AddressSanitizer" in err:
            self.fail(file, f"code {p.returncode}", argv, err)
        # TensorFlow's own code for a remainder of integers by 0 is no fault of the program.
        elif "error: INTERNAL" in err and "only integer div and mod should have errors" not in err:
            self.fail(file, "INTERNAL", argv, err)
        if usage.ru_maxrss * 1024 > MEMORY_LIMIT + MEMORY_SLACK:
            self.fail(file, f"{usage.ru_maxrss >> 10} MiB", argv, err)
        code = next((word.strip(":") for line in err.splitlines() if "error: " in line for word in line.split("error: ")[1].split()[:1]), "other")
        self.counts[argv[0], "ok" if p.returncode == 0 else code] += 1

    def flatc(self, *args):
        return subprocess.run(["flatc", "-o", self.work, *args], capture_output=True).returncode == 0

    def read(self, path):
        """The file's JSON; None where flatc does not read it, or it is large."""
        name = self.work / "source.tflite"
        shutil.copy(path, name)
        if path.stat().st_size > MOST_BYTES or not self.flatc("--json", "--strict-json", "--raw-binary", "--defaults-json", SCHEMA, "--", name):
            return None
        return json.loads(name.with_suffix(".json").read_text())

    def one(self, model):
        mutant = copy.deepcopy(model)
        mutate(mutant, self.rng)
        text, file = self.work / "mutant.json", self.work / "mutant.tflite"
        text.write_text(json.dumps(mutant))
        file.unlink(missing_ok=True)
        if not self.flatc("--binary", SCHEMA, text) or not file.exists():
            self.counts["flatc", "refused"] += 1
            return
        loops = b"WHILE" in text.read_bytes()
        self.run(file, loops, "show", file)
        keys = [s["signature_key"] for s in mutant.get("signature_defs", []) if isinstance(s, dict) and s.get("signature_key")]
        signature = ["--signature_def", self.rng.choice(keys)] if keys else []
        self.run(file, loops, "bench", file, *signature, "--whole", "--seconds", "0.001", "--threads", "1", "--memory_limit", MEMORY_LIMIT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smelt")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="mutants", help="folder for mutants that went wrong")
    args = parser.parse_args()
    attack = Attack(args)
    end, done = time.monotonic() + args.seconds, 0
    models = {}
    try:
        while done < args.count and time.monotonic() < end:
            path = attack.rng.choice(args.files)
            if path not in models:
                models[path] = attack.read(path)
            if models[path] is not None:
                attack.one(models[path])
            done += 1
    finally:
        shutil.rmtree(attack.work, ignore_errors=True)
    for key, n in sorted(attack.counts.items()):
        print(f"{n:6} {' '.join(key)}")
    print(f"{done} mutants, {attack.wrong} wrong")
    sys.exit(bool(attack.wrong))


main()
