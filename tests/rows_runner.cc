// smelt_case_tests rows FILE...: what the row analysis (analysis/rows) finds of functions, and
// whether they keep to it when they run.
//
//   case NAME
//   rows ARG=TENSOR       an argument of function f, in order: dimension 0 are rows
//   whole ARG=TENSOR      one that all rows share
//   graph
//   ...func f(...) and what it calls...
//   expect
//   apart STATE; STATE    each row by itself; states of the results: "rows in dimension 1"
//   meets "TEXT"          refused with this in the reason, and rightly: other rows change results
//   refused "TEXT"        refused, though the rows of this function may be independent
//   unrun                 what no kernel runs here is only analyzed
//
// Of `apart`, results with rows in dimension 0 are computed of all rows and of each alone: they
// must be equal. Of `meets`, they must differ. Cases are separated by lines of dashes. In the end
// every op that has a rule must have been in some function that is proved or refused.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/analysis/rows/proof.h"
#include "smelt/analysis/rows/rules.h"
#include "smelt/graph/text.h"
#include "smelt/kernels/batch/batch_rows.h"
#include "tests/case_tests.h"
#include "tests/graph_runner.h"

namespace smelt {
namespace {

struct RowCase {
  std::string name, graph, verdict, text;
  std::vector<Tensor> args;
  std::vector<bool> rows;
  bool run = true;
};

StatusOr<std::vector<Tensor>> RunRows(const Graph& graph, std::vector<Tensor> args) {
  ResourceManager resources, step_resources;
  Cancellation cancellation;
  GraphRunner runner(*graph.library());
  Step step;
  step.id = 1;
  step.resources = &resources;
  step.step_resources = &step_resources;
  step.functions = &runner;
  step.cancellation = &cancellation;
  const Function* f = graph.library()->Find("f");
  GraphRunner::Values values;
  const std::vector<Endpoint> ports = f->FlatArguments();
  for (size_t i = 0; i < ports.size(); ++i) {
    values[{ports[i].node, ports[i].port}] = std::move(args[i]);
  }
  std::vector<Tensor> results;
  RETURN_IF_ERROR(runner.Run(*f->body, std::move(values), f->FlatResults(), {}, &results, step));
  return results;
}

bool SameValues(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  if (a.dtype() != Dtype::kFloat) return a.Identical(b);
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (std::isnan(x) != std::isnan(y) || std::abs(x - y) > 1e-5f * (1 + std::abs(y))) return false;
  }
  return true;
}

// Whether the results of all rows together are those of each row alone.
StatusOr<bool> RowsApart(const Graph& graph, const RowCase& c) {
  int64_t count = 0;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (c.rows[i]) count = c.args[i].shape()[0];
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> together, RunRows(graph, c.args));
  std::vector<std::vector<Tensor>> alone(together.size());
  for (int64_t row = 0; row < count; ++row) {
    std::vector<Tensor> args = c.args;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!c.rows[i]) continue;
      args[i] = args[i].Rows(row, row + 1);
    }
    auto results = RunRows(graph, std::move(args));
    if (!results.ok()) return false;
    for (size_t k = 0; k < alone.size(); ++k) alone[k].push_back((*results)[k]);
  }
  for (size_t k = 0; k < alone.size(); ++k) {
    auto joined = JoinRows(alone[k], 0, HeapAllocator());
    if (!joined.ok() || !SameValues(*joined, together[k])) return false;
  }
  return true;
}

