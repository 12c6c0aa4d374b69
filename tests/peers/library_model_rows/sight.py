"""Models of pictures: anchors made in the graph, style, letters, poses, samplers, cells of searched nets, masks, trackers, stereo, pictures in texts."""
import base64

import numpy as np

from library_model_rows.keras_models import keras_model, layer_of
from library_model_rows.modules import module, normal, words
from library_model_rows.rows import stranger
from library_model_rows.sequences import weights
from library_model_rows.version_one import graph

pixels = lambda *shape, seed=0: np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)
bytes_of = lambda *shape, seed=0: np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


@module("retina_anchors")
def retina(tf, m):
    """uint8 pictures of any size; anchors by the sizes of the features, two levels, classes moved apart so that one suppression serves all; and the combined one."""
    weights(tf, m, a=(3, 3, 3, 8), b=(3, 3, 8, 8), box=(3, 3, 8, 12), cls=(3, 3, 8, 6), bias=(6,))

    def anchors(h, w, stride, sizes):
        y = (tf.range(tf.cast(h, tf.float32)) + 0.5) * stride
        x = (tf.range(tf.cast(w, tf.float32)) + 0.5) * stride
        cx, cy = tf.meshgrid(x, y)
        centre = tf.tile(tf.expand_dims(tf.stack([cy, cx], -1), -2), [1, 1, 3, 1])
        size = tf.tile(sizes[None, None], [h, w, 1, 1])
        return tf.reshape(tf.concat([centre, size], -1), [h * w * 3, 4])

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.uint8, name="images")])
    def serve(images):
        shape = tf.shape(images)
        x = (tf.cast(images, tf.float32) - [123.7, 116.3, 103.5]) / [58.4, 57.1, 57.4]
        x = tf.nn.relu(tf.nn.conv2d(x, m.a, 4, "SAME"))
        levels = [x, tf.nn.relu(tf.nn.conv2d(x, m.b, 2, "SAME"))]
        boxes, scores = [], []
        for i, f in enumerate(levels):
            s = tf.shape(f)
            grid = anchors(s[1], s[2], 4.0 * 2 ** i, tf.constant([[8.0, 8], [12, 6], [6, 12]]) * 2 ** i)
            d = tf.reshape(tf.nn.conv2d(f, m.box, 1, "SAME"), [s[0], -1, 4]) * [0.1, 0.1, 0.2, 0.2]
            centre = d[..., :2] * grid[..., 2:] + grid[..., :2]
            half = tf.math.exp(d[..., 2:]) * grid[..., 2:] / 2
            boxes.append(tf.concat([centre - half, centre + half], -1))
            scores.append(tf.sigmoid(tf.reshape(tf.nn.bias_add(tf.nn.conv2d(f, m.cls, 1, "SAME"), m.bias), [s[0], -1, 2])))
        boxes, scores = tf.concat(boxes, 1), tf.concat(scores, 1)
        limit = tf.cast(tf.stack([shape[1], shape[2], shape[1], shape[2]]), tf.float32)
        kept = tf.image.combined_non_max_suppression(tf.expand_dims(boxes / limit, 2), scores, 4, 6, 0.5, 0.2, clip_boxes=True)
        best, kind = tf.reduce_max(scores[0], -1), tf.argmax(scores[0], -1)
        moved = boxes[0] + tf.cast(kind, tf.float32)[:, None] * 1000.0
        index = tf.image.non_max_suppression(moved, best, 5, 0.45, 0.3)
        return {"best": kept[0][:, :1] * limit, "scores": kept[1], "class": kept[2][:, :1], "count": kept[3], "raw": tf.gather(boxes[0], index), "kinds": tf.gather(kind, index), "index": index}
    return {"serving_default": serve}, [{"images": bytes_of(1, 32, 40, 3)}, {"images": bytes_of(2, 24, 24, 3, seed=1)}]


