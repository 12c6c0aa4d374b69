"""Gradients of elementwise functions and of BiasAdd."""
from op_cases import *

INEXACT = FLOATING + COMPLEX
ACTIVATIONS = {"ReluGrad": REALS, "Relu6Grad": REALS, "LeakyReluGrad": FLOATING, "EluGrad": FLOATING,
               "SeluGrad": FLOATING, "SoftplusGrad": FLOATING, "SoftsignGrad": FLOATING}
FUNCTIONS = {op: INEXACT for op in ("SigmoidGrad", "TanhGrad", "ReciprocalGrad", "InvGrad", "SqrtGrad", "RsqrtGrad")}


def tol(t):
    # TensorFlow rounds 16-bit values after every step.
    return {"half": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}.get(t)


def pairs(v):
    """Every value against every other, two vectors."""
    return np.repeat(v, len(v)), np.tile(v, len(v))


def cases(r):
    for op, types in {**ACTIVATIONS, **FUNCTIONS}.items():
        for t in types:
            yield case(op, r.numbers(t, (2, 9)), r.numbers(t, (2, 9)), name=t, tol=tol(t))
        for shape in ((), (0, 3), (2, 0, 3), (2, 1, 3, 2)):
            yield case(op, r.normal(shape), r.normal(shape), name="shape")
        for t in FLOATS:
            values = np.array([0, -0.0, 1, -1, 6, 6.5, 0.25, -30, np.inf, -np.inf, np.nan], np_type(t))
            yield case(op, *pairs(values), name="edge_" + t)
        yield case(op, r.normal((3,)), r.normal((4,)), error="must have")
        if op in ACTIVATIONS:
            yield case(op, r.normal((2, 3)), r.normal((3, 2)), error="must have the same size and shape")
        else:
            yield case(op, r.normal((2, 3)), r.normal((6,)), name="other_shape")
    for t in ("int8", "uint8", "int32"):
        yield case("ReluGrad", *pairs(edge(t)), name="edge_" + t)
        yield case("Relu6Grad", *pairs(edge(t)), name="edge_" + t)
    for alpha in (0.0, 1.5, -0.5):
        yield case("LeakyReluGrad", r.normal((7,)), r.normal((7,)), alpha=alpha, name="alpha")
    for t in NUMBERS:
        yield case("BiasAddGrad", r.numbers(t, (4, 3)), name=t, tol=tol(t))
    for shape in ((2, 3), (2, 3, 4), (2, 3, 2, 2), (2, 3, 1, 2, 2), (1, 2, 1, 2, 1, 3)):
        for f in ("NHWC", "NCHW"):
            yield case("BiasAddGrad", r.normal(shape), data_format=f, name=f)
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        yield case("BiasAddGrad", r.normal(shape), name="empty")
    yield case("BiasAddGrad", np.full((3, 2), 2**31 - 1, np.int32), name="wraps")
    yield case("BiasAddGrad", np.array([[1, np.inf], [np.nan, -np.inf]], np.float32), name="edge")
    yield case("BiasAddGrad", r.normal((40, 2), "half", 100), name="half_long", tol=tol("half"))
    yield case("BiasAddGrad", r.normal((3,)), error="Input tensor must be at least 2D: [3]")
    yield case("BiasAddGrad", r.normal(()), error="Input tensor must be at least 2D")
