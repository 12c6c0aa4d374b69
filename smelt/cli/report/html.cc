// smelt convert --report_html: one page that holds all it shows. No scripts, nothing loaded.
#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/cli/report/error_curve.h"
#include "smelt/cli/report/reports.h"
#include "smelt/cli/version.h"
#include "smelt/io/utf8.h"

namespace smelt {
namespace {

// Larger drawings and tables are cut here.
constexpr size_t kMaxBoxes = 150;
constexpr size_t kMaxRows = 2000;
constexpr size_t kOpenRows = 24;  // longer tables are folded
constexpr int kBoxWidth = 220, kBoxHeight = 40, kColumn = 280, kRow = 56;

// What does not fit a narrow window is scrolled by itself, so that the page is not.
constexpr char kStyle[] = R"(
body{font:14px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1180px;padding:0 16px;color:#202124}
h1{font-size:22px}h2{font-size:17px;margin-top:28px}p{overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid #e0e0e0;vertical-align:top}
td{min-width:14ch;overflow-wrap:anywhere;white-space:pre-wrap}td:last-child{min-width:24ch}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;min-width:7ch;white-space:nowrap}
table.facts td:first-child{min-width:9ch;width:12ch;color:#5f6368}
summary{cursor:pointer;color:#1a73e8}
.bar{background:#e8eaed;height:12px;border-radius:3px;overflow:hidden;margin-top:4px}
.bar div{height:12px}.tpu{background:#1a73e8}.cpu{background:#9aa0a6}.bad{color:#b3261e;font-weight:600}
svg{display:block;margin-top:10px;border:1px solid #e0e0e0;border-radius:6px}text{font-family:monospace}
)";

// Text of a model may be anything: markup is escaped, bytes that no page may hold are replaced.
std::string Escaped(absl::string_view bytes) {
  std::string out;
  for (const char ch : Utf8Text(bytes)) {
    switch (ch) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if ((static_cast<unsigned char>(ch) < 0x20 && ch != '\n' && ch != '\t') || ch == 0x7f) {
          absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(ch));
        } else {
          out += ch;
        }
    }
  }
  return out;
}

// The end of a long name, which tells functions apart; cut between characters of UTF-8.
std::string Shortened(absl::string_view s, size_t most) {
  if (s.size() <= most) return std::string(s);
  size_t from = s.size() - most;
  while (from < s.size() && (static_cast<unsigned char>(s[from]) & 0xc0) == 0x80) ++from;
  return absl::StrCat("…", s.substr(from));
}

double HtmlPercent(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

class HtmlPage {
 public:
  void Raw(absl::string_view s) { absl::StrAppend(&out_, s); }
  void Heading(absl::string_view text) { absl::StrAppend(&out_, "<h2>", Escaped(text), "</h2>\n"); }
  void Paragraph(absl::string_view text) { absl::StrAppend(&out_, "<p>", Escaped(text), "</p>\n"); }
  std::string Take() { return std::move(out_); }

  // A table of `rows`, each made into cells; headings that begin with '#' are of numbers. Columns
  // that no row fills are left out, and the headings where none has a text.
  template <typename Row, typename F>
  void Table(absl::string_view title, const std::vector<const char*>& headings,
             const std::vector<Row>& rows, F cells) {
    if (rows.empty()) return;
    Heading(title);
    const bool folded = rows.size() > kOpenRows;
    if (folded) absl::StrAppend(&out_, "<details><summary>", rows.size(), " rows</summary>\n");
    std::vector<std::vector<std::string>> shown;
    std::vector<bool> filled(headings.size());
    for (size_t i = 0; i < rows.size() && i < kMaxRows; ++i) {
      shown.push_back(cells(rows[i]));
      for (size_t k = 0; k < headings.size(); ++k) filled[k] = filled[k] || !shown[i][k].empty();
    }
    const bool headed = std::ranges::any_of(headings, [](const char* h) { return *h != 0; });
    Raw(headed ? "<div class=\"wide\"><table>" : "<div class=\"wide\"><table class=\"facts\">");
    if (headed) Raw("<tr>");
    for (size_t k = 0; headed && k < headings.size(); ++k) {
      if (!filled[k]) continue;
      const bool number = headings[k][0] == '#';
      absl::StrAppend(&out_, number ? "<th class=\"n\">" : "<th>",
                      Escaped(headings[k] + (number ? 1 : 0)), "</th>");
    }
    if (headed) Raw("</tr>\n");
    for (const std::vector<std::string>& texts : shown) {
      Raw("<tr>");
      for (size_t k = 0; k < texts.size(); ++k) {
        if (!filled[k]) continue;
        absl::StrAppend(&out_, headings[k][0] == '#' ? "<td class=\"n\">" : "<td>",
                        Escaped(texts[k]), "</td>");
      }
      Raw("</tr>\n");
    }
    Raw("</table></div>\n");
    if (rows.size() > kMaxRows) Paragraph(absl::StrCat("and ", rows.size() - kMaxRows, " more"));
    if (folded) Raw("</details>\n");
  }

  void Bar(absl::string_view name, int64_t cost, int64_t total, bool tpu) {
    const double percent = HtmlPercent(cost, total);
    absl::StrAppendFormat(&out_,
                          "<tr><td>%s</td><td class=\"n\">%d</td><td class=\"n\">%.2f%%</td><td>"
                          "<div class=\"bar\"><div class=\"%s\" style=\"width:%.2f%%\"></div></div>"
                          "</td></tr>\n",
                          Escaped(name), cost, percent, tpu ? "tpu" : "cpu",
                          std::min(100.0, percent));
  }

 private:
  std::string out_;
};

// Signatures and functions in layers, callers left of what they call.
class FunctionDrawing {
 public:
  explicit FunctionDrawing(const ReportData& data) {
    size_t wanted = data.signatures.size();
    for (const ReportSignature& s : data.signatures) {
      Add(absl::StrCat("signature ", s.name), "", kSignature, s.calls);
    }
    for (const ReportFunction& f : data.functions) {
      if (f.inlined) continue;
      ++wanted;
      if (boxes_.size() >= kMaxBoxes) continue;
      index_[f.name] = boxes_.size();
      Add(data.FunctionTitle(f.name), absl::StrCat("cost ", f.cost, ", ", f.nodes, " ops"),
          f.on_tpu ? kTpu : kCpu, f.calls, f.name);
    }
    left_out_ = wanted - boxes_.size();
    Layer();
  }

  size_t left_out() const { return left_out_; }

  std::string Svg() const {
    std::map<int, int> heights;
    int columns = 0, rows = 0;
    for (const Box& b : boxes_) {
      columns = std::max(columns, b.layer + 1);
      rows = std::max(rows, b.row + 1);
    }
    std::string out =
        absl::StrFormat("<svg role=\"img\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n",
                        columns * kColumn, rows * kRow + 16, columns * kColumn, rows * kRow + 16);
    for (const Box& from : boxes_) {
      for (const std::string& name : from.calls) {
        auto it = index_.find(name);
        if (it == index_.end()) continue;
        const Box& to = boxes_[it->second];
        const int x1 = X(from) + kBoxWidth, y1 = Y(from) + kBoxHeight / 2;
        const int x2 = X(to), y2 = Y(to) + kBoxHeight / 2;
        absl::StrAppendFormat(&out,
                              "<path d=\"M%d %d C%d %d %d %d %d %d\" fill=\"none\" "
                              "stroke=\"#9aa0a6\"/>\n",
                              x1, y1, x1 + 40, y1, x2 - 40, y2, x2, y2);
      }
    }
    for (const Box& b : boxes_) {
      const char* fill = b.kind == kTpu ? "#1a73e8" : b.kind == kCpu ? "#e8eaed" : "#ffffff";
      const char* ink = b.kind == kTpu ? "#ffffff" : "#202124";
      absl::StrAppendFormat(
          &out,
          "<g><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" "
          "fill=\"%s\" stroke=\"#5f6368\"/><text x=\"%d\" y=\"%d\" fill=\"%s\" "
          "font-size=\"12\">%s</text><text x=\"%d\" y=\"%d\" fill=\"%s\" font-size=\"10\">%s"
          "</text></g>\n",
          Escaped(b.full), X(b), Y(b), kBoxWidth, kBoxHeight, fill, X(b) + 8, Y(b) + 16, ink,
          Escaped(Shortened(b.title, 26)), X(b) + 8, Y(b) + 31, ink, Escaped(b.detail));
    }
    return out + "</svg>\n";
  }

 private:
  enum Kind { kSignature, kCpu, kTpu };
  struct Box {
    std::string title, detail, full;
    Kind kind;
    std::vector<std::string> calls;
    int layer = 0, row = 0;
  };

  void Add(std::string title, std::string detail, Kind kind, std::vector<std::string> calls,
           std::string full = "") {
    if (boxes_.size() >= kMaxBoxes) return;
    if (full.empty()) full = title;
    boxes_.push_back(
        {std::move(title), std::move(detail), std::move(full), kind, std::move(calls)});
  }

  // Puts each box right of all its callers. Functions that call themselves would move forever, so
  // there are at most twelve rounds.
  void Layer() {
    bool changed = true;
    for (size_t round = 0; changed && round < std::min<size_t>(boxes_.size(), 12); ++round) {
      changed = false;
      for (const Box& from : boxes_) {
        for (const std::string& name : from.calls) {
          auto it = index_.find(name);
          if (it == index_.end() || boxes_[it->second].layer > from.layer) continue;
          boxes_[it->second].layer = from.layer + 1;
          changed = true;
        }
      }
    }
    std::map<int, int> rows;
    for (Box& b : boxes_) b.row = rows[b.layer]++;
  }

  static int X(const Box& b) { return b.layer * kColumn + 10; }
  static int Y(const Box& b) { return b.row * kRow + 10; }

  std::vector<Box> boxes_;
  std::map<std::string, size_t> index_;  // by function
  size_t left_out_ = 0;
};

void WriteCosts(HtmlPage& page, const ReportData& data) {
  page.Heading("Cost");
  page.Raw(
      "<div class=\"wide\"><table><tr><th>Where</th><th class=\"n\">Cost</th>"
      "<th class=\"n\">Share</th>"
      "<th></th></tr>\n");
  page.Bar("[CPU cost]", data.cpu_cost, data.total_cost, false);
  for (size_t i = 0; i < data.placements.size() && i < kMaxRows; ++i) {
    page.Bar(data.placements[i].label, data.placements[i].cost, data.total_cost, true);
  }
  page.Raw("</table></div>\n");
}

void WriteMemory(HtmlPage& page, const ReportData& data) {
  page.Heading("Memory of the TPU (HBM)");
  const bool fits = data.hbm_bytes <= data.tpu->hbm_bytes;
  page.Raw(fits ? "<p>" : "<p class=\"bad\">");
  page.Raw(Escaped(absl::StrFormat(
      "%s on %s, against %s of one %s chip (%.2f%%): %s", BytesText(data.hbm_bytes),
      data.cores == 1 ? "the core" : absl::StrFormat("each of %d cores", data.cores),
      BytesText(data.tpu->hbm_bytes), data.tpu->name,
      HtmlPercent(data.hbm_bytes, data.tpu->hbm_bytes), fits ? "fits" : "does not fit")));
  page.Raw("</p>\n");
  page.Table("Memory by function",
             {"Function", "#Variables", "#Constants", "#Activations, batch 1",
              "#Activations, largest batch"},
             data.placements, [](const ReportPlacement& p) -> std::vector<std::string> {
               return {p.label, BytesText(p.variable_bytes), BytesText(p.constant_bytes),
                       BytesText(p.activation_bytes), BytesText(p.activation_bytes_at_batch)};
             });
}

// Bytes of a tensor, 0 where its sizes are not known.
std::string TransferBytes(const TransferredTensor& t, int64_t bytes) {
  return bytes == 0 && !t.shape.fully_known() ? "unknown" : BytesText(bytes);
}

void WriteModelFacts(HtmlPage& page, const ReportData& data) {
  const ReportModel& m = data.model;
  using Row = std::pair<std::string, std::string>;
  std::vector<Row> rows = {{"Path", m.path}};
  if (!m.version.empty()) rows.emplace_back("Version", m.version);
  rows.emplace_back("Tags", absl::StrJoin(m.tags, ", "));
  rows.emplace_back("TensorFlow", m.tensorflow_version);
  rows.emplace_back("SHA-256", m.sha256);
  if (!data.options.empty()) rows.emplace_back("Options", data.options);
  if (const TrainingParts& t = data.training; t.bytes() > 0) {
    rows.emplace_back(
        "Training",
        absl::StrCat(t.stripped ? "stripped: " : "--strip_training saves ", BytesText(t.bytes())));
  }
  rows.emplace_back("smelt", kSmeltVersion);
  page.Table("Model", {"", ""}, rows, [](const Row& row) -> std::vector<std::string> {
    return {row.first, row.second};
  });
}

void WriteVerification(HtmlPage& page, const Verification& v) {
  page.Table(
      "Verification",
      {"Signature", "Output", "#Requests", "#Largest difference", "#of the range", "Judgment"},
      v.outputs, [](const VerifiedOutput& o) -> std::vector<std::string> {
        const std::string judgment =
            absl::StrCat(o.ok ? "ok" : "differs", o.random ? ", random" : "");
        return {o.signature,
                o.output,
                absl::StrCat(o.requests),
                absl::StrFormat("%.3g", o.max_abs),
                absl::StrFormat("%.3g", o.max_relative),
                o.why.empty() ? judgment : absl::StrCat(judgment, ": ", o.why)};
      });
  for (const auto* texts : {&v.notes, &v.advice}) {
    for (const std::string& text : *texts) page.Paragraph(text);
  }
}

void WriteAdvice(HtmlPage& page, const BatchingAdvice& a) {
  page.Table("Choices of batching, the best first",
             {"Sizes", "#Threads", "#Timeout (ms)", "#Mean waiting (ms)", "#99 % waiting (ms)",
              "#Mean latency (ms)", "#99 % latency (ms)", "#Padding", "#Rows in a batch",
              "#Batches a second", "#Cores busy", "Keeps up"},
             a.choices, [](const AdvisedChoice& c) -> std::vector<std::string> {
               const auto number = [](double n) { return absl::StrFormat("%.4g", n); };
               const auto share = [](double n) { return absl::StrFormat("%.1f%%", n * 100); };
               return {absl::StrJoin(c.options.allowed_batch_sizes, " "),
                       absl::StrCat(c.options.num_batch_threads),
                       number(c.options.batch_timeout_micros / 1e3),
                       number(c.mean_wait),
                       number(c.p99_wait),
                       number(c.mean_latency),
                       number(c.p99_latency),
                       share(c.padding),
                       number(c.rows_per_batch),
                       number(c.batches_per_second),
                       share(c.core_load),
                       c.keeps_up ? "yes" : "no"};
             });
  if (!a.done) return;
  page.Paragraph(
      absl::StrFormat("%d requests with %d rows in %.4g s (%s). Times of batches: %s. "
                      "Best is: %s.",
                      a.requests, a.rows, a.seconds, a.arrivals, a.batch_times, a.objective));
  for (const std::string& note : a.notes) page.Paragraph(note);
}

void WriteSearch(HtmlPage& page, const PrecisionSearch& s) {
  if (!s.done) return;
  std::vector<size_t> rows(s.trials.size());
  std::iota(rows.begin(), rows.end(), 0);
  page.Table(
      "Types of the layers that were tried",
      {"#Trial", "#Cost, of float32's", s.by_labels ? "#Points less accurate" : "#% of the range",
       "#int8", "#bfloat16", "#float32", "Judgment"},
      rows, [&](size_t i) -> std::vector<std::string> {
        const PrecisionTrial& t = s.trials[i];
        const bool chosen = static_cast<int>(i) == s.chosen;
        return {absl::StrCat(i + 1),
                absl::StrFormat("%.3f", t.cost),
                t.why.empty() ? absl::StrFormat("%.3g", 100 * t.error) : "",
                absl::StrCat(t.int8),
                absl::StrCat(t.bfloat16),
                absl::StrCat(t.float32),
                absl::StrCat(t.ok ? "within the bound" : "not within the bound",
                             chosen ? ", chosen" : "", t.why.empty() ? "" : ": ", t.why)};
      });
  if (const std::string curve = ErrorCurveSvg(s); !curve.empty()) {
    page.Raw(absl::StrCat("<div class=\"wide\">", curve, "</div>\n"));
    page.Paragraph(
        "A point for each trial, filled where it is within the bound (dashed), large where it was "
        "chosen. The line is the least error for so much cost.");
  }
  page.Paragraph(absl::StrFormat(
      "At most %.3g%s, by %s.", 100 * s.max_error,
      s.by_labels ? " points of accuracy less" : "% of an output's range", s.evidence));
  for (const std::string& note : s.notes) page.Paragraph(note);
}

void WriteTables(HtmlPage& page, const ConversionRecords& r, const ReportData& data) {
  using Cells = std::vector<std::string>;
  const auto title = [&](const std::string& function) {
    const auto placed = std::ranges::find(data.placements, function, &ReportPlacement::function);
    return placed != data.placements.end() ? placed->label : data.FunctionTitle(function);
  };
  page.Table("Notes", {"Stage", "Function", "Node", "Text"}, r.notes, [&](const Note& n) -> Cells {
    return {n.stage, title(n.function), n.node, n.text};
  });
  page.Table("Transfers between CPU and TPU (bytes padded to tiles)",
             {"Function", "Direction", "Tensor", "Type", "Shape", "Form", "#Before", "#After"},
             r.transfers, [&](const TransferredTensor& b) -> Cells {
               return {title(b.function),
                       b.input ? "in" : "out",
                       b.name,
                       std::string(DtypeName(b.dtype)),
                       b.shape.known_rank() ? b.shape.ToString() : "unknown",
                       b.form,
                       TransferBytes(b, b.bytes_before),
                       TransferBytes(b, b.bytes)};
             });
  page.Table("Ops that stay on the CPU", {"Function", "Node", "Op", "Source", "Why"}, r.host_ops,
             [&](const HostOp& h) -> Cells {
               return {title(h.function), WithoutCalls(h.node), h.op, h.source, h.reason};
             });
  page.Table("Automatic placement",
             {"What", "Function", "#Ops placed", "#Ops", "#Cost placed", "#Cost"},
             r.auto_placements, [&](const AutoPlacement& a) -> Cells {
               return {a.label,
                       title(a.function),
                       absl::StrCat(a.placed_nodes),
                       absl::StrCat(a.nodes),
                       absl::StrCat(a.placed_cost),
                       absl::StrCat(a.cost)};
             });
  page.Table("Precision", {"Function", "Node", "Op", "Type", "Why"}, r.precision,
             [&](const PrecisionChoice& p) -> Cells {
               return {title(p.function),
                       p.op == kVariableOp ? data.VariableName(p.node) : WithoutCalls(p.node), p.op,
                       p.converted ? "bfloat16" : "float32", p.reason};
             });
  page.Table("Stored variables", {"Variable", "Before", "After", "#Before", "#After"}, r.variables,
             [&](const StoredVariable& v) -> Cells {
               return {data.VariableName(v.name), std::string(DtypeName(v.before)),
                       std::string(DtypeName(v.after)), BytesText(v.bytes_before),
                       BytesText(v.bytes)};
             });
  page.Table("Quantized layers",
             {"Function", "Node", "Op", "Method", "#Weight error", "#Own error", "#Output error",
              "Why not"},
             r.layers, [&](const QuantizedLayer& l) -> Cells {
               return {title(l.function),
                       WithoutCalls(l.node),
                       l.op,
                       l.quantized ? l.method : "none",
                       absl::StrFormat("%.3g", l.weight_error),
                       absl::StrFormat("%.3g", l.own_error),
                       absl::StrFormat("%.3g", l.output_error),
                       l.reason};
             });
  page.Table("Batching", {"Component", "What"}, r.batches, [](const BatchRecord& b) -> Cells {
    const std::string what = b.updated ? "options updated" : "BatchFunction added";
    return {b.component,
            b.assumed.empty()
                ? what
                : absl::StrCat(what, ", rows only assumed to be independent: ", b.assumed)};
  });
}

}  // namespace

std::string ConvertReportHtml(const Conversion& c, const ReportData& data) {
  HtmlPage page;
  page.Raw(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>Conversion report"
      "</title><style>");
  page.Raw(kStyle);
  page.Raw("</style></head><body>\n<h1>Conversion report</h1>\n");
  page.Paragraph(absl::StrFormat("TPU cost of the model: %.2f%% (%d/%d)",
                                 HtmlPercent(data.tpu_cost, data.total_cost), data.tpu_cost,
                                 data.total_cost));
  WriteModelFacts(page, data);
  WriteVerification(page, data.verification);
  WriteAdvice(page, data.advice);
  WriteSearch(page, c.records.search);
  WriteCosts(page, data);
  page.Heading("Functions, and where they run");
  const FunctionDrawing drawing(data);
  page.Raw("<div class=\"wide\">");
  page.Raw(drawing.Svg());
  page.Raw("</div>\n");
  page.Paragraph("Blue: TPU. Gray: CPU. White: signatures.");
  if (drawing.left_out() > 0) {
    page.Paragraph(absl::StrCat(drawing.left_out(), " more are not drawn."));
  }
  WriteMemory(page, data);
  page.Table("Functions", {"Function", "Alias", "Runs on", "#Cost", "#Ops"}, data.functions,
             [](const ReportFunction& f) -> std::vector<std::string> {
               return {f.name, f.alias,
                       f.inlined  ? "inlined"
                       : f.on_tpu ? "TPU"
                                  : "CPU",
                       absl::StrCat(f.cost), absl::StrCat(f.nodes)};
             });
  WriteTables(page, c.records, data);
  page.Raw("</body></html>\n");
  return page.Take();
}

}  // namespace smelt
