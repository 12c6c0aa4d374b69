// The zip file of an .npz, read by its central directory (at the end of the file):
//   end record   "PK\5\6" ... entries:u16 @10  size:u32 @12  offset:u32 @16  comment length:u16 @20
//   zip64        locator "PK\6\7" (20 bytes before) -> record "PK\6\6": entries:u64 @32
//                size:u64 @40  offset:u64 @48
//   entry        "PK\1\2" flags:u16 @8  method:u16 @10  crc:u32 @16  packed:u32 @20  size:u32 @24
//                name, extra, comment lengths:u16 @28 @30 @32  local offset:u32 @42  name @46
//   local        "PK\3\4" name, extra lengths:u16 @26 @28, then the data @30 + lengths
// Numbers are little endian; 0xffffffff in an entry means a u64 in its zip64 extra field (id 1).
#include <isa-l.h>

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "smelt/io/unpack_limit.h"
#include "smelt/wire/numpy/npy.h"

namespace smelt {
namespace {

struct ZipEntry {
  absl::string_view name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

Status BadZip(absl::string_view why) { return DataLoss("npz: ", why); }

// REQUIRES: at + n <= bytes.size().
uint64_t ZipNumber(absl::string_view bytes, size_t at, int n) {
  uint64_t v = 0;
  for (int i = 0; i < n; ++i) {
    v |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)])) << (8 * i);
  }
  return v;
}

struct ZipDirectory {
  uint64_t entries = 0, size = 0, offset = 0;
};

StatusOr<ZipDirectory> FindZipDirectory(absl::string_view bytes) {
  constexpr size_t kEnd = 22;
  if (bytes.size() < kEnd) return BadZip("the file is too short");
  const size_t last = bytes.size() - kEnd;
  const size_t first = last > 0xffff ? last - 0xffff : 0;
  const size_t at = bytes.rfind("PK\x05\x06", last);
  if (at == absl::string_view::npos || at < first) return BadZip("no end record");
  ZipDirectory d{ZipNumber(bytes, at + 10, 2), ZipNumber(bytes, at + 12, 4),
                 ZipNumber(bytes, at + 16, 4)};
  if (at >= 20 && bytes.substr(at - 20, 4) == "PK\x06\x07") {
    const uint64_t wide = ZipNumber(bytes, at - 12, 8);
    if (wide > bytes.size() || bytes.size() - wide < 56 || bytes.substr(wide, 4) != "PK\x06\x06") {
      return BadZip("no zip64 end record");
    }
    d = {ZipNumber(bytes, wide + 32, 8), ZipNumber(bytes, wide + 40, 8),
         ZipNumber(bytes, wide + 48, 8)};
  }
  if (d.offset > bytes.size() || d.size > bytes.size() - d.offset) {
    return BadZip("the directory lies outside of the file");
  }
  return d;
}

// Replaces the fields that did not fit, in the order in which the format lists them.
Status ReadZip64(absl::string_view extra, ZipEntry* e) {
  while (extra.size() >= 4) {
    const uint64_t id = ZipNumber(extra, 0, 2), n = ZipNumber(extra, 2, 2);
    extra.remove_prefix(4);
    if (n > extra.size()) break;
    absl::string_view field = extra.substr(0, n);
    extra.remove_prefix(n);
    if (id != 1) continue;
    for (uint64_t* v : {&e->size, &e->packed, &e->offset}) {
      if (*v != 0xffffffff) continue;
      if (field.size() < 8) return BadZip("a zip64 field is too short");
      *v = ZipNumber(field, 0, 8);
      field.remove_prefix(8);
    }
  }
  return OkStatus();
}

StatusOr<std::vector<ZipEntry>> ReadZipDirectory(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const ZipDirectory d, FindZipDirectory(bytes));
  absl::string_view rest = bytes.substr(d.offset, d.size);
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < d.entries; ++i) {
    if (rest.size() < 46 || rest.substr(0, 4) != "PK\x01\x02") {
      return BadZip("the directory does not hold its entries");
    }
    ZipEntry e;
    e.flags = static_cast<uint16_t>(ZipNumber(rest, 8, 2));
    e.method = static_cast<uint16_t>(ZipNumber(rest, 10, 2));
    e.crc = static_cast<uint32_t>(ZipNumber(rest, 16, 4));
    e.packed = ZipNumber(rest, 20, 4);
    e.size = ZipNumber(rest, 24, 4);
    e.offset = ZipNumber(rest, 42, 4);
    const size_t name = ZipNumber(rest, 28, 2), extra = ZipNumber(rest, 30, 2),
                 comment = ZipNumber(rest, 32, 2);
    if (rest.size() - 46 < name + extra + comment) {
      return BadZip("the directory does not hold its entries");
    }
    e.name = rest.substr(46, name);
    RETURN_IF_ERROR(ReadZip64(rest.substr(46 + name, extra), &e));
    rest.remove_prefix(46 + name + extra + comment);
    entries.push_back(e);
  }
  return entries;
}

