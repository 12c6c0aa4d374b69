// What an optimizer of a shared library may ask of its graph (tf_graph_optimizer.h).
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/constant.h"
#include "smelt/optimize/custom/plugin_abi.h"
#include "smelt/wire/graph_def/plugin_messages.h"

struct TF_GraphProperties {
  const TF_GrapplerItem* item;
  std::optional<smelt::ShapeTable> shapes;  // by TF_InferStatically
  bool input_values = false, output_values = false;
  // TensorFlow counts symbols down from -2.
  std::map<int64_t, int64_t> symbols;
};

struct TF_FunctionLibraryDefinition {
  std::map<std::string, std::string> signatures;
};

namespace smelt {
namespace {

void SizeOfNames(const std::vector<std::string>& names, int* num_values, size_t* storage_size) {
  *num_values = static_cast<int>(names.size());
  *storage_size = 0;
  for (const std::string& name : names) *storage_size += name.size();
}

void CopyNames(const std::vector<std::string>& names, char** values, size_t* lengths,
               int num_values, void* storage, size_t storage_size, TF_Status* status) {
  char* to = static_cast<char*>(storage);
  size_t left = storage_size;
  const size_t count = std::min(names.size(), static_cast<size_t>(std::max(num_values, 0)));
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = names[i];
    values[i] = to;
    lengths[i] = name.size();
    if (name.size() > left) {
      return SetTfStatus(status,
                         InvalidArgument("Not enough storage to hold the requested list of nodes"));
    }
    std::memcpy(to, name.data(), name.size());
    to += name.size();
    left -= name.size();
  }
}

StatusOr<std::string> Properties(TF_GraphProperties& p, Endpoint e, bool with_value) {
  const auto port = static_cast<size_t>(e.port);
  const Dtype dtype =
      port < e.node->output_types.size() ? e.node->output_types[port] : Dtype::kInvalid;
  const PartialShape& shape = p.shapes->of(e);
  std::vector<int64_t> dims;
  if (shape.known_rank()) dims.assign(shape.dims().begin(), shape.dims().end());
  for (int64_t& size : dims) {
    if (!IsSymbolicDim(size)) continue;
    size = p.symbols.try_emplace(size, -2 - static_cast<int64_t>(p.symbols.size())).first->second;
  }
  const std::optional<Tensor> value =
      with_value && e.port == 0 && !p.item->fed.contains(e.node->name()) ? ConstantTensor(*e.node)
                                                                         : std::nullopt;
  const std::span<const int64_t> sizes(dims);
  return SerializeTensorProperties(dtype, shape.known_rank() ? &sizes : nullptr,
                                   value ? &*value : nullptr);
}

// The tensors that the node reads, or gives; none before TF_InferStatically.
std::vector<Endpoint> TensorsOf(const TF_GraphProperties& p, const char* name, bool outputs) {
  Node* n = p.shapes ? p.item->graph->Find(name) : nullptr;
  std::vector<Endpoint> out;
  if (n == nullptr) return out;
  if (!outputs) return {n->inputs().begin(), n->inputs().end()};
  for (int i = 0; i < n->num_outputs(); ++i) out.push_back({n, i});
  return out;
}

void WriteProperties(TF_GraphProperties& p, const char* name, bool outputs, TF_Buffer** buffers,
                     int num_values, TF_Status* status) {
  SetTfStatus(status, OkStatus());
  const std::vector<Endpoint> tensors = TensorsOf(p, name, outputs);
  const size_t count = std::min(tensors.size(), static_cast<size_t>(std::max(num_values, 0)));
  for (size_t i = 0; i < count; ++i) {
    const auto bytes = Properties(p, tensors[i], outputs ? p.output_values : p.input_values);
    const Status filled = bytes.ok() ? FillTfBuffer(*bytes, buffers[i]) : bytes.status();
    if (!filled.ok()) return SetTfStatus(status, filled);
  }
}

StatusOr<std::string> LookUpOpDef(const TF_FunctionLibraryDefinition& library,
                                  const std::string& name) {
  const auto it = library.signatures.find(name);
  if (it != library.signatures.end()) return it->second;
  if (const OpDef* def = FindOpDef(name)) return SerializeOpDef(*def);
  return NotFound("Op type not registered '", name, "' in binary running on this machine. ",
                  "Make sure the Op and Kernel are registered in the binary running in this "
                  "process.");
}

}  // namespace
}  // namespace smelt

