#!/usr/bin/env python3
"""Converted models, as TensorFlow's Python sees them: convert_test.py SMELT MODELS

Each SavedModel in MODELS is converted in several ways; tf.saved_model.load must take the result and find in it the callables of the original:
the same signatures and functions with the same arguments and results, and variables with the same names and shapes. So for a model that tf_keras
trained and saved with its optimizer, which TensorFlow loads with it."""
import os
import pathlib
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
import tf_keras

from checks import call, check, finish

models = pathlib.Path(sys.argv[2])
BATCH = "batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 1000 allowed_batch_sizes: 4 allowed_batch_sizes: 8 }"
VARIANTS = {
    "plain": "disable_default_optimizations: true",
    "defaults": "",
    "io shapes": "bfloat16_optimization: DISABLED",
    "bfloat16": "io_shape_optimization: DISABLED",
    "batched": "disable_default_optimizations: true " + BATCH,
}
PLACED = {
    "cnn": 'tpu_functions { signature_name: "serving_default" }',
    "functions": 'tpu_functions { function_alias: "leaf" } tpu_functions { function_alias: "compiled" }',
    "language_model": 'tpu_functions { function_alias: "tpu_func" }',
    "half_plus_two_v1": 'tpu_functions { signature_name: "serving_default" }',
}
INT8 = ('bfloat16_optimization: DISABLED quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } '
        'min_num_elements_for_weights: 1 signature_keys: "serving_default" }')
# Models that batching rightly refuses: an output is no batch.
UNBATCHED = {"functions"}


def describe(model):
    """What a user can call, and with what."""
    seen = {}
    for name, f in sorted(model.signatures.items()):
        seen[f"signature {name}"] = (str(f.structured_input_signature), str({k: (v.dtype, v.shape.rank) for k, v in sorted(f.structured_outputs.items())}))
    for name in sorted(vars(model)):
        f = getattr(model, name)
        if hasattr(f, "concrete_functions"):
            seen[f"function {name}"] = sorted(str(c.structured_input_signature) for c in f.concrete_functions)
        elif isinstance(f, tf.Variable):
            seen[f"variable {name}"] = str(f.shape)
    return seen


def trained(path):
    model = tf_keras.Sequential([tf_keras.layers.Dense(8, activation="relu", input_shape=(6,)), tf_keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(np.ones((4, 6), np.float32), np.ones((4, 2), np.float32), verbose=0)
    model.save(path, save_format="tf")


with tempfile.TemporaryDirectory() as work:
    trained(pathlib.Path(work) / "trained")
    places = {models / name: placed for name, placed in PLACED.items()}
    places[pathlib.Path(work) / "trained"] = 'tpu_functions { signature_name: "serving_default" }'
    for source, placed in places.items():
        name = source.name
        want = describe(tf.saved_model.load(str(source)))
        for variant, options in (VARIANTS | ({"int8": INT8} if name == "trained" else {})).items():
            if variant == "batched" and name in UNBATCHED:
                continue
            out = pathlib.Path(work) / "converted" / name / variant.replace(" ", "_")
            code, text = call("convert", source, out, "--converter_options_string", f"{placed} {options}")
            problem = text[-500:] if code else ""
            if not problem:
                try:
                    got = describe(tf.saved_model.load(str(out)))
                    problem = "" if got == want else f"wanted {want}, got {got}"
                except Exception as e:  # noqa: BLE001  whatever TensorFlow says is the finding
                    problem = f"{type(e).__name__}: {e}"
            check(f"{name} {variant}", not problem, problem)
finish()
