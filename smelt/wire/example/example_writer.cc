#include "smelt/wire/example/example_writer.h"

namespace smelt {
namespace {

void PutExampleVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

// A length-delimited field.
void PutExampleField(int number, absl::string_view bytes, std::string* out) {
  out->push_back(static_cast<char>(number << 3 | 2));
  PutExampleVarint(bytes.size(), out);
  absl::StrAppend(out, bytes);
}

}  // namespace

StatusOr<std::string> SerializeExample(const std::vector<FeatureValue>& features) {
  std::string all;
  for (const FeatureValue& f : features) {
    std::string list, feature, entry;
    switch (f.values.dtype()) {
      case Dtype::kInvalid:
        break;
      case Dtype::kString:
        for (const std::string& s : f.values.flat<std::string>()) PutExampleField(1, s, &list);
        PutExampleField(1, list, &feature);
        break;
      case Dtype::kFloat:
        if (f.values.num_elements() > 0) {
          PutExampleField(1, {static_cast<const char*>(f.values.raw()), f.values.bytes()}, &list);
        }
        PutExampleField(2, list, &feature);
        break;
      case Dtype::kInt64: {
        std::string packed;
        for (int64_t v : f.values.flat<int64_t>()) {
          PutExampleVarint(static_cast<uint64_t>(v), &packed);
        }
        if (!packed.empty()) PutExampleField(1, packed, &list);
        PutExampleField(3, list, &feature);
        break;
      }
      default:
        return InvalidArgument("feature '", f.key, "' is of type ", DtypeName(f.values.dtype()),
                               "; an Example holds float, int64 and string");
    }
    PutExampleField(1, f.key, &entry);
    PutExampleField(2, feature, &entry);
    PutExampleField(1, entry, &all);
  }
  std::string out;
  PutExampleField(1, all, &out);
  return out;
}

}  // namespace smelt
