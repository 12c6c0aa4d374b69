// Structured values as Python prints them. Thread safe.
#ifndef SMELT_CLI_SHOW_PYTHON_H_
#define SMELT_CLI_SHOW_PYTHON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "smelt/wire/saved_model/object_graph.h"

namespace smelt {

// 'text' with Python's choice of quotes and escapes.
std::string PythonStringRepr(absl::string_view text);
// "float32", "string", "float32_ref": the name of a tf.DType.
std::string TfDtypeName(Dtype t);
// repr(value), str(value) and type(value).__name__. Dicts print in the order of their keys.
std::string PythonRepr(const StructuredValue& value);
std::string PythonStr(const StructuredValue& value);
std::string PythonTypeName(const StructuredValue& value);

// For arrays that iterate in Python (tensors of rank > 0): str() of each row. Empty for scalars and
// what no tensor can be made of.
std::vector<std::string> PythonRows(const TensorValue& value);

}  // namespace smelt

#endif  // SMELT_CLI_SHOW_PYTHON_H_