@module("style_transfer")
def style(tf, m):
    """Any size; reflected pads, instance norms whose scales come from another picture, upsampling by sizes that are computed."""
    weights(tf, m, a=(5, 5, 3, 6), d=(3, 3, 6, 12), r=(3, 3, 12, 12), u=(3, 3, 12, 6), o=(5, 5, 6, 3), s=(3, 3, 3, 8), g=(8, 24), bias=(24,))

    def conv(x, k, stride=1):
        p = k.shape[0] // 2
        return tf.nn.conv2d(tf.pad(x, [[0, 0], [p, p], [p, p], [0, 0]], mode="REFLECT"), k, [1, stride, stride, 1], "VALID")

    def norm(x, scale, shift):
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        return scale * (x - mean) * tf.math.rsqrt(variance + 1e-3) + shift

    @tf.function(input_signature=[tf.TensorSpec([1, None, None, 3], tf.float32, name="content"), tf.TensorSpec([1, 16, 16, 3], tf.float32, name="style")])
    def serve(content, style):
        code = tf.reduce_mean(tf.nn.relu6(tf.nn.conv2d(style, m.s, 2, "SAME")), [1, 2])
        scale, shift = tf.split((code @ m.g + m.bias)[:, None, None], 2, -1)
        x = tf.nn.relu(norm(conv(content, m.a), 1.0, 0.0))
        x = tf.nn.relu(norm(conv(x, m.d, 2), scale, shift))
        x = x + norm(conv(tf.nn.relu(conv(x, m.r)), m.r), scale, shift)
        h, w = tf.shape(x)[1], tf.shape(x)[2]
        x = tf.compat.v1.image.resize_nearest_neighbor(x, [h * 2, w * 2])
        x = tf.nn.relu(conv(x, m.u))
        y = tf.sigmoid(0.2 * conv(x, m.o))
        features = tf.reshape(x, [-1, tf.shape(x)[1] * tf.shape(x)[2], 6])
        gram = tf.linalg.einsum("bic,bid->bcd", features, features) / tf.cast(h * w, tf.float32)
        return {"image": y, "bottleneck": code, "gram": gram}
    return {"serving_default": serve}, [{"content": pixels(1, 16, 20, 3), "style": pixels(1, 16, 16, 3, seed=2)}, {"content": pixels(1, 12, 12, 3), "style": pixels(1, 16, 16, 3, seed=4)}]


@keras_model("letters_crnn")
def letters(tf, keras):
    """Columns of a text line through recurrent layers both ways; the letters of the best path as words."""
    L = keras.layers

    class Collapse(L.Layer):
        def call(self, x):
            x = tf.transpose(x, [0, 2, 1, 3])
            return tf.reshape(x, [-1, x.shape[1], x.shape[2] * x.shape[3]])

        def compute_output_shape(self, s):
            return s[0], s[2], s[1] * s[3]

    class Read(L.Layer):
        def call(self, p):
            letters = tf.constant(list("abcdefgh"))
            best = tf.argmax(p, -1)
            again = tf.concat([tf.zeros_like(best[:, :1], tf.bool), best[:, 1:] == best[:, :-1]], 1)
            shown = tf.where(again | (best == 8), "", tf.gather(letters, tf.minimum(best, 7)))
            return {"text": tf.strings.reduce_join(shown, 1), "confidence": tf.reduce_prod(tf.reduce_max(p, -1), 1)}
    inputs = keras.Input([16, 48, 1], name="line")
    x = inputs
    for n, pool in ((4, (2, 2)), (8, (2, 2)), (8, (2, 1))):
        x = L.BatchNormalization()(L.Conv2D(n, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x))
        x = L.MaxPooling2D(pool)(x)
    x = L.Dense(12, activation="relu")(Collapse()(x))
    x = L.Bidirectional(L.LSTM(6, return_sequences=True))(x)
    x = L.Bidirectional(L.LSTM(5, return_sequences=True), merge_mode="sum")(x)
    return keras.Model(inputs, Read()(L.Dense(9, activation="softmax")(x))), [{"line": pixels(2, 16, 48, 1)}, {"line": pixels(1, 16, 48, 1, seed=5)}]


