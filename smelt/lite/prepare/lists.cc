#include "smelt/lite/prepare/lists.h"

#include <algorithm>
#include <set>

#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"

namespace smelt {

constinit const OpSet kListOps = {"EmptyTensorList",
                                  "TensorListReserve",
                                  "TensorListFromTensor",
                                  "TensorListSetItem",
                                  "TensorListGetItem",
                                  "TensorListStack",
                                  "TensorListLength",
                                  "TensorListPushBack",
                                  "TensorListPopBack",
                                  "TensorListGather",
                                  "TensorListResize",
                                  "TensorListConcat",
                                  "TensorListConcatV2",
                                  "TensorListSplit",
                                  "TensorListScatter",
                                  "TensorListScatterV2",
                                  "TensorListScatterIntoExistingList",
                                  "TensorListConcatLists",
                                  "TensorListElementShape"};

namespace {

// Element types that what writes a slice in place takes.
constexpr DtypeSet kWrittenInPlace =
    Types(Dtype::kFloat, Dtype::kInt32, Dtype::kInt64, Dtype::kBool, Dtype::kInt8);

class ListLowering {
 public:
  ListLowering(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Endpoint Const(const Tensor& value) {
    return {graph_.AddConst(absl::StrCat(node_.name(), "/const"), value), 0};
  }
  Endpoint Ints(const std::vector<int32_t>& values) {
    return Const(Tensor::Vector(std::span<const int32_t>(values)));
  }
  Endpoint Int(int32_t value) { return Const(Tensor::Scalar(value)); }

  StatusOr<Endpoint> Add(OpName op, std::vector<Endpoint> inputs,
                         std::initializer_list<std::pair<absl::string_view, Attr>> attrs) {
    AttrMap map;
    for (const auto& [name, value] : attrs) map.Set(name, value);
    ASSIGN_OR_RETURN(Node * n, graph_.Add(node_.name(), op.text(), inputs, std::move(map)));
    for (Node* before : node_.control_inputs()) graph_.AddControlInput(n, before);
    return Endpoint{n, 0};
  }

  StatusOr<Endpoint> Concat(const std::vector<Endpoint>& parts, Dtype type) {
    std::vector<Endpoint> inputs = parts;
    inputs.push_back(Int(0));
    return Add("ConcatV2", inputs,
               {{"N", static_cast<int64_t>(parts.size())}, {"T", type}, {"Tidx", Dtype::kInt32}});
  }
  StatusOr<Endpoint> AsRow(Endpoint e, Dtype type) {
    return Add("ExpandDims", {e, Int(0)}, {{"T", type}, {"Tdim", Dtype::kInt32}});
  }
  StatusOr<Endpoint> ShapeOf(Endpoint e, Dtype type) {
    return Add("Shape", {e}, {{"T", type}, {"out_type", Dtype::kInt32}});
  }
  StatusOr<Endpoint> At(Endpoint from, Endpoint index, Dtype type) {
    return Add("GatherV2", {from, index, Int(0)},
               {{"Tparams", type}, {"Tindices", Dtype::kInt32}, {"Taxis", Dtype::kInt32}});
  }
  StatusOr<Endpoint> Length(const DenseList& list) {
    ASSIGN_OR_RETURN(const Endpoint shape, ShapeOf(list.value, list.type.dtype));
    return At(shape, Int(0), Dtype::kInt32);
  }

  // A list of `count` elements (a scalar; nothing: an empty one) of zeros.
  StatusOr<DenseList> Make(const PartialShape& stated, std::optional<Endpoint> count, Dtype type) {
    if (!stated.known_rank()) return Unimplemented("the rank of its elements is not known");
    DenseList out;
    out.type.dtype = type;
    out.type.rank = stated.rank();
    std::vector<int32_t> sizes;
    for (int i = 0; i < stated.rank(); ++i) {
      out.type.loose = out.type.loose || stated[i] < 0;
      sizes.push_back(stated[i] < 0 ? 1 : static_cast<int32_t>(stated[i]));
    }
    Endpoint first = Ints({0});
    if (count) {
      ASSIGN_OR_RETURN(first, AsRow(*count, Dtype::kInt32));
    }
    Endpoint shape = first;
    if (!sizes.empty()) {
      ASSIGN_OR_RETURN(shape, Concat({first, Ints(sizes)}, Dtype::kInt32));
    }
    ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(type, Shape()));
    ASSIGN_OR_RETURN(
        out.value, Add("Fill", {shape, Const(zero)}, {{"T", type}, {"index_type", Dtype::kInt32}}));
    return out;
  }

