// The replacement of a rule, and the arithmetic of its conditions and constants.
#include <algorithm>
#include <cmath>

#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/fuse/rules_apply.h"
#include "smelt/optimize/rewrite/number_tensors.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

// Of one operand, whose shape they keep, or of two.
constexpr OpSet kKeepShape = {
    "tfl.add",         "tfl.sub",          "tfl.mul",         "tfl.div",
    "tfl.maximum",     "tfl.minimum",      "tfl.pow",         "tfl.squared_difference",
    "tfl.atan2",       "tfl.floor_div",    "tfl.floor_mod",   "tfl.abs",
    "tfl.ceil",        "tfl.cos",          "tfl.elu",         "tfl.exp",
    "tfl.floor",       "tfl.gelu",         "tfl.hard_swish",  "tfl.l2_normalization",
    "tfl.leaky_relu",  "tfl.log",          "tfl.log_softmax", "tfl.logistic",
    "tfl.neg",         "tfl.prelu",        "tfl.relu",        "tfl.relu6",
    "tfl.relu_0_to_1", "tfl.relu_n1_to_1", "tfl.round",       "tfl.rsqrt",
    "tfl.sign",        "tfl.sin",          "tfl.softmax",     "tfl.sqrt",
    "tfl.square",      "tfl.tanh",         "tfl.zeros_like",  "tfl.logical_not",
    "tfl.logical_and", "tfl.logical_or"};

using Number = std::optional<double>;

