/* Fusions as a user writes them: in C, against the header alone. FuseExampleClip makes a custom
 * operator of max and min by constants, FuseExampleSwish one of x * logistic(x).
 * SMELT_EXAMPLE_FUSION in the environment has the library misbehave. */
#include <stdlib.h>
#include <string.h>

#include "smelt/lite/fuse/custom/smelt_fusion.h"

static int Asked(const char* what) {
  const char* asked = getenv("SMELT_EXAMPLE_FUSION");
  return asked != NULL && strcmp(asked, what) == 0;
}

static int32_t Misbehave(const smelt_fusion_host* host, smelt_fusion_call* call, int32_t root) {
  smelt_fusion_value x = {0, 0};
  smelt_fusion_tensor tensor;
  float number = 0;
  int64_t integer = 0;
  if (host->input(call, root, 0, &x) != SMELT_FUSION_OK) return host->failed(call);
  const smelt_fusion_operand in = {x, NULL};
  smelt_fusion_replacement by = {sizeof(by), "RELU", 0, 1, &in, 0, NULL, 0, NULL, NULL, 0};
  if (Asked("no operator")) {
    if (host->op(call, 1 << 30) != NULL || host->num_inputs(call, -5) != -1) return 99;
    return host->failed(call);
  }
  if (Asked("no input")) {
    if (host->input(call, root, 7, &x) == SMELT_FUSION_OK) return 99;
    return host->failed(call);
  }
  if (Asked("no output")) {
    x.port = 3;
    if (host->tensor(call, x, &tensor) == SMELT_FUSION_OK) return 99;
    return host->failed(call);
  }
  if (Asked("no attribute")) {
    if (host->attr_float(call, root, "no_such_option", &number) != SMELT_FUSION_NONE) return 99;
    if (host->attr_int(call, root, "fused_activation_function", &integer) == SMELT_FUSION_OK) {
      return 99;
    }
    return host->failed(call);
  }
  if (Asked("lie")) return SMELT_FUSION_YES;
  if (Asked("garbage")) return 77;
  if (Asked("fail")) return host->fail(call, "it is Tuesday");
  if (Asked("decline")) return host->decline(call, "it is Tuesday");
  if (Asked("hide")) {
    host->replace(call, &by);
    return SMELT_FUSION_NO;
  }
  if (Asked("twice")) {
    host->replace(call, &by);
    return host->replace(call, &by);
  }
  if (Asked("small struct")) by.struct_size = 8;
  if (Asked("no name")) by.op = NULL;
  if (Asked("unknown operator")) by.op = "NO_SUCH_OPERATOR";
  if (Asked("calls")) by.op = "WHILE";
  if (Asked("few inputs")) by.op = "CONV_2D";
  if (Asked("many results")) by.op = "TOPK_V2";
  if (Asked("itself")) {
    const smelt_fusion_operand self = {{root, 0}, NULL};
    by.inputs = &self;
    return host->replace(call, &by);
  }
  if (Asked("unknown option") || Asked("wrong option") || Asked("no such activation")) {
    const smelt_fusion_operand two[2] = {in, in};
    smelt_fusion_attribute a = {"stride_h", SMELT_FUSION_INT, 1, 0, NULL, 0, NULL};
    if (!Asked("unknown option")) a.name = "fused_activation_function";
    if (Asked("no such activation")) {
      a.kind = SMELT_FUSION_STRING;
      a.s = "COSINE";
    }
    by.op = "SUB";
    by.num_inputs = 2;
    by.inputs = two;
    by.num_attributes = 1;
    by.attributes = &a;
    return host->replace(call, &by);
  }
  if (Asked("bad constant")) {
    const int64_t dims[1] = {-7};
    const smelt_fusion_tensor shapeless = {1, 1, dims, 0, NULL};
    const smelt_fusion_operand made = {{0, 0}, &shapeless};
    by.inputs = &made;
    return host->replace(call, &by);
  }
  return host->replace(call, &by);
}

/* Operands come in either order. */
static void Swap(int wanted, smelt_fusion_value* a, smelt_fusion_value* b) {
  if (!wanted) return;
  const smelt_fusion_value first = *a;
  *a = *b;
  *b = first;
}

