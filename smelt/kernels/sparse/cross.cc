// Crossed features: every combination of a row's features, one of each column, joined as text or
// hashed. SparseCross, SparseCrossV2, SparseCrossHashed and RaggedCross.
#include <algorithm>
#include <limits>

#include "smelt/base/hash.h"
#include "smelt/base/little_endian.h"
#include "smelt/kernels/common/arguments.h"

namespace smelt {
namespace {

// A column of features by row. Rows of a sparse or ragged column lie one after another.
struct CrossColumn {
  const Tensor* values = nullptr;
  Tensor starts;  // [rows + 1]; invalid: dense, each row has `width` features
  int64_t width = 0;

  int64_t begin(int64_t row) const {
    return starts.valid() ? starts.data<int64_t>()[row] : row * width;
  }
  int64_t count(int64_t row) const { return begin(row + 1) - begin(row); }
  bool text() const { return values->dtype() == Dtype::kString; }
  std::string Text(int64_t i) const {
    return text() ? values->data<std::string>()[i] : absl::StrCat(values->data<int64_t>()[i]);
  }
};

// How a combination becomes a number.
struct CrossHash {
  bool keyed = false;  // starts from `key`
  uint64_t key = 0;
  bool strong = false;  // SipHash instead of fingerprints
  uint64_t salt[2] = {0, 0};
  int64_t buckets = 0;

  uint64_t Feature(const CrossColumn& c, int64_t i) const {
    if (!c.text()) {
      const auto value = static_cast<uint64_t>(c.values->data<int64_t>()[i]);
      if (keyed || !c.starts.valid()) return value;
      // SparseCrossHashed fingerprints the low half of integers in sparse columns.
      char bytes[4];
      StoreLittle(static_cast<uint32_t>(value), bytes);
      return Fingerprint64(absl::string_view(bytes, sizeof(bytes)));
    }
    const std::string& s = c.values->data<std::string>()[i];
    return strong ? SipHash(salt[0], salt[1], s) : Fingerprint64(s);
  }
  static uint64_t Mix(uint64_t a, uint64_t b) {
    constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
    const auto shift = [](uint64_t v) { return v ^ (v >> 47); };
    const uint64_t mixed = (a ^ kMul ^ (shift(b * kMul) * kMul)) * kMul;
    return shift(shift(mixed) * kMul);
  }
  int64_t Bucket(uint64_t hash) const {
    const int64_t n = buckets > 0 ? buckets : std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(hash % static_cast<uint64_t>(n));
  }
};

// Combinations of a row; INVALID_ARGUMENT when there are too many to count.
StatusOr<int64_t> CountCrosses(std::span<const CrossColumn> columns, int64_t row) {
  int64_t n = 1;
  for (const CrossColumn& c : columns) {
    const int64_t count = c.count(row);
    if (count == 0) return 0;
    if (n != 0 && __builtin_mul_overflow(n, count, &n)) n = -1;
    if (n < 0) return InvalidArgument("The crosses are more than 2**63 - 1 elements");
  }
  return n;
}

// Writes all combinations of a row to `out`, from `to` on; the last column changes fastest.
void WriteCrosses(std::span<const CrossColumn> columns, int64_t row, int64_t n,
                  absl::string_view separator, const CrossHash& hash, Tensor* out, int64_t to) {
  std::vector<int64_t> at(columns.size(), 0);
  for (int64_t i = 0; i < n; ++i) {
    if (out->dtype() == Dtype::kString) {
      std::string& text = out->data<std::string>()[to + i];
      for (size_t c = 0; c < columns.size(); ++c) {
        if (c > 0) text.append(separator.data(), separator.size());
        text += columns[c].Text(columns[c].begin(row) + at[c]);
      }
    } else {
      uint64_t mixed = hash.key;
      for (size_t c = 0; c < columns.size(); ++c) {
        const uint64_t feature = hash.Feature(columns[c], columns[c].begin(row) + at[c]);
        mixed = c == 0 && !hash.keyed ? feature : CrossHash::Mix(mixed, feature);
      }
      out->data<int64_t>()[to + i] = hash.Bucket(mixed);
    }
    for (size_t c = columns.size(); c-- > 0;) {
      if (++at[c] < columns[c].count(row)) break;
      at[c] = 0;
    }
  }
}

// Where the rows of sparse indices begin. TensorFlow walks the indices once: SparseCross takes
// those that name the row at hand, RaggedCross those that do not lie beyond it.
StatusOr<Tensor> CrossStarts(OpContext& ctx, const Tensor& indices, int64_t rows, bool exact) {
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Dims{rows}));
  ASSIGN_OR_RETURN(Tensor starts, ctx.Temp(Dtype::kInt64, Shape({shape[0] + 1})));
  const int64_t n = indices.dim(0), width = indices.dim(1);
  const int64_t* at = indices.data<int64_t>();
  int64_t i = 0;
  starts.data<int64_t>()[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    while (i < n && (exact ? at[i * width] == row : at[i * width] <= row)) ++i;
    starts.data<int64_t>()[row + 1] = i;
  }
  return starts;
}

