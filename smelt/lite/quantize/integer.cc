// Full integer quantization: activations by what samples showed, weights by their own numbers.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/quantize/agreed_scales.h"
#include "smelt/lite/quantize/conversion.h"
#include "smelt/lite/quantize/declared_ranges.h"
#include "smelt/lite/quantize/integer_format.h"
#include "smelt/lite/quantize/integer_lstm.h"
#include "smelt/lite/quantize/left_float.h"
#include "smelt/lite/quantize/masked_ranges.h"
#include "smelt/lite/quantize/pair_scales.h"
#include "smelt/lite/quantize/quantize.h"
#include "smelt/lite/quantize/quantized_ops.h"
#include "smelt/lite/quantize/variables.h"
#include "smelt/lite/quantize/weights.h"

namespace smelt {
namespace {

constexpr OpSet kComparisons = {"tfl.equal",      "tfl.not_equal", "tfl.less",
                                "tfl.less_equal", "tfl.greater",   "tfl.greater_equal"};

class IntegerQuantizer {
 public:
  IntegerQuantizer(Graph& graph, const LiteRanges& ranges, const IntegerFlags& flags)
      : graph_(graph),
        ranges_(ranges),
        flags_(flags),
        f_(flags.int16   ? kInt16Format
           : flags.uint8 ? kUint8Format
                         : kInt8Format) {}

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    if (!flags_.int16) RETURN_IF_ERROR(Declare(order));
    near_zero_ = FindNearZero(order, ranges_, flags_.only_integer, declared_);
    beyond_ = NarrowMaskedRanges(order, near_zero_, ranges_);
    RETURN_IF_ERROR(CheckRanges(graph_, ranges_));
    for (Node* n : order) {
      if (!Wanted(*n)) continue;
      if (IsScaling(*n)) RETURN_IF_ERROR(MakeScaling(graph_, n));
      chosen_.insert(n);
    }
    if (!flags_.only_integer && declared_.empty()) LeaveFloat(order, ranges_, flags_, chosen_);
    if (flags_.variables) ChooseVariables(order);
    const auto of_variables = params_;
    do {
      params_ = of_variables;
      for (Node* n : order) {
        if (chosen_.contains(n)) RETURN_IF_ERROR(ChooseParams(*n));
      }
      AgreeOnScales(
          order, {f_, chosen_, beyond_, !declared_.empty(), [&](Endpoint e) { return IsFixed(e); },
                  [&](Endpoint e) { return Calibrated(KeyOf(e)); },
                  [&](Endpoint e) { return IsZero(KeyOf(e)); }, params_});
      for (const auto& [write, params] : writes_) AgreeAlone(write->input(1), params);
      // Those that stay float after all change what others agree on.
    } while (absl::erase_if(chosen_, [&](const Node* n) { return !ScalesFit(*n); }) > 0);
    for (Node* n : order) {
      if (chosen_.contains(n)) RETURN_IF_ERROR(Rewrite(n));
    }
    RETURN_IF_ERROR(RewriteVariables());
    for (Node* n : order) {
      if (Node* q = DeclarationOf({n, 0})) RETURN_IF_ERROR(RewriteDeclaration(n, q));
    }
    return Borders(order);
  }

 private:
  using Key = std::pair<const Node*, int>;
  static Key KeyOf(Endpoint e) { return {e.node, e.port}; }
  static bool IsFloat(Endpoint e) {
    return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kFloat;
  }

  // Declared params are those of int8 until all are found.
  int64_t Shift() const { return flags_.uint8 ? 128 : 0; }

  Status Declare(const std::vector<Node*>& order) {
    DeclaredParams given;
    for (const Node* n : order) {
      if (!n->Is("_Arg")) continue;
      const auto params = flags_.input_params.find(n->Int("index"));
      if (params == flags_.input_params.end()) continue;
      Params p = params->second;
      const LiteRange range = {p.scale * static_cast<float>(f_.low - p.zero),
                               p.scale * static_cast<float>(f_.high - p.zero)};
      p.zero -= Shift();
      given[{n, 0}] = {p, range};
    }
    std::optional<Declared> rest;
    if (flags_.default_range) {
      rest = Declared{ParamsOf(*flags_.default_range, f_), *flags_.default_range};
      rest->params.zero -= Shift();
    }
    declared_ =
        FindDeclaredParams(order, std::move(given), rest, flags_.uint8, !flags_.only_stated);
    if (!flags_.uint8) return OkStatus();
    for (auto& [key, d] : declared_) d.params.zero += Shift();
    for (Node* n : order) {
      Node* q = DeclarationOf({n, 0});
      if (q == nullptr) continue;
      q->AttrsToChange().Set("Tout", DtypeVector{f_.type});
      RETURN_IF_ERROR(graph_.ResolveTypes(q));
      RETURN_IF_ERROR(UpdateInputTypes(graph_, n));
    }
    return OkStatus();
  }

