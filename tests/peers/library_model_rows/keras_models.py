"""What people build of Keras's layers, with Keras 3 and Keras 2: preprocessing inside the model, recurrent layers of every kind, policies, compiled, pruned and clustered models."""
import numpy as np

from library_model_rows.modules import normal, words
from library_model_rows.rows import stranger


def keras_model(name, libraries=("keras3", "keras2")):
    """The function gets (tf, keras) and returns (model, requests or None); the model is exported or saved as its library does it."""
    def add(function):
        for library in libraries:
            def build(path, library=library):
                import tensorflow as tf
                if library == "keras3":
                    import keras
                    if keras.__version__ < "3":
                        raise ImportError("Keras 3")
                else:
                    import tf_keras as keras
                keras.mixed_precision.set_global_policy("float32") if library == "keras2" else keras.config.set_dtype_policy("float32")
                keras.utils.set_random_seed(4)
                try:
                    model, requests = function(tf, keras)
                    if library == "keras3":
                        model.export(str(path), verbose=False)
                    else:
                        model.save(str(path), save_format="tf")
                finally:
                    keras.mixed_precision.set_global_policy("float32") if library == "keras2" else keras.config.set_dtype_policy("float32")
                return requests
            stranger("keras>=3" if library == "keras3" else "tf_keras", f"{library}_{name}")(build)
        return function
    return add


def named(keras, **inputs):
    return {k: keras.Input(shape, name=k, dtype=dtype) for k, (shape, dtype) in inputs.items()}


def layer_of(keras, function):
    """What a Lambda is, of functions that Keras 2 cannot copy."""
    class Function(keras.layers.Layer):
        def call(self, x):
            return function(x)
    return Function()


@keras_model("structured_data")
def structured(tf, keras):
    """The tutorial on structured data: every preprocessing layer, then a few dense ones."""
    L = keras.layers
    i = named(keras, age=([1], "float32"), job=([1], "string"), town=([1], "string"), plan=([1], "int64"), money=([1], "float32"))
    age = L.Normalization(axis=None)
    age.adapt(np.array([[20.0], [40.0], [60.0]], np.float32))
    bins = L.Discretization(bin_boundaries=[1.0, 5.0, 9.0])(i["money"])
    job = L.StringLookup(vocabulary=["cook", "clerk"], output_mode="one_hot", num_oov_indices=2)(i["job"])
    plan = L.IntegerLookup(vocabulary=[3, 5, 7], output_mode="multi_hot")(i["plan"])
    town = L.Hashing(num_bins=8, salt=[3, 4])(i["town"])
    crossed = L.HashedCrossing(num_bins=6, output_mode="one_hot")((i["town"], i["plan"])) if hasattr(L, "HashedCrossing") else plan
    features = [age(i["age"]), L.CategoryEncoding(num_tokens=4, output_mode="one_hot")(bins), job, plan, L.Flatten()(L.Embedding(8, 3)(town)), crossed]
    x = L.Concatenate()([keras.ops.cast(f, "float32") if hasattr(keras, "ops") else tf.cast(f, tf.float32) for f in features])
    return keras.Model(i, L.Dense(1, activation="sigmoid")(L.Dropout(0.2)(L.Dense(8, activation="relu")(x)))), [
        {"age": np.array([[33.0], [50]], np.float32), "job": words("cook", "king")[:, None], "town": words("a", "b")[:, None], "plan": np.array([[5], [6]], np.int64), "money": np.array([[0.5], [7]], np.float32)}]


@keras_model("text_classifier")
def text(tf, keras):
    L = keras.layers
    vectorize = L.TextVectorization(max_tokens=30, output_mode="int", output_sequence_length=7, ngrams=2)
    vectorize.adapt(tf.constant(["the cat sat on the mat", "A dog, a DOG!", "it's <br/> fine"]))
    weights = L.TextVectorization(output_mode="tf_idf", standardize="lower", split="character")
    weights.adapt(tf.constant(["abc", "bcd"]))
    i = keras.Input([1], dtype="string", name="text")
    x = L.Embedding(30, 6, mask_zero=True)(vectorize(i))
    x = L.Bidirectional(L.LSTM(4, return_sequences=True))(x)
    x = L.GlobalAveragePooling1D()(x)
    return keras.Model(i, [L.Dense(3, activation="softmax")(x), weights(i)]), [{"text": words("The cat's DOG sat!", "zzz")[:, None]}, {"text": words("")[:, None]}]


