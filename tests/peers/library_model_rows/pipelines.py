"""How models come: graphs of version 1, policies of two precisions, examples and tables from files, several signatures with state, gradients, JAX."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of
from library_model_rows.modules import module, normal, words
from library_model_rows.rows import stranger
from library_model_rows.sequences import weights
from library_model_rows.version_one import graph


@keras_model("mixed_half_vision")
def half(tf, keras):
    (keras.mixed_precision.set_global_policy if not hasattr(keras, "ops") else keras.config.set_dtype_policy)("mixed_float16")
    L = keras.layers
    x = inputs = keras.Input([16, 16, 3], name="image")
    for n in (4, 8):
        x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(n, 3, strides=2, padding="same", use_bias=False)(x)))
    x = L.Dense(6, activation="gelu")(L.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, L.Dense(3, activation="softmax", dtype="float32")(L.LayerNormalization()(x))), [{"image": normal(2, 16, 16, 3)}]


@keras_model("mixed_bfloat16_text")
def brain(tf, keras):
    (keras.mixed_precision.set_global_policy if not hasattr(keras, "ops") else keras.config.set_dtype_policy)("mixed_bfloat16")
    L = keras.layers
    inputs = keras.Input([6], dtype="int32", name="ids")
    x = L.Embedding(10, 8)(inputs)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4)(x, x))
    x = L.Bidirectional(L.LSTM(4))(x)
    return keras.Model(inputs, L.Dense(3, dtype="float32")(x)), [{"ids": np.array([[1, 2, 3, 4, 5, 6]], np.int32)}]


@keras_model("shared_nested")
def nested(tf, keras):
    """A siamese model of a nested one, a lambda, a custom gradient, weights that are shared, outputs by name, regularizers."""
    L = keras.layers

    @tf.custom_gradient
    def clipped(x):
        return tf.clip_by_value(x, -1.0, 1.0), lambda dy: dy * 0.5
    tower = keras.Sequential([keras.Input([8, 8, 1]), L.Conv2D(4, 3, activation="relu", kernel_regularizer="l2"), L.GaussianNoise(0.1), L.Flatten(), L.Dense(4, activity_regularizer="l2"), L.ActivityRegularization(l1=0.01)], name="tower")
    a, b = keras.Input([8, 8, 1], name="left"), keras.Input([8, 8, 1], name="right")
    x, y = tower(a), tower(b)
    d = layer_of(keras, lambda v: tf.sqrt(tf.maximum(tf.reduce_sum(tf.square(v[0] - v[1]), 1, keepdims=True), 1e-7)))([x, y])
    z = layer_of(keras, clipped)(L.Subtract()([x, y]))
    return keras.Model([a, b], {"distance": d, "clipped": z, "cosine": L.Dot(1, normalize=True)([x, y])}), [{"left": normal(2, 8, 8, 1), "right": normal(2, 8, 8, 1, seed=1)}]


@keras_model("advanced_activations")
def activations(tf, keras):
    L = keras.layers
    inputs = keras.Input([6], name="x")
    names = ["elu", "exponential", "gelu", "hard_sigmoid", "linear", "relu", "selu", "sigmoid", "softmax", "softplus", "softsign", "swish", "tanh", "relu6", "leaky_relu", "log_softmax", "mish", "silu", "celu", "glu",
             "hard_shrink", "hard_tanh", "log_sigmoid", "soft_shrink", "sparse_plus", "squareplus", "tanh_shrink", "sparse_sigmoid", "sparsemax"]
    known = [n for n in names if hasattr(keras.activations, n)]
    outputs = {n: L.Activation(n)(inputs) for n in known}
    outputs |= {"ELU": L.ELU(0.5)(inputs), "LeakyReLU": L.LeakyReLU()(inputs), "PReLU": L.PReLU(alpha_initializer="ones")(inputs), "ReLU": L.ReLU(2.0, negative_slope=0.1, threshold=0.5)(inputs), "Softmax": L.Softmax()(inputs)}
    return keras.Model(inputs, outputs), [{"x": normal(4, 6) * 2}]


@keras_model("cells_stacked")
def cells(tf, keras):
    """Stacked cells, peepholes by a cell of one's own, constants, states in and out, go_backwards, time major, dropout, ConvLSTM."""
    L = keras.layers

    class Minimal(L.Layer):
        state_size = output_size = 4

        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], 8), initializer="glorot_uniform", name="w")
            self.u = self.add_weight(shape=(4, 8), initializer="orthogonal", name="u")

        def call(self, x, states):
            h, = states
            f, c = tf.split(tf.matmul(x, tf.convert_to_tensor(self.w)) + tf.matmul(h, tf.convert_to_tensor(self.u)), 2, -1)
            f = tf.sigmoid(f)
            h = f * h + (1 - f) * tf.tanh(c)
            return h, [h]
    inputs, state, frames = keras.Input([6, 3], name="x"), keras.Input([4], name="h"), keras.Input([3, 6, 6, 1], name="frames")
    stacked = L.RNN(L.StackedRNNCells([L.LSTMCell(4), L.GRUCell(3)]), return_sequences=True)(inputs)
    own, last = L.RNN(Minimal(), return_sequences=True, return_state=True)(inputs, initial_state=[state])
    back = L.GRU(4, go_backwards=True, reset_after=False)(inputs, initial_state=state)
    simple = L.Bidirectional(L.SimpleRNN(3, activation="relu", return_sequences=True), backward_layer=L.LSTM(2, return_sequences=True, go_backwards=True))(inputs)
    conv = L.ConvLSTM2D(2, 3, padding="same", return_sequences=True)(frames)
    unrolled = L.LSTM(3, unroll=True, recurrent_activation="hard_sigmoid", unit_forget_bias=False)(inputs)
    return keras.Model([inputs, state, frames], {"stacked": stacked, "own": own, "last": last, "back": back, "simple": simple, "conv": conv, "unrolled": unrolled}), [{"x": normal(2, 6, 3), "h": normal(2, 4), "frames": normal(2, 3, 6, 6, 1)}]


