#!/usr/bin/env python3
"""What is quantized, beside TensorFlow's own quantizer: quantized_layers.py SMELT MODELS GOLDENS [NAME...] [--markdown FILE] [--theirs FILE]

Each model of MODELS (GOLDENS/NAME.tfrecord holds its requests) and each Keras model of KERAS below is quantized by both, by every method, with the same options (op set XLA,
the requests as samples; smelt's with --strip_training, as TensorFlow's quantizer always drops what training uses). Counted in what was written: int8 tensors of more than one element, and their bytes, in the graph, its functions and the checkpoint. Then the requests
are replayed: the signal to noise ratio of smelt's float outputs, quantized against not, over all requests. --theirs keeps TensorFlow's counts from call to call.
Needs tensorflow, tensorflow-serving-api, keras."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
METHODS = {"weight only": "STATIC_RANGE_WEIGHT_ONLY_INT8", "dynamic": "DYNAMIC_RANGE_INT8", "static": "STATIC_RANGE_INT8"}
SAMPLES = 4

# The quantizer of TensorFlow may end its process: it gets one of its own.
THEIRS = r"""
import sys, json
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as options_pb2
from tensorflow_serving.apis import prediction_log_pb2
model, log, out, method, signature, tags, samples = sys.argv[1:]
options = options_pb2.QuantizationOptions(
    quantization_method=options_pb2.QuantizationMethod(preset_method=getattr(options_pb2.QuantizationMethod, "METHOD_" + method)),
    op_set=options_pb2.XLA, signature_keys=[signature], tags=tags.split(","))
data = []
for raw in tf.compat.v1.io.tf_record_iterator(log):
    request = prediction_log_pb2.PredictionLog.FromString(raw).predict_log.request
    if request.model_spec.signature_name == signature and len(data) < int(samples):
        data.append({k: tf.make_ndarray(v) for k, v in request.inputs.items()})
