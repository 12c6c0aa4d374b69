"""Models of language: hashed words, characters of words, every output of vectorizers, relative positions, caches, searches, samplers, long attention, latents."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of
from library_model_rows.modules import module, normal, words
from library_model_rows.sequences import weights
from library_model_rows.version_one import graph

ints = lambda *v, dtype=np.int32: np.array(v, dtype)


@module("hashed_ngrams")
def hashed(tf, m):
    """The hashing trick: cleaned texts, words and pairs hashed into buckets, means of embeddings, a bag of counts, letters of words by width."""
    weights(tf, m, e=(64, 6), w=(6, 3), bag=(32, 3), c=(40, 4))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        clean = tf.strings.regex_replace(tf.strings.lower(tf.strings.strip(text)), r"[^a-z0-9' ]", " ")
        tokens = tf.strings.split(clean)
        grams = tf.strings.ngrams(tokens, ngram_width=(1, 2), separator="_")
        ids = tf.strings.to_hash_bucket_fast(grams, 64)
        vectors = tf.nn.embedding_lookup(m.e, ids)
        mean = tf.math.divide_no_nan(tf.reduce_sum(vectors, 1), tf.cast(tf.maximum(ids.row_lengths(), 1), tf.float32)[:, None])
        strong = tf.strings.to_hash_bucket_strong(tokens.flat_values, 32, [3, 9])
        rows = tokens.value_rowids()
        bag = tf.scatter_nd(tf.stack([rows, strong], 1), tf.ones_like(strong, tf.float32), tf.cast(tf.stack([tf.shape(text)[0], 32]), tf.int64))
        letters = tf.strings.bytes_split(tokens)
        width = letters.flat_values
        codes = tf.cast(tf.io.decode_raw(width, tf.uint8), tf.int32)[:, 0] % 40
        padded = tokens.to_tensor("", shape=[None, 5])
        return {"logits": mean @ m.w + tf.math.log1p(bag) @ m.bag, "ids": ids.to_tensor(-1), "letters": tf.reduce_mean(tf.gather(m.c, codes), 0), "tokens": padded, "empty": tf.strings.length(padded) == 0,
                "joined": tf.strings.join([clean, tf.strings.as_string(tokens.row_lengths())], "|"), "match": tf.strings.regex_full_match(text, r".*\d+.*")}
    return {"serving_default": serve}, [{"text": words("The cat, the Hat!", "", "buy 2 now", " x ")}, {"text": words("One more")}]


@module("characters_of_words")
def characters(tf, m):
    """Words cut to characters of Unicode and padded to a fixed length, convolutions of several widths, highways, states both ways by a reversal of each length."""
    weights(tf, m, e=(300, 4), k2=(2, 4, 5), k3=(3, 4, 5), h=(10, 20), f=(16, 24), bias=(20,))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sentence")])
    def serve(sentence):
        tokens = tf.strings.split(sentence)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        dense = tokens.to_tensor("")
        codes = tf.strings.unicode_decode(tf.reshape(dense, [-1]), "UTF-8").to_tensor(0, shape=[None, 6])
        ids = tf.minimum(codes, 299)
        x = tf.gather(m.e, ids)
        pooled = tf.concat([tf.reduce_max(tf.tanh(tf.nn.conv1d(x, k, 1, "VALID")), 1) for k in (m.k2, m.k3)], -1)
        carry, transform = tf.split(pooled @ m.h + m.bias, 2, -1)
        g = tf.sigmoid(carry)
        y = tf.reshape(g * tf.nn.relu(transform) + (1 - g) * pooled, [tf.shape(dense)[0], -1, 10])

        def cell(h, v):
            i, u, o, f = tf.split(tf.concat([v, h], -1) @ m.f, 4, -1)
            return tf.sigmoid(o) * tf.tanh(tf.sigmoid(f) * h + tf.sigmoid(i) * tf.tanh(u))
        scan = lambda v: tf.transpose(tf.scan(cell, tf.transpose(v, [1, 0, 2]), initializer=tf.zeros([tf.shape(v)[0], 6])), [1, 0, 2])
        back = tf.reverse_sequence(scan(tf.reverse_sequence(y, lengths, 1, 0)), lengths, 1, 0)
        both = tf.concat([scan(y), back], -1) * tf.sequence_mask(lengths, dtype=tf.float32)[..., None]
        return {"states": both, "lengths": lengths, "codes": codes, "upper": tf.strings.upper(dense, "utf-8"), "again": tf.strings.unicode_encode(codes, "UTF-8"), "distance": tf.edit_distance(
            tf.strings.unicode_split(sentence, "UTF-8").to_sparse(), tf.strings.unicode_split(tf.roll(sentence, 1, 0), "UTF-8").to_sparse(), normalize=False)}
    return {"serving_default": serve}, [{"sentence": words("naïve café déjà", "a b")}, {"sentence": words("one")}]


@keras_model("vectorized_ways")
def vectorized(tf, keras):
    """Texts and categories in every output mode that a vectorizer has, pairs of words, weights by rarity, crosses, hashes with a salt, and names behind."""
    L = keras.layers
    inputs = {"text": keras.Input([1], dtype="string", name="text"), "city": keras.Input([1], dtype="string", name="city"), "tags": keras.Input([3], dtype="string", name="tags")}
    vocabulary = ["the", "cat", "sat", "dog", "the cat"]
    out = {}
    for mode in ("multi_hot", "count"):
        out[mode] = L.TextVectorization(output_mode=mode, ngrams=2, vocabulary=vocabulary)(inputs["text"])
    out["tf_idf"] = L.TextVectorization(output_mode="tf_idf", ngrams=2, vocabulary=vocabulary, idf_weights=[0.3, 0.9, 1.2, 0.8, 2.0])(inputs["text"])
    out["ids"] = L.TextVectorization(output_sequence_length=6, vocabulary=vocabulary, standardize="lower", split="whitespace")(inputs["text"])
    out["characters"] = L.TextVectorization(split="character", output_sequence_length=9, vocabulary=list("acdehost"))(inputs["text"])
    out["looked"] = L.StringLookup(vocabulary=["paris", "rome"], num_oov_indices=2, mask_token="")(inputs["city"])
    out["many"] = L.StringLookup(vocabulary=["x", "y", "z"], output_mode="multi_hot")(inputs["tags"])
    out["hashed"] = L.Hashing(num_bins=11, salt=[5, 7])(inputs["tags"])
    out["masked"] = L.Hashing(num_bins=9, mask_value="")(inputs["tags"])
    out["crossed"] = L.HashedCrossing(num_bins=13)((inputs["city"], layer_of(keras, lambda v: v[:, :1])(inputs["tags"])))
    codes = L.StringLookup(vocabulary=["x", "y", "z"])(inputs["tags"])
    out["embedded"] = L.Dense(3, activation="softmax")(L.GlobalAveragePooling1D()(L.Embedding(5, 4)(codes)))
    one = lambda *v: np.array([[w] for w in words(*v)], dtype=object)
    return keras.Model(inputs, out), [{"text": one("The cat sat.", "a dog!"), "city": one("rome", "oslo"), "tags": np.array([[b"x", b"z", b""], [b"y", b"y", b"q"]], dtype=object)}]


@module("relative_buckets")
def relative(tf, m):
    """An encoder and a decoder with biases by the logarithm of distances, RMS norms, gated units, ties to the table; masks of ids that pad; the loss of given labels."""
    weights(tf, m, e=(16, 8), q=(8, 8), k=(8, 8), v=(8, 8), o=(8, 8), bias=(8, 2), g=(8, 12), u=(8, 12), d=(12, 8), s=(8,))

    def bucket(relative, bidirectional):
        n = 8
        found = 0
        if bidirectional:
            n //= 2
            found += tf.cast(relative > 0, tf.int32) * n
            relative = tf.abs(relative)
        else:
            relative = -tf.minimum(relative, 0)
        exact = n // 2
        large = exact + tf.cast(tf.math.log(tf.cast(relative, tf.float32) / exact) / np.log(16 / exact) * (n - exact), tf.int32)
        return found + tf.where(relative < exact, relative, tf.minimum(large, n - 1))

    def norm(x):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.math.square(x), -1, keepdims=True) + 1e-6) * m.s

    def attend(x, y, bias, mask):
        heads = lambda v: tf.transpose(tf.reshape(v, [tf.shape(v)[0], -1, 2, 4]), [0, 2, 1, 3])
        q, k, v = heads(tf.tensordot(x, m.q, 1)), heads(tf.tensordot(y, m.k, 1)), heads(tf.tensordot(y, m.v, 1))
        scores = tf.einsum("bnqd,bnkd->bnqk", q, k) + bias + mask
        z = tf.matmul(tf.nn.softmax(scores, axis=-1), v)
        return tf.tensordot(tf.reshape(tf.transpose(z, [0, 2, 1, 3]), [tf.shape(z)[0], -1, 8]), m.o, 1)

    def biases(a, b, both):
        offsets = tf.range(b)[None] - tf.range(a)[:, None]
        return tf.expand_dims(tf.transpose(tf.gather(m.bias, bucket(offsets, both)), [2, 0, 1]), 0)

    def fed(x):
        h = norm(x)
        return x + tf.tensordot(tf.nn.gelu(tf.tensordot(h, m.g, 1), approximate=True) * tf.tensordot(h, m.u, 1), m.d, 1)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64, name="input_ids"), tf.TensorSpec([None, None], tf.int64, name="labels")])
    def serve(input_ids, labels):
        keep = tf.cast(tf.not_equal(input_ids, 0), tf.float32)[:, None, None]
        mask = (1.0 - keep) * np.finfo(np.float32).min
        x = tf.gather(m.e, input_ids)
        n, t = tf.shape(input_ids)[1], tf.shape(labels)[1]
        x = fed(x + attend(norm(x), norm(x), biases(n, n, True), mask))
        memory = norm(x)
        shifted = tf.where(labels == -100, tf.zeros_like(labels), tf.concat([tf.zeros_like(labels[:, :1]), labels[:, :-1]], 1))
        y = tf.gather(m.e, tf.maximum(shifted, 0))
        causal = tf.cast(tf.range(t)[None] <= tf.range(t)[:, None], tf.float32)[None, None]
        y = y + attend(norm(y), norm(y), biases(t, t, False), (1.0 - causal) * -1e9)
        y = fed(y + attend(norm(y), memory, 0.0, mask))
        logits = tf.matmul(norm(y) * 8 ** -0.5, m.e, transpose_b=True)
        active = tf.reshape(labels, [-1]) != -100
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.boolean_mask(tf.reshape(labels, [-1]), active), tf.boolean_mask(tf.reshape(logits, [-1, 16]), active))
        return {"logits": logits, "encoder_last_hidden_state": memory, "loss": tf.reshape(tf.reduce_mean(loss), [1])}
    return {"serving_default": serve}, [{"input_ids": ints([3, 5, 9, 1, 0, 0], [2, 2, 4, 7, 8, 1], dtype=np.int64), "labels": ints([4, 5, 1], [6, 1, -100], dtype=np.int64)}]


@module("decoder_caches_by_layer")
def caches(tf, m):
    """One token of a decoder with fewer keys than queries, its caches of a fixed length given and taken by layer, written at a place; rotations by tables; prefill as a second signature."""
    weights(tf, m, e=(20, 8), q=(2, 8, 8), k=(2, 8, 4), v=(2, 8, 4), o=(2, 8, 8), g=(2, 8, 12), u=(2, 8, 12), d=(2, 12, 8), s=(2, 8))
    angle = np.outer(np.arange(12), 1.0 / 10000 ** (np.arange(0, 4, 2) / 4)).astype(np.float32)
    m.cos, m.sin = tf.constant(np.repeat(np.cos(angle), 2, -1)), tf.constant(np.repeat(np.sin(angle), 2, -1))

    def rotate(x, positions):
        c, s = tf.gather(m.cos, positions)[:, None], tf.gather(m.sin, positions)[:, None]
        turned = tf.reshape(tf.stack([-x[..., 1::2], x[..., ::2]], -1), tf.shape(x))
        return x * c + turned * s

    def norm(x, s):
        return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5) * (1.0 + s)

    def decoder(tokens, positions, caches):
        x, out = tf.gather(m.e, tokens)[0], {}
        for i in range(2):
            h = norm(x, m.s[i])
            q = rotate(tf.reshape(h @ m.q[i], [-1, 2, 4]), positions)
            k = rotate(tf.reshape(h @ m.k[i], [-1, 1, 4]), positions)
            keys = tf.tensor_scatter_nd_update(caches[f"k_{i}"], positions[:, None], k)
            values = tf.tensor_scatter_nd_update(caches[f"v_{i}"], positions[:, None], tf.reshape(h @ m.v[i], [-1, 1, 4]))
            scores = tf.einsum("thd,sd->hts", q, keys[:, 0]) * 0.5
            scores = tf.where(tf.range(12)[None, None] <= positions[None, :, None], scores, -1e30)
            y = tf.einsum("hts,sd->thd", tf.nn.softmax(scores), values[:, 0])
            x = x + tf.reshape(y, [-1, 8]) @ m.o[i]
            h = norm(x, m.s[i])
            x = x + (tf.nn.silu(h @ m.g[i]) * (h @ m.u[i])) @ m.d[i]
            out |= {f"k_{i}": keys, f"v_{i}": values}
        return out | {"logits": 30.0 * tf.tanh(tf.matmul(x, m.e, transpose_b=True) / 30.0)}
    spec = {f"{c}_{i}": tf.TensorSpec([12, 1, 4], tf.float32, name=f"{c}_{i}") for c in "kv" for i in range(2)}

    def signature(n):
        return tf.function(lambda tokens, positions, k_0, k_1, v_0, v_1: decoder(tokens, positions, {"k_0": k_0, "k_1": k_1, "v_0": v_0, "v_1": v_1}),
                           input_signature=[tf.TensorSpec([1, n], tf.int32, name="tokens"), tf.TensorSpec([n], tf.int32, name="positions"), *(spec[k] for k in sorted(spec))])
    held = {k: normal(12, 1, 4, seed=i) for i, k in enumerate(spec)}
    empty = {k: np.zeros((12, 1, 4), np.float32) for k in spec}
    return {"decode": signature(1), "prefill": signature(5)}, {"decode": [{"tokens": ints([7]), "positions": ints(3)} | held, {"tokens": ints([1]), "positions": ints(0)} | empty],
                                                               "prefill": [{"tokens": ints([7, 1, 4, 19, 2]), "positions": ints(0, 1, 2, 3, 4)} | empty]}


@module("beams_with_penalty")
def beams(tf, m):
    """A search as toolkits wrote it: alive and finished beams in one nested state, gathers by flat places, a penalty of lengths, early stops, the best of each row."""
    weights(tf, m, e=(9, 6), p=(12, 6), o=(6, 9), h=(6, 6))
    beam, vocabulary, end, low = 3, 9, 1, -1e7

    def pick(values, places, batch):
        return tf.nest.map_structure(lambda v: tf.gather_nd(v, tf.stack([tf.tile(tf.range(batch)[:, None], [1, tf.shape(places)[1]]), places], 2)), values)

    def top(values, scores, batch):
        _, places = tf.nn.top_k(scores, beam)
        return pick(values, places, batch)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="start"), tf.TensorSpec([], tf.int32, name="length")])
    def serve(start, length):
        batch = tf.shape(start)[0]
        penalty = lambda n: tf.pow((5.0 + tf.cast(n, tf.float32)) / 6.0, 0.6)
        state = {"i": 0, "alive": tf.tile(start[:, None, None], [1, beam, 1]), "logs": tf.tile(tf.constant([[0.0] + [-np.inf] * (beam - 1)], tf.float32), [batch, 1]),
                 "cache": {"h": tf.zeros([batch, beam, 6])}, "finished": tf.zeros([batch, beam, 1], tf.int32), "scores": tf.fill([batch, beam], low), "flags": tf.zeros([batch, beam], tf.bool)}
        free = {"i": tf.TensorShape([]), "alive": tf.TensorShape([None, beam, None]), "logs": tf.TensorShape([None, beam]), "cache": {"h": tf.TensorShape([None, beam, 6])},
                "finished": tf.TensorShape([None, beam, None]), "scores": tf.TensorShape([None, beam]), "flags": tf.TensorShape([None, beam])}

        def more(s):
            best = s["logs"][:, 0] / penalty(length)
            least = tf.reduce_min(tf.where(s["flags"], s["scores"], tf.zeros_like(s["scores"])), 1) + (1.0 - tf.cast(tf.reduce_any(s["flags"], 1), tf.float32)) * low
            return tf.logical_and(s["i"] < length, tf.logical_not(tf.reduce_all(least > best)))

        def step(s):
            i = s["i"]
            flat = tf.reshape(s["alive"], [batch * beam, -1])
            h = tf.tanh(tf.reshape(s["cache"]["h"], [-1, 6]) @ m.h + tf.gather(m.e, flat[:, -1]) + m.p[i])
            logs = tf.reshape(tf.nn.log_softmax(h @ m.o), [batch, beam, vocabulary]) + s["logs"][..., None]
            best, index = tf.nn.top_k(tf.reshape(logs, [batch, -1]), 2 * beam)
            parents = index // vocabulary
            ids, cache = pick((s["alive"], {"h": tf.reshape(h, [batch, beam, 6])}), parents, batch)
            ids = tf.concat([ids, (index % vocabulary)[..., None]], 2)
            ended = tf.equal(ids[..., -1], end)
            alive, alive_logs, cache = top((ids, best, cache), best + tf.cast(ended, tf.float32) * low, batch)
            held = tf.concat([s["finished"], tf.zeros([batch, beam, 1], tf.int32)], 2)
            scores = best / penalty(i + 1) + (1.0 - tf.cast(ended, tf.float32)) * low
            finished, scores, flags = top((tf.concat([held, ids], 1), tf.concat([s["scores"], scores], 1), tf.concat([s["flags"], ended], 1)), tf.concat([s["scores"], scores], 1), batch)
            return [{"i": i + 1, "alive": alive, "logs": alive_logs, "cache": cache, "finished": finished, "scores": scores, "flags": flags}]
        s = tf.while_loop(more, step, [state], shape_invariants=[free], parallel_iterations=1)[0]
        any_done = tf.reduce_any(s["flags"], 1)
        ids = tf.where(any_done[:, None, None], s["finished"], s["alive"])
        return {"ids": ids, "scores": tf.where(any_done[:, None], s["scores"], s["logs"]), "best": ids[:, 0], "steps": s["i"]}
    return {"serving_default": serve}, [{"start": ints(2, 5), "length": np.int32(6)}, {"start": ints(8), "length": np.int32(4)}]


@module("nucleus_sampling")
def nucleus(tf, m):
    """The least probable left out by rank and by mass, repeated tokens made less likely, one drawn by a seed; the greatest by noise that the caller gives."""
    weights(tf, m, w=(6, 11))

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="state"), tf.TensorSpec([None, None], tf.int32, name="said"), tf.TensorSpec([2], tf.int32, name="seed"),
                                  tf.TensorSpec([], tf.float32, name="temperature"), tf.TensorSpec([], tf.float32, name="p"), tf.TensorSpec([None, 11], tf.float32, name="noise")])
    def serve(state, said, seed, temperature, p, noise):
        logits = state @ m.w / temperature
        b = tf.shape(state)[0]
        rows = tf.tile(tf.range(b)[:, None], [1, tf.shape(said)[1]])
        seen = tf.scatter_nd(tf.reshape(tf.stack([rows, said], -1), [-1, 2]), tf.ones([tf.size(said)]), [b, 11]) > 0
        logits = tf.where(seen, tf.where(logits < 0, logits * 1.2, logits / 1.2), logits)
        least = tf.math.top_k(logits, 7).values[:, -1:]
        logits = tf.where(logits < least, tf.constant(-np.inf), logits)
        order = tf.argsort(logits, direction="DESCENDING")
        ordered = tf.gather(logits, order, batch_dims=1)
        mass = tf.cumsum(tf.nn.softmax(ordered), axis=-1)
        out = tf.concat([tf.zeros_like(mass[:, :1], tf.bool), mass[:, :-1] > p], -1)
        places = tf.stack([tf.tile(tf.range(b)[:, None], [1, 11]), order], -1)
        removed = tf.scatter_nd(places, tf.cast(out, tf.int32), tf.shape(logits)) > 0
        kept = tf.where(removed, tf.fill(tf.shape(logits), -1e9), logits)
        drawn = tf.random.stateless_categorical(kept, 2, seed, dtype=tf.int32)
        gumbel = -tf.math.log(-tf.math.log(tf.clip_by_value(noise, 1e-6, 1 - 1e-6)))
        return {"drawn": drawn, "kept": kept, "chosen": tf.argmax(kept + gumbel, -1, tf.int32), "entropy": -tf.reduce_sum(tf.math.xlogy(tf.nn.softmax(kept), tf.nn.softmax(kept)), -1), "count": tf.reduce_sum(1 - tf.cast(removed, tf.int32), -1)}
    return {"serving_default": serve}, [{"state": normal(2, 6, seed=s), "said": ints([1, 4, 4], [0, 10, 2]), "seed": ints(s, 5), "temperature": np.float32(0.7), "p": np.float32(0.8), "noise": np.random.default_rng(s).uniform(size=(2, 11)).astype(np.float32)} for s in (1, 2)]


@module("long_attention")
def long(tf, m):
    """Windows of a long text by frames and by shifted blocks, some that see all; hashes of directions sorted into buckets; a band by a diagonal trick of pads and reshapes."""
    weights(tf, m, e=(16, 8), w=(8, 24), r=(8, 2), p=(7, 8), o=(8, 8))

    @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.int32, name="ids"), tf.TensorSpec([None, 16], tf.bool, name="whole")])
    def serve(ids, whole):
        b = tf.shape(ids)[0]
        x = tf.gather(m.e, ids)
        q, k, v = tf.split(tf.tensordot(x, m.w, 1), 3, -1)
        near = lambda t: tf.signal.frame(tf.pad(t, [[0, 0], [3, 3], [0, 0]]), 7, 1, axis=1)
        inside = tf.signal.frame(tf.pad(tf.ones([16]), [[3, 3]]), 7, 1) > 0
        scores = tf.einsum("btd,btkd->btk", q, near(k)) + tf.einsum("btd,kd->btk", q, m.p)
        scores = tf.where(inside[None], scores, -1e9)
        local = tf.einsum("btk,btkd->btd", tf.nn.softmax(scores), near(v))
        full = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
        mixed = tf.where(whole[..., None], full, local)
        chunk = lambda t: tf.reshape(t, [b, 4, 4, 8])
        before = lambda t: tf.concat([tf.roll(chunk(t), 1, 1), chunk(t)], 2)
        blocks = tf.matmul(tf.nn.softmax(tf.matmul(chunk(q), before(k), transpose_b=True)), before(v))
        turned = tf.tensordot(q, m.r, 1)
        bucket = tf.argmax(tf.concat([turned, -turned], -1), -1, tf.int32)
        order = tf.argsort(bucket * 16 + tf.range(16), axis=-1)
        back = tf.argsort(order, axis=-1)
        sorted_ = chunk(tf.gather(q, order, batch_dims=1))
        hashed = tf.matmul(tf.nn.softmax(tf.matmul(sorted_, sorted_, transpose_b=True)), sorted_)
        hashed = tf.gather(tf.reshape(hashed, [b, 16, 8]), back, batch_dims=1)
        offsets = tf.einsum("btd,kd->btk", q, m.p)
        skewed = tf.reshape(tf.pad(offsets, [[0, 0], [0, 0], [1, 0]]), [b, 8, 16])[:, 1:]
        return {"mixed": tf.tensordot(mixed, m.o, 1), "blocks": blocks, "hashed": hashed, "bucket": bucket, "skewed": skewed, "pooled": tf.math.reduce_logsumexp(mixed, 1)}
    return {"serving_default": serve}, [{"ids": ints(list(range(16)), [3] * 8 + [5] * 8), "whole": np.array([[True] + [False] * 15] * 2)}]


@module("latents_in_turn")
def latents(tf, m):
    """Layers whose weights lie in one array and are taken by the number of the turn of a loop; bytes of any length read by a few latents; a head for each task by a switch."""
    weights(tf, m, e=(256, 6), z=(4, 6), q=(3, 6, 6), k=(3, 6, 6), v=(3, 6, 6), f=(3, 6, 12), g=(3, 12, 6), h1=(6, 3), h2=(6, 5))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.uint8, name="bytes"), tf.TensorSpec([], tf.int32, name="task"), tf.TensorSpec([], tf.int32, name="depth")])
    def serve(data, task, depth):
        x = tf.gather(m.e, tf.cast(data, tf.int32)) + tf.sin(tf.cast(tf.range(tf.size(data))[:, None], tf.float32) * tf.exp(-tf.range(6.0)))
        z = tf.identity(m.z)
        for i in tf.range(depth):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(z, tf.TensorShape([4, 6]))])
            seen = tf.cond(i % 2 == 0, lambda: x, lambda: tf.pad(z, [[0, 1], [0, 0]]))
            scores = tf.matmul(z @ m.q[i], seen @ m.k[i], transpose_b=True) / 6 ** 0.5
            z += tf.nn.softmax(scores) @ (seen @ m.v[i])
            z += tf.nn.gelu(z @ m.f[i]) @ m.g[i]
            z = (z - tf.reduce_mean(z, -1, keepdims=True)) / (tf.math.reduce_std(z, -1, keepdims=True) + 1e-3)
        mean = tf.reduce_mean(z, 0)
        out = tf.switch_case(task, [lambda: tf.pad(tf.linalg.matvec(m.h1, mean, transpose_a=True), [[0, 2]]), lambda: tf.linalg.matvec(m.h2, mean, transpose_a=True)])
        return {"out": out, "latents": z, "length": tf.size(data, tf.int64)}
    data = np.frombuffer(b"what is read", np.uint8)
    return {"serving_default": serve}, [{"bytes": data, "task": np.int32(0), "depth": np.int32(3)}, {"bytes": data[:5], "task": np.int32(1), "depth": np.int32(2)}, {"bytes": data[:1], "task": np.int32(1), "depth": np.int32(0)}]


@graph("v1_translation_stack")
def stack(tf, v1, path):
    """dynamic_rnn over stacked cells of version 1 with residuals and dropout that is off, lengths, both ways, and a loop that feeds itself (raw_rnn)."""
    v1.enable_resource_variables()
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells  # tf.nn.rnn_cell asks for Keras 2
    x, n = v1.placeholder(tf.int32, [None, None], "x"), v1.placeholder(tf.int32, [None], "n")
    keep = v1.placeholder_with_default(1.0, [], "keep")
    table = v1.get_variable("table", [15, 4])
    vectors = tf.nn.embedding_lookup(table, x)
    (forward, backward), (first, second) = v1.nn.bidirectional_dynamic_rnn(cells.BasicLSTMCell(4), cells.GRUCell(4), vectors, n, dtype=tf.float32)
    memory = tf.concat([forward, backward], 2)
    layers = [cells.LSTMCell(6, use_peepholes=True, num_proj=5, cell_clip=3.0), cells.ResidualWrapper(cells.LSTMCell(5, forget_bias=0.5)), cells.DropoutWrapper(cells.BasicRNNCell(6), output_keep_prob=keep)]
    top, states = v1.nn.dynamic_rnn(cells.MultiRNNCell(layers), memory, n, dtype=tf.float32)
    state = states[-1]
    out = v1.get_variable("out", [6, 15])
    decoder = cells.GRUCell(6)
    steps = 5

    def loop(t, output, cell_state, loop_state):
        if output is None:
            return t >= steps * tf.ones_like(n), tf.gather(table, tf.ones_like(n)), state, tf.zeros([6]), None
        token = tf.argmax(output @ out, 1, tf.int32)
        done = tf.logical_or(t >= steps * tf.ones_like(n), tf.equal(token, 2))
        following = tf.cond(tf.reduce_all(done), lambda: tf.zeros([tf.shape(n)[0], 4]), lambda: tf.gather(table, token))
        return done, following, cell_state, output, None
    written, last, _ = v1.nn.raw_rnn(decoder, loop)
    decoded = tf.transpose(written.stack(), [1, 0, 2])
    return {"x": x, "n": n}, {"ids": tf.argmax(tf.tensordot(decoded, out, 1), -1), "memory": memory, "top": top, "last": last, "states": tf.concat([first.c, second, states[0].h], 1)}, [
        {"x": ints([3, 5, 1, 7, 0], [9, 2, 0, 0, 0]), "n": ints(4, 2)}, {"x": ints([1, 14]), "n": ints(2)}]
