// Staging maps: tuples by key, which may arrive and leave component by component. The ordered kind
// gives the least key out first, the other one any.
#include <algorithm>
#include <map>

#include "smelt/kernels/kernel.h"
#include "smelt/kernels/queue/staging.h"

namespace smelt {
namespace {

// One key order does for both kinds.
template <bool kOrdered>
class StagingMap final : public Resource {
 public:
  static constexpr absl::string_view kKind = kOrdered ? "ordered_staging_map" : "staging_map";
  absl::string_view kind() const override { return kKind; }
  StagingMap(StagingLimits limits, size_t components) : limits_(limits), components_(components) {}

  // Components `indices` of the tuple of that key. A whole tuple beside one of the same key is
  // dropped.
  Status Put(int64_t key, std::span<const int32_t> indices, Tuple tuple, const Step& step) {
    const int64_t bytes = TupleBytes(tuple);
    RETURN_IF_ERROR(limits_.Check(bytes));
    absl::MutexLock lock(&mutex_);
    const bool whole = indices.size() == components_;
    while (limits_.Full(whole ? static_cast<int64_t>(tuples_.size()) : -1, bytes_, bytes)) {
      RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
    }
    if (!whole) {
      auto at = incomplete_.find(key);
      Tuple parts = at == incomplete_.end() ? Tuple(components_) : at->second;
      for (size_t i = 0; i < indices.size(); ++i) {
        RETURN_IF_ERROR(CheckComponent(key, indices[i]));
        Tensor& part = parts[static_cast<size_t>(indices[i])];
        if (part.valid()) {
          return InvalidArgument("The tensor for index '", indices[i], "' for key '", key,
                                 "' was already initialized '", components_, "'.");
        }
        part = std::move(tuple[i]);
      }
      bytes_ += bytes;
      for (const Tensor& part : parts) {
        if (part.valid()) continue;
        incomplete_[key] = std::move(parts);
        return OkStatus();
      }
      if (at != incomplete_.end()) incomplete_.erase(at);
      if (!tuples_.emplace(key, parts).second) bytes_ -= TupleBytes(parts);
    } else if (tuples_.emplace(key, std::move(tuple)).second) {
      bytes_ += bytes;
    }
    changed_.SignalAll();
    return OkStatus();
  }

  // Waits for the key (nullptr: for any, which is then returned).
  StatusOr<Tuple> Get(int64_t* key, bool any, bool keep, std::span<const int32_t> indices,
                      const Step& step) {
    absl::MutexLock lock(&mutex_);
    auto find = [&] { return any ? tuples_.begin() : tuples_.find(*key); };
    auto at = find();
    for (; at == tuples_.end(); at = find()) {
      RETURN_IF_ERROR(WaitForChange(changed_, mutex_, step, kStagingCancelled));
    }
    *key = at->first;
    Tuple out;
    for (const int32_t index : indices) {
      RETURN_IF_ERROR(CheckComponent(*key, index));
      const Tensor& part = at->second[static_cast<size_t>(index)];
      if (!part.valid()) {
        return InvalidArgument("Tensor at index '", index, "' for key '", *key,
                               "' has already been removed.");
      }
      out.push_back(part);
    }
    if (keep) return out;
    for (const int32_t index : indices) at->second[static_cast<size_t>(index)] = Tensor();
    bytes_ -= TupleBytes(out);
    if (std::ranges::none_of(at->second, &Tensor::valid)) tuples_.erase(at);
    changed_.SignalAll();
    return out;
  }

  int64_t size() {
    absl::MutexLock lock(&mutex_);
    return static_cast<int64_t>(tuples_.size());
  }
  int64_t incomplete_size() {
    absl::MutexLock lock(&mutex_);
    return static_cast<int64_t>(incomplete_.size());
  }
  void Clear() {
    absl::MutexLock lock(&mutex_);
    tuples_.clear();
    incomplete_.clear();
    bytes_ = 0;
    changed_.SignalAll();
  }

 private:
  Status CheckComponent(int64_t key, int32_t index) const {
    const auto at = static_cast<size_t>(int64_t{index});
    if (at < components_) return OkStatus();
    return InvalidArgument("Index '", at, "' for key '", key, "' was out of bounds '", components_,
                           "'.");
  }

