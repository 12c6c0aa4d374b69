"""Science and state: adaptive solvers, spectral operators, molecules with forces, grids of cells, transport, filters by particles, buffers that signatures write in part, odd signatures."""
import numpy as np

from library_model_rows.modules import module, normal, words
from library_model_rows.sequences import weights

ints = lambda *v, dtype=np.int32: np.array(v, dtype)


@module("adaptive_solver")
def solver(tf, m):
    """An ODE by steps that are taken back where their error is too large; a continuous flow with the exact trace of its Jacobian; times where the answer is wanted."""
    weights(tf, m, a=(3, 8), b=(8, 3), t=(8,))

    def rate(t, y):
        return tf.tanh(y @ m.a + t * m.t) @ m.b

    def attempt(t, y, h):
        k1 = rate(t, y)
        k2 = rate(t + h / 2, y + h * k1 / 2)
        k3 = rate(t + h * 3 / 4, y + h * k2 * 3 / 4)
        z = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = rate(t + h, z)
        return z, tf.reduce_max(tf.abs(h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="y"), tf.TensorSpec([None], tf.float32, name="times")])
    def serve(y, times):
        t, h, tries = tf.constant(0.0), tf.constant(0.1), tf.constant(0)
        out = tf.TensorArray(tf.float32, tf.size(times), element_shape=[None, 3])
        for i in tf.range(tf.size(times)):
            while t < times[i] - 1e-6:
                step = tf.minimum(h, times[i] - t)
                z, error = attempt(t, y, step)
                accepted = error < 0.003
                y, t = tf.where(accepted, z, y), tf.where(accepted, t + step, t)
                h = step * tf.clip_by_value(0.9 * tf.pow(0.003 / (error + 1e-9), 1 / 3), 0.3, 3.0)
                tries += 1
            out = out.write(i, y)
        return {"y": out.stack(), "tries": tries}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def density(x):
        logp = tf.zeros([tf.shape(x)[0]])
        for i in range(3):
            with tf.GradientTape() as tape:
                tape.watch(x)
                v = rate(i / 3.0, x)
            logp -= tf.linalg.trace(tape.batch_jacobian(v, x)) / 3.0
            x = x + v / 3.0
        return {"z": x, "logp": logp - 0.5 * tf.reduce_sum(x ** 2, 1)}
    return {"serving_default": serve, "density": density}, {"serving_default": [{"y": normal(2, 3), "times": np.array([0.3, 0.7, 1.5], np.float32)}, {"y": normal(1, 3), "times": np.array([0.5], np.float32)}], "density": [{"x": normal(2, 3)}]}


@module("spectral_operator")
def spectral(tf, m):
    """Layers in the frequencies of one and two dimensions with complex weights, what is high left out, coordinates joined; a long convolution by transforms; derivatives by wave numbers."""
    weights(tf, m, lift=(3, 6), real=(6, 6, 4, 3), imag=(6, 6, 4, 3), w=(6, 6), out=(6, 1), h=(32,))

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 10, 1], tf.float32, name="field")])
    def serve(field):
        b = tf.shape(field)[0]
        gy, gx = tf.meshgrid(tf.linspace(0.0, 1.0, 12), tf.linspace(0.0, 1.0, 10), indexing="ij")
        grid = tf.tile(tf.stack([gy, gx], -1)[None], [b, 1, 1, 1])
        v = tf.tensordot(tf.concat([field, grid], -1), m.lift, 1)
        for _ in range(2):
            z = tf.signal.rfft2d(tf.transpose(v, [0, 3, 1, 2]))
            weight = tf.complex(m.real, m.imag)
            low = tf.einsum("bixy,ioxy->boxy", z[:, :, :4, :3], weight)
            padded = tf.pad(low, [[0, 0], [0, 0], [0, 8], [0, 3]])
            back = tf.transpose(tf.signal.irfft2d(padded, [12, 10]), [0, 2, 3, 1])
            v = tf.nn.gelu(back + tf.tensordot(v, m.w, 1))
        return {"y": tf.tensordot(v, m.out, 1)}

    @tf.function(input_signature=[tf.TensorSpec([None, 32], tf.float32, name="x")])
    def line(x):
        z = tf.signal.rfft(x, [64]) * tf.signal.rfft(m.h, [64])
        long = tf.signal.irfft(z, [64])[:, :32]
        k = tf.cast(tf.concat([tf.range(0, 16), tf.range(-16, 0)], 0), tf.float32)
        full = tf.signal.fft(tf.cast(x, tf.complex64))
        slope = tf.math.real(tf.signal.ifft(full * tf.complex(tf.zeros_like(k), k)))
        power = tf.square(tf.abs(tf.signal.rfft(x)))
        return {"long": long, "slope": slope, "power": power, "peak": tf.argmax(power, -1), "shifted": tf.abs(tf.signal.fftshift(full, 1)), "analytic": tf.math.angle(tf.signal.ifft(full * tf.cast(tf.where(k > 0, 2.0, 0.0), tf.complex64)))}
    return {"serving_default": serve, "line": line}, {"serving_default": [{"field": normal(2, 12, 10, 1)}], "line": [{"x": normal(2, 32)}]}


