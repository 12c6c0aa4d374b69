// SetSize: how many different values each set of a sparse tensor's last dimension holds.
#include "absl/container/flat_hash_set.h"
#include "smelt/kernels/sparse/sparse_tensor.h"

namespace smelt {
namespace {

StatusOr<std::unique_ptr<KernelState>> PrepareSetSize(const Node& node) {
  return ReadIntAttrs(node, {"validate_indices"});
}

Status CheckSetInputs(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  if (indices.rank() != 2) {
    return InvalidArgument("indices must be a matrix, but got: ", indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("values must be a vector, but got: ", values.shape().ToString());
  }
  if (shape.rank() != 1) return InvalidArgument("Shape must be a 1D tensor.");
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                           indices.dim(0), ", values = ", values.dim(0), ")");
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("Order length must be SparseTensor rank.");
  }
  if (shape.dim(0) < 2) return InvalidArgument("Invalid rank ", shape.dim(0), ".");
  return OkStatus();
}

Status CheckSetIndices(const SparseView& sets, bool order) {
  const int rank = sets.rank();
  for (int64_t i = 0; i < sets.count(); ++i) {
    for (int d = 0; d < rank; ++d) {
      if (sets.row(i)[d] >= 0 && sets.row(i)[d] < sets.shape[d]) continue;
      return InvalidArgument("indices[", i, "] = ", IndicesText(sets.row(i), rank),
                             " is out of bounds: need 0 <= index < ",
                             IndicesText(sets.shape.data(), rank));
    }
    if (!order || i == 0) continue;
    const int compared = CompareIndices(sets.row(i - 1), sets.row(i), rank);
    if (compared == 0) {
      return InvalidArgument("indices[", i, "] = ", IndicesText(sets.row(i), rank), " is repeated");
    }
    if (compared > 0) {
      return InvalidArgument("indices[", i, "] = ", IndicesText(sets.row(i), rank),
                             " is out of order. Many sparse ops require sorted indices.");
    }
  }
  return OkStatus();
}

// Entries of one set stand side by side.
template <typename T>
void CountSets(const SparseView& sets, const Shape& out_shape, int32_t* out) {
  const int prefix = sets.rank() - 1;
  const T* values = sets.values->data<T>();
  absl::flat_hash_set<T> seen;
  for (int64_t begin = 0; begin < sets.count();) {
    seen.clear();
    int64_t end = begin;
    while (end < sets.count() && CompareIndices(sets.row(begin), sets.row(end), prefix) == 0) {
      seen.insert(values[end++]);
    }
    int64_t at = 0;
    for (int d = 0; d < prefix; ++d) at = at * out_shape[d] + sets.row(begin)[d];
    out[at] = static_cast<int32_t>(seen.size());
    begin = end;
  }
}

Status RunSetSize(OpContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
  RETURN_IF_ERROR(CheckSetInputs(indices, values, shape));
  SparseView sets{&indices, &values, IntsOf(shape)};
  RETURN_IF_ERROR(CheckSetIndices(sets, ctx.state<IntAttrs>()[0] != 0));
  ASSIGN_OR_RETURN(const Shape out_shape,
                   CheckedShape(std::span<const int64_t>(sets.shape).first(sets.shape.size() - 1)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, out_shape));
  int32_t* counts = out->data<int32_t>();
  std::fill_n(counts, out->num_elements(), 0);
  switch (values.dtype()) {
#define SMELT_SET_TYPE(D, T)               \
  case Dtype::D:                           \
    CountSets<T>(sets, out_shape, counts); \
    break;
    SMELT_SET_TYPE(kInt8, int8_t)
    SMELT_SET_TYPE(kInt16, int16_t)
    SMELT_SET_TYPE(kInt32, int32_t)
    SMELT_SET_TYPE(kInt64, int64_t)
    SMELT_SET_TYPE(kUint8, uint8_t)
    SMELT_SET_TYPE(kUint16, uint16_t)
    SMELT_SET_TYPE(kString, std::string)
#undef SMELT_SET_TYPE
    default:
      return Unimplemented("SetSize of type ", DtypeName(values.dtype()));
  }
  return OkStatus();
}

constexpr DtypeSet kSetTypes =
    kSignedIntTypes | Types(Dtype::kUint8, Dtype::kUint16, Dtype::kString);

constexpr Kernel kSetSizeTable[] = {
    {"SetSize", "T", kSetTypes, "sparse:set_size", RunSetSize, PrepareSetSize},
};

}  // namespace

extern constinit const std::span<const Kernel> kSetSizeKernels = kSetSizeTable;

}  // namespace smelt