StatusOr<std::string> InflateZip(absl::string_view packed, uint64_t size, uint64_t limit) {
  // Deflate makes at most 1,032 bytes of one.
  if (size / 1032 > packed.size() + 1) return BadZip("a member claims more than its data can hold");
  RETURN_IF_ERROR(CheckUnpacked("npz: a member", size, limit));
  std::string out(size, '\0');
  auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  constexpr uint64_t kChunk = uint64_t{1} << 30;
  uint64_t read = 0, written = 0;
  while (state->block_state != ISAL_BLOCK_FINISH) {
    const auto in = static_cast<uint32_t>(std::min<uint64_t>(kChunk, packed.size() - read));
    const auto room = static_cast<uint32_t>(std::min<uint64_t>(kChunk, size - written));
    state->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(packed.data())) + read;
    state->avail_in = in;
    state->next_out = reinterpret_cast<uint8_t*>(out.data()) + written;
    state->avail_out = room;
    if (isal_inflate(state.get()) != ISAL_DECOMP_OK) return BadZip("a member does not inflate");
    read += in - state->avail_in;
    written += room - state->avail_out;
    const bool stuck = in == state->avail_in && room == state->avail_out;
    if (stuck && state->block_state != ISAL_BLOCK_FINISH) {
      return BadZip("a member does not inflate to the size it claims");
    }
  }
  if (written != size) return BadZip("a member does not inflate to the size it claims");
  return out;
}

// The member's data: a part of `bytes` where it is stored, else inflated into `*inflated`.
StatusOr<absl::string_view> ReadZipMember(absl::string_view bytes, const ZipEntry& e,
                                          std::string* inflated) {
  if (e.flags & 1) return Unimplemented("npz: encrypted members are not supported");
  if (e.offset > bytes.size() || bytes.size() - e.offset < 30 ||
      bytes.substr(e.offset, 4) != "PK\x03\x04") {
    return BadZip("a member lies outside of the file");
  }
  const uint64_t skip =
      30 + ZipNumber(bytes, e.offset + 26, 2) + ZipNumber(bytes, e.offset + 28, 2);
  const uint64_t room = bytes.size() - e.offset;
  if (skip > room || e.packed > room - skip) return BadZip("a member lies outside of the file");
  const absl::string_view packed = bytes.substr(e.offset + skip, e.packed);
  absl::string_view data = packed;
  if (e.method == 0) {
    if (e.packed != e.size) return BadZip("a stored member has two sizes");
  } else if (e.method == 8) {
    ASSIGN_OR_RETURN(*inflated, InflateZip(packed, e.size, UnpackLimit(bytes.size())));
    data = *inflated;
  } else {
    return Unimplemented("npz: compression method ", e.method, " is not supported");
  }
  if (crc32_gzip_refl(0, reinterpret_cast<const uint8_t*>(data.data()), data.size()) != e.crc) {
    return BadZip("a member's checksum does not match");
  }
  return data;
}

absl::string_view ArrayName(absl::string_view member) {
  return absl::EndsWith(member, ".npy") ? member.substr(0, member.size() - 4) : member;
}

}  // namespace

StatusOr<std::vector<std::string>> NpzNames(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const auto entries, ReadZipDirectory(bytes));
  std::vector<std::string> names;
  for (const ZipEntry& e : entries) names.emplace_back(ArrayName(e.name));
  return names;
}

StatusOr<Tensor> ParseNpzArray(absl::string_view bytes, absl::string_view name) {
  ASSIGN_OR_RETURN(const auto entries, ReadZipDirectory(bytes));
  for (const ZipEntry& e : entries) {
    if (ArrayName(e.name) != name && e.name != name) continue;
    std::string inflated;
    ASSIGN_OR_RETURN(const absl::string_view data, ReadZipMember(bytes, e, &inflated));
    auto tensor = ParseNpy(data);
    if (!tensor.ok()) return Prefix(tensor.status(), absl::StrCat(e.name, ": "));
    return tensor;
  }
  return NotFound("npz: no array of name \"", name, "\"");
}

}  // namespace smelt
