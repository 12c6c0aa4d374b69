// ScatterNd and the TensorScatter family: slices written to places that rows of indices name.
#include <cstring>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/common/scatter_nd_shapes.h"
#include "smelt/kernels/common/slice_name.h"

namespace smelt {
namespace {

enum class ScatterNdOp : uint8_t { kUpdate, kAdd, kSubtract, kMin, kMax };

struct ScatterNdState : KernelState {
  bool ignore_bad = false;
};

template <typename State>
StatusOr<std::unique_ptr<KernelState>> PrepareScatterNdAs(const Node& node) {
  auto state = std::make_unique<State>();
  const std::string policy = node.String("bad_indices_policy");
  if (policy == "IGNORE") {
    state->ignore_bad = true;
  } else if (!policy.empty() && policy != "DEFAULT" && policy != "ERROR") {
    return InvalidArgument("Unknown bad indices handling attribute: ", policy);
  }
  return state;
}
constexpr auto PrepareScatterNd = PrepareScatterNdAs<ScatterNdState>;

// Slices copied to where rows of indices say, into what input 0 holds.
class BoundTensorUpdate final : public BoundKernel {
 public:
  explicit BoundTensorUpdate(const BindContext& context, bool ignore_bad)
      : shape_(context.inputs[0].shape),
        indices_(context.inputs[1]),
        ignore_bad_(ignore_bad),
        depth_(indices_.shape.back()),
        rows_(indices_.shape.Product(0, indices_.shape.rank() - 1)) {
    const auto size = static_cast<int64_t>(Tensor::ElementSize(context.inputs[0].dtype));
    slice_ = shape_.Product(static_cast<int>(depth_), shape_.rank()) * size;
    bytes_ = static_cast<size_t>(shape_.num_elements() * size);
  }
  Status Run(const void* const* inputs, void* const* outputs, void*) const override {
    for (int64_t i = 0; !ignore_bad_ && i < rows_; ++i) {
      if (Place(inputs[1], i) < 0) return OutOfRange(inputs[1], i);
    }
    char* out = static_cast<char*>(outputs[0]);
    if (out != inputs[0]) std::memcpy(out, inputs[0], bytes_);
    const char* updates = static_cast<const char*>(inputs[2]);
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t place = Place(inputs[1], i);
      if (place < 0) continue;
      std::memcpy(out + place * slice_, updates + i * slice_, static_cast<size_t>(slice_));
    }
    return OkStatus();
  }
  bool may_overwrite(int i) const override { return i == 0; }

 private:
  // Which slice row i of the indices names; -1: none.
  int64_t Place(const void* indices, int64_t row) const {
    int64_t at = 0;
    for (int64_t k = 0; k < depth_; ++k) {
      const int64_t n = row * depth_ + k;
      const int64_t i = indices_.dtype == Dtype::kInt64 ? static_cast<const int64_t*>(indices)[n]
                                                        : static_cast<const int32_t*>(indices)[n];
      const int64_t dim = shape_[static_cast<int>(k)];
      if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(dim)) return -1;
      at = at * dim + i;
    }
    return at;
  }
  Status OutOfRange(const void* indices, int64_t row) const {
    ASSIGN_OR_RETURN(Tensor all, Tensor::Make(indices_.dtype, indices_.shape));
    std::memcpy(all.raw(), indices, all.bytes());
    return InvalidArgument(NdIndices(all, shape_).Describe(row), " does not index into shape ",
                           shape_.ToString());
  }

  const Shape shape_;
  const BoundTensor indices_;
  const bool ignore_bad_;
  const int64_t depth_, rows_;
  int64_t slice_ = 0;  // bytes
  size_t bytes_ = 0;
};

struct TensorUpdateState final : ScatterNdState {
  StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& context) override {
    const Shape& shape = context.inputs[0].shape;
    const BoundTensor& indices = context.inputs[1];
    const Shape& updates = context.inputs[2].shape;
    if (!IsPod(context.inputs[0].dtype)) return nullptr;
    if (indices.dtype != Dtype::kInt32 && indices.dtype != Dtype::kInt64) return nullptr;
    // The kernel says what is wrong with shapes, and which empty ones fit.
    if (indices.shape.rank() < 1 || updates.rank() < 1 || shape.num_elements() == 0 ||
        indices.shape.num_elements() == 0 || updates.num_elements() == 0 ||
        !CheckScatterNdShapes(shape, indices.shape, updates, ScatterNdWords::kTensor).ok()) {
      return nullptr;
    }
    return std::make_unique<BoundTensorUpdate>(context, ignore_bad);
  }
};

