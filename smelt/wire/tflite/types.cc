#include <algorithm>

#include "smelt/wire/tflite/schema.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {
namespace {

struct TypeRow {
  tflite::TensorType lite;
  Dtype type;
};
constexpr TypeRow kTypes[] = {
    {tflite::TensorType_FLOAT32, Dtype::kFloat},
    {tflite::TensorType_FLOAT16, Dtype::kHalf},
    {tflite::TensorType_INT32, Dtype::kInt32},
    {tflite::TensorType_UINT8, Dtype::kUint8},
    {tflite::TensorType_INT64, Dtype::kInt64},
    {tflite::TensorType_STRING, Dtype::kString},
    {tflite::TensorType_BOOL, Dtype::kBool},
    {tflite::TensorType_INT16, Dtype::kInt16},
    {tflite::TensorType_COMPLEX64, Dtype::kComplex64},
    {tflite::TensorType_INT8, Dtype::kInt8},
    {tflite::TensorType_FLOAT64, Dtype::kDouble},
    {tflite::TensorType_COMPLEX128, Dtype::kComplex128},
    {tflite::TensorType_UINT64, Dtype::kUint64},
    {tflite::TensorType_RESOURCE, Dtype::kResource},
    {tflite::TensorType_VARIANT, Dtype::kVariant},
    {tflite::TensorType_UINT32, Dtype::kUint32},
    {tflite::TensorType_UINT16, Dtype::kUint16},
    {tflite::TensorType_INT4, Dtype::kInt4},
    {tflite::TensorType_BFLOAT16, Dtype::kBfloat16},
    {tflite::TensorType_INT2, Dtype::kInt2},
    {tflite::TensorType_UINT4, Dtype::kUint4},
};

}  // namespace

std::optional<int8_t> LiteTypeOf(Dtype type) {
  const auto* row = std::ranges::find(kTypes, type, &TypeRow::type);
  if (row == std::end(kTypes)) return std::nullopt;
  return static_cast<int8_t>(row->lite);
}

std::optional<Dtype> DtypeOfLite(int8_t type) {
  const auto* row =
      std::ranges::find(kTypes, static_cast<tflite::TensorType>(type), &TypeRow::lite);
  if (row == std::end(kTypes)) return std::nullopt;
  return row->type;
}

}  // namespace smelt