@module("molecule_forces")
def molecule(tf, m):
    """Atoms of several molecules as one list: distances along edges by radial functions and a smooth cut, messages, energies by segments in double, forces by the tape."""
    weights(tf, m, e=(10, 6), f=(8, 6), g=(6, 6), o=(6, 1))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="numbers"), tf.TensorSpec([None, 3], tf.float64, name="positions"), tf.TensorSpec([None, 2], tf.int64, name="edges"), tf.TensorSpec([None], tf.int32, name="molecule")])
    def serve(numbers, positions, edges, molecule):
        with tf.GradientTape() as tape:
            tape.watch(positions)
            to, by = edges[:, 0], edges[:, 1]
            away = tf.gather(positions, by) - tf.gather(positions, to)
            d = tf.sqrt(tf.reduce_sum(away ** 2, -1))
            centres = tf.linspace(tf.constant(0.0, tf.float64), tf.constant(4.0, tf.float64), 8)
            basis = tf.exp(-2.0 * (d[:, None] - centres) ** 2)
            cut = tf.where(d < 4.0, 0.5 * (tf.cos(np.pi * d / 4.0) + 1.0), tf.zeros_like(d))
            filters = tf.cast(basis * cut[:, None], tf.float32) @ m.f
            x = tf.gather(m.e, numbers)
            for _ in range(2):
                messages = tf.math.unsorted_segment_sum(tf.gather(x, by) * filters, to, tf.shape(x)[0])
                x = x + (tf.math.softplus(messages @ m.g) - np.float32(np.log(2.0)))
            each = tf.cast(x @ m.o, tf.float64)[:, 0]
            energy = tf.math.segment_sum(each, molecule)
            total = tf.reduce_sum(energy)
        return {"energy": energy, "forces": -tf.convert_to_tensor(tape.gradient(total, positions)), "atoms": tf.math.segment_sum(tf.ones_like(numbers), molecule), "nearest": tf.math.unsorted_segment_min(d, to, tf.shape(numbers)[0])}
    edges = np.array([(i, j) for i in range(3) for j in range(3) if i != j] + [(3, 4), (4, 3)], np.int64)
    return {"serving_default": serve}, [{"numbers": ints(8, 1, 1, 6, 7), "positions": normal(5, 3).astype(np.float64), "edges": edges, "molecule": ints(0, 0, 0, 1, 1)}]


