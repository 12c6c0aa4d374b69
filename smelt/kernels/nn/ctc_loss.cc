// CTCLoss: minus the log probability of label sequences under class scores over time, and its
// gradient. The last class is the blank.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_join.h"
#include "smelt/kernels/nn/log_sum.h"
#include "smelt/kernels/sparse/sparse_tensor.h"

namespace smelt {
namespace {

using nn::LogOfSum;

struct CtcLossState final : KernelState {
  bool collapse = false, merge = true, ignore_longer = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareCtcLoss(const Node& node) {
  auto state = std::make_unique<CtcLossState>();
  state->collapse = node.Bool("preprocess_collapse_repeated");
  state->merge = node.Bool("ctc_merge_repeated", true);
  state->ignore_longer = node.Bool("ignore_longer_outputs_than_inputs");
  return state;
}

Status CheckCtcLoss(OpContext& ctx) {
  const Tensor &inputs = ctx.input(0), &indices = ctx.input(1), &values = ctx.input(2);
  const Tensor& lengths = ctx.input(3);
  if (inputs.rank() != 3) return InvalidArgument("inputs is not a 3-Tensor");
  if (lengths.rank() != 1) return InvalidArgument("sequence_length is not a vector");
  if (indices.rank() != 2) return InvalidArgument("labels_indices is not a matrix");
  if (indices.dim(1) < 1) {
    return InvalidArgument("labels_indices second dimension must be >= 1. Received 0");
  }
  if (indices.dim(1) != 2) {
    return InvalidArgument("Order length must be SparseTensor rank.");
  }
  if (values.rank() != 1) return InvalidArgument("labels_values is not a vector");
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("labels_indices and labels_values must contain the same number of ",
                           "rows, but saw shapes: ", indices.shape().ToString(), " vs. ",
                           values.shape().ToString());
  }
  const int64_t time = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
  if (time == 0) return InvalidArgument("Max time or first dimension of input cannot be 0.");
  if (batch == 0) return InvalidArgument("batch_size must not be 0");
  if (classes == 0) return InvalidArgument("num_classes must not be 0");
  int64_t columns = 0;
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t column = indices.data<int64_t>()[2 * i + 1];
    columns =
        std::max(columns, column == std::numeric_limits<int64_t>::max() ? column : column + 1);
  }
  const Status order = CheckSparseOrder(indices, Dims{batch, columns});
  if (!order.ok()) return smelt::Prefix(order, "label SparseTensor is not valid: ");
  if (lengths.dim(0) != batch) {
    return InvalidArgument("len(sequence_length) != batch_size.  len(sequence_length):  ",
                           lengths.dim(0), " batch_size: ", batch);
  }
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t n = lengths.data<int32_t>()[b];
    if (n > time) return InvalidArgument("sequence_length(", b, ") <= ", time);
    if (n < 0) return InvalidArgument("seq_len(", b, ") < 0");
  }
  return OkStatus();
}

// Labels of a sequence with blanks before, between and after them.
StatusOr<std::vector<int64_t>> WithBlanks(const std::vector<int64_t>& given, int64_t b,
                                          int64_t classes, int64_t time,
                                          const CtcLossState& state) {
  if (given.empty()) return InvalidArgument("Labels length is zero in batch ", b);
  std::vector<int64_t> labels;
  bool finished = false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (i > 0 && state.collapse && given[i] == given[i - 1]) continue;
    if (given[i] >= classes - 1) {
      finished = true;
    } else if (finished) {
      return InvalidArgument("Saw a non-null label (index >= num_classes - 1) following a null ",
                             "label, batch: ", b, " num_classes: ", classes,
                             " labels: ", absl::StrJoin(given, ","),
                             " labels seen so far: ", absl::StrJoin(labels, ","));
    } else {
      labels.push_back(given[i]);
    }
  }
  for (int64_t l : labels) {
    if (l >= 0) continue;
    return InvalidArgument("All labels must be nonnegative integers, batch: ", b,
                           " labels: ", absl::StrJoin(labels, ","));
  }
  if (!state.ignore_longer && time < static_cast<int64_t>(labels.size())) {
    return InvalidArgument(
        "Not enough time for target transition sequence (required: ", labels.size(),
        ", available: ", time, ")", b, "You can turn this error into a warning by using the flag ",
        "ignore_longer_outputs_than_inputs");
  }
  std::vector<int64_t> padded(2 * labels.size() + 1, classes - 1);
  for (size_t i = 0; i < labels.size(); ++i) padded[2 * i + 1] = labels[i];
  return padded;
}

// One sequence. alpha_ and beta_, log probabilities, lie as [time][place in the padded labels].
template <typename T>
class CtcSequence {
 public:
  CtcSequence(const std::vector<int64_t>& labels, int64_t time, int64_t classes, bool merge)
      : labels_(labels),
        places_(static_cast<int64_t>(labels.size())),
        time_(time),
        classes_(classes),
        merge_(merge),
        log_y_(static_cast<size_t>(time * classes)) {}

  // Scores of time t.
  void SetScores(int64_t t, const T* row) {
    const T largest = *std::max_element(row, row + classes_);
    T sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(row[c] - largest);
    for (int64_t c = 0; c < classes_; ++c) {
      // A class far below the largest has no probability at all, as in TensorFlow.
      log_y_[t * classes_ + c] = std::log(std::exp(row[c] - largest) / sum);
    }
  }

  // Returns the loss.
  T Run() {
    Forward();
    Backward();
    for (int64_t u = 0; u < places_; ++u) {
      total_ = LogOfSum(total_, alpha_[u] + beta_[u]);
    }
    return -total_;
  }

