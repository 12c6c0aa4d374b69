// SHA-256 of files, by which others tell them apart.
#ifndef SMELT_IO_SHA256_H_
#define SMELT_IO_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

namespace smelt {

// 64 lower-case hexadecimal digits, as sha256sum prints them. Thread safe.
std::string Sha256(absl::string_view bytes);
// Of a file's content, which is mapped. Errors are MapFile's.
StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace smelt

#endif  // SMELT_IO_SHA256_H_
