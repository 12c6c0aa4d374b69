#!/usr/bin/env python3
"""What smelt's programs leave to oneDNN, timed with one version of the library and others.

  onednn_layers.py collect SMELT SUITE OUT [--processors machine,vnni,avx512,avx2] [--precisions float,bfloat16,int8] [NAME...]
  onednn_layers.py time LAYERS... --old INCLUDE:LIBRARY[:LOADER] --new INCLUDE:LIBRARY[:LOADER] [--new ...] [--isa AVX2] [--passes 2]

`collect` replays SUITE/NAME/inputs_B.npz on one thread, three times and seven, and writes OUT/PROCESSOR_PRECISION.txt: what the library runs more often the second
time is what every request asks for. A line `request MODEL BATCH MS` is followed by its layers, `COUNT KIND NAME=VALUE...`; MS is the request's CPU time. The processors
are what the library and smelt are told: `machine` everything there is, `vnni` no bfloat16 and no AMX, `avx512` no VNNI either, `avx2` no AVX-512. It needs tensorflow
and tensorflow-serving-api.

`time` compiles bench/onednn_layers.cc for each version, makes each layer with all of them, weights packed once in the order each likes, and lets them take turns of some
milliseconds, a process each; the least time counts. On one thread it is the thread's CPU time, so that others' turns on the core are no part of it. --isa is
DNNL_MAX_CPU_ISA. INCLUDE is the folder of a version's dnnl.h, LIBRARY that of its libdnnl.so, LOADER one with the C library that it wants (ld-linux-x86-64.so.2,
libc.so.6, libstdc++.so.6, libgomp.so.1, ...) where it is newer than the machine's. PyPI has onednn-cpu-gomp and onednn-devel-cpu-gomp, to be unpacked with unzip; of
Debian's releases libdnnl3.6, libdnnl-dev, libc6, libstdc++6, libgcc-s1 and libgomp1 are unpacked with dpkg -x. Printed: a row for each layer, the ratios old / new
(over 1: the new one is faster), their geometric mean, that weighted by time, the ratio of all time, and the part of the requests that the library has. Sums of results
are compared."""
import argparse
import collections
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROCESSORS = {"machine": {},
              "vnni": {"DNNL_MAX_CPU_ISA": "AVX512_CORE_VNNI", "SMELT_BF16": "float"},
              "avx512": {"DNNL_MAX_CPU_ISA": "AVX512_CORE", "SMELT_BF16": "float", "SMELT_INT8": "plain"},
              "avx2": {"DNNL_MAX_CPU_ISA": "AVX2", "SMELT_ISA": "avx2"}}


# Layers, out of what the library says when DNNL_VERBOSE=1.


def times(numbers):
    return "x".join(map(str, numbers))


def described(text):
    """Type and order by name (src, wei, bia, dst), and what stands behind the flags."""
    found = {}
    for word in text.split():
        name, rest = word.split("_", 1)
        kind, _, _, order, *more = rest.split(":")
        if kind == "undef":
            continue
        found[name] = (kind, order if re.fullmatch("[a-z]+", order) else "any", ":".join(more))
    return found


def post_ops(text):
    """post=..., scales=... and zero=... of the words attr-...:...."""
    words, out = dict(w.split(":", 1) for w in text.split() if ":" in w), []
    if "attr-oscale" in words:
        out.append("scales=one" if words["attr-oscale"].split(":")[0] == "0" else "scales=channel")
    if "attr-zero-points" in words:
        out.append("zero=src")
    steps = []
    for op in words.get("attr-post-ops", "").split("+"):
        name, *numbers = op.split(":")
        # What quantization makes of ranges takes no time: layers that differ in it alone are one.
        if name == "eltwise_linear":
            numbers = ["64", "8"]
        elif name == "sum" and numbers:
            numbers = ["0.5", "3" if numbers[1:] and numbers[1] != "0" else "0"]
        if name.startswith("eltwise_"):
            steps.append("/".join([name[len("eltwise_"):]] + numbers[:2]))
        elif name.startswith("binary_"):
            steps.append("/".join([name[len("binary_"):]] + numbers[:2]))
        elif name:
            steps.append("/".join([name] + numbers[:2]))
    return out + (["post=" + ",".join(steps)] if steps else [])