  void Gradient(int64_t t, T* to) const {
    std::vector<T> sums(static_cast<size_t>(classes_), kZero);
    for (int64_t u = 0; u < places_; ++u) {
      T& sum = sums[labels_[u]];
      sum = LogOfSum(sum, alpha_[t * places_ + u] + beta_[t * places_ + u]);
    }
    for (int64_t c = 0; c < classes_; ++c) {
      to[c] = std::exp(log_y_[t * classes_ + c]);
      if (total_ != kZero) to[c] -= std::exp(sums[c] - total_);
    }
  }

 private:
  static constexpr T kZero = nn::kLogZero<T>;

  T LogY(int64_t u, int64_t t) const { return log_y_[t * classes_ + labels_[u]]; }
  bool IsBlank(int64_t u) const { return labels_[u] == classes_ - 1; }
  // May a path stay at place u, may it leap from u to u + 2?
  bool Stays(int64_t u) const { return merge_ || IsBlank(u); }
  bool Leaps(int64_t u) const {
    return !IsBlank(u + 2) && !(merge_ && labels_[u] == labels_[u + 2]);
  }
  // Places [First, Last) that a path can be at if it is to reach the end in time.
  int64_t First(int64_t t) const { return std::max<int64_t>(0, places_ - 2 * (time_ - t)); }
  int64_t Last(int64_t t) const { return std::min(places_, 2 * (t + 1)); }

  void Forward() {
    alpha_.assign(static_cast<size_t>(time_ * places_), kZero);
    alpha_[0] = LogY(0, 0);
    if (places_ > 1) alpha_[1] = LogY(1, 0);
    for (int64_t t = 1; t < time_; ++t) {
      const T* old = alpha_.data() + (t - 1) * places_;
      for (int64_t u = First(t); u < Last(t); ++u) {
        T sum = Stays(u) ? old[u] : kZero;
        if (u > 0) sum = LogOfSum(sum, old[u - 1]);
        if (u > 1 && Leaps(u - 2)) sum = LogOfSum(sum, old[u - 2]);
        alpha_[t * places_ + u] = LogY(u, t) + sum;
      }
    }
  }

  void Backward() {
    beta_.assign(static_cast<size_t>(time_ * places_), kZero);
    for (int64_t u = std::max<int64_t>(0, places_ - 2); u < places_; ++u) {
      beta_[(time_ - 1) * places_ + u] = 0;
    }
    for (int64_t t = time_ - 2; t >= 0; --t) {
      const T* next = beta_.data() + (t + 1) * places_;
      for (int64_t u = First(t); u < Last(t); ++u) {
        T sum = Stays(u) ? next[u] + LogY(u, t + 1) : kZero;
        if (u + 1 < places_) sum = LogOfSum(sum, next[u + 1] + LogY(u + 1, t + 1));
        if (u + 2 < places_ && !IsBlank(u) && Leaps(u)) {
          sum = LogOfSum(sum, next[u + 2] + LogY(u + 2, t + 1));
        }
        beta_[t * places_ + u] = sum;
      }
    }
  }

  const std::vector<int64_t>& labels_;
  const int64_t places_, time_, classes_;
  const bool merge_;
  std::vector<T> log_y_, alpha_, beta_;
  T total_ = kZero;
};

template <typename T>
Status CtcLossOf(OpContext& ctx) {
  const auto& state = ctx.state<CtcLossState>();
  const Tensor &inputs = ctx.input(0), &indices = ctx.input(1), &values = ctx.input(2);
  const int64_t batch = inputs.dim(1), classes = inputs.dim(2);
  ASSIGN_OR_RETURN(Tensor * loss, ctx.Allocate(0, Shape({batch})));
  ASSIGN_OR_RETURN(Tensor * gradient, ctx.Allocate(1, inputs.shape()));
  std::fill_n(loss->data<T>(), batch, T(0));
  std::fill_n(gradient->data<T>(), gradient->num_elements(), T(0));
  std::vector<std::vector<int64_t>> given(static_cast<size_t>(batch));
  for (int64_t i = 0; i < values.dim(0); ++i) {
    given[indices.data<int64_t>()[2 * i]].push_back(values.data<int32_t>()[i]);
  }
  // All sequences are checked before any is worked on.
  std::vector<std::vector<int64_t>> labels;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t time = ctx.input(3).data<int32_t>()[b];
    ASSIGN_OR_RETURN(std::vector<int64_t> padded, WithBlanks(given[b], b, classes, time, state));
    labels.push_back(std::move(padded));
  }
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t time = ctx.input(3).data<int32_t>()[b];
    // A sequence of more labels than steps, where it is ignored (ignore_longer), has loss 0.
    if (time == 0 || time < static_cast<int64_t>(labels[b].size() / 2)) continue;
    CtcSequence<T> sequence(labels[b], time, classes, state.merge);
    for (int64_t t = 0; t < time; ++t) {
      sequence.SetScores(t, inputs.data<T>() + (t * batch + b) * classes);
    }
    loss->data<T>()[b] = sequence.Run();
    for (int64_t t = 0; t < time; ++t) {
      sequence.Gradient(t, gradient->data<T>() + (t * batch + b) * classes);
    }
  }
  return OkStatus();
}

Status RunCtcLoss(OpContext& ctx) {
  RETURN_IF_ERROR(CheckCtcLoss(ctx));
  return ctx.input(0).dtype() == Dtype::kFloat ? CtcLossOf<float>(ctx) : CtcLossOf<double>(ctx);
}

constexpr Kernel kCtcLossTable[] = {
    {"CTCLoss", "T", kFloatTypes, "nn:ctc_loss", RunCtcLoss, PrepareCtcLoss},
};

}  // namespace

extern constinit const std::span<const Kernel> kCtcLossKernels = kCtcLossTable;

}  // namespace smelt
