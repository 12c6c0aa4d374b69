"""Models that rank, forecast and act: crosses and towers of several tasks, histories, features by the statistics of a data set, rollouts, policies, filters."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of
from library_model_rows.modules import module, normal, words
from library_model_rows.sequences import weights

ints = lambda *v, dtype=np.int32: np.array(v, dtype)


@keras_model("factorized_fields")
def fields(tf, keras):
    """One matrix of ids of all fields, moved apart by offsets: first order, second order by squares of sums, a cross net, compressed interactions, a deep part."""
    L, counts = keras.layers, [5, 9, 3, 7]

    class Interactions(L.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(1, 16, 6), initializer="random_normal", name="w")

        def call(self, e):
            outer = tf.einsum("bid,bjd->bdij", e, e)
            z = tf.nn.conv1d(tf.reshape(outer, [-1, 4, 16]), tf.convert_to_tensor(self.w), 1, "VALID")
            square = tf.square(tf.reduce_sum(e, 1)) - tf.reduce_sum(tf.square(e), 1)
            upper = np.triu_indices(4, 1)
            dots = tf.gather(tf.reshape(tf.matmul(e, e, transpose_b=True), [-1, 16]), upper[0] * 4 + upper[1], axis=1)
            return tf.concat([tf.reduce_sum(tf.nn.relu(z), 1), 0.5 * square, dots], -1)

        def compute_output_shape(self, s):
            return s[0], 16

    class Cross(L.Layer):
        def build(self, shape):
            self.u, self.v, self.b = (self.add_weight(shape=s, initializer="random_normal", name=n) for n, s in (("u", (16, 4)), ("v", (4, 16)), ("b", (16,))))

        def call(self, x):
            y = x
            for _ in range(2):
                y = x * (tf.matmul(tf.matmul(y, tf.convert_to_tensor(self.u)), tf.convert_to_tensor(self.v)) + tf.convert_to_tensor(self.b)) + y
            return y

        def compute_output_shape(self, s):
            return s
    ids = keras.Input([4], dtype="int64", name="ids")
    offsets = np.cumsum([0] + counts[:-1])
    moved = layer_of(keras, lambda v: tf.math.floormod(v, counts) + offsets)(ids)
    e = L.Embedding(sum(counts), 4)(moved)
    first = layer_of(keras, lambda v: tf.reduce_sum(v, [1, 2]))(L.Embedding(sum(counts), 1)(moved))
    flat = L.Flatten()(e)
    deep = L.Dense(8, activation="relu")(L.BatchNormalization()(L.Dense(12, activation="relu")(flat)))
    both = L.Concatenate()([Interactions()(e), Cross()(flat), deep])
    score = L.Add()([L.Flatten()(L.Dense(1)(both)), layer_of(keras, lambda v: v[:, None])(first)])
    return keras.Model(ids, {"ctr": L.Activation("sigmoid")(score), "score": score}), [{"ids": ints([1, 8, 2, 6], [104, -3, 7, 0], dtype=np.int64)}]


@module("history_attention")
def history(tf, m):
    """What was seen, by a target's attention with a gate that adapts to the batch's statistics; a causal encoder; the best of a catalogue that were not seen yet."""
    weights(tf, m, e=(30, 6), a=(24, 8), alpha=(8,), o=(8, 1), p=(5, 6), qkv=(6, 18), f=(6, 6), mean=(8,), var=(8,), experts=(3, 18, 6), gates=(2, 18, 3), towers=(2, 6, 1))

    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.int32, name="history"), tf.TensorSpec([None], tf.int32, name="target")])
    def serve(history, target):
        h, t = tf.gather(m.e, history), tf.gather(m.e, target)
        keep = history > 0
        tt = tf.tile(t[:, None], [1, 5, 1])
        x = tf.reshape(tf.concat([tt, h, tt - h, tt * h], -1), [-1, 24]) @ m.a
        p = tf.sigmoid((x - m.mean) * tf.math.rsqrt(tf.abs(m.var) + 1e-9))
        x = p * x + m.alpha * (1.0 - p) * x
        scores = tf.reshape(x @ m.o, [-1, 5])
        attended = tf.squeeze(tf.matmul(tf.where(keep, scores, tf.zeros_like(scores))[:, None], h), 1)
        s = h + m.p
        q, k, v = tf.split(tf.tensordot(s, m.qkv, 1), 3, -1)
        mask = tf.linalg.band_part(tf.ones([5, 5]), -1, 0) * tf.cast(keep, tf.float32)[:, None]
        att = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 6 ** 0.5 - 1e9 * (1 - mask))
        s = s + tf.nn.relu(tf.tensordot(tf.matmul(att, v), m.f, 1))
        last = s[:, -1]
        catalogue = tf.matmul(last, m.e, transpose_b=True)
        seen = tf.reduce_max(tf.one_hot(history, 30, on_value=1.0, off_value=0.0), 1)
        best, items = tf.math.top_k(catalogue - seen * 1e5, 4)
        rest = tf.concat([attended, t, last], -1)
        made = tf.nn.relu(tf.einsum("bi,eij->bej", rest, m.experts))
        tasks = [tf.sigmoid(tf.einsum("be,bej->bj", tf.nn.softmax(rest @ m.gates[i]), made) @ m.towers[i])[:, 0] for i in range(2)]
        return {"click": tasks[0], "buy": tasks[0] * tasks[1], "items": items, "best": best, "attended": attended}
    return {"serving_default": serve}, [{"history": ints([3, 9, 4, 0, 0], [1, 2, 29, 7, 7]), "target": ints(5, 11)}, {"history": ints([0, 0, 0, 0, 0]), "target": ints(1)}]


@module("statistics_of_features")
def statistics(tf, m):
    """Features by what an analysis of a data set found: buckets by quantiles, scores, vocabularies with buckets for the rest, missing values by sparse rows and NaN, hours and weekdays of times."""
    m.words = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["red", "green", "blue"]), tf.range(3, dtype=tf.int64)), 4)
    m.numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([10, 20, 30], tf.int64), tf.constant([0.1, 0.2, 0.3])), 0.0)
    weights(tf, m, w=(10, 4), e=(7, 4), b=(4,))
    edges = np.array([-1.5, -0.4, 0.0, 0.7, 2.0], np.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([None], tf.string, name="color"), tf.TensorSpec([None], tf.int64, name="seconds"), tf.SparseTensorSpec([None, 1], tf.int64)])
    def serve(x, color, seconds, code):
        missing = tf.math.is_nan(x)
        filled = tf.where(missing, tf.constant([0.5, -1.0, 2.0]), x)
        z = (filled - [0.1, 0.2, 0.3]) / tf.sqrt(tf.constant([1.0, 4.0, 0.25]))
        scaled = tf.clip_by_value((filled - tf.constant(-2.0)) / 4.0, 0.0, 1.0)
        bucket = tf.searchsorted(edges, tf.reshape(filled, [-1]), side="right")
        bucket = tf.reshape(bucket, [-1, 3])
        spread = tf.clip_by_value((filled[:, 0] - tf.gather(edges, tf.maximum(bucket[:, 0] - 1, 0))) / (tf.gather(edges, tf.minimum(bucket[:, 0], 4)) - tf.gather(edges, tf.maximum(bucket[:, 0] - 1, 0)) + 1e-6), 0.0, 1.0)
        dense = tf.squeeze(tf.sparse.to_dense(tf.SparseTensor(code.indices, code.values, tf.stack([tf.shape(x, tf.int64)[0], 1])), default_value=-1), 1)
        hour, weekday = (seconds // 3600) % 24, (seconds // 86400 + 4) % 7
        angle = tf.cast(hour, tf.float32) * np.float32(2 * np.pi / 24)
        ids = m.words.lookup(color)
        features = tf.concat([z, scaled, tf.stack([tf.sin(angle), tf.cos(angle), spread, m.numbers.lookup(dense)], 1)], 1)
        logits = features @ m.w + tf.gather(m.e, ids) + tf.cast(tf.one_hot(weekday, 4), tf.float32)
        return {"p": tf.nn.softmax(logits + m.b), "bucket": bucket, "ids": ids, "hour": hour, "weekday": weekday, "missing": missing, "label": tf.gather(tf.constant(["a", "b", "c", "d"]), tf.argmax(logits, 1)), "log": tf.math.log1p(tf.abs(filled)) * tf.sign(filled)}
    x = normal(3, 3)
    x[1, 2] = x[0, 0] = np.nan
    return {"serving_default": serve}, [{"x": x, "color": words("red", "violet", "blue"), "seconds": ints(0, 1700000000, 86399, dtype=np.int64), "code": ints([0, 0], [2, 0], dtype=np.int64), "code_1": ints(20, 99, dtype=np.int64), "code_2": ints(3, 1, dtype=np.int64)}]


@module("probabilistic_forecast")
def forecast(tf, m):
    """Rollouts of a recurrent net: scaled by the mean of what was seen, lags picked from what was drawn itself, many samples at once, quantiles of them; drawn by a seed that folds in the step."""
    weights(tf, m, k=(5, 24), r=(6, 24), b=(24,), mu=(6, 1), sigma=(6, 1))

    def cell(x, h, c):
        i, f, g, o = tf.split(x @ m.k + h @ m.r + m.b, 4, -1)
        c = tf.nn.sigmoid(f) * c + tf.nn.sigmoid(i) * tf.nn.tanh(g)
        return tf.nn.sigmoid(o) * tf.nn.tanh(c), c

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="past"), tf.TensorSpec([None, 8 + 4, 2], tf.float32, name="covariates"), tf.TensorSpec([2], tf.int32, name="seed")])
    def serve(past, covariates, seed):
        b = tf.shape(past)[0]
        scale = tf.reduce_mean(tf.abs(past), 1, keepdims=True) + 1e-3
        z = past / scale
        h, c = tf.zeros([b, 6]), tf.zeros([b, 6])
        for t in tf.range(4, 8):
            h, c = cell(tf.concat([tf.stack([z[:, t - 1], z[:, t - 2], z[:, t - 4]], 1), covariates[:, t]], -1), h, c)
        samples = 10
        many = lambda v: tf.repeat(v, samples, axis=0)
        h, c, z, covariates = many(h), many(c), many(z), many(covariates)
        drawn = tf.TensorArray(tf.float32, 4, element_shape=[None])
        for t in tf.range(4):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(z, tf.TensorShape([None, None]))])
            x = tf.concat([tf.gather(z, [7 + t, 6 + t, 4 + t], axis=1), covariates[:, 8 + t]], -1)
            h, c = cell(x, h, c)
            mean, sd = (h @ m.mu)[:, 0], tf.math.softplus(h @ m.sigma)[:, 0]
            value = mean + sd * tf.random.stateless_normal([b * samples], tf.stack([seed[0], seed[1] + t]))
            drawn = drawn.write(t, value)
            z = tf.concat([z, value[:, None]], 1)
        paths = tf.reshape(tf.transpose(drawn.stack()), [b, samples, 4]) * scale[:, None]
        ordered = tf.sort(paths, 1)
        return {"paths": paths, "median": (ordered[:, 4] + ordered[:, 5]) / 2, "low": ordered[:, 1], "high": ordered[:, -2]}
    return {"serving_default": serve}, [{"past": normal(2, 8) + 3, "covariates": normal(2, 12, 2), "seed": ints(3, 4)}, {"past": normal(1, 8) + 5, "covariates": normal(1, 12, 2, seed=4), "seed": ints(0, 1)}]


@keras_model("patched_series")
def patched(tf, keras):
    """A series made regular by its own mean and spread, which come back at the end; patches that overlap as tokens; channels by themselves; a trend apart by a moving mean."""
    L = keras.layers
    inputs = keras.Input([32, 3], name="series")
    mean = layer_of(keras, lambda v: tf.stop_gradient(tf.reduce_mean(v, 1, keepdims=True)))(inputs)
    spread = layer_of(keras, lambda v: tf.sqrt(tf.math.reduce_variance(v, 1, keepdims=True) + 1e-5))(inputs)
    x = layer_of(keras, lambda v: tf.math.divide(v[0] - v[1], v[2]))([inputs, mean, spread])
    trend = L.AveragePooling1D(5, 1, padding="valid")(layer_of(keras, lambda v: tf.concat([tf.repeat(v[:, :1], 2, axis=1), v, tf.repeat(v[:, -1:], 2, axis=1)], 1))(x))
    rest = L.Subtract()([x, trend])
    patches = layer_of(keras, lambda v: tf.reshape(tf.signal.frame(tf.pad(tf.transpose(v, [0, 2, 1]), [[0, 0], [0, 0], [0, 4]], "SYMMETRIC"), 8, 4), [-1, 8, 8]))(rest)
    y = L.Dense(12)(patches)
    y = layer_of(keras, lambda v: v + np.linspace(-1, 1, 96, dtype=np.float32).reshape(8, 12))(y)
    for _ in range(2):
        y = L.BatchNormalization()(L.Add()([y, L.MultiHeadAttention(3, 4)(y, y)]))
        y = L.BatchNormalization()(L.Add()([y, L.Dense(12)(L.Dense(20, activation="gelu")(y))]))
    y = layer_of(keras, lambda v: tf.transpose(tf.reshape(v, [-1, 3, 6]), [0, 2, 1]))(L.Dense(6)(L.Flatten()(y)))
    t = L.Permute((2, 1))(L.Dense(6)(L.Permute((2, 1))(trend)))
    return keras.Model(inputs, layer_of(keras, lambda v: (v[0] + v[1]) * v[2] + v[3])([y, t, spread, mean])), [{"series": normal(2, 32, 3) * 3 + 10}]


@module("policy_with_heads")
def policy(tf, m):
    """Observations of a picture and numbers, a recurrent state by names, actions of several heads with what is not allowed masked, drawn by seeds and greedy; values by a distribution's atoms."""
    weights(tf, m, k=(4, 4, 2, 6), d=(6 * 9 + 5, 12), r=(20, 32), move=(8, 4), mean=(8, 2), logstd=(2,), atoms=(8, 4 * 11), value=(8, 1), where=(8, 8))

    @tf.function(input_signature=[{"picture": tf.TensorSpec([None, 16, 16, 2], tf.uint8, name="picture"), "numbers": tf.TensorSpec([None, 5], tf.float32, name="numbers")}, tf.TensorSpec([None, 4], tf.bool, name="allowed"),
                                  (tf.TensorSpec([None, 8], tf.float32, name="h"), tf.TensorSpec([None, 8], tf.float32, name="c")), tf.TensorSpec([2], tf.int32, name="seed"), tf.TensorSpec([], tf.float32, name="epsilon")])
    def act(observation, allowed, state, seed, epsilon):
        x = tf.nn.relu(tf.nn.conv2d(tf.image.convert_image_dtype(observation["picture"], tf.float32), m.k, 4, "VALID"))
        x = tf.reshape(tf.nn.max_pool2d(x, 2, 1, "VALID"), [-1, 54])
        x = tf.nn.tanh(tf.concat([x, tf.clip_by_value(observation["numbers"], -10, 10)], 1) @ m.d)
        z = tf.concat([x, state[0]], 1) @ m.r
        i, g, f, o = tf.split(z, 4, 1)
        c = state[1] * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        logits = tf.where(allowed, h @ m.move, tf.float32.min)
        greedy = tf.argmax(logits, -1, tf.int32)
        seeds = tf.random.experimental.stateless_split(seed, 3)
        b = tf.shape(h)[0]
        explored = tf.where(tf.random.stateless_uniform([b], seeds[0]) < epsilon, tf.random.stateless_uniform([b], seeds[1], 0, 4, tf.int32), greedy)
        noise = tf.random.stateless_normal([b, 2], seeds[2])
        raw = h @ m.mean + tf.exp(tf.clip_by_value(m.logstd, -5.0, 2.0)) * noise
        squashed = tf.tanh(raw)
        logp = tf.reduce_sum(-0.5 * noise ** 2 - m.logstd - 0.5 * np.log(2 * np.pi) - tf.math.log(1 - squashed ** 2 + 1e-6), -1)
        atoms = tf.nn.softmax(tf.reshape(h @ m.atoms, [-1, 4, 11]))
        q = tf.reduce_sum(atoms * tf.linspace(-5.0, 5.0, 11), -1)
        place = tf.sigmoid(h @ m.where)
        p = tf.nn.softmax(logits)
        return {"action": {"move": greedy, "explored": explored, "force": squashed}, "logp": logp + tf.gather(tf.nn.log_softmax(logits), greedy, batch_dims=1), "q": q, "value": tf.squeeze(h @ m.value, -1), "state": (h, c),
                "entropy": -tf.reduce_sum(tf.where(allowed, p * tf.math.log(p + 1e-8), 0.0), -1), "place": tf.unravel_index(tf.argmax(place, -1), [2, 4])}
    flat = {"picture": np.random.default_rng(0).integers(0, 256, (2, 16, 16, 2)).astype(np.uint8), "numbers": normal(2, 5)}

    def served(picture, numbers, allowed, h, c, seed, epsilon):
        return {"/".join(map(str, path)): v for path, v in flatten(act({"picture": picture, "numbers": numbers}, allowed, (h, c), seed, epsilon))}

    def flatten(v, path=()):
        items = v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, tuple) else None
        return [(path, v)] if items is None else [x for k, part in items for x in flatten(part, path + (k,))]
    specs = [tf.TensorSpec([None, 16, 16, 2], tf.uint8, name="picture"), tf.TensorSpec([None, 5], tf.float32, name="numbers"), tf.TensorSpec([None, 4], tf.bool, name="allowed"), tf.TensorSpec([None, 8], tf.float32, name="h"),
             tf.TensorSpec([None, 8], tf.float32, name="c"), tf.TensorSpec([2], tf.int32, name="seed"), tf.TensorSpec([], tf.float32, name="epsilon")]
    return {"serving_default": tf.function(served, input_signature=specs)}, [flat | {"allowed": np.array([[True, False, True, True], [False, False, False, True]]), "h": normal(2, 8), "c": normal(2, 8, seed=1), "seed": ints(4, 2), "epsilon": np.float32(0.3)}]


