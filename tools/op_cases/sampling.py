"""Candidate samplers."""

from op_cases import *
from op_cases.movement import F32, arr, count, vec, vec64

TRUE = arr([[3, 1], [0, 9], [5, 5]], np.int64)


def sampler(op, true=TRUE, sampled=6, unique=True, seeds=(5, 7), error=None, **attrs):
    return case(
        op,
        true,
        num_true=true.shape[1] if true.ndim == 2 else 1,
        num_sampled=sampled,
        unique=unique,
        seed=seeds[0],
        seed2=seeds[1],
        error=error,
        tol=(1e-5, 1e-6),
        **attrs,
    )


def learned(op):
    """Three runs: what was true before is likelier."""

    def build():
        true = tf.compat.v1.placeholder(tf.int64, None)
        out = getattr(tf.raw_ops, op)(
            true_classes=true, num_true=2, num_sampled=5, unique=False, range_max=12, seed=3, seed2=4
        )
        runs = [[[3, 3], [11, 3]], [[3, 0], [0, 11]], [[1, 2], [4, 5]], [[3, 3], [3, 3]]]
        return [Step(fetch=list(out), feed={true: np.array(x * 4, np.int64)}) for x in runs]

    return graph_case(op, build)


def cases(r):
    for op in [
        "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler",
        "UniformCandidateSampler",
    ]:
        yield learned(op)
    ranged = [
        "UniformCandidateSampler",
        "LogUniformCandidateSampler",
        "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler",
    ]
    for op in ranged:
        for unique in [True, False]:
            for seeds in [(5, 7), (1, 0), (0, 3), (87654321, 123)]:
                for top in [10, 1000]:
                    yield sampler(op, unique=unique, seeds=seeds, range_max=top)
        yield sampler(op, sampled=10, range_max=10)
        yield sampler(op, sampled=1, range_max=1, true=arr([[0]], np.int64))
        yield sampler(op, sampled=40, unique=False, range_max=10)
        yield sampler(op, sampled=11, range_max=10, error="Sampler's range is too small.")
        yield sampler(op, true=vec64(1), range_max=10, error="true_classes must be a matrix")
        yield sampler(op, true=np.zeros((0, 1), np.int64), range_max=10)
        yield case(
            op,
            TRUE,
            num_true=1,
            num_sampled=3,
            unique=False,
            range_max=10,
            seed=1,
            seed2=2,
            error="true_classes must have num_true columns, expected: 2 was: 1",
        )
    for true in [arr([[10]], np.int64), arr([[-1]], np.int64)]:
        for op in ranged:
            yield sampler(
                op, true=true, range_max=10, error="`true_candidate` out of range [0, 10), received "
            )
    weights = [0.5, 1.0, 3.0, 0.0, 2.0, 4.0, 0.25, 1.5, 2.5, 1.0]
    for unique in [True, False]:
        for seeds in [(5, 7), (1, 0), (0, 3)]:
            for distortion in [1.0, 0.75, 0.0]:
                yield sampler(
                    "FixedUnigramCandidateSampler",
                    unique=unique,
                    seeds=seeds,
                    range_max=10,
                    unigrams=weights,
                    distortion=distortion,
                    vocab_file="",
                )
        yield sampler(
            "FixedUnigramCandidateSampler", unique=unique, range_max=12, unigrams=weights, num_reserved_ids=2
        )
        yield sampler(
            "FixedUnigramCandidateSampler",
            true=TRUE[:1],
            unique=unique,
            sampled=3,
            range_max=5,
            unigrams=weights,
            num_shards=2,
            shard=1,
        )
    yield sampler(
        "FixedUnigramCandidateSampler",
        sampled=11,
        range_max=10,
        unigrams=weights,
        error="Sampler's range is too small.",
    )
    yield sampler(
        "FixedUnigramCandidateSampler",
        range_max=11,
        unigrams=weights,
        error="range is 11 must be equal to weights size  10",
    )
    yield sampler(
        "FixedUnigramCandidateSampler", range_max=10, error="Must provide either vocab_file or unigrams."
    )
    yield sampler(
        "FixedUnigramCandidateSampler",
        range_max=10,
        unigrams=weights,
        num_shards=2,
        shard=2,
        error="range is 10 must be equal to weights size  0",
    )
    yield sampler(
        "FixedUnigramCandidateSampler",
        true=vec64(1),
        range_max=10,
        unigrams=weights,
        error="true_classes must be a matrix",
    )
    yield sampler(
        "FixedUnigramCandidateSampler",
        true=arr([[12]], np.int64),
        range_max=10,
        unigrams=weights,
        error="`true_candidate` out of range [0, 10), received 12",
    )
    for k in [10, 12]:
        yield sampler("AllCandidateSampler", sampled=k)
        yield sampler("AllCandidateSampler", sampled=k, unique=False)
        yield sampler(
            "AllCandidateSampler",
            sampled=k,
            true=arr([[12]], np.int64),
            error="`true_candidate` out of range [0, 1",
        )
    yield sampler("AllCandidateSampler", sampled=1, true=arr([[0]], np.int64))
    yield sampler("AllCandidateSampler", true=vec64(1), error="true_classes must be a matrix")
    yield case(
        "AllCandidateSampler",
        TRUE,
        num_true=1,
        num_sampled=3,
        unique=False,
        seed=1,
        seed2=2,
        error="true_classes must have num_true columns, expected: 2 was: 1",
    )
    hits = dict(num_true=2)
    yield case("ComputeAccidentalHits", TRUE, vec64(1, 9, 5, 7), **hits)
    yield case("ComputeAccidentalHits", TRUE, vec64(1, 9, 5, 5, 3), **hits)
    yield case("ComputeAccidentalHits", TRUE, vec64(8), **hits)
    yield case("ComputeAccidentalHits", TRUE, vec64(), **hits)
    yield case("ComputeAccidentalHits", np.zeros((0, 2), np.int64), vec64(1), **hits)
    yield case("ComputeAccidentalHits", TRUE[:, :1], vec64(0, 3), num_true=1)
    yield case(
        "ComputeAccidentalHits",
        TRUE,
        vec64(0, 3),
        num_true=1,
        error="true_candidates must be a batch_size * num_true matrix",
    )
    yield case(
        "ComputeAccidentalHits",
        TRUE,
        arr([[0, 3]], np.int64),
        **hits,
        error="sampled_candidates must be a vector, which is typically an output from",
    )
    yield case(
        "ComputeAccidentalHits",
        TRUE[0],
        vec64(3),
        **hits,
        error="true_candidates must be a batch_size * num_true matrix",
    )
