"""Text, speech and time series: classifiers, translators that decode in the graph, CTC, forecasters, caches that stream."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of, named
from library_model_rows.modules import module, normal, words

ids = lambda *shape, high=20, seed=0: np.random.default_rng(seed).integers(1, high, shape)


@keras_model("text_birnn")
def classifier(tf, keras):
    """TextVectorization, a masked embedding, LSTM and GRU both ways, attention over steps."""
    L = keras.layers
    vectorize = L.TextVectorization(max_tokens=30, output_mode="int", output_sequence_length=10, ngrams=None)
    vectorize.adapt(np.array(["the movie was good", "a bad bad film", "good good acting"]))
    inputs = keras.Input([1], dtype="string", name="text")
    x = L.Embedding(30, 8, mask_zero=True)(vectorize(inputs))
    x = L.Bidirectional(L.LSTM(5, return_sequences=True))(x)
    x = L.Bidirectional(L.GRU(4, return_sequences=True), merge_mode="sum")(x)
    x = L.Attention(use_scale=True)([x, x])
    return keras.Model(inputs, L.Dense(1, activation="sigmoid")(L.GlobalAveragePooling1D()(x))), [{"text": words("the Movie, was good!", "zzz film")[:, None]}, {"text": words("")[:, None]}]


@keras_model("token_birnn_mask")
def tagger(tf, keras):
    L = keras.layers
    inputs = keras.Input([None], dtype="int32", name="ids")
    x = L.Embedding(20, 6, mask_zero=True)(inputs)
    x = L.Bidirectional(L.LSTM(4, return_sequences=True))(x)
    h, state = L.GRU(5, return_state=True)(x)
    return keras.Model(inputs, [L.TimeDistributed(L.Dense(3, activation="softmax"))(x), h, state]), [
        {"ids": np.array([[3, 4, 5, 0, 0], [1, 2, 3, 4, 5]], np.int32)}, {"ids": np.array([[7, 0]], np.int32)}]


@keras_model("text_cnn_dense")
def kim(tf, keras):
    L = keras.layers
    inputs = keras.Input([12], dtype="int32", name="ids")
    x = L.SpatialDropout1D(0.2)(L.Embedding(20, 6)(inputs))
    pools = [L.GlobalMaxPooling1D()(L.Conv1D(4, k, activation="relu", padding=p)(x)) for k, p in ((2, "valid"), (3, "same"), (4, "causal"))]
    y = L.Conv1D(4, 3, dilation_rate=2, padding="causal")(x)
    y = L.UpSampling1D(2)(L.AveragePooling1D(2)(L.ZeroPadding1D(1)(y)))
    y = L.Cropping1D((1, 2))(L.LocallyConnected1D(2, 2)(y) if hasattr(L, "LocallyConnected1D") else y)
    z = L.Conv1DTranspose(3, 3, strides=2, padding="same")(y)
    return keras.Model(inputs, [L.Dense(3)(L.Concatenate()([*pools, L.Flatten()(y)])), z]), [{"ids": ids(2, 12).astype(np.int32)}]


def weights(tf, m, **shapes):
    for i, (k, s) in enumerate(shapes.items()):
        setattr(m, k, tf.Variable(normal(*s, seed=i) * 0.5))


@module("seq2seq_attention")
def translator(tf, m):
    """A GRU encoder, Bahdanau attention, greedy decoding until the end comes; and a fixed number of steps."""
    weights(tf, m, e=(20, 6), d=(15, 6), wx=(6, 18), wh=(6, 18), ux=(12, 18), uh=(6, 18), a=(6, 5), b=(6, 5), v=(5, 1), o=(12, 15))

    def cell(x, h, kx, kh):
        z, r, c = tf.split(x @ kx, 3, -1)
        hz, hr, hc = tf.split(h @ kh, 3, -1)
        z, r = tf.sigmoid(z + hz), tf.sigmoid(r + hr)
        return z * h + (1 - z) * tf.tanh(c + r * hc)

    def encode(source):
        x = tf.gather(m.e, source)
        out = tf.TensorArray(tf.float32, tf.shape(source)[1])
        h = tf.zeros([tf.shape(source)[0], 6])
        for t in tf.range(tf.shape(source)[1]):
            h = cell(x[:, t], h, m.wx, m.wh)
            out = out.write(t, h)
        return tf.transpose(out.stack(), [1, 0, 2]), h

    def step(token, h, memory, mask):
        scores = tf.squeeze(tf.tanh(memory @ m.a + (h @ m.b)[:, None]) @ m.v, -1)
        weight = tf.nn.softmax(tf.where(mask, scores, -1e9))
        context = tf.reduce_sum(weight[..., None] * memory, 1)
        h = cell(tf.concat([tf.gather(m.d, token), context], -1), h, m.ux, m.uh)
        return tf.concat([h, context], -1) @ m.o, h, weight

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="source")])
    def serve(source):
        memory, h = encode(source)
        mask, n = source > 0, tf.shape(source)[0]
        token, done = tf.ones([n], tf.int32), tf.zeros([n], tf.bool)
        out = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[None])
        t = tf.constant(0)
        while t < 8 and not tf.reduce_all(done):
            logits, h, _ = step(token, h, memory, mask)
            token = tf.where(done, 0, tf.argmax(logits, -1, tf.int32))
            done = done | (token == 2)
            out = out.write(t, token)
            t += 1
        return {"tokens": tf.transpose(out.stack()), "steps": t}

    @tf.function(input_signature=[tf.TensorSpec([2, 5], tf.int32, name="source")])
    def fixed(source):
        memory, h = encode(source)
        token, out, maps = tf.ones([2], tf.int32), [], []
        for _ in range(3):
            logits, h, weight = step(token, h, memory, source > 0)
            token = tf.argmax(logits, -1, tf.int32)
            out.append(logits), maps.append(weight)
        return {"logits": tf.stack(out, 1), "maps": tf.stack(maps, 1)}
    a = {"source": np.array([[3, 4, 5, 0, 0], [6, 7, 8, 9, 10]], np.int32)}
    return {"serving_default": serve, "fixed": fixed}, {"serving_default": [a, {"source": np.array([[3, 9, 1]], np.int32)}], "fixed": [a]}


@module("decoder_kv_cache")
def cached(tf, m):
    """One step of a decoder: caches go in and out, or stay in variables between requests; rotary positions; a causal prefill."""
    d, heads = 8, 2
    weights(tf, m, e=(20, d), q=(d, d), k=(d, d), v=(d, d), o=(d, d), up=(d, 16), gate=(d, 16), down=(16, d))
    m.keys, m.values, m.at = tf.Variable(tf.zeros([1, 6, d])), tf.Variable(tf.zeros([1, 6, d])), tf.Variable(0)

    def rotate(x, position):
        x = tf.reshape(x, [*x.shape[:-1], heads, d // heads])
        rate = 1.0 / 10000.0 ** (tf.range(0, d // heads, 2, tf.float32) / (d // heads))
        angle = tf.cast(position, tf.float32)[:, None] * rate
        c, s = tf.cos(angle)[None, :, None], tf.sin(angle)[None, :, None]
        a, b = tf.split(x, 2, -1)
        return tf.concat([a * c - b * s, a * s + b * c], -1)

    def norm(x):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6)

    def block(x, keys, values, mask, position):
        q = rotate(norm(x) @ m.q, position)
        k = rotate(keys @ m.k, tf.range(keys.shape[1]))
        v = tf.reshape(values @ m.v, [1, -1, heads, d // heads])
        scores = tf.einsum("bqhd,bkhd->bhqk", q, k) / (d // heads) ** 0.5 + mask
        y = x + tf.reshape(tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores), v), [1, -1, d]) @ m.o
        h = norm(y)
        return y + (tf.nn.silu(h @ m.gate) * (h @ m.up)) @ m.down

    @tf.function(input_signature=[tf.TensorSpec([1, 6], tf.int32, name="ids")])
    def prefill(ids):
        x = tf.gather(m.e, ids)
        mask = (1.0 - tf.linalg.band_part(tf.ones([6, 6]), -1, 0)) * -1e9
        return {"logits": tf.matmul(block(x, norm(x), norm(x), mask, tf.range(6)), m.e, transpose_b=True)}

    @tf.function(input_signature=[tf.TensorSpec([1], tf.int32, name="id"), tf.TensorSpec([], tf.int32, name="at"), tf.TensorSpec([1, 6, d], tf.float32, name="cache")])
    def decode(id, at, cache):
        x = tf.gather(m.e, id)[:, None]
        cache = tf.tensor_scatter_nd_update(cache, [[0, at]], norm(x)[0])
        mask = tf.where(tf.range(6) <= at, 0.0, -1e9)
        return {"logits": tf.matmul(block(x, cache, cache, mask, at[None]), m.e, transpose_b=True), "cache": cache}

    @tf.function(input_signature=[tf.TensorSpec([1], tf.int32, name="id")])
    def stream(id):
        x = tf.gather(m.e, id)[:, None]
        here = tf.one_hot(m.at, 6)[None, :, None]
        m.keys.assign(m.keys * (1 - here) + norm(x) * here)
        m.values.assign(tf.where(here > 0, norm(x), m.values))
        mask = tf.where(tf.range(6) <= m.at, 0.0, -1e9)
        y = block(x, m.keys, m.values, mask, m.at[None])
        m.at.assign_add(1)
        return {"next": tf.argmax(tf.matmul(y, m.e, transpose_b=True)[:, 0], -1)}

    @tf.function(input_signature=[])
    def reset():
        m.at.assign(0)
        m.keys.assign(tf.zeros_like(m.keys))
        return {"at": m.at.read_value()}
    i = lambda *v: np.array(v, np.int32)
    return {"prefill": prefill, "decode": decode, "stream": stream, "reset": reset}, {
        "prefill": [{"ids": i([3, 4, 5, 6, 7, 8])}], "decode": [{"id": i(3), "at": np.int32(2), "cache": normal(1, 6, d)}], "stream": [{"id": i(3)}, {"id": i(4)}, {"id": i(5)}], "reset": [{}]}


@module("greedy_transformer")
def greedy(tf, m):
    """Generates with tf.while_loop, shape invariants and a prompt of any length; top k and temperature without randomness."""
    weights(tf, m, e=(20, 8), p=(32, 8), qkv=(8, 24), o=(8, 8))

    def logits(ids):
        n = tf.shape(ids)[1]
        x = tf.nn.embedding_lookup(m.e, ids) + m.p[:n]
        q, k, v = tf.split(tf.tensordot(x, m.qkv, 1), 3, -1)
        q, k, v = (tf.transpose(tf.reshape(t, [-1, n, 2, 4]), [0, 2, 1, 3]) for t in (q, k, v))
        i = tf.range(n)
        scores = tf.where(i[:, None] >= i, tf.matmul(q, k, transpose_b=True) * 0.5, -1e9)
        y = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [-1, n, 8])
        return tf.einsum("bnd,vd->bnv", x + tf.tensordot(y, m.o, 1), m.e)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="prompt"), tf.TensorSpec([], tf.int32, name="steps")])
    def serve(prompt, steps):
        def body(i, ids):
            last = logits(ids)[:, -1]
            best = tf.math.top_k(last, 3)
            last = tf.where(last < best.values[:, -1:], -1e9, last) / 0.7
            return i + 1, tf.concat([ids, tf.argmax(last, -1, tf.int32)[:, None]], 1)
        _, ids = tf.while_loop(lambda i, ids: i < steps, body, [0, prompt], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])])
        return {"ids": ids}
    return {"serving_default": serve}, [{"prompt": ids(2, 3).astype(np.int32), "steps": np.int32(4)}, {"prompt": ids(1, 1).astype(np.int32), "steps": np.int32(0)}]


@module("ctc_speech")
def speech(tf, m):
    """Log mel features, context windows, a recurrent stack by hand, CTC's greedy decoder."""
    mel = tf.signal.linear_to_mel_weight_matrix(10, 33, 8000, 80.0, 3800.0)
    weights(tf, m, w=(30, 12), b=(12,), wx=(12, 16), wh=(4, 16), o=(4, 6))

    @tf.function(input_signature=[tf.TensorSpec([None, 320], tf.float32, name="wave")])
    def serve(wave):
        emphasis = tf.concat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], 1)
        power = tf.abs(tf.signal.stft(emphasis, 64, 32, 64, window_fn=tf.signal.hamming_window)) ** 2
        x = tf.math.log(tf.tensordot(power, mel, 1) + 1e-6)
        mean, variance = tf.nn.moments(x, [1], keepdims=True)
        x = (x - mean) / tf.sqrt(variance + 1e-5)
        padded = tf.pad(x, [[0, 0], [1, 1], [0, 0]])
        x = tf.concat([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], -1)
        x = tf.minimum(tf.nn.relu(tf.tensordot(x, m.w, 1) + m.b), 20.0)
        h = c = tf.zeros([tf.shape(x)[0], 4])
        out = []
        for t in range(x.shape[1]):
            i, f, g, o = tf.split(x[:, t] @ m.wx + h @ m.wh, 4, -1)
            c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            out.append(h @ m.o)
        logits = tf.stack(out)
        return {"logits": tf.nn.log_softmax(logits), "best": tf.transpose(tf.argmax(logits, -1, tf.int32))}

    @tf.function(input_signature=[tf.TensorSpec([None, None, 6], tf.float32, name="logits"), tf.TensorSpec([None], tf.int32, name="lengths")])
    def decode(logits, lengths):
        (decoded,), score = tf.nn.ctc_greedy_decoder(logits, lengths)
        return {"tokens": tf.sparse.to_dense(decoded, -1), "score": score}
    return {"serving_default": serve, "decode": decode}, {"serving_default": [{"wave": normal(2, 320)}, {"wave": normal(1, 320, seed=4)}], "decode": [{"logits": normal(5, 2, 6), "lengths": np.array([5, 3], np.int32)}]}


