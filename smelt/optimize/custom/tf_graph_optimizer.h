/* What a shared library with a graph optimizer and its host say to each other: TensorFlow's C
 * interface for plug-ins (c/experimental/grappler/grappler.h, version 0.0.1, of TensorFlow 2.21)
 * with the parts of tf_status.h and tf_buffer.h that it needs, restated. Layouts and names are
 * TensorFlow's: a library that was compiled against its headers and links nothing of it works here.
 *
 * A library exports TF_InitGraph, which fills in what `params` points to, with every struct_size.
 * `smelt optimize --optimizer_library LIB` calls it once. On each graph with a node on a device of
 * device_type optimize_func is then called last, in the thread that optimizes, with a serialized
 * GraphDef whose functions have signatures but no bodies; functions are optimized one by one, as
 * graphs with _Arg and _Retval nodes. It writes a GraphDef with the nodes to the other buffer.
 * Nodes that must stay keep their names; functions that it writes are ignored.
 */
#ifndef SMELT_OPTIMIZE_CUSTOM_TF_GRAPH_OPTIMIZER_H_
#define SMELT_OPTIMIZE_CUSTOM_TF_GRAPH_OPTIMIZER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMELT_TF_EXPORT __attribute__((visibility("default")))
/* The size of a struct up to and with a member: later versions of it are longer. */
#define SMELT_TF_SIZE_TO(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))

/* ---- statuses; codes are gRPC's */

typedef struct TF_Status TF_Status;
typedef int TF_Code;
SMELT_TF_EXPORT TF_Status* TF_NewStatus(void);
SMELT_TF_EXPORT void TF_DeleteStatus(TF_Status* status);
SMELT_TF_EXPORT void TF_SetStatus(TF_Status* status, TF_Code code, const char* message);
SMELT_TF_EXPORT TF_Code TF_GetCode(const TF_Status* status);
/* Valid until the status changes. */
SMELT_TF_EXPORT const char* TF_Message(const TF_Status* status);
/* Of the system's error number; "CONTEXT; what it means". */
SMELT_TF_EXPORT void TF_SetStatusFromIOError(TF_Status* status, int error_code,
                                             const char* context);
/* Notes on an error; on a status that is OK none stays. */
SMELT_TF_EXPORT void TF_SetPayload(TF_Status* status, const char* key, const char* value);
typedef void (*TF_PayloadVisitor)(const char* key, const char* value, void* capture);
SMELT_TF_EXPORT void TF_ForEachPayload(const TF_Status* status, TF_PayloadVisitor visitor,
                                       void* capture);

/* ---- bytes */

typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length); /* NULL: nobody frees the data */
} TF_Buffer;
SMELT_TF_EXPORT TF_Buffer* TF_NewBuffer(void);
/* With a copy of the bytes. */
SMELT_TF_EXPORT TF_Buffer* TF_NewBufferFromString(const void* bytes, size_t length);
SMELT_TF_EXPORT void TF_DeleteBuffer(TF_Buffer* buffer);
SMELT_TF_EXPORT TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

/* ---- what the library fills in */

typedef enum TF_TriState { TF_TriState_Default = 0, TF_TriState_Off, TF_TriState_On } TF_TriState;

/* Off: that pass does not run on graphs for the device (disable_model_pruning: On). */
typedef struct TP_OptimizerConfigs {
  size_t struct_size;
  void* ext;
  TF_TriState disable_model_pruning;
  TF_TriState implementation_selector;
  TF_TriState function_optimization;
  TF_TriState common_subgraph_elimination;
  TF_TriState arithmetic_optimization;
  TF_TriState debug_stripper;
  TF_TriState constant_folding;
  TF_TriState shape_optimization;
  TF_TriState auto_mixed_precision;
  TF_TriState auto_mixed_precision_onednn_bfloat16;
  TF_TriState auto_mixed_precision_mkl;
  TF_TriState pin_to_host_optimization;
  TF_TriState layout_optimizer;
  TF_TriState remapping;
  TF_TriState loop_optimization;
  TF_TriState dependency_optimization;
  TF_TriState auto_parallel;
  TF_TriState memory_optimization;
  TF_TriState scoped_allocator_optimization;
} TP_OptimizerConfigs;
#define TP_OPTIMIZER_CONFIGS_STRUCT_SIZE \
  SMELT_TF_SIZE_TO(TP_OptimizerConfigs, scoped_allocator_optimization)

typedef struct TF_GrapplerItem TF_GrapplerItem;

