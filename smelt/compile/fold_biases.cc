#include <algorithm>
#include <cmath>
#include <optional>

#include "smelt/compile/plan.h"
#include "smelt/compile/readers.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/common/via_float.h"

namespace smelt {
namespace {

constexpr OpSet kBiasedProducts = {"_FusedConv2D", "_FusedMatMul", "_FusedDepthwiseConv2dNative"};
constexpr OpSet kSums = {"AddV2", "Add", "AddN"};
// Between the product and the constants.
constexpr int kMostSums = 2;

class BiasFolder {
 public:
  BiasFolder(Plan& plan, Reasons* reasons) : plan_(plan), reasons_(reasons), readers_(plan) {}

  Status Run() {
    for (PlanAction& action : plan_.actions) {
      RETURN_IF_ERROR(Fold(action));
    }
    std::erase_if(plan_.actions, [](const PlanAction& a) { return a.node == nullptr; });
    return OkStatus();
  }

 private:
  const PlanValue& At(int value) const { return plan_.values[static_cast<size_t>(value)]; }

  // A constant of one number for each of the result's last dimension; nullptr: it is none.
  const Tensor* Vector(int value, Dtype dtype, int64_t channels) const {
    const Tensor* t = plan_.ConstantOf(value);
    if (t == nullptr || t->dtype() != dtype || t->rank() == 0 || t->num_elements() != channels ||
        t->shape().back() != channels) {
      return nullptr;
    }
    return t;
  }

  // The action that adds something to the value, which nobody else reads, and leaves its type and
  // shape; nullptr: there is none.
  PlanAction* Sum(int value) {
    const size_t next = readers_.OnlyOf(value);
    if (next == readers_.no_action()) return nullptr;
    PlanAction& sum = plan_.actions[next];
    if (sum.node == nullptr || sum.inputs.size() != 2 || sum.outputs.size() != 1 ||
        !sum.node->Is(kSums) || At(sum.outputs[0]).shape != At(value).shape ||
        At(sum.outputs[0]).dtype != At(value).dtype) {
      return nullptr;
    }
    return &sum;
  }

  Status Fold(PlanAction& action) {
    if (action.node == nullptr || !action.node->Is(kBiasedProducts) || action.inputs.size() != 3 ||
        action.outputs.size() != 1 ||
        action.node->Get<std::vector<std::string>>("fused_ops", {}) !=
            std::vector<std::string>{"BiasAdd"}) {
      return OkStatus();
    }
    int value = action.outputs[0];
    const PlanValue& out = At(value);
    if (out.shape.rank() == 0) return OkStatus();
    const int64_t channels = out.shape.back();
    // Of float alone, so that the sum is not rounded anew.
    const Tensor* bias = Vector(action.inputs[2], Dtype::kFloat, channels);
    if (bias == nullptr) return OkStatus();
    std::vector<int>* results = &action.outputs;
    for (int i = 0; i <= kMostSums; ++i) {
      PlanAction* sum = Sum(value);
      if (sum == nullptr) return OkStatus();
      const int mine = plan_.Root(sum->inputs[0]) == plan_.Root(value) ? 0 : 1;
      const int other = sum->inputs[static_cast<size_t>(1 - mine)];
      if (At(sum->inputs[static_cast<size_t>(mine)]).shape != At(value).shape) return OkStatus();
      if (const Tensor* more = Vector(other, out.dtype, channels)) {
        ASSIGN_OR_RETURN(std::optional<Tensor> all, Total(*bias, *more));
        if (!all) {
          NoteReason(reasons_, *sum->node, "is not in the bias of '", action.node->name(),
                     "': their sum is not finite");
          return OkStatus();
        }
        action.inputs[2] = plan_.AddConstant(action.inputs[2], std::move(*all));
        *results = sum->outputs;
        action.then.push_back(sum->node);
        sum->node = nullptr;
        return OkStatus();
      }
      if (plan_.ConstantOf(other) != nullptr) {
        NoteReason(reasons_, *sum->node, "is not in the bias of '", action.node->name(),
                   "': it does not add one number to each channel");
      }
      results = &sum->outputs;
      value = sum->outputs[0];
    }
    return OkStatus();
  }

  // nullopt: they are not finite, and an overflow may come earlier than before.
  static StatusOr<std::optional<Tensor>> Total(const Tensor& bias, const Tensor& more) {
    ASSIGN_OR_RETURN(const Tensor wide, ToFloat(more, HeapAllocator()));
    ASSIGN_OR_RETURN(Tensor all, Tensor::Make(Dtype::kFloat, bias.shape(), HeapAllocator()));
    for (int64_t i = 0; i < bias.num_elements(); ++i) {
      all.data<float>()[i] = bias.data<float>()[i] + wide.data<float>()[i];
      if (!std::isfinite(all.data<float>()[i])) return std::optional<Tensor>();
    }
    return std::optional<Tensor>(std::move(all));
  }

  Plan& plan_;
  Reasons* const reasons_;
  const PlanReaders readers_;
};

}  // namespace

Status FoldBiases(Plan& plan, Reasons* reasons) { return BiasFolder(plan, reasons).Run(); }

}  // namespace smelt
