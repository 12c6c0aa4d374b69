// From ranges to scales, and ranges that training left in the model.
#include <algorithm>
#include <cmath>

#include "smelt/convert/quantize/quantize.h"

namespace smelt::quantize {

constexpr float kLowest = -128, kSteps = 255;

ActivationScale ScaleOf(Range range) {
  // Zero must have a code: padding and Relu rest on it.
  const double low = std::min(range.min, 0.0f), high = std::max(range.max, 0.0f);
  ActivationScale s;
  const auto scale = static_cast<float>((high - low) / kSteps);
  if (!(scale > 0) || !std::isnormal(scale)) return s;
  s.scale = scale;
  const double zero = std::round(kLowest - low / double{scale});
  s.zero_point = static_cast<int>(std::clamp(zero, -128.0, 127.0));
  return s;
}

Ranges FakeQuantRanges(const std::vector<Scope>& scopes, const KnownValues& known) {
  Ranges ranges;
  for (const Scope& scope : scopes) {
    for (const Node* n : scope.graph->Nodes()) {
      if (!scope.nodes.contains(n) || !IsFakeQuant(*n) ||
          n->Is("FakeQuantWithMinMaxVarsPerChannel")) {
        continue;
      }
      Range r{n->Float("min", -6), n->Float("max", 6)};
      if (n->Is("FakeQuantWithMinMaxVars")) {
        const auto low = known.Of(scope, n->inputs()[1]), high = known.Of(scope, n->inputs()[2]);
        if (!low || !high || low->dtype() != Dtype::kFloat || high->dtype() != Dtype::kFloat ||
            low->num_elements() != 1 || high->num_elements() != 1) {
          continue;
        }
        r = {low->scalar<float>(), high->scalar<float>()};
      }
      if (!std::isfinite(r.min) || !std::isfinite(r.max) || r.min >= r.max) continue;
      ranges[KeyOf(scope, n->inputs()[0])] = r;
    }
  }
  return ranges;
}

}  // namespace smelt::quantize
