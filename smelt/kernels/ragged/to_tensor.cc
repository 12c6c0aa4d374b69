// RaggedTensorToTensor: values of a ragged tensor into a dense one, padded and cut to its shape.
#include <algorithm>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

// The values of attribute row_partition_types: how an input says which rows values belong to.
enum class RowPartition : uint8_t { kFirstDimSize, kValueRowIds, kRowSplits };

struct ToTensorState final : KernelState {
  std::vector<RowPartition> partitions;
  // How many inputs partition a dimension; FIRST_DIM_SIZE only states the first size.
  int ragged_rank() const {
    return static_cast<int>(partitions.size()) -
           (partitions[0] == RowPartition::kFirstDimSize ? 1 : 0);
  }
  // The first of them.
  int first() const { return static_cast<int>(partitions.size()) - ragged_rank(); }
};

constexpr int kFirstPartition = 3;
constexpr int64_t kMaxEmptyRows = int64_t{1} << 26;

StatusOr<std::unique_ptr<KernelState>> PrepareToTensor(const Node& node) {
  auto state = std::make_unique<ToTensorState>();
  const auto names = node.Get<std::vector<std::string>>("row_partition_types", {});
  for (const std::string& name : names) {
    if (name == "FIRST_DIM_SIZE") {
      state->partitions.push_back(RowPartition::kFirstDimSize);
    } else if (name == "VALUE_ROWIDS") {
      state->partitions.push_back(RowPartition::kValueRowIds);
    } else if (name == "ROW_SPLITS") {
      state->partitions.push_back(RowPartition::kRowSplits);
    } else {
      return InvalidArgument("Unknown string for partition info type: ", name);
    }
  }
  if (names.empty()) return InvalidArgument("No row_partition_types given.");
  if (names.size() != static_cast<size_t>(node.Int("num_row_partition_tensors"))) {
    return InvalidArgument("Number of row partition tensors and types differ");
  }
  return state;
}

StatusOr<int64_t> FirstDimension(const Tensor& t, RowPartition kind) {
  if (kind != RowPartition::kValueRowIds && t.num_elements() == 0) {
    return InvalidArgument("Invalid first partition input. Tensor requires at least one element.");
  }
  switch (kind) {
    case RowPartition::kFirstDimSize:
      if (t.num_elements() != 1) {
        return InvalidArgument("The size of the first dimension must be a scalar, got shape ",
                               t.shape().ToString());
      }
      return IndexAt(t, 0);
    case RowPartition::kRowSplits:
      return t.num_elements() - 1;
    case RowPartition::kValueRowIds:
      break;
  }
  return InvalidArgument("Cannot handle VALUE_ROWIDS in first dimension.");
}

// The length of the longest row of a partition.
StatusOr<int64_t> LongestRow(const Tensor& t, RowPartition kind) {
  const int64_t n = t.num_elements();
  int64_t longest = 0;
  if (kind == RowPartition::kRowSplits) {
    for (int64_t i = 0; i + 1 < n; ++i) {
      longest = std::max(longest, IndexAt(t, i + 1) - IndexAt(t, i));
    }
    return longest;
  }
  if (kind != RowPartition::kValueRowIds) {
    return InvalidArgument("Cannot handle partition type FIRST_DIM_SIZE");
  }
  for (int64_t begin = 0; begin < n;) {
    int64_t end = begin + 1;
    while (end < n && IndexAt(t, end) == IndexAt(t, begin)) ++end;
    longest = std::max(longest, end - begin);
    begin = end;
  }
  return longest;
}

Status CheckDefaultShape(const Shape& blank, const Shape& values) {
  if (blank.rank() >= values.rank()) {
    return InvalidArgument("default_value.shape=", blank.ToString(),
                           " and rt_input.flat_values.shape=", values.ToString(),
                           " are incompatible: default_value.rank = ", blank.rank(),
                           "  must be less than rt_input.flat_values.rank = ", values.rank());
  }
  // As in TensorFlow, sizes are compared from the left here, though broadcast from the right.
  for (int i = 0; i < blank.rank(); ++i) {
    if (blank[i] == 1 || blank[i] == values[i + 1]) continue;
    const int at = i - blank.rank();
    return InvalidArgument("default_value.shape=", blank.ToString(),
                           " and rt_input.flat_values.shape=", values.ToString(),
                           " are incompatible: default_value.shape[", at, "] = ", blank[i],
                           " but rt_input.flat_values.shape[", at, "] = ", values[i + 1]);
  }
  return OkStatus();
}

