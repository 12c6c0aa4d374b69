#include "smelt/cli/show/python.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/cli/numpy/digits.h"
#include "smelt/cli/numpy/text.h"

namespace smelt {
namespace {

using PyKind = StructuredValue::Kind;

// Python prints 0.0001 .. 9999999999999998.0 in place, the rest with an exponent of two digits.
std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const std::string sign = std::signbit(value) ? "-" : "";
  const Decimal d = ShortestDecimal(value, FloatKind::kDouble);
  const int n = static_cast<int>(d.digits.size());
  if (d.exponent < -4 || d.exponent >= 16) {
    return absl::StrCat(sign, d.digits.substr(0, 1), n > 1 ? "." : "", d.digits.substr(1),
                        absl::StrFormat("e%+03d", d.exponent));
  }
  if (d.exponent < 0) {
    return absl::StrCat(sign, "0.", std::string(static_cast<size_t>(-d.exponent - 1), '0'),
                        d.digits);
  }
  const int whole = d.exponent + 1;
  if (n <= whole) {
    return absl::StrCat(sign, d.digits, std::string(static_cast<size_t>(whole - n), '0'), ".0");
  }
  return absl::StrCat(sign, d.digits.substr(0, static_cast<size_t>(whole)), ".",
                      d.digits.substr(static_cast<size_t>(whole)));
}

// TensorShape([None, 3])
std::string ShapeRepr(const PartialShape& shape) {
  if (!shape.known_rank()) return "TensorShape(None)";
  return absl::StrCat("TensorShape([",
                      absl::StrJoin(shape.dims(), ", ",
                                    [](std::string* out, int64_t d) {
                                      absl::StrAppend(out, d < 0 ? "None" : absl::StrCat(d));
                                    }),
                      "])");
}

std::string JoinReprs(const std::vector<StructuredValue>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const StructuredValue& v) {
    absl::StrAppend(out, PythonRepr(v));
  });
}

// "a=1, b=None"
std::string FieldReprs(const std::vector<std::string>& keys,
                       const std::vector<StructuredValue>& values) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < values.size(); ++i) {
    parts.push_back(absl::StrCat(keys[i], "=", PythonRepr(values[i])));
  }
  return absl::StrJoin(parts, ", ");
}

// Files may claim tensors far larger than what they state.
StatusOr<Tensor> PrintableTensor(const TensorValue& value) {
  constexpr int64_t kMaxPrintedElements = 1 << 20;
  if (value.num_elements() > kMaxPrintedElements) return ResourceExhausted("a tensor too large");
  return value.Materialize();
}

// "1.  , 0.25" from the row "1.   0.25" of `n` columns, which numpy makes equally wide. Rows that
// were broken or shortened get their commas at blanks.
std::string RowRepr(absl::string_view row, int64_t n) {
  const auto length = static_cast<int64_t>(row.size()) + 1;
  std::string out;
  if (n > 0 && length % n == 0 && row.find('\n') == absl::string_view::npos) {
    const auto step = static_cast<size_t>(length / n);
    for (size_t at = 0; at < row.size(); at += step) {
      absl::StrAppend(&out, at > 0 ? ", " : "", row.substr(at, step - 1));
    }
    return out;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const bool blank = row[i] == ' ' || row[i] == '\n';
    if (blank && i > 0 && row[i - 1] != ' ' && row[i - 1] != '\n') out += ',';
    out += row[i];
    if (row[i] == '\n') out += "      ";
  }
  return out;
}

