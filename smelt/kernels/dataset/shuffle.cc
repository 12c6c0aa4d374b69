// Datasets in random order, and the resources that their seeds live in.
#include <deque>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/common/philox.h"
#include "smelt/kernels/dataset/dataset.h"
#include "smelt/kernels/resource_types.h"

namespace smelt {
namespace {

using SeedPair = std::pair<uint64_t, uint64_t>;

// Both 0: seeds that nobody knows.
SeedPair SeedPairOr(int64_t seed, int64_t seed2) {
  if (seed != 0 || seed2 != 0) return {static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2)};
  std::random_device device;
  auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

// Gives every iterator its seeds: always the same, or ever new ones. Thread safe.
class SeedGenerator final : public Resource {
 public:
  static constexpr absl::string_view kKind = "seed_generator";
  absl::string_view kind() const override { return kKind; }
  SeedGenerator(const SeedPair& seeds, bool reshuffle)
      : seeds_(seeds), reshuffle_(reshuffle), words_(Philox(seeds.first, seeds.second)) {}

  SeedPair Next() {
    if (!reshuffle_) return seeds_;
    absl::MutexLock lock(&mutex_);
    const uint64_t first = words_();
    return {first, words_()};
  }

 private:
  const SeedPair seeds_;
  const bool reshuffle_;
  absl::Mutex mutex_;
  PhiloxWords words_ ABSL_GUARDED_BY(mutex_);
};

// What a shuffle keeps: a window over the input (one round of it after another) from which it
// draws. Slices say which part of the window belongs to which round; only the first one is drawn
// from.
class ShuffleWindow {
 public:
  ShuffleWindow(DatasetRef input, size_t capacity, int64_t rounds,
                std::shared_ptr<SeedGenerator> seeds)
      : input_(std::move(input)),
        capacity_(capacity),
        rounds_(rounds),
        seeds_(std::move(seeds)),
        words_(NextWords()) {}

  NextElement Next(Step& step) {
    RETURN_IF_ERROR(Fill(step));
    if (count_ == 0) return EndOfElements();
    while (slices_.front().begin == slices_.front().end) {
      slices_.pop_front();
      words_ = NextWords();  // every round has seeds of its own
    }
    Slice& slice = slices_.front();
    const size_t pick = slice.begin + words_() % (slice.end - slice.begin);
    Element element = std::move(At(pick));
    if (pick != slice.begin) At(pick) = std::move(At(slice.begin));
    ++slice.begin;
    --count_;
    return std::optional<Element>(std::move(element));
  }

 private:
  // Places in the window, counted on from round to round.
  struct Slice {
    size_t begin = 0, end = 0;
  };

  PhiloxWords NextWords() {
    const SeedPair seeds = seeds_->Next();
    return PhiloxWords(Philox(seeds.first, seeds.second));
  }

  Element& At(size_t place) { return window_[place % capacity_]; }

  Status Fill(Step& step) {
    while (count_ < capacity_ && !ended_) {
      if (!iterator_) {
        if (rounds_ >= 0 && round_ >= rounds_) {
          ended_ = true;
          break;
        }
        ASSIGN_OR_RETURN(iterator_, input_->make(step));
        ++round_;
        const size_t at = slices_.empty() ? next_ : slices_.back().end;
        slices_.push_back({at, at});
        some_ = false;
      }
      ASSIGN_OR_RETURN(auto element, Pull(iterator_, step));
      if (!element) {
        iterator_ = nullptr;
        // Nothing, for ever, is nothing.
        if (!some_ && rounds_ < 0) ended_ = true;
        continue;
      }
      some_ = true;
      if (next_ < capacity_) window_.emplace_back();
      At(next_) = *std::move(element);
      slices_.back().end = ++next_;
      ++count_;
    }
    return OkStatus();
  }

  const DatasetRef input_;
  const size_t capacity_;
  const int64_t rounds_;
  const std::shared_ptr<SeedGenerator> seeds_;
  PhiloxWords words_;
  std::vector<Element> window_;
  std::deque<Slice> slices_;
  size_t next_ = 0;   // place of the next element
  size_t count_ = 0;  // elements in the window
  int64_t round_ = 0;
  bool some_ = false;
  bool ended_ = false;
  ElementIterator iterator_;
};

// Input `name`, 0 where the op has none.
StatusOr<int64_t> OptionalCount(const OpContext& ctx, absl::string_view name, int64_t otherwise) {
  const auto [at, count] = ArgumentRange(ctx.node(), name);
  if (count == 0) return otherwise;
  return CountInput(ctx, at, name);
}

Status RunShuffleDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(int64_t size, CountInput(ctx, 1, "buffer_size"));
  ASSIGN_OR_RETURN(const int64_t count, OptionalCount(ctx, "count", 1));
  ASSIGN_OR_RETURN(const int64_t seed, OptionalCount(ctx, "seed", 0));
  ASSIGN_OR_RETURN(const int64_t seed2, OptionalCount(ctx, "seed2", 0));
  const bool repeats = ArgumentRange(ctx.node(), "count").second > 0;
  if (size <= 0 && size != kUnknownCount) {
    return InvalidArgument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  }
  if (repeats && count != -1 && count <= 0) {
    return InvalidArgument("count must be greater than zero or equal to -1.");
  }
  // The window grows as elements come, so that a large size alone costs nothing.
  if (size == kUnknownCount) size = int64_t{1} << 62;
  std::shared_ptr<SeedGenerator> seeds;
  const auto [at, handles] = ArgumentRange(ctx.node(), "seed_generator");
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
  return SetDataset(ctx, {&input, 1}, n, [=](Step&) -> StatusOr<ElementIterator> {
    auto window = std::make_unique<ShuffleWindow>(input, static_cast<size_t>(size), count, seeds);
    return [window = std::move(window)](Step& step) { return window->Next(step); };
  });
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

// A handle to nothing: the dataset keeps what it needs itself.
Status RunDummyResource(OpContext& ctx) {
  ctx.set_output(0, AnonymousHandle(ctx, nullptr));
  return OkStatus();
}

constexpr Kernel kDatasetShuffleTable[] = {
    {"ShuffleDataset", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"ShuffleDatasetV2", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"ShuffleDatasetV3", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"ShuffleAndRepeatDataset", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"ShuffleAndRepeatDatasetV2", "", kAnyType, "dataset:shuffle", RunShuffleDataset},
    {"AnonymousSeedGenerator", "", kAnyType, "dataset:seed_generator", RunSeedGenerator},
    {"DummySeedGenerator", "", kAnyType, "dataset:dummy", RunDummyResource},
    {"DummyMemoryCache", "", kAnyType, "dataset:dummy", RunDummyResource},
};

}  // namespace

bool HoldsResource(const Tensor& handle) {
  return handle.num_elements() > 0 && handle.scalar<ResourceHandle>().resource != nullptr;
}

Tensor AnonymousHandle(const OpContext& ctx, std::shared_ptr<Resource> resource) {
  ResourceHandle h;
  h.container = "localhost";
  h.name = ctx.node().name();
  h.device = std::string(ctx.step().device);
  if (resource != nullptr) h.type_name = std::string(ResourceTypeName(resource->kind()));
  h.resource = std::move(resource);
  return Tensor::Scalar(std::move(h));
}

extern constinit const std::span<const Kernel> kDatasetShuffleKernels = kDatasetShuffleTable;

}  // namespace smelt
