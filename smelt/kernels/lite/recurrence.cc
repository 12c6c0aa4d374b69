#include "smelt/kernels/lite/recurrence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt::lite {

namespace {

constexpr absl::string_view kActivations[] = {"NONE",  "RELU", "RELU_N1_TO_1",
                                              "RELU6", "TANH", "SIGN_BIT"};

std::string ActivationName(const Node& node) {
  return node.String("fused_activation_function", "NONE");
}

}  // namespace

RecurrentActivation RecurrentActivationOf(const Node& node) {
  const auto* found = std::ranges::find(kActivations, ActivationName(node));
  if (found == std::end(kActivations)) return RecurrentActivation::kNone;
  return static_cast<RecurrentActivation>(found - std::begin(kActivations));
}

std::string DeclineFloatCell(const Node& node) {
  if (node.input_types[0] != Dtype::kFloat) {
    return absl::StrCat("its input is ", DtypeName(node.input_types[0]));
  }
  for (const Dtype type : node.output_types) {
    if (type != Dtype::kFloat) return absl::StrCat("a result of it is ", DtypeName(type));
  }
  const std::string name = ActivationName(node);
  if (std::ranges::find(kActivations, name) != std::end(kActivations)) return "";
  return absl::StrCat("its activation is ", name);
}

void Activate(RecurrentActivation activation, const float* x, float* y, int64_t n) {
  const auto by = [&](UnaryF32 fn) { Isa().unary[static_cast<int>(fn)](x, y, n, 0); };
  switch (activation) {
    case RecurrentActivation::kNone:
      return by(UnaryF32::kIdentity);
    case RecurrentActivation::kRelu:
      return by(UnaryF32::kRelu);
    case RecurrentActivation::kReluN1To1:
      std::transform(x, x + n, y, [](float v) { return std::min(std::max(v, -1.0f), 1.0f); });
      return;
    case RecurrentActivation::kRelu6:
      return by(UnaryF32::kRelu6);
    case RecurrentActivation::kTanh:
      return by(UnaryF32::kTanh);
    case RecurrentActivation::kSignBit:
      std::transform(x, x + n, y, [](float v) { return std::signbit(v) ? 1.0f : 0.0f; });
  }
}

bool WeightsAreConstant(const Node& node, int first, std::initializer_list<int> states) {
  for (int i = first; i < node.num_inputs(); ++i) {
    if (std::find(states.begin(), states.end(), i) != states.end()) continue;
    if (!onednn::InputIsConst(node, i)) return false;
  }
  return true;
}

StatusOr<SequenceShape> SequenceOf(const Shape& x, bool time_major) {
  if (x.rank() != 3) return InvalidArgument("a sequence of the shape ", x.ToString());
  SequenceShape s = {x[0], x[1], x[2], x[1], 1};
  if (!time_major) s = {x[1], x[0], x[2], 1, x[1]};
  return s;
}

StatusOr<Shape> WithWidth(const Shape& x, int64_t width) {
  Dims dims(x.dims().begin(), x.dims().end());
  dims.back() = width;
  return Shape::Make(dims);
}

StatusOr<Tensor*> CopyState(OpContext& ctx, int i, Dtype type, int64_t batch, int64_t n, int to) {
  const Tensor& state = ctx.input(i);
  if (state.dtype() != type) {
    return Unimplemented("its state, input ", i, ", is ", DtypeName(state.dtype()));
  }
  const int64_t dims[] = {batch, n};
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  if (state.num_elements() != shape.num_elements()) {
    return InvalidArgument("its state, input ", i, ", has the shape ", state.shape().ToString(),
                           ", not ", shape.ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(to, state.shape()));
  std::memcpy(out->raw(), state.raw(), state.bytes());
  return out;
}

}  // namespace smelt::lite
