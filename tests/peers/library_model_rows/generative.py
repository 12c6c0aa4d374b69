"""Generators and physics: modulated convolutions, autoencoders, flows, diffusion, radiance fields, implicit layers, filters."""
import numpy as np

from library_model_rows.keras_models import keras_model
from library_model_rows.modules import module, normal
from library_model_rows.sequences import weights


@module("style_gan")
def style(tf, m):
    """Mapping, modulated and demodulated convolutions by groups, blur and upsampling, minibatch deviation."""
    weights(tf, m, z=(6, 8), a=(8, 4), k=(3, 3, 4, 4), c=(4, 4, 4), rgb=(1, 1, 4, 3))
    blur = (np.outer([1, 3, 3, 1], [1, 3, 3, 1]) / 16).astype(np.float32)[:, :, None, None].repeat(4, 2)

    def modulated(x, s):
        b, h, w = tf.shape(x)[0], x.shape[1], x.shape[2]
        k = m.k[None] * s[:, None, None, :, None]
        k *= tf.math.rsqrt(tf.reduce_sum(tf.square(k), [1, 2, 3], keepdims=True) + 1e-8)
        patches = tf.reshape(tf.image.extract_patches(x, [1, 3, 3, 1], [1] * 4, [1] * 4, "SAME"), [b, h * w, 36])
        return tf.reshape(tf.matmul(patches, tf.reshape(k, [b, 36, 4])), [b, h, w, 4])

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="z"), tf.TensorSpec([None, 8, 8, 1], tf.float32, name="noise")])
    def serve(z, noise):
        w = tf.nn.leaky_relu((z * tf.math.rsqrt(tf.reduce_mean(z ** 2, 1, keepdims=True) + 1e-8)) @ m.z, 0.2) * np.sqrt(2)
        s = w @ m.a + 1.0
        x = tf.tile(m.c[None], [tf.shape(z)[0], 1, 1, 1])
        x = tf.nn.leaky_relu(modulated(x, s), 0.2)
        y = tf.reshape(tf.pad(tf.reshape(x, [-1, 4, 1, 4, 1, 4]), [[0, 0], [0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]), [-1, 8, 8, 4])
        y = tf.nn.depthwise_conv2d(tf.pad(y, [[0, 0], [2, 1], [2, 1], [0, 0]]), blur, [1] * 4, "VALID") + noise * 0.1
        transposed = tf.nn.conv2d_transpose(x, m.k, [tf.shape(z)[0], 8, 8, 4], 2, "SAME")
        y = tf.nn.leaky_relu(modulated(y, s), 0.2)
        rgb = tf.clip_by_value(tf.nn.conv2d(y, m.rgb, 1, "SAME") * 0.5 + 0.5, 0, 1)
        deviation = tf.reduce_mean(tf.math.reduce_std(y, 0))
        return {"image": tf.cast(rgb * 255, tf.uint8), "float": rgb, "transposed": transposed, "deviation": deviation}
    return {"serving_default": serve}, [{"z": normal(2, 6), "noise": normal(2, 8, 8, 1)}]


@keras_model("vae_vq")
def vae(tf, keras):
    """A variational autoencoder with its mean at inference, and a codebook."""
    L = keras.layers

    class Codebook(L.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(6, 4), initializer="random_normal", name="table")

        def call(self, x):
            table = tf.convert_to_tensor(self.table)
            flat = tf.reshape(x, [-1, 4])
            d = tf.reduce_sum(flat ** 2, 1, keepdims=True) + tf.reduce_sum(table ** 2, 1) - 2 * tf.matmul(flat, table, transpose_b=True)
            index = tf.argmin(d, 1)
            quantized = tf.reshape(tf.matmul(tf.one_hot(index, 6), table), tf.shape(x))
            return x + tf.stop_gradient(quantized - x), tf.reshape(index, tf.shape(x)[:-1])

        def compute_output_shape(self, shape):
            return shape, shape[:-1]
    inputs = keras.Input([8, 8, 1], name="image")
    x = L.Conv2D(4, 3, strides=2, padding="same", activation="swish")(inputs)
    code, index = Codebook()(x)
    mean = L.Dense(3)(L.Flatten()(code))
    spread = L.Activation("softplus")(L.Dense(3)(L.Flatten()(code)))
    y = L.Reshape((2, 2, 2))(L.Dense(8, activation="gelu")(mean))
    for n in (4, 2):
        y = L.LayerNormalization(axis=[1, 2])(L.Conv2DTranspose(n, 3, strides=2, padding="same", activation="relu")(y))
    return keras.Model(inputs, {"image": L.Conv2D(1, 3, padding="same", activation="sigmoid")(y), "spread": spread, "code": index}), [{"image": normal(2, 8, 8, 1)}]


@module("diffusion_steps")
def diffusion(tf, m):
    """Time embeddings, a small U-Net with group norms and attention, DDIM and DDPM steps in a loop, guidance."""
    weights(tf, m, t=(8, 8), i=(3, 3, 2, 8), k=(3, 3, 8, 8), qkv=(8, 24), o=(3, 3, 8, 2), y=(4, 8))
    beta = np.linspace(1e-4, 0.2, 10).astype(np.float32)
    alpha = tf.constant(np.cumprod(1 - beta))

    def group_norm(x):
        g = tf.reshape(x, [-1, 8, 8, 2, 4])
        mean, variance = tf.nn.moments(g, [1, 2, 4], keepdims=True)
        return tf.reshape((g - mean) * tf.math.rsqrt(variance + 1e-5), [-1, 8, 8, 8])

    def net(x, t, label):
        rate = tf.exp(-np.log(10000.0) * tf.range(4, dtype=tf.float32) / 4)
        angle = tf.cast(t, tf.float32)[:, None] * rate
        e = tf.nn.silu(tf.concat([tf.sin(angle), tf.cos(angle)], -1) @ m.t) + tf.gather(m.y, label)
        h = tf.nn.conv2d(x, m.i, 1, "SAME") + e[:, None, None]
        h = h + tf.nn.conv2d(tf.nn.silu(group_norm(h)), m.k, 1, "SAME")
        q, k, v = tf.split(tf.reshape(group_norm(h), [-1, 64, 8]) @ m.qkv, 3, -1)
        h = h + tf.reshape(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 8 ** 0.5) @ v, [-1, 8, 8, 8])
        low = tf.nn.avg_pool2d(h, 2, 2, "VALID")
        h = h + tf.image.resize(low, [8, 8], method="nearest")
        return tf.nn.conv2d(h, m.o, 1, "SAME")

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], tf.float32, name="x"), tf.TensorSpec([None], tf.int32, name="label")])
    def serve(x, label):
        def step(i, x):
            t = 9 - 3 * i
            tt = tf.fill([tf.shape(x)[0]], t)
            with_label, without = net(x, tt, label), net(x, tt, tf.zeros_like(label))
            noise = without + 2.0 * (with_label - without)
            now, then = alpha[t], tf.cond(t >= 3, lambda: alpha[tf.maximum(t - 3, 0)], lambda: 1.0)
            clean = tf.clip_by_value((x - tf.sqrt(1 - now) * noise) / tf.sqrt(now), -3, 3)
            return i + 1, tf.sqrt(then) * clean + tf.sqrt(1 - then) * noise
        return {"image": tf.while_loop(lambda i, x: i < 3, step, [0, x])[1]}

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 2], tf.float32, name="x"), tf.TensorSpec([1], tf.int32, name="t"), tf.TensorSpec([1], tf.int32, name="label")])
    def once(x, t, label):
        a = tf.gather(alpha, t)[:, None, None, None]
        return {"noise": net(x, t, label), "noised": tf.sqrt(a) * x + tf.sqrt(1 - a) * tf.ones_like(x)}
    i = lambda *v: np.array(v, np.int32)
    return {"serving_default": serve, "once": once}, {"serving_default": [{"x": normal(2, 8, 8, 2), "label": i(1, 3)}], "once": [{"x": normal(1, 8, 8, 2), "t": i(4), "label": i(2)}]}