@module("audio_wakeword")
def wakeword(tf, m):
    """Microphone samples: int16 in, MFCC, a depthwise net; audio_spectrogram and mfcc ops of version 1."""
    weights(tf, m, k=(3, 3, 1, 4), d=(3, 3, 4, 1), w=(4, 3))

    @tf.function(input_signature=[tf.TensorSpec([1, 1024], tf.int16, name="samples")])
    def serve(samples):
        x = tf.cast(samples, tf.float32) / 32768.0
        s = tf.raw_ops.AudioSpectrogram(input=tf.transpose(x), window_size=256, stride=128, magnitude_squared=True)
        f = tf.raw_ops.Mfcc(spectrogram=s, sample_rate=16000, dct_coefficient_count=10)
        y = tf.nn.relu(tf.nn.conv2d(f[..., None], m.k, [1, 2, 2, 1], "SAME"))
        y = tf.nn.relu6(tf.nn.depthwise_conv2d(y, m.d, [1, 1, 1, 1], "SAME"))
        return {"p": tf.nn.softmax(tf.reduce_mean(y, [1, 2]) @ m.w)}

    @tf.function(input_signature=[tf.TensorSpec([None, 512], tf.float32, name="x")])
    def mel(x):
        frames = tf.signal.frame(x, 128, 64)
        windowed = frames * tf.signal.hann_window(128)
        magnitude = tf.abs(tf.signal.rfft(windowed, [128]))
        return {"frames": frames, "db": 10.0 * tf.math.log(tf.maximum(magnitude, 1e-5)) / tf.math.log(10.0), "dct": tf.signal.dct(windowed, norm="ortho"), "back": tf.signal.overlap_and_add(windowed, 64)}
    return {"serving_default": serve, "mel": mel}, {"serving_default": [{"samples": np.random.default_rng(1).integers(-9000, 9000, (1, 1024)).astype(np.int16)}], "mel": [{"x": normal(2, 512)}]}


