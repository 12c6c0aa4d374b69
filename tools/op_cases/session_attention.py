"""Attention in compiled sessions: spelled out in many ways, with masks of many shapes, and what only resembles it."""
from op_cases import *

FOLDER = "sessions"


def ph(shape):
    return tf.compat.v1.placeholder(tf.float32, shape)


def numbers(r, *shape):
    return np.round(r.normal(shape), 2).astype(np.float32)


def turned(x):
    return tf.transpose(x, [0, 2, 1, 3])


# Of q, k and v that are [batch, positions, heads, depth].
def bert(q, k, v, mask, scale):
    scores = tf.einsum("bfnd,btnd->bnft", q, k) * scale
    return tf.einsum("bnft,btnd->bfnd", tf.nn.softmax(scores if mask is None else scores + mask), v)


def keras(q, k, v, mask, scale):
    scores = tf.einsum("aecd,abcd->acbe", k, q * scale)
    return tf.einsum("acbe,aecd->abcd", tf.nn.softmax(scores if mask is None else mask + scores), v)


def matmuls(q, k, v, mask, scale):
    scores = tf.matmul(turned(q), turned(k), transpose_b=True) / np.float32(1 / scale)
    return turned(tf.matmul(tf.nn.softmax(scores if mask is None else scores + mask), turned(v)))


def turned_keys(q, k, v, mask, scale):
    scores = tf.matmul(turned(q) * scale, tf.transpose(k, [0, 2, 3, 1]))
    return tf.matmul(tf.nn.softmax(scores if mask is None else scores + mask), turned(v))


def values_first(q, k, v, mask, scale):
    p = tf.nn.softmax(tf.einsum("bfnd,btnd->bnft", q, k) * scale + (0.0 if mask is None else mask))
    return tf.einsum("btnd,bnft->bfnd", v, p)


def joined(q, k, v, mask, scale):
    """q, k and v are parts of one value, as one product makes them."""
    b, t, n, d = k.shape
    together = tf.concat([tf.reshape(x, [b, t, n * d]) for x in (q, k, v)], axis=-1) + 0.0
    parts = [tf.reshape(x, [b, t, n, d]) for x in tf.split(together, 3, axis=-1)]
    return bert(*parts, mask, scale)


def sliced(q, k, v, mask, scale):
    """Keys and values lie in one cache, by position."""
    cache = tf.transpose(tf.stack([k, v], axis=2), [1, 0, 2, 3, 4])
    scores = tf.einsum("bfnd,tbnd->bnft", q, cache[:, :, 0]) * scale
    return tf.einsum("bnft,tbnd->bfnd", tf.nn.softmax(scores if mask is None else scores + mask), cache[:, :, 1])


FORMS = [bert, keras, matmuls, turned_keys, values_first, joined, sliced]


# Scores that somebody else reads, a mask under the scale, probabilities that are halved, a softmax of queries.
def reads_probabilities(q, k, v, mask, scale):
    p = tf.nn.softmax(tf.einsum("bfnd,btnd->bnft", q, k) * scale)
    return tf.einsum("bnft,btnd->bfnd", p, v), p


def scaled_mask(q, k, v, mask, scale):
    return tf.einsum("bnft,btnd->bfnd", tf.nn.softmax((tf.einsum("bfnd,btnd->bnft", q, k) + 0.5) * scale), v)


def halved(q, k, v, mask, scale):
    return tf.einsum("bnft,btnd->bfnd", tf.nn.softmax(tf.einsum("bfnd,btnd->bnft", q, k)) * 0.5, v)


def two_masks(q, k, v, mask, scale):
    rest = np.linspace(-1, 1, k.shape[1], dtype=np.float32)
    return tf.einsum("bnft,btnd->bfnd", tf.nn.softmax(tf.einsum("bfnd,btnd->bnft", q, k) * scale + rest + rest[::-1]), v)


def over_queries(q, k, v, mask, scale):
    return tf.einsum("bntf,btnd->bfnd", tf.nn.softmax(tf.einsum("bfnd,btnd->bntf", q, k)), v)


def one_key_head(q, k, v, mask, scale):
    p = tf.nn.softmax(tf.einsum("bfnd,btd->bnft", q, k[:, :, 0]) * scale)
    return tf.einsum("bnft,btd->bfnd", p, v[:, :, 0])


def three_dimensions(q, k, v, mask, scale):
    q, k, v = (x[:, :, 0] for x in (q, k, v))
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * scale), v)


def shared_values(q, k, v, mask, scale):
    p = tf.nn.softmax(tf.matmul(turned(q), turned(k), transpose_b=True))
    return turned(tf.matmul(p, turned(v)[:1]))