@module("flow_glow")
def glow(tf, m):
    """Actnorm, an invertible 1x1 convolution, affine coupling, squeeze; forwards with the log determinant and backwards."""
    weights(tf, m, s=(4,), b=(4,), k=(3, 3, 2, 4))
    m.w = tf.Variable(np.linalg.qr(normal(4, 4))[0])

    def coupling(a):
        shift, scale = tf.split(tf.nn.conv2d(a, m.k, 1, "SAME"), 2, -1)
        return shift, tf.sigmoid(scale + 2.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 1], tf.float32, name="x")])
    def forwards(x):
        y = tf.nn.space_to_depth(x, 2)
        y = (y + m.b) * tf.exp(m.s)
        y = tf.nn.conv2d(y, m.w[None, None], 1, "SAME")
        a, b = tf.split(y, 2, -1)
        shift, scale = coupling(a)
        logdet = 4.0 * (tf.reduce_sum(m.s) + tf.math.log(tf.abs(tf.linalg.det(m.w)))) + tf.reduce_sum(tf.math.log(scale), [1, 2, 3])
        z = tf.concat([a, (b + shift) * scale], -1)
        return {"z": z, "logp": logdet - 0.5 * tf.reduce_sum(z ** 2 + np.log(2 * np.pi), [1, 2, 3])}

    @tf.function(input_signature=[tf.TensorSpec([None, 2, 2, 4], tf.float32, name="z")])
    def backwards(z):
        a, b = tf.split(z, 2, -1)
        shift, scale = coupling(a)
        y = tf.concat([a, b / scale - shift], -1)
        y = tf.nn.conv2d(y, tf.linalg.inv(m.w)[None, None], 1, "SAME")
        return {"x": tf.nn.depth_to_space(y * tf.exp(-m.s) - m.b, 2)}
    return {"serving_default": forwards, "backwards": backwards}, {"serving_default": [{"x": normal(2, 4, 4, 1)}], "backwards": [{"z": normal(2, 2, 2, 4)}]}


