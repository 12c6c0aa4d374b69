#!/usr/bin/env python3
"""Attacks the reading of packed models and inputs: flip_archives.py SMELT MODEL_DIR [--signature S] [--seed N] [--flips N] [--cuts N].

The model is packed as tar, tar.gz (stored and deflated) and zip, a request to it as .npz (stored and deflated). In each, bits are flipped and ends cut off at
random; `smelt run` then must give the intact answer or an error: another answer, a crash or a time out is a failure, and so is a file left behind. Contents of
a plain tar file are protected by no checksum, as those of a folder: flips there may change the answer. Then come the hostile archives of hostile_archives.py.
Ends with 'N attacks, N failed'."""
import argparse
import gzip
import io
import pathlib
import random
import shutil
import sys
import tarfile
import tempfile
import zipfile

from hostile_archives import ANSWER, archive_rows, model_entries, npz_of, npz_rows, tar_of
from model_request import Smelt, make_request


class Attack:
    def __init__(self, flags, work):
        self.flags, self.rng = flags, random.Random(flags.seed)
        self.work, self.model = work, flags.model.resolve()
        self.temporary = work / "tmp"
        self.temporary.mkdir()
        self.smelt = Smelt(flags.smelt, self.temporary)
        self.signature, self.arrays = make_request(self.smelt, self.model, flags.signature, flags.seed)
        self.inputs = self.write("inputs.npz", npz_of(self.arrays, zipfile.ZIP_STORED))
        self.answer = self.run(self.model, self.inputs)
        if self.answer[0] != 0:
            raise SystemExit(f"{self.model} answers nothing: {self.answer[2].decode(errors='replace')}")
        self.attacks = self.failed = self.read = self.unprotected = 0

    def write(self, name, data):
        path = self.work / name
        path.write_bytes(data)
        return path

    def run(self, model, inputs, *more, env=()):
        given = ";".join(f"{key}={inputs}[{key}]" for key in self.arrays)
        return self.smelt.call("run", "--dir", model, "--signature_def", self.signature, "--inputs", given, *more, env=env)

    def judge(self, name, result, may_differ=False):
        """Counts the attack. An answer, if any, must be the intact one."""
        code, out, err = result
        self.attacks += 1
        why = ""
        if code == Smelt.TIMED_OUT:
            why = "timed out"
        elif code not in (0, 1):
            why = f"died with {code}"
        elif code == 0 and out != self.answer[1]:
            if may_differ:
                self.unprotected += 1
            else:
                why = "gave another answer"
        elif code == 1 and not err.startswith(b"error: "):
            why = "failed without an error"
        self.read += code == 0
        for left in self.temporary.iterdir():
            why = why or f"left {left.name} behind"
            shutil.rmtree(left)
        if why:
            self.fail(name, f"{why}: {err.decode(errors='replace')}")

    def fail(self, name, why):
        self.failed += 1
        print(f"FAILED {name}: {why}"[:1000])

    def damage(self, form, data, run, free=()):
        """Flips and cuts; `free` are ranges of bytes where a flip may change the answer."""
        for _ in range(self.flags.flips):
            at, bit = self.rng.randrange(len(data)), self.rng.randrange(8)
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            self.judge(f"{form}, byte {at} bit {bit}", run(bytes(flipped)), any(a <= at < b for a, b in free))
        for _ in range(self.flags.cuts):
            size = self.rng.randrange(len(data))
            self.judge(f"{form}, cut to {size} bytes", run(data[:size]))

    def damage_all(self):
        entries = model_entries(self.model)
        tar = tar_of(entries)
        with tarfile.open(fileobj=io.BytesIO(tar)) as t:
            contents = [(m.offset_data, m.offset_data + m.size) for m in t.getmembers()]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as z:
            for name, data, _ in entries:
                z.writestr(name, data)

        def archive(data):
            return self.run(self.write("attacked", data), self.inputs)

        def inputs(data):
            return self.run(self.model, self.write("attacked", data))

        self.damage("tar", tar, archive, contents)
        self.damage("tar.gz, stored", gzip.compress(tar, 0), archive)
        self.damage("tar.gz, deflated", gzip.compress(tar, 9), archive)
        self.damage("zip", packed.getvalue(), archive)
        self.damage("npz, stored", npz_of(self.arrays, zipfile.ZIP_STORED), inputs)
        self.damage("npz, deflated", npz_of(self.arrays, zipfile.ZIP_DEFLATED), inputs)

    def hostile(self):
        outside = self.work / "canary" / "written"
        outside.parent.mkdir()
        for name, data, want, *more in archive_rows(self.model, outside):
            # Names are read whatever the locale is.
            for language in ["C", "C.UTF-8"] if "names" in name else ["C"]:
                result = self.run(self.write("attacked", data), self.inputs, *more, env={"LC_ALL": language})
                self.expect(f"hostile archive, {name}, {language}", result, want)
                if any(outside.parent.iterdir()) or (self.work / outside.name).exists():
                    self.fail(name, "wrote outside of its folder")
        for name, data, want in npz_rows(self.arrays):
            self.expect(f"hostile npz, {name}", self.run(self.model, self.write("attacked", data)), want)

    def expect(self, name, result, want):
        self.judge(name, result)
        code, _, err = result
        if want == ANSWER:
            if code != 0:
                self.fail(name, f"is not read: {err.decode(errors='replace')}")
        elif code == 0:
            self.fail(name, "is believed")
        elif code == 1 and any(text.encode() not in err for text in want):
            self.fail(name, f"another error than {want}: {err.decode(errors='replace')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smelt")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--signature", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flips", type=int, default=200, help="in each form")
    parser.add_argument("--cuts", type=int, default=20, help="of each form")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="smelt_attack_") as work:
        attack = Attack(flags, pathlib.Path(work))
        attack.damage_all()
        attack.hostile()
    print(f"seed {flags.seed}: {attack.read} were read, {attack.unprotected} of them with another answer from contents that no checksum protects")
    print(f"{attack.attacks} attacks, {attack.failed} failed")
    return 1 if attack.failed else 0


if __name__ == "__main__":
    sys.exit(main())
