// What the options keep float32.
#include <algorithm>

#include "smelt/convert/bfloat16/bfloat16.h"

namespace smelt {

Bf16Filter::Bf16Filter(const Bfloat16Option& options)
    : ops_(options.filterlist.begin(), options.filterlist.end()),
      before_int8_(options.before_int8) {
  for (const std::string& name : options.node_filterlist) {
    names_.push_back(std::make_unique<RE2>(name, RE2::Quiet));
  }
}

Bf16Filter::~Bf16Filter() = default;

absl::string_view Bf16Filter::Why(const Node& n) const {
  if (HasOp(n)) return kBf16Filterlist;
  if (IsOfInt8(n)) return "part of an int8 layer";
  const bool named = std::ranges::any_of(
      names_, [&](const auto& name) { return RE2::FullMatch(std::string(n.name()), *name); });
  return named ? kBf16NodeFilterlist : "";
}

std::vector<std::string> Bf16Filter::Unused(const std::vector<FloatGraph*>& graphs) const {
  std::vector<std::string> unused;
  for (const auto& name : names_) {
    const bool used = std::ranges::any_of(graphs, [&](const FloatGraph* g) {
      return std::ranges::any_of(g->graph->Nodes(), [&](const Node* n) {
        return RE2::FullMatch(std::string(n->name()), *name);
      });
    });
    if (!used) unused.push_back(name->pattern());
  }
  return unused;
}

}  // namespace smelt