// ---- SparseCross and its versions: sparse columns, then dense ones ----

struct CrossInputs {
  int sparse = 0, dense = 0;
  const Tensor& indices(const OpContext& ctx, int i) const { return ctx.input(i); }
  const Tensor& values(const OpContext& ctx, int i) const { return ctx.input(sparse + i); }
  const Tensor& shape(const OpContext& ctx, int i) const { return ctx.input(2 * sparse + i); }
  const Tensor& dense_values(const OpContext& ctx, int i) const {
    return ctx.input(3 * sparse + i);
  }
};

Status CheckCrossInputs(OpContext& ctx, const CrossInputs& in) {
  for (int i = 0; i < in.sparse; ++i) {
    const Tensor& t = in.indices(ctx, i);
    if (t.rank() != 2) {
      return InvalidArgument("Input indices should be a matrix but received shape ",
                             t.shape().ToString(), " at position ", i);
    }
    if (t.dim(1) != 2) {
      return InvalidArgument("Expected D2 of index to be 2 got ", t.dim(1), " at position ", i);
    }
  }
  for (int i = 0; i < in.sparse; ++i) {
    const Tensor& t = in.values(ctx, i);
    if (t.rank() != 1) {
      return InvalidArgument("Input values should be a vector but received shape ",
                             t.shape().ToString(), " at position ", i);
    }
    if (t.dim(0) != in.indices(ctx, i).dim(0)) {
      return InvalidArgument("Expected size of values to be ", in.indices(ctx, i).dim(0), " got ",
                             t.dim(0), " at position ", i);
    }
  }
  for (int i = 0; i < in.sparse; ++i) {
    const Tensor& t = in.shape(ctx, i);
    if (t.rank() != 1) {
      return InvalidArgument("Input shapes should be a vector but received shape ",
                             t.shape().ToString(), " at position ", i);
    }
    if (t.dim(0) != 2) {
      return InvalidArgument("shape should imply a 2D tensor, but got ", t.shape().ToString(),
                             " at position ", i);
    }
  }
  for (int i = 0; i < in.dense; ++i) {
    const Tensor& t = in.dense_values(ctx, i);
    if (t.rank() == 2) continue;
    return InvalidArgument("Dense inputs should be a matrix but received shape ",
                           t.shape().ToString(), " at position ", i);
  }
  return OkStatus();
}

StatusOr<int64_t> CrossBatch(OpContext& ctx, const CrossInputs& in) {
  if (in.sparse + in.dense == 0) return InvalidArgument("There is nothing to cross");
  const int64_t batch =
      in.sparse > 0 ? IndexAt(in.shape(ctx, 0), 0) : in.dense_values(ctx, 0).dim(0);
  for (int i = 0; i < in.sparse; ++i) {
    const int64_t rows = IndexAt(in.shape(ctx, i), 0);
    if (rows != batch) {
      return InvalidArgument("Expected batch size ", batch, " got ", rows, " at position ", i);
    }
  }
  for (int i = 0; i < in.dense; ++i) {
    const int64_t rows = in.dense_values(ctx, i).dim(0);
    if (rows != batch) {
      return InvalidArgument("Expected batch size ", batch, " got ", rows, " at dense tensor ", i);
    }
  }
  return batch;
}

