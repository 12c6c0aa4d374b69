// The functions of lite_operator.h that look into what operators get: contexts, nodes and tensors
// are those of lite_op.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "smelt/kernels/custom/lite_host.h"
#include "smelt/kernels/custom/lite_operator.h"

struct TfLiteOpaqueTensorBuilder {
  TfLiteType type = kTfLiteNoType;
  void* data = nullptr;
  TfLiteAllocationType allocation_type = kTfLiteMemNone;
  TfLiteQuantizationParams params = {};
  TfLiteQuantization quantization = {};
};

namespace {

const TfLiteTensor& Of(const TfLiteOpaqueTensor* t) {
  return *reinterpret_cast<const TfLiteTensor*>(t);
}
TfLiteTensor& Of(TfLiteOpaqueTensor* t) { return *reinterpret_cast<TfLiteTensor*>(t); }
const TfLiteNode& Of(const TfLiteOpaqueNode* n) { return *reinterpret_cast<const TfLiteNode*>(n); }
TfLiteContext* Of(const TfLiteOpaqueContext* c) {
  return reinterpret_cast<TfLiteContext*>(const_cast<TfLiteOpaqueContext*>(c));
}

// What an operator may count on, by who owns a tensor's data.
struct Habits {
  TfLiteAllocationStrategy strategy;
  TfLiteRunStability address, data;
  TfLiteRunStep data_known, shape_known;
};

constexpr TfLiteRunStability kUnstable = kTfLiteRunStabilityUnstable,
                             kOneRun = kTfLiteRunStabilitySingleRun,
                             kAllRuns = kTfLiteRunStabilityAcrossRuns;
constexpr TfLiteRunStep kInit = kTfLiteRunStepInit, kPrepare = kTfLiteRunStepPrepare,
                        kEval = kTfLiteRunStepEval;

// By TfLiteAllocationType.
constexpr Habits kHabits[] = {
    {kTfLiteAllocationStrategyNone, kAllRuns, kAllRuns, kInit, kInit},
    {kTfLiteAllocationStrategyMMap, kAllRuns, kAllRuns, kInit, kInit},
    {kTfLiteAllocationStrategyArena, kUnstable, kOneRun, kEval, kPrepare},
    {kTfLiteAllocationStrategyArena, kUnstable, kAllRuns, kEval, kPrepare},  // persistent
    {kTfLiteAllocationStrategyMalloc, kOneRun, kOneRun, kEval, kEval},
    {kTfLiteAllocationStrategyUnknown, kOneRun, kOneRun, kPrepare, kPrepare},
    {},  // custom
    {kTfLiteAllocationStrategyNew, kOneRun, kOneRun, kEval, kEval},
};

Habits HabitsOf(const TfLiteOpaqueTensor* t) {
  const auto i = static_cast<size_t>(Of(t).allocation_type);
  return i < std::size(kHabits) ? kHabits[i] : Habits{};
}

int At(const TfLiteIntArray* a, int i) {
  return a == nullptr || i < 0 || i >= a->size ? -1 : a->data[i];
}

TfLiteStatus All(const TfLiteIntArray* a, const int** data, int* count) {
  *data = a->data;
  *count = a->size;
  return kTfLiteOk;
}

// The block of lite_op.h's form holds together as far as its first `i` + 1 strings.
bool HasString(const TfLiteTensor& t, int i) {
  if (t.type != kTfLiteString || t.data.raw == nullptr || t.bytes < sizeof(int32_t)) return false;
  int32_t count = 0;
  std::memcpy(&count, t.data.raw, sizeof(count));
  return i >= 0 && i < count && (static_cast<size_t>(i) + 3) * sizeof(int32_t) <= t.bytes;
}

}  // namespace

TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* t) { return Of(t).type; }
int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* t) {
  return Of(t).dims == nullptr ? -1 : Of(t).dims->size;
}
int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* t, int32_t i) { return At(Of(t).dims, i); }
TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* t, int32_t* num_dims) {
  *num_dims = Of(t).dims_signature == nullptr ? -1 : Of(t).dims_signature->size;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* t, int32_t i,
                                               int32_t* size) {
  *size = At(Of(t).dims_signature, i);
  return kTfLiteOk;
}
int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* t) { return Of(t).is_variable ? 1 : 0; }
size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* t) { return Of(t).bytes; }
void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* t) {
  return t == nullptr ? nullptr : Of(t).data.data;
}
TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* t) {
  return Of(t).allocation_type;
}
TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* t) {
  return HabitsOf(t).strategy;
}
TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* t) {
  return HabitsOf(t).address;
}
TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* t) {
  return HabitsOf(t).data;
}
TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* t) {
  return HabitsOf(t).data_known;
}
TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* t) {
  return HabitsOf(t).shape_known;
}
const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* t) { return Of(t).name; }
TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* t) {
  return Of(t).quantization;
}
TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* t) {
  return Of(t).params;
}
TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* t, const void* from,
                                              size_t bytes) {
  if (bytes != Of(t).bytes || (bytes > 0 && Of(t).data.data == nullptr)) return kTfLiteError;
  if (bytes > 0) std::memcpy(Of(t).data.data, from, bytes);
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* t, void* to, size_t bytes) {
  if (bytes != Of(t).bytes || (bytes > 0 && Of(t).data.data == nullptr)) return kTfLiteError;
  if (bytes > 0) std::memcpy(to, Of(t).data.data, bytes);
  return kTfLiteOk;
}

int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* t) {
  if (Of(t).type != kTfLiteString || Of(t).bytes < sizeof(int32_t)) return -1;
  int32_t count = 0;
  std::memcpy(&count, Of(t).data.raw, sizeof(count));
  return count;
}
TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* t, int i, const char** str,
                                         int* len) {
  if (!HasString(Of(t), i)) return kTfLiteError;
  int32_t ends[2];
  std::memcpy(ends, Of(t).data.raw + (static_cast<size_t>(i) + 1) * sizeof(int32_t), sizeof(ends));
  if (ends[0] < 0 || ends[1] < ends[0] || static_cast<size_t>(ends[1]) > Of(t).bytes) {
    return kTfLiteError;
  }
  *str = Of(t).data.raw + ends[0];
  *len = ends[1] - ends[0];
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* t, const char* const* strings,
                                            int count, const int* lengths) {
  if (Of(t).type != kTfLiteString || count < 0) return kTfLiteError;
  size_t bytes = (static_cast<size_t>(count) + 2) * sizeof(int32_t);
  std::vector<int32_t> head = {count, static_cast<int32_t>(bytes)};
  for (int i = 0; i < count; ++i) {
    if (lengths[i] < 0) return kTfLiteError;
    bytes += static_cast<size_t>(lengths[i]);
    if (bytes > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return kTfLiteError;
    head.push_back(static_cast<int32_t>(bytes));
  }
  auto* block = static_cast<char*>(std::malloc(bytes));
  TfLiteIntArray* dims = TfLiteIntArrayCreate(1);
  if (block == nullptr || dims == nullptr) {
    std::free(block);
    TfLiteIntArrayFree(dims);
    return kTfLiteError;
  }
  std::memcpy(block, head.data(), head.size() * sizeof(int32_t));
  for (int i = 0; i < count; ++i) {
    std::copy_n(strings[i], lengths[i], block + head[static_cast<size_t>(i) + 1]);
  }
  dims->data[0] = count;
  TfLiteTensorReset(kTfLiteString, Of(t).name, dims, Of(t).params, block, bytes, kTfLiteDynamic,
                    Of(t).allocation, Of(t).is_variable, &Of(t));
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* t, const char* str, int len) {
  return TfLiteOpaqueTensorWriteStrings(t, &str, 1, &len);
}
void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* t) {
  if (Of(t).allocation_type == kTfLiteDynamic) return;
  TfLiteTensorDataFree(&Of(t));
  Of(t).allocation_type = kTfLiteDynamic;
  Of(t).bytes = 0;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate() {
  return new TfLiteOpaqueTensorBuilder;
}
void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* b) { delete b; }
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder* b,
                                                            TfLiteType type) {
  b->type = type;
  return b;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder* b,
                                                            void* data) {
  b->data = data;
  return b;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* b, TfLiteAllocationType allocation_type) {
  b->allocation_type = allocation_type;
  return b;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* b, TfLiteQuantizationParams params) {
  b->params = params;
  return b;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(
    TfLiteOpaqueTensorBuilder* b, TfLiteQuantization quantization) {
  b->quantization = quantization;
  return b;
}

const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* context,
                                                   const TfLiteOpaqueNode* node, int i) {
  return TfLiteOpaqueContextGetOpaqueTensor(context, At(Of(node).inputs, i));
}
TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context,
                                              const TfLiteOpaqueNode* node, int i) {
  return TfLiteOpaqueContextGetOpaqueTensor(context, At(Of(node).outputs, i));
}
int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node) { return Of(node).inputs->size; }
int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node) { return Of(node).outputs->size; }
void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node) { return Of(node).user_data; }
void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node) { return Of(node).builtin_data; }
TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node, const void** data,
                                                  int* size) {
  *data = Of(node).custom_initial_data;
  *size = Of(node).custom_initial_data_size;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node, const int** inputs, int* count) {
  return All(Of(node).inputs, inputs, count);
}
TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node, const int** outputs,
                                     int* count) {
  return All(Of(node).outputs, outputs, count);
}
TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node, const int** temporaries,
                                         int* count) {
  return All(Of(node).temporaries, temporaries, count);
}
TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node, const int* temporaries,
                                            int count) {
  TfLiteIntArray* fresh = TfLiteIntArrayCreate(count);
  if (fresh == nullptr) return kTfLiteError;
  std::copy_n(temporaries, count, fresh->data);
  auto& of = *reinterpret_cast<TfLiteNode*>(node);
  TfLiteIntArrayFree(of.temporaries);
  of.temporaries = fresh;
  return kTfLiteOk;
}
int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int i) {
  return At(Of(node).inputs, i);
}
int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int i) {
  return At(Of(node).outputs, i);
}

TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* context, int i) {
  return reinterpret_cast<TfLiteOpaqueTensor*>(Of(context)->GetTensor(Of(context), i));
}
size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context) {
  return Of(context)->tensors_size;
}
TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                             TfLiteOpaqueTensor* tensor, TfLiteIntArray* new_size) {
  return Of(context)->ResizeTensor(Of(context), &Of(tensor), new_size);
}
TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                          TfLiteOpaqueTensorBuilder* builder,
                                          int* new_tensor_index) {
  const bool dynamic = builder->allocation_type == kTfLiteDynamic;
  if (!dynamic && builder->allocation_type != kTfLiteArenaRw &&
      builder->allocation_type != kTfLiteArenaRwPersistent) {
    TfLiteOpaqueContextReportError(
        context,
        "Invalid allocation type '%d'.  Allocation type for TfLiteOpaqueContextAddTensor must be "
        "one of: 'kTfLiteDynamic', 'kTfLiteArenaRw' or 'kTfLiteArenaRwPersistent'.",
        builder->allocation_type);
    return kTfLiteError;
  }
  if (dynamic != (builder->data != nullptr)) {
    TfLiteOpaqueContextReportError(
        context, dynamic
                     ? "For tensors of allocation type 'kTfLiteDynamic' 'data' must be provided."
                     : "For tensors of allocation type 'kTfLiteArenaRw' or "
                       "'kTfLiteArenaRwPersistent' 'data' must not be provided.");
    return kTfLiteError;
  }
  int i = -1;
  const TfLiteStatus added = Of(context)->AddTensors(Of(context), 1, &i);
  if (added != kTfLiteOk) return added;
  TfLiteTensor& t = Of(context)->tensors[i];
  t.type = builder->type;
  t.data.data = builder->data;
  t.allocation_type = builder->allocation_type;
  t.params = builder->params;
  t.quantization = builder->quantization;
  if (new_tensor_index != nullptr) *new_tensor_index = i;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context, TfLiteType type,
                                              size_t* bytes) {
  const auto one = smelt::AbiBytes(type, nullptr);
  if (one.ok()) {
    *bytes = *one;
    return kTfLiteOk;
  }
  TfLiteOpaqueContextReportError(context, "%s", std::string(one.status().message()).c_str());
  return kTfLiteError;
}
TfLiteStatus TfLiteOpaqueContextGetExternalContext(TfLiteOpaqueContext* context, void** external,
                                                   TfLiteExternalContextType type) {
  *external = Of(context)->GetExternalContext(Of(context), type);
  return kTfLiteOk;
}
void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context, const char* format,
                                      va_list arguments) {
  char text[4096];
  if (format == nullptr || std::vsnprintf(text, sizeof(text), format, arguments) < 0) return;
  Of(context)->ReportError(Of(context), "%s", text);
}
void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  TfLiteOpaqueContextReportErrorVa(context, format, arguments);
  va_end(arguments);
}
TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* context,
                                                 TfLiteIntArray** plan) {
  return Of(context)->GetExecutionPlan(Of(context), plan);
}
TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* context, int i,
                                                       TfLiteOpaqueNode**, TfLiteOperator**) {
  return Of(context)->GetNodeAndRegistration(Of(context), i, nullptr, nullptr);
}
