// Counts of small integers by row, of values that come dense, sparse or ragged: into dense rows of
// bins (SparseBincount, RaggedBincount) or sparse ones (...CountSparseOutput).
#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/sparse/sparse_tensor.h"

namespace smelt {
namespace {

// ---- dense bins ----

StatusOr<std::unique_ptr<KernelState>> PrepareBins(const Node& node) {
  return ReadIntAttrs(node, {"binary_output"});
}

StatusOr<int64_t> NumBins(const Tensor& size) {
  if (size.rank() != 0) return InvalidArgument("Shape must be rank 0 but is rank ", size.rank());
  const int64_t bins = IndexAt(size, 0);
  if (bins < 0) return InvalidArgument("size (", bins, ") must be non-negative");
  return bins;
}

// Adds 1 or a weight to bin (row(i), values[i]); values past the bins are left out.
template <typename F>
Status AddToBins(OpContext& ctx, const Tensor& values, const Tensor& weights, const Shape& shape,
                 F&& row) {
  const int64_t n = values.num_elements();
  RETURN_IF_ERROR(CheckedShape(shape.dims()).status());
  ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(ctx.output_type(0), shape, ctx.step().allocator));
  const int64_t size = shape.back();
  const bool binary = ctx.state<IntAttrs>()[0] != 0;
  Status counted;
  VisitReal(out.dtype(), [&]<typename T>() {
    const T* w = weights.num_elements() == 0 ? nullptr : weights.data<T>();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = IndexAt(values, i);
      if (at < 0 || at >= size) continue;
      // Values that are left out need no weight.
      if (w != nullptr && i >= weights.num_elements()) {
        counted = InvalidArgument("Input indices and weights must have the same size.");
        return;
      }
      T& bin = out.data<T>()[row(i) * size + at];
      bin = binary ? T(1) : AddValues(bin, w != nullptr ? w[i] : T(1));
    }
  });
  RETURN_IF_ERROR(counted);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Splits from 0 to the number of values, so that every value has a row.
Status CheckCountSplits(const Tensor& splits, int64_t num_values) {
  const int64_t n = splits.num_elements();
  if (splits.data<int64_t>()[0] != 0) {
    return InvalidArgument("Splits must start with 0, not with ", splits.data<int64_t>()[0]);
  }
  if (splits.data<int64_t>()[n - 1] != num_values) {
    return InvalidArgument("Splits must end with the number of values, got ",
                           splits.data<int64_t>()[n - 1], " instead of ", num_values);
  }
  return OkStatus();
}

// The rows of values by checked splits: asked for i = 0, 1, 2, ...
class SplitRows {
 public:
  explicit SplitRows(const Tensor& splits) : splits_(splits.data<int64_t>()) {}
  int64_t operator()(int64_t i) {
    while (i >= splits_[next_]) ++next_;
    return next_ - 1;
  }

 private:
  const int64_t* splits_;
  int64_t next_ = 1;
};

Status RunRaggedBincount(OpContext& ctx) {
  const Tensor& splits = ctx.input(0);
  const Tensor& values = ctx.input(1);
  ASSIGN_OR_RETURN(const int64_t bins, NumBins(ctx.input(2)));
  if (splits.num_elements() == 0) return InvalidArgument("Splits must be non-empty");
  RETURN_IF_ERROR(CheckCountSplits(splits, values.num_elements()));
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    if (IndexAt(values, i) < 0) return InvalidArgument("Input must be non-negative");
  }
  SplitRows rows(splits);
  return AddToBins(ctx, values, ctx.input(3), Shape({splits.num_elements() - 1, bins}),
                   [&](int64_t i) { return rows(i); });
}

