#include "smelt/convert/report/report_data.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/analysis/cost.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/constant.h"
#include "smelt/io/fs.h"
#include "smelt/model/loaded_model.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/saved_model/object_graph.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
constexpr int64_t kMaxBytes = int64_t{1} << 60;

// One chip, from Google's system architecture pages (https://cloud.google.com/tpu/docs/v4, /v5e,
// /v5p, /v6e: "HBM capacity", "Peak compute per chip (bf16)", "HBM bandwidth").
constexpr TpuGeneration kTpuGenerations[] = {{"v4", 32 * kGib, 275e12, 1200e9},
                                             {"v5e", 16 * kGib, 197e12, 819e9},
                                             {"v5p", 95 * kGib, 459e12, 2765e9},
                                             {"v6e", 32 * kGib, 918e12, 1640e9}};

int64_t BytesAtBatch(const PartialShape& shape, Dtype dtype, int64_t batch) {
  if (!IsPod(BaseType(dtype))) return 0;
  auto bytes = static_cast<int64_t>(Tensor::ElementSize(BaseType(dtype)));
  for (int i = 0; shape.known_rank() && i < shape.rank(); ++i) {
    const int64_t d = shape[i] >= 0 ? shape[i] : i == 0 ? batch : 1;
    if (__builtin_mul_overflow(bytes, d, &bytes) || bytes > kMaxBytes) return kMaxBytes;
  }
  return bytes;
}

bool IsWeight(const Node& n) {
  return n.Is("Const") || n.Is("ReadVariableOp") || n.Is("VarHandleOp");
}

// The most bytes that are alive at once when nodes run in the graph's order and a tensor goes with
// its last reader. Weights are counted elsewhere.
int64_t LivePeak(const Graph& graph, const ShapeTable& shapes, int64_t batch) {
  auto order = graph.TopologicalOrder();
  if (!order.ok()) return 0;
  std::vector<int> readers(graph.max_id());
  for (const Node* n : *order) {
    for (const Endpoint& e : n->inputs()) ++readers[e.node->id()];
  }
  const auto bytes_of = [&](Node* n) {
    int64_t bytes = 0;
    for (int p = 0; p < n->num_outputs() && !IsWeight(*n); ++p) {
      bytes = AddCost(bytes, BytesAtBatch(shapes.of({n, p}), n->output_types[p], batch));
    }
    return bytes;
  };
  int64_t alive = 0, peak = 0;
  for (Node* n : *order) {
    alive = AddCost(alive, bytes_of(n));
    peak = std::max(peak, alive);
    for (const Endpoint& e : n->inputs()) {
      if (--readers[e.node->id()] == 0) alive -= bytes_of(e.node);
    }
  }
  return peak;
}

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node* n : graph.Nodes()) {
    const TensorValue* t = StatedConstant(*n);
    if (t != nullptr) bytes = AddCost(bytes, BytesAtBatch(t->shape, t->dtype, 1));
  }
  return bytes;
}

int64_t LargestBatch(const ConverterOptions& options) {
  int64_t batch = 1;
  for (const BatchOption& b : options.batch_options) {
    batch = std::max<int64_t>(
        batch, b.allowed_batch_sizes.empty() ? b.max_batch_size : b.allowed_batch_sizes.back());
  }
  return batch;
}

class ReportMaker {
 public:
  ReportMaker(Conversion& c, ReportData& out) : c_(c), costs_(*c.meta->graph), out_(out) {}

  Status Run() {
    out_.batch = LargestBatch(c_.options);
    if (c_.options.xla_sharding_options) {
      out_.cores = std::max(1, c_.options.xla_sharding_options->num_cores_per_replica);
    }
    out_.cpu_cost = costs_.OfNodes(ServedNodes(*c_.meta));
    for (const TpuPlacement& p : c_.placements) Placement(p);
    out_.total_cost = AddCost(out_.cpu_cost, out_.tpu_cost);
    Signatures();
    Functions();
    Variables();
    VariableNames();
    int64_t activations = 0;
    for (const ReportPlacement& p : out_.placements) {
      activations = std::max(activations, p.activation_bytes_at_batch);
      out_.hbm_bytes = AddCost(out_.hbm_bytes, AddCost(p.variable_bytes, p.constant_bytes));
    }
    out_.hbm_bytes = AddCost(out_.hbm_bytes, activations);
    for (const TransferredTensor& b : c_.records.transfers) {
      out_.transfer_bytes_before += b.bytes_before;
      out_.transfer_bytes += b.bytes;
    }
    return OkStatus();
  }

