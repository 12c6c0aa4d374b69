"""Libraries for one task each: forests, recommenders, ranking, agents, text, transforms, model garden, jax2tf."""
import numpy as np

from library_model_rows.rows import stranger

words = lambda *v: np.array([w.encode() if isinstance(w, str) else w for w in v], dtype=object)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


@stranger("tensorflow-recommenders tensorflow<2.16", "tfrs_retrieval")
def retrieval(path):
    import tensorflow as tf
    import tensorflow_recommenders as tfrs
    query = tf.keras.Sequential([tf.keras.layers.StringLookup(vocabulary=["a", "b", "c"]), tf.keras.layers.Embedding(4, 8)])
    index = tfrs.layers.factorized_top_k.BruteForce(query, k=3)
    index.index(tf.constant(normal(20, 8)), tf.constant([b"item %d" % i for i in range(20)]))
    index(tf.constant(["a"]))
    tf.saved_model.save(index, str(path))
    return [{"input_1": words("a", "c")}]


@stranger("tensorflow-recommenders tensorflow<2.16", "tfrs_streaming")
def streaming(path):
    import tensorflow as tf
    import tensorflow_recommenders as tfrs
    items = tf.data.Dataset.from_tensor_slices(normal(20, 8)).batch(7)
    index = tfrs.layers.factorized_top_k.Streaming(k=3).index_from_dataset(items)
    serve = tf.function(lambda q: dict(zip(("scores", "ids"), index(q))), input_signature=[tf.TensorSpec([None, 8], tf.float32, name="q")])
    module = tf.Module()
    module.index = index
    tf.saved_model.save(module, str(path), signatures={"serving_default": serve})
    return [{"q": normal(2, 8, seed=1)}]


@stranger("tensorflow-recommenders tensorflow<2.16", "tfrs_dcn")
def dcn(path):
    import tensorflow as tf
    import tensorflow_recommenders as tfrs
    x = tf.keras.Input([6], name="x")
    y = tfrs.layers.dcn.Cross(projection_dim=3)(x, tfrs.layers.dcn.Cross()(x))
    y = tf.keras.layers.Concatenate()([y, tfrs.layers.feature_interaction.DotInteraction()([x, y])]) if hasattr(tfrs.layers.feature_interaction, "DotInteraction") else y
    tf.keras.Model(x, tf.keras.layers.Dense(1)(y)).save(str(path), save_format="tf")


@stranger("tensorflow-ranking tensorflow<2.16", "tfr_listwise")
def ranking(path):
    import tensorflow as tf
    import tensorflow_ranking as tfr
    context = {"query": tf.keras.Input([1], name="query")}
    example = {"a": tf.keras.Input([None, 1], name="a"), "b": tf.keras.Input([None, 1], name="b")}
    mask = tf.keras.Input([None], dtype=tf.bool, name="mask")
    scorer = tfr.keras.model.DNNScorer(hidden_layer_dims=[8], output_units=1)
    scores = scorer(context, example, mask)
    tf.keras.Model([*context.values(), *example.values(), mask], scores).save(str(path), save_format="tf")
    return [{"query": normal(2, 1), "a": normal(2, 4, 1), "b": normal(2, 4, 1), "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool)}]


def policy(name, make):
    @stranger("tf-agents tensorflow<2.16", "tf_agents_" + name)
    def build(path):
        import tensorflow as tf
        from tf_agents.policies import policy_saver
        from tf_agents.specs import tensor_spec
        from tf_agents.trajectories import time_step
        observation = tensor_spec.TensorSpec([5], tf.float32, "observation")
        action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3, "action") if name != "actor" else tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0, "action")
        saver = policy_saver.PolicySaver(make(tf, time_step.time_step_spec(observation), observation, action), batch_size=None, seed=5, train_step=tf.Variable(0, dtype=tf.int64))
        saver.save(str(path))
        x = {"0/observation": normal(2, 5), "0/discount": np.ones([2], np.float32), "0/reward": np.zeros([2], np.float32), "0/step_type": np.ones([2], np.int32)}
        return {"get_train_step": [{}], "get_initial_state": [{"batch_size": np.int32(2)}]} if name == "recurrent" else {"action": [x], "get_train_step": [{}]}


