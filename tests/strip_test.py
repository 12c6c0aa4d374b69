#!/usr/bin/env python3
"""smelt convert --strip_training on the models of tests/models: strip_test.py SMELT. Ends with 'N passed, N failed'.

What is left must answer as TensorFlow did before; tests/peers/strip_test.py has TensorFlow load it."""
import json
import shutil

from program import call, check, finish, models, work

ONLY_STRIP = "disable_default_optimizations: true"
PLACE = 'tpu_functions { signature_name: "serving_default" } '


def strip(source, name, *flags, options=ONLY_STRIP):
    report = work / f"{name}.json"
    code, out, err = call("convert", source, work / name, "--converter_options_string", options, "--strip_training", "--report_json", report, *flags)
    check(f"{name} converts", code == 0, out + err)
    return work / name, json.loads(report.read_text()) if report.exists() else {}, out


def shown(model):
    return json.loads(call("show", model, "--json")[1])["meta_graphs"][0]


for log in sorted(models.glob("*.tfrecord")):
    source = models / log.stem
    out, report, _ = strip(source, log.stem)
    training = report["training"]
    check(f"{log.stem}: the report says what left", training["stripped"] and training["saved_model_bytes"] >= 0, training)
    if log.stem == "plain_module":  # its log calls traces by number, of which those with training=True leave
        check("traces for training leave", training["functions"] == 2, training)
        continue
    code, text, err = call("replay", out, "--log", log)
    check(f"{log.stem}: TensorFlow's answers", code == 0, text + err)

# A model with its optimizer's slots: they leave graph, saver and checkpoint; the saver restores what is left.
trained, report, out = strip(models / "trained", "slots")
names = {v["key"] for v in shown(models / "trained")["variables"]}
left = {v["key"] for v in shown(trained)["variables"]}
check("slots leave", left < names and not [k for k in left if "optimizer" in k or "OPTIMIZER_SLOT" in k], (left, names))
check("the checkpoint loses them", report["training"]["variables"] == len(names) - len(left) and report["training"]["variable_bytes"] > 0, report["training"])
check("the summary says so", "Training: stripped " in out, out)
code, out, err = call("convert", models / "trained", work / "kept", "--converter_options_string", PLACE + ONLY_STRIP)
check("it is offered", code == 0 and "Training: --strip_training would save " in out, out + err)
code, out, err = call("convert", trained, work / "twice", "--converter_options_string", PLACE + ONLY_STRIP)
check("once is enough", code == 0 and "Training:" not in out, out + err)
(work / "slots/keras_metadata.pb").write_bytes(b"")
again, _, _ = strip(work / "slots", "metadata")
check("Keras's metadata leaves", not (again / "keras_metadata.pb").exists())

# With what else a conversion does: the stripped model is what is placed, stored as bfloat16, and reverted.
placed, _, _ = strip(models / "trained", "placed", "--verify", "2", options=PLACE)
check("placed", {v["key"] for v in shown(placed)["variables"]} == left, shown(placed)["variables"])
code, out, err = call("convert", placed, work / "reverted", "--revert", "--strip_training")
check("reverted", code == 0, out + err)

# Weights in a list that loses what stands before them: they are found, stored as int8, and restored into the right places.
for method in ("STATIC_RANGE_WEIGHT_ONLY_INT8", "DYNAMIC_RANGE_INT8"):
    listed, _, out = strip(models / "listed", f"listed_{method}", options=f"quantization_options {{ quantization_method {{ preset_method: METHOD_{method} }} }}")
    check(f"{method}: both layers", "2 of 2 layers quantized" in out, out)
    stored = [(v["key"], v["dtype"]) for v in shown(listed)["variables"]]
    check(f"{method}: both weights are int8", [t for _, t in stored] == ["DT_INT8"] * 2, stored)
    code, text, err = call("replay", listed, "--log", models / "listed.tfrecord", "--range_tol", "0.05")
    check(f"{method}: near TensorFlow's answers", code == 0, text + err)

# A checkpoint whose object graph is damaged is an error.
shutil.copytree(models / "trained", work / "damaged")
data = next((work / "damaged/variables").glob("*.data*"))
data.write_bytes(data.read_bytes()[:-40])
code, out, err = call("convert", work / "damaged", work / "no", "--converter_options_string", ONLY_STRIP, "--strip_training")
check("a damaged checkpoint", code == 1 and "DATA_LOSS" in err and not (work / "no").exists(), (code, err))
finish()
