/* Custom operators of TensorFlow Lite by its stable interface (tensorflow/lite/core/c/operator.h,
 * c_api_opaque.h of TensorFlow 2.21), restated: contexts, nodes and tensors are opaque, functions
 * look into them. All of these are the host's.
 *
 *   static TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) { ... }
 *   static TfLiteStatus Invoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) { ... }
 *   TfLiteOperator* MyOperator(void) {
 *     TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "MyOp", 1, NULL);
 *     TfLiteOperatorSetPrepare(op, Prepare);
 *     TfLiteOperatorSetInvoke(op, Invoke);
 *     return op;
 *   }
 *
 * `--op_library LIB.so` takes every function *Operator that a library which makes operators exports
 * without arguments, and every Register_*; `LIB.so:MyOp=MyOperator,...` those alone. The rest is as
 * lite_op.h says. What only delegates may ask (the plan, other nodes) reports an error.
 */
#ifndef SMELT_KERNELS_CUSTOM_LITE_OPERATOR_H_
#define SMELT_KERNELS_CUSTOM_LITE_OPERATOR_H_

#include <stdarg.h>

#include "smelt/kernels/custom/lite_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TfLiteOperator TfLiteOperator;
typedef struct TfLiteOpaqueContext TfLiteOpaqueContext;
typedef struct TfLiteOpaqueNode TfLiteOpaqueNode;
typedef struct TfLiteOpaqueTensor TfLiteOpaqueTensor;
typedef struct TfLiteOpaqueTensorBuilder TfLiteOpaqueTensorBuilder;

/* The numbers of other builtins are the schema's. */
typedef enum { kTfLiteBuiltinCustom = 32 } TfLiteBuiltinOperator;

/* ---- operators: made by the library, which keeps them; callbacks that are not set do nothing */

/* `custom_name` is copied. */
SMELT_LITE_EXPORT TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code,
                                                       const char* custom_name, int version,
                                                       void* user_data);
SMELT_LITE_EXPORT TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code,
                                                               const char* custom_name, int version,
                                                               void* user_data);
SMELT_LITE_EXPORT void TfLiteOperatorDelete(TfLiteOperator* op);
SMELT_LITE_EXPORT TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* op);
SMELT_LITE_EXPORT const char* TfLiteOperatorGetCustomName(const TfLiteOperator* op);
SMELT_LITE_EXPORT int TfLiteOperatorGetVersion(const TfLiteOperator* op); /* -1 of NULL */
SMELT_LITE_EXPORT void* TfLiteOperatorGetUserData(const TfLiteOperator* op);
SMELT_LITE_EXPORT void TfLiteOperatorSetInit(TfLiteOperator* op,
                                             void* (*init)(TfLiteOpaqueContext* context,
                                                           const char* buffer, size_t length));
SMELT_LITE_EXPORT void TfLiteOperatorSetFree(TfLiteOperator* op,
                                             void (*free)(TfLiteOpaqueContext* context,
                                                          void* data));
