#include "smelt/lite/quantize/integer_plan.h"

#include <algorithm>
#include <cmath>

#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/agreed_scales.h"
#include "smelt/lite/quantize/integer_lstm.h"
#include "smelt/lite/quantize/left_float.h"
#include "smelt/lite/quantize/masked_ranges.h"
#include "smelt/lite/quantize/pair_scales.h"
#include "smelt/lite/quantize/quantized_ops.h"
#include "smelt/lite/quantize/variables.h"

namespace smelt {

namespace {

// XNNPACK, by which LiteRT runs convolutions and dense layers, refuses the file where a sum of
// integers stands for more steps of the result.
bool SumsFit(const Node& n, float from, float to) {
  constexpr double kMostSteps = 256;
  const auto weights = ConstantTensor(*n.input(FindQuantizedOp(n.op_name())->first_weights).node);
  if (!weights || weights->dtype() != Dtype::kFloat) return true;
  double most = 0;
  for (const float v : weights->flat<float>()) {
    most = std::max(most, std::abs(static_cast<double>(v)));
  }
  const double scale = most / kInt8Format.high;
  // What is not finite is an error elsewhere.
  return !std::isfinite(most) ||
         static_cast<double>(from) * scale < kMostSteps * static_cast<double>(to);
}

}  // namespace

const IntegerFormat& FormatOf(const IntegerFlags& flags) {
  return flags.int16 ? kInt16Format : flags.uint8 ? kUint8Format : kInt8Format;
}

Status IntegerPlan::Make(Graph& graph, std::span<Node* const> order) {
  if (!flags.int16) RETURN_IF_ERROR(Declare(graph, order));
  near_zero_ = FindNearZero(order, ranges, flags.only_integer, declared);
  beyond_ = NarrowMaskedRanges(order, near_zero_, ranges);
  // No steps reach to infinity, and kernels of LiteRT end the program by multipliers of steps that
  // reach near: what goes there stays float.
  constexpr float kMost = 1e30f;
  absl::erase_if(ranges, [](const auto& known) {
    return !IsFinite(known.second) || known.second.min < -kMost || known.second.max > kMost;
  });
  for (Node* n : order) {
    if (!Wanted(*n)) continue;
    if (IsScaling(*n)) RETURN_IF_ERROR(MakeScaling(graph, n));
    chosen.insert(n);
  }
  if (!flags.only_integer && declared.empty()) LeaveFloat(order, ranges, flags, chosen);
  if (flags.variables) ChooseVariables(order);
  const auto of_variables = params;
  do {
    params = of_variables;
    for (Node* n : order) {
      if (chosen.contains(n)) ChooseParams(*n);
    }
    AgreeOnScales(
        order, {format, chosen, beyond_, !declared.empty(), [&](Endpoint e) { return IsFixed(e); },
                [&](Endpoint e) { return Calibrated(KeyOf(e)); },
                [&](Endpoint e) { return IsZero(KeyOf(e)); }, params});
    for (const auto& [write, p] : writes) AgreeAlone(write->input(1), p);
    // Those that stay float after all change what others agree on.
  } while (absl::erase_if(chosen, [&](const Node* n) { return !ScalesFit(*n); }) > 0);
  return OkStatus();
}

Status IntegerPlan::Declare(Graph& graph, std::span<Node* const> order) {
  DeclaredParams given;
  for (const Node* n : order) {
    if (!n->Is("_Arg")) continue;
    const auto params = flags.input_params.find(n->Int("index"));
    if (params == flags.input_params.end()) continue;
    Params p = params->second;
    const LiteRange range = {p.scale * static_cast<float>(format.low - p.zero),
                             p.scale * static_cast<float>(format.high - p.zero)};
    p.zero -= Shift();
    given[{n, 0}] = {p, range};
  }
  std::optional<Declared> rest;
  if (flags.default_range) {
    rest = Declared{ParamsOf(*flags.default_range, format), *flags.default_range};
    rest->params.zero -= Shift();
  }
  declared = FindDeclaredParams(order, std::move(given), rest, flags.uint8, !flags.only_stated);
  if (!flags.uint8) return OkStatus();
  for (auto& [key, d] : declared) d.params.zero += Shift();
  for (Node* n : order) {
    Node* q = DeclarationOf({n, 0});
    if (q == nullptr) continue;
    q->AttrsToChange().Set("Tout", DtypeVector{format.type});
    RETURN_IF_ERROR(graph.ResolveTypes(q));
    RETURN_IF_ERROR(UpdateInputTypes(graph, n));
  }
  return OkStatus();
}

// Is the operator one whose kernels take integers, and is all known that they need?
bool IntegerPlan::Wanted(const Node& n) const {
  const bool scales = IsScaling(n);
  const OpName op = scales ? OpName("tfl.mul") : n.op_name();
  const QuantizedOp* row = FindQuantizedOp(op);
  if (row == nullptr || !row->integer || n.Bool(kVariableOutputs)) return false;
  if (flags.stated_ranges && n.Is("tfl.neg")) return false;
  if (!TakesIntegers(op, flags) || flags.float_ops.contains(OperatorName(n)) ||
      flags.float_nodes.contains(n.name()) || near_zero_.contains(&n)) {
    return false;
  }
  if (row->recurrent) {
    return !flags.int16 && IsIntegerLstm(n, ranges) && ranges.contains(KeyOf(n.input(0))) &&
           ranges.contains({&n, 0});
  }
  // Weights have no input whose scale is known where all of them are constants.
  if (row->channels >= 0 && NumActivations(n) == 0) return false;
  bool any = false;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Endpoint e = n.input(i);
    if (!IsFloat(e)) continue;
    any = true;
    const bool constant = e.node->Is("Const");
    if (!constant && !IsKnown(KeyOf(e))) return false;
    // A bias is exact in int32 only where it is known.
    if (i == row->bias && !constant) return false;
    const bool weights = i >= row->first_weights && i <= row->last_weights;
    if (weights && row->channels >= 0 && !constant) return false;
  }
  for (int i = 0; i < n.num_outputs(); ++i) {
    if (n.output_types[static_cast<size_t>(i)] != Dtype::kFloat) continue;
    if (!IsKnown({&n, i})) return false;
  }
  return any;
}