  // With the sizes of `item`.
  StatusOr<Endpoint> Widened(const DenseList& list, Endpoint item) {
    if (!list.type.loose) return list.value;
    ASSIGN_OR_RETURN(const Endpoint length, Length(list));
    ASSIGN_OR_RETURN(const Endpoint first, AsRow(length, Dtype::kInt32));
    ASSIGN_OR_RETURN(const Endpoint sizes, ShapeOf(item, list.type.dtype));
    ASSIGN_OR_RETURN(const Endpoint shape, Concat({first, sizes}, Dtype::kInt32));
    return Add("BroadcastTo", {list.value, shape},
               {{"T", list.type.dtype}, {"Tidx", Dtype::kInt32}});
  }

  // With zeros behind it, `count` (a scalar) elements or as many as there are.
  StatusOr<Endpoint> Lengthened(const DenseList& list, Endpoint value, Endpoint count) {
    const Dtype type = list.type.dtype;
    ASSIGN_OR_RETURN(const Endpoint shape, ShapeOf(value, type));
    ASSIGN_OR_RETURN(const Endpoint length, At(shape, Int(0), Dtype::kInt32));
    ASSIGN_OR_RETURN(Endpoint more, Add("Sub", {count, length}, {{"T", Dtype::kInt32}}));
    ASSIGN_OR_RETURN(more, Add("Maximum", {more, Int(0)}, {{"T", Dtype::kInt32}}));
    ASSIGN_OR_RETURN(Endpoint sizes, AsRow(more, Dtype::kInt32));
    if (list.type.rank > 0) {
      ASSIGN_OR_RETURN(const Endpoint of_element,
                       Add("Slice", {shape, Ints({1}), Ints({-1})},
                           {{"T", Dtype::kInt32}, {"Index", Dtype::kInt32}}));
      ASSIGN_OR_RETURN(sizes, Concat({sizes, of_element}, Dtype::kInt32));
    }
    ASSIGN_OR_RETURN(const Tensor zero, Tensor::Zeros(type, Shape()));
    ASSIGN_OR_RETURN(const Endpoint zeros, Add("Fill", {sizes, Const(zero)},
                                               {{"T", type}, {"index_type", Dtype::kInt32}}));
    return Concat({value, zeros}, type);
  }

  // Of a list without elements none of the row: runtimes look whether a row fits in before they
  // know that a loop takes no turn.
  StatusOr<Endpoint> FittingRow(Endpoint row, const DenseList& list, Endpoint wide) {
    const Dtype type = list.type.dtype;
    const std::vector<int32_t> zeros(static_cast<size_t>(list.type.rank) + 1);
    ASSIGN_OR_RETURN(const Endpoint sizes, ShapeOf(wide, type));
    return Add("StridedSlice",
               {row, Ints(zeros), sizes, Ints(std::vector<int32_t>(zeros.size(), 1))},
               {{"T", type}, {"Index", Dtype::kInt32}});
  }

