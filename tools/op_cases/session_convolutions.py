"""Convolutions and reductions in programs: windows of all kinds, tiles, paddings in front, what follows, and NaN and infinity in all of them."""
from op_cases import *
from op_cases.session_fusions import ACTIVATIONS, numbers, ph

FOLDER = "sessions"


def waves(shape, step):
    """Numbers that the graph makes itself: files hold small tensors alone."""
    return tf.cos(tf.reshape(tf.range(int(np.prod(shape)), dtype=tf.float32), shape) * step)


def told(t):
    """A few numbers that tell of all of t. Of one sign, so that sums lose nothing."""
    t = tf.square(t + 1.5)
    return [tf.reduce_sum(t * (2.0 + waves(t.shape[1:], 0.3)), list(range(len(t.shape) - 1))), tf.reduce_sum(t, [0, len(t.shape) - 1])]


def image(size, depth):
    """Images of waves, the last pixel that of `corner`; how many there are is fed too."""
    corner, images = ph([depth]), ph([None] + [1] * (len(size) + 1))
    one = tf.reshape(corner, [1] * (len(size) + 1) + [depth])
    pads = [[0, 0]] + [[s - 1, 0] for s in size] + [[0, 0]]
    return tf.pad(one, pads) + waves([1, *size, depth], 0.7) + images, corner, images


def feeds(r, corner, images):
    depth, ones = corner.shape[0], [1] * (len(images.shape) - 1)
    special = numbers(r, depth)
    special[0], special[-1] = np.nan, np.inf
    return [{corner: v, images: numbers(r, n, *ones)} for v, n in ((numbers(r, depth), 2), (special, 1), (special, 0))]


def windows(r):
    # (height, width), window, strides, dilations, padding, channels
    layers = [
        ((9, 21), (3, 3), 1, 1, "SAME", 17), ((9, 21), (3, 3), 1, 1, "VALID", 16), ((8, 20), (3, 3), 2, 1, "SAME", 17), ((7, 7), (5, 5), 1, 1, "SAME", 20),
        ((9, 21), (5, 5), 2, 1, "SAME", 17), ((12, 13), (3, 3), 3, 1, "SAME", 16), ((9, 14), (3, 3), 1, 2, "SAME", 17), ((9, 14), (2, 4), 1, 3, "SAME", 16), ((2, 2), (5, 5), 1, 1, "SAME", 33),
        ((6, 19), (3, 3), 1, 1, [[0, 0], [2, 0], [3, 1], [0, 0]], 17), ((1, 30), (1, 9), 1, 1, "SAME", 16), ((5, 6), (3, 3), 1, 1, "SAME", 3), ((5, 6), (3, 3), 2, 1, "SAME", 8),
        ((4, 3), (3, 3), 2, 1, "SAME", 100), ((3, 3), (1, 1), 1, 1, "SAME", 18), ((2, 40), (3, 3), 1, 1, "SAME", 17),
    ]
    for i, ((h, w), (kh, kw), stride, dilation, padding, depth) in enumerate(layers):

        def build(h=h, w=w, kh=kh, kw=kw, stride=stride, dilation=dilation, padding=padding, depth=depth):
            x, corner, images = image([h, w], depth)

            def layer(step):
                return tf.nn.depthwise_conv2d(x, waves([kh, kw, depth, 1], step), [1, stride, stride, 1], padding, dilations=[dilation, dilation])

            fetch = told(layer(1.3)) + told(tf.nn.relu6(layer(0.9) + waves([depth], 2.1)))
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("DepthwiseConv2dNative", build, name=f"window_{i}")

    def multiplied():
        x = ph([1, 3, 2, 16])
        return [Step(fetch=[tf.nn.depthwise_conv2d(x, waves([3, 3, 16, 2], 1.3), [1, 1, 1, 1], "SAME")], feed={x: numbers(r, 1, 3, 2, 16)})]

    yield graph_case("DepthwiseConv2dNative", multiplied, name="two_results_for_each_channel")


