// smelt show F.tflite --svg: operators from top to bottom as they run, arcs for what they read of
// each other, bars for their constants.
#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/cli/show/lite_facts.h"
#include "smelt/cli/svg.h"

namespace smelt {
namespace {

constexpr double kLiteRow = 24, kLiteBoxHeight = 18, kLiteTop = 40, kLiteMargin = 20;
constexpr double kLiteArcs = 200, kLiteBoxWidth = 210, kLiteText = 470, kLiteBars = 160;
// What one can still look at, and a browser shows at once.
constexpr size_t kMostLiteRows = 3000;
constexpr size_t kMostLiteLetters = 62, kMostLiteLabels = 8;

// Characters are not cut in two.
std::string Short(const std::string& text) {
  if (text.size() <= kMostLiteLetters) return text;
  size_t end = kMostLiteLetters;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::string TensorLabel(const LiteTensor& t) {
  const std::vector<int32_t>& sizes = t.shape_signature.empty() ? t.shape : t.shape_signature;
  return absl::StrCat(NumpyName(t.type), " [",
                      absl::StrJoin(sizes, ", ",
                                    [](std::string* out, int32_t n) {
                                      absl::StrAppend(out, n < 0 ? "?" : absl::StrCat(n));
                                    }),
                      "] ", t.name);
}

struct LiteRow {
  std::string box, label, title;
  const char* fill = "#f2f4f7";
  int64_t constant_bytes = 0;
  std::vector<int32_t> reads, writes;  // tensors
};

// A file may name one tensor as often as it likes: the first few are told.
std::string TensorLabels(const LiteSubgraph& graph, const std::vector<int32_t>& tensors) {
  std::string out;
  size_t told = 0;
  for (const int32_t t : tensors) {
    if (t < 0) continue;
    if (++told > kMostLiteLabels) return absl::StrCat(out, "; ...");
    absl::StrAppend(&out, told > 1 ? "; " : "",
                    Short(TensorLabel(graph.tensors[static_cast<size_t>(t)])));
  }
  return out;
}

std::vector<LiteRow> RowsOf(const LiteModel& model, const LiteSubgraph& graph) {
  std::vector<LiteRow> rows;
  for (const int32_t t : graph.inputs) {
    LiteRow& row = rows.emplace_back();
    row.box = "input";
    row.fill = "#dcecff";
    row.label = row.title = TensorLabels(graph, {t});
    row.writes = {t};
  }
  for (size_t i = 0; i < graph.operators.size() && rows.size() < kMostLiteRows; ++i) {
    const LiteOperator& op = graph.operators[i];
    LiteRow& row = rows.emplace_back();
    row.box = op.op;
    if (op.custom) row.fill = "#ffe8cc";
    row.label = TensorLabels(graph, op.outputs);
    row.reads = op.inputs;
    row.writes = op.outputs;
    for (const int32_t t : op.inputs) {
      if (t < 0) continue;
      const uint32_t buffer = graph.tensors[static_cast<size_t>(t)].buffer;
      row.constant_bytes += static_cast<int64_t>(model.buffers[buffer].bytes.size());
    }
    row.title = absl::StrFormat("operator %d, version %d, %d bytes of constants; reads %s", i,
                                op.version, row.constant_bytes, TensorLabels(graph, op.inputs));
  }
  for (const int32_t t : graph.outputs) {
    LiteRow& row = rows.emplace_back();
    row.box = "output";
    row.fill = "#dff5e1";
    row.label = row.title = TensorLabels(graph, {t});
    row.reads = {t};
  }
  return rows;
}

void AppendArcs(const std::vector<LiteRow>& rows, double top, std::string* svg) {
  const double left = kLiteMargin + kLiteArcs;
  std::map<int32_t, size_t> made;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = top + static_cast<double>(i) * kLiteRow + kLiteBoxHeight / 2;
    for (const int32_t t : rows[i].reads) {
      const auto from = made.find(t);
      if (from == made.end()) continue;
      const double distance = static_cast<double>(i - from->second);
      const double before = y - distance * kLiteRow;
      if (distance == 1) {
        const double x = left + kLiteBoxWidth / 2;
        absl::StrAppendFormat(svg, "<path d=\"M %g %g V %g\" class=\"arc\"/>\n", x,
                              before + kLiteBoxHeight / 2, y - kLiteBoxHeight / 2);
        continue;
      }
      // The further, the wider, and never out of the picture.
      const double reach = kLiteArcs * distance / (distance + 8);
      absl::StrAppendFormat(svg, "<path d=\"M %g %g C %g %g %g %g %g %g\" class=\"arc\"/>\n", left,
                            before, left - reach, before, left - reach, y, left, y);
    }
    for (const int32_t t : rows[i].writes) made[t] = i;
  }
}

void AppendRows(const std::vector<LiteRow>& rows, double top, int64_t most, std::string* svg) {
  const double left = kLiteMargin + kLiteArcs, text = left + kLiteBoxWidth + 10;
  for (size_t i = 0; i < rows.size(); ++i) {
    const LiteRow& row = rows[i];
    const double y = top + static_cast<double>(i) * kLiteRow;
    absl::StrAppendFormat(svg,
                          "<g><title>%s</title><rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" "
                          "rx=\"4\" fill=\"%s\" stroke=\"#98a1ad\"/><text x=\"%g\" "
                          "y=\"%g\">%s</text><text x=\"%g\" y=\"%g\" fill=\"#555\">%s</text></g>\n",
                          SvgText(row.title), left, y, kLiteBoxWidth, kLiteBoxHeight, row.fill,
                          left + 6, y + 13, SvgText(Short(row.box)), text, y + 13,
                          SvgText(Short(row.label)));
    if (row.constant_bytes == 0) continue;
    const double width =
        kLiteBars * static_cast<double>(row.constant_bytes) / static_cast<double>(most);
    absl::StrAppendFormat(
        svg,
        "<rect x=\"%g\" y=\"%g\" width=\"%.2f\" height=\"%g\" fill=\"#5b8def\"><title>%d bytes of "
        "constants</title></rect>\n",
        text + kLiteText, y + 2, width, kLiteBoxHeight - 4, row.constant_bytes);
  }
}

}  // namespace

std::string LiteSvg(const LiteModel& model, const LiteFileFacts& facts) {
  std::vector<std::vector<LiteRow>> graphs;
  int64_t most = 1;
  for (const LiteSubgraph& graph : model.subgraphs) {
    for (const LiteRow& row : graphs.emplace_back(RowsOf(model, graph))) {
      most = std::max(most, row.constant_bytes);
    }
  }
  std::string svg = "<style>.arc{fill:none;stroke:#98a1ad;stroke-width:1.2}</style>\n";
  double top = kLiteMargin;
  for (size_t g = 0; g < graphs.size(); ++g) {
    const LiteSubgraph& graph = model.subgraphs[g];
    std::string title =
        absl::StrFormat("subgraph %d '%s': %d operators", g, graph.name, graph.operators.size());
    const size_t shown = graphs[g].size() - graph.inputs.size() - graph.outputs.size();
    if (shown < graph.operators.size()) absl::StrAppend(&title, ", the first ", shown, " drawn");
    if (g == 0) {
      absl::StrAppend(&title, "; ", facts.constant_bytes,
                      " bytes of constants in the file, bars up to ", most);
    }
    absl::StrAppendFormat(&svg, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n",
                          kLiteMargin, top + 14, SvgText(title));
    AppendArcs(graphs[g], top + kLiteTop, &svg);
    AppendRows(graphs[g], top + kLiteTop, most, &svg);
    top += kLiteTop + static_cast<double>(graphs[g].size()) * kLiteRow + kLiteMargin;
  }
  return SvgDocument(2 * kLiteMargin + kLiteArcs + kLiteBoxWidth + 10 + kLiteText + kLiteBars, top,
                     svg);
}

}  // namespace smelt
