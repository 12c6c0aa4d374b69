#!/usr/bin/env python3
"""smelt lite beside TensorFlow's converter where options of TFLiteConverter say how numbers are stored: lite_converter_test.py SMELT

Ranges that are stated and not used, biases of int32 beside int16, products taken apart, sparse weights, integers of version 1, and what is said of each layer: files of both, and what LiteRT answers to them."""
import csv

import lite_pairs
import numpy as np
import tensorflow as tf
from checks import call, check, finish
from lite_pairs import OPS, answers, both, operators, setting, work
from tensorflow.lite.python import schema_py_generated as fb, util

rng = np.random.default_rng(0)
BEST, SETS = [tf.lite.Optimize.DEFAULT], tf.lite.OpsSet


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def spec(*shape):
    return tf.TensorSpec(shape, tf.float32, name="x")


def samples_of(*shape, count=4):
    """(flags, options of the converter) for samples of one input."""
    rows = normal(count, *shape[1:])
    path = work / f"samples_{rng.integers(1 << 40)}.npz"
    np.savez(path, x=rows)
    return ["--representative", path], {"optimizations": BEST, "representative_dataset": lambda: ([r[None]] for r in rows)}, rows


def written(name, pair):
    for who, data in zip(("smelt", "TensorFlow"), pair):
        if isinstance(data, str):
            check(f"{name}: {who} writes it", False, data[:500])
            return False
    return True


def model_of(data):
    return fb.ModelT.InitFromObj(fb.Model.GetRootAs(data, 0))


def code_of(model, o):
    c = model.operatorCodes[o.opcodeIndex]
    return OPS[max(c.builtinCode, c.deprecatedBuiltinCode)]


def named(data):
    """[(operator, version, types of its inputs, types of its results)], of the first subgraph."""
    model = model_of(data)
    g = model.subgraphs[0]
    return [(code_of(model, o), model.operatorCodes[o.opcodeIndex].version, [g.tensors[i].type for i in o.inputs if i >= 0], [g.tensors[i].type for i in o.outputs]) for o in g.operators]


def kinds(data):
    return sorted(op for op, *_ in named(data))


# ---- ranges that are stated, and not used

W, B = normal(8, 3), normal(3)
K = normal(3, 3, 2, 4)


def dense(x):
    return {"y": tf.nn.softmax(tf.nn.relu(tf.matmul(x, W) + B))}


def convolved(x):
    y = tf.nn.conv2d(x, K, 1, "SAME")
    return {"y": tf.reduce_mean(tf.nn.relu6(y), [1, 2]), "z": tf.nn.max_pool2d(tf.sin(y), 2, 2, "SAME")}


def ranges(data):
    """{(operator, place of result) or 'input': (min, max)}, what is stated of constants."""
    model = model_of(data)
    g = model.subgraphs[0]

    def stated(i):
        q = g.tensors[i].quantization
        return None if q is None or q.min is None or len(q.min) == 0 else (float(q.min[0]), float(q.max[0]))
    out = {("input", k): stated(i) for k, i in enumerate(g.inputs)}
    for n, o in enumerate(g.operators):
        out.update({(code_of(model, o), k): stated(i) for k, i in enumerate(o.outputs)})
    constants = [i for i, t in enumerate(g.tensors) if model.buffers[t.buffer].data is not None and len(model.buffers[t.buffer].data)]
    return out, [stated(i) for i in constants]


