"""Models of sound: classifiers of events, streaming keywords and denoisers, speech encoders and decoders, vocoders, pitch."""
import numpy as np

from library_model_rows.keras_models import keras_model, layer_of
from library_model_rows.modules import module, normal
from library_model_rows.rows import stranger
from library_model_rows.sequences import weights

tone = lambda n, seed=0: (np.sin(np.arange(n) * 0.3) * 0.4 + np.random.default_rng(seed).normal(0, 0.1, n)).astype(np.float32)


@module("sound_events")
def events(tf, m):
    """A waveform of any length: padded to whole windows by numbers of its length, log mel patches that overlap, a separable net for each, their mean."""
    weights(tf, m, first=(3, 3, 1, 4), d=(3, 3, 4, 1), p=(1, 1, 4, 8), scale=(8,), offset=(8,), dense=(8, 6), bias=(6,))
    m.mel = tf.constant(tf.signal.linear_to_mel_weight_matrix(16, 129, 8000, 60, 3800))
    m.names = tf.constant(["speech", "dog", "rain", "engine", "music", "bell"])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="waveform")])
    def serve(waveform):
        n = tf.shape(waveform)[0]
        least = 256 + 15 * 80
        after = tf.maximum(n, least) - least
        hops = tf.cast(tf.math.ceil(tf.cast(after, tf.float32) / (8 * 80.0)), tf.int32)
        padded = tf.pad(waveform, [[0, tf.maximum(0, least + hops * 8 * 80 - n)]])
        spectrum = tf.abs(tf.signal.stft(padded, 200, 80, 256))
        logs = tf.math.log(tf.matmul(spectrum, m.mel) + 0.001)
        patches = tf.signal.frame(logs, 16, 8, axis=0)
        x = tf.nn.relu(tf.nn.conv2d(patches[..., None], m.first, 2, "SAME"))
        x = tf.nn.depthwise_conv2d(x, m.d, [1, 1, 1, 1], "SAME")
        x = tf.nn.conv2d(tf.nn.relu(x), m.p, 1, "SAME")
        x = tf.nn.relu(tf.nn.batch_normalization(x, m.offset, tf.abs(m.scale) + 1.0, m.offset, m.scale, 1e-4))
        embeddings = tf.reduce_mean(x, [1, 2])
        scores = tf.sigmoid(embeddings @ m.dense + m.bias)
        mean = tf.reduce_mean(scores, 0)
        return {"scores": scores, "embeddings": embeddings, "log_mel": logs, "best": m.names[tf.argmax(mean)], "top": tf.math.top_k(mean, 3).values}
    return {"serving_default": serve}, [{"waveform": tone(3000)}, {"waveform": tone(500, 1)}]


@module("streaming_keyword")
def keyword(tf, m):
    """One frame at a time, its rings given and taken back by the caller under numbered names, SVDF by hand, a depthwise convolution of what is remembered."""
    weights(tf, m, a=(10, 32), b=(32,), time=(6, 32), d=(4, 1, 32, 1), p=(32, 32), o=(32, 5), g=(32,))

    @tf.function(input_signature=[tf.TensorSpec([1, 1, 10], tf.float32, name="input_0"), tf.TensorSpec([1, 6, 32], tf.float32, name="input_1"), tf.TensorSpec([1, 4, 1, 32], tf.float32, name="input_2"),
                                  tf.TensorSpec([1, 32], tf.float32, name="input_3")])
    def serve(x, ring, window, state):
        y = tf.matmul(x[:, 0], m.a)
        ring = tf.concat([ring[:, 1:], y[:, None]], 1)
        y = tf.nn.relu(tf.reduce_sum(ring * m.time, 1) + m.b)
        window = tf.concat([tf.slice(window, [0, 1, 0, 0], [-1, -1, -1, -1]), y[:, None, None]], 1)
        z = tf.squeeze(tf.nn.depthwise_conv2d(window, m.d, [1, 1, 1, 1], "VALID"), [1, 2])
        z = tf.nn.relu6(z @ m.p + m.g)
        state = 0.9 * state + 0.1 * z
        return {"output_0": tf.nn.softmax(state @ m.o), "output_1": ring, "output_2": window, "output_3": state}
    one = lambda s: {"input_0": normal(1, 1, 10, seed=s), "input_1": normal(1, 6, 32, seed=s + 1), "input_2": normal(1, 4, 1, 32, seed=s + 2), "input_3": normal(1, 32, seed=s + 3)}
    return {"serving_default": serve}, [one(0), one(5), {k: np.zeros_like(v) for k, v in one(0).items()}]