template <typename T, typename F>
void ScatterNdSlices(const NdIndices& nd, T* out, const T* updates, F combine) {
  const int64_t slice = nd.slice();
  for (int64_t i = 0; i < nd.rows(); ++i) {
    const int64_t place = nd.Place(i);
    if (place < 0) continue;
    T* to = out + place;
    const T* from = updates + i * slice;
    for (int64_t j = 0; j < slice; ++j) to[j] = combine(to[j], from[j]);
  }
}

bool ScatterNdCombine(const NdIndices& nd, Tensor& out, const Tensor& updates, ScatterNdOp op) {
  auto run = [&]<typename T>() {
    T* to = out.data<T>();
    const T* from = updates.data<T>();
    switch (op) {
      case ScatterNdOp::kAdd:
        return ScatterNdSlices(nd, to, from, [](T a, T b) { return AddValues(a, b); });
      case ScatterNdOp::kSubtract:
        return ScatterNdSlices(nd, to, from, [](T a, T b) { return SubtractValues(a, b); });
      case ScatterNdOp::kMin:
        if constexpr (!kIsComplex<T>) {
          ScatterNdSlices(nd, to, from, [](T a, T b) { return LessThan(b, a) ? b : a; });
        }
        return;
      case ScatterNdOp::kMax:
        if constexpr (!kIsComplex<T>) {
          ScatterNdSlices(nd, to, from, [](T a, T b) { return LessThan(a, b) ? b : a; });
        }
        return;
      case ScatterNdOp::kUpdate:
        return;
    }
  };
  if (out.dtype() == Dtype::kBool) {
    run.template operator()<bool>();
    return true;
  }
  if (out.dtype() == Dtype::kString && op == ScatterNdOp::kAdd) {
    ScatterNdSlices(nd, out.data<std::string>(), updates.data<std::string>(),
                    [](const std::string& a, const std::string& b) { return a + b; });
    return true;
  }
  return VisitNumber(out.dtype(), run);
}

// Applies the updates to `out`. INVALID_ARGUMENT, before anything is written, for an index outside,
// unless the op ignores those. REQUIRES: `out` is writable.
Status ScatterNdInto(OpContext& ctx, Tensor& out, const Tensor& indices, const Tensor& updates,
                     ScatterNdOp op) {
  const Shape& shape = out.shape();
  const NdIndices nd(indices, shape);
  if (!ctx.state<ScatterNdState>().ignore_bad) {
    for (int64_t i = 0; i < nd.rows(); ++i) {
      if (nd.Place(i) >= 0) continue;
      return InvalidArgument(nd.Describe(i), " does not index into shape ", shape.ToString());
    }
  }
  if (updates.num_elements() == 0 || out.num_elements() == 0) return OkStatus();
  if (op == ScatterNdOp::kUpdate) {
    for (int64_t i = 0; i < nd.rows(); ++i) {
      const int64_t place = nd.Place(i);
      if (place < 0) continue;
      CopyRun(out.dtype(), At(out.dtype(), out.raw(), place),
              At(out.dtype(), updates.raw(), i * nd.slice()), nd.slice());
    }
    return OkStatus();
  }
  if (!ScatterNdCombine(nd, out, updates, op)) {
    return Unimplemented(ctx.node().op(), " of type ", DtypeName(out.dtype()));
  }
  return OkStatus();
}

// Whether the op's check of empty tensors passes: either there is nothing to write (no indices and
// no updates), or none of the three is empty.
bool ScatterNdSizesAgree(const Shape& shape, const Tensor& indices, const Tensor& updates) {
  if (indices.num_elements() == 0 && updates.num_elements() == 0) return true;
  return shape.num_elements() != 0 && indices.num_elements() != 0 && updates.num_elements() != 0;
}

