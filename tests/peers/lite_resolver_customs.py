#!/usr/bin/env python3
"""Custom operators that TensorFlow Lite's own resolver brings, in LiteRT and in smelt: lite_resolver_customs.py SMELT [SUBSTRING of names]

TFLite_Detection_PostProcess, AudioSpectrogram, Mfcc and NumericVerify over drawn sizes and options, each answer the same number: but those of a spectrogram, whose
transform adds in another order (in double: a step of float, or 1e-12 of the largest number). What LiteRT refuses smelt refuses. Where boxes are suppressed together,
LiteRT leaves rows behind the last detection as memory had them; smelt has zeros there. LiteRT runs classes on one thread here: with more, the order of equal scores of
different classes is not defined there."""
import sys

import numpy as np
import tensorflow as tf
from flatbuffers import flexbuffers

from checks import call, check, finish
from lite_builder import Lite
from lite_checks import difference, litert, smelt, work

only = sys.argv[2] if len(sys.argv) > 2 else ""
random = np.random.default_rng(29)
refused = 0


def answers(name, data, inputs, fails=None):
    """Both answers, or None where LiteRT refuses the file, as smelt must. `fails`: whether it has to."""
    global refused
    want, got = litert(data, inputs), smelt(name, data, inputs)
    if fails is not None:
        check(f"{name} in LiteRT", isinstance(want, str) == fails, want)
    if isinstance(want, str):
        refused += 1
        check(name, isinstance(got, str), f"LiteRT says {want}, smelt {got}")
        return None
    if isinstance(got, str):
        check(name, False, got)
        return None
    return want, got


def custom(code, inputs, outputs, options):
    """A file of one operator; `inputs`: (value, quantization, constant), `outputs`: shapes. The file and what it is fed."""
    m = Lite()
    given, fed = [], {}
    for value, kw, constant in inputs:
        if constant:
            given.append(m.const(value, **kw))
        else:
            fed[f"x{len(fed)}"] = value
            given.append(m.input(value.shape, value.dtype.name, **kw))
    made = [m.tensor(s, "float32") for s in outputs]
    m.op("CUSTOM", given, made, custom=code, custom_options=flexbuffers.Dumps(options) if options is not None else b"")
    return m.bytes(made), fed


# ---- detections

