#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/compile/plan.h"

namespace smelt {
namespace {

std::string PlaceText(const Plan& plan, int value) {
  const PlanValue& root = plan.RootOf(value);
  const int64_t within = plan.Within(value);
  const std::string behind = within > 0 ? absl::StrCat("+", within) : "";
  switch (root.place) {
    case PlanValue::Place::kArgument:
      return absl::StrCat("argument ", root.number, behind);
    case PlanValue::Place::kConstant:
      return absl::StrCat("constant", behind);
    case PlanValue::Place::kResult:
      return absl::StrCat("result ", root.number, behind);
    case PlanValue::Place::kArena:
      return absl::StrCat("@", root.offset + within);
  }
  return "";
}

std::string ValueText(const Plan& plan, int value) {
  const PlanValue& v = plan.values[static_cast<size_t>(value)];
  return absl::StrCat(EndpointName(v.of), " ", DtypeName(v.dtype), v.shape.ToString(), " ",
                      PlaceText(plan, value));
}

}  // namespace

std::string PlanText(const Plan& plan, const Reasons* reasons) {
  std::string text;
  const auto values = [&](const std::vector<int>& list) {
    return absl::StrJoin(list, ", ",
                         [&](std::string* out, int v) { out->append(ValueText(plan, v)); });
  };
  for (const PlanAction& action : plan.actions) {
    absl::StrAppend(&text, values(action.outputs), " = ", action.node->op(), " [",
                    action.kernel->name, action.bound != nullptr ? ", bound" : "", "](",
                    values(action.inputs), ")");
    for (const Node* n : action.then) {
      absl::StrAppend(&text, n == action.then.front() ? " then " : ", ", n->op());
    }
    text += '\n';
    if (reasons == nullptr) continue;
    for (const auto& [node, why] : reasons->of_nodes) {
      if (node != action.node && std::ranges::find(action.then, node) == action.then.end())
        continue;
      absl::StrAppend(&text, "  ", node->name(), ": ", why, "\n");
    }
  }
  absl::StrAppend(&text, "return ", values(plan.results), "\n");
  // What kernels need beside it is their own business, and the machine's.
  absl::StrAppend(&text, "arena ", plan.scratch_offset, " bytes, at least ", LeastArena(plan),
                  "\n");
  return text;
}

}  // namespace smelt
