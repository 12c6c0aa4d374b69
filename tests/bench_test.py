#!/usr/bin/env python3
"""smelt show --program and smelt bench: what they say of programs, not how fast these are. bench_test.py SMELT. Ends with 'N passed, N failed'."""
import json
import re
import xml.etree.ElementTree as xml

from program import call, check, finish, models, work

MODEL = models / "cnn"
TEXTS = models / "language_model"
SVG = "{http://www.w3.org/2000/svg}"

code, text, err = call("show", MODEL, "--program", "--threads", "1", "--memory_svg", work / "memory.svg")
actions = re.findall(r"^(\S+) \w+\[[^\]]*\] \S+.* = (\w+) \[[^\]]+\]\(", text, re.M)
check("a program with reasons", code == 0 and text.startswith("signature 'serving_default' on ") and actions and "what follows ends at" in text, text + err)
code, other, err = call("show", TEXTS, "--program", "--threads", "1")
check("what is in no program, and why", code == 0 and "node by node, as the shape of" in other and re.search(r"is in no program: it (takes|gives) what is no number", other), other + err)
titles = [e.text for e in xml.parse(work / "memory.svg").iter(SVG + "title")]
check("the memory plan", titles and all(re.search(r"\d+ bytes at \d+, actions \d+ to \d+$", t) for t in titles), titles)
code, text, err = call("show", MODEL, "--memory_svg", work / "none.svg")
check("a picture of no program", code == 2 and "--program" in err, err)
code, text, err = call("show", MODEL, "--program", "--shapes", "nothing=[2]")
check("shapes of what is no input", code == 1 and "has no input 'nothing'" in err, text + err)

code, text, err = call("bench", MODEL, "--threads", "1", "--seconds", "0.1", "--json", "--svg", work / "roof.svg")
check("bench", code == 0, err)
said = json.loads(text) if code == 0 else {"nodes": [], "peaks": {}, "whole": {}}
nodes = said["nodes"]
names = [(n["function"], n["node"]) for n in nodes]
check("every node is listed once", len(names) == len(set(names)) and len(names) > 3, names)
in_program = {n["node"] for n in nodes if n["in_program"]}
# An action is named by its first node, shown by what the last one makes.
check("every action of the program is listed", len(in_program) == len(actions), (sorted(in_program), actions))
check("shares are of one whole", abs(sum(n["share"] for n in nodes) - 1) < 1e-6, nodes)
check("work and bytes", all(n["bytes"] > 0 and ("operations" in n) != ("elements" in n) for n in nodes if n["in_program"] and n["calls"]), nodes)
check("peaks", all(said["peaks"][k] > 0 for k in ("float_gflops", "l2_gb_per_second", "memory_gb_per_second")), said["peaks"])
dots = list(xml.parse(work / "roof.svg").iter(SVG + "circle")) if code == 0 else []
check("the roofline", 0 < len(dots) <= len(nodes) and all(d.find(SVG + "title") is not None for d in dots), len(dots))
code, text, err = call("bench", MODEL, "--threads", "1", "--seconds", "0.1", "--json", "--clients", "3")
said = json.loads(text) if code == 0 else {}
check("clients", code == 0 and said["with_clients"]["clients"] == 3 and said["with_clients"]["answers"] >= 3 and "nodes" not in said, text + err)
code, text, err = call("bench", MODEL, "--seconds", "0.1", "--whole", "--svg", work / "none.svg")
check("a picture of no nodes", code == 2 and "--svg" in err, err)
code, text, err = call("bench", MODEL, "--threads", "1", "--seconds", "0.1")
check("as text", code == 0 and re.search(r"^100\.00% .* nodes, the median of", text, re.M), text + err)
finish()
