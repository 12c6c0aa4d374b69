"""What papers and notebooks spell by hand of small ops: activations, normalizations, attention, blocks of images and sequences."""
import numpy as np

from library_model_rows.modules import module, normal
from library_model_rows.sequences import weights


def normalized(tf, x, axes, epsilon=1e-5):
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + epsilon)


@module("activations_by_hand")
def activations(tf, m):
    """Gates, scales and residuals around GELU and hard swish, by Erf, Erfc and tanh; SELU, CELU, ELU, PReLU, snake, mish, clamps behind layers."""
    weights(tf, m, up=(6, 16), down=(8, 4), bias=(16,), scale=(6,), slope=(6,), narrow=(6, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="x")])
    def serve(x):
        a, b = tf.split(x @ m.up + m.bias, 2, -1)
        cdf = 0.5 * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3))))
        negative, moved, below = -x, x + m.slope, x - m.slope  # TensorFlow's converter wants halves that one GELU reads
        out = {
            "geglu": (a * tf.nn.gelu(b)) @ m.down, "geglu_tanh": (b * tf.nn.gelu(a, approximate=True)) @ m.down, "swiglu": (a * tf.nn.silu(b)) @ m.down,
            "gelu_scaled": tf.nn.gelu(x) * m.scale, "gelu_half": below + 0.5 * tf.nn.gelu(below), "gelu_twice": 2.0 * tf.nn.gelu(x @ m.up), "gelu_cdf": x * cdf,
            "gelu_erf": 0.5 * moved * (1.0 + tf.math.erf(moved / np.float32(np.sqrt(2)))), "hard_swish_gate": a * (b * tf.nn.relu6(b + 3) / 6), "hard_swish_shared": x * tf.nn.relu6(x + 3) / 6,
            "hard_sigmoid": tf.nn.relu6(x + 3) / 6, "selu": tf.nn.selu(x), "celu": tf.maximum(x, 0.0) + 0.5 * (tf.exp(tf.minimum(x, 0.0) / 0.5) - 1.0), "celu_one": tf.nn.relu(x) + (tf.exp(tf.minimum(x, 0.0)) - 1.0),
            "elu_alpha": tf.where(x > 0, tf.nn.elu(x), 0.3 * tf.nn.elu(x)), "prelu": tf.nn.relu(x) - m.slope * tf.nn.relu(negative), "snake": x + tf.square(tf.sin(m.slope * x)) / (m.slope + 1e-9),
            "mish": x * tf.tanh(tf.math.softplus(x)), "negative": negative, "relu_one": tf.clip_by_value(x @ m.narrow, 0.0, 1.0), "relu_n1": tf.clip_by_value(x @ m.narrow, -1.0, 1.0),
            "step": tf.clip_by_value(x - m.scale, -1.0, 1.0), "energy": tf.reduce_sum(tf.square(x - m.scale), -1),
        }
        return out
    return {"serving_default": serve}, [{"x": normal(4, 6) * 2}]


