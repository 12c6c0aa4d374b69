#!/usr/bin/env python3
"""What --cache keeps, and what it makes of files that it cannot believe: cache_test.py SMELT. Ends with 'N passed, N failed'."""
import os
import resource
import shutil
import subprocess
import time

from program import call, check, finish, models, smelt, work

model, log = work / "model", models / "wide_cnn.tfrecord"
shutil.copytree(models / "wide_cnn", model)
# A file that changed just now may change again within the same tick: only settled ones are remembered as verified.
time.sleep(2.2)
cache = work / "cache"


def replay(folder=cache, *flags, of=model, env=None, **more):
    """(exit code, what went to stderr, what answers were) of one process."""
    code, out, err = call("replay", of, "--log", log, "--cache", folder, *flags, env={**os.environ, **(env or {})}, **more)
    return code, err, out


def forms(folder=cache):
    return sorted(p for p in folder.glob("*") if p.suffix == ".forms") if folder.is_dir() else []


def state(folder=cache):
    """What tells a file that was written anew from one that was not."""
    return [(p.name, p.stat().st_ino, p.stat().st_mtime_ns) for p in forms(folder)]


# ---- what is kept
code, err, first = replay(env={"DNNL_VERBOSE": "1"})
check("the first process answers and writes", code == 0 and not err and len(forms()) == 1, err)
good = forms()[0].read_bytes()
check("forms of weights are in it", len(good) > 24 << 10, len(good))
before = state()
code, err, _ = replay()
check("the second one writes nothing", code == 0 and not err and state() == before, err)
code, err, later = replay(env={"DNNL_VERBOSE": "1"})
check("weights that the library packed are among them", ",reorder," in first and ",convolution," in later and ",reorder," not in later, later)
check("nothing is left beside it", [p.name for p in cache.iterdir()] == [forms()[0].name], list(cache.iterdir()))

# ---- other processors: none takes what another one's layout is
for isa in ("sse2", "avx2"):
    code, err, _ = replay(env={"SMELT_ISA": isa})
    check(f"{isa} answers from the same folder", code == 0 and not err and len(forms()) == 1, err)
code, err, _ = replay()
check("and so does the first again", code == 0 and not err, err)
good = forms()[0].read_bytes()

# ---- damage: a warning, the right answers, and the file is written anew
path = forms()[0]
for name, bad in (("empty", b""), ("cut in its head", good[:60]), ("cut in a form", good[:len(good) // 2]), ("cut in its table", good[:-9]), ("longer", good + b"x"),
                  ("something else", b"hello" * 1000), ("another version", good[:8] + b"\x63" + good[9:]), ("another key", good[:40] + b"\x00" + good[41:]),
                  ("entries without end", good[:12] + b"\xff" * 4 + good[16:]), ("a table without end", good[:16] + b"\xff" * 8 + good[24:]),
                  ("a bit of its table", good[:-20] + bytes([good[-20] ^ 4]) + good[-19:])):
    path.write_bytes(bad)
    code, err, _ = replay()
    check(f"damaged: {name}", code == 0 and "is not used" in err and path.read_bytes() != bad, err)
    code, err, _ = replay()
    check(f"mended: {name}", code == 0 and not err, err)
good = path.read_bytes()
hit = 0
for at in range(4096 + 100, len(good) - 4096, len(good) // 12):
    bad = bytearray(good)
    bad[at] ^= 0x10
    path.write_bytes(bad)
    code, err, _ = replay()
    hit += "does not match" in err
    # A byte between forms, or of a form of another processor, is nobody's.
    check(f"a flipped bit at {at}", code == 0 and ("does not match" in err) == bool(err), err)
check("flipped bits are found", hit > 0, hit)
path.write_bytes(good)
os.chmod(path, 0o666)
code, err, _ = replay()
check("a file that everybody may write is not used", code == 0 and "everybody may write" in err, err)
code, err, _ = replay()
check("it is replaced by one that is", code == 0 and not err, err)
shutil.rmtree(cache)

# ---- other models and other states of the model
code, err, _ = replay()
check("made again", code == 0 and not err and len(forms()) == 1, err)
data = model / "variables/variables.data-00000-of-00001"
index = model / "variables/variables.index"
weights = data.read_bytes()
data.write_bytes(weights[:len(weights) // 2] + bytes([weights[len(weights) // 2] ^ 1]) + weights[len(weights) // 2 + 1:])
code, err, out = replay()
check("weights that changed are verified again", code != 0 and "Checksum does not match" in out, out + err)
data.write_bytes(weights)
code, err, _ = replay()
check("as they were", code == 0, err)
code, out, err = call("replay", models / "language_model", "--log", models / "language_model.tfrecord", "--cache", cache)
check("another model has a file of its own", code == 0 and not err and len(forms()) == 2, err)
for p in forms():
    p.rename(p.with_suffix(".was"))
a, b = sorted(cache.glob("*.was"))
a.rename(b.with_suffix(".forms")), b.rename(a.with_suffix(".forms"))
code, err, _ = replay()
check("the file of another model is not used", code == 0 and "not that of this model" in err, err)

# ---- folders that cannot be written
plain = work / "plain"
plain.write_text("x")
code, err, _ = replay(plain)
check("a file where the folder should be", code == 0 and "warning: nothing is cached" in err and plain.read_text() == "x", err)
locked = work / "locked"
locked.mkdir()
locked.chmod(0o555)
code, err, _ = replay(locked)
check("a folder that may not be written", code == 0 and (os.geteuid() == 0 or "warning: nothing is cached" in err), err)
full = work / "full"
code, err, _ = replay(full, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 10, 20 << 10)))
check("a disk that takes no more", code == 0 and "warning: nothing is cached" in err and list(full.iterdir()) == [], err)

# ---- several writers
many = work / "many"
running = [subprocess.Popen([smelt, "replay", model, "--log", log, "--cache", many], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(6)]
ended = [(p.communicate(timeout=60)[1], p.returncode) for p in running]
check("processes that write at the same time", all(e == ("", 0) for e in ended), ended)
code, err, _ = replay(many)
check("one of them was whole", code == 0 and not err and [p.name for p in many.iterdir()] == [forms(many)[0].name], err)

# ---- the other commands
code, out, err = call("run", model, "--cache", work / "of_run", "--signature_def", "none_such", "--input_exprs", "x=1")
check("an error of the request stays one", code != 0 and "none_such" in err, err)
finish()