@module("files_and_examples")
def examples(tf, m):
    """Vocabularies and tables from files, tf.Example in, classes with words out."""
    import tempfile
    folder = tempfile.mkdtemp(prefix="smelt_vocabulary_")
    with open(folder + "/words.txt", "w") as f:
        f.write("cat\ndog\nowl\n")
    with open(folder + "/map.csv", "w") as f:
        f.write("red,1\ngreen,2\n")
    m.words = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(folder + "/words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)
    m.back = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(folder + "/words.txt", tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE), "?")
    m.colours = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(folder + "/map.csv", tf.string, 0, tf.int64, 1, delimiter=","), -1)
    weights(tf, m, w=(5, 4), o=(4, 3))

    def scores(word, x):
        return tf.nn.softmax((tf.gather(m.w, m.words.lookup(word)) + x[:, None]) @ m.o)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples):
        p = tf.io.parse_example(examples, {"word": tf.io.FixedLenFeature([], tf.string, "cat"), "x": tf.io.FixedLenFeature([], tf.float32, 0.0), "tags": tf.io.VarLenFeature(tf.string), "more": tf.io.RaggedFeature(tf.int64)})
        s = scores(p["word"], p["x"])
        best, index = tf.math.top_k(s, 2)
        return {"scores": best, "classes": m.back.lookup(tf.cast(index, tf.int64)), "tags": tf.sparse.to_dense(p["tags"], ""), "more": p["more"].to_tensor(), "colours": m.colours.lookup(tf.sparse.to_dense(p["tags"], ""))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word"), tf.TensorSpec([None], tf.float32, name="x")])
    def plain(word, x):
        return {"scores": scores(word, x), "id": m.words.lookup(word), "colour": m.colours.lookup(word), "size": m.words.size()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="id")])
    def inverse(id):
        return {"word": m.back.lookup(id)}
    f = tf.train.Feature
    made = [tf.train.Example(features=tf.train.Features(feature={"word": f(bytes_list=tf.train.BytesList(value=[w])), "x": f(float_list=tf.train.FloatList(value=[v])), "tags": f(bytes_list=tf.train.BytesList(value=t)), "more": f(int64_list=tf.train.Int64List(value=r))})).SerializeToString()
            for w, v, t, r in ((b"dog", 0.5, [b"red"], [1, 2]), (b"elk", -1.0, [b"green", b"blue"], []))]
    return {"serving_default": serve, "plain": plain, "inverse": inverse}, {"serving_default": [{"examples": np.array(made, object)}], "plain": [{"word": words("owl", "red"), "x": normal(2)}], "inverse": [{"id": np.array([0, 2, 9], np.int64)}]}


