#!/usr/bin/env python3
"""smelt lite and smelt show of .tflite files as a user has them: lite_test.py SMELT. Ends with 'N passed, N failed'.

The models and the recorded answers were written by TensorFlow (tools/make_fixtures.py). What files must say follows from the flags and the schema; tests/peers hold the same to TensorFlow's converter."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

from lite_program import (DENSE, FLOAT, WEIGHTS, X, dtypes, floats, frozen, lite, misused, npz, ops, placeholder, refused, replays, shown, slots, structure_hash, wave)
from program import call, check, finish, int_const, models, node, read_records, smelt, string_const, work, write_records, write_samples

root = pathlib.Path(__file__).resolve().parent.parent
document = (root / "docs/lite.md").read_text()

# ---- recorded requests of models, answered by their files

for model in "cnn", "wide_cnn", "trained", "listed", "keras_in_module", "functions", "counter":
    code, out, err, path = lite(models / model)
    check(f"export {model}", code == 0 and out == "" and path.exists(), (code, out, err))
    if code == 0:
        replays(f"{model} answers as recorded", path, f"{model}.tfrecord")
code, out, err, listed = lite(models / "listed")
code, out, err, again = lite(models / "listed")
check("the same bytes each time", listed.read_bytes() == again.read_bytes())
code, out, err = call("replay", listed, "--log", models / "cnn.tfrecord")
check("a file does not answer another model's requests", code == 1, out + err)
code, out, err = call("bench", listed, "--duration", "0.1")
check("bench takes a file", code == 0 or "has no flag" in err, err)

# ---- where the model and the output are named

code, out, err = call("lite", "--saved_model_dir", models / "listed", "--output_file", work / "flags.tflite")
check("paths by flags", code == 0 and (work / "flags.tflite").read_bytes() == listed.read_bytes(), err)
code, out, err = call("lite", models / "listed/saved_model.pb", work / "pb.tflite")
check("saved_model.pb stands for its folder", code == 0 and (work / "pb.tflite").read_bytes() == listed.read_bytes(), err)
misused("no output", [models / "listed"], "wants a model and the file to write")
misused("nothing at all", [], "wants a model")
misused("model given twice", [models / "listed", work / "t.tflite", "--saved_model_dir", models / "cnn"], "model is given twice", "--saved_model_dir")
misused("output given twice", [models / "listed", work / "t.tflite", "--output_file", work / "u.tflite"], "output is given twice")
misused("a mistyped flag", [models / "listed", work / "t.tflite", "--quantise", "int8"], 'has no flag "--quantise"', "--quantize")
misused("a mode that there is not", [models / "listed", work / "t.tflite", "--quantize", "int4"], "int4", "dynamic")
misused("a batch of none", [models / "listed", work / "t.tflite", "--batch", "0"], "--batch")
refused("no such model", lite(work / "nowhere"), "NOT_FOUND", "nowhere")
(work / "empty").mkdir()
refused("an empty folder", lite(work / "empty"), "NOT_FOUND", "saved_model.pb")
(work / "noise").write_bytes(b"noise" * 100)
check("no model at all", lite(work / "noise")[0] == 1)
for name in "model.keras", "model.h5":
    (work / name).write_bytes(b"noise")
    refused(f"a Keras file: {name}", lite(work / name), "INVALID_ARGUMENT", name, "model.export(FOLDER)")
refused("--keras_model_file", lite(models / "listed", "--keras_model_file", "k.keras"), "INVALID_ARGUMENT", "k.keras", "model.export(FOLDER)")
refused("a folder that is not there", lite(models / "listed", path=work / "none/out.tflite"), "NOT_FOUND", "none")
(work / "folder.tflite").mkdir()
code, out, err, path = lite(models / "listed", path=work / "folder.tflite")
check("a folder in the way", code == 1 and "FAILED_PRECONDITION" in err and list(path.iterdir()) == [], err)
(work / "target.tflite").write_bytes(b"old")
(work / "link.tflite").symlink_to("target.tflite")
code, out, err, path = lite(models / "listed", path=work / "link.tflite")
check("a link is followed", code == 0 and path.is_symlink() and (work / "target.tflite").read_bytes() == listed.read_bytes(), err)
code, out, err = call("lite", models / "listed", "/dev/full")
check("a full disk", code == 1 and "error: " in err, (code, err))

# ---- whole or not at all

old = work / "old.tflite"
old.write_bytes(b"old")
code, out, err, path = lite(models / "listed", "--signature", "nobody", path=old)
check("what was there stays when it fails", code == 1 and old.read_bytes() == b"old", err)
states = set()
for i in range(12):
    old.write_bytes(b"old")
    one = subprocess.Popen([smelt, "lite", models / "cnn", old], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.006 * i)
    one.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
    one.wait()
    data = old.read_bytes()
    states.add("old" if data == b"old" else "new" if call("show", old)[0] == 0 else "broken")
check("killed: what was there, or the whole file", states <= {"old", "new"}, states)
code, out, err, path = lite(models / "cnn", path=old)
check("and the next one leaves nothing beside it", code == 0 and not [f for f in os.listdir(work) if "smelt-tmp" in f], os.listdir(work))

# ---- signatures and tags

code, out, err, path = lite(models / "counter")
check("all signatures", [s["key"] for s in shown(path)["signatures"]] == ["add", "get"] and [g["name"] for g in shown(path)["subgraphs"]][:2] == ["main", "get"], shown(path)["signatures"])
check("a written variable is a resource", "ASSIGN_VARIABLE" in ops(path) and "CALL_ONCE" in ops(path), ops(path))
code, out, err, path = lite(models / "counter", "--signature", "get", "--signature", "add")
check("signatures in the order of the flags", [s["key"] for s in shown(path)["signatures"]] == ["get", "add"], shown(path)["signatures"])
replays("two named signatures answer", path, "counter.tfrecord")
code, out, err, path = lite(models / "counter", "--saved_model_signature_key", "get")
check("one signature: nobody writes the variable", [s["key"] for s in shown(path)["signatures"]] == ["get"] and "READ_VARIABLE" not in ops(path), ops(path))
refused("no such signature", lite(models / "counter", "--signature", "put"), "NOT_FOUND", "put")
refused("a signature with parts of examples", lite(models / "half_plus_two_v1", "--signature", "regress"), "UNIMPLEMENTED", "ParseExample")
code, out, err, path = lite(models / "half_plus_two_v1")
check("it is left out where nobody names it", code == 0 and "'regress' is left out: ParseExample" in err and "regress" not in [s["key"] for s in shown(path)["signatures"]], err)
code, out, err, path = lite(models / "half_plus_two_v1", "--signature", "serving_default")
replay = call("run", path, "--signature_def", "serving_default", "--input_exprs", "x=[[1.0],[4.0]]")
check("a model of TensorFlow 1", code == 0 and "[[2.5]\n [4. ]]" in replay[1], err + replay[1] + replay[2])
code, out, err, path = lite(models / "listed", "--tag_set", "serve")
check("--tag_set", code == 0 and path.read_bytes() == listed.read_bytes(), err)
refused("no such tags", lite(models / "listed", "--saved_model_tag_set", "train"), "NOT_FOUND", "train")
refused("--enable_resource_variables false", lite(models / "counter", "--enable_resource_variables", "false"), "INVALID_ARGUMENT", "writes the variable")
code, out, err, path = lite(models / "counter", "--enable_resource_variables", "false", "--signature", "get")
check("which is no matter where nobody writes", code == 0, err)
refused("--enable_resource_variables maybe", lite(models / "counter", "--enable_resource_variables", "maybe"), "INVALID_ARGUMENT", "true or false")

# ---- shapes

check("free sizes", slots(listed)["x"][:2] == ("float32", [-1, 48]) and slots(listed)["x"][2]["shape"] == [1, 48], slots(listed)["x"])
code, out, err, path = lite(models / "listed", "--batch", "4")
check("--batch", slots(path)["x"][1] == [4, 48] and slots(path)["y"][1] == [4, 48] and "shape_signature" not in slots(path)["x"][2], slots(path))
code, out, err, path = lite(models / "listed", "--input_shapes", "x=2,48")
check("--input_shapes", slots(path)["x"][1] == [2, 48] and slots(path)["y"][1] == [2, 48], slots(path))
code, out, err, path = lite(models / "listed", "--input_shapes", "x=?,48", "--batch", "3")
check("a size that stays free takes the batch", slots(path)["x"][1] == [3, 48], slots(path))
refused("a shape that contradicts", lite(models / "listed", "--input_shapes", "x=2,47"), "INVALID_ARGUMENT", "contradicts", "'x'")
refused("a shape of nobody", lite(models / "listed", "--input_shapes", "z=2,48"), "INVALID_ARGUMENT", "'z'")
refused("two shapes", lite(models / "listed", "--input_shapes", "x=2,48:x=3,48"), "INVALID_ARGUMENT", "two shapes")
refused("no shape", lite(models / "listed", "--input_shapes", "x=two"), "INVALID_ARGUMENT", "no shape")
refused("a shape without a name", lite(models / "listed", "--input_shapes", "2,48"), "INVALID_ARGUMENT", "KEY=SIZES")
code, out, err, pinned = lite(models / "listed", "--batch", "1")
refused("a batch that nobody takes", frozen(placeholder("x", 2, 4) + node("y", "Neg", "x", **FLOAT), "--batch", "1"), "INVALID_ARGUMENT", "batch")
refused("--input_arrays without a frozen graph", lite(models / "listed", "--input_arrays", "x"), "INVALID_ARGUMENT", "--graph_def_file")
refused("--output_arrays without a frozen graph", lite(models / "listed", "--output_arrays", "y"), "INVALID_ARGUMENT", "--graph_def_file")

# ---- frozen graphs

code, out, err, path = frozen(DENSE)
check("a frozen graph", code == 0 and ops(path) == ["FULLY_CONNECTED"] and set(slots(path)) == {"x", "y"}, err + str(ops(path)))
TWO = placeholder("x", -1, 4) + placeholder("z", -1, 4) + node("s", "AddV2", "x", "z", **FLOAT) + node("t", "Neg", "s", **FLOAT) + node("u", "Exp", "s", **FLOAT)
code, out, err, path = frozen(TWO, "--input_arrays", "s", "--output_arrays", "t,u")
check("--input_arrays and --output_arrays", code == 0 and set(slots(path)) == {"s", "t", "u"} and sorted(ops(path)) == ["EXP", "NEG"], err + str(ops(path)))
code, out, err, path = frozen(TWO, "--input_arrays", "x", "--input_arrays", "z", "--output_arrays", "t", "--input_shapes", "5,4:5,4")
check("shapes in the order of --input_arrays", slots(path)["x"][1] == [5, 4] == slots(path)["z"][1], err)
code, out, err, path = frozen(TWO, "--input_shapes", "x:0=5,4")
check("a shape by the name of a tensor", slots(path)["x"][1] == [5, 4], err)
# One of two equal constants states its shape, the other is folded and does not.
STATED = placeholder("x", -1, 4) + int_const("one", 1) + node("stated", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 }", _output_shapes="list { shape { } }")
STATED += node("folded", "Sub", "one", "one", T="type: DT_INT32") + "".join(node(f"cumsum_{c}", "Cumsum", "x", c, Tidx="type: DT_INT32", **FLOAT) for c in ("stated", "folded"))
code, out, err, path = frozen(STATED + node("y", "Exp", "cumsum_stated", **FLOAT) + node("z", "Neg", "cumsum_folded", **FLOAT))
check("a constant that states its shape is one that does not", code == 0 and sorted(ops(path)) == ["CUMSUM", "EXP", "NEG"], err + str(ops(path)))
refused("no such tensor", frozen(TWO, "--output_arrays", "nothing"), "NOT_FOUND", "nothing")
misused("signatures of a frozen graph", ["--graph_def_file", work / "1.pbtxt", work / "t.tflite", "--signature", "x"], "neither signatures nor tags")
misused("two outputs of a frozen graph", ["--graph_def", work / "1.pbtxt", work / "t.tflite", work / "u.tflite"], "one output")

# ---- ops without an operator

ODD = placeholder("x", 5, 5) + node("odd", "MatrixInverse", "x", **FLOAT) + node("y", "Neg", "odd", **FLOAT)
result = frozen(ODD)
refused("an op without an operator", result, "UNIMPLEMENTED", "1 nodes have no builtin operator", "MatrixInverse", "node odd", "--select_tf_ops", "--allow_custom_ops")
check("the table says why", re.search(r"\nOP +COUNT  WHY\nMatrixInverse +1  its matrices are of 5 rows, and more than 3 are not spelled out\n", result[2]), result[2])
# Two that are refused, of which fusions make one.
TWICE = placeholder("x", 5, 5) + floats("zero", (), 0) + node("a", "Relu", "x", **FLOAT) + node("b", "Maximum", "x", "zero", **FLOAT)
TWICE += node("c", "MatrixInverse", "a", **FLOAT) + node("d", "MatrixInverse", "b", **FLOAT) + node("y", "Neg", "c", **FLOAT) + node("z", "Abs", "d", **FLOAT)
refused("two refused nodes that become one", frozen(TWICE), "UNIMPLEMENTED", "1 nodes have no builtin operator", "MatrixInverse")
code, out, err, path = frozen(ODD, "--json")
data = json.loads(out)
check("--json of what was refused", code == 1 and not path.exists() and data["refused"][0]["op"] == "MatrixInverse" and data["refused"][0]["nodes"] == [{"name": "odd", "signature": "serving_default", "functions": []}]
      and data["refused"][0]["count"] == 1 and len(data["refused"][0]["remedies"]) == 3, out)
code, out, err, path = frozen(ODD, "--select_tf_ops")
odd = shown(path)["subgraphs"][0]["operators"][0]
check("--select_tf_ops", code == 0 and (odd["op"], odd["custom"], odd["flex_op"]) == ("FlexMatrixInverse", True, "MatrixInverse") and "Flex delegate for: FlexMatrixInverse" in err, err + str(odd))
code, out, err, path = frozen(ODD, "--supported_ops", "TFLITE_BUILTINS,SELECT_TF_OPS")
check("--supported_ops with select ops", ops(path) == ["FlexMatrixInverse", "NEG"], err)
code, out, err, path = frozen(ODD + node("z", "Cholesky", "odd", **FLOAT) + node("w", "Softplus", "odd", **FLOAT), "--select_tf_ops")
check("what would be many operators is a select op beside others", code == 0 and [op for op in ops(path) if op.startswith("Flex")] == ["FlexMatrixInverse", "FlexCholesky"], err + str(ops(path)))
code, out, err, path = frozen(placeholder("x", 5, 5) + node("z", "Cholesky", "x", **FLOAT), "--select_tf_ops")
check("and alone it is not", code == 0 and len(ops(path)) > 4 and not any(op.startswith("Flex") for op in ops(path)), err + str(ops(path)))
code, out, err, path = frozen(ODD, "--target_ops", "SELECT_TF_OPS")
check("--target_ops of select ops alone", ops(path) == ["FlexMatrixInverse", "FlexNeg"], err)
code, out, err, path = frozen(ODD, "--force_select_tf_ops")
check("--force_select_tf_ops", ops(path) == ["FlexMatrixInverse", "FlexNeg"], err)
code, out, err, path = frozen(ODD, "--allow_custom_ops")
check("--allow_custom_ops", ops(path) == ["MatrixInverse", "NEG"] and "kernels that your program registers for: MatrixInverse" in err, err)
# Custom ops that TensorFlow Lite's own resolver brings run without a library, their options shown. The window is 0, 1/2, 1, 1/2.
code, out, err, path = frozen(placeholder("x", 8, 2) + node("y", "AudioSpectrogram", "x", window_size="i: 4", stride="i: 3", magnitude_squared="b: true"), "--allow_custom_ops")
[operator] = shown(path)["subgraphs"][0]["operators"]
check("options of a custom op", operator["op"] == "AudioSpectrogram" and operator["options"] == {"window_size": 4, "stride": 3, "magnitude_squared": True}, operator)
code, out, err = call("show", path)
check("options of a custom op as text", code == 0 and "AudioSpectrogram (custom), version 1: [0] -> [1]  magnitude_squared=true stride=3 window_size=4  " in out, out + err)
code, out, err = call("show", path, "--tag_set", "serve", "--list_ops")
check("a custom op when it runs", code == 0 and "AudioSpectrogram" in out, out + err)
code, out, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", "x=np.ones((8, 2))", "--outdir", work / "spectrogram")
check("a custom op runs", code == 0 and [round(v) for v in struct.unpack("<12f", (work / "spectrogram" / "y.npy").read_bytes()[-48:])] == [4, 1, 0] * 4, out + err)
refused("a set of operators that there is not", frozen(ODD, "--supported_ops", "BUILTINS"), "INVALID_ARGUMENT", "there is no set 'BUILTINS'", "SELECT_TF_OPS")
refused("select ops of one's own are named", frozen(ODD, "--select_user_tf_ops", "MatrixInverse"), "INVALID_ARGUMENT", "--select_tf_ops is not there")
refused("and so is allowing all", frozen(ODD, "--allow_all_select_tf_ops"), "INVALID_ARGUMENT", "--select_tf_ops is not there")

# ---- quantization

samples = npz(work / "listed.npz", x=((6, 48), wave(288)))
REQUESTS = models / "listed.tfrecord"
WHOLE = ["--quantize", "int8", "--representative", REQUESTS]


def close(path, log="listed.tfrecord", part="0.05"):
    code, out, err = call("replay", path, "--log", models / log, "--rtol", "0", "--atol", "0", "--range_tol", part)
    return code == 0 and ", 0 differ" in out, out + err


for mode, types, part in (("none", {"float32"}, "1e-6"), ("float16", {"float16"}, "0.005"), ("dynamic", {"int8"}, "")):
    code, out, err, path = lite(models / "listed", "--quantize", mode)
    check(f"--quantize {mode}: types", code == 0 and dtypes(path) == types, (err, dtypes(path)))
    if mode != "dynamic":  # kernels that quantize as they run are LiteRT's
        check(f"--quantize {mode}: answers", *close(path, part=part))
for flags, mode in ((["--optimizations", "DEFAULT"], "dynamic"), (["--optimizations", "OPTIMIZE_FOR_SIZE"], "dynamic"), (["--post_training_quantize"], "dynamic"), (["--quantize_weights"], "dynamic"),
                    (["--optimizations", "DEFAULT", "--supported_types", "float16"], "float16"), (["--post_training_quantize", "--quantize_to_float16"], "float16"),
                    (["--optimizations", "DEFAULT", "--representative_dataset", samples], "int8"),
                    (["--optimizations", "DEFAULT", "--supported_ops", "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8,TFLITE_BUILTINS", "--representative", samples], "int16x8")):
    code, out, err, path = lite(models / "listed", *flags, "--json")
    check(f"{' '.join(map(str, flags[:4]))} is {mode}", code == 0 and json.loads(out)["quantization"] == mode, out + err)
code, out, err, path = lite(models / "listed", *WHOLE)
check("--quantize int8", code == 0 and ops(path) == ["QUANTIZE", "FULLY_CONNECTED", "FULLY_CONNECTED", "DEQUANTIZE"] and slots(path)["x"][0] == "float32", err + str(ops(path)))
check("int8 answers", *close(path))
weights = [t for t in shown(path)["subgraphs"][0]["tensors"] if t["dtype"] == "int8" and t["buffer_bytes"] == 2304]
check("one scale for each channel", len(weights) == 2 and all(len(t["quantization"]["scale"]) == 48 and set(t["quantization"]["zero_point"]) == {0} for t in weights), weights)
for flag in "--per_tensor", "--disable_per_channel", "--disable_per_channel_quantization_for_dense_layers":
    code, out, err, path = lite(models / "listed", *WHOLE, flag)
    weights = [t for t in shown(path)["subgraphs"][0]["tensors"] if t["buffer_bytes"] == 2304]
    check(f"{flag}: one scale", len(weights) == 2 and all(len(t["quantization"]["scale"]) == 1 for t in weights), weights)
code, out, err, path = lite(models / "listed", "--quantize", "int16x8", "--representative", REQUESTS, "--full_integer_quantization_bias_type", "int64")
check("--quantize int16x8", code == 0 and {t["dtype"] for t in shown(path)["subgraphs"][0]["tensors"]} >= {"int16", "int8"}, err)
check("int16x8 answers", *close(path, part="0.01"))
for border, zero in (("int8", 0), ("uint8", 128)):
    code, out, err, path = lite(models / "listed", *WHOLE, "--only_integer", "--inference_input_type", border, "--inference_output_type", border)
    want = ["QUANTIZE"] * (border == "uint8")
    check(f"borders of {border}: operators", code == 0 and ops(path) == want + ["FULLY_CONNECTED"] * 2 + want, err + str(ops(path)))
    check(f"borders of {border}: requests that were recorded in floats", *close(path))
    q = [slots(path)[k][2]["quantization"] for k in ("x", "y")]
    check(f"borders of {border}: types", [slots(path)[k][0] for k in ("x", "y")] == [border] * 2, slots(path))
    if border == "int8":
        inner = q
    check(f"borders of {border}: scales are equal, zero points 128 apart", [(a["scale"], a["zero_point"][0] + zero) for a in inner] == [(b["scale"], b["zero_point"][0]) for b in q], (inner, q))
code, out, err, path = lite(models / "listed", *WHOLE, "--inference_input_type", "QUANTIZED_UINT8")
check("uint8 as tflite_convert says it, at one border", slots(path)["x"][0] == "uint8" and slots(path)["y"][0] == "float32", err)
code, out, err, path = lite(models / "listed", "--quantize", "int16x8", "--representative", REQUESTS, "--inference_input_type", "int16", "--inference_output_type", "int16")
check("borders of int16", code == 0 and slots(path)["x"][0] == "int16" == slots(path)["y"][0] and ops(path) == ["FULLY_CONNECTED"] * 2, err)
check("borders of int16: requests that were recorded in floats", *close(path, part="0.01"))
code, out, err = call("replay", path, "--log", REQUESTS, "--record", work / "said.tfrecord", "--range_tol", "0.01")
code, out, err = call("replay", listed, "--log", work / "said.tfrecord", "--range_tol", "0.01")
check("what is recorded are floats again", code == 0 and ", 0 differ" in out, out + err)
code, out, err = call("bench", path, "--log", REQUESTS, "--seconds", "0.1", "--whole")
check("bench asks such a file, too", code == 0, err)
write_samples(models / "listed.tfrecord", work / "samples.tfrecord")
for kind, path in (("requests", models / "listed.tfrecord"), ("samples", work / "samples.tfrecord")):
    code, out, err, file = lite(models / "listed", "--quantize", "int8", "--representative", path)
    check(f"calibrated with a TFRecord file of {kind}", code == 0, err)
    if kind == "requests":
        by_requests = file.read_bytes()
check("which say the same", by_requests == file.read_bytes())
# An input without a batch, or of a whole one: rows are its values.
WAVE = placeholder("x", 2, 6) + node("y", "Tanh", "x", **FLOAT)
one = npz(work / "one.npz", x=((5, 1, 2, 6), wave(60)))
whole = npz(work / "whole.npz", x=((5, 2, 6), wave(60)))
code, out, err, path = frozen(WAVE, "--quantize", "int8", "--representative", whole)
check("rows that are whole values", code == 0 and ops(path) == ["QUANTIZE", "TANH", "DEQUANTIZE"], err)
refused("rows of another rank", frozen(WAVE, "--quantize", "int8", "--representative", one), "INVALID_ARGUMENT", "sample 0: input 'x' has the shape [1,1,2,6], not [2,6]")
refused("rows of another type", frozen(WAVE.replace("DT_FLOAT", "DT_INT32").replace("Tanh", "Neg"), "--quantize", "int8", "--representative", whole), "INVALID_ARGUMENT", "sample 0: input 'x' is float, not int32")
code, out, err, path = lite(models / "listed", *WHOLE, "--float_op", "FULLY_CONNECTED")
check("--float_op", ops(path).count("FULLY_CONNECTED") == 2 and "QUANTIZE" not in ops(path) and dtypes(path) == {"float32"}, ops(path))
names = [shown(listed)["subgraphs"][0]["tensors"][o["outputs"][0]]["name"] for o in shown(listed)["subgraphs"][0]["operators"]]
code, out, err, whole = lite(models / "listed", "--explain")
code, out, err, path = frozen(DENSE, "--quantize", "dynamic", "--float_node", "y")
check("--float_node", code == 0 and dtypes(path) == {"float32"}, err)
code, out, err, path = frozen(DENSE, "--quantize", "dynamic")
check("and without it", code == 0 and dtypes(path) == {"float32", "int8"}, (err, dtypes(path)))
result = lite(models / "listed", *WHOLE, "--only_integer", "--denylisted_ops", "FULLY_CONNECTED")
refused("--only_integer lists what stays float", result, "UNIMPLEMENTED", "stay float", "FULLY_CONNECTED")
result = lite(models / "listed", "--quantize", "int8", "--representative", samples, "--supported_ops", "TFLITE_BUILTINS_INT8", "--denylisted_ops", "FULLY_CONNECTED")
refused("and so does the set of integer operators alone", result, "UNIMPLEMENTED", "stay float")
for name, flags, texts in [
        ("--only_integer in float", ["--only_integer"], ["--only_integer needs"]), ("--representative in float", ["--representative", samples], ["--representative is for"]),
        ("int8 without samples", ["--quantize", "int8"], ["need --representative"]), ("borders in float", ["--inference_input_type", "int8"], ["--inference_input_type int8 needs --quantize int8"]),
        ("borders of int16 beside int8", [*WHOLE, "--inference_output_type", "int16"], ["--inference_output_type int16 needs --quantize int16x8"]),
        ("borders of texts", [*WHOLE, "--inference_output_type", "string"], ["wants float32, int8, uint8 or int16"]), ("--float_op in float", ["--float_op", "CONV_2D"], ["nothing is quantized"]),
        ("--per_tensor in float", ["--per_tensor"], ["none are quantized"]), ("a bias of another type", [*WHOLE, "--full_integer_quantization_bias_type", "int64"], ["is not done", "int32 beside int8"]),
        ("types without optimizations", ["--supported_types", "float16"], ["nothing would be quantized"]), ("half without optimizations", ["--quantize_to_float16"], ["nothing would be quantized"]),
        ("types of texts", ["--optimizations", "DEFAULT", "--supported_types", "string"], ["float32, float16, bfloat16 or int8"]), ("no such optimization", ["--optimizations", "BEST"], ["there is no 'BEST'"]),
        ("a mode that contradicts", ["--quantize", "dynamic", "--supported_types", "float16"], ["contradicts"]),
        ("int8 and int16", ["--supported_ops", "TFLITE_BUILTINS_INT8,EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"], ["not both"])]:
    refused(name, lite(models / "listed", *flags), "INVALID_ARGUMENT", *texts)
refused("samples that are not there", lite(models / "listed", "--quantize", "int8", "--representative", work / "none.npz"), "NOT_FOUND", "none.npz")
refused("samples of another input", lite(models / "listed", "--quantize", "int8", "--representative", npz(work / "z.npz", z=((2, 48), wave(96)))), "INVALID_ARGUMENT", "sample 0 has no input 'x'")
refused("samples of other shapes", lite(models / "listed", "--quantize", "int8", "--representative", npz(work / "n.npz", x=((2, 47), wave(94)))), "INVALID_ARGUMENT", "sample 0")
refused("no samples", lite(models / "listed", "--quantize", "int8", "--representative", npz(work / "e.npz", x=((0, 48), []))), "INVALID_ARGUMENT", "no samples")
refused("arrays of other numbers of rows", lite(models / "listed", "--quantize", "int8", "--representative", npz(work / "r.npz", x=((2, 48), wave(96)), z=((3, 1), wave(3)))), "INVALID_ARGUMENT", "3 rows")
refused("a sample that is not finite", lite(models / "listed", "--quantize", "int8", "--representative", npz(work / "i.npz", x=((1, 48), [float("inf")] + wave(47)))), "INVALID_ARGUMENT", "is not finite")
(work / "cut.tfrecord").write_bytes((models / "listed.tfrecord").read_bytes()[:-5])
check("samples that are cut", lite(models / "listed", "--quantize", "int8", "--representative", work / "cut.tfrecord")[0] == 1)

# ---- constants that are not finite

for value, text in (("inf", "inf"), ("-inf", "-inf"), ("nan", "nan")):
    bad = X + floats("w", (4, 300), *wave(1199), value) + node("y", "MatMul", "x", "w", **FLOAT)
    rows = npz(work / "four.npz", x=((3, 4), wave(12)))
    for mode, flags in (("dynamic", []), ("int8", ["--representative", rows])):
        result = frozen(bad, "--quantize", mode, *flags)
        refused(f"{mode} weights that hold {value}", result, "INVALID_ARGUMENT", "")
        check(f"{mode} weights that hold {value}: named", re.search(r"'y'|'w'", result[2]) and ("not finite" in result[2] or text in result[2]), result[2])
    add = X + floats("k", (4,), 1, 2, 3, value) + node("s", "AddV2", "x", "k", **FLOAT) + node("y", "Softmax", "s", **FLOAT)
    result = frozen(add, "--quantize", "int8", "--representative", rows)
    if value == "-inf":  # a mask
        check("int8 masks that hold -inf", result[0] == 0, result[2])
    else:
        refused(f"int8 operands that hold {value}", result, "INVALID_ARGUMENT", "")
    code, out, err, path = frozen(add)
    (constant,) = [t for t in shown(path)["subgraphs"][0]["tensors"] if t["buffer_bytes"] == 16]
    where = shown(path)["buffers"][constant["buffer"]]["offset"]
    last = struct.unpack_from("<4f", path.read_bytes(), where)[3]
    largest = 3.4028234663852886e38
    check(f"a float constant that holds {value}", last != last if value == "nan" else last == (largest if value == "inf" else -largest), last)
    code, out, err, path = frozen(add, "--canonicalizing_inf_as_min_max_float", "false")
    (constant,) = [t for t in shown(path)["subgraphs"][0]["tensors"] if t["buffer_bytes"] == 16]
    last = struct.unpack_from("<4f", path.read_bytes(), shown(path)["buffers"][constant["buffer"]]["offset"])[3]
    check(f"and is kept as it is where that is asked: {value}", str(last) == text, last)
refused("--canonicalizing_inf_as_min_max_float perhaps", frozen(DENSE, "--canonicalizing_inf_as_min_max_float", "perhaps"), "INVALID_ARGUMENT", "true or false")

# ---- checks go, with what fed only them

CHECK = (X + floats("zero", (), 0) + floats("lots", (), 1e9) + node("less", "Less", "x", "lots", **FLOAT) + int_const("axes", 0, 1, shape=2)
         + node("all", "All", "less", "axes") + node("told", "AsString", "x", **FLOAT) + node("odd", "Igamma", "x", "x", **FLOAT)
         + node("check", "Assert", "all", "told", "odd", T="list { type: DT_STRING type: DT_FLOAT }")
         + node("y", "Neg", "x", "^check", **FLOAT))
code, out, err, path = frozen(CHECK)
check("an Assert goes with what fed it", code == 0 and ops(path) == ["NEG"], err + str(ops(path)))
refused("--preserve_assert_op", frozen(CHECK, "--preserve_assert_op"), "UNIMPLEMENTED", "Assert", "it is kept", "AsString", "Igamma")
code, out, err, path = frozen(CHECK, "--preserve_assert_op", "--allow_custom_ops")
check("--preserve_assert_op as a custom op", code == 0 and {"Assert", "LESS", "REDUCE_ALL", "NEG"} <= set(ops(path)), err + str(ops(path)))
code, out, err, path = frozen(CHECK + node("z", "Neg", "odd", **FLOAT), "--output_arrays", "y,z", "--allow_custom_ops")
check("what others read stays", sorted(ops(path)) == ["Igamma", "NEG", "NEG"], err + str(ops(path)))

# ---- fusions

code, out, err = call("lite", "--list_fusions")
listing = out.splitlines()
check("--list_fusions", code == 0 and len(listing) > 40 and any(l.startswith("FuseMulIntoAffine ") for l in listing), out[:300] + err)
code, out, err = call("lite", "--list_ops")
rows = {l.split()[0]: l.split(None, 2)[1:] for l in out.splitlines()[1:]}
check("--list_ops", code == 0 and len(rows) > 150 and rows["Abs"][0] == "ABS" and rows["MatMul"][0] == "-" and list(rows) == sorted(rows), out[:300] + err)
page = set(re.findall(r"^\| `(\w+)` \|", (root / "docs/lite_operators.md").read_text(), re.M))
# Calls are those of composite functions.
check("--list_ops and docs/lite_operators.md", {*rows} - {"PartitionedCall", "StatefulPartitionedCall"} == page, f"only listed {sorted({*rows} - page)}, only documented {sorted(page - {*rows})}")
SCALED = DENSE.replace('name: "y"', 'name: "s"') + floats("f", (300,), *wave(300)) + node("y", "Mul", "s", "f", **FLOAT)
check("a factor goes into weights", ops(frozen(SCALED)[3]) == ["FULLY_CONNECTED"])
check("--disable_fuse_mul_and_fc", ops(frozen(SCALED, "--disable_fuse_mul_and_fc")[3]) == ["FULLY_CONNECTED", "MUL"])
check("--no_fusion", ops(frozen(SCALED, "--no_fusion", "FuseMulIntoAffine")[3]) == ["FULLY_CONNECTED", "MUL"])
refused("--no_fusion of nothing", frozen(SCALED, "--no_fusion", "FuseAll"), "INVALID_ARGUMENT", "FuseAll")
code, out, err, path = frozen(SCALED, "--explain")
check("--explain", code == 0 and re.search(r"^fused +y: FuseMulIntoAffine$", out, re.M), out + err)
(work / "broken.fusions").write_text("fusion {")
code, out, err, path = frozen(SCALED, "--fusions", work / "broken.fusions")
check("--fusions that do not parse", code == 1 and "INVALID_ARGUMENT" in err and "broken.fusions" in err and not path.exists(), err)
refused("--fusions that are not there", frozen(SCALED, "--fusions", work / "none.fusions"), "NOT_FOUND", "none.fusions")

# ---- what is written beside operators

(work / "note.txt").write_bytes(b"a note\n\xff")
code, out, err, path = lite(models / "listed", "--metadata", f"note={work}/note.txt", "--metadata", f"copy={work}/note.txt")
file = shown(path)
notes = {m["name"]: m for m in file["metadata"]}
where = file["buffers"][notes["note"]["buffer"]]["offset"]
check("--metadata", set(notes) == {"min_runtime_version", "CONVERSION_METADATA", "note", "copy"} and notes["note"]["bytes"] == 8 and path.read_bytes()[where:where + 8] == b"a note\n\xff", notes)
refused("--metadata without a file", lite(models / "listed", "--metadata", "note"), "INVALID_ARGUMENT", "NAME=FILE")
refused("--metadata of a file that is not there", lite(models / "listed", "--metadata", f"note={work}/none"), "NOT_FOUND", "none")
refused("--metadata twice", lite(models / "listed", "--metadata", f"a={work}/note.txt", "--metadata", f"a={work}/note.txt"), "ALREADY_EXISTS", "'a'")
code, out, err, path = lite(models / "listed", "--use_buffer_offset")
# Metadata stay in the flatbuffer.
held = {t["buffer"] for g in shown(path)["subgraphs"] for t in g["tensors"]}
spans = sorted((b["offset"], b["offset"] + b["bytes"]) for i, b in enumerate(shown(path)["buffers"]) if b["bytes"] and i in held)
check("--use_buffer_offset", path.read_bytes() != listed.read_bytes() and spans[-1][1] == path.stat().st_size and all(0 <= b[0] - a[1] < 16 for a, b in zip(spans, spans[1:])), spans)
replays("a file with its constants behind it answers", path, "listed.tfrecord")
code, out, err, path = lite(models / "listed", "--json")
data = json.loads(out)
check("--json", data["file"] == str(path) and data["bytes"] == path.stat().st_size and data["quantization"] == "none" and data["signatures"][0]["inputs"][0]["shape"] == "[?,48]"
      and data["operators"] == [{"op": "FULLY_CONNECTED", "count": 2, "version": shown(path)["subgraphs"][0]["operators"][0]["version"], "custom": False}], out)
check("a terminal alone hears of progress", lite(models / "listed")[1:3] == ("", ""))

# ---- flags, as --help and docs/lite.md have them

code, out, err = call("lite", "--help")
helped = {}
for line in out.splitlines():
    flag = re.match(r"  (?:-h,)?(--[\w,-]+)(?: ((?:TEXT|INT|UINT|FLOAT)\S*(?: \.\.\.)?))?(?: +(\S.*))?$", line)
    if flag:
        last = flag[1]
        helped[last] = flag[3] or ""
    elif line.startswith("       ") and helped:
        helped[last] = (helped[last] + " " + line.strip()).strip()
helped.pop("--help", None)
table = document.split("<!-- flags -->")[1].split("\nThe options of")[0]
written = {re.sub(r"[` ]", "", m[1]): m[2].replace("\\|", "|") for m in re.finditer(r"^\| (`--[^|]+?) \| (.*) \|$", table, re.M)}
check("flags of --help and of docs/lite.md", len(helped) > 35 and helped == written, {k: (helped.get(k), written.get(k)) for k in {*helped, *written} if helped.get(k) != written.get(k)})
source = (root / "smelt/cli/lite_fixed_flags.cc").read_text()
fixed = {m[0]: (m[1], m[2]) for m in re.findall(r'\{"(\w+)",\s*"([^"]*)",\s*"([^"]*)"\}', source.split("kFixed[] = {")[1].split("\n};")[0])}
table = document.split("<!-- fixed -->")[1].split("\n\n")[1]
written = {m[1]: (m[2].replace("`", "").replace(", ", ","), m[3]) for m in re.finditer(r"^\| `--(\w+)` \| (.*?) ?\| (.*?) ?\|$", table, re.M)}
check("flags with one value, in docs/lite.md", len(fixed) > 25 and fixed == written, {k: (fixed.get(k), written.get(k)) for k in {*fixed, *written} if fixed.get(k) != written.get(k)})
for name, (values, why) in fixed.items():
    good = [v for v in values.split(",") if v]
    other = "false" if good == ["true"] else "true" if good == ["false"] else "XYZ"
    if set(good) != {"true", "false"}:
        code, out, err = call("lite", work / "nowhere", work / "t.tflite", f"--{name}={other}")
        check(f"--{name} {other} is not done", code == 1 and f"--{name} {other} is not done: {why}" in err, err)
    spelled = name if name.startswith("experimental_") else f"experimental_{name}"
    if good:
        code, out, err = call("lite", work / "nowhere", work / "t.tflite", f"--{spelled}={good[0]}")
        check(f"--{spelled} {good[0]} is", code == 1 and "NOT_FOUND" in err and "is not done" not in err, err)
example = document.split("    $ smelt lite ")[1].split("<!-- example -->")[0]
for line in ("    $ smelt lite " + example).splitlines():
    if line.startswith("    $ smelt "):
        words = line.split()[2:]
        code, out, err = call(*[work / w if w == "listed.tflite" else root / w if w.startswith("tests/") else w for w in words])
        left = out.splitlines()
        check(f"example: {words[0]}", code == 0, err)
    elif line.strip():
        # Times differ.
        told = left.pop(0) if left else ""
        times = re.compile(r"[\d.]+ ms")
        check(f"example: {line.strip()[:40]}", times.sub("T", told) == times.sub("T", line[4:]), (line, told))

# ---- smelt show

code, out, err, path = frozen(X + floats("w", (4, 2), 1, 2, 3, 4, 5, 6, 7, 8) + node("m", "MatMul", "x", "w", **FLOAT) + node("y", "Relu", "m", **FLOAT))
code, text, err = call("show", path)
# FULLY_CONNECTED reads its weights transposed, has its options in the order of the schema, and has been there since 1.5.0.
GOLDEN = """TensorFlow Lite file of schema version 3, SIZE bytes
  Description: smelt
  Constants: 32 bytes in 1 buffers
  Metadata: min_runtime_version, 16 bytes: 1.5.0
  Metadata: CONVERSION_METADATA, {bytes} bytes: of TF_GRAPH_DEF, TensorFlow 2.21.0, API 1, hash {hash}

