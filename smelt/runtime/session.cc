#include "smelt/runtime/session.h"

#include <algorithm>
#include <map>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "smelt/base/out_of_memory.h"
#include "smelt/base/parallel.h"
#include "smelt/base/stack.h"
#include "smelt/kernels/batch/batch_rows.h"
#include "smelt/optimize/passes.h"
#include "smelt/runtime/callable_graph.h"
#include "smelt/runtime/frozen.h"
#include "smelt/runtime/tpu_program.h"
#include "smelt/runtime/turnstile.h"

namespace smelt {
namespace {

// Functions that call functions deeper than this are taken to call themselves without end.
constexpr int kMaxCallDepth = 128;
constexpr size_t kMaxSpecializations = 8;
// From so many nanoseconds on a run goes through the turnstile. Shorter ones lose more by waking
// each other than the system's slices of 4 ms cost them.
constexpr int64_t kLongRun = 8'000'000;

// Of the process. Each thread takes many at once, so that clients seldom meet at the counter.
int64_t NextStep() {
  constexpr int64_t kTaken = 1024;
  static std::atomic<int64_t> taken{1};
  thread_local int64_t next = 0, end = 0;
  if (next == end) {
    next = taken.fetch_add(kTaken, std::memory_order_relaxed);
    end = next + kTaken;
  }
  return next++;
}

std::shared_ptr<Variable> AsVariable(const std::shared_ptr<Resource>& r) {
  return r && r->kind() == Variable::kKind ? std::static_pointer_cast<Variable>(r) : nullptr;
}

std::shared_ptr<Variable> FindVariable(const ResourceManager& resources, const Node& node) {
  const ResourceName at(node);
  return AsVariable(resources.Find(at.container, Variable::kKind, at.name));
}

// RESOURCE_EXHAUSTED when a call within `depth` others nests too deep.
Status CheckCallDepth(const Callee& f, int depth) {
  if (depth >= kMaxCallDepth) {
    return ResourceExhausted("function calls nest deeper than ", kMaxCallDepth, " at function '",
                             f.name(), "': it seems to call itself without end");
  }
  if (StackIsShort()) {
    return ResourceExhausted("function calls nest ", depth, " deep at function '", f.name(),
                             "', and the thread has no stack for more");
  }
  return OkStatus();
}

}  // namespace

class Callable {
 public:
  Callable(CallableSpec spec, FrozenExecutable::Recipe recipe)
      : spec_(std::move(spec)), executable_(std::move(recipe)) {}
  const CallableSpec& spec() const { return spec_; }
  FrozenExecutable& executable() { return executable_; }

 private:
  const CallableSpec spec_;
  FrozenExecutable executable_;
};

// A function of the library. Variables whose handles it is called with are held as constants, so
// there is one executable for each set of handles.
struct Session::FunctionEntry {
  struct Specialization {
    std::vector<const Resource*> handles;          // by argument; nullptr: not a handle
    std::shared_ptr<FrozenExecutable> executable;  // its recipe holds them
  };
  FunctionEntry(Callee f, Place at, TpuReplica spread)
      : callee(std::move(f)), place(at), replica(spread) {}

