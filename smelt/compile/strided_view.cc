#include "smelt/compile/strided_view.h"

#include <algorithm>
#include <optional>

#include "smelt/kernels/common/slice_spec.h"

namespace smelt {
namespace {

StridedView PlainView(const Plan& plan, int value) {
  StridedView view;
  view.value = value;
  const Shape& shape = plan.values[static_cast<size_t>(value)].shape;
  view.dims.assign(shape.dims().begin(), shape.dims().end());
  view.steps.assign(view.dims.size(), 1);
  for (size_t i = view.dims.size(); i-- > 1;) {
    view.steps[i - 1] = view.steps[i] * view.dims[i];
  }
  return view;
}

// The view under another shape; false where its elements do not lie so that there is one. REQUIRES:
// as many elements, and some.
bool Reshape(std::span<const int64_t> dims, StridedView* view) {
  Dims old_dims, old_steps;
  for (size_t i = 0; i < view->dims.size(); ++i) {
    if (view->dims[i] == 1) continue;
    old_dims.push_back(view->dims[i]);
    old_steps.push_back(view->steps[i]);
  }
  Dims steps(dims.size(), 0);
  size_t from = 0, to = 0;
  while (to < dims.size()) {
    if (dims[to] == 1) {
      ++to;
      continue;
    }
    // Old dimensions from..from_end hold as many elements as new ones to..to_end.
    size_t from_end = from + 1, to_end = to + 1;
    if (from >= old_dims.size()) return false;
    int64_t a = old_dims[from], b = dims[to];
    while (a != b) {
      if (a < b) {
        if (from_end >= old_dims.size()) return false;
        a *= old_dims[from_end++];
      } else {
        if (to_end >= dims.size()) return false;
        b *= dims[to_end++];
      }
    }
    for (size_t i = from; i + 1 < from_end; ++i) {
      if (old_steps[i] != old_steps[i + 1] * old_dims[i + 1]) return false;
    }
    int64_t step = old_steps[from_end - 1];
    for (size_t i = to_end; i-- > to;) {
      steps[i] = step;
      step *= dims[i];
    }
    from = from_end;
    to = to_end;
  }
  view->dims.assign(dims.begin(), dims.end());
  view->steps = std::move(steps);
  return true;
}

class Tracer {
 public:
  Tracer(const Plan& plan, size_t before, bool scales)
      : plan_(plan), before_(before), scales_(scales) {}

  StridedView View(int value) const {
    const PlanValue& v = At(value);
    if (v.shape.num_elements() == 0) return PlainView(plan_, value);
    if (v.same_as >= 0) {
      StridedView view = View(v.same_as);
      if (Reshape(v.shape.dims(), &view)) return view;
      return PlainView(plan_, value);
    }
    const std::optional<size_t> maker = Maker(value);
    if (!maker) return PlainView(plan_, value);
    const PlanAction& action = plan_.actions[*maker];
    if (!action.then.empty()) return PlainView(plan_, value);
    std::optional<StridedView> view;
    if (action.node->Is("Transpose")) {
      view = Turned(action);
    } else if (action.node->Is("StridedSlice")) {
      view = Sliced(action);
    } else if (action.node->Is({"Split", "SplitV"})) {
      view = Part(action, value);
    } else if (scales_ && action.node->Is({"Mul", "RealDiv"})) {
      view = Scaled(action, value);
    }
    if (!view) return PlainView(plan_, value);
    view->actions.push_back(*maker);
    return *std::move(view);
  }

 private:
  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }

  std::optional<size_t> Maker(int value) const {
    for (size_t i = before_; i-- > 0;) {
      if (std::ranges::find(plan_.actions[i].outputs, value) != plan_.actions[i].outputs.end()) {
        return i;
      }
    }
    return std::nullopt;
  }
  const Tensor* Constant(int value) const {
    const PlanValue& v = At(value);
    return v.place == PlanValue::Place::kConstant ? &plan_.constants[static_cast<size_t>(v.number)]
                                                  : nullptr;
  }

  std::optional<StridedView> Turned(const PlanAction& action) const {
    const Dims order = TransposeOrder(plan_, action);
    if (order.empty()) return std::nullopt;
    StridedView view = View(action.inputs[0]);
    const Dims dims = view.dims, steps = view.steps;
    for (size_t i = 0; i < order.size(); ++i) {
      view.dims[i] = dims[static_cast<size_t>(order[i])];
      view.steps[i] = steps[static_cast<size_t>(order[i])];
    }
    return view;
  }

