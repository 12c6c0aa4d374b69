// Steps of optimizers, by which a model goes on learning on a device: all variables are read, and
// written once what was read is computed with. The formulas are those of kernels/train/rules.cc.
#include <algorithm>

#include "smelt/graph/op_facts.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

using E = Endpoint;

// A node's variables, read, and what else it takes, by the names of its arguments. Of those that
// write the rows that indices name, what is read are these rows, and what is written is put back.
class Step {
 public:
  Step(Node& n, Legalizer& l) : n_(n), c_(l) {
    indices_ = Of("indices");
    if (indices_.node == nullptr) return;
    if (!AreDistinct()) {
      c_.Fail(Unimplemented("a row that its indices name twice is written in two steps"));
    }
    const Attr* shape = n.attrs().Find(kVariableShape);
    if (shape != nullptr) shape_ = *shape->get<PartialShape>();
    if (!shape_.fully_known() || shape_.rank() < 1 || l.rank(indices_) != 1) {
      c_.Fail(Unimplemented("the shape of its variable is not known"));
    }
    if (!c_.ok()) return;
    const StatusOr<E> narrow = AsInt32(indices_, l);
    c_.Fail(narrow.status());
    if (narrow.ok()) indices_ = *narrow;
  }

  OperatorChain& c() { return c_; }
  E Of(absl::string_view name) const {
    const auto& args = n_.def()->inputs;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].name == name) return n_.input(static_cast<int>(i));
    }
    return {};
  }
  E Gradient() const {
    const E gradient = Of("grad");
    return gradient.node == nullptr ? Of("delta") : gradient;
  }
  // What a variable holds. It has the gradient's shape.
  E Read(absl::string_view name) {
    if (!c_.ok()) return {};
    const PartialShape shape = indices_.node == nullptr ? c_.l().shape(Gradient()) : shape_;
    const E whole = c_.Make("tfl.read_variable", {Of(name)}, {}, {Dtype::kFloat, shape});
    if (indices_.node == nullptr) return whole;
    wholes_.emplace_back(name, whole);
    return c_.Rows(whole, indices_);
  }
  void Write(absl::string_view name, E value) {
    if (indices_.node != nullptr) value = PutBack(name, value);
    if (!c_.ok()) return;
    const std::vector<E> inputs = {Of(name), value};
    const StatusOr<Node*> made = c_.l().AddMany("tfl.assign_variable", inputs, {}, {});
    c_.Fail(made.status());
    if (made.ok()) written_.push_back(*made);
  }
  // Who waits for the node waits for the last that is written, and that for the others.
  LiteEndpoints Done() {
    RETURN_IF_ERROR(c_.Done(std::vector<E>()).status());
    for (Node* other : written_) {
      if (other != written_.back()) c_.l().graph().AddControlInput(written_.back(), other);
    }
    return std::vector<E>{{written_.back(), 0}};
  }

 private:
  // Optimizers sum the gradients of a row before: Unique gives the rows.
  bool AreDistinct() {
    const E of = BehindIdentities(indices_);
    if (of.node->Is("tfl.unique") && of.port == 0) return true;
    auto known = c_.l().Integers(indices_);
    if (!known) return false;
    std::ranges::sort(*known);
    return std::ranges::adjacent_find(*known) == known->end();
  }
  // All rows, those of the indices from `rows`.
  E PutBack(absl::string_view name, E rows) {
    if (!c_.ok()) return {};
    E whole;
    for (const auto& [read, value] : wholes_) {
      if (read == name) whole = value;
    }
    std::vector<int64_t> sizes(shape_.dims().begin(), shape_.dims().end());
    const E places = c_.Reshape(indices_, {-1, 1});
    const E put =
        c_.Make("tfl.scatter_nd", {places, rows, c_.l().Ints(sizes)}, {}, {Dtype::kFloat, shape_});
    const E ones = c_.Add(c_.Op("tfl.zeros_like", {indices_}), 1);
    const std::vector<int64_t> count = {sizes[0]};
    const E counts = c_.Make("tfl.scatter_nd", {places, ones, c_.l().Ints(count)}, {},
                             {Dtype::kInt32, PartialShape::Of(count)});
    std::vector<int64_t> column(sizes.size(), 1);
    column[0] = sizes[0];
    return c_.Select(c_.Less(0, c_.Reshape(counts, column)), put, whole);
  }

  Node& n_;
  OperatorChain c_;
  E indices_;
  PartialShape shape_;  // of the variables, where there are indices
  std::vector<std::pair<absl::string_view, E>> wholes_;
  std::vector<Node*> written_;
};

