// Functions that say themselves that they are operators: tfl_fusable_op.
#include "smelt/lite/composites/composite.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

LiteEndpoints Fusable(const CompositeCall& call, Legalizer& l) {
  std::vector<FlexEntry> entries;
  for (const auto& [name, value] : call.options()) {
    if (name == "tfl_fusable_op") continue;
    if (value.is_list()) {
      return InvalidArgument("failed to fuse for op '", call.implements.name, "': the option '",
                             name, "' is a list");
    }
    // Kernels know what TensorFlow's converter writes: its truth is a number, all bits of which are
    // set.
    const bool* truth = value.get<bool>();
    entries.emplace_back(name, truth == nullptr ? value : Attr(int64_t{*truth ? -1 : 0}));
  }
  auto options = FlexMap(entries);
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

std::span<const Composite> CustomComposites() { return kFusableRows; }

}  // namespace smelt
