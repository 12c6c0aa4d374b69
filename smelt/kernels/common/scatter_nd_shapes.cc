#include "smelt/kernels/common/scatter_nd_shapes.h"

#include <algorithm>

namespace smelt {

Status CheckScatterNdShapes(const Shape& shape, const Shape& indices, const Shape& updates,
                            ScatterNdWords words) {
  const auto i = indices.dims();
  const auto u = updates.dims();
  const auto s = shape.dims();
  const bool of_update =
      words == ScatterNdWords::kNonAliasing || words == ScatterNdWords::kVariable;
  const bool vector = of_update && indices.rank() == 1;
  const int64_t depth = vector ? 1 : i.back();
  const size_t outer = vector ? 1 : i.size() - 1;
  const std::string i_text = indices.ToString(), u_text = updates.ToString();
  if (u.size() < outer || !std::equal(i.begin(), i.begin() + outer, u.begin())) {
    if (words == ScatterNdWords::kTensor) {
      return InvalidArgument("Outer dimensions of indices and update must match. Indices shape: ",
                             i_text, ", updates shape:", u_text);
    }
    std::string rows, given;
    if (of_update && u.size() >= outer) {
      size_t d = 0;
      while (i[d] == u[d]) ++d;
      rows = absl::StrCat(" = ", i[d]);
      given = absl::StrCat(" = ", u[d]);
    }
    return InvalidArgument("Dimensions [0,", outer, ") of indices[shape=", i_text, "]", rows,
                           " must match dimensions [0,", outer, ") of updates[shape=", u_text, "]",
                           given);
  }
  const bool ranks = depth <= shape.rank() && u.size() - outer == s.size() - depth;
  if (ranks && std::equal(s.begin() + depth, s.end(), u.begin() + outer)) {
    // The other ops check twice: as one row of indices, and as the ops on variables do, to which a
    // vector is rows of one.
    if (of_update || indices.rank() != 1 || indices.num_elements() == 0) return OkStatus();
    return CheckScatterNdShapes(shape, indices, updates, ScatterNdWords::kVariable);
  }
  if (words == ScatterNdWords::kTensor) {
    if (!ranks) {
      return InvalidArgument("Inner dimensions of output shape must match inner dimensions of ",
                             "updates shape. Output: ", shape.ToString(), " updates: ", u_text);
    }
    return InvalidArgument(
        "The inner ", s.size() - depth, " dimensions of output.shape=", shape.ToString(),
        " must match the inner ", u.size() - outer, " dimensions of updates.shape=", u_text);
  }
  const int64_t from = of_update ? depth : static_cast<int64_t>(outer);
  return InvalidArgument("Dimensions [", depth, ",", shape.rank(),
                         ") of input[shape=", shape.ToString(), "] must match dimensions [", from,
                         ",", updates.rank(), ") of updates[shape=", u_text, "]");
}

}  // namespace smelt