def tiles(r):
    # Size, depth, channels, stride.
    layers = [((7, 7), 48, 50, 1), ((1, 1), 64, 65, 1), ((3, 3), 64, 96, 2), ((3, 13), 49, 48, 1), ((1, 2), 70, 113, 1), ((5, 1), 50, 81, 1), ((2, 2, 3), 52, 49, 1), ((3, 2, 3), 49, 60, 2)]
    for i, (size, depth, channels, stride) in enumerate(layers):

        def build(size=size, depth=depth, channels=channels, stride=stride):
            x, corner, images = image(size, depth)
            layer = tf.nn.conv2d if len(size) == 2 else tf.nn.conv3d
            steps = stride if len(size) == 2 else [1] + [stride] * 3 + [1]

            def of(step):
                return layer(x, waves([1] * len(size) + [depth, channels], step) * 0.2, steps, "VALID")

            rest = of(0.4)
            fetch = told(of(1.3)) + told(tf.nn.relu(tf.nn.bias_add(of(0.9), waves([channels], 2.1)) + rest)) + told(tf.sigmoid(of(0.9)) * rest)
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("Conv2D" if len(size) == 2 else "Conv3D", build, name=f"tile_{i}")


def streamed(r):
    # Size, window, strides, dilations, padding, depth of the image and how often it stands there, channels: more than a megabyte of weights, few pixels.
    layers = [
        ((7, 7), (3, 3), 1, 1, "SAME", 200, 1, 230), ((9, 9), (3, 3), 2, 1, "SAME", 150, 1, 200), ((4, 5), (5, 5), 1, 1, "SAME", 101, 1, 113), ((4, 6), (3, 3), 1, 2, "SAME", 171, 1, 190),
        ((4, 5), (1, 1), 1, 1, "VALID", 223, 5, 239), ((7, 9), (1, 1), 2, 1, "VALID", 275, 4, 256), ((3, 3, 3), (2, 2, 2), 1, 1, "SAME", 190, 1, 200), ((6, 6), (7, 7), 1, 1, "SAME", 71, 1, 83),
        ((5, 9), (2, 4), 1, 1, "VALID", 190, 1, 192), ((1, 40), (1, 5), 2, 1, "SAME", 256, 1, 257), ((4, 4), (9, 9), 1, 1, "SAME", 65, 1, 64),
    ]
    for i, (size, window, stride, dilation, padding, depth, times, channels) in enumerate(layers):

        def build(size=size, window=window, stride=stride, dilation=dilation, padding=padding, depth=depth, times=times, channels=channels):
            x, corner, images = image(size, depth)
            x = tf.concat([x * (i + 1.0) for i in range(times)], -1) if times > 1 else x
            layer = tf.nn.conv2d if len(size) == 2 else tf.nn.conv3d

            def of(step):
                each = [1] * (len(size) + 2) if stride == 1 else [1] + [stride] * len(size) + [1]
                by = [1] + [dilation] * len(size) + [1]
                return layer(x, waves([*window, depth * times, channels], step) * 0.1, each, padding, dilations=by)

            rest = of(0.4)
            fetch = told(of(1.3)) + told(tf.nn.relu(tf.nn.bias_add(of(0.9), waves([channels], 2.1)) + rest)) + told(tf.sigmoid(of(0.9)))
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("Conv2D" if len(size) == 2 else "Conv3D", build, name=f"streamed_{i}")


def followed(r):
    for name, act in {**ACTIVATIONS, "hard_swish_divided": lambda x: x * (tf.nn.relu6(x + 3.0) / 6.0)}.items():

        def build(act=act):
            x, rest = ph([None, 2, 4, 16]), ph([None, 2, 4, 16])
            window = numbers(r, 3, 3, 16, 1)
            y = tf.nn.conv2d(x, numbers(r, 1, 1, 16, 16) * 0.3, 1, "SAME")
            z = act(tf.nn.bias_add(tf.nn.depthwise_conv2d(x, window, [1, 1, 1, 1], "SAME"), numbers(r, 16)))
            deep = act(tf.nn.conv2d(tf.tile(x, [1, 1, 1, 3]), waves([1, 1, 48, 48], 0.9) * 0.3, 1, "VALID") + tf.tile(rest, [1, 1, 1, 3]))
            fetch = [act(tf.nn.bias_add(y, numbers(r, 16))) + rest, z, act(tf.nn.depthwise_conv2d(x, window, [1, 2, 2, 1], "SAME") * 0.5), deep[..., 5:9]]
            value = numbers(r, 2, 2, 4, 16)
            special = value.copy()
            special[0, 0, 0, 0], special[1, -1, -1, -1] = np.nan, 30.0
            return [Step(fetch=fetch, feed={x: v, rest: numbers(r, len(v), 2, 4, 16)}) for v in (value, special, value[:0])]

        yield graph_case("Conv2D", build, name=f"then_{name}")