@module("pose_heatmaps")
def pose(tf, m):
    """Peaks of heat maps with their offsets picked by gather_nd; a second way by softmax over places; and all peaks of several people, as many as there are."""
    weights(tf, m, k=(3, 3, 3, 8), h=(1, 1, 8, 5), o=(1, 1, 8, 10), d=(1, 1, 8, 8))

    @tf.function(input_signature=[tf.TensorSpec([1, 64, 48, 3], tf.uint8, name="image")])
    def serve(image):
        x = tf.nn.relu6(tf.nn.conv2d(tf.cast(image, tf.float32) / 127.5 - 1.0, m.k, 8, "SAME"))
        heat = tf.sigmoid(tf.nn.conv2d(x, m.h, 1, "SAME"))[0]
        offsets = tf.nn.conv2d(x, m.o, 1, "SAME")[0]
        flat = tf.reshape(heat, [48, 5])
        place = tf.argmax(flat, 0, output_type=tf.int32)
        rows, columns, joints = place // 6, place % 6, tf.range(5)
        score = tf.gather_nd(heat, tf.stack([rows, columns, joints], 1))
        moved = tf.stack([tf.gather_nd(offsets, tf.stack([rows, columns, joints], 1)), tf.gather_nd(offsets, tf.stack([rows, columns, joints + 5], 1))], 1)
        points = tf.cast(tf.stack([rows, columns], 1), tf.float32) * 8.0 + moved
        soft = tf.nn.softmax(tf.transpose(flat) * 20.0)
        grid = tf.reshape(tf.stack(tf.meshgrid(tf.linspace(0.0, 1.0, 8), tf.linspace(0.0, 1.0, 6), indexing="ij"), -1), [48, 2])
        peak = tf.nn.max_pool2d(heat[None], 3, 1, "SAME")[0]
        found = tf.where(tf.logical_and(tf.equal(peak, heat), heat > 0.55))
        displacement = tf.gather_nd(tf.nn.conv2d(x, m.d, 1, "SAME")[0], found[:, :2])
        return {"points": points, "score": score, "soft": tf.matmul(soft, grid), "found": found, "displacement": displacement, "pose": tf.reduce_mean(score), "visible": score > 0.5,
                "sorted": tf.gather(points, tf.argsort(score, direction="DESCENDING"))}
    return {"serving_default": serve}, [{"image": bytes_of(1, 64, 48, 3)}, {"image": bytes_of(1, 64, 48, 3, seed=7)}]


