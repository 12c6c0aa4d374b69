// The TensorList ops that make lists and handle single items; tensor_list_bulk.cc has those that
// turn lists into tensors and back.
#include "smelt/kernels/control/tensor_list.h"

#include <algorithm>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/common/summarize.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

StatusOr<const TensorList*> ListOf(const Tensor& handle) {
  if (handle.dtype() != Dtype::kVariant || handle.rank() != 0) {
    return InvalidArgument("Input list must be a scalar saw: ", handle.shape().ToString());
  }
  const VariantValue* value = handle.scalar<Variant>().value.get();
  if (value == nullptr || value->type_name() != TensorList::kTypeName) {
    return InvalidArgument("Input handle is not a list. Saw: '",
                           value == nullptr ? "<empty>" : value->type_name(), "'");
  }
  return static_cast<const TensorList*>(value);
}

StatusOr<TensorList*> MutableList(OpContext& ctx, int i) {
  Tensor handle = ctx.TakeInput(i);
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(handle));
  if (!handle.Writable() || handle.scalar<Variant>().value.use_count() != 1) {
    handle = ListTensor(std::make_shared<TensorList>(*list));
  }
  auto* mine = static_cast<TensorList*>(handle.data<Variant>()->value.get());
  ctx.set_output(0, std::move(handle));
  return mine;
}

Tensor ListTensor(std::shared_ptr<TensorList> list) {
  return Tensor::Scalar(Variant{std::move(list)});
}

Status CheckListSize(int64_t n) {
  constexpr int64_t kMaxItems = (int64_t{1} << 30) / static_cast<int64_t>(sizeof(Tensor));
  if (n > kMaxItems) {
    return ResourceExhausted("A list of ", n, " elements is too long (at most ", kMaxItems, ")");
  }
  return OkStatus();
}

StatusOr<PartialShape> ShapeFromInput(const Tensor& t) {
  if (t.rank() == 0) {
    if (IndexAt(t, 0) == -1) return PartialShape::Unknown();
    return InvalidArgument(
        "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  if (t.rank() != 1) {
    return InvalidArgument("Shape must be at most rank 1 but is rank ", t.rank());
  }
  if (t.num_elements() > kMaxRank) {
    return InvalidArgument("Shape has ", t.num_elements(), " dimensions, at most ", kMaxRank,
                           " are possible");
  }
  Dims dims;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t d = IndexAt(t, i);
    if (d < -1) return InvalidArgument("Dimension ", d, " must be >= -1");
    dims.push_back(d);
  }
  PartialShape shape = PartialShape::Of(dims);
  // An item's element count must fit 64 bits.
  if (shape.fully_known()) RETURN_IF_ERROR(Shape::Make(dims).status());
  return shape;
}

StatusOr<PartialShape> MergeElementShapes(const PartialShape& a, const PartialShape& b) {
  auto merged = PartialShape::Merge(a, b);
  if (merged.ok()) return merged;
  if (a.rank() != b.rank()) {
    return InvalidArgument("PartialTensorShape: Incompatible ranks during merge: ", a.rank(),
                           " vs. ", b.rank());
  }
  return InvalidArgument("PartialTensorShape: Incompatible shapes during merge: ", a.ToString(),
                         " vs. ", b.ToString());
}

Status CheckElementType(const TensorList& list, Dtype op_dtype) {
  if (list.element_dtype == op_dtype) return OkStatus();
  return InvalidArgument("Invalid data types; op elements ", DtypeName(op_dtype),
                         " but list elements ", DtypeName(list.element_dtype));
}

StatusOr<Tensor> ZeroItem(OpContext& ctx, Dtype dtype, const Shape& shape) {
  return Tensor::Zeros(dtype, shape, ctx.step().allocator);
}

StatusOr<Tensor> StackItems(OpContext& ctx, const std::vector<Tensor>& items,
                            const int32_t* indices, int64_t n, Dtype dtype,
                            const Shape& element_shape) {
  Dims dims{n};
  for (int64_t d : element_shape.dims()) dims.push_back(d);
  ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(dtype, shape, ctx.step().allocator));
  const int64_t each = element_shape.num_elements();
  if (each == 0) return out;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& item = items[indices == nullptr ? i : indices[i]];
    void* to = At(dtype, out.raw(), i * each);
    if (item.valid()) {
      CopyRun(dtype, to, item.raw(), each);
    } else {
      ClearRun(dtype, to, each);
    }
  }
  return out;
}

