// Kernels are bound to the shapes of their actions. A product or another fusible kernel
// (kernels/fusible.h) takes on the bias, the sums, the activation and the way to int8 that follow
// it, if nobody else reads what is in between.
//
// What takes long, compiling primitives and packing weights, is done by the team: chains are chosen
// in order as if each kernel took all that it is offered, the kernels are bound to them side by
// side, and then taken in order; where one did not take all, those after it are chosen anew. So the
// outcome, errors included, is that of one thread.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "smelt/base/team.h"
#include "smelt/compile/activation.h"
#include "smelt/compile/attention.h"
#include "smelt/compile/layer_norm.h"
#include "smelt/compile/readers.h"
#include "smelt/compile/unsigned_int8.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/decline_to_bind.h"
#include "smelt/kernels/fusible.h"
#include "smelt/kernels/nn/layer_norm.h"

namespace smelt {
namespace {

// What a layer normalization may begin with.
constexpr OpSet kNormBegins = {"Mean", "Square", "Cast", "FusedBatchNormV3"};
constexpr OpSet kAdds = {"AddV2", "Add"};
// A longer chain is no longer worth a look.
constexpr size_t kMaxSteps = 4;
// Zero points of int8 numbers are far smaller; a graph from a file may say anything.
constexpr int64_t kMostZero = 1 << 20;
// With fewer bytes of weights kernels are bound sooner than a team is there.
constexpr int64_t kWorthATeam = 256 << 10;

std::optional<Activation> ActivationOf(const Node& n) {
  if (n.Is("Relu")) return Activation::kRelu;
  if (n.Is("Relu6")) return Activation::kRelu6;
  if (n.Is("Elu")) return Activation::kElu;
  // A slope of 0 makes -0 of what is negative, where the library makes 0.
  if (n.Is("LeakyRelu") && n.Float("alpha", 0.2f) != 0) return Activation::kLeakyRelu;
  if (n.Is("Tanh")) return Activation::kTanh;
  if (n.Is("Sigmoid")) return Activation::kSigmoid;
  return std::nullopt;
}

class Binder {
 public:
  Binder(Plan& plan, Reasons* reasons)
      : plan_(plan), reasons_(reasons), gone_(plan.actions.size(), false), readers_(plan) {
    if (reasons != nullptr) listener_.emplace();
  }

  Status Run() {
    ListWidening();
    ChooseEarly();
    BindEarly();
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      if (gone_[i]) continue;
      PlanAction& action = plan_.actions[i];
      // Bound with what it was moved behind.
      if (action.bound != nullptr || BindLayerNorm(i) || BindAttention(i)) continue;
      if (action.state == nullptr) {
        NoteReason(reasons_, *action.node, "is not bound: the kernel keeps nothing for a node");
        continue;
      }
      if (auto* fusible = dynamic_cast<FusibleState*>(action.state.get())) {
        RETURN_IF_ERROR(BindWithSteps(i, *fusible));
      } else if (early_of_[i] != kNotEarly) {
        ASSIGN_OR_RETURN(action.bound, std::move(early_[early_of_[i]].bound));
      } else {
        ASSIGN_OR_RETURN(action.bound, action.state->Bind(ContextOf(action).context()));
        if (action.bound == nullptr) NoteDeclined(action, {});
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
    // The last of the actions is an _Int8Quantize.
    std::optional<QuantizedResult> result;
    // Input `narrow` is read as the int8 value that action `widening` makes a float of; -1: none.
    int narrow = -1;
    size_t widening = 0;
  };
  // An action that is bound before its turn.
  struct Early {
    size_t action;
    FusibleState* fusible;      // nullptr: there are no chains
    std::vector<Chain> chains;  // from none to the longest; once bound, to the one that is
    StatusOr<std::unique_ptr<BoundKernel>> bound = nullptr;
    bool whole = false;  // the longest was bound
  };
  static constexpr size_t kNotEarly = SIZE_MAX, kNobody = SIZE_MAX;

  // Lists what BindEarly binds. An action that a chain of an earlier one has belongs to that.
  void ChooseEarly() {
    early_of_.assign(plan_.actions.size(), kNotEarly);
    // Reasons are heard in this thread, and in order.
    if (Threads() == 1 || InTeam() || reasons_ != nullptr) return;
    claimed_.assign(plan_.actions.size(), false);
    int64_t bytes = 0;
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      const PlanAction& action = plan_.actions[i];
      if (claimed_[i]) continue;
      if (action.node->Is(kNormBegins)) {
        if (const auto norm = FindLayerNorm(plan_, i, readers_)) {
          for (const size_t a : norm->actions) claimed_[a] = true;
          continue;
        }
      }
      if (const auto attention = FindAttention(plan_, i, readers_)) {
        for (const size_t a : attention->actions) claimed_[a] = true;
        continue;
      }
      if (action.state == nullptr) continue;
      for (const int v : action.inputs) {
        if (At(v).place == PlanValue::Place::kConstant) bytes += At(v).bytes();
      }
      Early early{i, dynamic_cast<FusibleState*>(action.state.get()), {}};
      if (early.fusible != nullptr) {
        early.chains = ChainsOf(i);
        for (const size_t a : early.chains.back().actions) claimed_[a] = true;
      }
      early_of_[i] = early_.size();
      early_.push_back(std::move(early));
    }
    claimed_.clear();
    if (early_.size() >= 2 && bytes >= kWorthATeam) return;
    early_.clear();
    early_of_.assign(plan_.actions.size(), kNotEarly);
  }

