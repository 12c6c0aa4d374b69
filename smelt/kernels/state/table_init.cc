// Tables filled from text files, one entry a line.
#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "smelt/io/file_system.h"
#include "smelt/kernels/state/tables.h"

namespace smelt {
namespace {

struct TextInitState final : KernelState {
  TextColumns columns;
};

StatusOr<std::unique_ptr<KernelState>> PrepareTextInit(const Node& node) {
  auto state = std::make_unique<TextInitState>();
  TextColumns& c = state->columns;
  c.key_index = node.Int("key_index");
  c.value_index = node.Int("value_index");
  c.vocab_size = node.Int("vocab_size", -1);
  c.offset = node.Int("offset");
  const std::string delimiter = node.String("delimiter", "\t");
  if (delimiter.size() != 1) {
    return InvalidArgument("delimiter should be only 1 char");
  }
  c.delimiter = delimiter[0];
  if (c.key_index < TextColumns::kWholeLine || c.value_index < TextColumns::kWholeLine) {
    return InvalidArgument("key_index and value_index must be at least -2");
  }
  return state;
}

Status CheckTextColumn(absl::string_view what, int64_t index, Dtype dtype) {
  if (index == TextColumns::kLineNumber && dtype != Dtype::kInt64) {
    return InvalidArgument(what == "key" ? "Key" : "Value",
                           " index for line number requires table ", what, " dtype of int64, got ",
                           DtypeName(dtype));
  }
  if (index == TextColumns::kWholeLine && !IsInteger(dtype) && dtype != Dtype::kString) {
    return InvalidArgument(what == "key" ? "Key" : "Value", " index for entire line requires ",
                           "table ", what, " dtype of integer or string, got ", DtypeName(dtype));
  }
  return OkStatus();
}

// Parses the field into element i of t.
Status ParseField(absl::string_view field, int64_t line, Tensor& t, int64_t i) {
  bool ok = false;
  switch (t.dtype()) {
    case Dtype::kString:
      t.data<std::string>()[i].assign(field.data(), field.size());
      return OkStatus();
    case Dtype::kInt32:
      ok = absl::SimpleAtoi(field, &t.data<int32_t>()[i]);
      break;
    case Dtype::kInt64:
      ok = absl::SimpleAtoi(field, &t.data<int64_t>()[i]);
      break;
    case Dtype::kFloat:
      ok = absl::SimpleAtof(field, &t.data<float>()[i]);
      break;
    case Dtype::kDouble:
      ok = absl::SimpleAtod(field, &t.data<double>()[i]);
      break;
    default:
      return InvalidArgument("Data type ", DtypeName(t.dtype()), " not supported.");
  }
  if (ok) return OkStatus();
  return InvalidArgument("Field ", field, " in line ", line, " is not a valid ",
                         DtypeName(t.dtype()), ".");
}

struct TextLine {
  absl::string_view text;
  int64_t end;  // offset of the byte after it
};

// The first vocab_size lines (-1: all). INVALID_ARGUMENT when there are fewer.
StatusOr<std::vector<TextLine>> TextLines(absl::string_view bytes, const std::string& path,
                                          int64_t vocab_size) {
  std::vector<TextLine> lines;
  size_t at = 0;
  while (at < bytes.size() && (vocab_size < 0 || static_cast<int64_t>(lines.size()) < vocab_size)) {
    size_t stop = bytes.find('\n', at);
    const size_t next = stop == absl::string_view::npos ? bytes.size() : stop + 1;
    if (stop == absl::string_view::npos) stop = bytes.size();
    lines.push_back({bytes.substr(at, stop - at), static_cast<int64_t>(next)});
    at = next;
  }
  if (vocab_size >= 0 && static_cast<int64_t>(lines.size()) < vocab_size) {
    return InvalidArgument("Invalid vocab_size in ", path, ": expected ", vocab_size, " but got ",
                           lines.size());
  }
  return lines;
}

Status RunTextInit(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  const Tensor& name = ctx.input(1);
  if (name.num_elements() != 1) {
    return InvalidArgument("filename should be a single string, but got ", name.shape().ToString());
  }
  const std::string& path = name.scalar<std::string>();
  if (path.empty()) return InvalidArgument("filename cannot be empty.");
  return InitializeFromText(path, ctx.state<TextInitState>().columns, *table, ctx.files());
}

constexpr Kernel kTableInitTable[] = {
    {"InitializeTableFromTextFile", "", kAnyType, "state:table_from_text", RunTextInit,
     PrepareTextInit},
};

}  // namespace

Status InitializeFromText(const std::string& path, const TextColumns& columns, LookupTable& table,
                          const FileSystem& files) {
  RETURN_IF_ERROR(CheckTextColumn("key", columns.key_index, table.key_dtype()));
  RETURN_IF_ERROR(CheckTextColumn("value", columns.value_index, table.value_dtype()));
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, files.Map(path));
  if (columns.vocab_size == 0) {
    return OutOfRange("Finished reading 0 of lines from ", path);
  }
  if (file->size() == 0 && columns.vocab_size < 0) {
    return OutOfRange("Read less bytes than requested");
  }
  ASSIGN_OR_RETURN(std::vector<TextLine> lines, TextLines(file->bytes(), path, columns.vocab_size));

  const auto n = static_cast<int64_t>(lines.size());
  ASSIGN_OR_RETURN(Tensor keys, Tensor::Make(table.key_dtype(), Shape({n})));
  ASSIGN_OR_RETURN(Tensor values, Tensor::Make(table.value_dtype(), Shape({n})));
  const int64_t last_column = std::max(columns.key_index, columns.value_index);
  std::string clean;
  std::vector<absl::string_view> fields;
  for (int64_t i = 0; i < n; ++i) {
    absl::string_view line = lines[static_cast<size_t>(i)].text;
    if (line.find('\r') != absl::string_view::npos) {
      clean.assign(line.data(), line.size());
      clean.erase(std::remove(clean.begin(), clean.end(), '\r'), clean.end());
      line = clean;
    }
    if (line.empty()) {
      return InvalidArgument("Invalid content in ", path, ": empty line found at position ",
                             lines[static_cast<size_t>(i)].end, ".");
    }
    if (last_column >= 0) {
      fields = absl::StrSplit(line, columns.delimiter);
      if (last_column >= static_cast<int64_t>(fields.size())) {
        return InvalidArgument("Invalid number of columns in ", path, " line ", i, " (", line,
                               ") : expected at least ", last_column + 1, " got ", fields.size());
      }
    }
    const auto set = [&](int64_t index, Tensor& t) -> Status {
      if (index == TextColumns::kLineNumber) {
        int64_t number = 0;
        if (__builtin_add_overflow(i, columns.offset, &number)) {
          return InvalidArgument("offset ", columns.offset, " is too large");
        }
        t.data<int64_t>()[i] = number;
        return OkStatus();
      }
      return ParseField(
          index == TextColumns::kWholeLine ? line : fields[static_cast<size_t>(index)], i, t, i);
    };
    RETURN_IF_ERROR(set(columns.key_index, keys));
    RETURN_IF_ERROR(set(columns.value_index, values));
  }
  return table.Initialize(keys, values);
}

extern constinit const std::span<const Kernel> kTableInitKernels = kTableInitTable;

}  // namespace smelt
