"""Elementwise ops: unary, binary with broadcasting, comparisons, selection, casts, fake quantization."""
from op_cases import *
from tensorflow.python.framework import dtypes

INEXACT = FLOATING + COMPLEX
SQUARED_TYPES = FLOATING + ["int32", "int64"] + COMPLEX
MOD_TYPES = ["float", "double", "int32", "int64"]

# op -> types of TensorFlow's CPU kernels
UNARY = {
    "Abs": FLOATING + SIGNED, "Neg": FLOATING + SIGNED + COMPLEX, "Sign": FLOATING + SIGNED + COMPLEX,
    "Square": NUMBERS, "Sqrt": INEXACT, "Rsqrt": INEXACT, "Reciprocal": INEXACT, "Inv": INEXACT,
    "Exp": INEXACT, "Expm1": INEXACT, "Log": INEXACT, "Log1p": INEXACT, "Sin": INEXACT, "Cos": INEXACT,
    "Tan": INEXACT, "Asin": INEXACT, "Acos": INEXACT, "Atan": INEXACT, "Sinh": INEXACT,
    "Cosh": INEXACT, "Tanh": INEXACT, "Asinh": INEXACT, "Acosh": INEXACT, "Atanh": INEXACT,
    "Sigmoid": INEXACT, "Erf": FLOATING, "Erfc": FLOATING, "Erfinv": FLOATS, "Ndtri": FLOATS,
    "Lgamma": FLOATS + ["half"], "Digamma": FLOATS + ["half"], "Floor": FLOATING, "Ceil": FLOATING,
    "Round": FLOATING, "Rint": FLOATS, "Relu": REALS, "Relu6": REALS,
    "Elu": FLOATING, "Selu": FLOATING, "Softplus": FLOATING, "Softsign": FLOATING,
    "LeakyRelu": FLOATING, "IsNan": FLOATING, "IsInf": FLOATING, "IsFinite": FLOATING,
    "Invert": INTS, "PopulationCount": INTS, "ZerosLike": NUMBERS + ["bool", "string"],
    "OnesLike": NUMBERS + ["bool"],
}
# Where edge values say nothing: results depend on subnormals, on huge arguments' reduction, or differ
# between TensorFlow's scalar and vector paths.
NO_EDGES = {"Sin", "Cos", "Tan", "Lgamma", "Digamma", "Asinh", "Sinh", "Cosh"}
# Ranges of real inputs inside the domain of the op; complex inputs need none.
DOMAIN = {"Erfinv": (-0.999, 0.999), "Ndtri": (0.001, 0.999), "Sqrt": (0, 9), "Rsqrt": (0.1, 9),
          "Log": (0.01, 20), "Log1p": (-0.9, 20), "Asin": (-1, 1), "Acos": (-1, 1), "Acosh": (1, 9),
          "Atanh": (-0.95, 0.95), "Lgamma": (0.1, 9), "Digamma": (1.6, 9), "Reciprocal": (0.2, 5),
          "Inv": (0.2, 5)}

BINARY = {
    "Add": [t for t in NUMBERS if t not in ("uint16", "uint32", "uint64")], "AddV2": NUMBERS,
    "Sub": NUMBERS, "Mul": NUMBERS, "Div": NUMBERS, "RealDiv": INEXACT, "FloorDiv": REALS,
    "TruncateDiv": REALS, "FloorMod": REALS, "TruncateMod": MOD_TYPES, "Mod": MOD_TYPES,
    "DivNoNan": INEXACT, "MulNoNan": INEXACT, "Maximum": REALS, "Minimum": REALS,
    "SquaredDifference": SQUARED_TYPES, "Atan2": FLOATING, "Xdivy": INEXACT, "Xlogy": INEXACT,
    "Xlog1py": INEXACT, "NextAfter": FLOATS,
    "Equal": NUMBERS + ["bool", "string"], "NotEqual": NUMBERS + ["bool", "string"],
    "Less": REALS, "LessEqual": REALS, "Greater": REALS, "GreaterEqual": REALS,
    "BitwiseAnd": INTS, "BitwiseOr": INTS, "BitwiseXor": INTS,
}


def spread(r, op, t, shape):
    """Inputs inside the op's domain."""
    if t in FLOATING and op in DOMAIN:
        lo, hi = DOMAIN[op]
        return r.uniform(shape, lo, hi, t)
    return r.numbers(t, shape)


def other(r, op, t, shape):
    """A right operand that suits the op."""
    if "Div" in op or "Mod" in op or op == "Xdivy":
        if t in INTS:
            v = r.ints(shape, 1, 6, t)
            return (v * np.where(r.bools(shape), 1, -1)).astype(v.dtype) if t in SIGNED else v
        if t in FLOATING and op not in ("DivNoNan",):
            return (r.uniform(shape, 0.5, 2, t) * np.where(r.bools(shape), 1, -1)).astype(np_type(t))
    if op in ("Xlogy", "Xlog1py") and t in FLOATING:
        return r.uniform(shape, 0.1, 4, t)
    return r.numbers(t, shape)


