// Strings to bucket numbers.
#include "absl/strings/str_cat.h"
#include "smelt/base/hash.h"
#include "smelt/kernels/kernel.h"
#include "smelt/tensor/visit_types.h"

namespace smelt {
namespace {

struct BucketState final : KernelState {
  uint64_t buckets = 1;
  uint64_t key[2] = {0, 0};
};

StatusOr<std::unique_ptr<KernelState>> PrepareBucket(const Node& node) {
  auto state = std::make_unique<BucketState>();
  const int64_t buckets = node.Int("num_buckets");
  if (buckets < 1) return InvalidArgument("num_buckets must be at least 1, got ", buckets);
  state->buckets = static_cast<uint64_t>(buckets);
  if (node.Is("StringToHashBucketStrong")) {
    const std::vector<int64_t> key = node.Ints("key");
    if (key.size() != 2) return InvalidArgument("Key must have 2 elements");
    state->key[0] = static_cast<uint64_t>(key[0]);
    state->key[1] = static_cast<uint64_t>(key[1]);
  }
  return state;
}

template <typename F>
Status ToBuckets(OpContext& ctx, F hash) {
  const uint64_t buckets = ctx.state<BucketState>().buckets;
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  int64_t* p = out->data<int64_t>();
  for (const std::string& s : in.flat<std::string>()) {
    *p++ = static_cast<int64_t>(hash(absl::string_view(s)) % buckets);
  }
  return OkStatus();
}

Status RunBucket(OpContext& ctx) {
  return ToBuckets(ctx, [](absl::string_view s) { return Hash64(s); });
}

Status RunBucketFast(OpContext& ctx) {
  return ToBuckets(ctx, [](absl::string_view s) { return Fingerprint64(s); });
}

Status RunBucketStrong(OpContext& ctx) {
  const auto& state = ctx.state<BucketState>();
  return ToBuckets(ctx,
                   [&](absl::string_view s) { return SipHash(state.key[0], state.key[1], s); });
}

using SignedIntTypes = CppTypes<int8_t, int16_t, int32_t, int64_t>;

// Numbers as AsString would write them.
Status RunBucketOfNumbers(OpContext& ctx) {
  const uint64_t buckets = ctx.state<BucketState>().buckets;
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  int64_t* p = out->data<int64_t>();
  const bool known = VisitTypes(SignedIntTypes(), in.dtype(), [&]<typename T>() {
    for (const T value : in.flat<T>()) {
      const absl::AlphaNum text(static_cast<int64_t>(value));
      *p++ = static_cast<int64_t>(Fingerprint64(text.Piece()) % buckets);
    }
  });
  // As TensorFlow's kernel, which is there for all integers.
  if (!known) return InvalidArgument("Type not supported: ", DtypeName(in.dtype()));
  return OkStatus();
}

constexpr Kernel kHashBucketTable[] = {
    {"StringToHashBucketFast", "", kAnyType, "text:farmhash", RunBucketFast, PrepareBucket},
    {"StringToHashBucket", "", kAnyType, "text:hash64", RunBucket, PrepareBucket},
    {"_TensorToHashBucketFast", "T", kIntTypes, "text:farmhash_numbers", RunBucketOfNumbers,
     PrepareBucket},
    {"StringToHashBucketStrong", "", kAnyType, "text:siphash", RunBucketStrong, PrepareBucket},
};

}  // namespace

extern constinit const std::span<const Kernel> kHashBucketKernels = kHashBucketTable;

}  // namespace smelt
