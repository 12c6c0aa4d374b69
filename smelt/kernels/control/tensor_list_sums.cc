// AddN and ZerosLike of lists and of optionals, as gradients of loops and branches need them: item
// by item, of what is nested too.
#include "smelt/kernels/common/numbers.h"
#include "smelt/kernels/common/optional.h"
#include "smelt/kernels/control/tensor_list.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

// Bounds the recursion into lists of lists.
constexpr int kDeepestList = 16;

StatusOr<Tensor> ZerosOfVariant(OpContext& ctx, const Tensor& handle, int depth);

StatusOr<Tensor> ZerosOfItem(OpContext& ctx, const Tensor& item, int depth) {
  if (item.dtype() != Dtype::kVariant) return ZeroItem(ctx, item.dtype(), item.shape());
  return ZerosOfVariant(ctx, item, depth);
}

// A list of as many items, each of zeros. Items not set stay so, which reads as zeros.
StatusOr<Tensor> ZerosOfVariant(OpContext& ctx, const Tensor& handle, int depth) {
  if (depth > kDeepestList) return InvalidArgument("ZerosLike of lists nested too deeply");
  if (handle.rank() != 0) {
    return InvalidArgument("ZerosLike non-scalar Tensor with dtype=DT_VARIANT is not supported.");
  }
  if (const Optional* optional = OptionalIn(handle)) {
    auto zeros = std::make_shared<Optional>(*optional);
    for (Tensor& t : zeros->components) {
      ASSIGN_OR_RETURN(t, ZerosOfItem(ctx, t, depth + 1));
    }
    return Tensor::Scalar(Variant{std::move(zeros)});
  }
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(handle));
  auto zeros = std::make_shared<TensorList>(*list);
  for (Tensor& item : zeros->items) {
    if (!item.valid()) continue;
    ASSIGN_OR_RETURN(item, ZerosOfItem(ctx, item, depth + 1));
  }
  return ListTensor(std::move(zeros));
}

Status RunListZeros(OpContext& ctx) {
  ASSIGN_OR_RETURN(Tensor zeros, ZerosOfVariant(ctx, ctx.input(0), 0));
  ctx.set_output(0, std::move(zeros));
  return OkStatus();
}

StatusOr<Tensor> SumOfVariants(OpContext& ctx, const Tensor& a, const Tensor& b, int depth);

StatusOr<Tensor> SumOfItems(OpContext& ctx, const Tensor& a, const Tensor& b, int depth) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  if (a.dtype() != b.dtype()) {
    return InvalidArgument("Trying to add two tensors with incompatible element types. One is ",
                           DtypeName(a.dtype()), " and the other is ", DtypeName(b.dtype()));
  }
  if (!(a.shape() == b.shape())) {
    return InvalidArgument("Trying to add two tensors with incompatible element shapes. One is ",
                           a.shape().ToString(), " and the other is ", b.shape().ToString());
  }
  if (a.dtype() == Dtype::kVariant) return SumOfVariants(ctx, a, b, depth);
  ASSIGN_OR_RETURN(Tensor sum, Tensor::Make(a.dtype(), a.shape(), ctx.step().allocator));
  if (!VisitNumber(a.dtype(), [&]<typename T>() {
        const T *x = a.data<T>(), *y = b.data<T>();
        T* to = sum.data<T>();
        for (int64_t i = 0; i < sum.num_elements(); ++i) to[i] = AddValues(x[i], y[i]);
      })) {
    return InvalidArgument("Trying to add unsupported dtype ", DtypeName(a.dtype()));
  }
  return sum;
}

StatusOr<Tensor> SumOfOptionals(OpContext& ctx, const Optional& a, const Optional& b, int depth) {
  if (a.has_value != b.has_value) {
    return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
  }
  if (a.components.size() != b.components.size()) {
    return InvalidArgument(
        "Cannot add optionals because they have different numbers of components (",
        a.components.size(), " vs. ", b.components.size(), ").");
  }
  auto sum = std::make_shared<Optional>(a);
  for (size_t i = 0; i < a.components.size(); ++i) {
    ASSIGN_OR_RETURN(sum->components[i],
                     SumOfItems(ctx, a.components[i], b.components[i], depth + 1));
  }
  return Tensor::Scalar(Variant{std::move(sum)});
}

StatusOr<Tensor> SumOfVariants(OpContext& ctx, const Tensor& a, const Tensor& b, int depth) {
  if (depth > kDeepestList) return InvalidArgument("AddN of lists nested too deeply");
  if (a.rank() != 0 || b.rank() != 0) {
    return InvalidArgument("AddN of non-scalar variants within a list is not supported");
  }
  const Optional *left = OptionalIn(a), *right = OptionalIn(b);
  if (left != nullptr && right != nullptr) return SumOfOptionals(ctx, *left, *right, depth);
  ASSIGN_OR_RETURN(const TensorList* x, ListOf(a));
  ASSIGN_OR_RETURN(const TensorList* y, ListOf(b));
  if (x->element_dtype != y->element_dtype) {
    return InvalidArgument("Trying to add two lists of tensors of different dtypes. One is ",
                           DtypeName(x->element_dtype), " and the other is ",
                           DtypeName(y->element_dtype));
  }
  auto sum = std::make_shared<TensorList>();
  sum->element_dtype = x->element_dtype;
  auto merged = PartialShape::Merge(x->element_shape, y->element_shape);
  if (!merged.ok()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with incompatible element shapes. One is ",
        x->element_shape.ToString(), " and the other is ", y->element_shape.ToString());
  }
  sum->element_shape = *std::move(merged);
  if (x->items.size() != y->items.size()) {
    return InvalidArgument("Trying to add two lists of tensors with different lengths. One is ",
                           x->items.size(), " and the other is ", y->items.size());
  }
  sum->items.reserve(x->items.size());
  for (size_t i = 0; i < x->items.size(); ++i) {
    ASSIGN_OR_RETURN(Tensor item, SumOfItems(ctx, x->items[i], y->items[i], depth + 1));
    sum->items.push_back(std::move(item));
  }
  return ListTensor(std::move(sum));
}

// In pairs, then pairs of sums, as TensorFlow adds variants.
Status RunAddLists(OpContext& ctx) {
  std::vector<Tensor> sums;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.num_inputs() > 1 && ctx.input(i).rank() != 0) {
      return InvalidArgument(
          "AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported; inputs[", i,
          " has shape: ", ctx.input(i).shape().ToString(), ".");
    }
    sums.push_back(ctx.input(i));
  }
  if (sums.empty()) return InvalidArgument("AddN needs at least one input");
  for (size_t skip = 1; skip < sums.size(); skip *= 2) {
    for (size_t i = skip; i < sums.size(); i += 2 * skip) {
      ASSIGN_OR_RETURN(sums[i - skip], SumOfVariants(ctx, sums[i - skip], sums[i], 0));
    }
  }
  ctx.set_output(0, std::move(sums[0]));
  return OkStatus();
}

constexpr Kernel kTensorListSumsTable[] = {
    {"ZerosLike", "T", Types(Dtype::kVariant), "list:zeros_like", RunListZeros},
    {"AddN", "T", Types(Dtype::kVariant), "list:add_n", RunAddLists},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorListSumsKernels = kTensorListSumsTable;

}  // namespace smelt
