// Conditional accumulators: gradients of several workers, summed until their average or sum is
// taken. Dense ones hold a tensor, sparse ones rows by index. Gradients of an earlier step are
// dropped.
#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/resource_types.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

class Accumulator final : public Resource {
 public:
  static constexpr absl::string_view kKind = "conditional_accumulator";
  absl::string_view kind() const override { return kKind; }

  // Set once, before anybody else sees it.
  bool sparse = false;
  bool mean = true;
  Dtype dtype = Dtype::kInvalid;
  PartialShape shape;

  absl::Mutex mutex;
  absl::CondVar grown;  // signaled when `count` grows
  int64_t step ABSL_GUARDED_BY(mutex) = 0;
  int32_t count ABSL_GUARDED_BY(mutex) = 0;                // gradients in the sum
  Tensor sum ABSL_GUARDED_BY(mutex);                       // of a sparse one: [rows, ...]
  std::vector<int64_t> indices ABSL_GUARDED_BY(mutex);     // of the rows of `sum`
  std::vector<int64_t> row_counts ABSL_GUARDED_BY(mutex);  // by row: gradients that had it
};

struct AccumulatorState final : KernelState {
  explicit AccumulatorState(const Node& node) : shared(node) {}
  SharedHandle shared;
  std::shared_ptr<Accumulator> form;  // what a new one looks like
};

std::shared_ptr<Accumulator> CopyForm(const Accumulator& form) {
  auto made = std::make_shared<Accumulator>();
  made->sparse = form.sparse;
  made->mean = form.mean;
  made->dtype = form.dtype;
  made->shape = form.shape;
  return made;
}

StatusOr<std::unique_ptr<KernelState>> PrepareAccumulator(const Node& node) {
  auto s = std::make_unique<AccumulatorState>(node);
  s->form = std::make_shared<Accumulator>();
  s->form->sparse = node.Is("SparseConditionalAccumulator");
  s->form->dtype = node.Type("dtype");
  s->form->shape = node.Get<PartialShape>("shape", {});
  const std::string reduction = node.String("reduction_type", "MEAN");
  if (reduction != "MEAN" && reduction != "SUM") {
    return InvalidArgument("Invalid reduction type: ", reduction);
  }
  s->form->mean = reduction == "MEAN";
  return s;
}

Status RunAccumulator(OpContext& ctx) {
  auto& s = ctx.state<AccumulatorState>();
  // One of that name may be of another type: not checked here, but where it is used.
  return AnswerWithHandle(ctx, s.shared, {Accumulator::kKind, "accumulator"},
                          [&] { return CopyForm(*s.form); });
}

StatusOr<std::shared_ptr<Accumulator>> FindAccumulator(const OpContext& ctx, bool sparse,
                                                       Dtype dtype) {
  ASSIGN_OR_RETURN(auto a, FindResource<Accumulator>(ctx.input(0)));
  if (a->sparse != sparse) {
    return InvalidArgument("The accumulator of node '", ctx.node().name(), "' is ",
                           a->sparse ? "sparse" : "dense");
  }
  if (a->dtype != dtype) {
    return InvalidArgument("The accumulator of node '", ctx.node().name(), "' holds ",
                           DtypeName(a->dtype), ", not ", DtypeName(dtype));
  }
  return a;
}

StatusOr<int64_t> AccumulatorScalar(const OpContext& ctx, int i, absl::string_view what) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 0) {
    return InvalidArgument("Argument ", what, " must be scalar, but had bad shape ",
                           t.shape().ToString());
  }
  return IndexAt(t, 0);
}

// The types that TensorFlow's accumulators have.
using AccumulatedTypes = CppTypes<double, Half, float>;

template <typename T>
void AddRow(const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = AddValues(to[i], from[i]);
}
template <typename T>
void DivideRowBy(int64_t count, int64_t n, T* row) {
  const auto divisor = static_cast<Wide<T>>(static_cast<float>(count));
  for (int64_t i = 0; i < n; ++i) row[i] = T(static_cast<Wide<T>>(row[i]) / divisor);
}

