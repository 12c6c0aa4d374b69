// smelt show F.tflite --json.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/cli/show/lite_facts.h"
#include "smelt/graph/text.h"
#include "smelt/io/json_writer.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

int64_t SizeField(size_t n) { return static_cast<int64_t>(n); }

void WriteOption(JsonWriter& w, const Attr& value) {
  if (const auto* s = value.get<std::string>()) return w.Text(*s);
  if (const auto* i = value.get<int64_t>()) return w.Int(*i);
  if (const auto* f = value.get<float>()) return w.Real(static_cast<double>(*f));
  if (const auto* b = value.get<bool>()) return w.Bool(*b);
  if (const auto* t = value.get<Dtype>()) return w.Text(NumpyName(*t));
  if (const auto* l = value.get<std::vector<int64_t>>()) {
    return w.Array(*l, [&](int64_t n) { w.Int(n); });
  }
  if (const auto* l = value.get<std::vector<float>>()) {
    return w.Array(*l, [&](float v) { w.Real(static_cast<double>(v)); });
  }
  if (const auto* l = value.get<std::vector<bool>>()) {
    return w.Array(*l, [&](bool b) { w.Bool(b); });
  }
  w.Text(PrintAttr(value));
}

void WriteQuantization(JsonWriter& w, const LiteQuantization& q) {
  const auto reals = [&](absl::string_view key, const std::vector<float>& values) {
    w.Array(key, values, [&](float v) { w.Real(static_cast<double>(v)); });
  };
  w.Object("quantization", [&] {
    reals("min", q.min);
    reals("max", q.max);
    reals("scale", q.scale);
    w.Ints("zero_point", q.zero_point);
    w.Field("dimension", int64_t{q.dimension});
    if (q.blockwise) {
      w.Object("blockwise", [&] {
        w.Field("scales", int64_t{q.blockwise->scales});
        w.Field("zero_points", int64_t{q.blockwise->zero_points});
        w.Field("block_size", int64_t{q.blockwise->block_size});
      });
    }
    if (!q.custom.empty()) w.Field("custom_bytes", SizeField(q.custom.size()));
  });
}

void WriteConversion(JsonWriter& w, const LiteConversion& c) {
  w.Object("conversion", [&] {
    w.Field("tensorflow_version", c.tensorflow_version);
    w.Field("api_version", int64_t{c.api_version});
    w.Field("model_type", NameOfSource(c.source));
    // A text: readers of JSON take numbers of 53 bits.
    w.Field("model_hash", absl::StrCat(c.model_hash));
    w.Array("model_optimization_modes", c.modes, [&](LiteMode m) { w.Text(NameOfMode(m)); });
    w.Flag("allow_custom_ops", c.allow_custom_ops);
    w.Flag("enable_select_tf_ops", c.enable_select_tf_ops);
    w.Flag("force_select_tf_ops", c.force_select_tf_ops);
  });
}

void WriteSparsity(JsonWriter& w, const LiteSparsity& s) {
  w.Object("sparsity", [&] {
    w.Ints("traversal_order", s.traversal_order);
    w.Ints("block_map", s.block_map);
    w.Objects("dimensions", s.dimensions, [&](const LiteSparseDimension& d) {
      w.Field("format", d.compressed ? "SPARSE_CSR" : "DENSE");
      w.Field("dense_size", int64_t{d.dense_size});
      w.Field("segments", SizeField(d.segments.size()));
      w.Field("indices", SizeField(d.indices.size()));
    });
  });
}

void WriteTensor(JsonWriter& w, const LiteModel& model, const LiteTensor& t) {
  w.Field("name", t.name);
  w.Field("dtype", NumpyName(t.type));
  w.Ints("shape", t.shape);
  if (!t.shape_signature.empty()) w.Ints("shape_signature", t.shape_signature);
  w.Flag("has_rank", t.has_rank);
  w.Key("bytes");
  const int64_t bytes = LiteValueBytes(t);
  bytes < 0 ? w.Null() : w.Int(bytes);
  w.Field("buffer", int64_t{t.buffer});
  w.Field("buffer_bytes", SizeField(model.buffers[t.buffer].bytes.size()));
  w.Flag("is_variable", t.is_variable);
  if (!t.quantization.empty()) WriteQuantization(w, t.quantization);
  if (t.sparsity != nullptr) WriteSparsity(w, *t.sparsity);
}

