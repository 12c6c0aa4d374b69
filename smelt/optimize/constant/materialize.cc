// What the shapes of a graph tell of its values.
#include <algorithm>

#include "smelt/graph/shape/rules.h"
#include "smelt/optimize/constant/rules.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt::constant {
namespace {

Attr TensorAttr(Tensor t) { return Attr(TensorValue::Of(std::move(t))); }

// A number that `dtype` does not hold is left to the kernel, which says so.
std::optional<Tensor> IntegerScalar(Dtype dtype, int64_t value) {
  if (dtype == Dtype::kInt64) return Tensor::Scalar<int64_t>(value);
  if (value > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return Tensor::Scalar<int32_t>(static_cast<int32_t>(value));
}

bool Fits(Dtype dtype, const PartialShape& s) {
  return dtype == Dtype::kInt64 || std::ranges::all_of(s.dims(), [](int64_t d) {
           return d <= std::numeric_limits<int32_t>::max();
         });
}

// Shape(x), Size(x), Rank(x) -> Const
StatusOr<Rewritten> MaterializeShapes(Node& node, Rewriter& r) {
  const PartialShape shape = r.shape(node.input(0));
  const Dtype dtype = node.output_types[0];
  std::optional<Tensor> value;
  if (node.Is("Rank")) {
    if (!shape.known_rank()) return r.No("the rank of its input is not known");
    value = IntegerScalar(dtype, shape.rank());
  } else {
    if (!shape.fully_known()) return r.No("the shape of its input is not known");
    if (node.Is("Size")) {
      const int64_t count = NumElements(shape);
      if (count >= 0) value = IntegerScalar(dtype, count);
    } else {
      if (shape.rank() > 0 && shape[0] == 0) return r.No("its input has no elements");
      if (Fits(dtype, shape)) value = IntegerVector(dtype, shape.dims());
    }
  }
  if (!value) return r.No("a size does not fit its type");
  return BecomeConst(node, dtype, TensorAttr(*std::move(value)), r);
}

// Who reads output `port` reads a constant in its place.
StatusOr<bool> ReplaceOutput(Node& node, int port, absl::string_view suffix, const Tensor& value,
                             Rewriter& r) {
  const bool read = std::ranges::any_of(
      node.uses(), [&](const Use& use) { return use.port() == port && !use.node->Is("_Retval"); });
  if (!read) return false;
  ASSIGN_OR_RETURN(Node * c, ConstBeside(node, suffix, value, {&node, 0}, r));
  for (const Use& use : node.OrderedUses()) {
    if (use.port() != port || use.node->Is("_Retval")) continue;
    r.graph().SetInput(use.node, use.input, {c, 0});
    r.Visit(use.node);
  }
  return true;
}

StatusOr<Rewritten> MaterializeShapeN(Node& node, Rewriter& r) {
  bool changed = false;
  for (int port = 0; port < node.num_outputs(); ++port) {
    const PartialShape shape = r.shape(node.input(port));
    const Dtype dtype = node.output_types[static_cast<size_t>(port)];
    if (!shape.fully_known() || !Fits(dtype, shape)) continue;
    ASSIGN_OR_RETURN(const bool replaced,
                     ReplaceOutput(node, port, absl::StrCat("-matshapes-", port),
                                   IntegerVector(dtype, shape.dims()), r));
    changed |= replaced;
  }
  return changed ? r.InPlace() : r.No("no shape that is read is known");
}

// TensorArraySizeV3(TensorArrayV3(c)) -> c
StatusOr<Rewritten> MaterializeTensorArraySize(Node& node, Rewriter& r) {
  const Node* array = node.input(0).node;
  if (array->num_inputs() == 0 || !array->Is("TensorArrayV3")) return r.No();
  if (array->Bool("dynamic_size")) return r.No("the array may grow");
  const std::optional<Tensor> size = r.Constant(array->input(0));
  if (!size || size->dtype() != Dtype::kInt32 || size->num_elements() != 1) {
    return r.No("the size of the array is not constant");
  }
  if (size->data<int32_t>()[0] == 0) return r.No("the array has no elements");
  return BecomeConst(node, Dtype::kInt32, *array->input(0).node->Find("value"), r);
}

// The sizes that a node says to BroadcastGradientArgs; negative ones are symbols.
std::optional<std::vector<int64_t>> KnownSizes(Endpoint e, Rewriter& r) {
  if (e.node->Is("Shape") && !IsFed(*e.node)) {
    const PartialShape s = r.shape(e.node->input(0));
    if (!s.known_rank()) return std::nullopt;
    return std::vector<int64_t>(s.dims().begin(), s.dims().end());
  }
  return r.Integers(e);
}

// The dimensions along which each of two shapes is repeated to make them one; nothing where that
// depends on sizes that are not known, or cannot be.
std::optional<std::array<std::vector<int64_t>, 2>> RepeatedDims(const std::vector<int64_t>& a,
                                                                const std::vector<int64_t>& b) {
  std::array<std::vector<int64_t>, 2> dims;
  if (a == b) return dims;
  const size_t rank = std::max(a.size(), b.size());
  const auto size = [&](const std::vector<int64_t>& s, size_t i) {
    const size_t lacking = rank - s.size();
    return i < lacking ? 1 : s[i - lacking];
  };
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = size(a, i), y = size(b, i);
    if (x != y && (x < 0 || y < 0 || (x != 1 && y != 1))) return std::nullopt;
    if (x == 1) dims[0].push_back(static_cast<int64_t>(i));
    if (y == 1) dims[1].push_back(static_cast<int64_t>(i));
  }
  return dims;
}

StatusOr<Rewritten> MaterializeBroadcastGradientArgs(Node& node, Rewriter& r) {
  const auto a = KnownSizes(node.input(0), r), b = KnownSizes(node.input(1), r);
  if (!a || !b) return r.No("an input is neither a shape of known rank nor a constant");
  // A size of which not even a symbol is known equals no other.
  if (std::ranges::count(*a, -1) + std::ranges::count(*b, -1) > 0) {
    return r.No("a size is not known");
  }
  const auto dims = RepeatedDims(*a, *b);
  if (!dims) return r.No("sizes that are not known decide what is repeated");
  bool changed = false;
  for (int port = 0; port < 2; ++port) {
    ASSIGN_OR_RETURN(
        const bool replaced,
        ReplaceOutput(node, port, absl::StrCat("-bcastargs-", port),
                      IntegerVector(node.output_types[0], (*dims)[static_cast<size_t>(port)]), r));
    changed |= replaced;
  }
  return changed ? r.InPlace() : r.No();
}

// Is everything behind the node a reshape to one element?
bool OnlyReshapedToOneElement(const Node& node, Rewriter& r) {
  return !node.uses().empty() && std::ranges::all_of(node.uses(), [&](const Use& use) {
    if (use.is_control() || !use.node->Is("Reshape")) return false;
    const PartialShape shape = r.shape({use.node, 0});
    return NumElements(shape) == 1;
  });
}

// The indices of a reduction of all dimensions, where they are computed.
StatusOr<Rewritten> MaterializeReductionIndices(Node& node, Rewriter& r) {
  const Endpoint indices = node.input(1);
  if (IsConstant(indices, r)) return r.No();
  const int rank = r.shape(node.input(0)).rank();
  if (rank < 1) return r.No("the rank of its input is not known");
  const Dtype dtype = node.input_types[1];
  if (dtype != Dtype::kInt32 && dtype != Dtype::kInt64) return r.No();
  const PartialShape listed = r.shape(indices);
  const bool all = NumElements(listed) == rank || r.shape({&node, 0}).rank() == 0 ||
                   OnlyReshapedToOneElement(node, r);
  if (!all) return r.No("it may leave dimensions");
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  ASSIGN_OR_RETURN(Node * c,
                   ConstBeside(node, "-reduction_indices", IntegerVector(dtype, dims), indices, r));
  r.graph().SetInput(&node, 1, {c, 0});
  return r.InPlace();
}

// Fill, ZerosLike and OnesLike of a known shape -> a Const that states its value once
StatusOr<Rewritten> MaterializeConstantValuedNode(Node& node, Rewriter& r) {
  const PartialShape shape = r.shape({&node, 0});
  if (!shape.fully_known()) return r.No("the shape of the result is not known");
  if (!node.Is("Fill")) return BecomeUniform(node, node.Is("OnesLike") ? 1 : 0, shape.ToShape(), r);
  const TensorValue* value = r.ConstantValue(node.input(1));
  if (value == nullptr || !IsConstant(node.input(0), r)) return r.No("an input is not constant");
  const Dtype dtype = node.output_types[0];
  if (value->dtype != dtype || value->num_elements() != 1 || !value->problem.empty()) {
    return r.No("the value is no scalar of its type");
  }
  auto filled = std::make_shared<TensorValue>(*value);
  filled->shape = shape;
  if (filled->num_elements() == 0) filled->values = Tensor();
  filled->wire.clear();
  return BecomeConst(node, dtype, Attr(std::shared_ptr<const TensorValue>(std::move(filled))), r);
}

bool Compresses(const PassContext& context) {
  return !context.config.disable_compressed_tensor_optimization;
}

}  // namespace

