// smelt_case_tests programs FILE...: what graphs are compiled to, files of cases.
//
//   case NAME
//   args [2,3] [4]
//   in
//   ...graph text, arguments as _Arg and results as _Retval...
//   out
//   ...the program's plan, or why there is none...
//
// `reasons threads N args ...`: with the reasons why it is no more.
// `threads N args ...`: what is compiled for N threads, which may be a part of the rows.
// `regions` in the place of `args`: the graph after its regions were cut, then each body behind a
// line that names its node. `scans NODE`: the graph without its functions after the pass that makes
// scans of loops, then the bodies, or why it left the loop NODE alone. Cases are separated by lines
// of dashes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/base/team.h"
#include "smelt/compile/parts.h"
#include "smelt/compile/regions.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/pipeline.h"
#include "tests/case_tests.h"

namespace smelt {
namespace {

struct ProgramCase {
  std::string name, what, in, out;
};

StatusOr<Shape> ShapeOf(absl::string_view text) {
  Dims dims;
  absl::ConsumePrefix(&text, "[");
  absl::ConsumeSuffix(&text, "]");
  for (const absl::string_view d : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(d, &size)) return InvalidArgument("no size: ", d);
    dims.push_back(size);
  }
  return Shape::Make(dims);
}

StatusOr<std::string> Scanned(Graph& graph, absl::string_view loop) {
  std::vector<std::unique_ptr<Graph>> bodies;
  RewriteLog log;
  log.Explain(loop);
  PassContext context;
  context.scan_bodies = &bodies;
  context.log = &log;
  const PipelineOptions options = {.verify = VerifyPasses::kFail};
  RETURN_IF_ERROR(RunPasses({FindPass("scan_loops"), 1}, graph, context, options));
  for (const RewriteLog::Event& e : log.events()) {
    if (!e.fired) return absl::StrCat(e.text, "\n");
  }
  graph.Prune(Roots(graph));
  std::string text = PrintGraph(graph, false);
  for (size_t i = 0; i < bodies.size(); ++i) {
    absl::StrAppend(&text, "body ", i, "\n", PrintGraph(*bodies[i], false));
  }
  return text;
}

StatusOr<std::string> Compiled(const ProgramCase& c) {
  ASSIGN_OR_RETURN(const auto graph, ParseGraph(c.in));
  absl::string_view what = c.what;
  if (what == "regions") {
    ASSIGN_OR_RETURN(const std::vector<Region> regions, CutRegions(*graph, 2));
    std::string text = PrintGraph(*graph);
    for (const Region& r : regions) {
      absl::StrAppend(&text, "region ", r.node->name(), "\n", PrintGraph(*r.body));
    }
    return text;
  }
  if (absl::ConsumePrefix(&what, "scans ")) return Scanned(*graph, what);
  const bool explained = absl::ConsumePrefix(&what, "reasons ");
  int threads = 0;
  if (absl::ConsumePrefix(&what, "threads ")) {
    const std::vector<absl::string_view> parts = absl::StrSplit(what, absl::MaxSplits(' ', 1));
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &threads)) {
      return InvalidArgument("no number of threads: ", what);
    }
    what = parts[1];
  }
  if (!absl::ConsumePrefix(&what, "args")) {
    return InvalidArgument("neither args nor regions nor scans");
  }
  std::vector<Shape> shapes;
  for (const absl::string_view t : absl::StrSplit(what, ' ', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(Shape s, ShapeOf(t));
    shapes.push_back(std::move(s));
  }
  KernelStates states;
  Reasons reasons;
  const ScopedThreads team(threads > 0 ? threads : Threads());
  const auto program =
      PartedProgram::Compile(*graph, shapes, states, "f",
                             {threads > 0 ? PartsWanted::Kind::kOfRun : PartsWanted::Kind::kNone},
                             explained ? &reasons : nullptr);
  if (!program.ok()) return absl::StrCat(program.status().message(), "\n");
  std::string text;
  for (const std::string& why : reasons.of_program) absl::StrAppend(&text, why, "\n");
  for (const PartedProgram::Stage& stage : (*program)->stages()) {
    if (&stage != &(*program)->stages()[0]) absl::StrAppend(&text, "then\n");
    if (stage.part > 0) absl::StrAppend(&text, "parts of ", stage.part, " rows\n");
    absl::StrAppend(&text, PlanText(stage.program->plan(), &reasons));
  }
  return text;
}

bool RunProgramCase(const ProgramCase& c) {
  const auto got = Compiled(c);
  const std::string text = got.ok() ? *got : std::string(got.status().message());
  if (text == c.out) return true;
  std::printf("FAILED %s\nwanted:\n%sgot:\n%s", c.name.c_str(), c.out.c_str(), text.c_str());
  return false;
}

}  // namespace

int ProgramTests(int argc, char** argv) {
  // Plans as on a processor that multiplies int8 numbers, whatever this one does and SMELT_ISA
  // says.
  setenv("SMELT_INT8", "native", 0);
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    std::string line;
    ProgramCase c;
    std::string* section = nullptr;
    const auto finish = [&] {
      if (!c.name.empty()) ++(RunProgramCase(c) ? passed : failed);
      c = ProgramCase();
      section = nullptr;
    };
    while (std::getline(file, line)) {
      if (absl::StartsWith(line, "---")) {
        finish();
      } else if (section == nullptr && absl::StartsWith(line, "case ")) {
        c.name = line.substr(5);
      } else if (line == "in") {
        section = &c.in;
      } else if (line == "out") {
        section = &c.out;
      } else if (section != nullptr) {
        absl::StrAppend(section, line, "\n");
      } else if (!line.empty()) {
        c.what = line;
      }
    }
    finish();
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace smelt