for function, shape in ((dense, (1, 8)), (convolved, (1, 4, 4, 2))):
    for mode, sets in (("int8", {}), ("int16x8", {"supported_ops": [SETS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]})):
        name = f"calibrated {function.__name__} {mode}"
        data, options, rows = samples_of(*shape)
        pair = both(f"calibrated_{function.__name__}_{mode}", function, spec(*shape), ["--quantize", mode, "--calibrate_only", *data], setting(**options, **sets, _experimental_calibrate_only=True))
        if not written(name, pair):
            continue
        (mine, ours), (his, theirs) = map(ranges, pair)
        check(f"{name}: the same tensors have ranges", {k: v is None for k, v in mine.items()} == {k: v is None for k, v in his.items()} and set(ours) <= {None}, (mine, his, ours))
        check(f"{name}: the same ranges", all(v is None or np.allclose(v, his.get(k) or np.nan, rtol=1e-4, atol=1e-6) for k, v in mine.items()), (mine, his))
        modes = [util.get_conversion_metadata(d).options.modelOptimizationModes.tolist() for d in pair]
        check(f"{name}: what it says of itself", modes[0] == modes[1], modes)
        a, b = (answers(d, rows[0][None]) for d in pair)
        check(f"{name}: answers", sorted(x.shape for x in a) == sorted(x.shape for x in b) and all(any(x.shape == y.shape and np.allclose(x, y, atol=1e-5) for y in b) for x in a), (a, b))

# ---- biases of int32 beside int16

D, T, WIDE = normal(3, 3, 2, 1), normal(3, 3, 4, 2), np.float32([1e4, 2, 3])
INT16 = {"supported_ops": [SETS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]}
for name, function, shape in (("conv", lambda x: {"y": tf.nn.relu(tf.nn.conv2d(x, K, 1, "SAME") + np.float32([1, 2, 3, 4]))}, (1, 5, 5, 2)),
                              ("transpose_conv", lambda x: {"y": tf.nn.conv2d_transpose(x, T, [1, 10, 10, 4], 2, "SAME") + np.float32([1, 2, 3, 4])}, (1, 5, 5, 2)),
                              ("dense", lambda x: {"y": tf.matmul(x, W) + B}, (1, 8)), ("wide", lambda x: {"y": tf.matmul(x * np.float32(1e-4), W) + WIDE}, (1, 8)),
                              ("depthwise", lambda x: {"y": tf.nn.depthwise_conv2d(x, D, [1, 1, 1, 1], "SAME") + np.float32([1, 2])}, (1, 5, 5, 2))):
    for bias in "int32", "int64":
        data, options, rows = samples_of(*shape)
        pair = both(f"bias_{name}_{bias}", function, spec(*shape), ["--quantize", "int16x8", "--full_integer_quantization_bias_type", bias, *data],
                    setting(**options, **INT16, _experimental_full_integer_quantization_bias_type=tf.as_dtype(bias)))
        if not written(f"bias {name} {bias}", pair):
            continue
        types = [[t for _, _, inputs, _ in named(d) for t in inputs if t in (fb.TensorType.INT32, fb.TensorType.INT64)] for d in pair]
        if name == "depthwise" and bias == "int32":
            check("bias depthwise int32: what kernels take", types[0] == [fb.TensorType.INT64], types)
            pair = [pair[0], both("bias_depthwise_plain", function, spec(*shape), [], setting(**options, **INT16))[1]]
        else:
            check(f"bias {name} {bias}: types", types[0] == types[1], types)
        (a,), (b,) = (answers(d, rows[0][None]) for d in pair)
        check(f"bias {name} {bias}: answers", np.allclose(a, b, rtol=2e-4, atol=2e-3 * np.abs(b).max()), np.abs(a - b).max())
        code, out = call("run", work / f"bias_{name}_{bias}.tflite", "--signature_def", "serving_default", "--input_exprs", f"x=np.ones({shape})")
        check(f"bias {name} {bias}: smelt runs it", code == 0, out)

# ---- products taken apart

