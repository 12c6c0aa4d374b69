#!/usr/bin/env python3
"""Networks of two libraries in the layout of the benchmark suite: library_models.py hub|kecam OUT_DIR [NAME...]

For each network of hub_networks.py or kecam_networks.py: OUT_DIR/NAME/saved_model as the library's export writes it, with random weights, and inputs_B.npz and
outputs_B.npz of batch 1 and 8, which TensorFlow answers; bench/engines.py takes OUT_DIR as its SUITE. What is there already stays. Networks that their library cannot
build or TensorFlow cannot run are named at the end. Needs bench/requirements.txt and keras-hub, or keras-cv-attention-models and tf_keras."""
import contextlib
import io
import os
import pathlib
import shutil
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
KINDS = ("hub", "kecam")
SEED = 7
OPEN, WORDS, HIDDEN = 32, 40, 5  # sizes of open dimensions, numbers of words, words that a mask hides


def networks(kind):
    if kind == "kecam":
        os.environ.update(TF_USE_LEGACY_KERAS="1", KECAM_BACKEND="tensorflow")
        import kecam_networks

        return kecam_networks.MODELS
    import hub_networks

    return hub_networks.MODELS


def stir(model, rng):
    """No constant weights: they hide what is wrong."""
    import numpy as np

    for weight in model.weights:
        value = weight.numpy()
        name = getattr(weight, "path", weight.name)
        if value.dtype.kind != "f" or value.size == 0 or "seed" in name or (value.size > 1 and np.ptp(value) != 0):
            continue
        scales = ("gamma" in name or "scale" in name.lower()) and "zero" not in name and abs(value.flat[0]) < 0.5
        value = ((1.0 if scales else value) + 0.1 * rng.normal(size=value.shape)).astype(value.dtype)
        weight.assign(np.abs(value) if "variance" in name else value)


def made_up(key, spec, batch, rng):
    import numpy as np

    shape = [batch] + [size or OPEN for size in spec.shape[1:]]
    if spec.dtype.name == "bool" or ("mask" in key and spec.dtype.is_integer and "positions" not in key):
        value = np.ones(shape)
        value[..., shape[-1] - HIDDEN :] = 0
    elif "positions" in key or "segment" in key or key == "labels":
        value = rng.integers(0, 2, shape)
    elif spec.dtype.is_integer:
        value = rng.integers(1, WORDS, shape)
    else:
        value = rng.normal(size=shape)
    return value.astype(spec.dtype.as_numpy_dtype)


def write(folder, build):
    import numpy as np
    import tensorflow as tf

    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(SEED)
    model = build()
    stir(model, np.random.default_rng(SEED))
    with contextlib.redirect_stdout(io.StringIO()):
        model.export(str(folder / "saved_model"))
    signature = tf.saved_model.load(str(folder / "saved_model")).signatures["serving_default"]
    for batch in (1, 8):
        rng = np.random.default_rng(batch)
        inputs = {key: made_up(key, spec, batch, rng) for key, spec in signature.structured_input_signature[1].items()}
        outputs = {key: value.numpy() for key, value in signature(**{key: tf.constant(value) for key, value in inputs.items()}).items()}
        if not all(np.isfinite(value.astype(np.float64)).all() for value in outputs.values()):
            raise ValueError("an answer is not finite")
        np.savez(folder / f"inputs_{batch}.npz", **inputs)
        np.savez(folder / f"outputs_{batch}.npz", **outputs)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    models = networks(sys.argv[1])
    names = sys.argv[3:] or list(models)
    if unknown := set(names) - models.keys():
        sys.exit("library_models.py: no such network: " + " ".join(sorted(unknown)))
    unmade = []
    for name in names:
        folder = pathlib.Path(sys.argv[2]) / name
        if (folder / "outputs_8.npz").exists():
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            write(folder, models[name])
            print(name, flush=True)
        except Exception:  # of the library, whatever it is: named below
            shutil.rmtree(folder)
            unmade.append(name)
            print(name, "is not made:", traceback.format_exc().splitlines()[-1][:200], flush=True)
    print(len(names) - len(unmade), "networks;", len(unmade), "not made:", *unmade)


if __name__ == "__main__":
    main()
