#include "smelt/wire/tflite/flex.h"

#include <flatbuffers/flexbuffers.h>

namespace smelt {

StatusOr<std::string> FlexMap(std::span<const FlexEntry> entries) {
  flexbuffers::Builder b;
  const size_t map = b.StartMap();
  for (const auto& [key, value] : entries) {
    if (key.find('\0') != std::string::npos) {
      return InvalidArgument("the option '", key, "' has a zero byte in its name");
    }
    const char* name = key.c_str();
    if (const auto* s = value.get<std::string>()) {
      b.Key(name);
      b.String(s->data(), s->size());
    } else if (const auto* i = value.get<int64_t>()) {
      b.Int(name, *i);
    } else if (const auto* f = value.get<float>()) {
      b.Float(name, *f);
    } else if (const auto* truth = value.get<bool>()) {
      b.Bool(name, *truth);
    } else if (const auto* list = value.get<std::vector<int64_t>>()) {
      b.Key(name);
      const size_t start = b.StartVector();
      for (const int64_t n : *list) b.Int(n);
      b.EndVector(start, /*typed=*/true, /*fixed=*/false);
    } else {
      return InvalidArgument("the option '", key, "' is none of string, int, float and bool");
    }
  }
  b.EndMap(map);
  b.Finish();
  const std::vector<uint8_t>& bytes = b.GetBuffer();
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace smelt
