// smelt_case_tests shapes [--unknown] FILE...: infers the shapes of op cases
// (docs/formats/op_cases.md) without running them. What is inferred must agree with the outputs
// that the case states, whatever is known of the inputs: shapes and small integer values, shapes
// alone, ranks, or nothing.
//
//   --unknown   lists ops of which some case's output shape stays open though all inputs are known
//
// Ends with "N cases, N failed, N of N outputs fully known"; exit code 1 when something failed, 2
// when a file could not be read.
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/text.h"
#include "tests/case_tests.h"
#include "tests/op_case.h"

namespace smelt {
namespace {

// What the inference is told of the inputs.
struct Knowledge {
  absl::string_view name;
  bool constants;
  enum { kShapes, kRanks, kNothing } inputs;
};
constexpr Knowledge kKnowledge[] = {
    {"with values", true, Knowledge::kShapes},          {"with shapes", false, Knowledge::kShapes},
    {"with values and ranks", true, Knowledge::kRanks}, {"with ranks", false, Knowledge::kRanks},
    {"with nothing known", false, Knowledge::kNothing},
};

PartialShape Told(const Tensor& t, const Knowledge& k) {
  if (k.inputs == Knowledge::kNothing) return {};
  if (k.inputs == Knowledge::kRanks) return PartialShape::UnknownOfRank(t.rank());
  return t.shape();
}

// What a graph would state as a constant: shapes, axes, limits.
bool MayBeConstant(const Tensor& t) {
  if (!IsPod(t.dtype())) return false;
  return t.rank() == 0 ||
         ((t.dtype() == Dtype::kInt32 || t.dtype() == Dtype::kInt64) && t.num_elements() <= 64);
}

struct Tally {
  int outputs = 0, known = 0;
  std::map<std::string, int> open;
};

std::string Mismatch(const PartialShape& inferred, const Tensor& actual) {
  if (inferred.Matches(actual.shape())) return "";
  return absl::StrCat("inferred ", inferred.ToString(), " for ", actual.shape().ToString());
}

std::string CheckOp(const TestCase& c, const Knowledge& k, Tally* tally) {
  std::vector<PartialShape> shapes;
  std::string text, args;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    auto tensor = ParseTensorText(c.ins[i]);
    if (!tensor.ok()) return absl::StrCat("input ", i, ": ", tensor.status().message());
    if (k.constants && MayBeConstant(*tensor)) {
      absl::StrAppend(&text, "in", i, " = Const {value=", c.ins[i], "}\n");
    } else {
      absl::StrAppend(&text, "in", i, " = _Arg {T=", DtypeName(tensor->dtype()), ", index=", i,
                      "}\n");
    }
    absl::StrAppend(&args, i ? ", " : "", "in", i);
    shapes.push_back(Told(*tensor, k));
  }
  const size_t name_end = c.op.find_first_of(" {");
  absl::StrAppend(&text, "tested = ", c.op.substr(0, name_end),
                  args.empty() ? "" : absl::StrCat("(", args, ")"),
                  name_end == std::string::npos ? "" : c.op.substr(name_end), "\n");
  auto graph = ParseGraph(text);
  if (!graph.ok()) return std::string(graph.status().message());
  auto table = InferShapes(**graph, XlaShapeRules(), shapes);
  if (!table.ok()) return std::string(table.status().message());
  Node* node = (*graph)->Find("tested");
  for (size_t i = 0; i < c.outs.size(); ++i) {
    auto want = ParseTensorText(c.outs[i]);
    if (!want.ok()) return absl::StrCat("output ", i, ": ", want.status().message());
    const PartialShape& got = table->of({node, static_cast<int>(i)});
    const std::string why = Mismatch(got, *want);
    if (!why.empty()) return absl::StrCat("output ", i, ": ", why);
    if (tally == nullptr) continue;
    ++tally->outputs;
    tally->known += got.fully_known();
    if (!got.fully_known()) ++tally->open[c.OpName()];
  }
  return "";
}

std::string CheckGraph(const TestCase& c, const Knowledge& k) {
  for (const TestStep& s : c.steps) {
    if (s.failure.expected) continue;
    auto graph = ParseGraph(c.graph);
    if (!graph.ok()) return std::string(graph.status().message());
    for (const auto& [name, literal] : s.feeds) {
      auto endpoint = (*graph)->FindEndpoint(name);
      auto tensor = ParseTensorText(literal);
      if (!endpoint.ok() || !tensor.ok()) return absl::StrCat("cannot feed ", name);
      if (!endpoint->node->Is("Placeholder")) return "";  // fed values are not what is inferred
      const PartialShape told = Told(*tensor, k);
      endpoint->node->AttrsToChange().Set("shape", told);
      endpoint->node->AttrsToChange().Set("_output_shapes", std::vector<PartialShape>{told});
    }
    auto table = InferShapes(**graph, XlaShapeRules());
    if (!table.ok()) return std::string(table.status().message());
    for (const auto& [name, literal] : s.fetches) {
      auto endpoint = (*graph)->FindEndpoint(name);
      auto want = ParseTensorText(literal);
      if (!endpoint.ok() || !want.ok()) return absl::StrCat("cannot fetch ", name);
      const std::string why = Mismatch(table->of(*endpoint), *want);
      if (!why.empty()) return absl::StrCat(name, ": ", why);
    }
  }
  return "";
}

}  // namespace

int ShapeTests(int argc, char** argv) {
  std::vector<TestCase> cases;
  bool list_unknown = false;
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--unknown") {
      list_unknown = true;
    } else if (const Status s = ReadCases(argv[i], &cases); !s.ok()) {
      std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
      return 2;
    }
  }
  int checked = 0, failed = 0;
  Tally tally;
  for (const TestCase& c : cases) {
    if (!c.is_graph && c.steps[0].failure.expected) continue;
    ++checked;
    for (const Knowledge& k : kKnowledge) {
      const std::string why =
          c.is_graph ? CheckGraph(c, k) : CheckOp(c, k, &k == kKnowledge ? &tally : nullptr);
      if (why.empty()) continue;
      ++failed;
      std::printf("FAILED %s (%s:%d) %s: %s\n", c.name.c_str(), c.file.c_str(), c.line,
                  std::string(k.name).c_str(), why.c_str());
      break;
    }
  }
  if (list_unknown) {
    for (const auto& [op, n] : tally.open) std::printf("open: %4d %s\n", n, op.c_str());
  }
  std::printf("%d cases, %d failed, %d of %d outputs fully known\n", checked, failed, tally.known,
              tally.outputs);
  return failed > 0 ? 1 : 0;
}

}  // namespace smelt
