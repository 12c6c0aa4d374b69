#!/usr/bin/env python3
"""smelt lite beside TensorFlow's converter where flags decide: lite_command_test.py SMELT

Checks that are dropped with what fed them, borders of uint8, constants that are not finite: files of both, operator by operator. And every option of TFLiteConverter, its target_spec and
tflite_convert is a flag or has its reason in docs/lite.md."""
import os
import pathlib
import re

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tensorflow.lite.python import schema_py_generated as fb, util

from checks import check, finish
from lite_pairs import both, equal_files, operators, setting, work

tf.get_logger().setLevel("ERROR")
SPEC = tf.TensorSpec([2, 4], tf.float32, name="x")
WEIGHTS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
samples = np.random.default_rng(1).standard_normal((8, 2, 4)).astype(np.float32)
# A .npz holds rows of batch one, so these models take one row of shape [2, 4] as [1, 2, 4].
ROW = tf.TensorSpec([1, 2, 4], tf.float32, name="x")
np.savez(work / "samples.npz", x=samples)


# ---- checks go, with what fed only them


def odd_feeders(x):
    ok = tf.reduce_all(tf.math.is_finite(x))
    with tf.control_dependencies([tf.debugging.Assert(ok, [tf.strings.as_string(x), tf.math.betainc(x, x, x)])]):
        return {"y": x * 2}


def standing_alone(x):
    tf.debugging.Assert(tf.reduce_all(tf.math.is_finite(x)), [tf.strings.as_string(x)])
    return {"y": x * 2}


def in_a_loop(x):
    def body(i, y):
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(tf.math.is_finite(y)), [tf.strings.as_string(y)])]):
            return i + 1, y * 2
    return {"y": tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]}


def greater(x):
    with tf.control_dependencies([tf.debugging.assert_greater(x, -1e9, message="too small")]):
        return {"y": x * 2}


def shared_feeder(x):
    square = tf.square(x)
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(square < 1e9), [square])]):
        return {"y": square + x}


for function in odd_feeders, standing_alone, greater, shared_feeder:
    ours, theirs = both(function.__name__, function, SPEC)
    equal_files(f"assert {function.__name__}", ours, theirs)
ours, theirs = both("in_a_loop", in_a_loop, SPEC)
check("assert in a loop: smelt writes it", not isinstance(ours, str), ours[:600])
check("assert in a loop: no check is left", not isinstance(ours, str) and not {o[0] for g in operators(ours)[0] for o in g} & {"CUSTOM", "IF", "REDUCE_ALL"}, "")
ours, theirs = both("kept", greater, SPEC, ["--preserve_assert_op", "--allow_custom_ops"], lambda c: (setattr(c, "_experimental_preserve_assert_op", True), setattr(c, "allow_custom_ops", True)))
check("assert that is kept", all(not isinstance(d, str) and any(o[0] == "CUSTOM" for g in operators(d)[0] for o in g) for d in (ours, theirs)), (ours[:500], theirs[:500]))

# ---- borders of uint8


def dense(x):
    return {"y": tf.nn.relu(tf.matmul(x, WEIGHTS) + 1.0)}


def several(x):
    return {"a": tf.nn.softmax(tf.matmul(x, WEIGHTS)), "b": x + 1.0, "c": tf.argmax(x, 2)}


def passed_on(x):
    return {"a": tf.reshape(x, [4, 2]), "b": tf.nn.softmax(tf.matmul(x, WEIGHTS)), "c": tf.identity(x)}


def quantized(c, border_in, border_out):
    c.optimizations = [tf.lite.Optimize.DEFAULT]
    c.representative_dataset = lambda: ([s[None]] for s in samples)
    c.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    c.inference_input_type, c.inference_output_type = border_in, border_out