def clamps(r):
    """NaN where the library computes: a window of several pixels, and products that are large."""
    for name, act in (("relu", tf.nn.relu), ("relu6", tf.nn.relu6)):

        def windows_of(act=act):
            x, corner, images = image([3, 4], 8)
            rest = ph([None, 3, 4, 8])
            y = act(tf.nn.bias_add(tf.nn.conv2d(x, waves([3, 3, 8, 8], 1.3), 1, "SAME"), waves([8], 0.4)))
            z = act(tf.nn.conv2d(x, waves([3, 3, 8, 8], 0.9), 1, "SAME") + rest)
            steps = []
            for f in feeds(r, corner, images):
                n = len(f[images])
                more = numbers(r, n, 3, 4, 8)
                steps.append({**f, rest: more})
                if n == 2:
                    special = more.copy()
                    special[0, 1, 1, 1], special[1, 2, 2, 2], special[1, 2, 2, 3] = np.nan, -np.inf, np.inf
                    steps.append({**f, rest: special})
            return [Step(fetch=told(y) + told(z), feed=f) for f in steps]

        yield graph_case("Conv2D", windows_of, name=f"keeps_nan_{name}")

        def products(act=act):
            corner, rest = ph([3]), ph([])
            x = tf.pad(tf.reshape(corner, [1, 3]), [[40, 0], [0, 61]]) + waves([41, 64], 0.7)
            w = waves([64, 80], 1.3)
            y = act(tf.nn.bias_add(tf.matmul(x, w), waves([80], 0.4)))
            z = act(tf.matmul(x, w + rest) + (waves([41, 80], 0.2) + rest))
            values = [(numbers(r, 3), 0.5), (np.array([np.nan, 1, 2], np.float32), 0.5), (np.array([np.inf, 1, 2], np.float32), -0.5), (numbers(r, 3), np.nan)]
            return [Step(fetch=[tf.reduce_sum(tf.square(t), a) for t in (y, z) for a in (0, 1)], feed={corner: c, rest: np.float32(v)}) for c, v in values]

        yield graph_case("MatMul", products, name=f"keeps_nan_{name}")


def paddings(r):
    pads = {"around": [[0, 0], [1, 1], [1, 1], [0, 0]], "behind": [[0, 0], [0, 1], [0, 1], [0, 0]], "uneven": [[0, 0], [2, 0], [0, 3], [0, 0]], "of_channels": [[0, 0], [1, 1], [1, 1], [0, 16]],
            "of_images": [[1, 0], [1, 1], [1, 1], [0, 0]]}
    for name, pad in pads.items():

        def build(pad=pad):
            x, corner, images = image([6, 7], 16)
            padded = tf.pad(x, pad)
            depth = padded.shape[-1]
            fetch = told(tf.nn.relu6(tf.nn.depthwise_conv2d(padded, waves([3, 3, depth, 1], 1.3), [1, 2, 2, 1], "VALID")))
            # Two read it.
            both = tf.pad(x * 2.0, pad)
            fetch += told(tf.nn.conv2d(both, waves([3, 3, depth, 5], 0.9), 1, "VALID")) + told(tf.nn.conv2d(both, waves([1, 1, depth, 50], 0.3), 2, "VALID"))
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("Pad", build, name=f"before_windows_{name}")

    def others():
        x, corner, images = image([6, 7], 16)
        pad = pads["uneven"]
        window = waves([3, 3, 16, 4], 0.9)
        ones = tf.nn.conv2d(R_pad(x, pad, 1.0), window, 1, "VALID")
        zeros = tf.nn.conv2d(R_pad(x, pad, 0.0), window, 1, "VALID")
        same = tf.nn.conv2d(tf.pad(x, pad), window, 2, "SAME")
        explicit = tf.nn.conv2d(tf.pad(x, pad), window, 1, [[0, 0], [1, 0], [0, 2], [0, 0]])
        kept = tf.pad(x, pad)
        return [Step(fetch=told(ones) + told(zeros) + told(same) + told(explicit) + told(tf.nn.conv2d(kept, window, 1, "VALID")) + told(kept * 2.0), feed=f) for f in feeds(r, corner, images)]

    yield graph_case("PadV2", others, name="before_windows")

    def planes():
        x, corner, images = image([3, 4, 2], 5)
        padded = tf.pad(x, [[0, 0], [1, 0], [0, 2], [1, 1], [0, 0]])
        return [Step(fetch=told(tf.nn.conv3d(padded, waves([2, 2, 3, 5, 6], 1.3), [1, 1, 2, 1, 1], "VALID")), feed=f) for f in feeds(r, corner, images)]

    yield graph_case("Pad", planes, name="before_windows_of_planes")


