#include "smelt/wire/saved_model/object_graph.h"

#include <google/protobuf/arena.h>

#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/saved_model.pb.h"

namespace smelt {
namespace {

using StructuredKind = StructuredValue::Kind;
using TypeSpecProto = tensorflow::TypeSpecProto;

// Python's name of the class. Files may leave it out for classes of TensorFlow itself.
std::string TypeSpecClassName(const TypeSpecProto& proto) {
  switch (proto.type_spec_class()) {
    case TypeSpecProto::SPARSE_TENSOR_SPEC:
      return "SparseTensorSpec";
    case TypeSpecProto::INDEXED_SLICES_SPEC:
      return "IndexedSlicesSpec";
    case TypeSpecProto::RAGGED_TENSOR_SPEC:
      return "RaggedTensorSpec";
    case TypeSpecProto::TENSOR_ARRAY_SPEC:
      return "TensorArraySpec";
    case TypeSpecProto::DATA_DATASET_SPEC:
      return "DatasetSpec";
    case TypeSpecProto::DATA_ITERATOR_SPEC:
      return "IteratorSpec";
    case TypeSpecProto::OPTIONAL_SPEC:
      return "OptionalSpec";
    case TypeSpecProto::PER_REPLICA_SPEC:
      return "PerReplicaSpec";
    case TypeSpecProto::VARIABLE_SPEC:
      return "VariableSpec";
    case TypeSpecProto::ROW_PARTITION_SPEC:
      return "RowPartitionSpec";
    default:
      break;
  }
  // Names of registered classes begin with a module: "tfp.distributions.Normal_ACTTypeSpec".
  const std::string& full = proto.type_spec_class_name();
  const size_t dot = full.rfind('.');
  return dot == std::string::npos ? full : full.substr(dot + 1);
}

StructuredValue TakeStructuredValue(tensorflow::StructuredValue* proto);

template <typename Protos>
void TakeValues(Protos* protos, StructuredValue* out) {
  out->values.reserve(protos->size());
  for (auto& p : *protos) out->values.push_back(TakeStructuredValue(&p));
}

template <typename Spec>
void TakeSpec(const Spec& spec, StructuredValue* out) {
  out->text = spec.name();
  out->shape = ShapeFromProto(spec.shape());
  out->dtype = DtypeFromProto(spec.dtype());
}

// Recursion is bounded by the nesting that the parser allowed.
StructuredValue TakeStructuredValue(tensorflow::StructuredValue* proto) {
  StructuredValue v;
  switch (proto->kind_case()) {
    case tensorflow::StructuredValue::KIND_NOT_SET:
      break;
    case tensorflow::StructuredValue::kNoneValue:
      v.kind = StructuredKind::kNone;
      break;
    case tensorflow::StructuredValue::kFloat64Value:
      v.kind = StructuredKind::kFloat;
      v.number = proto->float64_value();
      break;
    case tensorflow::StructuredValue::kInt64Value:
      v.kind = StructuredKind::kInt;
      v.integer = proto->int64_value();
      break;
    case tensorflow::StructuredValue::kStringValue:
      v.kind = StructuredKind::kString;
      v.text = proto->string_value();
      break;
    case tensorflow::StructuredValue::kBoolValue:
      v.kind = StructuredKind::kBool;
      v.integer = proto->bool_value();
      break;
    case tensorflow::StructuredValue::kTensorShapeValue:
      v.kind = StructuredKind::kShape;
      v.shape = ShapeFromProto(proto->tensor_shape_value());
      break;
    case tensorflow::StructuredValue::kTensorDtypeValue:
      v.kind = StructuredKind::kDtype;
      v.dtype = DtypeFromProto(proto->tensor_dtype_value());
      break;
    case tensorflow::StructuredValue::kTensorSpecValue:
      v.kind = StructuredKind::kTensorSpec;
      TakeSpec(proto->tensor_spec_value(), &v);
      break;
    case tensorflow::StructuredValue::kBoundedTensorSpecValue: {
      v.kind = StructuredKind::kBoundedTensorSpec;
      auto* spec = proto->mutable_bounded_tensor_spec_value();
      TakeSpec(*spec, &v);
      v.tensors = {TakeTensorValue(spec->mutable_minimum()),
                   TakeTensorValue(spec->mutable_maximum())};
      break;
    }
    case tensorflow::StructuredValue::kTypeSpecValue: {
      v.kind = StructuredKind::kTypeSpec;
      auto* spec = proto->mutable_type_spec_value();
      v.text = TypeSpecClassName(*spec);
      v.extension_type = spec->type_spec_class() == TypeSpecProto::EXTENSION_TYPE_SPEC;
      v.values.push_back(TakeStructuredValue(spec->mutable_type_state()));
      break;
    }
    case tensorflow::StructuredValue::kListValue:
      v.kind = StructuredKind::kList;
      TakeValues(proto->mutable_list_value()->mutable_values(), &v);
      break;
    case tensorflow::StructuredValue::kTupleValue:
      v.kind = StructuredKind::kTuple;
      TakeValues(proto->mutable_tuple_value()->mutable_values(), &v);
      break;
    case tensorflow::StructuredValue::kDictValue: {
      v.kind = StructuredKind::kDict;
      std::map<absl::string_view, tensorflow::StructuredValue*> sorted;
      for (auto& [key, value] : *proto->mutable_dict_value()->mutable_fields()) {
        sorted[key] = &value;
      }
      for (auto& [key, value] : sorted) {
        v.keys.emplace_back(key);
        v.values.push_back(TakeStructuredValue(value));
      }
      break;
    }
    case tensorflow::StructuredValue::kNamedTupleValue: {
      v.kind = StructuredKind::kNamedTuple;
      auto* tuple = proto->mutable_named_tuple_value();
      v.text = tuple->name();
      for (auto& pair : *tuple->mutable_values()) {
        v.keys.push_back(pair.key());
        v.values.push_back(TakeStructuredValue(pair.mutable_value()));
      }
      break;
    }
    case tensorflow::StructuredValue::kTensorValue:
      v.kind = StructuredKind::kTensor;
      v.tensors.push_back(TakeTensorValue(proto->mutable_tensor_value()));
      break;
    case tensorflow::StructuredValue::kNumpyValue:
      v.kind = StructuredKind::kNumpy;
      v.tensors.push_back(TakeTensorValue(proto->mutable_numpy_value()));
      break;
  }
  return v;
}

FunctionSpec TakeFunctionSpec(tensorflow::FunctionSpec* proto) {
  FunctionSpec spec;
  spec.full_arg_spec = TakeStructuredValue(proto->mutable_fullargspec());
  spec.is_method = proto->is_method();
  spec.input_signature = TakeStructuredValue(proto->mutable_input_signature());
  if (proto->jit_compile() == tensorflow::FunctionSpec::ON) {
    spec.jit_compile = FunctionSpec::JitCompile::kOn;
  } else if (proto->jit_compile() == tensorflow::FunctionSpec::OFF) {
    spec.jit_compile = FunctionSpec::JitCompile::kOff;
  }
  return spec;
}

ObjectNode TakeObject(tensorflow::SavedObject* proto) {
  ObjectNode node;
  for (const auto& child : proto->children()) {
    node.children.push_back({child.local_name(), child.node_id()});
  }
  switch (proto->kind_case()) {
    case tensorflow::SavedObject::KIND_NOT_SET:
      break;
    case tensorflow::SavedObject::kUserObject:
      node.kind = ObjectNode::Kind::kUserObject;
      node.identifier = proto->user_object().identifier();
      break;
    case tensorflow::SavedObject::kAsset:
      node.kind = ObjectNode::Kind::kAsset;
      node.asset = proto->asset().asset_file_def_index();
      break;
    case tensorflow::SavedObject::kFunction: {
      node.kind = ObjectNode::Kind::kFunction;
      auto* function = proto->mutable_function();
      node.concrete_functions.assign(function->concrete_functions().begin(),
                                     function->concrete_functions().end());
      if (function->has_function_spec()) {
        node.function_spec = TakeFunctionSpec(function->mutable_function_spec());
      }
      break;
    }
    case tensorflow::SavedObject::kVariable: {
      node.kind = ObjectNode::Kind::kVariable;
      const auto& variable = proto->variable();
      node.dtype = DtypeFromProto(variable.dtype());
      node.shape = ShapeFromProto(variable.shape());
      node.trainable = variable.trainable();
      node.name = variable.name();
      node.device = variable.device();
      break;
    }
    case tensorflow::SavedObject::kBareConcreteFunction: {
      node.kind = ObjectNode::Kind::kBareFunction;
      auto* function = proto->mutable_bare_concrete_function();
      node.concrete_functions = {function->concrete_function_name()};
      node.argument_keywords.assign(function->argument_keywords().begin(),
                                    function->argument_keywords().end());
      node.allowed_positional_arguments = function->allowed_positional_arguments();
      if (function->has_function_spec()) {
        node.function_spec = TakeFunctionSpec(function->mutable_function_spec());
      }
      break;
    }
    case tensorflow::SavedObject::kConstant:
      node.kind = ObjectNode::Kind::kConstant;
      node.operation = proto->constant().operation();
      break;
    case tensorflow::SavedObject::kResource:
      node.kind = ObjectNode::Kind::kResource;
      node.device = proto->resource().device();
      break;
    case tensorflow::SavedObject::kCapturedTensor:
      node.kind = ObjectNode::Kind::kCapturedTensor;
      node.name = proto->captured_tensor().name();
      node.concrete_functions = {proto->captured_tensor().concrete_function()};
      break;
  }
  return node;
}

StatusOr<ObjectGraph> TakeObjectGraph(tensorflow::SavedObjectGraph* proto) {
  ObjectGraph graph;
  const int num_nodes = proto->nodes_size();
  const auto is_node = [num_nodes](int id) { return id >= 0 && id < num_nodes; };
  graph.nodes.reserve(num_nodes);
  for (auto& object : *proto->mutable_nodes()) {
    graph.nodes.push_back(TakeObject(&object));
    for (const ObjectNode::Child& child : graph.nodes.back().children) {
      if (!is_node(child.node)) {
        return InvalidArgument("Object graph: child '", child.name, "' of node ",
                               graph.nodes.size() - 1, " is node ", child.node, ", but there are ",
                               num_nodes);
      }
    }
  }
  for (auto& [name, function] : *proto->mutable_concrete_functions()) {
    ConcreteFunction& f = graph.concrete_functions[name];
    for (int id : function.bound_inputs()) {
      if (!is_node(id)) {
        return InvalidArgument("Object graph: function '", name, "' captures node ", id,
                               ", but there are ", num_nodes);
      }
      f.bound_inputs.push_back(id);
    }
    f.input_signature = TakeStructuredValue(function.mutable_canonicalized_input_signature());
    f.output_signature = TakeStructuredValue(function.mutable_output_signature());
  }
  return graph;
}

}  // namespace

absl::string_view ObjectKindName(ObjectNode::Kind kind) {
  switch (kind) {
    case ObjectNode::Kind::kNone:
      return "none";
    case ObjectNode::Kind::kUserObject:
      return "object";
    case ObjectNode::Kind::kAsset:
      return "asset";
    case ObjectNode::Kind::kFunction:
    case ObjectNode::Kind::kBareFunction:
      return "function";
    case ObjectNode::Kind::kVariable:
      return "variable";
    case ObjectNode::Kind::kConstant:
      return "constant";
    case ObjectNode::Kind::kResource:
      return "resource";
    case ObjectNode::Kind::kCapturedTensor:
      return "captured tensor";
  }
  return "none";
}

const ObjectNode* ObjectGraph::Child(const ObjectNode& node, absl::string_view name) const {
  for (const ObjectNode::Child& child : node.children) {
    if (child.name == name) return &nodes[child.node];
  }
  return nullptr;
}

StatusOr<ObjectGraph> ParseObjectGraph(absl::string_view bytes) {
  google::protobuf::Arena arena;
  auto* proto = google::protobuf::Arena::CreateMessage<tensorflow::SavedObjectGraph>(&arena);
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "SavedObjectGraph as binary proto", proto));
  return TakeObjectGraph(proto);
}

