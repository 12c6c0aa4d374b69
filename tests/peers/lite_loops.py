#!/usr/bin/env python3
"""The recurrent layers of recurrent_models.py as .tflite files, answered by LiteRT: lite_loops.py SMELT [NAME...] [--keep FOLDER]

Prints a row for each model: whether LiteRT answers as TensorFlow, the recurrent operators and loops of the file, and why loops are none.
A name is a pattern of whole names. Fails where an answer differs, or where WANTED has other operators; a model that smelt refuses in words is listed."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import recurrent_models
from lite_models import Model
from lite_process import difference, litert_answers, one_line, operators

OPERATORS = ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "WHILE")
# Of names, the operators that are to be found.
WANTED = {
    "keras._lstm_(last|sequences|free_time|one_batch|backwards|masked|words|unrolled|relu|time_major)": "1 UNIDIRECTIONAL_SEQUENCE_LSTM",
    "keras._lstm_(stacked|bidirectional|bidirectional_masked)": "2 UNIDIRECTIONAL_SEQUENCE_LSTM",
    "keras._simplernn_(last|sequences|free_time|one_batch|states_out|backwards|masked|masked_sequences|words|unrolled|relu|time_major)": "1 UNIDIRECTIONAL_SEQUENCE_RNN",
    "v1_(basiclstm|lstm)_static": "1 UNIDIRECTIONAL_SEQUENCE_LSTM",
    "v1_basicrnn_(static|dynamic|dynamic_while)|written_(over_rows|scan)": "1 UNIDIRECTIONAL_SEQUENCE_RNN",
    "keras._simplernn_(stacked|bidirectional|bidirectional_masked)": "2 UNIDIRECTIONAL_SEQUENCE_RNN",
}


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("smelt"), ap.add_argument("names", nargs="*"), ap.add_argument("--keep")
    a = ap.parse_intermixed_args()
    smelt = os.path.abspath(a.smelt)
    work = pathlib.Path(a.keep or tempfile.mkdtemp(prefix="smelt_lite_loops_"))
    work.mkdir(parents=True, exist_ok=True)
    failed, refused = [], []
    for name, build in recurrent_models.ROWS.items():
        if a.names and not any(re.fullmatch(n, name) for n in a.names):
            continue
        path, log, file = work / name, work / f"{name}.tfrecord", work / f"{name}.tflite"
        try:
            if not log.exists():
                recurrent_models.record(path, log, build(path))
        except Exception as e:  # TensorFlow itself cannot make or run it: reported, not judged
            print(f"{name:34} not made: {type(e).__name__}: {one_line(str(e), 120)}", flush=True)
            continue
        file.unlink(missing_ok=True)
        p = subprocess.run([smelt, "lite", str(path), str(file), "--explain"], capture_output=True, text=True)
        said = p.stdout + p.stderr
        if not file.exists():
            (refused if 0 < p.returncode < 128 else failed).append(name)
            print(f"{name:34} refused  {one_line(said, 300)}", flush=True)
            continue
        model = Model(path, log, {})
        answers = litert_answers([(file, model.requests)])[0]
        why = next(filter(None, (difference(got, want, 1e-4) for got, want in zip(answers, model.wanted))), "")
        if why:
            failed.append(name)
        counts = collections.Counter(o for g in operators(file.read_bytes()) for o in g)
        found = ", ".join(f"{counts[o]} {o}" for o in OPERATORS if counts[o])
        wanted = next((w for pattern, w in WANTED.items() if re.fullmatch(pattern, name)), found)
        if found != wanted and name not in failed:
            failed.append(name)
            why = f"wanted {wanted}"
        print(f"{name:34} {'WRONG' if why else 'right':6} {sum(counts.values()):4} {found}  {one_line(why, 200)}", flush=True)
        for line in re.findall(r"^.*(?:FuseLstm|FuseRnn|LoopOverArrays|lstm_).*$", said, re.M):
            print("    " + line.strip()[:200])
    print(f"{len(failed)} failed: {' '.join(failed)}; {len(refused)} refused: {' '.join(refused)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