def R_pad(x, pad, value):
    return tf.raw_ops.PadV2(input=x, paddings=pad, constant_values=value)


def reductions(r):
    axes = {"images": [0], "pixels": [1, 2], "rows": [1], "all_but_rows": [0, 2, 3], "channels": [3], "all": [0, 1, 2, 3], "first_two": [0, 1], "none": []}
    for name, axis in axes.items():
        for depth in (1, 3, 16, 37, 150):

            def build(axis=axis, depth=depth):
                x, corner, images = image([5, 7], depth)
                fetch = [f(tf.square(x) + 1.0, axis, keepdims=keep) for f, keep in ((tf.reduce_mean, True), (tf.reduce_sum, False), (tf.reduce_max, False), (tf.reduce_min, True))]
                fetch = [t if name != "none" and (t.shape.num_elements() or 999) < 200 else tf.reduce_sum(t, -1) for t in fetch]
                return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)[: 2 if 0 in axis else 3]]

            if depth in (3, 37) or name in ("images", "pixels", "all_but_rows"):
                yield graph_case("Mean", build, name=f"over_{name}_{depth}")

    def long():
        x = waves([1, 700, 20], 0.7) + ph([])
        one = tf.compat.v1.get_default_graph().get_operations()
        feed = [o.outputs[0] for o in one if o.type == "Placeholder"][0]
        return [Step(fetch=[tf.reduce_mean(x, 1), tf.reduce_max(x, [0, 1]), tf.reduce_min(x, 1)], feed={feed: v}) for v in (np.float32(2), np.float32(np.nan))]

    yield graph_case("Mean", long, name="over_many_rows")


def scaled(r):
    def planes():
        x, corner, images = image([4, 6, 8], 3)
        y = tf.nn.conv3d(x, waves([3, 3, 3, 3, 16], 1.3), [1] * 5, "SAME")
        y = waves([1, 1, 16], 0.3) * y + waves([16], 0.8)
        return [Step(fetch=told(tf.nn.relu(tf.nn.max_pool3d(y, 2, 2, "SAME"))), feed=f) for f in feeds(r, corner, images)[::2]]

    yield graph_case("Conv3D", planes, name="scaled")

    def others():
        x, corner, images = image([5, 6], 16)
        two = tf.nn.depthwise_conv2d(x, waves([3, 3, 16, 2], 1.3), [1, 1, 1, 1], "SAME") * waves([32], 0.3)
        deep = tf.nn.relu6(tf.nn.conv2d(x, waves([1, 1, 16, 60], 0.9), 1, "VALID") * waves([60], 0.3) + waves([60], 0.7))
        biased = tf.nn.bias_add(tf.nn.conv2d(x, waves([1, 1, 16, 5], 0.9), 1, "VALID"), waves([5], 0.2)) * waves([5], 0.3)
        by_row = tf.nn.conv2d(x, waves([1, 1, 16, 6], 0.9), 1, "VALID") * waves([6, 1], 0.3)
        by_one = tf.nn.conv2d(x, waves([1, 1, 16, 6], 0.4), 1, "VALID") * 1.5
        kept = tf.nn.conv2d(x, waves([1, 1, 16, 6], 0.6), 1, "VALID")
        return [Step(fetch=sum((told(t) for t in (two, deep, biased, by_row, by_one, kept, kept * waves([6], 0.3))), []), feed=f) for f in feeds(r, corner, images)]

    yield graph_case("Conv2D", others, name="scaled")


