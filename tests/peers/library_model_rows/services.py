"""What people put behind a signature of their own: decoders, detectors, graphs of messages, parsers, training steps, tables, reusable modules."""
import numpy as np

from library_model_rows.modules import module, normal, words
from library_model_rows.rows import stranger


@module("reusable_module")
def reusable(tf, m):
    """The interface that hub.KerasLayer expects, with signatures beside it."""
    m.w, m.b = tf.Variable(normal(3, 4)), tf.Variable(normal(4))
    m.variables_, m.trainable = [m.w, m.b], [m.w]
    m.rate = tf.Variable(0.3, trainable=False)

    @tf.function
    def call(x, training=False, scale=1.0):
        y = tf.nn.relu(x @ m.w + m.b) * scale
        return {"default": tf.nn.dropout(y, m.rate) if training else y, "pooled": tf.reduce_mean(y, 0)}
    for training in (True, False):
        call.get_concrete_function(tf.TensorSpec([None, 3], tf.float32), training)
        call.get_concrete_function(tf.TensorSpec([None, 3], tf.float32), training, tf.TensorSpec([], tf.float32))
    m.__call__ = call
    m.regularization_losses = [tf.function(lambda: tf.nn.l2_loss(m.w), input_signature=[])]
    spec = tf.TensorSpec([None, 3], tf.float32, name="x")
    serve = tf.function(lambda x: call(x), input_signature=[spec])
    loss = tf.function(lambda: {"loss": m.regularization_losses[0]()}, input_signature=[])
    pair = tf.function(lambda left, right: {"cosine": -tf.keras.losses.cosine_similarity(call(left)["default"], call(right)["default"])},
                       input_signature=[tf.TensorSpec([None, 3], tf.float32, name="left"), tf.TensorSpec([None, 3], tf.float32, name="right")])
    return {"serving_default": serve, "loss": loss, "similarity": pair}, {
        "serving_default": [{"x": normal(2, 3)}, {"x": normal(5, 3)}], "loss": [{}], "similarity": [{"left": normal(2, 3), "right": normal(2, 3, seed=1)}]}


