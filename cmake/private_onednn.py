#!/usr/bin/env python3
"""Makes smelt's own oneDNN of the packaged one: private_onednn.py LIBDNNL DNNL_H OUT_LIBRARY OUT_DNNL_H ENTRY...

OUT_LIBRARY is LIBDNNL, code and data as they are, with other dynamic symbols:
- each ENTRY, a function of libgomp that oneDNN calls, is asked for as smelt_ENTRY, and libgomp is not needed;
- oneDNN's C functions are offered as smelt_dnnl_...; OUT_DNNL_H is DNNL_H with these names;
- its other symbols are local;
- its name is OUT_LIBRARY's, so that it is loaded beside LIBDNNL.
So no name of one can be taken for a name of another library, whatever else the process loads, in any order.

The tables are written where the old ones stood: locals, then what is asked for, then what is offered, as the format wants.
"""
import pathlib
import re
import struct
import sys

SHT_RELA, SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH, SHT_VERDEF, SHT_VERNEED, SHT_VERSYM = 4, 6, 11, 0x6FFFFFF6, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
DT_NEEDED, DT_HASH, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_VERNEEDNUM = 1, 4, 14, 15, 29, 0x6FFFFFFF
STB_LOCAL, STV_HIDDEN, SHF_ALLOC, VERSION_GLOBAL = 0, 2, 2, 1
OPENMP = re.compile(r"(GOMP|GOACC|omp|kmp|__kmp)_|__kmpc")
PREFIX = "smelt_"


def fail(what):
    sys.exit(f"private_onednn.py: {source}: {what}")


class Section:
    """A row of the section table; read and written in place."""

    def __init__(self, at):
        self.at = at
        _, self.type, self.flags, _, self.offset, self.size, self.link, self.info, _, _ = struct.unpack_from("<IIQQQQIIQQ", image, at)

    def set_info(self, info):
        struct.pack_into("<I", image, self.at + 44, info)

    def rows(self, form):
        return list(struct.iter_unpack(form, image[self.offset:self.offset + self.size]))

    def write(self, content):
        if len(content) > self.size:
            fail(f"a table of {self.size} bytes cannot hold {len(content)}")
        image[self.offset:self.offset + self.size] = content.ljust(self.size, b"\0")


class Strings:
    """The names that stay, gathered anew."""

    def __init__(self, old):
        self.old, self.new, self.places = old, bytearray(b"\0"), {"": 0}

    def at(self, offset):
        return self.old[offset:self.old.index(b"\0", offset)].decode()

    def put(self, name):
        if name not in self.places:
            self.places[name] = len(self.new)
            self.new += name.encode() + b"\0"
        return self.places[name]


def hash_of(name):
    h = 5381
    for c in name.encode():
        h = (h * 33 + c) & 0xFFFFFFFF
    return h