def padded_maxima(r):
    # Size, channels, paddings of the image, window, strides, padding of the pool.
    layers = [
        ((24, 23), 16, [(1, 1), (1, 1)], (3, 3), (2, 2), "VALID"), ((15, 16), 17, [(1, 0), (0, 2)], (2, 3), (1, 1), "VALID"), ((5, 6), 3, [(1, 1), (1, 1)], (3, 3), (2, 2), "VALID"), ((2, 2), 5, [(1, 2), (2, 1)], (3, 3), (1, 1), "VALID"),
        ((20, 21), 16, [(1, 1), (1, 1)], (3, 3), (2, 2), "SAME"), ((20, 21), 20, [(3, 1), (0, 1)], (3, 3), (2, 2), "VALID"), ((7, 6, 8), 16, [(1, 1), (0, 1), (1, 0)], (3, 2, 2), (2, 1, 1), "VALID"),
        ((30, 31), 20, [(0, 2), (0, 2)], (3, 3), (3, 3), "VALID"),
    ]
    for i, (size, depth, pads, window, strides, padding) in enumerate(layers):

        def build(size=size, depth=depth, pads=pads, window=window, strides=strides, padding=padding):
            x, corner, images = image(size, depth)
            padded = [tf.pad(x * s - 0.5, [(0, 0), *pads, (0, 0)]) for s in (1.0, 0.2)]
            fetch = told(tf.nn.max_pool(padded[0], window, strides, padding)) + told(tf.nn.max_pool(padded[1], window, strides, padding))
            if len(size) == 2:
                fetch += told(tf.nn.avg_pool(padded[0] * 0.9, window, strides, padding))
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("MaxPool" if len(size) == 2 else "MaxPool3D", build, name=f"padded_{i}")


def dilated(r):
    # Size, channels, window, blocks, paddings, crops: as TensorFlow spells convolutions whose taps stand apart.
    layers = [
        ((13,), 16, (3,), (2,), [(4, 1)], [(0, 1)]), ((40,), 32, (2,), (8,), [(8, 0)], [(0, 0)]), ((9,), 5, (2,), (3,), [(1, 2)], [(1, 0)]),
        ((7, 6), 16, (3, 3), (2, 3), [(2, 3), (3, 3)], [(0, 1), (0, 0)]), ((8, 9), 8, (3, 2), (1, 3), [(0, 0), (3, 0)], [(0, 0), (0, 0)]), ((6, 8), 32, (2, 2), (2, 2), [(2, 0), (0, 2)], [(0, 0), (0, 2)]),
        ((4, 6, 4), 8, (2, 2, 2), (2, 1, 2), [(2, 0), (0, 0), (1, 1)], [(0, 0), (0, 0), (1, 1)]),
    ]
    for i, (size, depth, window, blocks, pads, crops) in enumerate(layers):

        def build(size=size, depth=depth, window=window, blocks=blocks, pads=pads, crops=crops):
            x, corner, images = image(size, depth)
            line = len(size) == 1
            spread = tf.raw_ops.SpaceToBatchND(input=x, block_shape=blocks, paddings=pads)

            def layer(step, channels, depthwise=False, padding="VALID"):
                y = tf.expand_dims(spread, 1) if line else spread
                w = waves([*([1] if line else []), *window, depth, 1 if depthwise else channels], step)
                conv = tf.nn.depthwise_conv2d if depthwise else tf.nn.conv3d if len(size) == 3 else tf.nn.conv2d
                y = conv(y, w, [1] * (5 if len(size) == 3 else 4), padding)
                y = tf.squeeze(y, 1) if line else y
                return tf.raw_ops.BatchToSpaceND(input=y, block_shape=blocks, crops=crops)

            y = layer(1.3, 16) + waves([16], 0.8)
            fetch = told(tf.nn.relu(y)) + told(tf.nn.tanh(tf.nn.bias_add(layer(0.7, 7), waves([7], 0.2))) * 0.5)
            if len(size) < 3:
                fetch += told(layer(0.4, depth, depthwise=True)) + told(layer(0.9, 3, padding="SAME"))
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("SpaceToBatchND", build, name=f"dilates_{i}")


