#include "smelt/kernels/linalg/batch.h"

#include <algorithm>
#include <limits>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/base/parallel.h"

namespace smelt {

StatusOr<MatrixBatch> MatrixBatch::Of(OpContext& ctx, int matrices) {
  MatrixBatch batch;
  batch.ctx_ = &ctx;
  const Shape& first = ctx.input(0).shape();
  for (int i = 0; i < matrices; ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (i == 0 && shape.rank() < 2) {
      return InvalidArgument("Input tensor ", i, " must have rank >= 2, got ", shape.rank());
    }
    if (shape.rank() != first.rank()) {
      return InvalidArgument("All input tensors must have the same rank.");
    }
    if (!std::equal(shape.dims().begin(), shape.dims().end() - 2, first.dims().begin())) {
      return InvalidArgument("All input tensors must have the same outer dimensions.");
    }
  }
  batch.leading_.assign(first.dims().begin(), first.dims().end() - 2);
  batch.size_ = first.Product(0, first.rank() - 2);
  return batch;
}

MatrixSize MatrixBatch::input_size(int i) const {
  const Shape& shape = ctx_->input(i).shape();
  return {shape.back(2), shape.back(1)};
}

Status MatrixBatch::Allocate(int i, std::initializer_list<int64_t> sizes) {
  std::vector<int64_t> dims = leading_;
  dims.insert(dims.end(), sizes);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return ctx_->Allocate(i, shape).status();
}

Status MatrixBatch::ForEach(double cost, absl::FunctionRef<Status(int64_t)> fn) const {
  // Matrices without elements may be as many as they like.
  bool empty = true;
  for (int i = 0; i < ctx_->num_outputs(); ++i) empty &= ctx_->output(i).num_elements() == 0;
  if (empty) return OkStatus();
  absl::Mutex mutex;
  Status first;
  int64_t first_index = std::numeric_limits<int64_t>::max();
  const auto grain = static_cast<int64_t>(std::clamp(2e4 / std::max(cost, 1.0), 1.0, 2e4));
  ParallelFor(size_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      Status status = fn(b);
      if (status.ok()) continue;
      absl::MutexLock lock(&mutex);
      if (b < first_index) {
        first = std::move(status);
        first_index = b;
      }
      return;
    }
  });
  return first;
}

Status CheckSquare(MatrixSize size) {
  if (size.rows != size.cols) return InvalidArgument("Input matrix must be square.");
  return OkStatus();
}

}  // namespace smelt