@module("norms_by_hand")
def norms(tf, m):
    """Layer, RMS, group, instance and batch normalization of three to five dimensions, before one product, several, and none; adaptive ones."""
    weights(tf, m, g=(6,), b=(6,), q=(6, 6), k=(6, 4), v=(6, 4), o=(4, 6), bias=(6,), style=(6, 12), filter=(1, 1, 6, 4), three=(1, 3, 3, 6, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 6], tf.float32, name="x"), tf.TensorSpec([None, 6], tf.float32, name="style")])
    def rows(x, style):
        layer = normalized(tf, x, [-1]) * m.g + m.b
        rms = x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6) * m.g
        gamma, beta = tf.split(tf.nn.silu(style) @ m.style, 2, -1)
        batch = tf.nn.batch_normalization(x, m.b, tf.abs(m.g), m.g, None, 1e-3)
        parallel = normalized(tf, x, [-1]) * m.b + m.g
        return {"layer": layer, "projected": layer @ m.k, "rms_q": rms @ m.q, "rms_k": rms @ m.k, "rms_v": rms @ m.v, "adaptive": normalized(tf, x, [-1]) * (1 + gamma[:, None]) + beta[:, None],
                "batch": tf.nn.relu(batch @ m.q + m.bias), "parallel": x + parallel @ m.q + m.bias + tf.nn.gelu(parallel @ m.k) @ m.o, "scaled": x / (tf.norm(x, axis=-1, keepdims=True) + 1e-6)}

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 6], tf.float32, name="image"), tf.TensorSpec([None, 2, 4, 4, 6], tf.float32, name="video")])
    def images(image, video):
        group = tf.reshape(normalized(tf, tf.reshape(image, [-1, 4, 4, 2, 3]), [1, 2, 4]), [-1, 4, 4, 6]) * m.g + m.b
        instance = tf.nn.conv2d(normalized(tf, image, [1, 2]) * m.g + m.b, m.filter, 1, "VALID")
        batch = tf.compat.v1.nn.fused_batch_norm(image, m.g, m.b, m.b, tf.abs(m.g), is_training=False)[0]
        return {"group": tf.nn.silu(group), "instance": instance, "batch": tf.nn.relu6(tf.nn.conv2d(batch, m.filter, 1, "SAME")), "layer": normalized(tf, video, [-1]) * m.g + m.b,
                "video": tf.nn.relu(normalized(tf, tf.nn.conv3d(video, m.three, [1] * 5, "SAME"), [1, 2, 3]))}
    return {"rows": rows, "images": images}, {"rows": [{"x": normal(2, 4, 6), "style": normal(2, 6, seed=1)}], "images": [{"image": normal(2, 4, 4, 6), "video": normal(1, 2, 4, 4, 6, seed=2)}]}


