#include "smelt/stablehlo/byte_reader.h"

#include <bit>

#include "smelt/base/little_endian.h"

namespace smelt::stablehlo {
namespace {

Status BytecodeEnds(size_t at) {
  return InvalidArgument("StableHLO bytecode ends too early, at byte ", at);
}

}  // namespace

StatusOr<uint8_t> ByteReader::Byte() {
  if (empty()) return BytecodeEnds(position());
  return static_cast<uint8_t>(bytes_[at_++]);
}

StatusOr<uint64_t> ByteReader::Varint() {
  ASSIGN_OR_RETURN(const uint8_t first, Byte());
  const int more = first == 0 ? 8 : std::countr_zero(first);
  if (left() < static_cast<size_t>(more)) return BytecodeEnds(position());
  const uint64_t high = LoadLittleBytes(bytes_.data() + at_, static_cast<size_t>(more));
  at_ += static_cast<size_t>(more);
  if (first == 0) return high;
  // The low bits of the first byte are the prefix; the bytes after it continue above it.
  const uint64_t low = uint64_t{first} >> (more + 1);
  return more == 0 ? low : low | high << (7 - more);
}

StatusOr<int64_t> ByteReader::SignedVarint() {
  ASSIGN_OR_RETURN(const uint64_t v, Varint());
  return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
}

StatusOr<uint64_t> ByteReader::Flagged(bool* flag) {
  ASSIGN_OR_RETURN(const uint64_t v, Varint());
  *flag = (v & 1) != 0;
  return v >> 1;
}

StatusOr<size_t> ByteReader::Count() {
  ASSIGN_OR_RETURN(const uint64_t n, Varint());
  if (n > left()) {
    return InvalidArgument("StableHLO bytecode states ", n, " entries at byte ", position(),
                           " but has ", left(), " bytes left");
  }
  return static_cast<size_t>(n);
}

StatusOr<absl::string_view> ByteReader::Bytes(uint64_t size) {
  if (size > left()) return BytecodeEnds(position());
  const absl::string_view out = bytes_.substr(at_, size);
  at_ += size;
  return out;
}

StatusOr<absl::string_view> ByteReader::ZeroTerminated() {
  const size_t end = bytes_.find('\0', at_);
  if (end == absl::string_view::npos) return BytecodeEnds(position());
  const absl::string_view out = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return out;
}

StatusOr<ByteReader::Section> ByteReader::ReadSection() {
  ASSIGN_OR_RETURN(const uint8_t id, Byte());
  ASSIGN_OR_RETURN(const uint64_t size, Varint());
  if ((id & 0x80) != 0) {
    ASSIGN_OR_RETURN(const uint64_t alignment, Varint());
    if (!std::has_single_bit(alignment)) {
      return InvalidArgument("StableHLO bytecode: alignment ", alignment, " is no power of two");
    }
    while (position() % alignment != 0) RETURN_IF_ERROR(Byte().status());
  }
  const size_t start = position();
  ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(size));
  return Section{static_cast<uint8_t>(id & 0x7F), bytes, start};
}

}  // namespace smelt::stablehlo
