#include "smelt/lite/quantize/integer_lstm.h"

#include <algorithm>
#include <cmath>

#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/quantized_ops.h"
#include "smelt/lite/quantize/weights.h"

namespace smelt {
namespace {

// Inputs of the operator.
constexpr int kWeights = 1, kPeepholes = 9, kBiases = 12, kProjection = 16, kProjectionBias = 17,
              kState = 18, kCellState = 19, kNorms = 20, kInputs = 24;
constexpr float kNormBiasStep = 1.0f / 1024;  // of a bias, beside the scale of its norm

bool LstmHas(const Node& n, int i) {
  return i < n.num_inputs() && !n.input(i).node->Is("tfl.no_value");
}

class LstmQuantizer {
 public:
  LstmQuantizer(Graph& graph, Node* n, const LiteRanges& ranges)
      : graph_(graph), n_(n), ranges_(ranges), inputs_(n->inputs().begin(), n->inputs().end()) {}

  Status Run(Endpoint input, ScaleAndZero from, ScaleAndZero to, ScaleAndZero hidden) {
    inputs_[0] = input;
    std::vector<float> scales(kInputs, 1.0f);
    for (int i = 0; i < n_->num_inputs(); ++i) {
      const bool wide = (i >= kPeepholes && i < kBiases) || i >= kNorms;
      const bool weights = i >= kWeights && (i < kBiases || i == kProjection || i >= kNorms);
      if (!weights || !LstmHas(*n_, i)) continue;
      ASSIGN_OR_RETURN(scales[static_cast<size_t>(i)], wide ? MakeWide(i) : MakeNarrow(i));
    }
    const bool norm = LstmHas(*n_, kNorms + 1);
    for (int g = 0; g < 4; ++g) {
      const float scale = norm ? scales[static_cast<size_t>(kNorms + g)] * kNormBiasStep
                               : from.scale * scales[static_cast<size_t>(kWeights + g)];
      RETURN_IF_ERROR(MakeBias(kBiases + g, scale));
    }
    RETURN_IF_ERROR(MakeBias(kProjectionBias, scales[kProjection] * hidden.scale));
    RETURN_IF_ERROR(MakeState(kState, Dtype::kInt8, to));
    RETURN_IF_ERROR(MakeState(kCellState, Dtype::kInt16, {CellScale(), 0}));
    std::vector<float> between(5, 0.0f);
    std::vector<int64_t> zeros(5, 0);
    for (int g = 0; g < 4 && norm; ++g) {
      const auto range = ranges_.find({n_, kLstmRanges + g});
      if (range == ranges_.end()) continue;  // there is no input gate
      between[static_cast<size_t>(g)] = Largest(range->second) / 32767;
    }
    between[kLstmHidden] = hidden.scale;
    zeros[kLstmHidden] = hidden.zero;
    AttrMap& attrs = n_->AttrsToChange();
    attrs.Set(kIntermediateScales, between);
    attrs.Set(kIntermediateZeros, zeros);
    attrs.Set(kScales, std::vector<float>{to.scale});
    attrs.Set(kZeroPoints, std::vector<int64_t>{to.zero});
    attrs.Set("Tout", DtypeVector{Dtype::kInt8});
    graph_.SetInputs(n_, inputs_);
    return UpdateInputTypes(graph_, n_);
  }

 private:
  static float Largest(const LiteRange& r) {
    const float most = std::max(std::abs(r.min), std::abs(r.max));
    return most == 0 ? 1.0f : most;
  }

  // A power of two, which the kernel's tanh takes from 2^-15 to 2^-9.
  float CellScale() const {
    double most = static_cast<double>(Largest(ranges_.at({n_, kLstmRanges + kLstmCell})));
    const Endpoint begin = n_->input(kCellState);
    const auto state = ranges_.find({begin.node, begin.port});
    if (state != ranges_.end()) {
      const LiteRange& r = state->second;
      most = std::max(most, static_cast<double>(std::max(std::abs(r.min), std::abs(r.max))));
    }
    const double power = std::clamp(std::ceil(std::log2(most)) - 15, -15.0, -9.0);
    return static_cast<float>(std::exp2(power));
  }

