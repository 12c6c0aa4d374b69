#!/usr/bin/env python3
"""Custom operators of TensorFlow Lite from a shared library: lite_op_library_test.py SMELT LIBRARY OPERATORS. Ends with 'N passed, N failed'.

tests/models/custom_ops holds functions that become custom operators, and what TensorFlow answers for them; the libraries (tests/op_library/lite_ops.c,
and lite_operators.c by the stable interface) compute the same. Variables, optional inputs, quantized tensors and states beside TensorFlow Lite: tests/peers/lite_op_library_test.py."""
import os
import sys

from program import call, check, finish, models, node, work

library, operators = (os.path.abspath(path) for path in sys.argv[2:4])
model = work / "custom.tflite"
code, out, err = call("lite", models / "custom_ops", model)
check("exported", code == 0, out + err)


def run(*flags, signature="counted", inputs="n=3"):
    code, out, err = call("run", model, "--signature_def", signature, "--input_exprs", inputs, *flags)
    return code, out + err


code, out, err = call("replay", model, "--log", models / "custom_ops.tfrecord", "--op_library", library)
check("the operators answer as the functions that they replace", code == 0 and "9" in out, out + err)
code, out, err = call("bench", model, "--log", models / "custom_ops.tfrecord", "--op_library", library, "--seconds", "0.1", "--signature_def", "words")
check("and are timed", code == 0, out + err)

code, text = run()
check("without a library", code == 1 and "UNIMPLEMENTED" in text and "Encountered unresolved custom op: " in text and "--op_library" in text, text)
code, text = run("--op_library", f"{library}:UpTo=Register_UpTo")
check("of another library", code == 1 and "Encountered unresolved custom op: " in text and "The op libraries bring UpTo" in text, text)
every = "my_custom_fused_op=Register_FUSED,Register_UpTo,LastFirst=Register_LAST_FIRST,Roots=_ZN8examples3ops14Register_ROOTSEv"
code, text = run("--op_library", f"{library}:{every}")
check("by symbols", code == 0 and "[1. 2. 3.]" in text, text)
code, text = run("--op_library", library, "--op_library", library)
check("the library twice", code == 0, text)
code, text = run("--op_library", f"{library}:Nothing=Register_NOTHING")
check("no such symbol", code == 1 and "NOT_FOUND" in text and "Register_NOTHING" in text, text)
code, text = run("--op_library", f"{library}:NothingRegistered")
check("a function that returns nothing", code == 1 and "INTERNAL" in text and "NothingRegistered" in text, text)
code, text = run("--op_library", library, "--op_library", f"{library}:UpTo=Register_FUSED")
check("two operators of a name", code == 1 and "ALREADY_EXISTS" in text and "'UpTo'" in text, text)
code, text = run("--op_library", f"{library}.none:UpTo")
check("no library", code == 1 and "NOT_FOUND" in text, text)

# An operator that TensorFlow Lite's own resolver brings needs none, and a library's goes before it: Counter gives 1 for each number of its first call.
graph, spectrogram = work / "spectrogram.pbtxt", work / "spectrogram.tflite"
graph.write_text(node("x", "Placeholder", dtype="type: DT_FLOAT", shape="shape { dim { size: 4 } dim { size: 1 } }")
                 + node("y", "AudioSpectrogram", "x", window_size="i: 4", stride="i: 1", magnitude_squared="b: true") + "versions { producer: 1882 }\n")
code, out, err = call("lite", "--graph_def", graph, spectrogram, "--allow_custom_ops")
check("a spectrogram is exported", code == 0, out + err)
for flags, shape in (([], "(1, 1, 3)"), (["--op_library", f"{library}:AudioSpectrogram=Register_COUNTER"], "(4, 1)")):
    code, out, err = call("run", spectrogram, "--signature_def", "serving_default", "--input_exprs", "x=np.ones((4, 1))", *flags)
    check(f"a spectrogram of shape {shape}", code == 0 and ("[1.]" in out) == bool(flags), out + err)

fails = lambda text, *words: all(w in text for w in words)
code, text = run("--op_library", library, inputs="n=-2")
check("what invoke reports", code == 1 and fails(text, "INTERNAL", "'UpTo' failed to invoke: there is nothing up to -2", "{{node"), text)
code, text = run("--op_library", library, signature="roots", inputs="x=[[1.0, -8.0]]")
check("with numbers", code == 1 and fails(text, "'Roots' failed to invoke: x[1] is -16, below 0"), text)
code, text = run("--op_library", library, signature="roots", inputs="x=[[float('nan')]]")
check("an exception", code != 0, text)
code, text = run("--op_library", f"{library}:{every.replace('Roots=_ZN8examples3ops14Register_ROOTSEv', 'Roots=Register_REAL')}", signature="roots", inputs="x=[[1.0]]")
check("what prepare reports", code == 1 and fails(text, "'Roots' failed to prepare: input 0 is FLOAT32, not INT8"), text)
code, text = run("--op_library", f"{library}:{every.replace('Roots=_ZN8examples3ops14Register_ROOTSEv', 'Roots=Register_BAD')}", signature="roots", inputs="x=[[1.0]]")
check("an output that does not hold together", code == 1 and fails(text, "INTERNAL", "'Roots' makes an output 0 that cannot be read: it has 8 bytes"), text)

# ---- operators of TfLiteOperatorCreate

code, out, err = call("replay", model, "--log", models / "custom_ops.tfrecord", "--op_library", operators)
check("operators of the stable interface answer as the functions", code == 0 and "9" in out, out + err)
for flags in ([operators], [f"{operators}:UpTo=Register_UpTo,my_custom_fused_op=FusedOperator,LastFirst=LastFirstOperator,Roots=RootsOperator"]):
    code, text = run("--op_library", *flags, inputs="n=-2")
    check("what their invoke reports", code == 1 and fails(text, "INTERNAL", "'UpTo' failed to invoke: there is nothing up to -2", "{{node"), text)
    code, text = run("--op_library", *flags, signature="roots", inputs="x=[[1.0, -8.0]]")
    check("with numbers", code == 1 and fails(text, "'Roots' failed to invoke: x[1] is -16, below 0"), text)
code, text = run("--op_library", f"{operators}:BuiltinAdd")
check("an operator that is a builtin", code == 1 and fails(text, "INVALID_ARGUMENT", "the operator of 'BuiltinAdd' is no custom one"), text)
code, text = run("--op_library", f"{operators}:Uninvoked")
check("an operator without invoke", code == 1 and fails(text, "INVALID_ARGUMENT", "'Uninvoked' has no invoke"), text)
code, text = run("--op_library", library, "--op_library", f"{operators}:UpTo=FusedOperator")
check("a name that both bring", code == 1 and "ALREADY_EXISTS" in text, text)
finish()
