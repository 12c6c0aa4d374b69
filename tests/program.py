"""What tests of the program share: running it, counting checks, records of TFRecord files."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

models = pathlib.Path(__file__).resolve().parent / "models"
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_test_"))
smelt = os.path.abspath(sys.argv[1])
passed, failed = 0, []


def call(*args, limit=60, **more):
    """Exit code (negative: the signal), standard output and error of the program."""
    p = subprocess.run([smelt, *map(str, args)], stderr=subprocess.PIPE, text=True, timeout=limit, **{"stdout": subprocess.PIPE, **more})
    return p.returncode, p.stdout, p.stderr


def check(name, truth, detail=""):
    global passed
    if truth:
        passed += 1
    else:
        failed.append(name)
        print(f"FAILED {name}: {detail}"[:2000])


def finish():
    shutil.rmtree(work)
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


def masked_crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8 & 0xffffffff).to_bytes(4, "little")


def read_records(path):
    data, out = path.read_bytes(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        out.append(data[12:12 + size])
        data = data[16 + size:]
    return out


def write_records(path, records):
    out = b""
    for record in records:
        length = len(record).to_bytes(8, "little")
        out += length + masked_crc32c(length) + record + masked_crc32c(record)
    path.write_bytes(out)