Number NumberOf(const Attr& attr) {
  if (const auto* f = attr.get<float>()) return *f;
  if (const auto* i = attr.get<int64_t>()) return static_cast<double>(*i);
  if (const auto* b = attr.get<bool>()) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

Number NumberOf(Endpoint e) {
  const TensorValue* value = StatedConstant(*e.node);
  return value == nullptr ? std::nullopt : UniformValue(*value);
}

// c broadcast with x is of the shape of x.
bool Fits(const PartialShape& c, const PartialShape& x) {
  if (!c.known_rank() || !x.known_rank() || c.rank() > x.rank()) return false;
  for (int i = 0; i < c.rank(); ++i) {
    const int64_t size = c[i], of = x[i + x.rank() - c.rank()];
    if (size != 1 && (size < 0 || size != of)) return false;
  }
  return true;
}

class Evaluator {
 public:
  explicit Evaluator(const RuleMatch& m) : m_(m) {}

  // Nothing where a name is no number, or a shape is not known.
  Number Of(const RuleExpr& e) const {
    if (e.kind == RuleExpr::kNumber) return e.number;
    if (e.kind == RuleExpr::kName) {
      const auto option = m_.options.find(e.name);
      if (option != m_.options.end()) return NumberOf(option->second);
      const auto value = m_.values.find(e.name);
      return value == m_.values.end() ? std::nullopt : NumberOf(value->second);
    }
    if (const std::optional<Number> said = OfShapes(e)) return *said;
    std::vector<double> v;
    for (const RuleExpr& arg : e.args) {
      const Number number = Of(arg);
      if (!number) return std::nullopt;
      v.push_back(*number);
    }
    if (e.name == "+") return v[0] + v[1];
    if (e.name == "-") return v[0] - v[1];
    if (e.name == "*") return v[0] * v[1];
    if (e.name == "/") return v[0] / v[1];
    if (e.name == "min") return std::min(v[0], v[1]);
    if (e.name == "max") return std::max(v[0], v[1]);
    if (e.name == "neg") return -v[0];
    if (e.name == "abs") return std::abs(v[0]);
    if (e.name == "sqrt") return std::sqrt(v[0]);
    return std::nullopt;
  }

  // A constant of constants; nothing where one of them is none.
  StatusOr<std::optional<Tensor>> Constant(const RuleExpr& e) const {
    if (e.kind == RuleExpr::kName) {
      const auto value = m_.values.find(e.name);
      if (value != m_.values.end()) return Fuser::Constant(value->second);
    }
    const bool arithmetic =
        e.kind == RuleExpr::kCall &&
        (e.name == "+" || e.name == "-" || e.name == "*" || e.name == "/" || e.name == "neg");
    if (!arithmetic) {
      const Number number = Of(e);
      if (!number) return std::nullopt;
      return Tensor::Scalar(static_cast<float>(*number));
    }
    ASSIGN_OR_RETURN(const std::optional<Tensor> a, Constant(e.args[0]));
    if (!a || a->dtype() != Dtype::kFloat) return std::nullopt;
    if (e.name == "neg") return Computed("Mul", *a, Tensor::Scalar(-1.0f));
    ASSIGN_OR_RETURN(const std::optional<Tensor> b, Constant(e.args[1]));
    if (!b || b->dtype() != Dtype::kFloat) return std::nullopt;
    return Computed(e.name == "+"   ? OpName("AddV2")
                    : e.name == "-" ? OpName("Sub")
                    : e.name == "*" ? OpName("Mul")
                                    : OpName("RealDiv"),
                    *a, *b);
  }

  PartialShape ShapeOf(const RuleExpr& e) const {
    if (e.kind == RuleExpr::kName) {
      const auto value = m_.values.find(e.name);
      if (value != m_.values.end()) return StatedShape(value->second);
    }
    PartialShape out = PartialShape::Of({});
    for (const RuleExpr& arg : e.args) out = BroadcastOf(out, ShapeOf(arg));
    return out;
  }

 private:
  static StatusOr<std::optional<Tensor>> Computed(OpName op, const Tensor& a, const Tensor& b) {
    ASSIGN_OR_RETURN(Tensor out, Binary(op, a, b));
    return std::optional<Tensor>(std::move(out));
  }

  // Functions whose arguments are values rather than numbers; nothing for others.
  std::optional<Number> OfShapes(const RuleExpr& e) const {
    const auto value = [&](size_t i) -> std::optional<Endpoint> {
      if (i >= e.args.size() || e.args[i].kind != RuleExpr::kName) return std::nullopt;
      const auto it = m_.values.find(e.args[i].name);
      return it == m_.values.end() ? std::nullopt : std::optional(it->second);
    };
    const auto said = [](bool truth) { return Number(truth ? 1 : 0); };
    const bool of_shapes = e.name == "rank" || e.name == "elements" || e.name == "dim" ||
                           e.name == "last_axis" || e.name == "is_float" || e.name == "is_bool" ||
                           e.name == "same_shape" || e.name == "fits" || e.name == "is_imaginary";
    if (!of_shapes) return std::nullopt;
    const auto x = value(0), y = value(1);
    if (!x) return Number();
    const PartialShape shape = StatedShape(*x);
    if (e.name == "is_float") return said(Fuser::type(*x) == Dtype::kFloat);
    if (e.name == "is_imaginary") return said(x->node->Is("tfl.imag"));
    if (e.name == "is_bool") return said(Fuser::type(*x) == Dtype::kBool);
    if (e.name == "rank") return shape.known_rank() ? Number(shape.rank()) : Number();
    if (e.name == "elements") {
      double elements = 1;
      for (int i = 0; i < shape.rank(); ++i) {
        if (shape[i] < 0) return Number();
        elements *= static_cast<double>(shape[i]);
      }
      return shape.known_rank() ? Number(elements) : Number();
    }
    if (e.name == "dim") {
      const Number at = Of(e.args[1]);
      if (!at || !shape.known_rank()) return Number();
      const double i = *at < 0 ? *at + shape.rank() : *at;
      if (!(i >= 0 && i < shape.rank())) return Number();
      const int64_t size = shape[static_cast<int>(i)];
      return size < 0 ? Number() : Number(static_cast<double>(size));
    }
    if (!y) return Number();
    const PartialShape other = StatedShape(*y);
    if (e.name == "last_axis") {
      const auto axes = Fuser::Constant(*x);
      if (!axes || axes->num_elements() != 1 || !other.known_rank()) return said(false);
      if (axes->dtype() != Dtype::kInt32 && axes->dtype() != Dtype::kInt64) return said(false);
      const int64_t axis = IndexAt(*axes, 0);
      return said(axis == -1 || axis == other.rank() - 1);
    }
    if (e.name == "fits") return said(Fits(shape, other));
    // same_shape: of all sizes known.
    return said(Fits(shape, other) && shape.rank() == other.rank() && Fits(other, shape));
  }

  const RuleMatch& m_;
};

PartialShape ShapeOf(const RuleReplacement& r, const RuleMatch& m) {
  if (r.kind == RuleReplacement::kValue) {
    const auto it = m.values.find(r.name);
    return it == m.values.end() ? PartialShape() : StatedShape(it->second);
  }
  if (r.kind == RuleReplacement::kConstant) return Evaluator(m).ShapeOf(r.constant);
  if (!KeepsShape(r.op)) return {};
  PartialShape out = PartialShape::Of({});
  for (const RuleReplacement& arg : r.args) out = BroadcastOf(out, ShapeOf(arg, m));
  return out;
}

// An option as the operator's definition wants it; for a custom operator as it is written.
std::optional<Attr> OptionValue(const RuleOption& o, OpName op, const RuleMatch& m) {
  if (!o.is_number) return o.value;
  const AttrDef* def = DefinitionOf(op)->FindAttr(o.name);
  const bool counts = def != nullptr && (def->type == "int" || def->type == "float");
  if (o.number.kind == RuleExpr::kName) {
    const auto it = m.options.find(o.number.name);
    if (it != m.options.end() && !counts) return it->second;
  }
  const Number number = Evaluator(m).Of(o.number);
  if (!number) return std::nullopt;
  const bool whole = def != nullptr ? def->type == "int" : o.number.whole;
  if (!whole) return Attr(static_cast<float>(*number));
  if (!(std::abs(*number) < 1e15)) return std::nullopt;
  return Attr(static_cast<int64_t>(*number));
}

StatusOr<std::optional<Endpoint>> Build(const RuleReplacement& r, const RuleMatch& m, Node& root,
                                        bool top, Fuser& f) {
  if (r.kind == RuleReplacement::kValue) {
    const auto it = m.values.find(r.name);
    if (it == m.values.end()) return std::nullopt;
    return it->second;
  }
  if (r.kind == RuleReplacement::kConstant) {
    ASSIGN_OR_RETURN(const std::optional<Tensor> value, Evaluator(m).Constant(r.constant));
    if (!value) return std::nullopt;
    return f.Const(*value, root);
  }
  AttrMap options;
  for (const RuleOption& o : r.options) {
    const std::optional<Attr> value = OptionValue(o, r.op, m);
    if (!value) return std::nullopt;
    options.Set(o.name, *value);
  }
  std::vector<Endpoint> inputs;
  for (const RuleReplacement& arg : r.args) {
    ASSIGN_OR_RETURN(const std::optional<Endpoint> e, Build(arg, m, root, false, f));
    if (!e) return std::nullopt;
    inputs.push_back(*e);
  }
  if (!r.custom.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, FlexMap({options.begin(), options.end()}));
    options = AttrMap();
    options.Set("custom_code", r.custom);
    options.Set("custom_options", bytes);
  }
  if (top) return f.Add(r.op, inputs, std::move(options), root);
  return f.AddShaped(r.op, inputs, std::move(options), Fuser::type(inputs[0]), ShapeOf(r, m), root);
}

}  // namespace

