// TensorList ops that turn lists into tensors and tensors into lists.
#include <algorithm>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/rows.h"
#include "smelt/kernels/control/tensor_list.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

struct BulkState final : KernelState {
  Dtype element_dtype = Dtype::kInvalid;
  int64_t num_elements = -1;
  PartialShape element_shape;
};

StatusOr<std::unique_ptr<KernelState>> PrepareBulk(const Node& node) {
  auto state = std::make_unique<BulkState>();
  state->element_dtype = node.Type("element_dtype");
  state->num_elements = node.Int("num_elements", -1);
  if (const Attr* a = node.Find("element_shape"); a != nullptr && a->get<PartialShape>()) {
    state->element_shape = *a->get<PartialShape>();
  }
  return state;
}

// Items of a fresh list share the tensor's bytes.
Tensor RowItem(const Tensor& tensor, int64_t row, const Shape& shape) {
  return tensor.Rows(row, row + 1).WithShape(shape);
}

Status CheckHasRows(const Tensor& tensor) {
  if (tensor.rank() >= 1) return OkStatus();
  return InvalidArgument("Tensor must be at least a vector, but saw shape: ",
                         tensor.shape().ToString());
}

Status CheckRowShape(const PartialShape& element_shape, const Tensor& tensor) {
  const Shape row = RowShape(tensor.shape());
  if (element_shape.Matches(row)) return OkStatus();
  return InvalidArgument("Specified a list with shape ", element_shape.ToString(),
                         " from a tensor with shape ", row.ToString());
}

Status CheckShapeRank(absl::string_view op, const Tensor& element_shape) {
  if (element_shape.rank() <= 1) return OkStatus();
  return InvalidArgument(op, ": element_shape must be at most rank 1 but has the shape of ",
                         element_shape.shape().ToString());
}

Status RunFromTensor(OpContext& ctx) {
  const Tensor& tensor = ctx.input(0);
  auto list = std::make_shared<TensorList>();
  RETURN_IF_ERROR(CheckShapeRank("TensorListFromTensor", ctx.input(1)));
  RETURN_IF_ERROR(CheckHasRows(tensor));
  ASSIGN_OR_RETURN(list->element_shape, ShapeFromInput(ctx.input(1)));
  RETURN_IF_ERROR(CheckRowShape(list->element_shape, tensor));
  RETURN_IF_ERROR(CheckListSize(tensor.dim(0)));
  list->element_dtype = tensor.dtype();
  const Shape row = RowShape(tensor.shape());
  list->items.reserve(static_cast<size_t>(tensor.dim(0)));
  for (int64_t i = 0; i < tensor.dim(0); ++i) list->items.push_back(RowItem(tensor, i, row));
  ctx.set_output(0, ListTensor(std::move(list)));
  return OkStatus();
}

