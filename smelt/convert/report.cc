// The conversion report and the cost model behind it (docs/cost_model.md).
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/shape/infer.h"

namespace smelt {
namespace {

constexpr int64_t kMaxCost = int64_t{1} << 60;

int64_t Elements(const PartialShape& s) {
  int64_t n = 1;
  if (!s.known_rank()) return 1;
  for (int64_t d : s.dims()) {
    if (d > 0 && __builtin_mul_overflow(n, d, &n)) return kMaxCost;
    if (d == 0) return 0;
  }
  return n;
}

int64_t AddCost(int64_t a, int64_t b) { return std::min(kMaxCost, a + b); }

// Nodes that hold no computation of their own.
bool IsFree(const Node& n) {
  static const auto* free = new absl::flat_hash_set<absl::string_view>{
      "_Arg", "_Retval", "Placeholder", "Const", "NoOp", "VarHandleOp", "VariableV2",
      "TPUReplicateMetadata", "TPUCompilationResult", "TPUReplicatedInput", "TPUReplicatedOutput",
      "TPUOrdinalSelector", "HashTableV2",
      // Calls cost what their functions cost.
      "TPUPartitionedCall", "PartitionedCall", "StatefulPartitionedCall"};
  return free->contains(n.op());
}

// Cost 1 whatever the size: bookkeeping of shapes.
bool IsBookkeeping(const Node& n) {
  static const auto* cheap = new absl::flat_hash_set<absl::string_view>{
      "Shape",     "StridedSlice",   "Reshape",      "ExpandDims", "Squeeze", "Identity",
      "IdentityN", "ReadVariableOp", "StopGradient", "Size",       "Rank"};
  return cheap->contains(n.op());
}

class Costs {
 public:
  explicit Costs(Conversion& c) : c_(c), shapes_(InferModelShapes(*c.meta->graph)) {}

  // Cost on the host of what the signatures reach; what accelerator calls run is left out.
  int64_t Host() { return GraphCost(*c_.meta->graph, shapes_.graph, true); }

  int64_t Function(const std::string& name) {
    auto [it, added] = functions_.try_emplace(name, 0);
    if (!added) return it->second;
    const smelt::Function* f = c_.library().Find(name);
    if (f == nullptr || f->body == nullptr) return 0;
    const ShapeTable none;
    auto shapes = shapes_.functions.find(name);
    const int64_t cost =
        GraphCost(*f->body, shapes == shapes_.functions.end() ? none : shapes->second, false);
    functions_[name] = cost;
    return cost;
  }

 private:
  int64_t NodeCost(const Node& n, const ShapeTable& shapes) {
    if (IsFree(n)) return 0;
    if (IsBookkeeping(n)) return 1;
    const auto output_elements = [&] {
      int64_t out = 0;
      for (int p = 0; p < n.num_outputs(); ++p) {
        out = AddCost(out, Elements(shapes.of({const_cast<Node*>(&n), p})));
      }
      return out;
    };
    // Lookups touch what they fetch, not the whole table.
    if (n.Is("GatherV2") || n.Is("ResourceGather") || n.Is("SparseSegmentSum") ||
        n.Is("SparseSegmentMean")) {
      return AddCost(output_elements(), 1);
    }
    if (n.Is("LookupTableFindV2")) {
      const bool text = !n.input_types.empty() && n.num_inputs() > 1 &&
                        BaseType(n.input_types[1]) == Dtype::kString;
      return std::min(kMaxCost, output_elements() * (text ? 16 : 8));
    }
    int64_t in = 0;
    for (const Endpoint& e : n.inputs) in = AddCost(in, Elements(shapes.of(e)));
    return AddCost(1, in);
  }

  int64_t GraphCost(const Graph& graph, const ShapeTable& table, bool served_only) {
    int64_t cost = 0;
    for (const Node* n : served_only ? ServedNodes(*c_.meta) : graph.Nodes()) {
      cost = AddCost(cost, NodeCost(*n, table));
      if (n->Is("TPUPartitionedCall")) continue;
      ForEachFunc(n->attrs(), [&](const FuncAttr& f) { cost = AddCost(cost, Function(f.name)); });
      if (c_.library().Find(n->op()) != nullptr) cost = AddCost(cost, Function(n->op()));
    }
    return cost;
  }

  Conversion& c_;
  const ModelShapes shapes_;
  absl::flat_hash_map<std::string, int64_t> functions_;
};

double Percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string ConversionReport(Conversion& c) {
  Costs costs(c);
  const int64_t host = costs.Host();
  // A placed function that no signature reaches is priced all the same.
  int64_t tpu = 0;
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const TpuPlacement& p : c.placements) {
    const int64_t cost = costs.Function(p.body);
    rows.emplace_back(p.label, cost);
    tpu = AddCost(tpu, cost);
  }
  const int64_t total = AddCost(host, tpu);
  std::string out = "-------- Conversion Report --------\n";
  absl::StrAppendFormat(&out, "TPU cost of the model: %5.2f%% (%d/%d)\n", Percent(tpu, total), tpu,
                        total);
  absl::StrAppendFormat(&out, "CPU cost of the model: %5.2f%% (%d/%d)\n\n", Percent(host, total),
                        host, total);
  out += "Cost breakdown\n================================\n";
  absl::StrAppendFormat(&out, "%-10s%-8s%s\n", "%", "Cost", "Name");
  out += "--------------------------------\n";
  const auto row = [&](const std::string& name, int64_t cost) {
    absl::StrAppendFormat(&out, "%-10s%-8d%s\n", absl::StrFormat("%.2f", Percent(cost, total)),
                          cost, name);
  };
  row("[CPU cost]", host);
  for (const auto& [name, cost] : rows) row(name, cost);
  out += "--------------------------------\n";
  return out;
}

}  // namespace smelt