namespace {

struct TensorListState final : KernelState {
  Dtype element_dtype = Dtype::kInvalid;
  bool resize = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareTensorList(const Node& node) {
  auto state = std::make_unique<TensorListState>();
  state->element_dtype = node.Type("element_dtype");
  state->resize = node.Bool("resize_if_index_out_of_bounds");
  return state;
}

Status RunEmptyList(OpContext& ctx) {
  const Tensor& max = ctx.input(1);
  if (max.rank() != 0) {
    return InvalidArgument("max_num_elements expected to be a scalar but got shape: ",
                           max.shape().ToString());
  }
  auto list = std::make_shared<TensorList>();
  ASSIGN_OR_RETURN(list->element_shape, ShapeFromInput(ctx.input(0)));
  list->element_dtype = ctx.state<TensorListState>().element_dtype;
  list->max_num_elements = IndexAt(max, 0);
  ctx.set_output(0, ListTensor(std::move(list)));
  return OkStatus();
}

Status RunReserve(OpContext& ctx) {
  auto list = std::make_shared<TensorList>();
  ASSIGN_OR_RETURN(list->element_shape, ShapeFromInput(ctx.input(0)));
  const Tensor& count = ctx.input(1);
  if (count.rank() != 0) {
    return InvalidArgument("The num_elements to reserve must be a tensor size 1, but got ",
                           count.shape().ToString());
  }
  const int64_t n = IndexAt(count, 0);
  if (n < 0) {
    return InvalidArgument("The num_elements to reserve must be a non negative number, but got ",
                           n);
  }
  RETURN_IF_ERROR(CheckListSize(n));
  list->element_dtype = ctx.state<TensorListState>().element_dtype;
  list->items.resize(static_cast<size_t>(n));
  ctx.set_output(0, ListTensor(std::move(list)));
  return OkStatus();
}

// What an item that was never set reads as: zeros, if its shape can be told from the list, the
// input, or, unless it is popped, the items that are set.
StatusOr<Tensor> UnsetItem(OpContext& ctx, const TensorList& list, const Tensor& shape_input,
                           bool pops) {
  ASSIGN_OR_RETURN(PartialShape wanted, ShapeFromInput(shape_input));
  ASSIGN_OR_RETURN(PartialShape shape, MergeElementShapes(wanted, list.element_shape));
  if (pops && !shape.fully_known()) {
    return InvalidArgument(
        "Trying to read an uninitialized tensor but element_shape is not fully defined.",
        shape.ToString());
  }
  if (!shape.fully_known()) {
    for (const Tensor& item : list.items) {
      if (!item.valid()) continue;
      ASSIGN_OR_RETURN(shape, MergeElementShapes(shape, item.shape()));
    }
  }
  if (!shape.fully_known()) {
    return InvalidArgument(
        "Trying to read an uninitialized tensor but element_shape is not fully defined: ",
        shape.ToString(), " and no list element is set.");
  }
  ASSIGN_OR_RETURN(Shape whole, Shape::Make(shape.dims()));
  return ZeroItem(ctx, list.element_dtype, whole);
}

// Input 1, the index of an item: a scalar, or any tensor of one element.
StatusOr<int64_t> ListIndex(const Tensor& t, bool scalar) {
  if (t.num_elements() != 1 || (scalar && t.rank() != 0)) {
    return InvalidArgument(
        "Expected argument 1 to be a scalar. ReceivedTensor<type: ", DtypeName(t.dtype()),
        " shape: ", t.shape().ToString(), " values: ", SummarizeFirst(t, 3), ">");
  }
  return IndexAt(t, 0);
}

Status RunGetItem(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
  RETURN_IF_ERROR(CheckElementType(*list, ctx.state<TensorListState>().element_dtype));
  ASSIGN_OR_RETURN(const int64_t index, ListIndex(ctx.input(1), /*scalar=*/false));
  const auto size = static_cast<int64_t>(list->items.size());
  if (index < 0 || index >= size) {
    return InvalidArgument("Trying to access element ", index, " in a list with ", size,
                           " elements.");
  }
  const Tensor& item = list->items[static_cast<size_t>(index)];
  if (item.valid()) {
    ctx.set_output(0, item);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor zeros, UnsetItem(ctx, *list, ctx.input(2), /*pops=*/false));
  ctx.set_output(0, std::move(zeros));
  return OkStatus();
}

Status RunSetItem(OpContext& ctx) {
  const TensorListState& state = ctx.state<TensorListState>();
  {
    ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
    ASSIGN_OR_RETURN(const int64_t index, ListIndex(ctx.input(1), /*scalar=*/true));
    RETURN_IF_ERROR(CheckElementType(*list, state.element_dtype));
    const auto size = static_cast<int64_t>(list->items.size());
    if (!list->element_shape.Matches(ctx.input(2).shape())) {
      return InvalidArgument("Tried to set a tensor with incompatible shape at a list index. ",
                             "Item element shape: ", ctx.input(2).shape().ToString(),
                             " list shape: ", list->element_shape.ToString());
    }
    if (index < 0 || (index >= size && !state.resize)) {
      return InvalidArgument("Trying to modify element ", index, " in a list with ", size,
                             " elements.");
    }
    RETURN_IF_ERROR(CheckListSize(index + 1));
  }
  const auto index = static_cast<size_t>(IndexAt(ctx.input(1), 0));
  ASSIGN_OR_RETURN(TensorList * list, MutableList(ctx, 0));
  if (index >= list->items.size()) list->items.resize(index + 1);
  list->items[index] = ctx.TakeInput(2);
  return OkStatus();
}

Status RunPushBack(OpContext& ctx) {
  {
    ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
    if (!list->element_shape.Matches(ctx.input(1).shape())) {
      return InvalidArgument("Tried to append a tensor with incompatible shape to a list. ",
                             "Op element shape: ", ctx.input(1).shape().ToString(),
                             " list shape: ", list->element_shape.ToString());
    }
    RETURN_IF_ERROR(CheckElementType(*list, ctx.state<TensorListState>().element_dtype));
    const auto size = static_cast<int64_t>(list->items.size());
    if (list->max_num_elements != -1 && size >= list->max_num_elements) {
      return InvalidArgument("Tried to push item into a full list list size: ", size,
                             " max_num_elements: ", list->max_num_elements);
    }
    RETURN_IF_ERROR(CheckListSize(size + 1));
  }
  ASSIGN_OR_RETURN(TensorList * list, MutableList(ctx, 0));
  list->items.push_back(ctx.TakeInput(1));
  return OkStatus();
}

Status RunPopBack(OpContext& ctx) {
  Tensor zeros;
  {
    ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
    RETURN_IF_ERROR(CheckElementType(*list, ctx.state<TensorListState>().element_dtype));
    if (list->items.empty()) return InvalidArgument("Trying to pop from an empty list.");
    if (!list->items.back().valid()) {
      ASSIGN_OR_RETURN(zeros, UnsetItem(ctx, *list, ctx.input(1), /*pops=*/true));
    }
  }
  ASSIGN_OR_RETURN(TensorList * list, MutableList(ctx, 0));
  ctx.set_output(1, zeros.valid() ? std::move(zeros) : std::move(list->items.back()));
  list->items.pop_back();
  return OkStatus();
}

Status RunListLength(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(list->items.size());
  return OkStatus();
}

Status RunListElementShape(OpContext& ctx) {
  ASSIGN_OR_RETURN(const TensorList* list, ListOf(ctx.input(0)));
  const PartialShape& shape = list->element_shape;
  ASSIGN_OR_RETURN(Tensor * out,
                   ctx.Allocate(0, shape.known_rank() ? Shape({shape.rank()}) : Shape()));
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    const int64_t d = shape.known_rank() ? shape[static_cast<int>(i)] : -1;
    if (out->dtype() == Dtype::kInt32) {
      out->data<int32_t>()[i] = static_cast<int32_t>(d);
    } else {
      out->data<int64_t>()[i] = d;
    }
  }
  return OkStatus();
}

Status RunListResize(OpContext& ctx) {
  if (ctx.input(1).rank() != 0) return InvalidArgument("size must be a scalar");
  const int64_t size = IndexAt(ctx.input(1), 0);
  if (size < 0) {
    return InvalidArgument("TensorListSlice expects size to be non-negative. Got: ", size);
  }
  RETURN_IF_ERROR(CheckListSize(size));
  ASSIGN_OR_RETURN(TensorList * list, MutableList(ctx, 0));
  list->items.resize(static_cast<size_t>(size));
  return OkStatus();
}

// Both inputs hold lists in tensors of one shape; each list of a gets the items of its b appended.
Status RunConcatLists(OpContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  const Dtype dtype = ctx.state<TensorListState>().element_dtype;
  if (!(a.shape() == b.shape())) {
    return InvalidArgument("input_a and input_b TensorList shapes are not the same: ",
                           a.shape().ToString(), " vs. ", b.shape().ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const TensorList* lists[2];
    for (int side = 0; side < 2; ++side) {
      const VariantValue* value = (side ? b : a).data<Variant>()[i].value.get();
      const char name = side ? 'b' : 'a';
      if (value == nullptr || value->type_name() != TensorList::kTypeName) {
        return InvalidArgument("input_", std::string(1, name), " is not a TensorList at index ", i);
      }
      lists[side] = static_cast<const TensorList*>(value);
      if (lists[side]->element_dtype != dtype) {
        return InvalidArgument("input_", std::string(1, name), "[", i,
                               "].dtype != element_dtype.  Saw: ",
                               DtypeName(lists[side]->element_dtype), " vs. ", DtypeName(dtype));
      }
    }
    if (!(lists[0]->element_shape == lists[1]->element_shape)) {
      return InvalidArgument(
          "input_a and input_b TensorList element shapes are not identical at index ", i, ".  Saw ",
          lists[0]->element_shape.ToString(), " vs. ", lists[1]->element_shape.ToString());
    }
    RETURN_IF_ERROR(
        CheckListSize(static_cast<int64_t>(lists[0]->items.size() + lists[1]->items.size())));
    auto joined = std::make_shared<TensorList>(*lists[0]);
    joined->items.insert(joined->items.end(), lists[1]->items.begin(), lists[1]->items.end());
    out->data<Variant>()[i].value = std::move(joined);
  }
  return OkStatus();
}

// A tensor of lists, each of which gets the tensor's row.
Status RunPushBackBatch(OpContext& ctx) {
  const Tensor& handles = ctx.input(0);
  const Tensor& tensor = ctx.input(1);
  const Dtype dtype = ctx.state<TensorListState>().element_dtype;
  const int batch_rank = handles.rank();
  if (tensor.rank() < batch_rank ||
      tensor.shape().Product(0, batch_rank) != handles.num_elements() ||
      !std::ranges::equal(tensor.shape().dims().first(batch_rank), handles.shape().dims())) {
    return InvalidArgument("input_handles shape: ", handles.shape().ToString(),
                           " is not a prefix of tensor shape: ", tensor.shape().ToString());
  }
  Shape row(tensor.shape().dims().subspan(batch_rank));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, handles.shape()));
  const int64_t n = handles.num_elements();
  Dims flat{n};
  for (int64_t d : row.dims()) flat.push_back(d);
  const Tensor rows = tensor.WithShape(Shape(flat));
  for (int64_t i = 0; i < n; ++i) {
    const VariantValue* value = handles.data<Variant>()[i].value.get();
    if (value == nullptr || value->type_name() != TensorList::kTypeName) {
      return InvalidArgument("Input handle at index ", i, " is not a list.");
    }
    auto list = std::make_shared<TensorList>(*static_cast<const TensorList*>(value));
    if (list->element_dtype != dtype) {
      return InvalidArgument("Invalid data type at index ", i, "; op elements ", DtypeName(dtype),
                             " but list elements ", DtypeName(list->element_dtype));
    }
    if (!list->element_shape.Matches(row)) {
      return InvalidArgument("Tried to append a tensor with incompatible shape to a list at index ",
                             i, ". Op element shape: ", row.ToString(),
                             " list shape: ", list->element_shape.ToString());
    }
    const auto size = static_cast<int64_t>(list->items.size());
    if (list->max_num_elements != -1 && size >= list->max_num_elements) {
      return InvalidArgument("Tried to push item into a full list list size: ", size,
                             " max_num_elements: ", list->max_num_elements);
    }
    list->items.push_back(rows.Rows(i, i + 1).WithShape(row));
    out->data<Variant>()[i].value = std::move(list);
  }
  return OkStatus();
}

