"""A request that a model answers, made up of what `smelt show --json` says of a signature, as .npy bytes; and the program as it runs under attack."""
import json
import os
import random
import struct
import subprocess

# dtype -> numpy's type, struct's letter. Half precision numbers are written as bytes.
DTYPES = {
    "DT_FLOAT": ("<f4", "f"), "DT_DOUBLE": ("<f8", "d"), "DT_HALF": ("<f2", "e"), "DT_BOOL": ("|b1", "?"),
    "DT_INT8": ("|i1", "b"), "DT_INT16": ("<i2", "h"), "DT_INT32": ("<i4", "i"), "DT_INT64": ("<i8", "q"),
    "DT_UINT8": ("|u1", "B"), "DT_UINT16": ("<u2", "H"), "DT_UINT32": ("<u4", "I"), "DT_UINT64": ("<u8", "Q"),
}
WORD = b"word"


class Smelt:
    """Runs the program with a temporary folder of its own; each answer is (exit code, stdout, stderr)."""

    TIMED_OUT = "timed out"

    def __init__(self, program, temporary, limit=60):
        self.program, self.temporary, self.limit = os.path.abspath(program), temporary, limit

    def call(self, *args, env=()):
        try:
            p = subprocess.run([self.program, *map(str, args)], capture_output=True, timeout=self.limit, stdin=subprocess.DEVNULL,
                               env={**os.environ, "TMPDIR": str(self.temporary), **dict(env)})
        except subprocess.TimeoutExpired:
            return self.TIMED_OUT, b"", b""
        return p.returncode, p.stdout, p.stderr


def npy(dtype, shape, rng):
    """An array of small numbers, or of one word."""
    n = 1
    for d in shape:
        n *= d
    if dtype == "DT_STRING":
        descr, data = f"|S{len(WORD)}", WORD * n
    else:
        descr, letter = DTYPES[dtype]
        whole = letter not in "fde"
        data = struct.pack(f"<{n}{letter}", *[rng.randrange(2) if whole else rng.random() for _ in range(n)])
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def make_request(smelt, model, signature, seed):
    """(signature, {input: .npy bytes}) that the model is asked with; the first signature that has inputs if none is named."""
    code, out, err = smelt.call("show", "--dir", model, "--json")
    if code != 0:
        raise SystemExit(f"{model} is no model: {err.decode(errors='replace')}")
    rng = random.Random(seed)
    for meta in json.loads(out)["meta_graphs"]:
        for name, slots in sorted(meta["signatures"].items()):
            if name.startswith("__") or (signature and name != signature) or not slots["inputs"]:
                continue
            return name, {key: npy(slot["dtype"], [1] if slot["shape"] is None else [max(d, 1) for d in slot["shape"]], rng) for key, slot in sorted(slots["inputs"].items())}
    raise SystemExit(f"{model} has no signature {signature or 'with inputs'}")
