"""Small ops that belong to no larger family."""
from op_cases import *
from tensorflow.core.protobuf import composite_tensor_variant_pb2
from tensorflow.python.saved_model import nested_structure_coder


def f32(v):
    return np.array(v, np.float32)


def strings(*v):
    return np.array(v, dtype=object)


def numerics(r):
    for op in ("CheckNumerics", "CheckNumericsV2"):
        for t in FLOATING:
            d = np_type(t)
            yield case(op, r.numbers(t, (2, 3)), message="m", name=t)
            for bad in ([1, np.nan], [np.inf, 1], [-np.inf, 1], [np.nan, np.inf], [np.nan, -np.inf],
                        [np.inf, -np.inf], [np.nan, np.inf, -np.inf]):
                v1 = "Inf" * bool(np.isinf(bad).any()) + " and " * bool(np.isinf(bad).any() and np.isnan(bad).any()) \
                    + "NaN" * bool(np.isnan(bad).any())
                yield case(op, np.array(bad, d), message="look", name=t,
                           error="values" if op.endswith("V2") else f"look : Tensor had {v1} values")
        yield case(op, f32([]), message="m", name="empty")
    yield case("CheckNumericsV2", f32([np.nan, np.inf, -np.inf]), message="m",
               error="m : Tensor had -Inf, +Inf, and NaN values")
    yield case("CheckNumericsV2", f32([np.nan, np.inf]), message="m", error="m : Tensor had +Inf and NaN values")
    yield case("CheckNumericsV2", f32([np.inf, -np.inf]), message="m", error="m : Tensor had -Inf and +Inf values")


def formats(r):
    pairs = (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW"), ("HWNC", "NCHW"), ("ABCD", "DCBA"),
             ("NHWC", "NCWH"))
    for t in ("int32", "int64"):
        for a, b in pairs:
            yield case("DataFormatDimMap", array(t, [-4, -1, 0, 1, 2, 3]), src_format=a, dst_format=b, name=t)
            sizes = (3, 5) if len(a) == 5 else (4,) if a == "ABCD" else (2, 4)
            for n in sizes:
                x = array(t, range(10, 10 + n))
                yield case("DataFormatVecPermute", x, src_format=a, dst_format=b, name=t)
                yield case("DataFormatVecPermute", np.stack([x, x + 20], 1), src_format=a, dst_format=b, name=t)
    yield case("DataFormatDimMap", i32([[1, 2], [3, 0]]))
    yield case("DataFormatDimMap", i32([]), name="empty")
    yield case("DataFormatDimMap", i32(2), name="scalar")
    yield case("DataFormatDimMap", i32([4, 5]), name="wraps")
    for op, x in (("DataFormatDimMap", i32([1, 2])), ("DataFormatVecPermute", i32([1, 2, 3, 4]))):
        permutation = "Destination and source format must determine a permutation, got "
        for a, b, e in (("NHWC", "NHW", "Destination format must be of length 4 or 5, received dst_format = NHW"),
                        ("NHWCDE", "NHWC", "Source format must be of length 4 or 5, received src_format = NHWCDE"),
                        ("NHWC", "NHWX", permutation + "NHWC and NHWX"), ("NHHC", "NHHC", permutation),
                        ("NHWC", "NDHWC", permutation)):
            yield case(op, x, src_format=a, dst_format=b, error=e)
    for x, e in (([1, 2, 3], "1D input must be of size 2 or 4, but got shape [3]"),
                 ([[1, 2, 3]], "First dimension of 2D input must be of size 2 or 4, but got shape [1,3]"),
                 ([[1, 2, 3], [1, 2, 3]], "Second dimension of 2D input must be of size 2, but got shape [2,3]"),
                 (3, "input must be a vector or 2D tensor, but got shape []"),
                 ([[[1]]], "input must be a vector or 2D tensor, but got shape [1,1,1]")):
        yield case("DataFormatVecPermute", i32(x), error=e)
    yield case("DataFormatVecPermute", i32([1, 2]), src_format="ABCD", dst_format="DCBA",
               error="Format specifier must contain H and W for 2D case")
    yield case("DataFormatVecPermute", i32([1, 2, 3]), src_format="ABCDE", dst_format="EABCD",
               error="Format specifier must contain D, H and W for 2D case")


