// The functions of lite_op.h, which libraries of operators call.
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "smelt/kernels/custom/lite_op.h"

namespace {

template <typename Array>
Array* MakeLiteArray(int size) {
  if (size < 0) return nullptr;
  using Element = std::remove_reference_t<decltype(Array::data[0])>;
  auto* a =
      static_cast<Array*>(std::malloc(sizeof(Array) + static_cast<size_t>(size) * sizeof(Element)));
  if (a != nullptr) a->size = size;
  return a;
}

template <typename Array>
Array* CopyLiteArray(const Array* from) {
  if (from == nullptr) return nullptr;
  auto* a = MakeLiteArray<Array>(from->size);
  if (a != nullptr && a->size > 0) {
    std::memcpy(a->data, from->data, static_cast<size_t>(a->size) * sizeof(a->data[0]));
  }
  return a;
}

bool IsOfMalloc(const TfLiteTensor& t) {
  return t.allocation_type == kTfLiteDynamic || t.allocation_type == kTfLitePersistentRo;
}

}  // namespace

size_t TfLiteIntArrayGetSizeInBytes(int size) {
  return sizeof(TfLiteIntArray) + (size > 0 ? static_cast<size_t>(size) * sizeof(int) : 0);
}
TfLiteIntArray* TfLiteIntArrayCreate(int size) { return MakeLiteArray<TfLiteIntArray>(size); }
TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* a) { return CopyLiteArray(a); }
int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b) {
  if (a == b) return 1;
  if (a == nullptr || b == nullptr) return 0;
  return TfLiteIntArrayEqualsArray(a, b->size, b->data);
}
int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int size, const int* data) {
  if (a == nullptr) return size == 0 ? 1 : 0;
  if (a->size != size) return 0;
  return size == 0 || std::memcmp(a->data, data, static_cast<size_t>(size) * sizeof(int)) == 0;
}
void TfLiteIntArrayFree(TfLiteIntArray* a) { std::free(a); }

int TfLiteFloatArrayGetSizeInBytes(int size) {
  return static_cast<int>(sizeof(TfLiteFloatArray)) + size * static_cast<int>(sizeof(float));
}
TfLiteFloatArray* TfLiteFloatArrayCreate(int size) { return MakeLiteArray<TfLiteFloatArray>(size); }
TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* a) { return CopyLiteArray(a); }
void TfLiteFloatArrayFree(TfLiteFloatArray* a) { std::free(a); }

const char* TfLiteTypeGetName(TfLiteType type) {
  switch (type) {
    case kTfLiteNoType:
      return "NOTYPE";
    case kTfLiteFloat32:
      return "FLOAT32";
    case kTfLiteInt32:
      return "INT32";
    case kTfLiteUInt8:
      return "UINT8";
    case kTfLiteInt64:
      return "INT64";
    case kTfLiteString:
      return "STRING";
    case kTfLiteBool:
      return "BOOL";
    case kTfLiteInt16:
      return "INT16";
    case kTfLiteComplex64:
      return "COMPLEX64";
    case kTfLiteInt8:
      return "INT8";
    case kTfLiteFloat16:
      return "FLOAT16";
    case kTfLiteFloat64:
      return "FLOAT64";
    case kTfLiteComplex128:
      return "COMPLEX128";
    case kTfLiteUInt64:
      return "UINT64";
    case kTfLiteResource:
      return "RESOURCE";
    case kTfLiteVariant:
      return "VARIANT";
    case kTfLiteUInt32:
      return "UINT32";
    case kTfLiteUInt16:
      return "UINT16";
    case kTfLiteInt4:
      return "INT4";
    case kTfLiteBFloat16:
      return "BFLOAT16";
    case kTfLiteInt2:
      return "INT2";
    case kTfLiteUInt4:
      return "UINT4";
    case kTfLiteFloat8E4M3FN:
      return "FLOAT8_E4M3FN";
    case kTfLiteFloat8E5M2:
      return "FLOAT8_E5M2";
  }
  return "Unknown type";
}

TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t bytes, TfLiteTensor* tensor, bool preserve_data) {
  if (tensor == nullptr) return kTfLiteError;
  if (!IsOfMalloc(*tensor)) return kTfLiteOk;
  if (tensor->data.data != nullptr && bytes <= tensor->bytes) {
    tensor->bytes = bytes;
    return kTfLiteOk;
  }
  if (!preserve_data) {
    std::free(tensor->data.data);
    tensor->data.data = nullptr;
    tensor->bytes = 0;
  }
  // Of one byte at least: memory of none may be nullptr, which reads as no memory.
  void* data = std::realloc(tensor->data.data, bytes > 0 ? bytes : 1);
  if (data == nullptr) return kTfLiteError;
  tensor->data.data = data;
  tensor->bytes = bytes;
  return kTfLiteOk;
}
TfLiteStatus TfLiteTensorRealloc(size_t bytes, TfLiteTensor* tensor) {
  return TfLiteTensorResizeMaybeCopy(bytes, tensor, true);
}
void TfLiteTensorDataFree(TfLiteTensor* tensor) {
  if (tensor == nullptr) return;
  if (IsOfMalloc(*tensor)) std::free(tensor->data.data);
  tensor->data.data = nullptr;
}
void TfLiteQuantizationFree(TfLiteQuantization* quantization) {
  if (quantization->type == kTfLiteAffineQuantization && quantization->params != nullptr) {
    auto* affine = static_cast<TfLiteAffineQuantization*>(quantization->params);
    TfLiteFloatArrayFree(affine->scale);
    TfLiteIntArrayFree(affine->zero_point);
    std::free(affine);
  }
  *quantization = {kTfLiteNoQuantization, nullptr};
}
void TfLiteTensorFree(TfLiteTensor* tensor) {
  if (tensor == nullptr) return;
  TfLiteTensorDataFree(tensor);
  TfLiteIntArrayFree(tensor->dims);
  tensor->dims = nullptr;
  TfLiteQuantizationFree(&tensor->quantization);
}
void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                       TfLiteQuantizationParams quantization, char* data, size_t bytes,
                       TfLiteAllocationType allocation_type, const void* allocation,
                       bool is_variable, TfLiteTensor* tensor) {
  if (tensor->dims == dims) tensor->dims = nullptr;
  TfLiteTensorFree(tensor);
  tensor->type = type;
  tensor->name = name;
  tensor->dims = dims;
  tensor->params = quantization;
  tensor->data.raw = data;
  tensor->bytes = bytes;
  tensor->allocation_type = allocation_type;
  tensor->allocation = allocation;
  tensor->is_variable = is_variable;
}
