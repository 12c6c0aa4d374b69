/* Fusions of your own for smelt lite, from a shared library: the C interface.
 *
 * Build a library that exports smelt_register_fusions and name it with --fusion_library. Nothing
 * of smelt is linked: everything goes through the table of functions that the host hands over.
 * docs/lite_fusions.md has a whole library.
 *
 * A fusion is tried at every operator that it names, before smelt's own, until none fires. It may
 * look at what the operator reads, and what that reads, and replace the operator and others by one
 * new operator. It can be switched off by its name with --no_fusion, and --explain shows where it
 * fired and what it said where it did not.
 *
 * The interface only grows: later versions add functions at the end of smelt_fusion_host, and
 * members at the end of structs, whose struct_size says what the library knows. Pointers that the
 * host returns and numbers of operators are valid until the call returns. Calls come from one
 * thread at a time. What the library passes wrongly is an error of the export, never a crash.
 */
#ifndef SMELT_LITE_FUSE_CUSTOM_SMELT_FUSION_H_
#define SMELT_LITE_FUSE_CUSTOM_SMELT_FUSION_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMELT_FUSION_ABI_VERSION 1

/* What a fusion returns, and replace, decline and fail for it. */
enum {
  SMELT_FUSION_NO = 0,     /* nothing was changed */
  SMELT_FUSION_YES = 1,    /* replace was called and answered so */
  SMELT_FUSION_FAILED = 2, /* the export ends with an error */
};
/* What the other functions return. */
enum {
  SMELT_FUSION_OK = 0,
  SMELT_FUSION_WRONG = 2, /* as SMELT_FUSION_FAILED: there is no such operator, input, attribute */
  SMELT_FUSION_NONE = 3,  /* the operator has no attribute of that name */
};

typedef struct smelt_fusion_call smelt_fusion_call;         /* one call of a fusion */
typedef struct smelt_fusion_registry smelt_fusion_registry; /* of smelt_register_fusions */
typedef struct smelt_fusion_host smelt_fusion_host;

/* Output `port` of an operator. op < 0: an input that is left out. */
typedef struct smelt_fusion_value {
  int32_t op;
  int32_t port;
} smelt_fusion_value;

/* dtype: TensorFlow's DataType (1 float, 3 int32, 4 uint8, 6 int8, 7 string, 9 int64, 10 bool...).
 * rank: -1 where it is not known; dims: -1 where a size is free.
 * data: the elements of a constant in row-major order; NULL for what is none, and for strings. */
typedef struct smelt_fusion_tensor {
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
  int64_t num_elements; /* of a constant */
  const void* data;
} smelt_fusion_tensor;

/* An operand of a new operator: a value, or a new constant where that is not NULL, whose bytes are
 * copied. Strings cannot be constants. */
typedef struct smelt_fusion_operand {
  smelt_fusion_value value;
  const smelt_fusion_tensor* constant;
} smelt_fusion_operand;

enum {
  SMELT_FUSION_INT = 0,
  SMELT_FUSION_FLOAT = 1,
  SMELT_FUSION_BOOL = 2,   /* in `i` */
  SMELT_FUSION_STRING = 3, /* and enums by name: "SAME", "RELU6" */
  SMELT_FUSION_INTS = 4,
};
typedef struct smelt_fusion_attribute {
  const char* name; /* as the schema names the options: "stride_h", "fused_activation_function" */
  int32_t kind;
  int64_t i;
  float f;
  const char* s;
  size_t num_ints;
  const int64_t* ints;
} smelt_fusion_attribute;

/* The operator that takes the root's place: its results are of the types and shapes of the root's.
 */
typedef struct smelt_fusion_replacement {
  size_t struct_size;
  const char* op; /* of the schema: "HARD_SWISH"; of a custom operator its code */
  int32_t custom; /* not 0: a custom operator, whose attributes become a FlexBuffer map */
  size_t num_inputs;
  const smelt_fusion_operand* inputs;
  size_t num_attributes;
  const smelt_fusion_attribute* attributes;
  /* Operators that go with the root. Where others read one of them nothing is replaced, replace
   * answers SMELT_FUSION_NO, and --explain says who. */
  size_t num_taken;
  const int32_t* taken;
  /* Of a custom operator: its options as they are, in place of the map; NULL: the map. */
  const void* custom_options;
  size_t custom_options_size;
} smelt_fusion_replacement;

typedef struct smelt_fusion {
  size_t struct_size;
  const char* name; /* for --no_fusion; another than those of all other fusions */
  const char* what; /* one line for --list_fusions */
  const char* ops;  /* the operators at which it is tried: "ADD MUL"; "CUSTOM" for custom ones */
  int32_t (*fuse)(const smelt_fusion_host* host, smelt_fusion_call* call, int32_t root);
} smelt_fusion;

struct smelt_fusion_host {
  uint32_t abi_version;
  /* SMELT_FUSION_FAILED for one that lacks something, or whose struct_size or operators are not
   * known; the error of loading the library says so. */
  int32_t (*add_fusion)(smelt_fusion_registry* registry, const smelt_fusion* fusion);

  /* "ADD"; of a custom operator its code; "CONST" of a constant, "ARGUMENT" of an input of the
   * model. NULL: there is no such operator. */
  const char* (*op)(smelt_fusion_call* call, int32_t op);
  int32_t (*is_custom)(smelt_fusion_call* call, int32_t op);
  /* The name that --explain shows. */
  const char* (*label)(smelt_fusion_call* call, int32_t op);
  int32_t (*num_inputs)(smelt_fusion_call* call, int32_t op);  /* -1: no such operator */
  int32_t (*num_outputs)(smelt_fusion_call* call, int32_t op); /* -1: no such operator */
  int32_t (*input)(smelt_fusion_call* call, int32_t op, int32_t i, smelt_fusion_value* value);
  int32_t (*tensor)(smelt_fusion_call* call, smelt_fusion_value value, smelt_fusion_tensor* tensor);
  /* How many inputs of operators and results of the model read the value; -1: there is none. */
  int32_t (*num_readers)(smelt_fusion_call* call, smelt_fusion_value value);

  /* Attributes of an operator, or the schema's defaults; of custom operators there are none.
   * SMELT_FUSION_WRONG for one of another type. */
  int32_t (*attr_int)(smelt_fusion_call* call, int32_t op, const char* name, int64_t* value);
  int32_t (*attr_float)(smelt_fusion_call* call, int32_t op, const char* name, float* value);
  int32_t (*attr_bool)(smelt_fusion_call* call, int32_t op, const char* name, int32_t* value);
  int32_t (*attr_string)(smelt_fusion_call* call, int32_t op, const char* name, const char** data,
                         size_t* size);
  int32_t (*custom_options)(smelt_fusion_call* call, int32_t op, const void** data, size_t* size);

  /* Replaces the root, once, last; the answer is to be returned. */
  int32_t (*replace)(smelt_fusion_call* call, const smelt_fusion_replacement* by);
  /* States why what nearly matched is left as it is; returns SMELT_FUSION_NO. */
  int32_t (*decline)(smelt_fusion_call* call, const char* why);
  /* States an error; returns SMELT_FUSION_FAILED. */
  int32_t (*fail)(smelt_fusion_call* call, const char* message);
  /* SMELT_FUSION_FAILED, for a function of this table that failed and said why. */
  int32_t (*failed)(smelt_fusion_call* call);
};

/* Exported by the library. */
int32_t smelt_register_fusions(const smelt_fusion_host* host, smelt_fusion_registry* registry);

#ifdef __cplusplus
}
#endif

#endif /* SMELT_LITE_FUSE_CUSTOM_SMELT_FUSION_H_ */
