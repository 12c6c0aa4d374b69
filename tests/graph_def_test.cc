// Import and export of GraphDef and its function library: edges, types, errors, hostile claims.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph_def_of_text.h"

namespace smelt {
namespace {

const char* const kPlaceholder =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } ";

std::string Node1(absl::string_view op, absl::string_view rest) {
  return absl::StrCat(kPlaceholder, "node { name: 'y' op: '", op, "' ", rest, " }");
}

const char* const kFloatT = " attr { key: 'T' value { type: DT_FLOAT } }";

TEST(GraphDef, ForwardReferencesAndControl) {
  auto graph = FromText(
      absl::StrCat("node { name: 'z' op: 'AddV2' input: 'y:0' input: 'x' input: '^y' input: '^y'",
                   kFloatT, " } node { name: 'y' op: 'Relu' input: 'x'", kFloatT, "} ",
                   kPlaceholder, "versions { producer: 21 bad_consumers: 5 }"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  Node* z = (*graph)->Find("z");
  EXPECT_EQ(z->num_inputs(), 2);
  EXPECT_EQ(z->inputs()[0].node, (*graph)->Find("y"));
  EXPECT_EQ(z->control_inputs().size(), 1u);
  EXPECT_EQ(z->output_types[0], Dtype::kFloat);
}

TEST(GraphDef, Errors) {
  ExpectInvalid(Node1("Relu", absl::StrCat("input: 'nope'", kFloatT)),
                "Node 'y': Unknown input node 'nope'");
  ExpectInvalid(Node1("Relu", absl::StrCat("input: '^nope'", kFloatT)),
                "Node 'y': Unknown input node '^nope'");
  ExpectInvalid(Node1("Relu", absl::StrCat("input: 'x:1'", kFloatT)),
                "Node 'y': Connecting to invalid output 1 of source node x which has 1 outputs.");
  ExpectInvalid(Node1("Relu", absl::StrCat("input: 'x:-1'", kFloatT)), "Unknown input node");
  ExpectInvalid(Node1("Relu", absl::StrCat("input: 'x:99999999999'", kFloatT)),
                "Unknown input node");
  ExpectInvalid(Node1("Relu", absl::StrCat("input: '^x' input: 'x'", kFloatT)),
                "Node 'y': Control dependencies must come after regular dependencies");
  ExpectInvalid(Node1("Relu", kFloatT),
                "NodeDef expected inputs 'float' do not match 0 inputs specified; Op<name=Relu>; "
                "NodeDef: {{node y}}");
  ExpectInvalid(Node1("Relu", absl::StrCat("input: 'x' input: 'x'", kFloatT)),
                "do not match 2 inputs");
  ExpectInvalid(Node1("Relu", "input: 'x'"), "NodeDef missing attr 'T' from Op<name=Relu>");
  ExpectInvalid(Node1("Relu", "input: 'x' attr { key: 'T' value { i: 1 } }"),
                "AttrValue had value with type 'int' when 'type' expected for attr 'T'");
  ExpectInvalid(Node1("Relu", "input: 'x' attr { key: 'T' value { placeholder: 'T' } }"),
                "unexpected type 'placeholder'");
  ExpectInvalid(Node1("Relu", "input: 'x' attr { key: 'T' value { type: DT_INT32 } }"),
                "Input 0 of node y was passed float from x:0 incompatible with expected int32.");
  ExpectInvalid(absl::StrCat(kPlaceholder, kPlaceholder), "Node 'x' is not unique");
  ExpectInvalid("node { name: 'a:b' op: 'NoOp' }", "invalid characters");
  ExpectInvalid("node { name: '' op: 'NoOp' }", "invalid characters");
  ExpectError("node { name: ", absl::StatusCode::kDataLoss, "1:");
  ExpectError(std::string("\x0a\xff\xff\x00", 4), absl::StatusCode::kDataLoss, "binary");
}

TEST(GraphDef, RefsAndUnknownTypes) {
  // A reference may be read as a value, not the other way round.
  const std::string var =
      "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } "
      "attr { key: 'shape' value { shape {} } } } ";
  EXPECT_TRUE(
      FromText(var + absl::StrCat("node { name: 'r' op: 'Relu' input: 'v'", kFloatT, "}")).ok());
  ExpectInvalid(Node1("Assign", absl::StrCat("input: 'x' input: 'x'", kFloatT)),
                "expected float_ref");
  // Type numbers that no type has are kept and written back.
  auto graph = FromText(
      "node { name: 'n' op: 'NoOp' attr { key: '_a' value { list { type: [1, 77, 1000] } } } "
      "attr { key: '_b' value { type: 9999 } } attr { key: '_c' value { } } "
      "attr { key: '_d' value { list { } } } "
      "attr { key: '_e' value { shape { dim { size: -7 } dim { name: 'n' size: 3 } } } } "
      "attr { key: '_f' value { list { s: 'a' i: 3 } } } "
      "attr { key: '_g' value { func { name: 'f' attr { key: 'k' value { type: 500 } } } } } }");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto bytes = SerializeGraphDef(**graph, {});
  for (absl::string_view kept : {"n", "\x03"}) EXPECT_TRUE(absl::StrContains(*bytes, kept));
  EXPECT_TRUE(absl::StrContains(
      *bytes, absl::string_view("\x08\xf9\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)));
  auto again = ParseGraphDef(*bytes, nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*SerializeGraphDef(**again, {}), *bytes);
  // An attribute that is changed is written as changed, not as it was read.
  (*again)->Find("n")->AttrsToChange().Set("_b", Dtype::kInt32);
  (*again)->Find("n")->EraseAttr("_f");
  again = ParseGraphDef(*SerializeGraphDef(**again, {}), nullptr);
  EXPECT_EQ((*again)->Find("n")->Type("_b"), Dtype::kInt32);
  EXPECT_EQ((*again)->Find("n")->Find("_f"), nullptr);
}

TEST(GraphDef, UnknownOpsAreOpaque) {
  auto graph = FromText(
      absl::StrCat(kPlaceholder,
                   "node { name: 'o' op: 'NobodysOp' input: 'x' attr { key: 'a' value { i: 3 } } }",
                   "node { name: 'y' op: 'Relu' input: 'o:2'", kFloatT, "}"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  Node* o = (*graph)->Find("o");
  EXPECT_EQ(o->def(), nullptr);
  EXPECT_EQ(o->num_outputs(), 3);
  EXPECT_EQ(o->num_inputs(), 1);
  ExpectInvalid(absl::StrCat(kPlaceholder, "node { name: 'o' op: 'NobodysOp' }",
                             "node { name: 'y' op: 'Relu' input: 'o:2000000000'", kFloatT, "}"),
                "invalid output 2000000000");
}

TEST(GraphDef, ClaimedOutputsAreBounded) {
  std::string text = kPlaceholder;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&text, "node { name: 's", i,
                    "' op: 'Unpack' input: 'x' attr { key: 'num' value { i: 1000000 } }", kFloatT,
                    "}");
  }
  ExpectError(text, absl::StatusCode::kResourceExhausted, "too many tensors");
  ExpectInvalid(
      Node1("Unpack", absl::StrCat("input: 'x' attr { key: 'num' value { i: -1 } }", kFloatT)),
      "num");
}

std::string Func(absl::string_view name, absl::string_view rest) {
  return absl::StrCat("library { function { signature { name: '", name,
                      "' input_arg { name: 'a' type: DT_FLOAT } "
                      "output_arg { name: 'r' type: DT_FLOAT } } ",
                      rest, " } } ");
}

TEST(FunctionDef, RecursionListsAndControl) {
  const std::string text = absl::StrCat(
      "library { function { signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT } "
      "output_arg { name: 'r' type: DT_FLOAT } control_output: 'side' is_stateful: true } "
      "node_def { name: 'self' op: 'f' input: 'a' } "
      "node_def { name: 'call' op: 'PartitionedCall' input: 'self:r:0' "
      "  attr { key: 'Tin' value { list { type: DT_FLOAT } } } "
      "  attr { key: 'Tout' value { list { type: [DT_FLOAT, DT_INT32] } } } "
      "  attr { key: 'f' value { func { name: 'f' } } } } "
      "node_def { name: 'ids' op: 'IdentityN' input: 'call:output' input: '^self' input: '^a' "
      "  attr { key: 'T' value { list { type: [DT_FLOAT, DT_INT32] } } } } "
      "node_def { name: 'odd' op: 'NobodysOp' input: 'ids:output:1' } "
      "node_def { name: 'sum' op: 'AddV2' input: 'odd:second:3' input: 'odd:first:0'",
      kFloatT,
      "} "
      "ret { key: 'r' value: 'sum:z:0' } control_ret { key: 'side' value: 'ids' } "
      "arg_attr { key: 0 value { attr { key: '_user_specified_name' value { s: 'in' } } } } "
      "resource_arg_unique_id { key: 0 value: 7 } "
      "attr { key: '_XlaMustCompile' value { b: true } } } "
      "gradient { function_name: 'f' gradient_func: 'g' } }");
  auto graph = FromText(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Function* f = (*graph)->library()->Find("f");
  ASSERT_NE(f, nullptr);
  ASSERT_EQ(f->args.size(), 1u);
  EXPECT_EQ(f->args[0]->op(), "_Arg");
  EXPECT_EQ(f->args[0]->name(), "a");
  EXPECT_EQ(f->args[0]->Type("T"), Dtype::kFloat);
  EXPECT_EQ(f->args[0]->Int("index", -1), 0);
  EXPECT_EQ(f->body->Find("ids")->num_inputs(), 2);
  EXPECT_EQ(f->body->Find("ids")->inputs()[1].port, 1);
  EXPECT_EQ(f->body->Find("ids")->control_inputs().size(), 2u);
  EXPECT_EQ(f->body->Find("odd")->opaque_outputs,
            (std::vector<std::string>{"second:3", "first:0"}));
  EXPECT_EQ(f->body->Find("sum")->inputs()[1].port, 1);
  EXPECT_EQ(f->results[0][0].node, f->body->Find("sum"));
  ASSERT_EQ(f->control_results.size(), 1u);
  EXPECT_EQ(f->control_results[0].first, "side");
  EXPECT_TRUE(f->attrs.Find("_XlaMustCompile"));
  EXPECT_EQ(f->arg_attrs.at(0).size(), 1u);
  EXPECT_EQ((*graph)->library()->gradients.at("f"), "g");

  auto bytes = SerializeGraphDef(**graph, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  for (absl::string_view edge : {"odd:second:3", "call:output:1", "self:r:0", "sum:z:0", "^a"}) {
    EXPECT_TRUE(absl::StrContains(*bytes, edge)) << edge;
  }
  auto again = ParseGraphDef(*bytes, nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*SerializeGraphDef(**again, {}), *bytes);
}

TEST(FunctionDef, ListsOfSeveralOutputs) {
  // One name stands for a whole list, as input and as result.
  auto graph = FromText(
      "library { function { signature { name: 'f' input_arg { name: 'a' type_list_attr: 'Ta' } "
      "output_arg { name: 'r' type_list_attr: 'Ta' } output_arg { name: 'q' type: DT_INT32 } "
      "attr { name: 'Ta' type: 'list(type)' } } "
      "attr { key: 'Ta' value { list { type: [DT_FLOAT, DT_INT32] } } } "
      "node_def { name: 'n' op: 'IdentityN' input: 'a' "
      "  attr { key: 'T' value { list { type: [DT_FLOAT, DT_INT32] } } } } "
      "node_def { name: 'one' op: 'Identity' input: 'a:1' "
      "  attr { key: 'T' value { type: DT_INT32 } } } "
      "ret { key: 'r' value: 'n:output' } ret { key: 'q' value: 'one:output:0' } } }");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Function* f = (*graph)->library()->Find("f");
  EXPECT_EQ(f->args[0]->num_outputs(), 2);
  EXPECT_EQ(f->body->Find("n")->num_inputs(), 2);
  EXPECT_EQ(f->results[0].size(), 2u);
  auto bytes = SerializeGraphDef(**graph, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto again = ParseGraphDef(*bytes, nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*SerializeGraphDef(**again, {}), *bytes);
  // A result is named by one output or a whole list of outputs; other lists have no name on the
  // wire.
  (*again)->library()->Find("f")->results[0].pop_back();
  EXPECT_TRUE(SerializeGraphDef(**again, {}).ok());
  auto* results = &(*again)->library()->Find("f")->results[0];
  results->push_back(results->front());
  EXPECT_EQ(SerializeGraphDef(**again, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FunctionDef, DeferredTypes) {
  // A function whose types its caller decides: the body is read and written back.
  auto graph = FromText(
      "library { function { signature { name: 'p' input_arg { name: 'a' type_attr: 'T' } "
      "input_arg { name: 'l' type_attr: 'T' number_attr: 'N' } output_arg { name: 'r' type_attr: "
      "'T' } attr { name: 'T' type: 'type' } attr { name: 'N' type: 'int' } } "
      "node_def { name: 'y' op: 'AddV2' input: 'a' input: 'l:1' "
      "  attr { key: 'T' value { placeholder: 'T' } } } ret { key: 'r' value: 'y:z:0' } } }");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto bytes = SerializeGraphDef(**graph, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(absl::StrContains(*bytes, "l:1"));
  EXPECT_TRUE(absl::StrContains(*bytes, "y:z:0"));
  EXPECT_TRUE(ParseGraphDef(*bytes, nullptr).ok());
}

TEST(FunctionDef, Errors) {
  const std::string relu = absl::StrCat("node_def { name: 'y' op: 'Relu' input: 'a'", kFloatT, "}");
  ExpectInvalid(Func("f", relu), "In function 'f': Return r missing.");
  ExpectInvalid(Func("f", relu + "ret { key: 'r' value: 'y:nope:0' }"),
                "In function 'f': Return r: input y:nope:0 is not found");
  for (const char* name : {"y", "y:activations:1", "y:activations:x", "a:1", "b", ""}) {
    ExpectInvalid(Func("f", absl::StrCat(relu, "ret { key: 'r' value: '", name, "' }")),
                  "is not found");
  }
  ExpectInvalid(Func("f", absl::StrCat("node_def { name: 'y' op: 'Shape' input: 'a'", kFloatT,
                                       "} ret { key: 'r' value: 'y:output:0' }")),
                "Return r was passed int32 from y:0 incompatible with expected float.");
  ExpectInvalid(Func("f", relu + relu + "ret { key: 'r' value: 'a' }"),
                "In function 'f': Node 'y' is not unique");
  ExpectInvalid(Func("f", "node_def { name: 'a' op: 'NoOp' } ret { key: 'r' value: 'a' }"),
                "not unique");
  const std::string f = Func("f", "ret { key: 'r' value: 'a' }");
  EXPECT_TRUE(FromText(f).ok());
  const std::string bare = "function { signature { name: 'f' } } ";
  ExpectInvalid("library { " + bare + bare + "}", "Cannot add function 'f'");
  ExpectInvalid(Func("Relu", "ret { key: 'r' value: 'a' }"), "an op with the same name");
  ExpectInvalid(Func("f", "ret { key: 'r' value: 'a' } control_ret { key: 'c' value: 'none' }"),
                "Unknown node 'none'");
}

TEST(Text, NestingIsBounded) {
  std::string deep = "node { name: 'n' op: 'NoOp' attr { key: 'f' value { func { name: 'f' ";
  std::string close = "} } }";
  for (int i = 0; i < 100000; ++i) {
    deep += "attr { key: 'f' value { func { name: 'f' ";
    close += "} } }";
  }
  EXPECT_FALSE(FromText(deep + close + "}").ok());
  std::string unknown;
  for (int i = 0; i < 100000; ++i) unknown += "unknown { ";
  EXPECT_FALSE(FromText(unknown).ok());
}

TEST(GraphDef, LargeNodesAreLinear) {
  std::string text = "node { name: 'n' op: 'NoOp' ";
  for (int i = 0; i < 50000; ++i) {
    absl::StrAppend(&text, "attr { key: '_", (i * 7919) % 50000, "' value { i: 1 } } ");
  }
  auto graph = FromText(text + "}");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->Find("n")->attrs().size(), 50000u);
  text = "library { function { signature { name: 'f' ";
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&text, "output_arg { name: 'r", i, "' type: DT_FLOAT } ");
  }
  absl::StrAppend(&text, "} node_def { name: 'g' op: 'f' } ");
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&text, "ret { key: 'r", i, "' value: 'g:r", i, ":0' } ");
  }
  graph = FromText(text + "} }");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(SerializeGraphDef(**graph, {}).ok());
}

}  // namespace
}  // namespace smelt