TWO = normal(2, 4, 5)
for name, function, specs in (
        ("plain", lambda x, y: {"z": tf.matmul(x, y)}, [(2, 3, 4), (2, 4, 5)]), ("constant", lambda x: {"z": tf.matmul(x, TWO)}, [(2, 3, 4)]),
        ("adjoint", lambda x, y: {"z": tf.matmul(x, y, adjoint_b=True)}, [(2, 3, 4), (2, 5, 4)]), ("both_adjoint", lambda x, y: {"z": tf.matmul(x, y, adjoint_a=True, adjoint_b=True)}, [(2, 4, 3), (2, 5, 4)]),
        ("broadcast", lambda x, y: {"z": tf.matmul(x, y)}, [(1, 2, 3, 4), (3, 1, 4, 5)]), ("shared", lambda x, y: {"z": tf.matmul(x, y)}, [(2, 3, 4), (4, 5)]), ("one", lambda x, y: {"z": tf.matmul(x, y)}, [(1, 3, 4), (1, 4, 5)]),
        ("free", lambda x, y: {"z": tf.matmul(x, y)}, [(None, 3, 4), (None, 4, 5)])):
    specs = [tf.TensorSpec(s, tf.float32, name=n) for s, n in zip(specs, "xy")]
    pair = both(f"unfold_{name}", function, specs, ["--unfold_batchmatmul"], setting(unfold_batchmatmul=True))
    if not written(f"unfold {name}", pair):
        continue
    left_out = lambda data: [k for k in kinds(data) if k not in ("RESHAPE", "TRANSPOSE")]  # constants are turned before
    check(f"unfold {name}: operators", left_out(pair[0]) == left_out(pair[1]), (kinds(pair[0]), kinds(pair[1])))
    values = [normal(*(2 if d is None else d for d in s.shape)) for s in specs]
    if name != "free":
        (a,), (b,) = (answers(d, *values) for d in pair)
        check(f"unfold {name}: answers", a.shape == b.shape and np.allclose(a, b, atol=1e-5) and np.allclose(a, function(*values)["z"], atol=1e-5), (a, b))

# ---- sparse weights


