"""Archives and arrays that somebody made to harm, and odd ones that must be read. Each is a row: name, bytes, what must come of it, and flags of its own."""
import gzip
import io
import struct
import tarfile
import zipfile
import zlib

# What must come of a row: the intact model's answer, or an error of this code with this text in it.
ANSWER = ("ANSWER", "")

BOMB_BYTES = 200 << 20


def tar_of(entries, format=tarfile.PAX_FORMAT):
    """A tar file of (name, bytes or None for a folder, TarInfo fields)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, data, fields in entries:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.size = len(data or b"")
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data or b""))
    return out.getvalue()


def model_entries(model, prefix="model"):
    """The model's files as entries; prefix is the folder around them."""
    files = sorted(p for p in model.rglob("*") if p.is_file())
    return [(f"{prefix}/{p.relative_to(model).as_posix()}", p.read_bytes(), {}) for p in files]


def sparse_entry(name, size):
    """An entry of a few blocks in the archive, and of `size` bytes on the disk: a PAX 1.0 sparse file with its one byte at the end."""
    data = f"1\n{size - 1}\n1\n".encode().ljust(512, b"\0") + b"x"
    return name, data, {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name, "GNU.sparse.realsize": str(size)}}


def members(data):
    """Two gzip members that hold data together."""
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:])


def zeros_gz(size):
    """size zeros, packed, without ever holding them."""
    packer, out = zlib.compressobj(9, zlib.DEFLATED, 31), []
    for _ in range(size >> 20):
        out.append(packer.compress(bytes(1 << 20)))
    return b"".join(out) + packer.flush()


def packed_zeros_tar(size):
    """A tar.gz with one file of size zeros."""
    packer, out = zlib.compressobj(9, zlib.DEFLATED, 31), []
    info = tarfile.TarInfo("model/saved_model.pb")
    info.size = size
    out.append(packer.compress(info.tobuf()))
    for _ in range(size >> 20):
        out.append(packer.compress(bytes(1 << 20)))
    return b"".join(out) + packer.compress(bytes(1024)) + packer.flush()


