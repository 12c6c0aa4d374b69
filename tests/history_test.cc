// What passes did, kept as differences: they lead from the first graph to the last.
#include "smelt/optimize/history.h"

#include <map>

#include "graph_of_text.h"
#include "gtest/gtest.h"

namespace smelt {
namespace {

using Outcome = PassRun::Outcome;

class History : public ::testing::Test {
 protected:
  void Add(OptimizationHistory& history, absl::string_view pass, Outcome outcome,
           absl::string_view text) {
    PassRun run;
    run.pass = pass;
    run.outcome = outcome;
    const auto graph = MustParse(text);
    run.nodes_after = graph->num_nodes();
    history.Add(run, *graph);
  }
  // Node by name, as the steps lead to it: op, then what it reads.
  std::map<std::string, std::string> Replayed(const OptimizationHistory& history) {
    std::map<std::string, std::string> out;
    const auto text = [&](int id) { return history.texts()[static_cast<size_t>(id)]; };
    const auto put = [&](const OptimizationHistory::Node& n) {
      std::string& what = out[text(n.name)] = text(n.op);
      for (const auto& [source, port] : n.inputs) absl::StrAppend(&what, " ", text(source), port);
    };
    const auto& graph = history.graphs()[0];
    for (const auto& n : graph.before) put(n);
    for (const auto& step : graph.steps) {
      for (const int name : step.gone) out.erase(text(name));
      for (const auto& n : step.put) put(n);
    }
    return out;
  }

  const absl::string_view first_ =
      "x = Placeholder {dtype=float, shape=[2]}\n"
      "a = Neg(x) {T=float, _root=true}\n"
      "b = Neg(a, ^x) {T=float}\n";
  const absl::string_view second_ =
      "x = Placeholder {dtype=float, shape=[2]}\n"
      "c = Exp(x) {T=float}\n"
      "b = Neg(c) {T=float}\n";
  const absl::string_view third_ =
      "x = Placeholder {dtype=float, shape=[2]}\n"
      "b = Sin(x) {T=float}\n";
};

TEST_F(History, KeepsWhatEachPassChanged) {
  OptimizationHistory history;
  history.Begin("", *MustParse(first_));
  Add(history, "nothing", Outcome::kUnchanged, first_);
  Add(history, "some", Outcome::kChanged, second_);
  history.End();
  ASSERT_EQ(history.graphs().size(), 1);
  const auto& steps = history.graphs()[0].steps;
  EXPECT_TRUE(steps[0].put.empty() && steps[0].gone.empty());
  EXPECT_EQ(steps[1].put.size(), 2);  // c and b
  EXPECT_EQ(steps[1].gone.size(), 1);
  EXPECT_TRUE(steps[0].kept && steps[1].kept);
  EXPECT_EQ(Replayed(history), (std::map<std::string, std::string>{
                                   {"x", "Placeholder"}, {"c", "Exp x0"}, {"b", "Neg c0"}}));
}

TEST_F(History, MarksOfPassesAreNoChange) {
  OptimizationHistory history;
  history.Begin("", *MustParse("x = Placeholder {dtype=float}\ny = Neg(x) {T=float}\n"));
  Add(history, "marks", Outcome::kChanged,
      "x = Placeholder {dtype=float, _fed=true}\ny = Neg(x) {T=float, _root=true}\n");
  EXPECT_TRUE(history.graphs()[0].steps[0].put.empty());
}

TEST_F(History, ShapesThatBecomeKnownAreNoChange) {
  OptimizationHistory history;
  history.Begin("", *MustParse("x = Placeholder {dtype=float}\ny = Neg(x) {T=float}\n"));
  Add(history, "shapes", Outcome::kChanged,
      "x = Placeholder {dtype=float, shape=[3]}\ny = Neg(x) {T=float}\n");
  EXPECT_EQ(history.graphs()[0].steps[0].put.size(), 1);  // x alone
}

TEST_F(History, TooMuchIsToldOfInOneStep) {
  OptimizationHistory history(/*most=*/1);
  history.Begin("", *MustParse(first_));
  Add(history, "kept", Outcome::kChanged, second_);
  Add(history, "left out", Outcome::kChanged, first_);
  Add(history, "last", Outcome::kChanged, third_);
  Add(history, "skipped", Outcome::kSkipped, third_);
  history.End();
  const auto& steps = history.graphs()[0].steps;
  EXPECT_TRUE(steps[0].kept);
  EXPECT_FALSE(steps[1].kept);
  EXPECT_TRUE(steps[1].put.empty() && steps[1].gone.empty());
  EXPECT_TRUE(steps[2].kept);
  EXPECT_EQ(Replayed(history),
            (std::map<std::string, std::string>{{"x", "Placeholder"}, {"b", "Sin x0"}}));
}

TEST_F(History, LongTextsAndTensorsAreCut) {
  OptimizationHistory history;
  history.Begin("", *MustParse(absl::StrCat("c = Const {value=float[1000]{1}, dtype=float}\n",
                                            "d = Const {value=float[2,2]{1, 2, 3, 4}, _t=\"",
                                            std::string(100000, 'y'), "\"}\n")));
  size_t bytes = 0;
  for (const std::string& text : history.texts()) bytes += text.size();
  EXPECT_LT(bytes, 2000);
  const auto& texts = history.texts();
  EXPECT_NE(std::ranges::find(texts, "value=float[2,2]{1, 2, 3, 4}"), texts.end());
}

TEST_F(History, FunctionsOfTheLibraryBeginWithTheGraph) {
  OptimizationHistory history;
  history.Begin("", *MustParse("x = Placeholder {dtype=float}\ny = f(x)\n"
                               "func f(a: float) -> (r: float) {\n  n = Neg(a) {T=float}\n"
                               "  return r=n\n}\n"));
  ASSERT_EQ(history.graphs().size(), 2);
  EXPECT_EQ(history.graphs()[1].name, "f");
  EXPECT_EQ(history.graphs()[1].before.size(), 2);
  EXPECT_EQ(history.graphs()[0].before[1].calls.size(), 1);
}

}  // namespace
}  // namespace smelt
