// What rules of rewriter.h have beside the graph: names, types, shapes, copies; and which functions
// stand for each other. tests/grappler has the rules.
#include "smelt/optimize/rewrite/rewriter.h"

#include "gtest/gtest.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/implementations.h"

namespace smelt {
namespace {

std::string plain_name, with_suffix, with_word, taken, taken_again;

StatusOr<Rewritten> TakeNames(Node& node, Rewriter& rewriter) {
  if (!IsRoot(node)) return Rewriter::No();  // the copy
  plain_name = rewriter.Name(node);
  with_suffix = rewriter.Name(node, "Mul_Sqrt");
  with_word = rewriter.Name(node, "", "my_rewrite_");
  ASSIGN_OR_RETURN(const Node* copy, rewriter.Copy(node, plain_name));
  EXPECT_EQ(rewriter.graph().Find(plain_name), copy);
  EXPECT_EQ(copy->op(), node.op());
  EXPECT_EQ(copy->input(0), node.input(0));
  EXPECT_EQ(copy->input(1), node.input(1));
  taken = rewriter.Name(node);
  RETURN_IF_ERROR(rewriter.Copy(node, taken).status());
  taken_again = rewriter.Name(node);
  EXPECT_EQ(rewriter.shape(node.input(0)), PartialShape::Of({2, 2}));
  EXPECT_EQ(rewriter.shape({&node, 0}), PartialShape::Of({2, 2}));
  return Rewriter::No();
}

Status RunNamingRule(Graph& graph) {
  static constexpr Rule kRule = {"my_stg", {"AddV2"}, TakeNames, "nothing"};
  const Rule* const rules[] = {&kRule};
  return RunRules(rules, "my_opt", Toggle::kOn, graph, PassContext());
}

// upstream graph_optimizer_stage_test ParseNodeNameAndScopeInScope
// upstream graph_optimizer_stage_test OptimizedNodeName
// upstream graph_optimizer_stage_test UniqueOptimizedNodeName
// upstream graph_optimizer_stage_test UniqueOptimizedNodeNameWithUsedNodeNames
// upstream graph_optimizer_stage_test GetInputNodeAndProperties
// upstream graph_optimizer_stage_test AddNodes
TEST(Rewriter, NamesWhatARuleMakesAndKnowsWhatItReads) {
  const auto graph = *ParseGraph(
      "a = Placeholder {dtype=float, shape=[2,2]}\n"
      "b = Placeholder {dtype=float, shape=[2,2]}\n"
      "a/b/c/Add = AddV2(a, b) {T=float, _root=true}\n");
  ASSERT_TRUE(RunNamingRule(*graph).ok());
  EXPECT_EQ(plain_name, "a/b/c/my_opt/my_stg_Add");
  EXPECT_EQ(with_suffix, "a/b/c/my_opt/my_stg_Add_Mul_Sqrt");
  EXPECT_EQ(with_word, "a/b/c/my_opt/my_stg_my_rewrite_Add");
  EXPECT_EQ(taken, "a/b/c/my_opt/my_stg_Add_unique0");
  EXPECT_EQ(taken_again, "a/b/c/my_opt/my_stg_Add_unique1");
}

// upstream graph_optimizer_stage_test ParseNodeNameAndScopeInRoot
TEST(Rewriter, NamesWithoutAScope) {
  const auto graph = *ParseGraph(
      "a = Placeholder {dtype=float, shape=[2,2]}\n"
      "Add = AddV2(a, a) {T=float, _root=true}\n");
  ASSERT_TRUE(RunNamingRule(*graph).ok());
  EXPECT_EQ(plain_name, "my_opt/my_stg_Add");
}

// The name of the function of `graph` that stands for `called` on `device`.
std::string StandIn(const Graph& graph, absl::string_view called, absl::string_view device) {
  const FunctionLibrary& library = *graph.library();
  return ImplementationFor(library, library.Find(called), device)->name();
}

std::string FunctionOf(absl::string_view name, absl::string_view attrs,
                       absl::string_view type = "float") {
  return absl::StrCat("func ", name, "(a: ", type, ") -> (r: ", type, ") {", attrs,
                      "} {\n  n = Identity(a) {T=", type, "}\n  return r=n\n}\n\n");
}

// upstream function_api_info_test ParseTags
TEST(Implementations, ThoseOfOneInterfaceStandForEachOther) {
  const auto graph = *ParseGraph(absl::StrCat(
      FunctionOf("cpu", "api_implements=\"stuff\", api_preferred_device=\"CPU\""),
      FunctionOf("gpu", "api_implements=\"stuff\", api_preferred_device=\"GPU\""),
      FunctionOf("things", "api_implements=\"things\""), FunctionOf("alone", "_noinline=true")));
  EXPECT_EQ(StandIn(*graph, "cpu", "GPU"), "gpu");
  EXPECT_EQ(StandIn(*graph, "gpu", "CPU"), "cpu");
  EXPECT_EQ(StandIn(*graph, "cpu", "CPU"), "cpu");
  EXPECT_EQ(StandIn(*graph, "cpu", "TPU"), "cpu");
  EXPECT_EQ(StandIn(*graph, "cpu", ""), "cpu");
  EXPECT_EQ(StandIn(*graph, "things", "CPU"), "things");
  EXPECT_EQ(StandIn(*graph, "alone", "CPU"), "alone");
}

// upstream function_api_info_test ComplexFunctionLib
TEST(Implementations, OfGradientsGradients) {
  const auto both = [](absl::string_view device) {
    const std::string common =
        absl::StrCat("api_implements=\"stuff\", api_preferred_device=\"", device, "\", ");
    return absl::StrCat(
        FunctionOf(device, absl::StrCat(common, "backward_function_name=\"", device, "_g\"")),
        FunctionOf(absl::StrCat(device, "_g"),
                   absl::StrCat(common, "forward_function_name=\"", device, "\"")));
  };
  const auto graph = *ParseGraph(absl::StrCat(both("CPU"), both("GPU")));
  EXPECT_EQ(StandIn(*graph, "CPU", "GPU"), "GPU");
  EXPECT_EQ(StandIn(*graph, "GPU", "CPU"), "CPU");
  EXPECT_EQ(StandIn(*graph, "CPU_g", "GPU"), "GPU_g");
  EXPECT_EQ(StandIn(*graph, "GPU_g", "CPU"), "CPU_g");
}

// TensorFlow refuses the whole library; here one of other types stands for nothing.
// upstream function_api_info_test MismatchedArguments
TEST(Implementations, NotOneOfOtherTypes) {
  const auto graph = *ParseGraph(absl::StrCat(
      FunctionOf("cpu", "api_implements=\"stuff\", api_preferred_device=\"CPU\""),
      FunctionOf("gpu", "api_implements=\"stuff\", api_preferred_device=\"GPU\"", "int32")));
  EXPECT_EQ(StandIn(*graph, "cpu", "GPU"), "cpu");
}

}  // namespace
}  // namespace smelt