// numpy's repr differs from its str by commas, an indent and the type.
std::string ArrayRepr(const TensorValue& value) {
  const StatusOr<Tensor> stated = PrintableTensor(value);
  if (!stated.ok()) return absl::StrCat("<", stated.status().message(), ">");
  const bool scalar = stated->rank() == 0;
  const Tensor tensor = scalar ? stated->WithShape(Shape({1})) : *stated;
  const StatusOr<std::string> text = NumpyText(tensor);
  if (!text.ok()) return absl::StrCat("<", text.status().message(), ">");
  std::string body;
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    const char next = i + 1 < text->size() ? (*text)[i + 1] : '\0';
    if (c == '\n' && body.back() == ']') body += ',';
    body += c;
    if (c == '\n' && next != '\n') body += "      ";
    if (c != '[' || next == '[') continue;
    const size_t end = text->find(']', i);
    if (end == std::string::npos) continue;
    body += RowRepr(absl::string_view(*text).substr(i + 1, end - i - 1), tensor.shape().back());
    i = end - 1;
  }
  if (scalar) {
    absl::string_view element = body;
    absl::ConsumePrefix(&element, "[");
    absl::ConsumeSuffix(&element, "]");
    body = std::string(absl::StripAsciiWhitespace(element));
  }
  const Dtype t = tensor.dtype();
  const bool own_type =
      tensor.num_elements() > 0 && (t == Dtype::kDouble || t == Dtype::kInt64 || t == Dtype::kBool);
  return absl::StrCat("array(", body, own_type ? "" : absl::StrCat(", dtype=", NumpyName(t)), ")");
}

std::string SpecRepr(const StructuredValue& v) {
  std::string text =
      absl::StrCat(v.is(PyKind::kTensorSpec) ? "TensorSpec" : "BoundedTensorSpec",
                   "(shape=", ShapeTuple(v.shape), ", dtype=tf.", TfDtypeName(v.dtype),
                   ", name=", v.text.empty() ? "None" : PythonStringRepr(v.text));
  if (v.is(PyKind::kBoundedTensorSpec)) {
    absl::StrAppend(&text, ", minimum=", ArrayRepr(*v.tensors[0]),
                    ", maximum=", ArrayRepr(*v.tensors[1]));
  }
  return text + ")";
}

// The state of an extension type: a tuple of (name, value).
bool IsFieldTuple(const StructuredValue& state) {
  if (!state.is(PyKind::kTuple)) return false;
  for (const StructuredValue& field : state.values) {
    if (!field.is(PyKind::kTuple) || field.values.size() != 2 ||
        !field.values[0].is(PyKind::kString)) {
      return false;
    }
  }
  return true;
}

std::string TypeSpecRepr(const StructuredValue& v) {
  const StructuredValue& state = v.values[0];
  if (v.extension_type && IsFieldTuple(state)) {
    std::vector<std::string> fields;
    for (const StructuredValue& f : state.values) {
      fields.push_back(absl::StrCat(f.values[0].text, "=", PythonRepr(f.values[1])));
    }
    return absl::StrCat(v.text, "(", absl::StrJoin(fields, ", "), ")");
  }
  // (shape, dtype, trainable[, alias_id])
  if (v.text == "VariableSpec" && state.values.size() >= 3 && state.values[0].is(PyKind::kShape)) {
    return absl::StrCat(
        "VariableSpec(shape=", ShapeTuple(state.values[0].shape),
        ", dtype=", PythonRepr(state.values[1]), ", trainable=", PythonRepr(state.values[2]),
        ", alias_id=", state.values.size() > 3 ? PythonRepr(state.values[3]) : "None", ")");
  }
  return v.text + PythonRepr(state);
}

}  // namespace

