// Scattered changes of variables: rows by one index (Scatter*), slices by index tuples
// (ScatterNd*).
#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/scatter_nd_shapes.h"
#include "smelt/kernels/common/slice_name.h"
#include "smelt/kernels/common/variables.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/state/update.h"

namespace smelt {
namespace {

// Checks and applies under the variable's lock.
Status ScatterRows(const OpContext& ctx, UpdateKind kind, Tensor& params) {
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  if (!params.valid()) return UninitializedVariable(ctx, 0);
  if (params.dtype() != updates.dtype()) {
    return InvalidArgument("Trying to update a variable of type ", DtypeName(params.dtype()),
                           " with a value of type ", DtypeName(updates.dtype()));
  }
  const bool is_ref = IsRef(ctx.node().input_types[0]);
  if (is_ref && params.rank() < 1) {
    return InvalidArgument("params must be at least 1-D, got shape ", params.shape().ToString());
  }
  const bool one_value = updates.rank() == 0;
  const auto mismatch = [&] {
    return InvalidArgument(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
        "updates.shape ",
        updates.shape().ToString(), ", indices.shape ", indices.shape().ToString(),
        ", params.shape ", params.shape().ToString());
  };
  if (!one_value && updates.rank() != indices.rank() + params.rank() - 1) return mismatch();
  if (is_ref && !one_value) {
    for (int d = 0; d < updates.rank(); ++d) {
      if (updates.dim(d) !=
          (d < indices.rank() ? indices.dim(d) : params.dim(d - indices.rank() + 1))) {
        return mismatch();
      }
    }
  }
  // Ops on references divide floats by anything.
  if (kind == UpdateKind::kDiv && (!is_ref || IsInteger(updates.dtype())) && HasZero(updates)) {
    return InvalidArgument("updates must not contain 0");
  }
  const int64_t n = indices.num_elements();
  if (n == 0) return OkStatus();
  for (int d = 0; !one_value && d < indices.rank(); ++d) {
    if (d >= updates.rank() || updates.dim(d) != indices.dim(d)) {
      return InvalidArgument("The shape of indices (", indices.shape().ToString(),
                             ") must be a prefix of the shape of updates (",
                             updates.shape().ToString(), ")");
    }
  }
  if (params.rank() < 1) return mismatch();
  const int64_t rows = params.dim(0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = IndexAt(indices, i);
    if (row < 0 || row >= rows) {
      return InvalidArgument("indices", SliceName(indices.shape(), i), " = ", row,
                             " is not in [0, ", rows, ")");
    }
  }
  // TensorFlow writes rows of other sizes over what lies behind.
  for (int d = indices.rank(); !one_value && d < updates.rank(); ++d) {
    if (updates.dim(d) != params.dim(d - indices.rank() + 1)) return mismatch();
  }
  const int64_t width = params.shape().Product(1, params.rank());
  const size_t row_bytes = static_cast<size_t>(width) * Tensor::ElementSize(params.dtype());
  auto* base = static_cast<char*>(params.raw());
  const auto* from = static_cast<const char*>(updates.raw());
  for (int64_t i = 0; i < n; ++i) {
    ApplyUpdate(kind, params.dtype(), base + static_cast<size_t>(IndexAt(indices, i)) * row_bytes,
                one_value ? from : from + static_cast<size_t>(i) * row_bytes, width,
                one_value ? 0 : 1);
  }
  return OkStatus();
}

Status ScatterSlices(const OpContext& ctx, UpdateKind kind, bool skip_bad, Tensor& params) {
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  if (!params.valid()) return UninitializedVariable(ctx, 0);
  if (params.dtype() != updates.dtype()) {
    return InvalidArgument("Trying to update a variable of type ", DtypeName(params.dtype()),
                           " with a value of type ", DtypeName(updates.dtype()));
  }
  if (params.rank() < 1) {
    return InvalidArgument("Output must be at least 1-D, got shape: ", params.shape().ToString());
  }
  const bool none = indices.num_elements() == 0 && updates.num_elements() == 0;
  if (!none &&
      (params.num_elements() == 0 || indices.num_elements() == 0 || updates.num_elements() == 0)) {
    return InvalidArgument("Indices and updates specified for empty output.  indices shape: ",
                           indices.shape().ToString());
  }
  if (indices.rank() < 1) {
    return InvalidArgument("Indices must be at least 1-D, got shape: ", indices.shape().ToString());
  }
  RETURN_IF_ERROR(CheckScatterNdShapes(params.shape(), indices.shape(), updates.shape(),
                                       ScatterNdWords::kVariable));
  const int64_t depth = indices.rank() > 1 ? indices.shape().back() : 1;
  if (params.num_elements() != 0 && (depth < 1 || depth > 7)) {
    return InvalidArgument("Only indices.shape[-1] values between 1 and 5 are currently supported.",
                           "  Requested rank: ", depth);
  }
  const Tensor rows = indices.rank() == 1 ? indices.WithShape(Shape({indices.dim(0), 1})) : indices;
  const Shape shape = params.shape();
  const NdIndices nd(rows, shape);
  // First all indices, so that an error leaves the variable as it was; the last bad one is named.
  for (int64_t i = nd.rows(); i-- > 0 && !skip_bad;) {
    if (nd.Place(i) >= 0) continue;
    return InvalidArgument(nd.Describe(i), " does not index into shape ", shape.ToString());
  }
  const Dtype dtype = params.dtype();
  for (int64_t i = 0; i < nd.rows(); ++i) {
    const int64_t place = nd.Place(i);
    if (place < 0) continue;
    ApplyUpdate(kind, dtype, At(dtype, params.raw(), place),
                At(dtype, updates.raw(), i * nd.slice()), nd.slice(), 1);
  }
  return OkStatus();
}

template <UpdateKind kKind>
Status RunScatter(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindVariable(ctx, 0));
  RETURN_IF_ERROR(variable->Update([&](Tensor& value) { return ScatterRows(ctx, kKind, value); }));
  ForwardRef(ctx);
  return OkStatus();
}

template <UpdateKind kKind>
Status RunScatterNd(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindVariable(ctx, 0));
  const std::string policy = ctx.node().String("bad_indices_policy");
  if (!policy.empty() && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE") {
    return InvalidArgument("Unknown bad indices handling attribute: ", policy);
  }
  RETURN_IF_ERROR(variable->Update(
      [&](Tensor& value) { return ScatterSlices(ctx, kKind, policy == "IGNORE", value); }));
  ForwardRef(ctx);
  return OkStatus();
}