/* x * logistic(x) -> ExampleSwish(x){order=2} */
static int32_t Swish(const smelt_fusion_host* host, smelt_fusion_call* call, int32_t root) {
  smelt_fusion_value x;
  smelt_fusion_value gate;
  smelt_fusion_value gated;
  if (getenv("SMELT_EXAMPLE_FUSION") != NULL) return Misbehave(host, call, root);
  if (host->input(call, root, 0, &x) != SMELT_FUSION_OK) return host->failed(call);
  if (host->input(call, root, 1, &gate) != SMELT_FUSION_OK) return host->failed(call);
  Swap(strcmp(host->op(call, x.op), "LOGISTIC") == 0, &x, &gate);
  if (strcmp(host->op(call, gate.op), "LOGISTIC") != 0) return SMELT_FUSION_NO;
  if (host->input(call, gate.op, 0, &gated) != SMELT_FUSION_OK) return host->failed(call);
  if (gated.op != x.op || gated.port != x.port) return SMELT_FUSION_NO;
  const smelt_fusion_operand in = {x, NULL};
  const smelt_fusion_attribute order = {"order", SMELT_FUSION_INT, 2, 0, NULL, 0, NULL};
  const smelt_fusion_replacement by = {sizeof(by), "ExampleSwish", 1,    1, &in, 1, &order,
                                       1,          &gate.op,       NULL, 0};
  return host->replace(call, &by);
}

/* min(max(x, low), high) -> Clip(x, [low, high]){low, high} */
static int32_t Clip(const smelt_fusion_host* host, smelt_fusion_call* call, int32_t root) {
  smelt_fusion_value inner;
  smelt_fusion_value x;
  smelt_fusion_value bound;
  smelt_fusion_tensor high;
  smelt_fusion_tensor low;
  if (host->input(call, root, 0, &inner) != SMELT_FUSION_OK) return host->failed(call);
  if (host->input(call, root, 1, &bound) != SMELT_FUSION_OK) return host->failed(call);
  Swap(strcmp(host->op(call, bound.op), "MAXIMUM") == 0, &inner, &bound);
  if (strcmp(host->op(call, inner.op), "MAXIMUM") != 0) return SMELT_FUSION_NO;
  if (host->tensor(call, bound, &high) != SMELT_FUSION_OK) return host->failed(call);
  if (host->input(call, inner.op, 0, &x) != SMELT_FUSION_OK) return host->failed(call);
  if (host->input(call, inner.op, 1, &bound) != SMELT_FUSION_OK) return host->failed(call);
  Swap(strcmp(host->op(call, x.op), "CONST") == 0, &x, &bound);
  if (host->tensor(call, bound, &low) != SMELT_FUSION_OK) return host->failed(call);
  if (high.data == NULL || low.data == NULL) return host->decline(call, "a bound is no constant");
  if (high.dtype != 1 || high.num_elements != 1 || low.num_elements != 1) {
    return host->decline(call, "a bound is no number");
  }
  const float bounds[2] = {*(const float*)low.data, *(const float*)high.data};
  const int64_t dims[1] = {2};
  const smelt_fusion_tensor both = {1, 1, dims, 2, bounds};
  const smelt_fusion_operand in[2] = {{x, NULL}, {{0, 0}, &both}};
  const smelt_fusion_attribute attributes[3] = {
      {"low", SMELT_FUSION_FLOAT, 0, bounds[0], NULL, 0, NULL},
      {"high", SMELT_FUSION_FLOAT, 0, bounds[1], NULL, 0, NULL},
      {"label", SMELT_FUSION_STRING, 0, 0, host->label(call, root), 0, NULL}};
  const smelt_fusion_replacement by = {sizeof(by), "ExampleClip", 1,    2, in, 3, attributes,
                                       1,          &inner.op,     NULL, 0};
  return host->replace(call, &by);
}

int32_t smelt_register_fusions(const smelt_fusion_host* host, smelt_fusion_registry* registry) {
  if (host->abi_version < 1 || Asked("other version")) return SMELT_FUSION_FAILED;
  smelt_fusion swish = {sizeof(swish), "FuseExampleSwish", "x * logistic(x) -> ExampleSwish(x)",
                        "MUL", Swish};
  const smelt_fusion clip = {sizeof(clip), "FuseExampleClip", "min(max(x, a), b) -> ExampleClip(x)",
                             "MINIMUM", Clip};
  if (Asked("nameless")) swish.name = NULL;
  if (Asked("other struct")) swish.struct_size = 4;
  if (Asked("tried nowhere")) swish.ops = "MUL NO_SUCH_OPERATOR";
  if (Asked("taken name")) swish.name = "FuseHardSwish";
  const int32_t code = host->add_fusion(registry, &swish);
  return code != SMELT_FUSION_OK ? code : host->add_fusion(registry, &clip);
}