Signature 'serving_default', subgraph 0
  input  x: float32 [1, 4], free: [-1, 4], tensor 0
  output y: float32 [1, 2], free: [-1, 2], tensor 2

Subgraph 0 'main': 3 tensors, 1 operators, inputs [0], outputs [2]
  Tensors:
      0  x: float32 [1, 4], free: [-1, 4]
      1  constant_0: float32 [2, 4], 32 bytes in buffer 1
      2  y: float32 [1, 2], free: [-1, 2]
  Operators:
      0  FULLY_CONNECTED, version 1: [0, 1, -] -> [2]  fused_activation_function=RELU weights_format=DEFAULT keep_num_dims=false asymmetric_quantize_inputs=false quantized_bias_type=float32

OPERATOR          COUNT  CONSTANT BYTES    OUTPUT BYTES  VERSIONS
FULLY_CONNECTED       1              32               8  1

Largest constants:
          32 bytes  subgraph 0 tensor 1  constant_0
"""
size, = [m["bytes"] for m in shown(path)["metadata"] if m["name"] == "CONVERSION_METADATA"]
golden = GOLDEN.replace("SIZE", str(path.stat().st_size)).replace("{bytes}", str(size)).replace("{hash}", structure_hash(path))
check("show as text", code == 0 and text == golden, text + err)
for flags in [], ["--json"]:
    check(f"show {flags}: the same each time", call("show", path, *flags) == call("show", path, *flags))
    check(f"show {flags} --all is all as well", call("show", path, *flags, "--all")[1] == call("show", path, *flags)[1])
file = shown(path)
check("kinds of operators", file["sizes"]["operators"] == [{"op": "FULLY_CONNECTED", "custom": False, "count": 1, "versions": [1], "constant_bytes": 32, "output_bytes": 8}], file["sizes"])
check("largest tensors", [(t["bytes"], t["subgraph"]) for t in file["sizes"]["largest_tensors"]] == [(32, 0)] and file["sizes"]["constant_bytes"] == 32, file["sizes"])
where = file["buffers"][file["subgraphs"][0]["tensors"][file["sizes"]["largest_tensors"][0]["tensor"]]["buffer"]]["offset"]
check("where a constant lies: transposed, as FULLY_CONNECTED has it", struct.unpack_from("<8f", path.read_bytes(), where) == (1, 3, 5, 7, 2, 4, 6, 8) and where % 16 == 0, where)
svg = work / "picture.svg"
code, out, err = call("show", path, "--svg", svg)
picture = svg.read_text()
check("--svg", code == 0 and out == text and picture.startswith("<svg ") and picture.endswith("</svg>\n") and ">FULLY_CONNECTED</text>" in picture and picture.count("<path ") == 2
      and "32 bytes of constants" in picture, picture[:800] + err)
import xml.etree.ElementTree
check("--svg is XML", xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"))
code, out, err = call("show", path, "--svg", work / "none/picture.svg")
check("--svg where there is no folder", code == 1 and "none/picture.svg" in err and out == "", err)
code, out, err = call("show", models / "listed", "--svg", svg)
check("--svg of a SavedModel", code == 2 and "--svg goes with a .tflite file" in err, err)
code, out, err = call("show", listed, "--tag_set", "serve", "--signature_def", "serving_default")
check("a signature of a file as of a SavedModel", code == 0 and "shape: (-1, 48)" in out and "dtype: DT_FLOAT" in out, out + err)
code, out, err = call("show", listed, "--tag_set", "train")
check("tags that a file has not", code == 1 and "train" in err, err)
code, out, err, counter = lite(models / "counter")
code, out, err = call("show", counter)
check("signatures and subgraphs of a file", code == 0 and "\nSignature 'add', subgraph 0\n" in out and "\nSignature 'get', subgraph 1\n" in out and out.count("\nSubgraph ") == len(shown(counter)["subgraphs"]), out)
data = bytearray(path.read_bytes())
for name, damage, *texts in [("cut", data[:len(data) // 2], "truncated or corrupt"), ("without an identifier", data[:4] + b"TFLX" + data[8:], ""), ("empty", b"", "")]:
    (work / "damaged.tflite").write_bytes(damage)
    for flags in [], ["--json"], ["--svg", work / "damaged.svg"]:
        code, out, err = call("show", work / "damaged.tflite", *flags)
        check(f"show {flags} of a file that is {name}", code == 1 and out == "" and "error: " in err and all(t in err for t in texts) and not (work / "damaged.svg").exists(), (code, out, err))


def without_signatures(data):
    """The model's field 7 is gone from its table."""
    data = bytearray(data)
    table = struct.unpack_from("<I", data, 0)[0]
    vtable = table - struct.unpack_from("<i", data, table)[0]
    struct.pack_into("<H", data, vtable + 4 + 2 * 7, 0)
    return bytes(data)


