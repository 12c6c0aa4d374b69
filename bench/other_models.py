#!/usr/bin/env python3
"""Networks beyond the benchmark suite, in its layout: other_models.py OUT_DIR [NAME...]

For each model of the table at the end: OUT_DIR/NAME/saved_model (signature serving_default, first dimension free), and inputs_B.npz and outputs_B.npz of batch 1 and 8,
which TensorFlow answers. bench/engines.py takes OUT_DIR as its SUITE. Weights are seeded and random; batch normalization has the statistics of a random batch.
Needs bench/requirements.txt."""
import os
import pathlib
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

SEED = 7


def settle(model, *sample):
    """Batch normalizations take the statistics of the sample."""
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, layers.BatchNormalization)]
    for layer in norms:
        layer.momentum = 0.0
    if norms:
        model(list(sample) if len(sample) > 1 else sample[0], training=True)
    return model


def pixels(*shape):
    return lambda rng, batch: rng.normal(size=(batch, *shape)).astype(np.float32)


def numbers(high, *shape, dtype=np.int32):
    return lambda rng, batch: rng.integers(0, high, size=(batch, *shape)).astype(dtype)


def application(build, size, **options):
    def make():
        return build(weights=None, input_shape=(size, size, 3), classifier_activation=None, **options)
    return make, [pixels(size, size, 3)]


def block(x, width, heads):
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    x = layers.Add()([x, layers.MultiHeadAttention(heads, width // heads)(y, y)])
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    return layers.Add()([x, layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))])


class Places(layers.Layer):
    """Learned numbers of each place, added."""

    def build(self, shape):
        self.places = self.add_weight(shape=(1, *shape[1:]), initializer="random_normal")

    def call(self, x):
        return x + self.places


def vit_tiny():
    image = keras.Input((224, 224, 3))
    x = layers.Reshape((196, 192))(layers.Conv2D(192, 16, 16)(image))
    x = Places()(x)
    for _ in range(6):
        x = block(x, 192, 3)
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))))


