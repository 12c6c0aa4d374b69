#!/usr/bin/env python3
"""No two files define a type of one name in one namespace: check_names.py. Linkers take one of two inline constructors for both.

Types in anonymous namespaces and in classes do not count."""
import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"(?:inline )?namespace ([\w:]*) ?\{")
TYPE = re.compile(r"(?:struct|class|union)(?: ABSL_\w+(?:\([^)]*\))?)? ([A-Z]\w*)(?: final)?(?: :[^:].*)? \{")

where = collections.defaultdict(set)
files = [p for p in sorted(pathlib.Path("smelt").rglob("*")) if p.suffix in (".h", ".cc")]
for path in files:
    inside = []
    for line in path.read_text().splitlines():
        if opened := NAMESPACE.match(line):
            inside.append(opened[1])
        elif line.startswith("}  // namespace"):
            inside.pop()
        elif (defined := TYPE.match(line)) and "" not in inside:
            where["::".join([*inside, defined[1]])].add(str(path))
twice = {name: sorted(paths) for name, paths in where.items() if len(paths) > 1}
for name, paths in twice.items():
    print(f"{name} is defined in {' and '.join(paths)}")
if twice or not where:
    sys.exit(1)
print(f"names: {len(where)} types in {len(files)} files, ok")
