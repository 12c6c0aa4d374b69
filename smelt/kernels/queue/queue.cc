#include "smelt/kernels/queue/queue.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/rows.h"

namespace smelt {
namespace {

constexpr absl::string_view kEnqueueCancelled = "Enqueue operation was cancelled";
constexpr absl::string_view kDequeueCancelled = "Dequeue operation was cancelled";

// What errors of one element call the queue: TensorFlow's padding queue inherits that code.
absl::string_view ElementKindName(QueueKind kind) {
  return QueueKindName(kind == QueueKind::kPadding ? QueueKind::kFifo : kind);
}

Status ComponentMismatch(size_t i, const std::string& expected, const Tensor& got) {
  return InvalidArgument("Shape mismatch in tuple component ", i, ". Expected ", expected, ", got ",
                         got.shape().ToString());
}

// Row i of every component.
Tuple RowsOf(const Tuple& batch, int64_t i) {
  Tuple tuple;
  tuple.reserve(batch.size());
  for (const Tensor& t : batch) tuple.push_back(RowOf(t, i));
  return tuple;
}

// Copies `part` into row `row` of `out`, whose rows are at least as large; the rest stays as it is.
void CopyIntoRow(const Tensor& part, int64_t row, Tensor& out) {
  const Dims strides = Strides(out.shape());
  const Dtype dtype = out.dtype();
  void* at = At(dtype, out.raw(), row * strides[0]);
  CopyDims dims;
  int64_t step = part.num_elements();
  for (int d = 0; d < part.rank(); ++d) {
    step /= part.dim(d);
    dims.push_back({part.dim(d), strides[static_cast<size_t>(d) + 1], step});
  }
  if (dims.empty()) return CopyRun(dtype, at, part.raw(), 1);
  CopyStrided(dtype, at, part.raw(), dims);
}

}  // namespace

absl::string_view QueueKindName(QueueKind kind) {
  switch (kind) {
    case QueueKind::kFifo:
      return "FIFOQueue";
    case QueueKind::kPadding:
      return "PaddingFIFOQueue";
    case QueueKind::kShuffle:
      return "RandomShuffleQueue";
    case QueueKind::kPriority:
      return "PriorityQueue";
  }
  return "";
}

std::string TypesText(std::span<const Dtype> types) {
  return absl::StrJoin(types, ", ",
                       [](std::string* out, Dtype t) { absl::StrAppend(out, DtypeName(t)); });
}

Queue::Queue(QueueOptions options)
    : options_(std::move(options)), store_(MakeQueueStore(options_)) {}

Status Queue::CheckElement(const Tuple& tuple) const {
  for (size_t i = 0; i < options_.shapes.size(); ++i) {
    if (!options_.shapes[i].Matches(tuple[i].shape())) {
      return ComponentMismatch(i, options_.shapes[i].ToString(), tuple[i]);
    }
  }
  return OkStatus();
}

StatusOr<int64_t> Queue::CheckBatch(const Tuple& batch) const {
  const auto scalar = [] {
    return InvalidArgument("All input tensors must have at least one dimension, got a scalar");
  };
  if (batch[0].rank() == 0) return scalar();
  const int64_t n = batch[0].dim(0);
  for (size_t i = 0; i < options_.shapes.size(); ++i) {
    Dims dims(options_.shapes[i].dims().begin(), options_.shapes[i].dims().end());
    dims.insert(dims.begin(), n);
    const PartialShape expected = PartialShape::Of(dims);
    if (!expected.Matches(batch[i].shape())) {
      return ComponentMismatch(i, expected.ToString(), batch[i]);
    }
  }
  for (size_t i = 1; i < batch.size(); ++i) {
    if (batch[i].rank() == 0) return scalar();
    if (batch[i].dim(0) != n) {
      return InvalidArgument("All input tensors must have the same size in the 0th dimension. ",
                             "Component ", i, " has ", batch[i].dim(0), ", and should have ", n);
    }
  }
  return n;
}

Status Queue::StandInLine(const WaitingLine::Place& place, const Step& step) {
  if (closed_) {
    return absl::CancelledError(
        absl::StrCat(ElementKindName(options_.kind), " '", options_.name, "' is closed."));
  }
  while (!place.in_front()) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kEnqueueCancelled));
    if (cancelled_) return absl::CancelledError(kEnqueueCancelled);
  }
  return OkStatus();
}

Status Queue::PutOne(Tuple tuple, const Step& step) {
  while (store_->size() >= options_.capacity) {
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kEnqueueCancelled));
    if (cancelled_) return absl::CancelledError(kEnqueueCancelled);
  }
  store_->Put(std::move(tuple));
  changed_.SignalAll();
  return OkStatus();
}