@module("signatures_train_infer_save")
def on_device(tf, m):
    """The on-device training tutorial: train, infer, restore by tensors; gradients by tape, state in variables."""
    weights(tf, m, w=(16, 8), b=(8,), o=(8, 3), c=(3,))
    m.k = tf.Variable(normal(3, 3, 1, 1) * 0.3)

    def net(x):
        h = tf.nn.relu(tf.nn.conv2d(x[..., None], m.k, 1, "SAME"))
        return tf.nn.relu(tf.reshape(h, [-1, 16]) @ m.w + m.b) @ m.o + m.c
    x = tf.TensorSpec([None, 4, 4], tf.float32, name="x")

    @tf.function(input_signature=[x, tf.TensorSpec([None, 3], tf.float32, name="y")])
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, net(x)))
        found = [m.w, m.b, m.o, m.c]
        for v, g in zip(found, tape.gradient(loss, found)):
            v.assign_sub(0.1 * g)
        return {"loss": loss}
    infer = tf.function(lambda x: {"p": tf.nn.softmax(net(x)), "logits": net(x)}, input_signature=[x])
    restore = tf.function(lambda w: {"sum": tf.reduce_sum(m.w.assign(w))}, input_signature=[tf.TensorSpec([16, 8], tf.float32, name="w")])
    dump = tf.function(lambda: {"w": m.w.read_value(), "b": m.b.read_value()}, input_signature=[])
    y = np.eye(3, dtype=np.float32)[:2]
    a = {"x": normal(2, 4, 4)}
    return {"train": train, "infer": infer, "restore": restore, "dump": dump}, {"infer": [a], "train": [{**a, "y": y}, {**a, "y": y}], "dump": [{}], "restore": [{"w": normal(16, 8)}]}


