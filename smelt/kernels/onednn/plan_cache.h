// What an oneDNN kernel keeps per node: compiled primitives by shape, and packed weights.
#ifndef SMELT_KERNELS_ONEDNN_PLAN_CACHE_H_
#define SMELT_KERNELS_ONEDNN_PLAN_CACHE_H_

#include <memory>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "smelt/graph/fused_ops.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/common/constant_forms.h"
#include "smelt/kernels/common/small_cache.h"
#include "smelt/kernels/onednn/primitive.h"

namespace smelt::onednn {

// The sizes of `shapes` and the number of threads. Callers append what else their primitive depends
// on.
using PlanKey = absl::InlinedVector<int64_t, 32>;
PlanKey MakePlanKey(std::initializer_list<const Shape*> shapes);
// What a primitive depends on of fused steps.
void AppendSteps(const FusedOps& fused, PlanKey* key);

// A compiled primitive; valid as long as the cache that it is from.
using Plan = std::shared_ptr<const Primitive>;

// One per node. Thread safe; runs whose shapes were among the node's first do not wait for each
// other.
class PlanCache {
 public:
  // The primitive of `key`, compiled by `build` where it is not known yet. nullptr: the library has
  // no code for it (`build` said UNIMPLEMENTED), which is remembered as well.
  StatusOr<Plan> Get(const PlanKey& key,
                     absl::FunctionRef<StatusOr<std::unique_ptr<Primitive>>()> build);

  // The weights as the plan takes them: the caller's, or packed. Packed once when `constant` (see
  // ConstantForms), and then the pages of a mapped original are given back; on each call else.
  // `factors`: what each of the last dimension's numbers is multiplied by first, the same on each
  // call; empty: nothing. Valid as long as `weights` and this cache. REQUIRES: a plan of this cache
  // that has weights.
  StatusOr<std::shared_ptr<const Tensor>> Weights(const Plan& plan, const Tensor& weights,
                                                  bool constant, Allocator* allocator,
                                                  std::span<const float> factors = {});

 private:
  struct Entry {
    PlanKey key;
    std::unique_ptr<const Primitive> primitive;
  };
  SmallCache<Entry, 8, 8> plans_;

  struct PackedFor {
    Plan plan;
    friend bool operator==(const PackedFor& a, const PackedFor& b) {
      return a.plan == b.plan || a.plan->PacksAlike(*b.plan);
    }
  };
  ConstantForms<PackedFor> packed_;
};

// 16-bit floats widened, made once for each constant tensor; float tensors as they are. Thread
// safe.
class FloatCopies {
 public:
  StatusOr<Tensor> Get(const Tensor& t, bool constant, Allocator* allocator);

 private:
  ConstantForms<std::monostate> wide_;
};

// Is input i of the node the output of a Const?
bool InputIsConst(const Node& node, int i);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_PLAN_CACHE_H_
