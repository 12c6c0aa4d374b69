// Kernels are bound to the shapes of their actions. A product or another fusible kernel
// (kernels/fusible.h) takes on the bias, the sums and the activation that follow it, if nobody else
// reads what is in between.
#include <algorithm>
#include <optional>

#include "smelt/compile/activation.h"
#include "smelt/compile/attention.h"
#include "smelt/compile/layer_norm.h"
#include "smelt/compile/plan.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/nn/layer_norm.h"

namespace smelt {
namespace {

constexpr OpSet kAdds = {"AddV2", "Add"};
// A longer chain is no longer worth a look.
constexpr size_t kMaxSteps = 4;

std::optional<Activation> ActivationOf(const Node& n) {
  if (n.Is("Relu")) return Activation::kRelu;
  if (n.Is("Relu6")) return Activation::kRelu6;
  if (n.Is("Elu")) return Activation::kElu;
  if (n.Is("LeakyRelu")) return Activation::kLeakyRelu;
  if (n.Is("Tanh")) return Activation::kTanh;
  if (n.Is("Sigmoid")) return Activation::kSigmoid;
  return std::nullopt;
}

class Binder {
 public:
  explicit Binder(Plan& plan) : plan_(plan), gone_(plan.actions.size(), false) {}

  Status Run() {
    ListReaders();
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (gone_[i]) continue;
      PlanAction& action = plan_.actions[i];
      // Bound with what it was moved behind.
      if (action.bound != nullptr || BindLayerNorm(i) || BindAttention(i)) continue;
      if (action.state == nullptr) continue;
      if (auto* fusible = dynamic_cast<FusibleState*>(action.state.get())) {
        RETURN_IF_ERROR(BindWithSteps(i, *fusible));
      } else {
        ASSIGN_OR_RETURN(action.bound, action.state->Bind(ContextOf(action).context()));
      }
    }
    size_t kept = 0;
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (gone_[i]) continue;
      if (kept != i) plan_.actions[kept] = std::move(plan_.actions[i]);
      ++kept;
    }
    plan_.actions.resize(kept);
    return OkStatus();
  }

