#include "smelt/kernels/common/scatter_nd_shapes.h"

#include <algorithm>

namespace smelt {

namespace {

// The check of the ops on variables, in TensorFlow's order. A vector of indices is rows of one.
Status CheckOfUpdate(const Shape& shape, const Shape& indices, const Shape& updates) {
  const int depth = indices.rank() > 1 ? static_cast<int>(indices.back()) : 1;
  const int outer = indices.rank() > 1 ? indices.rank() - 1 : 1;
  const std::string i_text = indices.ToString(), u_text = updates.ToString();
  const auto rows = [&](int to, absl::string_view of_indices, absl::string_view of_updates) {
    return InvalidArgument("Dimensions [0,", to, ") of indices[shape=", i_text, "]", of_indices,
                           " must match dimensions [0,", to, ") of updates[shape=", u_text, "]",
                           of_updates);
  };
  // A scalar has no first size: TensorFlow prints what lies in memory.
  if (updates.rank() < 1) return rows(1, absl::StrCat(" = ", indices[0]), "");
  if (updates[0] != indices[0]) {
    return rows(1, absl::StrCat(" = ", indices[0]), absl::StrCat(" = ", updates[0]));
  }
  if (updates.rank() < outer) return rows(outer, "", "");
  const auto slices = [&] {
    return InvalidArgument("Dimensions [", depth, ",", shape.rank(),
                           ") of input[shape=", shape.ToString(), "] must match dimensions [",
                           depth, ",", updates.rank(), ") of updates[shape=", u_text, "]");
  };
  if (updates.rank() != outer + shape.rank() - depth) return slices();
  for (int d = 0; d < outer; ++d) {
    if (updates[d] != indices[d]) return rows(outer, "", "");
  }
  for (int d = outer; d < updates.rank(); ++d) {
    if (updates[d] != shape[d - outer + depth]) return slices();
  }
  return OkStatus();
}

}  // namespace

Status CheckScatterNdShapes(const Shape& shape, const Shape& indices, const Shape& updates,
                            ScatterNdWords words) {
  if (words == ScatterNdWords::kNonAliasing || words == ScatterNdWords::kVariable) {
    return CheckOfUpdate(shape, indices, updates);
  }
  const auto i = indices.dims();
  const auto u = updates.dims();
  const auto s = shape.dims();
  const int64_t depth = i.back();
  const size_t outer = i.size() - 1;
  const std::string i_text = indices.ToString(), u_text = updates.ToString();
  if (u.size() < outer || !std::equal(i.begin(), i.begin() + outer, u.begin())) {
    if (words == ScatterNdWords::kTensor) {
      return InvalidArgument("Outer dimensions of indices and update must match. Indices shape: ",
                             i_text, ", updates shape:", u_text);
    }
    return InvalidArgument("Dimensions [0,", outer, ") of indices[shape=", i_text,
                           "] must match dimensions [0,", outer, ") of updates[shape=", u_text,
                           "]");
  }
  const bool ranks = depth <= shape.rank() && u.size() - outer == s.size() - depth;
  if (ranks && std::equal(s.begin() + depth, s.end(), u.begin() + outer)) {
    // Checked twice: as one row of indices, and as the ops on variables do, to which a vector is
    // rows of one.
    if (indices.rank() != 1 || indices.num_elements() == 0) return OkStatus();
    return CheckOfUpdate(shape, indices, updates);
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
  return InvalidArgument("Dimensions [", depth, ",", shape.rank(),
                         ") of input[shape=", shape.ToString(), "] must match dimensions [", outer,
                         ",", updates.rank(), ") of updates[shape=", u_text, "]");
}

}  // namespace smelt
