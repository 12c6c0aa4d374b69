// smelt show F.tflite, for people.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "smelt/cli/show/lite_facts.h"
#include "smelt/io/utf8.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

std::string SizesText(const std::vector<int32_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string TensorText(const LiteTensor& t) {
  std::string out = absl::StrCat(t.type == Dtype::kString ? "string" : NumpyName(t.type), " ",
                                 SizesText(t.shape));
  if (!t.shape_signature.empty() && t.shape_signature != t.shape) {
    absl::StrAppend(&out, ", free: ", SizesText(t.shape_signature));
  }
  return out;
}

std::string RealText(float v) { return absl::StrFormat("%.9g", static_cast<double>(v)); }

// "scale 0.5, zero point 3", or from which to which they go.
std::string QuantizationText(const LiteQuantization& q) {
  std::string out;
  if (q.scale.size() == 1) {
    absl::StrAppend(&out, ", scale ", RealText(q.scale[0]), ", zero point ",
                    q.zero_point.empty() ? 0 : q.zero_point[0]);
  } else if (!q.scale.empty()) {
    const auto [low, high] = std::ranges::minmax(q.scale);
    absl::StrAppend(&out, ", ", q.scale.size(), " scales of dimension ", q.dimension, " from ",
                    RealText(low), " to ", RealText(high));
    const auto [least, most] = q.zero_point.empty()
                                   ? std::pair<int64_t, int64_t>{0, 0}
                                   : std::pair<int64_t, int64_t>{std::ranges::min(q.zero_point),
                                                                 std::ranges::max(q.zero_point)};
    absl::StrAppend(&out, least == most ? ", zero points " : ", zero points from ", least);
    if (least != most) absl::StrAppend(&out, " to ", most);
  }
  if (q.blockwise) {
    absl::StrAppend(&out, ", blocks of ", q.blockwise->block_size, " with the scales of tensor ",
                    q.blockwise->scales);
    if (q.blockwise->zero_points >= 0) {
      absl::StrAppend(&out, " and the zero points of tensor ", q.blockwise->zero_points);
    }
  }
  if (!q.min.empty() && !q.max.empty()) {
    absl::StrAppend(&out, ", seen from ", RealText(std::ranges::min(q.min)), " to ",
                    RealText(std::ranges::max(q.max)));
  }
  if (!q.custom.empty()) absl::StrAppend(&out, ", quantized in a way of its own");
  return out;
}

std::string OptionText(const Attr& value) {
  if (const auto* s = value.get<std::string>()) return Utf8Text(*s);
  if (const auto* i = value.get<int64_t>()) return absl::StrCat(*i);
  if (const auto* f = value.get<float>()) return RealText(*f);
  if (const auto* b = value.get<bool>()) return *b ? "true" : "false";
  if (const auto* t = value.get<Dtype>()) return std::string(NumpyName(*t));
  if (const auto* l = value.get<std::vector<int64_t>>()) {
    return absl::StrCat("[", absl::StrJoin(*l, ", "), "]");
  }
  if (const auto* l = value.get<std::vector<float>>()) {
    return absl::StrCat(
        "[",
        absl::StrJoin(*l, ", ", [](std::string* to, float v) { absl::StrAppend(to, RealText(v)); }),
        "]");
  }
  if (const auto* l = value.get<std::vector<bool>>()) {
    std::string out = "[";
    for (const bool b : *l) absl::StrAppend(&out, out.size() > 1 ? ", " : "", b ? "true" : "false");
    return out + "]";
  }
  return "?";
}

std::string OperatorOptions(const LiteOperator& op) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : LiteOptionsOf(op)) {
    parts.push_back(absl::StrCat(Utf8Text(name), "=", OptionText(value)));
  }
  std::string out = parts.empty() ? "" : absl::StrCat("  ", absl::StrJoin(parts, " "));
  if (op.custom_options.empty()) return out;
  absl::StrAppend(&out, "  ", op.custom_options.size(), " bytes of options");
  if (const auto flex = ReadFlexPair(op.custom_options); flex.ok()) {
    absl::StrAppend(&out, " of op ", Utf8Text(flex->first));
  }
  return out;
}

// "left out" is shorter than -1 explained.
std::string Indices(const std::vector<int32_t>& tensors) {
  return absl::StrCat("[",
                      absl::StrJoin(tensors, ", ",
                                    [](std::string* out, int32_t t) {
                                      absl::StrAppend(out, t < 0 ? "-" : absl::StrCat(t));
                                    }),
                      "]");
}

void AppendSignature(const LiteModel& model, const LiteSignature& s, std::string* out) {
  absl::StrAppend(out, "\nSignature '", Utf8Text(s.key), "', subgraph ", s.subgraph, "\n");
  const LiteSubgraph& graph = model.subgraphs[s.subgraph];
  for (const auto* side : {&s.inputs, &s.outputs}) {
    for (const auto& [name, tensor] : *side) {
      absl::StrAppend(out, side == &s.inputs ? "  input  " : "  output ", Utf8Text(name), ": ",
                      TensorText(graph.tensors[static_cast<size_t>(tensor)]), ", tensor ", tensor,
                      "\n");
    }
  }
}