@module("grids_of_cells")
def grids(tf, m):
    """Games and fluids on grids: life by sums of rolled bytes, spins by a checkerboard, heat by a fixed stencil in a loop, streams of a lattice; bits packed."""
    m.stencil = tf.constant(np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], np.float32)[:, :, None, None])
    m.velocities = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8], tf.bool, name="alive"), tf.TensorSpec([], tf.int32, name="steps")])
    def life(alive, steps):
        def step(i, a):
            n = tf.cast(a, tf.uint8)
            total = tf.add_n([tf.cast(tf.roll(n, [dy, dx], [1, 2]), tf.int32) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx])
            return i + 1, (total == 3) | (a & (total == 2))
        n, a = tf.while_loop(lambda i, a: (i < steps) & tf.reduce_any(a), step, [0, alive])
        packed = tf.reduce_sum(tf.bitwise.left_shift(tf.cast(a, tf.int32), tf.range(8)), -1)
        return {"alive": a, "count": tf.math.count_nonzero(a, [1, 2], dtype=tf.int32), "steps": n, "packed": tf.cast(packed, tf.uint8)}

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 1], tf.float32, name="heat"), tf.TensorSpec([], tf.int32, name="steps"), tf.TensorSpec([8, 8], tf.float32, name="noise")])
    def fields(heat, steps, noise):
        fixed = tf.abs(heat) > 1.5
        u = heat
        for _ in tf.range(steps):
            around = tf.pad(u, [[0, 0], [1, 1], [1, 1], [0, 0]], "SYMMETRIC")
            u = tf.where(fixed, heat, u + 0.2 * tf.nn.conv2d(around, m.stencil, 1, "VALID"))
        spins = tf.sign(heat[0, :, :, 0] + 1e-3)
        board = tf.cast((tf.range(8)[:, None] + tf.range(8)[None]) % 2, tf.float32)
        for parity in (0.0, 1.0):
            field = sum(tf.roll(spins, s, a) for s in (-1, 1) for a in (0, 1))
            flip = tf.math.logical_and(board == parity, tf.exp(-0.9 * spins * field) > tf.abs(noise))
            spins = tf.where(flip, -spins, spins)
        f = tf.stack([tf.roll(u[0, :, :, 0] * 0.2, v, [0, 1]) for v in m.velocities], -1)
        density = tf.reduce_sum(f, -1)
        speed = tf.tensordot(f, tf.constant(m.velocities, tf.float32), 1)
        curl = (tf.roll(speed[..., 1], -1, 0) - tf.roll(speed[..., 1], 1, 0)) / 2
        return {"heat": u, "spins": tf.cast(spins, tf.int8), "density": density, "curl": curl, "energy": -tf.reduce_mean(spins * tf.roll(spins, 1, 0))}
    rng = np.random.default_rng(3)
    return {"life": life, "fields": fields}, {"life": [{"alive": rng.uniform(size=(2, 8, 8)) < 0.4, "steps": np.int32(3)}, {"alive": np.zeros((1, 8, 8), bool), "steps": np.int32(5)}],
                                              "fields": [{"heat": normal(1, 8, 8, 1), "steps": np.int32(4), "noise": normal(8, 8)}, {"heat": normal(1, 8, 8, 1, seed=2), "steps": np.int32(0), "noise": normal(8, 8)}]}


