#!/usr/bin/env python3
"""smelt beside OpenVINO in its default precision (bfloat16 where the processor multiplies it): openvino_precision.py SMELT SUITE CONVERTED [NAME...]

SUITE is a folder of NAME/saved_model with NAME/inputs_B.npz and outputs_B.npz, CONVERTED one of models that smelt made bfloat16. Both are timed in turns,
the best median of the rounds counts. IR files are taken from SUITE/_peers/NAME/model.xml, or converted. Needs openvino, tensorflow and
tensorflow-serving-api; run it on a machine that does nothing else."""
import argparse
import pathlib
import sys
import tempfile

from bench import write_log
from measure import best, script_median, smelt_median

NAMES = ["resnet50", "mobilenet_v2", "efficientnet_b0", "bert_small"]

OPENVINO = """
import json, sys, time
import numpy as np, openvino as ov
path, npz, threads, repeat = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
core = ov.Core()
model = core.read_model(path) if path.endswith(".xml") else ov.convert_model(path)
values = dict(np.load(npz))
ports = {}
for port in model.inputs:
    key = next(k for k in values if any(n == k or n.split(":")[0] == k or n.split(":")[0].endswith("_" + k) for n in port.get_names()))
    ports[port] = values[key]
model.reshape({p: v.shape for p, v in ports.items()})
compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1})
request = compiled.create_infer_request()
for i, v in enumerate(ports.values()):
    request.set_input_tensor(i, ov.Tensor(np.ascontiguousarray(v)))
times = []
for _ in range(repeat):
    t = time.perf_counter()
    request.infer()
    times.append(time.perf_counter() - t)
print(json.dumps(1e3 * sorted(times)[len(times) // 2]))
"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("suite", type=pathlib.Path), ap.add_argument("converted", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--rounds", type=int, default=2), ap.add_argument("--batches", default="1,8"), ap.add_argument("--threads", default="1,2")
    a = ap.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_openvino_"))
    print(f"{'model':16} {'batch':>5} {'threads':>7} {'smelt ms':>9} {'OpenVINO':>9} {'times':>6}")
    for name in a.names or NAMES:
        ir = a.suite / "_peers" / name / "model.xml"
        other = ir if ir.exists() else a.suite / name / "saved_model"
        for batch in map(int, a.batches.split(",")):
            npz, log = a.suite / name / f"inputs_{batch}.npz", work / f"{name}_{batch}.tfrecord"
            write_log(npz, log, str(a.suite / name / f"outputs_{batch}.npz"))
            for threads in map(int, a.threads.split(",")):
                repeat = 60 if batch == 1 else 12
                times = [[], []]
                for _ in range(a.rounds):
                    times[0].append(smelt_median(a.smelt, str(a.converted / name), str(log), threads, repeat))
                    times[1].append(script_median(OPENVINO, threads, other, npz, threads, repeat))
                s, o = map(best, times)
                print(f"{name:16} {batch:5} {threads:7} {s or float('nan'):9.3f} {o or float('nan'):9.3f} {o / s if s and o else float('nan'):6.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
