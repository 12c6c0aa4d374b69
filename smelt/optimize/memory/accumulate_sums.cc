#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/optimize/memory/parts.h"

namespace smelt::memory {
namespace {

constexpr OpSet kSums = {"AddN", "AccumulateNV2"};
// Of a device's memory; beyond, sums are worth a change.
constexpr double kScarce = 0.8;

bool IsSum(const Node& n) { return n.Is(kSums) && n.num_inputs() > 2; }

bool HasAssignAdd(Dtype type) {
  return type == Dtype::kHalf || type == Dtype::kFloat || type == Dtype::kDouble ||
         type == Dtype::kInt64;
}

class SumAccumulator {
 public:
  SumAccumulator(Graph& graph, const PassContext& context, const MemoryModel& model)
      : graph_(graph), context_(context), model_(model), budget_(graph) {}

  StatusOr<bool> Run() {
    const std::vector<Node*> sums = SumsAtPeaks();
    if (sums.empty()) return false;
    // Of a value that a request feeds the variable must have the shape, whatever it is.
    const ShapeTable shapes = InferSymbolicShapesBeside(
        graph_, XlaShapeRules(), [](const Node& n) { return IsFed(n); },
        /*into_functions=*/false);
    bool changed = false;
    for (Node* sum : sums) {
      const PartialShape& shape = shapes.of({sum, 0});
      if (!MayRewrite(*sum, shape)) continue;
      const std::optional<absl::flat_hash_map<const Node*, int>> finished = FinishOrder(sum);
      if (!finished) {
        context_.Declined("AccumulateSum", *sum, "too much stands before too many sums");
        continue;
      }
      RETURN_IF_ERROR(Rewrite(sum, shape, *finished));
      changed = true;
    }
    return changed;
  }

 private:
  // Sums of tensors that are alive when a device is short of memory, and on it.
  std::vector<Node*> SumsAtPeaks() const {
    absl::flat_hash_set<std::pair<const Node*, int>> alive;
    for (size_t i = 0; i < model_.peaks.size(); ++i) {
      const double size =
          static_cast<double>(model_.placement.device(static_cast<int>(i)).memory_size);
      const PeakMemory& peak = model_.peaks[i];
      if (size <= 0 || static_cast<double>(peak.bytes) <= size * kScarce) continue;
      for (const LiveTensor& live : peak.live) alive.insert({live.node, live.port});
    }
    std::vector<Node*> sums;
    if (alive.empty()) return sums;
    for (Node* n : graph_.Nodes()) {
      const auto helps = [&](const Endpoint& e) {
        return e.node->device == n->device && alive.contains({e.node, e.port});
      };
      if (IsSum(*n) && std::ranges::any_of(n->inputs(), helps)) sums.push_back(n);
    }
    return sums;
  }

  bool MayRewrite(const Node& sum, const PartialShape& shape) const {
    const auto declined = [&](absl::string_view why) {
      return context_.Declined("AccumulateSum", sum, why);
    };
    if (!shape.fully_known()) return declined("its shape is not known");
    if (!HasAssignAdd(sum.Type("T"))) return declined("no device adds its type in place");
    if (IsFed(sum)) return declined("a request feeds it");
    if (graph_.Find(absl::StrCat(sum.name(), "/tmp_var")) != nullptr) {
      return declined("the name of its variable is taken");
    }
    return true;
  }

