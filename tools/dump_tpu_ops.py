#!/usr/bin/env python3
"""Writes the ops that TensorFlow's bridge can compile for an accelerator: dump_tpu_ops.py OUT.inc. Needs tensorflow.

The registry of compilation kernels is the same for every XLA device; it is filled by the first compiled function."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from tensorflow.python.framework import kernels

tf.function(lambda x: x + 1, jit_compile=True)(tf.constant([1.0]))
ops = sorted({k.op for k in kernels.get_all_registered_kernels().kernel if k.device_type == "XLA_CPU_JIT"})
with open(sys.argv[1], "w") as f:
    f.write(f"// Ops with a compilation kernel in TensorFlow {tf.__version__}; written by tools/dump_tpu_ops.py.\n")
    f.writelines(f'"{op}",\n' for op in ops)
