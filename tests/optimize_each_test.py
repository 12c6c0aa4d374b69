#!/usr/bin/env python3
"""Meaning is kept by each pass: optimize_each_test.py SMELT [MODELS LOGS]. Ends with 'N passed, N failed'.

Each recorded model (MODELS/NAME with LOGS/NAME.tfrecord; left out: tests/models) answers as TensorFlow recorded in sessions that
run no pass, each pass alone and all aggressively, and after `smelt optimize` did each pass alone and all aggressively. LOGS/NAME.json, where
there is one, says which outputs are random: of these type and shape alone are compared; an empty log is a model that TensorFlow refuses."""
import json
import pathlib
import shutil
import sys

from program import call, check, finish, models, work

PASSES = ["pruning", "implementation_selector", "function", "common_subgraph_elimination", "debug_stripper", "constfold", "shape", "pin_to_host", "arithmetic", "layout",
          "remap", "loop", "dependency"]
AGGRESSIVE = " ".join(f"{name}: AGGRESSIVE" for name in (
    "implementation_selector", "function_optimization", "common_subgraph_elimination", "constant_folding", "shape_optimization", "arithmetic_optimization",
    "layout_optimizer", "remapping", "loop_optimization", "dependency_optimization"))

folder, logs = (pathlib.Path(a) for a in sys.argv[2:4]) if len(sys.argv) > 3 else (models, models)
configs = {"aggressive": AGGRESSIVE, "of one node": "min_graph_nodes: -1 cpu_layout_conversion: NCHW_TO_NHWC"}
configs |= {name: f'optimizers: "{name}"' for name in PASSES}
configs |= {
    "memory": 'optimizers: "memory" memory_optimization: HEURISTICS',
    "scoped_allocator": 'optimizers: "scoped_allocator" scoped_allocator_optimization: ON',
    "auto_parallel": 'optimizers: "auto_parallel" auto_parallel { enable: true num_replicas: 2 }',
}
for name, text in configs.items():
    (work / f"{name}.config").write_text(text)

for log in sorted(logs.glob("*.tfrecord")):
    model = folder / log.stem
    facts = log.with_suffix(".json")
    random = sorted({o for c in json.loads(facts.read_text())["cases"] for o in c["random"]}) if facts.exists() else []
    if log.stat().st_size == 0:
        print(f"{model.name}: no records")
        continue

    def replay(*args):
        return call("replay", *args, "--log", log, *(["--shapes_only", *random] if random else []))

    for name in ["off", *configs]:
        code, out, err = replay(model, "--optimize", "off" if name == "off" else work / f"{name}.config")
        check(f"{log.stem}: a session with {name}", code == 0, out + err)
    for name in configs:
        where = work / "optimized"
        code, out, err = call("optimize", model, where, "--config", work / f"{name}.config")
        check(f"{log.stem}: optimized by {name}", code == 0 and "undone" not in out, out + err)
        code, out, err = replay(where)
        check(f"{log.stem}: answers after {name}", code == 0, out + err)
        shutil.rmtree(where, ignore_errors=True)
finish()
