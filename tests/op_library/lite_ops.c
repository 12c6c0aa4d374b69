/* Custom operators of TensorFlow Lite as users write them, in C, against the header alone: ours, or
 * TensorFlow's where LITE_HEADER names it. tools/make_fixtures.py has what they compute as functions
 * of TensorFlow (custom_ops); tests/peers/lite_op_library_test.py runs them in TensorFlow Lite. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LITE_HEADER
#include LITE_HEADER
#else
#include "smelt/kernels/custom/lite_op.h"
#endif

#define ENSURE(context, what, ...)                    \
  do {                                                \
    if (!(what)) {                                    \
      (context)->ReportError((context), __VA_ARGS__); \
      return kTfLiteError;                            \
    }                                                 \
  } while (0)

static TfLiteTensor* Input(TfLiteContext* context, const TfLiteNode* node, int i) {
  return &context->tensors[node->inputs->data[i]];
}
static TfLiteTensor* Output(TfLiteContext* context, const TfLiteNode* node, int i) {
  return &context->tensors[node->outputs->data[i]];
}
static int64_t Elements(const TfLiteTensor* t) {
  int64_t n = 1;
  for (int i = 0; i < t->dims->size; ++i) n *= t->dims->data[i];
  return n;
}
static TfLiteStatus ShapeAs(TfLiteContext* context, TfLiteTensor* out, const TfLiteTensor* like) {
  return context->ResizeTensor(context, out, TfLiteIntArrayCopy(like->dims));
}
static void MakeDynamic(TfLiteTensor* t) {
  if (t->allocation_type == kTfLiteDynamic) return;
  t->allocation_type = kTfLiteDynamic;
  t->data.raw = NULL;
  t->bytes = 0;
}
static TfLiteIntArray* Vector(int n) {
  TfLiteIntArray* dims = TfLiteIntArrayCreate(1);
  dims->data[0] = n;
  return dims;
}

/* ---- my_custom_fused_op: the sum of input 0 times its option, the greatest of input 1 */

/* The value of a FlexBuffer's map of one integer. */
static int OptionOf(const char* buffer, size_t size) {
  const unsigned char* end = (const unsigned char*)buffer + size;
  const int root_width = end[-1], map_width = 1 << (end[-2] & 3);
  const unsigned char* root = end - 2 - root_width;
  int32_t option = 0;
  memcpy(&option, root - root[0], (size_t)map_width);
  return option;
}
static void* FusedInit(TfLiteContext* context, const char* buffer, size_t size) {
  (void)context;
  int* option = malloc(sizeof(int));
  *option = size < 4 ? 1 : OptionOf(buffer, size);
  return option;
}
static void FreeData(TfLiteContext* context, void* data) {
  (void)context;
  free(data);
}
static TfLiteStatus FusedPrepare(TfLiteContext* context, TfLiteNode* node) {
  ENSURE(context, node->inputs->size == 2 && node->outputs->size == 2, "%d inputs, %d outputs",
         node->inputs->size, node->outputs->size);
  for (int i = 0; i < 2; ++i) {
    if (context->ResizeTensor(context, Output(context, node, i), TfLiteIntArrayCreate(0)) !=
        kTfLiteOk) {
      return kTfLiteError;
    }
  }
  return kTfLiteOk;
}
static TfLiteStatus FusedInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* a = Input(context, node, 0);
  const TfLiteTensor* b = Input(context, node, 1);
  double sum = 0;
  float most = b->data.f[0];
  for (int64_t i = 0; i < Elements(a); ++i) sum += a->data.f[i];
  for (int64_t i = 0; i < Elements(b); ++i) most = b->data.f[i] > most ? b->data.f[i] : most;
  Output(context, node, 0)->data.f[0] = (float)sum * (float)*(const int*)node->user_data;
  Output(context, node, 1)->data.f[0] = most;
  return kTfLiteOk;
}
TfLiteRegistration* Register_FUSED(void) {
  static TfLiteRegistration r;
  r.custom_name = "my_custom_fused_op";
  r.init = FusedInit;
  r.free = FreeData;
  r.prepare = FusedPrepare;
  r.invoke = FusedInvoke;
  return &r;
}

/* ---- UpTo: 0, 1, ... below its input; how many there are is known when it is invoked */

static TfLiteStatus UpToPrepare(TfLiteContext* context, TfLiteNode* node) {
  MakeDynamic(Output(context, node, 0));
  return kTfLiteOk;
}
static TfLiteStatus UpToInvoke(TfLiteContext* context, TfLiteNode* node) {
  const int32_t n = Input(context, node, 0)->data.i32[0];
  ENSURE(context, n >= 0, "there is nothing up to %d", (int)n);
  TfLiteTensor* out = Output(context, node, 0);
  if (context->ResizeTensor(context, out, Vector(n)) != kTfLiteOk) return kTfLiteError;
  for (int32_t i = 0; i < n; ++i) out->data.f[i] = (float)i;
  return kTfLiteOk;
}
/* Its name is what stands behind Register_. */
TfLiteRegistration* Register_UpTo(void) {
  static TfLiteRegistration r;
  r.prepare = UpToPrepare;
  r.invoke = UpToInvoke;
  return &r;
}

/* ---- LastFirst: a vector of strings, the last one first */

