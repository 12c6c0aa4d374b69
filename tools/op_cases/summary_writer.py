"""Event files: written, flushed, closed, then read back without the wall times that begin every event."""
import os
import shutil
import tempfile

from op_cases import *

R = tf.raw_ops
S = tf.string


def words(v):
    return np.array(v, object)


def cases(r):

    def written(op, events, *adds, name, closes=False):
        """Opens a writer, runs adds(writer), flushes or closes it, reads so many events of the newest file."""

        def build():
            folder = os.path.join(tempfile.gettempdir(), f"smelt_op_case_events_{op}_{name}")
            shutil.rmtree(folder, ignore_errors=True)
            w = R.SummaryWriter(shared_name="w")
            steps = [Step(run=[R.CreateSummaryFileWriter(writer=w, logdir=folder, max_queue=10, flush_millis=100000,
                                                         filename_suffix=".v2")])]
            for add in adds:
                steps.append(Step(run=[add(w)]))
            end = R.CloseSummaryWriter(writer=w) if closes else R.FlushSummaryWriter(writer=w)
            steps.append(Step(run=[end]))
            file = R.MatchingFiles(pattern=folder + "/events.out.tfevents.*.v2")[-1]
            it = R.IteratorV2(shared_name="it", container="", output_types=[S], output_shapes=[()])
            steps.append(Step(run=[R.MakeIterator(iterator=it, dataset=R.TFRecordDataset(
                filenames=file, compression_type="", buffer_size=np.int64(0)))]))
            event = R.IteratorGetNext(iterator=it, output_types=[S], output_shapes=[()])[0]
            rest = R.Substr(input=event, pos=i32(9), len=i32(100000))
            first = R.IteratorGetNext(iterator=it, output_types=[S], output_shapes=[()])[0]
            steps.append(Step(run=[first.op]))  # says who wrote the file
            steps += [Step(fetch=[rest])] * events + [Step(fetch=[rest], error="End of sequence")]
            return steps

        return graph_case(op, build, name=name)

    c = tf.constant
    scalar = lambda step, tag, v: lambda w: R.WriteScalarSummary(writer=w, step=np.int64(step), tag=tag, value=c(v))
    histogram = lambda step, tag, v: lambda w: R.WriteHistogramSummary(writer=w, step=np.int64(step), tag=tag, values=c(v))
    tensor = lambda step, v, tag, meta=b"": lambda w: R.WriteSummary(writer=w, step=np.int64(step), tensor=c(v), tag=tag,
                                                                     summary_metadata=meta)
    raw = lambda step, v: lambda w: R.WriteRawProtoSummary(writer=w, step=np.int64(step), tensor=c(v))
    graph = lambda step, v: lambda w: R.WriteGraphSummary(writer=w, step=np.int64(step), tensor=c(v))
    for t in ("float", "double", "half") + tuple(INTS):
        yield written("WriteScalarSummary", 2, scalar(1, "a", r.numbers(t)), scalar(2, "a/b", r.numbers(t)), name=t)
        yield written("WriteHistogramSummary", 1, histogram(3, "h", r.numbers(t, (5,))), name=t)
    yield written("WriteHistogramSummary", 1, histogram(3, "h", np.array([True, False, True])), name="bool")
    for t in ("float", "double", "int32", "int64", "bool", "string", "uint8", "half"):
        x = r.numbers(t, (2, 2))
        yield written("WriteSummary", 2, tensor(0, x, "t"), tensor(-1, x, "u", b"\x0a\x09\x0a\x07scalars"), name=t)
    message = b"\x0a\x08\x0a\x01a\x15\x00\x00\x80?"
    for n in range(1, 9):
        yield written("WriteRawProtoSummary", n, *[raw(i, message) for i in range(n)], name=f"n{n}")
        yield written("WriteGraphSummary", n, *[graph(i, b"\x22\x02\x08\x1b") for i in range(n)], name=f"n{n}")
        for op, closes in (("SummaryWriter", True), ("CreateSummaryFileWriter", False), ("FlushSummaryWriter", False),
                           ("CloseSummaryWriter", True)):
            yield written(op, n, *[scalar(i, "x", np.float32(i)) for i in range(n)], name=f"n{n}", closes=closes)

    def missing(op, make):

        def build():
            w = R.SummaryWriter(shared_name="w")
            return [Step(run=[make(w)], error="Container localhost does not exist.")]

        return graph_case(op, build, name="not_created")

    yield missing("WriteScalarSummary", scalar(1, "a", np.float32(1)))
    yield missing("WriteHistogramSummary", histogram(1, "a", np.float32([1])))
    yield missing("WriteSummary", tensor(1, np.float32([1]), "a"))
    yield missing("WriteRawProtoSummary", raw(1, message))
    yield missing("WriteGraphSummary", graph(1, b""))
    yield missing("FlushSummaryWriter", lambda w: R.FlushSummaryWriter(writer=w))
    yield missing("CloseSummaryWriter", lambda w: R.CloseSummaryWriter(writer=w))
