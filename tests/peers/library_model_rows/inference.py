"""What stands around and between layers when models answer: features, labels, counters, choices, maps and scans, sparse and ragged rows, counting and sorting, pictures and sound."""
import numpy as np

from library_model_rows.keras_models import keras_model, named
from library_model_rows.modules import module, normal, words
from library_model_rows.rows import stranger
from library_model_rows.version_one import graph

ints = lambda *v, dtype=np.int32: np.array(v, dtype)


@keras_model("feature_layers")
def features(tf, keras):
    """Each preprocessing layer of numbers, by itself; no texts, so that it is a file of builtins."""
    L = keras.layers
    i = named(keras, age=([1], "float32"), plan=([1], "int64"), tags=([3], "int64"), size=([4], "float32"))
    norm = L.Normalization(axis=-1, mean=[1.0, 2, 3, 4], variance=[1.0, 4, 9, 16])
    bins = L.Discretization(bin_boundaries=[18.0, 30.0, 65.0])(i["age"])
    out = {"norm": norm(i["size"]), "bins": bins,
           "one": L.CategoryEncoding(num_tokens=4, output_mode="one_hot")(bins), "many": L.CategoryEncoding(num_tokens=9, output_mode="multi_hot")(i["tags"]),
           "count": L.CategoryEncoding(num_tokens=9, output_mode="count")(i["tags"]), "looked": L.IntegerLookup(vocabulary=[3, 5, 7], num_oov_indices=1)(i["plan"]),
           "rescaled": L.Rescaling(0.5, 1.0)(i["size"])}
    return keras.Model(i, out), [{"age": np.array([[33.0], [70]], np.float32), "plan": ints([5], [6], dtype=np.int64), "tags": ints([1, 2, 2], [8, 0, 3], dtype=np.int64), "size": normal(2, 4)}]


@keras_model("video_recurrent")
def video(tf, keras):
    """A time series of pictures: the same convolution for each, ConvLSTM over them, and one by one below it."""
    L = keras.layers
    inputs = keras.Input([5, 8, 8, 2], name="frames")
    x = L.TimeDistributed(L.Conv2D(4, 3, padding="same", activation="relu"))(inputs)
    x = L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(x)
    x = L.TimeDistributed(L.MaxPooling2D())(L.BatchNormalization()(x))
    y = L.TimeDistributed(L.Flatten())(x)
    last = L.ConvLSTM2D(2, 3, go_backwards=True)(x)
    return keras.Model(inputs, {"each": L.TimeDistributed(L.Dense(2))(y), "last": last, "cell": L.Bidirectional(L.SimpleRNN(3))(y)}), [{"frames": normal(2, 5, 8, 8, 2)}]


@keras_model("masked_series")
def series(tf, keras):
    L = keras.layers
    inputs = keras.Input([6, 3], name="x")
    x = L.Masking(0.0)(inputs)
    x = L.GRU(4, return_sequences=True)(x)
    code = L.LSTM(5)(x)
    y = L.LSTM(4, return_sequences=True, recurrent_activation="hard_sigmoid")(L.RepeatVector(4)(code))
    y = L.Conv1DTranspose(3, 3, strides=2)(L.Permute((2, 1))(y))
    return keras.Model(inputs, [code, L.Cropping1D(1)(y), L.UpSampling1D(2)(y), L.ZeroPadding1D(2)(y)]), [{"x": np.concatenate([normal(2, 4, 3), np.zeros((2, 2, 3), np.float32)], 1)}]


@module("labelled_classifier")
def labelled(tf, m):
    """Texts as results: names of the best classes, a threshold, and one text for all."""
    m.w, m.names = tf.Variable(normal(4, 6)), tf.constant(["cat", "dog", "bird", "fish", "horse", "none"])

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def serve(x):
        p = tf.nn.softmax(x @ m.w)
        scores, best = tf.math.top_k(p, 3)
        sure = tf.where(scores[:, :1] > 0.5, tf.gather(m.names, best[:, :1]), "unsure")
        return {"labels": tf.gather(m.names, best), "scores": scores, "label": sure, "classes": tf.tile(m.names[None], [tf.shape(x)[0], 1]), "version": tf.constant("v1")}
    return {"serving_default": serve}, [{"x": normal(2, 4)}, {"x": normal(1, 4, seed=2) * 9}]


