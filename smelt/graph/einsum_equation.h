// Einsum equations: "ij,jk->ik", "...a,ab->...b", "ii->i".
#ifndef SMELT_GRAPH_EINSUM_EQUATION_H_
#define SMELT_GRAPH_EINSUM_EQUATION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// A label for each dimension: a named one is its character; the dimensions of an ellipsis are
// kEllipsis for the last one, kEllipsis + 1 for the one before, and so on.
using EinsumLabels = absl::InlinedVector<int, 8>;
inline constexpr int kEllipsis = 256;

struct EinsumEquation {
  // One entry per subscript, kEllipsis for the whole ellipsis.
  std::vector<EinsumLabels> inputs;
  EinsumLabels output;
};
// INVALID_ARGUMENT in TensorFlow's words.
StatusOr<EinsumEquation> ParseEinsum(const std::string& equation);

// What an equation means for operands of known shapes.
struct EinsumShapes {
  // By operand and dimension. A dimension of an ellipsis that is broadcast from size one has label
  // kNone: its index is always 0.
  static constexpr int kNone = -1;
  std::vector<EinsumLabels> inputs;
  EinsumLabels output;                         // labels may be repeated
  std::vector<std::pair<int, int64_t>> sizes;  // by label

  // -1 for a label that no input has.
  int64_t Size(int label) const;
};
// INVALID_ARGUMENT in TensorFlow's words when ranks or sizes do not fit the equation. REQUIRES: one
// shape for each input of the equation.
StatusOr<EinsumShapes> ExpandEinsum(const EinsumEquation& e, std::span<const Shape* const> shapes);

}  // namespace smelt

#endif  // SMELT_GRAPH_EINSUM_EQUATION_H_