def layer(line):
    """KIND NAME=VALUE... of a line of the log; None where it is no layer."""
    kind, _, _, tensors, attributes, algorithm, problem = line.split(",")[3:10]
    t = described(tensors)

    def tensor(name, dims, order=None):
        return f"{name}={t[name.replace('bias', 'bia')][0]}:{times(dims)}:{order or t[name][1]}"

    if kind == "matmul":
        src, wei, dst = ([int(d) for d in part.split("x")] for part in problem.split(":"))
        # Whether the order was the library's choice is not said. One matrix for all is taken for constant weights.
        words = ["matmul", tensor("src", src), tensor("wei", wei, "any" if len(wei) == 2 else None)]
        if "bia" in t:
            mask = int(re.search(r"mask(\d+)", t["bia"][2])[1])
            words.append(tensor("bias", [d if mask >> i & 1 else 1 for i, d in enumerate(dst)], "abcdef"[:len(dst)]))
        words.append(tensor("dst", dst))
    elif kind in ("convolution", "deconvolution", "pooling_v2"):
        head = re.match(r"(?:g(\d+))?mb(\d+)_?ic(\d+)(?:oc(\d+))?", problem)
        groups, batch, deep, out = (int(n) if n else None for n in head.groups())
        axes = [[int(n) for n in re.search(f"i{a}(\\d+)o{a}(\\d+)k{a}(\\d+)s{a}(\\d+)d{a}(\\d+)p{a}(\\d+)", problem).groups()] for a in "dhw" if f"i{a}" in problem]
        size, result, kernel, stride, dilate, pad = zip(*axes)
        reach = [(k - 1) * (d + 1) + 1 for k, d in zip(kernel, dilate)]
        if kind == "deconvolution":
            end = [(i - 1) * s + r - p - o for i, s, r, p, o in zip(size, stride, reach, pad, result)]
        else:
            end = [(o - 1) * s + r - i - p for o, s, r, i, p in zip(result, stride, reach, size, pad)]
        words = [{"convolution": "conv", "deconvolution": "deconv"}.get(kind) or ("max" if "max" in algorithm else "avg"), tensor("src", [batch, deep, *size])]
        if kind == "pooling_v2":
            words.append("kernel=" + times(kernel))
        else:
            weights = [groups, out // groups, deep // groups, *kernel] if groups else [out, deep, *kernel]
            words.append(tensor("wei", weights, "any"))
            if "bia" in t:
                words.append(tensor("bias", [out], "a"))
        words += [tensor("dst", [batch, out or deep, *result]), "stride=" + times(stride), "dilate=" + times(dilate), "pad=" + times(pad), "pad_end=" + times(end)]
    else:
        return None
    return " ".join(words + post_ops(attributes))


def collect(a):
    sys.path.insert(0, str(HERE))
    from bench import write_log
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_onednn_"))
    a.out.mkdir(parents=True, exist_ok=True)
    for processor in a.processors.split(","):
        for precision in a.precisions.split(","):
            with open(a.out / f"{processor}_{precision}.txt", "w") as out:
                for inputs in sorted(a.suite.glob("*/inputs_*.npz")):
                    name, batch = inputs.parent.name, inputs.stem.split("_")[1]
                    if a.names and name not in a.names:
                        continue
                    log = work / f"{name}_{batch}.tfrecord"
                    if not log.exists():
                        write_log(inputs, log)
                    command = [a.smelt, "replay", str(inputs.parent / "saved_model"), "--log", str(log), "--threads", "1"]
                    if precision != "float":
                        command += ["--precision", precision]
                    if precision == "int8":
                        command += ["--calibration_log", str(log)]
                    milliseconds, lines = request(command, PROCESSORS[processor], work / "said")
                    write_request(out, name, batch, milliseconds, lines)


def request(command, variables, said):
    """CPU time of one of many requests, and {line of the library: how often it is said in one}."""
    def replayed(repeat, verbose="1"):
        with open(said, "w") as f:
            p = subprocess.Popen(command + ["--repeat", str(repeat)], stdout=f, stderr=subprocess.DEVNULL, env={**os.environ, **variables, "DNNL_VERBOSE": verbose})
            used = os.wait4(p.pid, 0)[2]
        lines = [line for line in open(said, errors="replace") if line.startswith("onednn_verbose,exec")]
        return collections.Counter(",".join(line.split(",")[:10]) for line in lines), used.ru_utime + used.ru_stime

    few, many = 3, 7
    (once, begin), (more, end) = replayed(few), replayed(many)
    repeat = many
    while end - begin < 0.2 and repeat < 1e6:  # too short to tell from loading the model
        repeat = int(repeat * min(10, max(2, 0.3 / max(end - begin, 0.03)))) + 1
        end = replayed(repeat, "0")[1]
    return (end - begin) / (repeat - few) * 1e3, {k: (n - once[k]) / (many - few) for k, n in more.items() if n != once[k]}


def write_request(out, name, batch, milliseconds, lines):
    print("request", name, batch, f"{milliseconds:.4g}", file=out, flush=True)
    counts = collections.Counter()
    for line, n in lines.items():
        text = layer(line)
        if text is None:
            print(f"{name} {batch}: no layer: {line}", file=sys.stderr)
        else:
            counts[text] += n
    for text, n in sorted(counts.items()):
        print(f"{n:g}", text, file=out, flush=True)


# Times.


class Version:
    """A process that makes and runs layers with one version of the library."""

    def __init__(self, where, work, isa, threads):
        include, library, *loader = where.split(":")
        source, program = HERE / "onednn_layers.cc", work / re.sub("[^A-Za-z0-9.]+", "_", library)
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-fopenmp", "-I", include, source, "-o", program, f"{library}/libdnnl.so",
                            "-Wl,--allow-shlib-undefined"], check=True)
        env = {**os.environ, "OMP_NUM_THREADS": str(threads), "LD_LIBRARY_PATH": library}
        command = [str(program)]
        if loader:
            env.pop("LD_LIBRARY_PATH")
            command = [f"{loader[0]}/ld-linux-x86-64.so.2", "--library-path", f"{library}:{loader[0]}", str(program)]
        if isa:
            env["DNNL_MAX_CPU_ISA"] = isa
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.name = self.process.stdout.readline().strip()
        self.least, self.code, self.sum = math.inf, "", None

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def make(self, text):
        """False where the version has no code for it."""
        self.least, answer = math.inf, self.ask(text)
        if not answer or answer == "refused":
            return False
        self.code, self.sum = answer.split(" ")[0], float(answer.split(" ")[1])
        return True

    def take_turn(self, milliseconds):
        self.least = min(self.least, float(self.ask(f"go {milliseconds}")) / 1e6)


