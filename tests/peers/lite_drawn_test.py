#!/usr/bin/env python3
"""Drawn .tflite operators in LiteRT and in smelt: lite_drawn_test.py SMELT [--seed N] [--count N] [--only FAMILY[:CASE]] [--keep FOLDER] [--refused]

A file of one operator each: its types, scales, zero points, shapes and options are drawn (lite_drawers.py, lite_drawn_movement.py, lite_drawn_more.py; lite_drawn_recurrent.py: what is kept between calls; lite_drawn_control.py: several subgraphs; lite_drawn_graphs.py: some in a row), always the same for a seed. Integers are those of LiteRT by default (XNNPACK
where that runs the operator), bit for bit. What LiteRT refuses is counted; what it runs, smelt must run. --refused: also prints what LiteRT refuses, "LiteRT alone" where smelt runs it; --keep: keeps the files of failures."""
import argparse
import collections
import os
import pathlib
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np

import lite_checks
from checks import check, finish
from lite_draw import Draw
from lite_drawers import DRAWERS
from lite_drawn_control import CONTROL
from lite_drawn_graphs import GRAPHS
from lite_drawn_more import MORE
from lite_drawn_movement import MOVEMENT
from lite_drawn_recurrent import RECURRENT
from lite_process import litert_answers

FAMILIES = {**DRAWERS, **MOVEMENT, **GRAPHS, **RECURRENT, **MORE, **CONTROL}
flags = argparse.ArgumentParser()
flags.add_argument("smelt")
flags.add_argument("--seed", type=int, default=20)
flags.add_argument("--count", type=int, default=20, help="cases of each family")
flags.add_argument("--only", default="")
flags.add_argument("--keep", type=pathlib.Path)
flags.add_argument("--refused", action="store_true")
flags = flags.parse_args()
family, _, case = flags.only.partition(":")


def drawn():
    for i, (name, draw) in enumerate(FAMILIES.items()):
        for n in [int(case)] if case else range(flags.count):
            if not family or name == family:
                d = Draw(flags.seed, i, n)
                draw(d)
                yield f"{name}:{n}", d


work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_drawn_"))
cases = []
for name, d in drawn():
    path = work / f"{name.replace(':', '_')}.tflite"
    path.write_bytes(d.bytes())
    cases.append((name, d, path))
answers = litert_answers([(path, [("serving_default", inputs) for inputs in d.calls()]) for _, d, path in cases], limit=3000)
refused, taken, ran = collections.Counter(), collections.Counter(), collections.Counter()
for (name, d, path), wanted in zip(cases, answers):
    about = f"--seed {flags.seed} --only {name}: {', '.join(d.about)}"
    calls = d.calls()
    if len(calls) == 1:
        got = lite_checks.smelt(path.stem, path.read_bytes(), calls[0])
        answered = [got]
    else:
        got = lite_checks.smelt_calls(path.stem, path.read_bytes(), calls)
        answered = [got] * len(calls) if isinstance(got, str) else got
    want = next((w for w in wanted if isinstance(w, str)), None)
    if want:
        refused[name.split(":")[0]] += 1
        # Outputs are there, or a reason is said.
        check(f"{name}: no crash", not isinstance(got, str) or got.startswith("error") or "INTERNAL" not in got and got, f"{about}\n{got}")
        if not isinstance(got, str):
            taken[name.split(":")[0]] += 1
        if flags.refused:
            print(f"LiteRT{'' if isinstance(got, str) else ' alone'} refuses {about}: {' '.join(want.split())[:300]}")
    else:
        ran[name.split(":")[0]] += 1
        whys = [lite_checks.difference(g, w, 0, d.tolerance) for g, w in zip(answered, wanted)]
        why = next((f"call {i}: {w}" if len(whys) > 1 else w for i, w in enumerate(whys) if w), "")
        check(name, not why, f"{about}\n{why}")
        if why and flags.keep:
            flags.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, flags.keep)
            for i, inputs in enumerate(calls):
                np.savez(flags.keep / f"{path.stem}{i or ''}.npz", **inputs)
    shutil.rmtree(lite_checks.work / path.stem)
shutil.rmtree(work)
print(f"LiteRT refuses {dict(refused)}, of which smelt runs {dict(taken)}")
if not flags.only:
    check("LiteRT runs most", sum(ran.values()) > sum(refused.values()), f"{ran} {refused}")
    check("every family runs", set(ran) == set(FAMILIES), set(FAMILIES) - set(ran))
finish()