  // `grows`: an index behind the end makes the list longer. `length`: of the list, where it is
  // known; -1.
  StatusOr<DenseList> Set(const DenseList& list, Endpoint index, Endpoint item, bool grows,
                          int64_t length) {
    const Dtype type = list.type.dtype;
    DenseList out = list;
    ASSIGN_OR_RETURN(Endpoint wide, Widened(list, item));
    if (grows) {
      ASSIGN_OR_RETURN(const Endpoint count, Add("AddV2", {index, Int(1)}, {{"T", Dtype::kInt32}}));
      ASSIGN_OR_RETURN(wide, Lengthened(list, wide, count));
    }
    ASSIGN_OR_RETURN(Endpoint row, AsRow(item, type));
    ASSIGN_OR_RETURN(const Endpoint at, AsRow(index, Dtype::kInt32));
    const std::vector<int32_t> zeros(static_cast<size_t>(list.type.rank));
    if (Has(kWrittenInPlace, type)) {
      Endpoint start = at;
      if (!zeros.empty()) {
        ASSIGN_OR_RETURN(start, Concat({at, Ints(zeros)}, Dtype::kInt32));
      }
      const bool there = grows || length > 0 || ConstantTensor(*BehindIdentities(index).node);
      if (!there) {
        ASSIGN_OR_RETURN(row, FittingRow(row, list, wide));
      }
      ASSIGN_OR_RETURN(out.value, Add("XlaDynamicUpdateSlice", {wide, row, start},
                                      {{"T", type}, {"Tindices", Dtype::kInt32}}));
      return out;
    }
    // What is before it, it, what is behind it.
    const auto slice = [&](Endpoint begin, Endpoint size) -> StatusOr<Endpoint> {
      const std::vector<int32_t> all(zeros.size(), -1);
      if (!zeros.empty()) {
        ASSIGN_OR_RETURN(begin, Concat({begin, Ints(zeros)}, Dtype::kInt32));
        ASSIGN_OR_RETURN(size, Concat({size, Ints(all)}, Dtype::kInt32));
      }
      return Add("Slice", {wide, begin, size}, {{"T", type}, {"Index", Dtype::kInt32}});
    };
    ASSIGN_OR_RETURN(const Endpoint before, slice(Ints({0}), at));
    ASSIGN_OR_RETURN(const Endpoint next, Add("AddV2", {at, Int(1)}, {{"T", Dtype::kInt32}}));
    ASSIGN_OR_RETURN(const Endpoint behind, slice(next, Ints({-1})));
    ASSIGN_OR_RETURN(out.value, Concat({before, row, behind}, type));
    return out;
  }

  // `length`: of the list, where it is known; -1.
  StatusOr<DenseList> Resize(const DenseList& list, Endpoint count, int64_t length) {
    const Dtype type = list.type.dtype;
    DenseList out = list;
    const std::optional<Tensor> known = ConstantTensor(*BehindIdentities(count).node);
    const bool shorter = known && length >= 0 && IndexAt(*known, 0) <= length;
    Endpoint wide = list.value;
    if (!shorter) {
      ASSIGN_OR_RETURN(wide, Lengthened(list, list.value, count));
    }
    ASSIGN_OR_RETURN(Endpoint size, AsRow(count, Dtype::kInt32));
    const auto rank = static_cast<size_t>(list.type.rank);
    if (rank > 0) {
      ASSIGN_OR_RETURN(size, Concat({size, Ints(std::vector<int32_t>(rank, -1))}, Dtype::kInt32));
    }
    ASSIGN_OR_RETURN(out.value, Add("Slice", {wide, Ints(std::vector<int32_t>(rank + 1)), size},
                                    {{"T", type}, {"Index", Dtype::kInt32}}));
    return out;
  }

  StatusOr<DenseList> PushBack(const DenseList& list, Endpoint item) {
    DenseList out = list;
    ASSIGN_OR_RETURN(const Endpoint wide, Widened(list, item));
    ASSIGN_OR_RETURN(const Endpoint row, AsRow(item, list.type.dtype));
    ASSIGN_OR_RETURN(out.value, Concat({wide, row}, list.type.dtype));
    return out;
  }

