"""Libraries for one task each: forests, recommenders, ranking, agents, text, transforms, model garden, jax2tf."""
import numpy as np

from stranger_rows.rows import stranger

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
