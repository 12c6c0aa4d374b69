#!/usr/bin/env python3
"""smelt optimize: optimize_test.py SMELT. Ends with 'N passed, N failed'.

What it writes must answer as TensorFlow did before; tests/peers/optimize_test.py has TensorFlow run it, tests/grappler has the graphs."""
import base64
import hashlib
import json
import os
import pathlib
import re
import tempfile

from program import call, check, finish, models, work

GRAPH = """x = Placeholder {dtype=float, shape=[2,2]}
unread = Exp(x) {T=float}
i = Identity(x) {T=float}
c = CheckNumerics(i) {T=float, message="no"}
n = Neg(c) {T=float}
p = Neg(n) {T=float}
y = Mul(p, p) {T=float}
"""
source = work / "in.graph"
source.write_text(GRAPH)


def optimize(*args):
    return call("optimize", *args)


# ---- SavedModels: recorded answers stay
for log in sorted(models.glob("*.tfrecord")):
    code, out, err = optimize(models / log.stem, work / log.stem)
    check(f"{log.stem}: optimized", code == 0 and "undone" not in out, out + err)
    code, out, err = call("replay", work / log.stem, "--log", log)
    check(f"{log.stem}: answers as recorded", code == 0, out + err)
# TensorFlow's runtime lowers these itself, and runs what it lowered faster.
code, out, err = call("show", "--dir", work / "loop", "--list_ops", "--tag_set", "serve")
check("loops and branches stay functions", code == 0 and "'While'" in out and "'StatelessIf'" in out and "'Merge'" not in out, out + err)
code, out, err = optimize(models / "cnn", work / "cnn")
check("what stands there stays", code == 1 and "ALREADY_EXISTS" in err, err)
code, out, err = optimize(models / "cnn", work / "cnn", "--overwrite")
check("or is replaced", code == 0, err)
code, out, err = optimize(models / "cnn", models / "cnn", "--overwrite")
check("never the input", code == 1 and "is the input" in err, err)
code, out, err = optimize(models / "cnn", work / "none", "--signature", "no_such")
check("a signature that there is not", code == 1 and "NOT_FOUND" in err and "serving_default" in err and not (work / "none").exists(), err)
code, out, err = optimize(models / "cnn")
check("without an output only the report", code == 0 and "model_pruner" in out, out + err)

# A function that was made for one call is written without the mark that tf.saved_model.load refuses.
(work / "marked").mkdir()
(work / "marked/saved_model.pbtxt").write_text("""saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    versions { producer: 1087 }
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
    node { name: "c" op: "two" input: "x" }
    node { name: "n" op: "Exp" input: "c" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "y" op: "Sin" input: "n" attr { key: "T" value { type: DT_FLOAT } } }
    library {
      function {
        signature { name: "two" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } output_arg { name: "u" type: DT_FLOAT } }
        node_def { name: "n" op: "Neg" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
        ret { key: "b" value: "n:y:0" }
        ret { key: "u" value: "a" }
        attr { key: "_noinline" value { b: true } }
      }
    }
  }
  signature_def {
    key: "serving_default"
    value {
      inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT tensor_shape { } } }
      outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT tensor_shape { } } }
      method_name: "tensorflow/serving/predict"
    }
  }
}
""")
code, out, err = optimize(work / "marked", work / "unmarked")
written = b"".join(f.read_bytes() for f in (work / "unmarked").glob("saved_model.*"))
check("functions of calls are not marked", code == 0 and b"two_specialized_for_c" in written and b"_GrapplerSpecializedFunc" not in written, out + err)
# What fills and closes a queue is named by its runner alone.
(work / "queue").mkdir()
(work / "queue/saved_model.pbtxt").write_text(r"""saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    versions { producer: 1087 }
    node { name: "q" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
    node { name: "fill" op: "QueueEnqueueV2" input: "q" input: "one" attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
    node { name: "close" op: "QueueCloseV2" input: "q" }
    node { name: "cancel" op: "QueueCloseV2" input: "q" attr { key: "cancel_pending_enqueues" value { b: true } } }
    node { name: "unnamed" op: "QueueCloseV2" input: "q" }
    node { name: "y" op: "QueueDequeueV2" input: "q" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  }
  collection_def { key: "queue_runners" value { bytes_list { value: "\n\001q\022\004fill\032\005close\"\006cancel" } } }
  signature_def {
    key: "serving_default"
    value { outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT tensor_shape { } } } method_name: "tensorflow/serving/predict" }
  }
}
""")
code, out, err = optimize(work / "queue", work / "queue_out")
written = b"".join(f.read_bytes() for f in (work / "queue_out").glob("saved_model.*"))
check("queue runners keep their ops", code == 0 and all(n in written for n in (b"fill", b"close", b"cancel")) and b"unnamed" not in written, out + err)

