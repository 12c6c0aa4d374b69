"""Windows of one pixel with strides behind the end of a stage: what they leave out is not computed; NaN and infinity in what is left out and in what stays."""
from op_cases import *
from op_cases.session_convolutions import feeds, image, told, waves

FOLDER = "sessions"


def stages(r):
    # (height, width), window, padding, dilation, strides of the pixels, how the windows before end, how many read the end
    layers = [
        ((9, 12), (3, 3), "SAME", 1, (2, 2), "sum", 2), ((8, 8), (3, 3), "SAME", 1, (2, 2), "relu", 1), ((9, 12), (2, 4), "SAME", 2, (2, 3), "sum", 1), ((9, 12), (5, 3), "VALID", 1, (3, 2), "scaled", 2),
        ((7, 7), (3, 3), [[0, 0], [2, 0], [1, 2], [0, 0]], 1, (2, 2), "sum", 2), ((7, 9), (1, 1), "VALID", 1, (2, 2), "pixels", 2), ((5, 9), (3, 3), "SAME", 1, (1, 2), "pixels", 1), ((2, 2), (3, 3), "SAME", 1, (3, 3), "sum", 1),
        ((9, 12), (3, 3), "SAME", 1, (2, 2), "read whole", 2), ((9, 12), (3, 3), "SAME", 1, (2, 2), "fetched", 2), ((9, 12), (3, 3), "SAME", 1, (2, 2), "row", 1), ((9, 12), (3, 3), "SAME", 1, (2, 2), "nan", 1),
    ]
    for i, ((h, w), (kh, kw), padding, dilation, strides, end, readers) in enumerate(layers):

        def build(h=h, w=w, kh=kh, kw=kw, padding=padding, dilation=dilation, strides=strides, end=end, readers=readers):
            depth = 16
            x, corner, images = image([h, w], depth)
            other = x * 0.5
            y = tf.nn.conv2d(x, waves([kh, kw, depth, depth], 1.3), 1, padding, dilations=dilation) + waves([depth], 2.1)
            if end in ("sum", "read whole", "fetched", "nan"):
                y = tf.nn.relu(tf.nn.conv2d(tf.nn.relu(y), waves([1, 1, depth, depth], 0.7), 1, "SAME")) * waves([depth], 0.4)
                y = tf.nn.relu(y + (tf.math.log(other) if end == "nan" else other)) if padding == "SAME" else tf.nn.relu(y)
            elif end == "relu":
                y = tf.nn.relu6(y)
            elif end == "scaled":
                y = tf.tanh(tf.nn.bias_add(y * waves([1, 1, 1, depth], 0.3), waves([depth], 0.9)))
            elif end == "pixels":
                for step in (0.3, 0.5, 0.9):
                    y = tf.nn.elu(tf.nn.conv2d(y, waves([1, 1, depth, depth], step), 1, "SAME"))
            else:  # a sum with a row of pixels
                y = y + waves([1, 1, w, depth], 0.6)
            y = tf.square(y + 1.5)  # of one sign, so that sums lose nothing
            fetch = [tf.nn.conv2d(y, tf.square(waves([1, 1, depth, 4], 1.1 + n)), strides, "VALID" if n else "SAME") for n in range(readers)]
            if end == "read whole":
                fetch.append(tf.reduce_max(y, [1, 2]))
            if end == "fetched":
                fetch += told(y)
            return [Step(fetch=fetch, feed=f) for f in feeds(r, corner, images)]

        yield graph_case("Conv2D", build, name=f"stage_{i}_{end.replace(' ', '_')}")


def cases(r):
    yield from stages(r)
