"""Protocol messages as tensors, and JSON Examples."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from op_cases import *
from op_cases.movement import F32, arr, count, vec, vec64
from op_cases.text_sequence import texts

# A message with every kind of field, as a file of descriptors.
KINDS = {
    "d": ("DOUBLE", tf.float64),
    "f": ("FLOAT", tf.float32),
    "i64": ("INT64", tf.int64),
    "u64": ("UINT64", tf.uint64),
    "i32": ("INT32", tf.int32),
    "fx64": ("FIXED64", tf.uint64),
    "fx32": ("FIXED32", tf.uint32),
    "b": ("BOOL", tf.bool),
    "s": ("STRING", tf.string),
    "y": ("BYTES", tf.string),
    "u32": ("UINT32", tf.uint32),
    "sf32": ("SFIXED32", tf.int32),
    "sf64": ("SFIXED64", tf.int64),
    "si32": ("SINT32", tf.int32),
    "si64": ("SINT64", tf.int64),
    "e": ("ENUM", tf.int32),
    "m": ("MESSAGE", tf.string),
}  # yapf: disable
DEFAULTS = {
    "d": "1.5",
    "f": "2.5",
    "i64": "-3",
    "i32": "7",
    "b": "true",
    "s": "text",
    "u32": "9",
    "e": "TWO",
    "y": "\\001\\002",
}


def descriptors():
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto2")
    e = file.enum_type.add(name="E")
    for number, name in [(1, "ONE"), (2, "TWO"), (-3, "MINUS")]:
        e.value.add(name=name, number=number)
    m = file.message_type.add(name="M")
    types = descriptor_pb2.FieldDescriptorProto
    number = 1
    for label, prefix in [
        (types.LABEL_OPTIONAL, "o_"),
        (types.LABEL_REPEATED, "r_"),
        (types.LABEL_REPEATED, "p_"),
    ]:
        for key, (kind, _) in KINDS.items():
            if prefix == "p_" and kind in ("STRING", "BYTES", "MESSAGE"):
                continue
            field = m.field.add(
                name=prefix + key, number=number, label=label, type=getattr(types, "TYPE_" + kind)
            )
            number += 1
            if prefix == "p_":
                field.options.packed = True
            if kind == "ENUM":
                field.type_name = ".t.E"
            if kind == "MESSAGE":
                field.type_name = ".t.M"
            if prefix == "o_" and key in DEFAULTS:
                field.default_value = DEFAULTS[key]
    return file


FILE = descriptors()


def source_of(fields):
    """The descriptors of only those fields, to keep cases short."""
    file = descriptor_pb2.FileDescriptorProto()
    file.CopyFrom(FILE)
    del file.message_type[0].field[:]
    file.message_type[0].field.extend(f for f in FILE.message_type[0].field if f.name in fields)
    return b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(deterministic=True)


POOL = descriptor_pool.DescriptorPool()
POOL.Add(FILE)
M = message_factory.GetMessageClass(POOL.FindMessageTypeByName("t.M"))
VALUES = {
    "d": [0.25, -1e100],
    "f": [1.5, -2.0],
    "i64": [-5, 1 << 60],
    "u64": [5, (1 << 64) - 1],
    "i32": [-6, 1 << 30],
    "fx64": [8, 1 << 63],
    "fx32": [9, (1 << 32) - 1],
    "b": [False, True],
    "s": ["a", "bc"],
    "y": [b"\x00x", b""],
    "u32": [10, (1 << 32) - 1],
    "sf32": [-11, 12],
    "sf64": [-13, 1 << 40],
    "si32": [-14, 15],
    "si64": [-16, 1 << 41],
    "e": [2, -3],
}  # yapf: disable


def message(keys, repeat=2):
    """Optional fields hold the first value, repeated ones `repeat` of them."""
    m = M()
    for k in keys:
        prefix, key = k.split("_")
        if key == "m":
            for sub in [getattr(m, k)] if prefix == "o" else [getattr(m, k).add() for _ in range(repeat)]:
                sub.o_i32 = 77
                sub.r_s.append("inner")
        elif prefix == "o":
            setattr(m, k, VALUES[key][0])
        else:
            getattr(m, k).extend(VALUES[key][:repeat])
    return m.SerializeToString(deterministic=True)


def decode(data, fields, types=None, error=None, source=None, name="t.M", form="binary", sanitize=False):
    return case(
        "DecodeProtoV2",
        data,
        message_type=name,
        field_names=fields,
        output_types=[KINDS[f.split("_")[1]][1] for f in fields] if types is None else types,
        descriptor_source=source_of(fields) if source is None else source,
        message_format=form,
        sanitize=sanitize,
        error=error,
    )


def encode(sizes, values, fields, error=None, source=None, name="t.M"):
    return case(
        "EncodeProto",
        sizes,
        list(values),
        field_names=fields,
        message_type=name,
        descriptor_source=source_of(fields) if source is None else source,
        error=error,
    )


def decode_cases():
    for key in KINDS:
        for prefix in ["o_", "r_"] + (["p_"] if key not in "sym" else []):
            f = prefix + key
            yield decode(texts(message([f]), message([]), message([f], 1)), [f])
    every = [p + k for p in ["o_", "r_"] for k in KINDS]
    yield decode(texts(message(every)), every)
    yield decode(texts(message(every)), ["r_i32", "o_s"])
    yield decode(texts(message(every)), ["o_s", "r_i32"], sanitize=True)
    yield decode(np.array(message(["r_i32"]), dtype=object), ["r_i32"])
    yield decode(texts(message(["r_i32"]), b"", message(["r_i32"]), b"").reshape(2, 2), ["r_i32", "o_i32"])
    yield decode(texts(), ["r_i32"], error="Bufs argument must contain at least one value")
    yield decode(texts(message(every)), [], [])
    wider = [
        ("r_f", tf.float64),
        ("r_i32", tf.int64),
        ("r_u32", tf.uint64),
        ("r_fx32", tf.uint64),
        ("r_sf32", tf.int64),
        ("r_si32", tf.int64),
    ]
    for f, t in wider:
        yield decode(texts(message([f])), [f], [t])
    for f, t in [
        ("r_d", tf.float32),
        ("r_i64", tf.int32),
        ("r_s", tf.int32),
        ("r_i32", tf.string),
        ("r_e", tf.int64),
        ("r_u32", tf.int64),
        ("r_u64", tf.int64),
        ("r_u32", tf.int32),
        ("r_b", tf.int32),
    ]:
        yield decode(texts(message([f])), [f], [t], error="Unexpected output type for t.M.r_")
    # Packed where single ones are expected and the other way round.
    packed = bytes(
        [
            M.DESCRIPTOR.fields_by_name["r_i32"].number << 3 & 0x7F | 0x82,
            M.DESCRIPTOR.fields_by_name["r_i32"].number >> 4,
            2,
            5,
            6,
        ]
    )
    single = b"".join(
        bytes(
            [
                M.DESCRIPTOR.fields_by_name["p_i32"].number << 3 & 0x7F | 0x80,
                M.DESCRIPTOR.fields_by_name["p_i32"].number >> 4,
                v,
            ]
        )
        for v in (5, 6)
    )
    yield decode(texts(packed, message(["r_i32"])), ["r_i32"])
    yield decode(texts(single, message(["p_i32"])), ["p_i32"])
    # An optional field that stands twice, and one of another wire type.
    twice = message(["o_i32"]) + message(["o_i32"])
    yield decode(texts(twice), ["o_i32"])
    yield decode(texts(twice), ["o_i32"], sanitize=True)
    wrong = bytes([M.DESCRIPTOR.fields_by_name["o_i32"].number << 3 | 2, 1, 65])
    yield decode(texts(wrong), ["o_i32"])
    yield decode(texts(wrong), ["o_d"])
    for bad in [b"\x08", b"\x0a\x05ab", b"\x09\x01\x02", b"\xff\xff\xff", b"\x0c", b"\x00\x01"]:
        yield decode(texts(bad), ["o_i32"], error="")
    yield decode(texts(b"o_i32: 5 r_s: 'x' r_s: 'y'", b"r_s: 'z'"), ["o_i32", "r_s"], form="text")
    yield decode(texts(b"o_i32: five"), ["o_i32"], form="text", error="Unable to parse text protobuf")
    yield decode(texts(b""), ["o_i32"], form="yaml", error="format must be one of binary or text")
    yield decode(texts(b""), ["nowhere"], [tf.int32], error="Unknown field: nowhere in message type t.M")
    yield decode(texts(b""), ["o_i32"], name="t.None", error="No descriptor found for message type t.None")
    yield decode(
        texts(b""),
        ["o_i32"],
        source=b"bytes://junk",
        error="Source does not represent serialized file descriptor set proto. This",
    )
    yield decode(
        texts(b""),
        ["o_i32"],
        source=b"/nowhere/file",
        error="Source does not represent serialized file descriptor set proto. This",
    )
    yield decode(
        texts(b""),
        ["o_i32", "r_i32"],
        [tf.int32],
        error="field_names and output_types attributes must have the same length",
    )


def encode_cases():
    np_types = {k: t.as_numpy_dtype if t is not tf.string else object for k, (_, t) in KINDS.items()}
    for key in VALUES:
        values = [v.encode() if isinstance(v, str) else v for v in VALUES[key]]
        for prefix in ["r_"] + (["p_"] if key not in "sy" else []):
            yield encode(
                arr([[2], [1], [0]]),
                [np.array([values, values[::-1], values], np_types[key])],
                [prefix + key],
            )
        yield encode(arr([[1], [0]]), [np.array([values[:1], values[1:]], np_types[key])], ["o_" + key])
    sub = message(["o_i32"])
    yield encode(arr([[2]]), [np.array([[sub, b""]], object)], ["r_m"])
    yield encode(
        arr([[1, 2], [0, 1]]), [np.array([["b"], ["c"]], object), arr([[1, 2], [3, 4]])], ["o_s", "r_i32"]
    )
    yield encode(arr([[2, 1]]), [arr([[1, 2]]), np.array([["b"]], object)], ["r_i32", "o_s"])
    yield encode(vec(2), [vec(1, 2)], ["r_i32"], error="Saw shape [2] but it should be at least a matrix.")
    yield encode(arr([[[1], [2]]]), [arr([[[1, 2], [3, 4]]])], ["r_i32"])
    yield encode(np.zeros((0, 1), np.int32), [np.zeros((0, 2), np.int32)], ["r_i32"])
    yield encode(arr([[0]]), [np.zeros((1, 0), np.int32)], ["r_i32"])
    yield encode(arr([[2]]), [arr([[1, 2]])], ["o_i32"])
    yield encode(arr([[2]]), [arr([[1, 2]], np.int64)], ["r_i32"])
    yield encode(arr([[2]]), [arr([[1, 2]], F32)], ["r_f"])
    yield encode(arr([[2]]), [arr([[1.5, 2]], np.float64)], ["r_f"])
    yield encode(
        arr([[2]]),
        [arr([[1, 2]], F32)],
        ["r_i32"],
        error="Incompatible type for field r_i32.  Saw dtype: float but field type is:",
    )
    yield encode(
        arr([[2]]),
        [arr([[1, 2]], np.int64)],
        ["r_u32"],
        error="Incompatible type for field r_u32.  Saw dtype: int64 but field type is:",
    )
    yield encode(
        arr([[3]]),
        [arr([[1, 2]])],
        ["r_i32"],
        error="Size to write must not be larger than value tensor; but saw: 3 > 2 at",
    )
    yield encode(
        arr([[1, 1]]),
        [arr([[1, 2]])],
        ["r_i32"],
        error="sizes should be batch_size + [len(field_names)].  Saw: [1,2] but",
    )
    yield encode(
        arr([[1], [1]]),
        [arr([[1, 2]])],
        ["r_i32"],
        error="sizes should be batch_size + [len(field_names)].  Saw: [2,1] but",
    )
    yield encode(
        i32(1),
        [arr([[1, 2]])],
        ["r_i32"],
        error="sizes should be batch_size + [len(field_names)].  Saw: [] but expected:",
    )
    yield encode(
        arr([[1]]),
        [vec(1)],
        ["r_i32"],
        error="Invalid shape for field r_i32.  Saw shape [1] but it should be at least",
    )
    yield encode(arr([[1]]), [arr([[1]])], ["nowhere"], error="Unknown field: nowhere in message type t.M")
    yield encode(
        arr([[1]]),
        [arr([[1]])],
        ["r_i32"],
        name="t.None",
        error="No descriptor found for message type t.None",
    )
    yield encode(
        arr([[1]]), [arr([[1]])], ["r_i32", "o_i32"], error="Length of inputs list must match field_names"
    )
    yield encode(
        arr([[1, 1]]),
        [arr([[1]]), arr([[1]])],
        ["r_i32"],
        error="Length of inputs list must match field_names",
    )


def json_cases():
    one = '{"features": {"feature": {"k": {"%s": {"value": [%s]}}}}}'
    for kind, v in [
        ("int64List", "1, -2"),
        ("int64List", '"3"'),
        ("floatList", "1.5, 2"),
        ("floatList", '"NaN", "Infinity"'),
        ("bytesList", '"YWI="'),
        ("bytes_list", '"YQ"'),
        ("int64List", ""),
    ]:
        yield case("DecodeJSONExample", texts((one % (kind, v)).encode()))
    yield case("DecodeJSONExample", texts(b"{}", b'{"features": {}}').reshape(2, 1))
    yield case("DecodeJSONExample", np.array(b"{}", dtype=object))
    yield case("DecodeJSONExample", texts())
    yield case("DecodeJSONExample", texts(b""), error="Error while parsing JSON: ")
    yield case("DecodeJSONExample", texts(b"{"), error="Error while parsing JSON: ")
    yield case("DecodeJSONExample", texts(b"[]"), error="Error while parsing JSON: ")
    yield case("DecodeJSONExample", texts(b'{"what": 1}'), error="Error while parsing JSON: ")
    yield case(
        "DecodeJSONExample", texts((one % ("int64List", "1.5")).encode()), error="Error while parsing JSON: "
    )
    yield case(
        "DecodeJSONExample", texts((one % ("int64List", '"x"')).encode()), error="Error while parsing JSON: "
    )
    yield case(
        "DecodeJSONExample",
        texts((one % ("bytesList", '"***"')).encode()),
        error="Error while parsing JSON: ",
    )


def cases(r):
    yield from decode_cases()
    yield from encode_cases()
    yield from json_cases()