bool KeepsShape(OpName op) { return kKeepShape.Contains(op); }

bool Holds(const RuleCondition& c, const RuleMatch& match) {
  const Evaluator eval(match);
  const Number left = eval.Of(c.left);
  if (!left) return false;
  if (c.compare.empty()) return *left != 0;
  const Number right = eval.Of(c.right);
  if (!right) return false;
  if (c.compare == "==") return *left == *right;
  if (c.compare == "!=") return *left != *right;
  if (c.compare == "<=") return *left <= *right;
  if (c.compare == ">=") return *left >= *right;
  return c.compare == "<" ? *left < *right : *left > *right;
}

bool KeepsRootShape(const RuleReplacement& r, const RuleMatch& match, Endpoint root) {
  if (r.kind == RuleReplacement::kOperator && !KeepsShape(r.op)) return true;
  const PartialShape shape = ShapeOf(r, match);
  return shape.known_rank() && shape == StatedShape(root);
}

StatusOr<bool> BuildReplacement(const RuleReplacement& r, const RuleMatch& match, Node& root,
                                Fuser& f) {
  ASSIGN_OR_RETURN(const std::optional<Endpoint> by, Build(r, match, root, true, f));
  if (!by) return false;
  f.Replace(&root, *by);
  return true;
}

}  // namespace smelt
