#include "smelt/analysis/split_rows.h"

#include <algorithm>

#include "smelt/analysis/rows/proof.h"

namespace smelt {
namespace {

// Numbers of rows to try where a request's is not known: divisible by what models split batches
// into, and not to be met as any other dimension.
constexpr int64_t kFewRows = 5040, kManyRows = 55440;

bool LieInTurn(const RowState& s) {
  return s.kind == RowKind::kRows && s.axis == 0 && s.outer == 1;
}

RowSplit Answer(RowQuestion question, std::span<const Endpoint> values = {}) {
  RowSplit out;
  out.args = question.rows;
  const size_t results = question.results.size();
  question.results.insert(question.results.end(), values.begin(), values.end());
  RowAnswer answer = FollowRows(question);
  out.why_not = std::move(answer.why_not);
  out.work = answer.work;
  for (size_t i = results; i < answer.results.size(); ++i) {
    out.values.push_back(LieInTurn(answer.results[i]));
  }
  answer.results.resize(std::min(results, answer.results.size()));
  for (size_t i = 0; i < answer.results.size() && out.possible(); ++i) {
    const RowState& s = answer.results[i];
    if (!LieInTurn(s) && s.kind != RowKind::kWhole) {
      out.why_not = absl::StrCat("result ", i, " holds ", RowStateText(s));
    }
    out.results.push_back(s.kind == RowKind::kRows);
  }
  return out;
}

}  // namespace

RowSplit ProveRowSplit(const Graph& graph, std::span<const PartialShape> args, int64_t rows,
                       int64_t part, std::span<const Endpoint> values) {
  RowQuestion q{.graph = &graph, .shapes = {args.begin(), args.end()}, .few = part, .many = rows};
  q.args.resize(args.size());
  q.rows.resize(args.size());
  for (Node* n : graph.Nodes()) {
    const auto index = static_cast<size_t>(n->Int("index", -1));
    if (n->Is("_Retval")) {
      if (index >= q.results.size()) q.results.resize(index + 1);
      q.results[index] = n->inputs()[0];
    } else if (n->Is("_Arg") && index < args.size()) {
      const bool data = BaseType(n->output_types[0]) != Dtype::kResource;
      q.args[index] = {n, 0};
      q.rows[index] = data && args[index].rank() > 0 && args[index][0] == rows;
    }
  }
  const auto split = std::ranges::find(q.rows, true);
  if (split == q.rows.end() || rows <= part || part < 1) {
    return {.why_not = "there are too few rows", .args = q.rows};
  }
  return Answer(std::move(q), values);
}

RowSplit ExpectRowSplit(const Function& function, const ShapeTable& shapes) {
  RowQuestion q{.graph = function.body.get(),
                .args = function.FlatArguments(),
                .results = function.FlatResults(),
                .few = kFewRows,
                .many = kManyRows};
  for (const Endpoint& e : q.args) {
    const PartialShape& s = shapes.AsArgument(e);
    q.shapes.push_back(s);
    q.rows.push_back(e.node->output_types[e.port] != Dtype::kResource && s.rank() > 0 && s[0] < 0);
  }
  if (std::ranges::find(q.rows, true) == q.rows.end()) {
    return {.why_not = "no argument has an unknown number of rows", .args = q.rows};
  }
  return Answer(std::move(q));
}

}  // namespace smelt
