"""Gradients: SymbolicGradient of ops, beside tf.gradients, and of functions. TensorFlow's own SymbolicGradient refuses some of
the ops' attributes and types, and forgets others."""
from op_cases import *
from tensorflow.core.framework import attr_value_pb2

FOLDER = "sessions"
R = tf.raw_ops


def differentiable(t):
    return t.dtype.is_floating or t.dtype.is_complex


def placeholders(inputs):
    one = lambda a: tf.compat.v1.placeholder(tf.as_dtype(np.asarray(a).dtype), np.asarray(a).shape)
    return [[one(a) for a in x] if isinstance(x, list) else one(x) for x in inputs]


def flat(values):
    return [a for x in values for a in (x if isinstance(x, list) else [x])]


def gradient(r, op, name="", attrs=None, wide=None, **inputs):
    """The gradient of an op by all its inputs (lists for lists), for random gradients of its outputs. wide: an input that
    becomes int64, where tf.gradients takes int32 alone."""

    def build():
        values = list(inputs.values())
        with tf.Graph().as_default() as g:
            xs = placeholders(values)
            getattr(R, op)(**dict(zip(inputs, xs)), **(attrs or {}))
            node = next(o for o in g.get_operations() if o.type == op)
            known = [x for x in node.inputs if differentiable(x)]
            out_types = [t.dtype for t in node.outputs]
            f = attr_value_pb2.NameAttrList(name=op)
            for key, value in node.node_def.attr.items():
                if not key.startswith("_"):
                    f.attr[key].CopyFrom(value)
            with tf.compat.v1.Session() as s:
                feed = dict(zip(flat(xs), flat(values)))
                shapes = [o.shape for o in s.run(list(node.outputs), feed)]
                dys = [r.numbers({"float32": "float", "float64": "double"}.get(t.name, t.name), shape)
                       for t, shape in zip(out_types, shapes)]
                grads = tf.gradients(list(node.outputs), known, [tf.constant(d) for d in dys])
                grads = [tf.zeros_like(x) if d is None else tf.convert_to_tensor(d) for x, d in zip(known, grads)]
                answers = s.run(grads, feed)
        if wide:
            f.attr["Tidx"].type = tf.int64.as_datatype_enum
            values = [v.astype(np.int64) if k == wide else v for k, v in inputs.items()]
        taken = flat(placeholders(values)) + placeholders(dys)
        types = [x.dtype for x in flat(placeholders(values))]
        out = R.SymbolicGradient(input=taken, Tout=types, f=f)
        fetch = [o for o in out if differentiable(o)]
        return [Step(fetch=fetch, feed=dict(zip(taken, flat(values) + dys)), answers=answers)]

    return graph_case("SymbolicGradient", build, name=op + name)


def of_ops(r):
    for op, lo, hi in [("Abs", -2, 2), ("Neg", -2, 2), ("Inv", 1, 2), ("Reciprocal", 1, 2), ("Square", -2, 2), ("Sqrt", 1, 3), ("Rsqrt", 1, 3),
                       ("Exp", -1, 1), ("Expm1", -1, 1), ("Log", 1, 3), ("Log1p", 0, 2), ("Sinh", -1, 1), ("Cosh", -1, 1), ("Tanh", -1, 1),
                       ("Asinh", -1, 1), ("Acosh", 1.5, 3), ("Atanh", -.8, .8), ("Sigmoid", -2, 2), ("Sign", -2, 2), ("Sin", -2, 2), ("Cos", -2, 2),
                       ("Acos", -.8, .8), ("Asin", -.8, .8), ("Atan", -2, 2), ("Tan", -1, 1)]:
        for t in ["float", "double"]:
            yield gradient(r, op, "_" + t, x=r.uniform((2, 3), lo, hi, t))
    z = lambda: r.numbers("complex64", (2, 2))
    yield gradient(r, "Conj", input=z())
    for op in ["Real", "Imag", "Angle"]:
        yield gradient(r, op, input=z())
    yield gradient(r, "Cast", x=r.normal((3,)), attrs=dict(DstT=tf.float64))
    a, b, row = lambda: r.uniform((2, 3), .5, 2), lambda: r.uniform((2, 3), .5, 2), lambda: r.uniform((3,), .5, 2)
    for op in ["Add", "AddV2", "Sub", "Mul", "MulNoNan", "Div", "RealDiv", "DivNoNan", "Pow", "Xlogy", "Xlog1py", "Xdivy", "SquaredDifference",
               "Maximum", "Minimum"]:
        yield gradient(r, op, x=a(), y=b())
        yield gradient(r, op, "_repeated", x=row(), y=b())
        yield gradient(r, op, "_scalar", x=a(), y=r.uniform((), .5, 2))
    yield gradient(r, "Mul", "_complex", x=z(), y=z())
    yield gradient(r, "Pow", "_complex", x=z(), y=z())
    yield gradient(r, "Pow", "_of_zero", x=np.array([0, 1, -2], np.float32), y=np.array([2, 3, 2], np.float32))
    yield gradient(r, "Complex", real=a(), imag=b())
    yield gradient(r, "Select", condition=r.bools((2, 3)), x=a(), y=b())


