"""16-bit functions of several steps: TensorFlow rounds each of them, and so must smelt, to the last bit."""
from . import array, case

UNARY = ["Elu", "Selu", "LeakyRelu", "Sigmoid", "Softplus", "Softsign"]
GRADIENTS = ["EluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad", "SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad"]
BINARY = ["SquaredDifference", "FloorDiv", "Xlogy", "Xlog1py"]


def cases(r):
    for t in ("half", "bfloat16"):
        for op in UNARY:
            yield case(op, r.normal((60,), t), name=t, tol=(0, 0))
            yield case(op, array(t, [-3e-4, -2e-3, -0.01, 1e-3, -7.5, -20, 2.88, 4.93, 7.1, 20, 90]), name="ends_" + t, tol=(0, 0))
        for op in GRADIENTS + BINARY:
            x, y = r.normal((60,), t), r.uniform((60,), 0.2, 3, t)
            yield case(op, x, y, name=t, tol=(0, 0))
    subnormal = array("half", [6e-5, 6e-8, -3e-5, 1.2e-7, 6.1e-5, 0])
    for op in ("Abs", "Neg", "Relu", "Identity"):
        yield case(op, subnormal, name="subnormal", tol=(0, 0))
    yield case("Cast", subnormal, DstT="float", name="subnormal", tol=(0, 0))
    yield case("AddV2", subnormal, array("half", [1e-4, 0, 0, 6e-8, -6e-5, 0]), name="subnormal", tol=(0, 0))