tf.quantization.experimental.quantize_saved_model(model, out, options, {signature: data} if method == "STATIC_RANGE_INT8" else None)
"""


def keras_models(folder):
    """Writes each as folder/NAME with requests in folder/NAME.tfrecord."""
    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    layers = keras.layers
    keras.utils.set_random_seed(1)

    def tagger(x):
        x = layers.Embedding(1000, 64)(x)
        return layers.Dense(20)(layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x))

    def conv1d(x):
        x = layers.Conv1D(32, 5, activation="relu")(x)
        x = layers.GlobalAveragePooling1D()(layers.Conv1D(64, 5, padding="same", activation="relu")(x))
        return layers.Dense(30)(x)

    def attention(x):
        y = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        return y + layers.Dense(64)(layers.Dense(128, activation="gelu")(y))

    def einsum(x):
        return layers.EinsumDense("abc,cde->abde", output_shape=(None, 4, 16))(x)

    def recurrent(x):
        return layers.Dense(32)(layers.LSTM(48)(layers.GRU(64, return_sequences=True)(x)))

    def convolutions(x):
        x = layers.SeparableConv2D(48, 3)(layers.DepthwiseConv2D(3)(layers.Conv2D(32, 3, padding="same", activation="relu")(x)))
        return layers.Dense(32)(layers.GlobalAveragePooling2D()(layers.Conv2DTranspose(16, 3, strides=2)(x)))

    def conv3d(x):
        return layers.Dense(96)(layers.GlobalAveragePooling3D()(layers.Conv3D(16, 3, activation="relu")(x)))

    def tied(x):
        table = layers.Embedding(1000, 32)
        return keras.ops.matmul(layers.Dense(32, activation="relu")(table(x)), keras.ops.transpose(table.embeddings))

    class WeightNorm(layers.Layer):
        def build(self, shape):
            self.v, self.g = self.add_weight(shape=(shape[-1], 64), name="v"), self.add_weight(shape=(64,), initializer="ones", name="g")

        def call(self, x):
            return keras.ops.matmul(x, self.v * (self.g / keras.ops.sqrt(keras.ops.sum(self.v * self.v, axis=0))))

    class Spectrum(layers.Layer):
        def call(self, x):  # the kernel is captured: the object graph binds it to the function's argument
            return keras.ops.matmul(x, keras.ops.transpose(self.kernel))

    def spectrum(x):
        layer = Spectrum()
        layer.kernel = tf.constant(np.random.default_rng(1).normal(size=(48, 64)), tf.float32)
        return layer(x)

    kinds = {"keras tagger": (tagger, (40,), 1000), "keras conv1d": (conv1d, (100, 16), 0), "keras attention": (attention, (24, 64), 0), "keras einsum": (einsum, (24, 64), 0),
             "keras recurrent": (recurrent, (24, 64), 0), "keras convolutions": (convolutions, (24, 24, 16), 0), "keras conv3d": (conv3d, (8, 16, 16, 4), 0),
             "keras tied": (tied, (12,), 1000), "keras captured": (spectrum, (24, 64), 0), "keras weight norm": (lambda x: WeightNorm()(x), (96,), 0)}
    rng = np.random.default_rng(0)
    for name, (make, shape, tokens) in kinds.items():
        x = keras.Input(shape, dtype="int32" if tokens else "float32")
        model = keras.Model(x, make(x))
        model.export(str(folder / name), verbose=False)
        signature = tf.saved_model.load(str(folder / name)).signatures["serving_default"]
        (key,) = signature.structured_input_signature[1]
        with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as file:
            for _ in range(SAMPLES):
                value = rng.integers(0, tokens, (2, *shape)).astype(np.int32) if tokens else rng.normal(size=(2, *shape)).astype(np.float32)
                log = prediction_log_pb2.PredictionLog()
                log.predict_log.request.model_spec.signature_name = "serving_default"
                log.predict_log.request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
                for k, v in signature(**{key: tf.constant(value)}).items():
                    log.predict_log.response.outputs[k].CopyFrom(tf.make_tensor_proto(v.numpy()))
                file.write(log.SerializeToString())
    return list(kinds)


def int8_tensors(folder):
    """[how many, bytes]. Keras writes a variable as two entries, before and after: equal values count once. Zeros do not: what a
    training's optimizer kept of a quantized variable becomes zeros of its type."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2
    found = {}

    def add(value):
        if value.any():
            found[hash((value.shape, value.tobytes()))] = value.size

    for meta in saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs:
        for nodes in meta.graph_def.node, *(f.node_def for f in meta.graph_def.library.function):
            for node in nodes:
                value = node.attr["value"].tensor
                if node.op == "Const" and value.dtype == tf.int8.as_datatype_enum:
                    add(tf.make_ndarray(value))
    if (folder / "variables" / "variables.index").exists():
        reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
        for key, dtype in reader.get_variable_to_dtype_map().items():
            if dtype == tf.int8:
                add(reader.get_tensor(key))
    sizes = [s for s in found.values() if s > 1]
    return [len(sizes), sum(sizes)]


def records(path):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    return [prediction_log_pb2.PredictionLog.FromString(raw) for raw in tf.compat.v1.io.tf_record_iterator(str(path))]


def noise(wanted, got, signature):
    """Signal to noise ratio in dB over the float outputs; None where there are none."""
    import numpy as np
    import tensorflow as tf
    signal = wrong = 0.0
    for a, b in zip(wanted, got):
        if a.predict_log.request.model_spec.signature_name != signature:
            continue
        for key, value in a.predict_log.response.outputs.items():
            x, y = tf.make_ndarray(value), tf.make_ndarray(b.predict_log.response.outputs[key])
            if x.dtype.kind == "f" and x.shape == y.shape:
                finite = np.isfinite(x) & np.isfinite(y)
                signal, wrong = signal + np.sum(np.square(x[finite], dtype=np.float64)), wrong + np.sum(np.square(x[finite] - y[finite], dtype=np.float64))
    return None if signal == 0 else 200.0 if wrong == 0 else 10 * np.log10(signal / wrong)