@module("beam_decoder")
def beams(tf, m):
    """Attention, a recurrent cell and a beam search in one While loop with TensorArrays, as sequence models of 2020 were saved."""
    size, words_, k = 8, 11, 3
    m.embedding, m.out = tf.Variable(normal(words_, size)), tf.Variable(normal(size, words_))
    m.cell, m.memory = tf.Variable(normal(3 * size, 4 * size) * 0.4), tf.Variable(normal(5, size))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="source"), tf.TensorSpec([], tf.int32, name="limit")])
    def serve(source, limit):
        batch = tf.shape(source)[0]
        memory = tf.tanh(tf.nn.embedding_lookup(m.embedding, source) @ m.out @ tf.transpose(m.out))
        memory = tf.repeat(memory, k, axis=0)
        scores = tf.tile([[0.0] + [-1e9] * (k - 1)], [batch, 1])
        tokens, done = tf.ones([batch, k], tf.int32), tf.zeros([batch, k], tf.bool)
        c = h = tf.zeros([batch * k, size])
        ids, parents = (tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[None, k]) for _ in range(2))
        step = tf.constant(0)
        while step < limit and not tf.reduce_all(done):
            x = tf.gather(m.embedding, tf.reshape(tokens, [-1]))
            weights = tf.nn.softmax(tf.einsum("bh,bth->bt", h, memory))
            context = tf.einsum("bt,bth->bh", weights, memory)
            i, j, f, o = tf.split(tf.concat([x, h, context], 1) @ m.cell, 4, 1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            h = tf.tanh(c) * tf.sigmoid(o)
            logp = tf.reshape(tf.nn.log_softmax(h @ m.out), [batch, k, words_])
            finished = tf.one_hot(tf.zeros([batch, k], tf.int32), words_, 0.0, -1e9)
            total = scores[..., None] + tf.where(done[..., None], finished, logp)
            scores, best = tf.math.top_k(tf.reshape(total, [batch, k * words_]), k)
            parent, tokens = best // words_, best % words_
            flat = tf.reshape(tf.range(batch)[:, None] * k + parent, [-1])
            c, h, done = tf.gather(c, flat), tf.gather(h, flat), tf.gather(done, parent, batch_dims=1) | (tokens == 0)
            ids, parents = ids.write(step, tokens), parents.write(step, parent)
            step += 1
        at, result = tf.tile(tf.range(k)[None], [batch, 1]), tf.TensorArray(tf.int32, step, element_shape=[None, k])
        for t in tf.range(step - 1, -1, -1):
            result = result.write(t, tf.gather(ids.read(t), at, batch_dims=1))
            at = tf.gather(parents.read(t), at, batch_dims=1)
        return {"sequences": tf.transpose(result.stack(), [1, 2, 0]), "scores": scores, "steps": step}
    return {"serving_default": serve}, [{"source": np.array([[1, 2, 3], [4, 5, 6]], np.int32), "limit": np.int32(6)}, {"source": np.array([[7]], np.int32), "limit": np.int32(2)}]


@module("detection_postprocessing")
def detections(tf, m):
    centres = np.stack(np.meshgrid(np.arange(4) + 0.5, np.arange(4) + 0.5), -1).reshape(16, 2) / 4
    m.anchors = tf.constant(np.concatenate([centres - 0.15, centres + 0.15], 1).astype(np.float32))
    m.head = tf.Variable(normal(1, 1, 3, 4 + 5) * 0.5)

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 3], tf.float32, name="features"), tf.TensorSpec([None, 2], tf.float32, name="sizes")])
    def serve(features, sizes):
        raw = tf.reshape(tf.nn.conv2d(features, m.head, 1, "SAME"), [-1, 16, 9])
        delta, scores = raw[..., :4], tf.sigmoid(raw[..., 4:])
        low, high = tf.split(m.anchors, 2, -1)
        centre, extent = (low + high) / 2 + delta[..., :2] * 0.1 * (high - low), tf.exp(delta[..., 2:] * 0.2) * (high - low)
        boxes = tf.clip_by_value(tf.concat([centre - extent / 2, centre + extent / 2], -1), 0.0, 1.0)
        found = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 3, 6, 0.5, 0.55, pad_per_class=False, clip_boxes=True)
        picked, valid = tf.image.non_max_suppression_padded(boxes, tf.reduce_max(scores, -1), 5, 0.4, 0.5, pad_to_max_output_size=True, sorted_input=False, canonicalized_coordinates=True)
        soft, soft_scores = tf.image.non_max_suppression_with_scores(boxes[0], scores[0, :, 0], 4, 1.0, 0.3, 0.5)
        plain = tf.map_fn(lambda bs: tf.pad(p := tf.image.non_max_suppression(bs[0], bs[1], 4, 0.3), [[0, 4 - tf.size(p)]], constant_values=-1), (boxes, scores[..., 1]), fn_output_signature=tf.TensorSpec([4], tf.int32))
        crops = tf.image.crop_and_resize(features, tf.gather(boxes[0], soft), tf.zeros_like(soft), [2, 2])
        scaled = found.nmsed_boxes * tf.tile(sizes, [1, 2])[:, None]
        return {"boxes": scaled, "scores": found.nmsed_scores, "classes": tf.cast(found.nmsed_classes, tf.int64) + 1, "n": found.valid_detections, "picked": picked, "valid": valid, "soft": soft,
                "soft_scores": soft_scores, "plain": plain, "crops": crops, "overlap": tf.reduce_max(tf.image.sample_distorted_bounding_box([8, 8, 3], boxes[:1, :1], seed=3)[1]) > 0}
    return {"serving_default": serve}, [{"features": normal(2, 4, 4, 3), "sizes": np.array([[100, 200], [50, 60]], np.float32)}]