@module("shared_state_signatures")
def shared(tf, m):
    """Signatures that share weights and state: answer and count, take in an example, read what was counted, begin again."""
    m.w, m.mean, m.steps = tf.Variable(normal(3, 2)), tf.Variable(tf.zeros(3)), tf.Variable(0, dtype=tf.int64)
    m.seen, m.ring = tf.Variable(tf.zeros(5, tf.int32)), tf.Variable(tf.zeros([4, 3]))
    spec = tf.TensorSpec([1, 3], tf.float32, name="x")

    @tf.function(input_signature=[spec])
    def serve(x):
        m.steps.assign_add(1)
        y = tf.nn.sigmoid((x - m.mean) @ m.w)
        label = tf.argmax(y, 1, output_type=tf.int32)
        m.seen.assign(tf.tensor_scatter_nd_add(m.seen, label[:, None], [1]))
        return {"y": y, "steps": m.steps.read_value()}

    @tf.function(input_signature=[spec])
    def learn(x):
        m.mean.assign(0.9 * m.mean + 0.1 * x[0])
        m.ring.assign(tf.concat([m.ring[1:], x], 0))
        return {"mean": m.mean.read_value(), "smooth": tf.reduce_mean(m.ring, 0)}

    @tf.function(input_signature=[])
    def report():
        return {"seen": m.seen.read_value(), "steps": m.steps.read_value(), "often": tf.argmax(m.seen)}

    @tf.function(input_signature=[])
    def reset():
        m.steps.assign(0)
        m.seen.assign(tf.zeros_like(m.seen))
        return {"done": tf.constant(True)}
    x = normal(1, 3)
    return {"serving_default": serve, "learn": learn, "report": report, "reset": reset}, {
        "serving_default": [{"x": x}, {"x": -x}], "learn": [{"x": x}, {"x": 2 * x}], "report": [{}], "reset": [{}]}


@module("choices")
def choices(tf, m):
    """switch_case, case and cond in each other, with loops inside, and results of several types."""
    m.w = tf.Variable(normal(3, 3, 3))

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="mode"), tf.TensorSpec([], tf.bool, name="deep")])
    def serve(x, mode, deep):
        def half():
            y = x
            while tf.reduce_max(tf.abs(y)) > 0.25:
                y = y / 2
            return y, tf.constant(7)
        head = tf.switch_case(mode, [lambda: (x @ m.w[0], tf.constant(1)), half, lambda: tf.cond(deep, lambda: (tf.sin(x), mode), lambda: (tf.cos(x), -mode))], default=lambda: (tf.zeros_like(x), tf.constant(-1)))
        tail = tf.case([(tf.reduce_sum(x) > 3, lambda: tf.cast(head[1], tf.int64)), (deep, lambda: tf.argmax(x[0]))], default=lambda: tf.constant(9, tf.int64))
        if deep:
            x, total = tf.reverse(x, [1]), tf.size(x)
            for row in x:
                total += tf.cast(row[0] > 0, tf.int32)
        else:
            total = tf.constant(0)
        return {"y": head[0], "kind": head[1], "tail": tail, "total": total, "x": x}
    return {"serving_default": serve}, [{"x": normal(2, 3, seed=k), "mode": np.int32(k), "deep": np.bool_(d)} for k in (0, 1, 2, 5) for d in (False, True)]


@module("maps_and_scans")
def scans(tf, m):
    m.w = tf.Variable(normal(3, 3) * 0.4)

    @tf.function(input_signature=[tf.TensorSpec([4, 5, 3], tf.float32, name="x"), tf.TensorSpec([4], tf.int32, name="n")])
    def serve(x, n):
        rows = tf.map_fn(lambda a: (tf.reduce_sum(a[0][:2]) * tf.cast(a[1], tf.float32), a[1] + 1), (x, n), fn_output_signature=(tf.float32, tf.int32))
        scanned = tf.scan(lambda h, v: tf.tanh(h @ m.w + v), tf.transpose(x, [1, 0, 2]), initializer=tf.zeros([4, 3]))
        back = tf.scan(lambda a, v: a * 0.5 + v, x, reverse=True)
        masked = tf.map_fn(lambda a: tf.where(tf.range(5)[:, None] < a[1], a[0], 0.0), (x, n), fn_output_signature=tf.float32)
        return {"sums": rows[0], "next": rows[1], "scanned": scanned, "back": back, "masked": masked, "folded": tf.foldl(lambda a, v: a + v * v, x), "right": tf.foldr(lambda a, v: a * 0.3 - v, x),
                "vector": tf.vectorized_map(lambda a: tf.reduce_max(a @ m.w, 0), x)}
    return {"serving_default": serve}, [{"x": normal(4, 5, 3), "n": ints(1, 5, 0, 3)}]