 private:
  void Placement(const TpuPlacement& p) {
    ReportPlacement& r = out_.placements.emplace_back();
    r.label = p.label;
    r.function = p.function;
    r.body = p.body;
    r.existing = p.existing;
    // A placed function that no signature reaches is priced all the same.
    r.cost = costs_.OfFunction(p.body);
    out_.tpu_cost = AddCost(out_.tpu_cost, r.cost);
    on_tpu_[p.body] = p.label;
    for (const std::string& name : p.callees) on_tpu_[name] = p.label;
    for (const Function* f : FunctionsOnTpu(c_, p)) {
      if (f == nullptr || f->body == nullptr) continue;
      const ShapeTable& shapes = costs_.ShapesOf(f->name());
      r.constant_bytes = AddCost(r.constant_bytes, ConstantBytes(*f->body));
      r.activation_bytes = AddCost(r.activation_bytes, LivePeak(*f->body, shapes, 1));
      r.activation_bytes_at_batch =
          AddCost(r.activation_bytes_at_batch, LivePeak(*f->body, shapes, out_.batch));
    }
  }

  // A core holds one copy of a variable, however many placements read it: the first that does gets
  // its bytes.
  void Variables() {
    if (out_.placements.empty()) return;
    const auto variables = ModelVariables::Trace(*c_.meta, c_.model.dir, c_.files);
    if (!variables.ok()) {
      // The conversion may do without the checkpoint; the estimate cannot.
      c_.records.AddNote("report", absl::StrCat("variables are missing in the memory estimate: ",
                                                variables.status().message()));
      return;
    }
    for (const auto& v : (*variables)->all()) {
      absl::flat_hash_set<absl::string_view> read_by;
      for (const auto* uses : {&v->reads, &v->lookups, &v->others}) {
        for (const HandleUse& use : *uses) {
          auto it = use.function ? on_tpu_.find(use.function->name()) : on_tpu_.end();
          if (it != on_tpu_.end()) read_by.insert(it->second);
        }
      }
      if (read_by.empty()) continue;
      for (ReportPlacement& p : out_.placements) {
        if (!read_by.contains(p.label)) continue;
        p.variable_bytes = AddCost(p.variable_bytes, BytesAtBatch(v->shape, v->dtype, 1));
        break;
      }
    }
  }

  void Signatures() {
    for (const auto& [name, signature] : c_.meta->signatures) {
      if (name == kInitSignature) continue;
      ReportSignature& s = out_.signatures.emplace_back();
      s.name = name;
      std::vector<const Node*> stack;
      absl::flat_hash_set<const Node*> seen;
      for (const auto& [key, slot] : LoadedModel::Slots(signature.outputs)) {
        auto e = c_.meta->graph->FindEndpoint(slot.tensor);
        if (e.ok() && seen.insert(e->node).second) stack.push_back(e->node);
      }
      while (!stack.empty()) {
        const Node* n = stack.back();
        stack.pop_back();
        Calls(*n, &s.calls);
        for (const Endpoint& e : n->inputs()) {
          if (seen.insert(e.node).second) stack.push_back(e.node);
        }
      }
    }
  }

  void Calls(const Node& n, std::vector<std::string>* calls) {
    const auto add = [&](absl::string_view name) {
      if (c_.library().Find(name) != nullptr && std::ranges::find(*calls, name) == calls->end()) {
        calls->emplace_back(name);
      }
    };
    ForEachCallee(c_.library(), n, add);
  }

