// Kernels are bound to the shapes of their actions. A product or another fusible kernel
// (kernels/fusible.h) takes on the bias, the sums and the activation that follow it, if nobody else
// reads what is in between.
#include <algorithm>
#include <cmath>
#include <optional>

#include "smelt/compile/plan.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/fusible.h"

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
    CountReaders();
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (gone_[i]) continue;
      PlanAction& action = plan_.actions[i];
      // Bound with what it was moved behind.
      if (action.bound != nullptr || action.state == nullptr) continue;
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
    std::vector<size_t> actions;  // by step
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

  void CountReaders() {
    readers_.assign(plan_.values.size(), 0);
    only_reader_.assign(plan_.values.size(), 0);
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      for (const int v : plan_.actions[i].inputs) {
        const auto root = static_cast<size_t>(plan_.Root(v));
        ++readers_[root];
        only_reader_[root] = i;
      }
    }
    for (const int v : plan_.results) ++readers_[static_cast<size_t>(plan_.Root(v))];
  }

  // The step that the only reader of `value` is, added to the chain. False where it is none.
  bool Follow(int value, Chain* chain) const {
    const auto root = static_cast<size_t>(plan_.Root(value));
    if (readers_[root] != 1 || only_reader_[root] >= plan_.actions.size()) return false;
    const size_t at = only_reader_[root];
    const PlanAction& action = plan_.actions[at];
    // Of a result the reader count is one without an action.
    const auto reads = [&](int v) { return static_cast<size_t>(plan_.Root(v)) == root; };
    if (action.outputs.size() != 1 || std::ranges::none_of(action.inputs, reads)) return false;
    const PlanValue& out = At(action.outputs[0]);
    if (out.dtype != At(value).dtype ||
        out.shape.num_elements() != At(value).shape.num_elements()) {
      return false;
    }
    const Node& n = *action.node;
    FusedStep step;
    if (const auto activation = ActivationOf(n)) {
      step.activation = *activation;
      if (n.Is("LeakyRelu")) chain->ops.leaky_alpha = n.Float("alpha", 0.2f);
    } else if (n.Is(kAdds) || (n.Is("BiasAdd") && n.String("data_format", "NHWC") == "NHWC")) {
      const int other = reads(action.inputs[0]) ? action.inputs[1] : action.inputs[0];
      const auto kind = KindOfSum(At(other).shape, out.shape);
      if (!kind) return false;
      step.kind = *kind;
      step.arg = chain->ops.num_args++;
      chain->operands.push_back(other);
    } else {
      return false;
    }
    chain->ops.steps.push_back(step);
    chain->actions.push_back(at);
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
        return Take(i, chain);
      }
      chains.pop_back();
    }
    return OkStatus();
  }

  // The action stands for the steps from now on, in the place of the last of them: operands are
  // there by then.
  Status Take(size_t i, const Chain& chain) {
    if (chain.actions.empty()) return OkStatus();
    PlanAction moved = std::move(plan_.actions[i]);
    gone_[i] = true;
    moved.inputs.insert(moved.inputs.end(), chain.operands.begin(), chain.operands.end());
    for (const size_t step : chain.actions) {
      moved.then.push_back(plan_.actions[step].node);
      gone_[step] = true;
    }
    const size_t last = chain.actions.back();
    moved.outputs = plan_.actions[last].outputs;
    gone_[last] = false;
    plan_.actions[last] = std::move(moved);
    for (const int v : plan_.actions[last].inputs) {
      only_reader_[static_cast<size_t>(plan_.Root(v))] = last;
    }
    return OkStatus();
  }

  Plan& plan_;
  std::vector<bool> gone_;  // by action
  // By root.
  std::vector<int> readers_;
  std::vector<size_t> only_reader_;  // where there is one
};

}  // namespace

Status BindActions(Plan& plan) { return Binder(plan).Run(); }

}  // namespace smelt
