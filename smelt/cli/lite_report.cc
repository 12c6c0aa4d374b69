#include "smelt/cli/lite_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/io/json_writer.h"

namespace smelt {
namespace {

// As many nodes of an op are named to people.
constexpr size_t kMostNodes = 4;

// Nodes that were refused for one reason.
struct RefusedOp {
  std::string op, why;
  std::vector<const LiteReport::Refused*> nodes;
  std::set<std::string> signatures;
};

std::vector<RefusedOp> ByOp(const LiteReport& report) {
  std::map<std::pair<std::string, std::string>, RefusedOp> ops;
  for (const LiteReport::Refused& r : report.refused) {
    RefusedOp& op = ops[{r.refusal.op, r.refusal.why}];
    op.op = r.refusal.op;
    op.why = r.refusal.why;
    op.nodes.push_back(&r);
    op.signatures.insert(r.signature);
  }
  std::vector<RefusedOp> out;
  for (auto& [key, op] : ops) out.push_back(std::move(op));
  return out;
}

std::vector<std::string> Remedies(const RefusedOp& op) {
  const auto all = [&](auto holds) {
    return std::ranges::all_of(op.nodes, [&](const auto* n) { return holds(*n); });
  };
  std::vector<std::string> out;
  if (std::ranges::any_of(op.nodes, [](const auto* n) { return n->free_sizes; })) {
    out.emplace_back("fix sizes that it is free in: --batch, --input_shapes");
  }
  if (all([](const auto& n) { return n.refusal.could_be_select; })) {
    out.emplace_back("a select op, which TensorFlow's Flex delegate runs: --select_tf_ops");
  }
  if (all([](const auto& n) { return n.refusal.could_be_custom; })) {
    out.emplace_back("a custom op, whose kernel your program registers: --allow_custom_ops");
  }
  out.emplace_back("write it in the model with ops that have operators");
  return out;
}

PartialShape StatedBy(const LiteTensor& t) {
  const std::vector<int32_t>& sizes = t.shape_signature.empty() ? t.shape : t.shape_signature;
  if (!t.has_rank && sizes.empty()) return PartialShape::Unknown();
  return PartialShape::Of(std::vector<int64_t>(sizes.begin(), sizes.end()));
}

std::string Version(const LiteModel& model) {
  for (const LiteMetadata& m : model.metadata) {
    if (m.name != "min_runtime_version") continue;
    const absl::string_view bytes = model.buffers[m.buffer].bytes;
    return std::string(bytes.substr(0, bytes.find('\0')));
  }
  return "";
}

std::string TypeNames(DtypeSet types) {
  if (types == kAnyType) return "any";
  std::vector<absl::string_view> names;
  for (int i = 1; i < kNumDtypes; ++i) {
    const auto type = static_cast<Dtype>(i);
    if (Has(types, type)) names.push_back(NumpyName(type));
  }
  return absl::StrJoin(names, ", ");
}

void WriteFusions(JsonWriter& w, const LiteReport& report) {
  w.Objects("fusions", report.fusions, [&](const FusionNote& n) {
    w.Field("node", n.node);
    w.Field("fusion", n.fusion);
    w.Flag("fired", n.why_not.empty());
    if (!n.why_not.empty()) w.Field("why_not", n.why_not);
  });
}

}  // namespace

std::string OperatorTable() {
  std::vector<const ExportRow*> rows;
  for (const auto family : AllExportRows()) {
    for (const ExportRow& row : family) rows.push_back(&row);
  }
  for (const ExportRow& row : LateExport()) rows.push_back(&row);
  std::ranges::sort(rows, {}, [](const ExportRow* row) { return row->op.text(); });
  std::string out = absl::StrFormat("%-36s  %-26s  %s\n", "OP", "OPERATOR", "TYPES");
  for (const ExportRow* row : rows) {
    const std::string lite =
        row->lite.unknown() ? "-"
                            : absl::AsciiStrToUpper(absl::StripPrefix(row->lite.text(), "tfl."));
    absl::StrAppendFormat(&out, "%-36s  %-26s  %s\n", row->op.text(), lite, TypeNames(row->types));
  }
  return out;
}

std::string RefusalTable(const LiteReport& report) {
  const std::vector<RefusedOp> ops = ByOp(report);
  size_t width = 2;
  for (const RefusedOp& op : ops) width = std::max(width, op.op.size());
  const int w = static_cast<int>(width);
  std::string out = absl::StrFormat("%-*s  COUNT  WHY\n", w, "OP");
  for (const RefusedOp& op : ops) {
    absl::StrAppendFormat(&out, "%-*s  %5d  %s\n", w, op.op, op.nodes.size(), op.why);
    const size_t shown = std::min(op.nodes.size(), kMostNodes);
    for (size_t i = 0; i < shown; ++i) {
      const LiteReport::Refused& n = *op.nodes[i];
      absl::StrAppend(&out, "    node ", n.refusal.node);
      if (!n.functions.empty()) {
        absl::StrAppend(&out, ", function ", absl::StrJoin(n.functions, ", "));
      }
      absl::StrAppend(&out, ", signature ", n.signature, "\n");
    }
    if (shown < op.nodes.size()) {
      absl::StrAppend(&out, "    and ", op.nodes.size() - shown, " more in ",
                      absl::StrJoin(op.signatures, ", "), "\n");
    }
    for (const std::string& remedy : Remedies(op))
      absl::StrAppend(&out, "    could: ", remedy, "\n");
  }
  return out;
}

std::string RefusalJson(const Status& error, const LiteReport& report, bool explain) {
  JsonWriter w;
  w.Object([&] {
    w.Field("error", error.message());
    w.Array("refused", ByOp(report), [&](const RefusedOp& op) {
      w.Object([&] {
        w.Field("op", op.op);
        w.Field("count", static_cast<int64_t>(op.nodes.size()));
        w.Field("why", op.why);
        w.Array("nodes", op.nodes, [&](const LiteReport::Refused* n) {
          w.Object([&] {
            w.Field("name", n->refusal.node);
            w.Field("signature", n->signature);
            w.Array("functions", n->functions, [&](const std::string& f) { w.Text(f); });
          });
        });
        w.Array("signatures", op.signatures, [&](const std::string& s) { w.Text(s); });
        w.Array("remedies", Remedies(op), [&](const std::string& s) { w.Text(s); });
      });
    });
    if (explain) WriteFusions(w, report);
  });
  return std::string(w.text());
}

std::string WrittenJson(const LiteModel& model, const std::string& path, uint64_t bytes,
                        const std::string& quantization, const LiteReport& report, bool explain) {
  std::map<std::tuple<std::string, bool, int32_t>, int64_t> operators;
  int64_t tensors = 0;
  for (const LiteSubgraph& graph : model.subgraphs) {
    tensors += static_cast<int64_t>(graph.tensors.size());
    for (const LiteOperator& op : graph.operators) ++operators[{op.op, op.custom, op.version}];
  }
  JsonWriter w;
  w.Object([&] {
    w.Field("file", path);
    w.Field("bytes", static_cast<int64_t>(bytes));
    w.Field("min_runtime_version", Version(model));
    w.Field("quantization", quantization);
    w.Array("signatures", model.signatures, [&](const LiteSignature& s) {
      const LiteSubgraph& graph = model.subgraphs[s.subgraph];
      const auto slots = [&](absl::string_view key, const auto& list) {
        w.Array(key, list, [&](const auto& slot) {
          const LiteTensor& t = graph.tensors[static_cast<size_t>(slot.second)];
          w.Object([&] {
            w.Field("name", slot.first);
            w.Field("tensor", t.name);
            w.Field("dtype", NumpyName(t.type));
            w.Field("shape", StatedBy(t).ToString());
            if (t.quantization.scale.empty()) return;
            w.Key("scale");
            w.Real(static_cast<double>(t.quantization.scale[0]));
            w.Field("zero_point",
                    t.quantization.zero_point.empty() ? int64_t{0} : t.quantization.zero_point[0]);
          });
        });
      };
      w.Object([&] {
        w.Field("key", s.key);
        slots("inputs", s.inputs);
        slots("outputs", s.outputs);
      });
    });
    w.Field("subgraphs", static_cast<int64_t>(model.subgraphs.size()));
    w.Field("tensors", tensors);
    w.Array("operators", operators, [&](const auto& entry) {
      w.Object([&] {
        w.Field("op", std::get<0>(entry.first));
        w.Field("count", entry.second);
        w.Field("version", int64_t{std::get<2>(entry.first)});
        w.Flag("custom", std::get<1>(entry.first));
      });
    });
    std::vector<const FusionNote*> differ;
    for (const FusionNote& n : report.fusions) {
      if (!n.differs.empty()) differ.push_back(&n);
    }
    w.Objects("differs", differ, [&](const FusionNote* n) {
      w.Field("node", n->node);
      w.Field("fusion", n->fusion);
      w.Field("differs", n->differs);
    });
    if (explain) WriteFusions(w, report);
  });
  return std::string(w.text());
}

std::vector<std::string> CustomCodes(const LiteModel& model, bool flex) {
  std::set<std::string> out;
  for (const LiteSubgraph& graph : model.subgraphs) {
    for (const LiteOperator& op : graph.operators) {
      if (op.custom && absl::StartsWith(op.op, kFlexPrefix) == flex) out.insert(op.op);
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace smelt