def unary(r):
    for op, types in UNARY.items():
        more = {"alpha": 0.3} if op == "LeakyRelu" else {}
        for t in types:
            tol = None
            if t == "half" and op in ("Lgamma", "Digamma", "Tan", "Selu", "Elu", "Expm1", "Log1p"):
                tol = (5e-3, 2e-3)
            if t == "bfloat16":
                tol = (2e-2, 1e-2)
            yield case(op, spread(r, op, t, (2, 3)), name=t, tol=tol, **more)
        for shape in [(), (0,), (2, 0, 3), (1, 2, 1, 3)]:
            yield case(op, spread(r, op, types[0], shape), name="shape", **more)
        yield case(op, spread(r, op, types[0], (97,)), name="long", **more)
        if op in NO_EDGES or types[0] not in FLOATS:
            continue
        for t in [t for t in types if t in ("float", "half", "int32", "int8")]:
            e = edge(t)
            if t in FLOATING:
                # Magnitudes at the ends of the range are left out: libraries flush them differently.
                e = e[(np.abs(e) < 1e4) & (np.abs(e) > 1e-6) | (e == 0) | ~np.isfinite(e)]
            yield case(op, e, name="edge_" + t, **more)


def binary(r):
    for op, types in BINARY.items():
        for t in types:
            tol = (2e-2, 1e-2) if t == "bfloat16" else (4e-3, 2e-3) if t == "half" else None
            yield case(op, r.numbers(t, (2, 3)), other(r, op, t, (2, 3)), name=t, tol=tol)
            yield case(op, r.numbers(t, (2, 1, 3)), other(r, op, t, (4, 1)), name="bcast_" + t, tol=tol)
        t = types[0] if types[0] in FLOATS else types[2]
        for a, b in BROADCASTS + [((37, 2), (2,)), ((2,), (37, 2)), ((33, 3), (33, 1)),
                                  ((3, 1, 5), (1, 4, 1)), ((5, 1, 2, 2), (1, 6, 1, 2)), ((120,), (1,))]:
            yield case(op, r.numbers(t, a), other(r, op, t, b), name="shapes")
        yield case(op, r.numbers(t, (2, 3)), other(r, op, t, (4,)), name="incompatible",
                   error="Incompatible shapes: [2,3] vs. [4]")
        yield case(op, r.numbers(t, (0, 3)), other(r, op, t, (2, 3)), name="incompatible_empty",
                   error="Incompatible shapes: [0,3] vs. [2,3]")
    f = lambda *v: array("float", v)
    nan, inf = np.nan, np.inf
    pairs = [f(nan, 1, 0, -0.0, inf, -inf, nan, inf, 3), f(1, nan, -0.0, 0, 1, 2, nan, inf, -inf)]
    for op in ["Maximum", "Minimum", "Add", "Mul", "Sub", "RealDiv", "FloorDiv", "TruncateDiv", "FloorMod",
               "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "MulNoNan",
               "DivNoNan", "Xdivy", "Xlogy", "Xlog1py", "SquaredDifference", "Atan2"]:
        yield case(op, *pairs, name="edge")
        yield case(op, pairs[1], pairs[0], name="edge_swapped")
    for op in ["Div", "FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod", "Mod"]:
        words = "Unexpected error" if op.startswith("Truncate") else "Integer division by zero"
        yield case(op, i32([1, 2]), i32([1, 0]), name="zero", error=words)
        yield case(op, i32([[1, 2]]), i32(0), name="zero_scalar", error=words)
        yield case(op, np.zeros((0, 2), np.int32), i32([1, 0]), name="zero_unused")
        yield case(op, i64([7, -7, 7, -7, 6, -6]), i64([2, 2, -2, -2, -3, -3]), name="signs")
        yield case(op, f(7.5, -7.5, 7.5, -7.5, 1, -1), f(2, 2, -2, -2, np.inf, np.inf), name="signs")
    for t in HALVES:
        yield case("TruncateDiv", array(t, [-1.09375, 10.984375, 2047.5, 7]), array(t, [0.0996094, 1, 1, 2]), name="rounds_" + t)
    for t in ["int32", "int64"]:
        yield case("FloorDiv", array(t, [np.iinfo(np_type(t)).min]), array(t, [-1]), name="wrap_" + t)
    for t in SIGNED + ["uint8", "uint32"]:
        e = edge(t)
        for op in ["Add", "AddV2", "Sub", "Mul", "SquaredDifference"]:
            if t in BINARY[op]:
                yield case(op, e, e[::-1].copy(), name="wrap_" + t)
    for t in INTS:
        d = np.array([0, 1, 3, np_type(t).itemsize * 8 - 1, 2, 100], dtype=np_type(t))
        for op in ["LeftShift", "RightShift"]:
            yield case(op, edge(t)[:6], d, name=t)
            yield case(op, edge(t)[:3], d[:1], name="bcast_" + t)
    yield case("LeftShift", array("int8", [1, 2, 3]), array("int8", [-1, -8, 1]), name="negative")
    for op in ["LogicalAnd", "LogicalOr"]:
        for a, b in BROADCASTS:
            yield case(op, r.bools(a), r.bools(b), name="shapes")
        yield case(op, r.bools((2,)), r.bools((3,)), error="Incompatible shapes: [2] vs. [3]")
    for shape in [(), (3,), (0,), (2, 3), (97,), (1, 2)]:
        yield case("LogicalNot", r.bools(shape))


