// Strings that hold bytes of something else: base 64, raw numbers, serialized tensors, CSV.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "smelt/kernels/kernel.h"
#include "smelt/wire/graph_def/tensor_bytes.h"

namespace smelt {
namespace {

// ---- base 64, the alphabet for URLs ----

Status RunEncodeBase64(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  const bool pad = ctx.node().Bool("pad");
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<std::string>();
  for (const std::string& s : in.flat<std::string>()) {
    *p = absl::WebSafeBase64Escape(s);
    if (pad) p->append((4 - p->size() % 4) % 4, '=');
    ++p;
  }
  return OkStatus();
}

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

Status DecodeBase64(absl::string_view s, std::string* out) {
  if (!s.empty() && s.size() % 4 == 0 && s.back() == '=') {
    s.remove_suffix(s[s.size() - 2] == '=' ? 2 : 1);
  }
  // Whole groups of four come before the length, as in TensorFlow.
  for (const char c : s.substr(0, s.size() / 4 * 4)) {
    if (Base64Value(c) < 0) return InvalidArgument("Invalid character found in base64.");
  }
  if (s.size() % 4 == 1) return InvalidArgument("Base64 string length cannot be 1 modulo 4.");
  out->reserve(s.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int have = 0;
  for (char c : s) {
    const int value = Base64Value(c);
    if (value < 0) return InvalidArgument("Invalid character found in base64.");
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out->push_back(static_cast<char>(bits >> have));
    }
  }
  return OkStatus();
}

Status RunDecodeBase64(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<std::string>();
  for (const std::string& s : in.flat<std::string>()) RETURN_IF_ERROR(DecodeBase64(s, p++));
  return OkStatus();
}

// ---- raw numbers ----

// Reverses the bytes of n values of `size` bytes.
void SwapBytes(char* p, int64_t n, size_t size) {
  for (int64_t i = 0; i < n; ++i, p += size) std::reverse(p, p + size);
}

// Bytes that are reversed together: the parts of a complex number are reversed separately.
size_t SwapUnit(Dtype dtype) { return IsComplex(dtype) ? DtypeSize(dtype) / 2 : DtypeSize(dtype); }

Status RawRows(OpContext& ctx, int64_t row_bytes) {
  const Tensor& in = ctx.input(0);
  const Dtype dtype = ctx.output_type(0);
  const auto size = static_cast<int64_t>(DtypeSize(dtype));
  Shape shape = in.shape();
  shape.Add(row_bytes / size);
  ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(dtype, shape, ctx.step().allocator));
  auto* p = static_cast<char*>(out.raw());
  for (const std::string& s : in.flat<std::string>()) {
    const size_t n = std::min(s.size(), static_cast<size_t>(row_bytes));
    if (n != 0) std::memcpy(p, s.data(), n);
    p += row_bytes;
  }
  if (dtype == Dtype::kBool) {  // any other byte than 0 and 1 is not a bool to C++
    auto* bytes = static_cast<char*>(out.raw());
    for (size_t i = 0; i < out.bytes(); ++i) bytes[i] = bytes[i] != 0;
  }
  const size_t unit = SwapUnit(dtype);
  if (!ctx.node().Bool("little_endian", true) && unit > 1) {
    SwapBytes(static_cast<char*>(out.raw()),
              static_cast<int64_t>(out.bytes()) / static_cast<int64_t>(unit), unit);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status RunDecodeRaw(OpContext& ctx) {
  const auto strings = ctx.input(0).flat<std::string>();
  const size_t size = DtypeSize(ctx.output_type(0));
  if (strings.empty()) return RawRows(ctx, 0);
  for (size_t i = 1; i < strings.size(); ++i) {
    if (strings[i].size() != strings[0].size()) {
      return InvalidArgument("DecodeRaw requires input strings to all be the same size, but ",
                             "element ", i, " has size ", strings[0].size(),
                             " != ", strings[i].size());
    }
  }
  if (strings[0].size() % size != 0) {
    return InvalidArgument("Input to DecodeRaw has length ", strings[0].size(),
                           " that is not a multiple of ", size, ", the size of ",
                           DtypeName(ctx.output_type(0)));
  }
  return RawRows(ctx, static_cast<int64_t>(strings[0].size()));
}

Status RunDecodePaddedRaw(OpContext& ctx) {
  const Tensor& length = ctx.input(1);
  const auto size = static_cast<int64_t>(DtypeSize(ctx.output_type(0)));
  if (length.rank() != 0) {
    return InvalidArgument("k must be scalar, got shape ", length.shape().ToString());
  }
  const int64_t bytes = length.scalar<int32_t>();
  if (bytes <= 0) return InvalidArgument("fixed_length (", bytes, ") must be greater than zero.");
  if (bytes % size != 0) {
    return InvalidArgument("fixed_length (", bytes,
                           ") must be a multiple of the size of out_type (", size, ")");
  }
  return RawRows(ctx, bytes);
}

// ---- tensors ----

Status RunSerializeTensor(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::string bytes, SerializeTensorBytes(ctx.input(0)));
  ctx.set_output(0, Tensor::Scalar(std::move(bytes)));
  return OkStatus();
}

Status RunParseTensor(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() != 0) {
    return InvalidArgument("Expected `serialized` to be a scalar, got shape: ",
                           in.shape().ToString());
  }
  const std::string& bytes = in.scalar<std::string>();
  auto tensor = ParseTensorBytes(bytes);
  if (absl::IsDataLoss(tensor.status())) {
    return InvalidArgument("Could not parse `serialized` as TensorProto, base64: ",
                           absl::Base64Escape(bytes));
  }
  RETURN_IF_ERROR(tensor.status());
  if (tensor->dtype() != ctx.output_type(0)) {
    return InvalidArgument("Type mismatch between parsed tensor (", DtypeName(tensor->dtype()),
                           ") and dtype (", DtypeName(ctx.output_type(0)), ")");
  }
  ctx.set_output(0, *std::move(tensor));
  return OkStatus();
}

// ---- CSV ----

struct CsvState final : KernelState {
  char delimiter = ',';
  bool quotes = true;
  std::string na_value;
  std::vector<int64_t> columns;  // ascending; empty: all
};

StatusOr<std::unique_ptr<KernelState>> PrepareCsv(const Node& node) {
  auto state = std::make_unique<CsvState>();
  state->quotes = node.Bool("use_quote_delim", true);
  state->na_value = node.String("na_value");
  state->columns = node.Ints("select_cols");
  const size_t outputs = node.output_types.size();
  if (!state->columns.empty() && state->columns.size() != outputs) {
    return InvalidArgument("select_cols should match output size");
  }
  for (size_t i = 1; i < state->columns.size(); ++i) {
    if (state->columns[i - 1] >= state->columns[i]) {
      return InvalidArgument("select_cols should be strictly increasing indices");
    }
  }
  if (!state->columns.empty() && state->columns.front() < 0) {
    return InvalidArgument("select_cols should be non-negative indices");
  }
  const std::string delimiter = node.String("field_delim", ",");
  if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
  state->delimiter = delimiter[0];
  return state;
}

// The selected fields of one record.
Status CsvFields(const CsvState& state, absl::string_view in, std::vector<std::string>* fields) {
  const auto selected = [&](int64_t column) {
    return state.columns.empty() ||
           (fields->size() < state.columns.size() && state.columns[fields->size()] == column);
  };
  int64_t column = 0;
  size_t at = 0;
  while (at < in.size()) {
    if (in[at] == '\n' || in[at] == '\r') {
      ++at;
      continue;
    }
    std::string field;
    if (state.quotes && in[at] == '"') {
      ++at;
      const auto ends = [&](size_t i) {
        return in[i] == '"' && (i + 1 == in.size() || in[i + 1] == state.delimiter);
      };
      while (at + 1 < in.size() && !ends(at)) {
        if (in[at] == '"') {
          if (in[at + 1] != '"') {
            return InvalidArgument("Quote inside a string has to be escaped by another quote");
          }
          ++at;
        }
        field += in[at++];
      }
      if (at >= in.size() || !ends(at)) {
        return InvalidArgument("Quoted field has to end with quote followed by delim or end");
      }
      at += 2;
    } else {
      for (; at < in.size() && in[at] != state.delimiter; ++at) {
        if ((state.quotes && in[at] == '"') || in[at] == '\n' || in[at] == '\r') {
          return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
        }
        field += in[at];
      }
      ++at;
    }
    if (selected(column++)) {
      fields->push_back(std::move(field));
      if (fields->size() == state.columns.size() && !state.columns.empty()) return OkStatus();
    }
  }
  if (!in.empty() && in.back() == state.delimiter && selected(column)) fields->emplace_back();
  return OkStatus();
}

bool ParseCsvField(const std::string& field, Tensor* out, int64_t i) {
  switch (out->dtype()) {
    case Dtype::kInt32:
      return absl::SimpleAtoi(field, &out->data<int32_t>()[i]);
    case Dtype::kInt64:
      return absl::SimpleAtoi(field, &out->data<int64_t>()[i]);
    case Dtype::kFloat:
      return absl::SimpleAtof(field, &out->data<float>()[i]);
    case Dtype::kDouble:
      return absl::SimpleAtod(field, &out->data<double>()[i]);
    default:
      out->data<std::string>()[i] = field;
      return true;
  }
}

void CsvDefault(const Tensor& value, Tensor* out, int64_t i) {
  if (value.dtype() == Dtype::kString) {
    out->data<std::string>()[i] = value.scalar<std::string>();
  } else {
    const size_t size = DtypeSize(value.dtype());
    std::memcpy(static_cast<char*>(out->raw()) + static_cast<size_t>(i) * size, value.raw(), size);
  }
}

Status RunDecodeCsv(OpContext& ctx) {
  const auto& state = ctx.state<CsvState>();
  const Tensor& records = ctx.input(0);
  const int n = ctx.num_outputs();
  if (ctx.num_inputs() != n + 1) return InvalidArgument("one default is needed for each field");
  for (int f = 0; f < n; ++f) {
    const Tensor& value = ctx.input(1 + f);
    if (value.rank() > 1) {
      return InvalidArgument("Each record default should be at most rank 1");
    }
    if (value.num_elements() > 1) {
      return InvalidArgument("There should only be 1 default per field but field ", f, " has ",
                             value.num_elements());
    }
    if (value.dtype() != ctx.output_type(f)) {
      return InvalidArgument("the default of field ", f, " is of type ", DtypeName(value.dtype()));
    }
    RETURN_IF_ERROR(ctx.Allocate(f, records.shape()).status());
  }
  std::vector<std::string> fields;
  for (int64_t r = 0; r < records.num_elements(); ++r) {
    fields.clear();
    RETURN_IF_ERROR(CsvFields(state, records.data<std::string>()[r], &fields));
    if (static_cast<int>(fields.size()) != n) {
      return InvalidArgument("Expect ", n, " fields but have ", fields.size(), " in record ", r);
    }
    for (int f = 0; f < n; ++f) {
      const std::string& field = fields[static_cast<size_t>(f)];
      Tensor& out = ctx.output(f);
      if (field.empty() || field == state.na_value) {
        if (ctx.input(1 + f).num_elements() != 1) {
          return InvalidArgument("Field ", f, " is required but missing in record ", r, "!");
        }
        CsvDefault(ctx.input(1 + f), &out, r);
      } else if (!ParseCsvField(field, &out, r)) {
        return InvalidArgument("Field ", f, " in record ", r, " is not a valid ",
                               DtypeName(out.dtype()), ": ", field);
      }
    }
  }
  return OkStatus();
}

constexpr DtypeSet kRawTypes = kFloatTypes | kHalfTypes | kComplexTypes | kSignedIntTypes |
                               Types(Dtype::kUint8, Dtype::kUint16, Dtype::kBool);

constexpr Kernel kDecodeTextTable[] = {
    {"EncodeBase64", "", kAnyType, "text:base64", RunEncodeBase64},
    {"DecodeBase64", "", kAnyType, "text:base64", RunDecodeBase64},
    {"DecodeRaw", "out_type", kRawTypes, "text:decode_raw", RunDecodeRaw},
    {"DecodePaddedRaw", "out_type", kRawTypes, "text:decode_raw", RunDecodePaddedRaw},
    {"SerializeTensor", "", kAnyType, "text:serialize_tensor", RunSerializeTensor},
    {"ParseTensor", "", kAnyType, "text:parse_tensor", RunParseTensor},
    {"DecodeCSV", "", kAnyType, "text:csv", RunDecodeCsv, PrepareCsv},
};

}  // namespace

extern constinit const std::span<const Kernel> kDecodeKernels = kDecodeTextTable;

}  // namespace smelt
