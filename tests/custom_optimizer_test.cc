// Custom optimizers in the program: how they are found, when they run, and what time they have.
// tests/custom_optimizers_test.py loads those of a shared library.
#include "smelt/optimize/custom/custom_optimizer.h"

#include <atomic>
#include <cerrno>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "smelt/graph/text.h"
#include "smelt/optimize/custom/plugin.h"
#include "smelt/optimize/meta_optimizer.h"

namespace smelt {
namespace {

std::atomic<int> runs = 0;
bool had_parameters = false;

class Counts final : public CustomOptimizer {
 public:
  StatusOr<bool> Optimize(Graph&, const PassContext&) override {
    ++runs;
    return false;
  }
};

class Sleeps final : public CustomOptimizer {
 public:
  StatusOr<bool> Optimize(Graph& graph, const PassContext& context) override {
    absl::SleepFor(absl::Milliseconds(100));
    if (absl::Now() > context.deadline) return DeadlineIsOver();
    RETURN_IF_ERROR(graph.Add("slept", "NoOp", {}).status());
    ++runs;
    return true;
  }
};

// Leaves a gradient with more inputs than it says.
class Breaks final : public CustomOptimizer {
 public:
  StatusOr<bool> Optimize(Graph& graph, const PassContext&) override {
    Node* y = graph.Find("y");
    if (y == nullptr) return false;
    graph.AddInput(y, {graph.Find("x"), 0});
    return true;
  }
};

template <typename T>
StatusOr<std::unique_ptr<CustomOptimizer>> Make(const RewriterConfig&, const AttrMap* parameters) {
  had_parameters = parameters != nullptr && parameters->Find("foo") != nullptr;
  return std::make_unique<T>();
}

class CustomOptimizers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(AddCustomOptimizer({"Counts", "counts", Make<Counts>}).ok());
    ASSERT_TRUE(AddCustomOptimizer({"CountsAgain", "counts_again", Make<Counts>}).ok());
    ASSERT_TRUE(AddCustomOptimizer({"Sleeps", "sleeps", Make<Sleeps>}).ok());
    ASSERT_TRUE(AddCustomOptimizer({"Breaks", "breaks", Make<Breaks>}).ok());
  }
  CustomOptimizers() {
    runs = 0;
    had_parameters = false;
    options_.config.min_graph_nodes = -1;
    item_.fetches = {"y"};
  }
  StatusOr<OptimizationReport> Run(absl::string_view text = kText) {
    item_.graph = *ParseGraph(text);
    return OptimizeItem(item_, options_);
  }
  static constexpr absl::string_view kText =
      "x = Placeholder {dtype=float, shape=[]}\n"
      "y = Neg(x) {T=float}\n";
  RewriterConfig& config() { return options_.config; }
  GraphItem item_;
  MetaOptions options_;
};

// upstream meta_optimizer_test RunsCustomOptimizer
TEST_F(CustomOptimizers, RunByName) {
  config().optimizers = {"Counts"};
  config().meta_optimizer_iterations = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(had_parameters);
}

// upstream meta_optimizer_test RunsCustomOptimizerWithParams
TEST_F(CustomOptimizers, HaveTheParametersOfTheirNameAndRunOnce) {
  config().optimizers = {"Counts"};
  config().meta_optimizer_iterations = 1;
  AttrMap parameters;
  parameters.Set("foo", Attr());
  config().custom_optimizers = {{"Counts", parameters}};
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(had_parameters);
}

// upstream meta_optimizer_test RunsCustomOptimizerAndCustomGraphOptimizer
TEST_F(CustomOptimizers, OfBothListsRunInTheirOrder) {
  config().optimizers = {"Counts", "dependency"};
  config().custom_optimizers = {{"pruning", {}}, {"CountsAgain", {}}, {"no_such", {}}};
  config().meta_optimizer_iterations = 1;
  const auto report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  std::vector<std::string> names;
  for (const auto& pass : report->graphs[0].passes) names.push_back(pass.name);
  EXPECT_EQ(names, (std::vector<std::string>{"counts", "dependency_optimizer", "model_pruner",
                                             "compress_constants", "counts_again"}));
  EXPECT_EQ(report->unknown_optimizers, std::vector<std::string>{"no_such"});
  EXPECT_EQ(runs, 2);
}

// upstream meta_optimizer_test RunToggleOptimizersAndCustomGraphOptimizerTwice
TEST_F(CustomOptimizers, RunAgainThoughNothingChanged) {
  config().custom_optimizers = {{"Counts", {}}};
  const auto report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(report->graphs[0].passes.back().name, "counts");
}

// upstream custom_graph_optimizer_registry_test DynamicRegistration
// upstream custom_graph_optimizer_registry_test StaticRegistration
TEST_F(CustomOptimizers, AreFoundByName) {
  ASSERT_NE(FindCustomOptimizer("Counts"), nullptr);
  EXPECT_EQ(FindCustomOptimizer("Counts")->pass, "counts");
  EXPECT_NE(FindCustomOptimizer("batch_op_rewrite"), nullptr);
  EXPECT_EQ(FindCustomOptimizer("counts"), nullptr);
}