def detector(boxes, classes, background, scores="float32", encodings="float32", coarse=False, more=0, negative=False):
    """Encodings, predictions and anchors: (value, quantization, constant) of each."""
    where = random.normal(size=(1, boxes, 4 + more)) * 2
    at = np.concatenate([random.uniform(0, 1, (boxes, 2)), random.uniform(0.05, 0.6, (boxes, 2))], 1)
    if negative:
        at[boxes // 2, 2] = -0.2
    p = random.uniform(0, 1, (1, boxes, classes + background))
    if coarse:
        p = np.round(p * 8) / 8
    out = []
    for value, dtype, scale, zero, constant in ((where, encodings, 0.05, 120, False), (p, scores, 1 / 256, 0, False), (at, encodings, 1 / 200, 3, True)):
        if dtype == "float32":
            out.append((value.astype(np.float32), {}, constant))
        else:
            info = np.iinfo(dtype)
            zero += info.min
            out.append((np.clip(np.round(value / scale) + zero, info.min, info.max).astype(dtype), {"scale": scale, "zero": zero}, constant))
    return out


def options(classes, most=10, labels=1, regular=None, each=None, **more):
    o = {"max_detections": most, "max_classes_per_detection": labels, "num_classes": classes, "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5, "y_scale": 10.0,
         "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, **more}
    if regular is not None:
        o["use_regular_nms"] = regular
    if each is not None:
        o["detections_per_class"] = each
    return {k: v for k, v in o.items() if v is not None}


def detect(name, inputs, o, fails=None):
    if only not in name:
        return
    most, labels = int(o["max_detections"]), int(o["max_classes_per_detection"])
    rows = max(most * labels, 0)
    data, fed = custom("TFLite_Detection_PostProcess", inputs, [[1, rows, 4], [1, rows], [1, rows], [1]], o)
    both = answers(name, data, fed, fails)
    if both is None:
        return
    want, got = both
    count = int(want["y3"][0])
    written = np.zeros(rows, bool)
    if o.get("use_regular_nms"):
        written[:most] = True
    else:
        for k in range(count):
            written[k * labels:k * labels + min(labels, o["num_classes"])] = True
    for k in ("y0", "y1", "y2"):
        want[k] = want[k].copy()
        want[k][0, ~written] = 0
    why = difference(got, want, 0, 0)
    check(name, not why, why)


for boxes, classes in ((1, 1), (2, 3), (5, 1), (37, 2), (100, 7), (300, 20), (1917, 90)):
    for regular in None, False, True, 1:
        for _ in range(2 if boxes > 1000 else 4):
            n = int(random.integers(1 << 30))
            labels, most, each = int(random.choice([1, 1, 2, 3, 5])), int(random.choice([1, 3, 10, 100])), random.choice([None, 1, 4, 100])
            scores, encodings = (str(random.choice(["float32", "uint8"])) for _ in range(2))
            o = options(classes, most, labels, regular, None if each is None else int(each), nms_score_threshold=float(random.choice([1e-8, 0.3, 0.8])),
                        nms_iou_threshold=float(random.choice([0.1, 0.5, 0.6, 1.0])), y_scale=float(random.uniform(1, 12)), w_scale=float(random.uniform(1, 12)))
            inputs = detector(boxes, classes, int(random.integers(2)), scores, encodings, coarse=bool(random.integers(2)), more=int(random.choice([0, 0, 2])))
            detect(f"detect_{boxes}_{classes}_{regular}_{n}", inputs, o)
# Where most scores are the same.
for regular in False, True:
    for labels in 1, 2, 4, 9:
        for dtype in "float32", "uint8":
            inputs = detector(60, 9, 1, dtype)
            inputs[1] = (np.where(inputs[1][0] > np.median(inputs[1][0]), 0.75 if dtype == "float32" else 200, 0.5 if dtype == "float32" else 100).astype(dtype), *inputs[1][1:])
            detect(f"equal_{regular}_{labels}_{dtype}", inputs, options(9, 20, labels, regular))
# Options of other kinds than a converter writes, and those that it may leave out.
plain = detector(20, 3, 1)
detect("kinds", plain, options(3.0, 10.9, True, 2, 7.0, y_scale=10, nms_iou_threshold=1), False)
detect("no_score_threshold", plain, options(3, nms_score_threshold=None), False)
detect("nothing", plain, options(3, nms_score_threshold=2.0), False)
detect("no_detections", plain, options(3, 0), False)
odd = detector(20, 3, 1)
odd[1][0][0, ::3] = np.nan
odd[1][0][0, 1::3] = np.inf
odd[0][0][0, 5] = 1000
detect("odd_numbers", odd, options(3, 20), False)
detect("odd_numbers_regular", odd, options(3, 20, 1, True), False)
for name, change in {"iou_0": {"nms_iou_threshold": 0.0}, "iou_2": {"nms_iou_threshold": 2.0}, "no_labels": {"labels": 0}, "other_classes": {"classes": 2}, "too_many_classes": {"classes": 5},
                     "below": {"most": -1}, "none_of_a_class": {"regular": True, "each": 0}, "none": {"regular": True, "most": 0}}.items():
    detect(f"bad_{name}", plain, options(**{"classes": 3, **change}), True)
detect("bad_box", detector(20, 3, 1, negative=True), options(3), True)
detect("bad_type", detector(20, 3, 1, "int8"), options(3), True)
detect("bad_anchors", [*plain[:2], detector(20, 3, 1, encodings="uint8")[2]], options(3), True)
detect("bad_batch", [(np.concatenate([x[0]] * 2), *x[1:]) for x in plain[:2]] + plain[2:], options(3), True)

# Free sizes: the same file for more boxes.
m = Lite()
x = [m.input(s, "float32", signature=[1, -1, s[2]]) for s in ([1, 1, 4], [1, 1, 4])] + [m.input([1, 4], "float32", signature=[-1, 4])]
y = [m.tensor(s, "float32") for s in ([1, 10, 4], [1, 10], [1, 10], [1])]
m.op("CUSTOM", x, y, custom="TFLite_Detection_PostProcess", custom_options=flexbuffers.Dumps(options(3, regular=True)))
data = m.bytes(y)
for boxes in 1, 7, 40:
    if only in f"free_{boxes}":
        inputs = {f"x{i}": v[0] for i, v in enumerate(detector(boxes, 3, 1))}
        why = difference(smelt(f"free_{boxes}", data, inputs), litert(data, inputs), 0, 0)
        check(f"free_{boxes}", not why, why)

# A function that smelt lite makes the operator, between builtins: smelt and LiteRT run its file.
if only in "exported":
    attrs = {"max_detections": "i: 6", "max_classes_per_detection": "i: 1", "num_classes": "i: 3", "nms_score_threshold": "f: 0.3", "nms_iou_threshold": "f: 0.4", "y_scale": "f: 10",
             "x_scale": "f: 10", "h_scale": "f: 5", "w_scale": "f: 5", "use_regular_nms": "b: true"}
    text = 'name: "TFLite_Detection_PostProcess" ' + " ".join(f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items())
    post = tf.function(lambda b, s, a: (tf.zeros([1, 6, 4]), tf.zeros([1, 6]), tf.zeros([1, 6]), tf.zeros([1])), experimental_implements=text)
    module = tf.Module()
    module.anchors = tf.Variable(detector(50, 3, 1)[2][0])
    module.f = tf.function(lambda b, s: dict(zip(("boxes", "classes", "scores", "count"), post(b * 2.0, tf.sigmoid(s), module.anchors))),
                           input_signature=[tf.TensorSpec([1, 50, 4], name="b"), tf.TensorSpec([1, 50, 4], name="s")])
    tf.saved_model.save(module, str(work / "post"), signatures={"serving_default": module.f})
    code, said = call("lite", work / "post", work / "post.tflite")
    check("exported", code == 0 and "TFLite_Detection_PostProcess" in said, said)
    for _ in range(3):
        # Sigmoids of smelt and LiteRT may be a step apart: far from the threshold.
        fed = {"b": random.normal(size=(1, 50, 4)).astype(np.float32), "s": random.choice([-3.0, 2.0], (1, 50, 4)).astype(np.float32) + np.linspace(0, 0.5, 200, dtype=np.float32).reshape(1, 50, 4)}
        data = (work / "post.tflite").read_bytes()
        want = litert(data, fed)
        check("exported in LiteRT", not isinstance(want, str) and want["count"][0] > 2, want)
        why = difference(smelt("exported", data, fed), want, 0, 1e-6)
        check("exported: answers", not why, why)

# ---- sound

steps_off = {}


def near(name, got, want, floor):
    """Equal, a step of float apart, or both beside the largest number nothing."""
    if got.shape != want.shape:
        return check(name, False, f"{got.shape}, wanted {want.shape}")
    kind = name.split("_")[0]
    steps_off[kind] = steps_off.get(kind, 0) + int((got != want).sum())
    off = np.abs(got.astype(np.float64) - want)
    allowed = np.maximum(np.spacing(np.abs(want)), floor * np.abs(want).max(initial=0)) if floor is not None else 0
    check(name, (off <= allowed).all(), f"{off.max(initial=0)}: {got.ravel()[:6]}, wanted {want.ravel()[:6]}")


def spectrogram(name, samples, channels, o, fails=None):
    if only not in name:
        return
    x = (random.normal(size=(samples, channels)) * random.choice([1e-3, 1.0, 30.0])).astype(np.float32)
    both = answers(name, *custom("AudioSpectrogram", [(x, {}, False)], [[channels, 1, 1]], o), fails)
    if both is not None:
        near(name, both[1]["y0"], both[0]["y0"], 1e-12 if o.get("magnitude_squared") else 1e-7)


for window in (2, 3, 4, 7, 100, 256, 400, 480, 512, 640, 1000):
    for squared in True, False:
        stride = int(random.integers(1, window + 20))
        spectrogram(f"spectrogram_{window}_{squared}", window + int(random.integers(0, 4)) * stride + int(random.integers(stride)), int(random.integers(1, 4)),
                    {"window_size": window, "stride": stride, "magnitude_squared": squared}, False)
spectrogram("spectrogram_short", 7, 2, {"window_size": 8, "stride": 3, "magnitude_squared": True}, False)
spectrogram("spectrogram_plain", 50, 1, {"window_size": 16, "stride": 8}, False)
for name, o in {"window": {"window_size": 1, "stride": 2}, "stride": {"window_size": 4, "stride": 0}, "no_stride": {"window_size": 4}}.items():
    spectrogram(f"bad_spectrogram_{name}", 50, 1, o, True)


def mfcc(name, shape, rate, o, fails=None):
    if only not in name:
        return
    x = (random.normal(size=shape) ** 2 * random.choice([1e-12, 1.0, 30.0])).astype(np.float32)
    for constant in True, False:
        rates = np.full([] if constant else [1], rate, np.int32)
        both = answers(f"{name}_{constant}", *custom("Mfcc", [(x, {}, False), (rates, {}, constant)], [[shape[0], shape[1], o.get("dct_coefficient_count", 0)]], o), fails)
        if both is not None:
            near(name, both[1]["y0"], both[0]["y0"], None)


def bands(high=4000.0, low=20.0, count=40, coefficients=13, **more):
    o = {"upper_frequency_limit": high, "lower_frequency_limit": low, "filterbank_channel_count": count, "dct_coefficient_count": coefficients, **more}
    return {k: v for k, v in o.items() if v is not None}


for n in range(16):
    count = int(random.integers(1, 60))
    mfcc(f"mfcc_{n}", (int(random.integers(1, 3)), int(random.integers(1, 5)), int(random.choice([2, 9, 65, 257, 513]))), int(random.choice([4000, 8000, 16000, 44100])),
         bands(float(random.uniform(500, 9000)), float(random.uniform(0, 400)), count, int(random.integers(1, count + 1))), False)
mfcc("mfcc_integers", (1, 2, 65), 16000, bands(3000, 100), False)
mfcc("mfcc_no_least", (1, 2, 65), 16000, bands(low=None), False)
for name, o in {"limits": bands(20.0, 20.5), "coefficients": bands(count=5, coefficients=6), "no_bands": bands(count=None), "negative": bands(low=-5.0)}.items():
    mfcc(f"bad_mfcc_{name}", (1, 2, 65), 16000, o, True)
mfcc("bad_mfcc_rate", (1, 2, 65), 0, bands(), True)
mfcc("bad_mfcc_length", (1, 2, 1), 16000, bands(), True)

# As models for spoken words begin.
if only in "words":
    m = Lite()
    x, rate = m.input([16000, 1], "float32"), m.const(np.int32([16000]))
    s = m.op("CUSTOM", [x], [m.tensor([1, 98, 257], "float32")], custom="AudioSpectrogram", custom_options=flexbuffers.Dumps({"window_size": 480, "stride": 160, "magnitude_squared": True}))
    y = m.op("CUSTOM", [s, rate], [m.tensor([1, 98, 40], "float32")], custom="Mfcc", custom_options=flexbuffers.Dumps(bands(coefficients=40)))
    both = answers("words", m.bytes([y]), {"x0": (random.normal(size=(16000, 1)) / 10).astype(np.float32)}, False)
    if both is not None:
        check("words", np.allclose(both[0]["y0"], both[1]["y0"], rtol=1e-6, atol=1e-5), np.abs(both[0]["y0"] - both[1]["y0"]).max())

# ---- how far quantized numbers are off

def verify(name, dtype, o, off=0.0, scales=1, fails=None, scale=0.05):
    if only not in name:
        return
    kw, shape = {}, (3, 4)
    if dtype == "float16":
        q = real = random.normal(size=shape).astype(np.float16)
    else:
        info = np.iinfo(dtype)
        zero = 0 if dtype == "int16" or scales > 1 else int(random.integers(info.min // 2, info.max // 2))
        scale = np.full(scales, scale) * np.arange(1, scales + 1)
        q = random.integers(info.min, info.max + 1, shape).astype(dtype)
        kw = {"scale": scale, "zero": zero, "dim": 1}
        real = (q.astype(np.float64) - zero) * (scale if scales > 1 else scale[0])
    reference = (real + off * random.choice([-1, 1], shape)).astype(np.float32)
    for constant in True, False:
        both = answers(f"{name}_{constant}", *custom("NumericVerify", [(q, kw, constant), (reference, {}, False)], [shape], o), fails)
        if both is not None:
            want = both[0]["y0"]
            if dtype in ("int8", "uint8") and scales == 1:
                # LiteRT scales eight of these at a time as q * scale - zero * scale, which is rounded once more than (q - zero) * scale.
                step, point, numbers = np.float32(scale[0]), np.float32(zero), q.astype(np.float32)
                want = (numbers - point) * step - reference
                eight = (numbers * step - point * step - reference).ravel()[:8]
                check(f"{name} in LiteRT", np.array_equal(both[0]["y0"].ravel(), np.append(eight, want.ravel()[8:])), both[0]["y0"])
            near(name, both[1]["y0"], want, None)


for dtype in "int8", "uint8", "int16", "float16":
    verify(f"verify_{dtype}", dtype, {"tolerance": 5.0, "log_if_failed": False}, 0.3, fails=False)
    verify(f"verify_small_{dtype}", dtype, {"tolerance": 0.05, "log_if_failed": True}, 0.3, fails=False)
    verify(f"verify_none_{dtype}", dtype, {}, 0.3, fails=False)
    if dtype != "float16":
        verify(f"verify_near_{dtype}", dtype, {"tolerance": 5.0, "log_if_failed": True}, 0.2, fails=False)
    verify(f"bad_verify_{dtype}", dtype, {"tolerance": 5.0, "log_if_failed": True}, 0.3, fails=True)
verify("verify_channels", "int8", {"tolerance": 5.0, "log_if_failed": False}, 0.2, 4, fails=False)
verify("bad_verify_channels", "int8", {"tolerance": 5.0, "log_if_failed": True}, 0.2, 4, fails=True)
verify("bad_verify_type", "int32", {"tolerance": 5.0, "log_if_failed": False}, 0.2, fails=True)
# It is there for its error, whether or not anybody asks for what it computes.
if only in "bad_verify_unread":
    m = Lite()
    x, reference = m.input([4], "int8", scale=0.5, zero=0), m.input([4], "float32")
    m.op("CUSTOM", [x, reference], [m.tensor([4], "float32")], custom="NumericVerify", custom_options=flexbuffers.Dumps({"tolerance": 0.5, "log_if_failed": True}))
    y = m.op("NEG", [reference], [m.tensor([4], "float32")], "NegOptions")
    data, x = m.bytes([y]), np.int8([1, 2, 3, 4])
    answers("bad_verify_unread", data, {"x0": x, "x1": np.float32([0.5, 1, 1, 2])}, True)
    answers("verify_unread", data, {"x0": x, "x1": np.float32([0.5, 1, 1.5, 2])}, False)

print("numbers that are not the same:", steps_off, "refused by both:", refused)
finish()
