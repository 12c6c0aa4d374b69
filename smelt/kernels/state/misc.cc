// Assert, Print and PrintV2, Timestamp, and the ops of buckets and bins.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/time/clock.h"
#include "smelt/kernels/common/summarize.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

Status RunAssert(OpContext& ctx) {
  const Tensor& condition = ctx.input(0);
  if (condition.rank() != 0) {
    return InvalidArgument("In[0] should be a scalar: ", condition.shape().ToString());
  }
  if (condition.scalar<bool>()) return OkStatus();
  const int64_t summarize = ctx.node().Int("summarize", 3);
  std::string message = "assertion failed: ";
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    absl::StrAppend(&message, "[", SummarizeFirst(ctx.input(i), summarize), "]");
    if (i < ctx.num_inputs() - 1) message += " ";
  }
  return InvalidArgument(message);
}

struct PrintState final : KernelState {
  std::string message;
  int64_t summarize = 3;
  int64_t first_n = -1;
  std::atomic<int64_t> printed{0};
};

StatusOr<std::unique_ptr<KernelState>> PreparePrint(const Node& node) {
  auto state = std::make_unique<PrintState>();
  state->message = node.String("message");
  state->summarize = node.Int("summarize", 3);
  state->first_n = node.Int("first_n", -1);
  return state;
}

Status RunPrint(OpContext& ctx) {
  auto& s = ctx.state<PrintState>();
  if (s.first_n < 0 || s.printed.fetch_add(1, std::memory_order_relaxed) < s.first_n) {
    std::string line = s.message;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      absl::StrAppend(&line, "[", SummarizeFirst(ctx.input(i), s.summarize), "]");
    }
    line += "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  ctx.set_output(0, ctx.TakeInput(0));
  return OkStatus();
}

struct PrintV2State final : KernelState {
  std::string end;
  FILE* stream = nullptr;  // nullptr: the file at `path`
  std::string path;
};

StatusOr<std::unique_ptr<KernelState>> PreparePrintV2(const Node& node) {
  auto state = std::make_unique<PrintV2State>();
  state->end = node.String("end", "\n");
  const std::string stream = node.String("output_stream", "stderr");
  if (stream == "stdout" || stream == "log(info)") {
    state->stream = stream == "stdout" ? stdout : stderr;
  } else if (stream == "stderr" || stream == "log(warning)" || stream == "log(error)") {
    state->stream = stderr;
  } else if (absl::string_view(stream).substr(0, 7) == "file://") {
    state->path = stream.substr(7);
  } else {
    return InvalidArgument("Unknown output stream: ", stream,
                           ", must be stdout, stderr, log(info), log(warning), log(error), or "
                           "file://");
  }
  return state;
}

Status RunPrintV2(OpContext& ctx) {
  const auto& s = ctx.state<PrintV2State>();
  const Tensor& in = ctx.input(0);
  if (in.rank() != 0)
    return InvalidArgument("Input is expected to be scalar, but got ", in.shape().ToString());
  const std::string text = in.scalar<std::string>() + s.end;
  if (s.stream != nullptr) {
    std::fwrite(text.data(), 1, text.size(), s.stream);
    std::fflush(s.stream);
    return OkStatus();
  }
  return ctx.files().Append(s.path, text);
}

Status RunFact(OpContext& ctx) {
  ctx.set_output(0, Tensor::Scalar(std::string("0! == 1")));
  return OkStatus();
}

Status RunTimestamp(OpContext& ctx) {
  ctx.set_output(0, Tensor::Scalar(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch())));
  return OkStatus();
}

// BoostedTreesBucketize: values above every boundary fall into the last bucket.
Status RunTreesBucketize(OpContext& ctx) {
  const int n = ctx.num_inputs() / 2;
  for (int f = 0; f < n; ++f) {
    const Tensor& values = ctx.input(f);
    const auto bounds = ctx.input(n + f).flat<float>();
    if (values.rank() != 1) {
      return InvalidArgument("float_values must be vectors, got shape ", values.shape().ToString());
    }
    ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(f, values.shape()));
    auto* p = out->data<int32_t>();
    for (float v : values.flat<float>()) {
      auto it = std::lower_bound(bounds.begin(), bounds.end(), v);
      if (it == bounds.end() && it != bounds.begin()) --it;
      *p++ = static_cast<int32_t>(it - bounds.begin());
    }
  }
  return OkStatus();
}

struct BucketizeState final : KernelState {
  std::vector<float> boundaries;
};

StatusOr<std::unique_ptr<KernelState>> PrepareBucketize(const Node& node) {
  auto state = std::make_unique<BucketizeState>();
  state->boundaries = node.Get<std::vector<float>>("boundaries", {});
  if (!std::is_sorted(state->boundaries.begin(), state->boundaries.end())) {
    return InvalidArgument("Expected sorted boundaries");
  }
  return state;
}