// upstream custom_graph_optimizer_registry_test
// GraphOptimizerRegistryTest.CrashesOnDuplicateRegistration
TEST_F(CustomOptimizers, AreAddedOnce) {
  const Status twice = AddCustomOptimizer({"Counts", "counts", Make<Counts>});
  EXPECT_TRUE(absl::IsAlreadyExists(twice));
  EXPECT_EQ(twice.message(), "CustomGraphOptimizer is registered twice: Counts");
}

// upstream meta_optimizer_test OptimizerTimesOut
TEST_F(CustomOptimizers, OneTakesTooLong) {
  config().optimizers = {"Sleeps"};
  config().meta_optimizer_iterations = 1;
  config().meta_optimizer_timeout_ms = 20;
  const auto report = Run();
  EXPECT_TRUE(absl::IsDeadlineExceeded(report.status()));
  EXPECT_EQ(report.status().message(), "meta_optimizer exceeded deadline.");
  EXPECT_EQ(runs, 0);
}

// upstream meta_optimizer_test MetaOptimizerTimesOut
TEST_F(CustomOptimizers, OnlyOneIterationEnds) {
  config().optimizers = {"Sleeps"};
  config().meta_optimizer_iterations = 20;
  config().meta_optimizer_timeout_ms = 500;
  const auto report = Run();
  EXPECT_EQ(report.status().message(), "meta_optimizer exceeded deadline.");
  EXPECT_GE(runs, 1);
  EXPECT_LT(runs, 20);
}

// upstream meta_optimizer_test OptimizerDoesNotTimeOut
TEST_F(CustomOptimizers, TimeEnough) {
  config().optimizers = {"Sleeps"};
  config().meta_optimizer_timeout_ms = 60000;
  const auto report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(item_.graph->num_nodes(), 4);
  for (const auto& pass : report->graphs[0].passes) {
    EXPECT_EQ(pass.outcome, PassRun::Outcome::kChanged);
  }
}

// upstream meta_optimizer_test RunPostOptimizationVerifiersOnValidGraph
// upstream meta_optimizer_test RunInterOptimizerVerifiersOnValidGraph
TEST_F(CustomOptimizers, VerifiersFindNothingInAValidGraph) {
  config().verify_between_optimizers = config().verify_at_the_end = true;
  EXPECT_TRUE(Run().ok());
}

// upstream meta_optimizer_test RunPostOptimizationVerifiersOnInvalidGraph
// upstream meta_optimizer_test RunInterOptimizerVerifiersOnInvalidGraph
TEST_F(CustomOptimizers, WhatBreaksAGraphIsUndoneOrAnError) {
  config().optimizers = {"Breaks", "Counts"};
  auto report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->graphs[0].passes[0].outcome, PassRun::Outcome::kUndone);
  EXPECT_EQ(item_.graph->Find("y")->num_inputs(), 1);
  EXPECT_EQ(runs, 2);
  for (bool RewriterConfig::*verifier :
       {&RewriterConfig::verify_between_optimizers, &RewriterConfig::verify_at_the_end}) {
    config().verify_between_optimizers = config().verify_at_the_end = false;
    config().*verifier = true;
    report = Run();
    EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
    EXPECT_EQ(report.status().message(),
              "pass breaks leaves a graph that does not verify: node 'y' (Neg): is given 2 inputs, "
              "wants 1");
  }
}

// Functions of data sets, and those that these call, are optimized by the data set.
// upstream meta_optimizer_test TfDataTests
TEST_F(CustomOptimizers, DoNotRunOnFunctionsOfDataSets) {
  for (const bool inner : {false, true}) {
    for (const bool outer : {false, true}) {
      for (const absl::string_view call : {"n = inner(x, x)", "n = Identity(x) {T=float, f=@inner}",
                                           "n = Identity(x) {T=float, list=list(@inner)}"}) {
        runs = 0;
        config().optimizers = {"Counts"};
        config().meta_optimizer_iterations = 1;
        const auto mark = [](bool of_data) { return of_data ? " {_tf_data_function=true}" : ""; };
        const auto report =
            Run(absl::StrCat("a = Placeholder {dtype=float, shape=[]}\n"
                             "n = outer(a)\n"
                             "y = Identity(n) {T=float}\n\n"
                             "func inner(x: float, y: float) -> (z: float)",
                             mark(inner), " {\n  m = Mul(x, y) {T=float}\n  return z=m\n}\n\n",
                             "func outer(x: float) -> (z: float)", mark(outer), " {\n  ", call,
                             "\n  return z=n\n}\n"));
        ASSERT_TRUE(report.ok()) << report.status();
        EXPECT_EQ(runs, outer ? 1 : inner ? 2 : 3) << call << inner << outer;
        const auto of_data = [&](absl::string_view name) {
          const Function* f = item_.graph->library()->Find(name);
          return f != nullptr && f->attrs.Find("_tf_data_function") != nullptr;
        };
        EXPECT_EQ(of_data("outer"), outer) << call;
        EXPECT_EQ(of_data("inner"), outer || inner) << call;
      }
    }
  }
}

