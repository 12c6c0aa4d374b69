#!/usr/bin/env python3
"""Holds programs and libraries to an older processor: lower_isa.py {avx2|avx512} OUT PATH...

Each PATH (a file, or a folder such as a Python package) is copied into OUT under its own name: files without a `cpuid` instruction as links, the others with each
`cpuid` replaced by an undefined instruction of the same length. OUT/lower_isa.so, preloaded, answers these traps as the processor does, less what is newer than the
level: avx2 has no AVX-512, VNNI, BF16 or AMX; avx512 has no VNNI, BF16 or AMX. So every engine chooses its kernels as on such a machine (its own caches and clock
stay those of this one):

  lower_isa.py avx2 OUT build/smelt build/libsmelt_onednn.so SITE/tensorflow SITE/onnxruntime SITE/openvino SITE/ai_edge_litert
  LD_PRELOAD=OUT/lower_isa.so PYTHONPATH=OUT bench/engines.py OUT/smelt SUITE

An instruction is taken for one only where decoding from the start of its function (the table that unwinding uses) meets it. Needs capstone, numpy and a C compiler;
x86-64 only."""
import argparse
import os
import pathlib
import shutil
import struct
import subprocess

import capstone
import numpy

HERE = pathlib.Path(__file__).resolve().parent
CPUID, TRAP = b"\x0f\xa2", b"\x0f\x0b"
PT_LOAD, PT_GNU_EH_FRAME, EXECUTABLE = 1, 0x6474E550, 1


def segments(data):
    """(type, flags, offset, address, size in the file) of each program header of a 64-bit ELF file."""
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
        yield kind, flags, offset, address, length


def functions(data):
    """The sorted addresses of the functions that the unwinding table names."""
    for kind, _, offset, address, _ in segments(data):
        if kind == PT_GNU_EH_FRAME:
            version, pointer, count_form, table_form = data[offset:offset + 4]
            if (version, count_form, table_form) != (1, 0x03, 0x3B):
                raise SystemExit(f"an unwinding table of another form: {version} {pointer:#x} {count_form:#x} {table_form:#x}")
            count, = struct.unpack_from("<I", data, offset + 8)
            pairs = numpy.frombuffer(data, "<i4", 2 * count, offset + 12)
            return pairs[::2].astype("i8") + address
    return numpy.zeros(0, "i8")


def cpuids(data):
    """The offsets in the file of its cpuid instructions, and how often the two bytes were a part of something else."""
    starts, found, others = functions(data), [], 0
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.skipdata = True
    for kind, flags, offset, address, length in segments(data):
        if kind != PT_LOAD or not flags & EXECUTABLE:
            continue
        at = data.find(CPUID, offset, offset + length)
        while at >= 0:
            here = at - offset + address
            i = int(numpy.searchsorted(starts, here, "right")) - 1
            begin = int(starts[i]) if i >= 0 else here
            code = data[begin - address + offset:at + 16]  # a longer instruction around the two bytes is decoded whole
            if any(a == here and name == "cpuid" for a, _, name, _ in decoder.disasm_lite(code, begin)):
                found.append(at)
            else:
                others += 1
            at = data.find(CPUID, at + 1, offset + length)
    return found, others


def lower(source, target):
    data = source.read_bytes()
    found, others = cpuids(data) if data[:5] == b"\x7fELF\x02" and CPUID in data else ([], 0)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not found:
        target.symlink_to(source)
        return
    changed = bytearray(data)
    for at in found:
        changed[at:at + 2] = TRAP
    target.write_bytes(changed)
    shutil.copymode(source, target)
    print(f"{target}: {len(found)} cpuid instructions, {others} other places with their bytes", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("level", choices=["avx2", "avx512"]), ap.add_argument("out", type=pathlib.Path), ap.add_argument("paths", type=pathlib.Path, nargs="+")
    a = ap.parse_args()
    a.out.mkdir(parents=True)
    for path in (p.resolve() for p in a.paths):
        for source in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if source.is_file():
                lower(source, a.out.resolve() / source.relative_to(path.parent))
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-Wl,-z,initfirst", f"-DWITHOUT_AVX512={int(a.level == 'avx2')}", "-o", a.out / "lower_isa.so", HERE / "lower_isa.c"], check=True)


if __name__ == "__main__":
    main()