  // The sizes of the list's value from dimension `first` on.
  StatusOr<Endpoint> SizesFrom(const DenseList& list, int32_t first) {
    ASSIGN_OR_RETURN(const Endpoint shape, ShapeOf(list.value, list.type.dtype));
    return Add("Slice", {shape, Ints({first}), Ints({-1})},
               {{"T", Dtype::kInt32}, {"Index", Dtype::kInt32}});
  }
  StatusOr<Endpoint> Cast(Endpoint e, Dtype from, Dtype to) {
    if (from == to) return e;
    return Add("Cast", {e}, {{"SrcT", from}, {"DstT", to}});
  }
  StatusOr<Endpoint> Reshape(Endpoint e, Endpoint shape, Dtype type) {
    return Add("Reshape", {e, shape}, {{"T", type}, {"Tshape", Dtype::kInt32}});
  }

  // All elements, which are of one shape, one behind the other, and the length of each.
  StatusOr<LoweredListOp> Joined(const DenseList& list, const PartialShape& value) {
    if (list.type.rank < 1) return Unimplemented("its elements are not known to have a length");
    const Dtype type = list.type.dtype;
    LoweredListOp out;
    Endpoint shape;
    std::vector<int32_t> sizes = {-1};
    bool known = value.known_rank();
    for (int i = 2; i < value.rank(); ++i) {
      known = known && value[i] >= 0;
      sizes.push_back(static_cast<int32_t>(value[i]));
    }
    if (known) {
      shape = Ints(sizes);
    } else {
      ASSIGN_OR_RETURN(const Endpoint rest, SizesFrom(list, 2));
      ASSIGN_OR_RETURN(shape, Concat({Ints({-1}), rest}, Dtype::kInt32));
    }
    ASSIGN_OR_RETURN(out.tensor, Reshape(list.value, shape, type));
    if (node_.NumUses(1) == 0) return out;
    ASSIGN_OR_RETURN(const Endpoint whole, ShapeOf(list.value, type));
    ASSIGN_OR_RETURN(const Endpoint count, Add("Slice", {whole, Ints({0}), Ints({1})},
                                               {{"T", Dtype::kInt32}, {"Index", Dtype::kInt32}}));
    ASSIGN_OR_RETURN(const Endpoint one, At(whole, Int(1), Dtype::kInt32));
    ASSIGN_OR_RETURN(const Endpoint wide, Cast(one, Dtype::kInt32, Dtype::kInt64));
    ASSIGN_OR_RETURN(out.lengths, Add("Fill", {count, wide},
                                      {{"T", Dtype::kInt64}, {"index_type", Dtype::kInt32}}));
    return out;
  }

  // Parts of equal lengths, which are constants.
  StatusOr<DenseList> Split(const PartialShape& value, Dtype type) {
    const std::optional<Tensor> lengths = ConstantTensor(*BehindIdentities(node_.input(2)).node);
    if (!lengths || lengths->num_elements() < 1 || value.rank() < 1) {
      return Unimplemented("the lengths of its parts are no constants");
    }
    std::vector<int32_t> sizes = {static_cast<int32_t>(lengths->num_elements()),
                                  static_cast<int32_t>(IndexAt(*lengths, 0))};
    for (int64_t i = 0; i < lengths->num_elements(); ++i) {
      if (IndexAt(*lengths, i) != sizes[1]) return Unimplemented("its parts are of other lengths");
    }
    for (int i = 1; i < value.rank(); ++i) {
      if (value[i] < 0) return Unimplemented("the shape of its parts is not known");
      sizes.push_back(static_cast<int32_t>(value[i]));
    }
    DenseList out;
    out.type = {type, value.rank(), false};
    ASSIGN_OR_RETURN(out.value, Reshape(node_.input(0), Ints(sizes), type));
    return out;
  }

