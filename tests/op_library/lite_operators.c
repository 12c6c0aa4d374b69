/* The custom operators of custom_ops (lite_ops.c) by TensorFlow Lite's stable interface, as its
 * guide has users write them: ours, or TensorFlow's header where LITE_OPERATOR_HEADER names it. */
#include <math.h>
#include <stdlib.h>

#ifdef LITE_OPERATOR_HEADER
#include LITE_OPERATOR_HEADER
#else
#include "smelt/kernels/custom/lite_operator.h"
#endif

#define ENSURE(context, what, ...)                            \
  do {                                                        \
    if (!(what)) {                                            \
      TfLiteOpaqueContextReportError((context), __VA_ARGS__); \
      return kTfLiteError;                                    \
    }                                                         \
  } while (0)

static int64_t Elements(const TfLiteOpaqueTensor* t) {
  int64_t n = 1;
  for (int i = 0; i < TfLiteOpaqueTensorNumDims(t); ++i) n *= TfLiteOpaqueTensorDim(t, i);
  return n;
}

/* ---- my_custom_fused_op, whose option is told by the data of the operator */

static void* FusedInit(void* user_data, TfLiteOpaqueContext* context, const char* buffer,
                       size_t length) {
  (void)context;
  (void)buffer;
  int* options = malloc(2 * sizeof(int));
  options[0] = *(const int*)user_data;
  options[1] = (int)length;
  return options;
}
static void FusedFree(void* user_data, TfLiteOpaqueContext* context, void* data) {
  (void)user_data;
  (void)context;
  free(data);
}
static TfLiteStatus FusedPrepare(void* user_data, TfLiteOpaqueContext* context,
                                 TfLiteOpaqueNode* node) {
  (void)user_data;
  const void* options = NULL;
  int size = 0, count = 0;
  const int* inputs = NULL;
  ENSURE(context, TfLiteOpaqueNodeNumberOfInputs(node) == 2, "%d inputs",
         TfLiteOpaqueNodeNumberOfInputs(node));
  TfLiteOpaqueNodeGetCustomInitialData(node, &options, &size);
  ENSURE(context, ((const int*)TfLiteOpaqueNodeGetUserData(node))[1] == size, "%d bytes", size);
  TfLiteOpaqueNodeInputs(node, &inputs, &count);
  ENSURE(context, count == 2 && inputs[1] == TfLiteOpaqueNodeGetInputTensorIndex(node, 1),
         "other inputs");
  ENSURE(context, TfLiteOpaqueNodeGetInputTensorIndex(node, 2) == -1, "a third input");
  for (int i = 0; i < TfLiteOpaqueNodeNumberOfOutputs(node); ++i) {
    TfLiteOpaqueTensor* out = TfLiteOpaqueNodeGetOutput(context, node, i);
    if (TfLiteOpaqueContextResizeTensor(context, out, TfLiteIntArrayCreate(0)) != kTfLiteOk) {
      return kTfLiteError;
    }
  }
  return kTfLiteOk;
}
static TfLiteStatus FusedInvoke(void* user_data, TfLiteOpaqueContext* context,
                                TfLiteOpaqueNode* node) {
  (void)user_data;
  const TfLiteOpaqueTensor* a = TfLiteOpaqueNodeGetInput(context, node, 0);
  const TfLiteOpaqueTensor* b = TfLiteOpaqueNodeGetInput(context, node, 1);
  const float *x = TfLiteOpaqueTensorData(a), *y = TfLiteOpaqueTensorData(b);
  double sum = 0;
  float most = y[0];
  for (int64_t i = 0; i < Elements(a); ++i) sum += x[i];
  for (int64_t i = 0; i < Elements(b); ++i) most = y[i] > most ? y[i] : most;
  const float first = (float)sum * (float)*(const int*)TfLiteOpaqueNodeGetUserData(node);
  if (TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueNodeGetOutput(context, node, 0), &first,
                                       sizeof(first)) != kTfLiteOk) {
    return kTfLiteError;
  }
  return TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueNodeGetOutput(context, node, 1), &most,
                                          sizeof(most));
}
TfLiteOperator* FusedOperator(void) {
  static const int kOption = 10;
  TfLiteOperator* op =
      TfLiteOperatorCreate(kTfLiteBuiltinCustom, "my_custom_fused_op", 1, (void*)&kOption);
  TfLiteOperatorSetInitWithData(op, FusedInit);
  TfLiteOperatorSetFreeWithData(op, FusedFree);
  TfLiteOperatorSetPrepareWithData(op, FusedPrepare);
  TfLiteOperatorSetInvokeWithData(op, FusedInvoke);
  return op;
}

/* ---- UpTo, whose output is dynamic */

static TfLiteStatus UpToPrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueNodeGetOutput(context, node, 0));
  return kTfLiteOk;
}
static TfLiteStatus UpToInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const int32_t n =
      *(const int32_t*)TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetInput(context, node, 0));
  ENSURE(context, n >= 0, "there is nothing up to %d", (int)n);
  TfLiteOpaqueTensor* out = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TfLiteIntArray* dims = TfLiteIntArrayCreate(1);
  dims->data[0] = n;
  if (TfLiteOpaqueContextResizeTensor(context, out, dims) != kTfLiteOk) return kTfLiteError;
  float* y = TfLiteOpaqueTensorData(out);
  for (int32_t i = 0; i < n; ++i) y[i] = (float)i;
  return kTfLiteOk;
}
TfLiteOperator* Register_UpTo(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "UpTo", 1, NULL);
  TfLiteOperatorSetPrepare(op, UpToPrepare);
  TfLiteOperatorSetInvoke(op, UpToInvoke);
  return op;
}

