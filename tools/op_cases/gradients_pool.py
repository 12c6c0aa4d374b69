"""Gradients of pooling, of local response normalization and of batch normalization."""
from op_cases import *

# Steps in small integers, so that maxima tie.
def levels(r, shape, t="float"):
    return r.ints(shape, -3, 4).astype(np_type(t)) if t in FLOATING else r.ints(shape, 0, 6, t)


def tol(t):
    return {"half": (4e-3, 4e-3), "bfloat16": (4e-2, 4e-2)}.get(t)


def pooled(x, ksize, strides, padding, op):
    """The forward result."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as s:
        t = tf.compat.v1.placeholder_with_default(x, x.shape)
        return s.run(getattr(tf.raw_ops, op)(input=t, ksize=ksize, strides=strides, padding=padding))


WINDOWS = (((2, 2), (2, 2), "VALID"), ((3, 2), (1, 2), "SAME"), ((3, 3), (1, 1), "SAME"), ((1, 1), (2, 1), "VALID"),
           ((2, 3), (3, 1), "SAME"), ((4, 5), (1, 1), "VALID"), ((9, 9), (2, 3), "SAME"))


def max2d(r):
    x0 = levels(r, (1, 4, 4, 2))
    for op in ("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2"):
        twice, v2 = "GradGrad" in op, "V2" in op

        def grad(x, y, g, k, s, padding="VALID", **more):
            k, s = [1, *k, 1] if len(k) == 2 else list(k), [1, *s, 1] if len(s) == 2 else list(s)
            if v2:
                return case(op, x, y, g, i32(k), i32(s), padding=padding, **more)
            return case(op, x, y, g, ksize=k, strides=s, padding=padding, **more)

        def over(x, k, s, padding="VALID", **more):
            y = pooled(x.astype(np.float32), [1, *k, 1], [1, *s, 1], padding, "MaxPool").astype(x.dtype)
            t = tf.as_dtype(x.dtype).name.replace("float32", "float").replace("float64", "double").replace("float16", "half") \
                if x.dtype != np_type("bfloat16") else "bfloat16"
            g = r.numbers(t, x.shape if twice else y.shape)
            return grad(x, y, g, k, s, padding, **more)

        for t in REALS:
            yield over(levels(r, (1, 4, 5, 2), t), (2, 2), (2, 2), name=t)
            yield over(levels(r, (1, 5, 4, 2), t), (3, 3), (1, 2), "SAME", name=t)
        for k, s, p in WINDOWS:
            yield over(levels(r, (2, 4, 5, 3)), k, s, p, name="window")
        yield over(np.zeros((0, 4, 4, 2), np.float32), (2, 2), (2, 2), name="empty_batch")
        x = np.array([1, np.nan, 2, np.inf, -np.inf, -np.inf, np.nan, 3], np.float32).reshape(1, 2, 4, 1)
        yield over(x, (2, 2), (1, 1), name="nan")
        yield over(-np.abs(r.normal((1, 4, 4, 1))) - 1, (3, 3), (2, 2), "SAME", name="negative")
        # The forward result that is fed need not be that of the input.
        g = r.normal(x0.shape if twice else (1, 2, 2, 2))
        y = np.full((1, 2, 2, 2), 7, np.float32)
        yield grad(x0, y, g, (2, 2), (2, 2), name="wrong_result")
        yield grad(x0, y[0], g, (2, 2), (2, 2), error="tensor_out must be 4-dimensional")
        yield grad(x0[0], y, g, (2, 2), (2, 2), error="tensor_in must be 4-dimensional")
        yield grad(x0, y, g[0], (2, 2), (2, 2), error="_backprop must be 4-dimensional")
        yield grad(x0, y[:, :1], g, (2, 2), (2, 2),
                   error="Expected orig_output shape to be [1,2,2,2], but got [1,1,2,2]")
        yield grad(x0, y, g[:, :1], (2, 2), (2, 2), error="Expected grad shape to be [1,")
        yield grad(x0, y, g, (2, 2, 1, 1), (2, 2), error="Pooling is not yet supported on the batch dimension.")
        yield grad(x0, y, g, (1, 1, 1, 2), (1, 1, 1, 2), error="Grad is not yet supported on the depth dimension.")
        yield grad(x0, y, g, (2, 2), (2, 2, 2, 1), error="Pooling is not yet supported on the batch dimension.")
        if op != "MaxPoolGradGrad":  # whose shape function refuses first
            yield grad(x0, y, g, (2, 2), (0, 2), error="Stride must be > 0, but got 0")
        yield grad(x0, y, g, (2, 2), (2, 2), data_format="NCHW", error="GradOp only supports NHWC on device type CPU")
        if v2:
            yield case(op, x0, y, g, i32([1, 2, 2]), i32([1, 2, 2, 1]), padding="VALID",
                       error="Sliding window ksize field must specify 4 dimensions")
            yield case(op, x0, y, g, i32([1, 2, 2, 1]), i32([1, 2, 2]), padding="VALID",
                       error="Sliding window strides field must specify 4 dimensions")
            yield case(op, x0, y, g, i32([[1, 2, 2, 1]]), i32([1, 2, 2, 1]), padding="VALID", name="matrix")
    x, g = levels(r, (1, 4, 4, 2)), r.normal((1, 3, 3, 2))
    for pads in ([0, 0, 1, 0, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0]):
        n = [(4 + pads[2] + pads[3] - 2) // 2 + 1, (4 + pads[4] + pads[5] - 2) // 2 + 1]
        yield case("MaxPoolGrad", x, np.zeros((1, *n, 2), np.float32), r.normal((1, *n, 2)), ksize=[1, 2, 2, 1],
                   strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=pads, name="explicit")
    yield case("MaxPoolGrad", x, g, g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
               explicit_paddings=[0, 0, 2, 0, 0, 0, 0, 0],
                          error="Top padding 2 needs to be smaller than the window size 2")


def argmax(r):
    op = "MaxPoolGradWithArgmax"
    base = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    for t in REALS:
        yield case(op, r.numbers(t, (1, 4, 4, 2)), r.numbers(t, (1, 2, 2, 2)), i64([[[[0, 1], [4, 4]], [[31, 0], [16, 9]]]]),
                   **base, name=t)
    x, g = r.normal((2, 2, 4, 1)), r.normal((2, 1, 2, 1))
    yield case(op, x, g, i64([0, 7, 3, 3]).reshape(g.shape), **base, name="per_image")
    yield case(op, x, g, i64([0, 7, 8, 15]).reshape(g.shape), **base, include_batch_in_index=True, name="over_batch")
    yield case(op, x, g[:, :, :1], i64([0, 7, 3, 3]).reshape(g.shape), **base,
               error="Expected grad shape to be [2,1,2,1], but got [2,1,1,1]")
    yield case(op, x, g, i64([0, 7, 3]).reshape(1, 1, 3, 1), **base,
               error="Expected argmax shape to be [2,1,2,1], but got [1,1,3,1]")
    yield case(op, x[0], g, i64([0, 7, 3, 3]).reshape(g.shape), **base,
               error="tensor_in_shape must have 2 spatial dimensions. 3 0")
    yield case(op, np.zeros((0, 2, 4, 1), np.float32), np.zeros((0, 1, 2, 1), np.float32), np.zeros((0, 1, 2, 1), np.int64),
               **base, name="empty")
    yield case(op, x, g, i64([0, 7, 3, 3]).reshape(g.shape), **dict(base, ksize=[2, 2, 2, 1]),
               error="Pooling is not yet supported on the batch dimension.")


def average(r):
    for t in FLOATING:
        yield case("AvgPoolGrad", i32([1, 4, 5, 2]), r.numbers(t, (1, 2, 2, 2)), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1],
                   padding="VALID", name=t, tol=tol(t))
        yield case("AvgPoolGrad", i32([1, 4, 5, 2]), r.numbers(t, (1, 4, 3, 2)), ksize=[1, 3, 3, 1], strides=[1, 1, 2, 1],
                   padding="SAME", name=t, tol=tol(t))
    for k, s, p in WINDOWS:
        out = [-(-n // st) if p == "SAME" else (n - kk) // st + 1 for n, kk, st in zip((4, 5), k, s)]
        yield case("AvgPoolGrad", i32([2, 4, 5, 3]), r.normal((2, *out, 3)), ksize=[1, *k, 1], strides=[1, *s, 1], padding=p,
                   name="window")
    base = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    g, op = r.normal((1, 2, 2, 2)), "AvgPoolGrad"
    yield case(op, i32([0, 4, 4, 2]), np.zeros((0, 2, 2, 2), np.float32), **base, name="empty")
    yield case(op, i32([1, 4, 4]), g, **base, error="out_backprop must be 1-dimensional and 4 elements")
    yield case(op, i32([[1, 4, 4, 2]]), g, **base, error="out_backprop must be 1-dimensional and 4 elements")
    yield case(op, i32([1, 4, 4, 2]), g[0], **base, error="out_backprop must be 4-dimensional")
    yield case(op, i32([1, 4, -4, 2]), g, **base, error="Expected a non-negative size, got -4")
    yield case(op, i32([1, 4, 6, 2]), g, **base, name="fewer_windows")
    yield case(op, i32([2**31 - 1, 2**31 - 1, 2**31 - 1, 2]), g, **base,
               error="")
    yield case(op, i32([1, 4, 4, 2]), g, **dict(base, ksize=[2, 2, 2, 1]),
               error="Pooling is not yet supported on the batch dimension.")
    yield case(op, i32([1, 4, 4, 2]), g, **dict(base, ksize=[1, 2, 2, 2]),
               error="Non-spatial pooling is not yet supported. Volunteers? :)")
    yield case(op, i32([1, 4, 4, 2]), g, **base, data_format="NCHW",
               error="Default AvgPoolingGradOp only supports NHWC on device type CPU")
    more = "index * stride must be less than or equal to input size"
    ones = lambda *shape: np.ones(shape, np.float32)
    yield case(op, i32([1, 3, 3, 2]), ones(1, 9, 9, 2), **base, error=more)
    yield case(op, i32([1, 3, 3, 2]), ones(1, 1, 3, 2), **base, error=more)
    yield case(op, i32([1, 4, 4, 2]), ones(1, 3, 3, 2), **base, name="a_window_more")
    yield case(op, i32([1, 0, 4, 2]), ones(1, 2, 2, 2), **base, name="no_pixels")
    yield case(op, i32([1, 4, 4, 2]), ones(0, 2, 2, 2), **base, name="no_gradients")
    yield case(op, i32([0, 4, 4, 2]), ones(1, 2, 2, 2), **base, name="no_images")


WINDOWS3 = (((2, 2, 2), (2, 2, 2), "VALID"), ((2, 3, 2), (1, 2, 1), "SAME"), ((3, 3, 3), (1, 1, 1), "SAME"),
            ((1, 2, 1), (2, 1, 2), "VALID"))


def volumes(r):
    for t in ("float", "bfloat16"):
        for k, s, p in WINDOWS3:
            kk, ss = [1, *k, 1], [1, *s, 1]
            x = levels(r, (1, 4, 3, 3, 2))
            y = pooled(x, kk, ss, p, "MaxPool3D")
            c = lambda a: a.astype(np_type(t))
            yield case("MaxPool3DGrad", c(x), c(y), r.normal(y.shape, t), ksize=kk, strides=ss, padding=p, name=t, tol=tol(t))
            yield case("MaxPool3DGradGrad", c(x), c(y), r.normal(x.shape, t), ksize=kk, strides=ss, padding=p, name=t)
            yield case("AvgPool3DGrad", i32(x.shape), r.normal(y.shape, t), ksize=kk, strides=ss, padding=p, name=t,
                       tol=tol(t))
    x = np.array([1, np.nan, 2, np.inf, -np.inf, -np.inf, np.nan, 3], np.float32).reshape(1, 2, 2, 2, 1)
    base = dict(ksize=[1, 1, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    y = pooled(x, base["ksize"], base["strides"], "SAME", "MaxPool3D")
    for op in ("MaxPool3DGrad", "MaxPool3DGradGrad"):
        yield case(op, x, y, r.normal(x.shape), **base, name="nan")
        yield case(op, x, y, np.array([np.inf, np.nan] * 4, np.float32).reshape(x.shape), **base, name="nan_grad")
        yield case(op, x, x * 0 + 9, r.normal(x.shape), **base, name="wrong_result")
        yield case(op, x[0], y, y, **base, error="tensor_in must be 5-dimensional")
        yield case(op, x, y[0], y, **base, error="tensor_out must be 5-dimensional")
        yield case(op, x, y, y[0], **base, error="_backprop must be 5-dimensional")
        yield case(op, x, y[:, :1], y, **base,
                   error="Expected orig_output shape to be [1,2,2,2,1], but got [1,1,2,2,1]")
        yield case(op, x, y, y[:, :1], **base, error="Expected grad shape to be [1,2,2,2,1], but got [1,1,2,2,1]")
        yield case(op, x, y, y, **dict(base, ksize=[2, 1, 1, 1, 1]),
                   error="Pooling is not yet supported on the batch dimension.")
        yield case(op, x, y, y, **dict(base, ksize=[1, 1, 1, 1, 2]),
                   error="is not yet supported on the depth dimension.")
        if op == "MaxPool3DGrad":
            yield case(op, x, y, y, **dict(base, strides=[1, 0, 1, 1, 1]), error="Stride must be > 0, but got 0")
        yield case(op, x, y, y, **base, data_format="NCDHW", error="Default MaxPooling3dGrad")
        e = np.zeros((0, 2, 2, 2, 1), np.float32)
        more = dict(error="received empty tensor") if op == "MaxPool3DGradGrad" else dict(name="empty")
        yield case(op, e, e, e, **base, **more)
    op, g = "AvgPool3DGrad", r.normal((1, 2, 2, 2, 1))
    yield case(op, i32([0, 2, 2, 2, 1]), g[:0], **base, name="empty")
    yield case(op, i32([1, 2, 2, 2]), g, **base, error="tensor_in must be 1-dimensional and 5 elements")
    yield case(op, i32([[1, 2, 2, 2, 1]]), g, **base, error="tensor_in must be 1-dimensional and 5 elements")
    yield case(op, i32([1, 2, 2, 2, 1]), g[0], **base, error="out_backprop must be 5-dimensional")
    yield case(op, i32([1, 2, -2, 2, 1]), g, **base, error="Expected a non-negative size, got -2")
    yield case(op, i32([1, 2, 3, 2, 1]), g, **base, name="fewer_windows")
    yield case(op, i32([2, 2, 2, 2, 1]), g, **base,
               error="Expected first dimension of tensor_in_shape and out_backprop to")
    yield case(op, i32([1, 2, 2, 2, 2]), g, **base,
               error="Expected last dimension of tensor_in_shape and out_backprop to match,")
    yield case(op, i32([1, 2, 2, 2, 1]), g, **dict(base, ksize=[2, 1, 1, 1, 1]),
               error="Pooling is not yet supported on the batch dimension.")
    yield case(op, i32([1, 2, 2, 2, 1]), g, **dict(base, ksize=[1, 0, 1, 1, 1]),
               error="ksize must be positive, got: 0")
    yield case(op, i32([1, 2, 2, 2, 1]), g, **base, data_format="NCDHW",
               error="Default AvgPooling3dGradOp only supports NDHWC on device type CPU")
    yield case(op, i32([1, 2, 2, 2, 1]), np.ones((1, 2, 6, 2, 1), np.float32), **base,
               error="index * stride must be less than or equal to input size")
    yield case(op, i32([1, 2, 2, 2, 1]), g[:0], **base, error="Expected first dimension of tensor_in_shape and out_backprop to")


def normalization(r):
    for t in ("float", "half"):
        for shape in ((1, 2, 2, 7), (2, 1, 1, 1), (0, 2, 2, 3)):
            x, y, g = (r.numbers(t, shape) for _ in range(3))
            yield case("LRNGrad", g, x, y, name=t, tol=tol(t))
            yield case("LRNGrad", g, x, y, depth_radius=1, bias=2.0, alpha=0.5, beta=0.75, name=t, tol=tol(t))
    x = r.normal((1, 2, 2, 3))
    yield case("LRNGrad", x, x, x, depth_radius=0, beta=1.0, name="alone")
    yield case("LRNGrad", x[0], x, x, error="inputs must be 4-dimensional")
    yield case("LRNGrad", x, x[:, :1], x, error="input_grads, input_image, and out_image should have the same shape")
    yield case("LRNGrad", x, x, x[:, :1], error="input_grads, input_image, and out_image should have the same shape")
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        third = [r.normal((3,))] if op.endswith("V3") else []

        def grad(g, x, n=None, third=third, **more):
            n = x.shape[-1] if n is None else n
            return case(op, g, x, r.normal((n,)), r.normal((n,)), r.uniform((n,), 0.5, 2), *third, **more)

        for t in ["float"] + (HALVES if op != "FusedBatchNormGrad" else []):
            for training in (True, False):
                for shape in ((2, 2, 3, 3), (1, 1, 1, 2), (4, 1, 1, 5)):
                    yield grad(r.normal(shape, t), r.normal(shape, t), is_training=training, name=t,
                               tol=(2e-2, 2e-2) if t in HALVES else (1e-4, 1e-5))
                first = dict(name="channels_first_" + t, tol=(2e-2, 2e-2) if t in HALVES else (1e-4, 1e-5))
                yield grad(r.normal((2, 3, 2, 2), t), r.normal((2, 3, 2, 2), t), 3, is_training=training,
                           data_format="NCHW", **(first if training else dict(error="only support NHWC")))
        for training in (True, False):
            yield grad(r.normal((0, 2, 2, 3)), r.normal((0, 2, 2, 3)), is_training=training, name="empty")
        x, g = r.normal((1, 2, 2, 3)), r.normal((1, 2, 2, 3))
        yield grad(g, x, epsilon=0.5, name="epsilon", tol=(1e-4, 1e-5))
        yield grad(g, x[0], error="input must be 4 or 5-dimensional[2,2,3]")
        yield grad(g[0], x, error="input must be 4 or 5-dimensional[2,2,3]")
        yield grad(g[:, :1], x, error="x and y_backprop must have same shape, but x has shape [1,2,2,3] and")
        yield grad(g, x, 4, error="scale must have the same number of elements as the channels of x, got")
        for bad in range(2, 5):
            v = [g, x, r.normal((3,)), r.normal((3,)), r.uniform((3,), 0.5, 2), *third]
            v[bad] = v[bad].reshape(1, 3)
            yield case(op, *v, error="must be 1-dimensional[1,3]")
        if third:
            five = r.normal((1, 2, 1, 2, 3))
            for training in (True, False):
                yield grad(five, five + 1, is_training=training, data_format="NDHWC", name="volume", tol=(1e-4, 1e-5))
            yield grad(five, five + 1, 2, is_training=True, data_format="NCDHW", name="volume", tol=(1e-4, 1e-5))


def cases(r):
    yield from max2d(r)
    yield from argmax(r)
    yield from average(r)
    yield from volumes(r)
    yield from normalization(r)