// Kernels of LiteRT that compare int8 end the program at a scale of 1, and are wrong beyond.
bool IntegerPlan::HasSmallScales(const Node& n) {
  return std::ranges::all_of(n.inputs(), [&](const Endpoint& e) {
    if (!IsFloat(e)) return true;
    const auto value = ConstantTensor(*e.node);
    if (!value) return ParamsAt(e).scale < 1;
    const LiteRange range = RangeOfConstant(e, *value);
    return range.min == range.max || ParamsOf(range, format).scale < 1;
  });
}

float IntegerPlan::ScaleOf(Endpoint e) {
  const auto value = ConstantTensor(*e.node);
  return value ? ParamsOf(RangeOfConstant(e, *value), format).scale : ParamsAt(e).scale;
}

bool IntegerPlan::ScalesFit(const Node& n) {
  if (n.Is(kComparisons)) return HasSmallScales(n);
  if (FindQuantizedOp(n.op_name())->channels >= 0 && !flags.int16 && !flags.only_integer) {
    return SumsFit(n, ParamsAt(n.input(FirstActivation(n))).scale, params.at({&n, 0}).scale);
  }
  if (!IsScaledPair(n.op_name())) return true;
  return PairScalesFit(n.op_name(), flags.int16, ScaleOf(n.input(0)), ScaleOf(n.inputs().back()),
                       params.at({&n, 0}).scale);
}

LiteRange IntegerPlan::RangeOfConstant(Endpoint e, const Tensor& value) const {
  const auto known = ranges.find(KeyOf(e));
  if (known != ranges.end()) return known->second;
  LiteRange range;
  for (const float v : value.flat<float>()) {
    range.min = std::min(range.min, v);
    range.max = std::max(range.max, v);
  }
  return range;
}

