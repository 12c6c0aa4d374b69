#include "smelt/kernels/linalg/batch.h"

#include <algorithm>
#include <limits>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/cancellable.h"

namespace smelt {
namespace {

Dtype WideType(Dtype t) {
  switch (t) {
    case Dtype::kHalf:
    case Dtype::kFloat:
      return Dtype::kDouble;
    case Dtype::kComplex64:
      return Dtype::kComplex128;
    default:
      return t;
  }
}

template <typename From, typename To>
void ConvertElements(const Tensor& from, Tensor& to) {
  const From* in = from.data<From>();
  To* out = to.data<To>();
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    if constexpr (std::is_same_v<From, Half>) {
      out[i] = static_cast<float>(in[i]);
    } else if constexpr (std::is_same_v<To, Half>) {
      out[i] = Half(static_cast<float>(in[i]));
    } else {
      out[i] = static_cast<To>(in[i]);
    }
  }
}

// Between a type and its wide one.
void ConvertMatrix(const Tensor& from, Tensor& to) {
  const bool widens = WideType(from.dtype()) != from.dtype();
  switch (widens ? from.dtype() : to.dtype()) {
    case Dtype::kHalf:
      return widens ? ConvertElements<Half, double>(from, to)
                    : ConvertElements<double, Half>(from, to);
    case Dtype::kFloat:
      return widens ? ConvertElements<float, double>(from, to)
                    : ConvertElements<double, float>(from, to);
    default:
      using Narrow = std::complex<float>;
      using Wide = std::complex<double>;
      return widens ? ConvertElements<Narrow, Wide>(from, to)
                    : ConvertElements<Wide, Narrow>(from, to);
  }
}

}  // namespace

StatusOr<MatrixBatch> MatrixBatch::Of(OpContext& ctx, int matrices) {
  MatrixBatch batch;
  batch.ctx_ = &ctx;
  batch.matrices_ = matrices;
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
  allocated_.push_back(i);
  return ctx_->Allocate(i, shape).status();
}

Status MatrixBatch::SetUnused(int i) {
  ASSIGN_OR_RETURN(Tensor unused, Tensor::Zeros(ctx_->output_type(i), Shape()));
  ctx_->set_output(i, std::move(unused));
  return OkStatus();
}

Status MatrixBatch::Widen() {
  for (int i = 0; i < matrices_; ++i) {
    const Dtype wide = WideType(ctx_->input(i).dtype());
    if (wide == ctx_->input(i).dtype()) return OkStatus();
    ASSIGN_OR_RETURN(Tensor t, ctx_->Temp(wide, ctx_->input(i).shape()));
    ConvertMatrix(ctx_->input(i), t);
    wide_inputs_.push_back(std::move(t));
  }
  for (int i : allocated_) {
    ASSIGN_OR_RETURN(Tensor t, Tensor::Zeros(WideType(ctx_->output(i).dtype()),
                                             ctx_->output(i).shape(), ctx_->step().allocator));
    wide_outputs_[i] = std::move(t);
  }
  return OkStatus();
}

Status MatrixBatch::Narrow() {
  for (const auto& [i, wide] : wide_outputs_) ConvertMatrix(wide, ctx_->output(i));
  return OkStatus();
}

Status MatrixBatch::ForEach(double cost, absl::FunctionRef<Status(int64_t)> fn) const {
  // Nothing to write: the loop would be long for a large batch of empty matrices.
  bool empty = true;
  for (int i = 0; i < ctx_->num_outputs(); ++i) empty &= ctx_->output(i).num_elements() == 0;
  if (empty) return OkStatus();
  absl::Mutex mutex;
  Status first;
  int64_t first_index = std::numeric_limits<int64_t>::max();
  const auto grain = static_cast<int64_t>(std::clamp(2e4 / std::max(cost, 1.0), 1.0, 2e4));
  ParallelFor(size_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      // Decompositions take long.
      Status status = (b - begin) % grain == 0 ? CheckStep(ctx_->step()) : OkStatus();
      if (status.ok()) status = fn(b);
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
