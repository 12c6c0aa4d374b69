"""Fourier transforms over the innermost one, two or three dimensions."""
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


def more_dimensions(r):
    near = dict(tol=(1e-4, 1e-4))

    def complex64(*shape):
        return (r.normal(shape) + 1j * r.normal(shape)).astype(np.complex64)

    for rank in (2, 3):
        d = f"{rank}D"
        for sizes in ((4, 2, 8), (3, 5, 2), (1, 1, 1), (2, 6, 7)):
            sizes = sizes[:rank]
            half = sizes[:-1] + (sizes[-1] // 2 + 1,)
            for op in ("FFT", "IFFT"):
                yield case(op + d, complex64(*sizes), **near)
                yield case(op + d, complex64(2, *sizes[-rank:]).astype(np.complex128)[:1], **near)
            yield case("RFFT" + d, r.normal(sizes), i32(sizes), **near)
            yield case("RFFT" + d, r.normal((2,) + sizes, "double")[:1], i32(sizes), Tcomplex=tf.complex128, **near)
            yield case("IRFFT" + d, complex64(*half), i32(sizes), **near)
            yield case("IRFFT" + d, complex64(2, *half).astype(np.complex128)[:1], i32(sizes), Treal=tf.float64, **near)
        ones = (1,) * (rank - 1)
        for op in ("FFT", "IFFT"):
            yield case(op + d, np.zeros((2,) + ones + (0,), np.complex64), name="empty")
            yield case(op + d, np.zeros((0,) + ones + (3,), np.complex64), name="no_batch")
            yield case(op + d, np.zeros(ones, np.complex64), error=f"Input must have rank of at least {rank} but got: ")
        five = (5,) * rank
        yield case("RFFT" + d, r.normal(five), i32((3, 4, 2)[:rank]), name="cut", **near)
        yield case("IRFFT" + d, complex64(*five), i32((3, 2, 6)[:rank]), name="cut", **near)
        for op, x in (("RFFT", r.normal(five)), ("IRFFT", complex64(*five))):
            if op == "IRFFT":  # TensorFlow itself ends the process on RFFT2D of length 0
                yield case(op + d, x, i32((0,) * rank), name="nothing")
            yield case(op + d, x, i32((6,) + (2,) * (rank - 1)), error="Input dimension 0 must have length of at least 6 but got: 5")
            yield case(op + d, x, i32((2,) * (rank - 1) + (12,)), error=f"Input dimension {rank - 1} must have length of at least")
            yield case(op + d, x, i32((2,) * (rank - 1) + (-1,)), error=f"fft_length[{rank - 1}] must >= 0, but got: -1")
            yield case(op + d, x, i32((2,)), error=f"fft_length must have shape [{rank}]")
            yield case(op + d, x[0], i32((2,) * rank), error=f"Input must have rank of at least {rank} but got: ")
            yield case(op + d, np.zeros((0,) + five, x.dtype), i32((2,) * rank), name="no_batch")


def cases(r):
    yield from transforms(r)
    yield from more_dimensions(r)
