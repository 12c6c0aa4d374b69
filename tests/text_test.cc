// The text form of graphs.
#include "smelt/graph/text.h"

#include <bit>
#include <limits>

#include "smelt/graph/verify.h"
#include "tests/graph_of_text.h"

namespace smelt {
namespace {

std::string AttrError(absl::string_view text) {
  auto a = ParseAttrText(text);
  return a.ok() ? "it parses: " + PrintAttr(*a) : std::string(a.status().message());
}

void ExpectSameNodes(const Graph& a, const Graph& b) {
  const std::vector<Node*> x = a.Nodes(), y = b.Nodes();
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    SCOPED_TRACE(x[i]->name());
    EXPECT_EQ(x[i]->name(), y[i]->name());
    EXPECT_EQ(x[i]->op(), y[i]->op());
    EXPECT_EQ(x[i]->device, y[i]->device);
    EXPECT_EQ(x[i]->extra, y[i]->extra);
    EXPECT_TRUE(x[i]->attrs() == y[i]->attrs()) << PrintNode(*x[i]) << "\n" << PrintNode(*y[i]);
    EXPECT_EQ(x[i]->input_types, y[i]->input_types);
    EXPECT_EQ(x[i]->output_types, y[i]->output_types);
    EXPECT_EQ(x[i]->opaque_outputs, y[i]->opaque_outputs);
    ASSERT_EQ(x[i]->inputs().size(), y[i]->inputs().size());
    for (size_t k = 0; k < x[i]->inputs().size(); ++k) {
      EXPECT_EQ(EndpointName(x[i]->inputs()[k]), EndpointName(y[i]->inputs()[k]));
    }
    ASSERT_EQ(x[i]->control_inputs().size(), y[i]->control_inputs().size());
    for (size_t k = 0; k < x[i]->control_inputs().size(); ++k) {
      EXPECT_EQ(x[i]->control_inputs()[k]->name(), y[i]->control_inputs()[k]->name());
    }
  }
}

// Prints, parses and compares; returns what parsed.
std::unique_ptr<Graph> RoundTrip(const Graph& g) {
  const std::string text = PrintGraph(g);
  auto again = MustParse(text);
  ExpectSameNodes(g, *again);
  EXPECT_EQ(PrintGraph(*again), text);
  return again;
}

// ---- attributes

struct AttrCase {
  Attr value;
  const char* text;
};

Attr Splat(Dtype dtype, PartialShape shape, Tensor values, std::string problem = "",
           std::string wire = "") {
  auto t = std::make_shared<TensorValue>();
  t->dtype = dtype;
  t->shape = std::move(shape);
  t->values = std::move(values);
  t->problem = std::move(problem);
  t->wire = std::move(wire);
  return Attr(std::shared_ptr<const TensorValue>(std::move(t)));
}

Attr Func(const char* name, AttrMap attrs) {
  return FuncAttr{name, std::make_shared<const AttrMap>(std::move(attrs))};
}

TEST(AttrText, EveryKindRoundTrips) {
  AttrMap inner;
  inner.Set("T", Dtype::kFloat);
  inner.Set("odd name", 1);
  const float inf = std::numeric_limits<float>::infinity();
  const auto nan = [](uint32_t bits) { return Attr(std::bit_cast<float>(bits)); };
  const std::vector<std::shared_ptr<const TensorValue>> tensors = {
      TensorValue::Of(Tensor::Scalar<int32_t>(7)), TensorValue::Of(Tensor::Vector<float>({}))};
  const AttrCase cases[] = {
      {Attr(), "none"},
      {3, "3"},
      {int64_t{-7}, "-7"},
      {std::numeric_limits<int64_t>::min(), "-9223372036854775808"},
      {1.0f, "1.0f"},
      {0.1f, "0.1f"},
      {-0.0f, "-0.0f"},
      {1e-10f, "1e-10f"},
      {std::numeric_limits<float>::denorm_min(), "1e-45f"},
      {std::numeric_limits<float>::max(), "3.4028235e+38f"},
      {inf, "inff"},
      {-inf, "-inff"},
      {nan(0x7fc00000), "nanf"},
      {nan(0xffc00000), "-nanf"},
      {nan(0x7f800001), "nanf(0x7f800001)"},
      {true, "true"},
      {false, "false"},
      {"", "\"\""},
      {std::string("a\"b\0c\n\xff\x31", 8), R"("a\"b\x00\x63\n\xff\x31")"},
      {Dtype::kFloat, "float"},
      {RefType(Dtype::kInt32), "int32_ref"},
      {Dtype::kFloat8E4m3fn, "float8_e4m3fn"},
      {Dtype::kInvalid, "invalid"},
      {static_cast<Dtype>(77), "dtype(77)"},
      {static_cast<Dtype>(100), "dtype(100)"},
      {PartialShape(Shape({})), "[]"},
      {PartialShape::Of({-1, 3}), "[?,3]"},
      {PartialShape::Unknown(), "shape(?)"},
      {Tensor::Scalar<int32_t>(7), "int32[]{7}"},
      {Tensor::Vector<float>({}), "float[0]{}"},
      {FuncAttr{"f", nullptr}, "@f"},
      {FuncAttr{"odd name", nullptr}, "@\"odd name\""},
      {FuncAttr{"1", nullptr}, "@1"},
      {Func("f", inner), "@f{T=float, \"odd name\"=1}"},
      {PlaceholderAttr{"T"}, "$T"},
      {EmptyList{}, "list()"},
      {std::vector<std::string>{"a", ""}, "list(\"a\", \"\")"},
      {std::vector<int64_t>{1, -2}, "list(1, -2)"},
      {std::vector<float>{1, inf}, "list(1.0f, inff)"},
      {std::vector<bool>{true, false}, "list(true, false)"},
      {std::vector<Dtype>{Dtype::kFloat, Dtype::kString}, "list(float, string)"},
      {std::vector<PartialShape>{PartialShape::Of({2, -1}), PartialShape::Unknown()},
       "list([2,?], shape(?))"},
      {tensors, "list(int32[]{7}, float[0]{})"},
      {std::vector<FuncAttr>{{"f", nullptr}, {"g/h", nullptr}}, "list(@f, @g/h)"},
      {std::vector<std::string>{}, "list:string()"},
      {std::vector<int64_t>{}, "list:int()"},
      {std::vector<float>{}, "list:float()"},
      {std::vector<bool>{}, "list:bool()"},
      {std::vector<Dtype>{}, "list:type()"},
      {std::vector<PartialShape>{}, "list:shape()"},
      {std::vector<std::shared_ptr<const TensorValue>>{}, "list:tensor()"},
      {std::vector<FuncAttr>{}, "list:func()"},
  };
  for (const AttrCase& c : cases) {
    EXPECT_EQ(PrintAttr(c.value), c.text);
    auto parsed = ParseAttrText(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_TRUE(*parsed == c.value) << c.text;
  }
}

TEST(AttrText, TensorsRoundTrip) {
  const auto small = [](auto... bits) {
    std::vector<Half> v;
    (v.push_back(std::bit_cast<Half>(static_cast<uint16_t>(bits))), ...);
    return Tensor::Vector(std::span<const Half>(v));
  };
  const auto raw = [](Dtype dtype, std::initializer_list<int> bytes) {
    Tensor t = *Tensor::Make(dtype, Shape({static_cast<int64_t>(bytes.size())}));
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(t.raw()));
    return t;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float odd_nan = std::bit_cast<float>(0x7fc00001u);
  const PartialShape two = PartialShape::Of({2});
  const AttrCase cases[] = {
      {Tensor::Vector<float>({1, -2.5f, 0.1f, nan, -nan}), "float[5]{1, -2.5, 0.1, nan, -nan}"},
      {Tensor::Vector<float>({1, odd_nan}), R"(float[2]hex:"0000803f0100c07f")"},
      {Tensor::Vector<double>({0.1, 1e300}), "double[2]{0.1, 1e+300}"},
      {Tensor::Vector<double>({double{odd_nan}}), R"(double[1]hex:"000000200000f87f")"},
      {small(0x3e00, 0x7e00, 0x2e66, 0x7c00, 0x0001), "half[5]{1.5, nan, 0.1, inf, 6e-08}"},
      {small(0x7e01), R"(half[1]hex:"017e")"},
      {Tensor::Vector<Bfloat16>({Bfloat16(3.14159f)}), "bfloat16[1]{3.14}"},
      {Tensor::Vector<std::complex<float>>({{1, -2}}), "complex64[1]{(1, -2)}"},
      {Tensor::Vector<std::complex<double>>({{0.1, -0.0}}), "complex128[1]{(0.1, -0)}"},
      {Tensor::Vector<std::complex<float>>({{odd_nan, 0}}),
       R"(complex64[1]hex:"0100c07f00000000")"},
      {Tensor::Vector<int8_t>({-128, 127}), "int8[2]{-128, 127}"},
      {Tensor::Vector<uint8_t>({255}), "uint8[1]{255}"},
      {Tensor::Vector<uint64_t>({~uint64_t{0}}), "uint64[1]{18446744073709551615}"},
      {Tensor::Vector<int64_t>({INT64_MIN}), "int64[1]{-9223372036854775808}"},
      {Tensor::Vector<bool>({true, false}), "bool[2]{true, false}"},
      {Tensor::Vector<std::string>({"a", "\xff"}), R"(string[2]{"a", "\xff"})"},
      {raw(Dtype::kInt4, {7, 0xf8}), "int4[2]{7, -8}"},
      {raw(Dtype::kInt4, {8}), R"(int4[1]hex:"08")"},
      {raw(Dtype::kUint2, {3}), "uint2[1]{3}"},
      {raw(Dtype::kQint8, {0xff}), "qint8[1]{-1}"},
      {raw(Dtype::kFloat8E5m2, {0x3c}), R"(float8_e5m2[1]hex:"3c")"},
      {Splat(Dtype::kFloat, PartialShape::Of({1 << 20, 1 << 20}), Tensor::Vector<float>({0.5f})),
       "float[1048576,1048576]{0.5}"},
      {Splat(Dtype::kFloat, PartialShape::Of({-1, 3}), Tensor::Vector<float>({1})),
       "float[?,3]{1}"},
      {Splat(Dtype::kFloat, PartialShape::Unknown(), Tensor()), "float(?)"},
      {Splat(Dtype::kFloat, two, Tensor()), "float[2]"},
      {Splat(Dtype::kFloat, two, Tensor::Vector<float>({})), "float[2]{}"},
      {Splat(Dtype::kInvalid, two, Tensor()), "invalid[2]"},
      {Splat(RefType(Dtype::kFloat), two, Tensor()), "float_ref[2]"},
      {Splat(Dtype::kResource, PartialShape(Shape()), Tensor(), "", "\x01z"),
       R"(resource[] wire:"\x01z")"},
      {Splat(Dtype::kFloat, two, Tensor::Vector<float>({1, 2, 3}), "too many"),
       R"(float[2]{1, 2, 3} problem="too many")"},
      {Splat(Dtype::kVariant, two, Tensor(), "no", "w"), R"(variant[2] problem="no" wire:"w")"},
  };
  for (const AttrCase& c : cases) {
    EXPECT_EQ(PrintAttr(c.value), c.text);
    auto parsed = ParseAttrText(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_TRUE(*parsed == c.value) << c.text << " gave " << PrintAttr(*parsed);
  }
}

TEST(AttrText, SixteenBitFloatsAllRoundTrip) {
  for (const Dtype dtype : {Dtype::kHalf, Dtype::kBfloat16}) {
    Tensor t = *Tensor::Make(dtype, Shape({1}));
    for (int bits = 0; bits < 65536; ++bits) {
      *static_cast<uint16_t*>(t.raw()) = static_cast<uint16_t>(bits);
      const std::string text = PrintAttr(Attr(t));
      auto parsed = ParseAttrText(text);
      ASSERT_TRUE(parsed.ok() && *parsed == Attr(t)) << text;
    }
  }
}

TEST(AttrText, HandlesPrintAsAProblem) {
  EXPECT_EQ(PrintAttr(Attr(Tensor::Scalar(Variant()))),
            R"(variant[] problem="values of type variant have no text form")");
}

TEST(AttrText, Errors) {
  EXPECT_EQ(AttrError(""), "1:1: expected the value of an attribute, not the end of the text");
  EXPECT_EQ(AttrError("3 4"), "1:3: expected the end of the value, not '4'");
  EXPECT_EQ(AttrError("0.5"), "1:1: expected a number (a float ends in f), not '0.5'");
  EXPECT_EQ(AttrError("9223372036854775808"),
            "1:1: expected a number (a float ends in f), not '9223372036854775808'");
  EXPECT_EQ(AttrError("1e40f"), "1:1: expected a number (a float ends in f), not '1e40f'");
  EXPECT_EQ(AttrError("flaot"), "1:1: expected a type, not 'flaot'");
  EXPECT_EQ(AttrError("\"abc"), "1:1: the string is not closed on its line");
  EXPECT_PRED2(Contains, AttrError(R"("\q")"), "1:1: escapes of a string");
  EXPECT_EQ(AttrError("[-1]"), "1:4: an unknown dimension is written ?");
  EXPECT_EQ(AttrError("[2,,3]"), "1:4: expected the size of a dimension, not ','");
  EXPECT_EQ(AttrError("list(1, 2.0f)"), "1:9: the elements of a list are of one kind");
  EXPECT_EQ(AttrError("list(list())"), "1:6: lists do not hold lists");
  EXPECT_EQ(AttrError("list:int(1)"), "1:10: list:int() is for empty lists only");
  EXPECT_EQ(AttrError("list($T)"), "1:6: the elements of a list are of one kind");
  EXPECT_EQ(AttrError("@f{a=1, a=2}"), "1:12: attribute 'a' is given twice");
  EXPECT_EQ(AttrError("dtype(256)"), "1:10: the number of a type is between 0 and 255");
  EXPECT_EQ(AttrError("float[2]{1, 2, 3}"), "1:6: a tensor of shape [2] is given 3 values");
  EXPECT_EQ(AttrError("int8[1]{128}"), "1:9: expected a value of type int8, not '128'");
  EXPECT_EQ(AttrError("int4[1]{8}"), "1:9: expected a value of type int4, not '8'");
  EXPECT_EQ(AttrError("half[1]{70000}"), "1:9: expected a value of type half, not '70000'");
  EXPECT_EQ(AttrError("uint64[1]{-1}"), "1:11: expected a value of type uint64, not '-1'");
  EXPECT_EQ(AttrError("bool[1]{1}"), "1:9: expected a value of type bool, not '1'");
  EXPECT_EQ(AttrError("bool[1]hex:\"02\""), "1:12: a bool is 0 or 1");
  EXPECT_EQ(AttrError("float[1]hex:\"00\""), "1:13: 2 hex digits are no values of type float");
  EXPECT_EQ(AttrError("float[1]hex:\"0000000g\""), "1:13: not a hex digit");
  EXPECT_EQ(AttrError("resource[1]{1}"), "1:12: values of type resource have no text form");
  EXPECT_EQ(AttrError("float_ref[1]{1}"), "1:13: values of type float_ref have no text form");
  EXPECT_EQ(AttrError("nanf(0x7f800000)"), "1:6: expected the 32 bits of a NaN, not '0x7f800000'");
  EXPECT_EQ(AttrError("3 \x80"), R"(1:3: expected the end of the value, not the byte '\x80')");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "@f{a=";
  EXPECT_PRED2(Contains, AttrError(deep), "functions are nested too deeply");
}

TEST(TensorText, Materialises) {
  const auto expect = [](absl::string_view text, const Tensor& want) {
    auto t = ParseTensorText(text);
    ASSERT_TRUE(t.ok()) << t.status();
    EXPECT_TRUE(t->Identical(want)) << text;
  };
  expect("float[2,2]{1, 2, 3, 4}", Tensor::Vector<float>({1, 2, 3, 4}).WithShape(Shape({2, 2})));
  expect("float[3]{0.5}", Tensor::Vector<float>({0.5f, 0.5f, 0.5f}));
  expect("int32[]{7}", Tensor::Scalar<int32_t>(7));
  expect("string[3]{\"a\", \"b\"}", Tensor::Vector<std::string>({"a", "b", "b"}));
  expect("bool[2]{true,false}", Tensor::Vector<bool>({true, false}));
  expect("complex64[1]{(1, -2)}", Tensor::Vector<std::complex<float>>({{1, -2}}));
  expect("half[2]{1.5, nan}",
         Tensor::Vector<Half>({Half(1.5f), Half(std::numeric_limits<float>::quiet_NaN())}));
  expect("float[0]{}", Tensor::Vector<float>({}));
  expect("float[2]", Tensor::Vector<float>({0, 0}));
  expect("float[2]hex:\"0000803f00000040\"", Tensor::Vector<float>({1, 2}));
}

TEST(TensorText, RefusesWhatNoTensorIs) {
  const auto error = [](absl::string_view text) {
    auto t = ParseTensorText(text);
    return t.ok() ? "it parses" : std::string(t.status().ToString());
  };
  const int64_t live = HeapLive();
  EXPECT_PRED2(Contains, error("float[1000000,1000000]{0.5}"),
               "INVALID_ARGUMENT: 1:1: a tensor of 1000000000000 elements of type float");
  EXPECT_PRED2(Contains, error("uint8[2147483649]"), "INVALID_ARGUMENT");
  EXPECT_PRED2(Contains, error("string[2147483648]{\"\"}"), "INVALID_ARGUMENT");
  EXPECT_PRED2(Contains, error("float[4611686018427387904,4]{1}"), "INVALID_ARGUMENT");
  EXPECT_EQ(HeapLive(), live);
  EXPECT_PRED2(Contains, error("float[?]{1}"), "not fully defined");
  EXPECT_PRED2(Contains, error("float(?){1}"), "not fully defined");
  EXPECT_PRED2(Contains, error("3"), "expected a tensor");
  EXPECT_PRED2(Contains, error("float[1]{1} problem=\"lost\""), "lost");
}

// ---- graphs

TEST(GraphText, ParsesTheExample) {
  auto g = MustParse(R"(
# a comment
x = Placeholder {dtype=float, shape=[?,10]}
w = Const {value=float[10,2]{0.5}} @"/device:CPU:0"
y = MatMul(x, w, ^init) {T=float, transpose_b=true}   # w and x come before, init after
axis = Const {value=int32[]{0}}
s = Split(axis, y) {num_split=2}
z = AddV2(s:0, s:1)
init = NoOp
)");
  const Node* y = g->Find("y");
  ASSERT_NE(y, nullptr);
  EXPECT_EQ(y->inputs()[1].node, g->Find("w"));
  ASSERT_EQ(y->control_inputs().size(), 1u);
  EXPECT_EQ(y->control_inputs()[0], g->Find("init"));
  EXPECT_TRUE(y->Bool("transpose_b"));
  EXPECT_EQ(g->Find("w")->device, "/device:CPU:0");
  EXPECT_EQ(g->Find("w")->Type("dtype"), Dtype::kFloat);
  EXPECT_EQ(g->Find("s")->num_outputs(), 2);
  EXPECT_EQ(g->Find("z")->Type("T"), Dtype::kFloat);
  EXPECT_EQ(g->Find("z")->inputs()[1].port, 1);
  EXPECT_TRUE(VerifyAll(*g).ok()) << VerifyAll(*g);
  RoundTrip(*g);
}

TEST(GraphText, PrintsOneLineANode) {
  auto g =
      MustParse("b = Neg(a, ^c)\na = Const {value=float[]{1}}\nc = NoOp @\"d\" extra=\"\\x01\"");
  EXPECT_EQ(PrintGraph(*g),
            "b = Neg(a, ^c) {T=float}\n"
            "a = Const {dtype=float, value=float[]{1}}\n"
            "c = NoOp @\"d\" extra=\"\\x01\"\n");
  EXPECT_EQ(PrintNode(*g->Find("c")), "c = NoOp @\"d\" extra=\"\\x01\"");
  RoundTrip(*g);
}

TEST(GraphText, OddNamesAndWordsAsNames) {
  auto g = MustParse(R"(
op = NoOp
func = NoOp(^op)
return = NoOp(^"a b")
extra = NoOp
outputs = NoOp
gradient = NoOp
"a b" = NoOp(^"-x", ^1)
"-x" = NoOp
1 = NoOp
>/.-_ = NoOp
"" = NoOp
"caf\xc3\xa9" = "odd op"("caf\xc3\xa9":2)
)");
  EXPECT_EQ(g->num_nodes(), 12);
  EXPECT_EQ(g->Find("caf\xc3\xa9")->num_outputs(), 3);
  RoundTrip(*g);
}

TEST(GraphText, OpaqueNodes) {
  auto g = MustParse(R"(
a = Custom(b:2, ^c) {kind=3}
b = Other @"d"
c = Third outputs=2
r = Neg(a) {T=float}
)");
  EXPECT_EQ(g->Find("a")->def(), nullptr);
  EXPECT_EQ(g->Find("a")->num_outputs(), 1);
  EXPECT_EQ(g->Find("b")->output_types, DtypeVector(3, Dtype::kInvalid));
  EXPECT_EQ(g->Find("c")->num_outputs(), 2);
  RoundTrip(*g);
  auto f = MustParse(
      "func f() -> (y: float) { a = Custom outputs=(\"out:0\", \"more:1\")\nreturn y=a:1 }");
  EXPECT_EQ(f->library()->Find("f")->body->Find("a")->opaque_outputs,
            (std::vector<std::string>{"out:0", "more:1"}));
  RoundTrip(*f);
}

TEST(GraphText, Errors) {
  EXPECT_EQ(ParseError("x = NoOp\n  ="), "2:3: expected a statement, not '='");
  EXPECT_EQ(ParseError("x y"), "1:1: expected a node (name = Op), op, func or gradient, not 'x'");
  EXPECT_EQ(ParseError("x = NoOp\ny = Neg(x {"), "2:11: node 'y': expected ')', not '{'");
  EXPECT_EQ(ParseError("x = Const {value=float[1]{a}}"),
            "1:27: node 'x': expected a value of type float, not 'a'");
  EXPECT_EQ(ParseError("x = NoOp\nx = NoOp"), "2:1: Node 'x' is not unique");
  EXPECT_EQ(ParseError("y = Neg(x) {T=float}"), "1:9: node 'y': there is no node 'x'");
  EXPECT_EQ(ParseError("y = NoOp(^x)"), "1:10: node 'y': there is no node 'x'");
  EXPECT_EQ(ParseError("x = Const {value=float[]{1}}\ny = Neg(x:1)"),
            "2:9: node 'y': node 'x' (Const) has 1 outputs, none is 1");
  EXPECT_EQ(ParseError("x = Const {value=float[]{1}}\ny = Add(x)"),
            "2:1: node 'y': Add is given 1 inputs, wants 2");
  EXPECT_PRED2(Contains, ParseError("x = Placeholder"), "1:1: node 'x': attribute 'dtype'");
  EXPECT_EQ(ParseError("x = NoOp(^x, x)"), "1:14: node 'x': control inputs stand after the others");
  EXPECT_PRED2(Contains, ParseError("x = O(y:99999999999999999999)"), "the number of an output");
  EXPECT_PRED2(Contains, ParseError("y = O(x:1073741823)\nx = P"), "too many outputs");
  EXPECT_EQ(ParseError("x = O outputs=-1"), "1:15: node 'x': no node has an output -1");
}

TEST(GraphText, OutputsAreBoundedByTheText) {
  std::string text = "a = Const {value=int32[]{0}}\n";
  for (int i = 0; i < 50; ++i)
    absl::StrAppend(&text, "s", i, " = Split(a, a) {num_split=1000000}\n");
  EXPECT_PRED2(Contains, ParseError(text), "too many outputs");
}

TEST(GraphText, LoopsOfVersionOne) {
  auto g = MustParse(R"(
i = Const {value=int32[]{0}}
e = Enter(i) {frame_name="w"}
m = Merge(e, n)
c = LoopCond(l)
l = Less(m, t)
t = Const(^m) {value=int32[]{9}}
s = Switch(m, c)
x = Exit(s)
a = AddV2(s:1, s:1)
n = NextIteration(a)
)");
  EXPECT_EQ(g->Find("m")->Int("N"), 2);
  EXPECT_EQ(g->Find("n")->Type("T"), Dtype::kInt32);
  EXPECT_TRUE(Verify(*g).ok()) << Verify(*g);
  RoundTrip(*g);
}

// ---- functions, ops, gradients

TEST(FunctionText, EveryPartRoundTrips) {
  const char* text =
      R"(p = PartitionedCall(x, h) {Tin=list(float, resource), Tout=list(float), f=@f}
x = Placeholder {dtype=float}
h = VarHandleOp {dtype=float, shape=[]}
op "My Op"(x: T, n: N*int32, r: Ref(float)) -> (y: list(Touts), z: "float") {attr T: type in {float, double} = float; attr N: int >= 1; attr Touts: list(type) >= 0 = list(); attr float: type; attr s: string in {"a", "b"} = "a" unknown "\x01"; flag stateful; flag commutative; flag aggregate; flag allows_uninitialized_input; flag distributed_communication; cpu "T in {float}"; unknown "\x02"}
op Plain() -> ()
func f(a: float {_user_specified_name="inputs"}, h: resource unknown "\x03") -> (r: float) where {flag stateful; control side; unknown "\x04"; arg 9 {x=1}; extra "\x05"} {_XlaMustCompile=true} {
  q = Relu(a, ^s) {T=float}
  s = NoOp
  return r=q ^side=s ^other=q
}
func g(a: T, l: list(Ts), n: N*float) -> (r: T, rest: list(Ts)) where {attr T: type; attr Ts: list(type); attr N: int} {
  b = Identity(a) {T=$T}
  return r=b, rest=(l, l:1)
}
func h(second: float, first: int32) -> (r: int32) {
  c = NoOp
  second = _Arg {T=float, _shape=[2], index=0}
  first = _Arg {T=int32, index=1}
  d = Neg(first) {T=int32}
  return r=d
}
func none() -> () {
}
gradient f = none
registered_gradient MatMul = f
registered_gradient Add = g
)";
  auto g = MustParse(text);
  EXPECT_EQ(PrintGraph(*g), text);
  const FunctionLibrary& lib = *g->library();
  const OpDef* op = lib.FindOp("My Op");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->inputs[1].number_attr, "N");
  EXPECT_TRUE(op->inputs[2].is_ref);
  EXPECT_EQ(op->outputs[1].type_attr, "float");
  EXPECT_EQ(op->attrs[1].minimum, 1);
  EXPECT_TRUE(op->stateful && op->commutative && op->aggregate && op->distributed_communication);
  const Function* f = lib.Find("f");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->args[0], f->body->Find("a"));
  EXPECT_EQ(f->args[1]->Type("T"), Dtype::kResource);
  EXPECT_EQ(f->results[0][0].node, f->body->Find("q"));
  EXPECT_EQ(f->control_results.size(), 2u);
  EXPECT_EQ(f->arg_attrs.at(0).Find("_user_specified_name")->get<std::string>()[0], "inputs");
  EXPECT_EQ(f->arg_attrs.count(9), 1u);
  EXPECT_EQ(f->signature.control_outputs, (std::vector<std::string>{"side"}));
  EXPECT_EQ(f->extra, "\x05");
  EXPECT_EQ(lib.Find("g")->results[1].size(), 2u);
  EXPECT_EQ(lib.Find("h")->args[0], lib.Find("h")->body->Find("second"));
  EXPECT_EQ(lib.gradients.at("f"), "none");
  EXPECT_EQ(lib.registered_gradients.size(), 2u);
  auto again = RoundTrip(*g);
  for (const Function* a : lib.Functions()) {
    const Function* b = again->library()->Find(a->name());
    ASSERT_NE(b, nullptr);
    ExpectSameNodes(*a->body, *b->body);
    EXPECT_EQ(PrintFunction(*a), PrintFunction(*b));
    EXPECT_TRUE(a->attrs == b->attrs && a->arg_attrs == b->arg_attrs);
  }
  EXPECT_TRUE(VerifyAll(*g).ok()) << VerifyAll(*g);
  EXPECT_FALSE(absl::StrContains(PrintGraph(*g, false), "func"));
}

