#!/usr/bin/env python3
"""The default passes on large graphs: bench/large_graph.py SMELT [NODES...] (default: 10,000, 100,000 and 1,000,000 nodes)

A network of residual blocks (convolutions with bias and normalization, reshapes there and back, sums of constants, identities, checks, control edges) is optimized by `smelt optimize`. Printed are what is left, the time of the
passes, the same for a thousand nodes, and the memory at its peak, reading and writing included. Fails above 60 s or 4 GB, and where a thousand nodes take over four times as long in the largest graph as in the smallest, which fits into caches."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

smelt = sys.argv[1]
sizes = [int(n) for n in sys.argv[2:]] or [10_000, 100_000, 1_000_000]
MOST_SECONDS, MOST_BYTES, MOST_GROWTH = 60, 4 << 30, 4

BLOCK = """{p}/w = Const {{dtype=float, value=float[3,3,4,4]{{{i}}}}} @"/device:CPU:0"
{p}/b = Const {{dtype=float, value=float[4]{{{i}}}}} @"/device:CPU:0"
{p}/c = Conv2D({x}, {p}/w) {{T=float, data_format="NHWC", padding="SAME", strides=list(1, 1, 1, 1)}} @"/device:CPU:0"
{p}/ba = BiasAdd({p}/c, {p}/b) {{T=float, data_format="NHWC"}} @"/device:CPU:0"
{p}/r = Relu({p}/ba) {{T=float}} @"/device:CPU:0"
{p}/g = Const {{dtype=float, value=float[4]{{1}}}} @"/device:CPU:0"
{p}/z = Const {{dtype=float, value=float[4]{{0}}}} @"/device:CPU:0"
{p}/w2 = Const {{dtype=float, value=float[1,1,4,4]{{{i}}}}} @"/device:CPU:0"
{p}/c2 = Conv2D({p}/r, {p}/w2) {{T=float, data_format="NHWC", padding="SAME", strides=list(1, 1, 1, 1)}} @"/device:CPU:0"
{p}/n = FusedBatchNormV3({p}/c2, {p}/g, {p}/z, {p}/z, {p}/g) {{T=float, U=float, data_format="NHWC", epsilon=0.001f, is_training=false}} @"/device:CPU:0"
{p}/id = Identity({p}/n) {{T=float}} @"/device:CPU:0"
{p}/s1 = Const {{dtype=int32, value=int32[2]{{-1, 256}}}} @"/device:CPU:0"
{p}/f = Reshape({p}/id, {p}/s1) {{T=float, Tshape=int32}} @"/device:CPU:0"
{p}/s2 = Const {{dtype=int32, value=int32[4]{{-1, 8, 8, 4}}}} @"/device:CPU:0"
{p}/u = Reshape({p}/f, {p}/s2) {{T=float, Tshape=int32}} @"/device:CPU:0"
{p}/k1 = Const {{dtype=float, value=float[]{{{i}}}}} @"/device:CPU:0"
{p}/k2 = Const {{dtype=float, value=float[]{{2}}}} @"/device:CPU:0"
{p}/k = Mul({p}/k1, {p}/k2) {{T=float}} @"/device:CPU:0"
{p}/m = Mul({p}/u, {p}/k) {{T=float}} @"/device:CPU:0"
{p}/neg = Neg({p}/m) {{T=float}} @"/device:CPU:0"
{p}/neg2 = Neg({p}/neg, ^{p}/r) {{T=float}} @"/device:CPU:0"
{p}/no = NoOp(^{p}/neg, ^{p}/id) @"/device:CPU:0"
{p}/i2 = Identity({p}/neg2, ^{p}/no) {{T=float}} @"/device:CPU:0"
{p}/a = AddV2({p}/i2, {x}) {{T=float}} @"/device:CPU:0"
{p}/dead = Exp({p}/a) {{T=float}} @"/device:CPU:0"
"""
NODES_OF_BLOCK = BLOCK.count("\n")


def write(path, nodes):
    with path.open("w") as out:
        out.write('x = Placeholder {dtype=float, shape=[?,8,8,4]} @"/device:CPU:0"\n')
        last = "x"
        for i in range(nodes // NODES_OF_BLOCK):
            out.write(BLOCK.format(p=f"block{i}", x=last, i=i % 1000 + 1))
            last = f"block{i}/a"
        out.write(f'y = Identity({last}) {{T=float}} @"/device:CPU:0"\n')


def peak(pid):
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10


def main():
    rows, bad = [], []
    with tempfile.TemporaryDirectory() as folder:
        text, graph, out, report = (pathlib.Path(folder) / n for n in ("in.graph", "in.pb", "out.pb", "report.json"))
        for nodes in sizes:
            write(text, nodes)
            subprocess.run([smelt, "optimize", "--graph_def", text, graph, "--passes", ""], check=True, stdout=subprocess.DEVNULL)
            with report.open("w") as f:
                code, memory = peak(subprocess.Popen([smelt, "optimize", "--graph_def", graph, out, "--feeds", "x", "--fetches", "y", "--json"], stdout=f).pid)
            if code != 0:
                sys.exit(f"smelt failed on {nodes} nodes")
            told = json.loads(report.read_text())
            passes = told["graphs"][0]["passes"]
            left, ms = passes[-1]["nodes_after"], told["ms"]
            rows.append((passes[0]["nodes_before"], left, ms, ms / nodes * 1e3, memory))
            print(f"{rows[-1][0]:>9} nodes, {left:>9} left: {ms / 1e3:7.2f} s, {rows[-1][3]:6.2f} ms a thousand, {memory / 2**30:5.2f} GB at the peak", flush=True)
            slowest = sorted(passes, key=lambda p: -p["ms"])[:3]
            print("          " + ", ".join(f"{p['pass']} {p['ms'] / 1e3:.2f} s" for p in slowest))
            if ms > MOST_SECONDS * 1e3 or memory > MOST_BYTES:
                bad.append(f"{nodes} nodes take too much")
    if rows[-1][3] > MOST_GROWTH * rows[0][3]:
        bad.append("time does not grow with the nodes alone")
    print("; ".join(bad) or "ok")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