  // Is it an argument that integers are given for?
  bool IsGivenArgument(const Node& n) const {
    return n.Is("_Arg") && flags_.input_params.contains(n.Int("index"));
  }

  // Is the operator one whose kernels take integers, and is all known that they need?
  bool Wanted(const Node& n) const {
    const bool scales = IsScaling(n);
    const OpName op = scales ? OpName("tfl.mul") : n.op_name();
    const QuantizedOp* row = FindQuantizedOp(op);
    if (row == nullptr || !row->integer || n.Bool(kVariableOutputs)) return false;
    if (!TakesIntegers(op, flags_) || flags_.float_ops.contains(OperatorName(n)) ||
        flags_.float_nodes.contains(n.name()) || near_zero_.contains(&n)) {
      return false;
    }
    if (row->recurrent) {
      return !flags_.int16 && IsIntegerLstm(n, ranges_) && ranges_.contains(KeyOf(n.input(0))) &&
             ranges_.contains({&n, 0});
    }
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
  bool HasSmallScales(const Node& n) {
    return std::ranges::all_of(n.inputs(), [&](const Endpoint& e) {
      if (!IsFloat(e)) return true;
      const auto value = ConstantTensor(*e.node);
      if (!value) return ParamsAt(e).scale < 1;
      const LiteRange range = RangeOfConstant(e, *value);
      return range.min == range.max || ParamsOf(range, f_).scale < 1;
    });
  }

  float ScaleOf(Endpoint e) {
    const auto value = ConstantTensor(*e.node);
    return value ? ParamsOf(RangeOfConstant(e, *value), f_).scale : ParamsAt(e).scale;
  }

  bool ScalesFit(const Node& n) {
    if (n.Is(kComparisons)) return HasSmallScales(n);
    if (!IsScaledPair(n.op_name())) return true;
    return PairScalesFit(n.op_name(), flags_.int16, ScaleOf(n.input(0)), ScaleOf(n.inputs().back()),
                         params_.at({&n, 0}).scale);
  }

  // With zero in it. What is lower than a mask needs to be saturates.
  LiteRange RangeOfConstant(Endpoint e, const Tensor& value) const {
    const auto known = ranges_.find(KeyOf(e));
    if (known != ranges_.end()) return known->second;
    LiteRange range;
    for (const float v : value.flat<float>()) {
      range.min = std::min(range.min, v);
      range.max = std::max(range.max, v);
    }
    return range;
  }

  bool IsKnown(Key key) const { return declared_.contains(key) || ranges_.contains(key); }

  // What the model states comes before what samples showed.
  Params Calibrated(Key key) const {
    const auto declared = declared_.find(key);
    return declared != declared_.end() ? declared->second.params : ParamsOf(ranges_.at(key), f_);
  }

  // Did samples show nothing but 0? Its params then say nothing.
  bool IsZero(Key key) const {
    const auto range = ranges_.find(key);
    return !declared_.contains(key) && range != ranges_.end() && range->second.min == 0 &&
           range->second.max == 0;
  }

  // Of what an LSTM gives, which its state is as well.
  Params CalibratedWithState(const Node& n) const {
    constexpr int kState = 18;
    LiteRange range = ranges_.at({&n, 0});
    const auto state = ranges_.find(KeyOf(n.input(kState)));
    if (state != ranges_.end()) {
      range.min = std::min(range.min, state->second.min);
      range.max = std::max(range.max, state->second.max);
    }
    return ParamsOf(range, f_);
  }

  // The params under which the value is first given: those of its producer where that is quantized,
  // else its own range's.
  Params& ParamsAt(Endpoint e) {
    const auto [it, added] = params_.try_emplace(KeyOf(e));
    if (added) it->second = Calibrated(KeyOf(e));
    return it->second;
  }

  Status ChooseParams(Node& n) {
    const QuantizedOp& row = *FindQuantizedOp(n.op_name());
    for (int i = 0; i < n.num_outputs(); ++i) {
      if (!IsFloat({&n, i})) continue;
      Params p = row.recurrent ? CalibratedWithState(n) : Calibrated({&n, i});
      if (row.results == ResultRange::kFixed) {
        p = flags_.int16 ? Params{1.0f / 32768, 0}
                         : Params{row.fixed_scale, row.fixed_zero + Shift()};
      } else if (row.results == ResultRange::kAsInput && NumActivations(n) == 1 &&
                 !beyond_.contains(&n)) {
        const Params& from = ParamsAt(n.input(FirstActivation(n)));
        if (declared_.empty() && JoinsBeyond(n, i, ranges_, from, f_)) {
          beyond_.insert(&n);
        } else {
          p = from;
        }
      }
      params_[{&n, i}] = p;
    }
    return OkStatus();
  }

  // Variables have one scale for all reads and writes, arguments what they are given in.
  bool IsFixed(Endpoint e) const {
    if (std::ranges::find(reads_, e.node) != reads_.end() || IsGivenArgument(*e.node)) return true;
    return !IsFloat(e) || !IsKnown(KeyOf(e));
  }

  // A producer that nobody else reads, and that may choose, takes the params.
  void AgreeAlone(Endpoint e, const Params& p) {
    if (!chosen_.contains(e.node) || e.node->NumUses(e.port) != 1) return;
    if (FindQuantizedOp(e.node->op_name())->results == ResultRange::kCalibrated) {
      params_[KeyOf(e)] = p;
    }
  }

  // Variables of which all is known that is read and written: one range for both.
  void ChooseVariables(const std::vector<Node*>& order) {
    for (const auto& [name, v] : FindVariables(order)) {
      LiteRange all;
      bool known = v.known && !v.reads.empty();
      const auto add = [&](Key key) {
        const auto range = ranges_.find(key);
        known = known && range != ranges_.end();
        if (!known) return;
        all = {std::min(all.min, range->second.min), std::max(all.max, range->second.max)};
      };
      for (const Node* n : v.reads) add({n, 0});
      for (const Node* n : v.writes) {
        if (!n->input(1).node->Is("Const")) add(KeyOf(n->input(1)));
      }
      if (!known) continue;
      const Params p = ParamsOf(all, f_);
      for (Node* n : v.reads) {
        reads_.push_back(n);
        params_[{n, 0}] = p;
      }
      for (Node* n : v.writes) writes_.emplace_back(n, p);
      for (Node* n : v.handles) StateVariable(*n, p, f_);
    }
  }

  Status RewriteVariables() {
    for (const auto& [n, p] : writes_) {
      Endpoint value = n->input(1);
      if (const auto constant = ConstantTensor(*value.node)) {
        RETURN_IF_ERROR(CheckFinite(*n, *value.node, *constant));
        ASSIGN_OR_RETURN(value, QuantizedConstant(*n, n->input(1), *constant, &p));
      } else {
        ASSIGN_OR_RETURN(value, InParams(value, p));
      }
      graph_.SetInput(n, 1, value);
      RETURN_IF_ERROR(UpdateInputTypes(graph_, n));
    }
    for (Node* n : reads_) {
      const Params p = params_.at({n, 0});
      SetQuantization(n->AttrsToChange(), 0, {{p.scale}, {p.zero}});
      n->AttrsToChange().Set("Tout", DtypeVector{f_.type});
      RETURN_IF_ERROR(graph_.ResolveTypes(n));
    }
    return OkStatus();
  }

  // Does the node give integers by itself?
  bool GivesIntegers(const Node* n) const {
    return chosen_.contains(n) || std::ranges::find(reads_, n) != reads_.end();
  }

  StatusOr<Endpoint> AddConstant(const Node& like, const Tensor& value,
                                 const std::vector<float>& scales,
                                 const std::vector<int64_t>& zeros, int dim) {
    AttrMap attrs;
    attrs.Set("dtype", value.dtype());
    attrs.Set("value", value);
    SetQuantization(attrs, 0, {scales, zeros, dim});
    ASSIGN_OR_RETURN(Node * n, graph_.Add(absl::StrCat(like.name(), "/quantized"), "Const", {},
                                          std::move(attrs)));
    return Endpoint{n, 0};
  }

  // No scale has infinities and NaN beside others; what is below all of a known range saturates.
  static Status CheckFinite(const Node& n, const Node& constant, const Tensor& value,
                            bool has_range = false) {
    for (const float v : value.flat<float>()) {
      if (std::isfinite(v) || (v < 0 && has_range)) continue;
      return InvalidArgument("constant '", constant.name(), "', which operator '", n.name(), "' (",
                             OperatorName(n), ") reads, holds ", v);
    }
    return OkStatus();
  }

  // A constant operand by its own range, or by the params that it must have.
  StatusOr<Endpoint> QuantizedConstant(const Node& n, Endpoint of, const Tensor& value,
                                       const Params* forced) {
    Params p;
    if (forced != nullptr) {
      p = *forced;
    } else {
      p = ParamsOf(RangeOfConstant(of, value), f_);
    }
    ASSIGN_OR_RETURN(const Tensor q, QuantizedTo(value, p, f_));
    return AddConstant(n, q, {p.scale}, {p.zero}, 0);
  }

  StatusOr<Endpoint> QuantizedBias(const Node& n, const Tensor& bias, float input_scale,
                                   const std::vector<float>& weights) {
    const Dtype type = BiasType(n);
    ASSIGN_OR_RETURN(Tensor q, Tensor::Make(type, bias.shape()));
    std::vector<float> scales;
    for (const float w : weights) scales.push_back(input_scale * w);
    for (int64_t i = 0; i < bias.num_elements(); ++i) {
      const double scale =
          static_cast<double>(scales[scales.size() == 1 ? 0 : static_cast<size_t>(i)]);
      const double at = std::round(static_cast<double>(bias.data<float>()[i]) / scale);
      if (type == Dtype::kInt32) {
        q.data<int32_t>()[i] = static_cast<int32_t>(std::clamp<double>(at, INT32_MIN, INT32_MAX));
      } else {
        q.data<int64_t>()[i] = static_cast<int64_t>(std::clamp(at, -9.2e18, 9.2e18));
      }
    }
    return AddConstant(n, q, scales, std::vector<int64_t>(scales.size(), 0), 0);
  }

  // The value under the params, from where it is first given.
  StatusOr<Endpoint> InParams(Endpoint e, const Params& wanted) {
    const Endpoint given = Given(e);
    if (ParamsAt(e) == wanted) return given;
    auto& known = again_[{KeyOf(e), wanted.scale, wanted.zero}];
    if (known.node == nullptr) {
      ASSIGN_OR_RETURN(known, Converted("tfl.quantize", given, f_.type, "again"));
      SetQuantization(known.node->AttrsToChange(), 0, {{wanted.scale}, {wanted.zero}});
    }
    return known;
  }

  // The integers that stand for `e`: its node's own, or those of a QUANTIZE behind it.
  Endpoint Given(Endpoint e) {
    if (GivesIntegers(e.node)) return e;
    if (Node* declaration = DeclarationOf(e)) return {declaration, 0};
    Endpoint& q = entered_[KeyOf(e)];
    if (q.node == nullptr) {
      // It has one input and no options: nothing can be wrong with it.
      q = *Converted("tfl.quantize", e, f_.type, "quantized");
      const Params p = ParamsAt(e);
      SetQuantization(q.node->AttrsToChange(), 0, {{p.scale}, {p.zero}});
    }
    return q;
  }

  StatusOr<Endpoint> Converted(OpName op, Endpoint from, Dtype type, absl::string_view what) {
    return AddConversion(graph_, absl::StrCat(from.node->name(), "/", what), op, from, type);
  }

  // Without a projection what is before it is the result.
  Status RewriteLstm(Node* n) {
    constexpr int kProjection = 16;
    const Params from = ParamsAt(n->input(0)), to = params_.at({n, 0});
    const bool projects = !n->input(kProjection).node->Is("tfl.no_value");
    const Params hidden = projects ? Calibrated({n, kLstmRanges + kLstmHidden}) : to;
    return MakeIntegerLstm(graph_, n, ranges_, Given(n->input(0)), {from.scale, from.zero},
                           {to.scale, to.zero}, {hidden.scale, hidden.zero});
  }

  Status Rewrite(Node* n) {
    const QuantizedOp& row = *FindQuantizedOp(n->op_name());
    if (row.recurrent) return RewriteLstm(n);
    if (n->Is("tfl.square")) MakeProduct(graph_, n);
    const bool agrees = row.results == ResultRange::kAsInput;
    const Params* result = nullptr;
    if (n->num_outputs() > 0 && IsFloat({n, 0})) result = &params_.at({n, 0});
    std::vector<float> weight_scales;
    float input_scale = 1;
    std::vector<Endpoint> inputs = {n->inputs().begin(), n->inputs().end()};
    // Weights and activations first: the scale of a bias is theirs.
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint e = inputs[static_cast<size_t>(i)];
      if (!WasFloat(e) || i == row.bias) continue;
      Endpoint& to = inputs[static_cast<size_t>(i)];
      const bool weights = i >= row.first_weights && i <= row.last_weights;
      if (const auto value = ConstantTensor(*e.node)) {
        if (weights) {
          auto q = WeightsOf(*value, row, LeastScales(*n, row, *value));
          if (!q.ok()) {
            return Prefix(q.status(), absl::StrCat("operator '", n->name(), "' (", OperatorName(*n),
                                                   "), constant '", e.node->name(), "': "));
          }
          weight_scales = q->scales;
          ASSIGN_OR_RETURN(to, AddConstant(*n, q->values, q->scales,
                                           std::vector<int64_t>(q->scales.size(), q->zero),
                                           row.ScaledDimension(flags_)));
        } else {
          const bool has_range = agrees || ranges_.contains(KeyOf(e));
          RETURN_IF_ERROR(CheckFinite(*n, *e.node, *value, has_range));
          // Zeros alone have no scale of their own, and stand on any.
          const LiteRange range = RangeOfConstant(e, *value);
          const bool as_other = n->Is(kComparisons) && range.min == range.max;
          const Params* forced = agrees ? result : nullptr;
          if (as_other && !n->input(1 - i).node->Is("Const")) forced = &ParamsAt(n->input(1 - i));
          ASSIGN_OR_RETURN(to, QuantizedConstant(*n, e, *value, forced));
        }
        continue;
      }
      const Params p = agrees && result != nullptr ? *result : ParamsAt(e);
      ASSIGN_OR_RETURN(to, InParams(e, p));
      if (!weights) input_scale = p.scale;
    }
    if (row.bias >= 0 && row.bias < n->num_inputs()) {
      const Endpoint e = inputs[static_cast<size_t>(row.bias)];
      if (const auto value = ConstantTensor(*e.node); value && value->dtype() == Dtype::kFloat) {
        RETURN_IF_ERROR(CheckFinite(*n, *e.node, *value));
        ASSIGN_OR_RETURN(inputs[static_cast<size_t>(row.bias)],
                         QuantizedBias(*n, *value, input_scale, weight_scales));
      }
    }
    graph_.SetInputs(n, inputs);
    DtypeVector types;
    for (size_t i = 0; i < n->output_types.size(); ++i) {
      const bool number = n->output_types[i] == Dtype::kFloat;
      types.push_back(number ? f_.type : n->output_types[i]);
      if (!number) continue;
      const Params p = params_.at({n, static_cast<int>(i)});
      SetQuantization(n->AttrsToChange(), static_cast<int>(i), {{p.scale}, {p.zero}});
    }
    n->AttrsToChange().Set("Tout", types);
    if (flags_.int16 && row.bias >= 0 && n->Find("quantized_bias_type") != nullptr) {
      n->AttrsToChange().Set("quantized_bias_type", BiasType(*n));
    }
    return UpdateInputTypes(graph_, n);
  }

