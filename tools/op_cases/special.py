"""Special functions: Bessel functions, integrals, the incomplete gamma function's derivative."""
from op_cases import *

BESSEL = ["BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e",
          "BesselK1", "BesselK1e", "BesselY0", "BesselY1"]
INTEGRALS = ["Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence"]
# TensorFlow computes float in float, so a few digits go.
NEAR = {"half": (4e-3, 1e-3), "float": (1e-4, 1e-5), "double": (1e-9, 1e-12)}
# Eigen's on both sides: apart by what its versions make of logarithms, exponentials and roots.
EIGEN = {"half": (4e-3, 1e-3), "float": (2e-6, 1e-7), "double": (1e-12, 1e-15)}
EIGEN_GAMMA = {"float": (2e-5, 1e-7), "double": (1e-12, 1e-15)}


def cases(r):
    for op in BESSEL + INTEGRALS:
        near = EIGEN if op in BESSEL else NEAR
        for t in FLOATS + (["half"] if op in BESSEL else []):
            d = np_type(t)
            small = [0.0, 1e-3, 0.1, 0.3, 0.5, 0.9, 1, 1.4, 1.6, 1.99, 2.01, 2.5, 3.3, 4.9, 5.1, 7.9, 8.1]
            yield case(op, np.array(small, d), name=t, tol=near[t])
            yield case(op, -np.array(small[1:], d), name=t + "_negative", tol=near[t])
            yield case(op, r.uniform((2, 20), 0, 12, t=t), name=t, tol=near[t])
            yield case(op, np.zeros((2, 0), d), name=t + "_empty")
            yield case(op, np.array([np.inf, -np.inf, np.nan], d), name=t + "_not_finite")
            yield case(op, d.type(1.25), name=t + "_scalar", tol=near[t])
            if t == "half":
                continue
            large = [11.5, 15, 20, 29, 31, 40] + ([] if op.startswith("Fresnel") and t == "float" else [75])
            if t == "double" and op != "Expint":
                large += [300, 1e3, 1e5]
            far = near[t] if op in BESSEL else (5e-4, 1e-4) if t == "float" else (1e-8, 1e-10)
            yield case(op, np.array(large, d), name=t + "_large", tol=far)
            yield case(op, np.array([1e-30, 1e-8, 1e-5], d), name=t + "_tiny", tol=near[t])
    for t in FLOATS:
        yield case("Dawsn", np.array([1e8, -1e8, 1e9, -1e9, 1e10, -1e10], np_type(t)), name=t + "_sign", tol=(1e-4, 0))
    op = "IgammaGradA"
    for t in FLOATS:
        d = np_type(t)
        yield case(op, r.uniform((20,), 0.1, 10, t=t), r.uniform((20,), 0.1, 10, t=t), name=t, tol=EIGEN_GAMMA[t])
        yield case(op, np.array([0, 1, 1, 1, -1, np.nan], d), np.array([1, 0, 1, -1, 1, 1], d), name=t + "_edge", tol=EIGEN_GAMMA[t])
        yield case(op, np.array([1, 2, 2, 50, 0.1], d), np.array([100, 1e-5, 3, 1, 0.2], d), name=t + "_far", tol=EIGEN_GAMMA[t])
        yield case(op, np.array([[1], [2]], d), np.array([1, 2, 3], d), name=t + "_broadcast", tol=EIGEN_GAMMA[t])
        yield case(op, np.zeros((0,), d), d.type(1), name=t + "_empty")
    yield case(op, np.ones(2, np.float32), np.ones(3, np.float32), error="Incompatible shapes: [2] vs. [3]")