  Status Place(int i, const Tensor& value, float scale) {
    AttrMap attrs;
    attrs.Set("dtype", value.dtype());
    attrs.Set("value", value);
    attrs.Set(kScales, std::vector<float>{scale});
    attrs.Set(kZeroPoints, std::vector<int64_t>{0});
    ASSIGN_OR_RETURN(Node * n, graph_.Add(absl::StrCat(n_->name(), "/quantized"), "Const", {},
                                          std::move(attrs)));
    inputs_[static_cast<size_t>(i)] = {n, 0};
    return OkStatus();
  }

  Tensor Value(int i) const { return *ConstantTensor(*n_->input(i).node); }

  StatusOr<float> MakeNarrow(int i) {
    auto q = QuantizeWeights(Value(i), -1);
    if (!q.ok()) return Prefix(q.status(), absl::StrCat("operator '", n_->name(), "': "));
    RETURN_IF_ERROR(Place(i, q->values, q->scales[0]));
    return q->scales[0];
  }

  StatusOr<float> MakeWide(int i) {
    const Tensor value = Value(i);
    float most = 0;
    for (const float v : value.flat<float>()) {
      if (!std::isfinite(v)) {
        return InvalidArgument("operator '", n_->name(), "': a weight is ", v);
      }
      most = std::max(most, std::abs(v));
    }
    const float scale = most == 0 ? 1.0f : most / 32767;
    ASSIGN_OR_RETURN(Tensor q, Tensor::Make(Dtype::kInt16, value.shape()));
    for (int64_t k = 0; k < value.num_elements(); ++k) {
      const float steps = std::round(value.data<float>()[k] / scale);
      q.data<int16_t>()[k] = static_cast<int16_t>(std::clamp(steps, -32767.0f, 32767.0f));
    }
    RETURN_IF_ERROR(Place(i, q, scale));
    return scale;
  }

  Status MakeBias(int i, float scale) {
    if (!LstmHas(*n_, i)) return OkStatus();
    const Tensor value = Value(i);
    ASSIGN_OR_RETURN(Tensor q, Tensor::Make(Dtype::kInt32, value.shape()));
    for (int64_t k = 0; k < value.num_elements(); ++k) {
      const double steps =
          std::round(static_cast<double>(value.data<float>()[k]) / static_cast<double>(scale));
      if (std::isnan(steps)) return InvalidArgument("operator '", n_->name(), "': a bias is nan");
      q.data<int32_t>()[k] = static_cast<int32_t>(std::clamp<double>(steps, INT32_MIN, INT32_MAX));
    }
    return Place(i, q, scale);
  }

  // A number of the state as its type has it.
  static StatusOr<Tensor> Steps(const Tensor& from, Dtype type, ScaleAndZero p) {
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(type, from.shape()));
    for (int64_t i = 0; i < from.num_elements(); ++i) {
      const double steps =
          std::round(static_cast<double>(from.data<float>()[i]) / static_cast<double>(p.scale)) +
          static_cast<double>(p.zero);
      if (type == Dtype::kInt8) {
        out.data<int8_t>()[i] = static_cast<int8_t>(std::clamp(steps, -128.0, 127.0));
      } else {
        out.data<int16_t>()[i] = static_cast<int16_t>(std::clamp(steps, -32768.0, 32767.0));
      }
    }
    return out;
  }

  // What a tile of a fill gives, with one dimension before its own.
  static Tensor Uniform(Endpoint tile) {
    const Shape shape = StatedShape(tile).ToShape();
    Dims dims = {1};
    dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
    Tensor out = *Tensor::Zeros(Dtype::kFloat, *Shape::Make(dims));
    const Node& fill = *tile.node->input(0).node;
    std::ranges::fill(out.flat<float>(), ConstantTensor(*fill.input(1).node)->scalar<float>());
    return out;
  }

