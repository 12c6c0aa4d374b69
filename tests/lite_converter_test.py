#!/usr/bin/env python3
"""smelt lite's flags that are options of TensorFlow's TFLiteConverter: lite_converter_test.py SMELT. Ends with 'N passed, N failed'.

What files must say follows from the flags, the schema and files that TensorFlow 2.21 wrote; tests/peers/lite_command_test.py holds the same to TensorFlow's converter."""
from lite_program import DENSE, frozen, lite, refused, shown, structure_hash
from program import check, finish, models, work

REQUESTS = models / "listed.tfrecord"

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

finish()
