#include "smelt/lite/export.h"

#include <algorithm>
#include <map>

#include "smelt/io/staged_file.h"
#include "smelt/lite/emit.h"
#include "smelt/lite/signature_graph.h"
#include "smelt/lite/versions.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

// One line for each op and reason, with the nodes that have it.
std::string RefusalText(const LiteReport& report) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> by_op;
  for (const LiteReport::Refused& r : report.refused) {
    by_op[{r.refusal.op, r.refusal.why}].push_back(absl::StrCat(r.signature, ": ", r.refusal.node));
  }
  std::string text = "these ops have no builtin operator of TensorFlow Lite:\n";
  for (const auto& [op, nodes] : by_op) {
    absl::StrAppend(&text, "  ", op.first, " (", op.second, "): ", nodes[0]);
    if (nodes.size() > 1) absl::StrAppend(&text, " and ", nodes.size() - 1, " more");
    text += "\n";
  }
  return text;
}

StatusOr<std::vector<std::string>> Signatures(const LoadedModel& model, const LiteFlags& flags) {
  if (!flags.signatures.empty()) return flags.signatures;
  std::vector<std::string> out;
  for (const auto& [key, signature] : model.meta().signatures) {
    if (key != kInitSignature) out.push_back(key);
  }
  if (out.empty()) return InvalidArgument("the model has no signature");
  // Who asks for no signature gets the first subgraph.
  std::ranges::stable_partition(out, [](const std::string& k) { return k == "serving_default"; });
  return out;
}

// What gives no result and has no effect goes.
void PruneUnread(Graph& graph) {
  std::vector<Node*> roots;
  for (Node* n : graph.Nodes()) {
    const bool stays = n->Is("_Arg") || n->Is("_Retval") || (n->def() && n->def()->stateful);
    if (stays) roots.push_back(n);
  }
  graph.Prune(roots);
}

// The samples of a signature by its arguments.
StatusOr<std::vector<std::vector<Tensor>>> SamplesOf(const SignatureGraph& g,
                                                     const LiteFlags& flags) {
  std::vector<std::vector<Tensor>> out;
  auto it = flags.samples.find(g.key);
  if (it == flags.samples.end()) it = flags.samples.find(kAnySignature);
  if (it == flags.samples.end()) return InvalidArgument("there are no samples to calibrate with");
  for (const auto& sample : it->second) {
    std::vector<Tensor>& args = out.emplace_back();
    for (const LiteSlot& slot : g.inputs) {
      const auto value = sample.find(slot.key);
      if (value == sample.end()) {
        return InvalidArgument("sample ", out.size() - 1, " has no input '", slot.key, "'");
      }
      args.push_back(value->second);
    }
  }
  return out;
}

Status Quantize(SignatureGraph& g, const LiteFlags& flags) {
  switch (flags.quantize) {
    case LiteQuantize::kNone:
      return OkStatus();
    case LiteQuantize::kFloat16:
      return QuantizeToHalf(*g.graph);
    case LiteQuantize::kDynamic:
      return QuantizeDynamicRange(*g.graph, flags.dynamic);
    case LiteQuantize::kInt8:
    case LiteQuantize::kInt16x8: {
      ASSIGN_OR_RETURN(const auto samples, SamplesOf(g, flags));
      ASSIGN_OR_RETURN(const LiteRanges ranges, Calibrate(*g.graph, samples));
      IntegerFlags integer = flags.integer;
      integer.int16 = flags.quantize == LiteQuantize::kInt16x8;
      return QuantizeToInteger(*g.graph, ranges, integer);
    }
  }
  return OkStatus();
}

std::vector<std::string> TensorNames(const std::vector<LiteSlot>& slots) {
  std::vector<std::string> out;
  for (const LiteSlot& s : slots) out.push_back(s.tensor);
  return out;
}