def powers_and_special(r):
    for t in FLOATS:
        yield case("Pow", r.uniform((2, 3), 0.1, 3, t), r.normal((2, 3), t), name=t)
        yield case("Pow", array(t, [0, 0, -2, -2, 4, 2]), array(t, [0, 2, 3, 0.5, -0.5, 10]), name="edge_" + t)
    for t in HALVES:
        yield case("Pow", r.uniform((2, 3), 0.5, 2, t), r.normal((3,), t), name=t, tol=(2e-2, 1e-2))
    for t in COMPLEX:
        yield case("Pow", r.numbers(t, (2, 3)), r.numbers(t, (2, 3)), name=t)
    for t in SIGNED:
        yield case("Pow", array(t, [2, 3, -3, 0, 1, -1]), array(t, [3, 2, 3, 0, 5, 7]), name=t)
    yield case("Pow", i32([2, 3, 10]), i32([40, 31, 20]), name="wrap")
    yield case("Pow", i32([2, 3]), i32([2, -1]), error="Integers to negative integer powers are not allowed")
    yield case("Pow", i32([2, 3]), i32(-1), error="Integers to negative integer powers are not allowed")
    yield case("Pow", np.zeros((0, 1), np.int32), i32([-1]), name="empty")
    yield case("Pow", r.uniform((2, 3)), r.uniform((2,)), error="Incompatible shapes: [2,3] vs. [2]")
    for t in FLOATS:
        tol = (2e-5, 1e-7) if t == "float" else (1e-12, 1e-15)
        a, x = r.uniform((4, 3), 0.2, 9, t), r.uniform((4, 3), 0.1, 12, t)
        for op in ["Igamma", "Igammac"]:
            yield case(op, a, x, name=t, tol=tol)
            yield case(op, a, x[:1], name="bcast_" + t, tol=tol)
            yield case(op, a[0], array(t, 2.5), name="scalar_" + t, tol=tol)
            yield case(op, array(t, [1, 2, -1, 0, 3]), array(t, [0, -1, 1, 2, 200]), name="edge_" + t, tol=tol)
        yield case("Igamma", a, r.uniform((2,), t=t), error="Incompatible shapes")
        yield case("Igammac", a, r.uniform((2,), t=t), error="Incompatible shapes")
        yield case("Zeta", r.uniform((2, 3), 1.5, 6, t), r.uniform((2, 3), 0.5, 8, t), name=t, tol=tol)
        yield case("Zeta", array(t, [1, 0.5, 2, 3]), array(t, [2, 2, 1, 1]), name="edge_" + t, tol=tol)
        yield case("Zeta", array(t, 3), r.uniform((3,), 0.5, 8, t), name="scalar_" + t, tol=tol)
        # Negative second arguments: only whole first ones have an answer.
        yield case("Zeta", array(t, [2, 3, 2, 3, 5, 4, 2, 7, 11]),
                   array(t, [-0.5, -0.5, -1.25, -2.75, -7.5, -8.25, -9.5, -20.5, -29.75]), name="negative_" + t, tol=tol)
        yield case("Zeta", array(t, [2, 3, 4, 5, 2.5, np.inf, np.inf, 2, 0.5, np.nan, 2, 2]),
                   array(t, [-2, -2, 0, 0, -1.5, -1.5, -3, -1000.5, -0.5, -0.5, np.nan, -np.inf]),
                   name="poles_" + t, tol=tol)
        yield case("Polygamma", array(t, [1, 2, 3, 1, 2, 1, 2, 0, 5]),
                   array(t, [-0.5, -0.5, -2.5, -20.5, -20.5, -3, -3, -1.5, -0.25]), name="negative_" + t, tol=tol)
        yield case("Polygamma", array(t, [0, 1, 2, 3, 1]), array(t, [2.5, 1.5, 3, 2, 8]), name=t, tol=tol)
        yield case("Polygamma", array(t, 1), r.uniform((2, 3), 1, 8, t), name="scalar_" + t, tol=tol)
        yield case("Polygamma", array(t, [0.5, 2]), array(t, [2, 2]), name="fraction_" + t, tol=tol)
        b = [r.uniform((2, 3), 0.5, 5, t), r.uniform((2, 3), 0.5, 5, t), r.uniform((2, 3), 0.01, 0.99, t)]
        yield case("Betainc", *b, name=t, tol=tol)
        yield case("Betainc", array(t, 2), b[1], array(t, 0.3), name="scalar_" + t, tol=tol)
        yield case("Betainc", array(t, 2), array(t, 3), b[2], name="scalars_" + t, tol=tol)
    yield case("Betainc", r.uniform((2,)), r.uniform((3,)), r.uniform((2,)), name="shapes", error="inconsistent")
    for t in FLOATS:
        yield case("Digamma", array(t, [-0.5, 0.3, 12.5, -3.25]), name="reflect_" + t, tol=(2e-6, 1e-8))
        yield case("Lgamma", array(t, [-0.5, 1, 2, 30.5, 0]), name="reflect_" + t)
        yield case("Erfinv", array(t, [-1, 1, 0, 2, 1e-5, -0.99999]), name="ends_" + t, tol=(2e-6, 1e-10))
        yield case("Ndtri", array(t, [0, 1, 0.5, 2, 1e-4, 0.9999]), name="ends_" + t, tol=(2e-6, 1e-8))
        yield case("Sigmoid", array(t, [-80, -20, 20, 80]), name="far_" + t)
        yield case("Softplus", array(t, [-80, -20, -13, 13, 20, 80]), name="far_" + t)
        yield case("Tanh", array(t, [1e-3, -1e-3, 9, -9, 40]), name="far_" + t)
        yield case("Exp", array(t, [-80, -5.5, 1e-4, 80, 100]), name="far_" + t)
        yield case("Sin", array(t, [100.5, -1000.25, 12345.75, 3.1415927]), name="far_" + t)
        yield case("Cos", array(t, [100.5, -1000.25, 12345.75, 1.5707964]), name="far_" + t)
        yield case("Expm1", array(t, [1e-6, -1e-6, 0.1, -30, 60]), name="far_" + t, tol=(1e-5, 1e-12))
        yield case("Log1p", array(t, [1e-6, -1e-6, -1, -2, 1e6]), name="far_" + t, tol=(1e-5, 1e-12))
        yield case("Round", array(t, [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e7]), name="ties_" + t)
        yield case("Rint", array(t, [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e7]), name="ties_" + t)