def hash_table(hashes, first, buckets, words, shift):
    """DT_GNU_HASH of symbols that stand from `first` on, in the order of their buckets."""
    bloom, heads, chain = [0] * words, [0] * buckets, []
    for i, h in enumerate(hashes):
        bloom[h // 64 % words] |= 1 << h % 64 | 1 << (h >> shift) % 64
        heads[h % buckets] = heads[h % buckets] or first + i
        last = i + 1 == len(hashes) or hashes[i + 1] % buckets != h % buckets
        chain.append(h & ~1 | last)
    return struct.pack(f"<4I{words}Q{buckets}I{len(chain)}I", buckets, first, words, shift, *bloom, *heads, *chain)


def versions_needed(section, strings, dropped):
    """The chain of needed versions without that of the library `dropped`."""
    at, blocks = section.offset, []
    while True:
        version, count, file, aux, following = struct.unpack_from("<HHIII", image, at)
        name, entries, a = strings.at(file), [], at + aux
        for _ in range(count):
            h, flags, other, text, next_aux = struct.unpack_from("<IHHII", image, a)
            entries.append((h, flags, other, strings.put(strings.at(text)) if name != dropped else 0))
            a += next_aux
        if name != dropped:
            blocks.append((version, strings.put(name), entries))
        if following == 0:
            break
        at += following
    out = b""
    for b, (version, name, entries) in enumerate(blocks):
        size = 16 + 16 * len(entries)
        out += struct.pack("<HHIII", version, len(entries), name, 16, size if b + 1 < len(blocks) else 0)
        for e, entry in enumerate(entries):
            out += struct.pack("<IHHII", *entry, 16 if e + 1 < len(entries) else 0)
    section.write(out)
    section.set_info(len(blocks))
    return len(blocks)


source, header, out_library, out_header, *entries = sys.argv[1:]
image = bytearray(pathlib.Path(source).read_bytes())
if image[:6] != b"\x7fELF\x02\x01":
    fail("no 64-bit little-endian ELF file")
table, = struct.unpack_from("<Q", image, 40)
row_size, row_count = struct.unpack_from("<HH", image, 58)
sections = [Section(table + i * row_size) for i in range(row_count)]
by_type = {s.type: s for s in sections}
if SHT_VERDEF in by_type or not {SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH, SHT_VERNEED, SHT_VERSYM} <= by_type.keys():
    fail("its dynamic tables are not as expected (versions of its own, or no GNU hash table)")
symbols, versions = by_type[SHT_DYNSYM].rows("<IBBHQQ"), [v for v, in by_type[SHT_VERSYM].rows("<H")]
string_section = sections[by_type[SHT_DYNSYM].link]
strings = Strings(bytes(image[string_section.offset:string_section.offset + string_section.size]))

# Which symbol is what: (new name or "", its old index).
local, asked, offered = [], [], []
for i, (name, info, other, section, value, size) in enumerate(symbols):
    name = strings.at(name)
    if section == 0 and i > 0:
        if OPENMP.match(name) and name not in entries:
            fail(f"it calls {name}, which smelt does not provide (smelt/base/openmp.cc)")
        asked.append((PREFIX + name if name in entries else name, i))
    elif name.startswith("dnnl_") and info >> 4 != STB_LOCAL:
        offered.append((PREFIX + name, i))
    else:
        local.append(("", i))
if not any(name == PREFIX + "GOMP_parallel" for name, _ in asked):
    fail("it does not call GOMP_parallel: built for another threading runtime than libgomp")

buckets = len(offered) // 4 + 1
offered.sort(key=lambda named: hash_of(named[0]) % buckets)
place, new_symbols, new_versions = {}, b"", []
for new, (name, i) in enumerate(local + asked + offered):
    _, info, other, section, value, size = symbols[i]
    if new < len(local):
        info, other = info & 0xF, (other & ~3) | STV_HIDDEN if new > 0 else other
    place[i] = new
    new_symbols += struct.pack("<IBBHQQ", strings.put(name), info, other, section, value, size)
    new_versions.append(VERSION_GLOBAL if name.startswith(PREFIX) else versions[i] if new >= len(local) else 0)
by_type[SHT_DYNSYM].write(new_symbols)
by_type[SHT_DYNSYM].set_info(len(local))
by_type[SHT_VERSYM].write(struct.pack(f"<{len(new_versions)}H", *new_versions))
by_type[SHT_GNU_HASH].write(hash_table([hash_of(name) for name, _ in offered], len(local) + len(asked), buckets, 64, 6))
for s in sections:
    if s.type == SHT_RELA and s.flags & SHF_ALLOC:
        s.write(b"".join(struct.pack("<QQq", at, place[info >> 32] << 32 | info & 0xFFFFFFFF, addend) for at, info, addend in s.rows("<QQq")))

dynamic = by_type[SHT_DYNAMIC].rows("<Qq")
dynamic = dynamic[:[tag for tag, _ in dynamic].index(0)]
openmp = [strings.at(value) for tag, value in dynamic if tag == DT_NEEDED and strings.at(value).startswith("libgomp.")]
if len(openmp) != 1 or any(tag == DT_HASH for tag, _ in dynamic):
    fail("its dynamic section is not as expected")
count, rows = versions_needed(by_type[SHT_VERNEED], strings, openmp[0]), b""
for tag, value in dynamic:
    if tag == DT_NEEDED and strings.at(value) == openmp[0]:
        continue
    if tag == DT_SONAME:
        value = strings.put(pathlib.Path(out_library).name)
    elif tag in (DT_NEEDED, DT_RPATH, DT_RUNPATH):
        value = strings.put(strings.at(value))
    elif tag == DT_VERNEEDNUM:
        value = count
    rows += struct.pack("<Qq", tag, value)
by_type[SHT_DYNAMIC].write(rows)
string_section.write(bytes(strings.new))

names = sorted(name.removeprefix(PREFIX) for name, _ in offered)
text = "// oneDNN's C functions under the names of smelt's own copy (cmake/private_onednn.py).\n"
text += "".join(f"#define {name} {PREFIX}{name}\n" for name in names) + f'#include "{header}"\n'
pathlib.Path(out_header).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(out_header).write_text(text)
pathlib.Path(out_library).write_bytes(image)