E SquareOf(E x, OperatorChain& c) { return c.Op("tfl.square", {x}); }
E RootOf(E x, OperatorChain& c) { return c.Op("tfl.sqrt", {x}); }
E SignOf(E x, OperatorChain& c) { return c.Op("tfl.sign", {x}); }
// s moved towards g by the part 1 - keep.
E MovedTo(E s, E g, E keep, OperatorChain& c) {
  return c.Add(s, c.Mul(c.Sub(g, s), c.Sub(1, keep)));
}
// x moved towards 0 by `by`, at most to 0.
E Shrunk(E x, E by, OperatorChain& c) {
  return c.Mul(SignOf(x, c), c.Max(c.Sub(c.Op("tfl.abs", {x}), by), 0));
}
E Proximal(E var, E g, E lr, const Step& s, OperatorChain& c) {
  const E moved = c.Sub(var, c.Mul(g, lr));
  return c.Div(Shrunk(moved, c.Mul(lr, s.Of("l1")), c), c.Add(c.Mul(s.Of("l2"), lr), 1));
}

void Descent(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Gradient(), lr = s.Of("alpha"), var = s.Read("var");
  s.Write("var", n.Is("ResourceApplyGradientDescent") ? c.Sub(var, c.Mul(g, lr))
                                                      : Proximal(var, g, lr, s, c));
}

void Momentum(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), lr = s.Of("lr"), momentum = s.Of("momentum"), var = s.Read("var");
  const E kept = c.Mul(s.Read("accum"), momentum), step = c.Mul(g, lr);
  const bool nesterov = n.Bool("use_nesterov");
  if (n.Is({"ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum"})) {
    const E accum = c.Sub(kept, step);
    s.Write("accum", accum);
    s.Write("var", c.Add(var, nesterov ? c.Sub(c.Mul(accum, momentum), step) : accum));
    return;
  }
  const E accum = c.Add(kept, g);
  s.Write("accum", accum);
  s.Write("var",
          c.Sub(var, nesterov ? c.Add(step, c.Mul(c.Mul(accum, momentum), lr)) : c.Mul(accum, lr)));
}

void Adagrad(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), lr = s.Of("lr"), var = s.Read("var");
  E accum = s.Read("accum");
  if (n.Bool("update_slots", true)) {
    accum = c.Add(accum, SquareOf(g, c));
    s.Write("accum", accum);
  }
  E root = RootOf(accum, c);
  if (n.Is({"ResourceApplyProximalAdagrad", "ResourceSparseApplyProximalAdagrad"})) {
    s.Write("var", Proximal(var, g, c.Div(lr, root), s, c));
    return;
  }
  if (n.Is({"ResourceApplyAdagradV2", "ResourceSparseApplyAdagradV2"}))
    root = c.Add(root, s.Of("epsilon"));
  s.Write("var", c.Sub(var, c.Div(c.Mul(g, lr), root)));
}

