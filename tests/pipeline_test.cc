// The pass manager: what it skips, undoes, names and tells.
#include "smelt/optimize/pipeline.h"

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

using Outcome = PassRun::Outcome;

constexpr absl::string_view kText =
    "x = _Arg {T=float, index=0}\n"
    "i = Identity(x) {T=float}\n"
    "n = Neg(i) {T=float}\n"
    "r = _Retval(n) {T=float, index=0}\n";

int calls = 0;

Status Nothing(Graph&, const PassContext&) {
  ++calls;
  return OkStatus();
}
Status Rename(Graph& graph, const PassContext&) {
  ++calls;
  Node* n = graph.Find("n");
  return n == nullptr ? OkStatus() : graph.Rename(n, "renamed");
}
// Leaves Neg without what it negates.
Status Break(Graph& graph, const PassContext&) {
  graph.SetInputs(graph.Find("n"), {});
  return OkStatus();
}
Status BreakRenamed(Graph& graph, const PassContext&) {
  graph.SetInputs(graph.Find("renamed"), {});
  return OkStatus();
}
Status Fail(Graph&, const PassContext&) { return Unimplemented("no such thing"); }

class Pipelines : public ::testing::Test {
 protected:
  Pipelines() {
    calls = 0;
    options_.verify = VerifyPasses::kOff;
    options_.after = [this](const PassRun& run, const Graph&) { runs_.push_back(run); };
  }
  Status Run(const std::vector<Pass>& passes) {
    return RunPasses(passes, *graph_, PassContext(), options_);
  }
  std::unique_ptr<Graph> graph_ = *ParseGraph(kText);
  PipelineOptions options_;
  std::vector<PassRun> runs_;
};

TEST_F(Pipelines, APassIsSkippedUntilSomethingChanges) {
  ASSERT_TRUE(Run({{"nothing", Nothing, ""}, {"nothing", Nothing, ""}}).ok());
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(runs_.size(), 2u);
  EXPECT_EQ(runs_[0].outcome, Outcome::kUnchanged);
  EXPECT_EQ(runs_[1].outcome, Outcome::kSkipped);

  runs_.clear();
  ASSERT_TRUE(
      Run({{"nothing", Nothing, ""}, {"rename", Rename, ""}, {"nothing", Nothing, ""}}).ok());
  EXPECT_EQ(runs_[1].outcome, Outcome::kChanged);
  EXPECT_EQ(runs_[2].outcome, Outcome::kUnchanged);
}

TEST_F(Pipelines, WhatItChangedItselfIsNotNewToAPass) {
  ASSERT_TRUE(Run({{"rename", Rename, ""}, {"rename", Rename, ""}}).ok());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(runs_[1].outcome, Outcome::kSkipped);
}

TEST_F(Pipelines, APassThatBreaksTheGraphIsUndoneAndNamed) {
  options_.verify = VerifyPasses::kUndo;
  ASSERT_TRUE(Run({{"break", Break, ""}, {"rename", Rename, ""}}).ok());
  ASSERT_EQ(runs_.size(), 2u);
  EXPECT_EQ(runs_[0].outcome, Outcome::kUndone);
  EXPECT_EQ(runs_[0].why_undone, "node 'n' (Neg): is given 0 inputs, wants 1");
  EXPECT_EQ(runs_[1].outcome, Outcome::kChanged);
  ASSERT_NE(graph_->Find("renamed"), nullptr);
  EXPECT_EQ(graph_->Find("renamed")->num_inputs(), 1);
}

TEST_F(Pipelines, OrIsAnError) {
  options_.verify = VerifyPasses::kFail;
  const Status status = Run({{"break", Break, ""}});
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(status.message(),
            "pass break leaves a graph that does not verify: node 'n' (Neg): is given 0 inputs, "
            "wants 1");
}

TEST_F(Pipelines, WhatOthersDidStaysWhenOneIsUndone) {
  options_.verify = VerifyPasses::kUndo;
  ASSERT_TRUE(
      Run({{"rename", Rename, ""}, {"break", BreakRenamed, ""}, {"nothing", Nothing, ""}}).ok());
  ASSERT_EQ(runs_.size(), 3u);
  EXPECT_EQ(runs_[0].outcome, Outcome::kChanged);
  EXPECT_EQ(runs_[1].outcome, Outcome::kUndone);
  EXPECT_EQ(runs_[2].outcome, Outcome::kUnchanged);
  ASSERT_NE(graph_->Find("renamed"), nullptr);
  EXPECT_EQ(graph_->Find("renamed")->num_inputs(), 1);
}

TEST_F(Pipelines, AFailureCanBeUndoneToo) {
  options_.undo_failures = true;
  ASSERT_TRUE(Run({{"rename", Rename, ""}, {"fail", Fail, ""}}).ok());
  ASSERT_EQ(runs_.size(), 2u);
  EXPECT_EQ(runs_[1].outcome, Outcome::kUndone);
  EXPECT_EQ(runs_[1].why_undone, "no such thing");
  EXPECT_NE(graph_->Find("renamed"), nullptr);
}

TEST_F(Pipelines, ADeadlineIsKept) {
  PassContext context;
  context.deadline = absl::Now() - absl::Seconds(1);
  const std::vector<Pass> passes = {{"nothing", Nothing, ""}};
  const Status status = RunPasses(passes, *graph_, context, options_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(), "meta_optimizer exceeded deadline.");
}

TEST(ChoosePasses, SessionsRunTheListOnce) {
  const std::vector<Pass> passes = ChoosePasses(RewriterConfig());
  EXPECT_EQ(std::ranges::count(passes, "freeze_variables", &Pass::name), 1);
  EXPECT_EQ(std::ranges::count(passes, "model_pruner", &Pass::name), 0);
}

TEST_F(Pipelines, NoPassIsToBlameForWhatWasWrongBefore) {
  options_.verify = VerifyPasses::kFail;
  graph_->SetInputs(graph_->Find("n"), {});
  EXPECT_TRUE(Run({{"rename", Rename, ""}}).ok());
}

TEST_F(Pipelines, ErrorsNameThePass) {
  const Status status = Run({{"fail", Fail, ""}});
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_EQ(status.message(), "no such thing (in pass fail)");
}

TEST_F(Pipelines, EveryPassHasANameAndAReason) {
  for (const PassRow& row : AllPasses()) {
    const Pass& pass = row.pass;
    EXPECT_FALSE(pass.why_here.empty()) << pass.name;
    const Pass* found = FindPass(pass.name);
    ASSERT_NE(found, nullptr) << pass.name;
    EXPECT_EQ(found->run, pass.run) << pass.name << " stands for two passes";
  }
  EXPECT_EQ(FindPass("no_such_pass"), nullptr);
}

}  // namespace
}  // namespace smelt
