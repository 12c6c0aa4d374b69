#!/usr/bin/env python3
"""Turns tables of ops into C++: embed.py OUT_DIR ops.txt OTHER.txt... Run by the build.

OUT_DIR/op_rows.cc holds a row of text for each op, OUT_DIR/op_names.inc their names: both sorted by name, so that the position in either is the op's
number."""
import pathlib
import sys

target, *sources = sys.argv[1:]
tables = []
for source in sources:
    blocks = [b for b in pathlib.Path(source).read_text(encoding="utf8").split("\n\n") if b and not b.startswith("#")]
    tables.append({b.split(None, 1)[0]: b.strip() for b in blocks})
    assert len(tables[-1]) == len(blocks), f"{source}: an op stands there twice"
theirs, *others = tables
own = {name: text for table in others for name, text in table.items()}
# A definition of our own for an op that TensorFlow has stands in the place of TensorFlow's.
rows = sorted((name, text, name not in theirs) for name, text in {**theirs, **own}.items())


def write(name, text):
    """Leaves the file alone where nothing changed: op_names.inc is part of every source."""
    path = pathlib.Path(target) / name
    if not path.exists() or path.read_text(encoding="utf8") != text:
        path.write_text(text, encoding="utf8")


lines = []
for name, text, own in rows:
    assert ')op"' not in text
    lines.append(f'    {{R"op({text})op", {"true" if own else "false"}}},\n')
write("op_rows.cc", '#include "smelt/graph/op_def.h"\n\nnamespace smelt::internal {\nnamespace {\nconstexpr OpRow kEmbeddedOps[] = {\n' + "".join(lines) +
      "};\n}  // namespace\nconstinit const std::span<const OpRow> kOpRows = kEmbeddedOps;\n}  // namespace smelt::internal\n")
write("op_names.inc", "".join(f'"{name}",\n' for name, _, _ in rows))
