// smelt_case_tests ops FILE...: runs op cases (docs/formats/op_cases.md) on the CPU kernels.
//
//   --filter TEXT   only cases whose name contains TEXT
//   --list-ops      counts, instead of running: for each op its cases, how many of them fail as
//                   they must, and the op; in a graph every op counts, failures for the case's own
//                   and for those that the failing step asks for
//
// Prints what fails and ends with "N passed, N failed"; exit code 1 when something failed, 2 when a
// file could not be read.
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/graph/text.h"
#include "smelt/kernels/run_op.h"
#include "tests/case_tests.h"
#include "tests/graph_runner.h"
#include "tests/op_case.h"
#include "tests/op_compare.h"

namespace smelt {
namespace {

// Cases name files in a folder for temporary ones, as TensorFlow was given.
const FileSystem kAllFiles = FileSystem::Whole();

// ---- running several ops ----

std::string RunGraphCase(const TestCase& c) {
  auto graph = ParseGraph(c.graph);
  bool done = false;
  if (!graph.ok()) return CompareStatus(graph.status(), c.steps[0].failure, &done);
  GraphRunner runner(*(*graph)->library());
  ResourceManager resources;
  for (size_t i = 0; i < c.steps.size(); ++i) {
    const TestStep& s = c.steps[i];
    const std::string where = c.steps.size() > 1 ? absl::StrCat("step ", i + 1, ": ") : "";
    ResourceManager step_resources;
    Cancellation cancellation;
    Step step;
    step.id = static_cast<int64_t>(i) + 1;
    step.resources = &resources;
    step.step_resources = &step_resources;
    step.functions = &runner;
    step.cancellation = &cancellation;
    step.files = &kAllFiles;
    GraphRunner::Values values;
    std::vector<Endpoint> wanted;
    std::vector<Node*> also;
    for (const auto& [name, literal] : s.feeds) {
      auto endpoint = (*graph)->FindEndpoint(name);
      if (!endpoint.ok()) return absl::StrCat(where, endpoint.status().message());
      auto tensor = ParseTensorText(literal);
      if (!tensor.ok()) return absl::StrCat(where, tensor.status().message());
      values[{endpoint->node, endpoint->port}] = *std::move(tensor);
    }
    for (const auto& [name, literal] : s.fetches) {
      auto endpoint = (*graph)->FindEndpoint(name);
      if (!endpoint.ok()) return absl::StrCat(where, endpoint.status().message());
      wanted.push_back(*endpoint);
    }
    for (const std::string& name : s.runs) {
      Node* node = (*graph)->Find(name);
      if (node == nullptr) return absl::StrCat(where, "no node ", name);
      also.push_back(node);
    }
    std::vector<Tensor> results;
    const Status status = runner.Run(**graph, std::move(values), wanted, also, &results, step);
    std::string why = CompareStatus(status, s.failure, &done);
    if (!why.empty()) return absl::StrCat(where, why);
    if (done) continue;
    for (size_t k = 0; k < results.size(); ++k) {
      auto want = ParseTensorText(s.fetches[k].second);
      if (!want.ok()) return absl::StrCat(where, want.status().message());
      why = Compare(results[k], *want, c);
      if (!why.empty()) return absl::StrCat(where, s.fetches[k].first, " ", why);
    }
  }
  return "";
}

// ---- running one op ----

std::string RunOpCase(const TestCase& c) {
  std::vector<Tensor> inputs;
  std::string text;
  std::vector<std::string> names;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    auto tensor = ParseTensorText(c.ins[i]);
    if (!tensor.ok()) return absl::StrCat("input ", i, ": ", tensor.status().message());
    absl::StrAppend(&text, "in", i, " = Placeholder {dtype=", DtypeName(tensor->dtype()),
                    ", shape=shape(?)}\n");
    names.push_back(absl::StrCat("in", i));
    inputs.push_back(*std::move(tensor));
  }
  text += c.NodeText("tested", names);
  bool done = false;
  auto graph = ParseGraph(text);
  if (!graph.ok()) return CompareStatus(graph.status(), c.steps[0].failure, &done);
  const Node* node = (*graph)->Find("tested");
  const bool stateful = node->def() != nullptr && node->def()->stateful;

