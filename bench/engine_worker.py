#!/usr/bin/env python3
"""One engine with one model, for engines.py: engine_worker.py convert KIND FOLDER CACHE BATCH | engine_worker.py serve ENGINE FOLDER CACHE THREADS

FOLDER holds saved_model, inputs_B.npz and outputs_B.npz, CACHE what `convert` wrote. `convert` prints a JSON line: {} or {"error": text}. `serve` answers a
JSON line to each line {"batch": b, "seconds": s}: {"ms": median} or {"error": text}; for no seconds {"worst": largest error by the outputs' range}."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

# What an engine loads, as convert's KIND and the file in the cache. Files of a batch hold {b}.
FILES = {"ort": ("onnx", "model.onnx"), "openvino": ("openvino", "model.xml"), "openvino_bf16": ("openvino", "model.xml"), "litert": ("litert", "b{b}.tflite"),
         "ort_int8": ("onnx_int8", "int8.onnx"), "openvino_int8": ("openvino_int8", "int8.xml"), "litert_int8": ("litert_int8", "int8_b{b}.tflite")}
# What is converted before.
NEEDS = {"openvino": ["onnx"], "onnx_int8": ["onnx"], "openvino_int8": ["onnx", "openvino"]}
OPEN_LENGTH = 64  # of dimensions other than the first, where the signature leaves them open


def arrays(folder, kind, batch):
    """Stored arrays by name; other batches than 1 and 8 repeat the rows of 8."""
    path = folder / f"{kind}_{batch}.npz"
    repeat = 1 if path.exists() else batch // 8
    with np.load(path if path.exists() else folder / f"{kind}_8.npz") as stored:
        return {k: np.concatenate([stored[k]] * repeat) for k in stored.files}


def rows(folder, batch):
    """The stored rows of batch 8 in pieces of `batch`: what int8 is calibrated on."""
    stored = arrays(folder, "inputs", 8)
    return [{k: np.ascontiguousarray(v[i:i + batch]) for k, v in stored.items()} for i in range(0, 8, batch)]


# ---- conversions

def to_onnx(folder, cache, batch):
    path = cache / "model.onnx"
    p = subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--saved-model", str(folder / "saved_model"), "--output", str(path), "--opset", "18"],
                       capture_output=True, text=True)
    if p.returncode or not path.exists():
        raise RuntimeError(next((line for line in reversed((p.stdout + p.stderr).splitlines()) if line.strip()), "tf2onnx failed"))
    import onnxruntime
    onnxruntime.InferenceSession(str(path))


def to_openvino(folder, cache, batch):
    """Of the SavedModel, or of its ONNX file where OpenVINO does not take that."""
    import openvino as ov
    core = openvino_core()
    errors = []
    for source in (folder / "saved_model", cache / "model.onnx"):
        try:
            model = ov.convert_model(str(source))
            core.compile_model(model, "CPU")  # some are read and do not compile
            return ov.save_model(model, str(cache / "model.xml"), compress_to_fp16=False)
        except Exception as error:
            errors.append(f"{source.name}: {short(error)}")
    raise RuntimeError("; ".join(errors))


def to_litert(folder, cache, batch, int8=False):
    import tensorflow as tf
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    signature = loaded.signatures["serving_default"]
    specs = {k: tf.TensorSpec([batch if i == 0 else d or OPEN_LENGTH for i, d in enumerate(s.shape)], s.dtype, name=k)
             for k, s in signature.structured_input_signature[1].items()}
    function = tf.function(lambda **inputs: signature(**inputs)).get_concrete_function(**specs)
    sets = tf.lite.OpsSet
    for ops in ([sets.TFLITE_BUILTINS], [sets.TFLITE_BUILTINS, sets.SELECT_TF_OPS]):
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function], loaded)
        converter.target_spec.supported_ops = [sets.TFLITE_BUILTINS_INT8] + ops if int8 else ops
        if int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: iter(list(piece.values()) if len(piece) == 1 else piece for piece in rows(folder, batch))
        try:
            data = converter.convert()
            break
        except Exception as error:
            if sets.SELECT_TF_OPS in ops:
                raise
    (cache / f"{'int8_' if int8 else ''}b{batch}.tflite").write_bytes(data)


def to_onnx_int8(folder, cache, batch):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        pieces = iter(rows(folder, 1))

        def get_next(self):
            return next(self.pieces, None)
    quant_pre_process(str(cache / "model.onnx"), str(cache / "prepared.onnx"), skip_symbolic_shape=True)
    quantization.quantize_static(str(cache / "prepared.onnx"), str(cache / "int8.onnx"), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)


def to_openvino_int8(folder, cache, batch):
    import nncf
    import openvino as ov
    model = ov.Core().read_model(str(cache / "model.xml"))
    data = nncf.Dataset([list(piece.values())[0] if len(piece) == 1 else piece for piece in rows(folder, 1)])
    ov.save_model(nncf.quantize(model, data, preset=nncf.QuantizationPreset.MIXED), str(cache / "int8.xml"), compress_to_fp16=False)


CONVERSIONS = {"onnx": to_onnx, "openvino": to_openvino, "litert": to_litert, "litert_int8": lambda *a: to_litert(*a, int8=True), "onnx_int8": to_onnx_int8,
               "openvino_int8": to_openvino_int8}


# ---- engines: each gives a function of no argument that runs the inputs and returns outputs by name

def openvino_core():
    """Knows the ops of models that take texts, where their package is there."""
    import openvino as ov
    try:
        import openvino_tokenizers  # noqa: F401
    except ImportError:
        pass
    return ov.Core()


def tensorflow_engine(folder, path, inputs, threads):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    feeds = {k: tf.constant(v) for k, v in inputs.items()}
    signature = loaded.signatures["serving_default"]
    return lambda keep=loaded: {k: v.numpy() for k, v in signature(**feeds).items()}


def ort_engine(folder, path, inputs, threads):
    import onnxruntime

    def session(pinned):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        for name, size in pinned.items():
            options.add_free_dimension_override_by_name(name, size)
        return onnxruntime.InferenceSession(str(path), options)
    made = session({})
    given = {i.name: inputs[i.name.split(":")[0]] for i in made.get_inputs()}
    pinned = {d: given[i.name].shape[axis] for i in made.get_inputs() for axis, d in enumerate(i.shape) if isinstance(d, str)}
    try:
        made = session(pinned)
    except Exception:
        pass  # with open sizes, then
    names = [o.name for o in made.get_outputs()]
    return lambda: dict(zip(names, made.run(names, given)))


def openvino_engine(folder, path, inputs, threads, precision="f32"):
    core = openvino_core()
    inputs = {k: v if v.dtype.kind != "S" else np.array([s.decode("latin-1") for s in v]) for k, v in inputs.items()}
    model = core.read_model(str(path))

    def given(port):
        return inputs[next(n.split(":")[0] for n in port.get_names() if n.split(":")[0] in inputs)]
    try:
        model.reshape({i: list(given(port).shape) for i, port in enumerate(model.inputs)})
    except Exception:
        model = core.read_model(str(path))  # with open sizes, then
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision}
    compiled = core.compile_model(model, "CPU", hints)
    request = compiled.create_infer_request()
    feeds = {i: given(port) for i, port in enumerate(compiled.inputs)}
    names = [min(port.get_names(), default=str(i)) for i, port in enumerate(compiled.outputs)]
    return lambda: dict(zip(names, request.infer(feeds, share_inputs=True).values()))


def litert_engine(folder, path, inputs, threads):
    from ai_edge_litert.interpreter import Interpreter
    try:
        interpreter = Interpreter(model_path=str(path), num_threads=threads)
        interpreter.allocate_tensors()
    except Exception as error:
        if "Flex" not in str(error) and "Select TensorFlow" not in str(error):
            raise
        import tensorflow as tf  # its interpreter has TensorFlow's ops
        interpreter = tf.lite.Interpreter(model_path=str(path), num_threads=threads)
        interpreter.allocate_tensors()
    runner = interpreter.get_signature_runner()
    feeds = [(d["index"], inputs[k]) for k, d in runner.get_input_details().items()]
    outputs = {k: d["index"] for k, d in runner.get_output_details().items()}

    def run():
        for index, value in feeds:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return {k: interpreter.get_tensor(index) for k, index in outputs.items()}
    return run


ENGINES = {"tf": tensorflow_engine, "ort": ort_engine, "ort_int8": ort_engine, "openvino": openvino_engine, "openvino_int8": openvino_engine,
           "openvino_bf16": lambda *a: openvino_engine(*a, precision="bf16"), "litert": litert_engine, "litert_int8": litert_engine}


def worst_error(got, want):
    def one(g, w):
        if g.shape != w.shape:
            return float("inf")
        if w.dtype.kind not in "fiub":
            return 0.0
        g, w = g.astype(np.float64), w.astype(np.float64)
        # One number alone has no range but its size.
        span = np.ptp(w) if w.size > 1 else np.max(np.abs(w), initial=0)
        return float(np.max(np.abs(g - w), initial=0) / max(span, 1e-9))
    # Names are the converter's own where it changed them.
    pairs = [(got.get(k, other), w) for (k, w), other in zip(want.items(), got.values())]
    return max((one(g, w) for g, w in pairs), default=0.0)


def answer(engine, folder, cache, threads, made, ask):
    batch, seconds = ask["batch"], ask["seconds"]
    if batch not in made:
        path = cache / FILES[engine][1].format(b=batch) if engine in FILES else None
        made[batch] = ENGINES[engine](folder, path, arrays(folder, "inputs", batch), threads)
    run = made[batch]
    if not seconds:
        return {"worst": worst_error(run(), arrays(folder, "outputs", batch))}
    begin, count = time.perf_counter(), 0
    while count < 2 or time.perf_counter() - begin < seconds / 5:
        run()
        count += 1
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return {"ms": statistics.median(times) * 1e3}


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def main():
    what, kind, folder, cache, number = sys.argv[1:]
    folder, cache = pathlib.Path(folder), pathlib.Path(cache)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    if what == "convert":
        try:
            CONVERSIONS[kind](folder, cache, int(number))
            said = {}
        except BaseException as error:
            said = {"error": short(error)}
        print(json.dumps(said), file=out, flush=True)
        return
    made = {}
    for line in sys.stdin:
        try:
            said = answer(kind, folder, cache, int(number), made, json.loads(line))
        except Exception as error:
            said = {"error": short(error)}
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main()
