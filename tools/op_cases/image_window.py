"""Windows over images: dilation, fractional pools, convolutions of padded images."""

from op_cases import *

F32 = np.float32


def dilation_cases(r):
    def attrs(stride=1, rate=1, padding="VALID"):
        return dict(strides=[1, stride, stride, 1], rates=[1, rate, rate, 1], padding=padding)

    for t in REALS:
        for options in [attrs(), attrs(2, 1, "SAME"), attrs(1, 2, "SAME")]:
            x, f = r.numbers(t, (1, 5, 4, 2)), r.numbers(t, (2, 3, 2))
            if options["padding"] == "SAME":
                out = (1, 3, 2, 2) if options["strides"][1] == 2 else (1, 5, 4, 2)
            else:
                out = (1, 4, 2, 2)
            yield case("Dilation2D", x, f, **options)
            yield case("Dilation2DBackpropInput", x, f, r.numbers(t, out), **options)
            yield case("Dilation2DBackpropFilter", x, f, r.numbers(t, out), **options)
    x, f = r.normal((2, 4, 4, 1)), r.normal((2, 2, 1))
    g = r.normal((2, 3, 3, 1))
    same = np.zeros_like(x)
    odd = x.copy()
    odd[0, 0] = np.nan
    odd[1, 1] = -np.inf
    for v in [same, odd]:
        yield case("Dilation2D", v, f * 0, **attrs())
        yield case("Dilation2DBackpropInput", v, f * 0, g, **attrs())
        yield case("Dilation2DBackpropFilter", v, f * 0, g, **attrs())
    yield case("Dilation2D", x[:0], f, **attrs())
    for op, more in [("Dilation2D", []), ("Dilation2DBackpropInput", [g]), ("Dilation2DBackpropFilter", [g])]:
        yield case(op, x[0], f, *more, error="input must be 4-dimensional[4,4,1]", **attrs())
        yield case(op, x, f[0], *more, error="filter must be 3-dimensional: [2,1]", **attrs())
        yield case(op, x, np.concatenate([f, f], -1), *more, error="input and filter must have the same depth: 1 vs 2",
                   **attrs())
        yield case(op, x, f, *more, strides=[2, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID",
                   error="Stride is only supported across spatial dimensions.")
        yield case(op, x, f, *more, strides=[1, 1, 1, 1], rates=[1, 1, 1, 2], padding="VALID",
                   error="Rate is only supported across spatial dimensions.")
        yield case(op, x, f, *more, error="Stride must be > 0, but got 0", **attrs(0))
        yield case(op, x[:, :1], f, *more, error="" if more else None, **attrs())
        if more:
            yield case(op, x, f, g[0], error="out_backprop must be 4-dimensional[3,3,1]", **attrs())
            yield case(op, x, f, g[:1], error="out_backprop has incompatible size.", **attrs())


def fractional_cases(r):
    cuts = {}
    for op in ["FractionalMaxPool", "FractionalAvgPool"]:
        for t in ["float", "double", "int32", "int64"]:
            for ratio in [[1.0, 1.5, 1.4, 1.0], [1.0, 2.0, 1.0, 1.0], [1.0, 2.3, 1.7, 1.0]]:
                for pseudo in [False, True]:
                    for overlap in [False, True]:
                        yield case(op, r.numbers(t, (2, 6, 7, 2)), pooling_ratio=ratio, pseudo_random=pseudo,
                                   overlapping=overlap, deterministic=True, seed=3, seed2=int(10 * ratio[1]))
        x, ratio = r.normal((1, 7, 6, 1)), [1.0, 1.5, 1.4, 1.0]
        for seed in range(1, 9):
            yield case(op, x, pooling_ratio=ratio, deterministic=True, seed=seed, pseudo_random=seed % 2 == 0)
        yield case(op, x, pooling_ratio=ratio, compare="shape")
        yield case(op, x, pooling_ratio=ratio, seed=1, error="Both seed and seed2 should be 0 if deterministic is false.")
        yield case(op, x, pooling_ratio=[1.5, 1.5, 1.0, 1.5], error="pooling is not yet supported on the batch nor chan")
        yield case(op, x, pooling_ratio=[1.0, 9.0, 1.0, 1.0], error="Pooling ratio is higher than input dimension size for")
        yield case(op, x[:, :0], pooling_ratio=ratio, error="Pooling ratio is higher than input dimension size for")
        yield case(op, x[0], pooling_ratio=ratio, error="tensor_in must be 4-dimensional")
    for t in ["float", "double", "int32", "int64"]:
        for overlap in [False, True]:
            x = r.numbers(t, (2, 6, 5, 2))
            rows, columns = [0, 2, 3, 6], [0, 1, 3, 5]
            out = np.zeros((2, 3, 3, 2), np_type(t))
            for i in range(3):
                for j in range(3):
                    last = 1 if overlap else 0
                    out[:, i, j] = x[:, rows[i]:rows[i + 1] + last, columns[j]:columns[j + 1] + last].max((1, 2))
            g = r.numbers(t, (2, 3, 3, 2))
            yield case("FractionalMaxPoolGrad", x, out, g, i64(rows), i64(columns), overlapping=overlap)
            yield case("FractionalAvgPoolGrad", i64([2, 6, 5, 2]), g * 7, i64(rows), i64(columns), overlapping=overlap)
    op, rows, columns = "FractionalMaxPoolGrad", i64(rows), i64(columns)
    differs = "tensor_out_dup is not the same as tensor_out"
    yield case(op, x, out + 1, g, rows, columns, error=differs)
    yield case(op, x, out, g, rows[:2], columns, error=differs)
    yield case(op, x, out, g, rows[None], columns, error="row_pooling_sequence must be a vector, received shape [1,4]")
    yield case(op, x[0], out, g, rows, columns, error="orig_input should be a tensor of rank 4, got ")
    yield case(op, x, out[0], g, rows, columns, error="orig_output should be a tensor of rank 4, got ")
    op, size = "FractionalAvgPoolGrad", i64([2, 6, 5, 2])
    yield case(op, size, g.astype(F32), rows * 2, columns)
    yield case(op, i64([2, 6, 5, 3]), g.astype(F32), rows, columns)
    yield case(op, size[:3], g, rows, columns, error="original input tensor shape must be1-dimensional and 4 elements")
    yield case(op, -size, g, rows, columns, error="")
    yield case(op, size, g[0], rows, columns, error="out_backprop must be 4-dimensional")
    yield case(op, size, g[:0], rows, columns, error="out_backprop must be positive for all dimension, got:0")
    yield case(op, size, g, rows[:2], columns, error="row_seq_tensor must have at least 4 elements, but got 2")
    yield case(op, size, g, -rows, columns, error="Row sequence tensor values must not be negative, got ")


def fused(op, x, *rest, error=None, tol=None, **attrs):
    """TensorFlow builds these ops only where it knows the paddings' rank."""

    def build():
        values = [x, *rest]
        made = [tf.compat.v1.placeholder(tf.as_dtype(v.dtype), v.shape if v.dtype == np.int32 else None) for v in values]
        names = ["input", "paddings", "filter"] if op == "FusedPadConv2D" else ["input", "size", "paddings", "filter"]
        out = getattr(tf.raw_ops, op)(**dict(zip(names, made)), **attrs)
        return [Step([out], dict(zip(made, values)), error=error)]

    return graph_case(op, build, tol=tol)


def conv_cases(r):
    pads = [[0, 0], [1, 2], [2, 0], [0, 0]]
    for mode in ["REFLECT", "SYMMETRIC"]:
        for padding in ["SAME", "VALID"]:
            more = dict(mode=mode, padding=padding)
            for t in FLOATING:
                yield fused("FusedPadConv2D", r.normal((1, 4, 4, 2), t), i32(pads), r.normal((3, 2, 2, 2), t),
                           strides=[1, 1, 1, 1], tol=(2e-2, 3e-2) if t in HALVES else (1e-4, 1e-5), **more)
            for t in FLOATS + ["half"]:
                for align in [False, True]:
                    yield fused("FusedResizeAndPadConv2D", r.normal((1, 4, 5, 2), t), i32([6, 4]), i32(pads),
                               r.normal((3, 2, 2, 2), t), strides=[1, 2, 2, 1], resize_align_corners=align,
                               tol=(2e-2, 3e-2) if t == "half" else (1e-4, 1e-5), **more)
            # One image: TensorFlow answers for the others of a batch as for the first.
            yield fused("FusedPadConv2D", r.normal((1, 5, 3, 1)), i32(np.zeros((4, 2))), r.normal((2, 2, 1, 1)),
                       strides=[1, 2, 1, 1], tol=(1e-4, 1e-5), **more)
    x, f = r.normal((2, 5, 6, 1)), r.normal((2, 2, 1, 1))

    def pad(x=x, p=pads, f=f, strides=(1, 1, 1, 1), mode="REFLECT", size=None, error=None):
        op, sizes = ("FusedPadConv2D", []) if size is None else ("FusedResizeAndPadConv2D", [i32(size)])
        return fused(op, x, *sizes, i32(p), f, strides=list(strides), mode=mode, padding="VALID", error=error)

    for size in [None, [4, 4]]:
        yield pad(size=size, p=[[1, 0], [0, 0], [0, 0], [0, 0]], error="Fused mirror padding only support spatial padding, ")
        yield pad(size=size, p=[[0, 0], [0, 0], [0, 0], [0, 1]], mode="SYMMETRIC", error="not channels: ")
        yield pad(size=size, p=[[0, 0], [7, 0], [0, 0], [0, 0]], error="paddings must be less than the dimension size: 7, 0")
        yield pad(size=size, p=[[0, 0], [7, 0], [0, 0], [0, 0]], mode="SYMMETRIC", error="paddings must be no greater than")
        yield pad(size=size, p=[[0, 0], [-1, 0], [0, 0], [0, 0]], error="paddings must be non-negative: -1 0")
        yield pad(size=size, f=f[0], error="filter must be 4-dimensional: [2,1,1]")
        yield pad(size=size, f=np.concatenate([f, f], 2), error="input and filter must have the same depth: 1 vs 2")
        yield pad(size=size, x=x[:0], error="Input tensor can't be empty")
        yield pad(size=size, f=f[..., :0], error="Output tensor can't be empty")
        yield pad(size=size, f=r.normal((20, 2, 1, 1)), error="Computed output size would be negative")
    yield pad(x=x[0], size=[4, 4], error="input must be 4-dimensional[5,6,1]")
    yield pad(size=[4, 0], error="output dimensions must be positive")


def cases(r):
    yield from dilation_cases(r)
    yield from fractional_cases(r)
    yield from conv_cases(r)
