#!/usr/bin/env python3
"""Mutates models and runs what comes of it: mutate_models.py SMELT MODEL... [--count N] [--seconds S] [--seed N] [--keep DIR].

A model is a SavedModel's folder. Its saved_model.pb is read as protobuf's wire format, without its schema: fields are dropped,
doubled, moved and swapped between messages, numbers become extreme ones, names become other names of the model or of an op
(which makes graphs of wrong types, cycles, recursion and calls of what is no function), and bytes are flipped or cut. Each
mutant is shown, run on made-up inputs through `convert --verify`, and converted. It fails, and the mutant is kept, when the
program dies of a signal, is still running after the time limit, takes more memory than its limit, or writes outside of its
output folder. Exits 1 then."""
import argparse
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_SECONDS = 20  # of work; a mutant that only waits is given more
WAIT_SECONDS = 300
MEMORY_LIMIT = 1 << 30
MEMORY_SLACK = 768 << 20  # the program, mapped weights, and what the libraries take
EXTREMES = (0, 1, 2, 3, 7, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**33, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def varint(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if n == 0:
            return bytes(out)


def take_varint(data, at):
    n = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError
        byte = data[at]
        n |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return n & 2**64 - 1, at


def parse(data, depth=0):
    """[[number, kind, value]], where the value of kind 2 is bytes or, if those parse, such a list. ValueError for other bytes."""
    fields, at = [], 0
    while at < len(data):
        tag, at = take_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0 or number > 10000:
            raise ValueError
        if kind == 0:
            value, at = take_varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError
        elif kind == 2:
            size, at = take_varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError
            if size > 1 and depth < 12 and not value.isascii() or size > 1 and depth < 12 and value[0] < 32:
                try:
                    value = parse(value, depth + 1)
                except ValueError:
                    pass
        else:
            raise ValueError
        fields.append([number, kind, value])
    return fields


def write(fields):
    out = bytearray()
    for number, kind, value in fields:
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(value)
        elif kind == 2:
            body = write(value) if isinstance(value, list) else value
            out += varint(len(body)) + body
        else:
            out += value
    return bytes(out)


def messages(fields):
    yield fields
    for _, _, value in fields:
        if isinstance(value, list):
            yield from messages(value)


def mutate(tree, names, rng):
    """Changes the message at one to three places."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        every = [m for m in messages(tree) if m]
        if not every:
            return  # everything is gone
        # Deep messages are many and alike: each depth gets its turn.
        message = every[int(len(every) * rng.random() ** rng.choice((1, 3)))]
        field = rng.choice(message)
        number, kind, value = field
        what = rng.randrange(8)
        if what == 0:
            message.remove(field)
        elif what == 1:
            message.extend([field] * rng.choice((1, 1, 2, 50)))
        elif what == 2:
            rng.shuffle(message)
        elif what == 3:
            other = rng.choice(rng.choice(every))
            field[1], field[2] = (other[1], other[2]) if not contains(other[2], message) else (0, rng.choice(EXTREMES))
        elif what == 4:
            field[0] = rng.randrange(1, 30)
        elif kind == 0:
            field[2] = rng.choice(EXTREMES)
        elif kind in (1, 5):
            field[2] = rng.randbytes(len(value))
        elif isinstance(value, bytes):
            field[2] = rng.choice((rng.choice(names), value[: rng.randrange(len(value) + 1)], value * rng.choice((2, 100)), rng.randbytes(rng.randrange(20))))
        else:
            other = rng.choice(every)
            field[2] = other if rng.random() < 0.5 and not contains(other, message) else []


def contains(value, message):
    return isinstance(value, list) and any(m is message for m in messages(value))


def texts(fields):
    for message in messages(fields):
        for _, kind, value in message:
            if kind == 2 and isinstance(value, bytes) and 0 < len(value) < 100:
                yield value


def damage(data, rng):
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 32))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


class Attack:
    def __init__(self, args):
        self.smelt = os.path.abspath(args.smelt)
        self.rng = random.Random(args.seed)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_mutants_"))
        self.keep = pathlib.Path(args.keep)
        self.counts, self.wrong = {}, 0

    def fail(self, model, why, argv, err):
        self.wrong += 1
        self.keep.mkdir(parents=True, exist_ok=True)
        kept = self.keep / f"{self.wrong}"
        shutil.copytree(model, kept, dirs_exist_ok=True)
        print(f"WRONG {why}: {' '.join(argv)}\n  kept in {kept}\n  {err[-300:]}", flush=True)

    def run(self, model, *argv):
        argv = [str(a) for a in argv]

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))

        with tempfile.TemporaryFile() as errors:
            p = subprocess.Popen([self.smelt, *argv], stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limits, cwd=self.work)
            stuck = threading.Timer(WAIT_SECONDS, p.kill)
            stuck.start()
            # Its own usage: that of all children only grows.
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            stuck.cancel()
            errors.seek(0)
            err = errors.read().decode(errors="replace")
        if p.returncode == -signal.SIGXCPU or p.returncode == -signal.SIGKILL:
            self.fail(model, f"still running after {usage.ru_utime + usage.ru_stime:.0f} s of work", argv, err)
        elif p.returncode < 0:
            self.fail(model, f"signal {-p.returncode}", argv, err)
        if usage.ru_maxrss * 1024 > MEMORY_LIMIT + MEMORY_SLACK:
            self.fail(model, f"{usage.ru_maxrss >> 10} MiB", argv, err)
        code = next((w for w in ("INVALID_ARGUMENT", "NOT_FOUND", "DATA_LOSS", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "PERMISSION_DENIED", "INTERNAL") if f"error: {w}" in err), "other")
        key = (argv[0], "ok" if p.returncode == 0 else code)
        self.counts[key] = self.counts.get(key, 0) + 1

    def one(self, source, tree, names, original):
        mutant = self.work / "mutant"
        shutil.rmtree(mutant, ignore_errors=True)
        mutant.mkdir()
        for entry in source.iterdir():
            if entry.name != "saved_model.pb":
                (mutant / entry.name).symlink_to(entry.resolve())
        if self.rng.random() < 0.2:
            data = damage(original, self.rng)
        else:
            copy = parse(original)
            mutate(copy, names, self.rng)
            data = write(copy)
        (mutant / "saved_model.pb").write_bytes(data)
        limits = ("--memory_limit", MEMORY_LIMIT, "--allow_read", source)
        before = sorted(os.listdir(self.work))
        self.run(mutant, "show", mutant, "--all")
        self.run(mutant, "convert", mutant, self.work / "out", "--auto_place", "--verify", "1", "--keep_failed", "--overwrite", "--converter_options_string",
                 "disable_default_optimizations: true", *limits)
        left = set(os.listdir(self.work)) - set(before) - {"out"}
        if left:
            self.fail(mutant, f"left {left}", ["convert"], "")
        shutil.rmtree(self.work / "out", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smelt")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="mutants", help="folder for mutants that went wrong")
    args = parser.parse_args()
    attack = Attack(args)
    listed = subprocess.run([attack.smelt, "ops"], capture_output=True, text=True, check=True).stdout
    ops = [line.split()[0].encode() for line in listed.splitlines() if line and line[0].isalpha()]
    sources = []
    for model in (pathlib.Path(m).resolve() for m in args.models):
        original = (model / "saved_model.pb").read_bytes()
        tree = parse(original)
        sources.append((model, tree, sorted(set(texts(tree))) + ops, original))
    end, done = time.monotonic() + args.seconds, 0
    try:
        while done < args.count and time.monotonic() < end:
            attack.one(*attack.rng.choice(sources))
            done += 1
    finally:
        shutil.rmtree(attack.work, ignore_errors=True)
    for key, n in sorted(attack.counts.items()):
        print(f"{n:6} {' '.join(key)}")
    print(f"{done} mutants, {attack.wrong} wrong")
    sys.exit(bool(attack.wrong))


main()