SMELT_LITE_EXPORT void TfLiteOperatorSetPrepare(
    TfLiteOperator* op,
    TfLiteStatus (*prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
SMELT_LITE_EXPORT void TfLiteOperatorSetInvoke(TfLiteOperator* op,
                                               TfLiteStatus (*invoke)(TfLiteOpaqueContext* context,
                                                                      TfLiteOpaqueNode* node));
/* The same with the user_data of the operator; they go before those without. kTfLiteError of
 * NULL. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteOperatorSetInitWithData(
    TfLiteOperator* op, void* (*init)(void* user_data, TfLiteOpaqueContext* context,
                                      const char* buffer, size_t length));
SMELT_LITE_EXPORT TfLiteStatus TfLiteOperatorSetFreeWithData(
    TfLiteOperator* op, void (*free)(void* user_data, TfLiteOpaqueContext* context, void* data));
SMELT_LITE_EXPORT TfLiteStatus TfLiteOperatorSetPrepareWithData(
    TfLiteOperator* op,
    TfLiteStatus (*prepare)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
SMELT_LITE_EXPORT TfLiteStatus TfLiteOperatorSetInvokeWithData(
    TfLiteOperator* op,
    TfLiteStatus (*invoke)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
/* Kept and not looked at: nothing runs in place or asynchronously here. */
SMELT_LITE_EXPORT void TfLiteOperatorSetInplaceOperator(TfLiteOperator* op, uint64_t bits);
SMELT_LITE_EXPORT void TfLiteOperatorSetAsyncKernel(
    TfLiteOperator* op, struct TfLiteAsyncKernel* (*async_kernel)(TfLiteOpaqueContext* context,
                                                                  TfLiteOpaqueNode* node));
SMELT_LITE_EXPORT TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(
    TfLiteOperator* op,
    struct TfLiteAsyncKernel* (*async_kernel)(void* user_data, TfLiteOpaqueContext* context,
                                              TfLiteOpaqueNode* node));

/* ---- tensors */

typedef enum TfLiteAllocationStrategy {
  kTfLiteAllocationStrategyUnknown,
  kTfLiteAllocationStrategyNone,
  kTfLiteAllocationStrategyMMap,
  kTfLiteAllocationStrategyArena,
  kTfLiteAllocationStrategyMalloc,
  kTfLiteAllocationStrategyNew
} TfLiteAllocationStrategy;

typedef enum TfLiteRunStability {
  kTfLiteRunStabilityUnknown,
  kTfLiteRunStabilityUnstable,
  kTfLiteRunStabilitySingleRun,
  kTfLiteRunStabilityAcrossRuns
} TfLiteRunStability;

typedef enum TfLiteRunStep {
  kTfLiteRunStepUnknown,
  kTfLiteRunStepInit,
  kTfLiteRunStepPrepare,
  kTfLiteRunStepEval
} TfLiteRunStep;

SMELT_LITE_EXPORT TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* t); /* -1: unset */
SMELT_LITE_EXPORT int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* t, int32_t i);
/* The shape with -1 for free sizes; *num_dims is -1 where there is none. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* t,
                                                                     int32_t* num_dims);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* t,
                                                                 int32_t i, int32_t* size);
SMELT_LITE_EXPORT int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* t); /* NULL of NULL */
SMELT_LITE_EXPORT TfLiteAllocationType
TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteAllocationStrategy
TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteRunStability
TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteRunStability
TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteQuantizationParams
TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* t);
/* kTfLiteError where the bytes are not as many as the tensor's. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* t,
                                                                const void* from, size_t bytes);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* t, void* to,
                                                              size_t bytes);
SMELT_LITE_EXPORT int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* t);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* t, int i,
                                                           const char** str, int* len);
/* The tensor becomes a vector of these. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* t,
                                                              const char* const* strings, int count,
                                                              const int* lengths);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* t, const char* str,
                                                             int len);
SMELT_LITE_EXPORT void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* t);

SMELT_LITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void);
SMELT_LITE_EXPORT void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* b);
SMELT_LITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(
    TfLiteOpaqueTensorBuilder* b, TfLiteType type);
SMELT_LITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(
    TfLiteOpaqueTensorBuilder* b, void* data);
SMELT_LITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* b, TfLiteAllocationType allocation_type);
SMELT_LITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* b, TfLiteQuantizationParams params);
SMELT_LITE_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(
    TfLiteOpaqueTensorBuilder* b, TfLiteQuantization quantization);

/* ---- nodes: NULL and -1 for what is not there or is left out */

SMELT_LITE_EXPORT const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(
    const TfLiteOpaqueContext* context, const TfLiteOpaqueNode* node, int i);
SMELT_LITE_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context,
                                                                const TfLiteOpaqueNode* node,
                                                                int i);
SMELT_LITE_EXPORT int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node);
SMELT_LITE_EXPORT int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node);
SMELT_LITE_EXPORT void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node);
SMELT_LITE_EXPORT void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node,
                                                                    const void** data, int* size);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node,
                                                      const int** inputs, int* count);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node,
                                                       const int** outputs, int* count);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node,
                                                           const int** temporaries, int* count);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node,
                                                              const int* temporaries, int count);
SMELT_LITE_EXPORT int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int i);
SMELT_LITE_EXPORT int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int i);

/* ---- contexts */

SMELT_LITE_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(
    const TfLiteOpaqueContext* context, int i);
SMELT_LITE_EXPORT size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context);
/* Takes new_size. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                                               TfLiteOpaqueTensor* tensor,
                                                               TfLiteIntArray* new_size);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                                            TfLiteOpaqueTensorBuilder* builder,
                                                            int* new_tensor_index);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context,
                                                                TfLiteType type, size_t* bytes);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueContextGetExternalContext(
    TfLiteOpaqueContext* context, void** external, TfLiteExternalContextType type);
SMELT_LITE_EXPORT void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context,
                                                      const char* format, ...);
SMELT_LITE_EXPORT void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context,
                                                        const char* format, va_list arguments);
/* For delegates. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* context,
                                                                   TfLiteIntArray** plan);
SMELT_LITE_EXPORT TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(
    TfLiteOpaqueContext* context, int i, TfLiteOpaqueNode** node, TfLiteOperator** op);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SMELT_KERNELS_CUSTOM_LITE_OPERATOR_H_ */
