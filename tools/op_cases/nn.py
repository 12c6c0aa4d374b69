"""Convolutions and pools."""
from op_cases import *

CONV_TYPES = ["float", "double", "half", "bfloat16"]


def conv(x, w, op="Conv2D", strides=(1, 1), padding="VALID", dilations=None, data_format="NHWC", **more):
    last = data_format in ("NHWC", "NDHWC")
    wide = lambda v: [1, *v, 1] if last else [1, 1, *v]
    if dilations is not None:
        more["dilations"] = wide(dilations)
    return case(op, x, w, strides=wide(strides), padding=padding, data_format=data_format, **more)


def half_tol(t):
    return {"half": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}.get(t)


def conv2d(r):
    f = lambda *shape: r.normal(shape)
    for t in CONV_TYPES + ["int32"]:
        yield conv(r.numbers(t, (1, 4, 5, 2)), r.numbers(t, (3, 2, 2, 3)), name=t, tol=half_tol(t))
        yield conv(r.numbers(t, (2, 4, 4, 1)), r.numbers(t, (2, 2, 1, 2)), padding="SAME", strides=(2, 2),
                   name=t + "_same", tol=half_tol(t))
    for padding in ("SAME", "VALID"):
        for strides in ((1, 1), (2, 2), (1, 2), (3, 1)):
            for k in ((1, 1), (3, 3), (2, 3), (4, 1)):
                yield conv(f(1, 6, 5, 2), f(*k, 2, 3), padding=padding, strides=strides, name="window")
        for d in ((2, 2), (1, 3)):
            yield conv(f(1, 8, 8, 2), f(3, 3, 2, 2), padding=padding, dilations=d, name="dilated")
            yield conv(f(1, 8, 8, 2), f(3, 2, 2, 2), padding=padding, dilations=d, strides=(2, 2),
                       name="dilated_strided")
    for pads in ((1, 1, 1, 1), (0, 2, 1, 0), (4, 0, 0, 5), (0, 0, 0, 0)):
        yield conv(f(1, 4, 4, 2), f(3, 3, 2, 2), padding="EXPLICIT",
                   explicit_paddings=[0, 0, *pads, 0, 0], name="explicit")
    yield conv(f(1, 5, 5, 4), f(3, 3, 2, 6), name="grouped")
    yield conv(f(1, 5, 5, 4), f(3, 3, 1, 4), padding="SAME", name="grouped_depthwise")
    yield conv(f(1, 4, 4, 6), f(2, 2, 2, 3), strides=(2, 2), name="grouped_three")
    yield conv(r.numbers("double", (1, 5, 5, 4)), r.numbers("double", (3, 3, 2, 2)), name="grouped_double")
    yield conv(f(1, 1, 1, 40), f(1, 1, 40, 5), name="pixel")
    yield conv(f(1, 5, 5, 8), f(5, 5, 8, 1), name="whole_image")
    yield conv(f(3, 3, 3, 7), f(2, 2, 7, 5), name="odd_depths")
    yield conv(f(1, 3, 3, 2), f(5, 5, 2, 2), padding="SAME", name="large_filter")
    yield conv(f(0, 5, 5, 3), f(3, 3, 3, 4), name="empty_batch")
    yield conv(f(1, 5, 5, 3), f(3, 3, 3, 0), name="empty_output")
    yield conv(f(1, 2, 2, 3), f(3, 3, 3, 4), name="empty_image")
    yield conv(f(1, 0, 5, 4), f(3, 3, 4, 3), padding="SAME", name="no_rows")
    yield conv(np.array([[[[1], [np.nan]], [[np.inf], [2]]]], np.float32), np.ones((1, 1, 1, 2), np.float32),
               name="nan")
    yield conv(f(1, 5, 5, 3), f(3, 3, 2, 4), error="input depth must be evenly divisible by filter depth: 3 vs 2")
    yield conv(f(1, 5, 5, 4), f(3, 3, 2, 3), error="output depth must be evenly divisible by number of groups: 3 vs 2")
    yield conv(f(5, 5, 3), f(3, 3, 3, 4), error="must be 4-dimensional")
    yield conv(f(1, 5, 5, 3), f(3, 3, 3), error="must be 4-dimensional")
    yield conv(f(1, 1, 5, 3), f(4, 3, 3, 4), error="Computed output size would be negative")
    yield conv(f(1, 5, 5, 3), f(3, 3, 0, 4), error="filter depth must be stricly positive")
    yield conv(f(1, 5, 5, 3), f(0, 3, 3, 4), error="filter must not have zero elements")
    x, w = f(1, 5, 5, 4), f(3, 3, 4, 3)
    valid = dict(padding="VALID")
    yield case("Conv2D", x, w, strides=[2, 1, 1, 1], **valid, error="strides in the batch and depth")
    yield case("Conv2D", x, w, strides=[1, 1, 1, 2], **valid, error="strides in the batch and depth")
    yield case("Conv2D", x, w, strides=[1, 1, 1, 1], dilations=[2, 1, 1, 1], **valid, error="")