Status CrossSparse(OpContext& ctx, const CrossInputs& in, absl::string_view separator,
                   const CrossHash& hash) {
  RETURN_IF_ERROR(CheckCrossInputs(ctx, in));
  ASSIGN_OR_RETURN(const int64_t batch, CrossBatch(ctx, in));
  std::vector<CrossColumn> columns;
  for (int i = 0; i < in.sparse; ++i) {
    CrossColumn c{&in.values(ctx, i)};
    ASSIGN_OR_RETURN(c.starts, CrossStarts(ctx, in.indices(ctx, i), batch, true));
    columns.push_back(std::move(c));
  }
  for (int i = 0; i < in.dense; ++i) {
    const Tensor& t = in.dense_values(ctx, i);
    columns.push_back({&t, Tensor(), t.dim(1)});
  }
  for (const CrossColumn& c : columns) {
    if (hash.strong && !c.text()) {
      return InvalidArgument("strong_hash needs columns of strings");
    }
  }
  int64_t total = 0, widest = 0;
  for (int64_t row = 0; row < batch; ++row) {
    ASSIGN_OR_RETURN(const int64_t n, CountCrosses(columns, row));
    widest = std::max(widest, n);
    if (__builtin_add_overflow(total, n, &total)) {
      return InvalidArgument("The crosses are more than 2**63 - 1 elements");
    }
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Dims{total, 2}));
  ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(0, shape));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(1, Shape({total})));
  int64_t to = 0;
  for (int64_t row = 0; row < batch; ++row) {
    ASSIGN_OR_RETURN(const int64_t n, CountCrosses(columns, row));
    for (int64_t i = 0; i < n; ++i) {
      indices->data<int64_t>()[2 * (to + i)] = row;
      indices->data<int64_t>()[2 * (to + i) + 1] = i;
    }
    WriteCrosses(columns, row, n, separator, hash, out, to);
    to += n;
  }
  return SetInts(ctx, 2, Dims{batch, widest});
}

struct CrossState final : KernelState {
  CrossInputs inputs;
  CrossHash hash;
  bool words_only = false;  // SparseCross: internal_type is string
  std::string order;        // RaggedCross: 'R', 'S' and 'D' by column
  int ragged = 0;
};

StatusOr<std::unique_ptr<KernelState>> PrepareSparseCross(const Node& node) {
  auto state = std::make_unique<CrossState>();
  state->inputs.sparse = static_cast<int>(node.Int("N"));
  state->inputs.dense = static_cast<int>(node.Get<std::vector<Dtype>>("dense_types", {}).size());
  state->hash.keyed = true;
  state->hash.key = static_cast<uint64_t>(node.Int("hash_key"));
  state->hash.buckets = node.Int("num_buckets");
  state->words_only = node.Type("internal_type") == Dtype::kString;
  const auto sparse_types = node.Get<std::vector<Dtype>>("sparse_types", {});
  if (sparse_types.size() != static_cast<size_t>(state->inputs.sparse)) {
    return InvalidArgument("Expected ", state->inputs.sparse, " input values, got ",
                           sparse_types.size());
  }
  return state;
}

Status RunSparseCross(OpContext& ctx) {
  const auto& state = ctx.state<CrossState>();
  const CrossInputs& in = state.inputs;
  for (int i = 0; state.words_only && i < in.sparse + in.dense; ++i) {
    const bool sparse = i < in.sparse;
    const Tensor& t = sparse ? in.values(ctx, i) : in.dense_values(ctx, i - in.sparse);
    if (t.dtype() != Dtype::kString) {
      return InvalidArgument(sparse ? "Input values" : "Dense inputs",
                             " should be of internal type 7 but received 9 at position ",
                             sparse ? i : i - in.sparse);
    }
  }
  return CrossSparse(ctx, in, "_X_", state.hash);
}

Status RunSparseCrossV2(OpContext& ctx) {
  const Tensor& separator = ctx.input(ctx.num_inputs() - 1);
  if (separator.rank() != 0) {
    return InvalidArgument("Input separator should be a scalar. Received: Tensor<type: string ",
                           "shape: ", separator.shape().ToString(), ">");
  }
  return CrossSparse(ctx, ctx.state<CrossState>().inputs, separator.scalar<std::string>(), {});
}