@module("message_passing")
def graphs(tf, m):
    m.w, m.u = tf.Variable(normal(4, 4) * 0.5), tf.Variable(normal(8, 4) * 0.5)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="nodes"), tf.TensorSpec([2, None], tf.int64, name="edges"), tf.TensorSpec([None], tf.int32, name="graph")])
    def serve(nodes, edges, graph):
        n, h = tf.shape(nodes)[0], nodes
        source, target = tf.unstack(edges)
        for _ in range(2):
            keys = tf.gather(h @ m.w, source)
            logits = tf.reduce_sum(keys * tf.gather(h, target), 1)
            top = tf.math.unsorted_segment_max(logits, target, n)
            weights = tf.exp(logits - tf.gather(top, target))
            weights = tf.math.divide_no_nan(weights, tf.gather(tf.math.unsorted_segment_sum(weights, target, n), target))
            messages = tf.math.unsorted_segment_sum(keys * weights[:, None], target, n)
            h = tf.nn.elu(tf.concat([h, messages], 1) @ m.u)
        adjacency = tf.sparse.reorder(tf.SparseTensor(tf.transpose(edges), tf.ones_like(source, tf.float32), [tf.cast(n, tf.int64)] * 2))
        degree = tf.sparse.reduce_sum(adjacency, 1)
        return {"h": h, "pooled": tf.math.segment_mean(h, graph), "smooth": tf.sparse.sparse_dense_matmul(adjacency, h) / tf.maximum(degree, 1.0)[:, None], "root": tf.math.unsorted_segment_sqrt_n(h, graph, 3),
                "most": tf.tensor_scatter_nd_max(tf.zeros([n, 4]), target[:, None], tf.gather(h, source)), "count": tf.math.bincount(tf.cast(target, tf.int32), minlength=n), "unique": tf.unique_with_counts(target).count}
    return {"serving_default": serve}, [{"nodes": normal(5, 4), "edges": np.array([[0, 1, 2, 3, 4, 0], [1, 2, 0, 4, 3, 2]], np.int64), "graph": np.array([0, 0, 0, 1, 1], np.int32)}]


@module("parsing_signatures")
def parsing(tf, m):
    m.w = tf.Variable(normal(3, 2))
    feature, train = tf.train.Feature, tf.train

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples):
        f = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([3], tf.float32), "k": tf.io.VarLenFeature(tf.int64), "s": tf.io.FixedLenFeature([], tf.string, "none"), "r": tf.io.RaggedFeature(tf.float32),
                                           "p": tf.io.RaggedFeature(tf.int64, "n", [tf.io.RaggedFeature.UniformRowLength(2)]), "seq": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)})
        return {"y": f["x"] @ m.w, "k": tf.sparse.to_dense(f["k"]), "s": f["s"], "r": f["r"].to_tensor(-1.0), "p": f["p"].to_tensor(-1), "seq": f["seq"]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="lines")])
    def lines(lines):
        a, b, c = tf.io.decode_csv(lines, [0.0, tf.constant([], tf.int64), "?"], na_value="NA", select_cols=[0, 1, 3])
        raw = tf.io.decode_raw(tf.strings.substr(lines, 0, 2), tf.uint8)
        fields = tf.strings.split(lines, ",")
        clean = tf.strings.regex_replace(tf.strings.lower(tf.strings.strip(c)), r"[^a-z0-9]+", "_")
        return {"a": a, "b": b, "c": clean, "raw": raw, "fields": fields.to_tensor("-"), "matches": tf.strings.regex_full_match(lines, r".*\d+.*"), "hash": tf.strings.to_hash_bucket_strong(c, 100, [1, 2]),
                "joined": tf.strings.reduce_join(fields, 1, separator="|"), "formatted": tf.strings.format("{} of {}", (tf.size(lines), a)), "bytes": tf.strings.bytes_split(c).row_lengths(), "hex": tf.strings.as_string(tf.cast(b, tf.float32), precision=2, width=8)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="sequence")])
    def sequence(sequence):
        context, lists = tf.io.parse_single_sequence_example(sequence, {"label": tf.io.FixedLenFeature([], tf.int64)}, {"frames": tf.io.FixedLenSequenceFeature([2], tf.float32), "tags": tf.io.VarLenFeature(tf.string)})
        return {"label": context["label"], "mean": tf.reduce_mean(lists["frames"], 0), "tags": tf.sparse.to_dense(lists["tags"], "")}
    floats = lambda *v: feature(float_list=train.FloatList(value=v))
    ints = lambda *v: feature(int64_list=train.Int64List(value=v))
    texts = lambda *v: feature(bytes_list=train.BytesList(value=v))
    one = train.Example(features=train.Features(feature={"x": floats(1, 2, 3), "n": ints(4, 5, 6, 7), "k": ints(8, 9), "s": texts(b"hi"), "r": floats(1.5), "seq": floats(1, 2, 3, 4)})).SerializeToString()
    two = train.Example(features=train.Features(feature={"x": floats(0, -1, 3), "r": floats()})).SerializeToString()
    listed = train.SequenceExample(context=train.Features(feature={"label": ints(3)}), feature_lists=train.FeatureLists(feature_list={
        "frames": train.FeatureList(feature=[floats(1, 2), floats(3, 5)]), "tags": train.FeatureList(feature=[texts(b"a"), texts(b"b", b"c")])})).SerializeToString()
    return {"serving_default": serve, "lines": lines, "sequence": sequence}, {
        "serving_default": [{"examples": words(one, two)}], "lines": [{"lines": words("1.5,7,x,Ab C!", "NA,8,y, zz ")}], "sequence": [{"sequence": np.array(listed, dtype=object)}]}