void AppendSubgraph(const LiteModel& model, size_t number, std::string* out) {
  const LiteSubgraph& graph = model.subgraphs[number];
  absl::StrAppend(out, "\nSubgraph ", number, " '", Utf8Text(graph.name),
                  "': ", graph.tensors.size(), " tensors, ", graph.operators.size(),
                  " operators, inputs ", Indices(graph.inputs), ", outputs ",
                  Indices(graph.outputs), "\n");
  absl::StrAppend(out, "  Tensors:\n");
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const LiteTensor& t = graph.tensors[i];
    absl::StrAppendFormat(out, "  %5d  %s: %s", i, Utf8Text(t.name), TensorText(t));
    const size_t bytes = model.buffers[t.buffer].bytes.size();
    if (bytes > 0) absl::StrAppend(out, ", ", bytes, " bytes in buffer ", t.buffer);
    if (t.is_variable) absl::StrAppend(out, ", variable");
    absl::StrAppend(out, QuantizationText(t.quantization), t.sparsity == nullptr ? "" : ", sparse",
                    "\n");
  }
  absl::StrAppend(out, "  Operators:\n");
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const LiteOperator& op = graph.operators[i];
    absl::StrAppendFormat(out, "  %5d  %s%s, version %d: %s -> %s%s\n", i, Utf8Text(op.op),
                          op.custom ? " (custom)" : "", op.version, Indices(op.inputs),
                          Indices(op.outputs), OperatorOptions(op));
  }
}

std::string ConversionText(const LiteConversion& c) {
  std::string out = absl::StrCat("of ", NameOfSource(c.source), ", TensorFlow ",
                                 Utf8Text(c.tensorflow_version), ", API ", c.api_version);
  for (const LiteMode m : c.modes) absl::StrAppend(&out, ", ", NameOfMode(m));
  if (c.allow_custom_ops) absl::StrAppend(&out, ", allow_custom_ops");
  if (c.enable_select_tf_ops) absl::StrAppend(&out, ", enable_select_tf_ops");
  if (c.force_select_tf_ops) absl::StrAppend(&out, ", force_select_tf_ops");
  absl::StrAppend(&out, ", hash ", c.model_hash);
  return out;
}

}  // namespace

std::string LiteText(const LiteModel& model, const LiteFileFacts& facts) {
  std::string out = absl::StrCat("TensorFlow Lite file of schema version ", model.version, ", ",
                                 facts.bytes, " bytes\n");
  if (!model.description.empty()) {
    absl::StrAppend(&out, "  Description: ", Utf8Text(model.description), "\n");
  }
  absl::StrAppend(&out, "  Constants: ", facts.constant_bytes, " bytes in ", facts.constant_buffers,
                  " buffers");
  if (facts.unread_bytes > 0) {
    absl::StrAppend(&out, ", of which no operator reads ", facts.unread_bytes);
  }
  absl::StrAppend(&out, "\n");
  for (const LiteMetadata& m : model.metadata) {
    const absl::string_view bytes = model.buffers[m.buffer].bytes;
    const auto conversion = LiteConversionOf(model, m);
    const std::string text = conversion ? ConversionText(*conversion) : LiteMetadataText(bytes);
    absl::StrAppend(&out, "  Metadata: ", Utf8Text(m.name), ", ", bytes.size(), " bytes",
                    text.empty() ? "" : ": ", text, "\n");
  }
  for (const LiteSignature& s : model.signatures) AppendSignature(model, s, &out);
  for (size_t i = 0; i < model.subgraphs.size(); ++i) AppendSubgraph(model, i, &out);

  size_t width = 8;
  for (const LiteKindFacts& k : facts.kinds) width = std::max(width, Utf8Text(k.op).size());
  const int w = static_cast<int>(width);
  absl::StrAppendFormat(&out, "\n%-*s  %6s  %14s  %14s  %s\n", w, "OPERATOR", "COUNT",
                        "CONSTANT BYTES", "OUTPUT BYTES", "VERSIONS");
  for (const LiteKindFacts& k : facts.kinds) {
    absl::StrAppendFormat(&out, "%-*s  %6d  %14d  %14d  %s\n", w, Utf8Text(k.op), k.count,
                          k.constant_bytes, k.output_bytes, absl::StrJoin(k.versions, ", "));
  }
  if (facts.largest.empty()) return out;
  absl::StrAppend(&out, "\nLargest constants:\n");
  for (const LitePlace& p : facts.largest) {
    const LiteTensor& t = model.subgraphs[p.subgraph].tensors[p.tensor];
    absl::StrAppendFormat(&out, "  %10d bytes  subgraph %d tensor %d  %s\n",
                          model.buffers[t.buffer].bytes.size(), p.subgraph, p.tensor,
                          Utf8Text(t.name));
  }
  return out;
}

}  // namespace smelt
