#include "smelt/cli/bench_report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_format.h"
#include "smelt/cli/svg.h"
#include "smelt/io/json_writer.h"

namespace smelt {
namespace {

std::string NodeTitle(const NodeProfile& n) {
  return absl::StrCat(n.node, n.function.empty() ? "" : " of " + n.function, ": ", n.op,
                      n.then.empty() ? "" : " then " + n.then, " [", n.kernel,
                      n.bound        ? ", bound"
                      : n.in_program ? ""
                                     : ", in no program",
                      "]");
}

// 10^9 a second.
double RateOf(double amount, const NodeProfile& n) { return n.ms > 0 ? amount / n.ms / 1e6 : 0; }

double ShareOfPeak(const NodeProfile& n, const BenchResult& r) {
  return n.ms > 0 ? n.LeastMs(r.peaks, r.profile->data_bytes) / n.ms : 0;
}

std::string NodeTable(const BenchResult& r) {
  std::vector<const NodeProfile*> nodes;
  for (const NodeProfile& n : r.profile->nodes) nodes.push_back(&n);
  std::ranges::stable_sort(nodes, std::greater(), [](const NodeProfile* n) { return n->ms; });
  std::string text = absl::StrFormat("%7s %9s %6s %9s %9s %9s %7s %6s  %s\n", "share", "ms",
                                     "calls", "MFLOP", "MB", "GFLOP/s", "GB/s", "peak", "node");
  for (const NodeProfile* n : nodes) {
    // Elements are marked: they are not held to the peak.
    const char* mark = n->counted ? " " : "e";
    absl::StrAppendFormat(&text, "%6.2f%% %9.4f %6.4g %8.4g%s %9.4g %8.4g%s %7.4g %5.0f%%  %s\n",
                          n->share * 100, n->ms, n->calls, n->work / 1e6, mark, n->bytes / 1e6,
                          RateOf(n->work, *n), mark, RateOf(n->bytes, *n), ShareOfPeak(*n, r) * 100,
                          NodeTitle(*n));
  }
  absl::StrAppendFormat(&text,
                        "%6.2f%% %9.4f ms in %d nodes, the median of %d traced requests; e: "
                        "elements, where the operations are not known\n",
                        r.profile->ms > 0 ? 100.0 : 0.0, r.profile->ms, nodes.size(),
                        r.profile->runs);
  return text;
}

void WriteLatency(JsonWriter& w, const Latency& l) {
  w.Field("clients", l.clients);
  w.Field("answers", static_cast<int64_t>(l.answers));
  w.RealField("median_ms", l.median_ms);
  w.RealField("p99_ms", l.p99_ms);
  w.RealField("answers_per_second", l.per_second);
}

// A picture with logarithmic axes.
class LogLog {
 public:
  LogLog(double x0, double x1, double y0, double y1) : x0_(x0), x1_(x1), y0_(y0), y1_(y1) {}
  static constexpr double kWidth = 760, kHeight = 460, kLeft = 70, kTop = 40;

