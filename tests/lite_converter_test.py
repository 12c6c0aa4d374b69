#!/usr/bin/env python3
"""smelt lite's flags that are options of TensorFlow's TFLiteConverter: lite_converter_test.py SMELT. Ends with 'N passed, N failed'.

What files must say follows from the flags, the schema and files that TensorFlow 2.21 wrote; tests/peers/lite_command_test.py holds the same to TensorFlow's converter."""
import csv
import json
import re
import struct

from lite_program import DENSE, FLOAT, X, dtypes, floats, frozen, lite, npz, ops, placeholder, refused, replays, shown, slots, structure_hash, wave
from program import call, check, finish, models, node, work

REQUESTS = models / "listed.tfrecord"

NONE = {"min": [], "max": [], "scale": [], "zero_point": []}

# ---- metadata


def told(*flags, model=models / "listed"):
    """What the file says of its conversion, and of halves: (fields of CONVERSION_METADATA, text of reduced_precision_support)"""
    code, out, err, path = lite(model, *flags)
    metadata = {m["name"]: m for m in shown(path)["metadata"]}
    conversion = metadata.get("CONVERSION_METADATA", {}).get("conversion", {})
    check(f"hash of a file made with {flags}", not conversion or conversion["model_hash"] == structure_hash(path), (conversion, structure_hash(path)))
    return {k: v for k, v in conversion.items() if k != "model_hash"}, metadata.get("reduced_precision_support", {}).get("text")


CONVERSION = {"tensorflow_version": "2.21.0", "api_version": 2, "model_type": "TF_SAVED_MODEL", "model_optimization_modes": [], "allow_custom_ops": False, "enable_select_tf_ops": False,
              "force_select_tf_ops": False}
HALF, DEFAULT = ["--quantize", "float16"], ["--optimizations", "DEFAULT"]
for flags, says, halves in (([], {}, None), (["--allow_custom_ops"], {"allow_custom_ops": True}, None), (["--select_tf_ops"], {"enable_select_tf_ops": True}, None),
                            (["--supported_ops", "SELECT_TF_OPS"], {"enable_select_tf_ops": True, "force_select_tf_ops": True}, None),
                            (HALF, {"model_optimization_modes": ["PTQ_FLOAT16"]}, "fp16accfp32"),
                            (HALF + ["--supported_accumulation_type", "float16"], {"model_optimization_modes": ["PTQ_FLOAT16"]}, "fp16accfp16"),
                            (HALF + ["--experimental_supported_accumulation_type", "float32"], {"model_optimization_modes": ["PTQ_FLOAT16"]}, "fp16accfp32"),
                            (DEFAULT + ["--supported_types", "bfloat16"], {}, "bf16accfp32"),
                            (DEFAULT + ["--supported_types", "bfloat16,float16", "--supported_accumulation_type", "float16"], {"model_optimization_modes": ["PTQ_FLOAT16"]}, "fp16bf16accfp16"),
                            (["--quantize", "dynamic"], {"model_optimization_modes": ["PTQ_DYNAMIC_RANGE"]}, None),
                            (["--quantize", "int8", "--representative", REQUESTS], {"model_optimization_modes": ["PTQ_FULL_INTEGER"]}, None),
                            (["--quantize", "int16x8", "--representative", REQUESTS], {"model_optimization_modes": ["PTQ_INT16"]}, None)):
    check(f"metadata of {' '.join(map(str, flags[:6]))}", told(*flags) == ({**CONVERSION, **says}, halves), told(*flags))