typedef struct TP_Optimizer {
  size_t struct_size;
  void* ext;
  void* (*create_func)(void); /* may be NULL; for each graph */
  void (*optimize_func)(void* optimizer, const TF_Buffer* graph, const TF_GrapplerItem* item,
                        TF_Buffer* optimized, TF_Status* status);
  void (*destroy_func)(void* optimizer); /* may be NULL */
} TP_Optimizer;
#define TP_OPTIMIZER_STRUCT_SIZE SMELT_TF_SIZE_TO(TP_Optimizer, destroy_func)

typedef struct TP_OptimizerRegistrationParams {
  size_t struct_size;
  void* ext;
  int32_t major_version, minor_version, patch_version; /* the host's */
  const char* device_type;                             /* "CPU", "GPU", ... */
  TP_OptimizerConfigs* optimizer_configs;
  TP_Optimizer* optimizer;
} TP_OptimizerRegistrationParams;
#define TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE \
  SMELT_TF_SIZE_TO(TP_OptimizerRegistrationParams, optimizer)

/* Exported by the library. */
SMELT_TF_EXPORT void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status);

/* ---- what optimize_func may ask. Nodes that must stay, and what is fetched: first how many there
 * are and how many bytes their names have, then the names, which are copied to `storage` and end
 * with no zero. INVALID_ARGUMENT when they do not fit. */

SMELT_TF_EXPORT void TF_GetNodesToPreserveListSize(const TF_GrapplerItem* item, int* num_values,
                                                   size_t* storage_size, TF_Status* status);
SMELT_TF_EXPORT void TF_GetNodesToPreserveList(const TF_GrapplerItem* item, char** values,
                                               size_t* lengths, int num_values, void* storage,
                                               size_t storage_size, TF_Status* status);
SMELT_TF_EXPORT void TF_GetFetchNodesListSize(const TF_GrapplerItem* item, int* num_values,
                                              size_t* storage_size, TF_Status* status);
SMELT_TF_EXPORT void TF_GetFetchNodesList(const TF_GrapplerItem* item, char** values,
                                          size_t* lengths, int num_values, void* storage,
                                          size_t storage_size, TF_Status* status);

/* Shapes and types of what nodes read and give, as serialized OpInfo.TensorProperties; a size that
 * is not known is -1, or a number below that is the same for sizes that are equal. Without
 * assume_valid_feeds nothing is known of what feeds give. Values are those of Const nodes. A node
 * that there is not has no inputs or outputs. The item outlives the properties. */
typedef struct TF_GraphProperties TF_GraphProperties;
SMELT_TF_EXPORT TF_GraphProperties* TF_NewGraphProperties(const TF_GrapplerItem* item);
SMELT_TF_EXPORT void TF_DeleteGraphProperties(TF_GraphProperties* properties);
SMELT_TF_EXPORT void TF_InferStatically(TF_GraphProperties* properties,
                                        unsigned char assume_valid_feeds,
                                        unsigned char aggressive_shape_inference,
                                        unsigned char include_input_tensor_values,
                                        unsigned char include_output_tensor_values,
                                        TF_Status* status);
SMELT_TF_EXPORT void TF_GetInputPropertiesListSize(TF_GraphProperties* properties, const char* name,
                                                   int* num_values, TF_Status* status);
SMELT_TF_EXPORT void TF_GetOutputPropertiesListSize(TF_GraphProperties* properties,
                                                    const char* name, int* num_values,
                                                    TF_Status* status);
SMELT_TF_EXPORT void TF_GetInputPropertiesList(TF_GraphProperties* properties, const char* name,
                                               TF_Buffer** buffers, int num_values,
                                               TF_Status* status);
SMELT_TF_EXPORT void TF_GetOutputPropertiesList(TF_GraphProperties* properties, const char* name,
                                                TF_Buffer** buffers, int num_values,
                                                TF_Status* status);

/* Definitions of ops, and signatures of the functions of a serialized GraphDef, as serialized
 * OpDefs. NOT_FOUND for a name that neither has. */
typedef struct TF_FunctionLibraryDefinition TF_FunctionLibraryDefinition;
SMELT_TF_EXPORT TF_FunctionLibraryDefinition* TF_NewFunctionLibraryDefinition(TF_Buffer* graph,
                                                                              TF_Status* status);
SMELT_TF_EXPORT void TF_DeleteFunctionLibraryDefinition(TF_FunctionLibraryDefinition* library);
SMELT_TF_EXPORT void TF_LookUpOpDef(TF_FunctionLibraryDefinition* library, const char* name,
                                    TF_Buffer* buffer, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif /* SMELT_OPTIMIZE_CUSTOM_TF_GRAPH_OPTIMIZER_H_ */
