// The way of weights from what is stored to the layer: found, followed with values, and matched
// with the layer's channels.
#include <algorithm>

#include "smelt/convert/quantize/quantize.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/run_op.h"

namespace smelt::quantize {
namespace {

constexpr int kMaxSteps = 64;

// Ops that the int8 values can take as well as the floats: nothing is padded or put together.
constexpr OpSet kMoves = {"Reshape",      "Squeeze",      "ExpandDims", "Transpose", "Split",
                          "SplitV",       "Slice",        "Unpack",     "Tile",      "BroadcastTo",
                          "GatherV2",     "StridedSlice", "ReverseV2",  "Roll",      "GatherNd",
                          "SpaceToDepth", "DepthToSpace"};
// Divided or multiplied elements keep the ratios of the stored ones.
constexpr OpSet kMultiplies = {"Mul", "RealDiv", "Div"};

bool IsFloat(Dtype t) { return t == Dtype::kFloat; }

class ChainFollower {
 public:
  ChainFollower(std::vector<Scope>& scopes, Scope& scope, const KnownValues& known)
      : scopes_(scopes), known_(known) {
    chain_.scope = &scope;
  }

  std::optional<WeightChain> Run(Endpoint e) {
    while (std::ssize(chain_.steps) < kMaxSteps) {
      if (e.node->Is("Const") || e.node->Is("ReadVariableOp")) {
        chain_.source = e;
        std::ranges::reverse(chain_.steps);
        return std::move(chain_);
      }
      if (e.node->Is("_Arg")) {
        if (!LeaveFunction(&e)) return std::nullopt;
        continue;
      }
      std::optional<WeightStep> step = StepOf(e);
      if (!step) return std::nullopt;
      e = step->node->inputs()[step->input];
      if (chain_.entry.node != nullptr) {
        chain_.changed_before_entry |= step->kind != WeightStep::kSame;
      }
      chain_.steps.push_back(*std::move(step));
    }
    return std::nullopt;
  }

 private:
  bool LeaveFunction(Endpoint* e) {
    const auto passed = known_.PassedAs(*e);
    if (!passed) return false;
    const auto scope = std::ranges::find(scopes_, passed->caller, &Scope::function);
    if (scope == scopes_.end()) return false;
    chain_.scope = &*scope;
    if (chain_.entry.node == nullptr) chain_.entry = *e;
    *e = passed->value;
    return ++calls_ < kMaxSteps;
  }

  std::optional<WeightStep> StepOf(Endpoint e) {
    Node& n = *e.node;
    if (n.Is(kIdentityOps)) return WeightStep{&n, e.port, e.port, {}, WeightStep::kSame};
    if (IsFakeQuant(n)) return WeightStep{&n, 0, 0, {}, WeightStep::kSame};
    if (n.def() == nullptr || n.def()->stateful || n.Is(kNeverFolded) || n.Is(kControlFlow) ||
        n.num_inputs() == 0 || e.port < 0) {
      return std::nullopt;
    }
    WeightStep step{&n, -1, e.port, std::vector<Tensor>(n.num_inputs()), WeightStep::kCompute};
    int floats = 0;
    int64_t most = -1;
    for (int i = 0; i < n.num_inputs(); ++i) {
      std::optional<Tensor> t = known_.Of(*chain_.scope, n.inputs()[i]);
      if (!t) return std::nullopt;
      if (IsFloat(t->dtype())) {
        ++floats;
        if (t->num_elements() > most) {
          most = t->num_elements();
          step.input = i;
        }
      }
      step.operands[i] = *std::move(t);
    }
    const std::optional<Tensor> result = known_.Of(*chain_.scope, e);
    if (!result || !IsFloat(result->dtype()) || step.input < 0) return std::nullopt;
    if (floats == 1 && n.Is(kMoves)) step.kind = WeightStep::kMove;
    if (n.Is(kMultiplies) && result->shape() == step.operands[step.input].shape() &&
        (n.Is("Mul") || step.input == 0)) {
      step.kind = WeightStep::kScale;
    }
    step.operands[step.input] = Tensor();
    return step;
  }

