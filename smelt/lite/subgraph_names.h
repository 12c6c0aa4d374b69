// Options of operators that number a subgraph are, in a graph of operators, attributes that name a
// function.
#ifndef SMELT_LITE_SUBGRAPH_NAMES_H_
#define SMELT_LITE_SUBGRAPH_NAMES_H_

#include "absl/strings/string_view.h"

namespace smelt {

struct SubgraphOption {
  absl::string_view option, attribute;
};
inline constexpr SubgraphOption kSubgraphOptions[] = {
    {"then_subgraph_index", "then_branch"},
    {"else_subgraph_index", "else_branch"},
    {"cond_subgraph_index", "cond"},
    {"body_subgraph_index", "body"},
    {"init_subgraph_index", "init"},
    {"subgraph", "callee"},
    {"decomposition_subgraph_index", "decomposition"},
    {"comparator_subgraph_index", "comparator"},
    {"update_computation_subgraph_index", "update"},
    {"branch_subgraph_indices", "branches"},
};

// The attribute; empty: the option numbers no subgraph.
inline absl::string_view FunctionOfOption(absl::string_view option) {
  for (const SubgraphOption& o : kSubgraphOptions) {
    if (o.option == option) return o.attribute;
  }
  return "";
}

}  // namespace smelt

#endif  // SMELT_LITE_SUBGRAPH_NAMES_H_