@module("optimal_transport")
def transport(tf, m):
    """Sinkhorn's steps in logarithms until they rest, greedy matching in a loop, an auction; dynamic time warping by a scan along diagonals; a shortest path by squaring."""
    @tf.function(input_signature=[tf.TensorSpec([None, None, 4], tf.float32, name="a"), tf.TensorSpec([None, None, 4], tf.float32, name="b")])
    def serve(a, b):
        cost = tf.reduce_sum((a[:, :, None] - b[:, None]) ** 2, -1)
        n, k = tf.shape(cost)[1], tf.shape(cost)[2]
        f, g, change, i = tf.zeros(tf.shape(cost)[:2]), tf.zeros([tf.shape(cost)[0], k]), tf.constant(1.0), tf.constant(0)
        while tf.logical_and(change > 1e-3, i < 30):
            new = -0.5 * tf.reduce_logsumexp((g[:, None] - cost) / 0.5 - tf.math.log(tf.cast(k, tf.float32)), 2)
            g = -0.5 * tf.reduce_logsumexp((new[:, :, None] - cost) / 0.5 - tf.math.log(tf.cast(n, tf.float32)), 1)
            change, f, i = tf.reduce_max(tf.abs(new - f)), new, i + 1
        plan = tf.exp((f[:, :, None] + g[:, None] - cost) / 0.5)
        left, matched = cost[0], tf.fill([n], -1)
        for _ in tf.range(tf.minimum(n, k)):
            best = tf.argmin(tf.reshape(left, [-1]), output_type=tf.int32)
            row, column = best // k, best % k
            matched = tf.tensor_scatter_nd_update(matched, [[row]], [column])
            left = tf.where((tf.range(n)[:, None] == row) | (tf.range(k)[None] == column), np.inf, left)
        return {"plan": plan, "matched": matched, "cost": tf.reduce_sum(plan * cost, [1, 2]), "hausdorff": tf.maximum(tf.reduce_max(tf.reduce_min(cost, 2), 1), tf.reduce_max(tf.reduce_min(cost, 1), 1))}

    @tf.function(input_signature=[tf.TensorSpec([6], tf.float32, name="x"), tf.TensorSpec([5], tf.float32, name="y")])
    def warp(x, y):
        cost = tf.abs(x[:, None] - y)

        def row(before, c):
            diagonal = tf.concat([[np.inf], before[:-1]], 0)
            least = tf.minimum(before, diagonal)

            def along(last, v):
                return tf.minimum(last, v[0]) + v[1]
            return tf.scan(along, (least, c), initializer=tf.constant(np.inf))
        first = tf.cumsum(cost[0])
        rows = tf.scan(row, cost[1:], initializer=first)
        graph = tf.where(cost[:5] < 1.0, cost[:5], 1e3)
        for _ in range(3):
            graph = tf.minimum(graph, tf.reduce_min(graph[:, :, None] + graph[None], 1))
        return {"distance": rows[-1, -1], "table": rows, "paths": graph}
    return {"serving_default": serve, "warp": warp}, {"serving_default": [{"a": normal(2, 4, 4), "b": normal(2, 3, 4, seed=1)}, {"a": normal(1, 2, 4), "b": normal(1, 5, 4, seed=2)}], "warp": [{"x": normal(6), "y": normal(5, seed=3)}]}