def pruned(shape, part, block=None):
    w = normal(*shape)
    small = [s // b for s, b in zip(shape, block or [1] * len(shape))]
    w[np.kron(rng.random(small) < part, np.ones(block or [1] * len(shape))) > 0] = 0
    return w


def sparsity(data):
    """[(type, shape, order, blocks, [(format, size, segments, indices)], stored numbers)]"""
    model = model_of(data)
    out = []
    for t in model.subgraphs[0].tensors:
        if t.sparsity is None:
            continue
        s = t.sparsity
        rows = [(d.format, d.denseSize, d.arraySegmentsType, None if d.arraySegments is None else np.asarray(d.arraySegments.values).tolist(), d.arrayIndicesType,
                 None if d.arrayIndices is None else np.asarray(d.arrayIndices.values).tolist()) for d in s.dimMetadata]
        out.append((t.type, np.asarray(t.shape).tolist(), np.asarray(s.traversalOrder).tolist(), np.asarray(s.blockMap).tolist(), rows, bytes(model.buffers[t.buffer].data)))
    return out


def sparse_metadata(data):
    return sorted(m for m in np.asarray(util.get_conversion_metadata(data).options.modelOptimizationModes).tolist())


SPARSE = [tf.lite.Optimize.EXPERIMENTAL_SPARSITY]
CONV, DEPTH, BACK = pruned((3, 3, 8, 16), .7), pruned((3, 3, 16, 1), .7), pruned((3, 3, 8, 4), .7)
for name, function, shape in (
        [(f"dense_{part}", (lambda w: lambda x: {"y": tf.matmul(x, w)})(pruned((64, 64), part)), (1, 64)) for part in (.0, .28, .32, .8)]
        + [("four", (lambda w: lambda x: {"y": tf.matmul(x, w)})(pruned((64, 64), .75, (4, 1))), (1, 64)), ("sixteen", (lambda w: lambda x: {"y": tf.matmul(x, w)})(pruned((64, 64), .75, (16, 1))), (1, 64)),
           ("other_way", (lambda w: lambda x: {"y": tf.matmul(x, w)})(pruned((64, 64), .75, (1, 4))), (1, 64)), ("odd", (lambda w: lambda x: {"y": tf.matmul(x, w)})(pruned((63, 300), .8)), (1, 63)),
           ("twice", (lambda w: lambda x: {"y": tf.matmul(x, w), "z": tf.matmul(tf.nn.relu(x), w)})(pruned((64, 64), .75, (4, 1))), (1, 64)),
           ("conv", lambda x: {"y": tf.nn.conv2d(x, CONV, 1, "SAME")}, (1, 5, 5, 8)), ("depthwise", lambda x: {"y": tf.nn.depthwise_conv2d(x, DEPTH, [1, 1, 1, 1], "SAME")}, (1, 5, 5, 16)),
           ("transpose_conv", lambda x: {"y": tf.nn.conv2d_transpose(x, BACK, [1, 10, 10, 8], 2, "SAME")}, (1, 5, 5, 4))]):
    data, options, rows = samples_of(*shape)
    for mode, flags, converter in (("float", [], {"optimizations": SPARSE}), ("dynamic", ["--quantize", "dynamic"], {"optimizations": SPARSE + BEST}),
                                   ("int8", ["--quantize", "int8", *data], {**options, "optimizations": SPARSE + BEST}),
                                   ("float16", ["--quantize", "float16"], {"optimizations": SPARSE + BEST, "supported_types": [tf.float16]})):
        pair = both(f"sparse_{name}_{mode}", function, spec(*shape), ["--optimizations", "EXPERIMENTAL_SPARSITY", *flags], setting(**converter))
        label = f"sparse {name} {mode}"
        if not written(label, pair):
            continue
        plain = call("lite", work / f"sparse_{name}_{mode}", work / "plain.tflite", *flags)
        a, b = answers(pair[0], rows[0][None]), answers((work / "plain.tflite").read_bytes(), rows[0][None])
        # Kernels of integers for blocks round once, others twice.
        near = {"float": 1e-4, "int8": 0.02 * np.abs(b[0]).max()}.get(mode, 2e-2)
        check(f"{label}: answers", all(np.allclose(x, y, atol=near) for x, y in zip(a, b)), [np.abs(x - y).max() for x, y in zip(a, b)])
        code, out = call("run", work / f"sparse_{name}_{mode}.tflite", "--signature_def", "serving_default", "--input_exprs", f"x=np.ones({shape})")
        check(f"{label}: smelt runs it", code == 0, out)
        if mode == "float16":  # a DENSIFY stands before each DEQUANTIZE
            check(f"{label}: tensors", [s[:2] for s in sparsity(pair[0])] == [s[:2] for s in sparsity(pair[1])] and kinds(pair[0]).count("DENSIFY") == len(sparsity(pair[0])), kinds(pair[0]))
            continue
        check(f"{label}: operators", sorted(o[:2] for o in named(pair[0])) == sorted(o[:2] for o in named(pair[1])), (named(pair[0]), named(pair[1])))
        mine, his = sparsity(pair[0]), sparsity(pair[1])
        check(f"{label}: tensors", [s[:4] for s in mine] == [s[:4] for s in his], ([s[:4] for s in mine], [s[:4] for s in his]))
        if mode == "float":
            check(f"{label}: indices and numbers", [s[4:] for s in mine] == [s[4:] for s in his], "")
        check(f"{label}: what it says of itself", sparse_metadata(pair[0]) == sparse_metadata(pair[1]), (sparse_metadata(pair[0]), sparse_metadata(pair[1])))

# ---- integers of version 1

fake = tf.quantization.fake_quant_with_min_max_args
SQUARE, EACH, FOUR = normal(3, 3, 4, 4), normal(3, 3, 4, 1), np.float32([1, 2, 3, 4])
IMAGE = (1, 4, 4, 4)
ONE = {  # functions of an image
    "conv": lambda x: tf.nn.conv2d(x, SQUARE, 1, "SAME") + FOUR, "depthwise": lambda x: tf.nn.depthwise_conv2d(x, EACH, [1, 1, 1, 1], "SAME") + FOUR,
    "dilated": lambda x: tf.nn.depthwise_conv2d(x, EACH, [1, 1, 1, 1], "SAME", dilations=[2, 2]) + FOUR, "transpose_conv": lambda x: tf.nn.conv2d_transpose(x, SQUARE, [1, 8, 8, 4], 2, "SAME") + FOUR,
    "add": lambda x: x + FOUR, "sub": lambda x: x - FOUR, "mul": lambda x: x * FOUR, "mean": lambda x: tf.reduce_mean(x, [1, 2]), "sum": lambda x: tf.reduce_sum(x, [1, 2]), "leaky_relu": lambda x: tf.nn.leaky_relu(x, .1),
    "hard_swish": lambda x: x * tf.nn.relu6(x + 3) * (1 / 6.), "gelu": lambda x: tf.nn.gelu(x, True), "relu": tf.nn.relu, "relu6": tf.nn.relu6, "sigmoid": tf.sigmoid, "softmax": tf.nn.softmax, "tanh": tf.tanh,
    "l2": lambda x: tf.math.l2_normalize(x, 3), "log_softmax": tf.nn.log_softmax, "average": lambda x: tf.nn.avg_pool2d(x, 2, 2, "SAME"), "max": lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
    "concat": lambda x: tf.concat([x, tf.nn.relu(x)], 3), "reshape": lambda x: tf.reshape(x, [4, 16]), "bilinear": lambda x: tf.image.resize(x, [8, 8]), "nearest": lambda x: tf.image.resize(x, [8, 8], "nearest"),
    "to_depth": lambda x: tf.nn.space_to_depth(x, 2), "from_depth": lambda x: tf.nn.depth_to_space(x, 2), "to_batch": lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), "pad": lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]),
    "padv2": lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=1.), "mirror": lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), "gather": lambda x: tf.gather(x, [0, 2], axis=1),
    "transpose": lambda x: tf.transpose(x, [0, 2, 1, 3]), "maximum": lambda x: tf.maximum(x, tf.nn.relu6(x)), "minimum": lambda x: tf.minimum(x, tf.nn.relu6(x)), "slice": lambda x: tf.slice(x, [0, 0, 0, 0], [1, 2, 2, 2]),
    "strided": lambda x: x[:, ::2, :, ::2], "unpack": lambda x: tf.unstack(x, axis=1)[1], "pack": lambda x: tf.stack([x, tf.transpose(x, [0, 2, 1, 3])], 1), "tile": lambda x: tf.tile(x, [1, 1, 2, 1]), "reverse": lambda x: tf.reverse(x, [1]),
    "arg_max": lambda x: tf.argmax(x, 3), "topk": lambda x: tf.math.top_k(x, 2)[0], "less": lambda x: x < FOUR, "reduce_max": lambda x: tf.reduce_max(x, [1, 2]), "select": lambda x: tf.where(x > 0, x, tf.nn.relu6(x)),
    # No kernel takes uint8, or TensorFlow's converter leaves it float.
    "abs": tf.abs, "exp": tf.exp, "rsqrt": lambda x: tf.math.rsqrt(tf.nn.relu6(x) + 1), "squared_difference": lambda x: tf.math.squared_difference(x, FOUR), "products": lambda x: tf.matmul(x, x), "elu": tf.nn.elu, "sin": tf.sin, "square": tf.square}
