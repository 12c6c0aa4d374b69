// A graph of operators as the subgraph of a file.
#ifndef SMELT_LITE_EMIT_H_
#define SMELT_LITE_EMIT_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Numbers of tensors by node and output.
using LiteTensorPlaces = std::map<std::pair<std::string, int>, int32_t>;

// What a callable graph of operators (legalizer.h) becomes. `inputs` and `outputs` are names of
// tensors by argument and result. Constants are added to the buffers of `model`. `subgraph_of`
// gives the number of a function's subgraph. `places`, where it is not nullptr, gets where tensors
// went. INTERNAL for a node that is no operator; errors of
// LiteBytes.
StatusOr<LiteSubgraph> EmitSubgraph(
    const Graph& graph, const std::string& name, const std::vector<std::string>& inputs,
    const std::vector<std::string>& outputs,
    const std::function<StatusOr<int64_t>(absl::string_view function)>& subgraph_of,
    LiteModel& model, LiteTensorPlaces* places = nullptr);

}  // namespace smelt

#endif  // SMELT_LITE_EMIT_H_