Status RunSparseBincount(OpContext& ctx) {
  const Tensor& values = ctx.input(1);
  ASSIGN_OR_RETURN(const int64_t bins, NumBins(ctx.input(3)));
  ASSIGN_OR_RETURN(const SparseView view,
                   ViewSparse(ctx.input(0), values, ctx.input(2), true, SparseWords::kSparse));
  if (view.rank() == 0) return InvalidArgument("dense_shape must not be empty");
  if (view.rank() > 1) {
    return AddToBins(ctx, values, ctx.input(4), Shape({view.shape[0], bins}),
                     [&](int64_t i) { return view.row(i)[0]; });
  }
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    if (IndexAt(values, i) < 0) return InvalidArgument("Input arr must be non-negative!");
  }
  return AddToBins(ctx, values, ctx.input(4), Shape({bins}), [](int64_t) { return 0; });
}

// ---- sparse bins ----

StatusOr<std::unique_ptr<KernelState>> PrepareSparseBins(const Node& node) {
  return ReadIntAttrs(node, {"minlength", "maxlength", "binary_output"});
}

Status CheckCounted(const Tensor& values) {
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    if (IndexAt(values, i) < 0) return InvalidArgument("Input values must all be non-negative");
  }
  return OkStatus();
}

// Counts by (row, value) in that order. `rows` < 0: there are no rows, only values.
// REQUIRES: CheckCounted(values).
template <typename F>
Status CountSparse(OpContext& ctx, const Tensor& values, const Tensor& weights, int64_t rows,
                   F&& row) {
  const auto& attrs = ctx.state<IntAttrs>();
  const int64_t min_length = attrs[0], max_length = attrs[1], n = values.num_elements();
  struct Counted {
    int64_t row, value, from;
  };
  std::vector<Counted> found;
  int64_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t value = IndexAt(values, i), r = row(i);
    if (max_length >= 0 && value >= max_length) continue;
    found.push_back({r, value, i});
    largest = std::max(largest, value);
  }
  std::sort(found.begin(), found.end(), [](const Counted& a, const Counted& b) {
    return std::tie(a.row, a.value, a.from) < std::tie(b.row, b.value, b.from);
  });
  const auto begins = [&](size_t k) {
    return k == 0 || found[k].row != found[k - 1].row || found[k].value != found[k - 1].value;
  };
  int64_t total = 0;
  for (size_t k = 0; k < found.size(); ++k) total += begins(k);
  const int64_t rank = rows < 0 ? 1 : 2;
  ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(0, Shape({total, rank})));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(1, Shape({total})));
  int64_t* to = indices->data<int64_t>();
  for (size_t k = 0; k < found.size(); ++k) {
    if (!begins(k)) continue;
    if (rows >= 0) *to++ = found[k].row;
    *to++ = found[k].value;
  }
  VisitReal(out->dtype(), [&]<typename T>() {
    const T* w = weights.num_elements() == 0 ? nullptr : weights.data<T>();
    T* count = out->data<T>() - 1;
    for (size_t k = 0; k < found.size(); ++k) {
      if (begins(k)) *++count = T(0);
      *count = attrs[2] != 0 ? T(1) : AddValues(*count, w != nullptr ? w[found[k].from] : T(1));
    }
  });
  // One past the largest int64 wraps.
  const auto past = static_cast<int64_t>(static_cast<uint64_t>(largest) + 1);
  const int64_t length = max_length >= 0 ? max_length : std::max(past, min_length);
  return rows < 0 ? SetInts(ctx, 2, Dims{length}) : SetInts(ctx, 2, Dims{rows, length});
}

Status CheckWeights(const Tensor& weights, const Tensor& values, absl::string_view name) {
  if (weights.num_elements() == 0 || weights.shape() == values.shape()) return OkStatus();
  return InvalidArgument("Weights and ", name,
                         " must have the same shape. Weight shape: ", weights.shape().ToString(),
                         "; ", name, " shape: ", values.shape().ToString());
}

Status RunDenseCountSparse(OpContext& ctx) {
  const Tensor& values = ctx.input(0);
  const Tensor& weights = ctx.input(1);
  if (values.rank() != 1 && values.rank() != 2) {
    return InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ",
                           values.shape().ToString());
  }
  RETURN_IF_ERROR(CheckCounted(values));
  RETURN_IF_ERROR(CheckWeights(weights, values, "data"));
  if (values.rank() == 1) {
    return CountSparse(ctx, values, weights, -1, [](int64_t) { return int64_t{0}; });
  }
  if (values.dim(0) == 0) return InvalidArgument("Invalid input: Shapes dimension cannot be 0.");
  const int64_t width = values.dim(1);
  return CountSparse(ctx, values, weights, values.dim(0), [&](int64_t i) { return i / width; });
}