void Adadelta(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), rho = s.Of("rho"), epsilon = s.Of("epsilon"), var = s.Read("var"),
          steps = s.Read("accum_update"), rest = c.Sub(1, rho);
  const E accum = c.Add(c.Mul(s.Read("accum"), rho), c.Mul(SquareOf(g, c), rest));
  const E step =
      c.Mul(c.Div(RootOf(c.Add(steps, epsilon), c), RootOf(c.Add(accum, epsilon), c)), g);
  s.Write("accum", accum);
  s.Write("accum_update", c.Add(c.Mul(steps, rho), c.Mul(SquareOf(step, c), rest)));
  s.Write("var", c.Sub(var, c.Mul(step, s.Of("lr"))));
}

void Adam(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), beta1 = s.Of("beta1"), var = s.Read("var");
  const E rate = c.Div(c.Mul(s.Of("lr"), RootOf(c.Sub(1, s.Of("beta2_power")), c)),
                       c.Sub(1, s.Of("beta1_power")));
  E m = MovedTo(s.Read("m"), g, beta1, c);
  E v = MovedTo(s.Read("v"), SquareOf(g, c), s.Of("beta2"), c);
  s.Write("m", m);
  s.Write("v", v);
  if (n.Is("ResourceApplyAdamWithAmsgrad")) {
    v = c.Max(s.Read("vhat"), v);
    s.Write("vhat", v);
  }
  if (n.Bool("use_nesterov")) m = c.Add(c.Mul(g, c.Sub(1, beta1)), c.Mul(m, beta1));
  s.Write("var", c.Sub(var, c.Div(c.Mul(m, rate), c.Add(RootOf(v, c), s.Of("epsilon")))));
}

void AdaMax(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), var = s.Read("var");
  const E rate = c.Div(s.Of("lr"), c.Sub(1, s.Of("beta1_power")));
  const E m = MovedTo(s.Read("m"), g, s.Of("beta1"), c);
  const E v = c.Max(c.Mul(s.Read("v"), s.Of("beta2")), c.Op("tfl.abs", {g}));
  s.Write("m", m);
  s.Write("v", v);
  s.Write("var", c.Sub(var, c.Mul(c.Div(m, c.Add(v, s.Of("epsilon"))), rate)));
}

void RmsProp(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), rho = s.Of("rho"), var = s.Read("var");
  const E squares = MovedTo(s.Read("ms"), SquareOf(g, c), rho, c);
  E spread = squares;
  if (n.Is({"ResourceApplyCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp"})) {
    const E mean = MovedTo(s.Read("mg"), g, rho, c);
    s.Write("mg", mean);
    spread = c.Sub(squares, SquareOf(mean, c));
  }
  const E root = RootOf(c.Add(spread, s.Of("epsilon")), c);
  const E moving = c.Add(c.Mul(s.Read("mom"), s.Of("momentum")), c.Div(c.Mul(g, s.Of("lr")), root));
  s.Write("ms", squares);
  s.Write("mom", moving);
  s.Write("var", c.Sub(var, moving));
}

void SignedStep(const Node& n, Step& s, OperatorChain& c) {
  const E g = s.Of("grad"), beta = s.Of("beta"), var = s.Read("var");
  const E m = c.Add(c.Mul(s.Read("m"), beta), c.Mul(g, c.Sub(1, beta)));
  const E decay = c.Mul(c.Mul(SignOf(g, c), SignOf(m, c)), s.Of("sign_decay"));
  const E by = n.Is("ResourceApplyAddSign") ? c.Add(decay, s.Of("alpha"))
                                            : c.Op("tfl.exp", {c.Mul(decay, s.Of("logbase"))});
  s.Write("m", m);
  s.Write("var", c.Sub(var, c.Mul(c.Mul(by, g), s.Of("lr"))));
}

