// The ops of warm starts. GenerateVocabRemapping: where the words of one vocabulary stand in
// another. LoadAndRemapMatrix: a checkpoint's matrix with its rows and columns moved accordingly.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "smelt/io/fs.h"
#include "smelt/kernels/state/tables.h"
#include "smelt/wire/bundle/bundle.h"

namespace smelt {
namespace {

StatusOr<std::string> VocabularyFile(const OpContext& ctx, int i, absl::string_view name) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 0) {
    return InvalidArgument(name, " should be a single string, but got ", t.shape().ToString());
  }
  // TensorFlow's text says "new" for the old file, too.
  if (t.scalar<std::string>().empty()) {
    return InvalidArgument("new vocab filename cannot be empty.");
  }
  return t.scalar<std::string>();
}

Status RunVocabRemapping(OpContext& ctx) {
  const int64_t offset = ctx.node().Int("new_vocab_offset"), n = ctx.node().Int("num_new_vocab");
  ASSIGN_OR_RETURN(const std::string new_file, VocabularyFile(ctx, 0, "new_vocab_file"));
  ASSIGN_OR_RETURN(const auto words, MakeHashTable(Dtype::kInt64, Dtype::kString, Shape(), true));
  TextColumns by_line{TextColumns::kLineNumber, TextColumns::kWholeLine};
  RETURN_IF_ERROR(InitializeFromText(new_file, by_line, *words, ctx.files()));
  if (n > words->size() || offset > words->size() - n) {
    return InvalidArgument("lookup table size must be larger than last new vocab entry's line");
  }
  ASSIGN_OR_RETURN(const std::string old_file, VocabularyFile(ctx, 1, "old_vocab_file"));
  ASSIGN_OR_RETURN(const auto lines, MakeHashTable(Dtype::kString, Dtype::kInt64, Shape(), true));
  TextColumns by_word{TextColumns::kWholeLine, TextColumns::kLineNumber};
  by_word.vocab_size = ctx.node().Int("old_vocab_size", -1);
  RETURN_IF_ERROR(InitializeFromText(old_file, by_word, *lines, ctx.files()));

  ASSIGN_OR_RETURN(Tensor wanted, ctx.Temp(Dtype::kInt64, Shape({n})));
  for (int64_t i = 0; i < n; ++i) wanted.data<int64_t>()[i] = i + offset;
  ASSIGN_OR_RETURN(const Tensor found,
                   words->Find(wanted, Tensor::Scalar(std::string()), HeapAllocator()));
  ASSIGN_OR_RETURN(Tensor old,
                   lines->Find(found, Tensor::Scalar(int64_t{-1}), ctx.step().allocator));
  const auto ids = old.flat<int64_t>();
  const auto present = n - std::ranges::count(ids, -1);
  ctx.set_output(0, std::move(old));
  ctx.set_output(1, Tensor::Scalar(static_cast<int32_t>(present)));
  return OkStatus();
}

// New position by old one; negative entries, new ones without an old one, are left out.
StatusOr<absl::flat_hash_map<int64_t, int64_t>> NewByOld(std::span<const int64_t> remapping) {
  absl::flat_hash_map<int64_t, int64_t> out;
  for (size_t i = 0; i < remapping.size(); ++i) {
    if (remapping[i] < 0) continue;
    const auto [at, added] = out.try_emplace(remapping[i], static_cast<int64_t>(i));
    if (!added) {
      return Unimplemented("Old ID ", remapping[i], " is mapped to both new ID ", at->second,
                           " and ", i, ", which is not supported.");
    }
  }
  return out;
}

// The rows of a matrix in a checkpoint.
class MatrixRows {
 public:
  static StatusOr<MatrixRows> Open(const std::string& prefix, const std::string& name,
                                   const FileSystem& files) {
    MatrixRows rows;
    rows.name_ = name;
    // Unlike RestoreV2, this op reads no checkpoints of version 1: the error names the missing
    // index.
    RETURN_IF_ERROR(files.MayRead(prefix + ".index"));
    RETURN_IF_ERROR(FileSize(prefix + ".index").status());
    ASSIGN_OR_RETURN(rows.reader_, BundleReader::Open(prefix, files));
    ASSIGN_OR_RETURN(rows.entry_, rows.reader_->Find(name));
    if (rows.entry_->dtype != Dtype::kFloat) {
      return InvalidArgument("Tensor ", name, " has invalid type ", DtypeName(rows.entry_->dtype),
                             " instead of expected type float");
    }
    if (rows.shape().rank() != 2) {
      return InvalidArgument("Tensor ", name, " has shape ", rows.shape().ToString(),
                             " of invalid rank ", rows.shape().rank(),
                             " instead of expected shape of rank 2.");
    }
    return rows;
  }
  const Shape& shape() const { return entry_->shape; }

  // INTERNAL for rows that are not there.
  StatusOr<Tensor> Read(int64_t begin, int64_t count) {
    TensorSlice slice = TensorSlice::Whole(2);
    slice.starts[0] = begin;
    slice.lengths[0] = count;
    if (entry_->partitioned()) return reader_->ReadSlice(name_, slice);
    RETURN_IF_ERROR(slice.ShapeIn(shape()).status());
    // Stored whole: one read verifies the checksum, and the rows alias the file.
    if (!whole_.valid()) {
      ASSIGN_OR_RETURN(whole_, reader_->Read(name_));
    }
    return whole_.Rows(begin, begin + count);
  }

 private:
  std::shared_ptr<BundleReader> reader_;
  const BundleEntry* entry_ = nullptr;
  std::string name_;
  Tensor whole_;
};

struct Remapping {
  absl::flat_hash_map<int64_t, int64_t> rows, cols;  // new by old
  bool moves_cols = false;
};