def requests(paths):
    """(model, batch, ms, {layer: count}) of each request in the files."""
    found = []
    for path in paths:
        for line in path.read_text().splitlines():
            first, rest = line.split(" ", 1)
            if first == "request":
                name, batch, ms = rest.split(" ")
                found.append((name, int(batch), float(ms), {}))
            else:
                found[-1][3][rest] = float(first)
    return found


def geometric(ratios):
    """The mean of (ratio, weight) pairs."""
    whole = sum(w for _, w in ratios)
    return math.exp(sum(math.log(r) * w for r, w in ratios) / whole) if whole else float("nan")


def take_turns(a, versions, layers):
    """{layer: ms of each version}, in a row each; layers that the old version refuses are left out."""
    old, *new = versions
    taken = {}
    print(f"{'requests':>8} " + " ".join(f"{v.name:>14}" for v in versions) + " " + " ".join(["ratio"] * len(new)) + "  layer", flush=True)
    for text, n in sorted(layers.items()):
        if not old.make(text):
            print(f"{n:8g} {old.name} refuses {text}", flush=True)
            continue
        made = [v for v in new if v.make(text)]
        for _ in range(a.turns):
            for v in [old, *made]:
                v.take_turn(a.milliseconds)
        taken[text] = [v.least for v in versions]
        off = [v.name for v in made if abs(v.sum - old.sum) > 0.01 * abs(old.sum) + 50]
        print(f"{n:8g} " + " ".join(f"{ms:14.5f}" for ms in taken[text]) + " " + " ".join(f"{old.least / v.least:5.2f}" for v in new) +
              f"  {text}  [{' | '.join(v.code for v in [old, *made])}]" + "".join(f"  OTHER RESULTS: {name}" for name in off), flush=True)
    return taken


