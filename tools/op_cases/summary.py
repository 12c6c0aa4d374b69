"""Summaries as serialized messages."""
from op_cases import *

R = tf.raw_ops
KINDS = ["float", "double", "half", "bfloat16"] + INTS


def words(v, shape=None):
    a = np.array(v, object)
    return a if shape is None else a.reshape(shape)


def cases(r):
    for t in KINDS:
        yield case("ScalarSummary", words("tag"), r.numbers(t), name=t)
        yield case("ScalarSummary", words(["a", "b/c", ""]), r.numbers(t, (3,)), name=t)
        yield case("HistogramSummary", words("h"), r.numbers(t, (3, 4)), name=t)
    yield case("ScalarSummary", words([["a", "b"]]), np.float32([[0, np.inf]]), name="matrix")
    yield case("ScalarSummary", words("x"), np.float32(np.nan), name="nan")
    yield case("ScalarSummary", words("x"), np.float32([2]), error="tags and values are not the same shape: [] != [1] (tag 'x')")
    yield case("ScalarSummary", words([]), np.float32([]), name="none")
    yield case("ScalarSummary", words(["a", "b"]), np.float32([1, 2, 3]),
               error="tags and values are not the same shape: [2] != [3]")
    yield case("ScalarSummary", words("a"), np.float32([1, 2]), error="tags and values are not the same shape: [] != [2]")
    yield case("HistogramSummary", words("h"), np.float32([]), name="none")
    yield case("HistogramSummary", words("h"), np.float32(0), name="zero")
    yield case("HistogramSummary", words(""), np.float64([1e-12, 1.1e-12, -1e-12, 1e20, 2e20, -3e30, 1e-13, 5, 5, 5]), name="limits")
    yield case("HistogramSummary", words("h"), np.float64([1e200, -1e200]), name="large")
    yield case("HistogramSummary", words("h"), np.float32([1, np.nan]), error="Nan in summary histogram for: ")
    yield case("HistogramSummary", words("h"), np.float32([1, -np.inf]), error="Infinity in Histogram for: ")
    yield case("HistogramSummary", words(["h"]), np.float32([1]), error="tags must be scalar")
    for t in ("float", "double", "int32", "int64", "uint8", "bool", "half", "complex64", "string"):
        x = r.numbers(t, (2, 3))
        yield case("TensorSummaryV2", words("t"), x, words(""), name=t)
        for description in ("", "of something"):
            yield graph_case("TensorSummary", lambda x=x, d=description: [R.TensorSummary(
                tensor=tf.constant(x), description=d, display_name="shown", labels=["a"], name="node")], name=t)
    yield case("TensorSummaryV2", words("a/b"), np.float32(1.5), words(b"\x0a\x09\x0a\x07scalars"), name="metadata")
    yield case("TensorSummaryV2", words("t"), np.zeros((0, 2), np.float32), words(""), name="empty")
    yield case("TensorSummaryV2", words("t"), np.ones((2, 3), np.float32), words(""), name="alike")
    yield case("TensorSummaryV2", words(["t"]), np.float32(1), words(""), error="tag must be scalar")
    yield case("TensorSummaryV2", words("t"), np.float32(1), words([""]), error="serialized_summary_metadata must be scalar")
    rate = lambda v: np.float32(v)
    for n, frames, channels in ((1, 4, None), (2, 3, 1), (3, 2, 2), (5, 1, None), (0, 3, None), (4, 2, None)):
        x = r.uniform((n, frames) if channels is None else (n, frames, channels), -1.2, 1.2)
        yield case("AudioSummaryV2", words("tag"), x, rate(8000), name=f"n{n}")
        yield case("AudioSummary", words("tag"), x, sample_rate=44100.0, name=f"n{n}")
        yield case("AudioSummaryV2", words("one"), x, rate(16000.5), max_outputs=1, name=f"one{n}")
    yield case("AudioSummaryV2", words("t"), np.float32([[-1, 1, 0.5, -0.5, 0.99999, -3, 3, 1e-5]]), rate(1), name="limits")
    yield case("AudioSummaryV2", words(["t"]), np.float32([[1]]), rate(1), error="Tag must be a scalar")
    yield case("AudioSummaryV2", words("t"), np.float32([1]), rate(1), error="Tensor must be 3-D or 2-D, got: [1]")
    yield case("AudioSummaryV2", words("t"), np.float32([[1]]), rate(0), error="sample_rate must be > 0")
    yield case("AudioSummaryV2", words("t"), np.float32([[1]]), rate(1e10), error="sample_rate must be in (0, 2^32), got: ")
    yield case("AudioSummaryV2", words("t"), np.zeros((1, 2, 0), np.float32), rate(1), error="audio is null")
    yield case("AudioSummaryV2", words("t"), np.zeros((1, 0), np.float32), rate(1), name="no_frames")
    yield case("AudioSummaryV2", words("t"), np.float32([[-1.5, -0.5, 0.5, 1.5, 2.5]]) / 32768, rate(1), name="halves")
    yield case("AudioSummary", words("t"), np.float32([1]), sample_rate=1.0, error="Tensor must be 3-D or 2-D, got: [1]")
    yield case("AudioSummary", words(["t"]), np.float32([[1]]), sample_rate=1.0, error="Tag must be a scalar")
    for t in ("uint8", "float", "double", "half"):
        for shape in ((1, 2, 3, 1), (4, 3, 2, 3), (2, 1, 5, 4)):
            for low in (-2, 0.25):
                x = r.ints(shape, 0, 250, t) if t == "uint8" else r.uniform(shape, low, 3, t)
                yield case("ImageSummary", words("tag"), x, name=f"{t}_{shape[3]}")
        yield case("ImageSummary", words("one"), np.ones((2, 2, 2, 1), np_type(t)), max_images=1, name="one_" + t)
        yield case("ImageSummary", words("t"), np.zeros((1, 2, 2, 3), np_type(t)), name="zero_" + t)
    for v in (np.nan, np.inf, -np.inf):
        x = r.uniform((2, 2, 2, 3), -1, 2)
        x[0, 1, 0, 1] = v
        yield case("ImageSummary", words("t"), x, name="not_finite")
        yield case("ImageSummary", words("t"), x[..., :1], name="finite_one")
    yield case("ImageSummary", words("t"), np.full((1, 1, 2, 4), np.nan, np.float32), name="all_nan")
    yield case("ImageSummary", words("t"), np.ones((0, 2, 2, 1), np.float32), name="none")
    yield case("ImageSummary", words(["t"]), np.ones((1, 2, 2, 1), np.float32), error=AS_SAID)
    yield case("ImageSummary", words("t"), np.ones((2, 2, 1), np.float32), error=AS_SAID)
    yield case("ImageSummary", words("t"), np.ones((1, 2, 2, 2), np.float32), error=AS_SAID)
    yield case("ImageSummary", words("t"), np.ones((1, 0, 2, 1), np.float32), error=AS_SAID)
    yield case("AudioSummaryV2", words("t"), np.float32([[1]]), rate(3e38), error=AS_SAID)
    a, b = b"\x0a\x08\x0a\x01a\x15\x00\x00\x80?", b"\x0a\x08\x0a\x01b\x15\x00\x00\x00@"
    yield case("MergeSummary", [words(a), words(b)], name="two")
    yield case("MergeSummary", [words(a)], name="one")
    yield case("MergeSummary", [words([a, b])], name="vector")
    yield case("MergeSummary", [words([a]), words(b""), words(b)], name="empty")
    yield case("MergeSummary", [words([])], name="none")
    yield case("MergeSummary", [words(b), words([[a]])], name="ranks")
    yield case("MergeSummary", [words(a), words(a)], error="Duplicate tag a found in summary inputs")
    yield case("MergeSummary", [words(a), words(b"\xff")], error="Could not parse one of the summary inputs")