@keras_model("mobile_vit")
def mobile_vit(tf, keras):
    """Inverted residuals, patches of pixels unfolded so that attention crosses them, folded back, resized where the size does not divide."""
    L = keras.layers

    class Unfold(L.Layer):
        def call(self, x):
            x = tf.image.resize(x, [8, 8])
            x = tf.reshape(x, [-1, 4, 2, 4, 2, 12])
            return tf.reshape(tf.transpose(x, [0, 2, 4, 1, 3, 5]), [-1, 4, 16, 12])

        def compute_output_shape(self, s):
            return s[0], 4, 16, 12

    class Fold(L.Layer):
        def call(self, x):
            x = tf.transpose(tf.reshape(x, [-1, 2, 2, 4, 4, 12]), [0, 3, 1, 4, 2, 5])
            return tf.image.resize(tf.reshape(x, [-1, 8, 8, 12]), [7, 7])

        def compute_output_shape(self, s):
            return s[0], 7, 7, 12
    inputs = keras.Input([28, 28, 3], name="image")
    swish = "swish"

    def inverted(x, n, stride):
        y = L.Activation(swish)(L.BatchNormalization()(L.Conv2D(2 * x.shape[-1], 1, use_bias=False)(x)))
        y = L.ZeroPadding2D(((0, 1), (0, 1)))(y) if stride == 2 else y
        y = L.DepthwiseConv2D(3, strides=stride, padding="valid" if stride == 2 else "same", use_bias=False)(y)
        y = L.BatchNormalization()(L.Conv2D(n, 1, use_bias=False)(L.Activation(swish)(L.BatchNormalization()(y))))
        return L.Add()([x, y]) if stride == 1 and n == x.shape[-1] else y
    x = L.Activation(swish)(L.Conv2D(8, 3, strides=2, padding="same")(inputs))
    x = inverted(inverted(x, 12, 2), 12, 1)
    y = Unfold()(L.Conv2D(12, 1, activation=swish)(L.Conv2D(12, 3, padding="same", activation=swish)(x)))
    for _ in range(2):
        z = L.LayerNormalization(epsilon=1e-6)(y)
        y = L.Add()([y, L.MultiHeadAttention(2, 6)(z, z)])
        y = L.Add()([y, L.Dense(12)(L.Dense(24, activation=swish)(L.LayerNormalization(epsilon=1e-6)(y)))])
    y = L.Conv2D(12, 1, activation=swish)(Fold()(y))
    x = L.Conv2D(16, 3, padding="same", activation=swish)(L.Concatenate()([x, y]))
    return keras.Model(inputs, L.Dense(4)(L.GlobalAveragePooling2D()(x))), [{"image": pixels(2, 28, 28, 3)}]


@module("spatial_transformer")
def sampler(tf, m):
    """A net that says how to turn the picture, an affine grid, bilinear samples by gathered corners; the same by a thin plate; a polar one with wrapped rows."""
    weights(tf, m, a=(5, 5, 1, 4), w=(4 * 36, 6), o=(12 * 12, 5))
    m.b = tf.Variable([0.6, 0.1, 0.05, -0.1, 0.6, -0.05])

    def sample(image, x, y):
        h, w = image.shape[1], image.shape[2]
        x, y = 0.5 * (x + 1.0) * (w - 1), 0.5 * (y + 1.0) * (h - 1)
        x0, y0 = tf.cast(tf.floor(x), tf.int32), tf.cast(tf.floor(y), tf.int32)
        x1, y1 = x0 + 1, y0 + 1
        clip = tf.clip_by_value
        x0, x1, y0, y1 = clip(x0, 0, w - 1), clip(x1, 0, w - 1), clip(y0, 0, h - 1), clip(y1, 0, h - 1)
        batch = tf.tile(tf.range(tf.shape(image)[0])[:, None, None], [1, tf.shape(x)[1], tf.shape(x)[2]])
        at = lambda i, j: tf.gather_nd(image, tf.stack([batch, i, j], 3))
        fx0, fx1, fy0, fy1 = (tf.cast(v, tf.float32) for v in (x0, x1, y0, y1))
        wa, wb, wc, wd = ((fx1 - x) * (fy1 - y), (fx1 - x) * (y - fy0), (x - fx0) * (fy1 - y), (x - fx0) * (y - fy0))
        return tf.add_n([tf.expand_dims(k, 3) * v for k, v in ((wa, at(y0, x0)), (wb, at(y1, x0)), (wc, at(y0, x1)), (wd, at(y1, x1)))])

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 1], tf.float32, name="image")])
    def serve(image):
        n = tf.shape(image)[0]
        hidden = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(image, m.a, 1, "SAME")), 2, 2, "VALID")
        theta = tf.reshape(0.1 * tf.tanh(tf.reshape(hidden, [-1, 144]) @ m.w) + m.b, [n, 2, 3])
        gx, gy = tf.meshgrid(tf.linspace(-1.0, 1.0, 12), tf.linspace(-1.0, 1.0, 12))
        grid = tf.stack([tf.reshape(gx, [-1]), tf.reshape(gy, [-1]), tf.ones([144])])
        moved = tf.matmul(theta, tf.tile(grid[None], [n, 1, 1]))
        warped = sample(image, tf.reshape(moved[:, 0], [n, 12, 12]), tf.reshape(moved[:, 1], [n, 12, 12]))
        radius, angle = tf.meshgrid(tf.linspace(0.0, 1.0, 6), tf.linspace(0.0, 2 * np.pi, 9))
        polar = sample(image, tf.tile((radius * tf.cos(angle))[None], [n, 1, 1]), tf.tile((radius * tf.sin(angle))[None], [n, 1, 1]))
        return {"logits": tf.reshape(warped, [n, 144]) @ m.o, "warped": warped, "theta": theta, "polar": polar}
    return {"serving_default": serve}, [{"image": pixels(2, 12, 12, 1)}, {"image": pixels(1, 12, 12, 1, seed=3)}]


