#include "smelt/optimize/implementations.h"

#include <algorithm>

namespace smelt {
namespace {

// Functions of one interface for inference, for the forward and for the backward pass of training
// are no substitutes for each other.
enum class PassKind { kInference, kForward, kBackward };

PassKind KindOfPass(const Function& f) {
  if (f.attrs.Find("backward_function_name") != nullptr) return PassKind::kForward;
  if (f.attrs.Find("forward_function_name") != nullptr) return PassKind::kBackward;
  return PassKind::kInference;
}

absl::string_view FunctionText(const Function& f, absl::string_view name) {
  const Attr* attr = f.attrs.Find(name);
  const auto* text = attr ? attr->get<std::string>() : nullptr;
  return text ? absl::string_view(*text) : absl::string_view();
}

bool SameTypes(const std::vector<ArgDef>& a, const std::vector<ArgDef>& b) {
  return std::ranges::equal(a, b, [](const ArgDef& x, const ArgDef& y) {
    return x.type == y.type && x.type_attr == y.type_attr && x.number_attr == y.number_attr &&
           x.type_list_attr == y.type_list_attr;
  });
}

}  // namespace

const Function* ImplementationFor(const FunctionLibrary& library, const Function* called,
                                  absl::string_view device) {
  const absl::string_view interface = FunctionText(*called, "api_implements");
  if (device.empty() || interface.empty() ||
      FunctionText(*called, "api_preferred_device") == device) {
    return called;
  }
  for (const Function* f : library.Functions()) {
    if (f != called && FunctionText(*f, "api_implements") == interface &&
        FunctionText(*f, "api_preferred_device") == device &&
        KindOfPass(*f) == KindOfPass(*called) &&
        SameTypes(f->signature.inputs, called->signature.inputs) &&
        SameTypes(f->signature.outputs, called->signature.outputs)) {
      return f;
    }
  }
  return called;
}

bool SelectImplementations(Graph& graph, Node* node, absl::string_view device) {
  const FunctionLibrary& library = *graph.library();
  std::vector<std::pair<std::string, FuncAttr>> better;  // by attribute
  for (const auto& [name, attr] : std::as_const(*node).attrs()) {
    const auto* f = attr.get<FuncAttr>();
    const Function* called = f ? library.Find(f->name) : nullptr;
    if (called == nullptr) continue;
    const Function* chosen = ImplementationFor(library, called, device);
    if (chosen != called) better.emplace_back(name, FuncAttr{chosen->name(), f->attrs});
  }
  for (auto& [name, f] : better) node->AttrsToChange().Set(name, std::move(f));
  const bool changed = !better.empty();
  const Function* called = library.Find(node->op());
  if (called == nullptr) return changed;
  const Function* chosen = ImplementationFor(library, called, device);
  if (chosen == called) return changed;
  graph.SetOp(node, chosen->name());
  return true;
}

}  // namespace smelt