std::string PythonStringRepr(absl::string_view text) {
  const bool has_single = text.find('\'') != absl::string_view::npos;
  const char quote = has_single && text.find('"') == absl::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (u < 0x20 || u == 0x7f) {
      out += absl::StrFormat("\\x%02x", u);
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string TfDtypeName(Dtype t) {
  const std::string base(BaseType(t) == Dtype::kString ? "string" : NumpyName(BaseType(t)));
  return IsRef(t) ? base + "_ref" : base;
}

std::string PythonRepr(const StructuredValue& v) {
  switch (v.kind) {
    case PyKind::kUnset:
    case PyKind::kNone:
      return "None";
    case PyKind::kFloat:
      return PythonFloat(v.number);
    case PyKind::kInt:
      return absl::StrCat(v.integer);
    case PyKind::kString:
      return PythonStringRepr(v.text);
    case PyKind::kBool:
      return v.integer != 0 ? "True" : "False";
    case PyKind::kShape:
      return ShapeRepr(v.shape);
    case PyKind::kDtype:
      return "tf." + TfDtypeName(v.dtype);
    case PyKind::kTensorSpec:
    case PyKind::kBoundedTensorSpec:
      return SpecRepr(v);
    case PyKind::kTypeSpec:
      return TypeSpecRepr(v);
    case PyKind::kList:
      return absl::StrCat("[", JoinReprs(v.values), "]");
    case PyKind::kTuple:
      return absl::StrCat("(", JoinReprs(v.values), v.values.size() == 1 ? ",)" : ")");
    case PyKind::kDict: {
      std::vector<std::string> parts;
      for (size_t i = 0; i < v.values.size(); ++i) {
        parts.push_back(absl::StrCat(PythonStringRepr(v.keys[i]), ": ", PythonRepr(v.values[i])));
      }
      return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
    }
    case PyKind::kNamedTuple:
      return absl::StrCat(v.text, "(", FieldReprs(v.keys, v.values), ")");
    case PyKind::kTensor:
    case PyKind::kNumpy:
      return ArrayRepr(*v.tensors[0]);
  }
  return "None";
}

std::string PythonStr(const StructuredValue& v) {
  if (v.is(PyKind::kString)) return v.text;
  if (v.is(PyKind::kShape)) return ShapeTuple(v.shape);
  if (v.is(PyKind::kDtype)) return absl::StrCat("<dtype: '", TfDtypeName(v.dtype), "'>");
  if (v.is(PyKind::kTensor) || v.is(PyKind::kNumpy)) {
    const StatusOr<Tensor> tensor = PrintableTensor(*v.tensors[0]);
    const StatusOr<std::string> text = tensor.ok() ? NumpyText(*tensor) : tensor.status();
    if (text.ok()) return *text;
  }
  return PythonRepr(v);
}

std::string PythonTypeName(const StructuredValue& v) {
  switch (v.kind) {
    case PyKind::kUnset:
    case PyKind::kNone:
      return "NoneType";
    case PyKind::kFloat:
      return "float";
    case PyKind::kInt:
      return "int";
    case PyKind::kString:
      return "str";
    case PyKind::kBool:
      return "bool";
    case PyKind::kShape:
      return "TensorShape";
    case PyKind::kDtype:
      return "DType";
    case PyKind::kTensorSpec:
      return "TensorSpec";
    case PyKind::kBoundedTensorSpec:
      return "BoundedTensorSpec";
    case PyKind::kTypeSpec:
    case PyKind::kNamedTuple:
      return v.text;
    case PyKind::kList:
      return "list";
    case PyKind::kTuple:
      return "tuple";
    case PyKind::kDict:
      return "dict";
    case PyKind::kTensor:
      return "Tensor";
    case PyKind::kNumpy:
      return "ndarray";
  }
  return "NoneType";
}

std::vector<std::string> PythonRows(const TensorValue& value) {
  std::vector<std::string> rows;
  constexpr int64_t kMaxRows = 10000;
  const StatusOr<Tensor> tensor = PrintableTensor(value);
  if (!tensor.ok() || tensor->rank() == 0 || tensor->dim(0) > kMaxRows) return rows;
  Shape row_shape = tensor->shape();
  row_shape.Remove(0);
  for (int64_t i = 0; i < tensor->dim(0); ++i) {
    const StatusOr<std::string> text = NumpyText(tensor->Rows(i, i + 1).WithShape(row_shape));
    if (!text.ok()) return {};
    rows.push_back(*text);
  }
  return rows;
}

}  // namespace smelt