std::string CheckRowCase(const RowCase& c, std::set<std::string>* ops) {
  auto graph = ParseGraph(c.graph);
  if (!graph.ok()) return std::string(graph.status().message());
  const Function* f = (*graph)->library()->Find("f");
  if (f == nullptr) return "there is no function f";
  for (const Function* each : (*graph)->library()->Functions()) {
    for (const Node* n : each->body->Nodes()) ops->emplace(n->op());
  }
  RowQuestion q{.graph = f->body.get(),
                .function = "f",
                .args = f->FlatArguments(),
                .results = f->FlatResults(),
                .rows = c.rows,
                .few = 5040,
                .many = 55440};
  for (const Tensor& t : c.args) q.shapes.push_back(t.shape());
  if (q.args.size() != c.args.size()) return "f takes other arguments";
  const RowAnswer answer = FollowRows(q);
  if (c.verdict != "apart") {
    if (answer.proved()) return "was not refused";
    if (!absl::StrContains(answer.why_not, c.text)) return absl::StrCat("says: ", answer.why_not);
    if (c.verdict == "refused" || !c.run) return "";
    auto apart = RowsApart(**graph, c);
    if (!apart.ok()) return std::string(apart.status().message());
    return *apart ? "rows do not meet when it runs" : "";
  }
  if (!answer.proved()) return absl::StrCat("was refused: ", answer.why_not);
  std::vector<std::string> states;
  bool rows_first = true;
  for (const RowState& s : answer.results) {
    states.push_back(RowStateText(s));
    rows_first = rows_first && s == RowState::Rows(0);
  }
  if (absl::StrJoin(states, "; ") != c.text)
    return absl::StrCat("got ", absl::StrJoin(states, "; "));
  if (!rows_first || !c.run) return "";
  auto apart = RowsApart(**graph, c);
  if (!apart.ok()) return std::string(apart.status().message());
  return *apart ? "" : "rows meet when it runs";
}

Status ReadRowCases(const std::string& path, std::vector<RowCase>* cases) {
  std::ifstream file(path);
  if (!file) return NotFound("cannot read ", path);
  std::string line;
  RowCase c;
  const auto finish = [&] {
    if (!c.name.empty()) cases->push_back(std::move(c));
    c = RowCase();
  };
  bool graph = false;
  while (std::getline(file, line)) {
    absl::string_view rest = line;
    if (absl::StartsWith(line, "---")) {
      finish();
      graph = false;
    } else if (line == "graph" || line == "expect") {
      graph = line == "graph";
    } else if (graph) {
      absl::StrAppend(&c.graph, line, "\n");
    } else if (absl::ConsumePrefix(&rest, "case ")) {
      c.name = std::string(rest);
    } else if (line == "unrun") {
      c.run = false;
    } else if (const bool rows = absl::ConsumePrefix(&rest, "rows ");
               rows || absl::ConsumePrefix(&rest, "whole ")) {
      ASSIGN_OR_RETURN(Tensor t, ParseTensorText(rest.substr(rest.find('=') + 1)));
      c.args.push_back(std::move(t));
      c.rows.push_back(rows);
    } else if (!rest.empty()) {
      const size_t space = rest.find(' ');
      c.verdict = std::string(rest.substr(0, space));
      if (c.verdict != "apart" && c.verdict != "meets" && c.verdict != "refused") {
        return InvalidArgument(c.name, ": no such line: ", line);
      }
      rest = rest.substr(space + 1);
      absl::ConsumePrefix(&rest, "\"");
      absl::ConsumeSuffix(&rest, "\"");
      c.text = std::string(rest);
    }
  }
  finish();
  return OkStatus();
}

}  // namespace

int RowTests(int argc, char** argv) {
  std::vector<RowCase> cases;
  for (int i = 1; i < argc; ++i) {
    if (const Status s = ReadRowCases(argv[i], &cases); !s.ok()) {
      std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
      return 2;
    }
  }
  int failed = 0;
  std::set<std::string> ops;
  for (const RowCase& c : cases) {
    const std::string why = CheckRowCase(c, &ops);
    if (why.empty()) continue;
    ++failed;
    std::printf("FAILED %s: %s\n", c.name.c_str(), why.c_str());
  }
  for (const auto& family : {kComputeRowRules, kMovementRowRules, kListRowRules}) {
    for (const RowRule& rule : family) {
      if (ops.contains(std::string(rule.op.text()))) continue;
      ++failed;
      std::printf("FAILED: no case has a %s\n", std::string(rule.op.text()).c_str());
    }
  }
  std::printf("%zu cases, %d failed\n", cases.size(), failed);
  return failed == 0 && !cases.empty() ? 0 : 1;
}

}  // namespace smelt
