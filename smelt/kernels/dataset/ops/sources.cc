// Datasets made from no others: of tensors, ranges, files, generators.
#include "smelt/kernels/dataset/sources.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "smelt/kernels/dataset/functions.h"
#include "smelt/kernels/dataset/ops/dataset_op.h"

namespace smelt {
namespace {

Status RunTensorDataset(OpContext& ctx) {
  Element all;
  for (int i = 0; i < ctx.num_inputs(); ++i) all.push_back(ctx.TakeInput(i));
  return SetDataset(ctx, {}, 1, OneElement(std::move(all)));
}

Status RunTensorSliceDataset(OpContext& ctx) {
  Element all;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).rank() == 0) {
      return InvalidArgument("All components must be at least 1-dimensional");
    }
    all.push_back(ctx.TakeInput(i));
    if (all.back().dim(0) != all[0].dim(0)) {
      return InvalidArgument("All components must have the same size in the 0th dimension");
    }
  }
  const int64_t n = all[0].dim(0);
  return SetDataset(ctx, {}, n, RowsOfElement(std::move(all)));
}

// One sparse tensor for each row of the first dimension.
Status RunSparseTensorSliceDataset(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& dense_shape = ctx.input(2);
  if (indices.rank() != 2) {
    return InvalidArgument("Input indices must be a matrix. Got: ", indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("Input values must be a vector. Got: ", values.shape().ToString());
  }
  if (dense_shape.rank() != 1) {
    return InvalidArgument("Input shape must be a vector. Got: ", dense_shape.shape().ToString());
  }
  const int64_t rank = dense_shape.dim(0), n = indices.dim(0);
  if (n != values.dim(0)) {
    return InvalidArgument("Number of values must match first dimension of indices. Got ",
                           values.dim(0), " values, indices shape: ", indices.shape().ToString());
  }
  if (indices.dim(1) != rank) {
    return InvalidArgument("Number of dimensions must match second dimension of indices. Got ",
                           rank, " dimensions, indices shape: ", indices.shape().ToString());
  }
  if (rank < 1) {
    return InvalidArgument(
        "The shape argument requires at least one element. Got shape.NumElements() = ", rank);
  }
  const int64_t rows = dense_shape.data<int64_t>()[0];
  int64_t last = -1;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = indices.data<int64_t>()[i * rank];
    if (row < last) {
      return Unimplemented(
          "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered ",
          "input is not currently supported.");
    }
    last = row;
  }
  if (n > 0 && (indices.data<int64_t>()[0] < 0 || last >= rows)) {
    return InvalidArgument("indices of the first dimension must lie within [0, ", rows, ")");
  }
  Dataset dataset;
  dataset.op = std::string(ctx.node().op());
  dataset.types = {Dtype::kInt64, values.dtype(), Dtype::kInt64};
  dataset.shapes = {PartialShape::Of({-1, rank - 1}), PartialShape::Of({-1}),
                    PartialShape::Of({rank - 1})};
  dataset.cardinality = rows;
  ASSIGN_OR_RETURN(Tensor row_shape, ctx.Temp(Dtype::kInt64, Shape({rank - 1})));
  std::copy_n(dense_shape.data<int64_t>() + 1, rank - 1, row_shape.data<int64_t>());
  dataset.make = SparseRows(indices, values, std::move(row_shape), rows);
  ctx.set_output(0, DatasetTensor(std::move(dataset)));
  return OkStatus();
}

Status RunRangeDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t start, CountInput(ctx, 0, "start"));
  ASSIGN_OR_RETURN(const int64_t stop, CountInput(ctx, 1, "stop"));
  ASSIGN_OR_RETURN(const int64_t step, CountInput(ctx, 2, "step"));
  if (step == 0) return InvalidArgument("step must be a non-zero integer.");
  const std::vector<Dtype> types = StatedTypes(ctx.node());
  if (types.size() != 1) return InvalidArgument("a range has one component");
  RETURN_IF_ERROR(RangeValue(types[0], 0).status());
  // Distances as unsigned numbers: they may not fit otherwise.
  const auto distance =
      static_cast<uint64_t>(step > 0 ? stop - uint64_t(start) : start - uint64_t(stop));
  const uint64_t size = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const bool some = step > 0 ? start < stop : start > stop;
  const uint64_t n = some ? (distance - 1) / size + 1 : 0;
  return SetDataset(
      ctx, {}, static_cast<int64_t>(std::min<uint64_t>(n, std::numeric_limits<int64_t>::max())),
      RangeElements(types[0], start, step, n));
}

// ---- files ----

// Output 0: the dataset of FileElements.
Status SetFileDataset(OpContext& ctx, size_t n, OpenRecords open) {
  Dataset dataset;
  dataset.op = std::string(ctx.node().op());
  dataset.types = {Dtype::kString};
  dataset.shapes = {Shape()};
  dataset.make = FileElements(n, std::move(open));
  ctx.set_output(0, DatasetTensor(std::move(dataset)));
  return OkStatus();
}