  // Where training rounded, weights keep what they were rounded to.
  StatusOr<QuantizedWeights> WeightsOf(const Tensor& value, const QuantizedOp& row,
                                       const std::vector<float>& least) const {
    if (flags_.uint8) return QuantizeUint8(value, !declared_.empty());
    const int dim = row.ScaledDimension(flags_), bits = row.integer4 ? flags_.weight_bits : 8;
    if (!declared_.empty()) {
      if (flags_.low_bits && row.integer4) {
        if (auto q = OnGrid(value, dim, 4, true)) return *std::move(q);
      }
      if (auto q = OnGrid(value, dim, bits)) return *std::move(q);
    }
    return QuantizeWeights(value, dim, bits, least);
  }

  // Are the operator's biases int32 beside int16? Kernels of DEPTHWISE_CONV_2D take int64 alone.
  bool HasBias32(const Node& n) const {
    return flags_.int16 && flags_.bias32 && n.Find("quantized_bias_type") != nullptr;
  }

  Dtype BiasType(const Node& n) const { return HasBias32(n) ? Dtype::kInt32 : f_.bias; }

  // By which biases take half of an int32, as TensorFlow's quantizer has it; none: they may take
  // what they will.
  std::vector<float> LeastScales(const Node& n, const QuantizedOp& row, const Tensor& weights) {
    if (!HasBias32(n) || row.bias >= n.num_inputs()) return {};
    const auto bias = ConstantTensor(*n.input(row.bias).node);
    if (!bias || bias->dtype() != Dtype::kFloat) return {};
    const double input = static_cast<double>(ParamsAt(n.input(FirstActivation(n))).scale);
    const int dim = row.ScaledDimension(flags_);
    std::vector<float> out(static_cast<size_t>(dim < 0 ? 1 : weights.dim(dim)), 0.0f);
    for (int64_t i = 0; i < bias->num_elements(); ++i) {
      float& least = out[dim < 0 ? 0 : static_cast<size_t>(i)];
      const double size = std::abs(static_cast<double>(bias->data<float>()[i]));
      least = std::max(least, static_cast<float>(2 * size / (INT32_MAX * input)));
    }
    return out;
  }

