#include "smelt/cli/show_passes.h"

#include <atomic>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "smelt/graph/text.h"
#include "smelt/io/fs.h"

namespace smelt {
namespace {

// A request, or the function that is called; its name must not lead out of a folder.
std::string GraphName(const PassRun& run) {
  return run.graph.empty() ? "request" : absl::StrReplaceAll(run.graph, {{"/", "_"}});
}

void Dump(const std::string& dir, int number, const PassRun& run, const Graph& graph) {
  const std::string path =
      JoinPath(dir, absl::StrFormat("%03d-%s-%s.graph", number, GraphName(run), run.pass));
  const Status written = WriteFileAtomically(path, PrintGraph(graph));
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.ToString().c_str());
}

}  // namespace

void AddPassFlags(CLI::App& app, PassFlags* flags) {
  app.add_flag("--verify_passes", flags->verify,
               "Verify the graph after each pass; undo and name one that breaks it");
  app.add_flag("--time_passes", flags->time,
               "Print what each pass took on stderr: its graph, its name, nodes before and after, "
               "milliseconds");
  app.add_option("--dump_passes", flags->dump, "Folder for the graph after each pass, as text");
}

StatusOr<PipelineOptions> PassOptions(const PassFlags& flags) {
  PipelineOptions options;
  if (!flags.verify && !flags.time && flags.dump.empty()) return options;
  if (flags.verify) options.verify = VerifyPasses::kUndo;
  if (!flags.dump.empty()) RETURN_IF_ERROR(MakeDirs(flags.dump));
  auto next = std::make_shared<std::atomic<int>>(0);
  options.after = [flags, next](const PassRun& run, const Graph& graph) {
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
    const int number = (*next)++;
    if (!flags.dump.empty() && run.outcome == PassRun::Outcome::kChanged) {
      Dump(flags.dump, number, run, graph);
    }
  };
  return options;
}

}  // namespace smelt
