"""Strings, regular expressions, hashes, encodings, CSV, Examples."""
import struct

from op_cases import *

R = tf.raw_ops


def S(*a):
    return np.array(a, dtype=object)


def s0(v):
    return np.array(v, dtype=object)


def elementwise(r):
    for op in ("StringLower", "StringUpper"):
        yield case(op, S("aBc", "", "\xc4 x", b"\xff"))
        yield case(op, S("aBc", "", "\xc4\xe4 x\xdf", "\u03a3\u0394 \u0416\u0436 \U00010400\U00010428", b"\xffB"), encoding="utf-8")
        yield case(op, S(b"\0", b"aB\0cD"), encoding="utf-8", name="zero_byte")
        yield case(op, S("a"), encoding="x", error="only utf-8 or '' (no encoding) is supported, received x")
        yield case(op, np.zeros((2, 0), object))
    yield case("StringStrip", S(" \t\n a b \r\v\f ", "", "x", "   "))
    for unit in ("BYTE", "UTF8_CHAR"):
        yield case("StringLength", S("a\xe4b", b"\xff\x80a", "", "\U0001F600"), unit=unit)
        yield case("StringLength", s0("abc"), unit=unit)
        words = S("hello", "w\xf6rld")
        for pos, n in [(1, 3), (-3, 2), (0, 99), (0, 0), (5, 1), (-5, 5), (2, -1)]:
            yield case("Substr", words, i32(pos), i32(n), unit=unit)
            yield case("Substr", words, i64([pos, 0]), i64([n, 1]), unit=unit)
        yield case("Substr", S("hello", "w"), i32(3), i32(2), unit=unit, error="pos 3 out of range for string")
        yield case("Substr", S("hello", "w"), i32(-3), i32(2), unit=unit, error="pos -3 out of range for string")
        yield case("Substr", s0("hello"), i32([0, 1]), i32([2, 2]), unit=unit)
        yield case("Substr", s0("hello"), i32([0, 7]), i32([2, 2]), unit=unit, error="pos 7 out of range")
        yield case("Substr", s0([["hello"], ["abc"]]), i32([0, 1]), i32([2, 2]), unit=unit)
        yield case("Substr", words, i32([0, 9, 1]), i32([2, 2, 1]), unit=unit, error="Incompatible shapes: [2] vs. [3]")
        yield case("Substr", words, i32([0, 9]), i32([2]), unit=unit, error="pos and len should have the same shape")
    yield case("Substr", S("hello", "w"), i32(3), i32(2), error="pos 3 out of range for string b'w' at index 1")
    yield case("StringJoin", [S("a", "b"), s0("x"), S("c", "d")], separator="-")
    yield case("StringJoin", [s0("a"), s0("")], separator="-")
    yield case("StringJoin", [S("a", "b"), S("c", "d", "e")], error="Input shapes do not match: [2] vs. [3]")
    for axes in ([0], [1], [0, 1], [1, 0], [], [-1]):
        for keep in (False, True):
            yield case("ReduceJoin", s0([["a", "b"], ["c", "d"]]), i32(axes), keep_dims=keep, separator=".")
    yield case("ReduceJoin", s0([["a"]]), i32([2]), error="Invalid reduction dimension 2 for input with 2 dimension(s)")
    yield case("ReduceJoin", s0([["a"]]), i32([0, -2]), error="Duplicate reduction dimension -2")
    yield case("ReduceJoin", np.zeros((2, 0), object), i32([1]))
    yield case("UnsortedSegmentJoin", S("a", "b", "c"), i32([0, 2, 0]), i32(3), separator="-")
    yield case("UnsortedSegmentJoin", s0([["a", "b"], ["c", "d"]]), i64([1, 1]), i64(2), separator="-")
    yield case("UnsortedSegmentJoin", S("a", "b"), i32([0, 5]), i32(3), error="segment_ids are not allowed to exceed")
    yield case("UnsortedSegmentJoin", S("a", "b"), i32([0, -1]), i32(3), error="or to have negative values")
    yield case("UnsortedSegmentJoin", S("a", "b"), i32([0, 1]), i32(-3), error="must be non-negative but got -3")
    yield case("UnsortedSegmentJoin", S("a", "b", "c"), i32([0, 1]), i32(3), error="Segment dimension is 2 while input dimension is")
    fmt = lambda *t, **k: case("StringFormat", list(t), placeholder="{}", **k)
    yield fmt(np.float32([1.5, 2, 3, 4, 5, 6, 7, 8, 9]), np.arange(4).reshape(2, 2), S("a", "b"), template="x {} y {} {}")
    yield fmt(np.arange(30.0).reshape(5, 3, 2), s0("s"), np.array(True), template="{}{} {}.", summarize=2)
    yield fmt(np.arange(12.0).reshape(2, 3, 2), template="{}", summarize=-1)
    yield fmt(np.float64([1.23456789012, 1e10, 1e-7, np.nan]), np.float32(0.1), template="{} {}", summarize=9)
    yield fmt(s0("s"), i32(3), i32([1, 2]), template="{} {} {}", summarize=0)