@module("saliency_gradients")
def saliency(tf, m):
    """Gradients in the signature: of images, pools, norms and products; integrated ones in a loop; an adversary."""
    weights(tf, m, k=(3, 3, 2, 4), d=(3, 3, 4, 1), o=(4, 3))

    def net(x):
        h = tf.nn.conv2d(x, m.k, 2, "SAME")
        h = tf.nn.depthwise_conv2d(tf.nn.elu(h), m.d, [1] * 4, "SAME")
        h = tf.nn.max_pool2d(tf.nn.softplus(h), 2, 2, "SAME") + tf.nn.avg_pool2d(h, 2, 2, "SAME")
        return tf.reduce_mean(h, [1, 2]) @ m.o

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], tf.float32, name="x")])
    def serve(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            top = tf.reduce_max(tf.nn.softmax(net(x)), 1)
        g = tape.gradient(top, x)
        total = tf.zeros_like(x)
        for i in tf.range(4):
            part = x * (tf.cast(i, tf.float32) + 0.5) / 4
            with tf.GradientTape() as tape:
                tape.watch(part)
                y = net(part)[:, 0]
            total += tape.gradient(y, part) / 4
        return {"saliency": tf.reduce_max(tf.abs(g), -1), "integrated": total * x, "adversary": tf.clip_by_value(x + 0.1 * tf.sign(g), -1, 1)}
    return {"serving_default": serve}, [{"x": normal(2, 8, 8, 2)}]


@graph("v1_attention_decoder")
def decoder(tf, v1, path):
    """A while_loop of version 1 with TensorArrays and shape invariants, variables in scopes, dropout off by placeholder_with_default."""
    x = v1.placeholder(tf.float32, [None, 5, 3], "x")
    keep = v1.placeholder_with_default(1.0, [], "keep")
    with v1.variable_scope("net", initializer=tf.constant_initializer(normal(3, 4))):
        w = v1.get_variable("w", [3, 4])
    with v1.variable_scope("cell", initializer=tf.constant_initializer(normal(8, 4) * 0.5)):
        u = v1.get_variable("u", [8, 4])
    h = tf.tensordot(x, w, 1)
    h = tf.cond(keep < 1.0, lambda: h * 0.0, lambda: h)
    steps = tf.TensorArray(tf.float32, 4, element_shape=[None, 4])

    def body(t, s, out):
        a = tf.nn.softmax(tf.reduce_sum(h * s[:, None], -1))
        c = tf.reduce_sum(a[..., None] * h, 1)
        s = tf.tanh(tf.concat([s, c], 1) @ u)
        return t + 1, s, out.write(t, s)
    _, s, out = v1.while_loop(lambda t, *_: t < 4, body, [tf.constant(0), h[:, 0], steps])
    y = tf.transpose(out.stack(), [1, 0, 2])
    return {"x": x}, {"y": y, "s": s}, [{"x": normal(2, 5, 3)}]


@graph("v1_inception_frozen_style")
def inception(tf, v1, path):
    """Layers of version 1: batch norm by moving averages, LRN, concatenations, a name that ends in a digit, string labels by gather."""
    x = v1.placeholder(tf.uint8, [None, None, None, 3], "image")
    f = v1.image.resize_bilinear(tf.cast(x, tf.float32), [12, 12], align_corners=True)
    f = (f - 128.0) * 0.0078125
    k = v1.get_variable("k", initializer=normal(3, 3, 3, 4) * 0.3)
    f = tf.nn.bias_add(tf.nn.conv2d(f, k, 1, "SAME"), v1.get_variable("b", initializer=normal(4)))
    f = tf.nn.local_response_normalization(tf.nn.relu(f), 2, 1.0, 0.1, 0.75)
    mean, variance, beta = (v1.get_variable(n, initializer=np.abs(normal(4, seed=i))) for i, n in enumerate(("mean", "variance", "beta")))
    f = tf.nn.batch_normalization(f, mean, variance, beta, None, 1e-3)
    a = tf.nn.max_pool2d(f, 3, 2, "VALID")
    b = tf.nn.conv2d(f, v1.get_variable("k2", initializer=normal(3, 3, 4, 3) * 0.3), 2, "VALID")
    f = tf.concat([a, b], 3)
    f = tf.nn.avg_pool2d(f, [5, 5], 1, "VALID")
    logits = v1.nn.xw_plus_b(tf.squeeze(f, [1, 2]), v1.get_variable("w", initializer=normal(7, 5)), v1.get_variable("c", initializer=normal(5)))
    p, i = tf.nn.top_k(tf.nn.softmax(logits), 3)
    return {"image": x}, {"p": p, "label": tf.gather(tf.constant(["a", "b", "c", "d", "e"]), i)}, [{"image": np.random.default_rng(0).integers(0, 255, (2, 9, 7, 3)).astype(np.uint8)}]


def jax_row(name, make, native):
    @stranger("jax jaxlib", "jax_" + name)
    def build(path):
        import jax
        import tensorflow as tf
        from jax.experimental import jax2tf
        function, request = make(jax)
        m = tf.Module()
        m.f = tf.function(jax2tf.convert(function, with_gradient=False, native_serialization=native), autograph=False, input_signature=[tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in request.items()])
        tf.saved_model.save(m, str(path), signatures={"serving_default": tf.function(lambda **kw: {f"o{i}": v for i, v in enumerate(tf.nest.flatten(m.f(*[kw[k] for k in request])))}).get_concrete_function(
            **{k: tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in request.items()})})
        return [request]


def jax_transformer(jax):
    jnp, w = jax.numpy, {k: normal(*s, seed=i) * 0.3 for i, (k, s) in enumerate(dict(e=(11, 8), q=(8, 2, 4), k=(8, 2, 4), v=(8, 2, 4), o=(2, 4, 8), a=(8, 16), b=(16, 8)).items())}

    def f(ids):
        x = jnp.take(w["e"], ids, axis=0)
        norm = lambda v: (v - v.mean(-1, keepdims=True)) / jnp.sqrt(v.var(-1, keepdims=True) + 1e-6)
        h = norm(x)
        q, k, v = (jnp.einsum("btd,dhe->bthe", h, w[n]) for n in "qkv")
        s = jnp.einsum("bqhe,bkhe->bhqk", q, k) / 2
        s = jnp.where(jnp.tril(jnp.ones((s.shape[-1],) * 2, bool)), s, -1e9)
        x = x + jnp.einsum("bhqk,bkhe,hed->bqd", jax.nn.softmax(s), v, w["o"])
        x = x + jax.nn.gelu(norm(x) @ w["a"]) @ w["b"]
        logits = x @ w["e"].T
        return jax.nn.log_softmax(logits), jnp.argmax(logits, -1), jnp.take_along_axis(logits, ids[..., None], -1)[..., 0], jax.nn.one_hot(ids, 11)
    return f, {"ids": np.array([[1, 2, 3, 4], [5, 6, 7, 10]], np.int32)}


def jax_cnn(jax):
    jnp, k1, k2, w = jax.numpy, normal(3, 3, 2, 4), normal(3, 3, 1, 4), normal(4, 3)

    def f(x):
        dn = ("NHWC", "HWIO", "NHWC")
        y = jax.nn.relu(jax.lax.conv_general_dilated(x, k1, (2, 2), ((0, 1), (1, 1)), dimension_numbers=dn))
        y = jax.nn.silu(jax.lax.conv_general_dilated(y, k2, (1, 1), "SAME", feature_group_count=4, dimension_numbers=dn))
        up = jax.image.resize(y, (x.shape[0], 8, 8, 4), "bilinear")
        t = jax.lax.conv_transpose(y, k1.transpose(0, 1, 3, 2), (2, 2), "SAME", dimension_numbers=dn)
        p = jax.lax.reduce_window(y, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        return y.mean((1, 2)) @ w, up, t, p, jnp.pad(y, ((0, 0), (1, 2), (0, 1), (0, 0)), mode="reflect"), jnp.sort(y, 1), jnp.clip(jnp.round(y * 4) / 4, -1, 1)
    return f, {"x": normal(2, 8, 8, 2)}


def jax_misc(jax):
    jnp = jax.numpy

    def f(x, n):
        carry, ys = jax.lax.scan(lambda c, v: (0.5 * c + v, jnp.tanh(c)), jnp.zeros(3), x)
        z = jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, x))[1]
        c = jax.lax.switch(n % 3, [lambda v: v, lambda v: -v, lambda v: v * v], x)
        m = jax.vmap(lambda a: jnp.outer(a, a))(x)
        s = jax.ops.segment_sum(x, jnp.array([0, 1, 0, 2]), 3)
        return carry, ys, z, c, m, s, x.at[1, :2].set(5.0), x.at[jnp.array([0, 2])].multiply(2.0), jnp.cumsum(x, 0), jnp.cumprod(x, 1), jnp.linalg.norm(x, axis=1), jnp.roll(x, 1, 0), jnp.flip(x, 1), jnp.var(x), jnp.einsum("ij,ik->jk", x, x), jax.scipy.special.logsumexp(x, 1), jnp.where(x > 0, x, jnp.exp(x) - 1), jnp.argsort(x, 0), jnp.tile(x, (1, 2)), jnp.logaddexp(x, 1.0), jax.grad(lambda v: (jnp.tanh(v) ** 3).sum())(x), jnp.floor_divide(x, 0.3), jnp.mod(x, 0.7), jnp.sign(x), jnp.power(jnp.abs(x), 1.3), jnp.expm1(x), jnp.isfinite(x), (x * 10).astype(jnp.int32) >> 1, jnp.bitwise_and((x * 10).astype(jnp.int32), 3), jax.nn.softplus(x)
    return f, {"x": normal(4, 3), "n": np.int32(2)}


for kind, native in (("graph", False), ("stablehlo", True)):
    for name, make in (("transformer", jax_transformer), ("cnn", jax_cnn), ("misc", jax_misc)):
        jax_row(f"{name}_{kind}", make, native)