@module("growing_decoder")
def growing(tf, m):
    """Greedy decoding whose sequence grows by a concatenation, until the end comes or the limit."""
    m.e, m.o, m.p = tf.Variable(normal(9, 6)), tf.Variable(normal(6, 9)), tf.Variable(normal(12, 6) * 0.3)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="prompt"), tf.TensorSpec([], tf.int32, name="limit")])
    def serve(prompt, limit):
        ids, done = prompt, tf.zeros([tf.shape(prompt)[0]], tf.bool)

        def more(ids, done):
            return (tf.shape(ids)[1] < limit) & ~tf.reduce_all(done)

        def step(ids, done):
            x = tf.gather(m.e, ids) + m.p[:tf.shape(ids)[1]]
            score = tf.matmul(x, x, transpose_b=True)
            score += (1 - tf.linalg.band_part(tf.ones_like(score), -1, 0)) * -1e9
            y = (tf.nn.softmax(score) @ x)[:, -1] @ m.o
            token = tf.where(done, 0, tf.argmax(y, -1, output_type=tf.int32))
            return tf.concat([ids, token[:, None]], 1), done | (token == 2)
        ids, done = tf.while_loop(more, step, [ids, done], shape_invariants=[tf.TensorShape([None, None]), tf.TensorShape([None])])
        return {"ids": ids, "done": done, "length": tf.reduce_sum(tf.cast(ids != 0, tf.int32), 1)}
    return {"serving_default": serve}, [{"prompt": ints([1, 3], [4, 5]), "limit": np.int32(8)}, {"prompt": ints([7]), "limit": np.int32(11)}]


@module("sparse_rows")
def sparse(tf, m):
    m.table, m.w = tf.Variable(normal(10, 4)), tf.Variable(normal(6, 3))

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 6], tf.float32), tf.SparseTensorSpec([None, None], tf.int64)])
    def serve(values, ids):
        weights = tf.SparseTensor(ids.indices, tf.cast(ids.values, tf.float32) * 0.1 + 0.5, ids.dense_shape)
        return {"product": tf.sparse.sparse_dense_matmul(values, m.w), "sum": tf.sparse.reduce_sum(values, 1), "dense": tf.sparse.to_dense(values),
                "mean": tf.nn.embedding_lookup_sparse(m.table, ids, None, combiner="mean"), "weighted": tf.nn.embedding_lookup_sparse(m.table, ids, weights, combiner="sqrtn"),
                "safe": tf.nn.safe_embedding_lookup_sparse(m.table, ids, combiner="sum"), "many": tf.sparse.to_dense(tf.sparse.reorder(ids), default_value=-1)}
    return {"serving_default": serve}, [{"values": np.array([[0, 1], [1, 4], [1, 5]], np.int64), "values_1": np.array([1.5, 2.5, -1], np.float32), "values_2": np.array([2, 6], np.int64),
                                         "ids": np.array([[0, 0], [0, 1], [1, 0]], np.int64), "ids_1": np.array([3, 9, 0], np.int64), "ids_2": np.array([2, 2], np.int64)}]


