#!/usr/bin/env python3
"""Draws op cases at random, has TensorFlow compute them, and shows where smelt differs.

    draw_op_cases.py --out FOLDER --tests SMELT_OP_TESTS [--seed N] [--per-op N] [OP...]
    draw_op_cases.py --again FILE.ops     computes the expected values of a file of single ops anew

A drawn case is one that a family of tools/op_cases yields with one thing changed (a type, an attribute, a
dimension, a value; sometimes two), or inputs and attributes made up from the op's definition. Each is run as
make_op_cases.py runs cases, in a child process: TensorFlow ends at failed checks for some; those are left out, as
are cases that TensorFlow has no kernel for or that give more than a small tensor. FOLDER gets OP.ops for each op;
then SMELT_OP_TESTS runs them. `differ.ops` holds the cases that differ, `differ.txt` how, the line begins with what
it is: kernel (smelt has none), value, code, text, or crash.

tests/ops/drawn.ops holds drawn cases that once differed; `--again` keeps it up to date.
Stateful ops, resources and functions are left out, and ops that only XLA compiles.
"""
import argparse
import collections
import copy
import importlib
import multiprocessing
import os
import pathlib
import pickle
import re
import resource
import signal
import subprocess
import sys
import zlib

import make_op_cases as maker
import op_cases
from make_op_cases import np, tf
from op_cases import every_type
from tensorflow.python.framework import op_def_registry

TOOLS = pathlib.Path(__file__).resolve().parent
MAX_ELEMENTS = 300  # make_op_cases.py takes no more
SECONDS = 10  # of a processor, for one case
MEMORY = 16 << 30
BATCH = 400
# Ops whose answer depends on more than the inputs (time, files, the node's name, memory that nobody wrote), and those
# that an executor or XLA's compiler runs.
SKIP = {"Timestamp", "Abort", "Fact", "FakeParam", "TensorSummary", "MatchingFiles", "ReadFile", "Enter", "Exit",
        "LoopCond", "Merge", "NextIteration", "Switch", "_SwitchN", "_FusedBatchNormEx", "ControlTrigger",
        "ParallelConcat", "Empty", "_ParallelConcatStart", "Placeholder", "PlaceholderV2", "EnsureShape",
        "TensorArrayCloseV2", "TensorArraySizeV2", "TensorArrayGatherV2", "TensorArrayScatterV2", "TensorArrayConcatV2",
        "TensorArraySplitV2"}
TOLERANCE = {"half": (5e-3, 3e-3), "bfloat16": (3e-2, 2e-2)}
STRINGS = [b"", b"a", b"0", b"-1", b"1.5", b" 7 ", b"1e400", b"nan", b"\xff\xfe", b"\x00", b"\xe4\xb8\xad\xe6\x96\x87",
           b"Hello, World", b"a" * 70, b"\n", b"A\tb", b"0x1F", b"True", b"\xf0\x9f\x98\x80!"]


def fuzzable(op_def):
    if op_def is None or op_def.is_stateful or op_def.name in SKIP or op_def.name.startswith("Xla"):
        return False
    bad = {tf.resource.as_datatype_enum, tf.variant.as_datatype_enum}
    for arg in list(op_def.input_arg) + list(op_def.output_arg):
        if arg.is_ref or arg.type in bad:
            return False
    return not any("func" in a.type for a in op_def.attr)


# ---- the cases to start from ----


def collect(path, seed):
    """Writes {op: [spec]} of all families. In a process of its own: some run TensorFlow."""
    specs = collections.defaultdict(list)
    for file in sorted((TOOLS / "op_cases").glob("*.py")):
        if file.stem in ("__init__", "every_type"):
            continue
        module = importlib.import_module("op_cases." + file.stem)
        if getattr(module, "JIT", False) or getattr(module, "FOLDER", "ops") != "ops":
            continue
        for spec in module.cases(op_cases.Random([seed] + [ord(c) for c in file.stem])):
            if not hasattr(spec, "inputs") or spec.compare or not fuzzable(op_def_registry.get(spec.op)):
                continue
            spec.otherwise = spec.after = None
            try:
                pickle.dumps(spec)
            except (TypeError, AttributeError, pickle.PicklingError):
                continue
            specs[spec.op].append(spec)
    pathlib.Path(path).write_bytes(pickle.dumps(dict(specs)))


