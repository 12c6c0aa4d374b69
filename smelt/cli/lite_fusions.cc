#include "smelt/cli/lite_fusions.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "smelt/io/fs.h"
#include "smelt/lite/composites/composite.h"
#include "smelt/lite/fuse/custom/fusion_library.h"

namespace smelt {

void AddFusionFlags(CLI::App& app, FusionFlags& flags) {
  app.add_option("--fusions", flags.file,
                 "A file of fusions (docs/lite_fusions.md), tried before our own");
  app.add_option(
         "--fusion_library", flags.libraries,
         "A shared library of fusions (smelt/lite/fuse/custom/smelt_fusion.h), tried first, "
         "several times for several")
      ->allow_extra_args(false);
  app.add_option("--fusion", flags.on,
                 "The name of a fusion that is tried on request alone, several times for several")
      ->allow_extra_args(false);
  app.add_option("--no_fusion", flags.off,
                 "The name of a fusion that is left out, several times for several")
      ->allow_extra_args(false);
  app.add_flag("--list_fusions", flags.list, "Lists all fusions, and ends");
  app.add_flag("--explain", flags.explain,
               "Says which fusions fired where, and which nearly did and why not");
}

StatusOr<FusionChoice> ChooseFusions(const FusionFlags& flags) {
  FusionChoice out;
  out.off.insert(flags.off.begin(), flags.off.end());
  out.on.insert(flags.on.begin(), flags.on.end());
  for (const std::string& path : flags.libraries) {
    ASSIGN_OR_RETURN(std::vector<FunctionFusion> fusions, LoadFusionLibrary(path));
    for (FunctionFusion& f : fusions) out.functions.push_back(std::move(f));
  }
  if (!flags.file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.file));
    auto own = ParseFusions(text);
    if (!own.ok()) return Prefix(own.status(), absl::StrCat(flags.file, ":"));
    out.own = *std::move(own);
  }
  std::vector<absl::string_view> composites;
  for (const Composite& c : AllComposites()) composites.push_back(c.name);
  RETURN_IF_ERROR(CheckFusions(out, composites));
  return out;
}

void ListFusions(const FusionChoice& choice) {
  const auto line = [](absl::string_view name, absl::string_view what) {
    std::printf("%-28.*s %.*s\n", static_cast<int>(name.size()), name.data(),
                static_cast<int>(what.size()), what.data());
  };
  for (const FunctionFusion& f : choice.functions) line(f.name, f.what);
  for (const RuleFusion& f : choice.own) line(f.name, f.what);
  for (const Fusion& f : AllFusions()) line(f.name, f.what);
  for (const Composite& c : AllComposites()) line(c.name, c.what);
}

void ExplainFusions(const FusionChoice& choice, const std::vector<FusionNote>& notes) {
  for (const FusionNote& n : notes) {
    if (!n.why_not.empty()) continue;
    std::printf("fused     %s: %s%s%s\n", n.node.c_str(), n.fusion.c_str(),
                n.differs.empty() ? "" : ", differs: ", n.differs.c_str());
  }
  for (const FusionNote& n : notes) {
    if (n.why_not.empty()) continue;
    std::printf("not fused %s: %s: %s\n", n.node.c_str(), n.fusion.c_str(), n.why_not.c_str());
  }
  for (const RuleFusion& own : choice.own) {
    const bool told =
        std::ranges::any_of(notes, [&](const FusionNote& n) { return n.fusion == own.name; });
    if (told || choice.off.contains(own.name)) continue;
    std::printf("not fused %s: nothing in the model nearly is one of its patterns\n",
                own.name.c_str());
  }
}

}  // namespace smelt