def regexes(r):
    for name in ("", "Static"):

        def full(s, p, **k):
            return case(name + "RegexFullMatch", s, **dict(k, pattern=p)) if name else case("RegexFullMatch", s, s0(p), **k)

        def replace(s, p, w, **k):
            if name:
                return case("StaticRegexReplace", s, **dict(k, pattern=p, rewrite=w))
            return case("RegexReplace", s, s0(p), s0(w), **k)

        yield full(S("abc", "s3://x", "xabc", ""), "a.*")
        yield full(s0("s3://x"), "^s3://.*")
        yield full(S("\xe4"), ".")
        yield full(S("abc"), "a(*", error="Invalid pattern: a(*, error: no argument for repetition operator: *")
        yield replace(S("abc", "aXa"), "a", "\\\\0\\0")
        yield replace(S("abc", "aXa"), "(a)(.)", "\\2\\1", replace_global=False)
        yield replace(S("abc", "aXa"), "", "-")
        yield replace(S("abc", "aXa"), "a", "\\1")
        for rewrite in ("<\\1\\q>", "x\\", "\\2\\1\\", "\\3\\"):
            for everywhere in (False, True):
                yield replace(S("lead ab cab", "x", ""), "(a)(b)?", rewrite, replace_global=everywhere)
        yield replace(S("abc"), "a(", "x", error="Invalid pattern: a(, error: missing ): a(")
    yield case("RegexFullMatch", S("a"), S("a", "b"), error="Pattern must be scalar, but received [2]")
    yield case("RegexReplace", S("a"), s0("a"), S("a", "b"), error="Rewrite must be scalar, but received [2]")
    lines = S("a b  c", "", "d", " x ", "a, b")
    for skip in (True, False):
        for d in (" ", " ,", ""):
            yield case("StringSplit", lines, s0(d), skip_empty=skip)
    yield case("StringSplit", S("a"), S("a", "b"), error="delimiter must be a scalar, got shape: [2]")
    for sep in ("", "<>", " "):
        for n in (-1, 0, 1, 2):
            yield case("StringSplitV2", S(" a b  c ", "", "d", "a<>b<><>c", "<>"), s0(sep), maxsplit=n)
    yield case("StringSplitV2", s0("a"), s0(""), error="input must be a vector, got shape: []")
    yield case("StringSplitV2", S("a"), S("a", "b"), error="sep must be a scalar, got shape: [2]")
    yield case("StringSplitV2", np.zeros((0,), object), s0(""))