FLOATS = {"abs", "exp", "rsqrt", "squared_difference", "products", "elu", "sin", "square"}
# TensorFlow's converter gives a REVERSE_V2 a range of its own, which LiteRT's kernel takes for that of the input, leaves an UNPACK float that one result of is read, and ELU of int8 (whose result has a range then), and has the older SELECT.
OTHER = {"reverse", "unpack", "select", "elu"}


def stats(mean, deviation):
    return lambda c: setattr(c, "quantized_input_stats", {n: (mean, deviation) for n in c.get_input_arrays()})


def version_one(name, function, shape, kind, mean, deviation, more=(), **options):
    flags = ["--inference_type", {"uint8": "QUANTIZED_UINT8", "int8": "INT8"}[kind], "--mean_values", mean, "--std_dev_values", deviation, *more]
    return both(name, lambda x: {"y": function(x)}, spec(*shape), flags, lambda c: (stats(mean, deviation)(c), setting(inference_type=tf.as_dtype(kind), **options)(c)), version=1)


def real(data, value):
    """The first answer as numbers."""
    model = model_of(data)
    (answer,) = answers(data, value)
    q = model.subgraphs[0].tensors[model.subgraphs[0].outputs[0]].quantization
    return answer if q is None or q.scale is None or answer.dtype == np.float32 else (answer.astype(np.float64) - q.zeroPoint[0]) * q.scale[0]


