#!/usr/bin/env python3
"""Files whose constants lie behind the flatbuffer, as in those of 2 GiB and more, in LiteRT and in smelt: lite_outside_test.py SMELT

smelt exports each model twice, with the constants inside and outside: LiteRT must answer the same of both, to the bit, and smelt what LiteRT answers. A file
that TensorFlow's converter writes with its constants outside is run by smelt, and has the same form."""
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from checks import call, check, finish
from lite_checks import difference, litert, smelt

tf.get_logger().setLevel("ERROR")
work = tempfile.mkdtemp(prefix="smelt_lite_outside_")
rng = np.random.default_rng(11)


def constant(*shape):
    return tf.constant(rng.standard_normal(shape).astype(np.float32))


weights, filters, table = constant(6, 5), constant(3, 3, 2, 4), tf.constant([b"a", b"", b"long text"])
MODELS = {
    "dense": (lambda x: tf.nn.relu(x @ weights + constant(5)), rng.standard_normal([3, 6]).astype(np.float32)),
    "conv": (lambda x: tf.nn.conv2d(x, filters, 1, "SAME"), rng.standard_normal([1, 5, 5, 2]).astype(np.float32)),
    "strings": (lambda x: tf.gather(table, x), np.array([2, 0, 1], np.int32)),
    # An operator that is no builtin: its options lie outside, too.
    "custom": (lambda x: tf.linalg.det(tf.matmul(x, constant(4, 4))), rng.standard_normal([2, 4, 4]).astype(np.float32)),
}


def named(function):
    return tf.function(lambda x: {"y": function(x)})


def form(name, data, outside, aligned=True):
    """Checks where things lie. TensorFlow's writer does not align all that it writes."""
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    stated = [m for m in model.metadata or [] if m.name == b"buffer_location"]
    check(f"{name}: says where buffers lie", len(stated) == (1 if outside else 0), str(len(stated)))
    if outside:
        check(f"{name}: in TensorFlow's words", bytes(model.buffers[stated[0].buffer].data) == b"outside flatbuffers", "")
    held = {t.buffer for g in model.subgraphs for t in g.tensors}
    for i in held:
        b = model.buffers[i]
        inside = b.data is not None and len(b.data) > 0
        check(f"{name}: buffer {i}", not (outside and inside) and (b.offset <= 1 or not aligned or b.offset % 16 == 0), f"{b.offset} {b.size}")
    return [(o.largeCustomOptionsOffset > 1, o.customOptions is not None and len(o.customOptions) > 0) for g in model.subgraphs for o in g.operators]


for name, (function, value) in MODELS.items():
    folder, module = f"{work}/{name}", tf.Module()
    module.f = named(function).get_concrete_function(tf.TensorSpec([None, *value.shape[1:]], value.dtype))
    tf.saved_model.save(module, folder, signatures=module.f)
    custom = ["--allow_custom_ops"] if name == "custom" else []
    files = {}
    for how, flags in {"inside": [], "outside": ["--use_buffer_offset"]}.items():
        code, text = call("lite", folder, f"{folder}/{how}.tflite", *flags, *custom)
        check(f"{name} {how}", code == 0, text)
        with open(f"{folder}/{how}.tflite", "rb") as file:
            files[how] = file.read()
        options = form(f"{name} {how}", files[how], how == "outside")
        if custom:
            check(f"{name} {how}: custom options", any(far != near for far, near in options) and any(far for far, _ in options) == (how == "outside"), str(options))
    if not custom:
        want, got = litert(files["inside"], {"x": value}), litert(files["outside"], {"x": value})
        check(f"{name}: LiteRT", not isinstance(want, str) and difference(got, want, 0, 0) == "", f"{want} {got}")
        wrong = difference(smelt(name, files["outside"], {"x": value}), want, 0, 1e-5)
        check(f"{name}: smelt", wrong == "", wrong)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter._experimental_use_buffer_offset = True
        theirs = converter.convert()
        form(f"{name} TensorFlow's", theirs, True, aligned=False)
        wrong = difference(smelt(name + "_theirs", theirs, {"x": value}), want, 0, 1e-5)
        check(f"{name}: TensorFlow's file", wrong == "", wrong)
    # As many bytes as there are, or it is refused.
    path = f"{folder}/cut.tflite"
    with open(path, "wb") as file:
        file.write(files["outside"][:-1])
    code, text = call("run", path, "--signature_def", "serving_default")
    check(f"{name}: one byte less", code != 0 and "beyond the end of the file" in text, text)
finish()