Status RunStack(OpContext& ctx) {
  const BulkState& state = ctx.state<BulkState>();
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
  RETURN_IF_ERROR(CheckElementType(*list, state.element_dtype));
  const auto n = static_cast<int64_t>(list->items.size());
  if (state.num_elements != -1 && n != state.num_elements) {
    return InvalidArgument("Operation expected a list with ", state.num_elements,
                           " elements but got a list with ", n, " elements.");
  }
  ASSIGN_OR_RETURN(PartialShape wanted, ShapeFromInput(ctx.input(1)));
  ASSIGN_OR_RETURN(PartialShape shape, MergeElementShapes(wanted, list->element_shape));
  if (n == 0 && !shape.fully_known()) {
    return InvalidArgument(
        "Tried to stack elements of an empty list with non-fully-defined element_shape: ",
        shape.ToString());
  }
  for (const Tensor& item : list->items) {
    if (!item.valid() || (shape.fully_known() && shape.Matches(item.shape()))) continue;
    ASSIGN_OR_RETURN(shape, MergeElementShapes(shape, item.shape()));
  }
  if (!shape.fully_known()) {
    return InvalidArgument(
        "Tried to stack list which only contains uninitialized tensors and has a "
        "non-fully-defined element_shape: ",
        shape.ToString());
  }
  ASSIGN_OR_RETURN(Tensor out,
                   StackItems(ctx, list->items, nullptr, n, state.element_dtype, shape.ToShape()));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status RunGather(OpContext& ctx) {
  const BulkState& state = ctx.state<BulkState>();
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
  RETURN_IF_ERROR(CheckElementType(*list, state.element_dtype));
  const Tensor& indices = ctx.input(1);
  ASSIGN_OR_RETURN(PartialShape wanted, ShapeFromInput(ctx.input(2)));
  ASSIGN_OR_RETURN(PartialShape shape, MergeElementShapes(wanted, list->element_shape));
  const int64_t n = indices.num_elements();
  if (n == 0 && !shape.fully_known()) {
    return InvalidArgument("Tried to gather 0-elements from a list with non-fully-defined shape: ",
                           shape.ToString());
  }
  const auto size = static_cast<int64_t>(list->items.size());
  for (int32_t i : indices.flat<int32_t>()) {
    if ((i < 0 || i >= size) && !list->element_shape.fully_known()) {
      return InvalidArgument("Trying to gather element ", i, " in a list with ", size,
                             " elements.");
    }
    if (i < 0 || i >= size) {
      return InvalidArgument("Index ", i, " out o range; list only has ", size, " elements.");
    }
    const Tensor& item = list->items[static_cast<size_t>(i)];
    if (!item.valid() || (shape.fully_known() && shape.Matches(item.shape()))) continue;
    ASSIGN_OR_RETURN(shape, MergeElementShapes(shape, item.shape()));
  }
  if (!shape.fully_known()) {
    return InvalidArgument(
        "Tried to gather uninitialized tensors from a list with non-fully-defined "
        "element_shape: ",
        shape.ToString());
  }
  ASSIGN_OR_RETURN(Tensor out, StackItems(ctx, list->items, indices.data<int32_t>(), n,
                                          state.element_dtype, shape.ToShape()));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Sets items[indices[i]] = tensor[i]. REQUIRES: the list has those items.
void ScatterRows(const Tensor& tensor, const Tensor& indices, TensorList* list) {
  const Shape row = RowShape(tensor.shape());
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const auto at = static_cast<size_t>(indices.data<int32_t>()[i]);
    list->items[at] = RowItem(tensor, i, row);
  }
}

// The least size of a list that has all these indices.
StatusOr<int64_t> ScatterSize(const Tensor& tensor, const Tensor& indices) {
  if (indices.num_elements() != tensor.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ",
                           indices.num_elements(), " Actual: ", tensor.dim(0));
  }
  int64_t size = 0;
  for (int32_t i : indices.flat<int32_t>()) {
    if (i < 0) {
      return InvalidArgument("Indices in TensorListScatter must all be non-negative.");
    }
    size = std::max<int64_t>(size, int64_t{i} + 1);
  }
  RETURN_IF_ERROR(CheckListSize(size));
  return size;
}

// TensorListScatter(V2): tensor, indices, element_shape[, num_elements].
Status RunScatter(OpContext& ctx) {
  const Tensor& tensor = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  auto list = std::make_shared<TensorList>();
  RETURN_IF_ERROR(CheckShapeRank("TensorListScatter", ctx.input(2)));
  ASSIGN_OR_RETURN(list->element_shape, ShapeFromInput(ctx.input(2)));
  list->element_dtype = tensor.dtype();
  RETURN_IF_ERROR(CheckHasRows(tensor));
  RETURN_IF_ERROR(CheckRowShape(list->element_shape, tensor));
  int64_t num_elements = -1;
  if (ctx.num_inputs() > 3) {
    if (ctx.input(3).num_elements() != 1) {
      return InvalidArgument("num_elements must be a scalar");
    }
    num_elements = IndexAt(ctx.input(3), 0);
    if (num_elements < -1) {
      return InvalidArgument("TensorListScatter expects num_elements >= -1, found: ", num_elements);
    }
  }
  ASSIGN_OR_RETURN(int64_t size, ScatterSize(tensor, indices));
  if (num_elements != -1) {
    for (int32_t i : indices.flat<int32_t>()) {
      if (i >= num_elements) {
        return InvalidArgument("TensorListScatter: Trying to scatter at index ", i,
                               " in list with size ", num_elements);
      }
    }
    size = num_elements;
    RETURN_IF_ERROR(CheckListSize(size));
  }
  list->items.resize(static_cast<size_t>(size));
  ScatterRows(tensor, indices, list.get());
  ctx.set_output(0, ListTensor(std::move(list)));
  return OkStatus();
}

