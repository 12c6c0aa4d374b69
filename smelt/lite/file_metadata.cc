#include "smelt/lite/file_metadata.h"

#include <algorithm>

namespace smelt {
namespace {

// Files are what this TensorFlow's converter writes.
constexpr char kTensorFlowVersion[] = "2.21.0";

// Ops that training leaves where it rounds.
constexpr OpSet kTrainingOps = {"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel",
                                "FakeQuantWithMinMaxArgs", "QuantizeAndDequantizeV2",
                                "QuantizeAndDequantizeV3"};

bool IsTrainedQuantized(LoadedModel& model) {
  const auto any = [](const Graph& graph) {
    return std::ranges::any_of(graph.Nodes(), [](const Node* n) { return n->Is(kTrainingOps); });
  };
  const Graph& graph = model.session().graph();
  if (any(graph)) return true;
  return std::ranges::any_of(graph.library()->Functions(), [&](const Function* f) {
    return f->body != nullptr && any(*f->body);
  });
}

std::vector<LiteMode> ModesOf(const LiteFlags& flags, bool trained) {
  std::vector<LiteMode> out;
  // TensorFlow does not call that an optimization.
  if (flags.by_ranges) return out;
  switch (flags.quantize) {
    case LiteQuantize::kNone:
      return out;
    case LiteQuantize::kFloat16:
      out.push_back(LiteMode::kFloat16);
      break;
    case LiteQuantize::kDynamic:
      if (!trained) out.push_back(LiteMode::kDynamicRange);
      break;
    case LiteQuantize::kInt8:
      if (!flags.samples.empty()) out.push_back(LiteMode::kFullInteger);
      break;
    case LiteQuantize::kInt16x8:
      if (!flags.samples.empty()) out.push_back(LiteMode::kInt16);
      break;
  }
  if (trained && !flags.integer.low_bits) out.push_back(LiteMode::kTraining);
  return out;
}

void AddSparsityModes(const LiteModel& file, std::vector<LiteMode>& modes) {
  bool single = false, blocks = false;
  for (const LiteSubgraph& graph : file.subgraphs) {
    for (const LiteTensor& t : graph.tensors) {
      if (t.sparsity == nullptr) continue;
      (t.sparsity->block_map.empty() ? single : blocks) = true;
    }
  }
  if (single) modes.push_back(LiteMode::kRandomSparsity);
  if (blocks) modes.push_back(LiteMode::kBlockSparsity);
}

}  // namespace

uint64_t StructureHash(const LiteModel& model) {
  uint64_t hash = 0;
  const auto add = [&](uint64_t value) {
    hash ^= value + 0x9E3779B97F4A7800u + (hash << 10) + (hash >> 4);
  };
  // A tensor that is left out is -1, in 64 bits.
  const auto add_all = [&](const std::vector<int32_t>& values) {
    for (const int64_t v : values) add(static_cast<uint64_t>(v));
  };
  for (const LiteSubgraph& graph : model.subgraphs) {
    add(graph.operators.size());
    for (const LiteOperator& op : graph.operators) {
      add_all(op.inputs);
      add_all(op.outputs);
    }
    add(graph.tensors.size());
    for (const LiteTensor& t : graph.tensors) {
      const size_t bytes = model.buffers[t.buffer].bytes.size();
      if (bytes > 0) add(bytes);
      add_all(t.shape);
    }
    add(graph.inputs.size());
    add(graph.outputs.size());
  }
  return hash;
}

Status AddFileMetadata(LoadedModel& model, const LiteFlags& flags, LiteModel& file) {
  const LiteMetadataFlags& says = flags.metadata;
  const bool half = flags.quantize == LiteQuantize::kFloat16;
  if (half || says.bfloat16) {
    RETURN_IF_ERROR(AddMetadata(file, "reduced_precision_support",
                                absl::StrCat(half ? "fp16" : "", says.bfloat16 ? "bf16" : "",
                                             says.half_sums ? "accfp16" : "accfp32")));
  }
  if (!says.conversion) return OkStatus();
  LiteConversion c;
  c.tensorflow_version = kTensorFlowVersion;
  // Frozen graphs are what the converter of version 1 takes.
  c.api_version = says.version_one || says.source == LiteSource::kGraphDef ? 1 : 2;
  c.source = says.source;
  c.model_hash = StructureHash(file);
  c.modes = ModesOf(flags, IsTrainedQuantized(model));
  AddSparsityModes(file, c.modes);
  c.allow_custom_ops = flags.operators.custom;
  c.enable_select_tf_ops = flags.operators.select;
  c.force_select_tf_ops = flags.operators.select && !flags.operators.builtins;
  return AddMetadata(file, std::string(kConversionMetadata), WriteLiteConversion(c));
}

Status AddMetadata(LiteModel& model, const std::string& name, std::string bytes) {
  for (const LiteMetadata& m : model.metadata) {
    if (m.name == name) return AlreadyExists("the file has the metadata '", name, "' already");
  }
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  model.metadata.push_back({name, static_cast<uint32_t>(model.buffers.size())});
  model.buffers.push_back({*owner, owner});
  return OkStatus();
}

}  // namespace smelt
