// Attributes that nodes leave out are inferred, and graphs are verified.
#include "smelt/graph/verify.h"

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
  y->attrs().Set("T", Dtype::kDouble);
  EXPECT_PRED2(Contains, Verify(*g).message(), "its types are not those");
  y->attrs().Set("T", Dtype::kFloat);
  EXPECT_TRUE(Verify(*g).ok());
  g->AddControlInput(y, y);
  EXPECT_PRED2(Contains, Verify(*g).message(), "waits for itself");
  auto f = MustParse("func f(a: float) -> (r: float) { b = Neg(a)\nreturn r=b }");
  Function* fn = f->library()->Find("f");
  fn->args[0]->attrs().Set("index", 1);
  EXPECT_PRED2(Contains, VerifyAll(*f).message(), "function 'f': argument 'a'");
  fn->args[0]->attrs().Set("index", 0);
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

}  // namespace
}  // namespace smelt