def far_padded(r):
    # Windows that see padding alone, then a bias twice.
    for size, depth, channels in (((5, 1, 5), 2, 3), ((1, 6), 3, 16)):

        def build(size=size, depth=depth, channels=channels):
            x, corner, images = image(size, depth)
            x = tf.pad(x, [(0, 0)] * (len(size) - 1) + [(4, 1), (0, 0), (0, 0)])
            conv = tf.nn.conv3d if len(size) == 3 else tf.nn.conv2d
            y = conv(x, waves([1] * (len(size) - 1) + [3, depth, channels], 1.3), [1] * (len(size) + 2), "VALID")
            y = tf.nn.bias_add(tf.nn.bias_add(y, waves([channels], 0.8)), waves([channels], 0.3))
            return [Step(fetch=told(y), feed=f) for f in feeds(r, corner, images)]

        yield graph_case("Conv3D" if len(size) == 3 else "Conv2D", build, name=f"far_padded_{len(size)}")


def repeated(r):
    # Channels that give several results each, as a depthwise layer and as groups.
    for i, (size, depth, times, window, stride, padding) in enumerate([((3, 9), 9, 2, (3, 3), 1, "SAME"), ((4, 7), 16, 2, (2, 3), 2, "VALID"), ((5, 5), 7, 3, (3, 3), 2, "SAME"), ((6, 4), 3, 8, (5, 1), 1, "VALID"), ((2, 3), 5, 7, (1, 1), 1, "SAME"), ((2, 5), 3, 2, (3, 3), 1, "SAME")]):

        def build(size=size, depth=depth, times=times, window=window, stride=stride, padding=padding):
            x, corner, images = image(size, depth)
            bias = waves([depth * times], 0.8)
            y = tf.nn.relu6(tf.nn.bias_add(tf.nn.depthwise_conv2d(x, waves([*window, depth, times], 1.3), [1, stride, stride, 1], padding), bias))
            z = tf.nn.tanh(tf.nn.bias_add(tf.nn.conv2d(x, waves([*window, 1, depth * times], 0.7), stride, padding), bias))
            return [Step(fetch=told(y) + told(z), feed=f) for f in feeds(r, corner, images)]

        yield graph_case("DepthwiseConv2dNative", build, name=f"repeats_{i}")


def added(r):
    # A sum behind a depthwise layer, also of a single pixel.
    for pixels in (1, 2):

        def build(pixels=pixels):
            x, y = ph([1, pixels, 1, 36]), ph([1, pixels, 1, 36])
            return [Step(fetch=[tf.nn.depthwise_conv2d(x, waves([3, 3, 36, 1], 1.3), [1, 1, 1, 1], "SAME") + y], feed={x: numbers(r, 1, pixels, 1, 36), y: numbers(r, 1, pixels, 1, 36)})]

        yield graph_case("DepthwiseConv2dNative", build, name=f"and_a_sum_{pixels}")


def unread(r):
    # Of whose result the shape alone is read: it fails as it would.
    def build():
        x, w = ph([1, 2, 2, 1]), ph([None, 1, 1, 1])
        zeros = tf.raw_ops.ZerosLike(x=tf.raw_ops.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME"))
        rows = [numbers(r, n, 1, 1, 1) for n in (1, 0)]
        return [Step(fetch=[zeros], feed={x: numbers(r, 1, 2, 2, 1), w: rows[0]}), Step(fetch=[zeros], feed={x: numbers(r, 1, 2, 2, 1), w: rows[1]}, error="filter must not have zero elements")]

    yield graph_case("Conv2D", build, name="unread")


def cases(r):
    for family in (scaled, windows, tiles, followed, clamps, paddings, reductions, streamed, padded_maxima, dilated, far_padded, repeated, added, unread):
        yield from family(r)
