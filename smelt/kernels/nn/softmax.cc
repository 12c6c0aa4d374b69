// Softmax, LogSoftmax and the losses built on them.
#include <cmath>

#include "absl/strings/str_join.h"
#include "smelt/base/parallel.h"
#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/bound_call.h"
#include "smelt/kernels/common/via_float.h"
#include "smelt/kernels/isa/isa.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

constexpr int64_t kSoftmaxGrain = 4096;

int64_t SoftmaxRowGrain(int64_t n) {
  return std::max<int64_t>(1, kSoftmaxGrain / std::max<int64_t>(n, 1));
}

void SoftmaxRow(const double* x, double* y, int64_t n, bool log) {
  double top = x[0];
  for (int64_t i = 1; i < n; ++i) top = std::max(top, x[i]);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = log ? x[i] - top - log_sum : std::exp(x[i] - top) / sum;
  }
}
void SoftmaxRow(const float* x, float* y, int64_t n, bool log) {
  (log ? Isa().log_softmax : Isa().softmax)(x, y, n);
}

// `rows` rows of n; y may be x: each element is read before it is written.
template <typename T>
void SoftmaxRows(const T* from, T* to, int64_t rows, int64_t n, bool log) {
  ParallelFor(rows, SoftmaxRowGrain(n), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      if (!log) return Isa().softmax_rows(from + begin * n, to + begin * n, end - begin, n);
    }
    for (int64_t r = begin; r < end; ++r) SoftmaxRow(from + r * n, to + r * n, n, log);
  });
}

template <typename T>
void SoftmaxRows(const Tensor& x, Tensor* y, bool log) {
  const int64_t n = x.shape().back();
  SoftmaxRows(x.data<T>(), y->data<T>(), x.num_elements() / n, n, log);
}

struct SoftmaxState final : KernelState {
  bool log = false;

  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override {
    const BoundTensor& x = context.inputs[0];
    if (x.dtype != Dtype::kFloat || x.shape.rank() < 1 || x.shape.num_elements() == 0 ||
        !Fits(context, 1, x.shape)) {
      return nullptr;
    }
    const int64_t n = x.shape.back(), rows = x.shape.num_elements() / n;
    return BindCall(
        [n, rows, log = log](const void* const* inputs, void* const* outputs, void*) {
          SoftmaxRows(static_cast<const float*>(inputs[0]), static_cast<float*>(outputs[0]), rows,
                      n, log);
        },
        {0});
  }
};
StatusOr<std::unique_ptr<KernelState>> PrepareSoftmax(const Node& node) {
  auto state = std::make_unique<SoftmaxState>();
  state->log = node.Is("LogSoftmax");
  return state;
}

Status SoftmaxOf(OpContext& ctx, bool log) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 1) {
    return InvalidArgument("logits must have >= 1 dimension, got ", x.shape().ToString());
  }
  if (x.dtype() == Dtype::kFloat || x.dtype() == Dtype::kDouble) {
    // Rows are read in several passes, but each element before it is written.
    ASSIGN_OR_RETURN(Tensor * y, ctx.Forward(0, {0}, x.shape()));
    if (x.num_elements() == 0) return OkStatus();
    if (x.dtype() == Dtype::kFloat) {
      SoftmaxRows<float>(x, y, log);
    } else {
      SoftmaxRows<double>(x, y, log);
    }
    return OkStatus();
  }
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(Tensor f, ToFloat(x, allocator));
  if (x.num_elements() > 0) SoftmaxRows<float>(f, &f, log);
  ASSIGN_OR_RETURN(Tensor out, FromFloat(f, x.dtype(), allocator));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}
Status RunSoftmax(OpContext& ctx) { return SoftmaxOf(ctx, false); }
Status RunLogSoftmax(OpContext& ctx) { return SoftmaxOf(ctx, true); }

// The computation type of the losses: float for 16-bit types.
StatusOr<Tensor> LossOperand(const Tensor& t, Allocator* allocator) {
  if (t.dtype() == Dtype::kDouble) return t;
  return ToFloat(t, allocator);
}

Status SetLossOutput(OpContext& ctx, int i, Tensor t) {
  if (t.dtype() != ctx.output_type(i)) {
    ASSIGN_OR_RETURN(t, FromFloat(t, ctx.output_type(i), ctx.step().allocator));
  }
  ctx.set_output(i, std::move(t));
  return OkStatus();
}

// A matrix broadcast to [rows, columns].
template <typename T>
struct LossMatrix {
  const T* data;
  int64_t row_step, column_step;
  LossMatrix(const Tensor& t)
      : data(t.data<T>()),
        row_step(t.dim(0) == 1 ? 0 : t.dim(1)),
        column_step(t.dim(1) == 1 ? 0 : 1) {}
  T at(int64_t r, int64_t c) const { return data[r * row_step + c * column_step]; }
};

template <typename T>
void CrossEntropyRows(const Tensor& logits, const Tensor& labels, Tensor* loss, Tensor* grad) {
  const int64_t n = grad->dim(1);
  const LossMatrix<T> x(logits), p(labels);
  T* out = grad->data<T>();
  T* sums = loss->data<T>();
  ParallelFor(grad->dim(0), SoftmaxRowGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = out + r * n;
      for (int64_t c = 0; c < n; ++c) row[c] = x.at(r, c);
      SoftmaxRow(row, row, n, true);
      T total = 0;
      for (int64_t c = 0; c < n; ++c) {
        const T q = p.at(r, c);
        // A label of zero costs nothing, however unlikely the class.
        if (q != T(0)) total -= q * row[c];
        row[c] = std::exp(row[c]) - q;
      }
      sums[r] = total;
    }
  });
}