@module("speech_synthesis")
def synthesis(tf, m):
    """Characters to frames: attention that knows where it was, two cells, a stop token that ends the loop, frames two at a time, a net behind."""
    weights(tf, m, e=(12, 8), c=(3, 8, 8), p=(4, 6), w1=(6 + 8 + 8, 32), w2=(8 + 8, 32), q=(8, 5), k=(8, 5), loc=(3, 2, 4), u=(4, 5), v=(5,), frame=(16, 8), stop=(16, 1), post=(5, 4, 4), b1=(32,), b2=(32,))

    def cell(x, h, c, w, b):
        i, j, f, o = tf.split(tf.concat([x, h], -1) @ w + b, 4, -1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        return tf.sigmoid(o) * tf.tanh(c), c

    @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32, name="characters"), tf.TensorSpec([], tf.int32, name="limit")])
    def serve(characters, limit):
        memory = tf.nn.relu(tf.nn.conv1d(tf.gather(m.e, characters), m.c, 1, "SAME"))
        keys = tf.tensordot(memory, m.k, 1)
        n = tf.shape(characters)[1]
        zero = tf.zeros([1, 8])
        frames = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[1, 8], clear_after_read=False)
        aligned = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[1, None])

        def more(t, done, *_):
            return tf.logical_and(t < limit, tf.logical_not(done))

        def step(t, done, last, context, h1, c1, h2, c2, alpha, total, frames, aligned):
            x = tf.concat([tf.nn.relu(last @ m.p), context], -1)
            h1, c1 = cell(x, h1, c1, m.w1, m.b1)
            place = tf.tensordot(tf.nn.conv1d(tf.stack([alpha, total], -1), m.loc, 1, "SAME"), m.u, 1)
            energy = tf.reduce_sum(m.v * tf.tanh(keys + (h1 @ m.q)[:, None] + place), -1)
            alpha = tf.nn.softmax(energy)
            total += alpha
            context = tf.squeeze(tf.matmul(alpha[:, None], memory), 1)
            h2, c2 = cell(tf.concat([h1, context], -1)[:, :8], h2, c2, m.w2, m.b2)
            both = tf.concat([h2, context], -1)
            out = both @ m.frame
            done = tf.reduce_all(tf.sigmoid(both @ m.stop) > 0.9)
            return t + 1, done, out[:, 4:], context, h1, c1, h2, c2, alpha, total, frames.write(t, out), aligned.write(t, alpha)
        t, _, _, _, _, _, _, _, _, _, frames, aligned = tf.while_loop(more, step, [0, tf.constant(False), tf.zeros([1, 4]), zero, zero, zero, zero, zero, tf.zeros([1, n]), tf.zeros([1, n]), frames, aligned], maximum_iterations=20)
        mel = tf.reshape(tf.transpose(frames.stack(), [1, 0, 2]), [1, -1, 4])
        post = mel + tf.tanh(tf.nn.conv1d(mel, m.post, 1, "SAME"))
        return {"mel": mel, "post": post, "alignment": tf.transpose(aligned.stack(), [1, 2, 0]), "steps": t}
    return {"serving_default": serve}, [{"characters": np.array([[1, 5, 3, 11, 2]], np.int32), "limit": np.int32(6)}, {"characters": np.array([[4, 4, 7]], np.int32), "limit": np.int32(3)}]