void WriteOperator(JsonWriter& w, const LiteOperator& op) {
  w.Field("op", op.op);
  w.Flag("custom", op.custom);
  w.Field("version", int64_t{op.version});
  w.Ints("inputs", op.inputs);
  w.Ints("outputs", op.outputs);
  if (!op.intermediates.empty()) w.Ints("intermediates", op.intermediates);
  if (!op.mutating_variable_inputs.empty()) {
    w.Array("mutating_variable_inputs", op.mutating_variable_inputs, [&](bool b) { w.Bool(b); });
  }
  const auto options = LiteOptionsOf(op);
  if (!op.custom || !options.empty()) {
    w.Object("options", [&] {
      for (const auto& [name, value] : options) {
        w.Key(name);
        WriteOption(w, value);
      }
    });
  }
  if (op.custom_options.empty()) return;
  w.Field("custom_options_bytes", SizeField(op.custom_options.size()));
  if (const auto flex = ReadFlexPair(op.custom_options); flex.ok()) w.Field("flex_op", flex->first);
}

void WriteSubgraph(JsonWriter& w, const LiteModel& model, const LiteSubgraph& graph) {
  w.Field("name", graph.name);
  w.Ints("inputs", graph.inputs);
  w.Ints("outputs", graph.outputs);
  w.Objects("tensors", graph.tensors, [&](const LiteTensor& t) { WriteTensor(w, model, t); });
  w.Objects("operators", graph.operators, [&](const LiteOperator& op) { WriteOperator(w, op); });
}

void WriteSignature(JsonWriter& w, const LiteSignature& s) {
  w.Field("key", s.key);
  w.Field("subgraph", int64_t{s.subgraph});
  for (const auto* side : {&s.inputs, &s.outputs}) {
    w.Objects(side == &s.inputs ? "inputs" : "outputs", *side, [&](const auto& slot) {
      w.Field("name", slot.first);
      w.Field("tensor", int64_t{slot.second});
    });
  }
}

void WriteSizes(JsonWriter& w, const LiteModel& model, const LiteFileFacts& facts) {
  w.Object("sizes", [&] {
    w.Field("constant_bytes", facts.constant_bytes);
    w.Field("constant_buffers", facts.constant_buffers);
    w.Field("unread_bytes", facts.unread_bytes);
    w.Field("metadata_bytes", facts.metadata_bytes);
    w.Objects("operators", facts.kinds, [&](const LiteKindFacts& k) {
      w.Field("op", k.op);
      w.Flag("custom", k.custom);
      w.Field("count", k.count);
      w.Ints("versions", k.versions);
      w.Field("constant_bytes", k.constant_bytes);
      w.Field("output_bytes", k.output_bytes);
    });
    w.Objects("largest_tensors", facts.largest, [&](const LitePlace& p) {
      const LiteTensor& t = model.subgraphs[p.subgraph].tensors[p.tensor];
      w.Field("subgraph", SizeField(p.subgraph));
      w.Field("tensor", SizeField(p.tensor));
      w.Field("name", t.name);
      w.Field("bytes", SizeField(model.buffers[t.buffer].bytes.size()));
    });
  });
}

}  // namespace

std::string LiteJson(const LiteModel& model, const LiteFileFacts& facts) {
  JsonWriter w;
  w.Object([&] {
    w.Field("file", facts.path);
    w.Field("bytes", facts.bytes);
    w.Field("version", int64_t{model.version});
    w.Field("description", model.description);
    w.Objects("signatures", model.signatures,
              [&](const LiteSignature& s) { WriteSignature(w, s); });
    w.Objects("subgraphs", model.subgraphs,
              [&](const LiteSubgraph& graph) { WriteSubgraph(w, model, graph); });
    size_t i = 0;
    w.Objects("buffers", model.buffers, [&](const LiteBuffer& b) {
      w.Field("bytes", SizeField(b.bytes.size()));
      const int64_t offset = facts.buffer_offsets[i++];
      if (offset >= 0) w.Field("offset", offset);
    });
    w.Objects("metadata", model.metadata, [&](const LiteMetadata& m) {
      const absl::string_view bytes = model.buffers[m.buffer].bytes;
      w.Field("name", m.name);
      w.Field("buffer", int64_t{m.buffer});
      w.Field("bytes", SizeField(bytes.size()));
      if (const std::string text = LiteMetadataText(bytes); !text.empty()) w.Field("text", text);
      if (const auto c = LiteConversionOf(model, m)) WriteConversion(w, *c);
    });
    WriteSizes(w, model, facts);
  });
  return absl::StrCat(w.text(), "\n");
}

}  // namespace smelt