  const Callee callee;
  const Place place;
  const TpuReplica replica;  // of an accelerator function
  absl::Mutex mutex;
  std::vector<Specialization> specializations ABSL_GUARDED_BY(mutex);
};

Session::Session(std::shared_ptr<const Graph> graph, SessionOptions options)
    : graph_(std::move(graph)), options_(options), cpu_(MakeCpuDevice(0)) {
  if (options_.threads <= 0) options_.threads = NumCores();
  for (int i = 0; i < options_.tpu_cores; ++i) {
    cores_.push_back(MakeTpuCore(i, options_.hbm_bytes));
  }
  core_threads_ = std::make_unique<CoreThreads>(options_.tpu_cores);
}

Session::~Session() {
  std::vector<std::function<void()>> at_end;
  {
    absl::MutexLock lock(&mutex_);
    at_end.swap(at_end_);
  }
  for (const auto& stop : at_end) stop();
}

void Session::AtEnd(std::function<void()> stop) {
  absl::MutexLock lock(&mutex_);
  at_end_.push_back(std::move(stop));
}

StatusOr<std::shared_ptr<Callable>> Session::MakeCallable(const CallableSpec& spec) {
  const std::string key =
      absl::StrCat(absl::StrJoin(spec.feeds, ","), ">", absl::StrJoin(spec.fetches, ","), "/",
                   absl::StrJoin(spec.targets, ","));
  absl::MutexLock lock(&mutex_);
  auto& slot = callables_[key];
  if (!slot) {
    FrozenExecutable::Recipe recipe;
    recipe.graph = [this, spec] {
      return CutCallable(*graph_, spec.feeds, spec.fetches, spec.targets);
    };
    recipe.variable = [this](const Node& node) -> std::shared_ptr<Variable> {
      return node.Is("_Arg") ? nullptr : FindVariable(resources_, node);
    };
    if (options_.optimize) recipe.rewriter = &options_.rewriter;
    recipe.passes = options_.passes;
    recipe.compile = options_.compile;
    slot = std::make_shared<Callable>(spec, std::move(recipe));
  }
  return slot;
}

void Session::FillStep(Step& step, ResourceManager* step_resources,
                       const Cancellation* cancellation) {
  step.id = NextStep();
  step.resources = &resources_;
  step.step_resources = step_resources;
  step.functions = this;
  step.allocator = cpu_->allocator().get();
  step.cancellation = cancellation;
  step.files = &options_.files;
}

static Status RunTimed(const FrozenExecutable::Build& build, std::span<Tensor> args,
                       std::vector<Tensor>* results, Step& step) {
  if (!RunTime::Samples(step.id)) return build.executable->Run(args, results, step);
  const int64_t begin = RunTime::OfThread();
  Status status = build.executable->Run(args, results, step);
  if (status.ok()) build.run_time.Note(RunTime::OfThread() - begin);
  return status;
}

Status Session::RunCallable(Callable& callable, std::vector<Tensor> args,
                            std::vector<Tensor>* results, const RunOptions& options) {
  return OrOutOfMemory([&] { return RunPrepared(callable, std::move(args), results, options); });
}

Status Session::RunPrepared(Callable& callable, std::vector<Tensor> args,
                            std::vector<Tensor>* results, const RunOptions& options) {
  const ScopedThreads threads(options_.threads);
  if (args.size() != callable.spec().feeds.size()) {
    return InvalidArgument("the request feeds ", args.size(), " tensors, the callable takes ",
                           callable.spec().feeds.size());
  }
  ASSIGN_OR_RETURN(const auto build, callable.executable().Get());
  Executable& executable = *build->executable;
  for (int i = 0; i < executable.num_args(); ++i) {
    const Dtype wanted = executable.arg_type(i);
    if (wanted != Dtype::kInvalid && args[i].dtype() != wanted) {
      return InvalidArgument("Expects arg[", i, "] to be ", DtypeName(wanted), " but ",
                             DtypeName(args[i].dtype()), " is provided (tensor '",
                             callable.spec().feeds[i], "')");
    }
  }
  Step step;
  ResourceManager step_resources;
  Cancellation deadline;
  const Cancellation* cancellation = options.cancellation;
  if (cancellation == nullptr && options.timeout != absl::InfiniteDuration()) {
    deadline.SetDeadline(absl::Now() + options.timeout);
    cancellation = &deadline;
  }
  FillStep(step, &step_resources, cancellation);
  step.stats = options.stats;
  if (build->run_time.nanoseconds() < kLongRun || !executable.waits_for_nobody()) {
    return RunTimed(*build, std::span<Tensor>(args), results, step);
  }
  ASSIGN_OR_RETURN(const int lane, Turnstile::OfProcess().Enter(cancellation));
  const absl::Cleanup leave = [lane] { Turnstile::OfProcess().Leave(lane); };
  const ScopedSeat seat(static_cast<size_t>(lane));
  return RunTimed(*build, std::span<Tensor>(args), results, step);
}

StatusOr<std::vector<Tensor>> Session::Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                                           const std::vector<std::string>& fetches,
                                           const std::vector<std::string>& targets,
                                           const RunOptions& options) {
  CallableSpec spec;
  std::vector<Tensor> args;
  for (const auto& [name, tensor] : feeds) {
    spec.feeds.push_back(name);
    args.push_back(tensor);
  }
  spec.fetches = fetches;
  spec.targets = targets;
  ASSIGN_OR_RETURN(auto callable, MakeCallable(spec));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(RunCallable(*callable, std::move(args), &results, options));
  return results;
}

