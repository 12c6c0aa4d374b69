#include "smelt/io/utf8.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rapidjson/encodings.h"
#include "rapidjson/memorystream.h"

namespace smelt {

std::string Utf8Text(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    rapidjson::MemoryStream in(bytes.data(), bytes.size());
    unsigned code = 0;
    const bool valid = rapidjson::UTF8<>::Decode(in, &code);
    const size_t taken = valid ? in.Tell() : 1;
    if (valid) {
      absl::StrAppend(&out, bytes.substr(0, taken));
    } else {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(bytes[0]));
    }
    bytes.remove_prefix(taken);
  }
  return out;
}

}  // namespace smelt
