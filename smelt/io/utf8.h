// Bytes as text that every format of text can hold.
#ifndef SMELT_IO_UTF8_H_
#define SMELT_IO_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace smelt {

// The text, with each byte that belongs to no UTF-8 character as `\xNN` (two lower-case hexadecimal
// digits), as Python's errors="backslashreplace" does; all else as it is. Thread safe.
std::string Utf8Text(absl::string_view bytes);

}  // namespace smelt

#endif  // SMELT_IO_UTF8_H_