class Windows(layers.Layer):
    """Attention within windows of 7 x 7, shifted by 3 or not."""

    def __init__(self, width, heads, shift):
        super().__init__()
        self.width, self.heads, self.shift = width, heads, shift
        self.qkv, self.mix = layers.Dense(3 * width), layers.Dense(width)

    def call(self, x):
        n, w = x.shape[1], 7
        if self.shift:
            x = ops.roll(x, (-self.shift, -self.shift), axis=(1, 2))
        x = ops.reshape(x, (-1, n // w, w, n // w, w, self.width))
        x = ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, w * w, self.width))
        q, k, v = (ops.transpose(ops.reshape(t, (-1, w * w, self.heads, self.width // self.heads)), (0, 2, 1, 3)) for t in ops.split(self.qkv(x), 3, axis=-1))
        a = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * (self.width // self.heads) ** -0.5)
        x = self.mix(ops.reshape(ops.transpose(ops.matmul(a, v), (0, 2, 1, 3)), (-1, w * w, self.width)))
        x = ops.transpose(ops.reshape(x, (-1, n // w, n // w, w, w, self.width)), (0, 1, 3, 2, 4, 5))
        x = ops.reshape(x, (-1, n, n, self.width))
        return ops.roll(x, (self.shift, self.shift), axis=(1, 2)) if self.shift else x


def swin_tiny():
    image = keras.Input((224, 224, 3))
    x = layers.Conv2D(96, 4, 4)(image)
    for stage, depth in enumerate((2, 2, 2)):
        width = 96 << stage
        if stage:
            x = layers.Conv2D(width, 2, 2)(layers.LayerNormalization()(x))
        for i in range(depth):
            x = layers.Add()([x, Windows(width, 3 << stage, 3 * (i % 2))(layers.LayerNormalization()(x))])
            y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
            x = layers.Add()([x, layers.Dense(width)(y)])
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def mlp_mixer():
    image = keras.Input((224, 224, 3))
    x = layers.Reshape((196, 256))(layers.Conv2D(256, 16, 16)(image))
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(196)(layers.Dense(384, activation="gelu")(y))
        x = layers.Add()([x, layers.Permute((2, 1))(y)])
        y = layers.Dense(1024, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(256)(y)])
    return keras.Model(image, layers.Dense(100)(layers.GlobalAveragePooling1D()(x)))


def conv_norm(x, filters, size, rate=1, stride=1):
    x = layers.Conv2D(filters, size, stride, padding="same", dilation_rate=rate, use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def deeplab():
    image = keras.Input((257, 257, 3))
    x = low = conv_norm(conv_norm(image, 32, 3, stride=2), 64, 3, stride=2)
    x = conv_norm(conv_norm(x, 128, 3, stride=2), 128, 3, rate=2)
    parts = [conv_norm(x, 64, 1)] + [conv_norm(x, 64, 3, rate=r) for r in (6, 12, 18)]
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(x)
    parts.append(layers.UpSampling2D((x.shape[1], x.shape[2]), interpolation="bilinear")(conv_norm(pooled, 64, 1)))
    x = conv_norm(layers.Concatenate()(parts), 64, 1)
    x = layers.Resizing(low.shape[1], low.shape[2])(x)
    x = conv_norm(layers.Concatenate()([x, conv_norm(low, 24, 1)]), 64, 3)
    return keras.Model(image, layers.Resizing(257, 257)(layers.Conv2D(21, 1)(x)))


def style_transfer():
    image = keras.Input((128, 128, 3))
    norm = lambda x: layers.GroupNormalization(-1)(x)
    x = image
    for filters, size, stride in ((16, 9, 1), (32, 3, 2), (64, 3, 2)):
        x = layers.ReLU()(norm(layers.Conv2D(filters, size, stride, padding="same")(x)))
    for _ in range(3):
        y = layers.ReLU()(norm(layers.Conv2D(64, 3, padding="same")(x)))
        x = layers.Add()([x, norm(layers.Conv2D(64, 3, padding="same")(y))])
    for filters in (32, 16):
        x = layers.ReLU()(norm(layers.Conv2DTranspose(filters, 3, 2, padding="same")(x)))
    return keras.Model(image, layers.Conv2D(3, 9, padding="same", activation="tanh")(x))


def super_resolution():
    image = keras.Input((64, 64, 3))
    x = first = layers.Conv2D(48, 3, padding="same")(image)
    for _ in range(6):
        y = layers.Conv2D(48, 3, padding="same")(layers.PReLU(shared_axes=(1, 2))(layers.Conv2D(48, 3, padding="same")(x)))
        x = layers.Add()([x, layers.Rescaling(0.2)(y)])
    x = layers.Conv2D(48, 3, padding="same")(layers.Add()([x, first]))
    return keras.Model(image, layers.Lambda(lambda t: tf.nn.depth_to_space(t, 4))(x))


def yolo_head():
    image = keras.Input((160, 160, 3))
    x = image
    outs = []
    for i, filters in enumerate((16, 32, 64, 128, 256)):
        x = layers.Conv2D(filters, 3, 2, padding="same", use_bias=False)(x)
        x = layers.Activation("silu")(layers.BatchNormalization()(x))
        y = layers.Conv2D(filters // 2, 1, use_bias=False)(x)
        y = layers.Activation("silu")(layers.BatchNormalization()(y))
        y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
        x = layers.Add()([x, layers.Activation("silu")(layers.BatchNormalization()(y))])
        if i >= 2:
            outs.append(x)
    up = layers.Concatenate()([layers.UpSampling2D()(outs[2]), outs[1]])
    up = layers.Activation("silu")(layers.Conv2D(64, 3, padding="same")(up))
    up2 = layers.Concatenate()([layers.UpSampling2D()(up), outs[0]])
    heads = [layers.Reshape((-1, 85))(layers.Conv2D(3 * 85, 1)(t)) for t in (up2, up, outs[2])]
    y = layers.Concatenate(axis=1)(heads)
    return keras.Model(image, layers.Activation("sigmoid")(y))


def text_cnn():
    tokens = keras.Input((128,), dtype="int32")
    x = layers.Embedding(20000, 128)(tokens)
    parts = [layers.GlobalMaxPooling1D()(layers.Conv1D(100, k, activation="relu")(x)) for k in (3, 4, 5)]
    return keras.Model(tokens, layers.Dense(4)(layers.Concatenate()(parts)))


def bilstm_tagger():
    tokens = keras.Input((64,), dtype="int32")
    x = layers.Embedding(8000, 100, mask_zero=True)(tokens)
    x = layers.Bidirectional(layers.LSTM(128, return_sequences=True, use_cudnn=False))(x)
    return keras.Model(tokens, layers.Dense(17)(x))


def conv_lstm():
    frames = keras.Input((8, 32, 32, 4))
    x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(frames)
    x = layers.ConvLSTM2D(16, 3, padding="same")(x)
    return keras.Model(frames, layers.Conv2D(4, 1)(x))


def audio_m5():
    wave = keras.Input((8000, 1))
    x = wave
    for filters, size, stride in ((32, 80, 4), (32, 3, 1), (64, 3, 1), (64, 3, 1)):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv1D(filters, size, stride)(x)))
        x = layers.MaxPooling1D(4)(x)
    return keras.Model(wave, layers.Dense(35)(layers.GlobalAveragePooling1D()(x)))


def conformer():
    frames = keras.Input((100, 144))
    x = frames
    for _ in range(3):
        y = layers.Dense(144)(layers.Dense(576, activation="silu")(layers.LayerNormalization()(x)))
        x = layers.Add()([x, layers.Rescaling(0.5)(y)])
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 36)(y, y)])
        y = layers.Dense(288)(layers.LayerNormalization()(x))
        y = layers.Multiply()([y[:, :, :144], layers.Activation("sigmoid")(y[:, :, 144:])])
        y = layers.DepthwiseConv1D(15, padding="same")(y)
        y = layers.Dense(144)(layers.Activation("silu")(layers.BatchNormalization()(y)))
        x = layers.Add()([x, y])
    return keras.Model(frames, layers.Dense(256)(x))


def seq2seq_gru():
    tokens, target = keras.Input((24,), dtype="int32"), keras.Input((24,), dtype="int32")
    memory, state = layers.GRU(128, return_sequences=True, return_state=True, use_cudnn=False)(layers.Embedding(5000, 96)(tokens))
    x = layers.GRU(128, return_sequences=True, use_cudnn=False)(layers.Embedding(5000, 96)(target), initial_state=state)
    x = layers.Concatenate()([x, layers.Attention()([x, memory])])
    return keras.Model([tokens, target], layers.Dense(5000)(x))


def deep_fm():
    categories, dense = keras.Input((26,), dtype="int32"), keras.Input((13,))
    vectors = layers.Embedding(20000, 16)(categories)
    first = ops.sum(layers.Embedding(20000, 1)(categories), axis=(1, 2))
    total, squares = ops.sum(vectors, axis=1), ops.sum(ops.square(vectors), axis=1)
    second = 0.5 * ops.sum(ops.square(total) - squares, axis=1)
    x = layers.Concatenate()([layers.Flatten()(vectors), dense])
    for width in (256, 128, 64):
        x = layers.Dense(width, activation="relu")(x)
    return keras.Model([categories, dense], ops.squeeze(layers.Dense(1)(x), 1) + first + second)


def graph_network():
    nodes, adjacency = keras.Input((64, 32)), keras.Input((64, 64))
    x = nodes
    for width in (64, 64, 64):
        x = layers.Dense(width)(ops.matmul(adjacency, x)) + layers.Dense(width)(x)
        x = layers.LeakyReLU()(layers.LayerNormalization()(x))
    return keras.Model([nodes, adjacency], layers.Dense(8)(ops.max(x, axis=1)))


def point_net():
    points = keras.Input((512, 3))
    x = points
    for width in (64, 64, 128, 512):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv1D(width, 1)(x)))
    x = layers.GlobalMaxPooling1D()(x)
    for width in (256, 128):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Dense(width)(x)))
    return keras.Model(points, layers.Dense(40)(x))


