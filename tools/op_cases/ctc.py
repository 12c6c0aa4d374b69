"""Connectionist temporal classification."""

from op_cases import *
from op_cases.movement import F32, arr, count, vec, vec64


def greedy(x, lengths, error=None, **attrs):
    return case("CTCGreedyDecoder", x, lengths, error=error, **attrs)


def beam(x, lengths, width=10, paths=2, merge=False, error=None):
    return case(
        "CTCBeamSearchDecoder",
        x,
        lengths,
        beam_width=width,
        top_paths=paths,
        merge_repeated=merge,
        error=error,
        tol=(1e-4, 1e-5),
    )


def loss(x, indices, values, lengths, error=None, **attrs):
    return case("CTCLoss", x, indices, values, lengths, error=error, tol=(1e-4, 1e-5), **attrs)


def cases(r):
    x = r.normal((5, 2, 4), scale=2)
    # Classes repeat, with blanks between.
    path = np.full((6, 1, 3), -1, F32)
    for t, c in enumerate([0, 0, 2, 0, 1, 1]):
        path[t, 0, c] = 2 + 0.1 * t
    for dt in [F32, np.float64]:
        for lengths in [vec(5, 5), vec(3, 5), vec(0, 4), vec(5, 1)]:
            for merge in [False, True]:
                yield greedy(x.astype(dt), lengths, merge_repeated=merge)
        yield greedy(path.astype(dt), vec(6), merge_repeated=True)
        yield greedy(path.astype(dt), vec(6))
    for blank in [0, 1, 3, -4, -1]:
        yield greedy(x, vec(5, 5), merge_repeated=True, blank_index=blank)
    yield greedy(np.zeros((0, 2, 4), F32), vec(0, 0), error="inputs must not be empty")
    yield greedy(np.zeros((5, 0, 4), F32), vec(), error="inputs must not be empty")
    yield greedy(np.zeros((3, 1, 2), F32), vec(3))
    for make in [greedy, beam]:
        yield make(x[0], vec(5, 5), error="inputs is not a 3-Tensor")
        yield make(x, arr([[5, 5]]), error="sequence_length is not a vector")
        yield make(x, vec(5), error="len(sequence_length) != batch_size.  len(sequence_length):  1")
        yield make(x, vec(6, 5), error="sequence_length(0) <= 5")
    yield greedy(x, vec(5, 5), blank_index=4, error="blank_index expected to be between -4 and 3 but was 4")
    yield greedy(x, vec(5, 5), blank_index=-5, error="blank_index expected to be between -4 and 3 but was -5")
    yield greedy(x, vec(-1, 5))
    for dt in [F32, np.float64]:
        for width, paths in [(1, 1), (2, 2), (10, 3), (100, 1), (3, 1)]:
            for merge in [False, True]:
                yield beam(x.astype(dt), vec(5, 5), width, paths, merge)
                yield beam(
                    path.astype(dt) + r.normal((6, 1, 3), scale=0.1).astype(dt), vec(6), width, paths, merge
                )
        yield beam(x.astype(dt), vec(3, 5), 10, 2)
        yield beam(x.astype(dt), vec(1, 2), 10, 2)
    yield beam(r.normal((8, 3, 5), scale=3), vec(8, 6, 7), 20, 2)
    yield beam(r.normal((12, 1, 6)), vec(12), 50, 3)
    yield beam(x, vec(0, 5), 10, 2, error="Less leaves in the beam search than requested.")
    yield beam(x, vec(0, 5), 10, 1)
    yield beam(x, vec(5, 5), 2, 3, error="requested more paths than the beam width.")
    yield beam(np.zeros((5, 0, 4), F32), vec(), error="inputs must not be empty")

    ix = arr([[0, 0], [0, 1], [1, 0]], np.int64)
    lab = vec(0, 2, 1)
    for dt in [F32, np.float64]:
        for lengths in [vec(5, 5), vec(3, 4)]:
            for collapse in [False, True]:
                for merge in [False, True]:
                    for labels in [vec(0, 2, 1), vec(1, 1, 0)]:
                        yield loss(
                            x.astype(dt),
                            ix,
                            labels,
                            lengths,
                            preprocess_collapse_repeated=collapse,
                            ctc_merge_repeated=merge,
                        )
    yield loss(x, ix[:2], vec(1, 0), vec(5, 5), error="Labels length is zero in batch 1")
    yield loss(x, ix[2:], vec(1), vec(5, 5), error="Labels length is zero in batch 0")
    yield loss(x, np.zeros((0, 2), np.int64), vec(), vec(5, 5), error="Labels length is zero in batch 0")
    yield loss(
        x, ix, lab, vec(1, 5), error="Not enough time for target transition sequence (required: 2, available:"
    )
    yield loss(x, ix, lab, vec(1, 5), ignore_longer_outputs_than_inputs=True)
    yield loss(x, ix, lab, vec(0, 5), ignore_longer_outputs_than_inputs=True)
    yield loss(x, ix, vec(1, 1, 0), vec(2, 5))
    yield loss(x, ix, vec(1, 1, 0), vec(2, 5), preprocess_collapse_repeated=True)
    yield loss(
        x,
        ix,
        vec(3, 1, 0),
        vec(5, 5),
        error="Saw a non-null label (index >= num_classes - 1) following a null label,",
    )
    yield loss(x, ix, vec(1, 3, 0), vec(5, 5))
    yield loss(x, ix, vec(1, 7, 0), vec(5, 5))
    yield loss(
        x,
        ix,
        vec(-1, 1, 0),
        vec(5, 5),
        error="All labels must be nonnegative integers, batch: 0 labels: -1,1",
    )
    yield loss(
        x,
        ix + 1,
        lab,
        vec(5, 5),
        error="label SparseTensor is not valid: indices[2] = [2,1] is out of bounds:",
    )
    yield loss(
        x,
        ix - 1,
        lab,
        vec(5, 5),
        error="label SparseTensor is not valid: indices[0] = [-1,-1] is out of bounds:",
    )
    yield loss(
        x,
        ix[::-1],
        lab,
        vec(5, 5),
        error="label SparseTensor is not valid: indices[1] = [0,1] is out of order.",
    )
    yield loss(x[0], ix, lab, vec(5, 5), error="inputs is not a 3-Tensor")
    yield loss(x, ix, lab, arr([[5, 5]]), error="sequence_length is not a vector")
    yield loss(x, ix[:, 0], lab, vec(5, 5), error="labels_indices is not a matrix")
    yield loss(x, ix, lab.reshape(3, 1), vec(5, 5), error="labels_values is not a vector")
    yield loss(
        x,
        ix,
        lab[:2],
        vec(5, 5),
        error="labels_indices and labels_values must contain the same number of rows,",
    )
    yield loss(x, ix, lab, vec(5), error="len(sequence_length) != batch_size.  len(sequence_length):  1")
    yield loss(x, ix, lab, vec(6, 5), error="sequence_length(0) <= 5")
    yield loss(x, ix, lab, vec(-1, 5), error="seq_len(0) < 0")
    yield loss(
        np.zeros((0, 2, 4), F32),
        ix,
        lab,
        vec(0, 0),
        error="Max time or first dimension of input cannot be 0.",
    )
    yield loss(np.zeros((5, 0, 4), F32), ix[:0], vec(), vec(), error="batch_size must not be 0")
