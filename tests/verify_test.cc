// Attributes that nodes leave out are inferred, and graphs are verified.
#include "smelt/graph/verify.h"

#include <algorithm>
#include <random>

#include "smelt/graph/infer_attrs.h"
#include "tests/graph_of_text.h"

namespace smelt {
namespace {

TEST(InferAttrs, FromInputs) {
  auto g = MustParse(R"(
x = Placeholder {dtype=double}
i = Const {value=int64[1]{0}}
sum = AddN(x, x, x)
all = IdentityN(x, i)
shape = Reshape(x, i)
cat = ConcatV2(x, x, i)
pack = Pack(i, i)
ref = VariableV2 {dtype=float, shape=[]}
got = Identity(ref)
)");
  EXPECT_EQ(g->Find("sum")->Int("N"), 3);
  EXPECT_EQ(g->Find("sum")->Type("T"), Dtype::kDouble);
  EXPECT_EQ(PrintAttr(*g->Find("all")->Find("T")), "list(double, int64)");
  EXPECT_EQ(g->Find("shape")->Type("Tshape"), Dtype::kInt64);
  EXPECT_EQ(g->Find("cat")->Int("N"), 2);
  EXPECT_EQ(g->Find("cat")->Type("Tidx"), Dtype::kInt64);
  EXPECT_EQ(g->Find("pack")->Int("N"), 2);
  EXPECT_EQ(g->Find("got")->Type("T"), Dtype::kFloat);
  EXPECT_EQ(g->Find("got")->input_types[0], Dtype::kFloat);
  EXPECT_TRUE(Verify(*g).ok()) << Verify(*g);
}

TEST(InferAttrs, LeavesDefaultsAndStatementsAlone) {
  auto g = MustParse(R"(
x = Placeholder {dtype=float}
i = Const {value=int32[1]{0}}
shape = Reshape(x, i)
stated = Neg(x) {T=double}
)");
  EXPECT_EQ(g->Find("shape")->attrs().Find("Tshape"), nullptr);
  EXPECT_EQ(g->Find("stated")->Type("T"), Dtype::kDouble);
}

TEST(InferAttrs, FromTheFunctionCalled) {
  auto g = MustParse(R"(
x = Placeholder {dtype=float}
p = Placeholder {dtype=bool}
call = StatefulPartitionedCall(x) {f=@f}
nothing = PartitionedCall {f=@g}
if = If(p, x) {then_branch=@f, else_branch=@f}
case = Case(pi, x) {branches=list(@f)}
pi = Const {value=int32[]{0}}
loop = While(x, pi) {cond=@c, body=@b}
func f(a: float) -> (r: int32, s: float) { c = Const {value=int32[]{1}} return r=c, s=a }
func g() -> () { }
)");
  for (const char* name : {"call", "if", "case"}) {
    EXPECT_EQ(PrintAttr(*g->Find(name)->Find("Tout")), "list(int32, float)") << name;
  }
  EXPECT_EQ(PrintAttr(*g->Find("nothing")->Find("Tout")), "list()");
  EXPECT_EQ(PrintAttr(*g->Find("nothing")->Find("Tin")), "list()");
  EXPECT_EQ(PrintAttr(*g->Find("loop")->Find("T")), "list(float, int32)");
}

TEST(InferAttrs, WhatCannotBeToldIsLeft) {
  EXPECT_PRED2(Contains, ParseError("o = Custom\nn = Neg(o)"), "node 'n': attribute 'T'");
  EXPECT_PRED2(Contains, ParseError("x = Const {value=float[]{1}}\nb = BatchFunction(x) {f=@f}"),
               "attribute 'Tin'");
}

// ---- the verifier

std::string VerifyError(absl::string_view text) {
  const Status s = VerifyAll(*MustParse(text));
  return s.ok() ? "it holds" : std::string(s.message());
}

TEST(Verify, Rules) {
  const std::string x = "x = Const {value=float[]{1}}\n";
  EXPECT_EQ(VerifyError(x + "y = Neg(x)"), "it holds");
  EXPECT_EQ(VerifyError("\"a b\" = NoOp"), "node 'a b' (NoOp): the name is not legal");
  EXPECT_EQ(VerifyError("a = \"\""), "node 'a' (): there is no op");
  EXPECT_EQ(VerifyError("a = NoOp(^a)"), "node 'a' (NoOp): waits for itself");
  EXPECT_EQ(VerifyError(x + "y = Neg(x) {T=double}"),
            "node 'y' (Neg): input 0 is to be double, node 'x' gives float");
  EXPECT_EQ(VerifyError(x + "y = Neg(x) {T=string}"),
            "node 'y' (Neg): Value for attr 'T' of string is not in the list of allowed "
            "values: bfloat16, half, float, double, int8, int16, int32, int64, complex64, "
            "complex128");
  EXPECT_EQ(VerifyError(x + "y = Conv2D(x, x) {padding=\"NONE\", strides=list(1, 1, 1, 1)}"),
            "node 'y' (Conv2D): Value for attr 'padding' of \"NONE\" is not in the list of "
            "allowed values: \"SAME\", \"VALID\", \"EXPLICIT\"");
  EXPECT_EQ(VerifyError(x + "y = MatMul(x, x) {transpose_a=1}"),
            "node 'y' (MatMul): attribute 'transpose_a' is 1, which is no bool");
  EXPECT_EQ(VerifyError(x + "y = MaxPool(x) {ksize=list(1), padding=\"SAME\", strides=list(1)}"),
            "node 'y' (MaxPool): Length for attr 'ksize' of 1 must be at least minimum 4");
  EXPECT_EQ(VerifyError(x + "y = MaxPool(x) {ksize=list(), padding=\"SAME\", strides=list(1)}"),
            "node 'y' (MaxPool): Length for attr 'ksize' of 0 must be at least minimum 4");
  EXPECT_EQ(VerifyError("y = AddN {N=0, T=float}"),
            "node 'y' (AddN): Value for attr 'N' of 0 must be at least minimum 1");
  EXPECT_EQ(VerifyError(x + "y = Conv2D(x, x) {strides=list(1, 1, 1, 1)}"),
            "node 'y' (Conv2D): attribute 'padding' is missing");
  EXPECT_EQ(VerifyError("y = PartitionedCall {Tout=list(), f=@f}"),
            "node 'y' (PartitionedCall): Failed to find definition for function \"f\"");
  EXPECT_EQ(VerifyError("y = Custom {f=list(@g)}"),
            "node 'y' (Custom): Failed to find definition for function \"g\"");
  EXPECT_PRED2(Contains, VerifyError("a = Neg(b) {T=float}\nb = Neg(a) {T=float}"), "cycle");
  EXPECT_EQ(VerifyError("v = VariableV2 {dtype=float, shape=[]}\nn = Neg(v)\na = Assign(v, n)"),
            "it holds");
  EXPECT_EQ(VerifyError(x + "a = Assign(x, x)"),
            "node 'a' (Assign): input 0 is to be float_ref, node 'x' gives float");
  EXPECT_EQ(VerifyError("func f(a: float) -> (r: int32) { return r=a }"),
            "function 'f': result 'r' is to be int32, node 'a' gives float");
  EXPECT_EQ(VerifyError("func f(a: float) -> () { b = Neg(a) {T=int32} }"),
            "function 'f': node 'b' (Neg): input 0 is to be int32, node 'a' gives float");
}

TEST(Verify, WhatPassesCanBreak) {
  auto g = MustParse("x = Const {value=float[]{1}}\ny = Neg(x)");
  Node* y = g->Find("y");
  auto other = MustParse("z = Const {value=float[]{1}}");
  g->SetInput(y, 0, {other->Find("z"), 0});
  EXPECT_PRED2(Contains, Verify(*g).message(), "not in the graph");
  g->SetInput(y, 0, {g->Find("x"), 1});
  EXPECT_PRED2(Contains, Verify(*g).message(), "reads output 1 of node 'x'");
  g->SetInput(y, 0, {g->Find("x"), -1});
  EXPECT_FALSE(Verify(*g).ok());
  g->SetInputs(y, {});
  EXPECT_PRED2(Contains, Verify(*g).message(), "is given 0 inputs, wants 1");
  g->SetInputs(y, {{g->Find("x"), 0}});
  y->AttrsToChange().Set("T", Dtype::kDouble);
  EXPECT_PRED2(Contains, Verify(*g).message(), "its types are not those");
  y->AttrsToChange().Set("T", Dtype::kFloat);
  EXPECT_TRUE(Verify(*g).ok());
  g->AddControlInput(y, y);
  EXPECT_PRED2(Contains, Verify(*g).message(), "waits for itself");
  auto f = MustParse("func f(a: float) -> (r: float) { b = Neg(a)\nreturn r=b }");
  Function* fn = f->library()->Find("f");
  fn->args[0]->AttrsToChange().Set("index", 1);
  EXPECT_PRED2(Contains, VerifyAll(*f).message(), "function 'f': argument 'a'");
  fn->args[0]->AttrsToChange().Set("index", 0);
  ASSERT_TRUE(VerifyAll(*f).ok());
  // More of a call than the signature has.
  AttrMap attrs;
  attrs.Set("T", Dtype::kFloat);
  attrs.Set("index", 99);
  Node* more = *fn->body->Add("more", "_Arg", {}, attrs);
  EXPECT_PRED2(Contains, VerifyAll(*f).message(), "node 'more' (_Arg) is no argument or result");
  fn->body->Remove(more);
  ASSERT_TRUE(fn->body->Add("result", "_Retval", {{fn->args[0], 0}}, attrs).ok());
  EXPECT_PRED2(Contains, VerifyAll(*f).message(), "node 'result' (_Retval) is no argument or");
}

TEST(Verify, WhatRemovedNodesAndOtherGraphsLeaveOpen) {
  auto g = MustParse("x = Const {value=float[]{1}}\ny = Neg(x)\nz = NoOp(^x)");
  Node* x = g->Find("x");
  g->SetInput(g->Find("y"), 0, {x, 0});
  ASSERT_TRUE(VerifyChanges(*g).ok());
  g->Remove(x);
  EXPECT_EQ(g->Find("y")->input(0).node, nullptr);
  EXPECT_PRED2(Contains, VerifyChanges(*g).message(), "'y' (Neg): reads a node that is not in");
  g->Remove(g->Find("y"));
  EXPECT_PRED2(Contains, VerifyChanges(*g).message(), "'z' (NoOp): waits for a node that is not");
  g->SetControlInputs(g->Find("z"), {});
  EXPECT_TRUE(VerifyChanges(*g).ok());
  {
    auto other = MustParse("a = Const {value=float[]{1}}\nb = Const {value=float[]{1}}");
    ASSERT_TRUE(g->Add("n", "Neg", {{other->Find("b"), 0}},
                       [] {
                         AttrMap attrs;
                         attrs.Set("T", Dtype::kFloat);
                         return attrs;
                       }())
                    .ok());
    g->AddControlInput(g->Find("z"), other->Find("a"));
  }
  // The other graph is gone.
  EXPECT_PRED2(Contains, VerifyChanges(*g).message(), "'z' (NoOp): waits for a node that is not");
}

// Names of the nodes that VerifyChanges would look at.
std::vector<std::string> Touched(const Graph& g) {
  std::vector<std::string> names;
  for (int id : g.touched()) {
    if (const Node* n = g.NodeOf(id)) names.push_back(n->name());
  }
  std::ranges::sort(names);
  return names;
}

TEST(Verify, EachWayToChangeANodeTouchesItOrItsReaders) {
  constexpr absl::string_view kText = R"(
x = Const {value=float[]{1}}
y = Neg(x)
z = AddN(y, y, ^x)
w = IdentityN(x, z)
)";
  using Names = std::vector<std::string>;
  const auto after = [&](auto change) {
    auto g = MustParse(kText);
    EXPECT_EQ(Touched(*g).size(), 4u) << "new nodes";
    EXPECT_TRUE(VerifyChanges(*g).ok());
    EXPECT_EQ(Touched(*g), Names());
    change(*g);
    Names touched = Touched(*g);
    EXPECT_EQ(VerifyChanges(*g), Verify(*g));
    // A graph that moves takes its list along.
    Graph moved = std::move(*g);
    moved.AddNode("added", "NoOp").value();
    EXPECT_TRUE(VerifyChanges(moved).ok() || !touched.empty());
    return touched;
  };
  const auto at = [](Graph& g, absl::string_view name) { return g.Find(name); };
  EXPECT_EQ(after([&](Graph& g) {
              const Node* y = at(g, "y");
              (void)y->attrs().Find("T");
              (void)g.TopologicalOrder();
              (void)g.Clone();
              (void)g.ResolveTypes(at(g, "y"));
            }),
            Names())
      << "reading is no change";
  EXPECT_EQ(after([&](Graph& g) { at(g, "y")->AttrsToChange().Set("T", Dtype::kDouble); }),
            Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { at(g, "y")->EraseAttr("T"); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { at(g, "y")->AttrsToChange() = {}; }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { at(g, "y")->SetInputTypes({Dtype::kDouble}); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { at(g, "y")->SetOutputTypes({Dtype::kDouble}); }),
            (Names{"y", "z"}));
  EXPECT_EQ(after([&](Graph& g) { at(g, "x")->SetOutputTypes({}); }), (Names{"w", "x", "y", "z"}));
  EXPECT_EQ(after([&](Graph& g) { at(g, "x")->GrowOutputs(2); }), Names{"x"});
  EXPECT_EQ(after([&](Graph& g) {
              Node* y = at(g, "y");
              y->AttrsToChange().Set("T", Dtype::kDouble);
              EXPECT_TRUE(g.ResolveTypes(y).ok());
            }),
            (Names{"y", "z"}));
  EXPECT_EQ(after([&](Graph& g) { EXPECT_TRUE(g.Rename(at(g, "y"), "-").ok()); }), Names{"-"});
  EXPECT_EQ(after([&](Graph& g) { g.SetOp(at(g, "y"), "AddN"); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { g.SetInput(at(g, "y"), 0, {at(g, "w"), 0}); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { g.SetInput(at(g, "y"), 0, {at(g, "x"), 1}); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { g.SetInputs(at(g, "y"), {}); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { g.AddInput(at(g, "y"), {at(g, "x"), 0}); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { g.AddControlInput(at(g, "y"), at(g, "y")); }), Names{"y"});
  EXPECT_EQ(after([&](Graph& g) { g.RemoveControlInput(at(g, "z"), at(g, "x")); }), Names{"z"});
  EXPECT_EQ(after([&](Graph& g) { g.SetControlInputs(at(g, "z"), {}); }), Names{"z"});
  EXPECT_EQ(after([&](Graph& g) {
              g.ReplaceAllUses({at(g, "x"), 0}, {at(g, "z"), 0});
            }),
            (Names{"w", "y"}));
  EXPECT_EQ(after([&](Graph& g) {
              g.ReplaceOtherUses({at(g, "x"), 0}, {at(g, "y"), 0});
            }),
            Names{"w"});
  EXPECT_EQ(after([&](Graph& g) { g.ReplaceControlUses(at(g, "x"), at(g, "y")); }), Names{"z"});
  EXPECT_EQ(after([&](Graph& g) { g.Remove(at(g, "y")); }), Names{"z"});
  EXPECT_EQ(after([&](Graph& g) { g.Remove(at(g, "x")); }), (Names{"w", "y", "z"}));
  EXPECT_EQ(after([&](Graph& g) { g.Prune({at(g, "y")}); }), Names());
  EXPECT_EQ(after([&](Graph& g) { EXPECT_TRUE(g.CopyFrom(*MustParse("n = NoOp"), "p/").ok()); }),
            Names{"p/n"});
}

TEST(Verify, FunctionsMayChangeWithoutTheNode) {
  auto g = MustParse(R"(
x = Const {value=float[]{1}}
call = PartitionedCall(x) {f=@f}
direct = f(x)
func f(a: float) -> (r: float) { return r=a }
)");
  ASSERT_TRUE(VerifyChanges(*g).ok());
  EXPECT_EQ(Touched(*g), (std::vector<std::string>{"call", "direct"}));
  g->Remove(g->Find("direct"));
  g->library()->Remove("f");
  EXPECT_PRED2(Contains, VerifyChanges(*g).message(), "Failed to find definition for function");
  g->Remove(g->Find("call"));
  EXPECT_TRUE(VerifyChanges(*g).ok());
  EXPECT_TRUE(g->touched().empty());
}

TEST(Verify, ChangesAreVerifiedAsAllIs) {
  constexpr absl::string_view kText = R"(
a = Const {value=float[]{1}}
b = Const {value=double[]{1}}
c = Neg(a)
d = Neg(b)
e = AddN(a, c)
f = IdentityN(a, b)
g = NoOp(^a, ^d)
h = Identity(f:1, ^g)
i = PartitionedCall(e) {f=@call}
j = Neg(i)
k = AddN(j, e, c)
func call(a: float) -> (r: float) { return r=a }
)";
  std::mt19937 rng(1);
  auto g = MustParse(kText);
  int broken = 0, wrong = 0, right = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const std::vector<Node*> nodes = g->Nodes();
    const auto any = [&] { return nodes[rng() % nodes.size()]; };
    Node* n = any();
    const Dtype type = rng() % 4 == 0 ? Dtype::kDouble : Dtype::kFloat;
    switch (rng() % 11) {
      case 0:
        // What a constant gives is wrong or right for its readers alone.
        n->AttrsToChange().Set(n->Is("Const") ? "dtype" : "T", type);
        if (n->Is("Const")) {
          ASSERT_TRUE(g->ResolveTypes(n).ok());
        }
        break;
      case 1:
      case 2:
        if (n->num_inputs() > 0) {
          const int i = static_cast<int>(rng()) & 1 ? 0 : n->num_inputs() - 1;
          g->SetInput(n, i, {any(), rng() % 8 == 0 ? 1 : 0});
        }
        break;
      case 3:
        g->AddControlInput(n, any());
        break;
      case 4:
        if (!n->control_inputs().empty()) g->RemoveControlInput(n, n->control_inputs()[0]);
        break;
      case 5:
        if (n->uses().empty() || rng() % 8 == 0) g->Remove(n);
        break;
      case 6:
        EXPECT_TRUE(g->Rename(n, g->FreeName(rng() % 8 == 0 ? "-" : "r")).ok());
        break;
      case 7:
        g->SetOp(n, rng() % 2 == 0 ? "Neg" : "Abs");
        break;
      case 8:
        n->SetOutputTypes({type});
        break;
      case 9:
        (void)g->ResolveTypes(n);
        break;
      case 10:
        g->ReplaceAllUses({n, 0}, {any(), 0});
        break;
    }
    const Status all = Verify(*g);
    ASSERT_EQ(VerifyChanges(*g), all) << turn;
    broken = all.ok() ? 0 : broken + 1;
    ++(all.ok() ? right : wrong);
    if (all.ok()) {
      // A graph that has not been asked yet has the same order.
      const auto copy = *g->Clone();
      const auto order = *g->TopologicalOrder(), fresh = *copy->TopologicalOrder();
      ASSERT_TRUE(std::ranges::equal(order, fresh, {}, &Node::name, &Node::name)) << turn;
    }
    if (broken > 4 || g->num_nodes() < 6) {
      g = MustParse(kText);
      broken = 0;
      ASSERT_TRUE(VerifyChanges(*g).ok());
    }
  }
  EXPECT_GT(right, 2000);
  EXPECT_GT(wrong, 2000);
}

}  // namespace
}  // namespace smelt
