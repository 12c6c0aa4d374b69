#!/usr/bin/env python3
"""Kills conversions at random moments: kills.py SMELT [COUNT [SEED]].

The place is a folder beside the input, and, where the process may mount (root), the root of a small tmpfs, which nothing can be
renamed over and which may run full. After each kill there is the old model, the new one, or none; and after the next whole
conversion to the same place nothing else is left there. Exits 1 when not."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

smelt = os.path.abspath(sys.argv[1])
count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
models = pathlib.Path(__file__).resolve().parent.parent.parent / "tests/models"
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_kills_"))
OPTIONS = 'tpu_functions { signature_name: "serving_default" } disable_default_optimizations: true'
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
seen, wrong = {}, []

# Files beside the model make copying, swapping and removing long enough to be hit.
source = work / "input"
shutil.copytree(models / "cnn", source)
(source / "assets").mkdir(exist_ok=True)
for i in range(40):
    (source / f"assets/{i}").write_bytes(rng.randbytes(20000))
other = work / "other"
shutil.copytree(models / "functions", other)


def argv(place):
    return [smelt, "convert", "--input_model_dir", str(source), "--output_model_dir", str(place), "--overwrite", "--report_json", str(work / "report.json"),
            "--converter_options_string", OPTIONS]


def answers(place, model):
    log = models / ("cnn.tfrecord" if model == source else "functions.tfrecord")
    return subprocess.run([smelt, "replay", place, "--log", log], capture_output=True).returncode == 0


def state(place):
    if not (place / "saved_model.pb").exists():
        return "none"
    if answers(place, source):
        return "new"
    return "old" if answers(place, other) else "broken"


def reset(place, old):
    for entry in os.listdir(place) if place.exists() else []:
        path = place / entry
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if old:
        shutil.copytree(other, place, dirs_exist_ok=True)
    elif place.exists() and not os.path.ismount(place):
        place.rmdir()


def kill_once(name, place, took):
    old = rng.random() < 0.7
    reset(place, old)
    number = rng.choice(SIGNALS)
    one = subprocess.Popen(argv(place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(rng.random() * took * 1.1)
    one.send_signal(number)
    one.wait()
    found = state(place)
    key = (name, "over old" if old else "new place", number.name, found)
    seen[key] = seen.get(key, 0) + 1
    if found == "broken" or (found == "none" and old and not os.path.ismount(place)):
        wrong.append(f"{key}: {sorted(os.listdir(place)) if place.exists() else 'nothing'}")
    elif number != signal.SIGKILL and one.returncode < 0:
        left = [n for n in os.listdir(place.parent) if n.endswith(".smelt-tmp")] + ([".smelt-tmp"] if (place / ".smelt-tmp").exists() else [])
        if left and found != "new":
            wrong.append(f"{key}: {left} left after a signal")
    again = subprocess.run(argv(place), capture_output=True, text=True)
    left = sorted(set(os.listdir(place)) - set(os.listdir(source)) - {"lost+found"}) + [n for n in os.listdir(place.parent) if ".smelt-tmp" in n]
    if again.returncode != 0 or not answers(place, source) or left:
        wrong.append(f"{key}: then exit {again.returncode} {again.stderr[-300:]}, left {left}")


places = [("folder", work / "out" / "model")]
places[0][1].parent.mkdir()
mount = work / "mount"
mount.mkdir()
# Room for two models and a half: the old one, and the new one beside it.
if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", mount], capture_output=True).returncode == 0:
    places.append(("mount", mount))
else:
    print("not allowed to mount: the place is a folder only")
try:
    for name, place in places:
        reset(place, True)
        start = time.monotonic()
        whole = subprocess.run(argv(place), capture_output=True, text=True)
        took = time.monotonic() - start
        if whole.returncode != 0:
            sys.exit(f"{name}: {whole.stderr}")
        for _ in range(count // len(places)):
            kill_once(name, place, took)
    # A mount that is full: an error, and the old model stays as it was.
    if len(places) > 1:
        reset(mount, True)
        filler = mount / "lost+found"
        filler.write_bytes(bytes(os.statvfs(mount).f_bavail * os.statvfs(mount).f_frsize - 300000))
        full = subprocess.run(argv(mount), capture_output=True, text=True)
        if full.returncode != 1 or "RESOURCE_EXHAUSTED" not in full.stderr or state(mount) != "old" or (mount / ".smelt-tmp").exists():
            wrong.append(f"a full mount: exit {full.returncode} {full.stderr[-300:]}, {state(mount)}, {sorted(os.listdir(mount))}")
finally:
    if len(places) > 1:
        subprocess.run(["umount", mount])
    shutil.rmtree(work, ignore_errors=True)
for key, n in sorted(seen.items()):
    print(f"{n:6} {' '.join(key)}")
for line in wrong[:20]:
    print("WRONG", line)
print(f"{sum(seen.values())} kills, {len(wrong)} wrong")
sys.exit(bool(wrong))