# ---- constants state no more than TensorFlow 2.21 left of them
# upstream meta_optimizer_test CompressConstants
def counted(first, last, times):
    return ", ".join([str(i) for i in range(first)] + [str(last)] * times)


CONSTANTS = {  # name: as it is given, as TensorFlow stated it (None: as given)
    "zeros": (f"float[64]{{{counted(0, 0, 64)}}}", "float[64]"),
    "ones": (f"float[64]{{{counted(0, 1, 64)}}}", "float[64]{1}"),
    # TensorFlow forgets their sign.
    "zeros below zero": (f"float[64]{{{', '.join(['-0'] * 64)}}}", "float[64]{-0}"),
    "few": (f"float[63]{{{counted(0, 1, 63)}}}", None),
    "half": (f"float[64]{{{counted(31, 7, 33)}}}", f"float[64]{{{counted(31, 7, 1)}}}"),
    "less than half": (f"float[64]{{{counted(32, 7, 32)}}}", None),
    "bytes": (f"int8[64]{{{counted(7, 9, 57)}}}", f"int8[64]{{{counted(7, 9, 1)}}}"),
    "bytes are short, lists of them long": (f"int8[64]{{{counted(8, 9, 56)}}}", None),
    "truths": (f"bool[64]{{{', '.join(['true'] * 64)}}}", "bool[64]{true}"),
    "long integers": (f"int64[64]{{{counted(0, 5, 64)}}}", "int64[64]{5}"),
    "halves": (f"half[64]{{{counted(0, 1, 64)}}}", "half[64]{1}"),
    "complex": (f"complex64[64]{{{', '.join(['(1, 1)'] * 64)}}}", "complex64[64]{(1, 1)}"),
    "words": ("string[64]{" + ", ".join(['"a"'] * 64) + "}", None),
    "a list of less than all": (f"float[100]{{{counted(10, 3, 10)}}}", None),
    "a list that ends in equals": ("float[100]{3, 3, 3, 3}", "float[100]{3}"),
    "a list of zeros": ("float[100]{0, 0}", "float[100]"),
}
constants = work / "constants.graph"
for op in ("Const", "HostConst"):
    constants.write_text("".join(f"c{i} = {op} {{value={given}}}\n" for i, (given, _) in enumerate(CONSTANTS.values())))
    for passes in ("pruning", None, "dependency"):
        code, out, err = optimize("--graph_def", constants, work / "out.graph", "--fetches", ",".join(f"c{i}" for i in range(len(CONSTANTS))), *(["--passes", passes] if passes else []))
        lines = dict(line.split(" = ", 1) for line in (work / "out.graph").read_text().splitlines() if " = " in line)
        for i, (name, (given, stated)) in enumerate(CONSTANTS.items()):
            want = given if stated is None or passes == "dependency" else stated
            check(f"{op}, {passes}: {name}", code == 0 and lines.get(f"c{i}", "").endswith(f"value={want}}}"), err + lines.get(f"c{i}", ""))

# ---- graphs: both forms, the report, one node's story
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", work / "out.pb", "--explain", "p", "--dump_dir", work / "dump")
check("a graph", code == 0 and "optimized in " in out, out + err)
check("what rules did", any("RemoveInvolution" in line and line.split()[-1] == "1" for line in out.splitlines()), out)
check("the story of a node", "arithmetic_optimizer/RemoveInvolution: became 'c'" in out or "RemoveInvolution: became" in out, out)
check("a graph after each pass", any("arithmetic" in f.name and f.suffix == ".graph" for f in (work / "dump").iterdir()))
# A function that is being rewritten is seen, by itself too, as it was.
recursive = work / "recursive.graph"
recursive.write_text("""func f(x: float, n: int32) -> (y: float, z: float) {
  a = Neg(x) {T=float}
  b = Neg(a) {T=float}
  one = Const {dtype=int32, value=int32[]{1}}
  two = Add(one, one) {T=int32}
  m = Sub(n, two) {T=int32}
  c = StatefulPartitionedCall(b, m) {Tin=list(float, int32), Tout=list(float, float), f=@f}
  r = Identity(b) {T=float}
  return y=c:0, z=r:0
}
x = Placeholder {dtype=float, shape=shape(?)}
n = Const {dtype=int32, value=int32[]{3}}
y = StatefulPartitionedCall(x, n) {Tin=list(float, int32), Tout=list(float, float), f=@f}
""")
code, out, err = optimize("--graph_def", recursive, "--feeds", "x", "--fetches", "y:0,y:1", work / "recursive.pb", "--dump_dir", work / "recursive_dump")
check("a function that calls itself, shown after each pass", code == 0 and any("-f-" in f.name for f in (work / "recursive_dump").iterdir()), out + err)
for shown in (work / "recursive_dump").glob("*.graph"):
    code, out, err = optimize("--graph_def", shown, work / "shown.graph", "--passes", "")
    check(f"{shown.name} is whole", code == 0, err)