@module("particles_and_trends")
def particles(tf, m):
    """A filter of particles that are drawn anew by systematic resampling in a scan; smoothing of level, trend and seasons over series with holes, as nested states; alarms."""
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="z"), tf.TensorSpec([16], tf.float32, name="start"), tf.TensorSpec([None, 16], tf.float32, name="noise"), tf.TensorSpec([], tf.float32, name="u")])
    def serve(z, start, noise, u):
        def step(state, v):
            observed, e = v
            x = 0.9 * state[0] + 0.5 * e
            logw = -0.5 * (observed - x) ** 2 / 0.3
            w = tf.nn.softmax(logw)
            places = (tf.range(16, dtype=tf.float32) + u) / 16.0
            index = tf.minimum(tf.searchsorted(tf.cumsum(w), places), 15)
            return tf.gather(x, index), tf.reduce_sum(w * x), 1.0 / tf.reduce_sum(w ** 2)
        x, mean, effective = tf.scan(step, (z, noise), initializer=(start, 0.0, 0.0))
        return {"particles": x[-1], "mean": mean, "effective": effective}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="series")])
    def smooth(series):
        b = tf.shape(series)[0]
        first = {"level": series[:, 0], "trend": tf.zeros([b]), "season": tf.zeros([b, 4]), "shown": tf.zeros([b])}

        def step(s, y):
            shown = s["level"] + s["trend"] + s["season"][:, 0]
            y = tf.where(tf.math.is_nan(y), shown, y)
            level = 0.5 * (y - s["season"][:, 0]) + 0.5 * (s["level"] + s["trend"])
            season = 0.3 * (y - level) + 0.7 * s["season"][:, 0]
            return {"level": level, "trend": 0.2 * (level - s["level"]) + 0.8 * s["trend"], "season": tf.concat([s["season"][:, 1:], season[:, None]], 1), "shown": shown}
        states = tf.scan(step, tf.transpose(series), initializer=first)
        error = tf.transpose(series) - states["shown"]
        good = tf.math.is_finite(error)
        spread = tf.sqrt(tf.math.divide_no_nan(tf.reduce_sum(tf.where(good, error ** 2, 0.0), 0), tf.reduce_sum(tf.cast(good, tf.float32), 0)))
        ahead = states["level"][-1][:, None] + states["trend"][-1][:, None] * tf.range(1.0, 5.0) + states["season"][-1]
        return {"ahead": ahead, "alarm": tf.transpose(good & (tf.abs(error) > 1.5 * spread)), "level": tf.transpose(states["level"]), "last": tf.foldl(lambda a, y: tf.where(tf.math.is_nan(y), a, y), tf.transpose(series))}
    series = np.sin(np.arange(12) * 1.57).astype(np.float32)[None] * [[1.0], [2.0]] + np.arange(12) * 0.1
    series = series.astype(np.float32)
    series[0, 5] = series[1, 2] = np.nan
    return {"serving_default": serve, "smooth": smooth}, {"serving_default": [{"z": normal(5), "start": normal(16), "noise": normal(5, 16, seed=1), "u": np.float32(0.4)}], "smooth": [{"series": series}, {"series": series[1:, :5]}]}


@module("buffers_written_in_part")
def buffers(tf, m):
    """Variables of which signatures write slices, rows and single places; a ring of requests with its place; counters by name in a table; minimum, maximum and a moving variance; all forgotten again."""
    m.ring, m.place = tf.Variable(tf.zeros([4, 3])), tf.Variable(0)
    m.rows, m.low, m.high = tf.Variable(normal(5, 3)), tf.Variable(tf.fill([3], np.float32(1e9))), tf.Variable(tf.fill([3], np.float32(-1e9)))
    m.count, m.mean, m.m2 = tf.Variable(0, dtype=tf.int64), tf.Variable(tf.zeros([3])), tf.Variable(tf.zeros([3]))
    m.hits = tf.Variable(tf.zeros([4], tf.int32))

    @tf.function(input_signature=[tf.TensorSpec([1, 3], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="kind")])
    def observe(x, kind):
        m.ring[m.place % 4].assign(x[0])
        m.place.assign_add(1)
        m.low.assign(tf.minimum(m.low, x[0]))
        m.high.assign(tf.maximum(m.high, x[0]))
        m.count.assign_add(1)
        delta = x[0] - m.mean
        m.mean.assign_add(delta / tf.cast(m.count, tf.float32))
        m.m2.assign_add(delta * (x[0] - m.mean))
        m.hits.scatter_nd_add(tf.reshape(kind, [1, 1]), [1])
        order = tf.math.floormod(m.place + tf.range(4), 4)
        return {"recent": tf.gather(m.ring, order), "hits": m.hits.read_value(), "variance": tf.math.divide_no_nan(m.m2, tf.cast(m.count - 1, tf.float32)), "range": m.high - m.low}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="ids"), tf.TensorSpec([None, 3], tf.float32, name="values")])
    def update(ids, values):
        m.rows.scatter_update(tf.IndexedSlices(values, ids))
        m.rows.scatter_sub(tf.IndexedSlices(0.5 * values, ids))
        m.rows[1:3, :2].assign(tf.ones([2, 2]) * m.rows[0, 0])
        m.rows.scatter_nd_update([[4, 2]], [7.0])
        m.rows.scatter_max(tf.IndexedSlices(tf.zeros([1, 3]), [3]))
        return {"rows": m.rows.read_value(), "picked": m.rows.sparse_read(ids), "places": m.rows.gather_nd([[0, 1], [4, 2]])}

    @tf.function(input_signature=[])
    def forget():
        for v, to in ((m.ring, 0.0), (m.mean, 0.0), (m.m2, 0.0), (m.low, 1e9), (m.high, -1e9)):
            v.assign(tf.fill(tf.shape(v), to))
        m.count.assign(0), m.place.assign(0), m.hits.assign(tf.zeros([4], tf.int32))
        return {"count": tf.identity(m.count)}
    x = normal(3, 1, 3)
    return {"observe": observe, "update": update, "forget": forget}, {"observe": [{"x": x[i], "kind": np.int32(i)} for i in (0, 1, 2)], "update": [{"ids": ints(2, 0), "values": normal(2, 3)}, {"ids": ints(4), "values": normal(1, 3)}], "forget": [{}]}