  // Places that are constants, and different: others would add what is written. As a column.
  struct Places {
    Endpoint column;
    int64_t last = -1;
  };
  StatusOr<Places> PlacesOf(Endpoint places) {
    const std::optional<Tensor> value = ConstantTensor(*BehindIdentities(places).node);
    if (!value) return Unimplemented("its places are no constants");
    std::set<int64_t> seen;
    for (int64_t i = 0; i < value->num_elements(); ++i) {
      if (!seen.insert(IndexAt(*value, i)).second) {
        return Unimplemented("two of its places are the same");
      }
    }
    Places out;
    out.column = Const(value->WithShape(Shape({value->num_elements(), 1})));
    if (!seen.empty()) out.last = *seen.rbegin();
    return out;
  }

  // Rows of a tensor at their places, zeros between.
  StatusOr<DenseList> Scatter(const PartialShape& value, Dtype type) {
    ASSIGN_OR_RETURN(const Places at, PlacesOf(node_.input(1)));
    std::vector<int32_t> sizes = {static_cast<int32_t>(at.last) + 1};
    if (node_.Is("TensorListScatterV2")) {
      const std::optional<Tensor> count = ConstantTensor(*BehindIdentities(node_.input(3)).node);
      if (!count) return Unimplemented("its length is no constant");
      sizes[0] = std::max(sizes[0], static_cast<int32_t>(IndexAt(*count, 0)));
    }
    for (int i = 1; i < value.rank(); ++i) {
      if (value[i] < 0) return Unimplemented("the shape of its elements is not known");
      sizes.push_back(static_cast<int32_t>(value[i]));
    }
    if (value.rank() < 1) return Unimplemented("the rank of its input is not known");
    DenseList out;
    out.type = {type, value.rank() - 1, false};
    ASSIGN_OR_RETURN(out.value, Add("ScatterNd", {at.column, node_.input(0), Ints(sizes)},
                                    {{"T", type}, {"Tindices", Dtype::kInt32}}));
    return out;
  }

  StatusOr<DenseList> ScatterInto(const DenseList& list) {
    ASSIGN_OR_RETURN(const Places at, PlacesOf(node_.input(2)));
    DenseList out = list;
    ASSIGN_OR_RETURN(out.value, Add("TensorScatterUpdate", {list.value, at.column, node_.input(1)},
                                    {{"T", list.type.dtype}, {"Tindices", Dtype::kInt32}}));
    return out;
  }

  StatusOr<LoweredListOp> PopBack(const DenseList& list) {
    const Dtype type = list.type.dtype;
    ASSIGN_OR_RETURN(const Endpoint length, Length(list));
    ASSIGN_OR_RETURN(const Endpoint last, Add("AddV2", {length, Int(-1)}, {{"T", Dtype::kInt32}}));
    LoweredListOp out;
    ASSIGN_OR_RETURN(out.tensor, At(list.value, last, type));
    ASSIGN_OR_RETURN(Endpoint size, AsRow(last, Dtype::kInt32));
    const auto rank = static_cast<size_t>(list.type.rank);
    if (rank > 0) {
      ASSIGN_OR_RETURN(size, Concat({size, Ints(std::vector<int32_t>(rank, -1))}, Dtype::kInt32));
    }
    out.list = list;
    ASSIGN_OR_RETURN(out.list->value,
                     Add("Slice", {list.value, Ints(std::vector<int32_t>(rank + 1)), size},
                         {{"T", type}, {"Index", Dtype::kInt32}}));
    return out;
  }

 private:
  Graph& graph_;
  const Node& node_;
};

// What the input says of the shape of elements, and what else is known of it.
PartialShape ElementShape(Endpoint stated, const PartialShape& element) {
  const std::optional<Tensor> value = ConstantTensor(*BehindIdentities(stated).node);
  PartialShape shape;
  if (value && value->shape().rank() == 1) {
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < value->num_elements(); ++i) dims.push_back(IndexAt(*value, i));
    shape = PartialShape::Of(dims);
  }
  if (!shape.known_rank() || !element.known_rank()) return shape.known_rank() ? shape : element;
  if (shape.rank() != element.rank()) return shape;
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    dims.push_back(std::max<int64_t>(shape[i] >= 0 ? shape[i] : element[i], -1));
  }
  return PartialShape::Of(dims);
}

}  // namespace