@module("on_device_training")
def training(tf, m):
    """train, infer, save and restore as signatures, with gradients and a hand-written Adam, as LiteRT's on-device training guide has it."""
    m.w, m.b = tf.Variable(normal(6, 3) * 0.3), tf.Variable(tf.zeros([3]))
    m.slots = [tf.Variable(tf.zeros_like(v)) for v in (m.w, m.b) for _ in range(2)]
    m.step = tf.Variable(0, dtype=tf.int64)
    logits = lambda x: tf.nn.dropout(tf.nn.gelu(x @ m.w), 0.0) + m.b
    x, y = tf.TensorSpec([None, 6], tf.float32, name="x"), tf.TensorSpec([None], tf.int32, name="y")

    @tf.function(input_signature=[x, y])
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits(x))) + 1e-3 * tf.nn.l2_loss(m.w)
        grads, norm = tf.clip_by_global_norm(tape.gradient(loss, [m.w, m.b]), 0.5)
        t = tf.cast(m.step.assign_add(1), tf.float32)
        for i, (v, g) in enumerate(zip((m.w, m.b), grads)):
            tf.raw_ops.ResourceApplyAdam(var=v.handle, m=m.slots[2 * i].handle, v=m.slots[2 * i + 1].handle, beta1_power=0.9 ** t, beta2_power=0.999 ** t, lr=0.05, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=g)
        return {"loss": loss, "norm": norm, "step": m.step.read_value()}

    @tf.function(input_signature=[x])
    def infer(x):
        return {"probabilities": tf.nn.softmax(logits(x))}

    @tf.function(input_signature=[])
    def reset():
        for v in m.slots:
            v.assign(tf.zeros_like(v))
        return {"step": m.step.assign(0)}
    one = {"x": normal(4, 6), "y": np.array([0, 1, 2, 1], np.int32)}
    return {"infer": infer, "train": train, "reset": reset}, {"infer": [{"x": one["x"]}], "train": [one, one, one], "reset": [{}]}


@module("table_service")
def tables(tf, m):
    m.static = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), 3)
    m.dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, 0.0, -1, -2, initial_num_buckets=8)
    m.open = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="keys"), tf.TensorSpec([None], tf.int64, name="ids")])
    def insert(keys, ids):
        m.open.insert(keys, ids)
        m.dense.insert(ids, tf.cast(ids, tf.float32) / 2.0)
        return {"size": m.open.size() + m.dense.size()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="keys")])
    def find(keys):
        ids = tf.ensure_shape(m.open.lookup(keys), [None])
        fresh = m.open.lookup(tf.boolean_mask(keys, ids < 0))
        return {"ids": ids, "weights": m.dense.lookup(tf.maximum(ids, 0)), "static": m.static.lookup(keys), "fresh": fresh, "n": m.static.size()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="keys")])
    def remove(keys):
        m.open.remove(keys)
        return {"left": tf.sort(m.open.export()[1])}
    return {"find": find, "insert": insert, "remove": remove}, {
        "insert": [{"keys": words("a", "x"), "ids": np.array([5, 6], np.int64)}], "find": [{"keys": words("a", "x", "q")}], "remove": [{"keys": words("x")}]}


