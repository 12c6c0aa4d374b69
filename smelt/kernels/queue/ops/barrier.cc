// The ops of barriers.
#include "smelt/kernels/queue/barrier.h"

#include <algorithm>
#include <limits>

#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

struct BarrierState final : KernelState {
  explicit BarrierState(const Node& node) : shared(node) {}
  SharedHandle shared;
  QueueOptions ready;
};

StatusOr<std::unique_ptr<KernelState>> PrepareBarrier(const Node& node) {
  auto state = std::make_unique<BarrierState>(node);
  QueueOptions& o = state->ready;
  o.name = state->shared.at.name + "_queue";
  o.kind = QueueKind::kPriority;
  o.capacity = std::numeric_limits<int32_t>::max();
  o.types = node.Get<std::vector<Dtype>>("component_types", {});
  o.shapes = node.Get<std::vector<PartialShape>>("shapes", {});
  if (node.Int("capacity", -1) != -1) {
    return InvalidArgument("Barrier only accepts capacity=-1.  Feed the inputs to your Barrier ",
                           "through a queue to enforce a limited capacity.");
  }
  if (o.shapes.size() != o.types.size()) {
    return InvalidArgument("All of the component shapes must be specified");
  }
  for (size_t i = 0; i < o.shapes.size(); ++i) {
    if (!o.shapes[i].fully_known() || o.shapes[i].ToShape().num_elements() == 0) {
      return InvalidArgument("Empty tensors are not supported, but received shape '",
                             o.shapes[i].ToString(), "' at index ", i);
    }
  }
  o.types.insert(o.types.begin(), {Dtype::kInt64, Dtype::kString});
  o.shapes.insert(o.shapes.begin(), {Shape(), Shape()});
  return state;
}

Status CheckSharedBarrier(const Barrier& barrier, const BarrierState& s) {
  if (barrier.types() != s.ready.types) {
    return InvalidArgument("Shared barrier '", s.shared.at.name, "' has component types ",
                           TypesText(std::span(barrier.types()).subspan(2)),
                           " but requested component types were ",
                           TypesText(std::span(s.ready.types).subspan(2)));
  }
  if (barrier.shapes() != s.ready.shapes) {
    return InvalidArgument("Shared barrier '", s.shared.at.name,
                           "' has other component shapes than those requested");
  }
  return OkStatus();
}

Status RunBarrier(OpContext& ctx) {
  auto& s = ctx.state<BarrierState>();
  return AnswerWithHandle(
      ctx, s.shared, {Barrier::kKind, "barrier"},
      [&] { return std::make_shared<Barrier>(s.shared.at.name, s.ready); },
      [&](const Resource& barrier) {
        return CheckSharedBarrier(static_cast<const Barrier&>(barrier), s);
      });
}

struct BarrierAccess final : KernelState {
  int64_t component = 0;
  bool small = false;
  bool cancel = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareBarrierAccess(const Node& node) {
  if (node.Int("timeout_ms", -1) != -1) return InvalidArgument("Timeout not supported yet.");
  auto state = std::make_unique<BarrierAccess>();
  state->component = node.Int("component_index");
  state->small = node.Bool("allow_small_batch");
  state->cancel = node.Bool("cancel_pending_enqueues");
  return state;
}

Status RunBarrierInsertMany(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto barrier, FindResource<Barrier>(ctx.input(0)));
  const int64_t component = ctx.state<BarrierAccess>().component;
  if (component < 0 || component >= barrier->components()) {
    return InvalidArgument("The component ID is out of range ", component,
                           " > num_components (= ", barrier->components(), ")");
  }
  const Tensor& keys = ctx.input(1);
  const Tensor& values = ctx.input(2);
  const Dtype want = barrier->types()[static_cast<size_t>(component) + 2];
  if (values.dtype() != want) {
    return InvalidArgument("Signature mismatch, have: string_ref, string, ",
                           DtypeName(values.dtype()), "-> expected: string_ref, string, ",
                           DtypeName(want), "->");
  }
  if (values.rank() == 0 || keys.num_elements() != values.dim(0)) {
    return InvalidArgument("keys and values must have as many rows, got the shapes ",
                           keys.shape().ToString(), " and ", values.shape().ToString());
  }
  return barrier->InsertMany(keys.flat<std::string>(), component, values, ctx.step());
}

Status RunBarrierTakeMany(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto barrier, FindResource<Barrier>(ctx.input(0)));
  const Tensor& n = ctx.input(1);
  if (n.num_elements() != 1 || n.scalar<int32_t>() < 0) {
    return InvalidArgument("num_elements must be a number that is not negative");
  }
  const DtypeVector& have = ctx.node().output_types;
  if (!std::ranges::equal(have, barrier->types())) {
    return InvalidArgument("Signature mismatch, have: string_ref, int32->", TypesText(have),
                           " expected: string_ref, int32->", TypesText(barrier->types()));
  }
  ASSIGN_OR_RETURN(Tuple tuple, barrier->TakeMany(n.scalar<int32_t>(),
                                                  ctx.state<BarrierAccess>().small, ctx.step()));
  for (size_t i = 0; i < tuple.size(); ++i) {
    ctx.set_output(static_cast<int>(i), std::move(tuple[i]));
  }
  return OkStatus();
}

Status RunBarrierClose(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto barrier, FindResource<Barrier>(ctx.input(0)));
  return barrier->Close(ctx.state<BarrierAccess>().cancel);
}

template <bool kReady>
Status RunBarrierSize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto barrier, FindResource<Barrier>(ctx.input(0)));
  const int64_t size = kReady ? barrier->ready_size() : barrier->incomplete_size();
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(size)));
  return OkStatus();
}

constexpr Kernel kBarrierTable[] = {
    {"Barrier", "", kAnyType, "queue:barrier", RunBarrier, PrepareBarrier},
    {"BarrierInsertMany", "", kAnyType, "queue:barrier_insert_many", RunBarrierInsertMany,
     PrepareBarrierAccess},
    {"BarrierTakeMany", "", kAnyType, "queue:barrier_take_many", RunBarrierTakeMany,
     PrepareBarrierAccess},
    {"BarrierClose", "", kAnyType, "queue:barrier_close", RunBarrierClose, PrepareBarrierAccess},
    {"BarrierReadySize", "", kAnyType, "queue:barrier_size", RunBarrierSize<true>},
    {"BarrierIncompleteSize", "", kAnyType, "queue:barrier_size", RunBarrierSize<false>},
};

}  // namespace

extern constinit const std::span<const Kernel> kBarrierKernels = kBarrierTable;

}  // namespace smelt