def of_reductions(r):
    x = lambda: r.normal((2, 3, 2))
    for op in ["Sum", "Mean", "Max", "Min"]:
        yield gradient(r, op, "_wide", wide="axis", input=x(), axis=i32([1]))
        for name, axes in [("", i32([0, 2])), ("_from_the_end", i32([-1])), ("_of_none", i32([])), ("_scalar", i32(1))]:
            for keep in [False, True]:
                yield gradient(r, op, name + ("_kept" if keep else ""), input=x(), axis=axes, attrs=dict(keep_dims=keep))
        yield gradient(r, op, "_of_a_scalar", input=r.normal(()), axis=i32([]))
    yield gradient(r, "Sum", "_empty", input=r.normal((0, 3)), axis=i32([0]))
    yield gradient(r, "Mean", "_empty_rows", input=r.normal((0, 3)), axis=i32([1]))
    for ta in [False, True]:
        for tb in [False, True]:
            p, q = (3, 2) if ta else (2, 3), (4, 3) if tb else (3, 4)
            name = f"_{int(ta)}{int(tb)}"
            yield gradient(r, "MatMul", name, a=r.normal(p), b=r.normal(q), attrs=dict(transpose_a=ta, transpose_b=tb))
            yield gradient(r, "BatchMatMul", name, x=r.normal((2, *p)), y=r.normal((2, *q)), attrs=dict(adj_x=ta, adj_y=tb))
            yield gradient(r, "BatchMatMulV2", name, x=r.normal((2, 1, *p)), y=r.normal((3, *q)), attrs=dict(adj_x=ta, adj_y=tb))


def of_arrays(r):
    x = lambda *s: r.normal(s)
    yield gradient(r, "Reshape", tensor=x(2, 3), shape=i32([3, -1]))
    yield gradient(r, "Reshape", "_wide", tensor=x(2, 3), shape=i64([6]))
    yield gradient(r, "ExpandDims", input=x(2, 3), axis=i32(-1))
    yield gradient(r, "Squeeze", input=x(1, 3, 1))
    yield gradient(r, "Identity", input=x(3))
    yield gradient(r, "Pack", values=[x(2), x(2), x(2)], attrs=dict(axis=1))
    yield gradient(r, "Unpack", value=x(2, 3), attrs=dict(num=3, axis=-1))
    yield gradient(r, "Concat", concat_dim=i32(1), values=[x(2, 1), x(2, 3)])
    for wide in [None, "axis"]:
        yield gradient(r, "ConcatV2", "_wide" if wide else "", wide=wide, values=[x(2, 1), x(2, 3), x(2, 0)], axis=i32(-1))
    yield gradient(r, "Split", axis=i32(1), value=x(2, 6), attrs=dict(num_split=3))
    yield gradient(r, "Split", "_in_one", axis=i32(1), value=x(2, 6), attrs=dict(num_split=1))
    yield gradient(r, "SplitV", value=x(2, 6), size_splits=i32([1, 5]), axis=i32(-1), attrs=dict(num_split=2))
    yield gradient(r, "Fill", dims=i32([2, 3]), value=x())
    yield gradient(r, "Transpose", x=x(2, 3, 4), perm=i32([2, 0, 1]))
    yield gradient(r, "ConjugateTranspose", x=r.numbers("complex64", (2, 3)), perm=i32([1, 0]))
    yield gradient(r, "Reverse", tensor=x(2, 3), dims=np.array([False, True]))
    yield gradient(r, "ReverseV2", tensor=x(2, 3), axis=i64([-1]))
    yield gradient(r, "BroadcastTo", input=x(3, 1), shape=i32([2, 3, 4]))
    yield gradient(r, "GatherNd", params=x(3, 2), indices=i32([[0, 1], [0, 1], [2, 0]]))
    yield gradient(r, "GatherNd", "_wide", params=x(3, 2), indices=i64([[2], [0]]))
    yield gradient(r, "Slice", input=x(3, 4), begin=i32([1, 0]), size=i32([1, 3]))
    yield gradient(r, "Slice", "_the_rest", input=x(3, 4), begin=i64([1, 2]), size=i64([-1, -1]))
    yield gradient(r, "StridedSlice", input=x(3, 4), begin=i32([0, 3]), end=i32([1, 0]), strides=i32([1, -2]), attrs=dict(shrink_axis_mask=1))
    yield gradient(r, "StridedSlice", "_wide", input=x(3, 4), begin=i64([1, 0]), end=i64([3, 0]), strides=i64([1, 1]), attrs=dict(end_mask=2))
    yield gradient(r, "StridedSliceGrad", shape=i32([3, 4]), begin=i32([0, 1]), end=i32([2, 3]), strides=i32([1, 1]), dy=x(2, 2))