def attention(r):
    sizes = {"one": (1, 1, 1, 1, 1), "row": (2, 1, 7, 2, 4), "odd": (2, 5, 3, 3, 5), "long": (1, 9, 70, 1, 4)}

    def case(form, b, f, t, n, d, mask, name, special=False):
        if form is joined:
            f = t

        def build():
            q, k, v = ph([b, f, n, d]), ph([b, t, n, d]), ph([b, t, n, d])
            m = None if mask is None else ph(mask)
            y = form(q, k, v, m, np.float32(0.5))
            values = [numbers(r, b, f, n, d), numbers(r, b, t, n, d), numbers(r, b, t, n, d)]
            feeds = [dict(zip((q, k, v), values))]
            if special:
                feeds = []
                for at, x in ((0, np.nan), (1, np.inf), (2, -np.inf), (0, 1e30)):
                    changed = [a.copy() for a in values]
                    changed[at].flat[1] = x
                    feeds.append(dict(zip((q, k, v), changed)))
            if m is not None:
                seen = r.bools(mask)
                seen = np.array(seen); seen.flat[0] = True
                masks = [np.where(seen, 0, x).astype(np.float32) for x in (-1e9, -np.inf)]
                masks += [np.full(mask, -1e9, np.float32), np.full(mask, -np.inf, np.float32)]
                feeds = [{**feeds[0], m: x} for x in masks]
            fetch = list(y) if isinstance(y, tuple) else [y]
            return [Step(fetch=fetch, feed=feed) for feed in feeds]

        return graph_case("Softmax", build, name=f"attention_{form.__name__}_{name}")

    for form in FORMS:
        for size, (b, f, t, n, d) in sizes.items():
            yield case(form, b, f, t, n, d, None, size)
        yield case(form, 2, 5, 5, 2, 4, [2, 1, 1, 5], "masked")
    for i, mask in enumerate(([5, 3], [1, 1, 5, 1], [2, 3, 5, 3], [3], [], [2, 1, 1, 1])):
        yield case(bert, 2, 5, 3, 3, 5, mask, f"mask_{i}")
    yield case(bert, 1, 5, 4, 1, 3, None, "special", special=True)
    yield case(bert, 1, 1, 4, 1, 3, None, "special_row", special=True)
    for form in (reads_probabilities, scaled_mask, halved, two_masks, over_queries, one_key_head, three_dimensions, shared_values):
        yield case(form, 2, 4, 4, 2, 4, None, "")
    for b, f, t, d in ((0, 2, 2, 2), (1, 0, 2, 2), (1, 2, 0, 2), (1, 2, 2, 0)):
        yield case(bert, b, f, t, 2, d, None, f"empty_{b}{f}{t}{d}")


def chosen(r):
    """Keras 3's masks: a choice of scores, and of the probabilities of what may see nothing; keys by queries, turned."""

    def keys_first(q, k):
        return tf.transpose(tf.matmul(turned(k), tf.transpose(q, [0, 2, 3, 1])), [0, 1, 3, 2])

    def queries_first(q, k):
        return tf.matmul(turned(q), turned(k), transpose_b=True)

    def both(m, s, v, low, behind):
        p = tf.nn.softmax(tf.where(m, s, low))
        return tf.matmul(p if behind is None else tf.where(m, p, behind), v)

    def turned_choice(m, s, v, low, behind):
        p = tf.nn.softmax(tf.where(m, low, s))
        return tf.matmul(p if behind is None else tf.where(m, behind, p), v)

    def other_behind(m, s, v, low, behind):
        return tf.matmul(tf.where(tf.logical_not(m), tf.nn.softmax(tf.where(m, s, low)), 0.0), v)

    def read_behind(m, s, v, low, behind):
        p = tf.nn.softmax(tf.where(m, s, low))
        return tf.matmul(tf.where(m, p, 0.0), v), p

    def case(name, product, form, b, f, t, n, d, mask, low, behind, special=False):
        def build():
            q, k, v, m = ph([b, f, n, d]), ph([b, t, n, d]), ph([b, t, n, d]), tf.compat.v1.placeholder(tf.bool, mask)
            y = form(m, product(q * np.float32(0.5), k), turned(v), np.float32(low), None if behind is None else np.float32(behind))
            values = [numbers(r, b, f, n, d), numbers(r, b, t, n, d), numbers(r, b, t, n, d)]
            if special:
                values[0].flat[1], values[1].flat[2] = np.inf, np.nan
            masks = [np.array(r.bools(mask)) for _ in range(2)] + [np.zeros(mask, bool), np.ones(mask, bool)]
            return [Step(fetch=list(y) if isinstance(y, tuple) else [y], feed={q: values[0], k: values[1], v: values[2], m: x}) for x in masks]

        return graph_case("Softmax", build, name=f"attention_chosen_{name}")

    for product in (queries_first, keys_first):
        for form in (both, turned_choice):
            yield case(f"{product.__name__}_{form.__name__}", product, form, 2, 5, 7, 3, 4, [2, 1, 5, 7], -1e9, 0)
    for i, mask in enumerate(([2, 1, 1, 7], [7], [1, 1, 5, 1], [2, 3, 5, 7], [])):
        yield case(f"mask_{i}", queries_first, both, 2, 5, 7, 3, 4, mask, -3.4028235e38, 0)
    yield case("few_queries", keys_first, both, 2, 1, 19, 1, 4, [2, 1, 1, 19], -1e9, 0)
    yield case("numbers", queries_first, both, 2, 5, 7, 1, 4, [2, 1, 5, 7], 0.25, 0.5)
    yield case("infinite", queries_first, both, 2, 5, 7, 1, 4, [2, 1, 5, 7], -np.inf, 0)
    yield case("special", queries_first, both, 1, 5, 7, 1, 4, [1, 1, 5, 7], -1e9, 0, special=True)
    yield case("none_behind", queries_first, both, 2, 5, 7, 1, 4, [2, 1, 5, 7], -1e9, None)
    yield case("other_behind", queries_first, other_behind, 2, 5, 7, 1, 4, [2, 1, 5, 7], -1e9, 0)
    yield case("read_behind", queries_first, read_behind, 2, 5, 7, 1, 4, [2, 1, 5, 7], -1e9, 0)