  void BindEarly() {
    if (early_.empty()) return;
    std::atomic<size_t> next{0};
    RunTeam(static_cast<int>(std::min<size_t>(static_cast<size_t>(Threads()), early_.size())), [&] {
      for (size_t e = next++; e < early_.size(); e = next++) {
        Early& early = early_[e];
        const PlanAction& action = plan_.actions[early.action];
        if (early.fusible == nullptr) {
          early.bound = action.state->Bind(ContextOf(action).context());
        } else {
          const size_t longest = early.chains.size();
          early.bound = BindLongest(action, *early.fusible, &early.chains);
          early.whole = early.chains.size() == longest;
        }
      }
    });
  }

  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }

  BoundTensor Bound(int value) const {
    const PlanValue& v = At(value);
    return {v.dtype, v.shape, plan_.ConstantOf(value)};
  }
  Tensors ContextOf(const PlanAction& action) const {
    Tensors t{*action.node, {}, {}};
    for (const int v : action.inputs) t.inputs.push_back(Bound(v));
    for (const int v : action.outputs) t.outputs.push_back(Bound(v));
    return t;
  }

  // A float constant of one number.
  std::optional<float> Scalar(int value) const {
    const Tensor* t = plan_.ConstantOf(value);
    if (t == nullptr || t->dtype() != Dtype::kFloat || t->num_elements() != 1) return std::nullopt;
    return t->flat<float>()[0];
  }

  void ListWidening() {
    widening_.assign(plan_.values.size(), kNobody);
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      const PlanAction& action = plan_.actions[i];
      if (action.node->Is("_Int8Dequantize") && Scalar(action.inputs[1])) {
        widening_[static_cast<size_t>(plan_.Root(action.outputs[0]))] = i;
      }
    }
  }

  // Why a chain ends; false.
  template <typename... Parts>
  bool Stop(const PlanAction& at, const Parts&... parts) {
    if (reasons_ == nullptr) return false;
    return Stop(at.node->op(), " '", at.node->name(), "'", parts...);
  }
  template <typename... Parts>
  bool Stop(const absl::AlphaNum& first, const Parts&... parts) {
    if (reasons_ != nullptr) stop_ = absl::StrCat(first, parts...);
    return false;
  }

