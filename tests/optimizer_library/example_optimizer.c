/* A graph optimizer as a stranger compiles one: in C, against the interface alone. On graphs for
 * CPUs Neg becomes Abs. SMELT_EXAMPLE_OPTIMIZER in the environment has it misbehave; with "tell" it
 * prints what it is told of the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smelt/optimize/custom/tf_graph_optimizer.h"

static int Asked(const char* what) {
  const char* asked = getenv("SMELT_EXAMPLE_OPTIMIZER");
  return asked != NULL && strcmp(asked, what) == 0;
}

static void TellNames(const char* what, const TF_GrapplerItem* item, TF_Status* status,
                      void (*size)(const TF_GrapplerItem*, int*, size_t*, TF_Status*),
                      void (*list)(const TF_GrapplerItem*, char**, size_t*, int, void*, size_t,
                                   TF_Status*)) {
  int count = 0;
  size_t bytes = 0;
  size(item, &count, &bytes, status);
  char** names = malloc(sizeof(char*) * (size_t)(count + 1));
  size_t* lengths = malloc(sizeof(size_t) * (size_t)(count + 1));
  char* storage = malloc(bytes + 1);
  list(item, names, lengths, count, storage, bytes, status);
  printf("%s:", what);
  for (int i = 0; i < count; ++i) printf(" %.*s", (int)lengths[i], names[i]);
  printf("\n");
  if (bytes > 0) list(item, names, lengths, count, storage, bytes - 1, status);
  printf("too small: %d %s\n", TF_GetCode(status), TF_Message(status));
  free(storage);
  free(lengths);
  free(names);
  TF_SetStatus(status, 0, "");
}

static void TellProperties(const TF_GrapplerItem* item, TF_Status* status) {
  TF_GraphProperties* properties = TF_NewGraphProperties(item);
  TF_InferStatically(properties, 1, 0, 0, 0, status);
  int inputs = 0;
  int outputs = 0;
  int none = 0;
  TF_GetInputPropertiesListSize(properties, "y", &inputs, status);
  TF_GetOutputPropertiesListSize(properties, "y", &outputs, status);
  TF_GetOutputPropertiesListSize(properties, "no such node", &none, status);
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GetOutputPropertiesList(properties, "y", &buffer, 1, status);
  printf("y: %d inputs, %d outputs, %d of a node that there is not, properties", inputs, outputs,
         none);
  for (size_t i = 0; i < buffer->length; ++i) printf(" %d", ((const unsigned char*)buffer->data)[i]);
  printf("\n");
  TF_GetOutputPropertiesList(properties, "y", &buffer, 1, status);
  printf("full: %d %s\n", TF_GetCode(status), TF_Message(status));
  TF_SetStatus(status, 0, "");
  TF_DeleteBuffer(buffer);
  TF_DeleteGraphProperties(properties);
}

static void TellOp(TF_Buffer* graph, const char* name, TF_Status* status) {
  TF_FunctionLibraryDefinition* library = TF_NewFunctionLibraryDefinition(graph, status);
  TF_Buffer* def = TF_NewBuffer();
  TF_LookUpOpDef(library, name, def, status);
  printf("%s: %d %s\n", name, TF_GetCode(status), def->length > 0 ? "known" : TF_Message(status));
  TF_SetStatus(status, 0, "");
  TF_DeleteBuffer(def);
  TF_DeleteFunctionLibraryDefinition(library);
}

static void Tell(const TF_Buffer* graph, const TF_GrapplerItem* item, TF_Status* status) {
  TF_Buffer* copy = TF_NewBufferFromString(graph->data, graph->length);
  TellNames("preserve", item, status, TF_GetNodesToPreserveListSize, TF_GetNodesToPreserveList);
  TellNames("fetch", item, status, TF_GetFetchNodesListSize, TF_GetFetchNodesList);
  TellProperties(item, status);
  TellOp(copy, "Neg", status);
  TellOp(copy, "twice", status);
  TellOp(copy, "NoSuchOp", status);
  TF_DeleteBuffer(copy);
}

static int created = 0;

static void* Create(void) {
  ++created;
  return &created;
}

static void Destroy(void* optimizer) {
  if (optimizer != &created) abort();
  --created;
}

static void FreeBytes(void* data, size_t length) {
  (void)length;
  free(data);
}

static void Optimize(void* optimizer, const TF_Buffer* graph, const TF_GrapplerItem* item,
                     TF_Buffer* optimized, TF_Status* status) {
  if (optimizer != &created) abort();
  if (Asked("fail")) return TF_SetStatus(status, 9, "not today");
  if (Asked("nothing")) return TF_SetStatus(status, 10, "nothing to do");
  if (Asked("empty")) return;
  if (Asked("tell")) Tell(graph, item, status);
  size_t length = graph->length;
  char* bytes = malloc(length + 2);
  memcpy(bytes, graph->data, length);
  /* NodeDef.op is field 2. */
  for (size_t i = 0; !Asked("same") && i + 5 <= length; ++i) {
    if (memcmp(bytes + i, "\x12\x03Neg", 5) == 0) memcpy(bytes + i + 2, "Abs", 3);
  }
  if (Asked("garbage")) memset(bytes, 0xff, length);
  if (Asked("same")) { /* the same graph in other bytes: versions once more, with nothing in them */
    memcpy(bytes + length, "\x22\x00", 2);
    length += 2;
  }
  optimized->data = bytes;
  optimized->length = length;
  optimized->data_deallocator = FreeBytes;
}

void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
  TF_SetStatus(status, 0, "");
  params->struct_size = Asked("no size") ? 0 : TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->device_type = Asked("no device") ? NULL : "CPU";
  params->optimizer_configs->struct_size = TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
  params->optimizer_configs->constant_folding = TF_TriState_Off;
  params->optimizer->struct_size = TP_OPTIMIZER_STRUCT_SIZE;
  params->optimizer->create_func = Create;
  params->optimizer->optimize_func = Asked("no function") ? NULL : Optimize;
  params->optimizer->destroy_func = Destroy;
}
