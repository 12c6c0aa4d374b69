// smelt_case_tests sessions [--filter TEXT] FILE...: runs the graphs among op cases
// (docs/formats/op_cases.md) as a session does, reference variables and version 1 control flow
// included: optimized, compiled or not, and as they are stated.
//
// Prints what fails and ends with "N passed, N failed"; exit code 1 when something failed, 2 when a
// file could not be read.
#include <cstdio>

#include "absl/strings/match.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"
#include "tests/case_tests.h"
#include "tests/op_case.h"
#include "tests/op_compare.h"

namespace smelt {
namespace {

// Why the case failed, or empty.
std::string RunInSession(const TestCase& c, bool optimize, bool compile) {
  auto graph = ParseGraph(c.graph);
  bool done = false;
  if (!graph.ok()) return CompareStatus(graph.status(), c.steps[0].failure, &done);
  RewriterConfig rewriter;
  rewriter.disable_meta_optimizer = !optimize;
  Session session(std::shared_ptr<const Graph>(*std::move(graph)),
                  {.compile = compile, .rewriter = rewriter, .files = FileSystem::Whole()});
  for (size_t i = 0; i < c.steps.size(); ++i) {
    const TestStep& s = c.steps[i];
    const std::string where = c.steps.size() > 1 ? absl::StrCat("step ", i + 1, ": ") : "";
    std::vector<std::pair<std::string, Tensor>> feeds;
    for (const auto& [name, literal] : s.feeds) {
      auto tensor = ParseTensorText(literal);
      if (!tensor.ok()) return absl::StrCat(where, tensor.status().message());
      feeds.emplace_back(name, *std::move(tensor));
    }
    std::vector<std::string> fetches;
    for (const auto& [name, literal] : s.fetches) fetches.push_back(name);
    auto results = session.Run(feeds, fetches, s.runs);
    std::string why = CompareStatus(results.status(), s.failure, &done);
    if (!why.empty()) return absl::StrCat(where, why);
    if (done) continue;
    for (size_t k = 0; k < fetches.size(); ++k) {
      auto want = ParseTensorText(s.fetches[k].second);
      if (!want.ok()) return absl::StrCat(where, want.status().message());
      why = Compare((*results)[k], *want, c);
      if (!why.empty()) return absl::StrCat(where, fetches[k], " ", why);
    }
  }
  return "";
}

}  // namespace

int SessionTests(int argc, char** argv) {
  std::vector<TestCase> cases;
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (const Status s = ReadCases(argv[i], &cases); !s.ok()) {
      std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
      return 2;
    }
  }
  int passed = 0, failed = 0;
  for (const TestCase& c : cases) {
    if (!c.is_graph || !absl::StrContains(c.name, filter)) continue;
    constexpr struct {
      const char* name;
      bool optimize, compile;
    } kWays[] = {
        {"", true, false}, {", compiled", true, true}, {", as it is stated", false, false}};
    for (const auto& way : kWays) {
      const std::string why = RunInSession(c, way.optimize, way.compile);
      ++(why.empty() ? passed : failed);
      if (why.empty()) continue;
      std::printf("FAILED %s%s (%s:%d) %s\n", c.name.c_str(), way.name, c.file.c_str(), c.line,
                  why.c_str());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace smelt