check("--exclude_conversion_metadata", told("--exclude_conversion_metadata") == ({}, None) == told("--exclude_conversion_metadata=true") and told("--exclude_conversion_metadata=false")[0] == CONVERSION)
code, out, err, path = frozen(DENSE)
check("metadata of a frozen graph", [m["conversion"]["model_type"] + str(m["conversion"]["api_version"]) for m in shown(path)["metadata"] if "conversion" in m] == ["TF_GRAPH_DEF1"], shown(path)["metadata"])
refused("halves added up that there are not", lite(models / "listed", "--supported_accumulation_type", "float16"), "INVALID_ARGUMENT", "needs --quantize float16")
refused("sums of integers", lite(models / "listed", *HALF, "--supported_accumulation_type", "int8"), "INVALID_ARGUMENT", "float32 or float16, not 'int8'")
refused("bfloat16 beside integers", lite(models / "listed", *DEFAULT, "--supported_types", "bfloat16,int8"), "INVALID_ARGUMENT", "float16 and float32 alone")
refused("bfloat16 contradicts", lite(models / "listed", "--quantize", "int8", "--supported_types", "bfloat16"), "INVALID_ARGUMENT", "contradicts")
code, out, err, path = lite(models / "listed")
whole, = [m for m in shown(path)["metadata"] if m["name"] == "CONVERSION_METADATA"]
data = path.read_bytes()[shown(path)["buffers"][whole["buffer"]]["offset"]:][:whole["bytes"]]
for i in range(0, len(data), 3):
    for name, damage in ((f"cut at {i}", data[:i]), (f"byte {i} of another value", data[:i] + bytes([data[i] ^ 0xff]) + data[i + 1:])):
        (work / "damaged.bin").write_bytes(damage)
        code, out, err, path = lite(models / "listed", "--exclude_conversion_metadata", "--metadata", f"CONVERSION_METADATA={work}/damaged.bin")
        check(f"show of metadata {name}", code == 0 and shown(path)["metadata"][1]["bytes"] == len(damage), err)

# ---- ranges that are stated, and not used

WHOLE = ["--quantize", "int8", "--representative", REQUESTS]
SAMPLES = npz(work / "four.npz", x=((3, 4), wave(12)))

# A constant result is in integers of its own range, as TensorFlow's converter has it: 255 steps from -1 to 0.7.
code, out, err, path = frozen(X + floats("k", (2,), -1.0, 0.7) + node("y", "Relu", "x", **FLOAT) + node("z", "Identity", "k", **FLOAT), "--output_arrays", "y,z", "--quantize", "int8", "--representative", SAMPLES, "--inference_output_type", "int8")
check("a constant result in int8", code == 0, err)
results = [shown(path)["subgraphs"][0]["tensors"][i] for i in shown(path)["subgraphs"][0]["outputs"]] if code == 0 else []
check("its scale", len(results) == 2 and abs(results[1]["quantization"]["scale"][0] - 1.7 / 255) < 1e-8 and results[1]["dtype"] == "int8", results)
code, out, err, path = lite(models / "listed", *WHOLE, "--calibrate_only", "--json")
check("--calibrate_only", code == 0 and json.loads(out)["quantization"] == "calibrated" and dtypes(path) == {"float32"} and ops(path) == ["FULLY_CONNECTED", "FULLY_CONNECTED"], err + out)
graph = shown(path)["subgraphs"][0]
stated = {i: (t.get("quantization", NONE)["min"], t.get("quantization", NONE)["max"]) for i, t in enumerate(graph["tensors"])}
computed = {*graph["inputs"], *(i for o in graph["operators"] for i in o["outputs"])}
check("--calibrate_only: what is computed has a range, and no constant", {i for i, (low, high) in stated.items() if low} == computed and all(len(low) == len(high) == 1 and low[0] <= high[0] for low, high in stated.values() if low), stated)
check("--calibrate_only: no scales", all(t.get("quantization", NONE)["scale"] == [] for t in graph["tensors"]), stated)
replays("a calibrated file answers as the model", path, "listed.tfrecord")
check("--calibrate_only: as text", "seen from" in call("show", path)[1])
code, out, err, again = lite(models / "listed", "--optimizations", "DEFAULT", "--representative_dataset", REQUESTS, "--experimental_calibrate_only")
check("--calibrate_only by --optimizations", again.read_bytes() == path.read_bytes(), err)
code, out, err, path = frozen(X + node("y", "Neg", "x", **FLOAT), "--quantize", "int8", "--representative", SAMPLES, "--calibrate_only")
low, high = (min(wave(12)), max(wave(12)))
near = lambda got, want: abs(got[0] - want) < 1e-6
found = {k: v[2]["quantization"] for k, v in slots(path).items()}
check("--calibrate_only: of the samples", near(found["x"]["min"], low) and near(found["x"]["max"], high) and near(found["y"]["min"], -high) and near(found["y"]["max"], -low), found)
for name, flags, texts in (("without samples", ["--quantize", "int8"], ["--calibrate_only needs"]), ("of floats", [], ["--calibrate_only needs"]), ("of weights alone", ["--quantize", "dynamic"], ["--calibrate_only needs"]),
                           ("with integers at borders", [*WHOLE, "--inference_input_type", "int8"], ["inputs and outputs float"]), ("with a report", [*WHOLE, "--report", work / "r.txt"], ["quantizes no layer"])):
    refused(f"--calibrate_only {name}", lite(models / "listed", "--calibrate_only", *flags), "INVALID_ARGUMENT", *texts)