def numbers(r):
    texts = ["1.5", " 2 ", "abc", "1e400", "nan", "-inf", "", "1 2", "9999999999999999999", "-5", "1.0", "+7", "1e-50",
             "0.1", "3.4028236e38", "123456789"]
    for t in (tf.float32, tf.float64, tf.int32, tf.int64, tf.uint32, tf.uint64):
        for s in texts:
            try:
                tf.strings.to_number(s, t)
                yield case("StringToNumber", S(s, s), out_type=t)
            except (tf.errors.OpError, TypeError, ValueError):
                yield case("StringToNumber", S(s), out_type=t,
                           error="StringToNumberOp could not correctly convert string: " + s)
    for t in INTS + ["bool"]:
        yield case("AsString", array(t, [0, 1, 3, 100]), name=t)
    x = np.array([0, 1, -3.25, 1e10, 1.23456789e-5, np.nan, np.inf])
    for t in FLOATING:
        yield case("AsString", x.astype(np_type(t)), name=t)
    for t in COMPLEX:
        yield case("AsString", (x[:5] + 1j).astype(np_type(t)), name=t)
    for k in [dict(precision=3), dict(scientific=True), dict(shortest=True), dict(width=12), dict(fill="0", width=9),
              dict(fill="-", width=12), dict(fill=" ", width=12), dict(fill="+"), dict(precision=0),
              dict(scientific=True, precision=2, width=12, fill="0"), dict(shortest=True, precision=10), dict(width=200)]:
        yield case("AsString", x.astype(np.float32), **k)
    yield case("AsString", i32([5, -5]), width=5, fill="0")
    yield case("AsString", i64([5, -5]), width=5)
    yield case("AsString", np.array([True]), width=7)
    yield case("AsString", S("a", "bcdef"), width=3)
    yield case("AsString", i32([5]), precision=3, error="precision not supported for datatype int32")
    yield case("AsString", i32([5]), scientific=True, error="scientific and shortest format not supported for datatype int32")
    yield case("AsString", np.float32([5]), scientific=True, shortest=True, error="Cannot select both scientific and shortest notation")
    yield case("AsString", np.float32([5]), fill="x", error='Fill argument not supported: "x"')
    yield case("AsString", np.float32([5]), fill="00", error="Fill string must be one or fewer characters")
    words = [b"", b"a"] + [bytes(r.rng.integers(0, 256, n).astype(np.uint8)) + b"!" for n in
                           (1, 3, 6, 7, 8, 14, 15, 16, 20, 31, 32, 33, 50, 63, 64, 65, 100, 128, 200)]
    for n in (1, 10, 2**40, 2**63 - 1):
        yield case("StringToHashBucketFast", S(*words), num_buckets=n)
        yield case("StringToHashBucket", S(*words), num_buckets=n)
        yield case("StringToHashBucketStrong", S(*words), num_buckets=n, key=[123, -456])
    yield case("StringToHashBucketFast", s0("x"), num_buckets=7)
    yield case("StringToHashBucketStrong", S("a"), num_buckets=10, key=[1], error="Key must have 2 elements")


