// smelt_case_tests op_programs [--filter TEXT] [--every N] FILE...: runs each op case (or one of N)
// of one op (docs/formats/op_cases.md) twice in one graph, so that a region of them is compiled:
// all inputs fed, all but the first constant, and with Grappler's passes, too. Floating results are
// also read by a bias, a sum, a factor, an activation, which the op's kernel may do in the same
// pass.
//
// Prints what fails and ends with "N passed, N failed"; exit code 1 when something failed, 2 when a
// file could not be read.
#include <array>
#include <cstdio>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"
#include "tests/case_tests.h"
#include "tests/op_case.h"
#include "tests/op_compare.h"

namespace smelt {
namespace {

struct Way {
  const char* name;
  bool constants;  // inputs behind the first
  bool optimize;
  bool followed = false;
};
constexpr Way kWays[] = {{"fed", false, false},
                         {"with constants", true, false},
                         {"with constants, optimized", true, true},
                         {"followed", false, false, true},
                         {"with constants, followed", true, false, true},
                         {"with constants, optimized, followed", true, true, true}};

// An op of a floating result and, where it has an operand, of a constant.
struct Follower {
  const char* op;
  enum class Operand { kNone, kScalar, kVector, kWhole } operand = Operand::kNone;
};
using Operand = Follower::Operand;
const std::vector<std::vector<Follower>> kTails = {
    {{"Relu"}},
    {{"BiasAdd", Operand::kVector}},
    {{"AddV2", Operand::kWhole}, {"Relu"}},
    {{"Mul", Operand::kScalar}, {"Tanh"}},
    {{"AddV2", Operand::kVector}, {"Relu6"}},
    {{"Mul", Operand::kVector}, {"AddV2", Operand::kVector}, {"AddV2", Operand::kWhole}},
    {{"BiasAdd", Operand::kVector}, {"Sigmoid"}}};

bool IsFollowed(const Tensor& t) {
  return IsFloating(t.dtype()) && t.rank() >= 2 && t.num_elements() > 0;
}

// A constant for `operand` of a result.
std::string ConstantFor(Operand operand, const Tensor& result) {
  Shape shape;
  if (operand == Operand::kVector) shape = Shape({result.shape().back()});
  if (operand == Operand::kWhole) shape = result.shape();
  std::string text =
      absl::StrCat(DtypeName(result.dtype()), "[", absl::StrJoin(shape.dims(), ","), "]{");
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    absl::StrAppend(&text, i ? ", " : "", 0.25 * static_cast<double>(i * 7 % 5) - 0.5);
  }
  return absl::StrCat(text, "}");
}

// The nodes of a tail behind `of`, the last called `name`.
std::string TailText(const std::vector<Follower>& tail, const std::string& of,
                     const std::string& name, const Tensor& result) {
  std::string text, at = of;
  for (size_t i = 0; i < tail.size(); ++i) {
    const bool last = i + 1 == tail.size();
    const std::string node = last ? name : absl::StrCat(name, "_", i);
    const Follower& f = tail[i];
    std::string operand;
    if (f.operand != Operand::kNone) {
      operand = absl::StrCat(", ", name, "_c", i);
      absl::StrAppend(&text, name, "_c", i, " = Const {dtype=", DtypeName(result.dtype()),
                      ", value=", ConstantFor(f.operand, result), "}\n");
    }
    absl::StrAppend(&text, node, " = ", f.op, "(", at, operand, ") {T=", DtypeName(result.dtype()),
                    "}\n");
    at = node;
  }
  return text;
}

// What the tail makes of the result, node by node.
StatusOr<Tensor> FollowAlone(const std::vector<Follower>& tail, Tensor result) {
  const std::string text = absl::StrCat("x = Placeholder {dtype=", DtypeName(result.dtype()),
                                        ", shape=shape(?)}\n", TailText(tail, "x", "y", result));
  ASSIGN_OR_RETURN(auto graph, ParseGraph(text));
  RewriterConfig rewriter;
  rewriter.disable_meta_optimizer = true;
  Session session(std::shared_ptr<const Graph>(std::move(graph)),
                  {.compile = false, .rewriter = rewriter});
  ASSIGN_OR_RETURN(std::vector<Tensor> results, session.Run({{"x", std::move(result)}}, {"y"}, {}));
  return results[0];
}

// By graph: cases of one op and one type find what those before, of other shapes, have made.
using Sessions = std::map<std::string, std::unique_ptr<Session>>;

// Why the case failed, or empty.
std::string RunTwice(const TestCase& c, const std::vector<Tensor>& inputs, const Way& way,
                     Sessions& sessions) {
  std::string text;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const absl::string_view type = DtypeName(inputs[i].dtype());
    names.push_back(absl::StrCat("in", i));
    if (i > 0 && way.constants) {
      absl::StrAppend(&text, "in", i, " = Const {dtype=", type, ", value=", c.ins[i], "}\n");
      continue;
    }
    absl::StrAppend(&text, "in", i, " = Placeholder {dtype=", type, ", shape=shape(?)}\n");
    feeds.emplace_back(names.back(), inputs[i]);
  }
  for (const char* node : {"tested", "again"}) text += c.NodeText(node, names);
  // Of whose results tails are read: the wanted ones, by output.
  std::map<size_t, Tensor> followed;
  const std::vector<Follower>& tail = kTails[static_cast<size_t>(c.line) % kTails.size()];
  for (size_t k = 0; way.followed && k < c.outs.size(); ++k) {
    auto want = ParseTensorText(c.outs[k]);
    if (!want.ok() || !IsFollowed(*want)) continue;
    const std::string name = absl::StrCat("tail", k);
    absl::StrAppend(&text, TailText(tail, absl::StrCat("tested:", k), name, *want));
    auto then = FollowAlone(tail, *std::move(want));
    if (!then.ok()) return std::string(then.status().message());
    followed.emplace(k, *std::move(then));
  }
  if (way.followed && followed.empty()) return "";
  bool done = false;
  auto graph = ParseGraph(text);
  if (!graph.ok()) return CompareStatus(graph.status(), c.steps[0].failure, &done);
  const Node* node = (*graph)->Find("tested");
  if (node->def() == nullptr || node->def()->stateful) return "";
  if (way.constants) sessions.clear();
  std::unique_ptr<Session>& session = sessions[text];
  if (session == nullptr) {
    RewriterConfig rewriter;
    rewriter.disable_meta_optimizer = !way.optimize;
    session = std::make_unique<Session>(
        std::shared_ptr<const Graph>(*std::move(graph)),
        SessionOptions{.rewriter = rewriter, .files = FileSystem::Whole()});
  }
  std::vector<std::string> fetches, targets;
  for (const char* each : {"tested", "again"}) {
    for (size_t k = 0; k < c.outs.size(); ++k) fetches.push_back(absl::StrCat(each, ":", k));
    if (c.outs.empty()) targets.push_back(each);
  }
  if (way.followed) {
    fetches.clear();
    for (const auto& [k, want] : followed) fetches.push_back(absl::StrCat("tail", k));
  }
  // The second run finds what the first one has made.
  for (int run = 0; run < 2; ++run) {
    auto results = session->Run(feeds, fetches, targets);
    std::string why = CompareStatus(results.status(), c.steps[0].failure, &done);
    if (!why.empty()) return why;
    if (done) continue;
    for (size_t at = 0; const auto& [k, want] : followed) {
      why = Compare((*results)[at], want, c);
      if (!why.empty()) return absl::StrCat("run ", run + 1, ": ", fetches[at], " ", why);
      ++at;
    }
    for (size_t k = 0; !way.followed && k < fetches.size(); ++k) {
      auto want = ParseTensorText(c.outs[k % c.outs.size()]);
      if (!want.ok()) return std::string(want.status().message());
      why = Compare((*results)[k], *want, c);
      if (!why.empty()) return absl::StrCat("run ", run + 1, ": ", fetches[k], " ", why);
    }
  }
  return "";
}

}  // namespace

int OpProgramTests(int argc, char** argv) {
  std::vector<TestCase> cases;
  if (!ReadOneOpCases(argc, argv, &cases)) return 2;
  int passed = 0, failed = 0;
  std::array<Sessions, std::size(kWays)> sessions;
  for (const TestCase& c : cases) {
    const auto inputs = c.Inputs();
    if (!inputs) continue;
    // Two nodes of one name in a container share what they keep.
    if (absl::StrContains(c.op, "container=")) continue;
    for (const Way& way : kWays) {
      if (way.constants && inputs->size() < 2) continue;
      // Passes take away what would do nothing, and some of it would fail.
      if ((way.optimize || way.followed) && c.steps[0].failure.expected) continue;
      const std::string why =
          RunTwice(c, *inputs, way, sessions[static_cast<size_t>(&way - kWays)]);
      ++(why.empty() ? passed : failed);
      if (why.empty()) continue;
      std::printf("FAILED %s, %s (%s:%d) %s\n", c.op.c_str(), way.name, c.file.c_str(), c.line,
                  why.c_str());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace smelt