# ---- biases beside int16

BIASED = X + floats("w", (4, 3), *wave(12)) + floats("b", (3,), 1, 2, 1e6) + node("m", "MatMul", "x", "w", **FLOAT) + node("y", "BiasAdd", "m", "b", **FLOAT)
HALF_WORDS = ["--quantize", "int16x8", "--representative", SAMPLES]
for flags, dtype in (([], "int64"), (["--full_integer_quantization_bias_type", "int64"], "int64"), (["--experimental_full_integer_quantization_bias_type", "int32"], "int32")):
    code, out, err, path = frozen(BIASED, *HALF_WORDS, *flags)
    operator, = [o for o in shown(path)["subgraphs"][0]["operators"] if o["op"] == "FULLY_CONNECTED"]
    bias = shown(path)["subgraphs"][0]["tensors"][operator["inputs"][2]]
    check(f"biases of {dtype}", code == 0 and bias["dtype"] == dtype and operator["options"]["quantized_bias_type"] == dtype, (err, bias, operator))
    raw = path.read_bytes()[shown(path)["buffers"][bias["buffer"]]["offset"]:]
    reals = [q * scale for q, scale in zip(struct.unpack_from({"int32": "<3i", "int64": "<3q"}[dtype], raw), bias["quantization"]["scale"])]
    check(f"biases of {dtype}: none is cut", all(abs(r - w) <= 1e-3 * w for r, w in zip(reals, (1, 2, 1e6))), reals)
    code, out, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", "x=np.zeros((1, 4))")
    check(f"biases of {dtype} run", code == 0 and re.search(r"1\.0000\d*e\+06", out), out + err)
for name, flags in (("int64 beside int8", ["--quantize", "int8", "--representative", SAMPLES]), ("int64 of floats", []), ("int64 of weights alone", ["--quantize", "dynamic"])):
    refused(f"biases of {name}", frozen(BIASED, *flags, "--full_integer_quantization_bias_type", "int64"), "INVALID_ARGUMENT", "int32 or int64 beside int16")
refused("biases of int16", frozen(BIASED, *HALF_WORDS, "--full_integer_quantization_bias_type", "int16"), "INVALID_ARGUMENT", "int32 or int64 beside int16")

# ---- products taken apart

PRODUCTS = placeholder("x", 2, 3, 4) + placeholder("z", 2, 4, 5) + node("y", "BatchMatMulV2", "x", "z", **FLOAT)
check("products of matrices", ops(frozen(PRODUCTS)[3]) == ["BATCH_MATMUL"])
code, out, err, path = frozen(PRODUCTS, "--unfold_batchmatmul")
check("--unfold_batchmatmul", sorted(ops(path)) == ["FULLY_CONNECTED"] * 2 + ["PACK"] + ["RESHAPE"] * 2 + ["SPLIT"] * 2 + ["TRANSPOSE"] * 2 and slots(path)["y"][1] == [2, 3, 5], err + str(ops(path)))
check("--fusion UnfoldBatchMatmul", frozen(PRODUCTS, "--fusion", "UnfoldBatchMatmul")[3].read_bytes() == path.read_bytes())
values = "x=np.arange(24).reshape(2, 3, 4);z=np.arange(40).reshape(2, 4, 5)"
one, other = (call("run", p, "--signature_def", "serving_default", "--input_exprs", values) for p in (path, frozen(PRODUCTS)[3]))
check("--unfold_batchmatmul answers", one == other and one[0] == 0, (one, other))
code, out, err, path = frozen(PRODUCTS.replace("size: 2", "size: -1"), "--unfold_batchmatmul", "--explain")
check("--unfold_batchmatmul of free sizes", ops(path) == ["BATCH_MATMUL"] and "UnfoldBatchMatmul: sizes of its inputs are free" in out, out + err)