def version_one_equal(label, pair, value, exact=True, function=None):
    if not exact:
        a, b = real(pair[0], value), function(value).numpy() if pair[1] is None else real(pair[1], value)
        check(f"{label}: answers as numbers", np.allclose(a, b, atol=0.06), (a, b))
        return
    (mine, inputs), (his, theirs) = operators(pair[0]), operators(pair[1])
    check(f"{label}: operators and versions", [o[:2] for o in named(pair[0])] == [o[:2] for o in named(pair[1])], (named(pair[0]), named(pair[1])))
    check(f"{label}: inputs", len(inputs) == 1 and lite_pairs.same(inputs[0], theirs[0]), (inputs, theirs))
    if [o[0] for o in mine[0]] == [o[0] for o in his[0]]:
        for a, b in zip(mine[0], his[0]):
            check(f"{label}: tensors of {a[0]}", len(a[1]) == len(b[1]) and all(lite_pairs.same(s, t) for s, t in zip(a[1] + a[2], b[1] + b[2])), f"{a} beside {b}"[:1500])
    (a,), (b,) = (answers(d, value) for d in pair)
    near = (a == b).mean() > .9 if a.dtype == bool else np.abs(a.astype(np.float64) - b).max() <= (1 if a.dtype != np.float32 else 0.05 * max(1, np.abs(b).max()))
    check(f"{label}: answers", a.dtype == b.dtype and a.shape == b.shape and near, (a, b))


for kind, mean in (("uint8", 128), ("int8", 0)):
    for name, function in ONE.items():
        pair = version_one(f"{kind}_{name}", function, IMAGE, kind, mean, 32, ["--default_ranges_min", -6, "--default_ranges_max", 6], default_ranges_stats=(-6, 6))
        if not written(f"version 1, {kind} {name}", pair):
            continue
        value = np.clip(normal(*IMAGE), -3, 3)
        if name in FLOATS and kind == "uint8":
            (a,) = answers(pair[0], value)
            check(f"version 1, {kind} {name}: stays float between integers", kinds(pair[0])[0] != "" and "DEQUANTIZE" in kinds(pair[0]) and fb.TensorType.UINT8 in named(pair[0])[0][2], named(pair[0]))
        else:
            version_one_equal(f"version 1, {kind} {name}", pair if name != "reverse" else (pair[0], None), value, name not in OTHER, function)


def trained(x):
    y = fake(tf.nn.relu(tf.matmul(fake(x, -1.0, 0.9921875), fake(W, -2, 2)) + B), 0, 6)
    return tf.nn.softmax(y)


def trained_inside(x):
    return fake(tf.nn.relu(tf.matmul(x, fake(W, -2, 2)) + B), 0, 6)


for kind, mean in (("uint8", 128), ("int8", 0)):
    for function in trained, trained_inside:
        for border in [], ["--inference_input_type", "FLOAT"]:
            options = {"inference_input_type": tf.float32} if border else {}
            label = f"version 1, {kind} {function.__name__} {'float borders' if border else ''}"
            pair = version_one(f"{kind}_{function.__name__}_{bool(border)}", function, (1, 8), kind, mean, 128, border, **options)
            if written(label, pair):
                version_one_equal(label, pair, np.clip(normal(1, 8), -1, .99))