@module("ragged_bags")
def ragged(tf, m):
    """Rows of their own lengths, from a dense matrix and its lengths, as texts are pooled."""
    m.e = tf.Variable(normal(12, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids"), tf.TensorSpec([None], tf.int32, name="lengths")])
    def serve(ids, lengths):
        rows = tf.RaggedTensor.from_tensor(ids, lengths)
        vectors = tf.gather(m.e, rows)
        scores = tf.reduce_sum(vectors * vectors, -1)
        return {"mean": tf.reduce_mean(vectors, 1), "most": tf.reduce_max(scores, 1), "padded": vectors.to_tensor(0.0), "soft": tf.ragged.map_flat_values(tf.exp, scores).to_tensor(),
                "starts": rows.row_starts(), "ids": rows.values, "doubled": tf.concat([rows, rows], 1).to_tensor(-1), "lengths": rows.row_lengths(), "mask": tf.sequence_mask(lengths, 5)}
    return {"serving_default": serve}, [{"ids": ints([1, 2, 3, 0, 0], [4, 5, 6, 7, 8], [9, 0, 0, 0, 0]), "lengths": ints(3, 5, 1)}]


@module("counting_and_sorting")
def counting(tf, m):
    @tf.function(input_signature=[tf.TensorSpec([8], tf.float32, name="x"), tf.TensorSpec([8], tf.int32, name="k")])
    def serve(x, k):
        values, index = tf.unique(k)
        seen, _, counts = tf.unique_with_counts(k)
        edges = tf.sort(x)
        return {"sorted": edges, "falling": tf.sort(x, direction="DESCENDING"), "order": tf.argsort(k, stable=True), "places": tf.searchsorted(edges, x, side="right"), "lower": tf.searchsorted(edges, x + 0.1),
                "counts": tf.math.bincount(k, minlength=6, maxlength=6), "weighted": tf.math.bincount(k, weights=x, minlength=6, maxlength=6), "binary": tf.math.bincount(tf.reshape(k, [2, 4]), minlength=6, maxlength=6, axis=-1, binary_output=True),
                "values": values, "index": index, "often": counts, "seen": seen, "histogram": tf.histogram_fixed_width(x, [-2.0, 2.0], 5), "cumsum": tf.cumsum(x, exclusive=True, reverse=True),
                "cumprod": tf.math.cumprod(x), "logsum": tf.math.cumulative_logsumexp(x), "segments": tf.math.unsorted_segment_mean(x, k, 6), "largest": tf.math.segment_max(x, tf.sort(k)),
                "confusion": tf.math.confusion_matrix(k, tf.reverse(k, [0]), 6), "hit": tf.math.in_top_k(k[:2], tf.reshape(x, [2, 4])[:, :4] * 1.0, 2), "best": tf.math.top_k(k, 3).indices,
                "shared": tf.sets.intersection(k[None, :4], k[None, 4:]).values, "only": tf.sets.difference(k[None, :4], k[None, 4:]).values, "all": tf.sets.union(k[None, :4], k[None, 4:]).values,
                "median": tf.sort(x)[4], "buckets": tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]), "left": tf.raw_ops.ListDiff(x=k, y=k[:3])[0], "inverse": tf.math.invert_permutation(tf.argsort(x)),
                "nth": tf.raw_ops.NthElement(input=x, n=3), "repeated": tf.repeat(x[:4], k[:4])}
    return {"serving_default": serve}, [{"x": normal(8), "k": ints(0, 3, 1, 1, 5, 2, 3, 1)}, {"x": normal(8, seed=3), "k": ints(2, 0, 2, 3, 2, 2, 4, 4)}]


@module("cumulative_segments")
def segments(tf, m):
    """The same where the number of rows is free, as graphs and point sets come."""
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([None], tf.int64, name="to"), tf.TensorSpec([], tf.int32, name="count")])
    def serve(x, to, count):
        soft = tf.exp(x - tf.gather(tf.math.unsorted_segment_max(x, to, count), to))
        soft /= tf.gather(tf.math.unsorted_segment_sum(soft, to, count), to)
        order = tf.argsort(to, stable=True)
        return {"soft": soft, "mean": tf.math.unsorted_segment_mean(x, to, count), "sorted": tf.math.segment_mean(tf.gather(x, order), tf.gather(to, order)), "degree": tf.math.bincount(tf.cast(to, tf.int32), minlength=count, dtype=tf.float32),
                "cumulative": tf.cumsum(x, 0), "scattered": tf.scatter_nd(to[:, None], x, [6, 3]), "added": tf.tensor_scatter_nd_add(tf.ones([6, 3]), to[:, None], x),
                "most": tf.tensor_scatter_nd_max(tf.zeros([6, 3]), to[:, None], x), "pairs": tf.where(to[:, None] == to[None]), "root": tf.math.unsorted_segment_sqrt_n(x, to, count)}
    return {"serving_default": serve}, [{"x": normal(5, 3), "to": ints(0, 2, 2, 4, 0, dtype=np.int64), "count": np.int32(6)}, {"x": normal(2, 3), "to": ints(1, 1, dtype=np.int64), "count": np.int32(2)}]