static TfLiteStatus LastFirstInvoke(TfLiteContext* context, TfLiteNode* node) {
  const char* in = Input(context, node, 0)->data.raw;
  TfLiteTensor* out = Output(context, node, 0);
  int32_t count, total;
  memcpy(&count, in, 4);
  memcpy(&total, in + 4 * (count + 1), 4);
  char* made = malloc((size_t)total);
  int32_t at = 4 * (count + 2);
  memcpy(made, &count, 4);
  for (int32_t i = 0; i < count; ++i) {
    int32_t from[2];
    memcpy(from, in + 4 * (count - i), 8);
    memcpy(made + 4 * (i + 1), &at, 4);
    memcpy(made + at, in + from[0], (size_t)(from[1] - from[0]));
    at += from[1] - from[0];
  }
  memcpy(made + 4 * (count + 1), &at, 4);
  TfLiteTensorReset(out->type, out->name, Vector(count), out->params, made, (size_t)total,
                    kTfLiteDynamic, out->allocation, out->is_variable, out);
  return kTfLiteOk;
}
TfLiteRegistration* Register_LAST_FIRST(void) {
  static TfLiteRegistration r;
  r.custom_name = "LastFirst";
  r.invoke = LastFirstInvoke;
  return &r;
}

/* ---- Counter: how often it was invoked; its input, float, is added to a variable if there is one */

static void* CounterInit(TfLiteContext* context, const char* buffer, size_t size) {
  (void)context;
  (void)buffer;
  (void)size;
  return calloc(1, sizeof(int));
}
static TfLiteStatus CounterPrepare(TfLiteContext* context, TfLiteNode* node) {
  return ShapeAs(context, Output(context, node, 0), Input(context, node, 0));
}
static TfLiteStatus CounterInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = Input(context, node, 0);
  TfLiteTensor* sum = node->inputs->size > 1 ? Input(context, node, 1) : NULL;
  const int count = ++*(int*)node->user_data;
  ENSURE(context, sum == NULL || sum->is_variable, "'%s' is not variable", sum->name);
  for (int64_t i = 0; i < Elements(x); ++i) {
    if (sum != NULL) sum->data.f[i] += x->data.f[i];
    Output(context, node, 0)->data.f[i] = (float)count + (sum != NULL ? sum->data.f[i] : 0);
  }
  return kTfLiteOk;
}
TfLiteRegistration* Register_COUNTER(void) {
  static TfLiteRegistration r;
  r.custom_name = "Counter";
  r.init = CounterInit;
  r.free = FreeData;
  r.prepare = CounterPrepare;
  r.invoke = CounterInvoke;
  return &r;
}

/* ---- Real: what an int8 tensor stands for, by way of a temporary; input 1, a bias, may be left out */

static void* RealInit(TfLiteContext* context, const char* buffer, size_t size) {
  (void)buffer;
  (void)size;
  int* temporary = malloc(sizeof(int));
  if (context->AddTensors(context, 1, temporary) != kTfLiteOk) *temporary = -1;
  return temporary;
}
static TfLiteStatus RealPrepare(TfLiteContext* context, TfLiteNode* node) {
  const int at = *(const int*)node->user_data;
  const TfLiteTensor* x = Input(context, node, 0);
  ENSURE(context, x->type == kTfLiteInt8, "input 0 is %s, not INT8", TfLiteTypeGetName(x->type));
  ENSURE(context, x->quantization.type == kTfLiteAffineQuantization && x->params.scale > 0,
         "input 0 has no scale");
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = Vector(at);
  TfLiteTensor* t = &context->tensors[at];
  t->type = kTfLiteInt32;
  t->allocation_type = kTfLiteArenaRw;
  if (ShapeAs(context, t, x) != kTfLiteOk) return kTfLiteError;
  return ShapeAs(context, Output(context, node, 0), x);
}
static TfLiteStatus RealInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = Input(context, node, 0);
  const TfLiteTensor* bias = NULL;
  TfLiteTensor* wide = &context->tensors[node->temporaries->data[0]];
  if (node->inputs->size > 1 && node->inputs->data[1] != kTfLiteOptionalTensor) {
    bias = Input(context, node, 1);
    ENSURE(context, bias->allocation_type == kTfLiteMmapRo, "the bias is not constant");
  }
  for (int64_t i = 0; i < Elements(x); ++i) {
    wide->data.i32[i] = x->data.int8[i] - x->params.zero_point;
  }
  for (int64_t i = 0; i < Elements(x); ++i) {
    Output(context, node, 0)->data.f[i] =
        (float)wide->data.i32[i] * x->params.scale + (bias != NULL ? bias->data.f[0] : 0);
  }
  return kTfLiteOk;
}
TfLiteRegistration* Register_REAL(void) {
  static TfLiteRegistration r;
  r.custom_name = "Real";
  r.init = RealInit;
  r.free = FreeData;
  r.prepare = RealPrepare;
  r.invoke = RealInvoke;
  return &r;
}

/* ---- for the errors: what makes tensors that do not hold together, and what cannot be registered */

static TfLiteStatus BadInvoke(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor* out = Output(context, node, 0);
  MakeDynamic(out);
  if (context->ResizeTensor(context, out, Vector(2)) != kTfLiteOk) return kTfLiteError;
  out->dims->data[0] = 1 << 30;
  return kTfLiteOk;
}
TfLiteRegistration* Register_BAD(void) {
  static TfLiteRegistration r;
  r.custom_name = "Bad";
  r.invoke = BadInvoke;
  return &r;
}
TfLiteRegistration* NothingRegistered(void) { return NULL; }