  for (int shared = 0; shared < (stateful ? 1 : 2); ++shared) {
    const absl::string_view mode = shared ? "with shared inputs: " : "";
    std::vector<Tensor> given;
    for (const Tensor& t : inputs) {
      auto clone = t.Clone();
      if (!clone.ok()) return std::string(clone.status().message());
      given.push_back(*std::move(clone));
    }
    std::vector<Tensor> kept;
    if (shared) kept = given;
    ResourceManager resources, step_resources;
    Cancellation cancellation;
    GraphRunner runner(*(*graph)->library());
    Step step;
    step.id = 1;
    step.resources = &resources;
    step.step_resources = &step_resources;
    step.functions = &runner;
    step.cancellation = &cancellation;
    step.files = &kAllFiles;
    auto outputs = RunOp(*node, std::move(given), step);
    std::string why = CompareStatus(outputs.status(), c.steps[0].failure, &done);
    if (!why.empty()) return absl::StrCat(mode, why);
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i].Identical(inputs[i])) return absl::StrCat("changes its shared input ", i);
    }
    if (done) continue;
    if (outputs->size() != c.outs.size()) {
      return absl::StrCat(mode, outputs->size(), " outputs instead of ", c.outs.size());
    }
    for (size_t i = 0; i < c.outs.size(); ++i) {
      auto want = ParseTensorText(c.outs[i]);
      if (!want.ok()) return absl::StrCat("output ", i, ": ", want.status().message());
      why = Compare((*outputs)[i], *want, c);
      if (!why.empty()) return absl::StrCat(mode, "output ", i, " ", why);
    }
  }
  return "";
}

// ---- counting ----

// The ops that a step asks for.
void AddStepOps(const Graph& graph, const TestStep& s, std::set<std::string>* ops) {
  std::vector<std::string> names = s.runs;
  for (const auto& [endpoint, literal] : s.fetches) {
    names.push_back(endpoint.substr(0, endpoint.find(':')));
  }
  for (const std::string& name : names) {
    if (const Node* node = graph.Find(name); node != nullptr) ops->emplace(node->op());
  }
}

void CountOps(const std::vector<TestCase>& cases) {
  struct Counts {
    int cases = 0, failing = 0;
  };
  std::map<std::string, Counts> counts;
  for (const TestCase& c : cases) {
    std::set<std::string> ops = {c.OpName()}, failing;
    for (const TestStep& s : c.steps) {
      if (s.failure.expected) failing.insert(c.OpName());
    }
    if (c.is_graph) {
      if (auto graph = ParseGraph(c.graph); graph.ok()) {
        for (const Node* node : (*graph)->Nodes()) ops.emplace(node->op());
        for (const Function* f : (*graph)->library()->Functions()) {
          for (const Node* node : f->body->Nodes()) ops.emplace(node->op());
        }
        for (const TestStep& s : c.steps) {
          if (s.failure.expected) AddStepOps(**graph, s, &failing);
        }
      }
    }
    for (const std::string& op : ops) ++counts[op].cases;
    for (const std::string& op : failing) ++counts[op].failing;
  }
  for (const auto& [op, n] : counts) std::printf("%5d %5d %s\n", n.cases, n.failing, op.c_str());
}

}  // namespace

int OpTests(int argc, char** argv) {
  std::vector<TestCase> cases;
  std::string filter;
  bool list_ops = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view arg = argv[i];
    if (arg == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (absl::StartsWith(arg, "--filter=")) {
      filter = std::string(arg.substr(9));
    } else if (arg == "--list-ops") {
      list_ops = true;
    } else if (const Status s = ReadCases(argv[i], &cases); !s.ok()) {
      std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
      return 2;
    }
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: smelt_case_tests ops [--filter TEXT] [--list-ops] FILE...\n");
    return 2;
  }
  std::erase_if(cases, [&](const TestCase& c) { return !absl::StrContains(c.name, filter); });
  if (list_ops) {
    CountOps(cases);
    return 0;
  }
  int passed = 0, failed = 0;
  std::map<std::string, int> unknown;
  for (const TestCase& c : cases) {
    const std::string why = c.is_graph ? RunGraphCase(c) : RunOpCase(c);
    if (why.empty()) {
      ++passed;
      continue;
    }
    ++failed;
    if (const size_t at = why.find("No OpKernel was registered to support Op '");
        at != std::string::npos && absl::StrContains(why, "<no registered kernels>")) {
      const size_t begin = why.find('\'', at) + 1;
      ++unknown[why.substr(begin, why.find('\'', begin) - begin)];
      continue;
    }
    std::printf("FAILED %s (%s:%d) %s\n", c.name.c_str(), c.file.c_str(), c.line, why.c_str());
  }
  for (const auto& [op, n] : unknown) {
    std::printf("no kernel for %s (%d case%s)\n", op.c_str(), n, n > 1 ? "s" : "");
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace smelt
