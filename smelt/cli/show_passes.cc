#include "smelt/cli/show_passes.h"

#include <atomic>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "smelt/cli/picture.h"
#include "smelt/graph/text.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

// A request, or the function that is called; its name must not lead out of a folder.
std::string GraphName(const PassRun& run) {
  return run.graph.empty() ? "request" : absl::StrReplaceAll(run.graph, {{"/", "_"}});
}

// What the passes of all graphs share.
struct Shown {
  std::atomic<int> next = 0;
  std::atomic<bool> no_dot = false;
};

Status Dump(const std::string& dir, int number, const PassRun& run, const Graph& graph,
            Shown& shown) {
  const std::string path =
      JoinPath(dir, absl::StrFormat("%03d-%s-%s", number, GraphName(run), run.pass));
  RETURN_IF_ERROR(WriteFileAtomically(path + ".graph", PrintGraph(graph)));
  RETURN_IF_ERROR(WriteFileAtomically(path + ".dot", DotText(graph)));
  if (shown.no_dot) return OkStatus();
  const Status drawn = DrawDot(path + ".dot", path + ".svg");
  if (!absl::IsUnavailable(drawn)) return drawn;
  // Once is enough.
  if (shown.no_dot.exchange(true)) return OkStatus();
  return Suffix(drawn, absl::StrCat(": no pictures in ", dir, ", only what it draws them of"));
}

}  // namespace

void AddPassFlags(CLI::App& app, PassFlags* flags) {
  app.add_flag("--verify_passes", flags->verify,
               "Verify the graph after each pass; undo and name one that breaks it");
  app.add_flag("--time_passes", flags->time,
               "Print what each pass took on stderr: its graph, its name, nodes before and after, "
               "milliseconds");
  app.add_option("--dump_dir", flags->dump,
                 "Folder for the graph after each pass, as text and as a picture");
}

StatusOr<PipelineOptions> PassOptions(const PassFlags& flags) {
  PipelineOptions options;
  if (!flags.verify && !flags.time && flags.dump.empty()) return options;
  if (flags.verify) options.verify = VerifyPasses::kUndo;
  if (!flags.dump.empty()) RETURN_IF_ERROR(MakeDirs(flags.dump));
  auto shown = std::make_shared<Shown>();
  options.after = [flags, shown](const PassRun& run, const Graph& graph) {
    if (run.outcome == PassRun::Outcome::kUndone) {
      std::fprintf(stderr, "pass %s undone: %s\n", std::string(run.pass).c_str(),
                   run.why_undone.c_str());
    }
    if (flags.time) {
      std::fputs(absl::StrFormat("%s %s %d %d %.3f\n", GraphName(run), run.pass, run.nodes_before,
                                 run.nodes_after, absl::ToDoubleMilliseconds(run.time))
                     .c_str(),
                 stderr);
    }
    const int number = shown->next++;
    if (!flags.dump.empty() && run.outcome == PassRun::Outcome::kChanged) {
      const Status dumped = Dump(flags.dump, number, run, graph, *shown);
      if (!dumped.ok()) std::fprintf(stderr, "%s\n", dumped.ToString().c_str());
    }
  };
  return options;
}

}  // namespace smelt