TEST(FunctionText, AttributesOfTheFunctionDecideItsArguments) {
  auto g = MustParse(R"(
func f(a: T, l: list(Ts)) -> (r: T) where {attr T: type; attr Ts: list(type)}
    {T=float, Ts=list(float, int32)} {
  b = AddV2(a, l:0)
  return r=b
})");
  const Function* f = g->library()->Find("f");
  EXPECT_EQ(f->args[1]->output_types, (DtypeVector{Dtype::kFloat, Dtype::kInt32}));
  EXPECT_EQ(f->body->Find("b")->Type("T"), Dtype::kFloat);
  RoundTrip(*g);
}

TEST(FunctionText, CallsByOpName) {
  auto g = MustParse(R"(
x = Const {value=float[]{1}}
y = f(x)
z = Neg(y:1)
func f(a: float) -> (r: int32, s: float) { c = Const {value=int32[]{1}} return r=c, s=a }
)");
  EXPECT_EQ(g->Find("y")->output_types, (DtypeVector{Dtype::kInt32, Dtype::kFloat}));
  RoundTrip(*g);
}

TEST(FunctionText, Errors) {
  EXPECT_EQ(ParseError("func f() -> () {"),
            "1:17: function 'f': expected the name of a node, not the end of the text");
  EXPECT_EQ(ParseError("func f() -> (r: float) { }"),
            "1:1: function 'f': result 'r' is not returned");
  EXPECT_EQ(ParseError("func f(a: float) -> () { return r=a }"),
            "1:33: function 'f': 'r' is no result left to return");
  EXPECT_EQ(ParseError("func f(a: float) -> (r: float) { return r=(a, a) }"),
            "1:41: function 'f': result 'r' is one tensor");
  EXPECT_EQ(ParseError("func f(a: float) -> (r: float) { return r=a:1 }"),
            "1:43: function 'f': node 'a' (_Arg) has 1 outputs, none is 1");
  EXPECT_EQ(ParseError("func f(a: float) -> (r: float) {\n b = Neg(c)\n return r=b }"),
            "2:10: function 'f': node 'b': there is no node 'c'");
  EXPECT_EQ(ParseError("func f(a: float, a: float) -> () { }"),
            "1:1: function 'f': Node 'a' is not unique");
  EXPECT_EQ(ParseError("func f(a: float) -> () { b = _Arg {T=float, index=1} }"),
            "1:1: function 'f': node 'b' has index 1, which is no argument left to it");
  EXPECT_EQ(ParseError("func f() -> () { } func f() -> () { }"),
            "1:20: the name of function 'f' is taken");
  EXPECT_EQ(ParseError("func Neg() -> () { }"), "1:1: the name of function 'Neg' is taken");
  EXPECT_EQ(ParseError("op Neg() -> ()"), "1:1: op 'Neg' is one of TensorFlow's");
  EXPECT_EQ(ParseError("op A1(x float)"), "1:9: op 'A1': expected ':', not 'float'");
  EXPECT_EQ(ParseError("op A1(x: float) {flag fast}"),
            "1:23: op 'A1': expected a flag, not 'fast'");
  EXPECT_EQ(ParseError("gradient f = a\ngradient f = b\n"), "3:1: function 'f' has two gradients");
}

}  // namespace
}  // namespace smelt