def encodings(r):
    words = S("", "a", "ab", "abc", b"\xff\xfe\xfd\xfb\xef", "hello, world")
    for pad in (False, True):
        yield case("EncodeBase64", words, pad=pad)
    yield case("DecodeBase64", S("", "YQ==", "YQ", "YWI=", "YWI", "YWJj", "_-8", "_-8="))
    yield case("DecodeBase64", S("Y*=="), error="Invalid character found in base64.")
    yield case("DecodeBase64", S("+/8="), error="Invalid character found in base64.")
    yield case("DecodeBase64", S("Y==="), error="")
    yield case("DecodeBase64", S("Y"), error="Base64 string length cannot be 1 modulo 4.")
    for t in (tf.int16, tf.uint8, tf.float32, tf.float64, tf.int64, tf.complex64):
        for little in (True, False):
            yield case("DecodeRaw", S("abcdefgh", "ijklmnop"), out_type=t, little_endian=little)
    yield case("DecodeRaw", S("", ""), out_type=tf.int16)
    yield case("DecodeRaw", np.zeros((0,), object), out_type=tf.int16)
    yield case("DecodeRaw", s0("abcd"), out_type=tf.int32)
    yield case("DecodeRaw", S("abcd", "ef"), out_type=tf.int16, error="DecodeRaw requires input strings to all be the same size, but element 1 has size 4 != 2")
    yield case("DecodeRaw", S("abc", "efg"), out_type=tf.int16, error="Input to DecodeRaw has length 3 that is not a multiple of 2")
    yield case("DecodePaddedRaw", S("abc", "efghi", ""), i32(4), out_type=tf.int16)
    yield case("DecodePaddedRaw", S("abc", "efghi"), i32(4), out_type=tf.int16, little_endian=False)
    yield case("DecodePaddedRaw", S("abc"), i32(3), out_type=tf.int16, error="fixed_length (3) must be a multiple")
    yield case("DecodePaddedRaw", S("abc"), i32(0), out_type=tf.int16, error="must be greater than zero")
    for t in FLOATS + ["int32", "int64", "bool", "string", "uint8", "half"]:
        x = r.numbers(t, (2, 3))
        yield case("SerializeTensor", x, name=t)
        yield case("ParseTensor", s0(tf.make_tensor_proto(x, dtype=tf.as_dtype(t)).SerializeToString()),
                   out_type=tf.as_dtype(t), name=t)
    yield case("SerializeTensor", np.zeros((2, 0), np.float32))
    yield case("SerializeTensor", np.float32([1, 1, 1, 1]))
    yield case("SerializeTensor", i32(5))
    two = tf.make_tensor_proto(np.float32([1, 2])).SerializeToString()
    yield case("ParseTensor", s0(two), out_type=tf.int32, error="Type mismatch between parsed tensor (float) and dtype (int32)")
    yield case("ParseTensor", s0("abc"), out_type=tf.int32, error="Could not parse `serialized` as TensorProto, base64: YWJj")

    three = [i32([1]), np.zeros((0,), np.float32), S("z")]
    csv = lambda lines, d=three, **k: case("DecodeCSV", S(*lines), d, **k)
    yield csv(["1,2.5,abc", ',3,"a ""q"", x"'])
    yield csv(["NA,1,NA"], na_value="NA")
    yield csv(["1,2,3,4"], [i32([1]), i64([2])], select_cols=[1, 3])
    yield csv(['1,2,a"b'], use_quote_delim=False)
    yield csv(["1,2,"])
    yield csv(['1;2;"a;b"'], field_delim=";")
    yield csv(["1,2"], error="Expect 3 fields but have 2 in record 0")
    yield csv(["1,2,3", "1,2,3,4"], error="Expect 3 fields but have 4 in record 1")
    yield csv(["1,,3"], error="Field 1 is required but missing in record 0!")
    yield csv(["x,1,3"], error="Field 0 in record 0 is not a valid int32: x")
    yield csv(["1,xx,3"], error="Field 1 in record 0 is not a valid float: xx")
    yield csv(['1,2,a"b'], error="Unquoted fields cannot have quotes/CRLFs inside")
    yield csv(['1,2,"ab'], error="Quoted field has to end with quote followed by delim or end")
    yield csv(['1,2,"a"x'], error="Quote inside a string has to be escaped by another quote")
    yield csv([""], error="Expect 3 fields but have 0 in record 0")
    grams = lambda splits, widths, **k: case("StringNGrams", S("a", "b", "c", "d"), i64(splits), ngram_widths=widths, **dict(
        dict(separator="|", left_pad="<", right_pad=">", pad_width=-1, preserve_short_sequences=False), **k))
    for widths in ([2], [2, 3], [1], [5]):
        for pad in (-1, 0, 1):
            for keep in (False, True):
                if keep and pad < 0:
                    continue
                yield grams([0, 3, 3, 4], widths, pad_width=pad, preserve_short_sequences=keep)
    yield grams([0, 3, 7], [2], error="Invalid split value 7, must be in [3, 4]")
    yield grams([1, 4], [2], error="First split value must be 0, got 1")
    yield grams([0, 3, 2, 4], [2], error="Invalid split value 2, must be in [3, 4]")
    yield grams([0, 3], [2], error="Last split value must be data size")

    texts = S("a\xe4", b"\xffb", "", "\u4e00\U0001F600", b"\xe4\xb8", b"\xe4\xb8x", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80z",
              b"\xf5\x80", "x\ny")
    for errors in ("replace", "ignore"):
        for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets"):
            yield case(op, texts, input_encoding="UTF-8", errors=errors)
            yield case(op, texts, input_encoding="UTF-8", errors=errors, replacement_char=63, replace_control_characters=True)
            yield case(op, S("a\xe4\U0001F600".encode("utf-16-be")), input_encoding="UTF-16-BE", errors=errors)
            yield case(op, S("a\xe4\U0001F600".encode("utf-32-be")), input_encoding="UTF-32-BE", errors=errors)
            yield case(op, S(b"a\xe4\xff"), input_encoding="ISO-8859-1", errors=errors)
        for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
            yield case("UnicodeTranscode", texts, input_encoding="UTF-8", output_encoding=out, errors=errors)
            yield case("UnicodeEncode", i32([97, 228, 0x1F600, 98, 0xD800, 0x110000]), i64([0, 2, 2, 6]), output_encoding=out,
                       errors=errors)
    yield case("UnicodeDecode", texts, input_encoding="UTF-8", errors="strict", error="Invalid formatting on input string")
    yield case("UnicodeTranscode", texts, input_encoding="UTF-8", output_encoding="UTF-8", errors="strict", error="Invalid formatting on input string")
    yield case("UnicodeEncode", i32([0xD800]), i64([0, 1]), output_encoding="UTF-8", errors="strict", error="Code point is out of range for Unicode, or is a surrogate.")
    yield case("UnicodeEncode", i32([97, 98]), i64([0, 3]), output_encoding="UTF-8", error="Last value in input_splits must be equal to length of input_tensor.")
    yield case("UnicodeScript", i32([97, 228, 0x410, 0x4E00, 48, -1, 0x110000, 0x3042]))


