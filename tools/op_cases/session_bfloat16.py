"""Programs of bfloat16: depthwise windows, activations behind layers, normalizations whose moments are float, reductions. Sums of few halves are exact; else the tolerance
is a few roundings, since TensorFlow rounds what each op makes."""
from op_cases import *

FOLDER = "sessions"
B = tf.bfloat16
ROUNDED = (2e-2, 2e-2)


def halves(r, *shape):
    return (np.round(r.normal(shape) * 2).clip(-2, 2) / 2).astype(B.as_numpy_dtype)


def narrow_ph(shape):
    return tf.compat.v1.placeholder(B, shape)


def many(r, *shape):
    """Constants that the graph makes itself: files hold small tensors alone."""
    n = int(np.prod(shape))
    return tf.reshape(tf.tile(tf.constant(halves(r, 37)), [n // 37 + 1])[:n], shape)


def channels(x, depth):
    return tf.tile(x, [1] * (len(x.shape) - 1) + [depth // x.shape[-1] + 1])[..., :depth]


def ends(t):
    return [t[..., :4], t[..., -4:]]


def specials(values):
    special = values.copy()
    special.flat[0], special.flat[-1] = np.nan, np.inf
    return [values, special, values[:0]]


def windows(r):
    # (height, width), window, stride, dilation, padding, channels
    layers = [((3, 9), (3, 3), 1, 1, "SAME", 33), ((3, 18), (3, 3), 1, 1, "VALID", 32), ((3, 17), (3, 3), 2, 1, "SAME", 40), ((2, 9), (5, 5), 1, 1, "SAME", 34), ((2, 7), (5, 5), 2, 1, "SAME", 65),
              ((3, 5), (2, 3), 1, 2, "SAME", 33), ((2, 3), (3, 3), 1, 1, "SAME", 31), ((1, 2), (3, 3), 3, 1, [[0, 0], [2, 0], [0, 1], [0, 0]], 36)]
    for i, ((h, w), (kh, kw), stride, dilation, padding, depth) in enumerate(layers):

        def build(h=h, w=w, kh=kh, kw=kw, stride=stride, dilation=dilation, padding=padding, depth=depth):
            x = narrow_ph([None, h, w, 3])
            y = tf.nn.depthwise_conv2d(channels(x, depth), many(r, kh, kw, depth, 1), [1, stride, stride, 1], padding, dilations=[dilation, dilation])
            fetch = ends(tf.nn.relu6(tf.nn.bias_add(y, many(r, depth))))
            return [Step(fetch=fetch, feed={x: v}) for v in specials(halves(r, 1, h, w, 3))]

        yield graph_case("DepthwiseConv2dNative", build, name=f"window_{i}")


def infinite_neighbours(r):
    """An infinity beside a window is not the window's, whatever numbers are multiplied in pairs."""
    for name, depth, window in (("pixel", 1, (1, 2)), ("square", 2, (2, 2))):

        def build(depth=depth, window=window):
            x = narrow_ph([None, 3, 5, depth])
            y = tf.nn.bias_add(tf.nn.conv2d(x, tf.constant(-1 - np.arange(np.prod(window) * depth).reshape(*window, depth, 1) / 4, B), 1, "VALID"), tf.constant([0.5], B))
            value = halves(r, 1, 3, 5, depth)
            value[0, 0, 2, 0], value[0, 1, 2, -1] = np.inf, -np.inf
            return [Step(fetch=[y], feed={x: value}), Step(fetch=[tf.nn.relu(y)], feed={x: value})]

        yield graph_case("Conv2D", build, name=f"beside_{name}")


def followed(r):
    acts = {"silu": lambda t: t * tf.sigmoid(t), "sigmoid": tf.sigmoid, "tanh": tf.tanh, "elu": tf.nn.elu}
    for name, act in acts.items():

        def build(act=act):
            x, rows = narrow_ph([None, 2, 3, 6]), narrow_ph([None, 64])
            deep, bias = channels(x, 36), many(r, 36)
            window = act(tf.nn.bias_add(tf.nn.depthwise_conv2d(deep, many(r, 3, 3, 36, 1), [1, 1, 1, 1], "SAME"), bias))
            pixel = act(tf.nn.bias_add(tf.nn.conv2d(deep, many(r, 1, 1, 36, 36) * 0.25, 1, "SAME"), bias))
            product = act(tf.matmul(tf.tile(rows, [16, 1]), many(r, 64, 64) * 0.25))
            feeds = [{x: v, rows: halves(r, 3, 64)} for v in specials(halves(r, 1, 2, 3, 6))[:2]]
            return [Step(fetch=ends(window) + ends(pixel) + ends(product[:3]), feed=f) for f in feeds]

        yield graph_case("Conv2D", build, name=f"then_{name}", tol=ROUNDED)


def spelled(r):
    """Activations in several ops behind a product: of what they are one, nothing is rounded in between."""
    half, root = (lambda: tf.constant(0.5, B)), (lambda: tf.constant(np.sqrt(0.5), B))
    spellings = {
        "gelu": lambda x: x * half() * (tf.math.erf(x * root()) + tf.constant(1, B)),
        "gelu_by_erfc": lambda x: half() * x * tf.math.erfc(-x * root()),
        "gelu_by_tanh": lambda x: half() * x * (tf.constant(1, B) + tf.tanh(tf.constant(np.sqrt(2 / np.pi), B) * (x + tf.constant(0.044715, B) * x * x * x))),
        "silu": lambda x: x * tf.sigmoid(x), "no_gelu": lambda x: x * half() * (tf.math.erf(x) + tf.constant(1, B)), "two_readers": lambda x: x * half() * (tf.math.erf(x * root()) + tf.constant(1, B)) + x,
    }
    for name, act in spellings.items():

        def build(act=act):
            x = narrow_ph([None, 8])
            y = act(tf.matmul(x, many(r, 8, 33)) + many(r, 33))
            return [Step(fetch=[y], feed={x: v}) for v in specials(halves(r, 4, 8))]

        yield graph_case("Erf", build, name=f"spelled_{name}", tol=ROUNDED)


def norms(r):
    for depth in (6, 48):
        for spell in ("difference", "root", "both", "affine", "affine_joined"):

            def build(depth=depth, spell=spell):
                x = narrow_ph([None, depth])
                wide = tf.cast(x, tf.float32)
                mean = tf.reduce_mean(wide, axis=-1, keepdims=True)
                variance = tf.reduce_mean(tf.math.squared_difference(wide, mean), axis=-1, keepdims=True)
                root = tf.cast(tf.math.rsqrt(variance + 1e-3), B)
                scale, offset = tf.constant(halves(r, depth)), tf.constant(halves(r, depth))
                center = tf.cast(mean, B)
                difference = x - center
                if spell == "affine":
                    factor = root * scale
                    y = x * factor + (-center * factor + offset)
                elif spell == "affine_joined":
                    factor = root * scale
                    y = tf.add_n([x * factor, -center * factor]) + offset
                elif spell == "both":
                    y = difference * root * scale + offset
                elif spell == "root":
                    y = offset + difference * (scale * root)
                else:
                    y = root * (difference * scale) + offset
                values = [halves(r, n, depth) for n in (1, 5)]
                return [Step(fetch=[y], feed={x: v}) for v in values + specials(values[1])[1:]]

            yield graph_case("Mean", build, name=f"norm_{spell}_{depth}", tol=ROUNDED)

    def read():
        x = narrow_ph([None, 6])
        wide = tf.cast(x, tf.float32)
        mean = tf.reduce_mean(wide, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(wide, mean), axis=-1, keepdims=True)
        y = (x - tf.cast(mean, B)) * tf.cast(tf.math.rsqrt(variance + 1e-3), B) * tf.constant(halves(r, 6)) + tf.constant(halves(r, 6))
        return [Step(fetch=[y, wide * 2.0, mean], feed={x: halves(r, 4, 6)})]

    yield graph_case("Mean", read, name="norm_whose_floats_are_read", tol=ROUNDED)


def of(t, axis):
    return [t] if axis == [3] else ends(t)


def reductions(r):
    for name, axis in {"pixels": [1, 2], "images": [0], "channels": [3]}.items():
        for depth in (3, 37, 150):

            def build(axis=axis, depth=depth):
                x = narrow_ph([None, 2, 2, 3])
                fetch = [g for f in (tf.reduce_mean, tf.reduce_sum, tf.reduce_max, tf.reduce_min) for g in of(f(channels(x, depth), axis), axis)]
                return [Step(fetch=fetch, feed={x: v}) for v in specials(halves(r, 2, 2, 2, 3))[:2]]

            yield graph_case("Mean", build, name=f"over_{name}_{depth}")


def beside_the_image(r):
    def build(filters, strides, before, after):
        def make():
            x = narrow_ph([None, 7, 3, 2])
            y = tf.nn.conv2d(x, tf.constant(halves(r, *filters)), strides, [[0, 0], [before, after], [0, 0], [0, 0]])
            return [Step(fetch=[y], feed={x: halves(r, n, 7, 3, 2)}) for n in (1, 2)]
        return make

    yield graph_case("Conv2D", build((2, 2, 2, 19), [1, 2, 2, 1], 1, 2), name="last_rows_see_padding_alone", tol=ROUNDED)
    yield graph_case("Conv2D", build((1, 2, 2, 19), [1, 3, 1, 1], 2, 0), name="first_rows_see_padding_alone", tol=ROUNDED)


def pixels(r):
    """Windows of one pixel: depths that come in pairs and not, channels that fill vectors and not, with and without what follows."""
    acts = {"": lambda t: t, "relu6": tf.nn.relu6, "silu": lambda t: t * tf.sigmoid(t), "leaky": lambda t: tf.nn.leaky_relu(t, 0.25)}
    for depth, wide, act, adds in ((16, 48, "relu6", False), (16, 24, "", True), (6, 18, "silu", False), (7, 24, "", True), (8, 17, "relu6", True), (24, 40, "leaky", True), (2, 2, "", False)):

        def build(depth=depth, wide=wide, act=acts[act], adds=adds):
            x, rest = narrow_ph([None, 3, 7, 3]), narrow_ph([None, 3, 7, 3])
            y = tf.nn.bias_add(tf.nn.conv2d(channels(x, depth), many(r, 1, 1, depth, wide), 1, "SAME"), many(r, wide))
            fetch = ends(act(y + channels(rest, wide) if adds else y))
            other = halves(r, 1, 3, 7, 3)
            return [Step(fetch=fetch, feed={x: v, rest: other[:len(v)]}) for v in specials(halves(r, 1, 3, 7, 3))]

        yield graph_case("Conv2D", build, name=f"pixels_{depth}_{wide}_{act or 'plain'}", tol=ROUNDED)


def padded_maxima(r):
    for depth, pad in ((5, [[0, 0], [1, 1], [1, 1], [0, 0]]), (38, [[0, 0], [1, 0], [2, 1], [0, 0]]), (64, [[0, 0], [0, 0], [0, 2], [0, 0]])):

        def build(depth=depth, pad=pad):
            x = narrow_ph([None, 4, 4, 3])
            deep = channels(tf.tile(x, [1, 6, 6, 1]) - tf.constant(halves(r, 3)), depth)
            both = [tf.nn.max_pool2d(tf.pad(t, pad), 3, 2, "VALID") for t in (deep, deep - tf.constant(2.0, B))]
            return [Step(fetch=[t[:, ::3, ::3, c] for t in both for c in (0, 3, -1)] + [t[:, -2:, -2:, -9:] for t in both], feed={x: v}) for v in (halves(r, 2, 4, 4, 3), halves(r, 0, 4, 4, 3))]

        yield graph_case("MaxPool", build, name=f"of_padded_{depth}")


def images(r):
    """Last layers: few channels of results, and transposed windows, which are computed as floats."""
    # (height, width), window, stride, channels of the result, of the image
    for i, (h, w, kernel, stride, depth, of) in enumerate([(4, 9, 3, 1, 3, 36), (3, 18, 5, 1, 1, 33), (2, 9, 4, 2, 3, 33), (2, 5, 2, 2, 20, 40), (3, 17, 3, 1, 4, 5), (2, 10, 5, 2, 2, 36)]):

        def build(h=h, w=w, kernel=kernel, stride=stride, depth=depth, of=of):
            x = narrow_ph([None, h, w, 3])
            deep, bias = channels(x, of), many(r, depth)
            turned = tf.nn.conv2d_transpose(deep, many(r, kernel, kernel, depth, of), [1, h * stride, w * stride, depth], stride, "SAME")
            fetch = [tf.nn.leaky_relu(tf.nn.bias_add(turned, bias), 0.25)]
            if stride == 1:
                fetch.append(tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(deep, many(r, kernel, kernel, of, depth), 1, "SAME"), bias)))
            return [Step(fetch=[t[:, -2:, -4:] for t in fetch], feed={x: v}) for v in specials(halves(r, 1, h, w, 3))[:2]]

        yield graph_case("Conv2DBackpropInput", build, name=f"image_{i}", tol=ROUNDED)


def attention(r):
    """Scores and what they weigh: keys that fill vectors and not, odd numbers of them, values in the place of scores, masks, parts of one product."""
    # batch, queries, keys, heads, depth, the mask's shape
    for i, (b, f, t, n, d, mask) in enumerate([(2, 5, 7, 2, 4, None), (1, 9, 33, 2, 6, [1, 1, 1, 33]), (1, 12, 18, 1, 34, [1, 1, 12, 18]), (2, 4, 3, 1, 2, [2, 1, 1, 3]), (1, 70, 5, 1, 2, [1, 1, 1, 1]), (1, 3, 6, 2, 4, None), (1, 5, 4, 2, 3, None)]):
        for form in ("turned", "as_it_is", "joined") if f == t or i < 3 else ("turned",):

            def build(b=b, f=f, t=t, n=n, d=d, mask=mask, form=form):
                few, keys, bias = narrow_ph([None, f, 3]), narrow_ph([None, t, 3]), None if mask is None else narrow_ph(mask)
                if form == "joined":
                    keys = few
                deep = [channels(x, n * d) * tf.constant(by, B) for x, by in ((few, 1.0), (keys, 0.5), (keys, -1.0))]
                if form == "joined":
                    deep = tf.split(tf.concat(deep, -1) + tf.constant(0.5, B), 3, axis=-1)
                q, k, v = (tf.reshape(x, [b, -1, n, d]) for x in deep)
                if form == "turned":
                    q, k, v = (tf.transpose(x, [0, 2, 1, 3]) for x in (q, k, v))
                    scores = tf.matmul(q, k, transpose_b=True)
                else:
                    scores = tf.einsum("bfnd,btnd->bnft", q, k)
                scores *= tf.constant(0.5, B)
                p = tf.nn.softmax(scores if bias is None or form == "joined" else scores + bias)
                y = tf.transpose(tf.matmul(p, v), [0, 2, 1, 3]) if form == "turned" else tf.einsum("bnft,btnd->bfnd", p, v)
                steps = []
                other = halves(r, b, t, 3)
                for value in specials(halves(r, b, f, 3))[:2]:
                    feed = {few: value} if form == "joined" else {few: value, keys: other}
                    if bias is not None and form != "joined":
                        feed[bias] = halves(r, *mask)
                    steps.append(Step(fetch=[y[:, :4, :, :3], y[:, -2:]], feed=feed))
                return steps

            yield graph_case("Softmax", build, name=f"attention_{i}_{form}", tol=ROUNDED)


def repeated(r):
    """Channels that give several results each."""
    for i, ((h, w), (kh, kw), stride, depth, times) in enumerate([((3, 7), (3, 3), 1, 17, 2), ((4, 6), (2, 3), 2, 16, 3), ((3, 5), (3, 1), 1, 33, 2)]):

        def build(h=h, w=w, kh=kh, kw=kw, stride=stride, depth=depth, times=times):
            x = narrow_ph([None, h, w, 3])
            y = tf.nn.depthwise_conv2d(channels(x, depth), many(r, kh, kw, depth, times), [1, stride, stride, 1], "SAME")
            return [Step(fetch=ends(tf.nn.relu6(tf.nn.bias_add(y, many(r, depth * times)))), feed={x: v}) for v in specials(halves(r, 1, h, w, 3))]

        yield graph_case("DepthwiseConv2dNative", build, name=f"repeats_{i}", tol=ROUNDED)


def cases(r):
    for family in (windows, followed, norms, reductions, beside_the_image, spelled, padded_maxima, pixels, images, attention, repeated, infinite_neighbours):
        yield from family(r)