@keras_model("recurrent")
def recurrent(tf, keras):
    L = keras.layers
    i = keras.Input([None, 4], name="x")
    x = L.Masking(0.0)(i)
    a = L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum")(x)
    b = L.RNN([L.LSTMCell(4), L.GRUCell(3, reset_after=False)], return_sequences=True)(x)
    c, h, s = L.LSTM(3, return_sequences=True, return_state=True, recurrent_dropout=0.1, unit_forget_bias=False, go_backwards=True)(x)
    d = L.TimeDistributed(L.Dense(2, activation="selu"))(L.SimpleRNN(3, return_sequences=True)(a + c))
    e = L.Conv1D(4, 3, padding="causal", dilation_rate=2)(i)
    return keras.Model(i, {"a": a, "b": b, "h": h, "s": s, "d": d, "e": e}), [{"x": normal(2, 5, 4) * (np.arange(5) < np.array([[5], [3]]))[..., None].astype(np.float32)}, {"x": normal(1, 3, 4)}]


@keras_model("stateful")
def stateful(tf, keras):
    L = keras.layers
    i = keras.Input(batch_shape=(2, 1, 3), name="x") if hasattr(keras, "ops") else keras.Input(batch_size=2, shape=(1, 3), name="x")
    x = L.GRU(4, stateful=True, return_sequences=True)(i)
    return keras.Model(i, L.Dense(2)(L.LSTM(4, stateful=True)(x))), [{"x": normal(2, 1, 3, seed=s)} for s in range(3)]


@keras_model("attention")
def attention(tf, keras):
    L = keras.layers
    q, v = keras.Input([None, 8], name="q"), keras.Input([6, 8], name="v")
    a, scores = L.MultiHeadAttention(2, 4, value_dim=3, dropout=0.1)(q, v, return_attention_scores=True)
    x = L.LayerNormalization(epsilon=1e-5)(L.Add()([q, a]))
    x = L.Add()([x, L.Dense(8, activation="gelu")(x)])
    causal = L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    extra = L.AdditiveAttention()([x, v]), L.Attention(use_scale=True)([x, v])
    x = L.UnitNormalization()(L.Concatenate()([causal, *extra])) if hasattr(L, "UnitNormalization") else causal
    return keras.Model([q, v], [x, scores]), None


@keras_model("image_zoo")
def images(tf, keras):
    L = keras.layers
    i = keras.Input([None, None, 3], name="x")
    x = L.Resizing(20, 20, interpolation="bicubic")(i)
    x = L.CenterCrop(16, 16)(L.Rescaling(1 / 127.5, offset=-1)(x))
    x = L.RandomFlip("horizontal")(L.RandomRotation(0.1)(L.RandomZoom(0.1)(x)))
    x = L.SeparableConv2D(8, 3, padding="same", depth_multiplier=2)(x)
    x = L.BatchNormalization()(x)
    x = L.PReLU(shared_axes=[1, 2])(x)
    down = L.Conv2D(8, 3, strides=2, padding="same", groups=2, use_bias=False)(x)
    down = L.GroupNormalization(4)(L.LeakyReLU()(down)) if hasattr(L, "GroupNormalization") else L.LeakyReLU()(down)
    deep = L.DepthwiseConv2D(3, dilation_rate=2, padding="same")(L.SpatialDropout2D(0.1)(down))
    gate = L.Reshape([1, 1, 8])(L.Dense(8, activation="hard_sigmoid")(L.GlobalMaxPooling2D()(deep)))
    deep = L.Multiply()([deep, gate])
    up = L.Conv2DTranspose(4, 4, strides=2, padding="same")(deep)
    up = L.UpSampling2D(2, interpolation="bilinear")(L.ZeroPadding2D(((1, 2), (0, 1)))(up))
    up = L.Cropping2D(((3, 3), (1, 1)))(up)
    pooled = L.AveragePooling2D(3, 2, "same")(L.MaxPooling2D(2)(x))
    return keras.Model(i, {"mask": L.Softmax(axis=-1)(up), "pooled": pooled, "flat": L.Dense(3)(L.Flatten()(pooled)), "permuted": L.Permute([3, 1, 2])(down)}), [
        {"x": np.random.default_rng(0).uniform(0, 255, (2, 24, 30, 3)).astype(np.float32)}]


