#!/usr/bin/env python3
"""Files over 600 lines need a reason in their first ten lines ("long because ..."), over 1,000 fail. Tables are excepted."""
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
names = subprocess.run(["git", "ls-files", "*.cc", "*.h", "*.cpp", "*.py", "*.inc"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
bad = []
for name in names:
    path = root / name
    if not path.exists() or name.endswith("compilable_ops.inc"):
        continue
    lines = path.read_text(errors="replace").splitlines()
    if len(lines) > 1000:
        bad.append(f"{name}: {len(lines)} lines, more than 1000")
    elif len(lines) > 600 and "long because" not in "\n".join(lines[:10]).lower():
        bad.append(f"{name}: {len(lines)} lines without a reason in its first ten lines")
print("\n".join(bad) if bad else f"sizes: {len(names)} files, ok")
sys.exit(1 if bad else 0)