@module("branches")
def branches(tf, m):
    m.w = [tf.Variable(normal(3, 3, seed=i) * 0.6) for i in range(3)]

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="which"), tf.TensorSpec([None], tf.int32, name="experts")])
    def serve(x, which, experts):
        def run(x):
            y = tf.switch_case(which, [lambda i=i: tf.nn.relu(x @ m.w[i]) for i in range(3)], default=lambda: x * 0.5)
            y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: tf.while_loop(lambda i, a: i < which + 2, lambda i, a: (i + 1, tf.cond(i % 2 == 0, lambda: tf.tanh(a @ m.w[0]), lambda: a + 0.1)), [0, y])[1], lambda: y - 1.0)
            return tf.case([(tf.equal(which, 1), lambda: y * 2.0), (tf.less(which, 5), lambda: y * 3.0)], default=lambda: y)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        mixture = tf.map_fn(lambda xe: tf.switch_case(xe[1], [lambda i=i: tf.linalg.matvec(m.w[i], xe[0]) for i in range(3)]), (x, experts), fn_output_signature=tf.float32)
        split = tf.dynamic_partition(x, experts, 3)
        routed = tf.dynamic_stitch(tf.dynamic_partition(tf.range(tf.shape(x)[0]), experts, 3), [s @ w for s, w in zip(split, m.w)])
        tf.debugging.assert_less(which, 9)
        tf.debugging.Assert(tf.shape(x)[0] > 0, [x])
        return {"y": y, "grad": tape.gradient(y, x), "mixture": mixture, "routed": routed, "fold": tf.foldl(lambda a, v: a * 0.5 + v, x), "scan": tf.scan(lambda a, v: a * v[0] + v, x, reverse=True)}
    return {"serving_default": serve}, [{"x": normal(4, 3), "which": np.int32(w), "experts": np.array([2, 0, 1, 0], np.int32)} for w in (0, 1, 2, 7)]


@module("linear_algebra")
def algebra(tf, m):
    m.a = tf.Variable(normal(4, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4], tf.float32, name="x")])
    def serve(x):
        positive = tf.matmul(x, x, transpose_b=True) + 2.0 * tf.eye(4)
        l = tf.linalg.cholesky(positive)
        s = tf.linalg.svd(x, compute_uv=False)
        e = tf.linalg.eigvalsh(positive)
        lu, p = tf.linalg.lu(positive)
        operator = tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(tf.ones([4]) * 2.0), m.a[:, :2])
        return {"l": l, "s": s, "e": e, "inverse": tf.linalg.inv(positive), "determinant": tf.linalg.slogdet(positive).log_abs_determinant, "solved": tf.linalg.cholesky_solve(l, x), "triangular": tf.linalg.triangular_solve(l, x),
                "least": tf.linalg.lstsq(x, m.a[None] + tf.zeros_like(x), 0.1), "exponential": tf.linalg.expm(x * 0.1), "root": tf.linalg.sqrtm(positive), "lu": lu, "p": p, "low_rank": operator.solvevec(x[0, 0]), "norm": tf.norm(x, axis=[1, 2]),
                "r": tf.abs(tf.linalg.qr(x).r), "band": tf.linalg.band_part(x, 1, 0), "set": tf.linalg.set_diag(x, s), "diag": tf.linalg.diag_part(x, k=(-1, 1)), "cross": tf.linalg.cross(x[:, 0, :3], x[:, 1, :3]), "global": tf.linalg.global_norm([x, l]),
                "kronecker": tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorFullMatrix(x[0, :2, :2]), tf.linalg.LinearOperatorIdentity(2)]).to_dense(), "tri": tf.linalg.tridiagonal_matmul(x[:, :3], x), "pinv": tf.linalg.pinv(x)}
    return {"serving_default": serve}, [{"x": normal(2, 4, 4)}]


