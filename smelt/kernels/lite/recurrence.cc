#include "smelt/kernels/lite/recurrence.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "smelt/kernels/onednn/plan_cache.h"

namespace smelt::lite {

UnaryF32 RecurrentActivation(const Node& node) {
  const std::string activation = node.String("fused_activation_function", "NONE");
  if (activation == "RELU") return UnaryF32::kRelu;
  if (activation == "RELU6") return UnaryF32::kRelu6;
  if (activation == "TANH") return UnaryF32::kTanh;
  return UnaryF32::kIdentity;
}

std::string DeclineActivation(const Node& node) {
  const std::string activation = node.String("fused_activation_function", "NONE");
  if (activation == "NONE" || activation == "RELU" || activation == "RELU6" ||
      activation == "TANH") {
    return "";
  }
  return absl::StrCat("its activation is ", activation);
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