# ---- drawing ----


class Draw(op_cases.Random):

    def chance(self, p):
        return self.rng.random() < p

    def element(self, t):
        """A value of a type that something may break on."""
        if t == "string":
            return self.choice(STRINGS)
        if t == "bool":
            return self.chance(0.5)
        if t in every_type.QUANTIZED or t in op_cases.INTS:
            d = np.iinfo(maker.PLAIN[t].as_numpy_dtype if t in maker.PLAIN else op_cases.np_type(t))
            v = self.choice([-1, 0, 1, 2, 3, 5, 7, 8, 31, 32, 64, 100, -2, -3, -7, 127, 255, d.max, d.min, d.max - 1])
            return max(d.min, min(d.max, v))
        v = self.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.5, -7.25, 1e-3, 1e-40, 1e10, -1e10, 3e38, 1e-30, np.inf,
                         -np.inf, np.nan, 127.5, 88.0, -104.0, 1e4])
        return complex(v, self.choice([0.0, -1.0, np.nan, 2.5])) if t in op_cases.COMPLEX else v

    def tensor(self, t, shape):
        plain = t if t not in maker.PLAIN else maker.PLAIN[t].name
        n = int(np.prod(shape, dtype=np.int64))
        if t == "string":
            a = np.empty(n, dtype=object)
            a[:] = [self.choice(STRINGS) for _ in range(n)]
            a = a.reshape(shape)
        elif t in op_cases.SIGNED + ["qint32"] and self.chance(0.7):
            a = self.ints(shape, -2, 6, plain)
        elif self.chance(0.2):
            with np.errstate(all="ignore"):
                a = op_cases.array(plain, [self.element(t) for _ in range(n)], shape)
        else:
            a = self.numbers(plain, shape)
        return op_cases.Typed(t, a) if t in maker.PLAIN else a

    def shape(self):
        rank = self.choice([0, 1, 1, 2, 2, 3, 3, 4, 5])
        return tuple(self.choice([0, 1, 1, 2, 2, 3, 3, 4, 5]) for _ in range(rank))


def values_of(v):
    return v.values if isinstance(v, op_cases.Typed) else np.asarray(v)


def with_values(v, a):
    return op_cases.Typed(v.dtype, a) if isinstance(v, op_cases.Typed) else a


def tensors(spec):
    """(input, place in its list or None) of every tensor."""
    out = []
    for i, v in enumerate(spec.inputs):
        out += [(i, k) for k in range(len(v))] if isinstance(v, (list, tuple)) else [(i, None)]
    return out


def get(spec, at):
    return spec.inputs[at[0]] if at[1] is None else spec.inputs[at[0]][at[1]]


def put(spec, at, v):
    if at[1] is None:
        spec.inputs[at[0]] = v
    else:
        spec.inputs[at[0]] = list(spec.inputs[at[0]])
        spec.inputs[at[0]][at[1]] = v


def resized(a, axis, n):
    """The array with n elements along the axis, repeated or cut off."""
    if a.shape[axis] == 0:
        return np.zeros(a.shape[:axis] + (n,) + a.shape[axis + 1:], a.dtype) if a.dtype != object else np.full(
            a.shape[:axis] + (n,) + a.shape[axis + 1:], b"", object)
    return np.take(a, np.arange(n) % a.shape[axis], axis=axis)


def free_attrs(op_def):
    inferred = set()
    for a in op_def.input_arg:
        inferred |= {a.type_attr, a.number_attr, a.type_list_attr}
    return [a for a in op_def.attr if a.name not in inferred]