  // A stated range whose value is integers on its scale by now states nothing more; others are
  // integers from another scale, or from floats.
  Status RewriteDeclaration(Node* dequantize, Node* q) {
    const Params p = ParamsAt({dequantize, 0});
    if (dequantize->uses().empty()) graph_.Remove(dequantize);
    SetQuantization(q->AttrsToChange(), 0, {{p.scale}, {p.zero}});
    q->EraseAttr(kDeclaresRange);
    Endpoint from = q->input(0);
    const bool given = IsGivenArgument(*from.node);
    const bool same = (given || chosen_.contains(from.node)) && ParamsAt(from) == p;
    if (given) {
      from = Given(from);
      graph_.SetInput(q, 0, from);
    }
    if (same) graph_.ReplaceAllUses({q, 0}, from);
    if (!q->uses().empty()) return UpdateInputTypes(graph_, q);
    graph_.ReplaceControlUses(q, nullptr);
    graph_.Remove(q);
    return OkStatus();
  }

  // Float before the rewriting: operators that were rewritten give integers by now.
  bool WasFloat(Endpoint e) const { return IsFloat(e) || params_.contains(KeyOf(e)); }

  // Who still wants floats gets them, and arguments and results are integers where that is asked.
  Status Borders(const std::vector<Node*>& order) {
    // Of `order` some are gone by now, which the next loop asks for no more than their address.
    for (Node* n : graph_.Nodes()) {
      if (flags_.input_type == Dtype::kFloat || !IsGivenArgument(*n) || n->uses().empty()) continue;
      Given({n, 0});
    }
    for (Node* n : order) {
      if (!GivesIntegers(n)) continue;
      for (int port = 0; port < n->num_outputs(); ++port) {
        if (!params_.contains({n, port})) continue;
        std::vector<Use> floats;
        for (const Use& use : n->OrderedUses()) {
          if (use.is_control() || use.port() != port) continue;
          const bool takes = chosen_.contains(use.node) || IsConversion(*use.node) ||
                             std::ranges::find(writes_, use.node, &Write::first) != writes_.end();
          if (!takes) floats.push_back(use);
        }
        if (floats.empty()) continue;
        ASSIGN_OR_RETURN(const Endpoint back,
                         Converted("tfl.dequantize", {n, port}, Dtype::kFloat, "float"));
        for (const Use& use : floats) graph_.SetInput(use.node, use.input, back);
      }
    }
    return OkStatus();
  }

