"""Summaries as serialised messages."""
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
    a, b = b"\x0a\x08\x0a\x01a\x15\x00\x00\x80?", b"\x0a\x08\x0a\x01b\x15\x00\x00\x00@"
    yield case("MergeSummary", [words(a), words(b)], name="two")
    yield case("MergeSummary", [words(a)], name="one")
    yield case("MergeSummary", [words([a, b])], name="vector")
    yield case("MergeSummary", [words([a]), words(b""), words(b)], name="empty")
    yield case("MergeSummary", [words([])], name="none")
    yield case("MergeSummary", [words(b), words([[a]])], name="ranks")
    yield case("MergeSummary", [words(a), words(a)], error="Duplicate tag a found in summary inputs")
    yield case("MergeSummary", [words(a), words(b"\xff")], error="Could not parse one of the summary inputs")
