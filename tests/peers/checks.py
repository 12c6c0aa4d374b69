"""What the tests against TensorFlow share: checks that are counted, and calls of smelt. SMELT is the first argument of each test."""
import os
import subprocess
import sys

smelt = os.path.abspath(sys.argv[1])
_passed, _failed = 0, []


def check(name, truth, detail=""):
    global _passed
    if truth:
        _passed += 1
    else:
        _failed.append(name)
        print(f"FAILED {name}: {detail}"[:2000])


def call(*args):
    """(exit code, everything that smelt printed)"""
    p = subprocess.run([smelt, *map(str, args)], capture_output=True, text=True, timeout=300)
    return p.returncode, p.stdout + p.stderr


def finish():
    print(f"{_passed} passed, {len(_failed)} failed")
    sys.exit(bool(_failed))
