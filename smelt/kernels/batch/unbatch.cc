// Unbatch gives each step its rows of a batch that one of them computed on; UnbatchGrad brings them
// together again. Steps wait for each other here, by the ids that Batch gave them.
#include <map>
#include <set>

#include "absl/time/clock.h"
#include "smelt/kernels/batch/batch_rows.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

// A step that waits for its tensor, in its own stack. Guarded by the mutex of where it waits.
struct UnbatchWaiter {
  absl::CondVar changed;
  bool done = false;
  Status status;
  Tensor tensor;

  void Give(StatusOr<Tensor> answer) {
    done = true;
    if (answer.ok()) {
      tensor = *std::move(answer);
    } else {
      status = answer.status();
    }
    changed.Signal();
  }
};

// Waits until the waiter is done, the step ends or the time has come. false: it is not done.
// Cancellation wakes nobody, so the wait is cut into short ones.
bool WaitToBeDone(UnbatchWaiter& waiter, absl::Mutex& mutex, const Step& step, absl::Time until) {
  while (!waiter.done) {
    if (step.cancellation != nullptr && !step.cancellation->Check().ok()) return false;
    const absl::Time now = absl::Now();
    if (now > until) return false;
    absl::Time next = until;
    if (step.cancellation != nullptr) next = std::min(next, now + absl::Milliseconds(5));
    waiter.changed.WaitWithDeadline(&mutex, next);
  }
  return true;
}

class Unbatcher final : public Resource {
 public:
  static constexpr absl::string_view kKind = "unbatch";
  absl::string_view kind() const override { return kKind; }
  explicit Unbatcher(absl::Duration timeout) : timeout_(timeout) {}

  // The tensor for `id`: one of `pieces`, which are for `ids`, or what another step brings.
  StatusOr<Tensor> Exchange(int64_t id, std::span<const int64_t> ids, std::vector<Tensor> pieces,
                            const Step& step) {
    UnbatchWaiter waiter;
    absl::MutexLock lock(&mutex_);
    const absl::Time now = absl::Now();
    std::erase_if(ready_, [&](const auto& entry) { return entry.second.until < now; });
    if (auto it = ready_.find(id); it != ready_.end()) {
      Tensor t = std::move(it->second.tensor);
      ready_.erase(it);
      return t;
    }
    if (!waiting_.emplace(id, &waiter).second) {
      return AlreadyExists("Multiple session runs with the same batch key.");
    }
    const absl::Time until = now + timeout_;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (auto it = waiting_.find(ids[i]); it != waiting_.end()) {
        it->second->Give(std::move(pieces[i]));
        waiting_.erase(it);
      } else if (!ready_.try_emplace(ids[i], Ready{pieces[i], until}).second) {
        waiting_.erase(id);
        return AlreadyExists("Multiple tensors returned for same batch key.");
      }
    }
    if (WaitToBeDone(waiter, mutex_, step, until)) return std::move(waiter.tensor);
    waiting_.erase(id);
    if (step.cancellation != nullptr) RETURN_IF_ERROR(step.cancellation->Check());
    return absl::DeadlineExceededError("Batched data did not arrive within timeout window.");
  }

 private:
  struct Ready {
    Tensor tensor;
    absl::Time until;
  };
  const absl::Duration timeout_;
  absl::Mutex mutex_;
  std::map<int64_t, Ready> ready_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, UnbatchWaiter*> waiting_ ABSL_GUARDED_BY(mutex_);
};

// A vector of ids as TensorFlow shows it.
std::string IdsText(const Tensor& t) {
  std::string values;
  for (int64_t id : t.flat<int64_t>().first(std::min<size_t>(t.flat<int64_t>().size(), 3))) {
    absl::StrAppend(&values, values.empty() ? "" : " ", id);
  }
  return absl::StrCat("Tensor<type: int64 shape: ", t.shape().ToString(), " values: ", values,
                      t.num_elements() > 3 ? "..." : "", ">");
}

struct UnbatchState final : KernelState {
  explicit UnbatchState(const Node& node) : at(node) {}
  ResourceName at;
  int64_t timeout_micros = 0;
};

