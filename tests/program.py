"""What tests of the program share: it is run as a user runs it, and checks are counted."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class Program:
    def __init__(self, smelt, prefix):
        self.smelt = os.path.abspath(smelt)
        self.models = pathlib.Path(__file__).resolve().parent / "models"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        self.passed, self.failed = 0, []

    def call(self, *args, limit=60, **more):
        """(exit code, stdout, stderr)."""
        p = subprocess.run([self.smelt, *map(str, args)], capture_output=True, text=True, timeout=limit, **more)
        return p.returncode, p.stdout, p.stderr

    def check(self, name, truth, detail=""):
        if truth:
            self.passed += 1
        else:
            self.failed.append(name)
            print(f"FAILED {name}: {detail}"[:2000])

    def end(self):
        shutil.rmtree(self.work, ignore_errors=True)
        print(f"{self.passed} passed, {len(self.failed)} failed")
        sys.exit(bool(self.failed))


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