def complex_parts(r):
    for t, out in [("complex64", "float"), ("complex128", "double")]:
        for op in ["Real", "Imag", "Angle", "ComplexAbs"]:
            for shape in [(), (0,), (2, 3), (17,)]:
                yield case(op, r.numbers(t, shape), name=t, Tout=tf.as_dtype(out))
            yield case(op, edge(t), name="edge_" + t, Tout=tf.as_dtype(out))
        for shape in [(), (0,), (2, 3), (17,)]:
            yield case("Conj", r.numbers(t, shape), name=t)
        for a, b in BROADCASTS[:8]:
            yield case("Complex", r.numbers(out, a), r.numbers(out, b), name=t, Tout=tf.as_dtype(t))
        yield case("Complex", r.numbers(out, (2,)), r.numbers(out, (3,)), name=t, Tout=tf.as_dtype(t),
                   error="Incompatible shapes: [2] vs. [3]")


def equality(r):
    for op in ["Equal", "NotEqual"]:
        for t in ["float", "string", "int32", "bool"]:
            yield case(op, r.numbers(t, (2,)), r.numbers(t, (3,)), name="differ_" + t,
                       incompatible_shape_error=False)
            yield case(op, r.numbers(t, (2,)), r.numbers(t, (3,)), name="incompatible_" + t,
                       error="Incompatible shapes: [2] vs. [3]")
        words = array("string", [b"a", b"bc", b"", b"a\x00"])
        yield case(op, words, words[::-1].copy(), name="strings")
        yield case(op, words.reshape(4, 1), words, name="strings_bcast")
    for op in ["Add"]:
        words = array("string", [b"a", b"bc", b""])
        yield case(op, words, array("string", [b"x", b"", b"yz"]), name="string")
        yield case(op, words.reshape(3, 1), words, name="string_bcast")
        yield case(op, words, array("string", b"!"), name="string_scalar")
        yield case(op, words[:0], array("string", b"!"), name="string_empty")
        yield case(op, words, words[:2], name="string_incompatible", error="Incompatible shapes: [3] vs. [2]")
    for t in FLOATS:
        a = r.numbers(t, (2, 3))
        yield case("ApproximateEqual", a, a + np_type(t).type(5e-6), name=t)
        yield case("ApproximateEqual", a, a + np_type(t).type(0.01), name=t)
        yield case("ApproximateEqual", a, a + np_type(t).type(0.01), name="tolerance_" + t, tolerance=0.1)
        yield case("ApproximateEqual", a, a[:1], name=t, error="x and y must be of the same shape")
    yield case("ApproximateEqual", edge("float"), edge("float")[::-1].copy())


