#include "smelt/cli/lite_layers_report.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "smelt/io/json_writer.h"
#include "smelt/io/staged_file.h"

namespace smelt {
namespace {

// Those for which one of their numbers is the worst, the worst first.
std::vector<const LayerError*> Worst(const std::vector<LayerError>& layers, Noise LayerError::*of) {
  std::vector<const LayerError*> out;
  for (const LayerError& l : layers) {
    if ((l.*of).noise > 0) out.push_back(&l);
  }
  std::ranges::stable_sort(out, [&](const LayerError* a, const LayerError* b) {
    return (a->*of).Relative() > (b->*of).Relative();
  });
  if (out.size() > kWorstLayers) out.resize(kWorstLayers);
  return out;
}
std::vector<const LayerError*> Worst(const LayerErrors& errors) {
  return Worst(errors.layers, &LayerError::alone);
}

std::string Decibels(const Noise& n) {
  return n.noise == 0 ? "exact" : absl::StrFormat("%.1f", n.Decibels());
}

std::string Steps(const LayerError& l) {
  if (l.steps == 0) return "float";
  return absl::StrFormat("%.0f%%",
                         100.0 * static_cast<double>(l.used) / static_cast<double>(l.steps));
}

std::string Loss(const Noise& n) {
  if (n.noise == 0) return "exact";
  return absl::StrFormat("%.1f dB, %.3g of the signal", n.Decibels(), n.Relative());
}

void WriteNoise(JsonWriter& w, absl::string_view key, const Noise& n) {
  w.Object(key, [&] {
    w.Key("snr_db");
    w.Real(n.Decibels());  // null: exact
    w.Key("relative");
    w.Real(n.Relative());
  });
}

void WriteLayer(JsonWriter& w, const LayerError& l, const Noise& outputs) {
  const bool in_body = !l.function.empty();
  if (in_body) w.Field("function", l.function);
  w.Field("name", l.node);
  w.Field("op", l.op);
  if (!in_body) {
    WriteNoise(w, "alone", l.alone);
    WriteNoise(w, "accumulated", l.accumulated);
  }
  WriteNoise(w, "weights", l.weights);
  w.Key("min");
  w.Real(static_cast<double>(l.range.min));
  w.Key("max");
  w.Real(static_cast<double>(l.range.max));
  w.Field("steps", l.steps);
  if (!in_body) w.Field("steps_used", l.used);
  if (!l.outputs_in_float) return;
  WriteNoise(w, "outputs_in_float", *l.outputs_in_float);
  w.Key("gain_db");
  w.Real(l.outputs_in_float->Decibels() - outputs.Decibels());
}

// Loops and branches: what comes there in each turn is not compared.
std::string BodiesText(const FloatLayers& f) {
  std::string out;
  if (!f.before.in_bodies.empty()) {
    absl::StrAppend(&out, "in loops and branches: ", f.before.in_bodies.size(),
                    " quantized layers, of which weights alone are measured\n");
  }
  for (const std::string& function : f.before.float_bodies) {
    absl::StrAppend(&out, "in loops and branches: '", function, "' stays float\n");
  }
  const std::vector<const LayerError*> worst = Worst(f.before.in_bodies, &LayerError::weights);
  if (worst.empty()) return out;
  size_t function = 8, name = 5, op = 2;
  for (const LayerError* l : worst) {
    function = std::max(function, l->function.size());
    name = std::max(name, l->node.size());
    op = std::max(op, l->op.size());
  }
  const auto row = [&](absl::string_view a, absl::string_view b, absl::string_view c,
                       absl::string_view d, absl::string_view e) {
    absl::StrAppendFormat(&out, "%-*s  %-*s  %-*s  %7s  %8s\n", static_cast<int>(function), a,
                          static_cast<int>(name), b, static_cast<int>(op), c, d, e);
  };
  row("FUNCTION", "LAYER", "OP", "WEIGHTS", "IN FLOAT");
  for (const LayerError* l : worst) {
    row(l->function, l->node, l->op, Decibels(l->weights),
        l->outputs_in_float ? Decibels(*l->outputs_in_float) : "-");
  }
  return out;
}

}  // namespace

std::string LayersText(const LiteReport& report) {
  std::string out;
  for (const auto& [key, f] : report.float_layers) {
    absl::StrAppend(&out, "signature ", key, ": ", f.before.layers.size(),
                    " quantized layers beside float, on ", f.samples, " samples\n");
    for (size_t i = 0; i < f.before.outputs.size(); ++i) {
      absl::StrAppend(&out, "  output ", i, ": ", Loss(f.before.outputs[i]), "\n");
    }
    if (!f.chosen.empty()) {
      absl::StrAppend(&out, "  left in float:\n    ", absl::StrJoin(f.chosen, "\n    "), "\n");
      for (size_t i = 0; i < f.after.size(); ++i) {
        absl::StrAppend(&out, "  output ", i, " then: ", Loss(f.after[i]), "\n");
      }
    }
    const std::vector<const LayerError*> worst = Worst(f.before);
    size_t name = 5, op = 2;
    for (const LayerError* l : worst) {
      name = std::max(name, l->node.size());
      op = std::max(op, l->op.size());
    }
    absl::StrAppendFormat(&out,
                          "the worst layers, signal to noise in dB; IN FLOAT: of the worst output, "
                          "with this layer alone in float, on %d samples\n",
                          f.trial_samples);
    absl::StrAppendFormat(&out, "%-*s  %-*s  %6s  %6s  %7s  %5s  %8s  %s\n", static_cast<int>(name),
                          "LAYER", static_cast<int>(op), "OP", "ALONE", "THERE", "WEIGHTS", "STEPS",
                          "IN FLOAT", "RANGE");
    for (const LayerError* l : worst) {
      const std::string weights = l->weights.signal == 0 ? "-" : Decibels(l->weights);
      const std::string in_float = l->outputs_in_float ? Decibels(*l->outputs_in_float) : "-";
      absl::StrAppendFormat(&out, "%-*s  %-*s  %6s  %6s  %7s  %5s  %8s  %.4g to %.4g\n",
                            static_cast<int>(name), l->node, static_cast<int>(op), l->op,
                            Decibels(l->alone), Decibels(l->accumulated), weights, Steps(*l),
                            in_float, l->range.min, l->range.max);
    }
    absl::StrAppend(&out, BodiesText(f));
  }
  return out;
}

std::string LayersJson(const LiteReport& report) {
  JsonWriter w;
  w.Object([&] {
    w.Objects("signatures", report.float_layers, [&](const auto& entry) {
      const FloatLayers& f = entry.second;
      const Noise worst = WorstOf(f.before.outputs);
      w.Field("key", entry.first);
      w.Field("samples", static_cast<int64_t>(f.samples));
      w.Field("trial_samples", static_cast<int64_t>(f.trial_samples));
      const auto outputs = [&](absl::string_view name, const std::vector<Noise>& list) {
        w.Objects(name, list, [&](const Noise& n) {
          w.Key("snr_db");
          w.Real(n.Decibels());
          w.Key("relative");
          w.Real(n.Relative());
        });
      };
      outputs("outputs", f.before.outputs);
      outputs("outputs_after", f.after);
      w.Texts("chosen", f.chosen);
      w.Texts("float_layers", std::vector<std::string>(f.nodes.begin(), f.nodes.end()));
      w.Objects("layers", f.before.layers, [&](const LayerError& l) { WriteLayer(w, l, worst); });
      w.Objects("layers_in_bodies", f.before.in_bodies,
                [&](const LayerError& l) { WriteLayer(w, l, worst); });
      w.Texts("float_bodies", f.before.float_bodies);
      std::vector<std::string> names;
      for (const LayerError* l : Worst(f.before)) names.push_back(l->node);
      w.Texts("worst", names);
    });
  });
  return std::string(w.text());
}

std::string LayersCsv(const LiteReport& report) {
  std::string out =
      "op_name,tensor_idx,num_elements,stddev,mean_error,max_abs_error,mean_squared_error,scale,"
      "zero_point,tensor_name\n";
  for (const auto& [key, layers] : report.float_layers) {
    for (const LayerError& l : layers.before.layers) {
      for (const ResultStatistics& r : l.results) {
        std::string name = r.output == 0 ? l.node : absl::StrCat(l.node, ":", r.output);
        if (name.find_first_of(",\"\n\r") != std::string::npos) {
          name = absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
        }
        absl::StrAppend(&out, l.op, ",", r.tensor < 0 ? "" : absl::StrCat(r.tensor), ",",
                        r.elements, ",", r.stddev, ",", r.mean, ",", r.largest, ",", r.squared,
                        ",");
        if (r.scale != 0) absl::StrAppend(&out, r.scale, ",", r.zero_point);
        absl::StrAppend(&out, r.scale == 0 ? ",," : ",", name, "\n");
      }
    }
  }
  return out;
}

Status WriteLayersReport(const LiteReport& report, const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, StagedFile::Make(path, OtherWriter::kWait));
  const std::string text = absl::EndsWith(path, ".json")  ? LayersJson(report) + "\n"
                           : absl::EndsWith(path, ".csv") ? LayersCsv(report)
                                                          : LayersText(report);
  RETURN_IF_ERROR(file->Write(text));
  return file->Publish();
}

}  // namespace smelt