// The sizes that the shape input asks for, completed by those of values; -1: as large as needed.
StatusOr<Dims> OutputSizes(const Tensor& wanted, const Shape& values, int ragged_rank) {
  const int rank = ragged_rank + values.rank();
  Dims sizes;
  if (wanted.rank() == 0) {
    if (IndexAt(wanted, 0) != -1) {
      return InvalidArgument(
          "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    }
    sizes.assign(static_cast<size_t>(rank), -1);
  } else if (wanted.rank() == 1) {
    sizes = IntsOf(wanted);
  } else {
    return InvalidArgument("Shape must be at most rank 1 but is rank ", wanted.rank());
  }
  const std::string text = PartialShape::Of(sizes).ToString();
  for (int64_t& d : sizes) {
    if (d < -1) return InvalidArgument("Dimension ", d, " must be >= -1");
  }
  if (static_cast<int>(sizes.size()) != rank) {
    return InvalidArgument("rt_input.shape and shape=", text,
                           " are incompatible: rt_input.rank = ", rank,
                           " but shape.rank = ", sizes.size());
  }
  for (int i = 1; i < values.rank(); ++i) {
    int64_t& size = sizes[static_cast<size_t>(ragged_rank + i)];
    if (size >= 0 && size != values[i]) {
      return InvalidArgument("rt_input.shape and shape=", text,
                             " are incompatible: rt_input.shape[", i + ragged_rank,
                             "] = ", values[i], " but shape[", i + ragged_rank, "] = ", size);
    }
    size = values[i];
  }
  return sizes;
}

Status NoSuchValue(int64_t i, int64_t n) {
  return InvalidArgument("Row partitions speak of value ", i, ", but there are ", n);
}

// Computes the places of the items of one dimension from the places of their rows; -1: cut off.
// `step` is the distance between items of a row, `width` how many fit in one, `most` how many items
// there may be; with `cut`, more that are all cut off.
Status PlaceItems(const Tensor& t, RowPartition kind, int64_t step, int64_t width, int64_t most,
                  bool cut, int64_t num_rows, const std::vector<int64_t>& rows,
                  std::vector<int64_t>* items) {
  items->clear();
  const int64_t n = t.num_elements();
  // Rows beyond `rows` are cut off, too.
  const auto place = [&](int64_t row) {
    return row < static_cast<int64_t>(rows.size()) ? rows[static_cast<size_t>(row)] : -1;
  };
  if (kind == RowPartition::kRowSplits) {
    if (n - 1 > num_rows) return InvalidArgument("Invalid row split size.");
    for (int64_t i = 0; i + 1 < n; ++i) {
      int64_t length = 0;
      if (__builtin_sub_overflow(IndexAt(t, i + 1), IndexAt(t, i), &length) || length < 0 ||
          (!cut && length > most - static_cast<int64_t>(items->size()))) {
        return InvalidArgument("Invalid row split size.");
      }
      const int64_t row = place(i);
      for (int64_t j = 0; j < length; ++j) {
        const int64_t at = row >= 0 && j < width ? row + j * step : -1;
        if (static_cast<int64_t>(items->size()) < most) {
          items->push_back(at);
        } else if (at >= 0) {
          return NoSuchValue(most, most);
        } else {
          break;
        }
      }
    }
    if (n > 0 && IndexAt(t, 0) != 0) {
      return InvalidArgument("Invalid row split size.");
    }
    return OkStatus();
  }
  int64_t column = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = IndexAt(t, i);
    column = i > 0 && id == IndexAt(t, i - 1) ? column + 1 : 0;
    if (id < 0 || id >= num_rows) {
      return InvalidArgument("Got ", i == 0 ? "current_value_rowid=" : "next_value_rowid=", id,
                             " which is not less than ", num_rows);
    }
    const int64_t row = place(id);
    items->push_back(row >= 0 && column < width ? row + column * step : -1);
  }
  return OkStatus();
}

// Writes values[i] to places[i] and the default value to all other places. INVALID_ARGUMENT unless
// the places that are not -1 increase.
Status WriteDense(const Tensor& values, const Tensor& blank, const std::vector<int64_t>& places,
                  Tensor* out, OpContext& ctx) {
  const Dtype dtype = values.dtype();
  const int64_t each = values.shape().Product(1, values.rank());
  const int64_t total = out->num_elements() / each;
  ASSIGN_OR_RETURN(Tensor row, ctx.Temp(dtype, Shape(values.shape().dims().subspan(1))));
  CopyDims dims;
  const Dims strides = Strides(blank.shape());
  for (int i = 1; i < values.rank(); ++i) {
    const int at = i - (values.rank() - blank.rank());
    if (at >= 0 && blank.dim(at) != 1 && blank.dim(at) != values.dim(i)) {
      return InvalidArgument("Error broadcasting default_value");
    }
    const int64_t from = at < 0 || blank.dim(at) == 1 ? 0 : strides[static_cast<size_t>(at)];
    dims.push_back({values.dim(i), values.shape().Product(i + 1, values.rank()), from});
  }
  CopyStrided(dtype, row.raw(), blank.raw(), dims);
  int64_t next = 0;
  const auto pad_to = [&](int64_t end) {
    for (; next < end; ++next) CopyRun(dtype, At(dtype, out->raw(), next * each), row.raw(), each);
  };
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) continue;
    if (static_cast<int64_t>(i) >= values.dim(0)) {
      return NoSuchValue(static_cast<int64_t>(i), values.dim(0));
    }
    if (places[i] < next || places[i] >= total) {
      return InvalidArgument("Row ids must not decrease");
    }
    pad_to(places[i]);
    CopyRun(dtype, At(dtype, out->raw(), next++ * each),
            At(dtype, values.raw(), static_cast<int64_t>(i) * each), each);
  }
  pad_to(total);
  return OkStatus();
}