@module("radiance_field")
def nerf(tf, m):
    """Rays of a camera, positional encodings, an MLP with a skip, volume rendering, hierarchical samples by searchsorted."""
    weights(tf, m, a=(27, 16), b=(43, 16), d=(16, 1), c=(16, 3))

    def encode(x):
        return tf.concat([x] + [f(2.0 ** k * np.pi * x) for k in range(4) for f in (tf.sin, tf.cos)], -1)

    @tf.function(input_signature=[tf.TensorSpec([4, 4], tf.float32, name="pose"), tf.TensorSpec([], tf.float32, name="focal")])
    def serve(pose, focal):
        i, j = tf.meshgrid(tf.range(5, dtype=tf.float32), tf.range(4, dtype=tf.float32), indexing="xy")
        d = tf.stack([(i - 2.5) / focal, -(j - 2.0) / focal, -tf.ones_like(i)], -1)
        d = tf.reduce_sum(d[..., None, :] * pose[:3, :3], -1)
        o = tf.broadcast_to(pose[:3, -1], tf.shape(d))
        t = tf.linspace(2.0, 6.0, 8)
        p = o[..., None, :] + d[..., None, :] * t[:, None]
        e = encode(tf.reshape(p, [-1, 3]))
        h = tf.nn.relu(e @ m.a)
        h = tf.nn.relu(tf.concat([h, e], -1) @ m.b)
        sigma = tf.reshape(tf.nn.relu(h @ m.d), [4, 5, 8])
        colour = tf.reshape(tf.sigmoid(h @ m.c), [4, 5, 8, 3])
        gap = tf.concat([t[1:] - t[:-1], [1e10]], 0)
        opaque = 1.0 - tf.exp(-sigma * gap)
        weight = opaque * tf.math.cumprod(1.0 - opaque + 1e-10, -1, exclusive=True)
        cdf = tf.cumsum(weight / (tf.reduce_sum(weight, -1, keepdims=True) + 1e-5), -1)
        u = tf.linspace(0.05, 0.8, 3)
        index = tf.searchsorted(tf.reshape(cdf, [20, 8]), tf.tile(u[None], [20, 1]), side="right")
        return {"rgb": tf.reduce_sum(weight[..., None] * colour, -2), "depth": tf.reduce_sum(weight * t, -1), "acc": tf.reduce_sum(weight, -1), "index": index}
    pose = np.eye(4, dtype=np.float32)
    pose[:3, 3] = [0.1, 0.2, 4]
    return {"serving_default": serve}, [{"pose": pose, "focal": np.float32(5)}]