// Follow the regularized leader. The variable is what the sums of gradients make of it.
void Ftrl(const Node& n, Step& s, OperatorChain& c) {
  if (n.Bool("multiply_linear_by_lr")) {
    return c.Fail(Unimplemented("its sums of gradients are multiplied by its rate"));
  }
  const E g = s.Of("grad"), lr = s.Of("lr"), l1 = s.Of("l1"), power = s.Of("lr_power"),
          shrinkage = s.Of("l2_shrinkage");
  const E var = s.Read("var"), before = s.Read("accum");
  const auto known = c.l().Constant(power);
  const bool roots = known && known->num_elements() == 1 && known->scalar<float>() == -0.5f;
  const auto root = [&](E x) {
    return roots ? RootOf(x, c) : c.Op("tfl.pow", {x, c.Op("tfl.neg", {power})});
  };
  const E accum = c.Add(before, SquareOf(g, c)), grown = root(accum);
  E linear = c.Sub(c.Add(s.Read("linear"), g), c.Mul(c.Div(c.Sub(grown, root(before)), lr), var));
  if (shrinkage.node != nullptr) linear = c.Add(linear, c.Mul(c.Mul(var, shrinkage), 2));
  const E slope = c.Add(c.Div(grown, lr), c.Mul(s.Of("l2"), 2));
  s.Write("accum", accum);
  s.Write("linear", linear);
  s.Write("var", c.Op("tfl.neg", {c.Div(Shrunk(linear, l1, c), slope)}));
}

template <void (*kWrite)(const Node& n, Step& s, OperatorChain& c)>
LiteEndpoints Stepped(Node& n, Legalizer& l) {
  if (n.Type("T") != Dtype::kFloat) {
    return Unimplemented("its operators do not take ", DtypeName(n.Type("T")));
  }
  Step s(n, l);
  kWrite(n, s, s.c());
  return s.Done();
}

constexpr ExportRow kOptimizerRows[] = {
    {"ResourceApplyGradientDescent", Stepped<Descent>},
    {"ResourceApplyProximalGradientDescent", Stepped<Descent>},
    {"ResourceApplyMomentum", Stepped<Momentum>},
    {"ResourceApplyKerasMomentum", Stepped<Momentum>},
    {"ResourceApplyAdagrad", Stepped<Adagrad>},
    {"ResourceApplyAdagradV2", Stepped<Adagrad>},
    {"ResourceApplyProximalAdagrad", Stepped<Adagrad>},
    {"ResourceApplyAdadelta", Stepped<Adadelta>},
    {"ResourceApplyAdam", Stepped<Adam>},
    {"ResourceApplyAdamWithAmsgrad", Stepped<Adam>},
    {"ResourceApplyAdaMax", Stepped<AdaMax>},
    {"ResourceApplyRMSProp", Stepped<RmsProp>},
    {"ResourceApplyCenteredRMSProp", Stepped<RmsProp>},
    {"ResourceApplyAddSign", Stepped<SignedStep>},
    {"ResourceApplyPowerSign", Stepped<SignedStep>},
    {"ResourceApplyFtrl", Stepped<Ftrl>},
    {"ResourceApplyFtrlV2", Stepped<Ftrl>},
    {"ResourceSparseApplyProximalGradientDescent", Stepped<Descent>},
    {"ResourceSparseApplyMomentum", Stepped<Momentum>},
    {"ResourceSparseApplyKerasMomentum", Stepped<Momentum>},
    {"ResourceSparseApplyAdagrad", Stepped<Adagrad>},
    {"ResourceSparseApplyAdagradV2", Stepped<Adagrad>},
    {"ResourceSparseApplyProximalAdagrad", Stepped<Adagrad>},
    {"ResourceSparseApplyAdadelta", Stepped<Adadelta>},
    {"ResourceSparseApplyRMSProp", Stepped<RmsProp>},
    {"ResourceSparseApplyCenteredRMSProp", Stepped<RmsProp>},
    {"ResourceSparseApplyFtrl", Stepped<Ftrl>},
    {"ResourceSparseApplyFtrlV2", Stepped<Ftrl>},
};

}  // namespace

std::span<const ExportRow> OptimizerExport() { return kOptimizerRows; }

}  // namespace smelt