Status RunApplyGradient(OpContext& ctx) {
  const Tensor& grad = ctx.input(2);
  ASSIGN_OR_RETURN(const auto a, FindAccumulator(ctx, false, grad.dtype()));
  ASSIGN_OR_RETURN(const int64_t step, AccumulatorScalar(ctx, 1, "local_step"));
  absl::MutexLock lock(&a->mutex);
  if (step < a->step) return OkStatus();
  const PartialShape& wanted = a->count > 0 ? PartialShape(a->sum.shape()) : a->shape;
  if (!wanted.Matches(grad.shape())) {
    return InvalidArgument("Shape mismatch: expected ", wanted.ToString(), ", got ",
                           grad.shape().ToString());
  }
  if (a->count == 0) {
    ASSIGN_OR_RETURN(a->sum, grad.Clone());
  } else {
    VisitOneOf(AccumulatedTypes(), a->dtype, [&]<typename T>() {
      a->mutex.AssertHeld();
      AddRow(grad.data<T>(), grad.num_elements(), a->sum.data<T>());
    });
  }
  ++a->count;
  a->grown.SignalAll();
  return OkStatus();
}

// Waits until enough gradients are there, then begins the accumulator's next step. The error of a
// step that is cancelled or past its deadline.
Status AwaitGradients(OpContext& ctx, Accumulator& a, int64_t required)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(a.mutex) {
  while (a.count < required) {
    if (ctx.step().cancellation != nullptr) RETURN_IF_ERROR(ctx.step().cancellation->Check());
    a.grown.WaitWithTimeout(&a.mutex, absl::Milliseconds(10));
  }
  ++a.step;
  return OkStatus();
}

StatusOr<int64_t> RequiredGradients(const OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t required, AccumulatorScalar(ctx, 1, "num_required"));
  if (required > 0) return required;
  return InvalidArgument("Argument num_required must be positive, but was ", required);
}

Status RunTakeGradient(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto a, FindAccumulator(ctx, false, ctx.output_type(0)));
  ASSIGN_OR_RETURN(const int64_t required, RequiredGradients(ctx));
  absl::MutexLock lock(&a->mutex);
  RETURN_IF_ERROR(AwaitGradients(ctx, *a, required));
  if (a->mean) {
    VisitOneOf(AccumulatedTypes(), a->dtype, [&]<typename T>() {
      a->mutex.AssertHeld();
      DivideRowBy(a->count, a->sum.num_elements(), a->sum.data<T>());
    });
  }
  a->count = 0;
  ctx.set_output(0, std::move(a->sum));
  a->sum = Tensor();
  return OkStatus();
}

Status RunNumAccumulated(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto a, FindResource<Accumulator>(ctx.input(0)));
  absl::MutexLock lock(&a->mutex);
  ctx.set_output(0, Tensor::Scalar(a->count));
  return OkStatus();
}

Status RunSetGlobalStep(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto a, FindResource<Accumulator>(ctx.input(0)));
  ASSIGN_OR_RETURN(const int64_t step, AccumulatorScalar(ctx, 1, "new_global_step"));
  absl::MutexLock lock(&a->mutex);
  a->step = step;
  return OkStatus();
}

// ---- sparse ----

// INVALID_ARGUMENT unless `given` has at least the rank of `wanted` (which may be unknown) and its
// sizes from `from` on; -1 fits all.
Status CheckAtLeast(absl::string_view what, const PartialShape& wanted,
                    std::span<const int64_t> given, int from) {
  if (wanted.rank() > static_cast<int>(given.size())) {
    return InvalidArgument("Shape mismatch: expected ", what, " rank at least ", wanted.rank(),
                           ", got ", given.size());
  }
  for (int d = from; d < wanted.rank(); ++d) {
    if (wanted[d] < 0 || wanted[d] == given[d]) continue;
    return InvalidArgument("Shape mismatch: expected ", what, " dim ", d, " to be ", wanted[d],
                           ", got ", given[d]);
  }
  return OkStatus();
}

