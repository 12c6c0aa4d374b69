// The queue ops. Handles of version 1, references to strings in TensorFlow, are the same handles
// here.
#include "smelt/kernels/queue/queue.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

std::string ShapesText(const std::vector<PartialShape>& shapes) {
  return absl::StrCat(
      "[",
      absl::StrJoin(shapes, ", ",
                    [](std::string* out, const PartialShape& s) { *out += s.ToString(); }),
      "]");
}

struct QueueState final : KernelState {
  explicit QueueState(const Node& node) : shared(node) {}
  SharedHandle shared;
  QueueOptions options;
};

Status CheckQueueOptions(const QueueOptions& o) {
  if (o.kind == QueueKind::kPadding && o.shapes.empty()) {
    return InvalidArgument("Shapes must be provided for all components, but received ",
                           o.types.size(), " dtypes and 0 shapes.");
  }
  if (!o.shapes.empty() && o.shapes.size() != o.types.size()) {
    return InvalidArgument("Different number of component types.  Types: ", TypesText(o.types),
                           ", Shapes: ", ShapesText(o.shapes));
  }
  for (const PartialShape& s : o.shapes) {
    const bool fits = o.kind == QueueKind::kPadding ? s.known_rank() : s.fully_known();
    if (!fits) return InvalidArgument("queue components cannot have the shape ", s.ToString());
  }
  if (o.kind != QueueKind::kShuffle) return OkStatus();
  if (o.min_after_dequeue < 0) {
    return InvalidArgument("min_after_dequeue ", o.min_after_dequeue, " must be >= 0");
  }
  if (o.min_after_dequeue >= o.capacity) {
    return InvalidArgument("min_after_dequeue ", o.min_after_dequeue, " must be < capacity ",
                           o.capacity);
  }
  return OkStatus();
}

template <QueueKind kKind>
StatusOr<std::unique_ptr<KernelState>> PrepareQueue(const Node& node) {
  auto state = std::make_unique<QueueState>(node);
  QueueOptions& o = state->options;
  o.kind = kKind;
  o.name = state->shared.at.name;
  o.types = node.Get<std::vector<Dtype>>("component_types", {});
  o.shapes = node.Get<std::vector<PartialShape>>("shapes", {});
  if (kKind == QueueKind::kPriority) {
    o.types.insert(o.types.begin(), Dtype::kInt64);
    o.shapes.insert(o.shapes.begin(), Shape());
  }
  o.capacity = node.Int("capacity", -1);
  if (o.capacity < 0) o.capacity = std::numeric_limits<int32_t>::max();
  o.min_after_dequeue = node.Int("min_after_dequeue");
  o.seed = node.Int("seed");
  o.seed2 = node.Int("seed2");
  RETURN_IF_ERROR(CheckQueueOptions(o));
  return state;
}

// INVALID_ARGUMENT unless two nodes that name one queue describe it alike.
Status CheckSharedQueue(const QueueOptions& have, const QueueOptions& want, const Node& node) {
  if (have.kind != want.kind) {
    return InvalidArgument("Expected ", QueueKindName(have.kind), ", found ", node.op());
  }
  auto differ = [&](absl::string_view what, const auto& has, const auto& requested) {
    return InvalidArgument("Shared queue '", have.name, "' has ", what, " ", has, " but requested ",
                           what, absl::EndsWith(what, "s") ? " were " : " was ", requested);
  };
  if (have.capacity != want.capacity) return differ("capacity", have.capacity, want.capacity);
  if (have.min_after_dequeue != want.min_after_dequeue) {
    return differ("min_after_dequeue", have.min_after_dequeue, want.min_after_dequeue);
  }
  if ((want.seed != 0 || want.seed2 != 0) && (have.seed != want.seed || have.seed2 != want.seed2)) {
    return InvalidArgument("Shared queue '", have.name, "' has random seeds (", have.seed, ", ",
                           have.seed2, ") but requested seeds are (", want.seed, ", ", want.seed2,
                           ").");
  }
  if (have.types != want.types) {
    return differ("component types", TypesText(have.types), TypesText(want.types));
  }
  if (have.shapes != want.shapes) {
    return differ("component shapes", ShapesText(have.shapes), ShapesText(want.shapes));
  }
  return OkStatus();
}

Status RunQueue(OpContext& ctx) {
  auto& s = ctx.state<QueueState>();
  return AnswerWithHandle(
      ctx, s.shared, {Queue::kKind, "queue"}, [&] { return std::make_shared<Queue>(s.options); },
      [&](const Resource& queue) {
        return CheckSharedQueue(static_cast<const Queue&>(queue).options(), s.options, ctx.node());
      });
}

StatusOr<std::unique_ptr<KernelState>> PrepareQueueAccess(const Node& node) {
  if (node.Int("timeout_ms", -1) != -1) return InvalidArgument("Timeout not supported yet.");
  return std::make_unique<KernelState>();
}

StatusOr<std::shared_ptr<Queue>> FindQueue(const OpContext& ctx) {
  return FindResource<Queue>(ctx.input(0));
}

// The signature that TensorFlow's errors show: the first `inputs` inputs, the components on the
// input or output side.
std::string QueueSignature(const OpContext& ctx, int inputs, std::span<const Dtype> components,
                           bool out) {
  std::string text = IsRef(ctx.node().input_types[0]) ? "string_ref" : "resource";
  for (int i = 1; i < inputs; ++i) absl::StrAppend(&text, ", ", DtypeName(ctx.input(i).dtype()));
  if (out) return absl::StrCat(text, "->", TypesText(components));
  return absl::StrCat(text, components.empty() ? "" : ", ", TypesText(components), "->");
}