  // The kernel was not bound, with what the actions do as well.
  void NoteDeclined(const PlanAction& action, std::span<const size_t> steps) const {
    if (reasons_ == nullptr) return;
    std::string more;
    for (const size_t step : steps) {
      absl::StrAppend(&more, more.empty() ? " with " : ", ", plan_.actions[step].node->op());
    }
    const std::string& why = listener_->why();
    NoteReason(reasons_, *action.node, "is not bound", more, ": ",
               why.empty() ? "the kernel has no form that is bound to such shapes" : why);
    listener_->Clear();
  }

  // What is done to `value` next, and to nothing else of it, added to the chain. False where it is
  // no step.
  bool Follow(int value, Chain* chain) {
    if (FollowOne(value, chain)) return true;
    const auto spelled = FindActivation(plan_, value, readers_);
    if (!spelled || std::ranges::any_of(spelled->actions, [&](size_t a) { return Claimed(a); })) {
      return false;
    }
    FusedOps more;
    more.steps.emplace_back().activation = spelled->activation;
    if (!SlopesAgree(chain->ops, more)) return false;
    stop_.clear();
    chain->ops.steps.push_back(more.steps[0]);
    chain->actions.insert(chain->actions.end(), spelled->actions.begin(), spelled->actions.end());
    return true;
  }

  // The only reader, where that is a step.
  bool FollowOne(int value, Chain* chain) {
    const std::vector<size_t>& readers = readers_.Of(value);
    if (readers.size() != 1) return Stop("it is read ", readers.size(), " times");
    const size_t next = readers[0];
    if (next == readers_.no_action()) return Stop("it is a result");
    if (Claimed(next)) return false;
    const PlanAction& action = plan_.actions[next];
    if (action.outputs.size() != 1) return Stop(action, " has several results");
    const PlanValue& out = At(action.outputs[0]);
    if (out.dtype != At(value).dtype ||
        out.shape.num_elements() != At(value).shape.num_elements()) {
      return Stop(action, " makes ", DtypeName(out.dtype), out.shape.ToString(), " of ",
                  DtypeName(At(value).dtype), At(value).shape.ToString());
    }
    const Node& n = *action.node;
    FusedStep step;
    if (const auto activation = ActivationOf(n)) {
      step.activation = *activation;
      FusedOps more;
      more.steps.push_back(step);
      more.leaky_alpha = n.Float("alpha", 0.2f);
      if (!SlopesAgree(chain->ops, more)) return Stop(action, " has another slope than a step");
      if (n.Is("LeakyRelu")) chain->ops.leaky_alpha = more.leaky_alpha;
    } else if (n.Is(kAdds) || (n.Is("AddN") && action.inputs.size() == 2) ||
               (n.Is("BiasAdd") && n.String("data_format", "NHWC") == "NHWC")) {
      const int root = plan_.Root(value);
      const int other = plan_.Root(action.inputs[0]) == root ? action.inputs[1] : action.inputs[0];
      const auto kind = KindOfSum(At(other).shape, out.shape);
      if (!kind) {
        return Stop(action, " has an operand of shape ", At(other).shape.ToString(),
                    ", neither that of the result nor its last dimensions");
      }
      step.kind = *kind;
      step.arg = chain->ops.num_args++;
      chain->operands.push_back(other);
    } else {
      return Stop(action, " is neither a bias, a sum nor an activation");
    }
    chain->ops.steps.push_back(step);
    chain->actions.push_back(next);
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
    if (!plan_.actions[i].node->Is(kNormBegins)) return false;
    const auto norm = FindLayerNorm(plan_, i, readers_, reasons_);
    if (!norm) return false;
    const int64_t depth = At(norm->x).shape.back();
    const int64_t rows = At(norm->x).shape.num_elements() / depth;
    plan_.actions[i].bound =
        norm->of_squares ? nn::BindNormOfSquares(norm->epsilon, rows, depth, norm->scale >= 0)
        : norm->affine
            ? nn::BindAffineNorm(norm->epsilon, rows, depth, norm->scale >= 0, norm->offset >= 0)
        : norm->narrow ? nn::BindNarrowLayerNorm(norm->epsilon, rows, depth)
                       : nn::BindLayerNorm(norm->epsilon, rows, depth);
    std::vector<int> inputs = {norm->x};
    for (const int row : {norm->scale, norm->offset}) {
      if (row >= 0) inputs.push_back(row);
    }
    Take(i, std::move(inputs), std::span(norm->actions).subspan(1));
    return true;
  }