StatusOr<std::map<std::string, std::string>> CheckpointVariableNames(absl::string_view bytes) {
  google::protobuf::Arena arena;
  auto* proto = google::protobuf::Arena::CreateMessage<tensorflow::TrackableObjectGraph>(&arena);
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "TrackableObjectGraph as binary proto", proto));
  std::map<std::string, std::string> names;
  for (const auto& node : proto->nodes()) {
    for (const auto& tensor : node.attributes()) {
      if (!tensor.full_name().empty()) names[tensor.checkpoint_key()] = tensor.full_name();
    }
  }
  return names;
}

StatusOr<std::map<std::string, std::string>> CheckpointVariableNames(const BundleReader& bundle) {
  ASSIGN_OR_RETURN(const std::string bytes, CheckpointGraph(bundle));
  return CheckpointVariableNames(bytes);
}

StatusOr<std::string> CheckpointGraph(const BundleReader& bundle) {
  if (!bundle.Has(kCheckpointObjectGraph)) return std::string();
  ASSIGN_OR_RETURN(const Tensor stored, bundle.Read(kCheckpointObjectGraph));
  if (stored.dtype() != Dtype::kString || stored.num_elements() != 1) {
    return DataLoss(kCheckpointObjectGraph, " is no string");
  }
  return stored.flat<std::string>()[0];
}

}  // namespace smelt