def archive_rows(model, outside):
    """`outside`: a path that no archive may write to."""
    whole = model_entries(model)
    tar = tar_of(whole)
    end = (len(tar.rstrip(b"\0")) + 511) // 512 * 512  # where the zeros at the end begin, or within the last content's block
    packed = gzip.compress(tar)
    crc, size = struct.unpack("<II", packed[-8:])
    link = {"type": tarfile.SYMTYPE, "linkname": str(outside.parent)}
    limit = ("RESOURCE_EXHAUSTED", "--unpack_limit")
    second = tarfile.open(fileobj=io.BytesIO(tar)).getmembers()[1].offset
    odd = [(name.replace("model/", "mod\u00e8le-\u30e2\u30c7\u30eb/"), data, fields) for name, data, fields in whole]
    return [
        ("intact", tar, ANSWER),
        ("packed", packed, ANSWER),
        ("two members", members(tar), ANSWER),
        ("zeros behind the last member", packed + bytes(1000), ANSWER),
        ("old tar", tar_of(whole, tarfile.USTAR_FORMAT), ANSWER),
        ("GNU tar", tar_of(whole, tarfile.GNU_FORMAT), ANSWER),
        ("PAX names beyond ASCII", tar_of(odd), ANSWER),
        ("GNU names beyond ASCII", tar_of(odd, tarfile.GNU_FORMAT), ANSWER),
        ("twice the same file, the last one whole", tar_of([("model/saved_model.pb", b"not this", {})] + whole), ANSWER),
        ("twice the same file, the last one broken", tar_of(whole + [("model/saved_model.pb", b"\xff\xff", {})]), ("", "saved_model.pb")),
        ("a sparse file", tar_of(whole + [sparse_entry("model/assets.extra/sparse", 1 << 20)]), ANSWER),
        ("garbage behind the last member", packed + b"garbage", ("DATA_LOSS", "header")),
        ("a member cut short behind a whole one", packed + gzip.compress(b"more")[:-3], ("DATA_LOSS", "cut short")),
        ("wrong checksum", packed[:-8] + struct.pack("<II", crc ^ 1, size), ("DATA_LOSS", "incorrect data check")),
        ("wrong length", packed[:-8] + struct.pack("<II", crc, size ^ 1), ("DATA_LOSS", "incorrect length check")),
        ("no trailer", packed[:-8], ("DATA_LOSS", "cut short")),
        ("no end", tar[:end], ("DATA_LOSS", "no end")),
        ("cut between two entries", tar[:second], ("DATA_LOSS", "no end")),
        ("a header lost to zeros", tar[:second] + bytes(512) + tar[second + 512:], ("DATA_LOSS", "behind its end")),
        ("two archives", tar + tar, ("DATA_LOSS", "behind its end")),
        ("two packed archives", packed + packed, ("DATA_LOSS", "behind its end")),
        ("leads out", tar_of(whole + [("model/../../" + outside.name, b"x", {})]), ("INVALID_ARGUMENT", "leads out")),
        ("absolute", tar_of(whole + [(str(outside), b"x", {})]), ("INVALID_ARGUMENT", "not relative")),
        ("symbolic link out", tar_of(whole + [("model/out", b"", link), ("model/out/" + outside.name, b"x", {})]), ("INVALID_ARGUMENT", "neither a file")),
        ("hard link out", tar_of(whole + [("model/out", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/hostname"})]), ("INVALID_ARGUMENT", "neither a file")),
        ("hard link within", tar_of(whole + [("model/b", b"", {"type": tarfile.LNKTYPE, "linkname": "model/saved_model.pb"})]),
         ("INVALID_ARGUMENT", "neither a file")),
        ("device", tar_of(whole + [("model/b", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5})]), ("INVALID_ARGUMENT", "neither a file")),
        ("pipe", tar_of(whole + [("model/b", b"", {"type": tarfile.FIFOTYPE})]), ("INVALID_ARGUMENT", "neither a file")),
        ("a file as a folder", tar_of([("model", b"", {})] + whole), ("", "model")),
        ("one file of zeros", packed_zeros_tar(BOMB_BYTES), limit),
        ("zeros behind the end", gzip.compress(tar) + zeros_gz(BOMB_BYTES), limit),
        ("a sparse file of a terabyte", tar_of(whole + [sparse_entry("model/big", 1 << 40)]), limit),
        ("many folders", gzip.compress(tar_of([(f"{i}/" + "d/" * 50, None, {}) for i in range(2000)])), limit, "--unpack_limit", 8 << 20),
        ("a long name", tar_of([("d/" * 100000, None, {})] + whole), ("INVALID_ARGUMENT", "longer than any path")),
        ("nothing", b"", ("", "")),
        ("nothing, packed", gzip.compress(b""), ("", "")),
    ]


def npz_of(arrays, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for key, data in arrays.items():
            z.writestr(key + ".npy", data)
    return out.getvalue()


def zeros_npz(key, size):
    """An .npz of one array of size zero bytes."""
    header = repr({"descr": "|u1", "fortran_order": False, "shape": (size,)}).encode().ljust(117) + b"\n"
    return npz_of({key: b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(size)}, zipfile.ZIP_DEFLATED)


def npz_rows(arrays):
    """.npz files with the request's arrays, of which the first is the attacked one."""
    key = next(iter(arrays))
    stored, deflated = npz_of(arrays, zipfile.ZIP_STORED), npz_of(arrays, zipfile.ZIP_DEFLATED)
    at = stored.index(b"\x93NUMPY")
    return [
        ("stored", stored, ANSWER),
        ("deflated", deflated, ANSWER),
        ("wrong content", stored[:at + 20] + bytes([stored[at + 20] ^ 1]) + stored[at + 21:], ("DATA_LOSS", "checksum")),
        ("lzma", npz_of(arrays, zipfile.ZIP_LZMA), ("UNIMPLEMENTED", "compression method")),
        ("no directory", stored[:len(stored) // 2], ("DATA_LOSS", "npz")),
        ("one array of zeros", zeros_npz(key, BOMB_BYTES), ("RESOURCE_EXHAUSTED", "--unpack_limit")),
    ]
