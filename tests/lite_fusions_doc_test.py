#!/usr/bin/env python3
"""docs/lite_fusions.md: lite_fusions_doc_test.py SMELT ROOT CC. Its table names each fusion, and its examples work as they stand."""
import pathlib
import re
import subprocess
import sys

from program import call, check, finish, work

root, compiler = pathlib.Path(sys.argv[2]), sys.argv[3]
text = (root / "docs/lite_fusions.md").read_text()
blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S))

code, out, err = call("lite", "--list_fusions")
listed = {line.split()[0] for line in out.splitlines() if re.match(r"(Fuse|Remove|Move|Unfold)\w+ ", line)}
table = text.split("## All of them")[1].split("## Rules of your own")[0]
documented = set(re.findall(r"`((?:Fuse|Remove|Move|Unfold)\w+)`", table)) - {"FuseLstm", "FuseRnn"}
check("each fusion is in the table", listed and listed == documented, f"only listed {listed - documented}, only documented {documented - listed}")

rules = work / "my.fusions"
rules.write_text(blocks["fusions"])
code, out, err = call("lite", "--list_fusions", "--fusions", rules)
check("the rules parse", code == 0 and all(name in out for name in ("MySwish", "MyHardSwish", "MyNorm", "MyGlu", "MyLookup", "MyShift")), out + err)


def frozen(name, text):
    """The graph as a GraphDef, which is what exports read."""
    (work / f"{name}.graph").write_text(text)
    call("optimize", "--graph_def", work / f"{name}.graph", work / f"{name}.pb", "--passes", "", "--feeds", "x", "--fetches", text.split("\n")[-2].split()[0])
    return work / f"{name}.pb"


graph = frozen("norm", """x = Placeholder {dtype=float, shape=[2,4]}
b = Const {value=float[]{1.5}}
axis = Const {value=int32[1]{-1}}
epsilon = Const {value=float[]{0.001}}
g = Const {value=float[4]{1, 2, 3, 4}}
t = Mul(x, b) {T=float}
s = Sigmoid(t) {T=float}
w = Mul(x, s) {T=float}
mean = Mean(w, axis) {T=float, Tidx=int32, keep_dims=true}
d = Sub(w, mean) {T=float}
q = Square(d) {T=float}
variance = Mean(q, axis) {T=float, Tidx=int32, keep_dims=true}
v = AddV2(variance, epsilon) {T=float}
r = Rsqrt(v) {T=float}
n = Mul(d, r) {T=float}
y = Mul(n, g) {T=float}
""")
code, out, err = call("lite", "--graph_def", graph, work / "out.tflite", "--fusions", rules, "--allow_custom_ops", "--explain")
check("the rules fire", code == 0 and all(f": {name}" in out for name in ("MySwish", "MyNorm")), out + err)
data = (work / "out.tflite").read_bytes() if code == 0 else b""
check("and make their operators", all(word in data for word in (b"Swish\0", b"beta\0", b"LayerNorm\0", b"epsilon\0")), out)
code, out, err = call("lite", "--graph_def", graph, work / "without.tflite", "--fusions", rules, "--no_fusion", "MyNorm", "--allow_custom_ops")
check("and are switched off", code == 0 and b"LayerNorm" not in (work / "without.tflite").read_bytes(), out + err)

source, library = work / "my.c", work / "my.so"
source.write_text(blocks["c"])
compiled = subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", root, source, "-o", library], capture_output=True, text=True)
check("the library compiles", compiled.returncode == 0, compiled.stderr)
graph = frozen("swish", "x = Placeholder {dtype=float, shape=[2,4]}\ns = Sigmoid(x) {T=float}\na = Mul(x, s) {T=float}\nt = Sigmoid(a) {T=float}\nz = Mul(x, t) {T=float}\n")
code, out, err = call("lite", "--graph_def", graph, work / "swish.tflite", "--fusion_library", library, "--allow_custom_ops", "--explain")
check("the library's fusion fires", code == 0 and "fused     a: FuseSwish" in out and b"Swish\0" in (work / "swish.tflite").read_bytes(), out + err)
check("and says why it does not", "not fused z: FuseSwish: the gate is of another value" in out, out)
finish()