class Model:
    def __init__(self, smelt, path, log, work):
        import tensorflow as tf
        self.smelt, self.path, self.log, self.work = smelt, path, log, work
        first = records(log)[0]
        self.signature = first.predict_log.request.model_spec.signature_name
        self.tags = list(first.log_metadata.saved_model_tags) or ["serve"]
        self.samples = work / "samples.tfrecord"
        from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as options_pb2
        with tf.io.TFRecordWriter(str(self.samples)) as file:
            chosen = [r.predict_log.request for r in records(log) if r.predict_log.request.model_spec.signature_name == self.signature]
            for request in chosen[:SAMPLES]:
                sample = options_pb2.RepresentativeDataSample()
                for key, value in request.inputs.items():
                    sample.tensor_proto_inputs[key].CopyFrom(value)
                file.write(sample.SerializeToString())
        self.float = self.answers(path)

    def answers(self, model):
        out = self.work / "answers.tfrecord"
        out.unlink(missing_ok=True)
        subprocess.run([self.smelt, "replay", model, "--log", self.log, "--record", out], capture_output=True)
        return records(out) if out.exists() else []

    def ours(self, method):
        out, report = self.work / "ours", self.work / "report.json"
        data = 'representative_datasets { key: "%s" value { tfrecord_file_path: "%s" } }' % (self.signature, self.samples)
        options = 'quantization_options { quantization_method { preset_method: METHOD_%s } signature_keys: "%s" %s }' % (
            METHODS[method], self.signature, data if method == "static" else "")
        p = subprocess.run([self.smelt, "convert", "--input_model_dir", self.path, "--output_model_dir", out, "--overwrite", "--strip_training", "--report_json", report,
                            "--converter_options_string", options], capture_output=True, text=True)
        if p.returncode:
            return {"why": " ".join(p.stderr.split())[-120:]}
        return {"int8": int8_tensors(out), "dB": noise(self.float, self.answers(out), self.signature)}

    def theirs(self, method):
        out = self.work / f"theirs {method}"
        try:
            p = subprocess.run([sys.executable, "-c", THEIRS, self.path, self.log, out, METHODS[method], self.signature, ",".join(self.tags), str(SAMPLES)],
                               capture_output=True, text=True, timeout=900)
        except subprocess.TimeoutExpired:
            return {"why": "no answer in 15 minutes"}
        return {"int8": int8_tensors(out)} if (out / "saved_model.pb").exists() else {"why": " ".join(p.stderr.split())[-120:] or f"ended with {p.returncode}"}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("smelt"), ap.add_argument("models", type=pathlib.Path), ap.add_argument("goldens", type=pathlib.Path), ap.add_argument("names", nargs="*")
    ap.add_argument("--markdown", type=pathlib.Path), ap.add_argument("--theirs", type=pathlib.Path)
    a = ap.parse_args()
    known = json.loads(a.theirs.read_text()) if a.theirs and a.theirs.exists() else {}
    work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_quantized_layers_"))
    found = [(n, work / n, work / f"{n}.tfrecord") for n in keras_models(work)]
    found += [(p.stem, a.models / p.stem, p) for p in sorted(a.goldens.glob("*.tfrecord"))]
    rows, less = ["| model | method | smelt: tensors | bytes | dB | TensorFlow: tensors | bytes |", "|---|---|---|---|---|---|---|"], []
    for name, path, log in found:
        if a.names and name not in a.names or not records(log):
            continue
        folder = work / f"{name} work"
        folder.mkdir()
        model = Model(os.path.abspath(a.smelt), path, log, folder)
        for method in METHODS:
            key = f"{name} {method}"
            ours = model.ours(method)
            if key not in known:
                known[key] = model.theirs(method)
                if a.theirs:
                    a.theirs.write_text(json.dumps(known, indent=1))
            theirs = known[key]
            if ours.get("int8", [0])[0] == 0 and theirs.get("int8", [0])[0] == 0:
                continue
            dB = f"{ours['dB']:.1f}" if ours.get("dB") is not None else "-"
            row = [name, method, *(ours.get("int8") or ("refused", "-")), dB, *(theirs.get("int8") or ("fails", "-"))]
            rows.append("| " + " | ".join(str(v).replace("|", "/") for v in row) + " |")
            print(rows[-1], ours.get("why", ""), theirs.get("why", ""), flush=True)
            if theirs.get("int8", [0])[0] > ours.get("int8", [0])[0]:
                less.append(key)
    rows += ["", f"TensorFlow quantizes more weights in {len(less)} of {len(rows) - 2} rows" + (": " + ", ".join(less) if less else "") + "."]
    print(rows[-1])
    if a.markdown:
        a.markdown.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
