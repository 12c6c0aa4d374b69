// Datasets in random order, and the seed generators that they share; random numbers, and elements
// chosen at random.
#include "smelt/kernels/dataset/shuffle.h"

#include "smelt/kernels/common/philox.h"
#include "smelt/kernels/common/seeds.h"
#include "smelt/kernels/dataset/ops/dataset_op.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

// Input `name`, or `otherwise` when the op has none.
StatusOr<int64_t> OptionalCount(const OpContext& ctx, absl::string_view name, int64_t otherwise) {
  const auto [at, count] = InputRange(ctx.node(), name);
  if (count == 0) return otherwise;
  return CountInput(ctx, at, name);
}

Status RunShuffleDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(int64_t size, CountInput(ctx, 1, "buffer_size"));
  ASSIGN_OR_RETURN(const int64_t count, OptionalCount(ctx, "count", 1));
  ASSIGN_OR_RETURN(const int64_t seed, OptionalCount(ctx, "seed", 0));
  ASSIGN_OR_RETURN(const int64_t seed2, OptionalCount(ctx, "seed2", 0));
  const bool repeats = InputRange(ctx.node(), "count").second > 0;
  if (size <= 0 && size != kUnknownCount) {
    return InvalidArgument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  }
  if (repeats && count != -1 && count <= 0) {
    return InvalidArgument("count must be greater than zero or equal to -1.");
  }
  // A size of -2 asks for a window over the whole input. It grows as elements come, so that a large
  // size alone costs nothing.
  if (size == kUnknownCount) size = int64_t{1} << 62;
  std::shared_ptr<SeedGenerator> seeds;
  const auto [at, handles] = InputRange(ctx.node(), "seed_generator");
  if (handles > 0) {
    if (HoldsResource(ctx.input(at))) {
      ASSIGN_OR_RETURN(seeds, FindResource<SeedGenerator>(ctx.input(at)));
    }
  }
  if (seeds == nullptr) {
    seeds = std::make_shared<SeedGenerator>(SeedPairOr(seed, seed2),
                                            ctx.node().Bool("reshuffle_each_iteration", true));
  }
  int64_t n = input->cardinality;
  if (count < 0 && n != 0) n = kInfinite;
  if (count > 0 && n > 0 && __builtin_mul_overflow(n, count, &n)) n = kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, ShuffledElements(input, size, count, seeds));
}

// The second output frees the resource in TensorFlow; here the last handle does.
Status RunSeedGenerator(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t seed, CountInput(ctx, 0, "seed"));
  ASSIGN_OR_RETURN(const int64_t seed2, CountInput(ctx, 1, "seed2"));
  ASSIGN_OR_RETURN(const bool reshuffle, ScalarInput<bool>(ctx, 2, "reshuffle"));
  ctx.set_output(
      0, AnonymousHandle(ctx, std::make_shared<SeedGenerator>(SeedPairOr(seed, seed2), reshuffle)));
  ctx.set_output(1, Tensor::Scalar(Variant{}));
  return OkStatus();
}

// A handle to nothing, where TensorFlow's datasets have a placeholder for a resource they do not
// use.
Status RunDummyResource(OpContext& ctx) {
  ctx.set_output(0, AnonymousHandle(ctx, nullptr));
  return OkStatus();
}

// Words of one stream as int64 scalars, without end.
Status RunRandomDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const int64_t seed, CountInput(ctx, 0, "seed"));
  ASSIGN_OR_RETURN(const int64_t seed2, CountInput(ctx, 1, "seed2"));
  const SeedPair seeds = SeedPairOr(seed, seed2);
  return SetDataset(ctx, {}, kInfinite, [seeds](Step&) -> StatusOr<ElementIterator> {
    return [words = PhiloxWords(Philox(seeds.first, seeds.second))](Step&) mutable -> NextElement {
      return Element{Tensor::Scalar(int64_t{words()})};
    };
  });
}

// Each element stays with the probability `rate`.
Status RunSamplingDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const float rate, ScalarInput<float>(ctx, 1, "rate"));
  ASSIGN_OR_RETURN(const int64_t seed, CountInput(ctx, 2, "seed"));
  ASSIGN_OR_RETURN(const int64_t seed2, CountInput(ctx, 3, "seed2"));
  const SeedPair seeds = SeedPairOr(seed, seed2);
  const auto make = [input, rate, seeds](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [in = std::move(in), rate, words = PhiloxWords(Philox(seeds.first, seeds.second))](
               Step& step) mutable -> NextElement {
      while (true) {
        ASSIGN_OR_RETURN(auto element, Pull(in, step));
        if (!element || PhiloxFloat(words()) < rate) return element;
      }
    };
  };
  return SetDataset(ctx, {&input, 1}, kUnknownCount, make);
}

constexpr Kernel kDatasetShuffleTable[] = {
    {"ShuffleDataset", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"ShuffleAndRepeatDataset", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"RandomDataset", "", kAnyType, "dataset:random", RunRandomDataset},
    {"SamplingDataset", "", kAnyType, "dataset:sampling", RunSamplingDataset},
    {"AnonymousSeedGenerator", "", kAnyType, "dataset:seed_generator", RunSeedGenerator},
    {"DummySeedGenerator", "", kAnyType, "dataset:dummy", RunDummyResource},
    {"DummyMemoryCache", "", kAnyType, "dataset:dummy", RunDummyResource},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetShuffleKernels = kDatasetShuffleTable;

}  // namespace smelt