def inplace(r):
    for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub"):
        for t in NUMBERS:
            yield case(op, r.numbers(t, (3, 2)), i32([0, 2, 0]), r.numbers(t, (3, 2)), name=t)
        x = r.normal((3, 2))
        yield case(op, x, i32([4, -5, -1]), r.normal((3, 2)), name="wraps")
        yield case(op, r.normal((4,)), i32([1]), r.normal((1,)), name="vector")
        yield case(op, x, i32([]), np.zeros((0, 2), np.float32), name="nothing")
        yield case(op, np.zeros((0, 2), np.float32), i32([0]), f32([[1, 2]]), name="empty")
        yield case(op, np.zeros((3, 0), np.float32), i32([0]), np.zeros((1, 0), np.float32), name="empty")
        yield case(op, x, i32([[0]]), f32([[1, 1]]), error="i must be a vector. [1,1]")
        yield case(op, x, i32([0]), f32([1, 1]), error="x and v shape doesn't match (ranks differ): [3,2] vs. [2]")
        yield case(op, x, i32([0]), f32([[1, 1, 1]]), error="x and v shape doesn't match at index 1 : [3,2] vs. [1,3]")
        yield case(op, x, i32([0, 1]), f32([[1, 1]]), error="i and x shape doesn't match at index 0: [2] vs. [1,2]")
        if op == "InplaceUpdate":
            yield case(op, strings("a", "b"), i32([1]), strings("c"), name="string")
            yield case(op, np.array([True, False]), i32([0]), np.array([False]), name="bool")
        else:
            yield case(op, np.array([True, False]), i32([0]), np.array([False]), error="Unsupported data type: bool")
            yield case(op, strings("a"), i32([0]), strings("b"), error="Unsupported data type: string")


def numbers(r):
    for t in NUMBERS + ["bool"]:
        yield case("Fingerprint", r.numbers(t, (3, 4)), b"farmhash64", name=t)
    for x in (strings("a", "bcd", ""), strings("a", "bc", "", "x").reshape(2, 2), f32([1, 2]),
              np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), r.normal((2, 3, 2)),
              strings()):
        yield case("Fingerprint", x, b"farmhash64", name="shape")
    yield case("Fingerprint", f32(1), b"farmhash64", error="`data` should have at least one dimension: []")
    yield case("Fingerprint", f32([1]), b"md5", error="Unsupported fingerprint method: md5")
    yield case("Fingerprint", f32([1]), strings("farmhash64"), error="`method` should be a scalar string: [1]")
    for t, out in (("float", tf.float32), ("double", tf.float64), ("half", tf.half), ("bfloat16", tf.bfloat16),
                   ("int8", tf.float32), ("int16", tf.float32), ("int32", tf.float64), ("int64", tf.float64)):
        yield case("IsotonicRegression", r.numbers(t, (2, 7)), output_dtype=out, name=t)
        yield case("IsotonicRegression", array(t, [3, 1, 2, 4, 0]), output_dtype=out, name=t)
    for x in ([1, 1], [2, 2, 1, 1, 3], [1, 2, 1.5], 3, [], [[[3, 1]]], [5, 4, 3], [1, 2, 3], [[]]):
        yield case("IsotonicRegression", f32(x), name="shape")
    p, c = f32([[0, 0], [1, 1], [5, 5]]), f32([[0, 1], [4, 4], [9, 9], [-3, 2]])
    for k in (0, 1, 2, 4, 9):
        yield case("NearestNeighbors", p, c, np.int64(k))
    yield case("NearestNeighbors", r.normal((5, 3)), r.normal((6, 3)), np.int64(3), tol=(1e-4, 1e-5))
    for a, b, k, e in ((p[:0], c, np.int64(1), "Expected points.rows() > 0."),
                       (p, c[:, :1], np.int64(1), "Expected point_dimensions == center_dimensions: 2 vs 1."),
                       (p[0], c, np.int64(1), "Input points should be a matrix."),
                       (p, c[0], np.int64(1), "Input centers should be a matrix."),
                       (p, c, i64([1]), "Input k should be a scalar.")):
        yield case("NearestNeighbors", a, b, k, error=e)


