#!/usr/bin/env python3
"""Writes docs/lite_operators.md, what becomes of each builtin operator of TensorFlow Lite: lite_operators.py [--check]

The schema names the operators. Exported is what the exporter's sources name (smelt/lite but for lower/ and the table of operand counts); what runs has a row in smelt/lite/lower, what runs on
quantized tensors one in quantized.cc. --check writes nothing and fails where the page says something else."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
page = root / "docs/lite_operators.md"
# Of those that do not run. tests/peers/lite_builtins.py holds that TensorFlow Lite has no kernel of them either.
WHY = {
    "CONCAT_EMBEDDINGS": "TensorFlow Lite has no kernel",
    "DELEGATE": "stands for what a delegate runs: in no file",
    "PLACEHOLDER_FOR_GREATER_OP_CODES": "stands for a number beyond 127: no operator",
}
NO_KERNEL = "TensorFlow Lite has no kernel: converters lower it before"


def sources(folder, leave_out=()):
    return [p for p in sorted((root / folder).rglob("*")) if p.suffix in (".cc", ".h", ".inc") and not any(part in leave_out for part in p.parts)]


def named(files, pattern=r'"tfl\.([a-z0-9_]+)"'):
    return {name for file in files for name in re.findall(pattern, file.read_text())}


def table():
    schema = (root / "smelt/wire/tflite/tflite.fbs").read_text()
    builtins = re.search(r"enum BuiltinOperator : int \{(.*?)\}", schema, re.DOTALL).group(1)
    operators = [(int(number), name) for name, number in re.findall(r"(\w+) = (\d+)", builtins)]
    # Rules of fusions are text: "(tfl.add $x $y)".
    exporter = sources("smelt/lite", ("lower", "operand_counts.cc"))
    exported = named(exporter, r"\btfl\.([a-z0-9_]+)")
    # What the file as it is written brings alone.
    exported |= {name.lower() for name in named(exporter, r'\.op = "([A-Z0-9_]+)"')}
    lower = sources("smelt/lite/lower")
    row = r'\{\s*"tfl\.([a-z0-9_]+)"'
    runs = named(lower, row)
    quantized = named([f for f in lower if f.name == "quantized.cc"], row)
    lines = []
    for number, name in operators:
        op = name.lower()
        does_run = op in runs
        why = "" if does_run else WHY.get(name, NO_KERNEL)
        if name == "CUSTOM":
            why = "those of `--op_library`, those that TensorFlow Lite's own resolver brings (`TFLite_Detection_PostProcess`, `AudioSpectrogram`, `Mfcc`, `NumericVerify`), and select ops of TensorFlow (`Flex...`)"
        lines.append(f"| {number} | {name} | {'yes' if op in exported else ''} | {'yes' if does_run else ''} | {'yes' if op in quantized else ''} | {why} |")
    known = {name.lower() for _, name in operators} | {"variable", "no_value"}
    assert not runs - known, runs - known
    return lines


def functions(text):
    """{name: body} of the functions of a file, those of classes among them."""
    out = {}
    for m in re.finditer(r"^( *)[\w:<>,*& ]+[ >*&](?:\w+::)?(\w+)\([^;{}]*\)(?: const)? \{(?:\n(.*?)^\1\}|( [^\n]*)\}$)", text, re.M | re.S):
        out[m[2]] = out.get(m[2], "") + (m[3] or m[4])
    # What a class of the file does, those do who make one.
    for m in re.finditer(r"^class (\w+) .*?\{\n(.*?)^\};", text, re.M | re.S):
        out[m[1]] = out.get(m[1], "") + m[2]
    return out


def made_by(name, bodies, chain, seen):
    """Operators that a function names, or those that it calls, and those of a chain's methods."""
    if name in seen:
        return set()
    seen.add(name)
    body = bodies.get(name, "")
    out = set(re.findall(r'"tfl\.([a-z0-9_]+)"', body))
    for other in bodies:
        if other != name and re.search(rf"(?<![.>\w]){other}\b", body):
            out |= made_by(other, bodies, chain, seen)
    for receiver, method in re.findall(r"\b(\w+)\.(\w+)\(", body):
        if receiver in ("l", "l_"):
            out |= {"shape"} if method == "ShapeOf" else set()
        elif method in chain:
            out |= chain[method]
    return out


def exports():
    """[(op of TensorFlow, its operators, the one that the row names)]: the rows of smelt/lite/rows."""
    methods = functions((root / "smelt/lite/rows/chain.h").read_text()) | functions((root / "smelt/lite/rows/chain.cc").read_text())
    methods.pop("OperatorChain", None)
    chain = {m: made_by(m, methods, {}, set()) for m in methods}
    shared, out = {}, {}
    for file in sources("smelt/lite/rows"):
        if file.name not in ("chain.h", "chain.cc"):
            for name, body in functions(file.read_text()).items():
                shared.setdefault(name, []).append((file, body))
    for file in sources("smelt/lite/rows"):
        text = file.read_text()
        # A name that another file has in its anonymous namespace is that file's own.
        bodies = {name: "".join(b for f, b in places if f == file) or places[0][1] for name, places in shared.items()}
        for rows in re.findall(r"ExportRow k\w+\[\] = \{(.*?)\};\n", text, re.S):
            # FRAME<FUNCTION>: what both make.
            for op, function, within, operator in re.findall(r'\{\s*"(\w+)",\s*(\w+)(?:<(\w+)>)?(?:,\s*"tfl\.(\w+)")?', rows):
                made = made_by(function, bodies, chain, set()) | made_by(within, bodies, chain, set())
                out[op] = sorted(made - {"no_value", "variable"}), operator
    return sorted(out.items())


def becomes(op, made, operator):
    """A row that names its operator shares its function with others, whose operators are no matter."""
    return f"| `{op}` | {operator.upper() if operator else ', '.join(m.upper() for m in made)} |"


lines, ops = table(), exports()
text = f"""# The builtin operators of TensorFlow Lite

What `smelt lite` writes (exported), what `smelt run`, `replay` and `bench` do with a file (runs), and whether they do so where its tensors are quantized integers. An operator that is
exported or runs on no quantized tensor takes floats and plain integers. `tools/lite_operators.py` writes this page from the tables of rows; a test compares.

| # | operator | exported | runs | quantized | |
|---|---|---|---|---|---|
""" + "\n".join(lines) + f"\n\n{len(lines)} operators: {sum(l.split('|')[3].strip() == 'yes' for l in lines)} exported, {sum(l.split('|')[4].strip() == 'yes' for l in lines)} run.\n" + """
# The ops of TensorFlow that become operators

Which operators may stand for an op: one gives its result; of several those that its attributes, shapes, types and constants want. None are named of an op that goes, or whose value is known when the file is written. Fusions (lite_fusions.md) make other operators of these. `smelt lite --list_ops` says of which types. An op that is not here has no builtin: it is refused, with the reason, or becomes a select or a
custom operator (lite.md).

| op | operators |
|---|---|
""" + "\n".join(becomes(op, *made) for op, made in ops) + f"\n\n{len(ops)} ops.\n"
if "--check" in sys.argv:
    if not page.exists() or page.read_text() != text:
        sys.exit("docs/lite_operators.md is not what tools/lite_operators.py writes")
    print(f"{len(lines)} passed, 0 failed")
else:
    page.write_text(text)