@module("kalman_ode")
def filters(tf, m):
    """A Kalman filter over time, Runge-Kutta steps, a fixed point, a Newton iteration, conjugate gradients."""
    weights(tf, m, f=(2, 2), h=(1, 2), w=(3, 3))

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, name="z")])
    def kalman(z):
        def step(state, zt):
            x, p = state
            x, p = tf.linalg.matvec(m.f, x), m.f @ p @ tf.transpose(m.f) + 0.1 * tf.eye(2)
            s = m.h @ p @ tf.transpose(m.h) + 0.5
            k = p @ tf.transpose(m.h) / s
            x = x + tf.linalg.matvec(k, zt - tf.linalg.matvec(m.h, x))
            return x, (tf.eye(2) - k @ m.h) @ p
        xs, ps = tf.scan(step, z, initializer=(tf.zeros([2]), tf.eye(2)))
        return {"x": xs, "p": ps}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="y"), tf.TensorSpec([], tf.float32, name="end")])
    def ode(y, end):
        rate = lambda v: tf.tanh(v @ m.w)
        n, t = tf.constant(0), tf.constant(0.0)
        while t < end:
            step = tf.minimum(0.25, end - t)
            a = rate(y)
            b = rate(y + step / 2 * a)
            c = rate(y + step / 2 * b)
            y = y + step / 6 * (a + 2 * b + 2 * c + rate(y + step * c))
            t, n = t + step, n + 1
        x = tf.zeros_like(y)
        for _ in tf.range(20):
            x = 0.5 * tf.tanh(x @ m.w * 0.3 + y)
        root = tf.fill([tf.shape(y)[0]], 1.0)
        a = tf.reduce_sum(y ** 2, 1) + 1.0
        for _ in range(5):
            root = root - (root ** 3 - a) / (3 * root ** 2)
        return {"y": y, "steps": n, "fixed": x, "root": root}
    return {"serving_default": kalman, "ode": ode}, {"serving_default": [{"z": normal(5, 1)}], "ode": [{"y": normal(2, 3), "end": np.float32(0.9)}]}