@module("speech_encoder")
def encoder(tf, m):
    """Raw samples: strided convolutions with a group norm, a grouped convolution whose weights have a norm as positions, lengths of what is left, masked attention, a codebook."""
    weights(tf, m, a=(10, 1, 16), b=(3, 16, 16), g=(16,), s=(16,), v=(4, 4, 16), wg=(4, 1, 1), qkv=(16, 48), o=(16, 16), up=(16, 32), down=(32, 16), code=(2, 6, 8), ctc=(16, 7))

    def layer_norm(x):
        mean, var = tf.nn.moments(x, -1, keepdims=True)
        return (x - mean) / tf.sqrt(var + 1e-5)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="speech"), tf.TensorSpec([None, None], tf.int32, name="attention_mask")])
    def serve(speech, attention_mask):
        mean, var = tf.nn.moments(speech, 1, keepdims=True)
        x = tf.nn.conv1d(((speech - mean) / tf.sqrt(var + 1e-7))[..., None], m.a, 5, "VALID")
        mu, sigma = tf.nn.moments(x, 1, keepdims=True)
        x = tf.nn.gelu((x - mu) * tf.math.rsqrt(sigma + 1e-5) * m.g + m.s)
        x = tf.nn.gelu(tf.nn.conv1d(x, m.b, 2, "VALID"))
        lengths = tf.reduce_sum(attention_mask, -1)
        for kernel, stride in ((10, 5), (3, 2)):
            lengths = (lengths - kernel) // stride + 1
        mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)
        x = x * mask[..., None]
        kernel = m.wg * m.v / tf.norm(m.v, axis=[1, 2], keepdims=True)
        position = tf.nn.conv1d(tf.pad(x, [[0, 0], [2, 2], [0, 0]]), kernel, 1, "VALID")[:, :-1]  # of four groups
        x = layer_norm(x + tf.nn.gelu(position))
        q, k, v = [tf.transpose(tf.reshape(p, [tf.shape(x)[0], -1, 2, 8]), [0, 2, 1, 3]) for p in tf.split(tf.tensordot(x, m.qkv, 1), 3, -1)]
        scores = tf.matmul(q * 8 ** -0.5, k, transpose_b=True) + (1.0 - mask)[:, None, None] * -1e9
        y = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), tf.shape(x))
        x = layer_norm(x + tf.tensordot(y, m.o, 1))
        x = layer_norm(x + tf.tensordot(tf.nn.gelu(tf.tensordot(x, m.up, 1)), m.down, 1))
        halves = tf.reshape(x, [tf.shape(x)[0], -1, 2, 1, 8])
        codes = tf.argmin(tf.reduce_sum(tf.math.squared_difference(halves, m.code), -1), -1, tf.int32)
        return {"hidden": x, "codes": codes, "logits": tf.tensordot(x, m.ctc, 1), "lengths": lengths}
    mask = np.ones((2, 100), np.int32)
    mask[1, 60:] = 0
    return {"serving_default": serve}, [{"speech": np.stack([tone(100), tone(100, 3)]), "attention_mask": mask}, {"speech": tone(64, 2)[None], "attention_mask": mask[:1, :64]}]


@module("speech_ctc_by_hand")
def ctc(tf, m):
    """Greedy decoding by comparisons with the step before and compaction; and the beam search op; texts by joining letters."""
    weights(tf, m, w=(5, 7), r=(7, 7))
    m.letters = tf.constant(list("abcdef") + [""])

    @tf.function(input_signature=[tf.TensorSpec([None, None, 5], tf.float32, name="x"), tf.TensorSpec([None], tf.int32, name="lengths")])
    def serve(x, lengths):
        logits = tf.tensordot(tf.nn.elu(tf.tensordot(x, m.w, 1)), m.r, 1)
        best = tf.argmax(logits, -1, tf.int32)
        before = tf.pad(best[:, :-1], [[0, 0], [1, 0]], constant_values=-1)
        keep = (best != before) & (best != 6) & tf.sequence_mask(lengths, tf.shape(x)[1])
        ragged = tf.ragged.boolean_mask(best, keep)
        order = tf.argsort(tf.cast(~keep, tf.int32), -1, stable=True)
        packed = tf.where(tf.sequence_mask(tf.reduce_sum(tf.cast(keep, tf.int32), 1), tf.shape(x)[1]), tf.gather(best, order, batch_dims=1), -1)
        text = tf.strings.reduce_join(tf.gather(m.letters, tf.where(keep, best, 6)), -1)
        paths, score = tf.nn.ctc_beam_search_decoder(tf.transpose(logits, [1, 0, 2]), lengths, 4, 2)
        return {"packed": packed, "counts": ragged.row_lengths(), "text": text, "beam": tf.sparse.to_dense(paths[0], default_value=-1), "score": score, "second": paths[1].values}

    @tf.function(input_signature=[tf.TensorSpec([1, 9, 5], tf.float32, name="x")])
    def numbers(x):
        best = tf.argmax(tf.tensordot(tf.tensordot(x, m.w, 1), m.r, 1), -1, tf.int32)
        before = tf.concat([tf.fill([1, 1], -1), best[:, :-1]], 1)
        keep = tf.logical_and(tf.not_equal(best, before), tf.less(best, 6))
        return {"ids": tf.boolean_mask(best, keep), "where": tf.where(keep), "count": tf.math.count_nonzero(keep, 1)}
    return {"serving_default": serve, "numbers": numbers}, {"serving_default": [{"x": normal(2, 9, 5) * 3, "lengths": np.array([9, 5], np.int32)}], "numbers": [{"x": normal(1, 9, 5, seed=2) * 3}]}