StatusOr<std::vector<Tensor>> Session::RunFunction(const std::string& name,
                                                   std::vector<Tensor> args,
                                                   const RunOptions& options) {
  const ScopedThreads threads(options_.threads);
  Step step;
  ResourceManager step_resources;
  Cancellation deadline;
  if (options.timeout != absl::InfiniteDuration()) {
    deadline.SetDeadline(absl::Now() + options.timeout);
  }
  FillStep(step, &step_resources, options.cancellation ? options.cancellation : &deadline);
  step.stats = options.stats;
  std::vector<Tensor> results;
  RETURN_IF_ERROR(
      OrOutOfMemory([&] { return Call(Callee(name), std::move(args), &results, step); }));
  return results;
}

std::vector<std::shared_ptr<FrozenExecutable>> Session::Executables() {
  std::map<std::string, std::shared_ptr<FrozenExecutable>> functions;
  std::vector<std::shared_ptr<FrozenExecutable>> all;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, callable] : callables_)
    all.emplace_back(callable, &callable->executable());
  for (const auto& entries : functions_) {
    for (const auto& [callee, entry] : entries) {
      absl::MutexLock entry_lock(&entry->mutex);
      for (size_t i = 0; i < entry->specializations.size(); ++i) {
        functions[absl::StrCat(callee.name(), "/", i)] = entry->specializations[i].executable;
      }
    }
  }
  for (auto& [name, executable] : functions) all.push_back(std::move(executable));
  return all;
}

std::string Session::ProgramsText(bool reasons) {
  std::string text;
  for (const auto& executable : Executables()) text += executable->ProgramsText(reasons);
  return text;
}

void Session::VisitPrograms(ProgramVisitor visit) {
  for (const auto& executable : Executables()) executable->VisitPrograms(visit);
}

StatusOr<std::shared_ptr<Session::FunctionEntry>> Session::FindFunction(const Callee& f,
                                                                        Place place) {
  absl::MutexLock lock(&mutex_);
  auto& entries = functions_[static_cast<size_t>(place)];
  if (auto it = entries.find(f); it != entries.end()) return it->second;
  const Function* function = graph_->library()->Find(f.name());
  if (function == nullptr) return NotFound("Function ", f.name(), " is not defined.");
  auto entry = std::make_shared<FunctionEntry>(
      f, place, place == Place::kTpuEntry ? TpuReplica::Of(*function) : TpuReplica());
  entries.emplace(f, entry);
  return entry;
}

Status Session::Call(const Callee& f, std::vector<Tensor> args, std::vector<Tensor>* results,
                     Step& step) {
  RETURN_IF_ERROR(CheckCallDepth(f, step.call_depth));
  const Place place = step.tpu_core != nullptr ? Place::kTpuCallee : Place::kHost;
  ASSIGN_OR_RETURN(auto entry, FindFunction(f, place));
  ++step.call_depth;
  Status status = CallEntry(*entry, std::move(args), results, step, {});
  --step.call_depth;
  return status;
}

