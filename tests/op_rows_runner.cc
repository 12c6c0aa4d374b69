// smelt_case_tests op_rows [--filter TEXT] [--every N] FILE...: the row analysis beside the ops of
// op cases, or one of N (docs/formats/op_cases.md). Inputs with as many rows as one of them are a
// request's, all of them and each alone, and the others constants. Where the analysis proves that
// an op treats rows by themselves, parts of one row and of two are computed and must be those of
// the whole result.
//
// Prints what fails and ends with "N splits proved, N failed"; exit code 1 when something failed.
#include <cstdio>
#include <set>

#include "absl/strings/str_cat.h"
#include "smelt/analysis/split_rows.h"
#include "smelt/graph/text.h"
#include "smelt/kernels/kernel.h"
#include "tests/case_tests.h"
#include "tests/graph_runner.h"
#include "tests/op_case.h"
#include "tests/op_compare.h"

namespace smelt {
namespace {

// An op whose inputs are arguments, those that are rows, or constants.
class SplitOp {
 public:
  SplitOp(const TestCase& c, const std::vector<Tensor>& inputs, std::vector<bool> rows)
      : case_(c), rows_(std::move(rows)) {
    std::string text;
    std::vector<std::string> names;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const absl::string_view type = DtypeName(inputs[i].dtype());
      names.push_back(absl::StrCat("in", i));
      if (rows_[i]) {
        absl::StrAppend(&text, "in", i, " = _Arg {T=", type, ", index=", args_.size(), "}\n");
        args_.push_back(inputs[i]);
      } else {
        absl::StrAppend(&text, "in", i, " = Const {dtype=", type, ", value=", c.ins[i], "}\n");
      }
    }
    text += c.NodeText("tested", names);
    auto op = ParseGraph(text);
    if (!op.ok()) return;
    const Node& tested = *(*op)->Find("tested");
    for (int k = 0; k < tested.num_outputs(); ++k) {
      absl::StrAppend(&text, "r", k, " = _Retval(tested:", k,
                      ") {T=", DtypeName(tested.output_types[static_cast<size_t>(k)]),
                      ", index=", k, "}\n");
    }
    if (auto graph = ParseGraph(text); graph.ok()) graph_ = *std::move(graph);
  }

  // Why parts are not those of the whole; "": they are, or no split is proved.
  std::string Check(int64_t rows, int64_t part, bool* proved) {
    if (graph_ == nullptr) return "";
    std::vector<PartialShape> shapes;
    for (const Tensor& t : args_) shapes.emplace_back(t.shape());
    const RowSplit split = ProveRowSplit(*graph_, shapes, rows, part);
    if (!split.possible()) return "";
    auto whole = Run(args_);
    // A request that fails fails by itself when it is split.
    if (!whole.ok()) return "";
    *proved = true;
    for (int64_t at = 0; at < rows; at += part) {
      const int64_t end = std::min(rows, at + part);
      std::vector<Tensor> args = args_;
      for (size_t i = 0; i < args.size(); ++i) {
        if (split.args[i]) args[i] = args[i].Rows(at, end);
      }
      auto results = Run(std::move(args));
      if (!results.ok()) return absl::StrCat("a part fails: ", results.status().message());
      for (size_t k = 0; k < results->size(); ++k) {
        Tensor want = (*whole)[k];
        if (split.results[k]) {
          if (want.rank() == 0 || want.dim(0) % rows != 0) return "a result has no rows";
          const int64_t each = want.dim(0) / rows;
          want = want.Rows(at * each, end * each);
        }
        const std::string why = Compare((*results)[k], want, case_);
        if (!why.empty()) return absl::StrCat("rows from ", at, " on: result ", k, " ", why);
      }
    }
    return "";
  }

 private:
  StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> args) const {
    ResourceManager resources, step_resources;
    Cancellation cancellation;
    GraphRunner runner(*graph_->library());
    Step step;
    step.id = 1;
    step.resources = &resources;
    step.step_resources = &step_resources;
    step.functions = &runner;
    step.cancellation = &cancellation;
    GraphRunner::Values values;
    std::vector<Endpoint> wanted;
    for (Node* n : graph_->Nodes()) {
      if (n->Is("_Arg")) values[{n, 0}] = std::move(args[static_cast<size_t>(n->Int("index"))]);
    }
    Node* tested = graph_->Find("tested");
    for (int k = 0; k < tested->num_outputs(); ++k) wanted.push_back({tested, k});
    std::vector<Tensor> results;
    RETURN_IF_ERROR(runner.Run(*graph_, std::move(values), wanted, {}, &results, step));
    return results;
  }

  const TestCase& case_;
  const std::vector<bool> rows_;
  std::vector<Tensor> args_;
  std::shared_ptr<const Graph> graph_;
};

// Which inputs are rows: for each number of rows all that have it, and each of them alone.
std::set<std::pair<int64_t, std::vector<bool>>> Questions(const std::vector<Tensor>& inputs) {
  std::set<std::pair<int64_t, std::vector<bool>>> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].rank() == 0 || inputs[i].dim(0) < 2) continue;
    const int64_t rows = inputs[i].dim(0);
    std::vector<bool> alone(inputs.size()), together(inputs.size());
    alone[i] = true;
    for (size_t k = 0; k < inputs.size(); ++k) {
      together[k] = inputs[k].rank() > 0 && inputs[k].dim(0) == rows;
    }
    all.emplace(rows, alone);
    all.emplace(rows, together);
  }
  return all;
}

}  // namespace

int OpRowTests(int argc, char** argv) {
  std::vector<TestCase> cases;
  if (!ReadOneOpCases(argc, argv, &cases)) return 2;
  int64_t proved = 0, failed = 0;
  for (const TestCase& c : cases) {
    if (c.steps[0].failure.expected || c.shape_only) continue;
    const auto inputs = c.Inputs();
    if (!inputs) continue;
    for (const auto& [rows, which] : Questions(*inputs)) {
      SplitOp op(c, *inputs, which);
      for (const int64_t part : {1, 2}) {
        if (part >= rows) continue;
        bool is_proved = false;
        const std::string why = op.Check(rows, part, &is_proved);
        proved += is_proved ? 1 : 0;
        if (why.empty()) continue;
        ++failed;
        std::printf("FAILED %s:%d %s, parts of %lld of %lld rows: %s\n", c.file.c_str(), c.line,
                    c.op.c_str(), static_cast<long long>(part), static_cast<long long>(rows),
                    why.c_str());
      }
    }
  }
  std::printf("%lld splits proved, %lld failed\n", static_cast<long long>(proved),
              static_cast<long long>(failed));
  return failed == 0 && proved > 0 ? 0 : 1;
}

}  // namespace smelt