@keras_model("mixture_experts")
def experts(tf, keras):
    """A router that takes two of four experts, capsules with routing, highway layers, FiLM, a hypernetwork."""
    L = keras.layers

    class Route(L.Layer):
        def build(self, shape):
            self.g = self.add_weight(shape=(shape[-1], 4), initializer="random_normal", name="g")
            self.w = self.add_weight(shape=(4, shape[-1], 5), initializer="random_normal", name="w")

        def call(self, x):
            p = tf.nn.softmax(tf.matmul(x, tf.convert_to_tensor(self.g)))
            best, index = tf.math.top_k(p, 2)
            gate = tf.reduce_sum(tf.one_hot(index, 4) * (best / tf.reduce_sum(best, -1, keepdims=True))[..., None], 1)
            return tf.einsum("be,beo->bo", gate, tf.einsum("bi,eio->beo", x, tf.convert_to_tensor(self.w)))

        def compute_output_shape(self, shape):
            return shape[0], 5

    class Capsules(L.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(1, 5, 3, 4, 2), initializer="random_normal", name="w")

        def call(self, x):
            u = tf.squeeze(tf.matmul(tf.convert_to_tensor(self.w), tf.tile(tf.reshape(x, [-1, 5, 1, 1, 1]), [1, 1, 3, 2, 1]), transpose_a=False), -1) if False else tf.einsum("bi,xijkd->bijk", x, tf.convert_to_tensor(self.w))
            b = tf.zeros_like(u[..., :1])
            for _ in range(3):
                s = tf.reduce_sum(tf.nn.softmax(b, 2) * u, 1, keepdims=True)
                n = tf.reduce_sum(s ** 2, -1, keepdims=True)
                v = n / (1 + n) * s / tf.sqrt(n + 1e-7)
                b += tf.reduce_sum(u * v, -1, keepdims=True)
            return tf.norm(tf.squeeze(v, 1), axis=-1)

        def compute_output_shape(self, shape):
            return shape[0], 3
    inputs, other = keras.Input([6], name="x"), keras.Input([2], name="c")
    x = Route()(inputs)
    t = L.Dense(5, activation="sigmoid", bias_initializer="ones")(x)
    x = t * L.Dense(5, activation="mish" if hasattr(keras, "ops") else "tanh")(x) + (1.0 - t) * x
    x = x * (1.0 + L.Dense(5)(other)) + L.Dense(5)(other)
    hyper = L.Reshape((5, 2))(L.Dense(10)(other))
    y = L.Dot(axes=1)([x, hyper])
    return keras.Model([inputs, other], {"y": y, "capsules": Capsules()(x), "norm": L.UnitNormalization()(x)}), [{"x": normal(3, 6), "c": normal(3, 2)}]


@module("point_cloud")
def points(tf, m):
    """Farthest point sampling, ball queries, k nearest neighbours, edge convolutions, a spatial transformer, quaternions."""
    weights(tf, m, w=(6, 8), t=(3, 9), o=(8, 3))

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 3], tf.float32, name="cloud")])
    def serve(cloud):
        b = tf.shape(cloud)[0]
        t = tf.reshape(tf.reduce_max(cloud, 1) @ m.t, [-1, 3, 3]) + tf.eye(3)
        x = tf.matmul(cloud, t)
        square = tf.reduce_sum(x ** 2, -1)
        d = square[:, :, None] + square[:, None] - 2 * tf.matmul(x, x, transpose_b=True)
        _, index = tf.math.top_k(-d, 4)
        near = tf.gather(x, index, axis=1, batch_dims=1)
        edge = tf.concat([tf.tile(x[:, :, None], [1, 1, 4, 1]), near - x[:, :, None]], -1)
        h = tf.reduce_max(tf.nn.leaky_relu(tf.tensordot(edge, m.w, 1), 0.2), 2)
        distance, last, chosen = tf.fill([b, 12], 1e10), tf.zeros([b], tf.int32), []
        for _ in range(4):
            chosen.append(last)
            centre = tf.gather(x, last[:, None], axis=1, batch_dims=1)
            distance = tf.minimum(distance, tf.reduce_sum((x - centre) ** 2, -1))
            last = tf.argmax(distance, 1, tf.int32)
        chosen = tf.stack(chosen, 1)
        inside = tf.cast(tf.gather(d, chosen, axis=1, batch_dims=1) < 1.5, tf.float32)
        q = tf.math.l2_normalize(tf.concat([h[:, 0, :3], tf.ones([b, 1])], 1), -1)
        u, s = q[:, :3], q[:, 3:]
        v = cloud[:, 0]
        turned = 2 * tf.reduce_sum(u * v, 1, keepdims=True) * u + (s ** 2 - tf.reduce_sum(u * u, 1, keepdims=True)) * v + 2 * s * tf.linalg.cross(u, v)
        return {"y": tf.reduce_max(h, 1) @ m.o, "chosen": chosen, "inside": tf.reduce_sum(inside, -1), "turned": turned, "chamfer": tf.reduce_mean(tf.reduce_min(d + 10 * tf.eye(12), 2), 1)}
    return {"serving_default": serve}, [{"cloud": normal(2, 12, 3)}, {"cloud": normal(1, 12, 3, seed=3)}]
