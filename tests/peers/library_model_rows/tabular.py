"""Recommenders, tables and graphs: lookups, hashes, crosses, ragged and sparse features, retrieval, TabNet, message passing, trees."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of, named
from library_model_rows.modules import module, normal, words
from library_model_rows.sequences import weights


@keras_model("tab_transformer")
def tab(tf, keras):
    L = keras.layers
    i = named(keras, job=([1], "string"), town=([1], "string"), age=([3], "float32"))
    tokens = []
    for k, v in (("job", ["cook", "clerk", "smith"]), ("town", ["a", "b"])):
        tokens.append(L.Embedding(5, 8)(L.StringLookup(vocabulary=v)(i[k])))
    x = L.Concatenate(axis=1)(tokens)
    for _ in range(2):
        x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4)(x, x))
        x = L.LayerNormalization()(x + L.Dense(8)(L.Dense(16, activation="gelu")(x)))
    y = L.Concatenate()([L.Flatten()(x), L.LayerNormalization()(i["age"])])
    return keras.Model(i, L.Dense(1, activation="sigmoid")(L.Dense(8, activation="selu")(y))), [{"job": words("cook", "zzz")[:, None], "town": words("b", "")[:, None], "age": normal(2, 3)}]


@keras_model("tab_net")
def tabnet(tf, keras):
    L = keras.layers

    class Sparsemax(L.Layer):
        def call(self, z):
            z = z - tf.reduce_mean(z, -1, keepdims=True)
            ordered = tf.sort(z, direction="DESCENDING", axis=-1)
            total = tf.cumsum(ordered, -1)
            k = tf.range(1, z.shape[-1] + 1, dtype=tf.float32)
            inside = 1 + k * ordered > total
            n = tf.reduce_sum(tf.cast(inside, tf.int32), -1)
            rows = tf.range(tf.shape(z)[0])
            tau = (tf.gather_nd(total, tf.stack([rows, n - 1], 1)) - 1) / tf.cast(n, tf.float32)
            return tf.maximum(z - tau[:, None], 0.0)
    inputs = keras.Input([6], name="features")
    x = L.BatchNormalization()(inputs)
    prior, out, at = tf.ones_like if False else None, None, L.Dense(4)(x)
    for _ in range(2):
        score = L.BatchNormalization()(L.Dense(6)(at))
        mask = Sparsemax()(score if prior is None else L.Multiply()([score, prior]))
        prior = layer_of(keras, lambda v: 1.3 - v)(mask)
        h = L.Dense(16)(L.Multiply()([mask, x]))
        h = L.Multiply()([h[:, :8], L.Activation("sigmoid")(h[:, 8:])])
        d, at = L.ReLU()(h[:, :4]), h[:, 4:]
        out = d if out is None else L.Add()([out, d])
    return keras.Model(inputs, [L.Dense(2, activation="softmax")(out), mask]), [{"features": normal(3, 6)}]


@keras_model("wide_deep_crosses")
def wide(tf, keras):
    L = keras.layers
    i = named(keras, user=([1], "string"), tags=([None], "string"), price=([1], "float32"), day=([1], "int64"))
    user = L.Hashing(8)(i["user"])
    tags = L.StringLookup(vocabulary=["x", "y", "z"], output_mode="multi_hot", num_oov_indices=1)(i["tags"])
    counts = L.StringLookup(vocabulary=["x", "y", "z"], output_mode="count")(i["tags"])
    price = L.Discretization(bin_boundaries=[0.5, 2.0], output_mode="one_hot")(i["price"])
    day = L.CategoryEncoding(num_tokens=7, output_mode="one_hot")(i["day"])
    emb = L.Flatten()(L.Embedding(8, 4, embeddings_regularizer="l2")(user))
    wide = L.Concatenate()([tags, price, day])
    cross = L.Dot(axes=-1, normalize=True)([L.Dense(4)(wide), emb])
    deep = L.Dense(4, activation="relu")(L.Concatenate()([emb, counts, cross]))
    return keras.Model(i, {"click": L.Dense(1, activation="sigmoid")(L.Concatenate()([wide, deep])), "user": emb}), [
        {"user": words("u1", "u2")[:, None], "tags": np.array([[b"x", b"q"], [b"z", b"z"]], object), "price": np.array([[1.0], [3.0]], np.float32), "day": np.array([[0], [6]], np.int64)}]


@module("two_tower_retrieval")
def towers(tf, m):
    weights(tf, m, u=(6, 8), w=(8, 5), i=(12, 5))
    m.users = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["ann", "bob", "cy"], tf.constant([0, 1, 2], tf.int64)), 3)
    m.names = tf.Variable([b"item %d" % k for k in range(12)], dtype=tf.string)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="user"), tf.TensorSpec([None, None], tf.int32, name="seen")])
    def serve(user, seen):
        q = tf.math.l2_normalize(tf.nn.relu(tf.gather(m.u, m.users.lookup(user))) @ m.w, -1)
        scores = tf.matmul(q, tf.math.l2_normalize(m.i, -1), transpose_b=True)
        hidden = tf.reduce_max(tf.one_hot(seen, 12), 1)
        values, index = tf.math.top_k(scores - 1e3 * hidden, 4)
        return {"scores": values, "items": tf.gather(m.names, index), "index": index}

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="q")])
    def neighbours(q):
        centres = tf.reshape(m.i, [3, 4, 5])
        q = q @ m.w
        best = tf.argmin(tf.reduce_sum(tf.math.squared_difference(q[:, None], tf.reduce_mean(centres, 1)), -1), 1, tf.int32)
        members = tf.gather(centres, best)
        d = tf.norm(q[:, None] - members, axis=-1)
        return {"nearest": best * 4 + tf.argmin(d, 1, tf.int32), "distances": d, "order": tf.argsort(d)}
    return {"serving_default": serve, "neighbours": neighbours}, {"serving_default": [{"user": words("bob", "zed"), "seen": np.array([[1, 2], [-1, 3]], np.int32)}], "neighbours": [{"q": normal(3, 8)}]}


@module("dlrm_bags")
def bags(tf, m):
    """Embedding bags by offsets, sparse lookups with combiners, dot interactions with a triangle taken out, a position bias table."""
    weights(tf, m, e=(10, 4), f=(6, 4), b=(3, 4), t=(7, 1))
    low = np.array([i * 3 + j for i in range(3) for j in range(i)], np.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="dense"), tf.TensorSpec([None], tf.int32, name="ids"), tf.TensorSpec([None], tf.int32, name="rows"), tf.TensorSpec([None, 2], tf.int32, name="pair")])
    def serve(dense, ids, rows, pair):
        n = tf.shape(dense)[0]
        bag = tf.math.unsorted_segment_sum(tf.gather(m.e, ids), rows, n)
        mean = tf.math.unsorted_segment_mean(tf.gather(m.e, ids), rows, n)
        other = tf.reduce_sum(tf.gather(m.f, pair), 1) + mean
        z = tf.stack([tf.nn.relu(dense @ m.b), bag, other], 1)
        dots = tf.gather(tf.reshape(tf.matmul(z, z, transpose_b=True), [-1, 9]), low, axis=1)
        return {"p": tf.sigmoid(tf.concat([dense, dots, dense[:, :1]], 1) @ m.t), "square": 0.5 * (tf.square(tf.reduce_sum(z, 1)) - tf.reduce_sum(tf.square(z), 1))}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int64, name="indices"), tf.TensorSpec([None], tf.int64, name="values"), tf.TensorSpec([2], tf.int64, name="shape"), tf.TensorSpec([None], tf.float32, name="w")])
    def combined(indices, values, shape, w):
        sp, sw = tf.SparseTensor(indices, values, shape), tf.SparseTensor(indices, w, shape)
        return {c: tf.nn.embedding_lookup_sparse(m.e, sp, sw, combiner=c) for c in ("sum", "mean", "sqrtn")} | {"safe": tf.nn.safe_embedding_lookup_sparse(m.e, sp, combiner="mean", default_id=1)}
    i = lambda *v: np.array(v, np.int32)
    return {"serving_default": serve, "combined": combined}, {
        "serving_default": [{"dense": normal(2, 3), "ids": i(1, 2, 9, 4), "rows": i(0, 0, 1, 1), "pair": i([1, 2], [5, 0])}],
        "combined": [{"indices": np.array([[0, 0], [0, 2], [1, 1]], np.int64), "values": np.array([1, 5, 3], np.int64), "shape": np.array([2, 3], np.int64), "w": np.array([1, 0.5, 2], np.float32)}]}


@module("ragged_features")
def ragged(tf, m):
    weights(tf, m, e=(10, 4))
    m.t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([1, 2, 3], tf.int64)), 0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        tokens = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), "[^a-z ]", ""))
        rows = tf.gather(m.e, tf.ragged.map_flat_values(m.t.lookup, tokens))
        cut = tokens[:, :2]
        return {"mean": tf.reduce_mean(rows, 1), "max": tf.reduce_max(rows.to_tensor(), 1), "lengths": tokens.row_lengths(), "first": cut.to_tensor("", shape=[None, 2]), "dense": rows.to_tensor(0.0, shape=[None, 5, 4]),
                "mask": tf.sequence_mask(tokens.row_lengths(), 5), "joined": tf.strings.reduce_join(tokens, -1, separator="_"), "hash": tf.strings.to_hash_bucket_fast(tokens, 11).to_tensor()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="values"), tf.TensorSpec([None], tf.int64, name="splits")])
    def parts(values, splits):
        r = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
        return {"sum": tf.reduce_sum(r, 1), "max": tf.reduce_max(r, 1), "dense": r.to_tensor(), "ids": r.value_rowids(), "lengths": r.row_lengths(), "twice": (r * 2.0).values, "softmax": tf.exp(r - tf.reduce_max(r, 1)[:, None]).values}
    return {"serving_default": serve, "parts": parts}, {"serving_default": [{"text": words("A b, zz", "c", "b a c a")}], "parts": [{"values": normal(5), "splits": np.array([0, 2, 3, 5], np.int64)}]}


@module("graph_network")
def graphs(tf, m):
    """Message passing: gathers along edges, segment sums and softmaxes, GCN, GAT, GRU updates, pooling of several graphs."""
    weights(tf, m, w=(5, 6), a=(6, 1), b=(6, 1), c=(6, 3), e=(13, 6))

    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.float32, name="nodes"), tf.TensorSpec([None, 2], tf.int32, name="edges"), tf.TensorSpec([None, 1], tf.float32, name="features"), tf.TensorSpec([None], tf.int32, name="graph")])
    def serve(nodes, edges, features, graph):
        n = tf.shape(nodes)[0]
        source, target = edges[:, 0], edges[:, 1]
        h = nodes @ m.w
        degree = tf.math.unsorted_segment_sum(tf.ones_like(source, tf.float32), target, n)
        norm = tf.math.rsqrt(tf.maximum(tf.gather(degree, source) * tf.gather(degree, target), 1.0))
        gcn = tf.math.unsorted_segment_sum(tf.gather(h, source) * norm[:, None], target, n)
        score = tf.nn.leaky_relu(tf.gather(h @ m.a, source) + tf.gather(h @ m.b, target), 0.2)
        top = tf.math.unsorted_segment_max(score, target, n)
        weight = tf.exp(score - tf.gather(top, target))
        weight /= tf.gather(tf.math.unsorted_segment_sum(weight, target, n), target) + 1e-9
        gat = tf.math.unsorted_segment_sum(weight * tf.gather(h, source), target, n)
        message = tf.tanh(tf.concat([tf.gather(gcn, source), tf.gather(gat, target), features], 1) @ m.e)
        h = h + tf.tensor_scatter_nd_add(tf.zeros_like(h), target[:, None], message)
        pooled = tf.math.segment_mean(h, graph)
        return {"y": tf.nn.softmax(pooled @ m.c), "h": h, "most": tf.math.segment_max(h, graph), "prod": tf.math.unsorted_segment_prod(h, graph, 2), "least": tf.math.unsorted_segment_min(h, graph, 2)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="adjacency"), tf.TensorSpec([None, 5], tf.float32, name="x")])
    def dense(adjacency, x):
        a = adjacency + tf.eye(tf.shape(adjacency)[0])
        d = tf.linalg.diag(tf.math.rsqrt(tf.reduce_sum(a, 1)))
        laplacian = tf.linalg.matmul(d, tf.linalg.matmul(a, d))
        t0, t1 = x, laplacian @ x
        t2 = 2.0 * laplacian @ t1 - t0
        trace = tf.linalg.trace(laplacian)
        return {"y": tf.concat([t0, t1, t2], 1), "trace": trace, "part": tf.linalg.diag_part(laplacian), "set": tf.linalg.set_diag(laplacian, tf.reduce_sum(a, 1)), "upper": tf.linalg.band_part(laplacian, 0, -1)}
    i = lambda *v: np.array(v, np.int32)
    a = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32)
    return {"serving_default": serve, "dense": dense}, {"serving_default": [{"nodes": normal(4, 5), "edges": i([0, 1], [1, 2], [2, 0], [3, 2]), "features": normal(4, 1), "graph": i(0, 0, 1, 1)}], "dense": [{"adjacency": a, "x": normal(3, 5)}]}


@module("soft_trees")
def trees(tf, m):
    """Oblivious trees by one-hots, a forest walked by gathers in a loop, a Naive Bayes and an RBF machine."""
    weights(tf, m, s=(3, 6), l=(2, 8, 2), v=(7, 6))
    m.feature, m.threshold, m.child = (tf.constant(v) for v in (np.array([0, 2, 1, -1, -1, -1, -1], np.int32), np.array([0.1, -0.2, 0.3, 1, 2, 3, 4], np.float32), np.array([1, 3, 5, 3, 4, 5, 6], np.int32)))

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="x")])
    def serve(x):
        bits = tf.sigmoid(tf.einsum("bf,df->bd", x, m.s) * 3)
        both = tf.stack([bits, 1 - bits], -1)
        leaf = tf.reshape(tf.einsum("bi,bj,bk->bijk", both[:, 0], both[:, 1], both[:, 2]), [-1, 8])
        y = tf.einsum("bl,tlc->btc", leaf, m.l)
        at = tf.zeros([tf.shape(x)[0]], tf.int32)
        for _ in tf.range(3):
            f = tf.gather(m.feature, at)
            value = tf.gather(x, tf.maximum(f, 0), axis=1, batch_dims=1)
            step = tf.cast(value > tf.gather(m.threshold, at), tf.int32)
            at = tf.where(f < 0, at, tf.gather(m.child, at) + step)
        rbf = tf.exp(-0.5 * tf.reduce_sum((x[:, None] - m.v[None]) ** 2, -1))
        return {"y": y, "leaf": at, "value": tf.gather(m.threshold, at), "rbf": rbf, "bayes": tf.reduce_logsumexp(tf.math.log(rbf + 1e-6), 1), "votes": tf.math.bincount(at, minlength=7, maxlength=7)}
    return {"serving_default": serve}, [{"x": normal(4, 6)}]