@module("odd_signatures")
def odd(tf, m):
    """Inputs that nothing reads, results that are inputs or constants or the same twice, empty ones, scalars, no rows; all types of numbers; an answer that is a text of numbers."""
    m.w = tf.Variable(normal(3, 2))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([None], tf.string, name="unused"), tf.TensorSpec([], tf.bool, name="flag"), tf.TensorSpec([None, 0], tf.float32, name="nothing")])
    def serve(x, unused, flag, nothing):
        y = x @ m.w
        return {"x": x, "y": y, "again": y, "flag": flag, "constant": tf.constant([1.5, 2.5]), "weights": m.w.read_value(), "none": nothing, "rows": tf.shape(x)[0], "version": tf.constant(3, tf.int64), "positive": tf.boolean_mask(y, y[:, 0] > 0),
                "mean": tf.math.divide_no_nan(tf.reduce_sum(y), tf.cast(tf.size(y), tf.float32)), "either": tf.where(flag, y, -y), "first": tf.reduce_max(tf.concat([y, tf.zeros([1, 2])], 0), 0), "softmax": tf.nn.softmax(y), "sorted": tf.sort(y, 0)}

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float64, name="double"), tf.TensorSpec([2], tf.float16, name="half"), tf.TensorSpec([2], tf.int8, name="byte"), tf.TensorSpec([2], tf.uint16, name="short"), tf.TensorSpec([2], tf.int16, name="signed"), tf.TensorSpec([2], tf.uint32, name="word"),
                                  tf.TensorSpec([2], tf.uint64, name="long"), tf.TensorSpec([2], tf.complex64, name="complex")])
    def types(double, half, byte, short, signed, word, long, complex):
        return {"double": tf.exp(double) * 0.5, "half": half * half + tf.cast(1.5, tf.float16), "byte": tf.maximum(byte, 3), "short": tf.cast(short, tf.int32) * 2, "signed": signed // tf.constant(3, tf.int16), "word": tf.bitwise.bitwise_xor(word, tf.constant(255, tf.uint32)), "long": tf.bitwise.right_shift(long, tf.constant(1, tf.uint64)),
                "modulus": tf.abs(complex), "product": complex * tf.complex(0.0, 1.0), "sum": tf.cast(half, tf.float64) + double, "saturated": tf.saturate_cast(double * 200.0, tf.uint8), "bits": tf.bitcast(double, tf.int64), "text": tf.strings.as_string(byte)}

    @tf.function(input_signature=[])
    def constants():
        return {"weights": tf.linalg.matmul(m.w, m.w, transpose_b=True), "names": tf.constant([["a", "b"]]), "none": tf.zeros([0, 4])}
    one = {"unused": words("a"), "flag": np.bool_(True), "nothing": np.zeros((2, 0), np.float32)}
    return {"serving_default": serve, "types": types, "constants": constants}, {
        "serving_default": [{"x": normal(2, 3)} | one, {"x": np.zeros((0, 3), np.float32)} | one | {"nothing": np.zeros((0, 0), np.float32), "flag": np.bool_(False)}],
        "types": [{"double": np.array([0.5, -2.0]), "half": np.array([1.5, 0.1], np.float16), "byte": ints(-5, 9, dtype=np.int8), "short": ints(65535, 3, dtype=np.uint16), "signed": ints(-7, 300, dtype=np.int16), "word": ints(2 ** 32 - 1, 17, dtype=np.uint32),
                   "long": ints(2 ** 63 + 5, 9, dtype=np.uint64), "complex": np.array([1 + 2j, -0.5j], np.complex64)}],
        "constants": [{}]}