  void Functions() {
    std::vector<std::string> names = ServedFunctions(*c_.meta);
    const absl::flat_hash_set<std::string> served(names.begin(), names.end());
    for (const auto& [name, label] : on_tpu_) {
      if (!served.contains(name)) names.push_back(name);
    }
    const size_t reached = names.size();
    AddNamed(&names);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      const Function* f = c_.library().Find(name);
      if (f == nullptr || f->body == nullptr) continue;
      ReportFunction& r = out_.functions.emplace_back();
      r.name = name;
      r.alias = AliasOf(name);
      r.inlined = i >= reached;
      if (auto it = on_tpu_.find(name); it != on_tpu_.end()) {
        r.on_tpu = true;
        r.label = it->second;
      }
      r.nodes = f->body->num_nodes();
      r.calls = CalledFunctions(*f->body);
      std::erase_if(r.calls, [&](const std::string& n) { return c_.library().Find(n) == nullptr; });
      const ShapeTable& shapes = costs_.ShapesOf(name);
      for (const Node* n : f->body->Nodes()) {
        r.cost = AddCost(r.cost, CostModel::OfNodeAlone(*n, shapes));
      }
    }
  }

  // Functions that the records name, so that each `function` of a report is in the list.
  void AddNamed(std::vector<std::string>* names) {
    absl::flat_hash_set<std::string> known(names->begin(), names->end());
    const auto add = [&](const std::string& name) {
      if (c_.library().Find(name) != nullptr && known.insert(name).second) names->push_back(name);
    };
    const ConversionRecords& r = c_.records;
    for (const TpuPlacement& p : c_.placements) add(p.function);
    for (const auto& record : r.transfers) add(record.function);
    for (const auto& record : r.host_ops) add(record.function);
    for (const auto& record : r.auto_placements) add(record.function);
    for (const auto& record : r.precision) add(record.function);
    for (const auto& record : r.layers) add(record.function);
    for (const auto& record : r.batches) add(record.component);
    for (const auto& record : r.notes) add(record.function);
    // And what those call, so that calls lead nowhere else. The list grows as it is read.
    for (size_t i = 0; i < names->size(); ++i) {
      const Function* f = c_.library().Find((*names)[i]);
      if (f == nullptr || f->body == nullptr) continue;
      for (const std::string& callee : CalledFunctions(*f->body)) add(callee);
    }
  }

  std::string AliasOf(const std::string& function) const {
    const auto& aliases = c_.meta->function_aliases;
    const auto it = aliases.find(function);
    if (it != aliases.end()) return it->second;
    for (const TpuPlacement& p : c_.placements) {
      if (p.body == function && p.function != function) return AliasOf(p.function);
    }
    return "";
  }

  void VariableNames() {
    const std::string prefix = JoinPath(c_.model.dir, "variables/variables");
    if (c_.records.variables.empty() && c_.records.precision.empty()) return;
    if (!Exists(prefix + ".index")) return;
    const auto bundle = BundleReader::Open(prefix);
    const auto names = bundle.ok() ? CheckpointVariableNames(**bundle) : bundle.status();
    if (!names.ok()) {
      c_.records.AddNote("report", absl::StrCat("variables are named by their checkpoint keys: ",
                                                names.status().message()));
      return;
    }
    std::map<std::string, int> bearers;
    for (const auto& [key, name] : *names) ++bearers[name];
    for (const auto& [key, name] : *names) {
      if (bearers[name] == 1) out_.variable_names[key] = name;
    }
  }

  Conversion& c_;
  CostModel costs_;
  ReportData& out_;
  std::map<std::string, std::string> on_tpu_;  // function -> label
};

}  // namespace

std::string ReportData::VariableName(const std::string& key) const {
  const auto it = variable_names.find(key);
  if (it != variable_names.end()) return it->second;
  return std::string(absl::StripSuffix(key, "/.ATTRIBUTES/VARIABLE_VALUE"));
}

const ReportFunction* ReportData::FindFunction(absl::string_view name) const {
  const auto it = std::ranges::find(functions, name, &ReportFunction::name);
  return it == functions.end() ? nullptr : &*it;
}

std::string ReportData::FunctionTitle(const std::string& name) const {
  const ReportFunction* f = FindFunction(name);
  if (f == nullptr) return name;
  return !f->label.empty() ? f->label : !f->alias.empty() ? f->alias : name;
}

std::string WithoutCalls(absl::string_view node) {
  std::vector<absl::string_view> scopes = absl::StrSplit(node, '/');
  const absl::string_view own = scopes.back();
  scopes.pop_back();
  std::erase_if(scopes, [](absl::string_view scope) {
    if (!absl::ConsumePrefix(&scope, "StatefulPartitionedCall") &&
        !absl::ConsumePrefix(&scope, "PartitionedCall")) {
      return false;
    }
    int64_t number = 0;
    return scope.empty() || (absl::ConsumePrefix(&scope, "_") && absl::SimpleAtoi(scope, &number));
  });
  scopes.push_back(own);
  return absl::StrJoin(scopes, "/");
}

std::string LayerOf(absl::string_view node) {
  const std::string name = WithoutCalls(node);
  const size_t end = name.rfind('/');
  return end == std::string::npos ? "" : name.substr(0, end);
}

const TpuGeneration* FindTpuGeneration(absl::string_view name) {
  auto it = std::ranges::find(kTpuGenerations, name, &TpuGeneration::name);
  return it == std::end(kTpuGenerations) ? nullptr : &*it;
}

std::vector<std::string> TpuGenerationNames() {
  std::vector<std::string> names;
  for (const TpuGeneration& g : kTpuGenerations) names.emplace_back(g.name);
  return names;
}

StatusOr<ReportData> MakeReportData(Conversion& c, const TpuGeneration& tpu) {
  ReportData data;
  data.tpu = &tpu;
  RETURN_IF_ERROR(ReportMaker(c, data).Run());
  return data;
}

}  // namespace smelt
