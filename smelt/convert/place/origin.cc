#include "smelt/convert/place/origin.h"

namespace smelt {

Origin OriginOf(const FunctionLibrary& library, const Function& start, absl::string_view name) {
  const Function* function = &start;
  Origin o{function->name(), function->name(), std::string(name)};
  for (bool deeper = true; deeper;) {
    deeper = false;
    if (function->body->Find(o.node) != nullptr) break;
    for (size_t slash = o.node.find('/'); slash != std::string::npos;
         slash = o.node.find('/', slash + 1)) {
      const Node* call = function->body->Find(absl::string_view(o.node).substr(0, slash));
      if (call == nullptr) continue;
      const FuncAttr* f = IsPartitionedCall(*call) ? call->Func("f") : nullptr;
      const Function* callee = library.Find(f ? f->name : call->op());
      if (callee == nullptr || callee->body == nullptr) continue;
      function = callee;
      o.function = callee->name();
      absl::StrAppend(&o.path, " > ", o.function);
      o.node = o.node.substr(slash + 1);
      deeper = true;
      break;
    }
  }
  return o;
}

}  // namespace smelt
