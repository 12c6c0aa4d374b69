// Gradients of ops as rows: the body of a function in the text form of graphs (graph/text.h), which
// takes what the op takes and a gradient of each output, and gives one of each input.
#ifndef SMELT_OPTIMIZE_GRADIENTS_ROWS_H_
#define SMELT_OPTIMIZE_GRADIENTS_ROWS_H_

#include <span>
#include <string>

#include "smelt/graph/graph.h"

namespace smelt::gradients {

// What several rows share.
struct Form {
  // Names, with blanks between them: of the op's inputs and then of the gradients of its outputs,
  // and of the results, one for each input. One that ends in '*' is a list: "x*" in a body stands
  // for its elements "x_0, x_1", and a result "dx*" for the outputs of a node "dx".
  absl::string_view args, results;
  // Statements before and behind those of a row.
  absl::string_view head = "", tail = "";
};

struct Row {
  absl::string_view op;
  const Form* form;
  // Statements. "$T" stands for the value of the op's attribute T; attributes that inputs decide
  // may be left out, as everywhere.
  absl::string_view body = "";
  // Makes the body instead, of a node with the op's attributes and types and no inputs.
  StatusOr<std::string> (*make)(const Node& node) = nullptr;
};

inline constexpr Form kUnary = {"x dy", "dx"};

// By family: math.cc, reductions.cc, arrays.cc, nn.cc.
extern const std::span<const Row> kMathRows, kReductionRows, kArrayRows, kNnRows;

// nullptr: the op has none.
const Row* FindRow(absl::string_view op);
// UNIMPLEMENTED where the op's row is not for the node's type of numbers.
Status CheckNumbers(const Node& n);
// Nothing that the op gives changes with what it takes, or nobody wants to know how: its inputs get
// no gradient from it.
bool IsConstantForGradients(const Node& n);

}  // namespace smelt::gradients

#endif  // SMELT_OPTIMIZE_GRADIENTS_ROWS_H_
