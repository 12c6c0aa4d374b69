// Functions that say themselves that they are operators: tfl_fusable_op.
#include "smelt/lite/composites/composite.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

StatusOr<std::string> OptionsOfCall(const CompositeCall& call) {
  std::vector<FlexEntry> entries;
  for (const auto& [name, value] : call.options()) {
    if (name == "tfl_fusable_op") continue;
    if (value.is_list()) return InvalidArgument("the option '", name, "' is a list");
    // Kernels know what TensorFlow's converter writes: its truth is a number, all bits of which are
    // set.
    const bool* truth = value.get<bool>();
    entries.emplace_back(name, truth == nullptr ? value : Attr(int64_t{*truth ? -1 : 0}));
  }
  return FlexMap(entries);
}

LiteEndpoints Fusable(const CompositeCall& call, Legalizer& l) {
  auto options = OptionsOfCall(call);
  if (!options.ok()) {
    return Prefix(options.status(),
                  absl::StrCat("failed to fuse for op '", call.implements.name, "': "));
  }
  return CustomOperator(call, call.implements.name, *options, l);
}

constexpr Composite kFusableRows[] = {
    {"", ImplementsKind::kFunction, true, Fusable, "any function with tfl_fusable_op"},
};

}  // namespace

LiteEndpoints OperatorForRules(const CompositeCall& call, Legalizer& l) {
  const auto options = OptionsOfCall(call);
  if (!options.ok()) return Unimplemented(options.status().message());
  for (const Endpoint& e : call.node.inputs()) {
    if (l.type(e) == Dtype::kResource) {
      return Unimplemented("it reads the variable '", e.node->name(), "', which is no argument");
    }
  }
  ASSIGN_OR_RETURN(std::vector<Endpoint> by,
                   CustomOperator(call, call.implements.name, *options, l));
  if (!by.empty()) by[0].node->AttrsToChange().Set(kByRule, true);
  return by;
}

std::span<const Composite> CustomComposites() { return kFusableRows; }

}  // namespace smelt