@module("streaming_state")
def streaming(tf, m):
    """A ring of samples, a counter, a running mean and an LSTM's state in variables; each request moves them on."""
    weights(tf, m, k=(4, 1, 3), wx=(3, 8), wh=(2, 8))
    m.ring, m.count, m.mean = tf.Variable(tf.zeros([1, 6, 1])), tf.Variable(0, dtype=tf.int32), tf.Variable(0.0)
    m.h, m.c = tf.Variable(tf.zeros([1, 2])), tf.Variable(tf.zeros([1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([1, 2, 1], tf.float32, name="chunk")])
    def serve(chunk):
        m.ring.assign(tf.concat([m.ring[:, 2:], chunk], 1))
        m.count.assign_add(2)
        m.mean.assign_add((tf.reduce_mean(chunk) - m.mean) / tf.cast(m.count, tf.float32))
        x = tf.nn.conv1d(m.ring, m.k, 1, "VALID")[:, -1]
        i, f, g, o = tf.split(x @ m.wx + m.h @ m.wh, 4, -1)
        c = tf.sigmoid(f) * m.c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        m.c.assign(c), m.h.assign(h)
        return {"y": h, "count": m.count.read_value(), "mean": m.mean.read_value()}
    return {"serving_default": serve}, [{"chunk": normal(1, 2, 1, seed=s)} for s in range(3)]


@keras_model("n_beats")
def beats(tf, keras):
    L = keras.layers
    inputs = keras.Input([12], name="window")
    back, total = inputs, None
    for kind in ("trend", "season", "generic"):
        h = L.Dense(8, activation="relu")(L.Dense(8, activation="relu")(back))
        if kind == "generic":
            b, f = L.Dense(12)(h), L.Dense(4)(h)
        else:
            t = np.arange(16) / 16
            basis = np.stack([t ** i for i in range(3)]) if kind == "trend" else np.stack([np.cos(6.28 * i * t) for i in range(2)] + [np.sin(6.28 * i * t) for i in range(2)])
            theta = L.Dense(len(basis))(h)
            both = layer_of(keras, lambda v, basis=basis.astype(np.float32): tf.matmul(v, basis))(theta)
            b, f = both[:, :12], both[:, 12:]
        back = L.Subtract()([back, b])
        total = f if total is None else L.Add()([total, f])
    return keras.Model(inputs, {"forecast": total, "rest": back}), [{"window": normal(3, 12)}]


@keras_model("fusion_transformer")
def fusion(tf, keras):
    """Gated residual networks, variable selection, an LSTM with states from statics, interpretable attention, quantiles."""
    L = keras.layers
    i = named(keras, past=([8, 3], "float32"), future=([4, 2], "float32"), static=([2], "int32"))

    def grn(x, n, context=None):
        h = L.Dense(n)(x)
        if context is not None:
            h = h + L.Dense(n, use_bias=False)(context)
        h = L.Dense(n)(L.Activation("elu")(h))
        gate = L.Dense(n, activation="sigmoid")(h) * L.Dense(n)(h)
        return L.LayerNormalization()((x if x.shape[-1] == n else L.Dense(n)(x)) + gate)

    def select(x, context):
        n = x.shape[-1]
        parts = [L.Dense(6)(x[..., k:k + 1]) for k in range(n)]
        weight = L.Softmax()(grn(L.Concatenate()(parts), n, L.Reshape((1, 6))(context)))
        return sum(L.Multiply()([grn(p, 6), weight[..., k:k + 1]]) for k, p in enumerate(parts))
    static = L.Flatten()(L.Embedding(5, 3)(i["static"]))
    context = grn(static, 6)
    y, h, c = L.LSTM(6, return_sequences=True, return_state=True)(select(i["past"], context), initial_state=[grn(context, 6), grn(context, 6)])
    z = L.LSTM(6, return_sequences=True)(select(i["future"], context), initial_state=[h, c])
    x = L.Concatenate(axis=1)([y, z])
    x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True))
    return keras.Model(i, L.Dense(3)(grn(x[:, 8:], 6))), [{"past": normal(2, 8, 3), "future": normal(2, 4, 2), "static": np.array([[1, 2], [3, 4]], np.int32)}]