def drawn_attr(r, attr, now):
    """Another value of an attribute, or None."""
    kind = attr.type
    if kind == "bool":
        return not now
    if kind == "int":
        return r.choice([-2, -1, 0, 1, 2, 3, 5, 7, 100] + ([now + 1, now - 1, -now, now * 2] if now is not None else []))
    if kind == "float":
        return r.choice([0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 1e-3, 10.0, float("inf"), float("nan"), 1e30])
    if kind == "string":
        allowed = list(attr.allowed_values.list.s)
        return r.choice(allowed) if allowed else r.choice(STRINGS[:12] + [b"NHWC", b"NCHW", b"SAME", b"VALID"])
    if kind == "type":
        allowed = list(attr.allowed_values.list.type)
        return tf.as_dtype(r.choice(allowed)) if allowed else tf.as_dtype(r.choice(every_type.KNOWN))
    if kind.startswith("list(") and isinstance(now, (list, tuple)):
        now = list(now)
        inner = kind[5:-1]
        if inner not in ("int", "float", "string", "bool"):
            return now[:-1] if now and r.chance(0.5) else now + now[:1] if now else None
        one = copy.deepcopy(attr)
        one.type = inner
        if now and r.chance(0.75):
            k = int(r.rng.integers(0, len(now)))
            now[k] = drawn_attr(r, one, now[k])
            return now
        if now and r.chance(0.5):
            return now[:-1]
        return now + [now[-1] if now and r.chance(0.5) else drawn_attr(r, one, now[-1] if now else None)]
    if kind == "shape":
        return r.choice([None, [], [1], [2], [0], [-1], [2, 3], [-1, 2], [3, 2, 1], [1, 1, 1, 1]])
    return None


def change_type(r, spec, op_def, table):
    known = table.get(spec.op, {})
    choices = [a for a in op_def.attr if a.type == "type"]
    if not choices:
        return False
    attr = r.choice(choices)
    types = known.get(attr.name) or [t for t in every_type.KNOWN if not attr.allowed_values.list.type or tf.as_dtype(
        t).as_datatype_enum in attr.allowed_values.list.type]
    if not types:
        return False
    t = r.choice(types)
    if t == every_type.type_by(spec, attr.name, op_def)[0]:
        return False
    with np.errstate(all="ignore"):
        new = every_type.as_type(spec, attr.name, t, op_def)
    spec.inputs, spec.attrs = new.inputs, dict(new.attrs)
    # A tolerance that was tight for doubles is none for other types.
    spec.tol = new.tol if t in TOLERANCE or not spec.tol or spec.tol[0] > 1e-6 else None
    return True


def change_attr(r, spec, op_def, table):
    free = [a for a in free_attrs(op_def) if a.type != "type" or r.chance(0.3)]
    if not free:
        return False
    attr = r.choice(free)
    now = spec.attrs.get(attr.name, maker.default_attrs(op_def).get(attr.name))
    new = drawn_attr(r, attr, now)
    if new is None and attr.type != "shape":
        return False
    spec.attrs = dict(spec.attrs, **{attr.name: new})
    return True


def change_shape(r, spec, op_def, table):
    places = tensors(spec)
    if not places:
        return False
    if r.chance(0.15):  # one tensor more or less in a list
        lists = [i for i, v in enumerate(spec.inputs) if isinstance(v, (list, tuple)) and v]
        if lists:
            i = r.choice(lists)
            v = list(spec.inputs[i])
            spec.inputs[i] = v[:-1] if r.chance(0.5) and len(v) > 1 else v + [v[-1]]
            return True
    at = r.choice(places)
    v = get(spec, at)
    a = values_of(v)
    if a.ndim and r.chance(0.5):  # one size changes wherever it stands
        axis = int(r.rng.integers(0, a.ndim))
        old, n = a.shape[axis], r.choice([0, 1, 2, 3, 4, 5, 6, a.shape[axis] + 1])
        for other in places:
            b = values_of(get(spec, other))
            for k in range(b.ndim):
                if b.shape[k] == old and b.size // max(old, 1) * n <= 400:
                    b = resized(b, k, n)
            put(spec, other, with_values(get(spec, other), b))
        return True
    what = r.choice(["size", "size", "more", "less", "scalar", "any"])
    if what == "size" and a.ndim:
        axis = int(r.rng.integers(0, a.ndim))
        a = resized(a, axis, r.choice([0, 1, 2, 3, 4, a.shape[axis] + 1, max(a.shape[axis] - 1, 0)]))
    elif what == "more":
        a = np.expand_dims(a, int(r.rng.integers(0, a.ndim + 1)))
    elif what == "less" and a.ndim and a.shape[0]:
        a = a[0] if a.dtype != object or a.ndim > 1 else np.array(a[0], object)
    elif what == "scalar" and a.size:
        a = a.reshape(-1)[:1].reshape(())
    else:
        shape = r.shape()
        n = int(np.prod(shape, dtype=np.int64))
        if not a.size and n:
            return False
        a = np.resize(a, shape) if a.size else a.reshape(-1)[:0].reshape(shape)
    if a.size > MAX_ELEMENTS:
        return False
    put(spec, at, with_values(v, np.asarray(a)))
    return True