StatusOr<LoweredListOp> LowerListOp(Graph& graph, const Node& node, const DenseList* in,
                                    const ShapeTable& shapes, const PartialShape& element,
                                    const DenseList* second) {
  ListLowering l(graph, node);
  LoweredListOp out;
  const Dtype type = node.Type("element_dtype");
  const bool makes = node.Is({"EmptyTensorList", "TensorListReserve", "TensorListFromTensor",
                              "TensorListSplit", "TensorListScatter", "TensorListScatterV2"});
  if (type == Dtype::kVariant || type == Dtype::kResource) {
    return Unimplemented("its elements are no tensors of numbers");
  }
  if (!makes && in == nullptr) return Unimplemented("the list that it reads is not known");
  const auto length = [&]() -> int64_t {
    const PartialShape value = shapes.of(in->value);
    return value.rank() < 1 ? -1 : value[0];
  };
  if (node.Is("TensorListFromTensor")) {
    const int rank = shapes.of(node.input(0)).rank();
    if (rank < 1) return Unimplemented("the rank of its input is not known");
    out.list = DenseList{node.input(0), {type, rank - 1, false}};
  } else if (node.Is("TensorListReserve")) {
    ASSIGN_OR_RETURN(out.list, l.Make(ElementShape(node.input(0), element), node.input(1), type));
  } else if (node.Is("EmptyTensorList")) {
    ASSIGN_OR_RETURN(out.list, l.Make(ElementShape(node.input(0), element), std::nullopt, type));
  } else if (node.Is("TensorListSetItem")) {
    ASSIGN_OR_RETURN(out.list, l.Set(*in, node.input(1), node.input(2),
                                     node.Bool("resize_if_index_out_of_bounds"), length()));
  } else if (node.Is("TensorListResize")) {
    ASSIGN_OR_RETURN(out.list, l.Resize(*in, node.input(1), length()));
  } else if (node.Is({"TensorListConcat", "TensorListConcatV2"})) {
    return l.Joined(*in, shapes.of(in->value));
  } else if (node.Is("TensorListSplit")) {
    ASSIGN_OR_RETURN(out.list, l.Split(shapes.of(node.input(0)), type));
  } else if (node.Is({"TensorListScatter", "TensorListScatterV2"})) {
    ASSIGN_OR_RETURN(out.list, l.Scatter(shapes.of(node.input(0)), type));
  } else if (node.Is("TensorListScatterIntoExistingList")) {
    ASSIGN_OR_RETURN(out.list, l.ScatterInto(*in));
  } else if (node.Is("TensorListConcatLists")) {
    if (second == nullptr) return Unimplemented("the list that it reads is not known");
    if (in->type.loose || second->type.loose) {
      return Unimplemented("the sizes of its elements are not known");
    }
    out.list = *in;
    ASSIGN_OR_RETURN(out.list->value, l.Concat({in->value, second->value}, type));
  } else if (node.Is("TensorListElementShape")) {
    if (in->type.loose) return Unimplemented("the sizes of its elements are not known");
    ASSIGN_OR_RETURN(const Endpoint sizes, l.SizesFrom(*in, 1));
    ASSIGN_OR_RETURN(out.tensor, l.Cast(sizes, Dtype::kInt32, node.Type("shape_type")));
  } else if (node.Is("TensorListPushBack")) {
    ASSIGN_OR_RETURN(out.list, l.PushBack(*in, node.input(1)));
  } else if (node.Is("TensorListPopBack")) {
    return l.PopBack(*in);
  } else if (node.Is("TensorListStack")) {
    out.tensor = in->value;
  } else if (node.Is("TensorListLength")) {
    ASSIGN_OR_RETURN(out.tensor, l.Length(*in));
  } else {  // TensorListGetItem, TensorListGather
    ASSIGN_OR_RETURN(out.tensor, l.At(in->value, node.input(1), type));
  }
  return out;
}

}  // namespace smelt
