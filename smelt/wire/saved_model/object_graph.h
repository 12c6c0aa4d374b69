// The objects that a TF2 model was saved from: SavedObjectGraph in smelt's own types.
//
// Node 0 is the root. Its children of kind kFunction and kBareFunction are what a user calls; the
// concrete functions behind them lie in the graph's library. Free functions are thread safe; the
// values are plain data. Bytes are untrusted.
#ifndef SMELT_WIRE_SAVED_MODEL_OBJECT_GRAPH_H_
#define SMELT_WIRE_SAVED_MODEL_OBJECT_GRAPH_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/graph/attr.h"

namespace smelt {

class BundleReader;

// A nested Python value: an argument, a default, or the spec of a tensor.
struct StructuredValue {
  enum class Kind {
    kUnset,
    kNone,
    kFloat,
    kInt,
    kString,
    kBool,
    kShape,
    kDtype,
    kTensorSpec,
    kBoundedTensorSpec,  // `tensors`: minimum and maximum
    kTypeSpec,           // `text`: its class; `values`: its state, one value
    kList,
    kTuple,
    kDict,        // `keys` ascend
    kNamedTuple,  // `text`: its class
    kTensor,      // `tensors`: the value
    kNumpy,       // the same, given as a numpy array
  };

  Kind kind = Kind::kUnset;
  bool extension_type = false;  // of a type spec: an ExtensionType, whose state is named fields
  Dtype dtype = Dtype::kInvalid;
  int64_t integer = 0;  // ints and bools
  double number = 0;
  std::string text;  // a string; the name of a tensor spec, empty for none
  PartialShape shape;
  std::vector<std::string> keys;  // of dicts and named tuples, one for each value
  std::vector<StructuredValue> values;
  std::vector<std::shared_ptr<const TensorValue>> tensors;

  bool is(Kind k) const { return kind == k; }
};

// How Python sees a function: the FullArgSpec as a named tuple, and the signature it was given.
struct FunctionSpec {
  enum class JitCompile { kDefault, kOn, kOff };
  StructuredValue full_arg_spec;
  bool is_method = false;  // the first argument is `self`
  StructuredValue input_signature;
  JitCompile jit_compile = JitCompile::kDefault;
};

// One trace of a function. Its FunctionDef takes the tensors of `input_signature` in flattened
// order, then the captured objects.
struct ConcreteFunction {
  std::vector<int> bound_inputs;  // captured objects: numbers of nodes
  // (positional arguments, keyword arguments): a tuple of a tuple and a dict.
  StructuredValue input_signature;
  StructuredValue output_signature;
};

struct ObjectNode {
  enum class Kind {
    kNone,
    kUserObject,
    kAsset,
    kFunction,
    kVariable,
    kBareFunction,  // one concrete function
    kConstant,
    kResource,
    kCapturedTensor,
  };
  struct Child {
    std::string name;
    int node = 0;
  };

  Kind kind = Kind::kNone;
  std::vector<Child> children;
  // Variables.
  Dtype dtype = Dtype::kInvalid;
  PartialShape shape;
  bool trainable = false;
  std::string name;  // of a variable, a captured tensor
  // Functions: the names of their concrete functions. A captured tensor: the concrete function
  // whose graph it is in.
  std::vector<std::string> concrete_functions;
  std::optional<FunctionSpec> function_spec;
  std::vector<std::string> argument_keywords;  // bare functions
  int64_t allowed_positional_arguments = 0;    // bare functions
  std::string identifier;                      // user objects: the class, "_generic_user_object"
  std::string operation;                       // constants: the node of the main graph
  std::string device;                          // variables and resources
  int asset = 0;                               // assets: the index among the MetaGraph's assets
};

absl::string_view ObjectKindName(ObjectNode::Kind kind);  // "function", "variable", ...

struct ObjectGraph {
  std::vector<ObjectNode> nodes;
  std::map<std::string, ConcreteFunction> concrete_functions;

  // nullptr when there are no nodes.
  const ObjectNode* root() const { return nodes.empty() ? nullptr : &nodes[0]; }
  // The child of that name; nullptr when there is none. REQUIRES: `node` is of this graph.
  const ObjectNode* Child(const ObjectNode& node, absl::string_view name) const;
};

// From MetaGraph::object_graph. DATA_LOSS when the bytes do not parse; INVALID_ARGUMENT for an edge
// or a bound input that names no node. Whether concrete functions are in the library is not
// checked.
StatusOr<ObjectGraph> ParseObjectGraph(absl::string_view bytes);

// The bundle's own object graph is this entry, one string.
inline constexpr char kCheckpointObjectGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
// Its bytes; empty where the bundle has no such entry. DATA_LOSS when it is no string.
StatusOr<std::string> CheckpointGraph(const BundleReader& bundle);

// From these bytes: key in the bundle -> name of the variable as Python had it. DATA_LOSS when they
// do not parse.
StatusOr<std::map<std::string, std::string>> CheckpointVariableNames(absl::string_view bytes);
// The same of a bundle; empty where it has no object graph.
StatusOr<std::map<std::string, std::string>> CheckpointVariableNames(const BundleReader& bundle);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_OBJECT_GRAPH_H_
