#!/usr/bin/env python3
"""Holds the layer law: includes of each folder against the DEPS lines of CMakeLists.txt, and who may see which library."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
deps = {}
for name, rest in re.findall(r"smelt_folder\((\w+)\s+DEPS\s*([^)]*)\)", (root / "CMakeLists.txt").read_text()):
    deps[name] = {w for w in rest.split("LIBS")[0].split()} | {name, "base"}
# Folder order is the order of the lines: a folder may only name those above it.
order, problems = list(deps), []
for name in order:
    for d in deps[name] - {name, "base"}:
        if d not in order[: order.index(name)]:
            problems.append(f"CMakeLists.txt: {name} may not depend on {d}, which stands below it")

# header pattern -> where it may be included (path prefixes under smelt/)
only = {
    r"\.pb\.h[>\"]": ["wire/"],
    r"google/protobuf/": ["wire/"],
    r"grpcpp/": ["rpc/"],
    r"<dnnl": ["kernels/onednn/", "compile/"],
    r"<CLI/": ["cli/"],
    r"<omp\.h>": ["base/parallel.cc"],
    r"<(unsupported/)?Eigen/": ["kernels/linalg/", "kernels/elementwise/special/"],
}
for path in sorted((root / "smelt").rglob("*")):
    if path.suffix not in (".h", ".cc", ".cpp", ".inc"):
        continue
    here = path.relative_to(root / "smelt").as_posix()
    folder = here.split("/")[0]
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+([<"]([^>"]+)[>"])', line)
        if not m:
            continue
        spelled, target = m.group(1), m.group(2)
        where = f"smelt/{here}:{number}"
        inside = re.match(r"smelt/(\w+)/", target)
        if inside and inside.group(1) not in deps.get(folder, set()):
            problems.append(f"{where}: {folder} may not include {target}")
        for pattern, allowed in only.items():
            if re.search(pattern, spelled) and not any(here.startswith(a) for a in allowed):
                problems.append(f"{where}: {target} may only be included in {', '.join(allowed)}")
        if path.suffix == ".h" and re.match(r"(unsupported/)?Eigen/", target):
            problems.append(f"{where}: no header includes Eigen")
print("\n".join(problems) if problems else f"layers: {len(order)} folders, ok")
sys.exit(1 if problems else 0)
