/* What a custom operator of TensorFlow Lite and its host say to each other: TensorFlow Lite's C
 * interface (tensorflow/lite/core/c/common.h of TensorFlow 2.21) as far as operators need it,
 * restated. Layouts and names are TensorFlow's: a library that was compiled against its header
 * works here, whether it holds the functions below itself or leaves them to the host.
 *
 *   static TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) { ... }
 *   static TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) { ... }
 *   TfLiteRegistration* Register_MY_OP(void) {
 *     static TfLiteRegistration r;
 *     r.custom_name = "MyOp";
 *     r.prepare = Prepare;
 *     r.invoke = Invoke;
 *     return &r;
 *   }
 *
 * `--op_library LIB.so` takes every function Register_* that the library exports without arguments,
 * of C or of C++, in any namespace: the operator's name is custom_name, or else what stands behind
 * Register_. `--op_library LIB.so:MyOp=Register_MY_OP,...` takes those alone, under these names.
 * Operators of TfLiteOperatorCreate: lite_operator.h. What takes a MutableOpResolver
 * (RegisterSelectedOps) is an interface of C++, of one build of TensorFlow, and is not called.
 *
 * For each operator of a file and each session there is one node: init, prepare where the shapes of
 * inputs are new, invoke, never two at a time, free when the session ends. Tensors of an operator
 * lie in a context of their own, so that an index means nothing beyond it. Inputs may be read only;
 * those that the file keeps between runs (is_variable) may be written too. Data is aligned to 64
 * bytes. Outputs are zeros when invoke is called, those that are kTfLiteDynamic have no memory
 * until they are resized.
 */
#ifndef SMELT_KERNELS_CUSTOM_LITE_OP_H_
#define SMELT_KERNELS_CUSTOM_LITE_OP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMELT_LITE_EXPORT __attribute__((visibility("default")))

/* ---- numbers of the interface */

typedef enum TfLiteStatus {
  kTfLiteOk = 0,
  kTfLiteError = 1,
  kTfLiteDelegateError = 2,
  kTfLiteApplicationError = 3,
  kTfLiteDelegateDataNotFound = 4,
  kTfLiteDelegateDataWriteError = 5,
  kTfLiteDelegateDataReadError = 6,
  kTfLiteUnresolvedOps = 7,
  kTfLiteCancelled = 8,
  kTfLiteOutputShapeNotKnown = 9
} TfLiteStatus;

typedef enum {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteComplex64 = 8,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteComplex128 = 12,
  kTfLiteUInt64 = 13,
  kTfLiteResource = 14,
  kTfLiteVariant = 15,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
  kTfLiteInt4 = 18,
  kTfLiteBFloat16 = 19,
  kTfLiteInt2 = 20,
  kTfLiteUInt4 = 21,
  kTfLiteFloat8E4M3FN = 22,
  kTfLiteFloat8E5M2 = 23
} TfLiteType;

/* Who owns a tensor's data. MmapRo: constants. ArenaRw: the host, from prepare to the end of
 * invoke; ArenaRwPersistent: between runs too. Dynamic and PersistentRo: malloc's memory, which
 * ResizeTensor takes at once. */
typedef enum TfLiteAllocationType {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo = 1,
  kTfLiteArenaRw = 2,
  kTfLiteArenaRwPersistent = 3,
  kTfLiteDynamic = 4,
  kTfLitePersistentRo = 5,
  kTfLiteCustom = 6,
  kTfLiteVariantObject = 7,
  kTfLiteNonCpu = 8
} TfLiteAllocationType;

typedef enum TfLiteQuantizationType {
  kTfLiteNoQuantization = 0,
  kTfLiteAffineQuantization = 1,
  kTfLiteBlockwiseQuantization = 2,
  kTfLiteMultiAxisQuantization = 3
} TfLiteQuantizationType;

typedef enum TfLiteExternalContextType {
  kTfLiteEigenContext = 0,
  kTfLiteGemmLowpContext = 1,
  kTfLiteEdgeTpuContext = 2,
  kTfLiteCpuBackendContext = 3,
  kTfLiteLiteRtBufferContext = 4,
  kTfLiteMaxExternalContexts = 5
} TfLiteExternalContextType;

enum { kTfLiteBuiltinCustomCode = 32 }; /* TfLiteRegistration.builtin_code of a custom operator */
#define kTfLiteOptionalTensor (-1)      /* in TfLiteNode.inputs: it is left out */

/* ---- arrays, in malloc's memory */

typedef struct TfLiteIntArray {
  int size;
  int data[];
} TfLiteIntArray;

typedef struct TfLiteFloatArray {
  int size;
  float data[];
} TfLiteFloatArray;

SMELT_LITE_EXPORT size_t TfLiteIntArrayGetSizeInBytes(int size);
SMELT_LITE_EXPORT TfLiteIntArray* TfLiteIntArrayCreate(int size);
SMELT_LITE_EXPORT TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* a);
SMELT_LITE_EXPORT int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
SMELT_LITE_EXPORT int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int size, const int* data);
SMELT_LITE_EXPORT void TfLiteIntArrayFree(TfLiteIntArray* a);
SMELT_LITE_EXPORT int TfLiteFloatArrayGetSizeInBytes(int size);
SMELT_LITE_EXPORT TfLiteFloatArray* TfLiteFloatArrayCreate(int size);
SMELT_LITE_EXPORT TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* a);
SMELT_LITE_EXPORT void TfLiteFloatArrayFree(TfLiteFloatArray* a);

/* ---- tensors */

typedef union TfLitePtrUnion {
  int32_t* i32;
  uint32_t* u32;
  int64_t* i64;
  uint64_t* u64;
  float* f;
  double* f64;
  char* raw;
  const char* raw_const;
  uint8_t* uint8;
  bool* b;
  int16_t* i16;
  uint16_t* ui16;
  int8_t* int8;
  void* data;
} TfLitePtrUnion;