def change_value(r, spec, op_def, table):
    places = [p for p in tensors(spec) if values_of(get(spec, p)).size]
    if not places:
        return False
    at = r.choice(places)
    v = get(spec, at)
    t = every_type.type_of(v)
    if t not in every_type.KNOWN:
        return False
    a = values_of(v).copy()
    if r.chance(0.15):
        v = r.tensor(t, a.shape)
        put(spec, at, v)
        return True
    flat = a.reshape(-1)
    for _ in range(r.choice([1, 1, 1, 2, 4])):
        k = int(r.rng.integers(0, flat.size))
        with np.errstate(all="ignore"):
            if t in op_cases.INTS + every_type.QUANTIZED and r.chance(0.4):
                d = np.iinfo(flat.dtype)
                flat[k] = max(d.min, min(d.max, int(flat[k]) + r.choice([-1, 1])))
            else:
                flat[k] = r.element(t)
    put(spec, at, with_values(v, flat.reshape(a.shape)))
    return True


def made_up(r, op_def, table):
    """Inputs and attributes from the op's definition alone."""
    known = table.get(op_def.name, {})
    attrs, types, numbers, lists = {}, {}, {}, {}
    defaults = maker.default_attrs(op_def)
    inferred = {a.name for a in op_def.attr} - {a.name for a in free_attrs(op_def)}
    for a in op_def.attr:
        if a.type == "type":
            allowed = known.get(a.name) or [t for t in every_type.KNOWN if not a.allowed_values.list.type or tf.as_dtype(
                t).as_datatype_enum in a.allowed_values.list.type]
            if not allowed:
                return None
            types[a.name] = r.choice(allowed)
            if a.name not in inferred:
                attrs[a.name] = tf.as_dtype(types[a.name])
        elif a.name in inferred and a.type == "int":
            numbers[a.name] = max(a.minimum, r.choice([1, 2, 3]))
        elif a.name in inferred and a.type == "list(type)":
            lists[a.name] = [r.choice(every_type.KNOWN[:14]) for _ in range(max(a.minimum, r.choice([1, 2])))]
        elif a.name not in defaults or r.chance(0.3):
            now = defaults.get(a.name, [1] if a.type == "list(int)" else [] if a.type.startswith("list(") else None)
            v = drawn_attr(r, a, now)
            if v is None and a.type != "shape":
                v = now
            if v is None and a.type != "shape":
                return None
            attrs[a.name] = v
    shape, inputs = r.shape(), []
    while np.prod(shape, dtype=np.int64) > MAX_ELEMENTS:
        shape = shape[1:]
    for arg in op_def.input_arg:

        def one(t):
            s = shape if r.chance(0.6) else r.shape()
            s = r.choice([(), s[:1], s]) if t in ("int32", "int64") and r.chance(0.5) else s
            while np.prod(s, dtype=np.int64) > MAX_ELEMENTS:
                s = s[1:]
            return r.tensor(t, s)

        t = types.get(arg.type_attr) or (maker.type_text(arg.type) if arg.type else None)
        if arg.type_list_attr:
            inputs.append([one(t) for t in lists[arg.type_list_attr]])
        elif t not in every_type.KNOWN:
            return None
        elif arg.number_attr:
            inputs.append([one(t) for _ in range(numbers[arg.number_attr])])
        else:
            inputs.append(one(t))
    return op_cases.case(op_def.name, *inputs, attrs=attrs)


