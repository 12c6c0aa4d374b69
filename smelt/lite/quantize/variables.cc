#include "smelt/lite/quantize/variables.h"

#include <cmath>

#include "smelt/lite/common/attributes.h"

namespace smelt {
namespace {

std::pair<std::string, std::string> NameOfVariable(const Node& handle) {
  return {std::string(handle.String("container")), std::string(handle.String("shared_name"))};
}

}  // namespace

Variables FindVariables(std::span<Node* const> order) {
  Variables out;
  for (Node* n : order) {
    if (!n->Is("tfl.var_handle")) continue;
    VariableUses& v = out[NameOfVariable(*n)];
    v.handles.push_back(n);
    for (const Use& use : n->uses()) {
      if (use.is_control()) continue;
      if (use.node->Is("tfl.read_variable") && use.node->output_types[0] == Dtype::kFloat) {
        v.reads.push_back(use.node);
      } else if (use.node->Is("tfl.assign_variable") && use.input == 0 &&
                 use.node->num_inputs() == 2) {
        const Endpoint value = use.node->input(1);
        v.known =
            v.known && value.node->output_types[static_cast<size_t>(value.port)] == Dtype::kFloat;
        v.writes.push_back(use.node);
      } else {
        v.known = false;
      }
    }
  }
  return out;
}

void StateVariable(Node& handle, const Params& p, const IntegerFormat& f) {
  handle.AttrsToChange().Set(kVariableScale, p.scale);
  handle.AttrsToChange().Set(kVariableZero, p.zero);
  handle.AttrsToChange().Set(kVariableType, f.type);
}

StatusOr<Tensor> VariableBegin(const Node& handle, const Tensor& value) {
  const auto scale = handle.Get<float>(kVariableScale, 0.0f);
  if (scale == 0) return value;
  const bool int16 = handle.Get<Dtype>(kVariableType, Dtype::kInt8) == Dtype::kInt16;
  if (value.dtype() != Dtype::kFloat) {
    return Internal("variable '", handle.String("shared_name"), "' holds no floats");
  }
  for (const float v : value.flat<float>()) {
    if (std::isfinite(v)) continue;
    return InvalidArgument("variable '", handle.String("shared_name"), "' begins with ", v);
  }
  return QuantizedTo(value, {scale, handle.Int(kVariableZero)}, int16 ? kInt16Format : kInt8Format);
}

Status CheckVariablesAgree(std::span<Graph* const> graphs) {
  std::map<std::pair<std::string, std::string>, Params> seen;
  for (const Graph* graph : graphs) {
    for (const Node* n : graph->Nodes()) {
      if (!n->Is("tfl.var_handle")) continue;
      const Params p = {n->Get<float>(kVariableScale, 0.0f), n->Int(kVariableZero)};
      const auto [it, added] = seen.try_emplace(NameOfVariable(*n), p);
      if (added || it->second == p) continue;
      return InvalidArgument("variable '", n->String("shared_name"),
                             "' is shared by several signatures, which would want it in several "
                             "scales: --variable_quantization needs one --signature");
    }
  }
  return OkStatus();
}

}  // namespace smelt