constexpr DtypeSet kScatterNdTypes = kNumberTypes | Types(Dtype::kBool);

constexpr Kernel kScatterTable[] = {
    {"ResourceScatterUpdate", "", kAnyType, "state:scatter", RunScatter<UpdateKind::kSet>},
    {"ResourceScatterAdd", "dtype", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kAdd>},
    {"ResourceScatterSub", "dtype", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kSub>},
    {"ResourceScatterMul", "dtype", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kMul>},
    {"ResourceScatterDiv", "dtype", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kDiv>},
    {"ResourceScatterMin", "dtype", kRealTypes, "state:scatter", RunScatter<UpdateKind::kMin>},
    {"ResourceScatterMax", "dtype", kRealTypes, "state:scatter", RunScatter<UpdateKind::kMax>},
    {"ScatterUpdate", "", kAnyType, "state:scatter", RunScatter<UpdateKind::kSet>},
    {"ScatterAdd", "T", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kAdd>},
    {"ScatterSub", "T", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kSub>},
    {"ScatterMul", "T", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kMul>},
    {"ScatterDiv", "T", kNumberTypes, "state:scatter", RunScatter<UpdateKind::kDiv>},
    {"ScatterMin", "T", kRealTypes, "state:scatter", RunScatter<UpdateKind::kMin>},
    {"ScatterMax", "T", kRealTypes, "state:scatter", RunScatter<UpdateKind::kMax>},
    {"ResourceScatterNdUpdate", "", kAnyType, "state:scatter_nd", RunScatterNd<UpdateKind::kSet>},
    {"ResourceScatterNdAdd", "T", kScatterNdTypes, "state:scatter_nd",
     RunScatterNd<UpdateKind::kAdd>},
    {"ResourceScatterNdSub", "T", kScatterNdTypes, "state:scatter_nd",
     RunScatterNd<UpdateKind::kSub>},
    {"ResourceScatterNdMin", "T", kRealTypes, "state:scatter_nd", RunScatterNd<UpdateKind::kMin>},
    {"ResourceScatterNdMax", "T", kRealTypes, "state:scatter_nd", RunScatterNd<UpdateKind::kMax>},
    {"ScatterNdUpdate", "", kAnyType, "state:scatter_nd", RunScatterNd<UpdateKind::kSet>},
    {"ScatterNdAdd", "T", kScatterNdTypes, "state:scatter_nd", RunScatterNd<UpdateKind::kAdd>},
    {"ScatterNdSub", "T", kScatterNdTypes, "state:scatter_nd", RunScatterNd<UpdateKind::kSub>},
    {"ScatterNdMin", "T", kRealTypes, "state:scatter_nd", RunScatterNd<UpdateKind::kMin>},
    {"ScatterNdMax", "T", kRealTypes, "state:scatter_nd", RunScatterNd<UpdateKind::kMax>},
};

}  // namespace

extern constinit const std::span<const Kernel> kScatterKernels = kScatterTable;

}  // namespace smelt