bare = work / "bare.tflite"
bare.write_bytes(without_signatures(listed.read_bytes()))
names = {s: [shown(bare)["subgraphs"][0]["tensors"][i]["name"] for i in shown(bare)["subgraphs"][0][s]] for s in ("inputs", "outputs")}
check("a file without signatures shows none", shown(bare)["signatures"] == [] and "Signature" not in call("show", bare)[1])
values = "np.ones((2, 48))"
code, out, err = call("run", bare, "--signature_def", "serving_default", "--input_exprs", f"{names['inputs'][0]}={values}")
want = call("run", listed, "--signature_def", "serving_default", "--input_exprs", f"x={values}")
check("and answers as serving_default by the names of tensors", code == 0 and out.splitlines()[1:] == want[1].splitlines()[1:] and names["outputs"][0] in out.splitlines()[0], out + err)

# ---- conditionals of version 1 whose tests are known, as recurrences that are unrolled with lengths that are constants have them

BOOL, OF_INTS = {"T": "type: DT_BOOL"}, {"T": "type: DT_INT32"}
CHOICES = (placeholder("x", 2) + int_const("one", 1) + int_const("two", 2) + int_const("three", 3)
           + node("zeros", "Const", dtype="type: DT_FLOAT", value="tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 0 }")
           + node("outer", "LessEqual", "two", "one", **OF_INTS) + node("outer_id", "Identity", "outer", **BOOL)
           + node("least", "Switch", "two", "outer_id", **OF_INTS) + node("inner", "Greater", "three", "least", **OF_INTS) + node("inner_id", "Identity", "inner", **BOOL)
           + node("in", "Switch", "x", "outer_id", **FLOAT) + node("deep", "Switch", "in", "inner_id", **FLOAT) + node("yes", "Tanh", "deep:1", **FLOAT)
           + node("none", "Switch", "zeros", "outer_id", **FLOAT) + node("none_deep", "Switch", "none", "inner_id", **FLOAT) + node("no", "Neg", "none_deep", **FLOAT)
           + node("inner_end", "Merge", "no", "yes", N="i: 2", **FLOAT) + node("past", "Switch", "zeros", "outer", **FLOAT)
           + node("end", "Merge", "inner_end", "past:1", N="i: 2", **FLOAT) + node("y", "Identity", "end", **FLOAT))
code, out, err, path = frozen(CHOICES)
check("what known tests never choose goes", code == 0 and ops(path) == ["TANH"], out + err)
finish()