@keras_model("volumes")
def volumes(tf, keras):
    L = keras.layers
    i = keras.Input([4, 8, 8, 2], name="x")
    x = L.Conv3D(4, (2, 3, 3), strides=(1, 2, 2), padding="same", activation="swish")(i)
    x = L.BatchNormalization()(L.MaxPooling3D((1, 2, 2))(x))
    y = L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(i)
    z = L.Conv3DTranspose(2, 2, strides=2, padding="valid")(L.AveragePooling3D(2)(y))
    return keras.Model(i, [x, y, L.GlobalAveragePooling3D()(L.UpSampling3D((1, 2, 1))(z)), L.ZeroPadding3D(1)(x)]), None


@keras_model("mixed_float16")
def half(tf, keras):
    L = keras.layers
    keras.mixed_precision.set_global_policy("mixed_float16") if not hasattr(keras, "ops") else keras.config.set_dtype_policy("mixed_float16")
    i = keras.Input([12, 12, 3], name="x")
    x = L.BatchNormalization()(L.Conv2D(8, 3, activation="relu")(i))
    x = L.LayerNormalization()(L.Dense(16, activation="gelu")(L.GlobalAveragePooling2D()(x)))
    x = L.LSTM(4)(L.Reshape([4, 4])(x))
    return keras.Model(i, L.Dense(3, activation="softmax", dtype="float32")(x)), None


@keras_model("mixed_bfloat16")
def brain(tf, keras):
    L = keras.layers
    keras.mixed_precision.set_global_policy("mixed_bfloat16") if not hasattr(keras, "ops") else keras.config.set_dtype_policy("mixed_bfloat16")
    i = keras.Input([6, 8], name="x")
    x = L.MultiHeadAttention(2, 4)(i, i)
    x = L.LayerNormalization()(L.Dense(8, activation="tanh")(x))
    return keras.Model(i, L.Dense(3, dtype="float32")(L.GlobalMaxPooling1D()(x))), None


@keras_model("compiled")
def compiled(tf, keras):
    """Trained and saved with its optimizer, losses and metrics."""
    L = keras.layers
    i = keras.Input([6], name="x")
    x = L.Dense(8, activation="elu", kernel_regularizer="l2", kernel_constraint="max_norm" if not hasattr(keras, "ops") else None)(i)
    model = keras.Model(i, {"kind": L.Dense(3, activation="softmax", name="kind")(L.GaussianNoise(0.1)(L.BatchNormalization()(x))), "size": L.Dense(1, name="size")(x)})
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 10), clipnorm=1.0), loss={"kind": "sparse_categorical_crossentropy", "size": "huber"}, metrics={"kind": ["accuracy"], "size": ["mae"]})
    model.fit(normal(8, 6), {"kind": np.arange(8) % 3, "size": normal(8, 1)}, epochs=2, batch_size=4, verbose=0)
    return model, None


@keras_model("subclassed")
def subclassed(tf, keras):
    class Tower(keras.layers.Layer):
        def __init__(self, units, **kw):
            super().__init__(**kw)
            self.layers_ = [keras.layers.Dense(u, activation="relu") for u in units]

        def call(self, x, training=None):
            for layer in self.layers_:
                x = layer(x)
            return x / (1e-6 + tf.norm(x, axis=-1, keepdims=True))

    class TwoTowers(keras.Model):
        def __init__(self):
            super().__init__()
            self.users, self.items, self.user, self.item = keras.layers.Embedding(10, 4), keras.layers.Embedding(12, 4), Tower([8, 6]), Tower([6])
            self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

        def call(self, inputs, training=False):
            user = self.user(tf.reduce_sum(self.users(inputs["history"]), 1))
            item = self.item(self.items(inputs["item"]))
            return {"score": tf.einsum("bd,bd->b", user, item) * self.scale, "user": user}
    model = TwoTowers()
    one = {"history": np.array([[1, 2, 3], [4, 0, 0]], np.int32), "item": np.array([3, 11], np.int32)}
    model.predict(one, verbose=0)
    return model, None