def example(**features):
    e = tf.train.Example()
    for k, v in features.items():
        f = e.features.feature[k]
        if v is None:
            continue
        if isinstance(v, str):
            {"F": f.float_list, "I": f.int64_list, "B": f.bytes_list}[v].SetInParent()
        elif isinstance(v[0], bytes):
            f.bytes_list.value.extend(v)
        elif isinstance(v[0], float):
            f.float_list.value.extend(v)
        else:
            f.int64_list.value.extend(v)
    return e.SerializeToString(deterministic=True)


def field(n, body):
    return bytes([n << 3 | 2, len(body)]) + body


def feature(body, key=b"x"):
    return field(1, field(1, field(1, key) + field(2, body)))


def floats(*v):
    return field(2, b"".join(b"\x0d" + struct.pack("<f", x) for x in v))


NONE = {"float": np.zeros((0,), np.float32), "int64": np.zeros((0,), np.int64), "string": np.zeros((0,), object)}


def default_of(d):
    """None: required; or, of a feature of any length, padded with zeros."""
    key, t, shape, value = d
    if value is not None:
        return array(t, value)
    return array(t, "" if t == "string" else 0) if shape[:1] == [None] else NONE[t]


def parse(serialized, sparse=(), dense=(), ragged=(), names=(), v2=True, **k):
    """sparse: (key, type); dense: (key, type, shape, default); ragged: (key, type, splits type)."""
    text = lambda l: np.array(list(l), dtype=object)
    types = lambda l: [tf.as_dtype(e[1]) for e in l]
    ser = np.empty((len(serialized),), object) if isinstance(serialized, list) else s0(serialized)
    if isinstance(serialized, list):
        ser[:] = serialized
    defaults = [default_of(d) for d in dense]
    attrs = dict(sparse_types=types(sparse), dense_shapes=[d[2] for d in dense], Tdense=types(dense))
    del attrs["Tdense"]
    if v2:
        return case("ParseExampleV2", ser, text(names), text(e[0] for e in sparse), text(e[0] for e in dense),
                    text(e[0] for e in ragged), defaults, num_sparse=len(sparse), ragged_value_types=types(ragged),
                    ragged_split_types=[tf.as_dtype(e[2]) for e in ragged], **attrs, **k)
    return case("ParseExample", ser, text(names), [s0(e[0]) for e in sparse], [s0(e[0]) for e in dense], defaults, **attrs, **k)