def reshaped(r):
    """Masks for windows and for places of an image, which are added under another shape of the scores."""

    def windows(b, w, n, t, d, small, last):
        """Of each window's mask, behind a bias of each head."""
        q, k, v = (ph([b * w, n, t, d]) for _ in range(3))
        bias, mask = ph([n, 1, 1] if small else [n, t, t]), ph([w, 1, 1, t] if small else [w, 1, t, t])
        s = tf.reshape(tf.matmul(q, k, transpose_b=True) * np.float32(0.5) + bias, [b, w, n, t, t]) + mask
        p = tf.nn.softmax(s) if last else tf.nn.softmax(tf.reshape(s, [b * w, n, t, t]))
        return (q, k, v, bias, mask), tf.matmul(tf.reshape(p, [b * w, n, t, t]), v)

    def places(b, h, w, d, whole, one):
        """Of rows and columns of an image, for each of its pixels."""
        q, k, v = (ph([b, h * w, d]) for _ in range(3))
        down, along = ph([b, h, w, h, 1]), ph([b, h, w, 1, w])
        s = tf.reshape(tf.matmul(q, k, transpose_b=True), [b, h, w, h, w])
        s = s + (down + along) if whole else s + along if one else s + down + along
        return (q, k, v, down, along), tf.matmul(tf.nn.softmax(tf.reshape(s, [b, h * w, h * w])), v)

    def scaled_behind(b, w, t, d):
        q, k, v = (ph([b * w, t, d]) for _ in range(3))
        mask, other = ph([w, t, t]), ph([t])
        s = (tf.reshape(tf.matmul(q, k, transpose_b=True), [b, w, t, t]) + mask) * np.float32(0.5)
        return (q, k, v, mask, other), tf.matmul(tf.reshape(tf.nn.softmax(s + other), [b * w, t, t]), v)

    makers = [("windows", windows, (2, 3, 2, 4, 3, False, False)), ("windows_small", windows, (1, 2, 2, 5, 2, True, False)), ("windows_last", windows, (2, 2, 1, 3, 4, False, True)), ("windows_long", windows, (1, 1, 1, 17, 2, False, False)),
              ("places", places, (2, 2, 3, 4, True, False)), ("places_one", places, (1, 3, 2, 2, False, True)), ("places_each", places, (1, 2, 2, 3, False, False)), ("scaled_behind", scaled_behind, (2, 2, 4, 3))]
    for name, maker, sizes in makers:

        def build(maker=maker, sizes=sizes):
            inputs, y = maker(*sizes)
            feed = {x: numbers(r, *x.shape.as_list()) for x in inputs}
            hidden = {**feed, inputs[3]: np.where(np.asarray(r.bools(inputs[3].shape.as_list())), feed[inputs[3]], np.float32(-1e9))}
            return [Step(fetch=[y], feed=f) for f in (feed, hidden)]

        yield graph_case("Softmax", build, name=f"attention_{name}")


def cases(r):
    yield from attention(r)
    yield from chosen(r)
    yield from reshaped(r)