void NoOptimizer(void*, const TF_Buffer*, const TF_GrapplerItem*, TF_Buffer*, TF_Status* status) {
  TF_SetStatus(status, TF_Code{10}, "");
}

void Fill(TP_OptimizerRegistrationParams* params, const char* device) {
  params->device_type = device;
  params->optimizer->optimize_func = NoOptimizer;
}

TEST(OptimizerPlugins, AreAddedForEachDevice) {
  for (void (*init)(TP_OptimizerRegistrationParams*, TF_Status*) :
       {+[](TP_OptimizerRegistrationParams*p, TF_Status*) {
          EXPECT_EQ(p->struct_size, TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE);
          EXPECT_EQ(p->major_version, 0);
          EXPECT_EQ(p->patch_version, 1);
          Fill(p, "Device0");
          p->optimizer_configs->remapping = TF_TriState_Off;
        },
        +[](TP_OptimizerRegistrationParams*p, TF_Status*) { Fill(p, "Device1"); }}) {
    const Status added = InitOptimizerPlugin(init);
    ASSERT_TRUE(added.ok()) << added;
  }
  const auto rows = DeviceOptimizers({"Device0", "Device1", "Device2"});
  ASSERT_EQ(rows.size(), 2u);
  RewriterConfig config;
  rows[0]->turn_off(config);
  EXPECT_EQ(config.remapping, Toggle::kOff);
  EXPECT_EQ(config.loop_optimization, Toggle::kDefault);
}

// upstream custom_graph_optimizer_registry_test
// PluginGraphOptimizerRegistryTest.CrashesOnDuplicateRegistration
TEST(OptimizerPlugins, AreAddedOnceForADevice) {
  const auto init = [](TP_OptimizerRegistrationParams* p, TF_Status*) { Fill(p, "Twice"); };
  EXPECT_TRUE(InitOptimizerPlugin(init).ok());
  const Status twice = InitOptimizerPlugin(init);
  EXPECT_TRUE(absl::IsAlreadyExists(twice));
  EXPECT_EQ(twice.message(), "PluginGraphOptimizer with device_type Twice is registered twice.");
}

TEST(OptimizerPlugins, HaveStatuses) {
  TF_Status* status = TF_NewStatus();
  EXPECT_EQ(TF_GetCode(status), 0);
  TF_SetStatusFromIOError(status, ENOENT, "x.txt");
  EXPECT_EQ(TF_GetCode(status), 5);
  EXPECT_STREQ(TF_Message(status), "x.txt; No such file or directory");
  TF_SetPayload(status, "why", "gone");
  std::string notes;
  TF_ForEachPayload(
      status,
      [](const char* key, const char* value, void* to) {
        absl::StrAppend(static_cast<std::string*>(to), key, "=", value, ";");
      },
      &notes);
  EXPECT_EQ(notes, "why=gone;");
  TF_SetStatus(status, 0, "");
  EXPECT_EQ(TF_GetCode(status), 0);
  EXPECT_STREQ(TF_Message(status), "");
  TF_DeleteStatus(status);
}

TEST(OptimizerPlugins, SayWhatTheyLack) {
  const auto said = [](void (*init)(TP_OptimizerRegistrationParams*, TF_Status*)) {
    return InitOptimizerPlugin(init).ToString();
  };
  EXPECT_EQ(said([](TP_OptimizerRegistrationParams* p, TF_Status*) { Fill(p, nullptr); }),
            "FAILED_PRECONDITION: 'device_type' field in TP_OptimizerRegistrationParams must be "
            "set.");
  EXPECT_EQ(said([](TP_OptimizerRegistrationParams* p, TF_Status*) {
              Fill(p, "None");
              p->optimizer->optimize_func = nullptr;
            }),
            "FAILED_PRECONDITION: 'optimize_func' field in TP_Optimizer must be set.");
  EXPECT_EQ(said([](TP_OptimizerRegistrationParams* p, TF_Status*) {
              Fill(p, "None");
              p->optimizer_configs->struct_size = 0;
            }),
            "FAILED_PRECONDITION: struct_size field in TP_OptimizerConfigs must be set to "
            "TP_OPTIMIZER_CONFIGS_STRUCT_SIZE.");
  EXPECT_EQ(said([](TP_OptimizerRegistrationParams*, TF_Status* s) { TF_SetStatus(s, 5, "no"); }),
            "NOT_FOUND: no");
}

}  // namespace
}  // namespace smelt
