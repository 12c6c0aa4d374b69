// A region of an executable's graph: programs for the shapes that come, and the region run node by
// node where there is none.
#ifndef SMELT_RUNTIME_COMPILED_REGION_H_
#define SMELT_RUNTIME_COMPILED_REGION_H_

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/compile/program.h"

namespace smelt {

class Executable;

// Thread safe.
class CompiledRegion {
 public:
  // `function` is named in errors.
  CompiledRegion(std::unique_ptr<Graph> body, std::string function);
  ~CompiledRegion();

  // As Program::Run, for any shapes; what is compiled for them is kept. Errors are those of the
  // nodes.
  Status Run(std::span<Tensor* const> args, std::span<Tensor> results, Step& step,
             StepStats* stats);

  const Graph& body() const { return *body_; }

 private:
  // For one list of argument shapes and one number of threads.
  struct Entry {
    std::vector<int64_t> key;
    std::unique_ptr<const Program> program;  // nullptr: node by node
    std::string why;                         // there is no program
  };
  static void AppendKey(std::span<Tensor* const> args, std::vector<int64_t>* key);
  const Entry* Find(std::span<Tensor* const> args) const;
  StatusOr<const Entry*> Make(std::span<Tensor* const> args);
  StatusOr<Executable*> Plain();

  const std::unique_ptr<Graph> body_;
  const std::string function_;
  // Entries are added and never change: readers take no lock.
  static constexpr int kMaxEntries = 16;
  std::unique_ptr<const Entry> entries_[kMaxEntries];
  std::atomic<int> num_entries_{0};
  absl::Mutex mutex_;
  KernelStates states_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Executable> plain_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace smelt

#endif  // SMELT_RUNTIME_COMPILED_REGION_H_
