#!/usr/bin/env python3
"""Asks TensorFlow's virtual cluster for the answers of the cases in tests/estimates: make_estimate_cases.py SMELT FILE.case... [--print]

Of each case (tests/estimate_runner.cc has the form) `in`, `device`, `feeds` and `fetches` are read; what TensorFlow estimates becomes `runs` and `peaks`. --print shows the answers and writes nothing. Needs tensorflow."""
import argparse
import os
import pathlib
import tempfile

import make_grappler_cases as grappler
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.grappler import item as items

SECTIONS = ("in", "runs", "peaks")


def estimate(smelt, work, head, lines):
    """The lines of `runs` and `peaks`."""
    asker = grappler.Asker(smelt, work)
    (work / "in.graph").write_text("\n".join(lines) + "\n")
    asker.turn(work / "in.graph", work / "in.pb")
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.ParseFromString((work / "in.pb").read_bytes())
    meta.graph_def.versions.producer = 2000
    for name in grappler.words(head, "fetches"):
        meta.collection_def["train_op"].node_list.value.append(name)
    item = items.Item(meta, ignore_colocation=False)
    machine = grappler.cluster(head, timeline=True)
    costs, _, stats = machine.MeasureCosts(item)
    times = {cost.node: (cost.compute_time, cost.memory_time) for cost in costs}
    runs = {}
    for device in stats.dev_stats:
        for node in device.node_stats:
            if node.node_name in times:
                runs[node.node_name] = (node.all_start_nanos, node.all_start_nanos + node.all_end_rel_nanos, *times[node.node_name])
    peaks = []
    for device, (used, live) in machine.DeterminePeakMemoryUsage(item).items():
        if "Channel" in device:
            continue
        peaks.append(f"peak {device} {used}")
        for name, port, size, begin, end in live:
            peaks.append(f"live {device} {'copy' if name.startswith('Recv_') else f'{name}:{port}'} {size} {begin} {end}")
    machine.Shutdown()
    ours = {line.split(" = ")[0] for line in lines if " = " in line}
    return [" ".join([name, *map(str, run)]) for name, run in sorted(runs.items()) if name in ours], sorted(peaks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smelt")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--print", action="store_true", dest="only_print")
    args = parser.parse_args()
    for path in map(pathlib.Path, args.files):
        cases = grappler.parse(path.read_text(), SECTIONS)
        with tempfile.TemporaryDirectory() as work:
            for head, sections in cases:
                sections["runs"], sections["peaks"] = estimate(os.path.abspath(args.smelt), pathlib.Path(work), head, sections["in"])
        text = "----\n".join("\n".join(head + [line for name in SECTIONS for line in [name] + sections[name]]) + "\n" for head, sections in cases)
        if args.only_print:
            print(text)
        else:
            path.write_text(text)


if __name__ == "__main__":
    main()