StatusOr<std::unique_ptr<KernelState>> PrepareUnbatch(const Node& node) {
  auto state = std::make_unique<UnbatchState>(node);
  state->timeout_micros = node.Int("timeout_micros");
  if (state->timeout_micros != static_cast<int32_t>(state->timeout_micros)) {
    return InvalidArgument("Attr timeout_micros has value ", state->timeout_micros,
                           " out of range for an int32");
  }
  return state;
}

template <typename R, typename Make>
StatusOr<std::shared_ptr<R>> FindUnbatcher(const OpContext& ctx, const ResourceName& at,
                                           Make make) {
  ResourceManager* resources = ctx.step().resources;
  if (resources == nullptr) {
    return FailedPrecondition("'", at.name, "' is used where there are no resources");
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<Resource> found,
      resources->FindOrCreate(at.container, R::kKind, at.name,
                              [&]() -> StatusOr<std::shared_ptr<Resource>> { return make(); }));
  return std::static_pointer_cast<R>(std::move(found));
}

// The rows that batch_index names, and whose they are.
Status CutBatch(const Tensor& data, const Tensor& index, std::vector<int64_t>* ids,
                std::vector<Tensor>* pieces) {
  if (data.rank() < 1 || index.rank() != 2) {
    return InvalidArgument("Unbatch takes a tensor with rows and a matrix of their indices, got ",
                           "the shapes ", data.shape().ToString(), " and ",
                           index.shape().ToString());
  }
  if (index.dim(0) > data.dim(0)) {
    return InvalidArgument("Wrong shape for index tensor. Expected 0th dimension size to be no ",
                           "greater than ", data.dim(0), "; Got: ", index.dim(0), ".");
  }
  if (index.dim(1) != 3) {
    return InvalidArgument("Wrong shape for index tensor. Expected 1st dimension size to be 3 ; ",
                           "Got: ", index.dim(1), ".");
  }
  const int64_t* row = index.data<int64_t>();
  int64_t first = 0;
  for (int64_t i = 0; i < index.dim(0); ++i, row += 3) {
    // Only the sizes count: pieces lie one behind the other.
    int64_t size = 0;
    if (__builtin_sub_overflow(row[2], row[1], &size) || size < 0) {
      return InvalidArgument("batch_index has the rows ", row[1], " to ", row[2]);
    }
    if (size > data.dim(0) - first) {
      return InvalidArgument("Sum of split sizes must not exceed dim0-size of input tensor");
    }
    ids->push_back(row[0]);
    pieces->push_back(data.Rows(first, first + size));
    first += size;
  }
  return OkStatus();
}

Status RunUnbatch(OpContext& ctx) {
  const auto& state = ctx.state<UnbatchState>();
  ASSIGN_OR_RETURN(const auto unbatcher, FindUnbatcher<Unbatcher>(ctx, state.at, [&] {
                     return std::make_shared<Unbatcher>(absl::Microseconds(state.timeout_micros));
                   }));
  std::vector<int64_t> ids;
  std::vector<Tensor> pieces;
  RETURN_IF_ERROR(CutBatch(ctx.input(0), ctx.input(1), &ids, &pieces));
  const Tensor& id = ctx.input(2);
  if (id.rank() != 0) {
    return InvalidArgument("Input id should be scalar; Got: ", IdsText(id), ".");
  }
  ASSIGN_OR_RETURN(Tensor t,
                   unbatcher->Exchange(id.scalar<int64_t>(), ids, std::move(pieces), ctx.step()));
  ctx.set_output(0, std::move(t));
  return OkStatus();
}

class Rebatcher final : public Resource {
 public:
  static constexpr absl::string_view kKind = "unbatch_grad";
  absl::string_view kind() const override { return kKind; }