std::shared_ptr<FrozenExecutable> Session::Specialize(FunctionEntry& entry,
                                                      std::span<const Tensor> args) {
  absl::InlinedVector<const Resource*, 16> handles;
  for (const Tensor& t : args) {
    const bool handle = t.dtype() == Dtype::kResource && t.num_elements() == 1;
    handles.push_back(handle ? t.scalar<ResourceHandle>().resource.get() : nullptr);
  }
  absl::MutexLock lock(&entry.mutex);
  for (const auto& s : entry.specializations) {
    if (std::ranges::equal(handles, s.handles)) return s.executable;
  }
  FunctionEntry::Specialization made;
  made.handles.assign(handles.begin(), handles.end());
  std::vector<std::shared_ptr<Resource>> held;
  for (size_t i = 0; i < handles.size(); ++i) {
    held.push_back(handles[i] != nullptr ? args[i].scalar<ResourceHandle>().resource : nullptr);
  }
  FrozenExecutable::Recipe recipe;
  recipe.graph = [this, callee = entry.callee]() -> StatusOr<std::unique_ptr<Graph>> {
    const Function* function = graph_->library()->Find(callee.name());
    if (function == nullptr) return NotFound("Function ", callee.name(), " is not defined.");
    return Instantiate(*function, callee.attrs());
  };
  recipe.variable = [this, held = std::move(held)](const Node& node) -> std::shared_ptr<Variable> {
    if (!node.Is("_Arg")) return FindVariable(resources_, node);
    const auto index = static_cast<size_t>(node.Int("index"));
    return index < held.size() ? AsVariable(held[index]) : nullptr;
  };
  recipe.function = entry.callee.name();
  if (options_.optimize) recipe.rewriter = &options_.rewriter;
  recipe.passes = options_.passes;
  // A program's rows are split over several cores node by node (tpu_program.h).
  recipe.compile = options_.compile && entry.replica.cores == 1;
  if (entry.place != Place::kHost) recipe.device_type = "TPU";
  if (entry.place == Place::kTpuEntry) {
    recipe.tpu_program = true;
    recipe.check = [cores = num_tpu_cores()](const Graph& g) { return CheckTpuFunction(g, cores); };
  }
  made.executable = std::make_shared<FrozenExecutable>(std::move(recipe));
  if (entry.specializations.size() >= kMaxSpecializations) {
    entry.specializations.erase(entry.specializations.begin());
  }
  entry.specializations.push_back(made);
  return made.executable;
}

Status Session::CallEntry(FunctionEntry& entry, std::vector<Tensor> args,
                          std::vector<Tensor>* results, Step& step,
                          std::span<const std::unique_ptr<Device>> group) {
  const std::shared_ptr<FrozenExecutable> frozen = Specialize(entry, args);
  ASSIGN_OR_RETURN(const auto build, frozen->Get());
  if (build->program != nullptr) {
    for (const auto& core : group) RETURN_IF_ERROR(build->program->Reserve(*core));
    if (group.size() > 1) {
      ASSIGN_OR_RETURN(const bool done, RunSplit(*build->executable, *build->program,
                                                 std::span<Tensor>(args), results, step, group));
      if (done) return OkStatus();
    }
  }
  // Without a split of rows, kernels share their work among as many threads as there are cores.
  const ScopedThreads team(std::max(Threads(), static_cast<int>(group.size())));
  return build->executable->Run(std::span<Tensor>(args), results, step);
}

