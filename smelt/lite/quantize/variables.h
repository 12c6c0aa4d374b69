// Variables of a graph of operators that are to hold integers.
#ifndef SMELT_LITE_QUANTIZE_VARIABLES_H_
#define SMELT_LITE_QUANTIZE_VARIABLES_H_

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/integer_format.h"

namespace smelt {

// A variable, and all that the graph does with it.
struct VariableUses {
  std::vector<Node*> handles, reads, writes;
  bool known = true;  // false: something else has its handle, or it holds no floats
};
// By container and name.
using Variables = std::map<std::pair<std::string, std::string>, VariableUses>;
Variables FindVariables(std::span<Node* const> order);

// That a VAR_HANDLE says what its variable holds, for who fills it.
void StateVariable(Node& handle, const Params& p, const IntegerFormat& f);
// What a variable begins with, as integers where its handle says so.
StatusOr<Tensor> VariableBegin(const Node& handle, const Tensor& value);
// INVALID_ARGUMENT names a variable that holds integers in one of the graphs, and something else in
// another.
Status CheckVariablesAgree(std::span<Graph* const> graphs);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_VARIABLES_H_