Params IntegerPlan::Calibrated(Key key) const {
  const auto stated = declared.find(key);
  return stated != declared.end() ? stated->second.params : ParamsOf(ranges.at(key), format);
}

// Did samples show nothing but 0? Its params then say nothing.
bool IntegerPlan::IsZero(Key key) const {
  const auto range = ranges.find(key);
  return !declared.contains(key) && range != ranges.end() && range->second.min == 0 &&
         range->second.max == 0;
}

// Of what an LSTM gives, which its state is as well.
Params IntegerPlan::CalibratedWithState(const Node& n) const {
  constexpr int kState = 18;
  LiteRange range = ranges.at({&n, 0});
  const auto state = ranges.find(KeyOf(n.input(kState)));
  if (state != ranges.end()) {
    range.min = std::min(range.min, state->second.min);
    range.max = std::max(range.max, state->second.max);
  }
  return ParamsOf(range, format);
}

Params& IntegerPlan::ParamsAt(Endpoint e) {
  const auto [it, added] = params.try_emplace(KeyOf(e));
  if (added) it->second = Calibrated(KeyOf(e));
  return it->second;
}

void IntegerPlan::ChooseParams(Node& n) {
  const QuantizedOp& row = *FindQuantizedOp(n.op_name());
  for (int i = 0; i < n.num_outputs(); ++i) {
    if (!IsFloat({&n, i})) continue;
    Params p = row.recurrent ? CalibratedWithState(n) : Calibrated({&n, i});
    if (row.results == ResultRange::kFixed) {
      p = flags.int16 ? Params{1.0f / 32768, 0} : Params{row.fixed_scale, row.fixed_zero + Shift()};
    } else if (row.results == ResultRange::kAsInput && NumActivations(n) == 1 &&
               !beyond_.contains(&n)) {
      const Params& from = ParamsAt(n.input(FirstActivation(n)));
      if (declared.empty() && JoinsBeyond(n, i, ranges, from, format)) {
        beyond_.insert(&n);
      } else {
        p = from;
      }
    } else if (row.results == ResultRange::kAsInput && NumActivations(n) == 0 &&
               n.num_outputs() > 1) {
      // Parts of a constant, which has one scale.
      const auto of = std::ranges::find_if(n.inputs(), IsFloat);
      p = ParamsOf(RangeOfConstant(*of, *ConstantTensor(*of->node)), format);
    }
    params[{&n, i}] = p;
  }
}

// Variables have one scale for all reads and writes, arguments what they are given in.
bool IntegerPlan::IsFixed(Endpoint e) const {
  if (std::ranges::find(reads, e.node) != reads.end() || IsGivenArgument(*e.node)) return true;
  return !IsFloat(e) || !IsKnown(KeyOf(e));
}

// A producer that nobody else reads, and that may choose, takes the params.
void IntegerPlan::AgreeAlone(Endpoint e, const Params& p) {
  if (!chosen.contains(e.node) || e.node->NumUses(e.port) != 1) return;
  if (FindQuantizedOp(e.node->op_name())->results == ResultRange::kCalibrated) {
    params[KeyOf(e)] = p;
  }
}

// Variables of which all is known that is read and written: one range for both.
void IntegerPlan::ChooseVariables(std::span<Node* const> order) {
  for (const auto& [name, v] : FindVariables(order)) {
    LiteRange all;
    bool known = v.known && !v.reads.empty();
    const auto add = [&](Key key) {
      const auto range = ranges.find(key);
      known = known && range != ranges.end();
      if (!known) return;
      all = {std::min(all.min, range->second.min), std::max(all.max, range->second.max)};
    };
    for (const Node* n : v.reads) add({n, 0});
    for (const Node* n : v.writes) {
      if (!n->input(1).node->Is("Const")) add(KeyOf(n->input(1)));
    }
    if (!known) continue;
    const Params p = ParamsOf(all, format);
    for (Node* n : v.reads) {
      reads.push_back(n);
      params[{n, 0}] = p;
    }
    for (Node* n : v.writes) writes.emplace_back(n, p);
    for (Node* n : v.handles) StateVariable(*n, p, format);
  }
}

}  // namespace smelt
