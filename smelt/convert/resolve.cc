// Which functions go to the accelerator: the four ways to name one, and what speaks against them.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "smelt/convert/conversion.h"

namespace smelt {
namespace {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string AliasOf(const MetaGraph& meta, const std::string& function) {
  auto it = meta.function_aliases.find(function);
  return it == meta.function_aliases.end() ? "" : it->second;
}

StatusOr<std::string> ByAlias(const Conversion& c, const std::string& alias) {
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

StatusOr<std::string> ByConcreteName(Conversion& c, const std::string& name) {
  if (c.library().Find(name) != nullptr) return name;
  std::vector<std::string> names;
  for (const Function* f : c.library().Functions()) names.push_back(f->name());
  return NotFound("concrete_function_name \"", name, "\" is not in the model's ", names.size(),
                  " functions", Suggest(name, names));
}

// The function that a signature's outputs come from: behind identities, one call. A signature that
// is no call is made one.
StatusOr<std::string> BySignature(Conversion& c, const std::string& name) {
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
    while (e.node->Is("Identity")) e = e.node->inputs[0];
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

Status AddPlacement(Conversion& c, const std::string& function, const std::string& label,
                    const std::string& how) {
  for (const TpuPlacement& p : c.placements) {
    if (p.function == function) {
      return InvalidArgument("Function \"", function, "\" is given twice in tpu_functions: as \"",
                             p.label, "\" and by ", how, ". Provide each function once.");
    }
  }
  c.placements.push_back({function, label, ""});
  return OkStatus();
}

// Who calls whom, read from the bodies once each.
class CallGraph {
 public:
  explicit CallGraph(FunctionLibrary& library) : library_(library) {}

  const std::vector<std::string>& Callees(const std::string& name) {
    auto [it, added] = callees_.try_emplace(name);
    if (added) {
      const Function* f = library_.Find(name);
      if (f != nullptr && f->body != nullptr) {
        for (std::string& callee : CalledFunctions(*f->body)) {
          if (library_.Find(callee) != nullptr) it->second.push_back(std::move(callee));
        }
      }
    }
    return it->second;
  }

 private:
  FunctionLibrary& library_;
  absl::flat_hash_map<std::string, std::vector<std::string>> callees_;
};

// A placed function may call a placed function directly; a call through a function in between would
// put the stub, which only the host can run, on the accelerator.
Status CheckIndirectCalls(Conversion& c) {
  CallGraph calls(c.library());
  absl::flat_hash_set<std::string> placed;
  for (const TpuPlacement& p : c.placements) placed.insert(p.function);
  for (const TpuPlacement& p : c.placements) {
    std::vector<std::string> stack;
    absl::flat_hash_set<std::string> seen;
    for (const std::string& callee : calls.Callees(p.function)) {
      if (!placed.contains(callee) && seen.insert(callee).second) stack.push_back(callee);
    }
    while (!stack.empty()) {
      const std::string f = stack.back();
      stack.pop_back();
      for (const std::string& callee : calls.Callees(f)) {
        if (placed.contains(callee)) {
          return InvalidArgument("Unable to place both \"", p.function, "\" and \"", callee,
                                 "\" on the TPU because \"", p.function, "\" indirectly calls \"",
                                 callee,
                                 "\". This behavior is unsupported because it can cause invalid "
                                 "graphs to be generated.");
        }
        if (seen.insert(callee).second) stack.push_back(callee);
      }
    }
  }
  return OkStatus();
}

// Functions that no signature reaches: placing them changes nothing that is served.
void WarnUnreached(Conversion& c) {
  CallGraph calls(c.library());
  std::vector<std::string> stack;
  for (const Node* n : ServedNodes(*c.meta)) {
    if (c.library().Find(n->op()) != nullptr) stack.push_back(n->op());
    ForEachFunc(n->attrs(), [&](const FuncAttr& f) { stack.push_back(f.name); });
  }
  absl::flat_hash_set<std::string> reached(stack.begin(), stack.end());
  while (!stack.empty()) {
    const std::string f = stack.back();
    stack.pop_back();
    for (const std::string& callee : calls.Callees(f)) {
      if (reached.insert(callee).second) stack.push_back(callee);
    }
  }
  for (const TpuPlacement& p : c.placements) {
    if (!reached.contains(p.function)) {
      c.warnings.push_back(
          absl::StrCat("no signature calls function \"", p.function, "\" (", p.label, ")"));
    }
  }
}

}  // namespace

std::string Suggest(absl::string_view name, const std::vector<std::string>& names) {
  std::vector<std::pair<int, std::string>> ranked;
  // Long lists are not searched whole for a hint.
  for (size_t i = 0; i < names.size() && i < 10000; ++i) {
    const int d = EditDistance(name.substr(0, 128), absl::string_view(names[i]).substr(0, 128));
    if (d <= static_cast<int>(std::max(name.size(), names[i].size())) / 2) {
      ranked.emplace_back(d, names[i]);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> best;
  for (size_t i = 0; i < ranked.size() && i < 3; ++i) {
    best.push_back(absl::StrCat("\"", ranked[i].second, "\""));
  }
  return best.empty() ? "" : absl::StrCat(" (did you mean ", absl::StrJoin(best, " or "), "?)");
}

Status ResolveTpuFunctions(Conversion& c) {
  for (const TpuFunctionOption& option : c.options.tpu_functions) {
    std::string function;
    switch (option.kind) {
      case TpuFunctionOption::Kind::kNone:
        return InvalidArgument(
            "tpu_functions {} names no function: give function_alias, "
            "concrete_function_name, signature_name or jit_compile_functions");
      case TpuFunctionOption::Kind::kAlias: {
        ASSIGN_OR_RETURN(function, ByAlias(c, option.name));
        RETURN_IF_ERROR(AddPlacement(c, function, option.name, "function_alias"));
        break;
      }
      case TpuFunctionOption::Kind::kConcreteName: {
        ASSIGN_OR_RETURN(function, ByConcreteName(c, option.name));
        RETURN_IF_ERROR(AddPlacement(c, function, option.name, "concrete_function_name"));
        break;
      }
      case TpuFunctionOption::Kind::kSignature: {
        ASSIGN_OR_RETURN(function, BySignature(c, option.name));
        RETURN_IF_ERROR(AddPlacement(c, function, option.name, "signature_name"));
        break;
      }
      case TpuFunctionOption::Kind::kJitCompiled: {
        if (!option.jit_compiled) break;
        int found = 0;
        for (const Function* f : c.library().Functions()) {
          const Attr* jit = f->attrs.Find("_XlaMustCompile");
          const bool* on = jit ? jit->get<bool>() : nullptr;
          if (on == nullptr || !*on) continue;
          ++found;
          const std::string alias = AliasOf(*c.meta, f->name());
          RETURN_IF_ERROR(AddPlacement(c, f->name(), alias.empty() ? f->name() : alias,
                                       "jit_compile_functions"));
        }
        if (found == 0) {
          return NotFound(
              "jit_compile_functions is set, but the model has no function that was "
              "exported with jit_compile=True");
        }
        break;
      }
    }
  }
  RETURN_IF_ERROR(CheckIndirectCalls(c));
  WarnUnreached(c);
  return OkStatus();
}

}  // namespace smelt