@graph("v1_nas_cells")
def cells(tf, v1, path):
    """Cells of a searched net as slim wrote them: ReLU, separable, batch norm; a reduction by two paths of pads and slices; identities joined."""
    v1.enable_resource_variables()
    x = v1.placeholder(tf.float32, [None, 24, 24, 3], "x")
    training = v1.placeholder_with_default(False, [], "training")
    number = iter(range(999))

    def variable(*shape):
        return v1.get_variable(f"w{next(number)}", shape, initializer=v1.random_normal_initializer(0.0, 0.4))

    def norm(v):
        c = v.shape[-1]
        return v1.nn.fused_batch_norm(v, tf.abs(variable(c)) + 0.5, variable(c), variable(c), tf.abs(variable(c)) + 0.3, is_training=False, epsilon=1e-3)[0]

    def separable(v, size, stride, c):
        for s in (stride, 1):
            v = tf.nn.relu(v)
            v = norm(v1.nn.separable_conv2d(v, variable(size, size, v.shape[-1], 1), variable(1, 1, v.shape[-1], c), [1, s, s, 1], "SAME"))
        return v

    def reduced(v, c):
        a = tf.nn.conv2d(v1.nn.avg_pool(v, [1, 1, 1, 1], [1, 2, 2, 1], "VALID"), variable(1, 1, v.shape[-1], c // 2), 1, "SAME")
        b = tf.pad(v, [[0, 0], [0, 1], [0, 1], [0, 0]])[:, 1:, 1:, :]
        b = tf.nn.conv2d(v1.nn.avg_pool(b, [1, 1, 1, 1], [1, 2, 2, 1], "VALID"), variable(1, 1, v.shape[-1], c // 2), 1, "SAME")
        return norm(tf.concat([a, b], 3))
    stem = norm(tf.nn.conv2d(x, variable(3, 3, 3, 8), 2, "VALID"))
    before, now = stem, stem
    for i in range(2):
        a = norm(tf.nn.conv2d(tf.nn.relu(now), variable(1, 1, now.shape[-1], 8), 1, "SAME"))
        b = norm(tf.nn.conv2d(tf.nn.relu(before), variable(1, 1, before.shape[-1], 8), 1, "SAME"))
        parts = [separable(a, 3, 1, 8) + separable(b, 5, 1, 8), tf.nn.avg_pool2d(a, 3, 1, "SAME") + b, tf.nn.avg_pool2d(b, 3, 1, "SAME") + tf.nn.avg_pool2d(b, 3, 1, "SAME"), separable(a, 3, 1, 8) + a]
        before, now = now, tf.concat([b] + parts, 3)
    small = reduced(tf.nn.relu(now), 16)
    down = separable(small, 7, 2, 16) + tf.nn.max_pool2d(small, 3, 2, "SAME")
    y = tf.reduce_mean(tf.nn.relu(down), [1, 2])
    y = v1.cond(training, lambda: tf.nn.dropout(y, 0.5), lambda: tf.identity(y))
    logits = v1.nn.xw_plus_b(y, variable(16, 5), variable(5))
    return {"x": x}, {"logits": logits, "p": tf.nn.softmax(logits)}, [{"x": pixels(2, 24, 24, 3)}, {"x": pixels(1, 24, 24, 3, seed=1)}]


@keras_model("weighted_pyramid")
def pyramid(tf, keras):
    """Features of several sizes joined by weights that are made positive and sum to one; places as channels; pools of several grids; heads that share layers."""
    L = keras.layers

    class Join(L.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(len(shape),), initializer="ones", name="w")

        def call(self, parts):
            w = tf.nn.relu(tf.convert_to_tensor(self.w))
            return tf.add_n([w[i] * p for i, p in enumerate(parts)]) / (tf.reduce_sum(w) + 1e-4)

        def compute_output_shape(self, s):
            return s[0]
    places = layer_of(keras, lambda v: tf.concat([v, tf.tile(tf.linspace(-1.0, 1.0, 32)[None, :, None, None], [tf.shape(v)[0], 1, 32, 1]), tf.tile(tf.linspace(-1.0, 1.0, 32)[None, None, :, None], [tf.shape(v)[0], 32, 1, 1])], -1))
    inputs = keras.Input([32, 32, 3], name="image")
    a = L.Conv2D(8, 3, strides=2, padding="same", activation="relu")(places(inputs))
    b = L.Conv2D(8, 3, strides=2, padding="same", activation="relu")(a)
    c = L.Conv2D(8, 3, strides=2, padding="same", activation="relu")(b)
    conv = lambda v: L.SeparableConv2D(8, 3, padding="same", activation="swish")(v)
    for _ in range(2):
        up = conv(Join()([b, L.UpSampling2D()(c)]))
        a2 = conv(Join()([a, L.UpSampling2D()(up)]))
        b2 = conv(Join()([b, up, L.MaxPooling2D(3, 2, "same")(a2)]))
        c2 = conv(Join()([c, L.MaxPooling2D(3, 2, "same")(b2)]))
        a, b, c = a2, b2, c2
    head, mean = L.Conv2D(6, 3, padding="same", activation="relu"), L.GlobalAveragePooling2D()
    levels = [L.Reshape((-1, 6))(head(v)) for v in (a, b, c)]
    spp = L.Concatenate()([L.Flatten()(L.AveragePooling2D(4 // n)(c)) for n in (1, 2, 4)])
    return keras.Model(inputs, {"rows": L.Concatenate(axis=1)(levels), "pooled": L.Dense(3)(spp), "mean": mean(c)}), [{"image": pixels(2, 32, 32, 3)}]


@module("instance_masks")
def masks(tf, m):
    """Prototypes times coefficients, cut to boxes, pasted at full size; regions cropped and classified; areas and unions of masks."""
    weights(tf, m, k=(3, 3, 3, 6), c=(4, 6), r=(1, 1, 6, 3))
    m.boxes = tf.Variable([[0.1, 0.1, 0.6, 0.5], [0.3, 0.2, 0.9, 0.9], [0.0, 0.5, 0.4, 1.0], [0.5, 0.5, 0.5, 0.8]])

    @tf.function(input_signature=[tf.TensorSpec([1, 32, 32, 3], tf.float32, name="image"), tf.TensorSpec([], tf.float32, name="threshold")])
    def serve(image, threshold):
        p = tf.nn.relu(tf.nn.conv2d(image, m.k, 2, "SAME"))
        mask = tf.sigmoid(tf.einsum("hwc,nc->nhw", p[0], tf.tanh(m.c)))
        ys, xs = tf.linspace(0.0, 1.0, 16)[None, :, None], tf.linspace(0.0, 1.0, 16)[None, None]
        y0, x0, y1, x1 = (v[:, :, None] for v in tf.split(m.boxes, 4, 1))
        inside = (ys >= y0) & (ys < y1) & (xs >= x0) & (xs < x1)
        mask = tf.where(inside, mask, tf.zeros_like(mask))
        large = tf.image.resize(mask[..., None], [32, 32])[..., 0]
        solid = large > threshold
        area = tf.reduce_sum(tf.cast(solid, tf.float32), [1, 2])
        flat = tf.reshape(tf.cast(solid, tf.float32), [4, -1])
        common = tf.matmul(flat, flat, transpose_b=True)
        union = area[:, None] + area[None] - common
        regions = tf.image.crop_and_resize(p, m.boxes, tf.zeros([4], tf.int32), [5, 5])
        scores = tf.reduce_max(tf.nn.conv2d(regions, m.r, 1, "VALID"), [1, 2])
        label = tf.where(tf.reduce_any(solid, 0), tf.argmax(tf.cast(solid, tf.int32), 0) + 1, 0)
        return {"masks": solid, "iou": tf.math.divide_no_nan(common, union), "scores": scores, "panoptic": tf.cast(label, tf.uint8), "area": area, "any": tf.reduce_any(solid, [1, 2])}
    return {"serving_default": serve}, [{"image": pixels(1, 32, 32, 3), "threshold": np.float32(0.5)}]


@module("template_tracker")
def tracker(tf, m):
    """A template's features are the filter of the search's; two at once by folding the batch into channels; a penalty, a window, where the peak is."""
    weights(tf, m, k=(3, 3, 3, 4), r=(1, 1, 4, 6), b=(6,))
    window = tf.constant(np.outer(np.hanning(9), np.hanning(9)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([2, 16, 16, 3], tf.float32, name="template"), tf.TensorSpec([2, 32, 32, 3], tf.float32, name="search"), tf.TensorSpec([2, 2], tf.float32, name="size")])
    def serve(template, search, size):
        z, x = (tf.nn.relu(tf.nn.conv2d(v, m.k, 2, "SAME")) for v in (template, search))
        f = tf.reshape(tf.transpose(z, [1, 2, 0, 3]), [8, 8, 8, 1])
        xs = tf.reshape(tf.transpose(x, [1, 2, 0, 3]), [1, 16, 16, 8])
        y = tf.nn.depthwise_conv2d(xs, f, [1, 1, 1, 1], "VALID") / 64.0
        y = tf.transpose(tf.reshape(y, [9, 9, 2, 4]), [2, 0, 1, 3])
        single = tf.nn.conv2d(x[:1], tf.transpose(z[:1], [1, 2, 3, 0]), 1, "VALID")
        head = tf.nn.bias_add(tf.nn.conv2d(y, m.r, 1, "VALID"), m.b)
        score, box = tf.nn.softmax(head[..., :2])[..., 1], tf.exp(0.1 * head[..., 2:])
        change = lambda r: tf.maximum(r, 1.0 / r)
        penalty = tf.exp(-(change(box[..., 2] / size[:, 0, None, None]) * change(box[..., 3] / size[:, 1, None, None]) - 1.0) * 0.05)
        final = 0.7 * penalty * score + 0.3 * window
        best = tf.argmax(tf.reshape(final, [2, 81]), 1)
        where = tf.unravel_index(best[0], [9, 9])
        return {"box": tf.gather(tf.reshape(box, [2, 81, 4]), best, batch_dims=1), "best": best, "where": where, "score": tf.reduce_max(final, [1, 2]), "single": single}
    return {"serving_default": serve}, [{"template": pixels(2, 16, 16, 3), "search": pixels(2, 32, 32, 3, seed=1), "size": np.array([[1.0, 1.2], [0.8, 1.0]], np.float32)}]


@module("stereo_disparity")
def stereo(tf, m):
    """A volume of costs by shifts that are padded, convolutions of three dimensions, the mean disparity, a check of left against right."""
    weights(tf, m, k=(3, 3, 1, 4), v=(3, 3, 3, 8, 4), o=(3, 3, 3, 4, 1))

    @tf.function(input_signature=[tf.TensorSpec([None, 16, 24, 1], tf.float32, name="left"), tf.TensorSpec([None, 16, 24, 1], tf.float32, name="right")])
    def serve(left, right):
        a, b = (tf.nn.leaky_relu(tf.nn.conv2d(v, m.k, 2, "SAME"), 0.1) for v in (left, right))
        shifts = [tf.concat([tf.pad(a[:, :, d:], [[0, 0], [0, 0], [d, 0], [0, 0]]), tf.pad(b[:, :, :12 - d], [[0, 0], [0, 0], [d, 0], [0, 0]])], -1) for d in range(4)]
        volume = tf.nn.relu(tf.nn.conv3d(tf.stack(shifts, 1), m.v, [1] * 5, "SAME"))
        cost = tf.squeeze(tf.nn.conv3d(volume, m.o, [1] * 5, "SAME"), -1)
        p = tf.nn.softmax(-cost, 1)
        low = tf.einsum("bdhw,d->bhw", p, tf.range(4, dtype=tf.float32))
        disparity = tf.image.resize(low[..., None], [16, 24]) * 2.0
        correlation = tf.stack([tf.reduce_mean(a * tf.roll(b, d, 2), -1) for d in range(4)], -1)
        return {"disparity": disparity, "confidence": tf.reduce_max(p, 1), "correlation": correlation, "winner": tf.argmax(correlation, -1, tf.int32), "depth": tf.math.reciprocal_no_nan(disparity)}
    return {"serving_default": serve}, [{"left": pixels(1, 16, 24, 1), "right": pixels(1, 16, 24, 1, seed=2)}]


@stranger("tensorflow", "pictures_in_text")
def in_text(path):
    """Pictures as web safe base64, one by one through a map, cut, turned to other colors; the best three names of each, as a server of labels answers."""
    import tensorflow as tf
    m = tf.Module()
    weights(tf, m, k=(3, 3, 3, 6), w=(6, 5))
    m.names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.range(5, dtype=tf.int64), tf.constant(["ash", "birch", "cedar", "fir", "oak"])), "unknown")

    def one(text):
        image = tf.io.decode_image(tf.io.decode_base64(text), channels=3, expand_animations=False)
        image.set_shape([None, None, 3])
        image = tf.image.central_crop(tf.image.convert_image_dtype(image, tf.float32), 0.875)
        image = tf.image.resize(image, [16, 16], preserve_aspect_ratio=False)
        hue = tf.image.rgb_to_hsv(image)[..., :1]
        image = tf.image.adjust_contrast(tf.image.adjust_brightness(image, 0.1), 1.5)
        return tf.image.per_image_standardization(tf.image.adjust_gamma(tf.clip_by_value(image, 0.0, 1.0), 0.8)) + hue

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image_bytes")])
    def serve(text):
        x = tf.map_fn(one, text, fn_output_signature=tf.TensorSpec([16, 16, 3], tf.float32))
        p = tf.nn.softmax(tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, m.k, 2, "SAME")), [1, 2]) @ m.w)
        values, index = tf.math.top_k(p, 3)
        return {"labels": m.names.lookup(tf.cast(index, tf.int64)), "scores": values, "key": tf.strings.substr(text, 0, 4)}
    tf.saved_model.save(m, str(path), signatures={"serving_default": serve})
    encoded = [base64.urlsafe_b64encode(f(bytes_of(h, w, 3, seed=h)).numpy()).rstrip(b"=") for f, h, w in ((tf.io.encode_png, 20, 24), (tf.io.encode_jpeg, 33, 18), (tf.io.encode_png, 17, 16))]
    return [{"image_bytes": words(*encoded[:2])}, {"image_bytes": words(encoded[2])}]