def sets(r):
    ix = i64([[0, 0], [0, 1], [0, 3], [2, 0]])
    for t in SIGNED + ["uint8", "uint16", "string"]:
        yield case("SetSize", ix, array(t, ["5", "6", "5", "7"] if t == "string" else [5, 6, 5, 7]), i64([3, 4]), name=t)
    yield case("SetSize", i64([[0, 1, 0], [0, 1, 1], [1, 0, 1]]), i32([1, 2, 3]), i64([2, 2, 2]))
    yield case("SetSize", i64([[0, 1], [0, 0], [1, 0]]), i32([1, 1, 3]), i64([2, 2]), validate_indices=False)
    yield case("SetSize", np.zeros((0, 2), np.int64), i32([]), i64([2, 2]), name="empty")
    yield case("SetSize", np.zeros((0, 2), np.int64), i32([]), i64([0, 2]), name="empty")
    for a, v, s, e in (([[0, 1], [0, 0]], [1, 1], [2, 2], "indices[1] = [0,0] is out of order."),
                       ([[0, 1], [0, 1]], [1, 1], [2, 2], "indices[1] = [0,1] is repeated"),
                       ([[0], [1]], [1, 1], [3], "Invalid rank 1."),
                       ([[0, 5]], [1], [2, 2], "indices[0] = [0,5] is out of bounds: need 0 <= index < [2,2]"),
                       ([[-1, 0]], [1], [2, 2], "indices[0] = [-1,0] is out of bounds: need 0 <= index < [2,2]"),
                       ([[0, 0]], [1, 2], [2, 2], "must match. (indices = 1, values = 2)"),
                       ([0, 0], [1, 2], [2, 2], "indices must be a matrix, but got: [2]"),
                       ([[0, 0]], [1], [2, 2, 2], "Order length must be SparseTensor rank."),
                       ([[0, 0]], [1], [[2, 2]], "Shape must be a 1D tensor.")):
        yield case("SetSize", i64(a), i32(v), i64(s), error=e)


def questions(r):
    for t in REALS + ["bool"]:
        d = np_type(t)
        error = f"{t} cannot be converted to a boolean" if t in HALVES + ["uint16", "uint32", "uint64"] else None
        yield case("ToBool", d.type(0), name=t, error=error)
        yield case("ToBool", d.type(1), name=t, error=error)
        yield case("ToBool", np.zeros(2, d), name=t)
    for x in (f32([]), f32([0]), f32([[1, 2]]), np.float32(np.nan), np.float32(-0.0), np.array(b"", object),
              np.array(b"a", object), strings(""), np.array([0j])):
        yield case("ToBool", x)
    yield case("ToBool", np.complex64(1), error="complex64 cannot be converted to a boolean")
    for names in (["GPU", "CPU"], ["GPU"], ["CPU"], ["cpu"], ["CPU", "CPU"], ["TPU", "GPU", "CPU"], ["XLA_CPU"],
                  ["CPU", "GPU"]):
        yield case("DeviceIndex", device_names=names)
    for t in NUMBERS + ["string", "bool"]:
        yield case("GuaranteeConst", r.numbers(t, (2,)), name=t)
        value = tf.make_tensor_proto(r.numbers(t, (2,)))
        yield case("HostConst", value=value, dtype=tf.as_dtype(value.dtype), name=t)


def fed(x):
    return tf.compat.v1.placeholder(tf.as_dtype(x.dtype) if x.dtype.kind != "O" else tf.string, x.shape)