@module("picture_pipeline")
def pictures(tf, m):
    """An image as cameras give it, through what preprocessing has."""
    @tf.function(input_signature=[tf.TensorSpec([1, 12, 10, 3], tf.uint8, name="image")])
    def serve(image):
        x = tf.image.convert_image_dtype(image, tf.float32)
        sized = {k: tf.image.resize(x, [7, 9], method=k) for k in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian")}
        return sized | {"smooth": tf.image.resize(x, [5, 5], antialias=True), "kept": tf.image.resize_with_pad(x, 8, 8), "cut": tf.image.resize_with_crop_or_pad(x, 8, 14), "central": tf.image.central_crop(x, 0.5),
                        "standard": tf.image.per_image_standardization(x), "hue": tf.image.adjust_hue(x, 0.1), "saturation": tf.image.adjust_saturation(x, 1.5), "contrast": tf.image.adjust_contrast(x, 0.7),
                        "gamma": tf.image.adjust_gamma(x, 0.5), "yuv": tf.image.rgb_to_yuv(x), "hsv": tf.image.rgb_to_hsv(x), "rgb": tf.image.hsv_to_rgb(x), "gray": tf.image.rgb_to_grayscale(image), "edges": tf.image.sobel_edges(x),
                        "patches": tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), "variation": tf.image.total_variation(x), "turned": tf.image.rot90(x), "flipped": tf.image.flip_up_down(image),
                        "crops": tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 0.5]], [0, 0], [4, 4]), "psnr": tf.image.psnr(x, x * 0.9, 1.0), "quality": tf.image.adjust_brightness(image, 0.1)}
    return {"serving_default": serve}, [{"image": np.random.default_rng(1).integers(0, 256, (1, 12, 10, 3)).astype(np.uint8)}]


@module("seeded_augmentation")
def augmentation(tf, m):
    """Random at inference, by a seed that the caller gives."""
    @tf.function(input_signature=[tf.TensorSpec([8, 8, 3], tf.float32, name="image"), tf.TensorSpec([2], tf.int32, name="seed")])
    def serve(image, seed):
        x = tf.image.stateless_random_flip_left_right(image, seed)
        x = tf.image.stateless_random_brightness(x, 0.2, seed + 1)
        return {"image": x, "crop": tf.image.stateless_random_crop(image, [5, 5, 3], seed), "noise": image + tf.random.stateless_normal([8, 8, 3], seed) * 0.1, "kept": tf.nn.experimental.stateless_dropout(image, 0.3, seed),
                "whole": tf.random.stateless_uniform([4], seed, 0, 10, tf.int32)}
    return {"serving_default": serve}, [{"image": normal(8, 8, 3), "seed": ints(1, 2)}, {"image": normal(8, 8, 3), "seed": ints(7, 5)}]


@module("fixed_noise")
def noise(tf, m):
    """Random by constant seeds: the same numbers for all requests."""
    @tf.function(input_signature=[tf.TensorSpec([4, 6], tf.float32, name="x")])
    def serve(x):
        mask = tf.random.stateless_uniform([6], [3, 4]) > 0.5
        z = tf.random.stateless_normal([4, 2], [1, 2])
        return {"y": tf.where(mask, x, 0.0), "z": tf.concat([x, z], 1), "order": tf.gather(x, tf.argsort(tf.random.stateless_uniform([4], [9, 9]))), "drawn": tf.random.stateless_categorical(tf.zeros([1, 5]), 3, [5, 6])}
    return {"serving_default": serve}, [{"x": normal(4, 6)}]


