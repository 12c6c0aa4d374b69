#include "smelt/cli/optimize_report.h"

#include "absl/strings/str_format.h"
#include "smelt/io/json_writer.h"

namespace smelt {
namespace {

std::string PlaceOf(const RewriteLog::Event& e) {
  return e.graph.empty() ? "" : absl::StrCat("function ", e.graph, ": ");
}

// "39.5 KFLOP": three digits or four.
std::string Amount(int64_t amount, absl::string_view unit) {
  double n = static_cast<double>(amount);
  const char* prefixes = " KMGTP";
  for (; n >= 1000 && prefixes[1] != 0; n /= 1000) ++prefixes;
  return absl::StrFormat("%.4g %s%s", n, *prefixes == ' ' ? "" : std::string(1, *prefixes), unit);
}

std::string MeasuredText(const MeasuredReport& measured) {
  if (!measured.machine) return "";
  std::string out = absl::StrFormat("this machine: %.1f GFLOP/s, %.1f GB/s\n",
                                    measured.machine->gflops, measured.machine->gb_per_second);
  absl::string_view when = "before";
  for (const GraphEstimate& e : measured.estimates) {
    absl::StrAppendFormat(&out, "estimated %s: %s, %s moved, %.4g us, %s of memory", when,
                          Amount(e.flops, "FLOP"), Amount(e.bytes, "B"),
                          static_cast<double>(e.nanoseconds) * 1e-3, Amount(e.peak_bytes, "B"));
    absl::StrAppendFormat(&out, "; of %d nodes, %d by guess\n", e.nodes, e.inaccurate);
    when = "after";
  }
  return out;
}

void WriteMeasured(const MeasuredReport& measured, JsonWriter& w) {
  if (!measured.machine) return;
  w.Object("machine", [&] {
    w.RealField("gflops", measured.machine->gflops);
    w.RealField("gb_per_second", measured.machine->gb_per_second);
  });
  w.Objects("estimates", measured.estimates, [&](const GraphEstimate& e) {
    w.Field("flops", e.flops);
    w.Field("bytes", e.bytes);
    w.Field("nanoseconds", e.nanoseconds);
    w.Field("peak_bytes", e.peak_bytes);
    w.Field("nodes", e.nodes);
    w.Field("inaccurate", e.inaccurate);
  });
}

}  // namespace

std::string OptimizationText(const OptimizationReport& report, const RewriteLog& log,
                             const std::string& node, const MeasuredReport& measured) {
  std::string out = MeasuredText(measured);
  for (const GraphReport& graph : report.graphs) {
    absl::StrAppend(&out, graph.graph.empty() ? "graph" : absl::StrCat("function ", graph.graph),
                    "\n");
    absl::StrAppendFormat(&out, "  %-32s %17s %17s %9s\n", "pass", "nodes", "edges", "ms");
    for (const GraphReport::Pass& pass : graph.passes) {
      absl::StrAppendFormat(&out, "  %-32s %7d > %7d %7d > %7d %9.2f %s\n", pass.name,
                            pass.nodes_before, pass.nodes_after, pass.edges_before,
                            pass.edges_after, absl::ToDoubleMilliseconds(pass.time),
                            OutcomeWord(pass.outcome));
      if (!pass.why_undone.empty()) absl::StrAppend(&out, "    ", pass.why_undone, "\n");
    }
  }
  if (!report.graphs.empty()) {
    absl::StrAppendFormat(&out, "optimized in %.2f ms\n", absl::ToDoubleMilliseconds(report.time));
  }
  if (!log.counts().empty()) absl::StrAppend(&out, "rules\n");
  for (const auto& [rule, count] : log.counts()) {
    absl::StrAppendFormat(&out, "  %-32s %-40s %7d\n", rule.first, rule.second, count);
  }
  if (node.empty()) return out;
  absl::StrAppend(&out, "node ", node, "\n");
  if (log.events().empty()) absl::StrAppend(&out, "  no rule looked at it\n");
  for (const RewriteLog::Event& e : log.events()) {
    absl::StrAppend(&out, "  ", PlaceOf(e), e.pass, "/", e.rule, ": ",
                    e.fired ? "" : "did not fire: ", e.text, "\n");
  }
  return out;
}

std::string OptimizationJson(const OptimizationReport& report, const RewriteLog& log,
                             const std::string& node, const MeasuredReport& measured) {
  JsonWriter w;
  w.Object([&] {
    w.Key("ms");
    w.Real(absl::ToDoubleMilliseconds(report.time));
    w.Objects("graphs", report.graphs, [&](const GraphReport& graph) {
      w.Field("function", graph.graph);
      w.Objects("passes", graph.passes, [&](const GraphReport::Pass& pass) {
        w.Field("pass", pass.name);
        w.Field("outcome", OutcomeWord(pass.outcome));
        w.Field("nodes_before", pass.nodes_before);
        w.Field("nodes_after", pass.nodes_after);
        w.Field("edges_before", pass.edges_before);
        w.Field("edges_after", pass.edges_after);
        w.Key("ms");
        w.Real(absl::ToDoubleMilliseconds(pass.time));
        if (!pass.why_undone.empty()) w.Field("why_undone", pass.why_undone);
      });
    });
    w.Objects("rules", log.counts(), [&](const auto& row) {
      w.Field("pass", row.first.first);
      w.Field("rule", row.first.second);
      w.Field("fired", row.second);
    });
    w.Array("unknown_optimizers", report.unknown_optimizers,
            [&](const std::string& name) { w.Text(name); });
    WriteMeasured(measured, w);
    if (node.empty()) return;
    w.Field("explained", node);
    w.Objects("story", log.events(), [&](const RewriteLog::Event& e) {
      w.Field("function", e.graph);
      w.Field("pass", e.pass);
      w.Field("rule", e.rule);
      w.Flag("fired", e.fired);
      w.Field("text", e.text);
    });
  });
  return absl::StrCat(w.text(), "\n");
}

}  // namespace smelt
