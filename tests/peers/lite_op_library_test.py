#!/usr/bin/env python3
"""Custom operators of a library in TensorFlow Lite and in smelt: lite_op_library_test.py SMELT [HEADER].

tests/op_library/lite_ops.c is built here, against smelt's statement of TensorFlow Lite's interface (smelt/kernels/custom/lite_op.h) or against HEADER,
TensorFlow's own common.h ("tensorflow/lite/core/c/common.h", with -I in CPPFLAGS). The interpreter of TensorFlow's package runs that library, whose structures are
TensorFlow's there, and smelt runs it: equal answers, in files that hold what a converter does not write."""
import ctypes
import os
import pathlib
import shlex
import subprocess
import sys

from checks import call, check, finish
from lite_checks import smelt, work
import numpy as np
import tensorflow as tf
from tensorflow.lite.python.interpreter import InterpreterWithCustomOps
from tensorflow_serving.apis import prediction_log_pb2

from lite_builder import Lite

root = pathlib.Path(__file__).resolve().parent.parent.parent
sources = root / "tests/op_library"
library = work / "liblite_ops.so"
given = [f'-DLITE_HEADER="{sys.argv[2]}"'] if len(sys.argv) > 2 else []
flags = ["-O1", "-fPIC", f"-I{root}", *given, *shlex.split(os.environ.get("CPPFLAGS", ""))]
subprocess.run(["cc", *flags, "-c", sources / "lite_ops.c", "-o", work / "c.o"], check=True)
subprocess.run(["c++", "-std=c++20", *flags, "-c", sources / "lite_ops_cc.cc", "-o", work / "cc.o"], check=True)
subprocess.run(["c++", "-shared", work / "c.o", work / "cc.o", "-o", library], check=True)

# What the library leaves to the host is TensorFlow's; its resolver takes operators by a function that the package exports.
tensorflow = ctypes.CDLL(os.path.join(os.path.dirname(tf.__file__), "libtensorflow_cc.so.2"), ctypes.RTLD_GLOBAL)
add_custom = tensorflow._ZN6tflite17MutableOpResolver9AddCustomEPKcPK18TfLiteRegistrationi
add_custom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]
ops = ctypes.CDLL(str(library))
# The resolver keeps the addresses of names.
OPS = {b"my_custom_fused_op": "Register_FUSED", b"UpTo": "Register_UpTo", b"LastFirst": "Register_LAST_FIRST", b"Counter": "Register_COUNTER",
       b"Real": "Register_REAL", b"Roots": "_ZN8examples3ops14Register_ROOTSEv"}


def register(resolver):
    for name, symbol in OPS.items():
        function = getattr(ops, symbol)
        function.restype = ctypes.c_void_p
        add_custom(resolver, name, function(), 1)


def tensorflow_lite(data, requests):
    interpreter = InterpreterWithCustomOps(model_content=data, custom_op_registerers=[register])
    runner = interpreter.get_signature_runner()
    out = []
    for inputs in requests:
        try:
            out.append({k: np.array(v) for k, v in runner(**inputs).items()})
        except (RuntimeError, ValueError) as e:
            out.append(str(e))
    return out


def compare(name, lite, outputs, requests):
    """The requests in one interpreter and in one session: what operators keep between them must agree, bit for bit."""
    data = lite.bytes(outputs)
    wanted = tensorflow_lite(data, requests)
    check(f"{name} in TensorFlow Lite", not any(isinstance(w, str) for w in wanted), wanted)
    model, log = work / f"{name}.tflite", work / f"{name}.tfrecord"
    model.write_bytes(data)
    with tf.io.TFRecordWriter(str(log)) as out:
        for inputs, answers in zip(requests, wanted):
            entry = prediction_log_pb2.PredictionLog()
            entry.predict_log.request.model_spec.signature_name = "serving_default"
            for k, v in inputs.items():
                entry.predict_log.request.inputs[k].CopyFrom(tf.make_tensor_proto(v))
            for k, v in answers.items():
                entry.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v))
            out.write(entry.SerializeToString())
    code, text = call("replay", model, "--log", log, "--rtol", "0", "--atol", "0", "--op_library", library)
    check(name, code == 0, text)


