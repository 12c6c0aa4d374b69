// smelt_random_graphs [--first N] [--count N] [--clients N] [--show] [--keep_going]
// [--nan_before_relu] [--stages]: draws graphs, by number, and holds the programs that sessions
// compile to the plain executor, in turn and for so many clients at once; with --stages those are
// cut wherever they can be, and every second one makes layers by lines where it can. A graph that
// fails is made smaller and printed as a case of tests/sessions, with what the executor answered;
// exit code 1.
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "smelt/compile/join_lines.h"
#include "smelt/compile/stages.h"
#include "tests/random_graphs/check.h"
#include "tests/random_graphs/drawer.h"
#include "tests/random_graphs/shrink.h"

namespace smelt {
namespace {

struct Flags {
  int64_t first = 0, count = 1000, clients = 0;
  bool show = false, keep_going = false, shrink = true, stages = false;
  DrawOptions draw;
};

// What is found, apart from where.
std::string KindOf(absl::string_view why) {
  for (const char* kind : {"instead of nan", " nan instead of", "values differ", "OK instead of",
                           "instead of OK", "instead of"}) {
    if (absl::StrContains(why, kind)) return kind;
  }
  return "";
}

bool ReadFlags(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    if (flag == "--show") {
      flags->show = true;
    } else if (flag == "--keep_going") {
      flags->keep_going = true;
    } else if (flag == "--no_shrink") {
      flags->shrink = false;
    } else if (flag == "--stages") {
      flags->stages = true;
    } else if (flag == "--nan_before_relu") {
      flags->draw.no_nan_before_relu = false;
    } else if (flag == "--first" && i + 1 < argc && absl::SimpleAtoi(argv[i + 1], &flags->first)) {
      ++i;
    } else if (flag == "--count" && i + 1 < argc && absl::SimpleAtoi(argv[i + 1], &flags->count)) {
      ++i;
    } else if (flag == "--clients" && i + 1 < argc &&
               absl::SimpleAtoi(argv[i + 1], &flags->clients)) {
      ++i;
    } else {
      std::fprintf(stderr, "no such flag: %s\n", argv[i]);
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!ReadFlags(argc, argv, &flags)) return 2;
  CheckCounts counts;
  int64_t failed = 0, nodes = 0;
  for (int64_t seed = flags.first; seed < flags.first + flags.count; ++seed) {
    // Where a signal ends the process, it is known of which graph.
    if (flags.show) std::fprintf(stderr, "graph %lld\n", static_cast<long long>(seed));
    if (flags.stages) {
      DrawStages(static_cast<uint64_t>(seed) + 1);
      JoinAllLines(seed % 2 == 0);
    }
    const DrawnGraph graph = Drawer(static_cast<uint64_t>(seed), flags.draw).Draw();
    if (graph.fetches.empty()) continue;
    nodes += std::ssize(graph.nodes);
    if (flags.show)
      std::printf("%s", CaseOf(graph, absl::StrCat("graph_", seed), PlainResults(graph)).c_str());
    const std::string why = CheckGraph(graph, flags.clients, &counts);
    if (why.empty()) continue;
    ++failed;
    std::printf("FAILED graph %lld: %s\n", static_cast<long long>(seed), why.c_str());
    if (flags.shrink) {
      std::string last = why;
      const DrawnGraph small = Shrunk(graph, [&](const DrawnGraph& g) {
        const std::string now = CheckGraph(g, flags.clients);
        if (now.empty() || KindOf(now) != KindOf(why)) return false;
        last = now;
        return true;
      });
      std::printf("%s\n%s", CheckGraph(small, flags.clients).c_str(),
                  CaseOf(small, absl::StrCat("graph_", seed), PlainResults(small)).c_str());
    }
    std::fflush(stdout);
    if (!flags.keep_going) break;
  }
  const auto say = [](int64_t n, const char* what) {
    std::printf("%lld %s", static_cast<long long>(n), what);
  };
  say(flags.count, "graphs of ");
  say(nodes, "nodes, ");
  say(counts.requests, "requests (");
  say(counts.errors, "errors), ");
  say(counts.values, "values (");
  say(counts.rounded, "rounded, ");
  say(counts.far, "elements far), ");
  say(counts.programs, "programs (");
  say(counts.in_parts, "in parts, ");
  say(counts.in_stages, "in stages, ");
  say(counts.in_place, "values in place, ");
  say(counts.chains, "chains, ");
  say(counts.followed, "actions that do what follows): ");
  say(failed, "failed\n");
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace smelt

int main(int argc, char** argv) { return smelt::Main(argc, argv); }
