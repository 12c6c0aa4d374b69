#include "smelt/wire/bundle/slices.h"

#include <bit>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "smelt/wire/proto/framework.pb.h"

namespace smelt {
namespace {

// Ordered code: numbers and strings as bytes that sort as the values do.

// Unsigned: a length byte, then the significant bytes, most significant first.
void AppendOrderedUnsigned(uint64_t v, std::string* out) {
  const int length = (64 - std::countl_zero(v) + 7) / 8;
  out->push_back(static_cast<char>(length));
  for (int i = length - 1; i >= 0; --i) out->push_back(static_cast<char>(v >> (8 * i)));
}

// Strings: 0x00 and 0xff are escaped by a byte that keeps the order; 0x00 0x01 ends it.
void AppendOrderedString(absl::string_view s, std::string* out) {
  for (char c : s) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->push_back('\0');
  out->push_back('\1');
}

// Signed: two's complement in the fewest bytes that leave room at the top for as many ones as there
// are bytes and a zero; those bits are inverted where the number is negative.
void AppendOrderedSigned(int64_t v, std::string* out) {
  const auto bits = static_cast<uint64_t>(v);
  const int width = 64 - std::countl_zero(v < 0 ? ~bits : bits);
  const int length = width / 7 + 1;
  unsigned char bytes[10];
  bytes[0] = bytes[1] = v < 0 ? 0xff : 0;
  for (int i = 0; i < 8; ++i) bytes[2 + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  unsigned char* begin = bytes + 10 - length;
  const unsigned header = 0xffffu << (16 - length);
  begin[0] ^= static_cast<unsigned char>(header >> 8);
  if (length > 1) begin[1] ^= static_cast<unsigned char>(header);
  out->append(reinterpret_cast<const char*>(begin), static_cast<size_t>(length));
}

Status ParseSliceText(absl::string_view text, TensorSlice* slice) {
  *slice = TensorSlice();
  for (absl::string_view part : absl::StrSplit(text, ':', absl::SkipEmpty())) {
    int64_t start = 0, length = -1;
    if (part != "-") {
      const std::vector<absl::string_view> two = absl::StrSplit(part, ',', absl::SkipEmpty());
      if (two.size() != 2 || !absl::SimpleAtoi(two[0], &start) ||
          !absl::SimpleAtoi(two[1], &length)) {
        return InvalidArgument("Expected a pair of numbers or '-' but got '", part,
                               "': string = ", text);
      }
      if (start < 0 || length <= 0) {
        return InvalidArgument("Expected non-negative start and positive length but got start = ",
                               start, ", length = ", length, ": string = ", text);
      }
    }
    slice->starts.push_back(start);
    slice->lengths.push_back(length);
  }
  return OkStatus();
}

}  // namespace

TensorSlice TensorSlice::Whole(int rank) {
  TensorSlice slice;
  slice.starts.assign(static_cast<size_t>(rank), 0);
  slice.lengths.assign(static_cast<size_t>(rank), -1);
  return slice;
}

bool TensorSlice::IsFull() const {
  for (int64_t length : lengths) {
    if (length >= 0) return false;
  }
  return true;
}

StatusOr<Shape> TensorSlice::ShapeIn(const Shape& full) const {
  if (rank() != full.rank()) {
    return Internal("Mismatching ranks: shape = ", full.ToString(), ", slice = ", ToString());
  }
  Shape out;
  for (int i = 0; i < rank(); ++i) {
    const size_t d = static_cast<size_t>(i);
    const int64_t length = lengths[d] < 0 ? full[i] : lengths[d];
    if (starts[d] < 0 || starts[d] > full[i] || length > full[i] - starts[d]) {
      return Internal("Extent in dimension ", i, " out of bounds: shape = ", full.ToString(),
                      ", slice = ", ToString());
    }
    out.Add(length);
  }
  return out;
}

std::string TensorSlice::ToString() const {
  std::string out;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (i != 0) out += ':';
    if (lengths[i] < 0) {
      out += '-';
    } else {
      absl::StrAppend(&out, starts[i], ",", lengths[i]);
    }
  }
  return out;
}

Status ParseShapeAndSlice(absl::string_view text, Shape* full, TensorSlice* slice) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  if (words.size() < 2) {
    return InvalidArgument("Need least two elements in shape_and_slice specification: ", text);
  }
  RETURN_IF_ERROR(ParseSliceText(words.back(), slice));
  Dims dims;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    int64_t d = 0;
    if (!absl::SimpleAtoi(words[i], &d)) {
      return InvalidArgument("Non numerical dimension in shape_and_slice: ", text);
    }
    if (d < 0) return InvalidArgument("Negative dimension in shape_and_slice: ", text);
    dims.push_back(d);
  }
  ASSIGN_OR_RETURN(*full, Shape::Make(dims));
  return slice->ShapeIn(*full).status();
}

std::string SliceKey(absl::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendOrderedUnsigned(0, &key);
  AppendOrderedString(name, &key);
  AppendOrderedUnsigned(static_cast<uint64_t>(slice.rank()), &key);
  for (size_t i = 0; i < slice.starts.size(); ++i) {
    AppendOrderedSigned(slice.starts[i], &key);
    AppendOrderedSigned(slice.lengths[i], &key);
  }
  return key;
}

TensorSlice SliceFromProto(const tensorflow::TensorSliceProto& proto) {
  TensorSlice slice;
  for (const auto& extent : proto.extent()) {
    slice.starts.push_back(extent.start());
    const bool whole = extent.has_length_hack_case() ==
                       tensorflow::TensorSliceProto::Extent::HAS_LENGTH_HACK_NOT_SET;
    slice.lengths.push_back(whole ? -1 : extent.length());
  }
  return slice;
}

void SliceToProto(const TensorSlice& slice, tensorflow::TensorSliceProto* proto) {
  for (size_t i = 0; i < slice.starts.size(); ++i) {
    auto* extent = proto->add_extent();
    if (slice.lengths[i] < 0) continue;
    extent->set_start(slice.starts[i]);
    extent->set_length(slice.lengths[i]);
  }
}

}  // namespace smelt