def of_layers(r):
    image = lambda: r.normal((1, 4, 4, 2))
    for op in ["Softmax", "LogSoftmax"]:
        yield gradient(r, op, logits=r.normal((2, 3)))
    for op in ["Relu", "Relu6"]:
        yield gradient(r, op, features=r.uniform((2, 6), -2, 9))
    for name, attrs in [("", {}), ("_stepped", dict(strides=[1, 2, 2, 1])),
                        ("_padded", dict(padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 0, 2, 0, 0]))]:
        yield gradient(r, "Conv2D", name, input=image(), filter=r.normal((2, 2, 2, 3)), attrs={"strides": [1, 1, 1, 1], "padding": "SAME", **attrs})
    window = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    yield gradient(r, "MaxPool", input=image(), attrs=window)
    yield gradient(r, "AvgPool", value=image(), attrs=window)
    yield gradient(r, "MaxPoolGrad", orig_input=image(), orig_output=r.normal((1, 2, 2, 2)), grad=r.normal((1, 2, 2, 2)), attrs=window)
    yield gradient(r, "BiasAdd", value=image(), bias=r.normal((2,)))


@tf.function(autograph=False)
def inner(x):
    return R.Tanh(x=x) * x


@tf.function(autograph=False)
def several(x, w, unused):
    """x is read thrice; a second result, integers, and an argument that nothing depends on."""
    h = R.Relu(features=R.MatMul(a=x, b=w))
    total = R.Sum(input=R.Mul(x=h, y=R.Exp(x=h)), axis=R.Range(start=0, limit=R.Rank(input=h), delta=1))
    return total, R.StopGradient(input=x) + R.Neg(x=x)


@tf.function(autograph=False)
def same(x):
    return R.Identity(input=x)


@tf.function(autograph=False)
def unknown(x):
    return R.Cholesky(input=x)


def of_functions(r):

    def case_of(function, name, values, dys, error=None):

        def build():
            xs, gs = placeholders(values), placeholders(dys)
            concrete = function.get_concrete_function(*[tf.TensorSpec(x.shape, x.dtype) for x in xs])
            concrete.add_to_graph(tf.compat.v1.get_default_graph())
            f = attr_value_pb2.NameAttrList(name=concrete.name)
            out = R.SymbolicGradient(input=xs + gs, Tout=[x.dtype for x in xs], f=f)
            return [Step(fetch=list(out), feed=dict(zip(xs + gs, values + dys)), error=error)]

        return graph_case("SymbolicGradient", build, name=name)

    yield case_of(several, "of_a_function", [r.normal((2, 3)), r.normal((3, 4)), r.normal((2,))], [r.normal(()), r.normal((2, 3))])
    yield case_of(same, "of_an_identity", [r.normal((2,))], [r.normal((2,))])
    yield case_of(unknown, "of_an_op_without", [np.eye(2, dtype=np.float32)], [r.normal((2, 2))], error="No gradient defined for op: Cholesky")


def cases(r):
    for family in [of_ops, of_reductions, of_arrays, of_layers, of_functions]:
        yield from family(r)
