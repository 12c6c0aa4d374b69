#!/usr/bin/env python3
"""What the optimizer leaves, beside TensorFlow's Grappler: grappler.py SMELT FOLDER [NAME...] [--config TEXT] [--markdown FILE]

FOLDER holds SavedModels. The signature serving_default of each (or its first) is frozen by TensorFlow to a GraphDef (where it can: else the graph is taken as it is), which both optimize with the same feeds, fetches and configuration. Counted are the nodes
that are left, in the graph and in functions, and timed is the optimization alone, best of three. Then TensorFlow runs the graphs on random inputs, or on those of inputs_1.npz beside the model: the largest difference,
of the range; '-' where it cannot. Needs tensorflow."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, saved_model_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from tensorflow.python.grappler import tf_optimizer


def by_function(folder):
    """(graph, inputs, outputs) of the default signature, by the loader of TensorFlow 2."""
    loaded = tf.saved_model.load(folder)
    signature = loaded.signatures["serving_default"] if "serving_default" in loaded.signatures else loaded.signatures[sorted(loaded.signatures)[0]]
    function = convert_variables_to_constants_v2(signature, lower_control_flow=False)
    return function.graph.as_graph_def(), function.inputs, function.outputs


def by_session(folder):
    """The same by the loader of TensorFlow 1, which takes more graphs."""
    with tf.Graph().as_default() as g, tf.compat.v1.Session(graph=g) as session:
        meta = tf.compat.v1.saved_model.load(session, list(read_model(folder).meta_info_def.tags), folder)
        names = sorted(k for k in meta.signature_def if not k.startswith("__saved_model"))
        signature = meta.signature_def["serving_default" if "serving_default" in names else names[0]]
        tensors = [[g.get_tensor_by_name(i.name) for _, i in sorted(side.items())] for side in (signature.inputs, signature.outputs)]
        return tf.compat.v1.graph_util.convert_variables_to_constants(session, g.as_graph_def(), [t.op.name for t in tensors[1]]), *tensors


def read_model(folder):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((pathlib.Path(folder) / "saved_model.pb").read_bytes())
    return model.meta_graphs[0]


def as_it_is(folder):
    """The same without values in place of variables, where TensorFlow cannot put them there."""
    meta = read_model(folder)
    names = sorted(k for k in meta.signature_def if not k.startswith("__saved_model"))
    signature = meta.signature_def["serving_default" if "serving_default" in names else names[0]]
    with tf.Graph().as_default() as g:
        tf.import_graph_def(meta.graph_def, name="")
        return meta.graph_def, *([g.get_tensor_by_name(i.name) for _, i in sorted(side.items())] for side in (signature.inputs, signature.outputs))


def asked(path, way):
    """(graph, feeds, fetches, inputs) of the model's default signature."""
    # A SavedModel, a folder of versions, or what bench/make_models.py writes.
    folder = str(next(p for p in (path, path / "saved_model", *sorted(path.iterdir(), reverse=True)) if (p / "saved_model.pb").exists()))
    graph, inputs, outputs = way(folder)
    rng = np.random.default_rng(0)
    recorded = dict(np.load(path / "inputs_1.npz")) if (path / "inputs_1.npz").exists() else {}
    feeds = {}
    for t in inputs:
        name = t.name.split(":")[0]
        if name in recorded:
            feeds[t.name] = recorded[name]
            continue
        shape = [2] if t.shape.rank is None else [2 if d is None else d for d in t.shape]
        if t.dtype == tf.resource:
            continue  # a table that the function captured: nothing can be fed
        value = rng.integers(0, 20, shape) if t.dtype.is_integer else rng.normal(size=shape) if t.dtype.is_floating else np.full(shape, b"a b") if t.dtype == tf.string else np.ones(shape)
        feeds[t.name] = value.astype(t.dtype.as_numpy_dtype)
    return graph, {t.name: (t.dtype, t.shape) for t in inputs}, [t.name for t in outputs], feeds