def with_map(entries, use):
    """A map of the entries, made from fed tensors, and what `use` makes of it."""

    def build():
        feed = {}

        def place(x):
            p = fed(x)
            feed[p] = x
            return p

        m = tf.raw_ops.EmptyTensorMap()
        for k, v in entries:
            m = tf.raw_ops.TensorMapInsert(input_handle=m, key=place(k), value=place(v))
        out = use(m, place)
        return feed, out if isinstance(out, list) else [out]

    def steps(error=None):
        feed, out = build()
        return [Step(fetch=out, feed=feed, error=error)]

    return steps


def maps(r):
    raw = tf.raw_ops
    kinds = {"float": (f32(1), f32(2)), "int64": (np.int64(1), np.int64(-1)), "vector": (i32([1, 2]), i32([2, 1])),
             "string": (np.array(b"a", object), np.array(b"b", object)),
             "mixed": (f32(1), np.int64(1)), "shapes": (f32(1), f32([1]))}
    for name, (a, b) in kinds.items():
        a, b = np.asarray(a), np.asarray(b)
        x, y = i32([1, 2]), i32([3])
        two = [(a, x), (b, y)]
        yield graph_case("TensorMapSize", with_map(two, lambda m, p: raw.TensorMapSize(input_handle=m)), name=name)
        yield graph_case("TensorMapSize", with_map(two + two, lambda m, p: raw.TensorMapSize(input_handle=m)), name=name)
        for key in (a, b):
            yield graph_case("TensorMapLookup", with_map(two, lambda m, p, key=key: raw.TensorMapLookup(
                input_handle=m, key=p(key), value_dtype=tf.int32)), name=name)
        yield graph_case("TensorMapInsert", with_map([(a, x), (a, y)], lambda m, p: raw.TensorMapLookup(
            input_handle=m, key=p(a), value_dtype=tf.int32)), name=name)
        yield graph_case("TensorMapHasKey", with_map([(a, x)], lambda m, p: [
            raw.TensorMapHasKey(input_handle=m, key=p(a)), raw.TensorMapHasKey(input_handle=m, key=p(b))]), name=name)
        yield graph_case("TensorMapErase", with_map(two, lambda m, p: (lambda e: [
            raw.TensorMapSize(input_handle=e), raw.TensorMapSize(input_handle=m),
            raw.TensorMapHasKey(input_handle=e, key=p(a)), raw.TensorMapHasKey(input_handle=e, key=p(b))])(
                raw.TensorMapErase(input_handle=m, key=p(a), value_dtype=tf.int32))), name=name)
        yield graph_case("TensorMapErase", with_map(two, lambda m, p: raw.TensorMapLookup(
            input_handle=raw.TensorMapErase(input_handle=m, key=p(b), value_dtype=tf.int32), key=p(a), value_dtype=tf.int32)), name=name)
        yield graph_case("TensorMapStackKeys", with_map([(a, x), (a, y)], lambda m, p: raw.TensorMapStackKeys(
            input_handle=m, key_dtype=tf.string if a.dtype.kind in "OS" else tf.as_dtype(a.dtype))), name=name)
    one = [(np.asarray(f32(1)), i32([1]))]

    def fails(op, entries, use, error):
        return graph_case(op, lambda: with_map(entries, use)(error), error=error)

    yield fails("TensorMapLookup", one, lambda m, p: raw.TensorMapLookup(input_handle=m, key=p(f32(5)), value_dtype=tf.int32),
                'Trying to lookup non-existent key. Could not find key "5".')
    yield fails("TensorMapLookup", one, lambda m, p: raw.TensorMapLookup(input_handle=m, key=p(f32(1)), value_dtype=tf.float32),
                "Output 0 of type int32 does not match declared output type float for node {{node TensorMapLookup}}")
    yield fails("TensorMapErase", one, lambda m, p: raw.TensorMapSize(input_handle=raw.TensorMapErase(
        input_handle=m, key=p(f32(5)), value_dtype=tf.int32)), 'Trying to erase non-existent item. Could not find key "5".')
    yield fails("TensorMapStackKeys", [], lambda m, p: raw.TensorMapStackKeys(input_handle=m, key_dtype=tf.float32),
                "TensorMapStackKeys cannot be called on empty map.")
    yield fails("TensorMapStackKeys", one, lambda m, p: raw.TensorMapStackKeys(input_handle=m, key_dtype=tf.int32),
                "Key does not match requested dtype.")
    yield fails("TensorMapStackKeys", one + [(f32([1, 2]), i32([1]))], lambda m, p: raw.TensorMapStackKeys(
        input_handle=m, key_dtype=tf.float32), "Keys must all have the same shape.")
    yield fails("TensorMapSize", [], lambda m, p: raw.TensorMapSize(input_handle=tf.stack([m, m])),
                "Input map must be a scalar. Saw: [2]")
    yield fails("TensorMapSize", [], lambda m, p: raw.TensorMapSize(input_handle=raw.EmptyTensorList(
        element_shape=-1, max_num_elements=3, element_dtype=tf.float32)), "Input handle is not a map. Saw: '")