Status RunScatterNd(OpContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& updates = ctx.input(1);
  const Tensor& shape_tensor = ctx.input(2);
  if (indices.rank() < 1) {
    return InvalidArgument("Indices shape must have rank at least one. Found:",
                           indices.shape().ToString());
  }
  if (updates.rank() < 1) {
    return InvalidArgument("Updates shape must have rank at least one. Found:",
                           updates.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(IntsOf(shape_tensor)));
  if (shape.num_elements() == 0 && (indices.num_elements() > 0 || updates.num_elements() > 0)) {
    return InvalidArgument("Indices and updates specified for empty output.  indices shape: ",
                           indices.shape().ToString());
  }
  if (!ScatterNdSizesAgree(shape, indices, updates)) {
    return InvalidArgument("Indices and updates specified for empty output shape");
  }
  RETURN_IF_ERROR(
      CheckScatterNdShapes(shape, indices.shape(), updates.shape(), ScatterNdWords::kScatter));
  if (shape_tensor.rank() != 1) return InvalidArgument("Shape must be a vector");
  if (shape.rank() < 1) {
    return InvalidArgument("Output must be at least 1-D, got shape: ", shape.ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ClearRun(out->dtype(), out->raw(), out->num_elements());
  return ScatterNdInto(ctx, *out, indices, updates, ScatterNdOp::kAdd);
}

template <ScatterNdOp kOp, ScatterNdWords kWords = ScatterNdWords::kTensor>
Status RunTensorScatter(OpContext& ctx) {
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  const Shape shape = ctx.input(0).shape();
  if (kWords == ScatterNdWords::kNonAliasing && shape.rank() < 1) {
    return InvalidArgument("Output must be at least 1-D, got shape: ", shape.ToString());
  }
  if (indices.rank() < 1) {
    return InvalidArgument("Indices shape must have rank at least one. Found:",
                           indices.shape().ToString());
  }
  if (updates.rank() < 1) {
    return InvalidArgument("Updates shape must have rank at least one. Found:",
                           updates.shape().ToString());
  }
  if (!ScatterNdSizesAgree(shape, indices, updates)) {
    if (kWords == ScatterNdWords::kNonAliasing) {
      return InvalidArgument("Indices and updates specified for empty output.  indices shape: ",
                             indices.shape().ToString());
    }
    return InvalidArgument("Indices and updates specified for empty output shape");
  }
  RETURN_IF_ERROR(CheckScatterNdShapes(shape, indices.shape(), updates.shape(), kWords));
  const bool rows_of_one = kWords == ScatterNdWords::kNonAliasing && indices.rank() == 1;
  const Tensor rows = rows_of_one ? indices.WithShape(Shape({indices.dim(0), 1})) : indices;
  Tensor out = ctx.TakeInput(0);
  if (!out.Writable() || out.SharesBufferWith(updates) || out.SharesBufferWith(indices)) {
    ASSIGN_OR_RETURN(out, out.Clone(ctx.step().allocator));
  }
  RETURN_IF_ERROR(ScatterNdInto(ctx, out, rows, updates, kOp));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr DtypeSet kScatterNdSum = kNumberTypes | Bit(Dtype::kBool);

constexpr Kernel kScatterNdTable[] = {
    {"ScatterNd", "T", kScatterNdSum | Bit(Dtype::kString), "movement:scatter_nd", RunScatterNd,
     PrepareScatterNd},
    {"TensorScatterUpdate", "", kAnyType, "movement:tensor_scatter",
     RunTensorScatter<ScatterNdOp::kUpdate>, PrepareScatterNdAs<TensorUpdateState>},
    {"TensorScatterAdd", "T", kNumberTypes, "movement:tensor_scatter",
     RunTensorScatter<ScatterNdOp::kAdd>, PrepareScatterNd},
    {"TensorScatterSub", "T", kNumberTypes, "movement:tensor_scatter",
     RunTensorScatter<ScatterNdOp::kSubtract>, PrepareScatterNd},
    {"TensorScatterMin", "T", kRealTypes, "movement:tensor_scatter",
     RunTensorScatter<ScatterNdOp::kMin>, PrepareScatterNd},
    {"TensorScatterMax", "T", kRealTypes, "movement:tensor_scatter",
     RunTensorScatter<ScatterNdOp::kMax>, PrepareScatterNd},
    {"ScatterNdNonAliasingAdd", "T", kScatterNdSum, "movement:tensor_scatter",
     RunTensorScatter<ScatterNdOp::kAdd, ScatterNdWords::kNonAliasing>, PrepareScatterNd},
};

}  // namespace

extern constinit const std::span<const Kernel> kScatterNdKernels = kScatterNdTable;

}  // namespace smelt