  double X(double v) const { return kLeft + kWidth * std::log(v / x0_) / std::log(x1_ / x0_); }
  double Y(double v) const {
    return kTop + kHeight - kHeight * std::log(v / y0_) / std::log(y1_ / y0_);
  }
  std::string Axes(absl::string_view x_name, absl::string_view y_name) const {
    std::string svg;
    for (double v = x0_; v <= x1_ * 1.01; v *= 10) {
      absl::StrAppendFormat(&svg,
                            "<line x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\" stroke=\"#eee\"/>"
                            "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g</text>\n",
                            X(v), kTop, X(v), kTop + kHeight, X(v), kTop + kHeight + 18, v);
    }
    for (double v = y0_; v <= y1_ * 1.01; v *= 10) {
      absl::StrAppendFormat(&svg,
                            "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#eee\"/>"
                            "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                            kLeft, Y(v), kLeft + kWidth, Y(v), kLeft - 6, Y(v) + 4, v);
    }
    absl::StrAppendFormat(&svg,
                          "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>"
                          "<text x=\"14\" y=\"%g\" transform=\"rotate(-90 14 %g)\" "
                          "text-anchor=\"middle\">%s</text>\n",
                          kLeft + kWidth / 2, kTop + kHeight + 38, SvgText(x_name),
                          kTop + kHeight / 2, kTop + kHeight / 2, SvgText(y_name));
    return svg;
  }
  // Where `bandwidth` is the limit, up to `peak`.
  std::string Roof(double bandwidth, double peak, absl::string_view name) const {
    const double from = std::max(x0_, y0_ / bandwidth), to = std::min(x1_, peak / bandwidth);
    if (from >= to) return "";
    return absl::StrFormat(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#36c\"/>"
        "<text x=\"%.1f\" y=\"%.1f\" fill=\"#36c\">%s</text>\n",
        X(from), Y(from * bandwidth), X(to), Y(to * bandwidth), X(from) + 4,
        Y(from * bandwidth) - 12, SvgText(name));
  }
  std::string Ceiling(double peak, double bandwidth, absl::string_view name) const {
    return absl::StrFormat(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#c33\"/>"
        "<text x=\"%g\" y=\"%.1f\" fill=\"#c33\" text-anchor=\"end\">%s</text>\n",
        X(std::clamp(peak / bandwidth, x0_, x1_)), Y(peak), kLeft + kWidth, Y(peak),
        kLeft + kWidth - 4, Y(peak) - 5, SvgText(name));
  }

 private:
  const double x0_, x1_, y0_, y1_;
};

double PowerOfTenBelow(double v) { return std::pow(10, std::floor(std::log10(v))); }

}  // namespace

void Latency::Set(std::vector<double> ms, double seconds) {
  std::ranges::sort(ms);
  answers = ms.size();
  if (ms.empty()) return;
  median_ms = ms[answers / 2];
  p99_ms = ms[std::min(answers - 1, answers * 99 / 100)];
  per_second = static_cast<double>(answers) / std::max(seconds, 1e-9);
}

std::string BenchText(const BenchResult& r) {
  std::string text = absl::StrFormat(
      "signature '%s' on %s (%s), %d %s\n"
      "first answer %.3f ms, median %.4f ms, p99 %.4f ms, %.1f answers a second over %d\n",
      r.signature, r.inputs, r.origin, r.threads, r.threads == 1 ? "thread" : "threads", r.first_ms,
      r.whole.median_ms, r.whole.p99_ms, r.whole.per_second, r.whole.answers);
  if (r.clients) {
    absl::StrAppendFormat(
        &text, "%d clients: median %.4f ms, p99 %.4f ms, %.1f answers a second over %d\n",
        r.clients->clients, r.clients->median_ms, r.clients->p99_ms, r.clients->per_second,
        r.clients->answers);
  }
  if (!r.profile) return text;
  absl::StrAppendFormat(&text, "machine: float %.0f GFLOP/s", r.peaks.float32);
  if (r.peaks.bfloat16 > 0) absl::StrAppendFormat(&text, ", bfloat16 %.0f", r.peaks.bfloat16);
  if (r.peaks.int8 > 0) absl::StrAppendFormat(&text, ", int8 %.0f", r.peaks.int8);
  absl::StrAppendFormat(&text, "; reads %.0f GB/s from L2, %.0f from L3, %.0f from memory\n",
                        r.peaks.l2, r.peaks.l3, r.peaks.memory);
  return text + NodeTable(r);
}

std::string BenchJson(const BenchResult& r) {
  JsonWriter w;
  w.Object([&] {
    w.Field("model", r.model);
    w.Field("signature", r.signature);
    w.Field("inputs", r.inputs);
    w.Field("origin", r.origin);
    w.Field("threads", r.threads);
    w.RealField("first_ms", r.first_ms);
    w.Object("whole", [&] { WriteLatency(w, r.whole); });
    if (r.clients) w.Object("with_clients", [&] { WriteLatency(w, *r.clients); });
    if (!r.profile) return;
    w.Object("peaks", [&] {
      w.RealField("float_gflops", r.peaks.float32);
      w.RealField("bfloat16_gflops", r.peaks.bfloat16);
      w.RealField("int8_gops", r.peaks.int8);
      w.RealField("l2_gb_per_second", r.peaks.l2);
      w.RealField("l3_gb_per_second", r.peaks.l3);
      w.RealField("memory_gb_per_second", r.peaks.memory);
    });
    w.Field("traced_requests", r.profile->runs);
    w.RealField("nodes_ms", r.profile->ms);
    w.Objects("nodes", r.profile->nodes, [&](const NodeProfile& n) {
      w.Field("node", n.node);
      w.Field("op", n.op);
      w.Field("then", n.then);
      w.Field("function", n.function);
      w.Field("kernel", n.kernel);
      w.Flag("in_program", n.in_program);
      w.Flag("bound", n.bound);
      w.RealField("share", n.share);
      w.RealField("ms", n.ms);
      w.RealField("calls", n.calls);
      w.RealField(n.counted ? "operations" : "elements", n.work);
      w.RealField("bytes", n.bytes);
      w.RealField("weight_bytes", n.weights);
      w.RealField("giga_per_second", RateOf(n.work, n));
      w.RealField("gb_per_second", RateOf(n.bytes, n));
      w.RealField("share_of_peak", ShareOfPeak(n, r));
    });
  });
  return absl::StrCat(w.text(), "\n");
}

std::string RooflineSvg(const BenchResult& r) {
  const Peaks& p = r.peaks;
  const double peak = std::max({p.float32, p.bfloat16, p.int8});
  double least_x = 0.1, most_x = peak / p.memory * 10, least_y = peak / 1e3;
  for (const NodeProfile& n : r.profile->nodes) {
    if (n.ms <= 0 || n.bytes <= 0 || n.work <= 0) continue;
    least_x = std::min(least_x, n.work / n.bytes);
    most_x = std::max(most_x, n.work / n.bytes);
    least_y = std::min(least_y, RateOf(n.work, n));
  }
  const LogLog axes(PowerOfTenBelow(std::max(least_x, 1e-4)), PowerOfTenBelow(most_x) * 10,
                    PowerOfTenBelow(std::max(least_y, peak / 1e6)), PowerOfTenBelow(peak) * 10);
  std::string svg =
      absl::StrFormat("<text x=\"%g\" y=\"20\">%s</text>\n", LogLog::kLeft,
                      SvgText(absl::StrFormat("%s: %s, %d threads, median %.4g ms", r.model,
                                              r.inputs, r.threads, r.whole.median_ms)));
  svg += axes.Axes("operations a byte", "10^9 operations a second");
  const std::array<std::pair<double, const char*>, 3> bandwidths = {
      {{p.memory, "memory"}, {p.l3, "L3"}, {p.l2, "L2"}}};
  for (const auto& [bandwidth, name] : bandwidths) svg += axes.Roof(bandwidth, peak, name);
  const std::array<std::pair<double, const char*>, 3> peaks = {
      {{p.float32, "float"}, {p.bfloat16, "bfloat16"}, {p.int8, "int8"}}};
  for (const auto& [ceiling, name] : peaks) {
    if (ceiling > 0) svg += axes.Ceiling(ceiling, p.l2, name);
  }
  for (const NodeProfile& n : r.profile->nodes) {
    if (n.ms <= 0 || n.bytes <= 0 || n.work <= 0) continue;
    absl::StrAppendFormat(
        &svg,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" fill-opacity=\"0.5\" "
        "stroke=\"#333\"><title>%s</title></circle>\n",
        axes.X(std::max(n.work / n.bytes, 1e-4)), axes.Y(std::max(RateOf(n.work, n), peak / 1e6)),
        3 + 40 * std::sqrt(n.share), n.counted ? "#4a4" : "#aaa",
        SvgText(absl::StrFormat("%s; %.4f ms, %.1f%% of the time, %.0f%% of the peak", NodeTitle(n),
                                n.ms, n.share * 100, ShareOfPeak(n, r) * 100)));
  }
  return SvgDocument(LogLog::kLeft + LogLog::kWidth + 30, LogLog::kTop + LogLog::kHeight + 60, svg);
}

}  // namespace smelt