code, out, err = optimize("--graph_def", work / "out.pb", work / "again.graph", "--passes", "")
text = (work / "again.graph").read_text()
check("read back as text", code == 0 and "Neg" not in text and "unread" not in text and "y = " in text, text + err)
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "p", work / "kept.graph", "--keep", "unread")
text = (work / "kept.graph").read_text()
check("what is fetched or kept stays", code == 0 and "p = " in text and "unread = " in text, text + err)
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "n", "--explain", "n")
check("why a rule did not fire", code == 0 and "did not fire" in out or "no rule looked at it" in out, out + err)

code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", "--json", "--explain", "p")
report = json.loads(out)
check("JSON", code == 0 and report["graphs"][0]["passes"][0]["pass"] == "model_pruner" and {"pass": "arithmetic_optimizer", "rule": "RemoveInvolution", "fired": 1} in report["rules"]
      and report["story"][0]["fired"], out)

# ---- pictures: what dot gets, and what is said where it is not there or fails
def dump(name, graph, path, *args):
    code, out, err = call("optimize", "--graph_def", graph, "--feeds", "x", "--fetches", "y", "--dump_dir", work / name, *args, env={**os.environ, "PATH": str(path)})
    check(f"{name}: optimized", code == 0, err)
    return sorted((work / name).iterdir()), err