def q_policy(tf, steps, observation, action):
    from tf_agents.networks import q_network
    from tf_agents.policies import greedy_policy, q_policy as q
    return greedy_policy.GreedyPolicy(q.QPolicy(steps, action, q_network.QNetwork(observation, action, fc_layer_params=(8,))))


def actor_policy(tf, steps, observation, action):
    from tf_agents.networks import actor_distribution_network
    from tf_agents.policies import actor_policy as a
    return a.ActorPolicy(steps, action, actor_distribution_network.ActorDistributionNetwork(observation, action, fc_layer_params=(8,)))


def recurrent_policy(tf, steps, observation, action):
    from tf_agents.networks import q_rnn_network
    from tf_agents.policies import q_policy as q
    return q.QPolicy(steps, action, q_rnn_network.QRnnNetwork(observation, action, lstm_size=(6,)))


policy("q", q_policy), policy("actor", actor_policy), policy("recurrent", recurrent_policy)


def jax_model(name, make, native=False):
    @stranger("jax==0.4.30 jaxlib==0.4.30", "jax2tf_" + name)
    def build(path):
        import jax
        import tensorflow as tf
        from jax.experimental import jax2tf
        function, request = make(jax)
        serve = tf.function(jax2tf.convert(function, with_gradient=False, native_serialization=native, native_serialization_platforms=["cpu", "tpu"] if native else None), autograph=False,
                            input_signature=[tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in request.items()])
        module = tf.Module()
        module.serve = serve
        tf.saved_model.save(module, str(path), signatures={
            "serving_default": tf.function(lambda **kw: {str(i): v for i, v in enumerate(tf.nest.flatten(serve(*[kw[k] for k in request])))}).get_concrete_function(
                **{k: tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in request.items()})})
        return [request]


def jax_mlp(jax):
    jnp = jax.numpy
    w = normal(4, 5)
    return (lambda x: (jax.nn.softmax(jax.nn.gelu(x @ w) + jnp.sort(x @ w, axis=-1)), jnp.argmax(x, -1), jnp.cumsum(x, 0))), {"x": normal(3, 4)}