  // For each node that the sum needs, when a walk that goes into the youngest inputs first is done
  // with it: TensorFlow's, by which it knows what runs before the first of the inputs.
  std::optional<absl::flat_hash_map<const Node*, int>> FinishOrder(const Node* sum) {
    absl::flat_hash_map<const Node*, int> finished;
    absl::flat_hash_set<const Node*> begun;
    std::vector<std::pair<const Node*, bool>> stack = {{sum, false}};
    while (!stack.empty()) {
      const auto [n, inputs_done] = stack.back();
      stack.pop_back();
      if (inputs_done) {
        finished.try_emplace(n, static_cast<int>(finished.size()));
        continue;
      }
      if (!begun.insert(n).second) continue;
      stack.emplace_back(n, true);
      std::vector<const Node*> inputs;
      for (const Endpoint& e : n->inputs()) inputs.push_back(e.node);
      inputs.insert(inputs.end(), n->control_inputs().begin(), n->control_inputs().end());
      if (!budget_.Take(static_cast<int64_t>(inputs.size()) + 1)) return std::nullopt;
      std::ranges::sort(inputs, {}, [](const Node* input) { return input->id(); });
      for (const Node* input : inputs) stack.emplace_back(input, false);
    }
    return finished;
  }

  StatusOr<Node*> Add(const Node& sum, absl::string_view suffix, absl::string_view op,
                      std::span<const Endpoint> inputs, AttrMap attrs) {
    ASSIGN_OR_RETURN(Node * n,
                     graph_.Add(absl::StrCat(sum.name(), suffix), op, inputs, std::move(attrs)));
    n->device = sum.device;
    return n;
  }

  Status Rewrite(Node* sum, const PartialShape& shape,
                 const absl::flat_hash_map<const Node*, int>& finished) {
    const Dtype type = sum->Type("T");
    const std::vector<Endpoint> inputs(sum->inputs().begin(), sum->inputs().end());
    const Endpoint first = *std::ranges::min_element(
        inputs, {}, [&](const Endpoint& e) { return finished.at(e.node); });
    std::vector<Node*> before, after;
    for (Node* c : sum->control_inputs()) {
      (finished.at(c) < finished.at(first.node) ? before : after).push_back(c);
    }
    AttrMap typed;
    typed.Set("T", type);
    AttrMap of_variable;
    of_variable.Set("dtype", type);
    of_variable.Set("shape", shape);
    of_variable.Set("var_name", absl::StrCat(sum->name(), "/tmp_var"));
    ASSIGN_OR_RETURN(Node * variable, Add(*sum, "/tmp_var", "TemporaryVariable", {}, of_variable));
    for (Node* c : before) graph_.AddControlInput(variable, c);
    graph_.AddControlInput(variable, first.node);
    ASSIGN_OR_RETURN(Node * zeros, Add(*sum, "/tmp_var_zeros", "ZerosLike", {{first}}, typed));
    AttrMap of_assign = typed;
    of_assign.Set("use_locking", false);
    of_assign.Set("validate_shape", false);
    const Endpoint parts[] = {{variable, 0}, {zeros, 0}};
    ASSIGN_OR_RETURN(Node * initial,
                     Add(*sum, "/tmp_var_initializer", "Assign", parts, std::move(of_assign)));
    AttrMap of_add = typed;
    of_add.Set("use_locking", true);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Endpoint added[] = {{initial, 0}, inputs[i]};
      ASSIGN_OR_RETURN(Node * add,
                       Add(*sum, absl::StrCat("/tmp_var_accum_", i), "AssignAdd", added, of_add));
      after.push_back(add);
    }
    AttrMap kept;
    for (const auto& [name, attr] : sum->attrs()) {
      if (absl::StartsWith(name, "_")) kept.Set(name, attr);
    }
    kept.Set("T", type);
    kept.Set("var_name", variable->name());
    sum->AttrsToChange() = std::move(kept);
    graph_.SetOp(sum, "DestroyTemporaryVariable");
    graph_.SetInputs(sum, {{initial, 0}});
    graph_.SetControlInputs(sum, std::move(after));
    context_.Fired("AccumulateSum", *sum);
    return graph_.ResolveTypes(sum);
  }

  Graph& graph_;
  const PassContext& context_;
  const MemoryModel& model_;
  Budget budget_;
};

}  // namespace

StatusOr<bool> AccumulateSums(Graph& graph, const PassContext& context, const MemoryModel& model) {
  return SumAccumulator(graph, context, model).Run();
}

}  // namespace smelt::memory