extern "C" {

void TF_GetNodesToPreserveListSize(const TF_GrapplerItem* item, int* num_values,
                                   size_t* storage_size, TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  smelt::SizeOfNames(item->preserved, num_values, storage_size);
}

void TF_GetNodesToPreserveList(const TF_GrapplerItem* item, char** values, size_t* lengths,
                               int num_values, void* storage, size_t storage_size,
                               TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  smelt::CopyNames(item->preserved, values, lengths, num_values, storage, storage_size, status);
}

void TF_GetFetchNodesListSize(const TF_GrapplerItem* item, int* num_values, size_t* storage_size,
                              TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  smelt::SizeOfNames(item->fetches, num_values, storage_size);
}

void TF_GetFetchNodesList(const TF_GrapplerItem* item, char** values, size_t* lengths,
                          int num_values, void* storage, size_t storage_size, TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  smelt::CopyNames(item->fetches, values, lengths, num_values, storage, storage_size, status);
}

TF_GraphProperties* TF_NewGraphProperties(const TF_GrapplerItem* item) {
  return new TF_GraphProperties{item, std::nullopt, false, false, {}};
}

void TF_DeleteGraphProperties(TF_GraphProperties* properties) { delete properties; }

void TF_InferStatically(TF_GraphProperties* properties, unsigned char assume_valid_feeds,
                        unsigned char /*aggressive_shape_inference*/,
                        unsigned char include_input_tensor_values,
                        unsigned char include_output_tensor_values, TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  const TF_GrapplerItem& item = *properties->item;
  const auto fed = [&](const smelt::Node& n) { return item.fed.contains(n.name()); };
  properties->shapes =
      assume_valid_feeds
          ? smelt::InferSymbolicShapes(*item.graph, smelt::XlaShapeRules())
          : smelt::InferSymbolicShapesBeside(*item.graph, smelt::XlaShapeRules(), fed);
  properties->input_values = include_input_tensor_values != 0;
  properties->output_values = include_output_tensor_values != 0;
}

void TF_GetInputPropertiesListSize(TF_GraphProperties* properties, const char* name,
                                   int* num_values, TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  *num_values = static_cast<int>(smelt::TensorsOf(*properties, name, false).size());
}

void TF_GetOutputPropertiesListSize(TF_GraphProperties* properties, const char* name,
                                    int* num_values, TF_Status* status) {
  smelt::SetTfStatus(status, smelt::OkStatus());
  *num_values = static_cast<int>(smelt::TensorsOf(*properties, name, true).size());
}

void TF_GetInputPropertiesList(TF_GraphProperties* properties, const char* name,
                               TF_Buffer** buffers, int num_values, TF_Status* status) {
  smelt::WriteProperties(*properties, name, false, buffers, num_values, status);
}

void TF_GetOutputPropertiesList(TF_GraphProperties* properties, const char* name,
                                TF_Buffer** buffers, int num_values, TF_Status* status) {
  smelt::WriteProperties(*properties, name, true, buffers, num_values, status);
}

TF_FunctionLibraryDefinition* TF_NewFunctionLibraryDefinition(TF_Buffer* graph, TF_Status* status) {
  auto signatures = smelt::SerializedSignatures(smelt::BytesOf(*graph));
  smelt::SetTfStatus(status, signatures.status());
  return signatures.ok() ? new TF_FunctionLibraryDefinition{*std::move(signatures)} : nullptr;
}

void TF_DeleteFunctionLibraryDefinition(TF_FunctionLibraryDefinition* library) { delete library; }

void TF_LookUpOpDef(TF_FunctionLibraryDefinition* library, const char* name, TF_Buffer* buffer,
                    TF_Status* status) {
  const auto def = smelt::LookUpOpDef(*library, name);
  smelt::SetTfStatus(status, def.ok() ? smelt::FillTfBuffer(*def, buffer) : def.status());
}

}  // extern "C"