@module("mel_features")
def mel(tf, m):
    @tf.function(input_signature=[tf.TensorSpec([1, 1600], tf.float32, name="sound")])
    def serve(sound):
        s = tf.signal
        emphasized = tf.concat([sound[:, :1], sound[:, 1:] - 0.97 * sound[:, :-1]], 1)
        spectrum = s.stft(emphasized, 400, 160, 512, pad_end=True)
        power = tf.abs(spectrum) ** 2
        logmel = tf.math.log(tf.tensordot(power, s.linear_to_mel_weight_matrix(40, 257, 16000, 80.0, 7600.0), 1) + 1e-6)
        smooth = tf.scan(lambda a, v: 0.9 * a + 0.1 * v, tf.transpose(logmel, [1, 0, 2]))
        return {"mfcc": s.mfccs_from_log_mel_spectrograms(logmel)[..., :13], "logmel": logmel, "smooth": smooth, "energy": tf.reduce_sum(s.frame(sound, 400, 160) ** 2, -1), "phase": tf.math.angle(spectrum)[:, :, 1:40] * 0 + 1,
                "back": s.inverse_stft(s.stft(sound, 256, 128), 256, 128, window_fn=s.inverse_stft_window_fn(128)), "dct": s.dct(logmel, type=2, norm="ortho"), "zero": tf.reduce_mean(tf.cast(sound[:, 1:] * sound[:, :-1] < 0, tf.float32), 1)}
    return {"serving_default": serve}, [{"sound": normal(1, 1600) * 0.3}]


@module("integers_and_bits")
def bits(tf, m):
    """Hashes of numbers, times of day, fields of bits."""
    @tf.function(input_signature=[tf.TensorSpec([4], tf.int64, name="seconds"), tf.TensorSpec([4], tf.int32, name="code")])
    def serve(seconds, code):
        hour, day = seconds // 3600 % 24, (seconds // 86400 + 4) % 7
        turn = tf.cast(hour, tf.float32) * (2 * np.pi / 24)
        b = tf.bitwise
        h = b.bitwise_xor(code, b.right_shift(code, 3)) * 0x2C9277B5
        return {"hour": hour, "day": day, "sin": tf.sin(turn), "cos": tf.cos(turn), "one": tf.one_hot(day, 7), "low": b.bitwise_and(code, 15), "set": b.bitwise_or(code, 64), "up": b.left_shift(code, 2), "not": b.invert(code), "hash": h,
                "bucket": tf.math.floormod(h, 10), "float": tf.bitcast(code, tf.float32) * 0 == 0, "each": tf.cast(b.bitwise_and(b.right_shift(code[:, None], tf.range(8)), 1), tf.float32), "cut": tf.truncatemod(-code, 7),
                "late": seconds > 1_700_000_000, "least": tf.minimum(seconds, tf.int64.max - 1), "texts": tf.strings.to_hash_bucket_fast(tf.strings.as_string(code), 100) * 0}
    return {"serving_default": serve}, [{"seconds": ints(0, 1_600_000_000, 1_764_350_000, 86399, dtype=np.int64), "code": ints(0, 5, 1000, 77)}]


@module("viterbi_tagger")
def viterbi(tf, m):
    m.w, m.t = tf.Variable(normal(5, 4)), tf.Variable(normal(4, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 7, 5], tf.float32, name="x")])
    def serve(x):
        score = x @ m.w

        def forward(state, at):
            best = state[0][:, :, None] + m.t
            return tf.reduce_max(best, 1) + at, tf.argmax(best, 1, output_type=tf.int32)
        first = (score[:, 0], tf.zeros_like(score[:, 0], tf.int32))
        scores, back = tf.scan(forward, tf.transpose(score[:, 1:], [1, 0, 2]), initializer=first)
        last = tf.argmax(scores[-1], 1, output_type=tf.int32)
        path = tf.scan(lambda tag, pointers: tf.gather(pointers, tag, batch_dims=1), back, initializer=last, reverse=True)
        alpha = tf.scan(lambda a, at: tf.reduce_logsumexp(a[:, :, None] + m.t, 1) + at, tf.transpose(score[:, 1:], [1, 0, 2]), initializer=score[:, 0])
        return {"tags": tf.transpose(tf.concat([path, last[None]], 0)), "score": tf.reduce_max(scores[-1], 1), "norm": tf.reduce_logsumexp(alpha[-1], -1)}
    return {"serving_default": serve}, [{"x": normal(2, 7, 5)}, {"x": normal(1, 7, 5, seed=1)}]