// Copies the rows and columns that the checkpoint has, reading at most `most_rows` rows at a time
// (0 or less: all at once).
Status CopyRemapped(MatrixRows& from, const Remapping& map, int64_t most_rows, Tensor* out) {
  int64_t first = -1, last = -1;
  for (const auto& [old_row, unused] : map.rows) {
    first = first < 0 ? old_row : std::min(first, old_row);
    last = std::max(last, old_row);
  }
  const int64_t cols = from.shape()[1], new_cols = out->shape()[1];
  float* to = out->data<float>();
  for (int64_t begin = first; begin >= 0 && begin <= last;) {
    int64_t count = 0;
    if (__builtin_add_overflow(last - begin, 1, &count)) {
      return Internal("row ", last, " is out of bounds: shape = ", from.shape().ToString());
    }
    if (most_rows > 0) count = std::min(count, most_rows);
    ASSIGN_OR_RETURN(const Tensor rows, from.Read(begin, count));
    for (int64_t r = 0; r < count; ++r) {
      const auto row = map.rows.find(begin + r);
      if (row == map.rows.end()) continue;
      const float* values = rows.data<float>() + r * cols;
      float* line = to + row->second * new_cols;
      if (!map.moves_cols) {
        std::copy_n(values, cols, line);
        continue;
      }
      for (const auto& [old_col, new_col] : map.cols) {
        if (old_col < cols) line[new_col] = values[old_col];
      }
    }
    if (last - begin < count) break;
    begin += count;
  }
  return OkStatus();
}

// Fills the cells whose row or column is new with `values`, in order. INVALID_ARGUMENT unless they
// are as many.
Status FillMissing(std::span<const int64_t> row_ids, std::span<const int64_t> col_ids,
                   std::span<const float> values, Tensor* out) {
  const int64_t cols = out->shape()[1];
  size_t used = 0;
  float* to = out->data<float>();
  for (size_t r = 0; r < row_ids.size(); ++r) {
    for (int64_t c = 0; c < cols; ++c, ++to) {
      if (row_ids[r] >= 0 && (col_ids.empty() || col_ids[static_cast<size_t>(c)] >= 0)) continue;
      if (used == values.size()) {
        return InvalidArgument("initializing_values contained ", values.size(),
                               " elements, but more missing values remain.");
      }
      *to = values[used++];
    }
  }
  if (used != values.size()) {
    return InvalidArgument("initializing_values contained ", values.size(), " elements, but only ",
                           used, " elements were used to fill in missing values.");
  }
  return OkStatus();
}

Status RunLoadAndRemap(OpContext& ctx) {
  const Tensor &path = ctx.input(0), &name = ctx.input(1), &rows = ctx.input(2),
               &cols = ctx.input(3);
  const int64_t num_rows = ctx.node().Int("num_rows"), num_cols = ctx.node().Int("num_cols");
  if (rows.rank() != 1) {
    return InvalidArgument("The `row_remapping` tensor must be 1-D, got a tensor of shape ",
                           rows.shape().ToString());
  }
  if (rows.num_elements() != num_rows) {
    return InvalidArgument("Size of row_remapping is ", rows.num_elements(),
                           " instead of being equal to num_rows=", num_rows);
  }
  Remapping map;
  ASSIGN_OR_RETURN(map.rows, NewByOld(rows.flat<int64_t>()));
  if (cols.rank() != 1) {
    return InvalidArgument("The `col_remapping` tensor must be 1-D, got a tensor of shape ",
                           cols.shape().ToString());
  }
  map.moves_cols = cols.num_elements() > 0;
  if (map.moves_cols && cols.num_elements() != num_cols) {
    return InvalidArgument("Provided col_remapping, but its size is ", cols.num_elements(),
                           " instead of being equal to num_cols=", num_cols);
  }
  ASSIGN_OR_RETURN(map.cols, NewByOld(cols.flat<int64_t>()));
  if (path.num_elements() != 1) {
    return InvalidArgument("The `ckpt_path` tensor must have exactly one element, got tensor of ",
                           "shape ", path.shape().ToString());
  }
  if (name.num_elements() != 1) {
    return InvalidArgument("The `old_tensor_name` tensor must have exactly one element, got ",
                           "tensor of shape ", name.shape().ToString());
  }
  const std::string& tensor_name = *name.data<std::string>();
  ASSIGN_OR_RETURN(MatrixRows from,
                   MatrixRows::Open(*path.data<std::string>(), tensor_name, ctx.files()));
  if (!map.moves_cols && from.shape()[1] != num_cols) {
    return InvalidArgument("Tensor ", tensor_name, " has shape ", from.shape().ToString(),
                           ", where the size of its 2nd dimension is ", from.shape()[1],
                           " instead of being equal to num_cols=", num_cols);
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{num_rows, num_cols}));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  // Cells whose old column is beyond the checkpoint's are not copied: they stay 0.
  if (map.moves_cols) std::fill_n(out->data<float>(), shape.num_elements(), 0.0f);
  RETURN_IF_ERROR(CopyRemapped(from, map, ctx.node().Int("max_rows_in_memory", -1), out));
  return FillMissing(rows.flat<int64_t>(), cols.flat<int64_t>(), ctx.input(4).flat<float>(), out);
}

constexpr Kernel kRemapTable[] = {
    {"GenerateVocabRemapping", "", kAnyType, "state:vocab_remapping", RunVocabRemapping},
    {"LoadAndRemapMatrix", "", kAnyType, "state:load_and_remap", RunLoadAndRemap},
};

}  // namespace

extern constinit const std::span<const Kernel> kRemapKernels = kRemapTable;

}  // namespace smelt