  // Brings the gradient of step `id`. A step that owns a batch waits for the gradients of all `ids`
  // and is given them, joined in that order. REQUIRES: grad has rows.
  StatusOr<Tensor> Exchange(int64_t id, const Tensor& grad, bool owner,
                            std::span<const int64_t> ids, const Step& step) {
    UnbatchWaiter waiter;
    absl::MutexLock lock(&mutex_);
    if (!grads_.emplace(id, grad).second) {
      return InvalidArgument("Two runs with the same batch key.");
    }
    if (owner) {
      std::set<int64_t> missing;
      for (int64_t i : ids) {
        if (!grads_.contains(i)) missing.insert(i);
      }
      if (missing.empty()) return Join(ids, step.allocator);
      if (batches_.contains(id)) return InvalidArgument("Batch key with valid batch used twice.");
      for (int64_t i : missing) {
        if (wanted_.contains(i)) {
          return InvalidArgument("Missing tensor wanted by more than one batch.");
        }
      }
      for (int64_t i : missing) wanted_.emplace(i, id);
      batches_.emplace(id, Incomplete{missing, {ids.begin(), ids.end()}, &waiter, step.allocator});
    }
    Arrived(id);
    if (!owner) return grad.Rows(0, 0);
    if (WaitToBeDone(waiter, mutex_, step, absl::InfiniteFuture())) {
      RETURN_IF_ERROR(waiter.status);
      return std::move(waiter.tensor);
    }
    for (int64_t i : batches_.at(id).missing) wanted_.erase(i);
    batches_.erase(id);
    return step.cancellation->Check();
  }

 private:
  struct Incomplete {
    std::set<int64_t> missing;
    std::vector<int64_t> ids;
    UnbatchWaiter* owner;
    Allocator* allocator;
  };

  // Tells the batch that wants the gradient, and its owner when it was the last.
  void Arrived(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto wanted = wanted_.find(id);
    if (wanted == wanted_.end()) return;
    const auto batch = batches_.find(wanted->second);
    wanted_.erase(wanted);
    batch->second.missing.erase(id);
    if (!batch->second.missing.empty()) return;
    batch->second.owner->Give(Join(batch->second.ids, batch->second.allocator));
    batches_.erase(batch);
  }

  StatusOr<Tensor> Join(std::span<const int64_t> ids, Allocator* allocator)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<Tensor> parts;
    for (int64_t i : ids) {
      const auto it = grads_.find(i);
      if (it == grads_.end()) return Internal("bad bookkeeping of available tensors.");
      parts.push_back(std::move(it->second));
      grads_.erase(it);
    }
    return JoinRows(parts, 0, allocator);
  }

  absl::Mutex mutex_;
  std::map<int64_t, Tensor> grads_ ABSL_GUARDED_BY(mutex_);
  // By the owner's id.
  std::map<int64_t, Incomplete> batches_ ABSL_GUARDED_BY(mutex_);
  // A gradient that has not come, and the owner of the batch that wants it.
  std::map<int64_t, int64_t> wanted_ ABSL_GUARDED_BY(mutex_);
};

Status RunUnbatchGrad(OpContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& index = ctx.input(1);
  const Tensor& grad = ctx.input(2);
  const Tensor& id = ctx.input(3);
  ASSIGN_OR_RETURN(const auto rebatcher,
                   FindUnbatcher<Rebatcher>(ctx, ctx.state<UnbatchState>().at,
                                            [] { return std::make_shared<Rebatcher>(); }));
  if (id.rank() != 0) {
    return InvalidArgument("Expected `id` to be scalar. Received ", IdsText(id));
  }
  if (grad.rank() == 0) return InvalidArgument("a gradient must have at least one dimension");
  const bool owner = data.num_elements() > 0;
  std::vector<int64_t> ids;
  if (owner) {
    if (index.num_elements() == 0) {
      return InvalidArgument("batch_index is empty while the tensor isn't.");
    }
    const int64_t wanted = index.rank() == 0 ? 3 : index.dim(0) * 3;
    if (index.num_elements() != wanted) {
      return InvalidArgument("batch_index should contain ", wanted, " elements. Received ",
                             index.num_elements());
    }
    for (int64_t i = 0; i < wanted; i += 3) ids.push_back(index.data<int64_t>()[i]);
  }
  ASSIGN_OR_RETURN(Tensor t,
                   rebatcher->Exchange(id.scalar<int64_t>(), grad, owner, ids, ctx.step()));
  ctx.set_output(0, std::move(t));
  return OkStatus();
}

constexpr Kernel kUnbatchTable[] = {
    {"Unbatch", "", kAnyType, "batch:unbatch", RunUnbatch, PrepareUnbatch},
    {"UnbatchGrad", "", kAnyType, "batch:unbatch_grad", RunUnbatchGrad, PrepareUnbatch},
};

}  // namespace

extern constinit const std::span<const Kernel> kUnbatchKernels = kUnbatchTable;

}  // namespace smelt
