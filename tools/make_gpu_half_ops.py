#!/usr/bin/env python3
"""Writes smelt/optimize/precision/gpu_half_ops.inc: the ops of ops.txt whose GPU kernels take half for each type attribute that may be half. Needs the tensorflow package for Linux, which registers GPU kernels
on machines without a GPU too."""
import collections
import pathlib
import re
import textwrap

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels, op_def_registry

root = pathlib.Path(__file__).resolve().parent.parent


def main():
    taken = collections.defaultdict(list)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("GPU", "DEFAULT") and not kernel.label:
            taken[kernel.op].append({c.name: set(c.allowed_values.list.type) for c in kernel.constraint})
    ops = []
    for op in re.findall(r"^(\w+)(?: \(.*\))?$", (root / "smelt/graph/ops/ops.txt").read_text(), re.M):
        definition = op_def_registry.get(op)
        if definition is None:
            continue
        attrs = [a for a in definition.attr if a.type in ("type", "list(type)")]
        attrs = [a.name for a in attrs if not a.allowed_values.list.type or types_pb2.DT_HALF in a.allowed_values.list.type]
        if attrs and all(any(a not in k or types_pb2.DT_HALF in k[a] for k in taken[op]) for a in attrs):
            ops.append(f'"{op}",')
    text = "\n".join(textwrap.wrap(" ".join(ops), 98))
    (root / "smelt/optimize/precision/gpu_half_ops.inc").write_text(f"// Written by tools/make_gpu_half_ops.py.\n{text}\n")


main()