Status RunScatterInto(OpContext& ctx) {
  const Tensor tensor = ctx.input(1);
  const Tensor indices = ctx.input(2);
  int64_t size = 0;
  {
    ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
    if (list->element_dtype != tensor.dtype()) {
      return InvalidArgument("Invalid data types; input tensor type: ", DtypeName(tensor.dtype()),
                             " list element_type: ", DtypeName(list->element_dtype));
    }
    RETURN_IF_ERROR(CheckHasRows(tensor));
    if (indices.num_elements() != tensor.dim(0)) {
      return InvalidArgument("Expected len(indices) == tensor.shape[0], but saw: ",
                             indices.num_elements(), " vs. ", tensor.dim(0));
    }
    ASSIGN_OR_RETURN(size, ScatterSize(tensor, indices));
    RETURN_IF_ERROR(CheckRowShape(list->element_shape, tensor));
  }
  ASSIGN_OR_RETURN(TensorList * list, MutableList(ctx, 0));
  if (static_cast<size_t>(size) > list->items.size()) {
    list->items.resize(static_cast<size_t>(size));
  }
  ScatterRows(tensor, indices, list);
  return OkStatus();
}

PartialShape ExceptFirst(const PartialShape& shape) {
  return shape.known_rank() ? PartialShape::Of(shape.dims().subspan(1)) : shape;
}

// Merges the items' shapes but for the first size into `rest`. Returns the items' first size: the
// one given, if that is not -1, else the one that all of them have, else -1.
StatusOr<int64_t> MergeRows(const TensorList& list, int64_t first, PartialShape* rest) {
  int64_t common = first;
  bool differ = false;
  for (size_t i = 0; i < list.items.size(); ++i) {
    const Tensor& item = list.items[i];
    if (!item.valid()) continue;
    if (item.rank() == 0) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.");
    }
    ASSIGN_OR_RETURN(*rest, MergeElementShapes(*rest, RowShape(item.shape())));
    if (first >= 0 && first != item.dim(0)) {
      return InvalidArgument(
          "First entry of element_shape input does not match the first dim of list element at "
          "index: ",
          i, " Expected: ", first, " Actual: ", item.dim(0));
    }
    differ |= common >= 0 && common != item.dim(0);
    common = item.dim(0);
  }
  return differ ? -1 : common;
}