def depthwise(r):
    f = lambda *shape: r.normal(shape)
    op = dict(op="DepthwiseConv2dNative")
    for t in CONV_TYPES:
        yield conv(r.numbers(t, (1, 4, 5, 3)), r.numbers(t, (3, 2, 3, 2)), **op, name=t, tol=half_tol(t))
    for padding in ("SAME", "VALID"):
        for s in (1, 2, 3):
            for k in ((3, 3), (5, 5), (2, 1), (1, 1)):
                yield conv(f(1, 6, 7, 4), f(*k, 4, 1), **op, padding=padding, strides=(s, s), name="window")
        yield conv(f(1, 4, 4, 3), f(3, 3, 3, 3), **op, padding=padding, name="multiplier")
        yield conv(f(1, 5, 5, 1), f(3, 3, 1, 4), **op, padding=padding, name="one_channel")
        yield conv(f(1, 3, 3, 17), f(2, 2, 17, 1), **op, padding=padding, name="odd_depth")
    yield conv(f(1, 5, 5, 3), f(3, 3, 3, 2), **op, padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 1, 1, 0, 0],
               name="explicit")
    yield conv(f(0, 5, 5, 3), f(3, 3, 3, 4), **op, name="empty_batch")
    yield conv(f(1, 2, 2, 3), f(3, 3, 3, 4), **op, name="empty_image")
    yield conv(f(1, 5, 5, 3), f(3, 3, 2, 4), **op, error="input and filter must have the same depth: 3 vs 2")
    yield conv(f(5, 5, 3), f(3, 3, 3, 4), **op, error="input must be 4-dimensional")
    yield conv(f(1, 5, 5, 3), f(3, 3, 3), **op, error="filter must be 4-dimensional")
    yield conv(f(1, 5, 5, 3), f(3, 3, 3, 4), **op, strides=(1, 2), error="only supports equal length strides")
    yield case("DepthwiseConv2dNative", f(1, 5, 5, 3), f(3, 3, 3, 1), strides=[2, 1, 1, 1], padding="VALID",
               error="")


def conv3d(r):
    f = lambda *shape: r.normal(shape)
    op = dict(op="Conv3D", data_format="NDHWC", strides=(1, 1, 1))
    for t in CONV_TYPES:
        yield conv(r.numbers(t, (1, 3, 3, 3, 2)), r.numbers(t, (2, 2, 2, 2, 3)), **op, name=t, tol=half_tol(t))
    for padding in ("SAME", "VALID"):
        for s in ((1, 1, 1), (2, 2, 2), (1, 2, 1)):
            yield conv(f(1, 4, 3, 4, 2), f(3, 2, 3, 2, 2), **dict(op, strides=s), padding=padding, name="window")
    yield conv(f(0, 4, 4, 4, 2), f(2, 2, 2, 2, 2), **op, name="empty_batch")
    yield conv(f(1, 1, 4, 4, 2), f(2, 2, 2, 2, 2), **op, name="empty_image")
    yield conv(f(1, 4, 4, 4, 3), f(2, 2, 2, 2, 2), **op, error="")
    yield conv(f(1, 4, 4, 3), f(2, 2, 2, 3, 2), **op, error="")