def vae_decoder():
    code = keras.Input((32,))
    x = layers.Reshape((8, 8, 128))(layers.Dense(8 * 8 * 128, activation="relu")(code))
    for filters in (128, 64, 32):
        x = layers.LeakyReLU()(layers.BatchNormalization()(layers.Conv2DTranspose(filters, 4, 2, padding="same")(x)))
    return keras.Model(code, layers.Conv2DTranspose(3, 3, padding="same", activation="sigmoid")(x))


A = keras.applications
MODELS = {
    "densenet121": application(A.DenseNet121, 224),
    "inception_v3": application(A.InceptionV3, 299),
    "xception": application(A.Xception, 299),
    "nasnet_mobile": application(A.NASNetMobile, 224),
    "efficientnet_v2_b0": application(A.EfficientNetV2B0, 224),
    "convnext_tiny": application(A.ConvNeXtTiny, 224),
    "mobilenet_v1": application(A.MobileNet, 224),
    "vit_tiny": (vit_tiny, [pixels(224, 224, 3)]),
    "swin_tiny": (swin_tiny, [pixels(224, 224, 3)]),
    "mlp_mixer": (mlp_mixer, [pixels(224, 224, 3)]),
    "deeplab": (deeplab, [pixels(257, 257, 3)]),
    "style_transfer": (style_transfer, [pixels(128, 128, 3)]),
    "super_resolution": (super_resolution, [pixels(64, 64, 3)]),
    "yolo_head": (yolo_head, [pixels(160, 160, 3)]),
    "text_cnn": (text_cnn, [numbers(20000, 128)]),
    "bilstm_tagger": (bilstm_tagger, [numbers(8000, 64)]),
    "conv_lstm": (conv_lstm, [pixels(8, 32, 32, 4)]),
    "audio_m5": (audio_m5, [pixels(8000, 1)]),
    "conformer": (conformer, [pixels(100, 144)]),
    "seq2seq_gru": (seq2seq_gru, [numbers(5000, 24), numbers(5000, 24)]),
    "deep_fm": (deep_fm, [numbers(20000, 26), pixels(13)]),
    "graph_network": (graph_network, [pixels(64, 32), pixels(64, 64)]),
    "point_net": (point_net, [pixels(512, 3)]),
    "vae_decoder": (vae_decoder, [pixels(32)]),
}


