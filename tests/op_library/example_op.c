/* An op library as a user writes one: in C, against the header alone. SmeltExampleScale multiplies by
 * an attribute, SmeltExampleJoin joins strings with their position. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smelt/kernels/custom/smelt_op.h"

static int32_t Scale(const smelt_host* host, smelt_context* ctx) {
  smelt_tensor x;
  float factor = 0;
  if (host->input(ctx, 0, &x) != SMELT_OK) return host->failed(ctx);
  if (host->attr_float(ctx, "factor", &factor) != SMELT_OK) return host->failed(ctx);
  if (x.rank == 0) return host->fail(ctx, SMELT_INVALID_ARGUMENT, "x must not be a scalar");
  float* y = host->output(ctx, 0, x.rank, x.dims);
  if (y == NULL) return host->failed(ctx);
  const float* in = x.data;
  for (int64_t i = 0; i < x.num_elements; ++i) y[i] = in[i] * factor;
  return SMELT_OK;
}

static int32_t Join(const smelt_host* host, smelt_context* ctx) {
  smelt_tensor x;
  if (host->input(ctx, 0, &x) != SMELT_OK) return host->failed(ctx);
  if (host->output(ctx, 0, x.rank, x.dims) == NULL) return host->failed(ctx);
  for (int64_t i = 0; i < x.num_elements; ++i) {
    const char* text;
    size_t size;
    if (host->input_string(ctx, 0, i, &text, &size) != SMELT_OK) return host->failed(ctx);
    char* joined = malloc(size + 32);
    if (joined == NULL) return host->fail(ctx, SMELT_RESOURCE_EXHAUSTED, "no memory");
    memcpy(joined, text, size);
    size += (size_t)snprintf(joined + size, 32, "#%d", (int)i);
    const int32_t code = host->set_output_string(ctx, 0, i, joined, size);
    free(joined);
    if (code != SMELT_OK) return code;
  }
  return SMELT_OK;
}

int32_t smelt_register_ops(const smelt_host* host, smelt_registry* registry) {
  const smelt_op scale = {"SmeltExampleScale", "x: float", "y: float", "factor: float = 2.0", 0, Scale};
  const smelt_op join = {"SmeltExampleJoin", "x: string", "y: string", "", 0, Join};
  const int32_t code = host->add_op(registry, &scale);
  return code != SMELT_OK ? code : host->add_op(registry, &join);
}
