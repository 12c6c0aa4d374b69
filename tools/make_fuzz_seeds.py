#!/usr/bin/env python3
"""Writes fuzz/seeds/slice_table_fuzz: small checkpoints of version 1, of a tensor "a", written by TensorFlow (needs tensorflow)."""
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

SEEDS = {
    "scalar": (tf.constant(7), ""),
    "matrix": (tf.reshape(tf.range(6, dtype=tf.float32), [2, 3]), ""),
    "strings": (tf.constant([b"x", b"", b"some words"]), ""),
    "slice": (tf.constant([[1, 2], [3, 4]], tf.int64), "2 3 0,2:1,2"),
    "complex": (tf.constant([1 + 2j]), ""),
}


def main():
    out = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "seeds" / "slice_table_fuzz"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name, (value, piece) in SEEDS.items():
            path = os.path.join(work, name)
            tf.raw_ops.SaveSlices(filename=path, tensor_names=["a"], shapes_and_slices=[piece], data=[value])
            # The first byte says that a file follows.
            (out / name).write_bytes(b"\0" + pathlib.Path(path).read_bytes())


if __name__ == "__main__":
    main()