@keras_model("wavenet_tcn")
def wavenet(tf, keras):
    L = keras.layers
    x = inputs = keras.Input([None, 2], name="series")
    x = L.Conv1D(4, 2, padding="causal")(x)
    skips = []
    for rate in (1, 2, 4):
        h = L.Multiply()([L.Conv1D(4, 2, padding="causal", dilation_rate=rate, activation="tanh")(x), L.Conv1D(4, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)])
        skips.append(L.Conv1D(4, 1)(h))
        x = L.Add()([x, skips[-1]])
    y = L.Conv1D(3, 1)(L.ReLU()(L.Add()(skips)))
    return keras.Model(inputs, [y, layer_of(keras, lambda v: v[:, -1])(y)]), [{"series": normal(2, 9, 2)}, {"series": normal(1, 3, 2)}]


@module("informer_autoformer")
def decomposition(tf, m):
    """Moving averages, autocorrelation by FFT, top k delays and rolls, state space recurrences by cumulative sums and scans."""
    weights(tf, m, w=(3, 6), a=(6,), o=(6, 2))

    @tf.function(input_signature=[tf.TensorSpec([None, 16, 3], tf.float32, name="x")])
    def serve(x):
        padded = tf.concat([tf.repeat(x[:, :1], 2, 1), x, tf.repeat(x[:, -1:], 2, 1)], 1)
        trend = tf.nn.avg_pool1d(padded, 5, 1, "VALID")
        season = (x - trend) @ m.w
        f = tf.signal.rfft(tf.transpose(season, [0, 2, 1]))
        corr = tf.signal.irfft(f * tf.math.conj(f), [16])
        weight, delay = tf.math.top_k(tf.reduce_mean(corr, 1), 3)
        index = (tf.range(16)[None, None] + delay[..., None]) % 16
        rolled = tf.gather(season, index, axis=1, batch_dims=1)
        y = tf.einsum("bk,bktd->btd", tf.nn.softmax(weight), rolled)
        decay = tf.sigmoid(m.a)
        state = tf.scan(lambda s, u: s * decay + u, tf.transpose(y, [1, 0, 2]))
        return {"y": tf.transpose(state, [1, 0, 2]) @ m.o, "trend": tf.cumsum(trend, 1), "corr": corr}
    return {"serving_default": serve}, [{"x": normal(2, 16, 3)}]