Status Queue::Enqueue(Tuple tuple, const Step& step) {
  RETURN_IF_ERROR(CheckElement(tuple));
  absl::MutexLock lock(&mutex_);
  const WaitingLine::Place place(enqueuers_, changed_);
  RETURN_IF_ERROR(StandInLine(place, step));
  return PutOne(std::move(tuple), step);
}

Status Queue::EnqueueMany(const Tuple& batch, const Step& step) {
  ASSIGN_OR_RETURN(const int64_t n, CheckBatch(batch));
  if (n == 0) return OkStatus();
  absl::MutexLock lock(&mutex_);
  const WaitingLine::Place place(enqueuers_, changed_);
  RETURN_IF_ERROR(StandInLine(place, step));
  for (int64_t i = 0; i < n; ++i) RETURN_IF_ERROR(PutOne(RowsOf(batch, i), step));
  return OkStatus();
}

int64_t Queue::Available() const {
  const bool kept = options_.kind == QueueKind::kShuffle && !closed_;
  return store_->size() - (kept ? options_.min_after_dequeue : 0);
}

Status Queue::Insufficient(absl::string_view kind, int64_t wanted) const {
  return OutOfRange(kind, " '", options_.name, "' is closed and has insufficient elements ",
                    "(requested ", wanted, ", current size ", store_->size(), ")");
}

StatusOr<Tuple> Queue::Dequeue(const Step& step) {
  absl::MutexLock lock(&mutex_);
  const WaitingLine::Place place(dequeuers_, changed_);
  while (!place.in_front() || Available() <= 0) {
    // A closed queue still gets elements from callers that waited for room when it was closed.
    if (place.in_front() && closed_ && enqueuers_.empty()) {
      return Insufficient(ElementKindName(options_.kind), 1);
    }
    RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kDequeueCancelled));
  }
  changed_.SignalAll();
  return store_->Take();
}

StatusOr<Tuple> Queue::DequeueMany(int64_t n, bool up_to, const Step& step) {
  std::vector<Tuple> taken;
  if (n > 0) {
    absl::MutexLock lock(&mutex_);
    const WaitingLine::Place place(dequeuers_, changed_);
    int64_t wanted = n;  // elements that are still to come
    while (true) {
      // Takes elements as they come, so that n may exceed the capacity.
      while (place.in_front() && wanted > 0 && Available() > 0 &&
             !(closed_ && !up_to && store_->size() < wanted && enqueuers_.empty())) {
        taken.push_back(store_->Take());
        --wanted;
        changed_.SignalAll();
      }
      if (wanted == 0) break;
      if (place.in_front() && closed_ && enqueuers_.empty()) {
        const absl::string_view kind = QueueKindName(options_.kind);
        // As in TensorFlow, a priority queue returns no fewer, and what was taken is lost.
        if (options_.kind == QueueKind::kPriority) return Insufficient(kind, wanted);
        if (up_to && !taken.empty()) break;
        store_->PutBack(std::exchange(taken, {}));
        return Insufficient(kind, n);
      }
      const Status status = WaitForChange(changed_, mutex_, step, kDequeueCancelled);
      if (!status.ok()) {
        store_->PutBack(std::move(taken));
        return status;
      }
    }
  }
  return Batch(std::move(taken), step);
}

StatusOr<Tuple> Queue::Batch(std::vector<Tuple> elements, const Step& step) const {
  Tuple batch;
  const auto n = static_cast<int64_t>(elements.size());
  for (size_t c = 0; c < options_.types.size(); ++c) {
    const PartialShape& declared = options_.shapes[c];
    Dims dims(declared.dims().begin(), declared.dims().end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] >= 0) continue;
      dims[d] = 0;
      for (const Tuple& e : elements) dims[d] = std::max(dims[d], e[c].dim(static_cast<int>(d)));
    }
    dims.insert(dims.begin(), n);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(options_.types[c], shape, step.allocator));
    if (!declared.fully_known()) ClearRun(out.dtype(), out.raw(), out.num_elements());
    for (int64_t i = 0; i < n; ++i) {
      Tensor& part = elements[static_cast<size_t>(i)][c];
      if (part.num_elements() > 0) CopyIntoRow(part, i, out);
      part = Tensor();
    }
    batch.push_back(std::move(out));
  }
  return batch;
}

Status Queue::Close(bool cancel_pending) {
  absl::MutexLock lock(&mutex_);
  // To cancel what is pending a queue may be closed at any time.
  if (closed_ && !cancel_pending) {
    return absl::CancelledError(absl::StrCat("Queue '", options_.name, "' is already closed."));
  }
  closed_ = true;
  cancelled_ = cancelled_ || cancel_pending;
  changed_.SignalAll();
  return OkStatus();
}

bool Queue::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

int64_t Queue::size() const {
  absl::MutexLock lock(&mutex_);
  return store_->size();
}

int64_t Queue::waiting() const {
  absl::MutexLock lock(&mutex_);
  return enqueuers_.length() + dequeuers_.length();
}

}  // namespace smelt