def select(r):
    types = ["float", "double", "half", "int8", "int64", "bool", "complex128", "string"]
    for t in types:
        a, b = r.numbers(t, (2, 3)), r.numbers(t, (2, 3))
        yield case("Select", r.bools((2, 3)), a, b, name=t)
        yield case("Select", np.array([True, False]), a, b, name="rows_" + t)
        yield case("Select", np.array(True), a, b, name="scalar_" + t)
        yield case("SelectV2", r.bools((2, 3)), a, b, name=t)
        yield case("SelectV2", r.bools((2, 1)), a, b[0], name="bcast_" + t)
        yield case("SelectV2", np.array(False), a, b[:, :1], name="scalar_" + t)
        yield case("SelectV2", r.bools((4, 1, 1)), a, r.numbers(t, ()), name="wide_" + t)
        yield case("SelectV2", r.bools((70,)), r.numbers(t, (70,)), r.numbers(t, ()), name="long_" + t)
        yield case("SelectV2", r.bools((70,)), r.numbers(t, ()), r.numbers(t, (70,)), name="long_" + t)
        yield case("SelectV2", r.bools((3,)), r.numbers(t, ()), r.numbers(t, ()), name="condition_" + t)
        yield case("SelectV2", r.bools((0, 3)), r.numbers(t, (1, 3)), r.numbers(t, ()), name="empty_" + t)
    o = np.ones
    f = np.float32
    yield case("Select", np.array([True, False]), o(2, f), o(2, f) * 2)
    yield case("Select", np.array([True]), o((1, 0, 3), f), o((1, 0, 3), f), name="empty")
    yield case("Select", np.array([True, False]), o((3, 2), f), o((3, 2), f),
               error="Number of batches of 'then' must match size of 'cond', but saw: 3 vs. 2")
    yield case("Select", np.array([True, False]), o(2, f), o(3, f), error="must have the same size and shape")
    yield case("Select", np.array([[True, False]]), o(2, f), o(2, f), error="Input 0: [1,2] != input 1: [2]")
    yield case("Select", np.array(True), o(2, f), o(3, f),
               error="'then' and 'else' must have the same size.  but received: [2] vs. [3]")
    yield case("Select", np.array([True]), f(1), f(2), error="'then' must be at least a vector, but saw shape: []")
    yield case("Select", o((2, 2), bool), o((2, 3), f), o((2, 3), f), error="Input 0: [2,2] != input 1: [2,3]")
    yield case("SelectV2", o((2, 2), bool), o((2, 3), f), o((2, 3), f),
               error="condition [2,2], then [2,3], and else [2,3] must be broadcastable")
    yield case("SelectV2", o(1, bool), o((2, 3), f), o((3, 3), f),
               error="condition [1], then [2,3], and else [3,3] must be broadcastable")


def there_and_back(v, t):
    """To type t, which has no text form, and to float."""
    x = tf.compat.v1.placeholder(v.dtype, v.shape)
    y = tf.raw_ops.Cast(x=tf.raw_ops.Cast(x=x, DstT=t), DstT=tf.float32)
    return [Step(fetch=[y], feed={x: v})]