@module("image_warps")
def warps(tf, m):
    m.t = tf.Variable([1.0, 0.1, -1.0, 0.05, 0.9, 0.5, 0.0, 0.001])

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.uint8, name="images")])
    def serve(images):
        x = tf.image.convert_image_dtype(images, tf.float32)
        n, h, w = tf.shape(x)[0], tf.shape(x)[1], tf.shape(x)[2]
        projected = tf.raw_ops.ImageProjectiveTransformV3(images=x, transforms=tf.repeat(m.t[None], n, 0), output_shape=[9, 8], fill_value=0.5, interpolation="BILINEAR", fill_mode="REFLECT")
        letter = tf.image.resize_with_pad(x, 12, 16)
        patches = tf.image.extract_patches(letter, [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1], "VALID")
        yiq, hsv = tf.image.rgb_to_yiq(x), tf.image.rgb_to_hsv(x)
        blurred = tf.nn.depthwise_conv2d(x, tf.tile(tf.constant([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]])[..., None, None] / 16, [1, 1, 3, 1]), [1, 1, 1, 1], "SAME")
        mosaic = tf.nn.depth_to_space(tf.nn.space_to_depth(letter, 4), 2)
        return {"projected": projected, "letter": letter, "patches": patches, "back": tf.image.hsv_to_rgb(hsv), "luma": yiq[..., :1], "edges": tf.image.sobel_edges(blurred), "mosaic": mosaic, "grey": tf.image.rgb_to_grayscale(images),
                "area": tf.image.resize(images, [5, 6], "area"), "lanczos": tf.image.resize(x, [11, 13], "lanczos5"), "nearest": tf.image.resize(images, [h * 2, w // 2], "nearest"), "ssim": tf.image.ssim(x, blurred, 1.0, filter_size=5),
                "variation": tf.image.total_variation(x), "turned": tf.image.rot90(x, 3), "crop": tf.image.resize_with_crop_or_pad(images, 6, 20), "contrast": tf.image.adjust_contrast(x, 1.7), "saturated": tf.image.adjust_saturation(x, 0.4),
                "psnr": tf.image.psnr(images, tf.cast(blurred * 255, tf.uint8), 255), "dilated": tf.nn.dilation2d(x, tf.zeros([3, 3, 3]), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]), "histogram": tf.histogram_fixed_width(x, [0.0, 1.0], 8)}
    return {"serving_default": serve}, [{"images": np.random.default_rng(0).integers(0, 255, (2, 10, 14, 3)).astype(np.uint8)}]


@stranger("tensorflow", "v1_two_metagraphs")
def metagraphs(path):
    """A module of TensorFlow Hub's first format: one checkpoint, a graph for serving and one for training with a tag more."""
    import tensorflow as tf
    v1 = tf.compat.v1
    builder = v1.saved_model.Builder(str(path))
    for tags in (["serve"], ["serve", "train"]):
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(5)
            x = v1.placeholder(tf.float32, [None, 5], "x")
            scope = v1.variable_scope("module", use_resource=False)
            with scope:
                y = tf.nn.relu(x @ v1.get_variable("w", [5, 4], initializer=v1.random_normal_initializer(seed=1)))
                y = tf.nn.dropout(y, 0.5) if "train" in tags else y
                mean = v1.get_variable("mean", [4], initializer=v1.zeros_initializer(), trainable=False)
                update = v1.assign(mean, 0.9 * mean + 0.1 * tf.reduce_mean(y, 0))
                v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
            session.run(v1.global_variables_initializer())
            predict = v1.saved_model.predict_signature_def({"x": x}, {"y": y - mean})
            signatures = {"serving_default": predict, "classify": v1.saved_model.classification_signature_def(v1.placeholder(tf.string, [None], "s"), None, tf.zeros([1, 2]))}
            add = builder.add_meta_graph_and_variables if len(tags) == 1 else None
            if add:
                add(session, tags, signatures, strip_default_attrs=True)
            else:
                builder.add_meta_graph(tags, signatures)
    builder.save()
    return {"serving_default": [{"x": normal(2, 5)}, {"x": normal(3, 5)}]}