pair = both("input_decides", lambda x: {"y": trained(x)}, spec(1, 8), ["--inference_type", "INT8", "--inference_input_type", "QUANTIZED_UINT8", "--mean_values", 128, "--std_dev_values", 128],
            lambda c: (stats(128, 128)(c), setting(inference_type=tf.int8, inference_input_type=tf.uint8)(c)), version=1)
if written("version 1, the input decides", pair):
    version_one_equal("version 1, the input decides", pair, np.clip(normal(1, 8), -1, .99))

# ---- where a model states ranges, and nowhere else


def stated(x):
    y = fake(tf.matmul(fake(x, -1.0, 0.9921875), fake(W, -2, 2)), -6, 6)
    return {"y": tf.nn.softmax(y), "z": tf.reshape(y, [3])}


def all_stated(x):
    return {"y": fake(tf.nn.relu(tf.matmul(fake(x, -1.0, 0.9921875), fake(W, -2, 2)) + B), 0, 6)}


for function in stated, all_stated:
    for mode in "STATIC", "DYNAMIC":
        label = f"stated alone {function.__name__} {mode}"
        pair = both(f"{function.__name__}_{mode}", function, spec(1, 8), ["--qdq_conversion_mode", mode], setting(_experimental_qdq_conversion_mode=mode))
        if not written(label, pair):
            continue
        sides = [sorted((m.name.decode(), model_of(d).subgraphs[0].tensors[m.tensorIndex].type) for m in model_of(d).signatureDefs[0].inputs + model_of(d).signatureDefs[0].outputs) for d in pair]
        check(f"{label}: operators", sorted(map(str, named(pair[0]))) == sorted(map(str, named(pair[1]))), (named(pair[0]), named(pair[1])))
        check(f"{label}: borders", sides[0] == sides[1], sides)
        value = np.clip(normal(1, 8), -1, .99)
        a, b = ({x.shape: x for x in answers(d, value)} for d in pair)
        check(f"{label}: answers", a.keys() == b.keys() and all(np.abs(v.astype(float) - b[k]).max() <= (1 if v.dtype != np.float32 else 0.05) for k, v in a.items()), (a, b))

# ---- weights of 4 bits by training

LOW = normal(8, 3)


def low(x):
    return {"y": fake(tf.matmul(fake(x, -1.0, 0.9921875), fake(LOW, -2.0, 1.75, num_bits=4)), -6, 6)}


pair = both("low_bits", low, spec(1, 8), ["--optimizations", "DEFAULT", "--low_bit_qat"], setting(optimizations=BEST, _experimental_low_bit_qat=True))
if written("weights of 4 bits", pair):
    check("weights of 4 bits: operators", named(pair[0]) == named(pair[1]), (named(pair[0]), named(pair[1])))
    weights = [[(t.type, np.asarray(t.quantization.scale).tolist(), bytes(model_of(d).buffers[t.buffer].data)) for t in model_of(d).subgraphs[0].tensors if t.type == fb.TensorType.INT4] for d in pair]
    check("weights of 4 bits: the same", weights[0] == weights[1] and len(weights[0]) == 1, weights)
    (a,), (b,) = (answers(d, np.clip(normal(1, 8), -1, .99) * 0 + 0.5) for d in pair)
    check("weights of 4 bits: answers", np.allclose(a, b, atol=12 / 255), (a, b))
    modes = [util.get_conversion_metadata(d).options.modelOptimizationModes for d in pair]
    check("weights of 4 bits: what it says of itself", [[] if m is None else np.asarray(m).tolist() for m in modes][0] == [[] if m is None else np.asarray(m).tolist() for m in modes][1], modes)

# ---- variables of integers

MIX = normal(4, 4)


class Keeps(tf.Module):
    def __init__(self):
        self.v = tf.Variable(tf.zeros([1, 4]))

    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32, name="x")])
    def f(self, x):
        y = tf.matmul(self.v + x, MIX)
        self.v.assign(y * 0.5)
        return {"y": y}