def theirs(graph, feeds, fetches, config):
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(graph)
    for name in fetches:
        meta.collection_def["train_op"].node_list.value.append(name)
    for name, (dtype, shape) in feeds.items():
        info = meta.signature_def["asked"].inputs[name]
        info.name, info.dtype = name, dtype.as_datatype_enum
        info.tensor_shape.CopyFrom(shape.as_proto())
    session = config_pb2.ConfigProto()
    text_format.Merge(config, session.graph_options.rewrite_options)
    best = 1e9
    for _ in range(3):
        start = time.perf_counter()
        out = tf_optimizer.OptimizeGraph(session, meta)
        best = min(best, time.perf_counter() - start)
    return out, best


def ours(smelt, graph, feeds, fetches, config, work):
    (work / "in.pb").write_bytes(graph.SerializeToString())
    (work / "config.txt").write_text(config)
    best = 1e9
    for _ in range(3):
        text = subprocess.run([smelt, "optimize", "--json", "--graph_def", work / "in.pb", work / "out.pb", "--feeds", ",".join(feeds), "--fetches", ",".join(fetches), "--config",
                               work / "config.txt"], capture_output=True, text=True, check=True).stdout
        best = min(best, json.loads(text)["ms"] / 1e3)
    out = graph_pb2.GraphDef()
    out.ParseFromString((work / "out.pb").read_bytes())
    return out, best


def run(graph, inputs, fetches):
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph, name="")
        rewrite = config_pb2.ConfigProto()
        rewrite.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=g, config=rewrite) as session:
            return session.run(fetches, inputs)


def nodes(graph):
    return len(graph.node), sum(len(f.node_def) for f in graph.library.function)


def difference(a, b):
    worst = 0.0
    for x, y in zip(a, b):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf")
        if x.dtype.kind == "f" and x.size:
            spread = float(np.ptp(x)) or 1.0
            worst = max(worst, float(np.max(np.abs(x - y), initial=0)) / spread)
        elif not np.array_equal(x, y):
            return float("inf")
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smelt")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--config", default="")
    parser.add_argument("--markdown")
    args = parser.parse_args()
    rows = []
    worse = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for path in sorted(pathlib.Path(args.folder).iterdir()):
            if path.is_file() or (args.names and path.name not in args.names):
                continue
            for way in (by_function, by_session, as_it_is):
                try:
                    graph, feeds, fetches, inputs = asked(path, way)
                    their_graph, their_time = theirs(graph, feeds, fetches, args.config)
                    break
                except (tf.errors.OpError, ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError) as e:
                    print(f"{path.name}: TensorFlow cannot {way.__name__}: {type(e).__name__}: {str(e).splitlines()[0][:100]}", flush=True)
            else:
                continue
            our_graph, our_time = ours(args.smelt, graph, feeds, fetches, args.config, work)
            a, b, c = nodes(graph), nodes(their_graph), nodes(our_graph)
            try:
                off = f"{difference(run(graph, inputs, fetches), run(our_graph, inputs, fetches)):.1e}"
            except (tf.errors.OpError, ValueError) as e:
                print(f"{path.name}: not run: {str(e).splitlines()[0][:120]}")
                off = "-"
            worse += sum(c) > sum(b)
            rows.append((path.name, sum(a), sum(b), sum(c), f"{their_time * 1e3:.1f}", f"{our_time * 1e3:.1f}", f"{their_time / our_time:.1f}", off))
            print(*rows[-1], flush=True)
    lines = ["| model | nodes | TensorFlow leaves | smelt leaves | TensorFlow ms | smelt ms | ratio | largest difference |", "|---|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    if args.markdown:
        pathlib.Path(args.markdown).write_text("\n".join(lines) + "\n")
    print(f"{len(rows)} models, smelt leaves more nodes in {worse}")


if __name__ == "__main__":
    main()
