"""Vision models as repositories write them in Keras 3 and Keras 2: backbones, detectors, segmentation, keypoints, tracking, enhancement."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of
from library_model_rows.modules import module, normal

pixels = lambda *shape, seed=0: np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)


@keras_model("convnext")
def convnext(tf, keras):
    L = keras.layers

    class Scale(L.Layer):
        def build(self, shape):
            self.gamma = self.add_weight(shape=(shape[-1],), initializer="random_normal", name="gamma")

        def call(self, x):
            return x * self.gamma
    x = inputs = keras.Input([32, 32, 3], name="image")
    x = L.LayerNormalization(epsilon=1e-6)(L.Conv2D(8, 4, 4)(x))
    for dim, blocks in ((8, 2), (16, 1)):
        if x.shape[-1] != dim:
            x = L.Conv2D(dim, 2, 2)(L.LayerNormalization(epsilon=1e-6)(x))
        for _ in range(blocks):
            y = L.DepthwiseConv2D(7, padding="same")(x)
            y = L.Dense(4 * dim, activation="gelu")(L.LayerNormalization(epsilon=1e-6)(y))
            x = L.Add()([x, Scale()(L.Dense(dim)(y))])
    x = L.LayerNormalization(epsilon=1e-6)(L.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, L.Dense(5)(x)), [{"image": pixels(1, 32, 32, 3)}, {"image": pixels(3, 32, 32, 3)}]


@keras_model("mlp_mixer")
def mixer(tf, keras):
    L = keras.layers
    x = inputs = keras.Input([32, 32, 3], name="image")
    x = L.Reshape((16, 12))(L.Conv2D(12, 8, 8)(x))
    for _ in range(2):
        y = L.Permute((2, 1))(L.LayerNormalization()(x))
        y = L.Permute((2, 1))(L.Dense(16)(L.Dense(8, activation="gelu")(y)))
        x = x + y
        x = x + L.Dense(12)(L.Dense(24, activation="gelu")(L.LayerNormalization()(x)))
    return keras.Model(inputs, L.Dense(4, activation="softmax")(L.GlobalAveragePooling1D()(x))), [{"image": pixels(2, 32, 32, 3)}]


@keras_model("swin")
def swin(tf, keras):
    """Windows, shifted and masked, relative positions, merging."""
    L, size, heads, dim = keras.layers, 4, 2, 8

    class Window(L.Layer):
        def __init__(self, shift, resolution):
            super().__init__()
            self.shift, self.resolution, self.norm, self.qkv, self.out = shift, resolution, L.LayerNormalization(), L.Dense(3 * dim), L.Dense(dim)
            grid = np.stack(np.meshgrid(range(size), range(size), indexing="ij"), -1).reshape(-1, 2)
            offset = grid[:, None] - grid[None] + size - 1
            self.index = (offset[..., 0] * (2 * size - 1) + offset[..., 1]).reshape(-1)
            mask = np.zeros((resolution, resolution))
            for i, a in enumerate((slice(0, -size), slice(-size, -shift or None), slice(-shift or resolution, None))):
                for j, b in enumerate((slice(0, -size), slice(-size, -shift or None), slice(-shift or resolution, None))):
                    mask[a, b] = 3 * i + j
            n = resolution // size
            parts = mask.reshape(n, size, n, size).transpose(0, 2, 1, 3).reshape(-1, size * size)
            self.mask = np.where(parts[:, None] != parts[:, :, None], -100.0, 0.0).astype(np.float32)

        def build(self, shape):
            self.table = self.add_weight(shape=((2 * size - 1) ** 2, heads), initializer="random_normal", name="table")

        def call(self, x):
            r, n = self.resolution, self.resolution // size
            y = tf.reshape(self.norm(x), [-1, r, r, dim])
            y = tf.roll(y, [-self.shift, -self.shift], [1, 2]) if self.shift else y
            y = tf.reshape(tf.transpose(tf.reshape(y, [-1, n, size, n, size, dim]), [0, 1, 3, 2, 4, 5]), [-1, size * size, dim])
            q, k, v = tf.unstack(tf.transpose(tf.reshape(self.qkv(y), [-1, size * size, 3, heads, dim // heads]), [2, 0, 3, 1, 4]))
            scores = tf.matmul(q * (dim // heads) ** -0.5, k, transpose_b=True)
            bias = tf.reshape(tf.gather(tf.convert_to_tensor(self.table), self.index), [size * size, size * size, heads])
            scores += tf.transpose(bias, [2, 0, 1])[None]
            if self.shift:
                scores = tf.reshape(tf.reshape(scores, [-1, n * n, heads, size * size, size * size]) + self.mask[None, :, None], [-1, heads, size * size, size * size])
            y = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [-1, size * size, dim])
            y = tf.reshape(tf.transpose(tf.reshape(self.out(y), [-1, n, n, size, size, dim]), [0, 1, 3, 2, 4, 5]), [-1, r, r, dim])
            y = tf.roll(y, [self.shift, self.shift], [1, 2]) if self.shift else y
            return x + tf.reshape(y, [-1, r * r, dim])

    class Merge(L.Layer):
        def call(self, x):
            x = tf.reshape(x, [-1, 8, 8, dim])
            return tf.reshape(tf.concat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1), [-1, 16, 4 * dim])
    inputs = keras.Input([32, 32, 3], name="image")
    x = L.Reshape((64, dim))(L.Conv2D(dim, 4, 4)(inputs))
    for shift in (0, 2):
        x = Window(shift, 8)(x)
        x = x + L.Dense(dim)(L.Dense(16, activation="gelu")(L.LayerNormalization()(x)))
    x = L.Dense(2 * dim, use_bias=False)(L.LayerNormalization()(Merge()(x)))
    return keras.Model(inputs, L.Dense(3)(L.GlobalAveragePooling1D()(x))), [{"image": pixels(2, 32, 32, 3)}]


@keras_model("unet_attention")
def unet(tf, keras):
    L = keras.layers
    inputs = keras.Input([None, None, 1], name="scan")

    def block(x, n):
        for _ in range(2):
            x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(n, 3, padding="same", use_bias=False)(x)))
        return x
    skips, x = [], inputs
    for n in (4, 8):
        x = block(x, n)
        skips.append(x)
        x = L.MaxPooling2D()(x)
    x = block(x, 16)
    for n, skip in zip((8, 4), reversed(skips)):
        x = L.Conv2DTranspose(n, 2, strides=2, padding="same")(x)
        gate = L.Activation("relu")(L.Add()([L.Conv2D(n, 1)(x), L.Conv2D(n, 1)(skip)]))
        x = block(L.Concatenate()([x, L.Multiply()([skip, L.Conv2D(1, 1, activation="sigmoid")(gate)])]), n)
    return keras.Model(inputs, L.Conv2D(2, 1, activation="softmax")(x)), [{"scan": pixels(1, 16, 24, 1)}, {"scan": pixels(2, 8, 8, 1)}]


@keras_model("deeplab_aspp")
def deeplab(tf, keras):
    L = keras.layers
    x = inputs = keras.Input([33, 33, 3], name="image")
    x = low = L.Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    x = L.SeparableConv2D(12, 3, strides=2, padding="same", activation="relu")(x)
    pooled = L.UpSampling2D(9, interpolation="bilinear")(L.Conv2D(6, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(x)))
    parts = [L.Conv2D(6, 1, activation="relu")(x), pooled]
    for rate in (2, 3, 6):
        parts.append(L.BatchNormalization()(L.Conv2D(6, 3, dilation_rate=rate, padding="same", activation="relu")(x)))
        parts.append(L.DepthwiseConv2D(3, dilation_rate=rate, padding="same")(x))
    x = L.Conv2D(8, 1, activation="relu")(L.Concatenate()(parts))
    x = L.Resizing(17, 17)(x)
    x = L.Conv2D(4, 3, padding="same")(L.Concatenate()([x, L.Conv2D(4, 1)(low)]))
    return keras.Model(inputs, L.Softmax()(L.Resizing(33, 33)(x))), [{"image": pixels(2, 33, 33, 3)}]


@keras_model("yolo_nms")
def yolo(tf, keras):
    L, classes, anchors = keras.layers, 3, np.array([[10, 13], [33, 23]], np.float32)

    class Decode(L.Layer):
        def __init__(self, stride):
            super().__init__()
            self.stride = stride

        def call(self, x):
            h, w = x.shape[1], x.shape[2]
            x = tf.reshape(x, [-1, h, w, 2, 5 + classes])
            grid = tf.cast(tf.stack(tf.meshgrid(tf.range(w), tf.range(h)), -1), tf.float32)[None, :, :, None]
            xy = (tf.sigmoid(x[..., :2]) * 2 - 0.5 + grid) * self.stride
            wh = (tf.sigmoid(x[..., 2:4]) * 2) ** 2 * anchors
            boxes = tf.concat([xy - wh / 2, xy + wh / 2], -1) / 64.0
            scores = tf.sigmoid(x[..., 4:5]) * tf.sigmoid(x[..., 5:])
            return tf.concat([tf.reshape(boxes, [-1, h * w * 2, 4]), tf.reshape(scores, [-1, h * w * 2, classes])], -1)

    class Suppress(L.Layer):
        def call(self, x):
            kept = tf.image.combined_non_max_suppression(tf.gather(x[:, :, None, :4], [1, 0, 3, 2], axis=-1), x[..., 4:], 5, 10, 0.5, 0.05)
            return {"boxes": kept.nmsed_boxes, "scores": kept.nmsed_scores, "classes": kept.nmsed_classes, "count": kept.valid_detections}
    inputs = keras.Input([64, 64, 3], name="image")
    swish = lambda v: L.Activation("swish")(v)
    focus = layer_of(keras, lambda v: tf.concat([v[:, ::2, ::2], v[:, 1::2, ::2], v[:, ::2, 1::2], v[:, 1::2, 1::2]], -1))(inputs)
    x = swish(L.BatchNormalization()(L.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(focus)))
    a = swish(L.BatchNormalization()(L.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)))
    pools = [a]
    for _ in range(3):
        pools.append(L.MaxPooling2D(5, 1, padding="same")(pools[-1]))
    a = L.Conv2D(8, 1)(L.Concatenate()(pools))
    up = L.Concatenate()([L.UpSampling2D(2)(a), x])
    heads = [Decode(s)(L.Conv2D(2 * (5 + classes), 1)(v)) for v, s in ((up, 4), (a, 8))]
    return keras.Model(inputs, Suppress()(L.Concatenate(axis=1)(heads))), [{"image": pixels(1, 64, 64, 3)}, {"image": pixels(2, 64, 64, 3, seed=2)}]


@keras_model("ssd_priors")
def ssd(tf, keras):
    L = keras.layers
    priors = np.random.default_rng(3).uniform(0.2, 0.8, (48, 4)).astype(np.float32)

    class Boxes(L.Layer):
        def call(self, deltas):
            cy, cx, h, w = tf.split(deltas * tf.constant([0.1, 0.1, 0.2, 0.2]), 4, -1)
            py, px, ph, pw = np.split(priors, 4, -1)
            cy, cx, h, w = cy * ph + py, cx * pw + px, tf.exp(h) * ph, tf.exp(w) * pw
            return tf.clip_by_value(tf.concat([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2], -1), 0, 1)

    class Best(L.Layer):
        def call(self, values):
            boxes, scores = values
            best = tf.reduce_max(scores[..., 1:], -1)

            def one(args):
                b, s = args
                kept, n = tf.image.non_max_suppression_padded(b, s, 6, 0.5, 0.1, pad_to_max_output_size=True)
                return tf.gather(b, kept), tf.gather(s, kept), n
            b, s, n = tf.map_fn(one, (boxes, best), fn_output_signature=(tf.float32, tf.float32, tf.int32))
            return {"boxes": b, "scores": s, "count": n}
    inputs = keras.Input([32, 32, 3], name="image")
    x = L.Conv2D(8, 3, strides=2, padding="same", activation="relu6")(inputs) if not hasattr(keras, "ops") else L.ReLU(6.0)(L.Conv2D(8, 3, strides=2, padding="same")(inputs))
    x = L.Conv2D(12, 3, strides=4, padding="same", activation="relu")(x)
    boxes = Boxes()(L.Reshape((48, 4))(L.Conv2D(12, 1)(x)))
    scores = L.Softmax()(L.Reshape((48, 4))(L.Conv2D(12, 1)(x)))
    return keras.Model(inputs, Best()([boxes, scores])), [{"image": pixels(1, 32, 32, 3)}, {"image": pixels(2, 32, 32, 3)}]


@keras_model("center_net")
def center(tf, keras):
    """Peaks of a heat map, their offsets gathered, keypoints by soft argmax."""
    L = keras.layers

    class Peaks(L.Layer):
        def call(self, values):
            heat, offset = values
            peak = tf.nn.max_pool2d(heat, 3, 1, "SAME")
            heat = tf.where(tf.equal(peak, heat), heat, tf.zeros_like(heat))
            flat = tf.reshape(heat, [tf.shape(heat)[0], -1])
            scores, index = tf.math.top_k(flat, 4)
            classes, cells = index % 2, index // 2
            y, x = cells // 8, cells % 8
            moved = tf.gather(tf.reshape(offset, [-1, 64, 2]), cells, batch_dims=1)
            soft = tf.nn.softmax(flat)
            return {"scores": scores, "classes": classes, "points": tf.cast(tf.stack([y, x], -1), tf.float32) + moved, "mean": tf.reduce_sum(soft * tf.range(128.0), -1)}
    inputs = keras.Input([32, 32, 3], name="image")
    x = L.Conv2D(8, 3, strides=4, padding="same", activation="elu")(inputs)
    x = L.Activation("hard_sigmoid")(L.GroupNormalization(groups=2)(x)) if hasattr(L, "GroupNormalization") else x
    return keras.Model(inputs, Peaks()([L.Conv2D(2, 1, activation="sigmoid")(x), L.Conv2D(2, 1)(x)])), [{"image": pixels(2, 32, 32, 3)}]


@keras_model("super_resolution")
def enhance(tf, keras):
    L = keras.layers
    inputs = keras.Input([None, None, 3], name="small")
    x = first = L.PReLU(shared_axes=[1, 2])(L.Conv2D(16, 9, padding="same")(inputs))
    for _ in range(2):
        y = L.PReLU(shared_axes=[1, 2])(L.BatchNormalization()(L.Conv2D(16, 3, padding="same")(x)))
        gate = L.Dense(16, activation="sigmoid")(L.Dense(4, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(y)))
        x = L.Add()([x, L.Multiply()([y, gate])])
    x = L.Add()([x, first])
    x = layer_of(keras, lambda v: tf.nn.depth_to_space(v, 2))(x)
    x = L.Conv2D(3, 3, padding="same", activation="tanh")(x)
    x = layer_of(keras, lambda v: tf.clip_by_value((v + 1) * 127.5, 0, 255))(x)
    return keras.Model(inputs, x), [{"small": pixels(1, 8, 8, 3)}, {"small": pixels(1, 6, 10, 3)}]


@keras_model("ghost_shuffle")
def mobile(tf, keras):
    """Ghost modules, shuffled channels, grouped convolutions, blur pools, hard swish."""
    L = keras.layers
    inputs = keras.Input([32, 32, 3], name="image")
    hard = lambda v: v * L.ReLU(6.0)(v + 3.0) * (1.0 / 6.0)
    x = hard(L.BatchNormalization()(L.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(L.ZeroPadding2D(((0, 1), (0, 1)))(inputs))))
    x = L.Concatenate()([x, L.DepthwiseConv2D(3, padding="same")(x)])
    x = L.Conv2D(16, 3, groups=4, padding="same")(x)
    x = layer_of(keras, lambda v: tf.reshape(tf.transpose(tf.reshape(v, [-1, v.shape[1], v.shape[2], 4, 4]), [0, 1, 2, 4, 3]), [-1, v.shape[1], v.shape[2], 16]))(x)
    blur = (np.outer([1, 2, 1], [1, 2, 1]) / 16).astype(np.float32)[:, :, None, None].repeat(16, 2)
    x = layer_of(keras, lambda v: tf.nn.depthwise_conv2d(tf.pad(v, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), blur, [1, 2, 2, 1], "VALID"))(x)
    a, b = layer_of(keras, lambda v: tf.split(v, 2, -1))(x)
    x = L.Maximum()([a, b]) * L.Activation("softplus")(a) + L.Minimum()([a, b])
    x = L.AveragePooling2D(3, 2, padding="same")(x)
    return keras.Model(inputs, L.Dense(3)(L.GlobalMaxPooling2D()(x))), [{"image": pixels(2, 32, 32, 3)}]


@keras_model("video_3d")
def video(tf, keras):
    L = keras.layers
    x = inputs = keras.Input([6, 16, 16, 3], name="clip")
    x = L.Conv3D(4, (1, 3, 3), padding="same", activation="relu")(x)
    x = L.Conv3D(4, (3, 1, 1), padding="same")(x)
    x = L.MaxPooling3D((1, 2, 2))(x)
    x = L.AveragePooling3D(2)(x)
    y = L.Conv3DTranspose(2, 3, strides=2, padding="same")(x)
    frames = L.TimeDistributed(L.GlobalAveragePooling2D())(y)
    return keras.Model(inputs, [L.GRU(4)(frames), L.GlobalMaxPooling3D()(y)]), [{"clip": pixels(1, 6, 16, 16, 3)}]


@module("vision_preprocessing")
def preprocess(tf, m):
    """Bytes in, a label out, as serving signatures do it."""
    m.w = tf.Variable(normal(3 * 16, 4))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="bytes")])
    def serve(bytes):
        def one(b):
            x = tf.image.convert_image_dtype(tf.io.decode_jpeg(b, channels=3), tf.float32)
            x = tf.image.resize(tf.image.central_crop(x, 0.75), [6, 6], antialias=True)
            return tf.image.resize_with_crop_or_pad((x - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], 4, 4)
        x = tf.map_fn(one, bytes, fn_output_signature=tf.TensorSpec([4, 4, 3], tf.float32))
        return {"p": tf.nn.softmax(tf.reshape(x, [-1, 48]) @ m.w)}

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.uint8, name="image")])
    def array(image):
        x = tf.image.resize(tf.cast(image, tf.float32) / 255.0, [4, 4], method="nearest")
        y = tf.image.resize(image, [4, 4], method="bicubic")
        z = tf.image.resize(tf.image.flip_left_right(image), [4, 4], method="area")
        return {"p": tf.nn.softmax(tf.reshape(x, [-1, 48]) @ m.w), "y": y, "z": z}

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.uint8, name="image")])
    def single(image):
        x = tf.image.resize(image[None], [8, 8])
        x = tf.keras.applications.imagenet_utils.preprocess_input(x, mode="caffe") if False else x[..., ::-1] - tf.constant([103.939, 116.779, 123.68])
        box = tf.image.crop_and_resize(x, [[0.0, 0.0, 0.5, 0.5], [0.1, 0.2, 0.9, 1.0]], [0, 0], [4, 4])
        return {"p": tf.reshape(box, [-1, 48]) @ m.w, "gray": tf.image.rgb_to_grayscale(x), "mean": tf.image.per_image_standardization(x)}
    picture = np.random.default_rng(1).integers(0, 255, (2, 10, 12, 3)).astype(np.uint8)
    files = np.array([tf.io.encode_jpeg(p).numpy() for p in picture], object)
    return {"serving_default": serve, "array": array, "single": single}, {"serving_default": [{"bytes": files}], "array": [{"image": picture}], "single": [{"image": picture[0]}]}


@module("vision_optical_flow")
def flow(tf, m):
    """Cost volumes, warps by gather_nd and bilinear weights, a pyramid."""
    m.k = tf.Variable(normal(3, 3, 9, 2) * 0.1)

    def warp(x, field):
        b, h, w = tf.shape(x)[0], tf.shape(x)[1], tf.shape(x)[2]
        ys, xs = tf.meshgrid(tf.range(h), tf.range(w), indexing="ij")
        y, z = tf.cast(ys, tf.float32) + field[..., 0], tf.cast(xs, tf.float32) + field[..., 1]
        y0, z0 = tf.floor(y), tf.floor(z)
        out = 0.0
        for dy in (0, 1):
            for dz in (0, 1):
                yi = tf.clip_by_value(tf.cast(y0, tf.int32) + dy, 0, h - 1)
                zi = tf.clip_by_value(tf.cast(z0, tf.int32) + dz, 0, w - 1)
                weight = (1 - tf.abs(y - y0 - dy)) * (1 - tf.abs(z - z0 - dz))
                index = tf.stack([tf.broadcast_to(tf.range(b)[:, None, None], tf.shape(yi)), yi, zi], -1)
                out += tf.gather_nd(x, index) * weight[..., None]
        return out

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3], tf.float32, name="a"), tf.TensorSpec([None, 8, 8, 3], tf.float32, name="b")])
    def serve(a, b):
        field = tf.zeros_like(a[:, ::2, ::2, :2])
        for level in (2, 1):
            x, y = tf.nn.avg_pool2d(a, level, level, "SAME"), tf.nn.avg_pool2d(b, level, level, "SAME")
            if level == 1:
                field = tf.image.resize(field, [8, 8]) * 2.0
            y = warp(y, field)
            padded = tf.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]])
            n = x.shape[1]
            cost = tf.stack([tf.reduce_mean(x * padded[:, i:i + n, j:j + n], -1) for i in range(3) for j in range(3)], -1)
            field += tf.nn.conv2d(tf.nn.leaky_relu(cost, 0.1), m.k, 1, "SAME")
        return {"flow": field}
    return {"serving_default": serve}, [{"a": pixels(2, 8, 8, 3), "b": pixels(2, 8, 8, 3, seed=1)}]


@module("vision_roi_align")
def roi(tf, m):
    """The second stage of Faster R-CNN: proposals decoded, clipped, suppressed, cropped, classified."""
    m.w, m.c = tf.Variable(normal(4 * 4 * 5, 7) * 0.2), tf.Variable(normal(3, 3, 3, 5) * 0.3)

    @tf.function(input_signature=[tf.TensorSpec([1, 16, 16, 3], tf.float32, name="image"), tf.TensorSpec([20, 4], tf.float32, name="deltas"), tf.TensorSpec([20], tf.float32, name="scores")])
    def serve(image, deltas, scores):
        features = tf.nn.relu(tf.nn.conv2d(image, m.c, 1, [[0, 0], [1, 1], [1, 1], [0, 0]]))
        boxes = tf.concat([tf.minimum(deltas[:, :2], deltas[:, 2:]), tf.maximum(deltas[:, :2], deltas[:, 2:])], 1)
        boxes = tf.clip_by_value(boxes, 0, 1)
        area = tf.reduce_prod(boxes[:, 2:] - boxes[:, :2], 1)
        scores = tf.where(area > 0.01, scores, -1.0)
        order = tf.argsort(scores, direction="DESCENDING")[:10]
        boxes, scores = tf.gather(boxes, order), tf.gather(scores, order)
        kept = tf.image.non_max_suppression(boxes, scores, 4, 0.6)
        boxes = tf.gather(boxes, kept)
        crops = tf.image.crop_and_resize(features, boxes, tf.zeros([tf.shape(boxes)[0]], tf.int32), [8, 8])
        x = tf.reshape(tf.nn.max_pool2d(crops, 2, 2, "VALID"), [-1, 80])
        logits = x @ m.w
        return {"boxes": boxes, "logits": logits, "classes": tf.argmax(logits, 1, tf.int32), "soft": tf.image.non_max_suppression_with_scores(boxes, tf.reduce_max(tf.sigmoid(logits), 1), 3, 0.9, 0.0, 0.5)[1]}
    corners = np.random.default_rng(2).uniform(0, 1, (20, 4)).astype(np.float32)
    return {"serving_default": serve}, [{"image": pixels(1, 16, 16, 3), "deltas": corners, "scores": normal(20)}]