def both_fail(name, lite, outputs, inputs):
    """The same words of the operator."""
    data = lite.bytes(outputs)
    [want] = tensorflow_lite(data, [inputs])
    check(f"{name} in TensorFlow Lite", isinstance(want, str), want)
    words = str(want).split("\n")[0].split("Node number")[0].strip()
    got = smelt(name, data, inputs, flags=["--op_library", str(library)])
    check(name, isinstance(got, str) and words in got, f"{got}, wanted {words}")


rng = np.random.default_rng(5)
floats = lambda *shape: rng.normal(size=shape).astype(np.float32)


def custom(name, inputs, shape, dtype, options=b"", more=(), **kw):
    """A file of one operator; `inputs`: (shape, type) of each, or a function of the file for what is no input."""
    lite = Lite()
    given = [i(lite) if callable(i) else -1 if i is None else lite.input(i[0], i[1], **(i[2] if len(i) > 2 else {})) for i in inputs]
    outputs = [lite.tensor(shape, dtype, **kw)] + [lite.tensor(s, t) for s, t in more]
    lite.op("CUSTOM", given, outputs, custom=name, custom_options=options)
    return lite, outputs


compare("fused", *custom("my_custom_fused_op", [([4, 5], "float32"), ([3], "float32")], [], "float32", more=[([], "float32")]),
        [{"x0": floats(4, 5), "x1": floats(3)} for _ in range(2)])
compare("dynamic", *custom("UpTo", [([], "int32")], [1], "float32", signature=[-1]), [{"x0": np.int32(n)} for n in (3, 17, 1)])
compare("words", *custom("LastFirst", [([1], "str", {"signature": [-1]})], [1], "str", signature=[-1]),
        [{"x0": np.array(w, object)} for w in ([b"a", b"", b"long word"], [b"\xff\x00x"])])
compare("counter", *custom("Counter", [([3], "float32")], [3], "float32"), [{"x0": floats(3)} for _ in range(4)])
compare("variable", *custom("Counter", [([3], "float32"), lambda f: f.tensor([3], "float32", variable=True)], [3], "float32"),
        [{"x0": floats(3)} for _ in range(4)])
compare("resized", *custom("Counter", [([1, 2], "float32", {"signature": [-1, 2]})], [1, 2], "float32", signature=[-1, 2]),
        [{"x0": floats(n, 2)} for n in (1, 4, 4, 2)])
int8 = ([2, 3], "int8", {"scale": 0.25, "zero": -3})
requests = [{"x0": rng.integers(-128, 128, [2, 3], np.int8)} for _ in range(2)]
compare("quantized", *custom("Real", [int8], [2, 3], "float32"), requests)
compare("left_out", *custom("Real", [int8, None], [2, 3], "float32"), requests)
compare("constant", *custom("Real", [int8, lambda f: f.const(np.float32([0.5]))], [2, 3], "float32"), requests)
compare("cpp", *custom("Roots", [([2, 3], "float32")], [2, 3], "float32"), [{"x0": np.abs(floats(2, 3))}])

# One variable under two operators: the second sees what the first wrote. Builtins stand between.
lite = Lite()
x, total = lite.input([2], "float32"), lite.tensor([2], "float32", variable=True)
first, doubled, second = (lite.tensor([2], "float32") for _ in range(3))
lite.op("CUSTOM", [x, total], [first], custom="Counter")
lite.op("ADD", [first, first], [doubled], "AddOptions")
lite.op("CUSTOM", [doubled, total], [second], custom="Counter")
compare("two_of_a_variable", lite, [first, second], [{"x0": floats(2)} for _ in range(3)])

both_fail("prepare_fails", *custom("Roots", [([4], "float32")], [4], "float32"), {"x0": floats(4)})
both_fail("invoke_fails", *custom("Roots", [([1, 2], "float32")], [1, 2], "float32"), {"x0": np.float32([[1, -4]])})
both_fail("wrong_type", *custom("Real", [([2], "int32")], [2], "float32"), {"x0": np.int32([1, 2])})
both_fail("unresolved", *custom("Nobody", [([2], "int32")], [2], "float32"), {"x0": np.int32([1, 2])})
finish()