keeps = Keeps()
tf.saved_model.save(keeps, str(work / "keeps"), signatures=keeps.f)
data, options, rows = samples_of(1, 4, count=8)
for mode, kind, extra in (("int8", fb.TensorType.INT8, {}), ("int16x8", fb.TensorType.INT16, INT16)):
    code, text = call("lite", work / "keeps", work / "keeps.tflite", "--quantize", mode, "--variable_quantization", *data)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(work / "keeps"))
    setting(**options, **extra, _experimental_variable_quantization=True)(converter)
    pair = (work / "keeps.tflite").read_bytes() if code == 0 else text, converter.convert()
    if not written(f"variables {mode}", pair):
        continue
    kept = [[(code_of(model_of(d), o), g.tensors[(list(o.outputs if o.outputs is not None else []) or [o.inputs[1]])[0]].type) for g in model_of(d).subgraphs for o in g.operators or [] if code_of(model_of(d), o) in ("READ_VARIABLE", "ASSIGN_VARIABLE")] for d in pair]
    check(f"variables {mode}: types", kept[0] == kept[1] and {t for _, t in kept[0]} == {kind}, kept)
    from ai_edge_litert.interpreter import Interpreter
    turns, real_v = [], np.zeros((1, 4), np.float32)
    for d in pair:
        interpreter = Interpreter(model_content=d)
        interpreter.allocate_tensors()
        out = []
        for r in rows:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], r[None])
            interpreter.invoke()
            out.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
        turns.append(np.concatenate(out))
    want = []
    for r in rows:
        y = (real_v + r[None]) @ MIX
        real_v, want = y * 0.5, want + [y]
    want = np.concatenate(want)
    error = [np.abs(t - want).max() / np.abs(want).max() for t in turns]
    check(f"variables {mode}: answers, run after run", error[0] < 0.08 and error[0] < 2 * error[1] + 1e-3, error)

# ---- what the debugger says of layers

data, options, rows = samples_of(1, 8, count=6)
IN, MID = normal(8, 16), normal(16, 3)
pair = both("layers", lambda x: {"y": tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, IN)), MID))}, spec(1, 8), ["--quantize", "int8", *data, "--report", work / "layers.csv"], setting(**options))
converter = tf.lite.TFLiteConverter.from_saved_model(str(work / "layers"))
setting(**options)(converter)
converter._experimental_calibrate_only = True
debugger = tf.lite.experimental.QuantizationDebugger(converter=converter, debug_dataset=options["representative_dataset"])
debugger.run()
with open(work / "theirs.csv", "w") as f:
    debugger.layer_statistics_dump(f)
if written("layers", pair):
    mine, his = ([r for r in csv.DictReader(open(work / f))] for f in ("layers.csv", "theirs.csv"))
    check("layers: columns", list(mine[0]) == list(his[0]), (list(mine[0]), list(his[0])))
    check("layers: operators", [r["op_name"] for r in mine] == [r["op_name"] for r in his], (mine, his))
    tensors = model_of(pair[0]).subgraphs[0].tensors
    for a, b in zip(mine, his):
        t = tensors[int(a["tensor_idx"])].quantization
        check(f"layers: {a['op_name']} is that tensor", np.isclose(t.scale[0], float(a["scale"])) and t.zeroPoint[0] == int(a["zero_point"]) == int(b["zero_point"]) and np.isclose(float(a["scale"]), float(b["scale"]), rtol=1e-4), (a, b))
        check(f"layers: {a['op_name']}, elements", float(a["num_elements"]) == float(b["num_elements"]), (a, b))
        for key in "stddev", "max_abs_error", "mean_squared_error", "mean_error":
            # Inputs are rounded floats here, and what the layer before gives there: less than a step apart.
            near = np.isclose(float(a[key]), float(b[key]), rtol=0.5, atol=0.15 * float(a["scale"]) ** (2 if key == "mean_squared_error" else 1))
            check(f"layers: {a['op_name']}, {key}", near, (a[key], b[key], a["scale"]))
finish()
