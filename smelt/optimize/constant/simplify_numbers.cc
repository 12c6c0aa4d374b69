// Zeros, ones, and what has one element.
#include <algorithm>

#include "absl/strings/match.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/rules.h"
#include "smelt/optimize/constant/rules.h"

namespace smelt::constant {
namespace {

bool ReducesNothing(const Node& node, const PartialShape& shape,
                    const std::vector<int64_t>& indices) {
  if (indices.empty()) return true;
  if (!node.Bool("keep_dims")) return false;
  return std::ranges::all_of(indices, [&](int64_t i) {
    if (i < 0) i += shape.rank();
    return i >= 0 && i < shape.rank() && shape[static_cast<int>(i)] == 1;
  });
}

// A reduction of nothing, or of one element
StatusOr<Rewritten> SimplifyReduction(Node& node, Rewriter& r) {
  const PartialShape shape = r.shape(node.input(0)), result = r.shape({&node, 0});
  const Endpoint indices = node.input(1);
  const bool one_element = NumElements(shape) == 1 && NumElements(result) == 1 && result.rank() > 0;
  if (one_element && !node.Bool("keep_dims") && node.Find("T") != nullptr) {
    const std::vector<int64_t> ones(static_cast<size_t>(result.rank()), 1);
    ASSIGN_OR_RETURN(Node * c, ConstBeside(node, "_shape_const", IntegerVector(Dtype::kInt32, ones),
                                           indices, r));
    AttrMap attrs = node.attrs();
    attrs.Erase("keep_dims");
    attrs.Erase("Tidx");
    attrs.Set("Tshape", Dtype::kInt32);
    r.graph().SetInput(&node, 1, {c, 0});
    RETURN_IF_ERROR(r.Become(&node, "Reshape", std::move(attrs)));
    return r.InPlace();
  }
  const auto listed = r.Integers(indices);
  if (!listed) return r.No("the indices are not constant");
  if (!shape.known_rank() && !listed->empty()) return r.No("the rank of its input is not known");
  if (!ReducesNothing(node, shape, *listed)) return r.No("it reduces");
  return BecomeIdentity(node, 0, r);
}

constexpr OpSet kProducts = {"Mul", "MulNoNan", "LogicalAnd"};
constexpr OpSet kMatrixProducts = {"MatMul", "SparseMatMul", "BatchMatMul", "BatchMatMulV2"};
constexpr OpSet kSums = {"Add", "AddV2", "BiasAdd", "LogicalOr"};
constexpr OpSet kQuotients = {"Div", "DivNoNan", "RealDiv", "TruncateDiv", "Xdivy"};

StatusOr<Rewritten> BecomeUnary(Node& node, absl::string_view op, Rewriter& r) {
  AttrMap attrs = HiddenAttrs(node);
  attrs.Set("T", node.Type("T"));
  const Endpoint y = node.input(1);
  RETURN_IF_ERROR(ReadOnly(node, std::span(&y, 1), r));
  RETURN_IF_ERROR(r.Become(&node, op, std::move(attrs)));
  return r.InPlace();
}

// The input where its shape is the result's, else its BroadcastTo where the other's is.
StatusOr<Rewritten> BecomeInput(Node& node, int input, Rewriter& r) {
  const PartialShape result = r.shape({&node, 0});
  if (SameSymbolicShape(r.shape(node.input(input)), result)) {
    return BecomeSnapshot(node, input, r);
  }
  if (SameSymbolicShape(r.shape(node.input(1 - input)), result)) {
    return BecomeBroadcastTo(node, input, r);
  }
  return r.No("neither input is known to have the shape of the result");
}

// A product with zero is zero.
StatusOr<Rewritten> SimplifyZeroProduct(Node& node, bool x_is_zero, Rewriter& r) {
  const PartialShape result = r.shape({&node, 0});
  if (result.fully_known()) return BecomeUniform(node, 0, result.ToShape(), r);
  if (node.Is(kMatrixProducts)) return r.No("the shape of the result is not known");
  return BecomeInput(node, x_is_zero ? 0 : 1, r);
}

StatusOr<Rewritten> SimplifyArithmeticOperations(Node& node, Rewriter& r) {
  const bool mul = node.Is(kProducts), matmul = node.Is(kMatrixProducts);
  const bool sum = node.Is(kSums), sub = node.Is("Sub"), div = node.Is(kQuotients);
  const Endpoint x = node.input(0), y = node.input(1);
  const Dtype type = BaseType(node.output_types[0]);
  if (type == Dtype::kString) return r.No();
  const bool x_zero = IsAll(0, x, r), x_one = !x_zero && IsAll(1, x, r);
  const bool y_zero = IsAll(0, y, r), y_one = !y_zero && IsAll(1, y, r);
  if (!x_zero && !x_one && !y_zero && !y_one) return r.No();
  const PartialShape result = r.shape({&node, 0});
  const bool y_fills = SameSymbolicShape(r.shape(y), result);
  if ((mul && x_one) || (sum && x_zero)) return BecomeInput(node, 1, r);
  if (sub && x_zero && y_fills) {
    if (!TakesType("Neg", type)) return r.No("Neg does not take its type");
    return BecomeUnary(node, "Neg", r);
  }
  // DivNoNan has another answer by zero.
  if (div && x_one && y_fills && !node.Is("DivNoNan") && (IsFloating(type) || IsComplex(type))) {
    return BecomeUnary(node, "Reciprocal", r);
  }
  if (((mul || div) && y_one) || ((sum || sub) && y_zero)) return BecomeInput(node, 0, r);
  if (node.Is("LogicalOr") && (x_one || y_one) && result.fully_known()) {
    return BecomeUniform(node, 1, result.ToShape(), r);
  }
  const bool aggressive = r.context().config.constant_folding == Toggle::kAggressive;
  const bool of_zero = (x_zero || y_zero) && (mul || matmul);
  if (!of_zero && !(x_zero && div && aggressive)) return r.No("its constant changes the values");
  // Zero times infinity is not zero, and neither is zero times what is no number.
  if ((IsFloating(type) || IsComplex(type)) && !aggressive) {
    return r.No("the other factor may be infinite");
  }
  return SimplifyZeroProduct(node, x_zero, r);
}

// x / c -> x * (1 / c)
StatusOr<Rewritten> ReduceDivToReciprocalMul(Node& node, Rewriter& r) {
  const Endpoint x = node.input(0), c = node.input(1);
  if (!IsConstant(c, r)) return r.No("the divisor is not constant");
  if (IsConstant(x, r)) return r.No("it is to be folded");
  const Dtype type = node.Type("T");
  if (!IsFloating(type) && !IsComplex(type)) return r.No("integers have no reciprocal");
  AttrMap attrs;
  attrs.Set("T", type);
  ASSIGN_OR_RETURN(Node * reciprocal,
                   r.Add(r.PrefixedName(node, "_recip"), "Reciprocal", {c}, attrs, node));
  r.CopyShape(c, {reciprocal, 0});
  const bool no_nan = node.Is("Xdivy");
  const Endpoint factor = {reciprocal, 0};
  r.graph().SetInputs(&node, {no_nan ? factor : x, no_nan ? x : factor});
  AttrMap own = node.attrs();
  RETURN_IF_ERROR(r.Become(&node, no_nan ? "MulNoNan" : "Mul", std::move(own)));
  return r.InPlace();
}

// Select(true, a, b) -> a, Select(false, a, b) -> b
StatusOr<Rewritten> SimplifySelect(Node& node, Rewriter& r) {
  const bool yes = IsAll(1, node.input(0), r), no = IsAll(0, node.input(0), r);
  if (!yes && !no) return r.No("the condition is not one constant");
  const PartialShape condition = r.shape(node.input(0));
  const PartialShape a = r.shape(node.input(1)), b = r.shape(node.input(2));
  const bool same =
      SameSymbolicShape(a, b) && (SameSymbolicShape(condition, a) || condition.rank() == 0);
  return same ? BecomeIdentity(node, yes ? 1 : 2, r) : BecomeBroadcastTo(node, yes ? 1 : 2, r);
}

constexpr OpSet kUpdatesWith1 = {"AssignAdd", "AssignSub", "AssignAddVariableOp",
                                 "AssignSubVariableOp"};
constexpr OpSet kUpdates = {
    "AssignAdd",          "AssignSub",          "AssignAddVariableOp",  "AssignSubVariableOp",
    "ScatterAdd",         "ScatterSub",         "ScatterMul",           "ScatterDiv",
    "ScatterNdAdd",       "ScatterNdSub",       "ResourceScatterAdd",   "ResourceScatterSub",
    "ResourceScatterMul", "ResourceScatterDiv", "ResourceScatterNdAdd", "ResourceScatterNdSub"};

// Variables that are changed by nothing
StatusOr<Rewritten> RemoveRedundantVariableUpdates(Node& node, Rewriter& r) {
  const Endpoint delta = node.input(node.Is(kUpdatesWith1) ? 1 : 2);
  const bool sum = absl::StrContains(node.op(), "Add") || absl::StrContains(node.op(), "Sub");
  if (!IsAll(sum ? 0 : 1, delta, r)) return r.No("the update changes the variable");
  if (node.num_outputs() == 0) return BecomeNoOp(node, r);
  return BecomeIdentity(node, 0, r);
}

}  // namespace

const Rule kSimplifyReduction = {"SimplifyReduction",
                                 {"Sum", "Prod", "Min", "Max", "Mean", "Any", "All"},
                                 SimplifyReduction,
                                 "a reduction of nothing -> Identity, of one element -> Reshape"};
const Rule kSimplifyArithmeticOperations = {
    "SimplifyArithmeticOperations",
    {"Mul", "MulNoNan", "LogicalAnd", "MatMul", "SparseMatMul", "BatchMatMul", "BatchMatMulV2",
     "Add", "AddV2", "BiasAdd", "LogicalOr", "Sub", "Div", "DivNoNan", "RealDiv", "TruncateDiv",
     "Xdivy"},
    SimplifyArithmeticOperations,
    "x + 0, x * 1, x / 1 -> x; 0 - x -> Neg(x); 1 / x -> Reciprocal(x); x * 0 -> 0"};
const Rule kReduceDivToReciprocalMul = {"ReduceDivToReciprocalMul",
                                        {"Div", "RealDiv", "Xdivy"},
                                        ReduceDivToReciprocalMul,
                                        "x / c -> x * Reciprocal(c)",
                                        // Not to the last bit: sessions divide as the model says.
                                        [](const PassContext& c) { return !c.for_execution; }};
const Rule kSimplifySelect = {"SimplifySelect",
                              {"Select", "SelectV2"},
                              SimplifySelect,
                              "Select by one constant -> Identity or BroadcastTo"};
const Rule kRemoveRedundantVariableUpdates = {"RemoveRedundantVariableUpdates", kUpdates,
                                              RemoveRedundantVariableUpdates,
                                              "v += 0, v *= 1 -> nothing"};

}  // namespace smelt::constant