def composites(r):
    raw = tf.raw_ops

    def build(parts, types, error=None, encoded=None, packed="", wanted=""):
        feed = {}
        for x in parts:
            feed[fed(x)] = x
        v = encoded() if encoded else raw.CompositeTensorVariantFromComponents(components=list(feed), metadata=packed)
        out = raw.CompositeTensorVariantToComponents(encoded=v, metadata=wanted, Tcomponents=types)
        return [Step(fetch=list(out), feed=feed, error=error)]

    op = "CompositeTensorVariantToComponents"
    parts = [np.asarray(f32(1)), i32([2, 3])]
    for p, types in ((parts, [tf.float32, tf.int32]), ([strings("a")], [tf.string]), ([f32([])], [tf.float32]),
                     ([f32([1]), f32([2]), f32([3])], [tf.float32] * 3), ([i64([[1, 2]])], [tf.int64]),
                     ([np.array([True])], [tf.bool]), ([r.numbers("half", (2, 2))], [tf.half]),
                     ([r.numbers("complex64", (2,))], [tf.complex64])):
        for name in (op, "CompositeTensorVariantFromComponents"):
            yield graph_case(name, lambda p=p, types=types: build(p, types))
    for types, e in (([tf.float32], "Encoded value has 2 tensor components; expected 1 components based on type_spec"),
                     ([tf.float32, tf.float32], "Tensor component 1 had dtype DT_INT32; expected dtype DT_FLOAT")):
        yield graph_case(op, lambda types=types, e=e: build(parts, types, e), error=e)
    e = "The input `encoded` is not a valid CompositeTensorVariant tensor, got Tensor<type: variant"
    yield graph_case(op, lambda: build([], [tf.float32], e, raw.EmptyTensorMap), error=e)

    def metadata(spec):
        return composite_tensor_variant_pb2.CompositeTensorVariantMetadata(
            type_spec_proto=nested_structure_coder.encode_structure(spec).type_spec_value).SerializeToString()

    sparse, ragged = metadata(tf.SparseTensorSpec([2, 3])), metadata(tf.RaggedTensorSpec([2, None]))
    types = [tf.float32, tf.int32]
    for packed, wanted, e in ((ragged, ragged, None), (sparse, metadata(tf.SparseTensorSpec([None])), None),
                              (sparse, ragged, "Expected a RAGGED_TENSOR_SPEC (based on `type_spec`), but `encoded` contains a "
                               "SPARSE_TENSOR_SPEC"), ("", sparse, "but `encoded` contains a UNKNOWN"),
                              ("x", "", "Error parsing metadata"), ("", b"\n", "Error parsing `metadata`")):
        yield graph_case("CompositeTensorVariantFromComponents" if packed == "x" else op,
                         lambda packed=packed, wanted=wanted, e=e: build(parts, types, e, packed=packed, wanted=wanted), error=e)


def cases(r):
    yield from numerics(r)
    yield from formats(r)
    yield from inplace(r)
    yield from numbers(r)
    yield from sets(r)
    yield from questions(r)
    yield from maps(r)
    yield from composites(r)