@module("kernels_and_factors")
def factors(tf, m):
    """A Gaussian process by Cholesky, components by singular values, whitening by eigenvalues, ridge by a solve for each row; subspaces, projections on a simplex, all with rows free."""
    m.x, m.y = tf.Variable(normal(7, 2)), tf.Variable(normal(7, 1, seed=1))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="at"), tf.TensorSpec([None, 6, 3], tf.float32, name="sets")])
    def serve(at, sets):
        kernel = lambda a, b: tf.exp(-0.5 * (tf.reduce_sum(a ** 2, 1)[:, None] - 2 * tf.matmul(a, b, transpose_b=True) + tf.reduce_sum(b ** 2, 1)[None]))
        k = kernel(m.x, m.x) + 0.1 * tf.eye(7)
        l = tf.linalg.cholesky(k)
        alpha = tf.linalg.cholesky_solve(l, m.y)
        ks = kernel(at, m.x)
        v = tf.linalg.triangular_solve(l, tf.transpose(ks))
        variance = 1.0 - tf.reduce_sum(v ** 2, 0)
        z = 0.5 * (1 + tf.math.erf(tf.squeeze(ks @ alpha, 1) / tf.sqrt(variance + 1e-6) / np.float32(np.sqrt(2))))
        centred = sets - tf.reduce_mean(sets, 1, keepdims=True)
        covariance = tf.matmul(centred, centred, transpose_a=True) / 5.0 + 0.05 * tf.eye(3)
        e, q = tf.linalg.eigh(covariance)
        white = tf.matmul(centred, q * tf.math.rsqrt(e)[:, None])
        s = tf.linalg.svd(centred, compute_uv=False)
        target = tf.reduce_sum(sets, -1, keepdims=True)
        ridge = tf.linalg.solve(tf.matmul(sets, sets, transpose_a=True) + 0.2 * tf.eye(3), tf.matmul(sets, target, transpose_a=True))
        ordered = tf.sort(sets[:, 0], direction="DESCENDING")
        total = (tf.cumsum(ordered, 1) - 1.0) / tf.range(1.0, 4.0)
        rank = tf.reduce_sum(tf.cast(ordered > total, tf.int32), 1)
        simplex = tf.nn.relu(sets[:, 0] - tf.gather(total, rank - 1, batch_dims=1)[:, None])
        return {"mean": ks @ alpha, "variance": variance, "evidence": -0.5 * tf.reduce_sum(m.y * alpha) - tf.reduce_sum(tf.math.log(tf.linalg.diag_part(l))), "improvement": z, "white": tf.abs(white), "values": s, "ridge": ridge, "simplex": simplex,
                "mahalanobis": tf.einsum("bni,bij,bnj->bn", centred, tf.linalg.inv(covariance), centred), "logdet": tf.linalg.logdet(covariance), "effective": tf.reduce_sum(s, -1) ** 2 / tf.reduce_sum(s ** 2, -1)}
    return {"serving_default": serve}, [{"at": normal(3, 2, seed=4), "sets": normal(2, 6, 3)}, {"at": normal(1, 2, seed=5), "sets": normal(1, 6, 3, seed=6)}]
