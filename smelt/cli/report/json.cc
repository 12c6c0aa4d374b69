// smelt convert --report_json: docs/report.md says what is in it.
#include "absl/strings/str_cat.h"
#include "smelt/cli/json_shape.h"
#include "smelt/cli/report/reports.h"
#include "smelt/cli/version.h"
#include "smelt/io/json_writer.h"

namespace smelt {
namespace {

constexpr int kReportVersion = 1;

// "" where it names the main graph, or a node of it.
absl::string_view FunctionOrGraph(const ReportData& data, absl::string_view name) {
  return data.FindFunction(name) != nullptr ? name : "";
}

void WriteModel(JsonWriter& w, const ReportData& data) {
  w.Field("smelt_version", kSmeltVersion);
  w.Object("model", [&] {
    w.Field("path", data.model.path);
    w.Field("version", data.model.version);
    w.Texts("tags", data.model.tags);
    w.Field("tensorflow_version", data.model.tensorflow_version);
    w.Field("sha256", data.model.sha256);
    w.Objects("files", data.model.files, [&](const ReportModel::File& f) {
      w.Field("path", f.path);
      w.Field("sha256", f.sha256);
    });
  });
  w.Field("options", data.options);
}

void WritePlacements(JsonWriter& w, const ReportData& data) {
  w.Objects("placements", data.placements, [&](const ReportPlacement& p) {
    w.Field("label", p.label);
    w.Field("function", p.function);
    w.Field("body", p.body);
    w.Flag("existing", p.existing);
    w.Field("cost", p.cost);
    w.Field("variable_bytes", p.variable_bytes);
    w.Field("constant_bytes", p.constant_bytes);
    w.Field("activation_bytes", p.activation_bytes);
    w.Field("activation_bytes_at_largest_batch", p.activation_bytes_at_batch);
  });
}

void WriteGraphOfFunctions(JsonWriter& w, const ReportData& data) {
  w.Objects("signatures", data.signatures, [&](const ReportSignature& s) {
    w.Field("name", s.name);
    w.Texts("calls", s.calls);
  });
  w.Objects("functions", data.functions, [&](const ReportFunction& f) {
    w.Field("name", f.name);
    w.Field("alias", f.alias);
    w.Flag("inlined", f.inlined);
    w.Field("runs_on", f.inlined ? "" : f.on_tpu ? "TPU" : "CPU");
    w.Field("label", f.label);
    w.Field("cost", f.cost);
    w.Field("nodes", f.nodes);
    w.Texts("calls", f.calls);
  });
}

void WriteRecords(JsonWriter& w, const ConversionRecords& r, const ReportData& data) {
  w.Objects("transfers", r.transfers, [&](const TransferredTensor& b) {
    w.Field("function", b.function);
    w.Field("direction", b.input ? "in" : "out");
    w.Field("index", b.index);
    w.Field("name", b.name);
    w.Field("dtype_before", DtypeName(b.dtype_before));
    w.Field("dtype", DtypeName(b.dtype));
    ShapeField(w, b.shape);
    w.Field("form", b.form);
    w.Field("bytes_before", b.bytes_before);
    w.Field("bytes", b.bytes);
  });
  w.Objects("cpu_ops", r.host_ops, [&](const HostOp& h) {
    w.Field("function", h.function);
    w.Field("node", h.node);
    w.Field("layer", LayerOf(h.node));
    w.Field("op", h.op);
    w.Field("source", h.source);
    w.Field("reason", h.reason);
  });
  w.Objects("auto_placements", r.auto_placements, [&](const AutoPlacement& a) {
    w.Field("label", a.label);
    w.Field("function", a.function);
    w.Field("part", a.part);
    w.Flag("whole", a.whole);
    w.Field("nodes", a.nodes);
    w.Field("placed_nodes", a.placed_nodes);
    w.Field("cost", a.cost);
    w.Field("placed_cost", a.placed_cost);
    w.Field("crossing_elements", a.crossing);
  });
  w.Objects("precision", r.precision, [&](const PrecisionChoice& p) {
    const bool variable = p.op == kVariableOp;
    w.Field("function", p.function);
    w.Field("node", variable ? data.VariableName(p.node) : p.node);
    w.Field("layer", variable ? "" : LayerOf(p.node));
    w.Field("op", p.op);
    w.Flag("converted", p.converted);
    w.Field("reason", p.reason);
  });
  w.Objects("stored_variables", r.variables, [&](const StoredVariable& v) {
    w.Field("name", data.VariableName(v.name));
    w.Field("key", v.name);
    w.Field("dtype_before", DtypeName(v.before));
    w.Field("dtype", DtypeName(v.after));
    w.Field("bytes_before", v.bytes_before);
    w.Field("bytes", v.bytes);
  });
  w.Objects("quantized_layers", r.layers, [&](const QuantizedLayer& l) {
    w.Field("function", FunctionOrGraph(data, l.function));
    w.Field("node", l.node);
    w.Field("layer", LayerOf(l.node));
    w.Field("op", l.op);
    w.Flag("quantized", l.quantized);
    w.Field("method", l.method);
    w.Field("reason", l.reason);
    w.RealField("weight_error", l.weight_error);
    w.RealField("output_error", l.output_error);
    w.RealField("own_error", l.own_error);
    w.Field("bytes_before", l.bytes_before);
    w.Field("bytes", l.bytes);
  });
  w.Objects("batching", r.batches, [&](const BatchRecord& b) {
    w.Field("component", b.component);
    w.Field("function", FunctionOrGraph(data, b.component));
    w.Flag("updated", b.updated);
    w.Field("assumed", b.assumed);
  });
  w.Objects("notes", r.notes, [&](const Note& n) {
    w.Field("stage", n.stage);
    w.Field("function", n.function);
    w.Field("node", n.node);
    w.Field("text", n.text);
  });
}

void WriteVerification(JsonWriter& w, const Verification& v) {
  w.Object("verification", [&] {
    w.Flag("done", v.done);
    w.Flag("ok", v.done && v.ok);
    w.RealField("tolerance", v.tolerance);
    w.Field("tolerance_for", v.tolerance_for);
    w.Field("joined_requests", v.joined);
    w.Objects("outputs", v.outputs, [&](const VerifiedOutput& o) {
      w.Field("signature", o.signature);
      w.Field("output", o.output);
      w.Field("requests", o.requests);
      w.RealField("max_abs", o.max_abs);
      w.RealField("max_relative", o.max_relative);
      w.Flag("ok", o.ok);
      w.Flag("random", o.random);
      w.Field("why", o.why);
    });
    w.Texts("notes", v.notes);
    w.Texts("advice", v.advice);
  });
}

void WriteAdvice(JsonWriter& w, const BatchingAdvice& a) {
  w.Object("batching_advice", [&] {
    w.Flag("done", a.done);
    w.Field("requests", a.requests);
    w.Field("rows", a.rows);
    w.RealField("seconds", a.seconds);
    w.Field("arrivals", a.arrivals);
    w.Field("batch_times", a.batch_times);
    w.Field("objective", a.objective);
    w.Field("tried", a.tried);
    w.Field("kept_up", a.kept_up);
    w.Objects("choices", a.choices, [&](const AdvisedChoice& c) {
      w.Ints("allowed_batch_sizes", c.options.allowed_batch_sizes);
      w.Field("max_batch_size", c.options.max_batch_size);
      w.Field("num_batch_threads", c.options.num_batch_threads);
      w.Field("batch_timeout_micros", c.options.batch_timeout_micros);
      w.Field("max_enqueued_batches", c.options.max_enqueued_batches);
      w.Flag("keeps_up", c.keeps_up);
      w.Field("rejected", c.rejected);
      w.RealField("mean_wait_ms", c.mean_wait);
      w.RealField("p99_wait_ms", c.p99_wait);
      w.RealField("mean_latency_ms", c.mean_latency);
      w.RealField("p99_latency_ms", c.p99_latency);
      w.RealField("padding", c.padding);
      w.RealField("rows_per_batch", c.rows_per_batch);
      w.RealField("batches_per_second", c.batches_per_second);
      w.RealField("core_load", c.core_load);
      w.RealField("thread_load", c.thread_load);
    });
    w.Texts("notes", a.notes);
  });
}

void WriteSearch(JsonWriter& w, const PrecisionSearch& s) {
  w.Object("precision_search", [&] {
    w.Flag("done", s.done);
    w.RealField("max_error", s.max_error);
    w.Flag("by_labels", s.by_labels);
    w.Field("evidence", s.evidence);
    w.Field("rows", s.rows);
    w.RealField("accuracy", s.accuracy);
    w.Objects("trials", s.trials, [&](const PrecisionTrial& t) {
      w.Field("int8", t.int8);
      w.Field("bfloat16", t.bfloat16);
      w.Field("float32", t.float32);
      w.RealField("cost", t.cost);
      w.RealField("error", t.error);
      w.RealField("difference", t.difference);
      w.RealField("accuracy", t.accuracy);
      w.Flag("ok", t.ok);
      w.Field("why", t.why);
    });
    w.Field("chosen", s.chosen);
    w.Texts("notes", s.notes);
  });
}

}  // namespace

std::string ConvertReportJson(const Conversion& c, const ReportData& data) {
  JsonWriter w;
  w.Object([&] {
    w.Field("version", kReportVersion);
    WriteModel(w, data);
    w.Object("cost", [&] {
      w.Field("total", data.total_cost);
      w.Field("tpu", data.tpu_cost);
      w.Field("cpu", data.cpu_cost);
    });
    w.Object("hbm", [&] {
      w.Field("generation", data.tpu->name);
      w.Field("chip_bytes", data.tpu->hbm_bytes);
      w.Field("cores", data.cores);
      w.Field("largest_batch", data.batch);
      w.Field("bytes_on_a_core", data.hbm_bytes);
      w.Field("bytes_on_all_cores", data.hbm_bytes * data.cores);
      w.Flag("fits", data.hbm_bytes <= data.tpu->hbm_bytes);
    });
    w.Object("transfer_bytes", [&] {
      w.Field("before", data.transfer_bytes_before);
      w.Field("after", data.transfer_bytes);
    });
    w.Object("training", [&] {
      w.Flag("stripped", data.training.stripped);
      w.Field("variables", data.training.variables);
      w.Field("variable_bytes", data.training.variable_bytes);
      w.Field("saved_model_bytes", data.training.model_bytes);
      w.Field("functions", data.training.functions);
      w.Field("nodes", data.training.nodes);
      w.Field("objects", data.training.objects);
      w.Field("meta_graphs", data.training.meta_graphs);
    });
    WriteVerification(w, data.verification);
    WriteAdvice(w, data.advice);
    WriteSearch(w, c.records.search);
    WritePlacements(w, data);
    WriteGraphOfFunctions(w, data);
    WriteRecords(w, c.records, data);
  });
  return absl::StrCat(w.text(), "\n");
}

}  // namespace smelt