StatusOr<std::vector<std::string>> FileNames(const OpContext& ctx) {
  const Tensor& t = ctx.input(0);
  if (t.rank() > 1) return InvalidArgument("`filenames` must be a scalar or a vector.");
  const auto names = t.flat<std::string>();
  return std::vector<std::string>(names.begin(), names.end());
}

StatusOr<std::string> CompressionInput(const OpContext& ctx, int i) {
  ASSIGN_OR_RETURN(std::string compression, ScalarInput<std::string>(ctx, i, "compression_type"));
  if (compression != "" && compression != "ZLIB" && compression != "GZIP") {
    return InvalidArgument("Unsupported compression_type.");
  }
  return compression;
}

Status CheckBufferSize(const OpContext& ctx, int i) {
  ASSIGN_OR_RETURN(const int64_t size, CountInput(ctx, i, "buffer_size"));
  if (size >= 0) return OkStatus();
  return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
}

Status RunTextLineDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto names, FileNames(ctx));
  ASSIGN_OR_RETURN(const std::string compression, CompressionInput(ctx, 1));
  RETURN_IF_ERROR(CheckBufferSize(ctx, 2));
  return SetFileDataset(ctx, names.size(), [=, files = ctx.files()](size_t i) {
    return OpenLines(files, names[i], compression, CarriageReturns::kDropAll, 0);
  });
}

Status RunTfRecordDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto names, FileNames(ctx));
  ASSIGN_OR_RETURN(std::string compression, ScalarInput<std::string>(ctx, 1, "compression_type"));
  // As in TensorFlow, an unknown compression is none, and any buffer size will do.
  if (compression != "ZLIB" && compression != "GZIP") compression.clear();
  std::vector<int64_t> offsets;
  if (ctx.num_inputs() > 3) {
    const auto given = ctx.input(3).flat<int64_t>();
    offsets.assign(given.begin(), given.end());
    if (!offsets.empty() && offsets.size() != names.size()) {
      return InvalidArgument("TFRecordDatasetV2: Offsets must match number of filenames.");
    }
  }
  return SetFileDataset(ctx, names.size(), [=, files = ctx.files()](size_t i) {
    return OpenTfRecords(files, names[i], compression, offsets.empty() ? 0 : offsets[i]);
  });
}

Status RunFixedLengthDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const auto names, FileNames(ctx));
  FixedLengths lengths;
  ASSIGN_OR_RETURN(lengths.header, CountInput(ctx, 1, "header_bytes"));
  ASSIGN_OR_RETURN(lengths.record, CountInput(ctx, 2, "record_bytes"));
  ASSIGN_OR_RETURN(lengths.footer, CountInput(ctx, 3, "footer_bytes"));
  if (lengths.header < 0) return InvalidArgument("`header_bytes` must be >= 0");
  if (lengths.record <= 0) return InvalidArgument("`record_bytes` must be > 0");
  if (lengths.footer < 0) return InvalidArgument("`footer_bytes` must be >= 0");
  RETURN_IF_ERROR(CheckBufferSize(ctx, 4));
  std::string compression;
  if (ctx.num_inputs() > 5) {
    ASSIGN_OR_RETURN(compression, CompressionInput(ctx, 5));
  }
  return SetFileDataset(ctx, names.size(), [=, files = ctx.files()](size_t i) {
    return OpenFixedLength(files, names[i], compression, lengths, OddLength::kRefuse);
  });
}

// ---- generators ----

Status RunGeneratorDataset(OpContext& ctx) {
  const Node& node = ctx.node();
  const auto [init_first, init_count] = InputRange(node, "init_func_other_args");
  const auto [next_first, next_count] = InputRange(node, "next_func_other_args");
  const auto [last_first, last_count] = InputRange(node, "finalize_func_other_args");
  ASSIGN_OR_RETURN(const auto init, FunctionArgument(ctx, "init_func", init_first, init_count, {}));
  ASSIGN_OR_RETURN(const auto next,
                   FunctionArgument(ctx, "next_func", next_first, next_count, StatedTypes(node)));
  ASSIGN_OR_RETURN(const auto finalize,
                   FunctionArgument(ctx, "finalize_func", last_first, last_count, {}));
  return SetDataset(ctx, {}, kUnknownCount, GeneratedElements(init, next, finalize));
}

constexpr Kernel kDatasetSourceTable[] = {
    {"TensorDataset", "", kAnyType, "dataset:tensor", RunTensorDataset},
    {"TensorSliceDataset", "", kAnyType, "dataset:tensor_slice", RunTensorSliceDataset},
    {"SparseTensorSliceDataset", "", kAnyType, "dataset:sparse_slice", RunSparseTensorSliceDataset},
    {"RangeDataset", "", kAnyType, "dataset:range", RunRangeDataset},
    {"TextLineDataset", "", kAnyType, "dataset:text_line", RunTextLineDataset},
    {"TFRecordDataset", "", kAnyType, "dataset:tf_record", RunTfRecordDataset},
    {"FixedLengthRecordDataset", "", kAnyType, "dataset:fixed_length", RunFixedLengthDataset},
    {"GeneratorDataset", "", kAnyType, "dataset:generator", RunGeneratorDataset},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetSourceKernels = kDatasetSourceTable;

}  // namespace smelt