  // Where the action is the product of queries and keys, all of the attention becomes one.
  bool BindAttention(size_t i) {
    auto found = FindAttention(plan_, i, readers_, reasons_);
    if (!found) return false;
    plan_.actions[i].bound = nn::BindAttention(std::move(found->attention));
    Take(i, std::move(found->inputs), found->actions);
    return true;
  }

  bool Claimed(size_t action) const { return !claimed_.empty() && claimed_[action]; }

  // What may be done with the action's result, from nothing to the longest chain of steps.
  std::vector<Chain> ChainsOf(size_t i) {
    const PlanAction& action = plan_.actions[i];
    std::vector<Chain> chains(1);
    int value = action.outputs.size() == 1 ? action.outputs[0] : -1;
    while (value >= 0 && chains.size() <= kMaxSteps) {
      Chain longer = chains.back();
      if (!Follow(value, &longer)) {
        if (AddQuantized(action, value, &chains)) break;
        NoteReason(reasons_, *action.node, "what follows ends at '", EndpointName(At(value).of),
                   "': ", stop_);
        break;
      }
      value = plan_.actions[longer.actions.back()].outputs[0];
      chains.push_back(std::move(longer));
      if (chains.size() > kMaxSteps) AddQuantized(action, value, &chains);
    }
    return chains;
  }

  // The longest chain with the _Int8Quantize that alone reads its result, `value`; and the same
  // with an operand that was int8 read as such. False: there is none.
  bool AddQuantized(const PlanAction& action, int value, std::vector<Chain>* chains) {
    const size_t reader = readers_.OnlyOf(value);
    if (reader == readers_.no_action() || Claimed(reader)) return false;
    const auto* state = dynamic_cast<const FusibleState*>(action.state.get());
    const PlanAction& quantize = plan_.actions[reader];
    if (state == nullptr || !state->may_quantize() || !quantize.node->Is("_Int8Quantize") ||
        plan_.Root(quantize.inputs[1]) == plan_.Root(value)) {
      return false;
    }
    const auto scale = Scalar(quantize.inputs[1]);
    if (!scale || !(*scale > 0) || !std::isnormal(*scale) || !std::isnormal(1 / *scale)) {
      return false;
    }
    const auto limit = [&](absl::string_view name, int64_t otherwise) {
      return static_cast<float>(
          std::clamp<int64_t>(quantize.node->Int(name, otherwise), -128, 127));
    };
    Chain chain = chains->back();
    chain.result.emplace();
    chain.result->scale = *scale;
    chain.result->zero = static_cast<float>(quantize.node->Int("zero"));
    chain.result->low = limit("low", -128);
    chain.result->high = limit("high", 127);
    chain.result->stored = At(quantize.outputs[0]).dtype;
    chain.actions.push_back(reader);
    chains->push_back(chain);
    const size_t own = action.inputs.size();
    for (size_t k = 2; k < own + chain.operands.size(); ++k) {
      const int wide = k < own ? action.inputs[k] : chain.operands[k - own];
      const size_t from = widening_[static_cast<size_t>(plan_.Root(wide))];
      if (from == kNobody) continue;
      const PlanAction& dequantize = plan_.actions[from];
      const int64_t zero = dequantize.node->Int("zero");
      if (zero < -kMostZero || zero > kMostZero) continue;
      chain.narrow = static_cast<int>(k);
      chain.widening = from;
      chain.result->addend_scale = *Scalar(dequantize.inputs[1]);
      chain.result->addend_zero = static_cast<int32_t>(zero);
      chains->push_back(chain);
    }
    return true;
  }

