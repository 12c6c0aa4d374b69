#!/usr/bin/env python3
"""Models that other libraries build and export, through every command: library_models.py SMELT [NAME...] [--keep FOLDER] [--replay_only] [--seconds S] [--steps STEP...]

One row (library_model_rows/*.py) saves a small model with random weights as its library's users do; what is not installed is skipped (each row says what it
needs). TensorFlow answers requests in the process that built the model; smelt shows, replays, optimizes, exports to TensorFlow Lite (library_lite.py), converts in every way,
reverts and replays again. --steps: of optimize, lite, convert those named; --tensorflow: TensorFlow's converter exports every model too, to compare sizes.
Needs tensorflow, tensorflow-serving-api and whatever rows are to run; docs in library_model_rows/rows.py."""
import argparse
import importlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import library_lite
from library_model_rows.rows import ROWS

FAMILIES = ("transformers_tf", "keras_libraries", "probability", "version_one", "modules", "task_libraries", "services", "keras_models", "training", "layer_libraries", "keras_exports",
            "vision", "sequences", "tabular", "generative", "pipelines", "spellings", "inference", "sound", "sight", "language", "decisions", "science")
PLACE = 'tpu_functions { signature_name: "%s" } '
PLAIN = "disable_default_optimizations: true "
BATCH = "batch_options { num_batch_threads: 1 max_batch_size: 8 batch_timeout_micros: 100 allowed_batch_sizes: 4 allowed_batch_sizes: 8 } "
QUANTIZE = 'quantization_options { quantization_method { preset_method: METHOD_%s } min_num_elements_for_weights: 16 signature_keys: "%s" %s } '
SAMPLES = 'representative_datasets { key: "%s" value { tfrecord_file_path: "%s" } } '
EXACT, ROUGH, RUNS = "exact", "rough", "runs"  # how closely a converted model's answers are compared


def call(timeout, *args):
    """(exit code, what it printed, seconds of processor time)"""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    start = used()
    try:
        p = subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="replace", timeout=timeout)
        return p.returncode, p.stdout + p.stderr, used() - start
    except subprocess.TimeoutExpired:
        return -1, f"no answer in {timeout} s", timeout


def variants(facts, log):
    """(name, options, flags, how closely it must answer) of each conversion."""
    signature = facts["signatures"][0]
    place = PLACE % signature
    soft = ["--allow_soft_placement"]
    return [
        ("placed", place + PLAIN, soft, EXACT),
        ("default", place, soft, ROUGH),
        ("io_shape", place + "bfloat16_optimization: DISABLED", soft, EXACT),
        ("auto_place", PLAIN, ["--auto_place"], EXACT),
        ("batched", place + BATCH + PLAIN, soft, EXACT),
        ("weight_only", QUANTIZE % ("STATIC_RANGE_WEIGHT_ONLY_INT8", signature, "") + PLAIN, [], RUNS),
        ("dynamic", QUANTIZE % ("DYNAMIC_RANGE_INT8", signature, "") + PLAIN, [], RUNS),
        ("static", QUANTIZE % ("STATIC_RANGE_INT8", signature, SAMPLES % (signature, str(log.with_suffix(".samples.tfrecord")))) + PLAIN, [], RUNS),
    ]