def casts(r):
    types = NUMBERS + ["bool"]
    for s in types:
        for d in types:
            if s == "bool":
                v = np.array([True, False, True])
            elif s in INTS:
                v = array(s, [0, 1, 2, 100]) if s in UNSIGNED else array(s, [0, 1, -1, 100, -7])
            elif s in FLOATING:
                v = array(s, [0, 1.75, 2.5, 100.25, -0.0]) if d in UNSIGNED else array(
                    s, [0, 1.75, -1.75, 100.25, -7.5, 0.1])
            else:
                v = array(s, [0, 1.75 + 2j, 100.25, 3j])
            yield case("Cast", v, name=f"{s}_{d}", DstT=tf.as_dtype(d))
    for d in INTS:
        for s in ["float", "double"]:
            for k, v in enumerate([np.nan, np.inf, -np.inf, 1e10, -1e10, 300.0, -129.0, 70000.0, 3e9, 1e19]):
                yield case("Cast", array(s, [v]), name=f"out_{s}_{d}_{k}", DstT=tf.as_dtype(d))
        for s in INTS:
            yield case("Cast", edge(s), name=f"wrap_{s}_{d}", DstT=tf.as_dtype(d))
    wide = array("float", [3.14159265, 1.0009766, 65519, 65520, 1e-8, -2.7182818, 1e30, np.nan, np.inf,
                           1 + 2**-11, 1 + 3 * 2**-11, 3e-8, 6.1e-5, -1e-5])
    for truncate in [False, True]:
        for d in ["half", "bfloat16"]:
            yield case("Cast", wide, name=f"narrow_{d}", DstT=tf.as_dtype(d), Truncate=truncate, tol=(0, 0))
            yield case("Cast", wide.astype(np.float64), name=f"narrow_double_{d}", DstT=tf.as_dtype(d),
                       Truncate=truncate, tol=(0, 0))
        yield case("Cast", array("double", [0.1, 1e300, 1 / 3]), name="narrow", DstT=tf.float32,
                   Truncate=truncate, tol=(0, 0))
    for t in HALVES:
        yield case("Cast", edge(t), name="widen_" + t, DstT=tf.float32)
        yield case("Cast", edge(t), name="widen_" + t, DstT=tf.bool)
    yield case("Cast", r.numbers("float", (2, 0)), name="empty", DstT=tf.int32)
    yield case("Cast", r.normal((180,), scale=50), name="long", DstT=tf.int32)
    yield case("Cast", r.numbers("string", (3,)), name="string", DstT=tf.int32,
               error="Cast string to int32 is not supported")
    yield case("Cast", r.numbers("float", (3,)), name="string", DstT=tf.string,
               error="Cast float to string is not supported")
    yield case("Cast", r.numbers("string", (3,)), name="same", DstT=tf.string)

    for d in ["int8", "int16", "int64", "uint8", "uint32"]:
        for t in ["int4", "uint4"]:
            yield case("Cast", array(d, [0, 1, 7, 8, 15, 100]), name=f"{d}_{t}", DstT=getattr(dtypes, t))
    for s in ["float", "double", "half", "bfloat16"]:
        v = array(s, [0, 1, -9, 8.3, 17, 300, 0.01, -0.0, 1e-4, 500, 6e4, np.nan, np.inf])
        for t in ["float8_e5m2", "float8_e4m3fn"]:
            yield graph_case("Cast", lambda v=v, t=t: there_and_back(v, getattr(dtypes, t)), name=f"{s}_{t}")

    i = i32([[1, 2], [3, 4]])
    for v, d in [(i, "float"), (i, "int64"), (i, "uint8"), (i, "int16"), (i, "bfloat16"), (i32(258), "uint8"),
                 (array("double", [[1.5]]), "complex64"), (array("complex64", [1 + 2j]), "float"),
                 (np.zeros((0, 2), np.int32), "double"), (np.zeros((2, 0), np.int32), "uint8")]:
        yield case("Bitcast", v, name=d, type=tf.as_dtype(d))
    yield case("Bitcast", i32([1, 2, 3]), type=tf.int64, error="Cannot bitcast from 3 to 9")
    yield case("Bitcast", i32(1), type=tf.int64, error="Cannot bitcast from 3 to 9")


def sums(r):
    for t in NUMBERS:
        for n in [1, 2, 5]:
            yield case("AddN", [r.numbers(t, (2, 3)) for _ in range(n)], name=t)
        yield case("BiasAdd", r.numbers(t, (2, 3)), r.numbers(t, (3,)), name=t)
        yield case("BiasAdd", r.numbers(t, (2, 3, 2, 2)), r.numbers(t, (3,)), name="first_" + t, data_format="NCHW")
        yield case("BiasAddV1", r.numbers(t, (2, 4, 3)), r.numbers(t, (3,)), name=t)
    for shape in [(), (0,), (2, 0, 3), (150,)]:
        yield case("AddN", [r.numbers("float", shape) for _ in range(3)], name="shape")
        yield case("AccumulateNV2", [r.numbers("float", shape) for _ in range(3)], shape=list(shape))
    yield case("AddN", [r.numbers("float", (2, 3)), r.numbers("float", (3,))],
               error="must have the same size and shape.  Input 0: [2,3] != input 1: [3]")
    for shape in [(0, 3), (2, 0), (4, 5, 3), (2, 2, 2, 3), (1, 2, 2, 2, 3), (1, 2, 1, 2, 1, 3)]:
        yield case("BiasAdd", r.numbers("float", shape), r.numbers("float", shape[-1:]))
    for shape in [(2, 3), (2, 3, 4), (2, 3, 4, 2), (1, 3, 2, 2, 2), (0, 3, 2, 2), (2, 3, 0, 2)]:
        yield case("BiasAdd", r.numbers("float", shape), r.numbers("float", (3,)), data_format="NCHW")
    for v, b, words in [((2, 3), (2,), "Must provide as many biases as the last dimension of the input tensor: [2] vs. [2,3]"),
                        ((2,), (2,), "Input tensor must be at least 2D: [2]"),
                        ((2, 2), (2, 1), "Biases must be 1D: [2,1]")]:
        for op in ["BiasAdd", "BiasAddV1"]:
            yield case(op, r.numbers("float", v), r.numbers("float", b), error=words)
    yield case("BiasAdd", r.numbers("float", (1, 2, 3, 3)), r.numbers("float", (3,)), data_format="NCHW",
               error="Must provide as many biases")

    for t in FLOATING + SIGNED + ["uint8", "uint16"] + COMPLEX:
        x, lo, hi = r.numbers(t, (2, 3)), array(t, 1), array(t, 2)
        yield case("ClipByValue", x, lo, hi, name=t)
        yield case("ClipByValue", x, x - lo, hi, name="low_" + t)
        yield case("ClipByValue", x, lo, x, name="high_" + t)
        yield case("ClipByValue", x, x, x, name="both_" + t)
    f = lambda *v: array("float", v)
    yield case("ClipByValue", f(1, np.nan, 5), array("float", 2), array("float", 1), name="crossed")
    yield case("ClipByValue", f(1, 5, 9), f(np.nan, np.nan, np.nan), array("float", 6), name="nan")
    yield case("ClipByValue", r.numbers("float", (0,)), array("float", 2), array("float", 1), name="empty")
    yield case("ClipByValue", r.numbers("float", (2, 3)), r.numbers("float", (3,)), array("float", 1),
               error="clip_value_min and clip_value_max must be either of the same shape as input")