  // A variable, or what is written into one whenever the operator runs (IntegerState).
  Status MakeState(int i, Dtype type, ScaleAndZero p) {
    const Endpoint e = n_->input(i);
    Node* before = e.node;
    const auto quantized = [&](AttrMap attrs) {
      attrs.Set(kScales, std::vector<float>{p.scale});
      attrs.Set(kZeroPoints, std::vector<int64_t>{p.zero});
      return attrs;
    };
    const auto constant = [&](const Tensor& value) -> StatusOr<Endpoint> {
      ASSIGN_OR_RETURN(const Tensor steps, Steps(value, type, p));
      AttrMap attrs;
      attrs.Set("dtype", type);
      attrs.Set("value", steps);
      ASSIGN_OR_RETURN(Node * n, graph_.Add(absl::StrCat(before->name(), "/begin"), "Const", {},
                                            quantized(std::move(attrs))));
      return Endpoint{n, 0};
    };
    AttrMap attrs;
    std::vector<Endpoint> from;
    OpName op = before->op_name();
    if (before->Is("tfl.variable")) {
      attrs = before->attrs();
      attrs.Set("dtype", type);
    } else {
      DtypeVector in = {type};
      if (before->Is("tfl.unpack")) {
        const Tensor all = *ConstantTensor(*before->input(0).node);
        ASSIGN_OR_RETURN(const Endpoint one, constant(all.Rows(e.port, e.port + 1)));
        from = {one};
        attrs.Set("num", int64_t{1});
      } else if (before->Is("tfl.tile")) {
        ASSIGN_OR_RETURN(const Endpoint one, constant(Uniform(e)));
        from = {one};
        op = "tfl.unpack";
        attrs.Set("num", int64_t{1});
      } else {
        ASSIGN_OR_RETURN(const Endpoint value, constant(*ConstantTensor(*before->input(1).node)));
        from = {before->input(0), value};
        in = {before->input(0).node->output_types[static_cast<size_t>(before->input(0).port)],
              type};
      }
      attrs.Set(kVariableOutputs, true);
      attrs.Set(kOutputShapes, std::vector<PartialShape>{StatedShape(e)});
      attrs.Set("Tin", in);
      attrs.Set("Tout", DtypeVector{type});
    }
    ASSIGN_OR_RETURN(Node * n, graph_.Add(absl::StrCat(before->name(), "/quantized"), op.text(),
                                          from, quantized(std::move(attrs))));
    inputs_[static_cast<size_t>(i)] = {n, 0};
    graph_.SetInput(n_, i, {n, 0});
    if (before->uses().empty()) graph_.Remove(before);
    return OkStatus();
  }

  Graph& graph_;
  Node* n_;
  const LiteRanges& ranges_;
  std::vector<Endpoint> inputs_;
};

// A state that begins with what is known now, and that nobody else reads.
bool IsIntegerState(Endpoint e) {
  const Node& n = *e.node;
  if (n.NumUses(e.port) != 1) return false;
  if (n.Is("tfl.variable")) return true;
  if (!n.Bool(kVariableOutputs)) return false;
  const auto is_float = [](Endpoint from) {
    const TensorValue* value = StatedConstant(*from.node);
    return value != nullptr && value->dtype == Dtype::kFloat;
  };
  const auto floats = [&](int i) { return is_float(n.input(i)); };
  if (n.Is("tfl.tile")) {
    const Node& fill = *n.input(0).node;
    return StatedShape(e).fully_known() && fill.Is("tfl.fill") && is_float(fill.input(1));
  }
  return (n.Is("tfl.unpack") && n.Int("axis") == 0 && floats(0)) || (n.Is("tfl.fill") && floats(1));
}

}  // namespace

bool IsIntegerLstm(const Node& n, const LiteRanges& ranges) {
  const bool one_step = n.Is("tfl.lstm");
  if (!one_step && !n.Is("tfl.unidirectional_sequence_lstm")) return false;
  if (one_step && n.String("kernel_type", "FULL") != "FULL") return false;
  // LiteRT's integer kernel knows tanh alone, and no diagonals.
  if (n.String("fused_activation_function", "NONE") != "TANH" ||
      n.Bool("diagonal_recurrent_tensors") || n.num_inputs() != kInputs || n.num_outputs() != 1) {
    return false;
  }
  for (const int i : {kLstmHidden, kLstmCell}) {
    if (!ranges.contains({&n, kLstmRanges + i})) return false;
  }
  for (int i = 1; i < n.num_inputs(); ++i) {
    if (!LstmHas(n, i)) continue;
    const bool state = i == kState || i == kCellState;
    if (state ? !IsIntegerState(n.input(i)) : StatedConstant(*n.input(i).node) == nullptr) {
      return false;
    }
  }
  return true;
}

Status MakeIntegerLstm(Graph& graph, Node* n, const LiteRanges& ranges, Endpoint input,
                       ScaleAndZero from, ScaleAndZero to, ScaleAndZero hidden) {
  return LstmQuantizer(graph, n, ranges).Run(input, from, to, hidden);
}

}  // namespace smelt