def examples(r):
    two = [example(x=[1.0, 2.0], s=[b"a", b"b"], i=[3]), example(x=[3.0, 4.0], i=[4, 5])]
    x2 = ("x", "float", [2], None)
    for v2 in (True, False):
        p = lambda *a, **k: parse(*a, v2=v2, **k)
        yield p(two, dense=[x2])
        yield p(two, sparse=[("s", "string"), ("i", "int64"), ("q", "float")])
        yield p(two, sparse=[("i", "int64")], dense=[x2, ("q", "float", [2], [7, 8]), ("z", "string", [], "d"), ("n", "int64", [1, 1], [[5]])])
        yield p(two, dense=[("q", "float", [2], None)], error="Name: <unknown>, Feature: q (data type: float) is required but could not be found.")
        yield p(two, dense=[("q", "float", [2], None)], names=["n1", "n2"], error="Name: n1, Feature: q (data type: float) is required")
        yield p(two, dense=[("x", "int64", [2], None)], error="Name: <unknown>, Key: x, Index: 0.  Data types don't match. Data type: float but expected type: int64")
        yield p(two, sparse=[("x", "int64")], error="Data types don't match. Expected type: int64, Actual type: float")
        yield p(two, dense=[("x", "float", [3], None)], error="Number of float values != expected.  Values size: 2 but output shape: [3]")
        yield p(two, dense=[("i", "int64", [], None)], names=["n1", "n2"], error="Name: n2, Key: i, Index: 1.  Number of int64 values != expected.  Values size: 2 but output shape: []")
        yield p(two, dense=[("i", "int64", [None], None), ("q", "float", [None, 2], None)])
        yield p(two, dense=[("x", "float", [None, 2], None), ("s", "string", [None], "pad"), ("i", "int64", [None], 9)])
        yield p(two, dense=[("i", "int64", [None, 2], None)], error="Number of int64 values is not a multiple of stride length. Saw 1 values but output shape is: [?,2]")
        yield p(two, dense=[("i", "float", [None], 9)], error="Data types don't match. Data type: int64 but expected type: float")
        yield p([b"\x7f\x7f", b"abc"], dense=[x2], error="Could not parse example input, value: '")
        yield p([b"", b""], dense=[("x", "float", [2], [0, 1])], sparse=[("s", "string")])
        yield p([], dense=[("x", "float", [2], [0, 1]), ("v", "int64", [None], None)], sparse=[("s", "string")])
        yield p(two, dense=[("x", "float", [2], [1])], error="def_value[0].shape() == [1] is not compatible with dense_shapes_[0] == [2]")
        yield p(two, dense=[x2], names=["a"], error="Expected name")
        yield p(two, dense=[("i", "int64", [None], [1, 2])], error="must contain a single element (the padding element).")
    xs = [("x", "float")]
    yield parse([example(x="F", y="F")], sparse=[("y", "float")], dense=[("x", "float", [2], [5, 6])], error="Values size: 0 but output shape: [2]")
    yield parse([example(x=None, y=None)], sparse=[("y", "float")], dense=[("x", "float", [2], [5, 6])])
    yield parse([example(x="I")], sparse=xs, error="Expected type: float, Actual type: int64")
    twice = example(x=[1.0, 2.0]) + example(x=[3.0, 4.0])
    yield parse([twice], dense=[x2])
    yield parse([twice], sparse=xs)
    yield parse([example(x=[1.0]) + example(x=[3])], sparse=xs, error="Actual type: int64")
    yield parse([feature(floats(1, 2, 3))], sparse=xs)
    yield parse([feature(floats(1, 2) + floats(3))], sparse=xs)
    yield parse([feature(field(3, field(1, b"\x05")) + floats(3))], sparse=[("x", "int64")])
    yield parse([feature(field(2, field(1, struct.pack("<ff", 1, 2)) + b"\x0d" + struct.pack("<f", 9)))], sparse=xs)
    yield parse([field(1, field(1, field(2, floats(4)) + field(1, b"x")))], sparse=xs)
    yield parse([b"\x18\x05" + feature(floats(4) + b"\x28\x01") + b"\x1d1234"], sparse=xs)
    yield parse([feature(field(3, b"\x08" + b"\xff" * 9 + b"\x01" + b"\x08\x07"))], sparse=[("x", "int64")])
    yield parse([feature(field(3, field(1, b"\x85")))], sparse=[("x", "int64")], error="Can't parse serialized Example.")
    yield parse([feature(field(4, b""))], sparse=xs, error="Unsupported datatype.")
    yield parse([field(1, field(1, field(1, b"x")))], sparse=xs, error="Could not parse example input")
    for t in ("int32", "int64"):
        yield parse(two, ragged=[("i", "int64", t), ("s", "string", t), ("q", "float", t)])
    yield parse([], ragged=[("i", "int64", "int32")])
    yield parse(two, ragged=[("i", "float", "int32")], error="Expected type: float, Actual type: int64")
    yield parse(two[0], sparse=[("s", "string"), ("q", "float")], dense=[x2, ("i", "int64", [None], None)], ragged=[("i2", "int64", "int32")])
    yield parse(two[0], dense=[("q", "float", [2], None)], error="Feature: q (data type: float) is required but could not be found.")
    yield parse(two[0], dense=[("x", "float", [3], None)], error="Key: x.  Can't parse serialized Example: Some float_list slice was not parsed.")
    yield parse(two[0], dense=[("x", "int64", [2], None)], error="Key: x.  Data types don't match. Data type: float but expected type: int64")
    yield parse(b"\x7f\x7f", dense=[x2], error="Could not parse example input, value: '")
    single = lambda sparse, dense, **k: case(
        "ParseSingleExample", s0(two[0]), [default_of(d) for d in dense], num_sparse=len(sparse),
        sparse_keys=[e[0] for e in sparse], sparse_types=[tf.as_dtype(e[1]) for e in sparse], dense_keys=[d[0] for d in dense],
        dense_shapes=[d[2] for d in dense], **k)
    yield single([("s", "string")], [x2, ("z", "int64", [2], [1, 2])])
    yield single([("s", "string")], [("i", "int64", [None], None)])
    yield single([], [("q", "float", [], None)], error="is required but could not be found.")