def transposed(r):
    f = lambda *shape: r.normal(shape)

    def bp(sizes, w, grad, s=2, padding="SAME", op="Conv2DBackpropInput", **more):
        strides = [1] + [s] * (len(w.shape) - 2) + [1]
        return case(op, i32(sizes), w, grad, strides=strides, padding=padding, **more)

    for t in CONV_TYPES + ["int32"]:
        yield bp([1, 6, 6, 2], r.numbers(t, (3, 3, 2, 3)), r.numbers(t, (1, 3, 3, 3)), name=t, tol=half_tol(t))
    for padding, size in (("SAME", (3, 3)), ("VALID", (2, 2))):
        yield bp([2, 6, 5, 3], f(3, 2, 3, 2), f(2, 3 if padding == "SAME" else 2, 3 if padding == "SAME" else 2, 2),
                 padding=padding, name=padding)
    yield bp([1, 5, 5, 3], f(3, 3, 3, 2), f(1, 3, 3, 2), s=1, padding="VALID", name="stride_one")
    yield bp([1, 7, 7, 2], f(2, 2, 2, 3), f(1, 3, 3, 3), padding="VALID", name="rest")
    yield bp([1, 8, 8, 1], f(1, 1, 1, 2), f(1, 4, 4, 2), name="stride_over_kernel")
    yield bp([6, 6], f(3, 3, 2, 3), f(1, 3, 3, 3), name="two_sizes")
    yield bp([1, 4, 4, 2], f(3, 3, 2, 2), f(1, 4, 4, 2), s=1, padding="EXPLICIT",
             explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0], name="explicit")
    yield bp([0, 6, 6, 2], f(3, 3, 2, 3), f(0, 3, 3, 3), name="empty_batch")
    yield bp([1, 8, 8, 3], f(3, 3, 3, 4), f(1, 5, 4, 4), error="Size of out_backprop doesn't match computed")
    yield bp([2, 8, 8, 3], f(3, 3, 3, 4), f(1, 4, 4, 4), error="must have the same batch size")
    yield bp([1, 8, 8, 3], f(3, 3, 3, 4), f(1, 4, 4, 5), error="must have the same out_depth")
    yield bp([1, 8, 8, 2], f(3, 3, 3, 4), f(1, 4, 4, 4), error="input depth must be evenly divisible")
    yield bp([8, 8, 3], f(3, 3, 3, 4), f(1, 4, 4, 4), error="requires input_sizes to contain 4 values")
    yield bp([[8, 8]], f(3, 3, 3, 4), f(1, 4, 4, 4), error="")
    yield bp([1, -8, 8, 3], f(3, 3, 3, 4), f(1, 4, 4, 4), error="")
    yield bp([1, 4, 4, 4], f(3, 3, 2, 4), f(1, 4, 4, 4), s=1, error="grouped convolutions")
    three = dict(op="Conv3DBackpropInputV2")
    for t in ("float", "double", "half"):
        yield bp([1, 4, 4, 4, 2], r.numbers(t, (2, 2, 2, 2, 2)), r.numbers(t, (1, 2, 2, 2, 2)), **three, name=t,
                 tol=half_tol(t))
    yield bp([1, 3, 3, 3, 1], f(2, 2, 2, 1, 2), f(1, 2, 2, 2, 2), s=1, padding="VALID", **three, name="valid")


