"""Fourier transforms over the innermost dimension."""
from op_cases import *


def transforms(r):
    for n in (1, 2, 3, 5, 8, 12, 17):
        for op in ("FFT", "IFFT"):
            yield case(op, (r.normal((2, n)) + 1j * r.normal((2, n))).astype(np.complex64), tol=(1e-4, 1e-5))
            yield case(op, (r.normal((n,)) + 1j * r.normal((n,))).astype(np.complex128), tol=(1e-6, 1e-7))
        yield case("RFFT", r.normal((2, n)), i32([n]), tol=(1e-4, 1e-5))
        yield case("IRFFT", (r.normal((2, n // 2 + 1)) + 0j).astype(np.complex64), i32([n]), tol=(1e-4, 1e-5))
    yield case("RFFT", r.normal((2, 9)), i32([6]), name="cut", tol=(1e-4, 1e-5))
    yield case("RFFT", r.normal((0, 4)), i32([4]), name="no_rows")
    yield case("RFFT", r.normal((2, 4)), i32([8]), error="must have length of at least")
    yield case("RFFT", r.normal((2, 4)), i32([4, 4]), error="")
    yield case("IRFFT", (r.normal((2, 6)) + 0j).astype(np.complex64), i32([4]), name="cut", tol=(1e-4, 1e-5))
    yield case("IRFFT", (r.normal((2, 2)) + 0j).astype(np.complex64), i32([8]), error="must have length of at least")
    yield case("FFT", np.complex64(1), error="rank")

    for op in ("FFT", "IFFT"):
        yield case(op, np.zeros((0, 4), np.complex64), name="no_rows")
    yield case("IFFT", np.complex64(1), error="rank")
    yield case("IRFFT", np.zeros((0, 3), np.complex64), i32([4]), name="no_rows")
    yield case("IRFFT", np.zeros((2, 3), np.complex64), i32([4, 4]), error="")


def cases(r):
    yield from transforms(r)
