#!/usr/bin/env python3
"""Fusions of a user's own, and functions that say what they implement: lite_rules_test.py SMELT. Ends with 'N passed, N failed'.

Models are frozen graphs in text form. What operators there are follows from the rules; what files answer is computed here."""
import json
import re

from lite_program import FLOAT, frozen, ops, placeholder, refused, shown
from program import call, check, finish, int_const, node, work

X, Y = placeholder("x", 2, 4), placeholder("y", 2, 4)
FUNC = 'list { type: DT_FLOAT type: DT_FLOAT }'
CALL = node("c", "PartitionedCall", "x", "y", Tin=FUNC, Tout="list { type: DT_FLOAT }", f='func { name: "gate" }') + node("z", "Neg", "c", **FLOAT)


def library(implements):
    """x * tanh(y), a function that says it is something."""
    body = node("t", "Tanh", "b", **FLOAT) + node("m", "Mul", "a", "t:y:0", **FLOAT)
    return ('library { function { signature { name: "gate" input_arg { name: "a" type: DT_FLOAT } input_arg { name: "b" type: DT_FLOAT } '
            'output_arg { name: "r" type: DT_FLOAT } } ' + body.replace("node {", "node_def {") +
            f' ret {{ key: "r" value: "m:z:0" }} attr {{ key: "_implements" value {{ {implements} }} }} }} }}\n')


def rules(text):
    path = work / f"mine{len(list(work.glob('mine*')))}.fusions"
    path.write_text(text)
    return ["--fusions", path]


NAMED = X + Y + CALL + library('s: "my_gate"')
OPTIONS = X + Y + CALL + library('func { name: "my_gate" attr { key: "times" value { i: 3 } } attr { key: "wide" value { b: true } } }')

# ---- functions that are an operator by a rule

code, out, err, path = frozen(NAMED, "--explain")
check("a name that nobody knows: the function is inlined", code == 0 and sorted(ops(path)) == ["MUL", "NEG", "TANH"], err + str(ops(path)))
check("and --explain says so", re.search(r"^not fused gate: composite my_gate: there is no operator for it, no rule of --fusions names it", out, re.M), out)
code, out, err, path = frozen(OPTIONS, "--explain")
check("options and no 'tfl_fusable_op'", code == 0 and sorted(ops(path)) == ["MUL", "NEG", "TANH"] and "it has no 'tfl_fusable_op'" in out, out + err)
SWAPPED = rules('fusion Mine "mine" { "my_gate"(a, b) -> sub(b, a); }')
for name, graph in (("a name", NAMED), ("a name with options", OPTIONS)):
    code, out, err, path = frozen(graph, "--explain", *SWAPPED)
    check(f"a rule takes a function of {name}", code == 0 and ops(path) == ["SUB", "NEG"] and re.search(r"^fused +c: Mine$", out, re.M) and "composite" not in out, out + err + str(ops(path)))
    code, out, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", "x=np.ones((2,4));y=[[3.0]*4]*2")
    check(f"and its operator answers: {name}", code == 0 and "-2." in out, out + err)