@module("tree_search")
def search(tf, m):
    """A search in a tree of tables: a descent by upper bounds until a leaf, an expansion by a net, values back to the root; the visits as a policy."""
    weights(tf, m, d=(6, 3, 6), p=(6, 3), v=(6, 1))

    @tf.function(input_signature=[tf.TensorSpec([6], tf.float32, name="root"), tf.TensorSpec([], tf.int32, name="simulations")])
    def serve(root, simulations):
        size = 16
        states = tf.tensor_scatter_nd_update(tf.zeros([size, 6]), [[0]], root[None])
        children, visits, total = tf.fill([size, 3], -1), tf.zeros([size, 3]), tf.zeros([size, 3])
        prior = tf.tensor_scatter_nd_update(tf.zeros([size, 3]), [[0]], tf.nn.softmax(root[None] @ m.p))
        used = tf.constant(1)
        while used <= simulations and used < size:
            node, path, depth = tf.constant(0), tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[2], clear_after_read=False), tf.constant(0)
            going = tf.constant(True)
            while going:
                n = visits[node]
                bound = tf.math.divide_no_nan(total[node], n) + 1.25 * prior[node] * tf.sqrt(tf.reduce_sum(n) + 1e-8) / (1 + n)
                action = tf.argmax(bound, output_type=tf.int32)
                path = path.write(depth, tf.stack([node, action]))
                depth += 1
                child = children[node, action]
                going = child >= 0
                node = tf.where(going, child, node)
            edge = path.read(depth - 1)
            state = tf.tanh(tf.linalg.matvec(m.d[:, edge[1]], states[edge[0]], transpose_a=True))
            states = tf.tensor_scatter_nd_update(states, tf.reshape(used, [1, 1]), state[None])
            prior = tf.tensor_scatter_nd_update(prior, tf.reshape(used, [1, 1]), tf.nn.softmax(state[None] @ m.p))
            children = tf.tensor_scatter_nd_update(children, edge[None], used[None])
            value = tf.tanh(tf.reduce_sum(state * m.v[:, 0]))
            places = path.stack()
            visits = tf.tensor_scatter_nd_add(visits, places, tf.ones([depth]))
            total = tf.tensor_scatter_nd_add(total, places, tf.fill([depth], value))
            used += 1
        return {"policy": visits[0] / tf.reduce_sum(visits[0]), "value": tf.reduce_sum(total[0]) / tf.reduce_sum(visits[0]), "action": tf.argmax(visits[0]), "children": children, "used": used}
    return {"serving_default": serve}, [{"root": normal(6), "simulations": np.int32(7)}, {"root": normal(6, seed=2), "simulations": np.int32(3)}]
