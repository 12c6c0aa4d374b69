"""Builds one row's model and writes what TensorFlow answers for it: NAME.tfrecord (PredictionLogs) and NAME.json (facts)."""
import json
import os
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

HIDDEN = {"__saved_model_init_op", "__saved_model_train_op"}
FREE = (16, 64, 32, 128, 1, 224)  # tried in turn for dimensions that a signature leaves open


def tensors(signature, kind):
    """{key: (tensor name, dtype, dims or None)} of the inputs or outputs, a sparse or composite one as its parts."""
    import tensorflow as tf
    found = {}
    for key, info in sorted(getattr(signature, kind).items()):
        if info.WhichOneof("encoding") == "coo_sparse":
            for part, dtype, dims in (("indices", tf.int64, [-1, 2]), ("values", tf.as_dtype(info.dtype), [-1]), ("dense_shape", tf.int64, [2])):
                found[f"{key}/{part}"] = (getattr(info.coo_sparse, part + "_tensor_name"), dtype, dims)
        elif info.WhichOneof("encoding") == "composite_tensor":
            for i, part in enumerate(info.composite_tensor.components):
                found[f"{key}/{i}"] = (part.name, tf.as_dtype(part.dtype), [d.size for d in part.tensor_shape.dim])
        else:
            found[key] = (info.name, tf.as_dtype(info.dtype), None if info.tensor_shape.unknown_rank else [d.size for d in info.tensor_shape.dim])
    return found


def draw(dtype, dims, batch, free, rng):
    import numpy as np
    shape = [d if d >= 0 else (batch if i == 0 else free) for i, d in enumerate(dims or [])]
    if dtype.name == "string":
        return np.array([b"the cat sat", b"Hello, World", b"", b"42"][:1] * int(np.prod(shape)), dtype=object).reshape(shape)
    if dtype.is_integer or dtype.is_bool:
        return rng.integers(0, 2, shape).astype(dtype.as_numpy_dtype)
    return rng.normal(0, 1, shape).astype(dtype.as_numpy_dtype)


def drawn(signature, run):
    """Requests that run, of batch 1 and 3."""
    import numpy as np
    inputs, error = tensors(signature, "inputs"), None
    for batch in (1, 3) if any(dims and dims[0] < 0 for _, _, dims in inputs.values()) else (1,):
        for free in FREE:
            request = {k: draw(dtype, dims, batch, free, np.random.default_rng(batch)) for k, (_, dtype, dims) in inputs.items()}
            try:
                run(request)
            except Exception as e:
                error = e
                continue
            yield request
            error = None
            break
    if error is not None:
        raise error


def same(a, b):
    import numpy as np
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype.kind in "OSUbiu":
        return a.shape == b.shape and bool((a == b).all())
    return bool(np.allclose(a.astype(np.complex128), b.astype(np.complex128), rtol=1e-4, atol=1e-5, equal_nan=True))


class Served:
    """A session of its own on the saved model, as TensorFlow Serving holds it."""

    def __init__(self, path, tags):
        import tensorflow as tf
        start = time.process_time()
        with tf.Graph().as_default() as graph:
            self.session = tf.compat.v1.Session(graph=graph)
            self.signatures = tf.compat.v1.saved_model.load(self.session, tags, str(path)).signature_def
        self.loaded = time.process_time() - start

    def run(self, key, request):
        inputs, outputs = tensors(self.signatures[key], "inputs"), tensors(self.signatures[key], "outputs")
        return self.session.run({k: name for k, (name, _, _) in outputs.items()}, {inputs[k][0]: v for k, v in request.items()})


def record(path, requests):
    import tensorflow as tf
    from tensorflow.python.saved_model import loader_impl
    from tensorflow_serving.apis import prediction_log_pb2
    tags = list(loader_impl.parse_saved_model(str(path)).meta_graphs[0].meta_info_def.tags)
    first, second = Served(path, tags), Served(path, tags)
    if isinstance(requests, list):
        requests = {"serving_default": requests}
    if requests is None:
        requests = {k: list(drawn(s, lambda r, k=k: Served(path, tags).run(k, r))) for k, s in first.signatures.items() if k not in HIDDEN}
    random, outputs, seconds = set(), set(), 0
    with tf.io.TFRecordWriter(str(path) + ".tfrecord") as out:
        for key, values in requests.items():
            for request in values:
                start = time.process_time()
                answer = first.run(key, request)
                seconds = seconds or first.loaded + time.process_time() - start
                again = second.run(key, request)
                random |= {k for k in answer if not same(answer[k], again[k])}
                outputs |= set(answer)
                log = prediction_log_pb2.PredictionLog()
                log.log_metadata.saved_model_tags.extend(tags)
                predict = log.predict_log
                predict.request.model_spec.signature_name = key
                types = {k: dtype for k, (_, dtype, _) in tensors(first.signatures[key], "inputs").items()}
                for k, v in request.items():
                    predict.request.inputs[k].CopyFrom(tf.make_tensor_proto(v, dtype=types[k]))
                for k, v in answer.items():
                    predict.response.outputs[k].CopyFrom(tf.make_tensor_proto(v))
                out.write(log.SerializeToString())
    key = list(requests)[0]
    graph = first.session.graph.as_graph_def()
    nodes = [n for part in (graph.node, *(f.node_def for f in graph.library.function)) for n in part]
    functions = {f.signature.name for f in graph.library.function}
    custom = sorted({n.op for n in nodes if not hasattr(tf.raw_ops, n.op) and n.op not in functions and not n.op.startswith(("_", "Xla"))})
    chooses = any("api_implements" in f.attr for f in graph.library.function)
    draws = any("Random" in n.op or "Multinomial" in n.op for n in nodes)
    narrow = any(a.type in (tf.float16.as_datatype_enum, tf.bfloat16.as_datatype_enum) for n in nodes for a in n.attr.values())
    tf.quantization.experimental.TfRecordRepresentativeDatasetSaver(path_map={key: f"{path}.samples.tfrecord"}).save({key: requests[key]})
    facts = {"signatures": list(requests), "random": sorted(random), "draws": draws, "narrow": narrow, "custom": custom, "chooses": chooses, "outputs": sorted(outputs), "seconds": seconds, "tensorflow": tf.__version__}
    path.with_name(path.name + ".json").write_text(json.dumps(facts))


def make(name, work):
    from library_model_rows.rows import ROWS
    try:
        import tensorflow as tf
        tf.get_logger().setLevel("ERROR")
        tf.random.set_seed(3)
        tf.keras.backend.clear_session()
        requests = ROWS[name].build(work / name)
        record(work / name, requests)
    except ImportError as e:
        fact = {"skipped": f"{e} (pip install {ROWS[name].requirements})"}
    except Exception:
        fact = {"unmade": " ".join(traceback.format_exc().split())[-400:]}
    else:
        return
    (work / f"{name}.json").write_text(json.dumps(fact))