# ---- sparse weights

SPARSE = ["--optimizations", "EXPERIMENTAL_SPARSITY"]


def thin(rows, columns, keep):
    """A product with weights of which few are not zero."""
    numbers = [w if keep(i // columns, i % columns) else 0 for i, w in enumerate(wave(rows * columns, 0.41))]
    return placeholder("x", -1, rows) + floats("w", (rows, columns), *numbers) + node("y", "MatMul", "x", "w", **FLOAT)


for name, graph, wanted, kinds in (("spread", thin(16, 8, lambda r, c: (r * 5 + c) % 4 == 0), ["DENSIFY", "FULLY_CONNECTED"], []), ("in blocks", thin(16, 8, lambda r, c: (r // 4 + c) % 4 == 0), ["FULLY_CONNECTED"], [1]),
                                   ("hardly any", thin(16, 8, lambda r, c: (r + c) % 4), ["FULLY_CONNECTED"], None)):
    plain = frozen(graph)[3]
    for flags in SPARSE, ["--sparsify_model"]:
        code, out, err, path = frozen(graph, *flags)
        sparse = [t["sparsity"]["block_map"] for t in shown(path)["subgraphs"][0]["tensors"] if "sparsity" in t]
        check(f"sparse weights, {name}: {flags[-1]}", code == 0 and ops(path) == wanted and sparse == ([] if kinds is None else [kinds]), err + str(ops(path)) + str(sparse))
    one, other = (call("run", p, "--signature_def", "serving_default", "--input_exprs", "x=np.arange(32).reshape(2, 16)") for p in (path, plain))
    check(f"sparse weights, {name}, answer", one == other and one[0] == 0, (one, other))
    check(f"sparse weights, {name}, are said", [m["conversion"]["model_optimization_modes"] for m in shown(path)["metadata"] if "conversion" in m] ==
          [[] if kinds is None else ["BLOCK_SPARSITY"] if kinds else ["RANDOM_SPARSITY"]], shown(path)["metadata"])
for mode in "float16", "dynamic":
    code, out, err, path = frozen(thin(64, 32, lambda r, c: (r * 5 + c) % 4 == 0), *SPARSE, "--quantize", mode)
    check(f"sparse weights in {mode}", code == 0 and "DENSIFY" in ops(path) and dtypes(path) == {"float16": {"float16"}, "dynamic": {"int8"}}[mode], err + str(ops(path)) + str(dtypes(path)))
    code, out, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", "x=np.ones((2, 64))")
    check(f"sparse weights in {mode} run", code == 0, out + err)

# ---- integers of version 1


def fake_quant(name, source, low, high):
    return node(name, "FakeQuantWithMinMaxArgs", source, min=f"f: {low}", max=f"f: {high}", num_bits="i: 8", narrow_range="b: false")


TRAINED = (X + fake_quant("xq", "x", -1, 0.9921875) + floats("w", (4, 3), *wave(12)) + fake_quant("wq", "w", -2, 2) + node("m", "MatMul", "xq", "wq", **FLOAT) + floats("b", (3,), .1, .2, .3)
           + node("s", "BiasAdd", "m", "b", **FLOAT) + node("r", "Relu", "s", **FLOAT) + fake_quant("rq", "r", 0, 6) + node("y", "Softmax", "rq", **FLOAT))
STATS = ["--mean_values", "128", "--std_dev_values", "128"]
for name, kind, flags in (("uint8", "uint8", ["--inference_type", "QUANTIZED_UINT8", *STATS]), ("UINT8", "uint8", ["--inference_type", "UINT8", *STATS]),
                          ("the input says it", "uint8", ["--inference_type", "INT8", "--inference_input_type", "QUANTIZED_UINT8", *STATS]),
                          ("int8", "int8", ["--inference_type", "INT8", "--mean_values", "0", "--std_dev_values", "128"]), ("by name", "uint8", ["--inference_type", "QUANTIZED_UINT8", "--input_arrays", "x", *STATS])):
    code, out, err, path = frozen(TRAINED, *flags)
    zero = 128 if kind == "uint8" else 0
    want = {"x": (kind, [1 / 128], [zero]), "y": (kind, [1 / 256], [zero - 128])}
    got = {k: (v[0], v[2]["quantization"]["scale"], v[2]["quantization"]["zero_point"]) for k, v in slots(path).items()}
    check(f"--inference_type {name}", code == 0 and ops(path) == ["FULLY_CONNECTED", "SOFTMAX"] and got == want and dtypes(path) == {kind, "int32"}, err + str(got) + str(ops(path)))
    versions = [o["version"] for o in shown(path)["subgraphs"][0]["operators"]]
    check(f"--inference_type {name}: versions", versions == ([1, 1] if kind == "uint8" else [4, 2]), versions)
    said = [m["conversion"] for m in shown(path)["metadata"] if "conversion" in m][0]
    check(f"--inference_type {name}: what it says of itself", said["api_version"] == 1 and said["model_optimization_modes"] == [], said)
    code, out, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", f"x=np.full((1, 4), {zero + 64}, dtype=np.{kind})")
    check(f"--inference_type {name} runs", code == 0, out + err)
code, out, err, path = frozen(TRAINED, "--inference_type", "QUANTIZED_UINT8", "--inference_input_type", "FLOAT")
check("--inference_type with floats outside", code == 0 and ops(path) == ["QUANTIZE", "FULLY_CONNECTED", "SOFTMAX", "DEQUANTIZE"] and slots(path)["x"][0] == slots(path)["y"][0] == "float32", err + str(ops(path)))
code, out, err, path = frozen(DENSE, "--inference_type", "QUANTIZED_UINT8", *STATS, "--default_ranges_min", "-6", "--default_ranges_max", "6")
got = slots(path)["y"][2]["quantization"]
check("--default_ranges_min and --default_ranges_max", code == 0 and ops(path) == ["FULLY_CONNECTED"] and got["zero_point"] == [128] and abs(got["scale"][0] - 12 / 255) < 1e-6, err + str(got))
code, out, err, path = frozen(TRAINED, "--inference_type", "FLOAT")
check("--inference_type FLOAT", code == 0 and slots(path)["x"][0] == "float32", err)
UINT8 = ["--inference_type", "QUANTIZED_UINT8"]
for name, graph, flags, texts in (
        ("no stats", TRAINED, UINT8, ["--mean_values and --std_dev_values must say"]), ("half of the stats", TRAINED, [*UINT8, "--mean_values", "128"], ["1, 0 and 0 entries"]),
        ("stats of nobody", TRAINED, [*UINT8, *STATS, "--input_arrays", "x,z"], ["1, 1 and 2 entries"]), ("a zero between integers", TRAINED, [*UINT8, "--mean_values", "127.5", "--std_dev_values", "127.5"], ["integers from 0 to 255"]),
        ("a zero outside", TRAINED, ["--inference_type", "INT8", *STATS], ["integers from -128 to 127"]), ("no deviation", TRAINED, [*UINT8, "--mean_values", "128", "--std_dev_values", "0"], ["greater than zero"]),
        ("words", TRAINED, [*UINT8, "--mean_values", "much", "--std_dev_values", "1"], ["wants numbers"]), ("no ranges", DENSE, [*UINT8, *STATS], ["states no ranges (FakeQuant)", "--default_ranges_min"]),
        ("one range", DENSE, [*UINT8, *STATS, "--default_ranges_min", "0"], ["one number each"]), ("an empty range", DENSE, [*UINT8, *STATS, "--default_ranges_min", "1", "--default_ranges_max", "1"], ["the second greater"]),
        ("samples", TRAINED, [*UINT8, *STATS, "--representative", SAMPLES], ["quantize in another way"]), ("a mode", TRAINED, [*UINT8, *STATS, "--quantize", "int8"], ["quantize in another way"]),
        ("an optimization", TRAINED, [*UINT8, *STATS, "--post_training_quantize"], ["quantize in another way"]), ("int16", TRAINED, ["--inference_type", "INT16", *STATS], ["FLOAT, INT8 or QUANTIZED_UINT8"]),
        ("another output", TRAINED, [*UINT8, *STATS, "--inference_output_type", "int8"], ["contradicts uint8"]), ("stats of floats", TRAINED, STATS, ["need --inference_type INT8 or QUANTIZED_UINT8"]),
        ("ranges of floats", DENSE, ["--default_ranges_min", "0", "--default_ranges_max", "6"], ["need --inference_type INT8"])):
    refused(f"--inference_type, {name}", frozen(graph, *flags), "INVALID_ARGUMENT", *texts)
TWO = placeholder("x", -1, 4) + placeholder("z", -1, 4) + fake_quant("xq", "x", -1, 1) + fake_quant("zq", "z", -1, 1) + node("s", "AddV2", "xq", "zq", **FLOAT) + fake_quant("y", "s", -2, 2)
refused("--inference_type of two inputs", frozen(TWO, *UINT8, *STATS), "INVALID_ARGUMENT", "2 inputs: name them in --input_arrays")
code, out, err, path = frozen(TWO, *UINT8, "--input_arrays", "x,z", "--mean_values", "128,0", "--std_dev_values", "128,255")
got = {k: (v[0], v[2]["quantization"]["zero_point"]) for k, v in slots(path).items() if k in ("x", "z")}
check("--inference_type of two named inputs", code == 0 and got == {"x": ("uint8", [128]), "z": ("uint8", [0])}, err + str(got))

# ---- where a model states ranges, and nowhere else

got = {}
for mode, kind, wanted in (("STATIC", "int8", ["FULLY_CONNECTED", "DEQUANTIZE", "SOFTMAX"]), ("DYNAMIC", "float32", ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE", "SOFTMAX"])):
    code, out, err, path = frozen(TRAINED, "--qdq_conversion_mode", mode)
    check(f"--qdq_conversion_mode {mode}", code == 0 and ops(path) == wanted and slots(path)["x"][0] == kind and slots(path)["y"][0] == "float32", err + str(ops(path)))
    said = [m["conversion"] for m in shown(path)["metadata"] if "conversion" in m][0]
    check(f"--qdq_conversion_mode {mode}: what it says of itself", said["api_version"] == 1 and said["model_optimization_modes"] == [], said)
check("--qdq_conversion_mode NONE", frozen(TRAINED, "--qdq_conversion_mode", "NONE")[3].read_bytes() == frozen(TRAINED)[3].read_bytes())
for name, graph, flags, texts in (("of another name", TRAINED, ["--qdq_conversion_mode", "SOME"], ["NONE, STATIC or DYNAMIC"]), ("and a mode", TRAINED, ["--qdq_conversion_mode", "STATIC", "--quantize", "int8"], ["say otherwise"]),
                                  ("and a type of version 1", TRAINED, ["--qdq_conversion_mode", "STATIC", *UINT8, *STATS], ["one or the other"]), ("without ranges", DENSE, ["--qdq_conversion_mode", "DYNAMIC"], ["states no ranges"])):
    refused(f"--qdq_conversion_mode {name}", frozen(graph, *flags), "INVALID_ARGUMENT", *texts)

# ---- weights that training rounded to 4 bits

LOW = (X + fake_quant("xq", "x", -1, 0.9921875) + floats("w", (4, 3), *[i % 16 * 0.25 - 2 for i in range(12)]) + fake_quant("wq", "w", -2, 1.75).replace("i: 8", "i: 4") + node("m", "MatMul", "xq", "wq", **FLOAT)
       + fake_quant("y", "m", -6, 6))
for flags, kind in (([], "int8"), (["--low_bit_qat"], "int4")):
    code, out, err, path = frozen(LOW, "--quantize", "int8", *flags)
    weights, = [t for t in shown(path)["subgraphs"][0]["tensors"] if t["buffer_bytes"]]
    check(f"weights of 4 bits {flags}", code == 0 and weights["dtype"] == kind and weights["quantization"]["scale"] == [0.25] and weights["quantization"]["zero_point"] == [0], err + str(weights))
    code, out, err = call("run", path, "--signature_def", "serving_default", "--input_exprs", "x=np.full((1, 4), 0.5)")
    numbers = [float(v) for v in re.findall(r"-?\d+\.\d*", out)]
    check(f"weights of 4 bits {flags} answer", code == 0 and all(abs(a - b) < 12 / 255 for a, b in zip(numbers, [0.5 * sum((i * 3 + k) * 0.25 - 2 for i in range(4)) for k in range(3)])), out + err)
code, out, err, path = frozen(LOW, "--quantize", "dynamic", "--experimental_low_bit_qat")
check("--low_bit_qat by dynamic", code == 0 and "int4" in dtypes(path), err)
check("--low_bit_qat is said", [m["conversion"]["model_optimization_modes"] for m in shown(path)["metadata"] if "conversion" in m] == [[]], shown(path)["metadata"])
refused("--low_bit_qat of floats", frozen(LOW, "--low_bit_qat"), "INVALID_ARGUMENT", "needs --quantize int8 or dynamic")
refused("--low_bit_qat without training", frozen(DENSE, "--quantize", "dynamic", "--low_bit_qat"), "INVALID_ARGUMENT", "trained with FakeQuant")

# ---- variables of integers

for mode, kind in (("int8", "int8"), ("int16x8", "int16")):
    data = npz(work / "counter.npz", **{slot["name"]: ((3,), (0.5, 1.5, 2.5)) for slot in shown(lite(models / "counter", "--signature", "add")[3])["signatures"][0]["inputs"]})
    flags = ["--signature", "add", "--quantize", mode, "--representative", data]
    code, out, err, path = lite(models / "counter", *flags, "--variable_quantization")
    found = {o["op"]: [file["tensors"][i] for i in o["inputs"] + o["outputs"]] for file in shown(path)["subgraphs"] for o in file["operators"] if o["op"] in ("READ_VARIABLE", "ASSIGN_VARIABLE")}
    read, written = (found.get(op, [{"dtype": "", "quantization": NONE}])[-1] for op in ("READ_VARIABLE", "ASSIGN_VARIABLE"))
    assigned = [file["tensors"][o["inputs"][1]] for file in shown(path)["subgraphs"] for o in file["operators"] if o["op"] == "ASSIGN_VARIABLE"]
    check(f"--variable_quantization {mode}", code == 0 and read["dtype"] == kind and len(assigned) == 2 and {t["dtype"] for t in assigned} == {kind}, err + str(found))
    code, out, err, path = lite(models / "counter", *flags)
    assigned = [file["tensors"][o["inputs"][1]] for file in shown(path)["subgraphs"] for o in file["operators"] if o["op"] == "ASSIGN_VARIABLE"]
    check(f"variables of {mode} without it", code == 0 and {t["dtype"] for t in assigned} == {"float32"}, err + str(assigned))
refused("--variable_quantization of floats", lite(models / "counter", "--variable_quantization"), "INVALID_ARGUMENT", "needs --quantize int8 or int16x8")
refused("--variable_quantization of weights", lite(models / "counter", "--quantize", "dynamic", "--variable_quantization"), "INVALID_ARGUMENT", "needs --quantize int8 or int16x8")
refused("--variable_quantization of several signatures", lite(models / "counter", "--quantize", "int8", "--variable_quantization", "--representative", models / "counter.tfrecord"), "INVALID_ARGUMENT", "shared by several signatures")

# ---- what is not done says so

refused("StableHLO", lite(models / "listed", "--supported_ops", "EXPERIMENTAL_STABLEHLO_OPS"), "INVALID_ARGUMENT", "operators of StableHLO are read, and not written", "TFLITE_BUILTINS")

# ---- layers as CSV

code, out, err, path = lite(models / "listed", *WHOLE, "--report", work / "layers.csv")
rows = list(csv.DictReader((work / "layers.csv").open()))
check("--report of CSV", code == 0 and [r["op_name"] for r in rows] == ["FULLY_CONNECTED", "FULLY_CONNECTED"] and list(rows[0]) == ["op_name", "tensor_idx", "num_elements", "stddev", "mean_error", "max_abs_error",
      "mean_squared_error", "scale", "zero_point", "tensor_name"], err + str(rows))
for row in rows:
    t = shown(path)["subgraphs"][0]["tensors"][int(row["tensor_idx"])]
    numbers = {k: float(v) for k, v in row.items() if k not in ("op_name", "tensor_name")}
    check(f"--report of CSV: {row['tensor_name']}", t["dtype"] == "int8" and t["quantization"]["zero_point"] == [int(row["zero_point"])] and abs(t["quantization"]["scale"][0] - numbers["scale"]) < 1e-6
          and 0 < numbers["max_abs_error"] and abs(numbers["mean_error"]) <= numbers["max_abs_error"] and numbers["stddev"] ** 2 <= numbers["mean_squared_error"] * 1.001, (row, t))
finish()
