"""Elementwise chains that programs run in one pass: columns, rows and views, NaN, odd and empty shapes; and what random graphs (tests/random_graphs) found of programs."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(shape, dtype=tf.float32):
    return tf.compat.v1.placeholder(dtype, shape)


def numbers(r, *shape):
    return np.round(r.normal(shape), 2).astype(np.float32)


def specials(r, *shape):
    value = numbers(r, *shape)
    flat = value.reshape(-1)
    for at, what in zip(range(0, flat.size, 7), [np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38, 0.0] * 9):
        flat[at] = what
    return value


def chains(r):
    def of_column_and_row():
        x, column, row = ph([None, None]), ph([None, 1]), ph([1, None])
        y = tf.nn.relu((x - column) * row) + tf.abs(x) * column
        z = tf.maximum(tf.minimum(y, row), column)
        steps = []
        for n, c in ((7, 13), (40, 5), (1, 67), (33, 2), (0, 9), (9, 0)):
            for make in (numbers, specials):
                steps.append(Step(fetch=[y, z], feed={x: make(r, n, c), column: make(r, n, 1), row: numbers(r, 1, c)}))
        return steps

    def of_row_without_leading_one():
        x, row = ph([None, 3, None]), ph([None])
        y = tf.negative(tf.square(x + row)) - row
        return [Step(fetch=[y], feed={x: make(r, n, 3, c), row: make(r, c)}) for n, c in ((3, 11), (5, 8), (0, 4)) for make in (numbers, specials)]

    def of_split_parts():
        x = ph([None, 36])
        a, b, c, d = tf.split(x, 4, axis=1)
        y = (a + b) * tf.nn.relu(c) - d
        z = tf.where(a > b, c, d) * y
        return [Step(fetch=[y, z], feed={x: make(r, n, 36)}) for n in (1, 2, 7, 0) for make in (numbers, specials)]

    # Both results are read, or what the cells hold is not; operands and gates in other orders.
    def lstm_step(inside=False, turned=False, apart=False):
        units = 140 if apart else 24
        before = ph([None, units])
        gates = [ph([None, units]) for _ in range(4)] if apart else [ph([None, 4 * units])]
        i, f, g, o = gates if apart else tf.split(gates[0], 4, axis=1)
        if turned:
            i, f, g, o = o, g, i, f
            c = tf.tanh(g) * tf.sigmoid(i) + before * tf.sigmoid(f)
            h = tf.tanh(c) * tf.sigmoid(o)
        else:
            c = tf.sigmoid(f) * before + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        fetch = [h] if inside else [h, c]
        return [Step(fetch=fetch, feed={before: make(r, n, units), **{x: 3 * make(r, n, x.shape[1]) for x in gates}})
                for n in (1, 2, 0 if apart else 3) for make in (numbers, specials)]

    def of_an_lstm_step():
        return lstm_step()

    def of_an_lstm_step_whose_gates_lie_apart():
        return lstm_step(apart=True)

    def of_an_lstm_step_in_another_order():
        return lstm_step(turned=True)

    def of_an_lstm_step_whose_cells_are_inside():
        return lstm_step(inside=True)

    def of_slices():
        x, y = ph([None, 9, None]), ph([None, 4, None])
        a, b = x[:, 1:5], tf.slice(x, [0, 5, 0], [-1, 4, -1])
        z = tf.maximum(a * y, b) + tf.abs(y)
        w = tf.math.floor(z) - x[:, :1] * 2.0
        return [Step(fetch=[z, w], feed={x: make(r, n, 9, c), y: make(r, n, 4, c)}) for n, c in ((2, 9), (5, 3), (1, 33), (0, 3), (3, 0)) for make in (numbers, specials)]

    def of_slices_of_split_of_nothing():
        x, y = ph([None, 12]), ph([None, 6])
        a, b = tf.split(x, 2, axis=1)
        return [Step(fetch=[(a + y) * b - y], feed={x: numbers(r, n, 12), y: numbers(r, n, 6)}) for n in (0, 20)]

    def of_a_split_with_an_empty_part():
        x, y = ph([None, 12]), ph([None, 7])
        none, a, b = tf.split(x, [0, 5, 7], axis=1)
        return [Step(fetch=[(b + y) * b - y, a], feed={x: numbers(r, n, 12), y: numbers(r, n, 7)}) for n in (20, 0)]

    def of_integers():
        x, y = ph([None, None], tf.int32), ph([None, 1], tf.int32)
        z = tf.maximum(x * y + 3, y - x) * x
        def whole(*s):
            return (numbers(r, *s) * 5).astype(np.int32)

        return [Step(fetch=[z], feed={x: whole(n, c), y: whole(n, 1)}) for n, c in ((9, 17), (40, 3), (0, 3))]

    def of_choices():
        x, y, p = ph([None, None]), ph([None, 1]), ph([None, None], tf.bool)
        z = tf.where(p, x * 2.0, y) + tf.where(tf.math.is_nan(x), tf.zeros_like(x), x)
        return [Step(fetch=[z], feed={x: make(r, n, c), y: make(r, n, 1), p: (np.arange(n * c) % 3 == 0).reshape(n, c)}) for n, c in ((7, 19), (1, 90), (90, 1)) for make in (numbers, specials)]

    def of_results_in_between():
        x, y = ph([None, None]), ph([None, None])
        a = x + y
        b = a * x
        return [Step(fetch=[a, b, tf.abs(b) - a, b], feed={x: make(r, n, c), y: make(r, n, c)}) for n, c in ((8, 17), (2, 129)) for make in (numbers, specials)]

    for name, build in list(locals().items()):
        if callable(build) and name.startswith("of_"):
            yield graph_case("AddV2", build, name=f"chain_{name}")


def found(r):
    def norm(spell, shown):
        def build():
            x = ph([None, None, 6])
            mean = tf.reduce_mean(x, axis=-1, keepdims=True)
            root = tf.math.rsqrt(tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True) + 1e-3)
            scale, offset, difference = numbers(r, 6), numbers(r, 6), x - mean
            part = difference * scale if spell == "difference" else root * scale
            y = part * (root if spell == "difference" else difference) + offset
            more = [part * 2.0] if shown == "read" else [part]
            return [Step(fetch=[y, *more], feed={x: numbers(r, 3, n, 6)}) for n in (1, 5)]
        return build

    for spell in ("difference", "root"):
        for shown in ("read", "result"):
            yield graph_case("Mean", norm(spell, shown), name=f"norm_whose_{spell}_is_a_{shown}")

    # x * factor + (offset - mean * factor): Keras' layers, and tf.nn.batch_normalization.
    def affine(spell, scales, offsets, shown):
        def build():
            x = ph([None, None, 19])
            mean = tf.reduce_mean(x, axis=-1, keepdims=True)
            variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
            scale, offset = numbers(r, 19) if scales else None, numbers(r, 19) if offsets else None
            if spell == "keras":
                factor = tf.math.rsqrt(variance + 1e-3)
                factor = factor * tf.reshape(scale, [1, 1, 19]) if scales else factor
                part = -mean * factor
                y = x * factor + (part + tf.reshape(offset, [1, 1, 19]) if offsets else part)
            else:
                y = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
            more = [mean * 2.0] if shown else []
            return [Step(fetch=[y, *more], feed={x: v}) for v in (numbers(r, 3, 5, 19), numbers(r, 1, 1, 19) + 2, specials(r, 2, 3, 19), numbers(r, 0, 2, 19))]
        return build

    for spell in ("keras", "batch_normalization"):
        for scales, offsets, shown in ((True, True, False), (True, False, False), (False, True, False), (False, False, False), (True, True, True)):
            name = "_".join(["norm_as", spell, *(["scaled"] * scales), *(["shifted"] * offsets), *(["whose_mean_is_read"] * shown)])
            yield graph_case("Mean", affine(spell, scales, offsets, shown), name=name)

    # Keras 2's: rows as channels of a batch normalization in training.
    def fused(scaled, depth):
        def build():
            x = ph([None, 5, depth])
            rows = tf.shape(x)[0] * 5
            y = tf.raw_ops.FusedBatchNormV3(x=tf.reshape(x, [1, rows, depth, 1]), scale=tf.fill([rows], 1.0 if scaled == "after" else 2.0), offset=tf.zeros([rows]), mean=[], variance=[],
                                            epsilon=1e-3, is_training=True, data_format="NCHW")
            z = tf.reshape(y.y, tf.shape(x)) * numbers(r, depth) + numbers(r, depth)
            more = [y.batch_mean] if scaled == "read" else []
            return [Step(fetch=[z, *more], feed={x: v}) for v in (numbers(r, 3, 5, depth), numbers(r, 1, 5, depth) * 3)]
        return build

    for scaled in ("after", "before", "read"):
        yield graph_case("Mean", fused(scaled, 19), name=f"norm_of_channels_scaled_{scaled}")

    # Conv1D and Dense reshape what they made before it is scaled, shifted and activated.
    def behind_a_reshape(follow):
        def build():
            x = ph([None, 5, 4])
            y = tf.nn.conv1d(x, numbers(r, 1, 4, 7), 1, "SAME")
            z = tf.reshape(tf.matmul(tf.reshape(x, [-1, 4]), numbers(r, 4, 7)), [-1, 5, 7])
            return [Step(fetch=[follow(y), follow(z)], feed={x: v}) for v in (numbers(r, 1, 5, 4), numbers(r, 3, 5, 4) * 3, np.where(np.arange(40).reshape(2, 5, 4) % 11 == 3, np.float32(np.inf), numbers(r, 2, 5, 4)))]
        return build

    follows = {"scale": lambda y: y * numbers(r, 7), "norm_and_relu": lambda y: tf.nn.relu(y * numbers(r, 7) + numbers(r, 7)), "gelu": tf.nn.gelu,
               "silu": lambda y: y * tf.sigmoid(y), "scale_of_rows": lambda y: y * numbers(r, 5, 1)}
    for name, follow in follows.items():
        yield graph_case("MatMul", behind_a_reshape(follow), name=f"behind_a_reshape_{name}")

    def leaks_then_relu():
        x = ph([None, 5])
        y = tf.matmul(x, numbers(r, 5, 7))
        z = tf.nn.leaky_relu(y + numbers(r, 7), 0.3)
        w = tf.matmul(x, numbers(r, 5, 7) * 0.3)
        return [Step(fetch=[tf.maximum(z, 0.0), tf.nn.leaky_relu(tf.nn.relu(w) - 0.5, 0.1)], feed={x: numbers(r, n, 5)}) for n in (1, 3, 20)]

    yield graph_case("MatMul", leaks_then_relu, name="two_slopes_behind_one_product")

    def leaks_then_relu_einsum():
        x = ph([2, 2, None])
        y = tf.einsum("abc,acd->abd", numbers(r, 2, 3, 2), x)
        return [Step(fetch=[tf.maximum(tf.nn.leaky_relu(y, 0.1), 0.0)], feed={x: numbers(r, 2, 2, n)}) for n in (1, 3, 20)]

    yield graph_case("Einsum", leaks_then_relu_einsum, name="two_slopes")

    def leaks_then_relu_images():
        x = ph([None, 4, 5, 3])
        z = tf.nn.leaky_relu(tf.nn.bias_add(tf.nn.conv2d(x, numbers(r, 3, 3, 3, 5), 1, "SAME"), numbers(r, 5)), 0.3)
        return [Step(fetch=[tf.nn.relu(z)], feed={x: numbers(r, n, 4, 5, 3)}) for n in (1, 2)]

    yield graph_case("Conv2D", leaks_then_relu_images, name="two_slopes_behind_one_convolution")

    def sums(depthwise, pads, dilation):
        def build():
            x = ph([1, 4, 10, 2])
            filters = numbers(r, 1, 3, 2, 1) if depthwise else numbers(r, 1, 3, 2, 3)
            if depthwise:
                y = R.DepthwiseConv2dNative(input=x, filter=filters, strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=pads)
            else:
                y = R.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], dilations=[1, 1, dilation, 1], padding="EXPLICIT", explicit_paddings=pads)
            shape = [int(d) for d in y.shape]
            more = ph(shape)
            first = y + numbers(r, *shape)
            return [Step(fetch=[tf.sigmoid(more + first) if depthwise else more + first], feed={x: numbers(r, 1, 4, 10, 2), more: numbers(r, *shape)}),
                    Step(fetch=[tf.sigmoid(more + first) if depthwise else more + first], feed={x: numbers(r, 1, 4, 10, 2), more: numbers(r, *shape)})]
        return build

    for depthwise in (False, True):
        for name, pads, dilation in (("inside", [0, 0, 0, 0, 1, 1, 0, 0], 1), ("wide", [0, 0, 1, 2, 2, 1, 0, 0], 1), ("dilated", [0, 0, 0, 0, 6, 6, 0, 0], 6)):
            if depthwise and dilation > 1:
                continue
            yield graph_case("DepthwiseConv2dNative" if depthwise else "Conv2D", sums(depthwise, pads, dilation), name=f"{'depthwise' if depthwise else 'dense'}_sums_{name}")

    def two_sums():
        x, more = ph([1, 2, 1, 1]), ph([1, 2, 1, 1])
        y = tf.nn.conv2d(x, np.array([0.25, 0.25, 1.25], np.float32).reshape(1, 3, 1, 1), 1, "SAME", dilations=[1, 1, 3, 1])
        return [Step(fetch=[more + (numbers(r, 1, 2, 1, 1) + y)], feed={x: numbers(r, 1, 2, 1, 1), more: numbers(r, 1, 2, 1, 1)})]

    yield graph_case("Conv2D", two_sums, name="two_sums_behind_one_channel")

    def padding_alone():
        x, more = ph([2, 17, 3, 1]), ph([2, 19, 2, 1])
        def product():
            y = R.Conv2D(input=x, filter=numbers(r, 2, 4, 1, 1), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 2, 0, 0])
            return tf.nn.bias_add(y, numbers(r, 1))

        return [Step(fetch=[tf.sigmoid(product()) + more, tf.nn.relu(tf.tanh(product()) + more)], feed={x: numbers(r, 2, 17, 3, 1), more: numbers(r, 2, 19, 2, 1)})]

    yield graph_case("Conv2D", padding_alone, name="windows_that_see_padding_alone")

    def stated_shape():
        x, shape = ph([None]), ph([None], tf.int32)
        y = tf.negative(tf.reshape(tf.abs(x), shape))
        return [Step(fetch=[y], feed={x: numbers(r, 6), shape: np.array([6], np.int32)}), Step(fetch=[y], feed={x: numbers(r, 6), shape: np.array([5], np.int32)}, error="Input to reshape")]

    yield graph_case("Reshape", stated_shape, name="to_a_shape_that_a_request_states")

    def parts_of_stated_sizes():
        x = ph(None)
        y = tf.cast(tf.shape(R.SplitV(value=x, size_splits=np.array([0, 0, 1], np.int32), axis=-1, num_split=3)[2])[0], tf.float32)
        return [Step(fetch=[y], feed={x: numbers(r, 1)}), Step(fetch=[y], feed={x: numbers(r, 7)}, error="Determined shape must either match")]

    yield graph_case("SplitV", parts_of_stated_sizes, name="whose_shape_alone_is_read")

    def stated_shape_of_a_broadcast():
        x, shape = ph([2]), ph(None, tf.int32)
        n = tf.shape(tf.broadcast_to(tf.abs(x), shape))[0]
        y = tf.cast(tf.range(n), tf.float32)
        return [Step(fetch=[y], feed={x: numbers(r, 2), shape: np.array([2], np.int32)}), Step(fetch=[y], feed={x: numbers(r, 2), shape: np.array([0], np.int32)}, error="Incompatible shapes")]

    yield graph_case("BroadcastTo", stated_shape_of_a_broadcast, name="whose_shape_alone_is_read")

    def stated_places():
        x, places = ph([None, None]), ph([None], tf.int32)
        y = tf.reshape(tf.range(12, dtype=tf.float32), tf.shape(tf.gather(x, places))[::-1] * [1, 2]) + 1.0
        return [Step(fetch=[y], feed={x: numbers(r, 4, 3), places: np.array([3, 0], np.int32)}), Step(fetch=[y], feed={x: numbers(r, 4, 3), places: np.array([0, 4], np.int32)}, error="is not in [0, 4)")]

    yield graph_case("GatherV2", stated_places, name="whose_shape_alone_is_read")

    def divided(op):
        def build():
            x, by = ph(None, tf.int32), ph(None, tf.int32)
            y = tf.cast(tf.fill(tf.shape(op(x, by)), 2), tf.float32)
            fine, nought = np.array([3, -2, 5, 7], np.int32), np.array([3, 0, 5, 7], np.int32)
            return [Step(fetch=[y], feed={x: fine, by: fine}), Step(fetch=[y], feed={x: fine, by: nought}, error="Integer division by zero")]
        return build

    yield graph_case("FloorDiv", divided(tf.math.floordiv), name="whose_shape_alone_is_read")
    yield graph_case("FloorMod", divided(tf.math.floormod), name="whose_shape_alone_is_read")

    special = np.array([[[0, 2, -1], [1, 0, 3], [-2, 1, 0]]], np.float32).reshape(1, 3, 3, 1)

    def infinite_filter(act, bias, norm):
        def build():
            x = ph([None, 3, 3, 1])
            filters = np.array([np.inf, -1, 2, 0.5, 0.25, -3, 1, 1], np.float32).reshape(2, 2, 1, 2)
            y = tf.nn.conv2d(x, filters, 1, "VALID")
            if norm:
                y = tf.compat.v1.nn.fused_batch_norm(y, [1.0, 2.0], [0.5, -0.5], [0.0, 1.0], [1.0, 4.0], is_training=False)[0]
            if bias:
                y = tf.nn.bias_add(y, np.array([0.5, -1], np.float32))
            return [Step(fetch=[act(y)], feed={x: v}) for v in (special, np.abs(special) + 1, special[:0])]
        return build

    for act in (tf.nn.relu, tf.nn.relu6):
        yield graph_case("Conv2D", infinite_filter(act, False, False), name=f"infinite_filter_then_{act.__name__}")
        yield graph_case("Conv2D", infinite_filter(act, True, False), name=f"infinite_filter_and_bias_then_{act.__name__}")
        yield graph_case("Conv2D", infinite_filter(act, False, True), name=f"infinite_filter_and_norm_then_{act.__name__}")

    def infinite_scale():
        x = ph([None, 3, 3, 1])
        y = tf.nn.conv2d(x, np.array([1, -1, 2, 0.5], np.float32).reshape(2, 2, 1, 1), 1, "VALID")
        deep = tf.nn.conv3d(x[:, None], np.array([1, -1, 2, 0.5], np.float32).reshape(1, 2, 2, 1, 1), [1] * 5, "VALID")
        scale = np.array([np.inf], np.float32)
        return [Step(fetch=[tf.nn.relu(y * scale), tf.nn.relu(deep * scale)], feed={x: v}) for v in (special, special * 0)]

    yield graph_case("Conv2D", infinite_scale, name="infinite_scale_then_relu")

    def infinite_taps():
        # TensorFlow multiplies zeros that a Pad makes.
        x = ph([None, 3, 4, 16])
        thin = np.round(r.normal((1, 1, 16, 3)), 1).astype(np.float32)
        thin[0, 0, 4, 1] = np.inf
        y = tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), thin, 1, "VALID")
        return [Step(fetch=[tf.sigmoid(y), tf.reduce_max(y, [1, 2])], feed={x: numbers(r, 1, 3, 4, 16) + 3})]

    yield graph_case("Conv2D", infinite_taps, name="infinite_taps_beside_the_image")

    def infinite_weights(rows, wide, turned):
        def build():
            # Numbers that the graph makes itself: they are constants, and files hold small ones alone.
            x = ph([rows, 4])
            w = np.zeros((4, wide), np.float32)
            w[1, 0], w[2, 1], w[3, 2] = np.inf, -1, 3e38
            y = tf.matmul(x, w.T if turned else w, transpose_b=turned)
            feed = numbers(r, rows, 4)
            feed[0, 1], feed[-1, 3] = 0, 9
            return [Step(fetch=[tf.nn.relu(y), tf.nn.relu6(y + numbers(r, wide))], feed={x: feed})]
        return build

    for rows, wide in ((1, 5), (3, 7), (17, 16)):
        for turned in (False, True):
            yield graph_case("MatMul", infinite_weights(rows, wide, turned), name=f"infinite_weights_{rows}_{wide}_{'turned' if turned else 'plain'}_then_relu")

    def alone(act):
        def build():
            x = ph([None, 4, 5, 2])
            y = act(tf.nn.conv2d(x, numbers(r, 2, 2, 2, 3), 1, "SAME"))
            z = act(tf.nn.depthwise_conv2d(x, numbers(r, 2, 2, 2, 1), [1, 1, 1, 1], "SAME"))
            return [Step(fetch=[y, z], feed={x: numbers(r, n, 4, 5, 2)}) for n in (1, 2)]
        return build

    for act in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.tanh, tf.sigmoid, tf.nn.leaky_relu, tf.nn.silu):
        yield graph_case("Conv2D", alone(act), name=f"without_bias_then_{act.__name__}")

    def slope_of_zero():
        # What is negative becomes -0.
        x = ph([None, 3])
        y = tf.nn.leaky_relu(tf.matmul(x, np.array([[1, -1], [0.5, 2], [-2, 1]], np.float32)), 0.0)
        return [Step(fetch=[3.0 / y], feed={x: np.array([[1, 2, 4], [-1, 3, 0.5]], np.float32)})]

    yield graph_case("MatMul", slope_of_zero, name="slope_of_zero_keeps_signs")

    def slope_of_zero_alone():
        x = ph([1, 1, 1, 2])
        y = tf.nn.leaky_relu(tf.raw_ops.BatchMatMulV2(x=np.full((1, 1, 1, 1), -2, np.float32), y=x), 0.0)
        return [Step(fetch=[3.0 / y], feed={x: np.array([[[[-3, 1.5]]]], np.float32)})]

    yield graph_case("BatchMatMulV2", slope_of_zero_alone, name="slope_of_zero_behind_a_batch")

    def constant_places():
        # Of what is taken only the shape is read, and the places are constants: some arguments have them.
        x = ph(None)
        y = tf.raw_ops.BroadcastTo(input=np.float32([[-2.5]]), shape=tf.shape(tf.gather(x, i32([1, 0, 1]), axis=0)))
        z = tf.cast(tf.shape(tf.gather_nd(x, i32([[1, 2], [0, 0]])))[0], tf.float32) * x
        return [Step(fetch=[y], feed={x: numbers(r, 2, 3)}), Step(fetch=[y], feed={x: numbers(r, 1, 3)}, error="is not in [0, 1)"),
                Step(fetch=[z], feed={x: numbers(r, 2, 3)}), Step(fetch=[z], feed={x: numbers(r, 2, 1)}, error="does not index into"),
                Step(fetch=[y], feed={x: numbers(r, 3, 1)})]

    yield graph_case("GatherV2", constant_places, name="constant_places_of_what_only_the_shape_is_read")

    def repeated_short_rows():
        # Rows of an operand come again within some of them, over more elements than a block has, which ends where nothing else does.
        steps = []
        for a, b in (((2, 60, 3, 4), (2, 1, 3, 1)), ((3, 1, 5, 1), (3, 47, 5, 3)), ((130, 7), (7,)), ((2, 1, 200, 3), (2, 2, 1, 3)), ((1, 3, 1, 2), (90, 1, 2, 2))):
            start = ph([])
            count = lambda shape: tf.reshape(tf.math.floormod((tf.range(float(np.prod(shape))) + start) * 37.0, 19.0), shape)
            x, y = count(a), count(b)
            for op in (tf.math.squared_difference, lambda x, y: tf.cast(tf.cast(x, tf.int16) - tf.cast(y, tf.int16), tf.float32)):
                flat = tf.reshape(op(x, y), [-1])
                steps.append(Step(fetch=[tf.reduce_sum(flat * tf.math.floormod(tf.range(tf.cast(tf.size(flat), tf.float32)), 23.0)), flat[-7:]], feed={start: np.float32(5)}))
        return steps

    yield graph_case("SquaredDifference", repeated_short_rows, name="repeated_short_rows")


def constant_norms(r):
    """Batch normalizations by constants behind which and before which no convolution stands that takes them."""
    def alone(shape, before, after):
        def build():
            x = ph([None, *shape])
            y = tf.raw_ops.FusedBatchNormV3(x=before(x), scale=numbers(r, shape[-1]), offset=numbers(r, shape[-1]), mean=numbers(r, shape[-1]), variance=numbers(r, shape[-1]) ** 2,
                                            epsilon=1e-3, is_training=False).y
            return [Step(fetch=[after(y)], feed={x: v}) for v in (numbers(r, 2, *shape), specials(r, 2, *shape), numbers(r, 0, *shape))]
        return build

    weights, filters = numbers(r, 11, 11), numbers(r, 1, 1, 19, 8)
    yield graph_case("FusedBatchNormV3", alone((2, 3, 19), tf.nn.relu, tf.nn.relu), name="norm_between_activations")
    yield graph_case("FusedBatchNormV3", alone((2, 2, 11), lambda x: tf.reshape(tf.matmul(tf.reshape(x, [-1, 11]), weights), tf.shape(x)), lambda y: y * 2.0), name="norm_of_a_product")
    yield graph_case("FusedBatchNormV3", alone((2, 2, 19), tf.identity, lambda y: tf.nn.conv2d(tf.nn.relu(y), filters, 1, "SAME")), name="norm_before_a_convolution")


def sizes_through_floats(r):
    """Sizes and places that are computed of the request's shape in floats."""
    def places():
        x = ph([None, None, 4])
        n = tf.cast(tf.shape(x)[1], tf.float32)
        angles = tf.tensordot(tf.range(n) / 7.0, tf.constant([1.0, 0.5, 0.25, 2.0]), 0)
        return [Step(fetch=[x * tf.cos(angles) + tf.reverse(x, [-1]) * tf.sin(angles), tf.zeros([tf.cast(tf.math.ceil(n / 2.0), tf.int32)]) + tf.reduce_sum(x)],
                     feed={x: numbers(r, 2, k, 4)}) for k in (5, 1, 0)]

    def scaled():
        x = ph([1, None, None, 2])
        size = tf.cast(tf.cast(tf.shape(x)[1:3], tf.float32) * 1.5, tf.int32)
        return [Step(fetch=[tf.compat.v1.image.resize_bilinear(tf.nn.relu(x), size, half_pixel_centers=True) + 1.0], feed={x: numbers(r, 1, h, w, 2)}) for h, w in ((4, 6), (3, 5), (1, 1))]

    yield graph_case("Range", places, name="as_long_as_a_float_says")
    yield graph_case("ResizeBilinear", scaled, name="to_sizes_times_a_float")


def signs_of_little(r):
    """What is exp(x) - 1 is 0 of a number that 1 takes in: the sign says so, alone and in a chain."""
    for dtype, little in ((tf.float32, 1e-9), (tf.float64, 1e-18)):
        value = np.array([-little, -1e-3, -0.0, little, 2, -np.inf, np.nan], dtype.as_numpy_dtype)

        def graph():
            x = ph([None], dtype)
            return [Step(fetch=[y for act in (tf.nn.elu, tf.nn.selu) for y in (act(x), tf.sign(act(x)), tf.nn.relu(tf.sign(act(x * 1.0)) + 0.5))], feed={x: value[:n]}) for n in (1, 7)]

        yield graph_case("Elu", graph, name="sign_of_little_" + dtype.name)


def cases(r):
    yield from chains(r)
    yield from found(r)
    yield from constant_norms(r)
    yield from sizes_through_floats(r)
    yield from signs_of_little(r)
