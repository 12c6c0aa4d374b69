#include "smelt/convert/narrow.h"

#include <algorithm>
#include <set>

#include "smelt/convert/quantize/quantize.h"
#include "smelt/io/record.h"
#include "smelt/model/model_folder.h"
#include "smelt/tensor/compare.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

// Nodes that only an accelerator's models have.
constexpr OpSet kAcceleratorOps = {"TPUPartitionedCall", "TPUReplicatedInput",
                                   "TPUReplicateMetadata"};

Status CheckPlain(const MetaGraph& meta) {
  const auto check = [](const Graph& g) -> Status {
    for (const Node* n : g.Nodes()) {
      if (!n->Is(kAcceleratorOps)) continue;
      return InvalidArgument("--precision is for plain models: '", n->name(), "' (", n->op(),
                             ") says that this one was converted for accelerators; smelt convert "
                             "--revert makes it plain");
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(check(*meta.graph));
  for (const Function* f : meta.graph->library()->Functions()) RETURN_IF_ERROR(check(*f->body));
  return OkStatus();
}

StatusOr<std::set<std::string>> SignaturesOf(const std::string& log) {
  std::set<std::string> signatures;
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(log));
  for (int64_t i = 0;; ++i) {
    ASSIGN_OR_RETURN(const auto bytes, reader.Next());
    if (!bytes && i == 0) return InvalidArgument(log, " holds no records");
    if (!bytes) return signatures;
    auto record = ParsePredictionLog(*bytes);
    if (!record.ok()) return Prefix(record.status(), absl::StrCat("record ", i, ": "));
    signatures.insert(record->signature.empty() ? "serving_default" : record->signature);
  }
}

StatusOr<QuantizationOption> StaticRange(const MetaGraph& meta, const std::string& log) {
  QuantizationOption q;
  q.field = "quantization_options";
  q.method.preset = QuantizationPreset::kStaticRange;
  q.op_set = QuantizationOpSet::kXla;
  if (log.empty()) {
    if (quantize::TrainedWithFakeQuant(meta)) return q;
    return InvalidArgument(
        "--precision int8 needs recorded requests, which say what ranges numbers have: give "
        "--calibration_log, a TFRecord file of PredictionLogs");
  }
  ASSIGN_OR_RETURN(const std::set<std::string> signatures, SignaturesOf(log));
  for (const std::string& s : signatures) {
    q.representative_datasets[s] = log;
    q.prediction_logs.insert(s);
    q.signature_keys.push_back(s);
  }
  return q;
}

}  // namespace

StatusOr<MetaGraph> Narrow(const MetaGraph& meta, const std::string& dir,
                           const NarrowFlags& flags) {
  RETURN_IF_ERROR(CheckPlain(meta));
  Conversion c;
  c.model.dir = dir;
  ASSIGN_OR_RETURN(MetaGraph copy, quantize::CopyModel(meta));
  c.model.meta_graphs.push_back(std::move(copy));
  c.files = flags.files.With(FoldersOfModel(dir));
  c.count = flags.count;
  c.settings.write = c.settings.measure_layers = false;
  c.options.bfloat16_optimization = OptionState::kDisabled;
  if (flags.precision == Precision::kBfloat16) {
    c.options.bfloat16_optimization = OptionState::kEnabled;
    c.options.bfloat16_optimization_options.emplace().scope_all = true;
  } else if (flags.precision == Precision::kInt8) {
    ASSIGN_OR_RETURN(c.options.quantization_options, StaticRange(meta, flags.calibration_log));
  }
  RETURN_IF_ERROR(Convert(c));
  return std::move(c.model.meta_graphs[0]);
}

StatusOr<NarrowError> MeasureNarrow(
    const MetaGraph& plain, const MetaGraph& narrow, const std::string& dir,
    const SessionOptions& options,
    const std::vector<std::pair<std::string, NamedTensors>>& requests) {
  NarrowError error;
  const auto load = [&](const MetaGraph& meta) -> StatusOr<std::unique_ptr<LoadedModel>> {
    ASSIGN_OR_RETURN(MetaGraph copy, quantize::CopyModel(meta));
    return LoadedModel::Load(std::move(copy), dir, options);
  };
  ASSIGN_OR_RETURN(const auto wide, load(plain));
  ASSIGN_OR_RETURN(const auto thin, load(narrow));
  for (const auto& [signature, inputs] : requests) {
    const auto want = wide->RunSignature(signature, inputs);
    if (!want.ok()) continue;
    ASSIGN_OR_RETURN(const NamedTensors got, thin->RunSignature(signature, inputs));
    ++error.requests;
    for (const auto& [name, wanted] : *want) {
      const auto it = got.find(name);
      if (it == got.end()) return Internal("the narrow model has no output '", name, "'");
      const Comparison c = Compare(wanted, it->second, {0, INFINITY});
      if (!c.equal) error.odd.push_back(absl::StrCat("output '", name, "': ", c.why));
      error.max_abs = std::max(error.max_abs, c.max_abs);
      if (error.output.empty() || c.max_range > error.max_relative) {
        error.max_relative = c.max_range;
        error.output = name;
      }
    }
  }
  return error;
}

}  // namespace smelt