@module("running_metrics")
def metrics(tf, m):
    """What evaluation keeps beside the model, as signatures of their own."""
    import tf_keras as keras
    m.w = tf.Variable(normal(3, 1))
    m.auc, m.mean, m.accuracy = keras.metrics.AUC(num_thresholds=5), keras.metrics.Mean(), keras.metrics.BinaryAccuracy()

    @tf.function(input_signature=[tf.TensorSpec([4, 3], tf.float32, name="x"), tf.TensorSpec([4, 1], tf.float32, name="y")])
    def update(x, y):
        p = tf.sigmoid(x @ m.w)
        m.auc.update_state(y, p), m.mean.update_state(p), m.accuracy.update_state(y, p)
        return {"auc": m.auc.result(), "mean": m.mean.result(), "accuracy": m.accuracy.result()}
    serve = tf.function(lambda x: {"p": tf.sigmoid(x @ m.w)}, input_signature=[tf.TensorSpec([4, 3], tf.float32, name="x")])
    y = np.array([[1], [0], [1], [0]], np.float32)
    return {"serving_default": serve, "update": update}, {"serving_default": [{"x": normal(4, 3)}], "update": [{"x": normal(4, 3), "y": y}, {"x": normal(4, 3, seed=1), "y": y}]}


@module("geometry")
def geometry(tf, m):
    """Rotations, distances, hulls of boxes, as trackers and simulators have them; of six dimensions in places."""
    @tf.function(input_signature=[tf.TensorSpec([2, 4], tf.float32, name="quaternion"), tf.TensorSpec([2, 5, 3], tf.float32, name="points")])
    def serve(quaternion, points):
        w, x, y, z = tf.unstack(tf.math.l2_normalize(quaternion, -1), axis=-1)
        turn = tf.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1)
        turn = tf.reshape(turn, [-1, 3, 3])
        moved = tf.einsum("bij,bnj->bni", turn, points)
        apart = tf.norm(moved[:, :, None] - moved[:, None], axis=-1)
        grid = tf.stack(tf.meshgrid(tf.range(3.0), tf.range(2.0), indexing="ij"), -1)
        box = tf.concat([tf.reduce_min(moved, 1), tf.reduce_max(moved, 1)], -1)
        pairs = tf.reshape(moved, [2, 1, 5, 1, 3, 1]) * tf.reshape(turn, [2, 1, 1, 3, 1, 3])
        return {"moved": moved, "apart": apart, "nearest": tf.math.top_k(-apart, 2).indices, "cross": tf.linalg.cross(moved[:, 0], moved[:, 1]), "angle": tf.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), "grid": grid, "box": box,
                "det": tf.linalg.det(turn), "inverse": tf.linalg.inv(turn), "trace": tf.linalg.trace(turn), "pairs": pairs, "norms": tf.linalg.norm(pairs, axis=[3, 5]), "turned": tf.transpose(pairs, [5, 3, 1, 0, 4, 2]),
                "solved": tf.linalg.solve(turn, tf.transpose(moved, [0, 2, 1])), "acos": tf.acos(tf.clip_by_value((tf.linalg.trace(turn) - 1) / 2, -1.0, 1.0))}
    return {"serving_default": serve}, [{"quaternion": normal(2, 4), "points": normal(2, 5, 3)}]


@graph("v1_estimator_columns")
def columns(tf, v1, path):
    """A canned linear and deep classifier's graph, by columns, as Estimators exported it, with placeholders for tensors."""
    age, job, town = v1.placeholder(tf.float32, [None, 1], "age"), v1.placeholder(tf.string, [None, 1], "job"), v1.placeholder(tf.string, [None, 1], "town")
    c = tf.feature_column
    numeric = c.numeric_column("age", normalizer_fn=lambda x: (x - 40.0) / 10.0)
    buckets = c.bucketized_column(c.numeric_column("age"), [20.0, 40.0, 60.0])
    jobs = c.categorical_column_with_vocabulary_list("job", ["cook", "clerk"], num_oov_buckets=1)
    towns = c.categorical_column_with_hash_bucket("town", 10)
    crossed = c.crossed_column(["job", "town"], 16)
    tensors = {"age": age, "job": job, "town": town}
    deep = v1.feature_column.input_layer(tensors, [numeric, buckets, c.indicator_column(jobs), c.embedding_column(towns, 4), c.embedding_column(jobs, 3, combiner="sqrtn")])
    wide = v1.feature_column.linear_model(tensors, [jobs, towns, crossed, buckets])
    w = v1.get_variable("w", [deep.shape[1], 1])
    p = tf.sigmoid(deep @ w + wide)
    both = tf.concat([1 - p, p], 1)
    names = tf.constant(["no", "yes"])
    return tensors, {"probabilities": both, "class_ids": tf.argmax(both, 1)[:, None], "classes": tf.gather(names, tf.argmax(both, 1))[:, None], "all_classes": tf.tile(names[None], [tf.shape(age)[0], 1]), "logits": deep @ w + wide}, [
        {"age": np.array([[33.0], [70]], np.float32), "job": words("cook", "king")[:, None], "town": words("a", "b")[:, None]}]


