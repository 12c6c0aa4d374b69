"""Texts in the encodings that ICU's converters read."""
from op_cases import *

LEGACY = ["windows-1252", "windows-1251", "windows-1256", "windows-874", "cp437", "ISO-8859-2", "ISO-8859-15", "KOI8-R",
          "koi8_u", "macintosh", "ibm-37", "US-ASCII", "Shift_JIS", "EUC-JP", "ISO-2022-JP", "GB18030", "GBK", "gb2312", "HZ",
          "Big5", "Big5-HKSCS", "EUC-KR", "ISO-2022-KR", "windows-949"]
UNICODE = ["UTF-7", "IMAP-mailbox-name", "UTF-16", "utf16", "UTF-16BE", "UTF-16LE", "UTF-32", "UTF-32BE", "UTF-32LE", "UTF 8",
           "SCSU", "BOCU-1", "CESU-8"]


def texts(values):
    values = list(values)
    a = np.empty(len(values), object)
    a[:] = values
    return a


def cases(r):
    byte = lambda lo, hi: int(r.rng.integers(lo, hi))
    every = texts(bytes(range(i, i + 32)) for i in range(0, 256, 32))
    pairs = texts(bytes([byte(0x81, 0xFF), byte(0x40, 0xFF)]) for _ in range(20))
    # Marks of the order of bytes, shifts that stay open, halves of pairs; a text may hold for those behind it.
    marks = texts([b"\xff\xfea\0b\0", b"\0a\0b", b"\xfe\xff\0a", b"\xff\xfe", b"a", b"\xff\xfe\0\0a\0\0\0", b"\0\0\xfe\xff\0\0\0a",
                   b"\xef\xbb\xbfa", b"\xff", b"\xd8\0", b"\xd8\0a", b"\0\xd8a\0", b"\0\xd8\0", b"a\x1bb", b"\x1b$B", b"+AGE-", b"+",
                   b"&-", b"~{", b"\x0e", b"\x0f", b"\xed\xa0\x80"])
    for name in LEGACY + UNICODE:
        yield case("UnicodeTranscode", every, input_encoding=name, output_encoding="UTF-8", name=name)
        for v in (pairs, marks):
            yield case("UnicodeDecodeWithOffsets", v, input_encoding=name, name=name)
        yield case("UnicodeTranscode", marks, input_encoding=name, output_encoding="UTF-16-BE", errors="ignore",
                   replace_control_characters=True, name=name)
        yield case("UnicodeDecode", every, input_encoding=name, errors="replace", replacement_char=63, name=name)
    yield case("UnicodeDecode", every, input_encoding="EUC-JP", errors="strict", error="Invalid formatting on input string")
    for op, out in (("UnicodeDecode", {}), ("UnicodeTranscode", dict(output_encoding="UTF-8"))):
        yield case(op, marks, input_encoding="none", **out, error="Could not create converter for input encoding: none")