const Rule kMaterializeShapes = {"MaterializeShapes",
                                 {"Shape", "Size", "Rank"},
                                 MaterializeShapes,
                                 "Shape(x), Size(x), Rank(x) -> Const"};
const Rule kMaterializeShapeN = {
    "MaterializeShapeN", {"ShapeN"}, MaterializeShapeN, "outputs of ShapeN -> Const"};
const Rule kMaterializeTensorArraySize = {"MaterializeTensorArraySize",
                                          {"TensorArraySizeV3"},
                                          MaterializeTensorArraySize,
                                          "TensorArraySizeV3(TensorArrayV3(c)) -> c"};
const Rule kMaterializeBroadcastGradientArgs = {"MaterializeBroadcastGradientArgs",
                                                {"BroadcastGradientArgs"},
                                                MaterializeBroadcastGradientArgs,
                                                "outputs of BroadcastGradientArgs -> Const"};
const Rule kMaterializeReductionIndices = {"MaterializeReductionIndices",
                                           {"Sum", "Prod", "Min", "Max", "Mean", "Any", "All"},
                                           MaterializeReductionIndices,
                                           "indices of a full reduction -> Const"};
const Rule kMaterializeConstantValuedNode = {"MaterializeConstantValuedNode",
                                             {"Fill", "ZerosLike", "OnesLike"},
                                             MaterializeConstantValuedNode,
                                             "Fill, ZerosLike, OnesLike -> Const",
                                             Compresses};

}  // namespace smelt::constant