// The shape that the op states is held against the accumulator's, not against the values.
Status CheckSparseGradient(const OpContext& ctx, const Accumulator& a, const Tensor& indices,
                           const Tensor& values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(a.mutex) {
  if (values.rank() == 0) return InvalidArgument("Values cannot be 0-dimensional.");
  if (indices.rank() != 1) {
    return InvalidArgument("Input indices should be vector but received shape: ",
                           indices.shape().ToString());
  }
  if (indices.num_elements() != values.dim(0)) {
    return InvalidArgument("Expected ", indices.num_elements(), " non-empty input values, got ",
                           values.dim(0));
  }
  if (ctx.node().Bool("has_known_shape")) {
    RETURN_IF_ERROR(CheckAtLeast("shape", a.shape, IntsOf(ctx.input(4)), 0));
  }
  const int64_t rows = a.shape.rank() > 0 ? a.shape[0] : -1;
  for (int64_t i = 0; rows >= 0 && i < indices.num_elements(); ++i) {
    const int64_t index = IndexAt(indices, i);
    if (index < rows) continue;
    return InvalidArgument("Shape mismatch: index of slice ", i,
                           " exceeded limits of shape; index is ", index, " exceeded ", rows);
  }
  if (a.count == 0) return CheckAtLeast("values", a.shape, values.shape().dims(), 1);
  const Shape& held = a.sum.shape();
  if (held.rank() != values.rank()) {
    return InvalidArgument("Shape mismatch: expected values rank ", held.rank(), ", got ",
                           values.rank());
  }
  return CheckAtLeast("values", held, values.shape().dims(), 1);
}

// Adds the rows of `values` to the sum: merges both lists as TensorFlow does, as if they were
// sorted by index, and adds rows of equal index.
Status MergeRows(Accumulator& a, const Tensor& indices, const Tensor& values)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(a.mutex) {
  const auto old_rows = static_cast<int64_t>(a.indices.size());
  const int64_t new_rows = indices.num_elements();
  std::vector<int64_t> merged, counts;
  // By merged row: its row of the sum and its row of values; -1: none.
  std::vector<std::pair<int64_t, int64_t>> sources;
  for (int64_t i = 0, j = 0; i < old_rows || j < new_rows;) {
    const bool old_left = i < old_rows, new_left = j < new_rows;
    const int64_t at = old_left ? a.indices[i] : 0, next = new_left ? IndexAt(indices, j) : 0;
    const bool take_old = old_left && (!new_left || at <= next);
    const bool take_new = new_left && (!old_left || next <= at);
    merged.push_back(take_old ? at : next);
    counts.push_back((take_old ? a.row_counts[i] : 0) + (take_new ? 1 : 0));
    sources.emplace_back(take_old ? i++ : -1, take_new ? j++ : -1);
  }
  Shape shape = values.shape();
  const int64_t n = shape.Product(1, shape.rank());
  shape.Set(0, static_cast<int64_t>(merged.size()));
  ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  ASSIGN_OR_RETURN(Tensor sum, Tensor::Zeros(a.dtype, shape));
  VisitOneOf(AccumulatedTypes(), a.dtype, [&]<typename T>() {
    a.mutex.AssertHeld();
    T* to = sum.data<T>();
    for (const auto& [i, j] : sources) {
      if (i >= 0) {
        std::copy_n(a.sum.data<T>() + i * n, n, to);
        if (j >= 0) AddRow(values.data<T>() + j * n, n, to);
      } else {
        std::copy_n(values.data<T>() + j * n, n, to);
      }
      to += n;
    }
  });
  a.sum = std::move(sum);
  a.indices = std::move(merged);
  a.row_counts = std::move(counts);
  return OkStatus();
}

Status RunApplySparseGradient(OpContext& ctx) {
  const Tensor& indices = ctx.input(2);
  const Tensor& values = ctx.input(3);
  ASSIGN_OR_RETURN(const auto a, FindAccumulator(ctx, true, values.dtype()));
  ASSIGN_OR_RETURN(const int64_t step, AccumulatorScalar(ctx, 1, "local_step"));
  absl::MutexLock lock(&a->mutex);
  if (step < a->step) return OkStatus();
  RETURN_IF_ERROR(CheckSparseGradient(ctx, *a, indices, values));
  RETURN_IF_ERROR(MergeRows(*a, indices, values));
  ++a->count;
  a->grown.SignalAll();
  return OkStatus();
}

// With the mean, each row is divided by how many gradients had it.
Status RunTakeSparseGradient(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto a, FindAccumulator(ctx, true, ctx.output_type(1)));
  ASSIGN_OR_RETURN(const int64_t required, RequiredGradients(ctx));
  absl::MutexLock lock(&a->mutex);
  RETURN_IF_ERROR(AwaitGradients(ctx, *a, required));
  const Shape& held = a->sum.shape();
  if (a->mean) {
    const int64_t n = held.Product(1, held.rank());
    VisitOneOf(AccumulatedTypes(), a->dtype, [&]<typename T>() {
      a->mutex.AssertHeld();
      for (size_t i = 0; i < a->row_counts.size(); ++i) {
        DivideRowBy(a->row_counts[i], n, a->sum.data<T>() + static_cast<int64_t>(i) * n);
      }
    });
  }
  // Output shape: the first size is the stated one, not the number of rows held; -1 when unknown.
  Dims shape(held.dims().begin(), held.dims().end());
  shape[0] = a->shape.rank() > 0 ? a->shape[0] : -1;
  RETURN_IF_ERROR(SetInts(ctx, 0, a->indices));
  ctx.set_output(1, std::move(a->sum));
  RETURN_IF_ERROR(SetInts(ctx, 2, shape));
  a->sum = Tensor();
  a->indices.clear();
  a->row_counts.clear();
  a->count = 0;
  return OkStatus();
}