  std::optional<StridedView> Sliced(const PlanAction& action) const {
    const Tensor* bounds[3];
    for (size_t i = 0; i < 3; ++i) {
      bounds[i] = Constant(action.inputs[i + 1]);
      if (bounds[i] == nullptr) return std::nullopt;
    }
    const auto masks = ReadSliceMasks(*action.node);
    if (!masks.ok()) return std::nullopt;
    SliceSpec spec;
    if (!ResolveSlice(At(action.inputs[0]).shape, *bounds[0], *bounds[1], *bounds[2],
                      static_cast<const IntAttrs&>(**masks), &spec)
             .ok() ||
        !(spec.shape == At(action.outputs[0]).shape)) {
      return std::nullopt;
    }
    StridedView view = View(action.inputs[0]);
    const size_t rank = spec.shape.dims().size();
    Dims steps(rank, 0);
    for (size_t i = 0; i < view.steps.size(); ++i) {
      view.first += spec.begin[i] * view.steps[i];
      if (spec.becomes[i] >= 0) {
        steps[static_cast<size_t>(spec.becomes[i])] = view.steps[i] * spec.stride[i];
      }
    }
    view.dims.assign(spec.shape.dims().begin(), spec.shape.dims().end());
    view.steps = std::move(steps);
    return view;
  }

  // One output of a split; which dimension is split tells itself by where shapes differ.
  std::optional<StridedView> Part(const PlanAction& action, int value) const {
    const int whole = action.inputs[action.node->Is("Split") ? 1 : 0];
    const auto all = At(whole).shape.dims(), some = At(value).shape.dims();
    const Tensor* told = Constant(action.inputs[action.node->Is("Split") ? 0 : 2]);
    if (told == nullptr || told->dtype() != Dtype::kInt32 || told->num_elements() != 1) {
      return std::nullopt;
    }
    const int64_t given = told->data<int32_t>()[0];
    const int64_t axis = given < 0 ? given + std::ssize(all) : given;
    if (axis < 0 || axis >= std::ssize(all) || some.size() != all.size()) return std::nullopt;
    const auto at = static_cast<size_t>(axis);
    StridedView view = View(whole);
    for (const int output : action.outputs) {
      if (output == value) break;
      view.first += At(output).shape.dims()[at] * view.steps[at];
    }
    view.dims.assign(some.begin(), some.end());
    return view;
  }

  std::optional<StridedView> Scaled(const PlanAction& action, int value) const {
    if (At(value).dtype != Dtype::kFloat && At(value).dtype != Dtype::kBfloat16) {
      return std::nullopt;
    }
    for (const size_t side : {1, 0}) {
      const std::optional<float> number = ConstantNumber(plan_, action.inputs[side]);
      const int other = action.inputs[1 - side];
      if (!number || !(At(other).shape == At(value).shape)) continue;
      if (action.node->Is("RealDiv") && side == 0) return std::nullopt;
      StridedView view = View(other);
      view.scale = action.node->Is("Mul") ? view.scale * *number : view.scale / *number;
      return view;
    }
    return std::nullopt;
  }

  const Plan& plan_;
  const size_t before_;
  const bool scales_;
};

}  // namespace

StridedView ViewOf(const Plan& plan, int value, size_t before, bool scales) {
  return Tracer(plan, before, scales).View(value);
}

Dims TransposeOrder(const Plan& plan, const PlanAction& action) {
  if (!action.node->Is("Transpose") || !action.then.empty()) return {};
  const PlanValue& order = plan.values[static_cast<size_t>(action.inputs[1])];
  if (order.place != PlanValue::Place::kConstant) return {};
  Dims dims = IntsOf(plan.constants[static_cast<size_t>(order.number)]);
  const auto rank = std::ssize(plan.values[static_cast<size_t>(action.outputs[0])].shape.dims());
  if (std::ssize(dims) != rank) return {};
  for (int64_t& d : dims) {
    if (d < 0) d += rank;
    if (d < 0 || d >= rank) return {};
  }
  return dims;
}

std::optional<float> ConstantNumber(const Plan& plan, int value) {
  const Tensor* t = plan.ConstantOf(value);
  if (t == nullptr || t->num_elements() != 1) return std::nullopt;
  if (t->dtype() == Dtype::kFloat) return *t->data<float>();
  if (t->dtype() == Dtype::kBfloat16) return static_cast<float>(*t->data<Bfloat16>());
  return std::nullopt;
}

}  // namespace smelt
