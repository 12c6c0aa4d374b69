// Maps of FlexBuffers, read without the library: its verifier does not ask whether keys end, nor
// where lists of them begin.
//
// They are read from the end: the width of the root, its type, and before them how far back the map
// lies. A type is a byte: what it is above two bits that say how wide. A map is its values, all of
// one width, with a byte for the type of each behind them; before them, as wide, how many there
// are, the width of the list of keys, and how far back that list lies. The list is how far back
// each key lies, with their number before; a key is a text that ends with a zero.
#include <optional>

#include "smelt/base/little_endian.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

constexpr uint64_t kMostFlexEntries = 1024;
constexpr uint64_t kMostFlexText = 256;

enum FlexType : uint8_t {
  kFlexInt = 1,
  kFlexUint = 2,
  kFlexFloat = 3,
  kFlexString = 5,
  kFlexIndirectInt = 6,
  kFlexIndirectUint = 7,
  kFlexIndirectFloat = 8,
  kFlexMap = 9,
  kFlexBool = 26,
};

// Bytes that may say anything. Nothing: what is asked for lies beyond them.
class FlexBytes {
 public:
  explicit FlexBytes(absl::string_view bytes) : bytes_(bytes) {}

  bool Has(uint64_t at, uint64_t size) const {
    return size <= bytes_.size() && at <= bytes_.size() - size;
  }
  std::optional<uint64_t> Unsigned(uint64_t at, uint64_t width) const {
    if (width != 1 && width != 2 && width != 4 && width != 8) return std::nullopt;
    if (!Has(at, width)) return std::nullopt;
    return LoadLittleBytes(bytes_.data() + at, width);
  }
  std::optional<int64_t> Signed(uint64_t at, uint64_t width) const {
    const auto bits = Unsigned(at, width);
    if (!bits) return std::nullopt;
    const uint64_t unused = 64 - 8 * width;
    return static_cast<int64_t>(*bits << unused) >> unused;
  }
  std::optional<float> Real(uint64_t at, uint64_t width) const {
    if (!Has(at, width)) return std::nullopt;
    if (width == 4) return LoadLittle<float>(bytes_.data() + at);
    if (width == 8) return static_cast<float>(LoadLittle<double>(bytes_.data() + at));
    return std::nullopt;
  }
  // What lies as far back as is written there.
  std::optional<uint64_t> Follow(uint64_t at, uint64_t width) const {
    const auto back = Unsigned(at, width);
    if (!back || *back > at) return std::nullopt;
    return at - *back;
  }
  std::optional<std::string> Key(uint64_t at) const {
    const absl::string_view text = bytes_.substr(at, kMostFlexText + 1);
    const size_t end = text.find('\0');
    if (end == absl::string_view::npos) return std::nullopt;
    return std::string(text.substr(0, end));
  }
  std::optional<std::string> Text(uint64_t at, uint64_t width) const {
    if (at < width) return std::nullopt;
    const auto size = Unsigned(at - width, width);
    if (!size || *size > kMostFlexText || !Has(at, *size)) return std::nullopt;
    return std::string(bytes_.substr(at, *size));
  }

 private:
  absl::string_view bytes_;
};

template <typename T>
Attr FlexAttr(const std::optional<T>& value) {
  return value ? Attr(*value) : Attr();
}

Attr UnsignedFlexAttr(std::optional<uint64_t> value) {
  if (value && *value >> 63 != 0) return static_cast<float>(*value);
  return value ? Attr(static_cast<int64_t>(*value)) : Attr();
}

// Nothing: a value that is left out.
Attr ReadFlexValue(const FlexBytes& in, uint64_t at, uint64_t width, uint8_t packed) {
  const int type = packed >> 2;
  if (type == kFlexInt) return FlexAttr(in.Signed(at, width));
  if (type == kFlexUint) return UnsignedFlexAttr(in.Unsigned(at, width));
  if (type == kFlexFloat) return FlexAttr(in.Real(at, width));
  if (type == kFlexBool) {
    const auto truth = in.Unsigned(at, width);
    return truth ? Attr(*truth != 0) : Attr();
  }
  const auto to = in.Follow(at, width);
  if (!to) return {};
  const uint64_t own = uint64_t{1} << (packed & 3);
  if (type == kFlexIndirectInt) return FlexAttr(in.Signed(*to, own));
  if (type == kFlexIndirectUint) return UnsignedFlexAttr(in.Unsigned(*to, own));
  if (type == kFlexIndirectFloat) return FlexAttr(in.Real(*to, own));
  if (type == kFlexString) return FlexAttr(in.Text(*to, own));
  return {};
}

}  // namespace

StatusOr<std::vector<FlexEntry>> ReadFlexMap(absl::string_view bytes) {
  const Status none = InvalidArgument("its options are no FlexBuffer of names and values");
  const FlexBytes in(bytes);
  const uint64_t size = bytes.size();
  if (size < 3) return none;
  const uint64_t root = static_cast<uint8_t>(bytes[size - 1]);
  const auto packed = static_cast<uint8_t>(bytes[size - 2]);
  if (root > size - 2 || packed >> 2 != kFlexMap) return none;
  const auto values = in.Follow(size - 2 - root, root);
  const uint64_t width = uint64_t{1} << (packed & 3);
  if (!values || *values < 3 * width) return none;
  const auto count = in.Unsigned(*values - width, width);
  const auto key_width = in.Unsigned(*values - 2 * width, width);
  const auto keys = in.Follow(*values - 3 * width, width);
  if (!count || !key_width || !keys) return none;
  if (*count > kMostFlexEntries) return InvalidArgument("it has ", *count, " options");
  if (!in.Has(*values, *count * (width + 1)) || *keys < *key_width) return none;
  const auto named = in.Unsigned(*keys - *key_width, *key_width);
  if (!named || *named != *count) return none;

  std::vector<FlexEntry> entries;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto at = in.Follow(*keys + i * *key_width, *key_width);
    if (!at) return none;
    std::optional<std::string> key = in.Key(*at);
    const auto type = static_cast<uint8_t>(bytes[*values + *count * width + i]);
    Attr value = ReadFlexValue(in, *values + i * width, width, type);
    if (!key || value.get<std::monostate>() != nullptr) continue;
    entries.emplace_back(*std::move(key), std::move(value));
  }
  return entries;
}

}  // namespace smelt
