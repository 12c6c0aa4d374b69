#!/usr/bin/env python3
"""How fast .tflite files answer in smelt and in LiteRT with XNNPACK: lite_speed.py SMELT SUITE [NAME...] [--kinds float,dynamic,int8,int16x8] [--threads 1,2]

SUITE is as for bench.py: SUITE/NAME/saved_model and inputs_1.npz. smelt lite writes each file (batch 1; int8 and int16x8 are full integer with float borders, their samples are
the suite's inputs and noise around them). The two engines take turns, --rounds times, each in a process of its own on as many cores as threads; what counts is the
best median of each, and the ratio smelt / LiteRT. Then the cold start: from exec to exit of `smelt run` of a fresh process on the float file of mlp_tabular, or of
the first NAME. Files stay in --files. Needs bench/requirements.txt; run it on a machine that does nothing else."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from first_answer import fresh
from measure import best, pin, script_median

NAMES = ["resnet50", "mobilenet_v2", "keyword_spotting", "mlp_tabular"]
FLAGS = {"float": [], "dynamic": ["--quantize", "dynamic"], "int8": ["--quantize", "int8"], "int16x8": ["--quantize", "int16x8"]}

LITERT = """
import json, sys, time
import numpy as np
from ai_edge_litert.interpreter import Interpreter
path, threads, seconds, inputs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), dict(np.load(sys.argv[4]))
runtime = Interpreter(model_path=path, num_threads=threads)
details = runtime.get_signature_runner().get_input_details()
runtime.allocate_tensors()
for name, value in inputs.items():
    runtime.set_tensor(details[name]['index'], value)
def ask(seconds):
    took, begin = [], time.perf_counter()
    while len(took) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        runtime.invoke()
        took.append(time.perf_counter() - start)
    return sorted(took)[len(took) // 2] * 1e3
ask(seconds / 5)
print(json.dumps(ask(seconds)))
"""


def write_samples(path, inputs):
    """The inputs, and three times more with noise; whole numbers, which may be indices, as they are."""
    import numpy as np
    random = np.random.default_rng(1)

    def near(v):
        return (v + random.standard_normal(v.shape) * v.std() / 4).astype(v.dtype) if v.dtype.kind == "f" else v
    np.savez(path, **{k: np.concatenate([v] + [near(v) for _ in range(3)]) for k, v in inputs.items()})


def make(smelt, suite, name, kind, files):
    """The file, made once; None where smelt cannot, which is said."""
    import numpy as np
    out = files / f"{name}_{kind}.tflite"
    if out.exists():
        return out
    flags = list(FLAGS[kind])
    if kind in ("int8", "int16x8"):
        samples = files / f"{name}_samples.npz"
        write_samples(samples, dict(np.load(suite / name / "inputs_1.npz")))
        flags += ["--representative", str(samples)]
    p = subprocess.run([smelt, "lite", str(suite / name / "saved_model"), str(out), "--batch", "1", *flags], capture_output=True, text=True)
    if p.returncode != 0:
        print(f"{name} {kind}: smelt lite: {p.stderr.strip()[-400:]}")
        return None
    return out


def smelt_median(smelt, path, threads, seconds):
    p = subprocess.run(pin(threads) + [smelt, "bench", str(path), "--whole", "--json", "--threads", str(threads), "--seconds", str(seconds)], capture_output=True, text=True)
    if p.returncode != 0:
        print(f"{path.name}: smelt bench: {p.stderr.strip()[-400:]}")
        return None
    return json.loads(p.stdout)["whole"]["median_ms"]


def cold_start(smelt, path, inputs, rounds):
    """The median of the milliseconds of fresh processes; None where they fail. The first, which brings files into memory, does not count."""
    import numpy as np
    files = []
    for key, value in inputs.items():
        file = path.with_name(f"{path.stem}_{key}.npy")
        np.save(file, value)
        files.append(f"{key}={file}")
    times = [fresh([os.path.abspath(smelt), "run", str(path), "--signature_def", "serving_default", "--inputs", ";".join(files)]) for _ in range(rounds + 1)][1:]
    return None if any(t is None for t in times) else statistics.median(t[0] for t in times)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("suite", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--kinds", default="float,dynamic,int8"), ap.add_argument("--threads", default="1,2"), ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=2), ap.add_argument("--files", type=pathlib.Path, default=pathlib.Path("/tmp/lite_speed")), ap.add_argument("--json")
    a = ap.parse_args()
    import numpy as np
    a.files.mkdir(parents=True, exist_ok=True)
    names, rows = a.names or NAMES, []
    print(f"{'model':20} {'file':8} {'threads':>7} {'smelt ms':>10} {'LiteRT ms':>10} {'ratio':>7}")
    for name in names:
        for kind in a.kinds.split(","):
            path = make(a.smelt, a.suite, name, kind, a.files)
            if path is None:
                continue
            for threads in map(int, a.threads.split(",")):
                ours, theirs = [], []
                for _ in range(a.rounds):
                    ours.append(smelt_median(a.smelt, path, threads, a.seconds))
                    theirs.append(script_median(LITERT, threads, path, threads, a.seconds, a.suite / name / "inputs_1.npz"))
                x, y = best(ours), best(theirs)
                row = {"model": name, "kind": kind, "threads": threads, "smelt_ms": x, "litert_ms": y, "ratio": x / y if x and y else None}
                rows.append(row)
                cell = lambda v, width: f"{v:{width}.3f}" if v is not None else f"{'cannot':>{width}}"
                print(f"{name:20} {kind:8} {threads:7} {cell(x, 10)} {cell(y, 10)} {cell(row['ratio'], 7)}", flush=True)
    for kind in a.kinds.split(","):
        ratios = [r["ratio"] for r in rows if r["kind"] == kind and r["ratio"]]
        if ratios:
            print(f"{kind}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, largest {max(ratios):.3f}")
    name = "mlp_tabular" if "mlp_tabular" in names else names[0]
    path = make(a.smelt, a.suite, name, "float", a.files)
    cold = cold_start(a.smelt, path, dict(np.load(a.suite / name / "inputs_1.npz")), 11) if path else None
    print(f"cold start of {name}: " + (f"{cold:.2f} ms" if cold is not None else "cannot"))
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({"rows": rows, "cold_start_ms": cold}, indent=1))
    return 0 if rows and all(r["ratio"] for r in rows) and cold is not None else 1


if __name__ == "__main__":
    sys.exit(main())
