// What the names in the converter options mean, and the nearest ones when they mean nothing.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/base/suggest.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/op_facts.h"

namespace smelt {

StatusOr<std::string> FunctionByAlias(Conversion& c, const std::string& alias) {
  std::vector<std::string> found, aliases;
  for (const auto& [function, a] : c.meta->function_aliases) {
    aliases.push_back(a);
    if (a == alias) found.push_back(function);
  }
  if (found.size() == 1) return found[0];
  if (found.size() > 1) {
    return InvalidArgument("function_alias \"", alias,
                           "\" names several functions: ", absl::StrJoin(found, ", "),
                           ". Use concrete_function_name.");
  }
  return NotFound("function_alias \"", alias, "\" is not in the model", Suggest(alias, aliases),
                  ". Aliases: ", aliases.empty() ? "none" : absl::StrJoin(aliases, ", "));
}

StatusOr<std::string> FunctionByConcreteName(Conversion& c, const std::string& name) {
  if (c.library().Find(name) != nullptr) return name;
  std::vector<std::string> names;
  for (const Function* f : c.library().Functions()) names.push_back(f->name());
  return NotFound("concrete_function_name \"", name, "\" is not in the model's ", names.size(),
                  " functions", Suggest(name, names));
}

// A signature of TensorFlow 2 is one call, from which all outputs come through identities.
StatusOr<std::string> FunctionBySignature(Conversion& c, const std::string& name) {
  auto it = c.meta->signatures.find(name);
  if (it == c.meta->signatures.end()) {
    std::vector<std::string> names;
    for (const auto& [key, s] : c.meta->signatures) names.push_back(key);
    return NotFound("signature_name \"", name, "\" is not in the model", Suggest(name, names),
                    ". Signatures: ", names.empty() ? "none" : absl::StrJoin(names, ", "));
  }
  const Node* call = nullptr;
  for (const auto& [key, info] : it->second.outputs) {
    if (info.kind != TensorInfo::Kind::kDense) {
      call = nullptr;
      break;
    }
    ASSIGN_OR_RETURN(Endpoint e, c.meta->graph->FindEndpoint(info.name));
    e = BehindIdentities(e);
    if (call != nullptr && e.node != call) {
      call = nullptr;
      break;
    }
    call = e.node;
  }
  const FuncAttr* f = call ? call->Func("f") : nullptr;
  if (f != nullptr && IsPartitionedCall(*call) && c.library().Find(f->name) != nullptr) {
    return f->name;
  }
  return OutlineSignature(c, name);
}

}  // namespace smelt