def write(folder, build, makers):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    keras.backend.clear_session()
    keras.utils.set_random_seed(SEED)
    model = settle(build(), *(make(np.random.default_rng(SEED), 4) for make in makers))
    keys = [f"input_{i}" for i in range(len(makers))]
    specs = {key: tf.TensorSpec([None, *t.shape[1:]], t.dtype, name=key) for key, t in zip(keys, model.inputs)}

    class Served(tf.Module):
        pass

    served = Served()
    served.model = model
    call = tf.function(lambda **kw: {"answer": model([kw[k] for k in keys] if len(keys) > 1 else kw[keys[0]], training=False)})
    tf.saved_model.save(served, str(folder / "saved_model"), signatures={"serving_default": call.get_concrete_function(**specs)})
    signature = tf.saved_model.load(str(folder / "saved_model")).signatures["serving_default"]
    for batch in (1, 8):
        rng = np.random.default_rng(SEED + batch)
        inputs = {key: make(rng, batch) for key, make in zip(keys, makers)}
        outputs = {k: v.numpy() for k, v in signature(**{k: tf.constant(v) for k, v in inputs.items()}).items()}
        assert all(np.all(np.isfinite(v)) for v in outputs.values()), f"{folder.name}: not finite"
        np.savez(folder / f"inputs_{batch}.npz", **inputs)
        np.savez(folder / f"outputs_{batch}.npz", **outputs)
    print(folder.name, *(f"{v.shape} {v.std():.3g}" for v in outputs.values()), flush=True)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    names = sys.argv[2:] or list(MODELS)
    if unknown := set(names) - MODELS.keys():
        sys.exit("other_models.py: no such model: " + " ".join(sorted(unknown)))
    for name in names:
        write(pathlib.Path(sys.argv[1]) / name, *MODELS[name])


if __name__ == "__main__":
    main()
