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

void Dump(const std::string& dir, int number, const PassRun& run, const Graph& graph) {
  // A function's name must not lead out of the folder.
  const std::string of =
      run.graph.empty() ? "request" : absl::StrReplaceAll(run.graph, {{"/", "_"}});
  const std::string path = JoinPath(dir, absl::StrFormat("%03d-%s-%s.graph", number, of, run.pass));
  const Status written = WriteFileAtomically(path, PrintGraph(graph));
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.ToString().c_str());
}

}  // namespace

void AddPassFlags(CLI::App& app, PassFlags* flags) {
  app.add_flag("--verify_passes", flags->verify,
               "Verify the graph after each pass; undo and name one that breaks it");
  app.add_option("--dump_passes", flags->dump, "Folder for the graph after each pass, as text");
}

StatusOr<PipelineOptions> PassOptions(const PassFlags& flags) {
  PipelineOptions options;
  if (!flags.verify && flags.dump.empty()) return options;
  if (flags.verify) options.verify = VerifyPasses::kUndo;
  if (!flags.dump.empty()) RETURN_IF_ERROR(MakeDirs(flags.dump));
  auto next = std::make_shared<std::atomic<int>>(0);
  options.after = [flags, next](const PassRun& run, const Graph& graph) {
    if (run.outcome == PassRun::Outcome::kUndone) {
      std::fprintf(stderr, "pass %s undone: %s\n", std::string(run.pass).c_str(),
                   run.why_undone.c_str());
    }
    const int number = (*next)++;
    if (!flags.dump.empty() && run.outcome == PassRun::Outcome::kChanged) {
      Dump(flags.dump, number, run, graph);
    }
  };
  return options;
}

}  // namespace smelt
