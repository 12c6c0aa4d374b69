#!/usr/bin/env python3
"""Converter bench: time and memory of `smelt convert`. convert.py SMELT [--model DIR ...] [--functions N ...]

Synthetic models of N functions (a chain of calls, each with a few nodes and a constant) show whether time grows with size; --model adds real ones, placed
by their serving_default signature. So do models of N layers, each with two variables, stored as bfloat16 and as int8. Needs TensorFlow's protos, to write the models. Rows: what, seconds and processor
seconds (best of 3), peak resident MB, processor seconds per 1,000 functions or MB per MB of weights."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

STARTER = """
import os, subprocess, sys, time
start = time.monotonic()
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(p.pid, 0)
print(time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(status != 0)
"""
OFF = "disable_default_optimizations: true"
WEIGHTS = ('quantization_options { quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 } min_num_elements_for_weights: 1 '
           'signature_keys: "serving_default" } ')


def synthetic(path, functions, body=12):
    """A SavedModel whose signature calls f0..fN-1 one after the other; each has a product, a sum and `body` activations."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import saved_model_pb2

    g = graph_pb2.GraphDef()
    g.versions.producer = 1882

    def node(to, name, op, inputs, **attrs):
        n = to.add()
        n.name, n.op = name, op
        n.input.extend(inputs)
        for key, value in attrs.items():
            if isinstance(value, tf.DType):
                n.attr[key].type = value.as_datatype_enum
            elif isinstance(value, list):
                n.attr[key].list.type.extend(t.as_datatype_enum for t in value)
            elif isinstance(value, np.ndarray):
                n.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
            elif isinstance(value, tf.TensorShape):
                n.attr[key].shape.CopyFrom(value.as_proto())
            else:
                n.attr[key].func.name = value
        return n

    for i in range(functions):
        f = g.library.function.add()
        f.signature.name = f"block_{i}"
        for arg, to in (("x", f.signature.input_arg), ("y", f.signature.output_arg)):
            a = to.add()
            a.name, a.type = arg, tf.float32.as_datatype_enum
        node(f.node_def, "w", "Const", [], dtype=tf.float32, value=np.full((4, 4), 0.1, np.float32))
        node(f.node_def, "m", "MatMul", ["x", "w:output:0"], T=tf.float32)
        last = "m:product:0"
        for k in range(body):
            node(f.node_def, f"t{k}", "Tanh", [last], T=tf.float32)
            last = f"t{k}:y:0"
        node(f.node_def, "s", "AddV2", [last, "x"], T=tf.float32)
        f.ret["y"] = "s:z:0"
    node(g.node, "x", "Placeholder", [], dtype=tf.float32, shape=tf.TensorShape([None, 4]))
    outer = g.library.function.add()
    outer.signature.name = "model"
    for arg, to in (("x", outer.signature.input_arg), ("y", outer.signature.output_arg)):
        a = to.add()
        a.name, a.type = arg, tf.float32.as_datatype_enum
    last = "x"
    for i in range(functions):
        node(outer.node_def, f"call_{i}", "PartitionedCall", [last], Tin=[tf.float32], Tout=[tf.float32], f=f"block_{i}")
        last = f"call_{i}:output:0"
    outer.ret["y"] = last
    node(g.node, "y", "PartitionedCall", ["x"], Tin=[tf.float32], Tout=[tf.float32], f="model")
    model = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(g)
    signature = meta.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for key, to in (("x", signature.inputs), ("y", signature.outputs)):
        to[key].name, to[key].dtype = f"{key}:0", tf.float32.as_datatype_enum
        to[key].tensor_shape.CopyFrom(tf.TensorShape([None, 4]).as_proto())
    os.makedirs(path)
    (pathlib.Path(path) / "saved_model.pb").write_bytes(model.SerializeToString())


def layered(path, layers, width=16):
    """A SavedModel of `layers` dense layers in one function."""
    import numpy as np
    import tensorflow as tf
    model, rng = tf.Module(), np.random.default_rng(1)
    model.w = [tf.Variable(rng.normal(0, 0.3, (width, width)).astype(np.float32)) for _ in range(layers)]
    model.b = [tf.Variable(rng.normal(0, 0.3, width).astype(np.float32)) for _ in range(layers)]

    @tf.function(input_signature=[tf.TensorSpec([None, width], tf.float32, name="x")])
    def serve(x):
        for w, b in zip(model.w, model.b):
            x = tf.nn.relu(tf.matmul(x, w) + b)
        return {"y": x}

    tf.saved_model.save(model, str(path), signatures=serve)


def convert(smelt, model, out, options):
    """Seconds, seconds on the processor and peak resident MB of one conversion."""
    file = pathlib.Path(str(out) + ".options")  # a command line would be too short for thousands of names
    file.write_text(options)
    # A process counts the memory of the one that starts it until it executes: a small one starts it.
    p = subprocess.run([sys.executable, "-c", STARTER, smelt, "convert", "--input_model_dir", model, "--output_model_dir", out, "--overwrite",
                        "--converter_options_file", file], capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError(p.stderr[-500:])
    seconds, cpu, kilobytes = map(float, p.stdout.split())
    return seconds, cpu, kilobytes / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("smelt")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--functions", type=int, nargs="*", default=[1000, 2000, 4000])
    parser.add_argument("--layers", type=int, nargs="*", default=[])
    parser.add_argument("--keep", help="folder for the synthetic models, used again when it is there")
    args = parser.parse_args()
    work = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="smelt_convert_"))
    work.mkdir(parents=True, exist_ok=True)
    print(f"{'what':32} {'seconds':>8} {'cpu s':>8} {'peak MB':>8}  per unit")
    for place, options in (("signature", 'tpu_functions { signature_name: "serving_default" } '), ("every function", "")):
        for n in args.functions:
            path = work / f"functions_{n}"
            if not path.exists():
                synthetic(path, n)
            text = options or "".join(f'tpu_functions {{ concrete_function_name: "block_{i}" }} ' for i in range(n))
            runs = [convert(args.smelt, path, work / "out", text + OFF) for _ in range(3)]
            seconds, busy, peak = min(r[0] for r in runs), min(r[1] for r in runs), max(r[2] for r in runs)
            print(f"{f'{n} functions, {place}':32} {seconds:8.2f} {busy:8.2f} {peak:8.0f}  {1000 * busy / n:.3f} s per 1,000 functions", flush=True)
    for what, options in (("bfloat16", ""), ("weights in int8", WEIGHTS + OFF)):
        for n in args.layers:
            path = work / f"layers_{n}"
            if not path.exists():
                layered(path, n)
            runs = [convert(args.smelt, path, work / "out", 'tpu_functions { signature_name: "serving_default" } ' + options) for _ in range(3)]
            seconds, busy, peak = min(r[0] for r in runs), min(r[1] for r in runs), max(r[2] for r in runs)
            print(f"{f'{n} layers, {what}':32} {seconds:8.2f} {busy:8.2f} {peak:8.0f}  {1000 * busy / n:.3f} s per 1,000 layers", flush=True)
    for model in args.model:
        weights = sum(f.stat().st_size for f in pathlib.Path(model).rglob("variables.data*")) / 2**20
        for name, text in (("defaults off", OFF), ("defaults", "")):
            try:
                runs = [convert(args.smelt, model, work / "out", 'tpu_functions { signature_name: "serving_default" } ' + text) for _ in range(3)]
            except RuntimeError as e:
                print(f"{pathlib.Path(model).name}, {name}: {e}")
                continue
            seconds, busy, peak = min(r[0] for r in runs), min(r[1] for r in runs), max(r[2] for r in runs)
            print(f"{f'{pathlib.Path(model).name}, {name}':32} {seconds:8.2f} {busy:8.2f} {peak:8.0f}  {peak / max(weights, 1e-9):.2f} times its {weights:.0f} MB of weights", flush=True)


if __name__ == "__main__":
    sys.exit(main())