class Stranger:
    def __init__(self, smelt, name, work, seconds):
        self.smelt, self.name, self.path, self.log, self.seconds = smelt, name, work / name, work / f"{name}.tfrecord", seconds
        self.facts, self.failures, self.refused = {}, [], []

    def made(self):
        """What TensorFlow could not do with it, or "" where its answers are there."""
        facts = self.log.with_suffix(".json")
        self.facts = json.loads(facts.read_text())
        return self.facts.get("skipped") or self.facts.get("unmade") or ""

    def fail(self, step, text):
        self.failures.append(step)
        print(f"FAILED {self.name} {step}: {' '.join(text.split())[:600]}", flush=True)

    def replay(self, step, path, closeness):
        if self.facts["custom"]:  # ops that only the library's own code can run: such a model shows, converts and reverts
            return True, 0
        # A TPU's program rounds 16-bit types less often.
        exact = closeness == EXACT and not (self.facts["narrow"] and step != "replay")
        tolerance = ["--rtol", "1e-3", "--atol", "1e-4"] if exact else ["--rtol", "0", "--atol", "1e-30", "--range_tol", "0.1"]
        if exact and self.facts["narrow"]:  # the last digit of a 16-bit type
            tolerance = ["--rtol", "2e-2", "--atol", "2e-3"]
        # Numbers are drawn for the rows that fill up a batch too, and a TPU may have a sampler of its own, which stays when a body is turned back.
        own_sampler = self.facts["chooses"] and step != "replay"
        any_value = closeness == RUNS or (self.facts["draws"] and (step.startswith("batched") or own_sampler))
        random = self.facts["outputs"] if any_value else self.facts["random"]
        code, text, seconds = call(600, self.smelt, "replay", path, "--log", self.log, *tolerance, *(["--shapes_only", *random] if random else []))
        # Int8 moves values, and where sizes depend on values, sizes.
        good = code == 0 or (closeness == RUNS and code == 1 and ", wanted " in text)
        if not good:
            self.fail(step, text)
        return good, seconds

    def optimize(self):
        out = self.path.with_name(self.name + ".optimized")
        code, text, _ = call(300, self.smelt, "optimize", self.path, out, "--overwrite")
        if code != 0:
            self.fail("optimize", text)
        else:
            self.replay("optimized", out, EXACT)
        shutil.rmtree(out, ignore_errors=True)

    def check(self, replay_only, steps, tensorflow):
        code, text, _ = call(120, self.smelt, "show", self.path, "--all")
        if code != 0:
            self.fail("show", text)
        good, seconds = self.replay("replay", self.path, EXACT)
        if seconds > self.seconds:
            print(f"SLOW {self.name}: {seconds:.1f} s (TensorFlow loads and answers once in {self.facts['seconds']:.1f} s)", flush=True)
        if not good or replay_only or not self.facts["signatures"]:
            return
        if "optimize" in steps:
            self.optimize()
        if "lite" in steps:
            library_lite.check(self, call, tensorflow)
        if "convert" not in steps:
            return
        out, back = self.path.with_name(self.name + ".out"), self.path.with_name(self.name + ".back")
        for step, options, flags, closeness in variants(self.facts, self.log):
            if step == "static" and self.facts["custom"]:  # it runs the model
                continue
            code, text, _ = call(600, self.smelt, "convert", self.path, out, "--overwrite",
                                 "--converter_options_string", options, *flags)
            if code == 1 and ("error: INVALID_ARGUMENT" in text or "error: UNIMPLEMENTED" in text) and step != "auto_place":  # a person judges whether rightly
                self.refused.append(step)
                print(f"refused {self.name} {step}: {' '.join(text[text.index('error:'):].split())[:300]}", flush=True)
                continue
            if code != 0:
                self.fail("convert " + step, text)
                continue
            good, _ = self.replay(step, out, closeness)
            if good and step in ("placed", "default", "auto_place", "batched"):
                code, text, _ = call(600, self.smelt, "convert", out, back, "--overwrite", "--revert")
                if "nothing to revert" in text and step == "auto_place":  # no part of it is worth a TPU
                    continue
                if code != 0:
                    self.fail("revert " + step, text)
                else:
                    self.replay(f"{step} and back", back, closeness)
        shutil.rmtree(out, ignore_errors=True), shutil.rmtree(back, ignore_errors=True)


def made_in_turn(smelt, names, work, seconds):
    """The models, built a few at a time in a process of their own: importing a library takes longer than building a model."""
    for i in range(0, len(names), 8):
        group = [Stranger(smelt, n, work, seconds) for n in names[i:i + 8]]
        while missing := [s.name for s in group if not s.log.with_suffix(".json").exists()]:
            code, text, _ = call(3600, sys.executable, __file__, "--make", ",".join(missing), work)
            left = [n for n in missing if not (work / f"{n}.json").exists()]
            if left:  # it ended while it built the first that is left
                (work / f"{left[0]}.json").write_text(json.dumps({"unmade": f"exit {code}: {' '.join(text.split())[-300:]}"}))
        yield from group


def load_rows():
    for family in FAMILIES:
        importlib.import_module("library_model_rows." + family)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("names", nargs="*"), ap.add_argument("--keep", type=pathlib.Path)
    ap.add_argument("--replay_only", action="store_true"), ap.add_argument("--seconds", type=float, default=2.0, help="a start slower than this is named")
    ap.add_argument("--steps", nargs="+", default=["optimize", "lite", "convert"]), ap.add_argument("--tensorflow", action="store_true")
    a = ap.parse_args()
    work = a.keep or pathlib.Path(tempfile.mkdtemp(prefix="smelt_strangers_"))
    work.mkdir(exist_ok=True)
    good, bad, skipped, unmade = [], [], [], []
    for s in made_in_turn(os.path.abspath(a.smelt), [n for n in ROWS if not a.names or n in a.names], work, a.seconds):
        name, problem = s.name, s.made()
        if problem:  # the library is not installed, or it or TensorFlow cannot build, save or run it: reported, not judged
            (skipped if s.facts.get("skipped") else unmade).append(name)
            print(f"not made: {name}: {problem}" if name in unmade else f"skipped: {name}: {problem}", flush=True)
            continue
        s.check(a.replay_only, a.steps, a.tensorflow)
        (bad if s.failures else good).append(name)
        print(f"{name}: {'FAILED ' + ', '.join(s.failures) if s.failures else 'good'}" + (f", refused {', '.join(s.refused)}" if s.refused else ""), flush=True)
        if not a.keep:
            shutil.rmtree(s.path, ignore_errors=True)
    if not a.keep:
        shutil.rmtree(work)
    print(f"{len(good)} good, {len(bad)} failed, {len(unmade)} not made, {len(skipped)} skipped" + (f"; failed: {' '.join(bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    load_rows()
    if len(sys.argv) == 4 and sys.argv[1] == "--make":
        from library_model_rows.record import make
        for row in sys.argv[2].split(","):
            make(row, pathlib.Path(sys.argv[3]))
        sys.exit()
    sys.exit(main())