def fake_quant(r):
    f = np.float32
    x = np.concatenate([np.linspace(-1.5, 2.5, 60), [0, -0.0, np.inf, -np.inf, np.nan]]).astype(f)
    halves = (np.arange(-20, 60) / 64 + 1 / 128).astype(f)
    ranges = [(-6, 6), (0, 1), (-1, 1), (-0.3, 0.7), (1, 2), (-2, -1), (0, 6), (-0.001, 0.9)]
    for lo, hi in ranges:
        for bits, narrow in [(8, False), (8, True), (4, True), (16, False), (2, False)]:
            more = dict(num_bits=bits, narrow_range=narrow)
            yield case("FakeQuantWithMinMaxArgs", x, min=lo, max=hi, **more)
            yield case("FakeQuantWithMinMaxVars", x, f(lo), f(hi), **more)
        yield case("FakeQuantWithMinMaxVars", halves, f(lo), f(hi), num_bits=6)
        yield case("FakeQuantWithMinMaxArgs", halves, min=lo, max=hi, num_bits=6)
    lows, highs = np.array([v[0] for v in ranges], f), np.array([v[1] for v in ranges], f)
    for shape in [(8,), (3, 8), (2, 2, 8), (1, 2, 2, 8), (0, 8)]:
        for narrow in [False, True]:
            yield case("FakeQuantWithMinMaxVarsPerChannel", r.normal(shape, scale=2), lows, highs, narrow_range=narrow)
    for lo, hi in ranges:
        yield case("FakeQuantWithMinMaxVarsPerChannel", np.stack([halves, halves], 1), f([lo, lo]), f([hi, hi]), num_bits=6)
    yield case("FakeQuantWithMinMaxVars", x, f(0), f(0), name="zero_range")
    yield case("FakeQuantWithMinMaxVars", x[:0], f(-1), f(1), name="empty")
    yield case("FakeQuantWithMinMaxVars", x, f([0]), f(1), error="`min` must be rank 0 but is rank 1")
    yield case("FakeQuantWithMinMaxVars", x, f(0), f([1]), error="`max` must be rank 0 but is rank 1")
    yield case("FakeQuantWithMinMaxVars", x, f(0), f(1), num_bits=1, error="num_bits must be between 2 and 16, inclusive")
    yield case("FakeQuantWithMinMaxVars", x, f(0), f(1), num_bits=17, error="num_bits must be between 2 and 16, inclusive")
    yield case("FakeQuantWithMinMaxArgs", x, min=1.0, max=-1.0, error="min has to be smaller than max, was: 1 >= -1")
    yield case("FakeQuantWithMinMaxArgs", x, num_bits=1, error="num_bits must be between 2 and 16, inclusive")
    o = np.ones((2, 3), f)
    yield case("FakeQuantWithMinMaxVarsPerChannel", o, f([0, 0]), f([1, 1, 1]), error="min has incorrect size, expected 3 was 2")
    yield case("FakeQuantWithMinMaxVarsPerChannel", o, f([0, 0, 0]), f([1]), error="max has incorrect size, expected 3 was 1")
    yield case("FakeQuantWithMinMaxVarsPerChannel", o, f(0), f([1, 1, 1]), error="`min` must be rank 1 but is rank 0")
    yield case("FakeQuantWithMinMaxVarsPerChannel", o, f([0, 0, 0]), f([0, 1, 2]), name="zero_range")

    for op in ["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"]:
        for t in FLOATS:
            v = r.normal((3, 4), t, 2)
            z = array(t, 0)
            for mode in ["HALF_TO_EVEN", "HALF_UP"]:
                yield case(op, v, z, z, name=t, round_mode=mode)
                yield case(op, v, array(t, -1), array(t, 1.5), name="given_" + t, range_given=True, round_mode=mode)
            yield case(op, np.abs(v), z, z, name="unsigned_" + t, signed_input=False)
            yield case(op, v, z, z, name="narrow_" + t, narrow_range=True, num_bits=4)
            yield case(op, v, array(t, -0.5), array(t, 3), name="given_narrow_" + t, range_given=True, narrow_range=True)
            for axis in [0, 1]:
                d = v.shape[axis]
                yield case(op, v, z, z, name="axis_" + t, axis=axis)
                low = -np.arange(1, d + 1).astype(v.dtype)
                yield case("QuantizeAndDequantizeV3", v, low, -low / 2, i32(8), name="axis_given_" + t, axis=axis)
            yield case(op, np.zeros((2, 2), v.dtype), z, z, name="zeros_" + t)
            yield case(op, v[:0], z, z, name="empty_" + t, range_given=True)
    v = r.normal((3, 4))
    op = "QuantizeAndDequantizeV2"
    yield case(op, v, f(1), f(-1), range_given=True, error="Invalid range: input_min 1 > input_max -1")
    yield case(op, v, f(0), f(0), num_bits=0, error="num_bits is out of range: 0 with signed_input_ 1")
    yield case(op, v, f(0), f(0), num_bits=63, error="num_bits is out of range: 63")
    for bits in [2, 8, 16]:
        yield case("QuantizeAndDequantizeV3", v, f(-1), f(1), i32(bits))
        yield case("QuantizeAndDequantizeV3", v, f(0), f(0), i32(bits), range_given=False)
    yield case(op, v, f([0]), f(1), range_given=True, error="input_min must be a scalar.")
    yield case(op, v, f(0), f([1]), range_given=True, error="input_max must be a scalar.")
    yield case("QuantizeAndDequantizeV3", v, f(0), f(0), i32([8]), error="should be a scalar. Got dimensions: 1")
    yield case("QuantizeAndDequantizeV3", v, f(0), f(0), i32(8), axis=2, error="Axis requested is larger")
    yield case("QuantizeAndDequantizeV3", v, f(0), f(0), i32(64), error="num_bits is out of range: 64")


