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
    } else if (const auto* floats = value.get<std::vector<float>>()) {
      b.Key(name);
      const size_t start = b.StartVector();
      for (const float f : *floats) b.Float(f);
      b.EndVector(start, /*typed=*/true, /*fixed=*/false);
    } else if (const auto* texts = value.get<std::vector<std::string>>()) {
      b.Key(name);
      const size_t start = b.StartVector();
      for (const std::string& s : *texts) b.String(s.data(), s.size());
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

std::string WriteFlexPair(const FlexPair& pair) {
  flexbuffers::Builder b;
  b.Vector([&] {
    b.String(pair.first.data(), pair.first.size());
    b.String(pair.second.data(), pair.second.size());
  });
  b.Finish();
  const std::vector<uint8_t>& bytes = b.GetBuffer();
  return std::string(bytes.begin(), bytes.end());
}

StatusOr<FlexPair> ReadFlexPair(absl::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  // The verifier notes by byte what it has seen.
  std::vector<uint8_t> seen;
  if (bytes.size() < 3 || !flexbuffers::VerifyBuffer(data, bytes.size(), &seen)) {
    return InvalidArgument("its options are no FlexBuffer");
  }
  const flexbuffers::Reference root = flexbuffers::GetRoot(data, bytes.size());
  if (!root.IsUntypedVector()) return InvalidArgument("its options are no list of two texts");
  const flexbuffers::Vector list = root.AsVector();
  if (list.size() != 2 || !list[0].IsString() || !list[1].IsString()) {
    return InvalidArgument("its options are no list of two texts");
  }
  const flexbuffers::String first = list[0].AsString(), second = list[1].AsString();
  return FlexPair{{first.c_str(), first.size()}, {second.c_str(), second.size()}};
}

}  // namespace smelt