  Graph& graph_;
  LiteRanges ranges_;
  const IntegerFlags& flags_;
  const IntegerFormat& f_;
  DeclaredParams declared_;
  absl::flat_hash_set<const Node*> chosen_, beyond_, near_zero_;
  using Write = std::pair<Node*, Params>;
  std::vector<Node*> reads_;   // of variables that hold integers
  std::vector<Write> writes_;  // and what their numbers stand for
  absl::flat_hash_map<Key, Params> params_;
  absl::flat_hash_map<Key, Endpoint> entered_;
  std::map<std::tuple<Key, float, int64_t>, Endpoint> again_;
};

}  // namespace

Status QuantizeToInteger(Graph& graph, const LiteRanges& ranges, const IntegerFlags& flags) {
  RETURN_IF_ERROR(IntegerQuantizer(graph, ranges, flags).Run());
  RETURN_IF_ERROR(NarrowBorders(graph, flags.input_type, flags.output_type, flags.some_borders));
  if (!flags.only_integer) return OkStatus();
  std::string left;
  for (const Node* n : graph.Nodes()) {
    if (!absl::StartsWith(n->op(), "tfl.") || IsConversion(*n)) continue;
    for (const Dtype t : n->output_types) {
      if (t != Dtype::kFloat) continue;
      absl::StrAppend(&left, "  ", OperatorName(*n), " '", n->name(), "'\n");
      break;
    }
  }
  if (left.empty()) return OkStatus();
  return Unimplemented("these operators stay float:\n", left);
}

}  // namespace smelt