Status RunRaggedTensorToTensor(OpContext& ctx) {
  const auto& state = ctx.state<ToTensorState>();
  const Tensor& values = ctx.input(1);
  const Tensor& blank = ctx.input(2);
  const int ragged_rank = state.ragged_rank();
  const auto partition = [&](int d) -> const Tensor& {
    return ctx.input(kFirstPartition + state.first() + d);
  };
  ASSIGN_OR_RETURN(const int64_t first_dim,
                   FirstDimension(ctx.input(kFirstPartition), state.partitions[0]));
  if (first_dim < 0) return InvalidArgument("Dimension ", first_dim, " must be >= 0");
  RETURN_IF_ERROR(CheckDefaultShape(blank.shape(), values.shape()));
  ASSIGN_OR_RETURN(Dims sizes, OutputSizes(ctx.input(0), values.shape(), ragged_rank));
  if (sizes[0] < 0) sizes[0] = first_dim;
  for (int d = 0; d < ragged_rank; ++d) {
    if (sizes[d + 1] >= 0) continue;
    ASSIGN_OR_RETURN(sizes[d + 1], LongestRow(partition(d), state.partitions[state.first() + d]));
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(sizes));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  // Places count in rows of `values`.
  int64_t step = shape.Product(1, ragged_rank + 1);
  const int64_t rows = std::min({first_dim, shape[0], ragged_rank > 0 ? first_dim : values.dim(0)});
  std::vector<int64_t> places, items;
  for (int64_t i = 0; i < rows; ++i) places.push_back(i * step);
  const int64_t n = values.dim(0);
  for (int d = 0; d < ragged_rank; ++d) {
    step /= shape[d + 1];
    // An outer dimension may have more items than there are values, if some are empty; the limit
    // bounds what a small input can allocate.
    const bool last = d + 1 == ragged_rank;
    const int64_t most = last ? n : std::max(n, kMaxEmptyRows);
    RETURN_IF_ERROR(
        PlaceItems(partition(d), state.partitions[state.first() + d], step, shape[d + 1], most,
                   last, d == 0 ? first_dim : static_cast<int64_t>(places.size()), places, &items));
    std::swap(places, items);
  }
  return WriteDense(values, blank, places, out, ctx);
}

constexpr Kernel kRaggedToTensorTable[] = {
    {"RaggedTensorToTensor", "", kAnyType, "ragged:to_tensor", RunRaggedTensorToTensor,
     PrepareToTensor},
};

}  // namespace

extern constinit const std::span<const Kernel> kRaggedToTensorKernels = kRaggedToTensorTable;

}  // namespace smelt