@module("attention_by_hand")
def attention(tf, m):
    """By matmul, einsum and grouped queries; rotary embeddings, ALiBi, a cache, a mask, linear attention."""
    weights(tf, m, qkv=(8, 24), q=(8, 2, 4), k=(8, 2, 4), v=(8, 2, 4), o=(2, 4, 8), wide=(8, 16), narrow=(8, 8), out=(16, 8), bias=(8,))
    angle = np.outer(np.arange(4), 1 / 100 ** (np.arange(2) / 2)).astype(np.float32)
    cos, sin = (tf.constant(np.concatenate([f(angle)] * 2, -1)[:, None]) for f in (np.cos, np.sin))

    def rotated(x):
        a, b = tf.split(x, 2, -1)
        return x * cos + tf.concat([-b, a], -1) * sin

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 8], tf.float32, name="x"), tf.TensorSpec([None, 3, 8], tf.float32, name="cache"), tf.TensorSpec([None, 4], tf.int32, name="mask")])
    def serve(x, cache, mask):
        parts = tf.transpose(tf.reshape(x @ m.qkv, [-1, 4, 3, 2, 4]), [2, 0, 3, 1, 4])
        stacked = tf.reshape(tf.transpose(tf.nn.softmax(tf.matmul(parts[0] * 0.5, parts[1], transpose_b=True)) @ parts[2], [0, 2, 1, 3]), [-1, 4, 8]) @ m.narrow + m.bias
        q, k, v = (tf.einsum("btd,dhk->bthk", x, w) for w in (m.q, m.k, m.v))
        q, k = rotated(q), rotated(k)
        bias = -tf.abs(tf.range(4.0)[:, None] - tf.range(4.0)[None]) * tf.constant([0.5, 0.25])[:, None, None]
        scores = tf.einsum("bthk,bshk->bhts", q, k) * 0.5 + bias + (1.0 - tf.cast(mask, tf.float32))[:, None, None] * -1e9
        spelled = tf.einsum("bthk,hkd->btd", tf.einsum("bhts,bshk->bthk", tf.nn.softmax(scores), v), m.o)
        heads, keys, values = tf.reshape(x @ m.wide, [-1, 4, 4, 4]), tf.reshape(x @ m.narrow, [-1, 4, 2, 4]), tf.reshape(x @ m.narrow, [-1, 4, 2, 4])
        keys, values = tf.repeat(keys, 2, 2), tf.repeat(values, 2, 2)
        grouped = tf.einsum("bhts,bshk->bthk", tf.nn.softmax(tf.einsum("bthk,bshk->bhts", heads, keys) / 2.0), values)
        seen = tf.concat([cache, x[:, :1] @ m.narrow], 1)
        cached = tf.nn.softmax(tf.matmul(x[:, :1], seen, transpose_b=True)) @ seen
        a, b = tf.nn.elu(x) + 1, tf.nn.elu(x @ m.narrow) + 1
        linear = tf.einsum("btd,bde->bte", a, tf.einsum("btd,bte->bde", b, x))
        return {"stacked": stacked, "spelled": spelled, "grouped": tf.reshape(grouped, [-1, 4, 16]) @ m.out, "cached": cached, "cache": seen[:, 1:], "linear": linear}
    return {"serving_default": serve}, [{"x": normal(2, 4, 8), "cache": normal(2, 3, 8, seed=1), "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)}]


@module("blocks_by_hand")
def blocks(tf, m):
    """Squeezes, attention of channels, patches, pixels shuffled, wide pools of text, causal and separable convolutions of sequences, distances."""
    weights(tf, m, c=(3, 3, 6, 8), r=(8, 4), e=(4, 8), s=(3, 3, 2, 1), p=(2, 2, 8, 6), u=(1, 1, 8, 12), t2=(2, 6, 4), t3=(3, 6, 4), d=(1, 3, 6, 1), w=(1, 1, 6, 4), y=(8, 3), b=(8,), b4=(4,))

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 6], tf.float32, name="image")])
    def images(image):
        x = tf.nn.relu(tf.nn.conv2d(image, m.c, 1, "SAME") + m.b)
        pooled = tf.reduce_mean(x, [1, 2])
        x = x * tf.sigmoid(tf.nn.relu(pooled @ m.r) @ m.e)[:, None, None]
        x = x * tf.sigmoid(tf.nn.conv2d(tf.stack([tf.reduce_mean(x, -1), tf.reduce_max(x, -1)], -1), m.s, 1, "SAME"))
        patches = tf.reshape(tf.nn.conv2d(x, m.p, 2, "VALID"), [-1, 16, 6])
        up = tf.nn.depth_to_space(tf.nn.conv2d(x, m.u, 1, "SAME"), 2)
        window = tf.reshape(tf.transpose(tf.reshape(x, [-1, 2, 4, 2, 4, 8]), [0, 1, 3, 2, 4, 5]), [-1, 4, 16, 8])
        return {"patches": tf.concat([tf.reduce_mean(patches, 1, keepdims=True), patches], 1), "up": up, "window": window, "focus": tf.concat([x[:, ::2, ::2], x[:, 1::2, ::2]], -1),
                "resized": tf.image.resize(x, [16, 16]), "greatest": tf.nn.relu6(tf.reduce_max(tf.nn.conv2d(x, m.p, 2, "VALID"), [1, 2])), "pixels": x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-8)}

    @tf.function(input_signature=[tf.TensorSpec([None, 9, 6], tf.float32, name="x")])
    def sequences(x):
        text = tf.concat([tf.reduce_max(tf.nn.relu(tf.nn.conv1d(x, t, 1, "VALID") + m.b4), 1) for t in (m.t2, m.t3)], -1) @ m.y
        gated = tf.tanh(tf.nn.conv1d(tf.pad(x, [[0, 0], [4, 0], [0, 0]]), m.t3, 1, "VALID", dilations=2)) * tf.sigmoid(tf.nn.conv1d(tf.pad(x, [[0, 0], [2, 0], [0, 0]]), m.t3, 1, "VALID"))
        separable = tf.nn.relu(tf.nn.separable_conv2d(x[:, None], m.d, m.w, [1] * 4, "SAME")[:, 0] + m.b4)
        distance = tf.reduce_sum(tf.square(x[:, :, None] - x[:, None]), -1)
        return {"text": text, "gated": gated, "separable": separable, "distance": distance, "sum": tf.cumsum(x, 1), "first": x[:, 0], "unit": tf.nn.l2_normalize(x, -1)}
    return {"images": images, "sequences": sequences}, {"images": [{"image": normal(2, 8, 8, 6)}], "sequences": [{"x": normal(2, 9, 6)}]}
