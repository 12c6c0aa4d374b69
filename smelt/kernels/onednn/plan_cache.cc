#include "smelt/kernels/onednn/plan_cache.h"

#include <algorithm>

#include "smelt/base/parallel.h"
#include "smelt/kernels/onednn/nn_names.h"

namespace smelt::onednn {
namespace {

constexpr size_t kMaxPlans = 16;
// Weights of one node in use at a time: more than one only when a function is called with several.
constexpr size_t kMaxPacked = 4;
// Packed weights take the place of pages of the file from this size on.
constexpr size_t kWorthDropping = 256 << 10;

// Floats or bfloat16 numbers [..., factors.size()] times factors.
StatusOr<Tensor> Multiplied(const Tensor& t, std::span<const float> factors) {
  ASSIGN_OR_RETURN(const Tensor from, nn::ToFloat(t, HeapAllocator()));
  ASSIGN_OR_RETURN(Tensor to, Tensor::Make(Dtype::kFloat, t.shape(), HeapAllocator()));
  const float* x = from.data<float>();
  float* y = to.data<float>();
  const auto n = static_cast<int64_t>(factors.size());
  for (int64_t i = 0; i < t.num_elements(); i += n) {
    for (int64_t c = 0; c < n; ++c) y[i + c] = x[i + c] * factors[c];
  }
  return nn::FromFloat(to, t.dtype(), HeapAllocator());
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

bool PlanCache::Find(const PlanKey& key, std::shared_ptr<const Primitive>* primitive) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].key != key) continue;
    std::rotate(entries_.begin(), entries_.begin() + i, entries_.begin() + i + 1);
    *primitive = entries_[0].primitive;
    return true;
  }
  return false;
}

void PlanCache::Insert(const PlanKey& key, std::shared_ptr<const Primitive> primitive) {
  absl::MutexLock lock(&mutex_);
  if (entries_.size() >= kMaxPlans) entries_.pop_back();
  entries_.insert(entries_.begin(), Entry{key, std::move(primitive)});
}

StatusOr<Tensor> WeightCache::Get(const std::shared_ptr<const Primitive>& primitive,
                                  const Layout& from, const Tensor& weights, bool constant,
                                  Allocator* allocator, std::span<const float> factors) {
  const auto pack = [&](Allocator* where) -> StatusOr<Tensor> {
    const auto bytes = static_cast<int64_t>(primitive->weights_bytes());
    ASSIGN_OR_RETURN(Tensor packed, Tensor::Make(Dtype::kUint8, Shape({bytes}), where));
    Tensor scaled = weights;
    if (!factors.empty()) {
      ASSIGN_OR_RETURN(scaled, Multiplied(weights, factors));
    }
    RETURN_IF_ERROR(primitive->PackWeights(from, scaled.raw(), packed.raw()));
    return packed;
  };
  if (!constant) return pack(allocator);
  absl::MutexLock lock(&mutex_);
  for (const Entry& e : entries_) {
    if (e.original.raw() == weights.raw() && e.original.SharesBufferWith(weights) &&
        (e.layout == primitive || e.layout->SameWeightsLayout(*primitive))) {
      return e.packed;
    }
  }
  ASSIGN_OR_RETURN(Tensor packed, pack(HeapAllocator()));
  if (weights.buffer()->mapped_file() && weights.bytes() >= kWorthDropping) {
    DropMappedPages(weights.raw(), weights.bytes());
  }
  if (entries_.size() >= kMaxPacked) entries_.erase(entries_.begin());
  entries_.push_back(Entry{weights, primitive, packed});
  return packed;
}

StatusOr<Tensor> FloatCopies::Get(const Tensor& t, bool constant, Allocator* allocator) {
  if (!constant || t.dtype() == Dtype::kFloat) return nn::ToFloat(t, allocator);
  absl::MutexLock lock(&mutex_);
  for (const Entry& e : entries_) {
    if (e.original.raw() == t.raw() && e.original.SharesBufferWith(t)) return e.wide;
  }
  ASSIGN_OR_RETURN(Tensor wide, nn::ToFloat(t, HeapAllocator()));
  if (entries_.size() >= kMaxPacked) entries_.erase(entries_.begin());
  entries_.push_back(Entry{t, wide});
  return wide;
}

bool InputIsConst(const Node& node, int i) {
  return i < node.num_inputs() && node.inputs()[i].node != nullptr &&
         node.inputs()[i].node->Is("Const");
}

}  // namespace smelt::onednn
