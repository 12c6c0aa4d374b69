#!/usr/bin/env python3
"""Fusions of a user's library: fusion_library_test.py SMELT LIBRARY OTHER_LIBRARY. Ends with 'N passed, N failed'.

tests/fusion_library is the library, compiled against the interface alone; the other one is a library that has no fusions."""
import os
import sys

from program import call, check, finish, work

library, other = (os.path.abspath(path) for path in sys.argv[2:4])


def frozen(name, text):
    """The graph as a GraphDef, which is what exports read."""
    (work / f"{name}.graph").write_text(text)
    call("optimize", "--graph_def", work / f"{name}.graph", work / f"{name}.pb", "--passes", "", "--feeds", "x", "--fetches", "y")
    return work / f"{name}.pb"


TEXT = """x = Placeholder {dtype=float, shape=[?,3]}
low = Const {value=float[]{-2.5}}
high = Const {value=float[]{4}}
s = Sigmoid(x) {T=float}
t = Mul(x, s) {T=float}
m = Maximum(t, low) {T=float}
c = Minimum(m, high) {T=float}
y = Identity(c) {T=float}
"""
graph = frozen("in", TEXT)


def export(*args, asked="", source=graph, loaded=library):
    env = {k: v for k, v in os.environ.items() if k != "SMELT_EXAMPLE_FUSION"}
    if asked:
        env["SMELT_EXAMPLE_FUSION"] = asked
    path = work / "out.tflite"
    path.unlink(missing_ok=True)
    code, out, err = call("lite", "--graph_def", source, path, "--allow_custom_ops", "--explain", *(["--fusion_library", loaded] if loaded else []), *args, env=env)
    return code, out, err, path.read_bytes() if path.exists() else b""


code, out, err, data = export()
check("fusions of a library fire", code == 0 and b"ExampleSwish\0" in data and b"ExampleClip\0" in data, out + err)
check("and say so", "FuseExampleSwish" in out and "FuseExampleClip" in out, out)
check("with options in a map", b"order\0" in data and b"low\0" in data and b"high\0" in data and b"label\0" in data, data)
check("and a new constant", b"\x00\x00\x20\xc0\x00\x00\x80\x40" in data, data)
code, out, err, data = export("--no_fusion", "FuseExampleSwish")
check("one is switched off", code == 0 and b"ExampleSwish\0" not in data and b"ExampleClip\0" in data, out + err)
code, out, err, data = export(loaded=None)
check("without the library nothing of it is there", code == 0 and b"ExampleClip" not in data and "FuseExample" not in out, out + err)
code, out, err = call("lite", "--list_fusions", "--fusion_library", library)
check("they are listed", code == 0 and "min(max(x, a), b) -> ExampleClip(x)" in out, out + err)
code, out, err, data = export(loaded=library)
again = export("--fusion_library", library)
check("a library twice has names twice", again[0] != 0 and "INVALID_ARGUMENT" in again[2] and "FuseExampleSwish already" in again[2] and not again[3], again[1] + again[2])

read_twice = frozen("read_twice", TEXT.replace("y = Identity(c)", "z = Neg(m) {T=float}\nw = Sub(c, z) {T=float}\ny = Identity(w)"))
code, out, err, data = export(source=read_twice)
check("what others read is not taken", code == 0 and b"ExampleClip" not in data and "not fused c: FuseExampleClip: 'w' reads 'm'" in out, out + err)
not_constant = frozen("not_constant", TEXT.replace("m = Maximum(t, low)", "l = Neg(x) {T=float}\nm = Maximum(t, l)"))
code, out, err, data = export(source=not_constant)
check("a reason is told", code == 0 and b"ExampleClip" not in data and "FuseExampleClip: a bound is no constant" in out, out + err)

# ---- what a library does wrongly
code, out, err, data = export(asked="decline")
check("declined", code == 0 and "not fused t: FuseExampleSwish: it is Tuesday" in out, out + err)
for asked, words in {"fail": "it is Tuesday", "no operator": "there is no operator", "no input": "has no input 7", "no output": "has no output 3", "lie": "not replaced the operator",
                     "no attribute": "fused_activation_function of 't' is of another type", "garbage": "answers 77 without a reason", "hide": "has replaced the operator",
                     "twice": "replaces a second time", "small struct": "struct_size", "no name": "has no name", "unknown operator": "no operator NO_SUCH_OPERATOR",
                     "calls": "calls functions", "few inputs": "cannot have 1 inputs", "many results": "TOPK_V2", "itself": "read what it replaces", "unknown option": "has no option stride_h",
                     "wrong option": "is of type string", "no such activation": "COSINE", "bad constant": "constant"}.items():
    code, out, err, data = export(asked=asked)
    check(asked, code == 1 and words in err and "FuseExampleSwish" in err and not data, f"{code}: {out}{err}")
for asked, words in {"other version": "smelt_register_fusions answered 2", "nameless": "lacks its name", "other struct": "struct_size", "tried nowhere": "no operator NO_SUCH_OPERATOR",
                     "taken name": "there is a fusion FuseHardSwish already"}.items():
    code, out, err, data = export(asked=asked)
    check(asked, code != 0 and words in err and not data, f"{code}: {out}{err}")
code, out, err, data = export(loaded=other)
check("a library of something else", code != 0 and "INVALID_ARGUMENT" in err and "exports no smelt_register_fusions" in err, err)
code, out, err, data = export(loaded=str(work / "no.so"))
check("no library", code != 0 and "NOT_FOUND" in err and "cannot load fusion library" in err, err)
code, out, err, data = export(loaded=str(graph))
check("no shared object", code != 0 and "cannot load fusion library" in err, err)
finish()