Status RunSparseCountSparse(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& shape = ctx.input(2);
  const Tensor& weights = ctx.input(3);
  if (indices.rank() != 2) {
    return InvalidArgument("Input indices must be a 2-dimensional tensor. Got: ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("Input values must be a vector. Got: ", values.shape().ToString());
  }
  if (shape.rank() != 1) {
    return InvalidArgument("Input shape must be a vector. Got: ", shape.shape().ToString());
  }
  if (values.dim(0) != indices.dim(0)) {
    return InvalidArgument("Number of values must match first dimension of indices.Got ",
                           values.dim(0), " values, indices shape: ", indices.shape().ToString());
  }
  if (shape.dim(0) != indices.dim(1)) {
    return InvalidArgument("Number of dimensions must match second dimension of indices.Got ",
                           shape.dim(0),
                           " dimensions, indices shape: ", indices.shape().ToString());
  }
  const int64_t rank = shape.num_elements();
  if (rank == 0) return InvalidArgument("The shape argument requires at least one element.");
  RETURN_IF_ERROR(CheckWeights(weights, values, "values"));
  const int64_t* at = indices.data<int64_t>();
  const int64_t* sizes = shape.data<int64_t>();
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t limit = sizes[i % rank];
    if (at[i] >= 0 && at[i] < limit) continue;
    return InvalidArgument(
        "Invalid index value at ", i / rank, ": dimension ", i % rank, " has value ", at[i],
        " which is not in [0, ", limit, ") (as given by dense shape Tensor<type: int64 shape: [",
        rank, "] values: ", absl::StrJoin(sizes, sizes + std::min<int64_t>(rank, 3), " "),
        rank > 3 ? "..." : "", ">");
  }
  if (sizes[0] < 0) return InvalidArgument("Dimension ", sizes[0], " must be >= 0");
  RETURN_IF_ERROR(CheckCounted(values));
  return CountSparse(ctx, values, weights, rank == 1 ? -1 : sizes[0],
                     [&](int64_t i) { return rank == 1 ? 0 : at[i * rank]; });
}

Status RunRaggedCountSparse(OpContext& ctx) {
  const Tensor& splits = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& weights = ctx.input(2);
  RETURN_IF_ERROR(CheckWeights(weights, values, "values"));
  if (splits.num_elements() < 2) {
    return InvalidArgument("Must provide at least 2 elements for the splits argument");
  }
  RETURN_IF_ERROR(CheckCountSplits(splits, values.num_elements()));
  SplitRows rows(splits);
  RETURN_IF_ERROR(CheckCounted(values));
  return CountSparse(ctx, values, weights, splits.num_elements() - 1,
                     [&](int64_t i) { return rows(i); });
}

constexpr DtypeSet kCountTypes = Types(Dtype::kInt32, Dtype::kInt64, Dtype::kFloat, Dtype::kDouble);

constexpr Kernel kSparseCountTable[] = {
    {"RaggedBincount", "T", kCountTypes, "sparse:bincount", RunRaggedBincount, PrepareBins},
    {"SparseBincount", "T", kCountTypes, "sparse:bincount", RunSparseBincount, PrepareBins},
    {"DenseCountSparseOutput", "", kAnyType, "sparse:count", RunDenseCountSparse,
     PrepareSparseBins},
    {"SparseCountSparseOutput", "", kAnyType, "sparse:count", RunSparseCountSparse,
     PrepareSparseBins},
    {"RaggedCountSparseOutput", "", kAnyType, "sparse:count", RunRaggedCountSparse,
     PrepareSparseBins},
};

}  // namespace

extern constinit const std::span<const Kernel> kSparseCountKernels = kSparseCountTable;

}  // namespace smelt
