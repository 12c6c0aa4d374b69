// smelt_case_tests passes FOLDER...: the pass tests, files of cases, each a graph before and the
// graph wanted after.
//
//   case NAME
//   pass [on_tpu|for_graphs] constant_folding [more passes]
//   in
//   ...graph text...
//   out
//   ...graph text...
//
// `same` instead of `out`: the graph as it was. Passes are rows of optimize/pipeline.cc, or
// `optimize`, which is all of them; the graph is verified after each. Cases are separated by lines
// of dashes. Names of constants that a pass makes are part of the result.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/pipeline.h"
#include "tests/case_tests.h"

namespace smelt {
namespace {

// Nodes by name, so that the order of a graph does not matter; functions are left out.
std::string Canonical(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node* n : graph.Nodes()) lines.push_back(PrintNode(*n));
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + (absl::EndsWith(line, "\n") ? "" : "\n");
  return out;
}

StatusOr<bool> RunPassCase(const std::string& name, const std::string& passes,
                           const std::string& in, const std::string& want) {
  ASSIGN_OR_RETURN(auto graph, ParseGraph(in));
  ASSIGN_OR_RETURN(auto wanted, ParseGraph(want));
  PassContext context;
  // In these tests a variable holds [1, 2].
  context.frozen_value = [](const Node&) -> std::optional<Tensor> {
    return Tensor::Vector<float>({1, 2});
  };
  for (absl::string_view p : absl::StrSplit(passes, ' ', absl::SkipEmpty())) {
    if (p == "on_tpu") {
      context.device_type = "TPU";
      continue;
    }
    if (p == "for_graphs") {
      context.for_execution = false;
      continue;
    }
    const PipelineOptions options = {.verify = VerifyPasses::kFail};
    if (p == "optimize") {
      RETURN_IF_ERROR(Optimize(*graph, context, options));
      continue;
    }
    const Pass* pass = FindPass(p);
    if (pass == nullptr) return InvalidArgument("no pass ", p);
    RETURN_IF_ERROR(RunPasses({pass, 1}, *graph, context, options));
  }
  const std::string got = Canonical(*graph), expected = Canonical(*wanted);
  if (got == expected) return true;
  std::printf("FAILED %s\nwanted:\n%sgot:\n%s", name.c_str(), expected.c_str(), got.c_str());
  return false;
}

int RunPassFile(const std::string& path, int* passed) {
  std::ifstream file(path);
  std::string line, name, passes, in, out;
  int failed = 0, section = 0;
  const auto finish = [&] {
    if (name.empty()) return;
    auto ok = RunPassCase(name, passes, in, out);
    if (!ok.ok()) std::printf("FAILED %s: %s\n", name.c_str(), ok.status().ToString().c_str());
    (ok.ok() && *ok) ? ++*passed : ++failed;
    name.clear();
    in.clear();
    out.clear();
    section = 0;
  };
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "---")) {
      finish();
    } else if (section == 0 && absl::StartsWith(line, "case ")) {
      name = line.substr(5);
    } else if (section == 0 && absl::StartsWith(line, "pass ")) {
      passes = line.substr(5);
    } else if (line == "in") {
      section = 1;
    } else if (line == "out") {
      section = 2;
    } else if (line == "same") {
      out = in;
      section = 3;
    } else if (section == 1 || section == 2) {
      (section == 1 ? in : out) += line + "\n";
    }
  }
  finish();
  return failed;
}

}  // namespace

int PassTests(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.path().extension() == ".graph") failed += RunPassFile(entry.path(), &passed);
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace smelt
