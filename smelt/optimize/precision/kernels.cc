#include "smelt/optimize/precision/kernels.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "smelt/graph/op_def.h"

namespace smelt {
namespace {

// Ops whose GPU kernels take half wherever the definition allows it; tools/make_gpu_half_ops.py
// writes the list.
constexpr OpSet kHalfOnGpu = {
#include "smelt/optimize/precision/gpu_half_ops.inc"
};

}  // namespace

bool DefinitionAllows(const Node& n, absl::string_view attr, Dtype type) {
  if (n.op_name().unknown() || n.def() != DefinitionOf(n.op_name())) return false;
  const AttrDef* def = n.def()->FindAttr(attr);
  if (def == nullptr) return false;
  return def->allowed_types.empty() ||
         std::ranges::find(def->allowed_types, type) != def->allowed_types.end();
}

bool KernelTakes(const Node& n, absl::string_view attr, Dtype type, bool on_gpu) {
  if (on_gpu) return type == Dtype::kHalf && n.Is(kHalfOnGpu);
  if (n.def()->cpu_types.empty()) return false;
  // "T in {float, half}; U in {int32}", or "any".
  for (const absl::string_view part : absl::StrSplit(n.def()->cpu_types, "; ")) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, " in {");
    if (sides.size() != 2 || sides[0] != attr) continue;
    const absl::string_view types = sides[1].substr(0, sides[1].find('}'));
    const std::vector<absl::string_view> names = absl::StrSplit(types, ", ");
    return std::ranges::find(names, DtypeName(type)) != names.end();
  }
  return true;
}

}  // namespace smelt