def tool(text):
    """A folder with a program of the name dot."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=work))
    (folder / "dot").write_text("#!/bin/sh\n" + text)
    (folder / "dot").chmod(0o755)
    return folder


files, err = dump("no_dot", source, work / "nothing_here")
check("without dot text alone, said once", {f.suffix for f in files} == {".graph", ".dot"} and err.count("is not installed") == 1, err)
files, err = dump("drawn", source, tool('for a in "$@"; do case "$a" in -o*) echo "<svg/>" > "${a#-o}";; esac; done'))
check("with dot a picture for each", err == "" and len([f for f in files if f.suffix == ".svg"]) == len([f for f in files if f.suffix == ".graph"]) > 0, (err, files))
files, err = dump("failed", source, tool('for a in "$@"; do case "$a" in -o*) echo half > "${a#-o}";; esac; done; exit 1'))
check("a dot that fails is named and leaves nothing", "dot failed on" in err and not any(f.suffix == ".svg" for f in files), err)
many = work / "many.graph"


def chain(count, scope):
    """Pairs of negations, which arithmetic takes away."""
    names = ["x"] + [f"{scope(i)}n{i}" for i in range(count)]
    lines = ["x = Placeholder {dtype=float, shape=[2]}"] + [f"{b} = {'Neg' if i % 4 < 2 else 'Exp'}({a}) {{T=float}}" for i, (a, b) in enumerate(zip(names, names[1:]))]
    return "\n".join([*lines, f"y = Identity({names[-1]}) {{T=float}}"]) + "\n"


for what, scope, words in [("scopes", lambda i: f"s{i % 40}/t{i}/", '"s3/" + "\\n" + "'), ("flat", lambda i: "", '"op Exp" + "\\n" + "'),
                           ("many_scopes", lambda i: f"s{i}/", '"others" + "\\n" + "')]:
    many.write_text(chain(4000, scope))
    files, err = dump(what, many, work / "nothing_here")
    pictures = [f.read_text() for f in files if f.suffix == ".dot"]
    check(f"{what}: a small picture of a large graph", pictures and all(words in p and p.count("label=") <= 302 and len(p) < 100000 for p in pictures), pictures[:1])
# Names of nodes are held to TensorFlow's rule; ops that nobody defines, attributes and devices may be anything.
hostile = work / "hostile<!--<script>.graph"
hostile.write_text(r"""x = Placeholder {dtype=float, shape=[2]}
n0 = Neg(x) {T=float} @"</script>\xff"
n1 = Neg(n0) {T=float, "<!--<script>"="</script><script>alert(1)</script>\xff\001", _b="\xe2\x80\xae", _c="</style>]]>&lt;"}
o = "a\"];\n\\&<img src=x onerror=alert(1)>\xff\001"(n1) {T=float} outputs=1
n3 = Neg(o) {T=float}
n4 = Neg(n3) {T=float}
n5 = Neg(n4) {T=float}
s/a>b = Neg(n5)
y = Identity(s/a>b) {T=float}
""")
files, err = dump("hostile_dot", hostile, work / "nothing_here", "--keep", "o")
pictures = [f.read_text() for f in files if f.suffix == ".dot"]
check("names stay in their quotes", pictures and all(line.startswith(("digraph", "}", "  ")) for p in pictures for line in p.splitlines()), pictures)

# ---- the page
def page_of(path, *args):
    code, out, err = call("optimize", "--graph_def", path, "--feeds", "x", "--fetches", "y", "--html", work / "page.html", *args)
    check("the page is written", code == 0, err)
    text = (work / "page.html").read_text(encoding="utf8")
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    check("one element of data", len(found) == 1 and text.count("<script") == text.count("</script>") == 3, text.count("<script"))
    return text, json.loads(found[0])


def replay(graph):
    """The nodes after all steps, by name: op and inputs."""
    texts = pages["texts"]

    def node(n):
        at, lists = 4, []
        for _ in range(3):
            lists.append(n[at + 1:at + 1 + n[at]])
            at += 1 + n[at]
        return texts[n[0]], (texts[n[1]], [(texts[s], p) for s, p in zip(n[at::2], n[at + 1::2])], sorted(texts[a] for a in lists[0]))
    nodes = dict(map(node, graph["before"]))
    for step in graph["steps"]:
        for name in step["gone"]:
            del nodes[texts[name]]
        nodes.update(map(node, step["put"]))
        check(f"nodes after {step['pass']}", len(nodes) == step["nodes"], (len(nodes), step["nodes"]))
    return nodes


text, pages = page_of(source, work / "paged.graph", "--explain", "p")
nodes = replay(pages["graphs"][0])
written = (work / "paged.graph").read_text()
check("differences lead to what is written", len(nodes) == len(written.splitlines()) and all(f"{name} = {op}(" in written for name, (op, inputs, _) in nodes.items() if inputs), (nodes, written))
check("the graph before", len(pages["graphs"][0]["before"]) == 7 and [s["pass"] for s in pages["graphs"][0]["steps"]][0] == "model_pruner", pages["graphs"])
check("no marks of the passes' own", not any("_root" in t or "_fed" in t for t in pages["texts"]), pages["texts"])
rules = [[pages["texts"][t] for t in pages["rewrites"][i:i + 5]] for i in range(0, len(pages["rewrites"]), 5)]
check("rules and what they rewrote", ["", "arithmetic_optimizer", "RemoveInvolution"] in [r[:3] for r in rules] and pages["fired"] == len(rules) and pages["story"], rules)
policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
check("nothing is loaded, no other script runs", "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy and not re.search(r'(src|href)\s*=\s*"', text), policy)
inside = re.findall(r"<(script|style)>(.*?)</\1>", text, re.S)
check("the policy names what is there", len(inside) == 3 and all(base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() in policy for _, t in inside), policy)
check("the layout library's licence", "Chris Pettitt" in text and "Permission is hereby granted" in text)
again = re.sub(r'"ms":[0-9.e-]+', "", page_of(source, "--explain", "p")[0])
check("the same page again but for times", again == re.sub(r'"ms":[0-9.e-]+', "", text))
text, pages = page_of(hostile, "--keep", "o,n1")
check("hostile texts come through as they are", 'a"];\n\\&<img src=x onerror=alert(1)>\\xff\x01' in pages["texts"] and "</script>\\xff" in pages["texts"] and "<script>" in pages["title"], pages["texts"])
check("and end nothing", "<" not in re.search(r'id="data">(.*?)</script>', text, re.S)[1])
many.write_text(chain(20000, lambda i: "scope/of/some/length/"))
text, pages = page_of(many, "--passes", ",".join(["arithmetic", "pruning", "dependency", "common_subgraph_elimination", "constfold"] * 4))
check("a large graph's page is bounded", len(text) < 4 << 20 and len(pages["graphs"][0]["steps"]) >= 20, (len(text), len(pages["graphs"][0]["steps"])))
replay(pages["graphs"][0])
code, out, err = optimize(models / "functions", "--html", work / "model.html")
data = json.loads(re.search(r'id="data">(.*?)</script>', (work / "model.html").read_text(), re.S)[1])
check("functions are graphs of their own", code == 0 and any(g["name"] and g["before"] for g in data["graphs"]), (err, [g["name"] for g in data["graphs"]]))
code, out, err = optimize(models / "functions", "--html", work / "no_such_folder" / "model.html")
check("a page that cannot be written", code == 1 and "no_such_folder" in err, err)

# ---- configurations
config = work / "config.txt"
config.write_text("arithmetic_optimization: OFF debug_stripper: ON meta_optimizer_iterations: ONE")
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", work / "off.graph", "--config", config)
text = (work / "off.graph").read_text()
check("passes that are off", code == 0 and "Neg(" in text and "CheckNumerics" not in text, text + err)
config.write_text("graph_options { rewrite_options { optimizers: 'pruning' min_graph_nodes: -1 } }")
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", work / "some.graph", "--config", config)
check("a ConfigProto's list", code == 0 and "arithmetic_optimizer" not in out and "model_pruner" in out, out + err)
config.write_text("arithmetic_optimisation: OFF")
code, out, err = optimize("--graph_def", source, "--config", config)
check("a mistyped field", code == 1 and "INVALID_ARGUMENT" in err and "arithmetic_optimization" in err, err)
# upstream dependency_optimizer_test FullTypeForKeptNoop
typed = work / "typed.graph"
typed.write_text(r"""x = Placeholder {dtype=float, shape=[2]}
p = Sqrt(x) {T=float}
q = Exp(x) {T=float}
r = Tanh(x) {T=float}
a = AddN(p, q, r) {N=3, T=float} extra=":\x03\x08\xe8\x07"
b = Exp(x, ^a) {T=float} extra=":\x03\x08\xe8\x07"
c = Neg(x, ^a) {T=float}
d = Sin(x, ^a) {T=float}
y = AddN(b, c, d, p, q, r) {N=6, T=float}
""")
code, out, err = optimize("--graph_def", typed, "--feeds", "x", "--fetches", "y", "--passes", "dependency", work / "untyped.graph")
lines = (work / "untyped.graph").read_text().splitlines()
check("a NoOp has no full type, others keep theirs", "a = NoOp(^p, ^q, ^r)" in lines and r'b = Exp(x, ^a) {T=float} extra=":\x03\x08\xe8\x07"' in lines, lines)

constant = work / "constant.graph"
constant.write_text("a = Const {dtype=float, value=float[]{1}}\ny = Neg(a) {T=float}\n")
code, out, err = optimize("--graph_def", constant, "--feeds", "", "--fetches", "y", work / "folded.graph")
check("nothing is fed", code == 0, out + err)

code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", "--passes", "pruning,no_such")
check("an optimizer that there is not", code == 0 and "no optimizer 'no_such'" in err, err)
config.write_text("min_graph_nodes: 100")
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", work / "small.graph", "--config", config)
check("a small graph stays", code == 0 and "Neg(" in (work / "small.graph").read_text(), err)

# ---- estimates: what the graph takes, never how long it took
slow = "/job:localhost/replica:0/task:0/device:CPU:0 CPU frequency=1 num_cores=1 bandwidth=1000"
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", "--measure")
check("measured", code == 0 and "this machine: " in out and "GFLOP/s" in out and "estimated before: 12 FLOP, 144 B moved" in out and "estimated after: " in out and "of 6 nodes, 1 by guess" in out, out + err)
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", "--measure", "--device", slow, "--json")
report = json.loads(out)
before, after = report["estimates"]
check("the machine", report["machine"]["gflops"] > 0 and report["machine"]["gb_per_second"] > 0, out)
# An operation and a byte take a microsecond: 12 operations, 144 bytes, and two nodes that only hand on.
check("a device that is given", before == {"flops": 12, "bytes": 144, "nanoseconds": 156002, "peak_bytes": before["peak_bytes"], "nodes": 6, "inaccurate": 1}, out)
check("less after", after["flops"] == 4 and after["nanoseconds"] < before["nanoseconds"] and after["nodes"] < before["nodes"], out)
check("memory", 32 <= after["peak_bytes"] <= before["peak_bytes"] <= 6 * 16, out)
code, out, err = optimize("--graph_def", source, "--feeds", "x", "--fetches", "y", "--json")
check("without it none", code == 0 and "machine" not in json.loads(out) and "estimates" not in json.loads(out), out)
code, out, err = optimize(models / "functions", "--measure", "--device", slow, "--json")
before, after = json.loads(out)["estimates"]
check("functions count where they are called", code == 0 and before["flops"] == after["flops"] > 0 and before["nodes"] > after["nodes"], out)

# ---- devices: formats of images
images = work / "images.graph"
images.write_text("""x = Placeholder {dtype=float, shape=[2,4,5,3]} @"/device:GPU:0"
w = Const {dtype=float, value=float[2,2,3,3]{1}} @"/device:GPU:0"
c = Conv2D(x, w) {T=float, data_format="NHWC", strides=list(1,1,1,1), padding="SAME"} @"/device:GPU:0"
y = Identity(c) {T=float} @"/device:GPU:0"
""")
gpu = "/job:localhost/replica:0/task:0/device:GPU:0 GPU architecture=6"
convert = ("--graph_def", images, "--feeds", "x", "--fetches", "y", "--passes", "layout", "--explain", "c")
code, out, err = optimize(*convert, work / "second.graph", "--device", gpu)
check("channels second on a GPU", code == 0 and 'data_format="NCHW"' in (work / "second.graph").read_text() and "layout/Conv2D" in out, out + err)
code, out, err = optimize(*convert)
check("without one there is a reason", code == 0 and "no GPU is known" in out, out + err)
config.write_text("cpu_layout_conversion: NHWC_TO_NCHW")
code, out, err = optimize(*convert, "--config", config)
check("a conversion that there is not", code == 0 and "not available for CPU" in out, out + err)
# ---- mixed precision: what smelt runs of it answers as float did, up to the digits of the narrow type
config.write_text("min_graph_nodes: -1 auto_mixed_precision_cpu: ON auto_mixed_precision_onednn_bfloat16: ON auto_mixed_precision: ON")
for what, args, environment, digits in [
    ("emulated half", [], {}, 0.01),
    ("half on a CPU", ["--device", "/job:localhost/replica:0/task:0/device:CPU:0 CPU half=true"], {}, 0.01),
    ("bfloat16", [], {"TF_ENABLE_ONEDNN_OPTS": "1"}, 0.05),
]:
    os.environ.update(environment)
    for name in ("cnn", "functions"):
        code, out, err = optimize(models / name, work / f"mixed_{name}", "--overwrite", "--config", config, *args)
        check(f"{name} in {what}", code == 0 and "AutoMixedPrecision" in out and "undone" not in out, out + err)
        code, out, err = call("replay", work / f"mixed_{name}", "--log", models / f"{name}.tfrecord", "--rtol", digits, "--atol", digits)
        check(f"{name} in {what}: answers as recorded", code == 0, out + err)
    for variable in environment:
        del os.environ[variable]
os.environ["TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_EMULATE_FP16"] = "maybe"
config.write_text("min_graph_nodes: -1 fail_on_optimizer_errors: true auto_mixed_precision_cpu: ON")
code, out, err = optimize(models / "cnn", work / "mixed_wrong", "--config", config)
check("a switch that is neither on nor off", code == 1 and "EMULATE_FP16} into bool: maybe" in err and not (work / "mixed_wrong").exists(), err)
del os.environ["TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_EMULATE_FP16"]

# ---- what is wrong
for what, args, words in [
    ("a fetch that there is not", ["--graph_def", source, "--fetches", "z"], "NOT_FOUND"),
    ("an output that there is not", ["--graph_def", source, "--fetches", "y:3"], "INVALID_ARGUMENT"),
    ("no such file", ["--graph_def", work / "missing.pb"], "NOT_FOUND"),
    ("no graph", ["--graph_def", models / "cnn.tfrecord"], "DATA_LOSS"),
]:
    code, out, err = optimize(*args, work / "wrong.pb")
    check(what, code == 1 and words in err and not (work / "wrong.pb").exists(), (code, err))
code, out, err = optimize(models / "cnn", "--fetches", "y")
check("fetches of a model", code == 2 and "--graph_def" in err, (code, err))
code, out, err = optimize()
check("nothing to optimize", code == 2, (code, err))
source.write_text(GRAPH + "bad = Mul(x) {T=float}\n")
code, out, err = optimize("--graph_def", source, "--fetches", "bad", work / "bad.pb")
check("a graph that does not verify", code == 1 and "'bad'" in err and not (work / "bad.pb").exists(), err)
finish()
