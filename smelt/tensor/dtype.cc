#include "smelt/tensor/dtype.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace smelt {
namespace {

struct DtypeRow {
  absl::string_view name;
  absl::string_view numpy;
  size_t size;
};

constexpr std::array<DtypeRow, kNumDtypes> kDtypeTable = {{
    {"invalid", "invalid", 0},
    {"float", "float32", 4},
    {"double", "float64", 8},
    {"int32", "int32", 4},
    {"uint8", "uint8", 1},
    {"int16", "int16", 2},
    {"int8", "int8", 1},
    {"string", "object", 0},
    {"complex64", "complex64", 8},
    {"int64", "int64", 8},
    {"bool", "bool", 1},
    {"qint8", "qint8", 1},
    {"quint8", "quint8", 1},
    {"qint32", "qint32", 4},
    {"bfloat16", "bfloat16", 2},
    {"qint16", "qint16", 2},
    {"quint16", "quint16", 2},
    {"uint16", "uint16", 2},
    {"complex128", "complex128", 16},
    {"half", "float16", 2},
    {"resource", "resource", 0},
    {"variant", "variant", 0},
    {"uint32", "uint32", 4},
    {"uint64", "uint64", 8},
    {"float8_e5m2", "float8_e5m2", 1},
    {"float8_e4m3fn", "float8_e4m3fn", 1},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", 1},
    {"float8_e4m3b11fnuz", "float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", 1},
    {"int4", "int4", 1},
    {"uint4", "uint4", 1},
    {"int2", "int2", 1},
    {"uint2", "uint2", 1},
    {"float4_e2m1fn", "float4_e2m1fn", 1},
}};

const DtypeRow& Row(Dtype t) {
  const auto i = static_cast<size_t>(BaseType(t));
  return kDtypeTable[i < kDtypeTable.size() ? i : 0];
}

constexpr DtypeSet kFloat8Types =
    Types(Dtype::kFloat8E5m2, Dtype::kFloat8E4m3fn, Dtype::kFloat8E4m3fnuz,
          Dtype::kFloat8E4m3b11fnuz, Dtype::kFloat8E5m2fnuz, Dtype::kFloat4E2m1fn);
constexpr DtypeSet kQuantTypes =
    Types(Dtype::kQint8, Dtype::kQuint8, Dtype::kQint16, Dtype::kQuint16, Dtype::kQint32);
constexpr DtypeSet kSubByte = Types(Dtype::kInt4, Dtype::kUint4, Dtype::kInt2, Dtype::kUint2);

}  // namespace

bool IsKnownDtype(int v) { return (v > 0 && v < kNumDtypes) || (v > 100 && v < 100 + kNumDtypes); }

size_t DtypeSize(Dtype t) { return Row(t).size; }

absl::string_view DtypeName(Dtype t) {
  if (!IsRef(t)) return Row(t).name;
  static const auto* refs = [] {
    auto* names = new std::array<std::string, kNumDtypes>;
    for (int i = 0; i < kNumDtypes; ++i) (*names)[i] = absl::StrCat(kDtypeTable[i].name, "_ref");
    return names;
  }();
  const auto i = static_cast<size_t>(BaseType(t));
  return (*refs)[i < refs->size() ? i : 0];
}

std::string DtypeEnumName(Dtype t) {
  return absl::StrCat("DT_", absl::AsciiStrToUpper(DtypeName(t)));
}

absl::string_view NumpyName(Dtype t) { return Row(t).numpy; }

Dtype ParseDtype(absl::string_view name) {
  std::string lower = absl::AsciiStrToLower(name);
  absl::string_view s = lower;
  if (absl::StartsWith(s, "dt_")) s.remove_prefix(3);
  bool ref = false;
  if (absl::EndsWith(s, "_ref")) {
    s.remove_suffix(4);
    ref = true;
  }
  for (int i = 1; i < kNumDtypes; ++i) {
    const DtypeRow& row = kDtypeTable[i];
    if (s == row.name || (s == row.numpy && s != "object")) {
      return ref ? RefType(static_cast<Dtype>(i)) : static_cast<Dtype>(i);
    }
  }
  return Dtype::kInvalid;
}

bool IsFloating(Dtype t) { return Has(kFloatTypes | kHalfTypes | kFloat8Types, t); }
bool IsInteger(Dtype t) { return Has(kIntTypes | kSubByte, t); }
bool IsUnsigned(Dtype t) { return Has(kUnsignedIntTypes | Types(Dtype::kUint4, Dtype::kUint2), t); }
bool IsComplex(Dtype t) { return Has(kComplexTypes, t); }
bool IsQuantized(Dtype t) { return Has(kQuantTypes, t); }
bool IsPod(Dtype t) { return DtypeSize(t) != 0; }

}  // namespace smelt