def print_means(taken, layers, asked, names):
    shares = [sum(taken[t][0] * n for t, n in counts.items() if t in taken) / ms for *_, ms, counts in asked if ms > 0]
    print(f"{len(taken)} layers of {sum(1 for *_, c in asked if c)} requests of {len(asked)}; of a request's time the library has {100 * sum(shares) / max(1, len(shares)):.1f} % on average, "
          f"{100 * max(shares, default=0):.0f} % at most")
    for i, name in enumerate(names[1:], 1):
        ratios = {t: ms[0] / ms[i] for t, ms in taken.items() if ms[i] < math.inf}
        if not ratios:
            print(f"{name}: nothing")
            continue
        worst, best = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
        whole = [sum(taken[t][j] * layers[t] for t in ratios) for j in (0, i)]
        print(f"{name}: geometric mean {geometric([(r, 1) for r in ratios.values()]):.3f}, weighted by time {geometric([(r, taken[t][0] * layers[t]) for t, r in ratios.items()]):.3f}, sums {whole[0]:.2f} / "
              f"{whole[1]:.2f} ms = {whole[0] / whole[1]:.3f}, over 1.05: {sum(r > 1.05 for r in ratios.values())}, under .95: {sum(r < 0.95 for r in ratios.values())}, refused {len(taken) - len(ratios)}")
        print(f"  best {ratios[best]:.2f}: {best}\n  worst {ratios[worst]:.2f}: {worst}", flush=True)


def time_layers(a):
    asked = requests(a.layers)
    layers = collections.Counter()
    for *_, counts in asked:
        layers.update(counts)
    with tempfile.TemporaryDirectory(prefix="smelt_onednn_") as folder:
        versions = [Version(where, a.programs or pathlib.Path(folder), a.isa, a.threads) for where in [a.old, *a.new]]
        names, passes = [v.name for v in versions], []
        for _ in range(a.passes):
            passes.append(take_turns(a, versions, layers))
            print_means(passes[-1], layers, asked, names)
        for v in versions:
            v.process.stdin.close()
            v.process.wait()
    if len(passes) > 1:
        print("The least of all passes:")
        print_means({t: [min(p[t][i] for p in passes if t in p) for i in range(len(names))] for t in passes[0]}, layers, asked, names)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = ap.add_subparsers(required=True)
    c = commands.add_parser("collect")
    c.add_argument("smelt"), c.add_argument("suite", type=pathlib.Path), c.add_argument("out", type=pathlib.Path), c.add_argument("names", nargs="*")
    c.add_argument("--processors", default="machine,vnni,avx512,avx2"), c.add_argument("--precisions", default="float,bfloat16,int8")
    c.set_defaults(run=collect)
    t = commands.add_parser("time")
    t.add_argument("layers", type=pathlib.Path, nargs="+"), t.add_argument("--old", required=True), t.add_argument("--new", action="append", required=True)
    t.add_argument("--programs", type=pathlib.Path, help="folder that keeps what is compiled from call to call")
    t.add_argument("--isa"), t.add_argument("--threads", type=int, default=1), t.add_argument("--turns", type=int, default=2), t.add_argument("--milliseconds", type=float, default=8)
    t.add_argument("--passes", type=int, default=2)
    t.set_defaults(run=time_layers)
    a = ap.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
