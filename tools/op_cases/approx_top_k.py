"""ApproxTopK, which TensorFlow's CPU answers exactly."""
from op_cases import *


def cases(r):
    for t in ["float", "half", "bfloat16"]:
        for shape in [(8,), (2, 8), (0, 4), (2, 3, 5)]:
            for k in [0, 1, 3, shape[-1]]:
                yield case("ApproxTopK", r.numbers(t, shape), k=k, static=True)
        yield case("ApproxTopK", r.numbers(t, (40,)), k=4, recall_target=0.5, static=True)
    yield case("ApproxTopK", np.array([1, 1, 2, 2, -np.inf, 0], np.float32), k=5, static=True)