constexpr Kernel kTensorListTable[] = {
    {"EmptyTensorList", "", kAnyType, "list:empty", RunEmptyList, PrepareTensorList},
    {"TensorListReserve", "", kAnyType, "list:reserve", RunReserve, PrepareTensorList},
    {"TensorListGetItem", "", kAnyType, "list:get_item", RunGetItem, PrepareTensorList},
    {"TensorListSetItem", "", kAnyType, "list:set_item", RunSetItem, PrepareTensorList},
    {"TensorListPushBack", "", kAnyType, "list:push_back", RunPushBack, PrepareTensorList},
    {"TensorListPushBackBatch", "", kAnyType, "list:push_back_batch", RunPushBackBatch,
     PrepareTensorList},
    {"TensorListPopBack", "", kAnyType, "list:pop_back", RunPopBack, PrepareTensorList},
    {"TensorListLength", "", kAnyType, "list:length", RunListLength},
    {"TensorListElementShape", "", kAnyType, "list:element_shape", RunListElementShape},
    {"TensorListResize", "", kAnyType, "list:resize", RunListResize},
    {"TensorListConcatLists", "", kAnyType, "list:concat_lists", RunConcatLists, PrepareTensorList},
};

}  // namespace

extern constinit const std::span<const Kernel> kTensorListKernels = kTensorListTable;

}  // namespace smelt
