// Code points in UTF-8, UTF-16, UTF-32 and Latin-1.
#ifndef SMELT_KERNELS_TEXT_UNICODE_H_
#define SMELT_KERNELS_TEXT_UNICODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace smelt {

enum class TextEncoding : uint8_t {
  kUnknown,
  kUtf8,
  kUtf16Be,
  kUtf16Le,
  kUtf32Be,
  kUtf32Le,
  kLatin1,
  kAscii
};

// Names in any case, with or without - and _. kUnknown for other names, UTF-16 and UTF-32 alone
// among them: there a mark may choose the order of bytes.
TextEncoding ParseTextEncoding(absl::string_view name);

// The number of characters: all bytes but those that continue one (10xxxxxx).
int64_t Utf8Length(absl::string_view s);
// The offset n characters after offset `from`, which begins one; at most the size.
size_t Utf8Offset(absl::string_view s, size_t from, int64_t n);

// Decodes the character at the front of s and sets `size` to its bytes, at least 1. False when they
// are no character (in malformed UTF-8 they are the longest beginning of one). REQUIRES: s is not
// empty, and the encoding is known.
bool DecodeOne(TextEncoding encoding, absl::string_view s, int32_t* code_point, size_t* size);
// Appends a code point. REQUIRES: a code point (not a surrogate), UTF-8, UTF-16 BE or UTF-32 BE.
void EncodeOne(TextEncoding encoding, int32_t code_point, std::string* out);

// Whether text may hold the code point: within Unicode's range, and no surrogate.
bool IsCodePoint(int32_t c);

inline constexpr int32_t kReplacementCharacter = 0xFFFD;

}  // namespace smelt

#endif  // SMELT_KERNELS_TEXT_UNICODE_H_
