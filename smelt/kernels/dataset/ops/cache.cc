// CacheDataset: elements kept in memory or in files.
#include "smelt/kernels/dataset/cache.h"

#include "smelt/kernels/dataset/ops/dataset_op.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

Status RunMemoryCache(OpContext& ctx) {
  ctx.set_output(0, AnonymousHandle(ctx, std::make_shared<MemoryCache>()));
  ctx.set_output(1, Tensor::Scalar(Variant{}));
  return OkStatus();
}

Status RunCacheDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const std::string file, ScalarInput<std::string>(ctx, 1, "filename"));
  if (!file.empty()) {
    return SetDataset(ctx, {&input, 1}, input->cardinality, CachedInFile(input, file, ctx.files()));
  }
  std::shared_ptr<MemoryCache> cache;
  if (ctx.num_inputs() > 2 && HoldsResource(ctx.input(2))) {
    ASSIGN_OR_RETURN(cache, FindResource<MemoryCache>(ctx.input(2)));
  }
  if (cache == nullptr) cache = std::make_shared<MemoryCache>();
  return SetDataset(ctx, {&input, 1}, input->cardinality, CachedInMemory(input, cache));
}

constexpr Kernel kDatasetCacheTable[] = {
    {"CacheDataset", "", kAnyType, "dataset:cache", RunCacheDataset},
    {"AnonymousMemoryCache", "", kAnyType, "dataset:memory_cache", RunMemoryCache},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetCacheKernels = kDatasetCacheTable;

}  // namespace smelt