template <typename T>
Status BucketizeOf(OpContext& ctx) {
  const auto& bounds = ctx.state<BucketizeState>().boundaries;
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<int32_t>();
  for (T v : in.flat<T>()) {
    *p++ = static_cast<int32_t>(std::upper_bound(bounds.begin(), bounds.end(), v) - bounds.begin());
  }
  return OkStatus();
}

Status RunBucketize(OpContext& ctx) {
  switch (ctx.input(0).dtype()) {
    case Dtype::kInt32:
      return BucketizeOf<int32_t>(ctx);
    case Dtype::kInt64:
      return BucketizeOf<int64_t>(ctx);
    case Dtype::kFloat:
      return BucketizeOf<float>(ctx);
    default:
      return BucketizeOf<double>(ctx);
  }
}

// Adds a weight (1 without weights) to bins[row, index]; `binary` sets the bin to 1. Indices beyond
// the bins are left out.
template <typename T>
void CountBins(const Tensor& indices, const Tensor& weights, bool binary, int64_t rows,
               Tensor* out) {
  const int64_t size = out->shape().back(), n = indices.num_elements();
  const int64_t per_row = rows == 0 ? 0 : n / rows;
  T* bins = out->data<T>();
  const T* w = weights.num_elements() == 0 ? nullptr : weights.data<T>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = IndexAt(indices, i);
    if (at >= size) continue;
    T& bin = bins[i / per_row * size + at];
    bin = binary ? T(1) : static_cast<T>(bin + (w ? w[i] : T(1)));
  }
}

Status RunCount(OpContext& ctx, bool dense) {
  const Tensor &indices = ctx.input(0), &size = ctx.input(1), &weights = ctx.input(2);
  if (dense && indices.rank() > 2) {
    return InvalidArgument("Shape must be at most rank 2 but is rank ", indices.rank());
  }
  if (size.rank() != 0) {
    return InvalidArgument("Shape must be rank 0 but is rank ", size.rank());
  }
  if (dense && weights.num_elements() != 0 && !(weights.shape() == indices.shape())) {
    return InvalidArgument("`weights` must be the same shape as `arr` or a length-0 `Tensor`, in ",
                           "which case it acts as all weights equal to 1. Received ",
                           weights.shape().ToString());
  }
  const int64_t bins = IndexAt(size, 0);
  if (bins < 0) return InvalidArgument("size (", bins, ") must be non-negative");
  const bool matrix = dense && indices.rank() == 2;
  for (int64_t i = indices.num_elements() - 1; i >= 0; --i) {
    const int64_t index = IndexAt(indices, i);
    if (index >= 0) continue;
    if (!matrix) return InvalidArgument("Input arr must be non-negative!");
    // TensorFlow keeps the last that it finds.
    return InvalidArgument("Input 'in' must be non-negative! Negative input value found: ", index);
  }
  if (!dense && weights.num_elements() != 0 && weights.num_elements() != indices.num_elements()) {
    return InvalidArgument("Input indices and weights must have the same size.");
  }
  const int64_t rows = matrix ? indices.dim(0) : 1;
  Shape shape({bins});
  if (matrix) shape.Insert(0, rows);
  ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(ctx.output_type(0), shape, ctx.step().allocator));
  const bool binary = dense && ctx.node().Bool("binary_output");
  switch (out.dtype()) {
    case Dtype::kInt32:
      CountBins<int32_t>(indices, weights, binary, rows, &out);
      break;
    case Dtype::kInt64:
      CountBins<int64_t>(indices, weights, binary, rows, &out);
      break;
    case Dtype::kFloat:
      CountBins<float>(indices, weights, binary, rows, &out);
      break;
    default:
      CountBins<double>(indices, weights, binary, rows, &out);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status RunBincount(OpContext& ctx) { return RunCount(ctx, /*dense=*/false); }
Status RunDenseBincount(OpContext& ctx) { return RunCount(ctx, /*dense=*/true); }

constexpr DtypeSet kBucketTypes =
    Types(Dtype::kInt32, Dtype::kInt64, Dtype::kFloat, Dtype::kDouble);

constexpr Kernel kMiscTable[] = {
    {"Assert", "", kAnyType, "state:assert", RunAssert},
    {"Print", "", kAnyType, "state:print", RunPrint, PreparePrint},
    {"PrintV2", "", kAnyType, "state:print", RunPrintV2, PreparePrintV2},
    {"Timestamp", "", kAnyType, "state:timestamp", RunTimestamp},
    {"Fact", "", kAnyType, "state:fact", RunFact},
    {"BoostedTreesBucketize", "", kAnyType, "state:trees_bucketize", RunTreesBucketize},
    {"Bucketize", "T", kBucketTypes, "state:bucketize", RunBucketize, PrepareBucketize},
    {"Bincount", "T", kBucketTypes, "state:bincount", RunBincount},
    {"DenseBincount", "T", kBucketTypes, "state:bincount", RunDenseBincount},
};

}  // namespace

extern constinit const std::span<const Kernel> kMiscKernels = kMiscTable;

}  // namespace smelt