WHOLE = ["--quantize", "int8", "--representative", work / "samples.npz", "--only_integer"]
for function in dense, several, passed_on:
    for border_in, border_out in (("uint8", "uint8"), ("uint8", "float32"), ("float32", "uint8"), ("int8", "uint8"), ("int8", "int8")):
        name = f"{function.__name__}_{border_in}_{border_out}"
        ours, theirs = both(name, function, ROW, WHOLE + ["--inference_input_type", border_in, "--inference_output_type", border_out],
                            lambda c: quantized(c, tf.as_dtype(border_in), tf.as_dtype(border_out)))
        # TensorFlow makes floats of the uint8 itself there, smelt of the int8 that it is first: the same floats.
        equal_files(f"borders {name}", ours, theirs, exact=name != "passed_on_uint8_float32")
        if isinstance(ours, str) or isinstance(theirs, str):
            continue
        answers = []
        for data in ours, theirs:
            interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
            runner = interpreter.get_signature_runner()
            (info,) = runner.get_input_details().values()
            if data is ours:
                shown = runner.get_output_details()
            scale, zero = info["quantization"]
            value = samples[0][None] if not scale else np.clip(np.round(samples[0][None] / scale) + zero, np.iinfo(info["dtype"]).min, np.iinfo(info["dtype"]).max).astype(info["dtype"])
            answers.append({k: np.array(v) for k, v in runner(**dict.fromkeys(runner.get_input_details(), value)).items()})
        if function is passed_on:
            # LiteRT's runner takes TensorFlow's file for one of floats, as two of its tensors have one name: ours is held to the sample.
            got, (scale, zero) = answers[0]["c"], shown["c"]["quantization"]
            real = (got.astype(np.float64) - zero) * scale if scale else got
            check(f"borders {name}: what is passed on", np.abs(real - np.clip(samples[0], samples.min(), samples.max())).max() < 0.02, real)
            continue
        check(f"borders {name}: equal answers", set(answers[0]) == set(answers[1]) and all(a.dtype == answers[1][k].dtype and np.allclose(a, answers[1][k], atol=0 if a.dtype.kind in "iu" else 1e-6)
                                                                                            for k, a in answers[0].items()), answers)

# ---- constants that are not finite


def masks(x):
    return {"a": tf.where(x > 0, x, -np.inf), "b": x + np.array([1, 2, np.inf, np.nan], np.float32)}


def constants(data):
    return sorted(np.frombuffer(t[4], np.float32).tolist().__repr__() for g in operators(data)[0] for o in g for t in o[1] if t and t[4] and t[0] == fb.TensorType.FLOAT32)


def halves(data):
    return sorted(np.frombuffer(t[4], np.float16).tolist().__repr__() for g in operators(data)[0] for o in g for t in o[1] if t and t[4] and t[0] == fb.TensorType.FLOAT16)


for name, flags, value in (("left out", [], True), ("kept", ["--canonicalizing_inf_as_min_max_float", "false"], False)):
    ours, theirs = both(f"masks_{value}", masks, SPEC, flags, lambda c: setattr(c, "canonicalizing_inf_as_min_max_float", value))
    check(f"infinities {name}", not isinstance(ours, str) and constants(ours) == constants(theirs), (ours if isinstance(ours, str) else constants(ours), constants(theirs)))
ours, theirs = both("masks_half", masks, SPEC, ["--quantize", "float16"], lambda c: (setattr(c, "optimizations", [tf.lite.Optimize.DEFAULT]), setattr(c.target_spec, "supported_types", [tf.float16])))
check("infinities as halves", not isinstance(ours, str) and halves(ours) == halves(theirs), (ours if isinstance(ours, str) else halves(ours), halves(theirs)))

# ---- what files say of how they were made


def told(data):
    """CONVERSION_METADATA without its hash, and what else metadata say."""
    c = util.get_conversion_metadata(data)
    plain = {k: v.tolist() if hasattr(v, "tolist") else v for part in (c.environment, c.options) for k, v in vars(part).items() if k != "modelHash"}
    model = fb.ModelT.InitFromObj(fb.Model.GetRootAs(data, 0))
    return plain, sorted((m.name, bytes(model.buffers[m.buffer].data)) for m in model.metadata if m.name not in (b"CONVERSION_METADATA", b"min_runtime_version"))


def trained(x):
    return {"y": tf.quantization.fake_quant_with_min_max_args(tf.matmul(tf.quantization.fake_quant_with_min_max_args(x, -3, 3), WEIGHTS), -6, 6)}