code, out, err, path = frozen(OPTIONS, *rules('fusion Mine "mine" { "my_gate"(a, b){times=?n, wide=true} -> "Gate"(b, a){turns=n, half=n/2.0}; }'))
gate = [o for o in shown(path)["subgraphs"][0]["operators"] if o["op"] == "Gate"]
check("options go from the function to the operator", code == 0 and len(gate) == 1 and gate[0]["options"] == {"turns": 3, "half": 1.5}, err + str(gate))
code, out, err, path = frozen(OPTIONS, "--explain", *rules('fusion Mine "mine" { "my_gate"(a, b){times=4} -> "Gate"(b, a); }'))
check("another option: the function is inlined", code == 0 and sorted(ops(path)) == ["MUL", "NEG", "TANH"], err + str(ops(path)))
check("which --explain says of the function", "not fused gate: composite my_gate: no rule takes it" in out, out)
code, out, err, path = frozen(NAMED, "--explain", *rules('fusion Mine "mine" { neg("my_gate"(a, b)) -> sub(b, a) where rank(a) == 3; }'))
check("a condition that does not hold: inlined as well", code == 0 and sorted(ops(path)) == ["MUL", "NEG", "TANH"], err + str(ops(path)))
check("which --explain says of the rule", "not fused z: Mine: it is not that rank(a) == 3" in out, out)
code, out, err, path = frozen(NAMED, "--no_fusion", "Mine", *SWAPPED)
check("a rule that is left out takes none", code == 0 and sorted(ops(path)) == ["MUL", "NEG", "TANH"], err + str(ops(path)))
code, out, err, path = frozen(X + Y + CALL + library('func { name: "my_gate" attr { key: "tfl_fusable_op" value { b: true } } }'), *rules('fusion Mine "mine" { "my_gate"(a, b) -> sub(b, a) where rank(a) == 3; }'))
check("one that is an operator anyway stays it", code == 0 and ops(path) == ["my_gate", "NEG"], err + str(ops(path)))
code, out, err, path = frozen(X + Y + CALL + library('func { name: "my_gate" attr { key: "tfl_fusable_op" value { b: true } } }'), *SWAPPED)
check("unless a rule takes it", code == 0 and ops(path) == ["SUB", "NEG"], err + str(ops(path)))

# ---- results of operators that have several

HALVES = placeholder("x", 2, 8) + int_const("axis", 1) + node("s", "Split", "axis", "x", T="type: DT_FLOAT", num_split="i: 2")
GLU = HALVES + node("g", "Sigmoid", "s:1", **FLOAT) + node("z", "Mul", "s", "g", **FLOAT)
MINE = rules('fusion Mine "mine" { mul(split(axis, x)[0], logistic(split(axis, x)[1])) -> "Glu"(x); }')
code, out, err, path = frozen(GLU, *MINE)
check("both halves of a SPLIT", code == 0 and ops(path) == ["Glu"], err + str(ops(path)))
code, out, err, path = frozen(GLU.replace('input: "s:1"', 'input: "s"').replace('input: "s" input: "g"', 'input: "s:1" input: "g"'), "--explain", *MINE)
check("the other way round is another pattern", code == 0 and "Glu" not in ops(path), err + str(ops(path)))
code, out, err, path = frozen(GLU + node("other", "Exp", "s:1", **FLOAT), "--explain", *MINE)
check("others read a half", code == 0 and "SPLIT" in ops(path), err + str(ops(path)))
refused("a result that there is not", frozen(GLU, *rules('fusion Mine "mine" { mul(tanh(x)[1], x) -> "Glu"(x); }')), "INVALID_ARGUMENT", "tfl.tanh has no result 1")
refused("a rule of another result", frozen(GLU, *rules('fusion Mine "mine" { split(axis, x)[1] -> tanh(x); }')), "INVALID_ARGUMENT", "a rule begins with an operator of one result")
refused("no number", frozen(GLU, *rules('fusion Mine "mine" { mul(split(axis, x)[last], x) -> "Glu"(x); }')), "INVALID_ARGUMENT", "the number of a result")

# ---- what --explain says of rules

code, out, err, path = frozen(GLU, "--explain", *rules('fusion Mine "mine" { mul(split(axis, x)[0], tanh(split(axis, x)[1])) -> "Glu"(x); }'))
check("another operator", "not fused z: Mine: 'g' is logistic, not tanh" in out, out)
code, out, err, path = frozen(GLU, "--explain", *rules('fusion Mine "mine" { add(tanh(x), exp(x)) -> "Sum"(x); }'))
check("nothing like it", "not fused Mine: nothing in the model nearly is one of its patterns" in out, out)
code, out, err, path = frozen(GLU, "--explain", "--json", *MINE)
document = json.loads(out)
check("--explain with --json", {"node": "z", "fusion": "Mine", "fired": True} in document["fusions"], out)
code, out, err, path = frozen(NAMED, "--explain", "--json")
check("--json has reasons", any(f["fusion"] == "composite my_gate" and not f["fired"] and f["why_not"] for f in json.loads(out)["fusions"]), out)
finish()
