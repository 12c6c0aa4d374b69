#!/usr/bin/env python3
"""How many inputs each builtin operator has, in LiteRT and in smelt: lite_operands_test.py SMELT [OPERATOR...]

A file for each operator and each number of inputs up to 6. Where LiteRT refuses the number, smelt must refuse it; where LiteRT prepares the operator, smelt
must not find fault with the number. LiteRT runs in a process of its own, as some of these files bring it down: they count for nothing there, and must still
be refused or run here."""
import os
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from checks import call, check, finish
from lite_builder import Lite, fb

only = sys.argv[2:]
MOST = 6
COUNTS = re.compile(r"(NumInputs\(node\)|inputs->size|num_inputs) (!=|==|>=) |expects \d+ or \d+ inputs|invalid num inputs|values_count")
TABLES = {"AVERAGE_POOL_2D": "Pool2DOptions", "MAX_POOL_2D": "Pool2DOptions", "L2_POOL_2D": "Pool2DOptions", "L2_NORMALIZATION": "L2NormOptions",
          "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions", "MEAN": "ReducerOptions", "SUM": "ReducerOptions", "MAXIMUM": "MaximumMinimumOptions",
          "MINIMUM": "MaximumMinimumOptions", "CONV_3D_TRANSPOSE": "Conv3DOptions", "RANDOM_STANDARD_NORMAL": "RandomOptions", "RANDOM_UNIFORM": "RandomOptions",
          "MULTINOMIAL": "RandomOptions", **{f"REDUCE_{k}": "ReducerOptions" for k in ("MAX", "MIN", "PROD", "ANY", "ALL")}}
ALL_TABLES = {n.lower(): n for n in [*vars(fb.BuiltinOptions), *vars(fb.BuiltinOptions2)]}
path = tempfile.mkdtemp(prefix="smelt_lite_operands_") + "/model.tflite"


def file_of(op, inputs):
    f = Lite()
    given = [f.input([1, 4, 4, 1], "float32") for _ in range(inputs)]
    made = f.tensor([1, 4, 4, 1], "float32")
    f.op(op, given, [made], TABLES.get(op) or ALL_TABLES.get(op.replace("_", "").lower() + "options"))
    return f.bytes([made])


def prepared(data):
    """LiteRT's words, "" where it prepares the file, None where it does not live to tell."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 2)
            try:
                Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES).allocate_tensors()
                words = ""
            except (RuntimeError, ValueError) as e:
                words = str(e)
            os.write(write, words.encode()[:4000])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        words = pipe.read().decode(errors="replace")
    return words if os.waitpid(child, 0)[1] == 0 else None


# LiteRT does not count these: smelt holds them to what their kernels read.
UNCOUNTED = ("REDUCE_WINDOW", "VAR_HANDLE")
verdicts = 0
for op in sorted(k for k, v in vars(fb.BuiltinOperator).items() if isinstance(v, int)):
    if op in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES") or (only and op not in only):
        continue
    for inputs in range(MOST + 1):
        data = file_of(op, inputs)
        words = prepared(data)
        with open(path, "wb") as file:
            file.write(data)
        code, text = call("run", path, "--signature_def", "serving_default")
        name = f"{op} of {inputs}"
        check(f"{name}: no crash", 0 <= code < 128 and "INTERNAL" not in text, f"{code} {text}")
        # An LSTM of too few inputs lacks its state.
        refused = re.search(r"it has \d+ inputs, (not|and)|and it has \d+ inputs|its state, input \d+, is left out", text) is not None
        if words is None or words.startswith("Didn't find op") or "is not known here" in text or "are not known here" in text:
            continue
        verdicts += 1
        if words == "" and op not in UNCOUNTED:
            check(f"{name}: taken", not refused, text)
        elif COUNTS.search(words):
            # A subgraph that it calls is looked for first.
            check(f"{name}: refused", refused or "subgraphs do not recur" in text, f"{words}\n{text}")
print(f"{verdicts} verdicts of LiteRT")
check("verdicts", only or verdicts > 700, str(verdicts))
finish()