// Do the subgraphs differ in names alone? Their tensors are in the same order then.
bool SameSubgraph(const LiteModel& model, const LiteSubgraph& a, const LiteSubgraph& b) {
  const auto same_tensor = [&](const LiteTensor& x, const LiteTensor& y) {
    return x.type == y.type && x.shape == y.shape && x.shape_signature == y.shape_signature &&
           x.has_rank == y.has_rank && x.is_variable == y.is_variable &&
           x.quantization == y.quantization &&
           model.buffers[x.buffer].bytes == model.buffers[y.buffer].bytes;
  };
  const auto same_operator = [](const LiteOperator& x, const LiteOperator& y) {
    return x.op == y.op && x.custom == y.custom && x.inputs == y.inputs && x.outputs == y.outputs &&
           x.options == y.options && x.custom_options == y.custom_options;
  };
  return a.inputs == b.inputs && a.outputs == b.outputs &&
         std::ranges::equal(a.operators, b.operators, same_operator) &&
         std::ranges::equal(a.tensors, b.tensors, same_tensor);
}

LiteSignature SignatureOf(const SignatureGraph& g, const LiteSubgraph& subgraph, uint32_t number) {
  LiteSignature s;
  s.key = g.key;
  s.subgraph = number;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    s.inputs.emplace_back(g.inputs[i].key, subgraph.inputs[i]);
  }
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    s.outputs.emplace_back(g.outputs[i].key, subgraph.outputs[i]);
  }
  return s;
}

}  // namespace

StatusOr<LiteModel> ExportLite(LoadedModel& model, const LiteFlags& flags, LiteReport* report) {
  ASSIGN_OR_RETURN(const std::vector<std::string> keys, Signatures(model, flags));
  std::vector<SignatureGraph> graphs;
  for (const std::string& key : keys) {
    auto graph = GraphOfSignature(model, key, flags.fusions.off);
    if (!graph.ok()) return Prefix(graph.status(), absl::StrCat("signature '", key, "': "));
    report->fusions.insert(report->fusions.end(), graph->composites.begin(),
                           graph->composites.end());
    auto refused = Legalize(*graph->graph);
    if (!refused.ok()) return Prefix(refused.status(), absl::StrCat("signature '", key, "': "));
    PruneUnread(*graph->graph);
    const Status fused = Fuse(*graph->graph, flags.fusions, &report->fusions);
    if (!fused.ok()) return Prefix(fused, absl::StrCat("signature '", key, "': "));
    DropFused(*graph->graph, *refused);
    for (Refusal& r : *refused) report->refused.push_back({key, std::move(r)});
    if (!report->refused.empty()) continue;
    const Status quantized = Quantize(*graph, flags);
    if (!quantized.ok()) return Prefix(quantized, absl::StrCat("signature '", key, "': "));
    graphs.push_back(*std::move(graph));
  }
  if (!report->refused.empty()) return Unimplemented(RefusalText(*report));
  LiteModel out;
  out.description = "smelt";
  out.buffers.emplace_back();
  const auto no_subgraph = [](absl::string_view function) -> StatusOr<int64_t> {
    return Unimplemented("subgraph of function '", function, "'");
  };
  for (const SignatureGraph& g : graphs) {
    const size_t buffers = out.buffers.size();
    ASSIGN_OR_RETURN(LiteSubgraph subgraph,
                     EmitSubgraph(*g.graph, out.subgraphs.empty() ? "main" : g.key,
                                  TensorNames(g.inputs), TensorNames(g.outputs), no_subgraph, out));
    // Keras saves a function under two signatures: one subgraph answers both.
    size_t number = 0;
    while (number < out.subgraphs.size() && !SameSubgraph(out, out.subgraphs[number], subgraph)) {
      ++number;
    }
    out.signatures.push_back(SignatureOf(g, subgraph, static_cast<uint32_t>(number)));
    if (number < out.subgraphs.size()) {
      out.buffers.resize(buffers);
    } else {
      out.subgraphs.push_back(std::move(subgraph));
    }
  }
  SetVersions(out);
  return out;
}

Status WriteLiteFile(const LiteModel& model, const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, StagedFile::Make(path, OtherWriter::kWait));
  RETURN_IF_ERROR(WriteTflite(model, /*buffers_outside=*/false,
                              [&](absl::string_view bytes) { return file->Write(bytes); }));
  return file->Publish();
}

}  // namespace smelt