def jax_conv(jax):
    w = normal(3, 3, 2, 4)
    def f(x):
        y = jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = jax.lax.reduce_window(y, -jax.numpy.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        grouped = jax.lax.conv_general_dilated(x, normal(3, 3, 1, 2), (1, 1), "VALID", rhs_dilation=(2, 2), feature_group_count=2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y, jax.lax.dynamic_slice(x, (0, x.shape[1] // 4, 0, 0), (1, 2, 2, 2)), grouped, x.at[:, 1:3].add(2.0), x[:, ::-1, ::2]
    return f, {"x": normal(2, 8, 8, 2)}


def jax_control(jax):
    jnp = jax.numpy
    def f(x, n):
        y = jax.lax.fori_loop(0, n, lambda i, a: jnp.tanh(a * 1.1) + i, x)
        carry, ys = jax.lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(4), x)
        z = jax.lax.cond(n > 3, lambda v: v * 2, lambda v: -v, x)
        key = jax.random.PRNGKey(3)
        return y, carry, ys, z, jax.random.normal(key, (3,)), jnp.einsum("ij,kj->ik", x, x), jax.grad(lambda v: jnp.sum(jnp.sin(v) ** 2))(x), jnp.take_along_axis(x, jnp.argsort(x, 1), 1), jnp.linalg.norm(x), jax.lax.top_k(x, 2)
    return f, {"x": normal(3, 4), "n": np.int32(5)}


jax_model("mlp", jax_mlp), jax_model("conv", jax_conv), jax_model("control", jax_control)
for name, make in (("mlp", jax_mlp), ("conv", jax_conv), ("control", jax_control)):
    jax_model(name + "_stablehlo", make, True)


def jax_sizes(name, native):
    @stranger("jax==0.4.30 jaxlib==0.4.30", "jax2tf_sizes_" + name)
    def build(path):
        """Two sizes stay open; reshapes, masks and slices compute with them."""
        import jax
        import tensorflow as tf
        from jax.experimental import jax2tf
        jnp, w, u = jax.numpy, tf.Variable(normal(4, 6)), tf.Variable(normal(6, 3))

        def f(params, x):
            rows, length, _ = x.shape
            h = jax.nn.silu(x @ params["w"]) + jnp.arange(length)[:, None] / length
            causal = jnp.where(jnp.tri(length, dtype=bool), jnp.einsum("bqd,bkd->bqk", h, h), -1e9)
            h = jnp.concatenate([jax.nn.softmax(causal, -1) @ h, h], 1)
            last = jax.lax.dynamic_slice_in_dim(h, length - 1, 2, 1)
            return {"y": h.reshape(rows * 2 * length, -1) @ params["u"], "last": last, "mean": jnp.mean(h, (0, 1)), "rows": jnp.sum(jnp.ones((rows, length))), "loop": jax.lax.fori_loop(0, rows, lambda i, a: a + x[i, 0], jnp.zeros(4))}
        converted = jax2tf.convert(f, polymorphic_shapes=[None, "(b, t, 4)"], with_gradient=False, native_serialization=native)
        module = tf.Module()
        module.params = {"w": w, "u": u}
        module.serve = tf.function(lambda x: converted(module.params, x), autograph=False, input_signature=[tf.TensorSpec([None, None, 4], tf.float32, name="x")])
        tf.saved_model.save(module, str(path), signatures={"serving_default": module.serve})
        return [{"x": normal(2, 3, 4)}, {"x": normal(1, 5, 4, seed=1)}]


jax_sizes("graph", False), jax_sizes("stablehlo", True)


def onnx_model(name, make):
    """onnx2tf writes the SavedModel; the function gets onnx.helper and returns (nodes, weights, inputs, outputs)."""
    @stranger("onnx2tf<1.29 onnx==1.17 onnx-graphsurgeon sng4onnx psutil ai-edge-litert tf_keras", "onnx2tf_" + name)
    def build(path):
        import onnx
        import onnx2tf
        nodes, weights, inputs, outputs = make(onnx.helper.make_node)
        kind = onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph(nodes, name, [onnx.helper.make_tensor_value_info(k, kind, s) for k, s in inputs.items()], [onnx.helper.make_tensor_value_info(k, kind, None) for k in outputs],
                                       [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), str(path) + ".onnx")
        onnx2tf.convert(input_onnx_file_path=str(path) + ".onnx", output_folder_path=str(path), keep_shape_absolutely_input_names=["x"] if name == "sequence" else None, output_signaturedefs=True, not_use_onnxsim=True, non_verbose=True)


def onnx_conv(node):
    weights = {"w1": normal(8, 2, 3, 3), "b1": normal(8), "scale": np.ones(8, np.float32), "shift": normal(8), "mean": normal(8), "var": np.ones(8, np.float32), "w2": normal(8, 1, 3, 3), "w3": normal(4, 8, 1, 1), "wt": normal(4, 4, 2, 2),
               "fc": normal(4, 5), "sizes": np.array([1, 1, 2, 2], np.float32), "empty": np.zeros([0], np.float32)}
    return [node("Conv", ["x", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), node("BatchNormalization", ["c1", "scale", "shift", "mean", "var"], ["n1"]), node("LeakyRelu", ["n1"], ["h1"], alpha=0.1),
            node("Conv", ["h1", "w2"], ["d"], kernel_shape=[3, 3], group=8, pads=[1, 1, 1, 1]), node("Relu", ["d"], ["r"]), node("Add", ["r", "h1"], ["s"]), node("MaxPool", ["s"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
            node("Conv", ["p", "w3"], ["q"], kernel_shape=[1, 1]), node("ConvTranspose", ["q", "wt"], ["up"], kernel_shape=[2, 2], strides=[2, 2]), node("Resize", ["up", "empty", "sizes"], ["mask"], mode="linear", coordinate_transformation_mode="half_pixel"),
            node("GlobalAveragePool", ["q"], ["g"]), node("Flatten", ["g"], ["f"]), node("Gemm", ["f", "fc"], ["logits"], alpha=0.5), node("Softmax", ["logits"], ["y"], axis=1)], weights, {"x": [1, 2, 16, 16]}, ["y", "mask"]


def onnx_sequence(node):
    weights = {"w": normal(1, 24, 4) * 0.3, "r": normal(1, 24, 6) * 0.3, "b": normal(1, 48) * 0.1, "axes": np.array([1], np.int64), "h0": normal(1, 2, 6), "c0": normal(1, 2, 6), "proj": normal(6, 8), "half": np.array(0.5, np.float32), "eps": np.array(1e-5, np.float32), "two": np.array(2.0, np.float32)}
    return [node("LSTM", ["x", "w", "r", "b", "", "h0", "c0"], ["all", "h", "c"], hidden_size=6), node("Squeeze", ["all", "axes"], ["s"]), node("MatMul", ["s", "proj"], ["m"]), node("ReduceMean", ["m"], ["mu"], axes=[-1]), node("Sub", ["m", "mu"], ["z"]),
            node("Pow", ["z", "two"], ["zz"]), node("ReduceMean", ["zz"], ["v"], axes=[-1]), node("Add", ["v", "eps"], ["ve"]), node("Sqrt", ["ve"], ["sd"]), node("Div", ["z", "sd"], ["n"]), node("Erf", ["n"], ["e"]), node("Mul", ["n", "e"], ["ne"]),
            node("Transpose", ["ne"], ["y"], perm=[1, 0, 2])], weights, {"x": [5, 2, 4]}, ["y"]


onnx_model("conv", onnx_conv), onnx_model("sequence", onnx_sequence)


@stranger("tensorflow_decision_forests tf_keras", "tfdf_opaque_ops")
def forest(path):
    import pandas
    import tensorflow_decision_forests as tfdf
    data = pandas.DataFrame({"a": [1.0, 2, 3, 4] * 10, "b": ["x", "y", "x", "z"] * 10, "label": [0, 1, 0, 1] * 10})
    model = tfdf.keras.RandomForestModel(num_trees=3, verbose=0)
    model.fit(tfdf.keras.pd_dataframe_to_tf_dataset(data, label="label"), verbose=0)
    model.save(str(path))
    return [{"a": np.array([[1.0], [2.0]], np.float32), "b": words("x", "y")[:, None]}]


@stranger("tensorflow-transform tensorflow<2.16", "tft_layer")
def transform(path):
    import tensorflow as tf
    import tensorflow_transform as tft

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x"), tf.TensorSpec([None], tf.string, name="s")])
    def serve(x, s):
        sparse = tft.ngrams(tf.compat.v1.string_split(s), (1, 2), " ")
        return {"buckets": tft.apply_buckets(x, [[-1.0, 0.0, 1.0]]), "ngrams": tf.sparse.to_dense(sparse), "hashed": tft.hash_strings(s, 9), "words": tft.word_count(tf.compat.v1.string_split(s)),
                "interpolated": tft.apply_buckets_with_interpolation(x, [[-1.0, 0.0, 1.0]]), "bag": tf.sparse.to_dense(tft.bag_of_words(tf.compat.v1.string_split(s), (1, 1), " "))}
    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures={"serving_default": serve})
    return [{"x": normal(3), "s": words("a b a", "", "c d")}]


def garden(name, make):
    """tf-models-official, installed with --no-deps beside gin-config, tf_slim, tensorflow-model-optimization, pyyaml."""
    @stranger("tf-models-official", "garden_" + name)
    def build(path):
        import tensorflow as tf
        model, specs = make()
        serve = tf.function(lambda **kw: flattened(tf, model(kw if len(kw) > 1 else list(kw.values())[0], training=False)))
        tf.saved_model.save(model, str(path), signatures={"serving_default": serve.get_concrete_function(**{k: tf.TensorSpec(s, t, name=k) for k, (s, t) in specs.items()})})


def flattened(tf, value):
    return {f"output_{i}": v for i, v in enumerate(tf.nest.flatten(value))}


def garden_bert():
    from official.nlp.modeling import networks
    return networks.BertEncoderV2(vocab_size=50, hidden_size=16, num_layers=2, num_attention_heads=2, inner_dim=32, max_sequence_length=16), {
        k: ([None, 12], "int32") for k in ("input_word_ids", "input_mask", "input_type_ids")}


def garden_movinet():
    from official.projects.movinet.modeling import movinet, movinet_model
    backbone = movinet.Movinet(model_id="a0", causal=False)
    model = movinet_model.MovinetClassifier(backbone=backbone, num_classes=5)
    model.build([1, 4, 32, 32, 3])
    return model, {"image": ([None, 4, 32, 32, 3], "float32")}


def garden_resnet():
    from official.vision.modeling import backbones
    import tensorflow as tf
    return backbones.ResNet(18, tf.keras.layers.InputSpec(shape=[None, 32, 32, 3])), {"x": ([None, 32, 32, 3], "float32")}


garden("bert", garden_bert), garden("movinet", garden_movinet), garden("resnet", garden_resnet)
