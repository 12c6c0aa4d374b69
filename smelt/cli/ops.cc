#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_join.h"
#include "smelt/cli/command.h"
#include "smelt/cli/version.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

std::string TypeList(const Kernel& k) {
  if (k.type_attr.empty()) return "any";
  std::vector<std::string> names;
  for (int i = 1; i < kNumDtypes; ++i) {
    const auto t = static_cast<Dtype>(i);
    if (Has(k.types, t)) names.emplace_back(DtypeName(t));
  }
  return absl::StrCat(k.type_attr, " in {", absl::StrJoin(names, ", "), "}");
}

std::string ArgText(const ArgDef& a) {
  std::string type = !a.type_list_attr.empty() ? "list(" + a.type_list_attr + ")"
                     : a.type_attr.empty()     ? std::string(DtypeName(a.type))
                                               : a.type_attr;
  if (!a.number_attr.empty()) type = a.number_attr + "*" + type;
  return a.name + ": " + (a.is_ref ? "Ref(" + type + ")" : type);
}

StatusOr<int> ShowOp(const std::string& name) {
  const OpDef* def = FindOpDef(name);
  if (def == nullptr) return NotFound("Op '", name, "' is not known");
  std::vector<std::string> in, out, attrs;
  for (const ArgDef& a : def->inputs) in.push_back(ArgText(a));
  for (const ArgDef& a : def->outputs) out.push_back(ArgText(a));
  for (const AttrDef& a : def->attrs) attrs.push_back(a.name + ": " + a.type);
  std::printf("%s%s\n  in:  %s\n  out: %s\n  attr: %s\n", name.c_str(),
              def->stateful ? " (stateful)" : "", absl::StrJoin(in, "; ").c_str(),
              absl::StrJoin(out, "; ").c_str(), absl::StrJoin(attrs, "; ").c_str());
  const auto rows = KernelsOf(name);
  for (const Kernel* k : rows) {
    std::printf("  CPU: %s, %s\n", std::string(k->name).c_str(), TypeList(*k).c_str());
  }
  if (name == "XlaCallModule") {
    std::printf("  no kernel: runs as the functions that its StableHLO module is made into\n");
  } else if (rows.empty()) {
    std::printf("  no kernel: shown, optimized and converted, not run\n");
  }
  return kExitOk;
}

StatusOr<int> ListOps() {
  int with_kernel = 0;
  for (absl::string_view name : AllOpNames()) {
    const auto rows = KernelsOf(name);
    if (rows.empty()) continue;
    ++with_kernel;
    std::vector<std::string> names;
    for (const Kernel* k : rows) {
      std::string kernel(k->name);
      if (std::find(names.begin(), names.end(), kernel) == names.end()) names.push_back(kernel);
    }
    std::printf("%-40s CPU  %s\n", std::string(name).c_str(), absl::StrJoin(names, ", ").c_str());
  }
  std::printf("%d ops with kernels; %zu ops known\n", with_kernel, AllOpNames().size());
  return kExitOk;
}

}  // namespace

CommandBody SetupOps(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("name", *name, "One op; all with kernels when left out");
  return [name]() -> StatusOr<int> { return name->empty() ? ListOps() : ShowOp(*name); };
}

CommandBody SetupVersion(CLI::App& app) {
  return []() -> StatusOr<int> {
    std::printf("smelt %s (TensorFlow 2.21 op definitions)\n", kSmeltVersion);
    return kExitOk;
  };
}

}  // namespace smelt
