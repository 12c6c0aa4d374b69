"""Unique, dynamic partition and stitch, diagonals, patches."""

from op_cases import *
from op_cases.movement import BF16, F32, HALF, NO_INTS, arr, count, vec, vec64, words

rng = np.random.RandomState(3)


def more(r):
    every = ["float", "double", "half", "bfloat16", "int8", "int64", "uint16", "complex64", "bool"]
    for t in every:
        m = r.numbers(t, (2, 3, 4))
        if t != "bool":
            yield case("BatchMatrixBandPart", m, np.array(1), np.array(0), name=t)
        yield case("BatchMatrixDiag", r.numbers(t, (2, 3)), name=t)
        yield case("BatchMatrixDiagPart", m, name=t)
        yield case("BatchMatrixSetDiag", m, r.numbers(t, (2, 3)), name=t)
        yield case("MatrixDiag", r.numbers(t, (2, 3)), name=t)
        yield case("MatrixDiagPart", m, name=t)
        yield case("MatrixDiagPartV2", m, vec(-1, 2), array(t, 1), name=t)
        yield case("MatrixSetDiagV2", m, r.numbers(t, (2, 2, 3)), vec(-1, 0), name=t)
        axis = vec(0) if t in ("half", "bfloat16") else vec64(-1)
        yield case("UniqueWithCountsV2", array(t if t != "complex64" else "int32", [[1, 1, 0], [1, 1, 0]]), axis, name=t)
    for low, high in [(-1, -1), (0, 0), (0, -1), (2, 3), (5, 1), (1, 7)]:
        yield case("BatchMatrixBandPart", count(3, 4), np.array(low), np.array(high), error="" if max(low, high) > 4 else None)
    for shape in [(0,), (2, 0), (1,)]:
        yield case("BatchMatrixDiag", count(*shape))
        yield case("MatrixDiag", count(*shape))
    for shape in [(0, 3), (2, 0, 2), (4, 1)]:
        yield case("BatchMatrixDiagPart", count(*shape))
        yield case("MatrixDiagPart", count(*shape))
    yield case("BatchMatrixDiag", count(), error="diagonal must be at least 1-dim, received shape: []")
    yield case("BatchMatrixDiagPart", count(3), error="input must be at least 2-dim, received shape: [3]")
    yield case("BatchMatrixBandPart", count(3), np.array(1), np.array(1), error="input must be at least 2-dim")
    yield case("BatchMatrixSetDiag", count(3), count(3), error="input must be at least 2-dim")
    yield case("BatchMatrixSetDiag", count(2, 3), count(3), error="")
    yield case("BatchMatrixSetDiag", count(0, 3), count(0))
    yield case("UniqueWithCountsV2", count(2, 0), vec(0))
    yield case("UniqueWithCountsV2", count(2, 2), vec(2), error="axis has to be between [0, 2)")
    yield case("UniqueWithCountsV2", arr(["a", "b", "a"], object), NO_INTS, out_idx=np.int64)
    for t in ["float", "double", "half", "int8", "int32", "uint8"]:
        yield case("ExtractVolumePatches", r.numbers(t, (1, 3, 3, 3, 1)), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1],
                   padding="VALID", name=t)
    for pad in ("SAME", "VALID"):
        yield case("ExtractVolumePatches", count(2, 3, 2, 3, 1), ksizes=[1, 2, 1, 2, 1], strides=[1, 2, 1, 2, 1], padding=pad)
    yield case("ExtractVolumePatches", count(0, 3, 3, 3, 1), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID")
    yield case("ExtractVolumePatches", count(1, 6, 3, 5, 1), ksizes=[1, 1, 2, 1, 1], strides=[1, 4, 3, 5, 1], padding="SAME", name="gaps")
    yield case("ExtractVolumePatches", count(3, 3, 3, 1), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID", error="")
    yield case("ExtractVolumePatches", count(1, 1, 3, 3, 1), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID")


def cases(r):
    for dt in [F32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.uint16, HALF, BF16]:
        yield case("Unique", arr([3, 1, 3, 2, 1], dt))
        yield case("UniqueWithCounts", arr([3, 1, 3, 2, 1], dt), out_idx=np.int64)
    yield case("Unique", arr([True, False, True], bool))
    yield case("Unique", arr(["a", "b", "a"], object))
    yield case("Unique", NO_INTS)
    yield case("Unique", count(2, 2), error="unique expects a 1D vector.")
    yield case("Unique", arr([0.0, -0.0, np.nan, np.nan], F32))
    yield case("UniqueWithCounts", arr(["a", "b", "a"], object))
    yield case("UniqueWithCounts", count(), error="unique expects a 1D vector.")
    yield case("UniqueV2", arr([[1, 0, 0], [1, 0, 0], [2, 0, 0]]), vec(0))
    yield case("UniqueV2", arr([[1, 0, 0], [1, 0, 0], [2, 0, 0]]), vec(1))
    yield case("UniqueV2", arr([[1, 0, 0], [1, 0, 0], [2, 0, 0]]), vec64(-1))
    yield case("UniqueV2", arr([[1, 0, 0]]), vec(2), error="axis has to be between [0, 2)")
    yield case("UniqueV2", arr([1, 0, 0]), NO_INTS)
    yield case("UniqueV2", arr([[1, 0, 0]]), NO_INTS, error="unique expects a 1D vector.")
    yield case(
        "UniqueV2",
        arr([[1, 0, 0]]),
        vec(0, 1),
        error="axis does not support input tensors larger than 1 elements",
    )
    yield case("UniqueV2", arr([[1, 0, 0]]), i32(0), error="axis expects a 1D vector.")
    yield case("UniqueWithCountsV2", arr([[1, 0, 0], [1, 0, 0], [2, 0, 0]]), vec(0))
    yield case("UniqueWithCountsV2", rng.randint(0, 2, (2, 5, 2)), vec(1))
    yield case("UniqueV2", arr([["a", "b"], ["a", "b"]], object), vec(0))
    yield case("UniqueV2", np.zeros((3, 0), F32), vec(0))
    yield case("UniqueV2", np.zeros((0, 3), F32), vec(0))
    yield case("UniqueV2", arr([[np.nan, 1], [np.nan, 1], [0, 1], [-0.0, 1]], F32), vec(0))
    yield case("UniqueV2", arr([[1, 0, 0]]), vec(-3), error="axis has to be between [0, 2)")
    yield case("ListDiff", vec(1, 2, 3, 4, 2), vec(2, 4))
    yield case("ListDiff", arr(["a", "b"], object), arr(["b"], object))
    yield case("ListDiff", count(3), arr([1, np.nan], F32), out_idx=np.int64)
    yield case("ListDiff", i32(1), vec(1), error="x should be a 1D vector.")
    yield case("ListDiff", vec(1), i32(1), error="y should be a 1D vector.")
    yield case("ListDiff", NO_INTS, NO_INTS)
    yield case("DynamicPartition", count(4), vec(0, 1, 1, 0), num_partitions=2)
    yield case("DynamicPartition", count(4, 2), vec(0, 2, 2, 0), num_partitions=3)
    yield case(
        "DynamicPartition",
        count(4),
        vec(0, 2, 1, 0),
        num_partitions=2,
        error="partitions[1] = 2 is not in [0, 2)",
    )
    yield case(
        "DynamicPartition",
        count(4),
        vec(0, -1, 1, 0),
        num_partitions=2,
        error="partitions[1] = -1 is not in [0, 2)",
    )
    yield case(
        "DynamicPartition",
        count(4),
        vec(0, 1),
        num_partitions=2,
        error="data.shape must start with partitions.shape, got data.shape = [4],",
    )
    yield case("DynamicPartition", count(2, 2), arr([[0, 1], [1, 0]]), num_partitions=2)
    yield case("DynamicPartition", count(3), i32(1), num_partitions=2)
    yield case("DynamicPartition", count(0, 3), NO_INTS, num_partitions=2)
    yield case("DynamicPartition", words(3), vec(1, 0, 1), num_partitions=2)
    yield case(
        "DynamicPartition",
        count(2),
        arr([[0, 1]]),
        num_partitions=2,
        error="data.shape must start with partitions.shape, got data.shape = [2],",
    )
    yield case("DynamicPartition", count(3, 0), vec(0, 1, 1), num_partitions=2)
    yield case(
        "DynamicPartition",
        count(2, 2),
        arr([[0, 1], [1, 5]]),
        num_partitions=2,
        error="partitions[1,1] = 5 is not in [0, 2)",
    )
    for op in ["DynamicStitch", "ParallelDynamicStitch"]:
        yield case(op, [vec(0, 2), vec(1, 3)], [count(2, 3), count(2, 3)])
        yield case(op, [i32(1), vec(0, 2)], [count(3), count(2, 3)])
        yield case(op, [vec(0, 0), vec(0)], [count(2), count(1) + 9])
        yield case(op, [vec(0, 2)], [count(2) + 1])
        yield case(op, [vec(-1, 2)], [count(2) + 1], error="indices[0] is out of range")
        yield case(
            op,
            [vec(0, 2), vec(1)],
            [count(2, 3), count(1, 2)],
            error="Need data[0].shape[1:] = data[1].shape[1:], got data[0].shape = [2,3],",
        )
        yield case(
            op,
            [vec(0, 2)],
            [count(3)],
            error="data[0].shape = [3] does not start with indices[0].shape = [2]",
        )
        yield case(op, [NO_INTS, NO_INTS], [count(0, 3), count(0, 3)])
        yield case(op, [vec(1, 0)], [words(2)])
        yield case(op, [arr([[0, 1], [2, 3]])], [count(2, 2, 2)])
        yield case(
            op,
            [vec(0, 2), vec(1)],
            [count(2, 3), count(2, 3)],
            error="data[1].shape = [2,3] does not start with indices[1].shape = [1]",
        )
        yield case(
            op,
            [vec(0, 2), vec(1)],
            [count(2, 3), count()],
            error="data[1].shape = [] does not start with indices[1].shape = [1]",
        )
    for dt in [F32, np.int8, np.complex128, BF16]:
        yield case("MatrixDiag", count(2, 3, dt=dt))
        yield case("MatrixDiagPart", count(2, 3, 4, dt=dt))
        yield case("MatrixSetDiag", count(2, 3, 4, dt=dt), count(2, 3, dt=dt))
        yield case("MatrixBandPart", count(2, 3, 4, dt=dt), i32(1), i32(0))
        yield case("Diag", count(2, 2).astype(F32))
        yield case("DiagPart", count(2, 3, 2, 3))
    yield case("MatrixDiag", count(), error="diagonal must be at least 1-dim, received shape: []")
    yield case("MatrixDiag", count(3))
    yield case("MatrixDiag", count(0))
    yield case("MatrixDiagPart", count(3), error="input must be at least 2-dim, received shape: [3]")
    yield case("MatrixDiagPart", count(3, 3))
    yield case("MatrixDiagPart", count(0, 3))
    yield case(
        "MatrixSetDiag",
        count(3, 3),
        count(2),
        error="Either first dimensions of diagonal don't match input.shape[:-2], or",
    )
    yield case("MatrixSetDiag", count(3), count(3), error="input must be at least 2-dim, received shape: [3]")
    yield case(
        "MatrixSetDiag", count(3, 3), count(), error="diagonal must be at least 1-dim, received shape: []"
    )
    yield case(
        "MatrixSetDiag",
        count(2, 3, 3),
        count(3),
        error="Either first dimensions of diagonal don't match input.shape[:-2], or",
    )
    yield case("MatrixSetDiag", count(0, 3, 3), count(0, 3))
    P = np.array(F32(-7))
    for al in ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"]:
        for k in [
            (0, 0),
            (-1, 1),
            (1, 2),
            (-2, -1),
            (-2, 3),
            (2, 2),
            (-1, -1),
            (1, 0),
            (4, 4),
            (-3, 0),
            (0, 4),
        ]:
            yield case("MatrixDiagPartV3", count(2, 3, 4) + 1, vec(*k), P, align=al)
            n = k[1] - k[0] + 1
            if n > 0:
                w = max(0, min(3 + min(k[1], 0), 4 - max(k[0], 0)))
                yield case(
                    "MatrixSetDiagV3",
                    count(2, 3, 4) + 1,
                    -count(*((2, n, w) if n > 1 else (2, w))) - 1,
                    vec(*k),
                    align=al,
                )
                yield case(
                    "MatrixDiagV3",
                    count(*((2, n, 3) if n > 1 else (2, 3))) + 1,
                    vec(*k),
                    i32(-1),
                    i32(-1),
                    P,
                    align=al,
                )
                yield case(
                    "MatrixDiagV3",
                    count(*((2, n, 3) if n > 1 else (2, 3))) + 1,
                    vec(*k),
                    i32(3),
                    i32(4),
                    P,
                    align=al,
                )
    yield case("MatrixDiagV2", count(2, 3), i32(1), i32(-1), i32(-1), P)
    yield case("MatrixDiagV2", count(2, 3), vec(-1, 0), i32(-1), i32(-1), P)
    yield case(
        "MatrixDiagV2",
        count(2, 3),
        vec(-1, 1),
        i32(-1),
        i32(-1),
        P,
        error="The number of diagonals provided in the input does not match the",
    )
    yield case(
        "MatrixDiagV2",
        count(3),
        vec(0, 1),
        i32(-1),
        i32(-1),
        P,
        error="The number of diagonals provided in the input does not match the",
    )
    yield case("MatrixDiagV2", count(3), i32(0), i32(2), i32(-1), P, error="The number of rows is too small.")
    yield case(
        "MatrixDiagV2",
        count(3),
        i32(0),
        i32(5),
        i32(7),
        P,
        error="The number of rows or columns is not consistent with the specified d_lower,",
    )
    yield case(
        "MatrixDiagV2", count(3), i32(0), i32(-1), i32(2), P, error="The number of columns is too small."
    )
    yield case("MatrixDiagV2", count(3), i32(0), i32(5), i32(3), P)
    yield case(
        "MatrixDiagV2",
        count(3),
        NO_INTS,
        i32(5),
        i32(3),
        P,
        error="Expected diag_index to have at least 1 element",
    )
    yield case(
        "MatrixDiagV2",
        count(3),
        vec(0, 1, 2),
        i32(5),
        i32(3),
        P,
        error="diag_index must have only one or two elements, received 3 elements.",
    )
    yield case(
        "MatrixDiagV2",
        count(3),
        arr([[0]]),
        i32(5),
        i32(3),
        P,
        error="diag_index must be a scalar or vector, received shape: [1,1]",
    )
    yield case("MatrixDiagV2", count(3), i32(0), i32(3), i32(-1), P)
    yield case("MatrixDiagV2", count(3), i32(-1), i32(-1), i32(3), P)
    yield case(
        "MatrixDiagV2",
        count(),
        i32(-1),
        i32(-1),
        i32(3),
        P,
        error="diagonal must be at least 1-dim, received shape: []",
    )
    yield case("MatrixDiagPartV2", count(3, 4), vec(-1, 1), P)
    yield case(
        "MatrixDiagPartV2",
        count(3, 4),
        vec(5),
        P,
        error="lower_diag_index is out of bound: 5. It must be between -3 and 4",
    )
    yield case("MatrixDiagPartV2", count(3, 4), i32(-1), P)
    yield case(
        "MatrixDiagPartV2", count(3), i32(0), P, error="input must be at least 2-dim, received shape: [3]"
    )
    yield case(
        "MatrixDiagPartV2",
        count(3, 4),
        vec(-5, 0),
        P,
        error="lower_diag_index is out of bound: -5. It must be between -3 and 4",
    )
    yield case("MatrixDiagPartV2", count(3, 4), i32(0), count(2), error="Padding must be scalar.")
    yield case("MatrixSetDiagV2", count(3, 4), count(2, 3), vec(0, 1))
    yield case(
        "MatrixSetDiagV2",
        count(3, 4),
        count(3, 3),
        vec(0, 1),
        error="The number of diagonals provided in `diag` is not consistent with",
    )
    yield case(
        "MatrixSetDiagV2",
        count(3, 4),
        count(3),
        vec(0, 1),
        error="The number of diagonals provided in `diag` is not consistent with",
    )
    yield case(
        "MatrixSetDiagV2",
        count(3, 4),
        count(3),
        i32(7),
        error="lower_diag_index is out of bound: 7 It must be between -3 and 4",
    )
    yield case(
        "MatrixSetDiagV2",
        count(3, 4),
        count(2, 2),
        vec(0, 1),
        error="Either first dimensions of diagonal don't match input.shape[:-2], or",
    )
    for a, b in [(0, 0), (1, -1), (-1, 1), (2, 1), (5, 0), (0, 5), (-1, -1), (3, 4)]:
        yield case("MatrixBandPart", count(3, 4) + 1, i32(a), i32(b))
        yield case("MatrixBandPart", count(2, 4, 3) + 1, vec64(a)[0], vec64(b)[0])
    yield case(
        "MatrixBandPart", count(3), i32(0), i32(0), error="input must be at least 2-dim, received shape: [3]"
    )
    yield case("MatrixBandPart", count(3, 3), vec(0), i32(0), error="num_lower must be scalar, got shape [1]")
    yield case("MatrixBandPart", count(3, 3), i32(0), vec(0), error="num_upper must be scalar, got shape [1]")
    yield case("MatrixBandPart", count(0, 3), i32(0), i32(0))
    yield case("Diag", count(), error="Input must be at least rank 1, got 0")
    yield case("Diag", count(3))
    yield case("Diag", count(0))
    yield case("DiagPart", count(3, 3))
    yield case(
        "DiagPart",
        count(3),
        error="The rank of the tensor should be                                          even",
    )
    yield case("DiagPart", count(3, 4), error="Invalid shape [3,4]: dimensions 0 and 1 do not match.")
    yield case("DiagPart", count())
    yield case("DiagPart", count(0, 0))
    yield case("DiagPart", count(2, 2, 2, 2))
    yield case("Diag", count(2, 2, 2, dt=np.int64))
    for p in ["SAME", "VALID"]:
        for k, s, rate in [
            ((2, 2), (1, 1), (1, 1)),
            ((3, 2), (2, 1), (1, 1)),
            ((2, 3), (1, 2), (2, 1)),
            ((3, 3), (5, 5), (2, 2)),
            ((5, 4), (3, 3), (1, 1)),
            ((2, 2), (1, 1), (4, 3)),
        ]:
            yield case(
                "ExtractImagePatches",
                count(1, 5, 4, 2),
                ksizes=[1, *k, 1],
                strides=[1, *s, 1],
                rates=[1, *rate, 1],
                padding=p,
            )
        yield case(
            "ExtractImagePatches",
            count(1, 5, 4, 1),
            ksizes=[1, 6, 4, 1],
            strides=[1, 3, 1, 1],
            rates=[1, 1, 1, 1],
            padding=p,
        )
        yield case(
            "ExtractImagePatches",
            count(2, 5, 4),
            ksizes=[1, 2, 2, 1],
            strides=[1, 1, 1, 1],
            rates=[1, 1, 1, 1],
            padding=p,
            error="input must be 4-dimensional[2,5,4]",
        )
        yield case(
            "ExtractImagePatches",
            count(0, 5, 4, 2),
            ksizes=[1, 2, 2, 1],
            strides=[1, 1, 1, 1],
            rates=[1, 1, 1, 1],
            padding=p,
        )
        yield case(
            "ExtractImagePatches",
            count(1, 5, 4, 2),
            ksizes=[2, 2, 2, 1],
            strides=[1, 1, 1, 1],
            rates=[1, 1, 1, 1],
            padding=p,
            error="Only support ksizes across space.",
        )
        yield case(
            "ExtractImagePatches",
            count(1, 5, 4, 2, dt=np.uint8),
            ksizes=[1, 2, 2, 1],
            strides=[1, 1, 1, 1],
            rates=[1, 1, 1, 1],
            padding=p,
        )
        yield case(
            "ExtractVolumePatches",
            count(1, 3, 3, 2, 2),
            ksizes=[1, 2, 2, 1, 1],
            strides=[1, 1, 2, 1, 1],
            padding=p,
        )
    yield case(
        "ExtractImagePatches",
        count(1, 5, 4, 1),
        ksizes=[1, 6, 4, 1],
        strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1],
        padding="VALID",
    )
    yield case(
        "ExtractImagePatches",
        count(1, 5, 4, 1),
        ksizes=[1, 9, 9, 1],
        strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1],
        padding="VALID",
        error="Computed output size would be negative: -3 [input_size: 5,",
    )
    yield from more(r)