/* ---- LastFirst, of strings */

static TfLiteStatus LastFirstInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* in = TfLiteOpaqueNodeGetInput(context, node, 0);
  const int count = TfLiteOpaqueTensorGetStringCount(in);
  const char** strings = malloc((size_t)(count + 1) * sizeof(*strings));
  int* lengths = malloc((size_t)(count + 1) * sizeof(*lengths));
  TfLiteStatus status = kTfLiteOk;
  for (int i = 0; i < count && status == kTfLiteOk; ++i) {
    status = TfLiteOpaqueTensorGetString(in, count - 1 - i, (const char**)&strings[i], &lengths[i]);
  }
  if (TfLiteOpaqueTensorGetString(in, count, strings + count, lengths + count) == kTfLiteOk) {
    status = kTfLiteError;
  }
  if (status == kTfLiteOk) {
    status = TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueNodeGetOutput(context, node, 0),
                                            (const char* const*)strings, count, lengths);
  }
  free(strings);
  free(lengths);
  return status;
}
TfLiteOperator* LastFirstOperator(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "LastFirst", 1, NULL);
  TfLiteOperatorSetInvoke(op, LastFirstInvoke);
  return op;
}

/* ---- Roots, by way of a temporary tensor */

static void* RootsInit(TfLiteOpaqueContext* context, const char* buffer, size_t length) {
  (void)buffer;
  (void)length;
  int* temporary = malloc(sizeof(int));
  TfLiteOpaqueTensorBuilder* builder = TfLiteOpaqueTensorBuilderCreate();
  TfLiteOpaqueTensorBuilderSetType(builder, kTfLiteFloat64);
  TfLiteOpaqueTensorBuilderSetAllocationType(builder, kTfLiteArenaRw);
  if (TfLiteOpaqueContextAddTensor(context, builder, temporary) != kTfLiteOk) *temporary = -1;
  TfLiteOpaqueTensorBuilderDelete(builder);
  return temporary;
}
static void RootsFree(TfLiteOpaqueContext* context, void* data) {
  (void)context;
  free(data);
}
static TfLiteStatus RootsPrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const int at = *(const int*)TfLiteOpaqueNodeGetUserData(node);
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* both[2] = {TfLiteOpaqueContextGetOpaqueTensor(context, at),
                                 TfLiteOpaqueNodeGetOutput(context, node, 0)};
  ENSURE(context, TfLiteOpaqueTensorType(x) == kTfLiteFloat32, "input 0 is %s",
         TfLiteTypeGetName(TfLiteOpaqueTensorType(x)));
  size_t bytes = 0;
  ENSURE(context,
         TfLiteOpaqueContextGetSizeOfType(context, kTfLiteFloat64, &bytes) == kTfLiteOk &&
             bytes == sizeof(double),
         "a double of %d bytes", (int)bytes);
  if (TfLiteOpaqueNodeSetTemporaries(node, &at, 1) != kTfLiteOk) return kTfLiteError;
  for (int i = 0; i < 2; ++i) {
    TfLiteIntArray* dims = TfLiteIntArrayCreate(TfLiteOpaqueTensorNumDims(x));
    for (int d = 0; d < dims->size; ++d) dims->data[d] = TfLiteOpaqueTensorDim(x, d);
    if (TfLiteOpaqueContextResizeTensor(context, both[i], dims) != kTfLiteOk) return kTfLiteError;
  }
  return kTfLiteOk;
}
static TfLiteStatus RootsInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const int* temporaries = NULL;
  int count = 0;
  TfLiteOpaqueNodeTemporaries(node, &temporaries, &count);
  ENSURE(context, count == 1, "%d temporaries", count);
  const TfLiteOpaqueTensor* in = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* x = TfLiteOpaqueTensorData(in);
  float* y = TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  double* wide =
      TfLiteOpaqueTensorData(TfLiteOpaqueContextGetOpaqueTensor(context, temporaries[0]));
  for (int64_t i = 0; i < Elements(in); ++i) {
    ENSURE(context, x[i] >= 0, "x[%d] is %g, below 0", (int)i, x[i]);
    wide[i] = sqrt((double)x[i]);
  }
  for (int64_t i = 0; i < Elements(in); ++i) y[i] = (float)wide[i];
  return kTfLiteOk;
}
/* It says no name of its own. */
TfLiteOperator* RootsOperator(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, NULL, 1, NULL);
  TfLiteOperatorSetInit(op, RootsInit);
  TfLiteOperatorSetFree(op, RootsFree);
  TfLiteOperatorSetPrepare(op, RootsPrepare);
  TfLiteOperatorSetInvoke(op, RootsInvoke);
  return op;
}

/* ---- for the errors */

static TfLiteStatus BuiltinInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  (void)context;
  (void)node;
  return kTfLiteOk;
}
TfLiteOperator* BuiltinAdd(void) {
  TfLiteOperator* op = TfLiteOperatorCreate((TfLiteBuiltinOperator)0, NULL, 1, NULL);
  TfLiteOperatorSetInvoke(op, BuiltinInvoke);
  return op;
}
TfLiteOperator* Uninvoked(void) {
  return TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Uninvoked", 1, NULL);
}