def pools(r):
    f = lambda *shape: r.normal(shape)
    pool_types = {"MaxPool": [t for t in REALS if t not in ("uint32", "uint64")], "AvgPool": FLOATING,
                  "MaxPoolWithArgmax": REALS}
    for op, types in pool_types.items():
        pool = lambda x, k=(1, 2, 2, 1), s=(1, 2, 2, 1), padding="VALID", **more: case(
            op, x, ksize=list(k), strides=list(s), padding=padding, **more)
        for t in types:
            yield pool(r.numbers(t, (1, 4, 5, 3)), name=t)
        for padding in ("SAME", "VALID"):
            for k in ((1, 2, 2, 1), (1, 3, 3, 1), (1, 3, 2, 1), (1, 1, 1, 1)):
                for s in ((1, 2, 2, 1), (1, 1, 1, 1), (1, 3, 1, 1)):
                    yield pool(f(2, 5, 6, 3), k, s, padding, name="window")
        yield pool(-np.abs(f(1, 4, 4, 1)) - 1, (1, 3, 3, 1), padding="SAME", name="negative")
        yield pool(f(1, 1, 1, 3), name="empty_image")
        if op != "MaxPoolWithArgmax":
            yield pool(f(0, 4, 4, 3), name="empty_batch")
        yield pool(f(5, 5, 3), error="")
        yield pool(f(2, 4, 4, 3), k=(2, 2, 2, 1), error="")
        if op != "MaxPoolWithArgmax":
            yield pool(f(2, 4, 4, 3), k=(1, 0, 2, 1), error="")
        yield pool(f(2, 4, 4, 4), k=(1, 2, 2, 2), error="")
    for pads in ((1, 1, 1, 1), (0, 1, 1, 0)):
        yield case("MaxPool", f(1, 4, 4, 2), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
                   explicit_paddings=[0, 0, *pads, 0, 0], name="explicit")
    yield case("MaxPool", f(1, 4, 4, 2), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
               explicit_paddings=[0, 0, 2, 2, 1, 1, 0, 0], error="needs to be smaller than the window size")
    yield case("MaxPool", f(1, 3, 3, 6), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID", name="depth")
    yield case("MaxPool", f(1, 3, 3, 5), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID", error="")
    yield case("MaxPool", f(1, 3, 3, 6), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 1], padding="VALID", error="")
    for t in ("int32", "int64"):
        for batch in (False, True):
            yield case("MaxPoolWithArgmax", f(2, 4, 4, 3), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID",
                       Targmax=tf.as_dtype(t), include_batch_in_index=batch, name="index")
    yield case("MaxPoolWithArgmax", np.ones((1, 4, 4, 2), np.float32), ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1],
               padding="SAME", name="ties")
    for t in ("float", "double", "half", "int32", "int8", "uint8"):
        yield case("MaxPoolV2", r.numbers(t, (1, 5, 5, 2)), i32([1, 3, 2, 1]), i32([1, 2, 1, 1]), padding="SAME", name=t)
    yield case("MaxPoolV2", f(1, 4, 4, 4), i32([1, 2, 2]), i32([1, 2, 2, 1]), padding="VALID", error="")
    yield case("MaxPoolV2", f(1, 4, 4, 4), i32([1, 2, 2, 1]), i32([1, 2, 2]), padding="VALID", error="")
    yield case("MaxPoolV2", f(1, 4, 4, 4), i32([1, 2, 2, 1]), i32([1, 0, 2, 1]), padding="VALID", error="")
    for op in ("MaxPool3D", "AvgPool3D"):
        for t in ("float", "bfloat16"):
            yield case(op, r.numbers(t, (1, 3, 4, 3, 2)), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 1, 2, 1],
                       padding="SAME", name=t)
        for padding in ("SAME", "VALID"):
            yield case(op, f(1, 4, 4, 4, 3), ksize=[1, 3, 2, 3, 1], strides=[1, 1, 2, 1, 1], padding=padding,
                       name="window")
        yield case(op, f(1, 1, 4, 4, 2), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", name="empty")
        yield case(op, f(1, 4, 4, 4), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", error="")
        yield case(op, f(1, 2, 4, 4, 2), ksize=[1, 0, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", error="")


def more(r):
    yield case("MaxPoolV2", r.normal((0, 4, 4, 1)), i32([1, 2, 2, 1]), i32([1, 2, 2, 1]), padding="VALID", name="empty")
    yield case("MaxPoolV2", np.float32([[[[np.nan], [1]], [[np.inf], [-np.inf]]]]), i32([1, 2, 1, 1]), i32([1, 1, 1, 1]),
               padding="VALID", name="edge")
    for op in ("MaxPool3D", "AvgPool3D"):
        for t in ("float", "bfloat16"):
            yield case(op, r.numbers(t, (0, 3, 3, 3, 1)), ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID", name=t)
            yield case(op, r.numbers(t, (1, 1, 1, 1, 3)), ksize=[1, 1, 1, 1, 1], strides=[1, 1, 1, 1, 1], padding="VALID", name=t)
            yield case(op, r.numbers(t, (2, 2, 3, 2, 2)), ksize=[1, 3, 3, 3, 1], strides=[1, 2, 2, 2, 1], padding="SAME", name=t)
            for depth in (1, 32):  # windows with gaps between them
                x = array(t, np.arange(9 * depth) * 7 % 113, (1, 3, 3, 1, depth))
                yield case(op, x, ksize=[1, 1, 2, 1, 1], strides=[1, 3, 1, 1, 1], padding="SAME", name=t + "_gaps")
                yield case(op, x, ksize=[1, 1, 1, 1, 1], strides=[1, 2, 3, 5, 1], padding="SAME", name=t + "_gaps")
    for t in ("float", "double", "half", "bfloat16"):
        tol = {"half": (5e-3, 5e-3), "bfloat16": (4e-2, 4e-2)}.get(t)
        for pad, n in (("SAME", 4), ("VALID", 5)):
            yield case("Conv3DBackpropInputV2", i32([1, n, n, 4, 2]), r.numbers(t, (2, 2, 1, 2, 3)),
                       r.numbers(t, (1, 2, 2, 2, 3)), strides=[1, 2, 2, 2, 1], padding=pad, name=t, tol=tol)
    back = lambda sizes, f, d, **k: case("Conv3DBackpropInputV2", i32(sizes), r.normal(f), r.normal(d),
                                        strides=[1, 1, 1, 1, 1], padding="VALID", **k)
    yield back([0, 3, 3, 3, 2], (2, 2, 2, 2, 1), (0, 2, 2, 2, 1), name="empty")
    yield back([1, 3, 3, 3, 2], (2, 2, 2, 2, 1), (1, 3, 2, 2, 1), error="")
    yield back([1, 3, 3, 3], (2, 2, 2, 2, 1), (1, 2, 2, 2, 1), error="")


def empty_filters(r):
    f = lambda *shape: r.normal(shape)
    depthwise = dict(op="DepthwiseConv2dNative")
    for t in CONV_TYPES:
        yield conv(r.numbers(t, (1, 3, 3, 2)), r.numbers(t, (0, 2, 2, 2)), **depthwise, padding="SAME", name="empty_filter_" + t)
    for padding in ("SAME", "VALID"):
        for k in ((0, 2), (2, 0), (0, 0)):
            yield conv(f(1, 3, 3, 2), f(*k, 2, 1), **depthwise, padding=padding, name="empty_filter")
        yield conv(f(1, 3, 3, 2), f(2, 2, 2, 0), **depthwise, padding=padding, name="empty_multiplier")
    yield conv(f(1, 4, 4, 2), f(0, 2, 2, 1), **depthwise, padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0],
               name="empty_filter_explicit")
    yield conv(f(1, 3, 3, 2), f(2, 2, 0, 1), **depthwise, error="input and filter must have the same depth: 2 vs 0")
    three = dict(op="Conv3D", data_format="NDHWC", strides=(1, 1, 1))
    for filter in ((2, 2, 2, 2, 0), (0, 2, 2, 2, 3)):
        for batch in (0, 1):
            yield conv(f(batch, 3, 3, 3, 2), f(*filter), **three, error="filter must not have zero elements")
    yield conv(f(1, 3, 3, 3, 2), f(2, 2, 2, 0, 3), **three, error="filter_depth must be non-zero")


def cases(r):
    yield from conv2d(r)
    yield from depthwise(r)
    yield from conv3d(r)
    yield from transposed(r)
    yield from pools(r)
    yield from more(r)
    yield from empty_filters(r)