@graph("v1_partitioned_numbers")
def partitioned(tf, v1, path):
    """Tables of embeddings in parts, counts in a variable of version 1, labels that are looked up by number."""
    ids, x = v1.placeholder(tf.int64, [None, 3], "ids"), v1.placeholder(tf.float32, [None, 4], "x")
    table = v1.get_variable("table", [10, 4], partitioner=v1.fixed_size_partitioner(3))
    count = v1.get_variable("count", [], tf.int64, initializer=v1.zeros_initializer(), trainable=False)
    rows = v1.nn.embedding_lookup(table, ids, partition_strategy="div")
    h = v1.layers.batch_normalization(v1.layers.dense(tf.concat([tf.reduce_mean(rows, 1), x], 1), 5, activation=tf.nn.relu)) if hasattr(v1, "layers") and hasattr(v1.layers, "dense") else tf.concat([tf.reduce_mean(rows, 1), x], 1)
    with tf.control_dependencies([v1.assign_add(count, 1)]):
        y = tf.nn.softmax(tf.identity(h))
    parts = tf.dynamic_partition(x, tf.cast(ids[:, 0] % 2, tf.int32), 2)
    joined = tf.dynamic_stitch(tf.dynamic_partition(tf.range(tf.shape(x)[0]), tf.cast(ids[:, 0] % 2, tf.int32), 2), [parts[0] * 2, parts[1] * 3])
    return {"ids": ids, "x": x}, {"y": y, "joined": joined, "mod": v1.nn.embedding_lookup([tf.constant(normal(4, 2)), tf.constant(normal(4, 2, seed=1))], ids % 8, partition_strategy="mod")}, [
        {"ids": ints([1, 2, 9], [4, 0, 3], dtype=np.int64), "x": normal(2, 4)}]


@stranger("tensorflow", "iterative_solvers")
def solvers(path):
    """Loops until something converges: power iteration, conjugate gradients, Newton's, with conditions on numbers."""
    import tensorflow as tf
    m = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([4, 4], tf.float32, name="a"), tf.TensorSpec([4], tf.float32, name="b")])
    def serve(a, b):
        a = a @ tf.transpose(a) + tf.eye(4)
        x, r = tf.zeros(4), b
        p, steps = r, tf.constant(0)
        while tf.norm(r) > 1e-4 and steps < 20:
            ap = tf.linalg.matvec(a, p)
            rr = tf.reduce_sum(r * r)
            alpha = rr / tf.reduce_sum(p * ap)
            x, r = x + alpha * p, r - alpha * ap
            p, steps = r + tf.reduce_sum(r * r) / rr * p, steps + 1
        v = tf.ones([4]) / 2
        for _ in tf.range(30):
            v = tf.math.l2_normalize(tf.linalg.matvec(a, v))
        root = tf.constant(1.0)
        for _ in range(8):
            root = 0.5 * (root + 5.0 / root)
        return {"x": x, "value": tf.tensordot(v, tf.linalg.matvec(a, v), 1), "root": root, "power": tf.linalg.matmul(a, a), "lower": tf.linalg.cholesky(a), "logdet": tf.linalg.logdet(a), "triangular": tf.linalg.triangular_solve(tf.linalg.band_part(a, -1, 0), b[:, None])}
    tf.saved_model.save(m, str(path), signatures={"serving_default": serve})
    return [{"a": normal(4, 4), "b": normal(4, seed=1)}]