def draw(op, specs, seed, i, table):
    r = Draw([seed, zlib.crc32(op.encode()), i])
    op_def = op_def_registry.get(op)
    if not specs or r.chance(0.2):
        return made_up(r, op_def, table)
    good = [s for s in specs if s.error is None] or specs
    spec = copy.copy(r.choice(good if r.chance(0.9) else specs))
    spec.inputs, spec.attrs, spec.error, spec.name = list(spec.inputs), dict(spec.attrs), None, None
    if len(spec.inputs) != len(op_def.input_arg):
        return None
    ways = [change_type, change_attr, change_attr, change_shape, change_shape, change_shape, change_value, change_value]
    for _ in range(r.choice([1, 1, 1, 2])):
        done = False
        for _ in range(6):
            done = done or r.choice(ways)(r, spec, op_def, table)
        if not done:
            return None
    return spec


# ---- TensorFlow's side ----


class Writer(maker.Writer):
    """Writes the first line of every message into the case."""

    def __init__(self):
        super().__init__(False)
        self.code = None

    def drop(self, spec, why):
        self.lines = []

    def error(self, code, message, wanted):
        message = message.rpartition("Original stack trace")[0] or message
        message = re.split(r"\nNode: '[^\n]*'\n", message)[-1].strip()
        # smelt_case_tests calls the node "tested".
        line = message.splitlines()[0].replace("case_op", "tested") if message else ""
        self.code = code
        self.lines.append(f"error {code}" + (" " + maker.quote(line) if line else ""))
        # Where TensorFlow lacks a kernel or memory, there is no answer to hold smelt to.
        if line.startswith(("No OpKernel was registered", "OOM when allocating", "Graph execution error")) or code == "RESOURCE_EXHAUSTED":
            self.lines = []


def computed(spec, name):
    """The lines of the case, or none."""
    w = Writer()
    if spec.tol is None:
        kinds = {every_type.type_of(get(spec, p)) for p in tensors(spec)}
        kinds |= {v.name.replace("float16", "half").replace("bhalf", "bfloat16") for v in spec.attrs.values()
                  if isinstance(v, tf.DType)}
        spec.tol = TOLERANCE["bfloat16"] if "bfloat16" in kinds else TOLERANCE["half"] if "half" in kinds else None
    try:
        maker.run_op_case(spec, w)
    except (ValueError, TypeError, NotImplementedError, OverflowError, AttributeError, KeyError, SystemError):
        return []
    if not w.lines or w.lines[0] != "---":
        return []
    w.lines[1] = "case " + name
    return w.lines


def serve(jobs, pipe, specs, table, seed):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for k, (op, i) in enumerate(jobs):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(12 * SECONDS)  # ends a case that sleeps, which uses no processor time
        spec = draw(op, specs.get(op, []), seed, i, table)
        lines = computed(spec, f"{op}_d{seed}_{i}") if spec is not None else []
        pipe.send((k, lines))
    pipe.close()
    os._exit(0)


def in_children(jobs, specs, table, seed, take):
    """Calls take(job, lines), lines None for a case at which TensorFlow ended."""
    context = multiprocessing.get_context("fork")
    while jobs:
        batch, done = jobs[:BATCH], 0
        here, there = context.Pipe(False)
        child = context.Process(target=serve, args=(batch, there, specs, table, seed))
        child.start()
        there.close()
        try:
            while True:
                k, lines = here.recv()
                take(batch[k], lines)
                done = k + 1
        except EOFError:
            pass
        child.join()
        if done < len(batch):
            take(batch[done], None)
            done += 1
        jobs = jobs[done:]


# ---- smelt's side ----


def category(why):
    if "No OpKernel was registered" in why or why.startswith("no kernel"):
        return "kernel"
    if re.match(r'(with shared inputs: )?message "', why):
        return "text"
    if why.startswith("crash"):
        return "crash"
    if re.match(r"(with shared inputs: )?(output|changes|\d+ outputs)", why):
        return "value"
    return "code"