Status RunCrossEntropy(OpContext& ctx) {
  const int rank = std::max(ctx.input(0).rank(), ctx.input(1).rank());
  const auto widened = [rank](const Tensor& t) {
    Dims dims(static_cast<size_t>(rank - t.rank()), 1);
    dims.insert(dims.end(), t.shape().dims().begin(), t.shape().dims().end());
    return t.WithShape(Shape(std::span<const int64_t>(dims)));
  };
  const Tensor logits = widened(ctx.input(0)), labels = widened(ctx.input(1));
  Dims dims;
  for (int i = 0; i < rank; ++i) {
    const int64_t a = logits.dim(i), b = labels.dim(i);
    if (a != b && a != 1 && b != 1) {
      return InvalidArgument(
          "logits and labels must be broadcastable: logits_size=", ctx.input(0).shape().ToString(),
          " labels_size=", ctx.input(1).shape().ToString());
    }
    dims.push_back(a == 1 ? b : a);
  }
  if (rank != 2) {
    return InvalidArgument("logits and labels must be either 2-dimensional, or broadcasted to be ",
                           "2-dimensional");
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor x, LossOperand(logits, allocator));
  ASSIGN_OR_RETURN(const Tensor p, LossOperand(labels, allocator));
  ASSIGN_OR_RETURN(Tensor loss, Tensor::Zeros(x.dtype(), Shape({shape[0]}), allocator));
  ASSIGN_OR_RETURN(Tensor grad, Tensor::Make(x.dtype(), shape, allocator));
  if (grad.num_elements() > 0) {
    if (x.dtype() == Dtype::kDouble) {
      CrossEntropyRows<double>(x, p, &loss, &grad);
    } else {
      CrossEntropyRows<float>(x, p, &loss, &grad);
    }
  }
  RETURN_IF_ERROR(SetLossOutput(ctx, 0, std::move(loss)));
  return SetLossOutput(ctx, 1, std::move(grad));
}

template <typename T>
void SparseCrossEntropyRows(const Tensor& logits, const Tensor& labels, Tensor* loss,
                            Tensor* grad) {
  const int64_t n = logits.dim(1);
  const T* x = logits.data<T>();
  T* out = grad->data<T>();
  T* sums = loss->data<T>();
  ParallelFor(logits.dim(0), SoftmaxRowGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = out + r * n;
      SoftmaxRow(x + r * n, row, n, true);
      const int64_t label = IndexAt(labels, r);
      sums[r] = -row[label];
      for (int64_t c = 0; c < n; ++c) row[c] = std::exp(row[c]);
      row[label] -= T(1);
    }
  });
}

Status RunSparseCrossEntropy(OpContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Tensor& labels = ctx.input(1);
  if (logits.rank() != 2) {
    return InvalidArgument("logits must be 2-D, but got shape ", logits.shape().ToString());
  }
  if (labels.rank() != 1) {
    return InvalidArgument("labels must be 1-D, but got shape ", labels.shape().ToString());
  }
  if (logits.dim(0) != labels.dim(0)) {
    return InvalidArgument("logits and labels must have the same first dimension, got logits ",
                           "shape ", logits.shape().ToString(), " and labels shape ",
                           labels.shape().ToString());
  }
  if (logits.dim(1) <= 0) {
    return InvalidArgument("Must have at least one class, but got logits shape ",
                           logits.shape().ToString());
  }
  const Dims given = IntsOf(labels);
  if (!given.empty()) {
    const auto [least, most] = std::minmax_element(given.begin(), given.end());
    if (*least < 0 || *most >= logits.dim(1)) {
      return InvalidArgument("Received a label value of ", *least < 0 ? *least : *most,
                             " which is outside the valid range of [0, ", logits.dim(1),
                             ").  Label values: ", absl::StrJoin(given, " "));
    }
  }
  Allocator* allocator = ctx.step().allocator;
  ASSIGN_OR_RETURN(const Tensor x, LossOperand(logits, allocator));
  ASSIGN_OR_RETURN(Tensor loss, Tensor::Make(x.dtype(), labels.shape(), allocator));
  ASSIGN_OR_RETURN(Tensor grad, Tensor::Make(x.dtype(), x.shape(), allocator));
  if (grad.num_elements() > 0) {
    if (x.dtype() == Dtype::kDouble) {
      SparseCrossEntropyRows<double>(x, labels, &loss, &grad);
    } else {
      SparseCrossEntropyRows<float>(x, labels, &loss, &grad);
    }
  }
  RETURN_IF_ERROR(SetLossOutput(ctx, 0, std::move(loss)));
  return SetLossOutput(ctx, 1, std::move(grad));
}

constexpr DtypeSet kSoftmaxTypes =
    Types(Dtype::kFloat, Dtype::kDouble, Dtype::kHalf, Dtype::kBfloat16);

constexpr Kernel kSoftmaxTable[] = {
    {"Softmax", "T", kSoftmaxTypes, "nn:softmax", RunSoftmax, PrepareSoftmax},
    {"LogSoftmax", "T", kSoftmaxTypes, "nn:log_softmax", RunLogSoftmax, PrepareSoftmax},
    {"SoftmaxCrossEntropyWithLogits", "T", kSoftmaxTypes, "nn:cross_entropy", RunCrossEntropy},
    {"SparseSoftmaxCrossEntropyWithLogits", "T", kSoftmaxTypes, "nn:sparse_cross_entropy",
     RunSparseCrossEntropy},
};

}  // namespace

extern constinit const std::span<const Kernel> kSoftmaxKernels = kSoftmaxTable;

}  // namespace smelt
