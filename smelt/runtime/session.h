// Session: a graph, its functions and its resources, ready to answer requests.
//
// A request names tensors to feed, tensors to fetch and nodes to run. The part of the graph that it
// needs is cut out, optimized and made executable once for each combination of names, then kept.
// Variables that no part of a request writes are held as constants; when one is assigned, the
// executables that hold it are made anew. All methods are thread safe; several requests run at
// once.
#ifndef SMELT_RUNTIME_SESSION_H_
#define SMELT_RUNTIME_SESSION_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "smelt/device/device.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/step.h"
#include "smelt/kernels/step_stats.h"
#include "smelt/optimize/pipeline.h"
#include "smelt/runtime/core_threads.h"
#include "smelt/runtime/executable.h"

namespace smelt {

struct SessionOptions {
  // Team size of one request (base/team.h); 0: as many as there are cores.
  int threads = 0;
  // false: graphs run as they are stated, calls included.
  bool optimize = true;
  // true: regions of graphs are compiled for the shapes that come (compile/).
  bool compile = true;
  // Which passes run, as a ConfigProto's graph_options say; devices and feeds are the session's
  // own.
  RewriterConfig rewriter;
  // The files that the graph's ops may use.
  FileSystem files = FileSystem::Nothing();
  // How the passes are run. `after` may be called in several threads at once.
  PipelineOptions passes;
  int tpu_cores = 8;
  int64_t hbm_bytes = int64_t{16} << 30;  // memory of one core
  // Rows are split over the cores of a program when each gets this much to do (RowSplit::work):
  // handing a core its part takes some ten microseconds, on a busy machine more.
  int64_t least_work_of_core = 1 << 22;
};

struct RunOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  const Cancellation* cancellation = nullptr;  // used instead of `timeout`
  // Gets the kernels that the request runs, those of functions that kernels call (loops, branches,
  // accelerator programs) too; not those of batches, which run for several requests.
  StepStats* stats = nullptr;
};

// Names of one kind of request. Feeds and fetches are "node:port" or "node", targets "node".
struct CallableSpec {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

class Callable;
class FrozenExecutable;
class TpuProgram;

class Session final : public FunctionRunner {
 public:
  explicit Session(std::shared_ptr<const Graph> graph, SessionOptions options = {});
  ~Session() override;

  // The callable of these names, made when first asked for. Nothing is looked up yet: what is wrong
  // with the names is an error of RunCallable. REQUIRES: not used once the session has ended.
  StatusOr<std::shared_ptr<Callable>> MakeCallable(const CallableSpec& spec);
  // `args` in the order of spec.feeds, results in the order of spec.fetches. INVALID_ARGUMENT when
  // args do not fit the feeds in number or type; errors of CutCallable, of FrozenExecutable::Get
  // (NOT_FOUND names ops without a kernel) and of kernels; DEADLINE_EXCEEDED, CANCELLED.
  Status RunCallable(Callable& callable, std::vector<Tensor> args, std::vector<Tensor>* results,
                     const RunOptions& options = {});
  StatusOr<std::vector<Tensor>> Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                                    const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets,
                                    const RunOptions& options = {});
  // Calls a function of the graph's library by name, outside of the graph: `args` are its
  // arguments, flat.
  StatusOr<std::vector<Tensor>> RunFunction(const std::string& name, std::vector<Tensor> args,
                                            const RunOptions& options = {});

  Status Call(const Callee& f, std::vector<Tensor> args, std::vector<Tensor>* results,
              Step& step) override;
  Status CallOnTpu(const Callee& f, int64_t ordinal, std::vector<Tensor> args,
                   std::vector<Tensor>* results, Step& step) override;
  const Function* FindBody(absl::string_view name) const override {
    return graph_->library()->Find(name);
  }
  void AtEnd(std::function<void()> stop) override;

  // What was compiled so far (compile/), for people. `reasons`: also what was not, and why.
  std::string ProgramsText(bool reasons = false);
  // Every program that there is; requests that would make others wait meanwhile.
  void VisitPrograms(ProgramVisitor visit);

  ResourceManager& resources() { return resources_; }
  const Graph& graph() const { return *graph_; }
  const SessionOptions& options() const { return options_; }
  int num_tpu_cores() const { return static_cast<int>(cores_.size()); }
  Device& tpu_core(int i) { return *cores_[i]; }
  // How many calls of programs for several cores were split over them.
  int64_t split_runs() const { return split_runs_; }

 private:
  friend class Callable;
  struct FunctionEntry;

  // Those that were made so far, the session's own graph first.
  std::vector<std::shared_ptr<FrozenExecutable>> Executables();
  Status RunPrepared(Callable& callable, std::vector<Tensor> args, std::vector<Tensor>* results,
                     const RunOptions& options);
  void FillStep(Step& step, ResourceManager* step_resources, const Cancellation* cancellation);
  // Where a function runs: on the host; on an accelerator core, called by TPUPartitionedCall, which
  // makes it a TpuProgram; or on a core, called by a function that runs there.
  enum class Place { kHost, kTpuEntry, kTpuCallee };
  StatusOr<std::shared_ptr<FunctionEntry>> FindFunction(const Callee& f, Place place);
  // The function's executable for the handles among `args`: variables behind them are held as
  // constants.
  std::shared_ptr<FrozenExecutable> Specialize(FunctionEntry& entry, std::span<const Tensor> args);
  // `group`: the accelerator cores that run it; empty on the host.
  Status CallEntry(FunctionEntry& entry, std::vector<Tensor> args, std::vector<Tensor>* results,
                   Step& step, std::span<const std::unique_ptr<Device>> group);
  // Runs each core of the group on some of the rows, each in its own thread. false: the program
  // cannot be split so, and nothing ran.
  StatusOr<bool> RunSplit(Executable& executable, TpuProgram& program, std::span<Tensor> args,
                          std::vector<Tensor>* results, const Step& step,
                          std::span<const std::unique_ptr<Device>> group);

  std::shared_ptr<const Graph> graph_;
  SessionOptions options_;
  ResourceManager resources_;
  std::unique_ptr<Device> cpu_;
  std::vector<std::unique_ptr<Device>> cores_;
  std::unique_ptr<CoreThreads> core_threads_;  // of cores_, by index
  std::atomic<int64_t> split_runs_{0};
  std::atomic<uint64_t> next_core_{0};  // spreads calls without a device ordinal

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Callable>> callables_ ABSL_GUARDED_BY(mutex_);
  // By place, then by name and attributes.
  std::array<absl::flat_hash_map<Callee, std::shared_ptr<FunctionEntry>>, 3> functions_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> at_end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_SESSION_H_
