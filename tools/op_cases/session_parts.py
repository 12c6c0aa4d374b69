"""Parts of values: slices that kernels read where they lie, joined values that they write into, and both at once, aligned or not, with what else reads them."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(shape, dtype=tf.float32):
    return tf.compat.v1.placeholder(dtype, shape)


def numbers(r, *shape):
    return np.round(r.normal(shape), 2).astype(np.float32)


def waves(*shape):
    """Numbers that the graph makes itself: files hold small tensors alone."""
    return tf.cos(tf.reshape(tf.range(int(np.prod(shape)), dtype=tf.float32), shape) * 0.7)


def specials(r, *shape):
    value = numbers(r, *shape)
    flat = value.reshape(-1)
    for at, what in zip(range(0, flat.size, 11), [np.nan, np.inf, -np.inf, -0.0, 1e-40] * 9):
        flat[at] = what
    return value


def read(r):
    """Rows of one value, through kernels that are bound."""

    def rows(width):
        def build():
            x = ph([6, width])
            a, b, c = x[:2], x[2:3], tf.slice(x, [3, 0], [3, -1])
            y = [tf.matmul(a, numbers(r, width, 4)), tf.nn.softmax(b), tf.cumsum(c, 1), tf.reduce_max(c, 1), tf.transpose(a), tf.tanh(b) + c]
            return [Step(fetch=y, feed={x: make(r, 6, width)}) for make in (numbers, specials)]

        return build

    for width in (16, 32, 5, 1):
        yield graph_case("Slice", rows(width), name=f"of_rows_of_{width}")

    def computed(width):
        def build():
            x = ph([4, width])
            y = tf.exp(x)
            parts = tf.split(y, 2, axis=0)
            return [Step(fetch=[tf.matmul(parts[0], parts[1], transpose_b=True), tf.nn.relu(parts[1] - 1.0), y][: 2 if shown else 3], feed={x: numbers(r, 4, width)})
                    for shown in (True, False)]

        return build

    for width in (16, 7):
        yield graph_case("Split", computed(width), name=f"of_what_is_made_{width}")

    def images():
        x = ph([None, 4, 5, 3])
        first, second = x[:1], x[1:2]
        y = tf.nn.conv2d(first, numbers(r, 3, 3, 3, 4), 1, "SAME")
        z = tf.nn.depthwise_conv2d(second, numbers(r, 2, 2, 3, 2), [1, 1, 1, 1], "VALID")
        return [Step(fetch=[tf.nn.relu(y), z, tf.nn.max_pool2d(second, 2, 1, "VALID")], feed={x: numbers(r, n, 4, 5, 3)}) for n in (2, 3, 1)]

    yield graph_case("StridedSlice", images, name="of_images")

    def nested():
        x = ph([2, 3, 16])
        one = tf.unstack(x, axis=0)[1]
        two = tf.split(one, [1, 2], axis=0)[1]
        three = two[1]
        return [Step(fetch=[tf.sin(three), tf.matmul(two, numbers(r, 16, 3)), tf.nn.softmax(one)], feed={x: make(r, 2, 3, 16)}) for make in (numbers, specials)]

    yield graph_case("Unpack", nested, name="part_of_a_part_of_a_part")

    def empty_parts():
        x = ph([None, 8])
        none, some, rest = tf.split(x, [0, 1, 2], axis=0)
        return [Step(fetch=[tf.tanh(some), tf.matmul(rest, numbers(r, 8, 2)), tf.exp(none)], feed={x: numbers(r, 3, 8)})]

    yield graph_case("SplitV", empty_parts, name="with_an_empty_part")

    def columns():
        x = ph([3, 24])
        a, b = tf.split(x, 2, axis=1)
        return [Step(fetch=[tf.matmul(a, numbers(r, 12, 5)), tf.nn.softmax(b), tf.cumsum(b, 0)], feed={x: make(r, 3, 24)}) for make in (numbers, specials)]

    yield graph_case("Split", columns, name="that_lies_between_others")

    def small_of_large():
        x = ph([40, 4])
        y = tf.exp(x)
        return [Step(fetch=[tf.matmul(y[3:5], numbers(r, 4, 4)), tf.reduce_sum(y, 0)], feed={x: numbers(r, 40, 4)})]

    yield graph_case("StridedSlice", small_of_large, name="small_part_of_a_large_value")


def written(r):
    """What kernels make, in a larger value."""

    def joined(width, axis):
        def build():
            x, y = ph([2, width]), ph([2, width])
            a = tf.nn.relu(tf.matmul(x, waves(width, width)))
            b = tf.nn.softmax(y)
            c = tf.tanh(x) * 2.0
            whole = tf.concat([a, b, c, y], axis)
            return [Step(fetch=[tf.square(whole), tf.reduce_sum(a, 1)], feed={x: make(r, 2, width), y: make(r, 2, width)}) for make in (numbers, specials)]

        return build

    for width in (16, 32, 3):
        for axis in (0, 1):
            yield graph_case("ConcatV2", joined(width, axis), name=f"of_layers_{width}_along_{axis}")

    def twice():
        x = ph([1, 16])
        a, b = tf.exp(x), tf.tanh(x)
        one, two = tf.concat([a, b, a], 0), tf.stack([b, a], 0)
        return [Step(fetch=[tf.nn.softmax(one), tf.square(two), a * b], feed={x: make(r, 1, 16)}) for make in (numbers, specials)]

    yield graph_case("ConcatV2", twice, name="of_one_value_twice")

    def of_joined():
        x, y = ph([1, 32]), ph([3, 32])
        inner = tf.concat([tf.exp(x), tf.nn.relu(y)], 0)
        outer = tf.concat([inner, tf.sin(x), inner[1:2]], 0)
        return [Step(fetch=[tf.cumsum(outer, 1), tf.nn.softmax(inner)], feed={x: make(r, 1, 32), y: make(r, 3, 32)}) for make in (numbers, specials)]

    yield graph_case("ConcatV2", of_joined, name="of_what_was_joined")

    def taken_apart_and_joined():
        x = ph([4, 16])
        a, b, c, d = tf.unstack(tf.matmul(x, waves(16, 16)))
        back = tf.stack([d, tf.nn.relu(c), tf.tanh(b), a])
        again = tf.concat([back[2:], back[:2]], 0)
        return [Step(fetch=[tf.matmul(again, numbers(r, 16, 3)), back], feed={x: numbers(r, 4, 16)})]

    yield graph_case("Pack", taken_apart_and_joined, name="of_what_was_taken_apart")

    def result_and_part():
        x = ph([2, 16])
        a = tf.exp(x)
        return [Step(fetch=[a, tf.concat([a, tf.tanh(x)], 0), tf.concat([x, a], 0)], feed={x: numbers(r, 2, 16)})]

    yield graph_case("ConcatV2", result_and_part, name="of_a_result")

    def overwritten():
        # The value that is joined is also what an action in place would write over.
        x = ph([2, 16])
        a = tf.exp(x)
        b = tf.negative(tf.sqrt(a))
        return [Step(fetch=[tf.concat([a, b], 0) * 3.0, tf.stack([b, a], 1)], feed={x: numbers(r, 2, 16)})]

    yield graph_case("ConcatV2", overwritten, name="beside_what_is_made_of_it")

    def pairs():
        # A recommender: lookups and a layer's result side by side, and the products of all pairs.
        table, ids, dense = numbers(r, 7, 16), ph([None, 3], tf.int32), ph([None, 5])
        rows = [tf.gather(table, ids[:, i]) for i in range(3)] + [tf.nn.relu(tf.matmul(dense, numbers(r, 5, 16)))]
        whole = tf.stack(rows, 1)
        return [Step(fetch=[tf.matmul(whole, whole, transpose_b=True)], feed={ids: (np.arange(3 * n).reshape(n, 3) % 7).astype(np.int32), dense: numbers(r, n, 5)}) for n in (1, 2, 5, 0)]

    yield graph_case("BatchMatMulV2", pairs, name="of_lookups_side_by_side")


def cases(r):
    tf.compat.v1.disable_eager_execution()
    yield from read(r)
    yield from written(r)
