// QUANTIZE and DEQUANTIZE, which tensors become integers and floats by.
#ifndef SMELT_LITE_QUANTIZE_CONVERSION_H_
#define SMELT_LITE_QUANTIZE_CONVERSION_H_

#include <string>

#include "smelt/graph/graph.h"

namespace smelt {

inline bool IsConversion(const Node& n) { return n.Is({"tfl.quantize", "tfl.dequantize"}); }

// `op`, one of the two, of `from`, of whose stated shape it is. `how`: the scales of a result of
// integers (common/attributes.h).
StatusOr<Endpoint> AddConversion(Graph& graph, const std::string& name, OpName op, Endpoint from,
                                 Dtype type, AttrMap how = {});

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_CONVERSION_H_