/* real = scale * (q - zero_point). Zeros where there is none, or one for each row. */
typedef struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
} TfLiteQuantizationParams;

typedef struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
} TfLiteAffineQuantization;

/* params: a TfLiteAffineQuantization where type is kTfLiteAffineQuantization. */
typedef struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;
} TfLiteQuantization;

struct TfLiteDelegate;
struct TfLiteSparsity;

/* Strings are one block: int32 count; count + 1 int32 offsets from its start, the last one that of
 * its end; then the characters. */
typedef struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params;
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  struct TfLiteDelegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  struct TfLiteSparsity* sparsity;
  const TfLiteIntArray* dims_signature;
} TfLiteTensor;

SMELT_LITE_EXPORT const char* TfLiteTypeGetName(TfLiteType type);
/* Memory of kTfLiteDynamic and kTfLitePersistentRo; of others kTfLiteOk and nothing. */
SMELT_LITE_EXPORT TfLiteStatus TfLiteTensorRealloc(size_t bytes, TfLiteTensor* tensor);
SMELT_LITE_EXPORT TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t bytes, TfLiteTensor* tensor,
                                                           bool preserve_data);
SMELT_LITE_EXPORT void TfLiteTensorDataFree(TfLiteTensor* tensor);
SMELT_LITE_EXPORT void TfLiteQuantizationFree(TfLiteQuantization* quantization);
SMELT_LITE_EXPORT void TfLiteTensorFree(TfLiteTensor* tensor);
/* Frees what the tensor has and sets all of it; takes `dims`. */
SMELT_LITE_EXPORT void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                                         TfLiteQuantizationParams quantization, char* data,
                                         size_t bytes, TfLiteAllocationType allocation_type,
                                         const void* allocation, bool is_variable,
                                         TfLiteTensor* tensor);

/* ---- operators */

/* Indices are those of the context's tensors. */
typedef struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries; /* of AddTensors; prepare may name them */
  void* user_data;             /* what init returned */
  void* builtin_data;
  const void* custom_initial_data; /* the custom options of the file */
  int custom_initial_data_size;
  struct TfLiteDelegate* delegate;
  bool might_have_side_effect;
} TfLiteNode;

struct TfLiteContext;
struct TfLiteDelegateParams;
struct TfLiteEvalTensor;
struct TfLiteOpInstance;
struct TfLiteAsyncKernel;

typedef struct TfLiteRegistration {
  void* (*init)(struct TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(struct TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(struct TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(struct TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const struct TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  struct TfLiteOpInstance* registration_external;
  struct TfLiteAsyncKernel* (*async_kernel)(struct TfLiteContext* context, TfLiteNode* node);
  uint64_t inplace_operator;
} TfLiteRegistration;

typedef struct TfLiteExternalContext {
  TfLiteExternalContextType type;
  TfLiteStatus (*Refresh)(struct TfLiteContext* context);
} TfLiteExternalContext;

/* What the host does for an operator. Functions for delegates report an error. */
typedef struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(struct TfLiteContext* context, TfLiteIntArray** plan);
  TfLiteTensor* tensors; /* AddTensors may move them */
  void* impl_;
  TfLiteStatus (*ResizeTensor)(struct TfLiteContext* context, TfLiteTensor* tensor,
                               TfLiteIntArray* new_size); /* takes new_size */
  void (*ReportError)(struct TfLiteContext* context, const char* format, ...);
  TfLiteStatus (*AddTensors)(struct TfLiteContext* context, int count, int* first_new_index);
  TfLiteStatus (*GetNodeAndRegistration)(struct TfLiteContext* context, int index,
                                         TfLiteNode** node, TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(struct TfLiteContext* context,
                                                        TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes,
                                                        struct TfLiteDelegate* delegate);
  int recommended_num_threads; /* -1: as the operator likes */
  TfLiteExternalContext* (*GetExternalContext)(struct TfLiteContext* context,
                                               TfLiteExternalContextType type);
  void (*SetExternalContext)(struct TfLiteContext* context, TfLiteExternalContextType type,
                             TfLiteExternalContext* external);
  bool allow_fp32_relax_to_fp16;
  void* profiler;
  void* (*AllocatePersistentBuffer)(struct TfLiteContext* context, size_t bytes);
  TfLiteStatus (*AllocateBufferForEval)(struct TfLiteContext* context, size_t bytes, void** ptr);
  TfLiteStatus (*RequestScratchBufferInArena)(struct TfLiteContext* context, size_t bytes,
                                              int* index);
  void* (*GetScratchBuffer)(struct TfLiteContext* context, int index);
  TfLiteStatus (*ResizeTensorExplicit)(struct TfLiteContext* context, TfLiteTensor* tensor,
                                       int rank, const int* shape);
  TfLiteStatus (*PreviewDelegatePartitioning)(struct TfLiteContext* context,
                                              const TfLiteIntArray* nodes,
                                              struct TfLiteDelegateParams** partitions, int* count);
  TfLiteTensor* (*GetTensor)(const struct TfLiteContext* context, int index);
  struct TfLiteEvalTensor* (*GetEvalTensor)(const struct TfLiteContext* context, int index);
  TfLiteStatus (*GetModelMetadata)(const struct TfLiteContext* context, const char* name,
                                   const char** data, size_t* bytes);
  TfLiteStatus (*AcquireSubgraphContext)(struct TfLiteContext* context, int subgraph,
                                         struct TfLiteContext** acquired);
  TfLiteStatus (*ReleaseSubgraphContext)(struct TfLiteContext* context, int subgraph);
} TfLiteContext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SMELT_KERNELS_CUSTOM_LITE_OP_H_ */
