"""What tests of the program share: running it, counting checks, records of TFRecord files, graphs as text."""
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


def call(*args, limit=180, **more):
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


def fields(data):
    """(number, value) of each field of a serialized message: numbers of varints, bytes of all others."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            yield tag >> 3, data[at:at + size]
            at += size


def write_samples(log, path):
    """Samples for calibration of a log's requests (a PredictRequest's inputs have the field number of a sample's)."""
    write_records(path, [dict(fields(dict(fields(record))[6]))[1] for record in read_records(log)])


def node(name, op, *inputs, **attrs):
    """A NodeDef in protobuf's text form; attributes as that form writes their values."""
    lines = [f'node {{ name: "{name}" op: "{op}"'] + [f' input: "{i}"' for i in inputs]
    lines += [f' attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items()]
    return "".join(lines) + " }\n"


def string_const(name, *values, shape=None):
    """A Const of strings: a scalar, or of shape [n] when `shape` says so."""
    dims = "" if shape is None else f"dim {{ size: {shape} }} "
    text = "".join('string_val: "' + v.replace("\\", "\\\\").replace('"', '\\"') + '" ' for v in values)
    return node(name, "Const", dtype="type: DT_STRING", value=f"tensor {{ dtype: DT_STRING tensor_shape {{ {dims}}} {text}}}")


def int_const(name, *values, dtype="DT_INT32", shape=None):
    dims = "" if shape is None else f"dim {{ size: {shape} }} "
    field = "int64_val" if dtype == "DT_INT64" else "int_val"
    text = "".join(f"{field}: {v} " for v in values)
    return node(name, "Const", dtype=f"type: {dtype}", value=f"tensor {{ dtype: {dtype} tensor_shape {{ {dims}}} {text}}}")
