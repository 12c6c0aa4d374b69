"""Products by constants that are large enough for tiles: sums in parts, rows and columns that are no multiple of a tile, what follows, and NaN and infinity."""
from op_cases import *
from op_cases.session_convolutions import feeds, image, told, waves
from op_cases.session_fusions import gelu_of_halves

FOLDER = "sessions"


def cases(r):
    # Rows, depth, columns, is the second matrix transposed.
    products = [(33, 48, 48, False), (37, 70, 197, False), (40, 64, 112, True), (35, 1105, 96, False), (33, 2112, 50, True), (290, 49, 272, False), (33, 50, 195, True)]
    for i, (rows, depth, n, turned) in enumerate(products):

        def build(rows=rows, depth=depth, n=n, turned=turned):
            times = max(1, depth // 64)
            x, corner, images = image([rows], depth // times)
            flat = tf.reshape(tf.tile(x, [1, 1, times]), [-1, depth])

            def of(step):
                w = waves([n, depth] if turned else [depth, n], step) * 0.1
                return tf.reshape(tf.matmul(flat, w, transpose_b=turned), [-1, rows, n])

            bias = waves([n], 2.1)
            rest = of(0.4)
            fetch = told(of(1.3)) + told(gelu_of_halves(of(0.9) + bias)) + told(tf.nn.relu(of(0.7) + bias + rest)) + told(tf.sigmoid(of(0.8)))
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("MatMul", build, name=f"tiled_{i}")

    def heads():
        x, corner, images = image([36], 64)
        q = tf.einsum("abc,cde->abde", x, waves([64, 3, 32], 1.1) * 0.1) + waves([3, 32], 0.7)
        back = tf.einsum("abde,dec->abc", q, waves([3, 32, 64], 0.9) * 0.1) + waves([64], 1.9)
        return [Step(fetch=told(q) + told(back + x), feed=f) for f in feeds(r, corner, images)]

    yield graph_case("Einsum", heads, name="tiled_with_sum")

    # A column is one number of each row: with a bias, a sum and an activation behind, of few rows and more, of products and of a computed column.
    def column():
        fetch, feed = [], {}
        for rows, depth in ((None, 64), (None, 1), (None, 13), (None, 290)):
            x = tf.compat.v1.placeholder(tf.float32, [rows, depth])
            w = waves([depth, 1], depth * 0.1) * 0.5
            y = tf.matmul(x, w)
            fetch += [y, tf.nn.relu(y + waves([1], 0.7)), tf.tanh(tf.matmul(tf.square(x), w) + tf.reduce_max(x, 1, keepdims=True)), tf.matmul(x, tf.transpose(w), transpose_b=True) + y,
                      tf.matmul(x, tf.transpose(x)[:, :1])]
            feed[x] = depth
        steps = []
        for rows in (1, 3, 16, 17, 40):
            values = {x: r.normal((min(rows, 300 // depth), depth)).astype(np.float32) for x, depth in feed.items()}
            if rows == 3:
                for v in values.values():
                    v[0, :1], v[-1, -1:] = np.nan, np.inf
            steps.append(Step(fetch=fetch, feed=values))
        return steps

    yield graph_case("MatMul", column, name="of_one_column")