  const StagingLimits limits_;
  const size_t components_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<int64_t, Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Tuple> incomplete_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

template <bool kOrdered>
StatusOr<std::shared_ptr<StagingMap<kOrdered>>> MapOf(OpContext& ctx) {
  return FindStaging<StagingMap<kOrdered>>(ctx, [](const StagingState& s) {
    return std::make_shared<StagingMap<kOrdered>>(s.limits, s.dtypes.size());
  });
}

StatusOr<int64_t> StagingKey(const Tensor& key) {
  if (key.num_elements() == 0) return InvalidArgument("key must not be empty");
  if (key.num_elements() != 1) {
    return InvalidArgument("key must be an int64 scalar, got tensor with shape: ",
                           key.shape().ToString());
  }
  return key.scalar<int64_t>();
}

// The component numbers, which must grow; as many as `count`.
StatusOr<std::span<const int32_t>> StagingIndices(const Tensor& t, int count) {
  const auto indices = t.flat<int32_t>();
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] <= indices[i - 1]) {
      return InvalidArgument("Indices are not strictly ordered");
    }
  }
  if (indices.size() != static_cast<size_t>(count)) {
    return InvalidArgument("output/input size mismatch: ", indices.size(), " indices for ", count,
                           " values");
  }
  return indices;
}

template <bool kOrdered>
Status RunMapStage(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto map, MapOf<kOrdered>(ctx));
  ASSIGN_OR_RETURN(const int64_t key, StagingKey(ctx.input(0)));
  ASSIGN_OR_RETURN(const auto indices, StagingIndices(ctx.input(1), ctx.num_inputs() - 2));
  Tuple tuple;
  for (int i = 2; i < ctx.num_inputs(); ++i) tuple.push_back(ctx.TakeInput(i));
  return map->Put(key, indices, std::move(tuple), ctx.step());
}

template <bool kOrdered, bool kKeep>
Status RunMapUnstage(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto map, MapOf<kOrdered>(ctx));
  ASSIGN_OR_RETURN(int64_t key, StagingKey(ctx.input(0)));
  ASSIGN_OR_RETURN(const auto indices, StagingIndices(ctx.input(1), ctx.num_outputs()));
  ASSIGN_OR_RETURN(Tuple tuple, map->Get(&key, false, kKeep, indices, ctx.step()));
  return SetStagedOutputs(ctx, 0, std::move(tuple));
}

template <bool kOrdered>
Status RunMapUnstageNoKey(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto map, MapOf<kOrdered>(ctx));
  ASSIGN_OR_RETURN(const auto indices, StagingIndices(ctx.input(0), ctx.num_outputs() - 1));
  int64_t key = 0;
  ASSIGN_OR_RETURN(Tuple tuple, map->Get(&key, true, false, indices, ctx.step()));
  ctx.set_output(0, Tensor::Scalar(key));
  return SetStagedOutputs(ctx, 1, std::move(tuple));
}

template <bool kOrdered, bool kIncomplete>
Status RunMapSize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto map, MapOf<kOrdered>(ctx));
  const int64_t size = kIncomplete ? map->incomplete_size() : map->size();
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(size)));
  return OkStatus();
}

template <bool kOrdered>
Status RunMapClear(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto map, MapOf<kOrdered>(ctx));
  map->Clear();
  return OkStatus();
}

constexpr Kernel kMapStageTable[] = {
    {"MapStage", "", kAnyType, "queue:map_stage", RunMapStage<false>, PrepareStaging},
    {"MapUnstage", "", kAnyType, "queue:map_unstage", RunMapUnstage<false, false>, PrepareStaging},
    {"MapUnstageNoKey", "", kAnyType, "queue:map_unstage", RunMapUnstageNoKey<false>,
     PrepareStaging},
    {"MapPeek", "", kAnyType, "queue:map_peek", RunMapUnstage<false, true>, PrepareStaging},
    {"MapSize", "", kAnyType, "queue:map_size", RunMapSize<false, false>, PrepareStaging},
    {"MapIncompleteSize", "", kAnyType, "queue:map_size", RunMapSize<false, true>, PrepareStaging},
    {"MapClear", "", kAnyType, "queue:map_clear", RunMapClear<false>, PrepareStaging},
    {"OrderedMapStage", "", kAnyType, "queue:map_stage", RunMapStage<true>, PrepareStaging},
    {"OrderedMapUnstage", "", kAnyType, "queue:map_unstage", RunMapUnstage<true, false>,
     PrepareStaging},
    {"OrderedMapUnstageNoKey", "", kAnyType, "queue:map_unstage", RunMapUnstageNoKey<true>,
     PrepareStaging},
    {"OrderedMapPeek", "", kAnyType, "queue:map_peek", RunMapUnstage<true, true>, PrepareStaging},
    {"OrderedMapSize", "", kAnyType, "queue:map_size", RunMapSize<true, false>, PrepareStaging},
    {"OrderedMapIncompleteSize", "", kAnyType, "queue:map_size", RunMapSize<true, true>,
     PrepareStaging},
    {"OrderedMapClear", "", kAnyType, "queue:map_clear", RunMapClear<true>, PrepareStaging},
};

}  // namespace

extern constinit const std::span<const Kernel> kMapStageKernels = kMapStageTable;

}  // namespace smelt
