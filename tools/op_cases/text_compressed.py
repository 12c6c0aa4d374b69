"""Compressed strings."""
import gzip
import zlib

from op_cases import *


def text(v):
    return np.array(v, dtype=object)


def cases(r):
    plain = [b"", b"smelt", b"abc" * 40, bytes(range(256))]
    zipped, packed = [zlib.compress(p) for p in plain], [gzip.compress(p, mtime=0) for p in plain]
    op = "DecodeCompressed"
    for kind, data in [("", plain), ("ZLIB", zipped), ("GZIP", packed)]:
        yield case(op, text(data), compression_type=kind)
        yield case(op, text(data[2]), compression_type=kind)
        yield case(op, np.array(data, dtype=object).reshape(2, 2), compression_type=kind)
        yield case(op, np.empty((0, 3), dtype=object), compression_type=kind)
        yield case(op, text(data[2][:-6]), compression_type=kind)
        yield case(op, text(b""), compression_type=kind)
    yield case(op, text(packed[1] + packed[2]), compression_type="GZIP")
    yield case(op, text(zipped[1] + b"more"), compression_type="ZLIB")
    yield case(op, text(b"not compressed"), compression_type="ZLIB", error="inflate() failed with error -3: incorrect")
    yield case(op, text(b"not compressed"), compression_type="GZIP", error="inflate() failed with error -3: incorrect")
    yield case(op, text(packed[1] + b"junk"), compression_type="GZIP", error="inflate() failed with error -3: incorrect")
    broken = bytearray(zipped[2])
    broken[-1] ^= 1
    yield case(op, text(bytes(broken)), compression_type="ZLIB", error="inflate() failed with error -3: incorrect data")
    yield case(op, text(b""), compression_type="LZ4", error="are supported compressions")
    for at, what in [(-8, "data"), (-1, "length")]:
        broken = bytearray(packed[2])
        broken[at] ^= 1
        yield case(op, text(bytes(broken)), compression_type="GZIP", error="inflate() failed with error -3: incorrect " + what)