@keras_model("sampling_autoencoder")
def autoencoder(tf, keras):
    L = keras.layers
    class Sampling(L.Layer):
        def call(self, inputs):
            mean, deviation = inputs
            return mean + tf.exp(0.5 * deviation) * tf.random.normal(tf.shape(mean), seed=3)
    i = keras.Input([8, 8, 1], name="x")
    x = L.Flatten()(L.Conv2D(4, 3, 2, "same", activation="relu")(i))
    mean, deviation = L.Dense(2)(x), L.Dense(2)(x)
    z = Sampling()([mean, deviation])
    y = L.Conv2DTranspose(1, 3, 2, "same", activation="sigmoid")(L.Reshape([4, 4, 2])(L.Dense(32, activation="softplus")(z)))
    return keras.Model(i, {"mean": mean, "image": y, "z": z}), None


@keras_model("ragged_and_sparse", ("keras2",))
def ragged(tf, keras):
    L = keras.layers
    ids, bag = keras.Input([None], name="ids", dtype="int64", ragged=True), keras.Input([9], name="bag", sparse=True)
    x = L.LSTM(3)(L.Embedding(20, 4)(ids))
    model = keras.Model([ids, bag], L.Concatenate()([x, L.Dense(2)(bag)]))
    return model, [{"args_0": np.array([1, 2, 19], np.int64), "args_0_1": np.array([0, 2, 3], np.int64), "args_0_2": np.array([[0, 3], [1, 8]], np.int64), "args_0_3": np.array([1.0, 2], np.float32), "args_0_4": np.array([2, 9], np.int64)}]


@stranger("tensorflow-model-optimization tensorflow<2.16", "tfmot_pruned_clustered")
def pruned(path):
    import tensorflow as tf
    import tensorflow_model_optimization as tfmot
    L = tf.keras.layers
    dense = tf.keras.Sequential([L.Dense(16, activation="relu", input_shape=(8,)), L.Dense(4)])
    model = tfmot.sparsity.keras.prune_low_magnitude(dense, tfmot.sparsity.keras.PolynomialDecay(0.0, 0.5, 0, 4))
    model.compile("adam", "mse")
    model.fit(normal(8, 8), normal(8, 4), verbose=0, batch_size=2, callbacks=[tfmot.sparsity.keras.UpdatePruningStep()])
    clustered = tfmot.clustering.keras.cluster_weights(tf.keras.Sequential([L.Dense(16, input_shape=(8,)), L.Dense(4)]), number_of_clusters=4, cluster_centroids_init=tfmot.clustering.keras.CentroidInitialization.LINEAR)
    i = tf.keras.Input([8], name="x")
    tf.keras.Model(i, [model(i), clustered(i)]).save(str(path), save_format="tf")


@stranger("keras>=3 jax==0.4.30", "keras3_jax_backend")
def jax_backend(path):
    """A model of Keras's JAX backend: the export holds StableHLO. The backend is chosen before Keras is imported, so in a process of its own."""
    import os
    import subprocess
    import sys
    import jax  # the row is skipped without it
    script = f"""
import keras
from keras import layers as L
keras.utils.set_random_seed(4)
i = keras.Input([16, 16, 3], name="x")
x = L.BatchNormalization()(L.Conv2D(8, 3, activation="relu")(i))
x = L.Reshape([-1, 8])(L.MaxPooling2D()(x))
x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4)(x, x))
x = L.GRU(4)(x)
keras.Model(i, [L.Dense(3, activation="softmax")(x), L.Embedding(5, 2)(keras.ops.argmax(x, -1))]).export({str(path)!r}, verbose=False)
"""
    ended = subprocess.run([sys.executable, "-c", script], env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"{jax.__version__}: {ended.stderr[-300:]}")