Status CheckQueueSignature(const OpContext& ctx, const Queue& queue, bool out) {
  const Node& node = ctx.node();
  DtypeVector have = node.output_types;
  if (!out) have.assign(node.input_types.begin() + 1, node.input_types.end());
  const std::vector<Dtype>& want = queue.options().types;
  if (std::ranges::equal(have, want)) return OkStatus();
  const int inputs = out ? ctx.num_inputs() : 1;
  return InvalidArgument("Signature mismatch, have: ", QueueSignature(ctx, inputs, have, out),
                         " expected: ", QueueSignature(ctx, inputs, want, out));
}

template <bool kMany>
Status RunEnqueue(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto queue, FindQueue(ctx));
  RETURN_IF_ERROR(CheckQueueSignature(ctx, *queue, /*out=*/false));
  Tuple tuple;
  for (int i = 1; i < ctx.num_inputs(); ++i) tuple.push_back(ctx.TakeInput(i));
  return kMany ? queue->EnqueueMany(tuple, ctx.step())
               : queue->Enqueue(std::move(tuple), ctx.step());
}

void SetTuple(OpContext& ctx, Tuple tuple) {
  for (size_t i = 0; i < tuple.size(); ++i) {
    ctx.set_output(static_cast<int>(i), std::move(tuple[i]));
  }
}

Status RunDequeue(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto queue, FindQueue(ctx));
  RETURN_IF_ERROR(CheckQueueSignature(ctx, *queue, /*out=*/true));
  ASSIGN_OR_RETURN(Tuple tuple, queue->Dequeue(ctx.step()));
  SetTuple(ctx, std::move(tuple));
  return OkStatus();
}

template <bool kUpTo>
Status RunDequeueMany(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto queue, FindQueue(ctx));
  const absl::string_view op = kUpTo ? "DequeueUpToOp" : "DequeueManyOp";
  const Tensor& n = ctx.input(1);
  if (n.num_elements() == 0) {
    return InvalidArgument(op, " wants a number of elements, got the shape ", n.shape().ToString());
  }
  const int32_t wanted = *n.data<int32_t>();  // the first, whatever the shape
  if (wanted < 0) return InvalidArgument(op, " requested ", wanted, " < 0 elements");
  RETURN_IF_ERROR(CheckQueueSignature(ctx, *queue, /*out=*/true));
  if (queue->options().shapes.empty()) {
    return InvalidArgument(QueueKindName(queue->options().kind), "'s DequeueMany and ",
                           "DequeueUpTo require the components to have specified shapes.");
  }
  ASSIGN_OR_RETURN(Tuple tuple, queue->DequeueMany(wanted, kUpTo, ctx.step()));
  SetTuple(ctx, std::move(tuple));
  return OkStatus();
}

struct QueueCloseState final : KernelState {
  bool cancel_pending = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareQueueClose(const Node& node) {
  auto state = std::make_unique<QueueCloseState>();
  state->cancel_pending = node.Bool("cancel_pending_enqueues");
  return state;
}

Status RunQueueClose(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto queue, FindQueue(ctx));
  return queue->Close(ctx.state<QueueCloseState>().cancel_pending);
}

Status RunQueueIsClosed(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto queue, FindQueue(ctx));
  ctx.set_output(0, Tensor::Scalar(queue->closed()));
  return OkStatus();
}

Status RunQueueSize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto queue, FindQueue(ctx));
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(queue->size())));
  return OkStatus();
}

// FakeQueue only turns its resource handle into one of version 1; it checks no kind.
Status RunFakeQueue(OpContext& ctx) {
  ctx.set_output(0, ctx.TakeInput(0));
  return OkStatus();
}

constexpr Kernel kQueueTable[] = {
    {"FIFOQueue", "", kAnyType, "queue:fifo", RunQueue, PrepareQueue<QueueKind::kFifo>},
    {"PaddingFIFOQueue", "", kAnyType, "queue:padding", RunQueue,
     PrepareQueue<QueueKind::kPadding>},
    {"RandomShuffleQueue", "", kAnyType, "queue:shuffle", RunQueue,
     PrepareQueue<QueueKind::kShuffle>},
    {"PriorityQueue", "", kAnyType, "queue:priority", RunQueue, PrepareQueue<QueueKind::kPriority>},
    {"FakeQueue", "", kAnyType, "queue:fake", RunFakeQueue},
    {"QueueEnqueue", "", kAnyType, "queue:enqueue", RunEnqueue<false>, PrepareQueueAccess},
    {"QueueEnqueueMany", "", kAnyType, "queue:enqueue_many", RunEnqueue<true>, PrepareQueueAccess},
    {"QueueDequeue", "", kAnyType, "queue:dequeue", RunDequeue, PrepareQueueAccess},
    {"QueueDequeueMany", "", kAnyType, "queue:dequeue_many", RunDequeueMany<false>,
     PrepareQueueAccess},
    {"QueueDequeueUpTo", "", kAnyType, "queue:dequeue_up_to", RunDequeueMany<true>,
     PrepareQueueAccess},
    {"QueueClose", "", kAnyType, "queue:close", RunQueueClose, PrepareQueueClose},
    {"QueueIsClosed", "", kAnyType, "queue:is_closed", RunQueueIsClosed},
    {"QueueSize", "", kAnyType, "queue:size", RunQueueSize},
};

}  // namespace

extern constinit const std::span<const Kernel> kQueueKernels = kQueueTable;

}  // namespace smelt