def more(r):
    yield case("UnicodeDecodeWithOffsets", S(b"\xff"), input_encoding="UTF-8", errors="strict",
               error="Invalid formatting on input string")
    shapes = [(), (0,), (3,), (2, 2), (1, 0, 2)]
    for shape in shapes:
        x = r.strings(shape, 9)
        for op in ("StringLower", "StringUpper", "StringStrip", "StringLength", "EncodeBase64", "SerializeTensor"):
            yield case(op, x, name="shape")
        yield case("DecodeBase64", np.vectorize(lambda v: b"aGk=", otypes=[object])(x) if x.size else x, name="shape")
        yield case("StringToHashBucketFast", x, num_buckets=5, name="shape")
        yield case("StringToHashBucket", x, num_buckets=5, name="shape")
        yield case("StringToHashBucketStrong", x, num_buckets=5, key=[1, 2], name="shape")
        yield case("StringJoin", [x, x], separator="/", name="shape")
        yield case("RegexFullMatch", x, s0("[a-m]*"), name="shape")
        yield case("StaticRegexFullMatch", x, pattern="[a-m]*", name="shape")
        yield case("RegexReplace", x, s0("[a-m]"), s0("<\\0>"), name="shape")
        yield case("StaticRegexReplace", x, pattern="[a-m]", rewrite="<\\0>", name="shape")
        for u in ("UTF-16-BE", "UTF-32-BE"):
            yield case("UnicodeTranscode", x, input_encoding="UTF-8", output_encoding=u, name="shape")
        yield case("UnicodeScript", r.ints(shape, 0, 0x2FFFF), name="shape")
        yield case("DecodePaddedRaw", x, i32(8), out_type=tf.int32, name="shape")
        yield case("StringFormat", [x, r.normal(shape)], template="{}: {}", placeholder="{}", name="shape")
    yield case("StringStrip", S(b"\x00 a \x00", "\u00a0a\u2003"), name="bytes")
    yield case("StringStrip", S(b"\x1c\x1d\x85 x", "\f\v\r\n"), name="control")
    yield case("EncodeBase64", S(*[bytes(range(250, 250 + n)) for n in range(6)]), pad=True, name="lengths")
    for code in ([0, 9, 64, 91, 127], [0x370, 0x5D0, 0x621, 0x905, 0xE01], [0xD800, 0x10FFFF, 2**31 - 1, -2**31, 0xFFFF]):
        yield case("UnicodeScript", i32(code))
    for t in (tf.uint8, tf.int8, tf.float32, tf.float64, tf.int64, tf.uint16):
        yield case("DecodePaddedRaw", S(b"abc\x00\xff", b"\x80", ""), i32(8), out_type=t)
    yield case("DecodeRaw", S(bytes(range(32)), b"\x00" * 32), out_type=tf.complex128, little_endian=False)
    yield case("StringSplit", np.zeros((0,), object), s0(" "))
    yield case("StringSplit", s0("a b"), s0(" "), error="input must be a vector, got shape: []")
    yield case("StringSplit", S("a\0b", "\xff\xfe b"), s0(" "))
    yield case("UnsortedSegmentJoin", np.zeros((0,), object), i32([]), i32(2), separator="-")
    yield case("UnsortedSegmentJoin", S("a", "b"), i32([0, 0]), i32([1]), error="Number of segments must be a scalar")
    yield case("UnsortedSegmentJoin", s0([["a", "b"], ["c", "d"]]), i32([[0, 1], [1, 0]]), i32(2), separator="")
    yield case("StringToHashBucketStrong", S("a"), num_buckets=10, key=[1, 2, 3], error="Key must have 2 elements")
    yield case("StringJoin", [S("a", "b")], separator="-", name="one")
    yield case("StringJoin", [s0("x"), np.zeros((0,), object)], separator="-", name="empty")
    e = example(a=[1.0, 2.0], b=[7], c=[b"x", b"y"])
    one = lambda sparse, dense, text=e, **k: case(
        "ParseSingleExample", s0(text), [d[3] for d in dense], num_sparse=len(sparse), sparse_keys=[s[0] for s in sparse],
        sparse_types=[tf.as_dtype(s[1]) for s in sparse], dense_keys=[d[0] for d in dense],
        dense_shapes=[d[2] for d in dense], **k)
    none = lambda t: np.zeros((0,), object if t == "string" else np_type(t))
    yield one([("a", "float"), ("b", "int64"), ("c", "string")], [])
    yield one([("nope", "float")], [("a", "float", [2], none("float")), ("b", "int64", [1], none("int64"))])
    yield one([], [("c", "string", [2], none("string")), ("nope", "string", [1], S("default"))])
    yield one([], [("a", "float", [2], none("float"))], text=b"\x7f\x7f", error="Could not parse example input")
    yield one([("a", "int64")], [], error="")
    yield one([], [("a", "float", [3], none("float"))], error="")


def hashed_numbers(r):
    for t in ("uint8", "uint16", "uint32", "uint64"):
        yield case("_TensorToHashBucketFast", np.array([1], t), num_buckets=3, error="Type not supported: " + t)
    for t in ("int8", "int16", "int32", "int64"):
        info = np.iinfo(t)
        edges = np.array([0, 1, 7, 10, 99, info.max, info.max - 1, info.min], t)
        yield case("_TensorToHashBucketFast", edges, num_buckets=2**40, name=t)
        yield case("_TensorToHashBucketFast", edges.reshape(2, 2, 2), num_buckets=3, name=t)
    yield case("_TensorToHashBucketFast", np.int32(-5), num_buckets=1000)
    yield case("_TensorToHashBucketFast", np.zeros((0, 2), np.int64), num_buckets=10)


def cases(r):
    yield from elementwise(r)
    yield from regexes(r)
    yield from numbers(r)
    yield from encodings(r)
    yield from examples(r)
    yield from more(r)
    yield from hashed_numbers(r)