# Cases beyond those above, in one family with the unary ones; elementwise_*.py are families of the others, so that no file
# of cases grows too long to read.


def more(r):
    yield case("BiasAddV1", r.normal((0, 3)), r.normal((3,)), name="empty")
    yield case("BiasAddV1", np.float32([[np.nan, np.inf]]), np.float32([1, -np.inf]), name="edge")
    for op in ("LeftShift", "RightShift"):
        yield case(op, i32([1, 2]), i32([1, 2, 3]), name="shapes", error="Incompatible shapes: [2] vs. [3]")
        yield case(op, i32([]), i32(1), name="empty")
    for t in ["double", "half", "bfloat16", "int8", "int64", "complex64"]:
        yield case("AccumulateNV2", [r.numbers(t, (2, 3)) for _ in range(3)], shape=[2, 3], name=t)
    yield case("AccumulateNV2", [r.numbers("float", (2,))], shape=[2], name="one")
    yield case("AccumulateNV2", [r.normal((2,)), r.normal((3,))], shape=[None], name="shapes", error="")
    for t in FLOATS:
        tol = (2e-5, 1e-7) if t == "float" else (1e-12, 1e-15)
        yield case("Zeta", r.uniform((0,), t=t), r.uniform((0,), t=t), name="empty_" + t, tol=tol)
        yield case("Zeta", r.uniform((2, 1), 1.5, 6, t), r.uniform((1, 3), 0.5, 8, t), name="bcast_" + t, tol=tol)
        yield case("Zeta", r.uniform((2,), 1.5, 6, t), r.uniform((3,), 0.5, 8, t), error="Incompatible shapes: [2] vs. [3]")
        yield case("Polygamma", r.uniform((0,), t=t), r.uniform((0,), t=t), name="empty_" + t, tol=tol)
        yield case("Polygamma", array(t, [[1], [2]]), r.uniform((1, 3), 0.5, 8, t), name="bcast_" + t, tol=tol)
        yield case("Polygamma", r.uniform((2,), t=t), r.uniform((3,), t=t), error="Incompatible shapes: [2] vs. [3]")
        e = lambda: r.uniform((0,), t=t)
        yield case("Betainc", e(), e(), e(), name="empty_" + t, tol=tol)
        yield case("Betainc", array(t, [1, 2, 1, -1, 0]), array(t, [1, 3, 2, 2, 1]), array(t, [0, 1, np.nan, 0.5, 0.5]),
                   name="edge_" + t, tol=tol)


def cases(r):
    yield from unary(r)
    yield from powers_and_special(r)
    yield from complex_parts(r)
    yield from more(r)
