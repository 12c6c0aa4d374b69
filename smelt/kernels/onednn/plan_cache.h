// What an oneDNN kernel keeps per node: compiled primitives by shape, and packed weights.
#ifndef SMELT_KERNELS_ONEDNN_PLAN_CACHE_H_
#define SMELT_KERNELS_ONEDNN_PLAN_CACHE_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "smelt/graph/graph.h"
#include "smelt/kernels/onednn/primitive.h"

namespace smelt::onednn {

// Sizes of all inputs and the number of threads.
using PlanKey = absl::InlinedVector<int64_t, 16>;
PlanKey MakePlanKey(std::initializer_list<const Shape*> shapes);

// Primitives by key, least recently used first to go. A plan that is in use lives on when it is
// evicted. Thread safe.
class PlanCache {
 public:
  // false: not known yet. A known key may be without a primitive: the library has none.
  bool Find(const PlanKey& key, std::shared_ptr<const Primitive>* primitive);
  void Insert(const PlanKey& key, std::shared_ptr<const Primitive> primitive);

 private:
  struct Entry {
    PlanKey key;
    std::shared_ptr<const Primitive> primitive;
  };
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // last used first
};

// Weights in the layouts that primitives want, made once for each constant tensor. Thread safe.
class WeightCache {
 public:
  // The packed form of `weights`, lying as `from` says. Kept when `constant`, and then the pages of
  // a mapped original are given back; packed anew on each call else. `factors`: what each of the
  // last dimension's numbers is multiplied by first, the same on each call; empty: nothing.
  StatusOr<Tensor> Get(const std::shared_ptr<const Primitive>& primitive, const Layout& from,
                       const Tensor& weights, bool constant, Allocator* allocator,
                       std::span<const float> factors = {});

 private:
  struct Entry {
    Tensor original;  // holds its buffer, so that its address names it
    std::shared_ptr<const Primitive> layout;
    Tensor packed;
  };
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

// 16-bit floats widened, made once for each constant tensor. Thread safe.
class FloatCopies {
 public:
  StatusOr<Tensor> Get(const Tensor& t, bool constant, Allocator* allocator);

 private:
  struct Entry {
    Tensor original;
    Tensor wide;
  };
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

// Is input i of the node the output of a Const?
bool InputIsConst(const Node& node, int i);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_PLAN_CACHE_H_
