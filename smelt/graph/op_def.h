// Op definitions: arguments, attributes, defaults and flags of an op or a function.
//
// All of TensorFlow 2.21's ops stand in one embedded table (graph/ops/ops.txt, a row of text each),
// with those that only smelt knows (ops/own_ops.txt); a row is parsed when the op is first asked
// for. Lookup is thread safe.
#ifndef SMELT_GRAPH_OP_DEF_H_
#define SMELT_GRAPH_OP_DEF_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/graph/attr.h"
#include "smelt/graph/op_name.h"

namespace smelt {

// An argument is one tensor, `number_attr` tensors of one type, or a list of tensors whose types
// are the attribute `type_list_attr`.
struct ArgDef {
  std::string name;
  Dtype type = Dtype::kInvalid;  // fixed type; or
  std::string type_attr;         // the attribute that names it; or
  std::string type_list_attr;    // the attribute that lists them
  std::string number_attr;
  bool is_ref = false;
  std::string unknown_fields;  // serialized, kept for writing
};

struct AttrDef {
  std::string name;
  std::string type;  // "int", "list(type)", "func", ...
  std::optional<Attr> default_value;
  bool has_minimum = false;
  int64_t minimum = 0;
  std::vector<Dtype> allowed_types;  // empty: any
  std::vector<std::string> allowed_strings;
  std::string unknown_fields;
};

// The most attributes that a definition may have, more than any op has: look-ups in it are linear.
inline constexpr size_t kMaxAttrDefs = 256;

struct OpDef {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  std::vector<std::string> control_outputs;  // functions only
  bool stateful = false;
  bool commutative = false;
  bool aggregate = false;
  bool allows_uninitialized_input = false;
  bool distributed_communication = false;
  std::string cpu_types;       // type constraints of TensorFlow's CPU kernels, as text; empty: none
  std::string unknown_fields;  // serialized, kept for writing

  const AttrDef* FindAttr(absl::string_view name) const;
};

// The definition of op `name`: TensorFlow's, one that only smelt has, or one that AddOpDef added;
// nullptr when there is none. The pointer stays valid.
const OpDef* FindOpDef(absl::string_view name);
// The same without a lock and without a look-up by name. REQUIRES: !op.unknown().
const OpDef* DefinitionOf(OpName op);
// Names of all of TensorFlow's ops, sorted, then those that AddOpDef added, sorted. smelt's own ops
// (own_ops.txt) are not among them.
std::vector<absl::string_view> AllOpNames();
// Adds an op for the life of the process, such as a user's from a shared library. ALREADY_EXISTS
// for a known name.
Status AddOpDef(OpDef def);

// One entry of the embedded table, in the form of ops.txt (see docs/formats/op_table.md).
// INVALID_ARGUMENT names what does not parse.
StatusOr<OpDef> ParseOpDef(absl::string_view text);

// Expands the types of `args` by the node's attributes; `ref` arguments give reference types.
// INVALID_ARGUMENT names the attribute that is missing or of another kind, a number that is
// negative or above 2^20, or a type that TensorFlow does not have.
StatusOr<DtypeVector> ArgTypes(std::span<const ArgDef> args, const OpDef& def,
                               const AttrMap& attrs);
// How many tensors one argument stands for. Errors as ArgTypes.
StatusOr<int64_t> ArgArity(const ArgDef& arg, const OpDef& def, const AttrMap& attrs);

// The attribute of a node, or the definition's default; nullptr when neither.
const Attr* FindAttrOrDefault(const OpDef* def, const AttrMap& attrs, absl::string_view name);

namespace internal {
struct OpRow {
  absl::string_view text;
  bool own;  // of own_ops.txt
};
extern const std::span<const OpRow> kOpRows;  // by number (op_name.h); generated from the tables
}  // namespace internal

}  // namespace smelt

#endif  // SMELT_GRAPH_OP_DEF_H_
