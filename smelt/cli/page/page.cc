#include "smelt/cli/page/page.h"

#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "smelt/cli/page/parts.h"
#include "smelt/cli/version.h"
#include "smelt/io/json_writer.h"

namespace smelt {
namespace {

// One array, as there are many; model.js reads it. Lists stand behind their lengths.
void WriteNode(JsonLineWriter& w, const OptimizationHistory::Node& n) {
  std::vector<int64_t> numbers = {n.name, n.op, n.device, n.cost};
  const auto list = [&](const std::vector<int>& ids) {
    numbers.push_back(static_cast<int64_t>(ids.size()));
    numbers.insert(numbers.end(), ids.begin(), ids.end());
  };
  list(n.attrs);
  list(n.outputs);
  list(n.calls);
  for (const auto& [source, port] : n.inputs) numbers.insert(numbers.end(), {source, port});
  w.Array(numbers, [&](int64_t i) { w.Int(i); });
}

std::string HistoryJson(absl::string_view title, OptimizationHistory& history,
                        const RewriteLog& log) {
  // Texts of the log join the table before it is written.
  std::vector<int64_t> rewrites;
  for (const RewriteLog::Rewrite& r : log.rewrites()) {
    for (const std::string* text : {&r.graph, &r.pass, &r.rule, &r.node, &r.by}) {
      rewrites.push_back(history.Text(*text));
    }
  }
  int64_t fired = 0;
  for (const auto& [rule, count] : log.counts()) fired += count;
  JsonLineWriter w;
  w.Object([&] {
    w.Field("title", title);
    w.Field("smelt", kSmeltVersion);
    w.Texts("texts", history.texts());
    w.Objects("graphs", history.graphs(), [&](const OptimizationHistory::GraphSteps& graph) {
      w.Field("name", graph.name);
      w.Array("before", graph.before, [&](const auto& n) { WriteNode(w, n); });
      w.Objects("steps", graph.steps, [&](const OptimizationHistory::Step& step) {
        w.Field("pass", step.pass);
        w.Field("outcome", OutcomeWord(step.outcome));
        w.Field("nodes", step.nodes);
        w.RealField("ms", absl::ToDoubleMilliseconds(step.time));
        w.Flag("kept", step.kept);
        w.Array("put", step.put, [&](const auto& n) { WriteNode(w, n); });
        w.Ints("gone", std::vector<int64_t>(step.gone.begin(), step.gone.end()));
        if (!step.why_undone.empty()) w.Field("why", step.why_undone);
      });
    });
    // Five texts each: function, pass, rule, node, what took its place.
    w.Ints("rewrites", rewrites);
    w.Field("fired", fired);
    w.Objects("story", log.events(), [&](const RewriteLog::Event& e) {
      w.Field("graph", e.graph);
      w.Field("pass", e.pass);
      w.Field("rule", e.rule);
      w.Flag("fired", e.fired);
      w.Field("text", e.text);
    });
  });
  // In JSON "<" stands in strings alone: without it nothing ends the element or begins a comment.
  return absl::StrReplaceAll(w.text(), {{"<", "\\u003c"}});
}

}  // namespace

std::string OptimizationPage(absl::string_view title, OptimizationHistory& history,
                             const RewriteLog& log) {
  return absl::StrCat(kPageBeforeData, HistoryJson(title, history, log), kPageAfterData);
}

}  // namespace smelt