Status RunSparseCrossHashed(OpContext& ctx) {
  const int last = ctx.num_inputs() - 1;
  const Tensor& buckets = ctx.input(last - 2);
  const Tensor& strong = ctx.input(last - 1);
  const Tensor& salt = ctx.input(last);
  if (buckets.num_elements() != 1 || strong.num_elements() != 1) {
    return InvalidArgument("num_buckets and strong_hash must be scalars");
  }
  if (salt.num_elements() != 2) {
    return InvalidArgument("Input \"salt\" must have length 2 but has length ",
                           salt.num_elements());
  }
  CrossHash hash;
  hash.buckets = buckets.scalar<int64_t>();
  hash.strong = strong.scalar<bool>();
  for (int i = 0; i < 2; ++i) hash.salt[i] = static_cast<uint64_t>(salt.data<int64_t>()[i]);
  return CrossSparse(ctx, ctx.state<CrossState>().inputs, "", hash);
}

// ---- RaggedCross ----

StatusOr<std::unique_ptr<KernelState>> PrepareRaggedCross(const Node& node) {
  auto state = std::make_unique<CrossState>();
  state->inputs.sparse = static_cast<int>(node.Int("Nsparse"));
  state->inputs.dense = static_cast<int>(node.Get<std::vector<Dtype>>("dense_types", {}).size());
  state->ragged = static_cast<int>(node.Get<std::vector<Dtype>>("ragged_values_types", {}).size());
  state->hash.keyed = true;
  state->hash.key = static_cast<uint64_t>(node.Int("hash_key"));
  state->hash.buckets = node.Int("num_buckets");
  state->order = node.String("input_order");
  const auto count = [&](char c) {
    return std::count(state->order.begin(), state->order.end(), c);
  };
  const auto splits = node.Get<std::vector<Dtype>>("ragged_splits_types", {});
  const auto sparse = node.Get<std::vector<Dtype>>("sparse_values_types", {});
  const auto columns =
      static_cast<size_t>(state->ragged + state->inputs.sparse + state->inputs.dense);
  if (state->order.size() != columns) return InvalidArgument("Invalid length for input_order");
  if (count('R') != state->ragged || count('S') != state->inputs.sparse ||
      count('D') != state->inputs.dense || splits.size() != static_cast<size_t>(state->ragged) ||
      sparse.size() != static_cast<size_t>(state->inputs.sparse)) {
    return InvalidArgument("Invalid input_order");
  }
  return state;
}

// The splits of a ragged column, checked, as CrossColumn::starts.
StatusOr<Tensor> RaggedStarts(OpContext& ctx, const Tensor& splits, int64_t num_values) {
  constexpr absl::string_view kInvalid = "Invalid ragged splits: ";
  const int64_t n = splits.num_elements();
  if (n == 0) {
    return InvalidArgument(kInvalid, "ragged splits must have at least one splits, but is empty");
  }
  ASSIGN_OR_RETURN(Tensor starts, ctx.Temp(Dtype::kInt64, Shape({n})));
  int64_t* to = starts.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) to[i] = IndexAt(splits, i);
  if (to[0] != 0) {
    return InvalidArgument(kInvalid, "first element of ragged splits  must be 0 but is ", to[0]);
  }
  for (int64_t i = 1; i < n; ++i) {
    if (to[i] >= to[i - 1]) continue;
    return InvalidArgument(kInvalid, "ragged splits must be monotonically increasing, but ",
                           "ragged_splits[", i, "]=", to[i], " is smaller than row_splits[", i - 1,
                           "]=", to[i - 1]);
  }
  if (to[n - 1] != num_values) {
    return InvalidArgument(kInvalid, "last element of ragged splits must be the number of ragged ",
                           "values(", num_values, ") but is ", to[n - 1]);
  }
  return starts;
}

