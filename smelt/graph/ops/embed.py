#!/usr/bin/env python3
"""Turns ops.txt into the C++ table of op rows: embed.py ops.txt op_rows.cc. Run by the build."""
import sys

source, target = sys.argv[1:]
blocks = [b for b in open(source, encoding="utf8").read().split("\n\n") if b and not b.startswith("#")]
rows = sorted((b.split(None, 1)[0], b.strip()) for b in blocks)
with open(target, "w", encoding="utf8") as f:
    f.write('#include "smelt/graph/op_def.h"\n\nnamespace smelt::internal {\nnamespace {\n'
            "constexpr OpRow kEmbeddedOps[] = {\n")
    for name, text in rows:
        assert ')op"' not in text
        f.write(f'    {{"{name}", R"op({text})op"}},\n')
    f.write("};\n}  // namespace\nconstinit const std::span<const OpRow> kOpRows = kEmbeddedOps;\n}  // namespace smelt::internal\n")