def cases_of(path):
    cases = {}
    for block in pathlib.Path(path).read_text().split("---\n")[1:]:
        cases[block.split("\n", 1)[0].removeprefix("case ")] = block
    return cases


def differences(tests, path):
    """{case name: why} of a file; a crash is found by running its cases one by one."""
    try:
        done = subprocess.run([tests, path], capture_output=True, text=True, errors="replace", timeout=300)
    except subprocess.TimeoutExpired:
        done = None
    found, cases = {}, cases_of(path)
    if done is None or done.returncode not in (0, 1):
        one = pathlib.Path(str(path) + ".one")
        for name, block in cases.items():
            one.write_text("---\n" + block)
            try:
                alone = subprocess.run([tests, one], capture_output=True, text=True, errors="replace", timeout=20)
                if alone.returncode not in (0, 1):
                    found[name] = f"crash: {alone.returncode} {alone.stderr[-200:]!r}"
                    continue
                output = alone.stdout
            except subprocess.TimeoutExpired:
                found[name] = "crash: takes too long"
                continue
            found.update(failures(output, cases))
        one.unlink()
        return found
    return failures(done.stdout, cases)


def failures(output, cases):
    found, name = {}, None
    for line in output.split("\n"):
        m = re.match(r"FAILED (\S+) \(\S+:\d+\) (.*)$", line)
        if m and m[1] in cases:
            name = m[1]
            found[name] = m[2]
        elif re.match(r"\d+ passed, ", line):
            name = None
        elif name is not None and not line.startswith("no kernel"):
            found[name] += " | " + line
    for line in output.split("\n"):
        if line.startswith("no kernel for"):
            op = line.split()[3]
            found.update({n: "no kernel" for n, b in cases.items() if b.split("\nop ")[1].split()[0] == op})
    return found


def compare(folder, tests):
    counts, total = collections.Counter(), 0
    with open(folder / "differ.txt", "w") as how, open(folder / "differ.ops", "w") as what:
        for path in sorted(folder.glob("*.ops")):
            if path.name == "differ.ops" or not fuzzable(op_def_registry.get(path.stem)):
                continue
            cases = cases_of(path)
            total += len(cases)
            for name, why in differences(tests, path).items():
                counts[category(why)] += 1
                how.write(f"{category(why)} {name} {why}\n")
                what.write("---\n" + cases[name])
    print(f"{total} compared, {sum(counts.values())} differ: " + ", ".join(f"{n} {c}" for c, n in counts.most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--tests", help="the runner of op cases")
    parser.add_argument("--smelt", help="lists the ops with kernels; else those of the families")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-op", type=int, default=40)
    parser.add_argument("--compare-only", action="store_true", help="FOLDER holds drawn cases already")
    parser.add_argument("--collect", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.collect:
        collect(args.collect, args.seed)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.compare_only:
        start = args.out / "start.pickle"
        if not start.exists():
            subprocess.run([sys.executable, __file__, "--collect", start, "--out", args.out, "--seed", str(args.seed)],
                           check=True)
        specs = pickle.loads(start.read_bytes())
        ops = args.ops or sorted(specs)
        if args.smelt and not args.ops:
            listed = subprocess.run([args.smelt, "ops"], check=True, capture_output=True, text=True).stdout.splitlines()
            ops = [l.split()[0] for l in listed if " CPU " in l]
        ops = [op for op in ops if fuzzable(op_def_registry.get(op))]
        table, drawn = every_type.kernel_types(), collections.defaultdict(list)
        crashed = []

        def take(job, lines):
            if lines is None:
                crashed.append(job)
            elif lines:
                drawn[job[0]].append("\n".join(lines) + "\n")

        in_children([(op, i) for op in ops for i in range(args.per_op)], specs, table, args.seed, take)
        for op, blocks in drawn.items():
            (args.out / f"{op}.ops").write_text("".join(blocks))
        (args.out / "crashed.txt").write_text("".join(f"{op} {i}\n" for op, i in crashed))
        print(f"{len(ops)} ops, {sum(map(len, drawn.values()))} cases, TensorFlow ended at {len(crashed)}")
    if args.tests:
        compare(args.out, args.tests)


if __name__ == "__main__":
    main()