@keras_model("vocoder")
def vocoder(tf, keras):
    """Transposed convolutions of sequences, reflected pads, dilated residual stacks, leaky everywhere, tanh at the end; a noise branch of pads and strides."""
    L = keras.layers
    mel = keras.Input([None, 10], name="mel")
    reflect = lambda v, n: layer_of(keras, lambda t: tf.pad(t, [[0, 0], [n, n], [0, 0]], "REFLECT"))(v)
    x = L.Conv1D(16, 7)(reflect(mel, 3))
    for rate, channels in ((4, 8), (2, 4)):
        x = L.Conv1DTranspose(channels, 2 * rate, strides=rate, padding="same")(L.LeakyReLU(0.2)(x))
        for dilation in (1, 3):
            y = L.Conv1D(channels, 3, dilation_rate=dilation)(reflect(L.LeakyReLU(0.2)(x), dilation))
            x = L.Add()([L.Conv1D(channels, 1)(x), L.Conv1D(channels, 1)(L.LeakyReLU(0.2)(y))])
    x = L.Conv1D(1, 7, activation="tanh")(reflect(L.LeakyReLU(0.2)(x), 3))
    return keras.Model(mel, layer_of(keras, lambda v: tf.squeeze(v, -1))(x)), [{"mel": normal(1, 9, 10)}, {"mel": normal(2, 6, 10)}]


