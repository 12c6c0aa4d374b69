#include "smelt/lite/common/quantization.h"

#include "absl/strings/str_cat.h"
#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

std::string OfOutput(absl::string_view name, int port) {
  return port == 0 ? std::string(name) : absl::StrCat(name, "_", port);
}

}  // namespace

Quantization QuantizationOf(const Node& n, int port) {
  Quantization q;
  const Attr* scales = n.attrs().Find(OfOutput(kScales, port));
  const auto* list = scales == nullptr ? nullptr : scales->get<std::vector<float>>();
  if (list == nullptr) return q;
  q.scales = *list;
  q.zero_points = n.Ints(OfOutput(kZeroPoints, port));
  q.dim = n.Int(OfOutput(kQuantizedDim, port));
  q.block = n.Int(kBlockSize);
  return q;
}

void SetQuantization(AttrMap& attrs, int port, const Quantization& q) {
  attrs.Set(OfOutput(kScales, port), q.scales);
  attrs.Set(OfOutput(kZeroPoints, port), q.zero_points);
  if (q.scales.size() > 1) attrs.Set(OfOutput(kQuantizedDim, port), q.dim);
}

void SetSeenRange(AttrMap& attrs, int port, float least, float greatest) {
  attrs.Set(OfOutput(kSeenRange, port), std::vector<float>{least, greatest});
}

std::optional<std::pair<float, float>> SeenRangeOf(const Node& n, int port) {
  const auto range = n.Get<std::vector<float>>(OfOutput(kSeenRange, port), {});
  if (range.size() != 2) return std::nullopt;
  return std::pair(range[0], range[1]);
}

}  // namespace smelt