  // Leaves the chain that was bound last; nullptr and no chain where there is none. Thread safe.
  StatusOr<std::unique_ptr<BoundKernel>> BindLongest(const PlanAction& action, FusibleState& state,
                                                     std::vector<Chain>* chains) const {
    for (; !chains->empty(); chains->pop_back()) {
      const Chain& chain = chains->back();
      Tensors tensors = ContextOf(action);
      for (const int v : chain.operands) tensors.inputs.push_back(Bound(v));
      if (chain.narrow >= 0) {
        tensors.inputs[static_cast<size_t>(chain.narrow)].dtype =
            At(plan_.actions[chain.widening].inputs[0]).dtype;
      }
      ASSIGN_OR_RETURN(auto bound, chain.result ? state.BindQuantized(tensors.context(), chain.ops,
                                                                      *chain.result)
                                                : state.BindThen(tensors.context(), chain.ops));
      if (bound != nullptr) return bound;
      NoteDeclined(action, chain.actions);
    }
    return nullptr;
  }

  // With as many of the steps that follow as the kernel takes.
  Status BindWithSteps(size_t i, FusibleState& state) {
    PlanAction& action = plan_.actions[i];
    std::vector<Chain> chains;
    if (early_of_[i] != kNotEarly && as_chosen_) {
      Early& early = early_[early_of_[i]];
      ASSIGN_OR_RETURN(action.bound, std::move(early.bound));
      chains = std::move(early.chains);
      as_chosen_ = early.whole;
    } else {
      chains = ChainsOf(i);
      ASSIGN_OR_RETURN(action.bound, BindLongest(action, state, &chains));
    }
    if (action.bound == nullptr || chains.back().actions.empty()) return OkStatus();
    const Chain& chain = chains.back();
    std::vector<int> inputs = action.inputs;
    inputs.insert(inputs.end(), chain.operands.begin(), chain.operands.end());
    Take(i, std::move(inputs), chain.actions);
    if (chain.narrow >= 0) ReadNarrow(chain);
    return OkStatus();
  }

  // The chain's action no longer reads an operand as floats, but what these were made of.
  void ReadNarrow(const Chain& chain) {
    const size_t last = *std::ranges::max_element(chain.actions);
    const PlanAction& dequantize = plan_.actions[chain.widening];
    int& input = plan_.actions[last].inputs[static_cast<size_t>(chain.narrow)];
    std::vector<size_t>& wide_readers = readers_.Of(input);
    wide_readers.erase(std::ranges::find(wide_readers, last));
    input = dequantize.inputs[0];
    readers_.Of(input).push_back(last);
    if (!wide_readers.empty()) return;
    gone_[chain.widening] = true;
    for (const int v : dequantize.inputs) std::erase(readers_.Of(v), chain.widening);
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
      for (size_t& reader : readers_.Of(v)) {
        if (reader != readers_.no_action() && gone_[reader]) reader = last;
      }
    }
  }

  Plan& plan_;
  Reasons* const reasons_;
  mutable std::optional<BindListener> listener_;  // where reasons are asked for, of one thread
  std::string stop_;                              // why FollowOne said no
  std::vector<bool> gone_;                        // by action
  PlanReaders readers_;
  // By root value, the _Int8Dequantize that makes it; kNobody: none does.
  std::vector<size_t> widening_;
  std::vector<bool> claimed_;  // by action, while ChooseEarly runs: a chain has it
  std::vector<Early> early_;
  std::vector<size_t> early_of_;  // by action: in early_, or kNotEarly
  bool as_chosen_ = true;         // chains so far are those that ChooseEarly expected
};

}  // namespace

Status BindActions(Plan& plan, Reasons* reasons) {
  Plan as_it_was = CopyOfUnbound(plan);
  if (StoreUnsigned(plan)) {
    RETURN_IF_ERROR(Binder(plan, reasons).Run());
    if (!NeedsSigned(plan)) return OkStatus();
    plan = std::move(as_it_was);
  }
  return Binder(plan, reasons).Run();
}

}  // namespace smelt
