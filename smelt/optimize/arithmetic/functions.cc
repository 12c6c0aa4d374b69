// Functions of numbers that an op computes at once.
#include <algorithm>

#include "smelt/optimize/arithmetic/rules.h"
#include "smelt/optimize/rewrite/number_tensors.h"

namespace smelt::arithmetic {
namespace {

AttrMap OnlyType(const Node& node) {
  AttrMap attrs;
  attrs.Set("T", node.Type("T"));
  return attrs;
}

std::optional<double> UniformConstant(Rewriter& r, Endpoint e) {
  const TensorValue* value = r.ConstantValue(e);
  return value == nullptr ? std::nullopt : UniformValue(*value);
}

// Does combining x with the constant give a tensor of x's shape, whatever that is?
bool KeepsShape(Rewriter& r, Endpoint x, Endpoint constant, Endpoint result) {
  const TensorValue* value = r.ConstantValue(constant);
  if (value != nullptr && value->shape.rank() == 0) return true;
  return SameSymbolicShape(r.shape(x), r.shape(result));
}

// a / sqrt(b) -> a * rsqrt(b)
StatusOr<Rewritten> SqrtDivToRsqrtMul(Node& node, Rewriter& r) {
  Node* sqrt = node.input(1).node;
  if (!sqrt->Is("Sqrt")) return r.No();
  if (IsRoot(*sqrt)) return r.No("the square root must stay");
  if (NumDataUses(*sqrt) != 1) return r.No("others read the square root");
  const bool no_nan = node.Is("Xdivy");
  if (no_nan) r.graph().SetInputs(&node, {node.input(1), node.input(0)});
  RETURN_IF_ERROR(r.Become(&node, no_nan ? "MulNoNan" : "Mul", OnlyType(node)));
  RETURN_IF_ERROR(r.Become(sqrt, "Rsqrt", OnlyType(*sqrt)));
  return r.InPlace();
}

// The node reads its first input alone, and waits for the second, as another op.
StatusOr<Rewritten> OfFirstInput(Node& node, absl::string_view op, Rewriter& r) {
  const Endpoint x = node.input(0);
  Node* constant = node.input(1).node;
  r.graph().SetInputs(&node, {x});
  r.graph().AddControlInput(&node, constant);
  RETURN_IF_ERROR(r.Become(&node, op, OnlyType(node)));
  return r.InPlace();
}

struct Power {
  double exponent;
  absl::string_view op;
};
constexpr Power kPowers[] = {
    {2, "Square"}, {1, "Identity"}, {0.5, "Sqrt"}, {-0.5, "Rsqrt"}, {-1, "Reciprocal"}};

// x ^ c for a few c.
StatusOr<Rewritten> ConvertPow(Node& node, Rewriter& r) {
  const Endpoint x = node.input(0), y = node.input(1);
  if (r.ConstantValue(y) == nullptr) return r.No();
  const std::optional<double> c = UniformConstant(r, y);
  if (!c) return r.No("the exponents are not one number");
  const PartialShape result = r.shape({&node, 0});
  if (!KeepsShape(r, x, y, {&node, 0})) return r.No("the exponent may widen the result");
  const auto* power = std::ranges::find(kPowers, *c, &Power::exponent);
  if (power != std::end(kPowers)) {
    if (*c < 0 && !IsFloating(node.Type("T")) && !IsComplex(node.Type("T"))) {
      return r.No("integers have no negative powers");
    }
    return OfFirstInput(node, power->op, r);
  }
  if (*c == 3) {
    const bool cpu = r.OnCpu(node);
    if (!cpu) return r.No("a product of three is faster on a CPU alone");
    ASSIGN_OR_RETURN(Node * square,
                     r.Add(r.Name(node, "", "_inner_"), "Square", {x}, OnlyType(node), node));
    r.SetShape({square, 0}, result);
    r.graph().SetInputs(&node, {x, {square, 0}});
    r.graph().AddControlInput(&node, y.node);
    RETURN_IF_ERROR(r.Become(&node, "Mul", OnlyType(node)));
    return r.InPlace();
  }
  if (*c != 0) return r.No("no op computes this power");
  if (!result.fully_known()) return r.No("the shape of the ones is not known");
  AttrMap attrs;
  attrs.Set("dtype", node.Type("T"));
  ASSIGN_OR_RETURN(Attr ones, UniformTensor(node.Type("T"), result.ToShape(), 1));
  attrs.Set("value", std::move(ones));
  r.graph().SetInputs(&node, {});
  r.graph().AddControlInput(&node, x.node);
  r.graph().AddControlInput(&node, y.node);
  RETURN_IF_ERROR(r.Become(&node, "Const", std::move(attrs)));
  return r.InPlace();
}

// log(x + 1) -> log1p(x)
StatusOr<Rewritten> ConvertLog1p(Node& node, Rewriter& r) {
  Node* sum = node.input(0).node;
  if (!sum->Is("Add") && !sum->Is("AddV2")) return r.No();
  if (!IsFloating(node.Type("T")) && !IsComplex(node.Type("T"))) return r.No();
  for (const int i : {1, 0}) {
    const Endpoint one = sum->input(i), x = sum->input(1 - i);
    if (UniformConstant(r, one) != std::optional<double>(1)) continue;
    if (!KeepsShape(r, x, one, {sum, 0})) return r.No("the ones may widen the sum");
    if (IsRoot(*sum)) return r.No("the sum must stay");
    RETURN_IF_ERROR(r.WaitAs(&node, *sum));
    r.graph().SetInputs(&node, {x});
    r.graph().AddControlInput(&node, one.node);
    RETURN_IF_ERROR(r.Become(&node, "Log1p", OnlyType(node)));
    return r.InPlace();
  }
  return r.No("neither summand is 1");
}

// log(softmax(x)) -> log_softmax(x)
StatusOr<Rewritten> LogSoftmax(Node& node, Rewriter& r) {
  Node* softmax = node.input(0).node;
  if (!softmax->Is("Softmax")) return r.No();
  if (IsRoot(*softmax)) return r.No("the softmax must stay");
  if (NumDataUses(*softmax) != 1) return r.No("others read the softmax");
  RETURN_IF_ERROR(r.Become(&node, "LogSoftmax", OnlyType(node)));
  RETURN_IF_ERROR(r.Become(softmax, "Identity", OnlyType(*softmax)));
  return r.InPlace();
}

// exp(x) - 1 -> expm1(x)
StatusOr<Rewritten> ConvertExpm1(Node& node, Rewriter& r) {
  Node* exp = node.input(0).node;
  const Endpoint one = node.input(1);
  if (!exp->Is("Exp")) return r.No();
  if (!IsFloating(node.Type("T")) && !IsComplex(node.Type("T"))) return r.No();
  if (UniformConstant(r, one) != std::optional<double>(1)) {
    return r.No("what is taken away is not 1");
  }
  const Endpoint x = exp->input(0);
  if (!KeepsShape(r, x, one, {&node, 0})) return r.No("the ones may widen the difference");
  if (IsRoot(*exp)) return r.No("the exponential must stay");
  RETURN_IF_ERROR(r.WaitAs(&node, *exp));
  r.graph().SetInputs(&node, {x});
  r.graph().AddControlInput(&node, one.node);
  RETURN_IF_ERROR(r.Become(&node, "Expm1", OnlyType(node)));
  return r.InPlace();
}

// square(a - b) -> squared_difference(a, b)
StatusOr<Rewritten> FuseSquaredDiff(Node& node, Rewriter& r) {
  Node* difference = node.input(0).node;
  if (!difference->Is("Sub")) return r.No();
  if (IsComplex(node.Type("T"))) return r.No("the square of a complex number is another");
  if (IsRoot(*difference)) return r.No("the difference must stay");
  if (NumDataUses(*difference) != 1) return r.No("others read the difference");
  RETURN_IF_ERROR(r.Become(difference, "SquaredDifference", OnlyType(*difference)));
  RETURN_IF_ERROR(r.Become(&node, "Identity", OnlyType(node)));
  return r.InPlace();
}

}  // namespace

const Rule kSqrtDivToRsqrtMul = {"SqrtDivToRsqrtMul",
                                 {"Div", "RealDiv", "TruncateDiv", "Xdivy"},
                                 SqrtDivToRsqrtMul,
                                 "a / sqrt(b) -> a * rsqrt(b)"};
const Rule kConvertPow = {
    "ConvertPow", {"Pow"}, ConvertPow, "x ^ c -> an op, for c of -1, -0.5, 0, 0.5, 1, 2 and 3"};
const Rule kConvertLog1p = {"ConvertLog1p", {"Log"}, ConvertLog1p, "log(x + 1) -> log1p(x)"};
const Rule kLogSoftmax = {"LogSoftmax", {"Log"}, LogSoftmax, "log(softmax(x)) -> log_softmax(x)"};
const Rule kConvertExpm1 = {"ConvertExpm1", {"Sub"}, ConvertExpm1, "exp(x) - 1 -> expm1(x)"};
const Rule kFuseSquaredDiff = {
    "FuseSquaredDiff", {"Square"}, FuseSquaredDiff, "square(a - b) -> squared_difference(a, b)"};

}  // namespace smelt::arithmetic
