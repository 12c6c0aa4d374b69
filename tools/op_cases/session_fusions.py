"""What a program does in one pass: products with what follows them, spelled out activations and normalizations."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(shape):
    return tf.compat.v1.placeholder(tf.float32, shape)


def numbers(r, *shape):
    return np.round(r.normal(shape), 2).astype(np.float32)


def gelu_of_halves(x):
    return (0.5 * x) * (tf.math.erf(x * 0.7071067811865476) + 1.0)


def gelu_at_the_end(x):
    return x * (0.5 * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2)))))


def gelu_of_cubes(x):
    return 0.5 * x * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * (x * x * x))))


def gelu_of_powers(x):
    return 0.5 * x * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3.0))))


def nearly_gelu(x):
    return (0.5 * x) * (tf.math.erf(x * 0.7) + 1.0)


ACTIVATIONS = {
    "gelu_of_halves": gelu_of_halves, "gelu_at_the_end": gelu_at_the_end, "gelu_of_cubes": gelu_of_cubes, "gelu_of_powers": gelu_of_powers, "nearly_gelu": nearly_gelu,
    "silu": lambda x: x * tf.sigmoid(x), "hard_swish": lambda x: x * tf.nn.relu6(x + 3.0) * np.float32(1 / 6), "relu": tf.nn.relu, "relu6": tf.nn.relu6,
    "relu6_of_clips": lambda x: tf.minimum(tf.maximum(x, 0.0), 6.0), "elu": tf.nn.elu, "leaky": lambda x: tf.nn.leaky_relu(x, 0.3), "tanh": tf.tanh, "sigmoid": tf.sigmoid,
    "used_twice": lambda x: tf.sigmoid(x) + x * 2.0, "softplus": tf.nn.softplus,
}


def products(r):
    # The library computes products whose first operand is transposed.
    sizes = {"small": (3, 5, 7), "transposed": (17, 12, 16), "row": (1, 16, 18)}
    for name, act in ACTIVATIONS.items():
        for size, (m, k, n) in sizes.items():
            if size != "small" and name not in ("gelu_of_halves", "silu", "leaky", "used_twice", "nearly_gelu"):
                continue

            def build(act=act, m=m, k=k, n=n, turned=size == "transposed"):
                x, rest = ph([k, None] if turned else [None, k]), ph([None, n])
                y = tf.nn.bias_add(tf.matmul(x, numbers(r, k, n) * 0.2, transpose_a=turned), numbers(r, n))
                a, b = act(y), act(tf.matmul(x, numbers(r, k, n) * 0.1, transpose_a=turned) + rest)
                value = numbers(r, m, k)
                special = value.copy()
                special[0, 0], special[-1, -1] = np.nan, 30.0
                return [Step(fetch=[a, b], feed={x: v.T if turned else v, rest: numbers(r, len(v), n)}) for v in (value, special, value[:0])]

            yield graph_case("MatMul", build, name=f"then_{name}_{size}")

    def heads():
        x, rest = ph([2, 3, 8]), ph([2, 3, 8])
        q = tf.einsum("abc,cde->abde", x, numbers(r, 8, 2, 4)) + numbers(r, 2, 4)
        back = tf.einsum("abde,dec->abc", q, numbers(r, 2, 4, 8)) + numbers(r, 8)
        return [Step(fetch=[q, tf.nn.relu(rest + back)], feed={x: numbers(r, 2, 3, 8), rest: numbers(r, 2, 3, 8)})]

    yield graph_case("Einsum", heads, name="then_bias_and_sum")

    def two():
        x, h = ph([3, 16]), ph([3, 8])
        y = tf.matmul(x, numbers(r, 16, 12)) + tf.matmul(h, numbers(r, 8, 12))
        return [Step(fetch=[y, tf.tanh(y)], feed={x: numbers(r, 3, 16), h: numbers(r, 3, 8)})]

    yield graph_case("MatMul", two, name="and_another_are_added")


def norms(r):
    orders = {"scale_first": lambda d, s, g: (d * g) * s, "root_first": lambda d, s, g: g * (d * s), "factors_first": lambda d, s, g: d * (s * g),
              "no_scale": lambda d, s, g: d * s, "twice": lambda d, s, g: (d * g) * s + d}
    for name, product in orders.items():
        for shape in ((3, 7), (2, 5, 16), (2, 2, 3, 4), (4, 1)):

            def build(product=product, shape=shape):
                x = ph([None, *shape[1:]])
                mean = tf.reduce_mean(x, axis=-1, keepdims=True)
                variance = tf.reduce_mean(tf.math.squared_difference(x, tf.stop_gradient(mean)), axis=-1, keepdims=True)
                y = product(x - mean, tf.math.rsqrt(variance + 1e-3), numbers(r, shape[-1])) + numbers(r, shape[-1])
                value = numbers(r, *shape)
                special = value.copy()
                special.flat[0] = np.inf
                same = np.full(shape, 3, np.float32)
                return [Step(fetch=[y], feed={x: v}) for v in (value, special, same, value[:0])]

            yield graph_case("Mean", build, name=f"normalization_{name}_{len(shape)}d_{shape[-1]}")

    def other_axis():
        x = ph([3, 4])
        mean, variance = tf.nn.moments(x, [0], keepdims=True)
        return [Step(fetch=[(x - mean) * tf.math.rsqrt(variance + 1e-3) * numbers(r, 4) + numbers(r, 4)], feed={x: numbers(r, 3, 4)})]

    yield graph_case("Mean", other_axis, name="normalization_of_another_axis")


def narrow(r):
    """Products of bfloat16. Numbers are few halves, so that every rounding is exact and sums in float give what TensorFlow gives."""
    B = tf.bfloat16

    def halves(*shape, most=2):
        return np.round(r.normal(shape) * most).clip(-most, most) / 2

    def narrow_ph(shape):
        return tf.compat.v1.placeholder(B, shape)

    def fed(*shape):
        return halves(*shape).astype(B.as_numpy_dtype)

    def constant(*shape):
        return tf.constant(halves(*shape), B)

    sums = {"bias": lambda y, b, rest: tf.nn.bias_add(y, b), "bias_then_sum": lambda y, b, rest: tf.nn.bias_add(y, b) + rest, "sum_then_bias": lambda y, b, rest: R.AddN(inputs=[rest, y]) + b,
            "sum": lambda y, b, rest: rest + y}
    for size, (side, depth, out) in {"small": (3, 4, 6), "native": (2, 16, 18)}.items():
        for name, add in sums.items():
            for kind in ("Conv2D", "DepthwiseConv2dNative", "MatMul"):

                act = tf.nn.relu if name in ("bias", "bias_then_sum") else tf.identity

                def with_nan(feed, x):
                    special = {**feed, x: feed[x].copy()}
                    special[x].flat[0] = np.nan
                    return [special]

                def build(add=add, act=act, with_nan=with_nan, kind=kind, side=side, depth=depth, out=out):
                    rows, wide = side, depth if kind == "DepthwiseConv2dNative" else out
                    if kind == "MatMul":
                        x, rest = narrow_ph([None, depth]), narrow_ph([None, wide])
                        # Few multiply-adds are done in float: made larger than what a case may write out.
                        times = 4 if out == 18 else 1
                        y = tf.matmul(tf.tile(x, [8 * times, times]), tf.tile(constant(depth, wide), [times, 2 * times]))
                        feed = {x: fed(rows, depth), rest: fed(rows, wide)}
                        rest = tf.tile(rest, [8 * times, 2 * times])
                        specials = with_nan(feed, x)
                        y = act(add(y, tf.tile(constant(wide), [2 * times]), rest))
                        return [Step(fetch=[y[:rows, :wide], y[-rows:, -wide:]], feed=f) for f in (feed, *specials)]
                    x, rest = narrow_ph([None, rows, rows, depth]), narrow_ph([None, rows, rows, wide])
                    if kind == "Conv2D":
                        y = tf.nn.conv2d(x, constant(1, 1, depth, wide), 1, "SAME")
                    else:
                        y = tf.nn.depthwise_conv2d(x, constant(3, 3, depth, 1), [1, 1, 1, 1], "SAME")
                    feed = {x: fed(1, rows, rows, depth), rest: fed(1, rows, rows, wide)}
                    return [Step(fetch=[act(add(y, constant(wide), rest))], feed=f) for f in (feed, *with_nan(feed, x), {k: v[:0] for k, v in feed.items()})]

                yield graph_case(kind, build, name=f"of_bfloat16_{name}_{size}")

    def slopes():
        x = ph([3, 5])
        y = tf.nn.leaky_relu(tf.matmul(x, numbers(r, 5, 7)), 0.3)
        return [Step(fetch=[tf.nn.leaky_relu(y + numbers(r, 7), 0.1)], feed={x: numbers(r, 3, 5)})]

    yield graph_case("MatMul", slopes, name="of_two_slopes")


def residuals(r):
    """Batch normalization behind a convolution and a sum: constants are left behind the sum."""
    makers = {"batch_norm": lambda y, rest: y * numbers(r, 20) + rest + numbers(r, 20), "constant_last": lambda y, rest: (tf.nn.bias_add(y, numbers(r, 20)) + rest) + numbers(r, 1, 1, 1, 20),
              "constant_first": lambda y, rest: numbers(r, 20) + (rest + tf.nn.bias_add(y, numbers(r, 20))), "infinite": lambda y, rest: tf.nn.bias_add(y, numbers(r, 20)) + rest + np.array([np.inf] * 3 + [-np.inf] * 17, np.float32),
              "two_sums": lambda y, rest: ((tf.nn.bias_add(y, numbers(r, 20)) + rest) + tf.square(rest)) + numbers(r, 20), "number": lambda y, rest: tf.nn.bias_add(y, numbers(r, 20)) + rest + 2.5}
    for name, make in makers.items():

        def build(make=make):
            x, rest = ph([None, 3, 4, 12]), ph([None, 3, 4, 20])
            y = tf.nn.conv2d(x, numbers(r, 1, 1, 12, 20) * 0.3, 1, "SAME")
            flat = tf.reshape(make(tf.reshape(tf.matmul(tf.reshape(x, [-1, 12]), numbers(r, 12, 20) * 0.3), [-1, 3, 4, 20]), rest), [-1, 20])
            value, others = numbers(r, 1, 3, 4, 12), numbers(r, 1, 3, 4, 20)
            special = others.copy()
            special.flat[0], special.flat[1], special.flat[25] = np.nan, np.inf, -np.inf
            return [Step(fetch=[tf.nn.relu(make(y, rest)), flat], feed=f) for f in ({x: value, rest: others}, {x: value, rest: special}, {x: value[:0], rest: others[:0]})]

        yield graph_case("Conv2D", build, name=f"then_sum_and_{name}")


NEARLY_BOUNDED = {
    "clip": lambda x: tf.math.log(tf.maximum(x, 1e-6)), "sum": lambda x: tf.math.log(tf.sigmoid(x) + 1e-7), "rest": lambda x: tf.math.log(1.0 - tf.clip_by_value(tf.sigmoid(x), 1e-7, 1.0 - 1e-7)),
    "ends": lambda x: tf.atanh(tf.clip_by_value(tf.tanh(x), -1.0 + 1e-6, 1.0 - 1e-6)), "feature": lambda x: 1.0 / (tf.nn.relu(x) + 1e-6),
}


def bounds(r):
    """What a clip or a sum leaves of 0 and 1 is seen behind a logarithm and below a fraction."""
    for name, act in NEARLY_BOUNDED.items():

        def build(act=act):
            x = ph([None, 3])
            y = tf.matmul(x, np.array([[40, 0, 0, 1], [0, 40, 0, 0], [0, 0, 0.5, 0]], np.float32))
            return [Step(fetch=[act(y)], feed={x: np.array([[2, -2, 1], [-2, 1, 0], [0.5, 0.25, -3]], np.float32)})]

        yield graph_case("MatMul", build, name=f"nearly_bounded_{name}")


def cases(r):
    yield from products(r)
    yield from norms(r)
    yield from narrow(r)
    yield from residuals(r)
    yield from bounds(r)