Status RunRaggedCross(OpContext& ctx) {
  const auto& state = ctx.state<CrossState>();
  constexpr absl::string_view kRank = "tf.ragged.cross only supports inputs with rank=2.";
  constexpr absl::string_view kBatch = "inputs must all have the same batch dimension size.";
  const int num_sparse = state.inputs.sparse, first_sparse = 2 * state.ragged;
  std::vector<CrossColumn> ragged, sparse, dense;
  int64_t batch = -1;
  const auto same_batch = [&](int64_t rows) { return std::exchange(batch, rows) == rows; };
  for (int i = 0; i < state.ragged; ++i) {
    const Tensor& values = ctx.input(i);
    const Tensor& splits = ctx.input(state.ragged + i);
    if (values.rank() != 1 || splits.rank() != 1) return InvalidArgument(kRank);
    CrossColumn c{&values};
    ASSIGN_OR_RETURN(c.starts, RaggedStarts(ctx, splits, values.dim(0)));
    if (!same_batch(splits.dim(0) - 1) && i > 0) return InvalidArgument(kBatch);
    ragged.push_back(std::move(c));
  }
  for (int i = 0; i < num_sparse; ++i) {
    const Tensor& indices = ctx.input(first_sparse + i);
    const Tensor& values = ctx.input(first_sparse + num_sparse + i);
    const Tensor& shape = ctx.input(first_sparse + 2 * num_sparse + i);
    if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 ||
        indices.dim(0) != values.dim(0)) {
      return InvalidArgument("Invalid SparseTensor ", i);
    }
    if (shape.dim(0) != 2) return InvalidArgument(kRank);
    // Only the first column is read, and TensorFlow asks for no number of them.
    if (indices.dim(1) < 1) return InvalidArgument("Invalid SparseTensor ", i);
    const int64_t rows = IndexAt(shape, 0);
    if (!same_batch(rows) && i + state.ragged > 0) return InvalidArgument(kBatch);
    CrossColumn c{&values};
    ASSIGN_OR_RETURN(c.starts, CrossStarts(ctx, indices, rows, false));
    sparse.push_back(std::move(c));
  }
  for (int i = 0; i < state.inputs.dense; ++i) {
    const Tensor& values = ctx.input(first_sparse + 3 * num_sparse + i);
    if (values.rank() != 2) return InvalidArgument(kRank);
    if (!same_batch(values.dim(0)) && i + state.ragged + num_sparse > 0) {
      return InvalidArgument(kBatch);
    }
    dense.push_back({&values, Tensor(), values.dim(1)});
  }
  batch = std::max<int64_t>(batch, 0);
  std::vector<CrossColumn> columns;
  size_t next[3] = {0, 0, 0};
  for (char kind : state.order) {
    columns.push_back(kind == 'R'   ? ragged[next[0]++]
                      : kind == 'S' ? sparse[next[1]++]
                                    : dense[next[2]++]);
  }
  ASSIGN_OR_RETURN(Tensor splits, ctx.Temp(Dtype::kInt64, Shape({batch + 1})));
  int64_t* ends = splits.data<int64_t>();
  ends[0] = 0;
  for (int64_t row = 0; row < batch; ++row) {
    ASSIGN_OR_RETURN(const int64_t n, CountCrosses(columns, row));
    if (__builtin_add_overflow(ends[row], n, &ends[row + 1])) {
      return InvalidArgument("The crosses are more than 2**63 - 1 elements");
    }
  }
  if (ctx.output_type(1) == Dtype::kInt32 && ends[batch] > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Row splits of type int32 cannot hold ", ends[batch], " values");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({ends[batch]})));
  for (int64_t row = 0; row < batch; ++row) {
    WriteCrosses(columns, row, ends[row + 1] - ends[row], "_X_", state.hash, out, ends[row]);
  }
  return SetInts(ctx, 1, splits.flat<int64_t>());
}

constexpr Kernel kCrossTable[] = {
    {"SparseCross", "", kAnyType, "sparse:cross", RunSparseCross, PrepareSparseCross},
    {"SparseCrossV2", "", kAnyType, "sparse:cross", RunSparseCrossV2, PrepareSparseCross},
    {"SparseCrossHashed", "", kAnyType, "sparse:cross", RunSparseCrossHashed, PrepareSparseCross},
    {"RaggedCross", "", kAnyType, "sparse:cross", RunRaggedCross, PrepareRaggedCross},
};

}  // namespace

extern constinit const std::span<const Kernel> kCrossKernels = kCrossTable;

}  // namespace smelt
