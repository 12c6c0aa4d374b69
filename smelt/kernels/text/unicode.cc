#include "smelt/kernels/text/unicode.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace smelt {
namespace {

uint32_t ByteAt(absl::string_view s, size_t i) { return static_cast<uint8_t>(s[i]); }

// The standard's table of well-formed bytes: a malformed sequence ends before the first byte that
// cannot continue it.
bool DecodeUtf8(absl::string_view s, int32_t* code_point, size_t* size) {
  const uint32_t lead = ByteAt(s, 0);
  *size = 1;
  if (lead < 0x80) {
    *code_point = static_cast<int32_t>(lead);
    return true;
  }
  if (lead < 0xC2 || lead > 0xF4) return false;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint32_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  uint32_t c = lead & (0xFFu >> (length + 1));
  for (; *size < length; ++*size) {
    if (*size >= s.size()) return false;
    const uint32_t byte = ByteAt(s, *size);
    if (byte < low || byte > high) return false;
    low = 0x80;
    high = 0xBF;
    c = c << 6 | (byte & 0x3F);
  }
  *code_point = static_cast<int32_t>(c);
  return true;
}

bool DecodeUtf16(bool little, absl::string_view s, int32_t* code_point, size_t* size) {
  const auto unit = [&](size_t i) {
    return little ? ByteAt(s, i) | ByteAt(s, i + 1) << 8 : ByteAt(s, i) << 8 | ByteAt(s, i + 1);
  };
  *size = std::min<size_t>(s.size(), 2);
  if (s.size() < 2) return false;
  const uint32_t first = unit(0);
  if (first < 0xD800 || first > 0xDFFF) {
    *code_point = static_cast<int32_t>(first);
    return true;
  }
  if (first > 0xDBFF) return false;
  if (s.size() < 4) {  // the half of a pair and what may begin the other one are one mistake
    *size = s.size();
    return false;
  }
  const uint32_t second = unit(2);
  if (second < 0xDC00 || second > 0xDFFF) return false;
  *size = 4;
  *code_point = static_cast<int32_t>(0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00)));
  return true;
}

bool DecodeUtf32(bool little, absl::string_view s, int32_t* code_point, size_t* size) {
  *size = std::min<size_t>(s.size(), 4);
  if (s.size() < 4) return false;
  uint32_t c = 0;
  for (size_t i = 0; i < 4; ++i) c = c << 8 | ByteAt(s, little ? 3 - i : i);
  *code_point = static_cast<int32_t>(c);
  return c <= 0x10FFFF && IsCodePoint(*code_point);
}

}  // namespace

TextEncoding ParseTextEncoding(absl::string_view name) {
  std::string n = absl::AsciiStrToUpper(name);
  std::erase_if(n, [](char c) { return c == '-' || c == '_'; });
  if (n == "UTF8") return TextEncoding::kUtf8;
  if (n == "UTF16BE") return TextEncoding::kUtf16Be;
  if (n == "UTF16LE") return TextEncoding::kUtf16Le;
  if (n == "UTF32BE") return TextEncoding::kUtf32Be;
  if (n == "UTF32LE") return TextEncoding::kUtf32Le;
  if (n == "ISO88591" || n == "LATIN1") return TextEncoding::kLatin1;
  if (n == "USASCII" || n == "ASCII") return TextEncoding::kAscii;
  return TextEncoding::kUnknown;
}

int64_t Utf8Length(absl::string_view s) {
  return std::count_if(s.begin(), s.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

size_t Utf8Offset(absl::string_view s, size_t from, int64_t n) {
  size_t at = from;
  for (; n > 0 && at < s.size(); --n) {
    do {
      ++at;
    } while (at < s.size() && (static_cast<uint8_t>(s[at]) & 0xC0) == 0x80);
  }
  return at;
}

bool DecodeOne(TextEncoding encoding, absl::string_view s, int32_t* code_point, size_t* size) {
  switch (encoding) {
    case TextEncoding::kUtf16Be:
    case TextEncoding::kUtf16Le:
      return DecodeUtf16(encoding == TextEncoding::kUtf16Le, s, code_point, size);
    case TextEncoding::kUtf32Be:
    case TextEncoding::kUtf32Le:
      return DecodeUtf32(encoding == TextEncoding::kUtf32Le, s, code_point, size);
    case TextEncoding::kLatin1:
    case TextEncoding::kAscii:
      *code_point = static_cast<int32_t>(ByteAt(s, 0));
      *size = 1;
      return encoding == TextEncoding::kLatin1 || *code_point < 0x80;
    default:
      return DecodeUtf8(s, code_point, size);
  }
}

void EncodeOne(TextEncoding encoding, int32_t code_point, std::string* out) {
  const auto c = static_cast<uint32_t>(code_point);
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  const auto unit = [&](uint32_t u) {
    put(u >> 8);
    put(u & 0xFF);
  };
  if (encoding == TextEncoding::kUtf32Be) {
    unit(c >> 16);
    unit(c & 0xFFFF);
  } else if (encoding == TextEncoding::kUtf16Be) {
    if (c < 0x10000) return unit(c);
    unit(0xD800 + ((c - 0x10000) >> 10));
    unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  } else if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool IsCodePoint(int32_t c) { return c >= 0 && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF); }

}  // namespace smelt
