#!/usr/bin/env python3
"""--precision on the models in tests/models: precision_test.py SMELT. Ends with 'N passed, N failed'.

What a narrow session answers is held to what the model converted by the same rules answers, and the error that is said to TensorFlow's recorded answers."""
import re

from program import call, check, finish, models, work

CNN, LOG = models / "cnn", models / "cnn.tfrecord"
ALL = {"bfloat16": "bfloat16_optimization: ENABLED bfloat16_optimization_options { scope: ALL }",
       "int8": "bfloat16_optimization: DISABLED quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 } op_set: XLA "
               'signature_keys: "serving_default" representative_datasets { key: "serving_default" value { prediction_log_path: "%s" } } }' % LOG}
# A processor that does not multiply bfloat16 has the rounded weights as floats.
SHOWN = {"bfloat16": ["bfloat16[", "/frozen/float float["], "int8": ["int8"]}
FLAGS = {"bfloat16": [], "int8": ["--calibration_log", LOG]}
NOTE = r"^note: (\w+): answers to (\d+) requests? differ from float32's by (\S+) at most, by (\S+) of the range of output '(\w+)'$"


def files(folder):
    return {p.relative_to(folder): p.stat().st_mtime_ns for p in sorted(folder.rglob("*"))}


before = files(models)
for precision, options in ALL.items():
    flags = ["--precision", precision, *FLAGS[precision]]
    code, out, err = call("replay", CNN, "--log", LOG, "--range_tol", "0.05", *flags)
    said = re.search(NOTE, err, re.M)
    check(f"{precision}: replay", code == 0 and "2 equal, 0 differ" in out and said, out + err)
    of_range = float(re.search(r"max (\S+) of the range", out)[1])
    check(f"{precision}: the error is said", said and said[1] == precision and said[2] == "2" and said[5] == "logits" and 0 < float(said[4]) < 0.05
          and abs(float(said[4]) - of_range) < 1e-4, (err, of_range))
    code, out, err = call("replay", CNN, "--log", LOG, "--rtol", "0", "--atol", "0", *flags)
    check(f"{precision}: answers are not float32's", code == 1 and "2 differ" in out, out + err)
    answers = work / f"{precision}.tfrecord"
    code, out, err = call("replay", CNN, "--log", LOG, "--range_tol", "0.05", "--record", answers, *flags)
    code, out, err = call("convert", CNN, work / precision, "--converter_options_string", options)
    check(f"{precision}: converts", code == 0, out + err)
    code, out, err = call("replay", work / precision, "--log", answers, "--rtol", "0", "--atol", "0")
    check(f"{precision}: answers as the conversion does", code == 0, out + err)
    expr = "image=np.ones((1,16,16,3))"
    code, out, err = call("run", CNN, "--input_exprs", expr, *flags)
    check(f"{precision}: run", code == 0 and "Result for output key logits" in out and re.search(NOTE, err, re.M), out + err)
    code, out, err = call("bench", CNN, "--seconds", "0.05", "--whole", *flags)
    check(f"{precision}: bench", code == 0 and re.search(NOTE, err, re.M), out + err)
    code, out, err = call("show", CNN, "--program", *flags)
    check(f"{precision}: show --program", code == 0 and any(form in out for form in SHOWN[precision]), out + err)
check("nothing is written", files(models) == before)

# Restored through functions, and with texts and tables; state that requests change is not measured into.
code, out, err = call("replay", models / "language_model", "--log", models / "language_model.tfrecord", "--range_tol", "0.02", "--precision", "bfloat16")
check("a model with texts", code == 0 and re.search(NOTE, err, re.M), out + err)
code, out, err = call("replay", models / "counter", "--log", models / "counter.tfrecord", "--precision", "bfloat16")
check("a model with state", code == 0, out + err)

code, out, err = call("run", CNN, "--input_exprs", "image=np.ones((1,16,16,3))", "--precision", "int8")
check("int8 without requests", code == 1 and "INVALID_ARGUMENT" in err and "--calibration_log" in err, err)
code, out, err = call("run", CNN, "--input_exprs", "image=np.ones((1,16,16,3))", "--calibration_log", LOG)
check("requests without int8", code == 1 and "--calibration_log is for --precision int8" in err, err)
code, out, err = call("run", CNN, "--input_exprs", "image=np.ones((1,16,16,3))", "--precision", "int4")
check("an unknown precision", code not in (0, 1) and "--precision" in err, err)
code, out, err = call("convert", CNN, work / "placed", "--converter_options_string", 'tpu_functions { signature_name: "serving_default" }')
check("a placed model", code == 0, out + err)
code, out, err = call("replay", work / "placed", "--log", LOG, "--precision", "bfloat16")
check("a converted model", code == 1 and "--precision is for plain models" in out + err and "--revert" in out + err, out + err)
finish()