// TensorListConcat (element_shape an attribute) and V2 (element_shape, leading_dims inputs).
Status RunConcatItems(OpContext& ctx) {
  const BulkState& state = ctx.state<BulkState>();
  const bool first_version = ctx.num_inputs() == 1;
  PartialShape element = state.element_shape;
  if (first_version && element.rank() == 0) {
    return InvalidArgument("element_shape must not be empty");
  }
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
  RETURN_IF_ERROR(CheckElementType(*list, state.element_dtype));
  std::span<const int64_t> leading_dims;
  if (!first_version) {
    ASSIGN_OR_RETURN(element, ShapeFromInput(ctx.input(1)));
    ASSIGN_OR_RETURN(element, MergeElementShapes(element, list->element_shape));
    leading_dims = ctx.input(2).flat<int64_t>();
  }
  if (element.rank() == 0) {
    return InvalidArgument(
        "Concat requires elements to be at least vectors, found scalars instead.");
  }
  int64_t first = !first_version && element.known_rank() ? element[0] : -1;
  PartialShape rest = ExceptFirst(element);
  const auto n = static_cast<int64_t>(list->items.size());
  if (n == 0 && !rest.fully_known()) {
    return InvalidArgument(
        "All except the first dimension must be fully defined when concating an empty tensor "
        "list. element_shape: ",
        rest.ToString());
  }
  // A list that says its items' whole shape is taken at its word.
  if (!list->element_shape.fully_known()) {
    ASSIGN_OR_RETURN(first, MergeRows(*list, first, &rest));
  }
  if (!rest.fully_known()) {
    return InvalidArgument(
        "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim "
        "is not fully defined: ",
        rest.ToString());
  }
  ASSIGN_OR_RETURN(const Shape rest_shape, Shape::Make(rest.dims()));
  ASSIGN_OR_RETURN(Tensor * lengths, ctx.Allocate(1, Shape({n})));
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& item = list->items[static_cast<size_t>(i)];
    int64_t length = 0;
    if (item.valid()) {
      if (item.rank() == 0 || !(RowShape(item.shape()) == rest_shape)) {
        return InvalidArgument("Item ", i, " of shape ", item.shape().ToString(),
                               " is none of rows of shape ", rest_shape.ToString());
      }
      length = item.dim(0);
    } else if (static_cast<size_t>(i) < leading_dims.size()) {
      length = leading_dims[static_cast<size_t>(i)];
      if (length < 0) return InvalidArgument("leading_dims[", i, "] is negative: ", length);
    } else if (first >= 0) {
      length = first;
    } else if (first_version) {
      return InvalidArgument(
          "Concating lists with uninitialized tensors is not supported in this version of "
          "TensorListConcat. Consider updating your GraphDef to run the newer version.");
    } else {
      return InvalidArgument("List contains uninitialized tensor at index ", i,
                             " but leading_dims has only ", leading_dims.size(), " elements.");
    }
    lengths->data<int64_t>()[i] = length;
    if (__builtin_add_overflow(total, length, &total)) {
      return InvalidArgument("The concatenated list is too long");
    }
  }
  Dims dims{total};
  for (int64_t d : rest_shape.dims()) dims.push_back(d);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const int64_t row = rest_shape.num_elements();
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& item = list->items[static_cast<size_t>(i)];
    const int64_t count = ctx.output(1).data<int64_t>()[i] * row;
    void* to = At(out->dtype(), out->raw(), offset);
    if (item.valid()) {
      CopyRun(out->dtype(), to, item.raw(), count);
    } else {
      ClearRun(out->dtype(), to, count);
    }
    offset += count;
  }
  return OkStatus();
}

Status RunSplitList(OpContext& ctx) {
  const Tensor& tensor = ctx.input(0);
  const Tensor& lengths = ctx.input(2);
  auto list = std::make_shared<TensorList>();
  list->element_dtype = tensor.dtype();
  ASSIGN_OR_RETURN(list->element_shape, ShapeFromInput(ctx.input(1)));
  RETURN_IF_ERROR(CheckHasRows(tensor));
  if (list->element_shape.rank() == 0) {
    return InvalidArgument(
        "TensorListSplit requires element_shape to be at least of rank 1, but saw: ",
        list->element_shape.ToString());
  }
  if (!ExceptFirst(list->element_shape).Matches(RowShape(tensor.shape()))) {
    return InvalidArgument("tensor shape ", tensor.shape().ToString(),
                           " is not compatible with element_shape ",
                           list->element_shape.ToString());
  }
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape().ToString());
  }
  int64_t begin = 0;
  for (int64_t length : lengths.flat<int64_t>()) {
    if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
    if (length > tensor.dim(0) - begin) {
      return InvalidArgument(
          "Attempting to slice [", begin, ", ",
          static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(length)),
          "] from tensor with length ", tensor.dim(0));
    }
    list->items.push_back(tensor.Rows(begin, begin + length));
    begin += length;
  }
  if (begin != tensor.dim(0)) {
    return InvalidArgument("Unused values in tensor. Length of tensor: ", tensor.dim(0),
                           " Values used: ", begin);
  }
  ctx.set_output(0, ListTensor(std::move(list)));
  return OkStatus();
}

constexpr Kernel kTensorListBulkTable[] = {
    {"TensorListFromTensor", "", kAnyType, "list:from_tensor", RunFromTensor},
    {"TensorListStack", "", kAnyType, "list:stack", RunStack, PrepareBulk},
    {"TensorListGather", "", kAnyType, "list:gather", RunGather, PrepareBulk},
    {"TensorListScatter", "", kAnyType, "list:scatter", RunScatter},
    {"TensorListScatterIntoExistingList", "", kAnyType, "list:scatter_into", RunScatterInto},
    {"TensorListConcat", "", kAnyType, "list:concat", RunConcatItems, PrepareBulk},
    {"TensorListSplit", "", kAnyType, "list:split", RunSplitList},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorListBulkKernels = kTensorListBulkTable;

}  // namespace smelt