 private:
  struct Tensors {
    const Node& node;
    std::vector<BoundTensor> inputs, outputs;
    BindContext context() const { return {node, inputs, outputs}; }
  };
  // Steps that follow an action, and where the last of them stands.
  struct Chain {
    FusedOps ops;
    std::vector<int> operands;    // values, by argument
    std::vector<size_t> actions;  // that do the steps
  };

  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }

  BoundTensor Bound(int value) const {
    const PlanValue& v = At(value);
    const Tensor* constant = v.place == PlanValue::Place::kConstant
                                 ? &plan_.constants[static_cast<size_t>(v.number)]
                                 : nullptr;
    return {v.dtype, v.shape, constant};
  }
  Tensors ContextOf(const PlanAction& action) const {
    Tensors t{*action.node, {}, {}};
    for (const int v : action.inputs) t.inputs.push_back(Bound(v));
    for (const int v : action.outputs) t.outputs.push_back(Bound(v));
    return t;
  }

  void ListReaders() {
    readers_.assign(plan_.values.size(), {});
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      for (const int v : plan_.actions[i].inputs) ReadersOf(v).push_back(i);
    }
    for (const int v : plan_.results) ReadersOf(v).push_back(plan_.actions.size());
  }
  std::vector<size_t>& ReadersOf(int value) {
    return readers_[static_cast<size_t>(plan_.Root(value))];
  }

  // What is done to `value` next, and to nothing else of it, added to the chain. False where it is
  // no step.
  bool Follow(int value, Chain* chain) {
    if (FollowOne(value, chain)) return true;
    const auto spelled = FindActivation(plan_, value, readers_);
    if (!spelled) return false;
    FusedStep step;
    step.activation = spelled->activation;
    chain->ops.steps.push_back(step);
    chain->actions.insert(chain->actions.end(), spelled->actions.begin(), spelled->actions.end());
    return true;
  }

  // The only reader, where that is a step.
  bool FollowOne(int value, Chain* chain) {
    const std::vector<size_t>& readers = ReadersOf(value);
    if (readers.size() != 1 || readers[0] == plan_.actions.size()) return false;
    const PlanAction& action = plan_.actions[readers[0]];
    if (action.outputs.size() != 1) return false;
    const PlanValue& out = At(action.outputs[0]);
    if (out.dtype != At(value).dtype ||
        out.shape.num_elements() != At(value).shape.num_elements()) {
      return false;
    }
    const Node& n = *action.node;
    FusedStep step;
    if (const auto activation = ActivationOf(n)) {
      step.activation = *activation;
      if (n.Is("LeakyRelu")) {
        // There is one slope for all steps.
        const auto is_leaky = [](const FusedStep& s) {
          return s.kind == FusedStep::Kind::kActivation && s.activation == Activation::kLeakyRelu;
        };
        if (std::ranges::any_of(chain->ops.steps, is_leaky)) return false;
        chain->ops.leaky_alpha = n.Float("alpha", 0.2f);
      }
    } else if (n.Is(kAdds) || (n.Is("BiasAdd") && n.String("data_format", "NHWC") == "NHWC")) {
      const int root = plan_.Root(value);
      const int other = plan_.Root(action.inputs[0]) == root ? action.inputs[1] : action.inputs[0];
      const auto kind = KindOfSum(At(other).shape, out.shape);
      if (!kind) return false;
      step.kind = *kind;
      step.arg = chain->ops.num_args++;
      chain->operands.push_back(other);
    } else {
      return false;
    }
    chain->ops.steps.push_back(step);
    chain->actions.push_back(readers[0]);
    return true;
  }

  static std::optional<FusedStep::Kind> KindOfSum(const Shape& operand, const Shape& out) {
    if (operand == out) return FusedStep::Kind::kAdd;
    auto dims = operand.dims();
    while (!dims.empty() && dims[0] == 1) dims = dims.subspan(1);
    const auto all = out.dims();
    if (dims.empty() || dims.size() >= all.size() || operand.rank() > out.rank() ||
        !std::ranges::equal(dims, all.last(dims.size()))) {
      return std::nullopt;
    }
    return FusedStep::Kind::kBias;
  }

  // Where the action is the first of a layer normalization, all of it becomes one.
  bool BindLayerNorm(size_t i) {
    if (!plan_.actions[i].node->Is("Mean")) return false;
    const auto norm = FindLayerNorm(plan_, i, readers_);
    if (!norm) return false;
    const int64_t depth = At(norm->x).shape.back();
    plan_.actions[i].bound =
        nn::BindLayerNorm(norm->epsilon, At(norm->x).shape.num_elements() / depth, depth);
    Take(i, {norm->x, norm->scale, norm->offset}, std::span(norm->actions).subspan(1));
    return true;
  }

  // Where the action is the product of queries and keys, all of the attention becomes one.
  bool BindAttention(size_t i) {
    auto found = FindAttention(plan_, i, readers_);
    if (!found) return false;
    plan_.actions[i].bound = nn::BindAttention(std::move(found->attention));
    Take(i, std::move(found->inputs), found->actions);
    return true;
  }

  // With as many of the steps that follow as the kernel takes.
  Status BindWithSteps(size_t i, FusibleState& state) {
    PlanAction& action = plan_.actions[i];
    std::vector<Chain> chains(1);
    int value = action.outputs.size() == 1 ? action.outputs[0] : -1;
    while (value >= 0 && chains.size() <= kMaxSteps) {
      Chain longer = chains.back();
      if (!Follow(value, &longer)) break;
      value = plan_.actions[longer.actions.back()].outputs[0];
      chains.push_back(std::move(longer));
    }
    while (!chains.empty()) {
      const Chain& chain = chains.back();
      Tensors tensors = ContextOf(action);
      for (const int v : chain.operands) tensors.inputs.push_back(Bound(v));
      ASSIGN_OR_RETURN(auto bound, state.BindThen(tensors.context(), chain.ops));
      if (bound != nullptr) {
        action.bound = std::move(bound);
        std::vector<int> inputs = action.inputs;
        inputs.insert(inputs.end(), chain.operands.begin(), chain.operands.end());
        if (!chain.actions.empty()) Take(i, std::move(inputs), chain.actions);
        return OkStatus();
      }
      chains.pop_back();
    }
    return OkStatus();
  }

  // The action stands for `steps` as well from now on, in the place of the last of them: operands
  // are there by then.
  void Take(size_t i, std::vector<int> inputs, std::span<const size_t> steps) {
    PlanAction moved = std::move(plan_.actions[i]);
    gone_[i] = true;
    moved.inputs = std::move(inputs);
    for (const size_t step : steps) {
      moved.then.push_back(plan_.actions[step].node);
      gone_[step] = true;
    }
    const size_t last = *std::ranges::max_element(steps);
    moved.outputs = plan_.actions[last].outputs;
    gone_[last] = false;
    plan_.actions[last] = std::move(moved);
    // Who read the chain's operands at its steps reads them where it ends.
    for (const int v : plan_.actions[last].inputs) {
      for (size_t& reader : ReadersOf(v)) {
        if (reader < plan_.actions.size() && gone_[reader]) reader = last;
      }
    }
  }

  Plan& plan_;
  std::vector<bool> gone_;  // by action
  // By root value, the actions that read it, one for each time; the caller's number is one more
  // than the last.
  std::vector<std::vector<size_t>> readers_;
};

}  // namespace

Status BindActions(Plan& plan) { return Binder(plan).Run(); }

}  // namespace smelt
