// A body that an executable runs as programs: one for each list of shapes that comes, and node by
// node where there is none.
#ifndef SMELT_RUNTIME_COMPILED_BODY_H_
#define SMELT_RUNTIME_COMPILED_BODY_H_

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/runtime/compiled_item.h"
#include "smelt/runtime/recent_programs.h"

namespace smelt {

class Executable;

// Thread safe.
class CompiledBody {
 public:
  // `node` stands for the body; `function` is named in errors.
  CompiledBody(const Node& node, std::unique_ptr<Graph> graph, std::string function,
               PartsWanted parts);
  ~CompiledBody();

  // A program that stays while this does.
  struct Found {
    const PartedProgram* program = nullptr;
    std::shared_ptr<const void> held;  // nullptr: the body keeps it for good
  };
  // For arguments of these shapes and the calling thread's team; no program: there is none. Those
  // of the first kMaxEntries lists of shapes are kept for good, and of others those that came last.
  StatusOr<Found> ProgramFor(std::span<const Shape* const> shapes);
  // The programs so far, or why there are none, for people; `reasons`: and why to no more.
  std::string Text(bool reasons);
  void Visit(ProgramVisitor visit) const;
  // Runs node by node.
  StatusOr<Executable*> Plain();

  const Graph& graph() const { return *graph_; }

 private:
  // For one list of shapes and one number of threads.
  struct Entry {
    std::vector<int64_t> key;
    std::unique_ptr<const PartedProgram> program;
    std::string why;  // there is no program
  };
  const Entry* Find(std::span<const Shape* const> shapes) const;
  // nullptr: no more are kept for good.
  StatusOr<const Entry*> Make(std::span<const Shape* const> shapes);
  Found MakeRecent(std::span<const Shape* const> shapes);
  std::unique_ptr<Entry> Compile(std::vector<int64_t> key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All that are kept, while the second lives.
  using Entries = std::pair<std::vector<const Entry*>, std::vector<std::shared_ptr<const Entry>>>;
  Entries All() const;
  std::string TextOf(const Entry& entry, bool reasons);

  Reasons ReasonsOf(const Entry& entry);

  const Node& node_;
  const std::unique_ptr<Graph> graph_;
  const std::string function_;
  const PartsWanted parts_;
  // Entries are added and never change: readers of them take no lock.
  static constexpr int kMaxEntries = 16;
  std::unique_ptr<const Entry> entries_[kMaxEntries];
  std::atomic<int> num_entries_{0};
  absl::Mutex mutex_;
  RecentPrograms<Entry> recent_;
  KernelStates states_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Executable> plain_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_COMPILED_BODY_H_