StatusOr<bool> Session::RunSplit(Executable& executable, TpuProgram& program,
                                 std::span<Tensor> args, std::vector<Tensor>* results,
                                 const Step& step, std::span<const std::unique_ptr<Device>> group) {
  std::vector<PartialShape> shapes;
  int64_t rows = 0;
  for (const Tensor& t : args) {
    if (t.dtype() != Dtype::kResource) {
      shapes.push_back(t.shape());
      if (rows == 0 && t.rank() > 0) rows = t.dim(0);
      continue;
    }
    const auto variable =
        t.num_elements() == 1 ? AsVariable(t.scalar<ResourceHandle>().resource) : nullptr;
    const Tensor value = variable != nullptr ? variable->Read() : Tensor();
    shapes.push_back(value.valid() ? PartialShape(value.shape()) : PartialShape());
  }
  const int64_t parts = std::min<int64_t>(static_cast<int64_t>(group.size()), rows);
  if (parts < 2) return false;
  // Sizes of parts differ by one at most: both sizes need a proof.
  const auto split = program.Split(shapes, rows, rows / parts);
  if (!split->possible() || split->work / parts < options_.least_work_of_core) return false;
  if (rows % parts != 0 && !program.Split(shapes, rows, rows / parts + 1)->possible()) {
    return false;
  }
  struct Part {
    std::vector<Tensor> args, results;
    Status status;
  };
  std::vector<Part> work(parts);
  for (int64_t p = 0; p < parts; ++p) {
    for (size_t i = 0; i < args.size(); ++i) {
      work[p].args.push_back(split->args[i] ? args[i].Rows(rows * p / parts, rows * (p + 1) / parts)
                                            : args[i]);
    }
  }
  const int team = std::max(1, Threads() / static_cast<int>(parts));
  const auto run = [&](int64_t p) {
    Step own = step;
    const std::shared_ptr<Allocator> allocator = group[p]->allocator();
    own.allocator = allocator.get();
    own.device = group[p]->name();
    own.tpu_core = group[p].get();
    SetThreads(team);
    work[p].status = OrOutOfMemory(
        [&] { return executable.Run(std::span<Tensor>(work[p].args), &work[p].results, own); });
  };
  absl::BlockingCounter others(static_cast<int>(parts) - 1);
  const size_t first = static_cast<size_t>(group.data() - cores_.data());
  for (int64_t p = 1; p < parts; ++p) {
    core_threads_->Start(static_cast<int>(first + p), [&, p] {
      run(p);
      others.DecrementCount();
    });
  }
  {
    const ScopedThreads restored(team);
    run(0);
  }
  others.Wait();
  for (const Part& part : work) RETURN_IF_ERROR(part.status);
  results->clear();
  for (size_t i = 0; i < work[0].results.size(); ++i) {
    if (i >= split->results.size() || !split->results[i]) {
      results->push_back(work[0].results[i]);
      continue;
    }
    std::vector<Tensor> pieces;
    pieces.reserve(work.size());
    for (Part& part : work) pieces.push_back(std::move(part.results[i]));
    ASSIGN_OR_RETURN(Tensor joined, JoinRows(pieces, 0, step.allocator));
    results->push_back(std::move(joined));
  }
  ++split_runs_;
  return true;
}

Status Session::CallOnTpu(const Callee& f, int64_t ordinal, std::vector<Tensor> args,
                          std::vector<Tensor>* results, Step& step) {
  if (cores_.empty()) {
    return InvalidArgument("TPUPartitionedCall of function '", f.name(),
                           "': this session has no TPU devices");
  }
  if (ordinal >= static_cast<int64_t>(cores_.size())) {
    return InvalidArgument("device ordinal ", ordinal, " is larger than the number of available ",
                           "TPU devices: ", cores_.size());
  }
  ASSIGN_OR_RETURN(auto entry, FindFunction(f, Place::kTpuEntry));
  const auto wanted = static_cast<size_t>(entry->replica.cores);
  if (wanted > cores_.size()) {
    return InvalidArgument(
        "num_cores_per_replica: ", wanted,
        " in the graph is larger than the number of available TPU devices: ", cores_.size());
  }
  if (wanted > 1 && entry->replica.assigned && ordinal != 0) {
    return InvalidArgument(
        "`device_assignment` shouldn't be set manually in the graph when core selector is enabled "
        "or device_ordinal of the op is non-zero.");
  }
  // Replicas of several cores begin at multiples of their size.
  const size_t core = ordinal >= 0 ? static_cast<size_t>(ordinal)
                                   : next_core_.fetch_add(1) % (cores_.size() / wanted) * wanted;
  if (core + wanted > cores_.size()) {
    return InvalidArgument("device ordinal ", core, " leaves fewer than the ", wanted,
                           " cores that a replica of function '", f.name(), "' takes");
  }
  Device& device = *cores_[core];
  Step inner = step;
  const std::shared_ptr<Allocator> allocator = device.allocator();
  inner.allocator = allocator.get();
  inner.device = device.name();
  inner.tpu_core = &device;
  RETURN_IF_ERROR(CheckCallDepth(f, inner.call_depth++));
  // Every core of the replica holds all weights. Where rows can be split each core computes some of
  // them, else the cores share the work of each op.
  return CallEntry(*entry, std::move(args), results, inner,
                   std::span<const std::unique_ptr<Device>>(cores_).subspan(core, wanted));
}

}  // namespace smelt