@module("denoiser_stateful")
def denoiser(tf, m):
    """A block of samples and the states of two layers in, as real time programs call it: magnitudes and angles, a mask, the inverse transform."""
    weights(tf, m, k1=(33, 64), r1=(16, 64), b1=(64,), k2=(16, 64), r2=(16, 64), b2=(64,), mask=(16, 33), enc=(64, 20), dec=(20, 64))

    def lstm(x, h, c, k, r, b):
        z = x @ k + h @ r + b
        i, f, g, o = tf.split(z, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, c

    @tf.function(input_signature=[tf.TensorSpec([1, 64], tf.float32, name="block"), tf.TensorSpec([1, 2, 16, 2], tf.float32, name="states")])
    def serve(block, states):
        z = tf.signal.rfft(block)
        magnitude, phase = tf.abs(z), tf.math.angle(z)
        h1, c1 = lstm(tf.math.log(magnitude + 1e-7), states[:, 0, :, 0], states[:, 0, :, 1], m.k1, m.r1, m.b1)
        h2, c2 = lstm(h1, states[:, 1, :, 0], states[:, 1, :, 1], m.k2, m.r2, m.b2)
        estimate = tf.cast(magnitude * tf.sigmoid(h2 @ m.mask), tf.complex64) * tf.exp(1j * tf.cast(phase, tf.complex64))
        frame = tf.signal.irfft(estimate)
        y = frame + tf.nn.relu(frame @ m.enc) @ m.dec
        return {"y": y, "states": tf.stack([tf.stack([h1, c1], -1), tf.stack([h2, c2], -1)], 1), "magnitude": magnitude}
    return {"serving_default": serve}, [{"block": tone(64)[None], "states": normal(1, 2, 16, 2)}, {"block": tone(64, 2)[None], "states": np.zeros((1, 2, 16, 2), np.float32)}]


@module("pitch_tracker")
def pitch(tf, m):
    """Frames, normalized one by one; autocorrelation by the transform; the weighted mean of bins around the greatest; confidence, hertz, notes in int16 samples."""
    weights(tf, m, a=(16, 1, 8), b=(4, 8, 40))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int16, name="pcm")])
    def serve(pcm):
        x = tf.cast(pcm, tf.float32) / 32768.0
        frames = tf.signal.frame(x, 64, 32, pad_end=True)
        frames -= tf.reduce_mean(frames, 1, keepdims=True)
        frames /= tf.maximum(tf.math.reduce_std(frames, 1, keepdims=True), 1e-8)
        spectrum = tf.signal.rfft(frames * tf.signal.hamming_window(64), [128])
        correlation = tf.signal.irfft(spectrum * tf.math.conj(spectrum), [128])[:, :40]
        y = tf.nn.relu(tf.nn.conv1d(frames[..., None], m.a, 4, "SAME"))
        y = tf.nn.conv1d(y, m.b, 4, "SAME")
        salience = tf.sigmoid(tf.reduce_max(y, 1) + 0.01 * correlation)
        centre = tf.argmax(salience, 1, tf.int32)
        start = tf.clip_by_value(centre - 4, 0, 40 - 9)
        places = start[:, None] + tf.range(9)
        near = tf.gather(salience, places, axis=1, batch_dims=1)
        cents = tf.reduce_sum(near * (20.0 * tf.cast(places, tf.float32) + 1997.38), 1) / tf.reduce_sum(near, 1)
        hertz = 10.0 * tf.pow(2.0, cents / 1200.0)
        confidence = tf.reduce_max(salience, 1)
        voiced = confidence > 0.6
        note = tf.cast(tf.round(12.0 * tf.math.log(hertz / 440.0) / tf.math.log(2.0)), tf.int32) + 69
        return {"hertz": tf.where(voiced, hertz, 0.0), "confidence": confidence, "note": note, "voiced": voiced, "rms": tf.sqrt(tf.reduce_mean(tf.square(tf.signal.frame(x, 64, 32)), -1)),
                "crossings": tf.reduce_sum(tf.cast(tf.sign(frames[:, 1:]) != tf.sign(frames[:, :-1]), tf.int32), 1)}
    return {"serving_default": serve}, [{"pcm": (tone(400) * 20000).astype(np.int16)}, {"pcm": (tone(100, 4) * 9000).astype(np.int16)}]


@stranger("tensorflow", "spectral_inverse")
def griffin(path):
    """Griffin-Lim by hand in a loop, overlap and add, preemphasis, MDCT there and back, a mel spectrogram back by least squares."""
    import tensorflow as tf
    m = tf.Module()
    m.back = tf.Variable(np.abs(normal(12, 33)) * 0.1)

    @tf.function(input_signature=[tf.TensorSpec([1, None, 12], tf.float32, name="mel")])
    def serve(mel):
        magnitude = tf.cast(tf.maximum(tf.exp(mel) @ m.back, 1e-6), tf.complex64)
        inverse = lambda s: tf.signal.inverse_stft(s, 64, 16, 64, tf.signal.inverse_stft_window_fn(16))
        y = inverse(magnitude)
        for _ in range(2):
            s = tf.signal.stft(y, 64, 16, 64)
            y = inverse(magnitude * s / tf.cast(tf.maximum(1e-8, tf.abs(s)), tf.complex64))
        m_ = tf.signal.mdct(y[:, :64], 32, pad_end=True)
        return {"y": y, "emphasized": tf.concat([y[:, :1], y[:, 1:] - 0.97 * y[:, :-1]], 1), "mdct": m_, "back": tf.signal.inverse_mdct(m_), "dct": tf.signal.dct(y[:, :32], 2, norm="ortho"), "added": tf.signal.overlap_and_add(tf.signal.frame(y, 32, 8), 8)}
    tf.saved_model.save(m, str(path), signatures={"serving_default": serve})
    return [{"mel": normal(1, 7, 12) * 0.3}]