constexpr DtypeSet kAccumulated = kFloatTypes | Types(Dtype::kHalf);

constexpr Kernel kAccumulatorTable[] = {
    {"ConditionalAccumulator", "dtype", kAccumulated, "train:accumulator", RunAccumulator,
     PrepareAccumulator},
    {"ResourceConditionalAccumulator", "dtype", kAccumulated, "train:accumulator", RunAccumulator,
     PrepareAccumulator},
    {"SparseConditionalAccumulator", "dtype", kAccumulated, "train:accumulator", RunAccumulator,
     PrepareAccumulator},
    {"AccumulatorApplyGradient", "dtype", kAccumulated, "train:apply_gradient", RunApplyGradient},
    {"ResourceAccumulatorApplyGradient", "dtype", kAccumulated, "train:apply_gradient",
     RunApplyGradient},
    {"SparseAccumulatorApplyGradient", "dtype", kAccumulated, "train:apply_gradient",
     RunApplySparseGradient},
    {"AccumulatorTakeGradient", "dtype", kAccumulated, "train:take_gradient", RunTakeGradient},
    {"ResourceAccumulatorTakeGradient", "dtype", kAccumulated, "train:take_gradient",
     RunTakeGradient},
    {"SparseAccumulatorTakeGradient", "dtype", kAccumulated, "train:take_gradient",
     RunTakeSparseGradient},
    {"AccumulatorNumAccumulated", "", kAnyType, "train:num_accumulated", RunNumAccumulated},
    {"ResourceAccumulatorNumAccumulated", "", kAnyType, "train:num_accumulated", RunNumAccumulated},
    {"AccumulatorSetGlobalStep", "", kAnyType, "train:set_global_step", RunSetGlobalStep},
    {"ResourceAccumulatorSetGlobalStep", "", kAnyType, "train:set_global_step", RunSetGlobalStep},
};

}  // namespace

extern constinit const std::span<const Kernel> kAccumulatorKernels = kAccumulatorTable;

}  // namespace smelt
