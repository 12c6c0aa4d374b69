#!/usr/bin/env python3
"""Measures smelt beside the other engines, model by model: engines.py SMELT SUITE [--names a,b] [--batches 1,8] [--threads 1,2] [--engines ...] [--json FILE]

SUITE is a folder of NAME/saved_model with NAME/inputs_B.npz and outputs_B.npz (other batches repeat the rows of 8). What an engine loads is converted once into
--cache. For each model, number of threads and batch all engines are loaded at once, each in a process of its own on as many cores, and take turns; the best
median of the rounds counts. An engine whose answers are off by more than a thousandth of the outputs' range (int8, bf16: a fifth) is marked and not counted.

Float engines are held to smelt, int8 ones to smelt_int8 (FOLDER of --smelt_int8 has converted models by name), openvino_bf16 to smelt_bf16 (--smelt_bf16);
without these folders they are shown and not counted. Needs bench/requirements.txt; run it on a machine that does nothing else."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

from engine_worker import FILES, NEEDS, arrays
from measure import pin

HERE = pathlib.Path(__file__).resolve().parent
WORKER = str(HERE / "engine_worker.py")
QUIET = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", GLOG_minloglevel="3", PYTHONWARNINGS="ignore")
FLOAT = ["smelt", "tf", "ort", "openvino", "litert"]
AHEAD, BEHIND = 1.0, 0.95


def form(engine):
    """What an engine computes in, as the end of its name says."""
    return next((f for f in ("int8", "bf16") if engine.endswith("_" + f)), "float")


class Converter:
    """What engines load, made where it is not there; what could not be made is remembered with its reason."""

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache
        cache.mkdir(parents=True, exist_ok=True)

    def error(self, engine, batch):
        return self._make(FILES[engine][0], batch) if engine in FILES else ""

    def _make(self, kind, batch):
        for before in NEEDS.get(kind, []):
            # OpenVINO may do without the ONNX file.
            if (error := self._make(before, batch)) and (kind, before) != ("openvino", "onnx") and (kind, before) != ("openvino_int8", "onnx"):
                return error
        name = f"{kind}_{batch}" if kind.startswith("litert") else kind
        said = self.cache / f"{name}.json"
        if not said.exists():
            print(f"{self.folder.name}: converting, {name}", file=sys.stderr)
            try:
                p = subprocess.run([sys.executable, WORKER, "convert", kind, self.folder, self.cache, str(batch)], env=QUIET, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, timeout=900)
                said.write_text(p.stdout if p.stdout.startswith("{") else json.dumps({"error": f"the converter ended with {p.returncode}"}))
            except subprocess.TimeoutExpired:
                said.write_text(json.dumps({"error": "over 900 s"}))
        return json.loads(said.read_text()).get("error", "")


class Worker:
    def __init__(self, engine, folder, cache, threads):
        self.process = subprocess.Popen(pin(threads) + [sys.executable, WORKER, "serve", engine, folder, cache, str(threads)], env=QUIET, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, batch, seconds):
        try:
            print(json.dumps({"batch": batch, "seconds": seconds}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Smelt:
    """The same, each turn a process of its own."""

    def __init__(self, smelt, model, folder, cache, threads):
        self.smelt, self.model, self.folder, self.cache, self.threads = smelt, str(model), folder, cache, threads

    def log(self, batch):
        path = self.cache / f"b{batch}.tfrecord"
        if not path.exists():
            os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
            from bench import write_log
            write_log(arrays(self.folder, "inputs", batch), path, arrays(self.folder, "outputs", batch))
        return str(path)

    def ask(self, batch, seconds):
        more = ["bench", "--whole", "--seconds", str(seconds)] if seconds else ["replay"]
        p = subprocess.run(pin(self.threads) + [self.smelt, *more, "--json", "--log", self.log(batch), "--threads", str(self.threads), self.model], capture_output=True, text=True)
        try:
            said = json.loads(p.stdout)
        except ValueError:
            return {"error": p.stderr[-200:].strip()}
        if seconds:
            return {"ms": said["whole"]["median_ms"]}
        return {"worst": max(o["max_range"] for o in said["outputs"].values())} if said["code"] == "OK" else {"error": said["message"]}

    def close(self):
        pass


def cells_of(a, name, engines):
    """{"model", "batch", "threads", "ms": {engine: number}, "error": {engine: text}} for each batch and number of threads."""
    folder, cache = pathlib.Path(a.suite).resolve() / name, pathlib.Path(a.cache).resolve() / name
    converter = Converter(folder, cache)
    for threads in map(int, a.threads.split(",")):
        workers = {}
        for batch in map(int, a.batches.split(",")):
            if not (folder / f"inputs_{min(batch, 8)}.npz").exists():
                continue
            cell = {"model": name, "batch": batch, "threads": threads, "ms": {}, "error": {}}
            for engine in engines:
                if engine.split("_")[0] == "smelt":
                    models = {"float": folder / "saved_model", "int8": pathlib.Path(a.smelt_int8) / name, "bf16": pathlib.Path(a.smelt_bf16) / name}
                    workers.setdefault(engine, Smelt(a.smelt, models[form(engine)], folder, cache, threads))
                elif error := converter.error(engine, batch):
                    cell["error"][engine] = error
                    continue
                else:
                    workers.setdefault(engine, Worker(engine, folder, cache, threads))
                said = workers[engine].ask(batch, 0)
                limit = 1e-3 if form(engine) == "float" else 0.2
                if "error" in said:
                    cell["error"][engine] = said["error"]
                elif said["worst"] > limit:
                    cell["error"][engine] = f"its answers are off by {said['worst']:.2g}"
            for _ in range(a.rounds):
                for engine in engines:
                    if engine in cell["error"]:
                        continue
                    said = workers[engine].ask(batch, a.seconds)
                    if "error" in said:
                        cell["error"][engine] = said["error"]
                    else:
                        cell["ms"][engine] = min(said["ms"], cell["ms"].get(engine, math.inf))
            yield cell
        for worker in workers.values():
            worker.close()


def ratios(cell):
    """(form, the best peer, its time by smelt's) of each form that smelt and a peer compute in."""
    for own in (e for e in cell["ms"] if e.split("_")[0] == "smelt"):
        peers = {e: ms for e, ms in cell["ms"].items() if form(e) == form(own) and e != own}
        if peers:
            best = min(peers, key=peers.get)
            yield form(own), best, peers[best] / cell["ms"][own]


def summary(cells):
    lines = []
    for what in ("float", "bf16", "int8"):
        found = [(r, c, peer) for c in cells for f, peer, r in ratios(c) if f == what]
        if not found:
            continue
        mean = math.exp(sum(math.log(r) for r, _, _ in found) / len(found))
        lines.append(f"{what}: {len(found)} cells, smelt ahead in {sum(r >= AHEAD for r, _, _ in found)}; best peer / smelt: geometric mean {mean:.2f}, least {min(r for r, _, _ in found):.2f}")
        lines += [f"  under {BEHIND}: {c['model']} b{c['batch']} t{c['threads']}: {r:.2f} ({peer})" for r, c, peer in sorted(found, key=lambda f: f[0]) if r < BEHIND]
    return lines


def markdown(cells):
    """One row for each model and form: the time of smelt, and in brackets the best peer's by smelt's, of each batch and number of threads."""
    columns = sorted({(c["batch"], c["threads"]) for c in cells})
    lines = ["| model | " + " | ".join(f"b{b} t{t}" for b, t in columns) + " |", "|---|" + "---|" * len(columns)]
    for what in ("float", "bf16", "int8"):
        for name in dict.fromkeys(c["model"] for c in cells):
            found = {(c["batch"], c["threads"]): (c["ms"], peer, r) for c in cells if c["model"] == name for f, peer, r in ratios(c) if f == what}
            if not found:
                continue
            own = "smelt" if what == "float" else f"smelt_{what}"
            shown = [f"{found[k][0][own]:.3g} ({found[k][2]:.2f} {found[k][1]})" if k in found else "" for k in columns]
            lines.append(f"| {name}{'' if what == 'float' else ' ' + what} | " + " | ".join(shown) + " |")
    return lines


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("suite")
    ap.add_argument("--names", help="models, separated by ','; left out: all of the suite"), ap.add_argument("--batches", default="1,8"), ap.add_argument("--threads", default="1,2")
    ap.add_argument("--engines", default=",".join(FLOAT + ["openvino_bf16"]), help=f"of {', '.join(FLOAT + [e for e in FILES if form(e) != 'float'])}, smelt_int8, smelt_bf16")
    ap.add_argument("--seconds", type=float, default=1.6, help="of one turn"), ap.add_argument("--rounds", type=int, default=2), ap.add_argument("--json", help="write all numbers there")
    ap.add_argument("--markdown", help="write a table of them there")
    ap.add_argument("--smelt_int8", default=""), ap.add_argument("--smelt_bf16", default="")
    ap.add_argument("--cache", default=str(HERE / "out" / "engines"), help="where converted models are kept")
    a = ap.parse_args()
    names = a.names.split(",") if a.names else sorted(p.parent.name for p in pathlib.Path(a.suite).glob("*/saved_model"))
    engines = a.engines.split(",")
    print(f"{'model':20} {'cell':7}" + "".join(f"{e:>15}" for e in engines) + "  best peer / smelt", flush=True)
    cells = []
    for name in names:
        for cell in cells_of(a, name, engines):
            cells.append(cell)
            shown = "".join(f"{cell['ms'][e]:15.4f}" if e in cell["ms"] and e not in cell["error"] else f"{'cannot':>15}" for e in engines)
            print(f"{name:20} b{cell['batch']:<2} t{cell['threads']:<2}" + shown + "  " + ", ".join(f"{r:.2f} ({peer})" for _, peer, r in ratios(cell)), flush=True)
    for e in engines:
        reasons = {}
        for c in cells:
            if e in c["error"]:
                reasons.setdefault((c["model"], c["error"][e]), []).append(f"b{c['batch']} t{c['threads']}")
        for (model, why), where in reasons.items():
            print(f"{e} cannot {model} {', '.join(where)}: {why[:150]}")
    print("\n".join(summary(cells)))
    if a.markdown:
        pathlib.Path(a.markdown).write_text("\n".join(markdown(cells) + [""] + summary(cells)) + "\n")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({"milliseconds": cells}, indent=1))


if __name__ == "__main__":
    main()
