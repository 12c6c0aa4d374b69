#include "smelt/kernels/onednn/plan_cache.h"

#include <bit>

#include "smelt/base/parallel.h"
#include "smelt/kernels/common/kept_form.h"
#include "smelt/kernels/common/read_once.h"
#include "smelt/kernels/common/via_float.h"

namespace smelt::onednn {
namespace {

// Floats or bfloat16 numbers [..., factors.size()] times factors.
StatusOr<Tensor> Multiplied(const Tensor& t, std::span<const float> factors) {
  ASSIGN_OR_RETURN(const Tensor from, ToFloat(t, HeapAllocator()));
  ASSIGN_OR_RETURN(Tensor to, Tensor::Make(Dtype::kFloat, t.shape(), HeapAllocator()));
  const float* x = from.data<float>();
  float* y = to.data<float>();
  const auto n = static_cast<int64_t>(factors.size());
  for (int64_t i = 0; i < t.num_elements(); i += n) {
    for (int64_t c = 0; c < n; ++c) y[i + c] = x[i + c] * factors[c];
  }
  return FromFloat(to, t.dtype(), HeapAllocator());
}

}  // namespace

PlanKey MakePlanKey(std::initializer_list<const Shape*> shapes) {
  PlanKey key;
  key.push_back(Threads());
  for (const Shape* s : shapes) {
    key.push_back(s->rank());
    key.insert(key.end(), s->dims().begin(), s->dims().end());
  }
  return key;
}

void AppendSteps(const FusedOps& fused, PlanKey* key) {
  for (const FusedStep& step : fused.steps) {
    key->push_back(static_cast<int64_t>(step.kind));
    key->push_back(static_cast<int64_t>(step.activation));
    if (step.activation == Activation::kLeakyRelu) {
      key->push_back(std::bit_cast<int32_t>(fused.leaky_alpha));
    }
  }
}

StatusOr<Plan> PlanCache::Get(const PlanKey& key,
                              absl::FunctionRef<StatusOr<std::unique_ptr<Primitive>>()> build) {
  const auto is_it = [&](const Entry& e) { return e.key == key; };
  auto entry = plans_.Find(is_it);
  if (entry == nullptr) {
    // Unlocked: runs of other shapes compile theirs meanwhile.
    auto made = build();
    if (!made.ok() && !absl::IsUnimplemented(made.status())) return made.status();
    entry = plans_.Insert(is_it, {key, made.ok() ? *std::move(made) : nullptr});
  }
  const Primitive* primitive = entry->primitive.get();
  return Plan(std::move(entry), primitive);
}

StatusOr<std::shared_ptr<const Tensor>> PlanCache::Weights(const Plan& plan, const Tensor& weights,
                                                           bool constant, Allocator* allocator,
                                                           std::span<const float> factors) {
  if (!plan->packs_weights() && factors.empty()) {
    return std::shared_ptr<const Tensor>(std::shared_ptr<const Tensor>(), &weights);
  }
  return packed_.Get(
      weights, PackedFor{plan}, constant, allocator, [&](Allocator* where) -> StatusOr<Tensor> {
        const Shape shape({static_cast<int64_t>(plan->weights_bytes())});
        const auto fill = [&](Tensor& packed) -> Status {
          bool done = false;
          if (!factors.empty() && plan->packs_weights() && weights.dtype() == Dtype::kFloat) {
            ASSIGN_OR_RETURN(done, plan->PackScaledWeights(weights.raw(), factors, packed.raw()));
          }
          if (!done) {
            Tensor scaled = weights;
            if (!factors.empty()) {
              ASSIGN_OR_RETURN(scaled, Multiplied(weights, factors));
            }
            RETURN_IF_ERROR(plan->PackWeights(scaled.raw(), packed.raw()));
          }
          if (constant) DropOriginal(weights);
          return OkStatus();
        };
        return KeptOrMade(weights, constant ? plan->PackingText() : "", factors, Dtype::kUint8,
                          shape, where, fill);
      });
}

StatusOr<Tensor> FloatCopies::Get(const Tensor& t, bool constant, Allocator* allocator) {
  if (t.dtype() == Dtype::kFloat) return t;
  ASSIGN_OR_RETURN(const auto wide, wide_.Get(t, {}, constant, allocator,
                                              [&](Allocator* where) { return ToFloat(t, where); }));
  return *wide;
}

bool InputIsConst(const Node& node, int i) {
  return i < node.num_inputs() && node.inputs()[i].node != nullptr &&
         node.inputs()[i].node->Is("Const");
}

}  // namespace smelt::onednn