  std::vector<Scope>& scopes_;
  const KnownValues& known_;
  WeightChain chain_;
  int calls_ = 0;
};

// A tensor of the shape whose elements are their places in dimension `axis`.
StatusOr<Tensor> PlacesAlong(const Shape& shape, int axis) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(Dtype::kFloat, shape));
  int64_t inner = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
  const std::span<float> values = t.flat<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int64_t>(i) / inner % shape[axis]);
  }
  return t;
}

// One value per channel; empty where a channel's elements differ.
std::vector<float> ByChannel(const Tensor& t, const Layer& l) {
  std::vector<float> out(l.channels);
  std::vector<bool> known(l.channels, false);
  std::vector<int64_t> at(t.rank(), 0);
  int64_t channel = 0;
  for (const float v : t.flat<float>()) {
    if (known[channel] && out[channel] != v) return {};
    out[channel] = v;
    known[channel] = true;
    for (int d = t.rank() - 1; d >= 0; --d) {
      channel += l.channel_strides[d];
      if (++at[d] < t.shape()[d]) break;
      channel -= l.channel_strides[d] * t.shape()[d];
      at[d] = 0;
    }
  }
  return out;
}

// Places along a dimension are numbers that a float holds exactly.
constexpr int64_t kMaxPlace = 1 << 24;

}  // namespace

bool WeightChain::Has(WeightStep::Kind kind) const {
  return std::ranges::any_of(steps, [&](const WeightStep& s) { return s.kind == kind; });
}

std::optional<WeightChain> FollowWeights(std::vector<Scope>& scopes, Scope& scope, Endpoint e,
                                         const KnownValues& known) {
  return ChainFollower(scopes, scope, known).Run(e);
}

StatusOr<Tensor> RunSteps(const WeightChain& chain, Tensor x,
                          std::initializer_list<WeightStep::Kind> kinds) {
  for (const WeightStep& s : chain.steps) {
    if (std::ranges::find(kinds, s.kind) == kinds.end()) continue;
    Step step;
    ResourceManager resources, of_step;
    step.resources = &resources;
    step.step_resources = &of_step;
    std::vector<Tensor> inputs = s.operands;
    inputs[s.input] = std::move(x);
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs, RunOp(*s.node, std::move(inputs), step));
    x = std::move(outputs[s.port]);
  }
  return x;
}

bool FitChannels(Layer& layer, bool by_channel) {
  const Tensor& stored = layer.weights->value;
  const int rank = stored.rank();
  layer.places.assign(rank, {});
  if (layer.channel_strides.empty() || layer.chain.Has(WeightStep::kCompute)) return false;
  const bool moved = layer.chain.Has(WeightStep::kMove);
  if (!moved && rank != static_cast<int>(layer.channel_strides.size())) return false;
  for (int d = 0; d < rank; ++d) {
    const int64_t size = stored.shape()[d];
    if (size <= 1 || size > kMaxPlace) continue;
    if (!moved) {
      if (layer.channel_strides[d] == 0) continue;
      for (int64_t i = 0; i < layer.channels; ++i) {
        layer.places[d].push_back(static_cast<int32_t>(i / layer.channel_strides[d] % size));
      }
      continue;
    }
    auto places = PlacesAlong(stored.shape(), d);
    if (places.ok()) places = RunSteps(layer.chain, *std::move(places), {WeightStep::kMove});
    if (!places.ok()) return false;
    for (const float p : ByChannel(*places, layer)) {
      layer.places[d].push_back(static_cast<int32_t>(p));
    }
  }
  if (!layer.chain.Has(WeightStep::kScale)) return true;
  auto ones = Tensor::Make(Dtype::kFloat, stored.shape());
  if (!ones.ok()) return false;
  std::ranges::fill(ones->flat<float>(), 1.0f);
  auto factors = RunSteps(layer.chain, *std::move(ones), {WeightStep::kMove, WeightStep::kScale});
  if (!factors.ok()) return false;
  layer.factors = ByChannel(*factors, layer);
  if (layer.factors.empty()) return false;
  if (std::ranges::all_of(layer.factors, [&](float f) { return f == layer.factors[0]; })) {
    layer.factors.resize(1);
  }
  return std::ranges::all_of(layer.factors, [](float f) { return std::isfinite(f); }) &&
         (by_channel || layer.factors.size() == 1);
}

}  // namespace smelt::quantize