BEST, SETS = [tf.lite.Optimize.DEFAULT], tf.lite.OpsSet
ROWS = {"representative_dataset": lambda: ([s[None]] for s in samples)}
DATA = ["--representative", work / "samples.npz"]
for name, function, flags, converter in (
        ("plain", dense, [], {}), ("custom", dense, ["--allow_custom_ops"], {"allow_custom_ops": True}), ("select", dense, ["--select_tf_ops"], {"supported_ops": [SETS.TFLITE_BUILTINS, SETS.SELECT_TF_OPS]}),
        ("only_select", dense, ["--supported_ops", "SELECT_TF_OPS"], {"supported_ops": [SETS.SELECT_TF_OPS]}),
        ("half", dense, ["--optimizations", "DEFAULT", "--supported_types", "float16"], {"optimizations": BEST, "supported_types": [tf.float16]}),
        ("half_sums", dense, ["--optimizations", "DEFAULT", "--supported_types", "float16", "--supported_accumulation_type", "float16"],
         {"optimizations": BEST, "supported_types": [tf.float16], "_experimental_supported_accumulation_type": tf.float16}),
        ("bfloat16", dense, ["--optimizations", "DEFAULT", "--supported_types", "bfloat16"], {"optimizations": BEST, "supported_types": [tf.bfloat16]}),
        ("halves", dense, ["--optimizations", "DEFAULT", "--supported_types", "float16,bfloat16"], {"optimizations": BEST, "supported_types": [tf.float16, tf.bfloat16]}),
        ("dynamic", dense, ["--optimizations", "DEFAULT"], {"optimizations": BEST}), ("int8", dense, ["--optimizations", "DEFAULT", *DATA], {"optimizations": BEST, **ROWS}),
        ("int16", dense, ["--quantize", "int16x8", *DATA], {"optimizations": BEST, **ROWS, "supported_ops": [SETS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]}),
        ("trained_float", trained, [], {}), ("trained_dynamic", trained, ["--optimizations", "DEFAULT"], {"optimizations": BEST}),
        ("trained_int8", trained, ["--optimizations", "DEFAULT", *DATA], {"optimizations": BEST, **ROWS})):
    ours, theirs = both(f"told_{name}", function, ROW, flags, setting(**converter))
    check(f"metadata, {name}", not isinstance(ours, str) and not isinstance(theirs, str) and told(ours) == told(theirs), (ours, theirs) if isinstance(ours, str) or isinstance(theirs, str) else (told(ours), told(theirs)))
    if not isinstance(ours, str):
        check(f"metadata, {name}: the hash", util.get_conversion_metadata(ours).environment.modelHash == util.get_model_hash(fb.ModelT.InitFromObj(fb.Model.GetRootAs(ours, 0))))
ours, theirs = both("told_nothing", dense, ROW, ["--exclude_conversion_metadata"], setting(exclude_conversion_metadata=True))
check("metadata that are left out", all(not isinstance(d, str) and util.get_conversion_metadata(d) is None for d in (ours, theirs)))

# ---- every option has its flag, or its reason

document = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs/lite.md").read_text()
named = set(re.findall(r"`(?:--)?(\w+)", document))
converters = [tf.lite.TFLiteConverter([], None), tf.compat.v1.lite.TFLiteConverter(None, [], [])]
# What the converter keeps for itself, and what its constructors take.
INNER = {"_debug_info", "_debug_info_func", "_tflite_metrics", "_collected_converter_params", "_metadata", "_funcs", "_trackable_obj", "saved_model_dir", "_saved_model_tags",
         "_saved_model_version", "_saved_model_exported_names", "_graph_def", "_input_tensors", "_output_tensors", "_control_output_arrays", "_input_arrays_with_shape", "_output_arrays", "target_spec",
         "_original_model_type"}
for option in sorted({k for c in converters for k in (*vars(c), *vars(c.target_spec))} - INNER):
    check(f"option {option} is in docs/lite.md", named & {option, option.lstrip("_"), option.lstrip("_").removeprefix("experimental_")}, "")
from tensorflow.lite.python import tflite_convert
for version in False, True:
    for action in tflite_convert._get_parser(use_v2_converter=version)._actions:
        for flag in (s[2:] for s in action.option_strings if s.startswith("--") and s != "--help"):
            check(f"tflite_convert --{flag} is in docs/lite.md", flag in named, "")
finish()
